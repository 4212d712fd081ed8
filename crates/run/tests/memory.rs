//! The limit of the cache is one of the process's memory: what blocks weigh is what was allocated for them.
//!
//! One test alone in this program, as it counts all that the program allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use pando_base::{DictId, Kind, Metrics, RecordRef, RunId, MAX_SEQNO};
use pando_column::Compression;
use pando_memory::{footprint, Allocator};
use pando_run::{BlockCache, Lookup, Run, RunContext, RunOptions, RunWriter};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::TreeFile;

/// Counts what is allocated and not freed.
struct Counting;

static HELD: AtomicI64 = AtomicI64::new(0);

// SAFETY: all is left to another allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(footprint(layout.size()) as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises us.
        unsafe { Allocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        HELD.fetch_sub(footprint(layout.size()) as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises us.
        unsafe { Allocator.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A run of rows whose values have `value_bytes` bytes, and repeat as values of rows do.
fn write(context: &RunContext, id: u64, rows: u64, value_bytes: usize, compression: Compression) -> Arc<Run> {
    let options = RunOptions { compression, ..RunOptions::default() };
    let mut writer = RunWriter::new(context, RunId(id), options);
    for row in 0..rows {
        let name = format!("name-{}-{};", row.wrapping_mul(0x9e37_79b9_7f4a_7c15), row % 100);
        let value = &name.repeat(value_bytes / name.len() + 1).into_bytes()[..value_bytes];
        // Some hundred seqnos, so that segments have them for each row.
        let record = RecordRef { key: &row.to_be_bytes(), seqno: 1 + row % 300, kind: Kind::Put, value };
        writer.add(record).expect("a disk in memory");
    }
    writer.finish().expect("a disk in memory").expect("there are rows")
}

#[test]
fn blocks_in_the_cache_weigh_what_is_allocated_for_them() {
    let vfs: Arc<dyn Vfs> = SimVfs::new(1);
    let file = TreeFile::create(&vfs, Path::new("/main.pando"), DictId(1)).unwrap();
    // Rows of an index, of a table, and few and long ones.
    for (id, rows, value_bytes) in [(1, 400_000, 0), (2, 60_000, 200), (3, 300, 20_000)] {
        for compression in [Compression::Lz4, Compression::Zstd(3)] {
            let metrics = Arc::new(Metrics::default());
            let cache = BlockCache::new(8 << 20, metrics.clone());
            let context = RunContext { file: file.clone(), cache: cache.clone(), metrics };
            let run = write(&context, id, rows, value_bytes, compression);
            let get = |row: u64| {
                let key = row.to_be_bytes();
                assert!(run.get(&Lookup::new(&key, MAX_SEQNO)).unwrap().is_some());
            };
            get(0);
            let (held, weight) = (HELD.load(Ordering::Relaxed), cache.bytes() as i64);
            (0..20_000u64).for_each(|i| get(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows));
            let (held, weight) = (HELD.load(Ordering::Relaxed) - held, cache.bytes() as i64 - weight);
            assert!(weight > 4 << 20, "{weight} bytes in the cache");
            let permille = (weight - held) * 1000 / held;
            println!(
                "{rows} rows of {value_bytes} bytes, {compression:?}: {weight} weighed, {held} allocated"
            );
            assert!((-20..=20).contains(&permille), "{weight} bytes weighed, {held} allocated");
        }
    }
}
