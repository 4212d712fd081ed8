//! More tables than files may be open: the idle ones are closed, and whoever comes back to one finds it as
//! it was.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{count, disk, fill, options, spec, Lines};
use pandodb::{Db, LockWait, ReadMode, SimVfs, Vfs};

/// Six dictionaries: the catalog's, and those of two tables and a half.
const FILES: usize = 6;

fn open(vfs: &Arc<SimVfs>) -> Arc<Db> {
    let mut options = options(&Lines::default());
    options.files_open_max = FILES;
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).unwrap()
}

fn path(n: u32) -> String {
    format!("./db/t{n}")
}

#[test]
fn tables_nobody_uses_are_closed_and_opened_again_as_they_were() {
    let vfs = disk(1);
    let db = open(&vfs);
    for n in 0..20 {
        db.create_table(&spec(&path(n))).unwrap();
        fill(&db, &path(n), 0..n + 1).unwrap();
        let table = db.open_table(&path(n)).unwrap();
        assert_eq!(table.auto_increment_reserve(1, 1, 1, u64::from(n) + 1), Some(1));
    }
    // No tick yet: who opens tables sees to it that they do not get too many.
    assert!(db.metrics().files_open.get() <= 3 * FILES as u64, "{} files", db.metrics().files_open.get());
    db.tick();
    assert!(db.metrics().files_open.get() <= FILES as u64, "{} files", db.metrics().files_open.get());
    for n in 0..20 {
        assert_eq!(count(&db, &path(n)).unwrap(), n + 1);
        assert_eq!(db.open_table(&path(n)).unwrap().auto_increment(), u64::from(n) + 2);
        fill(&db, &path(n), 0..n + 2).unwrap();
        db.checkpoint().unwrap();
        db.tick();
    }
    db.rename_table(&path(3), &path(30)).unwrap();
    db.drop_table(&path(4)).unwrap();
    drop(db);
    // Recovery opens what the log names.
    let vfs = vfs.crash();
    let db = open(&vfs);
    db.tick();
    assert!(db.metrics().files_open.get() <= FILES as u64, "{} files", db.metrics().files_open.get());
    assert_eq!(count(&db, &path(30)).unwrap(), 5);
    assert_eq!(count(&db, &path(19)).unwrap(), 21);
}

#[test]
fn recovery_opens_no_more_files_than_may_be_open() {
    for seed in 0..4 {
        let vfs = disk(seed);
        let db = open(&vfs);
        for n in 0..20 {
            db.create_table(&spec(&path(n))).unwrap();
        }
        // All in the log, of all tables in turn; some of it in the files as well.
        for part in 0..10 {
            for n in 0..20 {
                fill(&db, &path(n), part * 10..part * 10 + n).unwrap();
            }
            if part == 3 {
                db.checkpoint().unwrap();
            }
        }
        db.truncate_table(&path(5)).unwrap();
        fill(&db, &path(5), 0..7).unwrap();
        drop(db);
        let mut vfs = vfs.crash();
        for again in 0..3 {
            let db = open(&vfs);
            let files = db.metrics().files_open.get();
            assert!(files <= FILES as u64 + 1, "{files} files");
            for n in 0..20 {
                let expected = if n == 5 { 7 } else { rows(n) };
                assert_eq!(count(&db, &path(n)).unwrap(), expected, "table {n}, start {again}");
            }
            drop(db);
            vfs = vfs.crash();
        }
    }
}

/// Rows of ten overlapping stretches of `n` that begin ten apart.
fn rows(n: u32) -> u32 {
    if n <= 10 {
        10 * n
    } else {
        90 + n
    }
}

#[test]
fn a_table_in_use_stays_the_same_object() {
    let vfs = disk(1);
    let db = open(&vfs);
    for n in 0..10 {
        db.create_table(&spec(&path(n))).unwrap();
        fill(&db, &path(n), 0..50).unwrap();
    }
    // One is open, one is being read, one has uncommitted writes.
    let held = db.open_table(&path(0)).unwrap();
    let mut reader = db.begin();
    let mut cursor = reader.cursor(&db.open_table(&path(1)).unwrap(), 0);
    cursor.seek_first(&mut reader, ReadMode::Snapshot).unwrap();
    let mut writer = db.begin();
    let hidden = {
        let table = db.open_table(&path(2)).unwrap();
        writer.put(&table, 0, b"uncommitted", b"", LockWait::NoWait).unwrap();
        writer.put(&table, 1, b"uncommitted", b"", LockWait::NoWait).unwrap();
        Arc::as_ptr(&table)
    };
    let open_before: Vec<_> = (0..2).map(|n| Arc::as_ptr(&db.open_table(&path(n)).unwrap())).collect();
    db.checkpoint().unwrap();
    db.tick();
    assert!(db.metrics().files_open.get() <= 7, "{} files", db.metrics().files_open.get());
    assert_eq!(
        Arc::as_ptr(&db.open_table(&path(2)).unwrap()),
        hidden,
        "keys it gave out would be given again"
    );
    for (n, before) in (0..2).zip(open_before) {
        assert_eq!(Arc::as_ptr(&db.open_table(&path(n)).unwrap()), before);
    }
    let mut rows = 0;
    while cursor.valid() {
        rows += 1;
        cursor.next(&mut reader).unwrap();
    }
    assert_eq!(rows, 50);
    writer.commit().unwrap();
    assert_eq!(count(&db, &path(2)).unwrap(), 51);
    drop(held);
}

/// Many threads open tables, write, and let go of them, while the ticker closes what is idle.
#[test]
fn tables_that_come_and_go_lose_nothing() {
    const TABLES: u32 = 12;
    let vfs = disk(1);
    let db = open(&vfs);
    for n in 0..TABLES {
        db.create_table(&spec(&path(n))).unwrap();
    }
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u32)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    for round in 0..60u32 {
                        let first = (thread * 60 + round) * 2;
                        let n = (thread * 7 + round * 5) % TABLES;
                        fill(db, &path(n), first..first + 2).unwrap();
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            db.checkpoint().unwrap();
            db.tick();
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let rows: u32 = (0..TABLES).map(|n| count(&db, &path(n)).unwrap()).sum();
    assert_eq!(rows, 4 * 60 * 2);
    drop(db);
    let db = open(&vfs.crash());
    let rows: u32 = (0..TABLES).map(|n| count(&db, &path(n)).unwrap()).sum();
    assert_eq!(rows, 4 * 60 * 2);
}

/// The server's cache of tables may use more than the limit allows: who opens one more looks for idle ones from time to time
/// only, as a look goes through all.
#[test]
fn who_opens_tables_while_too_many_are_in_use_closes_idle_ones_in_turns() {
    // The part between two looks is four.
    const LIMIT: usize = 64;
    const TABLES: u32 = 60;
    let vfs = disk(1);
    let mut options = options(&Lines::default());
    options.files_open_max = LIMIT;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    let mut used = std::collections::VecDeque::new();
    for n in 0..TABLES {
        db.create_table(&spec(&path(n))).unwrap();
        db.checkpoint().unwrap();
        used.push_back(db.open_table(&path(n)).unwrap());
    }
    let in_use = db.metrics().files_open.get();
    assert!(in_use > LIMIT as u64 + 16, "{in_use} files");
    // As many are let go as are opened, as by a cache of that many.
    let mut most = 0;
    for n in TABLES..2 * TABLES {
        used.pop_front();
        db.create_table(&spec(&path(n))).unwrap();
        db.checkpoint().unwrap();
        used.push_back(db.open_table(&path(n)).unwrap());
        most = most.max(db.metrics().files_open.get());
    }
    assert!(most > in_use, "someone looked at each opening");
    assert!(most <= in_use + 8, "{most} files, {in_use} in use");
    // None is in use any more: the next ones that are opened bring it below the limit.
    used.clear();
    for n in 0..4 {
        db.open_table(&path(n)).unwrap();
    }
    let files = db.metrics().files_open.get();
    assert!(files <= LIMIT as u64, "{files} files");
}
