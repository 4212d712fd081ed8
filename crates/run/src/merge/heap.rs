//! The binary heap of a merge: which of its inputs is next. The one that merges keeps the places in a list of its own
//! and says how two of them compare.

/// A list of inputs that is a heap: what is at a place comes before what is at places `2i + 1` and `2i + 2`.
pub trait MergeHeap {
    /// How many inputs are in the heap.
    fn heap_len(&self) -> usize;

    /// Whether the input at place `a` comes before that at place `b`.
    fn is_before(&self, a: usize, b: usize) -> bool;

    /// Exchanges the inputs at two places.
    fn swap_places(&mut self, a: usize, b: usize);

    /// Makes a heap of a list in any order.
    fn heapify(&mut self) {
        for at in (0..self.heap_len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Moves the input at place `at`, which may come later than those below it, down to where it belongs.
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap_len() {
                return;
            }
            let child = if right < self.heap_len() && self.is_before(right, left) { right } else { left };
            if self.is_before(at, child) {
                return;
            }
            self.swap_places(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(Vec<u32>);

    impl MergeHeap for Numbers {
        fn heap_len(&self) -> usize {
            self.0.len()
        }

        fn is_before(&self, a: usize, b: usize) -> bool {
            self.0[a] < self.0[b]
        }

        fn swap_places(&mut self, a: usize, b: usize) {
            self.0.swap(a, b);
        }
    }

    #[test]
    fn inputs_come_in_order_whatever_order_they_were_in() {
        for count in 0..40 {
            let mut heap = Numbers((0..count).map(|n| n * 7919 % 41).collect());
            let mut expected = heap.0.clone();
            expected.sort_unstable();
            heap.heapify();
            let mut found = Vec::new();
            while !heap.0.is_empty() {
                found.push(heap.0.swap_remove(0));
                if heap.0.len() > 1 {
                    heap.sift_down(0);
                }
            }
            assert_eq!(found, expected);
        }
    }
}
