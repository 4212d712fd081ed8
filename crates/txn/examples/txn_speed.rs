//! Times the parts of a transaction: `cargo run --release -p pando-txn --example txn_speed`.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_base::{DictId, Metrics, TxnId};
use pando_txn::{LockManager, LockMode, Mark, Snapshots, Wait, WriteSet};

const DICT: DictId = DictId(1);
const WAIT: Wait = Wait::Timeout(Duration::from_secs(10));
const ROWS: u64 = 2_000_000;

fn report(what: &str, times: u64, work: impl FnOnce()) {
    let begun = Instant::now();
    work();
    let elapsed = begun.elapsed();
    println!("{what:<62} {:>9.1} ns each", elapsed.as_nanos() as f64 / times as f64);
}

/// Numbers in an order without locality.
fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn write_sets() {
    let value = [7u8; 100];
    let mut writes = WriteSet::new();
    report("write set: insert, ascending 8-byte keys, 100-byte values", ROWS, || {
        (0..ROWS).for_each(|i| writes.put(DICT, &i.to_be_bytes(), &value));
    });
    println!("{:<62} {:>9} bytes a row", "  memory", writes.bytes() as u64 / ROWS);
    report("write set: get, ascending", ROWS, || {
        (0..ROWS).for_each(|i| assert!(writes.get(DICT, &i.to_be_bytes()).is_some()));
    });
    let mut keys = 0;
    report("write set: for_each_final", ROWS, || writes.for_each_final(|_, _, _, _| keys += 1));
    assert_eq!(keys, ROWS);
    let half = ROWS / 2 + 1;
    report("write set: scan by next_ge", half, || {
        let mut at = 0u64.to_be_bytes().to_vec();
        for _ in 0..half - 1 {
            let next = writes.next_ge(DICT, Bound::Excluded(&at), Mark::LATEST).map(|(key, _)| key);
            at.copy_from_slice(next.unwrap_or_default());
        }
    });
    report("write set: drop", ROWS, || drop(writes));

    let mut writes = WriteSet::new();
    report("write set: insert, scattered keys", ROWS, || {
        (0..ROWS).for_each(|i| writes.put(DICT, &scattered(i).to_be_bytes(), &value));
    });
    println!("{:<62} {:>9} bytes a row", "  memory", writes.bytes() as u64 / ROWS);
    report("write set: get, scattered", ROWS, || {
        (0..ROWS).for_each(|i| assert!(writes.get(DICT, &scattered(i).to_be_bytes()).is_some()));
    });
    let mark = writes.mark();
    report("write set: update, scattered", ROWS / 2, || {
        (0..ROWS / 2).for_each(|i| writes.put(DICT, &scattered(i).to_be_bytes(), &value));
    });
    report("write set: roll these updates back", ROWS / 2, || writes.rollback_to(mark));

    let key = |i: u64| [&b"a common beginning of text "[..], &scattered(i).to_be_bytes()].concat();
    let mut writes = WriteSet::new();
    report("write set: insert, scattered keys with a common beginning", ROWS, || {
        (0..ROWS).for_each(|i| writes.put(DICT, &key(i), &[]));
    });

    let small = 1_000_000;
    let mut writes = WriteSet::new();
    report("write set: transaction of 3 rows in 2 dictionaries, reused", small, || {
        for i in 0..small {
            for row in 0..3 {
                writes.put(DICT, &(i + row).to_be_bytes(), &value);
                writes.put(DictId(2), &scattered(i + row).to_be_bytes(), &[]);
            }
            writes.clear();
        }
    });
    report("write set: the same, new each time", small, || {
        for i in 0..small {
            let mut writes = WriteSet::new();
            for row in 0..3 {
                writes.put(DICT, &(i + row).to_be_bytes(), &value);
                writes.put(DictId(2), &scattered(i + row).to_be_bytes(), &[]);
            }
        }
    });
}

fn lock_managers() {
    let locks = LockManager::new(Arc::new(Metrics::default()));
    let times = 1_000_000;
    report("locks: lock and unlock one key", times, || {
        let txn = locks.register(TxnId(1));
        for i in 0..times {
            let key = i.to_be_bytes();
            assert!(locks.lock(&txn, DICT, &key, LockMode::Exclusive, WAIT).is_ok());
            locks.unlock(&txn, DICT, &key);
        }
    });
    report("locks: lock 10, release all (per lock)", times, || {
        let txn = locks.register(TxnId(1));
        for i in 0..times {
            assert!(locks.lock(&txn, DICT, &i.to_be_bytes(), LockMode::Exclusive, WAIT).is_ok());
            if i % 10 == 9 {
                locks.release_all(&txn);
            }
        }
    });
    let txn = locks.register(TxnId(1));
    report("locks: one transaction takes a million", times, || {
        for i in 0..times {
            assert!(locks.lock(&txn, DICT, &i.to_be_bytes(), LockMode::Exclusive, WAIT).is_ok());
        }
    });
    report("locks: and asks for them again", times, || {
        for i in 0..times {
            assert!(locks.lock(&txn, DICT, &i.to_be_bytes(), LockMode::Exclusive, WAIT).is_ok());
        }
    });
    report("locks: and releases them", times, || locks.release_all(&txn));
    drop(txn);
    report("locks: register and drop a transaction", times, || {
        (0..times).for_each(|i| drop(locks.register(TxnId(i))));
    });
    let threads = 4;
    report("locks: 4 threads, 10 locks each of their own (wall, per lock)", threads * times, || {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let locks = &locks;
                scope.spawn(move || {
                    let txn = locks.register(TxnId(thread));
                    for i in 0..times {
                        let key = (thread << 32 | i).to_be_bytes();
                        assert!(locks.lock(&txn, DICT, &key, LockMode::Exclusive, WAIT).is_ok());
                        if i % 10 == 9 {
                            locks.release_all(&txn);
                        }
                    }
                });
            }
        });
    });
    let turns = 50_000;
    report("locks: 4 threads, one hot key (wall, per hand-over)", threads * turns, || {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let locks = &locks;
                scope.spawn(move || {
                    let txn = locks.register(TxnId(thread));
                    for _ in 0..turns {
                        assert!(locks.lock(&txn, DICT, b"hot", LockMode::Exclusive, WAIT).is_ok());
                        locks.release_all(&txn);
                    }
                });
            }
        });
    });
}

fn snapshots() {
    let snapshots = Snapshots::new(0);
    let times = 1_000_000;
    report("snapshots: take and drop", times, || (0..times).for_each(|_| drop(snapshots.take())));
    report("snapshots: publish and wait", times, || {
        for seqno in 1..=times {
            snapshots.publish(seqno);
            snapshots.wait_visible(seqno, || ());
        }
    });
    report("snapshots: live", 10_000, || (0..10_000).for_each(|_| drop(snapshots.live())));
    let next = AtomicU64::new(times + 1);
    report("snapshots: 4 threads take, publish, wait (wall, each)", 4 * 100_000, || {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100_000 {
                        drop(snapshots.take());
                        let seqno = next.fetch_add(1, Ordering::SeqCst);
                        snapshots.publish(seqno);
                        snapshots.wait_visible(seqno, || ());
                    }
                });
            }
        });
    });
}

fn main() {
    write_sets();
    lock_managers();
    snapshots();
}
