//! What readers ask for is counted for their thread.

use pando_base::{Accesses, MAX_SEQNO};

use super::*;
use crate::Lookup;

/// What `work` asks for.
fn of(work: impl FnOnce()) -> Accesses {
    let before = Accesses::of_thread();
    work();
    Accesses::of_thread() - before
}

#[test]
fn a_lookup_counts_index_filter_and_segment_and_reads_each_once() {
    let bed = Bed::new(64 << 20);
    let run = bed.write(1, small(4000), &plain(10_000, 30));
    let lookup = || of(|| assert!(run.get(&Lookup::new(&key(77), MAX_SEQNO)).unwrap().is_some()));
    let first = lookup();
    // The index for the places of the filter's pages, and again for the segment.
    assert_eq!((first.blocks, first.reads, first.blocks_ahead), (4, 3, 0));
    assert!(first.read_time > 0);
    assert_eq!(bed.context.metrics.cache_read_time.get(), first.read_time);
    assert_eq!(lookup(), Accesses { blocks: 3, ..Accesses::default() });
    let absent = [key(77), vec![0]].concat();
    let in_vain = of(|| assert!(run.get(&Lookup::new(&absent, MAX_SEQNO)).unwrap().is_none()));
    assert_eq!(in_vain, Accesses { blocks: 1, ..Accesses::default() }, "the filter says so");
}

#[test]
fn a_scan_counts_each_segment_and_tells_what_was_read_ahead() {
    let bed = Bed::new(64 << 20);
    let run = bed.write_pages(1, small(4000), 100_000, &plain(40_000, 30));
    let segments = run.index().unwrap().len() as u64;
    let scan = || {
        of(|| {
            let mut cursor = run.cursor();
            cursor.seek_first().unwrap();
            while cursor.valid() {
                cursor.next().unwrap();
            }
        })
    };
    let first = scan();
    assert_eq!(first.blocks, segments + 1);
    assert_eq!(first.reads + first.blocks_ahead, segments);
    assert!(first.reads < 20, "{first:?}");
    assert_eq!(scan(), Accesses { blocks: first.blocks, ..Accesses::default() });
}

#[test]
fn other_threads_do_not_count() {
    let bed = Bed::new(64 << 20);
    let run = bed.write(1, small(4000), &plain(10_000, 30));
    let here = of(|| {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| of(|| assert!(run.index().is_ok()))).join().unwrap();
            assert_eq!((there.blocks, there.reads), (1, 1));
        });
    });
    assert_eq!(here, Accesses::default());
}
