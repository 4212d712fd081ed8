//! Mutants of valid bytes: what a disk, a bug or somebody with a purpose might make of them.

use rand::seq::IndexedRandom;
use rand::Rng;

/// Longer mutants are cut.
const BYTES_MAX: usize = 1 << 18;

/// A mutant of one of `seeds`, perhaps with parts of others.
pub fn mutant(seeds: &[Vec<u8>], rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = seeds.choose(rng).cloned().unwrap_or_default();
    // Mostly few changes: what is wrong in one place only gets furthest.
    let changes = *[1, 1, 1, 2, 2, 3, 5, 9].choose(rng).unwrap_or(&1);
    for _ in 0..changes {
        change(&mut bytes, seeds, rng);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut impl Rng) {
    let len = bytes.len();
    if len == 0 {
        bytes.extend((0..rng.random_range(0..40)).map(|_| rng.random::<u8>()));
        return;
    }
    let at = place(len, rng);
    match rng.random_range(0..12) {
        0 | 1 => bytes[at] ^= 1 << rng.random_range(0..8),
        2 => bytes[at] = rng.random(),
        3 => bytes[at] = bytes[at].wrapping_add(*[1, 0xff, 2, 0x80].choose(rng).unwrap_or(&1)),
        4 | 5 => overwrite(bytes, at, &number(len, rng)),
        6 => bytes.truncate(at),
        7 => {
            let end = (at + 1 + rng.random_range(0..16)).min(len);
            bytes.drain(at..end);
        }
        8 => {
            let end = (at + 1 + rng.random_range(0..64)).min(len);
            let copy = bytes[at..end].to_vec();
            let to = rng.random_range(0..=len);
            bytes.splice(to..to, copy);
        }
        9 => {
            let noise: Vec<u8> = (0..rng.random_range(1..16)).map(|_| rng.random()).collect();
            bytes.splice(at..at, noise);
        }
        10 => overwrite(bytes, at, &varint(rng)),
        _ => {
            // The begin of this one and the end of another.
            let other = seeds.choose(rng).cloned().unwrap_or_default();
            let from = place(other.len().max(1), rng).min(other.len());
            let to = (at + other.len() - from).min(len);
            match rng.random::<bool>() {
                true => overwrite(bytes, at, &other[from..]),
                false => drop(bytes.splice(at..to.max(at), other[from..].iter().copied())),
            }
        }
    }
}

/// Anywhere, but more often near the begin, where headers are.
fn place(len: usize, rng: &mut impl Rng) -> usize {
    match rng.random_range(0..4) {
        0 => rng.random_range(0..len.min(48)),
        _ => rng.random_range(0..len),
    }
}

/// Does not make the bytes longer.
fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes[at..].iter_mut().zip(with).for_each(|(byte, of)| *byte = *of);
}

/// A number that lengths, counts and places like least, in 2, 4 or 8 bytes.
fn number(len: usize, rng: &mut impl Rng) -> Vec<u8> {
    let len = len as u64;
    let odd = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 63, u64::MAX];
    let n = match rng.random_range(0..4) {
        0 => len.wrapping_add(rng.random_range(0..5)).wrapping_sub(2),
        1 => 1 << rng.random_range(0..64),
        2 => rng.random_range(0..64),
        _ => *odd.choose(rng).unwrap_or(&0),
    };
    let width = *[2, 4, 4, 8, 8].choose(rng).unwrap_or(&4);
    let bytes = n.to_le_bytes();
    match rng.random_range(0..8) {
        0 => bytes[..width].iter().rev().copied().collect(),
        _ => bytes[..width].to_vec(),
    }
}

/// A long number in 7-bit groups.
fn varint(rng: &mut impl Rng) -> Vec<u8> {
    let groups = rng.random_range(1..11);
    let mut bytes = vec![0xff; groups];
    bytes[groups - 1] = *[0, 1, 0x7f].choose(rng).unwrap_or(&0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn mutants_differ_and_are_the_same_for_the_same_seed() {
        let seeds = [b"some valid bytes, which are of one kind".to_vec(), vec![7; 100], Vec::new()];
        let mutants = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            (0..2000).map(|_| mutant(&seeds, &mut rng)).collect::<Vec<_>>()
        };
        let mut all = mutants(1);
        assert_eq!(all, mutants(1));
        assert_ne!(all, mutants(2));
        assert!(all.iter().any(|bytes| bytes.len() > 110) && all.iter().any(Vec::is_empty));
        all.sort();
        all.dedup();
        assert!(all.len() > 1500, "{} different ones of 2000", all.len());
    }
}
