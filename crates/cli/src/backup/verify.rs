//! Checks a backup where it lies: that it is complete, every checksum, and every block of PANDO's trees.

use std::io::{self, Write as _};
use std::path::Path;

use pandodb::offline::{verify_file, Verified};
use pandodb::KeyRing;

use super::manifest::Manifest;
use super::progress::Progress;
use super::restore::stored_bytes;
use super::{copy, Outcome};
use crate::keys;

/// Whether the directory is a backup, or was to become one.
pub fn is_backup(dir: &Path) -> bool {
    dir.join(super::manifest::MANIFEST).exists()
        || dir.join(super::manifest::PANDO_DIR).join(".pando").is_dir()
}

/// Checks it; false if something is wrong, which is told.
pub fn run(dir: &Path, keys: &KeyRing) -> Outcome<bool> {
    let mut out = io::stdout().lock();
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
