//! A column that a key holds behind parts of any length, or as text: the way to it.
//!
//! Keys are made by `mariadb/src/codec/key_part.h`: parts one after the other, none of which may be NULL here. Those of
//! numbers, times and BINARY have a fixed size. Texts end by themselves (`text_order.h`): level after level, each with its
//! own end. A part that sorts descending has all bits inverted.
//!
//! A path is written so (numbers are little-endian):
//!
//! ```text
//! to pass   0 size(4)              bytes
//!           1 mask unit space      a padded level; `space` has `unit` bytes, as the key has them, `mask` applied
//!           2 mask                 a level without padding
//! to take   3 mask size(4)         bytes
//!           4 mask size(4)         bytes, of which zeros at the end do not count: BINARY
//!           5 mask unit space      a padded text
//!           6 mask                 a text without padding
//! ```

/// The weight of a space has at most so many bytes.
const SPACE_MAX: usize = 8;
/// Parts of a key, times levels of a collation.
const STEPS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Bytes { size: usize, trims: bool },
    Padded { unit: usize, space: [u8; SPACE_MAX] },
    Ended,
}

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPath {
    /// What stands before, with the masks.
    before: Vec<(Step, u8)>,
    part: (Step, u8),
}

impl KeyPath {
    /// Reads what was written. `None`: it is no path.
    pub fn parse(bytes: &[u8]) -> Option<KeyPath> {
        let mut reader = Reader(bytes);
        let mut before = Vec::new();
        loop {
            let tag = reader.byte()?;
            let step = match tag {
                0 => (Step::Bytes { size: reader.size()?, trims: false }, 0),
                1 | 5 => reader.padded()?,
                2 | 6 => (Step::Ended, reader.byte()?),
                3 | 4 => {
                    let mask = reader.byte()?;
                    let size = reader.size().filter(|size| *size > 0)?;
                    (Step::Bytes { size, trims: tag == 4 }, mask)
                }
                _ => return None,
            };
            match tag {
                0..=2 if before.len() < STEPS_MAX => before.push(step),
                3.. if reader.0.is_empty() => return Some(KeyPath { before, part: step }),
                _ => return None,
            }
        }
    }

    /// Bytes of the part, if always as many; 0: they differ.
    pub fn width(&self) -> usize {
        match self.part.0 {
            Step::Bytes { size, trims: false } => size,
            _ => 0,
        }
    }

    /// Whether the key sorts the part descending.
    pub fn is_reversed(&self) -> bool {
        self.part.1 != 0
    }

    /// How many bytes of a key stand before the part. `None`: the key ends before it.
    pub fn offset(&self, key: &[u8]) -> Option<usize> {
        self.before
            .iter()
            .try_fold(0, |at, (step, mask)| Some(at + step.pass(key.get(at..)?, *mask, |_| ())?))
    }

    /// Puts the part's bytes in the place of those of `to`, as a column has them: nothing inverted, texts without what orders
    /// them. `None`: the key has no such part; `to` is undefined then.
    #[inline]
    pub fn take(&self, key: &[u8], to: &mut Vec<u8>) -> Option<()> {
        to.clear();
        let (step, mask) = &self.part;
        let rest = key.get(self.offset(key)?..)?;
        step.pass(rest, *mask, |bytes| to.extend(bytes.iter().map(|byte| byte ^ mask)))?;
        if let Step::Bytes { trims: true, .. } = step {
            to.truncate(to.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        }
        Some(())
    }
}

impl Step {
    /// How many bytes it has at the beginning of `bytes`; `take` is given those of its value, piece by piece.
    #[inline]
    fn pass(&self, bytes: &[u8], mask: u8, mut take: impl FnMut(&[u8])) -> Option<usize> {
        match self {
            Step::Bytes { size, .. } => {
                take(bytes.get(..*size)?);
                Some(*size)
            }
            // Each space is followed by how what comes compares with spaces; 2: nothing comes.
            Step::Padded { unit, space } => {
                let mut at = 0;
                loop {
                    let weight = bytes.get(at..at + unit)?;
                    at += unit;
                    if Some(weight) == space.get(..*unit) {
                        let marker = bytes.get(at)? ^ mask;
                        at += 1;
                        if marker == 2 {
                            return Some(at);
                        }
                    }
                    take(weight);
                }
            }
            // Zeros are followed by 0xff; one that 1 follows ends it.
            Step::Ended => {
                let mut at = 0;
                loop {
                    let zero = at + bytes.get(at..)?.iter().position(|byte| byte ^ mask == 0)?;
                    take(bytes.get(at..zero)?);
                    let marker = bytes.get(zero + 1)? ^ mask;
                    at = zero + 2;
                    match marker {
                        1 => return Some(at),
                        0xff => take(bytes.get(zero..=zero)?),
                        _ => return None,
                    }
                }
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn size(&mut self) -> Option<usize> {
        let (size, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*size)).ok()
    }

    fn padded(&mut self) -> Option<(Step, u8)> {
        let (mask, unit) = (self.byte()?, usize::from(self.byte()?));
        let (of_space, rest) = self.0.split_at_checked(unit)?;
        self.0 = rest;
        let mut space = [0; SPACE_MAX];
        space.get_mut(..unit).filter(|space| !space.is_empty())?.copy_from_slice(of_space);
        Some((Step::Padded { unit, space }, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &[u8], key: &[u8]) -> Option<Vec<u8>> {
        let mut part = vec![9];
        KeyPath::parse(path)?.take(key, &mut part)?;
        Some(part)
    }

    fn inverted(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| !byte).collect()
    }

    #[test]
    fn texts_are_passed_and_taken() {
        // 'a b', padded: its space is followed by how 'b' compares with spaces.
        let text = b"a \x03b \x02";
        assert_eq!(take(&[5, 0, 1, b' '], text).unwrap(), b"a b");
        assert_eq!(take(&[5, 0, 1, b' '], b" \x02").unwrap(), b"");
        // Bytes: a zero among them.
        let bytes = b"x\0\xffy\0\x01";
        assert_eq!(take(&[6, 0], bytes).unwrap(), b"x\0y");
        assert_eq!(take(&[6, 0], b"\0\x01").unwrap(), b"");
        // Both, then two levels with a space of two bytes, then four bytes.
        let key = [&text[..], bytes, b"\x01\x02\x00\x20\x02", b"\0\x01", b"1234", b"rest"].concat();
        let path = [1, 0, 1, b' ', 2, 0, 1, 0, 2, 0, 0x20, 2, 0, 3, 0, 4, 0, 0, 0];
        assert_eq!(take(&path, &key).unwrap(), b"1234");
        assert_eq!(KeyPath::parse(&path).unwrap().offset(&key), Some(key.len() - 8));
        assert_eq!(KeyPath::parse(&path).unwrap().width(), 4);
        // The same, descending.
        let mut reversed = path.to_vec();
        for (mask, space) in [(1, 3..4), (5, 0..0), (7, 9..11), (12, 0..0), (14, 0..0)] {
            reversed[mask] = 0xff;
            space.for_each(|at| reversed[at] ^= 0xff);
        }
        assert_eq!(take(&reversed, &inverted(&key)).unwrap(), b"1234");
        assert!(KeyPath::parse(&reversed).unwrap().is_reversed());
    }

    #[test]
    fn zeros_at_the_end_of_binary_do_not_count() {
        assert_eq!(take(&[4, 0, 4, 0, 0, 0], b"a\0b\0z").unwrap(), b"a\0b");
        assert_eq!(take(&[4, 0, 4, 0, 0, 0], b"\0\0\0\0").unwrap(), b"");
        assert_eq!(take(&[4, 0xff, 4, 0, 0, 0], &inverted(b"a\0b\0")).unwrap(), b"a\0b");
        assert_eq!(take(&[3, 0, 4, 0, 0, 0], b"a\0b\0z").unwrap(), b"a\0b\0");
        assert_eq!(KeyPath::parse(&[4, 0, 4, 0, 0, 0]).unwrap().width(), 0);
    }

    #[test]
    fn keys_that_end_too_early_have_no_part() {
        let path = [1, 0, 1, b' ', 2, 0, 3, 0, 2, 0, 0, 0];
        let key = b"a \x02b\0\x01xy";
        assert_eq!(take(&path, key).unwrap(), b"xy");
        for size in 0..key.len() {
            assert_eq!(take(&path, &key[..size]), None, "{size}");
        }
        assert_eq!(take(&[2, 0, 3, 0, 1, 0, 0, 0], b"a\0\x07b"), None, "no marker");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let right = [0, 4, 0, 0, 0, 1, 0, 1, b' ', 5, 0, 2, 0, b' '];
        assert!(KeyPath::parse(&right).is_some());
        for size in 0..right.len() {
            assert_eq!(KeyPath::parse(&right[..size]), None, "{size}");
        }
        assert_eq!(KeyPath::parse(&[&right[..], &[0]].concat()), None, "more follows");
        assert_eq!(KeyPath::parse(&[5, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]), None, "a long space");
        assert_eq!(KeyPath::parse(&[5, 0, 0]), None, "no space");
        assert_eq!(KeyPath::parse(&[3, 0, 0, 0, 0, 0]), None, "no bytes");
        assert_eq!(KeyPath::parse(&[7]), None);
        assert_eq!(KeyPath::parse(&[2, 0].repeat(STEPS_MAX + 1)), None, "without end");
    }
}
