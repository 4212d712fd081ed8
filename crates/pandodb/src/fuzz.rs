//! The decoders of this crate, for `pando-fuzz`: of the catalog, of the list of what the cache held, and the start of a whole database
//! from any log.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pando_base::fuzz::{put_part, take_part, Target};
use pando_base::DictId;
use pando_column::layout::{ColumnType, Kind, NewColumn, Source, Value};
use pando_run::{CachedBlock, CachedForm};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_tree::TreeConfig;

use crate::catalog::definition::Definition;
use crate::catalog::descriptor::{table_dir, Intent, TableDescriptor, NEXT_ID_KEY};
use crate::catalog::file_ages::FileAges;
use crate::catalog::foreign_key::References;
use crate::catalog::server_files::{names_in, ServerFiles};
use crate::catalog::Content;
use crate::db::cached_blocks::{decode, encode, Blocks};
use crate::db::options::Options;
use crate::db::Db;
use crate::error::Result;
use crate::{LockWait, ReadMode, TableSpec};

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "catalog-record",
            reads: "records of the catalog: tables, intents, ages of files, the server's files (pandodb/src/catalog)",
            seeds: record_seeds,
            accepts: accepts_record,
        },
        Target {
            name: "partition-names",
            reads: "the server's file with the names of partitions (pandodb/src/catalog/server_files.rs)",
            seeds: || vec![partition_names()],
            accepts: accepts_names,
        },
        Target {
            name: "cached-blocks",
            reads: "the list of what the cache held (pandodb/src/db/cached_blocks.rs)",
            seeds: list_seeds,
            accepts: |bytes| decode(bytes).is_some(),
        },
        Target {
            name: "database",
            reads: "a log, from which a whole database is recovered, read and written to (pandodb/src/recovery)",
            seeds: || vec![pando_wal::fuzz::collect(&*disk(), Path::new(ENGINE_DIR))],
            accepts: accepts_database,
        },
    ]
}

/// As the server writes it, of one partition.
fn partition_names() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [6u32, 0, 1, 42, 3, u32::from_le_bytes(*b"p0\0\0")] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    rechecked(&file)
}

/// With the right checksum.
fn rechecked(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let words = file.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
    let sum = file.chunks_exact(4).take(words).enumerate().filter(|(at, _)| *at != 1);
    let sum = sum.fold(0, |sum, (_, bytes)| sum ^ word(bytes));
    if let Some(place) = file.get_mut(4..8) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    file
}

fn accepts_names(bytes: &[u8]) -> bool {
    let _ = names_in(bytes);
    names_in(&rechecked(bytes)).is_some()
}

/// A record as an input: key, a part; value.
fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_part(&mut out, key);
    out.extend_from_slice(value);
    out
}

fn record_seeds() -> Vec<Vec<u8>> {
    let db = open(&SimVfs::new(1)).unwrap();
    let ty = |kind, size| ColumnType { kind, size, nullable: true, binary: false };
    let column = |name: &str, kind, size| NewColumn {
        name: name.into(),
        ty: ty(kind, size),
        source: Source::Added(Value::Null),
    };
    let spec = TableSpec {
        path: "./d/t#P#p0".into(),
        indexes: vec!["k".into()],
        columns: Some(vec![column("a", Kind::Signed, 4), column("b", Kind::Large, 4)]),
        definition: Definition::new("id".into(), b"shape", b"an image of it"),
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    let mut descriptor = db.catalog.table("d/t#P#p0").unwrap();
    let first = descriptor.clone();
    let layouts = descriptor.layouts.clone().unwrap();
    let kept = NewColumn { source: Source::Column(0), ..column("a", Kind::Signed, 8) };
    descriptor.layouts = Some(layouts.changed(vec![kept, column("c", Kind::Varchar, 30)]).unwrap());
    let files = ServerFiles::new("./d/t", "7", b"the definition", &partition_names()).unwrap();
    let intents = [
        Intent::Create { path: "d/t".into() },
        Intent::Rename { from: "d/t".into(), to: "d/u".into() },
        Intent::Files { table: 17, files: vec!["key-k.pando".into()] },
        Intent::Gone { path: "d/t".into(), definition: "id".into() },
    ];
    let mut seeds = vec![
        record(&TableDescriptor::key(first.id), &first.encode()),
        record(&TableDescriptor::key(descriptor.id), &descriptor.encode()),
        record(&FileAges::key(DictId(17)), &5u64.to_be_bytes()),
        record(&ServerFiles::key("d/t"), &files.encode()),
        record(NEXT_ID_KEY, &30u64.to_be_bytes()),
    ];
    seeds.extend(intents.iter().map(|intent| record(&Intent::key(17), &intent.encode())));
    seeds
}

fn accepts_record(mut bytes: &[u8]) -> bool {
    let key = take_part(&mut bytes);
    let mut content = Content::default();
    if content.take_record(Path::new("c"), key, bytes).is_err() {
        return false;
    }
    // The same once more: a table is replaced.
    content.take_record(Path::new("c"), key, bytes).unwrap();
    let _ = References::of(content.tables.values());
    for table in content.tables.values() {
        let _ = (table.compression(), table.definition.image(), table_dir(Path::new("/d"), &table.path));
        let _ = (table.clusterings(), table.all_dictionaries().count());
    }
    for path in content.partitioned.paths().cloned().collect::<Vec<_>>() {
        let files = content.partitioned.get(&path).unwrap();
        let _ = (files.definition(), files.partitions().map(|file| names_in(&file).is_some()));
    }
    content.tables.keys().cloned().collect::<Vec<_>>().iter().for_each(|path| _ = content.remove(path));
    true
}

fn list_seeds() -> Vec<Vec<u8>> {
    let block = |n: u64| {
        let forms = [CachedForm::Filter, CachedForm::Packed, CachedForm::Segment, CachedForm::Column(15)];
        CachedBlock { run: n / 10, offset: n * 512, form: forms[n as usize % 4] }
    };
    let blocks = Blocks::from([(DictId(3), (0..20).map(block).collect()), (DictId(4), Vec::new())]);
    vec![encode(&blocks).unwrap(), encode(&Blocks::new()).unwrap()]
}

const ENGINE_DIR: &str = "/data/.pando";

fn options() -> Options {
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 8 << 20;
    options.log_file_bytes = 16 << 10;
    options.checkpoint_period_s = 1_000_000;
    options.replay_memory_bytes = 8 << 10;
    options.lock_wait_timeout = Duration::ZERO;
    options.write_set_bytes = 4 << 10;
    options.tree = TreeConfig {
        memtable_bytes: 4096,
        leaf_raw_bytes: 8192,
        fanout_max: 4,
        buffer_runs_max: 4,
        ..TreeConfig::default()
    };
    options
}

fn open(vfs: &Arc<SimVfs>) -> Result<Arc<Db>> {
    vfs.create_dir_all(Path::new("/data/d"))?;
    Db::open_with_vfs(options(), vfs.clone(), vfs.clone())
}

/// A disk with two tables, partly in files and partly in the log: rows, deleted ranges, a spilled transaction, prepared ones.
fn disk() -> Arc<SimVfs> {
    static DISK: OnceLock<Arc<SimVfs>> = OnceLock::new();
    let disk = DISK.get_or_init(|| {
        let vfs = SimVfs::new(1);
        let db = open(&vfs).unwrap();
        for path in ["d/a", "d/b"] {
            let spec = TableSpec { path: path.into(), indexes: vec!["k".into()], ..TableSpec::default() };
            db.create_table(&spec).unwrap();
            fill(&db, path, 0..40).unwrap();
        }
        db.checkpoint().unwrap();
        // A log file of its own for what follows: what is before is in the files.
        db.wal.begin_new_file().unwrap();
        fill(&db, "d/a", 20..50).unwrap();
        fill(&db, "d/b", 0..300).unwrap();
        let table = db.open_table("d/a").unwrap();
        let mut txn = db.begin();
        txn.delete_range(&table, b"00000003", Some(b"00000007")).unwrap();
        txn.commit().unwrap();
        for (xid, commits) in [(&b"one"[..], Some(true)), (b"two", Some(false)), (b"three", None)] {
            let mut txn = db.begin();
            txn.put(&table, 0, xid, b"prepared", LockWait::NoWait).unwrap();
            txn.prepare(xid).unwrap();
            match commits {
                Some(true) => txn.commit().unwrap(),
                Some(false) => txn.rollback(),
                None => txn.leave(),
            }
        }
        db.drop_table("d/b").unwrap();
        db.wal.sync_all().unwrap();
        drop((table, db));
        vfs.kill()
    });
    disk.copy_after_clean_stop()
}

fn fill(db: &Arc<Db>, path: &str, rows: std::ops::Range<u32>) -> Result<()> {
    let table = db.open_table(path)?;
    let mut txn = db.begin();
    for n in rows {
        for dict in 0..2 {
            txn.put(&table, dict, format!("{n:08}").as_bytes(), b"a value", LockWait::NoWait)?;
        }
    }
    txn.commit()
}

fn accepts_database(bytes: &[u8]) -> bool {
    let vfs = disk();
    pando_wal::fuzz::lay_out(bytes, &*vfs, Path::new(ENGINE_DIR)).unwrap();
    vfs.set_io_count_max(100_000);
    let despite = Options { despite_damage: true, ..options() };
    let copy = vfs.copy_after_clean_stop();
    if let Ok(db) = Db::open_with_vfs(despite, copy.clone(), copy) {
        let _ = read_all(&db);
    }
    go_on(&vfs).is_ok()
}

fn go_on(vfs: &Arc<SimVfs>) -> Result<()> {
    let db = open(vfs)?;
    read_all(&db)?;
    fill(&db, "d/a", 10..60)?;
    db.run_jobs()?;
    db.checkpoint()?;
    db.close()?;
    read_all(&open(vfs)?)
}

fn read_all(db: &Arc<Db>) -> Result<()> {
    for path in ["d/a", "d/b"] {
        if !db.table_exists(path) {
            continue;
        }
        let table = db.open_table(path)?;
        let mut txn = db.begin();
        for dict in 0..2 {
            let mut cursor = txn.cursor(&table, dict);
            cursor.seek_first(&mut txn, ReadMode::Snapshot)?;
            while cursor.valid() {
                cursor.next(&mut txn)?;
            }
        }
    }
    Ok(())
}
