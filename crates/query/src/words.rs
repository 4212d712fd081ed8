//! Values of one width, one after the other, read as words of eight bytes: each with its neighbours, which are then dropped. Several at a time, whose places the
//! compiler knows.

/// Values that are read together.
const AT_ONCE: usize = 8;

/// A number of each little-endian value; what `value` is given has the bytes of the values behind it, too.
pub(crate) fn le_words<const W: usize>(bytes: &[u8], value: impl Fn(u64) -> i64) -> Vec<i64> {
    let mut values = vec![0; bytes.len() / W];
    let whole = bytes.len().saturating_sub(8) / (AT_ONCE * W) * AT_ONCE;
    let (begin, end) = values.split_at_mut(whole);
    for (number, eight) in begin.chunks_exact_mut(AT_ONCE).enumerate() {
        let these = &bytes[number * AT_ONCE * W..][..AT_ONCE * W + 8];
        for (at, to) in eight.iter_mut().enumerate() {
            *to = value(u64::from_le_bytes(word_at(these, at * W)));
        }
    }
    for (to, last) in end.iter_mut().zip(bytes[whole * W..].chunks_exact(W)) {
        let mut word = [0; 8];
        word[..W].copy_from_slice(last);
        *to = value(u64::from_le_bytes(word));
    }
    values
}

/// A number of each big-endian value of up to eight bytes, which is a word with zeros before it.
#[inline]
pub(crate) fn be_words(bytes: &[u8], width: usize, value: impl Fn(u64) -> i64) -> Vec<i64> {
    macro_rules! of_width {
        ($($w:literal)*) => {
            match width {
                $($w => be_words_of::<$w>(bytes, value),)*
                _ => Vec::new(),
            }
        };
    }
    of_width!(1 2 3 4 5 6 7 8)
}

fn be_words_of<const W: usize>(bytes: &[u8], value: impl Fn(u64) -> i64) -> Vec<i64> {
    let mut values = vec![0; bytes.len() / W];
    // Before the first ones there are no eight bytes.
    let first = (8usize.div_ceil(W) - 1).min(values.len());
    let (begin, rest) = values.split_at_mut(first);
    for (to, bytes) in begin.iter_mut().zip(bytes.chunks_exact(W)) {
        *to = value(alone(bytes));
    }
    let mut eights = rest.chunks_exact_mut(AT_ONCE);
    let mut row = first;
    for eight in &mut eights {
        let these = &bytes[(row + 1) * W - 8..][..AT_ONCE * W + 8 - W];
        for (at, to) in eight.iter_mut().enumerate() {
            *to = value(u64::from_be_bytes(word_at(these, at * W)) & (u64::MAX >> (64 - 8 * W)));
        }
        row += AT_ONCE;
    }
    for (to, bytes) in eights.into_remainder().iter_mut().zip(bytes[row * W..].chunks_exact(W)) {
        *to = value(alone(bytes));
    }
    values
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> [u8; 8] {
    *bytes[at..].first_chunk().expect("eight bytes from each of these on")
}

fn alone(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every width, and numbers of rows around those that are read together.
    #[test]
    fn words_are_those_of_the_values_alone() {
        let bytes: Vec<u8> = (0..8 * 40u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        for (width, rows) in (1..=8).flat_map(|width| (0..40).map(move |rows| (width, rows))) {
            let bytes = &bytes[..width * rows];
            let expected: Vec<i64> = bytes.chunks_exact(width).map(|value| alone(value) as i64).collect();
            assert_eq!(be_words(bytes, width, |word| word as i64), expected, "{rows} rows of {width} bytes");
        }
    }
}
