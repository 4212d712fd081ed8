//! The catalog: which tables there are. A dictionary like any other, with a copy of its content in
//! memory; every change is one durable transaction, so DDL is atomic and survives a crash.

pub(crate) mod definition;
pub(crate) mod descriptor;
pub(crate) mod file_ages;
pub(crate) mod foreign_key;
pub(crate) mod server_files;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{DictId, Error, Result, Seqno};

use crate::catalog::descriptor::{
    normalize, Intent, TableDescriptor, FIRST_ID, INTENT_PREFIX, NEXT_ID_KEY, TABLE_PREFIX,
};
use crate::catalog::file_ages::{FileAges, AGE_PREFIX};
use crate::catalog::foreign_key::{is_aside, References};
use crate::catalog::server_files::{PartitionedTables, ServerFiles, SERVER_FILES_PREFIX};
use crate::runtime::log_space::LogSpace;
use crate::table::Dict;

/// The catalog's dictionary and what it says.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) dict: Arc<Dict>,
    pub(crate) content: Mutex<Content>,
    /// A leaf in the order of locks.
    pub(crate) ages: Mutex<FileAges>,
    /// See [`crate::Db::schema_version`].
    version: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Content {
    pub tables: HashMap<String, TableDescriptor>,
    pub intents: Vec<(u64, Intent)>,
    pub next_id: u64,
    pub references: References,
    /// The tables that an ALTER has put aside, by their paths, and the names that they had before. No ALTER outlives the server.
    pub aside: HashMap<String, String>,
    pub partitioned: PartitionedTables,
    /// Until the catalog has them.
    pub ages: FileAges,
}

impl Content {
    /// Reads the whole catalog from its tree.
    pub(crate) fn load(dict: &Dict) -> Result<Content> {
        let path = dict.file.path();
        let mut content = Content { next_id: FIRST_ID, ..Content::default() };
        let mut cursor = dict.tree.cursor(Seqno::MAX);
        cursor.seek_first()?;
        while cursor.valid() {
            content.take_record(&path, cursor.key(), cursor.value())?;
            cursor.next()?;
        }
        content.references = References::of(content.tables.values());
        Ok(content)
    }

    /// One record of the catalog at `path`.
    pub(crate) fn take_record(&mut self, path: &Path, key: &[u8], value: &[u8]) -> Result<()> {
        match key.first() {
            Some(&TABLE_PREFIX) => self.insert(TableDescriptor::decode(path, value)?),
            Some(&INTENT_PREFIX) => {
                let id = id_of(path, key.get(1..).unwrap_or_default())?;
                self.intents.push((id, Intent::decode(path, value)?));
            }
            Some(&AGE_PREFIX) => {
                let id = id_of(path, key.get(1..).unwrap_or_default())?;
                self.ages.load(DictId(id), id_of(path, value)?);
            }
            Some(&SERVER_FILES_PREFIX) => self.partitioned.put(ServerFiles::decode(path, value)?),
            _ if key == NEXT_ID_KEY => self.next_id = id_of(path, value)?,
            _ => {
                let found = format!("{key:?}");
                return Err(Error::corruption(path, 0, "catalog key", "t, i, e, p or n", found));
            }
        }
        Ok(())
    }

    /// A table has this descriptor now.
    pub(crate) fn insert(&mut self, descriptor: TableDescriptor) {
        self.partitioned.count(&descriptor);
        if let Some(replaced) = self.tables.insert(descriptor.path.clone(), descriptor) {
            self.partitioned.discount(&replaced);
        }
    }

    /// The table at `path` has this descriptor now, and the path that it says.
    pub(crate) fn replace(&mut self, path: &str, descriptor: TableDescriptor) {
        let name = self.aside.get(path).cloned().unwrap_or_else(|| path.to_owned());
        self.remove(path);
        if is_aside(&descriptor.path) && !is_aside(&name) {
            self.aside.insert(descriptor.path.clone(), name);
        }
        self.insert(descriptor);
    }

    /// There is no table of this name any more.
    pub(crate) fn remove(&mut self, path: &str) -> Option<TableDescriptor> {
        self.aside.remove(path);
        let removed = self.tables.remove(path)?;
        self.partitioned.discount(&removed);
        Some(removed)
    }
}

fn id_of(path: &std::path::Path, bytes: &[u8]) -> Result<u64> {
    let array: [u8; 8] = bytes
        .try_into()
        .map_err(|_| Error::corruption(path, 0, "id in the catalog", "8 bytes", bytes.len()))?;
    Ok(u64::from_be_bytes(array))
}

impl Catalog {
    pub(crate) fn new(dict: Arc<Dict>, mut content: Content) -> Catalog {
        let ages = Mutex::new(std::mem::take(&mut content.ages));
        Catalog { dict, content: Mutex::new(content), ages, version: AtomicU64::new(1) }
    }

    pub(crate) fn schema_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn schema_changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// The tables with constraints that name this parent.
    pub(crate) fn children(&self, parent: &str) -> Vec<TableDescriptor> {
        let content = self.content.lock();
        let paths = content.references.children(parent);
        paths.filter_map(|path| content.tables.get(path).cloned()).collect()
    }

    /// The same, with their names. One that an ALTER has put aside has its name of before, until the new table has it: who writes to the
    /// parent meanwhile waits for the ALTER at that name, and is not left without any.
    pub(crate) fn children_by_name(&self, parent: &str) -> Vec<(String, TableDescriptor)> {
        let content = self.content.lock();
        let paths = content.references.children(parent).map(|path| (path, path));
        let aside = content.aside.iter().filter(|(_, name)| !content.tables.contains_key(*name));
        let children = paths
            .chain(aside)
            .filter_map(|(path, name)| Some((name.clone(), content.tables.get(path)?.clone())));
        children.collect()
    }

    /// The table at this path.
    pub(crate) fn table(&self, path: &str) -> Option<TableDescriptor> {
        self.content.lock().tables.get(&normalize(path)).cloned()
    }

    /// Names of a table's dictionaries, in their order.
    pub(crate) fn dictionary_names(&self, path: &str) -> Option<Vec<String>> {
        let content = self.content.lock();
        let table = content.tables.get(&normalize(path))?;
        Some(table.dictionaries.iter().map(|its| its.name.clone()).collect())
    }

    /// The table with this id.
    pub(crate) fn table_by_id(&self, id: u64) -> Option<TableDescriptor> {
        self.content.lock().tables.values().find(|table| table.id == id).cloned()
    }

    /// The dictionaries of all tables that outlive the server.
    pub(crate) fn dictionary_ids(&self) -> BTreeSet<DictId> {
        let content = self.content.lock();
        let lasting = content.tables.values().filter(|table| !table.temporary);
        lasting.flat_map(TableDescriptor::all_dictionaries).map(|its| DictId(its.id)).collect()
    }

    /// Tables that `select` accepts.
    pub(crate) fn tables(&self, select: impl Fn(&TableDescriptor) -> bool) -> Vec<TableDescriptor> {
        self.content.lock().tables.values().filter(|t| select(t)).cloned().collect()
    }

    /// What `of` takes of each table, if anything.
    pub(crate) fn of_tables<T>(&self, of: impl Fn(&TableDescriptor) -> Option<T>) -> Vec<T> {
        self.content.lock().tables.values().filter_map(of).collect()
    }

    pub(crate) fn intents(&self) -> Vec<(u64, Intent)> {
        self.content.lock().intents.clone()
    }

    /// The intent of an operation that left a directory at this path.
    pub(crate) fn leftover(&self, path: &str) -> Option<u64> {
        let content = self.content.lock();
        let found = content.intents.iter().find(|(_, intent)| match intent {
            Intent::Create { path: left } | Intent::Drop { path: left } => left == path,
            Intent::Rename { .. } | Intent::Files { .. } | Intent::Gone { .. } => false,
        });
        found.map(|(id, _)| *id)
    }

    /// Ids never given out before. They are recorded by the next change of the catalog, so the
    /// caller makes one before it uses them.
    pub(crate) fn take_ids(&self, count: u64) -> u64 {
        let mut content = self.content.lock();
        let first = content.next_id;
        content.next_id += count;
        first
    }
}

/// One change of the catalog, all or nothing.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub put: Vec<TableDescriptor>,
    /// Id and path of the table to forget.
    pub remove: Option<(u64, String)>,
    pub intend: Vec<(u64, Intent)>,
    pub fulfil: Vec<u64>,
    /// The server's files of partitioned tables.
    pub put_files: Vec<ServerFiles>,
    /// Paths of partitioned tables that are gone.
    pub remove_files: Vec<String>,
    /// Not worth a sync of its own: losing it in a crash repeats work that can be repeated.
    pub lazy: bool,
    /// What it may take of the log.
    pub space: Space,
}

/// What a change of the catalog may take of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Space {
    /// On a full disk nothing, unless it only removes.
    #[default]
    OfItsKind,
    /// The reserve too, though it adds to the catalog: who asks for it has changed something already that would have to be
    /// taken back.
    Reserve,
    /// The same, if as much is left to take this change back.
    WithWayBack,
    /// It takes back a change for which that was promised.
    WayBack(u64),
}

impl Change {
    /// On a full disk what only removes may take the reserve of the log: it makes space.
    pub(crate) fn log_space(&self) -> LogSpace {
        let only_removes = self.put.is_empty() && self.put_files.is_empty() && self.intend.is_empty();
        match self.space {
            Space::OfItsKind if self.remove.is_some() || only_removes => LogSpace::Reserve,
            Space::OfItsKind => LogSpace::Free,
            Space::Reserve => LogSpace::Reserve,
            Space::WithWayBack => LogSpace::WithWayBack,
            Space::WayBack(bytes) => LogSpace::WayBack(bytes),
        }
    }
}

/// A name that a table had, in this life of the database.
#[derive(Debug)]
pub(crate) struct Gone {
    pub intent: u64,
    pub path: String,
    pub since_micros: u64,
}
