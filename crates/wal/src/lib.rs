//! Write-ahead log (signatures first; bodies follow).
#![allow(clippy::todo, unused_variables, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::{DictId, Error, Kind, Metrics, Result, Seqno};
use pando_storage::vfs::Vfs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlushMode { Lazy = 0, Commit = 1, Write = 2 }
impl FlushMode { pub fn from_number(n: u64) -> Option<FlushMode> { todo!() } }

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lsn(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Record { dict: DictId, kind: Kind, key: &'a [u8], value: &'a [u8] },
    Truncate { dict: DictId },
    AutoIncrement { dict: DictId, next: u64 },
}

#[derive(Debug, Default, Clone)]
pub struct BatchBuilder { bytes: Vec<u8> }
impl BatchBuilder {
    pub fn new() -> BatchBuilder { todo!() }
    pub fn record(&mut self, dict: DictId, kind: Kind, key: &[u8], value: &[u8]) { todo!() }
    pub fn truncate(&mut self, dict: DictId) { todo!() }
    pub fn auto_increment(&mut self, dict: DictId, next: u64) { todo!() }
    pub fn is_empty(&self) -> bool { todo!() }
    pub fn bytes_len(&self) -> usize { todo!() }
    pub fn clear(&mut self) { todo!() }
}

/// Iterator over the entries of one batch.
#[derive(Debug, Clone)]
pub struct BatchReader<'a> { bytes: &'a [u8] }
impl<'a> Iterator for BatchReader<'a> {
    type Item = Result<Entry<'a>>;
    fn next(&mut self) -> Option<Self::Item> { todo!() }
}

#[derive(Clone, Debug)]
pub struct WalOptions { pub file_bytes: u64, pub buffer_bytes: usize }
impl Default for WalOptions { fn default() -> Self { todo!() } }

#[derive(Clone, Copy, Debug)]
pub struct Appended { pub seqno: Seqno, pub lsn: Lsn }

#[derive(Clone, Debug)]
pub struct LogFileInfo { pub number: u64, pub path: PathBuf, pub first_seqno: Seqno, pub bytes: u64 }

#[derive(Clone, Debug)]
pub struct TornTail { pub path: PathBuf, pub offset: u64, pub what: String }

#[derive(Clone, Debug)]
pub struct ReplayEnd { pub last_seqno: Seqno, pub batches: u64, pub bytes: u64, pub end: Lsn, pub torn: Option<TornTail> }

#[derive(Debug)]
pub struct Replay {}
impl Replay {
    /// Lowest seqno the kept files may hold; `None` for a new log.
    pub fn oldest_seqno(&self) -> Option<Seqno> { todo!() }
    pub fn bytes(&self) -> u64 { todo!() }
    pub fn for_each(&mut self, f: impl FnMut(Seqno, BatchReader<'_>) -> Result<()>) -> Result<ReplayEnd> { todo!() }
}

#[derive(Debug)]
pub struct Wal {}
impl Wal {
    pub fn create_or_open(vfs: Arc<dyn Vfs>, dir: &Path, options: WalOptions, metrics: Arc<Metrics>) -> Result<(Wal, Replay)> { todo!() }
    /// Once, after a complete replay pass.
    pub fn start(&self, next_seqno: Seqno) -> Result<()> { todo!() }
    pub fn append(&self, batch: &BatchBuilder) -> Result<Appended> { todo!() }
    pub fn wait(&self, lsn: Lsn, mode: FlushMode) -> Result<()> { todo!() }
    pub fn sync_up_to_seqno(&self, seqno: Seqno) -> Result<()> { todo!() }
    pub fn sync_all(&self) -> Result<()> { todo!() }
    pub fn tick(&self) -> Result<()> { todo!() }
    pub fn last_seqno(&self) -> Seqno { todo!() }
    pub fn trim(&self, keep_from: Seqno) -> Result<()> { todo!() }
    pub fn kept_bytes(&self) -> u64 { todo!() }
    pub fn files(&self) -> Vec<LogFileInfo> { todo!() }
    pub fn failed(&self) -> Option<Error> { todo!() }
}
