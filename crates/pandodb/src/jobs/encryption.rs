//! Encryption of tables that are there, in the background, while everybody reads and writes: the long part of `ddl::encryption`, step 4.
//!
//! The thread that rotates keys (`jobs::key_rotation`) also
//!
//! 1. begins with tables that say nothing of encryption ([`Db::note_undecided`]), while it is told to ([`Db::set_encrypt_tables`]);
//! 2. goes on with what was begun, whatever it is told by now: rewrites the leaves of each file that is mixed, one after another, no faster than
//!    for a rotation, as long as its tree has plain blocks;
//! 3. ends with a file when nobody has plain blocks of it any more, neither a reader nor a transaction nor its checkpoint.
//!
//! A transaction that was open when the encryption began may commit runs from before: then the leaves are rewritten once more. A restart begins
//! with the first leaf of each file that is mixed. A table that cannot be encrypted waits, and the next ones go on. One whose file of large
//! values is away waits for that at its end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::DictId;

use crate::db::key_rotation::Encrypting;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::jobs::key_rotation::CHECKPOINT_BYTES;
use crate::reports::check::bytes_of_leaf;
use crate::table::{Dict, Table};

/// After a failure a table waits so long.
const RETRY_MICROS: u64 = 300 * 1_000_000;
/// How often the tree of a file is looked at that others keep from being encrypted as a whole.
const LOOK_MICROS: u64 = 60 * 1_000_000;

/// What of a table matters here.
struct Begun {
    id: u64,
    path: String,
    key_id: u32,
    dictionaries: Vec<DictId>,
}

impl Db {
    /// Whether tables that are there and say nothing of encryption ([`Db::note_undecided`]) are encrypted from now on. What has begun goes on.
    pub fn set_encrypt_tables(&self, encrypts: bool) {
        self.key_rotation.encrypts_tables.store(encrypts, Ordering::Relaxed);
    }

    /// The table says nothing of encryption, and would get this key. For those created by releases that did not record it
    /// ([`TableSpec::undecided_key_id`](crate::TableSpec::undecided_key_id)): known as long as the database is open. Nothing is noted of a
    /// table of another database.
    pub fn note_undecided(&self, table: &Table, key_id: u32) {
        if self.check_own(table).is_ok() {
            self.key_rotation.undecided.lock().insert(table.shared.id, key_id);
        }
    }

    /// Begins with tables that are to be encrypted, and goes on with those that were begun. A failure is a line in the log, and the next ones
    /// go on.
    pub fn encrypt_tables(&self) {
        if self.despite_damage {
            return;
        }
        self.begin_undecided();
        let all = self.begun_tables();
        for table in &all {
            if self.background.stopping() {
                return;
            }
            if self.is_waiting(table.id) {
                continue;
            }
            if let Err(error) = self.go_on_encrypting(table) {
                self.note_encryption_failure(table.id, &table.path, table.key_id, &error);
            }
        }
        let there: BTreeSet<DictId> =
            all.iter().flat_map(|table| table.dictionaries.iter().copied()).collect();
        self.key_rotation.encrypting.lock().retain(|id, _| there.contains(id));
    }

    fn begin_undecided(&self) {
        if !self.key_rotation.encrypts_tables.load(Ordering::Relaxed) {
            return;
        }
        let mut undecided = self.key_rotation.undecided.lock().clone();
        undecided.extend(self.catalog.of_tables(|table| {
            let key_id = table.undecided_key_id.filter(|_| table.key_id().is_none() && !table.temporary)?;
            Some((table.id, key_id))
        }));
        for (id, key_id) in undecided {
            if self.background.stopping() {
                return;
            }
            if self.is_waiting(id) {
                continue;
            }
            // By its id: another may have the name by now.
            let table =
                self.catalog.table_by_id(id).filter(|table| !table.temporary && table.key_id().is_none());
            let Some(table) = table else {
                self.key_rotation.undecided.lock().remove(&id);
                continue;
            };
            if let Err(error) = self.encrypt_table_by_id(id, key_id) {
                self.note_encryption_failure(id, &table.path, key_id, &error);
            }
        }
    }

    fn is_waiting(&self, table: u64) -> bool {
        let failed = self.key_rotation.encryption_failed_micros.lock().get(&table).copied();
        failed.is_some_and(|micros| self.vfs.now_micros().saturating_sub(micros) < RETRY_MICROS)
    }

    fn note_encryption_failure(&self, id: u64, path: &str, key_id: u32, error: &Error) {
        self.key_rotation.encryption_failed_micros.lock().insert(id, self.vfs.now_micros());
        if self.catalog.table_by_id(id).is_some() {
            let text = format!("cannot encrypt table {path} with key {key_id} now: {error}");
            self.log(LogLevel::Warning, &text);
        }
    }

    fn begun_tables(&self) -> Vec<Begun> {
        let mut tables = self.catalog.of_tables(|table| {
            let key_id = table.encrypting_key_id.filter(|_| !table.temporary)?;
            let dictionaries = table.all_dictionaries().map(|its| DictId(its.id)).collect();
            Some(Begun { id: table.id, path: table.path.clone(), key_id, dictionaries })
        });
        tables.sort_by(|a, b| a.path.cmp(&b.path));
        tables
    }

    fn go_on_encrypting(&self, table: &Begun) -> Result<()> {
        self.keys.latest_version(Path::new(&table.path), table.key_id)?;
        // What a crash or an error has left of it.
        self.encrypt_table_by_id(table.id, table.key_id)?;
        // It may have another name by now.
        let Some(path) = self.catalog.table_by_id(table.id).map(|table| table.path) else { return Ok(()) };
        let open = self.open_table(&path)?;
        let dicts: Vec<_> = open.all_dicts().cloned().collect();
        let large = open.large.as_ref().map(|large| large.dict.clone());
        // Nobody who drops it has to wait.
        drop(open);
        let mut is_whole = true;
        // A key that is damaged is given up for good.
        for dict in dicts.iter().filter(|dict| !dict.is_unusable()) {
            is_whole &= dict.is_dropped() || self.encrypt_dict(dict)?;
        }
        if let Some(large) = large.filter(|large| large.is_unusable()) {
            self.note_away(&path, table.key_id, &large);
            return Ok(());
        }
        if is_whole {
            self.end_encryption(table.id)?;
        }
        Ok(())
    }

    /// The file may come back with plain text, so its table is not through.
    fn note_away(&self, path: &str, key_id: u32, large: &Dict) {
        let mut is_told = false;
        self.note_encrypting(large.id, |known| {
            is_told = known.is_told;
            *known = Encrypting { is_told: true, ..Encrypting::default() };
        });
        if !is_told {
            let text = format!(
                "the encryption of table {path} with key {key_id} does not end without {}, which is damaged or missing: put \
                 it back and restart, or give its values up with REPAIR TABLE",
                large.file.path().display()
            );
            self.log(LogLevel::Warning, &text);
        }
    }

    /// Goes on with a file; says whether it is encrypted as a whole.
    fn encrypt_dict(&self, dict: &Arc<Dict>) -> Result<bool> {
        let is_done = self.rewrite_plain(dict);
        match is_done {
            Err(_) if dict.is_dropped() => Ok(true),
            is_done => {
                let is_done = is_done?;
                self.note_encrypting(dict.id, |known| (known.is_done, known.is_told) = (is_done, false));
                Ok(is_done)
            }
        }
    }

    fn rewrite_plain(&self, dict: &Arc<Dict>) -> Result<bool> {
        if !dict.file.is_mixed() {
            return Ok(dict.file.key_id().is_some());
        }
        let now = self.vfs.now_micros();
        let looked = self.key_rotation.encrypting.lock().get(&dict.id).map_or(0, |known| known.looked_micros);
        if !is_free_of_plain(dict) && (looked == 0 || now.saturating_sub(looked) >= LOOK_MICROS) {
            if dict.tree.may_be_plain() && !self.compact_dict(dict, &mut self.paced_encryption(dict))? {
                return Ok(false);
            }
            // The one before, and runs that only the log has named, are let go.
            self.checkpoint_dict(dict)?;
            self.note_encrypting(dict.id, |known| (known.part, known.looked_micros) = (1.0, now));
        }
        if !is_free_of_plain(dict) {
            return Ok(false);
        }
        // What was deleted as a range since the last checkpoint is not to be replayed from the log.
        self.checkpoint_dict(dict)?;
        if !is_free_of_plain(dict) || dict.tree.oldest_key_version()? == Some(0) {
            return Ok(false);
        }
        let mut goes_on = || !self.background.stopping() && !dict.is_dropped();
        let mut go_on = |bytes| self.key_rotation.pace.wait(&*self.vfs, bytes, &mut goes_on);
        Ok(dict.file.finish_encryption(&mut go_on)?)
    }

    fn note_encrypting(&self, id: DictId, change: impl FnOnce(&mut Encrypting)) {
        change(self.key_rotation.encrypting.lock().entry(id).or_default());
    }

    /// For [`Db::compact_dict`], as the rotation of keys does it.
    fn paced_encryption<'a>(&'a self, dict: &'a Arc<Dict>) -> impl FnMut(f64) -> bool + 'a {
        let bytes_of_leaf = bytes_of_leaf(dict);
        let mut since_checkpoint = 0;
        move |part| {
            self.note_encrypting(dict.id, |known| known.part = part);
            let mut goes_on = || !self.background.stopping() && !dict.is_dropped();
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

/// Nobody has a plain block, and nobody deletes a range, which an encrypted file has no place for.
fn is_free_of_plain(dict: &Dict) -> bool {
    dict.file.plain_extents() == 0 && dict.tree.has_no_ranges()
}
