//! Recovery with several lanes brings back what one lane does, whatever memory it may take: commits over several tables,
//! prepared transactions resolved late, anew or never, private runs, truncations, counters.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{count, disk, fill, for_each_row, options, spec, Lines};
use pandodb::{Db, LockWait, LogLevel, Options, SimVfs, Table, Txn, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const TABLES: usize = 5;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn path(at: usize) -> String {
    format!("./db/t{at}")
}

fn rows_of(db: &Arc<Db>, table: &Arc<Table>, dict: usize) -> Rows {
    let mut rows = Rows::new();
    let mut txn = db.begin();
    for_each_row(&mut txn, table, dict, false, |key, value| _ = rows.insert(key.to_vec(), value.to_vec()));
    rows
}

fn open(vfs: &Arc<SimVfs>, options: Options) -> Arc<Db> {
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).unwrap()
}

/// What a history leaves behind.
struct Left {
    rows: Vec<Rows>,
    counters: Vec<u64>,
    /// Names of the transactions prepared and not resolved.
    unresolved: Vec<Vec<u8>>,
}

/// Changes some rows of one to three tables, and notes that in `rows`.
fn change(rng: &mut ChaCha8Rng, txn: &mut Txn, tables: &[Arc<Table>], first_key: u32, rows: &mut [Rows]) {
    let count = if rng.random_ratio(1, 20) { 400 } else { rng.random_range(1..12) };
    let of = [rng.random_range(0..TABLES), rng.random_range(0..TABLES), rng.random_range(0..TABLES)];
    for _ in 0..count {
        let at = of[rng.random_range(0..3)];
        let key = format!("{:06}", first_key + rng.random_range(0..300)).into_bytes();
        let value = (rng.random_ratio(3, 4)).then(|| format!("{:x}", rng.random::<u128>()).into_bytes());
        for dict in 0..2 {
            match &value {
                Some(value) => txn.put(&tables[at], dict, &key, value, LockWait::NoWait).unwrap(),
                None => txn.delete(&tables[at], dict, &key, LockWait::NoWait).unwrap(),
            }
        }
        match value {
            Some(value) => _ = rows[at].insert(key, value),
            None => _ = rows[at].remove(&key),
        }
    }
}

/// A random history; the same for the same seed.
fn history(seed: u64) -> (Arc<SimVfs>, Left) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let vfs = disk(seed);
    let mut options = options(&Lines::default());
    // Spilled now and then.
    options.write_set_bytes = 12 << 10;
    let db = open(&vfs, options);
    (0..TABLES).for_each(|at| db.create_table(&spec(&path(at))).unwrap());
    let tables: Vec<Arc<Table>> = (0..TABLES).map(|at| db.open_table(&path(at)).unwrap()).collect();
    let mut left =
        Left { rows: vec![Rows::new(); TABLES], counters: vec![0; TABLES], unresolved: Vec::new() };
    let mut waiting: Vec<(Vec<u8>, Vec<Rows>)> = Vec::new();
    for step in 0..120u32 {
        match rng.random_range(0..20) {
            0 => {
                let at = rng.random_range(0..TABLES);
                // Nobody holds a lock in it.
                if waiting.is_empty() {
                    db.truncate_table(&path(at)).unwrap();
                    left.rows[at].clear();
                    left.counters[at] = 0;
                }
            }
            1 => {
                let at = rng.random_range(0..TABLES);
                let next = left.counters[at] + rng.random_range(1..50);
                let mut txn = db.begin();
                txn.raise_auto_increment(&tables[at], next).unwrap();
                let key = format!("{step:06}").into_bytes();
                for dict in 0..2 {
                    txn.put(&tables[at], dict, &key, b"counted", LockWait::NoWait).unwrap();
                }
                txn.commit().unwrap();
                left.rows[at].insert(key, b"counted".to_vec());
                left.counters[at] = next;
            }
            // Rows of its own: others go on while it waits.
            2 | 3 => {
                let mut txn = db.begin();
                let mut own = vec![Rows::new(); TABLES];
                change(&mut rng, &mut txn, &tables, 1000 * (step + 1), &mut own);
                let xid = format!("xid {step}").into_bytes();
                txn.prepare(&xid).unwrap();
                txn.detach();
                waiting.push((xid, own));
            }
            4 if !waiting.is_empty() => {
                let (xid, own) = waiting.swap_remove(rng.random_range(0..waiting.len()));
                match rng.random() {
                    true => {
                        assert!(db.commit_by_xid(&xid).unwrap());
                        left.rows.iter_mut().zip(own).for_each(|(rows, own)| rows.extend(own));
                    }
                    false => assert!(db.rollback_by_xid(&xid).unwrap()),
                }
            }
            5 => db.tick(),
            6 => {
                db.run_jobs().unwrap();
                if rng.random_ratio(1, 3) {
                    db.checkpoint().unwrap();
                }
            }
            _ => {
                let mut txn = db.begin();
                change(&mut rng, &mut txn, &tables, 0, &mut left.rows);
                txn.commit().unwrap();
            }
        }
    }
    left.unresolved = waiting.into_iter().map(|(xid, _)| xid).collect();
    left.unresolved.sort();
    drop(tables);
    drop(db);
    (vfs.crash(), left)
}

/// Whether the database is what the history left behind.
fn check(db: &Arc<Db>, left: &Left, what: &str) {
    for (at, expected) in left.rows.iter().enumerate() {
        let table = db.open_table(&path(at)).unwrap();
        assert!(db.check_table(&table, &mut |_| true).is_ok(), "{what}: table {at}");
        for dict in 0..2 {
            let found = rows_of(db, &table, dict);
            let lost = expected.keys().find(|key| !found.contains_key(*key));
            let too_much = found.keys().find(|key| !expected.contains_key(*key));
            assert!(found == *expected, "{what}: table {at}, {dict}: {lost:?} lost, {too_much:?} too much");
        }
        assert!(table.auto_increment() >= left.counters[at], "{what}: the counter of table {at}");
    }
    let mut unresolved = db.report_prepared(1000);
    unresolved.sort();
    assert_eq!(unresolved, left.unresolved, "{what}");
}

#[test]
fn lanes_bring_back_what_one_lane_does() {
    for seed in 0..24 {
        let lanes = [0, 1, 2, 3, 8][seed as usize % 5];
        let replay_memory_bytes = [0, 6 << 10, 1 << 30][seed as usize % 3];
        let files_open_max = [2, 3, 64, 64][seed as usize % 4];
        let what = format!("seed {seed}, {lanes} lanes, {replay_memory_bytes} bytes, {files_open_max} files");
        let (vfs, left) = history(seed);
        let lines = Lines::default();
        let with = |background_threads| Options {
            background_threads,
            replay_memory_bytes,
            files_open_max,
            ..options(&lines)
        };
        let db = open(&vfs, with(lanes));
        check(&db, &left, &what);
        // Also when power fails before anything is written behind it: with what the first recovery wrote.
        drop(db);
        let db = open(&vfs.crash(), with(0));
        check(&db, &left, &format!("{what}, again"));
        for xid in &left.unresolved {
            assert!(db.rollback_by_xid(xid).unwrap(), "{what}");
        }
        db.close().unwrap();
        let lines = lines.lock().unwrap();
        let worst = lines.iter().find(|(level, _)| *level == LogLevel::Error);
        assert!(worst.is_none(), "{what}: {worst:?}");
    }
}

#[test]
fn memtables_wait_in_memory_while_there_is_enough_of_it() {
    let replayed = |replay_memory_bytes| {
        let vfs = disk(1);
        let db = open(&vfs, options(&Lines::default()));
        (0..TABLES).for_each(|at| db.create_table(&spec(&path(at))).unwrap());
        for part in 0..20 * TABLES as u32 {
            fill(&db, &path(part as usize % TABLES), part * 30..part * 30 + 30).unwrap();
        }
        drop(db);
        let db = open(&vfs.crash(), Options { replay_memory_bytes, ..options(&Lines::default()) });
        (0..TABLES).for_each(|at| assert_eq!(count(&db, &path(at)).unwrap(), 600));
        let tables = (0..TABLES).map(|at| db.open_table(&path(at)).unwrap());
        let of =
            |table: Arc<Table>| table.dicts().iter().map(|dict| dict.tree().memtable_bytes()).sum::<u64>();
        (db.metrics().memtable_written_bytes.get(), tables.map(of).sum::<u64>())
    };
    // A memtable has 4 KiB here.
    let (none, some, all) = (replayed(0), replayed(12 << 10), replayed(1 << 30));
    assert_eq!(all.0, 0, "nothing is written");
    assert!(none.0 > some.0 && some.0 > 0, "{none:?} {some:?} {all:?}");
    assert!(none.1 < some.1 && some.1 < all.1, "{none:?} {some:?} {all:?}");
}
