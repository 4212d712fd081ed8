//! The manifest of a backup, `pando-backup.json`: what it has, with checksums. It is written last, so a directory without
//! it is a backup that did not come to its end.
//!
//! ```text
//! DIR/pando-backup.json     this
//! DIR/pando/                PANDO's files, where they are in a data directory; tree files are sparse
//! DIR/server/               what mariadb-backup has copied (not with --pando-only)
//! DIR/mariadb-backup.log    what it said
//! ```
//!
//! It is one JSON object, with the fields of [`Manifest`], and ends with a checksum of itself:
//!
//! ```text
//! {"format":2,"complete":true, ... ,"checksum":"0123456789abcdef"}
//! |<------------- a ------------->|             |<----- b ---->|     b: XXH3 of the bytes a
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{at, fail, Outcome};

/// Name of the manifest.
pub const MANIFEST: &str = "pando-backup.json";
/// PANDO's files.
pub const PANDO_DIR: &str = "pando";
/// The files of mariadb-backup.
pub const SERVER_DIR: &str = "server";
/// What mariadb-backup says.
pub const SERVER_LOG: &str = "mariadb-backup.log";
/// Versions of the manifest that are read. 1: without a checksum. 2: with one.
const FORMATS: std::ops::RangeInclusive<u32> = 1..=2;
/// What stands between the bytes that the checksum is of and its digits.
const CHECKSUM: &[u8] = b",\"checksum\":\"";
/// What follows them.
const END: &[u8] = b"\"}";

/// What a backup has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this description.
    pub format: u32,
    /// Always: a manifest is written when all else is on the disk.
    pub complete: bool,
    /// Tells backups apart.
    pub id: String,
    /// The backup before, if this has only what has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The server's version.
    pub server: String,
    /// When it began and ended, in seconds since 1970.
    pub began: u64,
    /// When it was complete.
    pub ended: u64,
    /// The last commit of PANDO in it.
    pub last_seqno: u64,
    /// Where the server's binary log was, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog: Option<BinlogPosition>,
    /// The databases and tables that were chosen; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<String>,
    /// Whether mariadb-backup has copied the other engines.
    pub has_server_part: bool,
    /// PANDO's tables, as `database/table`.
    pub tables: Vec<String>,
    /// All files.
    pub files: Vec<FileEntry>,
}

/// A place in the binary log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogPosition {
    /// The file.
    pub file: String,
    /// Where in it.
    pub position: u64,
    /// The same as GTID.
    pub gtid: String,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Below the directory of the backup.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Checksum of a plain file; of a tree file, of its two superblocks.
    pub xxh3: String,
    /// Of a tree file: its dictionary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dict: Option<u64>,
    /// Of a tree file: what it consists of beside the superblocks. All the rest of it is a hole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<ExtentEntry>,
}

/// A part of a tree file: offset, length, checksum, and whether it is in this backup (1) or an earlier one (0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtentEntry(pub u64, pub u64, pub String, pub u8);

impl Manifest {
    /// A new one, not complete.
    pub fn new(server: String, id: String, began: u64) -> Manifest {
        Manifest {
            format: *FORMATS.end(),
            complete: false,
            id,
            base: None,
            server,
            began,
            ended: 0,
            last_seqno: 0,
            binlog: None,
            chosen: Vec::new(),
            has_server_part: false,
            tables: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Reads that of the backup in a directory.
    pub fn read(dir: &Path) -> Outcome<Manifest> {
        let path = dir.join(MANIFEST);
        if !dir.is_dir() {
            return fail(format!("there is no directory {}", dir.display()));
        }
        if !path.exists() {
            return fail(format!(
                "{} is not a backup, or one that did not come to its end: it has no {MANIFEST}",
                dir.display()
            ));
        }
        let text = fs::read(&path).map_err(at(&path))?;
        Manifest::parse(&path, &text)
    }

    /// From the bytes of the file at `path`, which may be any.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Outcome<Manifest> {
        let checksum = checksum_of(text);
        if checksum.is_some_and(|(of, digits)| digits_of(of).as_bytes() != digits) {
            return fail(format!(
                "{}: its checksum does not fit: it was changed after the backup",
                path.display()
            ));
        }
        let manifest = Manifest::decode(path, text)?;
        match checksum {
            None if manifest.format > 1 => fail(format!("{}: its checksum is missing", path.display())),
            _ => Ok(manifest),
        }
    }

    /// The same without a look at the checksum.
    pub(crate) fn decode(path: &Path, text: &[u8]) -> Outcome<Manifest> {
        // A backup of tomorrow may have other fields, but says so first.
        let value: serde_json::Value = serde_json::from_slice(text).map_err(damaged(path))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if FORMATS.map(u64::from).any(|known| known == format) => {}
            Some(format) => return fail(format!("{}: format {format} is not known", path.display())),
            None => return fail(format!("{}: no format", path.display())),
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(damaged(path))?;
        match manifest.complete {
            true => Ok(manifest),
            false => fail(format!("{}: the backup did not come to its end", path.display())),
        }
    }

    /// The bytes of the file.
    pub(crate) fn text(&self) -> Outcome<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        // The brace at its end comes after the checksum.
        text.pop();
        let digits = digits_of(&text);
        text.extend([CHECKSUM, digits.as_bytes(), END].concat());
        Ok(text)
    }

    /// Writes it, durably, which makes the backup complete. Everything else is durable.
    pub fn write(&self, dir: &Path) -> Outcome<()> {
        let (path, new) = (dir.join(MANIFEST), dir.join(format!("{MANIFEST}.new")));
        let mut file = File::create(&new).map_err(at(&new))?;
        let text = self.text()?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(at(&new))?;
        fs::rename(&new, &path).map_err(at(&path))?;
        sync_dir(dir)
    }

    /// Where a file of the backup is, or an error: a manifest from elsewhere must not lead out of the directory.
    pub fn place(dir: &Path, entry: &FileEntry) -> Outcome<PathBuf> {
        let relative = Path::new(&entry.path);
        let is_plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        match is_plain {
            true => Ok(dir.join(relative)),
            false => fail(format!("the manifest has a file outside of the backup: {}", entry.path)),
        }
    }
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Outcome<()> {
    File::open(dir).and_then(|opened| opened.sync_all()).map_err(at(dir))?;
    Ok(())
}

/// What is wrong with its JSON means little to those who need the backup.
fn damaged(path: &Path) -> impl FnOnce(serde_json::Error) -> Box<dyn Error> + '_ {
    move |error| {
        let what = if error.is_eof() { "cut off" } else { "damaged" };
        format!("{}: the file is {what}, so the backup cannot be used: {error}", path.display()).into()
    }
}

fn digits_of(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// The bytes that the checksum at the end is of, and its digits.
fn checksum_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_suffix(END)?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
    Some((rest.strip_suffix(CHECKSUM)?, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let binlog = BinlogPosition { file: "b.000001".into(), position: 4711, gtid: "0-1-9".into() };
        let mut manifest = Manifest::new("10.11".into(), "id".into(), 1_700_000_000);
        (manifest.complete, manifest.binlog, manifest.last_seqno) = (true, Some(binlog), 99);
        manifest
    }

    #[test]
    fn a_changed_bit_anywhere_is_found_and_the_file_named() {
        let (path, text) = (Path::new("b/pando-backup.json"), manifest().text().unwrap());
        assert_eq!(Manifest::parse(path, &text).unwrap(), manifest());
        for bit in 0..8 * text.len() {
            let mut changed = text.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = Manifest::parse(path, &changed).expect_err(&format!("bit {bit}")).to_string();
            assert!(error.starts_with("b/pando-backup.json: "), "{error}");
        }
        let other = String::from_utf8(text).unwrap().replace("4711", "4712");
        let error = Manifest::parse(path, other.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("its checksum does not fit"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_off_or_overwritten_is_said_to_be_so_and_named() {
        let (path, text) = (Path::new("b/pando-backup.json"), manifest().text().unwrap());
        for bytes in 0..text.len() {
            let error = Manifest::parse(path, &text[..bytes]).unwrap_err().to_string();
            assert!(error.starts_with("b/pando-backup.json: the file is cut off"), "{bytes}: {error}");
        }
        for other in ["\0\0\0\0", "{\"format\":2}", "x"] {
            let error = Manifest::parse(path, other.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("b/pando-backup.json: the file is damaged"), "{error}");
        }
    }

    #[test]
    fn manifests_before_checksums_are_read_and_those_that_lost_theirs_are_not() {
        let path = Path::new("b/pando-backup.json");
        let old = Manifest { format: 1, ..manifest() };
        assert_eq!(Manifest::parse(path, &serde_json::to_vec(&old).unwrap()).unwrap(), old);
        let error = Manifest::parse(path, &serde_json::to_vec(&manifest()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("its checksum is missing"), "{error}");
        let tomorrow = Manifest { format: 3, ..manifest() };
        let error = Manifest::parse(path, &tomorrow.text().unwrap()).unwrap_err().to_string();
        assert!(error.contains("format 3 is not known"), "{error}");
    }
}
