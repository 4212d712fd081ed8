//! Memory of all queries of the process together. Each query has a limit of its own (`Limits`), but there may be as many as there are
//! connections: what they hold is counted in one place, and the one that would go beyond the limit is given back.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit, and what is used of it.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicUsize,
    max_bytes: AtomicUsize,
}

/// That of the process.
static OF_ALL: Budget = Budget::new(usize::MAX);

/// Sets the limit of what all queries of the process may hold together. Queries that hold more already keep it.
pub fn set_memory_max_bytes(bytes: u64) {
    OF_ALL.max_bytes.store(usize::try_from(bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// What all queries of the process hold now.
pub fn memory_used_bytes() -> u64 {
    OF_ALL.used_bytes.load(Ordering::Relaxed) as u64
}

/// What is left for all queries of the process.
pub fn memory_left_bytes() -> usize {
    let (most, used) = (&OF_ALL.max_bytes, &OF_ALL.used_bytes);
    most.load(Ordering::Relaxed).saturating_sub(used.load(Ordering::Relaxed))
}

impl Budget {
    const fn new(max_bytes: usize) -> Budget {
        Budget { used_bytes: AtomicUsize::new(0), max_bytes: AtomicUsize::new(max_bytes) }
    }
}

/// What one part of a query holds; given back when it is dropped.
#[derive(Debug)]
pub struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Share<'static> {
    /// Nothing yet, of the process's budget.
    pub fn new() -> Share<'static> {
        Share { budget: &OF_ALL, bytes: 0 }
    }
}

impl Default for Share<'static> {
    fn default() -> Self {
        Share::new()
    }
}

impl Share<'_> {
    /// Says how much it holds now. False: that is more than there is for all, and it is not counted.
    #[must_use]
    pub fn set(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else {
            self.budget.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            return true;
        };
        let used = self.budget.used_bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if more > 0 && used > self.budget.max_bytes.load(Ordering::Relaxed) {
            self.budget.used_bytes.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_together_stay_below_the_limit() {
        let budget = Budget::new(100);
        let share = || Share { budget: &budget, bytes: 0 };
        let (mut first, mut second) = (share(), share());
        assert!(first.set(60) && second.set(40));
        assert!(!second.set(41), "one byte too much");
        assert!(first.set(50) && second.set(50), "what one gives back, the other can have");
        assert!(first.set(50), "no more than before, at the limit");
        drop(first);
        assert!(second.set(100));
        drop(second);
        assert_eq!(budget.used_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_lower_limit_takes_nothing_away() {
        let budget = Budget::new(100);
        let mut share = Share { budget: &budget, bytes: 0 };
        assert!(share.set(80));
        budget.max_bytes.store(10, Ordering::Relaxed);
        assert!(share.set(80) && share.set(70) && !share.set(71));
    }
}
