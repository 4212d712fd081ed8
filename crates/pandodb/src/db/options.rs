//! What a database is opened with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pando_base::limits;
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::open_files_max;
use pando_tree::TreeConfig;
use pando_txn::LockWatch;
use pando_wal::FlushMode;

/// Severity of a line for the operator's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Progress and other news.
    Note,
    /// Something an operator should look at.
    Warning,
    /// Data or durability are in danger.
    Error,
}

/// Where lines for the operator go.
pub type LogSink = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// Says how many bytes are in use beside what the database knows of.
#[derive(Clone)]
pub struct OtherMemory(Arc<dyn Fn() -> u64 + Send + Sync>);

impl OtherMemory {
    /// `bytes` is called often: it should be quick.
    pub fn new(bytes: impl Fn() -> u64 + Send + Sync + 'static) -> OtherMemory {
        OtherMemory(Arc::new(bytes))
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.0)()
    }
}

/// Says which tables of the catalog have no files here.
#[derive(Clone)]
pub struct LeftOut(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl LeftOut {
    /// `is_left_out` gets a table's path.
    pub fn new(is_left_out: impl Fn(&str) -> bool + Send + Sync + 'static) -> LeftOut {
        LeftOut(Arc::new(is_left_out))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        (self.0)(path)
    }
}

/// Options of [`crate::Db::open`].
#[derive(Clone)]
pub struct Options {
    /// Directory below which relative table paths lie (the server's data directory).
    pub base_dir: PathBuf,
    /// Directory of the log and the catalog.
    pub engine_dir: PathBuf,
    /// Limit of all memory of the engine in bytes; 0: twice `cache_bytes`. At least [`limits::MEMORY_BYTES_MIN`].
    pub memory_bytes: u64,
    /// Limit of the block cache in bytes. It has less while the rest takes more of `memory_bytes`.
    pub cache_bytes: u64,
    /// Write down now and then, and at the end, what the cache holds.
    pub cache_kept: bool,
    /// Read it again after the start, in the background.
    pub cache_load: bool,
    /// When commits reach the disk.
    pub flush_mode: FlushMode,
    /// Age in seconds at which a dictionary with unwritten changes is checkpointed.
    pub checkpoint_period_s: u64,
    /// How long a row lock is waited for, unless a transaction says otherwise.
    pub lock_wait_timeout: Duration,
    /// Memory in bytes of one transaction's uncommitted writes, beyond which they go into the tables' files.
    pub write_set_bytes: u64,
    /// Memory in bytes that all bulk loads and index builds together may take; beyond it they sort in files.
    pub load_memory_bytes: u64,
    /// Row locks a transaction may hold before it holds stretches of keys instead.
    pub lock_budget: usize,
    /// Threads for flushes and compactions. 0: none, the caller runs [`crate::Db::run_jobs`]
    /// and [`crate::Db::tick`] itself (deterministic tests). Recovery has as many, and one at least.
    pub background_threads: usize,
    /// Threads for bulk loads and index builds, started when one begins. Without background threads there are none.
    pub load_threads: usize,
    /// Bypass the operating system's page cache for tree files.
    pub direct_io: bool,
    /// Size of a log file in bytes.
    pub log_file_bytes: u64,
    /// Log kept in bytes beyond which checkpoints are hurried.
    pub log_kept_bytes_max: u64,
    /// Memory in bytes that full memtables may take during recovery; beyond it they are written before recovery ends. What is
    /// left is written behind it.
    pub replay_memory_bytes: u64,
    /// Tree files open beyond which tables that nobody uses are closed.
    pub files_open_max: usize,
    /// File descriptors that the tables' files may hold together ([`pando_storage::vfs::RealVfs::with_limit`]).
    pub descriptors_max: u64,
    /// Writes of a prepared transaction up to which its records are inserted when its commit is ordered
    /// (`Txn::commit_ordered`), not later. 0: never (tests of what is in between).
    pub ordered_at_once_ops: u64,
    /// Keys of encrypted tables, and of the log.
    pub keys: KeyRing,
    /// Encrypt all that is written to the log, not only what belongs to encrypted tables. Needs key
    /// [`pando_wal::LOG_KEY_ID`].
    pub encrypt_log: bool,
    /// Start where the log is damaged or parts of it are missing, and write nothing: [`Db::open`](crate::Db::open) gives what can
    /// still be read. Tables may be of different times then.
    pub despite_damage: bool,
    /// Shape of the trees.
    pub tree: TreeConfig,
    /// Who is told which transaction waits for which, and asked for the victims of deadlocks.
    pub lock_watch: Option<Arc<dyn LockWatch>>,
    /// Memory within `memory_bytes` that the database does not know of.
    pub other_memory: Option<OtherMemory>,
    /// Tables that a backup of some tables does not have, so that they are about to be dropped: what their files lack is no damage.
    pub left_out: Option<LeftOut>,
    /// Where lines for the operator go.
    pub log: LogSink,
}

impl Options {
    /// Defaults for a database in `base_dir`: durable commits, a cache of 1 GiB (within `memory_bytes`: twice as much), whatever memory
    /// the machine has, as many background threads as cores (two to eight).
    pub fn new(base_dir: impl Into<PathBuf>) -> Options {
        let base_dir = base_dir.into();
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Options {
            engine_dir: base_dir.join(".pando"),
            base_dir,
            memory_bytes: 0,
            cache_bytes: 1 << 30,
            cache_kept: false,
            cache_load: false,
            flush_mode: FlushMode::Commit,
            checkpoint_period_s: limits::CHECKPOINT_PERIOD_S,
            lock_wait_timeout: Duration::from_secs(limits::LOCK_WAIT_TIMEOUT_S),
            write_set_bytes: limits::WRITE_SET_BYTES,
            load_memory_bytes: limits::LOAD_MEMORY_BYTES,
            lock_budget: limits::LOCK_BUDGET,
            background_threads: cores.clamp(2, 8),
            load_threads: cores.max(2),
            direct_io: false,
            log_file_bytes: limits::LOG_FILE_BYTES,
            log_kept_bytes_max: limits::LOG_KEPT_BYTES_MAX,
            replay_memory_bytes: limits::REPLAY_MEMORY_BYTES,
            files_open_max: files_open_max(),
            descriptors_max: descriptors_max(),
            ordered_at_once_ops: limits::ORDERED_AT_ONCE_OPS,
            keys: KeyRing::empty(),
            encrypt_log: false,
            despite_damage: false,
            tree: TreeConfig::default(),
            lock_watch: None,
            other_memory: None,
            left_out: None,
            log: Arc::new(|_, _| {}),
        }
    }
}

impl Options {
    /// [`Options::memory_bytes`], whether said or not.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self.memory_bytes {
            0 => self.cache_bytes.saturating_mul(2),
            bytes => bytes,
        }
    }

    /// Files that a start or a stop makes durable at once: a disk makes many durable in the time of one. Without background threads
    /// one after the other.
    pub(crate) fn files_at_once(&self) -> usize {
        match self.background_threads {
            0 => 1,
            _ => limits::FILES_SYNCED_AT_ONCE,
        }
    }
}

/// A third of what the process may open: connections, the log, other engines and definitions need the rest.
pub fn descriptors_max() -> u64 {
    (open_files_max() / 3).max(limits::DESCRIPTORS_MIN)
}

/// The server needs most of what the process may open; and past the page cache a file takes two.
fn files_open_max() -> usize {
    (open_files_max() / 8).clamp(limits::FILES_OPEN_MIN as u64, limits::FILES_OPEN_MAX as u64) as usize
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("base_dir", &self.base_dir)
            .field("cache_bytes", &self.cache_bytes)
            .field("flush_mode", &self.flush_mode)
            .field("background_threads", &self.background_threads)
            .field("load_threads", &self.load_threads)
            .finish_non_exhaustive()
    }
}
