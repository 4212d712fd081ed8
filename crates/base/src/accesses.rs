//! What a thread has asked the block cache for, so that a statement can be told what it cost.
//!
//! A thread's counts only grow: who wants those of a piece of work takes the difference. Work that is done for somebody on
//! other threads is given to that thread's counts when they are joined.

use std::cell::Cell;
use std::ops::{Add, Sub};

/// Blocks that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Blocks looked up in the cache.
    pub blocks: u64,
    /// Reads of a file, each for a block that was not there.
    pub reads: u64,
    /// Blocks that these reads brought beside it.
    pub blocks_ahead: u64,
    /// Time in these reads, in microseconds.
    pub read_time: u64,
}

thread_local! {
    static OF_THREAD: Cell<Accesses> = const {
        Cell::new(Accesses { blocks: 0, reads: 0, blocks_ahead: 0, read_time: 0 })
    };
}

impl Accesses {
    /// One block looked up.
    pub const LOOKUP: Accesses = Accesses { blocks: 1, reads: 0, blocks_ahead: 0, read_time: 0 };

    /// All of this thread, since it began.
    pub fn of_thread() -> Accesses {
        OF_THREAD.get()
    }

    /// Adds these to the thread's.
    #[inline]
    pub fn count(self) {
        OF_THREAD.set(OF_THREAD.get() + self);
    }
}

impl Add for Accesses {
    type Output = Accesses;
    fn add(self, other: Accesses) -> Accesses {
        Accesses {
            blocks: self.blocks + other.blocks,
            reads: self.reads + other.reads,
            blocks_ahead: self.blocks_ahead + other.blocks_ahead,
            read_time: self.read_time + other.read_time,
        }
    }
}

impl Sub for Accesses {
    type Output = Accesses;
    fn sub(self, other: Accesses) -> Accesses {
        Accesses {
            blocks: self.blocks - other.blocks,
            reads: self.reads - other.reads,
            blocks_ahead: self.blocks_ahead - other.blocks_ahead,
            read_time: self.read_time - other.read_time,
        }
    }
}
