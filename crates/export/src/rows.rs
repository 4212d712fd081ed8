//! Rows as the engine has them, a key and a value, as values of the table's columns.
//!
//! A value begins with the number of its layout, then bits for NULLs, then the columns (`mariadb/src/codec/row_codec.h`). Columns of
//! the primary key that the key gives back are only in the key (`mariadb/src/codec/key_part.h`). Virtual columns are nowhere.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use pando_column::large::Reference;
use pando_column::layout::{Column, ColumnType, Kind, Layout, Layouts, Value};
use pando_column::wire::Reader;

use crate::frm::{types, Definition, FrmColumn, Generated};
use crate::keys::{KeyPart, KeyParts};
use crate::value::{self, Cell};

/// Why a table or a row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RowError(pub String);

/// Where the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At this position of the current layout.
    Row(usize),
    /// In this part of the key.
    Key(usize),
}

/// How rows of a table become values.
#[derive(Clone, Debug)]
pub struct RowReader {
    layouts: Layouts,
    key: Option<KeyParts>,
    columns: Vec<(FrmColumn, Place)>,
}

/// What a row has of a column.
enum Raw<'a> {
    Null,
    Bytes(Cow<'a, [u8]>),
}

impl RowReader {
    /// For the table with this definition and these layouts, of which `wanted` are asked for; `None`: all that are stored.
    ///
    /// # Errors
    /// The two do not belong together; a column is asked for that is not stored or not there.
    pub fn new(
        definition: &Definition,
        layouts: &Layouts,
        has_primary_key: bool,
        wanted: Option<&[String]>,
    ) -> Result<RowReader, RowError> {
        let primary = definition.primary_key().filter(|_| has_primary_key);
        if primary.is_none() && has_primary_key {
            return Err(RowError("the table has a primary key, and its definition has none".into()));
        }
        let key = primary.map(|key| KeyParts::new(definition, key));
        let mut stored = layouts.current().columns.iter().enumerate();
        let mut places = Vec::new();
        for (number, column) in definition.columns.iter().enumerate() {
            if column.generated == Generated::Virtual {
                continue;
            }
            if let Some(part) = key.as_ref().and_then(|key| key.lossless_part_of(number)) {
                places.push((column, Place::Key(part)));
                continue;
            }
            match stored.next() {
                Some((at, found)) if agrees(column, found) => places.push((column, Place::Row(at))),
                Some((_, found)) => return Err(other_definition(column, found)),
                None => return Err(RowError(format!("column {} is not in the table's rows", column.name))),
            }
        }
        if let Some((_, left)) = stored.next() {
            let text = format!("the table's rows have column {}, and its definition has not", left.name);
            return Err(RowError(text));
        }
        let columns = match wanted {
            None => places.into_iter().map(|(column, place)| (column.clone(), place)).collect(),
            Some(names) => {
                let find = |name: &String| {
                    let lower = name.to_lowercase();
                    let found = places.iter().find(|(column, _)| column.name.to_lowercase() == lower);
                    let found = found.map(|(column, place)| ((*column).clone(), *place));
                    found.ok_or_else(|| RowError(format!("there is no stored column {name}")))
                };
                names.iter().map(find).collect::<Result<Vec<_>, RowError>>()?
            }
        };
        Ok(RowReader { layouts: layouts.clone(), key, columns })
    }

    /// The columns, in the order of the values.
    pub fn columns(&self) -> impl Iterator<Item = &FrmColumn> {
        self.columns.iter().map(|(column, _)| column)
    }

    /// Leaves out columns that are computed.
    pub fn without_generated(&mut self) {
        self.columns.retain(|(column, _)| column.generated == Generated::No);
    }

    /// What a key is in terms of columns, as far as it can be told; for people.
    pub fn key_text(&self, key: &[u8]) -> String {
        match &self.key {
            Some(parts) => parts.text(key),
            None => {
                <[u8; 8]>::try_from(key).map_or(String::new(), |id| format!("row {}", u64::from_be_bytes(id)))
            }
        }
    }

    /// The row's values. `large` gives the values that a row refers to.
    ///
    /// # Errors
    /// It is no row of the table; those of `large`.
    pub fn read(
        &self,
        key: &[u8],
        row: &[u8],
        large: &mut dyn FnMut(Reference) -> Result<Vec<u8>, RowError>,
    ) -> Result<Vec<Cell>, RowError> {
        let parts = match &self.key {
            Some(parts) if self.columns.iter().any(|(_, place)| matches!(place, Place::Key(_))) => {
                parts.values(key).map_err(RowError)?
            }
            _ => Vec::new(),
        };
        let raw = self.raw(row)?;
        let mut cells = Vec::with_capacity(self.columns.len());
        for (column, place) in &self.columns {
            let bytes: &[u8] = match place {
                Place::Key(part) => match parts.get(*part) {
                    Some(Some(bytes)) => bytes,
                    _ => return Err(RowError(format!("column {} cannot be had from the key", column.name))),
                },
                Place::Row(at) => match raw.get(*at) {
                    Some(Raw::Bytes(bytes)) => bytes,
                    _ => {
                        cells.push(Cell::Null);
                        continue;
                    }
                },
            };
            let is_large = match place {
                Place::Row(at) => self
                    .layouts
                    .current()
                    .columns
                    .get(*at)
                    .is_some_and(|column| column.ty.kind == Kind::Large),
                Place::Key(_) => false,
            };
            let reference = Reference::decode(bytes).filter(|_| is_large);
            let cell = match reference {
                Some(reference) => value::decode(column, &large(reference)?),
                None => value::decode(column, bytes),
            };
            cells.push(cell.map_err(|error| RowError(error.to_string()))?);
        }
        Ok(cells)
    }

    /// What the row has of each column of the current layout.
    fn raw<'a>(&'a self, row: &'a [u8]) -> Result<Vec<Raw<'a>>, RowError> {
        let wrong = |error: pando_column::DecodeError| RowError(error.to_string());
        let mut reader = Reader::new(row);
        let version = reader.varint("row").map_err(wrong)?;
        let layout = u32::try_from(version).ok().and_then(|version| self.layouts.get(version));
        let Some(layout) = layout else { return Err(RowError(format!("a row of layout {version}"))) };
        let current = self.layouts.current();
        let own = values(layout, &mut reader).map_err(wrong)?;
        if layout.version == current.version {
            return Ok(own
                .into_iter()
                .map(|value| value.map_or(Raw::Null, |v| Raw::Bytes(v.into())))
                .collect());
        }
        Ok(current.columns.iter().map(|column| upgraded(column, layout, &own)).collect())
    }
}

fn values<'a>(
    layout: &Layout,
    reader: &mut Reader<'a>,
) -> Result<Vec<Option<&'a [u8]>>, pando_column::DecodeError> {
    let nulls = reader.bytes(layout.null_bytes(), "row")?;
    let mut nullable = 0;
    let mut values = Vec::with_capacity(layout.columns.len());
    for column in &layout.columns {
        if column.ty.nullable {
            let is_null = nulls.get(nullable / 8).is_some_and(|byte| byte >> (nullable % 8) & 1 != 0);
            nullable += 1;
            if is_null {
                values.push(None);
                continue;
            }
        }
        let size = match column.ty.kind.is_counted() {
            true => usize::try_from(reader.varint("row")?).unwrap_or(usize::MAX),
            false => column.ty.size as usize,
        };
        values.push(Some(reader.bytes(size, "row")?));
    }
    Ok(values)
}

/// A column of a row of an older layout.
fn upgraded<'a>(column: &'a Column, layout: &Layout, own: &[Option<&'a [u8]>]) -> Raw<'a> {
    let at = layout.columns.iter().position(|old| old.id == column.id);
    match at.and_then(|at| Some((layout.columns.get(at)?, own.get(at)?))) {
        Some((_, None)) => Raw::Null,
        Some((old, Some(bytes))) if old.ty.size == column.ty.size || old.ty.kind.is_counted() => {
            Raw::Bytes((*bytes).into())
        }
        Some((old, Some(bytes))) => Raw::Bytes(ColumnType::convert(&old.ty, bytes, &column.ty).into()),
        None => match &column.added_with {
            Some(Value::Bytes(bytes)) => Raw::Bytes(bytes.as_slice().into()),
            _ => Raw::Null,
        },
    }
}

fn other_definition(column: &FrmColumn, found: &Column) -> RowError {
    RowError(format!(
        "the definition of the table does not fit its rows: column {} of type {} there, {} {} here",
        column.name, column.ty, found.name, found.ty
    ))
}

/// Whether the definition's column can be the layout's.
fn agrees(column: &FrmColumn, found: &Column) -> bool {
    let has_kind = match column.ty {
        types::TINY | types::SHORT | types::INT24 | types::LONG | types::LONGLONG => {
            found.ty.kind == if column.is_unsigned() { Kind::Unsigned } else { Kind::Signed }
        }
        types::YEAR | types::DATE | types::NEWDATE => found.ty.kind == Kind::Unsigned,
        types::FLOAT | types::DOUBLE => found.ty.kind == Kind::Float,
        types::ENUM => found.ty.kind == Kind::Enum,
        types::SET => found.ty.kind == Kind::Set,
        types::BIT => found.ty.kind == Kind::Bit,
        types::VARCHAR => found.ty.kind == Kind::Varchar && found.ty.size == column.length,
        types::TINY_BLOB..=types::BLOB | types::GEOMETRY => {
            matches!(found.ty.kind, Kind::Blob | Kind::Large)
        }
        types::STRING | types::VAR_STRING if !column.is_plugin_type() => {
            found.ty.kind == Kind::Char && found.ty.size == column.length
        }
        _ => found.ty.kind == Kind::Bytes,
    };
    let has_name = found.name.is_empty() || found.name.to_lowercase() == column.name.to_lowercase();
    has_kind && has_name && found.ty.nullable == column.is_nullable()
}

impl KeyPart {
    /// What the part's bytes are, for people.
    pub(crate) fn shown(&self, column: &FrmColumn, bytes: &[u8]) -> String {
        let cell = value::decode(column, bytes);
        let text = match cell {
            Ok(Cell::Integer(number)) => number.to_string(),
            Ok(Cell::Decimal(text)) => text,
            Ok(Cell::Text(text)) => format!("{text:?}"),
            Ok(Cell::Float(number)) => number.to_string(),
            Ok(Cell::Double(number)) => number.to_string(),
            Ok(Cell::Null) | Err(_) => "?".into(),
            Ok(Cell::Bytes(bytes)) => crate::output::hex(&bytes),
        };
        format!("{} = {text}", column.name)
    }
}
