//! Times random inserts with two job threads, point reads and a scan.
//!
//! `cargo run --release -p pando-tree --example tree_speed -- [rows in millions] [directory] [memtable MiB]
//! [key order: random | ascending]`

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_base::{DictId, Kind, Metrics, Seqno};
use pando_run::{BlockCache, RunContext};
use pando_storage::vfs::{RealVfs, Vfs};
use pando_storage::TreeFile;
use pando_tree::{Horizon, Tree, TreeConfig};

struct Newest(AtomicU64);

impl Horizon for Newest {
    fn snapshots(&self) -> Vec<Seqno> {
        vec![self.0.load(Ordering::SeqCst)]
    }
}

/// A bijection of 64-bit numbers that looks random.
fn scatter(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn value(n: u64, out: &mut Vec<u8>) {
    out.clear();
    // Half of it compresses well, as rows do.
    out.extend_from_slice(&scatter(n).to_le_bytes());
    out.extend_from_slice(
        format!("customer {:08} ordered {:04} of article ", n % 100_000, n % 97).as_bytes(),
    );
    out.extend((0..5).flat_map(|i| scatter(n + i).to_le_bytes()));
    out.resize(92, b' ');
}

fn per_second(rows: u64, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let millions: f64 = args.get(1).map_or(4.0, |arg| arg.parse().expect("rows in millions"));
    let directory = args.get(2).map_or_else(std::env::temp_dir, PathBuf::from);
    let mut config = TreeConfig::default();
    if let Some(mib) = args.get(3) {
        config.memtable_bytes = mib.parse::<usize>().expect("memtable in MiB") << 20;
    }
    let is_ascending = args.get(4).is_some_and(|order| order == "ascending");
    let rows = (millions * 1e6) as u64;
    let directory = tempfile::tempdir_in(directory).expect("a directory to work in");

    let vfs: Arc<dyn Vfs> = RealVfs::new(false);
    let file = TreeFile::create(&vfs, &directory.path().join("speed.pando"), DictId(1)).expect("create");
    let metrics = Arc::new(Metrics::default());
    let cache = BlockCache::new(512 << 20, metrics.clone());
    let horizon = Arc::new(Newest(AtomicU64::new(0)));
    let context = RunContext { file: file.clone(), cache, metrics: metrics.clone() };
    let tree = Tree::create(context, config, horizon.clone());
    let key = |n: u64| if is_ascending { n.to_be_bytes() } else { scatter(n).to_be_bytes() };

    let stop = AtomicBool::new(false);
    let mut raw = 0;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if !tree.run_job().expect("job") {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        let (mut last, mut bytes) = (Instant::now(), Vec::new());
        for n in 0..rows {
            let seqno = n + 1;
            value(n, &mut bytes);
            tree.gate().insert(&key(n), seqno, Kind::Put, &bytes);
            raw += 8 + bytes.len() as u64;
            horizon.0.store(seqno, Ordering::SeqCst);
            tree.seal_if_full(|| seqno);
            // What an engine does in microseconds per write: not run away from the flushes.
            while n % 64 == 0 && behind(&tree) > 4 * config.memtable_bytes as u64 {
                std::thread::sleep(Duration::from_micros(100));
            }
            if seqno % 1_000_000 == 0 {
                let debt = tree.debt();
                println!(
                    "{:4} million rows: {:9.0} rows/s, sealed {} MiB, overdue {} MiB",
                    seqno / 1_000_000,
                    per_second(1_000_000, last.elapsed()),
                    debt.sealed_bytes >> 20,
                    debt.overdue_bytes >> 20
                );
                last = Instant::now();
            }
        }
        println!("inserted: {:.0} rows/s", per_second(rows, begin.elapsed()));
        let settle = Instant::now();
        tree.checkpoint(|| rows, |_| Ok(()), || 0).expect("checkpoint");
        while tree.has_work() {
            std::thread::sleep(Duration::from_millis(5));
        }
        println!("settled after {:.1} s more", settle.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
    });
    tree.checkpoint(|| rows, |_| Ok(()), || 0).expect("checkpoint");
    report(&tree, &metrics, raw);
    read_back(&tree, rows, &key);
}

fn behind(tree: &Tree) -> u64 {
    let debt = tree.debt();
    debt.sealed_bytes + debt.overdue_bytes
}

fn report(tree: &Arc<Tree>, metrics: &Metrics, raw: u64) {
    let stats = tree.stats();
    println!("{stats:?}");
    let written = metrics.memtable_written_bytes.get()
        + metrics.flush_written_bytes.get()
        + metrics.compaction_written_bytes.get()
        + metrics.checkpoint_written_bytes.get();
    println!(
        "raw {} MiB, written {} MiB ({:.2} per raw byte: memtables {}, flushes {}, compactions {}), on disk {} MiB",
        raw >> 20,
        written >> 20,
        written as f64 / raw as f64,
        metrics.memtable_written_bytes.get() >> 20,
        metrics.flush_written_bytes.get() >> 20,
        metrics.compaction_written_bytes.get() >> 20,
        stats.disk_bytes >> 20
    );
    println!(
        "{} flushes (read {} MiB), {} by reference, {} compactions",
        metrics.flushes.get(),
        metrics.flush_read_bytes.get() >> 20,
        metrics.flush_by_reference.get(),
        metrics.compactions.get()
    );
}

fn read_back(tree: &Arc<Tree>, rows: u64, key: &impl Fn(u64) -> [u8; 8]) {
    let gets = rows.min(500_000);
    let begin = Instant::now();
    for n in 0..gets {
        let n = scatter(n) % rows;
        assert!(tree.get(&key(n), Seqno::MAX).expect("get").is_some());
    }
    println!("gets: {:.0}/s", per_second(gets, begin.elapsed()));
    let begin = Instant::now();
    for n in 0..gets {
        assert!(tree.get(&scatter(n + (1 << 40)).to_le_bytes(), Seqno::MAX).expect("get").is_none());
    }
    println!("gets of absent keys: {:.0}/s", per_second(gets, begin.elapsed()));
    for round in 0..2 {
        let begin = Instant::now();
        let mut cursor = tree.cursor(Seqno::MAX);
        cursor.seek_first().expect("seek");
        let (mut seen, mut bytes) = (0, 0);
        while cursor.valid() {
            seen += 1;
            bytes += cursor.key().len() + cursor.value().len();
            cursor.next().expect("next");
        }
        assert_eq!(seen, rows);
        println!("scan {round}: {:.0} rows/s, {} MiB", per_second(seen, begin.elapsed()), bytes >> 20);
    }
    let begin = Instant::now();
    let ranges = 20_000;
    for n in 0..ranges {
        let mut cursor = tree.cursor(Seqno::MAX);
        cursor.seek(&key(scatter(n) % rows)).expect("seek");
        for _ in 0..10 {
            if cursor.valid() {
                cursor.next().expect("next");
            }
        }
    }
    println!("ranges of ten rows: {:.0}/s", per_second(ranges, begin.elapsed()));
}
