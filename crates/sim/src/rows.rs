//! Writes of whole rows: unique keys are claimed, indexes kept in step.

use std::sync::Arc;

use pandodb::{Entry, Error, LockMode, LockWait, LockedRead, Table};
use rand::Rng;

use crate::client::Client;
use crate::model::{Bytes, Row, TableId, TableState, UNIQUE};
use crate::world::{ensure, note, Check, World};

/// What the engine should answer.
#[derive(Debug, PartialEq)]
enum Expected {
    Done,
    Blocked,
    Duplicate(usize, Bytes),
}

fn entries(row: &[(Bytes, Bytes); 3]) -> Vec<Entry<'_>> {
    row.iter().zip(UNIQUE).map(|((key, value), unique)| Entry { key, value, unique }).collect()
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

    fn some_row(&mut self, state: &TableState, pk: Bytes) -> Row {
        // Twice as many unique values as rows: duplicates happen, and are not the rule.
        let u = self.rng.random_range(0..2 * state.keys);
        Row { pk, a: self.rng.random_range(0..4), u, filler: self.some_value().to_vec() }
    }

    /// Locks a key for the model as the engine claims it: what was locked before an answer stays locked.
    fn claim(&mut self, client: &mut Client, id: TableId, dict: usize, key: &Bytes) -> Expected {
        if self.is_held_by_other(&(id, dict, key.clone()), LockMode::Exclusive) {
            return Expected::Blocked;
        }
        client.lock(id, dict, key, LockMode::Exclusive);
        match client.newest(self.current(), id, dict, key) {
            Some(existing) => Expected::Duplicate(dict, existing),
            None => Expected::Done,
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
        let row = self.some_row(state, pk).entries();
        note!(self, "  insert row {id} {:?} with {:?}", row[0].0, row[2].0);
        let result = client.txn.insert_row(table, &entries(&row));
        let mut expected = Expected::Done;
        for dict in [0, 2] {
            if expected == Expected::Done {
                expected = self.claim(client, id, dict, &row[dict].0);
            }
        }
        if self.answered("an insert", result, expected)? {
            for (dict, (key, value)) in row.into_iter().enumerate() {
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
        let is_held = self.is_held_by_other(&(id, 0, pk.clone()), LockMode::Exclusive);
        let expected = client.newest(self.current(), id, 0, &pk);
        let read = client.txn.get_locked(table, 0, &pk, LockMode::Exclusive, LockWait::NoWait);
        let value = match read {
            Err(Error::WouldBlock) => {
                ensure!(is_held, "the lock of a free row was refused: {pk:?}");
                self.counts.lock_conflicts += 1;
                return Ok(());
            }
            Ok(LockedRead::Row(value)) => value,
            Ok(read) => return Err(format!("a row that is there is not found: {pk:?} {read:?}")),
            Err(error) => return self.settle("a locked get", Err::<(), _>(error)).map(|_| ()),
        };
        ensure!(!is_held, "the lock of a row was granted that another holds: {pk:?}");
        ensure!(Some(&value[..]) == expected.as_deref(), "row {pk:?}: {value:?} and not {expected:?}");
        client.lock(id, 0, &pk, LockMode::Exclusive);
        let old = Row::decode(&pk, &value).ok_or_else(|| format!("row {pk:?} is {value:?}"))?;
        // 2. Delete it, or change some of it, perhaps its key.
        if self.rng.random_ratio(1, 3) {
            return self.delete_row(client, id, table, &old);
        }
        let mut new = old.clone();
        let other = self.some_row(state, pk);
        match self.rng.random_range(0..4) {
            0 => new.a = other.a,
            1 => new.u = other.u,
            2 => new.filler = other.filler,
            _ => new.pk = self.some_key(state.keys),
        }
        self.update_row(client, id, table, &old, &new)
    }

    fn update_row(&mut self, client: &mut Client, id: TableId, table: &Table, old: &Row, new: &Row) -> Check {
        let (old, new) = (old.entries(), new.entries());
        note!(self, "  update row {id} {:?} to {:?} with {:?}", old[0].0, new[0].0, new[2].0);
        let result = client.txn.update_row(table, &entries(&old), &entries(&new));
        let mut expected = self.lock_old(client, id, &old);
        for dict in [0, 2] {
            if expected == Expected::Done && old[dict].0 != new[dict].0 {
                expected = self.claim(client, id, dict, &new[dict].0);
            }
        }
        if self.answered("an update", result, expected)? {
            for (dict, (before, after)) in old.into_iter().zip(new).enumerate() {
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

    fn delete_row(&mut self, client: &mut Client, id: TableId, table: &Table, old: &Row) -> Check {
        let old = old.entries();
        note!(self, "  delete row {id} {:?}", old[0].0);
        let result = client.txn.delete_row(table, &entries(&old));
        let expected = self.lock_old(client, id, &old);
        if self.answered("a delete", result, expected)? {
            for (dict, (key, _)) in old.into_iter().enumerate() {
                client.write(id, dict, &key, None);
            }
        }
        Ok(())
    }

    fn lock_old(&mut self, client: &mut Client, id: TableId, old: &[(Bytes, Bytes); 3]) -> Expected {
        for dict in [0, 2] {
            let key = &old[dict].0;
            if self.is_held_by_other(&(id, dict, key.clone()), LockMode::Exclusive) {
                return Expected::Blocked;
            }
            client.lock(id, dict, key, LockMode::Exclusive);
        }
        Expected::Done
    }
}
