//! Prepared transactions: two-phase commit for a coordinator that has other resources, too.
//!
//! # Life
//!
//! ```text
//!            prepare                commit_ordered             commit
//!   Active ----------> Prepared ----------------> Ordered ----------------> over
//!                       |    ^                                               ^
//!                detach |    | by xid            rollback, commit            |
//!                       v    |  ---------------------------------------------+
//!                      Detached <---- recovery
//! ```
//!
//! 1. **Prepare** appends the whole batch to the log, with the coordinator's name for it (its xid), and waits
//!    until it is as durable as the flush mode says. The batch has a seqno of its own, `p`, at which
//!    nothing becomes visible: it is published at once.
//! 2. **Commit, ordered** appends a record of a few bytes that names `p`; its seqno `n` is the commit's. The
//!    server calls this for a whole group of transactions, one after the other, holding a mutex over all
//!    commits, from the thread that leads the group. So it does nothing else, and nothing that waits for
//!    another transaction. The records of a short transaction go into the memtables at once
//!    (`Options::ordered_at_once_ops`), so that those behind it in the group are not held up until its own
//!    thread runs; those of a longer one come later, in that thread (`pando_tree::DeferredCommit` says why
//!    that is sound, and why nobody can get stuck on it), or in that of whoever waits for a later commit
//!    (`Db::wait_visible`): the server may hold the own thread until that one is over.
//! 3. **Commit** inserts the records with seqno `n`, publishes it, and gives the locks back. The order was
//!    the coordinator's: if its log says that this transaction is committed, and the prepare is durable,
//!    nobody waits for the log here. Without the coordinator's step 2 (the user's XA COMMIT) it is done
//!    here, and waited for.
//! 4. **Rollback** of a prepared transaction appends a record, too: without it a restart would bring the
//!    transaction back. If the log takes it only later (a full disk), the transaction keeps its locks
//!    until then, detached: a row changed by another in between would else be overwritten by what comes
//!    back after a crash.
//!
//! A prepared transaction outlives its connection: it is **detached**, with its write set and its locks, and
//! waits in [`PreparedTxns`] for someone who knows its xid. **Recovery** brings it back the same way: it
//! finds the prepares without a resolution, fills write sets from their batches, and locks every key that
//! is in them, exclusively.
//!
//! # What the log keeps
//!
//! From `p` on, as long as the transaction is unresolved (`unresolved`), and then until what it wrote is in
//! every tree's checkpoint (the memtables know `p`: `Memtable::needed_from`). The transaction is in the set
//! from before `p` is visible, and leaves it when the memtables know; `Db::trim_log` reads visible, set and
//! memtables in this order, so it always sees it somewhere. Space for the resolution is kept in the log from
//! the prepare on, so a full disk does not come between the coordinator's decision and ours.
//!
//! One that is forgotten is logged anew (`relog`), so that the log before does not stay for ever.
//!
//! A latched log (I8) does: then the transaction stays prepared, `commit` gives the error, and the next
//! start's recovery asks the coordinator again.
//!
//! Tables with changes of a detached transaction cannot be dropped, renamed or truncated, nor while it is
//! resolved by its name. (Attached ones have their connection's metadata locks.)
//!
//! # Whose it is
//!
//! A server may let go of the user's prepared transaction long before it tells the engine that the connection
//! is gone: MariaDB's `trans_xa_detach` gives name and metadata locks away, and only then, or after a reset of the connection not
//! at all, calls the engine. Whoever commits it by its name in between must find it. So one that its user has
//! prepared **leaves** at once ([`Txn::leave`]): it is detached, and the connection's object only knows which it was, and
//! takes it back to commit it or to roll it back.
//!
//! Lock order: `detached` comes after the DDL mutex and before everything else; `unresolved`, `resolving` and `names`
//! are leaves.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{pause, DictId, Error as EngineError, Kind, Seqno};
use pando_run::Run;
use pando_wal::{Appended, BatchBuilder, Entry, FlushMode};

use crate::catalog::descriptor::TableDescriptor;
use crate::db::options::LogLevel;
use crate::db::prepared::{
    Detached, Found, Ordered, Phase, Prepared, PrivateRuns, Unresolved, WaitingRecords,
};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::table::spill::Level;
use crate::table::Dict;
use crate::txn::commit::encode_into;
use crate::txn::transaction::Txn;

/// Memory of a write set up to which its records may be inserted when the commit is ordered.
const AT_ONCE_BYTES: usize = 256 << 10;

impl Txn {
    /// First phase: makes everything durable but the decision, under the coordinator's name for it. Without
    /// writes there is nothing to do, and a commit or rollback ends the transaction as any other. After an
    /// error the transaction can only be rolled back; but not if it is prepared already, which is a mistake of the caller, as is a
    /// name that another one has which is not resolved.
    pub fn prepare(&mut self, xid: &[u8]) -> Result<()> {
        self.check_active()?;
        if !self.has_writes() {
            return Ok(());
        }
        self.prepare_adoption()?;
        self.db.prepared.claim_name(xid)?;
        let published = self.db.publish_prepare(self, xid);
        let (appended, bytes) = published.inspect_err(|_| self.db.prepared.release_name(xid))?;
        let (seqno, xid) = (appended.seqno, xid.to_vec());
        self.phase = Phase::Prepared(Prepared { seqno, logged: seqno, bytes, xid });
        Ok(self.db.wal.wait(appended.lsn, self.db.flush_mode())?)
    }

    /// Gives a prepared transaction to whoever knows its xid, at once; see "Whose it is". This object's commit and rollback take it
    /// back. It has another id until then, and must not be used for anything else. Does nothing to one without writes.
    pub fn leave(&mut self) {
        if let Phase::Prepared(prepared) = &self.phase {
            let prepared = prepared.clone();
            self.detach();
            self.phase = Phase::Left(prepared);
        }
    }

    /// Takes the transaction back that has left. False: it never left, or somebody else has it.
    fn take_back(&mut self) -> bool {
        let Phase::Left(prepared) = &self.phase else { return false };
        let Some(detached) = self.db.prepared.take_back(prepared.seqno) else { return false };
        self.put_parts(detached.handle, detached.writes, detached.touched);
        self.phase = Phase::Prepared(detached.prepared);
        true
    }

    /// Whether it is prepared and not resolved.
    pub fn is_prepared(&self) -> bool {
        matches!(self.phase, Phase::Prepared(_))
    }

    /// Gives a prepared transaction its place in the order of commits, once the coordinator has decided.
    /// [`Txn::commit`] must follow; until then it keeps its locks, and unless it is short it is not visible.
    /// From any thread, while the transaction's own stands still. Does not wait for other transactions. What
    /// goes wrong is told by the commit.
    ///
    /// `remembered`: the decision is on the coordinator's disk and comes back after a crash, so that the
    /// commit need not wait for the log.
    pub fn commit_ordered(&mut self, remembered: bool) {
        self.take_back();
        // What went wrong is told by the commit, which tries again.
        let _ = self.order(remembered);
        if !matches!(self.phase, Phase::Ordered(_)) {
            return;
        }
        let Phase::Ordered(mut ordered) = std::mem::take(&mut self.phase) else { return };
        let seqno = ordered.appended.seqno;
        let is_short = {
            let writes = self.writes().read();
            let (ops, bytes) = (writes.set.ops(), writes.set.bytes());
            let is_short =
                writes.levels.is_empty() && ops <= self.db.ordered_at_once_ops && bytes <= AT_ONCE_BYTES;
            if is_short {
                self.db.apply_ordered(&writes, self.touched(), seqno, &mut ordered.deferred);
            }
            is_short
        };
        if !is_short {
            ordered.waiting = Some(self.db.prepared.wait_with(WaitingRecords {
                seqno,
                writes: self.writes().clone(),
                touched: self.touched().to_vec(),
                deferred: Mutex::new(std::mem::take(&mut ordered.deferred)),
            }));
        }
        self.phase = Phase::Ordered(ordered);
    }

    fn order(&mut self, remembered: bool) -> Result<()> {
        if let Phase::Prepared(prepared) = &self.phase {
            let ordered = self.db.order_prepared(prepared.logged, self.touched(), remembered)?;
            self.db.prepared.release_name(&prepared.xid);
            self.phase = Phase::Ordered(ordered);
        }
        Ok(())
    }

    /// Commit of a prepared transaction. Whatever comes back, its owner is rid of it: after an error it
    /// stays prepared, detached.
    pub(crate) fn commit_prepared(&mut self) -> Result<()> {
        if matches!(self.phase, Phase::Left(_)) && !self.take_back() {
            self.forget_left();
            return Err(EngineError::InUse { what: "the prepared transaction".into() }.into());
        }
        if self.is_prepared() {
            // As in `prepare`, which may have been before a restart.
            self.seal_for_adoption();
        }
        if let Err(error) = self.order(false) {
            self.detach();
            return Err(error);
        }
        let Phase::Ordered(ordered) = std::mem::take(&mut self.phase) else {
            unreachable!("a prepared transaction was ordered");
        };
        let (lsn, remembered) = (ordered.appended.lsn, ordered.remembered);
        self.db.publish_ordered(self.writes(), self.touched(), ordered);
        self.end();
        self.db.metrics.commits.add(1);
        let mode = self.db.flush_mode();
        if remembered && mode == FlushMode::Commit {
            // The coordinator's log has the decision, and the prepare is durable.
            return Ok(());
        }
        Error::after_publication(self.db.wal.wait(lsn, mode))
    }

    /// Rollback of a prepared transaction. After an error (a full disk) it is detached, and rolled back when
    /// the log has space; its locks stay until then.
    pub(crate) fn rollback_prepared(&mut self) -> Result<()> {
        self.take_back();
        self.forget_left();
        let Phase::Prepared(prepared) = &self.phase else { return Ok(()) };
        let logged = prepared.logged;
        match self.db.wal.append_resolution(&BatchBuilder::rollback_prepared(logged)) {
            Ok(appended) => {
                self.db.prepared.unresolved.lock().remove(&logged);
                self.db.prepared.release_name(&prepared.xid);
                self.db.snapshots.publish(appended.seqno);
                self.phase = Phase::Active;
                // As long as a crash could bring the transaction back, its runs must be there.
                let synced = match self.writes().read().levels.is_empty() {
                    true => Ok(()),
                    false => self.db.wal.sync_up_to_seqno(appended.seqno),
                };
                if synced.is_err() {
                    self.writes().leak_levels();
                }
                self.rollback();
                synced?;
                Ok(self.db.wal.wait(appended.lsn, self.db.flush_mode())?)
            }
            Err(error @ EngineError::ReadOnly { .. }) => {
                // Nobody can change its rows before the next start, which asks the coordinator again.
                self.phase = Phase::Active;
                self.writes().leak_levels();
                self.rollback();
                Err(error.into())
            }
            Err(error) => {
                self.detach_as(true);
                Err(error.into())
            }
        }
    }

    /// Leaves a prepared transaction to whoever knows its xid, with its locks. This object can be used for
    /// the next, under a new id. Does nothing to one that is not prepared.
    pub fn detach(&mut self) {
        if self.is_prepared() {
            self.detach_as(false);
        }
    }

    fn detach_as(&mut self, is_rolling_back: bool) {
        let Phase::Prepared(prepared) = std::mem::take(&mut self.phase) else {
            unreachable!("only a prepared transaction can be detached");
        };
        let (handle, writes, touched) = self.take_parts();
        self.db.prepared.put(Detached {
            handle,
            writes,
            touched,
            prepared,
            is_rolling_back,
            is_reported: false,
            unusable: None,
            batch: None,
        });
    }

    /// One that has left is none of this object's business any more.
    pub(crate) fn forget_left(&mut self) {
        if let Phase::Left(_) = self.phase {
            self.phase = Phase::Active;
        }
    }

    fn attach(db: &Arc<Db>, detached: Detached) -> Txn {
        let Detached { handle, writes, touched, prepared, .. } = detached;
        Txn::from_parts(db.clone(), handle, writes, touched, Phase::Prepared(prepared))
    }
}

impl Db {
    /// The names of at most `max` prepared transactions without a connection, each once; when there are
    /// fewer, the next call begins anew.
    pub fn report_prepared(&self, max: usize) -> Vec<Vec<u8>> {
        let mut detached = self.prepared.detached.lock();
        let untold = detached.iter_mut().filter(|d| !d.is_reported && !d.is_rolling_back);
        let told: Vec<Vec<u8>> = untold
            .take(max)
            .map(|d| {
                d.is_reported = true;
                d.prepared.xid.clone()
            })
            .collect();
        if told.len() < max {
            detached.iter_mut().for_each(|d| d.is_reported = false);
        }
        told
    }

    /// Commits a prepared transaction that has no connection, or whose connection has not yet taken it back. False: there is
    /// none of that name. After an error it is still prepared.
    pub fn commit_by_xid(self: &Arc<Self>, xid: &[u8]) -> Result<bool> {
        self.resolve_by_xid(xid, false, |txn| txn.commit())
    }

    /// Rolls back a prepared transaction as [`Db::commit_by_xid`] commits one.
    pub fn rollback_by_xid(self: &Arc<Self>, xid: &[u8]) -> Result<bool> {
        self.resolve_by_xid(xid, true, Txn::rollback_prepared)
    }

    fn resolve_by_xid(
        self: &Arc<Self>,
        xid: &[u8],
        is_rollback: bool,
        resolve: impl FnOnce(&mut Txn) -> Result<()>,
    ) -> Result<bool> {
        let mut detached = match self.prepared.take(xid) {
            Found::Nothing => return Ok(false),
            Found::Busy => {
                return Err(EngineError::InUse { what: "the prepared transaction".into() }.into());
            }
            Found::Taken(detached) => detached,
        };
        let seqno = detached.prepared.seqno;
        pause(2);
        let result = match detached.unusable.take().filter(|_| !is_rollback) {
            // What cannot be read can still be forgotten.
            None => resolve(&mut Txn::attach(self, *detached)),
            Some(error) => {
                detached.unusable = Some(error.clone());
                self.prepared.put(*detached);
                Err(error.into())
            }
        };
        self.prepared.resolved(seqno);
        result.map(|()| true)
    }

    /// Tries again to log rollbacks for which the log had no space.
    pub(crate) fn retry_rollbacks(self: &Arc<Self>) {
        let waiting: Vec<Detached> = {
            let mut detached = self.prepared.detached.lock();
            let (waiting, rest) = std::mem::take(&mut *detached).into_iter().partition(|d| d.is_rolling_back);
            *detached = rest;
            waiting
        };
        for detached in waiting {
            // What fails is back in the list.
            let _ = Txn::attach(self, detached).rollback_prepared();
        }
    }

    /// Logs a batch that waits for its resolution, and says how long it is. Errors leave nothing behind.
    fn publish_prepare(&self, txn: &Txn, xid: &[u8]) -> pando_base::Result<(Appended, u64)> {
        self.pay_for_debt(txn.touched(), txn.unpaid_bytes(), || !txn.handle.is_killed())?;
        let mut batch = BatchBuilder::new();
        batch.prepare(xid);
        encode_into(&txn.writes().read(), txn.touched(), &mut batch);
        let appended = self.wal.append_prepare(&batch)?;
        // Before it is visible: see "What the log keeps".
        self.prepared.unresolved.lock().insert(appended.seqno);
        self.snapshots.publish(appended.seqno);
        Ok((appended, batch.bytes_len() as u64))
    }

    /// Gives a prepared transaction its seqno, and books its records into the memtables.
    fn order_prepared(
        &self,
        prepare: Seqno,
        dicts: &[Arc<Dict>],
        remembered: bool,
    ) -> pando_base::Result<Ordered> {
        let batch = BatchBuilder::commit_prepared(prepare);
        let (gates, deferred): (Vec<_>, Vec<_>) = dicts.iter().map(|dict| dict.tree.defer(prepare)).unzip();
        let appended = self.wal.append_resolution(&batch)?;
        drop(gates);
        if dicts.is_empty() {
            // Its tables are gone: there is nothing to apply, with which others are published.
            self.snapshots.publish(appended.seqno);
        }
        // The memtables know it now.
        self.prepared.unresolved.lock().remove(&prepare);
        Ok(Ordered { appended, remembered, deferred, waiting: None })
    }

    /// Brings back what recovery found prepared. Troubles with tables are those of the transaction.
    pub(crate) fn restore_prepared(
        self: &Arc<Self>,
        found: Vec<Unresolved>,
        mut runs: PrivateRuns,
    ) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.wal.keep_for_resolutions(found.len() as u64) {
            self.log(
                LogLevel::Warning,
                &format!("no space is kept to resolve prepared transactions: {error}"),
            );
        }
        let count = found.len();
        for unresolved in found {
            self.restore_one(unresolved, &mut runs)?;
        }
        self.log(LogLevel::Note, &format!("{count} prepared transactions wait for their resolution"));
        Ok(())
    }

    fn restore_one(self: &Arc<Self>, found: Unresolved, runs: &mut PrivateRuns) -> Result<()> {
        let Unresolved { seqno, xid, batch } = found;
        let mut txn = self.begin();
        let (mut unusable, mut unread, mut left_out) = (None, Vec::new(), Vec::new());
        for entry in batch.entries() {
            let entry = entry?;
            let dict = match self.dict_of_prepared(entry.dict()) {
                Ok(Some(dict)) if !dict.is_unusable() => dict,
                // Dropped since, or temporary; an index that is to be built anew; large values that are lost with their file.
                Ok(dict) => {
                    left_out.extend(dict.map(|dict| dict.id).filter(|id| !left_out.contains(id)));
                    continue;
                }
                Err(error) => {
                    unusable = Some(error);
                    continue;
                }
            };
            match entry {
                Entry::Adopt { dict: id, .. } => {
                    let run = runs.get_mut(&id).and_then(VecDeque::pop_front);
                    if let Err(error) = txn.restore_run(&dict, run) {
                        let crate::Error::Engine(error) = error else { return Err(error) };
                        unread.push(dict.id);
                        self.log(
                            LogLevel::Error,
                            &format!(
                                "a prepared transaction cannot be committed, and its tables are locked until it is \
                                 rolled back (XA ROLLBACK): {error}"
                            ),
                        );
                        unusable = Some(error);
                    }
                }
                _ => txn.restore(&dict, &entry)?,
            }
        }
        let numbered = left_out.into_iter().try_for_each(|dict| self.leave_out_values(dict));
        unusable = unusable.or(numbered.err());
        // Which keys it has there is not known: nobody gets any of them before it is resolved, whoever was restored before it.
        unread.into_iter().for_each(|dict| self.locks.lock_all_beside_others(&txn.handle, dict));
        let bytes = batch.bytes_len() as u64;
        txn.phase = Phase::Prepared(Prepared { seqno, logged: seqno, bytes, xid });
        txn.detach();
        if let Some(last) = self.prepared.detached.lock().last_mut() {
            last.batch = unusable.is_some().then(|| Arc::new(batch));
            last.unusable = unusable;
        }
        Ok(())
    }

    fn dict_of_prepared(&self, id: DictId) -> pando_base::Result<Option<Arc<Dict>>> {
        if let Some(dict) = self.dict(id) {
            return Ok(Some(dict));
        }
        let is_left_out = |path: &str| self.left_out.as_ref().is_some_and(|its| its.has(path));
        let has_it = |t: &TableDescriptor| !t.temporary && t.has(id) && !is_left_out(&t.path);
        let Some(table) = self.catalog.tables(has_it).pop() else { return Ok(None) };
        let dictionary = table.all_dictionaries().find(|its| its.id == id.0);
        dictionary.map(|dictionary| self.open_dict_of(&table, dictionary)).transpose()
    }
}

impl Txn {
    /// Takes a run of a prepared batch back, under exclusive locks on its keys.
    fn restore_run(&mut self, dict: &Arc<Dict>, run: Option<Arc<Run>>) -> Result<()> {
        let Some(run) = run else {
            let (expected, found) = ("a run whose space was kept", "one that was not");
            return Err(
                EngineError::corruption(&dict.file.path(), 0, "prepared batch", expected, found).into()
            );
        };
        if let Err(error) = self.lock_run(dict, &run) {
            // As long as a crash could bring the transaction back, its run must be there: the next start gives the space back.
            std::mem::forget(run);
            return Err(error);
        }
        self.touch(dict);
        self.writes().write().levels.push(Arc::new(Level::recovered((dict.clone(), run))));
        Ok(())
    }

    fn lock_run(&mut self, dict: &Arc<Dict>, run: &Arc<Run>) -> Result<()> {
        let mut cursor = run.cursor().bypass_cache();
        cursor.seek_first()?;
        while cursor.valid() {
            self.lock_restored(dict, cursor.key())?;
            dict.note_prepared_key(cursor.key());
            cursor.next()?;
        }
        Ok(())
    }

    /// Takes an entry of a prepared batch into the write set, under an exclusive lock on its key.
    fn restore(&mut self, dict: &Arc<Dict>, entry: &Entry<'_>) -> Result<()> {
        match *entry {
            Entry::Record { kind, key, value, .. } => {
                self.lock_restored(dict, key)?;
                dict.note_prepared_key(key);
                match kind {
                    Kind::Put => self.write_put(dict, key, value),
                    Kind::Delete => self.write_delete(dict, key),
                }
            }
            Entry::DeleteRange { lo, hi, .. } => self.restore_range(dict, lo, hi),
            Entry::AutoIncrement { next, .. } => self.raise_auto_increment_of(dict, next),
            Entry::Truncate { .. } | Entry::Adopt { .. } => {
                let path = dict.file.path();
                return Err(
                    EngineError::corruption(&path, 0, "prepared batch", "rows", "a truncation").into()
                );
            }
        }
        Ok(())
    }
}
