//! The catalog: which tables there are. A dictionary like any other, with a copy of its content in
//! memory; every change is one durable transaction, so DDL is atomic and survives a crash.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{Error, Result, Seqno};
use pando_txn::WriteSet;
use pando_wal::FlushMode;

use crate::db::Db;
use crate::descriptor::{
    normalize, Intent, TableDescriptor, CATALOG, FIRST_ID, INTENT_PREFIX, NEXT_ID_KEY, TABLE_PREFIX,
};
use crate::foreign_keys::References;
use crate::table::Dict;
use crate::writes::State;

/// The catalog's dictionary and what it says.
#[derive(Debug)]
pub(crate) struct Catalog {
    dict: Arc<Dict>,
    content: Mutex<Content>,
    /// See [`Db::schema_version`].
    version: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Content {
    pub tables: HashMap<String, TableDescriptor>,
    pub intents: Vec<(u64, Intent)>,
    pub next_id: u64,
    pub references: References,
}

impl Content {
    /// Reads the whole catalog from its tree.
    pub(crate) fn load(dict: &Dict) -> Result<Content> {
        let path = dict.file.path();
        let mut content = Content { next_id: FIRST_ID, ..Content::default() };
        let mut cursor = dict.tree.cursor(Seqno::MAX);
        cursor.seek_first()?;
        while cursor.valid() {
            let (key, value) = (cursor.key(), cursor.value());
            match key.first() {
                Some(&TABLE_PREFIX) => {
                    let descriptor = TableDescriptor::decode(&path, value)?;
                    content.tables.insert(descriptor.path.clone(), descriptor);
                }
                Some(&INTENT_PREFIX) => {
                    let id = id_of(&path, key.get(1..).unwrap_or_default())?;
                    content.intents.push((id, Intent::decode(&path, value)?));
                }
                _ if key == NEXT_ID_KEY => content.next_id = id_of(&path, value)?,
                _ => return Err(Error::corruption(&path, 0, "catalog key", "t, i or n", format!("{key:?}"))),
            }
            cursor.next()?;
        }
        content.references = References::of(content.tables.values());
        Ok(content)
    }
}

fn id_of(path: &std::path::Path, bytes: &[u8]) -> Result<u64> {
    let array: [u8; 8] = bytes
        .try_into()
        .map_err(|_| Error::corruption(path, 0, "id in the catalog", "8 bytes", bytes.len()))?;
    Ok(u64::from_be_bytes(array))
}

impl Catalog {
    pub(crate) fn new(dict: Arc<Dict>, content: Content) -> Catalog {
        Catalog { dict, content: Mutex::new(content), version: AtomicU64::new(1) }
    }

    pub(crate) fn schema_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The tables with constraints that name this parent.
    pub(crate) fn children(&self, parent: &str) -> Vec<TableDescriptor> {
        let content = self.content.lock();
        let paths = content.references.children(parent);
        paths.filter_map(|path| content.tables.get(path).cloned()).collect()
    }

    /// The table at this path.
    pub(crate) fn table(&self, path: &str) -> Option<TableDescriptor> {
        self.content.lock().tables.get(&normalize(path)).cloned()
    }

    /// The table with this id.
    pub(crate) fn table_by_id(&self, id: u64) -> Option<TableDescriptor> {
        self.content.lock().tables.values().find(|table| table.id == id).cloned()
    }

    /// Tables that `select` accepts.
    pub(crate) fn tables(&self, select: impl Fn(&TableDescriptor) -> bool) -> Vec<TableDescriptor> {
        self.content.lock().tables.values().filter(|t| select(t)).cloned().collect()
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
    /// Not worth a sync of its own: losing it in a crash repeats work that can be repeated.
    pub lazy: bool,
}

impl Db {
    /// Commits a change of the catalog.
    pub(crate) fn change_catalog(&self, change: Change) -> Result<Seqno> {
        let mut writes = WriteSet::new();
        let next_id = self.catalog.content.lock().next_id;
        writes.put(CATALOG, NEXT_ID_KEY, &next_id.to_be_bytes());
        if let Some((id, _)) = &change.remove {
            writes.delete(CATALOG, &TableDescriptor::key(*id));
        }
        for descriptor in &change.put {
            writes.put(CATALOG, &TableDescriptor::key(descriptor.id), &descriptor.encode());
        }
        for (id, intent) in &change.intend {
            writes.put(CATALOG, &Intent::key(*id), &intent.encode());
        }
        for id in &change.fulfil {
            writes.delete(CATALOG, &Intent::key(*id));
        }
        let writes = State { set: writes, ..State::default() };
        let published = self.publish(&writes, std::slice::from_ref(&self.catalog.dict), 0)?;
        self.wal.wait(published.lsn, if change.lazy { FlushMode::Lazy } else { FlushMode::Commit })?;

        let mut content = self.catalog.content.lock();
        let (mut is_ddl, mut has_keys) = (false, false);
        let mut look_at = |table: Option<&TableDescriptor>| {
            is_ddl |= table.is_some_and(|t| !t.temporary);
            has_keys |= table.is_some_and(|t| !t.foreign_keys.is_empty());
        };
        for descriptor in &change.put {
            look_at(Some(descriptor));
            look_at(content.tables.values().find(|t| t.id == descriptor.id));
        }
        if let Some((id, path)) = change.remove {
            look_at(content.tables.remove(&path).as_ref());
            debug_assert!(content.tables.values().all(|t| t.id != id));
        }
        for descriptor in change.put {
            content.tables.retain(|_, t| t.id != descriptor.id);
            content.tables.insert(descriptor.path.clone(), descriptor);
        }
        if has_keys {
            content.references = References::of(content.tables.values());
        }
        if is_ddl {
            self.catalog.version.fetch_add(1, Ordering::AcqRel);
        }
        content.intents.extend(change.intend);
        content.intents.retain(|(id, _)| !change.fulfil.contains(id));
        Ok(published.seqno)
    }
}
