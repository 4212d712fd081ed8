//! Threads that move money between accounts while others add it all up, over tiny trees with
//! background jobs and checkpoints running: a snapshot sees whole transactions or nothing of them.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use common::{for_each_row, options, Lines};
use pandodb::{Compression, Db, Entry, Error, LockMode, LockWait, LockedRead, Table, TableSpec, Txn};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ACCOUNTS: u32 = 400;
const START: i64 = 1000;
const TRANSFERS: u64 = 6000;

fn key(account: u32) -> Vec<u8> {
    account.to_be_bytes().to_vec()
}

/// An index entry: balance, then account.
fn index_key(balance: i64, account: u32) -> Vec<u8> {
    [&(balance as u64 ^ (1 << 63)).to_be_bytes()[..], &account.to_be_bytes()].concat()
}

fn balance(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().unwrap())
}

fn open(dir: &std::path::Path, memtable_bytes: usize) -> Arc<Db> {
    let mut options = options(&Lines::default());
    options.base_dir = dir.to_owned();
    options.engine_dir = dir.join(".pando");
    options.background_threads = 2;
    options.checkpoint_period_s = 1;
    options.tree.memtable_bytes = memtable_bytes;
    Db::open(options).unwrap()
}

fn set(txn: &mut Txn, table: &Table, account: u32, old: i64, new: i64) -> pandodb::Result<()> {
    let (id, old_value, new_value) = (key(account), old.to_le_bytes(), new.to_le_bytes());
    let (old_key, new_key) = (index_key(old, account), index_key(new, account));
    txn.update_row(
        table,
        &[
            Entry { key: &id, value: &old_value, unique: true },
            Entry { key: &old_key, value: b"", unique: false },
        ],
        &[
            Entry { key: &id, value: &new_value, unique: true },
            Entry { key: &new_key, value: b"", unique: false },
        ],
    )
}

fn locked(txn: &mut Txn, table: &Table, account: u32) -> pandodb::Result<i64> {
    match txn.get_locked(table, 0, &key(account), LockMode::Exclusive, LockWait::Default)? {
        LockedRead::Row(value) => Ok(balance(&value)),
        other => panic!("account {account} is gone: {other:?}"),
    }
}

fn transfer(txn: &mut Txn, table: &Table, from: u32, to: u32, amount: i64) -> pandodb::Result<()> {
    let a = locked(txn, table, from)?;
    let b = locked(txn, table, to)?;
    set(txn, table, from, a, a - amount)?;
    set(txn, table, to, b, b + amount)
}

/// Sum and number of accounts as this transaction sees them, through the rows and the index.
fn totals(txn: &mut Txn, table: &Arc<Table>, backward: bool) -> [(i64, u32); 2] {
    [0, 1].map(|dict| {
        let (mut sum, mut count) = (0, 0);
        for_each_row(txn, table, dict, backward, |key, value| {
            sum += match dict {
                0 => balance(value),
                _ => (u64::from_be_bytes(key[..8].try_into().unwrap()) ^ (1 << 63)) as i64,
            };
            count += 1;
        });
        (sum, count)
    })
}

fn check(db: &Arc<Db>, table: &Arc<Table>, backward: bool) {
    let mut txn = db.begin();
    let expected = (i64::from(ACCOUNTS) * START, ACCOUNTS);
    assert_eq!(totals(&mut txn, table, backward), [expected; 2]);
    // The same snapshot, some time later.
    assert_eq!(totals(&mut txn, table, !backward), [expected; 2]);
}

/// Memtables are sealed, and their runs flushed and merged, all the time.
#[test]
fn no_snapshot_ever_sees_half_a_transfer() {
    transfer_beside_sums(4 << 10);
}

/// Memtables live long enough for their nodes to be divided under those who read them.
#[test]
fn no_snapshot_ever_sees_half_a_transfer_in_larger_memtables() {
    transfer_beside_sums(48 << 10);
}

fn transfer_beside_sums(memtable_bytes: usize) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), memtable_bytes);
    db.create_table(&TableSpec {
        path: "accounts".into(),
        indexes: vec!["by_balance".into()],
        compression: Compression::Lz4,
        temporary: false,
        auto_increment: 0,
        ..TableSpec::default()
    })
    .unwrap();
    let table = db.open_table("accounts").unwrap();
    let mut txn = db.begin();
    for account in 0..ACCOUNTS {
        let (id, value, entry) = (key(account), START.to_le_bytes(), index_key(START, account));
        let row = [
            Entry { key: &id, value: &value, unique: true },
            Entry { key: &entry, value: b"", unique: false },
        ];
        txn.insert_row(&table, &row).unwrap();
    }
    txn.commit().unwrap();

    let (stop, deadlocks, sums) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|seed| {
                let (db, table, deadlocks) = (&db, &table, &deadlocks);
                scope.spawn(move || {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed);
                    let mut txn = db.begin();
                    let mut done = 0;
                    while done < TRANSFERS / 4 {
                        // A few accounts are hot, so that transactions meet, also in a circle.
                        let range = if rng.random_ratio(1, 4) { 6 } else { ACCOUNTS };
                        let (from, to) = (rng.random_range(0..range), rng.random_range(0..range));
                        if from == to {
                            continue;
                        }
                        match transfer(&mut txn, table, from, to, rng.random_range(1..50)) {
                            Ok(()) if rng.random_ratio(1, 10) => txn.rollback(),
                            Ok(()) => {
                                txn.commit().unwrap();
                                done += 1;
                            }
                            Err(Error::Deadlock) => {
                                deadlocks.fetch_add(1, Ordering::Relaxed);
                                txn.rollback();
                            }
                            Err(other) => panic!("transfer: {other}"),
                        }
                    }
                })
            })
            .collect();
        for backward in [false, true] {
            let (db, table, stop, sums) = (&db, &table, &stop, &sums);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    check(db, table, backward);
                    sums.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let metrics = db.metrics();
    println!(
        "{} commits, {} sums, {} deadlocks, {} flushes, {} checkpoints",
        metrics.commits.get(),
        sums.load(Ordering::Relaxed),
        deadlocks.load(Ordering::Relaxed),
        metrics.flushes.get(),
        metrics.checkpoints.get()
    );
    assert!(metrics.flushes.get() > 10 && sums.load(Ordering::Relaxed) > 2);
    db.check_table(&table, &mut |_| true).unwrap();

    // As after a kill: nothing is closed, the log brings back what the files lack.
    db.abandon();
    drop((txn, table, db));
    let db = open(dir.path(), memtable_bytes);
    let table = db.open_table("accounts").unwrap();
    check(&db, &table, false);
    db.check_table(&table, &mut |_| true).unwrap();
    db.close().unwrap();
}
