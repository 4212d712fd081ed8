//! Names and directories of the server's files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{at, Outcome};

/// Whether a path, which need not be there yet, leads into a directory.
pub fn is_within(path: &Path, dir: &Path) -> Outcome<bool> {
    let dir = dir.canonicalize().map_err(at(dir))?;
    let path = std::path::absolute(path).map_err(at(path))?;
    let real = path.ancestors().find_map(|part| part.canonicalize().ok());
    Ok(real.is_some_and(|real| real.starts_with(&dir)))
}

/// Whether a database has PANDO tables.
pub fn has_tables(database: &Path) -> bool {
    let is_table = |entry: fs::DirEntry| entry.path().extension() == Some(OsStr::new("pando"));
    fs::read_dir(database).is_ok_and(|entries| entries.flatten().any(is_table))
}

/// Whether the file is the definition of a PANDO table, whole or partitioned.
pub fn is_pando_table(path: &Path) -> bool {
    let (Some(parent), Some(stem)) = (path.parent(), path.file_stem().and_then(OsStr::to_str)) else {
        return false;
    };
    let whole = parent.join(format!("{stem}.pando"));
    let prefix = format!("{stem}#P#");
    let is_partition = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(&prefix) && name.ends_with(".pando")
    };
    whole.is_dir() || fs::read_dir(parent).is_ok_and(|entries| entries.flatten().any(is_partition))
}

/// All files below a directory, sorted.
pub fn files_below(dir: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for dir in dirs_below(dir)? {
        for entry in fs::read_dir(&dir).map_err(at(&dir))? {
            let path = entry.map_err(at(&dir))?.path();
            if !path.is_dir() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A directory and all below it.
pub fn dirs_below(dir: &Path) -> Outcome<Vec<PathBuf>> {
    let mut dirs = vec![dir.to_owned()];
    let mut at_dir = 0;
    while let Some(dir) = dirs.get(at_dir).cloned() {
        at_dir += 1;
        for entry in fs::read_dir(&dir).map_err(at(&dir))? {
            let path = entry.map_err(at(&dir))?.path();
            if path.is_dir() && !path.is_symlink() {
                dirs.push(path);
            }
        }
    }
    Ok(dirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_a_directory_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let (data, beside) = (dir.path().join("data"), dir.path().join("data2"));
        fs::create_dir_all(data.join("x")).unwrap();
        fs::create_dir(&beside).unwrap();
        std::os::unix::fs::symlink(&data, dir.path().join("link")).unwrap();
        for path in ["data", "data/x/new", "data/new/newer", "link/new", "data2/../data/new"] {
            assert!(is_within(&dir.path().join(path), &data).unwrap(), "{path}");
        }
        for path in ["data2", "data2/data", "new", "data/../new"] {
            assert!(!is_within(&dir.path().join(path), &data).unwrap(), "{path}");
        }
    }
}
