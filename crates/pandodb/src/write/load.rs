//! Bulk loads: many rows into a table, encoded, sorted and written by worker threads.
//!
//! Life of a load:
//! 1. [`Txn::begin_load`] locks the table's dictionaries as a whole, if they are empty and nobody else has any lock or
//!    uncommitted write there. Otherwise [`Txn::begin_load_beside`] begins one that locks nothing, and looks at what is there when it
//!    ends (`load_beside`), or [`Txn::begin_load_by_row`] one that does so for each row before it joins (`load_by_row`); or there is no
//!    load, and rows go one by one.
//! 2. The caller hands over batches of rows in the form it has them ([`BulkLoad::submit`]); a worker has
//!    them encoded ([`RowEncoder`]) into an entry for each dictionary, and the sorters of `pando_load` turn the
//!    entries into runs. What is not sorted yet takes no more than its part of the memory for loads (`pando_load::Memory`): beyond that
//!    `submit` waits.
//! 3. [`Txn::finish_load`] merges and syncs, and adds the runs to the transaction as a spilled level (`spill`).
//!    From there on they are writes like others: its own reads see them, a mark before them undoes them, a
//!    commit or a prepared commit adopts them by one record of the log, everything else forgets them.
//!
//! What holds:
//! * Until the finish the transaction has written nothing: who reads in it, reads none of the rows. A caller
//!   whose statement might, does not load.
//! * Rows with a key that is there twice are found in the merge: [`LoadEnd::Duplicate`] tells the first, in the
//!   order of the rows (of those whose key the table had before: in the order of keys), and nothing has been written. Who has to know of each row at once asks before it
//!   ([`Txn::admit_to_load`]).
//! * Locking scans of others that come after the beginning find no row, and hold their gaps; the finish waits
//!   for these, as an insert does, and writes only when nobody holds any.
//! * The commit moves the runs into the tree by reference: into an empty one as leaves, nothing is rewritten.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pando_base::locks::{Condvar, Mutex, MutexGuard};
use pando_base::planted::{is_planted, Bug};
use pando_base::{panics, DictId, Error as EngineError};
use pando_load::{finish, Admissions, Entries, Finished, Held, Setting, Sorter, Stage, Task, Workers};
use pando_run::Run;

use crate::db::Db;
use crate::error::Result;
use crate::table::spill::Level;
use crate::table::{Dict, Table};
use crate::txn::transaction::{LockWait, Txn};
use crate::write::load_beside::Loaded;

/// How often who waits looks around.
const LOOK: Duration = Duration::from_millis(50);

/// Turns batches of rows into entries, on any thread.
pub trait RowEncoder: Send + Sync {
    /// Rows as the caller has them.
    type Batch: Send;
    /// Adds an entry for each row to each of `entries`, one for each dictionary; the last one is for the table's large values, if it
    /// may have any.
    ///
    /// # Errors
    /// A number that the end of the load tells ([`LoadEnd::Refused`]). A panic goes on in the thread that ends it
    /// ([`Txn::finish_load`]). An entry that is longer than a file can have fails the load.
    fn encode(&self, batch: Self::Batch, entries: &mut [Entries]) -> std::result::Result<(), i32>;
}

/// Where a load is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// In a table that it has locked as a whole.
    Alone,
    /// In one that has rows, or in which others are at work: it locks its keys at the end (`load_beside`).
    Beside,
    /// The same, but it locks the keys of each row before that joins (`load_by_row`).
    BesideByRow,
}

/// A load under way; dropping it gives it up. See the head of this file.
pub struct BulkLoad<E: RowEncoder + 'static> {
    table: Arc<Table>,
    setting: Setting,
    sorters: Vec<Arc<Sorter>>,
    unique: Vec<bool>,
    pub(crate) ground: Ground,
    encoder: Arc<E>,
    flow: Arc<Flow>,
    /// Keys seen, where the caller asks before each row.
    pub(crate) admissions: Admissions,
    /// The batch that the caller fills, and one that he has for later.
    filling: Held,
    batches: u64,
    rows: u64,
    /// Of these, rows that were inserted one by one before, and undone.
    rows_counted: u64,
    /// How many loads the database has.
    loads: Arc<AtomicU64>,
}

impl<E: RowEncoder> std::fmt::Debug for BulkLoad<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// How a load ended without an operating error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// The rows are written.
    Loaded,
    /// Two rows have the same key, or one and a row of the table: of dictionary `index`. Nothing is written.
    Duplicate {
        /// The dictionary.
        index: usize,
        /// The key.
        key: Vec<u8>,
        /// The value of the row that came second.
        value: Vec<u8>,
        /// The value of the row that came first.
        existing: Vec<u8>,
    },
    /// The encoder refused a row.
    Refused(i32),
    /// The caller gave it up.
    Cancelled,
}

/// Batches between `submit` and the sorters.
#[derive(Debug, Default)]
struct Flow {
    state: Mutex<FlowState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct FlowState {
    batches: usize,
    refused: Option<i32>,
    /// The first panic of the encoder.
    panic: Option<Box<dyn Any + Send>>,
}

/// What the encoder says of a batch; or its panic.
type Encoded = std::result::Result<std::result::Result<(), i32>, Box<dyn Any + Send>>;

impl Flow {
    fn arrived(&self, bytes: u64, encoded: Encoded, setting: &Setting) {
        setting.memory.let_go(bytes);
        let mut state = self.state.lock();
        state.batches -= 1;
        if !matches!(encoded, Ok(Ok(()))) {
            setting.cancelled.store(true, Ordering::Release);
        }
        match encoded {
            Ok(Ok(())) => {}
            Ok(Err(code)) => _ = state.refused.get_or_insert(code),
            Err(panic) => _ = state.panic.get_or_insert(panic),
        }
        drop(state);
        self.moved.notify_all();
    }
}

impl Txn {
    /// Begins a load of a table in which there is nothing; `None` if there is something, or if others are at
    /// work in it. `unique[i]` says whether keys of dictionary `i` could be equal.
    ///
    /// # Errors
    /// Those of reading. A mistake of the caller: the table is of another database or was dropped, `unique` is not as long as the table has
    /// dictionaries, the transaction is prepared.
    pub fn begin_load<E: RowEncoder>(
        &mut self,
        table: &Arc<Table>,
        unique: &[bool],
        encoder: E,
    ) -> Result<Option<BulkLoad<E>>> {
        self.check_load(table, unique)?;
        // Looked at before the lock as well, which stays in any case.
        let begins = can_be_loaded(table)
            && self.is_empty_here(table)?
            && self.lock_whole(table)
            && self.is_empty_here(table)?;
        Ok(begins.then(|| self.new_load(table, unique, encoder, Ground::Alone)))
    }

    /// Begins a load of a table in which others may be at work, and which may have rows, but none that this transaction has written;
    /// `None` if it has. Nothing is locked before it ends.
    ///
    /// # Errors
    /// A mistake of the caller, as of [`Txn::begin_load`].
    pub fn begin_load_beside<E: RowEncoder>(
        &mut self,
        table: &Arc<Table>,
        unique: &[bool],
        encoder: E,
    ) -> Result<Option<BulkLoad<E>>> {
        self.begin_load_on(table, unique, encoder, Ground::Beside)
    }

    /// Beside others.
    pub(crate) fn begin_load_on<E: RowEncoder>(
        &mut self,
        table: &Arc<Table>,
        unique: &[bool],
        encoder: E,
        ground: Ground,
    ) -> Result<Option<BulkLoad<E>>> {
        self.check_load(table, unique)?;
        let begins = can_be_loaded(table) && !self.has_written_to(table);
        Ok(begins.then(|| self.new_load(table, unique, encoder, ground)))
    }

    fn check_load(&self, table: &Table, unique: &[bool]) -> Result<()> {
        self.dict_to_write(table, 0)?;
        let (wanted, given) = (table.dicts().len(), unique.len());
        if wanted == given {
            return Ok(());
        }
        let what = format!("a load of table {} is told of {wanted} dictionaries, not {given}", table.path());
        Err(EngineError::argument(what).into())
    }

    fn new_load<E: RowEncoder>(
        &mut self,
        table: &Arc<Table>,
        unique: &[bool],
        encoder: E,
        ground: Ground,
    ) -> BulkLoad<E> {
        // From here on others see that somebody writes.
        table.all_dicts().for_each(|dict| self.touch(dict));
        let db = &self.db;
        let loads = db.loads.clone();
        let others = loads.fetch_add(1, Ordering::AcqRel);
        let setting = Setting {
            workers: db.load_workers(),
            memory: db.load_memory.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            stages: db.load_stages.clone(),
        };
        let filling = Held::new(&db.load_memory, 2 * db.load_memory.batch_bytes(others + 1));
        let share = (unique.len() as u64 + 1) * (others + 1);
        let sorter = |(dict, unique): (&Arc<Dict>, &bool)| Sorter::new(&dict.tree, &setting, *unique, share);
        let sorters = table.all_dicts().zip(unique.iter().chain([&false])).map(sorter).collect();
        BulkLoad {
            table: table.clone(),
            sorters,
            unique: unique.to_vec(),
            ground,
            encoder: Arc::new(encoder),
            flow: Arc::new(Flow::default()),
            admissions: Admissions::new(unique.len(), &db.load_memory),
            filling,
            batches: 0,
            rows: 0,
            rows_counted: 0,
            setting,
            loads,
        }
    }

    /// Locks all keys of all dictionaries, if nobody else has a lock or uncommitted writes there.
    fn lock_whole(&mut self, table: &Table) -> bool {
        let dicts: Vec<DictId> = table.dicts().iter().map(|dict| dict.id).collect();
        let is_alone = |txn: &Txn| {
            let nobody_writes = |dict: &Arc<Dict>| dict.writers.others(&txn.writes).is_empty();
            let nobody_locks = !txn.db.locks.others_hold_any(&txn.handle, &dicts);
            is_planted(Bug::LoadBesideOthers) || table.all_dicts().all(nobody_writes) && nobody_locks
        };
        if !is_alone(self) {
            return false;
        }
        dicts.iter().for_each(|dict| self.db.locks.lock_all(&self.handle, *dict));
        // What others got before they could meet the lock is seen now. If there is something, the lock stays:
        // rows go one by one, and this transaction needs most keys anyway.
        is_alone(self)
    }

    /// Whether this transaction has written to any of the table's dictionaries.
    pub fn has_written_to(&self, table: &Table) -> bool {
        if self.check_own(table).is_err() {
            return false;
        }
        let state = self.writes.read();
        let mut dicts = table.all_dicts();
        dicts.any(|dict| state.set.keys(dict.id) > 0 || state.has_spilled(dict.id))
    }

    /// Whether no row is in the table, committed or of this transaction. Requires the lock of the whole to stay true.
    fn is_empty_here(&self, table: &Table) -> Result<bool> {
        if self.has_written_to(table) {
            return Ok(false);
        }
        Ok(table.is_empty()?)
    }

    /// Ends a load. `watch` is called every few milliseconds with the part that is done, and says whether to go
    /// on. Whatever comes back, the load is over; the rows are written only if it says so.
    ///
    /// # Errors
    /// Those of reading, writing and syncing, and of waiting for gaps of others; an entry was too long.
    ///
    /// # Panics
    /// If the encoder did, with what it has said; the load is over then, too.
    pub fn finish_load<E: RowEncoder>(
        &mut self,
        mut load: BulkLoad<E>,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<LoadEnd> {
        self.dict_to_write(&load.table, 0)?;
        load.settle(watch);
        let cancelled = load.setting.cancelled.clone();
        let mut look = |part: f64| {
            if !watch(part) {
                cancelled.store(true, Ordering::Release);
            }
        };
        let finished = finish(&load.sorters, &load.setting, &mut look);
        let (refused, panic) = {
            let mut state = load.flow.state.lock();
            (state.refused, state.panic.take())
        };
        if let Some(panic) = panic {
            drop(load);
            std::panic::resume_unwind(panic);
        }
        if let Some(code) = refused {
            return Ok(LoadEnd::Refused(code));
        }
        let runs = match finished? {
            Finished::Runs(runs) => runs,
            Finished::Duplicate(index, found) => {
                let (key, value, existing) = (found.key, found.value, found.existing);
                return Ok(LoadEnd::Duplicate { index, key, value, existing });
            }
            Finished::Cancelled => return Ok(LoadEnd::Cancelled),
        };
        let parts = loaded_parts(&load.table, &runs);
        if load.ground == Ground::Beside {
            let mut goes_on = || watch(1.0);
            // Large values are numbered, and so alone.
            let is_unique = |index: usize| load.unique.get(index).is_some_and(|unique| *unique);
            if let Some(end) = self.claim_loaded(&parts, is_unique, &mut goes_on)? {
                return Ok(end);
            }
        }
        self.add_loaded(&load.table, &parts, load.rows)?;
        self.db.metrics.rows_inserted.add(load.rows.saturating_sub(load.rows_counted));
        self.db.metrics.rows_loaded.add(load.rows);
        self.db.metrics.loads.add(1);
        Ok(LoadEnd::Loaded)
    }

    /// Makes runs the transaction's newest writes: all at once, when no gap of others is in the way.
    fn add_loaded(&mut self, table: &Arc<Table>, parts: &[Loaded<'_>], rows: u64) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        if let Some(large) = &table.large {
            large.note_some();
        }
        // What was written before to other tables comes first.
        self.writes.spill(self.touched(), true, self.db.spill_threads())?;
        loop {
            let mut state = self.writes.write();
            let Some((dict, key)) = self.first_in_gaps(parts)? else {
                let from = state.set.mark();
                state.set.pass(rows);
                let to = state.set.mark();
                let mut runs: Vec<_> = parts.iter().map(|p| (p.dict.clone(), p.runs.to_vec())).collect();
                runs.sort_by_key(|(dict, _)| dict.id);
                state.levels.push(Arc::new(Level::loaded(from, to, runs)));
                state.net_rows.add(table.rows().id, i64::try_from(rows).unwrap_or(i64::MAX));
                state.changes += 1;
                self.handle.set_weight(state.set.ops() + 1);
                return Ok(());
            };
            drop(state);
            self.wait_for_gaps(&dict, &key, LockWait::Default)?;
        }
    }
}

/// An index that is being built would miss the rows.
fn can_be_loaded(table: &Table) -> bool {
    table.is_writable() && !table.has_unusable() && table.building.is_empty()
}

/// The dictionaries that have got something.
fn loaded_parts<'a>(table: &'a Table, runs: &'a [Vec<Arc<Run>>]) -> Vec<Loaded<'a>> {
    let parts = table.all_dicts().zip(runs).enumerate();
    let parts = parts.map(|(index, (dict, runs))| Loaded { index, dict, runs });
    parts.filter(|part| !part.runs.is_empty()).collect()
}

impl<E: RowEncoder> BulkLoad<E> {
    /// Hands over a batch of `rows` rows that takes `bytes` of memory. Waits while too much is on its way, of this load and of all,
    /// but not once the load is bound to fail; false then: its end says why.
    pub fn submit(&mut self, batch: E::Batch, rows: u64, bytes: u64) -> bool {
        self.submit_while(batch, rows, bytes, &mut || true)
    }

    /// The same, and does not wait once `goes_on`, which is asked now and then, says that the load is to end.
    pub fn submit_while(
        &mut self,
        batch: E::Batch,
        rows: u64,
        bytes: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        if !self.wait_to_submit(bytes, goes_on) {
            self.setting.cancelled.store(true, Ordering::Release);
            return false;
        }
        let number = self.batches;
        self.batches += 1;
        self.rows += rows;
        let (encoder, flow, setting) = (self.encoder.clone(), self.flow.clone(), self.setting.clone());
        let sorters = self.sorters.clone();
        self.setting.workers.run(Task::new(&self.setting.cancelled, move || {
            let mut entries: Vec<Entries> =
                sorters.iter().map(|s| s.new_batch(rows as usize, bytes)).collect();
            let stages = setting.stages.clone();
            let given_up = setting.cancelled.load(Ordering::Acquire);
            let encode = || if given_up { Ok(()) } else { encoder.encode(batch, &mut entries) };
            // Whoever waits for the batch would wait for ever, and a thread of all loads would end. The encoder is the caller's own, and
            // its entries go with the load.
            let encoded = stages.time(Stage::Encode, || panics::contain(encode));
            for (sorter, entries) in sorters.iter().zip(entries) {
                sorter.add(number, entries);
            }
            // Sorters count their own tasks: nothing is missed between here and there.
            flow.arrived(bytes, encoded, &setting);
        }));
        !self.setting.cancelled.load(Ordering::Acquire)
    }

    /// Until there is room for a batch, which is counted then. False: the load is to end.
    fn wait_to_submit(&self, bytes: u64, goes_on: &mut dyn FnMut() -> bool) -> bool {
        if !self.sorters.iter().all(|sorter| sorter.wait_for_room(goes_on)) {
            return false;
        }
        let memory = &self.setting.memory;
        let most = 8 * self.setting.workers.parallelism();
        let mut state = self.flow.state.lock();
        while state.batches > most || !memory.hold(bytes) {
            // One of each load is always on its way, so each goes on.
            if state.batches == 0 {
                memory.hold_in_any_case(bytes);
                break;
            }
            if self.is_given_up() || !MutexGuard::unlocked(&mut state, &mut *goes_on) {
                return false;
            }
            // It may have moved meanwhile.
            if state.batches > 0 {
                self.flow.moved.wait_for(&mut state, LOOK);
            }
        }
        state.batches += 1;
        true
    }

    fn is_given_up(&self) -> bool {
        self.setting.cancelled.load(Ordering::Acquire)
    }

    /// How many bytes a batch should have now: less where many are at it, as the partitions of a table are.
    pub fn batch_bytes(&mut self) -> u64 {
        let bytes = self.setting.memory.batch_bytes(self.loads.load(Ordering::Acquire));
        self.filling.change_to(2 * bytes);
        bytes
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the keys of each row are to be locked before it joins ([`Txn::admit_to_load`]).
    pub fn is_by_row(&self) -> bool {
        self.ground == Ground::BesideByRow
    }

    /// The first `rows` rows were inserted one by one before, and undone: they are counted already.
    pub fn set_counted(&mut self, rows: u64) {
        self.rows_counted = rows;
    }

    /// The encoder.
    pub fn encoder(&self) -> &E {
        &self.encoder
    }

    /// Rows handed over so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Waits until all batches have reached the sorters.
    fn settle(&mut self, watch: &mut dyn FnMut(f64) -> bool) {
        self.wait_for_batches(&mut || watch(0.0));
    }

    /// If the load is given up, which `goes_on` may say, only those that are being encoded are waited for.
    fn wait_for_batches(&self, goes_on: &mut dyn FnMut() -> bool) {
        let mut state = self.flow.state.lock();
        loop {
            if !MutexGuard::unlocked(&mut state, &mut *goes_on) {
                self.setting.cancelled.store(true, Ordering::Release);
            }
            if self.is_given_up() {
                MutexGuard::unlocked(&mut state, || self.setting.workers.end_given_up());
            }
            if state.batches == 0 {
                return;
            }
            self.flow.moved.wait_for(&mut state, LOOK);
        }
    }
}

impl<E: RowEncoder> Drop for BulkLoad<E> {
    fn drop(&mut self) {
        // No task outlives the load.
        self.wait_for_batches(&mut || false);
        self.sorters.iter().for_each(|sorter| sorter.give_up());
        self.loads.fetch_sub(1, Ordering::AcqRel);
        // What sorted parts have taken, and all of it if the load has failed, is free now.
        self.table.all_dicts().for_each(|dict| dict.cut_soon());
    }
}

impl Db {
    /// Who does the work of loads and of building indexes.
    pub fn load_workers(&self) -> Arc<dyn Workers> {
        match &self.load_pool {
            Some(pool) => pool.clone(),
            None => Arc::new(pando_load::Inline),
        }
    }

    /// How many threads may spill writes of one transaction; none but its own where nothing runs in the background.
    pub(crate) fn spill_threads(&self) -> usize {
        self.load_pool.as_ref().map_or(1, |pool| pool.parallelism())
    }

    /// Whether loads have memory for one more, of this table: without it rows go one by one.
    pub fn has_room_for_load(&self, table: &Table) -> bool {
        self.load_memory.has_room_for(table.all_dicts().count())
    }

    /// The memory that all loads share.
    pub fn load_memory(&self) -> Arc<pando_load::Memory> {
        self.load_memory.clone()
    }

    /// Puts what loads have cost into the counters.
    pub(crate) fn note_load_stages(&self) {
        let stages = &self.load_stages;
        let micros = |stage| stages.nanos(stage) / 1000;
        self.metrics.load_encode_time.set(micros(Stage::Encode));
        self.metrics.load_sort_time.set(micros(Stage::Sort));
        self.metrics.load_spill_time.set(micros(Stage::Spill));
        self.metrics.load_write_time.set(micros(Stage::Write));
        self.metrics.load_merge_time.set(micros(Stage::Merge));
        self.metrics.load_sync_time.set(micros(Stage::Sync));
        self.metrics.load_spilled_bytes.set(stages.spilled_bytes());
    }
}
