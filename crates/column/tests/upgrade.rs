//! A row of an older layout, written in the current one, has what a reader of the older row would see.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use pando_column::layout::{ColumnType, Kind, Layout, Layouts, NewColumn, Source, Value};
use pando_column::wire::{put_varint, Reader};
use pando_column::Shapes;
use proptest::collection::vec;
use proptest::prelude::*;

type Cell = Option<Vec<u8>>;

/// A change of columns.
#[derive(Clone, Debug)]
enum Change {
    Add(usize, ColumnType, Value),
    Drop(usize),
    Grow(usize),
    Swap(usize, usize),
}

fn ty() -> impl Strategy<Value = ColumnType> {
    use Kind::*;
    let kind = prop_oneof![
        (Just(Signed), 1u32..8),
        (Just(Unsigned), 1u32..8),
        (Just(Bytes), 1u32..20),
        (Just(Float), Just(8u32)),
        (Just(Set), 1u32..8),
        (Just(Char), 1u32..30),
        (Just(Varchar), 1u32..400),
        (Just(Blob), 1u32..4),
        (Just(Large), 2u32..4),
    ];
    (kind, any::<bool>()).prop_map(|((kind, size), nullable)| ColumnType {
        kind,
        size,
        nullable,
        binary: false,
    })
}

/// Bytes of that type.
fn bytes_of(ty: ColumnType, seed: u64) -> Vec<u8> {
    let some = |count: usize| (0..count).map(|at| (seed >> (at % 8 * 8)) as u8).collect::<Vec<u8>>();
    match ty.kind {
        Kind::Char | Kind::Varchar => some(seed as usize % (ty.size as usize + 1)),
        Kind::Blob | Kind::Large => some(seed as usize % 250),
        _ => some(ty.size as usize),
    }
}

fn cell_of(ty: ColumnType, seed: u64) -> Cell {
    (!ty.nullable || seed % 5 != 0).then(|| bytes_of(ty, seed))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), ty(), any::<u64>()).prop_map(|(at, ty, seed)| {
            let value = cell_of(ty, seed).map_or(Value::Null, Value::Bytes);
            Change::Add(at, ty, value)
        }),
        any::<usize>().prop_map(Change::Drop),
        any::<usize>().prop_map(Change::Grow),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Swap(a, b)),
    ]
}

fn grown(ty: ColumnType) -> ColumnType {
    let most = match ty.kind {
        Kind::Signed | Kind::Unsigned | Kind::Set => 8,
        Kind::Char | Kind::Varchar => 1000,
        Kind::Blob | Kind::Large => 4,
        _ => ty.size,
    };
    ColumnType { size: (ty.size + 1).min(most), nullable: true, ..ty }
}

fn changed(layouts: &Layouts, change: &Change) -> Layouts {
    let mut columns: Vec<NewColumn> = (layouts.current().columns.iter().enumerate())
        .map(|(at, column)| NewColumn { name: "c".into(), ty: column.ty, source: Source::Column(at) })
        .collect();
    let count = columns.len();
    match change {
        Change::Add(at, ty, value) => {
            columns.insert(
                at % (count + 1),
                NewColumn { name: "c".into(), ty: *ty, source: Source::Added(value.clone()) },
            );
        }
        Change::Drop(at) if count > 1 => _ = columns.remove(at % count),
        Change::Drop(_) => {}
        Change::Grow(at) => columns[at % count].ty = grown(columns[at % count].ty),
        Change::Swap(a, b) => columns.swap(a % count, b % count),
    }
    layouts.changed(columns).expect("a change that needs no rows")
}

fn encode(layout: &Layout, cells: &[Cell]) -> Vec<u8> {
    let mut row = Vec::new();
    put_varint(&mut row, u64::from(layout.version));
    let nulls = row.len();
    row.resize(nulls + layout.null_bytes(), 0);
    let mut null_at = 0;
    for (column, cell) in layout.columns.iter().zip(cells) {
        match cell {
            None => row[nulls + null_at / 8] |= 1 << (null_at % 8),
            Some(value) => {
                if column.ty.kind.is_counted() {
                    put_varint(&mut row, value.len() as u64);
                }
                row.extend_from_slice(value);
            }
        }
        null_at += usize::from(column.ty.nullable);
    }
    row
}

fn decode(layouts: &Layouts, row: &[u8]) -> (u32, Vec<Cell>) {
    let mut reader = Reader::new(row);
    let version = reader.varint("").unwrap() as u32;
    let layout = layouts.get(version).unwrap();
    let nulls = reader.bytes(layout.null_bytes(), "").unwrap();
    let mut null_at = 0;
    let mut cell = |ty: &ColumnType| {
        let at = null_at;
        null_at += usize::from(ty.nullable);
        if ty.nullable && nulls[at / 8] >> (at % 8) & 1 != 0 {
            return None;
        }
        Some(match ty.kind.is_counted() {
            true => reader.counted_bytes(usize::MAX, "").unwrap().to_vec(),
            false => reader.bytes(ty.size as usize, "").unwrap().to_vec(),
        })
    };
    let cells = layout.columns.iter().map(|column| cell(&column.ty)).collect();
    assert!(reader.rest().is_empty());
    (version, cells)
}

/// What a reader of the row sees, by the rules of `pando_column::layout`.
fn seen(layouts: &Layouts, version: u32, cells: &[Cell]) -> Vec<Cell> {
    let then = layouts.get(version).unwrap();
    let of =
        |column: &pando_column::layout::Column| match then.columns.iter().position(|old| old.id == column.id)
        {
            Some(at) => cells[at].as_ref().map(|value| then.columns[at].ty.convert(value, &column.ty)),
            None => match column.added_with.as_ref().expect("added since") {
                Value::Null => None,
                Value::Bytes(bytes) => Some(bytes.clone()),
            },
        };
    layouts.current().columns.iter().map(of).collect()
}

proptest! {
    #[test]
    fn a_row_means_the_same_in_the_current_layout(
        first in vec(ty(), 1..8),
        changes in vec(change(), 1..200),
        seeds in vec(any::<u64>(), 1..20),
    ) {
        let column = |ty: &ColumnType| NewColumn { name: "c".into(), ty: *ty, source: Source::Added(Value::Null) };
        let layouts = changes.iter().fold(Layouts::new(first.iter().map(column).collect()), |layouts, change| changed(&layouts, change));
        let (shapes, newest) = (Shapes::of(&layouts), layouts.current().version);
        let mut scratch = Vec::new();
        for (layout, seed) in layouts.versions().iter().zip(seeds.iter().cycle()) {
            let cells: Vec<Cell> = (layout.columns.iter().enumerate())
                .map(|(at, column)| cell_of(column.ty, seed.wrapping_mul(at as u64 * 2 + 1)))
                .collect();
            let row = encode(layout, &cells);
            let upgraded = shapes.upgrade(&row, &mut scratch);
            prop_assert_eq!(upgraded.is_none(), layout.version == newest);
            if let Some(upgraded) = upgraded {
                prop_assert_eq!(decode(&layouts, upgraded), (newest, seen(&layouts, layout.version, &cells)));
            }
        }
    }

    #[test]
    fn what_is_no_row_stays_as_it_is(bytes in vec(any::<u8>(), 0..40), changes in vec(change(), 1..5)) {
        let ty = ColumnType { kind: Kind::Varchar, size: 30, nullable: true, binary: false };
        let first = Layouts::new(vec![NewColumn { name: "c".into(), ty, source: Source::Added(Value::Null) }]);
        let layouts = changes.iter().fold(first, |layouts, change| changed(&layouts, change));
        let mut scratch = Vec::new();
        // Either not a row, or one that reads back as one.
        if let Some(row) = Shapes::of(&layouts).upgrade(&bytes, &mut scratch) {
            prop_assert_eq!(decode(&layouts, row).0, layouts.current().version);
        }
        prop_assert!(Shapes::default().upgrade(&bytes, &mut scratch).is_none());
    }
}
