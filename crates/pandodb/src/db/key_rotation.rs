//! What the rotation of keys (`jobs::key_rotation`) has been told, and knows.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

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
    /// When looking at these dictionaries or rewriting them failed last. A leaf among the locks.
    pub(crate) failed_micros: Mutex<BTreeMap<DictId, u64>>,
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
