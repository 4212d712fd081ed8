//! Transactions and locks, for the server's information schema.

use pandodb::{LockKind, LockMode, PlacedDeadlock, PlacedLock, TxnRow};

use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;

/// The transactions and locks of one moment, more or less: parts are looked at one after the other.
#[derive(Debug)]
pub struct PandoLockReport {
    txns: Vec<TxnRow>,
    locks: Vec<PlacedLock>,
    /// Of each lock those in its way, as numbers.
    blockers: Vec<Vec<u64>>,
}

/// A transaction that has taken a lock or a snapshot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoTxnRow {
    /// Its id, as of `pando_txn_id`.
    pub id: u64,
    /// Microseconds since its first lock or snapshot.
    pub age_us: u64,
    /// Microseconds since it began to wait for a lock; -1 if it does not wait.
    pub waiting_us: i64,
    /// Locks on single keys that it holds.
    pub key_locks: u64,
    /// Ranges that it holds.
    pub range_locks: u64,
    /// Writes it has done.
    pub writes: u64,
    /// Bytes of keys and values that it has written.
    pub write_bytes: u64,
}

/// What is locked.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoLockKind {
    /// One key.
    Key = 0,
    /// A range in which others may not insert.
    Gap = 1,
    /// A range that stands for locks on all keys in it.
    Stretch = 2,
    /// The wish to insert a key into gaps of others; only waited for.
    Insert = 3,
}

/// A lock held or waited for. Its pointers are valid as long as the report.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoLockRow {
    /// Who holds or waits.
    pub txn: u64,
    /// `database/table`; empty if the table is not open any more.
    pub table: PandoBytes,
    /// Position among the table's dictionaries: 0 is the rows.
    pub index: u32,
    /// What is locked.
    pub kind: PandoLockKind,
    /// The key, or the first key of the range.
    pub from: PandoBytes,
    /// The first key after the range. Null: it has no end, or is a key.
    pub to: PandoBytes,
    /// 1: exclusive.
    pub exclusive: u8,
    /// 1: waited for.
    pub waiting: u8,
    /// Number of transactions in its way, if it waits.
    pub blocker_count: u32,
    /// Their ids.
    pub blockers: *const u64,
}

/// Looks at all transactions and locks; free it with [`pando_lock_report_free`].
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_lock_report(db: *const PandoDb) -> *mut PandoLockReport {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let db = unsafe { &(*db).db };
        let (txns, locks) = (db.transactions(), db.locks());
        let ids = |row: &PlacedLock| row.lock.blockers.iter().map(|id| id.0).collect();
        let blockers = locks.iter().map(ids).collect();
        Box::into_raw(Box::new(PandoLockReport { txns, locks, blockers }))
    })
}

/// Frees a report. Null is allowed.
///
/// # Safety
/// The report is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_lock_report_free(report: *mut PandoLockReport) {
    guard(|| {
        if !report.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(report) });
        }
    });
}

/// Number of transactions in the report.
///
/// # Safety
/// The report is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_lock_report_txn_count(report: *const PandoLockReport) -> u32 {
    // SAFETY: the caller vouches for it.
    let report = unsafe { &*report };
    guard(|| report.txns.len() as u32)
}

/// The transaction at `position`, which is below the count.
///
/// # Safety
/// The report is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_lock_report_txn(report: *const PandoLockReport, position: u32) -> PandoTxnRow {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let row = unsafe { &(&(*report).txns)[position as usize] };
        PandoTxnRow {
            id: row.id.0,
            age_us: row.age.as_micros() as u64,
            waiting_us: row.waiting.map_or(-1, |time| time.as_micros() as i64),
            key_locks: row.key_locks,
            range_locks: row.range_locks,
            writes: row.writes,
            write_bytes: row.write_bytes,
        }
    })
}

/// Number of locks in the report.
///
/// # Safety
/// The report is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_lock_report_lock_count(report: *const PandoLockReport) -> u32 {
    // SAFETY: the caller vouches for it.
    let report = unsafe { &*report };
    guard(|| report.locks.len() as u32)
}

/// The lock at `position`, which is below the count.
///
/// # Safety
/// The report is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_lock_report_lock(
    report: *const PandoLockReport,
    position: u32,
) -> PandoLockRow {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let report = unsafe { &*report };
        lock_row(&report.locks[position as usize], &report.blockers[position as usize])
    })
}

fn lock_row(row: &PlacedLock, blockers: &[u64]) -> PandoLockRow {
    let no_end = PandoBytes { data: std::ptr::null(), len: 0 };
    PandoLockRow {
        txn: row.lock.txn.0,
        table: PandoBytes::from_slice(row.table.as_bytes()),
        index: row.index as u32,
        kind: match row.lock.kind {
            LockKind::Key => PandoLockKind::Key,
            LockKind::Gap => PandoLockKind::Gap,
            LockKind::Stretch => PandoLockKind::Stretch,
            LockKind::Insert => PandoLockKind::Insert,
        },
        from: PandoBytes::from_slice(&row.lock.from),
        to: row.lock.to.as_deref().map_or(no_end, PandoBytes::from_slice),
        exclusive: u8::from(row.lock.mode == LockMode::Exclusive),
        waiting: u8::from(row.lock.waiting),
        blocker_count: blockers.len() as u32,
        blockers: blockers.as_ptr(),
    }
}

/// The last deadlock.
#[derive(Debug)]
pub struct PandoDeadlock {
    deadlock: PlacedDeadlock,
    blockers: Vec<u64>,
}

/// One wait that was part of a deadlock: each member waited for the next, the last for the first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoDeadlockRow {
    /// What was waited for; its only blocker is the next member. Its pointers are valid as long as the report.
    pub lock: PandoLockRow,
    /// Writes that would have been lost with the waiter.
    pub weight: u64,
    /// 1: the waiter held the lock shared already.
    pub upgrade: u8,
    /// How the next member held the lock: 0 shared, 1 exclusive, 2: it stood before the waiter in the queue.
    pub held: u8,
    /// 1: this one was the victim.
    pub victim: u8,
}

/// The last deadlock, null if there was none; free it with [`pando_deadlock_free`].
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_last_deadlock(db: *const PandoDb) -> *mut PandoDeadlock {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let Some(deadlock) = (unsafe { (*db).db.last_deadlock() }) else { return std::ptr::null_mut() };
        let first = |lock: &PlacedLock| lock.lock.blockers.first().map_or(0, |id| id.0);
        let blockers = deadlock.waits.iter().map(|(_, lock)| first(lock)).collect();
        Box::into_raw(Box::new(PandoDeadlock { deadlock, blockers }))
    })
}

/// Frees it. Null is allowed.
///
/// # Safety
/// It is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_deadlock_free(deadlock: *mut PandoDeadlock) {
    guard(|| {
        if !deadlock.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(deadlock) });
        }
    });
}

/// Number of its members.
///
/// # Safety
/// It is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_deadlock_count(deadlock: *const PandoDeadlock) -> u32 {
    // SAFETY: the caller vouches for it.
    let deadlock = unsafe { &*deadlock };
    guard(|| deadlock.blockers.len() as u32)
}

/// The member at `position`, which is below the count.
///
/// # Safety
/// It is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_deadlock_row(
    deadlock: *const PandoDeadlock,
    position: u32,
) -> PandoDeadlockRow {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let PandoDeadlock { deadlock, blockers } = unsafe { &*deadlock };
        let position = position as usize;
        let (wait, lock) = &deadlock.waits[position];
        PandoDeadlockRow {
            lock: lock_row(lock, &blockers[position..=position]),
            weight: wait.weight.saturating_sub(1),
            upgrade: u8::from(wait.upgrade),
            held: wait.held.map_or(2, |mode| u8::from(mode == LockMode::Exclusive)),
            victim: u8::from(lock.lock.txn == deadlock.victim),
        }
    })
}
