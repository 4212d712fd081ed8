//! What a panic behind an exported function comes to.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod common;

use std::ptr::null;

use common::{bytes, error_text, get, insert, scan, World, LINES};
use pando_capi::*;

/// A key with this text is met with a panic.
const PLANTED: &str = "planted-panic-of-a-test";

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
        assert_eq!(get(&world, txn, 0, PLANTED), PandoStatus::Bug);
        let (text, lines) = (error_text(), LINES.lock().unwrap().split_off(0));
        assert!(text.starts_with("a bug was found") && text.contains("a test has planted this"), "{text}");
        let first =
            lines.iter().position(|line| line.starts_with("a bug was found, the statement fails: ")).unwrap();
        assert!(
            lines[first].contains("a test has planted this") && lines[first].contains(".rs:"),
            "{}",
            lines[first]
        );
        assert!(lines[first].ends_with(concat!("version ", env!("CARGO_PKG_VERSION"))), "{}", lines[first]);
        assert!(lines[first..].iter().any(|line| line.contains("pando_txn_get")), "a backtrace: {lines:?}");

        // 2. So does all that follows, until the end; others go on.
        assert_eq!(get(&world, txn, 0, "there"), PandoStatus::Bug);
        assert!(error_text().contains("can only be rolled back"));
        assert_eq!(insert(&world, txn, "b"), PandoStatus::Bug);
        assert_eq!(scan(&world, txn, 0, ""), PandoStatus::Bug);
        assert_eq!(get(&world, other, 0, "there"), PandoStatus::Ok);

        // 3. A commit does not come to pass; then the object serves the next transaction.
        assert_eq!(pando_txn_prepare(txn, bytes("name")), PandoStatus::Bug);
        assert_eq!(pando_txn_commit(txn), PandoStatus::Bug);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::NotFound);
        assert_eq!(insert(&world, txn, "a"), PandoStatus::Ok);

        // 4. A rollback ends it as well, and gives the locks back.
        assert_eq!(scan(&world, txn, 0, PLANTED), PandoStatus::Bug);
        pando_txn_rollback(txn);
        assert_eq!(insert(&world, other, "a"), PandoStatus::Ok);
        assert_eq!(pando_txn_commit(other), PandoStatus::Ok);
        assert_eq!(get(&world, txn, 0, "a"), PandoStatus::Ok);

        // 5. What has no transaction fails as well.
        let mut rows = 0;
        let none = PandoBytes { data: null(), len: 0 };
        assert_eq!(pando_table_estimate(world.table, 0, bytes(PLANTED), none, &mut rows), PandoStatus::Bug);
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
        // SAFETY: all are alive.
        unsafe { pando_txn_prepare(pando_txn_new(world.db), bytes(PLANTED)) };
        return;
    }
    let me = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(me);
    child.args(["--exact", "a_panic_of_what_changes_shared_state_stops_the_process_after_it_was_logged"]);
    assert!(!child.env(CASE, "1").output().unwrap().status.success());
}
