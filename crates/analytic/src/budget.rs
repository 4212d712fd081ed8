//! Memory of a query: what its operators may take, and what they have taken.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::{memory_left_bytes, Failure, Share, Why};

use crate::eval::Result;

/// Bytes that all operators of a query may take: its own limit, and what there is for all queries of the process. Or bytes that
/// a part of a query may take of these; what that has taken is given back when its budget is dropped.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// What is counted in the process's budget already.
    counted: AtomicUsize,
    share: Mutex<Share<'static>>,
    of: Option<Arc<Budget>>,
}

/// What is counted at once.
const COUNTED_BYTES: usize = 1 << 20;

impl Budget {
    /// Of so many bytes.
    pub fn new(limit: usize) -> Budget {
        Budget::of(limit, None)
    }

    fn of(limit: usize, of: Option<Arc<Budget>>) -> Budget {
        let share = Mutex::new(Share::new());
        Budget { limit, used: AtomicUsize::new(0), counted: AtomicUsize::new(0), share, of }
    }

    /// For a part of a query.
    pub(crate) fn part(of: &Arc<Budget>, limit: usize) -> Budget {
        Budget::of(limit, Some(of.clone()))
    }

    /// Takes some, for the rest of the query; says whether there was so much. If not, nothing is taken.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        // What does not fit is not seen by others for a moment.
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        let Ok(before) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else {
            return false;
        };
        let used = before + bytes;
        let fits = match &self.of {
            Some(of) => of.try_take(bytes),
            None => used <= self.counted.load(Ordering::Relaxed) || self.count(used),
        };
        if !fits {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// As `try_take`; without so much, the query cannot go on in this way.
    pub fn take(&self, bytes: usize) -> Result<()> {
        match self.try_take(bytes) {
            true => Ok(()),
            false => Err(Failure::GivenBack(Why::Memory)),
        }
    }

    /// Counts so many bytes, and some that may come, in the process's budget.
    fn count(&self, used: usize) -> bool {
        let mut share = self.share.lock();
        let counted = self.counted.load(Ordering::Relaxed);
        let wanted = [used.saturating_add(COUNTED_BYTES), used];
        let Some(bytes) = wanted.into_iter().find(|bytes| *bytes <= counted || share.set(*bytes)) else {
            return false;
        };
        self.counted.store(bytes.max(counted), Ordering::Relaxed);
        true
    }

    /// Gives some back.
    pub fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(of) = &self.of {
            of.release(bytes);
        }
    }

    /// What this part has taken stays so, for the rest of the query.
    pub(crate) fn keep(self) {
        self.used.store(0, Ordering::Relaxed);
    }

    /// What is left, of its own and of what it is a part of.
    pub(crate) fn room(&self) -> usize {
        let used = self.used.load(Ordering::Relaxed);
        let others = match &self.of {
            Some(of) => of.room(),
            None => {
                let counted = self.counted.load(Ordering::Relaxed).saturating_sub(used);
                counted.saturating_add(memory_left_bytes())
            }
        };
        self.limit.saturating_sub(used).min(others)
    }

    /// What an operator may hold that could go on with a temporary file: so much that something is left for those that come
    /// after it, and for what it needs itself when it reads that file.
    pub(crate) fn allowance(&self) -> usize {
        let room = self.room();
        room.saturating_sub(self.limit / 4).max(room / 2)
    }

    /// What each of so many threads may hold of a part that is read from a file, beside what is kept of what they make of it.
    pub(crate) fn limit_of_part(&self, threads: usize) -> usize {
        self.room() / 2 / threads.max(1)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if let Some(of) = &self.of {
            of.release(self.used.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_gives_back_what_it_has_taken() {
        let all = Arc::new(Budget::new(1000));
        assert!(all.try_take(100));
        let part = Budget::part(&all, 500);
        assert!(part.try_take(500) && !part.try_take(1));
        assert_eq!((all.room(), part.room()), (400, 0));
        part.release(200);
        let other = Budget::part(&all, 10_000);
        assert!(!other.try_take(601), "more than the query has");
        assert!(other.try_take(600) && !part.try_take(1));
        drop(part);
        assert_eq!(all.room(), 300);
        drop(other);
        assert_eq!(all.room(), 900);
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let all = Budget::new(100);
        assert!(all.take(101).is_err() && all.take(usize::MAX).is_err());
        assert_eq!(all.room(), 100);
        assert!(all.take(100).is_ok() && all.take(1).is_err());
    }

    #[test]
    fn something_is_left_for_those_that_come_after() {
        let all = Budget::new(1000);
        assert_eq!(all.allowance(), 750);
        assert!(all.try_take(700));
        assert_eq!(all.allowance(), 150);
        assert!(all.try_take(200));
        assert_eq!(all.allowance(), 50);
    }
}
