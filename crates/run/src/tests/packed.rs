//! A full cache: blocks as they are stored, and which of them are decoded.

use super::*;
use crate::{Found, Lookup};

const KEYS: u32 = 4000;

/// A run by columns of which the cache holds about a tenth, with the cache filled.
fn full(cache_bytes: u64) -> (Bed, Arc<Run>, Model) {
    let bed = Bed::new(cache_bytes);
    let model = plain(KEYS, 100);
    let options = RunOptions { compression: Compression::Zstd(1), segment_raw_bytes: 8000, filter: false };
    let run = bed.write_columns(1, options, 1000, &model);
    (0..KEYS).for_each(|i| drop(look_up(&run, i)));
    (bed, run, model)
}

fn look_up(run: &Run, i: u32) -> Found {
    run.get(&Lookup::new(&key(i), 9)).unwrap().expect("a key of the run")
}

impl Bed {
    fn packed_uses(&self) -> u64 {
        self.context.metrics.cache_packed_uses.get()
    }
}

#[test]
fn rows_of_stored_blocks_are_those_of_decoded_ones() {
    let (bed, run, model) = full(64 << 10);
    let before = bed.packed_uses();
    for (i, record) in (0..KEYS).zip(records(&model)).step_by(7) {
        let found = look_up(&run, i);
        assert_eq!((&found.value[..], found.seqno, found.kind), (record.value, 9, Kind::Put));
        let behind = [&key(i)[..], &[0]].concat();
        assert_eq!(run.get(&Lookup::new(&behind, 9)).unwrap(), None);
        assert_eq!(run.get(&Lookup::new(&key(i), 8)).unwrap(), None);
        assert_eq!(run.seqno_and_kind(&Lookup::new(&key(i), 9)).unwrap(), Some((9, Kind::Put)));
        let count = run.count(Some(&key(i)), Some(&key(i + 100)), usize::MAX).unwrap();
        assert_eq!(count.rows, u64::from((i + 100).min(KEYS) - i));
    }
    assert!(bed.packed_uses() > before);
    let mut cursor = run.cursor();
    cursor.seek(b"").unwrap();
    for record in records(&model) {
        assert_eq!(cursor.record(), record);
        cursor.next().unwrap();
    }
    assert!(bed.context.cache.bytes() <= 64 << 10);
}

#[test]
fn what_fits_stays_decoded() {
    let (bed, run, _) = full(64 << 20);
    (0..KEYS).for_each(|i| drop(look_up(&run, i)));
    assert_eq!(bed.packed_uses(), 0);
}

#[test]
fn a_block_that_is_asked_for_again_and_again_is_decoded_and_one_that_is_not_comes_back_as_stored() {
    let (bed, run, _) = full(64 << 10);
    (0..20).for_each(|_| drop(look_up(&run, 5)));
    let before = bed.packed_uses();
    look_up(&run, 5);
    assert_eq!(bed.packed_uses(), before, "it is decoded");
    // Once a generation is often.
    let misses = || bed.context.metrics.cache_misses.get();
    for i in (1000..1200).step_by(2) {
        look_up(&run, i);
        look_up(&run, 5);
    }
    // Nobody wants it while the whole cache is replaced; then it is answered once more, if it is still there, and is gone.
    (0..KEYS).filter(|i| *i > 500).for_each(|i| drop(look_up(&run, i)));
    look_up(&run, 5);
    let (before, misses_before) = (bed.packed_uses(), misses());
    look_up(&run, 5);
    assert!(bed.packed_uses() > before, "it is stored");
    assert!(misses() <= misses_before + 1);
}

/// A larger limit makes room, and the cache keeps decoded what comes in.
#[test]
fn there_is_room_again_with_a_larger_limit() {
    let (bed, run, _) = full(64 << 10);
    bed.context.cache.set_limit(64 << 20);
    (0..KEYS).for_each(|i| drop(look_up(&run, i)));
    let before = bed.packed_uses();
    (0..KEYS).for_each(|i| drop(look_up(&run, i)));
    assert_eq!(bed.packed_uses(), before);
}

/// Time goes on with a smaller limit, whatever had come in before.
#[test]
fn a_smaller_limit_stops_no_generation() {
    for smaller in 1..16 {
        let (bed, run, _) = full(64 << 10);
        let cache = &bed.context.cache;
        (0..KEYS / 16 * smaller).for_each(|i| drop(look_up(&run, i)));
        cache.set_limit(4 << 10);
        let before = cache.generation();
        (0..KEYS).for_each(|i| drop(look_up(&run, i)));
        assert!(cache.generation() > before + 16, "{before}, {}", cache.generation());
    }
}
