//! The server's two files of a partitioned table: its definition (`NAME.frm`) and the names of its partitions (`NAME.par`).
//!
//! To the engine each partition is a table, and none of them is the one that the server has a file of. The server does not sync its
//! files, or the directory after it renames one. So the catalog has copies of both under the name of the partitioned table, changed in the
//! same record as the partitions where the engine is asked for a change, and in one of their own where the server changes its files
//! alone ([`Db::record_server_files`](crate::Db::record_server_files)). A lost or old file is written anew from them.
//!
//! A record is believed only while it names exactly the partitions that the catalog has: what a crash left of a change of partitions
//! is finished or undone by the server, which does not ask the engine about its files then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use pando_base::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::catalog::definition::{packed, table_of, unpacked};
use crate::catalog::descriptor::TableDescriptor;

/// First byte of the keys of such records; behind it the path of the partitioned table.
pub(crate) const SERVER_FILES_PREFIX: u8 = b'p';

/// Both files of a partitioned table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFiles {
    /// `database/table`.
    pub(crate) path: String,
    /// The server's id of the definition.
    id: String,
    /// Both: zstd, base64.
    definition: String,
    partitions: String,
}

impl ServerFiles {
    /// Of the bytes of the files. None: they are not fit to be kept.
    pub fn new(path: &str, id: &str, definition: &[u8], partitions: &[u8]) -> Option<ServerFiles> {
        names_in(partitions)?;
        Some(ServerFiles {
            path: crate::catalog::descriptor::normalize(path),
            id: id.to_owned(),
            definition: packed(definition)?,
            partitions: packed(partitions)?,
        })
    }

    /// The server's id of the definition.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The bytes of `NAME.frm`. Errors: they are damaged.
    pub fn definition(&self) -> Result<Vec<u8>> {
        unpacked(&self.definition)
    }

    /// The bytes of `NAME.par`. Errors: they are damaged.
    pub fn partitions(&self) -> Result<Vec<u8>> {
        unpacked(&self.partitions)
    }

    /// The same files under another name.
    pub(crate) fn renamed(&self, path: &str) -> ServerFiles {
        ServerFiles { path: path.to_owned(), ..self.clone() }
    }

    pub(crate) fn key(path: &str) -> Vec<u8> {
        let mut key = vec![SERVER_FILES_PREFIX];
        key.extend_from_slice(path.as_bytes());
        key
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("there is no map with keys other than strings")
    }

    pub(crate) fn decode(catalog: &Path, bytes: &[u8]) -> Result<ServerFiles> {
        serde_json::from_slice(bytes)
            .map_err(|e| Error::corruption(catalog, 0, "files of a partitioned table", "JSON of them", e))
    }
}

/// The names in a `NAME.par`, as they stand behind `#P#` in the names of partitions.
///
/// Words of four bytes, little-endian: how many there are, a checksum, how many partitions; then a byte for the engine of each, filled up
/// to whole words; the bytes of names; the names, each ended by a zero. What follows those words (strings of connections) is not needed
/// here, and no checksum covers it.
pub(crate) fn names_in(file: &[u8]) -> Option<BTreeSet<&str>> {
    let word = |at: usize| {
        let bytes = file.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let words = usize::try_from(word(0)?).ok()?;
    let file = file.get(..words.checked_mul(4)?)?;
    let checksum = (0..words).try_fold(0, |sum, at| Some(sum ^ word(4 * at)?))?;
    let count = usize::try_from(word(8)?).ok()?;
    let size_at = count.checked_next_multiple_of(4)?.checked_add(12)?;
    let size = usize::try_from(word(size_at)?).ok()?;
    let names = file.get(size_at + 4..(size_at + 4).checked_add(size)?)?;
    let all: Vec<&[u8]> = names.strip_suffix(&[0])?.split(|byte| *byte == 0).collect();
    let distinct: BTreeSet<&str> =
        all.iter().map(|name| std::str::from_utf8(name).ok()).collect::<Option<_>>()?;
    (checksum == 0 && distinct.len() == count).then_some(distinct)
}

/// What the catalog knows of partitioned tables.
#[derive(Debug, Default)]
pub(crate) struct PartitionedTables {
    files: BTreeMap<String, ServerFiles>,
    /// How many tables of the catalog are partitions of one, also interim ones.
    counts: HashMap<String, usize>,
}

impl PartitionedTables {
    /// The catalog has one table more.
    pub(crate) fn count(&mut self, table: &TableDescriptor) {
        if let Some((name, _)) = table_of(&table.path) {
            *self.counts.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// The catalog has one table less.
    pub(crate) fn discount(&mut self, table: &TableDescriptor) {
        let Some((name, _)) = table_of(&table.path) else { return };
        if let Some(count) = self.counts.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(name);
            }
        }
    }

    /// How many partitions the catalog has of a table, with interim ones.
    pub(crate) fn partitions(&self, path: &str) -> usize {
        self.counts.get(path).copied().unwrap_or_default()
    }

    /// The catalog has this record.
    pub(crate) fn put(&mut self, files: ServerFiles) {
        self.files.insert(files.path.clone(), files);
    }

    /// The catalog has no record of this table.
    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// The record of a table.
    pub(crate) fn get(&self, path: &str) -> Option<&ServerFiles> {
        self.files.get(path)
    }

    /// All records.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ServerFiles> {
        self.files.values()
    }

    /// Of tables with records, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the server writes it.
    pub(crate) fn partitioning_file(names: &[&str]) -> Vec<u8> {
        let padded = |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let mut text = Vec::new();
        for name in names {
            text.extend_from_slice(name.as_bytes());
            text.push(0);
        }
        let size = u32::try_from(text.len()).unwrap();
        let (engines, text) = (padded(vec![42; names.len()]), padded(text));
        let words = 4 + u32::try_from((engines.len() + text.len()) / 4).unwrap();
        let mut file = Vec::new();
        for word in [words, 0, u32::try_from(names.len()).unwrap()] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&engines);
        file.extend_from_slice(&size.to_le_bytes());
        file.extend_from_slice(&text);
        let words = file.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        let checksum = words.fold(0, |sum, word| sum ^ word);
        file[4..8].copy_from_slice(&checksum.to_le_bytes());
        file.resize(file.len() + 4 * names.len(), 0);
        file
    }

    #[test]
    fn names_are_read_and_damaged_files_refused() {
        for names in
            [&["p0"][..], &["p0", "p1", "p@002d2"], &["a#SP#x", "a#SP#y", "b#SP#z", "b#SP#w", "five"]]
        {
            let file = partitioning_file(names);
            assert_eq!(names_in(&file), Some(names.iter().copied().collect()));
            for at in 0..file.len() - 4 * names.len() {
                let mut damaged = file.clone();
                damaged[at] ^= 16;
                assert_eq!(names_in(&damaged), None, "byte {at}");
                assert_eq!(names_in(&file[..at]), None, "cut at {at}");
            }
        }
        assert_eq!(names_in(&partitioning_file(&["p0", "p0"])), None);
    }

    #[test]
    fn files_come_back() {
        let file = partitioning_file(&["p0"]);
        let it = ServerFiles::new("./d/t", "7", b"the definition", &file).unwrap();
        let it = ServerFiles::decode(Path::new("c"), &it.encode()).unwrap();
        assert_eq!((it.path.as_str(), it.id()), ("d/t", "7"));
        assert_eq!((it.definition().unwrap(), it.partitions().unwrap()), (b"the definition".to_vec(), file));
        assert_eq!(ServerFiles::new("d/t", "7", b"x", b"not such a file"), None);
        assert!(ServerFiles::decode(Path::new("c"), b"{").is_err());
    }
}
