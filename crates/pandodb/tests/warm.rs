//! What the cache held comes back after a start, and nothing else depends on it.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, disk, fill, for_each_row, open, options, spec, Lines};
use pando_storage::vfs::OpenMode;
use pandodb::{Db, LogLevel, SimVfs, Vfs};

const ROWS: u32 = 3000;
const LIST: &str = "/data/.pando/cached_blocks";

fn open_warm(vfs: &Arc<SimVfs>, lines: &Lines) -> Arc<Db> {
    let mut options = options(lines);
    (options.cache_kept, options.cache_load) = (true, true);
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).unwrap()
}

/// Reads all rows by both dictionaries. Returns the blocks that were read from files.
fn read_all(db: &Arc<Db>, path: &str) -> u64 {
    let table = db.open_table(path).unwrap();
    let before = db.metrics().cache_misses.get();
    for dict in 0..2 {
        let mut rows = 0;
        for_each_row(&mut db.begin(), &table, dict, false, |_, _| rows += 1);
        assert_eq!(rows, ROWS);
    }
    db.metrics().cache_misses.get() - before
}

/// A database with a table on disk that has been read, and was closed.
fn closed() -> (Arc<SimVfs>, u64) {
    let vfs = disk(1);
    let db = open_warm(&vfs, &Lines::default());
    db.load_cache();
    db.create_table(&spec("./db/a")).unwrap();
    fill(&db, "./db/a", 0..ROWS).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let db = open(&vfs).unwrap();
    let cold = read_all(&db, "./db/a");
    assert!(cold > 20, "{cold}");
    drop(db);
    let db = open_warm(&vfs, &Lines::default());
    db.load_cache();
    read_all(&db, "./db/a");
    assert_eq!(read_all(&db, "./db/a"), 0, "all of it fits");
    db.close().unwrap();
    (vfs, cold)
}

fn loaded(db: &Db) -> (u64, u64) {
    (db.metrics().cache_load_blocks.get(), db.metrics().cache_loaded_blocks.get())
}

#[test]
fn the_blocks_come_back_after_a_clean_stop_and_after_a_crash() {
    let (vfs, _) = closed();
    let lines = Lines::default();
    let db = open_warm(&vfs, &lines);
    db.load_cache();
    let (wanted, done) = loaded(&db);
    assert!(wanted > 0);
    assert_eq!(wanted, done);
    assert_eq!(read_all(&db, "./db/a"), 0);
    assert!(lines.lock().unwrap().iter().any(|(_, line)| line.contains("the cache has")));
    drop(db);
    // A list that was written before the rename was durable may be lost, and what it names may not.
    let vfs = vfs.crash();
    let db = open_warm(&vfs, &lines);
    db.load_cache();
    if vfs.exists(Path::new(LIST)).unwrap() {
        assert_eq!(read_all(&db, "./db/a"), 0);
    }
    assert_eq!(count(&db, "./db/a").unwrap(), ROWS);
}

#[test]
fn nothing_is_read_unless_it_is_asked_for_and_a_list_that_was_not_read_stays() {
    let (vfs, cold) = closed();
    let db = open(&vfs).unwrap();
    db.load_cache();
    assert_eq!(loaded(&db), (0, 0));
    assert_eq!(read_all(&db, "./db/a"), cold);
    db.close().unwrap();
    // One that ends before it has read the list does not write its own, which would name less.
    let db = open_warm(&vfs, &Lines::default());
    db.close().unwrap();
    let db = open_warm(&vfs, &Lines::default());
    db.load_cache();
    assert_eq!(read_all(&db, "./db/a"), 0);
    // No list any more: the next one is what is in the cache then.
    db.set_cache_kept(false);
    vfs.remove_file(Path::new(LIST)).unwrap();
    db.close().unwrap();
    assert!(!vfs.exists(Path::new(LIST)).unwrap());
}

#[test]
fn tables_and_runs_that_are_gone_are_passed_over() {
    let (vfs, _) = closed();
    // All runs are others now.
    let db = open(&vfs).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    for n in 0..ROWS {
        txn.put(&table, 0, format!("{n:08}").as_bytes(), b"other", pandodb::LockWait::NoWait).unwrap();
    }
    txn.commit().unwrap();
    drop(table);
    db.run_jobs().unwrap();
    db.close().unwrap();
    drop(db);
    let db = open_warm(&vfs, &Lines::default());
    db.load_cache();
    let (wanted, done) = loaded(&db);
    assert!(done <= wanted);
    read_all(&db, "./db/a");
    db.drop_table("./db/a").unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    db.set_cache_kept(false);
    db.close().unwrap();
    drop(db);
    let db = open_warm(&vfs, &Lines::default());
    db.load_cache();
    assert_eq!(loaded(&db).1, 0);
    assert_eq!(count(&db, "./db/a").unwrap(), 0);
}

#[test]
fn a_damaged_list_is_a_warning() {
    let (vfs, cold) = closed();
    let file = vfs.open(Path::new(LIST), OpenMode::Existing).unwrap();
    file.write_at(b"????", 20).unwrap();
    let lines = Lines::default();
    let db = open_warm(&vfs, &lines);
    db.load_cache();
    assert_eq!(loaded(&db), (0, 0));
    assert_eq!(read_all(&db, "./db/a"), cold);
    let lines = lines.lock().unwrap();
    assert!(lines
        .iter()
        .any(|(level, line)| *level == LogLevel::Warning && line.contains("list of cached blocks")));
}
