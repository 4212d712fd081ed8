//! Bulk loads: many rows into an empty table, or beside what is in one. A client's load takes several steps: it begins, hands over
//! batches, ends; others work meanwhile, crashes and faults come. Then the rows are writes of its transaction
//! like others, and until then nobody sees any of them. Some loads beside others are asked for each row before it joins.

use std::collections::BTreeMap;

use pandodb::{Admission, BulkLoad, Entries, Error, LoadEnd, LockMode, Notes, RowEncoder};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::Rng;

use crate::client::Client;
use crate::locks::Held;
use crate::model::{Bytes, Layout, Row, TableId, TableState};
use crate::world::{ensure, note, Check, OpenTable, World};

/// What the encoder refuses rows with.
const REFUSAL: i32 = 77;

/// The entries of a row, one for each dictionary.
type Entered = Vec<(Bytes, Bytes)>;

/// Hands over entries as they come; without any it refuses.
pub(crate) struct Encoder;

impl RowEncoder for Encoder {
    type Batch = Vec<Vec<(Vec<u8>, Vec<u8>)>>;

    fn encode(&self, batch: Self::Batch, entries: &mut [Entries]) -> Result<(), i32> {
        if batch.is_empty() {
            return Err(REFUSAL);
        }
        for row in batch {
            row.iter().zip(&mut *entries).for_each(|((key, value), entries)| entries.push(key, value));
        }
        Ok(())
    }
}

/// What a load does about others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It locks the table as a whole.
    Alone,
    /// It locks nothing before its end.
    Beside,
    /// It locks the keys of each row before that joins.
    ByRow,
}

/// A load under way.
pub(crate) struct Loading {
    load: BulkLoad<Encoder>,
    table: TableId,
    unique: Vec<bool>,
    /// Handed over.
    rows: Vec<Entered>,
    /// To come.
    rest: Vec<Entered>,
    is_refused: bool,
    way: Way,
    /// Faults before it ([`World::faults_so_far`]). One while it is under way its end may tell: who adds rows to another load may have this one
    /// hand on what it has.
    faults: Option<u64>,
}

impl Loading {
    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    /// The first row, in their order, with a key that an earlier one has, and of its keys the first.
    fn duplicate(&self) -> Option<LoadEnd> {
        let mut seen: Vec<BTreeMap<&Bytes, &Bytes>> = vec![BTreeMap::new(); self.unique.len()];
        for row in &self.rows {
            for (index, (key, value)) in row.iter().enumerate().filter(|(index, _)| self.unique[*index]) {
                if let Some(existing) = seen[index].insert(key, value) {
                    let (key, value) = (key.to_vec(), value.to_vec());
                    return Some(LoadEnd::Duplicate { index, key, value, existing: existing.to_vec() });
                }
            }
        }
        None
    }
}

impl World {
    fn empty_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        let tables = self.current().tables.iter();
        tables.filter(|(_, table)| table.dicts.iter().all(|dict| dict.is_empty())).map(|(id, _)| *id)
    }

    pub(crate) fn has_empty_table(&self) -> bool {
        self.empty_tables().next().is_some()
    }

    /// Most often one that can be loaded.
    fn table_to_load(&mut self) -> Check<Option<OpenTable>> {
        let empty: Vec<TableId> = self.empty_tables().collect();
        match empty.choose(&mut self.rng) {
            Some(id) if self.rng.random_ratio(5, 6) => self.open_table(*id),
            _ => self.some_table(),
        }
    }

    /// Begins a load of some table: if it is empty and nobody else is at work in it, or beside others.
    pub(crate) fn begin_load(&mut self, client: &mut Client) -> Check {
        let Some((id, state, table)) = self.table_to_load()? else { return Ok(()) };
        let way = *[Way::Alone, Way::Beside, Way::ByRow].choose(&mut self.rng).expect("there are three");
        let dicts = state.dicts.len();
        let unique: Vec<bool> = match state.layout {
            Layout::Maps(_) => vec![true; dicts],
            Layout::Rows => self.unique_keys(id, &state),
        };
        let is_built = self.builds(id).is_some();
        let is_empty = state.dicts.iter().all(|dict| dict.is_empty());
        let is_written = client.writes.iter().any(|write| write.table == id);
        let others = self.others_at_work(id);
        note!(self, "  begins a load of {id}: {way:?}");
        self.db.set_load_memory(self.rng.random_range(1..64) << 10);
        let load = if way != Way::Alone {
            let begun = match way {
                Way::ByRow => client.txn.begin_load_by_row(&table, &unique[..dicts], Encoder),
                _ => client.txn.begin_load_beside(&table, &unique[..dicts], Encoder),
            };
            let begun = begun.map_err(|error| format!("beginning a load: {error}"))?;
            ensure!(begun.is_some() != (is_built || is_written), "a load beside others in {id}: {begun:?}");
            let Some(load) = begun else { return Ok(()) };
            load
        } else {
            let begun = client.txn.begin_load(&table, &unique[..dicts], Encoder);
            let Some(begun) = self.settle("beginning a load", begun)? else { return Ok(()) };
            // An empty one was locked before it was looked at again, and the lock stays.
            if is_empty && !is_written && !is_built && others != Some(true) {
                client.locks.add_whole(id, others == Some(false) || begun.is_some());
            }
            let Some(load) = begun else {
                ensure!(
                    is_built || !is_empty || is_written || others != Some(false),
                    "a load of the empty table {id} was refused"
                );
                return Ok(());
            };
            ensure!(!is_built && is_empty && !is_written && others != Some(true), "a load of {id} has begun");
            load
        };
        client.touched.insert(id);
        let rest = self.rows_to_load(id, &state, way);
        let unique = unique[..dicts].to_vec();
        client.load = Some(Loading {
            load,
            table: id,
            unique,
            rows: Vec::new(),
            rest,
            is_refused: false,
            way,
            faults: (!self.is_faulty).then(|| self.faults_so_far()),
        });
        Ok(())
    }

    fn faults_so_far(&self) -> u64 {
        self.counts.faults + self.counts.disks_filled
    }

    fn rows_to_load(&mut self, id: TableId, state: &TableState, way: Way) -> Vec<Entered> {
        let count = self.rng.random_range(1..300);
        let space = count.max(state.keys);
        // Beside rows that are there, often behind them: a load that is not asked would not be one otherwise.
        let behind = [0, 4, 2][way as usize];
        let from = match self.rng.random_ratio(behind, 5) {
            true => self.rng.random_range(space..4 * space),
            false => 0,
        };
        let mut columns: Vec<Vec<u32>> =
            (0..state.dicts.len().max(2)).map(|_| (from..from + space).collect()).collect();
        let ascends: bool = self.rng.random();
        columns.iter_mut().skip(usize::from(ascends)).for_each(|column| column.shuffle(&mut self.rng));
        if self.rng.random_ratio(1, 4) {
            // Some key twice.
            let (from, to) = (self.rng.random_range(0..count), self.rng.random_range(0..count));
            let column = self.rng.random_range(0..columns.len());
            columns[column][to as usize] = columns[column][from as usize];
        }
        let key = |number: u32| Bytes::from(format!("{number:06}").into_bytes());
        let row = |n: usize| match state.layout {
            Layout::Rows => {
                let filler = self.some_value().to_vec();
                let (pk, a) = (key(columns[0][n]), self.rng.random_range(0..4));
                Row { pk, a, u: columns[1][n], filler }.entries(self.added_of(id, state))
            }
            Layout::Maps(dicts) => {
                (0..dicts).map(|dict| (key(columns[dict][n]), self.some_value())).collect()
            }
        };
        (0..count as usize).map(row).collect()
    }

    /// The next step of a load.
    pub(crate) fn go_on_loading(&mut self, client: &mut Client, mut loading: Loading) -> Check {
        match self.rng.random_range(0..20) {
            0 => {
                note!(self, "  gives up the load of {}", loading.table);
                return Ok(());
            }
            1 if loading.rest.is_empty() => {
                loading.is_refused = true;
                loading.load.submit(Vec::new(), 0, 1);
            }
            2..=11 if !loading.rest.is_empty() => {
                self.hand_over(client, &mut loading)?;
                if self.rng.random_ratio(1, 3) {
                    client.load = Some(loading);
                    return Ok(());
                }
            }
            _ => {}
        }
        while !loading.rest.is_empty() {
            self.hand_over(client, &mut loading)?;
        }
        self.end_load(client, loading)
    }

    fn hand_over(&mut self, client: &mut Client, loading: &mut Loading) -> Check {
        let count = self.rng.random_range(1..80).min(loading.rest.len());
        let mut rows: Vec<Entered> = loading.rest.drain(..count).collect();
        if loading.way == Way::ByRow {
            rows = self.ask_for_rows(client, loading, rows)?;
        }
        if rows.is_empty() {
            return Ok(());
        }
        let copy = |row: &Entered| row.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        loading.load.submit(rows.iter().map(copy).collect(), rows.len() as u64, 64 * rows.len() as u64);
        loading.rows.extend(rows);
        Ok(())
    }

    /// Those that join.
    fn ask_for_rows(
        &mut self,
        client: &mut Client,
        loading: &mut Loading,
        rows: Vec<Entered>,
    ) -> Check<Vec<Entered>> {
        let id = loading.table;
        let unique: Vec<usize> = (0..loading.unique.len()).filter(|dict| loading.unique[*dict]).collect();
        let mut joined: Vec<Entered> = Vec::new();
        for row in rows {
            let keys = unique.iter().map(|dict| (*dict, &*row[*dict].0));
            let answer = client.txn.admit_to_load(&mut loading.load, keys, Notes::All);
            if let Err(error @ Error::Engine(_)) = answer {
                self.settle("asking for a row", Err::<(), _>(error))?;
                continue;
            }
            let is_blocked = matches!(answer, Err(Error::LockTimeout));
            let has_seen =
                |dict: usize| loading.rows.iter().chain(&joined).any(|other| other[dict].0 == row[dict].0);
            let expected = self.claim_for_load(client, id, &row, &unique, has_seen, is_blocked);
            match (answer, expected) {
                (Ok(Admission::New), Some(None)) => joined.push(row),
                // The rest would go one by one.
                (Ok(Admission::Full), Some(None)) => {
                    loading.rest.clear();
                    break;
                }
                (Ok(Admission::Seen(position)), Some(Some(expected))) if position == expected => {
                    self.counts.duplicates += 1;
                }
                (Err(Error::LockTimeout), None) => self.counts.lock_conflicts += 1,
                (answer, expected) => {
                    return Err(format!("a load was asked for a row: {answer:?} and not {expected:?}"));
                }
            }
        }
        Ok(joined)
    }

    fn end_load(&mut self, client: &mut Client, loading: Loading) -> Check {
        let id = loading.table;
        note!(self, "  ends the load of {id} with {} rows", loading.rows.len());
        let expected = match loading.is_refused {
            true => Some(LoadEnd::Refused(REFUSAL)),
            false => loading.duplicate(),
        };
        if loading.way == Way::Beside {
            return self.end_load_beside(client, loading, expected);
        }
        let (is_kept_out, _) = self.obstacles(&loading);
        let ended = client.txn.finish_load(loading.load, &mut |_| true);
        match (ended, expected) {
            (Ok(end), Some(expected)) => {
                ensure!(end == expected, "a load ended with {end:?} and not {expected:?}");
                self.counts.duplicates += 1;
            }
            (Ok(LoadEnd::Loaded), None) => {
                ensure!(!is_kept_out, "a load ended though others hold gaps in {id}");
                match loading.way {
                    Way::ByRow => self.counts.loads_by_row += 1,
                    _ => self.counts.loads += 1,
                }
                for row in loading.rows {
                    for (dict, (key, value)) in row.into_iter().enumerate() {
                        client.write(id, dict, &key, Some(value));
                    }
                }
            }
            (Err(Error::LockTimeout), None) if is_kept_out => self.counts.inserts_kept_out += 1,
            (Err(Error::Engine(error)), _) if loading.faults != Some(self.faults_so_far()) => {
                note!(self, "  refused: {error}");
                self.met_trouble = true;
            }
            (Err(error @ Error::Engine(_)), _) => _ = self.settle("a load", Err::<(), _>(error))?,
            (ended, expected) => return Err(format!("a load ended with {ended:?} and not {expected:?}")),
        }
        Ok(())
    }

    /// `expected`: what its own rows and its encoder make of it.
    fn end_load_beside(&mut self, client: &mut Client, loading: Loading, expected: Option<LoadEnd>) -> Check {
        let id = loading.table;
        let (is_kept_out, held) = self.obstacles(&loading);
        let is_own = expected.is_some();
        let expected = expected.or_else(|| self.least_existing(&loading));
        let ended = client.txn.finish_load(loading.load, &mut |_| true);
        // All keys between are locked, or those up to an obstacle.
        if !is_own {
            client.locks.add_whole(id, false);
        }
        let is_sure = is_kept_out || held == Held::Yes;
        match (ended, expected) {
            (Err(Error::LockTimeout), _) if !is_own && (is_sure || held == Held::Perhaps) => {
                self.counts.inserts_kept_out += u64::from(is_kept_out);
            }
            (Ok(end), Some(expected)) if is_own || !is_sure => {
                ensure!(end == expected, "a load ended with {end:?} and not {expected:?}");
                self.counts.duplicates += 1;
            }
            (Ok(LoadEnd::Loaded), None) if !is_sure => {
                self.counts.loads_beside += 1;
                for row in loading.rows {
                    for (dict, (key, value)) in row.into_iter().enumerate() {
                        if loading.unique[dict] {
                            client.locks.add(id, dict, &key, LockMode::Exclusive);
                        }
                        client.write(id, dict, &key, Some(value));
                    }
                }
            }
            (Err(Error::Engine(error)), _) if loading.faults != Some(self.faults_so_far()) => {
                note!(self, "  refused: {error}");
                self.met_trouble = true;
            }
            (Err(error @ Error::Engine(_)), _) => _ = self.settle("a load", Err::<(), _>(error))?,
            (ended, expected) => {
                return Err(format!(
                    "a load ended with {ended:?} and not {expected:?}, gaps {is_kept_out}, keys {held:?}"
                ))
            }
        }
        Ok(())
    }

    /// Whether a gap of others is around one of the keys, and whether others hold one that must be alone.
    fn obstacles(&self, loading: &Loading) -> (bool, Held) {
        let id = loading.table;
        let (mut is_kept_out, mut most) = (false, Held::No);
        for (dict, (key, _)) in loading.rows.iter().flat_map(|row| row.iter().enumerate()) {
            is_kept_out |= self.is_in_gap_of_others(id, dict, key);
            if loading.unique[dict] {
                most = most.max(self.held_by_other(&(id, dict, key.clone()), LockMode::Exclusive));
            }
        }
        (is_kept_out, most)
    }

    /// Of the keys that the table has already, the least of the first dictionary.
    fn least_existing(&self, loading: &Loading) -> Option<LoadEnd> {
        (0..loading.unique.len()).filter(|index| loading.unique[*index]).find_map(|index| {
            let entries = loading.rows.iter().map(|row| &row[index]);
            let there = entries.filter_map(|(key, value)| {
                let existing = self.current().value(loading.table, index, key)?;
                Some((key.to_vec(), value.to_vec(), existing.to_vec()))
            });
            let (key, value, existing) = there.min()?;
            Some(LoadEnd::Duplicate { index, key, value, existing })
        })
    }

    fn added_of(&self, id: TableId, state: &TableState) -> Option<bool> {
        state.added.map(|added| added.is_unique).or_else(|| self.builds(id))
    }
}
