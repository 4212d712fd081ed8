//! Prepared transactions that nobody resolves are logged anew, so that the log does not grow behind them.
//!
//! The log is kept from the oldest unresolved prepare on. One `XA PREPARE` that was forgotten would so keep all
//! of it, until the disk is full for everybody. When the log from a prepare on has grown beyond a share of its limit, the
//! transaction's batch is appended once more, as one that names the batch it replaces:
//!
//! 1. it is encoded from the write set, which does not change any more, or copied from what the log had where recovery
//!    could not bring all of it back;
//! 2. it is appended with the list of detached transactions held: whoever resolves the transaction names either the old batch,
//!    before, or the new one, after;
//! 3. it is synced; only then the old one is not needed any more (`PreparedTxns::unresolved`), and the log can be trimmed.
//!
//! Both may be in the log after a crash. Recovery forgets the old one when it meets the new one, which is whole or not
//! there: exactly one counts.
//!
//! What this costs is bounded, too. All that is prepared is written once for each share of the log, and the share
//! is at least four times what is prepared, so it is a quarter of what others write at most.
//!
//! Only detached transactions are logged anew. Others have a thread that is about to resolve them.

use std::path::Path;
use std::sync::Arc;

use pando_base::{Result, Seqno};
use pando_run::RunMeta;
use pando_wal::{BatchBuilder, Entry, OwnedBatch};

use crate::db::options::LogLevel;
use crate::db::prepared::Detached;
use crate::db::Db;
use crate::table::writes::Writes;
use crate::table::Dict;
use crate::txn::commit::encode_into;

/// The log from a prepare on may be this part of all that may be kept.
const SHARE_OF_LOG: u64 = 4;
/// And this many times what is prepared.
const SHARE_OF_PREPARED: u64 = 4;

/// What is needed to log one anew without holding the list.
struct Due {
    seqno: Seqno,
    logged: Seqno,
    xid: Vec<u8>,
    writes: Arc<Writes>,
    touched: Vec<Arc<Dict>>,
    batch: Option<Arc<OwnedBatch>>,
}

impl Db {
    /// Logs anew what is prepared for so long that much of the log is kept for it. What fails is tried again at
    /// the next tick.
    pub(crate) fn log_prepared_anew(&self) {
        let mut replaced = Vec::new();
        let mut last = 0;
        for due in self.due_to_be_logged_anew() {
            match self.log_anew(&due) {
                Ok(Some(seqno)) => {
                    replaced.push(due.logged);
                    last = seqno;
                }
                Ok(None) => {}
                // There is no space for it now, which whoever writes is told.
                Err(error) if error.is_shortage() => break,
                Err(error) => {
                    let text = format!("a prepared transaction cannot be logged anew: {error}");
                    self.log(LogLevel::Error, &text);
                    break;
                }
            }
        }
        // A log that has failed is told to all.
        if replaced.is_empty() || self.wal.sync_up_to_seqno(last).is_err() {
            return;
        }
        self.metrics.log_prepares_renewed.add(replaced.len() as u64);
        let mut unresolved = self.prepared.unresolved.lock();
        for seqno in replaced {
            unresolved.remove(&seqno);
        }
    }

    fn due_to_be_logged_anew(&self) -> Vec<Due> {
        if self.wal.is_held() {
            // A backup copies the log: nothing could be given up.
            return Vec::new();
        }
        let detached = self.prepared.detached.lock();
        let all: u64 = detached.iter().map(|detached| detached.prepared.bytes).sum();
        let share = match self.wal.lacks_space() {
            true => SHARE_OF_PREPARED * all,
            false => (self.log_kept_bytes_max / SHARE_OF_LOG).max(SHARE_OF_PREPARED * all),
        };
        let is_due = |detached: &&Detached| {
            let since = self.wal.bytes_since(detached.prepared.logged);
            !detached.is_rolling_back && since.is_some_and(|bytes| bytes > share)
        };
        let due = detached.iter().filter(is_due).map(|detached| Due {
            seqno: detached.prepared.seqno,
            logged: detached.prepared.logged,
            xid: detached.prepared.xid.clone(),
            writes: detached.writes.clone(),
            touched: detached.touched.clone(),
            batch: detached.batch.clone(),
        });
        due.collect()
    }

    /// Gives the seqno of the new batch; `None`: somebody has resolved it meanwhile, or is about to.
    fn log_anew(&self, due: &Due) -> Result<Option<Seqno>> {
        let mut batch = BatchBuilder::new();
        batch.prepare_anew(&due.xid, due.logged);
        // It may have been prepared before its table began to be encrypted.
        if due.touched.iter().any(|dict| dict.file.key_id().is_some()) {
            batch.keep_secret();
        }
        match &due.batch {
            Some(kept) => copy_into(kept, &mut batch)?,
            None => encode_into(&due.writes.read(), &due.touched, &mut batch),
        }
        let mut detached = self.prepared.detached.lock();
        let found = detached.iter_mut().find(|detached| detached.prepared.seqno == due.seqno);
        let Some(found) = found.filter(|found| !found.is_rolling_back) else { return Ok(None) };
        debug_assert_eq!(found.prepared.logged, due.logged, "one thread logs anew");
        let appended = self.wal.append(&batch)?;
        // Before it is visible: `Db::trim_log` sees the old one or this one.
        self.prepared.unresolved.lock().insert(appended.seqno);
        self.snapshots.publish(appended.seqno);
        found.prepared.logged = appended.seqno;
        found.prepared.bytes = batch.bytes_len() as u64;
        Ok(Some(appended.seqno))
    }
}

/// Adds the entries of a batch as they were logged.
fn copy_into(kept: &OwnedBatch, batch: &mut BatchBuilder) -> Result<()> {
    if kept.is_secret() {
        batch.keep_secret();
    }
    for entry in kept.entries() {
        match entry? {
            Entry::Record { dict, kind, key, value } => batch.record(dict, kind, key, value),
            Entry::Truncate { dict } => batch.truncate(dict),
            Entry::DeleteRange { dict, lo, hi } => batch.delete_range(dict, lo, hi),
            Entry::AutoIncrement { dict, next } => batch.auto_increment(dict, next),
            Entry::Adopt { dict, run } => {
                let meta = RunMeta::decode_private(run).map_err(|error| error.at(Path::new("log"), 0))?;
                batch.adopt(dict, run, &meta.extents);
            }
        }
    }
    Ok(())
}
