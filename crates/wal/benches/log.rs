//! What an append costs, and how durable commits of many threads share syncs. Run with
//! `cargo bench -p pando-wal`, and `PANDO_BENCH_DIR` for the disk to be measured.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pando_base::{DictId, Kind, Metrics};
use pando_storage::vfs::RealVfs;
use pando_wal::{BatchBuilder, FlushMode, Wal, WalOptions};

const APPENDS: u64 = 1_000_000;
const COMMITS: u64 = 8_000;

fn open(dir: &Path, buffer_bytes: usize) -> (Wal, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    let options = WalOptions { buffer_bytes, ..WalOptions::default() };
    let opened = Wal::create_or_open(RealVfs::new(false), dir, options, metrics.clone());
    let (wal, mut replay) = opened.expect("the log opens");
    let end = replay.for_each(|_, _| Ok(())).expect("the log is whole");
    wal.start(end.last_seqno + 1).expect("the log starts");
    (wal, metrics)
}

fn batch(value_bytes: usize) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    batch.record(DictId(1), Kind::Put, &7u64.to_be_bytes(), &vec![1; value_bytes]);
    batch
}

fn appends(dir: &Path) {
    for (threads, value_bytes) in [(1, 100), (4, 100), (1, 4000)] {
        let (wal, _) = open(dir, 8 << 20);
        let batch = batch(value_bytes);
        let each = APPENDS / threads / if value_bytes > 1000 { 10 } else { 1 };
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..each).for_each(|_| _ = wal.append(&batch).expect("append")));
            }
        });
        let total = start.elapsed();
        wal.trim(wal.last_seqno()).expect("trim");
        let ns = total.as_nanos() as u64 / (each * threads);
        println!("append, {threads} threads, {value_bytes} byte values, writes included: {ns} ns");
    }
    // Without any write: the buffer holds all.
    let (wal, _) = open(dir, 1 << 30);
    let batch = batch(100);
    for round in 0..2 {
        let start = Instant::now();
        (0..APPENDS / 4).for_each(|_| _ = wal.append(&batch).expect("append"));
        let ns = start.elapsed().as_nanos() as u64 / (APPENDS / 4);
        println!("append to the buffer alone, round {round}: {ns} ns");
    }
}

fn commits(dir: &Path) {
    for threads in [1, 1, 2, 8, 32, 128] {
        let (wal, metrics) = open(dir, 8 << 20);
        let batch = batch(100);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..COMMITS / threads {
                        let got = wal.append(&batch).expect("append");
                        wal.wait(got.lsn, FlushMode::Commit).expect("commit");
                    }
                });
            }
        });
        let rate = COMMITS as f64 / start.elapsed().as_secs_f64();
        let per_sync = COMMITS as f64 / metrics.log_syncs.get() as f64;
        let sync_us = metrics.log_sync_time.get() / metrics.log_syncs.get().max(1);
        println!("durable commits, {threads} threads: {rate:.0}/s, {per_sync:.1} per sync of {sync_us} us");
        wal.trim(wal.last_seqno()).expect("trim");
    }
}

fn main() {
    let temp = match std::env::var_os("PANDO_BENCH_DIR") {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let temp = temp.expect("a directory");
    appends(temp.path());
    commits(temp.path());
}
