//! Where rows come from.
//!
//! [`Database`] opens the whole database as `pando_start_despite_damage` does: recovery happens on a shadow of the disk, in memory, so
//! that also a server that was killed gives what it had committed, and nothing is written. The file system below is opened for reading
//! only. Transactions that were prepared and not resolved are not seen.
//!
//! [`Remains`] opens nothing but a table's directory: no catalog and no log. It gives what can be read of the last checkpoint.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pando_storage::vfs::{OpenMode, ReadOnlyVfs, Vfs};
use pandodb::offline::{self, LostRange, Salvaged};
use pandodb::{Db, KeyRing, LogLevel, Options, Table};

use crate::frm::Definition;
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

/// A table's name as paths have it: `database/table`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(String);

impl TableName {
    /// Of `database/table` or `database.table`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(name: &str) -> Result<TableName> {
        let parts = name.split_once('/').or_else(|| name.split_once('.'));
        match parts {
            Some((database, table)) if !database.is_empty() && !table.is_empty() && !table.contains('/') => {
                Ok(TableName(format!("{}/{}", file_name(database), file_name(table))))
            }
            _ => Err(format!("{name}: not the name of a table, DATABASE/TABLE").into()),
        }
    }

    /// `database/table`
    pub fn path(&self) -> &str {
        &self.0
    }

    fn is_partition(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.starts_with("#P#") || rest.starts_with("#p#"))
            && !["#TMP#", "#tmp#", "#REN#", "#ren#"].iter().any(|mark| path.ends_with(mark))
    }
}

/// As the server names files: other characters than letters of ASCII, digits and _ as @ and four digits. Names that are written so stay.
fn file_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' || c == '@' || c == '#' => out.push(c),
            c => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| out += &format!("@{unit:04x}"));
            }
        }
    }
    out
}

fn read_frm(vfs: &dyn Vfs, places: &Places, name: &TableName) -> Result<Vec<u8>> {
    let path = places.data_dir.join(format!("{}.frm", name.path()));
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
        let has_it = paths.iter().any(|path| path == name.path());
        paths.retain(|path| if has_it { path == name.path() } else { name.is_partition(path) });
        if paths.is_empty() {
            return Err(format!("there is no table {} in the catalog", name.path()).into());
        }
        let image = if has_it {
            self.db.definition_image(name.path())?.map(|(_, image)| image)
        } else {
            self.db.server_files(name.path()).map(|files| files.definition()).transpose()?
        };
        let image = match image {
            Some(image) => image,
            None => read_frm(&*self.vfs, &self.places, name)?,
        };
        let definition = Definition::read(&image).map_err(|error| format!("{}: {error}", name.path()))?;
        let mut tables = Vec::new();
        for path in paths {
            tables.push(self.db.open_table(&path)?);
        }
        Ok(TableRows { db: &self.db, definition, tables })
    }
}

/// A table that is open.
pub struct TableRows<'a> {
    db: &'a Arc<Db>,
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

impl Remains {
    /// Looks for a table's directory, or those of its partitions, and its definition.
    ///
    /// # Errors
    /// There is none; no superblock is sound; its definition is nowhere.
    pub fn open(places: &Places, name: &TableName, keys: &KeyRing) -> Result<Remains> {
        let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
        let whole = places.data_dir.join(format!("{}.pando", name.path()));
        let mut dirs = vec![whole.clone()];
        if !vfs.exists(&whole)? {
            let (database, _) = name.path().split_once('/').unwrap_or_default();
            let parts = vfs.read_dir(&places.data_dir.join(database))?.into_iter().filter_map(|entry| {
                let table = entry.name.strip_suffix(".pando")?;
                let path = format!("{database}/{table}");
                name.is_partition(&path).then(|| places.data_dir.join(database).join(&entry.name))
            });
            dirs = parts.collect();
        }
        if dirs.is_empty() {
            return Err(format!("{}: there is no such directory", whole.display()).into());
        }
        let mut parts = Vec::new();
        let mut image = None;
        for dir in dirs {
            let damaged = offline::open_damaged(&vfs, &dir, &places.engine_dir, keys)
                .map_err(|error| format!("{}: {error}", dir.display()))?;
            image = image.or(damaged.image()?);
            parts.push((dir, damaged));
        }
        let image = match image {
            Some(image) => image,
            None => read_frm(&*vfs, places, name)?,
        };
        let definition = Definition::read(&image).map_err(|error| format!("{}: {error}", name.path()))?;
        Ok(Remains { definition, parts })
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
