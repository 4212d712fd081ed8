//! Tables of an own database with random rows, and how queries about them are said.

use std::path::Path;
use std::sync::Arc;

use pando_analytic::{
    Block, Comparison, Expr, From, Function, Kind, Outcome, Query, Slot, Source, TableColumn, Texts, Value,
};
use pando_query::{Form, Limits, Place};
use pandodb::layout::{ColumnType, Kind as Stored, NewColumn, Source as Added, Value as AddedValue};
use pandodb::{Db, LockWait, Options, SimVfs, Table, TableSpec, TreeConfig, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const LIMITS: Limits = Limits { threads: 3, memory_bytes: 1 << 24 };
pub(crate) const TEXT: Kind = Kind::Text(0);

#[derive(Clone)]
pub(crate) struct Row {
    pub id: u32,
    pub number: Option<i16>,
    pub text: &'static str,
}

pub(crate) struct World {
    pub db: Arc<Db>,
    pub tables: Vec<Arc<Table>>,
    pub rows: Vec<Vec<Row>>,
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
pub(crate) fn world(random: &mut ChaCha8Rng, counts: &[(usize, bool)]) -> World {
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
pub(crate) fn id(table: u32) -> Expr {
    Expr::Slot(table * 10, Kind::Unsigned)
}

pub(crate) fn number(table: u32) -> Expr {
    Expr::Slot(table * 10 + 1, Kind::Signed)
}

pub(crate) fn text(table: u32) -> Expr {
    Expr::Slot(table * 10 + 2, TEXT)
}

pub(crate) fn from(world: &World, table: u32) -> From {
    let column = |slot: Slot, kind, place, form| TableColumn { slot, kind, place, form, distinct: 0 };
    let key = Place::Key { offset: 0, size: 4, is_reversed: false };
    let columns = vec![
        column(table * 10, Kind::Unsigned, key, Form::Unsigned),
        column(table * 10 + 1, Kind::Signed, Place::Stored(0), Form::Signed),
        column(table * 10 + 2, TEXT, Place::Stored(1), Form::Presence),
    ];
    let rows = world.rows[table as usize].len() as u64;
    From {
        source: Source::Table {
            table: table as usize,
            first: table as usize,
            parts: 1,
            rows,
            columns,
            filter: None,
        },
        is_outer: false,
        on: None,
    }
}

pub(crate) fn outer(world: &World, table: u32, on: Expr) -> From {
    From { is_outer: true, on: Some(on), ..from(world, table) }
}

pub(crate) fn compare(comparison: Comparison, a: Expr, b: Expr) -> Expr {
    Expr::Compare(comparison, Box::new(a), Box::new(b))
}

pub(crate) fn equal(a: Expr, b: Expr) -> Expr {
    compare(Comparison::Equal, a, b)
}

pub(crate) fn constant(value: i128) -> Expr {
    Expr::Constant(Value::Number(value), Kind::Signed)
}

pub(crate) fn aggregate(function: Function, kind: Kind, of: Option<Expr>) -> Expr {
    Expr::Aggregate(function, kind, of.map(Box::new))
}

pub(crate) fn outputs(exprs: Vec<Expr>) -> Vec<(Slot, Expr)> {
    exprs.into_iter().enumerate().map(|(at, expr)| (1000 + at as u32, expr)).collect()
}

pub(crate) fn outcome(world: &World, block: &Block, limits: Limits) -> Outcome {
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let mut texts = Texts::default();
    // As a collation without cases would.
    texts.collations.push(Arc::new(|text: &[u8], to: &mut Vec<u8>| to.extend(text.to_ascii_lowercase())));
    let query = Query::new(block.clone(), texts);
    query.run(&mut world.db.begin(), &tables, limits, &|| false).unwrap()
}

/// The rows as text, in their order.
pub(crate) fn ask(world: &World, block: &Block) -> Vec<String> {
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

pub(crate) fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

pub(crate) fn shown(value: Option<impl ToString>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

pub(crate) fn seeded(seed: u64) -> World {
    world(&mut ChaCha8Rng::seed_from_u64(seed), &[(700, true), (300, true), (40, false)])
}
