//! What is left of a damaged tree: all records that can be read, in the order of keys, and the ranges of keys in which something
//! cannot.
//!
//! The nodes are read from the root, as by [`Tree::open`](crate::Tree::open), but one that is damaged costs only the range of keys below it,
//! a run only its range, a segment only the keys between its first and the next one's. In each leaf's range what the path above
//! and the leaf have is merged, newest version first; of a key the newest version that can be read is given.
//!
//! Two kinds of loss. Where the *bottom* is damaged, rows are missing. Where something *above* is damaged, a newer version of a key may
//! be missing: a row that comes out below it may be older than the last commit, or deleted since. Such rows are given and marked. Rows that
//! were nowhere else are missing there, too.
//!
//! Private runs that only the log names, and what the log has beyond the checkpoint, are not part of the file's tree.

use std::collections::HashMap;

use pando_base::{DeletedRanges, Error, Kind, Result, RunId, Seqno};
use pando_column::Segment;
use pando_run::{Pieces, Run, RunContext, RunMeta};
use pando_storage::{BlockKind, Place, Superblock};

use crate::node_format::{self, BodyImage, NodeImage};

/// Deeper than any tree can be.
const DEPTH_MAX: usize = 48;

/// Keys of which something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// The first; empty: from the beginning.
    pub low: Vec<u8>,
    /// The first behind it; `None`: to the end.
    pub high: Option<Vec<u8>>,
    /// Rows may be missing. Otherwise rows that were nowhere else, and newer versions of those below.
    pub is_bottom: bool,
    /// What cannot be read, and where.
    pub cause: String,
}

/// A row that could be read.
#[derive(Clone, Copy, Debug)]
pub struct SalvagedRow<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// A newer version may have been lost.
    pub may_be_older: bool,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Rows given.
    pub rows: u64,
    /// Of these, ones that may be older than the last commit.
    pub older: u64,
    /// What is lost; the ranges of one cause in the order of keys.
    pub lost: Vec<LostRange>,
}

/// Gives all rows of the tree that `sb` names to `take`, which says whether it goes on.
///
/// # Errors
/// Those of `take`, and a key of encryption that is missing: that is no damage.
pub fn salvage(
    ctx: &RunContext,
    sb: &Superblock,
    take: &mut dyn FnMut(SalvagedRow<'_>) -> Result<()>,
) -> Result<Salvaged> {
    let deleted = DeletedRanges::new(sb.deleted.clone());
    let mut walk = Walk { ctx, deleted, runs: HashMap::new(), out: Salvaged::default(), take };
    if let Some(root) = sb.root {
        walk.node(root, &Range::default(), &[], 0)?;
    }
    Ok(walk.out)
}

/// `[low, high)`
#[derive(Clone, Debug, Default)]
struct Range {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Range {
    fn is_below_end(&self, key: &[u8]) -> bool {
        self.high.as_deref().is_none_or(|high| key < high)
    }

    fn overlaps(&self, meta: &RunMeta) -> bool {
        self.low <= meta.max_key && self.is_below_end(&meta.min_key)
    }
}

struct Walk<'a> {
    ctx: &'a RunContext,
    deleted: DeletedRanges,
    /// Those that are open; `None`: it cannot be opened.
    runs: HashMap<RunId, Option<Opened>>,
    out: Salvaged,
    take: &'a mut dyn FnMut(SalvagedRow<'_>) -> Result<()>,
}

#[derive(Clone)]
struct Opened {
    meta: RunMeta,
    pieces: Option<Pieces>,
    /// Why there are no pieces.
    cause: String,
}

/// What there is to be read in a leaf's range, newest first.
struct Source<'a> {
    pieces: &'a Pieces,
    last_key: &'a [u8],
    is_bottom: bool,
    next_segment: usize,
    segment: Option<Segment>,
    row: usize,
}

impl Walk<'_> {
    fn node(&mut self, place: Place, range: &Range, above: &[RunMeta], depth: usize) -> Result<()> {
        let image = match self.read_node(place, depth) {
            Ok(image) => image,
            Err(error @ (Error::Key { .. } | Error::NewerFormat { .. })) => return Err(error),
            Err(error) => {
                self.lose(range.clone(), true, &error);
                return self.leaf(range, above, &[]);
            }
        };
        let NodeImage { pivots, children, buffer, .. } = image;
        let mut bounds = pivots.into_iter();
        let mut low = range.low.clone();
        for child in children {
            let pivot = bounds.next();
            let high = pivot.clone().or_else(|| range.high.clone());
            let part = Range { low: low.clone(), high };
            low = pivot.unwrap_or_default();
            if part.high.as_ref().is_some_and(|high| *high <= part.low) {
                continue;
            }
            let waiting = buffer.iter().filter(|entry| entry.order > child.passed).map(|entry| &entry.meta);
            let path: Vec<RunMeta> =
                above.iter().chain(waiting).filter(|meta| part.overlaps(meta)).cloned().collect();
            match child.body {
                BodyImage::Node { place } => self.node(place, &part, &path, depth + 1)?,
                BodyImage::Leaf { runs, .. } => self.leaf(&part, &path, &runs)?,
            }
        }
        Ok(())
    }

    fn read_node(&self, place: Place, depth: usize) -> Result<NodeImage> {
        let (file, path) = (&self.ctx.file, self.ctx.file.path());
        if depth > DEPTH_MAX {
            return Err(Error::corruption(&path, place.offset, "tree depth", DEPTH_MAX, depth));
        }
        let bytes = file.read(place)?;
        let (codec, payload) = file.open_block(BlockKind::Node, place.offset, &bytes)?;
        if codec != 0 {
            return Err(Error::corruption(&path, place.offset, "node codec", 0, codec));
        }
        node_format::decode(&payload).map_err(|error| error.at(&path, place.offset))
    }

    fn lose(&mut self, range: Range, is_bottom: bool, cause: &impl ToString) {
        let Range { low, high } = range;
        self.out.lost.push(LostRange { low, high, is_bottom, cause: cause.to_string() });
    }

    fn opened(&mut self, meta: &RunMeta) -> Result<Option<Opened>> {
        if let Some(opened) = self.runs.get(&meta.id) {
            return Ok(opened.clone());
        }
        let read = Run::open(self.ctx, meta.clone()).and_then(|run| run.salvage_pieces());
        let opened = match read {
            Ok(pieces) => Opened { meta: meta.clone(), pieces: Some(pieces), cause: String::new() },
            Err(error @ (Error::Key { .. } | Error::NewerFormat { .. })) => return Err(error),
            Err(error) => Opened { meta: meta.clone(), pieces: None, cause: error.to_string() },
        };
        self.runs.insert(meta.id, Some(opened.clone()));
        Ok(Some(opened))
    }

    /// Merges what a leaf's range has.
    fn leaf(&mut self, range: &Range, above: &[RunMeta], bottom: &[RunMeta]) -> Result<()> {
        let mut opened: Vec<(Opened, bool)> = Vec::new();
        for (metas, is_bottom) in [(above, false), (bottom, true)] {
            for meta in metas.iter().filter(|meta| range.overlaps(meta)) {
                opened.extend(self.opened(meta)?.map(|run| (run, is_bottom)));
            }
        }
        // Where something of a source is lost, by its rank.
        let mut holes: Vec<(usize, Range)> = Vec::new();
        let mut sources: Vec<Option<Source<'_>>> = Vec::new();
        for (rank, (run, is_bottom)) in opened.iter().enumerate() {
            match &run.pieces {
                None => {
                    let hole = clipped(range, &run.meta.min_key, Some(after(&run.meta.max_key)));
                    self.lose(hole.clone(), *is_bottom, &run.cause);
                    holes.push((rank, hole));
                    sources.push(None);
                }
                Some(pieces) => {
                    let mut source = Source {
                        pieces,
                        last_key: &run.meta.max_key,
                        is_bottom: *is_bottom,
                        next_segment: pieces.first_for(&range.low),
                        segment: None,
                        row: 0,
                    };
                    self.load(&mut source, rank, range, &mut holes)?;
                    sources.push(Some(source));
                }
            }
        }
        let mut last_key: Option<Vec<u8>> = None;
        loop {
            let mut best: Option<(usize, &[u8], Seqno)> = None;
            for (rank, source) in sources.iter().enumerate() {
                let Some((source, segment)) =
                    source.as_ref().and_then(|source| Some((source, source.segment.as_ref()?)))
                else {
                    continue;
                };
                let record = segment.record(source.row);
                let is_less = best.is_none_or(|(_, key, seqno)| {
                    pando_base::compare_versions((record.key, record.seqno), (key, seqno)).is_lt()
                });
                if is_less {
                    best = Some((rank, record.key, record.seqno));
                }
            }
            let Some((rank, ..)) = best else { return Ok(()) };
            let Some(Some(source)) = sources.get_mut(rank) else { return Ok(()) };
            if let Some(segment) = &source.segment {
                let record = segment.record(source.row);
                if last_key.as_deref() != Some(record.key) {
                    last_key = Some(record.key.to_vec());
                    if record.kind == Kind::Put && !self.deleted.hides(record.key, record.seqno) {
                        let may_be_older = holes.iter().any(|(above, hole)| {
                            *above < rank
                                && hole.low.as_slice() <= record.key
                                && hole.is_below_end(record.key)
                        });
                        self.out.rows += 1;
                        self.out.older += u64::from(may_be_older);
                        (self.take)(SalvagedRow { key: record.key, value: record.value, may_be_older })?;
                    }
                }
            }
            source.row += 1;
            self.settle(source, rank, range, &mut holes)?;
        }
    }

    /// Goes to the first record in the range of the next segment that can be read.
    fn load(
        &mut self,
        source: &mut Source<'_>,
        rank: usize,
        range: &Range,
        holes: &mut Vec<(usize, Range)>,
    ) -> Result<()> {
        source.segment = None;
        while source.next_segment < source.pieces.count() {
            let number = source.next_segment;
            let first_key = source.pieces.first_key(number);
            if !range.is_below_end(first_key) {
                return Ok(());
            }
            source.next_segment += 1;
            match source.pieces.read(number) {
                Ok(segment) => {
                    source.row = segment.lower_bound(&range.low);
                    source.segment = Some(segment);
                    return self.settle(source, rank, range, holes);
                }
                Err(error @ (Error::Key { .. } | Error::NewerFormat { .. })) => return Err(error),
                Err(error) => {
                    let next = number + 1;
                    let high = match next < source.pieces.count() {
                        true if source.pieces.continues(next) => after(source.pieces.first_key(next)),
                        true => source.pieces.first_key(next).to_vec(),
                        false => after(source.last_key),
                    };
                    let hole = clipped(range, first_key, Some(high));
                    if hole.high.as_ref().is_none_or(|high| *high > hole.low) {
                        self.lose(hole.clone(), source.is_bottom, &error);
                        holes.push((rank, hole));
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves a segment that has no more records, and the source where the range ends.
    fn settle(
        &mut self,
        source: &mut Source<'_>,
        rank: usize,
        range: &Range,
        holes: &mut Vec<(usize, Range)>,
    ) -> Result<()> {
        let Some(segment) = &source.segment else { return Ok(()) };
        if source.row >= segment.rows() {
            return self.load(source, rank, range, holes);
        }
        if !range.is_below_end(segment.key(source.row)) {
            source.segment = None;
            source.next_segment = usize::MAX;
        }
        Ok(())
    }
}

/// The first key behind `key`.
fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

fn clipped(range: &Range, low: &[u8], high: Option<Vec<u8>>) -> Range {
    let high = match (&range.high, high) {
        (Some(end), Some(high)) => Some(high.min(end.clone())),
        (Some(end), None) => Some(end.clone()),
        (None, high) => high,
    };
    Range { low: low.max(&range.low).to_vec(), high }
}
