//! Changes of the catalog: durable transactions of its dictionary.

use pando_base::{Result, Seqno};
use pando_txn::WriteSet;
use pando_wal::FlushMode;

use crate::catalog::descriptor::{Intent, TableDescriptor, CATALOG, NEXT_ID_KEY};
use crate::catalog::file_ages::FileAges;
use crate::catalog::foreign_key::References;
use crate::catalog::server_files::ServerFiles;
use crate::catalog::Change;
use crate::db::Db;
use crate::runtime::log_space::LogSpace;
use crate::table::writes::State;
use crate::txn::commit::Published;

impl Db {
    /// Notes which checkpoints the files have, before log is given up that older ones would need ([`FileAges`]). It need
    /// not be durable by then: without the note an older file is not found out, and a file is never older than its note.
    ///
    /// # Errors
    /// Those of the log; it is tried again with the next ones.
    pub(crate) fn note_file_ages(&self) -> Result<()> {
        let change = self.catalog.ages.lock().change(&self.catalog.dictionary_ids());
        if change.is_empty() {
            return Ok(());
        }
        let mut writes = WriteSet::new();
        for (dict, epoch) in &change {
            match epoch {
                Some(epoch) => writes.put(CATALOG, &FileAges::key(*dict), &epoch.to_be_bytes()),
                None => writes.delete(CATALOG, &FileAges::key(*dict)),
            }
        }
        let writes = State { set: writes, ..State::default() };
        // What the log is given up for may be the only space there is for more of it.
        self.publish_to_catalog(&writes, LogSpace::Reserve)?;
        self.catalog.ages.lock().note(change);
        Ok(())
    }

    /// Waits for no memory: what is dropped gives some back.
    fn publish_to_catalog(&self, writes: &State, space: LogSpace) -> Result<Published> {
        let dicts = std::slice::from_ref(&self.catalog.dict);
        if space == LogSpace::Free {
            self.pay_for_debt(dicts, 0, || false)?;
        }
        self.publish_paid(writes, dicts, space)
    }

    /// Commits a change of the catalog.
    pub(crate) fn change_catalog(&self, change: Change) -> Result<Seqno> {
        Ok(self.change_catalog_as(change)?.seqno)
    }

    /// The same; also says what the log has promised.
    pub(crate) fn change_catalog_as(&self, change: Change) -> Result<Published> {
        self.check_open()?;
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
        for path in &change.remove_files {
            writes.delete(CATALOG, &ServerFiles::key(path));
        }
        for files in &change.put_files {
            writes.put(CATALOG, &ServerFiles::key(&files.path), &files.encode());
        }
        for id in &change.fulfil {
            writes.delete(CATALOG, &Intent::key(*id));
        }
        let writes = State { set: writes, ..State::default() };
        let published = self.publish_to_catalog(&writes, change.log_space())?;
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
            look_at(content.remove(&path).as_ref());
            debug_assert!(content.tables.values().all(|t| t.id != id));
        }
        for descriptor in change.put {
            let old_path = content.tables.values().find(|t| t.id == descriptor.id).map(|t| t.path.clone());
            match old_path {
                Some(path) => content.replace(&path, descriptor),
                None => content.insert(descriptor),
            }
        }
        change.remove_files.iter().for_each(|path| content.partitioned.remove(path));
        change.put_files.into_iter().for_each(|files| content.partitioned.put(files));
        if has_keys {
            content.references = References::of(content.tables.values());
        }
        if is_ddl {
            self.catalog.schema_changed();
        }
        content.intents.extend(change.intend);
        content.intents.retain(|(id, _)| !change.fulfil.contains(id));
        Ok(published)
    }
}
