//! Mistakes of callers: an error of their own, after which the transaction goes on.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod common;

use std::ptr::{null, null_mut};

use common::{bytes, error_text, get, insert, options, scan, spec, World, LINES};
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
