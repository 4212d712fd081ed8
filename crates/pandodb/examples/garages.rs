//! A table with a secondary index: garages and their cars. One transaction scans by the index, updates and deletes; all
//! of it becomes visible at once, or nothing.
//!
//! `cargo run --release -p pandodb --example garages -- DIRECTORY`

use std::sync::Arc;

use pandodb::{
    Db, Entry, Error, LockMode, LockWait, LockedRead, Options, ReadMode, Result, Table, TableSpec, Txn,
};

/// A row: a car stands in a garage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Car {
    plate: u32,
    garage: u32,
    brand: String,
}

/// The entries of a row: its own, by plate; and that of the index, by garage. Numbers as big-endian bytes, because
/// the engine orders keys by their bytes. The index's key ends with the row's key, so that it leads there.
struct Entries {
    plate: [u8; 4],
    row: Vec<u8>,
    by_garage: Vec<u8>,
}

impl Entries {
    fn new(car: &Car) -> Entries {
        let plate = car.plate.to_be_bytes();
        let garage = car.garage.to_be_bytes();
        Entries { plate, row: [&garage, car.brand.as_bytes()].concat(), by_garage: [garage, plate].concat() }
    }

    fn views(&self) -> [Entry<'_>; 2] {
        [
            Entry { key: &self.plate, value: &self.row, unique: true },
            Entry { key: &self.by_garage, value: b"", unique: false },
        ]
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn decode(plate: u32, row: &[u8]) -> Car {
    Car { plate, garage: number(row), brand: String::from_utf8_lossy(&row[4..]).into_owned() }
}

/// The cars of a garage, locked: nobody else can move or sell them, or park there, until the transaction ends.
fn cars_in(txn: &mut Txn, table: &Arc<Table>, garage: u32) -> Result<Vec<Car>> {
    let lock = ReadMode::Locked(LockMode::Exclusive, LockWait::Default);
    let mut plates = Vec::new();
    let mut cursor = txn.cursor(table, 1);
    cursor.set_stop(Some(&(garage + 1).to_be_bytes()));
    cursor.seek(txn, &garage.to_be_bytes(), lock)?;
    while cursor.valid() && number(cursor.key()) == garage {
        plates.push(number(&cursor.key()[4..]));
        cursor.next(txn)?;
    }
    let mut cars = Vec::new();
    for plate in plates {
        let read = txn.get_locked(table, 0, &plate.to_be_bytes(), LockMode::Exclusive, LockWait::Default)?;
        if let LockedRead::Row(row) = read {
            cars.push(decode(plate, &row));
        }
    }
    Ok(cars)
}

/// Moves all cars of one garage to another but those of a brand, which are sold.
fn close_garage(txn: &mut Txn, table: &Arc<Table>, garage: u32, into: u32, sell: &str) -> Result<()> {
    for car in cars_in(txn, table, garage)? {
        let old = Entries::new(&car);
        if car.brand == sell {
            txn.delete_row(table, &old.views())?;
        } else {
            let moved = Entries::new(&Car { garage: into, ..car });
            txn.update_row(table, &old.views(), &moved.views())?;
        }
    }
    Ok(())
}

/// Runs the example in an empty directory.
pub fn run(directory: &std::path::Path) -> Result<Vec<Car>> {
    let db = Db::open(Options::new(directory))?;
    db.create_table(&TableSpec {
        path: "cars".into(),
        indexes: vec!["by_garage".into()],
        ..TableSpec::default()
    })?;
    let table = db.open_table("cars")?;
    let mut txn = db.begin();
    for (plate, garage, brand) in
        [(11, 1, "Saab"), (12, 1, "Volvo"), (13, 1, "Saab"), (14, 2, "Fiat"), (15, 3, "Seat")]
    {
        let entries = Entries::new(&Car { plate, garage, brand: brand.to_owned() });
        txn.insert_row(&table, &entries.views())?;
    }
    txn.commit()?;

    // A second car with the same plate is refused, and nothing of it is written.
    let twin = Entries::new(&Car { plate: 14, garage: 3, brand: "Opel".into() });
    assert!(matches!(txn.insert_row(&table, &twin.views()), Err(Error::Duplicate { index: 0, .. })));

    // A deadlock or a timeout would come back as an error here; then roll back and run the transaction again.
    close_garage(&mut txn, &table, 1, 2, "Volvo")?;
    txn.commit()?;

    let cars = cars_in(&mut txn, &table, 2)?;
    txn.rollback();
    db.close()?;
    Ok(cars)
}

#[allow(dead_code, reason = "tests/examples.rs calls `run`")]
fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: garages DIRECTORY");
        std::process::exit(2)
    });
    run(directory.as_ref())?.iter().for_each(|car| println!("{car:?}"));
    Ok(())
}
