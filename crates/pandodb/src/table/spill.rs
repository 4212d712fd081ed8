//! Spilled writes: what a transaction moved from its write set into the tables' files.
//!
//! Beyond its memory budget a transaction writes the final state of a stretch of its ops as a **level**:
//! for each dictionary private runs that lie apart, synced. Its commit adopts them by reference
//! (`commit`), its rollback drops them, which gives their space back; a crash forgets them.
//!
//! What holds:
//! 1. Levels follow one another without a gap from the transaction's first op to where its log begins.
//! 2. No **live mark** lies inside a level: marks of statements and savepoints that may be rolled back to,
//!    and those of cursors. So a level is wholly before a mark or wholly after it.
//! 3. A level is synced before it replaces the ops in the log; an error before leaves all as it was.
//! 4. Of a key that several levels have, the newest level counts, and before it the log.
//!
//! Levels pile up only so far: [`MERGED_LEVELS`] of one size, with no live mark between them, become one of
//! the next size, so that a read looks into few and a record is written a few times at most. Runs that
//! lie apart are taken over as they are.
//!
//! A level's dictionaries are written side by side ([`for_each_dict`]): a table with many keys spills in the time of
//! the largest of them, if there are processors.

use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Kind, Result};
use pando_run::merge::MergeCursor;
use pando_run::{Lookup, Run, RunCursor};
use pando_tree::PrivateWriter;
use pando_txn::{Mark, WriteSet};

use crate::runtime::threads::on_threads;
use crate::table::dict::Dict;

/// Levels of one size that are merged into one of the next.
pub(crate) const MERGED_LEVELS: usize = 16;

/// Tier of what a load has written.
const LOADED_TIER: u32 = 1 << 16;

/// A private run and the dictionary it is for.
pub(crate) type PrivateRun = (Arc<Dict>, Arc<Run>);

/// What a level holds of one dictionary: runs apart from each other, ascending.
#[derive(Debug)]
struct Part {
    dict: Arc<Dict>,
    runs: Vec<Arc<Run>>,
}

/// The final state of the ops from one mark to another.
#[derive(Debug)]
pub(crate) struct Level {
    pub from: Mark,
    pub to: Mark,
    /// How often it was merged.
    pub tier: u32,
    /// Ascending by dictionary.
    parts: Vec<Part>,
}

impl Level {
    /// Writes the ops of `set` from one mark to another; `dicts` are those it touches, ascending. At most
    /// `threads` take part.
    ///
    /// # Errors
    /// Those of writing and syncing the files; nothing is left then.
    pub(crate) fn write(
        set: &WriteSet,
        dicts: &[Arc<Dict>],
        from: Mark,
        to: Mark,
        threads: usize,
    ) -> Result<Level> {
        let parts = for_each_dict(dicts, threads, |dict| {
            let mut writer = None;
            set.try_for_each_final_of(dict.id, from, to, |key, kind, value| {
                writer.get_or_insert_with(|| dict.tree.private_writer()).add(key, kind, value)
            })?;
            writer.map_or(Ok(Vec::new()), PrivateWriter::finish)
        })?;
        Ok(Level { from, to, tier: 0, parts })
    }

    /// One level in place of several that follow one another, oldest first; at most `threads` take part.
    ///
    /// # Errors
    /// Those of reading and writing; the levels are as they were.
    pub(crate) fn merge(levels: &[Arc<Level>], threads: usize) -> Result<Level> {
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else {
            unreachable!("several levels are merged")
        };
        let mut dicts: Vec<Arc<Dict>> =
            levels.iter().flat_map(|l| l.parts.iter().map(|p| p.dict.clone())).collect();
        dicts.sort_by_key(|dict| dict.id);
        dicts.dedup_by_key(|dict| dict.id);
        let parts = for_each_dict(&dicts, threads, |dict| {
            let newest_first = levels.iter().rev().flat_map(|level| level.runs_of(dict.id)).cloned();
            let mut runs: Vec<Arc<Run>> = newest_first.collect();
            if lie_apart(&mut runs) {
                return Ok(runs);
            }
            merge_runs(dict, runs)
        })?;
        Ok(Level { from: first.from, to: last.to, tier: last.tier + 1, parts })
    }

    /// The level of what a load has written and synced: `parts` ascend by dictionary.
    pub(crate) fn loaded(from: Mark, to: Mark, parts: Vec<(Arc<Dict>, Vec<Arc<Run>>)>) -> Level {
        let parts = parts.into_iter().map(|(dict, runs)| Part { dict, runs }).collect();
        // Never merged with others: it is large.
        Level { from, to, tier: LOADED_TIER, parts }
    }

    /// The level of a single run that a prepared transaction left, as its log record names it.
    pub(crate) fn recovered((dict, run): PrivateRun) -> Level {
        let parts = vec![Part { dict, runs: vec![run] }];
        Level { from: Mark::START, to: Mark::START, tier: 0, parts }
    }

    /// Its runs of a dictionary, ascending.
    pub(crate) fn runs_of(&self, id: DictId) -> &[Arc<Run>] {
        let place = self.parts.binary_search_by_key(&id, |part| part.dict.id);
        place.map_or(&[], |place| &self.parts[place].runs)
    }

    /// All its runs with their dictionaries.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Arc<Dict>, &Arc<Run>)> {
        self.parts.iter().flat_map(|part| part.runs.iter().map(move |run| (&part.dict, run)))
    }

    /// Bytes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.runs().map(|(_, run)| run.meta().disk_bytes).sum()
    }

    /// What was written to a key: `Some(None)` is a delete.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn get(&self, id: DictId, lookup: &Lookup<'_>) -> Result<Option<Option<Vec<u8>>>> {
        let runs = self.runs_of(id);
        let Some(run) = runs.get(runs.partition_point(|run| run.meta().max_key.as_slice() < lookup.key()))
        else {
            return Ok(None);
        };
        let found = run.get(lookup)?;
        Ok(found.map(|found| (found.kind == Kind::Put).then_some(found.value)))
    }
}

/// Has the runs of each of `dicts` made by `make`, and syncs its file; `threads` of them at a time, the first
/// dictionaries first: those are the rows', which take longest. Dictionaries without runs have no part.
///
/// # Errors
/// The first one's that fails; nothing is left then.
fn for_each_dict(
    dicts: &[Arc<Dict>],
    threads: usize,
    make: impl Fn(&Arc<Dict>) -> Result<Vec<Arc<Run>>> + Sync,
) -> Result<Vec<Part>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut parts = Vec::new();
        while let Some(dict) = dicts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let runs = make(dict)?;
            if runs.is_empty() {
                continue;
            }
            if !is_planted(Bug::SpillWithoutSync) {
                dict.file.sync()?;
            }
            parts.push(Part { dict: dict.clone(), runs });
        }
        Ok(parts)
    };
    let results: Result<Vec<Vec<Part>>> =
        on_threads(threads.clamp(1, dicts.len().max(1)), work).into_iter().collect();
    let mut parts: Vec<Part> = results?.into_iter().flatten().collect();
    parts.sort_by_key(|part| part.dict.id);
    Ok(parts)
}

/// Sorts the runs by key if none overlaps another.
fn lie_apart(runs: &mut [Arc<Run>]) -> bool {
    let mut spans: Vec<(&[u8], &[u8])> =
        runs.iter().map(|run| (&run.meta().min_key[..], &run.meta().max_key[..])).collect();
    spans.sort_unstable();
    let apart = spans.windows(2).all(|pair| pair[0].1 < pair[1].0);
    if apart {
        runs.sort_by(|a, b| a.meta().min_key.cmp(&b.meta().min_key));
    }
    apart
}

/// Merges runs, newest first, into runs that lie apart.
fn merge_runs(dict: &Arc<Dict>, runs: Vec<Arc<Run>>) -> Result<Vec<Arc<Run>>> {
    let inputs = runs.iter().map(|run| run.cursor().bypass_cache()).collect();
    let mut cursor = MergeCursor::new(inputs, None, None)?;
    let mut writer = dict.tree.private_writer();
    let mut last_key: Option<Vec<u8>> = None;
    while cursor.valid() {
        let r = cursor.record();
        // Of the same key the newest comes first.
        if last_key.as_deref() != Some(r.key) {
            writer.add(r.key, r.kind, r.value)?;
            let last_key = last_key.get_or_insert_default();
            last_key.clear();
            last_key.extend_from_slice(r.key);
        }
        cursor.next()?;
    }
    writer.finish()
}

/// Whether the key is within the upper bound.
pub(crate) fn is_up_to(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
    }
}

/// The smallest key within the bounds of `runs`, which lie apart. Reads files only if one of them begins before the bounds and
/// reaches into them.
///
/// # Errors
/// Those of reading.
pub(crate) fn first_key_between(
    runs: &[Arc<Run>],
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let is_before = |key: &[u8]| match from {
        Bound::Unbounded => false,
        Bound::Included(from) => key < from,
        Bound::Excluded(from) => key <= from,
    };
    let Some(run) = runs.get(runs.partition_point(|run| is_before(&run.meta().max_key))) else {
        return Ok(None);
    };
    let first = &run.meta().min_key;
    if !is_before(first) {
        return Ok(is_up_to(first, to).then(|| first.clone()));
    }
    let cursor = ApartCursor::forward(runs, from)?;
    Ok(cursor.key().filter(|key| is_up_to(key, to)).map(<[u8]>::to_vec))
}

/// A place in runs that lie apart, in either direction.
#[derive(Debug)]
pub(crate) struct ApartCursor {
    runs: Vec<Arc<Run>>,
    at: usize,
    cursor: Option<RunCursor>,
}

impl ApartCursor {
    /// At the first key of `runs` from `from` on.
    pub(crate) fn forward(runs: &[Arc<Run>], from: Bound<&[u8]>) -> Result<ApartCursor> {
        use Bound::{Excluded, Included, Unbounded};
        let at = match from {
            Unbounded => 0,
            Included(key) | Excluded(key) => runs.partition_point(|run| run.meta().max_key.as_slice() < key),
        };
        let mut here = ApartCursor { runs: runs.to_vec(), at, cursor: None };
        let Some(run) = here.runs.get(at) else { return Ok(here) };
        let mut cursor = run.cursor();
        match from {
            Unbounded => cursor.seek_first()?,
            Included(key) | Excluded(key) => cursor.seek(key)?,
        }
        here.cursor = Some(cursor);
        if matches!(from, Excluded(key) if here.key() == Some(key)) {
            here.step(true)?;
        }
        Ok(here)
    }

    /// At the last key of `runs` before `to`, or without it of all.
    pub(crate) fn backward(runs: &[Arc<Run>], to: Option<&[u8]>) -> Result<ApartCursor> {
        let end =
            to.map_or(runs.len(), |key| runs.partition_point(|run| run.meta().min_key.as_slice() < key));
        let mut here = ApartCursor { runs: runs.to_vec(), at: end.wrapping_sub(1), cursor: None };
        let Some(run) = here.runs.get(here.at) else { return Ok(here) };
        let mut cursor = run.cursor();
        match to {
            Some(key) => cursor.seek_before(key)?,
            None => cursor.seek_last()?,
        }
        here.cursor = Some(cursor);
        Ok(here)
    }

    /// The key it is at.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().filter(|cursor| cursor.valid()).map(RunCursor::key)
    }

    /// What was written to the key it is at, `None` for a delete. Requires: it is at one.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        let record = self.cursor.as_ref().map(RunCursor::record);
        record.filter(|r| r.kind == Kind::Put).map(|r| r.value)
    }

    /// To the next key in the direction. Requires: it is at one.
    pub(crate) fn step(&mut self, forward: bool) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        if forward {
            cursor.next()?;
        } else {
            cursor.prev()?;
        }
        if cursor.valid() {
            return Ok(());
        }
        self.at = if forward { self.at + 1 } else { self.at.wrapping_sub(1) };
        self.cursor = None;
        let Some(run) = self.runs.get(self.at) else { return Ok(()) };
        let mut cursor = run.cursor();
        if forward {
            cursor.seek_first()?;
        } else {
            cursor.seek_last()?;
        }
        self.cursor = Some(cursor);
        Ok(())
    }
}
