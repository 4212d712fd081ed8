//! Columns of rows that are in no run: kept in the cache like those of segments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_column::vector::Vector;
use pando_column::Pick;

use crate::cache::{Block, BlockKey, Part};
use crate::columns::part_of;
use crate::run::RunContext;

/// Bit of the run number in names of cached blocks that are of no run.
pub(crate) const LOOSE: u64 = 1 << 62;

/// The last number given; no two have the same in the life of the process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Columns of some rows under a name of their own. They leave the cache with it.
#[derive(Debug)]
pub struct LooseColumns {
    context: RunContext,
    number: u64,
    /// What may be in the cache.
    parts: Mutex<Vec<u64>>,
}

impl LooseColumns {
    /// None yet.
    pub fn new(context: &RunContext) -> LooseColumns {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        LooseColumns { context: context.clone(), number, parts: Mutex::default() }
    }

    /// For each pick its column, in the form of the layout with this version; `None` if one of them is not here.
    pub fn get(&self, version: u32, picks: &[Pick]) -> Option<Vec<Arc<Vector>>> {
        let column = |pick: &Pick| match self.context.cache.get(&self.key_of(part_of(pick)))? {
            Block::Column(Part::Values { version: of, vector }) if of == version => vector,
            _ => None,
        };
        picks.iter().map(column).collect()
    }

    /// Keeps a column for each pick, in the form of the layout with this version.
    pub fn keep(&self, version: u32, picks: &[Pick], vectors: &[Arc<Vector>]) {
        for (pick, vector) in picks.iter().zip(vectors) {
            let part = part_of(pick);
            let mut parts = self.parts.lock();
            if !parts.contains(&part) {
                parts.push(part);
            }
            drop(parts);
            let values = Part::Values { version, vector: Some(vector.clone()) };
            self.context.cache.insert(self.key_of(part), Block::Column(values));
        }
    }

    fn key_of(&self, part: u64) -> BlockKey {
        BlockKey { instance: self.context.file.instance(), run: LOOSE | self.number, offset: 0, part }
    }
}

impl Drop for LooseColumns {
    fn drop(&mut self) {
        let parts = std::mem::take(self.parts.get_mut());
        parts.iter().for_each(|part| self.context.cache.remove(&self.key_of(*part)));
        self.context.cache.removed();
    }
}
