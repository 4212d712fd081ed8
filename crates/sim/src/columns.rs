//! Columns of tables change: one record of the catalog, whole or not at all after a crash. What rows mean is the
//! caller's affair; the engine keeps the layouts that they name.

use std::rc::Rc;

use pandodb::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pandodb::{EngineError, Error, TableChange};
use rand::seq::SliceRandom;
use rand::Rng;

use crate::model::{Definition, State, TableId, TableState};
use crate::world::{ensure, note, Check, World, NAMES};

impl World {
    fn some_type(&mut self) -> ColumnType {
        let kind = [Kind::Signed, Kind::Unsigned, Kind::Varchar, Kind::Blob][self.rng.random_range(0..4)];
        let size = self.rng.random_range(1..4);
        ColumnType { kind, size, nullable: self.rng.random(), binary: false }
    }

    fn new_column(&mut self) -> NewColumn {
        let ty = self.some_type();
        self.serial += 1;
        let value = match ty.nullable {
            true => Value::Null,
            false => Value::Bytes(vec![7; ty.size as usize]),
        };
        NewColumn { name: format!("c{}", self.serial), ty, source: Source::Added(value) }
    }

    /// What a new table begins with.
    pub(crate) fn some_columns(&mut self) -> Vec<NewColumn> {
        (0..self.rng.random_range(1..4)).map(|_| self.new_column()).collect()
    }

    pub(crate) fn some_definition(&mut self) -> String {
        self.serial += 1;
        format!("definition {}", self.serial)
    }

    /// Adds, drops, moves and grows columns, all in one; now and then one that cannot be.
    pub(crate) fn change_columns(&mut self, id: TableId, table: &Rc<TableState>) -> Check {
        self.give_up_build(id);
        self.evict(id);
        let Some(before) = &table.definition else { return Ok(()) };
        let mut columns = Vec::new();
        for (position, column) in before.layouts.current().columns.clone().into_iter().enumerate() {
            let mut ty = column.ty;
            match self.rng.random_range(0..8) {
                0 => continue,
                1 => ty.size += 1,
                2 => ty.nullable = true,
                3 if self.rng.random_ratio(1, 4) => ty.size -= 1,
                _ => {}
            }
            columns.push(NewColumn { name: column.name, ty, source: Source::Column(position) });
        }
        for _ in 0..self.rng.random_range(0..3) {
            columns.push(self.new_column());
        }
        columns.shuffle(&mut self.rng);
        note!(self, "changes the columns of {id}");
        let expected = before.layouts.changed(columns.clone());
        if expected.as_ref() == Ok(&before.layouts) {
            // A crash would leave one of two states that look the same.
            return Ok(());
        }
        let name = self.some_definition();
        let change = TableChange {
            path: NAMES[table.name].into(),
            columns: Some(columns),
            definition: Some(name.as_str().into()),
            ..TableChange::default()
        };
        let mut after = State::clone(self.current());
        if let Ok(layouts) = expected.clone() {
            let definition = Some(Definition { name, layouts });
            after.tables.insert(id, Rc::new(TableState { definition, ..TableState::clone(table) }));
            self.in_flight = Some(Rc::new(after.clone()));
        }
        let changed = self.db.alter_tables(&mut [change]);
        if expected.is_err() {
            let refused = matches!(changed, Err(Error::Engine(EngineError::Unsupported { .. })));
            ensure!(refused || self.is_faulty, "columns that cannot be so: {changed:?}");
            return Ok(());
        }
        let before = self.counts.ddl;
        self.changed("changing columns", changed, after, None)?;
        self.counts.columns_changed += self.counts.ddl - before;
        Ok(())
    }

    /// The server is told right which definition of a table holds.
    pub(crate) fn check_definitions(&self) -> Check {
        for (id, table) in &self.current().tables {
            let Some(definition) = &table.definition else { continue };
            let path = NAMES[table.name];
            ensure!(
                self.db.has_definition(path, &definition.name),
                "{path} ({id}) is not {}",
                definition.name
            );
            ensure!(!self.db.has_definition(path, "another"), "{path} ({id}) is something else");
        }
        Ok(())
    }
}
