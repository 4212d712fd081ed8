//! A lane of the replay: some dictionaries, brought up to the log's end.
//!
//! A lane reads the log by itself and takes what is its dictionaries'. Lanes share nothing but what none of them changes
//! ([`Opening`]) and the count of memory ([`ReplayMemory`]), so each may have a thread of its own; and what it does depends on
//! the log alone, not on the others.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error, RecordRef, Result, Seqno};
use pando_wal::{BatchKind, BatchReader, Entry, OwnedBatch};

use super::lanes::ReplayMemory;
use super::opening::{Opened, Opening};
use super::survey::UNRESOLVED;
use crate::db::options::{LogLevel, LogSink};
use crate::db::Unrecovered;

/// So many records of one commit are inserted together.
const RECORDS_AT_ONCE: usize = 256;

/// See the head of this file.
pub(super) struct Lane<'a> {
    opening: &'a Opening<'a>,
    memory: &'a ReplayMemory,
    /// The lane's dictionaries, ascending, each with its place in `slots`.
    ids: Vec<DictId>,
    slots: Vec<Slot>,
    /// Of transactions that are prepared and not resolved, so far: what is the lane's, by seqno.
    prepared: BTreeMap<Seqno, OwnedBatch>,
    /// Records brought back.
    pub(super) records: u64,
}

/// What has become of a dictionary.
pub(super) enum Slot {
    /// The log has not named it, or it was dropped.
    Unopened,
    Replaying(Box<Replaying>),
    /// It cannot be opened.
    Refused(Unrecovered),
}

/// A dictionary in the middle of its replay.
pub(super) struct Replaying {
    pub(super) opened: Opened,
    /// The commit that adopted last.
    adopted_at: Seqno,
    /// Bytes of its sealed memtables, as counted in [`ReplayMemory`].
    sealed_bytes: u64,
    /// A job has failed: its memtables stay in memory for the background to write.
    is_stuck: bool,
}

impl Replaying {
    fn new(opened: Opened) -> Box<Replaying> {
        Box::new(Replaying { opened, adopted_at: 0, sealed_bytes: 0, is_stuck: false })
    }

    fn count_sealed(&mut self, memory: &ReplayMemory) {
        let now = self.opened.dict.tree.debt().sealed_bytes;
        memory.changed(self.sealed_bytes, now);
        self.sealed_bytes = now;
    }

    /// Writes the dictionary's oldest memtable. What cannot be written (a full disk, a damaged block in the way) stays in memory: no
    /// more than the log has.
    fn write_oldest(&mut self, log: &LogSink, memory: &ReplayMemory) {
        match self.opened.dict.tree.run_job() {
            Ok(true) => {}
            Ok(false) => self.is_stuck = true,
            Err(error) => {
                self.is_stuck = true;
                let text = format!("background job during recovery failed: {error}");
                log(LogLevel::Error, &text);
            }
        }
        self.count_sealed(memory);
    }
}

impl<'a> Lane<'a> {
    /// A lane for these dictionaries, ascending; none of them is open.
    pub(super) fn new(opening: &'a Opening<'a>, memory: &'a ReplayMemory, ids: Vec<DictId>) -> Lane<'a> {
        let slots = ids.iter().map(|_| Slot::Unopened).collect();
        Lane { opening, memory, ids, slots, prepared: BTreeMap::new(), records: 0 }
    }

    /// A lane for one that is open.
    pub(super) fn of(
        opening: &'a Opening<'a>,
        memory: &'a ReplayMemory,
        id: DictId,
        opened: Opened,
    ) -> Lane<'a> {
        let slots = vec![Slot::Replaying(Replaying::new(opened))];
        Lane { slots, ..Lane::new(opening, memory, vec![id]) }
    }

    /// What has become of its dictionaries.
    pub(super) fn into_slots(self) -> impl Iterator<Item = (DictId, Slot)> {
        self.ids.into_iter().zip(self.slots)
    }

    /// Replays a commit, or keeps what is prepared until its resolution comes. (A resolution whose
    /// prepare was trimmed is that of a transaction that is durable in the trees, or was rolled back.)
    pub(super) fn batch(&mut self, seqno: Seqno, batch: BatchReader<'_>) -> Result<()> {
        match batch.kind() {
            BatchKind::Commit => self.commit(seqno, seqno, batch)?,
            BatchKind::Prepare { .. } => self.keep(seqno, batch)?,
            BatchKind::PrepareAnew { previous, .. } => {
                self.prepared.remove(&previous);
                self.keep(seqno, batch)?;
            }
            BatchKind::CommitPrepared { prepare } => {
                if let Some(found) = self.prepared.remove(&prepare) {
                    self.commit(seqno, prepare, found.entries())?;
                }
            }
            BatchKind::RollbackPrepared { prepare } => _ = self.prepared.remove(&prepare),
        }
        Ok(())
    }

    /// The log's end: opens the dictionaries that hold runs of unresolved transactions, if no record had them
    /// opened. Nothing may take the runs' space.
    pub(super) fn end(&mut self) {
        let needs_from = self.prepared.first_key_value().map_or(0, |(seqno, _)| *seqno);
        for at in 0..self.ids.len() {
            let runs = self.opening.adoptions.get(&self.ids[at]);
            if runs.is_some_and(|runs| runs.iter().any(|(seqno, _)| *seqno == UNRESOLVED)) {
                self.open(at, needs_from);
            }
        }
    }

    fn keep(&mut self, seqno: Seqno, batch: BatchReader<'_>) -> Result<()> {
        let ids = &self.ids;
        let mine = batch.to_batch_of(|dict| ids.binary_search(&dict).is_ok())?;
        if mine.bytes_len() > 0 {
            self.prepared.insert(seqno, mine);
        }
        Ok(())
    }

    /// `logged_from` is the seqno under which the log has the entries.
    fn commit(&mut self, seqno: Seqno, logged_from: Seqno, batch: BatchReader<'_>) -> Result<()> {
        let mut touched: Vec<usize> = Vec::new();
        let mut records: Vec<RecordRef<'_>> = Vec::new();
        for entry in batch {
            let entry = entry?;
            let Ok(at) = self.ids.binary_search(&entry.dict()) else { continue };
            let is_next = touched.last() == Some(&at);
            if !is_next || records.len() >= RECORDS_AT_ONCE {
                self.insert(&touched, logged_from, &mut records);
            }
            if !is_next {
                touched.push(at);
            }
            match entry {
                Entry::Record { kind, key, value, .. } => records.push(RecordRef { key, seqno, kind, value }),
                other => {
                    self.insert(&touched, logged_from, &mut records);
                    self.entry(at, seqno, logged_from, other)?;
                }
            }
        }
        self.insert(&touched, logged_from, &mut records);
        self.make_room(seqno, &touched);
        Ok(())
    }

    /// Inserts records of one commit into the dictionary touched last.
    fn insert(&mut self, touched: &[usize], logged_from: Seqno, records: &mut Vec<RecordRef<'_>>) {
        let Some((at, first)) = touched.last().zip(records.first()) else { return };
        if let Some(replaying) = self.wanting(*at, first.seqno, logged_from) {
            // Booked as when it was committed: the log is needed from the prepare on.
            replaying.opened.dict.tree.defer(logged_from).1.insert_all(records);
            self.records += records.len() as u64;
        }
        records.clear();
    }

    /// Replays an entry that is no record.
    fn entry(&mut self, at: usize, seqno: Seqno, logged_from: Seqno, entry: Entry<'_>) -> Result<()> {
        let Some(replaying) = self.wanting(at, seqno, logged_from) else { return Ok(()) };
        let dict = &replaying.opened.dict;
        match entry {
            Entry::Adopt { .. } => {
                let Some(run) = replaying.opened.private.pop_front() else {
                    let (expected, found) = ("a run noted in the first pass", format!("one at {seqno}"));
                    return Err(Error::corruption(&dict.file.path(), 0, "adoption", expected, found));
                };
                if replaying.adopted_at != seqno {
                    // Its keys' older versions must not be in the memtable that adopts.
                    dict.tree.seal_before_adoption(|| seqno - 1);
                    replaying.adopted_at = seqno;
                }
                dict.tree.defer(logged_from).1.adopt(&run, seqno);
                self.records += run.meta().rows;
            }
            Entry::Truncate { .. } => {
                dict.tree.truncate(seqno);
                dict.auto_increment.store(0, Ordering::Relaxed);
            }
            Entry::DeleteRange { lo, hi, .. } => dict.tree.defer(logged_from).1.delete_range(lo, hi, seqno),
            Entry::AutoIncrement { next, .. } => {
                dict.auto_increment.fetch_max(next, Ordering::Relaxed);
                // Should the checkpoint of the recovery fail.
                drop(dict.tree.defer(logged_from));
            }
            Entry::Record { .. } => unreachable!("records are inserted together"),
        }
        Ok(())
    }

    /// The dictionary, if it can be opened and its file lacks this commit.
    fn wanting(&mut self, at: usize, seqno: Seqno, logged_from: Seqno) -> Option<&mut Replaying> {
        self.open(at, logged_from);
        let Slot::Replaying(replaying) = &mut self.slots[at] else { return None };
        let durable_seqno = replaying.opened.durable_seqno + u64::from(is_planted(Bug::ReplaySkipsFirst));
        if seqno <= durable_seqno {
            return None;
        }
        // As old as can be: among the first to be checkpointed.
        replaying.opened.dict.dirty_since.store(1, Ordering::Relaxed);
        Some(replaying)
    }

    /// Opens a dictionary that the log names from this seqno on.
    fn open(&mut self, at: usize, needs_from: Seqno) {
        if let Slot::Unopened = self.slots[at] {
            self.slots[at] = match self.opening.open_known(self.ids[at]) {
                None => return,
                Some(Ok(opened)) => Slot::Replaying(Replaying::new(opened)),
                Some(Err(error)) => Slot::Refused(Unrecovered { needs_from, error }),
            };
        }
    }

    /// Seals memtables that are full: only between batches, because a sealed memtable claims to hold whole commits. They stay in
    /// memory for the background to write; where that is too little, the lane writes its own.
    fn make_room(&mut self, seqno: Seqno, touched: &[usize]) {
        for at in touched {
            let Slot::Replaying(replaying) = &mut self.slots[*at] else { continue };
            if replaying.opened.dict.tree.seal_if_full(|| seqno) || replaying.adopted_at == seqno {
                replaying.count_sealed(self.memory);
            }
        }
        let (log, memory) = (&self.opening.options.log, self.memory);
        while memory.is_full() {
            let Some(fullest) = self.fullest() else { break };
            fullest.write_oldest(log, memory);
        }
    }

    /// Of the lane's dictionaries the one with most in sealed memtables that can be written.
    fn fullest(&mut self) -> Option<&mut Replaying> {
        let replaying = self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Replaying(replaying) if replaying.sealed_bytes > 0 && !replaying.is_stuck => {
                Some(&mut **replaying)
            }
            _ => None,
        });
        replaying.max_by_key(|replaying| replaying.sealed_bytes)
    }
}
