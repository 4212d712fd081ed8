//! A cursor over a memtable at a snapshot.
//!
//! It copies small batches of the versions its snapshot sees, one per key, growing while the scan
//! goes on; between batches it holds nothing of the list. What is inserted later has a seqno above
//! the snapshot, so batches of one snapshot fit together.

use std::ops::Bound;
use std::sync::Arc;

use pando_base::{Kind, RecordRef, Seqno};

use crate::memtable::Memtable;

const BATCH_MIN: usize = 8;
const BATCH_MAX: usize = 128;
/// Bytes after which a batch is full whatever its number of records: values may be large.
const BATCH_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: usize,
    value: usize,
    end: usize,
    seqno: Seqno,
    kind: Kind,
}

/// Yields, per key, the newest version with seqno <= the snapshot, deletes included.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    snapshot: Seqno,
    direction: Direction,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    position: usize,
    batch: usize,
    /// Nothing lies beyond the batch in its direction.
    at_end: bool,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>, snapshot: Seqno) -> MemtableCursor {
        MemtableCursor {
            memtable,
            snapshot,
            direction: Direction::Forward,
            bytes: Vec::new(),
            slots: Vec::new(),
            position: 0,
            batch: BATCH_MIN,
            at_end: true,
        }
    }

    pub(crate) fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    pub(crate) fn valid(&self) -> bool {
        self.position < self.slots.len()
    }

    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.copied(&self.slots[self.position])
    }

    fn copied(&self, slot: &Slot) -> RecordRef<'_> {
        RecordRef {
            key: &self.bytes[slot.key..slot.value],
            seqno: slot.seqno,
            kind: slot.kind,
            value: &self.bytes[slot.value..slot.end],
        }
    }

    /// The record it is on and all after it, going up. Requires: valid, and the last seek was forward.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = RecordRef<'_>> {
        debug_assert!(self.valid() && self.direction == Direction::Forward);
        let copied = self.slots[self.position..].iter().map(|slot| self.copied(slot));
        // Not looked for before it is asked for: mostly what was copied goes far enough.
        let beyond = std::iter::once_with(move || {
            let mut newest = self.newest_key();
            newest.filter(|_| !self.at_end).map(|last| {
                self.memtable.starting_at(Bound::Excluded(last)).filter(move |r| {
                    let is_newest = r.seqno <= self.snapshot && newest != Some(r.key);
                    if is_newest {
                        newest = Some(r.key);
                    }
                    is_newest
                })
            })
        });
        copied.chain(beyond.flatten().flatten())
    }

    /// Goes on by `records`, fewer than are [`MemtableCursor::ahead`], to the one with this key.
    pub(crate) fn skip(&mut self, records: usize, key: &[u8]) {
        match self.position + records < self.slots.len() {
            true => self.position += records,
            false => self.seek(key),
        }
        debug_assert_eq!(self.record().key, key);
    }

    /// First record with key >= `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.batch = BATCH_MIN;
        self.fill_forward(Bound::Included(key));
    }

    /// Last record with key < `key`; without a key the last of all.
    pub(crate) fn seek_before(&mut self, key: Option<&[u8]>) {
        self.batch = BATCH_MIN;
        self.fill_backward(key);
    }

    /// Next record in the direction of the last seek.
    pub(crate) fn advance(&mut self) {
        debug_assert!(self.valid());
        self.position += 1;
        if self.position < self.slots.len() || self.at_end {
            return;
        }
        let last = self.slots[self.slots.len() - 1];
        let key = self.bytes[last.key..last.value].to_vec();
        self.batch = (self.batch * 2).min(BATCH_MAX);
        match self.direction {
            Direction::Forward => self.fill_forward(Bound::Excluded(&key)),
            Direction::Backward => self.fill_backward(Some(&key)),
        }
    }

    fn reset(&mut self, direction: Direction) {
        self.direction = direction;
        self.bytes.clear();
        self.slots.clear();
        self.position = 0;
        self.at_end = true;
    }

    fn fill_forward(&mut self, lo: Bound<&[u8]>) {
        self.reset(Direction::Forward);
        let memtable = self.memtable.clone();
        for record in memtable.starting_at(lo) {
            if record.seqno > self.snapshot || self.newest_key() == Some(record.key) {
                continue;
            }
            if self.full() {
                self.at_end = false;
                return;
            }
            self.push(record);
        }
    }

    fn fill_backward(&mut self, hi: Option<&[u8]>) {
        self.reset(Direction::Backward);
        let memtable = self.memtable.clone();
        for record in memtable.ending_before(hi) {
            if record.seqno > self.snapshot {
                continue;
            }
            if self.newest_key() == Some(record.key) {
                // Oldest first: the later one is the newer one.
                let slot = self.slots.pop().expect("a newest key has a slot");
                self.bytes.truncate(slot.key);
            } else if self.full() {
                self.at_end = false;
                return;
            }
            self.push(record);
        }
    }

    fn newest_key(&self) -> Option<&[u8]> {
        self.slots.last().map(|slot| &self.bytes[slot.key..slot.value])
    }

    fn full(&self) -> bool {
        self.slots.len() >= self.batch || self.bytes.len() >= BATCH_BYTES
    }

    fn push(&mut self, r: RecordRef<'_>) {
        let key = self.bytes.len();
        self.bytes.extend_from_slice(r.key);
        let value = self.bytes.len();
        self.bytes.extend_from_slice(r.value);
        self.slots.push(Slot { key, value, end: self.bytes.len(), seqno: r.seqno, kind: r.kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Arc<Memtable> {
        let memtable = Memtable::new(1 << 20, Arc::default());
        for i in 0..1000u64 {
            memtable.insert(&(i % 500).to_be_bytes(), i + 1, Kind::Put, &i.to_le_bytes());
        }
        Arc::new(memtable)
    }

    #[test]
    fn a_forward_scan_gives_each_key_once_in_its_newest_visible_version() {
        for (snapshot, count) in [(0u64, 0usize), (10, 10), (700, 500), (1000, 500)] {
            let mut cursor = MemtableCursor::new(filled(), snapshot);
            cursor.seek(b"");
            let mut i = 0u64;
            while cursor.valid() {
                let newest = if i + 501 <= snapshot { i + 501 } else { i + 1 };
                assert_eq!(cursor.record().key, i.to_be_bytes());
                assert_eq!(cursor.record().seqno, newest);
                i += 1;
                cursor.advance();
            }
            assert_eq!(i as usize, count);
        }
    }

    #[test]
    fn a_backward_scan_is_the_forward_scan_reversed() {
        for snapshot in [0, 10, 700, 1000] {
            let mut forward = Vec::new();
            let mut cursor = MemtableCursor::new(filled(), snapshot);
            cursor.seek(&3u64.to_be_bytes());
            while cursor.valid() {
                forward.push((cursor.record().key.to_vec(), cursor.record().seqno));
                cursor.advance();
            }
            let mut backward = Vec::new();
            cursor.seek_before(None);
            while cursor.valid() && cursor.record().key >= &3u64.to_be_bytes()[..] {
                backward.push((cursor.record().key.to_vec(), cursor.record().seqno));
                cursor.advance();
            }
            backward.reverse();
            assert_eq!(forward, backward);
        }
    }

    #[test]
    fn what_is_ahead_is_what_steps_would_give_from_wherever_it_is() {
        for (snapshot, steps) in [(10, 3), (700, 0), (700, 7), (700, 200), (1000, 499)] {
            let mut cursor = MemtableCursor::new(filled(), snapshot);
            cursor.seek(b"");
            (0..steps).for_each(|_| cursor.advance());
            let found: Vec<(Vec<u8>, Seqno)> = cursor.ahead().map(|r| (r.key.to_vec(), r.seqno)).collect();
            let (at, key) = (found.len() / 2, found[found.len() / 2].0.clone());
            cursor.skip(at, &key);
            for (key, seqno) in &found[at..] {
                assert_eq!((cursor.record().key, cursor.record().seqno), (&key[..], *seqno));
                cursor.advance();
            }
            assert!(!cursor.valid());
        }
    }

    #[test]
    fn later_inserts_do_not_disturb_a_scan_in_progress() {
        let memtable = filled();
        let mut cursor = MemtableCursor::new(memtable.clone(), 1000);
        cursor.seek(b"");
        let mut seen = 0;
        while cursor.valid() {
            memtable.insert(&(seen + 3u64).to_be_bytes(), 2000 + seen, Kind::Delete, b"");
            assert!(cursor.record().seqno <= 1000);
            seen += 1;
            cursor.advance();
        }
        assert_eq!(seen, 500);
    }
}
