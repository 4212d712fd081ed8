//! Locking scans: each row is locked and given in its newest version, past nothing that others have written; in
//! transactions that take gaps nobody else inserts where the scan has been. The model walks the way of the engine's cursor (`pandodb`,
//! `cursor/gaps.rs`): gap by gap, past what others have written there, and the newest state again when
//! something was committed meanwhile. So it knows which row comes, what stands in the way, and which gap is
//! held.

use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use pandodb::{Cursor, Error, LockMode, LockWait, ReadMode, Table};
use rand::Rng;

use crate::client::Client;
use crate::locks::{Gap, Held};
use crate::model::{Bytes, State, TableId};
use crate::world::{ensure, note, Check, World};

/// A locking cursor and where it is.
pub(crate) struct LockingCursor {
    cursor: Cursor,
    place: (TableId, usize),
    lock: LockMode,
    skips: bool,
    is_ahead: bool,
    takes_gaps: bool,
    /// Own writes that it sees: those before its seek.
    own: usize,
    /// The committed state that it sees.
    seen: Rc<State>,
    /// Where it stands: the rest of its way, in its direction.
    rest: Bound<Bytes>,
    /// Where the part without a gap begins; going down the first key after it.
    edge: Option<Bytes>,
    /// The gap goes up to the end of its way.
    is_complete: bool,
    stop: Option<Bytes>,
}

/// What comes next.
#[derive(Debug, PartialEq)]
enum Next {
    Row(Bytes, Bytes),
    End,
    Refused,
}

fn after(key: &[u8]) -> Bytes {
    let mut next = key.to_vec();
    next.push(0);
    next.into()
}

impl LockingCursor {
    pub(crate) fn table(&self) -> TableId {
        self.place.0
    }

    /// From the next key on the way goes on this way.
    fn start(&mut self, rest: Bound<Bytes>) {
        self.is_complete = false;
        self.edge = match (&rest, self.is_ahead) {
            (Bound::Included(key), true) | (Bound::Excluded(key), false) => Some(key.clone()),
            (Bound::Excluded(key), true) => Some(after(key)),
            (Bound::Included(key), false) => Some(after(key)),
            (Bound::Unbounded, true) => Some(Bytes::from([])),
            (Bound::Unbounded, false) => None,
        };
        self.rest = rest;
    }

    /// The next row of its view.
    fn candidate(&self, client: &Client) -> Option<(Bytes, Bytes)> {
        let (table, dict) = self.place;
        let view = self.seen.view(table, dict, &client.writes[..self.own]);
        if self.is_ahead {
            let is_before = |key: &Bytes| match &self.rest {
                Bound::Included(rest) => key < rest,
                Bound::Excluded(rest) => key <= rest,
                Bound::Unbounded => false,
            };
            let next = view.partition_point(|(key, _)| is_before(key));
            let is_wanted = |(key, _): &&(Bytes, Bytes)| self.stop.as_ref().is_none_or(|stop| key < stop);
            return view.get(next).filter(is_wanted).cloned();
        }
        let is_left = |key: &Bytes| match &self.rest {
            Bound::Included(rest) => key <= rest,
            Bound::Excluded(rest) => key < rest,
            Bound::Unbounded => true,
        };
        let end = view.partition_point(|(key, _)| is_left(key));
        let is_wanted = |(key, _): &&(Bytes, Bytes)| self.stop.as_ref().is_none_or(|stop| key >= stop);
        view[..end].last().filter(is_wanted).cloned()
    }

    fn includes(&self, next: Option<&Bytes>) -> bool {
        match (next, &self.edge) {
            _ if self.is_complete => true,
            (Some(next), Some(edge)) => (next < edge) == self.is_ahead,
            _ => false,
        }
    }

    fn gap_up_to(&self, next: Option<&Bytes>) -> Gap {
        let (table, dict) = self.place;
        let nothing = || Bytes::from([]);
        let edge = self.edge.clone();
        let (from, to) = if self.is_ahead {
            (edge.unwrap_or_else(nothing), next.map(|next| after(next)).or_else(|| self.stop.clone()))
        } else {
            (next.or(self.stop.as_ref()).cloned().unwrap_or_else(nothing), edge)
        };
        Gap { table, dict, from, to }
    }

    /// The gap has been looked at; gives where it began.
    fn move_edge(&mut self, gap: Gap) -> Option<Bytes> {
        let before = self.edge.clone();
        if !self.is_ahead {
            self.edge = Some(gap.from);
        } else if gap.to.is_some() {
            self.edge = gap.to;
        }
        before
    }

    /// Looks at the gap before the next row, and holds it. `None`: others have written there; false: there is news.
    fn guard(&mut self, world: &World, client: &mut Client, next: Option<&Bytes>) -> Option<bool> {
        if self.includes(next) {
            return Some(true);
        }
        let mut gap = self.gap_up_to(next);
        if self.takes_gaps {
            client.locks.add_gap(gap.clone());
        }
        if next.is_some_and(|next| gap.from == *next && gap.to == Some(after(next))) {
            self.move_edge(gap);
            return Some(true);
        }
        if !self.skips && world.others_writes(&gap).any(|key| Some(key) != next) {
            return None;
        }
        let is_news = self.is_outdated(world);
        if let Some(next) = next.filter(|_| is_news) {
            if self.is_ahead {
                gap.to = Some(next.clone());
            } else {
                gap.from = after(next);
            }
        }
        let looked_from = self.move_edge(gap);
        self.is_complete = next.is_none();
        if is_news {
            self.seen = world.current().clone();
            self.rest = match looked_from {
                Some(from) if self.is_ahead => Bound::Included(from),
                Some(from) => Bound::Excluded(from),
                None => Bound::Unbounded,
            };
        }
        Some(!is_news)
    }

    /// Whether anything was committed to its dictionary since it looked.
    fn is_outdated(&self, world: &World) -> bool {
        let (table, dict) = self.place;
        let map = |state: &Rc<State>| state.tables.get(&table).map(|table| table.dicts[dict].clone());
        match (map(&self.seen), map(world.current())) {
            (Some(seen), Some(now)) => !Rc::ptr_eq(&seen, &now),
            _ => true,
        }
    }

    /// Whether a row that it sees is not there any more.
    fn is_gone(&self, world: &World, client: &Client, key: &[u8]) -> bool {
        client.newest(world.current(), self.place.0, 0, key).is_none()
            && client.own(self.place.0, 0, key).is_none()
    }

    /// Whether a row is another one in the newest state.
    fn is_newer(&self, world: &World, key: Option<&[u8]>) -> bool {
        let value = |state: &State| state.value(self.place.0, 0, key?);
        value(&self.seen) != value(world.current())
    }

    /// What the engine should come to. `got` is where it is, for locks that are perhaps held.
    fn next(&mut self, world: &World, client: &mut Client, got: Option<&[u8]>, refused: bool) -> Next {
        let (table, dict) = self.place;
        loop {
            let candidate = self.candidate(client);
            let next = candidate.as_ref().map(|(key, _)| key.clone());
            match self.guard(world, client, next.as_ref()) {
                None => return Next::Refused,
                Some(false) => continue,
                Some(true) => {}
            }
            let Some((key, value)) = candidate else { return Next::End };
            self.rest = Bound::Excluded(key.clone());
            if dict != 0 {
                return Next::Row(key, value);
            }
            let held = match world.held_by_other(&(table, 0, key.clone()), self.lock) {
                // It waits for nobody: either it is refused, or it has the lock.
                Held::Perhaps if !self.skips => refused,
                Held::Perhaps => {
                    let is_passed = got != Some(&key);
                    // Or it was locked, and was gone: then the newest state came.
                    if is_passed && self.is_gone(world, client, &key) && self.is_newer(world, got) {
                        self.seen = world.current().clone();
                    }
                    is_passed
                }
                held => held == Held::Yes,
            };
            match (held, self.skips) {
                (true, true) => continue,
                (true, false) => return Next::Refused,
                (false, _) => client.locks.add(table, 0, &key, self.lock),
            }
            match client.newest(world.current(), table, 0, &key) {
                Some(value) => return Next::Row(key, value),
                // An own delete is passed by; a row that is gone brings the newest state.
                None if client.own(table, 0, &key).is_some() => {}
                None => self.seen = world.current().clone(),
            }
        }
    }
}

impl World {
    /// A scan that locks, in one step, or the beginning of one that later steps go on with.
    pub(crate) fn locking_scan(
        &mut self,
        client: &mut Client,
        id: TableId,
        dict: usize,
        table: &Arc<Table>,
    ) -> Check<Option<LockingCursor>> {
        let state = self.current().tables[&id].clone();
        let lock = if self.rng.random() { LockMode::Exclusive } else { LockMode::Shared };
        let skips = self.rng.random_ratio(1, 3);
        let mode = ReadMode::Locked(lock, if skips { LockWait::SkipLocked } else { LockWait::NoWait });
        let is_ahead: bool = self.rng.random();
        let from = (!self.rng.random_ratio(1, 6)).then(|| self.key_of(&state, dict));
        let stop = self.rng.random_ratio(1, 3).then(|| self.key_of(&state, dict));
        note!(self, "  locking scan of {id}.{dict} {mode:?} ahead: {is_ahead} from {from:?} to {stop:?}");
        let mut cursor = client.txn.cursor(table, dict);
        cursor.set_stop(stop.as_deref());
        let txn = &mut client.txn;
        let moved = match (&from, is_ahead) {
            (Some(from), true) => cursor.seek(txn, from, mode),
            (Some(from), false) => cursor.seek_before(txn, from, mode),
            (None, true) => cursor.seek_first(txn, mode),
            (None, false) => cursor.seek_last(txn, mode),
        };
        let (takes_gaps, own, seen) = (client.takes_gaps, client.writes.len(), self.current().clone());
        let mut held = LockingCursor {
            cursor,
            place: (id, dict),
            lock,
            skips,
            is_ahead,
            takes_gaps,
            own,
            seen,
            rest: Bound::Unbounded,
            edge: None,
            is_complete: false,
            stop,
        };
        let rest = match from {
            Some(from) if is_ahead => Bound::Included(from),
            Some(from) => Bound::Excluded(from),
            None => Bound::Unbounded,
        };
        held.start(rest);
        if !self.came_to(client, &mut held, moved)? {
            return Ok(None);
        }
        let most = self.rng.random_range(1..30);
        self.go_on_locking(client, held, most)
    }

    /// So many rows more; gives the cursor back unless it is at its end.
    pub(crate) fn go_on_locking(
        &mut self,
        client: &mut Client,
        mut held: LockingCursor,
        rows: u32,
    ) -> Check<Option<LockingCursor>> {
        for _ in 0..rows {
            if held.stop.is_none() && self.rng.random_ratio(1, 12) {
                // It turns: its next move goes the other way from where it is.
                held.is_ahead = !held.is_ahead;
                let Bound::Excluded(at) = held.rest.clone() else { return Ok(None) };
                held.start(Bound::Excluded(at));
            }
            let txn = &mut client.txn;
            let moved = if held.is_ahead { held.cursor.next(txn) } else { held.cursor.prev(txn) };
            if !self.came_to(client, &mut held, moved)? {
                return Ok(None);
            }
        }
        Ok(Some(held))
    }

    /// Compares where the engine's cursor is with where it should be. False: it is at no row.
    fn came_to(
        &mut self,
        client: &mut Client,
        held: &mut LockingCursor,
        moved: pandodb::Result<()>,
    ) -> Check<bool> {
        if let Err(error @ Error::Engine(_)) = moved {
            return self.settle("a locking scan", Err::<(), _>(error)).map(|_| false);
        }
        let is_valid = moved.is_ok() && held.cursor.valid();
        let got = is_valid.then(|| (Bytes::from(held.cursor.key()), Bytes::from(held.cursor.value())));
        let at = got.as_ref().map(|(key, _)| key.clone());
        let expected = held.next(self, client, at.as_deref(), moved.is_err());
        let (id, dict) = held.place;
        match (moved, got) {
            (Ok(()), Some((key, value))) => {
                let got = Next::Row(key, value);
                ensure!(got == expected, "a locking scan of {id}.{dict} is at {got:?} and not {expected:?}");
                self.counts.rows_scanned += 1;
                Ok(true)
            }
            (Ok(()), None) => {
                ensure!(expected == Next::End, "a locking scan of {id}.{dict} ends, and not {expected:?}");
                Ok(false)
            }
            (Err(Error::WouldBlock), _) => {
                let refused = expected == Next::Refused;
                ensure!(refused, "a locking scan of {id}.{dict} is refused, and not {expected:?}");
                self.counts.lock_conflicts += 1;
                Ok(false)
            }
            (Err(error), _) => Err(format!("a locking scan: {error}")),
        }
    }
}
