//! Cursors in both directions, and how much they read.

use super::*;

#[derive(Clone, Debug)]
enum Move {
    Seek(Vec<u8>),
    SeekBefore(Vec<u8>),
    First,
    Last,
    Next(usize),
    Prev(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        keys().prop_map(Move::Seek),
        keys().prop_map(Move::SeekBefore),
        Just(Move::First),
        Just(Move::Last),
        (1usize..40).prop_map(Move::Next),
        (1usize..40).prop_map(Move::Prev),
    ];
    vec(one, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_cursor_moves_like_one_over_the_model(
        model in models(150), options in all_options(), moves in moves(), bypass in any::<bool>(),
        cache in prop_oneof![Just(0u64), Just(3000), Just(1 << 20)],
    ) {
        let bed = Bed::new(cache);
        let run = bed.write(1, options, &model);
        let rows: Vec<RecordRef<'_>> = records(&model).collect();
        let mut cursor = run.cursor();
        if bypass {
            cursor = cursor.bypass_cache();
        }
        let mut at: Option<usize> = None;
        for step in moves {
            match step {
                Move::Seek(key) => {
                    cursor.seek(&key).unwrap();
                    at = rows.iter().position(|r| r.key >= &key[..]);
                }
                Move::SeekBefore(key) => {
                    cursor.seek_before(&key).unwrap();
                    at = rows.iter().rposition(|r| r.key < &key[..]);
                }
                Move::First => {
                    cursor.seek_first().unwrap();
                    at = Some(0);
                }
                Move::Last => {
                    cursor.seek_last().unwrap();
                    at = Some(rows.len() - 1);
                }
                Move::Next(count) => for _ in 0..count {
                    let Some(row) = at else { break };
                    cursor.next().unwrap();
                    at = Some(row + 1).filter(|row| *row < rows.len());
                    prop_assert_eq!(cursor.valid().then(|| cursor.record()), at.map(|row| rows[row]));
                },
                Move::Prev(count) => for _ in 0..count {
                    let Some(row) = at else { break };
                    cursor.prev().unwrap();
                    at = row.checked_sub(1);
                    prop_assert_eq!(cursor.valid().then(|| cursor.record()), at.map(|row| rows[row]));
                },
            }
            prop_assert_eq!(cursor.valid().then(|| cursor.record()), at.map(|row| rows[row]));
        }
    }
}

#[test]
fn a_scan_reads_ahead_in_both_directions_and_a_seek_does_not() {
    let model = plain(40_000, 30);
    for forward in [true, false] {
        let bed = Bed::new(64 << 20);
        let run = bed.write_pages(1, small(4000), 10_000, &model);
        let segments = run.index().unwrap().len() as u64;
        let misses = || bed.context.metrics.cache_misses.get();
        let start = misses();
        let mut cursor = run.cursor();
        if forward {
            cursor.seek_first().unwrap()
        } else {
            cursor.seek_last().unwrap()
        };
        assert_eq!(misses() - start, 1);
        let mut rows = 1;
        loop {
            if forward {
                cursor.next().unwrap()
            } else {
                cursor.prev().unwrap()
            };
            if !cursor.valid() {
                break;
            }
            rows += 1;
        }
        assert_eq!(rows, 40_000);
        assert!(misses() - start < 20, "{} reads for {segments} segments", misses() - start);
        assert!(bed.context.metrics.cache_read_bytes.get() <= run.meta().disk_bytes);
        // All of it is in the cache now.
        let before = misses();
        cursor.seek_first().unwrap();
        while cursor.valid() {
            cursor.next().unwrap();
        }
        assert_eq!(misses(), before);
    }
}

#[test]
fn a_cursor_that_bypasses_the_cache_leaves_it_alone_but_uses_it() {
    let bed = Bed::new(64 << 20);
    let run = bed.write(1, small(4000), &plain(10_000, 30));
    let index = run.index().unwrap();
    let bytes = bed.context.cache.bytes();
    let mut cursor = run.cursor().bypass_cache();
    cursor.seek_first().unwrap();
    while cursor.valid() {
        cursor.next().unwrap();
    }
    assert_eq!(bed.context.cache.bytes(), bytes);
    for number in 0..index.len() {
        run.segment(&index, number).unwrap();
    }
    let misses = bed.context.metrics.cache_misses.get();
    cursor.seek_first().unwrap();
    while cursor.valid() {
        cursor.next().unwrap();
    }
    assert_eq!(bed.context.metrics.cache_misses.get(), misses);
}

#[test]
#[should_panic(expected = "on no record")]
fn a_step_from_nowhere_is_a_bug() {
    let bed = Bed::new(0);
    let run = bed.write(1, small(100), &plain(10, 1));
    let mut cursor = run.cursor();
    cursor.seek_last().unwrap();
    cursor.next().unwrap();
    assert!(!cursor.valid());
    cursor.next().unwrap();
}
