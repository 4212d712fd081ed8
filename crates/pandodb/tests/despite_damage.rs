//! A start in spite of a damaged log: what can be read is read, and nothing is written.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{count, disk, fill, options, spec, Lines};
use pando_storage::vfs::OpenMode;
use pandodb::{Db, EngineError, Error, LockWait, Options, SimVfs, Vfs};

const T: &str = "./db/t";
const OTHER: &str = "./db/other";
const ROWS: u32 = 400;

fn settings(despite_damage: bool, lines: &Lines) -> Options {
    Options { log_file_bytes: 16 << 10, despite_damage, ..options(lines) }
}

fn open(vfs: &Arc<SimVfs>, despite_damage: bool) -> pandodb::Result<Arc<Db>> {
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(settings(despite_damage, &Lines::default()), files.clone(), files)
}

/// Rows one by one, in turn in two tables; of one of them all is in its files, of the other nothing.
fn world(seed: u64) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs, false).unwrap();
    for path in [T, OTHER] {
        db.create_table(&spec(path)).unwrap();
    }
    db.checkpoint().unwrap();
    for n in 0..ROWS {
        fill(&db, T, n..n + 1).unwrap();
        fill(&db, OTHER, n..n + 1).unwrap();
    }
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    for dict in 0..2 {
        txn.put(&table, dict, b"prepared", b"", LockWait::NoWait).unwrap();
    }
    txn.prepare(b"x").unwrap();
    txn.detach();
    // Which ends with a checkpoint.
    db.compact_table(&db.open_table(OTHER).unwrap(), &mut |_| true).unwrap();
    drop((table, txn, db));
    vfs.crash()
}

fn logs(vfs: &Arc<SimVfs>) -> Vec<PathBuf> {
    let dir = Path::new("/data/.pando");
    let names = vfs.read_dir(dir).unwrap().into_iter().map(|entry| entry.name);
    names.filter(|name| name.starts_with("pando-0")).map(|name| dir.join(name)).collect()
}

/// Every file, by its path.
fn content(vfs: &Arc<SimVfs>, dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in vfs.read_dir(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            content(vfs, &path, found);
        } else if entry.name != "lock" {
            let file = vfs.open(&path, OpenMode::Existing).unwrap();
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            found.insert(path, bytes);
        }
    }
}

fn all_content(vfs: &Arc<SimVfs>) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    content(vfs, Path::new("/data"), &mut found);
    found
}

/// Opens it in spite of its damage; gives the rows of the table that only the log has.
fn look(vfs: &Arc<SimVfs>) -> u32 {
    let before = all_content(vfs);
    let db = open(vfs, true).unwrap();
    let rows = count(&db, T).unwrap();
    let table = db.open_table(T).unwrap();
    for n in 0..rows {
        let found = db.begin().get(&table, 0, format!("{n:08}").as_bytes()).unwrap();
        assert_eq!(found, Some(format!("value {n}").into_bytes()), "a row before the damage");
    }
    assert_eq!(count(&db, OTHER).unwrap(), ROWS, "what a file has is read from it");
    // Nothing is written, by nobody.
    let mut txn = db.begin();
    let refused = txn.put(&table, 0, b"new", b"row", LockWait::NoWait).and_then(|()| txn.commit());
    assert!(matches!(refused, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("despite damage"));
    assert!(db.create_table(&spec("./db/new")).is_err() && db.drop_table(OTHER).is_err());
    assert!(db.rename_table(OTHER, "./db/new").is_err());
    assert_eq!(count(&db, OTHER).unwrap(), ROWS);
    drop((txn, table));
    db.close().unwrap();
    drop(db);
    assert!(all_content(vfs) == before, "something was written");
    rows
}

#[test]
fn a_bit_flipped_in_the_log_costs_what_comes_behind_it() {
    let vfs = world(1);
    let files = logs(&vfs);
    assert!(files.len() > 5, "{files:?}");
    let mut last = None;
    for file in &files[1..files.len() - 2] {
        let vfs = vfs.copy_after_clean_stop();
        vfs.flip_bit(file, 9000, 3);
        assert!(open(&vfs, false).is_err(), "{}", file.display());
        let rows = look(&vfs);
        assert!(rows < ROWS && last.is_none_or(|last| rows > last), "{rows} after {last:?}");
        last = Some(rows);
        // It is as damaged as it was, and mended all is there.
        assert!(open(&vfs, false).is_err());
        vfs.flip_bit(file, 9000, 3);
        let db = open(&vfs, false).unwrap();
        assert_eq!((count(&db, T).unwrap(), count(&db, OTHER).unwrap()), (ROWS, ROWS));
        assert_eq!(db.report_prepared(9), [b"x"]);
    }
    assert!(last > Some(ROWS / 2), "{last:?}");
}

#[test]
fn a_lost_file_of_the_log_or_a_damaged_head_costs_what_comes_behind_it() {
    let vfs = world(2);
    let files = logs(&vfs);
    for file in &files[1..] {
        for is_lost in [true, false] {
            let vfs = vfs.copy_after_clean_stop();
            match is_lost {
                true => vfs.remove_file(file).unwrap(),
                false => vfs.flip_bit(file, 20, 0),
            }
            assert!(open(&vfs, false).is_err(), "{}", file.display());
            assert!(look(&vfs) <= ROWS);
        }
    }
}

#[test]
fn without_any_log_there_is_what_the_files_have() {
    let vfs = world(3);
    for file in logs(&vfs) {
        vfs.remove_file(&file).unwrap();
    }
    assert!(open(&vfs, false).is_err());
    assert_eq!(look(&vfs), 0);
}

#[test]
fn without_damage_it_shows_all_and_writes_nothing() {
    let vfs = world(4);
    assert_eq!(look(&vfs), ROWS);
    assert_eq!(look(&vfs), ROWS);
    let db = open(&vfs, false).unwrap();
    assert_eq!(count(&db, T).unwrap(), ROWS);
    assert!(db.commit_by_xid(b"x").unwrap());
}

#[test]
fn a_new_database_is_not_made_so() {
    let vfs = disk(5);
    assert!(open(&vfs, true).is_err());
    open(&vfs, false).unwrap();
}
