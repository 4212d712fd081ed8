//! Blocks give the rows that a cursor of the same view gives, and filtered rows those of them that are wanted: over random trees with rows of several layouts, NULLs, deletes,
//! several versions of a key, own writes and snapshots.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, open, spec};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{
    Block, Db, KeyPath, LockWait, RowCondition, Table, TableChange, TableSpec, Txn, Verdict, View, Want,
    Zones,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PATH: &str = "./db/t";

fn column(kind: Kind, size: u32, nullable: bool, source: Source) -> NewColumn {
    NewColumn { name: String::new(), ty: ColumnType { kind, size, nullable, binary: false }, source }
}

fn added(value: &[u8]) -> Source {
    Source::Added(Value::Bytes(value.to_vec()))
}

/// The layouts of the table, one after the other.
fn columns(version: u32) -> Vec<NewColumn> {
    match version {
        1 => vec![
            column(Kind::Signed, 2, false, added(&[0, 0])),
            column(Kind::Varchar, 300, true, added(b"")),
            column(Kind::Unsigned, 1, true, added(&[0])),
            column(Kind::Bytes, 5, false, added(b"12345")),
        ],
        2 => vec![
            column(Kind::Bytes, 5, false, Source::Column(3)),
            column(Kind::Signed, 4, false, Source::Column(0)),
            column(Kind::Varchar, 300, true, Source::Column(1)),
            column(Kind::Unsigned, 3, true, added(&[7, 8, 9])),
        ],
        _ => vec![
            column(Kind::Varchar, 300, true, Source::Column(2)),
            column(Kind::Signed, 8, true, Source::Column(1)),
            column(Kind::Unsigned, 3, true, Source::Column(3)),
            column(Kind::Blob, 2, true, Source::Added(Value::Null)),
            column(Kind::Bytes, 5, false, Source::Column(0)),
        ],
    }
}

struct World {
    rng: ChaCha8Rng,
    db: Arc<Db>,
    table: Arc<Table>,
    keys: u32,
    /// The next key, if most rows are inserted behind all others, by sessions whose keys mix.
    end: Option<u32>,
    /// Asked for again and again.
    usual: Vec<Want>,
    /// Blocks whose last columns were read later.
    late: u64,
    /// How many blocks were fewer because they had several segments.
    spans: i64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let vfs = disk(seed);
        let db = open(&vfs).unwrap();
        db.create_table(&TableSpec { columns: Some(columns(1)), indexes: vec![], ..spec(PATH) }).unwrap();
        let table = db.open_table(PATH).unwrap();
        let keys = rng.random_range(50..3000);
        let end = rng.random_bool(0.4).then_some(0);
        let usual = [Want::Stored(rng.random_range(0..4)), Want::Key { offset: 1, size: 5 }, Want::Stored(1)];
        let usual = usual[..rng.random_range(0..4)].to_vec();
        World { rng, db, table, keys, end, usual, late: 0, spans: 0 }
    }

    fn key(&mut self) -> Vec<u8> {
        let key = self.rng.random_range(0..self.end.unwrap_or(self.keys).max(1));
        World::key_of(key)
    }

    fn new_key(&mut self) -> Vec<u8> {
        let is_new = self.rng.random_bool(0.95);
        let Some(end) = self.end.as_mut().filter(|_| is_new) else { return self.key() };
        *end += 1;
        let key = *end - self.rng.random_range(0..4).min(*end);
        World::key_of(key)
    }

    fn key_of(key: u32) -> Vec<u8> {
        format!("{:06}{}", key, "x".repeat(key as usize % 3)).into_bytes()
    }

    /// A row of the current layout; its values are few, or as many as rows.
    fn row(&mut self) -> Vec<u8> {
        let version = self.table.layouts().unwrap().current().version;
        let mut nulls = 0u8;
        let mut null_at = 0;
        let mut row = Vec::new();
        let is_varied = self.rng.random_bool(0.3);
        for column in columns(version) {
            if column.ty.nullable {
                null_at += 1;
                if self.rng.random_bool(0.2) {
                    nulls |= 1 << (null_at - 1);
                    continue;
                }
            }
            let variety = if is_varied { 256 } else { 3 };
            let size = match column.ty.kind {
                Kind::Varchar | Kind::Blob | Kind::Large => {
                    let size = self.rng.random_range(0..if is_varied { 140usize } else { 4 });
                    if size >= 128 {
                        row.push(size as u8 | 0x80);
                        row.push(1);
                    } else {
                        row.push(size as u8);
                    }
                    size
                }
                _ => column.ty.size as usize,
            };
            for at in 0..size {
                row.push(if at == 0 || is_varied { self.rng.random_range(0..variety) as u8 } else { 0 });
            }
        }
        let mut all = vec![version as u8, nulls];
        all.extend(row);
        all
    }

    fn write(&mut self, txn: &mut Txn, rows: u32) {
        let deletes = if self.end.is_some() { 0.02 } else { 0.15 };
        for _ in 0..rows {
            let key = self.new_key();
            if self.rng.random_bool(deletes) {
                txn.delete(&self.table, 0, &key, LockWait::NoWait).unwrap();
            } else {
                let row = self.row();
                txn.put(&self.table, 0, &key, &row, LockWait::NoWait).unwrap();
            }
        }
    }

    fn commit(&mut self) {
        let mut txn = self.db.begin();
        let rows = self.rng.random_range(1..200);
        self.write(&mut txn, rows);
        txn.commit().unwrap();
    }

    fn change_columns(&mut self) {
        let version = self.table.layouts().unwrap().current().version;
        if version == 3 {
            return;
        }
        let change = TableChange {
            path: PATH.into(),
            columns: Some(columns(version + 1)),
            index_names: vec![],
            indexes: None,
            compression: None,
            auto_increment: None,
            definition: None,
            ..TableChange::default()
        };
        self.db.alter_tables(&mut [change]).unwrap();
        self.table = self.db.open_table(PATH).unwrap();
    }

    fn work(&mut self) {
        match self.rng.random_range(0..20) {
            0..12 => self.commit(),
            12..15 => self.db.run_jobs().unwrap(),
            15 => self.db.checkpoint().unwrap(),
            16 => self.change_columns(),
            17 => self.table.dicts()[0].tree().compact_all().unwrap(),
            _ => {}
        }
    }

    /// All rows come into leaves, of which few versions are left.
    fn settle(&mut self) {
        self.db.checkpoint().unwrap();
        self.db.run_jobs().unwrap();
        self.table.dicts()[0].tree().compact_all().unwrap();
    }

    /// Blocks of a random part of what the transaction sees, and the same from a cursor.
    fn compare(&mut self, txn: &mut Txn) {
        let table = self.table.clone();
        let layouts = table.layouts().unwrap();
        let count = layouts.current().columns.len();
        let mut wants = Vec::new();
        for _ in 0..self.rng.random_range(0..6) {
            wants.push(match self.rng.random_range(0..13) {
                0 => Want::WholeKey,
                11 => {
                    let columns = &layouts.current().columns;
                    let texts = (0..count).filter(|at| columns[*at].ty.kind.is_counted());
                    let texts: Vec<usize> = texts.collect();
                    Want::Length(texts[self.rng.random_range(0..texts.len())])
                }
                12 => Want::KeyPart(key_part(self.rng.random_range(0..4), self.rng.random_bool(0.5))),
                1..3 => Want::Key { offset: self.rng.random_range(0..4), size: 3 },
                _ => Want::Stored(self.rng.random_range(0..count)),
            });
        }
        if self.rng.random_bool(0.5) {
            wants.clone_from(&self.usual);
        }
        if !wants.is_empty() && self.rng.random_bool(0.3) {
            wants.push(Want::KeyPart(key_part(self.rng.random_range(0..4), self.rng.random_bool(0.5))));
        }
        let view = txn.view(&table, 0).unwrap();
        let bounds = view.bounds();
        let bound = |world: &mut World| match world.rng.random_range(0..10) {
            0..4 => Some(world.key()),
            4..6 if !bounds.is_empty() => Some(bounds[world.rng.random_range(0..bounds.len())].clone()),
            _ => None,
        };
        let (begin, end) = (bound(self), bound(self));
        let expected = by_cursor(&view, &table, &wants, begin.as_deref(), end.as_deref());
        // In parts, or at once.
        let is_inside = |key: &&Vec<u8>| {
            begin.as_ref().is_none_or(|begin| *key > begin) && end.as_ref().is_none_or(|end| *key < end)
        };
        let mut parts = vec![begin.clone()];
        if self.rng.random_bool(0.5)
            && begin.as_ref().is_none_or(|begin| end.as_ref().is_none_or(|end| begin < end))
        {
            parts.extend(bounds.iter().filter(is_inside).map(|key| Some(key.clone())));
        }
        parts.push(end.clone());
        // Whole spans that the cache has are not read in part below.
        let ways: &[bool] = if self.rng.random_bool(0.6) { &[false, true] } else { &[false] };
        for by_spans in ways.iter().copied() {
            let mut found = Vec::new();
            for part in parts.windows(2) {
                let (begin, end) = (part[0].as_deref(), part[1].as_deref());
                let mut blocks = view.blocks(layouts, &wants, begin, end).unwrap();
                let is_late: Vec<bool> = wants.iter().map(|_| self.rng.random_bool(0.3)).collect();
                blocks.read_late(layouts, &wants, &is_late);
                if by_spans {
                    blocks.by_spans();
                }
                while let Some(mut block) = blocks.next().unwrap() {
                    self.spans += match (by_spans, ways.len()) {
                        (true, _) => -1,
                        (false, ways) => i64::from(ways > 1),
                    };
                    let missing = (0..wants.len()).filter(|at| block.vectors[*at].rows() < block.rows);
                    assert!(missing.into_iter().all(|at| is_late[at] && !block.is_complete));
                    assert_eq!(blocks.complete(&mut block, None).unwrap(), Some(block.rows));
                    found.extend(cells(&block, &wants));
                }
            }
            assert_eq!(found.len(), expected.len(), "rows in {begin:?}..{end:?}");
            assert_eq!(found, expected);
        }

        let Some(want) = wants.first() else { return };
        let kind = match want {
            Want::Stored(position) => layouts.current().columns[*position].ty.kind,
            Want::Length(_) => Kind::Unsigned,
            Want::Key { .. } | Want::KeyPart(_) | Want::WholeKey => Kind::Bytes,
        };
        let within = self.within(kind, &expected);
        let expected = expected.into_iter().filter(|cells| within.holds(cells[0].as_deref()));
        let mut found = Vec::new();
        let mut blocks = view.blocks(layouts, &wants, begin.as_deref(), end.as_deref()).unwrap();
        // What the condition does not look at is read of blocks of which it leaves rows.
        let is_late: Vec<bool> = (0..wants.len()).map(|at| at > 0 && self.rng.random_bool(0.5)).collect();
        blocks.read_late(layouts, &wants, &is_late);
        if self.rng.random_bool(0.5) {
            blocks.by_spans();
        }
        // Of what is read later, only the rows that are asked for count.
        let asks_for_some = self.rng.random_bool(0.5);
        while let Some(mut block) = blocks.next_where(&|zones| within.verdict(zones)).unwrap() {
            let left = (0..block.rows as u32).filter(|row| within.holds(block.vectors[0].get(*row as usize)));
            let left: Vec<u32> = left.collect();
            if left.is_empty() {
                continue;
            }
            self.late += u64::from(!block.is_complete);
            let first = left[0] as usize;
            let of_first = (!block.is_complete).then(|| {
                assert_eq!(blocks.complete(&mut block, Some(&left[..1])).unwrap(), Some(1), "{wants:?}");
                block.is_complete = false;
                cells(&block, &wants).swap_remove(first)
            });
            let asked_for = asks_for_some.then_some(left.as_slice());
            assert!(blocks.complete(&mut block, asked_for).unwrap().is_some() && block.is_complete);
            assert!(block.vectors.iter().all(|vector| vector.rows() == block.rows));
            let rows = cells(&block, &wants);
            assert!(of_first.is_none_or(|of_first| of_first == rows[first]), "{wants:?}");
            let holds = |cells: &Vec<Option<Vec<u8>>>| within.holds(cells[0].as_deref());
            assert!(!block.is_all_wanted || rows.iter().all(holds), "{want:?}, {within:?}");
            found.extend(rows.into_iter().filter(holds));
        }
        assert_eq!(found, expected.collect::<Vec<_>>(), "{want:?}, {within:?}");
    }

    /// Filtered rows of what the transaction sees: all that are wanted are among them, in order, with what is needed of
    /// them; also if the transaction writes meanwhile.
    fn compare_filtered(&mut self, txn: &mut Txn, writes: bool) {
        let table = self.table.clone();
        let columns = table.layouts().unwrap().current().columns.clone();
        let want = Want::Stored(self.rng.random_range(0..columns.len()));
        let needed: Vec<usize> = (0..columns.len()).filter(|_| self.rng.random_bool(0.4)).collect();
        let bound = |world: &mut World| world.rng.random_bool(0.3).then(|| world.key());
        let (begin, end) = (bound(self), bound(self));
        let mut wants = vec![want.clone(), Want::WholeKey];
        wants.extend(needed.iter().map(|at| Want::Stored(*at)));
        let view = txn.view(&table, 0).unwrap();
        let all = by_cursor(&view, &table, &wants, begin.as_deref(), end.as_deref());
        let Want::Stored(position) = want else { unreachable!() };
        let within = self.within(columns[position].ty.kind, &all);
        let rows = txn.filtered_rows(&table, &[want], &needed, begin.as_deref(), end.as_deref());
        let mut rows = rows.unwrap().unwrap();
        let mut found = Vec::new();
        loop {
            let mut most = self.rng.random_range(1..200);
            let goes_on = rows.visit(&within, |key, row| {
                let values = values(&table, row);
                let of_row = needed.iter().map(|at| values[*at].clone());
                found.push([Some(key.to_vec())].into_iter().chain(of_row).collect::<Vec<_>>());
                most -= 1;
                most > 0
            });
            if !goes_on.unwrap() {
                break;
            }
            if writes && self.rng.random_bool(0.3) {
                self.write(txn, 3);
            }
        }
        let mut found = found.into_iter().peekable();
        for cells in &all {
            if found.next_if(|row| *row == cells[1..]).is_none() {
                assert!(!within.holds(cells[0].as_deref()), "{cells:?} is missing, or not as it should be");
            }
        }
        assert_eq!(found.next(), None, "nothing else is given");
    }

    /// Between two of the values.
    fn within(&mut self, kind: Kind, rows: &[Vec<Option<Vec<u8>>>]) -> Within {
        let values: Vec<_> = rows.iter().filter_map(|cells| cells[0].as_ref()).collect();
        let mut bound = || match values.is_empty() {
            true => Vec::new(),
            false => ordered(kind, values[self.rng.random_range(0..values.len())]),
        };
        let (a, b) = (bound(), bound());
        Within { kind, least: a.clone().min(b.clone()), most: a.max(b) }
    }
}

/// A condition on a want.
#[derive(Debug)]
struct Within {
    kind: Kind,
    least: Vec<u8>,
    most: Vec<u8>,
}

impl Within {
    fn holds(&self, value: Option<&[u8]>) -> bool {
        value.is_some_and(|value| (&self.least..=&self.most).contains(&&ordered(self.kind, value)))
    }

    /// Of the first want.
    fn verdict(&self, zones: &Zones<'_>) -> Verdict {
        let Some(zone) = zones.get(0) else { return Verdict::Some };
        let Some((least, most)) = &zone.bounds else { return Verdict::None };
        let (least, most) = (ordered(self.kind, least), ordered(self.kind, most));
        assert!(least <= most);
        match (most < self.least || least > self.most, least >= self.least && most <= self.most) {
            (true, _) => Verdict::None,
            (_, true) if !zone.has_null => Verdict::All,
            _ => Verdict::Some,
        }
    }
}

impl RowCondition for Within {
    fn verdict(&self, zones: &Zones<'_>) -> Verdict {
        Within::verdict(self, zones)
    }

    fn select(&self, block: &Block) -> Option<Vec<u32>> {
        let holds = |row: &u32| self.holds(block.vectors[0].get(*row as usize));
        let selected: Vec<u32> = (0..block.rows as u32).filter(holds).collect();
        (selected.len() < block.rows).then_some(selected)
    }
}

/// Bytes that memcmp orders as what the value means.
fn ordered(kind: Kind, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    if matches!(kind, Kind::Signed | Kind::Unsigned) {
        bytes.reverse();
    }
    if kind == Kind::Signed {
        bytes[0] ^= 0x80;
    }
    bytes
}

/// The rows of a block.
fn cells(block: &Block, wants: &[Want]) -> Vec<Vec<Option<Vec<u8>>>> {
    assert!(block.rows > 0 && block.vectors.len() == wants.len());
    let row = |row| block.vectors.iter().map(|vector| vector.get(row).map(<[u8]>::to_vec)).collect();
    (0..block.rows).map(row).collect()
}

/// The rows as a cursor gives them, taken apart in the plainest way.
fn by_cursor(
    view: &View<'_>,
    table: &Table,
    wants: &[Want],
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut rows = Vec::new();
    let mut cursor = view.cursor(begin, end).unwrap();
    while let Some((key, row)) = cursor.next().unwrap() {
        let values = values(table, row);
        let cell = |want: &Want| match want {
            Want::Stored(position) => values[*position].clone(),
            Want::Length(position) => {
                values[*position].as_ref().map(|value| (value.len() as u64).to_le_bytes().to_vec())
            }
            Want::Key { offset, size } => Some(key[*offset..offset + size].to_vec()),
            Want::KeyPart(path) => {
                let (offset, mask) = (path.offset(key).unwrap(), if path.is_reversed() { 0xff } else { 0 });
                Some(key[offset..offset + 3].iter().map(|byte| byte ^ mask).collect())
            }
            Want::WholeKey => Some(key.to_vec()),
        };
        rows.push(wants.iter().map(cell).collect());
    }
    rows
}

/// Three bytes of a key behind some others.
fn key_part(offset: u8, is_reversed: bool) -> Arc<KeyPath> {
    let mask = if is_reversed { 0xff } else { 0 };
    Arc::new(KeyPath::parse(&[0, offset, 0, 0, 0, 3, mask, 3, 0, 0, 0]).unwrap())
}

/// A row's values as the current layout has them. Where the row ends, which has only what is needed, NULL.
fn values(table: &Table, row: &[u8]) -> Vec<Option<Vec<u8>>> {
    let layouts = table.layouts().unwrap();
    let layout = layouts.get(row[0].into()).unwrap();
    let (nulls, mut rest) = (row[1], &row[2..]);
    let mut null_at = 0;
    let mut own = Vec::new();
    for column in &layout.columns {
        let is_null = column.ty.nullable && nulls >> null_at & 1 != 0;
        null_at += u32::from(column.ty.nullable);
        if is_null || (rest.is_empty() && column.ty.size > 0) {
            own.push((column, None));
            continue;
        }
        let mut size = column.ty.size as usize;
        if column.ty.kind.is_counted() {
            size = rest[0] as usize & 0x7f;
            let is_long = rest[0] & 0x80 != 0;
            size += if is_long { (rest[1] as usize) << 7 } else { 0 };
            rest = &rest[1 + usize::from(is_long)..];
        }
        own.push((column, Some(rest[..size].to_vec())));
        rest = &rest[size..];
    }
    assert!(rest.is_empty());
    let current = layouts.current().columns.iter();
    let value = current.map(|now| match own.iter().find(|(column, _)| column.id == now.id) {
        Some((column, value)) => value.as_ref().map(|value| column.ty.convert(value, &now.ty)),
        None => match now.added_with.as_ref().unwrap() {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes.clone()),
        },
    });
    value.collect()
}

/// Gives how many rows were read as columns, how many were passed over, and how many filtered; of how many blocks columns were read
/// later, and how many fewer blocks several segments
/// at once were.
fn run(seed: u64) -> [u64; 5] {
    let mut world = World::new(seed);
    for _ in 0..world.rng.random_range(1..60) {
        world.work();
    }
    if world.rng.random_bool(0.7) {
        world.settle();
    }
    let mut old = world.db.begin();
    old.open_snapshot();
    for _ in 0..6 {
        for _ in 0..world.rng.random_range(0..8) {
            world.work();
        }
        let mut txn = world.db.begin();
        if world.rng.random_bool(0.5) {
            world.compare(&mut txn);
        }
        if world.rng.random_bool(0.5) {
            let most = if world.rng.random_bool(0.5) { 4 } else { 40 };
            let rows = world.rng.random_range(1..most);
            world.write(&mut txn, rows);
        }
        world.compare(&mut txn);
        world.compare(&mut old);
        for _ in 0..3 {
            world.compare_filtered(&mut old, false);
        }
        world.compare_filtered(&mut txn, true);
        txn.rollback();
    }
    drop(old);
    let World { db, table, late, spans, .. } = world;
    drop(table);
    db.close().unwrap();
    let metrics = db.metrics();
    let [in_columns, skipped, filtered] =
        [&metrics.rows_aggregated_in_columns, &metrics.rows_skipped, &metrics.rows_filtered]
            .map(|of| of.get());
    [in_columns, skipped, filtered, late, spans as u64]
}

#[test]
fn blocks_are_the_rows_of_a_cursor() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("PANDO_BLOCKS_SEED", 1);
    let seeds = number("PANDO_BLOCKS_SEEDS", 60);
    let mut sums = [0; 5];
    for counts in (first..first + seeds).map(run) {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [in_columns, skipped, filtered, late, spans] = sums;
    assert!(in_columns > seeds * 100, "{in_columns} rows of {seeds} seeds were read as columns");
    assert!(skipped > seeds * 10, "{skipped} rows of {seeds} seeds were passed over");
    assert!(filtered > seeds * 10, "{filtered} rows of {seeds} seeds were filtered");
    assert!(spans > seeds * 10, "{spans} fewer blocks of {seeds} seeds have several segments");
    assert!(late > seeds * 2, "of {late} blocks of {seeds} seeds columns were read later");
}

#[test]
fn a_want_of_what_is_not_there_is_refused() {
    let world = World::new(1);
    let mut txn = world.db.begin();
    let layouts = world.table.layouts().unwrap();
    let view = txn.view(&world.table, 0).unwrap();
    for want in [Want::Stored(4), Want::Key { offset: 0, size: 0 }] {
        assert!(view.blocks(layouts, &[want], None, None).is_err());
    }
    assert!(view.blocks(layouts, &[], None, None).unwrap().next().unwrap().is_none());
}
