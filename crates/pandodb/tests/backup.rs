//! A backup is one moment of the database, whatever goes on while it is copied.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{disk, fill, options, spec, Lines};
use pando_storage::vfs::OpenMode;
use pandodb::{
    adopted_by_log, prepare_restored, Adopted, BackupFile, Db, LockWait, LogSink, Options, PinnedCopy,
    ReadMode, SimVfs, SuperblockText, TableSpec, Txn, Vfs, NOTE_OF_NEXT_FILE,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ME: u64 = 7;
const COPY: &str = "/copy";

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options_at(base: &str) -> Options {
    let mut options = options(&Lines::default());
    options.base_dir = base.into();
    options.engine_dir = Path::new(base).join(".pando");
    options.write_set_bytes = 6000;
    options
}

fn open_at(vfs: &Arc<SimVfs>, base: &str) -> Arc<Db> {
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options_at(base), files.clone(), files).unwrap()
}

/// The copier: the log at once, then file after file.
struct Copier {
    vfs: Arc<dyn Vfs>,
    adopted: Adopted,
    left: Vec<BackupFile>,
}

impl Copier {
    fn begin(vfs: &Arc<SimVfs>, db: &Db) -> Copier {
        let vfs: Arc<dyn Vfs> = vfs.clone();
        let dir = Path::new(COPY).join(".pando");
        vfs.create_dir_all(&dir).unwrap();
        for file in db.backup_log(ME).unwrap() {
            let to = dir.join(file.path.file_name().unwrap());
            let mut bytes = vec![0; file.bytes as usize];
            vfs.open(&file.path, OpenMode::Existing).unwrap().read_exact_at(&mut bytes, 0).unwrap();
            bytes[NOTE_OF_NEXT_FILE.start as usize..NOTE_OF_NEXT_FILE.end as usize].fill(0);
            vfs.open(&to, OpenMode::Create).unwrap().write_at(&bytes, 0).unwrap();
        }
        db.backup_log_done(ME).unwrap();
        let adopted = adopted_by_log(&vfs, &dir).unwrap();
        Copier { vfs, adopted, left: db.backup_list(ME).unwrap().files }
    }

    fn copy_one(&mut self, db: &Arc<Db>, which: usize) {
        let file = self.left.swap_remove(which);
        let source = db.backup_file(ME, file.dict).unwrap();
        let copy = PinnedCopy::open(&self.vfs, &source.path, &source.superblock, &self.adopted).unwrap();
        let dir: PathBuf = match file.table.is_empty() {
            true => Path::new(COPY).join(".pando"),
            false => Path::new(COPY).join(format!("{}.pando", file.table)),
        };
        self.vfs.create_dir_all(&dir).unwrap();
        let from = self.vfs.open(&source.path, OpenMode::Existing).unwrap();
        let to = self.vfs.open(&dir.join(&file.file), OpenMode::Create).unwrap();
        to.set_len(copy.file_bytes).unwrap();
        for (offset, page) in &copy.slots {
            to.write_at(page, *offset).unwrap();
        }
        for place in &copy.places {
            let mut bytes = vec![0; place.len as usize];
            from.read_exact_at(&mut bytes, place.offset).unwrap();
            to.write_at(&bytes, place.offset).unwrap();
        }
        db.backup_file_done(ME, file.dict).unwrap();
    }
}

/// A database and what it should have.
struct World {
    vfs: Arc<SimVfs>,
    db: Arc<Db>,
    rng: ChaCha8Rng,
    tables: BTreeMap<String, Rows>,
    /// Prepared and not resolved: by name, what it has changed in which table.
    prepared: Vec<(String, String, Rows)>,
    next: u32,
    is_encrypted: bool,
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

impl World {
    fn new(seed: u64) -> World {
        let vfs = disk(seed);
        let db = open_at(&vfs, "/data");
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let (tables, prepared, is_encrypted) = (BTreeMap::new(), Vec::new(), seed % 2 == 1);
        let mut world = World { vfs, db, rng, tables, prepared, next: 0, is_encrypted };
        (0..4).for_each(|_| world.create());
        world
    }

    fn new_name(&mut self) -> String {
        self.next += 1;
        format!("./db/t{}", self.next)
    }

    fn create(&mut self) {
        let path = self.new_name();
        self.create_at(&path);
        self.tables.insert(path, Rows::new());
    }

    fn create_at(&self, path: &str) {
        let encryption_key_id = self.is_encrypted.then_some(7);
        self.db.create_table(&TableSpec { encryption_key_id, ..spec(path) }).unwrap();
    }

    fn is_in_doubt(&self, path: &str) -> bool {
        self.prepared.iter().any(|(_, of, _)| of == path)
    }

    fn pick(&mut self) -> String {
        let at = self.rng.random_range(0..self.tables.len());
        self.tables.keys().nth(at).unwrap().clone()
    }

    /// A transaction with up to so many writes in a table, and what it writes.
    fn write(&mut self, path: &str, most: u32) -> (Txn, Rows) {
        let table = self.db.open_table(path).unwrap();
        let mut txn = self.db.begin();
        let mut rows = Rows::new();
        for _ in 0..self.rng.random_range(1..=most) {
            let (n, version) = (self.rng.random_range(0..400), self.rng.random::<u32>());
            let value = format!("{version} of {n}").into_bytes();
            for dict in 0..2 {
                txn.put(&table, dict, &key(n), &value, LockWait::NoWait).unwrap();
            }
            rows.insert(key(n), value);
        }
        (txn, rows)
    }

    fn step(&mut self) {
        let path = self.pick();
        let is_in_doubt = self.is_in_doubt(&path);
        match self.rng.random_range(0..24) {
            0..=9 if !is_in_doubt => {
                let most = if self.rng.random_bool(0.2) { 300 } else { 20 };
                let (mut txn, rows) = self.write(&path, most);
                if self.rng.random_bool(0.1) {
                    txn.rollback();
                } else {
                    txn.commit().unwrap();
                    self.tables.get_mut(&path).unwrap().extend(rows);
                }
            }
            10 if !is_in_doubt => {
                let (mut txn, rows) = self.write(&path, 300);
                self.next += 1;
                let xid = format!("x{}", self.next);
                txn.prepare(xid.as_bytes()).unwrap();
                txn.detach();
                self.prepared.push((xid, path, rows));
            }
            11 | 12 if !self.prepared.is_empty() => {
                let (xid, path, rows) = self.prepared.swap_remove(0);
                if self.rng.random_bool(0.5) {
                    assert!(self.db.commit_by_xid(xid.as_bytes()).unwrap());
                    self.tables.get_mut(&path).unwrap().extend(rows);
                } else {
                    assert!(self.db.rollback_by_xid(xid.as_bytes()).unwrap());
                }
            }
            13..=15 => self.db.run_jobs().unwrap(),
            16..=18 => self.db.checkpoint().unwrap(),
            19 if !is_in_doubt => {
                self.db.truncate_table(&path).unwrap();
                self.tables.get_mut(&path).unwrap().clear();
            }
            20 if !is_in_doubt => {
                self.db.drop_table(&path).unwrap();
                self.tables.remove(&path);
                self.create();
            }
            21 if !is_in_doubt => {
                let to = self.new_name();
                self.db.rename_table(&path, &to).unwrap();
                let rows = self.tables.remove(&path).unwrap();
                self.tables.insert(to, rows);
                // Another one gets the old name.
                self.create_at(&path);
                self.tables.insert(path, Rows::new());
            }
            22 => {
                // Of odd seeds they are encrypted from the beginning.
                self.db.encrypt_table(&path, 7).unwrap();
                if self.rng.random_bool(0.5) {
                    self.db.key_rotation_looks_again();
                    self.db.encrypt_tables();
                }
            }
            _ => self.db.tick(),
        }
    }

    fn reopen(&mut self) {
        self.db.close().unwrap();
        self.db = open_at(&self.vfs, "/data");
    }
}

fn content(db: &Arc<Db>, path: &str) -> Rows {
    let table = db.open_table(path).unwrap();
    db.check_table(&table, &mut |_| true).unwrap();
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek_first(&mut txn, ReadMode::Latest).unwrap();
    let mut rows = Rows::new();
    while cursor.valid() {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next(&mut txn).unwrap();
    }
    rows
}

#[test]
fn a_copy_is_the_moment_of_the_pin_whatever_goes_on_meanwhile() {
    let (mut spilled, mut in_doubt) = (0, 0);
    for seed in 0..25 {
        let mut world = World::new(seed);
        (0..world.rng.random_range(1..80)).for_each(|_| world.step());
        if world.rng.random_bool(0.3) {
            // Most tables are not open when it begins.
            world.reopen();
        }
        world.db.arm_backup(ME).unwrap();
        assert!(world.db.pin_backup());
        let (tables, prepared) = (world.tables.clone(), world.prepared.clone());
        (0..world.rng.random_range(0..10)).for_each(|_| world.step());
        let mut copier = Copier::begin(&world.vfs, &world.db);
        while !copier.left.is_empty() {
            (0..world.rng.random_range(0..12)).for_each(|_| world.step());
            let which = world.rng.random_range(0..copier.left.len());
            copier.copy_one(&world.db, which);
        }
        world.db.end_backup(ME);
        let kept = Path::new("/data/.pando/backup");
        assert!(!world.vfs.exists(kept).unwrap() || world.vfs.read_dir(kept).unwrap().is_empty());

        let copy = open_at(&world.vfs, COPY);
        let mut found: Vec<_> = copy.report_prepared(1000);
        let mut expected: Vec<_> = prepared.iter().map(|(xid, ..)| xid.clone().into_bytes()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "seed {seed}");
        let mut tables = tables;
        for (at, (xid, path, rows)) in prepared.into_iter().enumerate() {
            if at % 2 == 0 {
                assert!(copy.commit_by_xid(xid.as_bytes()).unwrap());
                tables.get_mut(&path).unwrap().extend(rows);
                in_doubt += 1;
            } else {
                assert!(copy.rollback_by_xid(xid.as_bytes()).unwrap());
            }
        }
        for (path, rows) in &tables {
            assert_eq!(&content(&copy, path), rows, "seed {seed}, {path}");
        }
        for (path, rows) in &world.tables {
            assert_eq!(&content(&world.db, path), rows, "seed {seed}, {path} of the original");
        }
        spilled += world.db.metrics().spills.get();
    }
    assert!(spilled > 0 && in_doubt > 0);
}

#[test]
fn a_pin_holds_space_and_log_until_it_is_copied_or_its_session_ends() {
    let vfs = disk(1);
    let db = open_at(&vfs, "/data");
    db.create_table(&spec("./db/t")).unwrap();
    let write = |times: u32| {
        for _ in 0..times {
            // Too small to be spilled: the log has them.
            (0..15).for_each(|part| fill(&db, "./db/t", part * 20..part * 20 + 20).unwrap());
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
        }
    };
    let held = || db.metrics().backup_held_bytes.get();
    write(3);
    db.arm_backup(ME).unwrap();
    assert!(db.pin_backup());
    assert_eq!(held(), 0);
    write(5);
    let after_five = held();
    assert!(after_five > 0);
    // What came later is not held: the longer a backup takes, the more it does not hold.
    write(40);
    assert_eq!(held(), after_five);
    assert!(db.arm_backup(8).is_err(), "one at a time");
    assert!(db.backup_list(8).is_err());
    let log = db.backup_log(ME).unwrap();
    assert!(log.iter().all(|file| vfs.exists(&file.path).unwrap()));
    db.end_backup(8);
    assert!(db.has_backup());
    db.end_backup(ME);
    assert_eq!(held(), 0);
    db.checkpoint().unwrap();
    assert!(log.iter().any(|file| !vfs.exists(&file.path).unwrap()), "the log is trimmed again");
    db.arm_backup(8).unwrap();
}

#[test]
fn files_that_a_backup_kept_are_gone_after_a_crash() {
    let vfs = disk(1);
    let db = open_at(&vfs, "/data");
    db.create_table(&spec("./db/t")).unwrap();
    fill(&db, "./db/t", 0..300).unwrap();
    db.checkpoint().unwrap();
    db.arm_backup(ME).unwrap();
    assert!(db.pin_backup());
    db.drop_table("./db/t").unwrap();
    let kept = Path::new("/data/.pando/backup");
    assert_eq!(vfs.read_dir(kept).unwrap().len(), 2);
    db.abandon();
    drop(db);
    let vfs = vfs.crash();
    let _db = open_at(&vfs, "/data");
    assert!(!vfs.exists(kept).unwrap());
}

#[test]
fn a_copy_has_the_deleted_ranges() {
    for in_superblock in [false, true] {
        let vfs = disk(3);
        let db = open_at(&vfs, "/data");
        db.create_table(&TableSpec { indexes: Vec::new(), encryption_key_id: None, ..spec("./db/t") })
            .unwrap();
        let table = db.open_table("./db/t").unwrap();
        let mut txn = db.begin();
        for n in 0..500 {
            txn.put(&table, 0, &key(n), b"value", LockWait::NoWait).unwrap();
        }
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        // It keeps the range from going.
        let mut old = db.begin();
        old.open_snapshot();
        assert_eq!(txn.delete_range(&table, &key(100), Some(&key(450))).unwrap(), Some(350));
        txn.commit().unwrap();
        txn.put(&table, 0, &key(200), b"again", LockWait::NoWait).unwrap();
        txn.commit().unwrap();
        if in_superblock {
            db.checkpoint().unwrap();
        }
        db.run_jobs().unwrap();
        assert_eq!(table.dicts()[0].tree().deleted_ranges(), 1);
        db.arm_backup(ME).unwrap();
        assert!(db.pin_backup());
        let mut copier = Copier::begin(&vfs, &db);
        for file in &copier.left {
            let superblock = db.backup_file(ME, file.dict).unwrap().superblock;
            let text = serde_json::to_string(&SuperblockText::from(&superblock)).unwrap();
            let read: SuperblockText = serde_json::from_str(&text).unwrap();
            assert_eq!(pando_storage::Superblock::from(&read), superblock);
        }
        while !copier.left.is_empty() {
            copier.copy_one(&db, 0);
        }
        db.end_backup(ME);
        let copy = open_at(&vfs, COPY);
        let rows = content(&copy, "./db/t");
        assert_eq!(rows.len(), 151, "in the superblock: {in_superblock}");
        assert_eq!(rows[&key(200)], b"again");
        assert_eq!(content(&db, "./db/t"), rows);
    }
}

/// A backup of some tables was restored, and each key of the others was called damaged: the log, which is of all tables, has
/// changes of files that are not there. Now these tables count as dropped.
#[test]
#[expect(clippy::disallowed_methods, reason = "a restored backup is in files")]
fn nothing_is_said_of_tables_that_a_restored_backup_does_not_have() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let quiet = |dir: &Path| Options { background_threads: 0, log_file_bytes: 1 << 20, ..Options::new(dir) };
    let db = Db::open(quiet(from.path())).unwrap();
    let mut txn = db.begin();
    for path in ["./db/has", "./db/has_not"] {
        db.create_table(&TableSpec { encryption_key_id: None, ..spec(path) }).unwrap();
        let table = db.open_table(path).unwrap();
        db.checkpoint().unwrap();
        for n in 0..50 {
            for dict in 0..2 {
                txn.put(&table, dict, &key(n), b"value", LockWait::NoWait).unwrap();
            }
        }
    }
    txn.commit().unwrap();
    for (n, paths) in [(60, &["./db/has", "./db/has_not"][..]), (61, &["./db/has_not"])] {
        let mut txn = db.begin();
        for path in paths {
            let table = db.open_table(path).unwrap();
            (0..2).for_each(|dict| txn.put(&table, dict, &key(n), b"value", LockWait::NoWait).unwrap());
        }
        txn.prepare(format!("x{n}").as_bytes()).unwrap();
        txn.detach();
    }
    for dir in [".pando", "db/has.pando"] {
        let (from, to) = (from.path().join(dir), to.path().join(dir));
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() && file.file_name() != "lock" {
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
    }
    let lines = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = lines.clone();
    let log: LogSink = Arc::new(move |_, text| sink.lock().unwrap().push(text.to_owned()));
    let wanted = |path: &str| path == "db/has";
    let restored = prepare_restored(to.path(), wanted, Options::new(to.path()).keys, log).unwrap();
    assert_eq!((restored.tables, restored.tables_dropped), (1, 1));
    assert_eq!(*lines.lock().unwrap(), Vec::<String>::new());
    let db = Db::open(quiet(to.path())).unwrap();
    for xid in db.report_prepared(10) {
        assert!(db.commit_by_xid(&xid).unwrap());
    }
    assert!(db.open_table("./db/has_not").is_err());
    assert_eq!(content(&db, "./db/has").len(), 51);
}
