//! Random numbers: quick, and the same everywhere (SplitMix64, Steele, Lea, Flood 2014).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The stream of one block of one table: independent of those of its neighbours.
    pub fn of_block(seed: u64, table: &str, block: u64) -> Random {
        // FNV-1a of the name; then mixed with seed and block as random numbers, not as neighbours.
        let name = table.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut stream = Random(seed ^ name);
        let start = stream.next();
        Random(start ^ Random(block).next())
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "a stream without an end is no use as an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// 0 to `bound` - 1, evenly (up to a bias of bound/2^64).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// `low` to `high`, both included, evenly.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// True in `part` of `whole` cases.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// One of them, evenly.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_published_algorithm() {
        let mut random = Random::new(1_234_567);
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.next(), random.next(), random.next()], published);
    }

    #[test]
    fn numbers_are_within_their_bounds_and_reach_both_ends() {
        let mut random = Random::new(7);
        let drawn: Vec<i64> = (0..1000).map(|_| random.between(-2, 2)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-2), Some(&2)));
        assert!((0..1000).filter(|_| random.chance(1, 4)).count().abs_diff(250) < 60);
    }

    #[test]
    fn blocks_tables_and_seeds_have_streams_of_their_own() {
        let mut firsts: Vec<u64> = Vec::new();
        for seed in 0..4 {
            for table in ["a", "b"] {
                firsts.extend((0..8).map(|block| Random::of_block(seed, table, block).next()));
            }
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 4 * 2 * 8);
    }
}
