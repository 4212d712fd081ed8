//! Keys of a tree, or enough of them to say how they are distributed.
//!
//! A small tree is gone over. Of a large one stretches of neighbours are given that begin at places which are evenly spread
//! over the records of its runs. Where they are few, because most records are in memory, there are no such places.

use std::sync::Arc;

use pando_base::{Result, Seqno};

use crate::cursor::Cursor;
use crate::estimate::distinct_runs;
use crate::tree::Tree;

/// Stretches of a large tree, and keys in each.
const STRETCHES: u64 = 20;
const STRETCH_KEYS: usize = 2000;

/// What was given of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// All its keys.
    All,
    /// Stretches of neighbouring keys here and there.
    Stretches,
    /// Nothing: most of its records are in memory, and too many to go over.
    Nothing,
}

/// Gets keys that ascend; with `true` the first of a stretch of neighbours.
pub type EachKey<'a> = dyn FnMut(bool, &[u8]) + 'a;

impl Tree {
    /// Gives all keys that `snapshot` sees if there are about `walk_max` records at most, else those of some stretches,
    /// which do not overlap.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn sample_keys(
        self: &Arc<Self>,
        snapshot: Seqno,
        walk_max: u64,
        each: &mut EachKey<'_>,
    ) -> Result<Sampled> {
        let all = self.all_records().rows;
        let mut cursor = self.cursor(snapshot);
        if all <= walk_max {
            cursor.seek_first()?;
            give(&mut cursor, usize::MAX, each)?;
            return Ok(Sampled::All);
        }
        let places = self.places(all)?;
        let mut end = Vec::new();
        for place in &places {
            if *place >= end {
                cursor.seek(place)?;
                give(&mut cursor, STRETCH_KEYS, each)?;
                if !cursor.valid() {
                    break;
                }
                end = cursor.key().to_vec();
            }
        }
        Ok(if places.is_empty() { Sampled::Nothing } else { Sampled::Stretches })
    }

    /// Keys that are evenly spread, ascending.
    fn places(&self, all: u64) -> Result<Vec<Vec<u8>>> {
        let mut runs = distinct_runs(&self.version.load());
        let total: u64 = runs.iter().map(|run| run.meta().rows).sum();
        let mut places = Vec::new();
        if total < all / 4 {
            return Ok(places);
        }
        runs.sort_by(|a, b| a.meta().min_key.cmp(&b.meta().min_key));
        let (mut runs, mut before) = (runs.into_iter().peekable(), 0);
        for number in 0..STRETCHES {
            let wanted = (u128::from(2 * number + 1) * u128::from(total) / u128::from(2 * STRETCHES)) as u64;
            while let Some(run) = runs.next_if(|run| before + run.meta().rows <= wanted) {
                before += run.meta().rows;
            }
            let Some(run) = runs.peek() else { break };
            places.push(run.key_near(wanted - before)?);
        }
        places.sort();
        Ok(places)
    }
}

/// Gives up to `most` keys from where the cursor is, and leaves it behind them.
fn give(cursor: &mut Cursor, most: usize, each: &mut EachKey<'_>) -> Result<()> {
    for number in 0..most {
        if !cursor.valid() {
            break;
        }
        each(number == 0, cursor.key());
        cursor.next()?;
    }
    Ok(())
}
