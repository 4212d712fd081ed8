//! Whether the entries of an index hold rows.

use pandodb::Clustering;

use crate::guard::guard;
use crate::table::PandoTable;

/// Whether the entries of an index hold rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoClustering {
    /// They do not.
    None = 0,
    /// The value of an entry is the row, as in dictionary 0.
    Row = 1,
    /// The value of an entry is the row, the size of a tail as a number (seven bits a byte), the tail, and its size once more in
    /// two bytes, little-endian. Of entries that have the same key, the tail tells which row it is.
    Tailed = 2,
}

impl From<PandoClustering> for Clustering {
    fn from(clustering: PandoClustering) -> Clustering {
        match clustering {
            PandoClustering::None => Clustering::None,
            PandoClustering::Row => Clustering::Row,
            PandoClustering::Tailed => Clustering::Tailed,
        }
    }
}

/// Whether the entries of a dictionary hold rows; dictionary 0, whose entries are the rows, is said not to.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_clustering(
    table: *const PandoTable,
    dictionary: u32,
) -> PandoClustering {
    // SAFETY: the caller vouches for it.
    let table = unsafe { &(*table).table };
    guard(|| match table.clustering(dictionary as usize) {
        Clustering::None => PandoClustering::None,
        Clustering::Row => PandoClustering::Row,
        Clustering::Tailed => PandoClustering::Tailed,
    })
}
