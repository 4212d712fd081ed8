//! Changes of tables that leave their rows alone: all or nothing wherever the power fails, for all
//! tables of a statement.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, disk, fill, open, spec};
use pando_storage::vfs::{FaultKind, OpenMode, Vfs};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{Compression, Db, EngineError, Error, LockWait, SimVfs, TableChange, TableSpec};

const ROWS: u32 = 200;
const PATHS: [&str; 2] = ["./db/t#P#p0", "./db/t#P#p1"];

fn column(name: &str, size: u32, source: Source) -> NewColumn {
    let ty = ColumnType { kind: Kind::Signed, size, nullable: false, binary: false };
    NewColumn { name: name.into(), ty, source }
}

fn added(value: u8) -> Source {
    Source::Added(Value::Bytes(vec![value]))
}

/// Two partitions with a column `a` of a byte, whose definition has the id "old".
fn with_tables(seed: u64) -> (Arc<SimVfs>, Arc<Db>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    for path in PATHS {
        let columns = Some(vec![column("a", 1, added(0))]);
        db.create_table(&TableSpec { columns, definition: "old".into(), ..spec(path) }).unwrap();
        fill(&db, path, 0..ROWS).unwrap();
    }
    (vfs, db)
}

/// `a` grows, `b` comes before it, the index has another name.
fn changes() -> Vec<TableChange> {
    let change = |path: &str| TableChange {
        path: path.into(),
        columns: Some(vec![column("b", 1, added(7)), column("a", 4, Source::Column(0))]),
        index_names: vec![(1, "other".into())],
        indexes: None,
        compression: Some(Compression::Zstd(9)),
        auto_increment: Some(50),
        definition: Some("new".into()),
        ..TableChange::default()
    };
    PATHS.iter().map(|path| change(path)).collect()
}

fn columns(db: &Arc<Db>, path: &str) -> Vec<(u32, String, u32)> {
    let table = db.open_table(path).unwrap();
    let layouts = table.layouts().unwrap();
    layouts.current().columns.iter().map(|c| (c.id, c.name.clone(), c.ty.size)).collect()
}

fn is_new(db: &Arc<Db>, path: &str) -> bool {
    let found = columns(db, path);
    let new = found == [(2, "b".into(), 1), (1, "a".into(), 4)];
    assert!(new || found == [(1, "a".into(), 1)], "{found:?}");
    new
}

#[test]
fn a_change_counts_at_once_and_after_a_restart() {
    let (vfs, db) = with_tables(1);
    let opened_before = db.open_table(PATHS[0]).unwrap();
    db.alter_tables(&mut changes()).unwrap();
    let check = |db: &Arc<Db>| {
        for path in PATHS {
            assert!(is_new(db, path));
            assert_eq!(count(db, path).unwrap(), ROWS);
            assert_eq!(db.open_table(path).unwrap().layouts().unwrap().versions().len(), 2);
            assert_eq!(db.open_table(path).unwrap().auto_increment(), 50);
        }
        assert!(db.has_definition("./db/t", "new"));
        assert!(!db.has_definition("./db/t", "old"));
        assert!(!db.has_definition("./db/", "new"), "another table");
    };
    check(&db);
    assert_eq!(opened_before.layouts().unwrap().versions().len(), 1, "who has it open keeps its own");
    assert_eq!(opened_before.id(), db.open_table(PATHS[0]).unwrap().id());
    let file = vfs.open(Path::new("/data/db/t#P#p0.pando/status.pando"), OpenMode::Existing).unwrap();
    let mut text = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut text, 0).unwrap();
    let text = String::from_utf8(text).unwrap();
    for part in ["\"name\": \"other\"", "ZSTD:9", "\"definition\": \"new\"", "\"file\": \"key-k.pando\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    drop(opened_before);
    drop(db);
    check(&open(&vfs.crash()).unwrap());
}

#[test]
fn a_change_that_was_interrupted_has_happened_to_all_tables_or_to_none() {
    for n in 1.. {
        let (vfs, db) = with_tables(n);
        vfs.fail_io_after(n, FaultKind::Sticky);
        let before = vfs.io_count();
        let done = db.alter_tables(&mut changes()).is_ok();
        let met = vfs.io_count() - before >= n;
        drop(db);
        let db = open(&vfs.crash()).unwrap_or_else(|e| panic!("reopen after a fault at I/O {n}: {e}"));
        let new = is_new(&db, PATHS[0]);
        assert_eq!(new, is_new(&db, PATHS[1]), "half a change at I/O {n}");
        assert!(new || !done, "an acknowledged change is gone at I/O {n}");
        assert_eq!(db.has_definition("./db/t", "new"), new);
        assert_eq!(db.has_definition("./db/t", "old"), !new);
        for path in PATHS {
            assert_eq!(count(&db, path).unwrap(), ROWS);
        }
        if !new {
            db.alter_tables(&mut changes()).unwrap();
            assert!(is_new(&db, PATHS[0]));
        }
        if !met {
            assert!(done, "the change failed without a fault");
            return;
        }
        assert!(n < 2000, "a change with endless I/O");
    }
}

#[test]
fn a_power_cut_right_after_a_change_does_not_undo_it() {
    for seed in 0..20 {
        let (vfs, db) = with_tables(seed);
        db.alter_tables(&mut changes()).unwrap();
        drop(db);
        let db = open(&vfs.crash()).unwrap();
        assert!(is_new(&db, PATHS[0]) && is_new(&db, PATHS[1]));
    }
}

#[test]
fn layouts_follow_the_table_through_rename_and_truncate() {
    let (vfs, db) = with_tables(3);
    db.alter_tables(&mut changes()).unwrap();
    db.rename_table(PATHS[0], "./db/x").unwrap();
    db.truncate_table("./db/x").unwrap();
    assert!(is_new(&db, "./db/x"));
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    assert!(is_new(&db, "./db/x"));
    assert!(db.has_definition("./db/x", "new"));
}

#[test]
fn what_is_refused_changes_nothing() {
    let (_, db) = with_tables(4);
    let mut narrow = changes();
    narrow[1].columns = Some(vec![column("a", 0, Source::Column(0))]);
    let refused = db.alter_tables(&mut narrow).unwrap_err();
    assert!(matches!(refused, Error::Engine(EngineError::Unsupported { .. })), "{refused}");
    assert!(!is_new(&db, PATHS[0]));
    let mut missing = changes();
    missing[1].path = "./db/nix".into();
    let refused = db.alter_tables(&mut missing).unwrap_err();
    assert!(matches!(refused, Error::Engine(EngineError::NotFound { .. })), "{refused}");
    assert!(!is_new(&db, PATHS[0]));
    db.create_table(&spec("./db/opaque")).unwrap();
    let opaque =
        TableChange { path: "./db/opaque".into(), columns: Some(Vec::new()), ..TableChange::default() };
    let refused = db.alter_tables(&mut [opaque]).unwrap_err();
    assert!(refused.to_string().contains("not known"), "{refused}");
}

#[test]
fn a_smaller_auto_increment_is_not_raised_again_by_the_log() {
    let (vfs, db) = with_tables(5);
    let table = db.open_table(PATHS[0]).unwrap();
    let mut txn = db.begin();
    txn.raise_auto_increment(&table, 1000).unwrap();
    txn.commit().unwrap();
    assert_eq!(table.auto_increment(), 1000);
    db.alter_tables(&mut changes()).unwrap();
    assert_eq!(db.open_table(PATHS[0]).unwrap().auto_increment(), 50);
    drop((txn, table));
    drop(db);
    assert_eq!(open(&vfs.crash()).unwrap().open_table(PATHS[0]).unwrap().auto_increment(), 50);
}

#[test]
fn rows_that_are_written_anew_are_rows_of_the_current_layout() {
    let vfs = disk(12);
    let db = open(&vfs).unwrap();
    let path = PATHS[0];
    let columns = Some(vec![column("a", 1, added(0))]);
    db.create_table(&TableSpec { columns, definition: "old".into(), ..spec(path) }).unwrap();
    let put = |n: u32, row: &[u8]| {
        let table = db.open_table(path).unwrap();
        let mut txn = db.begin();
        for dict in 0..2 {
            txn.put(&table, dict, &n.to_be_bytes(), row, LockWait::NoWait).unwrap();
        }
        txn.commit().unwrap();
    };
    let rows = || {
        let table = db.open_table(path).unwrap();
        let mut txn = db.begin();
        let mut get = |n: u32| txn.get(&table, 0, &n.to_be_bytes()).unwrap().unwrap();
        (0..100).map(&mut get).collect::<Vec<Vec<u8>>>()
    };
    let compact = || db.compact_table(&db.open_table(path).unwrap(), &mut |_| true).unwrap();
    (0..100).for_each(|n| put(n, &[1, n as u8 + 100]));
    compact();
    db.alter_tables(&mut [changes().swap_remove(0)]).unwrap();
    // The sign goes on into the bytes that `a` has got.
    let new = |n: u32| [&[2, 7, n as u8 + 100][..], &[if n as u8 + 100 < 128 { 0 } else { 255 }; 3]].concat();
    put(3, &[2, 8, 9, 0, 0, 0]);
    let expected = |n: u32| if n == 3 { vec![2, 8, 9, 0, 0, 0] } else { new(n) };
    assert_eq!(rows()[4], [1, 104], "a change writes nothing");
    compact();
    assert_eq!(rows(), (0..100).map(expected).collect::<Vec<_>>());
    drop(db);
    let db = open(&vfs).unwrap();
    db.check_table(&db.open_table(path).unwrap(), &mut |_| true).unwrap();
}
