//! Joins of all kinds and queries within queries, against a model that goes over all pairs of rows.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pando_analytic::{
    Block, Bound, Comparison, Expr, Frame, From, Function, Kind, Operation, Other, Outcome, Query,
    SetOperation, Slot, Source, TableColumn, Texts, Value, Window, WindowFunction,
};
use pando_query::{Form, Limits, Place, Why};
use pandodb::layout::{ColumnType, Kind as Stored, NewColumn, Source as Added, Value as AddedValue};
use pandodb::{Db, LockWait, Options, SimVfs, Table, TableSpec, TreeConfig, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LIMITS: Limits = Limits { threads: 3, memory_bytes: 1 << 24 };
const TEXT: Kind = Kind::Text(0);

#[derive(Clone)]
struct Row {
    id: u32,
    number: Option<i16>,
    text: &'static str,
}

struct World {
    db: Arc<Db>,
    tables: Vec<Arc<Table>>,
    rows: Vec<Vec<Row>>,
}

fn new_column(name: &str, kind: Stored, size: u32, nullable: bool) -> NewColumn {
    let ty = ColumnType { kind, size, nullable, binary: false };
    NewColumn { name: name.into(), ty, source: Added::Added(AddedValue::Null) }
}

fn encode(row: &Row) -> Vec<u8> {
    let mut bytes = vec![1, u8::from(row.number.is_none())];
    bytes.extend(row.number.iter().flat_map(|number| number.to_le_bytes()));
    bytes.push(row.text.len() as u8);
    bytes.extend_from_slice(row.text.as_bytes());
    bytes
}

/// Tables of so many rows; some of them have no NULL.
fn world(random: &mut ChaCha8Rng, counts: &[(usize, bool)]) -> World {
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/data/db")).unwrap();
    vfs.sync_dir(Path::new("/data")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 8 << 20;
    options.tree =
        TreeConfig { memtable_bytes: 4096, leaf_raw_bytes: 8192, fanout_max: 4, ..TreeConfig::default() };
    options.tree.run.segment_raw_bytes = 512;
    let files: Arc<dyn Vfs> = vfs;
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    let mut world = World { db, tables: Vec::new(), rows: Vec::new() };
    for (number, (count, has_nulls)) in counts.iter().enumerate() {
        let path = format!("./db/t{number}");
        let columns = Some(vec![
            new_column("number", Stored::Signed, 2, true),
            new_column("text", Stored::Varchar, 20, false),
        ]);
        world.db.create_table(&TableSpec { columns, path: path.clone(), ..TableSpec::default() }).unwrap();
        let table = world.db.open_table(&path).unwrap();
        let mut txn = world.db.begin();
        let mut rows = Vec::new();
        for id in 0..*count as u32 {
            let number = (!has_nulls || random.random_bool(0.9)).then(|| random.random_range(-30..30));
            let text = ["ab", "", "x", "longer"][random.random_range(0..4)];
            let row = Row { id, number, text };
            txn.put(&table, 0, &id.to_be_bytes(), &encode(&row), LockWait::Default).unwrap();
            rows.push(row);
        }
        txn.commit().unwrap();
        world.db.run_jobs().unwrap();
        world.tables.push(table);
        world.rows.push(rows);
    }
    world
}

/// Columns are named by ten times the table, and the place: id, number, text.
fn id(table: u32) -> Expr {
    Expr::Slot(table * 10, Kind::Unsigned)
}

fn number(table: u32) -> Expr {
    Expr::Slot(table * 10 + 1, Kind::Signed)
}

fn text(table: u32) -> Expr {
    Expr::Slot(table * 10 + 2, TEXT)
}

fn from(world: &World, table: u32) -> From {
    let column = |slot: Slot, kind, place, form| TableColumn { slot, kind, place, form, distinct: 0 };
    let key = Place::Key { offset: 0, size: 4, is_reversed: false };
    let columns = vec![
        column(table * 10, Kind::Unsigned, key, Form::Unsigned),
        column(table * 10 + 1, Kind::Signed, Place::Stored(0), Form::Signed),
        column(table * 10 + 2, TEXT, Place::Stored(1), Form::Presence),
    ];
    let rows = world.rows[table as usize].len() as u64;
    From {
        source: Source::Table { table: table as usize, parts: 1, rows, columns },
        is_outer: false,
        on: None,
    }
}

fn outer(world: &World, table: u32, on: Expr) -> From {
    From { is_outer: true, on: Some(on), ..from(world, table) }
}

fn compare(comparison: Comparison, a: Expr, b: Expr) -> Expr {
    Expr::Compare(comparison, Box::new(a), Box::new(b))
}

fn equal(a: Expr, b: Expr) -> Expr {
    compare(Comparison::Equal, a, b)
}

fn constant(value: i128) -> Expr {
    Expr::Constant(Value::Number(value), Kind::Signed)
}

fn aggregate(function: Function, kind: Kind, of: Option<Expr>) -> Expr {
    Expr::Aggregate(function, kind, of.map(Box::new))
}

fn outputs(exprs: Vec<Expr>) -> Vec<(Slot, Expr)> {
    exprs.into_iter().enumerate().map(|(at, expr)| (1000 + at as u32, expr)).collect()
}

fn outcome(world: &World, block: &Block, limits: Limits) -> Outcome {
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let mut texts = Texts::default();
    // As a collation without cases would.
    texts.collations.push(Arc::new(|text: &[u8], to: &mut Vec<u8>| to.extend(text.to_ascii_lowercase())));
    let query = Query::new(block.clone(), texts);
    query.run(&mut world.db.begin(), &tables, limits, &|| false).unwrap()
}

/// The rows as text, in their order.
fn ask(world: &World, block: &Block) -> Vec<String> {
    let Outcome::Rows(answer) = outcome(world, block, LIMITS) else { panic!("given back") };
    let cell = |value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => String::from_utf8(text).unwrap(),
    };
    let row = |row| {
        let cells: Vec<_> = (0..block.outputs.len()).map(|at| cell(answer.value(row, at))).collect();
        cells.join("|")
    };
    (0..answer.rows()).map(row).collect()
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn seeded(seed: u64) -> World {
    world(&mut ChaCha8Rng::seed_from_u64(seed), &[(700, true), (300, true), (40, false)])
}

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
    assert_eq!(why(&block, LIMITS), Why::Unsupported);
}

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
