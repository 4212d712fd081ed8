//! Pieces of a scan: where the rows of a range are exactly the records of segments, and where they have to be merged.
//!
//! The range is gone through leaf by leaf, the leaf's oldest run segment by segment. A **plain** segment has one version of
//! each key, no deletes, and nothing that the snapshot does not see; if no memtable and no other run has a record
//! between it and the next one either, then its records are the rows there, and its columns can be read as they are. All
//! other pieces are for a [`Cursor`](crate::Cursor) of the same snapshot. It may look at a later version of the tree:
//! what a snapshot sees of a range is the same in all of them.

use std::ops::Range;
use std::sync::Arc;

use pando_base::{Result, Seqno};
use pando_column::layout::Layouts;
use pando_column::Pick;
use pando_run::{Columns, RunColumns};

use crate::source::{LeafView, Source, Target};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// A part of the range: from the end of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first key that may be in it.
    pub begin: Vec<u8>,
    /// The first key that is not; `None`: it goes on to the end.
    pub end: Option<Vec<u8>>,
    /// How many rows are in it, which are the records of a segment. `None`: they have to be merged.
    pub plain_rows: Option<usize>,
}

/// Goes over the pieces of a range; of one thread.
#[derive(Debug)]
pub struct Pieces {
    version: Arc<TreeVersion>,
    snapshot: Seqno,
    /// Where the next piece begins; `None` after the last.
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    leaf: Option<Leaf>,
    /// The segment of the piece given last.
    number: usize,
}

/// What is left of a leaf.
#[derive(Debug)]
struct Leaf {
    hi: Option<Vec<u8>>,
    base: RunColumns,
    segments: Range<usize>,
    /// What may have records between those of the base.
    others: Vec<Other>,
}

#[derive(Debug)]
struct Other {
    source: Source,
    is_placed: bool,
}

impl Tree {
    /// The pieces of `[begin, end)`, or to the end of all, as `snapshot` sees them.
    pub fn pieces(&self, snapshot: Seqno, begin: &[u8], end: Option<&[u8]>) -> Pieces {
        Pieces {
            version: self.version.load_full(),
            snapshot,
            begin: end.is_none_or(|end| begin < end).then(|| begin.to_vec()),
            end: end.map(<[u8]>::to_vec),
            leaf: None,
            number: 0,
        }
    }
}

impl Pieces {
    /// The next one. Some may be empty.
    ///
    /// # Errors
    /// Those of reading blocks, here and below.
    #[expect(clippy::should_implement_trait, reason = "a step that may fail")]
    pub fn next(&mut self) -> Result<Option<Piece>> {
        let Some(begin) = self.begin.take() else { return Ok(None) };
        self.leaf.take_if(|leaf| leaf.segments.is_empty());
        if self.leaf.is_none() {
            let view = LeafView::find(&self.version, Target::Holding(&begin));
            let hi = self.upper(view.range.hi());
            self.leaf = self.enter(&begin, hi.clone(), view)?;
            if self.leaf.is_none() {
                return Ok(Some(self.give(begin, hi, None)));
            }
        }
        let Some(leaf) = &mut self.leaf else { unreachable!("it was just entered") };
        let number = leaf.segments.start;
        leaf.segments.start += 1;
        let is_last = leaf.segments.is_empty();
        let end = match is_last {
            true => leaf.hi.clone(),
            false => Some(leaf.base.first_key(number + 1).to_vec()),
        };
        let is_plain = leaf.base.is_plain(number, self.snapshot, &begin, leaf.hi.as_deref())
            && !leaf.has_others(&begin, end.as_deref())?;
        let rows = is_plain.then(|| leaf.base.rows(number));
        self.number = number;
        Ok(Some(self.give(begin, end, rows)))
    }

    /// Columns of the records of the piece given last, which is plain. `None`: it has to be read row by row.
    pub fn columns(&mut self, layouts: &Layouts, picks: &[Pick]) -> Result<Option<Columns>> {
        match &mut self.leaf {
            Some(leaf) => leaf.base.columns(self.number, layouts, picks),
            None => Ok(None),
        }
    }

    /// The smaller end.
    fn upper(&self, of_leaf: Option<&[u8]>) -> Option<Vec<u8>> {
        let nearer = match (of_leaf, self.end.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        nearer.map(<[u8]>::to_vec)
    }

    fn enter(&self, begin: &[u8], hi: Option<Vec<u8>>, view: LeafView) -> Result<Option<Leaf>> {
        let mut runs = view.runs;
        // A run adopted by a later commit is of no interest.
        runs.retain(|run| run.meta().min_seqno <= self.snapshot);
        let Some(base) = runs.pop() else { return Ok(None) };
        let base = RunColumns::new(&base)?;
        let segments = base.segments(begin, hi.as_deref());
        if segments.is_empty() {
            return Ok(None);
        }
        // What is empty now can only get records the snapshot does not see.
        let memtables = self.version.memtables().filter(|memtable| !memtable.is_empty());
        let mut sources: Vec<Source> =
            memtables.map(|memtable| Source::memtable(memtable.clone(), self.snapshot)).collect();
        sources.extend(runs.iter().map(Source::run));
        let others = sources.into_iter().map(|source| Other { source, is_placed: false }).collect();
        Ok(Some(Leaf { hi, base, segments, others }))
    }

    fn give(&mut self, begin: Vec<u8>, end: Option<Vec<u8>>, plain_rows: Option<usize>) -> Piece {
        let is_done = match (&end, &self.end) {
            (None, _) => true,
            (Some(end), Some(last)) => end >= last,
            (Some(_), None) => false,
        };
        self.begin = if is_done { None } else { end.clone() };
        Piece { begin, end, plain_rows }
    }
}

impl Leaf {
    /// Whether anything but the base has a record in `[begin, end)`. Requires: what is asked for ascends.
    fn has_others(&mut self, begin: &[u8], end: Option<&[u8]>) -> Result<bool> {
        let mut at = 0;
        while let Some(other) = self.others.get_mut(at) {
            if !other.is_placed || (other.source.valid() && other.source.key() < begin) {
                other.source.seek(begin)?;
                other.is_placed = true;
            }
            if !other.source.valid() {
                self.others.swap_remove(at);
                continue;
            }
            if end.is_none_or(|end| other.source.key() < end) {
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }
}
