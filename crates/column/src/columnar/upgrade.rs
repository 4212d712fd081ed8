//! Rows of an older layout, written in the current one.
//!
//! A change of columns rewrites nothing: rows say which layout they are of (`crate::layout`). But whoever writes them anew
//! for another reason writes them in the current layout, so that all rows of a segment have the same columns in time: only then
//! do its columns have zones, and can be read as wholes. What a reader gets is the same: the value of each current column.
//!
//! A row that refers to a large value in a column that was dropped stays as it is: whoever deletes or changes it has to find the
//! reference, to delete the value.
#![deny(clippy::indexing_slicing)]

use super::shape::{Physical, Shape};
use crate::large::Reference;
use crate::layout::{Column, ColumnType, Kind, Layout, Value};
use crate::wire::put_varint;

/// How rows of one layout become rows of another.
#[derive(Clone, Debug)]
pub(super) struct Upgrade {
    from: Shape,
    from_prefix: Vec<u8>,
    to_prefix: Vec<u8>,
    to_null_bytes: usize,
    steps: Vec<Step>,
    /// Columns of the row that were dropped since and may have references.
    dropped: Vec<usize>,
}

/// A column of the current layout.
#[derive(Clone, Debug)]
struct Step {
    ty: ColumnType,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// The column at this position of the row; of this type there.
    Row(usize, ColumnType),
    /// Added since, with this value; `None`: NULL.
    Added(Option<Vec<u8>>),
}

impl Upgrade {
    /// From one layout of a table to its current one; `None` if either has columns that cannot be taken apart.
    pub(super) fn new(from: &Layout, current: &Layout) -> Option<Upgrade> {
        let (shape, to) = (Shape::of(from)?, Shape::of(current)?);
        let is_dropped = |old: &Column| {
            old.ty.kind == Kind::Large && current.columns.iter().all(|column| column.id != old.id)
        };
        let dropped = from.columns.iter().enumerate().filter(|(_, old)| is_dropped(old)).map(|(at, _)| at);
        let steps: Option<Vec<Step>> = current.columns.iter().map(|column| step(from, column)).collect();
        Some(Upgrade {
            from_prefix: shape.prefix(),
            from: shape,
            to_prefix: to.prefix(),
            to_null_bytes: to.null_bytes(),
            steps: steps?,
            dropped: dropped.collect(),
        })
    }

    /// Writes the row into `out`. `None`: it is not one of that layout, or has to stay in it, and `out` has anything.
    pub(super) fn write(&self, row: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let cells = self.cells(row)?;
        for at in &self.dropped {
            if (*cells.get(*at)?).is_some_and(|value| Reference::decode(value).is_some()) {
                return None;
            }
        }
        out.clear();
        out.extend_from_slice(&self.to_prefix);
        let nulls = out.len();
        out.resize(nulls + self.to_null_bytes, 0);
        let mut null_at = 0;
        for Step { ty, origin } in &self.steps {
            let (value, old) = match origin {
                Origin::Row(position, old) => (*cells.get(*position)?, old),
                Origin::Added(value) => (value.as_deref(), ty),
            };
            match value {
                Some(value) => put_value(out, value, old, ty),
                None if ty.nullable => *out.get_mut(nulls + null_at / 8)? |= 1 << (null_at % 8),
                None => return None,
            }
            null_at += usize::from(ty.nullable);
        }
        Some(())
    }

    /// The row's values; `None` for NULL.
    fn cells<'a>(&self, row: &'a [u8]) -> Option<Vec<Option<&'a [u8]>>> {
        let rest = row.strip_prefix(self.from_prefix.as_slice())?;
        let (nulls, mut rest) = rest.split_at_checked(self.from.null_bytes())?;
        let mut null_at = 0;
        let mut cells = Vec::with_capacity(self.from.forms().len());
        for form in self.from.forms() {
            if form.nullable {
                let is_null = nulls.get(null_at / 8)? >> (null_at % 8) & 1 != 0;
                null_at += 1;
                if is_null {
                    cells.push(None);
                    continue;
                }
            }
            let len = match form.physical {
                Physical::Counted => super::shape::take_count(&mut rest)?,
                Physical::Whole => return None,
                physical => physical.size()?,
            };
            let (cell, after) = rest.split_at_checked(len)?;
            rest = after;
            cells.push(Some(cell));
        }
        rest.is_empty().then_some(cells)
    }
}

fn step(from: &Layout, column: &Column) -> Option<Step> {
    let origin = match from.columns.iter().position(|old| old.id == column.id) {
        Some(at) => Origin::Row(at, from.columns.get(at)?.ty),
        None => Origin::Added(match column.added_with.as_ref()? {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes.clone()),
        }),
    };
    Some(Step { ty: column.ty, origin })
}

/// As [`ColumnType::convert`], with the count before it.
fn put_value(out: &mut Vec<u8>, value: &[u8], old: &ColumnType, ty: &ColumnType) {
    if ty.kind.is_counted() {
        put_varint(out, value.len() as u64);
        return out.extend_from_slice(value);
    }
    out.extend_from_slice(value);
    let is_negative = old.kind == Kind::Signed && value.last().is_some_and(|top| top & 0x80 != 0);
    let missing = (ty.size as usize).saturating_sub(value.len());
    out.resize(out.len() + missing, if is_negative { 0xff } else { 0 });
}
