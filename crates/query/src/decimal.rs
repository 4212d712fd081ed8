//! DECIMAL as the server stores it: groups of nine digits in four bytes, fewer in fewer, the digits before the point
//! and those behind it apart; the first bit inverted, all bits of a negative number inverted.

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

/// A DECIMAL of at most 18 digits: a number of 64 bits, however it is stored.
#[derive(Debug)]
pub(crate) struct SmallShape {
    /// Of each group its bytes, and what the number before it is multiplied by.
    groups: Vec<(usize, i64)>,
    bytes: usize,
}

impl SmallShape {
    /// `None`: too many digits.
    pub(crate) fn new(precision: u32, scale: u32) -> Option<SmallShape> {
        if precision > 18 || scale > precision {
            return None;
        }
        let (before, behind) = ((precision - scale) as usize, scale as usize);
        let whole = before / DIGITS_IN_GROUP + behind / DIGITS_IN_GROUP;
        let digits = std::iter::once(before % DIGITS_IN_GROUP)
            .chain(std::iter::repeat_n(DIGITS_IN_GROUP, whole))
            .chain(std::iter::once(behind % DIGITS_IN_GROUP));
        let groups =
            digits.filter(|digits| *digits > 0).map(|n| (BYTES_OF_DIGITS[n], 10i64.pow(n as u32))).collect();
        Some(SmallShape { groups, bytes: size(precision, scale) })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number; of bytes that are none, any.
    #[inline]
    pub(crate) fn decode(&self, bytes: &[u8]) -> i64 {
        let is_negative = bytes[0] & 0x80 == 0;
        let mask = if is_negative { 0xff } else { 0 };
        let (mut value, mut rest, mut flip) = (0i64, bytes, 0x80);
        for (size, unit) in &self.groups {
            let (group, after) = rest.split_at(*size);
            let number = group.iter().fold(0i64, |number, byte| {
                let digit = byte ^ mask ^ flip;
                flip = 0;
                number << 8 | i64::from(digit)
            });
            value = value.wrapping_mul(*unit).wrapping_add(number);
            rest = after;
        }
        if is_negative {
            value.wrapping_neg()
        } else {
            value
        }
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
        assert_eq!(shape.decode(&bytes), 12_345_678_901_234);
        assert_eq!(shape.decode(&negative), -12_345_678_901_234);
        for (precision, scale, bytes) in
            [(5, 2, &[0x83, 0xe7, 99][..]), (9, 9, &[0x80, 0, 0, 7]), (1, 1, &[0x7a])]
        {
            let shape = SmallShape::new(precision, scale).unwrap();
            assert_eq!(Some(i128::from(shape.decode(bytes))), decode(bytes, precision, scale));
            assert_eq!(shape.bytes(), bytes.len());
        }
        assert!(SmallShape::new(19, 0).is_none());
    }
}
