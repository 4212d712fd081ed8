//! Backups: one moment of the whole database, pinned, so that its files can be copied while it goes on.
//!
//! **What is pinned.** At one moment, between two commits ([`Db::pin_backup`]):
//!
//! 1. every gate is closed, so that no commit is between its seqno and its records;
//! 2. the end of the log is noted: the backup is the state up to there;
//! 3. the log is held: no file of it is trimmed;
//! 4. each open dictionary's file is pinned: what its durable superblock leads to, and the private runs that the log
//!    names, are not given to others (`storage::space`, invariant 4; I2, I7);
//! 5. the gates are opened.
//!
//! That takes microseconds for each open dictionary and no I/O. Dictionaries that are not open are as their files say; who
//! opens one pins it at once, before anybody can change it ([`Db::pin_if_wanted`]). Indexes whose files cannot be used are left out.
//!
//! **What a copy is.** The log from the oldest file that is kept up to that end, and of each dictionary the pinned
//! superblock, the extents that it leads to, and those of the runs that the log has it adopt. This is what a crash at that
//! moment could have left, so recovery makes the database of it. The copier may be another process: it reads the files
//! themselves, in any order, and tells what it has: the log first, which then can be trimmed again, then dictionary after
//! dictionary, whose space is free again after it. So what a slow backup holds is at most what the tables had when it
//! began, and gets less.
//!
//! **DDL goes on.** A file that is to be removed is moved to `.pando/backup/` instead until it is copied ([`Db::keep_for_backup`]);
//! a renamed one is found where its table is now, because the copier asks before each file.
//!
//! **Whose it is.** A backup belongs to a session of the server and ends with it. It exists in memory only: after a crash
//! there is none, and the next start removes what is left in `.pando/backup/`.
//!
//! Lock order: the DDL mutex, the gates, then `state`, a leaf but for the space of tree files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error as EngineError};
use pando_storage::TreeFile;

use crate::catalog::descriptor::{DictDescriptor, TableDescriptor, CATALOG};
use crate::db::backups::{Active, BackupFile, BackupList, BackupLogFile, BackupSource, Pinned, Wanted};
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::error::Result;
use crate::table::Dict;

fn no_backup() -> EngineError {
    EngineError::NotFound { what: "a backup of this session".to_owned() }
}

impl Db {
    /// The session wants to take a backup: at the next end of a `BACKUP STAGE`, or when it says so, everything is pinned.
    ///
    /// # Errors
    /// Another session is at it.
    pub fn arm_backup(&self, owner: u64) -> Result<()> {
        let mut state = self.backups.state.lock();
        match &*state {
            Some(active) => {
                let what = format!("a backup, of session {},", active.owner);
                Err(EngineError::Exists { what }.into())
            }
            None => {
                *state = Some(Active { owner, pinned: None });
                Ok(())
            }
        }
    }

    /// Refuses who has not armed a backup.
    pub(crate) fn backup_is_of(&self, owner: u64) -> Result<()> {
        match &*self.backups.state.lock() {
            Some(active) if active.owner == owner => Ok(()),
            _ => Err(no_backup().into()),
        }
    }

    /// Whether a session wants or has a backup.
    pub fn has_backup(&self) -> bool {
        self.backups.state.lock().is_some()
    }

    /// Whether there are tables that a backup by others would lack.
    pub fn has_tables(&self) -> bool {
        !self.catalog.tables(|table| !table.temporary).is_empty()
    }

    /// Pins the state as it is now for the session that has armed a backup; instead of what was pinned for it before.
    /// False if none has.
    pub fn pin_backup(self: &Arc<Self>) -> bool {
        let _one_ddl = self.ddl.lock();
        if !self.has_backup() {
            return false;
        }
        let before = match &mut *self.backups.state.lock() {
            Some(active) => active.pinned.take(),
            None => return false,
        };
        let pins = before.as_ref().map_or(0, |before| before.pins) + 1;
        self.forget_pinned(before);
        let mut files = self.wanted_files();
        // In the order of commits.
        let dicts = self.open_dicts();
        // 1.
        let gates: Vec<_> = dicts.iter().map(|dict| dict.tree.close_gate()).collect();
        // 2.
        let (end, last_seqno) = self.wal.end();
        // 3.
        self.wal.hold();
        // 4.
        for dict in &dicts {
            if let Some(wanted) = files.get_mut(&dict.id) {
                wanted.take(dict);
            }
        }
        // 5.
        drop(gates);
        let pinned = Pinned { end, last_seqno, is_log_held: true, files, pins };
        let unwanted = match &mut *self.backups.state.lock() {
            Some(active) => active.pinned.replace(pinned),
            // The session has ended meanwhile.
            None => Some(pinned),
        };
        self.forget_pinned(unwanted);
        true
    }

    /// The dictionaries of all tables but those that a restart would remove and those that DDL is still to name.
    fn wanted_files(&self) -> BTreeMap<DictId, Wanted> {
        let wanted = |listed: BackupFile| (listed.dict, Wanted { listed, pin: None, moved: None });
        let mut files = BTreeMap::new();
        let catalog = Db::catalog_path(&self.backups.engine_dir);
        let file = catalog.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.extend([wanted(BackupFile { dict: CATALOG, table: String::new(), file, bytes: None })]);
        for table in self.catalog.tables(is_backed_up) {
            let usable = table.all_dictionaries().filter(|its| its.unusable.is_none());
            files.extend(usable.map(|dictionary| {
                let (dict, file) = (DictId(dictionary.id), dictionary.file.clone());
                wanted(BackupFile { dict, table: table.path.clone(), file, bytes: None })
            }));
        }
        files
    }

    /// Pins a dictionary that was just opened. The caller has the DDL mutex, and nobody else has the dictionary.
    pub(crate) fn pin_if_wanted(&self, dict: &Arc<Dict>) {
        let mut state = self.backups.state.lock();
        let pinned = state.as_mut().and_then(|active| active.pinned.as_mut());
        if let Some(wanted) = pinned.and_then(|pinned| pinned.files.get_mut(&dict.id)) {
            wanted.take(dict);
        }
    }

    /// Before files of a table are removed: those that a backup still wants are moved away. The caller has the DDL mutex.
    pub(crate) fn keep_for_backup(&self, dir: &Path, dictionaries: &[DictDescriptor]) {
        let mut state = self.backups.state.lock();
        let Some(pinned) = state.as_mut().and_then(|active| active.pinned.as_mut()) else { return };
        for dictionary in dictionaries {
            let id = DictId(dictionary.id);
            let Some(wanted) = pinned.files.get_mut(&id).filter(|wanted| wanted.moved.is_none()) else {
                continue;
            };
            let kept = self.backups.dir.join(format!("{id}.pando"));
            let moved = (self.vfs.create_dir_all(&self.backups.dir))
                .and_then(|()| self.vfs.rename(&dir.join(&dictionary.file), &kept));
            match moved {
                Ok(()) => {
                    if let Some((dict, _)) = &wanted.pin {
                        dict.file.set_path(&kept);
                    }
                    wanted.moved = Some(kept);
                }
                Err(error) => {
                    let text = format!("a backup will lack {}: {error}", wanted.listed.file);
                    self.log(LogLevel::Warning, &text);
                }
            }
        }
    }

    /// What the session's backup has.
    ///
    /// # Errors
    /// It has none, or nothing is pinned yet.
    pub fn backup_list(&self, owner: u64) -> Result<BackupList> {
        self.with_pinned(owner, |pinned| {
            let files = pinned.files.values().map(|wanted| {
                let bytes = wanted.pin.as_ref().map(|(dict, _)| dict.file.used_bytes());
                BackupFile { bytes, ..wanted.listed.clone() }
            });
            let files = files.collect();
            BackupList { last_seqno: pinned.last_seqno, end: pinned.end, pins: pinned.pins, files }
        })
    }

    /// The files of the log that the session's backup has; they stay until [`Db::backup_log_done`].
    ///
    /// # Errors
    /// It has no backup, or the log has failed.
    pub fn backup_log(&self, owner: u64) -> Result<Vec<BackupLogFile>> {
        let end = self.with_pinned(owner, |pinned| pinned.is_log_held.then_some(pinned.end))?;
        let end = end.ok_or_else(no_backup)?;
        let files = self.wal.files_up_to(end)?;
        Ok(files.into_iter().map(|file| BackupLogFile { path: file.path, bytes: file.bytes }).collect())
    }

    /// The session has copied the log.
    ///
    /// # Errors
    /// It has no backup.
    pub fn backup_log_done(&self, owner: u64) -> Result<()> {
        if self.with_pinned(owner, |pinned| std::mem::take(&mut pinned.is_log_held))? {
            self.wal.let_go();
        }
        Ok(())
    }

    /// Where the session finds a dictionary of its backup, which stays as it is until [`Db::backup_file_done`].
    ///
    /// # Errors
    /// It has no backup, or not that dictionary; the file is damaged or lost.
    pub fn backup_file(&self, owner: u64, dict: DictId) -> Result<BackupSource> {
        // Twice: it may be dropped while it is being opened.
        for _ in 0..2 {
            if let Some(source) = self.known_source(owner, dict)? {
                return Ok(source);
            }
            let has_it = |table: &TableDescriptor| table.has(dict);
            let Some(table) = self.catalog.tables(has_it).pop() else { continue };
            // Pins it.
            match self.open_table(&table.path) {
                Err(EngineError::NotFound { .. }) => {}
                opened => opened?.check_large_file(dict)?,
            }
        }
        let source = self.known_source(owner, dict)?;
        Ok(source.ok_or_else(|| EngineError::NotFound { what: format!("the file of dictionary {dict}") })?)
    }

    fn known_source(&self, owner: u64, dict: DictId) -> Result<Option<BackupSource>> {
        let source = self.with_pinned(owner, |pinned| {
            let wanted = pinned.files.get(&dict)?;
            if let Some((open, pin)) = &wanted.pin {
                return Some(Ok((open.file.path(), Some(pin.superblock().clone()))));
            }
            let moved = wanted.moved.clone().map(|path| Ok((path, None)));
            moved.or(Some(Err(())))
        })?;
        match source {
            None => Err(EngineError::NotFound { what: format!("dictionary {dict} in this backup") }.into()),
            Some(Err(())) => Ok(None),
            Some(Ok((path, Some(superblock)))) => Ok(Some(BackupSource { path, superblock })),
            Some(Ok((path, None))) => {
                // It was not open when it was dropped, so its file is as it was.
                let (_, superblock) = TreeFile::open(&self.vfs, &path, dict)?;
                Ok(Some(BackupSource { path, superblock }))
            }
        }
    }

    /// The session has copied this dictionary, or does not want it.
    ///
    /// # Errors
    /// It has no backup.
    pub fn backup_file_done(&self, owner: u64, dict: DictId) -> Result<()> {
        let wanted = self.with_pinned(owner, |pinned| pinned.files.remove(&dict))?;
        self.forget_wanted(wanted);
        Ok(())
    }

    /// The session's backup, if it has one, is over.
    pub fn end_backup(&self, owner: u64) {
        let ended = {
            let mut state = self.backups.state.lock();
            match &*state {
                Some(active) if active.owner == owner => state.take(),
                _ => None,
            }
        };
        self.forget_pinned(ended.and_then(|active| active.pinned));
    }

    /// Bytes that would be free without the backup, and dictionaries that it has not copied.
    pub(crate) fn backup_figures(&self) -> (u64, u64) {
        let state = self.backups.state.lock();
        let Some(pinned) = state.as_ref().and_then(|active| active.pinned.as_ref()) else { return (0, 0) };
        let held = pinned.files.values().filter_map(|wanted| wanted.pin.as_ref());
        (held.map(|(_, pin)| pin.held_bytes()).sum(), pinned.files.len() as u64)
    }

    fn with_pinned<T>(&self, owner: u64, f: impl FnOnce(&mut Pinned) -> T) -> Result<T> {
        let mut state = self.backups.state.lock();
        let active = state.as_mut().filter(|active| active.owner == owner);
        let pinned = active.and_then(|active| active.pinned.as_mut()).ok_or_else(no_backup)?;
        Ok(f(pinned))
    }

    fn forget_pinned(&self, pinned: Option<Pinned>) {
        let Some(pinned) = pinned else { return };
        if pinned.is_log_held {
            self.wal.let_go();
        }
        self.forget_wanted(pinned.files.into_values());
    }

    /// Outside the mutex: files are closed and removed here.
    fn forget_wanted(&self, wanted: impl IntoIterator<Item = Wanted>) {
        for wanted in wanted {
            let user = wanted.pin.as_ref().map(|(dict, _)| dict.file.clone());
            drop(wanted.pin);
            let Some(path) = wanted.moved else { continue };
            self.removed.keep(&*self.vfs, &path, user.as_ref());
            if let Err(error) = self.vfs.remove_file(&path) {
                self.log(LogLevel::Warning, &format!("cannot remove {} now: {error}", path.display()));
            }
        }
    }
}

/// Not tables that a restart would remove, nor those under a name that DDL uses for a while: whoever restores a backup
/// drops them.
pub(crate) fn is_backed_up(table: &TableDescriptor) -> bool {
    let name = table.path.rsplit('/').next().unwrap_or_default();
    !table.temporary && !name.starts_with("#sql")
}
