//! The server's files of partitioned tables: recorded, given back, carried along with the partitions.

use crate::catalog::definition::{is_interim_partition, is_partition, table_of};
use crate::catalog::descriptor::{normalize, Intent, TableDescriptor};
use crate::catalog::server_files::{names_in, ServerFiles};
use crate::catalog::Change;
use crate::db::Db;
use crate::error::Result;

impl Db {
    /// Records the files that a partitioned table has from now on. `lazy`: a crash may lose the record, because it would be made again.
    pub fn record_server_files(&self, files: ServerFiles, lazy: bool) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        if self.server_files(&files.path).as_ref() == Some(&files) {
            return Ok(());
        }
        self.change_catalog(Change { put_files: vec![files], lazy, ..Change::default() })?;
        Ok(())
    }

    /// The recorded files of a partitioned table.
    pub fn server_files(&self, path: &str) -> Option<ServerFiles> {
        self.catalog.content.lock().partitioned.get(&normalize(path)).cloned()
    }

    /// Whether a `NAME.par` with these bytes names exactly the partitions that there are; those are left out that an ALTER TABLE was
    /// making or removing.
    pub fn server_files_fit(&self, path: &str, partitions: &[u8]) -> bool {
        let path = normalize(path);
        let Some(mut names) = names_in(partitions) else { return false };
        let content = self.catalog.content.lock();
        if content.partitioned.partitions(&path) < names.len() {
            return false;
        }
        let mut own = content.tables.keys().filter_map(|table| match table_of(table) {
            Some((table, name)) if table == path && !is_interim_partition(name) => Some(name),
            _ => None,
        });
        own.all(|name| names.remove(name)) && names.is_empty()
    }

    /// Whether the catalog has partitions of a table, whatever is recorded of its files.
    pub fn has_partitions(&self, path: &str) -> bool {
        self.catalog.content.lock().partitioned.partitions(&normalize(path)) > 0
    }

    /// Whether the server's definition with this id is that of a partitioned table, by any name that people know it by.
    pub fn has_partitions_of(&self, id: &str) -> bool {
        let is_known = |path: &str| !path.rsplit('/').next().unwrap_or_default().starts_with("#sql");
        let content = self.catalog.content.lock();
        let mut recorded = content.partitioned.all();
        let mut partitions = content.tables.values().filter(|table| is_partition(&table.path));
        !id.is_empty()
            && (recorded.any(|files| files.id() == id && is_known(&files.path))
                || partitions.any(|table| table.definition.id() == id && is_known(&table.path)))
    }

    /// Forgets the files of a table that has no partitions. Errors: those of the log.
    pub fn forget_server_files(&self, path: &str) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let path = normalize(path);
        if self.catalog.content.lock().partitioned.partitions(&path) == 0 {
            self.change_catalog(Change { remove_files: vec![path], lazy: true, ..Change::default() })?;
        }
        Ok(())
    }

    /// Paths of the partitioned tables of a database (a folder's name), or of all databases, whose files are recorded.
    pub fn tables_with_server_files(&self, database: Option<&str>) -> Vec<String> {
        let prefix = database.map(|name| format!("{name}/")).unwrap_or_default();
        let content = self.catalog.content.lock();
        content.partitioned.paths().filter(|path| path.starts_with(&prefix)).cloned().collect()
    }

    /// For the change that makes a partition: the files, unless they are recorded already.
    pub(crate) fn new_server_files(&self, given: Option<&ServerFiles>) -> Vec<ServerFiles> {
        given
            .filter(|files| self.server_files(&files.path).as_ref() != Some(files))
            .into_iter()
            .cloned()
            .collect()
    }

    /// For the change that takes a table's name away: if it is the last partition, the record goes with it, and the server's files may
    /// stay behind.
    pub(crate) fn remove_server_files(&self, partition: &TableDescriptor, change: &mut Change) {
        if let Some((table, _)) = table_of(&partition.path) {
            self.remove_files_with(table, 1, change);
        }
    }

    /// The same for so many partitions of a table at once.
    fn remove_files_with(&self, table: &str, partitions: usize, change: &mut Change) {
        let (count, files) = {
            let content = self.catalog.content.lock();
            (content.partitioned.partitions(table), content.partitioned.get(table).cloned())
        };
        let Some(files) = files.filter(|_| count == partitions) else { return };
        change.remove_files.push(files.path.clone());
        let name = table.rsplit('/').next().unwrap_or_default();
        if !name.starts_with("#sql") {
            let gone = Intent::Gone { path: files.path.clone(), definition: files.id().to_owned() };
            change.intend.push((self.catalog.take_ids(1), gone));
        }
    }

    /// For the change that renames partitions of one table, each to the path beside it: the files follow them into another table, unless
    /// that has its own, and are not those of the old name when none is left there. A partition that becomes a table, or a table that
    /// becomes one, takes nothing along.
    pub(crate) fn follow_server_files(&self, moves: &[(&TableDescriptor, &str)], change: &mut Change) {
        let Some((old, to)) = moves.first() else { return };
        let (Some((from_table, _)), Some((to_table, _))) = (table_of(&old.path), table_of(to)) else {
            return;
        };
        if from_table == to_table {
            return;
        }
        let Some(files) = self.server_files(from_table) else { return };
        let has_own = {
            let content = self.catalog.content.lock();
            content.partitioned.partitions(to_table) > 0 && content.partitioned.get(to_table).is_some()
        };
        if !has_own {
            change.put_files = self.new_server_files(Some(&files.renamed(to_table)));
        }
        self.remove_files_with(from_table, moves.len(), change);
    }

    /// What takes a change of records back.
    pub(crate) fn undo_of_files(&self, change: &Change) -> Change {
        let content = self.catalog.content.lock();
        let changed = change.put_files.iter().map(|files| &files.path).chain(&change.remove_files);
        let mut undo = Change::default();
        for path in changed {
            match content.partitioned.get(path) {
                Some(files) => undo.put_files.push(files.clone()),
                None => undo.remove_files.push(path.clone()),
            }
        }
        undo
    }
}
