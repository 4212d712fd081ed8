//! What the rotation of keys (`jobs::key_rotation`) has been told, and knows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32};

use pando_base::locks::Mutex;
use pando_base::DictId;

use crate::db::pace::Pace;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct KeyRotation {
    /// Versions that a block may be behind; 0: none is ever rewritten.
    pub(crate) age: AtomicU32,
    /// How fast files are rewritten.
    pub(crate) pace: Pace,
    /// Of encrypted dictionaries that were looked at. A leaf among the locks.
    pub(crate) files: Mutex<BTreeMap<DictId, FileKeys>>,
    /// The log's key had this version when its newest file was begun for it; 0: nobody has looked in this life.
    pub(crate) log_version: AtomicU32,
    /// Whether tables are encrypted in place that say nothing of it.
    pub(crate) encrypts_tables: AtomicBool,
    /// Tables that say nothing of encryption, by their ids, and the keys that they are to get. A leaf among the locks.
    pub(crate) undecided: Mutex<BTreeMap<u64, u32>>,
    /// Dictionaries of tables that are being encrypted. A leaf among the locks.
    pub(crate) encrypting: Mutex<BTreeMap<DictId, Encrypting>>,
    /// When encrypting these tables failed last, by their ids. A leaf among the locks.
    pub(crate) encryption_failed_micros: Mutex<BTreeMap<u64, u64>>,
    /// When looking at these dictionaries or rewriting them failed last. A leaf among the locks.
    pub(crate) failed_micros: Mutex<BTreeMap<DictId, u64>>,
}

/// How far the encryption of a file is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encrypting {
    /// The part that is rewritten.
    pub(crate) part: f64,
    /// When it was rewritten or looked at last.
    pub(crate) looked_micros: u64,
    /// It is encrypted as a whole.
    pub(crate) is_done: bool,
    /// It is away, and the log says that the table waits for it.
    pub(crate) is_told: bool,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKeys {
    /// The oldest version of a block.
    pub(crate) oldest: u32,
    /// When it was looked at.
    pub(crate) looked_micros: u64,
    /// While it is rewritten: the part that is done.
    pub(crate) part: Option<f64>,
    /// It was rewritten when this was the newest version, and is not again: what is older all the same has come since.
    pub(crate) tried: u32,
}
