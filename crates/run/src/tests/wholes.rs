//! Writing, lookups, estimates, opening again.

use pando_base::MAX_SEQNO;

use super::*;
use crate::{Estimate, Found, Lookup, RunMeta};

fn expected(model: &Model, key: &[u8], snapshot: Seqno) -> Option<Found> {
    records(model).find(|r| r.key == key && r.seqno <= snapshot).map(|r| Found {
        seqno: r.seqno,
        kind: r.kind,
        value: r.value.to_vec(),
    })
}

fn check_lookups(run: &Run, model: &Model, probes: &[(Vec<u8>, Seqno)]) {
    let own =
        model.keys().flat_map(|(key, seqno)| [seqno.0 - 1, seqno.0, MAX_SEQNO].map(|s| (key.clone(), s)));
    for (key, snapshot) in own.chain(probes.iter().cloned()) {
        let found = run.get(&Lookup::new(&key, snapshot)).unwrap();
        assert_eq!(found, expected(model, &key, snapshot), "key {key:?} at {snapshot}");
        let newest = expected(model, &key, MAX_SEQNO).map(|f| (f.seqno, f.kind));
        assert_eq!(run.seqno_and_kind(&Lookup::new(&key, MAX_SEQNO)).unwrap(), newest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn lookups_agree_with_the_model_before_and_after_opening_again(
        model in models(150), options in all_options(), page_keys in 1usize..60,
        probes in vec((keys(), 0u64..45), 20), cache in prop_oneof![Just(0u64), Just(3000), Just(1 << 20)],
    ) {
        let columns = Bed::new(cache).write_columns(1, options, page_keys, &model);
        check_lookups(&columns, &model, &probes);
        columns.verify(&Shapes::default()).unwrap();
        let bed = Bed::new(cache);
        let run = bed.write_pages(1, options, page_keys, &model);
        check_lookups(&run, &model, &probes);
        run.verify(&Shapes::default()).unwrap();
        let meta = run.meta().clone();
        prop_assert_eq!(meta.rows as usize, model.len());
        prop_assert_eq!(meta.tombstones as usize, model.values().filter(|v| v.is_none()).count());
        prop_assert_eq!(meta.raw_bytes as usize, records(&model).map(|r| r.key.len() + r.value.len() + 16).sum::<usize>());
        prop_assert_eq!(meta.disk_bytes, bed.context.file.used_bytes());
        prop_assert_eq!(Some(&meta.min_key[..]), records(&model).next().map(|r| r.key));
        prop_assert_eq!(Some(&meta.max_key[..]), records(&model).next_back().map(|r| r.key));
        prop_assert_eq!(Some(meta.min_seqno), records(&model).map(|r| r.seqno).min());
        prop_assert_eq!(Some(meta.max_seqno), records(&model).map(|r| r.seqno).max());

        let mut bytes = Vec::new();
        meta.encode(&mut bytes);
        let vfs: Arc<dyn Vfs> = bed.sim.clone();
        let (file, _) = TreeFile::open(&vfs, Path::new(PATH), DictId(3)).unwrap();
        let context = RunContext { file, ..bed.context.clone() };
        let again = Run::open(&context, RunMeta::decode(&mut &bytes[..]).unwrap()).unwrap();
        context.file.finish_open();
        prop_assert_eq!(again.meta(), &meta);
        check_lookups(&again, &model, &probes);
        again.verify(&Shapes::default()).unwrap();
    }

    #[test]
    fn estimates_are_within_two_segments_of_the_truth(
        model in models(200), options in all_options(), lo in proptest::option::of(keys()), hi in proptest::option::of(keys()),
    ) {
        let bed = Bed::new(1 << 20);
        let run = bed.write(1, options, &model);
        let inside = |r: &RecordRef<'_>| lo.as_deref().is_none_or(|lo| r.key >= lo) && hi.as_deref().is_none_or(|hi| r.key < hi);
        let truth = records(&model).filter(inside).count() as u64;
        let index = run.index().unwrap();
        let largest = (0..index.len()).map(|i| index.of_segment(i).rows).max().unwrap();
        let estimate = run.estimate(lo.as_deref(), hi.as_deref()).unwrap();
        prop_assert!(estimate.rows.abs_diff(truth) <= 2 * largest, "{} for {}", estimate.rows, truth);
        prop_assert!(estimate.rows <= run.meta().rows && estimate.bytes <= run.meta().raw_bytes);
        prop_assert!(truth == 0 || estimate.rows > 0);
        let counted = |segments_max| run.count(lo.as_deref(), hi.as_deref(), segments_max).unwrap();
        prop_assert_eq!(counted(usize::MAX).rows, truth);
        prop_assert!(counted(0) == estimate && counted(3).rows.abs_diff(truth) <= 2 * largest);

        let splits = run.split_keys(lo.as_deref(), hi.as_deref(), 300).unwrap();
        prop_assert!(splits.is_sorted_by(|a, b| a < b));
        for key in &splits {
            prop_assert!(lo.as_ref().is_none_or(|lo| key > lo) && hi.as_ref().is_none_or(|hi| key < hi));
        }
    }
}

#[test]
fn the_estimate_of_everything_is_exact_and_of_nothing_is_nothing() {
    let bed = Bed::new(1 << 20);
    let run = bed.write(1, small(500), &plain(1000, 20));
    let all = Estimate { rows: 1000, bytes: 1000 * 40, tombstones: 0 };
    assert_eq!(run.estimate(None, None).unwrap(), all);
    assert_eq!(run.estimate(Some(b""), Some(&[0xff])).unwrap(), all);
    let nothing = Estimate::default();
    assert_eq!(run.estimate(Some(&[0xff]), None).unwrap(), nothing);
    assert_eq!(run.estimate(None, Some(&key(0))).unwrap(), nothing);
    assert_eq!(run.estimate(Some(&key(5)), Some(&key(5))).unwrap(), nothing);
    assert_eq!(run.estimate(Some(&key(5)), Some(&key(2))).unwrap(), nothing);
    let half = run.estimate(Some(&key(250)), Some(&key(750))).unwrap();
    assert!((480..=520).contains(&half.rows), "{half:?}");
    let parts = run.split_keys(None, None, 10_000).unwrap();
    assert_eq!(parts.len(), 3, "{parts:?}");
}

#[test]
fn filters_answer_for_absent_keys_without_reading_segments() {
    let bed = Bed::new(10 << 20);
    let run = bed.write_pages(1, small(1000), 500, &plain(5000, 20));
    let absent = |i: u32| (i * 2 + 1).to_be_bytes();
    run.get(&Lookup::new(&absent(0), MAX_SEQNO)).unwrap();
    for i in 0..4999 {
        assert_eq!(run.seqno_and_kind(&Lookup::new(&absent(i), MAX_SEQNO)).unwrap(), None);
    }
    let metrics = &bed.context.metrics;
    assert!(metrics.filter_negatives.get() > 4900, "{}", metrics.filter_negatives.get());
    assert!(metrics.cache_misses.get() < 100, "{}", metrics.cache_misses.get());
}

#[test]
fn versions_of_one_key_may_straddle_many_segments_and_filter_pages() {
    let bed = Bed::new(1 << 20);
    let mut model = plain(20, 10);
    for seqno in 1..500 {
        model.insert((key(7), Reverse(seqno)), Some(vec![1; 10]));
    }
    let run = bed.write_pages(1, small(200), 3, &model);
    assert!(run.index().unwrap().len() > 20);
    run.verify(&Shapes::default()).unwrap();
    for snapshot in 1..500 {
        let found = run.get(&Lookup::new(&key(7), snapshot)).unwrap().unwrap();
        assert_eq!(found.seqno, snapshot);
    }
    assert_eq!(run.get(&Lookup::new(&key(7), 0)).unwrap(), None);
    check_lookups(&run, &plain(6, 10), &[]);
}

#[test]
fn a_writer_without_records_gives_no_run_and_takes_no_space() {
    let bed = Bed::new(0);
    let writer = RunWriter::new(&bed.context, RunId(1), RunOptions::default());
    assert!(writer.finish().unwrap().is_none());
    assert_eq!(bed.context.file.used_bytes(), 0);
}

#[test]
fn a_dropped_writer_and_a_dropped_run_leave_neither_space_nor_cached_blocks() {
    let bed = Bed::new(10 << 20);
    let model = plain(20_000, 200);
    let mut writer = RunWriter::new(&bed.context, RunId(1), small(4000));
    records(&model).for_each(|r| writer.add(r).unwrap());
    assert!(bed.context.file.used_bytes() > 0);
    drop(writer);
    assert_eq!(bed.context.file.used_bytes(), 0);

    let run = bed.write(2, small(4000), &model);
    for i in (0..20_000).step_by(100) {
        assert!(run.get(&Lookup::new(&key(i), 9)).unwrap().is_some());
    }
    assert!(bed.context.cache.bytes() > 100_000);
    let cursor = run.cursor();
    drop(run);
    assert!(bed.context.file.used_bytes() > 0, "a cursor keeps the run");
    drop(cursor);
    assert_eq!(bed.context.file.used_bytes(), 0);
    assert_eq!(bed.context.cache.bytes(), 0);
    assert_eq!(bed.context.metrics.cache_bytes.get(), 0);
}

/// 304 bytes a row with its key and overhead; of so many different values.
fn wide(count: u32, different: u32) -> Model {
    let value =
        |i: u32| (0..284u32).map(|j| (i.wrapping_mul(2_654_435_761) ^ j.wrapping_mul(j)) as u8).collect();
    (0..count).map(|i| ((key(i), Reverse(9)), Some(value(i % different)))).collect()
}

#[test]
fn column_wise_segments_of_wide_rows_are_longer_but_not_without_end() {
    let bed = Bed::new(0);
    let segments = |run: &Arc<Run>| run.index().unwrap().len();
    let model = wide(5000, 8);
    let rows = bed.write(1, small(64 << 10), &model);
    let columns = bed.write_columns(2, small(64 << 10), 50, &model);
    assert_eq!((segments(&rows), segments(&columns)), (5000usize.div_ceil(215), 5000usize.div_ceil(1024)));
    let few = bed.write_columns(3, small(16 << 10), 50, &model);
    // Eight times the size, but for the first ones.
    let least = 5000usize.div_ceil(431);
    assert!((least..least + 3).contains(&segments(&few)), "{}", segments(&few));
    few.verify(&Shapes::default()).unwrap();
}

#[test]
fn segments_that_stay_large_as_stored_have_fewer_rows() {
    let bed = Bed::new(0);
    let mut noise = 1u64;
    let mut byte = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 40) as u8
    };
    // A third of each value is noise; the others are ones that come again after 300 rows, in segments of 91,200 raw bytes.
    let model: Model = wide(5000, 300)
        .into_iter()
        .map(|(key, value)| (key, value.map(|value| [&value[..190], &[0; 94].map(|_| byte())].concat())))
        .collect();
    let run = bed.write_columns(1, small(64 << 10), 50, &model);
    let index = run.index().unwrap();
    let sizes: Vec<u64> = (0..index.len()).map(|number| index.entry(number).place.len).collect();
    assert!(sizes.iter().all(|size| *size <= 40 << 10), "{sizes:?}");
    run.verify(&Shapes::default()).unwrap();
}

#[test]
fn large_runs_lie_in_a_few_extents_written_with_large_writes() {
    let bed = Bed::new(0);
    let model = plain(60_000, 250);
    let before = bed.sim.io_count();
    let run =
        bed.write_pages(1, RunOptions { compression: Compression::None, ..small(64 << 10) }, 1000, &model);
    let writes = bed.sim.io_count() - before;
    assert!((3..=6).contains(&run.meta().extents.len()), "{:?}", run.meta().extents);
    assert!(writes < 40, "{writes} requests for {} bytes", run.meta().disk_bytes);
    assert!(run.meta().disk_bytes < run.meta().raw_bytes);
    run.verify(&Shapes::default()).unwrap();
}

#[test]
fn a_huge_value_among_small_ones_is_read_back() {
    let bed = Bed::new(1 << 20);
    let mut model = plain(100, 50);
    let huge: Vec<u8> = (0..100u32 << 20).map(|i| (i >> 8) as u8).collect();
    model.insert((key(50), Reverse(10)), Some(huge));
    for compression in [Compression::None, Compression::Lz4] {
        let run = bed.write(1, RunOptions { compression, ..small(1000) }, &model);
        let found = run.get(&Lookup::new(&key(50), 10)).unwrap().unwrap();
        assert!(Some(found.value) == model[&(key(50), Reverse(10))]);
        assert!(bed.context.cache.bytes() < 1 << 20);
        let near = run.get(&Lookup::new(&key(51), 10)).unwrap().unwrap();
        assert_eq!(near.value.len(), 50);
    }
}

#[test]
fn threads_that_share_a_small_cache_all_read_the_truth() {
    let bed = Bed::new(40_000);
    let model = plain(3000, 30);
    let run = bed.write(1, small(1000), &model);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (run, model) = (&run, &model);
            scope.spawn(move || {
                for i in 0..4000 {
                    let at = key((i * 17 + thread * 700) % 3000);
                    let found = run.get(&Lookup::new(&at, 9)).unwrap().unwrap();
                    assert_eq!(Some(&found.value), model[&(at, Reverse(9))].as_ref());
                }
            });
        }
    });
    assert!(bed.context.cache.bytes() <= 40_000);
}
