//! What a panic behind an exported function comes to.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::ffi::{c_char, CStr};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use pando_capi::*;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(_: PandoLogLevel, line: *const c_char) {
    // SAFETY: the library gives lines that live for the call.
    LINES.lock().unwrap().push(unsafe { CStr::from_ptr(line) }.to_string_lossy().into_owned());
}

fn bytes(text: &str) -> PandoBytes {
    PandoBytes { data: text.as_ptr(), len: text.len() as u64 }
}

fn error_text() -> String {
    let text = pando_error_text();
    // SAFETY: valid until the next call.
    let text = unsafe { std::slice::from_raw_parts(text.data, text.len as usize) };
    String::from_utf8_lossy(text).into_owned()
}

/// A database with one table of one dictionary. As processes have them, it stays open.
struct World {
    db: *mut PandoDb,
    table: *mut PandoTable,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_str().unwrap();
        let options = PandoOptions {
            memory_bytes: 0,
            base_dir: bytes(base),
            engine_dir: bytes(base),
            cache_bytes: 8 << 20,
            cache_kept: 0,
            cache_load: 0,
            write_set_bytes: 1 << 20,
            load_memory_bytes: 16 << 20,
            flush_mode: 0,
            background_threads: 1,
            load_threads: 1,
            checkpoint_period_s: 60,
            lock_wait_s: 1,
            log_file_bytes: 1 << 20,
            descriptors: 0,
            direct_io: 0,
            log: Some(log),
            waits: None,
            victim: None,
            key_version: None,
            key: None,
            encrypt_log: 0,
            despite_damage: 0,
        };
        let spec = PandoTableSpec {
            path: bytes("./d/t"),
            indexes: null(),
            index_count: 0,
            compression: PandoCompression::Lz4,
            compression_level: 0,
            temporary: 0,
            interim: 0,
            auto_increment: 0,
            columns: null(),
            column_count: 0,
            definition: PandoDefinition {
                id: bytes(""),
                shape: bytes(""),
                partition: bytes(""),
                image: bytes(""),
            },
            foreign_keys: null(),
            foreign_key_count: 0,
            encrypted: 0,
            encryption_key_id: 0,
            server_files: PandoServerFiles {
                path: bytes(""),
                id: bytes(""),
                definition: bytes(""),
                partitions: bytes(""),
            },
        };
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let (mut db, mut table) = (null_mut(), null_mut());
        // SAFETY: all that is pointed to lives for the calls.
        unsafe {
            assert_eq!(pando_db_open(&options, &mut db), PandoStatus::Ok, "{}", error_text());
            assert_eq!(pando_table_create(db, &spec), PandoStatus::Ok, "{}", error_text());
            assert_eq!(pando_table_open(db, bytes("./d/t"), &mut table), PandoStatus::Ok);
        }
        World { db, table, _dir: dir }
    }
}

fn insert(world: &World, txn: *mut PandoTxn, key: &str) -> PandoStatus {
    let entry = PandoEntry { key: bytes(key), value: bytes("value"), unique: 1 };
    // SAFETY: both are alive, there is one entry.
    unsafe { pando_txn_insert_row(txn, world.table, &entry, 1, null(), 0, PandoOnDuplicate::Share) }
}

fn get(world: &World, txn: *mut PandoTxn, index: u32, key: &str) -> PandoStatus {
    let buffer = pando_buffer_new();
    // SAFETY: all are alive.
    unsafe {
        let status = pando_txn_get(txn, world.table, index, bytes(key), PandoRead::Snapshot, -1, buffer);
        pando_buffer_free(buffer);
        status
    }
}

fn scan(world: &World, txn: *mut PandoTxn, index: u32) -> PandoStatus {
    let fetch = PandoFetch {
        start: PandoMove::First,
        read: PandoRead::Snapshot,
        wait_s: -1,
        key: bytes(""),
        stop: PandoBytes { data: null(), len: 0 },
        rows_max: 10,
        bytes_max: 1000,
        filter: null(),
        condition: null(),
        is_ahead: 0,
        keeps_rows: 0,
    };
    let mut batch = PandoBatch { rows: bytes(""), count: 0, ended: 0, just_locked: 0, is_peek: 0 };
    // SAFETY: all are alive.
    unsafe {
        let cursor = pando_cursor_new(txn, world.table, index);
        let status = pando_cursor_fetch(cursor, txn, &fetch, &mut batch);
        pando_cursor_free(cursor);
        status
    }
}

/// Dictionaries that the table does not have are a bug of the caller's, of the kind that is met with a panic.
const NO_SUCH: u32 = 99;

#[test]
fn a_panic_of_a_statement_is_its_error_and_its_transaction_can_only_be_rolled_back() {
    let world = World::new();
    // SAFETY: the database is open; the transactions are alive until they are freed.
    unsafe {
        let (txn, other) = (pando_txn_new(world.db), pando_txn_new(world.db));
        assert_eq!(insert(&world, other, "there"), PandoStatus::Ok);
        assert_eq!(pando_txn_commit(other), PandoStatus::Ok);

        // 1. A read by key fails.
        assert_eq!(insert(&world, txn, "a"), PandoStatus::Ok);
        assert_eq!(get(&world, txn, NO_SUCH, "a"), PandoStatus::Bug);
        let (text, lines) = (error_text(), LINES.lock().unwrap().split_off(0));
        assert!(text.starts_with("a bug was found") && text.contains("index out of bounds"), "{text}");
        let first =
            lines.iter().position(|line| line.starts_with("a bug was found, the statement fails: ")).unwrap();
        assert!(
            lines[first].contains("index out of bounds") && lines[first].contains(".rs:"),
            "{}",
            lines[first]
        );
        assert!(lines[first].ends_with(concat!("version ", env!("CARGO_PKG_VERSION"))), "{}", lines[first]);
        assert!(lines[first..].iter().any(|line| line.contains("pando_txn_get")), "a backtrace: {lines:?}");

        // 2. So does all that follows, until the end; others go on.
        assert_eq!(get(&world, txn, 0, "there"), PandoStatus::Bug);
        assert!(error_text().contains("can only be rolled back"));
        assert_eq!(insert(&world, txn, "b"), PandoStatus::Bug);
        assert_eq!(scan(&world, txn, 0), PandoStatus::Bug);
        assert_eq!(get(&world, other, 0, "there"), PandoStatus::Ok);

        // 3. A commit does not come to pass; then the object serves the next transaction.
        assert_eq!(pando_txn_prepare(txn, bytes("name")), PandoStatus::Bug);
        assert_eq!(pando_txn_commit(txn), PandoStatus::Bug);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::NotFound);
        assert_eq!(insert(&world, txn, "a"), PandoStatus::Ok);

        // 4. A rollback ends it as well, and gives the locks back.
        assert_eq!(scan(&world, txn, NO_SUCH), PandoStatus::Bug);
        pando_txn_rollback(txn);
        assert_eq!(insert(&world, other, "a"), PandoStatus::Ok);
        assert_eq!(pando_txn_commit(other), PandoStatus::Ok);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::Ok);

        // 5. What has no transaction fails as well.
        let mut rows = 0;
        let none = PandoBytes { data: null(), len: 0 };
        assert_eq!(pando_table_estimate(world.table, NO_SUCH, none, none, &mut rows), PandoStatus::Bug);
        assert_eq!(pando_table_estimate(world.table, 0, none, none, &mut rows), PandoStatus::Ok);
        pando_txn_free(txn);
        pando_txn_free(other);
        pando_table_close(world.table);
        assert_eq!(pando_db_close(world.db), PandoStatus::Ok);
    }
}

/// Told to a process of its own.
const CASE: &str = "PANDO_TEST_PANIC";

#[test]
fn a_panic_of_what_changes_shared_state_stops_the_process_after_it_was_logged() {
    if std::env::var_os(CASE).is_some() {
        let world = World::new();
        // SAFETY: all are alive. There is no such mark.
        unsafe { pando_txn_rollback_to(pando_txn_new(world.db), 5) };
        return;
    }
    let me = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(me);
    child.args(["--exact", "a_panic_of_what_changes_shared_state_stops_the_process_after_it_was_logged"]);
    assert!(!child.env(CASE, "1").output().unwrap().status.success());
}
