//! The runtime's background work: flush and compaction jobs, rolling checkpoints, log upkeep, and
//! the price that writers pay for them.
//!
//! Workers take dictionaries from a queue and run the most urgent job of each tree; a dictionary
//! is in the queue at most once and goes to its end while it has more to do, so a busy table does
//! not starve the others. One thread ticks for the log (the lazy flush modes promise about a second),
//! another checkpoints dictionaries by age and by the log they hold back (one at a time: rolling) and
//! trims the log.
//!
//! A job that fails is tried again at the next tick, and its dictionary remembers the failure
//! (`failure`): its own writers are refused before memory fills up, those of others are not.
//!
//! **Backpressure is pay-as-you-go**: before its commit holds a gate, a writer sleeps in proportion to
//! its own bytes and to how far the touched trees are behind ([`price_micros`]). A long transaction pays
//! for each piece as it writes it, so that the price holds for it, too, without a long sleep.
//!
//! Lock order: the queue's mutex is a leaf; nothing is called with it held.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use pando_base::observer::{self, ThreadKind};
use pando_base::{DictId, Error, Seqno};
use pando_tree::Debt;

use crate::db::options::LogLevel;
use crate::db::scheduler::{Background, PAID_AT_ONCE_BYTES, TICK};
use crate::db::Db;
use crate::jobs::key_rotation::rotate_keys;
use crate::jobs::warm::keep_cache;
use crate::runtime::failure::Failure;
use crate::table::Dict;

/// How often the operator is told who holds the log.
const LOG_HOLDER_PERIOD_MICROS: u64 = 3_600_000_000;
/// Longest delay for [`PAID_AT_ONCE_BYTES`] or less, however large the debt.
const DELAY_MAX_MICROS: u64 = 50_000;
/// Longest delay for a single row, however long.
const DELAY_OF_ROW_MAX_MICROS: u64 = 900_000;
/// Pressure beyond which writes are refused while the dictionary's jobs fail.
const REFUSAL_PRESSURE: f64 = 2.0;
/// Price per byte, in nanoseconds, at the point where a tree's debt reaches its soft limit twice.
const PRICE_NANOS_PER_BYTE: f64 = 60.0;

impl Background {
    /// Starts the threads. They hold no strong reference, so that a forgotten database ends. With fewer workers than there
    /// should be, jobs take longer.
    ///
    /// # Errors
    /// The system gives no thread for jobs, or none for one of the tickers. Those that were started have ended.
    pub(crate) fn start(self: &Arc<Self>, db: &Arc<Db>) -> Result<(), Error> {
        let started = self.spawn_all(db, |work| std::thread::Builder::new().spawn(work));
        match started {
            Ok(workers) if workers < self.workers => {
                let line = format!("{workers} of {} background threads could be started", self.workers);
                db.log(LogLevel::Warning, &line);
            }
            Ok(_) => {}
            Err(_) => self.stop(),
        }
        let threads = Path::new("background threads");
        started.map(drop).map_err(|error| Error::io("start", threads, 0, error))
    }

    /// Says how many workers there are.
    fn spawn_all(
        self: &Arc<Self>,
        db: &Arc<Db>,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<usize> {
        let mut threads = self.threads.lock();
        if self.workers == 0 {
            return Ok(0);
        }
        // The few that there have to be come first.
        for tick in [Db::tick_log_if_due, Db::tick_tables, Db::look_at_memory_often] {
            let (weak, background) = (Arc::downgrade(db), self.clone());
            threads.push(spawn(Box::new(move || {
                observer::thread(ThreadKind::Ticker, || ticker(&weak, &background, tick));
            }))?);
        }
        for started in 0..self.workers {
            let (weak, background) = (Arc::downgrade(db), self.clone());
            match spawn(Box::new(move || {
                observer::thread(ThreadKind::Worker, || worker(&weak, &background));
            })) {
                Ok(thread) => threads.push(thread),
                Err(error) if started == 0 => return Err(error),
                Err(_) => return Ok(started),
            }
        }
        // The least needed ones are the last: without them a start takes longer to be fast, and old keys stay in use.
        type Work = fn(&Weak<Db>, &Background);
        let others: [(ThreadKind, Work); 2] =
            [(ThreadKind::CacheKeeper, keep_cache), (ThreadKind::KeyRotator, rotate_keys)];
        for (kind, work) in others {
            let (weak, background) = (Arc::downgrade(db), self.clone());
            threads.extend(spawn(Box::new(move || observer::thread(kind, || work(&weak, &background)))).ok());
        }
        Ok(self.workers)
    }
}

fn worker(db: &Weak<Db>, background: &Background) {
    while !background.stopping() {
        let Some(dict) = background.take(TICK) else { continue };
        let Some(db) = db.upgrade() else { return };
        db.run_one_job(&dict);
    }
}

fn ticker(db: &Weak<Db>, background: &Background, tick: fn(&Arc<Db>)) {
    loop {
        std::thread::park_timeout(TICK);
        if background.stopping() {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        tick(&db);
    }
}

impl Db {
    /// Runs one job of a dictionary and asks for the next. After a failure the ticker asks: a full
    /// disk does not become free in a microsecond, and the worker has others to serve.
    fn run_one_job(&self, dict: &Arc<Dict>) {
        if dict.is_dropped() {
            return;
        }
        match dict.tree.run_job() {
            Ok(did) => {
                if did {
                    dict.job_failure.clear();
                }
                if dict.tree.has_work() {
                    self.background.request(dict);
                }
            }
            Err(error) => self.note_failure(&dict.job_failure, "background job", &error),
        }
    }

    /// Runs background jobs until none is left, on the caller's thread: for databases opened with
    /// no background threads. Errors: the first job that fails ends it.
    pub fn run_jobs(&self) -> Result<(), Error> {
        self.check_open()?;
        for dict in self.open_dicts().into_iter().filter(|dict| !dict.is_dropped()) {
            loop {
                match dict.tree.run_job() {
                    Ok(true) if !dict.is_dropped() => {}
                    Ok(_) => break,
                    Err(error) => {
                        self.note_failure(&dict.job_failure, "background job", &error);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// What the tickers do each time: log upkeep, due checkpoints, trim.
    pub fn tick(self: &Arc<Self>) {
        if self.is_closed() {
            return;
        }
        self.tick_log();
        self.tick_tables();
        self.look_at_memory();
    }

    fn look_at_memory_often(self: &Arc<Self>) {
        self.look_at_memory();
        if let Some(observer) = observer::get() {
            observer.memory(&self.memory.uses(self.cache.bytes()));
        }
    }

    fn tick_log_if_due(self: &Arc<Self>) {
        if self.background.is_log_due(self.vfs.now_micros()) {
            self.tick_log();
        }
    }

    fn tick_log(self: &Arc<Self>) {
        self.retry_rollbacks();
        self.settle_gone(false);
        match self.wal.tick() {
            Ok(()) => self.background.log_failure.clear(),
            Err(error) => self.note_failure(&self.background.log_failure, "log write", &error),
        }
    }

    fn tick_tables(self: &Arc<Self>) {
        let now = self.vfs.now_micros();
        let age_micros = self.background.period_s.load(Ordering::Relaxed).saturating_mul(1_000_000);
        let ids: Vec<DictId> = self.dicts.read().keys().copied().collect();
        for dict in ids.into_iter().filter_map(|id| self.dict(id)) {
            if dict.is_dropped() {
                continue;
            }
            let since = dict.dirty_since.load(Ordering::Acquire);
            if since == 0 && dict.is_dirty() {
                // Jobs alone have changed the tree: what they replaced is free after a checkpoint. Or a counter was raised.
                self.mark_dirty(std::slice::from_ref(&dict));
            }
            if since != 0 && now.saturating_sub(since) >= age_micros {
                self.checkpoint_or_note(&dict);
            } else if dict.tree.seal_if_full(|| self.wal.last_seqno()) || dict.tree.has_work() {
                // Where nobody writes any more, readers may still have to step over what was deleted.
                self.background.request(&dict);
            }
            self.secure_or_note(&dict);
            self.cut_if_due(&dict);
            if self.background.stopping() {
                return;
            }
        }
        self.mark_failing_keys();
        self.log_prepared_anew();
        self.relieve_log();
        self.trim_log();
        self.tell_who_holds_log(now);
        self.close_idle_tables();
        self.removed.close_unused();
        self.background.heap.tick(&self.metrics, now);
    }

    /// While too much log is kept, or there is no space for more, checkpoints the dictionary that holds most
    /// of it back.
    fn relieve_log(&self) {
        // No checkpoint helps beyond what is kept for a damaged table or a prepared transaction.
        let held = self
            .held_log
            .lock()
            .values()
            .map(|held| held.needs_from)
            .chain(self.prepared.needed_from())
            .min();
        if self.wal.is_held() {
            // A backup copies it; that does not take long.
            return;
        }
        let mut tried = 0;
        let is_too_much = || self.wal.kept_bytes() > self.log_kept_bytes_max || self.wal.lacks_space();
        while is_too_much() && tried < 64 {
            let oldest = self
                .open_dicts()
                .into_iter()
                .filter(|dict| !dict.is_dropped())
                .filter_map(|dict| dict.tree.oldest_unwritten().map(|seqno| (seqno, dict)))
                .min_by_key(|(seqno, _)| *seqno);
            let Some((seqno, dict)) = oldest else { return };
            if held.is_some_and(|held| held <= seqno) {
                return;
            }
            if !self.checkpoint_or_note(&dict) || self.background.stopping() {
                return;
            }
            self.trim_log();
            tried += 1;
        }
    }

    /// Where more log is kept than should be and no checkpoint helps, the operator is told for whom: at once and every hour.
    fn tell_who_holds_log(&self, now_micros: u64) {
        let told = &self.background.log_holder_told_micros;
        let kept_bytes = self.wal.kept_bytes();
        let is_too_much = kept_bytes > self.log_kept_bytes_max;
        let Some((_, holder)) = is_too_much.then(|| self.log_holder()).flatten() else {
            told.store(0, Ordering::Relaxed);
            return;
        };
        let last = told.load(Ordering::Relaxed);
        if last != 0 && now_micros.saturating_sub(last) < LOG_HOLDER_PERIOD_MICROS {
            return;
        }
        told.store(now_micros.max(1), Ordering::Relaxed);
        let (kept, limit) = (kept_bytes >> 20, self.log_kept_bytes_max >> 20);
        self.log(LogLevel::Warning, &format!("the log takes {kept} MiB, more than {limit} MiB: {holder}"));
    }

    /// What needs the oldest log, if it is nothing that a checkpoint is about to end, and from which commit on.
    pub(crate) fn log_holder(&self) -> Option<(Seqno, String)> {
        let prepared = self.prepared.needed_from().map(|seqno| {
            let text =
                "it is kept for a prepared transaction; XA COMMIT or XA ROLLBACK what XA RECOVER shows";
            (seqno, Some(text.to_owned()))
        });
        let mut held: Vec<(Seqno, Option<String>)> = Vec::new();
        for unrecovered in self.held_log.lock().values() {
            let text = format!(
                "it is kept for a table that recovery could not open; mend or drop it (of large values: mend the file, or REPAIR TABLE): \
                 {}",
                unrecovered.error
            );
            held.push((unrecovered.needs_from, Some(text)));
        }
        let dicts = self.open_dicts().into_iter().filter(|dict| !dict.is_dropped());
        let dicts = dicts.filter_map(|dict| {
            let failing = dict.checkpoint_failure.get().map(|error| {
                format!(
                    "it is kept for {}, which cannot be checkpointed: {error}",
                    dict.file.path().display()
                )
            });
            Some((dict.tree.oldest_unwritten()?, failing))
        });
        let oldest = held.into_iter().chain(prepared).chain(dicts).min_by_key(|(seqno, _)| *seqno);
        oldest.and_then(|(seqno, text)| Some((seqno, text?)))
    }

    /// Bytes of log that are kept for somebody for whom no checkpoint helps, and for whom.
    pub fn log_held(&self) -> Option<(u64, String)> {
        let (from, holder) = self.log_holder()?;
        Some((self.wal.bytes_since(from)?, holder))
    }

    pub(crate) fn note_held_log(&self) {
        self.metrics.log_held_bytes.set(self.log_held().map_or(0, |(bytes, _)| bytes));
    }

    /// Gives back the log that no dictionary needs for recovery.
    pub(crate) fn trim_log(&self) {
        // Read first: every commit up to here is in the memtables looked at below; later ones
        // may be in the log but not in a memtable yet, and are kept.
        let visible = self.snapshots.visible();
        // Second: a prepared transaction is known to the memtables before it leaves this set.
        let prepared = self.prepared.needed_from();
        let mut dicts = self.open_dicts();
        dicts.retain(|dict| !dict.is_dropped());
        if dicts.iter().any(|dict| !dict.is_secure.load(Ordering::Acquire)) {
            return;
        }
        let keep_from = dicts
            .iter()
            .filter_map(|dict| dict.tree.oldest_unwritten())
            .chain(self.held_log.lock().values().map(|held| held.needs_from))
            .chain(prepared)
            .fold(visible + 1, u64::min);
        let is_noted = if self.wal.can_trim(keep_from) { self.note_file_ages() } else { Ok(()) };
        match is_noted.and_then(|()| self.wal.trim(keep_from)) {
            Ok(()) => self.background.trim_failure.clear(),
            Err(error) => self.note_failure(&self.background.trim_failure, "log trim", &error),
        }
    }

    /// Gives back what was given up at the end of the file. If that fails, a later checkpoint does it.
    fn cut_if_due(&self, dict: &Dict) {
        let left = dict.cuts.load(Ordering::Acquire);
        if left > 0 && dict.file.reclaim().is_ok() {
            // Who sets it anew in between is served by the rest.
            let _ = dict.cuts.compare_exchange(left, left - 1, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// As [`Dict::secure`]; a table that was dropped needs nothing.
    pub(crate) fn secure_or_note(&self, dict: &Dict) {
        match dict.secure() {
            // Perhaps nobody could note this checkpoint: it is one from before a crash.
            Ok(true) => self.catalog.ages.lock().made(dict.id, dict.file.epoch()),
            Ok(false) => {}
            Err(_) if dict.is_dropped() => {}
            Err(error) => self.note_failure(&dict.checkpoint_failure, "sync after recovery", &error),
        }
    }

    pub(crate) fn checkpoint_or_note(&self, dict: &Arc<Dict>) -> bool {
        match self.checkpoint_dict(dict) {
            Ok(()) => {
                dict.checkpoint_failure.clear();
                true
            }
            Err(error) => {
                self.note_failure(&dict.checkpoint_failure, "checkpoint", &error);
                false
            }
        }
    }

    /// Checkpoints one dictionary now.
    pub(crate) fn checkpoint_dict(&self, dict: &Arc<Dict>) -> Result<(), Error> {
        if dict.is_dropped() {
            return Ok(());
        }
        let since = dict.dirty_since.swap(0, Ordering::AcqRel);
        let started = self.vfs.now_micros();
        let result = dict.tree.checkpoint(
            || self.wal.last_seqno(),
            |seqno| self.wal.sync_up_to_seqno(seqno),
            || dict.auto_increment.load(Ordering::Acquire),
        );
        self.metrics.checkpoint_time.add(self.vfs.now_micros().saturating_sub(started));
        match result {
            Ok(_) => {
                self.catalog.ages.lock().made(dict.id, dict.file.epoch());
                Ok(())
            }
            // The table went away under the checkpoint: its file may be gone as well.
            Err(_) if dict.is_dropped() => Ok(()),
            Err(error) => {
                let _ =
                    dict.dirty_since.compare_exchange(0, since.max(1), Ordering::AcqRel, Ordering::Acquire);
                Err(error)
            }
        }
    }

    /// Called inside the gates of the dictionaries.
    pub(crate) fn mark_dirty(&self, dicts: &[Arc<Dict>]) {
        for dict in dicts {
            if dict.dirty_since.load(Ordering::Relaxed) == 0 {
                let now = self.vfs.now_micros().max(1);
                let _ = dict.dirty_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Sleeps for this writer's share of the debt, or refuses when flushing fails and memory
    /// would fill up. `is_patient`: whether it waits for memory of others, too.
    pub(crate) fn pay_for_debt(
        &self,
        dicts: &[Arc<Dict>],
        bytes: u64,
        is_patient: impl Fn() -> bool,
    ) -> Result<(), Error> {
        self.look_at_memory_if_grown();
        self.wait_for_memtables(dicts, is_patient)?;
        let unit = self.memtable_bytes as u64;
        let mut most = 0.0;
        for dict in dicts {
            let pressure = pressure(dict.tree.debt(), unit);
            if pressure > REFUSAL_PRESSURE {
                if let Some(error) = dict.job_failure.get() {
                    return Err(error);
                }
            }
            // What would come on top of the log that is kept for it already could never be given up. A full disk ends the
            // log's growth by itself, and the next write succeeds once there is space.
            if dict.checkpoint_failure.is_noted() && self.wal.kept_bytes() > self.log_kept_bytes_max {
                match dict.checkpoint_failure.get() {
                    None | Some(Error::DiskFull { .. }) => {}
                    Some(error) => return Err(error),
                }
            }
            most = f64::max(most, pressure);
        }
        if most <= 0.0 || self.background.workers == 0 {
            return Ok(());
        }
        let micros = price_micros(most, bytes);
        if micros > 0 {
            self.metrics.backpressure_waits.add(1);
            self.metrics.backpressure_time.add(micros);
            self.metrics.backpressure_time_max.raise(micros);
            std::thread::sleep(Duration::from_micros(micros));
        }
        Ok(())
    }

    /// Remembers and logs a failure, the same one only once until something succeeds.
    fn note_failure(&self, failure: &Failure, what: &str, error: &Error) {
        if failure.note(error, self.vfs.now_micros()) {
            self.log(LogLevel::Error, &format!("{what} failed: {error}"));
        }
    }
}

/// How far a tree is behind: 0 up to the soft limits, 1 at twice of them, and so on. `unit` is
/// the size of a memtable: one sealed memtable being written is normal, a second is a debt.
fn pressure(debt: Debt, unit: u64) -> f64 {
    let behind = |bytes: u64, soft: u64| (bytes as f64 - soft as f64) / soft as f64;
    behind(debt.sealed_bytes, 2 * unit).max(behind(debt.overdue_bytes, 8 * unit)).max(0.0)
}

/// The delay, in microseconds, of a writer of `bytes`.
fn price_micros(pressure: f64, bytes: u64) -> u64 {
    let micros = bytes as f64 * PRICE_NANOS_PER_BYTE * pressure * pressure / 1000.0;
    let pieces = (bytes / PAID_AT_ONCE_BYTES).clamp(1, DELAY_OF_ROW_MAX_MICROS / DELAY_MAX_MICROS);
    (micros as u64).min(pieces * DELAY_MAX_MICROS)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::db::options::Options;

    use super::*;

    #[test]
    fn with_few_threads_there_are_fewer_workers_and_with_too_few_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(Options { background_threads: 0, ..Options::new(dir.path().to_owned()) }).unwrap();
        for (given, expected) in [(3, None), (4, Some(1)), (6, Some(3)), (10, Some(4))] {
            let background = Arc::new(Background::new(4, 60));
            let left = Cell::new(given);
            let started = background.spawn_all(&db, |work| {
                left.set(left.get() - 1);
                if left.get() < 0 {
                    Err(io::Error::from_raw_os_error(11))
                } else {
                    std::thread::Builder::new().spawn(work)
                }
            });
            assert_eq!(started.ok(), expected, "{given} threads");
            assert_eq!(background.threads.lock().len(), usize::min(given as usize, 9));
            background.stop();
        }
        db.close().unwrap();
    }

    fn debt(sealed_bytes: u64, overdue_bytes: u64) -> Debt {
        Debt { sealed_bytes, overdue_bytes }
    }

    #[test]
    fn the_log_is_due_once_a_period() {
        let background = Background::new(0, 60);
        let due = |period_s: u64, ticks: u64| {
            background.set_log_sync_period(period_s);
            background.log_synced_micros.store(0, Ordering::Relaxed);
            let micros = TICK.as_micros() as u64;
            (1..=ticks).filter(|tick| background.is_log_due(tick * micros)).count()
        };
        assert_eq!(due(1, 120), 60);
        assert_eq!(due(30, 120), 2);
        assert_eq!(due(u64::MAX, 120), 0);
    }

    #[test]
    fn a_tree_that_keeps_up_costs_nothing() {
        assert_eq!(pressure(debt(0, 0), 1000), 0.0);
        assert_eq!(pressure(debt(2000, 8000), 1000), 0.0);
        assert_eq!(price_micros(0.0, 1 << 30), 0);
    }

    #[test]
    fn the_price_grows_with_the_debt_and_the_bytes_and_has_a_ceiling() {
        let little = pressure(debt(2500, 0), 1000);
        let much = pressure(debt(4000, 0), 1000);
        assert!(0.0 < little && little < much);
        assert!(price_micros(little, 100_000) < price_micros(much, 100_000));
        assert!(price_micros(much, 100_000) < price_micros(much, 200_000));
        assert_eq!(price_micros(100.0, PAID_AT_ONCE_BYTES), DELAY_MAX_MICROS);
        assert_eq!(price_micros(100.0, 2 * PAID_AT_ONCE_BYTES), 2 * DELAY_MAX_MICROS);
        assert_eq!(price_micros(100.0, u64::MAX), DELAY_OF_ROW_MAX_MICROS);
        assert!(price_micros(much, 200) < 100, "a single row pays microseconds");
    }
}
