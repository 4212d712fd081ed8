//! Files of one table belong together: an older copy of one of them, where the log that it would need is gone, is not opened beside
//! the others. While the log has everything, an older copy is brought up to date.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{count, fill, options, spec, Lines};
use pando_storage::vfs::RealVfs;
use pandodb::{Db, Options, Vfs};

const PATH: &str = "./db/t";
const FILES: [&str; 2] = ["main.pando", "key-k.pando"];

fn open_as(dir: &Path, despite_damage: bool) -> Arc<Db> {
    let (base_dir, engine_dir) = (dir.to_owned(), dir.join(".pando"));
    Db::open(Options { base_dir, engine_dir, despite_damage, ..options(&Lines::default()) }).unwrap()
}

fn open(dir: &Path) -> Arc<Db> {
    open_as(dir, false)
}

fn file(dir: &Path, name: &str) -> PathBuf {
    dir.join("db/t.pando").join(name)
}

/// A copy of the file beside it.
fn keep(dir: &Path, name: &str, when: &str) {
    std::fs::copy(file(dir, name), dir.join(format!("{when}-{name}"))).unwrap();
}

fn put_back(dir: &Path, name: &str, when: &str) {
    std::fs::copy(dir.join(format!("{when}-{name}")), file(dir, name)).unwrap();
}

/// A table of 300 rows with copies of its files `old`, when it had 100, and `new`; ended as said.
fn make(dir: &Path, end: impl Fn(&Arc<Db>)) {
    RealVfs::new(false).create_dir_all(&dir.join("db")).unwrap();
    let db = open(dir);
    db.create_table(&spec(PATH)).unwrap();
    fill(&db, PATH, 0..100).unwrap();
    db.close().unwrap();
    drop(db);
    FILES.iter().for_each(|name| keep(dir, name, "old"));
    let db = open(dir);
    fill(&db, PATH, 100..300).unwrap();
    end(&db);
    drop(db);
    FILES.iter().for_each(|name| keep(dir, name, "new"));
}

/// The end of a database's life.
type End = fn(&Arc<Db>);

/// Ends of a life in which the log that an older file would need is given up.
fn ends() -> [(&'static str, End); 2] {
    let trimmed = |db: &Arc<Db>| {
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        // So much that the log goes on in other files, and the first ones are given up.
        db.create_table(&spec("./db/other")).unwrap();
        (0..12).for_each(|round| fill(db, "./db/other", round * 1000..(round + 1) * 1000).unwrap());
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        db.abandon();
    };
    [("stopped", |db| db.close().unwrap()), ("killed", trimmed)]
}

#[test]
fn an_older_file_of_rows_is_not_opened() {
    for (how, end) in ends() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make(dir, end);
        put_back(dir, "main.pando", "old");
        let db = open(dir);
        let error = db.open_table(PATH).unwrap_err().to_string();
        assert!(error.contains("main.pando") && error.contains("older copy"), "{how}: {error}");
        drop(db);
        // Asked for, it shows what it has.
        let db = open_as(dir, true);
        assert!(db.open_table(PATH).is_ok(), "{how}");
        drop(db);
        put_back(dir, "main.pando", "new");
        assert_eq!(count(&open(dir), PATH).unwrap(), 300, "{how}");
    }
}

#[test]
fn an_older_file_of_a_key_costs_that_key() {
    for (how, end) in ends() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make(dir, end);
        put_back(dir, "key-k.pando", "old");
        let db = open(dir);
        let table = db.open_table(PATH).unwrap();
        assert!(table.is_unusable(1), "{how}");
        let mut rows = 0;
        common::for_each_row(&mut db.begin(), &table, 0, false, |_, _| rows += 1);
        assert_eq!(rows, 300, "{how}");
    }
}

#[test]
fn an_older_file_that_the_log_brings_up_to_date_is_as_good_as_any() {
    for name in FILES {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make(dir, |db| {
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            db.abandon();
        });
        put_back(dir, name, "old");
        let db = open(dir);
        assert_eq!(count(&db, PATH).unwrap(), 300, "{name}");
        db.close().unwrap();
    }
}

/// Checkpoints from before a crash, and those of recovery, count like others.
#[test]
fn an_older_file_is_not_opened_after_a_crash_and_a_clean_stop() {
    let kill = |db: &Arc<Db>| {
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        db.abandon();
    };
    for (files_open_max, end) in [(1000, kill as End), (1, kill), (1, |db| db.abandon())] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make(dir, end);
        let (base_dir, engine_dir) = (dir.to_owned(), dir.join(".pando"));
        let few = Options { base_dir, engine_dir, files_open_max, ..options(&Lines::default()) };
        Db::open(few).unwrap().close().unwrap();
        put_back(dir, "main.pando", "old");
        let db = open(dir);
        let error = db.open_table(PATH).unwrap_err().to_string();
        assert!(error.contains("main.pando") && error.contains("older copy"), "{files_open_max}: {error}");
    }
}

#[test]
fn a_table_that_is_gone_leaves_no_note_and_another_is_not_taken_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, |db| db.close().unwrap());
    let db = open(dir);
    db.drop_table(PATH).unwrap();
    db.create_table(&spec(PATH)).unwrap();
    fill(&db, PATH, 0..10).unwrap();
    db.close().unwrap();
    drop(db);
    assert_eq!(count(&open(dir), PATH).unwrap(), 10);
}
