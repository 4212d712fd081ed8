//! The merge of a dictionary's sorted parts, within a range of keys.

use std::sync::Arc;

use pando_base::{Kind, Result};
use pando_run::{Run, RunCursor};
use pando_tree::Tree;

use crate::chunk::{Chunk, ChunkCursor};
use crate::entry_order::Head;
use crate::sorter::Duplicate;

/// Something that is merged.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Chunk(Arc<Chunk>),
    /// Entries that came in key order, before those of all chunks: runs one behind the other.
    Runs(Arc<[Arc<Run>]>),
}

/// `[lo, hi)`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    pub lo: Option<Vec<u8>>,
    pub hi: Option<Vec<u8>>,
}

enum Cursor {
    Chunk(ChunkCursor),
    Runs(RunsCursor),
}

/// Goes over runs that ascend and lie apart; one is open at a time.
struct RunsCursor {
    runs: Arc<[Arc<Run>]>,
    /// Of the open one.
    at: usize,
    open: Option<Box<RunCursor>>,
    hi: Option<Vec<u8>>,
}

impl RunsCursor {
    fn new(runs: &Arc<[Arc<Run>]>, range: &Range) -> Result<RunsCursor> {
        let lo = range.lo.as_deref();
        let at = lo.map_or(0, |lo| runs.partition_point(|run| run.meta().max_key.as_slice() < lo));
        let mut cursor = RunsCursor { runs: runs.clone(), at, open: None, hi: range.hi.clone() };
        cursor.open(lo)?;
        Ok(cursor)
    }

    /// Opens the run that it is at, or the next one that has something.
    fn open(&mut self, lo: Option<&[u8]>) -> Result<()> {
        self.open = None;
        while let Some(run) = self.runs.get(self.at) {
            let mut cursor = Box::new(run.cursor().bypass_cache());
            match lo {
                Some(lo) => cursor.seek(lo)?,
                None => cursor.seek_first()?,
            }
            if cursor.valid() {
                self.open = Some(cursor);
                return Ok(());
            }
            self.at += 1;
        }
        Ok(())
    }

    fn valid(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| self.hi.as_ref().is_none_or(|hi| open.key() < hi.as_slice()))
    }

    fn next(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.next()?;
        if !open.valid() {
            self.at += 1;
            self.open(None)?;
        }
        Ok(())
    }
}

pub(crate) struct Input {
    cursor: Cursor,
    /// Of its key.
    head: Head,
}

impl Input {
    fn open(source: &Source, range: &Range) -> Result<Input> {
        let cursor = match source {
            Source::Chunk(chunk) => {
                Cursor::Chunk(ChunkCursor::new(chunk.clone(), range.lo.as_deref(), range.hi.clone())?)
            }
            Source::Runs(runs) => Cursor::Runs(RunsCursor::new(runs, range)?),
        };
        let mut input = Input { cursor, head: Head::default() };
        input.note();
        Ok(input)
    }

    fn note(&mut self) {
        if self.valid() {
            self.head = Head::new(self.key());
        }
    }

    fn valid(&self) -> bool {
        match &self.cursor {
            Cursor::Chunk(cursor) => cursor.valid(),
            Cursor::Runs(cursor) => cursor.valid(),
        }
    }

    /// Requires: it is valid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.cursor {
            Cursor::Chunk(cursor) => cursor.key(),
            Cursor::Runs(cursor) => cursor.open.as_ref().map_or(&[], |open| open.key()),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match &self.cursor {
            Cursor::Chunk(cursor) => cursor.value(),
            Cursor::Runs(cursor) => cursor.open.as_ref().map_or(&[], |open| open.record().value),
        }
    }

    /// Of its entry; what came in order was before all else.
    pub(crate) fn ordinal(&self) -> u64 {
        match &self.cursor {
            Cursor::Chunk(cursor) => cursor.ordinal(),
            Cursor::Runs(..) => 0,
        }
    }

    fn next(&mut self) -> Result<()> {
        match &mut self.cursor {
            Cursor::Chunk(cursor) => cursor.next()?,
            Cursor::Runs(cursor) => cursor.next()?,
        }
        self.note();
        Ok(())
    }

    #[inline]
    fn is_before(&self, other: &Input) -> bool {
        let order = self.head.compare(&other.head).unwrap_or_else(|| self.key().cmp(other.key()));
        order.then_with(|| self.ordinal().cmp(&other.ordinal())).is_lt()
    }
}

/// Inputs as a heap: each is before those at twice its place plus one and plus two.
pub(crate) struct Heap {
    pub(crate) inputs: Vec<Input>,
}

impl Heap {
    /// `None`: given up.
    pub(crate) fn open(
        sources: &[Source],
        range: &Range,
        cancelled: impl Fn() -> bool,
    ) -> Result<Option<Heap>> {
        let mut heap = Heap { inputs: Vec::with_capacity(sources.len()) };
        for source in sources {
            // Each reads a block.
            if cancelled() {
                return Ok(None);
            }
            let input = Input::open(source, range)?;
            heap.inputs.extend(input.valid().then_some(input));
        }
        for at in (0..heap.inputs.len() / 2).rev() {
            heap.sift_down(at);
        }
        Ok(Some(heap))
    }

    /// Requires: something is left.
    pub(crate) fn next(&mut self) -> Result<()> {
        self.inputs[0].next()?;
        if !self.inputs[0].valid() {
            self.inputs.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.inputs.len() && self.inputs[child].is_before(&self.inputs[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.inputs.swap(at, first);
            at = first;
        }
    }
}

/// What a merge gives.
#[derive(Debug)]
pub(crate) enum Merged {
    Runs(Vec<Arc<Run>>),
    Duplicate(Duplicate),
    Cancelled,
}

/// Entries and their bytes between two looks whether a merge is given up.
const STRIDE: u32 = 4096;
const STRIDE_BYTES: usize = 1 << 20;

/// Says when it is time to look.
#[derive(Default)]
pub(crate) struct Pace {
    entries: u32,
    bytes: usize,
}

impl Pace {
    /// With one more entry.
    #[inline]
    pub(crate) fn is_time(&mut self, entry: &Input) -> bool {
        self.entries += 1;
        self.bytes += entry.value().len();
        let is_time = self.entries >= STRIDE || self.bytes >= STRIDE_BYTES;
        if is_time {
            *self = Pace::default();
        }
        is_time
    }
}

/// Merges what the sources have in the range, about `raw_bytes`, into private runs. `cancelled` is asked
/// now and then. Without ordinals a duplicate is one of rows that have one elsewhere too: it comes last.
///
/// # Errors
/// Those of reading and writing; nothing is left then.
pub(crate) fn merge(
    tree: &Arc<Tree>,
    sources: &[Source],
    range: &Range,
    raw_bytes: u64,
    has_ordinals: bool,
    cancelled: impl Fn() -> bool,
) -> Result<Merged> {
    let Some(mut heap) = Heap::open(sources, range, &cancelled)? else { return Ok(Merged::Cancelled) };
    let mut pace = Pace::default();
    let mut writer = tree.private_writer_of(raw_bytes);
    let mut last: Option<Last> = None;
    let mut duplicate: Option<Duplicate> = None;
    let mut count = 0u64;
    while let Some(top) = heap.inputs.first() {
        count += 1;
        if pace.is_time(top) && cancelled() {
            return Ok(Merged::Cancelled);
        }
        let last = last.get_or_insert_default();
        if count > 1 && last.head == top.head && last.key == top.key() {
            last.repeats += 1;
            // The second row with this key is the one that was too many.
            if last.repeats == 1 && duplicate.as_ref().is_none_or(|first| top.ordinal() < first.ordinal) {
                duplicate = Some(Duplicate {
                    ordinal: if has_ordinals { top.ordinal() } else { u64::MAX },
                    key: last.key.clone(),
                    value: top.value().to_vec(),
                    existing: last.value.clone(),
                });
            }
        } else {
            last.set(top);
            if duplicate.is_none() {
                writer.add(top.key(), Kind::Put, top.value())?;
            }
        }
        heap.next()?;
    }
    match duplicate {
        Some(duplicate) => Ok(Merged::Duplicate(duplicate)),
        None => Ok(Merged::Runs(writer.finish()?)),
    }
}

/// The entry before.
#[derive(Default)]
struct Last {
    key: Vec<u8>,
    head: Head,
    value: Vec<u8>,
    repeats: u64,
}

impl Last {
    fn set(&mut self, input: &Input) {
        self.key.clear();
        self.key.extend_from_slice(input.key());
        self.head = input.head;
        self.value.clear();
        self.value.extend_from_slice(input.value());
        self.repeats = 0;
    }
}
