//! Random work, DDL included, on a disk that fails: single I/Os fail or are misread, the disk fills up, the
//! process is killed, power is cut, also in the middle of recovery. A model knows what every acknowledged
//! operation has made of the tables. What was refused must have changed nothing, and of what a failed log
//! left in doubt there is all or nothing after the next start.
//!
//! `PANDO_CHAOS_STEPS` sets the number of steps (a seed and the commit reproduce a run), `PANDO_CHAOS_SEED`
//! the first seed.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::{disk, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, LockWait, ReadMode, SimVfs, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const NAMES: [&str; 4] = ["./db/a", "./db/b", "./db/c", "./db/d"];

/// Rows, the same in both dictionaries, and the least the auto-increment counter can be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rows {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    counter: u64,
}

type Tables = BTreeMap<&'static str, Rows>;

/// What happened in a run: one that meets no trouble proves nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    commits: u64,
    ddl: u64,
    refused: u64,
    in_doubt: u64,
    restarts: u64,
    failed_starts: u64,
    flushes: u64,
    checkpoints: u64,
}

struct Chaos {
    rng: ChaCha8Rng,
    vfs: Arc<SimVfs>,
    db: Arc<Db>,
    tables: Tables,
    /// What the tables are if the operation during which the log failed was done after all.
    in_doubt: Option<Tables>,
    /// A fault was armed since the start.
    is_faulty: bool,
    seen: Seen,
}

fn open(vfs: &Arc<SimVfs>, rng: &mut ChaCha8Rng) -> pandodb::Result<Arc<Db>> {
    let mut options = options(&Lines::default());
    options.tree.memtable_bytes = rng.random_range(1..6) * 1024;
    options.tree.leaf_raw_bytes = rng.random_range(1..6) * 1024;
    options.tree.fanout_max = rng.random_range(2..6);
    options.tree.buffer_runs_max = rng.random_range(2..8);
    options.log_file_bytes = rng.random_range(16..64) << 10;
    options.log_kept_bytes_max = rng.random_range(64..512) << 10;
    options.files_open_max = rng.random_range(1..12);
    options.checkpoint_period_s = if rng.random() { 0 } else { 1_000_000 };
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files)
}

/// Whether the database is what the model says. Errors: what could not be read.
fn agrees(db: &Arc<Db>, tables: &Tables) -> pandodb::Result<Result<(), String>> {
    for name in NAMES {
        let expected = match (db.table_exists(name), tables.get(name)) {
            (false, None) => continue,
            (true, Some(expected)) => expected,
            (exists, _) => return Ok(Err(format!("{name} exists: {exists}"))),
        };
        let table = db.open_table(name)?;
        for dict in 0..2 {
            let mut txn = db.begin();
            let mut cursor = txn.cursor(&table, dict);
            cursor.seek_first(&mut txn, ReadMode::Latest)?;
            let mut rows = BTreeMap::new();
            while cursor.valid() {
                rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
                cursor.next(&mut txn)?;
            }
            if rows != expected.rows {
                let (found, wanted) = (rows.len(), expected.rows.len());
                return Ok(Err(format!("dictionary {dict} of {name}: {found} rows and not the {wanted}")));
            }
        }
        if table.auto_increment() < expected.counter {
            return Ok(Err(format!("counter of {name}: {} of {}", table.auto_increment(), expected.counter)));
        }
    }
    Ok(Ok(()))
}

impl Chaos {
    fn new(seed: u64) -> Chaos {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let vfs = disk(seed);
        let db = open(&vfs, &mut rng).unwrap();
        Chaos { rng, vfs, db, tables: Tables::new(), in_doubt: None, is_faulty: false, seen: Seen::default() }
    }

    fn is_latched(&self) -> bool {
        self.db.metrics().read_only_latched.get() > 0
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.rng.random_range(0..NAMES.len())]
    }

    fn step(&mut self) {
        match self.rng.random_range(0..1000) {
            0..=549 => self.transaction(),
            550..=649 => self.ddl(),
            650..=749 => self.jobs(),
            750..=799 => self.check(),
            800..=899 => self.arm(),
            900..=949 => self.fill_disk(),
            _ => self.restart(),
        }
        if self.is_latched() {
            assert!(self.is_faulty, "the log failed on a disk that did not");
            self.restart();
        }
    }

    /// The operation came back; `after` is what it should have made of the tables.
    fn came_back(&mut self, result: pandodb::Result<()>, after: Tables) -> bool {
        let latched = self.is_latched();
        match result {
            Ok(()) => self.tables = after,
            Err(_) if latched => {
                self.seen.in_doubt += 1;
                self.in_doubt.get_or_insert(after);
            }
            Err(Error::Engine(EngineError::ReadOnly { reason })) => {
                panic!("read-only, but not latched: {reason}")
            }
            Err(_) => {
                self.seen.refused += 1;
                return false;
            }
        }
        true
    }

    /// Some writes to one or two tables, committed or not.
    fn transaction(&mut self) {
        let mut after = self.tables.clone();
        let mut txn = self.db.begin();
        for _ in 0..self.rng.random_range(1..3) {
            let name = self.name();
            let Some(rows) = after.get_mut(name) else { continue };
            let Ok(table) = self.db.open_table(name) else { return };
            for _ in 0..self.rng.random_range(1..40) {
                let key = format!("{:05}", self.rng.random_range(0..2000)).into_bytes();
                if self.rng.random_ratio(1, 4) {
                    for dict in 0..2 {
                        txn.delete(&table, dict, &key, LockWait::NoWait).unwrap();
                    }
                    rows.rows.remove(&key);
                } else {
                    let value = vec![self.rng.random(); self.rng.random_range(0..80)];
                    for dict in 0..2 {
                        txn.put(&table, dict, &key, &value, LockWait::NoWait).unwrap();
                    }
                    rows.rows.insert(key, value);
                }
            }
            if self.rng.random_ratio(1, 3) {
                rows.counter += self.rng.random_range(1..10);
                txn.raise_auto_increment(&table, rows.counter).unwrap();
            }
        }
        if self.rng.random_ratio(1, 8) {
            // The counter in memory stays raised, which the model allows.
            return;
        }
        let result = txn.commit();
        self.seen.commits += u64::from(self.came_back(result, after));
    }

    fn ddl(&mut self) {
        let (name, other) = (self.name(), self.name());
        let mut after = self.tables.clone();
        let result = match self.rng.random_range(0..10) {
            0..=4 => {
                let created = self.db.create_table(&spec(name));
                if after.contains_key(name) {
                    assert!(matches!(created, Err(EngineError::Exists { .. })), "{created:?}");
                    return;
                }
                after.insert(name, Rows::default());
                created
            }
            5..=6 => {
                after.remove(name);
                self.db.drop_table(name)
            }
            7..=8 => {
                if let (Some(rows), false) = (after.get(name).cloned(), after.contains_key(other)) {
                    after.remove(name);
                    after.insert(other, rows);
                }
                self.db.rename_table(name, other)
            }
            _ => {
                if let Some(rows) = after.get_mut(name) {
                    *rows = Rows::default();
                }
                self.db.truncate_table(name)
            }
        };
        self.seen.ddl += u64::from(self.came_back(result.map_err(Error::from), after));
    }

    fn jobs(&mut self) {
        let result = match self.rng.random_range(0..3) {
            0 => self.db.run_jobs().map_err(Error::from),
            1 => self.db.checkpoint(),
            _ => {
                self.db.tick();
                Ok(())
            }
        };
        assert!(result.is_ok() || self.is_faulty, "{result:?}");
    }

    fn check(&mut self) {
        match agrees(&self.db, &self.tables) {
            Ok(found) => found.unwrap(),
            Err(error) => assert!(self.is_faulty, "{error}"),
        }
    }

    fn arm(&mut self) {
        let kinds = [FaultKind::Error, FaultKind::DiskFull, FaultKind::ShortRead, FaultKind::FlippedRead];
        let kind = kinds[self.rng.random_range(0..kinds.len())];
        let n = self.rng.random_range(1..60);
        self.vfs.fail_io_after(n, kind);
        self.is_faulty = true;
    }

    /// A stretch of work on a disk with little room: refused or done, and nothing fails for good.
    fn fill_disk(&mut self) {
        if self.is_faulty {
            return;
        }
        let room = self.rng.random_range(0..200_000);
        self.vfs.set_capacity(Some(self.vfs.used_bytes() + room));
        self.is_faulty = true;
        for _ in 0..self.rng.random_range(5..60) {
            match self.rng.random_range(0..10) {
                0..=5 => self.transaction(),
                6..=7 => self.ddl(),
                _ => self.jobs(),
            }
            assert!(!self.is_latched(), "a full disk has latched the log");
        }
        self.vfs.set_capacity(None);
        self.is_faulty = false;
        self.check();
    }

    /// Ends the process in one way or another, and starts it until it comes up whole.
    fn restart(&mut self) {
        self.seen.flushes += self.db.metrics().flushes.get();
        self.seen.checkpoints += self.db.metrics().checkpoints.get();
        self.seen.restarts += 1;
        let is_cut = self.rng.random_ratio(1, 2);
        if self.rng.random() && !self.is_latched() {
            let closed = self.db.close();
            assert!(closed.is_ok() || self.is_faulty, "{closed:?}");
        }
        if is_cut {
            self.vfs = self.vfs.crash();
        }
        self.vfs.clear_faults();
        while self.rng.random_ratio(1, 3) {
            self.start_in_trouble();
        }
        self.db = open(&self.vfs, &mut self.rng).expect("a start without faults");
        self.is_faulty = false;
        let as_told = agrees(&self.db, &self.tables).unwrap();
        if let (Err(told), Some(after)) = (&as_told, self.in_doubt.take()) {
            agrees(&self.db, &after)
                .unwrap()
                .unwrap_or_else(|e| panic!("neither one nor the other: {told}; {e}"));
            self.tables = after;
        } else {
            as_told.unwrap();
            self.in_doubt = None;
        }
    }

    /// A start that meets a fault, and perhaps another end at once.
    fn start_in_trouble(&mut self) {
        let kinds = [FaultKind::Error, FaultKind::Sticky, FaultKind::DiskFull, FaultKind::FlippedRead];
        let kind = kinds[self.rng.random_range(0..kinds.len())];
        let n = self.rng.random_range(1..150);
        self.vfs.fail_io_after(n, kind);
        match open(&self.vfs, &mut self.rng) {
            Ok(db) => {
                if self.rng.random() {
                    db.tick();
                }
                if self.rng.random() {
                    let _ = db.close();
                }
            }
            Err(_) => self.seen.failed_starts += 1,
        }
        if self.rng.random() {
            self.vfs = self.vfs.crash();
        }
        self.vfs.clear_faults();
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Says which seed a panic belongs to.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the run with seed {} failed", self.0);
        }
    }
}

#[test]
fn whatever_fails_tables_are_what_their_users_were_told() {
    const STEPS_EACH: u64 = 200;
    let (total, first) = (number("PANDO_CHAOS_STEPS", 20_000), number("PANDO_CHAOS_SEED", 1));
    let end = first + total.div_ceil(STEPS_EACH);
    let (next, runs) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return;
                }
                let _told = Told(seed);
                let mut chaos = Chaos::new(seed);
                (0..STEPS_EACH).for_each(|_| chaos.step());
                chaos.restart();
                runs.lock().unwrap().push(chaos.seen);
            });
        }
    });
    let runs = runs.into_inner().unwrap();
    let sum = |f: fn(&Seen) -> u64| runs.iter().map(f).sum::<u64>();
    let seen = [
        ("commits", sum(|s| s.commits)),
        ("DDL", sum(|s| s.ddl)),
        ("refused", sum(|s| s.refused)),
        ("in doubt", sum(|s| s.in_doubt)),
        ("restarts", sum(|s| s.restarts)),
        ("failed starts", sum(|s| s.failed_starts)),
        ("flushes", sum(|s| s.flushes)),
        ("checkpoints", sum(|s| s.checkpoints)),
    ];
    println!("{total} steps: {seen:?}");
    assert!(total < 20_000 || seen.iter().all(|(_, times)| *times > 20), "{seen:?}");
}
