//! What loads may keep in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Of all memory, what chunks may have.
const CHUNKS_EIGHTHS: u64 = 5;

/// And what rows may have before they are in a chunk, of all loads together: batches on their way to the sorters, and groups that wait to be
/// sorted.
const HELD_EIGHTHS: u64 = 2;

/// Bytes that sorted batches of a load hold, and how many they may.
#[derive(Debug)]
pub struct Memory {
    used: AtomicU64,
    held: AtomicU64,
    limit: AtomicU64,
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Memory> {
        Arc::new(Memory { used: AtomicU64::new(0), held: AtomicU64::new(0), limit: AtomicU64::new(limit) })
    }

    /// What is in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.held.load(Ordering::Relaxed)
    }

    /// The whole of it.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes it; what is in use beyond it stays until it is given back.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Takes `bytes` of what chunks may have if they are left; given back when the part is dropped.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Part> {
        self.add_within(&self.used, bytes, CHUNKS_EIGHTHS).then(|| Part { memory: self.clone(), bytes })
    }

    /// Counts `bytes` of rows that are in no chunk yet, if they are within what such rows may have: to be [let go](Self::let_go) of.
    pub fn hold(&self, bytes: u64) -> bool {
        self.add_within(&self.held, bytes, HELD_EIGHTHS)
    }

    /// Counts them however many there are: those without which a load would stand still.
    pub fn hold_in_any_case(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether rows that are in no chunk yet may take more.
    pub(crate) fn has_room(&self) -> bool {
        self.held.load(Ordering::Relaxed) < self.limit() / 8 * HELD_EIGHTHS
    }

    /// These bytes are counted no longer.
    pub fn let_go(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn add_within(&self, counter: &AtomicU64, bytes: u64, eighths: u64) -> bool {
        let most = self.limit() / 8 * eighths;
        let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= most);
        counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// Rows that are in no chunk yet, counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Held {
    pub(crate) fn new(memory: &Arc<Memory>, bytes: u64) -> Held {
        memory.hold_in_any_case(bytes);
        Held { memory: memory.clone(), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.let_go(self.bytes);
    }
}

/// A part of the budget that is in use.
#[derive(Debug)]
pub(crate) struct Part {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_on_their_way_have_a_part_of_their_own() {
        let memory = Memory::new(80);
        let part = memory.take(50);
        assert!(part.is_some() && memory.take(1).is_none());
        assert!(memory.hold(15) && !memory.hold(6) && memory.hold(5));
        memory.hold_in_any_case(30);
        assert_eq!(memory.used(), 100);
        assert!(!memory.hold(1));
        memory.let_go(31);
        assert!(memory.hold(1) && !memory.hold(1));
        drop(part);
        assert_eq!(memory.used(), 20);
        assert!(!memory.hold(u64::MAX));
    }
}
