//! A damaged or missing file of large values costs its table these values, and nothing else: not its rows, not the values in them, not
//! changes. No reference ever meets another value than the one that it was made for.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::large_rows::{
    columns, encode, entries, insert, move_file, stored, value_of, LARGE_BYTES as SIZE,
};
use common::{disk, for_each_row, is_newer, make_newer, open, open_logging, put_back, spec, Lines};
use pando_storage::vfs::{FaultKind, OpenMode};
use pandodb::large::references_of;
use pandodb::{
    Db, Error, LargeValue, LockMode, LockWait, LockedRead, LogLevel, SimVfs, Table, TableSpec, Txn, Vfs, Want,
};

const T: &str = "./db/t";
const FILE: &str = "/data/db/t.pando/large.pando";
const AWAY: &str = "/data/away";
const ROWS: u16 = 60;

/// Every third row has its value with it.
fn is_large(n: u16) -> bool {
    n % 3 != 0
}

fn value(n: u16) -> Vec<u8> {
    let tag = n.to_le_bytes();
    tag.iter().copied().cycle().take(if is_large(n) { SIZE } else { 10 }).collect()
}

fn create(db: &Arc<Db>) {
    db.create_table(&TableSpec { columns: columns(), ..spec(T) }).unwrap();
}

fn locked(txn: &mut Txn, table: &Table, key: u16) -> Vec<u8> {
    let read = txn.get_locked(table, 0, &key.to_be_bytes(), LockMode::Exclusive, LockWait::NoWait);
    let LockedRead::Row(row) = read.unwrap() else { panic!("row {key} is not there") };
    row
}

/// Sets the number of a row, or its value.
fn update(
    txn: &mut Txn,
    table: &Table,
    key: u16,
    number: Option<u16>,
    bytes: Option<&[u8]>,
) -> pandodb::Result<()> {
    let old = locked(txn, table, key);
    let number = number.unwrap_or(u16::from_le_bytes([old[1], old[2]]));
    let (in_row, id) = bytes.map_or_else(|| (old[4..].to_vec(), None), |bytes| stored(table, bytes));
    let large: Vec<LargeValue<'_>> =
        id.zip(bytes).map(|(id, bytes)| LargeValue { id, bytes }).into_iter().collect();
    let (key, new) = (key.to_be_bytes(), encode(number, &in_row));
    txn.update_row_with(table, &entries(&key, &old), &entries(&key, &new), &large, false)
}

fn delete(txn: &mut Txn, table: &Table, key: u16) {
    let old = locked(txn, table, key);
    txn.delete_row(table, &entries(&key.to_be_bytes(), &old)).unwrap();
}

fn commit(db: &Arc<Db>, change: impl FnOnce(&mut Txn, &Table) -> pandodb::Result<()>) -> pandodb::Result<()> {
    let table = db.open_table(T)?;
    let mut txn = db.begin();
    change(&mut txn, &table)?;
    txn.commit()
}

fn fill(db: &Arc<Db>, keys: std::ops::Range<u16>) -> pandodb::Result<()> {
    commit(db, |txn, table| keys.into_iter().try_for_each(|key| insert(txn, table, key, &value(key))))
}

/// Values in the file, others in the log alone, and a power cut.
fn cut_off(seed: u64) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    create(&db);
    fill(&db, 0..ROWS / 2).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill(&db, ROWS / 2..ROWS).unwrap();
    drop(db);
    vfs.crash()
}

/// The same after a clean stop.
fn stopped(seed: u64) -> Arc<SimVfs> {
    let vfs = cut_off(seed);
    open(&vfs).unwrap().close().unwrap();
    vfs
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Lost,
    Emptied,
    Cut,
    Superblocks,
    /// Every block but the superblocks.
    Blocks,
}

const HARMS: [Harm; 5] = [Harm::Lost, Harm::Emptied, Harm::Cut, Harm::Superblocks, Harm::Blocks];

fn harm(vfs: &Arc<SimVfs>, how: Harm) {
    let path = Path::new(FILE);
    let opened = vfs.open(path, OpenMode::Existing).unwrap();
    let len = opened.len().unwrap();
    match how {
        Harm::Lost => vfs.remove_file(path).unwrap(),
        Harm::Emptied => opened.set_len(0).unwrap(),
        Harm::Cut => opened.set_len(16384).unwrap(),
        Harm::Superblocks => [100, 4196].into_iter().for_each(|place| vfs.flip_bit(path, place, 3)),
        Harm::Blocks => (16384..len).step_by(256).for_each(|place| vfs.flip_bit(path, place, 3)),
    }
    opened.sync().unwrap();
    vfs.sync_dir(path.parent().unwrap()).unwrap();
}

fn is_lost<T>(result: &pandodb::Result<T>) -> bool {
    matches!(result, Err(Error::ValuesLost { what }) if what.contains(FILE))
}

/// An error that says so, and no value.
fn is_refused<T>(result: &pandodb::Result<T>) -> bool {
    is_lost(result) || matches!(result, Err(Error::Engine(error)) if error.is_damage())
}

/// Numbers of the rows, and their values or the error of reading them.
type Found = BTreeMap<u16, (u16, pandodb::Result<Vec<u8>>)>;

fn all(db: &Arc<Db>) -> Found {
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    let mut rows = Vec::new();
    for_each_row(&mut txn, &table, 0, false, |key, row| rows.push((key.to_vec(), row.to_vec())));
    let mut found = Found::new();
    for (key, row) in rows {
        let value = value_of(&mut txn, &table, &row);
        let number = u16::from_le_bytes([row[1], row[2]]);
        found.insert(u16::from_be_bytes(key.try_into().unwrap()), (number, value));
    }
    found
}

/// The numbers, by columns; or the bytes of the values.
fn by_columns(db: &Arc<Db>, column: usize) -> pandodb::Result<Vec<Vec<u8>>> {
    let table = db.open_table(T)?;
    let mut txn = db.begin();
    let layouts = table.layouts().unwrap().clone();
    let view = txn.view(&table, 0)?;
    let mut blocks = view.blocks(&layouts, &[Want::Stored(column)], None, None)?;
    let mut found = Vec::new();
    while let Some(block) = blocks.next()? {
        found.extend((0..block.rows).map(|row| block.vectors[0].get(row).unwrap().to_vec()));
    }
    Ok(found)
}

/// The table has all rows, and is written to; only the values in the file cannot be had.
fn check_goes_on(db: &Arc<Db>, trouble: &str) {
    let table = db.open_table(T).unwrap_or_else(|error| panic!("{trouble}: {error}"));
    let found = all(db);
    assert_eq!(found.len(), ROWS as usize, "{trouble}");
    for (key, (number, found)) in found {
        assert_eq!(number, key);
        match is_large(key) {
            true => assert!(is_lost(&found), "{trouble}: {key}: {:?}", found.map(|value| value.len())),
            false => assert_eq!(found.unwrap(), value(key), "{trouble}"),
        }
    }
    assert_eq!(by_columns(db, 0).unwrap().len(), ROWS as usize, "{trouble}");
    assert!(is_lost(&by_columns(db, 1)), "{trouble}");
    assert!(table.has_lost_large_file());
    let mut txn = db.begin();
    delete(&mut txn, &table, 1);
    let before = locked(&mut txn, &table, 2);
    update(&mut txn, &table, 2, Some(1000), None).unwrap();
    assert_eq!(locked(&mut txn, &table, 2)[3..], before[3..], "{trouble}");
    update(&mut txn, &table, 4, None, Some(b"new")).unwrap();
    insert(&mut txn, &table, 900, b"short").unwrap();
    let refused = insert(&mut txn, &table, 901, &value(901 + 1));
    assert!(is_lost(&refused), "{trouble}");
    assert!(refused.unwrap_err().to_string().contains("REPAIR TABLE"));
    assert!(is_lost(&update(&mut txn, &table, 5, None, Some(&value(5)))), "{trouble}");
    txn.rollback();
    let said = db.check_table(&table, &mut |_| true);
    assert!(is_lost(&said), "{trouble}: {said:?}");
    let expected = format!("{} large values of {} rows", ROWS / 3 * 2, ROWS / 3 * 2);
    assert!(said.unwrap_err().to_string().contains(&expected), "{trouble}");
    db.compact_table(&table, &mut |_| true).unwrap();
}

/// After REPAIR TABLE: new values are there, the old ones are not, and never will be.
fn check_new_ones(db: &Arc<Db>, new: std::ops::Range<u16>, trouble: &str) {
    for (key, (_, found)) in all(db) {
        match is_large(key) && !new.contains(&key) {
            true => assert!(is_lost(&found), "{trouble}: {key}: {:?}", found.map(|value| value.len())),
            false => assert_eq!(found.unwrap(), value(key), "{trouble}"),
        }
    }
}

#[test]
fn a_file_of_a_newer_release_is_not_lost_and_no_value_is_given_up() {
    for begin in [cut_off, stopped] {
        let (vfs, file) = (begin(1), Path::new(FILE));
        let before = make_newer(&vfs, file);
        let db = open(&vfs).unwrap();
        assert!(is_newer(&db.open_table(T), file));
        assert!(is_newer(&db.begin_large_values_anew(T), file), "REPAIR TABLE");
        db.checkpoint().unwrap();
        db.close().unwrap();
        put_back(&vfs, file, &before);
        let db = open(&vfs).unwrap();
        let table = db.open_table(T).unwrap();
        db.check_table(&table, &mut |_| true).unwrap();
        let values = all(&db).into_iter().map(|(key, (_, found))| (key, found.unwrap()));
        assert!(values.eq((0..ROWS).map(|key| (key, value(key)))));
    }
}

#[test]
fn a_table_goes_on_without_the_file_of_its_large_values_and_gets_a_new_one() {
    for begin in [cut_off, stopped] {
        for how in HARMS.into_iter().filter(|how| *how != Harm::Blocks) {
            let trouble = format!("{how:?}");
            let vfs = begin(1);
            harm(&vfs, how);
            let lines = Lines::default();
            let db = open_logging(&vfs, &lines).unwrap();
            check_goes_on(&db, &trouble);
            let told = |(level, line): &(LogLevel, String)| {
                *level == LogLevel::Error
                    && ["db/t", FILE, "REPAIR TABLE"].iter().all(|part| line.contains(part))
            };
            assert!(lines.lock().unwrap().iter().any(told), "{trouble}: {lines:?}");
            db.checkpoint().unwrap();
            drop(db);
            let vfs = vfs.crash();
            let db = open(&vfs).unwrap();
            check_goes_on(&db, &trouble);

            db.begin_large_values_anew(T).unwrap();
            assert!(!db.open_table(T).unwrap().has_lost_large_file());
            fill(&db, ROWS..ROWS + 20).unwrap();
            check_new_ones(&db, ROWS..ROWS + 20, &trouble);
            drop(db);
            let vfs = vfs.crash();
            let db = open(&vfs).unwrap();
            fill(&db, ROWS + 20..ROWS + 30).unwrap();
            db.checkpoint().unwrap();
            db.close().unwrap();
            let db = open(&vfs).unwrap();
            fill(&db, ROWS + 30..ROWS + 40).unwrap();
            check_new_ones(&db, ROWS..ROWS + 40, &trouble);
            check_after_losses(&db, &trouble);
        }
    }
}

/// CHECK TABLE counts what is lost, until the rows are gone or have other values.
fn check_after_losses(db: &Arc<Db>, trouble: &str) {
    let table = db.open_table(T).unwrap();
    assert!(is_lost(&db.check_table(&table, &mut |_| true)), "{trouble}");
    commit(db, |txn, table| {
        for key in (0..ROWS).filter(|key| is_large(*key)) {
            match key % 2 == 0 {
                true => delete(txn, table, key),
                false => update(txn, table, key, None, Some(&value(key)))?,
            }
        }
        Ok(())
    })
    .unwrap();
    db.run_jobs().unwrap();
    db.check_table(&table, &mut |_| true).unwrap();
    for (key, (_, found)) in all(db) {
        assert_eq!(found.unwrap(), value(key), "{trouble}");
    }
}

#[test]
fn a_file_that_is_put_back_has_its_values_and_those_that_were_in_the_log() {
    type Begin = fn(u64) -> Arc<SimVfs>;
    let begins: [(Begin, bool); 4] = [(cut_off, false), (cut_off, true), (stopped, false), (stopped, true)];
    for (begin, is_closed) in begins {
        let vfs = begin(2);
        move_file(&vfs, FILE, AWAY);
        let db = open(&vfs).unwrap();
        check_goes_on(&db, "away");
        // Much log is written, and what is needed is kept.
        for round in 0..40u16 {
            commit(&db, |txn, table| {
                (0..50).try_for_each(|key| insert(txn, table, 1000 + round * 50 + key, b"short"))
            })
            .unwrap();
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            db.tick();
        }
        commit(&db, |txn, table| {
            delete(txn, table, 1);
            update(txn, table, 2, Some(7), None)
        })
        .unwrap();
        if is_closed {
            db.close().unwrap();
        }
        drop(db);
        let vfs = vfs.crash();
        move_file(&vfs, AWAY, FILE);
        let db = open(&vfs).unwrap();
        fill(&db, ROWS..ROWS + 10).unwrap();
        let found = all(&db);
        assert!(!found.contains_key(&1));
        assert_eq!(found[&2].0, 7);
        for (key, (_, found)) in found.into_iter().filter(|(key, _)| *key < 1000) {
            assert_eq!(found.unwrap(), value(key), "{key}");
        }
        let table = db.open_table(T).unwrap();
        assert!(!table.has_lost_large_file());
        // The value of the row that was deleted meanwhile is left over.
        db.check_table(&table, &mut |_| true).unwrap();
        commit(&db, |txn, table| {
            delete(txn, table, 4);
            update(txn, table, 5, None, Some(&value(5)))
        })
        .unwrap();
        db.run_jobs().unwrap();
        db.close().unwrap();
        let db = open(&vfs).unwrap();
        db.check_table(&db.open_table(T).unwrap(), &mut |_| true).unwrap();
    }
}

fn copy_file(vfs: &Arc<SimVfs>, from: &str, to: &str) {
    let source = vfs.open(Path::new(from), OpenMode::Existing).unwrap();
    let mut bytes = vec![0; source.len().unwrap() as usize];
    source.read_exact_at(&mut bytes, 0).unwrap();
    let target = vfs.open(Path::new(to), OpenMode::CreateOrOpen).unwrap();
    target.set_len(0).unwrap();
    target.write_at(&bytes, 0).unwrap();
    target.sync().unwrap();
    vfs.sync_dir(Path::new(to).parent().unwrap()).unwrap();
}

/// The log may have all that the copy lacks, or not.
#[test]
fn an_older_copy_of_the_file_is_brought_up_to_date_or_refused() {
    let (mut whole, mut refused) = (false, false);
    for is_closed in [false, true] {
        for is_missed in [false, true] {
            let vfs = stopped(8);
            copy_file(&vfs, FILE, AWAY);
            let db = open(&vfs).unwrap();
            fill(&db, ROWS..ROWS + 20).unwrap();
            if is_closed {
                db.close().unwrap();
            }
            drop(db);
            let vfs = vfs.crash();
            if is_missed {
                // Rows are changed without the file for a while.
                harm(&vfs, Harm::Lost);
                let db = open(&vfs).unwrap();
                commit(&db, |txn, table| update(txn, table, ROWS + 2, Some(7), None)).unwrap();
                drop(db);
            }
            let vfs = vfs.crash();
            copy_file(&vfs, AWAY, FILE);
            let db = open(&vfs).unwrap();
            let is_given_up = db.open_table(T).unwrap().has_lost_large_file();
            if is_given_up {
                assert!(is_lost(&fill(&db, 200..210)));
                db.begin_large_values_anew(T).unwrap();
            }
            (whole, refused) = (whole || !is_given_up, refused || is_given_up);
            fill(&db, 200..210).unwrap();
            for (key, (_, found)) in all(&db) {
                match is_large(key) && key < 200 && is_given_up {
                    true => assert!(is_lost(&found), "{is_closed} {is_missed} {key}"),
                    false => assert_eq!(found.unwrap(), value(key), "{is_closed} {is_missed} {key}"),
                }
            }
        }
    }
    assert!(whole && refused);
}

#[test]
fn a_backup_names_the_file_that_it_cannot_have() {
    const ME: u64 = 7;
    let vfs = stopped(9);
    harm(&vfs, Harm::Lost);
    let db = open(&vfs).unwrap();
    for is_open in [false, true] {
        if is_open {
            db.open_table(T).unwrap();
        }
        db.arm_backup(ME).unwrap();
        assert!(db.pin_backup());
        let (mut lost, mut whole) = (Vec::new(), 0);
        for file in db.backup_list(ME).unwrap().files {
            match db.backup_file(ME, file.dict) {
                Ok(_) => whole += 1,
                refused => {
                    assert!(is_lost(&refused), "{refused:?}");
                    lost.push(file.file);
                }
            }
        }
        assert_eq!(lost, ["large.pando"]);
        assert_eq!(whole, 3);
        db.end_backup(ME);
    }
    db.begin_large_values_anew(T).unwrap();
    db.arm_backup(ME).unwrap();
    assert!(db.pin_backup());
    for file in db.backup_list(ME).unwrap().files {
        db.backup_file(ME, file.dict).unwrap();
    }
    db.end_backup(ME);
}

#[test]
fn a_file_that_was_given_up_is_never_read_again() {
    for begin in [cut_off, stopped] {
        let vfs = begin(3);
        move_file(&vfs, FILE, AWAY);
        let db = open(&vfs).unwrap();
        db.begin_large_values_anew(T).unwrap();
        assert!(db.log_held().is_none());
        move_file(&vfs, AWAY, FILE);
        fill(&db, ROWS..ROWS + 10).unwrap();
        drop(db);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        fill(&db, ROWS + 10..ROWS + 20).unwrap();
        check_new_ones(&db, ROWS..ROWS + 20, "back");

        // The new one is lost, too.
        drop(db);
        let files = vfs.read_dir(Path::new(FILE).parent().unwrap()).unwrap();
        let new = files.iter().find(|entry| entry.name.starts_with("large-")).unwrap();
        vfs.remove_file(&Path::new(FILE).with_file_name(&new.name)).unwrap();
        vfs.sync_dir(Path::new(FILE).parent().unwrap()).unwrap();
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        db.begin_large_values_anew(T).unwrap();
        fill(&db, ROWS + 20..ROWS + 30).unwrap();
        let found = all(&db);
        for key in (0..ROWS + 30).filter(|key| is_large(*key)) {
            match key < ROWS + 20 {
                true => assert!(is_lost(&found[&key].1)),
                false => assert_eq!(*found[&key].1.as_ref().unwrap(), value(key)),
            }
        }
        db.drop_table(T).unwrap();
        assert!(!vfs.exists(Path::new(FILE)).unwrap());
        create(&db);
        fill(&db, 0..10).unwrap();
    }
}

#[test]
fn a_table_with_a_lost_file_is_renamed_emptied_and_dropped() {
    let vfs = stopped(4);
    harm(&vfs, Harm::Lost);
    let db = open(&vfs).unwrap();
    db.rename_table(T, "./db/u").unwrap();
    db.rename_table("./db/u", T).unwrap();
    check_goes_on(&db, "a rename there and back");
    db.truncate_table(T).unwrap();
    assert!(all(&db).is_empty());
    assert!(is_lost(&fill(&db, 0..10)));
    db.begin_large_values_anew(T).unwrap();
    fill(&db, 0..10).unwrap();
    db.check_table(&db.open_table(T).unwrap(), &mut |_| true).unwrap();
    drop(db);
    let vfs = stopped(4);
    harm(&vfs, Harm::Superblocks);
    let db = open(&vfs).unwrap();
    db.drop_table(T).unwrap();
    create(&db);
    fill(&db, 0..10).unwrap();
    assert_eq!(all(&db).len(), 10);
}

#[test]
fn damage_inside_the_file_costs_the_values_there_and_none_is_wrong() {
    // All of it.
    for begin in [cut_off, stopped] {
        let vfs = begin(5);
        harm(&vfs, Harm::Blocks);
        let db = open(&vfs).unwrap();
        for (key, (_, found)) in all(&db) {
            match is_large(key) {
                true => assert!(is_refused(&found) || found.unwrap() == value(key)),
                false => assert_eq!(found.unwrap(), value(key)),
            }
        }
        assert!(is_refused(&db.check_table(&db.open_table(T).unwrap(), &mut |_| true)));
        commit(&db, |txn, table| update(txn, table, 2, Some(1000), None)).unwrap();
    }
    // One place after the other; whatever it is, most values are there.
    let len = {
        let vfs = stopped(5);
        let file = vfs.open(Path::new(FILE), OpenMode::Existing).unwrap();
        file.len().unwrap()
    };
    let (mut refused_in_all, mut whole) = (0, 0);
    for place in (0..len).step_by(2048).map(|place| place + 700) {
        let vfs = stopped(5);
        if place >= len {
            break;
        }
        vfs.flip_bit(Path::new(FILE), place, 3);
        let db = open(&vfs).unwrap();
        let mut refused = 0;
        for (key, (_, found)) in all(&db) {
            match is_refused(&found) {
                true => refused += 1,
                false => assert_eq!(found.unwrap(), value(key), "{place}"),
            }
        }
        refused_in_all += refused;
        whole += u32::from(refused == 0);
        // Whatever cannot be read can be deleted, and new values do not get its number.
        let table = db.open_table(T).unwrap();
        if table.has_lost_large_file() {
            db.begin_large_values_anew(T).unwrap();
        }
        fill(&db, ROWS..ROWS + 6).unwrap();
        let found = all(&db);
        assert!((ROWS..ROWS + 6).all(|key| *found[&key].1.as_ref().unwrap() == value(key)), "{place}");
    }
    assert!(refused_in_all > 0 && whole > 0);
}

#[test]
fn a_prepared_transaction_comes_back_without_its_values() {
    let vfs = stopped(6);
    let db = open(&vfs).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 901, &value(901)).unwrap();
    delete(&mut txn, &table, 1);
    txn.prepare(b"x").unwrap();
    txn.detach();
    drop((txn, table, db));
    let vfs = vfs.crash();
    move_file(&vfs, FILE, AWAY);
    let db = open(&vfs).unwrap();
    assert!(matches!(db.begin_large_values_anew(T), Err(Error::Engine(pandodb::EngineError::InUse { .. }))));
    assert!(db.commit_by_xid(b"x").unwrap());
    let found = all(&db);
    assert!(is_lost(&found[&901].1) && !found.contains_key(&1));
    drop(db);
    // The file is back, and does not know the value; nobody gets its number.
    let vfs = vfs.crash();
    move_file(&vfs, AWAY, FILE);
    let db = open(&vfs).unwrap();
    fill(&db, ROWS..ROWS + 30).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    let row = locked(&mut txn, &table, 901);
    let mut references = Vec::new();
    references_of(table.layouts().unwrap(), &row, &mut references).unwrap();
    let read = txn.large_value(&table, references[0], true).unwrap();
    assert!(read.as_ref().is_none_or(|found| *found == value(901)));
    drop(txn);
    assert_eq!(is_refused(&db.check_table(&table, &mut |_| true)), read.is_none());
    // Who makes a new catalog of the copies of the descriptors knows where numbers go on.
    let status = vfs.open(&Path::new(FILE).with_file_name("status.pando"), OpenMode::Existing).unwrap();
    let mut text = vec![0; status.len().unwrap() as usize];
    status.read_exact_at(&mut text, 0).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(&format!("\"numbers_from\": {}", 1u64 << 40)), "{text}");
}

#[test]
fn a_crash_in_the_middle_of_giving_up_leaves_the_old_state_or_the_new_one() {
    let mut is_new_at_last = false;
    for at in 1..400 {
        let vfs = stopped(7);
        harm(&vfs, Harm::Lost);
        let db = open(&vfs).unwrap();
        db.open_table(T).unwrap();
        vfs.fail_io_after(at, FaultKind::Sticky);
        let done = db.begin_large_values_anew(T);
        drop(db);
        let vfs = vfs.crash();
        let lines = Lines::default();
        let db = open_logging(&vfs, &lines).unwrap();
        let is_lost_still = db.open_table(T).unwrap().has_lost_large_file();
        assert!(done.is_err() || !is_lost_still, "{at}: {lines:?}");
        if is_lost_still {
            check_goes_on(&db, "a crash");
            let files = vfs.read_dir(Path::new(FILE).parent().unwrap()).unwrap();
            assert!(files.iter().all(|entry| !entry.name.starts_with("large-")), "{files:?}");
            db.begin_large_values_anew(T).unwrap();
        }
        fill(&db, ROWS..ROWS + 5).unwrap();
        check_new_ones(&db, ROWS..ROWS + 5, "a crash");
        if done.is_ok() {
            is_new_at_last = true;
            break;
        }
    }
    assert!(is_new_at_last);
}
