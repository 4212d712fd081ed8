//! What loads may keep in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Of all memory, what chunks may have; the rest is for groups that are being collected and sorted.
const CHUNKS_EIGHTHS: u64 = 5;

/// Bytes that sorted batches of a load hold, and how many they may.
#[derive(Debug)]
pub struct Memory {
    used: AtomicU64,
    limit: AtomicU64,
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Memory> {
        Arc::new(Memory { used: AtomicU64::new(0), limit: AtomicU64::new(limit) })
    }

    /// What is in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
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
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.limit() / 8 * CHUNKS_EIGHTHS)
        });
        taken.ok().map(|_| Part { memory: self.clone(), bytes })
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
