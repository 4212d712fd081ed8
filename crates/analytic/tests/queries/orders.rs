//! The first rows of an order, of tables and of joins.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use pando_analytic::{Block, Comparison, Expr, Function, Kind, Operation, Outcome, Value};
use pando_query::Why;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::*;

/// What rows are sorted by, as text and as a model.
type Key<'a> = (Expr, &'a dyn Fn(&Pair<'_>) -> Option<String>);

/// A row of the first table, and its partner of the second, if there is one.
type Pair<'a> = (&'a Row, Option<&'a Row>);

/// Numbers that are ordered as texts.
fn ordered(number: i64) -> String {
    format!("{:020}", i128::from(number) + (1 << 40))
}

#[test]
fn the_first_rows_of_an_order_are_those_of_all_rows() {
    let keys: [Key<'_>; 4] = [
        (number(0), &|(a, _)| a.number.map(|number| ordered(number.into()))),
        (text(0), &|(a, _)| Some(a.text.to_ascii_lowercase())),
        (number(1), &|(_, b)| b.and_then(|b| b.number).map(|number| ordered(number.into()))),
        (id(0), &|(a, _)| Some(ordered(a.id.into()))),
    ];
    let of_ids: [Key<'_>; 2] = [keys[3].clone(), (id(1), &|(_, b)| b.map(|b| ordered(b.id.into())))];
    let mut random = ChaCha8Rng::seed_from_u64(17);
    for round in 0..120 {
        let world = if round % 30 == 0 { seeded(round) } else { seeded(round / 30 * 30) };
        // Alone; joined; with a partner or without; only with one.
        let form = random.random_range(0..4);
        let limit = random.random_range(0..40u64);
        let skip = if random.random_bool(0.3) { random.random_range(0..30u64) } else { 0 };
        let least = random.random_range(0..300);
        let mut order: Vec<(Key<'_>, bool)> = Vec::new();
        for _ in 0..random.random_range(1..3) {
            let key = &keys[random.random_range(0..if form == 0 { 2 } else { 3 })];
            order.push((key.clone(), random.random_bool(0.5)));
        }
        order.extend(of_ids[..if form == 0 { 1 } else { 2 }].iter().map(|key| (key.clone(), false)));
        let on = || equal(number(0), number(1));
        let mut block = Block {
            from: vec![from(&world, 0)],
            filter: Some(compare(Comparison::Greater, id(0), constant(least))),
            outputs: outputs(vec![id(0), text(0)]),
            order: order.iter().map(|((expr, _), descends)| (expr.clone(), *descends)).collect(),
            skip,
            limit: Some(limit),
            ..Block::default()
        };
        match form {
            0 => {}
            1 => {
                block.from.push(from(&world, 1));
                block.filter = block.filter.map(|filter| Expr::And(vec![filter, on()]));
            }
            _ => block.from.push(outer(&world, 1, on())),
        }
        if form == 3 {
            let has_partner = Expr::Not(Box::new(Expr::IsNull(Box::new(id(1)))));
            block.filter = block.filter.map(|filter| Expr::And(vec![filter, has_partner]));
        }
        let mut pairs: Vec<Pair<'_>> = Vec::new();
        for a in world.rows[0].iter().filter(|a| i128::from(a.id) > least) {
            let partners =
                world.rows[1].iter().filter(|b| form > 0 && a.number.is_some() && b.number == a.number);
            let before = pairs.len();
            pairs.extend(partners.map(|b| (a, Some(b))));
            if pairs.len() == before && matches!(form, 0 | 2) {
                pairs.push((a, None));
            }
        }
        pairs.sort_by(|one, other| {
            let compared = order.iter().map(|((_, key), descends)| {
                let compared = key(one).cmp(&key(other));
                if *descends {
                    compared.reverse()
                } else {
                    compared
                }
            });
            compared.fold(Ordering::Equal, Ordering::then)
        });
        let rows = pairs.iter().skip(skip as usize).take(limit as usize);
        let expected: Vec<String> = rows.map(|(a, _)| format!("{}|{}", a.id, a.text)).collect();
        assert_eq!(ask(&world, &block), expected, "round {round}: form {form}, {:?}", block.order);
    }
}

/// Without an order they come as the rows do, if few rows have so many of them; else all are found, and sorted.
#[test]
fn the_first_different_rows_are_found_among_few() {
    let random = &mut ChaCha8Rng::seed_from_u64(3);
    let world = world(random, &[(70_000, true), (500, false)]);
    let block = |exprs: Vec<Expr>, skip, limit| Block {
        from: vec![from(&world, 0)],
        outputs: outputs(exprs),
        is_distinct: true,
        skip,
        limit: Some(limit),
        ..Block::default()
    };
    let met = |block: &Block| match outcome(&world, block, LIMITS) {
        Outcome::Rows(answer) => answer.rows_met,
        Outcome::GivenBack(why) => panic!("{why:?}"),
    };
    let shown_rows = |row: &Row| format!("{}|{}", shown(row.number), row.text);
    let mut different: Vec<String> = Vec::new();
    for row in world.rows[0].iter().map(shown_rows) {
        if !different.contains(&row) {
            different.push(row);
        }
    }
    assert_eq!(different.len(), 61 * 4, "numbers from -30 to 29, and NULL");
    for (skip, limit) in [(0, 5), (3, 10), (0, 240), (200, 100)] {
        let rows = different.iter().skip(skip as usize).take(limit as usize).cloned();
        let asked = block(vec![number(0), text(0)], skip, limit);
        let is_whole = skip + limit > different.len() as u64;
        let found = ask(&world, &asked);
        let expected: Vec<String> = rows.collect();
        match is_whole {
            false => assert_eq!(found, expected, "{skip} {limit}"),
            true => assert_eq!(found.len(), different.len() - skip as usize),
        }
        assert_eq!(met(&asked) < 10_000, !is_whole, "{skip} {limit}");
    }
    let ids = block(vec![id(0)], 1000, 3);
    assert_eq!(ask(&world, &ids), ["1000", "1001", "1002"]);
    assert!(met(&ids) < 10_000);
    // There are not so many.
    for (skip, limit, expected) in
        [(0, 100, vec!["", "ab", "longer", "x"]), (2, 9, vec!["longer", "x"]), (4, 1, vec![])]
    {
        let texts = block(vec![text(0)], skip, limit);
        assert_eq!(ask(&world, &texts), expected, "{skip} {limit}");
        assert_eq!(met(&texts), 70_000);
    }
    // Few rows pass the condition, and all are in the table's last part.
    let late = Block {
        filter: Some(compare(Comparison::Greater, id(0), constant(69_900))),
        ..block(vec![id(0)], 0, 2)
    };
    assert_eq!(ask(&world, &late), ["69901", "69902"]);
    // A join is made once, of all rows.
    let mut joined = block(vec![text(1)], 0, 2);
    joined.from.push(from(&world, 1));
    joined.filter = Some(equal(id(0), id(1)));
    assert_eq!(ask(&world, &joined), ["", "ab"]);
}

/// Numbers that might be so much lower or higher: whether another plan might sort the rows that are wanted otherwise.
#[test]
fn rows_whose_order_is_open_are_given_back() {
    let world = seeded(14);
    let real = |expr: Expr| Expr::Convert(Kind::Real, Box::new(expr));
    let rows = world.rows[0].len() as u64;
    let moved = |expr: Expr, by: f64| {
        Expr::Real(Operation::Add, Box::new(expr), Box::new(Expr::Constant(Value::Real(by), Kind::Real)))
    };
    let near = |expr: Expr, by: f64| {
        let ends = [-by, by].map(|by| Box::new(moved(expr.clone(), by)));
        let [one, other] = ends;
        Expr::Near(Box::new(expr), one, other)
    };
    let block = |order: Vec<(Expr, bool)>, skip, limit| Block {
        from: vec![from(&world, 0)],
        outputs: outputs(vec![id(0)]),
        order,
        skip,
        limit: Some(limit),
        ..Block::default()
    };
    let ids = |rows: std::ops::Range<u64>| rows.map(|id| id.to_string()).collect::<Vec<_>>();
    // Apart from each other, in both directions, up to the last row.
    for (skip, limit) in [(0, 10), (5, 1), (0, 0), (3, rows), (rows, 3), (rows - 1, 1)] {
        let end = rows.min(skip + limit);
        let up = block(vec![(near(real(id(0)), 0.4), false)], skip, limit);
        assert_eq!(ask(&world, &up), ids(skip.min(end)..end), "{skip} {limit}");
        let down = block(vec![(near(real(id(0)), 0.4), true)], skip, limit);
        let mut expected = ids(rows - end..rows - skip.min(end));
        expected.reverse();
        assert_eq!(ask(&world, &down), expected, "{skip} {limit}");
    }
    let given_back =
        |block: Block| matches!(outcome(&world, &block, LIMITS), Outcome::GivenBack(Why::Unsure));
    assert!(given_back(block(vec![(near(real(id(0)), 0.6), false)], 0, 10)));
    // The row behind the limit counts, and those that are behind it do not.
    let step = |at: i128| {
        let is_before = compare(Comparison::Less, id(0), constant(at));
        let far = Expr::Arithmetic(Operation::Multiply, Kind::Signed, Box::new(id(0)), Box::new(constant(3)));
        let close =
            Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(id(0)), Box::new(constant(2 * at - 2)));
        real(Expr::Case(Kind::Signed, vec![(is_before, far)], Box::new(close)))
    };
    for (limit, is_open) in [(18, false), (19, false), (20, true), (21, true)] {
        let by = vec![(near(step(20), 0.9), false)];
        assert_eq!(given_back(block(by.clone(), 0, limit)), is_open, "{limit}");
        assert_eq!(given_back(block(by, limit, 0)), is_open, "{limit}");
    }
    // Equal points are told apart by the next key, NULLs too; ranges are not.
    let number = || real(number(0));
    let mut sorted: Vec<&Row> = world.rows[0].iter().collect();
    sorted.sort_by_key(|row| (row.number, row.id));
    let expected: Vec<String> = sorted.iter().take(500).map(|row| row.id.to_string()).collect();
    assert_eq!(ask(&world, &block(vec![(near(number(), 0.0), false), (id(0), false)], 0, 500)), expected);
    assert!(given_back(block(vec![(near(number(), 0.1), false), (id(0), false)], 0, 500)));
    // Behind keys that tell rows apart, nothing is open.
    let both = block(vec![(id(0), false), (near(number(), 5.0), false)], 2, 4);
    assert_eq!(ask(&world, &both), ids(2..6));
    assert!(given_back(block(vec![(text(0), false), (near(real(id(0)), 5.0), false)], 0, 4)));
}

/// Groups of texts that are equal, and not the same, of one table.
#[test]
fn the_first_row_of_a_table_gives_a_group_its_text_where_that_is_known() {
    let world = seeded(19);
    let constant_text = |text: &str| Expr::Constant(Value::Text(text.into()), TEXT);
    // NULL is not less.
    let below = |bound: i128| compare(Comparison::Less, number(0), constant(bound));
    let whens = vec![(below(-10), constant_text("one")), (below(10), constant_text("ONE"))];
    let group = Expr::Case(TEXT, whens, Box::new(constant_text("Two")));
    let block = |first_stands: bool| Block {
        from: vec![from(&world, 0)],
        groups: vec![group.clone(), text(0)],
        is_grouped: true,
        outputs: outputs(vec![
            group.clone(),
            text(0),
            aggregate(Function::Rows, Kind::Signed, None),
            aggregate(Function::Max, Kind::Unsigned, Some(id(0))),
        ]),
        first_stands,
        ..Block::default()
    };
    assert!(matches!(outcome(&world, &block(false), LIMITS), Outcome::GivenBack(Why::Undetermined)));
    let mut groups: BTreeMap<(String, &str), (&str, u64, u32)> = BTreeMap::new();
    for row in &world.rows[0] {
        let shown = match row.number {
            Some(number) if number < -10 => "one",
            Some(number) if number < 10 => "ONE",
            _ => "Two",
        };
        let group = groups.entry((shown.to_lowercase(), row.text)).or_insert((shown, 0, 0));
        (group.1, group.2) = (group.1 + 1, row.id);
    }
    let expected: Vec<String> = groups
        .iter()
        .map(|((_, text), (shown, rows, last))| format!("{shown}|{text}|{rows}|{last}"))
        .collect();
    assert!(groups.values().any(|group| group.0 == "one") && groups.values().any(|group| group.0 == "ONE"));
    assert_eq!(sorted(ask(&world, &block(true))), sorted(expected));
    // Rows of joins come in no order.
    let joined = Block { from: vec![from(&world, 0), from(&world, 1)], ..block(true) };
    let joined = Block { filter: Some(equal(id(0), id(1))), ..joined };
    assert!(matches!(outcome(&world, &joined, LIMITS), Outcome::GivenBack(Why::Undetermined)));
}
