//! A damaged or missing file of a secondary index costs its table that index, and nothing else: not the rows, not the other indexes, not
//! changes, not the log.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{disk, is_newer, make_newer, open, open_logging, put_back, Lines};
use pando_storage::vfs::OpenMode;
use pandodb::{
    Clustering, Compression, Db, Entry, Error, IndexPlace, IndexSource, IndexSpec, LogLevel, NewIndex,
    ReadMode, SimVfs, Table, TableSpec, Txn, Vfs,
};

const PATH: &str = "./db/t";
const ROWS: u32 = 400;
/// Positions of the dictionaries.
const PLAIN: usize = 1;
const UNIQUE: usize = 2;

fn create(db: &Arc<Db>) {
    let index = |name: &str| IndexSpec::from(name);
    let spec = TableSpec {
        path: PATH.into(),
        indexes: vec![index("plain"), index("unique")],
        compression: Compression::Lz4,
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
}

/// Key and value of a row in dictionary 0, the plain index and the unique one.
fn encode(number: u32, group: u32) -> [(Vec<u8>, Vec<u8>); 3] {
    let key = format!("{number:06}").into_bytes();
    let plain = format!("{:06}/{number:06}", group % 7).into_bytes();
    [
        (key.clone(), group.to_be_bytes().to_vec()),
        (plain, Vec::new()),
        (format!("{group:06}").into_bytes(), key),
    ]
}

fn entries(row: &[(Vec<u8>, Vec<u8>); 3]) -> Vec<Entry<'_>> {
    row.iter().enumerate().map(|(at, (key, value))| Entry { key, value, unique: at != PLAIN }).collect()
}

fn insert(txn: &mut Txn, table: &Table, number: u32, group: u32) -> pandodb::Result<()> {
    let row = encode(number, group);
    txn.insert_row(table, &entries(&row))
}

fn commit_rows(db: &Arc<Db>, rows: std::ops::Range<u32>) -> pandodb::Result<()> {
    let table = db.open_table(PATH)?;
    let mut txn = db.begin();
    for number in rows {
        insert(&mut txn, &table, number, 10_000 + number)?;
    }
    txn.commit()
}

/// Rows in the file, others in the log alone, and a power cut.
fn cut_off(seed: u64) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    create(&db);
    commit_rows(&db, 0..ROWS / 2).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    commit_rows(&db, ROWS / 2..ROWS).unwrap();
    drop(db);
    vfs.crash()
}

/// The same after a clean stop.
fn stopped(seed: u64) -> Arc<SimVfs> {
    let vfs = cut_off(seed);
    open(&vfs).unwrap().close().unwrap();
    vfs
}

fn file(index: usize) -> std::path::PathBuf {
    Path::new("/data/db/t.pando").join(["main.pando", "key-plain.pando", "key-unique.pando"][index])
}

/// What can be done to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Lost,
    Emptied,
    Cut,
    Superblocks,
    /// Every block but the superblocks.
    Blocks,
}

const HARMS: [Harm; 5] = [Harm::Lost, Harm::Emptied, Harm::Cut, Harm::Superblocks, Harm::Blocks];

fn harm(vfs: &Arc<SimVfs>, index: usize, how: Harm) {
    let path = file(index);
    let opened = vfs.open(&path, OpenMode::Existing).unwrap();
    let len = opened.len().unwrap();
    match how {
        Harm::Lost => vfs.remove_file(&path).unwrap(),
        Harm::Emptied => opened.set_len(0).unwrap(),
        Harm::Cut => opened.set_len(16384).unwrap(),
        Harm::Superblocks => [100, 4196].into_iter().for_each(|place| vfs.flip_bit(&path, place, 3)),
        Harm::Blocks => (16384..len).step_by(256).for_each(|place| vfs.flip_bit(&path, place, 3)),
    }
    opened.sync().unwrap();
    vfs.sync_dir(path.parent().unwrap()).unwrap();
}

/// What is in a dictionary.
fn content(db: &Arc<Db>, index: usize) -> pandodb::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let table = db.open_table(PATH)?;
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, index);
    cursor.seek_first(&mut txn, ReadMode::Latest)?;
    let mut found = BTreeMap::new();
    while cursor.valid() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next(&mut txn)?;
    }
    Ok(found)
}

fn is_unusable<T>(result: pandodb::Result<T>) -> bool {
    matches!(result, Err(Error::KeyUnusable { .. }))
}

/// The table has these rows, is written to, and has no use of index `damaged`.
fn check_goes_on(db: &Arc<Db>, damaged: usize, trouble: &str) {
    let table = db.open_table(PATH).unwrap_or_else(|error| panic!("{trouble}: {error}"));
    assert!(table.is_unusable(damaged) && !table.is_unusable(3 - damaged), "{trouble}");
    assert_eq!(content(db, 0).unwrap().len(), ROWS as usize, "{trouble}");
    assert_eq!(content(db, 3 - damaged).unwrap().len(), ROWS as usize, "{trouble}");
    assert!(is_unusable(content(db, damaged)), "{trouble}");
    let mut txn = db.begin();
    let row = encode(3, 10_003);
    assert!(is_unusable(txn.get(&table, damaged, &row[damaged].0)), "{trouble}");
    assert!(is_unusable(txn.get_latest(&table, damaged, &row[damaged].0)), "{trouble}");
    // A row goes, and comes back.
    txn.delete_row(&table, &entries(&row)).unwrap();
    let back = insert(&mut txn, &table, 3, 10_003);
    assert_eq!(is_unusable(back), damaged == UNIQUE, "{trouble}");
    txn.rollback();
    let checked = db.check_table(&table, &mut |_| true);
    assert!(is_unusable(checked), "{trouble}");
}

/// Builds index `damaged` anew, as REPAIR TABLE does.
fn repair(db: &Arc<Db>, damaged: usize) {
    let name = ["", "plain", "unique"];
    let new = NewIndex {
        name: name[damaged].into(),
        is_unique: damaged == UNIQUE,
        clustering: Clustering::None,
        recipe: Vec::new(),
    };
    let mut build = db.begin_index_build(PATH, &[new]).unwrap();
    let mut reader = build.take_reader().unwrap();
    let table = build.table().clone();
    let mut cursor = reader.cursor(&table, 0);
    cursor.seek_first(&mut reader, ReadMode::Snapshot).unwrap();
    let mut base = BTreeMap::new();
    while cursor.valid() {
        let number = std::str::from_utf8(cursor.key()).unwrap().parse().unwrap();
        let group = u32::from_be_bytes(cursor.value().try_into().unwrap());
        let (key, value) = encode(number, group)[damaged].clone();
        base.insert(key, value);
        cursor.next(&mut reader).unwrap();
    }
    drop((cursor, reader));
    build.set_base_of(0, base.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap();
    build.end_bases().unwrap();
    build.secure().unwrap();
    let place = |index: usize| IndexPlace {
        name: name[index].into(),
        source: if index == damaged { IndexSource::New(0) } else { IndexSource::Kept(index) },
    };
    build.finish(&[place(PLAIN), place(UNIQUE)]).map_err(|(_, error)| error).unwrap();
}

fn check_whole(db: &Arc<Db>, rows: usize) {
    let table = db.open_table(PATH).unwrap();
    db.check_table(&table, &mut |_| true).unwrap();
    for index in 0..3 {
        assert_eq!(content(db, index).unwrap().len(), rows, "dictionary {index}");
    }
}

#[test]
fn a_table_goes_on_without_a_damaged_index_and_gets_it_back() {
    for begin in [cut_off, stopped] {
        for damaged in [PLAIN, UNIQUE] {
            for how in HARMS {
                let trouble = format!("{how:?} of index {damaged}");
                let vfs = begin(1);
                harm(&vfs, damaged, how);
                let lines = Lines::default();
                let db = open_logging(&vfs, &lines).unwrap_or_else(|error| panic!("{trouble}: {error}"));
                check_goes_on(&db, damaged, &trouble);
                let told = |(level, line): &(LogLevel, String)| {
                    *level == LogLevel::Error && line.contains("db/t") && line.contains("REPAIR TABLE")
                };
                assert!(lines.lock().unwrap().iter().any(told), "{trouble}: {lines:?}");
                // No log is kept for it, and it stays so after a restart, also if the file is back.
                db.checkpoint().unwrap();
                drop(db);
                let vfs = vfs.crash();
                let db = open(&vfs).unwrap();
                check_goes_on(&db, damaged, &trouble);
                repair(&db, damaged);
                commit_rows(&db, ROWS..ROWS + 5).unwrap();
                check_whole(&db, ROWS as usize + 5);
                drop(db);
                check_whole(&open(&vfs.crash()).unwrap(), ROWS as usize + 5);
            }
        }
    }
}

#[test]
fn a_file_of_a_newer_release_is_no_damage_and_nothing_of_its_table_changes() {
    for begin in [cut_off, stopped] {
        for index in 0..3 {
            let vfs = begin(1);
            let before = make_newer(&vfs, &file(index));
            let lines = Lines::default();
            let db = open_logging(&vfs, &lines).unwrap();
            for _ in 0..2 {
                assert!(is_newer(&db.open_table(PATH), &file(index)), "file {index}");
                db.run_jobs().unwrap();
                db.checkpoint().unwrap();
                db.tick();
            }
            let says_damage = |line: &str| line.contains("damaged and not used") || line.contains("corrupt");
            assert!(!lines.lock().unwrap().iter().any(|(_, line)| says_damage(line)), "{lines:?}");
            drop(db);
            let vfs = vfs.crash();
            let db = open(&vfs).unwrap();
            assert!(is_newer(&db.open_table(PATH), &file(index)), "file {index}");
            let is_log_kept = db.log_held().is_some();
            put_back(&vfs, &file(index), &before);
            if !is_log_kept {
                check_whole(&db, ROWS as usize);
            }
            db.close().unwrap();
            let db = open(&vfs).unwrap();
            check_whole(&db, ROWS as usize);
            commit_rows(&db, ROWS..ROWS + 5).unwrap();
            check_whole(&db, ROWS as usize + 5);
        }
    }
}

#[test]
fn a_newer_superblock_is_not_taken_back_to_the_checkpoint_before_it() {
    let vfs = stopped(4);
    let before = make_newer(&vfs, &file(0));
    // The copy of it was lost, or the checkpoint before it is still whole.
    vfs.flip_bit(&file(0), 100, 3);
    assert!(is_newer(&open(&vfs).unwrap().open_table(PATH), &file(0)));
    put_back(&vfs, &file(0), &before[..1]);
    assert!(is_newer(&open(&vfs).unwrap().open_table(PATH), &file(0)));
    put_back(&vfs, &file(0), &before);
    check_whole(&open(&vfs).unwrap(), ROWS as usize);
}

#[test]
fn rows_change_without_the_damaged_index() {
    let vfs = stopped(2);
    harm(&vfs, PLAIN, Harm::Lost);
    let db = open(&vfs).unwrap();
    commit_rows(&db, ROWS..ROWS + 300).unwrap();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    for number in 0..100 {
        let (old, new) = (encode(number, 10_000 + number), encode(number, 20_000 + number));
        txn.update_row(&table, &entries(&old), &entries(&new)).unwrap();
    }
    for number in 100..200 {
        txn.delete_row(&table, &entries(&encode(number, 10_000 + number))).unwrap();
    }
    txn.commit().unwrap();
    db.run_jobs().unwrap();
    db.close().unwrap();
    let db = open(&vfs).unwrap();
    repair(&db, PLAIN);
    check_whole(&db, ROWS as usize + 200);
}

#[test]
fn nothing_of_a_unique_index_that_is_damaged_can_be_given_twice() {
    let vfs = stopped(3);
    harm(&vfs, UNIQUE, Harm::Emptied);
    let db = open(&vfs).unwrap();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    assert!(is_unusable(insert(&mut txn, &table, ROWS + 1, 10_000)));
    let (old, new) = (encode(1, 10_001), encode(1, 10_000));
    assert!(is_unusable(txn.update_row(&table, &entries(&old), &entries(&new))));
    // The row itself may change where its unique key stays.
    let mut same = encode(1, 10_001);
    same[0].1 = 77u32.to_be_bytes().to_vec();
    txn.update_row(&table, &entries(&old), &entries(&same)).unwrap();
    txn.rollback();
    assert_eq!(content(&db, 0).unwrap().len(), ROWS as usize);
}

#[test]
fn a_damaged_index_can_be_dropped_and_the_table_renamed_emptied_and_dropped() {
    for how in [Harm::Lost, Harm::Superblocks] {
        let vfs = stopped(4);
        harm(&vfs, PLAIN, how);
        let db = open(&vfs).unwrap();
        db.rename_table(PATH, "./db/u").unwrap();
        db.rename_table("./db/u", PATH).unwrap();
        check_goes_on(&db, PLAIN, "a rename there and back");
        let kept = IndexPlace { name: "unique".into(), source: IndexSource::Kept(UNIQUE) };
        db.change_indexes(PATH, &[kept]).unwrap();
        let table = db.open_table(PATH).unwrap();
        db.check_table(&table, &mut |_| true).unwrap();
        assert_eq!(table.dicts().len(), 2);
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        assert_eq!(content(&db, 1).unwrap().len(), ROWS as usize);

        harm(&vfs, UNIQUE, how);
        drop(db);
        let db = open(&vfs.crash()).unwrap();
        db.truncate_table(PATH).unwrap();
        assert_eq!(content(&db, 0).unwrap().len(), 0);
        db.drop_table(PATH).unwrap();
        create(&db);
        commit_rows(&db, 0..5).unwrap();
        check_whole(&db, 5);
    }
}

#[test]
fn a_check_finds_damage_inside_and_the_others_go_on() {
    let vfs = stopped(5);
    let db = open(&vfs).unwrap();
    let table = db.open_table(PATH).unwrap();
    harm(&vfs, PLAIN, Harm::Blocks);
    assert!(matches!(db.check_table(&table, &mut |_| true), Err(Error::Engine(_))));
    check_goes_on(&db, PLAIN, "a check");
    repair(&db, PLAIN);
    check_whole(&db, ROWS as usize);
}

#[test]
fn background_work_that_meets_damage_in_an_index_keeps_no_log_for_it() {
    let vfs = stopped(6);
    let db = open(&vfs).unwrap();
    let table = db.open_table(PATH).unwrap();
    harm(&vfs, PLAIN, Harm::Blocks);
    for part in 1..60 {
        commit_rows(&db, part * 1000..part * 1000 + 100).unwrap();
        if db.run_jobs().is_err() {
            break;
        }
    }
    db.tick();
    assert!(table.is_unusable(PLAIN) && !table.is_unusable(UNIQUE));
    commit_rows(&db, 900_000..900_100).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let rows = content(&db, 0).unwrap().len();
    repair(&db, PLAIN);
    check_whole(&db, rows);
}

#[test]
fn a_prepared_transaction_comes_back_without_its_entries_in_a_damaged_index() {
    for how in HARMS {
        let vfs = stopped(7);
        let db = open(&vfs).unwrap();
        let table = db.open_table(PATH).unwrap();
        let mut txn = db.begin();
        insert(&mut txn, &table, 5000, 5000).unwrap();
        txn.prepare(b"x").unwrap();
        txn.detach();
        drop((txn, table, db));
        let vfs = vfs.crash();
        harm(&vfs, PLAIN, how);
        let db = open(&vfs).unwrap();
        assert!(db.commit_by_xid(b"x").unwrap(), "{how:?}");
        assert_eq!(content(&db, 0).unwrap().len(), ROWS as usize + 1);
        assert!(is_unusable(content(&db, PLAIN)), "{how:?}");
        repair(&db, PLAIN);
        check_whole(&db, ROWS as usize + 1);
    }
}

#[test]
fn keys_that_the_server_knows_by_other_names_are_given_up_under_these_and_built_anew() {
    let vfs = stopped(8);
    let lines = Lines::default();
    let db = open_logging(&vfs, &lines).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(db.dictionary_names(&table).unwrap(), ["main", "plain", "unique"]);
    let names = [(PLAIN, "unique".to_owned()), (UNIQUE, "plain".to_owned())];
    db.give_up_misnamed_keys(&table, &names[..1]).unwrap();
    assert!(table.is_unusable(PLAIN) && !table.is_unusable(UNIQUE), "one of them");
    db.give_up_misnamed_keys(&table, &names).unwrap();
    db.give_up_misnamed_keys(&table, &names).unwrap();
    let told = lines.lock().unwrap().iter().filter(|(_, line)| line.contains("entries of key")).count();
    assert_eq!(told, 2, "once for each");
    assert_eq!(db.dictionary_names(&table).unwrap(), ["main", "unique", "plain"]);
    assert!(is_unusable(content(&db, PLAIN)) && is_unusable(content(&db, UNIQUE)));
    drop((table, db));
    let db = open(&vfs.crash()).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(db.dictionary_names(&table).unwrap(), ["main", "unique", "plain"]);
    db.give_up_misnamed_keys(&table, &names).unwrap();
    assert!(table.is_unusable(PLAIN) && table.is_unusable(UNIQUE), "for good");
    assert_eq!(content(&db, 0).unwrap().len(), ROWS as usize);
}

#[test]
fn a_key_in_which_its_table_has_found_other_entries_is_given_up() {
    let vfs = stopped(9);
    let db = open(&vfs).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert!(matches!(db.give_up_key(&table, 0), Err(Error::Engine(_))), "the rows are not given up");
    assert!(!table.is_unusable(0));
    assert!(matches!(db.give_up_key(&table, UNIQUE), Err(Error::Engine(_))));
    check_goes_on(&db, UNIQUE, "a check");
    repair(&db, UNIQUE);
    check_whole(&db, ROWS as usize);
}
