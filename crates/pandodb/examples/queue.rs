//! A queue that several workers take from at once: each takes the oldest job that nobody else holds (SKIP LOCKED), and
//! deletes it in the transaction that does the work. A worker that fails rolls back, and the job is there again.
//!
//! `cargo run --release -p pandodb --example queue -- DIRECTORY`

use std::sync::Arc;

use pandodb::{Db, LockMode, LockWait, Options, ReadMode, Result, Table, TableSpec, Txn};

/// Puts a job at the end. The table's own counter gives numbers that survive a restart.
fn push(txn: &mut Txn, table: &Table, job: &str) -> Result<()> {
    let number = table.auto_increment_reserve(1, 1, 1, 1).expect("2^64 jobs are not reached");
    txn.put(table, 0, &number.to_be_bytes(), job.as_bytes(), LockWait::Default)
}

/// Takes the oldest free job, which is gone when the transaction commits.
fn take(txn: &mut Txn, table: &Arc<Table>) -> Result<Option<String>> {
    let mut cursor = txn.cursor(table, 0);
    cursor.seek_first(txn, ReadMode::Locked(LockMode::Exclusive, LockWait::SkipLocked))?;
    if !cursor.valid() {
        return Ok(None);
    }
    let (key, job) = (cursor.key().to_vec(), String::from_utf8_lossy(cursor.value()).into_owned());
    drop(cursor);
    txn.delete(table, 0, &key, LockWait::Default)?;
    Ok(Some(job))
}

/// A worker: takes jobs until there is none, and fails at each fifth, once.
fn work(db: &Arc<Db>, table: &Arc<Table>) -> Result<Vec<String>> {
    let (mut done, mut turns) = (Vec::new(), 0);
    let mut txn = db.begin();
    // Gap locks would keep the other workers from the end of the queue (READ COMMITTED has none).
    txn.set_takes_gaps(false);
    while let Some(job) = take(&mut txn, table)? {
        turns += 1;
        if turns % 5 == 0 {
            txn.rollback();
            continue;
        }
        txn.commit()?;
        done.push(job);
    }
    txn.rollback();
    Ok(done)
}

/// Runs the example in an empty directory: all jobs that were done, in no order.
pub fn run(directory: &std::path::Path) -> Result<Vec<String>> {
    let db = Db::open(Options::new(directory))?;
    db.create_table(&TableSpec { path: "jobs".into(), ..TableSpec::default() })?;
    let table = db.open_table("jobs")?;
    let mut txn = db.begin();
    for number in 0..200 {
        push(&mut txn, &table, &format!("job {number}"))?;
    }
    txn.commit()?;
    let workers = pandodb::on_threads(4, || work(&db, &table));
    let mut done = Vec::new();
    for worker in workers {
        done.extend(worker?);
    }
    db.close()?;
    Ok(done)
}

#[allow(dead_code, reason = "tests/examples.rs calls `run`")]
fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: queue DIRECTORY");
        std::process::exit(2)
    });
    println!("{} jobs are done", run(directory.as_ref())?.len());
    Ok(())
}
