//! Looking at a whole database: does it hold a state of the model, and is it sound inside?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use pandodb::layout::Layouts;
use pandodb::{Db, ReadMode, Table, Txn, Vfs};

use crate::model::{Layout, Map, State, TableId};
use crate::setup;
use crate::world::{ensure, note, Check, World, NAMES};
use crate::xa;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// What a database shows: rows of each dictionary, and the counter, by the table's name; and more.
#[derive(Default)]
pub(crate) struct Observed {
    tables: BTreeMap<usize, (Vec<Rows>, u64)>,
    /// Their columns, as far as they are known.
    layouts: BTreeMap<usize, Arc<Layouts>>,
    /// Names of transactions that wait for their resolution.
    prepared: Vec<Vec<u8>>,
}

fn rows_of(db: &Arc<Db>, table: &Arc<Table>, dict: usize) -> pandodb::Result<Rows> {
    rows_in(&mut db.begin(), table, dict, ReadMode::Latest)
}

fn rows_in(txn: &mut Txn, table: &Arc<Table>, dict: usize, mode: ReadMode) -> pandodb::Result<Rows> {
    let mut cursor = txn.cursor(table, dict);
    cursor.seek_first(txn, mode)?;
    let mut rows = Vec::new();
    while cursor.valid() {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next(txn)?;
    }
    Ok(rows)
}

/// Reads everything. Errors: the engine's.
pub(crate) fn observe(db: &Arc<Db>) -> pandodb::Result<Observed> {
    let prepared = db.report_prepared(usize::MAX);
    let mut observed = Observed { prepared, ..Observed::default() };
    for (name, path) in NAMES.iter().enumerate().filter(|(_, path)| db.table_exists(path)) {
        let table = db.open_table(path)?;
        observed.layouts.extend(table.layouts().map(|layouts| (name, layouts.clone())));
        let dicts = (0..table.dicts().len()).map(|dict| rows_of(db, &table, dict));
        observed.tables.insert(name, (dicts.collect::<Result<_, _>>()?, table.auto_increment()));
    }
    Ok(observed)
}

/// What can be read of a state's tables; what gives an error is left out.
pub(crate) fn readable(db: &Arc<Db>, state: &State) -> Check<Vec<((TableId, usize), Rows)>> {
    let mut all = Vec::new();
    for (id, expected) in &state.tables {
        ensure!(db.table_exists(NAMES[expected.name]), "table {id} is gone");
        let Ok(table) = db.open_table(NAMES[expected.name]) else { continue };
        let dicts = (0..table.dicts().len()).filter_map(|dict| Some((dict, rows_of(db, &table, dict).ok()?)));
        all.extend(dicts.map(|(dict, rows)| ((*id, dict), rows)));
    }
    Ok(all)
}

pub(crate) fn is_same(rows: &Rows, expected: &Map) -> bool {
    rows.len() == expected.len()
        && rows.iter().zip(expected).all(|((key, value), (k, v))| **key == **k && **value == **v)
}

/// What is different from a state.
fn difference(observed: &Observed, state: &State) -> Option<String> {
    let prepared: BTreeSet<Vec<u8>> = state.prepared.keys().map(|number| xa::xid(*number)).collect();
    let told: BTreeSet<Vec<u8>> = observed.prepared.iter().cloned().collect();
    rows_differ(observed, state)
        .or_else(|| (told != prepared).then(|| format!("prepared are {told:?} and not {prepared:?}")))
}

fn rows_differ(observed: &Observed, state: &State) -> Option<String> {
    let names: Vec<usize> = state.tables.values().map(|table| table.name).collect();
    if let Some(name) = observed.tables.keys().find(|name| !names.contains(name)) {
        return Some(format!("there is a table {}", NAMES[*name]));
    }
    for (id, table) in &state.tables {
        let name = NAMES[table.name];
        let Some((dicts, _)) = observed.tables.get(&table.name) else {
            return Some(format!("there is no table {name} ({id})"));
        };
        if dicts.len() != table.dicts.len() {
            return Some(format!("{name} ({id}) has {} dictionaries", dicts.len()));
        }
        for (dict, (rows, expected)) in dicts.iter().zip(&table.dicts).enumerate() {
            if !is_same(rows, expected) {
                return Some(format!("{name} ({id}.{dict}): {}", first_difference(rows, expected)));
            }
        }
    }
    for (id, table) in &state.tables {
        let expected = table.definition.as_ref().map(|definition| &definition.layouts);
        let found = observed.layouts.get(&table.name).map(|layouts| &**layouts);
        if found != expected {
            return Some(format!(
                "the columns of {} ({id}) are {found:?} and not {expected:?}",
                NAMES[table.name]
            ));
        }
    }
    // Last, so that rows that are missing are told of first.
    for (id, table) in &state.tables {
        let (name, counter) =
            (NAMES[table.name], observed.tables.get(&table.name).map_or(0, |(_, counter)| *counter));
        if counter < table.counter {
            return Some(format!("the counter of {name} ({id}) is {counter}, below {}", table.counter));
        }
    }
    None
}

fn first_difference(rows: &Rows, expected: &Map) -> String {
    let found: BTreeMap<&[u8], &[u8]> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    for (key, value) in expected {
        match found.get(&key[..]) {
            None => return format!("{:?} is missing", text(key)),
            Some(other) if **other != **value => {
                return format!("{:?} has value {other:?} and not {value:?}", text(key));
            }
            Some(_) => {}
        }
    }
    let extra = found.keys().find(|key| !expected.contains_key(**key));
    match extra {
        Some(key) => format!("{:?} should not be there", text(key)),
        None => "keys out of order or twice".into(),
    }
}

/// The newest of the candidates that the database shows.
pub(crate) fn find(observed: &Observed, candidates: &[Rc<State>]) -> Check<usize> {
    let found = candidates.iter().rposition(|state| difference(observed, state).is_none());
    found.ok_or_else(|| {
        let all = candidates.iter().rev().take(3).enumerate();
        let all = all.filter_map(|(n, state)| Some(format!("[{n}] {}", difference(observed, state)?)));
        let all: Vec<String> = all.collect();
        format!("none of {} states that could be there: {}", candidates.len(), all.join("; "))
    })
}

/// As [`find`], of a database in which everything must be readable.
pub(crate) fn find_state(db: &Arc<Db>, candidates: &[Rc<State>]) -> Check<usize> {
    let observed = observe(db).map_err(|error| format!("reading after a start: {error}"))?;
    find(&observed, candidates)
}

/// Every block and the structure of every tree of a state.
pub(crate) fn verify(db: &Arc<Db>, state: &State) -> pandodb::Result<()> {
    for table in state.tables.values() {
        let open = db.open_table(NAMES[table.name])?;
        match table.layout {
            Layout::Rows => db.check_table(&open, &mut |_| true)?,
            Layout::Maps(_) => open.dicts().iter().try_for_each(|dict| dict.tree().verify())?,
        }
    }
    Ok(())
}

impl World {
    /// Everything readable, equal to the newest state, and sound.
    pub(crate) fn check_whole(&mut self) -> Check {
        note!(self, "check of everything");
        let observed = observe(&self.db);
        if let Some(observed) = self.settle("reading everything", observed)? {
            if let Some(difference) = rows_differ(&observed, self.current()) {
                return Err(format!("clients see something else: {difference}"));
            }
            self.check_definitions()?;
            self.counts.wholes += 1;
            self.check_prepared()?;
        }
        let verified = verify(&self.db, self.current());
        if self.settle("verifying everything", verified)?.is_none() {
            return Ok(());
        }
        (0..self.clients.len()).try_for_each(|slot| self.check_snapshot(slot))
    }

    /// What the snapshot of a client shows, beneath its own writes, of every dictionary.
    fn check_snapshot(&mut self, slot: usize) -> Check {
        let Some(mut client) = self.clients[slot].take() else { return Ok(()) };
        let snapshot = client.snapshot.clone().unwrap_or_default();
        for (id, state) in &snapshot.tables {
            // Only of tables that are still there, perhaps under another name.
            let Some(name) = self.current().tables.get(id).map(|table| table.name) else { continue };
            let opened = self.db.open_table(NAMES[name]).map_err(pandodb::Error::from);
            let Some(table) = self.settle("opening a table", opened)? else { continue };
            let same: Vec<usize> =
                (0..state.dicts.len()).filter(|dict| snapshot.has_same(self.current(), *id, *dict)).collect();
            for dict in same {
                let rows = rows_in(&mut client.txn, &table, dict, ReadMode::Snapshot);
                let Some(rows) = self.settle("reading a snapshot", rows)? else { continue };
                let expected = snapshot.view(*id, dict, &client.writes).into_iter().collect();
                if !is_same(&rows, &expected) {
                    let what = first_difference(&rows, &expected);
                    return Err(format!("the snapshot of client {slot} shows {id}.{dict} wrong: {what}"));
                }
                self.counts.rows_scanned += rows.len() as u64;
            }
        }
        self.clients[slot] = Some(client);
        Ok(())
    }

    fn used_bytes(&self) -> pandodb::Result<BTreeMap<(TableId, usize), u64>> {
        let mut used = BTreeMap::new();
        for (id, table) in &self.current().tables {
            let open = self.db.open_table(NAMES[table.name])?;
            used.extend(open.dicts().iter().enumerate().map(|(n, dict)| ((*id, n), dict.used_bytes())));
        }
        Ok(used)
    }

    /// Without work to do, the space in use is what the tree refers to, which a new start finds out; no
    /// file is left over; and the log is short.
    pub(crate) fn check_space(&mut self) -> Check {
        if self.is_faulty {
            return Ok(());
        }
        note!(self, "check of space");
        self.clients.iter_mut().for_each(|slot| *slot = None);
        self.end_workers()?;
        self.build = None;
        self.resolve_all()?;
        let trouble = |error: &dyn std::fmt::Display| format!("before the check of space: {error}");
        for _ in 0..2 {
            self.db.run_jobs().map_err(|e| trouble(&e))?;
            self.db.checkpoint().map_err(|e| trouble(&e))?;
            self.db.tick();
        }
        // Opening a table may close another, whose counter is written then.
        self.used_bytes().map_err(|e| trouble(&e))?;
        let before = self.used_bytes().map_err(|e| trouble(&e))?;
        self.db.close().map_err(|error| format!("closing: {error}"))?;
        self.count_work();
        self.disk = self.disk.power_cycle_clean();
        let opened = setup::open(&self.disk, &mut self.rng, self.mode, &self.lines);
        self.db = opened.map_err(|error| format!("a start after a clean stop: {error}"))?;
        self.forget_past();
        let after = self.used_bytes().map_err(|e| trouble(&e))?;
        ensure!(before == after, "space has leaked: in use {before:?}, referred to {after:?}");
        self.check_files()?;
        self.counts.space_checks += 1;
        self.check_whole()
    }

    fn check_files(&mut self) -> Check {
        let list = |dir: &str| {
            let entries = self.disk.read_dir(Path::new(dir));
            entries.map_err(|error| format!("listing {dir}: {error}"))
        };
        let tables = list("/data/db")?;
        let mut expected: Vec<String> =
            self.current().tables.values().map(|t| format!("{}.pando", &NAMES[t.name][5..])).collect();
        expected.sort();
        let found: Vec<String> = tables.into_iter().map(|entry| entry.name).collect();
        ensure!(found == expected, "directories {found:?} and not {expected:?}");
        for table in self.current().tables.values() {
            let mut files = list(&format!("/data/db/{}.pando", &NAMES[table.name][5..]))?;
            // Left by a write of the copy that failed; the next one takes it.
            files.retain(|entry| entry.name != "status.new");
            let names = || files.iter().map(|entry| &entry.name).collect::<Vec<_>>();
            // One for each dictionary, and the descriptor's copy.
            ensure!(files.len() == table.dicts.len() + 1, "files of {}: {:?}", NAMES[table.name], names());
        }
        let engine = list("/data/.pando")?;
        // The log being written, what the start has read, two spares; the catalog and the lock.
        ensure!(engine.len() <= 7, "files are left over: {engine:?}");
        Ok(())
    }
}
