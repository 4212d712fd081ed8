//! Checks a backup where it lies: that it is complete, every checksum, every block of PANDO's trees, and the transactions of its log.
//! What is encrypted it can look into only with keys, and says what it did not look at.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use pandodb::offline::{check_key, verify_file, verify_log, Verified};
use pandodb::{EngineError, EngineResult, KeyRing};

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
    let (mut trouble, mut is_seen) = (Trouble::None, true);
    for entry in &manifest.files {
        let path = Manifest::place(dir, entry)?;
        let checked = match entry.dict {
            None => copy::check_plain(&path, entry, None, &mut progress),
            Some(_) => copy::check_tree(&path, entry, None, &mut progress),
        };
        let checked = checked.and_then(|()| match entry.dict {
            Some(dict) if manifest.base.is_none() => Ok(Some(verify_file(&path, dict, keys)?)),
            // An increment is a tree only together with its base.
            Some(dict) => Ok(check_key(&path, dict, keys).map(|()| None)?),
            None => Ok(None),
        });
        if let Ok(Some(Verified::WithoutKey(found))) = &checked {
            is_seen = false;
            writeln!(out, "{}: {}", path.display(), keys::told(found))?;
        }
        if let Err(error) = checked {
            trouble = trouble.max(Trouble::of(error.downcast_ref()));
            writeln!(out, "{error}")?;
        }
    }
    progress.end();
    match log(dir, &manifest, keys) {
        Ok(None) => {}
        Ok(Some(unseen)) => {
            is_seen = false;
            writeln!(out, "{unseen}")?;
        }
        Err(error) => {
            trouble = trouble.max(Trouble::of(Some(&error)));
            writeln!(out, "{error}")?;
        }
    }
    let (files, tables) = (manifest.files.len(), manifest.tables.len());
    let unseen = if is_seen { "" } else { "; what is encrypted was not looked at (--keys)" };
    let what = match trouble {
        Trouble::None => "ok",
        Trouble::Keys => "keys are missing or wrong",
        Trouble::Damage => "damaged",
    };
    writeln!(out, "{}: {what}: {files} files, {tables} tables of PANDO{unseen}", dir.display())?;
    Ok(trouble == Trouble::None)
}

/// The worst that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    /// Nothing is known to be damaged.
    Keys,
    Damage,
}

impl Trouble {
    fn of(error: Option<&EngineError>) -> Trouble {
        match error {
            Some(EngineError::Key { .. }) => Trouble::Keys,
            _ => Trouble::Damage,
        }
    }
}

/// Checks the log of the backup, if it has one. What was not looked at, for people.
fn log(dir: &Path, manifest: &Manifest, keys: &KeyRing) -> EngineResult<Option<String>> {
    let engine_dir = Path::new(PANDO_DIR).join(".pando");
    let is_its = |path: &Path| path.starts_with(&engine_dir) && path.extension() == Some(OsStr::new("log"));
    if !manifest.files.iter().any(|entry| is_its(Path::new(&entry.path))) {
        return Ok(None);
    }
    let engine_dir = dir.join(engine_dir);
    let log = verify_log(&engine_dir, keys)?;
    if log.without_key.is_empty() {
        return Ok(None);
    }
    let with = log
        .without_key
        .iter()
        .map(|((id, version), count)| format!("{count} with key {id} (version {version})"));
    Ok(Some(format!(
        "{}: the checksums of {} transactions in the log are ok; encrypted are {}, so what is in them was not looked at (--keys)",
        engine_dir.display(),
        log.transactions,
        with.collect::<Vec<_>>().join(", ")
    )))
}
