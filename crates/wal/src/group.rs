//! Who leads a group commit, and who waits for it.
//!
//! One thread at a time leads. The others leave what they wait for and park; nobody takes the mutex again to find
//! out that it has what it wanted. A leader that is done hands over in this order:
//! 1. it picks the next leader among those whose place was not reached, and wakes it first: the disk should
//!    not idle while the others wake up one after another;
//! 2. it wakes those whose place was reached; they return without a lock.
//!
//! After a failure all are woken, and nobody leads again.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::thread::Thread;

/// The group and whether the log has failed. Behind a mutex that is a leaf in the lock order.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Some thread leads, or was told to.
    leading: bool,
    waiting: Vec<Arc<Waiter>>,
    /// The first failure (I8).
    pub(crate) failed: Option<String>,
}

/// What a thread that asks is to do.
pub(crate) enum Part {
    /// Lead, then hand over.
    Lead,
    /// Wait for its turn.
    Wait(Arc<Waiter>),
}

/// What a thread that has waited is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Turn {
    /// Go on waiting.
    NotYet = 0,
    /// See what has happened: its place was reached, or the log has failed.
    Look = 1,
    /// Lead.
    Lead = 2,
}

/// One that waits for the log to be written, or synced, up to `lsn`.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) lsn: u64,
    pub(crate) sync: bool,
    turn: AtomicU8,
    thread: Thread,
}

impl Waiter {
    /// Parks until it is this thread's turn.
    pub(crate) fn wait(&self) -> Turn {
        loop {
            match self.turn.load(Ordering::Acquire) {
                turn if turn == Turn::Lead as u8 => return Turn::Lead,
                turn if turn == Turn::Look as u8 => return Turn::Look,
                _ => std::thread::park(),
            }
        }
    }

    fn wake(&self, turn: Turn) {
        self.turn.store(turn as u8, Ordering::Release);
        self.thread.unpark();
    }
}

/// Those to wake when a leader is done, once the mutex is free.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    leader: Option<Arc<Waiter>>,
    others: Vec<Arc<Waiter>>,
}

impl Woken {
    pub(crate) fn wake(self) {
        if let Some(leader) = self.leader {
            leader.wake(Turn::Lead);
        }
        self.others.iter().for_each(|waiter| waiter.wake(Turn::Look));
    }
}

impl Group {
    /// Takes the lead if it is free, or a place among those who wait.
    pub(crate) fn join(&mut self, lsn: u64, sync: bool) -> Part {
        if !self.leading {
            self.leading = true;
            return Part::Lead;
        }
        let turn = AtomicU8::new(Turn::NotYet as u8);
        let waiter = Arc::new(Waiter { lsn, sync, turn, thread: std::thread::current() });
        self.waiting.push(waiter.clone());
        Part::Wait(waiter)
    }

    /// The leader is done. `is_reached` says of whom the place was reached.
    pub(crate) fn hand_over(&mut self, is_reached: impl Fn(&Waiter) -> bool) -> Woken {
        assert!(self.leading, "who hands over leads");
        self.leading = false;
        if self.failed.is_some() {
            return self.all();
        }
        let all = std::mem::take(&mut self.waiting);
        let (others, mut left): (Vec<_>, Vec<_>) = all.into_iter().partition(|waiter| is_reached(waiter));
        // A sync serves those too who want less.
        let next = left.iter().position(|waiter| waiter.sync);
        let leader = next.or((!left.is_empty()).then_some(0)).map(|next| left.remove(next));
        self.leading = leader.is_some();
        self.waiting = left;
        Woken { leader, others }
    }

    /// Everyone, because the log has failed.
    pub(crate) fn all(&mut self) -> Woken {
        Woken { leader: None, others: std::mem::take(&mut self.waiting) }
    }
}
