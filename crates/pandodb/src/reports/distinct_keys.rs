//! Counting different keys for [`KeyStatistics`](crate::table::key_statistics), when somebody asks.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::Result;
use pando_tree::Sampled;

use crate::db::Db;
use crate::table::key_statistics::{Counts, Distinct, KeyEnds};
use crate::table::Table;

/// Dictionaries with more records are not gone over as a whole, unless somebody asks for figures expressly.
const WALK_MAX: u64 = 10_000;
/// ... and then with up to so many, if most of them are in memory.
const WALK_ON_DEMAND_MAX: u64 = 1_000_000;

impl Db {
    /// How many different values the first `parts` parts of an index's keys have; `None`: not known. Those that are known are
    /// made anew if they are out of date, or if `anew` says so.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn distinct_keys(
        &self,
        table: &Table,
        index: usize,
        parts: usize,
        anew: bool,
        ends: &mut KeyEnds<'_>,
    ) -> Result<Option<Arc<Distinct>>> {
        if table.is_unusable(index) {
            return Ok(None);
        }
        let statistics = &table.dicts[index].key_statistics;
        let rows = table.rows_estimate();
        let known = statistics.known.lock().clone();
        let is_current = known.as_ref().is_some_and(|known| known.is_of(rows, parts));
        if (is_current && !anew) || statistics.is_counting.swap(true, Ordering::Acquire) {
            return Ok(known);
        }
        let counted = self.count_keys(table, index, parts, anew, ends);
        statistics.is_counting.store(false, Ordering::Release);
        let counted = counted?.map(|values| Arc::new(Distinct { rows, values }));
        if counted.is_some() {
            statistics.known.lock().clone_from(&counted);
        }
        Ok(counted.or(known))
    }

    fn count_keys(
        &self,
        table: &Table,
        index: usize,
        parts: usize,
        anew: bool,
        ends: &mut KeyEnds<'_>,
    ) -> Result<Option<Vec<u64>>> {
        let tree = &table.dicts[index].tree;
        let snapshot = self.snapshots.take();
        let mut counts = Counts::new(parts);
        let mut each = |begins: bool, key: &[u8]| counts.add(begins, key, ends);
        let mut sampled = tree.sample_keys(snapshot.seqno(), WALK_MAX, &mut each)?;
        if anew && sampled == Sampled::Nothing {
            sampled = tree.sample_keys(snapshot.seqno(), WALK_ON_DEMAND_MAX, &mut each)?;
        }
        Ok(match sampled {
            Sampled::All => Some(counts.all()),
            Sampled::Stretches => Some(counts.scaled(table.rows_estimate())),
            Sampled::Nothing => None,
        })
    }
}
