//! The memtable: what was committed since the newest run, ordered and open to concurrent inserts.
//!
//! A tree in memory (`index`, its nodes in `node`) over records that stand one behind another in memory of their own
//! (`stored`, `arena`), ordered by key ascending, seqno descending.
//!
//! Records are never removed: a memtable is dropped whole. That is why whoever holds it may keep a record as long, and a reader
//! may copy a batch and come back by key: what was inserted meanwhile has a seqno above the reader's
//! snapshot.
//!
//! Below its records a memtable may have **adopted runs** (`adopt`): they are older than its records, and
//! newer than everything in older memtables. They are written to the root's buffer with it, by reference.

mod arena;
mod index;
mod node;
mod stored;

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::Arc;

use pando_base::locks::{Mutex, RwLock};
use pando_base::{Kind, Metrics, RecordRef, Seqno};
use pando_run::Run;

use self::index::Index;
use self::node::Edge;
use self::stored::Probe;
use crate::column_cache::Chunks;

/// What a record costs beside its key and value: its head of 24 bytes, some four to align it, and 16 of a node's slot of which two
/// thirds (inserts in random order) to a half (descending) are in use.
const RECORD_OVERHEAD_BYTES: u64 = 56;

/// Fewer records are not worth a run of their own, however often they are stepped over.
const ROTTEN_ROWS_MIN: u64 = 2048;
/// So often each record can be stepped over for what it costs to write it.
const ROTTEN_SKIPS: u64 = 32;

/// A full memtable has about so many marks: some thousand records lie between two.
const MARKS: u64 = 64;

/// Life of a memtable.
///
/// ```text
///   Active --seal--> Sealed --its run is in the root--> Written
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MemtableState {
    /// Takes inserts.
    Active = 0,
    /// Takes only what commits insert that were deferred into it (`deferred`); once they are done it is
    /// frozen, waits to be written, or is being written.
    Sealed = 1,
    /// Its records are in the tree below; only old readers still look into it.
    Written = 2,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Memtable {
    index: Index,
    /// Of its memory, what the engine's figures have.
    counted_bytes: AtomicU64,
    metrics: Arc<Metrics>,
    state: AtomicU8,
    bytes: AtomicU64,
    rows: AtomicU64,
    tombstones: AtomicU64,
    /// See [`Memtable::marks`].
    marks: Mutex<Vec<Box<[u8]>>>,
    /// Bytes between two of them.
    mark_bytes: u64,
    /// See there.
    pub(crate) chunks: Chunks,
    /// Dead records that cursors had to step over in memtables while this one was active.
    dead_skipped: AtomicU64,
    /// Commits that will insert into it, even when it is sealed by then.
    deferred: AtomicUsize,
    /// Lowest seqno under which the log has what they insert, or a counter (`need_log_from`); `u64::MAX` while there
    /// were none.
    deferred_from: AtomicU64,
    /// Lowest seqno inserted; `u64::MAX` while empty.
    first_seqno: AtomicU64,
    /// Highest seqno assigned when it was sealed; 0 before.
    seal_seqno: AtomicU64,
    /// Adopted runs, newest first.
    adopted: RwLock<Vec<Arc<Run>>>,
    /// Whether there are any: nearly never, so that readers need not ask for the lock.
    has_adopted: AtomicBool,
}

impl Memtable {
    /// One that is to be sealed at about this size. Its memory is counted in `metrics`.
    pub(crate) fn new(full_bytes: usize, metrics: Arc<Metrics>) -> Memtable {
        Memtable {
            index: Index::default(),
            counted_bytes: AtomicU64::new(0),
            metrics,
            state: AtomicU8::new(MemtableState::Active as u8),
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            tombstones: AtomicU64::new(0),
            marks: Mutex::default(),
            chunks: Chunks::default(),
            mark_bytes: (full_bytes as u64 / MARKS).max(1),
            dead_skipped: AtomicU64::new(0),
            deferred: AtomicUsize::new(0),
            deferred_from: AtomicU64::new(u64::MAX),
            first_seqno: AtomicU64::new(u64::MAX),
            seal_seqno: AtomicU64::new(0),
            adopted: RwLock::default(),
            has_adopted: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> MemtableState {
        match self.state.load(Ordering::Acquire) {
            0 => MemtableState::Active,
            1 => MemtableState::Sealed,
            _ => MemtableState::Written,
        }
    }

    fn transition(&self, from: MemtableState, to: MemtableState) {
        let swapped = self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
        assert!(swapped.is_ok(), "memtable goes {from:?} -> {to:?} but is {:?}", self.state());
    }

    /// Freezes it: every record of the dictionary up to `seqno` is in it or in older ones. The
    /// caller holds the gate exclusively.
    pub(crate) fn seal(&self, seqno: Seqno) {
        // First, so that whoever sees the state sees it.
        self.seal_seqno.store(seqno, Ordering::Release);
        self.transition(MemtableState::Active, MemtableState::Sealed);
    }

    /// Its run has become part of the tree.
    pub(crate) fn set_written(&self) {
        self.transition(MemtableState::Sealed, MemtableState::Written);
        // Nobody inserts any more.
        self.metrics.memtable_unwritten_bytes.sub(self.counted_bytes.load(Ordering::Relaxed));
    }

    /// Counts memory that has been taken since it was counted last.
    fn count_memory(&self) {
        let taken = self.index.memory_bytes();
        if self.counted_bytes.load(Ordering::Relaxed) >= taken {
            return;
        }
        // Who raises it counts the difference, whatever others do meanwhile.
        let before = self.counted_bytes.fetch_max(taken, Ordering::Relaxed);
        let more = taken.saturating_sub(before);
        self.metrics.memtable_bytes.add(more);
        self.metrics.memtable_unwritten_bytes.add(more);
    }

    /// A commit will insert records which the log has from this seqno on. The caller holds the gate.
    pub(crate) fn defer(&self, logged_from: Seqno) {
        debug_assert_eq!(self.state(), MemtableState::Active, "a commit is deferred into a sealed memtable");
        self.deferred.fetch_add(1, Ordering::AcqRel);
        self.deferred_from.fetch_min(logged_from, Ordering::AcqRel);
    }

    /// The log has something since this commit that a checkpoint will have, and that is no record. The caller holds the
    /// gate.
    pub(crate) fn need_log_from(&self, seqno: Seqno) {
        // Nearly always an earlier one has said so.
        if self.deferred_from.load(Ordering::Relaxed) > seqno {
            self.deferred_from.fetch_min(seqno, Ordering::AcqRel);
        }
    }

    /// That commit is done.
    pub(crate) fn end_deferred(&self) {
        let before = self.deferred.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a deferred commit ends once");
    }

    /// Whether all commits deferred into it are done.
    pub(crate) fn is_settled(&self) -> bool {
        self.deferred.load(Ordering::Acquire) == 0
    }

    /// Adds one version. The caller holds the gate, or its commit is deferred into this memtable.
    #[cfg(test)]
    pub(crate) fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        self.insert_all(&[RecordRef { key, seqno, kind, value }]);
    }

    /// Adds versions that all have the seqno of one commit. The caller holds the gate, or the commit is deferred into this memtable.
    pub(crate) fn insert_all(&self, records: &[RecordRef<'_>]) {
        let Some(last) = records.last() else { return };
        debug_assert!(
            self.state() == MemtableState::Active || !self.is_settled(),
            "insert into a frozen memtable"
        );
        self.index.insert_all(records);
        self.count_memory();
        self.chunks.inserted(records);
        let (mut bytes, mut tombstones) = (0, 0);
        for record in records {
            debug_assert_eq!(record.seqno, last.seqno, "the records of one commit");
            debug_assert!(record.kind == Kind::Put || record.value.is_empty(), "a delete has no value");
            bytes += counted_bytes(record);
            tombstones += u64::from(record.kind == Kind::Delete);
        }
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before / self.mark_bytes != (before + bytes) / self.mark_bytes {
            self.mark(records, before);
        }
        self.rows.fetch_add(records.len() as u64, Ordering::Relaxed);
        if tombstones > 0 {
            self.tombstones.fetch_add(tombstones, Ordering::Relaxed);
        }
        if self.first_seqno.load(Ordering::Relaxed) > last.seqno {
            self.first_seqno.fetch_min(last.seqno, Ordering::AcqRel);
        }
    }

    /// Notes the records with which a mark is reached, `before` bytes being there already.
    fn mark(&self, records: &[RecordRef<'_>], mut before: u64) {
        for record in records {
            let after = before + counted_bytes(record);
            if before / self.mark_bytes != after / self.mark_bytes {
                self.marks.lock().push(record.key.into());
            }
            before = after;
        }
    }

    /// Puts a run under its records, on top of those adopted before. The caller holds the gate, or its commit
    /// is deferred into this memtable; and no record of the memtable is older than the run's version of
    /// the same key.
    pub(crate) fn adopt(&self, run: Arc<Run>) {
        debug_assert!(
            self.state() == MemtableState::Active || !self.is_settled(),
            "adoption by a frozen memtable"
        );
        let seqno = run.meta().min_seqno;
        let mut adopted = self.adopted.write();
        adopted.insert(0, run);
        self.has_adopted.store(true, Ordering::Release);
        self.first_seqno.fetch_min(seqno, Ordering::AcqRel);
    }

    /// The adopted runs, newest first.
    pub(crate) fn adopted(&self) -> Vec<Arc<Run>> {
        match self.has_adopted.load(Ordering::Acquire) {
            true => self.adopted.read().clone(),
            false => Vec::new(),
        }
    }

    /// A cursor has stepped over dead records.
    pub(crate) fn note_dead(&self, records: u64) {
        self.dead_skipped.fetch_add(records, Ordering::Relaxed);
    }

    /// Whether stepping over dead records has cost more than writing the memtable would: where rows are inserted
    /// at one end and deleted at the other, everybody looks for the first one behind all those that are gone, and only
    /// merges remove them.
    pub(crate) fn is_rotten(&self) -> bool {
        let rows = self.rows();
        rows >= ROTTEN_ROWS_MIN && self.dead_skipped.load(Ordering::Relaxed) / ROTTEN_SKIPS > rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first_seqno.load(Ordering::Acquire) == u64::MAX
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// About what its records come to in a run.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.rows() * (RECORD_OVERHEAD_BYTES - 16))
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// The log is needed from here on for what is or will be in it; `None` while that is nothing.
    pub(crate) fn needed_from(&self) -> Option<Seqno> {
        let deferred_from = self.deferred_from.load(Ordering::Acquire);
        Some(self.first_seqno.load(Ordering::Acquire).min(deferred_from)).filter(|seqno| *seqno != u64::MAX)
    }

    /// Lowest seqno in it; `None` while empty.
    pub(crate) fn first_seqno(&self) -> Option<Seqno> {
        match self.first_seqno.load(Ordering::Acquire) {
            u64::MAX => None,
            seqno => Some(seqno),
        }
    }

    pub(crate) fn seal_seqno(&self) -> Seqno {
        debug_assert_ne!(self.state(), MemtableState::Active);
        self.seal_seqno.load(Ordering::Acquire)
    }

    /// Some of its keys, in no order: work on its records can be divided there.
    pub(crate) fn marks(&self) -> Vec<Box<[u8]>> {
        self.marks.lock().clone()
    }

    /// Hands the newest version of exactly `key` with seqno <= `snapshot` to `found`.
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        snapshot: Seqno,
        found: impl FnOnce(RecordRef<'_>) -> T,
    ) -> Option<T> {
        let record = self.index.first_from(&Probe::new(key, snapshot), Edge::Before)?;
        (record.key == key).then(|| found(record))
    }

    /// All versions in order, from the first with key >= `lo`. Nothing is copied.
    pub(crate) fn starting_at(&self, lo: Bound<&[u8]>) -> impl Iterator<Item = RecordRef<'_>> {
        // Versions of one key run from the newest (MAX) to the oldest (0).
        match lo {
            Bound::Included(key) => self.index.ascend(Some((&Probe::new(key, Seqno::MAX), Edge::Before))),
            Bound::Excluded(key) => self.index.ascend(Some((&Probe::new(key, 0), Edge::After))),
            Bound::Unbounded => self.index.ascend(None),
        }
    }

    /// All versions in reverse order (oldest of a key first), from the last with key < `hi`.
    pub(crate) fn ending_before(&self, hi: Option<&[u8]>) -> impl Iterator<Item = RecordRef<'_>> {
        // Nothing is newer than MAX: a record of the key itself is never below it.
        self.index.descend(hi.map(|key| Probe::new(key, Seqno::MAX)).as_ref())
    }

    /// Smallest and largest key; `None` while empty.
    pub(crate) fn key_range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let first = self.starting_at(Bound::Unbounded).next()?;
        let last = self.ending_before(None).next()?;
        Some((first.key.to_vec(), last.key.to_vec()))
    }
}

impl Drop for Memtable {
    fn drop(&mut self) {
        let counted = self.counted_bytes.load(Ordering::Relaxed);
        self.metrics.memtable_bytes.sub(counted);
        if self.state() != MemtableState::Written {
            self.metrics.memtable_unwritten_bytes.sub(counted);
        }
    }
}

/// What a record counts for in [`Memtable::bytes`].
fn counted_bytes(record: &RecordRef<'_>) -> u64 {
    record.key.len() as u64 + record.value.len() as u64 + RECORD_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_memtable() -> Memtable {
        Memtable::new(1 << 20, Arc::default())
    }

    #[test]
    fn its_memory_is_counted_until_it_is_dropped_and_as_unwritten_until_it_is_written() {
        let metrics = Arc::new(Metrics::default());
        let figures = || (metrics.memtable_bytes.get(), metrics.memtable_unwritten_bytes.get());
        let [written, dropped] = [(); 2].map(|()| Memtable::new(1 << 20, metrics.clone()));
        assert_eq!(figures(), (0, 0));
        written.insert(b"k", 1, Kind::Put, &[7; 200_000]);
        let first = figures().0;
        // The arena takes more than it needs at once.
        assert!((200_000..500_000).contains(&first), "{first}");
        dropped.insert(b"k", 1, Kind::Put, &[7; 100_000]);
        let both = figures().0;
        assert_eq!(figures(), (both, both));
        written.seal(1);
        assert_eq!(figures(), (both, both));
        written.set_written();
        assert_eq!(figures(), (both, both - first));
        drop(dropped);
        assert_eq!(figures(), (first, 0));
        drop(written);
        assert_eq!(figures(), (0, 0));
    }

    fn keys(memtable: &Memtable, lo: Bound<&[u8]>) -> Vec<(Vec<u8>, Seqno)> {
        memtable.starting_at(lo).map(|r| (r.key.to_vec(), r.seqno)).collect()
    }

    #[test]
    fn versions_come_by_key_then_newest_first() {
        let memtable = new_memtable();
        for (key, seqno) in [("b", 1), ("a", 2), ("b", 3), ("", 4), ("b\0", 5), ("longer than eight", 6)] {
            memtable.insert(key.as_bytes(), seqno, Kind::Put, b"v");
        }
        let expected: Vec<(Vec<u8>, Seqno)> =
            [("", 4), ("a", 2), ("b", 3), ("b", 1), ("b\0", 5), ("longer than eight", 6)]
                .map(|(k, s)| (k.as_bytes().to_vec(), s))
                .to_vec();
        assert_eq!(keys(&memtable, Bound::Unbounded), expected);
        assert_eq!(keys(&memtable, Bound::Included(b"b")), expected[2..]);
        assert_eq!(keys(&memtable, Bound::Excluded(b"b")), expected[4..]);
        let back: Vec<(Vec<u8>, Seqno)> =
            memtable.ending_before(Some(b"b\0")).map(|r| (r.key.to_vec(), r.seqno)).collect();
        assert_eq!(back, expected[..4].iter().rev().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn a_get_finds_the_newest_version_its_snapshot_may_see() {
        let memtable = new_memtable();
        memtable.insert(b"k", 5, Kind::Put, b"five");
        memtable.insert(b"k", 9, Kind::Delete, b"");
        let get = |snapshot| memtable.get(b"k", snapshot, |r| (r.seqno, r.kind, r.value.to_vec()));
        assert_eq!(get(4), None);
        assert_eq!(get(8), Some((5, Kind::Put, b"five".to_vec())));
        assert_eq!(get(9), Some((9, Kind::Delete, Vec::new())));
        assert_eq!(memtable.get(b"j", 9, |_| ()), None);
        assert_eq!(memtable.get(b"k\0", 9, |_| ()), None);
    }

    #[test]
    fn counts_and_first_seqno_follow_the_inserts() {
        let memtable = new_memtable();
        assert!(memtable.is_empty());
        assert_eq!(memtable.first_seqno(), None);
        memtable.insert(b"k", 5, Kind::Put, b"five");
        memtable.insert(b"l", 4, Kind::Delete, b"");
        assert_eq!((memtable.rows(), memtable.tombstones()), (2, 1));
        assert_eq!(memtable.first_seqno(), Some(4));
        assert_eq!(memtable.needed_from(), Some(4));
        memtable.defer(2);
        assert!(!memtable.is_settled());
        memtable.end_deferred();
        assert!(memtable.is_settled());
        assert_eq!((memtable.first_seqno(), memtable.needed_from()), (Some(4), Some(2)));
        assert_eq!(memtable.bytes(), 2 * RECORD_OVERHEAD_BYTES + 6);
        assert_eq!(memtable.key_range(), Some((b"k".to_vec(), b"l".to_vec())));
    }

    #[test]
    fn marks_divide_what_was_inserted_in_the_order_of_keys_evenly() {
        let memtable = new_memtable();
        for n in 0..8000u64 {
            memtable.insert(&n.to_be_bytes(), 1, Kind::Put, &[0; 67]);
        }
        let marks = memtable.marks();
        let mut parts = vec![0; marks.len() + 1];
        for r in memtable.starting_at(Bound::Unbounded) {
            parts[marks.partition_point(|mark| **mark <= *r.key)] += 1;
        }
        assert!((60..=64).contains(&marks.len()), "{}", marks.len());
        assert!(parts.iter().all(|rows| *rows <= 8000 / 63), "{parts:?}");
    }

    /// The records of a commit come in groups in the order of keys: the last of each is no good mark.
    #[test]
    fn marks_divide_what_was_inserted_in_groups_evenly() {
        let memtable = new_memtable();
        let mut numbers: Vec<u64> = (0..8000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for (group, seqno) in numbers.chunks_mut(20).zip(1..) {
            group.sort_unstable();
            let keys: Vec<[u8; 8]> = group.iter().map(|n| n.to_be_bytes()).collect();
            let record = |key| RecordRef { key, seqno, kind: Kind::Put, value: &[0; 67] };
            memtable.insert_all(&keys.iter().map(|key| record(&key[..])).collect::<Vec<_>>());
        }
        let marks: Vec<u64> =
            memtable.marks().iter().map(|mark| u64::from_be_bytes((**mark).try_into().unwrap())).collect();
        assert!((60..=64).contains(&marks.len()), "{}", marks.len());
        let low = marks.iter().filter(|mark| **mark < u64::MAX / 2).count();
        assert!((20..=44).contains(&low), "{low} of {} are in the lower half", marks.len());
        // One group may reach many marks.
        let large = new_memtable();
        let values = vec![0; 100_000];
        let keys: Vec<[u8; 1]> = (0..8).map(|n| [n]).collect();
        let record = |key| RecordRef { key, seqno: 1, kind: Kind::Put, value: &values };
        large.insert_all(&keys.iter().map(|key| record(&key[..])).collect::<Vec<_>>());
        assert_eq!(large.marks().len(), 8);
    }

    #[test]
    #[should_panic(expected = "memtable goes")]
    fn an_active_memtable_cannot_be_written() {
        new_memtable().set_written();
    }
}
