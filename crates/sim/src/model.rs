//! What the database should hold. A [`State`] is immutable and shares what did not change with the one
//! before it, so that each open snapshot, each cursor and each moment that a crash may bring back simply
//! keeps one: multi-version concurrency control as a persistent map.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pandodb::layout::Layouts;
use pandodb::LockMode;

use crate::locks::Locks;

pub(crate) type Bytes = Rc<[u8]>;
pub(crate) type Map = BTreeMap<Bytes, Bytes>;

/// A table's content: a new id for each creation and truncation, the same after a rename.
pub(crate) type TableId = u64;

/// What the entries of a table's dictionaries have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Nothing: so many independent maps.
    Maps(usize),
    /// Rows with a non-unique and a unique index.
    Rows,
}

impl Layout {
    pub(crate) fn dicts(self) -> usize {
        match self {
            Layout::Maps(count) => count,
            Layout::Rows => 3,
        }
    }
}

/// An index that was added to a table with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Another one each time.
    pub number: u64,
    pub is_unique: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableState {
    pub name: usize,
    pub layout: Layout,
    /// Keys are drawn from so many.
    pub keys: u32,
    pub dicts: Vec<Rc<Map>>,
    /// An index that was added, in the dictionary after those of the layout.
    pub added: Option<Added>,
    /// The least that the auto-increment counter can be.
    pub counter: u64,
    /// Its columns, if they are known.
    pub definition: Option<Definition>,
}

/// What a change of columns replaces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The server's name for it.
    pub name: String,
    pub layouts: Layouts,
}

/// One uncommitted change; `None` is a delete.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub table: TableId,
    pub dict: usize,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A key of a dictionary of a table.
pub(crate) type LockKey = (TableId, usize, Bytes);

/// A transaction that waits for its coordinator's decision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    pub writes: Vec<Write>,
    pub counters: Vec<(TableId, u64)>,
    pub locks: Locks,
    /// Tables that it has written to, perhaps undone.
    pub touched: BTreeSet<TableId>,
}

/// All tables at one moment, and the prepared transactions by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub tables: BTreeMap<TableId, Rc<TableState>>,
    pub prepared: BTreeMap<u64, Rc<Prepared>>,
}

impl State {
    pub(crate) fn named(&self, name: usize) -> Option<(TableId, &Rc<TableState>)> {
        self.tables.iter().find(|(_, table)| table.name == name).map(|(id, table)| (*id, table))
    }

    /// Whether a dictionary of a table is the same here as there: an index may have come or gone.
    pub(crate) fn has_same(&self, other: &State, table: TableId, dict: usize) -> bool {
        let added = |state: &State| Some(state.tables.get(&table)?.added.map(|added| added.number));
        match (self.tables.get(&table), other.tables.get(&table)) {
            (Some(here), Some(there)) => {
                dict < here.layout.dicts()
                    || (dict < here.dicts.len() && dict < there.dicts.len() && added(self) == added(other))
            }
            _ => false,
        }
    }

    pub(crate) fn value(&self, table: TableId, dict: usize, key: &[u8]) -> Option<Bytes> {
        self.tables.get(&table)?.dicts[dict].get(key).cloned()
    }

    /// The state that a start finds: a prepared transaction has the locks of what it wrote.
    pub(crate) fn restarted(&self) -> Rc<State> {
        let mut state = self.clone();
        for prepared in state.prepared.values_mut() {
            let prepared = Rc::make_mut(prepared);
            prepared.locks = Locks::default();
            for write in &prepared.writes {
                prepared.locks.add(write.table, write.dict, &write.key, LockMode::Exclusive);
            }
        }
        Rc::new(state)
    }

    /// See [`Locks::follow_truncate`].
    pub(crate) fn follow_truncate(&mut self, old: TableId, new: TableId) {
        for prepared in self.prepared.values_mut() {
            if prepared.locks.uses(old) {
                Rc::make_mut(prepared).locks.follow_truncate(old, new);
            }
            // As one that has only raised the counter.
            if prepared.touched.contains(&old) {
                Rc::make_mut(prepared).touched.insert(new);
            }
        }
    }

    /// The state after the commit of a prepared transaction, or its rollback.
    pub(crate) fn resolved(&self, number: u64, commits: bool) -> State {
        let mut after = match self.prepared.get(&number) {
            Some(prepared) if commits => self.after(&prepared.writes, &prepared.counters),
            _ => self.clone(),
        };
        after.prepared.remove(&number);
        after
    }

    /// The state after a commit.
    pub(crate) fn after(&self, writes: &[Write], counters: &[(TableId, u64)]) -> State {
        let mut after = self.clone();
        for write in writes {
            let table = after.tables.get_mut(&write.table).expect("a table in use is not dropped");
            apply(Rc::make_mut(&mut Rc::make_mut(table).dicts[write.dict]), write);
        }
        for (id, next) in counters {
            let table = after.tables.get_mut(id).expect("a table in use is not dropped");
            let table = Rc::make_mut(table);
            table.counter = table.counter.max(*next);
        }
        after
    }

    /// What somebody with these uncommitted writes sees of a dictionary, in order.
    pub(crate) fn view(&self, table: TableId, dict: usize, writes: &[Write]) -> Vec<(Bytes, Bytes)> {
        let empty = Rc::new(Map::new());
        let base = self.tables.get(&table).map_or(&empty, |table| &table.dicts[dict]);
        let mut own = writes.iter().filter(|write| write.table == table && write.dict == dict).peekable();
        if own.peek().is_none() {
            return base.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        let mut view = Map::clone(base);
        own.for_each(|write| apply(&mut view, write));
        view.into_iter().collect()
    }
}

fn apply(map: &mut Map, write: &Write) {
    match &write.value {
        Some(value) => _ = map.insert(write.key.clone(), value.clone()),
        None => _ = map.remove(&write.key),
    }
}

/// What values begin with: the number of no layout. So the engine takes them for bytes and not for rows, which it would write in
/// the current layout one day; the model has them as they were written.
pub(crate) const NO_LAYOUT: u8 = 0;

/// A row of a table with [`Layout::Rows`] and its entries.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub pk: Bytes,
    /// Indexed, not unique.
    pub a: u8,
    /// Indexed, unique.
    pub u: u32,
    pub filler: Vec<u8>,
}

/// Unique values of an index that is added: so few that there are duplicates in large tables.
const ADDED_VALUES: u64 = 5000;

impl Row {
    pub(crate) fn decode(pk: &[u8], value: &[u8]) -> Option<Row> {
        let (a, rest) = value.strip_prefix(&[NO_LAYOUT])?.split_first()?;
        let (u, filler) = rest.split_first_chunk::<4>()?;
        Some(Row { pk: pk.into(), a: *a, u: u32::from_be_bytes(*u), filler: filler.to_vec() })
    }

    /// Key and value for each dictionary of the layout.
    fn base_entries(&self) -> [(Bytes, Bytes); 3] {
        let mut value = vec![NO_LAYOUT, self.a];
        value.extend_from_slice(&self.u.to_be_bytes());
        value.extend_from_slice(&self.filler);
        let mut by_a = vec![self.a];
        by_a.extend_from_slice(&self.pk);
        [
            (self.pk.clone(), value.into()),
            (by_a.into(), Bytes::from([])),
            (Bytes::from(self.u.to_be_bytes()), self.pk.clone()),
        ]
    }

    /// Key and value for an index that is added, which is unique or not.
    pub(crate) fn added_entry(&self, is_unique: bool) -> (Bytes, Bytes) {
        let number = self.filler.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if is_unique {
            let value = (number % ADDED_VALUES) as u16;
            return (Bytes::from(value.to_be_bytes()), self.pk.clone());
        }
        let mut key = vec![self.filler.len() as u8];
        key.extend_from_slice(&self.pk);
        (key.into(), Bytes::from(number.to_be_bytes()))
    }

    /// Those of the layout, and that of an index that is added or being built.
    pub(crate) fn entries(&self, added: Option<bool>) -> Vec<(Bytes, Bytes)> {
        let added = added.map(|is_unique| self.added_entry(is_unique));
        self.base_entries().into_iter().chain(added).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_stays_what_it_was_when_the_next_one_is_made() {
        let table = TableState {
            name: 0,
            layout: Layout::Maps(1),
            keys: 8,
            dicts: vec![Rc::default()],
            added: None,
            counter: 0,
            definition: None,
        };
        let before = State { tables: BTreeMap::from([(1, Rc::new(table))]), ..State::default() };
        let write = |value: Option<&[u8]>| Write {
            table: 1,
            dict: 0,
            key: Bytes::from(*b"k"),
            value: value.map(Bytes::from),
        };
        let after = before.after(&[write(Some(b"v"))], &[(1, 7)]);
        assert_eq!(before.value(1, 0, b"k"), None);
        assert_eq!(after.value(1, 0, b"k").as_deref(), Some(&b"v"[..]));
        assert_eq!((before.tables[&1].counter, after.tables[&1].counter), (0, 7));
        assert_eq!(after.view(1, 0, &[write(None)]), []);
        assert_eq!(before.view(1, 0, &[write(Some(b"x"))]).len(), 1);
    }

    #[test]
    fn a_row_can_be_read_back_from_its_first_entry() {
        let row = Row { pk: Bytes::from(*b"pk"), a: 3, u: 70_000, filler: vec![1, 2] };
        let [(pk, value), by_a, by_u] = row.base_entries();
        let back = Row::decode(&pk, &value).unwrap();
        assert_eq!((back.a, back.u, &back.filler[..]), (3, 70_000, &[1, 2][..]));
        assert_eq!(
            (&by_a.0[..], &by_u.0[..], &by_u.1[..]),
            (&b"\x03pk"[..], &[0, 1, 17, 112][..], &b"pk"[..])
        );
        assert!(Row::decode(b"pk", &[1, 2]).is_none());
    }
}
