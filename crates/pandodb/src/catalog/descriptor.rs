//! What the catalog knows of a table: the descriptor, its place on disk, and the intents that make
//! DDL crash-safe.
//!
//! The catalog is a dictionary like any other (logged, checkpointed, recovered by the same code).
//! Its keys are
//!
//! ```text
//! "t" + table id, 8 bytes big-endian      -> TableDescriptor as JSON
//! "i" + table id, 8 bytes big-endian      -> Intent as JSON: work on files that is not finished
//! "e" + dictionary id, 8 bytes big-endian -> the checkpoint that its file has at least (`file_ages`)
//! "p" + path of a partitioned table       -> the server's files of it as JSON (`server_files`)
//! "n"                                     -> next free id, 8 bytes big-endian
//! ```

use std::path::{Path, PathBuf};

use pando_base::{DictId, Error, Result};
use pando_column::layout::{Layouts, NewColumn};
use pando_column::Compression;
use pando_tree::TreeConfig;
use serde::{Deserialize, Serialize};

use crate::catalog::definition::Definition;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::server_files::ServerFiles;
use crate::table::clustering::Clustering;
use crate::table::large::LostValues;

/// The catalog's own dictionary.
pub(crate) const CATALOG: DictId = DictId(1);
/// First id given to tables and dictionaries.
pub(crate) const FIRST_ID: u64 = 16;
/// Key of the next free id.
pub(crate) const NEXT_ID_KEY: &[u8] = b"n";
/// First byte of the keys of tables.
pub(crate) const TABLE_PREFIX: u8 = b't';
/// First byte of the keys of intents.
pub(crate) const INTENT_PREFIX: u8 = b'i';

/// What a table is created with.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// `./database/table` as the server names it, or an absolute path for temporary tables.
    pub path: String,
    /// The secondary indexes, 127 at most; dictionary 0 holds the rows, `i + 1` belongs to `indexes[i]`.
    pub indexes: Vec<IndexSpec>,
    /// Compression of what is written to leaves.
    pub compression: Compression,
    /// Gone after a restart, and seen by one session alone.
    pub temporary: bool,
    /// It is filled under a name that is not yet the one it is for: a rename gives it that. Snapshots from before
    /// the rename cannot read it, since they would find it empty.
    pub interim: bool,
    /// First auto-increment value, 0 for "none yet".
    pub auto_increment: u64,
    /// The columns that values of dictionary 0 consist of; none where values are the user's own affair.
    pub columns: Option<Vec<NewColumn>>,
    /// What the server says of this definition of the table.
    pub definition: Definition,
    /// The constraints in which it is the child.
    pub foreign_keys: Vec<ForeignKey>,
    /// Number of the key that its files are encrypted with; `None`: they are not.
    pub encryption_key_id: Option<u32>,
    /// Of one that is not encrypted because its definition says nothing of it, and others are not: with which key it may be encrypted later
    /// ([`Db::set_encrypt_tables`](crate::Db::set_encrypt_tables)).
    pub undecided_key_id: Option<u32>,
    /// Of the table that it is a partition of, where they are known.
    pub server_files: Option<ServerFiles>,
}

/// A secondary index of a new table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Its entries are got by their whole keys, as those of unique indexes are: runs have filters. Without them an
    /// entry takes about a byte less, and finding one by its whole key reads a block of every run that may have it.
    pub has_filters: bool,
    /// Whether its entries hold rows.
    pub clustering: Clustering,
}

impl From<&str> for IndexSpec {
    fn from(name: &str) -> IndexSpec {
        IndexSpec { name: name.to_owned(), has_filters: true, clustering: Clustering::None }
    }
}

/// A table as the catalog records it and `status.pando` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableDescriptor {
    pub id: u64,
    pub path: String,
    pub dictionaries: Vec<DictDescriptor>,
    /// Where large values are; tables without columns of [`Kind::Large`](pando_column::layout::Kind::Large) have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<DictDescriptor>,
    /// Large values that are gone.
    #[serde(default, skip_serializing_if = "LostValues::is_none")]
    pub lost_values: LostValues,
    pub compression: String,
    pub temporary: bool,
    /// Seconds since 1970.
    pub created: u64,
    /// The columns that rows consist of and ever consisted of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<Layouts>,
    /// The newest definition that the engine took part in.
    #[serde(flatten)]
    pub definition: Definition,
    /// The constraints in which it is the child.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// [`TableSpec::encryption_key_id`]. Each of its files is encrypted, or mixed while `encrypting_key_id` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_key_id: Option<u32>,
    /// The table was there before its encryption with this key began, and it is not through (`jobs::encryption`). Without
    /// `encryption_key_id` its files may still be plain, which is what releases make of it that do not know this field. Its file of large
    /// values may be plain with both, as it may have been away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypting_key_id: Option<u32>,
    /// [`TableSpec::undecided_key_id`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_key_id: Option<u32>,
}

/// One dictionary of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DictDescriptor {
    pub id: u64,
    /// "main", or the index's name.
    pub name: String,
    pub file: String,
    /// [`IndexSpec::has_filters`]; those made before this was recorded have some.
    #[serde(default = "has_filters", skip_serializing_if = "Clone::clone")]
    pub has_filters: bool,
    /// What is wrong with the file of an index: nobody reads it or writes to it until it is built anew (`damaged_keys`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// [`IndexSpec::clustering`].
    #[serde(default, skip_serializing_if = "Clustering::is_none")]
    pub clustering: Clustering,
}

fn has_filters() -> bool {
    true
}

impl DictDescriptor {
    /// The tree's configuration for this dictionary of a table with that compression.
    pub(crate) fn tree_config(&self, config: &TreeConfig, compression: Compression) -> TreeConfig {
        let mut config = *config;
        config.run.filter = config.run.filter && self.has_filters;
        config.run.compression = compression;
        if compression == Compression::None {
            config.buffer_compression = Compression::None;
        }
        config
    }
}

/// Work on files that a crash may have interrupted; recovery finishes or undoes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Intent {
    /// The directory is being filled; without a descriptor of the same id it is to be removed.
    Create { path: String },
    /// The directory is to be removed.
    Drop { path: String },
    /// The descriptor has the new path already; the directory may still have the old name.
    Rename { from: String, to: String },
    /// Files of the table with this id that its descriptor does not name are to be removed: indexes that were
    /// being built, or were dropped.
    Files { table: u64, files: Vec<String> },
    /// A table with this definition has lost this name: the server may still have a file of it (`gone`).
    Gone { path: String, definition: String },
}

impl TableDescriptor {
    /// All dictionaries: those of rows and indexes in their order, then that of large values.
    pub(crate) fn all_dictionaries(&self) -> impl Iterator<Item = &DictDescriptor> {
        self.dictionaries.iter().chain(&self.large)
    }

    /// Whether a dictionary is one of its.
    pub(crate) fn has(&self, dict: DictId) -> bool {
        self.all_dictionaries().any(|its| its.id == dict.0)
    }

    /// Which of its dictionaries have rows.
    pub(crate) fn clusterings(&self) -> Vec<Clustering> {
        self.dictionaries.iter().map(|dictionary| dictionary.clustering).collect()
    }

    /// The key of its files that are encrypted.
    pub(crate) fn key_id(&self) -> Option<u32> {
        self.encryption_key_id.or(self.encrypting_key_id)
    }

    pub(crate) fn key(id: u64) -> Vec<u8> {
        prefixed(TABLE_PREFIX, id)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a descriptor has no map with keys other than strings")
    }

    pub(crate) fn decode(catalog: &Path, bytes: &[u8]) -> Result<TableDescriptor> {
        serde_json::from_slice(bytes)
            .map_err(|e| Error::corruption(catalog, 0, "table descriptor", "JSON of a table", e))
    }

    pub(crate) fn compression(&self) -> Compression {
        match self.compression.split_once(':') {
            Some(("ZSTD", level)) => level.parse().map_or_else(|_| Compression::default(), Compression::Zstd),
            _ => self.compression.parse().unwrap_or_default(),
        }
    }
}

impl Intent {
    pub(crate) fn key(id: u64) -> Vec<u8> {
        prefixed(INTENT_PREFIX, id)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an intent has no map with keys other than strings")
    }

    pub(crate) fn decode(catalog: &Path, bytes: &[u8]) -> Result<Intent> {
        serde_json::from_slice(bytes)
            .map_err(|e| Error::corruption(catalog, 0, "intent", "JSON of an intent", e))
    }
}

/// As descriptors have it: the name of the table option, and the level of zstd.
pub(crate) fn compression_text(compression: Compression) -> String {
    match compression {
        Compression::Zstd(level) => format!("{compression}:{level}"),
        Compression::Lz4 | Compression::None => compression.to_string(),
    }
}

fn prefixed(prefix: u8, id: u64) -> Vec<u8> {
    let mut key = vec![prefix];
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// `./db/t` without the leading `./`, so that one table has one name.
pub(crate) fn normalize(path: &str) -> String {
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter;
    }
    rest.to_owned()
}

/// Directory of a table: `<base>/db/t.pando`.
pub(crate) fn table_dir(base: &Path, path: &str) -> PathBuf {
    base.join(format!("{}.pando", normalize(path)))
}

/// File name of a secondary index: letters, digits and `_` as they are, anything else by code.
/// Index names are case-insensitive and at most 64 characters, so this stays below 255 bytes only
/// thanks to the cut; the position keeps cut names apart.
pub(crate) fn key_file_name(position: usize, name: &str) -> String {
    const NAME_BYTES_MAX: usize = 200;
    let mut safe = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            safe.push(c);
        } else {
            safe.push_str(&format!("@{:04x}", u32::from(c)));
        }
    }
    if safe.len() > NAME_BYTES_MAX {
        safe.truncate(NAME_BYTES_MAX);
        safe.push_str(&format!("@{position}"));
    }
    format!("key-{safe}.pando")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_name_however_the_server_spells_it() {
        assert_eq!(normalize("./db/t"), "db/t");
        assert_eq!(normalize("db/t"), "db/t");
        assert_eq!(table_dir(Path::new("/data"), "./db/t"), Path::new("/data/db/t.pando"));
        assert_eq!(table_dir(Path::new("/data"), "/tmp/#sql-1"), Path::new("/tmp/#sql-1.pando"));
    }

    #[test]
    fn file_names_of_indexes_are_safe_and_distinct() {
        assert_eq!(key_file_name(1, "by_year"), "key-by_year.pando");
        assert_eq!(key_file_name(1, "a/b"), "key-a@002fb.pando");
        let long = "ü".repeat(64);
        assert!(key_file_name(1, &long).len() < 255);
        assert_ne!(key_file_name(1, &long), key_file_name(2, &long));
    }

    #[test]
    fn descriptors_and_intents_survive_encoding_and_garbage_is_refused() {
        let d = TableDescriptor {
            id: 16,
            path: "db/t".into(),
            dictionaries: vec![
                DictDescriptor {
                    id: 17,
                    name: "main".into(),
                    file: "main.pando".into(),
                    has_filters: true,
                    unusable: None,
                    clustering: Clustering::None,
                },
                DictDescriptor {
                    id: 18,
                    name: "k".into(),
                    file: "key-k.pando".into(),
                    has_filters: false,
                    unusable: None,
                    clustering: Clustering::Tailed,
                },
            ],
            large: None,
            lost_values: LostValues::default(),
            compression: "ZSTD:3".into(),
            temporary: false,
            created: 0,
            layouts: None,
            definition: "id".into(),
            foreign_keys: Vec::new(),
            encryption_key_id: None,
            encrypting_key_id: None,
            undecided_key_id: None,
        };
        let path = Path::new("catalog.pando");
        assert_eq!(TableDescriptor::decode(path, &d.encode()).unwrap(), d);
        assert!(TableDescriptor::decode(path, b"{").is_err());
        let i = Intent::Rename { from: "a/b".into(), to: "a/c".into() };
        assert_eq!(Intent::decode(path, &i.encode()).unwrap(), i);
    }
}
