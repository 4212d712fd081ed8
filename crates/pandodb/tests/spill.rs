//! Transactions larger than their memory: spilled, adopted, rolled back, through crashes and full disks.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, LockWait, Mark, ReadMode, SimVfs, Table, Txn, Vfs};

const T: &str = "./db/t";
/// Rows of the transaction that spills.
const ROWS: u32 = 300;

fn open(vfs: &Arc<SimVfs>) -> pandodb::Result<Arc<Db>> {
    let mut options = options(&Lines::default());
    options.write_set_bytes = 6000;
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files)
}

/// A table of `ROWS` rows, each the same in both dictionaries, checkpointed.
fn world() -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    common::fill(&db, T, 0..ROWS).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let table = db.open_table(T).unwrap();
    (vfs, db, table)
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// Updates half of the rows, deletes a third of the others, and inserts as many again.
fn change(txn: &mut Txn, table: &Table) -> pandodb::Result<()> {
    for n in 0..2 * ROWS {
        for dict in 0..2 {
            match n {
                _ if n >= ROWS || n % 2 == 0 => {
                    txn.put(table, dict, &key(n), format!("changed {n}").as_bytes(), LockWait::NoWait)?;
                }
                _ if n % 3 == 0 => txn.delete(table, dict, &key(n), LockWait::NoWait)?,
                _ => {}
            }
        }
    }
    Ok(())
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows_before() -> Rows {
    (0..ROWS).map(|n| (key(n), format!("value {n}").into_bytes())).collect()
}

fn rows_after() -> Rows {
    let value = |n: u32| match n {
        _ if n >= ROWS || n % 2 == 0 => Some(format!("changed {n}")),
        _ if n % 3 == 0 => None,
        _ => Some(format!("value {n}")),
    };
    (0..2 * ROWS).filter_map(|n| Some((key(n), value(n)?.into_bytes()))).collect()
}

fn rows(txn: &mut Txn, table: &Arc<Table>, dict: usize) -> Rows {
    let mut cursor = txn.cursor(table, dict);
    let mut rows = Rows::new();
    cursor.seek_first(txn, ReadMode::Latest).unwrap();
    while cursor.valid() {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next(txn).unwrap();
    }
    rows
}

/// What everybody sees, the same in both dictionaries.
fn content(db: &Arc<Db>) -> Rows {
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    let content = rows(&mut txn, &table, 0);
    assert_eq!(rows(&mut txn, &table, 1), content, "a part of a transaction");
    content
}

/// No byte of the files is taken by what nobody has.
fn check_space(db: &Arc<Db>) {
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    for dict in db.open_table(T).unwrap().dicts() {
        dict.tree().verify().unwrap();
        assert_eq!(dict.used_bytes(), dict.tree().stats().disk_bytes, "space is leaked");
    }
}

#[test]
fn a_spilled_transaction_sees_its_writes_and_others_do_not_until_it_commits() {
    let (vfs, db, table) = world();
    let mut txn = db.begin();
    change(&mut txn, &table).unwrap();
    assert!(db.metrics().spills.get() > 10, "{} spills", db.metrics().spills.get());
    assert!(txn.write_bytes() < 12_000, "{} bytes in memory", txn.write_bytes());
    assert_eq!(rows(&mut txn, &table, 0), rows_after());
    assert_eq!(txn.get(&table, 1, &key(2 * ROWS - 1)).unwrap(), rows_after().pop().map(|row| row.1));
    assert_eq!(txn.get(&table, 0, &key(3)).unwrap(), None, "deleted");
    assert_eq!(content(&db), rows_before());
    txn.commit().unwrap();
    assert_eq!(content(&db), rows_after());
    check_space(&db);
    drop((txn, table, db));
    assert_eq!(content(&open(&vfs.crash()).unwrap()), rows_after());
}

#[test]
fn a_rollback_gives_the_space_of_spilled_writes_back() {
    let (_, db, table) = world();
    let used = |table: &Table| table.dicts().iter().map(|dict| dict.used_bytes()).sum::<u64>();
    let before = used(&table);
    let mut txn = db.begin();
    change(&mut txn, &table).unwrap();
    assert!(used(&table) > before);
    txn.rollback();
    assert_eq!(used(&table), before);
    assert_eq!(content(&db), rows_before());
}

/// Symptom: other clients waited a third of a second while a transaction just below its memory limit was
/// inserted into the memtables.
#[test]
fn a_commit_of_many_bytes_adopts_them_though_they_fit_into_memory() {
    let vfs = disk(1);
    let files: Arc<dyn Vfs> = vfs.clone();
    let mut options = options(&Lines::default());
    options.memory_bytes = 1 << 30;
    assert!(options.write_set_bytes > 32 << 20);
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    db.create_table(&spec(T)).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    let value = vec![7; 64 << 10];
    for n in 0..160 {
        txn.put(&table, 0, &key(n), &value, LockWait::NoWait).unwrap();
    }
    assert_eq!(db.metrics().spills.get(), 0);
    txn.commit().unwrap();
    assert!(db.metrics().spills.get() > 0);
    assert_eq!(rows(&mut txn, &table, 0).len(), 160);
}

#[test]
fn a_savepoint_is_rolled_back_to_across_spilled_writes() {
    let (_, db, table) = world();
    let mut txn = db.begin();
    change(&mut txn, &table).unwrap();
    let mark: Mark = txn.mark();
    let spilled = db.metrics().spills.get();
    for n in 0..2 * ROWS {
        txn.put(&table, 0, &key(n), b"undone", LockWait::NoWait).unwrap();
    }
    assert!(db.metrics().spills.get() > spilled + 3);
    txn.rollback_to(mark).unwrap();
    assert_eq!(rows(&mut txn, &table, 0), rows_after());
    txn.commit().unwrap();
    assert_eq!(content(&db), rows_after());
    check_space(&db);
}

/// The trace: a big transaction, a small one over some of its rows, background work, a checkpoint.
fn trace(db: &Arc<Db>, acknowledged: &mut bool) -> pandodb::Result<()> {
    let table = db.open_table(T)?;
    let mut txn = db.begin();
    change(&mut txn, &table)?;
    txn.commit()?;
    *acknowledged = true;
    db.run_jobs()?;
    db.checkpoint()?;
    Ok(())
}

fn ios_of_trace() -> u64 {
    let (vfs, db, _) = world();
    let before = vfs.io_count();
    trace(&db, &mut false).unwrap();
    vfs.io_count() - before
}

#[test]
fn after_power_loss_at_any_io_a_spilled_transaction_is_there_or_not_as_a_whole() {
    let ios = ios_of_trace();
    assert!(ios > 100, "{ios}");
    let mut lost = 0;
    for at in 1..=ios {
        let (vfs, db, table) = world();
        drop(table);
        vfs.fail_io_after(at, FaultKind::Sticky);
        let mut acknowledged = false;
        let _ = trace(&db, &mut acknowledged);
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        let found = content(&db);
        if found == rows_before() {
            assert!(!acknowledged, "I/O {at}: an acknowledged commit is lost");
            lost += 1;
        } else {
            assert_eq!(found, rows_after(), "I/O {at}");
        }
        check_space(&db);
        assert_eq!(content(&db), found, "I/O {at}: after background work");
        drop(db);
        assert_eq!(content(&open(&vfs.crash()).unwrap()), found, "I/O {at}: at the second start");
    }
    assert!(lost > 20 && lost < ios, "{lost} of {ios}");
}

#[test]
fn a_disk_that_is_full_at_any_io_of_a_spill_is_an_error_and_leaves_nothing_behind() {
    let ios = ios_of_trace();
    let mut refused = 0;
    for at in 1..=ios {
        let (vfs, db, table) = world();
        let mut txn = db.begin();
        // An earlier statement, which stays.
        txn.put(&table, 0, b"earlier", b"1", LockWait::NoWait).unwrap();
        txn.put(&table, 1, b"earlier", b"1", LockWait::NoWait).unwrap();
        let mark = txn.mark();
        vfs.fail_io_after(at, FaultKind::DiskFull);
        let changed = change(&mut txn, &table);
        vfs.clear_faults();
        let mut expected = match changed {
            Ok(()) => rows_after(),
            Err(Error::Engine(EngineError::DiskFull { .. })) => {
                refused += 1;
                txn.rollback_to(mark).unwrap();
                rows_before()
            }
            // A sync is not what a full disk fails in practice; then the file takes no more.
            Err(Error::Engine(EngineError::ReadOnly { .. })) => continue,
            Err(other) => panic!("I/O {at}: {other}"),
        };
        expected.push((b"earlier".to_vec(), b"1".to_vec()));
        expected.sort();
        match txn.commit() {
            Ok(()) => assert_eq!(content(&db), expected, "I/O {at}"),
            Err(Error::Engine(EngineError::ReadOnly { .. }) | Error::InDoubt { .. }) => continue,
            Err(other) => panic!("I/O {at}: {other}"),
        }
        drop(table);
        match db.run_jobs().map_err(Error::from).and_then(|()| db.checkpoint()) {
            Ok(()) => check_space(&db),
            Err(Error::Engine(EngineError::ReadOnly { .. })) => {}
            Err(other) => panic!("I/O {at}: {other}"),
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_prepared_transaction_keeps_what_it_spilled_through_a_crash() {
    for commits in [true, false] {
        let (vfs, db, table) = world();
        let mut txn = db.begin();
        change(&mut txn, &table).unwrap();
        txn.prepare(b"big").unwrap();
        txn.detach();
        drop((txn, table, db));
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        // Others write, and what they write is not written over the runs.
        common::fill(&db, T, 10_000..10_500).unwrap();
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        let more = (10_000..10_500).map(|n| (key(n), format!("value {n}").into_bytes()));
        assert_eq!(content(&db), rows_before().into_iter().chain(more.clone()).collect::<Rows>());
        let mut other = db.begin();
        let table = db.open_table(T).unwrap();
        let refused = other.put(&table, 0, &key(0), b"x", LockWait::NoWait);
        assert!(matches!(refused, Err(Error::WouldBlock)), "its rows are locked: {refused:?}");
        drop((other, table));
        let expected = if commits {
            assert!(db.commit_by_xid(b"big").unwrap());
            rows_after()
        } else {
            assert!(db.rollback_by_xid(b"big").unwrap());
            rows_before()
        };
        let expected: Rows = expected.into_iter().chain(more).collect();
        assert_eq!(content(&db), expected);
        check_space(&db);
        drop(db);
        assert_eq!(content(&open(&vfs.crash()).unwrap()), expected);
    }
}
