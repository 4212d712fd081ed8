//! What a database keeps of prepared transactions. Their life is told in `txn::prepared`.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error as EngineError, Seqno};
use pando_run::Run;
use pando_tree::DeferredCommit;
use pando_txn::TxnHandle;
use pando_wal::{Appended, OwnedBatch};

use crate::catalog::descriptor::TableDescriptor;
use crate::table::writes::Writes;
use crate::table::Dict;

/// Where a transaction is; see `txn::prepared`.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// It may write; nothing of it is in the log.
    #[default]
    Active,
    /// Its batch is in the log.
    Prepared(Prepared),
    /// Prepared, and detached: it can be taken back.
    Left(Prepared),
    /// Its commit is, too; its records are not in the trees yet.
    Ordered(Ordered),
}

/// A batch that waits in the log.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Of the first prepare that this process knows: names the transaction among the others.
    pub(crate) seqno: Seqno,
    /// Of the batch that counts now: another one once it was logged anew (`txn::relog`).
    pub(crate) logged: Seqno,
    /// Of that batch.
    pub(crate) bytes: u64,
    pub(crate) xid: Vec<u8>,
}

/// A commit that has its place in the order.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub appended: Appended,
    /// Whether the coordinator comes back with its decision after a crash.
    pub(crate) remembered: bool,
    /// For each touched dictionary; none once the records are in, or if they wait.
    pub deferred: Vec<DeferredCommit>,
    /// Its records, if they are left to its own thread.
    pub waiting: Option<Arc<WaitingRecords>>,
}

/// The records of an ordered commit that are not in the trees yet. Its own thread brings them there, or whoever waits for a later commit:
/// the server may hold that thread until the later one is over.
#[derive(Debug)]
pub(crate) struct WaitingRecords {
    pub seqno: Seqno,
    pub writes: Arc<Writes>,
    pub touched: Vec<Arc<Dict>>,
    /// For each of these; none once the records are in.
    pub deferred: Mutex<Vec<DeferredCommit>>,
}

/// A prepared transaction without a connection.
#[derive(Debug)]
pub(crate) struct Detached {
    pub(crate) handle: TxnHandle,
    pub(crate) writes: Arc<Writes>,
    pub(crate) touched: Vec<Arc<Dict>>,
    pub(crate) prepared: Prepared,
    /// Its rollback was decided, but the log had no space for it.
    pub(crate) is_rolling_back: bool,
    /// [`Db::report_prepared`] has told it.
    pub(crate) is_reported: bool,
    /// Why it cannot be committed, only rolled back: recovery could not open a table, or read what it has spilled.
    pub(crate) unusable: Option<EngineError>,
    /// What the log has of it, where `writes` has not all of that.
    pub(crate) batch: Option<Arc<OwnedBatch>>,
}

/// One that is being resolved by its name.
#[derive(Debug)]
pub(crate) struct Resolving {
    pub(crate) prepared: Prepared,
    pub(crate) dicts: Vec<DictId>,
}

/// What there is under a name.
pub(crate) enum Found {
    Nothing,
    /// It is being resolved, or is to be rolled back as soon as the log has space.
    Busy,
    Taken(Box<Detached>),
}

/// What recovery found prepared and not resolved.
#[derive(Clone, Debug)]
pub(crate) struct Unresolved {
    pub seqno: Seqno,
    pub xid: Vec<u8>,
    pub batch: OwnedBatch,
}

/// Private runs that unresolved batches name, in the order in which these do.
pub(crate) type PrivateRuns = HashMap<DictId, VecDeque<Arc<Run>>>;

/// The prepared transactions of a database.
#[derive(Debug, Default)]
pub(crate) struct PreparedTxns {
    /// Seqnos of the prepares that the log must keep.
    pub(crate) unresolved: Mutex<BTreeSet<Seqno>>,
    /// Names of all that are not resolved.
    names: Mutex<HashSet<Vec<u8>>>,
    /// In the order of their prepares.
    pub(crate) detached: Mutex<Vec<Detached>>,
    pub(crate) resolving: Mutex<Vec<Resolving>>,
    /// In no order.
    waiting: Mutex<Vec<Arc<WaitingRecords>>>,
}

impl PreparedTxns {
    pub(crate) fn new(found: &[Unresolved]) -> PreparedTxns {
        let unresolved = found.iter().map(|found| found.seqno).collect();
        let names = found.iter().map(|found| found.xid.clone()).collect();
        let (unresolved, names) = (Mutex::new(unresolved), Mutex::new(names));
        PreparedTxns { unresolved, names, ..PreparedTxns::default() }
    }

    /// Gives a name to one that is about to be prepared. Errors: another one has it; who resolves it by name would get either.
    pub(crate) fn claim_name(&self, xid: &[u8]) -> pando_base::Result<()> {
        match self.names.lock().insert(xid.to_vec()) {
            true => Ok(()),
            false => Err(EngineError::argument("a transaction is prepared under this name already")),
        }
    }

    /// The one of this name is resolved, or could not be prepared.
    pub(crate) fn release_name(&self, xid: &[u8]) {
        self.names.lock().remove(xid);
    }

    /// From now on others may bring these records into the trees.
    pub(crate) fn wait_with(&self, records: WaitingRecords) -> Arc<WaitingRecords> {
        let records = Arc::new(records);
        self.waiting.lock().push(records.clone());
        records
    }

    /// They are in.
    pub(crate) fn came(&self, records: &Arc<WaitingRecords>) {
        self.waiting.lock().retain(|other| !Arc::ptr_eq(other, records));
    }

    /// Records of commits before `seqno` that wait.
    pub(crate) fn waiting_before(&self, seqno: Seqno) -> Vec<Arc<WaitingRecords>> {
        self.waiting.lock().iter().filter(|records| records.seqno < seqno).cloned().collect()
    }

    /// The log is needed from here on for prepared transactions.
    pub(crate) fn needed_from(&self) -> Option<Seqno> {
        if is_planted(Bug::PreparedLogTrimmed) {
            return None;
        }
        self.unresolved.lock().first().copied()
    }

    /// Refuses to take away a table that a prepared transaction without a connection has changed. A temporary one goes
    /// with its connection.
    pub(crate) fn check_unused(&self, table: &TableDescriptor) -> pando_base::Result<()> {
        let is_its = |id: DictId| table.has(id);
        let detached = self.detached.lock();
        let is_used = detached.iter().any(|detached| detached.touched.iter().any(|dict| is_its(dict.id)))
            || self.resolving.lock().iter().any(|resolving| resolving.dicts.iter().copied().any(is_its));
        match is_used && !table.temporary {
            true => Err(EngineError::InUse { what: format!("table {}", table.path) }),
            false => Ok(()),
        }
    }

    /// Whether there is none that [`PreparedTxns::check_unused`] could find.
    pub(crate) fn are_resolved(&self) -> bool {
        self.detached.lock().is_empty() && self.resolving.lock().is_empty()
    }

    /// The database goes. What was spilled refers to dictionaries that refer to their writers: nobody else
    /// would part the two.
    pub(crate) fn let_go(&self) {
        for detached in self.detached.lock().drain(..) {
            detached.touched.iter().for_each(|dict| dict.writers.remove(&detached.writes));
        }
    }

    /// Takes the first one of this name to resolve it. [`PreparedTxns::resolved`] must follow.
    pub(crate) fn take(&self, xid: &[u8]) -> Found {
        let mut detached = self.detached.lock();
        let found = detached.iter().position(|d| d.prepared.xid == xid && !d.is_rolling_back);
        let Some(found) = found else {
            let is_busy = detached.iter().any(|d| d.prepared.xid == xid)
                || self.resolving.lock().iter().any(|resolving| resolving.prepared.xid == xid);
            return if is_busy { Found::Busy } else { Found::Nothing };
        };
        let found = detached.remove(found);
        let dicts = found.touched.iter().map(|dict| dict.id).collect();
        self.resolving.lock().push(Resolving { prepared: found.prepared.clone(), dicts });
        Found::Taken(Box::new(found))
    }

    /// What was taken is over, or detached again.
    pub(crate) fn resolved(&self, seqno: Seqno) {
        self.resolving.lock().retain(|resolving| resolving.prepared.seqno != seqno);
    }

    /// Takes one back to its connection, which has the metadata locks, unless somebody else has it.
    pub(crate) fn take_back(&self, seqno: Seqno) -> Option<Detached> {
        let mut detached = self.detached.lock();
        let found = detached.iter().position(|d| d.prepared.seqno == seqno && !d.is_rolling_back)?;
        Some(detached.remove(found))
    }

    pub(crate) fn put(&self, new: Detached) {
        let mut detached = self.detached.lock();
        let place = detached.partition_point(|other| other.prepared.seqno < new.prepared.seqno);
        detached.insert(place, new);
    }
}
