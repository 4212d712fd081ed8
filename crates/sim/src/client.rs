//! Clients: each has a transaction open, in which it reads and writes. They are cooperative: one step at
//! a time, and a lock that another holds is an answer (no waiting, or for no time), never a wait.
//!
//! The model of a transaction: the state its snapshot saw, its own writes in order, and its locks.

use std::collections::BTreeSet;
use std::rc::Rc;

use pandodb::{Error, LockMode, LockWait, LockedRead, Mark, Txn};
use rand::seq::IndexedRandom;
use rand::Rng;

use crate::load::Loading;
use crate::locks::{Held, Locks};
use crate::model::{Bytes, Layout, State, TableId, TableState, Write, NO_LAYOUT};
use crate::scan::HeldCursor;
use crate::world::{ensure, note, Check, Kept, OpenTable, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadCommitted,
    RepeatableRead,
}

/// The client that mostly reads, so that its snapshots become old.
const READER: usize = 0;

/// What it does.
const READS: std::ops::Range<i32> = 380..720;

pub(crate) struct Client {
    /// Before the transaction: a cursor may hold what the transaction's end frees.
    pub cursor: Option<HeldCursor>,
    /// A bulk load under way: until it ends, nothing else is done.
    pub load: Option<Loading>,
    pub txn: Txn,
    pub isolation: Isolation,
    /// Its locking scans keep others from inserting.
    pub takes_gaps: bool,
    pub snapshot: Option<Rc<State>>,
    pub writes: Vec<Write>,
    pub counters: Vec<(TableId, u64)>,
    savepoints: Vec<(Mark, usize)>,
    pub locks: Locks,
    pub touched: BTreeSet<TableId>,
    /// The number it was prepared under: it can only be resolved then.
    pub prepared: Option<u64>,
}

impl Client {
    /// The newest own write of a key.
    pub(crate) fn own(&self, table: TableId, dict: usize, key: &[u8]) -> Option<Option<Bytes>> {
        let mut writes = self.writes.iter().rev();
        let found = writes.find(|w| w.table == table && w.dict == dict && *w.key == *key);
        found.map(|write| write.value.clone())
    }

    /// What a read under a lock gives: the own value, else the newest committed one.
    pub(crate) fn newest(&self, state: &State, table: TableId, dict: usize, key: &[u8]) -> Option<Bytes> {
        self.own(table, dict, key).unwrap_or_else(|| state.value(table, dict, key))
    }

    pub(crate) fn write(&mut self, table: TableId, dict: usize, key: &Bytes, value: Option<Bytes>) {
        self.touched.insert(table);
        self.writes.push(Write { table, dict, key: key.clone(), value });
    }

    /// A counter is kept for the rows that use it: without any, it need not be.
    pub(crate) fn drop_unused_counters(&mut self) {
        let is_used = |table| self.writes.iter().any(|write| write.table == table && write.dict == 0);
        self.counters.retain(|(table, _)| is_used(*table));
    }

    /// Whether the transaction has something to do with a table's content, beside its snapshot.
    pub(crate) fn uses(&self, table: TableId) -> bool {
        self.writes.iter().any(|write| write.table == table)
            || self.counters.iter().any(|(id, _)| *id == table)
            || self.locks.uses(table)
            || self.touched.contains(&table)
            || self.load.as_ref().is_some_and(|load| load.table() == table)
            || self.cursor.as_ref().is_some_and(|cursor| cursor.table() == table)
    }
}

/// A key for people.
pub(crate) fn text(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

impl World {
    /// Does a few things with the transaction of a client.
    pub(crate) fn client_step(&mut self) -> Check {
        let slot = self.rng.random_range(0..self.clients.len());
        let mut client = match self.clients[slot].take() {
            Some(client) => client,
            None => self.begin(),
        };
        note!(self, "client {slot} (transaction {}):", client.txn.id().0);
        for _ in 0..self.rng.random_range(1..7) {
            self.met_trouble = false;
            if !self.statement(&mut client, slot == READER)? {
                return Ok(());
            }
            if self.met_trouble {
                // It may hold locks that the model does not know of, or the other way round.
                return self.rollback(&mut client);
            }
            self.end_statement(&mut client);
        }
        self.clients[slot] = Some(client);
        Ok(())
    }

    /// One statement; false if it was the transaction's last.
    fn statement(&mut self, client: &mut Client, is_reader: bool) -> Check<bool> {
        if client.prepared.is_some() {
            return self.resolve(client);
        }
        if let Some(loading) = client.load.take() {
            self.go_on_loading(client, loading)?;
            return Ok(true);
        }
        if self.has_empty_table() && self.rng.random_ratio(1, 6) {
            self.begin_load(client)?;
            return Ok(true);
        }
        let mut choice = self.rng.random_range(0..1000);
        if is_reader && self.rng.random_ratio(9, 10) {
            choice = self.rng.random_range(READS);
        }
        match choice {
            0..=299 => self.write(client, 1)?,
            300..=379 => {
                let burst = self.rng.random_range(10..80);
                self.write(client, burst)?;
            }
            380..=489 => self.get(client)?,
            490..=559 => self.get_locked(client)?,
            560..=639 => self.scan(client)?,
            640..=719 => self.held_cursor(client)?,
            720..=764 => self.savepoint(client),
            765..=779 => self.release_savepoint(client),
            780..=819 => self.rollback_to_savepoint(client)?,
            820..=834 => self.raise_counter(client)?,
            835..=839 => self.begin_load(client)?,
            840..=869 => self.prepare(client)?,
            870..=969 => {
                self.commit(client)?;
                return Ok(false);
            }
            _ => {
                self.rollback(client)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin(&mut self) -> Client {
        let mut txn = self.db.begin();
        txn.set_lock_wait(std::time::Duration::ZERO);
        let read_committed = self.rng.random_ratio(1, 3);
        let takes_gaps = !read_committed && self.rng.random_ratio(3, 4);
        txn.set_takes_gaps(takes_gaps);
        Client {
            cursor: None,
            load: None,
            txn,
            isolation: if read_committed { Isolation::ReadCommitted } else { Isolation::RepeatableRead },
            takes_gaps,
            snapshot: None,
            writes: Vec::new(),
            counters: Vec::new(),
            savepoints: Vec::new(),
            locks: Locks::default(),
            touched: BTreeSet::new(),
            prepared: None,
        }
    }

    /// READ COMMITTED gives its snapshot back after each statement.
    fn end_statement(&mut self, client: &mut Client) {
        if client.isolation == Isolation::ReadCommitted {
            client.txn.close_snapshot();
            client.snapshot = None;
        }
    }

    /// The state that a consistent read sees.
    pub(crate) fn snapshot_of(&mut self, client: &mut Client) -> Rc<State> {
        let current = self.current().clone();
        client.txn.open_snapshot();
        client.snapshot.get_or_insert(current).clone()
    }

    pub(crate) fn some_key(&mut self, keys: u32) -> Bytes {
        let n = self.rng.random_range(0..keys);
        format!("{n:06}").into_bytes().into()
    }

    pub(crate) fn some_value(&mut self) -> Bytes {
        let len = if self.rng.random_ratio(1, 150) { 3000 } else { self.rng.random_range(0..50) };
        self.serial += 1;
        let mut value = vec![NO_LAYOUT];
        value.extend_from_slice(&self.serial.to_le_bytes());
        value.resize(9 + len, self.rng.random_range(b'a'..=b'z'));
        value.into()
    }

    /// So many writes to one table, with keys here and there or in a row.
    fn write(&mut self, client: &mut Client, count: u32) -> Check {
        match self.some_table()? {
            Some(open) => self.write_to(client, open, count),
            None => Ok(()),
        }
    }

    /// A transaction of some writes to one table.
    pub(crate) fn commit_some(&mut self, open: OpenTable) -> Check {
        let mut client = self.begin();
        note!(self, "a transaction ({}):", client.txn.id().0);
        self.met_trouble = false;
        let count = self.rng.random_range(20..120);
        self.write_to(&mut client, open, count)?;
        match self.met_trouble {
            true => self.rollback(&mut client),
            false => self.commit(&mut client),
        }
    }

    /// A transaction that deletes a range of a table without other keys.
    pub(crate) fn delete_range(&mut self) -> Check {
        let is_alone = |(id, table): (&TableId, &Rc<TableState>)| (table.dicts.len() == 1).then_some(*id);
        let tables: Vec<TableId> = self.current().tables.iter().filter_map(is_alone).collect();
        let Some(id) = tables.choose(&mut self.rng) else { return Ok(()) };
        let Some((id, state, table)) = self.open_table(*id)? else { return Ok(()) };
        let (a, b) = (self.some_key(state.keys), self.some_key(state.keys));
        let (lo, hi) = (a.clone().min(b.clone()), self.rng.random_ratio(7, 8).then(|| a.max(b)));
        let mut client = self.begin();
        let result = client.txn.delete_range(&table, &lo, hi.as_deref());
        let Some(deleted) = self.settle("deleting a range", result)? else { return Ok(()) };
        note!(self, "{id}: {:?} to {:?} deleted: {deleted:?}", text(&lo), hi.as_deref().map(text));
        let Some(deleted) = deleted else { return Ok(()) };
        let is_inside = |key: &&Bytes| ***key >= *lo && hi.as_ref().is_none_or(|hi| ***key < **hi);
        let keys: Vec<Bytes> = state.dicts[0].keys().filter(is_inside).cloned().collect();
        ensure!(deleted == keys.len() as u64, "{deleted} rows were deleted, not {}", keys.len());
        keys.iter().for_each(|key| client.write(id, 0, key, None));
        self.counts.ranges_deleted += 1;
        match self.rng.random_ratio(1, 8) {
            true => self.rollback(&mut client),
            false => self.commit(&mut client),
        }
    }

    fn write_to(&mut self, client: &mut Client, (id, state, table): OpenTable, count: u32) -> Check {
        if state.layout == Layout::Rows {
            return (0..count).try_for_each(|_| self.write_row(client, id, &state, &table));
        }
        let in_a_row = self.rng.random_ratio(1, 4).then(|| self.rng.random_range(0..state.keys));
        for n in 0..count {
            let key = match in_a_row {
                Some(first) => format!("{:06}", first + n).into_bytes().into(),
                None => self.some_key(state.keys),
            };
            let dict = self.rng.random_range(0..state.dicts.len());
            let value = (!self.rng.random_ratio(1, 4)).then(|| self.some_value());
            note!(
                self,
                "  write {id}.{dict} {}: {:?} #{}",
                text(&key),
                value.as_ref().map(|v| v.len()),
                self.serial
            );
            let result = match &value {
                Some(value) => client.txn.put(&table, dict, &key, value, LockWait::NoWait),
                None => client.txn.delete(&table, dict, &key, LockWait::NoWait),
            };
            let held = self.held_by_other(&(id, dict, key.clone()), LockMode::Exclusive);
            let is_kept_out = value.is_some() && self.is_kept_out(client, id, dict, &key);
            match result {
                Ok(()) => {
                    ensure!(held != Held::Yes, "a key that another has locked was written: {key:?}");
                    ensure!(!is_kept_out, "{key:?} was inserted into {id}.{dict}, where another has a gap");
                    client.locks.add(id, dict, &key, LockMode::Exclusive);
                    client.write(id, dict, &key, value);
                }
                Err(Error::WouldBlock) => {
                    ensure!(held != Held::No || is_kept_out, "the lock of a free key was refused: {key:?}");
                    self.counts.lock_conflicts += 1;
                    // The key is locked before gaps are asked for.
                    match held {
                        Held::No => client.locks.add(id, dict, &key, LockMode::Exclusive),
                        Held::Perhaps if is_kept_out => client.locks.add_perhaps(id, dict, &key),
                        _ => {}
                    }
                    if is_kept_out {
                        client.touched.insert(id);
                        self.counts.inserts_kept_out += 1;
                    }
                }
                Err(error) => return self.settle("a write", Err::<(), _>(error)).map(|_| ()),
            }
        }
        Ok(())
    }

    fn get(&mut self, client: &mut Client) -> Check {
        let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
        let latest = self.rng.random_ratio(1, 4);
        for _ in 0..self.rng.random_range(1..5) {
            let base = if latest { self.current().clone() } else { self.snapshot_of(client) };
            if !base.tables.contains_key(&id) {
                // Made after the snapshot: the server refuses that.
                return Ok(());
            }
            let dict = self.rng.random_range(0..state.dicts.len());
            if !base.has_same(self.current(), id, dict) {
                // Likewise an index.
                return Ok(());
            }
            let key = self.key_of(&state, dict);
            let expected = client.newest(&base, id, dict, &key);
            let got = if latest {
                client.txn.get_latest(&table, dict, &key)
            } else {
                client.txn.get(&table, dict, &key)
            };
            let Some(got) = self.settle("a get", got)? else { return Ok(()) };
            self.counts.gets += 1;
            ensure!(
                got.as_deref() == expected.as_deref(),
                "get of {id}.{dict} {key:?} (latest: {latest}): {got:?} and not {expected:?}"
            );
        }
        Ok(())
    }

    /// A key as they are in a dictionary of this table.
    pub(crate) fn key_of(&mut self, state: &crate::model::TableState, dict: usize) -> Bytes {
        let there = &state.dicts[dict];
        if there.is_empty() || (state.layout != Layout::Rows && self.rng.random()) {
            return self.some_key(state.keys);
        }
        let n = self.rng.random_range(0..there.len());
        there.keys().nth(n).cloned().expect("n is below the number of keys")
    }

    fn get_locked(&mut self, client: &mut Client) -> Check {
        let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
        // Entries of an index that is not unique are locked by those who look for them, and nobody else.
        let dict = match state.layout {
            Layout::Rows => {
                let added = state.added.filter(|added| added.is_unique).map(|_| 3);
                let unique: Vec<usize> = [0, 2].into_iter().chain(added).collect();
                unique[self.rng.random_range(0..unique.len())]
            }
            Layout::Maps(dicts) => self.rng.random_range(0..dicts),
        };
        let key = self.key_of(&state, dict);
        let mode = if self.rng.random() { LockMode::Exclusive } else { LockMode::Shared };
        let skip = self.rng.random();
        let wait = if skip { LockWait::SkipLocked } else { LockWait::NoWait };
        let place = (id, dict, key.clone());
        let held = self.held_by_other(&place, mode);
        let expected = client.newest(self.current(), id, dict, &key);
        let before = client.locks.mode(&place);
        note!(self, "  locked get {id}.{dict} {} {mode}", text(&key));
        match client.txn.get_locked(&table, dict, &key, mode, wait) {
            Ok(LockedRead::Skipped) if skip && held != Held::No => self.counts.lock_conflicts += 1,
            Err(Error::WouldBlock) if !skip && held != Held::No => self.counts.lock_conflicts += 1,
            Ok(LockedRead::Skipped) | Err(Error::WouldBlock) => {
                return Err(format!("a locked get of {key:?} was refused, held by another: {held:?}"));
            }
            Ok(read) => {
                ensure!(held != Held::Yes, "a lock on {key:?} was granted that another holds");
                let got = if let LockedRead::Row(value) = read { Some(value) } else { None };
                ensure!(
                    got.as_deref() == expected.as_deref(),
                    "locked get of {id}.{dict} {key:?}: {got:?} and not {expected:?}"
                );
                client.locks.add(id, dict, &key, mode);
                self.counts.gets += 1;
                let gives_back = client.isolation == Isolation::ReadCommitted && self.rng.random();
                let is_new = client.txn.just_locked() && client.own(id, dict, &key).is_none();
                // Without gaps the lock of a key that is not there is given back at once.
                let is_given_back = is_new && expected.is_none() && !client.takes_gaps;
                if is_new && gives_back && !is_given_back {
                    client.txn.unlock(&table, dict, &key);
                }
                if is_new && (gives_back || is_given_back) {
                    client.locks.set_back(place, before);
                }
            }
            Err(error) => _ = self.settle("a locked get", Err::<(), _>(error))?,
        }
        Ok(())
    }

    fn savepoint(&mut self, client: &mut Client) {
        note!(self, "  savepoint after {} writes", client.writes.len());
        client.savepoints.push((client.txn.mark(), client.writes.len()));
    }

    fn release_savepoint(&mut self, client: &mut Client) {
        if let Some((mark, writes)) = client.savepoints.pop() {
            note!(self, "  gives up the savepoint after {writes} writes");
            client.txn.release_mark(mark);
        }
    }

    fn rollback_to_savepoint(&mut self, client: &mut Client) -> Check {
        if client.savepoints.is_empty() {
            return Ok(());
        }
        client.cursor = None;
        let keep = self.rng.random_range(0..client.savepoints.len());
        let (mark, writes) = client.savepoints[keep];
        note!(self, "  rollback from {} to {writes} writes", client.writes.len());
        client.savepoints.truncate(keep + 1);
        let ios = self.disk.io_count();
        client.txn.rollback_to(mark).map_err(|error| error.to_string())?;
        ensure!(self.disk.io_count() == ios, "a rollback to a savepoint reads or writes (I6)");
        client.writes.truncate(writes);
        self.counts.rollbacks_to_savepoint += 1;
        Ok(())
    }

    fn raise_counter(&mut self, client: &mut Client) -> Check {
        let Some((id, state, table)) = self.some_table()? else { return Ok(()) };
        let next = state.counter + self.rng.random_range(1..10);
        client.txn.raise_auto_increment(&table, next).map_err(|e| format!("counter of {id}: {e}"))?;
        note!(self, "  counter of {id} to {next}");
        client.touched.insert(id);
        client.counters.push((id, next));
        Ok(())
    }

    fn commit(&mut self, client: &mut Client) -> Check {
        client.cursor = None;
        client.drop_unused_counters();
        let is_empty = client.writes.is_empty();
        let after = Rc::new(self.current().after(&client.writes, &client.counters));
        note!(self, "  commit of {} writes", client.writes.len());
        if !is_empty {
            self.in_flight = Some(after.clone());
        }
        let result = client.txn.commit();
        if is_empty {
            // Nothing is logged, and nothing has changed.
            return self.settle("a commit", result).map(|_| ());
        }
        let done = self.came_back("a commit", result, after, Kept::Mode(self.mode))?;
        self.counts.commits += u64::from(done);
        Ok(())
    }

    fn rollback(&mut self, client: &mut Client) -> Check {
        client.cursor = None;
        client.load = None;
        note!(self, "  rollback of {} writes", client.writes.len());
        let ios = self.disk.io_count();
        client.txn.rollback();
        ensure!(self.disk.io_count() == ios, "a rollback reads or writes (I6)");
        self.counts.rollbacks += 1;
        Ok(())
    }
}
