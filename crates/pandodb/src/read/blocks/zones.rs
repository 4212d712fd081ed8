//! What is known of a segment's values before they are read.

use pando_column::layout::{Column, Kind, Layouts, Value};
use pando_column::KeyPath;
use pando_tree::Pieces;

use super::want::Want;

/// What the values of a want are like in some rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// No value is below the first or above the second, in the form in which a block has them, and in the order of what
    /// they mean: of numbers for integers, of bytes for others. `None`: NULL everywhere.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// There may be NULLs.
    pub has_null: bool,
}

/// How many rows of a segment are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None: it is passed over.
    None,
    /// Perhaps some.
    Some,
    /// All.
    All,
}

/// What is known of the rows of a segment.
#[derive(Debug)]
pub struct Zones<'a> {
    pub(super) layouts: &'a Layouts,
    pub(super) wants: &'a [Want],
    pub(super) pieces: &'a Pieces,
    /// Number of the segment in the piece that the pieces gave last.
    pub(super) nth: usize,
    /// Rows may refer to large values.
    pub(super) has_references: bool,
}

impl Zones<'_> {
    /// The zone of the want with this number; `None`: nothing is known.
    pub fn get(&self, want: usize) -> Option<Zone> {
        match self.wants.get(want)? {
            Want::Key { offset, size } => self.of_key(*offset, *size),
            Want::KeyPart(path) => self.of_key_part(path),
            Want::WholeKey | Want::Length(_) => None,
            Want::Stored(position) => self.of_column(&self.layouts.current().columns[*position]),
        }
    }

    /// Keys ascend: where two have the same bytes before, so have those between them, and what comes then ascends, too.
    fn of_key(&self, offset: usize, size: usize) -> Option<Zone> {
        let (least, most) = self.pieces.key_bounds(self.nth)?;
        if least.get(..offset)? != most.get(..offset)? {
            return None;
        }
        let part = |key: &[u8]| key.get(offset..offset + size).map(<[u8]>::to_vec);
        Some(Zone { bounds: Some((part(least)?, part(most)?)), has_null: false })
    }

    /// As `of_key`. Nothing is said of texts, which compare otherwise than their bytes.
    fn of_key_part(&self, path: &KeyPath) -> Option<Zone> {
        let (least, most) = self.pieces.key_bounds(self.nth)?;
        if path.width() == 0 || least.get(..path.offset(least)?)? != most.get(..path.offset(most)?)? {
            return None;
        }
        let part = |key: &[u8]| {
            let mut part = Vec::new();
            path.take(key, &mut part).map(|()| part)
        };
        let (least, most) = (part(least)?, part(most)?);
        let bounds = if path.is_reversed() { (most, least) } else { (least, most) };
        Some(Zone { bounds: Some(bounds), has_null: false })
    }

    fn of_column(&self, now: &Column) -> Option<Zone> {
        if self.has_references && now.ty.kind == Kind::Large {
            // It may be that of references.
            return None;
        }
        let zones = self.pieces.zones(self.nth, self.layouts)?;
        let Some(then) = zones.layout.columns.iter().find(|column| column.id == now.id) else {
            return Some(added(now));
        };
        let zone = zones.get(now.id)?;
        let value = |value: &[u8]| match then.ty.size == now.ty.size {
            true => value.to_vec(),
            false => then.ty.convert(value, &now.ty),
        };
        let bounds = zone.bounds.map(|(least, most)| (value(least), value(most)));
        Some(Zone { bounds, has_null: zone.has_null })
    }
}

/// Of rows that were written before the column was there.
fn added(column: &Column) -> Zone {
    match &column.added_with {
        Some(Value::Bytes(bytes)) => Zone { bounds: Some((bytes.clone(), bytes.clone())), has_null: false },
        Some(Value::Null) | None => Zone { bounds: None, has_null: true },
    }
}
