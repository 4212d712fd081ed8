//! Timings of runs: `cargo run --release -p pando-run --example run_speed [rows]`.
//!
//! One thread, a simulated disk in memory, so the figures are those of the code alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pando_base::{DictId, Kind, Metrics, RecordRef, Result, RunId, MAX_SEQNO};
use pando_column::{Compression, Segment, SegmentBuilder, Shapes};
use pando_run::merge::{MergeCursor, VersionFilter};
use pando_run::{BlockCache, Lookup, Run, RunContext, RunOptions, RunWriter};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::TreeFile;

const VALUE_BYTES: usize = 80;

fn report(what: &str, rows: u64, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{what:44} {:8.1} ns/record {:8.2} M/s",
        seconds * 1e9 / rows as f64,
        rows as f64 / seconds / 1e6
    );
}

/// A value that compresses about as rows do.
fn value(i: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    while out.len() < VALUE_BYTES {
        out.extend_from_slice(format!("name-{}-{};", i % 100, i / 1000 % 50).as_bytes());
    }
    out.truncate(VALUE_BYTES);
}

fn write(
    context: &RunContext,
    id: u64,
    values: &[u8],
    options: RunOptions,
    pick: impl Fn(u64) -> bool,
) -> Result<Arc<Run>> {
    let mut writer = RunWriter::new(context, RunId(id), options);
    for (i, value) in (0..).zip(values.chunks(VALUE_BYTES)).filter(|(i, _)| pick(*i)) {
        writer.add(RecordRef { key: &(i * 2u64).to_be_bytes(), seqno: id, kind: Kind::Put, value })?;
    }
    Ok(writer.finish()?.expect("there are rows"))
}

fn codecs() {
    let values: Vec<Vec<u8>> = (0..600)
        .map(|i| {
            let mut out = Vec::new();
            value(i, &mut out);
            out
        })
        .collect();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3)] {
        let mut builder = SegmentBuilder::new();
        let fill = |builder: &mut SegmentBuilder| {
            for (i, value) in (0u64..).zip(&values) {
                builder.push(RecordRef { key: &(i * 2).to_be_bytes(), seqno: 7, kind: Kind::Put, value });
            }
            builder.finish(compression)
        };
        let encoded = fill(&mut builder);
        let rounds = 500;
        println!("{compression:?}: {} raw bytes to {}", encoded.raw_bytes, encoded.bytes.len());
        let start = Instant::now();
        (0..rounds).for_each(|_| drop(std::hint::black_box(fill(&mut builder))));
        report("  encode", rounds * 600, start);
        let start = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(Segment::decode(encoded.codec, &encoded.bytes).expect("valid"));
        }
        report("  decode", rounds * 600, start);
    }
}

fn scan(what: &str, run: &Arc<Run>, rows: u64, bypass: bool) -> Result<()> {
    let start = Instant::now();
    let mut cursor = if bypass { run.cursor().bypass_cache() } else { run.cursor() };
    cursor.seek_first()?;
    let (mut seen, mut sum) = (0, 0);
    while cursor.valid() {
        let r = cursor.record();
        sum += r.key.len() + r.value.len();
        seen += 1;
        cursor.next()?;
    }
    assert!(seen == rows && sum > 0);
    report(what, rows, start);
    Ok(())
}

fn gets(what: &str, run: &Run, rows: u64, absent: u64) -> Result<()> {
    let count = 1_000_000u64;
    let start = Instant::now();
    let mut found = 0;
    for i in 0..count {
        let key = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows * 2 + absent).to_be_bytes();
        found += u64::from(run.get(&Lookup::new(&key, MAX_SEQNO))?.is_some());
    }
    assert_eq!(found, count * (1 - absent));
    report(what, count, start);
    Ok(())
}

fn merge(what: &str, runs: &[Arc<Run>], rows: u64, bypass: bool) -> Result<()> {
    let cursor = |run: &Arc<Run>| if bypass { run.cursor().bypass_cache() } else { run.cursor() };
    let start = Instant::now();
    let mut merge = MergeCursor::new(runs.iter().map(cursor).collect(), None, None)?;
    let mut filter = VersionFilter::new(vec![MAX_SEQNO], true);
    let mut seen = 0;
    while merge.valid() {
        seen += u64::from(filter.keep(&merge.record()));
        merge.next()?;
    }
    assert_eq!(seen, rows);
    report(what, rows, start);
    Ok(())
}

fn main() -> Result<()> {
    let rows: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    codecs();

    let vfs: Arc<dyn Vfs> = SimVfs::new(1);
    let file = TreeFile::create(&vfs, Path::new("/main.pando"), DictId(1))?;
    let metrics: Arc<Metrics> = Arc::default();
    let cache = BlockCache::new(4 << 30, metrics.clone());
    let context = RunContext { file, cache, metrics };
    let options = RunOptions::default();

    let mut values = Vec::new();
    let mut one = Vec::new();
    for i in 0..rows {
        value(i, &mut one);
        values.extend_from_slice(&one);
    }
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
        let start = Instant::now();
        let run = write(&context, 1, &values, RunOptions { compression, ..options }, |_| true)?;
        report(&format!("write a run, {compression:?}"), rows, start);
        println!("{:44} {} raw, {} on disk", "", run.meta().raw_bytes, run.meta().disk_bytes);
    }
    let run = write(&context, 2, &values, options, |_| true)?;
    scan("scan, cold, past the cache", &run, rows, true)?;
    scan("scan, cold, into the cache", &run, rows, false)?;
    scan("scan, cached", &run, rows, false)?;
    gets("get, cached", &run, rows, 0)?;
    gets("get, absent key", &run, rows, 1)?;
    let start = Instant::now();
    run.verify(&Shapes::default())?;
    report("verify", rows, start);

    for count in [2, 8] {
        let part = |id: u64| write(&context, 10 * count + id, &values, options, |i| i * 7 / 3 % count == id);
        let runs = (0..count).map(part).collect::<Result<Vec<_>>>()?;
        merge(&format!("merge {count} runs, cold, past the cache"), &runs, rows, true)?;
        merge(&format!("merge {count} runs, cold, into the cache"), &runs, rows, false)?;
        merge(&format!("merge {count} runs, cached"), &runs, rows, false)?;
    }
    Ok(())
}
