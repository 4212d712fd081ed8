//! Create, open, rename, drop and truncate tables, crash-safe at every step.
//!
//! Files and the catalog cannot change in one step, so each operation first makes an **intent**
//! durable in the catalog, then touches the files, then makes its result durable:
//!
//! ```text
//! create   intent Create      mkdir, files, sync      descriptor, intent gone
//! drop     descriptor gone, intent Drop    remove     intent gone (lazily)
//! rename   descriptor renamed, intent Rename   mv     intent gone (lazily); see `renames`
//! ```
//!
//! Recovery finishes or undoes what the intents name (`finish_intents`). Truncation needs no files:
//! it is one record of the log that empties all dictionaries of the table.
//!
//! **What the caller is told is what has happened.** The durable change of the catalog decides; once
//! it and the directory agree, whatever else fails is a warning: the intent stays, and the next start
//! does the rest. While the log has failed nobody knows what it holds, so nothing is undone then. An
//! intent may be older than what lies at its path now: what belongs to a table of the catalog is
//! never removed.
//!
//! **Snapshots do not see half of a change.** A table has versions of its rows only since it was made or emptied, and a copy
//! (ALTER TABLE, REORGANIZE PARTITION) only since it was filled, before it got its name. A snapshot from before that would
//! find nothing, and is refused instead ([`Dict::check_readable`]), as one from before an index is. That is known in memory
//! alone, which outlives every snapshot. Temporary tables are left out: only their own session reads them, and knows them.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{limits, DictId, Error, Result, Seqno};
use pando_column::layout::Layouts;
use pando_run::RunContext;
use pando_storage::vfs::{DirEntry, OpenMode, Vfs};
use pando_storage::TreeFile;
use pando_tree::{Tree, TreeConfig};

use crate::catalog::definition::table_of;
use crate::catalog::descriptor::{
    compression_text, key_file_name, normalize, table_dir, DictDescriptor, Intent, TableDescriptor, TableSpec,
};
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::ddl::foreign_keys::normalized;
use crate::runtime::clock::seconds_since_1970;
use crate::runtime::files::{check_durable, sync_parent, STATUS_FILE};
use crate::table::clustering::Clustering;
use crate::table::large::LostValues;
use crate::table::{Dict, Table};

/// What it is written to first.
const STATUS_NEW_FILE: &str = "status.new";

impl Db {
    /// Whether there is a table at this path.
    pub fn table_exists(&self, path: &str) -> bool {
        self.catalog.table(&normalize(path)).is_some()
    }

    /// Makes sure that no prepared transaction without a connection has changed a table. Nobody has its metadata locks,
    /// and what it has written is not to be seen: whoever verifies all rows, and keeps others out meanwhile, asks first.
    pub fn check_resolved(&self, path: &str) -> Result<()> {
        match self.catalog.table(&normalize(path)) {
            Some(descriptor) => Ok(self.prepared.check_unused(&descriptor)?),
            None => Ok(()),
        }
    }

    /// The same for all partitions of a partitioned table: they go one after the other, and none shall go if one cannot.
    pub fn check_partitions_resolved(&self, path: &str) -> Result<()> {
        if self.prepared.are_resolved() {
            return Ok(());
        }
        let path = normalize(path);
        let is_its = |table: &&TableDescriptor| table_of(&table.path).is_some_and(|(table, _)| table == path);
        let partitions: Vec<_> =
            self.catalog.content.lock().tables.values().filter(is_its).cloned().collect();
        partitions.iter().try_for_each(|partition| self.prepared.check_unused(partition))
    }

    /// Creates a table, and the directories above it that are missing. Errors: it exists, or its directory does; its path is none that
    /// a table can have; it has more than 127 indexes; I/O leaves nothing behind.
    pub fn create_table(&self, spec: &TableSpec) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let descriptor = self.describe(spec)?;
        self.check_names(&descriptor, None, None)?;
        self.check_keys(&descriptor)?;
        let id = descriptor.id;
        let intent = Intent::Create { path: descriptor.path.clone() };
        let seqno = self.change_catalog(Change { intend: vec![(id, intent)], ..Change::default() })?;
        if let Err(error) = self.create_files(&descriptor, spec, seqno) {
            self.undo_create(id, &descriptor.path);
            return Err(error);
        }
        let put_files = self.new_server_files(spec.server_files.as_ref());
        let done = Change { put: vec![descriptor.clone()], put_files, fulfil: vec![id], ..Change::default() };
        if let Err(error) = self.change_catalog(done) {
            self.forget(&descriptor);
            // A failed log may have the descriptor: the files stay, for recovery to decide.
            if self.wal.failed().is_none() {
                self.undo_create(id, &descriptor.path);
            }
            return Err(error);
        }
        self.make_room_for_tables();
        Ok(())
    }

    fn describe(&self, spec: &TableSpec) -> Result<TableDescriptor> {
        let path = normalize(&spec.path);
        check_indexes(&path, spec.indexes.len())?;
        check_path(&path, spec.temporary)?;
        self.claim_name(&path)?;
        let has_large =
            spec.columns.iter().flatten().any(|column| column.ty.kind == pando_column::layout::Kind::Large);
        let id = self.catalog.take_ids(2 + u64::from(has_large) + spec.indexes.len() as u64);
        let mut dictionaries = vec![DictDescriptor {
            id: id + 1,
            name: "main".into(),
            file: "main.pando".into(),
            has_filters: true,
            unusable: None,
            clustering: Clustering::None,
        }];
        for (position, index) in spec.indexes.iter().enumerate() {
            dictionaries.push(DictDescriptor {
                id: id + 2 + position as u64,
                name: index.name.clone(),
                file: key_file_name(position, &index.name),
                has_filters: index.has_filters,
                unusable: None,
                clustering: index.clustering,
            });
        }
        let large = has_large.then(|| DictDescriptor {
            id: id + 2 + spec.indexes.len() as u64,
            name: "large".into(),
            file: "large.pando".into(),
            has_filters: true,
            unusable: None,
            clustering: Clustering::None,
        });
        Ok(TableDescriptor {
            id,
            path,
            dictionaries,
            large,
            lost_values: LostValues::default(),
            compression: compression_text(spec.compression),
            temporary: spec.temporary,
            created: seconds_since_1970(),
            layouts: spec.columns.clone().map(Layouts::new),
            definition: spec.definition.clone(),
            foreign_keys: spec.foreign_keys.iter().cloned().map(normalized).collect(),
            encryption_key_id: spec.encryption_key_id,
            encrypting_key_id: None,
            undecided_key_id: spec.undecided_key_id.filter(|_| spec.encryption_key_id.is_none()),
        })
    }

    /// Makes sure that a table can get this name. Errors: there is one, or a directory that is not ours.
    pub(crate) fn claim_name(&self, path: &str) -> Result<()> {
        self.check_open()?;
        let dir = table_dir(&self.base_dir, path);
        if !self.table_exists(path) {
            if !self.vfs.exists(&dir)? {
                return Ok(());
            }
            if let Some(id) = self.catalog.leftover(path) {
                self.remove_dir(&dir)?;
                self.fulfil(id);
                return Ok(());
            }
        }
        Err(Error::Exists { what: format!("table directory {}", dir.display()) })
    }

    /// The work that an intent names is done. If that cannot be recorded, the next start looks again.
    pub(crate) fn fulfil(&self, id: u64) {
        self.fulfil_all(vec![id]);
    }

    /// The same of several.
    pub(crate) fn fulfil_all(&self, fulfil: Vec<u64>) {
        let of = format!("{fulfil:?}");
        if let Err(error) = self.change_catalog(Change { fulfil, lazy: true, ..Change::default() }) {
            self.log(
                LogLevel::Warning,
                &format!("cannot record that a change of tables {of} is done: {error}"),
            );
        }
    }

    fn create_files(&self, descriptor: &TableDescriptor, spec: &TableSpec, seqno: Seqno) -> Result<()> {
        let dir = table_dir(&self.base_dir, &descriptor.path);
        create_dir(&*self.vfs, &dir)?;
        for (position, dictionary) in descriptor.all_dictionaries().enumerate() {
            let id = DictId(dictionary.id);
            let file = self.create_file(&dir.join(&dictionary.file), id, descriptor.encryption_key_id)?;
            let config = dictionary.tree_config(&self.tree_config, descriptor.compression());
            let tree = Tree::create(self.run_context(&file), config, self.horizon.clone());
            let counter = if position == 0 { spec.auto_increment } else { 0 };
            let dict = Arc::new(Dict::new(id, tree, file, counter));
            if !spec.temporary {
                dict.readable_from.store(seqno, Ordering::Release);
                dict.is_interim.store(spec.interim, Ordering::Release);
            }
            self.dicts.write().insert(id, dict);
        }
        // Syncs the directory, too.
        self.write_status(&dir, descriptor)?;
        if spec.auto_increment > 0 {
            // The counter lives in the superblock; make the first one hold it.
            if let Some(dict) = self.dict(DictId(descriptor.dictionaries[0].id)) {
                dict.tree.checkpoint(|| 0, |_| Ok(()), || spec.auto_increment)?;
            }
        }
        Ok(())
    }

    /// After a failed create: the directory goes, then the intent. If that fails too, recovery
    /// does it.
    fn undo_create(&self, id: u64, path: &str) {
        for dict in self.open_dicts() {
            if dict.file.path().starts_with(table_dir(&self.base_dir, path)) {
                dict.dropped.store(true, Ordering::Release);
                self.dicts.write().remove(&dict.id);
            }
        }
        let dir = table_dir(&self.base_dir, path);
        match self.remove_dir(&dir) {
            Ok(()) => self.fulfil(id),
            Err(error) => {
                self.log(LogLevel::Warning, &format!("cannot remove {} now: {error}", dir.display()))
            }
        }
    }

    /// Opens a table; the same object for everyone. Errors: there is none, or its files are damaged.
    pub fn open_table(&self, path: &str) -> Result<Arc<Table>> {
        self.check_open()?;
        let path = normalize(path);
        if let Some(table) = self.tables.read().get(&path) {
            return Ok(table.clone());
        }
        let _one_ddl = self.ddl.lock();
        if let Some(table) = self.tables.read().get(&path) {
            return Ok(table.clone());
        }
        let descriptor =
            self.catalog.table(&path).ok_or_else(|| Error::NotFound { what: format!("table {path}") })?;
        let mut dicts = Vec::with_capacity(descriptor.dictionaries.len());
        for dictionary in &descriptor.dictionaries {
            dicts.push(self.open_dict_of(&descriptor, dictionary)?);
        }
        let large = self.open_large(&descriptor)?;
        let table = Table::new(self.number, (descriptor.id, descriptor.created), &path, dicts, large);
        let clusterings = descriptor.clusterings();
        let table = Arc::new(table.with_layouts(descriptor.layouts.map(Arc::new), clusterings));
        self.tables.write().insert(path, table.clone());
        self.make_room_for_tables();
        Ok(table)
    }

    /// Drops a table. The caller knows that nobody uses it.
    pub fn drop_table(&self, path: &str) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let path = normalize(path);
        let descriptor =
            self.catalog.table(&path).ok_or_else(|| Error::NotFound { what: format!("table {path}") })?;
        self.prepared.check_unused(&descriptor)?;
        self.drop_described(&descriptor)
    }

    fn drop_described(&self, descriptor: &TableDescriptor) -> Result<()> {
        let (id, path) = (descriptor.id, descriptor.path.clone());
        let mut change = Change { remove: Some((id, path.clone())), ..Change::default() };
        change.intend.extend(self.intent_gone(descriptor));
        self.remove_server_files(descriptor, &mut change);
        let gone = change.intend.clone();
        change.intend.push((id, Intent::Drop { path: path.clone() }));
        self.change_catalog(change)?;
        self.note_gone(gone);
        let dir = table_dir(&self.base_dir, &path);
        self.keep_space(&dir, &descriptor.all_dictionaries().cloned().collect::<Vec<_>>());
        self.forget(descriptor);
        match self.remove_dir(&dir) {
            Ok(()) => self.fulfil(id),
            // The table is gone for its users; the next start removes the files.
            Err(error) => {
                self.log(LogLevel::Warning, &format!("cannot remove {} now: {error}", dir.display()))
            }
        }
        Ok(())
    }

    /// Drops what a CREATE TABLE has left that was not finished, and could not be taken back: the table at this path, or all
    /// partitions of the table of this name, if none of them has a row. Says whether they are gone. The caller knows that nobody
    /// uses them.
    pub fn drop_if_empty(&self, path: &str) -> Result<bool> {
        let path = normalize(path);
        let of_it = |table: &str| table == path || table_of(table).is_some_and(|(table, _)| table == path);
        let left: Vec<String> =
            self.catalog.tables(|t| of_it(&t.path)).into_iter().map(|descriptor| descriptor.path).collect();
        for partition in &left {
            if !self.open_table(partition)?.is_empty()? {
                return Ok(false);
            }
        }
        for partition in &left {
            self.drop_table(partition)?;
        }
        Ok(!left.is_empty())
    }

    /// Drops the tables of a database that the server has no more names for (DROP DATABASE). Errors: it has no name.
    pub fn drop_database(&self, dir: &str) -> Result<()> {
        self.check_open()?;
        let _one_ddl = self.ddl.lock();
        let dir = normalize(dir);
        let name = dir.trim_end_matches('/');
        if name.is_empty() {
            return Err(Error::argument("a database to be dropped has to have a name"));
        }
        let prefix = format!("{name}/");
        for descriptor in self.catalog.tables(|t| t.path.starts_with(&prefix)) {
            self.drop_described(&descriptor)?;
        }
        Ok(())
    }

    /// Removes the directory of a table, which may be gone already, and makes that durable. What others have put there
    /// stays, and the operator is told.
    fn remove_dir(&self, dir: &Path) -> Result<()> {
        if self.vfs.exists(dir)? {
            let foreign = foreign_entries(&*self.vfs, dir)?;
            if foreign.is_empty() {
                self.vfs.remove_dir_all(dir)?;
            } else {
                for entry in self.vfs.read_dir(dir)?.iter().filter(|entry| is_own_file(&entry.name)) {
                    if !entry.is_dir {
                        self.vfs.remove_file(&dir.join(&entry.name))?;
                    }
                }
                self.vfs.sync_dir(dir)?;
                let text = format!(
                    "{} stays, without the table's files: {} is not of the engine; as long as it is there, no table can \
                     have this name",
                    dir.display(),
                    foreign.join(", ")
                );
                self.log(LogLevel::Warning, &text);
            }
        }
        // Also when it was removed before: perhaps by a process that came no further.
        match dir.parent() {
            Some(parent) if self.vfs.exists(parent)? => self.vfs.sync_dir(parent),
            _ => Ok(()),
        }
    }

    /// Removes all rows, and the auto-increment value. The caller knows that nobody uses the table.
    pub fn truncate_table(&self, path: &str) -> Result<()> {
        let table = self.open_table(path)?;
        let descriptor = self.catalog.table(path);
        if let Some(descriptor) = &descriptor {
            self.prepared.check_unused(descriptor)?;
        }
        let mut dicts: Vec<Arc<Dict>> = table.all_dicts().cloned().collect();
        dicts.retain(|dict| !dict.is_unusable());
        dicts.sort_by_key(|dict| dict.id);
        let seqno = self.publish_truncate(&dicts)?;
        // The session of a temporary table may have a snapshot, and knows what it has emptied.
        if descriptor.is_none_or(|descriptor| !descriptor.temporary) {
            dicts.iter().for_each(|dict| dict.readable_from.store(seqno, Ordering::Release));
        }
        *table.shared.hidden_key.lock() = 0;
        // Gives the space back now; if it fails, a later checkpoint does.
        for dict in &dicts {
            if let Err(error) = self.checkpoint_dict(dict) {
                self.log(LogLevel::Warning, &format!("checkpoint after TRUNCATE failed: {error}"));
            }
        }
        Ok(())
    }

    /// Before files are removed: their space is given back later, without anybody waiting for it.
    pub(crate) fn keep_space(&self, dir: &Path, dictionaries: &[DictDescriptor]) {
        self.keep_for_backup(dir, dictionaries);
        for dictionary in dictionaries {
            let dict = self.dict(DictId(dictionary.id));
            self.removed.keep(&*self.vfs, &dir.join(&dictionary.file), dict.as_ref().map(|dict| &dict.file));
        }
    }

    fn forget(&self, descriptor: &TableDescriptor) {
        self.key_rotation.undecided.lock().remove(&descriptor.id);
        self.tables.write().remove(&descriptor.path);
        let mut dicts = self.dicts.write();
        for dictionary in descriptor.all_dictionaries() {
            let id = DictId(dictionary.id);
            if let Some(dict) = dicts.remove(&id) {
                dict.dropped.store(true, Ordering::Release);
            }
            self.held_log.lock().remove(&id);
        }
    }

    /// After recovery: carries out what the intents left in the catalog name. What cannot be done now
    /// does not keep the database from opening.
    pub(crate) fn finish_intents(&self) {
        let _one_ddl = self.ddl.lock();
        for (id, intent) in self.catalog.intents() {
            if let Intent::Gone { .. } = intent {
                self.note_gone(vec![(id, intent)]);
                continue;
            }
            match self.finish_intent(&intent) {
                Ok(()) => self.fulfil(id),
                Err(error) => self.log(LogLevel::Warning, &format!("cannot finish {intent:?} now: {error}")),
            }
        }
        for descriptor in self.catalog.tables(|t| t.temporary) {
            if let Err(error) = self.drop_described(&descriptor) {
                self.log(LogLevel::Warning, &format!("cannot drop {} now: {error}", descriptor.path));
            }
        }
    }

    fn finish_intent(&self, intent: &Intent) -> Result<()> {
        match intent {
            Intent::Create { path } | Intent::Drop { path } => {
                if self.table_exists(path) {
                    // Another one: it got the name when the directory was gone.
                    return Ok(());
                }
                self.remove_dir(&table_dir(&self.base_dir, path))
            }
            Intent::Files { table, files } => self.remove_unnamed(*table, files),
            Intent::Gone { .. } => Ok(()),
            Intent::Rename { to, .. } => {
                // Recovery has moved the directory before it opened files, if it could.
                let dir = table_dir(&self.base_dir, to);
                if self.table_exists(to) && !self.vfs.exists(&dir)? {
                    return Err(Error::NotFound { what: dir.display().to_string() });
                }
                Ok(())
            }
        }
    }

    pub(crate) fn open_dict(&self, path: &Path, id: DictId, config: TreeConfig) -> Result<Dict> {
        // Whatever it was that recovery stumbled on, without the log's records there would be wrong
        // answers, and the next checkpoint would lose them for ever.
        if let Some(held) = self.held_log.lock().get(&id) {
            return Err(held.error.clone());
        }
        let (file, superblock) = TreeFile::open_with(&self.vfs, path, id, &self.keys)?;
        file.check_key()?;
        check_durable(path, superblock.durable_seqno, self.wal.last_seqno())?;
        let tree = Tree::open(self.run_context(&file), &superblock, config, self.horizon.clone())?;
        let is_doubled = file.is_doubled();
        let dict = Dict::new(id, tree, file, superblock.auto_increment);
        // A crash has lost the copy of the superblock: the next tick makes it again.
        dict.is_secure.store(is_doubled, Ordering::Release);
        Ok(dict)
    }

    pub(crate) fn run_context(&self, file: &Arc<TreeFile>) -> RunContext {
        RunContext { file: file.clone(), cache: self.cache.clone(), metrics: self.metrics.clone() }
    }

    /// Writes the descriptor beside the files, for people and offline tools.
    pub(crate) fn write_status(&self, dir: &Path, descriptor: &TableDescriptor) -> Result<()> {
        let text = serde_json::to_vec_pretty(descriptor).expect("a descriptor has string keys only");
        let temporary = dir.join(STATUS_NEW_FILE);
        let file = self.vfs.open(&temporary, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(&text, 0)?;
        file.sync()?;
        self.vfs.rename(&temporary, &dir.join(STATUS_FILE))?;
        self.vfs.sync_dir(dir)
    }
}

/// Refuses more indexes than a table can have.
pub(crate) fn check_indexes(path: &str, indexes: usize) -> Result<()> {
    if indexes <= limits::INDEXES_MAX {
        return Ok(());
    }
    let what = format!("table {path} cannot have {indexes} indexes, but {} at most", limits::INDEXES_MAX);
    Err(Error::argument(what))
}

/// Refuses a path that no table may get. Those of temporary tables begin as the server's `tmpdir` does, wherever that is.
pub(crate) fn check_path(path: &str, is_temporary: bool) -> Result<()> {
    let why = if path.is_empty() || path.ends_with('/') {
        "has no name after its last /"
    } else if path.contains('\0') {
        "has a byte 0"
    } else if !is_temporary && path.split('/').any(|part| part == "..") {
        "leads out of a directory by .."
    } else {
        return Ok(());
    };
    Err(Error::argument(format!("a table cannot have the path {path:?}, which {why}")))
}

/// Creates a directory, and makes its name and those of missing ones above it durable.
pub(crate) fn create_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for path in dir.ancestors() {
        if vfs.exists(path)? {
            break;
        }
        missing.push(path);
    }
    vfs.create_dir_all(dir)?;
    missing.into_iter().try_for_each(|path| sync_parent(vfs, path))
}

/// Whether the engine makes files of this name in the directory of a table.
fn is_own_file(name: &str) -> bool {
    name.ends_with(".pando") || name == STATUS_NEW_FILE
}

/// The files and directories in a table's directory that are not the engine's.
fn foreign_entries(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<String>> {
    let is_foreign = |entry: &DirEntry| entry.is_dir || !is_own_file(&entry.name);
    Ok(vfs.read_dir(dir)?.into_iter().filter(is_foreign).map(|entry| entry.name).collect())
}
