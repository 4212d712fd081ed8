//! Which neighbours among the runs of a buffer are merged.

use std::ops::Range;

use crate::node::BufferRun;

/// Fewest runs worth merging when there are many.
const WINDOW_MIN: usize = 4;

/// The neighbours whose merge costs least per run it saves. Runs of similar size go together by
/// themselves: one large one would make the window dear.
pub(crate) fn merge_window(buffer: &[BufferRun]) -> Range<usize> {
    let sizes: Vec<u64> = buffer.iter().map(|run| run.run.meta().raw_bytes).collect();
    cheapest_window(&sizes)
}

fn cheapest_window(sizes: &[u64]) -> Range<usize> {
    let count = sizes.len();
    let min = WINDOW_MIN.min(count / 2).max(2).min(count);
    let mut best = (u64::MAX, 0..count);
    for start in 0..count {
        let mut sum = 0u64;
        for end in start + 1..=count {
            sum += sizes[end - 1].max(1);
            let length = end - start;
            if length >= min {
                // In thousandths, and the longer one if equal.
                let cost = sum.saturating_mul(1000) / (length as u64 - 1).max(1);
                if cost <= best.0 {
                    best = (cost, start..end);
                }
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_similar_size_are_merged_and_a_large_one_left_alone() {
        assert_eq!(cheapest_window(&[10, 10, 10, 10, 10, 10, 10, 10, 1000]), 0..8);
        assert_eq!(cheapest_window(&[10, 10, 10, 10, 10, 10]), 0..6);
        assert_eq!(cheapest_window(&[10, 10]), 0..2);
        assert_eq!(cheapest_window(&[5]), 0..1);
        assert_eq!(cheapest_window(&[1000, 1, 1, 1, 1, 1, 1, 1, 1, 1000, 1000, 1000]), 1..9);
    }
}
