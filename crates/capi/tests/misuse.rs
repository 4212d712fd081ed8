//! Mistakes of callers: an error of their own, after which the transaction goes on.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod common;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use common::{bytes, error_text, fetch, fetch_with, get, insert, options, scan, spec, World, LINES};
use pando_capi::*;

/// Makes sure that it is a mistake of the caller, in a text that has these words.
fn is_refused(status: PandoStatus, words: &str) {
    assert_eq!(status, PandoStatus::BadArgument, "{words}: {}", error_text());
    assert!(error_text().contains(words), "{}", error_text());
}

#[test]
fn a_table_of_another_database_and_a_dictionary_that_is_not_there_are_refused_and_the_transaction_goes_on() {
    let (one, two) = (World::new(), World::new());
    let foreign = World { table: two.table, ..one };
    // SAFETY: all are alive.
    unsafe {
        let txn = pando_txn_new(foreign.db);
        let its = "belongs to another database";
        is_refused(insert(&foreign, txn, "a"), its);
        is_refused(get(&foreign, txn, 0, "a"), its);
        is_refused(scan(&foreign, txn, 0, ""), its);
        is_refused(pando_txn_raise_auto_increment(txn, foreign.table, 7), its);
        let own = World { table: one.table, ..foreign };
        let none = PandoBytes { data: null(), len: 0 };
        is_refused(get(&own, txn, 9, "a"), "no dictionary 9");
        is_refused(scan(&own, txn, 9, ""), "no dictionary 9");
        is_refused(pando_table_estimate(own.table, 9, none, none, &mut 0), "no dictionary 9");
        pando_txn_unlock(txn, own.table, 9, bytes("a"));
        assert!(LINES.lock().unwrap().iter().all(|line| !line.contains("a bug was found")));

        assert_eq!(insert(&own, txn, "a"), PandoStatus::Ok);
        assert_eq!(pando_txn_commit(txn), PandoStatus::Ok);
        assert_eq!(get(&own, txn, 0, "a"), PandoStatus::Ok);
        pando_txn_free(txn);
    }
}

#[test]
fn a_database_that_is_open_already_has_a_status_of_its_own() {
    let world = World::new();
    let again = options(world.dir.path().to_str().unwrap());
    let mut db = null_mut();
    // SAFETY: all that is pointed to lives for the calls; the table is not used after it was closed.
    unsafe {
        assert_eq!(pando_db_open(&again, &mut db), PandoStatus::DatabaseInUse);
        assert!(error_text().starts_with("the database is in use"), "{}", error_text());
        pando_table_close(world.table);
        assert_eq!(pando_db_close(world.db), PandoStatus::Ok);
        assert_eq!(pando_db_open(&again, &mut db), PandoStatus::Ok, "{}", error_text());
        assert_eq!(pando_db_close(db), PandoStatus::Ok);
    }
}

#[test]
fn names_that_no_table_can_have_are_refused_and_not_altered() {
    let world = World::new();
    let raw = |name: &'static [u8]| PandoBytes { data: name.as_ptr(), len: name.len() as u64 };
    let mut table = null_mut();
    // SAFETY: all that is pointed to lives for the calls.
    unsafe {
        let create = |name| pando_table_create(world.db, &spec(raw(name)));
        is_refused(create(b"./d/caf\xe9"), r"UTF-8, which ./d/caf\xe9 is not");
        is_refused(create(b""), "no name");
        is_refused(create(b"../up"), "leads out");
        is_refused(create(b"./d/a\0b"), "byte 0");
        is_refused(pando_table_open(world.db, raw(b"./d/caf\xe9"), &mut table), "UTF-8");
        let e = bytes("");
        is_refused(pando_table_rename(world.db, bytes("./d/t"), raw(b"./d/\xff"), e, e, e, 0), "UTF-8");
        let replaced = "./d/caf\u{fffd}";
        assert_eq!(pando_table_exists(world.db, bytes(replaced)), 0);
    }
}

/// A number that stands for no member.
fn none<E>() -> MaybeUninit<E> {
    let mut given = MaybeUninit::uninit();
    // SAFETY: it is written within its bounds.
    unsafe { std::ptr::write_bytes(given.as_mut_ptr(), 0x77, 1) };
    given
}

#[test]
fn numbers_that_stand_for_no_member_are_refused_and_the_transaction_goes_on() {
    let world = World::new();
    let text = |status| is_refused(status, "none is 2004318071");
    // SAFETY: all that is pointed to lives for the calls.
    unsafe {
        let txn = pando_txn_new(world.db);
        let (table, buffer) = (world.table, pando_buffer_new());
        let entry = PandoEntry { key: bytes("a"), value: bytes("value"), unique: 1 };
        text(pando_txn_get(txn, table, 0, bytes("a"), none(), -1, buffer));
        text(pando_txn_lock_existing(txn, table, 0, bytes("a"), none(), -1));
        let snapshot = MaybeUninit::new(PandoRead::Snapshot);
        is_refused(pando_txn_lock_existing(txn, table, 0, bytes("a"), snapshot, -1), "that locks");
        text(pando_txn_insert_row(txn, table, &entry, 1, null(), 0, none()));
        text(fetch_with(&world, txn, 0, &PandoFetch { start: none(), ..fetch("") }));
        text(fetch_with(&world, txn, 0, &PandoFetch { read: none(), ..fetch("") }));

        let compressed = PandoTableSpec { compression: none(), ..spec(bytes("./d/u")) };
        text(pando_table_create(world.db, &compressed));
        let index = PandoIndexSpec { name: bytes("i"), has_filters: 1, clustering: none() };
        let indexed = PandoTableSpec { indexes: &index, index_count: 1, ..spec(bytes("./d/u")) };
        text(pando_table_create(world.db, &indexed));
        let kind = none();
        let column = PandoNewColumn {
            name: bytes("c"),
            kind,
            size: 4,
            nullable: 0,
            binary: 0,
            source: -1,
            value: bytes(""),
        };
        let with_column = PandoTableSpec { columns: &column, column_count: 1, ..spec(bytes("./d/u")) };
        text(pando_table_create(world.db, &with_column));
        let encrypted = PandoTableSpec { encrypted: 3, ..spec(bytes("./d/u")) };
        is_refused(pando_table_create(world.db, &encrypted), "encrypted is 0 to 2");
        assert_eq!(pando_table_exists(world.db, bytes("./d/u")), 0);
        is_refused(pando_db_set_flush_mode(world.db, 3), "flush mode");

        assert_eq!(insert(&world, txn, "a"), PandoStatus::Ok);
        assert_eq!(pando_txn_commit(txn), PandoStatus::Ok);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::Ok);
        pando_buffer_free(buffer);
        pando_txn_free(txn);
    }
}

#[test]
fn marks_and_prepares_that_do_not_fit_are_refused_and_the_transaction_goes_on() {
    let world = World::new();
    // SAFETY: all are alive.
    unsafe {
        let txn = pando_txn_new(world.db);
        let text = "no such mark";
        is_refused(pando_txn_rollback_to(txn, 0), text);
        is_refused(pando_txn_rollback_to(txn, u64::MAX), text);
        let (first, second) = (pando_txn_mark(txn), pando_txn_mark(txn));
        pando_txn_release_mark(txn, first);
        assert_eq!(insert(&world, txn, "a"), PandoStatus::Ok);
        is_refused(pando_txn_rollback_to(txn, first), text);
        assert_eq!(pando_txn_rollback_to(txn, second), PandoStatus::Ok);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::NotFound);
        assert_eq!(insert(&world, txn, "b"), PandoStatus::Ok);
        assert_eq!(pando_txn_prepare(txn, bytes("x")), PandoStatus::Ok);
        let text = "is prepared";
        is_refused(pando_txn_prepare(txn, bytes("x")), text);
        is_refused(pando_txn_rollback_to(txn, second), text);
        is_refused(insert(&world, txn, "c"), text);
        assert_eq!(pando_txn_commit(txn), PandoStatus::Ok);
        assert_eq!(get(&world, txn, 0, "b"), PandoStatus::Ok);
        pando_txn_free(txn);
    }
}

/// Adds an entry to a dictionary that is not there.
unsafe extern "C" fn encode_astray(_: *mut c_void, _: *mut c_void, entries: *mut PandoEntries<'_>) -> i32 {
    // SAFETY: as the load gives it.
    unsafe { pando_entries_add(entries, 7, bytes("k"), bytes("v")) };
    0
}

#[test]
fn a_load_that_does_not_fit_its_table_is_refused() {
    let world = World::new();
    let encoder = PandoEncoder {
        context: null_mut(),
        encode: Some(encode_astray),
        free_batch: None,
        free_context: None,
    };
    let mut load = null_mut();
    // SAFETY: all that is pointed to lives for the calls.
    unsafe {
        let txn = pando_txn_new(world.db);
        let mut begin = |unique: &[u8], beside| {
            let count = unique.len() as u32;
            pando_load_begin(txn, world.table, unique.as_ptr(), count, 0, beside, encoder, &mut load)
        };
        for beside in 0..3 {
            is_refused(begin(&[1, 1], beside), "1 dictionaries, not 2");
        }
        is_refused(begin(&[1], 3), "beside is 0 to 2");
        assert_eq!(begin(&[1], 0), PandoStatus::Ok);
        pando_load_submit(load, null_mut(), 1, 100, None, null_mut());
        let mut refused = 0;
        let status = pando_load_finish(txn, load, None, null_mut(), &mut refused);
        is_refused(status, "a dictionary that the table does not have");
        pando_txn_free(txn);
    }
}

#[test]
fn what_is_looked_for_by_a_name_that_is_none_is_not_there() {
    let world = World::new();
    let raw = |name: &'static [u8]| PandoBytes { data: name.as_ptr(), len: name.len() as u64 };
    // SAFETY: all that is pointed to lives for the calls.
    unsafe {
        // What the bytes would be if those that are not UTF-8 were replaced.
        assert_eq!(pando_table_create(world.db, &spec(bytes("./d/caf\u{fffd}"))), PandoStatus::Ok);
        let path = raw(b"./d/caf\xe9");
        assert_eq!(pando_table_exists(world.db, path), 0);
        assert_eq!(pando_table_has_definition(world.db, path, bytes("")), 0);
        is_refused(pando_table_drop_if_empty(world.db, path), "UTF-8");
        is_refused(pando_server_files_forget(world.db, path), "UTF-8");
        is_refused(pando_name_expect(world.db, path, bytes("")), "UTF-8");
        assert_eq!(pando_table_exists(world.db, bytes("./d/caf\u{fffd}")), 1);
    }
}
