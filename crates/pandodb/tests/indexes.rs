//! Indexes that are added and dropped while others write.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{disk, open};
use pando_storage::vfs::FaultKind;
use pandodb::{
    Clustering, Compression, Db, Entry, Error, IndexBuild, IndexPlace, IndexSource, IndexSpec, LockMode,
    LockWait, LockedRead, NewIndex, ReadMode, SimVfs, Table, TableSpec, Txn, Vfs,
};

const PATH: &str = "./db/t";

/// Rows: a number and a group; keys of the indexes are the group alone (unique), or group and number.
type Rows = BTreeMap<u32, u32>;

fn create(db: &Arc<Db>) {
    let spec = TableSpec {
        path: PATH.into(),
        indexes: Vec::new(),
        compression: Compression::Lz4,
        temporary: false,
        auto_increment: 0,
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
}

fn indexes() -> Vec<NewIndex> {
    let index = |name: &str, is_unique| NewIndex {
        name: name.into(),
        is_unique,
        clustering: Clustering::None,
        recipe: name.as_bytes().to_vec(),
    };
    vec![index("plain", false), index("unique", true)]
}

fn places() -> Vec<IndexPlace> {
    let place = |name: &str, at| IndexPlace { name: name.into(), source: IndexSource::New(at) };
    // The order of the definition is another one than that of the building.
    vec![place("unique", 1), place("plain", 0)]
}

/// Key and value of a row in dictionary 0, the plain index and the unique one.
fn encode(number: u32, group: u32) -> [(Vec<u8>, Vec<u8>); 3] {
    let key = format!("{number:06}").into_bytes();
    let plain = format!("{group:06}/{number:06}").into_bytes();
    let unique = format!("{group:06}").into_bytes();
    [(key.clone(), group.to_be_bytes().to_vec()), (plain, Vec::new()), (unique, key)]
}

/// The entries that a row has in a table with these indexes, which may be there or being built.
fn entries<'a>(table: &Table, row: &'a [(Vec<u8>, Vec<u8>); 3]) -> Vec<Entry<'a>> {
    let entry = |at: usize, unique| Entry { key: &row[at].0, value: &row[at].1, unique };
    match (table.dicts().len(), table.building().len()) {
        (1, 0) => vec![entry(0, true)],
        (1, 2) => vec![entry(0, true), entry(1, false), entry(2, true)],
        (3, 0) => vec![entry(0, true), entry(2, true), entry(1, false)],
        other => panic!("a table with {other:?} dictionaries"),
    }
}

fn insert(txn: &mut Txn, table: &Table, number: u32, group: u32) -> pandodb::Result<()> {
    let row = encode(number, group);
    txn.insert_row(table, &entries(table, &row))
}

fn update(txn: &mut Txn, table: &Table, number: u32, old: u32, new: u32) -> pandodb::Result<()> {
    let (old, new) = (encode(number, old), encode(number, new));
    txn.update_row(table, &entries(table, &old), &entries(table, &new))
}

fn delete(txn: &mut Txn, table: &Table, number: u32, group: u32) -> pandodb::Result<()> {
    let row = encode(number, group);
    txn.delete_row(table, &entries(table, &row))
}

fn commit_rows(db: &Arc<Db>, rows: impl Iterator<Item = (u32, u32)>) {
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    for (number, group) in rows {
        insert(&mut txn, &table, number, group).unwrap();
    }
    txn.commit().unwrap();
}

/// What is in a dictionary.
fn content(db: &Arc<Db>, index: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, index);
    cursor.seek_first(&mut txn, ReadMode::Latest).unwrap();
    let mut found = BTreeMap::new();
    while cursor.valid() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next(&mut txn).unwrap();
    }
    found
}

fn rows_of(db: &Arc<Db>) -> Rows {
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().parse().unwrap();
    let group = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    content(db, 0).iter().map(|(key, value)| (number(key), group(value))).collect()
}

/// Both indexes have what the rows say.
fn check_indexes(db: &Arc<Db>) {
    let table = db.open_table(PATH).unwrap();
    assert_eq!(table.dicts().len(), 3);
    db.check_table(&table, &mut |_| true).unwrap();
    let rows = rows_of(db);
    let of = |at: usize| -> BTreeMap<_, _> { rows.iter().map(|(n, g)| encode(*n, *g)[at].clone()).collect() };
    assert_eq!(content(db, 1), of(2), "the unique index");
    assert_eq!(content(db, 2), of(1), "the plain index");
}

fn files(vfs: &Arc<SimVfs>) -> Vec<String> {
    let mut names: Vec<String> =
        vfs.read_dir(Path::new("/data/db/t.pando")).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// Makes the base as a handler would: from a scan of the reader.
fn make_base(build: &mut IndexBuild) -> pandodb::Result<()> {
    let mut reader = build.take_reader().unwrap();
    let table = build.table().clone();
    let mut cursor = reader.cursor(&table, 0);
    cursor.seek_first(&mut reader, ReadMode::Snapshot)?;
    let (mut plain, mut unique) = (BTreeMap::new(), BTreeMap::new());
    while cursor.valid() {
        let number = std::str::from_utf8(cursor.key()).unwrap().parse().unwrap();
        let group = u32::from_be_bytes(cursor.value().try_into().unwrap());
        let [_, (plain_key, plain_value), (unique_key, unique_value)] = encode(number, group);
        plain.insert(plain_key, plain_value);
        unique.insert(unique_key, unique_value);
        cursor.next(&mut reader)?;
    }
    for (at, base) in [plain, unique].iter().enumerate() {
        build.set_base_of(at, base.iter().map(|(key, value)| (&key[..], &value[..])))?;
    }
    build.end_bases()
}

fn never() -> bool {
    false
}

/// All of a build, with nobody writing between.
fn build_all(db: &Arc<Db>) -> pandodb::Result<()> {
    let mut build = db.begin_index_build(PATH, &indexes())?;
    make_base(&mut build)?;
    build.catch_up(&mut never)?;
    build.secure()?;
    build.finish(&places()).map_err(|(_, error)| error)
}

#[test]
fn an_index_has_the_rows_from_before_and_what_was_written_meanwhile() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..500).map(|n| (n, n)));
    let mut build = db.begin_index_build(PATH, &indexes()).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(table.building().len(), 2);
    assert_eq!(table.building()[1].recipe(), b"unique");
    let mut txn = db.begin();
    insert(&mut txn, &table, 1000, 1000).unwrap();
    delete(&mut txn, &table, 7, 7).unwrap();
    update(&mut txn, &table, 8, 8, 1008).unwrap();
    let mark = txn.mark();
    insert(&mut txn, &table, 1001, 1001).unwrap();
    delete(&mut txn, &table, 9, 9).unwrap();
    txn.rollback_to(mark).unwrap();
    txn.commit().unwrap();
    let mut lost = db.begin();
    insert(&mut lost, &table, 1002, 1002).unwrap();
    lost.rollback();
    // Before there is a base, everything that can be flushed is: deletes must not get lost.
    db.checkpoint().unwrap();
    db.run_jobs().unwrap();
    make_base(&mut build).unwrap();
    db.run_jobs().unwrap();
    let mut txn = db.begin();
    update(&mut txn, &table, 10, 10, 7).unwrap();
    insert(&mut txn, &table, 7, 10).unwrap();
    txn.commit().unwrap();
    assert!(build.catch_up(&mut never).unwrap() > 0);
    let mut txn = db.begin();
    update(&mut txn, &table, 11, 11, 8).unwrap();
    txn.commit().unwrap();
    build.secure().unwrap();
    build.finish(&places()).unwrap();
    check_indexes(&db);
    assert_eq!(rows_of(&db).len(), 501);
    assert_eq!(files(&vfs), ["key-plain.pando", "key-unique.pando", "main.pando", "status.pando"]);
    db.run_jobs().unwrap();
    check_indexes(&db);
    // Now the unique index is one.
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    assert!(matches!(insert(&mut txn, &table, 2000, 20), Err(Error::Duplicate { index: 1, .. })));
    drop(txn);
    drop((db, table));
    let db = open(&vfs.crash()).unwrap();
    check_indexes(&db);
}

#[test]
fn duplicates_that_come_and_go_while_an_index_is_built_do_no_harm() {
    let vfs = disk(2);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..100).map(|n| (n, n)));
    let mut build = db.begin_index_build(PATH, &indexes()).unwrap();
    make_base(&mut build).unwrap();
    let table = db.open_table(PATH).unwrap();
    // One takes key 5 before the other gives it up.
    let mut giver = db.begin();
    delete(&mut giver, &table, 5, 5).unwrap();
    let mut taker = db.begin();
    insert(&mut taker, &table, 500, 5).unwrap();
    taker.commit().unwrap();
    build.catch_up(&mut never).unwrap();
    giver.commit().unwrap();
    // Twice the same for a moment, seen by a run or not.
    for seen in [true, false] {
        let mut txn = db.begin();
        update(&mut txn, &table, 20, 20, 30).unwrap();
        txn.commit().unwrap();
        if seen {
            build.catch_up(&mut never).unwrap();
        }
        let mut txn = db.begin();
        update(&mut txn, &table, 20, 30, 20).unwrap();
        txn.commit().unwrap();
    }
    build.finish(&places()).unwrap();
    check_indexes(&db);
}

#[test]
fn a_duplicate_is_the_trouble_of_the_build_not_of_the_writer() {
    let vfs = disk(3);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..100).map(|n| (n, n)));
    let before = db.open_table(PATH).unwrap();
    for with in [40, 100] {
        let mut build = db.begin_index_build(PATH, &indexes()).unwrap();
        make_base(&mut build).unwrap();
        let table = db.open_table(PATH).unwrap();
        let mut txn = db.begin();
        insert(&mut txn, &table, with + 100, with).unwrap();
        // With a row of the base, or both new.
        insert(&mut txn, &table, with + 101, with).unwrap();
        txn.commit().unwrap();
        build.catch_up(&mut never).unwrap();
        let (build, error) = build.finish(&places()).unwrap_err();
        assert!(matches!(error, Error::Duplicate { index: 1, .. }), "{error}");
        let (index, key, value) = build.duplicate().unwrap();
        assert_eq!((index, key), (1, format!("{with:06}").as_bytes()));
        assert_eq!(value.len(), 6);
        drop(build);
        // The writer's object, which knows the index, can still be used.
        let mut txn = db.begin();
        insert(&mut txn, &table, with + 102, with).unwrap();
        for number in with + 100..=with + 102 {
            delete(&mut txn, &table, number, with).unwrap();
        }
        // And so can the builder's, from before.
        insert(&mut txn, &before, with + 103, with + 103).unwrap();
        delete(&mut txn, &before, with + 103, with + 103).unwrap();
        txn.commit().unwrap();
        assert_eq!(files(&vfs), ["main.pando", "status.pando"]);
        assert_eq!(db.open_table(PATH).unwrap().building().len(), 0);
    }
    build_all(&db).unwrap();
    check_indexes(&db);
}

#[test]
fn a_build_is_refused_while_someone_has_uncommitted_or_prepared_writes() {
    let vfs = disk(4);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..10).map(|n| (n, n)));
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 50, 50).unwrap();
    assert!(db.begin_index_build(PATH, &indexes()).is_err());
    txn.prepare(b"x").unwrap();
    txn.detach();
    assert!(db.begin_index_build(PATH, &indexes()).is_err());
    assert_eq!(files(&vfs), ["main.pando", "status.pando"]);
    db.rollback_by_xid(b"x").unwrap();
    build_all(&db).unwrap();
    check_indexes(&db);
}

#[test]
fn writes_through_an_object_that_does_not_know_the_index_are_refused() {
    let vfs = disk(5);
    let db = open(&vfs).unwrap();
    create(&db);
    let old = db.open_table(PATH).unwrap();
    build_all(&db).unwrap();
    let mut txn = db.begin();
    assert!(matches!(insert(&mut txn, &old, 1, 1), Err(Error::DefinitionChanged)));
    drop(txn);
    commit_rows(&db, (0..3).map(|n| (n, n)));
    check_indexes(&db);
}

#[test]
fn a_snapshot_from_before_cannot_read_the_index() {
    let vfs = disk(6);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..3).map(|n| (n, n)));
    let mut reader = db.begin();
    reader.open_snapshot();
    commit_rows(&db, (3..5).map(|n| (n, n)));
    build_all(&db).unwrap();
    let table = db.open_table(PATH).unwrap();
    for (index, readable) in [(0, true), (1, false), (2, false)] {
        let mut cursor = reader.cursor(&table, index);
        assert_eq!(cursor.seek_first(&mut reader, ReadMode::Snapshot).is_ok(), readable);
        assert_eq!(reader.get(&table, index, b"000001").is_ok(), readable);
    }
    reader.close_snapshot();
    let mut cursor = reader.cursor(&table, 1);
    cursor.seek_first(&mut reader, ReadMode::Snapshot).unwrap();
}

#[test]
fn indexes_are_dropped_and_renamed_at_once() {
    let vfs = disk(7);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, (0..300).map(|n| (n, n)));
    build_all(&db).unwrap();
    let kept = |name: &str, at| IndexPlace { name: name.into(), source: IndexSource::Kept(at) };
    db.change_indexes(PATH, &[kept("by_group", 2), kept("unique", 1)]).unwrap();
    db.change_indexes(PATH, &[kept("unique", 2), kept("by_group", 1)]).unwrap();
    check_indexes(&db);
    db.change_indexes(PATH, &[]).unwrap();
    assert_eq!(files(&vfs), ["main.pando", "status.pando"]);
    commit_rows(&db, (300..310).map(|n| (n, n)));
    build_all(&db).unwrap();
    check_indexes(&db);
    let vfs = vfs.crash();
    check_indexes(&open(&vfs).unwrap());
}

/// Runs a build with writes in between, with its n-th I/O failing for good, and cuts the power.
#[test]
fn a_build_that_was_interrupted_leaves_whole_indexes_or_nothing_of_them() {
    for n in 1.. {
        let vfs = disk(n);
        let db = open(&vfs).unwrap();
        create(&db);
        commit_rows(&db, (0..200).map(|n| (n, n)));
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        vfs.fail_io_after(n, FaultKind::Sticky);
        let before = vfs.io_count();
        let done = work_through_a_build(&db);
        let met = vfs.io_count() - before >= n;
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap_or_else(|e| panic!("reopen after a fault at I/O {n}: {e}"));
        match db.open_table(PATH).unwrap().dicts().len() {
            1 => {
                assert!(done.is_err(), "I/O {n}: an acknowledged index is gone");
                assert_eq!(files(&vfs), ["main.pando", "status.pando"], "I/O {n}");
                build_all(&db).unwrap();
            }
            _ => assert_eq!(
                files(&vfs),
                ["key-plain.pando", "key-unique.pando", "main.pando", "status.pando"],
                "I/O {n}"
            ),
        }
        check_indexes(&db);
        if !met {
            done.unwrap();
            assert!(n > 20, "the test has met few faults");
            return;
        }
        assert!(n < 3000, "a build with endless I/O");
    }
}

fn work_through_a_build(db: &Arc<Db>) -> pandodb::Result<()> {
    let mut build = db.begin_index_build(PATH, &indexes())?;
    let table = db.open_table(PATH)?;
    let write = |from: u32| -> pandodb::Result<()> {
        let mut txn = db.begin();
        for number in from..from + 20 {
            delete(&mut txn, &table, number, number)?;
            insert(&mut txn, &table, number + 1000, number)?;
        }
        txn.commit()
    };
    write(0)?;
    db.checkpoint()?;
    make_base(&mut build)?;
    write(20)?;
    db.run_jobs()?;
    build.catch_up(&mut never)?;
    write(40)?;
    build.secure()?;
    write(60)?;
    build.finish(&places()).map_err(|(_, error)| error)
}

#[test]
fn an_index_without_filters_gives_the_same_entries_also_after_a_restart() {
    let vfs = disk(77);
    let mut db = open(&vfs).unwrap();
    let without = IndexSpec { has_filters: false, ..IndexSpec::from("without") };
    let indexes = vec![IndexSpec::from("with"), without];
    db.create_table(&TableSpec { path: PATH.into(), indexes, ..TableSpec::default() }).unwrap();
    let key = |n: u32| format!("{n:06}").into_bytes();
    for round in 0..2 {
        let table = db.open_table(PATH).unwrap();
        let mut txn = db.begin();
        for n in (round..4000).step_by(2) {
            (0..3).for_each(|dict| txn.put(&table, dict, &key(n), b"v", LockWait::NoWait).unwrap());
        }
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        let probes_of = |dict: usize| {
            let before = db.metrics().filter_probes.get();
            let mut txn = db.begin();
            for n in (round..4000).step_by(2) {
                let found = txn.get(&table, dict, &key(n)).unwrap();
                assert_eq!(found.as_deref(), Some(&b"v"[..]), "{n} in {dict}");
                assert_eq!(txn.get(&table, dict, &key(n + 5000)).unwrap(), None);
            }
            db.metrics().filter_probes.get() - before
        };
        assert!(probes_of(1) > 0);
        assert_eq!(probes_of(2), 0, "round {round}");
        drop((table, db));
        db = open(&vfs).unwrap();
    }
}

#[test]
fn lookups_that_find_their_rows_one_after_another_ask_no_filters() {
    let vfs = disk(78);
    let db = open(&vfs).unwrap();
    db.create_table(&TableSpec { path: PATH.into(), ..TableSpec::default() }).unwrap();
    let table = db.open_table(PATH).unwrap();
    let key = |n: u32| format!("{n:06}").into_bytes();
    let mut txn = db.begin();
    (0..4000).step_by(2).for_each(|n| txn.put(&table, 0, &key(n), b"v", LockWait::NoWait).unwrap());
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    let mut txn = db.begin();
    let mut probes_of = |keys: &mut dyn Iterator<Item = u32>, is_there: bool| {
        let before = db.metrics().filter_probes.get();
        for n in keys {
            let found = txn.get_locked(&table, 0, &key(n), LockMode::Exclusive, LockWait::NoWait).unwrap();
            assert_eq!(matches!(found, LockedRead::Row(_)), is_there, "{n}");
        }
        db.metrics().filter_probes.get() - before
    };
    assert!((1..=20).contains(&probes_of(&mut (0..4000).step_by(2), true)));
    // The first one that is not there is not expected; the others are known not to be.
    assert!(probes_of(&mut (1..4001).step_by(2), false) >= 1998);
}
