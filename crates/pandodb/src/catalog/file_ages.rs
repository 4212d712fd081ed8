//! How old the file of a dictionary may be.
//!
//! The files of a table, and the log, belong together: what a file's last checkpoint lacks is in the log. An older copy of a
//! file lacks what was logged since, and the log may have been trimmed meanwhile: rows would be missing in one key and there
//! in another, without a word. So before log is given up, the catalog notes the number of each file's checkpoint
//! ([`Db::note_file_ages`](crate::Db)), and a file with an earlier one is not opened. While the log is whole, nothing is noted:
//! an older file is brought up to date by recovery.
//!
//! Only dictionaries that were checkpointed since the last note are written, in one commit for each file of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pando_base::{DictId, Error, Result};

/// Of a dictionary's note; behind it its number, big-endian. The value is the number of the checkpoint.
pub(crate) const AGE_PREFIX: u8 = b'e';

/// What is noted, and what is to be.
#[derive(Debug, Default)]
pub(crate) struct FileAges {
    noted: BTreeMap<DictId, u64>,
    /// Checkpoints since.
    made: BTreeMap<DictId, u64>,
}

/// What is to be noted now: dictionaries with their checkpoints, and those that are gone (`None`).
pub(crate) type AgesChange = Vec<(DictId, Option<u64>)>;

impl FileAges {
    /// The key of a dictionary's note.
    pub(crate) fn key(dict: DictId) -> Vec<u8> {
        let mut key = vec![AGE_PREFIX];
        key.extend_from_slice(&dict.0.to_be_bytes());
        key
    }

    /// The catalog has this note.
    pub(crate) fn load(&mut self, dict: DictId, epoch: u64) {
        self.noted.insert(dict, epoch);
    }

    /// This checkpoint is durable in the dictionary's file.
    pub(crate) fn made(&mut self, dict: DictId, epoch: u64) {
        self.made.insert(dict, epoch);
    }

    /// What is to be noted of these dictionaries, which are all there are.
    pub(crate) fn change(&mut self, all: &BTreeSet<DictId>) -> AgesChange {
        self.made.retain(|dict, _| all.contains(dict));
        let newer = self.made.iter().filter(|(dict, epoch)| self.noted.get(dict) < Some(epoch));
        let gone = self.noted.keys().filter(|dict| !all.contains(dict));
        newer.map(|(dict, epoch)| (*dict, Some(*epoch))).chain(gone.map(|dict| (*dict, None))).collect()
    }

    /// The catalog has it.
    pub(crate) fn note(&mut self, change: AgesChange) {
        for (dict, epoch) in change {
            match epoch {
                Some(epoch) => _ = self.noted.insert(dict, epoch),
                None => _ = self.noted.remove(&dict),
            }
        }
    }

    /// Refuses a file that lacks what the log has not any more.
    ///
    /// # Errors
    /// [`Error::Corruption`] names the file and both checkpoints.
    pub(crate) fn check(&self, path: &Path, dict: DictId, epoch: u64) -> Result<()> {
        match self.noted.get(&dict) {
            Some(noted) if epoch < *noted => Err(Error::corruption(
                path,
                0,
                "checkpoint of the file",
                format!("number {noted} or a later one, which the log goes on from"),
                format!("number {epoch}: the file is an older copy; put the newer one back"),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DictId = DictId(7);
    const B: DictId = DictId(8);

    #[test]
    fn what_is_newer_is_noted_once_and_what_is_gone_is_forgotten() {
        let (both, one) = (BTreeSet::from([A, B]), BTreeSet::from([B]));
        let mut ages = FileAges::default();
        ages.load(A, 3);
        ages.made(A, 3);
        ages.made(B, 1);
        let change = ages.change(&both);
        assert_eq!(change, [(B, Some(1))]);
        assert_eq!(ages.change(&both), change, "it may not have been written");
        ages.note(change);
        assert_eq!(ages.change(&both), []);
        ages.made(A, 4);
        ages.made(A, 5);
        assert_eq!(ages.change(&both), [(A, Some(5))]);
        let gone = ages.change(&one);
        assert_eq!(gone, [(A, None)], "its table was dropped");
        ages.note(gone);
        assert_eq!(ages.change(&both), []);
    }

    #[test]
    fn an_older_file_is_refused_by_name() {
        let mut ages = FileAges::default();
        ages.load(A, 3);
        let path = Path::new("d/t.pando/main.pando");
        for (dict, epoch) in [(A, 3), (A, 9), (B, 1)] {
            ages.check(path, dict, epoch).unwrap();
        }
        let error = ages.check(path, A, 2).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("main.pando"), "{error}");
    }
}
