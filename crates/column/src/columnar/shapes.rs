//! What a writer of column-wise segments knows of its values.

use std::sync::OnceLock;

use super::shape::{Shape, Taker};
use super::upgrade::Upgrade;
use super::zone::{self, is_zoned};
use crate::layout::{Layout, Layouts};
use crate::wire::{put_varint, Reader};

/// The layouts that values may be rows of. The default knows none: values are opaque.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    /// Oldest first.
    pub(super) known: Vec<Known>,
    layouts: Option<Layouts>,
    /// What rows of the current layout begin with.
    newest: Vec<u8>,
}

/// A layout that a writer knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    version: u32,
    pub(super) shape: Shape,
    /// Which columns have zones.
    pub(super) zoned: Vec<bool>,
    /// Made when the first row is met; `None` in it: there is no way.
    upgrade: OnceLock<Option<Upgrade>>,
}

impl Shapes {
    /// Those of a table.
    pub fn of(layouts: &Layouts) -> Shapes {
        let known = |layout: &Layout| {
            let zoned = layout.columns.iter().map(|column| is_zoned(&column.ty)).collect();
            Some(Known {
                version: layout.version,
                shape: Shape::of(layout)?,
                zoned,
                upgrade: OnceLock::new(),
            })
        };
        let known = layouts.versions().iter().filter_map(known).collect();
        let mut newest = Vec::new();
        put_varint(&mut newest, u64::from(layouts.current().version));
        Shapes { known, layouts: Some(layouts.clone()), newest }
    }

    /// A row of an older layout in the current one, written into `scratch`. `None`: the value is to stay as it is, because it
    /// is a row of the current layout, or nothing that is known.
    pub fn upgrade<'a>(&self, value: &[u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let layouts = self.layouts.as_ref().filter(|_| !value.starts_with(&self.newest))?;
        let version = u32::try_from(Reader::new(value).varint("layout of a row").ok()?).ok()?;
        let known = self.known.get(self.known.binary_search_by_key(&version, |known| known.version).ok()?)?;
        let way = || Upgrade::new(layouts.get(version)?, layouts.current());
        known.upgrade.get_or_init(way).as_ref()?.write(value, scratch)?;
        Some(scratch)
    }

    /// Whether `zones` are of rows of one of these layouts.
    pub fn knows(&self, zones: &[u8]) -> bool {
        self.known(zones).is_some()
    }

    fn known(&self, zones: &[u8]) -> Option<&Known> {
        let version = Reader::new(zones).varint("layout of zones").ok()?;
        let is_it = |known: &&Known| matches!(known.shape, Shape::Rows { version: of, .. } if u64::from(of) == version);
        self.known.iter().find(is_it)
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
