//! What it costs to begin and end a read-only transaction, and whether threads disturb each other at it:
//! `cargo run --release -p pandodb --example read_only_speed -- [transactions] [threads]...`.
//! Each thread works on a transaction of its own, as connections do: with a snapshot alone, then with a
//! lookup of one row through it. For the profile: `perf record -g target/release/examples/read_only_speed`.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use pandodb::{Compression, Db, Entry, FlushMode, Options, ReadMode, Table, TableSpec};

const ROWS: u64 = 10_000;

fn table(db: &Arc<Db>) -> pandodb::Result<Arc<Table>> {
    db.create_table(&TableSpec {
        path: "t".into(),
        indexes: Vec::new(),
        compression: Compression::Zstd(1),
        temporary: false,
        auto_increment: 0,
        ..TableSpec::default()
    })?;
    let table = db.open_table("t")?;
    let mut txn = db.begin();
    for n in 0..ROWS {
        txn.insert_row(&table, &[Entry { key: &n.to_be_bytes(), value: &[b'x'; 100], unique: true }])?;
    }
    txn.commit()?;
    Ok(table)
}

/// Nanoseconds that `threads` need for a transaction each.
fn measure(db: &Arc<Db>, threads: u64, times: u64, work: impl Fn(&mut pandodb::Txn, u64) + Sync) -> f64 {
    let ready = Barrier::new(threads as usize + 1);
    let mut begun = None;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, ready) = (&work, &ready);
            scope.spawn(move || {
                let mut txn = db.begin();
                ready.wait();
                for n in 0..times {
                    txn.open_snapshot();
                    work(&mut txn, (thread * 7919 + n * 31) % ROWS);
                    txn.rollback();
                }
            });
        }
        ready.wait();
        begun = Some(Instant::now());
    });
    let elapsed = begun.map_or(0, |begun| begun.elapsed().as_nanos());
    elapsed as f64 / times as f64
}

fn main() -> pandodb::Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let times = arguments.next().unwrap_or(1_000_000);
    let mut counts: Vec<u64> = arguments.collect();
    if counts.is_empty() {
        counts = vec![1, 2, 8, 32];
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::new(dir.path());
    options.flush_mode = FlushMode::Write;
    let db = Db::open(options)?;
    let table = table(&db)?;
    println!("{:>8}  {:>22}  {:>22}", "threads", "begin and end, ns", "with one lookup, ns");
    for threads in counts {
        let empty = measure(&db, threads, times / threads, |_, _| ());
        let lookup = measure(&db, threads, times / threads, |txn, n| {
            let mut cursor = txn.cursor(&table, 0);
            let found = cursor.seek(txn, &n.to_be_bytes(), ReadMode::Snapshot);
            assert!(found.is_ok() && cursor.valid());
        });
        // Per transaction of the whole process.
        let each = |ns: f64| ns / threads as f64;
        println!("{threads:>8}  {:>22.1}  {:>22.1}", each(empty), each(lookup));
    }
    db.close()
}
