//! Merges of several runs.

use super::*;
use crate::merge::{MergeCursor, VersionFilter};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// All keys may begin with the same bytes, and the ends of the range be within, before or behind these.
    #[test]
    fn a_merge_gives_every_record_of_the_range_once_and_in_order(
        model in models(300), owners in vec(0usize..5, 300), options in all_options(), prefix in vec(5u8..7, 0..12),
        lo in proptest::option::of((any::<bool>(), keys())), hi in proptest::option::of((any::<bool>(), keys())),
        bypass in any::<bool>(),
    ) {
        let bed = Bed::new(1 << 20);
        let behind = |key: Vec<u8>| [prefix.clone(), key].concat();
        let model: Model =
            model.into_iter().map(|((key, seqno), value)| ((behind(key), seqno), value)).collect();
        let end = |(is_behind, key)| if is_behind { behind(key) } else { key };
        let (lo, hi) = (lo.map(end), hi.map(end));
        let mut parts: Vec<Model> = vec![Model::new(); 5];
        for (record, owner) in model.iter().zip(owners) {
            parts[owner].insert(record.0.clone(), record.1.clone());
        }
        let parts = parts.iter().filter(|part| !part.is_empty());
        let runs: Vec<_> = parts.zip(1..).map(|(part, id)| bed.write(id, options, part)).collect();
        let cursor = |run: &Arc<Run>| if bypass { run.cursor().bypass_cache() } else { run.cursor() };
        let mut merge = MergeCursor::new(runs.iter().map(cursor).collect(), lo.clone(), hi.clone()).unwrap();
        let inside = |r: &RecordRef<'_>| lo.as_deref().is_none_or(|lo| r.key >= lo) && hi.as_deref().is_none_or(|hi| r.key < hi);
        for expected in records(&model).filter(inside) {
            prop_assert!(merge.valid());
            prop_assert_eq!(merge.record(), expected);
            merge.next().unwrap();
        }
        prop_assert!(!merge.valid());
    }
}

/// A commit that adopted several private runs may have written a key into more than one.
#[test]
fn the_same_version_in_several_runs_comes_newest_first_and_stays_once() {
    let bed = Bed::new(1 << 20);
    let part = |value: &[u8], step: usize| -> Model {
        (0..40).step_by(step).map(|i| ((key(i), Reverse(9)), Some(value.to_vec()))).collect()
    };
    let parts = [part(b"newest", 4), part(b"middle", 2), part(b"oldest", 1)];
    let runs: Vec<_> = parts.iter().zip(1..).map(|(part, id)| bed.write(id, small(100), part)).collect();
    for snapshots in [vec![5], vec![9], vec![12]] {
        let mut merge = MergeCursor::new(runs.iter().map(Run::cursor).collect(), None, None).unwrap();
        let mut filter = VersionFilter::new(snapshots, false);
        let mut kept = Vec::new();
        while merge.valid() {
            if filter.keep(&merge.record()) {
                kept.push((merge.record().key.to_vec(), merge.record().value.to_vec()));
            }
            merge.next().unwrap();
        }
        let expected: Vec<_> = (0..40)
            .map(|i| (key(i), [&b"newest"[..], b"oldest", b"middle", b"oldest"][i as usize % 4].to_vec()))
            .collect();
        assert_eq!(kept, expected);
        assert_eq!(filter.dropped(), 30);
    }
}

#[test]
fn a_clipped_merge_reads_only_what_it_yields() {
    let bed = Bed::new(1 << 20);
    let run = bed.write(1, RunOptions { compression: Compression::None, ..small(4000) }, &plain(50_000, 30));
    run.index().unwrap();
    let before = bed.context.metrics.cache_read_bytes.get();
    let inputs = vec![run.cursor().bypass_cache()];
    let mut merge = MergeCursor::new(inputs, Some(key(20_000)), Some(key(21_000))).unwrap();
    let mut rows = 0;
    while merge.valid() {
        rows += 1;
        merge.next().unwrap();
    }
    assert_eq!(rows, 1000);
    let read = bed.context.metrics.cache_read_bytes.get() - before;
    assert!(read < 1000 * 50 + 2 * 4100, "{read} bytes");
}

#[test]
fn a_merge_of_nothing_is_at_its_end() {
    assert!(!MergeCursor::new(Vec::new(), None, None).unwrap().valid());
}
