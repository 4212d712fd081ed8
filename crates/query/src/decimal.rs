//! DECIMAL as the server stores it: groups of nine digits in four bytes, fewer in fewer, the digits before the point
//! and those behind it apart; the first bit inverted, all bits of a negative number inverted.

use crate::words::be_words;

const DIGITS_IN_GROUP: usize = 9;
const GROUP_BYTES: usize = 4;
/// Bytes of a group of so many digits.
const BYTES_OF_DIGITS: [usize; DIGITS_IN_GROUP + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Most digits that are computed with: sums of as many rows as there may be stay within 128 bits, or the overflow is
/// noticed.
pub const PRECISION_MAX: u32 = 36;

/// A number of `precision` digits, `scale` of them behind the point, times ten to the power of `scale`. `None`: the bytes
/// are not those of one.
pub(crate) fn decode(bytes: &[u8], precision: u32, scale: u32) -> Option<i128> {
    let before = precision.checked_sub(scale)? as usize;
    let behind = scale as usize;
    let is_negative = bytes.first()? & 0x80 == 0;
    let mask = if is_negative { 0xff } else { 0 };
    let mut at = 0;
    let mut value: i128 = 0;
    let mut take = |digits: usize| -> Option<()> {
        let size = BYTES_OF_DIGITS[digits];
        let mut group: i128 = 0;
        for byte in bytes.get(at..at + size)? {
            group = group << 8 | i128::from(byte ^ mask ^ if at == 0 { 0x80 } else { 0 });
            at += 1;
        }
        value = value.checked_mul(10i128.pow(digits as u32))?.checked_add(group)?;
        Some(())
    };
    take(before % DIGITS_IN_GROUP)?;
    for _ in 0..before / DIGITS_IN_GROUP + behind / DIGITS_IN_GROUP {
        take(DIGITS_IN_GROUP)?;
    }
    take(behind % DIGITS_IN_GROUP)?;
    (at == bytes.len()).then_some(if is_negative { -value } else { value })
}

/// What eighteen digits have at most: two before the point and two behind it.
const GROUPS_MAX: usize = 4;

/// A DECIMAL of at most 18 digits: a number of 64 bits, however it is stored.
#[derive(Debug)]
pub(crate) struct SmallShape {
    /// Of each group: how far from the right it is, which bits it has, and what its number counts.
    groups: [(u32, u64, i64); GROUPS_MAX],
    count: usize,
    bytes: usize,
}

impl SmallShape {
    /// `None`: too many digits, or bytes.
    pub(crate) fn new(precision: u32, scale: u32) -> Option<SmallShape> {
        let bytes = size(precision, scale);
        if precision > 18 || scale > precision || bytes > 8 {
            return None;
        }
        let (before, behind) = ((precision - scale) as usize, scale as usize);
        let whole = before / DIGITS_IN_GROUP + behind / DIGITS_IN_GROUP;
        let digits_from_right = std::iter::once(behind % DIGITS_IN_GROUP)
            .chain(std::iter::repeat_n(DIGITS_IN_GROUP, whole))
            .chain(std::iter::once(before % DIGITS_IN_GROUP))
            .filter(|digits| *digits > 0);
        let mut shape = SmallShape { groups: Default::default(), count: 0, bytes };
        let (mut shift, mut unit) = (0, 1i64);
        for digits in digits_from_right {
            let bits = 8 * BYTES_OF_DIGITS[digits] as u32;
            *shape.groups.get_mut(shape.count)? = (shift, (1 << bits) - 1, unit);
            shape.count += 1;
            shift += bits;
            unit = unit.saturating_mul(10i64.pow(digits as u32));
        }
        Some(shape)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The numbers of values, one after the other; of bytes that are none, any.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Vec<i64> {
        match &self.groups[..self.count] {
            [a] => self.decode_groups([*a], bytes),
            [a, b] => self.decode_groups([*a, *b], bytes),
            [a, b, c] => self.decode_groups([*a, *b, *c], bytes),
            groups => be_words(bytes, self.bytes, |word| self.decode_one(groups, word)),
        }
    }

    fn decode_groups<const N: usize>(&self, groups: [(u32, u64, i64); N], bytes: &[u8]) -> Vec<i64> {
        be_words(bytes, self.bytes, |word| self.decode_one(&groups, word))
    }

    #[inline(always)]
    fn decode_one(&self, groups: &[(u32, u64, i64)], word: u64) -> i64 {
        let sign = 1u64 << (8 * self.bytes - 1);
        // All bits of a negative number are inverted, and the first one of all numbers.
        let negative = ((word & sign) >> (8 * self.bytes - 1)) as i64 - 1;
        let word = word ^ sign ^ (negative as u64 & (u64::MAX >> (64 - 8 * self.bytes)));
        let value = groups.iter().fold(0i64, |value, (shift, bits, unit)| {
            value.wrapping_add(((word >> shift & bits) as i64).wrapping_mul(*unit))
        });
        (value ^ negative).wrapping_sub(negative)
    }
}

/// Bytes of a number with so many digits.
pub fn size(precision: u32, scale: u32) -> usize {
    let part =
        |digits: usize| digits / DIGITS_IN_GROUP * GROUP_BYTES + BYTES_OF_DIGITS[digits % DIGITS_IN_GROUP];
    part((precision - scale) as usize) + part(scale as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_servers_manual_are_read() {
        // 1234567890.1234 as DECIMAL(14,4)
        let bytes = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(decode(&bytes, 14, 4), Some(12_345_678_901_234));
        let negative: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        assert_eq!(decode(&negative, 14, 4), Some(-12_345_678_901_234));
        assert_eq!(size(14, 4), 7);
        assert_eq!(decode(&bytes[..6], 14, 4), None);
        assert_eq!(decode(&[0x80], 2, 0), Some(0));
        assert_eq!(decode(&[0x80, 0x05], 1, 1), None, "too many bytes");
        assert_eq!(decode(&[0x85], 1, 1), Some(5));
    }

    #[test]
    fn small_numbers_are_read_as_all_are() {
        let bytes = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        let negative: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let shape = SmallShape::new(14, 4).unwrap();
        assert_eq!(
            shape.decode(&[bytes.as_slice(), &negative].concat()),
            [12_345_678_901_234, -12_345_678_901_234]
        );
        for (precision, scale, bytes) in
            [(5, 2, &[0x83, 0xe7, 99][..]), (9, 9, &[0x80, 0, 0, 7]), (1, 1, &[0x7a])]
        {
            let shape = SmallShape::new(precision, scale).unwrap();
            let value = shape.decode(bytes)[0];
            assert_eq!(Some(i128::from(value)), decode(bytes, precision, scale));
            assert_eq!(shape.bytes(), bytes.len());
        }
        assert!(SmallShape::new(19, 0).is_none());
    }
}
