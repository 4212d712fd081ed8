//! The first pass over the log: what it is about, before anything of a table is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pando_base::{DictId, Result, Seqno};
use pando_run::RunMeta;
use pando_wal::{BatchKind, BatchReader, Entry};

use super::opening::Adoptions;
use crate::db::prepared::Unresolved;

/// Instead of the commit that adopts a run: there is none yet.
pub(super) const UNRESOLVED: Seqno = Seqno::MAX;

/// What an entry costs beside its key and value.
const ENTRY_BYTES: u64 = 64;

/// What the log is about.
pub(super) struct Survey {
    log_dir: PathBuf,
    /// The dictionaries that it names, each with about the bytes that it has for it.
    pub(super) named: BTreeMap<DictId, u64>,
    pub(super) adoptions: Adoptions,
    /// Prepared and not resolved, so far, by seqno.
    pub(super) unresolved: BTreeMap<Seqno, Unresolved>,
    /// Of the dictionary met last: its bytes not yet added.
    recent: (DictId, u64),
}

impl Survey {
    pub(super) fn new(log_dir: PathBuf) -> Survey {
        Survey {
            log_dir,
            named: BTreeMap::new(),
            adoptions: Adoptions::new(),
            unresolved: BTreeMap::new(),
            recent: (DictId(0), 0),
        }
    }

    /// Takes note of the next batch.
    pub(super) fn batch(&mut self, seqno: Seqno, batch: BatchReader<'_>) -> Result<()> {
        match batch.kind() {
            BatchKind::Commit => self.entries(seqno, seqno, batch)?,
            BatchKind::Prepare { xid } => self.keep(seqno, xid, batch),
            BatchKind::PrepareAnew { xid, previous } => {
                self.unresolved.remove(&previous);
                self.keep(seqno, xid, batch);
            }
            BatchKind::CommitPrepared { prepare } => {
                if let Some(found) = self.unresolved.remove(&prepare) {
                    self.entries(prepare, seqno, found.batch.entries())?;
                }
            }
            BatchKind::RollbackPrepared { prepare } => _ = self.unresolved.remove(&prepare),
        }
        Ok(())
    }

    /// The log's end: what is prepared and not resolved keeps its runs, whatever the checkpoints have.
    pub(super) fn end(&mut self) -> Result<()> {
        for (prepare, unresolved) in self.unresolved.clone() {
            for entry in unresolved.batch.entries() {
                if let Entry::Adopt { dict, run } = entry? {
                    self.adopt(prepare, UNRESOLVED, dict, run)?;
                    self.named.entry(dict).or_default();
                }
            }
        }
        self.add_recent();
        Ok(())
    }

    fn keep(&mut self, seqno: Seqno, xid: &[u8], batch: BatchReader<'_>) {
        let unresolved = Unresolved { seqno, xid: xid.to_vec(), batch: batch.to_batch() };
        self.unresolved.insert(seqno, unresolved);
    }

    /// Entries of a commit, which the log has under the seqno `logged`.
    fn entries(&mut self, logged: Seqno, seqno: Seqno, entries: BatchReader<'_>) -> Result<()> {
        for entry in entries {
            let entry = entry?;
            let dict = entry.dict();
            if self.recent.0 != dict {
                self.add_recent();
                self.recent = (dict, 0);
            }
            self.recent.1 += ENTRY_BYTES;
            match entry {
                Entry::Record { key, value, .. } => self.recent.1 += (key.len() + value.len()) as u64,
                Entry::Adopt { dict, run } => self.adopt(logged, seqno, dict, run)?,
                Entry::Truncate { .. } | Entry::AutoIncrement { .. } | Entry::DeleteRange { .. } => {}
            }
        }
        Ok(())
    }

    fn add_recent(&mut self) {
        let (dict, bytes) = self.recent;
        if bytes > 0 {
            *self.named.entry(dict).or_default() += bytes;
        }
    }

    fn adopt(&mut self, logged: Seqno, seqno: Seqno, dict: DictId, run: &[u8]) -> Result<()> {
        let meta = RunMeta::decode_private(run).map_err(|error| error.at(&self.log_dir, logged))?;
        self.adoptions.entry(dict).or_default().push((seqno, meta));
        Ok(())
    }
}
