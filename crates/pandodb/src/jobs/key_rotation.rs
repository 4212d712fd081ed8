//! Rotation of keys: when the key management has a newer version of a table's key, the table is written anew with it, in the
//! background, so that the old version is needed no longer.
//!
//! What is written gets the newest version anyway; old blocks stay until they are merged. A thread looks now and then whether some file has
//! blocks of a version that is [`Db::set_key_rotation`]'s age behind, and if so rewrites the file's leaves one after another, as OPTIMIZE TABLE
//! does, no faster than it may. Nobody waits for it.
//!
//! How old a file's blocks are is found out from the first bytes of each run and node ([`pando_tree::Tree::oldest_key_version`]), and
//! kept in memory. It is looked at again after some hours: a transaction that was open at the time may have committed runs from before.
//! Until then nothing is opened or read for it. A file that cannot be rewritten waits as long: each try would begin with its first leaf.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use pando_base::DictId;
use pando_wal::LOG_KEY_ID;

use crate::catalog::descriptor::{table_dir, DictDescriptor};
use crate::db::key_rotation::FileKeys;
use crate::db::options::LogLevel;
use crate::db::scheduler::{Background, TICK};
use crate::db::Db;
use crate::error::Result;
use crate::reports::check::bytes_of_leaf;
use crate::table::Dict;

/// How often the versions of keys are asked for.
const PERIOD_MICROS: u64 = 5_000_000;
/// How long it is believed how old a file's blocks are, and that it cannot be rewritten.
const BELIEVED_MICROS: u64 = 6 * 3600 * 1_000_000;
/// After so many rewritten bytes what they replace is made free for the next ones: nobody has asked for a file of twice its size.
pub(super) const CHECKPOINT_BYTES: u64 = 64 << 20;

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
    /// The oldest version of a block; `None`: nobody has looked yet, or nobody can, as the file is damaged or missing.
    pub oldest: Option<u32>,
    /// While it is rewritten, for a new version or because it is being encrypted in place: the part that is done.
    pub part: Option<f64>,
}

/// What of an encrypted table matters here: a descriptor has much more.
struct EncryptedTable {
    path: String,
    key_id: u32,
    /// It is being encrypted in place.
    is_begun: bool,
    files: Vec<EncryptedFile>,
}

struct EncryptedFile {
    id: DictId,
    name: String,
    file: String,
    /// That of a damaged key, which nobody reads any more.
    is_given_up: bool,
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
            db.encrypt_tables();
            db.rotate_old_keys();
            due = db.vfs.now_micros() + PERIOD_MICROS;
        }
    }
}

impl Db {
    /// From now on files are rewritten in the background that have blocks whose key is so many versions old or older, at so many bytes a
    /// second. 0: none is; and as fast as it goes.
    pub fn set_key_rotation(&self, age: u32, bytes_per_second: u64) {
        self.key_rotation.pace.set(bytes_per_second);
        self.key_rotation.age.store(age, Ordering::Relaxed);
    }

    /// Rewrites what is to be rewritten now, one file after another. A failure is a line in the log, and the next ones go on.
    pub fn rotate_old_keys(&self) {
        if self.despite_damage || self.key_rotation.age.load(Ordering::Relaxed) == 0 {
            return;
        }
        let tables = self.encrypted_tables();
        for table in &tables {
            if self.background.stopping() {
                return;
            }
            let Ok(newest) = self.keys.latest_version(Path::new(&table.path), table.key_id) else { continue };
            let ids = self.ids_to_rotate(table);
            let ids = || ids.iter().copied();
            ids().for_each(|id| self.note_version_written(id, newest));
            // Versions count from 1: without a second one nothing has to be looked at.
            if !self.is_old(1, newest) {
                continue;
            }
            if !ids().any(|id| self.is_rotation_due(id, newest)) {
                continue;
            }
            let Ok(open) = self.open_table(&table.path) else {
                // Who needs it is told why.
                ids().for_each(|id| self.note_rotation_failure(id));
                continue;
            };
            let dicts: Vec<_> = open.all_dicts().cloned().collect();
            // Nobody who drops it has to wait.
            drop(open);
            let is_due =
                |dict: &&Arc<Dict>| ids().any(|id| id == dict.id) && self.is_rotation_due(dict.id, newest);
            for dict in dicts.iter().filter(is_due) {
                let is_away = dict.is_unusable();
                let failed = match is_away {
                    true => {
                        Some("the file is damaged or missing, and may need old versions of it".to_owned())
                    }
                    false => self.rotate_dict(dict, newest).err().map(|error| error.to_string()),
                };
                if let Some(failed) = failed.filter(|_| is_away || !dict.is_dropped()) {
                    self.note_rotation_failure(dict.id);
                    let path = dict.file.path();
                    let text = format!("cannot rewrite {} with its new key: {failed}", path.display());
                    self.log(LogLevel::Warning, &text);
                }
            }
        }
        let there: BTreeSet<DictId> =
            tables.iter().flat_map(|table| &table.files).map(|file| file.id).collect();
        self.key_rotation.files.lock().retain(|id, _| there.contains(id));
        self.key_rotation.failed_micros.lock().retain(|id, _| there.contains(id));
        if !tables.is_empty() {
            self.rotate_log();
        }
    }

    /// Its files without those that were given up, and without those that are being encrypted and not through.
    fn ids_to_rotate(&self, table: &EncryptedTable) -> Vec<DictId> {
        let encrypting = self.key_rotation.encrypting.lock();
        let is_through =
            |id: &DictId| !table.is_begun || encrypting.get(id).is_some_and(|known| known.is_done);
        let files = table.files.iter().filter(|file| !file.is_given_up);
        files.map(|file| file.id).filter(is_through).collect()
    }

    /// A quiet server would keep the log's newest file for weeks, and start after a crash only with the key of its first batch. So
    /// a new file is begun; the checkpoints that are due anyway let the ones before go.
    fn rotate_log(&self) {
        let Ok(newest) = self.keys.latest_version(&self.base_dir, LOG_KEY_ID) else { return };
        let begun_with = &self.key_rotation.log_version;
        if !self.is_old(begun_with.load(Ordering::Relaxed).max(1), newest) {
            return;
        }
        match self.wal.begin_new_file() {
            Ok(()) if self.wal.lacks_space() => {}
            Ok(()) => begun_with.store(newest, Ordering::Relaxed),
            Err(error) => {
                // As good as done: who writes is told.
                begun_with.store(newest, Ordering::Relaxed);
                self.log(LogLevel::Warning, &format!("no new log file for a new key: {error}"));
            }
        }
    }

    /// Forgets what is known of files, as it is forgotten after some hours.
    #[doc(hidden)]
    pub fn key_rotation_looks_again(&self) {
        self.key_rotation.files.lock().clear();
        self.key_rotation.failed_micros.lock().clear();
        self.key_rotation.encryption_failed_micros.lock().clear();
        self.key_rotation.encrypting.lock().values_mut().for_each(|known| known.looked_micros = 0);
    }

    /// Which versions of their keys the files of encrypted tables have, by the tables' names.
    pub fn key_uses(&self) -> Vec<KeyUse> {
        let known = self.key_rotation.files.lock().clone();
        let encrypting = self.key_rotation.encrypting.lock().clone();
        let mut uses = Vec::new();
        for table in self.encrypted_tables() {
            let newest = self.keys.latest_version(Path::new(&table.path), table.key_id).ok();
            let dir = table_dir(Path::new(""), &table.path);
            let key_id = table.key_id;
            for EncryptedFile { id, name, file, is_given_up } in table.files {
                let known = known.get(&id);
                let begun = table.is_begun.then(|| encrypting.get(&id).copied().unwrap_or_default());
                let is_away = is_given_up || self.dict(id).is_some_and(|dict| dict.is_unusable());
                // There never was another one.
                let first = newest.filter(|newest| *newest == 1);
                let (oldest, part) = match begun.filter(|begun| !begun.is_done) {
                    _ if is_given_up => (None, None),
                    Some(begun) => (None, Some(begun.part)),
                    None if is_away => (None, None),
                    None => (known.map(|known| known.oldest).or(first), known.and_then(|known| known.part)),
                };
                let (table, file) = (table.path.clone(), dir.join(&file).display().to_string());
                uses.push(KeyUse { table, name, file, id: id.0, key_id, newest, oldest, part });
            }
        }
        uses
    }

    /// By their names.
    fn encrypted_tables(&self) -> Vec<EncryptedTable> {
        let mut tables = self.catalog.of_tables(|table| {
            let key_id = table.key_id().filter(|_| !table.temporary)?;
            let is_begun = table.encrypting_key_id.is_some();
            let of = |its: &DictDescriptor| EncryptedFile {
                id: DictId(its.id),
                name: its.name.clone(),
                file: its.file.clone(),
                is_given_up: its.unusable.is_some(),
            };
            let files = table.all_dictionaries().map(of).collect();
            Some(EncryptedTable { path: table.path.clone(), key_id, is_begun, files })
        });
        tables.sort_by(|a, b| a.path.cmp(&b.path));
        tables
    }

    fn is_old(&self, oldest: u32, newest: u32) -> bool {
        let age = self.key_rotation.age.load(Ordering::Relaxed);
        age > 0 && newest.saturating_sub(oldest) >= age
    }

    /// What is known of a file and still believed.
    fn believed_keys(&self, id: DictId) -> Option<FileKeys> {
        let known = self.key_rotation.files.lock().get(&id).copied()?;
        self.is_believed(known.looked_micros).then_some(known)
    }

    fn is_believed(&self, micros: u64) -> bool {
        self.vfs.now_micros().saturating_sub(micros) < BELIEVED_MICROS
    }

    /// A key management whose versions go back: what is written now has a version before the oldest one that was seen.
    fn note_version_written(&self, id: DictId, version: u32) {
        if let Some(known) =
            self.key_rotation.files.lock().get_mut(&id).filter(|known| known.oldest > version)
        {
            (known.oldest, known.tried) = (version, 0);
        }
    }

    fn note_rotation_failure(&self, id: DictId) {
        self.key_rotation.failed_micros.lock().insert(id, self.vfs.now_micros());
    }

    /// Whether a file is to be looked at or rewritten, by what is in memory.
    fn is_rotation_due(&self, id: DictId, newest: u32) -> bool {
        let failed = self.key_rotation.failed_micros.lock().get(&id).copied();
        !failed.is_some_and(|micros| self.is_believed(micros))
            && self
                .believed_keys(id)
                .is_none_or(|known| self.is_old(known.oldest, newest) && known.tried != newest)
    }

    fn rotate_dict(&self, dict: &Arc<Dict>, newest: u32) -> Result<()> {
        let known = match self.believed_keys(dict.id) {
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

    /// For [`Db::compact_dict`]: sleeps before each leaf until the last one is paid for, of this file or another one. It is to go on as long
    /// as the table is there and it is wanted.
    fn paced<'a>(
        &'a self,
        dict: &'a Arc<Dict>,
        known: FileKeys,
        newest: u32,
    ) -> impl FnMut(f64) -> bool + 'a {
        let bytes_of_leaf = bytes_of_leaf(dict);
        let mut since_checkpoint = 0;
        move |part| {
            self.note_part(dict.id, Some(part));
            let mut goes_on =
                || !self.background.stopping() && !dict.is_dropped() && self.is_old(known.oldest, newest);
            if !self.key_rotation.pace.wait(&*self.vfs, bytes_of_leaf, &mut goes_on) {
                return false;
            }
            since_checkpoint += bytes_of_leaf;
            if since_checkpoint >= CHECKPOINT_BYTES {
                since_checkpoint = 0;
                self.checkpoint_or_note(dict);
            }
            true
        }
    }
}
