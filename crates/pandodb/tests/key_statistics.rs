//! What is told of how many different keys an index has.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::ops::Range;
use std::sync::Arc;

use common::{disk, open, spec};
use pandodb::{Db, Distinct, Entry, Table};

const PATH: &str = "./db/a";

/// Rows whose entries in the index are a number below `values`, and the row's key.
fn insert(db: &Arc<Db>, table: &Table, rows: Range<u32>, values: u32) {
    let mut txn = db.begin();
    for n in rows {
        let row = n.to_be_bytes();
        let entry = [(n % values).to_be_bytes(), row].concat();
        let [row, entry] = [&row[..], &entry].map(|key| Entry { key, value: b"", unique: false });
        txn.insert_row(table, &[Entry { unique: true, ..row }, entry]).unwrap();
    }
    txn.commit().unwrap();
}

/// The index has two parts of four bytes.
fn distinct(db: &Arc<Db>, table: &Table, anew: bool) -> Option<Arc<Distinct>> {
    let mut ends = |_: &[u8], ends: &mut [u32]| {
        ends.copy_from_slice(&[4, 8]);
        true
    };
    db.distinct_keys(table, 1, 2, anew, &mut ends).unwrap()
}

fn table_of(db: &Arc<Db>, rows: u32, values: u32) -> Arc<Table> {
    db.create_table(&spec(PATH)).unwrap();
    let table = db.open_table(PATH).unwrap();
    (0..rows).step_by(1000).for_each(|begin| insert(db, &table, begin..rows.min(begin + 1000), values));
    table
}

#[test]
fn a_small_table_is_counted_and_again_when_a_quarter_has_changed() {
    let db = open(&disk(1)).unwrap();
    let table = table_of(&db, 1000, 7);
    let first = Distinct { rows: 1000, values: vec![7, 1000] };
    assert_eq!(distinct(&db, &table, false).as_deref(), Some(&first));
    insert(&db, &table, 1000..1200, 50);
    assert_eq!(distinct(&db, &table, false).as_deref(), Some(&first));
    assert_eq!(distinct(&db, &table, true).unwrap().values, [50, 1200]);
    insert(&db, &table, 1200..1600, 90);
    assert_eq!(distinct(&db, &table, false).unwrap().values, [90, 1600]);
}

#[test]
fn a_large_table_is_sampled_where_it_has_been_flushed() {
    for values in [3, 100, 2000, 1 << 30] {
        let db = open(&disk(2)).unwrap();
        let table = table_of(&db, 20_000, values);
        db.checkpoint().unwrap();
        let found = distinct(&db, &table, false).unwrap();
        let truth = u64::from(values.min(20_000));
        assert!(found.values[0] <= 3 * truth && found.values[0] >= truth / 3, "{found:?} for {truth}");
        assert!(found.values[1] > 15_000, "{found:?}");
        let found = distinct(&db, &table, true).unwrap();
        assert!(found.values[0] == truth || truth == 20_000, "few values are counted: {found:?} for {truth}");
    }
}

/// A sample may meet none of them, or by chance where most of them are.
#[test]
fn values_of_very_different_sizes_are_counted() {
    let db = open(&disk(4)).unwrap();
    let table = table_of(&db, 30_000, 1);
    insert(&db, &table, 30_000..30_150, 1 << 30);
    db.checkpoint().unwrap();
    assert_eq!(distinct(&db, &table, false).unwrap().values[0], 151);
    insert(&db, &table, 30_150..34_000, 1 << 30);
    db.checkpoint().unwrap();
    assert_eq!(distinct(&db, &table, true).unwrap().values[0], 4001);
}

#[test]
fn an_empty_table_has_no_values() {
    let db = open(&disk(3)).unwrap();
    let table = table_of(&db, 0, 1);
    assert_eq!(distinct(&db, &table, false).unwrap().values, [0, 0]);
}
