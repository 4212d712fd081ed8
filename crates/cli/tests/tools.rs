//! The tools, on files that the engine has written: what they print, and what they say of damage.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use pandodb::{Clustering, Compression, Db, Entry, IndexSpec, Options, TableSpec};

/// A directory with the files of 5,000 rows and an index, after a clean stop.
fn database() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), "t").close().unwrap();
    dir
}

/// The same, of a table at this path; the database is open.
fn fill(dir: &Path, path: &str) -> Arc<Db> {
    let db = Db::open(Options::new(dir)).unwrap();
    let spec = TableSpec {
        path: path.into(),
        indexes: vec![IndexSpec { clustering: Clustering::Row, ..IndexSpec::from("by_word") }],
        compression: Compression::Zstd(3),
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    let table = db.open_table(path).unwrap();
    let mut txn = db.begin();
    for n in 0..5000u32 {
        let id = n.to_be_bytes();
        let value = format!("the value of row {n}, and the word {}", n % 40);
        let word = [format!("word {:02}", n % 40).as_bytes(), &id].concat();
        let row = Entry { key: &id, value: value.as_bytes(), unique: true };
        txn.insert_row(&table, &[row, Entry { key: &word, value: value.as_bytes(), unique: false }]).unwrap();
    }
    txn.commit().unwrap();
    drop(table);
    db
}

fn pando(arguments: &[&str], path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pando")).args(arguments).arg(path).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn files(dir: &Path, of: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| of(path.file_name().unwrap().to_str().unwrap()));
    found.sort();
    found
}

#[test]
fn inspect_tells_what_a_table_consists_of() {
    let dir = database();
    let output = pando(&["inspect", "--shape"], &dir.path().join("t.pando"));
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    for line in [
        "main.pando: dictionary ",
        "key-by_word.pando: dictionary 18 (by_word, clustering)",
        "  records         5000 (0 tombstones), ",
        "  stored          1 runs by columns (0 with bytes in common), 0 by rows",
        "5000 records, 0x00000000..=0x00001387",
    ] {
        assert!(printed.contains(line), "no {line:?} in\n{printed}");
    }
}

#[test]
fn verify_is_content_with_sound_files_and_names_the_damage_in_others() {
    let dir = database();
    let table = dir.path().join("t.pando");
    assert!(pando(&["verify"], &table).status.success());
    let main = table.join("main.pando");
    let mut bytes = std::fs::read(&main).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0x10;
    std::fs::write(&main, bytes).unwrap();
    let output = pando(&["verify"], &table);
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("main.pando") && printed.contains("offset"), "{printed}");
    assert!(printed.contains("key-by_word.pando"), "the other files are looked at all the same: {printed}");
}

#[test]
fn a_log_is_printed_and_something_else_is_refused() {
    let dir = database();
    let logs = files(&Options::new(dir.path()).engine_dir, |name| name.ends_with(".log"));
    let all: String = logs.iter().map(|log| text(&pando(&["log"], log).stdout)).collect();
    for line in
        ["  dict 17 put 00001387 (", "  dict 18 put 776f7264203339000011f7 (38 bytes)", "end at offset "]
    {
        assert!(all.contains(line), "no {line:?} in what {logs:?} have");
    }
    let output = pando(&["log"], &dir.path().join("t.pando/main.pando"));
    assert!(!output.status.success() && text(&output.stderr).starts_with("pando: "), "{output:?}");
}

#[test]
fn verify_says_what_a_directory_is_that_is_no_table_and_no_whole_backup() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let said = |path: &Path| {
        let output = pando(&["verify"], path);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    for made in ["pando", "server"] {
        let unfinished = place(&format!("unfinished-{made}"));
        std::fs::create_dir(unfinished.join(made)).unwrap();
        let (status, words) = said(&unfinished);
        assert!(status == Some(1) && words.contains("did not come to its end"), "{status:?} {words}");
    }
    place("data/.pando");
    place("other/x");
    for (path, expected) in [
        (place("empty"), "is empty: it is neither a backup nor the directory of a table"),
        (dir.path().join("missing"), "there is no directory "),
        (dir.path().join("data"), "is a data directory: "),
        (dir.path().join("other"), "has no files of a table: "),
    ] {
        let (status, words) = said(&path);
        assert!(status == Some(2) && words.contains(expected), "{status:?} {words}");
    }
}

/// A table of a database, with files of its own. `is_stopped`: or the server was killed, and only the log has it in the catalog.
fn table_of_a_database(is_stopped: bool) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shop")).unwrap();
    let db = fill(dir.path(), "shop/t");
    match is_stopped {
        true => db.close().unwrap(),
        false => db.abandon(),
    }
    let table = dir.path().join("shop/t.pando");
    (dir, table)
}

#[test]
fn a_table_whose_descriptor_is_lost_is_read_by_that_of_the_catalog() {
    for is_stopped in [true, false] {
        let (dir, table) = table_of_a_database(is_stopped);
        let whole = text(&pando(&["inspect"], &table).stdout);
        let status = table.join("status.pando");
        for lose in [(|status| std::fs::write(status, "{").unwrap()) as fn(&Path), |status| {
            std::fs::remove_file(status).unwrap();
        }] {
            lose(&status);
            let output = pando(&["inspect"], &table);
            let said = text(&output.stderr);
            assert!(output.status.success(), "{said}");
            assert_eq!(text(&output.stdout), whole);
            assert!(said.contains("status.pando") && said.contains("of the catalog is used"), "{said}");
            let output = pando(&["verify"], &table);
            let printed = text(&output.stdout);
            // A file that is missing or damaged is damage.
            assert_eq!(output.status.code(), Some(1), "{printed}");
            assert!(
                printed.contains("main.pando: ok") && printed.contains("key-by_word.pando: ok"),
                "{printed}"
            );
        }
        // From where it lies, by a name of one part, and with the catalog elsewhere.
        let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
        let output =
            command.args(["inspect", "t.pando"]).current_dir(dir.path().join("shop")).output().unwrap();
        assert_eq!(text(&output.stdout), whole, "{output:?}");
        let moved = dir.path().join("engine");
        std::fs::rename(dir.path().join(".pando"), &moved).unwrap();
        let output = pando(&["inspect", "--engine-dir", moved.to_str().unwrap()], &table);
        assert_eq!(text(&output.stdout), whole, "{output:?}");
        // With neither the error names both.
        let output = pando(&["verify"], &table);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("status.pando") && said.contains("catalog.pando"), "{said}");
    }
}

#[test]
fn a_reader_who_goes_ends_a_command_without_a_word() {
    let dir = database();
    let engine_dir = Options::new(dir.path()).engine_dir;
    let logs = files(&engine_dir, |name| name.ends_with(".log"));
    // More than a pipe holds.
    let long = logs.iter().find(|log| pando(&["log"], log).stdout.len() > 1 << 18).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
    let command = command.arg("log").arg(long).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("log file "), "{line}");
    let output = child.wait_with_output().unwrap();
    // What a shell tells of SIGPIPE.
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(141), ""));
}
