//! Tables that are encrypted, or get a new version of their key, while a file of theirs is damaged or missing. It may come back: it is taken up
//! again then, and until then nobody is told that the table is through.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use common::large_rows::{columns, insert, move_file, value_of, LARGE_BYTES};
use common::watched::WatchedVfs;
use common::{disk, for_each_row, options, spec, Lines};
use pando_base::DictId;
use pando_storage::vfs::OpenMode;
use pando_storage::TreeFile;
use pandodb::{Compression, Db, KeyList, KeyProvider, KeyRing, Options, SecretKey, SimVfs, TableSpec, Vfs};

const T: &str = "./db/t";
const LARGE: &str = "/data/db/t.pando/large.pando";
const KEY: &str = "/data/db/t.pando/key-k.pando";
const AWAY: &str = "/data/away";
const TEXT: &[u8] = b"visible";

/// Key 1 of the log and key 7 of the table, with versions up to the newest one.
#[derive(Debug)]
struct Keys(AtomicU32);

impl Keys {
    fn new(newest: u32) -> Arc<Keys> {
        Arc::new(Keys(AtomicU32::new(newest)))
    }
}

impl KeyProvider for Keys {
    fn latest_version(&self, _: u32) -> Result<u32, String> {
        Ok(self.0.load(Ordering::Relaxed))
    }
    fn key(&self, key_id: u32, version: u32) -> Result<SecretKey, String> {
        Ok(SecretKey::new([[key_id as u8; 16], [version as u8; 16]].concat()))
    }
}

fn open_with(vfs: Arc<dyn Vfs>, keys: KeyRing, lines: &Lines) -> Arc<Db> {
    let options = Options { keys, encrypt_log: false, ..options(lines) };
    Db::open_with_vfs(options, vfs.clone(), vfs).unwrap()
}

fn open(vfs: &Arc<SimVfs>, lines: &Lines) -> Arc<Db> {
    open_with(vfs.clone(), KeyRing::new(Keys::new(1)), lines)
}

fn value(n: u16) -> Vec<u8> {
    let tag = format!("visible {n} ").into_bytes();
    tag.into_iter().cycle().take(if n % 3 == 0 { 20 } else { LARGE_BYTES }).collect()
}

fn fill(db: &Arc<Db>, keys: std::ops::Range<u16>) {
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    keys.into_iter().for_each(|key| insert(&mut txn, &table, key, &value(key)).unwrap());
    txn.commit().unwrap();
}

/// Every row has its value.
fn check(db: &Arc<Db>, rows: u16) {
    let table = db.open_table(T).unwrap();
    db.check_table(&table, &mut |_| true).unwrap();
    let mut txn = db.begin();
    let mut found = Vec::new();
    for_each_row(&mut txn, &table, 0, false, |_, row| found.push(row.to_vec()));
    assert_eq!(found.len(), usize::from(rows));
    for (n, row) in found.iter().enumerate() {
        assert_eq!(value_of(&mut txn, &table, row).unwrap(), value(n as u16), "{n}");
    }
}

const ROWS: u16 = 18;

/// A table in its files and, unless it is stopped cleanly, in the log alone.
fn begun(seed: u64, key_id: Option<u32>, is_stopped: bool) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs, &Lines::default());
    let undecided_key_id = key_id.is_none().then_some(7);
    let compression = Compression::None;
    let spec =
        TableSpec { encryption_key_id: key_id, columns: columns(), undecided_key_id, compression, ..spec(T) };
    db.create_table(&spec).unwrap();
    fill(&db, 0..ROWS / 2);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill(&db, ROWS / 2..ROWS);
    stop(db, &vfs, is_stopped)
}

fn stop(db: Arc<Db>, vfs: &Arc<SimVfs>, cleanly: bool) -> Arc<SimVfs> {
    match cleanly {
        true => db.close().unwrap(),
        false => db.abandon(),
    }
    drop(db);
    vfs.crash()
}

/// Of each file its name, and what the report says: the oldest version, and how much is rewritten.
fn report(db: &Db) -> Vec<(String, Option<u32>, Option<f64>)> {
    db.key_uses().into_iter().map(|its| (its.name, its.oldest, its.part)).collect()
}

fn said(lines: &Lines, text: &str) -> usize {
    lines.lock().unwrap().iter().filter(|(_, line)| line.contains(text)).count()
}

const WAITS: &str =
    "the encryption of table db/t with key 7 does not end without /data/db/t.pando/large.pando, ";
const ENDS: &str = "table db/t is encrypted with key 7";

fn row(name: &str, oldest: Option<u32>, part: Option<f64>) -> (String, Option<u32>, Option<f64>) {
    (name.to_owned(), oldest, part)
}

/// What the report says of a table that is through.
fn through() -> Vec<(String, Option<u32>, Option<f64>)> {
    ["main", "k", "large"].map(|name| row(name, Some(1), None)).to_vec()
}

/// By each file on the disk: it is encrypted, and nothing else is left in it.
fn check_encrypted(db: &Arc<Db>, vfs: &Arc<SimVfs>) {
    assert_eq!(report(db), through());
    let disk: Arc<dyn Vfs> = vfs.copy_after_power_loss();
    for its in db.key_uses() {
        let path = Path::new("/data").join(its.file);
        let (_, superblock) = TreeFile::open(&disk, &path, DictId(its.id)).unwrap();
        assert!(superblock.encryption.is_some_and(|its| !its.is_mixed), "{}", path.display());
        let file = disk.open(&path, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(!bytes.windows(TEXT.len()).any(|window| window == TEXT), "{}", path.display());
    }
}

/// Without the file, the rows are encrypted; but the table does not end, and that is said once.
fn go_on_without(db: &Arc<Db>, lines: &Lines) {
    for _ in 0..3 {
        db.key_rotation_looks_again();
        db.encrypt_tables();
        db.rotate_old_keys();
        let expected =
            vec![row("main", Some(1), None), row("k", Some(1), None), row("large", None, Some(0.0))];
        assert_eq!(report(db), expected);
    }
    assert_eq!((said(lines, WAITS), said(lines, ENDS)), (1, 0), "{:?}", lines.lock().unwrap());
}

#[test]
fn a_plain_file_that_was_away_when_it_began_is_encrypted_when_it_is_back() {
    // Symptom: the table was said to be encrypted, and the plain file, put back as the handbook says, to be damaged.
    for (before, after) in [(true, true), (true, false), (false, true), (false, false)] {
        let vfs = begun(1, None, before);
        move_file(&vfs, LARGE, AWAY);
        let lines = Lines::default();
        let db = open(&vfs, &lines);
        db.set_encrypt_tables(true);
        go_on_without(&db, &lines);
        let vfs = stop(db, &vfs, after);
        move_file(&vfs, AWAY, LARGE);
        // What has begun goes on, though tables are not to be encrypted any more.
        let watched = WatchedVfs::new(vfs.clone(), TEXT);
        let lines = Lines::default();
        let db = open_with(watched.clone(), KeyRing::new(Keys::new(1)), &lines);
        check(&db, ROWS);
        watched.take();
        fill(&db, ROWS..ROWS + 20);
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        assert!(watched.take().is_empty(), "from its opening on nothing is written in plain text");
        assert_eq!(report(&db).iter().filter(|(_, _, part)| part.is_some()).count(), 3);
        db.encrypt_tables();
        check(&db, ROWS + 20);
        check_encrypted(&db, &vfs);
        assert_eq!((said(&lines, WAITS), said(&lines, ENDS)), (0, 1), "{:?}", lines.lock().unwrap());
        let vfs = stop(db, &vfs, after);
        let db = open(&vfs, &Lines::default());
        check(&db, ROWS + 20);
        assert_eq!(report(&db), through());
    }
}

#[test]
fn a_mixed_file_that_goes_away_is_rewritten_to_its_end_when_it_is_back() {
    // Symptom: the table ended without the file, whose plain text was then left as it was for ever.
    let vfs = begun(2, None, true);
    let db = open(&vfs, &Lines::default());
    db.encrypt_table(T, 7).unwrap();
    fill(&db, ROWS..ROWS + 10);
    let vfs = stop(db, &vfs, true);
    move_file(&vfs, LARGE, AWAY);
    let lines = Lines::default();
    let db = open(&vfs, &lines);
    go_on_without(&db, &lines);
    let vfs = stop(db, &vfs, true);
    move_file(&vfs, AWAY, LARGE);
    let db = open(&vfs, &lines);
    check(&db, ROWS + 10);
    db.encrypt_tables();
    check(&db, ROWS + 10);
    check_encrypted(&db, &vfs);
    assert_eq!(said(&lines, ENDS), 1);
}

#[test]
fn a_damaged_file_keeps_the_table_from_ending_until_it_is_given_up() {
    // Symptom: the table was said to be encrypted, beside a damaged file full of plain text.
    let vfs = begun(3, None, true);
    for path in [LARGE, KEY] {
        [100, 4196].into_iter().for_each(|place| vfs.flip_bit(Path::new(path), place, 3));
    }
    let lines = Lines::default();
    let db = open(&vfs, &lines);
    db.encrypt_table(T, 7).unwrap();
    for _ in 0..2 {
        db.encrypt_tables();
        let expected = vec![row("main", Some(1), None), row("k", None, None), row("large", None, Some(0.0))];
        assert_eq!(report(&db), expected, "a key is given up for good");
    }
    assert_eq!((said(&lines, WAITS), said(&lines, ENDS)), (1, 0));
    db.begin_large_values_anew(T).unwrap();
    db.encrypt_tables();
    assert_eq!(said(&lines, &format!("{ENDS}, but not {LARGE}, which was given up")), 1);
    assert_eq!(report(&db), [row("main", Some(1), None), row("k", None, None), row("large", Some(1), None)]);
    let new = db.key_uses().into_iter().find(|its| its.name == "large").unwrap().file;
    assert!(Path::new("/data").join(&new) != Path::new(LARGE), "{new}");
    let vfs = stop(db, &vfs, false);
    let db = open(&vfs, &lines);
    db.encrypt_tables();
    assert_eq!((said(&lines, WAITS), said(&lines, ENDS)), (1, 1));
    assert!(!db.open_table(T).unwrap().has_lost_large_file());
}

#[test]
fn a_crash_at_every_io_while_the_file_comes_back_loses_nothing() {
    let begin = || {
        let vfs = begun(4, None, false);
        move_file(&vfs, LARGE, AWAY);
        let db = open(&vfs, &Lines::default());
        db.encrypt_table(T, 7).unwrap();
        db.encrypt_tables();
        let vfs = stop(db, &vfs, false);
        move_file(&vfs, AWAY, LARGE);
        vfs
    };
    let trace = |vfs: &Arc<SimVfs>| {
        let db = open(vfs, &Lines::default());
        fill(&db, ROWS..ROWS + 5);
        db.encrypt_tables();
        db.abandon();
    };
    let vfs = begin();
    let before = vfs.io_count();
    trace(&vfs);
    let ios = vfs.io_count() - before;
    let vfs = begin();
    vfs.copies_before_ios(&(1..=ios + 1).collect::<Vec<u64>>());
    trace(&vfs);
    let copies = vfs.take_copies();
    assert!(copies.len() > 20, "{}", copies.len());
    for (at, copy) in copies.into_iter().enumerate() {
        let db = open(&copy, &Lines::default());
        let table = db.open_table(T).unwrap();
        assert!(!table.has_lost_large_file(), "crash at {at}");
        let mut rows = 0;
        for_each_row(&mut db.begin(), &table, 0, false, |_, _| rows += 1);
        assert!(rows == ROWS || rows == ROWS + 5, "crash at {at}: {rows}");
        drop(table);
        check(&db, rows);
        db.encrypt_tables();
        check(&db, rows);
        check_encrypted(&db, &copy);
    }
}

#[test]
fn a_file_that_is_away_while_keys_rotate_may_need_the_old_version() {
    let vfs = begun(5, Some(7), true);
    move_file(&vfs, LARGE, AWAY);
    let lines = Lines::default();
    let db = open_with(vfs.clone(), KeyRing::new(Keys::new(2)), &lines);
    db.set_key_rotation(1, 0);
    for _ in 0..3 {
        db.rotate_old_keys();
        assert_eq!(
            report(&db),
            [row("main", Some(2), None), row("k", Some(2), None), row("large", None, None)]
        );
    }
    let told = "cannot rewrite /data/db/t.pando/large.pando with its new key: the file is damaged or missing";
    assert_eq!(said(&lines, told), 1, "{:?}", lines.lock().unwrap());
    let vfs = stop(db, &vfs, true);
    move_file(&vfs, AWAY, LARGE);
    let db = open_with(vfs.clone(), KeyRing::new(Keys::new(2)), &lines);
    assert!(report(&db).iter().all(|(_, oldest, _)| oldest.is_none()), "nobody has looked");
    check(&db, ROWS);
    db.set_key_rotation(1, 0);
    db.rotate_old_keys();
    assert!(report(&db).iter().all(|(_, oldest, part)| (*oldest, *part) == (Some(2), None)));
    check(&db, ROWS);
}

#[test]
fn keys_of_a_table_rotate_while_its_encryption_waits_for_a_file() {
    // Symptom: files that had been encrypted were said to have the newest version of their key, whatever it was.
    let vfs = begun(6, None, true);
    move_file(&vfs, LARGE, AWAY);
    let keys = Keys::new(1);
    let db = open_with(vfs.clone(), KeyRing::new(keys.clone()), &Lines::default());
    db.encrypt_table(T, 7).unwrap();
    db.encrypt_tables();
    keys.0.store(2, Ordering::Relaxed);
    db.encrypt_tables();
    let waits = row("large", None, Some(0.0));
    assert_eq!(report(&db), [row("main", None, None), row("k", None, None), waits.clone()]);
    db.set_key_rotation(1, 0);
    db.rotate_old_keys();
    assert_eq!(report(&db), [row("main", Some(2), None), row("k", Some(2), None), waits]);
    let table = db.open_table(T).unwrap();
    assert_eq!(table.dicts()[0].tree().oldest_key_version().unwrap(), Some(2));
    drop(table);
    let vfs = stop(db, &vfs, true);
    move_file(&vfs, AWAY, LARGE);
    // The old version was never needed for the file that comes back.
    let only_two = [1, 7].into_iter().fold(KeyList::new(), |keys, id| {
        keys.with(id, 2, SecretKey::new([[id as u8; 16], [2; 16]].concat()))
    });
    let db = open_with(vfs.clone(), KeyRing::new(Arc::new(only_two)), &Lines::default());
    db.set_key_rotation(1, 0);
    db.encrypt_tables();
    db.rotate_old_keys();
    check(&db, ROWS);
    assert!(
        report(&db).iter().all(|(_, oldest, part)| (*oldest, *part) == (Some(2), None)),
        "{:?}",
        report(&db)
    );
}
