//! Segments for a cursor: from the cache, from what was read ahead, or from the file.
//!
//! After a few segments in a row, the segments that follow are read with one request: as many as lie
//! side by side in the file, twice as much each time up to 1 MiB. They are decoded when the cursor gets
//! there. A merge says at the start that it will read everything.

use std::ops::Range;
use std::sync::Arc;

use pando_base::Result;
use pando_column::Segment;
use pando_storage::Place;

use crate::index::Index;
use crate::run::Run;

/// Loads in a row after which reading ahead begins.
const STREAK_MIN: u32 = 2;
/// First and last size of a request.
const WINDOW_BYTES_MIN: u64 = 128 << 10;
const WINDOW_BYTES_MAX: u64 = 1 << 20;

/// Which segment comes after the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
    /// A seek: nobody knows.
    Unknown,
}

/// State of one cursor's reading.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    /// Bytes of the blocks of `segments`, from file offset `offset` on.
    bytes: Vec<u8>,
    offset: u64,
    segments: Range<usize>,
    streak: u32,
    window_bytes: u64,
    /// Leave the cache as it is (merges).
    bypass: bool,
    /// Segments from this one on will not be asked for.
    end: usize,
}

impl ReadAhead {
    pub(crate) fn new() -> ReadAhead {
        ReadAhead {
            bytes: Vec::new(),
            offset: 0,
            segments: 0..0,
            streak: 0,
            window_bytes: WINDOW_BYTES_MIN,
            bypass: false,
            end: usize::MAX,
        }
    }

    /// All will be read, once: read ahead from the start, and put nothing into the cache.
    pub(crate) fn bypass_cache(&mut self) {
        self.bypass = true;
        self.window_bytes = WINDOW_BYTES_MAX;
    }

    /// Segments from `end` on will not be asked for.
    pub(crate) fn limit(&mut self, end: usize) {
        self.end = end;
    }

    /// Segment `number` of `run`.
    pub(crate) fn segment(
        &mut self,
        run: &Run,
        index: &Index,
        number: usize,
        direction: Direction,
    ) -> Result<Arc<Segment>> {
        self.streak = self.streak.saturating_add(1);
        if direction == Direction::Unknown && !self.bypass {
            self.streak = 0;
            self.window_bytes = WINDOW_BYTES_MIN;
        }
        if !self.bypass && self.streak < STREAK_MIN {
            return run.segment(index, number);
        }
        let cache = &run.context().cache;
        let key = run.key_of(index.entry(number).place);
        let cached = if self.bypass { cache.peek(&key) } else { cache.get(&key) };
        if let Some(block) = cached {
            return match self.bypass {
                true => run.decode_block(index, number, block),
                false => run.decoded(index, number, block),
            };
        }
        if !self.segments.contains(&number) {
            let direction = if direction == Direction::Unknown { Direction::Forward } else { direction };
            self.read(run, index, number, direction)?;
        }
        let bytes = self.bytes_of(index, number);
        if self.bypass {
            return Ok(Arc::new(run.decode_segment(index, number, bytes)?));
        }
        let block = run.block_of_segment(index, number, bytes)?;
        cache.insert(key, block.clone());
        run.decoded(index, number, block)
    }

    /// The bytes of the block of segment `number`, for going forward.
    pub(crate) fn block(&mut self, run: &Run, index: &Index, number: usize) -> Result<&[u8]> {
        if !self.segments.contains(&number) {
            // What comes next may be in the cache, or be passed over: more only if one follows the other.
            if self.segments.end != number {
                self.window_bytes = 0;
            }
            self.read(run, index, number, Direction::Forward)?;
        }
        Ok(self.bytes_of(index, number))
    }

    /// The same, where the segments up to `end` are read together: afterwards others of them are asked for again.
    pub(crate) fn block_of_span(
        &mut self,
        run: &Run,
        index: &Index,
        number: usize,
        end: usize,
    ) -> Result<&[u8]> {
        if !self.segments.contains(&number) {
            let bytes = index.entry(end - 1).place.end().saturating_sub(index.entry(number).place.offset);
            let limit = std::mem::replace(&mut self.end, end);
            let window_bytes = std::mem::replace(&mut self.window_bytes, bytes);
            let result = self.read(run, index, number, Direction::Forward);
            (self.end, self.window_bytes) = (limit, window_bytes);
            result?;
        }
        Ok(self.bytes_of(index, number))
    }

    fn bytes_of(&self, index: &Index, number: usize) -> &[u8] {
        let place = index.entry(number).place;
        let start = (place.offset - self.offset) as usize;
        &self.bytes[start..start + place.len as usize]
    }

    /// Reads `number` and what lies beside it in `direction`.
    fn read(&mut self, run: &Run, index: &Index, number: usize, direction: Direction) -> Result<()> {
        let mut place = index.entry(number).place;
        let mut segments = number..number + 1;
        loop {
            let (next, joined) = if direction == Direction::Backward {
                let Some(next) = segments.start.checked_sub(1) else { break };
                let before = index.entry(next).place;
                (next..segments.end, (before.end() == place.offset).then_some(before.offset..place.end()))
            } else {
                let next = segments.end;
                if next >= index.len().min(self.end) {
                    break;
                }
                let after = index.entry(next).place;
                (segments.start..next + 1, (place.end() == after.offset).then_some(place.offset..after.end()))
            };
            match joined {
                Some(range) if range.end - range.start <= self.window_bytes => {
                    place = Place { offset: range.start, len: range.end - range.start };
                    segments = next;
                }
                _ => break,
            }
        }
        self.segments = 0..0;
        self.bytes = run.read_blocks(place, segments.len() as u64)?;
        self.offset = place.offset;
        self.segments = segments;
        self.window_bytes = (self.window_bytes * 2).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        Ok(())
    }
}
