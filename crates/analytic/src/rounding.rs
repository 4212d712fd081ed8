//! How far apart two sums of the same DOUBLEs may lie that were added up in different orders.
//!
//! The last digits of such a sum are those of a plan: which key the rows came by, which table a join began with. What is said of
//! a sum by comparing it, rounding it or sorting by it is the same in every plan if it is said of all numbers this far around it.
//!
//! Where all numbers are multiples of one power of two, and their magnitudes add up to less than 2^53 of these, each sum on the way
//! is a DOUBLE: then all orders come to the same, exactly (integers, prices in quarters). Else the errors of n additions
//! add up like a random walk: to at most `WALK` times the square root of n units in the last place of all magnitudes, with a
//! probability of 1 - 2 exp(-WALK^2 / 2) (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci.
//! Comput. 41(5), 2019). That holds for errors without a bias. Equal numbers have one; so how far the sum in the order of rows is
//! from the exact one counts several times, too. The exact one is Neumaier's ("Rundungsfehleranalyse einiger Verfahren zur Summation
//! endlicher Summen", ZAMM 54, 1974).

/// Of the random walk: see the head of this file.
const WALK: f64 = 8.0;
/// Two sums lie on both sides of the exact one.
const SIDES: f64 = 2.0;
/// How often the distance counts that was met.
const MET: f64 = 4.0;
/// Half a unit in the last place of 1.
const UNIT: f64 = f64::EPSILON / 2.0;
/// Bits of a DOUBLE's number.
const BITS: i32 = f64::MANTISSA_DIGITS as i32;

/// What is known of the DOUBLEs so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounding {
    count: u64,
    /// The sum of their magnitudes.
    magnitude: f64,
    /// Their sum, one after the other.
    sum: f64,
    /// Neumaier's, and what was lost of it on the way.
    exact: f64,
    lost: f64,
    /// All are multiples of two to the power of this.
    step: i32,
}

impl Default for Rounding {
    fn default() -> Rounding {
        Rounding { count: 0, magnitude: 0.0, sum: 0.0, exact: 0.0, lost: 0.0, step: i32::MAX }
    }
}

impl Rounding {
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.magnitude += value.abs();
        self.sum += value;
        self.add_exactly(value);
        self.step = self.step.min(step_of(value));
    }

    fn add_exactly(&mut self, value: f64) {
        let sum = self.exact + value;
        self.lost += if self.exact.abs() >= value.abs() {
            (self.exact - sum) + value
        } else {
            (value - sum) + self.exact
        };
        self.exact = sum;
    }

    pub(crate) fn merge(&mut self, other: &Rounding) {
        self.count += other.count;
        self.magnitude += other.magnitude;
        self.sum += other.sum;
        self.add_exactly(other.exact);
        self.lost += other.lost;
        self.step = self.step.min(other.step);
    }

    /// Of the sum of all; `None`: there is no number.
    pub(crate) fn of_sum(&self) -> Option<f64> {
        (self.count > 0).then(|| {
            if self.count == 1 || self.is_exact() {
                return 0.0;
            }
            let met = (self.sum - (self.exact + self.lost)).abs();
            SIDES * (MET * met + WALK * (self.count as f64).sqrt() * UNIT * self.magnitude)
        })
    }

    /// Of their mean, which is rounded once more.
    pub(crate) fn of_mean(&self) -> Option<f64> {
        let of_sum = self.of_sum()?;
        let count = self.count as f64;
        Some(if of_sum == 0.0 { 0.0 } else { of_sum / count + (self.sum / count).abs() * f64::EPSILON })
    }

    fn is_exact(&self) -> bool {
        self.step == i32::MAX || self.magnitude < 2f64.powi(self.step.saturating_add(BITS))
    }
}

/// The largest power of two that it is a multiple of; of 0 there is none.
fn step_of(value: f64) -> i32 {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    match (exponent, fraction) {
        (0, 0) => i32::MAX,
        (0, fraction) => fraction.trailing_zeros() as i32 - 1074,
        (exponent, fraction) => (fraction | 1 << 52).trailing_zeros() as i32 + exponent - 1075,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Rounding {
        let mut all = Rounding::default();
        values.iter().for_each(|value| all.add(*value));
        all
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn numbers_are_multiples_of_their_steps() {
        assert_eq!([1.0, 6.0, 0.75, -96.0, 0.0].map(step_of), [0, 1, -2, 5, i32::MAX]);
        assert_eq!(
            [f64::MIN_POSITIVE, f64::from_bits(1), f64::from_bits(12)].map(step_of),
            [-1022, -1074, -1072]
        );
        let step = step_of(0.1);
        assert!((0.1 / 2f64.powi(step)).fract() == 0.0 && (0.1 / 2f64.powi(step + 1)).fract() != 0.0);
    }

    #[test]
    fn sums_that_all_orders_come_to_are_exact() {
        for values in [vec![0.1], vec![1.0, 2.0, 1e15], vec![0.25, -17.5, 3.75], vec![0.0, 0.0], vec![]] {
            assert!(of(&values).of_sum().unwrap_or(0.0) == 0.0, "{values:?}");
        }
        assert!(of(&[0.1, 0.2]).of_sum() > Some(0.0));
        assert!(of(&[1.0, 1e16]).of_sum() > Some(0.0));
        assert_eq!((of(&[]).of_sum(), of(&[]).of_mean()), (None, None));
        assert_eq!(of(&[1.0, 2.0]).of_mean(), Some(0.0));
    }

    /// Sums of many kinds of numbers, in their order, backwards, sorted, shuffled, in pieces: none lies further from another than is said.
    #[test]
    fn no_order_comes_to_a_sum_farther_away() {
        let mut state = 7;
        for round in 0..400 {
            let count = 1 + random(&mut state) as usize % 3000;
            let kind = round % 5;
            let mut values: Vec<f64> = (0..count)
                .map(|at| {
                    let one = random(&mut state) as f64 / (1u64 << 31) as f64;
                    match kind {
                        0 => 0.1,
                        1 => one * 20.0 - 10.0,
                        2 => (one * 30.0).exp(),
                        3 => (random(&mut state) % 1000) as f64 / 100.0,
                        _ => (1.0 + at as f64).recip() * if at % 2 == 0 { 1.0 } else { -1.0 },
                    }
                })
                .collect();
            let mut all = Rounding::default();
            for piece in values.chunks(1 + count / 3) {
                all.merge(&of(piece));
            }
            assert_eq!(all.count, count as u64);
            let error = all.of_sum().unwrap().min(of(&values).of_sum().unwrap());
            let sum = |values: &[f64]| values.iter().sum::<f64>();
            let mut sums = vec![sum(&values), values.chunks(7).map(sum).sum()];
            values.reverse();
            sums.push(sum(&values));
            for _ in 0..10 {
                for at in (1..count).rev() {
                    values.swap(at, random(&mut state) as usize % (at + 1));
                }
                sums.push(sum(&values));
            }
            values.sort_by(f64::total_cmp);
            sums.push(sum(&values));
            let (least, most) =
                sums.iter().fold((f64::MAX, f64::MIN), |(a, b), sum| (a.min(*sum), b.max(*sum)));
            assert!(most - least <= error, "{kind}: {count} numbers, {least} to {most}, {error}");
        }
    }
}
