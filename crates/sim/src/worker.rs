//! Background work that does not end in one step. A worker is a job or a checkpoint in a thread of its own,
//! which stops before chosen writes to tables' files, in the middle of what it is doing; meanwhile the world
//! goes on: clients commit, other jobs run, tables are renamed and dropped, power is lost. Only one thread
//! runs at any time, and the seed decides which, so a run repeats exactly.
//!
//! A worker stopped at a write holds nothing that clients or jobs wait for (no I/O happens under a lock, I4), but
//! it may hold its turn: one checkpoint of a tree at a time, one job writing a memtable. Who would
//! wait for that turn would wait for ever here. So checkpoints go on only while no job is stopped, and whatever
//! waits for checkpoints or jobs (truncation, closing, ticks) comes after the workers have ended.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use pando_base::planted::inherit;
use pando_storage::vfs::{stop_before_writes, FaultKind};
use pandodb::{Db, Error, Table};
use rand::seq::IndexedRandom;
use rand::Rng;

use crate::model::TableId;
use crate::run::take_panic;
use crate::world::{note, Check, World, NAMES};

/// At most so many at a time.
const WORKERS_MAX: usize = 4;

/// Nobody computes for so long: two wait for each other.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where the superblocks of a file end.
const SUPERBLOCKS_END: u64 = 8192;

/// The last write of a worker is beyond this one.
const TO_THE_END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    World,
    /// The worker's, up to this write.
    Worker(u32),
    /// The worker has ended.
    Over,
}

/// Whose turn it is; only that thread runs.
struct Link {
    turn: Mutex<Turn>,
    changed: Condvar,
    /// The worker stands before the write of a superblock.
    at_superblock: AtomicBool,
}

impl Link {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn give(&self, to: Turn) {
        *self.turn() = to;
        self.changed.notify_all();
    }

    /// Waits while it is the turn of others; gives the turn that comes then, `None` if none ever comes.
    fn wait_while(&self, is_other: impl Fn(Turn) -> bool) -> Option<Turn> {
        let wait = self.changed.wait_timeout_while(self.turn(), PATIENCE, |turn| is_other(*turn));
        let (turn, result) = wait.unwrap_or_else(|poisoned| poisoned.into_inner());
        (!result.timed_out()).then_some(*turn)
    }
}

/// What a thread ended with: its operation's answer, or a panic.
type Ended = Result<pandodb::Result<()>, String>;

/// A job or a checkpoint that has begun.
pub(crate) struct Worker {
    what: String,
    is_checkpoint: bool,
    /// The tree that a job is at work in.
    tree: Option<(TableId, usize)>,
    link: Arc<Link>,
    thread: JoinHandle<Ended>,
}

impl Worker {
    /// Begins with the worker's first step still to come.
    #[expect(clippy::disallowed_methods, reason = "threads that take turns are this simulation's")]
    fn new(
        what: String,
        is_checkpoint: bool,
        stops_at_superblocks: bool,
        work: impl FnOnce() -> pandodb::Result<()> + Send + 'static,
    ) -> Worker {
        let link = Arc::new(Link {
            turn: Mutex::new(Turn::World),
            changed: Condvar::new(),
            at_superblock: AtomicBool::new(false),
        });
        let own = link.clone();
        let plant = inherit();
        let thread = std::thread::spawn(move || {
            plant();
            let ended = panic::catch_unwind(AssertUnwindSafe(|| {
                let Some(first) = own.wait_while(|turn| turn == Turn::World) else {
                    panic!("a worker never came to its turn");
                };
                stop_at_writes(own.clone(), first, stops_at_superblocks);
                work()
            }));
            let ended = ended.map_err(|_| take_panic());
            own.give(Turn::Over);
            ended
        });
        Worker { what, is_checkpoint, tree: None, link, thread }
    }

    /// Lets it run up to a write; false if it has ended.
    fn go_on(&self, writes: u32) -> Check<bool> {
        if *self.link.turn() == Turn::Over {
            return Ok(false);
        }
        self.link.give(Turn::Worker(writes));
        match self.link.wait_while(|turn| matches!(turn, Turn::Worker(_))) {
            Some(turn) => Ok(turn == Turn::World),
            None => Err(format!("{} waits for one that is stopped", self.what)),
        }
    }

    fn end(self) -> Ended {
        while self.go_on(TO_THE_END)? {}
        self.thread.join().unwrap_or_else(|_| Err(format!("{}: the thread is lost", self.what)))
    }
}

/// Has the calling thread stop at writes, as its turns say. `first` is its first turn.
fn stop_at_writes(link: Arc<Link>, first: Turn, stops_at_superblocks: bool) {
    let mut turn = first;
    stop_before_writes(Box::new(move |path: &Path, offset: u64| {
        // Writes of the log and of the catalog come with mutexes that commits and table changes want.
        if !path.starts_with("/data/db") {
            return;
        }
        let Turn::Worker(writes) = &mut turn else { return };
        *writes = writes.saturating_sub(1);
        // The moment from which a crash may leave the old checkpoint or the new one.
        let is_superblock = offset < SUPERBLOCKS_END && path.extension().is_some_and(|end| end == "pando");
        if *writes > 0 && !(is_superblock && stops_at_superblocks) {
            return;
        }
        link.at_superblock.store(is_superblock, Ordering::Relaxed);
        link.give(Turn::World);
        match link.wait_while(|turn| turn == Turn::World) {
            Some(next) => turn = next,
            None => panic!("the world waits for one that is stopped at a write of {}", path.display()),
        }
    }));
}

/// Every table that is open: who works on their trees keeps them from being closed.
fn all_tables(db: &Arc<Db>) -> Vec<Arc<Table>> {
    let there = NAMES.iter().filter(|name| db.table_exists(name));
    there.filter_map(|name| db.open_table(name).ok()).collect()
}

impl World {
    /// Begins a job of some tree, which goes on in later steps.
    pub(crate) fn begin_job(&mut self) -> Check {
        if self.workers.len() >= WORKERS_MAX {
            return self.go_on_with_one();
        }
        let Some((id, n, table)) = self.tree_to_work_in()? else { return Ok(()) };
        note!(self, "begins a job of dictionary {n} of table {id}");
        let mut worker = Worker::new(format!("a job of {id}.{n}"), false, false, move || {
            table.dicts()[n].tree().run_job().map(|_| ()).map_err(Error::from)
        });
        worker.tree = Some((id, n));
        self.begin_worker(worker)?;
        let stands = self.workers.last().is_some_and(|worker| worker.tree == Some((id, n)));
        match stands && self.rng.random_ratio(1, 4) {
            true => self.work_beside(id),
            false => Ok(()),
        }
    }

    /// Commits to a table in which a job stands, and more jobs there: what comes into the tree meanwhile must not
    /// be lost when the job ends.
    fn work_beside(&mut self, id: TableId) -> Check {
        self.examine_copies(self.history.clone())?;
        for _ in 0..self.rng.random_range(1..4) {
            self.in_flight = None;
            let before = self.history.clone();
            self.ask_for_copies();
            if let Some(open) = self.open_table(id)? {
                self.commit_some(open)?;
            }
            self.examine_copies(before)?;
            if self.is_latched() {
                return Ok(());
            }
            self.in_flight = None;
            for _ in 0..self.rng.random_range(0..4) {
                self.one_job()?;
            }
        }
        Ok(())
    }

    /// Some tree; often one in which a job stands in the middle: what comes into it meanwhile matters.
    pub(crate) fn tree_to_work_in(&mut self) -> Check<Option<(TableId, usize, Arc<Table>)>> {
        let there = |(id, _): &(TableId, usize)| self.current().tables.contains_key(id);
        let busy: Vec<_> = self.workers.iter().filter_map(|worker| worker.tree).filter(there).collect();
        let chosen = busy.choose(&mut self.rng).copied().filter(|_| self.rng.random_ratio(2, 3));
        let opened = match chosen {
            Some((id, _)) => self.open_table(id)?,
            None => self.some_table()?,
        };
        let Some((id, _, table)) = opened else { return Ok(None) };
        let n = match chosen {
            Some((_, n)) if n < table.dicts().len() => n,
            _ => self.rng.random_range(0..table.dicts().len()),
        };
        Ok(Some((id, n, table)))
    }

    /// Begins a checkpoint of everything.
    pub(crate) fn begin_checkpoint(&mut self) -> Check {
        self.end_workers()?;
        note!(self, "begins a checkpoint");
        let db = self.db.clone();
        let tables = all_tables(&db);
        let stops_at_superblocks = self.rng.random_ratio(2, 3);
        self.begin_worker(Worker::new("a checkpoint".into(), true, stops_at_superblocks, move || {
            let _open = tables;
            db.checkpoint()
        }))
    }

    fn begin_worker(&mut self, worker: Worker) -> Check {
        self.counts.workers += 1;
        self.workers.push(worker);
        self.go_on_with(self.workers.len() - 1)
    }

    /// Lets one of the workers go on a little.
    pub(crate) fn go_on_with_one(&mut self) -> Check {
        if self.workers.is_empty() {
            return Ok(());
        }
        let n = self.rng.random_range(0..self.workers.len());
        self.go_on_with(n)
    }

    fn go_on_with(&mut self, mut n: usize) -> Check {
        if self.workers[n].is_checkpoint {
            while let Some(job) = self.workers.iter().position(|worker| !worker.is_checkpoint) {
                self.end_worker(job)?;
            }
            n = 0;
        }
        let writes = match self.rng.random_range(0..4) {
            0 => 1,
            1 => TO_THE_END,
            _ => self.rng.random_range(1..5),
        };
        let at_superblock = self.workers[n].link.at_superblock.load(Ordering::Relaxed);
        if at_superblock && self.rng.random_ratio(1, 3) {
            self.arm_fault_at(&[FaultKind::Error, FaultKind::Error, FaultKind::DiskFull], 2);
        }
        let worker = &self.workers[n];
        note!(self, "  {} goes on", worker.what);
        if worker.go_on(writes)? {
            self.counts.worker_stops += 1;
            let at_superblock = worker.is_checkpoint && worker.link.at_superblock.load(Ordering::Relaxed);
            if at_superblock && self.rng.random_ratio(1, 3) {
                self.examine_copies(self.history.clone())?;
                return self.work_in_doubt();
            }
            return Ok(());
        }
        let is_checkpoint = worker.is_checkpoint;
        if !self.end_worker(n)? && is_checkpoint {
            self.work_in_doubt()?;
        }
        Ok(())
    }

    /// False: a fault has met it.
    fn end_worker(&mut self, n: usize) -> Check<bool> {
        let worker = self.workers.remove(n);
        let what = worker.what.clone();
        note!(self, "  {what} ends");
        let ended = worker.end()?;
        Ok(self.settle(&what, ended)?.is_some())
    }

    /// While a checkpoint stands before its superblock a crash leaves the old one, and after one that failed the
    /// old one or the new one: who takes space that these need?
    fn work_in_doubt(&mut self) -> Check {
        for _ in 0..self.rng.random_range(0..12) {
            self.in_flight = None;
            let before = self.history.clone();
            self.ask_for_copies();
            match self.rng.random_range(0..3) {
                0 => self.client_step()?,
                _ => self.one_job()?,
            }
            self.examine_copies(before)?;
            if self.is_latched() {
                return Ok(());
            }
        }
        self.in_flight = None;
        Ok(())
    }

    /// Lets all workers come to their ends, jobs first.
    pub(crate) fn end_workers(&mut self) -> Check {
        while !self.workers.is_empty() {
            let job = self.workers.iter().position(|worker| !worker.is_checkpoint);
            self.end_worker(job.unwrap_or(0))?;
        }
        Ok(())
    }

    /// The machine has ended, and the disk takes nothing more of its processes.
    pub(crate) fn lose_workers(&mut self) -> Check {
        while !self.workers.is_empty() {
            let job = self.workers.iter().position(|worker| !worker.is_checkpoint);
            let worker = self.workers.remove(job.unwrap_or(0));
            // Whatever it says: nobody hears it.
            let _ = worker.end()?;
        }
        Ok(())
    }
}
