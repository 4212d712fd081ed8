//! Samples and what is said about them: medians, percentiles, histograms.

use serde::{Deserialize, Serialize};

/// The middle sample (the mean of the two middle ones); 0 of none.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Buckets of a histogram grow by the 32nd root of 10: a percentile is at most 7.5 per cent too high.
const BUCKETS_PER_DECADE: f64 = 32.0;
const SMALLEST_SECONDS: f64 = 1e-6;
const BUCKETS: usize = 32 * 9 + 1;

/// Durations, by logarithmic buckets from a microsecond to a thousand seconds, and exactly the longest. It takes
/// the same room for ten statements and ten billion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Number of durations.
    pub count: u64,
    /// Their sum.
    pub total_seconds: f64,
    /// The longest, exactly.
    pub longest_seconds: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, total_seconds: 0.0, longest_seconds: 0.0 }
    }
}

impl Histogram {
    /// One more duration.
    pub fn add(&mut self, seconds: f64) {
        self.counts[bucket(seconds)] += 1;
        self.count += 1;
        self.total_seconds += seconds;
        self.longest_seconds = self.longest_seconds.max(seconds);
    }

    /// All durations of another one.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.total_seconds += other.total_seconds;
        self.longest_seconds = self.longest_seconds.max(other.longest_seconds);
    }

    /// The upper bound of the bucket in which the given share (0.99) of the durations is reached, and never
    /// more than the longest.
    pub fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        if wanted >= self.count {
            return self.longest_seconds;
        }
        let mut seen = 0;
        for (number, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_seconds(number).min(self.longest_seconds);
            }
        }
        self.longest_seconds
    }

    /// Upper bound in seconds and count of each bucket, from the first with anything in it to the last.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let first = self.counts.iter().position(|&count| count > 0).unwrap_or(0);
        let end = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        (first..end).map(|number| (upper_seconds(number), self.counts[number])).collect()
    }
}

fn bucket(seconds: f64) -> usize {
    let place = (seconds.max(SMALLEST_SECONDS) / SMALLEST_SECONDS).log10() * BUCKETS_PER_DECADE;
    // The smallest bucket whose upper bound is not below; a bound computed another way may differ in its last bit.
    ((place - 1e-9).ceil() as usize).min(BUCKETS - 1)
}

fn upper_seconds(bucket: usize) -> f64 {
    SMALLEST_SECONDS * 10f64.powf(bucket as f64 / BUCKETS_PER_DECADE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn percentiles_are_within_a_bucket_of_the_truth_and_the_longest_is_exact() {
        let mut histogram = Histogram::default();
        for number in 1..=10_000 {
            histogram.add(f64::from(number) * 1e-5);
        }
        for (share, truth) in [(0.5, 0.05), (0.99, 0.099), (0.999, 0.0999)] {
            let found = histogram.percentile(share);
            assert!(found >= truth && found <= truth * 1.075, "{share}: {found} for {truth}");
        }
        assert_eq!(histogram.percentile(1.0), 0.1);
        assert_eq!(histogram.longest_seconds, 0.1);
    }

    #[test]
    fn every_duration_is_in_the_bucket_that_bounds_it() {
        for bucket_number in 0..BUCKETS - 1 {
            let bound = upper_seconds(bucket_number);
            assert_eq!(bucket(bound), bucket_number);
            assert_eq!(bucket(bound * 1.01), bucket_number + 1);
        }
        assert_eq!(bucket(1e9), BUCKETS - 1);
        assert_eq!(bucket(0.0), 0);
    }

    #[test]
    fn merging_is_as_if_one_had_seen_all() {
        let (mut one, mut two, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for number in 1..100 {
            let seconds = f64::from(number) * 0.25;
            if number % 3 == 0 { &mut one } else { &mut two }.add(seconds);
            both.add(seconds);
        }
        one.merge(&two);
        assert_eq!(one, both);
        assert_eq!(one.buckets().iter().map(|(_, count)| count).sum::<u64>(), 99);
    }
}
