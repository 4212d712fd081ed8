//! What was written to a unique index while it was built: from the journal (`building`) to the entries that
//! the index has to have, and the proof that no two rows have the same key.
//!
//! For a key `k` the rows that have it are those with an entry `(k, value)` in the journal, and the one that
//! the index's tree names, if the journal says nothing of that entry: then it comes from the base, and
//! its row has not changed since. (If the journal does say something, it knows better.) None: the key is not
//! to be in the index. One: that is its entry. Several: a duplicate, if only for now; the key is looked at
//! again by the last run, when nobody can write.
//!
//! A run looks at the keys that were written since the run before, and corrects the tree in commits of
//! its own. Several runs while others write leave the last one few keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_base::Seqno;
use pando_txn::Snapshot;

use crate::db::Db;
use crate::error::{Error, Result};
use crate::table::building::{entry_of, journal_key};
use crate::table::clustering::Clustering;
use crate::table::Dict;

/// Corrections in one commit.
const CORRECTIONS_MAX: usize = 1000;
/// Keys that were duplicates when they were looked at. More than these will not all turn out not to be.
const DOUBTFUL_MAX: usize = 100_000;

/// The state of the checks of one index.
#[derive(Debug)]
pub(crate) struct Validation {
    dict: Arc<Dict>,
    journal: Arc<Dict>,
    clustering: Clustering,
    /// Everything up to here has been looked at, but for `doubtful`.
    checked: Seqno,
    doubtful: BTreeSet<Vec<u8>>,
    duplicate: Option<(Vec<u8>, Vec<u8>)>,
}

/// What is to be in the tree under a key: `None` is nothing.
type Correction = (Vec<u8>, Option<Vec<u8>>);

/// One run.
struct Pass<'a> {
    db: &'a Arc<Db>,
    dict: &'a Arc<Dict>,
    journal: &'a Arc<Dict>,
    clustering: Clustering,
    at: Snapshot,
    corrections: Vec<Correction>,
    seen: u64,
}

/// What a key turned out to be.
enum Found {
    Settled,
    Duplicate(Vec<u8>),
}

impl Validation {
    pub(crate) fn new(
        dict: &Arc<Dict>,
        journal: Arc<Dict>,
        clustering: Clustering,
        seqno: Seqno,
    ) -> Validation {
        let (dict, doubtful) = (dict.clone(), BTreeSet::new());
        Validation { dict, journal, clustering, checked: seqno, doubtful, duplicate: None }
    }

    pub(crate) fn duplicate(&self) -> Option<(&[u8], &[u8])> {
        self.duplicate.as_ref().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Looks at what was written since the last run. Errors: `is_last` and a key is there twice; or so many
    /// are that they will be then; killed; I/O.
    pub(crate) fn run(
        &mut self,
        db: &Arc<Db>,
        index: usize,
        is_last: bool,
        is_killed: &mut dyn FnMut() -> bool,
    ) -> Result<u64> {
        let at = db.snapshots.take();
        let upto = at.seqno();
        if self.journal.tree.last_write() <= self.checked && self.doubtful.is_empty() {
            return Ok(0);
        }
        // What comes later is in other memtables: the next run need not look into this one.
        if self.journal.tree.seal(|| db.wal.last_seqno()) {
            db.background.request(&self.journal);
        }
        let (dict, journal, clustering) = (&self.dict, &self.journal, self.clustering);
        let mut pass = Pass { db, dict, journal, clustering, at, corrections: Vec::new(), seen: 0 };
        let mut doubtful = BTreeSet::new();
        let mut settle = |key: &[u8], pass: &mut Pass<'_>| -> Result<()> {
            match pass.settle(key)? {
                Found::Settled => {}
                Found::Duplicate(value) if is_last || doubtful.len() >= DOUBTFUL_MAX => {
                    self.duplicate = Some((key.to_vec(), value));
                    return Err(Error::Duplicate { index, existing: Vec::new() });
                }
                Found::Duplicate(_) => _ = doubtful.insert(key.to_vec()),
            }
            match pass.seen % 256 == 0 && is_killed() {
                true => Err(Error::Killed),
                false => Ok(()),
            }
        };
        for key in &self.doubtful {
            settle(key, &mut pass)?;
        }
        let mut last: Option<Vec<u8>> = None;
        self.journal.tree.for_each_changed_key(self.checked, |whole| -> Result<()> {
            let Some((key, _)) = entry_of(whole) else {
                let path = self.journal.file.path();
                let damage = pando_base::Error::corruption(&path, 0, "journal", "a key's length", "none");
                return Err(damage.into());
            };
            if last.as_deref() == Some(key) {
                return Ok(());
            }
            last = Some(key.to_vec());
            settle(key, &mut pass)
        })?;
        pass.commit()?;
        let seen = pass.seen;
        self.doubtful = doubtful;
        self.checked = upto;
        Ok(seen)
    }
}

impl Pass<'_> {
    /// Looks at one key.
    fn settle(&mut self, key: &[u8]) -> Result<Found> {
        self.seen += 1;
        let mut rows: Vec<Vec<u8>> = Vec::new();
        let mut cursor = self.journal.tree.cursor(self.at.seqno());
        cursor.seek(key)?;
        while cursor.valid() && cursor.key().starts_with(key) {
            if let Some((_, name)) = entry_of(cursor.key()).filter(|(its, _)| *its == key) {
                rows.push(if self.clustering.is_none() { name.to_vec() } else { cursor.value().to_vec() });
            }
            cursor.next()?;
        }
        let current = self.dict.tree.get(key, Seqno::MAX)?;
        if let Some(current) = current.as_ref().filter(|current| !rows.contains(current)) {
            if !self.is_written(&journal_key(key, self.clustering.name_of(current)))? {
                rows.push(current.clone());
            }
        }
        if rows.len() > 1 {
            return Ok(Found::Duplicate(rows.pop().unwrap_or_default()));
        }
        let wanted = rows.pop();
        if wanted != current {
            self.corrections.push((key.to_vec(), wanted));
            if self.corrections.len() >= CORRECTIONS_MAX {
                self.commit()?;
            }
        }
        Ok(Found::Settled)
    }

    /// Whether the journal has a version of this key, if only a delete.
    fn is_written(&self, whole: &[u8]) -> Result<bool> {
        Ok(self.journal.tree.knows(whole, self.at.seqno())?)
    }

    fn commit(&mut self) -> Result<()> {
        if self.corrections.is_empty() {
            return Ok(());
        }
        let mut txn = self.db.begin();
        txn.touch(self.dict);
        {
            let mut writes = txn.writes().write();
            for (key, value) in self.corrections.drain(..) {
                match value {
                    Some(value) => writes.set.put(self.dict.id, &key, &value),
                    None => writes.set.delete(self.dict.id, &key),
                }
            }
        }
        txn.commit()
    }
}
