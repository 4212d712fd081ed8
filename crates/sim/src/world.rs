//! One simulated machine: its disk, the database on it, the clients, and the model of what they were told.

use std::rc::Rc;
use std::sync::Arc;

use pandodb::{Db, EngineError, Error, FlushMode, SimVfs, Table};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::client::Client;
use crate::counts::Counts;
use crate::indexes::Build;
use crate::model::{State, TableId, TableState};
use crate::setup::{self, Lines};
use crate::trace::Trace;
use crate::worker::Worker;

/// What a check gives: the text says what is wrong.
pub(crate) type Check<T = ()> = Result<T, String>;

/// A table of the model, and the engine's.
pub(crate) type OpenTable = (TableId, Rc<TableState>, Arc<Table>);

/// Names that tables can have.
pub(crate) const NAMES: [&str; 4] = ["./db/a", "./db/b", "./db/c", "./db/d"];

const CLIENTS: usize = 4;

/// How far an acknowledged change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the process: its end may lose it, because the coordinator remembers the decision.
    Process,
    /// As far as the flush mode says.
    Mode(FlushMode),
    /// Surely on the disk.
    Disk,
}

/// States kept that a crash may bring back, before the log is synced.
const UNSYNCED_MAX: usize = 24;

pub(crate) struct World {
    pub rng: ChaCha8Rng,
    pub disk: Arc<SimVfs>,
    pub db: Arc<Db>,
    pub lines: Lines,
    /// What a crash may leave, oldest first. The last one is what clients see.
    pub history: Vec<Rc<State>>,
    /// What the operation that is going on will make of the last one: a crash may leave that, too.
    pub in_flight: Option<Rc<State>>,
    /// How many of the last states in `history` the end of the process alone may lose.
    pub unwritten: usize,
    pub clients: Vec<Option<Client>>,
    /// An index that is being built.
    pub build: Option<Build>,
    /// Jobs and checkpoints in the middle of what they do.
    pub workers: Vec<Worker>,
    pub mode: FlushMode,
    /// A fault was armed since the last start: operations may give errors.
    pub is_faulty: bool,
    /// The last operation gave an error because of that.
    pub met_trouble: bool,
    /// How many crashes up the tree of worlds this one began.
    pub depth: u32,
    pub next_table: TableId,
    /// Makes each value another one.
    pub serial: u64,
    pub counts: Counts,
    pub trace: Trace,
}

/// Says what is wrong unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}
pub(crate) use ensure;

/// Notes a line of the trace, if somebody will read it.
macro_rules! note {
    ($world:expr, $($text:tt)+) => {
        if $world.trace.is_on() {
            $world.trace.add(format!($($text)+));
        }
    };
}
pub(crate) use note;

impl World {
    /// A new machine with an empty database.
    pub(crate) fn new(seed: u64, trace: Trace) -> Check<World> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = setup::disk(seed);
        let mode = choose_mode(&mut rng);
        let lines = Lines::default();
        let db = setup::open(&disk, &mut rng, mode, &lines).map_err(|e| format!("an empty database: {e}"))?;
        Ok(World::on(disk, db, rng, mode, lines, trace))
    }

    pub(crate) fn on(
        disk: Arc<SimVfs>,
        db: Arc<Db>,
        rng: ChaCha8Rng,
        mode: FlushMode,
        lines: Lines,
        trace: Trace,
    ) -> World {
        World {
            rng,
            disk,
            db,
            lines,
            history: vec![Rc::default()],
            in_flight: None,
            unwritten: 0,
            clients: (0..CLIENTS).map(|_| None).collect(),
            build: None,
            workers: Vec::new(),
            mode,
            is_faulty: false,
            met_trouble: false,
            depth: 0,
            next_table: 1,
            serial: 0,
            counts: Counts::default(),
            trace,
        }
    }

    pub(crate) fn current(&self) -> &Rc<State> {
        self.history.last().expect("there is always a state")
    }

    /// One step of the scheduler: a client does something, or the machine does.
    pub(crate) fn step(&mut self) -> Check {
        self.counts.steps += 1;
        self.disk.advance_micros(self.rng.random_range(0..200_000));
        self.in_flight = None;
        let before = self.history.clone();
        self.ask_for_copies();
        let goes_on = !self.workers.is_empty() && self.rng.random_ratio(1, 2);
        let builds = self.build.is_some();
        match self.rng.random_range(0..1000) {
            n if builds && n < 150 => self.go_on_building()?,
            n if goes_on && n < 400 => self.job_step()?,
            _ if goes_on => self.go_on_with_one()?,
            0..=679 => self.client_step()?,
            680..=699 => self.resolve_by_xid()?,
            700..=724 => self.delete_range()?,
            725..=819 => self.job_step()?,
            820..=849 => self.ddl_step()?,
            850..=879 => self.arm_fault(),
            880..=889 => self.fill_disk()?,
            890..=914 => self.sync_log()?,
            915..=929 => self.check_whole()?,
            930..=944 => self.restart()?,
            _ => self.tick_step()?,
        }
        self.examine_copies(before)?;
        if self.is_latched() {
            ensure!(self.is_faulty, "the log failed on a disk that did not");
            self.restart()?;
        }
        if self.history.len() > UNSYNCED_MAX {
            self.sync_log()?;
        }
        self.trace.lines(&self.lines);
        Ok(())
    }

    pub(crate) fn is_latched(&self) -> bool {
        self.db.metrics().read_only_latched.get() > 0
    }

    /// The answer of an operation that nothing but a fault may make fail: `None` if one did.
    pub(crate) fn settle<T>(&mut self, what: &str, result: pandodb::Result<T>) -> Check<Option<T>> {
        match result {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::Engine(error)) if self.is_faulty => {
                note!(self, "  refused: {error}");
                self.met_trouble = true;
                Ok(None)
            }
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    /// An operation that makes a new state came back: what clients were told now is so. False: it was
    /// refused and has done nothing.
    pub(crate) fn came_back(
        &mut self,
        what: &str,
        result: pandodb::Result<()>,
        after: Rc<State>,
        kept: Kept,
    ) -> Check<bool> {
        match result {
            Ok(()) => {
                match kept {
                    Kept::Disk | Kept::Mode(FlushMode::Commit) => {
                        self.history.clear();
                        self.unwritten = 0;
                    }
                    Kept::Mode(FlushMode::Write) => self.unwritten = 0,
                    Kept::Mode(FlushMode::Lazy) | Kept::Process => self.unwritten += 1,
                }
                self.history.push(after);
                Ok(true)
            }
            Err(error) if self.is_latched() => {
                note!(self, "  in doubt: {error}");
                self.counts.in_doubt += 1;
                Ok(true)
            }
            // A file whose sync has failed takes no private runs until it is opened anew.
            Err(Error::Engine(EngineError::ReadOnly { reason })) if !self.is_faulty => {
                Err(format!("{what}: read-only, but not latched: {reason}"))
            }
            Err(error) => {
                self.counts.refused += 1;
                self.settle(what, Err::<(), _>(error))?;
                Ok(false)
            }
        }
    }

    /// Makes durable what was acknowledged before it was.
    pub(crate) fn sync_log(&mut self) -> Check {
        let synced = self.db.flush_logs();
        if self.settle("syncing the log", synced)?.is_some() {
            self.forget_past();
        }
        Ok(())
    }

    /// No crash brings back what was before the newest state.
    pub(crate) fn forget_past(&mut self) {
        self.history.drain(..self.history.len() - 1);
        self.unwritten = 0;
    }

    /// What the end of the process alone may leave.
    pub(crate) fn written(&self) -> Vec<Rc<State>> {
        let lost = self.unwritten.min(self.history.len() - 1);
        self.history[self.history.len() - 1 - lost..].to_vec()
    }

    /// A table that there is, opened; `None` if there is none or a fault keeps it from being opened.
    pub(crate) fn some_table(&mut self) -> Check<Option<OpenTable>> {
        let tables: Vec<TableId> = self.current().tables.keys().copied().collect();
        match tables.choose(&mut self.rng) {
            Some(id) => self.open_table(*id),
            None => Ok(None),
        }
    }

    /// This one.
    pub(crate) fn open_table(&mut self, id: TableId) -> Check<Option<OpenTable>> {
        let state = self.current().tables[&id].clone();
        let opened = self.db.open_table(NAMES[state.name]).map_err(Error::from);
        let table = self.settle("opening a table", opened)?;
        Ok(table.map(|table| (id, state, table)))
    }

    /// A background job of some tree, or all there are.
    fn job_step(&mut self) -> Check {
        match self.rng.random_range(0..6) {
            0..=1 => return self.one_job(),
            2..=3 => return self.begin_job(),
            _ => {}
        }
        note!(self, "all jobs");
        let result = self.db.run_jobs().map_err(Error::from);
        self.settle("jobs", result).map(|_| ())
    }

    pub(crate) fn one_job(&mut self) -> Check {
        let Some((id, dict, table)) = self.tree_to_work_in()? else { return Ok(()) };
        note!(self, "a job of dictionary {dict} of table {id}");
        let result = table.dicts()[dict].tree().run_job().map_err(Error::from);
        self.settle("a job", result).map(|_| ())
    }

    fn tick_step(&mut self) -> Check {
        if self.rng.random_ratio(1, 4) {
            return self.begin_checkpoint();
        }
        self.end_workers()?;
        if self.rng.random_ratio(1, 4) {
            note!(self, "checkpoint");
            let result = self.db.checkpoint();
            self.settle("a checkpoint", result)?;
        } else {
            note!(self, "tick");
            self.disk.advance_micros(self.rng.random_range(0..4_000_000));
            self.db.tick();
        }
        Ok(())
    }

    /// Adds what the database did to the counts; before it goes.
    pub(crate) fn count_work(&mut self) {
        let metrics = self.db.metrics();
        self.counts.stretches += metrics.row_lock_stretches.get();
        self.counts.prepared_anew += metrics.log_prepares_renewed.get();
        self.counts.flushes += metrics.flushes.get();
        self.counts.splits += metrics.leaf_splits.get() + metrics.node_splits.get();
        self.counts.compactions += metrics.compactions.get();
        self.counts.checkpoints += metrics.checkpoints.get();
        self.counts.ios += self.disk.io_count();
    }
}

pub(crate) fn choose_mode(rng: &mut ChaCha8Rng) -> FlushMode {
    match rng.random_range(0..4) {
        0 => FlushMode::Lazy,
        1 => FlushMode::Write,
        _ => FlushMode::Commit,
    }
}
