//! Names that tables have lost, by DROP or RENAME, and under which the server may still have a file.
//!
//! The server removes or renames its file (`NAME.frm`) after the engine is done, and does not sync the directory. After a
//! power cut the file may be back: a table that cannot be opened, though its DROP was acknowledged. So the catalog's
//! record of the change also has an [`Intent::Gone`]. The next start names what is gone to the server's side, which removes
//! such files ([`Db::names_gone`]). The intent ends when the directory was synced some time after the change.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::catalog::definition::is_partition;
use crate::catalog::descriptor::{normalize, table_dir, Intent, TableDescriptor};
use crate::catalog::{Change, Gone, Space};
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::error::Result;
use crate::runtime::files::sync_parent;

/// The server has done its part long before.
const SETTLED_AFTER_MICROS: u64 = 30_000_000;

impl Db {
    /// For the record that takes its name from a table: the intent, where the server has a file for this very table that
    /// people know by its name.
    pub(crate) fn intent_gone(&self, table: &TableDescriptor) -> Option<(u64, Intent)> {
        let name = table.path.rsplit('/').next().unwrap_or_default();
        let id = table.definition.id();
        if table.temporary || id.is_empty() || name.starts_with("#sql") || is_partition(&table.path) {
            return None;
        }
        let intent = Intent::Gone { path: table.path.clone(), definition: id.to_owned() };
        Some((self.catalog.take_ids(1), intent))
    }

    /// The server is about to make files under a name that no table has yet: if none gets it, they are left-overs. Errors: those of the
    /// log.
    pub fn expect_name(&self, path: &str, id: &str) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let gone = Intent::Gone { path: normalize(path), definition: id.to_owned() };
        let intend = vec![(self.catalog.take_ids(1), gone)];
        // On a full disk, too: it is the begin of a RENAME of a partitioned table, which has the reserve.
        self.change_catalog(Change { intend: intend.clone(), space: Space::Reserve, ..Change::default() })?;
        self.note_gone(intend);
        Ok(())
    }

    /// The change with these intents is durable.
    pub(crate) fn note_gone(&self, intents: Vec<(u64, Intent)>) {
        for (intent, what) in intents {
            let Intent::Gone { path, .. } = what else { continue };
            self.gone.lock().push(Gone { intent, path, since_micros: self.vfs.now_micros() });
        }
    }

    /// Names, and the ids of the server's definitions that they no longer stand for. None of them has partitions by now.
    pub fn names_gone(&self) -> Vec<(String, String)> {
        let gone = |(_, intent)| match intent {
            Intent::Gone { path, definition } => Some((path, definition)),
            _ => None,
        };
        let mut names: Vec<_> = self.catalog.intents().into_iter().filter_map(gone).collect();
        let content = self.catalog.content.lock();
        names.retain(|(path, _)| content.partitioned.partitions(path) == 0);
        names
    }

    /// Makes the removal of the server's files durable, of names gone for a while or of all.
    pub(crate) fn settle_gone(&self, all: bool) {
        // DDL that goes on can wait for nothing of this.
        let _one_ddl = match (self.ddl.try_lock(), all) {
            (Some(lock), _) => lock,
            (None, true) => self.ddl.lock(),
            (None, false) => return,
        };
        let now = self.vfs.now_micros();
        let settled: Vec<Gone> = {
            let mut gone = self.gone.lock();
            let is_old = |it: &Gone| all || now.saturating_sub(it.since_micros) >= SETTLED_AFTER_MICROS;
            let (settled, waiting) = std::mem::take(&mut *gone).into_iter().partition(is_old);
            *gone = waiting;
            settled
        };
        if settled.is_empty() {
            return;
        }
        let dirs: BTreeSet<PathBuf> = settled
            .iter()
            .map(|it| table_dir(&self.base_dir, &it.path))
            .filter_map(|dir| dir.parent().map(Into::into))
            .collect();
        for dir in dirs {
            let synced = self.vfs.exists(&dir).and_then(|exists| {
                if exists {
                    return self.vfs.sync_dir(&dir);
                }
                sync_parent(&*self.vfs, &dir)
            });
            if let Err(error) = synced {
                // The intents stay for the next start.
                self.log(LogLevel::Warning, &format!("cannot sync {} after DDL: {error}", dir.display()));
                return;
            }
        }
        let fulfil = settled.iter().map(|it| it.intent).collect();
        if let Err(error) = self.change_catalog(Change { fulfil, lazy: true, ..Change::default() }) {
            self.log(LogLevel::Warning, &format!("cannot record that names are gone: {error}"));
        }
    }
}
