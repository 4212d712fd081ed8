//! Tables with large values, as tests of them have them: rows of a number and a value, and one index.

use std::path::Path;
use std::sync::Arc;

use pandodb::large::{references_of, Reference};
use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{Entry, LargeValue, OnDuplicate, SimVfs, Table, Txn, Vfs};

/// From here on a value is stored apart.
pub const LARGE_BYTES: usize = 20_000;

/// A number, and a value that is stored apart if it is long.
pub fn columns() -> Option<Vec<NewColumn>> {
    let column = |kind, size| {
        let ty = ColumnType { kind, size, nullable: false, binary: true };
        NewColumn { name: String::new(), ty, source: Source::Added(Value::Bytes(vec![0; size as usize])) }
    };
    Some(vec![column(Kind::Unsigned, 2), column(Kind::Large, 4)])
}

/// The row: a number and what stands for the value.
pub fn encode(n: u16, value: &[u8]) -> Vec<u8> {
    assert!(value.len() < 0x80);
    [&[1][..], &n.to_le_bytes(), &[value.len() as u8], value].concat()
}

pub fn entries<'a>(key: &'a [u8], row: &'a [u8]) -> [Entry<'a>; 2] {
    let entry = |value| Entry { key, value, unique: true };
    [entry(row), entry(b"")]
}

/// What a row has of a value, and the value if it is to be stored apart.
pub fn stored(table: &Table, bytes: &[u8]) -> (Vec<u8>, Option<u64>) {
    if bytes.len() < LARGE_BYTES {
        return (bytes.to_vec(), None);
    }
    let id = table.next_large_value().unwrap();
    (Reference { id, length: bytes.len() as u64 }.encode().to_vec(), Some(id))
}

/// Inserts a row whose number is its key.
pub fn insert(txn: &mut Txn, table: &Table, key: u16, bytes: &[u8]) -> pandodb::Result<()> {
    let (in_row, id) = stored(table, bytes);
    let large: Vec<LargeValue<'_>> = id.map(|id| LargeValue { id, bytes }).into_iter().collect();
    let row = encode(key, &in_row);
    txn.insert_row_with(table, &entries(&key.to_be_bytes(), &row), &large, OnDuplicate::Share)
}

/// The value of a row, or the error of reading it.
pub fn value_of(txn: &mut Txn, table: &Arc<Table>, row: &[u8]) -> pandodb::Result<Vec<u8>> {
    let mut references = Vec::new();
    references_of(table.layouts().unwrap(), row, &mut references).unwrap();
    match references.first() {
        Some(reference) => txn.large_value(table, *reference, false).map(|value| value.unwrap()),
        None => Ok(row[4..].to_vec()),
    }
}

pub fn move_file(vfs: &Arc<SimVfs>, from: &str, to: &str) {
    vfs.rename(Path::new(from), Path::new(to)).unwrap();
    for path in [from, to] {
        vfs.sync_dir(Path::new(path).parent().unwrap()).unwrap();
    }
}
