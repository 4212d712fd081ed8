//! pandodb beside other embedded stores: the same rows, in the same order, one store after the other in each round. What is read is
//! checked. The middle of the rounds is printed, and written as a result for `scripts/bench-pages.py`.

mod stores;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stores::{Opener, Outcome, Row, Seen, STORES};

/// Measures pandodb beside redb, fjall and RocksDB
#[derive(Parser)]
struct Arguments {
    /// An empty directory on the disk that is measured
    dir: PathBuf,
    /// Rows of 100 bytes
    #[arg(long, default_value_t = 2_000_000)]
    rows: usize,
    /// Rounds; the middle of each figure counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these stores
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the result goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What to say of the machine's state in the result
    #[arg(long, default_value = "")]
    conditions: String,
    /// Of the machine in the result (bench/machines.json)
    #[arg(long, default_value = "main")]
    machine: String,
    /// Day of the result
    #[arg(long, default_value = "")]
    date: String,
}

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 84;
const BATCH_ROWS: usize = 1000;
const SCANNED_ROWS: usize = 100;

/// Figures in the order of the table: name, and digits behind the point.
const FIGURES: [(&str, usize); 11] = [
    ("rows loaded a second, random order, 1,000 a commit, not synced", 0),
    ("seconds until all of it is in files", 1),
    ("MB on disk (the rows are ROWS_MB)", 0),
    ("single-row commits a second, synced", 0),
    ("rows a second, 100 a commit, synced", 0),
    ("single-row commits a second, not synced", 0),
    ("random reads a second, all in the store's cache", 0),
    ("the same, a cache of a quarter of the rows", 0),
    ("scans of 100 rows a second, cached", 0),
    ("rows a second, whole scan, cached", 0),
    ("seconds to open", 2),
];

type Figures = BTreeMap<&'static str, f64>;

/// A mix of what compresses and what does not, as rows are.
fn row(id: u64) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(id);
    let mut key = rng.next_u64().to_be_bytes().to_vec();
    key.extend_from_slice(&id.to_be_bytes());
    let mut value = vec![0; VALUE_BYTES];
    rng.fill_bytes(&mut value[..VALUE_BYTES / 2]);
    let text = format!("customer of segment {:02} in region {:02}", id % 37, id % 11);
    let rest = &mut value[VALUE_BYTES / 2..];
    rest.iter_mut().zip(text.bytes().cycle()).for_each(|(byte, of)| *byte = of);
    assert_eq!(key.len(), KEY_BYTES);
    (key, value)
}

fn per_second(count: usize, of: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let begin = Instant::now();
    of()?;
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

fn disk_bytes(dir: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            of if of.is_dir() => disk_bytes(&entry.path())?,
            of => of.blocks() * 512,
        };
    }
    Ok(bytes)
}

fn expect(found: Seen, expected: Seen) -> Outcome<()> {
    if found != expected {
        return Err(format!("read {found:?}, not {expected:?}").into());
    }
    Ok(())
}

fn seen<'a>(rows: impl Iterator<Item = &'a Row>) -> Seen {
    let mut all = Seen::default();
    rows.for_each(|(_, value)| all.add(value));
    all
}

/// `rows` are in the order of keys.
fn measure(open: Opener, dir: &Path, rows: &[Row], seed: u64) -> Outcome<Figures> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut figures, raw) = (Figures::new(), (rows.len() * (KEY_BYTES + VALUE_BYTES)) as u64);
    let plenty = raw * 2;
    let mut note = |at: usize, value: f64| _ = figures.insert(FIGURES[at].0, value);

    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.shuffle(&mut rng);
    let mut store = open(dir, plenty, false)?;
    let begin = Instant::now();
    note(
        0,
        per_second(rows.len(), || {
            for part in order.chunks(BATCH_ROWS) {
                let batch: Vec<Row> = part.iter().map(|at| rows[*at].clone()).collect();
                store.put(&batch, false)?;
            }
            Ok(())
        })?,
    );
    store.close()?;
    note(1, begin.elapsed().as_secs_f64());
    note(2, disk_bytes(dir)? as f64 / 1e6);

    // Reads: the whole scan brings all into the cache.
    let begin = Instant::now();
    let mut store = open(dir, plenty, false)?;
    note(10, begin.elapsed().as_secs_f64());
    expect(store.scan(&[], usize::MAX)?, seen(rows.iter()))?;
    note(9, per_second(rows.len(), || expect(store.scan(&[], usize::MAX)?, seen(rows.iter())))?);
    let picked: Vec<usize> = (0..rows.len() / 10).map(|_| rng.random_range(0..rows.len())).collect();
    let keys: Vec<Vec<u8>> = picked.iter().map(|at| rows[*at].0.clone()).collect();
    let expected = seen(picked.iter().map(|at| &rows[*at]));
    expect(store.get_all(&keys)?, expected)?;
    note(6, per_second(keys.len(), || expect(store.get_all(&keys)?, expected))?);
    let starts: Vec<usize> = picked.iter().take(rows.len() / 200).copied().collect();
    note(
        8,
        per_second(starts.len(), || {
            for at in &starts {
                let part = &rows[*at..(at + SCANNED_ROWS).min(rows.len())];
                expect(store.scan(&rows[*at].0, SCANNED_ROWS)?, seen(part.iter()))?;
            }
            Ok(())
        })?,
    );
    store.close()?;
    let mut store = open(dir, raw / 4, false)?;
    expect(store.get_all(&keys)?, expected)?;
    note(7, per_second(keys.len(), || expect(store.get_all(&keys)?, expected))?);

    // Changes of rows that are there; the last value of a row is that of its id plus one.
    let changed = |at: usize, by: u64| (rows[at].0.clone(), row(by).1);
    let single = (rows.len() / 20).min(100_000);
    note(
        5,
        per_second(single, || {
            (0..single).try_for_each(|n| store.put(&[changed(picked[n], n as u64)], false))
        })?,
    );
    store.close()?;
    let mut store = open(dir, plenty, true)?;
    let synced = (rows.len() / 1000).min(1000);
    note(
        3,
        per_second(synced, || {
            (0..synced).try_for_each(|n| store.put(&[changed(picked[n], n as u64 + 1)], true))
        })?,
    );
    let batches = synced / 4;
    note(
        4,
        per_second(batches * 100, || {
            (0..batches).try_for_each(|n| {
                let batch = (0..100).map(|m| changed(picked[m], (n + m) as u64 + 2));
                store.put(&batch.collect::<Vec<_>>(), true)
            })
        })?,
    );
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    (0..single).for_each(|n| _ = last.insert(picked[n], n as u64));
    (0..synced).for_each(|n| _ = last.insert(picked[n], n as u64 + 1));
    (0..batches).for_each(|n| (0..100).for_each(|m| _ = last.insert(picked[m], (n + m) as u64 + 2)));
    let keys: Vec<Vec<u8>> = last.keys().map(|at| rows[*at].0.clone()).collect();
    let values: Vec<Row> = last.iter().map(|(at, by)| changed(*at, *by)).collect();
    expect(store.get_all(&keys)?, seen(values.iter()))?;
    store.close()?;
    Ok(figures)
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let mut rows: Vec<Row> = (0..arguments.rows as u64).map(row).collect();
    rows.sort();
    let is_wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let stores: Vec<_> = STORES.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); stores.len()];
    for round in 0..arguments.rounds {
        for ((name, open), figures) in stores.iter().zip(&mut all) {
            let dir = arguments.dir.join(name);
            std::fs::create_dir_all(&dir)?;
            let begin = Instant::now();
            figures.push(measure(*open, &dir, &rows, round as u64)?);
            eprintln!("round {} {name}: {:.0} s", round + 1, begin.elapsed().as_secs_f64());
            std::fs::remove_dir_all(&dir)?;
        }
    }
    let middle = |figures: &[Figures], name: &str| {
        let mut values: Vec<f64> = figures.iter().filter_map(|figures| figures.get(name).copied()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let raw_mb = (rows.len() * (KEY_BYTES + VALUE_BYTES)) / 1_000_000;
    let mut table = Vec::new();
    for (name, digits) in FIGURES {
        let label = name.replace("ROWS_MB", &raw_mb.to_string());
        let values: Vec<String> = all.iter().map(|figures| grouped(middle(figures, name), digits)).collect();
        println!("{label:<64} {}", values.iter().map(|value| format!("{value:>14}")).collect::<String>());
        table.push([vec![label], values].concat());
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, result_of(&arguments, &stores, table)?)?;
    }
    Ok(())
}

/// With a comma between thousands.
fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn result_of(arguments: &Arguments, stores: &[(&str, Opener)], rows: Vec<Vec<String>>) -> Outcome<String> {
    let column = |name: &str| serde_json::json!({"name": name, "align": "right"});
    let mut columns = vec![serde_json::json!({"name": "", "align": "left"})];
    columns.extend(stores.iter().map(|(name, _)| column(name)));
    let result = serde_json::json!({
        "format": "pando-results 1",
        "title": "The library beside other embedded stores",
        "date": arguments.date,
        "commit": null,
        "machine": arguments.machine,
        "command": format!("scripts/bench-library.sh --rows {} --rounds {}", arguments.rows, arguments.rounds),
        "conditions": arguments.conditions,
        "columns": columns,
        "rows": rows,
    });
    Ok(serde_json::to_string_pretty(&result)? + "\n")
}
