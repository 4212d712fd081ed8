//! What the lock manager tells people: transactions, locks held and waited for, and by whom they are
//! held up. Each shard is looked at for itself, so rows of one report may be of different moments; a
//! waiter and those in its way are of the same.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_base::{DictId, TxnId};

use super::range_table::{Owner, RangeKind, RangeWaiter, Wish};
use super::table::{Lock, Waiter};
use super::txn::TxnState;
use super::{LockManager, LockMode};

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// One key.
    Key,
    /// A range in which others may not insert.
    Gap,
    /// A range that stands for locks on all keys in it (the transaction was over its lock budget).
    Stretch,
    /// The wish to insert a key into gaps of others; only waited for.
    Insert,
}

/// A lock held or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// Who holds or waits.
    pub txn: TxnId,
    /// The lock's dictionary.
    pub dict: DictId,
    /// Whether it is of a key or of a range.
    pub kind: LockKind,
    /// The key, or the first key of the range.
    pub from: Vec<u8>,
    /// The first key after the range; `None` if it has no end. `None` for a key.
    pub to: Option<Vec<u8>>,
    /// Mode held or waited for.
    pub mode: LockMode,
    /// Whether it waits. An upgrader has two rows: the shared lock it holds, the exclusive it waits for.
    pub waiting: bool,
    /// Who is in the way of one that waits: holders, and incompatible requests before it in the queue.
    pub blockers: Vec<TxnId>,
}

/// A transaction that holds a lock, a snapshot or a write, or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnRow {
    /// Its id.
    pub id: TxnId,
    /// How long ago it took its first lock or snapshot.
    pub age: Duration,
    /// How long it has been waiting for a lock, if it does.
    pub waiting: Option<Duration>,
    /// Locks on single keys that it holds.
    pub key_locks: u64,
    /// Ranges that it holds.
    pub range_locks: u64,
    /// Writes it has done (one per dictionary and change).
    pub writes: u64,
    /// Bytes of keys and values that it has written, rolled back statements included.
    pub write_bytes: u64,
}

/// One wait that was part of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockWait {
    /// What was waited for, and the one other member that was in the way.
    pub lock: LockRow,
    /// What would have been lost with the waiter.
    pub weight: u64,
    /// The waiter held the lock shared already.
    pub upgrade: bool,
    /// How the other one held it; `None`: it stood before the waiter in the queue.
    pub held: Option<LockMode>,
}

/// A deadlock that was broken: a cycle of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waited for the next, the last for the first.
    pub waits: Vec<DeadlockWait>,
    /// The one whose wait failed.
    pub victim: TxnId,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "deadlock of {} transactions", self.waits.len())?;
        for wait in &self.waits {
            let lock = &wait.lock;
            let (txn, weight, mode) = (lock.txn, wait.weight, lock.mode);
            let upgrade = if wait.upgrade { ", held shared," } else { "" };
            let other = lock.blockers.first().map_or(0, |id| id.0);
            write!(f, "transaction {txn} (weight {weight}) waits ")?;
            if lock.kind == LockKind::Insert {
                writeln!(f, "to insert into {lock}, in a gap held by transaction {other}")?;
                continue;
            }
            write!(f, "for the {mode} lock{upgrade} on {lock}, ")?;
            match wait.held {
                Some(mode) => writeln!(f, "held {mode} by transaction {other}")?,
                None => writeln!(f, "behind transaction {other}")?,
            }
        }
        writeln!(f, "victim: transaction {}", self.victim)
    }
}

/// What is locked, in few words.
impl fmt::Display for LockRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dict, from) = (self.dict, hex(&self.from));
        match (self.kind, &self.to) {
            (LockKind::Key | LockKind::Insert, _) => write!(f, "dictionary {dict} key {from}"),
            (LockKind::Gap | LockKind::Stretch, None) => write!(f, "dictionary {dict} keys from {from} on"),
            (LockKind::Gap | LockKind::Stretch, Some(to)) => {
                write!(f, "dictionary {dict} keys from {from} to before {}", hex(to))
            }
        }
    }
}

/// Bytes of a key that are printed.
const PRINTED_KEY_BYTES_MAX: usize = 64;

fn hex(key: &[u8]) -> String {
    let shown = &key[..key.len().min(PRINTED_KEY_BYTES_MAX)];
    let mut text: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    if shown.len() < key.len() {
        text.push_str(&format!("... ({} bytes)", key.len()));
    }
    text
}

impl LockManager {
    /// All locks held and waited for.
    pub fn rows(&self) -> Vec<LockRow> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            for lock in shard.lock().locks() {
                rows.extend(lock.holders().map(|holder| key_row(lock, &holder.txn, holder.mode)));
                rows.extend(lock.queue().map(|waiter| LockRow {
                    waiting: true,
                    blockers: blockers(lock, waiter),
                    ..key_row(lock, &waiter.txn, waiter.mode)
                }));
            }
        }
        for shard in self.ranges.each() {
            for (dict, ranges) in shard.dicts() {
                rows.extend(ranges.owners.iter().flat_map(|owner| owner_rows(dict, owner)));
                rows.extend(ranges.queue.iter().map(|waiter| LockRow {
                    blockers: ids(ranges.blockers(&waiter.txn, waiter.wish, &waiter.key)),
                    ..wish_row(dict, waiter)
                }));
            }
        }
        rows
    }

    /// All transactions that have begun, oldest first.
    pub fn transactions(&self) -> Vec<TxnRow> {
        let states: Vec<Arc<TxnState>> =
            self.registry.iter().flat_map(|part| part.lock().values().cloned().collect::<Vec<_>>()).collect();
        let now = Instant::now();
        let mut rows: Vec<TxnRow> = states.iter().filter_map(|state| txn_row(state, now)).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.age), row.id.0));
        rows
    }
}

pub(crate) fn key_row(lock: &Lock, txn: &TxnState, mode: LockMode) -> LockRow {
    LockRow {
        txn: txn.id,
        dict: lock.dict,
        kind: LockKind::Key,
        from: lock.key().to_vec(),
        to: None,
        mode,
        waiting: false,
        blockers: Vec::new(),
    }
}

fn ids<'a>(txns: impl Iterator<Item = &'a Arc<TxnState>>) -> Vec<TxnId> {
    txns.map(|txn| txn.id).collect()
}

fn owner_rows(dict: DictId, owner: &Owner) -> impl Iterator<Item = LockRow> + '_ {
    RangeKind::ALL.into_iter().flat_map(move |kind| {
        let (lock_kind, mode) = match kind {
            // A gap is the same for all.
            RangeKind::Gap => (LockKind::Gap, LockMode::Shared),
            RangeKind::Stretch(mode) => (LockKind::Stretch, mode),
        };
        owner.set(kind).iter().map(move |(from, to)| LockRow {
            txn: owner.txn.id,
            dict,
            kind: lock_kind,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            mode,
            waiting: false,
            blockers: Vec::new(),
        })
    })
}

/// One who waits because of ranges; those in its way are left out.
pub(crate) fn wish_row(dict: DictId, waiter: &RangeWaiter) -> LockRow {
    LockRow {
        txn: waiter.txn.id,
        dict,
        kind: if waiter.wish == Wish::Insert { LockKind::Insert } else { LockKind::Key },
        from: waiter.key.clone(),
        to: None,
        mode: waiter.wish.mode(),
        waiting: true,
        blockers: Vec::new(),
    }
}

/// Who is in the way of `waiter`, which is in the lock's queue.
fn blockers(lock: &Lock, waiter: &Waiter) -> Vec<TxnId> {
    let holders = lock.holders().map(|holder| (&holder.txn, holder.mode));
    let before = lock
        .queue()
        .take_while(|other| !Arc::ptr_eq(&other.txn, &waiter.txn))
        .map(|other| (&other.txn, other.mode));
    let mut ids = Vec::new();
    for (txn, mode) in holders.chain(before) {
        let in_the_way = !Arc::ptr_eq(txn, &waiter.txn) && !waiter.mode.admits(mode);
        if in_the_way && !ids.contains(&txn.id) {
            ids.push(txn.id);
        }
    }
    ids
}

fn txn_row(state: &TxnState, now: Instant) -> Option<TxnRow> {
    let begun = state.begun()?;
    Some(TxnRow {
        id: state.id,
        age: now.saturating_duration_since(begun),
        waiting: state.waiting_since().map(|since| now.saturating_duration_since(since)),
        key_locks: state.held_count.load(Relaxed) as u64,
        range_locks: state.range_count.load(Relaxed) as u64,
        writes: state.weight().saturating_sub(1),
        write_bytes: state.write_bytes(),
    })
}
