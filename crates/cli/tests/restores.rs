//! `pando restore` when something comes in its way.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SECONDS_MAX: u64 = 60;

/// A backup with one plain file, whose checksum is right only if it is empty; it has a part for mariadb-backup.
fn backup(dir: &Path, content: &str) -> PathBuf {
    let backup = dir.join("backup");
    let checksum = "2d06800538d394c2";
    fs::create_dir_all(backup.join("server/d")).unwrap();
    fs::write(backup.join("server/d/db.opt"), "").unwrap();
    fs::write(backup.join("server/ibdata1"), content).unwrap();
    let entry =
        |path: &str, bytes| format!(r#"{{"path":"server/{path}","bytes":{bytes},"xxh3":"{checksum}"}}"#);
    let files = [entry("d/db.opt", 0), entry("ibdata1", content.len())].join(",");
    let manifest = format!(
        r#"{{"format":1,"complete":true,"id":"1","server":"10.11","began":1,"ended":2,"last_seqno":0,
        "has_server_part":true,"tables":[],"files":[{files}]}}"#
    );
    fs::write(backup.join("pando-backup.json"), manifest).unwrap();
    backup
}

/// A program in the place of mariadb-backup.
fn program(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("program");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn restore(backup: &Path, program: &Path, datadir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
    command.arg("restore").arg("--from").arg(backup).arg("--datadir").arg(datadir);
    command.arg("--mariadb-backup").arg(program).stdin(Stdio::null());
    command
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(SECONDS_MAX), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_restore_that_fails_leaves_nothing_and_the_next_one_can_begin() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "exit 0");
    let (new, empty) = (dir.path().join("a/b/data"), dir.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    let damaged = backup(dir.path(), "damage");
    for datadir in [&new, &empty] {
        let output = restore(&damaged, &program, datadir).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("server/ibdata1: it has another checksum") && said.contains("nothing was restored"),
            "{said}"
        );
    }
    assert!(!dir.path().join("a").exists(), "directories that were made are gone");
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "what was there before stays, as it was");
    let sound = backup(dir.path(), "");
    for datadir in [&new, &empty] {
        let output = restore(&sound, &program, datadir).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(datadir.join("d/db.opt").exists());
        assert!(
            said.contains("the backup has no database mysql"),
            "no accounts, so no server starts: {said}"
        );
    }
}

#[test]
fn a_program_that_is_run_is_killed_with_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    let number = dir.path().join("number");
    let program =
        program(dir.path(), &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", number.display()));
    let mut tool = restore(&backup(dir.path(), ""), &program, &dir.path().join("data"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program does not run", || number.exists());
    let process = Path::new("/proc").join(fs::read_to_string(&number).unwrap().trim());
    // One that nobody has waited for is a zombie.
    let is_running = || {
        fs::read_to_string(process.join("stat"))
            .is_ok_and(|stat| stat.contains("(sleep)") && !stat.contains(") Z"))
    };
    wait_until("the program does not sleep", is_running);
    tool.kill().unwrap();
    tool.wait().unwrap();
    wait_until("the program goes on without the tool", || !is_running());
}
