//! Memory that is free, and that the C library keeps all the same.
//!
//! Large buffers do not come from it where the program has set `pando_memory::Allocator`. What is small still does, and is allocated by one
//! thread and freed by another, while the C library's allocator has a heap for nearly each thread, and gives memory back to the
//! system only from the end of one. `malloc_trim` gives back whole free pages wherever they are. It goes over all heaps of the process, holding each one's lock meanwhile (of 15 heaps with 600 MB it gave back 1,100
//! stretches at a time), so it is called seldom, and only when much has gone through memory.

use std::sync::atomic::{AtomicU64, Ordering};

use pando_base::Metrics;

/// Bytes that go through memory between two calls.
const MOVED_BYTES: u64 = 64 << 20;
/// The shortest time between two calls.
const PERIOD_MICROS: u64 = 5_000_000;

/// When memory was given back last.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    moved: AtomicU64,
    micros: AtomicU64,
}

impl Heap {
    /// Says what allocations take, and gives back what is free if it is time. For one thread.
    pub(crate) fn tick(&self, metrics: &Metrics, now_micros: u64) {
        let usage = pando_memory::usage();
        metrics.buffer_bytes.set(usage.used_bytes);
        metrics.buffer_bytes_kept.set(usage.kept_bytes);
        metrics.heap_bytes.set(usage.small_bytes);
        let moved = metrics.cache_read_bytes.get()
            + metrics.flush_read_bytes.get()
            + metrics.memtable_written_bytes.get()
            + metrics.spill_written_bytes.get();
        if self.is_due(moved, now_micros) {
            give_back();
        }
    }

    /// `moved`: bytes that have gone through memory so far.
    fn is_due(&self, moved: u64, now_micros: u64) -> bool {
        let is_due = moved.saturating_sub(self.moved.load(Ordering::Relaxed)) >= MOVED_BYTES
            && now_micros.saturating_sub(self.micros.load(Ordering::Relaxed)) >= PERIOD_MICROS;
        if is_due {
            self.moved.store(moved, Ordering::Relaxed);
            self.micros.store(now_micros, Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    // SAFETY: it may be called by any thread at any time, and changes nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators have ways of their own.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_when_much_has_moved_and_some_time_has_passed() {
        let heap = Heap::default();
        let later = 100 * PERIOD_MICROS;
        assert!(!heap.is_due(MOVED_BYTES - 1, later));
        assert!(heap.is_due(MOVED_BYTES, later));
        assert!(!heap.is_due(2 * MOVED_BYTES - 1, later + PERIOD_MICROS));
        assert!(!heap.is_due(9 * MOVED_BYTES, later + PERIOD_MICROS - 1));
        assert!(heap.is_due(2 * MOVED_BYTES, later + PERIOD_MICROS));
    }
}
