//! Tables that are encrypted in place: nobody notices, whatever the crash, and in the end nothing of them is left that can be read without
//! the key.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]
#![expect(clippy::disallowed_methods, reason = "threads of users")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use common::watched::WatchedVfs;
use common::{count, disk, options, spec, Lines};
use pando_storage::vfs::OpenMode;
use pando_storage::TreeFile;
use pando_tree::verify_without_key;
use pandodb::{
    Compression, Db, EngineError, Error, IndexPlace, IndexSource, KeyList, KeyRing, LockWait, NewIndex,
    Options, ReadMode, SecretKey, SimVfs, TableSpec, Txn, Vfs,
};

const T: &str = "./db/t";
const TEXT: &[u8] = b"visible";

fn keys(list: &[u32]) -> KeyRing {
    let add = |keys: KeyList, id: &u32| keys.with(*id, 1, SecretKey::new(vec![*id as u8; 32]));
    KeyRing::new(Arc::new(list.iter().fold(KeyList::new(), add)))
}

fn open_keeping(vfs: Arc<dyn Vfs>, keys: KeyRing, lines: &Lines) -> pandodb::Result<Arc<Db>> {
    let options = Options { keys, encrypt_log: false, write_set_bytes: 6000, ..options(lines) };
    Db::open_with_vfs(options, vfs.clone(), vfs)
}

fn open(vfs: &Arc<SimVfs>) -> Arc<Db> {
    open_keeping(vfs.clone(), keys(&[1, 7]), &Lines::default()).unwrap()
}

fn plain(path: &str) -> TableSpec {
    TableSpec { encryption_key_id: None, compression: Compression::None, ..spec(path) }
}

fn key(n: u32) -> Vec<u8> {
    format!("visible key {n:08}").into_bytes()
}

fn put(txn: &mut Txn, db: &Arc<Db>, rows: std::ops::Range<u32>) -> pandodb::Result<()> {
    let table = db.open_table(T)?;
    for n in rows {
        for dict in 0..table.dicts().len() {
            let value = format!("visible value {n}");
            txn.put(&table, dict, &key(n), value.as_bytes(), LockWait::NoWait)?;
        }
    }
    Ok(())
}

fn commit(db: &Arc<Db>, rows: std::ops::Range<u32>) {
    let mut txn = db.begin();
    put(&mut txn, db, rows).unwrap();
    txn.commit().unwrap();
}

/// A table with rows in leaves, in buffers and in memory.
fn filled(vfs: &Arc<SimVfs>, rows: u32) -> Arc<Db> {
    let db = open(vfs);
    db.create_table(&plain(T)).unwrap();
    commit(&db, 0..rows / 2);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    for part in rows / 20..rows / 10 {
        commit(&db, part * 10..part * 10 + 10);
    }
    db.run_jobs().unwrap();
    db
}

/// File and dictionary of each of the table's files.
fn files(db: &Arc<Db>, path: &str) -> Vec<(PathBuf, pando_base::DictId)> {
    let uses = db.key_uses().into_iter().filter(|its| format!("./{}", its.table) == path);
    uses.map(|its| (Path::new("/data").join(its.file), pando_base::DictId(its.id))).collect()
}

fn parts(db: &Db) -> Vec<Option<f64>> {
    db.key_uses().into_iter().map(|its| its.part).collect()
}

/// Whether all is over: by the reports, and by each file as it is on the disk, of which every block is looked at.
fn is_whole(db: &Arc<Db>, disk: &Arc<SimVfs>) -> bool {
    is_whole_in(db, disk, true)
}

/// `all_of_it`: also where nothing is.
fn is_whole_in(db: &Arc<Db>, disk: &Arc<SimVfs>, all_of_it: bool) -> bool {
    let vfs: Arc<dyn Vfs> = disk.copy_after_power_loss();
    let uses = db.key_uses();
    let by_report = !uses.is_empty() && uses.iter().all(|its| its.part.is_none() && its.oldest == Some(1));
    for (path, dict) in files(db, T) {
        let (file, superblock) = TreeFile::open(&vfs, &path, dict).unwrap();
        let by_file = superblock.encryption.is_some_and(|its| !its.is_mixed);
        if !by_file || !by_report {
            return false;
        }
        // Refuses plain blocks.
        let found = verify_without_key(&file, &superblock).unwrap();
        assert!(found.keys.iter().all(|(key, _)| *key == (7, 1)) && found.keys.len() <= 1, "{found:?}");
        if !all_of_it {
            continue;
        }
        let file = vfs.open(&path, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let at = bytes.windows(TEXT.len()).position(|window| window == TEXT);
        assert_eq!(at, None, "{}", path.display());
    }
    by_report
}

/// Checks the table, and that its rows are 0 up to some number, which is given.
fn rows(db: &Arc<Db>) -> u32 {
    let n = count(db, T).unwrap();
    let table = db.open_table(T).unwrap();
    for dict in 0..table.dicts().len() {
        let mut expected = 0;
        common::for_each_row(&mut db.begin(), &table, dict, false, |found, value| {
            assert_eq!((found, value), (&key(expected)[..], format!("visible value {expected}").as_bytes()));
            expected += 1;
        });
        assert_eq!(expected, n);
    }
    n
}

#[test]
fn a_table_is_encrypted_while_it_is_used_and_nothing_of_it_is_left_in_plain_text() {
    let vfs = disk(1);
    let db = filled(&vfs, 2000);
    assert!(db.key_uses().is_empty());
    assert!(db.encrypt_table(T, 7).unwrap());
    assert_eq!(parts(&db), [Some(0.0), Some(0.0)]);
    assert!(db.encrypt_table(T, 7).unwrap(), "it goes on");
    commit(&db, 2000..2100);
    assert_eq!(rows(&db), 2100, "blocks of both kinds are read");
    db.encrypt_tables();
    assert!(is_whole(&db, &vfs));
    assert!(!db.encrypt_table(T, 7).unwrap(), "it is through");
    commit(&db, 2100..2200);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert!(rows(&db) == 2200 && is_whole(&db, &vfs));
    db.close().unwrap();
    drop(db);
    let db = open(&vfs);
    assert!(rows(&db) == 2200 && is_whole(&db, &vfs));
    db.close().unwrap();
    drop(db);
    let db = open_keeping(vfs, keys(&[1]), &Lines::default()).unwrap();
    assert!(matches!(db.open_table(T).unwrap_err(), EngineError::Key { key_id: 7, .. }));
}

#[test]
fn once_it_has_begun_nothing_is_written_in_plain_text() {
    let disk = disk(2);
    let watched = WatchedVfs::new(disk.clone(), TEXT);
    let open = || open_keeping(watched.clone(), keys(&[1, 7]), &Lines::default()).unwrap();
    let db = open();
    db.create_table(&plain(T)).unwrap();
    commit(&db, 0..1500);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert!(!watched.take().is_empty(), "the test would not see it");
    db.encrypt_table(T, 7).unwrap();
    watched.take();
    commit(&db, 1500..1600);
    commit(&db, 1600..2400);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(watched.take().into_iter().collect::<Vec<_>>(), Vec::<String>::new());
    db.abandon();
    drop(db);
    let db = open();
    db.encrypt_tables();
    commit(&db, 2400..2500);
    db.run_jobs().unwrap();
    db.close().unwrap();
    assert_eq!(watched.take().into_iter().collect::<Vec<_>>(), Vec::<String>::new());
    drop(db);
    let db = open();
    assert!(rows(&db) == 2500 && is_whole(&db, &disk));
}

/// What a crash at each I/O leaves can be opened, has every committed row and none besides, and goes on to be encrypted.
fn crash_at_every_io(seed: u64, trace: impl Fn(&Arc<Db>, &mut u32)) {
    let begin = || {
        let vfs = disk(seed);
        let db = filled(&vfs, 240);
        (vfs, db)
    };
    let (vfs, db) = begin();
    let before = vfs.io_count();
    let mut last = 240;
    trace(&db, &mut last);
    let ios = vfs.io_count() - before;
    db.abandon();
    drop(db);
    let (vfs, db) = begin();
    vfs.copies_before_ios(&(1..=ios + 1).collect::<Vec<u64>>());
    trace(&db, &mut 240);
    db.abandon();
    let copies = vfs.take_copies();
    assert!(copies.len() > 50, "{}", copies.len());
    let mut least = 240;
    let mut states = std::collections::BTreeSet::new();
    for (at, copy) in copies.into_iter().enumerate() {
        let db = open(&copy);
        let n = rows(&db);
        assert!(n >= least && n <= last, "crash at {at}: {n} rows after {least}");
        least = n;
        let state: Vec<bool> = db.key_uses().iter().map(|its| its.part.is_some()).collect();
        states.insert(format!("{state:?}"));
        // Another crash, after some more work.
        commit(&db, n..n + 5);
        db.run_jobs().unwrap();
        if at % 3 == 0 {
            db.checkpoint().unwrap();
        }
        db.abandon();
        drop(db);
        let copy = copy.crash();
        let db = open(&copy);
        assert_eq!(rows(&db), n + 5, "crash at {at}");
        db.encrypt_table(T, 7).unwrap();
        db.encrypt_tables();
        assert_eq!(rows(&db), n + 5, "crash at {at}");
        let table = db.open_table(T).unwrap();
        let left: Vec<_> = (table.dicts().iter()).map(|dict| dict.tree().has_no_ranges()).collect();
        assert!(is_whole(&db, &copy), "crash at {at}: {left:?}, {:?}", db.key_uses());
        drop(table);
        db.close().unwrap();
    }
    assert!(states.len() >= 3, "not begun, begun and ended: {states:?}");
}

#[test]
fn a_crash_at_every_io_loses_nothing() {
    crash_at_every_io(3, |db, last| {
        let mut more = |rows: u32| {
            commit(db, *last..*last + rows);
            *last += rows;
        };
        more(3);
        db.encrypt_table(T, 7).unwrap();
        more(3);
        db.run_jobs().unwrap();
        more(20);
        db.checkpoint().unwrap();
        more(3);
        db.encrypt_tables();
        more(3);
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
    });
}

#[test]
fn a_crash_at_every_io_loses_nothing_of_spilled_transactions() {
    crash_at_every_io(4, |db, last| {
        // Spilled while the table is plain, and committed while it is mixed: the log names plain runs.
        let mut open = db.begin();
        put(&mut open, db, *last..*last + 150).unwrap();
        db.encrypt_table(T, 7).unwrap();
        db.encrypt_tables();
        put(&mut open, db, *last + 150..*last + 300).unwrap();
        open.commit().unwrap();
        *last += 300;
        db.key_rotation_looks_again();
        db.encrypt_tables();
        commit(db, *last..*last + 3);
        *last += 3;
    });
}

#[test]
fn a_transaction_that_was_open_before_keeps_it_from_ending() {
    let vfs = disk(5);
    let db = filled(&vfs, 500);
    let mut open_one = db.begin();
    put(&mut open_one, &db, 500..900).unwrap();
    let mut prepared = db.begin();
    put(&mut prepared, &db, 900..1300).unwrap();
    prepared.prepare(b"x1").unwrap();
    prepared.detach();
    db.encrypt_table(T, 7).unwrap();
    for _ in 0..3 {
        db.key_rotation_looks_again();
        db.encrypt_tables();
        assert_eq!(parts(&db), [Some(1.0), Some(1.0)]);
    }
    open_one.commit().unwrap();
    db.key_rotation_looks_again();
    db.encrypt_tables();
    assert!(!is_whole(&db, &vfs), "the prepared one is still there");
    db.abandon();
    drop(db);
    // A start finds it in the log, with runs from before.
    let vfs = vfs.crash();
    let db = open(&vfs);
    db.encrypt_tables();
    assert_eq!(rows(&db), 900);
    assert!(!is_whole(&db, &vfs));
    assert!(db.commit_by_xid(b"x1").unwrap());
    db.key_rotation_looks_again();
    db.encrypt_tables();
    assert!(rows(&db) == 1300 && is_whole(&db, &vfs));
    db.abandon();
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs);
    assert!(rows(&db) == 1300 && is_whole(&db, &vfs));
}

#[test]
fn a_snapshot_from_before_reads_on() {
    let vfs = disk(6);
    let db = filled(&vfs, 600);
    let table = db.open_table(T).unwrap();
    let mut old = db.begin();
    old.open_snapshot();
    let mut cursor = old.cursor(&table, 0);
    cursor.seek(&mut old, &key(100), ReadMode::Snapshot).unwrap();
    db.encrypt_table(T, 7).unwrap();
    commit(&db, 600..700);
    db.encrypt_tables();
    for n in 100..600 {
        assert!(cursor.valid() && cursor.key() == key(n));
        cursor.next(&mut old).unwrap();
    }
    assert!(!cursor.valid());
    drop((cursor, old, table));
    db.key_rotation_looks_again();
    db.encrypt_tables();
    assert!(rows(&db) == 700 && is_whole(&db, &vfs));
}

fn index() -> NewIndex {
    let (is_unique, recipe) = (false, Vec::new());
    NewIndex { name: "added".into(), is_unique, clustering: pandodb::Clustering::None, recipe }
}

#[test]
fn ddl_goes_on_in_the_middle() {
    let vfs = disk(8);
    let db = filled(&vfs, 400);
    // The files of an index that is being added were made when the table was plain.
    let build = db.begin_index_build(T, &[index()]).unwrap();
    let error = db.encrypt_table(T, 7).unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::InUse { .. })), "{error}");
    drop(build);
    db.encrypt_table(T, 7).unwrap();
    let mut build = db.begin_index_build(T, &[index()]).unwrap();
    let mut reader = build.take_reader().unwrap();
    let table = build.table().clone();
    let mut base = Vec::new();
    common::for_each_row(&mut reader, &table, 0, false, |key, value| {
        base.push((key.to_vec(), value.to_vec()))
    });
    build.set_base_of(0, base.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap();
    build.end_bases().unwrap();
    db.encrypt_tables();
    build.catch_up(&mut || false).unwrap();
    build.secure().unwrap();
    drop((reader, table));
    let place = |name: &str, source| IndexPlace { name: name.into(), source };
    let places = [place("k", IndexSource::Kept(1)), place("added", IndexSource::New(0))];
    build.finish(&places).map_err(|(_, error)| error).unwrap();
    drop(db);
    let db = open(&vfs);
    assert_eq!(rows(&db), 400);
    db.encrypt_tables();
    assert!(is_whole(&db, &vfs) && db.key_uses().len() == 3);

    // Renamed, emptied and dropped in the middle.
    db.rename_table(T, "./db/whole").unwrap();
    for change in ["rename", "truncate", "drop", "swap"] {
        db.create_table(&plain(T)).unwrap();
        commit(&db, 0..400);
        db.checkpoint().unwrap();
        db.encrypt_table(T, 7).unwrap();
        match change {
            "rename" => db.rename_table(T, "./db/other").unwrap(),
            "truncate" => db.truncate_table(T).unwrap(),
            "drop" => db.drop_table(T).unwrap(),
            _ => {
                db.rename_table(T, "./db/swapped").unwrap();
                db.create_table(&plain(T)).unwrap();
                commit(&db, 0..10);
            }
        }
        db.encrypt_tables();
        assert!(parts(&db).iter().all(Option::is_none), "{change}: {:?}", db.key_uses());
        match change {
            "rename" => db.rename_table("./db/other", T).unwrap(),
            "drop" => continue,
            _ => {}
        }
        match change {
            "truncate" => assert!(rows(&db) == 0 && is_whole(&db, &vfs)),
            "rename" => assert!(rows(&db) == 400 && is_whole(&db, &vfs)),
            _ => assert!(
                rows(&db) == 10 && files(&db, T).is_empty(),
                "another table that has its name is plain"
            ),
        }
        db.drop_table(T).unwrap();
    }
    assert_eq!(count(&db, "./db/swapped").unwrap(), 400);
}

#[test]
fn tables_that_say_nothing_of_it_are_encrypted_when_that_is_wanted_and_a_missing_key_is_told() {
    let vfs = disk(9);
    let lines = Lines::default();
    let db = filled(&vfs, 200);
    db.close().unwrap();
    drop(db);
    let db = open_keeping(vfs.clone(), keys(&[1]), &lines).unwrap();
    db.create_table(&TableSpec { temporary: true, ..plain("/tmp/#sql-1") }).ok();
    let table = db.open_table(T).unwrap();
    db.note_undecided(&table, 7);
    db.encrypt_tables();
    db.set_encrypt_tables(true);
    let told = || lines.lock().unwrap().iter().filter(|(_, text)| text.contains("cannot encrypt")).count();
    assert_eq!(told(), 0);
    let before = vfs.io_count();
    db.encrypt_tables();
    db.encrypt_tables();
    assert_eq!((told(), vfs.io_count()), (1, before), "{:?}", lines.lock().unwrap());
    let text =
        lines.lock().unwrap().iter().find(|(_, text)| text.contains("cannot encrypt")).unwrap().1.clone();
    assert!(text.contains("table db/t with key 7 now: ") && text.contains("there is no such key"), "{text}");
    assert!(db.key_uses().is_empty() && rows(&db) == 200);
    vfs.advance_micros(301 * 1_000_000);
    db.encrypt_tables();
    assert_eq!(told(), 2);
    drop(table);
    db.close().unwrap();
    drop(db);

    let db = open(&vfs);
    let table = db.open_table(T).unwrap();
    db.note_undecided(&table, 7);
    db.encrypt_tables();
    assert!(db.key_uses().is_empty());
    db.set_encrypt_tables(true);
    drop(table);
    db.encrypt_tables();
    assert!(is_whole(&db, &vfs) && rows(&db) == 200);
    // New ones are known without being opened.
    db.create_table(&TableSpec { undecided_key_id: Some(7), ..plain("./db/new") }).unwrap();
    db.create_table(&plain("./db/never")).unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&vfs);
    db.set_encrypt_tables(true);
    db.encrypt_tables();
    let encrypted: Vec<String> = db.key_uses().into_iter().map(|its| its.table).collect();
    assert_eq!(encrypted, ["db/new", "db/new", "db/t", "db/t"]);
}

#[test]
fn many_write_and_read_while_files_are_encrypted() {
    let vfs = disk(10);
    let db = filled(&vfs, 3000);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (db, stop) = (db.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut n = 3000;
            while !stop.load(Ordering::Relaxed) {
                // Some are spilled.
                let more = if n % 7 == 0 { 200 } else { 11 };
                commit(&db, n..n + more);
                n += more;
                db.run_jobs().unwrap();
            }
            n
        })
    };
    let reader = {
        let (db, stop) = (db.clone(), stop.clone());
        std::thread::spawn(move || {
            let table = db.open_table(T).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let mut expected = 0;
                common::for_each_row(&mut db.begin(), &table, 0, false, |found, _| {
                    assert_eq!(found, key(expected));
                    expected += 1;
                });
                assert!(expected >= 3000);
                db.checkpoint().unwrap();
            }
        })
    };
    db.encrypt_table(T, 7).unwrap();
    let mut rounds = 0;
    while parts(&db).iter().any(Option::is_some) {
        db.key_rotation_looks_again();
        db.encrypt_tables();
        rounds += 1;
        assert!(rounds < 1000, "it never ends");
    }
    stop.store(true, Ordering::Relaxed);
    let n = writer.join().unwrap();
    reader.join().unwrap();
    db.checkpoint().unwrap();
    // Whoever was writing a run at the end had free space that he gives back as it was.
    assert!(rows(&db) == n && is_whole_in(&db, &vfs, false));
    db.abandon();
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs);
    assert!(rows(&db) == n && is_whole_in(&db, &vfs, false));
}
