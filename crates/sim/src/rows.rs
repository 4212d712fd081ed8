//! Writes of whole rows: unique keys are claimed, indexes kept in step.

use std::sync::Arc;

use pandodb::{Entry, Error, LockMode, LockWait, LockedRead, Table};
use rand::Rng;

use crate::client::Client;
use crate::locks::Held;
use crate::model::{Bytes, Row, TableId, TableState};
use crate::world::{ensure, note, Check, World};

/// What the engine should answer.
#[derive(Debug, PartialEq)]
enum Expected {
    Done,
    Blocked,
    /// As the engine says so.
    BlockedPerhaps,
    Duplicate(usize, Bytes),
}

/// Which entries the rows of a table have.
struct Shape {
    /// Of an index that was added or is being built: whether it is unique.
    added: Option<bool>,
    /// Of each entry.
    unique: Vec<bool>,
    /// Entries of dictionaries that can be read; one more is that of an index that is being built.
    public: usize,
}

impl Shape {
    fn entries<'a>(&self, row: &'a [(Bytes, Bytes)]) -> Vec<Entry<'a>> {
        let entries = row.iter().zip(&self.unique);
        entries.map(|((key, value), unique)| Entry { key, value, unique: *unique }).collect()
    }

    /// Dictionaries whose keys are locked and looked up.
    fn claimed(&self) -> Vec<usize> {
        (0..self.public).filter(|dict| self.unique[*dict]).collect()
    }

    fn dicts(&self) -> Vec<usize> {
        (0..self.public).collect()
    }
}

impl World {
    /// Inserts a row, or changes or deletes one that is there.
    pub(crate) fn write_row(
        &mut self,
        client: &mut Client,
        id: TableId,
        state: &TableState,
        table: &Arc<Table>,
    ) -> Check {
        let pk = self.some_key(state.keys);
        let there = client.newest(self.current(), id, 0, &pk).is_some();
        if !there || self.rng.random_ratio(1, 10) {
            return self.insert_row(client, id, state, table, pk);
        }
        self.change_row(client, id, state, table, pk)
    }

    fn shape(&self, id: TableId, state: &TableState) -> Shape {
        let added = state.added.map(|added| added.is_unique).or_else(|| self.builds(id));
        let unique = [true, false, true].into_iter().chain(added).collect();
        Shape { added, unique, public: state.dicts.len() }
    }

    /// Which dictionaries of a table have unique keys.
    pub(crate) fn unique_keys(&self, id: TableId, state: &TableState) -> Vec<bool> {
        self.shape(id, state).unique
    }

    fn some_row(&mut self, state: &TableState, pk: Bytes) -> Row {
        // Twice as many unique values as rows: duplicates happen, and are not the rule.
        let u = self.rng.random_range(0..2 * state.keys);
        Row { pk, a: self.rng.random_range(0..4), u, filler: self.some_value()[1..].to_vec() }
    }

    /// Claims a key for the model as the engine does: what was locked before an answer stays locked.
    fn claim(
        &mut self,
        client: &mut Client,
        id: TableId,
        dict: usize,
        key: &Bytes,
        is_blocked: bool,
    ) -> Expected {
        if self.is_kept_out(client, id, dict, key) {
            self.counts.inserts_kept_out += 1;
            return Expected::Blocked;
        }
        let existing = client.newest(self.current(), id, dict, key);
        // A row that is in the way is only kept from being changed by others.
        let mode = if existing.is_some() { LockMode::Shared } else { LockMode::Exclusive };
        match (self.lock(client, id, dict, key, mode, is_blocked), existing) {
            (Expected::Done, Some(existing)) => Expected::Duplicate(dict, existing),
            (done_or_blocked, _) => done_or_blocked,
        }
    }

    /// Claims the keys of a row that a load is asked for; `has_seen` tells which the load has. The answer is the position among `unique` of
    /// the first that is there; `None`: something of others is in the way.
    pub(crate) fn claim_for_load(
        &mut self,
        client: &mut Client,
        id: TableId,
        row: &[(Bytes, Bytes)],
        unique: &[usize],
        has_seen: impl Fn(usize) -> bool,
        is_blocked: bool,
    ) -> Option<Option<usize>> {
        for (position, dict) in unique.iter().copied().enumerate() {
            if has_seen(dict) {
                return Some(Some(position));
            }
            match self.claim(client, id, dict, &row[dict].0, is_blocked) {
                Expected::Done => {}
                Expected::Duplicate(..) => return Some(Some(position)),
                Expected::Blocked => return None,
                Expected::BlockedPerhaps => {
                    unique.iter().for_each(|dict| client.locks.add_perhaps(id, *dict, &row[*dict].0));
                    return None;
                }
            }
        }
        Some(None)
    }

    fn lock_exclusively(
        &mut self,
        client: &mut Client,
        id: TableId,
        dict: usize,
        key: &Bytes,
        is_blocked: bool,
    ) -> Expected {
        self.lock(client, id, dict, key, LockMode::Exclusive, is_blocked)
    }

    /// `is_blocked`: the engine says that something was in the way; it decides where the model does not know.
    fn lock(
        &mut self,
        client: &mut Client,
        id: TableId,
        dict: usize,
        key: &Bytes,
        mode: LockMode,
        is_blocked: bool,
    ) -> Expected {
        match self.held_by_other(&(id, dict, key.clone()), mode) {
            Held::Yes => Expected::Blocked,
            Held::Perhaps if is_blocked => {
                // Here or later.
                client.locks.add_perhaps(id, dict, key);
                Expected::BlockedPerhaps
            }
            Held::Perhaps | Held::No => {
                client.locks.add(id, dict, key, mode);
                Expected::Done
            }
        }
    }

    /// After the claims: whether gaps of others keep out what is new in the row. `dicts`: where something is.
    fn enter(
        &mut self,
        client: &mut Client,
        id: TableId,
        row: &[(Bytes, Bytes)],
        claimed: &[usize],
        dicts: &[usize],
        expected: Expected,
    ) -> Expected {
        match expected {
            Expected::BlockedPerhaps => {
                for dict in claimed.iter().copied().filter(|dict| dicts.contains(dict)) {
                    client.locks.add_perhaps(id, dict, &row[dict].0);
                }
                client.touched.insert(id);
                Expected::Blocked
            }
            Expected::Done if dicts.iter().any(|d| self.is_kept_out(client, id, *d, &row[*d].0)) => {
                client.touched.insert(id);
                self.counts.inserts_kept_out += 1;
                Expected::Blocked
            }
            expected => expected,
        }
    }

    fn insert_row(
        &mut self,
        client: &mut Client,
        id: TableId,
        state: &TableState,
        table: &Table,
        pk: Bytes,
    ) -> Check {
        let shape = self.shape(id, state);
        let claimed = shape.claimed();
        let row = self.some_row(state, pk).entries(shape.added);
        note!(self, "  insert row {id} {:?} with {:?}", row[0].0, row[2].0);
        let result = client.txn.insert_row(table, &shape.entries(&row));
        let is_blocked = matches!(result, Err(Error::LockTimeout));
        let mut expected = Expected::Done;
        for dict in claimed.iter().copied() {
            if expected == Expected::Done {
                expected = self.claim(client, id, dict, &row[dict].0, is_blocked);
            }
        }
        let expected = self.enter(client, id, &row, &claimed, &shape.dicts(), expected);
        if self.answered("an insert", result, expected)? {
            for (dict, (key, value)) in row.into_iter().take(shape.public).enumerate() {
                client.write(id, dict, &key, Some(value));
            }
        }
        Ok(())
    }

    /// Compares an answer with the expected one; true if the rows were written.
    fn answered(&mut self, what: &str, result: pandodb::Result<()>, expected: Expected) -> Check<bool> {
        match (result, expected) {
            (Ok(()), Expected::Done) => return Ok(true),
            (Err(Error::LockTimeout), Expected::Blocked) => self.counts.lock_conflicts += 1,
            (Err(Error::Duplicate { index, existing }), Expected::Duplicate(dict, value))
                if index == dict && *existing == *value =>
            {
                self.counts.duplicates += 1;
            }
            (Err(error @ Error::Engine(_)), _) => _ = self.settle(what, Err::<(), _>(error))?,
            (result, expected) => return Err(format!("{what}: {result:?} and not {expected:?}")),
        }
        Ok(false)
    }

    fn change_row(
        &mut self,
        client: &mut Client,
        id: TableId,
        state: &TableState,
        table: &Table,
        pk: Bytes,
    ) -> Check {
        // 1. Read under its lock.
        let held = self.held_by_other(&(id, 0, pk.clone()), LockMode::Exclusive);
        let expected = client.newest(self.current(), id, 0, &pk);
        let read = client.txn.get_locked(table, 0, &pk, LockMode::Exclusive, LockWait::NoWait);
        let value = match read {
            Err(Error::WouldBlock) => {
                ensure!(held != Held::No, "the lock of a free row was refused: {pk:?}");
                self.counts.lock_conflicts += 1;
                return Ok(());
            }
            Ok(LockedRead::Row(value)) => value,
            Ok(read) => return Err(format!("a row that is there is not found: {pk:?} {read:?}")),
            Err(error) => return self.settle("a locked get", Err::<(), _>(error)).map(|_| ()),
        };
        ensure!(held != Held::Yes, "the lock of a row was granted that another holds: {pk:?}");
        ensure!(Some(&value[..]) == expected.as_deref(), "row {pk:?}: {value:?} and not {expected:?}");
        client.locks.add(id, 0, &pk, LockMode::Exclusive);
        let old = Row::decode(&pk, &value).ok_or_else(|| format!("row {pk:?} is {value:?}"))?;
        // 2. Delete it, or change some of it, perhaps its key.
        if self.rng.random_ratio(1, 3) {
            return self.delete_row(client, id, state, table, &old);
        }
        let mut new = old.clone();
        let other = self.some_row(state, pk);
        match self.rng.random_range(0..4) {
            0 => new.a = other.a,
            1 => new.u = other.u,
            2 => new.filler = other.filler,
            _ => new.pk = self.some_key(state.keys),
        }
        self.update_row(client, id, state, table, [&old, &new])
    }

    fn update_row(
        &mut self,
        client: &mut Client,
        id: TableId,
        state: &TableState,
        table: &Table,
        [old, new]: [&Row; 2],
    ) -> Check {
        let shape = self.shape(id, state);
        let claimed = shape.claimed();
        let (old, new) = (old.entries(shape.added), new.entries(shape.added));
        note!(self, "  update row {id} {:?} to {:?} with {:?}", old[0].0, new[0].0, new[2].0);
        let result = client.txn.update_row(table, &shape.entries(&old), &shape.entries(&new));
        let is_blocked = matches!(result, Err(Error::LockTimeout));
        let mut expected = self.lock_old(client, id, &old, &claimed, is_blocked);
        let is_moved = |dict: &usize| old[*dict].0 != new[*dict].0;
        let moved: Vec<usize> = (0..shape.public).filter(is_moved).collect();
        for dict in claimed.iter().copied().filter(|dict| moved.contains(dict)) {
            if expected == Expected::Done {
                expected = self.claim(client, id, dict, &new[dict].0, is_blocked);
            }
        }
        let expected = self.enter(client, id, &new, &claimed, &moved, expected);
        if self.answered("an update", result, expected)? {
            for (dict, (before, after)) in old.into_iter().zip(new).take(shape.public).enumerate() {
                if before.0 != after.0 {
                    client.write(id, dict, &before.0, None);
                }
                if before != after {
                    client.write(id, dict, &after.0, Some(after.1));
                }
            }
        }
        Ok(())
    }

    fn delete_row(
        &mut self,
        client: &mut Client,
        id: TableId,
        state: &TableState,
        table: &Table,
        old: &Row,
    ) -> Check {
        let shape = self.shape(id, state);
        let old = old.entries(shape.added);
        note!(self, "  delete row {id} {:?}", old[0].0);
        let result = client.txn.delete_row(table, &shape.entries(&old));
        let is_blocked = matches!(result, Err(Error::LockTimeout));
        let expected = match self.lock_old(client, id, &old, &shape.claimed(), is_blocked) {
            Expected::BlockedPerhaps => Expected::Blocked,
            expected => expected,
        };
        if self.answered("a delete", result, expected)? {
            for (dict, (key, _)) in old.into_iter().take(shape.public).enumerate() {
                client.write(id, dict, &key, None);
            }
        }
        Ok(())
    }

    fn lock_old(
        &mut self,
        client: &mut Client,
        id: TableId,
        old: &[(Bytes, Bytes)],
        claimed: &[usize],
        is_blocked: bool,
    ) -> Expected {
        let mut expected = Expected::Done;
        for dict in claimed.iter().copied() {
            match expected {
                Expected::Done => {
                    expected = self.lock_exclusively(client, id, dict, &old[dict].0, is_blocked);
                }
                // Perhaps the engine came as far as this.
                Expected::BlockedPerhaps => client.locks.add_perhaps(id, dict, &old[dict].0),
                _ => {}
            }
        }
        expected
    }
}
