//! Many threads, two dictionaries, and a proof for each run that it was serializable.
//!
//! Each transaction reads by locking scans and locking lookups (as SERIALIZABLE does) and writes. It keeps what it
//! saw and what it wrote. Locks are held to the end, so the order of commits must explain everything: replayed
//! one after another in that order, every transaction must see exactly what it saw then. Every value
//! written is unique, so nothing old or half is taken for something new.
//!
//! With few keys all meet everywhere. With many, scans lock rows ahead, whole stretches of them, and transactions go back
//! to savepoints.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use common::{disk, open, spec};
use pando_base::locks::Mutex;
use pandodb::{Db, Entry, Error, LockMode, LockWait, LockedRead, ReadMode, Table, Txn};

const THREADS: u64 = 6;

/// What a run is like.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    lock_budget: usize,
    keys: u32,
    /// Transactions of each thread.
    transactions: u64,
    /// Scans may lock rows ahead, and some writes are undone by a savepoint.
    is_long: bool,
}

/// Rows by id: their place (the key of their entry in the index) and their stamp.
type Rows = BTreeMap<u32, (u32, u64)>;

#[derive(Debug)]
enum Step {
    /// A scan of ids from .. to gave these rows.
    ScannedRows(u32, u32, Vec<(u32, u32, u64)>),
    /// A scan of the index from .. to gave these places and ids.
    ScannedPlaces(u32, u32, Vec<(u32, u32)>),
    /// A lookup.
    Got(u32, Option<(u32, u64)>),
    Put(u32, (u32, u64)),
    Deleted(u32),
    /// What is between these two was undone.
    Savepoint,
    BackToSavepoint,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }
}

fn row_value(place: u32, stamp: u64) -> Vec<u8> {
    [&place.to_be_bytes()[..], &stamp.to_be_bytes()].concat()
}

fn row_of(value: &[u8]) -> (u32, u64) {
    (u32::from_be_bytes(value[..4].try_into().unwrap()), u64::from_be_bytes(value[4..].try_into().unwrap()))
}

/// The key of a row's entry: its place, then its id.
fn entry_key(place: u32, id: u32) -> Vec<u8> {
    [place.to_be_bytes(), id.to_be_bytes()].concat()
}

struct Actor<'a> {
    txn: Txn,
    table: &'a Arc<Table>,
    steps: Vec<Step>,
    mode: LockMode,
    plan: Plan,
}

impl Actor<'_> {
    fn read(&self) -> ReadMode {
        ReadMode::Locked(self.mode, LockWait::Default)
    }

    fn scan_rows(&mut self, dice: &mut Dice) -> Result<(), Error> {
        let (from, to) = range(dice, self.plan);
        let up = dice.below(3) > 0;
        let mut cursor = self.txn.cursor(self.table, 0);
        cursor.allow_ahead(self.plan.is_long, false);
        let read = self.read();
        if up {
            cursor.set_stop(Some(&to.to_be_bytes()));
            cursor.seek(&mut self.txn, &from.to_be_bytes(), read)?;
        } else {
            cursor.set_stop(Some(&from.to_be_bytes()));
            cursor.seek_before(&mut self.txn, &to.to_be_bytes(), read)?;
        }
        let mut seen = Vec::new();
        while cursor.valid() {
            let id = u32::from_be_bytes(cursor.key().try_into().unwrap());
            let (place, stamp) = row_of(cursor.value());
            seen.push((id, place, stamp));
            if up {
                cursor.next(&mut self.txn)?;
            } else {
                cursor.prev(&mut self.txn)?;
            }
        }
        if !up {
            seen.reverse();
        }
        self.steps.push(Step::ScannedRows(from, to, seen));
        Ok(())
    }

    /// As the handler reads by an index: the entry, then the row under its lock, then whether it still belongs.
    fn scan_places(&mut self, dice: &mut Dice) -> Result<(), Error> {
        let (from, to) = range(dice, self.plan);
        let mut cursor = self.txn.cursor(self.table, 1);
        cursor.set_stop(Some(&to.to_be_bytes()));
        let read = self.read();
        cursor.seek(&mut self.txn, &from.to_be_bytes(), read)?;
        let mut seen = Vec::new();
        while cursor.valid() {
            let key = cursor.key().to_vec();
            let (place, id) = (key[..4].try_into().unwrap(), key[4..].try_into().unwrap());
            let (place, id) = (u32::from_be_bytes(place), u32::from_be_bytes(id));
            if self.lookup(id)?.is_some_and(|row| row.0 == place) {
                seen.push((place, id));
            }
            cursor.next(&mut self.txn)?;
        }
        self.steps.push(Step::ScannedPlaces(from, to, seen));
        Ok(())
    }

    fn lookup(&mut self, id: u32) -> Result<Option<(u32, u64)>, Error> {
        let key = id.to_be_bytes();
        match self.txn.get_locked(self.table, 0, &key, self.mode, LockWait::Default)? {
            LockedRead::Row(value) => Ok(Some(row_of(&value))),
            LockedRead::Absent => Ok(None),
            LockedRead::Skipped => panic!("nothing is to be skipped"),
        }
    }

    fn write(&mut self, id: u32, new: Option<(u32, u64)>) -> Result<(), Error> {
        self.mode = LockMode::Exclusive;
        let before = self.lookup(id)?;
        self.steps.push(Step::Got(id, before));
        let key = id.to_be_bytes();
        let parts = |(place, stamp): (u32, u64)| (row_value(place, stamp), entry_key(place, id));
        let (old, new_parts) = (before.map(parts), new.map(parts));
        fn entries<'a>(key: &'a [u8], parts: &'a (Vec<u8>, Vec<u8>)) -> [Entry<'a>; 2] {
            [Entry { key, value: &parts.0, unique: true }, Entry { key: &parts.1, value: b"", unique: false }]
        }
        match (&old, &new_parts) {
            (Some(old), Some(new)) => {
                self.txn.update_row(self.table, &entries(&key, old), &entries(&key, new))?;
            }
            (Some(old), None) => self.txn.delete_row(self.table, &entries(&key, old))?,
            (None, Some(new)) => self.txn.insert_row(self.table, &entries(&key, new))?,
            (None, None) => return Ok(()),
        }
        self.steps.push(new.map_or(Step::Deleted(id), |row| Step::Put(id, row)));
        Ok(())
    }

    /// Inserts without having looked: a duplicate is what a lookup would have found.
    fn insert(&mut self, id: u32, row: (u32, u64)) -> Result<(), Error> {
        let (key, value, entry) = (id.to_be_bytes(), row_value(row.0, row.1), entry_key(row.0, id));
        let entries = [
            Entry { key: &key, value: &value, unique: true },
            Entry { key: &entry, value: b"", unique: false },
        ];
        match self.txn.insert_row(self.table, &entries) {
            Ok(()) => self.steps.extend([Step::Got(id, None), Step::Put(id, row)]),
            Err(Error::Duplicate { existing, .. }) => {
                self.steps.push(Step::Got(id, Some(row_of(&existing))));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// One transaction, up to its commit. Errors: it is to be rolled back.
fn work(actor: &mut Actor<'_>, dice: &mut Dice, stamps: &AtomicU64) -> Result<(), Error> {
    let keys = actor.plan.keys;
    for _ in 0..1 + dice.below(4) {
        actor.mode = if dice.below(2) == 0 { LockMode::Shared } else { LockMode::Exclusive };
        match dice.below(if actor.plan.is_long { 11 } else { 8 }) {
            0..=1 => actor.scan_rows(dice)?,
            2..=3 => actor.scan_places(dice)?,
            4 => {
                let id = dice.below(keys);
                let row = actor.lookup(id)?;
                actor.steps.push(Step::Got(id, row));
            }
            8 => {
                let mark = actor.txn.mark();
                actor.steps.push(Step::Savepoint);
                for _ in 0..1 + dice.below(3) {
                    let stamp = stamps.fetch_add(1, Ordering::Relaxed);
                    let new = (dice.below(4) > 0).then(|| (dice.below(keys), stamp));
                    actor.write(dice.below(keys), new)?;
                }
                actor.txn.rollback_to(mark).unwrap();
                actor.txn.release_mark(mark);
                actor.steps.push(Step::BackToSavepoint);
            }
            9..=10 => {
                let stamp = stamps.fetch_add(1, Ordering::Relaxed);
                actor.insert(dice.below(keys), (dice.below(keys), stamp))?;
            }
            _ => {
                let stamp = stamps.fetch_add(1, Ordering::Relaxed);
                let new = (dice.below(4) > 0).then(|| (dice.below(keys), stamp));
                actor.write(dice.below(keys), new)?;
            }
        }
    }
    Ok(())
}

/// Replays a transaction on the model; what it saw has to be what is there.
fn replay(rows: &mut Rows, steps: &[Step], number: usize) {
    let mut kept = Rows::new();
    for step in steps {
        match step {
            Step::ScannedRows(from, to, seen) => {
                let there: Vec<_> = rows.range(from..to).map(|(id, row)| (*id, row.0, row.1)).collect();
                assert_eq!(*seen, there, "transaction {number} in the order of commits: {steps:?}");
            }
            Step::ScannedPlaces(from, to, seen) => {
                let mut there: Vec<_> = rows.iter().map(|(id, row)| (row.0, *id)).collect();
                there.retain(|(place, _)| from <= place && place < to);
                there.sort_unstable();
                assert_eq!(*seen, there, "transaction {number} in the order of commits: {steps:?}");
            }
            Step::Got(id, seen) => {
                assert_eq!(*seen, rows.get(id).copied(), "transaction {number}: {steps:?}");
            }
            Step::Put(id, row) => {
                rows.insert(*id, *row);
            }
            Step::Deleted(id) => {
                rows.remove(id);
            }
            Step::Savepoint => kept.clone_from(rows),
            Step::BackToSavepoint => rows.clone_from(&kept),
        }
    }
}

/// Two of three keys have a row.
fn fill(db: &Arc<Db>, table: &Arc<Table>, plan: Plan, stamps: &AtomicU64) -> Vec<Step> {
    let txn = db.begin();
    let mut actor = Actor { txn, table, steps: Vec::new(), mode: LockMode::Shared, plan };
    let mut dice = Dice(plan.seed);
    for id in (0..plan.keys).filter(|id| plan.is_long && id % 3 > 0) {
        let stamp = stamps.fetch_add(1, Ordering::Relaxed);
        actor.insert(id, (dice.below(plan.keys), stamp)).unwrap();
    }
    actor.txn.commit().unwrap();
    actor.steps
}

fn run(plan: Plan) {
    let vfs = disk(plan.seed);
    let db = open(&vfs).unwrap();
    db.set_lock_budget(plan.lock_budget);
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let stamps = AtomicU64::new(1);
    // Locks are held until a commit is visible, so if one depends on another, it is noted after it. The
    // note is made before the locks go, under the same mutex as the commit.
    let history: Mutex<Vec<Vec<Step>>> = Mutex::new(vec![fill(&db, &table, plan, &stamps)]);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..THREADS {
            let (db, table, stamps, history) = (&db, &table, &stamps, &history);
            threads.push(scope.spawn(move || {
                let mut dice = Dice(plan.seed * 1000 + thread);
                for number in 0..plan.transactions {
                    if thread == 0 && number % 20 == 0 {
                        db.run_jobs().unwrap();
                    }
                    let mut txn = db.begin();
                    txn.set_takes_gaps(true);
                    let mut actor = Actor { txn, table, steps: Vec::new(), mode: LockMode::Shared, plan };
                    match work(&mut actor, &mut dice, stamps) {
                        Ok(()) => {
                            let mut history = history.lock();
                            actor.txn.commit().unwrap();
                            history.push(actor.steps);
                        }
                        Err(Error::Deadlock) => actor.txn.rollback(),
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }));
        }
        // The end of the scope would do, but ThreadSanitizer does not see that.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let mut rows = Rows::new();
    let history = history.into_inner();
    println!("{plan:?}: {} transactions", history.len());
    assert!(history.len() as u64 > plan.transactions, "most go through: {}", history.len());
    history.iter().enumerate().for_each(|(number, steps)| replay(&mut rows, steps, number));
    assert_eq!(db.locks().len(), 0);
    assert!(db.metrics().row_lock_waits.get() > 0, "they are to meet");
    assert!(!plan.is_long || db.metrics().rows_locked_ahead.get() > 0, "many rows at once");
    assert_eq!(common::count(&db, "./db/a").unwrap() as usize, rows.len());
}

#[test]
fn transactions_with_locking_scans_are_serializable_in_the_order_of_their_commits() {
    for (seed, lock_budget) in [(1, usize::MAX), (2, 3), (3, usize::MAX), (4, 3), (5, 1), (6, usize::MAX)] {
        run(Plan { seed, lock_budget, keys: 24, transactions: 300, is_long: false });
    }
}

#[test]
fn transactions_that_lock_many_rows_at_once_and_undo_some_of_their_writes_are_serializable() {
    for (seed, lock_budget) in [(1, usize::MAX), (2, 40), (3, 5)] {
        run(Plan { seed, lock_budget, keys: 400, transactions: 60, is_long: true });
    }
}

/// More of both, for hours if need be: `PANDO_TEST_ROUNDS`.
#[test]
#[ignore = "takes as long as it is told"]
fn transactions_are_serializable_for_many_rounds() {
    let rounds = std::env::var("PANDO_TEST_ROUNDS").map_or(10, |rounds| rounds.parse().unwrap());
    for seed in 100..100 + rounds {
        let lock_budget = [1, 3, 8, 40, 150, usize::MAX][seed as usize % 6];
        run(Plan { seed, lock_budget, keys: 24, transactions: 300, is_long: false });
        let keys = [300, 400, 500, 700][seed as usize % 4];
        run(Plan { seed, lock_budget, keys, transactions: 60, is_long: true });
    }
}

/// Long enough in most cases, if many rows are to be locked ahead.
fn range(dice: &mut Dice, plan: Plan) -> (u32, u32) {
    let from = dice.below(plan.keys);
    let len = if plan.is_long && dice.below(3) == 0 { plan.keys } else { plan.keys / 2 };
    (from, from + 1 + dice.below(len))
}
