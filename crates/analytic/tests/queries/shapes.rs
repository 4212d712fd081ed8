//! Set operations, ROLLUP, windows and rarer aggregates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pando_analytic::{
    Block, Bound, Comparison, Expr, Frame, From, Function, Kind, Other, Outcome, Query, SetOperation, Slot,
    Source, Texts, Value, Window, WindowFunction,
};
use pando_query::{Limits, Why};
use pandodb::Table;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::*;

#[test]
fn rows_of_several_queries_are_taken_together_from_the_left_to_the_right() {
    use SetOperation::{Except, Intersect, Union};
    let world = seeded(10);
    let of = |table: u32, slot: Slot| Block {
        from: vec![from(&world, table)],
        outputs: vec![(slot, number(table)), (slot + 1, text(table))],
        ..Block::default()
    };
    let rows = |table: usize| -> Vec<String> {
        world.rows[table].iter().map(|row| format!("{}|{}", shown(row.number), row.text)).collect()
    };
    for (first, second) in [
        ((Union, false), (Except, true)),
        ((Except, false), (Union, true)),
        ((Intersect, true), (Union, false)),
        ((Union, true), (Intersect, false)),
        ((Except, true), (Except, false)),
        ((Intersect, false), (Except, false)),
    ] {
        let mut block = of(0, 2000);
        let other = |(operation, is_distinct), block| Other { operation, is_distinct, block };
        block.others = vec![other(first, of(1, 2010)), other(second, of(2, 2020))];
        let mut model = rows(0);
        for ((operation, is_distinct), of_other) in [(first, rows(1)), (second, rows(2))] {
            match operation {
                Union => model.extend(of_other),
                _ => {
                    let mut left = of_other.clone();
                    model.retain(|row| {
                        let is_there = match left.iter().position(|other| other == row) {
                            Some(at) if !is_distinct => {
                                left.swap_remove(at);
                                true
                            }
                            found => found.is_some(),
                        };
                        is_there == (operation == Intersect)
                    });
                }
            }
            if is_distinct {
                model.sort();
                model.dedup();
            }
        }
        assert_eq!(sorted(ask(&world, &block)), sorted(model), "{first:?} {second:?}");
    }
    // As a source, and whether there are rows at all.
    let mut block = of(0, 2000);
    block.others = vec![Other { operation: Except, is_distinct: true, block: of(0, 2010) }];
    let exists = Expr::Exists(Box::new(block.clone()));
    let source = From { source: Source::Query(Box::new(block)), is_outer: false, on: None };
    let count = vec![(2030, aggregate(Function::Rows, Kind::Signed, None))];
    let of_source =
        Block { from: vec![source], is_grouped: true, outputs: count.clone(), ..Block::default() };
    assert_eq!(ask(&world, &of_source), ["0"]);
    let with_condition = Block {
        from: vec![from(&world, 2)],
        filter: Some(exists),
        is_grouped: true,
        outputs: count,
        ..Block::default()
    };
    assert_eq!(ask(&world, &with_condition), ["0"]);
}

#[test]
fn columns_that_the_groups_determine_are_those_of_their_rows() {
    let world = seeded(12);
    // Groups by a table's key, of which the other side has one row or none, or several.
    let block = Block {
        from: vec![from(&world, 0), outer(&world, 1, equal(number(0), number(1)))],
        groups: vec![id(0)],
        is_grouped: true,
        determined: vec![0, 1, 2],
        having: Some(compare(Comparison::NotEqual, number(0), constant(7))),
        outputs: outputs(vec![
            id(0),
            number(0),
            text(0),
            aggregate(Function::Count, Kind::Signed, Some(id(1))),
        ]),
        order: vec![(text(0), true), (id(0), false)],
        ..Block::default()
    };
    let mut rows: Vec<&Row> =
        world.rows[0].iter().filter(|row| row.number.is_some_and(|number| number != 7)).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.text), row.id));
    let line = |row: &&Row| {
        let partners = world.rows[1].iter().filter(|other| other.number == row.number).count();
        format!("{}|{}|{}|{partners}", row.id, shown(row.number), row.text)
    };
    assert_eq!(ask(&world, &block), rows.iter().map(line).collect::<Vec<_>>());
    // Nobody says so: there is no such column.
    let other = Block { determined: Vec::new(), ..block };
    assert!(Query::new(other, Texts::default()).why_not().is_some());
}

#[test]
fn rollup_adds_groups_of_groups_behind_them() {
    let world = seeded(11);
    let block = Block {
        from: vec![from(&world, 0)],
        groups: vec![text(0), number(0)],
        is_grouped: true,
        rollup: Some(vec![true, false]),
        outputs: outputs(vec![
            text(0),
            number(0),
            aggregate(Function::Rows, Kind::Signed, None),
            aggregate(Function::CountDistinct, Kind::Signed, Some(number(0))),
            aggregate(Function::Max, Kind::Unsigned, Some(id(0))),
        ]),
        ..Block::default()
    };
    let mut groups: BTreeMap<(std::cmp::Reverse<&str>, Option<i16>), Vec<&Row>> = BTreeMap::new();
    world.rows[0]
        .iter()
        .for_each(|row| groups.entry((std::cmp::Reverse(row.text), row.number)).or_default().push(row));
    let line = |text: Option<&str>, number: Option<i16>, rows: &[&Row]| {
        let mut different: Vec<_> = rows.iter().filter_map(|row| row.number).collect();
        different.sort_unstable();
        different.dedup();
        let most = rows.iter().map(|row| row.id).max();
        format!("{}|{}|{}|{}|{}", shown(text), shown(number), rows.len(), different.len(), shown(most))
    };
    let (mut expected, mut of_text) = (Vec::new(), Vec::new());
    let mut iter = groups.iter().peekable();
    while let Some(((text, number), rows)) = iter.next() {
        expected.push(line(Some(text.0), *number, rows));
        of_text.extend_from_slice(rows);
        if iter.peek().is_none_or(|((next, _), _)| next != text) {
            expected.push(line(Some(text.0), None, &of_text));
            of_text.clear();
        }
    }
    expected.push(line(None, None, &world.rows[0].iter().collect::<Vec<_>>()));
    assert_eq!(ask(&world, &block), expected);
    let none = Block { filter: Some(compare(Comparison::Less, id(0), constant(0))), ..block.clone() };
    assert_eq!(ask(&world, &none), Vec::<String>::new());
    // The sum of DOUBLEs would be one of sums.
    let real = Expr::Convert(Kind::Real, Box::new(number(0)));
    let block = Block { outputs: outputs(vec![aggregate(Function::Mean, Kind::Real, Some(real))]), ..block };
    assert!(matches!(outcome(&world, &block, LIMITS), Outcome::GivenBack(Why::Unsupported)));
}

#[test]
fn windows_tell_of_the_rows_of_their_frames() {
    let world = seeded(12);
    let bounds =
        [Bound::Unbounded, Bound::Preceding(2), Bound::Current, Bound::Following(1), Bound::Unbounded];
    for is_range in [false, true] {
        for (begin, end) in [(0, 4), (0, 2), (1, 1), (1, 3), (2, 4), (3, 3), (2, 2)] {
            let frame = Frame { is_range, begin: bounds[begin], end: bounds[end] };
            // Of a range: by a number with peers; of rows: by what has none.
            let by = if is_range { number(0) } else { id(0) };
            let window = |function, kind, of| {
                Expr::Window(Box::new(Window {
                    function,
                    kind,
                    number: 2,
                    of,
                    partition: vec![text(0)],
                    order: vec![(by.clone(), false)],
                    frame,
                }))
            };
            let block = Block {
                from: vec![from(&world, 0)],
                filter: Some(Expr::Not(Box::new(Expr::IsNull(Box::new(number(0)))))),
                outputs: outputs(vec![
                    id(0),
                    window(WindowFunction::Sum, Kind::Decimal(0), Some(id(0))),
                    window(WindowFunction::Count, Kind::Signed, Some(number(0))),
                    window(WindowFunction::Min, Kind::Unsigned, Some(id(0))),
                    window(WindowFunction::Max, Kind::Signed, Some(number(0))),
                    window(WindowFunction::Rank, Kind::Signed, None),
                ]),
                ..Block::default()
            };
            let rows: Vec<&Row> = world.rows[0].iter().filter(|row| row.number.is_some()).collect();
            let place = |row: &Row| if is_range { i64::from(row.number.unwrap()) } else { i64::from(row.id) };
            let expected = rows.iter().map(|row| {
                let mut partition: Vec<&Row> =
                    rows.iter().filter(|other| other.text == row.text).copied().collect();
                partition.sort_by_key(|row| (place(row), row.id));
                let at = partition.iter().position(|other| other.id == row.id).unwrap() as i64;
                let is_in = |(number, other): (usize, &&Row)| {
                    let far = if is_range { place(other) - place(row) } else { number as i64 - at };
                    let least = [i64::MIN, -2, 0, 1, i64::MIN][begin];
                    let most = [i64::MAX, -2, 0, 1, i64::MAX][end];
                    (least..=most).contains(&far)
                };
                let frame: Vec<&Row> = partition
                    .iter()
                    .enumerate()
                    .filter(|(number, other)| is_in((*number, other)))
                    .map(|(_, row)| *row)
                    .collect();
                let sum = (!frame.is_empty()).then(|| frame.iter().map(|row| i64::from(row.id)).sum::<i64>());
                let least = frame.iter().map(|row| row.id).min();
                let most = frame.iter().filter_map(|row| row.number).max();
                let rank = partition.iter().filter(|other| place(other) < place(row)).count() + 1;
                format!("{}|{}|{}|{}|{}|{rank}", row.id, shown(sum), frame.len(), shown(least), shown(most))
            });
            assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()), "{frame:?}");
        }
    }
}

#[test]
fn windows_that_depend_on_the_order_of_peers_are_given_back() {
    let world = seeded(13);
    let frame = Frame { is_range: true, begin: Bound::Unbounded, end: Bound::Current };
    let block = |function, by: Expr, frame| {
        let kind = Kind::Unsigned;
        let order = vec![(by, true)];
        let window =
            Window { function, kind, number: 1, of: Some(id(0)), partition: Vec::new(), order, frame };
        Block {
            from: vec![from(&world, 0)],
            outputs: outputs(vec![id(0), Expr::Window(Box::new(window))]),
            ..Block::default()
        }
    };
    let functions =
        [WindowFunction::RowNumber, WindowFunction::Lag, WindowFunction::First, WindowFunction::Tile];
    for function in functions {
        let of_peers = outcome(&world, &block(function, number(0), frame), LIMITS);
        assert!(matches!(of_peers, Outcome::GivenBack(Why::Undetermined)), "{function:?}");
    }
    let rows = Frame { is_range: false, ..frame };
    let of_rows = outcome(&world, &block(WindowFunction::Sum, number(0), rows), LIMITS);
    assert!(matches!(of_rows, Outcome::GivenBack(Why::Undetermined)));
    let last = world.rows[0].len() - 1;
    let told: [&dyn Fn(usize) -> String; 4] = [
        &|id| (last - id + 1).to_string(),
        &|id| if id == last { "NULL".to_owned() } else { (id + 1).to_string() },
        &|_| last.to_string(),
        &|_| "1".to_owned(),
    ];
    for (function, told) in functions.into_iter().zip(told) {
        let expected = (0..=last).map(|id| format!("{id}|{}", told(id))).collect();
        assert_eq!(sorted(ask(&world, &block(function, id(0), frame))), sorted(expected), "{function:?}");
    }
}

/// Rows of a table by text and number, of which many are the same, and windows that tell them apart.
#[test]
fn windows_of_peers_that_are_seen_alike_are_those_of_any_order() {
    let world = seeded(16);
    let order = |descends| vec![(number(0), descends)];
    let window = |function, kind, of, order: Vec<(Expr, bool)>| {
        let frame = Frame { is_range: false, begin: Bound::Unbounded, end: Bound::Current };
        let partition = vec![text(0)];
        Expr::Window(Box::new(Window { function, kind, number: 1, of, partition, order, frame }))
    };
    let row_number = |order| window(WindowFunction::RowNumber, Kind::Unsigned, None, order);
    let sum = |of| window(WindowFunction::Sum, Kind::Decimal(0), Some(of), order(false));
    let lag = |of| window(WindowFunction::Lag, Kind::Signed, Some(of), order(false));
    let rank = |by| window(WindowFunction::Rank, Kind::Signed, None, vec![(by, false)]);
    let block = |exprs: &[Expr]| Block {
        from: vec![from(&world, 0)],
        outputs: outputs(exprs.to_vec()),
        ..Block::default()
    };
    // NULL comes first.
    let mut rows: Vec<(&str, Option<i16>)> = world.rows[0].iter().map(|row| (row.text, row.number)).collect();
    rows.sort_unstable();
    let told = |at: usize| {
        let (text, number) = rows[at];
        let before: Vec<Option<i16>> =
            rows[..=at].iter().filter(|row| row.0 == text).map(|row| row.1).collect();
        let known: Vec<i64> = before.iter().flatten().map(|number| i64::from(*number)).collect();
        let sum = (!known.is_empty()).then(|| known.iter().sum::<i64>());
        let last = before.len().checked_sub(2).and_then(|at| before[at]);
        format!("{text}|{}|{}|{}|{}", shown(number), before.len(), shown(sum), shown(last))
    };
    let seen = [text(0), number(0), row_number(order(false)), sum(number(0)), lag(number(0))];
    assert_eq!(sorted(ask(&world, &block(&seen))), sorted((0..rows.len()).map(told).collect()));
    let is_given_back = |exprs: &[Expr]| {
        matches!(outcome(&world, &block(exprs), LIMITS), Outcome::GivenBack(Why::Undetermined))
    };
    assert!(!is_given_back(&[row_number(order(true)), rank(number(0))]));
    // Something else of the peers is seen: a column, an argument, or how another window sorts.
    assert!(is_given_back(&[id(0), row_number(order(false))]));
    assert!(is_given_back(&[number(0), sum(id(0))]));
    assert!(is_given_back(&[number(0), lag(id(0))]));
    assert!(is_given_back(&[row_number(order(false)), rank(id(0))]));
    // Which place in the one order goes with which one in the other is open.
    assert!(is_given_back(&[row_number(order(false)), row_number(order(true))]));
}

/// 'x' and 'X' are equal. A better one comes last.
#[test]
fn only_the_best_text_has_to_be_the_only_one_of_its_equals() {
    let world = seeded(17);
    let (middle, last) = (350, world.rows[0].len() as i128 - 1);
    let constant_text = |text: &str| Expr::Constant(Value::Text(text.into()), TEXT);
    let block = |function, text: &str, of_last: &str| {
        let is_low = compare(Comparison::Less, id(0), Expr::Constant(Value::Number(middle), Kind::Unsigned));
        let is_last = equal(id(0), Expr::Constant(Value::Number(last), Kind::Unsigned));
        let whens = vec![(is_last, constant_text(of_last)), (is_low, constant_text(text))];
        let of = Expr::Case(TEXT, whens, Box::new(constant_text(&text.to_uppercase())));
        Block {
            from: vec![from(&world, 0)],
            is_grouped: true,
            outputs: outputs(vec![aggregate(function, TEXT, Some(of))]),
            ..Block::default()
        }
    };
    for (function, best, worst) in [(Function::Min, "a", "x"), (Function::Max, "x", "a")] {
        assert_eq!(ask(&world, &block(function, "n", best)), [best]);
        for of_last in ["n", worst] {
            let of_equals = outcome(&world, &block(function, "n", of_last), LIMITS);
            assert!(matches!(of_equals, Outcome::GivenBack(Why::Undetermined)), "{function:?} {of_last}");
        }
    }
}

#[test]
fn rarer_aggregates_are_those_of_all_rows_of_a_group() {
    let world = seeded(14);
    let constant_text = |text: &[u8]| Expr::Constant(Value::Text(text.to_vec()), TEXT);
    let concat = |most: i128, flags: i128, descends: u8, of: Expr, by: Expr| {
        let head = [constant_text(b";"), constant(most), constant(flags), constant_text(&[descends])];
        let parts = head.into_iter().chain([of, by]).collect();
        aggregate(Function::Concat, TEXT, Some(Expr::Row(parts)))
    };
    let block = |exprs: Vec<Expr>| Block {
        from: vec![from(&world, 0)],
        groups: vec![text(0)],
        is_grouped: true,
        outputs: outputs(std::iter::once(text(0)).chain(exprs).collect()),
        ..Block::default()
    };
    let answered = block(vec![
        aggregate(Function::BitXor, Kind::Unsigned, Some(id(0))),
        aggregate(Function::BitAnd, Kind::Unsigned, Some(number(0))),
        aggregate(Function::CountDistinct, Kind::Signed, Some(Expr::Row(vec![number(0), text(0)]))),
        aggregate(Function::Deviation, Kind::Real, Some(number(0))),
        concat(1 << 20, 2, 1, number(0), id(0)),
        concat(1 << 20, 3, 0, number(0), number(0)),
    ]);
    let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    world.rows[0].iter().for_each(|row| groups.entry(row.text).or_default().push(row));
    let expected = groups.into_iter().map(|(text, rows)| {
        let xor = rows.iter().fold(0, |all, row| all ^ row.id);
        let known: Vec<i16> = rows.iter().filter_map(|row| row.number).collect();
        let and = known.iter().fold(u64::MAX, |all, number| all & (i64::from(*number) as u64));
        let mut different = known.clone();
        different.sort_unstable();
        different.dedup();
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for number in &known {
            let number = f64::from(*number);
            count += 1.0;
            let before = mean;
            mean += (number - mean) / count;
            squares += (number - before) * (number - mean);
        }
        let texts = |numbers: &mut dyn Iterator<Item = &i16>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(";")
        };
        let deviation = (squares / count).sqrt();
        let (back, once) = (texts(&mut known.iter().rev()), texts(&mut different.iter()));
        format!("{text}|{xor}|{and}|{}|{deviation}|{back}|{once}", different.len())
    });
    assert_eq!(sorted(ask(&world, &answered)), sorted(expected.collect()));
    // Longer than it may be, and in an order that leaves open which text comes first.
    let given_back = |expr| matches!(outcome(&world, &block(vec![expr]), LIMITS), Outcome::GivenBack(_));
    assert!(given_back(concat(5, 2, 1, number(0), id(0))));
    assert!(given_back(concat(1 << 20, 2, 1, id(0), number(0))));
    assert!(!given_back(concat(1 << 20, 2, 1, text(0), number(0))));
}

#[test]
fn windows_of_which_a_third_sorts_as_two_begin_are_left_to_the_server() {
    let world = seeded(15);
    let frame = Frame { is_range: true, begin: Bound::Unbounded, end: Bound::Current };
    let window = |partition: Vec<Expr>| {
        let (function, kind, order) = (WindowFunction::Rows, Kind::Signed, Vec::new());
        Expr::Window(Box::new(Window { function, kind, number: 0, of: None, partition, order, frame }))
    };
    let mut exprs = vec![id(0), window(vec![text(0), number(0)]), window(vec![text(0), id(0)])];
    let block = |exprs: &[Expr]| Block {
        from: vec![from(&world, 0)],
        outputs: outputs(exprs.to_vec()),
        ..Block::default()
    };
    assert!(matches!(outcome(&world, &block(&exprs), LIMITS), Outcome::Rows(_)));
    exprs.push(window(vec![text(0)]));
    assert!(matches!(outcome(&world, &block(&exprs), LIMITS), Outcome::GivenBack(Why::Unsupported)));
}

/// A join says which keys have no partner. Rows of a window's partition, and of EXCEPT, are left alone; whole partitions, and rows of the parts of
/// a UNION, are dropped.
#[test]
fn what_a_join_drops_counts_in_windows_and_sets() {
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let few = random.random_range(1..12);
        let world = world(&mut random, &[(few, true), (600, true), (300, false)]);
        let (small, large, third) = (&world.rows[0], &world.rows[1], &world.rows[2]);
        let is_pair = |a: &Row, b: &Row| a.number.is_some() && a.number == b.number;
        let derived =
            |block: Block| From { source: Source::Query(Box::new(block)), is_outer: false, on: None };
        let joined = |block: Block, shown: Vec<Expr>| Block {
            from: vec![from(&world, 0), derived(block)],
            filter: Some(equal(Expr::Slot(500, Kind::Signed), number(0))),
            outputs: outputs(shown),
            ..Block::default()
        };
        let window = |partition: Vec<Expr>| {
            Expr::Window(Box::new(Window {
                function: WindowFunction::Rows,
                kind: Kind::Signed,
                number: 0,
                of: None,
                partition,
                order: Vec::new(),
                frame: Frame { is_range: true, begin: Bound::Unbounded, end: Bound::Current },
            }))
        };
        // By what the join is by, alone, with something else, or in one of two windows; or by something else.
        let texts = |a: &Row, b: &Row| a.text == b.text;
        let numbers = |a: &Row, b: &Row| a.number == b.number;
        let all = |_: &Row, _: &Row| true;
        type IsPeer<'a> = &'a dyn Fn(&Row, &Row) -> bool;
        let partitions: [(Vec<Expr>, IsPeer); 4] = [
            (vec![text(1)], &texts),
            (vec![number(1)], &numbers),
            (vec![text(1), number(1)], &|a, b| texts(a, b) && numbers(a, b)),
            (Vec::new(), &all),
        ];
        for (one, is_peer) in &partitions {
            for (other, is_other_peer) in &partitions {
                let windows = Block {
                    from: vec![from(&world, 1)],
                    outputs: vec![
                        (500, number(1)),
                        (501, id(1)),
                        (502, window(one.clone())),
                        (503, window(other.clone())),
                    ],
                    ..Block::default()
                };
                let shown = [501, 502, 503].map(|slot| Expr::Slot(slot, Kind::Signed));
                let shown = [id(0)].into_iter().chain(shown).collect();
                let pairs =
                    small.iter().flat_map(|a| large.iter().filter(|b| is_pair(a, b)).map(move |b| (a, b)));
                let count = |b: &Row, is_peer: IsPeer| large.iter().filter(|other| is_peer(other, b)).count();
                let expected = pairs.map(|(a, b)| {
                    format!("{}|{}|{}|{}", a.id, b.id, count(b, is_peer), count(b, is_other_peer))
                });
                let expected = sorted(expected.collect());
                let windows = joined(windows, shown);
                assert_eq!(sorted(ask(&world, &windows)), expected, "seed {seed}: {one:?}, {other:?}");
            }
        }

        let of = |table: u32, slot: Slot| Block {
            from: vec![from(&world, table)],
            outputs: vec![(slot, number(table)), (slot + 1, id(table))],
            ..Block::default()
        };
        for is_distinct in [false, true] {
            let other = Other { operation: SetOperation::Union, is_distinct, block: of(2, 600) };
            let union = Block { others: vec![other], ..of(1, 500) };
            let expected = small.iter().flat_map(|a| {
                let is_new =
                    |c: &&Row| !is_distinct || !large.iter().any(|b| b.id == c.id && b.number == c.number);
                let both = large.iter().chain(third.iter().filter(is_new));
                both.filter(|b| is_pair(a, b)).map(|b| format!("{}|{}", a.id, b.id)).collect::<Vec<_>>()
            });
            let expected = sorted(expected.collect());
            let union = joined(union, vec![id(0), Expr::Slot(501, Kind::Unsigned)]);
            assert_eq!(sorted(ask(&world, &union)), expected, "seed {seed}: UNION, {is_distinct}");
        }
        let other = Other { operation: SetOperation::Except, is_distinct: true, block: of(2, 600) };
        let sets = Block { others: vec![other], ..of(1, 500) };
        let is_in_third = |b: &Row| third.iter().any(|c| c.id == b.id && c.number == b.number);
        let expected = small.iter().flat_map(|a| {
            large
                .iter()
                .filter(|b| is_pair(a, b) && !is_in_third(b))
                .map(move |b| format!("{}|{}", a.id, b.id))
        });
        let expected: Vec<String> = expected.collect();
        let block = joined(sets, vec![id(0), Expr::Slot(501, Kind::Unsigned)]);
        assert_eq!(sorted(ask(&world, &block)), sorted(expected), "seed {seed}: EXCEPT");
    }
}

/// One query of each kind that holds many rows, and how many bytes these are at least.
fn that_hold_rows(world: &World) -> Vec<(&'static str, Block, usize)> {
    let rows = world.rows[0].len();
    let of_table =
        |exprs: Vec<Expr>| Block { from: vec![from(world, 0)], outputs: outputs(exprs), ..Block::default() };
    let window = Expr::Window(Box::new(Window {
        function: WindowFunction::Sum,
        kind: Kind::Decimal(0),
        number: 0,
        of: Some(number(0)),
        partition: vec![text(0)],
        order: vec![(id(0), true)],
        frame: Frame { is_range: false, begin: Bound::Preceding(3), end: Bound::Following(3) },
    }));
    let head = [
        Expr::Constant(Value::Text(b", ".to_vec()), TEXT),
        constant(1 << 20),
        constant(2),
        Expr::Constant(Value::Text(vec![0]), TEXT),
    ];
    let parts = head.into_iter().chain([text(0), id(0)]).collect();
    let texts: usize = world.rows[0].iter().map(|row| row.text.len() + 2).sum();
    let concat = aggregate(Function::Concat, TEXT, Some(Expr::Row(parts)));
    let of_groups = |exprs: Vec<Expr>| Block { is_grouped: true, ..of_table(exprs) };
    let other = Block { outputs: vec![(2000, id(1)), (2001, number(1))], ..of_table(Vec::new()) };
    let other = Block { from: vec![from(world, 1)], ..other };
    let other = Other { operation: SetOperation::Intersect, is_distinct: false, block: other };
    let counted = aggregate(Function::CountDistinct, Kind::Signed, Some(Expr::Row(vec![id(0), text(0)])));
    vec![
        ("a window", of_table(vec![id(0), window]), rows * 100),
        ("GROUP_CONCAT", of_groups(vec![concat]), rows * 12 + texts * 2),
        ("INTERSECT", Block { others: vec![other], ..of_table(vec![id(0), number(0)]) }, rows * 24),
        ("COUNT(DISTINCT a, b)", of_groups(vec![counted]), rows * 24),
        (
            "ROLLUP",
            Block {
                groups: vec![text(0), id(0)],
                rollup: Some(vec![false, false]),
                ..of_groups(vec![id(0), aggregate(Function::Rows, Kind::Signed, None)])
            },
            rows * 48,
        ),
    ]
}

#[test]
fn memory_of_windows_sets_rollup_and_texts_is_counted() {
    let world = seeded(16);
    for (what, block, bytes) in that_hold_rows(&world) {
        let with = |memory_bytes: usize| outcome(&world, &block, Limits { threads: 2, memory_bytes });
        assert!(matches!(with(bytes), Outcome::GivenBack(Why::Memory)), "{what} in {bytes} bytes");
        assert!(matches!(with(bytes * 30), Outcome::Rows(_)), "{what} in {} bytes", bytes * 30);
    }
}

#[test]
fn windows_sets_rollup_and_texts_stop_when_they_are_told() {
    let world = seeded(17);
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    for (what, block, _) in that_hold_rows(&world) {
        // Wherever it is asked whether to go on.
        let stops = (0..).take_while(|allowed| {
            let mut texts = Texts::default();
            texts.collations.push(Arc::new(|text: &[u8], to: &mut Vec<u8>| to.extend_from_slice(text)));
            let asked = AtomicUsize::new(0);
            let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) >= *allowed;
            let query = Query::new(block.clone(), texts);
            let limits = Limits { threads: 1, ..LIMITS };
            match query.run(&mut world.db.begin(), &tables, limits, &is_stopped).unwrap() {
                Outcome::GivenBack(Why::Stopped) => true,
                Outcome::Rows(_) => false,
                Outcome::GivenBack(why) => panic!("{what}: {why:?}"),
            }
        });
        assert!(stops.count() > 3, "{what}");
    }
}

/// Two groups of the same table, by different names for its columns, joined with each other and with the few rows of a third.
#[test]
fn groups_that_occur_twice_are_computed_once() {
    let mut world = seeded(14);
    let (again, rows) = (world.db.open_table("./db/t0").unwrap(), world.rows[0].clone());
    world.tables.push(again);
    world.rows.push(rows);
    let many = world.rows[0].len() as u64;
    // Of the groups of table 3, those of rows with an id below the limit; no limit: the same as those of table 0.
    let joined = |limit: Option<i128>, function: Function| {
        let groups = |table: u32, slot: Slot| Block {
            from: vec![from(&world, table)],
            filter: match (table, limit) {
                (3, Some(limit)) => Some(compare(Comparison::Less, id(3), constant(limit))),
                _ => None,
            },
            groups: vec![number(table)],
            is_grouped: true,
            outputs: vec![
                (slot, number(table)),
                (
                    slot + 1,
                    aggregate(
                        if table == 3 { function } else { Function::Count },
                        Kind::Signed,
                        Some(id(table)),
                    ),
                ),
            ],
            ..Block::default()
        };
        let source = |block| From { source: Source::Query(Box::new(block)), is_outer: false, on: None };
        let slot = |slot| Expr::Slot(slot, Kind::Signed);
        let block = Block {
            from: vec![source(groups(0, 500)), source(groups(3, 600)), from(&world, 2)],
            filter: Some(Expr::And(vec![equal(slot(501), slot(601)), equal(slot(600), number(2))])),
            outputs: outputs(vec![slot(500), slot(501), slot(600), id(2)]),
            ..Block::default()
        };
        let groups = |limit: i128| {
            let mut groups: BTreeMap<Option<i16>, (i128, i128)> = BTreeMap::new();
            for row in world.rows[0].iter().filter(|row| i128::from(row.id) < limit) {
                let group = groups.entry(row.number).or_insert((0, 0));
                *group = (group.0 + 1, group.1.max(i128::from(row.id)));
            }
            groups
        };
        let mut expected = Vec::new();
        for (number, (count, _)) in groups(i128::MAX) {
            for (other, (other_count, max)) in groups(limit.unwrap_or(i128::MAX)) {
                let told = if function == Function::Max { max } else { other_count };
                for row in &world.rows[2] {
                    if told == count && other.is_some() && other == row.number {
                        expected.push(format!("{}|{count}|{}|{}", shown(number), shown(other), row.id));
                    }
                }
            }
        }
        let Outcome::Rows(answer) = outcome(&world, &block, LIMITS) else { panic!("given back") };
        assert_eq!(sorted(ask(&world, &block)), sorted(expected), "{limit:?} {function:?}");
        answer.rows_met - world.rows[2].len() as u64
    };
    assert_eq!(joined(None, Function::Count), many);
    // A condition or a function more, and they are two.
    assert!(joined(Some(i128::from(many) - 1), Function::Count) > many);
    assert!(joined(None, Function::Max) > many);
}
