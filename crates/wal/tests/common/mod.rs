//! What the log's tests share.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::{DictId, Error, Kind, Metrics, Result, Seqno};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_wal::{BatchBuilder, Entry, Replay, ReplayEnd, Wal, WalOptions};

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    Record(DictId, Kind, Vec<u8>, Vec<u8>),
    Truncate(DictId),
    AutoIncrement(DictId, u64),
    Adopt(DictId, Vec<u8>),
    DeleteRange(DictId, Vec<u8>, Option<Vec<u8>>),
}

impl From<Entry<'_>> for Owned {
    fn from(entry: Entry<'_>) -> Owned {
        match entry {
            Entry::Record { dict, kind, key, value } => {
                Owned::Record(dict, kind, key.to_vec(), value.to_vec())
            }
            Entry::Truncate { dict } => Owned::Truncate(dict),
            Entry::AutoIncrement { dict, next } => Owned::AutoIncrement(dict, next),
            Entry::Adopt { dict, run } => Owned::Adopt(dict, run.to_vec()),
            Entry::DeleteRange { dict, lo, hi } => {
                Owned::DeleteRange(dict, lo.to_vec(), hi.map(<[u8]>::to_vec))
            }
        }
    }
}

pub type Batches = Vec<(Seqno, Vec<Owned>)>;

pub fn dir() -> PathBuf {
    PathBuf::from("/data/#pando")
}

/// Small files, so that every test crosses their boundaries.
pub fn small() -> WalOptions {
    WalOptions { file_bytes: 16 << 10, buffer_bytes: 8 << 10, ..WalOptions::default() }
}

pub fn open_with(vfs: Arc<dyn Vfs>, dir: &Path, options: WalOptions) -> Result<(Wal, Replay, Arc<Metrics>)> {
    let metrics = Arc::new(Metrics::default());
    let (wal, replay) = Wal::create_or_open(vfs, dir, options, metrics.clone())?;
    Ok((wal, replay, metrics))
}

pub fn collect(replay: &mut Replay) -> Result<(Batches, ReplayEnd)> {
    let mut batches = Vec::new();
    let end = replay.for_each(|seqno, entries| {
        batches.push((seqno, entries.map(|entry| entry.map(Owned::from)).collect::<Result<_>>()?));
        Ok(())
    })?;
    Ok((batches, end))
}

/// Opens, replays and starts a log of small files.
pub fn recover(vfs: &Arc<SimVfs>) -> Result<(Wal, Batches, Arc<Metrics>)> {
    let (wal, mut replay, metrics) = open_with(vfs.clone(), &dir(), small())?;
    let (batches, end) = collect(&mut replay)?;
    wal.start(end.last_seqno + 1)?;
    Ok((wal, batches, metrics))
}

/// A batch with one record, its value of this length.
pub fn batch(n: u64, value_len: usize) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    let value: Vec<u8> = (0..value_len).map(|i| (i as u64 * 31 + n) as u8).collect();
    batch.record(DictId(1), Kind::Put, &n.to_be_bytes(), &value);
    batch
}

pub fn owned(n: u64, value_len: usize) -> Vec<Owned> {
    let value: Vec<u8> = (0..value_len).map(|i| (i as u64 * 31 + n) as u8).collect();
    vec![Owned::Record(DictId(1), Kind::Put, n.to_be_bytes().to_vec(), value)]
}

pub fn seqnos(batches: &Batches) -> Vec<Seqno> {
    batches.iter().map(|(seqno, _)| *seqno).collect()
}

pub fn is_read_only(error: &Error) -> bool {
    matches!(error, Error::ReadOnly { .. })
}
