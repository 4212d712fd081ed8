//! What transactions hold, as the model knows it: keys, and gaps that nobody else inserts into.
//!
//! Gaps are known exactly. Of keys more may be held than the transaction asked for: one over its lock budget
//! turns its locks on neighbouring keys into stretches, and what lies between is held as well. So the answer for
//! a key is no, yes, or perhaps; where it is perhaps, both answers of the engine are right.

use std::collections::{BTreeMap, BTreeSet};

use pandodb::LockMode;

use crate::client::Client;
use crate::model::{Bytes, LockKey, State, TableId, Write};
use crate::world::World;

/// Fewer keys never become a stretch.
const STRETCH_KEYS_MIN: usize = 2;

/// Keys of a dictionary from the first up to, but without, the second (`None`: up to the end).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gap {
    pub table: TableId,
    pub dict: usize,
    pub from: Bytes,
    pub to: Option<Bytes>,
}

impl Gap {
    pub(crate) fn covers(&self, table: TableId, dict: usize, key: &[u8]) -> bool {
        self.table == table
            && self.dict == dict
            && *self.from <= *key
            && self.to.as_ref().is_none_or(|to| *key < **to)
    }
}

/// Whether somebody holds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    No,
    /// It may lie in a stretch.
    Perhaps,
    Yes,
}

/// The first and the last key of a dictionary that was ever locked, and how many were.
#[derive(Clone, Debug)]
struct Span {
    first: Bytes,
    last: Bytes,
    keys: usize,
}

/// What one transaction holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    keys: BTreeMap<LockKey, LockMode>,
    /// Locked or not: a request was refused, and the model cannot know which part of it.
    perhaps: BTreeSet<LockKey>,
    gaps: Vec<Gap>,
    /// Tables locked as a whole: surely, or perhaps.
    wholes: BTreeMap<TableId, bool>,
    spans: BTreeMap<(TableId, usize), Span>,
    /// Keys ever locked.
    count: usize,
}

impl Locks {
    pub(crate) fn add(&mut self, table: TableId, dict: usize, key: &Bytes, mode: LockMode) {
        let place = (table, dict, key.clone());
        self.perhaps.remove(&place);
        let before = self.keys.get(&place).copied();
        if before != Some(LockMode::Exclusive) {
            self.keys.insert(place, mode);
        }
        if before.is_none() {
            self.stretch(table, dict, key);
        }
    }

    fn stretch(&mut self, table: TableId, dict: usize, key: &Bytes) {
        self.count += 1;
        let new = || Span { first: key.clone(), last: key.clone(), keys: 0 };
        let span = self.spans.entry((table, dict)).or_insert_with(new);
        span.keys += 1;
        span.first = span.first.clone().min(key.clone());
        span.last = span.last.clone().max(key.clone());
    }

    /// The engine was asked for this lock, and it is not known how far the request came.
    pub(crate) fn add_perhaps(&mut self, table: TableId, dict: usize, key: &Bytes) {
        let place = (table, dict, key.clone());
        if !self.keys.contains_key(&place) && self.perhaps.insert(place) {
            self.stretch(table, dict, key);
        }
    }

    /// All keys of a table; `is_sure`: or perhaps none.
    pub(crate) fn add_whole(&mut self, table: TableId, is_sure: bool) {
        *self.wholes.entry(table).or_default() |= is_sure;
    }

    pub(crate) fn mode(&self, place: &LockKey) -> Option<LockMode> {
        self.keys.get(place).copied()
    }

    /// The lock is as it was before it was asked for.
    pub(crate) fn set_back(&mut self, place: LockKey, before: Option<LockMode>) {
        match before {
            Some(mode) => _ = self.keys.insert(place, mode),
            None => _ = self.keys.remove(&place),
        }
    }

    pub(crate) fn add_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }

    /// Whether another may not have the key in this mode. `budget`: locks beyond which there are stretches.
    fn held(&self, place: &LockKey, mode: LockMode, budget: usize) -> Held {
        let excludes = |held: &LockMode| !mode.admits(*held);
        if self.keys.get(place).is_some_and(excludes) {
            return Held::Yes;
        }
        let (table, dict, key) = place;
        if let Some(is_sure) = self.wholes.get(table) {
            return if *is_sure { Held::Yes } else { Held::Perhaps };
        }
        let in_span = |span: &Span| span.keys >= STRETCH_KEYS_MIN && span.first <= *key && *key <= span.last;
        // The engine's ranges count, too: no more than there are keys, and the gaps.
        let may_stretch = 2 * self.count + self.gaps.len() > budget
            && self.spans.get(&(*table, *dict)).is_some_and(in_span);
        match may_stretch || self.perhaps.contains(place) {
            true => Held::Perhaps,
            false => Held::No,
        }
    }

    fn keeps_out(&self, table: TableId, dict: usize, key: &[u8]) -> bool {
        self.gaps.iter().any(|gap| gap.covers(table, dict, key))
    }

    /// Whether keys of a table are held, not only gaps; `None`: perhaps.
    fn has_keys(&self, table: TableId) -> Option<bool> {
        if self.keys.keys().any(|(id, ..)| *id == table) || self.wholes.get(&table) == Some(&true) {
            return Some(true);
        }
        let has_span = self.spans.keys().any(|(id, _)| *id == table);
        let is_perhaps = has_span || self.perhaps.iter().any(|(id, ..)| *id == table);
        (!is_perhaps && !self.wholes.contains_key(&table)).then_some(false)
    }

    /// Whether anything of a table is held.
    pub(crate) fn uses(&self, table: TableId) -> bool {
        let keys = self.keys.keys().chain(&self.perhaps);
        let rest = self.gaps.iter().map(|gap| gap.table).chain(self.wholes.keys().copied());
        keys.map(|(id, ..)| *id).chain(rest).any(|id| id == table)
    }

    /// A truncated table is the same for those who hold locks on its keys.
    pub(crate) fn follow_truncate(&mut self, old: TableId, new: TableId) {
        let follow = |id: TableId| if id == old { new } else { id };
        let keys = std::mem::take(&mut self.keys).into_iter();
        self.keys = keys.map(|((id, dict, key), mode)| ((follow(id), dict, key), mode)).collect();
        let perhaps = std::mem::take(&mut self.perhaps).into_iter();
        self.perhaps = perhaps.map(|(id, dict, key)| (follow(id), dict, key)).collect();
        let wholes = std::mem::take(&mut self.wholes).into_iter();
        self.wholes = wholes.map(|(id, is_sure)| (follow(id), is_sure)).collect();
        let spans = std::mem::take(&mut self.spans).into_iter();
        self.spans = spans.map(|((id, dict), span)| ((follow(id), dict), span)).collect();
        self.gaps.iter_mut().for_each(|gap| gap.table = follow(gap.table));
    }
}

impl World {
    /// Locks of all others: the client itself is out of its slot.
    fn others_locks(&self) -> impl Iterator<Item = &Locks> {
        let prepared = self.current().prepared.values().map(|prepared| &prepared.locks);
        self.clients.iter().flatten().map(|other| &other.locks).chain(prepared)
    }

    /// Whether another has the key locked against this mode.
    pub(crate) fn held_by_other(&self, key: &LockKey, mode: LockMode) -> Held {
        let budget = self.db.lock_budget();
        self.others_locks().map(|locks| locks.held(key, mode, budget)).max().unwrap_or(Held::No)
    }

    /// Whether others have locks or uncommitted writes in a table; `None`: perhaps.
    pub(crate) fn others_at_work(&self, table: TableId) -> Option<bool> {
        let prepared = self.current().prepared.values();
        let prepared = prepared.map(|p| (&p.locks, &p.writes, p.touched.contains(&table)));
        let clients = self.clients.iter().flatten();
        let clients = clients.map(|c| (&c.locks, &c.writes, c.touched.contains(&table)));
        let at_work = |(locks, writes, touches): (&Locks, &Vec<Write>, bool)| {
            let writes = writes.iter().any(|write| write.table == table);
            match (writes, locks.has_keys(table), touches) {
                (true, ..) | (_, Some(true), _) => Some(true),
                (_, None, _) | (_, _, true) => None,
                (false, Some(false), false) => Some(false),
            }
        };
        let all: Vec<Option<bool>> = prepared.chain(clients).map(at_work).collect();
        match all.contains(&Some(true)) {
            true => Some(true),
            false => (!all.contains(&None)).then_some(false),
        }
    }

    /// Whether a key lies in a gap of another, there or not.
    pub(crate) fn is_in_gap_of_others(&self, table: TableId, dict: usize, key: &[u8]) -> bool {
        self.others_locks().any(|locks| locks.keeps_out(table, dict, key))
    }

    /// Whether a gap of another keeps the client from writing this key: not if it is there, or was written
    /// before.
    pub(crate) fn is_kept_out(&self, client: &Client, table: TableId, dict: usize, key: &[u8]) -> bool {
        self.others_locks().any(|locks| locks.keeps_out(table, dict, key))
            && client.own(table, dict, key).is_none()
            && self.current().value(table, dict, key).is_none()
    }

    /// Keys within a gap that others have written and not committed.
    pub(crate) fn others_writes<'a>(&'a self, gap: &'a Gap) -> impl Iterator<Item = &'a Bytes> {
        let state: &State = self.current();
        let prepared = state.prepared.values().flat_map(|prepared| &prepared.writes);
        let writes = self.clients.iter().flatten().flat_map(|other| &other.writes).chain(prepared);
        writes.filter(|w| gap.covers(w.table, w.dict, &w.key)).map(|write| &write.key)
    }
}
