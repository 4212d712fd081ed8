//! DDL is all or nothing, wherever the power fails and whichever I/O does.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, directories, disk, fill, open, spec, with_table};
use pando_storage::vfs::{FaultKind, OpenMode};
use pandodb::{Db, EngineError, Error, ServerFiles, SimVfs, TableSpec, Vfs};

const ROWS: u32 = 300;

/// Runs `operation` with its n-th I/O failing for good, cuts the power, reopens, and lets `check`
/// look; for n = 1, 2, ... until the operation does not meet the fault any more.
fn at_every_io(
    operation: impl Fn(&Arc<Db>) -> pandodb::Result<()>,
    check: impl Fn(&Arc<SimVfs>, &Arc<Db>, bool),
) {
    for n in 1.. {
        let (vfs, db) = with_table(n, ROWS);
        vfs.fail_io_after(n, FaultKind::Sticky);
        let before = vfs.io_count();
        let done = operation(&db).is_ok();
        let met = vfs.io_count() - before >= n;
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap_or_else(|e| panic!("reopen after a fault at I/O {n}: {e}"));
        check(&vfs, &db, done);
        if !met {
            assert!(done, "the operation failed without a fault");
            return;
        }
        assert!(n < 2000, "an operation with endless I/O");
    }
}

#[test]
fn a_create_that_was_interrupted_leaves_a_whole_table_or_nothing() {
    at_every_io(
        |db| Ok(db.create_table(&spec("./db/b"))?),
        |vfs, db, done| {
            assert_eq!(count(db, "./db/a").unwrap(), ROWS);
            if db.table_exists("./db/b") {
                assert_eq!(count(db, "./db/b").unwrap(), 0);
            } else {
                assert!(!done, "an acknowledged table is gone");
                assert_eq!(directories(vfs), ["a.pando"]);
                db.create_table(&spec("./db/b")).unwrap();
            }
            fill(db, "./db/b", 0..10).unwrap();
            assert_eq!(count(db, "./db/b").unwrap(), 10);
        },
    );
}

#[test]
fn a_drop_that_was_interrupted_leaves_the_table_whole_or_nothing_of_it() {
    at_every_io(
        |db| Ok(db.drop_table("./db/a")?),
        |vfs, db, done| {
            if db.table_exists("./db/a") {
                assert!(!done, "a dropped table is back");
                assert_eq!(count(db, "./db/a").unwrap(), ROWS);
            } else {
                assert!(directories(vfs).is_empty(), "{:?}", directories(vfs));
                db.create_table(&spec("./db/a")).unwrap();
                assert_eq!(count(db, "./db/a").unwrap(), 0);
            }
        },
    );
}

#[test]
fn a_rename_that_was_interrupted_leaves_the_table_under_one_of_its_names() {
    at_every_io(
        |db| Ok(db.rename_table("./db/a", "./db/b")?),
        |vfs, db, done| {
            let name = if db.table_exists("./db/b") { "b" } else { "a" };
            assert!(name == "b" || !done, "an acknowledged rename is undone");
            assert_eq!(directories(vfs), [format!("{name}.pando")]);
            let path = format!("./db/{name}");
            assert_eq!(count(db, &path).unwrap(), ROWS);
            fill(db, &path, ROWS..ROWS + 10).unwrap();
            assert_eq!(count(db, &path).unwrap(), ROWS + 10);
        },
    );
}

#[test]
fn a_truncate_that_was_interrupted_leaves_all_rows_or_none() {
    at_every_io(
        |db| Ok(db.truncate_table("./db/a")?),
        |_, db, done| {
            let rows = count(db, "./db/a").unwrap();
            assert!(rows == 0 || (rows == ROWS && !done), "{rows} rows are left");
            fill(db, "./db/a", 1000..1010).unwrap();
            assert_eq!(count(db, "./db/a").unwrap(), rows + 10);
        },
    );
}

#[test]
fn a_table_in_a_new_directory_survives_a_power_cut() {
    for seed in 0..10 {
        let (vfs, db) = with_table(seed, ROWS);
        db.create_table(&spec("./new/db/b")).unwrap();
        fill(&db, "./new/db/b", 0..10).unwrap();
        drop(db);
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(count(&db, "./new/db/b").unwrap(), 10);
    }
}

#[test]
fn names_are_checked() {
    let (_, db) = with_table(1, ROWS);
    let taken = db.create_table(&spec("./db/a")).unwrap_err();
    assert!(matches!(taken, EngineError::Exists { .. }), "{taken}");
    let missing = db.open_table("./db/nix").unwrap_err();
    assert!(matches!(missing, EngineError::NotFound { .. }), "{missing}");
    db.create_table(&spec("./db/b")).unwrap();
    let onto = db.rename_table("./db/a", "./db/b").unwrap_err();
    assert!(matches!(onto, EngineError::Exists { .. }), "{onto}");
}

#[test]
fn dropping_a_database_drops_what_the_server_forgot() {
    let (vfs, db) = with_table(1, ROWS);
    db.create_table(&spec("./db/b")).unwrap();
    db.drop_database("./db/").unwrap();
    assert!(directories(&vfs).is_empty());
    assert!(!db.table_exists("./db/a"));
}

#[test]
fn temporary_tables_are_gone_after_a_restart() {
    let (vfs, db) = with_table(1, ROWS);
    let mut temporary = spec("./db/#sql-1");
    temporary.temporary = true;
    db.create_table(&temporary).unwrap();
    fill(&db, "./db/#sql-1", 0..50).unwrap();
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert!(!db.table_exists("./db/#sql-1"));
    assert_eq!(directories(&vfs), ["a.pando"]);
}

#[test]
fn a_truncated_table_gives_its_space_back_and_restarts_its_counter() {
    let (_, db) = with_table(1, ROWS);
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    let mut noise = 1u64;
    for n in 0..200u32 {
        // Incompressible, so that the file passes the size below which it keeps a little reserve.
        let mut step = || {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (noise >> 56) as u8
        };
        let value: Vec<u8> = (0..20_000).map(|_| step()).collect();
        txn.put(&table, 0, format!("{n:08}").as_bytes(), &value, pandodb::LockWait::NoWait).unwrap();
        txn.put(&table, 1, format!("{n:08}").as_bytes(), b"", pandodb::LockWait::NoWait).unwrap();
    }
    txn.raise_auto_increment(&table, 77).unwrap();
    txn.commit().unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(table.auto_increment(), 77);
    let full = table.info(true).unwrap();
    db.truncate_table("./db/a").unwrap();
    let empty = table.info(true).unwrap();
    assert!(empty.data_bytes < full.data_bytes / 4, "{empty:?} after {full:?}");
    assert_eq!(table.auto_increment(), 0);
    assert_eq!(count(&db, "./db/a").unwrap(), 0);
}

#[test]
fn an_auto_increment_value_survives_deletes_crashes_and_checkpoints() {
    let (vfs, db) = with_table(1, ROWS);
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    assert_eq!(table.auto_increment_reserve(1, 1, 1, 10), Some(1));
    txn.put(&table, 0, b"10", b"", pandodb::LockWait::NoWait).unwrap();
    txn.raise_auto_increment(&table, 11).unwrap();
    txn.commit().unwrap();
    txn.delete(&table, 0, b"10", pandodb::LockWait::NoWait).unwrap();
    txn.commit().unwrap();
    drop((txn, table, db));
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert_eq!(db.open_table("./db/a").unwrap().auto_increment(), 11);
    db.checkpoint().unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&vfs).unwrap();
    assert_eq!(db.open_table("./db/a").unwrap().auto_increment(), 11);
}

/// Symptom: a space check of the simulation found a counter that only the log had. A commit that raised a table's
/// counter and left none of its rows (they were rolled back to a savepoint) did not count as unwritten: the log could be
/// trimmed, and values were given out again after a crash.
#[test]
fn a_counter_that_was_raised_without_rows_outlives_the_log() {
    let (vfs, db) = with_table(1, ROWS);
    db.create_table(&spec("./db/other")).unwrap();
    let (table, other) = (db.open_table("./db/a").unwrap(), db.open_table("./db/other").unwrap());
    db.checkpoint().unwrap();
    let mut txn = db.begin();
    txn.raise_auto_increment(&table, 36).unwrap();
    for n in 0..30u8 {
        // Several files of the log.
        txn.put(&other, 0, &[n], &vec![n; 20_000], pandodb::LockWait::NoWait).unwrap();
        txn.commit().unwrap();
    }
    db.checkpoint().unwrap();
    db.abandon();
    drop((txn, table, other, db));
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(db.open_table("./db/a").unwrap().auto_increment(), 36);
}

/// As one who was rolled back has raised it.
#[test]
fn a_counter_is_written_when_the_database_is_closed_also_if_nothing_was_committed() {
    let (vfs, db) = with_table(1, ROWS);
    db.checkpoint().unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    txn.raise_auto_increment(&table, 7).unwrap();
    txn.rollback();
    drop((txn, table));
    db.close().unwrap();
    drop(db);
    let db = open(&vfs).unwrap();
    assert_eq!(db.open_table("./db/a").unwrap().auto_increment(), 7);
}

#[test]
fn errors_of_transactions_are_told_apart() {
    let (_, db) = with_table(1, ROWS);
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    let entry = |unique| pandodb::Entry { key: b"00000001", value: b"x", unique };
    match txn.insert_row(&table, &[entry(true), entry(false)]) {
        Err(Error::Duplicate { index: 0, existing }) => assert_eq!(existing, b"value 1"),
        other => panic!("{other:?}"),
    }
    assert!(!txn.has_writes(), "a refused row leaves nothing");
}

#[test]
fn files_of_others_in_the_directory_of_a_table_stay() {
    let (vfs, db) = with_table(1, ROWS);
    let notes = Path::new("/data/db/a.pando/notes.txt");
    vfs.open(notes, OpenMode::Create).unwrap().write_at(b"mine", 0).unwrap();
    db.drop_table("./db/a").unwrap();
    let left: Vec<String> =
        vfs.read_dir(Path::new("/data/db/a.pando")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(left, ["notes.txt"]);
    let error = db.create_table(&spec("./db/a")).unwrap_err().to_string();
    assert!(error.contains("db/a.pando"), "{error}");
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert!(!db.table_exists("./db/a"));
    if vfs.exists(notes).unwrap() {
        vfs.remove_dir_all(Path::new("/data/db/a.pando")).unwrap();
    }
    db.create_table(&spec("./db/a")).unwrap();
}

#[test]
fn names_that_tables_have_lost_are_known_after_a_crash_and_until_directories_are_synced() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    for path in ["./db/dropped", "./db/renamed", "./db/#sql-alter-1", "./db/t#P#p0"] {
        db.create_table(&TableSpec { definition: path.into(), ..spec(path) }).unwrap();
    }
    db.drop_table("./db/dropped").unwrap();
    db.rename_table("./db/renamed", "./db/now").unwrap();
    db.rename_table("./db/#sql-alter-1", "./db/new").unwrap();
    db.drop_table("./db/t#P#p0").unwrap();
    let gone = |path: &str| (format!("db/{path}"), format!("./db/{path}"));
    let expected = [gone("dropped"), gone("renamed")];
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert_eq!(db.names_gone(), expected);
    db.tick();
    assert_eq!(db.names_gone(), expected, "not yet");
    vfs.advance_micros(60_000_000);
    db.tick();
    assert_eq!(db.names_gone(), []);
    db.rename_table("./db/now", "./db/then").unwrap();
    assert_eq!(db.names_gone().len(), 1);
    db.close().unwrap();
    drop(db);
    assert_eq!(open(&vfs.crash()).unwrap().names_gone(), []);
}

/// A `NAME.par` as the server writes it.
fn partitioning_file(names: &[&str]) -> Vec<u8> {
    let padded = |mut bytes: Vec<u8>| {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let text: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
    let size = number(text.len());
    let (engines, text) = (padded(vec![42; names.len()]), padded(text));
    let words = number(4 + (engines.len() + text.len()) / 4);
    let mut file = [&words[..], &[0; 4], &number(names.len()), &engines, &size, &text].concat();
    for at in (0..file.len()).filter(|at| at / 4 != 1) {
        file[4 + at % 4] ^= file[at];
    }
    file
}

#[test]
fn the_files_of_a_partitioned_table_go_where_its_partitions_go() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    let files = |path: &str, id: &str, names: &[&str]| {
        ServerFiles::new(path, id, b"definition", &partitioning_file(names)).unwrap()
    };
    let two = files("./db/t", "1", &["a", "b"]);
    for name in ["a", "b"] {
        let path = format!("./db/t#P#{name}");
        db.create_table(&TableSpec { server_files: Some(two.clone()), ..spec(&path) }).unwrap();
    }
    let fits = |db: &Db, table: &str, names: &[&str]| db.server_files_fit(table, &partitioning_file(names));
    assert_eq!(db.server_files("./db/t"), Some(two.clone()));
    assert!(fits(&db, "./db/t", &["b", "a"]));
    for names in [&["a"][..], &["a", "b", "c"], &["a", "c"]] {
        assert!(!fits(&db, "./db/t", names), "{names:?}");
    }
    // A partition that ALTER TABLE makes does not count, one that is there does.
    db.create_table(&spec("./db/t#P#c#TMP#")).unwrap();
    assert!(fits(&db, "./db/t", &["a", "b"]));
    db.rename_table("./db/t#P#c#TMP#", "./db/t#P#c").unwrap();
    assert!(!fits(&db, "./db/t", &["a", "b"]));
    let three = files("./db/t", "2", &["a", "b", "c"]);
    db.record_server_files(three.clone(), false).unwrap();
    drop(db);

    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert_eq!(db.server_files("db/t"), Some(three.clone()));
    assert!(db.has_partitions_of("2"));
    assert!(!db.has_partitions_of("1") && !db.has_partitions_of(""));
    assert!(db.has_partitions("./db/t") && !db.has_partitions("./db/u") && !db.has_partitions("./db/t#P#a"));
    // All partitions go with the first, and so do the files.
    db.expect_name("./db/u", "2").unwrap();
    assert_eq!(db.names_gone(), [("db/u".to_owned(), "2".to_owned())], "no partition has come there");
    for name in ["a", "b", "c"] {
        db.rename_table(&format!("./db/t#P#{name}"), &format!("./db/u#P#{name}")).unwrap();
        assert_eq!(db.tables_with_server_files(None), ["db/u"]);
    }
    assert_eq!(db.server_files("db/u").unwrap().definition().unwrap(), b"definition");
    assert!(fits(&db, "db/u", &["a", "b", "c"]));
    assert_eq!(db.names_gone(), [("db/t".to_owned(), "2".to_owned())]);
    assert!(db.has_partitions_of("2"), "under the new name");

    // EXCHANGE PARTITION takes a partition out for a while, REORGANIZE has none but those that it makes.
    db.drop_table("./db/u#P#a").unwrap();
    db.drop_table("./db/u#P#b").unwrap();
    db.rename_table("./db/u#P#c", "./db/#sql-exchange").unwrap();
    assert!(db.server_files("db/u").is_some());
    db.rename_table("./db/#sql-exchange", "./db/u#P#c").unwrap();
    db.create_table(&spec("./db/u#P#d#TMP#")).unwrap();
    db.drop_table("./db/u#P#c").unwrap();
    db.rename_table("./db/u#P#d#TMP#", "./db/u#P#d").unwrap();
    assert!(db.server_files("db/u").is_some());
    db.forget_server_files("db/u").unwrap();
    assert!(db.server_files("db/u").is_some(), "it has a partition");
    db.drop_table("./db/u#P#d").unwrap();
    drop(db);

    let db = open(&vfs.crash()).unwrap();
    assert_eq!(db.tables_with_server_files(None), Vec::<String>::new());
    assert!(!db.has_partitions_of("2") && !db.has_partitions("db/u"), "the last one is gone");
    assert_eq!(db.names_gone().len(), 3);
    // The name is somebody's again.
    db.create_table(&spec("./db/t#P#a")).unwrap();
    let gone = ("db/u".to_owned(), "2".to_owned());
    assert_eq!(db.names_gone(), [gone.clone(), gone]);
}

#[test]
fn only_empty_partitions_are_taken_for_those_of_an_unfinished_create() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    let three = ServerFiles::new("./db/t", "1", b"definition", &partitioning_file(&["a", "b", "c"])).unwrap();
    for name in ["a", "b"] {
        let path = format!("./db/t#P#{name}");
        db.create_table(&TableSpec { server_files: Some(three.clone()), ..spec(&path) }).unwrap();
    }
    db.create_table(&spec("./db/tt#P#a")).unwrap();
    fill(&db, "./db/t#P#b", 0..1).unwrap();
    assert!(!db.drop_if_empty("./db/t").unwrap(), "one has a row");
    assert!(!db.drop_if_empty("./db/t#P#b").unwrap(), "it has a row");
    assert!(!db.drop_if_empty("./db/u").unwrap(), "there is none");
    assert_eq!(directories(&vfs), ["t#P#a.pando", "t#P#b.pando", "tt#P#a.pando"]);
    db.open_table("./db/t#P#b").unwrap();
    db.truncate_table("./db/t#P#b").unwrap();
    assert!(db.drop_if_empty("./db/t").unwrap());
    assert_eq!(directories(&vfs), ["tt#P#a.pando"]);
    assert_eq!(db.server_files("db/t"), None);
    drop(db);

    let db = open(&vfs.crash()).unwrap();
    assert!(!db.table_exists("./db/t#P#a") && db.table_exists("./db/tt#P#a"));
    db.create_table(&spec("./db/t#P#a")).unwrap();
}
