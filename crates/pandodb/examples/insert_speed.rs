//! Random-key inserts into a table with three indexes, straight through the engine, without a server:
//! `cargo run --release -p pandodb --example insert_speed -- [rows] [cache MB] [rows per commit]`.
//! Prints rows a second for each tenth, and where the waiting was.

use std::time::Instant;

use pandodb::{Compression, Db, Entry, FlushMode, Options, TableSpec};

fn argument(position: usize, default: u64) -> u64 {
    std::env::args().nth(position).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A permutation of 64-bit numbers: distinct keys in random order.
fn scatter(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn main() -> pandodb::Result<()> {
    let rows = argument(1, 1_000_000);
    let cache = argument(2, 256) << 20;
    let per_commit = argument(3, 1000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::new(dir.path());
    options.cache_bytes = cache;
    options.flush_mode = FlushMode::Write;
    let db = Db::open(options)?;
    db.create_table(&TableSpec {
        path: "t".into(),
        indexes: vec!["a".into(), "b".into(), "c".into()],
        compression: Compression::Zstd(1),
        temporary: false,
        auto_increment: 0,
        ..TableSpec::default()
    })?;
    let table = db.open_table("t")?;
    let mut txn = db.begin();
    let tenth = (rows / 10).max(1);
    let (start, mut since, mut longest) = (Instant::now(), Instant::now(), 0);
    for n in 0..rows {
        let id = scatter(n).to_be_bytes();
        let columns = [scatter(n ^ 0x1111), scatter(n ^ 0x2222) % 1000, scatter(n ^ 0x3333) % 1_000_000];
        let mut row = id.to_vec();
        columns.iter().for_each(|c| row.extend_from_slice(&c.to_le_bytes()));
        row.extend_from_slice(&[b'x'; 40]);
        let keys: Vec<Vec<u8>> = columns.iter().map(|c| [c.to_be_bytes(), id].concat()).collect();
        let mut entries = vec![Entry { key: &id, value: &row, unique: true }];
        entries.extend(keys.iter().map(|key| Entry { key, value: b"", unique: false }));
        txn.insert_row(&table, &entries)?;
        if (n + 1) % per_commit == 0 {
            let before = Instant::now();
            txn.commit()?;
            longest = longest.max(before.elapsed().as_micros());
        }
        if (n + 1) % tenth == 0 {
            let rate = tenth as f64 / since.elapsed().as_secs_f64();
            println!("{:>10} rows  {rate:>9.0} rows/s  longest commit {longest} us", n + 1);
            (since, longest) = (Instant::now(), 0);
        }
    }
    txn.commit()?;
    println!("{rows} rows in {:.1} s", start.elapsed().as_secs_f64());
    db.close()?;
    println!("{:.1} s with the last checkpoint; {:?}", start.elapsed().as_secs_f64(), table.info(true)?);
    println!("{}", db.status_text());
    Ok(())
}
