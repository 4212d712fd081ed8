//! The end of a load into a table that has rows, or in which others are at work.
//!
//! Nothing is locked while rows come and are sorted. At the end, when all of them lie in runs:
//! 1. Gaps of others are waited for, before any key is locked, as an insert does.
//! 2. Keys of dictionaries in which keys are unique are locked: by one stretch from the first to the last. Others keep what they
//!    hold in it; of these keys, those that are to be loaded are waited for one by one. Where others have a stretch there,
//!    keys are locked one by one until they have gone.
//! 3. Now nobody else inserts or deletes any of these keys, and what is committed of them is visible: the tree is merged with the runs, and
//!    none of their keys may be there. Mostly no key of the table is within the runs at all, and nothing is read.
//!
//! Then the runs are written as any load's (`load`). Keys of other dictionaries end with the row's own, so they are as alone as it is.

use std::sync::Arc;

use pando_base::Seqno;
use pando_run::{Run, RunCursor};
use pando_txn::LockMode;

use crate::error::Result;
use crate::table::Dict;
use crate::txn::transaction::{LockWait, Txn};
use crate::write::load::LoadEnd;

/// Keys that are looked at together.
const KEYS: usize = 4096;
/// Steps of a cursor before it seeks instead.
const STEPS_MAX: usize = 8;

/// Of a dictionary: its number in the table, and its runs, which lie apart and ascend.
pub(crate) struct Loaded<'a> {
    pub index: usize,
    pub dict: &'a Arc<Dict>,
    pub runs: &'a [Arc<Run>],
}

impl Loaded<'_> {
    /// From the first key to behind the last one.
    fn span(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (first, last) = (self.runs.first()?, self.runs.last()?);
        let mut end = last.meta().max_key.clone();
        end.push(0);
        Some((first.meta().min_key.clone(), end))
    }

    /// The first key from `from` on, if it comes before `to`.
    pub(crate) fn first_between(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let at = self.runs.partition_point(|run| run.meta().max_key.as_slice() < from);
        let Some(run) = self.runs.get(at) else { return Ok(None) };
        let mut cursor = run.cursor();
        cursor.seek(from)?;
        let is_before = |key: &[u8]| to.is_none_or(|to| key < to);
        Ok((cursor.valid() && is_before(cursor.key())).then(|| cursor.key().to_vec()))
    }

    /// Calls `f` with some keys after the other, ascending, until it says that it is enough.
    fn for_keys(&self, mut f: impl FnMut(&[&[u8]]) -> Result<bool>) -> Result<()> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(KEYS));
        for run in self.runs {
            let mut cursor = run.cursor().bypass_cache();
            cursor.seek_first()?;
            while cursor.valid() {
                bytes.extend_from_slice(cursor.key());
                ends.push(bytes.len());
                cursor.next()?;
                if ends.len() == KEYS || !cursor.valid() {
                    let starts = std::iter::once(&0).chain(&ends);
                    let keys: Vec<&[u8]> =
                        starts.zip(&ends).map(|(start, end)| &bytes[*start..*end]).collect();
                    if !f(&keys)? {
                        return Ok(());
                    }
                    bytes.clear();
                    ends.clear();
                }
            }
        }
        Ok(())
    }
}

impl Txn {
    /// Steps 1 to 3 for all dictionaries, those where `is_unique` says so. `watch`: whether to go on. What it tells is how the load ends
    /// instead.
    ///
    /// # Errors
    /// Those of reading, and of waiting for others.
    pub(crate) fn claim_loaded(
        &mut self,
        parts: &[Loaded<'_>],
        is_unique: impl Fn(usize) -> bool,
        watch: &mut dyn FnMut() -> bool,
    ) -> Result<Option<LoadEnd>> {
        while let Some((dict, key)) = self.first_in_gaps(parts)? {
            self.wait_for_gaps(&dict, &key, LockWait::Default)?;
        }
        let unique = || parts.iter().filter(|part| is_unique(part.index));
        for part in unique() {
            if !self.lock_loaded(part, watch)? {
                return Ok(Some(LoadEnd::Cancelled));
            }
        }
        for part in unique() {
            if let Some(end) = first_there(part, watch)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// A key that a gap of others keeps out.
    pub(crate) fn first_in_gaps(&self, parts: &[Loaded<'_>]) -> Result<Option<(Arc<Dict>, Vec<u8>)>> {
        for part in parts {
            for (from, to) in self.db.locks.gaps_of_others(&self.handle, part.dict.id) {
                if let Some(key) = part.first_between(&from, to.as_deref())? {
                    return Ok(Some((part.dict.clone(), key)));
                }
            }
        }
        Ok(None)
    }

    /// Step 2; false: it was given up.
    fn lock_loaded(&mut self, part: &Loaded<'_>, watch: &mut dyn FnMut() -> bool) -> Result<bool> {
        let Some((from, to)) = part.span() else { return Ok(true) };
        let (dict, mode) = (part.dict, LockMode::Exclusive);
        let stretch = |txn: &Txn| txn.db.locks.lock_stretch(&txn.handle, dict.id, mode, &from, Some(&to));
        let mut has_stretch = stretch(self);
        if has_stretch && !self.db.locks.is_any_held_by_others(&self.handle, dict.id, mode) {
            return Ok(true);
        }
        let mut goes_on = true;
        part.for_keys(|keys| {
            has_stretch = has_stretch || stretch(self);
            let mut at = 0;
            while let Some(key) = keys.get(at) {
                if has_stretch {
                    let rest = &keys[at..];
                    let Some(held) = self.db.locks.first_held_by_others(&self.handle, dict.id, mode, rest)
                    else {
                        break;
                    };
                    at += held;
                    self.lock(dict, rest[held], mode, LockWait::Default)?;
                } else {
                    self.lock(dict, key, mode, LockWait::Default)?;
                }
                at += 1;
            }
            goes_on = watch();
            Ok(goes_on)
        })?;
        Ok(goes_on)
    }
}

/// The first key that the table has already, if there is one. Requires the lock of all of them.
fn first_there(part: &Loaded<'_>, watch: &mut dyn FnMut() -> bool) -> Result<Option<LoadEnd>> {
    // What the lock keeps others from changing is visible, whatever else is being published.
    let mut tree = part.dict.tree.cursor(Seqno::MAX);
    let mut looks = 0usize;
    for run in part.runs {
        let mut new = run.cursor().bypass_cache();
        new.seek_first()?;
        while new.valid() {
            catch_up_tree(&mut tree, new.key(), looks == 0)?;
            if !tree.valid() {
                return Ok(None);
            }
            if tree.key() == new.key() {
                let (key, value) = (new.key().to_vec(), new.record().value.to_vec());
                return Ok(Some(LoadEnd::Duplicate {
                    index: part.index,
                    key,
                    value,
                    existing: tree.value().to_vec(),
                }));
            }
            catch_up_run(&mut new, tree.key())?;
            looks += 1;
            if looks % KEYS == 0 && !watch() {
                return Ok(Some(LoadEnd::Cancelled));
            }
        }
    }
    Ok(None)
}

/// To the first key that is not before `key`.
fn catch_up_tree(tree: &mut pando_tree::Cursor, key: &[u8], is_first: bool) -> Result<()> {
    if is_first {
        return Ok(tree.seek(key)?);
    }
    for _ in 0..STEPS_MAX {
        if !tree.valid() || tree.key() >= key {
            return Ok(());
        }
        tree.next()?;
    }
    Ok(tree.seek(key)?)
}

/// The same.
fn catch_up_run(run: &mut RunCursor, key: &[u8]) -> Result<()> {
    for _ in 0..STEPS_MAX {
        if !run.valid() || run.key() >= key {
            return Ok(());
        }
        run.next()?;
    }
    Ok(run.seek(key)?)
}
