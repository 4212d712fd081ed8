//! Changing the indexes of a table that is in use: adding, dropping, renaming, in one record of the catalog.
//!
//! Life of an index that is added (the numbers stand in the code):
//! 1. [`Db::begin_index_build`], while nobody has uncommitted writes to the table: an intent that names the
//!    new files, the files, and a new [`Table`] object that knows the index as one that is being built. Every
//!    transaction that writes to the table afterwards goes through that object, and writes the index's entries,
//!    too (`building`). A snapshot is taken: the **base** of the index are the entries of the rows it sees.
//! 2. While others read and write: the base is made of a scan of the snapshot, sorted, and put at the bottom
//!    of the index's tree, below what was written meanwhile ([`IndexBuild::set_base`]). For a unique index
//!    what was written is checked ([`IndexBuild::catch_up`]). The tree is checkpointed, so that
//!    from there on the log brings back the rest.
//! 3. [`IndexBuild::finish`], again while nobody has uncommitted writes: the last keys of unique indexes are
//!    checked, then one durable change of the catalog makes the indexes part of the table, and takes others
//!    away. A new [`Table`] object follows the new definition; writes through older ones are refused.
//!
//! A crash before the change of the catalog leaves the intent, and recovery removes the files it names; the
//! log's records for them belong to no dictionary any more and are passed by. After it the index is whole: its
//! file has the base, the log everything since its checkpoint, as for any dictionary. Given up
//! ([`IndexBuild`] dropped) nothing stays; others may still hold the object that knows the index: what they
//! write for it is left out, and what they have written goes nowhere.
//!
//! Snapshots older than an index cannot read it ([`Error::DefinitionChanged`]).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{DictId, Error as EngineError, Kind, Seqno};
use pando_run::Run;
use pando_tree::Tree;

use crate::catalog::descriptor::{
    key_file_name, normalize, table_dir, DictDescriptor, Intent, TableDescriptor,
};
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::ddl::alter::TableChange;
use crate::ddl::index_base::Bases;
use crate::ddl::tables::check_indexes;
use crate::ddl::validate::Validation;
use crate::error::Result;
use crate::runtime::files::sync_parent;
use crate::table::building::Building;
use crate::table::clustering::Clustering;
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

/// An index to be added.
#[derive(Clone, Debug)]
pub struct NewIndex {
    /// Its name.
    pub name: String,
    /// Entries marked unique must be alone with their key.
    pub is_unique: bool,
    /// Whether its entries hold rows.
    pub clustering: Clustering,
    /// How its entries are made of rows: for those who write to the table ([`Building::recipe`]).
    pub recipe: Vec<u8>,
}

/// Where an index of the new definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSource {
    /// Position of its dictionary in the table as it is; not 0.
    Kept(usize),
    /// Position among the indexes that are being built.
    New(usize),
}

/// An index of the new definition.
#[derive(Clone, Debug)]
pub struct IndexPlace {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: IndexSource,
}

/// What becomes of a table's indexes.
#[derive(Debug)]
pub struct IndexChange {
    /// All of the new definition, in its order; those left out are dropped.
    pub places: Vec<IndexPlace>,
    /// Where the new ones come from. Taken when the change is done.
    pub build: Option<Box<IndexBuild>>,
}

/// A dictionary and its place on disk.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    dict: Arc<Dict>,
    descriptor: DictDescriptor,
}

/// A change of indexes, worked out.
#[derive(Debug)]
pub(crate) struct IndexPlan {
    pub dictionaries: Vec<DictDescriptor>,
    pub dicts: Vec<Arc<Dict>>,
    dropped: Vec<Placed>,
    /// Of the removal of what is dropped; also if that is nothing, because the copy of the descriptor beside the
    /// files has to be written.
    intent: u64,
    /// Of the build.
    pub fulfil: Option<u64>,
}

impl IndexPlan {
    /// The work that is left once the catalog has the change.
    pub(crate) fn intent(&self, table: u64) -> (u64, Intent) {
        let files = self.dropped.iter().map(|gone| gone.descriptor.file.clone()).collect();
        (self.intent, Intent::Files { table, files })
    }
}

/// Indexes that are being built. Dropped without [`IndexBuild::finish`], nothing of them stays.
#[derive(Debug)]
pub struct IndexBuild {
    db: Arc<Db>,
    table: Arc<Table>,
    new: Vec<Placed>,
    journals: Vec<Placed>,
    validations: Vec<Option<Validation>>,
    intent: u64,
    /// Oldest objects that could write before, and can again when this is given up.
    writable_before: u64,
    /// The base is what was visible up to here.
    seqno: Seqno,
    /// Reads that; taken by whoever scans.
    reader: Option<Txn>,
    pub(crate) bases: Option<Bases>,
    duplicate: Option<(usize, Vec<u8>, Vec<u8>)>,
    is_over: bool,
}

/// Refuses places of which one is that of no index, or of the same as another: of so many dictionaries that are there, the rows first, and
/// so many new ones.
fn check_places(path: &str, places: &[IndexPlace], kept: usize, new: usize) -> Result<()> {
    check_indexes(path, places.len())?;
    for (at, place) in places.iter().enumerate() {
        let is_there = match place.source {
            IndexSource::Kept(at) => (1..kept).contains(&at),
            IndexSource::New(at) => at < new,
        };
        if !is_there || places[..at].iter().any(|other| other.source == place.source) {
            let (name, source) = (&place.name, place.source);
            let what = format!("index {name} of table {path} cannot be {source:?}: there is no such index, or it has another place");
            return Err(EngineError::argument(what).into());
        }
    }
    Ok(())
}

impl Db {
    /// Step 1 at the head of this file. Requires: the caller keeps others from the table. Errors: a transaction
    /// has uncommitted writes to it, or is prepared with some; it is being changed already; I/O leaves nothing.
    pub fn begin_index_build(self: &Arc<Self>, path: &str, indexes: &[NewIndex]) -> Result<Box<IndexBuild>> {
        let path = normalize(path);
        let table = self.open_table(&path)?;
        let _one_ddl = self.ddl.lock();
        let descriptor = self.described(&path)?;
        self.check_quiet(&table)?;
        let journals = indexes.iter().filter(|index| index.is_unique).count();
        let intent = self.catalog.take_ids(1 + (indexes.len() + journals) as u64);
        let (new, journals) = self.place(&descriptor, indexes, intent + 1)?;
        let files = new.iter().chain(&journals).map(|place| place.file.clone()).collect();
        self.change_catalog(Change {
            intend: vec![(intent, Intent::Files { table: descriptor.id, files })],
            ..Change::default()
        })?;
        let made = self.make_dicts(&descriptor, &new).and_then(|new| {
            let journals = self.make_dicts(&descriptor, &journals);
            journals.map(|journals| (new.clone(), journals)).inspect_err(|_| self.forget_dicts(&new))
        });
        let (new, journals) = match made {
            Ok(made) => made,
            Err(error) => {
                self.remove_and_fulfil(intent, &descriptor, new.iter().chain(&journals));
                return Err(error.into());
            }
        };
        Ok(Box::new(self.start_build(&table, indexes, new, journals, intent)))
    }

    fn start_build(
        self: &Arc<Self>,
        table: &Arc<Table>,
        indexes: &[NewIndex],
        new: Vec<Placed>,
        journals: Vec<Placed>,
        intent: u64,
    ) -> IndexBuild {
        let mut reader = self.begin();
        let seqno = reader.snapshot_seqno();
        let mut rest = journals.iter();
        let mut building = Vec::new();
        let mut validations = Vec::new();
        for (index, placed) in indexes.iter().zip(&new) {
            placed.dict.readable_from.store(seqno, Ordering::Release);
            placed.dict.tree.await_bottom();
            let journal = index.is_unique.then(|| rest.next()).flatten().map(|placed| placed.dict.clone());
            journal.iter().for_each(|journal| journal.tree.await_bottom());
            let validation = |journal| Validation::new(&placed.dict, journal, index.clustering, seqno);
            validations.push(journal.clone().map(validation));
            building.push(Building::new(
                placed.dict.clone(),
                journal,
                index.clustering,
                index.recipe.clone(),
            ));
        }
        let table = Arc::new(table.next_generation(table.dicts.clone(), building));
        let writable_before = table.shared.writable_from.swap(table.generation, Ordering::AcqRel);
        self.install(&table);
        IndexBuild {
            db: self.clone(),
            table,
            new,
            journals,
            validations,
            intent,
            writable_before,
            seqno,
            reader: Some(reader),
            bases: None,
            duplicate: None,
            is_over: false,
        }
    }

    /// Drops, renames and reorders indexes: `places` are those of the new definition, all kept ones.
    /// Requires and errors as [`Db::begin_index_build`].
    pub fn change_indexes(self: &Arc<Self>, path: &str, places: &[IndexPlace]) -> Result<()> {
        let _open = self.open_table(path)?;
        let indexes = Some(IndexChange { places: places.to_vec(), build: None });
        self.alter_tables(&mut [TableChange { path: path.to_owned(), indexes, ..TableChange::default() }])
    }

    pub(crate) fn described(&self, path: &str) -> Result<TableDescriptor> {
        let found = self.catalog.table(path);
        Ok(found.ok_or_else(|| EngineError::NotFound { what: format!("table {path}") })?)
    }

    /// Makes sure that nobody writes to the table, and that this is the object everybody gets.
    pub(crate) fn check_quiet(&self, table: &Arc<Table>) -> Result<()> {
        let path = table.path();
        let is_current = self.tables.read().get(&path).is_some_and(|current| Arc::ptr_eq(current, table));
        if !is_current || !table.building.is_empty() || table.rows().writers.is_any() {
            return Err(EngineError::InUse { what: format!("table {path}") }.into());
        }
        Ok(())
    }

    /// Ids and file names of new indexes and of the journals of unique ones, with ids from `id` on.
    fn place(
        &self,
        table: &TableDescriptor,
        indexes: &[NewIndex],
        id: u64,
    ) -> Result<(Vec<DictDescriptor>, Vec<DictDescriptor>)> {
        check_indexes(&table.path, indexes.len())?;
        let dir = table_dir(&self.base_dir, &table.path);
        let mut taken: BTreeSet<String> = table.dictionaries.iter().map(|dict| dict.file.clone()).collect();
        let mut next = id;
        let mut new = Vec::new();
        for index in indexes {
            let mut file = key_file_name(next as usize, &index.name);
            // What an index of this name has left behind, or one that was renamed has kept.
            if taken.contains(&file) || self.vfs.exists(&dir.join(&file))? {
                file = format!("{}@{next}.pando", file.trim_end_matches(".pando"));
            }
            taken.insert(file.clone());
            let has_filters = index.is_unique;
            let (name, clustering) = (index.name.clone(), index.clustering);
            new.push(DictDescriptor { id: next, name, file, has_filters, unusable: None, clustering });
            next += 1;
        }
        let unique = indexes.iter().filter(|index| index.is_unique);
        let journals = unique.zip(next..).map(|(index, id)| DictDescriptor {
            id,
            name: index.name.clone(),
            file: format!("build-{id}.pando"),
            has_filters: true,
            unusable: None,
            clustering: Clustering::None,
        });
        Ok((new, journals.collect()))
    }

    fn make_dicts(
        &self,
        table: &TableDescriptor,
        places: &[DictDescriptor],
    ) -> pando_base::Result<Vec<Placed>> {
        let dir = table_dir(&self.base_dir, &table.path);
        let mut made = Vec::new();
        for descriptor in places {
            let id = DictId(descriptor.id);
            let file = match self.create_file(&dir.join(&descriptor.file), id, table.encryption_key_id) {
                Ok(file) => file,
                Err(error) => {
                    self.forget_dicts(&made);
                    return Err(error);
                }
            };
            let config = descriptor.tree_config(&self.tree_config, table.compression());
            let tree = Tree::create(self.run_context(&file), config, self.horizon.clone());
            tree.set_shapes(descriptor.clustering.shapes(table.layouts.as_ref()));
            let dict = Arc::new(Dict::new(id, tree, file, 0));
            self.dicts.write().insert(id, dict.clone());
            made.push(Placed { dict, descriptor: descriptor.clone() });
        }
        Ok(made)
    }

    fn forget_dicts(&self, placed: &[Placed]) {
        let mut dicts = self.dicts.write();
        for Placed { dict, .. } in placed {
            dict.dropped.store(true, Ordering::Release);
            dicts.remove(&dict.id);
        }
    }

    /// Makes this the object that everybody gets.
    pub(crate) fn install(&self, table: &Arc<Table>) {
        self.tables.write().insert(table.path(), table.clone());
    }

    /// Works out what a change of indexes comes to; with a build, after its last checks. Requires: nobody else
    /// uses the table. Errors: somebody does; those of the checks.
    pub(crate) fn plan_indexes(&self, old: &TableDescriptor, change: &mut IndexChange) -> Result<IndexPlan> {
        let table = self.tables.read().get(&old.path).cloned();
        let table = table.ok_or_else(|| EngineError::NotFound { what: format!("table {}", old.path) })?;
        let (mut new, mut journals, mut fulfil) = (Vec::new(), Vec::new(), None);
        match &mut change.build {
            Some(build) => {
                build.prove()?;
                (new, journals, fulfil) = (build.new.clone(), build.journals.clone(), Some(build.intent));
            }
            None => self.check_quiet(&table)?,
        }
        check_places(&old.path, &change.places, table.dicts.len(), new.len())?;
        let mut dictionaries = vec![old.dictionaries[0].clone()];
        let mut dicts = vec![table.rows().clone()];
        for place in &change.places {
            let (dict, descriptor) = match place.source {
                IndexSource::Kept(at) => (&table.dicts[at], &old.dictionaries[at]),
                IndexSource::New(at) => (&new[at].dict, &new[at].descriptor),
            };
            dictionaries.push(DictDescriptor { name: place.name.clone(), ..descriptor.clone() });
            dicts.push(dict.clone());
        }
        let is_kept = |id: u64| dictionaries.iter().any(|kept| kept.id == id);
        let dropped = table.dicts.iter().zip(&old.dictionaries).filter(|(_, its)| !is_kept(its.id));
        let mut dropped: Vec<Placed> =
            dropped.map(|(dict, its)| Placed { dict: dict.clone(), descriptor: its.clone() }).collect();
        dropped.append(&mut journals);
        let intent = self.catalog.take_ids(1);
        Ok(IndexPlan { dictionaries, dicts, dropped, intent, fulfil })
    }

    /// After the catalog has the new definition: what was dropped goes.
    pub(crate) fn end_index_change(&self, table: &TableDescriptor, plan: &IndexPlan) {
        let dir = table_dir(&self.base_dir, &table.path);
        let gone: Vec<DictDescriptor> = plan.dropped.iter().map(|gone| gone.descriptor.clone()).collect();
        self.keep_space(&dir, &gone);
        self.forget_dicts(&plan.dropped);
        plan.dropped.iter().for_each(|gone| _ = self.held_log.lock().remove(&gone.dict.id));
        self.remove_and_fulfil(plan.intent, table, plan.dropped.iter().map(|gone| &gone.descriptor));
    }

    /// Removes files that no table has any more; what cannot be removed now the next start removes.
    pub(crate) fn remove_and_fulfil<'a>(
        &self,
        intent: u64,
        table: &TableDescriptor,
        files: impl Iterator<Item = &'a DictDescriptor>,
    ) {
        let files: Vec<String> = files.map(|dict| dict.file.clone()).collect();
        match self.remove_unnamed(table.id, &files) {
            Ok(()) => self.fulfil(intent),
            Err(error) => {
                let text = format!("cannot remove all of {files:?} of {} now: {error}", table.path);
                self.log(LogLevel::Warning, &text);
            }
        }
    }

    /// Removes those of the files that the descriptor of table `id` does not name, and writes its copy.
    pub(crate) fn remove_unnamed(&self, id: u64, files: &[String]) -> pando_base::Result<()> {
        // Dropped since: its directory went with it.
        let Some(table) = self.catalog.table_by_id(id) else { return Ok(()) };
        let dir = table_dir(&self.base_dir, &table.path);
        if !self.vfs.exists(&dir)? {
            return Ok(());
        }
        for file in files.iter().filter(|file| table.all_dictionaries().all(|its| its.file != **file)) {
            let path = dir.join(file);
            if self.vfs.exists(&path)? {
                self.vfs.remove_file(&path)?;
            }
        }
        self.write_status(&dir, &table)
    }
}

impl IndexBuild {
    /// A transaction that sees the rows of which the base is to be made; for one scan.
    pub fn take_reader(&mut self) -> Option<Txn> {
        self.reader.take()
    }

    /// The table as writers have it meanwhile.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// After [`Error::Duplicate`]: which of the new indexes, key and value of an entry that is not alone.
    pub fn duplicate(&self) -> Option<(usize, &[u8], &[u8])> {
        if let Some((index, key, value)) = &self.duplicate {
            return Some((*index, key, value));
        }
        self.validations.iter().enumerate().find_map(|(at, validation)| {
            let (key, value) = validation.as_ref()?.duplicate()?;
            Some((at, key, value))
        })
    }

    pub(crate) fn note_duplicate(&mut self, index: usize, key: Vec<u8>, value: Vec<u8>) {
        self.duplicate = Some((index, key, value));
    }

    pub(crate) fn db(&self) -> &Arc<Db> {
        &self.db
    }

    /// How many indexes are new.
    pub fn indexes(&self) -> usize {
        self.new.len()
    }

    /// The tree of the `index`-th new one, for those who make its base.
    pub fn tree(&self, index: usize) -> &Arc<Tree> {
        &self.new[index].dict.tree
    }

    /// Puts the base of the `index`-th new one under what was written meanwhile: private runs of its tree,
    /// ascending and apart from each other.
    pub fn set_base(&self, index: usize, runs: &[Arc<Run>]) {
        let hold = self.tree(index).hold_bottom().expect("nothing is flushed before there is a base");
        hold.adopt(runs, self.seqno);
    }

    /// The same from entries in the order of their keys. Errors: I/O.
    pub fn set_base_of<'a>(
        &self,
        index: usize,
        entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<()> {
        let mut writer = self.tree(index).private_writer();
        for (key, value) in entries {
            writer.add(key, Kind::Put, value)?;
        }
        self.set_base(index, &writer.finish()?);
        Ok(())
    }

    /// The base of every index is in its tree: makes it durable, and lets what was written meanwhile go down.
    /// Errors: I/O.
    pub fn end_bases(&self) -> Result<()> {
        for Placed { dict, .. } in &self.new {
            dict.tree.end_awaiting_bottom();
            self.db.background.request(dict);
        }
        Ok(())
    }

    /// Brings what waits above the bases down, as far as the policy would, so that those who use the indexes
    /// find no debt. Errors: I/O, killed.
    pub fn settle(&self, is_killed: &mut dyn FnMut() -> bool) -> Result<()> {
        for Placed { dict, .. } in &self.new {
            while dict.tree.debt().overdue_bytes > 0 && dict.tree.run_job()? {
                if is_killed() {
                    return Err(crate::Error::Killed);
                }
            }
        }
        Ok(())
    }

    /// Makes the trees durable as they are, so that little of them is left to the log. Errors: I/O.
    pub fn secure(&self) -> Result<()> {
        for Placed { dict, .. } in &self.new {
            self.db.checkpoint_dict(dict)?;
        }
        sync_parent(&*self.db.vfs, &self.new_path())?;
        Ok(())
    }

    fn new_path(&self) -> std::path::PathBuf {
        match self.new.first() {
            Some(placed) => placed.dict.file.path(),
            None => Path::new("").to_owned(),
        }
    }

    /// Checks what was written to unique indexes since the last call, while writers go on; gives the number of
    /// entries looked at. To be repeated until that is little, and after [`IndexBuild::end_bases`].
    /// `is_killed` is asked now and then. Errors: I/O, or killed. Duplicates are found by `finish`.
    pub fn catch_up(&mut self, is_killed: &mut dyn FnMut() -> bool) -> Result<u64> {
        self.validate(false, is_killed)
    }

    fn validate(&mut self, is_last: bool, is_killed: &mut dyn FnMut() -> bool) -> Result<u64> {
        let mut seen = 0;
        for (at, validation) in self.validations.iter_mut().enumerate() {
            if let Some(validation) = validation {
                seen += validation.run(&self.db, at, is_last, is_killed)?;
            }
        }
        Ok(seen)
    }

    /// Step 3 at the head of this file: `places` are the indexes of the new definition, in its order.
    /// Requires: the caller keeps others from the table.
    ///
    /// # Errors
    /// [`Error::Duplicate`](crate::Error::Duplicate) with the number of a new index: see
    /// [`IndexBuild::duplicate`]. A transaction has uncommitted or prepared writes to the table. I/O. The
    /// table is as it was before the build was begun.
    pub fn finish(
        self: Box<Self>,
        places: &[IndexPlace],
    ) -> std::result::Result<(), (Box<IndexBuild>, crate::Error)> {
        let (db, path) = (self.db.clone(), self.table.path());
        let indexes = Some(IndexChange { places: places.to_vec(), build: Some(self) });
        let mut change = [TableChange { path, indexes, ..TableChange::default() }];
        let result = db.alter_tables(&mut change);
        let [TableChange { indexes, .. }] = change;
        match (result, indexes.and_then(|indexes| indexes.build)) {
            (Err(error), Some(build)) => Err((build, error)),
            (result, _) => {
                debug_assert!(result.is_ok(), "a build that failed is given back");
                Ok(())
            }
        }
    }

    /// The last checks, with the DDL mutex held.
    fn prove(&mut self) -> Result<()> {
        if self.table.rows().writers.is_any() {
            return Err(EngineError::InUse { what: format!("table {}", self.table.path()) }.into());
        }
        self.validate(true, &mut || false)?;
        let newest = self.db.snapshots.visible();
        for (placed, validation) in self.new.iter().zip(&self.validations) {
            if validation.is_some() {
                placed.dict.readable_from.store(newest, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The catalog has the indexes, or nobody knows whether it does (the log has failed): then the files stay
    /// for recovery to decide.
    pub(crate) fn set_over(&mut self) {
        self.is_over = true;
        self.table.building.iter().for_each(|building| building.end());
    }

    /// Takes everything back.
    fn give_up(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.reader = None;
        self.bases = None;
        let _one_ddl = self.db.ddl.lock();
        self.table.building.iter().for_each(|building| building.end());
        // Those who hold the object with the building indexes may go on with it, and whoever tried to build
        // them has one from before.
        let next = self.table.next_generation(self.table.dicts.clone(), Vec::new());
        next.shared.writable_from.store(self.writable_before, Ordering::Release);
        self.db.install(&Arc::new(next));
        self.db.forget_dicts(&self.new);
        self.db.forget_dicts(&self.journals);
        if self.db.wal.failed().is_some() {
            return;
        }
        if let Some(table) = self.db.catalog.table_by_id(self.table.id()) {
            let files = self.new.iter().chain(&self.journals).map(|placed| &placed.descriptor);
            self.db.remove_and_fulfil(self.intent, &table, files);
        }
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        self.give_up();
    }
}
