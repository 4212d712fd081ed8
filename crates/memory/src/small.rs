//! What small allocations take together. They are far too many for one counter, so each thread counts in one of several (`shard`).

use std::sync::atomic::{AtomicI64, Ordering};

use crate::shard::{of_this_thread, SHARDS};

use crate::footprint;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Small([Sum; SHARDS]);

/// What threads have taken less what they have given back, which may be less than nothing: only all sums together say something.
#[derive(Debug)]
#[repr(align(64))]
struct Sum(AtomicI64);

impl Small {
    pub(crate) const fn new() -> Small {
        Small([const { Sum(AtomicI64::new(0)) }; SHARDS])
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.mine().fetch_add(footprint(bytes) as i64, Ordering::Relaxed);
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.mine().fetch_sub(footprint(bytes) as i64, Ordering::Relaxed);
    }

    fn mine(&self) -> &AtomicI64 {
        &self.0[of_this_thread()].0
    }

    /// While others allocate, this is true of no single moment.
    pub(crate) fn bytes(&self) -> u64 {
        let sum: i64 = self.0.iter().map(|each| each.0.load(Ordering::Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }
}
