//! What the engine's tests share: a database on a simulated disk, driven by hand.
//!
//! With the environment's `PANDO_TEST_ENCRYPTED=1` the tables that [`spec`] describes are encrypted, and all of the log: whatever a
//! test says has to hold then, too (but for what it says of sizes and of bytes on the disk).
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod large_rows;
pub mod prepared;
pub mod slow;
pub mod watched;

use std::path::Path;
use std::sync::{Arc, Mutex};

use pando_storage::vfs::OpenMode;
use pandodb::{
    Compression, Db, EngineError, Error, FlushMode, KeyList, KeyRing, LockWait, LogLevel, Options, ReadMode,
    SecretKey, SimVfs, Table, TableSpec, TreeConfig, Txn, Vfs,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Lines the engine logged.
pub type Lines = Arc<Mutex<Vec<(LogLevel, String)>>>;

/// Makes a file's superblocks those of a release to come. Gives what was there.
pub fn make_newer(vfs: &Arc<SimVfs>, path: &Path) -> Vec<(u64, Vec<u8>)> {
    let file = vfs.open(path, OpenMode::Existing).unwrap();
    let mut before = Vec::new();
    for offset in [0u64, 4096] {
        let mut page = vec![0; 4096];
        file.read_exact_at(&mut page, offset).unwrap();
        before.push((offset, page.clone()));
        page[5] = 9;
        let payload = 32..32 + u64::from_le_bytes(page[16..24].try_into().unwrap()) as usize;
        let checksum = xxh3_64_with_seed(&page[payload], xxh3_64_with_seed(&page[..24], offset));
        page[24..32].copy_from_slice(&checksum.to_le_bytes());
        file.write_at(&page, offset).unwrap();
    }
    file.sync().unwrap();
    before
}

/// Whether the error is that of [`make_newer`], and names the file.
pub fn is_newer<T, E: Clone + Into<Error>>(result: &Result<T, E>, file: &Path) -> bool {
    let Err(error) = result else { return false };
    match error.clone().into() {
        Error::Engine(EngineError::NewerFormat { path, version, .. }) => path == file && version == 9,
        _ => false,
    }
}

/// Puts back what [`make_newer`] has taken.
pub fn put_back(vfs: &Arc<SimVfs>, path: &Path, before: &[(u64, Vec<u8>)]) {
    let file = vfs.open(path, OpenMode::Existing).unwrap();
    before.iter().for_each(|(offset, page)| file.write_at(page, *offset).unwrap());
    file.sync().unwrap();
}

/// Options with tiny trees and no threads.
pub fn options(lines: &Lines) -> Options {
    let mut tree = TreeConfig {
        memtable_bytes: 4096,
        leaf_raw_bytes: 8192,
        fanout_max: 4,
        buffer_runs_max: 4,
        ..TreeConfig::default()
    };
    tree.run.segment_raw_bytes = 512;
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 8 << 20;
    options.log_file_bytes = 64 << 10;
    options.log_kept_bytes_max = 1 << 20;
    options.checkpoint_period_s = 1_000_000;
    // Some memtables wait in memory, and some are written during recovery.
    options.replay_memory_bytes = 8 << 10;
    options.flush_mode = FlushMode::Commit;
    options.ordered_at_once_ops = 0;
    options.keys = keys();
    options.encrypt_log = is_encrypted();
    options.tree = tree;
    let sink = lines.clone();
    options.log = Arc::new(move |level, text| sink.lock().unwrap().push((level, text.to_owned())));
    options
}

fn is_encrypted() -> bool {
    std::env::var_os("PANDO_TEST_ENCRYPTED").is_some()
}

/// Key 1 of the log and key 7 of tables, each in one version.
pub fn keys() -> KeyRing {
    let key = |byte| SecretKey::new(vec![byte; 32]);
    KeyRing::new(Arc::new(KeyList::new().with(1, 1, key(1)).with(7, 1, key(7))))
}

/// An empty simulated disk with the server's directories.
pub fn disk(seed: u64) -> Arc<SimVfs> {
    let vfs = SimVfs::new(seed);
    vfs.create_dir_all(Path::new("/data/db")).unwrap();
    vfs.sync_dir(Path::new("/data")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    vfs
}

/// Opens the database on the disk.
pub fn open(vfs: &Arc<SimVfs>) -> pandodb::Result<Arc<Db>> {
    open_logging(vfs, &Lines::default())
}

/// As [`open`], keeping what the engine logs.
pub fn open_logging(vfs: &Arc<SimVfs>, lines: &Lines) -> pandodb::Result<Arc<Db>> {
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options(lines), files.clone(), files)
}

/// A table with one index.
pub fn spec(path: &str) -> TableSpec {
    TableSpec {
        path: path.into(),
        indexes: vec!["k".into()],
        compression: Compression::Lz4,
        temporary: false,
        auto_increment: 0,
        encryption_key_id: is_encrypted().then_some(7),
        ..TableSpec::default()
    }
}

/// Goes over what the transaction's snapshot sees of a dictionary, one row after the other.
pub fn for_each_row(
    txn: &mut Txn,
    table: &Arc<Table>,
    dict: usize,
    backward: bool,
    mut take: impl FnMut(&[u8], &[u8]),
) {
    let mut cursor = txn.cursor(table, dict);
    if backward {
        cursor.seek_last(txn, ReadMode::Snapshot).unwrap();
    } else {
        cursor.seek_first(txn, ReadMode::Snapshot).unwrap();
    }
    while cursor.valid() {
        take(cursor.key(), cursor.value());
        if backward {
            cursor.prev(txn).unwrap();
        } else {
            cursor.next(txn).unwrap();
        }
    }
}

/// Commits `rows` rows, the same key in both dictionaries.
pub fn fill(db: &Arc<Db>, path: &str, rows: std::ops::Range<u32>) -> pandodb::Result<()> {
    let table = db.open_table(path)?;
    let mut txn = db.begin();
    for n in rows {
        let key = format!("{n:08}").into_bytes();
        for dict in 0..2 {
            txn.put(&table, dict, &key, format!("value {n}").as_bytes(), LockWait::NoWait)?;
        }
    }
    txn.commit()
}

/// A disk with a table `db/a` of this many rows, half of them only in the log.
pub fn with_table(seed: u64, rows: u32) -> (Arc<SimVfs>, Arc<Db>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    fill(&db, "./db/a", 0..rows / 2).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill(&db, "./db/a", rows / 2..rows).unwrap();
    (vfs, db)
}

/// Keys in the table's dictionaries, which must agree.
pub fn count(db: &Arc<Db>, path: &str) -> pandodb::Result<u32> {
    let table = db.open_table(path)?;
    db.check_table(&table, &mut |_| true)?;
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek_first(&mut txn, ReadMode::Latest)?;
    let mut rows = 0;
    while cursor.valid() {
        rows += 1;
        cursor.next(&mut txn)?;
    }
    Ok(rows)
}

/// Names of the table directories in `/data/db`.
pub fn directories(vfs: &Arc<SimVfs>) -> Vec<String> {
    vfs.read_dir(Path::new("/data/db")).unwrap().into_iter().map(|entry| entry.name).collect()
}
