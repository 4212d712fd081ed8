//! Queues: many take rows that nobody else has, give back those that are not for them, and go back to savepoints. None is
//! taken twice, whatever the lock budget makes of the locks.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread;

use common::{disk, open, spec};
use pandodb::{Db, Entry, Error, LockMode, LockWait, ReadMode, Table, Txn};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const JOBS: u32 = 600;
const THREADS: u64 = 5;

fn entries(id: &[u8; 4]) -> [Entry<'_>; 2] {
    [Entry { key: id, value: b"to do", unique: true }, Entry { key: id, value: b"", unique: false }]
}

fn database(lock_budget: usize) -> (Arc<Db>, Arc<Table>) {
    let db = open(&disk(1)).unwrap();
    db.set_lock_budget(lock_budget);
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    for job in 0..JOBS {
        txn.insert_row(&table, &entries(&job.to_be_bytes())).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

/// One who takes jobs: those of his kind, which are one of `kinds`.
struct Worker<'a> {
    table: &'a Arc<Table>,
    rng: ChaCha8Rng,
    kind: u32,
    kinds: u32,
}

impl Worker<'_> {
    /// Takes up to so many jobs. `None`: there was nothing to be taken.
    fn take(&mut self, txn: &mut Txn, most: usize, wait: LockWait) -> pandodb::Result<Vec<u32>> {
        let mut cursor = txn.cursor(self.table, 0);
        let mut taken = Vec::new();
        let read = ReadMode::Locked(LockMode::Exclusive, wait);
        match self.rng.random_range(0..3) {
            0 => cursor.seek_first(txn, read)?,
            1 => cursor.seek(txn, &self.rng.random_range(0..JOBS).to_be_bytes(), read)?,
            _ => cursor.seek_last(txn, read)?,
        }
        let is_forward = cursor.is_forward();
        while cursor.valid() && taken.len() < most {
            let job = u32::from_be_bytes(cursor.key().try_into().unwrap());
            if job % self.kinds == self.kind {
                taken.push(job);
            } else if cursor.just_locked() {
                // Of READ COMMITTED. With gaps the others keep what they have met.
                txn.unlock(self.table, 0, &job.to_be_bytes());
            }
            match is_forward {
                true => cursor.next(txn)?,
                false => cursor.prev(txn)?,
            }
        }
        Ok(taken)
    }

    fn remove(&self, txn: &mut Txn, jobs: &[u32]) -> pandodb::Result<()> {
        jobs.iter().try_for_each(|job| txn.delete_row(self.table, &entries(&job.to_be_bytes())))
    }

    /// What was taken and committed.
    fn transaction(&mut self, db: &Arc<Db>) -> pandodb::Result<Vec<u32>> {
        let mut txn = db.begin();
        txn.set_takes_gaps(self.rng.random_ratio(1, 4));
        let wait = *[LockWait::SkipLocked, LockWait::SkipLocked, LockWait::SkipLocked, LockWait::NoWait]
            .get(self.rng.random_range(0..4))
            .unwrap();
        let most = self.rng.random_range(1..6);
        let mut taken = self.take(&mut txn, most, wait)?;
        self.remove(&mut txn, &taken)?;
        if self.rng.random_ratio(1, 3) {
            let mark = txn.mark();
            let more = self.take(&mut txn, 4, LockWait::SkipLocked)?;
            self.remove(&mut txn, &more)?;
            match self.rng.random() {
                true => txn.rollback_to(mark).unwrap(),
                false => taken.extend(more),
            }
            txn.release_mark(mark);
        }
        match self.rng.random_ratio(1, 5) {
            true => txn.rollback(),
            false => {
                txn.commit()?;
                return Ok(taken);
            }
        }
        Ok(Vec::new())
    }
}

#[test]
fn no_job_is_taken_twice() {
    for (lock_budget, kinds) in [(usize::MAX, 1), (4, 1), (usize::MAX, 2), (4, 2), (20, 3)] {
        let (db, table) = database(lock_budget);
        let times: Vec<AtomicU32> = (0..JOBS).map(|_| AtomicU32::new(0)).collect();
        let left = AtomicU32::new(JOBS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, table, times, left) = (&db, &table, &times, &left);
                scope.spawn(move || {
                    let kind = thread as u32 % kinds;
                    let mut worker = Worker { table, rng: ChaCha8Rng::seed_from_u64(thread), kind, kinds };
                    let mut tries = 0;
                    while left.load(Ordering::Relaxed) > 0 && tries < 2000 {
                        tries += 1;
                        match worker.transaction(db) {
                            Ok(taken) => taken.iter().for_each(|job| {
                                times[*job as usize].fetch_add(1, Ordering::Relaxed);
                                left.fetch_sub(1, Ordering::Relaxed);
                            }),
                            Err(Error::Deadlock | Error::WouldBlock) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                });
            }
        });
        let twice: Vec<usize> =
            (0..times.len()).filter(|job| times[*job].load(Ordering::Relaxed) > 1).collect();
        assert!(twice.is_empty(), "lock budget {lock_budget}: {twice:?}");
        let taken = times.iter().filter(|times| times.load(Ordering::Relaxed) == 1).count() as u32;
        assert!(taken > JOBS / 2, "most are taken: {taken}");
        assert_eq!(common::count(&db, "./db/a").unwrap(), JOBS - taken);
        assert_eq!(db.locks().len(), 0);
    }
}
