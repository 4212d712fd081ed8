//! Indexes come and go while the table is in use. A build takes several steps: it begins, makes its base from a
//! snapshot, catches up, ends; clients write to the table in between, crashes and faults come, and at its end
//! the index has what the rows say, or is refused because of a duplicate.

use std::collections::BTreeSet;
use std::rc::Rc;

use pandodb::{
    Clustering, Compression, Error, IndexBuild, IndexPlace, IndexSource, NewIndex, ReadMode, TableChange,
};
use rand::Rng;

use crate::model::{Added, Map, Row, State, TableId, TableState};
use crate::world::{ensure, note, Check, World, NAMES};
use crate::xa;

/// An index that is being built.
pub(crate) struct Build {
    table: TableId,
    is_unique: bool,
    build: Box<IndexBuild>,
    /// The table as its snapshot shows it; `None` when the base is made.
    base: Option<Rc<TableState>>,
}

/// What the index has to hold; `None`: two rows have the same key.
fn index_of(table: &TableState, is_unique: bool) -> Option<Map> {
    let rows = table.dicts[0].iter().filter_map(|(pk, value)| Row::decode(pk, value));
    let entries: Vec<_> = rows.map(|row| row.added_entry(is_unique)).collect();
    let keys: BTreeSet<_> = entries.iter().map(|(key, _)| key.clone()).collect();
    (keys.len() == entries.len()).then(|| entries.into_iter().collect())
}

fn places(with_new: bool) -> Vec<IndexPlace> {
    let kept = (1..=2).map(|n| (format!("k{n}"), IndexSource::Kept(n)));
    let new = with_new.then(|| ("added".to_owned(), IndexSource::New(0)));
    kept.chain(new).map(|(name, source)| IndexPlace { name, source }).collect()
}

impl World {
    /// Of an index that is being built for this table: whether it is unique.
    pub(crate) fn builds(&self, table: TableId) -> Option<bool> {
        self.build.as_ref().filter(|build| build.table == table).map(|build| build.is_unique)
    }

    /// Before the table itself changes.
    pub(crate) fn give_up_build(&mut self, table: TableId) {
        if self.builds(table).is_some() {
            note!(self, "gives up the index of {table}");
            self.build = None;
        }
    }

    pub(crate) fn change_indexes(&mut self, id: TableId, table: &Rc<TableState>) -> Check {
        if self.build.is_some() {
            return self.go_on_building();
        }
        match (table.added, self.rng.random_range(0..6)) {
            (_, 0) => self.change_compression(id, table),
            (None, _) => self.begin_build(id, table),
            (Some(_), _) => self.drop_index(id, table),
        }
    }

    fn begin_build(&mut self, id: TableId, table: &Rc<TableState>) -> Check {
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        let is_unique: bool = self.rng.random();
        note!(self, "begins an index of {id}, unique {is_unique}");
        let index =
            NewIndex { name: "added".into(), is_unique, clustering: Clustering::None, recipe: Vec::new() };
        let begun = self.db.begin_index_build(NAMES[table.name], &[index]);
        let (begun, result) = match begun {
            Ok(build) => (Some(build), Ok(())),
            Err(error) => (None, Err(error)),
        };
        if xa::is_refused("beginning an index", kept, &result)? {
            return Ok(());
        }
        if self.settle("beginning an index", result)?.is_some() {
            self.counts.builds += 1;
            let base = Some(table.clone());
            self.build = begun.map(|build| Build { table: id, is_unique, build, base });
        }
        Ok(())
    }

    /// The next step of the index that is being built.
    pub(crate) fn go_on_building(&mut self) -> Check {
        let Some(mut build) = self.build.take() else { return Ok(()) };
        let Some(base) = build.base.take() else { return self.end_build(build) };
        note!(self, "makes the base of the index of {}", build.table);
        let made = self.make_base(&mut build);
        let has_duplicate = index_of(&base, build.is_unique).is_none();
        match made {
            Err(Error::Duplicate { .. }) if has_duplicate => {
                self.counts.duplicates += 1;
                return Ok(());
            }
            Ok(()) if has_duplicate => return Err("a base with a duplicate was made".into()),
            made => {
                if self.settle("making the base of an index", made)?.is_none() {
                    return Ok(());
                }
            }
        }
        self.build = Some(build);
        Ok(())
    }

    fn make_base(&mut self, build: &mut Build) -> pandodb::Result<()> {
        let mut reader = build.build.take_reader().expect("the base is made once");
        let table = build.build.table().clone();
        let mut cursor = reader.cursor(&table, 0);
        cursor.seek_first(&mut reader, ReadMode::Snapshot)?;
        while cursor.valid() {
            let row = Row::decode(cursor.key(), cursor.value()).expect("a row is whole");
            let (key, value) = row.added_entry(build.is_unique);
            build.build.add(0, &key, &value);
            cursor.next(&mut reader)?;
        }
        build.build.finish_bases(&mut |_| true)?;
        if self.rng.random() {
            build.build.settle(&mut || false)?;
        }
        if self.rng.random() {
            build.build.catch_up(&mut || false)?;
        }
        build.build.secure()
    }

    fn end_build(&mut self, build: Build) -> Check {
        let id = build.table;
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        note!(self, "ends the index of {id}");
        let table = self.current().tables[&id].clone();
        let index = index_of(&table, build.is_unique);
        let mut after = State::clone(self.current());
        let is_duplicate = index.is_none();
        if let Some(index) = index {
            let mut table = TableState::clone(&table);
            table.dicts.push(Rc::new(index));
            self.serial += 1;
            table.added = Some(Added { number: self.serial, is_unique: build.is_unique });
            after.tables.insert(id, Rc::new(table));
            self.in_flight = Some(Rc::new(after.clone()));
        }
        let result = build.build.finish(&places(true)).map_err(|(build, error)| {
            drop(build);
            error
        });
        if let (Err(Error::Duplicate { .. }), true) = (&result, is_duplicate) {
            self.counts.duplicates += 1;
            return Ok(());
        }
        ensure!(!(is_duplicate && result.is_ok()), "an index with a duplicate was added to {id}");
        let before = self.counts.ddl;
        self.changed("adding an index", result, after, kept)?;
        self.counts.indexes_added += self.counts.ddl - before;
        Ok(())
    }

    fn drop_index(&mut self, id: TableId, table: &Rc<TableState>) -> Check {
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        note!(self, "drops the index of {id}");
        let mut after = State::clone(self.current());
        let mut without = TableState::clone(table);
        without.dicts.pop();
        without.added = None;
        after.tables.insert(id, Rc::new(without));
        self.in_flight = Some(Rc::new(after.clone()));
        let dropped = self.db.change_indexes(NAMES[table.name], &places(false));
        self.changed("dropping an index", dropped, after, kept)
    }

    /// A change of the catalog alone.
    fn change_compression(&mut self, id: TableId, table: &Rc<TableState>) -> Check {
        self.evict(id);
        note!(self, "changes the compression of {id}");
        let compression = if self.rng.random() { Compression::Lz4 } else { Compression::None };
        let change = TableChange {
            path: NAMES[table.name].into(),
            compression: Some(compression),
            ..TableChange::default()
        };
        let changed = self.db.alter_tables(&mut [change]);
        let after = State::clone(self.current());
        self.changed("changing a table", changed, after, None)
    }
}
