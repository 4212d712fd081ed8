//! Backups of encrypted tables whose rows are only in the log, and keys that are missing or wrong.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pando_cli::backup::copy;
use pando_cli::backup::manifest::{FileEntry, Manifest};
use pando_cli::backup::progress::Progress;
use pandodb::{Db, KeyList, KeyRing, LockWait, Options, TableSpec};
use xxhash_rust::xxh3::xxh3_64;

const KEY_OF_LOG: &str = "1;770A8A65DA156D24EE2A093277530142";
const KEY_7: &str = "7;4D92199549E0F2EF009B4160F3582E5528A11A45017F3EF8";
const KEY_8: &str = "8;B374A26A71490437AA024E4FADD5B497FDFF1A8EA6FF12F6FB65AF2720B59CCF";
const WRONG_KEY_OF_LOG: &str = "1;00000000000000000000000000000000";

const SUPERBLOCKS: usize = 2 * 4096;

fn options(dir: &Path) -> Options {
    let keys = KeyList::parse(&[KEY_OF_LOG, KEY_7, KEY_8].join("\n")).unwrap();
    let keys = KeyRing::new(Arc::new(keys));
    Options { keys, encrypt_log: true, background_threads: 0, log_file_bytes: 1 << 20, ..Options::new(dir) }
}

/// Copies a file of a database into the backup.
fn copied(data: &Path, backup: &Path, path: &str) -> FileEntry {
    let name = format!("pando/{path}");
    let from = data.join(path);
    let mut progress = Progress::new(0, None, true);
    let entry = copy::plain(&from, &backup.join(&name), &name, &mut progress).unwrap();
    if path.starts_with(".pando/") {
        return entry;
    }
    // A tree of which there are only superblocks.
    let bytes = fs::read(from).unwrap();
    let dict = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    FileEntry { dict: Some(dict), xxh3: format!("{:016x}", xxh3_64(&bytes[..SUPERBLOCKS])), ..entry }
}

/// A backup of three tables: x/a and x/b are encrypted with keys 7 and 8, x/p is not, and the log has all their rows. `base`: as an increment
/// after it.
fn backup(dir: &Path, base: Option<&str>) -> PathBuf {
    let (data, backup) = (dir.join("data"), dir.join("backup"));
    fs::create_dir_all(data.join("x")).unwrap();
    let db = Db::open(options(&data)).unwrap();
    let tables = [("x/a", Some(7)), ("x/b", Some(8)), ("x/p", None)];
    for (path, encryption_key_id) in tables {
        db.create_table(&TableSpec { path: path.into(), encryption_key_id, ..TableSpec::default() }).unwrap();
        let table = db.open_table(path).unwrap();
        let mut txn = db.begin();
        for n in 0..100u8 {
            txn.put(&table, 0, &[n], b"secret", LockWait::NoWait).unwrap();
        }
        txn.commit().unwrap();
    }
    db.abandon();
    drop(db);
    let mut files = Vec::new();
    for dir in [".pando", "x/a.pando", "x/b.pando", "x/p.pando"] {
        for file in fs::read_dir(data.join(dir)).unwrap() {
            let path = format!("{dir}/{}", file.unwrap().file_name().into_string().unwrap());
            let is_spare = path.contains("spare-");
            if (path.ends_with(".log") && !is_spare)
                || (path.ends_with(".pando") && !path.ends_with("status.pando"))
            {
                files.push(copied(&data, &backup, &path));
            }
        }
    }
    let manifest = Manifest {
        complete: true,
        base: base.map(str::to_owned),
        tables: tables.iter().map(|(path, _)| (*path).to_owned()).collect(),
        files,
        ..Manifest::new("10.11".into(), "1".into(), 1)
    };
    manifest.write(&backup).unwrap();
    backup
}

/// Status and words of the tool with a file of these keys.
fn pando(dir: &Path, keys: &[&str], arguments: &[&Path]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
    if !keys.is_empty() {
        let file = dir.join("keys");
        fs::write(&file, keys.join("\n")).unwrap();
        command.arg("--keys").arg(file);
    }
    let output = command.args(arguments).output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(words).unwrap())
}

#[test]
fn verify_reads_the_log_and_says_which_keys_are_missing_or_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let backup = backup(dir.path(), None);
    let verify = |keys: &[&str]| pando(dir.path(), keys, &[Path::new("verify"), &backup]);

    let (status, words) = verify(&[KEY_OF_LOG, KEY_7, KEY_8]);
    assert!(status == Some(0) && words.contains("3 tables of PANDO\n"), "{status:?} {words}");

    let (status, words) = verify(&[WRONG_KEY_OF_LOG, KEY_7, KEY_8]);
    assert!(words.contains("/pando-000001.log needs encryption key 1, version 1: "), "{words}");
    assert!(status == Some(1) && words.contains("keys are missing or wrong: "), "{status:?} {words}");

    let (status, words) = verify(&[KEY_OF_LOG, KEY_7]);
    assert!(words.contains("x/b.pando/main.pando needs encryption key 8: "), "{words}");
    assert!(status == Some(1) && !words.contains(".log") && !words.contains("x/a"), "{status:?} {words}");

    let (status, words) = verify(&[]);
    assert!(words.contains("transactions in the log are ok; encrypted are "), "{words}");
    assert!(words.contains(" with key 1 (version 1), so what is in them was not looked at"), "{words}");
    let end = "3 tables of PANDO; what is encrypted was not looked at (--keys)\n";
    assert!(status == Some(0) && words.contains(end), "{status:?} {words}");
}

#[test]
fn verify_looks_for_the_keys_of_an_increment_too() {
    let dir = tempfile::tempdir().unwrap();
    let backup = backup(dir.path(), Some("0"));
    let (status, words) = pando(dir.path(), &[KEY_OF_LOG, KEY_8], &[Path::new("verify"), &backup]);
    assert!(words.contains("x/a.pando/main.pando needs encryption key 7: "), "{words}");
    assert_eq!(status, Some(1), "{words}");
}

#[test]
fn restore_counts_and_names_the_tables_that_it_cannot_recover() {
    let dir = tempfile::tempdir().unwrap();
    let backup = backup(dir.path(), None);
    for (name, is_quiet) in [("first", false), ("second", true)] {
        let datadir = dir.path().join(name);
        let mut arguments = vec![Path::new("restore"), Path::new("--from"), &backup];
        if is_quiet {
            arguments.push(Path::new("--quiet"));
        }
        arguments.extend([Path::new("--datadir"), &datadir]);
        let (status, words) = pando(dir.path(), &[KEY_OF_LOG, KEY_7], &arguments);
        assert_eq!(status, Some(1), "{words}");
        let line = "not recovered, for want of their keys: 1 of 3 tables of PANDO: x/b; a server that is started with the right keys";
        assert!(words.contains(line) && words.contains("\n2 of 3 tables of PANDO are whole"), "{words}");

        let db = Db::open(options(&datadir)).unwrap();
        for path in ["x/a", "x/b", "x/p"] {
            let table = db.open_table(path).unwrap();
            assert_eq!(db.begin().get(&table, 0, &[99]).unwrap().unwrap(), b"secret", "{path}");
        }
        db.close().unwrap();
    }
    let datadir = dir.path().join("whole");
    let arguments = [Path::new("restore"), Path::new("--from"), &backup, Path::new("--datadir"), &datadir];
    let (status, words) = pando(dir.path(), &[KEY_OF_LOG, KEY_7, KEY_8], &arguments);
    assert!(status == Some(0) && words.contains("\n3 tables of PANDO are whole"), "{status:?} {words}");
}
