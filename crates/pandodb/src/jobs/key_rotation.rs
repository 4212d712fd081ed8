//! Rotation of keys: when the key management has a newer version of a table's key, the table is written anew with it, in the
//! background, so that the old version is needed no longer.
//!
//! What is written gets the newest version anyway; old blocks stay until they are merged. A thread looks now and then whether some file has
//! blocks of a version that is [`Db::set_key_rotation`]'s age behind, and if so rewrites the file's leaves one after another, as OPTIMIZE TABLE
//! does, no faster than it may. Nobody waits for it.
//!
//! How old a file's blocks are is found out from the first bytes of each run and node ([`pando_tree::Tree::oldest_key_version`]), and
//! kept in memory. It is looked at again after some hours: a transaction that was open at the time may have committed runs from before.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pando_base::DictId;

use crate::catalog::descriptor::{table_dir, DictDescriptor, TableDescriptor};
use crate::db::key_rotation::FileKeys;
use crate::db::options::LogLevel;
use crate::db::scheduler::{Background, TICK};
use crate::db::Db;
use crate::error::Result;
use crate::table::Dict;

/// How often the versions of keys are asked for.
const PERIOD_MICROS: u64 = 5_000_000;
/// How long it is believed how old a file's blocks are.
const BELIEVED_MICROS: u64 = 6 * 3600 * 1_000_000;
/// Longest sleep without a look whether it is to end.
const NAP: Duration = Duration::from_millis(50);

/// Which versions of its key a file of an encrypted table has.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyUse {
    /// `database/table`.
    pub table: String,
    /// "main" for the rows, or the index's name.
    pub name: String,
    /// Its file, below the directory of the database.
    pub file: String,
    /// Its dictionary.
    pub id: u64,
    /// Number of the key.
    pub key_id: u32,
    /// The newest version of it; `None`: it cannot be had.
    pub newest: Option<u32>,
    /// The oldest version of a block; `None`: nobody has looked yet.
    pub oldest: Option<u32>,
    /// While it is rewritten: the part that is done.
    pub part: Option<f64>,
}

/// The thread.
pub(super) fn rotate_keys(db: &Weak<Db>, background: &Background) {
    let mut due = 0;
    loop {
        std::thread::park_timeout(TICK);
        if background.stopping() {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        if db.vfs.now_micros() >= due {
            db.rotate_old_keys();
            due = db.vfs.now_micros() + PERIOD_MICROS;
        }
    }
}

impl Db {
    /// From now on files are rewritten in the background that have blocks whose key is so many versions old or older, at so many bytes a
    /// second. 0: none is; and as fast as it goes.
    pub fn set_key_rotation(&self, age: u32, bytes_per_second: u64) {
        self.key_rotation.rate.store(bytes_per_second, Ordering::Relaxed);
        self.key_rotation.age.store(age, Ordering::Relaxed);
    }

    /// Rewrites what is to be rewritten now, one file after another. A failure is a line in the log, and the next ones go on.
    pub fn rotate_old_keys(&self) {
        if self.despite_damage || self.key_rotation.age.load(Ordering::Relaxed) == 0 {
            return;
        }
        for (table, key_id) in self.encrypted_tables() {
            if self.background.stopping() {
                return;
            }
            let newest = self.keys.latest_version(Path::new(&table.path), key_id);
            // Versions count from 1: without a second one nothing has to be looked at.
            let Some(newest) = newest.ok().filter(|newest| self.is_old(1, *newest)) else { continue };
            let Ok(open) = self.open_table(&table.path) else { continue };
            let dicts: Vec<_> = open.all_dicts().filter(|dict| !dict.is_unusable()).cloned().collect();
            // Nobody who drops it has to wait.
            drop(open);
            for dict in dicts {
                if let Err(error) = self.rotate_dict(&dict, newest) {
                    if !dict.is_dropped() {
                        let path = dict.file.path();
                        let text = format!("cannot rewrite {} with its new key: {error}", path.display());
                        self.log(LogLevel::Warning, &text);
                    }
                }
            }
        }
        let known: Vec<DictId> = self.key_rotation.files.lock().keys().copied().collect();
        for id in known.into_iter().filter(|id| self.dict(*id).is_none()) {
            if self.catalog.tables(|table| table.has(id)).is_empty() {
                self.key_rotation.files.lock().remove(&id);
            }
        }
    }

    /// Forgets what is known of files, as it is forgotten after some hours.
    #[doc(hidden)]
    pub fn key_rotation_looks_again(&self) {
        self.key_rotation.files.lock().clear();
    }

    /// Which versions of their keys the files of encrypted tables have, by the tables' names.
    pub fn key_uses(&self) -> Vec<KeyUse> {
        let known = self.key_rotation.files.lock().clone();
        let mut uses = Vec::new();
        for (table, key_id) in self.encrypted_tables() {
            let newest = self.keys.latest_version(Path::new(&table.path), key_id).ok();
            let dir = table_dir(Path::new(""), &table.path);
            let of = |dictionary: &DictDescriptor| {
                let known = known.get(&DictId(dictionary.id));
                KeyUse {
                    table: table.path.clone(),
                    name: dictionary.name.clone(),
                    file: dir.join(&dictionary.file).display().to_string(),
                    id: dictionary.id,
                    key_id,
                    newest,
                    // There never was another one.
                    oldest: known.map(|known| known.oldest).or(newest.filter(|newest| *newest == 1)),
                    part: known.and_then(|known| known.part),
                }
            };
            uses.extend(table.all_dictionaries().map(of));
        }
        uses
    }

    fn encrypted_tables(&self) -> Vec<(TableDescriptor, u32)> {
        let mut tables = self.catalog.tables(|table| table.encryption_key_id.is_some() && !table.temporary);
        tables.sort_by(|a, b| a.path.cmp(&b.path));
        let with_key = |table: TableDescriptor| table.encryption_key_id.map(|key_id| (table, key_id));
        tables.into_iter().filter_map(with_key).collect()
    }

    fn is_old(&self, oldest: u32, newest: u32) -> bool {
        let age = self.key_rotation.age.load(Ordering::Relaxed);
        age > 0 && newest.saturating_sub(oldest) >= age
    }

    fn rotate_dict(&self, dict: &Arc<Dict>, newest: u32) -> Result<()> {
        let now = self.vfs.now_micros();
        let known = self.key_rotation.files.lock().get(&dict.id).copied();
        let believed = known.filter(|known| now.saturating_sub(known.looked_micros) < BELIEVED_MICROS);
        let known = match believed {
            Some(known) => known,
            None => self.look_at_keys(dict, newest, 0)?,
        };
        if !self.is_old(known.oldest, newest) || known.tried == newest {
            return Ok(());
        }
        let is_whole = self.compact_dict(dict, &mut self.paced(dict, known, newest));
        self.note_part(dict.id, None);
        if is_whole? && !dict.is_dropped() {
            self.look_at_keys(dict, newest, newest)?;
        }
        Ok(())
    }

    fn look_at_keys(&self, dict: &Dict, newest: u32, tried: u32) -> Result<FileKeys> {
        let oldest = dict.tree.oldest_key_version()?.unwrap_or(newest);
        let known = FileKeys { oldest, looked_micros: self.vfs.now_micros(), part: None, tried };
        self.key_rotation.files.lock().insert(dict.id, known);
        Ok(known)
    }

    fn note_part(&self, id: DictId, part: Option<f64>) {
        if let Some(known) = self.key_rotation.files.lock().get_mut(&id) {
            known.part = part;
        }
    }

    /// For [`Db::compact_dict`]: sleeps before each leaf until the last one is paid for. It is to go on as long as the table is there and it
    /// is wanted.
    fn paced<'a>(
        &'a self,
        dict: &'a Arc<Dict>,
        known: FileKeys,
        newest: u32,
    ) -> impl FnMut(f64) -> bool + 'a {
        let stats = dict.tree.stats();
        let bytes_of_leaf = stats.disk_bytes / stats.leaves.max(1);
        let mut next = self.vfs.now_micros();
        move |part| {
            self.note_part(dict.id, Some(part));
            let is_to_end =
                || self.background.stopping() || dict.is_dropped() || !self.is_old(known.oldest, newest);
            while self.vfs.now_micros() < next && !is_to_end() {
                std::thread::sleep(NAP);
            }
            let rate = self.key_rotation.rate.load(Ordering::Relaxed);
            let micros = (bytes_of_leaf * 1_000_000).checked_div(rate).unwrap_or(0);
            next = self.vfs.now_micros().max(next) + micros;
            !is_to_end()
        }
    }
}
