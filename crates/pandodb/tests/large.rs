//! Large values: at random, rows and the values that they refer to agree, whoever reads them, and nothing is left of those that no
//! row refers to any more.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{disk, for_each_row, open, spec};
use pandodb::large::{must_be_apart, references_of, Reference};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{
    Block, Db, Entries, Entry, Error, LargeValue, LoadEnd, LockMode, LockWait, LockedRead, OnDuplicate,
    RowEncoder, SimVfs, Table, TableChange, TableSpec, Txn, Vfs, Want,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const T: &str = "./db/t";
const KEYS: u32 = 40;

fn column(kind: Kind, size: u32, source: Source) -> NewColumn {
    let ty = ColumnType { kind, size, nullable: kind == Kind::Large, binary: true };
    NewColumn { name: String::new(), ty, source }
}

fn new(kind: Kind, size: u32) -> NewColumn {
    column(kind, size, Source::Added(Value::Bytes(vec![0; size as usize])))
}

fn columns() -> Vec<NewColumn> {
    vec![new(Kind::Large, 4), new(Kind::Unsigned, 2), new(Kind::Large, 4)]
}

/// A row: two values, perhaps NULL, and a number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    n: u16,
    values: [Option<Vec<u8>>; 2],
}

type Model = BTreeMap<u32, Row>;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut count = bytes.len();
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
    out.extend_from_slice(bytes);
}

/// The row's bytes; values that the row before had are referred to as it did.
fn encode(
    table: &Table,
    row: &Row,
    kept: &[(Vec<u8>, Reference)],
    large: &mut Vec<(u64, Vec<u8>)>,
) -> Vec<u8> {
    let nulls = u8::from(row.values[0].is_none()) | u8::from(row.values[1].is_none()) << 1;
    let mut out = vec![1, nulls];
    let mut kept = kept.to_vec();
    let mut put = |out: &mut Vec<u8>, value: &Option<Vec<u8>>| {
        let Some(value) = value else { return };
        if !must_be_apart(value) {
            return put_bytes(out, value);
        }
        let at = kept.iter().position(|(bytes, _)| bytes == value);
        let reference = at.map(|at| kept.remove(at).1).unwrap_or_else(|| {
            let id = table.next_large_value().unwrap();
            large.push((id, value.clone()));
            Reference { id, length: value.len() as u64 }
        });
        put_bytes(out, &reference.encode());
    };
    put(&mut out, &row.values[0]);
    out.extend_from_slice(&row.n.to_le_bytes());
    put(&mut out, &row.values[1]);
    out
}

fn views(large: &[(u64, Vec<u8>)]) -> Vec<LargeValue<'_>> {
    large.iter().map(|(id, bytes)| LargeValue { id: *id, bytes }).collect()
}

fn entries<'a>(key: &'a [u8], value: &'a [u8]) -> [Entry<'a>; 2] {
    let entry = |value| Entry { key, value, unique: true };
    [entry(value), entry(b"")]
}

fn insert(txn: &mut Txn, table: &Table, n: u32, row: &Row) -> pandodb::Result<()> {
    let mut large = Vec::new();
    let bytes = encode(table, row, &[], &mut large);
    txn.insert_row_with(table, &entries(&key(n), &bytes), &views(&large), OnDuplicate::Share)
}

fn resolve(txn: &mut Txn, table: &Table, bytes: &[u8], is_locked: bool) -> Row {
    let mut rest = &bytes[2..];
    let take = |txn: &mut Txn, rest: &mut &[u8]| {
        let (mut count, mut shift) = (0usize, 0);
        loop {
            let byte = rest[0];
            *rest = &rest[1..];
            count |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let value = rest[..count].to_vec();
        *rest = &rest[count..];
        match Reference::decode(&value) {
            Some(reference) => txn.large_value(table, reference, is_locked).unwrap().expect("it is there"),
            None => value,
        }
    };
    let first = (bytes[1] & 1 == 0).then(|| take(txn, &mut rest));
    let n = u16::from_le_bytes([rest[0], rest[1]]);
    rest = &rest[2..];
    let second = (bytes[1] & 2 == 0).then(|| take(txn, &mut rest));
    Row { n, values: [first, second] }
}

/// Values, and what a row has in place of them.
type Kept = Vec<(Vec<u8>, Reference)>;

/// The row as it is locked, its bytes and its values with the references that it has.
fn locked(txn: &mut Txn, table: &Table, n: u32) -> Option<(Vec<u8>, Row, Kept)> {
    let read = txn.get_locked(table, 0, &key(n), LockMode::Exclusive, LockWait::NoWait).unwrap();
    let LockedRead::Row(bytes) = read else { return None };
    let row = resolve(txn, table, &bytes, true);
    let mut references = Vec::new();
    references_of(table.layouts().unwrap(), &bytes, &mut references).unwrap();
    let kept = references
        .into_iter()
        .map(|reference| (txn.large_value(table, reference, true).unwrap().unwrap(), reference));
    let kept = kept.collect();
    Some((bytes, row, kept))
}

fn update(txn: &mut Txn, table: &Table, n: u32, change: impl FnOnce(&mut Row)) -> Row {
    let (old, mut row, kept) = locked(txn, table, n).unwrap();
    change(&mut row);
    let mut large = Vec::new();
    let bytes = encode(table, &row, &kept, &mut large);
    let (old, new) = ((key(n), old), (key(n), bytes));
    let (old, new) = (entries(&old.0, &old.1), entries(&new.0, &new.1));
    txn.update_row_with(table, &old, &new, &views(&large), false).unwrap();
    row
}

fn delete(txn: &mut Txn, table: &Table, n: u32) {
    let (old, ..) = locked(txn, table, n).unwrap();
    txn.delete_row(table, &entries(&key(n), &old)).unwrap();
}

fn all(txn: &mut Txn, table: &Arc<Table>) -> Model {
    let mut found = Vec::new();
    for_each_row(txn, table, 0, false, |key, value| found.push((key.to_vec(), value.to_vec())));
    let read = |(key, value): (Vec<u8>, Vec<u8>)| {
        (u32::from_be_bytes(key.try_into().unwrap()), resolve(txn, table, &value, false))
    };
    found.into_iter().map(read).collect()
}

/// The same by columns.
fn all_by_columns(txn: &mut Txn, table: &Table) -> Model {
    let layouts = table.layouts().unwrap().clone();
    let wants = [Want::WholeKey, Want::Stored(0), Want::Stored(1), Want::Stored(2)];
    let view = txn.view(table, 0).unwrap();
    let mut blocks = view.blocks(&layouts, &wants, None, None).unwrap();
    let mut found = Model::new();
    while let Some(block) = blocks.next().unwrap() {
        for row in 0..block.rows {
            let cell = |at: usize| block.vectors[at].get(row).map(<[u8]>::to_vec);
            let n = u16::from_le_bytes(cell(2).unwrap().try_into().unwrap());
            let key = u32::from_be_bytes(cell(0).unwrap().try_into().unwrap());
            assert!(found.insert(key, Row { n, values: [cell(1), cell(3)] }).is_none());
        }
    }
    found
}

/// Some of the rows, by columns of which some are read last, of these rows only.
fn some_by_late_columns(
    txn: &mut Txn,
    table: &Table,
    is_late: [bool; 4],
    is_wanted: fn(u32) -> bool,
) -> Model {
    let layouts = table.layouts().unwrap().clone();
    let wants = [Want::WholeKey, Want::Stored(0), Want::Stored(1), Want::Stored(2)];
    let view = txn.view(table, 0).unwrap();
    let mut blocks = view.blocks(&layouts, &wants, None, None).unwrap();
    blocks.read_late(&layouts, &wants, &is_late);
    let mut found = Model::new();
    while let Some(mut block) = blocks.next().unwrap() {
        let key = |block: &Block, row: u32| {
            u32::from_be_bytes(block.vectors[0].get(row as usize).unwrap().try_into().unwrap())
        };
        let mut rows: Vec<u32> =
            (0..block.rows as u32).filter(|row| is_late[0] || is_wanted(key(&block, *row))).collect();
        while !rows.is_empty() {
            let done = blocks.complete(&mut block, Some(&rows)).unwrap().unwrap();
            assert!(done > 0 && block.is_complete);
            for row in rows.drain(..done).collect::<Vec<_>>() {
                let cell = |at: usize| block.vectors[at].get(row as usize).map(<[u8]>::to_vec);
                let n = u16::from_le_bytes(cell(2).unwrap().try_into().unwrap());
                found.insert(key(&block, row), Row { n, values: [cell(1), cell(3)] });
            }
            block.is_complete = rows.is_empty();
        }
    }
    found.retain(|n, _| is_wanted(*n));
    found
}

/// Numbers of the values that there are.
fn count_large(db: &Arc<Db>) -> u64 {
    let rows = db.dictionary_rows().unwrap();
    let large = rows.into_iter().find(|row| row.name == "large").expect("the table has such a dictionary");
    large.figures.map_or(0, |figures| figures.tree.raw_bytes)
}

struct World {
    rng: ChaCha8Rng,
    vfs: Arc<SimVfs>,
    db: Arc<Db>,
    table: Arc<Table>,
    committed: Model,
}

impl World {
    fn new(seed: u64) -> World {
        let vfs = disk(seed);
        let db = open(&vfs).unwrap();
        db.create_table(&TableSpec { columns: Some(columns()), ..spec(T) }).unwrap();
        let table = db.open_table(T).unwrap();
        World { rng: ChaCha8Rng::seed_from_u64(seed), vfs, db, table, committed: Model::new() }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        Some(match self.rng.random_range(0..6) {
            0 => return None,
            1 => Reference { id: self.rng.random_range(0..50), length: 20_000 }.encode().to_vec(),
            2 | 3 => vec![self.rng.random(); self.rng.random_range(16 << 10..40 << 10)],
            _ => vec![self.rng.random(); self.rng.random_range(0..200)],
        })
    }

    fn row(&mut self) -> Row {
        Row { n: self.rng.random(), values: [self.value(), self.value()] }
    }

    fn change(&mut self, txn: &mut Txn, model: &mut Model) {
        let n = self.rng.random_range(0..KEYS);
        let row = self.row();
        match (model.contains_key(&n), self.rng.random_range(0..6)) {
            (false, _) => {
                insert(txn, &self.table, n, &row).unwrap();
                model.insert(n, row);
            }
            (true, 0) => {
                assert!(matches!(insert(txn, &self.table, n, &row), Err(pandodb::Error::Duplicate { .. })));
            }
            (true, 1 | 2) => {
                delete(txn, &self.table, n);
                model.remove(&n);
            }
            (true, 3) => {
                let one = self.rng.random_range(0..2);
                let row = update(txn, &self.table, n, |old| old.values[one].clone_from(&row.values[one]));
                model.insert(n, row);
            }
            (true, _) => _ = model.insert(n, update(txn, &self.table, n, |old| old.n = row.n)),
        }
    }

    fn transaction(&mut self) {
        let mut txn = self.db.begin();
        let mut model = self.committed.clone();
        for _ in 0..self.rng.random_range(1..6) {
            let (mark, before) = (txn.mark(), model.clone());
            for _ in 0..self.rng.random_range(1..4) {
                self.change(&mut txn, &mut model);
            }
            if self.rng.random_bool(0.2) {
                txn.rollback_to(mark).unwrap();
                model = before;
            }
        }
        if self.rng.random_bool(0.5) {
            assert_eq!(all(&mut txn, &self.table), model, "its own");
            assert_eq!(all_by_columns(&mut txn, &self.table), model, "its own, by columns");
        }
        match self.rng.random_range(0..5) {
            0 => txn.rollback(),
            _ => {
                txn.commit().unwrap();
                self.committed = model;
            }
        }
    }

    fn check(&self) {
        let mut txn = self.db.begin();
        assert_eq!(all(&mut txn, &self.table), self.committed);
        assert_eq!(all_by_columns(&mut txn, &self.table), self.committed);
        let wanted = self.committed.iter().filter(|(n, _)| *n % 3 == 0);
        let wanted: Model = wanted.map(|(n, row)| (*n, row.clone())).collect();
        for is_late in
            [[false, true, true, true], [false, false, true, true], [true, false, false, true], [true; 4]]
        {
            assert_eq!(
                some_by_late_columns(&mut txn, &self.table, is_late, |n| n % 3 == 0),
                wanted,
                "{is_late:?}"
            );
        }
        self.db.check_table(&self.table, &mut |_| true).unwrap();
    }

    fn reopen(&mut self) {
        self.vfs = self.vfs.crash();
        self.db = open(&self.vfs).unwrap();
        self.table = self.db.open_table(T).unwrap();
    }
}

#[test]
fn rows_and_their_large_values_agree_through_transactions_and_crashes() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        let mut old: Option<(Txn, Model, Arc<Table>)> = None;
        for step in 0..120 {
            world.transaction();
            match world.rng.random_range(0..12) {
                0 => world.db.run_jobs().unwrap(),
                1 => world.db.checkpoint().unwrap(),
                2 => {
                    old = None;
                    world.reopen();
                }
                3 | 4 => {
                    let mut txn = world.db.begin();
                    txn.open_snapshot();
                    old = Some((txn, world.committed.clone(), world.table.clone()));
                }
                5 if step > 20 => {
                    world.db.encrypt_table(T, 7).unwrap();
                }
                6 if step > 20 => {
                    world.db.key_rotation_looks_again();
                    world.db.encrypt_tables();
                }
                _ => {}
            }
            if let Some((txn, model, table)) = &mut old {
                assert_eq!(all(txn, table), *model, "seed {seed}, step {step}: an old snapshot");
                assert_eq!(all_by_columns(txn, table), *model, "seed {seed}, step {step}: by columns");
            }
            world.check();
        }
        drop(old);
        let mut txn = world.db.begin();
        let keys: Vec<u32> = world.committed.keys().copied().collect();
        keys.iter().for_each(|n| delete(&mut txn, &world.table, *n));
        txn.commit().unwrap();
        world.db.run_jobs().unwrap();
        world.db.compact_table(&world.table, &mut |_| true).unwrap();
        assert_eq!(count_large(&world.db), 0, "seed {seed}: nothing is left");
        drop(txn);
        world.db.encrypt_table(T, 7).unwrap();
        world.db.key_rotation_looks_again();
        world.db.encrypt_tables();
        assert!(world.db.key_uses().iter().all(|its| its.part.is_none()), "{:?}", world.db.key_uses());
    }
}

/// Values of rows that are wanted come in parts of a megabyte.
#[test]
fn large_values_of_late_columns_come_in_parts() {
    let world = World::new(2);
    let mut txn = world.db.begin();
    let mut model = Model::new();
    for n in 0..20u32 {
        let row =
            Row { n: n as u16, values: [Some(vec![n as u8; 3 << 17]), (n % 2 == 0).then(|| vec![1; 20])] };
        insert(&mut txn, &world.table, n, &row).unwrap();
        model.insert(n, row);
    }
    txn.commit().unwrap();
    world.db.checkpoint().unwrap();
    world.db.compact_table(&world.table, &mut |_| true).unwrap();
    let mut txn = world.db.begin();
    for is_late in [[false, true, true, true], [false, false, true, true]] {
        let found = some_by_late_columns(&mut txn, &world.table, is_late, |_| true);
        assert!(found == model, "{is_late:?}: {} rows", found.len());
    }
    let layouts = world.table.layouts().unwrap().clone();
    let wants = [Want::WholeKey, Want::Stored(0)];
    let view = txn.view(&world.table, 0).unwrap();
    let mut blocks = view.blocks(&layouts, &wants, None, None).unwrap();
    blocks.read_late(&layouts, &wants, &[false, true]);
    let mut block = blocks.next().unwrap().unwrap();
    assert!(block.rows > 3 && !block.is_complete, "{} rows", block.rows);
    assert_eq!(blocks.complete(&mut block, Some(&[1, 3])).unwrap(), Some(2));
    assert_eq!(block.vectors[1].get(3), Some([3; 3 << 17].as_slice()));
    assert_eq!(block.vectors[1].get(2), None, "nobody wants it");
    block.is_complete = false;
    assert_eq!(blocks.complete(&mut block, None).unwrap(), Some(2), "of all rows, a part");
}

#[test]
fn a_change_of_another_column_does_not_write_the_value() {
    let world = World::new(1);
    let value = vec![7; 1 << 20];
    let mut txn = world.db.begin();
    insert(&mut txn, &world.table, 1, &Row { n: 1, values: [Some(value.clone()), None] }).unwrap();
    txn.commit().unwrap();
    let mut txn = world.db.begin();
    update(&mut txn, &world.table, 1, |row| row.n = 2);
    assert!(txn.write_bytes() < 4096, "{} bytes", txn.write_bytes());
    txn.commit().unwrap();
    let mut txn = world.db.begin();
    assert_eq!(all(&mut txn, &world.table)[&1], Row { n: 2, values: [Some(value), None] });
}

#[test]
fn a_row_cannot_refer_to_the_value_of_another() {
    let world = World::new(2);
    let mut txn = world.db.begin();
    for n in 1..3 {
        let row = Row { n: 0, values: [Some(vec![n as u8; 20_000]), None] };
        insert(&mut txn, &world.table, n, &row).unwrap();
    }
    let (other, ..) = locked(&mut txn, &world.table, 1).unwrap();
    let (own, ..) = locked(&mut txn, &world.table, 2).unwrap();
    let key = key(2);
    let (own, other) = (entries(&key, &own), entries(&key, &other));
    let error = txn.update_row(&world.table, &own, &other).unwrap_err();
    assert!(error.to_string().contains("of another row"), "{error}");
}

#[test]
fn rows_are_not_written_unread_where_one_may_refer_to_a_large_value() {
    let world = World::new(2);
    let (key, small) = (key(1), Row { n: 1, values: [None, None] });
    let bytes = encode(&world.table, &small, &[], &mut Vec::new());
    let replace = |txn: &mut Txn| {
        txn.insert_row_with(&world.table, &entries(&key, &bytes), &[], OnDuplicate::Overwrite)
    };
    let mut txn = world.db.begin();
    replace(&mut txn).unwrap();
    replace(&mut txn).unwrap();
    assert!(txn.lock_unread(&world.table, &key).unwrap());
    insert(&mut txn, &world.table, 2, &Row { n: 2, values: [Some(vec![7; 20_000]), None] }).unwrap();
    assert!(matches!(replace(&mut txn), Err(Error::Duplicate { index: 0, .. })));
    assert!(!txn.lock_unread(&world.table, &key).unwrap());
    txn.commit().unwrap();
    assert_eq!(all(&mut txn, &world.table).len(), 2);
}

/// Rows are numbers; each has a value of as many bytes.
struct Encoder(Arc<Table>);

impl RowEncoder for Encoder {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, out: &mut [Entries]) -> Result<(), i32> {
        for n in batch {
            let mut large = Vec::new();
            let row = encode(&self.0, &loaded(n), &[], &mut large);
            out[0].push(&key(n), &row);
            out[1].push(&key(n), b"");
            large.iter().for_each(|(id, bytes)| out[2].push(&id.to_be_bytes(), bytes));
        }
        Ok(())
    }
}

fn loaded(n: u32) -> Row {
    Row { n: 7, values: [None, Some(vec![n as u8; 64 * n as usize])] }
}

#[test]
fn a_load_has_large_values_too_and_a_truncated_table_has_none() {
    let mut world = World::new(3);
    for round in 0..2 {
        let mut txn = world.db.begin();
        let encoder = Encoder(world.table.clone());
        let mut load = txn.begin_load(&world.table, &[true, false], encoder).unwrap().unwrap();
        for batch in (1..600).collect::<Vec<u32>>().chunks(50) {
            assert!(load.submit(batch.to_vec(), batch.len() as u64, 1000));
        }
        assert_eq!(txn.finish_load(load, &mut |_| true).unwrap(), LoadEnd::Loaded);
        let expected: Model = (1..600).map(|n| (n, loaded(n))).collect();
        assert_eq!(all(&mut txn, &world.table), expected);
        txn.commit().unwrap();
        world.committed = expected;
        world.check();
        world.reopen();
        world.check();
        let mut txn = world.db.begin();
        world.committed.insert(500, update(&mut txn, &world.table, 500, |row| row.n = 8));
        delete(&mut txn, &world.table, 400);
        world.committed.remove(&400);
        txn.commit().unwrap();
        world.check();
        world.db.truncate_table(T).unwrap();
        world.committed.clear();
        world.check();
        assert_eq!(count_large(&world.db), 0, "round {round}");
    }
}

#[test]
fn prepared_transactions_bring_their_values_back() {
    let mut world = World::new(4);
    let mut txn = world.db.begin();
    let row = Row { n: 1, values: [Some(vec![1; 30_000]), Some(vec![2; 20_000])] };
    insert(&mut txn, &world.table, 1, &row).unwrap();
    txn.prepare(b"x").unwrap();
    world.db.flush_logs().unwrap();
    std::mem::forget(txn);
    world.reopen();
    // A new value does not get the number of one that is prepared.
    let mut txn = world.db.begin();
    let other = Row { n: 2, values: [Some(vec![3; 40_000]), None] };
    insert(&mut txn, &world.table, 2, &other).unwrap();
    txn.commit().unwrap();
    assert!(world.db.commit_by_xid(b"x").unwrap());
    world.committed = [(1, row), (2, other)].into();
    world.check();
    world.reopen();
    world.check();
}

#[test]
fn columns_that_become_texts_have_no_references() {
    let vfs = disk(5);
    let db = open(&vfs).unwrap();
    let first = vec![new(Kind::Varchar, 300), new(Kind::Large, 4)];
    db.create_table(&TableSpec { columns: Some(first), ..spec(T) }).unwrap();
    let looks_like_one = Reference { id: 1, length: 2 }.encode().to_vec();
    let next = vec![
        column(Kind::Large, 4, Source::Column(0)),
        column(Kind::Large, 4, Source::Column(1)),
        column(Kind::Large, 4, Source::Added(Value::Bytes(looks_like_one))),
        column(Kind::Large, 4, Source::Added(Value::Bytes(b"text".to_vec()))),
    ];
    let mut next = next;
    next[0].ty.nullable = false;
    db.alter_tables(&mut [TableChange { path: T.into(), columns: Some(next), ..TableChange::default() }])
        .unwrap();
    let table = db.open_table(T).unwrap();
    let kinds: Vec<Kind> = table.layouts().unwrap().current().columns.iter().map(|c| c.ty.kind).collect();
    assert_eq!(kinds, [Kind::Blob, Kind::Large, Kind::Blob, Kind::Large]);
    // A table that was made without the dictionary never gets references.
    db.create_table(&TableSpec { columns: Some(vec![new(Kind::Varchar, 300)]), ..spec("./db/u") }).unwrap();
    let columns = vec![column(Kind::Varchar, 300, Source::Column(0)), new(Kind::Large, 4)];
    let change = TableChange { path: "./db/u".into(), columns: Some(columns), ..TableChange::default() };
    db.alter_tables(&mut [change]).unwrap();
    let table = db.open_table("./db/u").unwrap();
    assert_eq!(table.layouts().unwrap().current().columns[1].ty.kind, Kind::Blob);
    assert!(!table.has_large_values());
    let names = vfs.read_dir(std::path::Path::new("/data/db/t.pando")).unwrap();
    assert!(names.iter().any(|entry| entry.name == "large.pando"));
}

#[test]
fn values_of_a_dropped_column_go_with_their_rows() {
    let mut world = World::new(6);
    let mut txn = world.db.begin();
    for n in 0..30 {
        let row = Row { n: n as u16, values: [Some(vec![n as u8; 20_000]), Some(vec![7; 17_000])] };
        insert(&mut txn, &world.table, n, &row).unwrap();
    }
    txn.commit().unwrap();
    let kept = vec![column(Kind::Unsigned, 2, Source::Column(1)), column(Kind::Large, 4, Source::Column(2))];
    let kept = TableChange { path: T.into(), columns: Some(kept), ..TableChange::default() };
    world.db.alter_tables(&mut [kept]).unwrap();
    for round in 0..2 {
        world.table = world.db.open_table(T).unwrap();
        world.db.run_jobs().unwrap();
        // Merges write rows in the layout of today, but for those that refer to values nobody sees any more.
        world.db.compact_table(&world.table, &mut |_| true).unwrap();
        world.db.check_table(&world.table, &mut |_| true).unwrap();
        let mut txn = world.db.begin();
        for n in (0..30).filter(|n| n % 3 == round) {
            let row =
                txn.get_locked(&world.table, 0, &key(n), LockMode::Exclusive, LockWait::NoWait).unwrap();
            let LockedRead::Row(row) = row else { panic!("row {n} is there") };
            txn.delete_row(&world.table, &entries(&key(n), &row)).unwrap();
        }
        txn.commit().unwrap();
        world.db.check_table(&world.table, &mut |_| true).unwrap();
        world.reopen();
    }
    world.table = world.db.open_table(T).unwrap();
    let mut txn = world.db.begin();
    let mut left = Vec::new();
    for_each_row(&mut txn, &world.table, 0, false, |key, row| left.push((key.to_vec(), row.to_vec())));
    assert_eq!(left.len(), 10);
    for (key, row) in left {
        let read = txn.get_locked(&world.table, 0, &key, LockMode::Exclusive, LockWait::NoWait).unwrap();
        assert!(matches!(read, LockedRead::Row(_)));
        txn.delete_row(&world.table, &entries(&key, &row)).unwrap();
    }
    txn.commit().unwrap();
    world.db.run_jobs().unwrap();
    world.db.compact_table(&world.table, &mut |_| true).unwrap();
    world.db.check_table(&world.table, &mut |_| true).unwrap();
    assert_eq!(count_large(&world.db), 0, "nothing is left");
}
