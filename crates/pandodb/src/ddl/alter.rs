//! Changing tables without touching their rows: one record of the catalog, whatever their size.
//!
//! A change replaces descriptors: their layouts (see `pando_column::layout`), the names of indexes,
//! the compression of what is written from then on. Those of all tables of one statement, such as the
//! partitions of a table, go into one durable transaction of the catalog, so after a crash either all
//! have changed or none. Before that record nothing has happened, and there is nothing to undo.
//!
//! **Whom the change meets.** The server has the table for itself while it commits the change, and
//! everybody opens it anew afterwards, so rows of the old layout are not written any more. Rows of the
//! past keep theirs: those in the trees, those that snapshots see, those in prepared transactions. They
//! name their layout, and are read by it.
//!
//! **The server's half.** Its own file with the table's definition is put in place after our record.
//! If it crashes between the two, it asks which definition holds: [`Db::has_definition`]. If it loses its file, or finds an
//! older one, it gets the definition from the catalog: `crate::definition`.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{DictId, Error};
use pando_column::layout::NewColumn;
use pando_column::Compression;

use crate::catalog::definition::Definition;
use crate::catalog::descriptor::{compression_text, normalize, table_dir, TableDescriptor};
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::server_files::ServerFiles;
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::ddl::foreign_keys::normalized;
use crate::ddl::indexes::{IndexChange, IndexPlan};
use crate::error::Result;
use crate::runtime::files::STATUS_FILE;
use crate::table::Table;

/// What becomes of a table. What is `None` or empty stays as it is.
#[derive(Debug, Default)]
pub struct TableChange {
    /// `database/table`.
    pub path: String,
    /// All columns that rows consist of from now on.
    pub columns: Option<Vec<NewColumn>>,
    /// New names of indexes, by position of their dictionary. Their files keep theirs.
    pub index_names: Vec<(usize, String)>,
    /// Indexes that are added and dropped, and names of all: instead of `index_names`.
    pub indexes: Option<IndexChange>,
    /// How leaves are compressed from now on.
    pub compression: Option<Compression>,
    /// The next auto-increment value, also a smaller one.
    pub auto_increment: Option<u64>,
    /// What the server says of the new definition.
    pub definition: Option<Definition>,
    /// All constraints in which the table is the child from now on, with its columns' new names.
    pub foreign_keys: Option<Vec<ForeignKey>>,
    /// Old and new names of columns: constraints of other tables follow.
    pub renamed_columns: Vec<(String, String)>,
}

impl TableChange {
    /// Makes of a descriptor what it is after the change. Errors: it cannot be.
    pub(crate) fn apply(&self, descriptor: &mut TableDescriptor) -> pando_base::Result<()> {
        let (change, path) = (self, &descriptor.path);
        let refused = |what: String| Error::Unsupported { what };
        if let Some(columns) = &change.columns {
            let layouts = descriptor.layouts.as_ref();
            let layouts = layouts.ok_or_else(|| refused(format!("the columns of {path} are not known")))?;
            let has_large = descriptor.large.is_some();
            let columns = columns.iter().cloned().map(|column| match has_large {
                true => column.without_new_references(layouts.current()),
                false => column.without_references(),
            });
            let changed = layouts.changed(columns.collect()).map_err(|e| refused(format!("{path}: {e}")))?;
            descriptor.layouts = Some(changed);
        }
        for (position, name) in &change.index_names {
            let missing = || Error::NotFound { what: format!("index {position} of {path}") };
            descriptor.dictionaries.get_mut(*position).ok_or_else(missing)?.name.clone_from(name);
        }
        if let Some(compression) = change.compression {
            descriptor.compression = compression_text(compression);
        }
        if let Some(definition) = &change.definition {
            descriptor.definition.clone_from(definition);
        }
        if let Some(keys) = &change.foreign_keys {
            descriptor.foreign_keys = keys.iter().cloned().map(normalized).collect();
        }
        Ok(())
    }
}

/// What a change comes to.
type Planned = (TableDescriptor, Option<IndexPlan>);

impl Db {
    /// Changes tables, all or none. Requires: nobody else uses them or has them open for writing; who has one open for
    /// reading may meet rows of a layout that it does not know, new ones and those that merges write in it.
    /// Errors: no such table or column; types that would not only grow; too many layouts.
    pub fn alter_tables(&self, changes: &mut [TableChange]) -> Result<()> {
        self.alter_partitions(changes, None)
    }

    /// The same of the partitions of a table, and the server's files of it in the same record.
    pub fn alter_partitions(&self, changes: &mut [TableChange], files: Option<ServerFiles>) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let planned: Vec<Planned> =
            changes.iter_mut().map(|change| self.plan(change)).collect::<Result<_>>()?;
        let mut record = Change { put_files: files.into_iter().collect(), ..Change::default() };
        for (descriptor, indexes) in &planned {
            record.put.push(descriptor.clone());
            record.fulfil.extend(indexes.as_ref().and_then(|plan| plan.fulfil));
            record.intend.extend(indexes.as_ref().map(|plan| plan.intent(descriptor.id)));
        }
        for (change, (descriptor, _)) in changes.iter().zip(&planned) {
            self.check_names(descriptor, self.catalog.table(&descriptor.path).as_ref(), None)?;
            self.follow_columns(&descriptor.path, &change.renamed_columns, &mut record.put);
        }
        let recorded = self.change_catalog(record);
        if recorded.is_ok() || self.wal.failed().is_some() {
            let builds = changes.iter_mut().filter_map(|change| change.indexes.as_mut()?.build.as_mut());
            builds.for_each(|build| build.set_over());
        }
        recorded?;
        for ((descriptor, indexes), change) in planned.iter().zip(changes) {
            self.apply_to_open(descriptor, indexes.as_ref(), change);
            if let Some(indexes) = indexes {
                change.indexes = None;
                self.end_index_change(descriptor, indexes);
                continue;
            }
            let dir = table_dir(&self.base_dir, &descriptor.path);
            if let Err(error) = self.write_status(&dir, descriptor) {
                let file = dir.join(STATUS_FILE);
                let text = format!("{} has the old columns: {error}", file.display());
                self.log(LogLevel::Warning, &text);
            }
        }
        Ok(())
    }

    fn plan(&self, change: &mut TableChange) -> Result<Planned> {
        let mut descriptor = self.altered(change)?;
        let plan = match &mut change.indexes {
            Some(indexes) => Some(self.plan_indexes(&descriptor, indexes)?),
            None => None,
        };
        if let Some(plan) = &plan {
            descriptor.dictionaries.clone_from(&plan.dictionaries);
        }
        Ok((descriptor, plan))
    }

    /// The descriptor after a change.
    fn altered(&self, change: &TableChange) -> pando_base::Result<TableDescriptor> {
        let path = normalize(&change.path);
        let what = || Error::NotFound { what: format!("table {path}") };
        let mut descriptor = self.catalog.table(&path).ok_or_else(what)?;
        change.apply(&mut descriptor)?;
        Ok(descriptor)
    }

    /// The open table follows its descriptor. Who still has it open keeps the old one.
    fn apply_to_open(&self, descriptor: &TableDescriptor, indexes: Option<&IndexPlan>, change: &TableChange) {
        for dictionary in descriptor.all_dictionaries() {
            if let Some(dict) = self.dict(DictId(dictionary.id)) {
                let config = dictionary.tree_config(&self.tree_config, descriptor.compression());
                dict.tree.set_compression(config.run.compression, config.buffer_compression);
            }
        }
        let old = {
            let mut tables = self.tables.write();
            let Some(old) = tables.get(&descriptor.path).cloned() else { return };
            let dicts = indexes.map_or_else(|| old.dicts.clone(), |plan| plan.dicts.clone());
            let new = old.next_generation(dicts, Vec::new());
            new.shared.writable_from.store(new.generation, Ordering::Release);
            let new = new.with_layouts(descriptor.layouts.clone().map(Arc::new), descriptor.clusterings());
            tables.insert(descriptor.path.clone(), Arc::new(new));
            old
        };
        if let Some(next) = change.auto_increment {
            self.set_auto_increment(&old, next);
        }
    }

    /// A smaller counter must not come back from the log: the checkpoint makes it begin after this.
    fn set_auto_increment(&self, table: &Table, next: u64) {
        let rows = table.rows();
        rows.auto_increment.store(next, Ordering::Release);
        if let Err(error) = self.checkpoint_dict(rows) {
            self.log(LogLevel::Warning, &format!("checkpoint after a change of AUTO_INCREMENT: {error}"));
        }
    }
}
