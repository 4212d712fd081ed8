//! The databases and tables that a backup is to have: as the operator names them, and as their files are called.
//!
//! Names are the server's, not those of files. In backquotes, as in SQL, they may have commas and dots. Each one has to be there: a
//! backup that silently lacks what was asked for is found out when it is needed. The files say what there is, not
//! `information_schema`, which shows a user only what it may read: the user of a backup need not be able to read any table.

use std::collections::BTreeSet;
use std::path::Path;

use pando_export::names::{marked, readings, split, unquoted};

use super::client::Session;
use super::files::is_pando_table;
use super::{fail, Outcome};

/// What was named; everything if nothing was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Directories.
    databases: BTreeSet<String>,
    /// `directory/table`.
    tables: BTreeSet<String>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A table of another engine, or a view.
    Other,
    Pando,
}

impl Chosen {
    /// Looks for what was named below the data directory; `only_pando`: a table of another engine is none. Errors: something is not there;
    /// the error names each such thing.
    pub fn find(
        (databases, tables): (&[String], &[String]),
        only_pando: bool,
        session: &mut Session,
        data_dir: &Path,
    ) -> Outcome<Chosen> {
        let mut encode = |name: &str| file_name(session, name);
        let (mut chosen, mut missing) = (Chosen::default(), Vec::new());
        for name in names(databases) {
            let dir = match unquoted(name) {
                Some(plain) => encode(&plain)?,
                None => String::new(),
            };
            if dir.is_empty() || !data_dir.join(&dir).is_dir() {
                missing.push(format!("--databases {name}: there is no such database"));
            }
            chosen.databases.insert(dir);
        }
        for name in names(tables) {
            let (mut found, mut kind) = (Vec::new(), Found::Nothing);
            for (database, table) in readings(name, &['.']) {
                let (database, table) = (encode(&database)?, encode(&table)?);
                let its = kind_of(&data_dir.join(&database), &table);
                if its != Found::Nothing {
                    kind = its;
                    found.push(format!("{database}/{table}"));
                }
            }
            let lack = match (found.len(), kind) {
                (0, _) if !name.contains('.') => "it has to be DATABASE.TABLE",
                (0, _) => "there is no such table",
                (1, Found::Other) if only_pando => "it is no table of PANDO",
                (1, _) => "",
                _ => "several tables can be meant: put database and table into backquotes, as `a.b`.`c`",
            };
            if !lack.is_empty() {
                missing.push(format!("--tables {name}: {lack}"));
            }
            chosen.tables.extend(found);
        }
        match missing.is_empty() {
            true => Ok(chosen),
            false => fail(missing.join("\n")),
        }
    }

    /// Whether a table, `directory/table` or a partition of it, is one of those that were asked for.
    pub fn has(&self, path: &str) -> bool {
        if self.databases.is_empty() && self.tables.is_empty() {
            return true;
        }
        let (database, _) = path.split_once('/').unwrap_or_default();
        let table = path.split("#P#").next().unwrap_or_default();
        self.databases.contains(database) || self.tables.contains(table)
    }

    /// Whether a database, as its directory is called, is there as a whole.
    pub fn has_database(&self, name: &str) -> bool {
        (self.databases.is_empty() && self.tables.is_empty()) || self.databases.contains(name)
    }

    /// The same for mariadb-backup's `--tables`: regular expressions of `directory.table`, as files are called. (Its `--databases` takes
    /// names of files, too, but no other table than those of these databases, and none longer than 192 bytes.)
    pub fn patterns(&self) -> Vec<String> {
        let databases = self.databases.iter().map(|name| format!("^{name}[.]"));
        let tables = self.tables.iter().map(|path| format!("^{}$", path.replace('/', "[.]")));
        databases.chain(tables).collect()
    }
}

/// The single names of an option that may be given several times, each with several.
pub fn names(lists: &[String]) -> impl Iterator<Item = &str> {
    lists.iter().flat_map(|list| split(list, &[',']))
}

fn kind_of(database: &Path, table: &str) -> Found {
    let definition = database.join(format!("{table}.frm"));
    match (is_pando_table(&definition), definition.is_file()) {
        (true, _) => Found::Pando,
        (false, true) => Found::Other,
        (false, false) => Found::Nothing,
    }
}

/// The name of a database or table as its file has it: the server knows which letters it writes how.
pub fn file_name(session: &mut Session, name: &str) -> Outcome<String> {
    // The client's character set may be any.
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("CONVERT(x'{hex}' USING utf8mb4)");
    let cased = format!("IF(@@lower_case_table_names = 1, LOWER({text}), {text})");
    let encoded = session.value(&format!("SELECT CONVERT(CONVERT({cased} USING filename) USING binary)"))?;
    Ok(marked(encoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_outside_of_backquotes() {
        let lists = ["a,b c".to_owned(), "`d,e`.`f``,g`,h".to_owned(), String::new()];
        assert_eq!(names(&lists).collect::<Vec<_>>(), ["a", "b c", "`d,e`.`f``,g`", "h", ""]);
    }

    #[test]
    fn a_table_is_chosen_by_its_database_or_name_and_with_all_its_partitions() {
        assert!(Chosen::default().has("x/t"));
        let chosen =
            Chosen { databases: ["d@1ob".to_owned()].into(), tables: ["x/o@002dr".to_owned()].into() };
        for path in ["d@1ob/t", "x/o@002dr", "x/o@002dr#P#p0#SP#s1"] {
            assert!(chosen.has(path), "{path}");
        }
        for path in ["d/t", "x/o", "x/o@002drx", "y/o@002dr", "x"] {
            assert!(!chosen.has(path), "{path}");
        }
        assert_eq!(chosen.patterns(), ["^d@1ob[.]", "^x[.]o@002dr$"]);
    }

    #[test]
    fn the_files_say_what_a_name_stands_for() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["t.frm", "view.frm", "parts.frm"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for name in ["t.pando", "parts#P#p0.pando", "lost.pando"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let kinds = ["t", "parts", "lost", "view", "T", "part"].map(|name| kind_of(dir.path(), name));
        let expected =
            [Found::Pando, Found::Pando, Found::Pando, Found::Other, Found::Nothing, Found::Nothing];
        assert_eq!(kinds, expected);
    }
}
