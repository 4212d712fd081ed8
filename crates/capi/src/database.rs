//! The database: opening, closing, settings, counters.

use std::cmp::Ordering;
use std::ffi::{c_char, c_void, CString};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pandodb::{
    Db, EngineError, FlushMode, LockWatch, LogLevel, LogSink, Metrics, Options, OtherMemory, TxnId,
};

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::encryption::{key_ring, PandoKey, PandoKeyVersion};
use crate::guard::{guard, report_panics_to};
use crate::log::{PandoLog, PandoLogLevel};
use crate::status::{hide, run, PandoStatus};

/// An open database.
#[derive(Debug)]
pub struct PandoDb {
    pub(crate) db: Arc<Db>,
}

/// Is told that `waiter` waits until all of `count` transactions from `blockers` on are out of its way: called by
/// the waiter's thread before it sleeps; those named may have ended meanwhile.
pub type PandoWaits = Option<unsafe extern "C" fn(waiter: u64, blockers: *const u64, count: u32)>;

/// Says which of two transactions that are members of a deadlock should rather be its victim: below 0 the
/// first, above 0 the second, 0 whichever loses less. It must not call the engine.
pub type PandoVictim = Option<unsafe extern "C" fn(first: u64, second: u64) -> i32>;

/// What a database is opened with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoOptions {
    /// Directory below which relative table paths lie.
    pub base_dir: PandoBytes,
    /// Directory of the log and the catalog.
    pub engine_dir: PandoBytes,
    /// Limit of all memory of the engine.
    pub memory_bytes: u64,
    /// Limit of the block cache, which has less while the rest takes more of `memory_bytes`.
    pub cache_bytes: u64,
    /// 1: write down now and then, and at the end, what the cache holds.
    pub cache_kept: u8,
    /// 1: read it again after the start, in the background.
    pub cache_load: u8,
    /// Memory of a transaction's uncommitted writes, beyond which they go into the tables' files.
    pub write_set_bytes: u64,
    /// Memory that all bulk loads together may take.
    pub load_memory_bytes: u64,
    /// 0, 1 or 2 as `pando_flush_log_at_trx_commit`.
    pub flush_mode: u32,
    /// Threads for flushes, compactions and checkpoints.
    pub background_threads: u32,
    /// Threads for bulk loads and index builds; 0: one for each processor.
    pub load_threads: u32,
    /// Age at which a changed dictionary is checkpointed.
    pub checkpoint_period_s: u64,
    /// How long row locks are waited for.
    pub lock_wait_s: u64,
    /// Size of a log file.
    pub log_file_bytes: u64,
    /// File descriptors that tables' files may hold together; 0: a part of what the process may open.
    pub descriptors: u64,
    /// 1: bypass the operating system's page cache.
    pub direct_io: u8,
    /// Where lines for the operator go.
    pub log: PandoLog,
    /// Who is told of waits for row locks.
    pub waits: PandoWaits,
    /// Who is asked for the victims of deadlocks.
    pub victim: PandoVictim,
    /// Who is asked for the newest version of an encryption key.
    pub key_version: PandoKeyVersion,
    /// Who is asked for a version of an encryption key.
    pub key: PandoKey,
    /// 1: encrypt all of the log, not only what belongs to encrypted tables.
    pub encrypt_log: u8,
    /// 1: start where the log is damaged, up to its first damage, and write nothing.
    pub despite_damage: u8,
}

/// The server's functions as the engine's listener.
#[derive(Debug)]
struct Watch {
    waits: PandoWaits,
    victim: PandoVictim,
}

impl LockWatch for Watch {
    fn waits(&self, waiter: TxnId, blockers: &[TxnId]) {
        let Some(waits) = self.waits else { return };
        let blockers: Vec<u64> = blockers.iter().map(|id| id.0).collect();
        // SAFETY: the function was given for this purpose, the numbers live for the call.
        unsafe { waits(waiter.0, blockers.as_ptr(), blockers.len() as u32) }
    }

    fn victim(&self, first: TxnId, second: TxnId) -> Ordering {
        // SAFETY: the function was given for this purpose.
        self.victim.map_or(Ordering::Equal, |victim| unsafe { victim(first.0, second.0) }.cmp(&0))
    }
}

fn flush_mode(number: u32) -> pandodb::Result<FlushMode> {
    match number {
        0 => Ok(FlushMode::Lazy),
        1 => Ok(FlushMode::Commit),
        2 => Ok(FlushMode::Write),
        _ => Err(EngineError::argument(format!("a flush mode is 0 to 2, and not {number}")).into()),
    }
}

fn log_sink(log: PandoLog) -> LogSink {
    Arc::new(move |level, text| {
        let Some(log) = log else { return };
        let level = match level {
            LogLevel::Note => PandoLogLevel::Note,
            LogLevel::Warning => PandoLogLevel::Warning,
            LogLevel::Error => PandoLogLevel::Error,
        };
        let line = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the function was given for this purpose, the line lives for the call.
        unsafe { log(level, line.as_ptr()) }
    })
}

/// Opens (and recovers) the database or makes a new one; close it with [`pando_db_close`]. `DatabaseInUse`: it is open already.
///
/// # Safety
/// The options and what they point to are valid for the call, the functions until the close,
/// `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_db_open(options: *const PandoOptions, out: *mut *mut PandoDb) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (given, out) = unsafe { (&*options, &mut *out) };
    let sink = log_sink(given.log);
    report_panics_to(given.log);
    run(|| {
        // SAFETY: as above.
        let (base_dir, engine_dir) = unsafe { (given.base_dir.to_path(), given.engine_dir.to_path()) };
        hide(&base_dir);
        let defaults = Options::new(base_dir);
        let descriptors_max = match given.descriptors {
            0 => defaults.descriptors_max,
            given => given,
        };
        let load_threads = match given.load_threads {
            0 => defaults.load_threads,
            threads => threads as usize,
        };
        let db = Db::open(Options {
            engine_dir,
            memory_bytes: given.memory_bytes,
            other_memory: Some(OtherMemory::new(pando_query::memory_used_bytes)),
            cache_bytes: given.cache_bytes,
            cache_kept: given.cache_kept != 0,
            cache_load: given.cache_load != 0,
            write_set_bytes: given.write_set_bytes,
            load_memory_bytes: given.load_memory_bytes,
            flush_mode: flush_mode(given.flush_mode)?,
            checkpoint_period_s: given.checkpoint_period_s,
            lock_wait_timeout: Duration::from_secs(given.lock_wait_s),
            background_threads: given.background_threads as usize,
            load_threads,
            direct_io: given.direct_io != 0,
            log_file_bytes: given.log_file_bytes,
            replay_memory_bytes: (given.cache_bytes.min(given.memory_bytes / 4) / 2)
                .max(defaults.replay_memory_bytes),
            descriptors_max,
            lock_watch: Some(Arc::new(Watch { waits: given.waits, victim: given.victim })),
            log: sink,
            keys: key_ring(given.key_version, given.key),
            encrypt_log: given.encrypt_log != 0,
            despite_damage: given.despite_damage != 0,
            ..defaults
        })?;
        *out = Box::into_raw(Box::new(PandoDb { db }));
        Ok(PandoStatus::Ok)
    })
}

/// Closes the database cleanly and frees it, whatever comes back. Then it can be opened again.
///
/// # Safety
/// Neither the database nor anything made from it is used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_db_close(db: *mut PandoDb) -> PandoStatus {
    run(|| {
        // SAFETY: made by Box::into_raw, and the caller gives it up.
        let db = unsafe { Box::from_raw(db) };
        db.db.close()?;
        Ok(PandoStatus::Ok)
    })
}

/// Changes the memory of a transaction's uncommitted writes, beyond which they go into the tables' files.
///
/// # Safety
/// The database is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_write_set_bytes(db: *const PandoDb, bytes: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_write_set_bytes(bytes) });
}

/// Changes the memory that all bulk loads together may take.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_load_memory_bytes(db: *const PandoDb, bytes: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_load_memory(bytes) });
}

/// Changes the limit of all memory of the engine.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_memory_bytes(db: *const PandoDb, bytes: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_memory_bytes(bytes) });
}

/// What SELECTs in the engine may have of it together.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_query_memory_max(db: *const PandoDb) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.query_memory_max() })
}

/// Changes the limit of the block cache.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_cache_bytes(db: *const PandoDb, bytes: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_cache_bytes(bytes) });
}

/// Changes how many row locks a transaction may hold before it holds stretches of keys instead.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_lock_budget(db: *const PandoDb, locks: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_lock_budget(locks as usize) });
}

/// Changes when commits reach the disk. `BadArgument`: there is no such mode.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_flush_mode(db: *const PandoDb, mode: u32) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    run(|| {
        db.set_flush_mode(flush_mode(mode)?);
        Ok(PandoStatus::Ok)
    })
}

/// Changes the time after which commits of the lazy flush modes are synced at the latest; 1 by default.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_log_sync_period(db: *const PandoDb, seconds: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_log_sync_period(seconds) });
}

/// Changes whether what the cache holds is written down (`pando_cache_dump`).
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_cache_kept(db: *const PandoDb, is_kept: u8) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_cache_kept(is_kept != 0) });
}

/// Changes the age at which dictionaries are checkpointed.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_checkpoint_period(db: *const PandoDb, seconds: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.set_checkpoint_period(seconds) });
}

/// Writes and syncs the log.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_flush_logs(db: *const PandoDb) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    run(|| {
        db.flush_logs()?;
        Ok(PandoStatus::Ok)
    })
}

/// Wakes a transaction that waits for a lock; it gets `Killed`.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_kill(db: *const PandoDb, txn: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.kill(TxnId(txn)) });
}

/// The text of SHOW ENGINE PANDO STATUS.
///
/// # Safety
/// `db` is open, `buffer` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_db_status_text(db: *const PandoDb, buffer: *mut PandoBuffer) {
    guard(|| {
        // SAFETY: the caller vouches for both.
        let (db, buffer) = unsafe { (&(*db).db, &mut *buffer) };
        buffer.bytes = db.status_text().into_bytes();
    });
}

/// For whom the log is kept, empty where checkpoints suffice to give it up: the text of `Pando_log_holder`.
///
/// # Safety
/// `db` is open, `buffer` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_db_log_holder(db: *const PandoDb, buffer: *mut PandoBuffer) {
    guard(|| {
        // SAFETY: the caller vouches for both.
        let (db, buffer) = unsafe { (&(*db).db, &mut *buffer) };
        buffer.bytes = db.log_held().map(|(_, holder)| holder.into_bytes()).unwrap_or_default();
    });
}

/// Names as C strings, made once.
fn metric_names() -> &'static [CString] {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    NAMES.get_or_init(|| {
        Metrics::TABLE.iter().map(|(name, _)| CString::new(*name).unwrap_or_default()).collect()
    })
}

/// How many counters there are.
#[no_mangle]
pub extern "C" fn pando_metric_count() -> u32 {
    guard(|| Metrics::TABLE.len() as u32)
}

/// Name of a counter; valid for ever. Null beyond the last.
#[no_mangle]
pub extern "C" fn pando_metric_name(position: u32) -> *const c_char {
    guard(|| metric_names().get(position as usize).map_or(std::ptr::null(), |name| name.as_ptr()))
}

/// Writes the values of the first `count` counters.
///
/// # Safety
/// `db` is open, `values` has room for `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn pando_db_metrics(db: *const PandoDb, values: *mut u64, count: u32) {
    guard(|| {
        // SAFETY: the caller vouches for both.
        let (db, out) = unsafe { (&(*db).db, std::slice::from_raw_parts_mut(values, count as usize)) };
        for (place, value) in out.iter_mut().zip(db.metrics().values()) {
            *place = value;
        }
    });
}

/// Takes the name of a prepared transaction; called on the caller's thread.
pub type PandoXidSink = Option<unsafe extern "C" fn(context: *mut c_void, xid: PandoBytes)>;

/// Tells the names of at most `max` prepared transactions without a connection, each once; after a call
/// that told fewer the next begins anew. Returns how many.
///
/// # Safety
/// `db` is open; `sink` can take `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_db_report_prepared(
    db: *const PandoDb,
    max: u32,
    sink: PandoXidSink,
    context: *mut c_void,
) -> u32 {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| {
        let xids = db.report_prepared(max as usize);
        if let Some(sink) = sink {
            for xid in &xids {
                // SAFETY: the caller vouches for it.
                unsafe { sink(context, PandoBytes::from_slice(xid)) };
            }
        }
        xids.len() as u32
    })
}

/// Commits a prepared transaction without a connection; `NotFound`: there is none of that name. After an
/// error it is still prepared.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_commit_by_xid(db: *const PandoDb, xid: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, xid) = unsafe { (&(*db).db, xid.as_slice()) };
    run(|| Ok(if db.commit_by_xid(xid)? { PandoStatus::Ok } else { PandoStatus::NotFound }))
}

/// Rolls back a prepared transaction without a connection; `NotFound`: there is none of that name.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_rollback_by_xid(db: *const PandoDb, xid: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, xid) = unsafe { (&(*db).db, xid.as_slice()) };
    run(|| Ok(if db.rollback_by_xid(xid)? { PandoStatus::Ok } else { PandoStatus::NotFound }))
}
