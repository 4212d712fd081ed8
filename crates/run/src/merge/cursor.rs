//! Several runs as one sorted sequence.
//!
//! The inputs that still have records are in a binary heap by their current record. A step moves the top
//! input on and sifts it down: while one input has the smallest records for long, that is a comparison or
//! two each, and with one input left there is none. The heap has the beginnings of their keys as numbers, after what all keys of the
//! merge begin with, so that nearly all comparisons are of two numbers.

use std::cmp::Ordering;

use pando_base::{compare_versions, key_head, shared_prefix, RecordRef, Result};

use crate::cursor::RunCursor;
use crate::merge::heap::MergeHeap;

/// Yields the records of its inputs within `[lo, hi)` in the order of `compare_versions`. Forward only.
/// The same version in several inputs (a commit that adopted runs wrote the key more than once) comes
/// from the first of them first: the newest input.
#[derive(Debug)]
pub struct MergeCursor {
    inputs: Vec<RunCursor>,
    /// The inputs that are on a record, as a heap: the record of the input at place i is
    /// before those of the inputs at places 2i + 1 and 2i + 2.
    heap: Vec<Top>,
    /// Length of what all keys of the merge begin with.
    shared: usize,
}

/// An input that is on a record, and the beginning of that.
#[derive(Clone, Copy, Debug)]
struct Top {
    /// The eight bytes of the record's key after what all begin with.
    head: u64,
    /// Number of the input.
    input: usize,
}

impl MergeCursor {
    /// Goes to the first record. Inputs are cursors in any position, newest first.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn new(mut inputs: Vec<RunCursor>, lo: Option<Vec<u8>>, hi: Option<Vec<u8>>) -> Result<MergeCursor> {
        let mut heap = Vec::with_capacity(inputs.len());
        for (number, input) in inputs.iter_mut().enumerate() {
            input.clip(hi.clone())?;
            match &lo {
                Some(lo) => input.seek(lo)?,
                None => input.seek_first()?,
            }
            if input.valid() {
                heap.push(Top { head: 0, input: number });
            }
        }
        let mut merge = MergeCursor { inputs, heap, shared: 0 };
        merge.shared = merge.shared_by_all(hi.as_deref());
        for at in 0..merge.heap.len() {
            merge.heap[at].head = merge.head_of(merge.heap[at].input);
        }
        merge.heapify();
        Ok(merge)
    }

    /// Whether it is on a record.
    #[inline]
    pub fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    /// The record it is on. Panics if there is none.
    #[inline]
    pub fn record(&self) -> RecordRef<'_> {
        self.inputs[self.heap[0].input].record()
    }

    /// Goes to the next record. Panics if it is on none.
    ///
    /// # Errors
    /// Those of reading blocks; the cursor can only be dropped then.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor step, which may fail and gives no item")]
    pub fn next(&mut self) -> Result<()> {
        let input = self.heap[0].input;
        self.inputs[input].next()?;
        if !self.inputs[input].valid() {
            self.heap.swap_remove(0);
        } else if self.heap.len() > 1 {
            self.heap[0].head = self.head_of(input);
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
        Ok(())
    }

    /// How many bytes the keys to come have in common at least: those of the smallest and of one that is above them all.
    fn shared_by_all(&self, hi: Option<&[u8]>) -> usize {
        let inputs = self.heap.iter().map(|top| &self.inputs[top.input]);
        let smallest = inputs.clone().map(RunCursor::key).min();
        let largest = inputs.map(RunCursor::largest_key).max();
        let above = hi.filter(|hi| largest.is_some_and(|largest| *hi <= largest)).or(largest);
        smallest.zip(above).map_or(0, |(smallest, above)| shared_prefix(smallest, above))
    }

    #[inline]
    fn head_of(&self, input: usize) -> u64 {
        key_head(self.inputs[input].key().get(self.shared..).unwrap_or_default())
    }

    fn is_record_before(&self, a: usize, b: usize) -> bool {
        let (first, second) = (self.inputs[a].record(), self.inputs[b].record());
        let order = compare_versions((first.key, first.seqno), (second.key, second.seqno));
        order.then(a.cmp(&b)) == Ordering::Less
    }
}

impl MergeHeap for MergeCursor {
    #[inline]
    fn heap_len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        a.head < b.head || (a.head == b.head && self.is_record_before(a.input, b.input))
    }

    #[inline]
    fn swap_places(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
    }
}
