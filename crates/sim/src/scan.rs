//! Scans. A cursor shows what was there at its seek, whatever happens meanwhile: it is checked row by
//! row against the model's view of that moment, in one step of the scheduler or over many.

use std::rc::Rc;
use std::sync::Arc;

use pandodb::{Cursor, ReadMode, Table};
use rand::Rng;

use crate::client::Client;
use crate::locking::LockingCursor;
use crate::model::{Bytes, TableId};
use crate::world::{ensure, note, Check, World};

type View = Rc<Vec<(Bytes, Bytes)>>;

/// A cursor that stays open.
pub(crate) enum HeldCursor {
    Viewing(ViewingCursor),
    Locking(LockingCursor),
}

impl HeldCursor {
    pub(crate) fn table(&self) -> TableId {
        match self {
            HeldCursor::Viewing(cursor) => cursor.place.0,
            HeldCursor::Locking(cursor) => cursor.table(),
        }
    }
}

/// A cursor that locks nothing, and what it should show.
pub(crate) struct ViewingCursor {
    cursor: Cursor,
    place: (TableId, usize),
    view: View,
    at: Option<usize>,
    is_ahead: bool,
}

impl ViewingCursor {
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
        let dict = self.rng.random_range(0..state.dicts.len());
        if self.rng.random_ratio(1, 2) {
            let held = self.locking_scan(client, id, dict, &table)?;
            if client.cursor.is_none() {
                client.cursor = held.map(HeldCursor::Locking);
            }
            return Ok(());
        }
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
        let mut held = match client.cursor.take() {
            Some(HeldCursor::Viewing(held)) => held,
            Some(HeldCursor::Locking(held)) => {
                note!(self, "  moves its locking cursor of {}", held.table());
                let rows = self.rng.random_range(1..8);
                client.cursor = self.go_on_locking(client, held, rows)?.map(HeldCursor::Locking);
                return Ok(());
            }
            None => {
                let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
                let dict = self.rng.random_range(0..state.dicts.len());
                client.cursor = self.open_cursor(client, (id, dict), &table)?.map(HeldCursor::Viewing);
                return Ok(());
            }
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
        client.cursor = Some(HeldCursor::Viewing(held));
        Ok(())
    }

    /// A cursor at a random place, seeking forward or backward. `None`: a fault, or nothing to see.
    fn open_cursor(
        &mut self,
        client: &mut Client,
        place: (TableId, usize),
        table: &Arc<Table>,
    ) -> Check<Option<ViewingCursor>> {
        let latest: bool = self.rng.random();
        let base = if latest { self.current().clone() } else { self.snapshot_of(client) };
        let (id, dict) = place;
        let Some(state) = base.tables.get(&id) else { return Ok(None) };
        if !base.has_same(self.current(), id, dict) {
            return Ok(None);
        }
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
        let held = ViewingCursor { cursor, place, view: Rc::new(view), at, is_ahead };
        Ok(self.settle("a seek", sought)?.map(|()| held))
    }
}
