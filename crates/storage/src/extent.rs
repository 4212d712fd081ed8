//! An extent: space in a tree file that belongs to whoever holds this value.

use crate::space::round_up;
use crate::{Place, TreeFile};
use pando_base::planted::{is_planted, Bug};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Space in a tree file. Dropping it gives the space back at once, to be overwritten by the next
/// owner. Who must keep the bytes alive (a reader, a tree version, the durable checkpoint, a writer
/// that is not done) holds an `Arc` to the owner of the extent: that is how I2 and I7 hold.
pub struct Extent {
    file: Arc<TreeFile>,
    place: Place,
    /// How often the file had been pinned when it was allocated: see `space`, invariant 4.
    age: u32,
    /// There may be plain blocks in it: see `mixed`.
    is_plain: bool,
}

impl Extent {
    pub(crate) fn new(file: Arc<TreeFile>, place: Place, age: u32, is_plain: bool) -> Extent {
        if is_plain {
            file.plain_extents.fetch_add(1, Ordering::AcqRel);
        }
        Extent { file, place, age, is_plain }
    }

    /// Where it is: begins at a page and is a multiple of the page long.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The file it is in.
    pub fn file(&self) -> &Arc<TreeFile> {
        &self.file
    }

    /// Whether there may be plain blocks in it, in a file that is mixed.
    pub fn may_be_plain(&self) -> bool {
        self.is_plain
    }

    /// Keeps the first `len` bytes, rounded up to a page, and gives the rest back at once. Requires: no superblock
    /// has named the extent, as it is before what is written there is in a tree.
    pub fn shrink_to(&mut self, len: u64) {
        let keep = round_up(len);
        assert!(keep <= self.place.len, "shrinking {:?} to {len} bytes", self.place);
        let rest = Place { offset: self.place.offset + keep, len: self.place.len - keep };
        self.place.len = keep;
        if rest.len > 0 && !is_planted(Bug::ExtentTailLeaked) {
            self.file.release_unnamed(rest);
        }
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        if self.place.len > 0 {
            self.file.release(self.place, self.age);
        }
        if self.is_plain {
            self.file.plain_extents.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extent({}+{})", self.place.offset, self.place.len)
    }
}
