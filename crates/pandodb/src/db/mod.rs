//! The database: everything that is open, tied together.

pub(crate) mod backups;
pub(crate) mod cached_blocks;
pub(crate) mod key_rotation;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod pace;
pub(crate) mod prepared;
pub(crate) mod scheduler;
pub(crate) mod way_back;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pando_base::locks::{Mutex, RwLock};
use pando_base::{DictId, Error, Metrics, Seqno, TxnId};
use pando_load::{Memory, Stages};
use pando_run::BlockCache;
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{LockFile, Vfs};
use pando_tree::TreeConfig;
use pando_txn::{LockManager, Snapshots};
use pando_wal::{FlushMode, Wal};

use crate::catalog::{Catalog, Gone};
use crate::db::backups::Backups;
use crate::db::cached_blocks::CacheList;
use crate::db::key_rotation::KeyRotation;
use crate::db::memory::MemoryLimit;
use crate::db::options::{LeftOut, LogLevel, LogSink, Options};
use crate::db::pace::Pace;
use crate::db::prepared::{PreparedTxns, PrivateRuns, Unresolved};
use crate::db::scheduler::Background;
use crate::db::way_back::WayBack;
use crate::error::Result;
use crate::runtime::horizon::EngineHorizon;
use crate::runtime::load_pool::LoadPool;
use crate::runtime::removed::Removed;
use crate::runtime::threads::on_each;
use crate::table::{DbNumber, Dict, Table};

/// An open database.
pub struct Db {
    /// Its tables have it, too.
    pub(crate) number: DbNumber,
    pub(crate) base_dir: PathBuf,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) wal: Wal,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) locks: Arc<LockManager>,
    pub(crate) horizon: Arc<EngineHorizon>,
    pub(crate) background: Arc<Background>,
    /// Threads of loads; none where the caller runs background work itself.
    pub(crate) load_pool: Option<Arc<LoadPool>>,
    pub(crate) memory: MemoryLimit,
    pub(crate) load_memory: Arc<Memory>,
    pub(crate) load_stages: Arc<Stages>,
    /// How many loads are under way.
    pub(crate) loads: Arc<AtomicU64>,
    pub(crate) catalog: Catalog,
    pub(crate) removed: Removed,
    pub(crate) backups: Backups,
    pub(crate) cache_list: CacheList,
    pub(crate) prepared: PreparedTxns,
    /// One DDL at a time; taken before every other lock.
    pub(crate) ddl: Mutex<()>,
    /// Names that tables have lost, until the directories are synced.
    pub(crate) gone: Mutex<Vec<Gone>>,
    /// Renames that may be taken back.
    pub(crate) ways_back: Mutex<Vec<WayBack>>,
    /// Open dictionaries, the catalog's included; in order, so that a simulated run repeats exactly.
    pub(crate) dicts: RwLock<BTreeMap<DictId, Arc<Dict>>>,
    /// Open tables by normalized path; in order, likewise.
    pub(crate) tables: RwLock<BTreeMap<String, Arc<Table>>>,
    /// Dictionaries that recovery could not bring up to date. They are not opened, and the log that
    /// they need is kept, until the table is dropped or found whole at a later start.
    pub(crate) held_log: Mutex<HashMap<DictId, Unrecovered>>,
    pub(crate) keys: KeyRing,
    pub(crate) key_rotation: KeyRotation,
    /// How fast OPTIMIZE TABLE goes.
    pub(crate) optimize_pace: Pace,
    pub(crate) tree_config: TreeConfig,
    pub(crate) memtable_bytes: usize,
    pub(crate) ordered_at_once_ops: u64,
    pub(crate) log_kept_bytes_max: u64,
    pub(crate) files_open_max: usize,
    /// Dictionaries that were open when someone last looked for idle tables to close.
    pub(crate) idle_looked_at: AtomicUsize,
    /// [`Options::files_at_once`].
    files_at_once: usize,
    lock_wait_timeout: Duration,
    write_set_bytes: AtomicU64,
    lock_budget: AtomicUsize,
    flush_mode: AtomicU8,
    next_txn: AtomicU64,
    sink: LogSink,
    /// Tables of the catalog that are about to be dropped ([`Options::left_out`]).
    pub(crate) left_out: Option<LeftOut>,
    /// On a shadow of the disk, which goes with this object (`recovery::open`).
    pub(crate) despite_damage: bool,
    is_closed: AtomicBool,
    /// Keeps others out of the directory; given up by [`Db::close`], or with this object.
    lock: Mutex<Option<LockFile>>,
}

/// A dictionary that recovery could not bring up to date.
#[derive(Clone, Debug)]
pub(crate) struct Unrecovered {
    /// The log from here on is kept for it.
    pub needs_from: Seqno,
    /// Why; what is in its file must not be read without what is in the log.
    pub error: Error,
}

/// What recovery hands over to make a [`Db`].
pub(crate) struct Parts {
    pub vfs: Arc<dyn Vfs>,
    pub metrics: Arc<Metrics>,
    pub cache: Arc<BlockCache>,
    pub wal: Wal,
    pub snapshots: Arc<Snapshots>,
    pub horizon: Arc<EngineHorizon>,
    pub catalog: Catalog,
    pub dicts: BTreeMap<DictId, Arc<Dict>>,
    pub held_log: HashMap<DictId, Unrecovered>,
    pub damaged_keys: HashMap<DictId, Unrecovered>,
    pub private: PrivateRuns,
    pub unresolved: Vec<Unresolved>,
    pub lock: LockFile,
}

impl Db {
    /// Ties together what recovery has found. No background work is done yet.
    pub(crate) fn assemble(options: Options, parts: Parts, unresolved: &[Unresolved]) -> Arc<Db> {
        let files_at_once = options.files_at_once();
        let (memory_bytes, cache_bytes) = (options.memory_bytes(), options.cache_bytes);
        let memory = MemoryLimit::new(memory_bytes, cache_bytes, options.other_memory, parts.metrics.clone());
        memory.set_loads_max(options.load_memory_bytes);
        let load_memory = Memory::new(memory.loads_max());
        Arc::new(Db {
            number: DbNumber::next(),
            base_dir: options.base_dir.clone(),
            locks: LockManager::watched(parts.metrics.clone(), options.lock_watch.clone()),
            vfs: parts.vfs,
            metrics: parts.metrics,
            cache: parts.cache,
            wal: parts.wal,
            snapshots: parts.snapshots,
            horizon: parts.horizon,
            background: Arc::new(Background::new(options.background_threads, options.checkpoint_period_s)),
            load_pool: (options.background_threads > 0).then(|| LoadPool::new(options.load_threads)),
            memory,
            load_memory,
            load_stages: Arc::default(),
            loads: Arc::default(),
            catalog: parts.catalog,
            removed: Removed::default(),
            backups: Backups::new(&options.engine_dir),
            cache_list: CacheList::new(&options.engine_dir, options.cache_kept, options.cache_load),
            prepared: PreparedTxns::new(unresolved),
            ddl: Mutex::new(()),
            gone: Mutex::default(),
            ways_back: Mutex::default(),
            dicts: RwLock::new(parts.dicts),
            tables: RwLock::new(BTreeMap::new()),
            held_log: Mutex::new(parts.held_log),
            memtable_bytes: options.tree.memtable_bytes,
            ordered_at_once_ops: options.ordered_at_once_ops,
            keys: options.keys,
            key_rotation: KeyRotation::default(),
            optimize_pace: Pace::default(),
            tree_config: options.tree,
            log_kept_bytes_max: options.log_kept_bytes_max,
            files_open_max: options.files_open_max,
            idle_looked_at: AtomicUsize::new(0),
            files_at_once,
            lock_wait_timeout: options.lock_wait_timeout,
            write_set_bytes: AtomicU64::new(options.write_set_bytes),
            lock_budget: AtomicUsize::new(options.lock_budget),
            flush_mode: AtomicU8::new(options.flush_mode as u8),
            next_txn: AtomicU64::new(1),
            sink: options.log,
            left_out: options.left_out,
            despite_damage: options.despite_damage,
            is_closed: AtomicBool::new(false),
            lock: Mutex::new(Some(parts.lock)),
        })
    }

    /// Clean shutdown: everything is checkpointed, so the next open has nothing to replay.
    /// Errors leave what is in the log for recovery.
    ///
    /// Whatever comes back, the database is closed: later calls with it, its tables and its transactions fail (closing it again does
    /// nothing). The directory can be opened again once this returns, if nobody else holds the database: a transaction, an index build, or
    /// another clone of the `Arc`. Else it can be when the last of them is dropped.
    pub fn close(self: &Arc<Self>) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let written = self.write_all();
        let _one_ddl = self.ddl.lock();
        self.is_closed.store(true, Ordering::Release);
        self.wal.refuse("it was closed");
        // Whoever holds it may be in the middle of a call.
        if Arc::strong_count(self) == 1 {
            self.lock.lock().take();
        }
        written
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Refuses what comes after [`Db::close`]: the directory may be another's.
    pub(crate) fn check_open(&self) -> pando_base::Result<()> {
        match self.is_closed() {
            false => Ok(()),
            true => Err(Error::argument("the database was closed")),
        }
    }

    /// Refuses a table of another database, and one of a database that was closed.
    pub(crate) fn check_own(&self, table: &Table) -> pando_base::Result<()> {
        table.check_in(self.number)?;
        self.check_open()
    }

    /// Ends background work, and makes the files whole without the log.
    fn write_all(&self) -> Result<()> {
        self.background.stop();
        self.stop_loads();
        if self.despite_damage {
            return Ok(());
        }
        self.settle_gone(true);
        self.wal.sync_all()?;
        let mut first_error = None;
        let write = |dict: &Arc<Dict>| {
            let written = if dict.is_dirty() { self.checkpoint_dict(dict) } else { Ok(()) };
            self.secure_or_note(dict);
            written
        };
        for result in on_each(self.files_at_once, &self.open_dicts(), write) {
            if let Err(error) = result {
                self.log(LogLevel::Error, &format!("checkpoint at shutdown failed: {error}"));
                first_error.get_or_insert(error);
            }
        }
        if let Err(error) = self.note_file_ages().and_then(|()| self.checkpoint_dict(&self.catalog.dict)) {
            self.log(LogLevel::Error, &format!("checkpoint of the catalog at shutdown failed: {error}"));
            first_error.get_or_insert(error);
        }
        // What nobody needs any more cannot be damaged: the next start reads a file without batches.
        if let Err(error) = self.wal.begin_new_file() {
            self.log(LogLevel::Warning, &format!("no new log file at shutdown: {error}"));
        }
        self.trim_log();
        self.keep_cache_list();
        first_error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends background work and leaves the files as they are, as a crash would: what is in the log
    /// is recovered at the next open. For tests, and for giving up.
    pub fn abandon(&self) {
        self.background.stop();
        self.stop_loads();
    }

    fn stop_loads(&self) {
        if let Some(pool) = &self.load_pool {
            pool.stop();
        }
    }

    pub(crate) fn new_txn_id(&self) -> TxnId {
        TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn lock_wait_timeout(&self) -> Duration {
        self.lock_wait_timeout
    }

    /// Writes and syncs the log whatever the flush mode (FLUSH LOGS).
    pub fn flush_logs(&self) -> Result<()> {
        self.check_open()?;
        Ok(self.wal.sync_all()?)
    }

    /// Changes whether all that is written to the log is encrypted, not only what belongs to encrypted tables.
    ///
    /// # Errors
    /// There is no key for it; nothing has changed then.
    pub fn set_encrypt_log(&self, all: bool) -> Result<()> {
        self.check_open()?;
        Ok(self.wal.encrypt_all(all)?)
    }

    /// Checkpoints every dictionary that has something to write.
    pub fn checkpoint(&self) -> Result<()> {
        self.check_open()?;
        for dict in self.open_dicts() {
            if dict.is_dirty() {
                self.checkpoint_dict(&dict)?;
            }
            self.secure_or_note(&dict);
        }
        self.trim_log();
        Ok(())
    }

    /// Changes the memory of a transaction's uncommitted writes, beyond which they are spilled.
    pub fn set_write_set_bytes(&self, bytes: u64) {
        self.write_set_bytes.store(bytes, Ordering::Relaxed);
    }

    /// That memory.
    pub(crate) fn write_set_bytes(&self) -> u64 {
        self.write_set_bytes.load(Ordering::Relaxed)
    }

    /// Changes how many row locks a transaction may hold before it holds stretches of keys instead.
    pub fn set_lock_budget(&self, locks: usize) {
        self.lock_budget.store(locks, Ordering::Relaxed);
    }

    /// How many row locks a transaction may hold before it holds stretches of keys instead: fewer while all of them take too much
    /// memory.
    pub fn lock_budget(&self) -> usize {
        self.memory.lock_budget(self.lock_budget.load(Ordering::Relaxed))
    }

    /// Changes when commits reach the disk.
    pub fn set_flush_mode(&self, mode: FlushMode) {
        self.flush_mode.store(mode as u8, Ordering::Relaxed);
    }

    /// When commits reach the disk.
    pub fn flush_mode(&self) -> FlushMode {
        match self.flush_mode.load(Ordering::Relaxed) {
            0 => FlushMode::Lazy,
            2 => FlushMode::Write,
            _ => FlushMode::Commit,
        }
    }

    /// Changes the time after which commits of the lazy flush modes are synced at the latest.
    pub fn set_log_sync_period(&self, seconds: u64) {
        self.background.set_log_sync_period(seconds);
    }

    /// Changes the age at which dictionaries are checkpointed.
    pub fn set_checkpoint_period(&self, seconds: u64) {
        self.background.set_checkpoint_period(seconds);
    }

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        self.metrics.cache_bytes.set(self.cache.bytes());
        self.metrics.cache_bytes_limit.set(self.cache.limit());
        self.metrics.log_kept_bytes.set(self.wal.kept_bytes());
        self.note_held_log();
        self.look_at_memory();
        self.metrics.tables_open.set(self.tables.read().len() as u64);
        self.note_load_stages();
        self.metrics.files_open.set(self.dicts.read().len() as u64);
        let (held_bytes, files_left) = self.backup_figures();
        self.metrics.backup_held_bytes.set(held_bytes);
        self.metrics.backup_files_left.set(files_left);
        if let Some(descriptors) = self.vfs.descriptors() {
            self.metrics.file_descriptors.set(descriptors.open);
            self.metrics.files_reopened.set(descriptors.reopened);
        }
        &self.metrics
    }

    /// Wakes a transaction that waits for a lock, with [`crate::Error::Killed`].
    pub fn kill(&self, txn: TxnId) {
        self.locks.kill(txn);
    }

    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        (self.sink)(level, text);
    }

    pub(crate) fn dict(&self, id: DictId) -> Option<Arc<Dict>> {
        self.dicts.read().get(&id).cloned()
    }

    pub(crate) fn open_dicts(&self) -> Vec<Arc<Dict>> {
        self.dicts.read().values().cloned().collect()
    }

    pub(crate) fn catalog_path(engine_dir: &Path) -> PathBuf {
        engine_dir.join("catalog.pando")
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("base_dir", &self.base_dir).finish_non_exhaustive()
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // Not a clean shutdown: what is in the log is recovered at the next open.
        self.background.stop();
        self.stop_loads();
        self.prepared.let_go();
    }
}
