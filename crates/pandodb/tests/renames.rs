//! Renames of partitioned tables, as the server makes them: one partition after the other, and back if one is refused.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{count, directories, disk, fill, open, open_logging, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, Definition, ServerFiles, SimVfs, TableSpec};

const ROWS: u32 = 20;
const STATEMENT: Option<u64> = Some(7);

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

fn partition(table: &str, name: &str) -> String {
    format!("./db/{table}#P#{name}")
}

/// A table with these partitions, and another one that fills the log.
fn with_partitions(seed: u64, names: &[&str]) -> (Arc<SimVfs>, Arc<Db>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let files = ServerFiles::new("./db/t", "1", b"definition", &partitioning_file(names)).unwrap();
    for name in names {
        let path = partition("t", name);
        let definition = Definition::new("1".into(), b"shape", b"");
        let server_files = Some(files.clone());
        db.create_table(&TableSpec { server_files, definition, ..spec(&path) }).unwrap();
        fill(&db, &path, 0..ROWS).unwrap();
    }
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    (vfs, db)
}

/// As `ha_partition::del_ren_table` does it. Says also whether what was refused could be taken back.
fn rename(db: &Db, from: &str, to: &str, names: &[&str]) -> (bool, bool) {
    let one = |from, to, name| {
        db.rename_table_as(&partition(from, name), &partition(to, name), None, None, STATEMENT).is_ok()
    };
    let Some(refused) = names.iter().position(|name| !one(from, to, name)) else { return (true, true) };
    (false, names[..refused].iter().all(|name| one(to, from, name)))
}

/// The name of the table that has all of the partitions.
fn name_of(db: &Arc<Db>, names: &[&str]) -> Result<&'static str, String> {
    let has = |table| names.iter().filter(|name| db.table_exists(&partition(table, name))).count();
    let table = match (has("t"), has("u")) {
        (n, 0) if n == names.len() => "t",
        (0, n) if n == names.len() => "u",
        found => return Err(format!("{found:?} partitions have the two names")),
    };
    for name in names {
        let rows = count(db, &partition(table, name)).map_err(|e| format!("{table} {name}: {e}"))?;
        if rows != ROWS {
            return Err(format!("{table} {name}: {rows} rows"));
        }
    }
    if !db.server_files_fit(&format!("db/{table}"), &partitioning_file(names)) {
        return Err(format!("{table}: its files do not fit"));
    }
    match db.tables_with_server_files(None) {
        tables if tables == [format!("db/{table}")] => Ok(table),
        tables => Err(format!("files of {tables:?}")),
    }
}

/// Commits until the log has no place for more, of so many bytes and then small ones, but for `room` of these.
fn fill_log(db: &Arc<Db>, small_max: u32) -> u32 {
    while fill(db, "./db/a", 0..20).is_ok() {}
    (0..small_max).take_while(|_| fill(db, "./db/a", 0..1).is_ok()).count() as u32
}

#[test]
fn on_a_full_disk_a_partitioned_table_is_renamed_and_renamed_back_whole_or_not_at_all() {
    // Symptom: RENAME TABLE of a partitioned table was refused on a full disk after some of its partitions, the log had
    // no space to take these back either, and the table had two names from then on. Cause: each partition was a change of
    // its own, which took from the log's reserve. Guarantee: the first one changes all, and has space for the way back.
    let names = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11"];
    let (mut refused, mut renamed) = (0, 0);
    for room in (0..160_000).step_by(9_700) {
        for others in [0, 3, 40] {
            let (vfs, db) = with_partitions(1, &names);
            vfs.set_capacity(Some(vfs.used_bytes() + room));
            fill_log(&db, 1000);
            let context = format!("with room for {room} bytes, {others} others");
            for _ in 0..40 {
                let (done, is_back) = rename(&db, "t", "u", &names);
                assert!(is_back, "{context}");
                if !done {
                    assert_eq!(name_of(&db, &names).unwrap(), "t", "{context}");
                    refused += 1;
                    break;
                }
                renamed += 1;
                assert_eq!(name_of(&db, &names).unwrap(), "u", "{context}");
                // Others take from the reserve whatever they get.
                for n in 0..others {
                    let _ = db.expect_name(&format!("./db/x{n}"), "2");
                }
                // A later part of the statement has failed.
                assert_eq!(rename(&db, "u", "t", &names), (true, true), "{context}");
                assert_eq!(name_of(&db, &names).unwrap(), "t", "{context}");
                db.end_ways_back(7);
            }
            drop(db);
            vfs.set_capacity(None);
            let db = open(&vfs.crash()).unwrap();
            assert_eq!(name_of(&db, &names).unwrap(), "t", "{context}");
        }
    }
    assert!(refused > 10 && renamed > 10, "{refused} {renamed}");
}

#[test]
fn whatever_io_of_a_rename_fails_no_partition_is_left_behind() {
    let names = ["p0", "p1", "p2"];
    for kind in [FaultKind::Error, FaultKind::DiskFull, FaultKind::Sticky] {
        for n in 1.. {
            let (vfs, db) = with_partitions(n, &names);
            vfs.fail_io_after(n, kind);
            let before = vfs.io_count();
            // Forth, and half of the times back.
            let (mut done, mut is_back) = rename(&db, "t", "u", &names);
            let mut expected = if done { "u" } else { "t" };
            if done && n % 2 == 0 {
                (done, is_back) = rename(&db, "u", "t", &names);
                expected = if done { "t" } else { "u" };
            }
            let met = vfs.io_count() - before >= n;
            vfs.clear_faults();
            let context = format!("{kind:?} at I/O {n}");
            assert!(is_back, "{context}: the first call does all, or nothing");
            let in_doubt = db.metrics().read_only_latched.get() > 0;
            if !in_doubt {
                assert_eq!(name_of(&db, &names).as_ref(), Ok(&expected), "{context}");
            }
            drop(db);
            let vfs = vfs.crash();
            let db = open(&vfs).unwrap();
            let found = name_of(&db, &names).unwrap_or_else(|e| panic!("{context}, after a restart: {e}"));
            assert!(in_doubt || found == expected, "{context}, after a restart: {found}");
            let its: Vec<String> = names.iter().map(|name| format!("{found}#P#{name}.pando")).collect();
            assert_eq!(directories(&vfs)[1..], its, "{context}");
            if !met {
                break;
            }
            assert!(n < 500, "a rename with endless I/O");
        }
    }
}

#[test]
fn a_crash_at_any_io_of_a_rename_leaves_one_name() {
    let names = ["p0", "p1", "p2"];
    for n in 1.. {
        let (vfs, db) = with_partitions(n, &names);
        vfs.fail_io_after(n, FaultKind::Sticky);
        let before = vfs.io_count();
        rename(&db, "t", "u", &names);
        let met = vfs.io_count() - before >= n;
        let crashed = vfs.crash();
        drop(db);
        let db = open(&crashed).unwrap();
        let name = name_of(&db, &names).unwrap_or_else(|e| panic!("a crash at I/O {n}: {e}"));
        // The server's recovery takes it back, where it has not come to its end.
        if name == "u" {
            assert_eq!(rename(&db, "u", "t", &names), (true, true));
            assert_eq!(name_of(&db, &names), Ok("t"));
        }
        if !met {
            return;
        }
    }
}

/// Makes partitions of these names, as the change of each by itself left them.
fn make(db: &Arc<Db>, table: &str, names: &[&str], shape: &str) {
    for name in names {
        let path = partition(table, name);
        let definition = Definition::new("1".into(), shape.as_bytes(), b"");
        db.create_table(&TableSpec { definition, ..spec(&path) }).unwrap();
        fill(db, &path, 0..ROWS).unwrap();
    }
}

#[test]
fn a_table_between_two_names_is_made_one_again() {
    let names = ["p0", "p1", "p2", "p3"];
    let par = partitioning_file(&names);
    let vfs = disk(1);
    let lines = Lines::default();
    let db = open_logging(&vfs, &lines).unwrap();
    make(&db, "t", &["p2", "p3"], "shape");
    assert_eq!(db.other_half("./db/t", &par), None, "there is none");
    make(&db, "other", &["p0", "p1"], "another shape");
    make(&db, "less", &["p0"], "shape");
    make(&db, "more", &["p0", "p1", "p2"], "shape");
    assert_eq!(db.other_half("./db/t", &par), None);
    // A table of its own.
    make(&db, "whole", &["p0", "p1"], "shape");
    let own = ServerFiles::new("./db/whole", "1", b"x", &partitioning_file(&["p0", "p1"])).unwrap();
    db.record_server_files(own, false).unwrap();
    assert_eq!(db.other_half("./db/t", &par), None);
    // As the rename has left it: both names have the files.
    make(&db, "u", &["p0", "p1"], "shape");
    for table in ["t", "u"] {
        let files = ServerFiles::new(&format!("./db/{table}"), "1", b"definition", &par).unwrap();
        db.record_server_files(files, false).unwrap();
    }
    assert_eq!(db.other_half("./db/t", &par).as_deref(), Some("db/u"));
    assert_eq!(db.other_half("./db/u", &par).as_deref(), Some("db/t"));
    make(&db, "v", &["p0", "p1"], "shape");
    assert_eq!(db.other_half("./db/t", &par), None, "nobody knows which of the two");
    for name in ["p0", "p1"] {
        db.drop_table(&partition("v", name)).unwrap();
    }
    db.join_halves("./db/t", "./db/u").unwrap();
    assert!(lines.lock().unwrap().iter().any(|(_, line)| line.contains("now all are its own again")));
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(db.tables_with_server_files(None), ["db/t", "db/whole"]);
    assert!(db.server_files_fit("./db/t", &par));
    for name in names {
        assert_eq!(count(&db, &partition("t", name)).unwrap(), ROWS);
    }
    assert_eq!(db.other_half("./db/t", &par), None, "it is whole");
    assert_eq!(count(&db, &partition("whole", "p0")).unwrap(), ROWS);
}

#[test]
fn a_partition_that_is_not_there_is_not_taken_for_one_that_was_renamed() {
    let (_, db) = with_partitions(1, &["p0", "p1"]);
    let one = |from: &str, to: &str| db.rename_table(from, to).is_ok();
    assert!(!one("./db/t#P#p2", "./db/u#P#p2"), "nobody has it");
    db.create_table(&spec("./db/u#P#p1")).unwrap();
    assert!(!one("./db/t#P#p0", "./db/u#P#p0"), "one of the names is taken");
    assert_eq!(db.tables_with_server_files(None), ["db/t"]);
    db.drop_table("./db/u#P#p1").unwrap();
    // Those that an ALTER TABLE was making stay; it removes them itself.
    db.create_table(&spec("./db/t#P#p0#TMP#")).unwrap();
    assert!(one("./db/t#P#p0", "./db/u#P#p0") && one("./db/t#P#p1", "./db/u#P#p1"));
    assert!(db.table_exists("./db/t#P#p0#TMP#") && !db.table_exists("./db/u#P#p0#TMP#"));
    // Into a table, and back: no more than that one.
    assert!(one("./db/u#P#p0", "./db/plain"));
    assert!(db.table_exists("./db/u#P#p1"));
    assert!(one("./db/plain", "./db/u#P#p0"));
}
