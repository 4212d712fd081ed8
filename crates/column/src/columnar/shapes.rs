//! What a writer of column-wise segments knows of its values.

use super::shape::{Shape, Taker};
use super::zone::{self, is_zoned};
use crate::layout::{Layout, Layouts};
use crate::wire::Reader;

/// The layouts that values may be rows of. The default knows none: values are opaque.
#[derive(Clone, Debug, Default)]
pub struct Shapes(pub(super) Vec<Known>);

/// A layout that a writer knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) shape: Shape,
    /// Which columns have zones.
    pub(super) zoned: Vec<bool>,
}

impl Shapes {
    /// Those of a table.
    pub fn of(layouts: &Layouts) -> Shapes {
        let known = |layout: &Layout| {
            let zoned = layout.columns.iter().map(|column| is_zoned(&column.ty)).collect();
            Some(Known { shape: Shape::of(layout)?, zoned })
        };
        Shapes(layouts.versions().iter().filter_map(known).collect())
    }

    /// Whether `zones` are of rows of one of these layouts.
    pub fn knows(&self, zones: &[u8]) -> bool {
        self.known(zones).is_some()
    }

    fn known(&self, zones: &[u8]) -> Option<&Known> {
        let version = Reader::new(zones).varint("layout of zones").ok()?;
        let is_it = |known: &&Known| matches!(known.shape, Shape::Rows { version: of, .. } if u64::from(of) == version);
        self.0.iter().find(is_it)
    }

    /// The zones of records with these values, for comparison with what a segment's writer said: `None` if they are not rows
    /// of the layout that `zones` are of, or it is not known here.
    pub fn zones_of<'a>(&self, zones: &[u8], values: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
        let known = self.known(zones)?;
        let (mut taker, mut bytes) = (Taker::new(&known.shape), Vec::new());
        for value in values {
            if !taker.take(value, bytes.len() as u32) {
                return None;
            }
            bytes.extend_from_slice(value);
        }
        let mut found = Vec::new();
        zone::put(&mut found, &known.shape, &known.zoned, &taker.columns, &bytes);
        Some(found)
    }
}
