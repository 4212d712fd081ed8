//! Tables that only the rows around them tie together: `domain.rs`.

use pando_analytic::{
    Block, Comparison, Expr, From, Function, Kind, Operation, Outcome, Query, Source, Texts, Value,
};
use pando_query::Why;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::world::*;

/// What ties two tables to a third one: as conditions, and as a test. Whether all pairs are made.
struct Ties {
    what: &'static str,
    conditions: Vec<Expr>,
    test: fn(&Row, &Row, &Row) -> bool,
    has_all_pairs: bool,
}

fn is_same(a: Option<i16>, b: Option<i16>) -> bool {
    a.is_some() && a == b
}

fn all_ties() -> Vec<Ties> {
    let x = || Expr::Constant(Value::Text(b"x".to_vec()), TEXT);
    let next = Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(number(0)), Box::new(constant(1)));
    vec![
        Ties {
            what: "two columns",
            conditions: vec![equal(number(1), number(0)), equal(id(2), id(0))],
            test: |o, a, c| is_same(a.number, o.number) && c.id == o.id,
            has_all_pairs: false,
        },
        Ties {
            what: "one column",
            conditions: vec![equal(id(1), id(0)), equal(id(0), id(2))],
            test: |o, a, c| a.id == o.id && c.id == o.id,
            has_all_pairs: false,
        },
        Ties {
            what: "one column that is often the same, or NULL",
            conditions: vec![equal(number(1), number(0)), equal(number(2), number(0))],
            test: |o, a, c| is_same(a.number, o.number) && is_same(c.number, o.number),
            has_all_pairs: false,
        },
        Ties {
            what: "columns whose values are the same in many rows, and other conditions",
            conditions: vec![
                equal(number(1), number(0)),
                equal(number(2), id(0)),
                compare(Comparison::Less, id(1), id(2)),
                compare(Comparison::NotEqual, id(1), id(0)),
                compare(Comparison::NotEqual, text(2), x()),
            ],
            test: |o, a, c| {
                let is_tied = is_same(a.number, o.number) && is_same(c.number, i16::try_from(o.id).ok());
                is_tied && a.id < c.id && a.id != o.id && c.text != "x"
            },
            has_all_pairs: false,
        },
        Ties {
            what: "texts",
            conditions: vec![equal(text(1), text(0)), equal(id(2), id(0))],
            test: |o, a, c| a.text == o.text && c.id == o.id,
            has_all_pairs: true,
        },
        Ties {
            what: "texts that are equal to the same",
            conditions: vec![equal(text(1), text(0)), equal(text(2), text(0)), equal(id(1), id(0))],
            test: |o, a, c| a.text == o.text && c.text == o.text && a.id == o.id,
            has_all_pairs: false,
        },
        Ties {
            what: "what may be NULL on both sides",
            conditions: vec![compare(Comparison::Same, number(1), number(0)), equal(id(2), id(0))],
            test: |o, a, c| a.number == o.number && c.id == o.id,
            has_all_pairs: true,
        },
        Ties {
            what: "a computed number",
            conditions: vec![equal(number(1), next), equal(id(2), id(0))],
            test: |o, a, c| is_same(a.number, o.number.map(|number| number + 1)) && c.id == o.id,
            has_all_pairs: true,
        },
        Ties {
            what: "one table alone",
            conditions: vec![equal(number(1), number(0))],
            test: |o, a, _| is_same(a.number, o.number),
            has_all_pairs: true,
        },
    ]
}

fn small(seed: u64) -> World {
    world(&mut ChaCha8Rng::seed_from_u64(seed), &[(60, true), (70, true), (50, true), (40, false)])
}

fn nest(world: &World, tables: &[u32], on: Expr) -> From {
    let nest = tables.iter().map(|table| from(world, *table)).collect();
    From { source: Source::Nest(nest), is_outer: true, on: Some(on) }
}

/// The pairs that are tied to a row.
fn tied<'a>(world: &'a World, of: &Row, test: fn(&Row, &Row, &Row) -> bool) -> Vec<(&'a Row, &'a Row)> {
    let pairs = world.rows[1].iter().flat_map(|a| world.rows[2].iter().map(move |c| (a, c)));
    pairs.filter(|(a, c)| test(of, a, c)).collect()
}

/// Whether two tables were joined by nothing.
fn makes_all_pairs(world: &World, block: &Block) -> bool {
    let Outcome::Rows(answer) = outcome(world, block, LIMITS) else { panic!("given back") };
    answer.operators.iter().any(|operator| operator.name == "join" && operator.what.is_empty())
}

#[test]
fn a_left_join_of_tables_that_only_the_left_side_ties_together_does_not_make_all_pairs() {
    for (seed, ties) in (0..3).flat_map(|seed| all_ties().into_iter().map(move |ties| (seed, ties))) {
        let world = small(seed);
        let block = Block {
            from: vec![from(&world, 0), nest(&world, &[1, 2], Expr::And(ties.conditions))],
            outputs: outputs(vec![id(0), id(1), id(2)]),
            ..Block::default()
        };
        let mut expected = Vec::new();
        for o in &world.rows[0] {
            let pairs = tied(&world, o, ties.test);
            expected.extend(pairs.iter().map(|(a, c)| format!("{}|{}|{}", o.id, a.id, c.id)));
            if pairs.is_empty() {
                expected.push(format!("{}|NULL|NULL", o.id));
            }
        }
        let what = format!("{}, seed {seed}", ties.what);
        assert_eq!(sorted(ask(&world, &block)), sorted(expected.clone()), "{what}");
        assert_eq!(makes_all_pairs(&world, &block), ties.has_all_pairs, "{what}");
        // Where the lonely rows are thrown away it is a join of three tables.
        let block = Block { filter: Some(compare(Comparison::Less, id(1), constant(1000))), ..block };
        expected.retain(|row| !row.contains("NULL"));
        assert_eq!(sorted(ask(&world, &block)), sorted(expected), "{what}, as a join");
    }
}

#[test]
fn queries_of_tables_that_only_their_ties_connect_do_not_make_all_pairs() {
    for (seed, ties) in (3..6).flat_map(|seed| all_ties().into_iter().map(move |ties| (seed, ties))) {
        let world = small(seed);
        let what = format!("{}, seed {seed}", ties.what);
        let inner = |is_grouped: bool, output: (u32, Expr)| Block {
            from: vec![from(&world, 1), from(&world, 2)],
            filter: Some(Expr::And(ties.conditions.clone())),
            is_grouped,
            outputs: vec![output],
            ..Block::default()
        };
        let count = inner(true, (2000, aggregate(Function::Rows, Kind::Signed, None)));
        let most = inner(true, (2001, aggregate(Function::Max, Kind::Unsigned, Some(id(1)))));
        let exists = || Expr::Exists(Box::new(inner(false, (2002, constant(1)))));
        let all = |o: &Row| tied(&world, o, ties.test);
        let block = |filter: Option<Expr>, values: Vec<Expr>| Block {
            from: vec![from(&world, 0)],
            filter,
            outputs: outputs(std::iter::once(id(0)).chain(values).collect()),
            ..Block::default()
        };
        // Groups are made by what is equal: not by the rows of both together.
        let has_groups =
            !matches!(ties.what, "columns whose values are the same in many rows, and other conditions");
        let has_groups = has_groups && ties.what != "what may be NULL on both sides";
        if has_groups {
            let of_values = block(
                None,
                vec![
                    Expr::Scalar(Box::new(count), Kind::Signed),
                    Expr::Scalar(Box::new(most), Kind::Unsigned),
                ],
            );
            let expected = world.rows[0].iter().map(|o| {
                let pairs = all(o);
                format!("{}|{}|{}", o.id, pairs.len(), shown(pairs.iter().map(|(a, _)| a.id).max()))
            });
            assert_eq!(sorted(ask(&world, &of_values)), sorted(expected.collect()), "{what}: values");
            assert_eq!(makes_all_pairs(&world, &of_values), ties.has_all_pairs, "{what}: values");
        }
        for (has_some, condition) in [(true, exists()), (false, Expr::Not(Box::new(exists())))] {
            let of_those = block(Some(condition), Vec::new());
            let expected = world.rows[0].iter().filter(|o| all(o).is_empty() != has_some);
            let expected = expected.map(|o| o.id.to_string()).collect();
            assert_eq!(sorted(ask(&world, &of_those)), sorted(expected), "{what}: EXISTS {has_some}");
            assert_eq!(makes_all_pairs(&world, &of_those), ties.has_all_pairs, "{what}: EXISTS {has_some}");
        }
        let marked = block(None, vec![exists()]);
        let expected = world.rows[0].iter().map(|o| format!("{}|{}", o.id, u8::from(!all(o).is_empty())));
        assert_eq!(sorted(ask(&world, &marked)), sorted(expected.collect()), "{what}: EXISTS as a value");
    }
}

/// IN is a tie, where nothing is left open by a NULL, and where the rows of the query are those of its tables.
#[test]
fn in_ties_tables_together() {
    let world = small(7);
    let inner = |limit| Block {
        from: vec![from(&world, 1), from(&world, 2)],
        filter: Some(equal(number(1), number(0))),
        outputs: vec![(2000, id(2))],
        limit,
        ..Block::default()
    };
    let is_in = |o: &Row| {
        world.rows[1].iter().any(|a| is_same(a.number, o.number))
            && world.rows[2].iter().any(|c| c.id == o.id)
    };
    let within = |block| Expr::InQuery(vec![id(0)], Box::new(block));
    let block = |condition| Block {
        from: vec![from(&world, 0)],
        filter: Some(condition),
        outputs: outputs(vec![id(0)]),
        ..Block::default()
    };
    let expected = |has_some: bool| {
        let of = world.rows[0].iter().filter(|o| is_in(o) == has_some);
        sorted(of.map(|o| o.id.to_string()).collect())
    };
    assert_eq!(sorted(ask(&world, &block(within(inner(None))))), expected(true));
    assert!(!makes_all_pairs(&world, &block(within(inner(None)))));
    assert_eq!(sorted(ask(&world, &block(Expr::Not(Box::new(within(inner(None))))))), expected(false));
    // Two values of two tables; with a limit it is a matter of all pairs which rows there are.
    let both = |limit| Block {
        filter: None,
        outputs: vec![(2000, id(2)), (2001, number(1))],
        order: vec![(id(1), false), (id(2), false)],
        ..inner(limit)
    };
    let within = |block| Expr::InQuery(vec![id(0), number(0)], Box::new(block));
    assert_eq!(sorted(ask(&world, &block(within(both(None))))), expected(true));
    assert!(!makes_all_pairs(&world, &block(within(both(None)))));
    let first = world.rows[1][0].number;
    let of_first = world.rows[0].iter().filter(|o| o.id < 20 && is_same(o.number, first));
    let of_first = sorted(of_first.map(|o| o.id.to_string()).collect());
    assert_eq!(sorted(ask(&world, &block(within(both(Some(20)))))), of_first);
}

/// The rows around are themselves those of joins, of groups, of the first rows of an order; some of what ties is NULL there.
#[test]
fn what_ties_tables_together_comes_from_rows_of_any_kind() {
    for seed in 0..4 {
        let world = small(seed);
        let derived = |slot: u32| Expr::Slot(slot, Kind::Signed);
        let of_block =
            |block: Block| From { source: Source::Query(Box::new(block)), is_outer: false, on: None };
        let pairs = |is_outer: bool, test: &dyn Fn(&Row, &Row) -> bool| {
            let mut pairs = Vec::new();
            for o in &world.rows[0] {
                let before = pairs.len();
                pairs.extend(world.rows[3].iter().filter(|p| test(o, p)).map(|p| (Some(o.id), Some(p.id))));
                if is_outer && pairs.len() == before {
                    pairs.push((Some(o.id), None));
                }
            }
            pairs
        };
        let by_number = |o: &Row, p: &Row| is_same(o.number, p.number);
        let by_id = |o: &Row, p: &Row| o.id == p.id + 25;
        let inner = From { on: Some(equal(number(0), number(3))), ..from(&world, 3) };
        let shifted = Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(id(3)), Box::new(constant(25)));
        let groups = Block {
            from: vec![from(&world, 0)],
            groups: vec![number(0)],
            is_grouped: true,
            outputs: vec![(500, number(0)), (501, aggregate(Function::Count, Kind::Signed, Some(number(0))))],
            ..Block::default()
        };
        let first = Block {
            from: vec![from(&world, 0)],
            outputs: vec![(500, number(0)), (501, id(0))],
            order: vec![(Expr::Slot(501, Kind::Unsigned), true)],
            limit: Some(30),
            ..Block::default()
        };
        let numbers = |rows: &[Row]| rows.iter().map(|row| row.number.map(i64::from)).collect::<Vec<_>>();
        let mut distinct = numbers(&world.rows[0]);
        distinct.sort_unstable();
        distinct.dedup();
        let counted = distinct.iter().map(|of| {
            let count = numbers(&world.rows[0]).iter().filter(|other| *other == of && of.is_some()).count();
            (*of, Some(count as i64))
        });
        let wide = |pairs: Vec<(Option<u32>, Option<u32>)>| {
            pairs.into_iter().map(|(a, b)| (a.map(i64::from), b.map(i64::from))).collect::<Vec<_>>()
        };
        let firsts =
            world.rows[0][30..].iter().map(|row| (row.number.map(i64::from), Some(i64::from(row.id))));
        let cases = [
            ("a join", vec![from(&world, 0), inner], (id(0), id(3)), wide(pairs(false, &by_number))),
            (
                "a left join",
                vec![from(&world, 0), outer(&world, 3, equal(number(0), number(3)))],
                (id(0), id(3)),
                wide(pairs(true, &by_number)),
            ),
            (
                "a left join by a computed number",
                vec![from(&world, 0), outer(&world, 3, equal(id(0), shifted))],
                (id(0), id(3)),
                wide(pairs(true, &by_id)),
            ),
            ("groups", vec![of_block(groups)], (derived(500), derived(501)), counted.collect()),
            ("first rows", vec![of_block(first)], (derived(500), derived(501)), firsts.collect()),
        ];
        for (what, mut from, (first, second), around) in cases {
            let on = Expr::And(vec![equal(id(1), first.clone()), equal(number(2), second.clone())]);
            from.push(nest(&world, &[1, 2], on));
            let block =
                Block { from, outputs: outputs(vec![first, second, id(1), id(2)]), ..Block::default() };
            let mut expected = Vec::new();
            for (first, second) in around {
                let before = expected.len();
                for a in world.rows[1].iter().filter(|a| Some(i64::from(a.id)) == first) {
                    let others = world.rows[2].iter().filter(|c| c.number.is_some());
                    for c in others.filter(|c| c.number.map(i64::from) == second) {
                        expected.push(format!("{}|{}|{}|{}", shown(first), shown(second), a.id, c.id));
                    }
                }
                if expected.len() == before {
                    expected.push(format!("{}|{}|NULL|NULL", shown(first), shown(second)));
                }
            }
            assert_eq!(sorted(ask(&world, &block)), sorted(expected), "{what}, seed {seed}");
        }
    }
}

/// Conditions of ON on the right side alone connect its tables, and a LEFT JOIN in it stays one.
#[test]
fn the_right_side_of_a_left_join_is_joined_by_what_is_said_of_it() {
    for seed in 0..3 {
        let world = small(seed);
        let on = Expr::And(vec![equal(number(1), number(2)), equal(id(1), id(0))]);
        let block = Block {
            from: vec![from(&world, 0), nest(&world, &[1, 2], on)],
            outputs: outputs(vec![id(0), id(1), id(2)]),
            ..Block::default()
        };
        let mut expected = Vec::new();
        for o in &world.rows[0] {
            let pairs = tied(&world, o, |o, a, c| is_same(a.number, c.number) && a.id == o.id);
            expected.extend(pairs.iter().map(|(a, c)| format!("{}|{}|{}", o.id, a.id, c.id)));
            if pairs.is_empty() {
                expected.push(format!("{}|NULL|NULL", o.id));
            }
        }
        assert_eq!(sorted(ask(&world, &block)), sorted(expected), "seed {seed}");
        assert!(!makes_all_pairs(&world, &block));

        let inner = vec![from(&world, 1), from(&world, 2), outer(&world, 3, equal(number(3), number(2)))];
        for rejects in [false, true] {
            let on = Expr::And(vec![equal(number(1), number(0)), equal(id(2), id(0))]);
            let of_nest = From { source: Source::Nest(inner.clone()), is_outer: true, on: Some(on) };
            let filter = rejects.then(|| compare(Comparison::NotEqual, id(1), constant(3)));
            let block = Block {
                from: vec![from(&world, 0), of_nest],
                filter,
                outputs: outputs(vec![id(0), id(1), id(3)]),
                ..Block::default()
            };
            let mut expected = Vec::new();
            for o in &world.rows[0] {
                let pairs = tied(&world, o, |o, a, c| is_same(a.number, o.number) && c.id == o.id);
                for (a, c) in &pairs {
                    let partners: Vec<_> =
                        world.rows[3].iter().filter(|d| is_same(d.number, c.number)).collect();
                    expected.extend(partners.iter().map(|d| (o.id, Some(a.id), Some(d.id))));
                    if partners.is_empty() {
                        expected.push((o.id, Some(a.id), None));
                    }
                }
                if pairs.is_empty() {
                    expected.push((o.id, None, None));
                }
            }
            expected.retain(|(_, a, _)| !rejects || a.is_some_and(|a| a != 3));
            let expected = expected.into_iter().map(|(o, a, d)| format!("{o}|{}|{}", shown(a), shown(d)));
            assert_eq!(sorted(ask(&world, &block)), sorted(expected.collect()), "seed {seed} {rejects}");
        }
    }
}

#[test]
fn pairs_of_many_rows_that_nothing_connects_are_given_back_where_few_are_wanted() {
    let world = world(&mut ChaCha8Rng::seed_from_u64(1), &[(20, false), (1100, false), (1100, false)]);
    let ties = vec![equal(text(1), text(0)), equal(id(2), id(0))];
    let block = |ties| Block {
        from: vec![from(&world, 0), nest(&world, &[1, 2], Expr::And(ties))],
        outputs: outputs(vec![id(0), id(1)]),
        ..Block::default()
    };
    assert!(matches!(outcome(&world, &block(ties.clone()), LIMITS), Outcome::GivenBack(Why::Pairs)));
    assert!(Query::new(block(ties.clone()), Texts::default()).why_not().is_none(), "it depends on the rows");
    let few = compare(Comparison::Less, id(1), constant(50));
    let rows = ask(&world, &block(ties.into_iter().chain([few]).collect()));
    let of = |o: &Row| world.rows[1].iter().filter(|a| a.id < 50 && a.text == o.text).count().max(1);
    assert_eq!(rows.len(), world.rows[0].iter().map(of).sum::<usize>());
}

/// How many rows the joins of a query had at most.
fn most_joined(world: &World, block: &Block) -> u64 {
    let Outcome::Rows(answer) = outcome(world, block, LIMITS) else { panic!("given back") };
    let joins = answer.operators.iter().filter(|operator| operator.name.contains("join"));
    joins.map(|operator| operator.rows).max().unwrap_or(0)
}

/// The last row of each group by a query that is tied to another table: `r JOIN e ON e.id = (SELECT MAX(id) FROM e WHERE e.r = r.id)`. Of all pairs
/// hardly any is left, so the value is joined first, and the other table by it.
#[test]
fn the_value_of_a_tied_query_joins_tables_that_nothing_else_connects() {
    for seed in 0..3 {
        let world = seeded(seed);
        let tied = |function, of, kind| {
            let block = Block {
                from: vec![From { source: renamed(from(&world, 1).source, 7), is_outer: false, on: None }],
                filter: Some(equal(number(7), id(2))),
                outputs: vec![(3000, aggregate(function, kind, Some(of)))],
                is_grouped: true,
                ..Block::default()
            };
            Expr::Scalar(Box::new(block), kind)
        };
        let largest = |o: &Row| {
            let of_group = world.rows[1].iter().filter(|row| row.number.map(i64::from) == Some(o.id.into()));
            of_group.map(|row| row.id).max()
        };
        let last = || tied(Function::Max, id(7), Kind::Unsigned);
        let block = |filter| Block {
            from: vec![from(&world, 2), from(&world, 0)],
            filter: Some(filter),
            outputs: outputs(vec![id(2), id(0)]),
            ..Block::default()
        };
        let by_value = block(equal(id(0), last()));
        let expected: Vec<_> =
            world.rows[2].iter().filter_map(|o| Some(format!("{}|{}", o.id, largest(o)?))).collect();
        assert!(!expected.is_empty());
        assert_eq!(sorted(ask(&world, &by_value)), sorted(expected), "seed {seed}");
        assert!(most_joined(&world, &by_value) <= 300, "seed {seed}: all pairs");
        // A number that is one of nothing, too.
        let count = || tied(Function::Count, id(7), Kind::Signed);
        let by_count = block(equal(count(), id(0)));
        let expected = world.rows[2].iter().map(|o| {
            let of_group = world.rows[1].iter().filter(|row| row.number.map(i64::from) == Some(o.id.into()));
            format!("{}|{}", o.id, of_group.count())
        });
        assert_eq!(sorted(ask(&world, &by_count)), sorted(expected.collect()), "seed {seed}");
        assert!(most_joined(&world, &by_count) <= 300, "seed {seed}: all pairs");
        // Both sides are queries, one of which is tied to nothing.
        let all = Block {
            from: vec![From { source: renamed(from(&world, 1).source, 8), is_outer: false, on: None }],
            outputs: vec![(3001, aggregate(Function::Min, Kind::Unsigned, Some(id(8))))],
            is_grouped: true,
            ..Block::default()
        };
        let sum = Expr::Arithmetic(
            Operation::Add,
            Kind::Signed,
            Box::new(Expr::Scalar(Box::new(all), Kind::Unsigned)),
            Box::new(id(0)),
        );
        let by_both = block(equal(sum, last()));
        let expected: Vec<_> =
            world.rows[2].iter().filter_map(|o| Some(format!("{}|{}", o.id, largest(o)?))).collect();
        assert_eq!(sorted(ask(&world, &by_both)), sorted(expected), "seed {seed}");
        assert!(most_joined(&world, &by_both) <= 700, "seed {seed}: all pairs");
        // What is asked of one table alone is asked before there are pairs.
        let own = Block {
            from: vec![From { source: renamed(from(&world, 1).source, 9), is_outer: false, on: None }],
            outputs: vec![(3002, aggregate(Function::Max, Kind::Unsigned, Some(id(9))))],
            is_grouped: true,
            ..Block::default()
        };
        let of_one = block(equal(id(0), Expr::Scalar(Box::new(own), Kind::Unsigned)));
        let expected = world.rows[2].iter().map(|o| format!("{}|299", o.id));
        assert_eq!(sorted(ask(&world, &of_one)), sorted(expected.collect()), "seed {seed}");
        assert!(most_joined(&world, &of_one) <= 700, "seed {seed}: all pairs");
    }
}

/// The columns of a table by the names of another.
fn renamed(source: Source, to: u32) -> Source {
    match source {
        Source::Table { table, first, parts, rows, mut columns, filter } => {
            columns.iter_mut().for_each(|column| column.slot = to * 10 + column.slot % 10);
            Source::Table { table, first, parts, rows, columns, filter }
        }
        other => other,
    }
}
