//! Names of the log's files: `pando-NNNNNN.log` belong to the log, `spare-NNNNNN.log` wait with
//! their disk space for the next use.

use std::path::{Path, PathBuf};

use pando_base::Result;
use pando_storage::vfs::Vfs;

const LOG: &str = "pando-";
const SPARE: &str = "spare-";
const SUFFIX: &str = ".log";

/// Path of a log file.
pub(crate) fn log_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{LOG}{number:06}{SUFFIX}"))
}

/// Path of a spare.
pub(crate) fn spare_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{SPARE}{number:06}{SUFFIX}"))
}

/// Numbers and paths of the log files, ascending.
pub(crate) fn log_files(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    list(vfs, dir, LOG)
}

/// Numbers and paths of the spares, ascending.
pub(crate) fn spare_files(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    list(vfs, dir, SPARE)
}

fn list(vfs: &dyn Vfs, dir: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in vfs.read_dir(dir)? {
        let digits = entry.name.strip_prefix(prefix).and_then(|name| name.strip_suffix(SUFFIX));
        let plain = digits.filter(|d| d.len() >= 6 && d.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(number) = plain.and_then(|d| d.parse().ok()).filter(|_| !entry.is_dir) {
            found.push((number, dir.join(&entry.name)));
        }
    }
    found.sort();
    Ok(found)
}

/// Creates a directory and makes every name it needed durable.
pub(crate) fn create_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    // The directory itself in any case: who made it may have ended before it was durable.
    let mut parents: Vec<&Path> = dir.parent().into_iter().collect();
    for path in dir.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        if vfs.exists(path)? {
            break;
        }
        parents.extend(path.parent());
    }
    vfs.create_dir_all(dir)?;
    for parent in parents {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        vfs.sync_dir(parent)?;
    }
    Ok(())
}
