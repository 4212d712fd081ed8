//! Lookups in many runs at once.

use pando_base::MAX_SEQNO;

use super::*;
use crate::{Found, Lookup};

/// The newest version of a key up to a snapshot that each of the models has, in order.
fn expected(models: &[Model], key: &[u8], snapshot: Seqno) -> Vec<Found> {
    let found = models.iter().filter_map(|model| {
        records(model).find(|r| r.key == key && r.seqno <= snapshot).map(|r| Found {
            seqno: r.seqno,
            kind: r.kind,
            value: r.value.to_vec(),
        })
    });
    found.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// More of them than are asked together, with and without filters, many out of range, with a cache that has all, some or nothing.
    #[test]
    fn candidates_are_in_order_and_none_that_has_the_key_is_missing(
        model in models(300), owners in vec(0usize..40, 300), filters in vec(any::<bool>(), 40), page_keys in 1usize..8,
        probes in vec((keys(), 0u64..45), 20), cache in prop_oneof![Just(0u64), Just(3000), Just(1 << 20)],
    ) {
        let bed = Bed::new(cache);
        let mut parts = vec![Model::new(); 40];
        for ((version, value), owner) in model.iter().zip(owners) {
            parts[owner].insert(version.clone(), value.clone());
        }
        parts.retain(|part| !part.is_empty());
        let runs: Vec<_> = parts.iter().zip(filters).zip(1..).map(|((part, filter), id)| {
            bed.write_pages(id, RunOptions { filter, ..small(100) }, page_keys, part)
        }).collect();
        let own = model.keys().map(|(key, seqno)| (key.clone(), seqno.0));
        for (key, snapshot) in own.chain(probes) {
            let lookup = Lookup::new(&key, snapshot);
            let when_expected = lookup.expected().screened(runs.iter().map(|run| &**run));
            let when_expected: Vec<_> = when_expected.filter_map(|candidate| candidate.unwrap().get().unwrap()).collect();
            prop_assert_eq!(when_expected, expected(&parts, &key, snapshot));
            let before = bed.context.metrics.filter_probes.get() - bed.context.metrics.filter_negatives.get();
            let candidates: Vec<_> = lookup.screened(runs.iter().map(|run| &**run)).collect::<Result<_, _>>().unwrap();
            let found: Vec<_> = candidates.iter().filter_map(|candidate| candidate.get().unwrap()).collect();
            prop_assert_eq!(found, expected(&parts, &key, snapshot));
            let maybes = bed.context.metrics.filter_probes.get() - bed.context.metrics.filter_negatives.get() - before;
            prop_assert!(maybes <= candidates.len() as u64);
        }
    }
}

/// A key that is there for sure costs no filter where one run is all that is left to ask.
#[test]
fn the_only_run_is_not_asked_whether_it_may_have_what_is_expected() {
    let bed = Bed::new(64 << 20);
    let runs: Vec<_> = (1..3).map(|id| bed.write(id, small(4000), &plain(1000, 30))).collect();
    let wanted = key(77);
    let probes = |runs: &[&Run], lookup: Lookup<'_>| {
        let before = bed.context.metrics.filter_probes.get();
        assert!(lookup.screened(runs.iter().copied()).all(|candidate| candidate
            .unwrap()
            .get()
            .unwrap()
            .is_some()));
        bed.context.metrics.filter_probes.get() - before
    };
    let lookup = Lookup::new(&wanted, MAX_SEQNO);
    assert_eq!(probes(&[&runs[0]], lookup.expected()), 0);
    assert_eq!(probes(&[&runs[0]], lookup), 1);
    assert_eq!(probes(&[&runs[0]], lookup.expected().unexpected()), 1);
    // Filters that are in the cache are asked together. One that is not would be that of the only run left.
    assert_eq!(probes(&[&runs[0], &runs[1]], lookup.expected()), 1);
    assert_eq!(probes(&[&runs[0], &runs[1]], lookup), 2);
    assert_eq!(probes(&[&runs[0], &runs[1]], lookup.expected()), 2);
    // Another that cannot have it does not count.
    let last = bed.write(3, small(4000), &plain(1, 30));
    assert_eq!(probes(&[&runs[0], &last], lookup.expected()), 0);
}

#[test]
fn without_runs_there_are_no_candidates() {
    assert!(Lookup::new(b"k", MAX_SEQNO).screened(std::iter::empty()).next().is_none());
}

/// Whoever finds the key in the newest run does not wait for filters of older ones that are on disk, be they damaged.
#[test]
fn nothing_is_read_of_runs_behind_the_one_that_has_it() {
    let bed = Bed::new(64 << 20);
    let runs: Vec<_> = (1..4).map(|id| bed.write(id, small(4000), &plain(1000, 30))).collect();
    let wanted = key(77);
    let first = || {
        let mut candidates = Lookup::new(&wanted, MAX_SEQNO).screened(runs.iter().map(|run| &**run));
        let before = bed.context.metrics.cache_misses.get();
        assert!(candidates.next().unwrap().unwrap().get().unwrap().is_some());
        bed.context.metrics.cache_misses.get() - before
    };
    assert_eq!(first(), 3, "index, filter and segment of the first");
    assert_eq!(first(), 0);
}
