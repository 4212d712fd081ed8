//! Counting different keys for [`KeyStatistics`](crate::table::key_statistics), when somebody asks.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{Result, Seqno};
use pando_tree::{Sampled, Tree};

use crate::db::Db;
use crate::table::key_statistics::{Counts, Distinct, KeyEnds};
use crate::table::Table;

/// Dictionaries with more records are not gone over as a whole, unless somebody asks for figures expressly.
const WALK_MAX: u64 = 10_000;
/// ... and then with up to so many, if most of them are in memory.
const WALK_ON_DEMAND_MAX: u64 = 1_000_000;
/// Values that are counted one by one, from each to the next: a sample tells little of few values with many rows. So many lookups for
/// a part of an index, when nobody has asked expressly and when somebody has.
const JUMPS_MAX: u64 = 200;
const JUMPS_ON_DEMAND_MAX: u64 = 20_000;

impl Db {
    /// How many different values the first `parts` parts of an index's keys have; `None`: not known. Those that are known are
    /// made anew if they are out of date, or if `anew` says so.
    ///
    /// # Errors
    /// Those of reading files; there is no such dictionary.
    pub fn distinct_keys(
        &self,
        table: &Table,
        index: usize,
        parts: usize,
        anew: bool,
        ends: &mut KeyEnds<'_>,
    ) -> Result<Option<Arc<Distinct>>> {
        self.check_own(table)?;
        if table.is_unusable(index) {
            return Ok(None);
        }
        let statistics = &table.dict(index)?.key_statistics;
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
        let tree = &table.dict(index)?.tree;
        let snapshot = self.snapshots.take();
        let mut counts = Counts::new(parts);
        let mut each = |begins: bool, key: &[u8]| counts.add(begins, key, ends);
        let mut sampled = tree.sample_keys(snapshot.seqno(), WALK_MAX, &mut each)?;
        if anew && sampled == Sampled::Nothing {
            sampled = tree.sample_keys(snapshot.seqno(), WALK_ON_DEMAND_MAX, &mut each)?;
        }
        let mut values = match sampled {
            Sampled::All => return Ok(Some(counts.all())),
            Sampled::Stretches => counts.scaled(table.rows_estimate()),
            Sampled::Nothing => return Ok(None),
        };
        let jumps_max = if anew { JUMPS_ON_DEMAND_MAX } else { JUMPS_MAX };
        // More parts have at least as many values.
        for part in 0..parts {
            match count_by_jumps(tree, snapshot.seqno(), (part, parts), jumps_max, ends)? {
                Some(count) => values[part] = count,
                None => {
                    values[part..].iter_mut().for_each(|value| *value = (*value).max(jumps_max));
                    break;
                }
            }
        }
        Ok(Some(values))
    }
}

/// Different values of the first parts of keys up to this one; `None`: there are more than `most`, or keys that are none.
fn count_by_jumps(
    tree: &Arc<Tree>,
    snapshot: Seqno,
    (part, parts): (usize, usize),
    most: u64,
    ends: &mut KeyEnds<'_>,
) -> Result<Option<u64>> {
    let mut cursor = tree.cursor(snapshot);
    let mut key_ends = vec![0; parts];
    let mut count = 0;
    cursor.seek_first()?;
    while cursor.valid() {
        count += 1;
        if count > most || !ends(cursor.key(), &mut key_ends) {
            return Ok(None);
        }
        let value = &cursor.key()[..(key_ends[part] as usize).min(cursor.key().len())];
        let Some(next) = behind_all_with(value) else { break };
        cursor.seek(&next)?;
    }
    Ok(Some(count))
}

/// The least key that is greater than all that begin so; `None`: there is none.
fn behind_all_with(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}
