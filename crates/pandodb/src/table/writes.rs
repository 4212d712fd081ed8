//! What a transaction has written and not committed, where others can ask about it.
//!
//! Purpose: a [`Txn`](crate::Txn) writes and reads its write set alone, but a locking scan must also
//! meet the keys that other transactions have written in its range and not committed: they are in no
//! tree yet, and entries of indexes that are not unique have no lock of their own. So the write set stands
//! behind an `Arc`, and every dictionary keeps a list of those that may hold something of it
//! ([`Writers`]).
//!
//! The state is the write set in memory (the log of the newest ops) and below it the levels that were
//! spilled (`spill`); what is asked goes to the log first, then to the levels, newest first.
//!
//! What holds:
//! 1. Only the owner's thread changes the state, so it may read and then write without a gap; others only
//!    read, shortly. The lock is therefore free nearly always. The owner may read files with it held,
//!    others may not.
//! 2. A write set is on a dictionary's list from before its first write there until it is over: until
//!    after its commit is visible, or its rollback.
//! 3. It is emptied ([`Writes::end`]) before the owner's row locks are released: what another does to the
//!    owner's locks inside [`Writes::unless_ended`] is done before that release.
//! 4. Marks that can still be asked for are registered ([`Writes::mark`], [`LiveMark`]): spilling cuts
//!    there.
//!
//! Lock order: a dictionary's list and a write set are never held together; the lock manager's mutexes
//! come after a write set's.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use pando_base::{panics, DictId, Metrics, Result, TxnId, MAX_SEQNO};
use pando_run::Lookup;
use pando_tree::RangeTicket;
use pando_txn::{Mark, WriteSet};

use crate::table::dict::Dict;
use crate::table::row_count::NetRows;
use crate::table::spill::{first_key_between, is_up_to, Level, MERGED_LEVELS};

/// Ops after the newest live mark stay in memory if they are at most this share of all: a cursor that
/// seeks for every row would otherwise leave a run for each few rows.
const TAIL_SHARE: u64 = 4;

/// The uncommitted writes of one transaction; see the head of this file.
#[derive(Debug)]
pub(crate) struct Writes {
    owner: TxnId,
    state: RwLock<State>,
    marks: Mutex<Marks>,
    /// Of the memory that the state takes, what is in the engine's figures.
    counted_bytes: AtomicU64,
    metrics: Arc<Metrics>,
}

/// The writes: in memory, and below that spilled levels, oldest first.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub set: WriteSet,
    pub levels: Vec<Arc<Level>>,
    /// Ranges that are deleted; what comes after one is written when its rows have been deleted one by one
    /// (`write::delete_range`).
    pub ranges: Vec<OwnRange>,
    /// Counts changes of `levels`, for cursors that stand in them.
    pub changes: u64,
    /// What becomes of the numbers of rows.
    pub net_rows: NetRows,
}

/// A range whose keys are deleted at once.
#[derive(Clone, Debug)]
pub(crate) struct OwnRange {
    pub dict: DictId,
    pub lo: Vec<u8>,
    pub hi: Option<Vec<u8>>,
    /// Where it was deleted: the op that comes then deletes its first row.
    at: Mark,
    /// Where the ops that delete all its rows begin, if there are such.
    written_out: Option<Mark>,
    /// Its place in the tree.
    _place: Arc<RangeTicket>,
}

/// Marks that may be asked for.
#[derive(Debug, Default)]
struct Marks {
    /// How many hold each.
    live: BTreeMap<Mark, usize>,
    /// Those of statements and savepoints, ascending, with the numbers of rows there.
    held: Vec<(Mark, NetRows)>,
}

impl Marks {
    fn add(&mut self, mark: Mark) {
        *self.live.entry(mark).or_insert(0) += 1;
    }

    fn remove(&mut self, mark: Mark) {
        let Some(count) = self.live.get_mut(&mark) else { return };
        *count -= 1;
        if *count == 0 {
            self.live.remove(&mark);
        }
    }
}

/// A mark of a cursor, live until it is dropped.
#[derive(Debug)]
pub(crate) struct LiveMark {
    writes: Arc<Writes>,
    mark: Mark,
}

impl LiveMark {
    /// Now.
    pub(crate) fn new(writes: &Arc<Writes>) -> LiveMark {
        let mark = writes.read().set.mark();
        writes.marks.lock().add(mark);
        LiveMark { writes: writes.clone(), mark }
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }
}

impl Clone for LiveMark {
    fn clone(&self) -> LiveMark {
        self.writes.marks.lock().add(self.mark);
        LiveMark { writes: self.writes.clone(), mark: self.mark }
    }
}

impl Drop for LiveMark {
    fn drop(&mut self) {
        self.writes.marks.lock().remove(self.mark);
    }
}

impl State {
    /// Whether there is no write.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.levels.is_empty() && self.ranges.is_empty()
    }

    /// Ranges that are deleted as such.
    pub(crate) fn whole_ranges(&self) -> impl Iterator<Item = &OwnRange> {
        self.ranges.iter().filter(|range| range.written_out.is_none())
    }

    /// Whether a range of the dictionary is deleted as such.
    pub(crate) fn has_range(&self, dict: DictId) -> bool {
        self.whole_ranges().any(|range| range.dict == dict)
    }

    /// Deletes a range, of which this is the first row: its own op gives the range a place among the others.
    pub(crate) fn delete_range(
        &mut self,
        (dict, place): (DictId, RangeTicket),
        lo: &[u8],
        hi: Option<&[u8]>,
        first: &[u8],
    ) {
        self.add_range((dict, place), lo, hi);
        self.set.delete(dict, first);
    }

    /// Takes a range in, whose first row is deleted otherwise.
    pub(crate) fn add_range(&mut self, (dict, place): (DictId, RangeTicket), lo: &[u8], hi: Option<&[u8]>) {
        let (at, lo, hi) = (self.set.mark(), lo.to_vec(), hi.map(<[u8]>::to_vec));
        self.ranges.push(OwnRange { dict, lo, hi, at, written_out: None, _place: Arc::new(place) });
    }

    /// The ops from the mark on delete all rows of the ranges.
    pub(crate) fn set_written_out(&mut self, from: Mark) {
        let whole = self.ranges.iter_mut().filter(|range| range.written_out.is_none());
        whole.for_each(|range| range.written_out = Some(from));
    }

    /// What was written to a key: `Some(None)` is a delete.
    ///
    /// # Errors
    /// Those of reading spilled levels.
    pub(crate) fn get(&self, dict: DictId, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        self.get_since(dict, key, Mark::START)
    }

    /// The same without the levels of what was written before the mark, which is live.
    ///
    /// # Errors
    /// Those of reading the others.
    pub(crate) fn get_since(&self, dict: DictId, key: &[u8], since: Mark) -> Result<Option<Option<Vec<u8>>>> {
        if let Some(own) = self.set.get(dict, key) {
            return Ok(Some(own.map(<[u8]>::to_vec)));
        }
        let mut levels = self.levels.iter().rev().take_while(|level| level.from >= since).peekable();
        if levels.peek().is_none() {
            return Ok(None);
        }
        let lookup = Lookup::new(key, MAX_SEQNO);
        for level in levels {
            if let Some(own) = level.get(dict, &lookup)? {
                return Ok(Some(own));
            }
        }
        Ok(None)
    }

    /// The smallest key within the bounds that is in a level of what was written since the mark, which is live.
    ///
    /// # Errors
    /// Those of reading them.
    pub(crate) fn first_spilled_since(
        &self,
        dict: DictId,
        since: Mark,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        first_in_levels(self.levels.iter().filter(|level| level.from >= since), dict, from, to)
    }

    /// Whether some of the writes to a dictionary were spilled.
    pub(crate) fn has_spilled(&self, dict: DictId) -> bool {
        self.levels.iter().any(|level| !level.runs_of(dict).is_empty())
    }
}

/// The smallest key of `dict` within the bounds that one of the levels has.
fn first_in_levels<'l>(
    levels: impl Iterator<Item = &'l Arc<Level>>,
    dict: DictId,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let mut first: Option<Vec<u8>> = None;
    for level in levels {
        // What a level before has is as far as it is worth looking.
        let to = first.as_deref().map_or(to, Bound::Excluded);
        first = first_key_between(level.runs_of(dict), from, to)?.or(first);
    }
    Ok(first)
}

impl Writes {
    /// What they take and do is counted in `metrics`.
    pub(crate) fn new(owner: TxnId, metrics: Arc<Metrics>) -> Arc<Writes> {
        Arc::new(Writes {
            owner,
            state: RwLock::default(),
            marks: Mutex::default(),
            counted_bytes: AtomicU64::new(0),
            metrics,
        })
    }

    /// Says what they take now. Of the owner's thread only. A short transaction need not say it.
    pub(crate) fn count_memory(&self) {
        self.set_counted(self.read().set.bytes() as u64);
    }

    fn set_counted(&self, bytes: u64) {
        let before = self.counted_bytes.swap(bytes, Ordering::Relaxed);
        if before != bytes {
            // Added first: others must not see less than nothing.
            self.metrics.write_set_bytes.add(bytes);
            self.metrics.write_set_bytes.sub(before);
        }
    }

    /// Whose writes they are.
    pub(crate) fn owner(&self) -> TxnId {
        self.owner
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Of the owner's thread only.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// The smallest key of `dict` within the bounds that is written here, deleted ones included.
    ///
    /// # Errors
    /// Those of reading what is not in memory.
    pub(crate) fn first_written_between(
        &self,
        dict: DictId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let (first, levels) = {
            let state = self.state.read();
            let first = state.set.next_ge(dict, from, Mark::LATEST).map(|(key, _)| key.to_vec());
            (first, state.levels.clone())
        };
        let first = first.filter(|key| is_up_to(key, to));
        // Without the lock: files are read.
        let spilled = first_in_levels(levels.iter(), dict, from, to)?;
        Ok([first, spilled].into_iter().flatten().min())
    }

    /// Does `f` while the transaction is sure not to end, unless it has (`None`). What `f` does to the
    /// owner's locks is done before they are released. `f` must not wait for anybody.
    pub(crate) fn unless_ended<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let state = self.state.read();
        (!state.is_empty()).then(f)
    }

    /// Now, for `rollback_to`; live until it is released or rolled back beyond.
    pub(crate) fn mark(&self) -> Mark {
        let (mark, net_rows) = {
            let state = self.read();
            (state.set.mark(), state.net_rows.clone())
        };
        let mut marks = self.marks.lock();
        marks.add(mark);
        marks.held.push((mark, net_rows));
        mark
    }

    /// A mark will not be asked for any more. One that was not live is no error.
    pub(crate) fn release_mark(&self, mark: Mark) {
        let mut marks = self.marks.lock();
        if let Some(place) = marks.held.iter().rposition(|(held, _)| *held == mark) {
            marks.held.remove(place);
            marks.remove(mark);
        }
    }

    /// Whether a mark was taken here, and neither released nor undone.
    pub(crate) fn is_live(&self, mark: Mark) -> bool {
        let marks = self.marks.lock();
        marks.held.iter().rev().take_while(|(held, _)| *held >= mark).any(|(held, _)| *held == mark)
    }

    /// Undoes the writes done since a live mark.
    pub(crate) fn rollback_to(&self, mark: Mark) {
        let mut marks = self.marks.lock();
        while marks.held.last().is_some_and(|(held, _)| *held > mark) {
            let held = marks.held.pop();
            held.into_iter().for_each(|(held, _)| marks.remove(held));
        }
        let net_rows = marks.held.last().filter(|(held, _)| *held == mark).map(|(_, rows)| rows.clone());
        drop(marks);
        let mut state = self.write();
        state.set.rollback_to(mark);
        state.ranges.retain(|range| range.at < mark);
        for range in &mut state.ranges {
            range.written_out.take_if(|from| *from >= mark);
        }
        if let Some(net_rows) = net_rows {
            state.net_rows = net_rows;
        }
        let whole = state.levels.iter().all(|level| level.to <= mark || level.from >= mark);
        assert!(whole, "a mark that is rolled back to was not live: {mark:?}");
        if state.levels.last().is_some_and(|level| level.to > mark) {
            state.levels.retain(|level| level.to <= mark);
            state.changes += 1;
        }
    }

    /// Moves the ops into the files of `dicts`, the dictionaries written to, ascending. Those after the
    /// newest live mark may stay, unless `all` is asked for. At most `threads` take part.
    ///
    /// # Errors
    /// Those of writing; nothing has changed then, but for levels that might already be one.
    pub(crate) fn spill(&self, dicts: &[Arc<Dict>], all: bool, threads: usize) -> Result<()> {
        let _scope = panics::uncontained();
        let metrics = &self.metrics;
        let (cuts, levels) = {
            let state = self.read();
            if state.set.ops_held() == 0 {
                return Ok(());
            }
            let cuts = self.cuts(&state.set, all);
            let write =
                |pair: &[Mark]| Level::write(&state.set, dicts, pair[0], pair[1], threads).map(Arc::new);
            let levels: Result<Vec<_>> = cuts.windows(2).map(write).collect();
            (cuts, levels?)
        };
        metrics.spills.add(levels.len() as u64);
        metrics.spill_written_bytes.add(levels.iter().map(|level| level.disk_bytes()).sum());
        let mut state = self.write();
        state.levels.extend(levels);
        state.changes += 1;
        if let Some(end) = cuts.last() {
            state.set.keep_from(*end);
        }
        drop(state);
        self.count_memory();
        self.merge_levels(threads, metrics)
    }

    /// Where the log is cut into levels: its beginning, the live marks in it, and its end or the last mark.
    fn cuts(&self, set: &WriteSet, all: bool) -> Vec<Mark> {
        let (begin, end) = (set.spilled(), set.mark());
        let mut cuts = vec![begin];
        let inside = (Bound::Excluded(begin), Bound::Excluded(end));
        cuts.extend(self.marks.lock().live.range(inside).map(|(mark, _)| *mark));
        let is_short = |last: &Mark| set.ops_since(*last) * TAIL_SHARE <= set.ops_held();
        if all || cuts.len() == 1 || !cuts.last().is_some_and(is_short) {
            cuts.push(end);
        }
        cuts.dedup();
        cuts
    }

    /// Merges the newest levels while there are too many of a size.
    fn merge_levels(&self, threads: usize, metrics: &Metrics) -> Result<()> {
        loop {
            let group = self.mergeable();
            if group.len() < MERGED_LEVELS {
                return Ok(());
            }
            let merged = Arc::new(Level::merge(&group, threads)?);
            metrics.spill_written_bytes.add(merged.disk_bytes());
            let mut state = self.write();
            let kept = state.levels.len() - group.len();
            state.levels.truncate(kept);
            state.levels.push(merged);
            state.changes += 1;
        }
    }

    /// The newest levels of one size with no live mark between them.
    fn mergeable(&self) -> Vec<Arc<Level>> {
        let state = self.read();
        let marks = self.marks.lock();
        let Some(last) = state.levels.last() else { return Vec::new() };
        let mut first = state.levels.len() - 1;
        while first > 0 {
            let (older, newer) = (&state.levels[first - 1], &state.levels[first]);
            if older.tier != last.tier || marks.live.contains_key(&newer.from) {
                break;
            }
            first -= 1;
        }
        state.levels[first..].to_vec()
    }

    /// Keeps the space of the levels until the process ends: they may be needed after a restart.
    pub(crate) fn leak_levels(&self) {
        self.write().levels.drain(..).for_each(std::mem::forget);
    }

    /// Forgets everything; the next transaction of the same owner may begin.
    pub(crate) fn end(&self) {
        let levels = {
            let mut state = self.write();
            state.set.clear();
            state.ranges.clear();
            state.net_rows.clear();
            state.changes += 1;
            std::mem::take(&mut state.levels)
        };
        let mut marks = self.marks.lock();
        while let Some((held, _)) = marks.held.pop() {
            marks.remove(held);
        }
        drop(marks);
        levels.iter().flat_map(|level| level.runs()).for_each(|(dict, _)| dict.cut_soon());
        drop(levels);
        self.set_counted(0);
    }
}

impl Drop for Writes {
    fn drop(&mut self) {
        self.set_counted(0);
    }
}

/// The write sets that may hold something of one dictionary.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    list: Mutex<Vec<Arc<Writes>>>,
}

impl Writers {
    pub(crate) fn add(&self, writes: &Arc<Writes>) {
        self.list.lock().push(writes.clone());
    }

    pub(crate) fn remove(&self, writes: &Arc<Writes>) {
        let mut list = self.list.lock();
        let found = list.iter().position(|other| Arc::ptr_eq(other, writes));
        list.swap_remove(found.expect("a writer is on the list"));
    }

    /// Whether some transaction may have uncommitted writes.
    pub(crate) fn is_any(&self) -> bool {
        !self.list.lock().is_empty()
    }

    /// All but one's own, at this moment.
    pub(crate) fn others(&self, own: &Arc<Writes>) -> Vec<Arc<Writes>> {
        let list = self.list.lock();
        list.iter().filter(|writes| !Arc::ptr_eq(writes, own)).cloned().collect()
    }
}
