//! What small allocations take together. They are far too many for one counter, which all processors would fight over, so each thread
//! counts in one of several. Which one is told by where its stack is: a thread needs no state of its own then.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::footprint;

const SUMS: usize = 1 << SUMS_BITS;
const SUMS_BITS: u32 = 5;
/// Stacks of two threads differ in the bits above these.
const STACK_BITS: u32 = 17;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Small([Sum; SUMS]);

/// What threads have taken less what they have given back, which may be less than nothing: only all sums together say something.
#[derive(Debug)]
#[repr(align(64))]
struct Sum(AtomicI64);

impl Small {
    pub(crate) const fn new() -> Small {
        Small([const { Sum(AtomicI64::new(0)) }; SUMS])
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.mine().fetch_add(footprint(bytes) as i64, Ordering::Relaxed);
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.mine().fetch_sub(footprint(bytes) as i64, Ordering::Relaxed);
    }

    fn mine(&self) -> &AtomicI64 {
        let here = 0u8;
        let stack = (&raw const here).addr() as u64 >> STACK_BITS;
        let mixed = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SUMS_BITS);
        &self.0[mixed as usize].0
    }

    /// While others allocate, this is true of no single moment.
    pub(crate) fn bytes(&self) -> u64 {
        let sum: i64 = self.0.iter().map(|each| each.0.load(Ordering::Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }
}
