//! A key-value store: one table without indexes. Puts, gets, a range, a rollback, a snapshot.
//!
//! `cargo run --release -p pandodb --example key_value -- DIRECTORY`

use pandodb::{Db, LockWait, Options, ReadMode, Result, TableSpec};

/// Runs the example in a directory that is empty or of an earlier run.
pub fn run(directory: &std::path::Path) -> Result<Vec<String>> {
    let db = Db::open(Options::new(directory))?;
    if !db.table_exists("fruit") {
        db.create_table(&TableSpec { path: "fruit".into(), ..TableSpec::default() })?;
    }
    let table = db.open_table("fruit")?;

    // Dictionary 0 of a table holds its rows. A commit returns when the log is on disk.
    let mut txn = db.begin();
    for (key, value) in [("apple", "red"), ("banana", "yellow"), ("cherry", "dark red"), ("damson", "blue")] {
        txn.put(&table, 0, key.as_bytes(), value.as_bytes(), LockWait::Default)?;
    }
    txn.commit()?;

    // A reader takes a snapshot. What others commit afterwards it does not see.
    let mut reader = db.begin();
    reader.open_snapshot();
    txn.put(&table, 0, b"banana", b"brown", LockWait::Default)?;
    txn.commit()?;
    assert_eq!(reader.get(&table, 0, b"banana")?.as_deref(), Some(&b"yellow"[..]));
    reader.close_snapshot();
    assert_eq!(reader.get(&table, 0, b"banana")?.as_deref(), Some(&b"brown"[..]));

    // A rollback costs the same for a row and for ten million: uncommitted rows are not in the tree.
    txn.delete(&table, 0, b"apple", LockWait::Default)?;
    txn.rollback();

    // A range, in the order of the keys' bytes.
    let mut found = Vec::new();
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek(&mut txn, b"b", ReadMode::Snapshot)?;
    while cursor.valid() && cursor.key() < &b"d"[..] {
        found.push(format!(
            "{}: {}",
            String::from_utf8_lossy(cursor.key()),
            String::from_utf8_lossy(cursor.value())
        ));
        cursor.next(&mut txn)?;
    }
    drop(cursor);
    txn.rollback();
    assert_eq!(txn.get(&table, 0, b"apple")?.as_deref(), Some(&b"red"[..]));
    txn.rollback();
    db.close()?;
    Ok(found)
}

#[allow(dead_code, reason = "tests/examples.rs calls `run`")]
fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: key_value DIRECTORY");
        std::process::exit(2)
    });
    run(directory.as_ref())?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
