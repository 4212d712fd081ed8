//! The server's definition of a table, as the catalog records it.
//!
//! The server keeps the definition in a file of its own (`NAME.frm`), which no log covers: a power cut may bring an old
//! one back, and people copy, restore and lose such files. Rows read by another definition than the one they were
//! written by are wrong rows. So the descriptor of a table has, in the same record as everything else,
//!
//! * the *id* that the server gave the definition,
//! * a *fingerprint* of its columns and keys, for tables whose id may change without the engine being told (partitioned
//!   ones), or which change places (EXCHANGE PARTITION),
//! * of a partition another fingerprint, of what decides which rows are in it and what they answer: the function, the values, and the
//!   expressions of generated columns. By another one than its own, pruning passes over rows,
//! * the *image* of the server's file, from which a lost or old one is written anew. Partitions have none: the file
//!   is that of all of them ([`server_files`](crate::catalog::server_files)).
//!
//! [`Db::compare_definition`](crate::Db::compare_definition) says at each opening which of them hold. ARCHIVE and S3 of MariaDB keep such images for
//! the same reason.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use pando_base::Error;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Tells fingerprints made of other texts apart.
const FINGERPRINT_VERSION: u32 = 1;
const IMAGE_COMPRESSION_LEVEL: i32 = 3;
/// More than any image has: the server's limit is 512 KiB.
const IMAGE_BYTES_MAX: usize = 16 << 20;

/// A definition of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The server's id; empty: it has none.
    #[serde(rename = "definition", default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    /// Of columns and keys; empty in tables made before it was recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    fingerprint: String,
    /// Of what a partition holds; empty: not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) partition: String,
    /// The server's file: zstd, base64. Empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) image: String,
}

/// How the definition by which a table is to be opened stands to the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionState {
    /// It is the recorded one, or as good.
    Current,
    /// It is the table's, but the record lacks something: [`Db::adopt_definition`](crate::Db::adopt_definition) completes it.
    Unrecorded,
    /// It is another one, and there is an image of the right one.
    Outdated,
    /// It is another one: rows would be read wrong.
    Incompatible,
}

impl Definition {
    /// `shape` is a text that differs wherever columns or keys differ; `image` may be empty.
    pub fn new(id: String, shape: &[u8], image: &[u8]) -> Definition {
        let fingerprint = fingerprint_of(shape);
        let mut definition = Definition { id, fingerprint, ..Definition::default() };
        // What cannot be compressed is not recorded: then the definition is compared, but not restored.
        if !image.is_empty() {
            definition.image = packed(image).unwrap_or_default();
        }
        definition
    }

    /// Adds what decides which rows a partition holds, as a text; empty: not known, or no partition.
    pub fn with_partition(mut self, text: &[u8]) -> Definition {
        self.partition = fingerprint_of(text);
        self
    }

    /// The server's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether both are known to be of the same columns and keys.
    pub(crate) fn has_shape_of(&self, other: &Definition) -> bool {
        !self.fingerprint.is_empty() && self.fingerprint == other.fingerprint
    }

    pub(crate) fn forget_image(&mut self) {
        self.image.clear();
    }

    /// The server's file. Errors: what is recorded is none.
    pub(crate) fn image(&self) -> Result<Option<Vec<u8>>> {
        if self.image.is_empty() {
            return Ok(None);
        }
        Ok(Some(unpacked(&self.image)?))
    }

    /// See [`Db::compare_definition`](crate::Db::compare_definition).
    pub(crate) fn compare(&self, given: &Definition, may_have_image: bool) -> DefinitionState {
        let lacks_image = may_have_image && self.image.is_empty();
        let is_other_partition =
            !self.partition.is_empty() && !given.partition.is_empty() && self.partition != given.partition;
        if !may_have_image && is_other_partition {
            // Whatever the ids: those that REORGANIZE PARTITION makes are told the id from before it.
            return DefinitionState::Incompatible;
        }
        if !self.id.is_empty() && self.id == given.id {
            return if self.fingerprint.is_empty() || lacks_image {
                DefinitionState::Unrecorded
            } else {
                DefinitionState::Current
            };
        }
        if self.fingerprint.is_empty() {
            // Made before fingerprints were recorded, and the ids of such tables may differ.
            return DefinitionState::Current;
        }
        if may_have_image && !self.image.is_empty() {
            return DefinitionState::Outdated;
        }
        match (self.fingerprint == given.fingerprint, may_have_image) {
            (false, _) => DefinitionState::Incompatible,
            (true, true) => DefinitionState::Unrecorded,
            (true, false) => DefinitionState::Current,
        }
    }
}

/// The bytes of a file of the server, as the catalog keeps them. None: they cannot be compressed.
pub(crate) fn packed(file: &[u8]) -> Option<String> {
    Some(STANDARD.encode(zstd::bulk::compress(file, IMAGE_COMPRESSION_LEVEL).ok()?))
}

/// Back. Errors: it is damaged.
pub(crate) fn unpacked(image: &str) -> pando_base::Result<Vec<u8>> {
    let damaged = |what: String| Error::Unsupported { what: format!("the image of a definition: {what}") };
    let small = STANDARD.decode(image).map_err(|e| damaged(e.to_string()))?;
    // Room for what is in it, not for the largest there could be.
    let bytes = zstd::zstd_safe::get_frame_content_size(&small).ok().flatten();
    let room = bytes.map_or(IMAGE_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if room > IMAGE_BYTES_MAX {
        return Err(damaged(format!("{room} bytes")));
    }
    zstd::bulk::decompress(&small, room).map_err(|e| damaged(e.to_string()))
}

fn fingerprint_of(text: &[u8]) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("{FINGERPRINT_VERSION}:{:032x}", xxhash_rust::xxh3::xxh3_128(text)),
    }
}

/// With an id alone.
impl From<&str> for Definition {
    fn from(id: &str) -> Definition {
        Definition { id: id.to_owned(), ..Definition::default() }
    }
}

/// The partitioned table of a partition's path, and the partition's name in it.
pub(crate) fn table_of(path: &str) -> Option<(&str, &str)> {
    let at = path.find("#P#").or_else(|| path.find("#p#"))?;
    Some((&path[..at], &path[at + "#P#".len()..]))
}

/// Whether it is the name of a partition that an ALTER TABLE is making or removing.
pub(crate) fn is_interim_partition(name: &str) -> bool {
    ["#TMP#", "#tmp#", "#REN#", "#ren#"].iter().any(|mark| name.ends_with(mark))
}

/// The partition that a path names: what follows the table's name, without the mark of one that an ALTER TABLE is making.
pub(crate) fn partition_of(path: &str) -> Option<&str> {
    let at = path.find("#P#").or_else(|| path.find("#p#"))?;
    let name = &path[at..];
    Some(name.strip_suffix("#TMP#").or_else(|| name.strip_suffix("#tmp#")).unwrap_or(name))
}

/// Whether the server names a partition so.
pub(crate) fn is_partition(path: &str) -> bool {
    path.contains("#P#") || path.contains("#p#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(id: &str, shape: &str, image: &str) -> Definition {
        Definition::new(id.into(), shape.as_bytes(), image.as_bytes())
    }

    #[test]
    fn images_come_back_and_damaged_ones_are_refused() {
        let mut it = definition("1", "a", "the file");
        assert_eq!(it.image().unwrap(), Some(b"the file".to_vec()));
        assert_eq!(definition("1", "a", "").image().unwrap(), None);
        it.image = "???".into();
        assert!(it.image().is_err());
        it.image = STANDARD.encode("not zstd");
        assert!(it.image().is_err());
    }

    #[test]
    fn a_small_image_takes_little_memory() {
        let small = unpacked(&packed(b"the file").unwrap()).unwrap();
        assert_eq!((small.as_slice(), small.capacity()), (b"the file".as_slice(), 8));
        let too_large = STANDARD.encode(zstd::bulk::compress(&vec![0; IMAGE_BYTES_MAX + 1], 1).unwrap());
        assert!(unpacked(&too_large).is_err());
    }

    #[test]
    fn the_id_decides_then_the_image_then_the_fingerprint() {
        use DefinitionState::*;
        let table = definition("1", "a", "file");
        let partition = definition("1", "a", "");
        let old = Definition::from("1");
        let range = |id: &str, text: &str| definition(id, "a", "").with_partition(text.as_bytes());
        let placed = range("1", "below 10");
        for (recorded, given, may_have_image, state) in [
            (&table, definition("1", "a", ""), true, Current),
            // The way in which fingerprints are made may change.
            (&table, definition("1", "b", ""), true, Current),
            (&table, definition("2", "b", ""), true, Outdated),
            (&table, definition("2", "a", ""), true, Outdated),
            // A table that was a partition, by EXCHANGE.
            (&partition, definition("2", "a", ""), true, Unrecorded),
            (&partition, definition("2", "b", ""), true, Incompatible),
            (&partition, definition("1", "a", ""), false, Current),
            (&partition, definition("2", "a", ""), false, Current),
            (&partition, definition("2", "b", ""), false, Incompatible),
            (&placed, range("2", "below 10"), false, Current),
            (&placed, range("2", "below 20"), false, Incompatible),
            (&placed, range("1", "below 20"), false, Incompatible),
            (&placed, definition("1", "a", ""), false, Current),
            // It was exchanged.
            (&placed, definition("2", "a", ""), true, Unrecorded),
            (&placed, definition("2", "a", ""), false, Current),
            (&partition, range("2", "below 10"), false, Current),
            (&old, definition("1", "a", ""), true, Unrecorded),
            (&old, definition("1", "a", ""), false, Unrecorded),
            (&old, definition("2", "a", ""), true, Current),
        ] {
            assert_eq!(recorded.compare(&given, may_have_image), state, "{recorded:?} {given:?}");
        }
    }
}
