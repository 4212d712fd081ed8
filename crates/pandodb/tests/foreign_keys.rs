//! Foreign keys in the catalog: kept, renamed and dropped with their tables, in one step each.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, open, spec};
use pando_storage::vfs::FaultKind;
use pandodb::{
    Db, EngineError, Error, ForeignKey, NewName, ReferentialAction, SimVfs, TableChange, TableSpec,
};

fn key(name: &str, columns: &[&str], parent: &str, parent_columns: &[&str]) -> ForeignKey {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    ForeignKey {
        name: name.into(),
        columns: texts(columns),
        parent: parent.into(),
        parent_columns: texts(parent_columns),
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::NoAction,
    }
}

fn child(path: &str, keys: &[ForeignKey]) -> TableSpec {
    TableSpec { foreign_keys: keys.to_vec(), ..spec(path) }
}

/// Children and names of the constraints in which a table is the parent.
fn references(db: &Db, path: &str) -> Vec<(String, String)> {
    db.references_to(path).into_iter().map(|(child, key)| (child, key.name)).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// `p`, and `c` with a constraint to it and one to itself.
fn with_tables(seed: u64) -> (Arc<SimVfs>, Arc<Db>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/p")).unwrap();
    let keys = [key("c_ibfk_1", &["a", "b"], "./db/p", &["x", "y"]), key("own", &["up"], "db/c", &["id"])];
    db.create_table(&child("./db/c", &keys)).unwrap();
    (vfs, db)
}

#[test]
fn constraints_survive_crashes_and_are_found_from_both_sides() {
    let (vfs, db) = with_tables(1);
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    let keys = db.foreign_keys("./db/c");
    assert_eq!(keys[0], key("c_ibfk_1", &["a", "b"], "db/p", &["x", "y"]));
    assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "c_ibfk_1")]));
    assert_eq!(references(&db, "./db/c"), pairs(&[("db/c", "own")]));
    db.drop_table("./db/c").unwrap();
    assert!(references(&db, "./db/p").is_empty());
}

#[test]
fn a_parent_may_come_later_and_go_before() {
    let vfs = disk(2);
    let db = open(&vfs).unwrap();
    db.create_table(&child("./db/c", &[key("k", &["a"], "./db/p", &["x"])])).unwrap();
    assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "k")]));
    db.create_table(&spec("./db/p")).unwrap();
    db.drop_table("./db/p").unwrap();
    assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "k")]));
}

#[test]
fn letters_in_another_case_make_no_other_name_but_where_there_are_both() {
    let (_vfs, db) = with_tables(8);
    let keys = [key("OWN", &["a"], "./db/p", &["x"])];
    assert!(db.has_foreign_key("./db", "OWN", "") && !db.has_foreign_key("./db", "OWN", "./db/c"));
    assert!(db.create_table(&child("./db/d", &keys)).is_err());
    db.create_table(&child("./other/d", &keys)).unwrap();
    assert!(db.rename_table("./other/d", "./db/d").is_err());
    // An older version let it be: the table is renamed and altered as ever.
    db.create_table(&child("./db/#sql-d", &keys)).unwrap();
    db.rename_table("./db/#sql-d", "./db/d").unwrap();
    db.rename_table("./db/d", "./db/e").unwrap();
    db.rename_table("./db/c", "./db/d").unwrap();
    let change = |keys: &[ForeignKey]| TableChange {
        path: "./db/e".into(),
        foreign_keys: Some(keys.to_vec()),
        ..TableChange::default()
    };
    let more = [keys[0].clone(), key("more", &["b"], "./db/p", &["x"])];
    db.alter_tables(&mut [change(&more)]).unwrap();
    let own = [keys[0].clone(), key("oWN", &["b"], "./db/p", &["x"])];
    assert!(db.alter_tables(&mut [change(&own)]).is_err());
}

#[test]
fn names_are_unique_in_a_database() {
    let (_vfs, db) = with_tables(3);
    let refused = db.create_table(&child("./db/d", &[key("own", &["a"], "db/p", &["x"])])).unwrap_err();
    assert!(matches!(refused, EngineError::Exists { .. }), "{refused}");
    assert!(!db.table_exists("./db/d"));
    // In another database, and aside: what an ALTER fills has the names of the table it is for.
    db.create_table(&child("./db/#sql-alter-1", &[key("own", &["a"], "db/p", &["x"])])).unwrap();
    assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "c_ibfk_1")]));
    let change = TableChange {
        path: "./db/p".into(),
        foreign_keys: Some(vec![key("own", &["a"], "db/c", &["id"])]),
        ..TableChange::default()
    };
    let refused = db.alter_tables(&mut [change]).unwrap_err();
    assert!(matches!(refused, Error::Engine(EngineError::Exists { .. })), "{refused}");
    assert!(db.foreign_keys("./db/p").is_empty());
}

#[test]
fn a_rename_is_followed_from_both_sides() {
    let (vfs, db) = with_tables(4);
    let version = db.schema_version();
    db.rename_table("./db/p", "./db/q").unwrap();
    assert!(db.schema_version() > version);
    assert!(references(&db, "./db/p").is_empty());
    assert_eq!(references(&db, "./db/q"), pairs(&[("db/c", "c_ibfk_1")]));
    db.rename_table_as("./db/c", "./db/d", Some(NewName { from: "c", to: "d" }), None, None).unwrap();
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(references(&db, "./db/q"), pairs(&[("db/d", "d_ibfk_1")]));
    assert_eq!(references(&db, "./db/d"), pairs(&[("db/d", "own")]));
    assert!(references(&db, "./db/c").is_empty());
}

#[test]
fn a_copying_alter_exchanges_parents_and_children_under_their_names() {
    let (_vfs, db) = with_tables(5);
    for (path, keys) in [("p", vec![]), ("c", db.foreign_keys("./db/c"))] {
        let (table, new, old) =
            (format!("./db/{path}"), format!("./db/#sql-alter-{path}"), format!("./db/#sql-backup-{path}"));
        db.create_table(&child(&new, &keys)).unwrap();
        assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "c_ibfk_1")]));
        db.rename_table(&table, &old).unwrap();
        db.rename_table(&new, &table).unwrap();
        db.drop_table(&old).unwrap();
        assert_eq!(references(&db, "./db/p"), pairs(&[("db/c", "c_ibfk_1")]));
        assert_eq!(references(&db, "./db/c"), pairs(&[("db/c", "own")]));
    }
}

/// The server gives the copy its name while what it has copied still has its own, except if that one is a parent.
/// Who writes to the parent between two renames of an ALTER asks who its children are.
#[test]
fn a_parent_has_its_children_at_each_moment_of_a_copying_alter() {
    let (_vfs, db) = with_tables(8);
    let both = pairs(&[("db/c", "c_ibfk_1")]);
    let keys = db.foreign_keys("./db/c");
    db.create_table(&child("./db/#sql-alter-1", &keys)).unwrap();
    db.rename_table("./db/c", "./db/#sql-backup-1").unwrap();
    assert_eq!(references(&db, "./db/p"), both);
    assert_eq!(references(&db, "./db/c"), pairs(&[("db/c", "own")]));
    // It fails, and begins anew.
    db.rename_table("./db/#sql-backup-1", "./db/c").unwrap();
    assert_eq!(references(&db, "./db/p"), both);
    db.rename_table("./db/c", "./db/#sql-backup-1").unwrap();
    db.rename_table("./db/#sql-alter-1", "./db/c").unwrap();
    assert_eq!(references(&db, "./db/p"), both);
    db.drop_table("./db/#sql-backup-1").unwrap();
    assert_eq!(references(&db, "./db/p"), both);
    db.drop_table("./db/c").unwrap();
    assert!(references(&db, "./db/p").is_empty());
}

#[test]
fn a_copying_alter_that_renames_takes_the_constraints_of_both_sides_along() {
    let (_vfs, db) = with_tables(6);
    db.create_table(&child("./db/#sql-alter-c", &db.foreign_keys("./db/c"))).unwrap();
    let name = Some(NewName { from: "c", to: "d" });
    db.rename_table_as("./db/#sql-alter-c", "./db/d", name, Some("./db/c"), None).unwrap();
    db.drop_table("./db/c").unwrap();
    assert_eq!(references(&db, "./db/p"), pairs(&[("db/d", "d_ibfk_1")]));
    assert_eq!(references(&db, "./db/d"), pairs(&[("db/d", "own")]));
    db.create_table(&child("./db/#sql-alter-p", &[])).unwrap();
    db.rename_table("./db/p", "./db/#sql-backup-p").unwrap();
    let name = Some(NewName { from: "p", to: "q" });
    db.rename_table_as("./db/#sql-alter-p", "./db/q", name, Some("./db/p"), None).unwrap();
    assert!(references(&db, "./db/p").is_empty());
    assert_eq!(references(&db, "./db/q"), pairs(&[("db/d", "d_ibfk_1")]));
}

fn rename_columns() -> [TableChange; 1] {
    let renamed = [("X", "xx"), ("id", "number")].map(|(old, new)| (old.to_owned(), new.to_owned()));
    [TableChange { path: "./db/p".into(), renamed_columns: renamed.to_vec(), ..TableChange::default() }]
}

#[test]
fn renamed_columns_are_renamed_in_constraints_or_nowhere_whatever_write_a_crash_comes_before() {
    let mut outcomes = [0; 2];
    for n in 1.. {
        let (vfs, db) = with_tables(n);
        vfs.fail_io_after(n, FaultKind::Sticky);
        let before = vfs.io_count();
        let done = db.alter_tables(&mut rename_columns()).is_ok();
        let met = vfs.io_count() - before >= n;
        drop(db);
        let db = open(&vfs.crash()).unwrap_or_else(|e| panic!("reopen after a fault at I/O {n}: {e}"));
        let keys = db.foreign_keys("./db/c");
        assert_eq!(keys[1].parent_columns, ["id"], "of another table");
        let is_new = keys[0].parent_columns == ["xx", "y"];
        assert!(is_new || keys[0].parent_columns == ["x", "y"], "{keys:?}");
        assert!(is_new || !done, "an acknowledged change is gone at I/O {n}");
        outcomes[usize::from(is_new)] += 1;
        if !met {
            break;
        }
        assert!(n < 2000, "a change with endless I/O");
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}
