//! Encrypted tables: nothing of their rows is ever written in plain text, a missing key is the trouble of its table alone, and everything goes
//! on with keys that were rotated.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::watched::WatchedVfs;
use common::{count, disk, options, spec, Lines};
use pando_storage::vfs::OpenMode;
use pandodb::{
    Compression, Db, EngineError, Entries, Entry, Error, IndexPlace, IndexSource, KeyList, KeyProvider,
    KeyRing, LoadEnd, LockWait, NewIndex, Options, ReadMode, RowEncoder, SecretKey, SimVfs, TableSpec, Txn,
    Vfs,
};

const T: &str = "./db/t";
const TEXT: &[u8] = b"visible";

fn keys(list: &[(u32, u32, u8)]) -> KeyRing {
    let add = |keys: KeyList, (id, version, byte): &(u32, u32, u8)| {
        keys.with(*id, *version, SecretKey::new(vec![*byte; 32]))
    };
    KeyRing::new(Arc::new(list.iter().fold(KeyList::new(), add)))
}

fn all_keys() -> KeyRing {
    keys(&[(1, 1, 1), (7, 1, 7)])
}

fn options_with(keys: KeyRing) -> Options {
    Options {
        keys,
        encrypt_log: false,
        write_set_bytes: 6000,
        load_memory_bytes: 16 << 10,
        ..options(&Lines::default())
    }
}

fn open_with(vfs: Arc<dyn Vfs>, keys: KeyRing) -> pandodb::Result<Arc<Db>> {
    Db::open_with_vfs(options_with(keys), vfs.clone(), vfs)
}

fn encrypted(path: &str) -> TableSpec {
    TableSpec { encryption_key_id: Some(7), compression: Compression::None, ..spec(path) }
}

fn key(n: u32) -> Vec<u8> {
    format!("visible key {n:08}").into_bytes()
}

fn put(txn: &mut Txn, db: &Arc<Db>, path: &str, rows: std::ops::Range<u32>) {
    let table = db.open_table(path).unwrap();
    for n in rows {
        for dict in 0..table.dicts().len() {
            let value = format!("visible value {n}");
            txn.put(&table, dict, &key(n), value.as_bytes(), LockWait::NoWait).unwrap();
        }
    }
}

fn commit(db: &Arc<Db>, path: &str, rows: std::ops::Range<u32>) {
    let mut txn = db.begin();
    put(&mut txn, db, path, rows);
    txn.commit().unwrap();
}

struct Numbers;

impl RowEncoder for Numbers {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, entries: &mut [Entries]) -> Result<(), i32> {
        for n in batch {
            for of in entries.iter_mut() {
                of.push(&key(n), format!("visible loaded {n}").as_bytes());
            }
        }
        Ok(())
    }
}

fn load(db: &Arc<Db>, path: &str, rows: u32) {
    let table = db.open_table(path).unwrap();
    let mut txn = db.begin();
    let mut load = txn.begin_load(&table, &[true, true], Numbers).unwrap().unwrap();
    let shuffled: Vec<u32> = (0..rows).map(|n| (u64::from(n) * 7919 % u64::from(rows)) as u32).collect();
    for batch in shuffled.chunks(100) {
        load.submit(batch.to_vec(), batch.len() as u64, 1000);
    }
    assert_eq!(txn.finish_load(load, &mut |_| true).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
}

/// Adds a unique index whose entries are the rows' own, while another transaction writes.
fn add_index(db: &Arc<Db>, path: &str) {
    let index = NewIndex {
        name: "added".into(),
        is_unique: true,
        clustering: pandodb::Clustering::None,
        recipe: Vec::new(),
    };
    let mut build = db.begin_index_build(path, &[index]).unwrap();
    let mut reader = build.take_reader().unwrap();
    let table = build.table().clone();
    let mut rows = std::collections::BTreeMap::new();
    common::for_each_row(&mut reader, &table, 0, false, |key, value| {
        rows.insert(key.to_vec(), value.to_vec());
    });
    build.set_base_of(0, rows.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap();
    build.end_bases().unwrap();
    let table = db.open_table(path).unwrap();
    let mut txn = db.begin();
    for n in 5_000_000..5_000_050 {
        let (key, value) = (key(n), format!("visible value {n}").into_bytes());
        let entry = Entry { key: &key, value: &value, unique: true };
        txn.insert_row(&table, &vec![entry; table.entries()]).unwrap();
    }
    txn.commit().unwrap();
    build.catch_up(&mut || false).unwrap();
    build.secure().unwrap();
    let place = |name: &str, source| IndexPlace { name: name.into(), source };
    let places = [place("k", IndexSource::Kept(1)), place("added", IndexSource::New(0))];
    build.finish(&places).map_err(|(_, error)| error).unwrap();
}

/// All that writes rows of a table somewhere; a label and the files that got the text in plain, each.
fn work(vfs: &Arc<WatchedVfs>, spec_of: impl Fn(&str) -> TableSpec) -> Vec<(&'static str, Vec<String>)> {
    let mut seen = Vec::new();
    let mut note = |what: &'static str| seen.push((what, vfs.take().into_iter().collect()));
    let db = open_with(vfs.clone(), all_keys()).unwrap();
    db.create_table(&spec_of(T)).unwrap();
    db.create_table(&spec_of("./db/loaded")).unwrap();
    commit(&db, T, 0..20);
    note("a commit");
    commit(&db, T, 20..800);
    note("a transaction that is spilled");
    for part in 0..40 {
        commit(&db, T, 1000 + part * 15..1015 + part * 15);
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
    }
    note("flushes and merges");
    load(&db, "./db/loaded", 6000);
    note("a load with spilled parts");
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    add_index(&db, T);
    note("a key that is added");
    let mut txn = db.begin();
    put(&mut txn, &db, T, 2000..2010);
    txn.prepare(b"x1").unwrap();
    txn.detach();
    note("a prepare");
    commit(&db, T, 3000..3010);
    db.abandon();
    drop(db);
    note("a crash");
    let db = open_with(vfs.clone(), all_keys()).unwrap();
    assert!(db.commit_by_xid(b"x1").unwrap());
    db.run_jobs().unwrap();
    db.close().unwrap();
    note("a recovery");
    let db = open_with(vfs.clone(), all_keys()).unwrap();
    assert_eq!(count(&db, "./db/loaded").unwrap(), 6000);
    assert_eq!(count(&db, T).unwrap(), 800 + 600 + 50 + 10 + 10);
    db.close().unwrap();
    seen
}

#[test]
fn nothing_of_an_encrypted_table_is_ever_written_in_plain_text() {
    let plain = work(&WatchedVfs::new(disk(1), TEXT), |path| TableSpec {
        encryption_key_id: None,
        ..encrypted(path)
    });
    for (what, files) in plain {
        assert!(!files.is_empty(), "{what}: the test would not see it");
    }
    let vfs = WatchedVfs::new(disk(1), TEXT);
    for (what, files) in work(&vfs, encrypted) {
        assert_eq!(files, Vec::<String>::new(), "{what}");
    }
}

/// Keys whose newest version changes while they are in use.
#[derive(Default)]
struct Rotated(std::sync::atomic::AtomicU32);

impl KeyProvider for Rotated {
    fn latest_version(&self, _: u32) -> Result<u32, String> {
        Ok(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
    fn key(&self, key_id: u32, version: u32) -> Result<SecretKey, String> {
        Ok(SecretKey::new([[key_id as u8; 16], [version as u8; 16]].concat()))
    }
}

fn oldest(db: &Db) -> Vec<(String, Option<u32>)> {
    db.key_uses().into_iter().map(|of| (format!("{} {}", of.table, of.name), of.oldest)).collect()
}

#[test]
fn files_with_blocks_of_old_keys_are_rewritten() {
    let vfs = disk(3);
    let provider = Arc::new(Rotated::default());
    let newest = |version| provider.0.store(version, std::sync::atomic::Ordering::Relaxed);
    newest(1);
    let ring = || KeyRing::new(provider.clone());
    let db = open_with(vfs.clone(), ring()).unwrap();
    db.set_key_rotation(2, 0);
    db.create_table(&encrypted(T)).unwrap();
    db.create_table(&encrypted("./db/empty")).unwrap();
    commit(&db, T, 0..3000);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let all = |db: &Db, version| oldest(db).iter().all(|(_, oldest)| *oldest == Some(version));
    assert!(all(&db, 1) && oldest(&db).len() == 4, "{:?}", oldest(&db));
    // A transaction has written runs that nobody sees yet.
    let mut open = db.begin();
    put(&mut open, &db, T, 3000..3400);
    newest(2);
    commit(&db, T, 3400..3500);
    db.rotate_old_keys();
    assert!(
        oldest(&db).iter().all(|(_, oldest)| oldest.is_none()),
        "one version is not too old, nobody has looked"
    );
    newest(3);
    db.rotate_old_keys();
    assert!(all(&db, 3), "{:?}", oldest(&db));
    open.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 3500);
    let table = db.open_table(T).unwrap();
    assert_eq!(table.dicts()[0].tree().oldest_key_version().unwrap(), Some(1), "from before");
    // As it is seen some hours later.
    db.key_rotation_looks_again();
    db.rotate_old_keys();
    assert!(all(&db, 3), "{:?}", oldest(&db));
    drop(table);
    db.close().unwrap();
    drop(db);
    // Versions before are not needed any more.
    let db = open_with(vfs.clone(), keys(&[(1, 3, 1)])).unwrap();
    assert!(db.open_table(T).is_err());
    drop(db);
    let only_three =
        KeyRing::new(Arc::new(KeyList::new().with(1, 3, SecretKey::new([[1; 16], [3; 16]].concat())).with(
            7,
            3,
            SecretKey::new([[7; 16], [3; 16]].concat()),
        )));
    let db = open_with(vfs, only_three).unwrap();
    assert_eq!((count(&db, T).unwrap(), count(&db, "./db/empty").unwrap()), (3500, 0));
    assert!(db.check_table(&db.open_table(T).unwrap(), &mut |_| true).is_ok());
}

#[test]
fn after_a_rotation_and_checkpoints_the_log_needs_no_old_key() {
    // Symptom: all files had the newest version, the old one was removed, and after a crash the engine did not start:
    // the log of a quiet server still began with a batch of the old one.
    let vfs = disk(7);
    let provider = Arc::new(Rotated::default());
    provider.0.store(1, std::sync::atomic::Ordering::Relaxed);
    let db = open_with(vfs.clone(), KeyRing::new(provider.clone())).unwrap();
    db.create_table(&encrypted(T)).unwrap();
    commit(&db, T, 0..50);
    provider.0.store(2, std::sync::atomic::Ordering::Relaxed);
    db.set_key_rotation(1, 0);
    db.rotate_old_keys();
    db.checkpoint().unwrap();
    commit(&db, T, 50..60);
    db.abandon();
    drop(db);
    let only_two = [1, 7].into_iter().fold(KeyList::new(), |keys, id| {
        keys.with(id, 2, SecretKey::new([[id as u8; 16], [2; 16]].concat()))
    });
    let db = open_with(vfs, KeyRing::new(Arc::new(only_two))).unwrap();
    assert_eq!(count(&db, T).unwrap(), 60);
}

#[test]
fn files_that_are_rewritten_are_left_alone() {
    // Symptom: every five seconds all encrypted tables were opened, and with more of them than files may be open, all that
    // had been closed for it were read again: an idle server with 2,000 tables read 4 MB a second.
    let vfs = disk(5);
    let provider = Arc::new(Rotated::default());
    provider.0.store(1, std::sync::atomic::Ordering::Relaxed);
    let options = Options { files_open_max: 3, ..options_with(KeyRing::new(provider.clone())) };
    let db = Db::open_with_vfs(options, vfs.clone(), vfs.clone()).unwrap();
    for n in 0..6 {
        let path = format!("./db/t{n}");
        db.create_table(&encrypted(&path)).unwrap();
        commit(&db, &path, 0..50);
    }
    db.checkpoint().unwrap();
    provider.0.store(2, std::sync::atomic::Ordering::Relaxed);
    db.set_key_rotation(1, 0);
    db.rotate_old_keys();
    assert!(oldest(&db).iter().all(|(_, oldest)| *oldest == Some(2)), "{:?}", oldest(&db));
    let before = vfs.io_count();
    db.rotate_old_keys();
    assert_eq!(vfs.io_count(), before, "nothing is opened or read");
    // The key management loses its newest version for a while: what is written then is rewritten later.
    provider.0.store(1, std::sync::atomic::Ordering::Relaxed);
    db.rotate_old_keys();
    commit(&db, "./db/t3", 50..60);
    db.checkpoint().unwrap();
    provider.0.store(2, std::sync::atomic::Ordering::Relaxed);
    assert!(oldest(&db).iter().all(|(_, oldest)| *oldest == Some(1)), "{:?}", oldest(&db));
    db.rotate_old_keys();
    assert!(oldest(&db).iter().all(|(_, oldest)| *oldest == Some(2)), "{:?}", oldest(&db));
    let table = db.open_table("./db/t3").unwrap();
    assert_eq!(table.dicts()[0].tree().oldest_key_version().unwrap(), Some(2));
}

#[test]
fn a_file_that_cannot_be_rewritten_is_not_tried_again_at_once() {
    // Symptom: with a bad block, every five seconds all leaves before it were rewritten and the error told.
    let vfs = disk(6);
    let provider = Arc::new(Rotated::default());
    provider.0.store(1, std::sync::atomic::Ordering::Relaxed);
    let lines = Lines::default();
    let all_options = || Options {
        log: options(&lines).log,
        cache_bytes: 0,
        ..options_with(KeyRing::new(provider.clone()))
    };
    let db = Db::open_with_vfs(all_options(), vfs.clone(), vfs.clone()).unwrap();
    db.create_table(&encrypted(T)).unwrap();
    commit(&db, T, 0..3000);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    provider.0.store(2, std::sync::atomic::Ordering::Relaxed);
    db.set_key_rotation(1, 0);
    let file = Path::new("/data/db/t.pando/main.pando");
    let len = vfs.open(file, OpenMode::Existing).unwrap().len().unwrap();
    for offset in (len / 2..len).step_by(500) {
        vfs.flip_bit(file, offset, 1);
    }
    let told = || {
        lines.lock().unwrap().iter().filter(|(_, text)| text.contains("main.pando with its new key")).count()
    };
    db.rotate_old_keys();
    assert_eq!(told(), 1);
    let before = vfs.io_count();
    db.rotate_old_keys();
    assert_eq!((told(), vfs.io_count()), (1, before), "as long as nothing was mended, perhaps");
    vfs.advance_micros(7 * 3600 * 1_000_000);
    db.rotate_old_keys();
    assert_eq!(told(), 2, "and later it is tried again");
    db.abandon();
}

/// Two encrypted tables with different keys and one that is not, all with rows in files and others in the log.
fn three_tables() -> Arc<SimVfs> {
    let vfs = disk(1);
    let db = open_with(vfs.clone(), keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8)])).unwrap();
    db.create_table(&encrypted("./db/seven")).unwrap();
    db.create_table(&TableSpec { encryption_key_id: Some(8), ..encrypted("./db/eight") }).unwrap();
    db.create_table(&TableSpec { encryption_key_id: None, ..encrypted("./db/plain") }).unwrap();
    for path in ["./db/seven", "./db/eight", "./db/plain"] {
        commit(&db, path, 0..300);
    }
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    for path in ["./db/seven", "./db/eight", "./db/plain"] {
        commit(&db, path, 300..310);
    }
    db.abandon();
    vfs
}

#[test]
fn without_its_key_a_table_is_refused_by_name_and_the_others_go_on() {
    let vfs = three_tables();
    let rounds = [
        (keys(&[(1, 1, 1), (8, 1, 8)]), "there is no such key"),
        (keys(&[(1, 1, 1), (7, 1, 99), (8, 1, 8)]), "another key"),
    ];
    for (n, (ring, reason)) in (310..).zip(rounds) {
        let db = open_with(vfs.clone(), ring).unwrap();
        let error = db.open_table("./db/seven").unwrap_err();
        assert!(matches!(error, EngineError::Key { key_id: 7, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("db/seven.pando/") && text.contains(reason), "{text}");
        for path in ["./db/eight", "./db/plain"] {
            assert_eq!(count(&db, path).unwrap(), n);
            commit(&db, path, n..n + 1);
        }
        db.run_jobs().unwrap();
        db.close().unwrap();
    }
    let db = open_with(vfs.clone(), keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8)])).unwrap();
    assert_eq!(count(&db, "./db/seven").unwrap(), 310, "nothing was damaged, and the log was kept");
    assert_eq!(count(&db, "./db/eight").unwrap(), 312);
    db.close().unwrap();
    drop(db);
    // A table without its key can be dropped.
    let db = open_with(vfs, keys(&[(1, 1, 1)])).unwrap();
    db.drop_table("./db/seven").unwrap();
    let error = db.create_table(&encrypted("./db/new")).unwrap_err();
    assert!(error.to_string().contains("needs encryption key 7: there is no such key"), "{error}");
}

#[test]
fn without_the_logs_key_the_database_does_not_open_and_with_it_everything_is_there() {
    let vfs = three_tables();
    for ring in [KeyRing::empty(), keys(&[(7, 1, 7), (8, 1, 8)]), keys(&[(1, 1, 2), (7, 1, 7), (8, 1, 8)])] {
        let Err(Error::Engine(error)) = open_with(vfs.clone(), ring) else { panic!("it opened") };
        assert!(matches!(error, EngineError::Key { key_id: 1, .. }), "{error}");
        assert!(error.to_string().contains("/data/.pando/pando-0"), "{error}");
    }
    let db = open_with(vfs, keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8)])).unwrap();
    for path in ["./db/seven", "./db/eight", "./db/plain"] {
        assert_eq!(count(&db, path).unwrap(), 310);
    }
}

#[test]
fn rotated_keys_are_used_for_what_is_new_and_old_versions_for_what_is_old() {
    let vfs = three_tables();
    let rings = [
        keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8), (7, 2, 17)]),
        keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8), (7, 2, 17), (1, 2, 11), (7, 5, 57)]),
    ];
    for (n, ring) in (0u32..).zip(&rings) {
        let db = open_with(vfs.clone(), ring.clone()).unwrap();
        commit(&db, "./db/seven", 310 + n * 10..320 + n * 10);
        db.checkpoint().unwrap();
        commit(&db, "./db/seven", 400 + n * 10..410 + n * 10);
        db.abandon();
    }
    let db = open_with(vfs, rings[1].clone()).unwrap();
    assert_eq!(count(&db, "./db/seven").unwrap(), 350);
}

#[test]
fn a_plain_file_in_place_of_an_encrypted_one_is_refused() {
    let vfs = three_tables();
    let db = open_with(vfs.clone(), keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8)])).unwrap();
    let path = Path::new("/data/db/seven.pando/main.pando");
    let dict = db.open_table("./db/seven").unwrap().dicts()[0].id();
    db.close().unwrap();
    drop(db);
    vfs.remove_file(path).unwrap();
    let files: Arc<dyn Vfs> = vfs.clone();
    pando_storage::TreeFile::create(&files, path, dict).unwrap();
    assert!(vfs.open(path, OpenMode::Existing).is_ok());
    let db = open_with(vfs, keys(&[(1, 1, 1), (7, 1, 7), (8, 1, 8)])).unwrap();
    let error = db.open_table("./db/seven").unwrap_err().to_string();
    assert!(error.contains("encryption: expected key 7, found no key"), "{error}");
}

#[test]
fn a_cursor_reads_an_encrypted_table_both_ways() {
    let db = open_with(disk(1), all_keys()).unwrap();
    db.create_table(&encrypted(T)).unwrap();
    load(&db, T, 3000);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    for backward in [false, true] {
        let mut n = 0;
        common::for_each_row(&mut txn, &table, 1, backward, |found, _| {
            assert_eq!(found, key(if backward { 2999 - n } else { n }));
            n += 1;
        });
        assert_eq!(n, 3000);
    }
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek(&mut txn, &key(1234), ReadMode::Snapshot).unwrap();
    assert_eq!(cursor.value(), b"visible loaded 1234");
}
