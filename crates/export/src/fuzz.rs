//! The decoders of this crate, for `pando-fuzz`: of the server's definitions of tables, and of rows and keys by them.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use pando_base::fuzz::Target;
use pando_column::layout::Layouts;

use crate::frm::{Definition, FrmColumn};
use crate::keys::KeyParts;
use crate::value;

const IMAGES: [&[u8]; 3] = [
    include_bytes!("../tests/frm/types.frm"),
    include_bytes!("../tests/frm/parts.frm"),
    include_bytes!("../tests/frm/binpk.frm"),
];

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "definition",
            reads: "the server's definition of a table (export/src/frm.rs)",
            seeds: || IMAGES.map(<[u8]>::to_vec).to_vec(),
            accepts: accepts_definition,
        },
        Target {
            name: "value",
            reads: "values of columns of each type (export/src/value.rs)",
            seeds: value_seeds,
            accepts: accepts_value,
        },
        Target {
            name: "key",
            reads: "primary keys, taken apart (export/src/keys.rs)",
            seeds: key_seeds,
            accepts: accepts_key,
        },
    ]
}

fn accepts_definition(bytes: &[u8]) -> bool {
    let Ok(definition) = Definition::read(bytes) else { return false };
    if let Some(key) = definition.primary_key() {
        let _ = KeyParts::new(&definition, key);
    }
    let layouts = Layouts::new(Vec::new());
    let _ = crate::rows::RowReader::new(&definition, &layouts, false, None);
    definition.columns.iter().for_each(|column| _ = value::is_readable(column));
    true
}

/// The columns of a table with all types.
fn columns() -> Vec<FrmColumn> {
    Definition::read(IMAGES[0]).unwrap().columns
}

/// The number of a column, and bytes.
fn value_seeds() -> Vec<Vec<u8>> {
    let lengths = [0, 1, 2, 3, 4, 5, 8, 11, 16];
    let numbers = 0..columns().len() as u8;
    let all = numbers.flat_map(|number| lengths.map(|length| [&[number][..], &vec![0x31; length]].concat()));
    all.filter(|bytes| accepts_value(bytes)).collect()
}

fn accepts_value(bytes: &[u8]) -> bool {
    let Some((number, bytes)) = bytes.split_first() else { return false };
    let columns = columns();
    let column = &columns[usize::from(*number) % columns.len()];
    value::decode(column, bytes).is_ok()
}

/// The number of a table, and a key.
fn key_seeds() -> Vec<Vec<u8>> {
    let key = [&[0x80, 0, 0, 1][..], b"text\0\x01", &[0x7f; 40]].concat();
    let all = (0..3).flat_map(|table| (0..key.len()).map(move |len| (table, len)));
    let all = all.map(|(table, len)| [&[table][..], &key[..len]].concat());
    all.filter(|bytes| accepts_key(bytes)).collect()
}

fn accepts_key(bytes: &[u8]) -> bool {
    let Some((table, key)) = bytes.split_first() else { return false };
    let definition = Definition::read(IMAGES[usize::from(*table) % IMAGES.len()]).unwrap();
    let Some(of) = definition.primary_key() else { return false };
    let parts = KeyParts::new(&definition, of);
    let _ = parts.text(key);
    parts.values(key).is_ok()
}
