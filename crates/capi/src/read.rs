//! What reads see, and how long they wait for locks.

use pandodb::{LockMode, LockWait, ReadMode};

/// What a read sees, and whether it locks.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoRead {
    /// The transaction's snapshot.
    Snapshot = 0,
    /// The newest committed version; no lock.
    Latest = 1,
    /// The newest version, under a shared row lock.
    Shared = 2,
    /// The newest version, under an exclusive row lock.
    Exclusive = 3,
}

crate::member::members! {
    PandoRead: Snapshot Latest Shared Exclusive;
}

/// `wait_s` of locking reads: as the transaction says.
pub const PANDO_WAIT_DEFAULT: i64 = -1;
/// `wait_s` of locking reads: pass locked rows by. 0 fails at once, other numbers are seconds.
pub const PANDO_WAIT_SKIP: i64 = -2;
/// `wait_s` of locking fetches: give locked rows as they were last committed, without a lock (`PandoBatch::is_peek`). Not
/// for transactions that take gaps.
pub const PANDO_WAIT_PEEK: i64 = -3;

pub(crate) fn lock_wait(wait_s: i64) -> LockWait {
    match wait_s {
        PANDO_WAIT_SKIP => LockWait::SkipLocked,
        PANDO_WAIT_PEEK => LockWait::Peek,
        0 => LockWait::NoWait,
        seconds if seconds > 0 => LockWait::Seconds(seconds as u64),
        _ => LockWait::Default,
    }
}

pub(crate) fn read_mode(read: PandoRead, wait_s: i64) -> ReadMode {
    match read {
        PandoRead::Snapshot => ReadMode::Snapshot,
        PandoRead::Latest => ReadMode::Latest,
        PandoRead::Shared => ReadMode::Locked(LockMode::Shared, lock_wait(wait_s)),
        PandoRead::Exclusive => ReadMode::Locked(LockMode::Exclusive, lock_wait(wait_s)),
    }
}
