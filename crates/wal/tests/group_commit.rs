//! Threads: shared syncs, order, and what the modes promise.

mod common;
#[path = "common/slow_syncs.rs"]
mod slow_syncs;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use common::{batch, collect, open_with, recover};
use pando_base::{DictId, Kind};
use pando_storage::vfs::{RealVfs, SimVfs};
use pando_wal::{BatchBuilder, FlushMode, WalOptions};
use slow_syncs::SlowSyncs;

#[test]
fn commits_of_32_threads_share_syncs_and_all_are_replayed_in_order() {
    const THREADS: u64 = 32;
    const COMMITS: u64 = 40;
    let temp = tempfile::tempdir().unwrap();
    let options = WalOptions { file_bytes: 256 << 10, buffer_bytes: 1 << 20, ..WalOptions::default() };
    let vfs = Arc::new(SlowSyncs(RealVfs::new(false)));
    let (wal, mut replay, metrics) = open_with(vfs, temp.path(), options.clone()).unwrap();
    collect(&mut replay).unwrap();
    wal.start(1).unwrap();
    // Nobody waits before all have something to wait for, also where one thread runs at a time.
    let (wal, have_all) = (Arc::new(wal), &Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let wal = wal.clone();
            scope.spawn(move || {
                for i in 0..COMMITS {
                    let got = wal.append(&batch(thread * COMMITS + i, 300)).unwrap();
                    have_all.wait();
                    wal.wait(got.lsn, FlushMode::Commit).unwrap();
                }
            });
        }
    });
    let commits = THREADS * COMMITS;
    let syncs = metrics.log_syncs.get();
    assert!(syncs < commits / 2, "{syncs} syncs for {commits} commits");
    assert!(metrics.log_waits.get() > 0 && metrics.log_written_bytes.get() > commits * 300);
    assert!(metrics.log_writes.get() > 0);
    drop(wal);
    let (_, mut replay, _) = open_with(RealVfs::new(false), temp.path(), options).unwrap();
    let (batches, _) = collect(&mut replay).unwrap();
    assert!(common::seqnos(&batches).into_iter().eq(1..=commits));
}

#[test]
fn threads_with_every_mode_ticks_and_trims_keep_the_log_in_order() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    let wal = Arc::new(wal);
    let running = AtomicU64::new(6);
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (wal, running) = (wal.clone(), &running);
            scope.spawn(move || {
                for i in 0..400u64 {
                    let mut batch = BatchBuilder::new();
                    let len = if i % 50 == 7 { 30_000 } else { 50 };
                    batch.record(DictId(thread), Kind::Put, &i.to_be_bytes(), &vec![7; len]);
                    let got = wal.append(&batch).unwrap();
                    wal.wait(got.lsn, FlushMode::from_number((thread + i) % 3).unwrap()).unwrap();
                }
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) > 0 {
                wal.tick().unwrap();
                wal.trim(wal.last_seqno().saturating_sub(100)).unwrap();
                std::thread::yield_now();
            }
        });
    });
    wal.sync_all().unwrap();
    let (_, batches, _) = recover(&vfs.crash()).unwrap();
    let seqnos = common::seqnos(&batches);
    assert_eq!(seqnos.last(), Some(&2400));
    assert!(seqnos.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert!(seqnos.len() >= 100);
}

#[test]
fn the_modes_sync_only_when_they_promise_to() {
    let vfs = SimVfs::new(1);
    let (wal, _, metrics) = recover(&vfs).unwrap();
    let got = wal.append(&batch(1, 10)).unwrap();
    wal.wait(got.lsn, FlushMode::Lazy).unwrap();
    assert_eq!((metrics.log_writes.get(), metrics.log_syncs.get()), (0, 0));
    wal.wait(got.lsn, FlushMode::Write).unwrap();
    assert_eq!((metrics.log_writes.get(), metrics.log_syncs.get()), (1, 0));
    wal.wait(got.lsn, FlushMode::Commit).unwrap();
    wal.wait(got.lsn, FlushMode::Commit).unwrap();
    wal.sync_up_to_seqno(got.seqno).unwrap();
    assert_eq!((metrics.log_writes.get(), metrics.log_syncs.get()), (1, 1));
    wal.append(&batch(2, 10)).unwrap();
    wal.tick().unwrap();
    assert_eq!(metrics.log_syncs.get(), 2);
}

#[test]
fn a_full_buffer_is_written_by_the_next_append() {
    let vfs = SimVfs::new(1);
    let (wal, _, metrics) = recover(&vfs).unwrap();
    for i in 0..100 {
        wal.append(&batch(i, 1000)).unwrap();
    }
    assert!(metrics.log_writes.get() > 8, "8 KiB of buffer for 100 KiB: {}", metrics.log_writes.get());
}
