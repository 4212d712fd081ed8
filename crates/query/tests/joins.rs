//! Joins, expressions and conditions on columns of several tables, against a model that goes over all pairs of rows.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::path::Path;
use std::sync::Arc;

use pando_query::{
    Aggregate, Bounds, Cell, Collation, Column, Comparison, Constant, DatePart, Expression, Filter, Form,
    Limits, Operator, Outcome, Place, Predicate, Query, Why,
};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{Db, LockWait, Options, SimVfs, Table, TableSpec, TreeConfig, Txn, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LIMITS: Limits = Limits { threads: 3, memory_bytes: 1 << 22 };

/// id in the key, a nullable number, a DATE, a text.
#[derive(Clone)]
struct Row {
    id: u32,
    number: Option<i16>,
    date: u32,
    text: &'static str,
}

struct World {
    db: Arc<Db>,
    tables: Vec<Arc<Table>>,
    rows: Vec<Vec<Row>>,
}

fn column(name: &str, kind: Kind, size: u32, nullable: bool) -> NewColumn {
    let ty = ColumnType { kind, size, nullable, binary: false };
    NewColumn { name: name.into(), ty, source: Source::Added(Value::Null) }
}

fn encode(row: &Row) -> Vec<u8> {
    let mut bytes = vec![1, u8::from(row.number.is_none())];
    bytes.extend(row.number.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend_from_slice(&row.date.to_le_bytes()[..3]);
    bytes.push(row.text.len() as u8);
    bytes.extend_from_slice(row.text.as_bytes());
    bytes
}

fn world(random: &mut ChaCha8Rng, counts: &[usize]) -> World {
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
    for (number, count) in counts.iter().enumerate() {
        let path = format!("./db/t{number}");
        let columns = Some(vec![
            column("number", Kind::Signed, 2, true),
            column("date", Kind::Unsigned, 3, false),
            column("text", Kind::Varchar, 20, false),
        ]);
        world.db.create_table(&TableSpec { columns, path: path.clone(), ..TableSpec::default() }).unwrap();
        let table = world.db.open_table(&path).unwrap();
        let mut txn = world.db.begin();
        let mut rows = Vec::new();
        for id in 0..*count as u32 {
            let number = random.random_bool(0.9).then(|| random.random_range(-8..8));
            let date = random.random_range(1990..1999) << 9
                | random.random_range(0..13) << 5
                | random.random_range(0..32);
            let text = ["ab", "", "x", "longer"][random.random_range(0..4)];
            let row = Row { id, number, date, text };
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

/// Four columns of each table.
fn columns(tables: usize) -> Vec<Column> {
    let bytes = Collation(Arc::new(|a: &[u8], b: &[u8]| a.cmp(b)));
    let of = |table| {
        let text = Form::Text(bytes.clone());
        [
            Column {
                table,
                place: Place::Key { offset: 0, size: 4, is_reversed: false },
                form: Form::Unsigned,
            },
            Column { table, place: Place::Stored(0), form: Form::Signed },
            Column { table, place: Place::Stored(1), form: Form::Unsigned },
            Column { table, place: Place::Stored(2), form: text },
        ]
    };
    (0..tables).flat_map(of).collect()
}

fn run(txn: &mut Txn, world: &World, query: &Query) -> Vec<Vec<Cell>> {
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let Outcome::Rows(mut rows) = query.run(txn, &tables, LIMITS, &|| false).unwrap() else {
        panic!("given back")
    };
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn number(value: i128) -> Constant {
    Constant::Number { value, scale: 0 }
}

/// The rows of a model: how many there are in each group, and a sum.
fn grouped(rows: impl Iterator<Item = (Vec<Cell>, Option<i128>)>) -> Vec<Vec<Cell>> {
    let mut groups: Vec<(Vec<Cell>, u64, i128, u64)> = Vec::new();
    for (key, value) in rows {
        let at = groups.iter().position(|group| group.0 == key).unwrap_or(groups.len());
        if at == groups.len() {
            groups.push((key, 0, 0, 0));
        }
        groups[at].1 += 1;
        if let Some(value) = value {
            groups[at].2 += value;
            groups[at].3 += 1;
        }
    }
    let mut rows: Vec<Vec<Cell>> = groups
        .into_iter()
        .map(|(mut key, count, sum, of)| {
            key.push(Cell::Number(count.into()));
            key.push(if of == 0 { Cell::Null } else { Cell::Sum(sum, of) });
            key
        })
        .collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn text(of: &str) -> Cell {
    Cell::Text(of.as_bytes().to_vec())
}

#[test]
fn a_star_of_three_tables_gives_what_all_their_pairs_give() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let world = world(&mut random, &[900, 60, 40]);
    // t0.number = t1.id's number column, not unique; t1.id = t2.id, unique; conditions on one, on two, on three.
    let expression = |operator| Expression { operator, scale: 0, bounds: Bounds::Signed };
    let query = Query {
        columns: columns(3),
        expressions: vec![
            expression(Operator::OfDate(DatePart::Year, 2)),
            expression(Operator::Multiply(1, 9)),
            expression(Operator::Subtract(13, 0)),
        ],
        equalities: vec![(1, 5), (4, 8)],
        filter: Some(Filter::And(vec![
            Filter::Compare(12, Comparison::Greater, number(1992)),
            Filter::Compare(4, Comparison::Less, number(30)),
            Filter::Or(vec![
                Filter::Compare(7, Comparison::Equal, Constant::Text(b"ab".to_vec(), collation())),
                Filter::CompareColumns(11, Comparison::NotEqual, 3),
            ]),
        ])),
        groups: vec![12, 11],
        aggregates: vec![Aggregate::Rows, Aggregate::Sum(14)],
    };
    let mut rows = Vec::new();
    for a in &world.rows[0] {
        for b in world.rows[1].iter().filter(|b| a.number.is_some() && a.number == b.number && b.id < 30) {
            for c in world.rows[2].iter().filter(|c| c.id == b.id) {
                if a.date >> 9 > 1992 && (b.text == "ab" || c.text != a.text) {
                    let product = a.number.zip(c.number).map(|(a, c)| i128::from(a) * i128::from(c));
                    let key = vec![Cell::Number((a.date >> 9).into()), text(c.text)];
                    rows.push((key, product.map(|product| product - i128::from(a.id))));
                }
            }
        }
    }
    assert!(rows.len() > 100, "the join has rows");
    assert_eq!(run(&mut world.db.begin(), &world, &query), grouped(rows.into_iter()));
}

fn collation() -> Collation {
    Collation(Arc::new(|a: &[u8], b: &[u8]| a.cmp(b)))
}

#[test]
fn two_equalities_between_two_tables_both_hold() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let world = world(&mut random, &[500, 200]);
    let query = Query {
        columns: columns(2),
        equalities: vec![(1, 5), (2, 6)],
        groups: vec![3],
        aggregates: vec![Aggregate::Rows, Aggregate::Sum(4)],
        ..Query::default()
    };
    let pairs = world.rows[0].iter().flat_map(|a| world.rows[1].iter().map(move |b| (a, b)));
    let equal = pairs.filter(|(a, b)| a.number.is_some() && a.number == b.number && a.date == b.date);
    let rows = equal.map(|(a, b)| (vec![text(a.text)], Some(b.id.into())));
    assert_eq!(run(&mut world.db.begin(), &world, &query), grouped(rows));
}

#[test]
fn a_condition_inside_of_a_sum_and_a_pattern_choose_rows() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let world = world(&mut random, &[800]);
    let has_e = Predicate(Arc::new(|text: &[u8]| text.contains(&b'e') || text.contains(&b'a')));
    let query = Query {
        columns: columns(1),
        expressions: vec![
            Expression { operator: Operator::Constant(Some(150)), scale: 2, bounds: Bounds::Decimal },
            Expression {
                operator: Operator::If(Filter::Not(Box::new(Filter::IsNull(1))), 1, 4),
                scale: 2,
                bounds: Bounds::Decimal,
            },
        ],
        filter: Some(Filter::Not(Box::new(Filter::Matches(3, has_e)))),
        groups: vec![3],
        aggregates: vec![Aggregate::Rows, Aggregate::Sum(5)],
        ..Query::default()
    };
    let passing = world.rows[0].iter().filter(|row| !row.text.contains(['e', 'a']));
    let value = |row: &Row| row.number.map_or(150, |number| i128::from(number) * 100);
    let rows = passing.map(|row| (vec![text(row.text)], Some(value(row))));
    assert_eq!(run(&mut world.db.begin(), &world, &query), grouped(rows));
}

#[test]
fn numbers_that_the_server_would_not_have_give_a_query_back() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let world = world(&mut random, &[50]);
    let given_back = |operator, bounds| {
        let query = Query {
            columns: columns(1),
            expressions: vec![Expression { operator, scale: 0, bounds }],
            aggregates: vec![Aggregate::Sum(4)],
            ..Query::default()
        };
        query.run(&mut world.db.begin(), &[&world.tables[0]], LIMITS, &|| false).unwrap()
    };
    let negative = given_back(Operator::Subtract(1, 0), Bounds::Unsigned);
    assert!(matches!(negative, Outcome::GivenBack(Why::Overflow)), "{negative:?}");
    assert!(matches!(given_back(Operator::Subtract(1, 0), Bounds::Signed), Outcome::Rows(_)));
    let unknown = given_back(Operator::Subtract(1, 9), Bounds::Signed);
    assert!(matches!(unknown, Outcome::GivenBack(Why::Unsupported)));
    let of_itself = given_back(Operator::Add(1, 4), Bounds::Signed);
    assert!(matches!(of_itself, Outcome::GivenBack(Why::Unsupported)));
}

/// Found by the random queries: the server goes over the table with the condition first, and meets a number that is too
/// large in a row that has no partner.
#[test]
fn a_condition_that_can_fail_is_not_taken_in_a_join_and_of_one_table_computed_for_all_rows() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let world = world(&mut random, &[50, 50]);
    let outcome = |tables: usize, bounds, condition: &dyn Fn(usize) -> Filter| {
        let expression = 4 * tables;
        let query = Query {
            columns: columns(tables),
            expressions: vec![Expression { operator: Operator::Subtract(0, 2), scale: 0, bounds }],
            equalities: if tables == 2 { vec![(0, 4)] } else { Vec::new() },
            filter: Some(condition(expression)),
            aggregates: vec![Aggregate::Rows],
            ..Query::default()
        };
        let tables: Vec<&Table> = world.tables[..tables].iter().map(|table| &**table).collect();
        query.run(&mut world.db.begin(), &tables, LIMITS, &|| false).unwrap()
    };
    let is_positive = |slot| Filter::Compare(slot, Comparison::Greater, number(0));
    // Of no row: what comes after it is not looked at.
    let never = |slot| Filter::And(vec![Filter::IsNull(0), is_positive(slot)]);
    for (condition, name) in [(&is_positive as &dyn Fn(usize) -> Filter, "alone"), (&never, "never")] {
        assert!(matches!(outcome(1, Bounds::Signed, condition), Outcome::Rows(_)), "{name}");
        assert!(matches!(outcome(2, Bounds::Signed, condition), Outcome::Rows(_)), "{name}");
        let of_one = outcome(1, Bounds::Unsigned, condition);
        assert!(matches!(of_one, Outcome::GivenBack(Why::Overflow)), "{name}: {of_one:?}");
        let of_two = outcome(2, Bounds::Unsigned, condition);
        assert!(matches!(of_two, Outcome::GivenBack(Why::Unsupported)), "{name}: {of_two:?}");
    }
}

/// Found by the random queries: `COUNT(DISTINCT (2 + 18446744073709551615))` of no rows is an error of the server.
#[test]
fn constants_that_are_too_large_are_not_taken_even_if_no_row_comes_to_them() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let world = world(&mut random, &[0]);
    let constant = |value| Operator::Constant(Some(value));
    for (second, is_taken) in [(1 << 61, true), (1 << 62, false)] {
        let operators = [constant(1 << 62), constant(second), Operator::Add(4, 5)];
        let expression = |operator| Expression { operator, scale: 0, bounds: Bounds::Signed };
        let query = Query {
            columns: columns(1),
            expressions: operators.into_iter().map(expression).collect(),
            aggregates: vec![Aggregate::Distinct(6)],
            ..Query::default()
        };
        let outcome = query.run(&mut world.db.begin(), &[&world.tables[0]], LIMITS, &|| false).unwrap();
        let is_none_of_ours = matches!(outcome, Outcome::GivenBack(Why::Unsupported));
        assert_eq!(is_none_of_ours, !is_taken, "{second}: {outcome:?}");
    }
}

#[test]
fn tables_that_nothing_connects_are_given_back() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let world = world(&mut random, &[50, 50]);
    let query = Query { columns: columns(2), aggregates: vec![Aggregate::Rows], ..Query::default() };
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let outcome = query.run(&mut world.db.begin(), &tables, LIMITS, &|| false).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Unsupported)));
}
