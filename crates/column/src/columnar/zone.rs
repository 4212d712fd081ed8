//! Zones: between which values a column lies in a segment, so that readers can pass over the segment.
//!
//! They stand beside the segment, in the run's index, for segments whose records are all rows of one layout. Columns of
//! 1 to [`ZONE_BYTES_MAX`] bytes have one, unless they are floating-point numbers. (Texts have none: their order is the
//! collation's, which nobody down here knows.)
//!
//! ```text
//! nothing: no column has one; else
//! varint layout; per column of the layout that has a zone:
//!   u8  0: NULL everywhere; else 1, + 2 if there are NULLs, + 4 if all other values are the same
//!   the least value, and unless it is the only one the greatest: as many bytes each as the column's values have
//! ```
#![deny(clippy::indexing_slicing)]

use super::shape::{Cells, Form, Shape, Span, Taken};
use crate::layout::{ColumnType, Kind, Layout, Layouts};
use crate::wire::{put_varint, Reader};

/// Longer values have no zone.
pub const ZONE_BYTES_MAX: u32 = 16;

const SOME: u8 = 1;
const NULLS: u8 = 2;
const SAME: u8 = 4;

/// What the values of a column are like in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone<'a> {
    /// The least and the greatest value, as rows of the segment's layout have them; `None`: NULL everywhere.
    pub bounds: Option<(&'a [u8], &'a [u8])>,
    /// Some row has NULL.
    pub has_null: bool,
}

/// The zones of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Zones<'a> {
    /// The layout of its rows.
    pub layout: &'a Layout,
    bytes: &'a [u8],
}

/// Whether columns of this type have zones.
pub(crate) fn is_zoned(ty: &ColumnType) -> bool {
    !ty.kind.is_counted() && ty.kind != Kind::Float && (1..=ZONE_BYTES_MAX).contains(&ty.size)
}

impl<'a> Zones<'a> {
    /// Those that were written as `bytes`. `None`: none were, or not of one of `layouts`.
    pub fn of(bytes: &'a [u8], layouts: &'a Layouts) -> Option<Zones<'a>> {
        let mut reader = Reader::new(bytes);
        let version = u32::try_from(reader.varint("layout of zones").ok()?).ok()?;
        Some(Zones { layout: layouts.get(version)?, bytes: reader.rest() })
    }

    /// The zone of the column with this id; `None` if it has none.
    pub fn get(&self, id: u32) -> Option<Zone<'a>> {
        let mut rest = self.bytes;
        for column in self.layout.columns.iter().filter(|column| is_zoned(&column.ty)) {
            let zone = take(&mut rest, column.ty.size as usize)?;
            if column.id == id {
                return Some(zone);
            }
        }
        None
    }
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<Zone<'a>> {
    let (flags, after) = rest.split_first()?;
    *rest = after;
    if flags & SOME == 0 {
        return Some(Zone { bounds: None, has_null: true });
    }
    let mut value = || {
        let (value, after) = rest.split_at_checked(size)?;
        *rest = after;
        Some(value)
    };
    let least = value()?;
    let most = if flags & SAME != 0 { least } else { value()? };
    Some(Zone { bounds: Some((least, most)), has_null: flags & NULLS != 0 })
}

/// Writes the zones of rows of a shape; `zoned`: which columns have one. `bytes` are those that spans are in.
pub(crate) fn put(out: &mut Vec<u8>, shape: &Shape, zoned: &[bool], columns: &[Taken], bytes: &[u8]) {
    let Shape::Rows { version, forms } = shape else { return };
    put_varint(out, u64::from(*version));
    let columns = forms.iter().zip(columns).zip(zoned).filter(|(_, is_zoned)| **is_zoned);
    columns.for_each(|((form, column), _)| put_zone(out, form, column, bytes));
}

fn put_zone(out: &mut Vec<u8>, form: &Form, column: &Taken, bytes: &[u8]) {
    let (Some(size), false) = (form.physical.size(), column.all_null) else { return out.push(0) };
    let is_there = |row: usize| !column.nulls.get(row).copied().unwrap_or(false);
    let mut flags = SOME | if column.has_null { NULLS } else { 0 };
    match &column.cells {
        Cells::Integers(values) => {
            let (least, most) = match column.has_null {
                false => bounds(values.iter().copied()),
                true => bounds(values.iter().enumerate().filter(|(row, _)| is_there(*row)).map(|(_, v)| *v)),
            };
            flags |= if least == most { SAME } else { 0 };
            out.push(flags);
            let mut put = |n: u64| out.extend(form.physical.bytes_of(n).iter().take(size));
            put(least);
            if least != most {
                put(most);
            }
        }
        Cells::Spans(spans) => {
            let value = |span: &Span| bytes.get(span.start as usize..(span.start + span.len) as usize);
            let values =
                || spans.iter().enumerate().filter(|(row, _)| is_there(*row)).filter_map(|(_, s)| value(s));
            let (Some(least), Some(most)) = (values().min(), values().max()) else { return out.push(0) };
            flags |= if least == most { SAME } else { 0 };
            out.push(flags);
            out.extend_from_slice(least);
            if least != most {
                out.extend_from_slice(most);
            }
        }
    }
}

fn bounds(values: impl Iterator<Item = u64>) -> (u64, u64) {
    values.fold((u64::MAX, 0), |(least, most), value| (least.min(value), most.max(value)))
}
