//! A database whose catalog is damaged or lost gets a new one from the tables' directories, and everything is there.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, fill, options, spec, Lines};
use pando_storage::vfs::{OpenMode, RealVfs};
use pandodb::offline::rebuild_catalog;
use pandodb::{Db, IndexPlace, IndexSource, Options, Vfs};
use xxhash_rust::xxh3::xxh3_64_with_seed;

fn open(dir: &Path) -> pandodb::Result<Arc<Db>> {
    let options =
        Options { base_dir: dir.to_owned(), engine_dir: dir.join(".pando"), ..options(&Lines::default()) };
    Db::open(options)
}

/// Tables in files and in the log, one renamed, one dropped, one with an index less.
fn make(dir: &Path, is_stopped: bool) {
    RealVfs::new(false).create_dir_all(&dir.join("db")).unwrap();
    let db = open(dir).unwrap();
    for name in ["a", "b", "c", "d"] {
        db.create_table(&spec(&format!("./db/{name}"))).unwrap();
        fill(&db, &format!("./db/{name}"), 0..300).unwrap();
    }
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    db.rename_table("./db/b", "./db/renamed").unwrap();
    db.drop_table("./db/c").unwrap();
    db.change_indexes("./db/d", &[IndexPlace { name: "other".into(), source: IndexSource::Kept(1) }])
        .unwrap();
    fill(&db, "./db/a", 300..400).unwrap();
    db.create_table(&spec("./db/late")).unwrap();
    fill(&db, "./db/late", 0..10).unwrap();
    if is_stopped {
        db.close().unwrap();
    } else {
        db.abandon();
    }
}

fn check(dir: &Path) {
    let db = open(dir).unwrap();
    for (name, rows) in [("a", 400), ("renamed", 300), ("d", 300), ("late", 10)] {
        assert_eq!(count(&db, &format!("./db/{name}")).unwrap(), rows, "{name}");
    }
    assert!(!db.table_exists("./db/b") && !db.table_exists("./db/c"));
    // New tables get ids of their own.
    db.create_table(&spec("./db/new")).unwrap();
    fill(&db, "./db/new", 0..50).unwrap();
    drop(db);
    let db = open(dir).unwrap();
    assert_eq!(count(&db, "./db/new").unwrap(), 50);
    assert_eq!(count(&db, "./db/a").unwrap(), 400);
    db.close().unwrap();
}

#[test]
fn a_damaged_or_lost_catalog_is_made_anew() {
    for is_stopped in [true, false] {
        for is_lost in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path(), is_stopped);
            let (vfs, engine_dir) = (RealVfs::new(false), dir.path().join(".pando"));
            let catalog = engine_dir.join("catalog.pando");
            match is_lost {
                true => vfs.remove_file(&catalog).unwrap(),
                false => vfs.open(&catalog, OpenMode::Existing).unwrap().write_at(&[0; 8192], 0).unwrap(),
            }
            let refused = open(dir.path()).unwrap_err().to_string();
            assert!(refused.contains("rebuild-catalog"), "{refused}");
            let rebuilt = rebuild_catalog(dir.path(), &engine_dir).unwrap();
            assert_eq!(rebuilt.tables, ["db/a", "db/d", "db/late", "db/renamed"]);
            assert_eq!(rebuilt.old.is_some(), !is_lost);
            assert!(rebuilt.left_out.is_empty(), "{:?}", rebuilt.left_out);
            check(dir.path());
        }
    }
}

#[test]
fn what_cannot_be_taken_in_is_told_and_a_running_server_keeps_it_out() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), true);
    let (vfs, engine_dir) = (RealVfs::new(false), dir.path().join(".pando"));
    let db = open(dir.path()).unwrap();
    assert!(rebuild_catalog(dir.path(), &engine_dir).is_err(), "the database is open");
    db.close().unwrap();
    drop(db);
    vfs.remove_file(&dir.path().join("db/d.pando/status.pando")).unwrap();
    let rebuilt = rebuild_catalog(dir.path(), &engine_dir).unwrap();
    assert_eq!(rebuilt.left_out.len(), 1);
    assert!(rebuilt.left_out[0].0.ends_with("db/d.pando"));
    let db = open(dir.path()).unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), 400);
}

#[test]
fn a_catalog_of_a_newer_version_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), true);
    let catalog = dir.path().join(".pando/catalog.pando");
    let before = std::fs::read(&catalog).unwrap();
    let mut newer = before.clone();
    for offset in [0, 4096] {
        let block = &mut newer[offset..];
        block[5] = 9;
        let len = u64::from_le_bytes(block[16..24].try_into().unwrap()) as usize;
        let checksum =
            xxh3_64_with_seed(&block[32..32 + len], xxh3_64_with_seed(&block[..24], offset as u64));
        block[24..32].copy_from_slice(&checksum.to_le_bytes());
    }
    std::fs::write(&catalog, &newer).unwrap();
    let error = rebuild_catalog(dir.path(), &dir.path().join(".pando")).unwrap_err();
    assert!(error.to_string().contains("newer PANDO"), "{error}");
    assert_eq!(std::fs::read(&catalog).unwrap(), newer);
    std::fs::write(&catalog, before).unwrap();
    check(dir.path());
}
