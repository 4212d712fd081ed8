//! Names and directories of the server's files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{at, Outcome};

/// The name of a database or table as a file has it: letters, digits and `_` as they are, others by their code.
pub fn file_name(name: &str) -> String {
    let mut encoded = String::new();
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => encoded.push(character),
            _ => encoded.push_str(&format!("@{:04x}", u32::from(character))),
        }
    }
    encoded
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
    fn names_are_encoded_as_the_server_does() {
        assert_eq!(file_name("my-shop_1"), "my@002dshop_1");
    }
}
