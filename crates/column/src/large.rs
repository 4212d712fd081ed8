//! Large values out of line: what a row has in place of a value that lies in a dictionary of its own.
//!
//! A value of a column of [`Kind::Large`] is stored either in the row, as it is, or apart, under a number that the table gives
//! once ([`Reference::id`]). Then the row has the **reference**:
//!
//! ```text
//!  0  f5 "PandoLV"   no text in UTF-8 begins so
//!  8  id             u64, big-endian: the key of the value in the dictionary of large values
//! 16  length         u64, little-endian, of the value
//! ```
//!
//! A value that looks like a reference is always stored apart ([`must_be_apart`]), so a row has no value that could be taken for
//! one. So a change of other columns writes the reference again, and not the value, and who does not want the column does not
//! read it: TOAST of PostgreSQL does it so, and the idea to keep large values out of a log-structured tree is that of
//! WiscKey (Lu et al., FAST 2016).

use pando_base::limits::LARGE_VALUE_BYTES;

use crate::layout::{Kind, Layouts};
use crate::wire::Reader;
use crate::DecodeError;

/// What a reference begins with.
pub const MAGIC: [u8; 8] = *b"\xf5PandoLV";

/// Bytes of a reference.
pub const REFERENCE_BYTES: usize = 24;

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The number of the value.
    pub id: u64,
    /// Its bytes.
    pub length: u64,
}

impl Reference {
    /// The bytes that a row has.
    pub fn encode(self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.key());
        bytes[16..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// The reference, if a column's bytes are one.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Reference> {
        if bytes.len() != REFERENCE_BYTES || !bytes.starts_with(&MAGIC) {
            return None;
        }
        let number = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).ok();
        Some(Reference { id: u64::from_be_bytes(number(8)?), length: u64::from_le_bytes(number(16)?) })
    }

    /// The key of the value in the dictionary of large values.
    pub fn key(self) -> [u8; 8] {
        self.id.to_be_bytes()
    }
}

/// Whether a value is to be stored apart.
pub fn must_be_apart(value: &[u8]) -> bool {
    value.len() >= LARGE_VALUE_BYTES || Reference::decode(value).is_some()
}

/// Adds the references that a row has to `out`. Errors: it is not a row of one of the layouts.
pub fn references_of(layouts: &Layouts, row: &[u8], out: &mut Vec<Reference>) -> Result<(), DecodeError> {
    let what = "row";
    let mut reader = Reader::new(row);
    let version = reader.varint(what)?;
    let layout = u32::try_from(version).ok().and_then(|version| layouts.get(version));
    let Some(layout) = layout else { return Err(DecodeError::new(what, "a layout's number", version)) };
    let Some(last) = layout.columns.iter().rposition(|column| column.ty.kind == Kind::Large) else {
        return Ok(());
    };
    let nulls = reader.bytes(layout.null_bytes(), what)?;
    let mut nullable = 0;
    for column in &layout.columns[..=last] {
        if column.ty.nullable {
            let is_null = nulls[nullable / 8] >> (nullable % 8) & 1 != 0;
            nullable += 1;
            if is_null {
                continue;
            }
        }
        let size = match column.ty.kind.is_counted() {
            true => usize::try_from(reader.varint(what)?).unwrap_or(usize::MAX),
            false => column.ty.size as usize,
        };
        let bytes = reader.bytes(size, what)?;
        if column.ty.kind == Kind::Large {
            out.extend(Reference::decode(bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{ColumnType, NewColumn, Source, Value};
    use crate::wire::put_varint;

    #[test]
    fn a_reference_is_what_it_was_and_nothing_else_is_one() {
        let reference = Reference { id: 0x0102_0304_0506_0708, length: 5 << 20 };
        let bytes = reference.encode();
        assert_eq!(Reference::decode(&bytes), Some(reference));
        assert_eq!(Reference::decode(&bytes[..23]), None);
        assert_eq!(Reference::decode(&[&bytes[..], b"x"].concat()), None);
        assert!(std::str::from_utf8(&bytes).is_err());
    }

    #[test]
    fn long_values_and_those_that_look_like_references_are_stored_apart() {
        assert!(!must_be_apart(b"short"));
        assert!(!must_be_apart(&MAGIC), "too short for a reference");
        assert!(must_be_apart(&Reference { id: 1, length: 2 }.encode()));
        assert!(!must_be_apart(&vec![7; LARGE_VALUE_BYTES - 1]));
        assert!(must_be_apart(&vec![7; LARGE_VALUE_BYTES]));
    }

    fn column(kind: Kind, size: u32, nullable: bool) -> NewColumn {
        let ty = ColumnType { kind, size, nullable, binary: false };
        NewColumn { name: String::new(), ty, source: Source::Added(Value::Null) }
    }

    #[test]
    fn references_are_found_among_other_columns_and_nulls() {
        let layouts = Layouts::new(vec![
            column(Kind::Signed, 4, false),
            column(Kind::Large, 4, true),
            column(Kind::Varchar, 30, true),
            column(Kind::Large, 2, false),
            column(Kind::Unsigned, 1, true),
        ]);
        let (one, other) = (Reference { id: 1, length: 100 }, Reference { id: 2, length: 1 << 33 });
        let row = |nulls: u8, counted: &[&[u8]]| {
            let mut row = vec![1, nulls, 9, 9, 9, 9];
            for value in counted {
                put_varint(&mut row, value.len() as u64);
                row.extend_from_slice(value);
            }
            row
        };
        let found = |row: &[u8]| {
            let mut found = Vec::new();
            references_of(&layouts, row, &mut found).map(|()| found)
        };
        assert_eq!(found(&row(0, &[&one.encode(), b"text", &other.encode()])).unwrap(), [one, other]);
        assert_eq!(found(&row(1, &[b"text", &other.encode()])).unwrap(), [other]);
        // What is in another kind of column is no reference, whatever it looks like.
        assert_eq!(found(&row(0, &[b"", &one.encode(), b"short"])).unwrap(), []);
        assert!(found(&row(0, &[b"", b"x"])).is_err());
        assert!(found(&[9, 0]).is_err());
        assert!(found(&[]).is_err());
    }
}
