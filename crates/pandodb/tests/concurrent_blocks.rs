//! Threads that move money between accounts, and accounts to other keys, while others add it all up from blocks of
//! columns: of segments, of merged rows, and of what memtables alone have, which is kept between queries. Each
//! snapshot sees all of the money, whichever way its rows come.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use common::{for_each_row, options, Lines};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{Compression, Db, LockMode, LockWait, LockedRead, Table, TableSpec, Txn, View, Want};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ACCOUNTS: u64 = 1200;
const START: i64 = 1000;
const WRITERS: u64 = 3;
const COMMITS: u64 = 6000;

fn open(dir: &std::path::Path) -> Arc<Db> {
    let mut options = options(&Lines::default());
    options.base_dir = dir.to_owned();
    options.engine_dir = dir.join(".pando");
    options.background_threads = 2;
    options.checkpoint_period_s = 1;
    // Such that a memtable has chunks: each has some ten records.
    options.tree.memtable_bytes = 64 << 10;
    Db::open(options).unwrap()
}

fn spec() -> TableSpec {
    let ty = ColumnType { kind: Kind::Signed, size: 8, nullable: true, binary: false };
    let column = NewColumn { name: String::new(), ty, source: Source::Added(Value::Null) };
    TableSpec {
        path: "accounts".into(),
        compression: Compression::Lz4,
        columns: Some(vec![column]),
        ..TableSpec::default()
    }
}

/// Version of the layout, which values are NULL, and the value.
fn row(balance: i64) -> Vec<u8> {
    [&[1, 0][..], &balance.to_le_bytes()].concat()
}

fn balance(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[row.len() - 8..].try_into().unwrap())
}

fn put(txn: &mut Txn, table: &Table, key: u64, balance: i64) {
    txn.put(table, 0, &key.to_be_bytes(), &row(balance), LockWait::Default).unwrap();
}

/// Locks and reads a row; each writer has accounts of its own, so nobody waits.
fn locked(txn: &mut Txn, table: &Table, key: u64) -> i64 {
    match txn.get_locked(table, 0, &key.to_be_bytes(), LockMode::Exclusive, LockWait::Default).unwrap() {
        LockedRead::Row(row) => balance(&row),
        other => panic!("account {key} is gone: {other:?}"),
    }
}

/// Sum and number of accounts, from blocks in one part or in several.
fn total(view: &View<'_>, table: &Table, in_parts: bool) -> (i64, u64) {
    let mut bounds = vec![None];
    if in_parts {
        bounds.extend(view.bounds().into_iter().map(Some));
    }
    bounds.push(None);
    let (mut sum, mut count) = (0, 0);
    for part in bounds.windows(2) {
        let (begin, end) = (part[0].as_deref(), part[1].as_deref());
        let mut blocks = view.blocks(table.layouts().unwrap(), &[Want::Stored(0)], begin, end).unwrap();
        while let Some(block) = blocks.next().unwrap() {
            sum += (0..block.rows).map(|at| balance(block.vectors[0].get(at).unwrap())).sum::<i64>();
            count += block.rows as u64;
        }
    }
    (sum, count)
}

/// The same row by row.
fn total_of_rows(txn: &mut Txn, table: &Arc<Table>, backward: bool) -> (i64, u64) {
    let (mut sum, mut count) = (0, 0);
    for_each_row(txn, table, 0, backward, |_, row| {
        sum += balance(row);
        count += 1;
    });
    (sum, count)
}

/// Commits transfers between accounts, and accounts that get another key, of those whose number leaves this remainder.
fn write(db: &Arc<Db>, table: &Table, writer: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(writer);
    let mut keys: Vec<u64> = (0..ACCOUNTS).filter(|key| key % WRITERS == writer).collect();
    let mut end = ACCOUNTS * 1000;
    let mut txn = db.begin();
    for _ in 0..COMMITS / WRITERS {
        for _ in 0..if rng.random_ratio(1, 20) { 30 } else { 1 } {
            let (from, to) = (rng.random_range(0..keys.len()), rng.random_range(0..keys.len()));
            let (rich, poor) = (locked(&mut txn, table, keys[from]), locked(&mut txn, table, keys[to]));
            if rng.random_ratio(1, 4) {
                // Somewhere among the others, or behind all.
                end += 1;
                let key = if rng.random_ratio(1, 2) { end } else { rng.random_range(ACCOUNTS..end) };
                let key = key * WRITERS + writer;
                if !keys.contains(&key) {
                    txn.delete(table, 0, &keys[from].to_be_bytes(), LockWait::Default).unwrap();
                    put(&mut txn, table, key, rich);
                    keys[from] = key;
                }
            } else if from != to {
                let amount = rng.random_range(1..50);
                put(&mut txn, table, keys[from], rich - amount);
                put(&mut txn, table, keys[to], poor + amount);
            }
        }
        txn.commit().unwrap();
    }
}

#[test]
fn each_snapshot_has_all_the_money_in_its_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.create_table(&spec()).unwrap();
    let table = db.open_table("accounts").unwrap();
    let mut txn = db.begin();
    (0..ACCOUNTS).for_each(|key| put(&mut txn, &table, key, START));
    txn.commit().unwrap();

    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let expected = (ACCOUNTS as i64 * START, ACCOUNTS);
    let check = |backward: bool| {
        let mut txn = db.begin();
        let found = total(&txn.view(&table, 0).unwrap(), &table, backward);
        assert_eq!(found, expected, "in blocks");
        assert_eq!(total_of_rows(&mut txn, &table, backward), expected, "in rows, backward: {backward}");
        // The same snapshot, some time later.
        assert_eq!(total(&txn.view(&table, 0).unwrap(), &table, !backward), expected, "in blocks again");
        rounds.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let (db, table, stop, check) = (&db, &table, &stop, &check);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(db, table, writer))).collect();
        for backward in [false, true] {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    check(backward);
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer has failed");
    });
    check(false);
    let metrics = db.metrics();
    println!(
        "{} commits, {} rounds, {} flushes, {} rows in columns",
        metrics.commits.get(),
        rounds.load(Ordering::Relaxed),
        metrics.flushes.get(),
        metrics.rows_aggregated_in_columns.get(),
    );
    assert!(metrics.flushes.get() > 5 && rounds.load(Ordering::Relaxed) > 2);
    assert!(metrics.rows_aggregated_in_columns.get() > 0);
    db.check_table(&table, &mut |_| true).unwrap();
    db.close().unwrap();
}
