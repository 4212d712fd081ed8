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
}
