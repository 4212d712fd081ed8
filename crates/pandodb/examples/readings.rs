//! A time series with retention: readings of sensors in the order of time, a table for each day. The past goes with its
//! table, whatever its size.
//!
//! `cargo run --release -p pandodb --example readings -- DIRECTORY`

use std::sync::Arc;

use pandodb::{Db, LockWait, Options, ReadMode, Result, Table, TableSpec, Txn};

const SECONDS_PER_DAY: u64 = 86_400;
const DAYS_KEPT: u64 = 3;

/// The table of a day; it is made when its first reading comes.
fn table_of(db: &Arc<Db>, day: u64) -> Result<Arc<Table>> {
    let path = format!("readings_{day}");
    if !db.table_exists(&path) {
        db.create_table(&TableSpec { path: path.clone(), ..TableSpec::default() })?;
    }
    Ok(db.open_table(&path)?)
}

/// Time, then sensor: readings arrive at the table's end, where inserts cost least.
fn key(at: u64, sensor: u32) -> Vec<u8> {
    [&at.to_be_bytes()[..], &sensor.to_be_bytes()].concat()
}

fn insert(txn: &mut Txn, table: &Table, at: u64, sensor: u32, value: f64) -> Result<()> {
    txn.put(table, 0, &key(at, sensor), &value.to_le_bytes(), LockWait::Default)
}

/// Average of all readings of a day from one time on, before another.
fn average(txn: &mut Txn, table: &Arc<Table>, from: u64, to: u64) -> Result<f64> {
    let (mut sum, mut count, end) = (0.0, 0.0, key(to, 0));
    let mut cursor = txn.cursor(table, 0);
    cursor.seek(txn, &key(from, 0), ReadMode::Snapshot)?;
    while cursor.valid() && cursor.key() < &end[..] {
        if let Ok(bytes) = cursor.value().try_into() {
            sum += f64::from_le_bytes(bytes);
            count += 1.0;
        }
        cursor.next(txn)?;
    }
    Ok(sum / count)
}

/// Runs the example in an empty directory: the days that are left, and an average.
pub fn run(directory: &std::path::Path) -> Result<(Vec<u64>, f64)> {
    let db = Db::open(Options::new(directory))?;
    let mut txn = db.begin();
    let days = 100..106;
    for day in days.clone() {
        let table = table_of(&db, day)?;
        for minute in 0..SECONDS_PER_DAY / 60 {
            let at = day * SECONDS_PER_DAY + minute * 60;
            for sensor in 0..3 {
                insert(&mut txn, &table, at, sensor, f64::from(sensor) + minute as f64)?;
            }
        }
        txn.commit()?;
        if day >= days.start + DAYS_KEPT {
            db.drop_table(&format!("readings_{}", day - DAYS_KEPT))?;
        }
    }
    let today = days.end - 1;
    let (start, table) = (today * SECONDS_PER_DAY, table_of(&db, today)?);
    let first_hour = average(&mut txn, &table, start, start + 3600)?;
    txn.rollback();
    let left = days.filter(|day| db.table_exists(&format!("readings_{day}"))).collect();
    db.close()?;
    Ok((left, first_hour))
}

#[allow(dead_code, reason = "tests/examples.rs calls `run`")]
fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: readings DIRECTORY");
        std::process::exit(2)
    });
    let (days, first_hour) = run(directory.as_ref())?;
    println!("days left: {days:?}; average of the first hour of the last one: {first_hour:.2}");
    Ok(())
}
