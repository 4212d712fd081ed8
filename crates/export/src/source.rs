//! Where rows come from.
//!
//! [`Database`] opens the whole database as `pando_start_despite_damage` does: recovery happens on a shadow of the disk, in memory, so
//! that also a server that was killed gives what it had committed, and nothing is written. The file system below is opened for reading
//! only. Transactions that were prepared and not resolved are not seen.
//!
//! [`Remains`] opens nothing but a table's directory, if its copy of the descriptor can be read; else that of the catalog. It gives what can
//! be read of the last checkpoint.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pando_storage::vfs::{OpenMode, ReadOnlyVfs, Vfs};
use pandodb::offline::{self, LostRange, Salvaged};
use pandodb::{Db, KeyRing, LogLevel, Options, Table};

use crate::frm::Definition;
use crate::names;
use crate::rows::{RowError, RowReader};
use crate::value::Cell;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// More than any definition has.
const FRM_BYTES_MAX: u64 = 16 << 20;
const CACHE_BYTES: u64 = 64 << 20;

/// Where the server's files are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The server's data directory.
    pub data_dir: PathBuf,
    /// That of catalog and log.
    pub engine_dir: PathBuf,
}

/// A table's name, as somebody has written it: what it can mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(Vec<Meaning>);

/// One table, if there is such a one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Meaning {
    /// As paths have it: `database/table`.
    path: String,
    /// As the server has it.
    table: String,
}

impl TableName {
    /// Of `database/table` or `database.table`: names as the server has them, in backquotes or without, or as their files are called.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(name: &str) -> Result<TableName> {
        let mut meanings: Vec<Meaning> = Vec::new();
        for (database, table) in names::halves(name, &['/', '.']) {
            for (database, _) in spellings(database) {
                for (path, table) in spellings(table) {
                    let path = format!("{database}/{path}");
                    if meanings.iter().all(|meaning| meaning.path != path) {
                        meanings.push(Meaning { path, table });
                    }
                }
            }
        }
        match meanings.is_empty() {
            false => Ok(TableName(meanings)),
            true => Err(format!("{name}: not the name of a table, DATABASE/TABLE").into()),
        }
    }

    /// The one that `exists`; `place` says where, for people.
    fn choose(&self, place: &str, exists: impl Fn(&Meaning) -> bool) -> Result<&Meaning> {
        let found: Vec<&Meaning> = self.0.iter().filter(|meaning| exists(meaning)).collect();
        let paths = |of: &[&Meaning]| of.iter().map(|its| its.path.as_str()).collect::<Vec<_>>().join(" or ");
        match found[..] {
            [meaning] => Ok(meaning),
            [] => {
                Err(format!("there is no table {} {place}", paths(&self.0.iter().collect::<Vec<_>>())).into())
            }
            _ => {
                let advice = "put database and table into backquotes, as `a.b`.`c`";
                Err(format!("several tables can be meant, {}: {advice}", paths(&found)).into())
            }
        }
    }
}

/// What a name can be called on the disk, and what the server calls it then. Without quotes it may be the name of a file or partition.
fn spellings(written: &str) -> Vec<(String, String)> {
    let Some(name) = names::unquoted(written) else { return Vec::new() };
    let mut all: Vec<(String, String)> =
        names::file_name(&name).map(|file| (file, name)).into_iter().collect();
    let is_of_files = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '#');
    if written.contains(['@', '#']) && written.chars().all(is_of_files) {
        let whole = written.split("#P#").next().unwrap_or(written);
        all.push((written.to_owned(), names::name_of(whole)));
    }
    all
}

impl Meaning {
    fn is_partition(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.path);
        rest.is_some_and(|rest| rest.starts_with("#P#") || rest.starts_with("#p#"))
            && !["#TMP#", "#tmp#", "#REN#", "#ren#"].iter().any(|mark| path.ends_with(mark))
    }
}

fn read_frm(vfs: &dyn Vfs, places: &Places, table: &str) -> Result<Vec<u8>> {
    // Of a partition that of its table.
    let table = table.split("#P#").next().unwrap_or(table);
    let path = places.data_dir.join(format!("{table}.frm"));
    let file = vfs.open(&path, OpenMode::Existing)?;
    let len = file.len()?;
    if len > FRM_BYTES_MAX {
        return Err(format!("{}: {len} bytes are no definition of a table", path.display()).into());
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A database that is only read.
pub struct Database {
    db: Arc<Db>,
    places: Places,
    vfs: Arc<dyn Vfs>,
    /// The log was not whole.
    pub log_damage: Option<String>,
}

impl Database {
    /// Opens it. `note` gets what the engine has to say.
    ///
    /// # Errors
    /// There is none, a server uses it, its catalog is damaged.
    pub fn open(places: &Places, keys: &KeyRing, note: fn(&str)) -> Result<Database> {
        let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
        let catalog = places.engine_dir.join("catalog.pando");
        if !vfs.exists(&catalog)? {
            return Err(format!("{}: there is no database", catalog.display()).into());
        }
        let damage: Arc<Mutex<Option<String>>> = Arc::default();
        let seen = damage.clone();
        let options = Options {
            engine_dir: places.engine_dir.clone(),
            despite_damage: true,
            background_threads: 0,
            cache_bytes: CACHE_BYTES,
            keys: keys.clone(),
            log: Arc::new(move |level, text| {
                if level == LogLevel::Error {
                    note(text);
                }
                if text.starts_with("the log is read up to its first damage") {
                    if let Ok(mut seen) = seen.lock() {
                        *seen = Some(text.to_owned());
                    }
                }
            }),
            ..Options::new(&places.data_dir)
        };
        let db = Db::open_with_vfs(options, vfs.clone(), vfs.clone())?;
        let log_damage = damage.lock().ok().and_then(|damage| damage.clone());
        Ok(Database { db, places: places.clone(), vfs, log_damage })
    }

    /// A table, or all partitions of one.
    ///
    /// # Errors
    /// There is none, its files are damaged, its definition is missing or another one.
    pub fn table(&self, name: &TableName) -> Result<TableRows<'_>> {
        let mut paths: Vec<String> = self.db.dictionary_rows()?.into_iter().map(|row| row.table).collect();
        paths.dedup();
        let chosen = name.choose("in the catalog", |meaning| {
            paths.iter().any(|path| *path == meaning.path || meaning.is_partition(path))
        })?;
        let has_it = paths.contains(&chosen.path);
        paths.retain(|path| if has_it { *path == chosen.path } else { chosen.is_partition(path) });
        let image = if has_it {
            self.db.definition_image(&chosen.path)?.map(|(_, image)| image)
        } else {
            self.db.server_files(&chosen.path).map(|files| files.definition()).transpose()?
        };
        let image = match image {
            Some(image) => image,
            None => read_frm(&*self.vfs, &self.places, &chosen.path)?,
        };
        let definition = Definition::read(&image).map_err(|error| format!("{}: {error}", chosen.path))?;
        let mut tables = Vec::new();
        for path in paths {
            tables.push(self.db.open_table(&path)?);
        }
        Ok(TableRows { db: &self.db, name: chosen.table.clone(), definition, tables })
    }
}

/// A table that is open.
pub struct TableRows<'a> {
    db: &'a Arc<Db>,
    /// Its name, without its database.
    pub name: String,
    /// What the server says of it.
    pub definition: Definition,
    /// It, or its partitions.
    tables: Vec<Arc<Table>>,
}

impl TableRows<'_> {
    /// How the rows of each partition are read; all have the same columns.
    ///
    /// # Errors
    /// The definition is of another table.
    pub fn readers(&self, wanted: Option<&[String]>) -> Result<Vec<RowReader>> {
        let mut readers = Vec::new();
        for table in &self.tables {
            let Some(layouts) = table.layouts() else {
                return Err(format!("{}: its rows have no columns", table.path()).into());
            };
            let has_primary_key = table.dicts().len() == self.definition.keys.len();
            let reader = RowReader::new(&self.definition, layouts, has_primary_key, wanted);
            readers.push(reader.map_err(|error| format!("{}: {error}", table.path()))?);
        }
        Ok(readers)
    }

    /// Gives all rows, partition after partition.
    ///
    /// # Errors
    /// Those of reading and of `take`.
    pub fn each(&self, readers: &[RowReader], take: &mut dyn FnMut(&[Cell]) -> Result<()>) -> Result<u64> {
        let mut rows = 0;
        for (table, reader) in self.tables.iter().zip(readers) {
            // Nobody writes: both see the same.
            let (mut txn, mut of_large) = (self.db.begin(), self.db.begin());
            let mut large = |reference| {
                let value = of_large.large_value(table, reference, false);
                let value = value.map_err(|error| RowError(error.to_string()))?;
                value.ok_or_else(|| RowError("a large value is not there".into()))
            };
            let view = txn.view(table, 0)?;
            let mut cursor = view.cursor(None, None)?;
            while let Some((key, row)) = cursor.next()? {
                let cells = reader
                    .read(key, row, &mut large)
                    .map_err(|error| format!("{}: row {}: {error}", table.path(), crate::output::hex(key)))?;
                take(&cells)?;
                rows += 1;
            }
        }
        Ok(rows)
    }
}

/// What is left of a table.
pub struct Remains {
    /// The table's name, without its database.
    pub name: String,
    /// What the server says of it.
    pub definition: Definition,
    parts: Vec<(PathBuf, offline::Damaged)>,
}

/// What a partition has lost.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Its directory.
    pub dir: PathBuf,
    /// Keys, and how they can be told in columns: the first, and the first behind.
    pub range: LostRange,
    /// For people.
    pub low: String,
    /// For people.
    pub high: String,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rows given.
    pub rows: u64,
    /// Of these, ones that may be older than the last commit.
    pub older: u64,
    /// What is lost.
    pub losses: Vec<Loss>,
}

/// The table's directory, or those of its partitions.
fn dirs_of(vfs: &dyn Vfs, data_dir: &Path, meaning: &Meaning) -> Result<Vec<PathBuf>> {
    let whole = data_dir.join(format!("{}.pando", meaning.path));
    if vfs.exists(&whole)? {
        return Ok(vec![whole]);
    }
    let (database, _) = meaning.path.split_once('/').unwrap_or_default();
    let database_dir = data_dir.join(database);
    if !vfs.exists(&database_dir)? {
        return Ok(Vec::new());
    }
    let mut dirs: Vec<PathBuf> = Vec::new();
    for entry in vfs.read_dir(&database_dir)? {
        let table = entry.name.strip_suffix(".pando");
        if table.is_some_and(|table| meaning.is_partition(&format!("{database}/{table}"))) {
            dirs.push(database_dir.join(&entry.name));
        }
    }
    dirs.sort();
    Ok(dirs)
}

impl Remains {
    /// Looks for a table's directory, or those of its partitions, and its definition.
    ///
    /// # Errors
    /// There is none; no superblock is sound; its definition is nowhere.
    pub fn open(places: &Places, name: &TableName, keys: &KeyRing) -> Result<Remains> {
        let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
        let found = name.0.iter().map(|meaning| dirs_of(&*vfs, &places.data_dir, meaning));
        let found: Vec<Vec<PathBuf>> = found.collect::<Result<_>>()?;
        let place = format!("in {}, as a directory with .pando", places.data_dir.display());
        let has_any = |meaning: &Meaning| {
            let mut all = name.0.iter().zip(&found);
            all.any(|(its, dirs)| its == meaning && !dirs.is_empty())
        };
        let chosen = name.choose(&place, has_any)?;
        let dirs = name.0.iter().zip(found).find(|(its, _)| *its == chosen).map(|(_, dirs)| dirs);
        let mut parts = Vec::new();
        let mut image = None;
        for dir in dirs.unwrap_or_default() {
            let damaged = offline::open_damaged(&vfs, &dir, &places.engine_dir, keys)
                .map_err(|error| format!("{}: {error}", dir.display()))?;
            image = image.or(damaged.image()?);
            parts.push((dir, damaged));
        }
        let image = match image {
            Some(image) => image,
            None => read_frm(&*vfs, places, &chosen.path)?,
        };
        let definition = Definition::read(&image).map_err(|error| format!("{}: {error}", chosen.path))?;
        Ok(Remains { name: chosen.table.clone(), definition, parts })
    }

    /// How the rows of each partition are read.
    ///
    /// # Errors
    /// The definition is of another table.
    pub fn readers(&self, wanted: Option<&[String]>) -> Result<Vec<RowReader>> {
        let mut readers = Vec::new();
        for (dir, part) in &self.parts {
            let Some(layouts) = part.layouts() else {
                return Err(format!("{}: its rows have no columns", dir.display()).into());
            };
            let has_primary_key = part.dictionaries() == self.definition.keys.len();
            let reader = RowReader::new(&self.definition, layouts, has_primary_key, wanted);
            readers.push(reader.map_err(|error| format!("{}: {error}", dir.display()))?);
        }
        Ok(readers)
    }

    /// What is to be said of the files before anything is read.
    pub fn notes(&self) -> Vec<String> {
        self.parts.iter().flat_map(|(_, part)| part.notes()).collect()
    }

    /// Gives all rows that can be read.
    ///
    /// # Errors
    /// Those of `take`; a key of encryption is missing.
    pub fn each(&self, readers: &[RowReader], take: &mut dyn FnMut(&[Cell]) -> Result<()>) -> Result<Report> {
        let mut report = Report::default();
        for ((dir, part), reader) in self.parts.iter().zip(readers) {
            let mut trouble: Option<Box<dyn std::error::Error>> = None;
            let mut unread: Vec<LostRange> = Vec::new();
            let salvaged = part.salvage(&mut |row| {
                let mut large =
                    |reference| part.large_value(reference).map_err(|error| RowError(error.to_string()));
                match reader.read(row.key, row.value, &mut large) {
                    Ok(cells) => take(&cells).map_err(|error| {
                        trouble = Some(error);
                        offline::stopped()
                    }),
                    Err(error) => {
                        let mut high = row.key.to_vec();
                        high.push(0);
                        let (low, cause) = (row.key.to_vec(), error.to_string());
                        unread.push(LostRange { low, high: Some(high), is_bottom: true, cause });
                        Ok(())
                    }
                }
            });
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            let Salvaged { rows, older, lost } = salvaged?;
            report.rows += rows - unread.len() as u64;
            report.older += older;
            for range in lost.into_iter().chain(unread) {
                let low = reader.key_text(&range.low);
                let high = range.high.as_deref().map_or(String::new(), |high| reader.key_text(high));
                report.losses.push(Loss { dir: dir.clone(), range, low, high });
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(name: &str) -> Vec<String> {
        let parsed = TableName::parse(name).map_or(Vec::new(), |name| name.0);
        parsed.into_iter().map(|meaning| format!("{} = {}", meaning.path, meaning.table)).collect()
    }

    #[test]
    fn a_table_is_named_as_the_server_or_its_files_have_it() {
        assert_eq!(paths("shop/orders"), ["shop/orders = orders"]);
        assert_eq!(paths("größe.größe"), ["gr@1i@1je/gr@1i@1je = größe"]);
        assert_eq!(paths("`a/b`.`c.``d`"), ["a@002fb/c@002e@0060d = c.`d"]);
        assert_eq!(paths("a.b/c"), ["a/b@002fc = b/c", "a@002eb/c = c"]);
        assert_eq!(paths("d/a@002db"), ["d/a@0040002db = a@002db", "d/a@002db = a-b"]);
        assert_eq!(paths("d/`a@002db`"), ["d/a@0040002db = a@002db"]);
        assert_eq!(
            paths("d/con@@@#P#p@1i"),
            ["d/con@0040@0040@0040@0023P@0023p@00401i = con@@@#P#p@1i", "d/con@@@#P#p@1i = con"]
        );
        assert_eq!(paths("d/#mysql50#a-b"), ["d/a-b = #mysql50#a-b"]);
        for nothing in ["", "a", "/", "a/", ".b", "a/b ", "a/😀", "a/`b"] {
            assert!(TableName::parse(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn a_name_that_two_tables_can_have_is_refused() {
        let name = TableName::parse("a.b.c").unwrap();
        assert_eq!(name.choose("here", |its| its.table == "c").unwrap().path, "a@002eb/c");
        let said = |exists: bool| name.choose("here", |_| exists).unwrap_err().to_string();
        assert_eq!(said(false), "there is no table a/b@002ec or a@002eb/c here");
        assert!(
            said(true).starts_with("several tables can be meant, a/b@002ec or a@002eb/c: "),
            "{}",
            said(true)
        );
    }
}
