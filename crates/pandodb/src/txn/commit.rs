//! The commit pipeline: how a write set becomes visible and durable.
//!
//! 1. pay for flush debt (`background`) that the transaction has not paid for as it wrote, before a gate
//!    is held;
//!    (before that, `Txn::prepare_adoption` if it has spilled);
//! 2. enter the gates of the touched trees, in the order of their ids;
//! 3. append the batch to the log, which gives the transaction its seqno: the order of seqnos is
//!    the order of the log;
//! 4. adopt the private runs of a transaction that has spilled, insert the records into the memtables,
//!    leave the gates;
//! 5. publish the seqno; wait until every earlier one is published too (I5);
//! 6. the caller releases its row locks;
//! 7. wait for the log as the flush mode says, then acknowledge.
//!
//! A prepared transaction takes these steps in pieces: see `prepared`.
//!
//! A gate is held from before the seqno is assigned until the records are in, so whoever seals a
//! memtable (exclusively) knows that every seqno assigned so far is in it (I7).
//! Lock order: records that wait, then the write set, then gates by dictionary id, then the log's mutex, then the publication's.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{pause, Kind, RecordRef, Result, Seqno};
use pando_run::Run;
use pando_tree::{DeferredCommit, WriteGuard};
use pando_wal::{BatchBuilder, Lsn};

use crate::db::prepared::{Ordered, WaitingRecords};
use crate::db::Db;
use crate::runtime::clock::seconds_since_1970;
use crate::runtime::log_space::LogSpace;
use crate::table::writes::{State, Writes};
use crate::table::Dict;

/// A published commit: what is left is to wait for its durability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub lsn: Lsn,
    pub seqno: Seqno,
    /// What the log has promised for taking it back ([`LogSpace::WithWayBack`]).
    pub way_back_bytes: u64,
}

impl Db {
    /// Steps 1 to 5 for the final state of `writes`. `dicts` are the dictionaries it touches,
    /// ascending by id; `unpaid_bytes` is what of it was not paid for before; `is_patient` as for [`Db::pay_for_debt`]. Errors
    /// leave nothing behind.
    pub(crate) fn publish(
        &self,
        writes: &State,
        dicts: &[Arc<Dict>],
        unpaid_bytes: u64,
        is_patient: impl Fn() -> bool,
    ) -> Result<Published> {
        debug_assert!(dicts.windows(2).all(|pair| pair[0].id < pair[1].id));
        self.pay_for_debt(dicts, unpaid_bytes, is_patient)?;
        self.publish_paid(writes, dicts, LogSpace::Free)
    }

    /// The same for who has paid, or need not.
    pub(crate) fn publish_paid(
        &self,
        writes: &State,
        dicts: &[Arc<Dict>],
        space: LogSpace,
    ) -> Result<Published> {
        let mut batch = BatchBuilder::new();
        encode_into(writes, dicts, &mut batch);
        let mut way_back_bytes = 0;
        let published = {
            let gates: Vec<_> = dicts.iter().map(|dict| dict.tree.gate()).collect();
            let appended = match space {
                LogSpace::Free => self.wal.append(&batch)?,
                LogSpace::Reserve => self.wal.append_from_reserve(&batch)?,
                LogSpace::WithWayBack => {
                    let (appended, promised) = self.wal.append_with_way_back(&batch)?;
                    way_back_bytes = promised;
                    appended
                }
                LogSpace::WayBack(bytes) => self.wal.append_way_back(&batch, bytes)?,
            };
            self.raise_counters(writes);
            pause(16);
            apply(writes, dicts, &gates, appended.seqno);
            // Still inside the gates: a checkpoint that sees the records sees them as changes.
            self.note_change(dicts);
            appended
        };
        self.snapshots.publish(published.seqno);
        self.settle(published.seqno, writes, dicts);
        Ok(Published { lsn: published.lsn, seqno: published.seqno, way_back_bytes })
    }

    /// Step 4 and the first half of 5 for a commit that has its seqno (`prepared`), unless they are done:
    /// inserts the records where they are booked, and publishes. Waits for nobody.
    pub(crate) fn apply_ordered(
        &self,
        writes: &State,
        dicts: &[Arc<Dict>],
        seqno: Seqno,
        deferred: &mut Vec<DeferredCommit>,
    ) {
        if deferred.is_empty() {
            return;
        }
        self.raise_counters(writes);
        pause(16);
        apply(writes, dicts, deferred, seqno);
        // Still booked: a checkpoint that sees the records sees them as changes.
        self.note_change(dicts);
        deferred.clear();
        self.snapshots.publish(seqno);
    }

    /// The same for records that wait, by whichever thread comes first.
    fn apply_waiting(&self, records: &WaitingRecords) {
        let mut deferred = records.deferred.lock();
        self.apply_ordered(&records.writes.read(), &records.touched, records.seqno, &mut deferred);
    }

    /// What is left of an ordered commit.
    pub(crate) fn publish_ordered(&self, writes: &Writes, dicts: &[Arc<Dict>], mut ordered: Ordered) {
        let seqno = ordered.appended.seqno;
        match &ordered.waiting {
            Some(records) => {
                self.apply_waiting(records);
                self.prepared.came(records);
            }
            None => self.apply_ordered(&writes.read(), dicts, seqno, &mut ordered.deferred),
        }
        self.settle(seqno, &writes.read(), dicts);
        for dict in dicts {
            // It may have been sealed meanwhile, and passed by because of us.
            if dict.tree.debt().sealed_bytes > 0 {
                self.background.request(dict);
            }
        }
    }

    /// Returns once commit `seqno` and all before it are visible.
    ///
    /// Nobody's thread is needed for that but those that are within a commit: the records of those before that wait for their own thread
    /// are brought in here. The server may keep that thread waiting for ours, as it does in a parallel replica where `XA COMMIT` comes before
    /// them in the binary log, and asks us for its place in the order after theirs.
    pub(crate) fn wait_visible(&self, seqno: Seqno) {
        self.snapshots.wait_visible(seqno, || {
            self.prepared.waiting_before(seqno).iter().for_each(|records| self.apply_waiting(records));
        });
    }

    /// Second half of step 5, and what a commit leaves to others.
    fn settle(&self, seqno: Seqno, writes: &State, dicts: &[Arc<Dict>]) {
        self.wait_visible(seqno);
        for dict in dicts {
            // Adopted runs belong into the tree soon: the log cannot be trimmed before.
            let last_assigned = || self.wal.last_seqno();
            // What a deleted range hides can go when all of it is in nodes.
            let is_to_seal = writes.has_spilled(dict.id) || writes.has_range(dict.id);
            if is_to_seal && dict.tree.seal(last_assigned) || dict.tree.seal_if_full(last_assigned) {
                self.background.request(dict);
            }
        }
    }

    /// Logs and applies "everything in these dictionaries is gone". The caller has the tables for
    /// itself.
    pub(crate) fn publish_truncate(&self, dicts: &[Arc<Dict>]) -> Result<Seqno> {
        let mut batch = BatchBuilder::new();
        for dict in dicts {
            batch.truncate(dict.id);
        }
        // Closed before the seqno is assigned, so that no checkpoint claims to hold the truncation
        // with the old content.
        let gates: Vec<_> = dicts.iter().map(|dict| dict.tree.close_gate()).collect();
        let appended = self.wal.append_from_reserve(&batch)?;
        for gate in gates {
            gate.truncate(appended.seqno);
        }
        self.note_change(dicts);
        self.snapshots.publish(appended.seqno);
        self.wait_visible(appended.seqno);
        self.wal.sync_up_to_seqno(appended.seqno)?;
        // Only now: a checkpoint that took the old content must not make durable that its values are free,
        // as long as a power cut could bring the content back.
        for dict in dicts {
            dict.auto_increment.store(0, Ordering::Release);
        }
        Ok(appended.seqno)
    }

    /// A commit has changed these dictionaries.
    fn note_change(&self, dicts: &[Arc<Dict>]) {
        self.mark_dirty(dicts);
        let now = seconds_since_1970();
        for dict in dicts {
            // Most commits come in the second of the one before, and leave the value to all processors' caches.
            if dict.changed_at.load(Ordering::Relaxed) != now {
                dict.changed_at.store(now, Ordering::Relaxed);
            }
        }
    }

    fn raise_counters(&self, writes: &State) {
        writes.set.for_each_auto_increment(|id, next| {
            if let Some(dict) = self.dict(id) {
                dict.auto_increment.fetch_max(next, Ordering::AcqRel);
            }
        });
    }
}

/// Somewhere commits bring what they have written: a gate, or where a commit is booked.
trait Target {
    fn adopt(&self, run: &Run, seqno: Seqno);
    fn insert(&self, records: &[RecordRef<'_>]);
    fn delete_range(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno);
    /// The counter is in the log of this commit, and in no checkpoint yet.
    fn note_counter(&self, seqno: Seqno);
}

impl Target for WriteGuard<'_> {
    fn adopt(&self, run: &Run, seqno: Seqno) {
        WriteGuard::adopt(self, run, seqno);
    }
    fn insert(&self, records: &[RecordRef<'_>]) {
        WriteGuard::insert_all(self, records);
    }
    fn delete_range(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        WriteGuard::delete_range(self, lo, hi, seqno);
    }
    fn note_counter(&self, seqno: Seqno) {
        WriteGuard::note_counter(self, seqno);
    }
}

impl Target for DeferredCommit {
    fn adopt(&self, run: &Run, seqno: Seqno) {
        DeferredCommit::adopt(self, run, seqno);
    }
    fn insert(&self, records: &[RecordRef<'_>]) {
        DeferredCommit::insert_all(self, records);
    }
    fn delete_range(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        DeferredCommit::delete_range(self, lo, hi, seqno);
    }
    // The memtable needs the log since the commit was prepared, whether or not it gets records.
    fn note_counter(&self, _: Seqno) {}
}

/// So many records of a dictionary are brought into its tree together.
const INSERTED_AT_ONCE: usize = 64;

/// Brings the writes into the trees as of commit `seqno`; `targets` are those of `dicts`, ascending by id.
fn apply(writes: &State, dicts: &[Arc<Dict>], targets: &[impl Target], seqno: Seqno) {
    for (dict, run) in writes.levels.iter().flat_map(|level| level.runs()) {
        let position = dicts.binary_search_by_key(&dict.id, |dict| dict.id);
        targets[position.expect("a written dictionary is touched")].adopt(run, seqno);
    }
    let (mut position, mut group) = (0, Vec::new());
    writes.set.for_each_final(|id, key, kind, value| {
        if dicts[position].id != id || group.len() == INSERTED_AT_ONCE {
            targets[position].insert(&group);
            pause(16);
            group.clear();
        }
        while dicts[position].id != id {
            position += 1;
        }
        group.push(RecordRef { key, seqno, kind, value });
    });
    if let Some(last) = targets.get(position) {
        last.insert(&group);
    }
    for range in writes.whole_ranges() {
        let position = dicts.binary_search_by_key(&range.dict, |dict| dict.id);
        let target = &targets[position.expect("a dictionary of a deleted range is touched")];
        target.delete_range(&range.lo, range.hi.as_deref(), seqno);
    }
    writes.set.for_each_auto_increment(|id, _| {
        let position = dicts.binary_search_by_key(&id, |dict| dict.id);
        targets[position.expect("a dictionary with a raised counter is touched")].note_counter(seqno);
    });
    // After the records, which are a bound of the count.
    for dict in dicts {
        dict.row_count.add(writes.net_rows.of(dict.id));
    }
}

/// Adds the entries of a transaction to a batch: the runs to adopt, oldest first, then the records in
/// memory. `dicts` are the dictionaries that they are of: what is encrypted in one is so in the log.
pub(crate) fn encode_into(writes: &State, dicts: &[Arc<Dict>], batch: &mut BatchBuilder) {
    if dicts.iter().any(|dict| dict.file.key_id().is_some()) {
        batch.keep_secret();
    }
    let mut meta = Vec::new();
    for (dict, run) in writes.levels.iter().flat_map(|level| level.runs()) {
        meta.clear();
        run.meta().encode(&mut meta);
        batch.adopt(dict.id, &meta, &run.meta().extents);
    }
    writes.set.for_each_final(|dict, key, kind, value| {
        debug_assert!(kind == Kind::Put || value.is_empty());
        batch.record(dict, kind, key, value);
    });
    for range in writes.whole_ranges() {
        batch.delete_range(range.dict, &range.lo, range.hi.as_deref());
    }
    writes.set.for_each_auto_increment(|dict, next| batch.auto_increment(dict, next));
}
