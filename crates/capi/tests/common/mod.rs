//! What the tests of the C interface share: a database with one table, and calls as C makes them.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ffi::{c_char, CStr};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use pando_capi::*;

/// What the engine has logged.
pub static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(_: PandoLogLevel, line: *const c_char) {
    // SAFETY: the library gives lines that live for the call.
    LINES.lock().unwrap().push(unsafe { CStr::from_ptr(line) }.to_string_lossy().into_owned());
}

/// A text as C gives it.
pub fn bytes(text: &str) -> PandoBytes {
    PandoBytes { data: text.as_ptr(), len: text.len() as u64 }
}

/// That of the last call that failed.
pub fn error_text() -> String {
    let text = pando_error_text();
    // SAFETY: valid until the next call.
    let text = unsafe { std::slice::from_raw_parts(text.data, text.len as usize) };
    String::from_utf8_lossy(text).into_owned()
}

/// How the database in a directory is opened.
pub fn options(base: &str) -> PandoOptions {
    PandoOptions {
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
    }
}

/// A table of one dictionary.
pub fn spec(path: PandoBytes) -> PandoTableSpec {
    PandoTableSpec {
        path,
        indexes: null(),
        index_count: 0,
        compression: MaybeUninit::new(PandoCompression::Lz4),
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
    }
}

/// A database with one table of one dictionary. As processes have them, it stays open.
pub struct World {
    pub db: *mut PandoDb,
    pub table: *mut PandoTable,
    pub dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path().to_str().unwrap());
        let spec = spec(bytes("./d/t"));
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let (mut db, mut table) = (null_mut(), null_mut());
        // SAFETY: all that is pointed to lives for the calls.
        unsafe {
            assert_eq!(pando_db_open(&options, &mut db), PandoStatus::Ok, "{}", error_text());
            assert_eq!(pando_table_create(db, &spec), PandoStatus::Ok, "{}", error_text());
            assert_eq!(pando_table_open(db, bytes("./d/t"), &mut table), PandoStatus::Ok);
        }
        World { db, table, dir }
    }
}

/// Inserts a row.
pub fn insert(world: &World, txn: *mut PandoTxn, key: &str) -> PandoStatus {
    let entry = PandoEntry { key: bytes(key), value: bytes("value"), unique: 1 };
    // SAFETY: both are alive, there is one entry.
    unsafe {
        let share = MaybeUninit::new(PandoOnDuplicate::Share);
        pando_txn_insert_row(txn, world.table, &entry, 1, null(), 0, share)
    }
}

/// Reads a row.
pub fn get(world: &World, txn: *mut PandoTxn, index: u32, key: &str) -> PandoStatus {
    let buffer = pando_buffer_new();
    // SAFETY: all are alive.
    unsafe {
        let read = MaybeUninit::new(PandoRead::Snapshot);
        let status = pando_txn_get(txn, world.table, index, bytes(key), read, -1, buffer);
        pando_buffer_free(buffer);
        status
    }
}

/// How rows are read from a key on.
pub fn fetch(from: &str) -> PandoFetch {
    PandoFetch {
        start: MaybeUninit::new(PandoMove::AtOrAfter),
        read: MaybeUninit::new(PandoRead::Snapshot),
        wait_s: -1,
        key: bytes(from),
        stop: PandoBytes { data: null(), len: 0 },
        rows_max: 10,
        bytes_max: 1000,
        filter: null(),
        condition: null(),
        is_ahead: 0,
        keeps_rows: 0,
    }
}

/// Reads rows from a key on.
pub fn scan(world: &World, txn: *mut PandoTxn, index: u32, from: &str) -> PandoStatus {
    fetch_with(world, txn, index, &fetch(from))
}

/// Reads rows.
pub fn fetch_with(world: &World, txn: *mut PandoTxn, index: u32, fetch: &PandoFetch) -> PandoStatus {
    let mut batch = PandoBatch { rows: bytes(""), count: 0, ended: 0, just_locked: 0, is_peek: 0 };
    // SAFETY: all are alive.
    unsafe {
        let cursor = pando_cursor_new(txn, world.table, index);
        let status = pando_cursor_fetch(cursor, txn, fetch, &mut batch);
        pando_cursor_free(cursor);
        status
    }
}
