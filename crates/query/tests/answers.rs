//! Queries against a model: random rows and conditions, what is committed, spilled, changed by the transaction itself, and
//! of older layouts; and the queries that are given back.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use pando_query::{
    Aggregate, Bounds, Cell, Collation, Column, Comparison, Constant, Expression, Filter, Form, Limits,
    Operator, Outcome, Place, Query, Why,
};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{Db, LockWait, Options, SimVfs, Table, TableChange, TableSpec, TreeConfig, Txn, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PATH: &str = "./db/t";
const LIMITS: Limits = Limits { threads: 3, memory_bytes: 1 << 20 };

/// id (in the key), a nullable number, a text.
type Row = (u32, Option<i16>, String);

fn new_column(name: &str, kind: Kind, size: u32, nullable: bool) -> NewColumn {
    let ty = ColumnType { kind, size, nullable, binary: false };
    NewColumn { name: name.into(), ty, source: Source::Added(Value::Null) }
}

fn database() -> (Arc<Db>, Arc<Table>) {
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/data/db")).unwrap();
    vfs.sync_dir(Path::new("/data")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 8 << 20;
    options.tree = TreeConfig {
        memtable_bytes: 4096,
        leaf_raw_bytes: 8192,
        fanout_max: 4,
        buffer_runs_max: 4,
        ..TreeConfig::default()
    };
    options.tree.run.segment_raw_bytes = 512;
    options.write_set_bytes = 8192;
    let files: Arc<dyn Vfs> = vfs;
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    let columns =
        Some(vec![new_column("number", Kind::Signed, 2, true), new_column("text", Kind::Varchar, 20, false)]);
    db.create_table(&TableSpec { columns, path: PATH.into(), ..TableSpec::default() }).unwrap();
    let table = db.open_table(PATH).unwrap();
    (db, table)
}

/// A row of the first layout.
fn encode((_, number, text): &Row) -> Vec<u8> {
    let mut row = vec![1, u8::from(number.is_none())];
    row.extend(number.iter().flat_map(|number| number.to_le_bytes()));
    row.push(text.len() as u8);
    row.extend_from_slice(text.as_bytes());
    row
}

fn put(txn: &mut Txn, table: &Table, row: &Row) {
    txn.put(table, 0, &row.0.to_be_bytes(), &encode(row), LockWait::Default).unwrap();
}

fn random_row(random: &mut ChaCha8Rng) -> Row {
    let number = random.random_bool(0.8).then(|| random.random_range(-20..20));
    (random.random_range(0..4000), number, ["ab", "", "x", "longer"][random.random_range(0..4)].into())
}

fn columns() -> Vec<Column> {
    let bytes = Collation(Arc::new(|a: &[u8], b: &[u8]| a.cmp(b)));
    vec![
        Column {
            table: 0,
            place: Place::Key { offset: 0, size: 4, is_reversed: false },
            form: Form::Unsigned,
        },
        Column { table: 0, place: Place::Stored(0), form: Form::Signed },
        Column { table: 0, place: Place::Stored(1), form: Form::Text(bytes) },
    ]
}

fn aggregates() -> Vec<Aggregate> {
    use Aggregate::*;
    vec![Rows, Count(1), Sum(1), Min(1), Max(2), Distinct(0), Distinct(2)]
}

fn number(value: i128) -> Constant {
    Constant::Number { value, scale: 0 }
}

fn filter() -> Filter {
    Filter::Or(vec![
        Filter::Not(Box::new(Filter::Compare(1, Comparison::Greater, number(5)))),
        Filter::And(vec![
            Filter::In(0, vec![number(7), number(70), number(700), Constant::Null]),
            Filter::Not(Box::new(Filter::IsNull(1))),
        ]),
    ])
}

fn passes((id, value, _): &Row) -> bool {
    let first = value.map(|value| value <= 5);
    let second = [7, 70, 700].contains(id) && value.is_some();
    first == Some(true) || second
}

/// The rows of the answer, sorted.
fn answer(txn: &mut Txn, table: &Table, query: &Query) -> Vec<Vec<Cell>> {
    let Outcome::Rows(mut rows) = query.run(txn, &[table], LIMITS, &|| false).unwrap() else {
        panic!("given back")
    };
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn expected<'a>(rows: impl Iterator<Item = &'a Row>, is_grouped: bool) -> Vec<Vec<Cell>> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
    if !is_grouped {
        groups.insert(Vec::new(), Vec::new());
    }
    for row in rows.filter(|row| passes(row)) {
        let key = if is_grouped { vec![row.2.clone()] } else { Vec::new() };
        groups.entry(key).or_default().push(row);
    }
    let tell = |(key, rows): (Vec<String>, Vec<&Row>)| {
        let numbers: Vec<i128> = rows.iter().filter_map(|row| row.1).map(i128::from).collect();
        let count = |n: usize| Cell::Number(n as i128);
        let mut cells: Vec<_> = key.into_iter().map(|text| Cell::Text(text.into_bytes())).collect();
        cells.push(count(rows.len()));
        cells.push(count(numbers.len()));
        cells.push(match numbers.len() {
            0 => Cell::Null,
            of => Cell::Sum(numbers.iter().sum(), of as u64),
        });
        cells.push(numbers.iter().min().map_or(Cell::Null, |min| Cell::Number(*min)));
        let max = rows.iter().map(|row| row.2.as_bytes()).max();
        cells.push(max.map_or(Cell::Null, |max| Cell::Text(max.to_vec())));
        cells.push(count(rows.len()));
        cells.push(count(rows.iter().map(|row| &row.2).collect::<BTreeSet<_>>().len()));
        cells
    };
    let mut rows: Vec<_> = groups.into_iter().map(tell).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn check(txn: &mut Txn, table: &Table, model: &BTreeMap<u32, Row>) {
    for groups in [vec![], vec![2]] {
        let is_grouped = !groups.is_empty();
        let query = Query {
            columns: columns(),
            filter: Some(filter()),
            groups,
            aggregates: aggregates(),
            ..Query::default()
        };
        assert_eq!(answer(txn, table, &query), expected(model.values(), is_grouped));
    }
}

fn filled(random: &mut ChaCha8Rng) -> (Arc<Db>, Arc<Table>, BTreeMap<u32, Row>) {
    let (db, table) = database();
    let mut model = BTreeMap::new();
    for _ in 0..60 {
        let mut txn = db.begin();
        for _ in 0..100 {
            let row = random_row(random);
            put(&mut txn, &table, &row);
            model.insert(row.0, row);
        }
        txn.commit().unwrap();
        db.run_jobs().unwrap();
    }
    (db, table, model)
}

#[test]
fn answers_are_those_of_a_model_with_own_writes_and_without_those_of_others() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (db, table, mut model) = filled(&mut random);
    let mut reader = db.begin();
    check(&mut reader, &table, &model);
    let mut other = db.begin();
    put(&mut other, &table, &(5000, Some(1), "unseen".into()));
    other.commit().unwrap();
    check(&mut reader, &table, &model);
    for step in 0..500 {
        let row = random_row(&mut random);
        if step % 3 == 0 {
            reader.delete(&table, 0, &row.0.to_be_bytes(), LockWait::Default).unwrap();
            model.remove(&row.0);
        } else {
            put(&mut reader, &table, &row);
            model.insert(row.0, row);
        }
    }
    check(&mut reader, &table, &model);
}

#[test]
fn of_no_rows_a_query_without_groups_tells_something_and_one_with_groups_nothing() {
    let (db, table) = database();
    check(&mut db.begin(), &table, &BTreeMap::new());
}

#[test]
fn rows_of_an_older_layout_have_what_columns_were_added_with() {
    let (db, table) = database();
    let mut txn = db.begin();
    (0..10).for_each(|id| put(&mut txn, &table, &(id, Some(-1), "a".into())));
    txn.commit().unwrap();
    drop(table);
    let column = |name: &str, kind, size, nullable, source| NewColumn {
        name: name.into(),
        ty: ColumnType { kind, size, nullable, binary: false },
        source,
    };
    let columns = vec![
        column("number", Kind::Signed, 8, true, Source::Column(0)),
        column("added", Kind::Unsigned, 1, false, Source::Added(Value::Bytes(vec![9]))),
    ];
    let change = TableChange {
        path: PATH.into(),
        columns: Some(columns),
        index_names: Vec::new(),
        indexes: None,
        compression: None,
        auto_increment: None,
        definition: None,
        ..TableChange::default()
    };
    db.alter_tables(&mut [change]).unwrap();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    let new_row = [&[2u8, 0][..], &i64::MIN.to_le_bytes(), &[200]].concat();
    txn.put(&table, 0, &99u32.to_be_bytes(), &new_row, LockWait::Default).unwrap();
    let columns = vec![
        Column { table: 0, place: Place::Stored(0), form: Form::Signed },
        Column { table: 0, place: Place::Stored(1), form: Form::Unsigned },
    ];
    let aggregates = vec![Aggregate::Sum(0), Aggregate::Sum(1), Aggregate::Min(0)];
    let query = Query { columns, filter: None, groups: Vec::new(), aggregates, ..Query::default() };
    let least = i128::from(i64::MIN);
    let sums = vec![Cell::Sum(least - 10, 11), Cell::Sum(290, 11), Cell::Number(least)];
    assert_eq!(answer(&mut txn, &table, &query), [sums]);
}

#[test]
fn texts_that_are_equal_and_not_the_same_give_a_query_back() {
    let (db, table) = database();
    let mut txn = db.begin();
    for (id, text) in ["a", "b", "A"].into_iter().enumerate() {
        put(&mut txn, &table, &(id as u32, None, text.into()));
    }
    let ignoring_case =
        Collation(Arc::new(|a: &[u8], b: &[u8]| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())));
    let columns = vec![Column { table: 0, place: Place::Stored(1), form: Form::Text(ignoring_case) }];
    let mut query = Query {
        columns,
        filter: None,
        groups: vec![0],
        aggregates: vec![Aggregate::Rows],
        ..Query::default()
    };
    let outcome = query.run(&mut txn, &[&table], LIMITS, &|| false).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Undetermined)));
    query.groups.clear();
    query.aggregates = vec![Aggregate::Min(0)];
    let outcome = query.run(&mut txn, &[&table], LIMITS, &|| false).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Undetermined)));
    query.aggregates = vec![Aggregate::Max(0), Aggregate::Distinct(0)];
    assert_eq!(answer(&mut txn, &table, &query), [[Cell::Text(b"b".to_vec()), Cell::Number(2)]]);
}

#[test]
fn what_is_too_large_or_stopped_or_unknown_is_given_back() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let (db, table, _) = filled(&mut random);
    let mut txn = db.begin();
    let query = |groups| Query {
        columns: columns(),
        filter: None,
        groups,
        aggregates: vec![Aggregate::Rows],
        ..Query::default()
    };
    let small = Limits { threads: 2, memory_bytes: 4096 };
    let outcome = query(vec![0]).run(&mut txn, &[&table], small, &|| false).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Memory)));
    let outcome = query(vec![2]).run(&mut txn, &[&table], LIMITS, &|| true).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Stopped)));
    let outcome = query(vec![3]).run(&mut txn, &[&table], LIMITS, &|| false).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Unsupported)));
}

/// Found by the random queries: `(a - (b * 3000000000)) = 1.5` is true of no row, and an error of the server nevertheless.
#[test]
fn numbers_that_are_too_large_are_noticed_whatever_they_are_compared_with() {
    let (db, table) = database();
    let mut txn = db.begin();
    put(&mut txn, &table, &(1, Some(5), "a".into()));
    let (columns, huge) = (columns(), 3_000_000_000_000_000_000);
    let first = columns.len();
    let expression = |operator| Expression { operator, scale: 0, bounds: Bounds::Signed };
    let between_numbers = Constant::Number { value: 15, scale: 1 };
    for (comparison, constant) in [
        (Comparison::Equal, between_numbers.clone()),
        (Comparison::NotEqual, between_numbers.clone()),
        (Comparison::Less, between_numbers),
        (Comparison::Equal, Constant::Null),
    ] {
        let query = Query {
            columns: columns.clone(),
            expressions: vec![
                expression(Operator::Constant(Some(huge))),
                expression(Operator::Multiply(1, first)),
            ],
            filter: Some(Filter::Compare(first + 1, comparison, constant)),
            aggregates: vec![Aggregate::Rows],
            ..Query::default()
        };
        let outcome = query.run(&mut txn, &[&table], LIMITS, &|| false).unwrap();
        assert!(matches!(outcome, Outcome::GivenBack(Why::Overflow)), "{comparison:?}: {outcome:?}");
    }
}

/// A row as `encode` wrote it, or as far as its columns go.
fn decode(key: &[u8], row: &[u8]) -> Row {
    let (is_null, rest) = (row[1] & 1 != 0, &row[2..]);
    let number = (!is_null).then(|| i16::from_le_bytes([rest[0], rest[1]]));
    let text = &rest[if is_null { 0 } else { 2 }..];
    assert_eq!(text.len(), 1 + usize::from(text[0]));
    let id = u32::from_be_bytes(key.try_into().unwrap());
    (id, number, String::from_utf8(text[1..].to_vec()).unwrap())
}

#[test]
fn a_filter_of_rows_leaves_those_that_count_and_some_more() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (db, table, mut model) = filled(&mut random);
    db.checkpoint().unwrap();
    table.dicts()[0].tree().compact_all().unwrap();
    let filter = |filter| Query { columns: columns(), filter: Some(filter), ..Query::default() };
    let rare = Filter::Compare(1, Comparison::Equal, number(7));
    let is_rare = |row: &Row| row.1 == Some(7);
    let mut txn = db.begin();
    for round in 0..2 {
        for (condition, holds) in
            [(filter(rare.clone()), &is_rare as &dyn Fn(&Row) -> bool), (filter(self::filter()), &passes)]
        {
            let condition = condition.into_row_filter(&table).unwrap();
            let rows = txn.filtered_rows(&table, condition.wants(), &[0, 1], None, None).unwrap();
            let mut found = BTreeMap::new();
            let visited = rows.unwrap().visit(&condition, |key, row| {
                let row = decode(key, row);
                found.insert(row.0, row);
                true
            });
            assert!(!visited.unwrap());
            assert!(
                found.iter().all(|(id, row)| model.get(id) == Some(row)),
                "nothing but rows of the table"
            );
            assert!(model.values().filter(|row| holds(row)).all(|row| found.contains_key(&row.0)));
            assert!(found.len() < model.len(), "{} of {}", found.len(), model.len());
        }
        if round == 0 {
            let row = (17, Some(7), "own".into());
            put(&mut txn, &table, &row);
            model.insert(17, row);
        }
    }
}

#[test]
fn a_condition_that_can_fail_is_no_filter_of_rows() {
    let (_, table) = database();
    let query = |filter, expressions| Query { columns: columns(), filter, expressions, ..Query::default() };
    let sum = |bounds| Expression { operator: Operator::Add(0, 1), scale: 0, bounds };
    let condition = || Some(Filter::Compare(3, Comparison::Greater, number(5)));
    assert!(query(condition(), vec![sum(Bounds::Signed)]).into_row_filter(&table).is_some());
    // The sum of an unsigned number and one with a sign may be negative.
    assert!(query(condition(), vec![sum(Bounds::Unsigned)]).into_row_filter(&table).is_none());
    assert!(query(None, vec![]).into_row_filter(&table).is_none());
    assert!(query(condition(), vec![]).into_row_filter(&table).is_none(), "of what is not there");
}

/// Segments of rows of consecutive ids, whose numbers ascend with them: most conditions leave few of the segments.
#[test]
fn segments_without_a_row_that_counts_are_passed_over() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (db, table) = database();
    let mut txn = db.begin();
    let mut model = BTreeMap::new();
    for id in 0..4000 {
        let number = (id % 400 > 0).then_some((id / 10) as i16 - 200);
        let row = (id, number, "a".into());
        put(&mut txn, &table, &row);
        model.insert(id, row);
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    table.dicts()[0].tree().compact_all().unwrap();
    let skipped = || db.metrics().rows_skipped.get();
    let before = skipped();
    for _ in 0..200 {
        let (slot, low) = match random.random_bool(0.5) {
            true => (0, random.random_range(-10..4010)),
            false => (1, random.random_range(-210..210)),
        };
        let high = low + random.random_range(0..100);
        let compare = |comparison, value| Filter::Compare(slot, comparison, number(value));
        let between =
            Filter::And(vec![compare(Comparison::GreaterOrEqual, low), compare(Comparison::Less, high)]);
        let filter = match random.random_range(0..3) {
            0 => between,
            1 => Filter::Or(vec![between, Filter::IsNull(1)]),
            _ => Filter::And(vec![Filter::Not(Box::new(between)), compare(Comparison::Greater, low - 20)]),
        };
        let passes = |(id, value, _): &&Row| {
            let value = if slot == 0 { Some(i128::from(*id)) } else { (*value).map(i128::from) };
            let between = value.map(|value| (low..high).contains(&value));
            match &filter {
                Filter::Or(_) => between == Some(true) || (*id % 400 == 0),
                Filter::And(parts) if matches!(parts[0], Filter::Not(_)) => {
                    between == Some(false) && value.is_some_and(|value| value > low - 20)
                }
                _ => between == Some(true),
            }
        };
        let count = model.values().filter(passes).count();
        let query = Query {
            columns: columns(),
            filter: Some(filter.clone()),
            aggregates: vec![Aggregate::Rows],
            ..Query::default()
        };
        assert_eq!(answer(&mut txn, &table, &query), [[Cell::Number(count as i128)]], "{filter:?}");
    }
    assert!(skipped() - before > 200 * 2000, "{} rows were passed over", skipped() - before);
}

/// A table of 4,000 rows in leaves, with nothing above them.
fn still() -> (Arc<Db>, Arc<Table>) {
    let (db, table) = database();
    let mut txn = db.begin();
    (0..4000).for_each(|id| put(&mut txn, &table, &(id, Some(1), "some text".into())));
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    table.dicts()[0].tree().compact_all().unwrap();
    (db, table)
}

/// Of a table that lies still, `COUNT(*)` is in the indexes of its runs: not a block of its rows is read.
#[test]
fn rows_are_counted_without_reading_them() {
    let (db, table) = still();
    let read = || db.metrics().cache_read_bytes.get();
    let count = |filter| {
        let query =
            Query { columns: columns(), filter, aggregates: vec![Aggregate::Rows], ..Query::default() };
        let before = read();
        assert_eq!(answer(&mut db.begin(), &table, &query), [[Cell::Number(4000)]]);
        read() - before
    };
    let (of_all, of_some) = (count(None), count(Some(Filter::Compare(1, Comparison::NotEqual, number(7)))));
    assert!(of_all * 2 < of_some, "{of_all} bytes, and {of_some} to look at a column");
    assert_eq!(count(None), 0, "indexes are in the cache");
}

/// Where no segment has a row that counts no block comes, and nevertheless the query can be stopped.
#[test]
fn a_query_that_passes_everything_by_is_stopped() {
    let (db, table) = still();
    let query = Query {
        columns: columns(),
        filter: Some(Filter::Compare(1, Comparison::Equal, number(2))),
        aggregates: vec![Aggregate::Rows],
        ..Query::default()
    };
    let asked = std::sync::atomic::AtomicU32::new(0);
    let is_stopped = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 2;
    let one = Limits { threads: 1, ..LIMITS };
    let outcome = query.run(&mut db.begin(), &[&table], one, &is_stopped).unwrap();
    assert!(matches!(outcome, Outcome::GivenBack(Why::Stopped)), "{outcome:?}");
    assert_eq!(db.metrics().rows_aggregated.get(), 0, "nothing was read");
}

/// As a CASE with many branches is said, and a sum of many numbers: each is computed from the one before it.
fn chain(length: usize) -> Query {
    let columns = columns();
    let first = columns.len();
    let constant =
        |value| Expression { operator: Operator::Constant(Some(value)), scale: 0, bounds: Bounds::Signed };
    let mut expressions = vec![constant(1), constant(0)];
    for step in 0..length {
        let before = first + expressions.len() - 1;
        let is_it = Filter::Compare(1, Comparison::Equal, number(step as i128 % 40 - 20));
        let operator = match step % 2 {
            0 => Operator::If(is_it, first, before),
            _ => Operator::Add(before, first + 1),
        };
        expressions.push(Expression { operator, scale: 0, bounds: Bounds::Signed });
    }
    let last = first + expressions.len() - 1;
    Query { columns, expressions, aggregates: vec![Aggregate::Sum(last)], ..Query::default() }
}

/// On a stack that is smaller than any thread of the server or the engine has.
fn on_a_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap()
    })
}

#[test]
fn chains_of_expressions_take_no_stack() {
    let (db, table) = database();
    let mut txn = db.begin();
    (0..50).for_each(|id| put(&mut txn, &table, &(id, Some((id % 40) as i16 - 20), "x".into())));
    txn.commit().unwrap();
    let limits = Limits { threads: 1, ..LIMITS };
    on_a_small_stack(|| {
        let mut txn = db.begin();
        let mut query = chain(10_000);
        query.renumber(&|slot| slot);
        let Outcome::Rows(rows) = query.run(&mut txn, &[&table], limits, &|| false).unwrap() else {
            panic!("given back")
        };
        // Even numbers are those of the conditions; the last step that is true of a row gives 1.
        assert_eq!(rows, [[Cell::Sum(25, 50)]]);
        let too_many = chain(pando_query::EXPRESSIONS_MAX);
        assert!(!too_many.is_answerable(&[&table]));
    });
}

#[test]
fn conditions_stand_in_each_other_only_so_deep() {
    let (db, table) = database();
    let nested = |levels: usize| {
        let innermost = Filter::Compare(1, Comparison::Greater, number(0));
        (1..levels).fold(innermost, |filter, level| match level % 3 {
            0 => Filter::And(vec![Filter::Not(Box::new(Filter::IsNull(1))), filter]),
            1 => Filter::Or(vec![filter, Filter::IsNull(1)]),
            _ => Filter::Not(Box::new(filter)),
        })
    };
    let query = |levels| Query {
        columns: columns(),
        filter: Some(nested(levels)),
        aggregates: vec![Aggregate::Rows],
        ..Query::default()
    };
    on_a_small_stack(|| {
        assert!(query(pando_query::DEPTH_MAX).is_answerable(&[&table]));
        assert!(!query(pando_query::DEPTH_MAX + 1).is_answerable(&[&table]));
        let limits = Limits { threads: 1, ..LIMITS };
        let outcome = query(pando_query::DEPTH_MAX).run(&mut db.begin(), &[&table], limits, &|| false);
        assert!(matches!(outcome, Ok(Outcome::Rows(_))));
    });
}
