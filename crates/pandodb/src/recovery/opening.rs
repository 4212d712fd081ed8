//! Opening the dictionaries that are recovered. Nothing here changes while they are: all lanes share it.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{DictId, Error, Metrics, Result, Seqno};
use pando_run::{BlockCache, Run, RunContext, RunMeta};
use pando_storage::vfs::Vfs;
use pando_storage::TreeFile;
use pando_tree::{Tree, TreeConfig};

use crate::catalog::descriptor::{table_dir, CATALOG};
use crate::catalog::file_ages::FileAges;
use crate::catalog::Content;
use crate::db::options::Options;
use crate::db::Db;
use crate::ddl::encryption::{check_encryption, FileKey};
use crate::runtime::horizon::EngineHorizon;
use crate::table::Dict;

/// Where a dictionary is, for opening it when the log names it.
pub(super) struct Known {
    path: PathBuf,
    config: TreeConfig,
    part: Part,
    key: FileKey,
}

/// What a dictionary is to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Rows,
    Index,
    LargeValues,
}

/// Runs that the log has dictionaries adopt, and the commits that do.
pub(super) type Adoptions = HashMap<DictId, Vec<(Seqno, RunMeta)>>;

/// What it takes to open dictionaries.
pub(super) struct Opening<'a> {
    pub(super) options: &'a Options,
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) horizon: Arc<EngineHorizon>,
    pub(super) known: HashMap<DictId, Known>,
    /// How old files may be.
    pub(super) ages: FileAges,
    pub(super) adoptions: Adoptions,
}

/// A dictionary that is being recovered.
pub(super) struct Opened {
    pub(super) dict: Arc<Dict>,
    pub(super) durable_seqno: Seqno,
    /// Runs still to be adopted, in the order of the log.
    pub(super) private: VecDeque<Arc<Run>>,
}

impl Opening<'_> {
    /// The catalog's dictionary, made new in a new database.
    pub(super) fn open_catalog(&self, has_log: bool) -> Result<Opened> {
        let path = Db::catalog_path(&self.options.engine_dir);
        // The first log file is begun when the catalog is durable.
        if !self.vfs.exists(&path)? {
            if has_log || self.options.despite_damage {
                let found = "log files without it";
                return Err(Error::corruption(&path, 0, "catalog", "the file", found));
            }
            self.check_no_tables(&path)?;
            // Renamed into place when whole, so that a crash leaves no half-made catalog.
            let new = path.with_extension("new");
            if self.vfs.exists(&new)? {
                self.vfs.remove_file(&new)?;
            }
            TreeFile::create(&self.vfs, &new, CATALOG)?;
            self.vfs.rename(&new, &path)?;
            self.vfs.sync_dir(&self.options.engine_dir)?;
        }
        let opened = self.open(CATALOG, &path, self.options.tree)?;
        if opened.durable_seqno > 0 && !has_log && !self.options.despite_damage {
            let expected = format!("files with the commits up to {} at least", opened.durable_seqno);
            return Err(Error::corruption(&self.options.engine_dir, 0, "log", expected, "no log file"));
        }
        Ok(opened)
    }

    /// A new catalog is for a new database. Tables without a catalog mean that its directory was forgotten in a copy, or is
    /// not mounted: with a new one beside them they could not come back.
    fn check_no_tables(&self, catalog: &Path) -> Result<()> {
        let base = &self.options.base_dir;
        if !self.vfs.exists(base)? {
            return Ok(());
        }
        for database in self.vfs.read_dir(base)?.into_iter().filter(|entry| entry.is_dir) {
            let dir = base.join(database.name);
            if dir == self.options.engine_dir {
                continue;
            }
            for table in self.vfs.read_dir(&dir)?.into_iter().filter(|entry| entry.is_dir) {
                let dir = dir.join(&table.name);
                if table.name.ends_with(".pando") && self.vfs.exists(&dir.join("main.pando"))? {
                    let found = format!(
                        "none, but tables, as {}; put the directory {} of these tables back",
                        dir.display(),
                        self.options.engine_dir.display()
                    );
                    return Err(Error::corruption(catalog, 0, "catalog", "the file", found));
                }
            }
        }
        Ok(())
    }

    /// Notes where the catalog's tables are.
    pub(super) fn know_tables(&mut self, content: &Content) {
        let is_left_out = |path: &str| self.options.left_out.as_ref().is_some_and(|its| its.has(path));
        let tables = content.tables.values();
        for table in tables.filter(|table| !table.temporary && !is_left_out(&table.path)) {
            let dir = table_dir(&self.options.base_dir, &table.path);
            for (position, dictionary) in table.all_dictionaries().enumerate() {
                if dictionary.unusable.is_some() {
                    continue;
                }
                let config = dictionary.tree_config(&self.options.tree, table.compression());
                let part = match position {
                    0 => Part::Rows,
                    _ if position < table.dictionaries.len() => Part::Index,
                    _ => Part::LargeValues,
                };
                let path = dir.join(&dictionary.file);
                let known = Known { path, config, part, key: FileKey::of(table, part == Part::LargeValues) };
                self.known.insert(DictId(dictionary.id), known);
            }
        }
    }

    /// What a dictionary of the catalog is.
    pub(super) fn part(&self, id: DictId) -> Option<Part> {
        self.known.get(&id).map(|known| known.part)
    }

    /// The last commit that the files of the tables have, or the one given.
    pub(super) fn newest_file(&self, last_seqno: Seqno) -> Seqno {
        let open = |id: &DictId, known: &Known| TreeFile::open(&self.vfs, &known.path, *id);
        let files = self.known.iter().filter_map(|(id, known)| open(id, known).ok());
        files.map(|(_, superblock)| superblock.durable_seqno).fold(last_seqno, Seqno::max)
    }

    /// Opens a dictionary that the log names. `None`: it was dropped.
    pub(super) fn open_known(&self, id: DictId) -> Option<Result<Opened>> {
        let known = self.known.get(&id)?;
        let open = || -> Result<Opened> {
            let opened = self.open(id, &known.path, known.config)?;
            opened.dict.file.check_key()?;
            check_encryption(&opened.dict.file, &known.key)?;
            self.ages.check(&known.path, id, opened.dict.file.epoch())?;
            Ok(opened)
        };
        // A key is given up for damage: it may be the reading that was bad.
        let is_to_be_sure = |error: &Error| known.part != Part::Rows && error.is_damage();
        Some(open().or_else(|error| if is_to_be_sure(&error) { open() } else { Err(error) }))
    }

    fn open(&self, id: DictId, path: &Path, config: TreeConfig) -> Result<Opened> {
        let (file, superblock) = TreeFile::open_with(&self.vfs, path, id, &self.options.keys)?;
        let context =
            RunContext { file: file.clone(), cache: self.cache.clone(), metrics: self.metrics.clone() };
        // What the checkpoint has is in its nodes.
        let adoptions = self.adoptions.get(&id).map_or(&[][..], Vec::as_slice);
        let missing = adoptions.iter().filter(|(seqno, _)| *seqno > superblock.durable_seqno);
        let missing: Vec<RunMeta> = missing.map(|(_, meta)| meta.clone()).collect();
        let horizon = self.horizon.clone();
        let (tree, private) = Tree::open_with_private(context, &superblock, config, horizon, &missing)?;
        let dict = Arc::new(Dict::new(id, tree, file, superblock.auto_increment));
        // Checked by the first tick: a start has no time to sync thousands of files.
        dict.is_secure.store(false, Ordering::Relaxed);
        Ok(Opened { dict, durable_seqno: superblock.durable_seqno, private: private.into() })
    }
}
