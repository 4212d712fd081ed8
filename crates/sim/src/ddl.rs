//! Tables come, go, change their names and are emptied. Who uses one keeps it (the server's metadata locks
//! see to that): here its users are rolled back first.

use std::rc::Rc;

use pandodb::layout::Layouts;
use pandodb::{Compression, EngineError, Error, IndexSpec, TableSpec};
use rand::Rng;

use crate::model::{Definition, Layout, State, TableId, TableState};
use crate::world::{ensure, note, Check, Kept, World, NAMES};
use crate::xa;

impl World {
    pub(crate) fn ddl_step(&mut self) -> Check {
        let (name, other) = (self.rng.random_range(0..NAMES.len()), self.rng.random_range(0..NAMES.len()));
        let Some((id, table)) = self.current().named(name).map(|(id, table)| (id, table.clone())) else {
            return self.create(name);
        };
        if table.definition.is_some() && self.rng.random_ratio(1, 5) {
            return self.change_columns(id, &table);
        }
        if table.layout == Layout::Rows && self.rng.random_ratio(3, 5) {
            return self.change_indexes(id, &table);
        }
        match self.rng.random_range(0..10) {
            0 => self.create(name),
            1..=3 => self.drop_table(id, name),
            4..=6 => self.rename(id, table, other),
            _ => self.truncate(id, table),
        }
    }

    fn create(&mut self, name: usize) -> Check {
        let layout = match self.rng.random_range(0..5) {
            0..=1 => Layout::Rows,
            n => Layout::Maps(n - 1),
        };
        let counter = if self.rng.random_ratio(1, 4) { self.rng.random_range(1..100) } else { 0 };
        let compression = match self.rng.random_range(0..3) {
            0 => Compression::None,
            1 => Compression::Lz4,
            _ => Compression::Zstd(1),
        };
        let columns = self.rng.random_ratio(2, 3).then(|| self.some_columns());
        let definition = columns
            .clone()
            .map(|columns| Definition { name: self.some_definition(), layouts: Layouts::new(columns) });
        let spec = TableSpec {
            columns,
            definition: definition.as_ref().map(|it| it.name.as_str().into()).unwrap_or_default(),
            path: NAMES[name].into(),
            indexes: (1..layout.dicts())
                .map(|n| IndexSpec { has_filters: n % 2 == 1, ..IndexSpec::from(format!("k{n}").as_str()) })
                .collect(),
            compression,
            auto_increment: counter,
            ..TableSpec::default()
        };
        note!(self, "create {} {layout:?}", NAMES[name]);
        let keys = [8, 60, 400][self.rng.random_range(0..3)];
        let dicts = vec![Rc::default(); layout.dicts()];
        let exists = self.current().named(name).is_some();
        let mut after = State::clone(self.current());
        after.tables.insert(
            self.next_table,
            Rc::new(TableState { name, layout, keys, dicts, added: None, counter, definition }),
        );
        self.next_table += 1;
        if !exists {
            self.in_flight = Some(Rc::new(after.clone()));
        }
        let created = self.db.create_table(&spec).map_err(Error::from);
        if exists {
            let refused = matches!(created, Err(Error::Engine(EngineError::Exists { .. })));
            ensure!(refused, "creating a table that there is: {created:?}");
            return Ok(());
        }
        self.changed("creating a table", created, after, Some(false))
    }

    fn drop_table(&mut self, id: TableId, name: usize) -> Check {
        self.give_up_build(id);
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        note!(self, "drop {} ({id})", NAMES[name]);
        let mut after = State::clone(self.current());
        after.tables.remove(&id);
        self.in_flight = Some(Rc::new(after.clone()));
        let dropped = self.db.drop_table(NAMES[name]).map_err(Error::from);
        self.changed("dropping a table", dropped, after, kept)
    }

    fn rename(&mut self, id: TableId, table: Rc<TableState>, to: usize) -> Check {
        self.give_up_build(id);
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        note!(self, "rename {} ({id}) to {}", NAMES[table.name], NAMES[to]);
        let exists = self.current().named(to).is_some();
        let mut after = State::clone(self.current());
        after.tables.insert(id, Rc::new(TableState { name: to, ..TableState::clone(&table) }));
        if !exists {
            self.in_flight = Some(Rc::new(after.clone()));
        }
        let renamed = self.db.rename_table(NAMES[table.name], NAMES[to]).map_err(Error::from);
        if exists {
            let refused = matches!(renamed, Err(Error::Engine(EngineError::Exists { .. })));
            ensure!(
                refused || self.is_faulty || kept != Some(false),
                "renaming to a name that is taken: {renamed:?}"
            );
            return Ok(());
        }
        self.changed("renaming a table", renamed, after, kept)
    }

    fn truncate(&mut self, id: TableId, table: Rc<TableState>) -> Check {
        self.give_up_build(id);
        self.end_workers()?;
        self.evict(id);
        let kept = xa::is_kept(self.current(), id);
        note!(self, "truncate {} ({id} becomes {})", NAMES[table.name], self.next_table);
        let mut after = State::clone(self.current());
        after.tables.remove(&id);
        let dicts = vec![Rc::default(); table.dicts.len()];
        let empty = TableState { dicts, counter: 0, ..TableState::clone(&table) };
        after.tables.insert(self.next_table, Rc::new(empty));
        after.follow_truncate(id, self.next_table);
        self.next_table += 1;
        self.in_flight = Some(Rc::new(after.clone()));
        let truncated = self.db.truncate_table(NAMES[table.name]).map_err(Error::from);
        self.changed("truncating a table", truncated, after, kept)
    }

    /// `kept`: whether a prepared transaction keeps the table as it is.
    pub(crate) fn changed(
        &mut self,
        what: &str,
        result: pandodb::Result<()>,
        after: State,
        kept: Option<bool>,
    ) -> Check {
        if xa::is_refused(what, kept, &result)? {
            note!(self, "  a prepared transaction has written to it");
            return Ok(());
        }
        let done = self.came_back(what, result, Rc::new(after), Kept::Disk)?;
        self.counts.ddl += u64::from(done);
        Ok(())
    }

    /// Rolls back who uses a table.
    pub(crate) fn evict(&mut self, id: TableId) {
        for slot in &mut self.clients {
            if slot.as_ref().is_some_and(|client| client.uses(id)) {
                *slot = None;
            }
        }
    }
}
