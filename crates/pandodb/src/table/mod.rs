//! Open tables and their dictionaries.

pub(crate) mod building;
pub(crate) mod clustering;
pub(crate) mod dict;
pub(crate) mod entry;
pub(crate) mod key_statistics;
pub(crate) mod large;
pub(crate) mod row_count;
pub(crate) mod spill;
pub(crate) mod writes;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{DictId, Error, Result, Seqno};
use pando_column::layout::Layouts;
use pando_column::Shapes;
use pando_tree::Estimate;

use crate::table::building::Building;
use crate::table::clustering::Clustering;
use crate::table::large::LargeValues;

pub use dict::Dict;

/// Ranges over more segments of rows are not worth looking into those at their ends: rows are long, and made of columns.
const COUNTED_SEGMENTS_MAX: usize = 10;

/// Figures of a table for the server's statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows, estimated from the counts in the tree.
    pub rows: u64,
    /// Bytes of the rows before compression.
    pub raw_bytes: u64,
    /// Bytes the rows' file takes on disk.
    pub data_bytes: u64,
    /// Bytes the index files take on disk.
    pub index_bytes: u64,
    /// Bytes inside the files that are free.
    pub free_bytes: u64,
    /// Creation, in seconds since 1970.
    pub created: u64,
    /// The last commit that changed rows, in seconds since 1970; 0 if there was none since the table was opened.
    pub changed: u64,
}

/// Which of the databases that this process has opened since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DbNumber(u64);

impl DbNumber {
    /// That of no other database.
    pub(crate) fn next() -> DbNumber {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        DbNumber(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the objects of one table have in common: each definition of its indexes has an object of its own.
#[derive(Debug)]
pub(crate) struct Shared {
    pub id: u64,
    pub created: u64,
    /// `database/table`; changed by rename.
    pub path: Mutex<String>,
    /// Next key for rows of tables without a primary key; 0 until first asked for.
    pub hidden_key: Mutex<u64>,
    /// Objects of an earlier generation do not know all indexes that a write must reach.
    pub writable_from: AtomicU64,
    /// Some index, or the file of large values, is, or was, unusable.
    pub has_unusable: AtomicBool,
}

/// An open table: dictionary 0 holds the rows, the others are its secondary indexes. What they are, and
/// which are being built, never changes: a change of the indexes makes a new object (`indexes`).
#[derive(Debug)]
pub struct Table {
    /// Of the database that has it. Ids of dictionaries, seqnos and locks are those of one database.
    db: DbNumber,
    pub(crate) shared: Arc<Shared>,
    pub(crate) generation: u64,
    pub(crate) dicts: Vec<Arc<Dict>>,
    /// Indexes that are being built: every write goes to them, too.
    pub(crate) building: Vec<Arc<Building>>,
    /// What rows consist of; not known for tables that were created without.
    pub(crate) layouts: Option<Arc<Layouts>>,
    /// Which dictionaries have rows, too.
    clusterings: Vec<Clustering>,
    /// What rows refer to.
    pub(crate) large: Option<Arc<LargeValues>>,
}

impl Table {
    pub(crate) fn new(
        db: DbNumber,
        (id, created): (u64, u64),
        path: &str,
        dicts: Vec<Arc<Dict>>,
        large: Option<LargeValues>,
    ) -> Table {
        let is_lost = large.as_ref().is_some_and(|large| large.dict.is_unusable());
        let shared = Shared {
            id,
            created,
            path: Mutex::new(path.to_owned()),
            hidden_key: Mutex::new(0),
            writable_from: AtomicU64::new(0),
            has_unusable: AtomicBool::new(is_lost || dicts.iter().any(|dict| dict.is_unusable())),
        };
        let (shared, building, clusterings) = (Arc::new(shared), Vec::new(), Vec::new());
        let large = large.map(Arc::new);
        Table { db, shared, generation: 0, dicts, building, layouts: None, clusterings, large }
    }

    /// Whose rows have these columns; `clusterings` says which of its dictionaries have rows, too. The trees are told, and write
    /// the columns apart from now on.
    pub(crate) fn with_layouts(self, layouts: Option<Arc<Layouts>>, clusterings: Vec<Clustering>) -> Table {
        let shapes = layouts.as_ref().map_or_else(Shapes::default, |layouts| Shapes::of(layouts));
        self.rows().tree.set_shapes(Arc::new(shapes));
        for (dict, clustering) in self.dicts.iter().zip(&clusterings).skip(1) {
            if !clustering.is_none() {
                dict.tree.set_shapes(clustering.shapes(layouts.as_deref()));
            }
        }
        Table { layouts, clusterings, ..self }
    }

    /// The same table with other indexes.
    pub(crate) fn next_generation(&self, dicts: Vec<Arc<Dict>>, building: Vec<Arc<Building>>) -> Table {
        let (shared, layouts) = (self.shared.clone(), self.layouts.clone());
        let (clusterings, large) = (self.clusterings.clone(), self.large.clone());
        let (db, generation) = (self.db, self.generation + 1);
        Table { db, shared, generation, dicts, building, layouts, clusterings, large }
    }

    /// Whether entries of dictionary `index` hold rows; those of dictionary 0 are rows.
    pub fn clustering(&self, index: usize) -> Clustering {
        self.clusterings.get(index).copied().unwrap_or_default()
    }

    /// Whether both are the same table, as it was opened at the same time.
    pub fn is_same_as(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.generation == other.generation
    }

    /// Refuses a table of another database: its dictionaries have ids that stand for others here, and what would be logged of them
    /// would come back in those.
    pub(crate) fn check_in(&self, db: DbNumber) -> Result<()> {
        match self.db == db {
            true => Ok(()),
            false => Err(self.foreign()),
        }
    }

    #[cold]
    fn foreign(&self) -> Error {
        Error::argument(format!("table {} belongs to another database", self.path()))
    }

    /// Refuses a table that was dropped: nobody would find what is written to it.
    #[inline]
    pub(crate) fn check_there(&self) -> Result<()> {
        match self.rows().dropped.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.gone()),
        }
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::NotFound { what: format!("table {}, which was dropped,", self.path()) }
    }

    /// One of its dictionaries. Errors: it has fewer.
    pub(crate) fn dict(&self, index: usize) -> Result<&Arc<Dict>> {
        self.dicts.get(index).ok_or_else(|| self.no_dict(index))
    }

    #[cold]
    fn no_dict(&self, index: usize) -> Error {
        let (path, count) = (self.path(), self.dicts.len());
        Error::argument(format!("table {path} has no dictionary {index}, it has {count}"))
    }

    /// Whether this object knows all indexes there are.
    pub(crate) fn is_writable(&self) -> bool {
        self.generation >= self.shared.writable_from.load(Ordering::Acquire)
    }

    /// The indexes that are being built, in the order in which they were asked for: entry
    /// `dicts().len() + i` of a row is for the i-th.
    pub fn building(&self) -> &[Arc<Building>] {
        &self.building
    }

    /// How many entries a row has.
    pub fn entries(&self) -> usize {
        self.dicts.len() + self.building.len()
    }

    /// The same table with another dictionary of large values.
    pub(crate) fn with_large(&self, large: LargeValues) -> Table {
        let next = self.next_generation(self.dicts.clone(), self.building.clone());
        Table { large: Some(Arc::new(large)), ..next }
    }

    /// Whether the table has, or had, an index that is [unusable](Table::is_unusable), or a lost file of large values.
    pub fn has_unusable(&self) -> bool {
        self.shared.has_unusable.load(Ordering::Acquire)
    }

    /// Whether a dictionary is an index that is damaged: reads by it are refused. There may be no such dictionary.
    pub fn is_unusable(&self, index: usize) -> bool {
        self.dicts.get(index).is_some_and(|dict| dict.is_unusable())
    }

    /// The dictionaries: rows first, then the indexes in the order of the table's definition.
    pub fn dicts(&self) -> &[Arc<Dict>] {
        &self.dicts
    }

    /// All of its dictionaries, that of large values last.
    pub(crate) fn all_dicts(&self) -> impl Iterator<Item = &Arc<Dict>> {
        self.dicts.iter().chain(self.large.iter().map(|large| &large.dict))
    }

    /// Whether no row is in the table that is committed.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        for dict in self.all_dicts() {
            let mut cursor = dict.tree.cursor(Seqno::MAX);
            cursor.seek_first()?;
            if cursor.valid() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number under which a large value is stored; `None`: all values of this table are stored in its rows.
    pub fn next_large_value(&self) -> Option<u64> {
        self.large.as_ref().map(|large| large.take_id())
    }

    /// Whether the file of the large values is damaged or missing: those in it are lost, and there is no place for new ones.
    pub fn has_lost_large_file(&self) -> bool {
        self.large.as_ref().is_some_and(|large| large.dict.is_unusable())
    }

    /// Refuses the file of the large values, if it is `dict` and lost.
    pub(crate) fn check_large_file(&self, dict: DictId) -> crate::error::Result<()> {
        let large = self.large.as_ref().filter(|large| large.dict.id == dict && large.dict.is_unusable());
        large.map_or(Ok(()), |large| Err(large.lost_error("large values were")))
    }

    /// Whether values of the table may be stored apart from its rows.
    pub fn has_large_values(&self) -> bool {
        self.large.is_some()
    }

    /// The table's id, the same for its whole life.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Where the table is now: `database/table`.
    pub fn path(&self) -> String {
        self.shared.path.lock().clone()
    }

    /// The columns that rows consist of, and those of old rows.
    pub fn layouts(&self) -> Option<&Arc<Layouts>> {
        self.layouts.as_ref()
    }

    pub(crate) fn rows(&self) -> &Arc<Dict> {
        &self.dicts[0]
    }

    /// About how many rows there are.
    pub fn rows_estimate(&self) -> u64 {
        let rows = self.rows();
        rows.row_count.estimate(rows.tree.row_bounds())
    }

    /// Statistics. Errors: none of the figures needs the disk but the sizes of the files, when they are to be what the
    /// file system has allocated; else they are what is in use within the files.
    pub fn info(&self, is_exact: bool) -> Result<TableInfo> {
        let mut info = TableInfo {
            rows: self.rows_estimate(),
            raw_bytes: self.rows().tree.raw_bytes()
                + self.large.as_ref().map_or(0, |large| large.dict.tree.raw_bytes()),
            created: self.shared.created,
            changed: self.rows().changed_at.load(Ordering::Relaxed),
            ..TableInfo::default()
        };
        let last = self.dicts.len();
        for (position, dict) in self.all_dicts().enumerate() {
            let bytes = if is_exact { dict.file.allocated_bytes()? } else { dict.file.used_bytes() };
            if position == 0 || position == last {
                info.data_bytes += bytes;
            } else {
                info.index_bytes += bytes;
            }
            info.free_bytes += dict.file.free_bytes();
        }
        Ok(info)
    }

    /// Rows in `[lo, hi)` of a dictionary: many rows from the nodes' headers, few exactly, and entries of an index always, so
    /// that indexes that begin with the same columns are told to have as many. Every row has one entry in each, so the
    /// range's share of all records is taken as its share of the rows. Errors: those of reading; there is no such dictionary.
    pub fn rows_in_range(&self, index: usize, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<u64> {
        let tree = &self.dict(index)?.tree;
        let looked_into = if index == 0 { COUNTED_SEGMENTS_MAX } else { usize::MAX };
        // A tombstone is no row and takes one away.
        let live = |of: Estimate| of.rows.saturating_sub(2 * of.tombstones).max(u64::from(of.rows > 0));
        let found = live(tree.estimate(lo, hi, looked_into)?);
        let (all, rows) = (live(tree.all_records()).max(found), self.rows_estimate());
        let scaled = u128::from(found) * u128::from(rows) / u128::from(all.max(1));
        Ok(u64::try_from(scaled).unwrap_or(u64::MAX).max(u64::from(found > 0)))
    }

    /// Next auto-increment value, 0 if the table never had one.
    pub fn auto_increment(&self) -> u64 {
        self.rows().auto_increment.load(Ordering::Acquire)
    }

    /// Takes `count` values off the counter: the first is the smallest value that is at least
    /// the counter (and `start`) and equals `offset` modulo `step`. The counter is then past the
    /// last one. `None` if none is left below the last number of 64 bits (the counter is left alone): with that one the counter could not
    /// tell that it was given out. Near the end fewer than `count` may be left.
    pub fn auto_increment_reserve(&self, start: u64, step: u64, offset: u64, count: u64) -> Option<u64> {
        let counter = &self.rows().auto_increment;
        let (step, count) = (step.max(1), count.max(1));
        let mut current = counter.load(Ordering::Acquire);
        loop {
            let first =
                align_up(current.max(start).max(1), step, offset).filter(|first| *first < u64::MAX)?;
            let next = (count - 1)
                .checked_mul(step)
                .and_then(|span| first.checked_add(span))
                .map(|l| l.saturating_add(1));
            let next = next.unwrap_or(u64::MAX);
            match counter.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(first),
                Err(now) => current = now,
            }
        }
    }

    /// A new key for a row of a table without a primary key. Larger than every key given out
    /// before, also before a restart: the first call looks for the largest in the tree and in what is prepared.
    pub fn next_hidden_key(&self) -> Result<u64> {
        self.reserve_hidden_keys(1)
    }

    /// As [`Table::next_hidden_key`], `count` of them: the first.
    pub fn reserve_hidden_keys(&self, count: u64) -> Result<u64> {
        let mut next = self.shared.hidden_key.lock();
        if *next == 0 {
            *next = self.largest_hidden_key()? + 1;
        }
        let key = *next;
        *next += count;
        Ok(key)
    }

    /// Whether the counts of the rows' tree say that nothing is in it.
    pub fn seems_empty(&self) -> bool {
        self.rows().tree.rows_estimate() == 0
    }

    fn largest_hidden_key(&self) -> Result<u64> {
        let prepared = self.rows().prepared_hidden_key.load(Ordering::Acquire);
        let mut cursor = self.rows().tree.cursor(Seqno::MAX);
        cursor.seek_last()?;
        if !cursor.valid() {
            return Ok(prepared);
        }
        let key = cursor.key();
        let bytes: [u8; 8] = key.try_into().map_err(|_| {
            pando_base::Error::corruption(&self.rows().file.path(), 0, "hidden key", "8 bytes", key.len())
        })?;
        Ok(u64::from_be_bytes(bytes).max(prepared))
    }
}

/// Smallest value >= `from` that equals `offset` modulo `step`; `None` past the end of u64.
fn align_up(from: u64, step: u64, offset: u64) -> Option<u64> {
    // As the server does (auto_increment_offset above the increment is ignored).
    let offset = if offset > step || offset == 0 { 1 } else { offset };
    if from <= offset {
        return Some(offset);
    }
    let beyond = (from - offset).div_ceil(step);
    beyond.checked_mul(step)?.checked_add(offset)
}

#[cfg(test)]
mod tests {
    use super::align_up;

    #[test]
    fn auto_increment_values_follow_step_and_offset() {
        assert_eq!(align_up(1, 1, 1), Some(1));
        assert_eq!(align_up(7, 1, 1), Some(7));
        assert_eq!(align_up(1, 10, 5), Some(5));
        assert_eq!(align_up(6, 10, 5), Some(15));
        assert_eq!(align_up(15, 10, 5), Some(15));
        assert_eq!(align_up(3, 10, 20), Some(11));
        assert_eq!(align_up(u64::MAX, 10, 5), Some(u64::MAX), "2^64-1 = 5 modulo 10");
        assert_eq!(align_up(u64::MAX - 1, 10, 3), None);
    }
}
