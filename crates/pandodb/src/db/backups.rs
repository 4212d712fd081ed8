//! The backup that is being taken: what it has pinned. `backup::pin` tells its life.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{DictId, Seqno};
use pando_storage::vfs::Vfs;
use pando_storage::{FilePin, Superblock};
use pando_wal::Lsn;

use crate::table::Dict;

/// Where files wait that were dropped before they were copied.
const KEPT_DIR: &str = "backup";

/// The backup that is being taken, if any.
#[derive(Debug)]
pub(crate) struct Backups {
    pub engine_dir: PathBuf,
    pub dir: PathBuf,
    pub state: Mutex<Option<Active>>,
}

#[derive(Debug)]
pub(crate) struct Active {
    pub owner: u64,
    pub pinned: Option<Pinned>,
}

/// One moment of the database.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub end: Lsn,
    pub last_seqno: Seqno,
    /// Until it is copied.
    pub is_log_held: bool,
    /// What is still to be copied.
    pub files: BTreeMap<DictId, Wanted>,
    /// How many times the owner's backup was pinned: more than once means that two backups ran.
    pub pins: u64,
}

/// A dictionary that is to be copied.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub listed: BackupFile,
    /// Held while it is open. The dictionary, too, so that nobody closes the file and opens it again.
    pub pin: Option<(Arc<Dict>, FilePin)>,
    /// Its file, after the table was dropped.
    pub moved: Option<PathBuf>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// The dictionary that it holds.
    pub dict: DictId,
    /// The table, as `database/table`; empty for the catalog.
    pub table: String,
    /// Name of the file in the table's directory.
    pub file: String,
    /// Bytes in use in it, as far as that is known without opening it.
    pub bytes: Option<u64>,
}

/// What a backup has, in the order of the dictionaries' numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupList {
    /// The last commit in it.
    pub last_seqno: Seqno,
    /// Where its log ends.
    pub end: Lsn,
    /// How many times it was pinned.
    pub pins: u64,
    /// Its dictionaries.
    pub files: Vec<BackupFile>,
}

/// Where to copy a dictionary from, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSource {
    /// Its file now. After a rename it is elsewhere: whoever does not find it there asks again.
    pub path: PathBuf,
    /// What leads to the pinned tree.
    pub superblock: Superblock,
}

/// A file of the log, and how much of it belongs to the backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupLogFile {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of it from its start.
    pub bytes: u64,
}

impl Backups {
    pub(crate) fn new(engine_dir: &Path) -> Backups {
        Backups { engine_dir: engine_dir.to_owned(), dir: engine_dir.join(KEPT_DIR), state: Mutex::default() }
    }

    /// At the start: what a backup before a crash had kept.
    pub(crate) fn remove_leftovers(&self, vfs: &dyn Vfs) -> pando_base::Result<()> {
        match vfs.exists(&self.dir)? {
            true => vfs.remove_dir_all(&self.dir),
            false => Ok(()),
        }
    }
}

impl Wanted {
    /// Pins it, unless its file cannot be used.
    pub(crate) fn take(&mut self, dict: &Arc<Dict>) {
        if self.pin.is_none() && dict.unusable.get().is_none() {
            self.pin = dict.file.pin().map(|pin| (dict.clone(), pin));
        }
    }
}
