//! Clustering indexes: their entries hold the rows, through column changes, merges, restarts and builds beside writers.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{disk, open};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{
    Clustering, Db, Entry, IndexPlace, IndexSource, IndexSpec, NewIndex, ReadMode, Table, TableChange,
    TableSpec, Txn,
};

const PATH: &str = "./db/t";

/// A number, a group, and what is in no key. The layouts: the last one alone, then with a second column.
type Row = (u32, u32, i32);

fn column(name: &str, source: Source) -> NewColumn {
    let ty = ColumnType { kind: Kind::Signed, size: 4, nullable: false, binary: false };
    NewColumn { name: name.into(), ty, source }
}

fn row_bytes(version: u8, (_, _, value): Row) -> Vec<u8> {
    let mut bytes = vec![version];
    bytes.extend_from_slice(&value.to_le_bytes());
    if version > 1 {
        bytes.extend_from_slice(&77i32.to_le_bytes());
    }
    bytes
}

fn tailed(mut row: Vec<u8>, tail: &[u8]) -> Vec<u8> {
    let size = u8::try_from(tail.len()).unwrap();
    row.push(size);
    row.extend_from_slice(tail);
    row.extend_from_slice(&[size, 0]);
    row
}

/// Key and value in dictionary 0, an index by group and number, and a unique one by group.
fn encode(version: u8, row: Row) -> [(Vec<u8>, Vec<u8>); 3] {
    let key = format!("{:06}", row.0).into_bytes();
    let plain = format!("{:06}/{:06}", row.1, row.0).into_bytes();
    let unique = format!("{:06}", row.1).into_bytes();
    let value = row_bytes(version, row);
    [(key.clone(), value.clone()), (plain, value.clone()), (unique, tailed(value, &key))]
}

fn entries<'a>(encoded: &'a [(Vec<u8>, Vec<u8>); 3], count: usize) -> Vec<Entry<'a>> {
    let entry = |(at, (key, value)): (usize, &'a (Vec<u8>, Vec<u8>))| Entry { key, value, unique: at != 1 };
    encoded.iter().enumerate().take(count).map(entry).collect()
}

fn insert(txn: &mut Txn, table: &Table, version: u8, row: Row) -> pandodb::Result<()> {
    let encoded = encode(version, row);
    txn.insert_row(table, &entries(&encoded, table.entries()))
}

fn update(txn: &mut Txn, table: &Table, version: u8, old: Row, new: Row) -> pandodb::Result<()> {
    let (old, new) = (encode(version, old), encode(version, new));
    txn.update_row(table, &entries(&old, table.entries()), &entries(&new, table.entries()))
}

fn delete(txn: &mut Txn, table: &Table, version: u8, row: Row) -> pandodb::Result<()> {
    let encoded = encode(version, row);
    txn.delete_row(table, &entries(&encoded, table.entries()))
}

fn index(name: &str, clustering: Clustering) -> IndexSpec {
    IndexSpec { clustering, ..IndexSpec::from(name) }
}

fn create(db: &Arc<Db>, indexes: Vec<IndexSpec>) {
    let columns = Some(vec![column("value", Source::Added(Value::Null))]);
    db.create_table(&TableSpec { path: PATH.into(), indexes, columns, ..TableSpec::default() }).unwrap();
}

fn both() -> Vec<IndexSpec> {
    vec![index("plain", Clustering::Row), index("unique", Clustering::Tailed)]
}

fn content(db: &Arc<Db>, index: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, index);
    cursor.seek_first(&mut txn, ReadMode::Latest).unwrap();
    let mut found = Vec::new();
    while cursor.valid() {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next(&mut txn).unwrap();
    }
    found
}

/// The indexes have the rows, in whatever layout.
fn check(db: &Arc<Db>, rows: &BTreeMap<u32, Row>) {
    let table = db.open_table(PATH).unwrap();
    assert_eq!((table.clustering(1), table.clustering(2)), (Clustering::Row, Clustering::Tailed));
    db.check_table(&table, &mut |_| true).unwrap();
    for index in 0..3 {
        let found: BTreeMap<_, _> = content(db, index).into_iter().collect();
        assert_eq!(found.len(), rows.len());
        for row in rows.values() {
            let of = |version| encode(version, *row)[index].clone();
            let value = &found[&of(1).0];
            assert!([of(1).1, of(2).1].contains(value), "{row:?} in {index}: {value:?}");
        }
    }
}

#[test]
fn rows_in_indexes_follow_changes_of_columns_merges_and_restarts() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    create(&db, both());
    let mut rows: BTreeMap<u32, Row> = (0..300).map(|n| (n, (n, 1000 + n, n as i32))).collect();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    rows.values().for_each(|row| insert(&mut txn, &table, 1, *row).unwrap());
    txn.commit().unwrap();
    check(&db, &rows);
    // What is in no key changes, and a key, and rows go.
    let mut txn = db.begin();
    for n in (0..300).step_by(7) {
        let old = rows[&n];
        let new = (n, if n % 2 == 0 { old.1 } else { 5000 + n }, -5);
        update(&mut txn, &table, 1, old, new).unwrap();
        rows.insert(n, new);
    }
    for n in (0..300).step_by(50) {
        delete(&mut txn, &table, 1, rows.remove(&n).unwrap()).unwrap();
    }
    txn.commit().unwrap();
    check(&db, &rows);
    drop(table);
    let columns = Some(vec![
        column("value", Source::Column(0)),
        column("added", Source::Added(Value::Bytes(77i32.to_le_bytes().into()))),
    ]);
    db.alter_tables(&mut [TableChange { path: PATH.into(), columns, ..TableChange::default() }]).unwrap();
    check(&db, &rows);
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    for n in 300..400 {
        rows.insert(n, (n, 1000 + n, 1));
        insert(&mut txn, &table, 2, rows[&n]).unwrap();
    }
    let old = rows[&1];
    rows.insert(1, (1, old.1, 9));
    update(&mut txn, &table, 2, old, rows[&1]).unwrap();
    txn.commit().unwrap();
    check(&db, &rows);
    // Merges write old rows in the current layout, in indexes, too.
    db.compact_table(&table, &mut |_| true).unwrap();
    check(&db, &rows);
    assert!(content(&db, 1).iter().chain(&content(&db, 2)).all(|(_, value)| value[0] == 2));
    drop(table);
    drop(db);
    let db = open(&vfs).unwrap();
    check(&db, &rows);
}

#[test]
fn a_check_finds_an_entry_that_has_another_row() {
    let vfs = disk(2);
    let db = open(&vfs).unwrap();
    create(&db, both());
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    (0..50).for_each(|n| insert(&mut txn, &table, 1, (n, n, 1)).unwrap());
    txn.commit().unwrap();
    db.check_table(&table, &mut |_| true).unwrap();
    let mut encoded = encode(1, (50, 50, 1));
    encoded[1].1 = row_bytes(1, (50, 50, 2));
    let mut txn = db.begin();
    txn.insert_row(&table, &entries(&encoded, 3)).unwrap();
    txn.commit().unwrap();
    let error = db.check_table(&table, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("rows in a clustering index"), "{error}");
}

#[test]
fn indexes_that_are_built_beside_writers_have_the_newest_rows() {
    let vfs = disk(3);
    let db = open(&vfs).unwrap();
    create(&db, Vec::new());
    let mut rows: BTreeMap<u32, Row> = (0..200).map(|n| (n, (n, n, 0))).collect();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    rows.values().for_each(|row| insert(&mut txn, &table, 1, *row).unwrap());
    txn.commit().unwrap();
    drop(table);
    let new = |name: &str, is_unique, clustering| NewIndex {
        name: name.into(),
        is_unique,
        clustering,
        recipe: vec![1],
    };
    let indexes = [new("plain", false, Clustering::Row), new("unique", true, Clustering::Tailed)];
    let mut build = db.begin_index_build(PATH, &indexes).unwrap();
    let table = db.open_table(PATH).unwrap();
    let change = |rows: &mut BTreeMap<u32, Row>, step: usize| {
        let mut txn = db.begin();
        for n in (0..200).step_by(step) {
            let Some(old) = rows.get(&n).copied() else { continue };
            let new = (n, old.1, old.2 + 1);
            update(&mut txn, &table, 1, old, new).unwrap();
            rows.insert(n, new);
        }
        // Two rows change their groups, through one that both have for a moment.
        let (a, b) = (rows[&3], rows[&4]);
        update(&mut txn, &table, 1, a, (3, b.1, 50)).unwrap();
        update(&mut txn, &table, 1, b, (4, a.1, 51)).unwrap();
        rows.extend([(3, (3, b.1, 50)), (4, (4, a.1, 51))]);
        let gone = u32::try_from(step).unwrap() + 10;
        delete(&mut txn, &table, 1, rows.remove(&gone).unwrap()).unwrap();
        txn.commit().unwrap();
    };
    change(&mut rows, 3);
    let base: Vec<Row> = (0..200).map(|n| (n, n, 0)).collect();
    for row in &base {
        let encoded = encode(1, *row);
        build.add(0, &encoded[1].0, &encoded[1].1);
        build.add(1, &encoded[2].0, &encoded[2].1);
    }
    change(&mut rows, 5);
    build.finish_bases(&mut |_| true).unwrap();
    build.catch_up(&mut || false).unwrap();
    build.secure().unwrap();
    change(&mut rows, 2);
    drop(table);
    let place = |name: &str, at| IndexPlace { name: name.into(), source: IndexSource::New(at) };
    build.finish(&[place("plain", 0), place("unique", 1)]).map_err(|(_, error)| error).unwrap();
    check(&db, &rows);
    drop(db);
    check(&open(&vfs).unwrap(), &rows);
}
