//! Which of several copies of something a thread uses, so that not all processors fight over one. It is told by where the thread's stack is: a
//! thread needs no state of its own then.

/// How many copies there are.
pub(crate) const SHARDS: usize = 1 << SHARDS_BITS;
const SHARDS_BITS: u32 = 5;
/// Stacks of two threads differ in the bits above these.
const STACK_BITS: u32 = 17;

/// The number of this thread's copy.
#[inline]
pub(crate) fn of_this_thread() -> usize {
    let here = 0u8;
    let stack = (&raw const here).addr() as u64 >> STACK_BITS;
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHARDS_BITS)) as usize
}
