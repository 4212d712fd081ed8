//! Random transactions against a model that knows snapshots, locks, savepoints and crashes.
//!
//! One thread drives several open transactions over a simulated disk; flushes, splits,
//! checkpoints, clean reopens and power cuts come in between. Every answer is checked: gets,
//! scans in both directions, lock outcomes, and after each reopen the whole content.
//! `PANDO_MODEL_OPS` sets the number of operations (a seed and the commit reproduce a run),
//! `PANDO_MODEL_SEED` the first seed.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use pandodb::{
    Compression, Cursor, Db, Error, FlushMode, LockMode, LockWait, LockedRead, Mark, Options, ReadMode,
    SimVfs, Table, TableSpec, TreeConfig, Txn, Vfs,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DICTS: usize = 2;
const TXNS: usize = 4;

type Key = (usize, Vec<u8>);
type Map = BTreeMap<Key, Vec<u8>>;

struct OpenTxn {
    txn: Txn,
    snapshot: Option<Rc<Map>>,
    /// Own writes, oldest first; `None` is a delete.
    ops: Vec<(Key, Option<Vec<u8>>)>,
    savepoints: Vec<(Mark, usize)>,
    locks: BTreeMap<Key, LockMode>,
    takes_gaps: bool,
    /// Dictionary, first key, first key after.
    gaps: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
}

impl OpenTxn {
    /// The newest own write of a key.
    fn own(&self, key: &Key) -> Option<Option<Vec<u8>>> {
        self.ops.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.clone())
    }

    /// What the transaction sees over `base`.
    fn view(&self, base: &Map) -> Map {
        let mut view = base.clone();
        for (key, value) in &self.ops {
            match value {
                Some(value) => view.insert(key.clone(), value.clone()),
                None => view.remove(key),
            };
        }
        view
    }
}

struct Driver {
    rng: ChaCha8Rng,
    vfs: Arc<SimVfs>,
    db: Arc<Db>,
    table: Arc<Table>,
    committed: Rc<Map>,
    txns: Vec<Option<OpenTxn>>,
    keys: u32,
    ops: u64,
    work: Work,
}

/// Background work that the databases of a run did; a test that never flushes proves nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    flushes: u64,
    leaf_splits: u64,
    node_splits: u64,
    compactions: u64,
    checkpoints: u64,
    dropped: u64,
    commits: u64,
    reopens: u64,
    spills: u64,
}

impl Work {
    fn add(&mut self, other: Work) {
        self.flushes += other.flushes;
        self.leaf_splits += other.leaf_splits;
        self.node_splits += other.node_splits;
        self.compactions += other.compactions;
        self.checkpoints += other.checkpoints;
        self.dropped += other.dropped;
        self.commits += other.commits;
        self.reopens += other.reopens;
        self.spills += other.spills;
    }

    fn of(db: &Db) -> Work {
        let m = db.metrics();
        Work {
            flushes: m.flushes.get(),
            leaf_splits: m.leaf_splits.get(),
            node_splits: m.node_splits.get(),
            compactions: m.compactions.get(),
            checkpoints: m.checkpoints.get(),
            dropped: m.versions_dropped.get(),
            commits: m.commits.get(),
            reopens: 0,
            spills: m.spills.get(),
        }
    }
}

fn tiny_trees(rng: &mut ChaCha8Rng) -> TreeConfig {
    let mut config = TreeConfig {
        memtable_bytes: rng.random_range(1..8) * 1024,
        leaf_raw_bytes: rng.random_range(1..6) * 1024,
        fanout_max: rng.random_range(2..6),
        buffer_runs_max: rng.random_range(2..8),
        ..TreeConfig::default()
    };
    config.run.segment_raw_bytes = rng.random_range(128..1024);
    config
}

/// From "spill each write" to "never".
fn any_budget(rng: &mut ChaCha8Rng) -> u64 {
    [1, 3000, 6000, 20_000, u64::MAX][rng.random_range(0..5)]
}

fn open(vfs: &Arc<SimVfs>, tree: TreeConfig, write_set_bytes: u64) -> Arc<Db> {
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 1 << 20;
    options.log_file_bytes = 64 << 10;
    options.log_kept_bytes_max = 1 << 20;
    options.checkpoint_period_s = 1_000_000;
    options.flush_mode = FlushMode::Commit;
    options.tree = tree;
    options.write_set_bytes = write_set_bytes;
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).expect("the database opens")
}

impl Driver {
    fn new(seed: u64) -> Driver {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let vfs = SimVfs::new(seed);
        vfs.create_dir_all(Path::new("/data/db")).unwrap();
        vfs.sync_dir(Path::new("/data")).unwrap();
        vfs.sync_dir(Path::new("/")).unwrap();
        let tree = tiny_trees(&mut rng);
        let db = open(&vfs, tree, any_budget(&mut rng));
        let spec = TableSpec {
            path: "./db/t".into(),
            indexes: vec!["k".into()],
            compression: Compression::Lz4,
            temporary: false,
            auto_increment: 0,
            ..TableSpec::default()
        };
        db.create_table(&spec).unwrap();
        let table = db.open_table("./db/t").unwrap();
        let keys = [16, 300, 5000, 1_000_000][rng.random_range(0..4)];
        let txns = (0..TXNS).map(|_| None).collect();
        Driver { rng, vfs, db, table, committed: Rc::default(), txns, keys, ops: 0, work: Work::default() }
    }

    fn key(&mut self) -> Key {
        let n = self.rng.random_range(0..self.keys);
        (self.rng.random_range(0..DICTS), format!("{n:06}").into_bytes())
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.rng.random_ratio(1, 200) { 3000 } else { self.rng.random_range(0..60) };
        let byte = self.rng.random_range(b'a'..=b'z');
        let mut value = vec![byte; len];
        value.extend_from_slice(&self.ops.to_le_bytes());
        value
    }

    /// Whether some other open transaction has the key locked against `mode`.
    fn held_by_other(&self, me: usize, key: &Key, mode: LockMode) -> bool {
        self.txns.iter().enumerate().any(|(i, other)| {
            i != me
                && other
                    .as_ref()
                    .and_then(|o| o.locks.get(key))
                    .is_some_and(|held| mode == LockMode::Exclusive || *held == LockMode::Exclusive)
        })
    }

    fn step(&mut self) {
        self.ops += 1;
        let slot = self.rng.random_range(0..TXNS);
        if self.txns[slot].is_none() {
            let mut txn = self.db.begin();
            let takes_gaps = slot % 2 == 1;
            txn.set_takes_gaps(takes_gaps);
            self.txns[slot] = Some(OpenTxn {
                txn,
                snapshot: None,
                ops: Vec::new(),
                savepoints: Vec::new(),
                locks: BTreeMap::new(),
                takes_gaps,
                gaps: Vec::new(),
            });
        }
        match self.rng.random_range(0..1000) {
            0..=399 => self.write(slot),
            400..=449 => {
                let burst = self.rng.random_range(10..100);
                self.ops += burst - 1;
                (0..burst).for_each(|_| self.write(slot));
            }
            450..=649 => self.get(slot),
            650..=719 => self.get_locked(slot),
            720..=754 => self.scan(slot),
            755..=769 => self.locked_scan(slot),
            770..=799 => self.savepoint(slot),
            800..=809 => self.rollback_to(slot),
            810..=919 => self.commit(slot),
            920..=939 => self.rollback(slot),
            940..=979 => self.db.run_jobs().unwrap(),
            980..=989 => self.db.tick(),
            990..=993 => self.db.checkpoint().unwrap(),
            994 if self.rng.random_ratio(1, 5) => self.truncate_if_idle(),
            994 => {
                self.txns.iter_mut().for_each(|slot| *slot = None);
                self.check();
            }
            995..=996 => self.check(),
            997 => self.reopen(false),
            998 => self.reopen(true),
            _ => self.db.run_jobs().unwrap(),
        }
    }

    fn write(&mut self, slot: usize) {
        let key = self.key();
        let value = if self.rng.random_ratio(1, 4) { None } else { Some(self.value()) };
        let blocked = self.held_by_other(slot, &key, LockMode::Exclusive);
        let in_gap =
            value.is_some() && !self.committed.contains_key(&key) && self.in_gap_of_other(slot, &key);
        let open = self.txns[slot].as_mut().unwrap();
        let in_gap = in_gap && open.own(&key).is_none();
        let result = match &value {
            Some(value) => open.txn.put(&self.table, key.0, &key.1, value, LockWait::NoWait),
            None => open.txn.delete(&self.table, key.0, &key.1, LockWait::NoWait),
        };
        match result {
            Ok(()) => {
                assert!(!blocked, "a key locked by another was written");
                assert!(!in_gap, "a key was inserted into a gap of another");
                open.locks.insert(key.clone(), LockMode::Exclusive);
                open.ops.push((key, value));
            }
            // The key was locked before the gap was met.
            Err(Error::WouldBlock) if in_gap && !blocked => {
                open.locks.insert(key, LockMode::Exclusive);
            }
            Err(Error::WouldBlock) => assert!(blocked, "a free key was refused"),
            Err(other) => panic!("write: {other}"),
        }
    }

    fn get(&mut self, slot: usize) {
        let key = self.key();
        let committed = self.committed.clone();
        let open = self.txns[slot].as_mut().unwrap();
        let expected = match open.own(&key) {
            // An own write answers without a snapshot.
            Some(own) => own,
            None => open.snapshot.get_or_insert(committed).get(&key).cloned(),
        };
        let got = open.txn.get(&self.table, key.0, &key.1).unwrap();
        assert_eq!(got, expected, "get of {key:?}");
    }

    fn get_locked(&mut self, slot: usize) {
        let key = self.key();
        let mode = if self.rng.random() { LockMode::Exclusive } else { LockMode::Shared };
        let skip = self.rng.random();
        let wait = if skip { LockWait::SkipLocked } else { LockWait::NoWait };
        let blocked = self.held_by_other(slot, &key, mode);
        let committed = self.committed.clone();
        let open = self.txns[slot].as_mut().unwrap();
        let expected = open.own(&key).unwrap_or_else(|| committed.get(&key).cloned());
        let strongest = match open.locks.get(&key) {
            Some(LockMode::Exclusive) => LockMode::Exclusive,
            _ => mode,
        };
        match open.txn.get_locked(&self.table, key.0, &key.1, mode, wait) {
            Ok(LockedRead::Skipped) => assert!(skip && blocked),
            Err(Error::WouldBlock) => assert!(!skip && blocked),
            Ok(read) => {
                assert!(!blocked, "a lock was granted beside {key:?}'s holder");
                let got = if let LockedRead::Row(value) = read { Some(value) } else { None };
                assert_eq!(got, expected, "locked get of {key:?}");
                // Without gaps, what is not there is not kept locked.
                if got.is_some() || open.takes_gaps {
                    open.locks.insert(key, strongest);
                }
            }
            Err(other) => panic!("locked get: {other}"),
        }
    }

    /// A scan from a random key in a random direction, with turns.
    fn scan(&mut self, slot: usize) {
        let (dict, from) = self.key();
        let latest = self.rng.random();
        let forward: bool = self.rng.random();
        let turn_after = if self.rng.random_ratio(1, 4) { self.rng.random_range(1..5) } else { usize::MAX };
        let steps = self.rng.random_range(1..100);
        let committed = self.committed.clone();
        let open = self.txns[slot].as_mut().unwrap();
        let base = if latest { committed } else { open.snapshot.get_or_insert(committed).clone() };
        let view: Vec<(Vec<u8>, Vec<u8>)> = open
            .view(&base)
            .into_iter()
            .filter(|((d, _), _)| *d == dict)
            .map(|((_, key), value)| (key, value))
            .collect();
        let mode = if latest { ReadMode::Latest } else { ReadMode::Snapshot };
        let txn = &mut open.txn;
        let writes = self.rng.random_ratio(1, 3);
        let mut cursor = txn.cursor(&self.table, dict);
        let start = view.partition_point(|(key, _)| *key < from);
        let mut at: Option<usize>;
        if forward {
            cursor.seek(txn, &from, mode).unwrap();
            at = Some(start).filter(|at| *at < view.len());
        } else {
            cursor.seek_before(txn, &from, mode).unwrap();
            at = start.checked_sub(1);
        }
        let mut ahead = forward;
        for step in 0..steps {
            Self::check_position(&cursor, &view, at);
            let Some(place) = at else { return };
            if step == turn_after {
                ahead = !ahead;
            }
            if writes && self.rng.random_ratio(1, 5) {
                // Of no concern to the cursor, whether it is spilled or not.
                self.write(slot);
            }
            let txn = &mut self.txns[slot].as_mut().unwrap().txn;
            if ahead {
                cursor.next(txn).unwrap();
                at = Some(place + 1).filter(|at| *at < view.len());
            } else {
                cursor.prev(txn).unwrap();
                at = place.checked_sub(1);
            }
        }
    }

    fn in_gap_of_other(&self, me: usize, key: &Key) -> bool {
        let others =
            self.txns.iter().enumerate().filter(|(i, _)| *i != me).filter_map(|(_, open)| open.as_ref());
        others.flat_map(|open| &open.gaps).any(|(dict, from, to)| {
            *dict == key.0 && *from <= key.1 && to.as_ref().is_none_or(|to| key.1 < *to)
        })
    }

    /// A scan that locks what it comes to, in one direction, up to a stop or some number of rows.
    fn locked_scan(&mut self, slot: usize) {
        let (dict, from) = self.key();
        let stop = if self.rng.random() { Some(self.key().1) } else { None };
        let mode = if self.rng.random() { LockMode::Exclusive } else { LockMode::Shared };
        let (forward, steps) = (self.rng.random::<bool>(), self.rng.random_range(1..30));
        let view = self.txns[slot].as_ref().unwrap().view(&self.committed);
        let wanted = |key: &Vec<u8>| match forward {
            true => *key >= from && stop.as_ref().is_none_or(|stop| key < stop),
            false => *key < from && stop.as_ref().is_none_or(|stop| key >= stop),
        };
        let mut rows: Vec<(Key, Vec<u8>)> =
            view.into_iter().filter(|((d, key), _)| *d == dict && wanted(key)).collect();
        if !forward {
            rows.reverse();
        }
        let free: Vec<bool> =
            rows.iter().map(|(key, _)| dict != 0 || !self.held_by_other(slot, key, mode)).collect();
        let mut expected = rows.iter().zip(&free).filter(|(_, free)| **free).map(|(row, _)| row);
        let open = self.txns[slot].as_mut().unwrap();
        let txn = &mut open.txn;
        let mut cursor = txn.cursor(&self.table, dict);
        cursor.set_stop(stop.as_deref());
        let read = ReadMode::Locked(mode, LockWait::SkipLocked);
        if forward {
            cursor.seek(txn, &from, read).unwrap();
        } else {
            cursor.seek_before(txn, &from, read).unwrap();
        }
        let mut reached = None;
        for step in 0..steps {
            let row = expected.next();
            let got = cursor.valid().then(|| (cursor.key(), cursor.value()));
            assert_eq!(got, row.map(|((_, key), value)| (&key[..], &value[..])), "locked scan");
            reached = row.map(|((_, key), _)| key.clone());
            let Some((key, _)) = row else { break };
            if dict == 0 {
                let held = open.locks.entry(key.clone()).or_insert(mode);
                if mode == LockMode::Exclusive {
                    *held = mode;
                }
            }
            if step + 1 < steps {
                if forward {
                    cursor.next(txn).unwrap();
                } else {
                    cursor.prev(txn).unwrap();
                }
            }
        }
        if open.takes_gaps {
            let gap = match forward {
                true => (
                    dict,
                    from,
                    reached
                        .map(|mut key| {
                            key.push(0);
                            key
                        })
                        .or(stop),
                ),
                false => (dict, reached.or(stop).unwrap_or_default(), Some(from)),
            };
            open.gaps.push(gap);
        }
    }

    fn check_position(cursor: &Cursor, view: &[(Vec<u8>, Vec<u8>)], at: Option<usize>) {
        let expected = at.map(|at| (&view[at].0[..], &view[at].1[..]));
        let got = cursor.valid().then(|| (cursor.key(), cursor.value()));
        assert_eq!(got, expected, "scan");
    }

    fn savepoint(&mut self, slot: usize) {
        let open = self.txns[slot].as_mut().unwrap();
        if !open.savepoints.is_empty() && self.rng.random_ratio(1, 3) {
            let (mark, _) = open.savepoints.swap_remove(self.rng.random_range(0..open.savepoints.len()));
            open.savepoints.sort();
            open.txn.release_mark(mark);
            return;
        }
        open.savepoints.push((open.txn.mark(), open.ops.len()));
    }

    fn rollback_to(&mut self, slot: usize) {
        let open = self.txns[slot].as_mut().unwrap();
        if open.savepoints.is_empty() {
            return;
        }
        let keep = self.rng.random_range(0..open.savepoints.len());
        let (mark, ops) = open.savepoints[keep];
        open.savepoints.truncate(keep + 1);
        open.txn.rollback_to(mark).unwrap();
        open.ops.truncate(ops);
    }

    fn commit(&mut self, slot: usize) {
        let mut open = self.txns[slot].take().unwrap();
        let after = open.view(&self.committed);
        open.txn.commit().unwrap();
        if !open.ops.is_empty() {
            self.committed = Rc::new(after);
        }
    }

    fn rollback(&mut self, slot: usize) {
        let mut open = self.txns[slot].take().unwrap();
        open.txn.rollback();
    }

    fn truncate_if_idle(&mut self) {
        self.txns.iter_mut().for_each(|slot| *slot = None);
        self.db.truncate_table("./db/t").unwrap();
        self.committed = Rc::default();
    }

    /// Everything readable, in order, and equal to the committed state.
    fn check(&mut self) {
        self.compare_all();
        let nobody = self.txns.iter().all(Option::is_none);
        for dict in self.table.dicts() {
            dict.tree().verify().unwrap();
            if nobody {
                assert_eq!(dict.used_bytes(), dict.tree().stats().disk_bytes, "space is leaked");
            }
        }
    }

    fn compare_all(&mut self) {
        let mut txn = self.db.begin();
        let mut got = Map::new();
        for dict in 0..DICTS {
            let mut cursor = txn.cursor(&self.table, dict);
            cursor.seek_first(&mut txn, ReadMode::Latest).unwrap();
            while cursor.valid() {
                got.insert((dict, cursor.key().to_vec()), cursor.value().to_vec());
                cursor.next(&mut txn).unwrap();
            }
        }
        let missing: BTreeSet<_> = self.committed.keys().filter(|k| !got.contains_key(*k)).collect();
        let extra: BTreeSet<_> = got.keys().filter(|k| !self.committed.contains_key(*k)).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
        assert_eq!(got, *self.committed);
    }

    /// Closes the database, cleanly or by a power cut, and opens it with other parameters.
    fn reopen(&mut self, crash: bool) {
        self.txns.iter_mut().for_each(|slot| *slot = None);
        self.work.add(Work { reopens: 1, ..Work::of(&self.db) });
        if crash {
            self.vfs = self.vfs.crash();
        } else {
            self.db.close().unwrap();
        }
        let tree = tiny_trees(&mut self.rng);
        self.db = open(&self.vfs, tree, any_budget(&mut self.rng));
        self.table = self.db.open_table("./db/t").unwrap();
        self.compare_all();
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_million_random_operations_agree_with_the_model() {
    let total = number("PANDO_MODEL_OPS", 1_000_000);
    let first = number("PANDO_MODEL_SEED", 1);
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let per_seed = 20_000;
    let next = std::sync::atomic::AtomicU64::new(first);
    let end = first + total.div_ceil(per_seed);
    let work = std::sync::Mutex::new(Work::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if seed >= end {
                    return;
                }
                let told = Told(seed);
                let mut driver = Driver::new(seed);
                while driver.ops < per_seed {
                    driver.step();
                }
                driver.check();
                driver.work.add(Work::of(&driver.db));
                work.lock().unwrap().add(driver.work);
                std::mem::forget(told);
            });
        }
    });
    let work = work.into_inner().unwrap();
    println!("{total} operations: {work:?}");
    if total >= 1_000_000 {
        let Work {
            flushes,
            leaf_splits,
            node_splits,
            compactions,
            checkpoints,
            dropped,
            commits,
            reopens,
            spills,
        } = work;
        for done in
            [flushes, leaf_splits, node_splits, compactions, checkpoints, dropped, commits, reopens, spills]
        {
            assert!(done > 100, "the run did not exercise the engine: {work:?}");
        }
    }
}

/// Says which seed a panic belongs to.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("the run with seed {} failed", self.0);
    }
}
