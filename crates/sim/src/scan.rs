//! Scans. A cursor shows what was there at its seek, whatever happens meanwhile: it is checked row by
//! row against the model's view of that moment, in one step of the scheduler or over many.

use std::rc::Rc;
use std::sync::Arc;

use pandodb::{Cursor, Error, LockMode, LockWait, ReadMode, Table};
use rand::Rng;

use crate::client::Client;
use crate::model::{Bytes, TableId};
use crate::world::{ensure, note, Check, World};

type View = Rc<Vec<(Bytes, Bytes)>>;

/// A cursor and what it should show.
pub(crate) struct HeldCursor {
    cursor: Cursor,
    place: (TableId, usize),
    view: View,
    at: Option<usize>,
    is_ahead: bool,
}

impl HeldCursor {
    pub(crate) fn table(&self) -> TableId {
        self.place.0
    }

    /// Whether the cursor is where it should be.
    fn check(&self) -> Check {
        let expected = self.at.map(|at| (&self.view[at].0[..], &self.view[at].1[..]));
        let got = self.cursor.valid().then(|| (self.cursor.key(), self.cursor.value()));
        let (id, dict) = self.place;
        ensure!(got == expected, "a scan of {id}.{dict} is at {got:?} and not at {expected:?}");
        Ok(())
    }

    /// Moves on; false at the end.
    fn go(&mut self, client: &mut Client) -> pandodb::Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        if self.is_ahead {
            self.cursor.next(&mut client.txn)?;
            self.at = Some(at + 1).filter(|at| *at < self.view.len());
        } else {
            self.cursor.prev(&mut client.txn)?;
            self.at = at.checked_sub(1);
        }
        Ok(true)
    }
}

impl World {
    /// A scan in one step: consistent, of the newest versions, or locking.
    pub(crate) fn scan(&mut self, client: &mut Client) -> Check {
        let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
        if self.rng.random_ratio(1, 3) {
            return self.locking_scan(client, id, &table);
        }
        let dict = self.rng.random_range(0..state.dicts.len());
        let Some(mut held) = self.open_cursor(client, (id, dict), &table)? else { return Ok(()) };
        let steps = if self.rng.random_ratio(1, 8) { usize::MAX } else { self.rng.random_range(1..60) };
        let turns = self.rng.random_ratio(1, 4);
        let turn_after = if turns { self.rng.random_range(1..5) } else { usize::MAX };
        for step in 0..steps {
            held.check()?;
            self.counts.rows_scanned += u64::from(held.at.is_some());
            if step == turn_after {
                held.is_ahead = !held.is_ahead;
            }
            let moved = held.go(client);
            match self.settle("a scan", moved)? {
                Some(true) => {}
                Some(false) | None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Moves the client's cursor, or opens one that later steps will move.
    pub(crate) fn held_cursor(&mut self, client: &mut Client) -> Check {
        let Some(mut held) = client.cursor.take() else {
            let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
            let dict = self.rng.random_range(0..state.dicts.len());
            client.cursor = self.open_cursor(client, (id, dict), &table)?;
            return Ok(());
        };
        note!(self, "  moves its cursor of {:?}", held.place);
        if self.rng.random_ratio(1, 5) {
            held.is_ahead = !held.is_ahead;
        }
        for _ in 0..self.rng.random_range(1..20) {
            held.check()?;
            self.counts.rows_scanned += u64::from(held.at.is_some());
            let moved = held.go(client);
            match self.settle("a cursor's move", moved)? {
                Some(true) => {}
                Some(false) | None => return Ok(()),
            }
        }
        client.cursor = Some(held);
        Ok(())
    }

    /// A cursor at a random place, seeking forward or backward. `None`: a fault, or nothing to see.
    fn open_cursor(
        &mut self,
        client: &mut Client,
        place: (TableId, usize),
        table: &Arc<Table>,
    ) -> Check<Option<HeldCursor>> {
        let latest: bool = self.rng.random();
        let base = if latest { self.current().clone() } else { self.snapshot_of(client) };
        let (id, dict) = place;
        let Some(state) = base.tables.get(&id) else { return Ok(None) };
        let view = base.view(id, dict, &client.writes);
        let is_ahead = self.rng.random();
        let whole = self.rng.random_ratio(1, 6);
        let key = if view.is_empty() || self.rng.random_ratio(1, 4) {
            self.some_key(state.keys)
        } else {
            view[self.rng.random_range(0..view.len())].0.clone()
        };
        let mode = if latest { ReadMode::Latest } else { ReadMode::Snapshot };
        note!(self, "  cursor of {id}.{dict} {mode:?} ahead: {is_ahead} from {key:?} (all: {whole})");
        let mut cursor = client.txn.cursor(table, dict);
        let txn = &mut client.txn;
        let start = view.partition_point(|(k, _)| *k < key);
        let (sought, at) = match (is_ahead, whole) {
            (true, true) => (cursor.seek_first(txn, mode), Some(0)),
            (true, false) => (cursor.seek(txn, &key, mode), Some(start)),
            (false, true) => (cursor.seek_last(txn, mode), view.len().checked_sub(1)),
            (false, false) => (cursor.seek_before(txn, &key, mode), start.checked_sub(1)),
        };
        let at = at.filter(|at| *at < view.len());
        let held = HeldCursor { cursor, place, view: Rc::new(view), at, is_ahead };
        Ok(self.settle("a seek", sought)?.map(|()| held))
    }

    /// A scan of rows that locks each: what it gives is the newest version of what it could lock.
    fn locking_scan(&mut self, client: &mut Client, id: TableId, table: &Arc<Table>) -> Check {
        let view = self.current().view(id, 0, &client.writes);
        let is_ahead: bool = self.rng.random();
        let first = self.rng.random_range(0..view.len().max(1));
        let lock = if self.rng.random() { LockMode::Exclusive } else { LockMode::Shared };
        let skip: bool = self.rng.random();
        let mode = ReadMode::Locked(lock, if skip { LockWait::SkipLocked } else { LockWait::NoWait });
        note!(self, "  locking scan of {id} {mode:?} ahead: {is_ahead} from row {first}");
        let mut cursor = client.txn.cursor(table, 0);
        let from = view.get(first).map_or(&b""[..], |(key, _)| key);
        let mut moved = if is_ahead {
            cursor.seek(&mut client.txn, from, mode)
        } else {
            cursor.seek_before(&mut client.txn, from, mode)
        };
        let rows: Vec<&(Bytes, Bytes)> = if is_ahead {
            view[first.min(view.len())..].iter().collect()
        } else {
            view[..first.min(view.len())].iter().rev().collect()
        };
        let most = self.rng.random_range(1..30);
        let mut given = 0;
        for (key, value) in rows {
            if self.is_held_by_other(&(id, 0, key.clone()), lock) {
                self.counts.lock_conflicts += 1;
                if skip {
                    continue;
                }
                return match moved {
                    Err(Error::WouldBlock) => Ok(()),
                    Err(error @ Error::Engine(_)) => self.settle("a scan", Err::<(), _>(error)).map(|_| ()),
                    moved => Err(format!("a scan passes {key:?}, which another has locked: {moved:?}")),
                };
            }
            if self.settle("a locking scan", moved)?.is_none() {
                return Ok(());
            }
            client.lock(id, 0, key, lock);
            let got = cursor.valid().then(|| (cursor.key(), cursor.value()));
            let expected = Some((&key[..], &value[..]));
            ensure!(got == expected, "a locking scan of {id} is at {got:?} and not at {expected:?}");
            self.counts.rows_scanned += 1;
            given += 1;
            if given == most {
                return Ok(());
            }
            moved = if is_ahead { cursor.next(&mut client.txn) } else { cursor.prev(&mut client.txn) };
        }
        if self.settle("a locking scan", moved)?.is_some() {
            ensure!(!cursor.valid(), "a locking scan of {id} goes on behind its end: {:?}", cursor.key());
        }
        Ok(())
    }
}
