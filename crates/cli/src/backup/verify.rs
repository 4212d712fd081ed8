//! Checks a backup where it lies: that it is complete, every checksum, and every block of PANDO's trees.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use pandodb::offline::{verify_file, Verified};
use pandodb::KeyRing;

use super::manifest::{Manifest, MANIFEST, PANDO_DIR, SERVER_DIR, SERVER_LOG};
use super::progress::Progress;
use super::restore::stored_bytes;
use super::{at, copy, fail, Outcome};
use crate::{keys, out};

/// What a directory is that `pando verify` is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A backup, or what was to become one.
    Backup,
    /// The directory of a table.
    Table,
}

/// Errors: it is neither.
pub fn kind_of(dir: &Path) -> Outcome<Kind> {
    if !dir.is_dir() {
        return fail(format!("there is no directory {}", dir.display()));
    }
    let has = |name: &str| dir.join(name).exists();
    if has(MANIFEST) {
        return Ok(Kind::Backup);
    }
    if has(".pando") {
        return fail(format!(
            "{0} is a data directory: name the directories of tables, {0}/DATABASE/TABLE.pando",
            dir.display()
        ));
    }
    let mut is_empty = true;
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        is_empty = false;
        if path.extension() == Some(OsStr::new("pando")) && path.is_file() {
            return Ok(Kind::Table);
        }
    }
    if [PANDO_DIR, SERVER_DIR, SERVER_LOG].iter().any(|name| has(name)) {
        return Ok(Kind::Backup);
    }
    let what = if is_empty { "is empty" } else { "has no files of a table" };
    fail(format!("{} {what}: it is neither a backup nor the directory of a table", dir.display()))
}

/// Checks it; false if something is wrong, which is told.
pub fn run(dir: &Path, keys: &KeyRing) -> Outcome<bool> {
    let mut out = out::stdout();
    let manifest = match Manifest::read(dir) {
        Ok(manifest) => manifest,
        Err(error) => {
            writeln!(out, "{error}")?;
            return Ok(false);
        }
    };
    let total = manifest.files.iter().map(stored_bytes).sum();
    let mut progress = Progress::new(total, None, false);
    let mut is_sound = true;
    for entry in &manifest.files {
        let path = Manifest::place(dir, entry)?;
        let checked = match entry.dict {
            None => copy::check_plain(&path, entry, None, &mut progress),
            Some(_) => copy::check_tree(&path, entry, None, &mut progress),
        };
        // An increment is a tree only together with its base.
        let checked = checked.and_then(|()| match entry.dict {
            Some(dict) if manifest.base.is_none() => Ok(Some(verify_file(&path, dict, keys)?)),
            _ => Ok(None),
        });
        if let Ok(Some(Verified::WithoutKey(found))) = &checked {
            writeln!(out, "{}: {}", path.display(), keys::told(found))?;
        }
        if let Err(error) = checked {
            is_sound = false;
            writeln!(out, "{error}")?;
        }
    }
    progress.end();
    let (files, tables) = (manifest.files.len(), manifest.tables.len());
    let what = if is_sound { "ok" } else { "damaged" };
    writeln!(out, "{}: {what}: {files} files, {tables} tables of PANDO", dir.display())?;
    Ok(is_sound)
}
