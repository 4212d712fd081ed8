//! Joins of all kinds and queries within queries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use pando_analytic::{
    Block, Comparison, Expr, From, Function, Kind, Operation, Outcome, Query, Slot, Source, Texts, Value,
};
use pando_query::{Limits, Why};
use pandodb::Table;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::*;

#[test]
fn a_join_of_three_tables_with_groups_is_that_of_all_combinations() {
    for seed in 0..4 {
        let world = seeded(seed);
        let sum = Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(number(0)), Box::new(id(1)));
        let block = Block {
            from: vec![from(&world, 0), from(&world, 1), from(&world, 2)],
            filter: Some(Expr::And(vec![
                equal(number(0), number(1)),
                equal(number(2), number(1)),
                compare(Comparison::Less, id(0), constant(500)),
                compare(Comparison::NotEqual, id(1), id(2)),
            ])),
            groups: vec![text(0)],
            is_grouped: true,
            outputs: outputs(vec![
                text(0),
                aggregate(Function::Rows, Kind::Signed, None),
                aggregate(Function::Sum, Kind::Decimal(0), Some(sum)),
                aggregate(Function::Max, TEXT, Some(text(1))),
                aggregate(Function::CountDistinct, Kind::Signed, Some(number(1))),
            ]),
            ..Block::default()
        };
        let mut model: BTreeMap<&str, (i64, i64, &str, Vec<i16>)> = BTreeMap::new();
        for a in world.rows[0].iter().filter(|a| a.id < 500 && a.number.is_some()) {
            for b in world.rows[1].iter().filter(|b| b.number == a.number) {
                for _ in world.rows[2].iter().filter(|c| c.number == b.number && c.id != b.id) {
                    let group = model.entry(a.text).or_insert((0, 0, "", Vec::new()));
                    group.0 += 1;
                    group.1 += i64::from(a.number.unwrap()) + i64::from(b.id);
                    group.2 = group.2.max(b.text);
                    group.3.push(b.number.unwrap());
                }
            }
        }
        let expected = model.into_iter().map(|(text, (rows, sum, max, mut numbers))| {
            numbers.sort_unstable();
            numbers.dedup();
            format!("{text}|{rows}|{sum}|{max}|{}", numbers.len())
        });
        assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()), "seed {seed}");
    }
}

/// What a table does not have (its rows have expired) is no partner, and is not kept either.
#[test]
fn rows_that_a_table_leaves_out_are_in_no_join() {
    let world = seeded(7);
    let only = |mut part: From, which: Expr| {
        let Source::Table { filter, .. } = &mut part.source else { panic!("a table") };
        *filter = Some(which);
        part
    };
    let block = Block {
        from: vec![
            only(from(&world, 0), compare(Comparison::Less, id(0), constant(90))),
            only(
                outer(&world, 1, equal(number(0), number(1))),
                compare(Comparison::Less, id(1), constant(20)),
            ),
        ],
        outputs: outputs(vec![id(0), id(1)]),
        ..Block::default()
    };
    let mut expected = Vec::new();
    for a in world.rows[0].iter().filter(|a| a.id < 90) {
        let is_partner = |b: &&Row| b.id < 20 && a.number.is_some() && b.number == a.number;
        let partners: Vec<_> = world.rows[1].iter().filter(is_partner).collect();
        expected.extend(partners.iter().map(|b| format!("{}|{}", a.id, b.id)));
        if partners.is_empty() {
            expected.push(format!("{}|NULL", a.id));
        }
    }
    assert_eq!(sorted(ask(&world, &block)), sorted(expected));
}

/// The opposite of what is false of NULLs is true of them.
#[test]
fn a_left_join_stays_one_where_not_turns_false_into_true() {
    let world = seeded(5);
    let not = |part: Expr| Expr::Not(Box::new(part));
    let is_there = |part: Expr| not(Expr::IsNull(Box::new(part)));
    let small = || compare(Comparison::Less, id(0), constant(3));
    let on = equal(id(0), number(1));
    let all = Block {
        from: vec![from(&world, 0), outer(&world, 1, on)],
        outputs: outputs(vec![id(0), id(1)]),
        ..Block::default()
    };
    let lonely = |answer: &[String]| answer.iter().filter(|row| row.ends_with("|NULL")).count();
    assert!(lonely(&ask(&world, &all)) > 3);
    let partnered = || compare(Comparison::GreaterOrEqual, id(1), constant(0));
    for (what, filter, keeps) in [
        ("not (there and small)", not(Expr::And(vec![is_there(id(1)), small()])), true),
        ("not (equal and there)", not(Expr::And(vec![partnered(), is_there(id(1))])), true),
        (
            "not (there or there)",
            not(Expr::Or(vec![is_there(id(1)), not(Expr::IsNull(Box::new(number(1))))])),
            true,
        ),
        ("not not there", not(not(is_there(id(1)))), false),
        ("not (less and less)", not(Expr::And(vec![partnered(), partnered()])), false),
        ("not (less)", not(compare(Comparison::Less, id(1), constant(0))), false),
    ] {
        let answer = ask(&world, &Block { filter: Some(filter), ..all.clone() });
        assert_eq!(lonely(&answer) > 0, keeps, "{what}: {answer:?}");
    }
}

#[test]
fn a_left_join_keeps_rows_without_a_partner_whatever_its_condition_says() {
    let world = seeded(5);
    let on = Expr::And(vec![
        equal(number(0), number(1)),
        compare(Comparison::Less, id(0), id(1)),
        equal(text(1), Expr::Constant(Value::Text(b"X".to_vec()), TEXT)),
    ]);
    let block = Block {
        from: vec![from(&world, 0), outer(&world, 1, on)],
        outputs: outputs(vec![id(0), id(1)]),
        ..Block::default()
    };
    let mut expected = Vec::new();
    for a in &world.rows[0] {
        let is_partner =
            |b: &&Row| a.number.is_some() && b.number == a.number && a.id < b.id && b.text == "x";
        let partners: Vec<_> = world.rows[1].iter().filter(is_partner).collect();
        expected.extend(partners.iter().map(|b| format!("{}|{}", a.id, b.id)));
        if partners.is_empty() {
            expected.push(format!("{}|NULL", a.id));
        }
    }
    assert_eq!(sorted(ask(&world, &block)), sorted(expected));
    // Conditions on what comes of it.
    for (condition, has_partner) in [
        (Expr::IsNull(Box::new(id(1))), false),
        (compare(Comparison::GreaterOrEqual, id(1), constant(0)), true),
    ] {
        let block = Block { filter: Some(condition), outputs: outputs(vec![id(0)]), ..block.clone() };
        let partner = |a: &Row| {
            world.rows[1]
                .iter()
                .filter(|b| a.number.is_some() && b.number == a.number && a.id < b.id && b.text == "x")
                .count()
        };
        let expected = world.rows[0].iter().flat_map(|a| {
            let count = if has_partner { partner(a) } else { usize::from(partner(a) == 0) };
            std::iter::repeat_n(a.id.to_string(), count)
        });
        assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()));
    }
}

#[test]
fn exists_and_in_are_semi_joins_and_null_is_neither_in_nor_not_in() {
    let mut opened = 0;
    for (outer_table, inner_table) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        let world = seeded(6);
        let (of_outer, of_inner) = (&world.rows[outer_table as usize], &world.rows[inner_table as usize]);
        let not = |expr| Expr::Not(Box::new(expr));
        let tied = Block {
            from: vec![from(&world, inner_table)],
            filter: Some(Expr::And(vec![
                equal(number(inner_table), number(outer_table)),
                compare(Comparison::NotEqual, id(inner_table), id(outer_table)),
            ])),
            ..Block::default()
        };
        let plain = Block {
            from: vec![from(&world, inner_table)],
            filter: Some(compare(Comparison::Greater, id(inner_table), constant(20))),
            outputs: vec![(2000, number(inner_table))],
            ..Block::default()
        };
        let known = not(Expr::IsNull(Box::new(number(inner_table))));
        let sure = Block {
            filter: Some(Expr::And(vec![compare(Comparison::Greater, id(inner_table), constant(20)), known])),
            ..plain.clone()
        };
        let exists =
            |a: &Row| of_inner.iter().any(|b| a.number.is_some() && a.number == b.number && a.id != b.id);
        let inner: Vec<_> = of_inner.iter().filter(|b| b.id > 20).map(|b| b.number).collect();
        let is_in = |a: &Row| match a.number {
            None => None,
            number if inner.contains(&number) => Some(true),
            _ if inner.contains(&None) => None,
            _ => Some(false),
        };
        let is_in_sure = |a: &Row| a.number.map(|number| inner.contains(&Some(number)));
        let of_query = |block: &Block| Expr::InQuery(vec![number(outer_table)], Box::new(block.clone()));
        let cases: Vec<(Expr, Vec<&Row>)> = vec![
            (Expr::Exists(Box::new(tied.clone())), of_outer.iter().filter(|a| exists(a)).collect()),
            (not(Expr::Exists(Box::new(tied))), of_outer.iter().filter(|a| !exists(a)).collect()),
            (of_query(&plain), of_outer.iter().filter(|a| is_in(a) == Some(true)).collect()),
            (not(of_query(&sure)), of_outer.iter().filter(|a| is_in_sure(a) == Some(false)).collect()),
        ];
        let asked = |condition: Expr| Block {
            from: vec![from(&world, outer_table)],
            filter: Some(condition),
            outputs: outputs(vec![id(outer_table)]),
            ..Block::default()
        };
        // Where a NULL leaves a row open, NOT IN is the server's.
        let is_open = of_outer.iter().any(|a| is_in(a).is_none());
        opened += usize::from(is_open);
        let open = outcome(&world, &asked(not(of_query(&plain))), LIMITS);
        assert_eq!(matches!(open, Outcome::GivenBack(_)), is_open, "{outer_table} {inner_table}");
        for (at, (condition, expected)) in cases.into_iter().enumerate() {
            let condition = match at {
                3 => Expr::And(vec![not(Expr::IsNull(Box::new(number(outer_table)))), condition]),
                _ => condition,
            };
            let block = asked(condition);
            let expected = expected.iter().map(|a| a.id.to_string()).collect();
            assert_eq!(
                sorted(ask(&world, &block)),
                sorted(expected),
                "{outer_table} {inner_table} case {at}"
            );
        }
    }
    assert!(opened > 0, "no row was open");
}

#[test]
fn a_query_as_a_value_is_that_of_each_row() {
    let world = seeded(7);
    let of_group = |output: Expr| Block {
        from: vec![from(&world, 1)],
        filter: Some(equal(number(1), number(0))),
        is_grouped: true,
        outputs: vec![(2000, output)],
        ..Block::default()
    };
    let count = of_group(aggregate(Function::Rows, Kind::Signed, None));
    let mut most = of_group(aggregate(Function::Max, Kind::Unsigned, Some(id(1))));
    most.outputs[0].0 = 2001;
    let block = Block {
        from: vec![from(&world, 0)],
        filter: Some(compare(
            Comparison::Greater,
            id(0),
            Expr::Scalar(Box::new(most.clone()), Kind::Unsigned),
        )),
        outputs: outputs(vec![id(0), Expr::Scalar(Box::new(count.clone()), Kind::Signed)]),
        ..Block::default()
    };
    let partners = |a: &Row| {
        world.rows[1].iter().filter(|b| a.number.is_some() && b.number == a.number).collect::<Vec<_>>()
    };
    let expected = world.rows[0].iter().filter_map(|a| {
        let of = partners(a);
        let most = of.iter().map(|b| b.id).max()?;
        (a.id > most).then(|| format!("{}|{}", a.id, of.len()))
    });
    assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()));
    let block = Block {
        filter: None,
        outputs: outputs(vec![
            id(0),
            Expr::Scalar(Box::new(count), Kind::Signed),
            Expr::Scalar(Box::new(most), Kind::Unsigned),
        ]),
        ..block
    };
    let expected = world.rows[0].iter().map(|a| {
        let of = partners(a);
        format!("{}|{}|{}", a.id, of.len(), shown(of.iter().map(|b| b.id).max()))
    });
    assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()));

    // What is computed of aggregates has a value where these have none: IFNULL(MAX(id), -1), MAX(id) IS NULL; but not MAX(id) + COUNT(*).
    let max = || aggregate(Function::Max, Kind::Signed, Some(id(1)));
    let is_null = || Expr::IsNull(Box::new(max()));
    let minus_one = Expr::Constant(Value::Number(-1), Kind::Signed);
    let rows = Box::new(aggregate(Function::Rows, Kind::Signed, None));
    let computed = [
        Expr::Case(Kind::Signed, vec![(is_null(), minus_one)], Box::new(max())),
        is_null(),
        Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(max()), rows),
    ];
    let values = computed.into_iter().zip(2100..).map(|(expr, slot)| {
        let mut one = of_group(expr);
        one.outputs[0].0 = slot;
        Expr::Scalar(Box::new(one), Kind::Signed)
    });
    let block = Block { outputs: outputs([id(0)].into_iter().chain(values).collect()), ..block };
    let expected = world.rows[0].iter().map(|a| {
        let (of, most) = (partners(a), partners(a).iter().map(|b| b.id).max());
        let or_minus_one = most.map_or("-1".to_string(), |most| most.to_string());
        let sum = shown(most.map(|most| most + of.len() as u32));
        format!("{}|{or_minus_one}|{}|{sum}", a.id, u8::from(most.is_none()))
    });
    assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()));
}

#[test]
fn a_join_that_makes_many_rows_of_few_stops_when_it_is_told() {
    let world = seeded(9);
    // Every row beside every other: 8.4 million pairs of 700, 300 and 40 rows.
    let block = Block {
        from: vec![from(&world, 0), from(&world, 1), from(&world, 2)],
        filter: Some(compare(Comparison::NotEqual, id(0), id(1))),
        is_grouped: true,
        outputs: outputs(vec![aggregate(Function::Rows, Kind::Signed, None)]),
        ..Block::default()
    };
    let asked = AtomicUsize::new(0);
    let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) >= 200;
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let query = Query::new(block, Texts::default());
    let outcome = query.run(&mut world.db.begin(), &tables, LIMITS, &is_stopped).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Stopped)));
}

#[test]
fn orders_and_limits_cut_the_right_rows() {
    let world = seeded(8);
    let mut expected: Vec<_> = world.rows[0].iter().collect();
    expected.sort_by_key(|row| (row.number, std::cmp::Reverse(row.text), row.id));
    let expected: Vec<_> = expected.iter().map(|row| format!("{}|{}", row.id, shown(row.number))).collect();
    for (skip, limit) in [(0, None), (0, Some(5)), (90, Some(20)), (690, Some(50)), (800, Some(1)), (3, None)]
    {
        let block = Block {
            from: vec![from(&world, 0)],
            outputs: outputs(vec![id(0), number(0)]),
            order: vec![(number(0), false), (text(0), true), (id(0), false)],
            skip,
            limit,
            ..Block::default()
        };
        let begin = (skip as usize).min(expected.len());
        let end = limit.map_or(expected.len(), |limit| (begin + limit as usize).min(expected.len()));
        assert_eq!(ask(&world, &block), expected[begin..end], "{skip} {limit:?}");
        let Outcome::Rows(answer) = outcome(&world, &block, LIMITS) else { panic!("given back") };
        let all_skipped = if begin == expected.len() { expected.len() } else { 0 };
        assert_eq!(answer.rows_skipped, all_skipped as u64, "{skip} {limit:?}");
    }
}

/// Of one side of a join follows what the scan of the other may drop: through groups and outer joins, not through a limit.
#[test]
fn what_a_join_drops_where_it_is_read_has_no_partner() {
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let few = random.random_range(0..12);
        let world = world(&mut random, &[(few, true), (600, true), (300, false)]);
        let (small, large, third) = (&world.rows[0], &world.rows[1], &world.rows[2]);
        let is_pair = |a: &Row, b: &Row| a.number.is_some() && a.number == b.number;

        // The small side is read first, as it is the outer one.
        let block = Block {
            from: vec![from(&world, 0), outer(&world, 1, equal(number(0), number(1)))],
            outputs: outputs(vec![id(0), id(1)]),
            ..Block::default()
        };
        let mut expected = Vec::new();
        for a in small {
            let before = expected.len();
            expected.extend(large.iter().filter(|b| is_pair(a, b)).map(|b| format!("{}|{}", a.id, b.id)));
            if expected.len() == before {
                expected.push(format!("{}|NULL", a.id));
            }
        }
        assert_eq!(sorted(ask(&world, &block)), sorted(expected), "seed {seed}: LEFT JOIN");

        // Through groups, with an outer join below them.
        let grouped = Block {
            from: vec![from(&world, 1), outer(&world, 2, equal(id(1), id(2)))],
            groups: vec![number(1)],
            is_grouped: true,
            outputs: vec![
                (500, number(1)),
                (501, aggregate(Function::Count, Kind::Signed, Some(id(2)))),
                (502, aggregate(Function::Rows, Kind::Signed, None)),
            ],
            ..Block::default()
        };
        let of_groups = From { source: Source::Query(Box::new(grouped)), is_outer: false, on: None };
        let derived = |slot: Slot| Expr::Slot(slot, Kind::Signed);
        let block = Block {
            from: vec![from(&world, 0), of_groups],
            filter: Some(equal(derived(500), number(0))),
            outputs: outputs(vec![id(0), derived(501), derived(502)]),
            ..Block::default()
        };
        let expected = small.iter().filter_map(|a| {
            let of: Vec<_> = large.iter().filter(|b| is_pair(a, b)).collect();
            let counted = of.iter().filter(|b| (b.id as usize) < third.len()).count();
            (!of.is_empty()).then(|| format!("{}|{counted}|{}", a.id, of.len()))
        });
        assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()), "seed {seed}: groups");

        // Which rows are the first does not depend on who has a partner.
        let first = Block {
            from: vec![from(&world, 1)],
            outputs: vec![(500, number(1)), (501, id(1))],
            order: vec![(Expr::Slot(501, Kind::Unsigned), true)],
            limit: Some(40),
            ..Block::default()
        };
        let of_first = From { source: Source::Query(Box::new(first)), is_outer: false, on: None };
        let block = Block {
            from: vec![from(&world, 0), of_first],
            filter: Some(equal(derived(500), number(0))),
            outputs: outputs(vec![id(0), Expr::Slot(501, Kind::Unsigned)]),
            ..Block::default()
        };
        let first = &large[large.len() - 40..];
        let expected = small
            .iter()
            .flat_map(|a| first.iter().filter(|b| is_pair(a, b)).map(move |b| format!("{}|{}", a.id, b.id)));
        assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()), "seed {seed}: a limit");
    }
}

#[test]
fn what_does_not_fit_or_is_not_wanted_or_is_too_large_is_given_back() {
    let world = seeded(9);
    let block = Block {
        from: vec![from(&world, 0), from(&world, 1)],
        outputs: outputs(vec![id(0), id(1)]),
        ..Block::default()
    };
    let why = |block: &Block, limits: Limits| match outcome(&world, block, limits) {
        Outcome::GivenBack(why) => why,
        Outcome::Rows(_) => panic!("answered"),
    };
    assert_eq!(why(&block, Limits { threads: 2, memory_bytes: 10_000 }), Why::Memory);
    let huge = Box::new(Expr::Constant(Value::Number(i128::from(i64::MAX)), Kind::Signed));
    let sum = Expr::Arithmetic(Operation::Add, Kind::Signed, huge, Box::new(id(0)));
    let block = Block { from: vec![from(&world, 0)], outputs: outputs(vec![sum]), ..Block::default() };
    assert_eq!(why(&block, LIMITS), Why::Overflow);
    // A value of two rows is an error, which the server tells.
    let two = Block { from: vec![from(&world, 1)], outputs: vec![(2000, id(1))], ..Block::default() };
    let scalar = Expr::Scalar(Box::new(two), Kind::Unsigned);
    let block = Block { from: vec![from(&world, 0)], outputs: outputs(vec![scalar]), ..Block::default() };
    assert_eq!(why(&block, LIMITS), Why::Several);
    // What has to be true of all rows, and is not.
    let few = compare(Comparison::Less, id(0), constant(5));
    let sure = Expr::Sure(Box::new(few), Box::new(id(0)));
    let block = Block { from: vec![from(&world, 0)], outputs: outputs(vec![sure]), ..Block::default() };
    assert_eq!(why(&block, LIMITS), Why::Unsure);
}

/// Whether a row has partners: with the same number, and of which `test` is true; and whether a NULL leaves IN open.
fn is_in_tied(a: &Row, inner: &[Row], test: impl Fn(&Row, &Row) -> bool) -> Option<bool> {
    let tied: Vec<&Row> = inner.iter().filter(|b| test(a, b)).collect();
    if a.number.is_some() && tied.iter().any(|b| b.number == a.number) {
        return Some(true);
    }
    let is_open = !tied.is_empty() && (a.number.is_none() || tied.iter().any(|b| b.number.is_none()));
    if is_open {
        None
    } else {
        Some(false)
    }
}

#[test]
fn exists_and_in_as_values_are_known_of_each_row_or_given_back() {
    let not = |expr| Expr::Not(Box::new(expr));
    let (mut answered, mut opened) = (0, 0);
    let cases = [
        (0, 1, 0, false),
        (1, 0, 0, false),
        (2, 0, 0, false),
        (0, 2, 30, false),
        (2, 0, 0, true),
        (2, 1, 9, true),
    ];
    for (outer_table, inner_table, least, is_sure) in cases {
        let world = seeded(7);
        let (of_outer, of_inner) = (&world.rows[outer_table as usize], &world.rows[inner_table as usize]);
        let is_tied = |a: &Row, b: &Row| {
            (!is_sure || b.number.is_some()) && b.id > least && a.text.eq_ignore_ascii_case(b.text)
        };
        let tied = Block {
            from: vec![from(&world, inner_table)],
            filter: Some(Expr::And(vec![
                equal(text(inner_table), text(outer_table)),
                compare(Comparison::Greater, id(inner_table), constant(i128::from(least))),
                Expr::Or(vec![
                    constant(i128::from(!is_sure)),
                    not(Expr::IsNull(Box::new(number(inner_table)))),
                ]),
            ])),
            outputs: vec![(2000, number(inner_table))],
            ..Block::default()
        };
        let exists = Expr::Exists(Box::new(tied.clone()));
        let is_in = Expr::InQuery(vec![number(outer_table)], Box::new(tied));
        let block = |outputs_of: Vec<Expr>, filter: Option<Expr>| Block {
            from: vec![from(&world, outer_table)],
            filter,
            outputs: outputs(outputs_of),
            ..Block::default()
        };
        // As a value, and under OR.
        let expected = of_outer.iter().map(|a| {
            let has = of_inner.iter().any(|b| is_tied(a, b));
            format!("{}|{}", a.id, u8::from(has))
        });
        let shown = ask(&world, &block(vec![id(outer_table), exists.clone()], None));
        assert_eq!(sorted(shown), sorted(expected.collect()), "{outer_table} {inner_table}");
        let either = Expr::Or(vec![compare(Comparison::Less, id(outer_table), constant(4)), not(exists)]);
        let expected = of_outer.iter().filter(|a| a.id < 4 || !of_inner.iter().any(|b| is_tied(a, b)));
        let expected = expected.map(|a| a.id.to_string()).collect();
        let left = ask(&world, &block(vec![id(outer_table)], Some(either)));
        assert_eq!(sorted(left), sorted(expected), "{outer_table} {inner_table}");
        // NOT IN, and IN as a value: whatever a NULL leaves open is given back.
        let truths: Vec<_> = of_outer.iter().map(|a| is_in_tied(a, of_inner, is_tied)).collect();
        let is_open = truths.contains(&None);
        let none = outcome(&world, &block(vec![id(outer_table)], Some(not(is_in.clone()))), LIMITS);
        let value = outcome(&world, &block(vec![id(outer_table), is_in.clone()], None), LIMITS);
        opened += usize::from(is_open);
        answered += usize::from(!is_open);
        for one in [&none, &value] {
            assert_eq!(
                matches!(one, Outcome::GivenBack(Why::Unsure)),
                is_open,
                "{outer_table} {inner_table}"
            );
        }
        if !is_open {
            let expected = of_outer.iter().zip(&truths).filter(|(_, truth)| **truth == Some(false));
            let expected = expected.map(|(a, _)| a.id.to_string()).collect();
            let rows = ask(&world, &block(vec![id(outer_table)], Some(not(is_in))));
            assert_eq!(sorted(rows), sorted(expected));
        }
    }
    assert!(opened > 0 && answered > 0, "{opened} open, {answered} answered");
}

#[test]
fn an_answer_tells_of_its_operators_and_their_rows() {
    let world = seeded(8);
    let block = Block {
        from: vec![from(&world, 0), from(&world, 1)],
        filter: Some(equal(number(0), number(1))),
        outputs: outputs(vec![aggregate(Function::Rows, Kind::Signed, None)]),
        is_grouped: true,
        ..Block::default()
    };
    let Outcome::Rows(answer) = outcome(&world, &block, LIMITS) else { panic!("no answer") };
    let Value::Number(pairs) = answer.value(0, 0) else { panic!("no number") };
    let of_name = |name: &str| answer.operators.iter().filter(|one| one.name == name).collect::<Vec<_>>();
    let [join] = of_name("join")[..] else { panic!("{:?}", answer.operators) };
    assert_eq!(i128::from(join.rows), pairs);
    assert!(join.held_us > 0, "{join:?}");
    // The side that is held gives all its rows, the other one those that have a partner.
    let mut scanned: Vec<u64> = of_name("scan").iter().map(|scan| scan.rows).collect();
    scanned.sort_unstable();
    let (few, many) = (&world.rows[1], &world.rows[0]);
    assert!(few.len() < many.len());
    let has_partner =
        |row: &&Row| row.number.is_some_and(|number| few.iter().any(|other| other.number == Some(number)));
    let joined = many.iter().filter(has_partner).count();
    assert!(joined < many.len());
    assert_eq!(scanned, [few.len() as u64, joined as u64]);
    let parents: Vec<_> = answer.operators.iter().map(|one| one.parent).collect();
    assert_eq!(parents.iter().filter(|parent| parent.is_none()).count(), 1, "{parents:?}");
}

/// The server computes groups of all rows, whatever is joined with them: so an error of one is an error of the query.
#[test]
fn what_fails_in_a_group_that_a_join_has_no_use_for_is_given_back() {
    let world = seeded(9);
    let (few, many) = (world.rows[2].len() as i64, world.rows[0].len() as i64);
    assert!(few < many);
    let joined = |least_failing: i64, is_distinct: bool, is_outer: bool| {
        let added = Box::new(constant(i128::from(i64::MAX - least_failing + 1)));
        let sum = Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(id(0)), added);
        let shown = if is_distinct { sum } else { aggregate(Function::Sum, Kind::Signed, Some(sum)) };
        let derived = Block {
            from: vec![from(&world, 0)],
            groups: if is_distinct { Vec::new() } else { vec![id(0)] },
            is_grouped: !is_distinct,
            is_distinct,
            outputs: vec![(500, id(0)), (501, shown)],
            ..Block::default()
        };
        let on = equal(Expr::Slot(500, Kind::Unsigned), id(2));
        let least = compare(Comparison::Less, Expr::Slot(500, Kind::Unsigned), constant(5));
        let on = Some(if is_outer { Expr::And(vec![on, least]) } else { on });
        let of_groups = From { source: Source::Query(Box::new(derived)), is_outer, on };
        let block = Block {
            from: vec![from(&world, 2), of_groups],
            outputs: outputs(vec![id(2)]),
            ..Block::default()
        };
        outcome(&world, &block, LIMITS)
    };
    for (is_distinct, is_outer) in [(false, false), (false, true), (true, false), (true, true)] {
        let fails = joined(many - 1, is_distinct, is_outer);
        assert!(matches!(fails, Outcome::GivenBack(Why::Overflow)), "{is_distinct} {is_outer}: {fails:?}");
        let Outcome::Rows(answer) = joined(many, is_distinct, is_outer) else { panic!("no answer") };
        assert_eq!(answer.rows() as i64, few, "{is_distinct} {is_outer}");
    }
}

/// A query is asked whether to stop about as often as it has batches of rows, or of pairs of rows, to go through.
fn asked(world: &World, block: &Block) -> usize {
    let count = AtomicUsize::new(0);
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let is_stopped = || count.fetch_add(1, Ordering::Relaxed) == usize::MAX;
    let query = Query::new(block.clone(), Texts::default());
    let limits = Limits { threads: 1, memory_bytes: 1 << 26 };
    let outcome = query.run(&mut world.db.begin(), &tables, limits, &is_stopped).unwrap();
    assert!(matches!(outcome, Outcome::Rows(_)));
    count.into_inner()
}

#[test]
fn not_in_that_is_tied_by_no_equality_does_not_go_through_all_pairs() {
    let world = world(&mut ChaCha8Rng::seed_from_u64(3), &[(6000, true), (5000, false)]);
    let not_in = |left: Expr, inner: Expr, tie: Option<Expr>| {
        let inner = Block {
            from: vec![from(&world, 1)],
            filter: tie,
            outputs: vec![(2000, inner)],
            ..Block::default()
        };
        let filter = Expr::Not(Box::new(Expr::InQuery(vec![left], Box::new(inner))));
        Block {
            from: vec![from(&world, 0)],
            filter: Some(filter),
            outputs: outputs(vec![id(0)]),
            ..Block::default()
        }
    };
    for tie in [equal(number(0), constant(3)), compare(Comparison::Less, number(1), number(0))] {
        let (tied, untied) = (not_in(id(0), id(1), Some(tie)), not_in(id(0), id(1), None));
        let (tied, untied) = (asked(&world, &tied), asked(&world, &untied));
        // The inner table is read three times.
        assert!(tied < 3 * untied, "{tied}, and {untied} without a tie");
    }
}
