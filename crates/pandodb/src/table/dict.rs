//! One dictionary of an open table.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use pando_base::{DictId, Result, Seqno};
use pando_storage::TreeFile;
use pando_tree::Tree;

use crate::runtime::failure::Failure;
use crate::table::key_statistics::KeyStatistics;
use crate::table::row_count::RowCount;
use crate::table::writes::Writers;

/// One ordered map: a tree in a file of its own.
#[derive(Debug)]
pub struct Dict {
    pub(crate) id: DictId,
    pub(crate) tree: Arc<Tree>,
    pub(crate) file: Arc<TreeFile>,
    /// Next auto-increment value (0: none yet); meaningful for a table's rows only. Changed by
    /// `fetch_max` before the record that used the value is in the tree, so a checkpoint that
    /// holds the record holds the counter too.
    pub(crate) auto_increment: AtomicU64,
    /// Of the rows of a table without a primary key: the largest key in transactions that recovery found
    /// prepared. Until they commit, no tree has it.
    pub(crate) prepared_hidden_key: AtomicU64,
    /// Of a table's rows: how many there are.
    pub(crate) row_count: RowCount,
    /// How many different keys there are, by their parts.
    pub(crate) key_statistics: KeyStatistics,
    /// Transactions with uncommitted writes in it.
    pub(crate) writers: Writers,
    /// Waiting in the scheduler's queue (see `background`).
    pub(crate) queued: AtomicBool,
    /// Dropped: background work passes it by.
    pub(crate) dropped: AtomicBool,
    /// Engine time in microseconds at which the oldest change not yet checkpointed was made; 0 if
    /// clean.
    pub(crate) dirty_since: AtomicU64,
    /// When it was last changed since it was opened, in seconds since 1970; 0 if not.
    pub(crate) changed_at: AtomicU64,
    /// What its superblock says is durable. Not so after a recovery, which has read what an earlier
    /// process may not have synced: until then the log stays whole.
    pub(crate) is_secure: AtomicBool,
    /// Why its jobs fail, if they do.
    pub(crate) job_failure: Failure,
    /// Why its checkpoints fail, if they do.
    pub(crate) checkpoint_failure: Failure,
    /// So many more times the ticker cuts off what is free at the end of the file: who has given much space up sets it, because a
    /// checkpoint, which does so, may have nothing to write.
    pub(crate) cuts: AtomicU8,
    /// Snapshots older than this cannot read it: the table was made, filled or emptied, or the index was added,
    /// while they lived, and they would find nothing, or some rows and not others.
    pub(crate) readable_from: AtomicU64,
    /// Its table has not got the name yet that it is for ([`TableSpec::interim`](crate::catalog::descriptor::TableSpec)).
    pub(crate) is_interim: AtomicBool,
    /// Why nobody reads it or writes to it any more: of an index (`damaged_keys`), or of large values (`lost_values`).
    pub(crate) unusable: OnceLock<String>,
}

impl Dict {
    pub(crate) fn new(id: DictId, tree: Arc<Tree>, file: Arc<TreeFile>, auto_increment: u64) -> Dict {
        Dict {
            id,
            tree,
            file,
            auto_increment: AtomicU64::new(auto_increment),
            prepared_hidden_key: AtomicU64::new(0),
            row_count: RowCount::new(),
            key_statistics: KeyStatistics::default(),
            writers: Writers::default(),
            queued: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            dirty_since: AtomicU64::new(0),
            changed_at: AtomicU64::new(0),
            is_secure: AtomicBool::new(true),
            job_failure: Failure::default(),
            checkpoint_failure: Failure::default(),
            cuts: AtomicU8::new(0),
            readable_from: AtomicU64::new(0),
            is_interim: AtomicBool::new(false),
            unusable: OnceLock::new(),
        }
    }

    /// Recovery found this key in a prepared transaction. Keys of other tables that look like hidden ones do no harm.
    pub(crate) fn note_prepared_key(&self, key: &[u8]) {
        if let Ok(bytes) = <[u8; 8]>::try_from(key) {
            self.prepared_hidden_key.fetch_max(u64::from_be_bytes(bytes), Ordering::AcqRel);
        }
    }

    /// The dictionary's id.
    pub fn id(&self) -> DictId {
        self.id
    }

    /// The tree, for statistics and tools.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Bytes of its file that are in use: by the tree, by the checkpoint, and by private runs.
    pub fn used_bytes(&self) -> u64 {
        self.file.used_bytes()
    }

    /// Somebody gives up space in its file, now or in a moment: the ticker gives it back.
    pub(crate) fn cut_soon(&self) {
        const TIMES: u8 = 10;
        self.cuts.store(TIMES, Ordering::Release);
    }

    /// Makes durable what its file was opened with. False: it was before.
    pub(crate) fn secure(&self) -> Result<bool> {
        if self.is_secure.load(Ordering::Acquire) {
            return Ok(false);
        }
        self.file.secure()?;
        self.is_secure.store(true, Ordering::Release);
        Ok(true)
    }

    /// Refuses a snapshot from before what it would read was there.
    pub(crate) fn check_readable(&self, seqno: Seqno) -> crate::error::Result<()> {
        self.check_usable()?;
        match seqno < self.readable_from.load(Ordering::Acquire) {
            true => Err(crate::error::Error::DefinitionChanged),
            false => Ok(()),
        }
    }

    /// Whether the last checkpoint lacks something, if only a counter that one has raised who was rolled back.
    pub(crate) fn is_dirty(&self) -> bool {
        self.tree.is_dirty()
            || self.tree.durable_auto_increment() != self.auto_increment.load(Ordering::Acquire)
    }

    /// Nothing is done for it in the background any more, and no log is kept for it: it was dropped, or it is to be built anew.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire) || self.is_unusable()
    }

    /// Whether it is a damaged index, or large values whose file is damaged or missing.
    pub fn is_unusable(&self) -> bool {
        self.unusable.get().is_some()
    }

    /// Refuses to use a damaged index.
    pub(crate) fn check_usable(&self) -> crate::error::Result<()> {
        match self.unusable.get() {
            Some(reason) => Err(crate::error::Error::KeyUnusable { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}
