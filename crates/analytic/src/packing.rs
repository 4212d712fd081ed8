//! How the storage packs moments with a clock, and how they are compared.

/// Bits of microseconds in a packed moment.
const MICRO_BITS: u32 = 24;

/// See the head of this file: five bytes of date and clock, or three of clock, and up to three of digits behind the seconds.
pub(crate) struct Packing {
    /// What zero is stored as.
    offset: i128,
    /// Bits of the digits behind the seconds.
    bits: u32,
    /// Microseconds of one of these.
    unit: i64,
}

impl Packing {
    /// Of moments of so many bytes. `None`: there are none.
    pub(crate) fn of(size: usize, has_date: bool) -> Option<Packing> {
        let (whole_bytes, offset) = match has_date {
            true => (5, 0x80_0000_0000i128),
            false => (3, 0x80_0000i128),
        };
        let behind = size.checked_sub(whole_bytes)?;
        let unit = *[0, 10_000, 100, 1].get(behind)?;
        let bits = 8 * behind as u32;
        Some(Packing { offset: offset << bits, bits, unit })
    }

    /// As it is compared. `None`: it is none.
    #[inline]
    pub(crate) fn moment(&self, stored: i128) -> Option<i64> {
        let shifted = i64::try_from(stored - self.offset).ok()?;
        let (mut whole, mut fraction) = (shifted >> self.bits, shifted & ((1 << self.bits) - 1));
        // Negative times: both parts are negative together.
        if shifted < 0 && fraction > 0 {
            whole += 1;
            fraction -= 1 << self.bits;
        }
        whole.checked_mul(1 << MICRO_BITS)?.checked_add(fraction * self.unit)
    }

    /// As these are compared, each of at most seven bytes (of NULLs there may be anything). `None`: they have more.
    pub(crate) fn moments(&self, stored: &[i64]) -> Option<Vec<i64>> {
        let offset = i64::try_from(self.offset).ok()?;
        if self.bits == 0 {
            return Some(stored.iter().map(|stored| stored.wrapping_sub(offset) << MICRO_BITS).collect());
        }
        let of_bits = (1 << self.bits) - 1;
        let moment = |stored: &i64| {
            let shifted = stored.wrapping_sub(offset);
            // Negative times: both parts are negative together.
            let is_cut = shifted < 0 && shifted & of_bits > 0;
            let whole = (shifted >> self.bits) + i64::from(is_cut);
            let fraction = (shifted & of_bits) - (i64::from(is_cut) << self.bits);
            (whole << MICRO_BITS).wrapping_add(fraction * self.unit)
        };
        Some(stored.iter().map(moment).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same as by whole numbers of 128 bits.
    #[test]
    fn moments_are_unpacked() {
        let expected = |stored: i128, size: usize, has_date: bool| -> Option<i64> {
            let (whole_bytes, offset) = if has_date { (5, 1i128 << 39) } else { (3, 1i128 << 23) };
            let behind = size.checked_sub(whole_bytes).filter(|behind| *behind < 4)?;
            let (shifted, one) = (stored - (offset << (8 * behind)), 1i128 << (8 * behind));
            let unit = [0i128, 10_000, 100, 1][behind];
            i64::try_from(((shifted / one) << 24) + shifted % one * unit).ok()
        };
        let mut seed = 1u64;
        for has_date in [true, false] {
            for size in 2..9 {
                for round in 0..2000u32 {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let most = (1i128 << (8 * size)) - 1;
                    let near = (1i128 << (8 * size - 1)) + i128::from(seed >> 33) % 4096 - 2048;
                    let stored = if round % 2 == 0 { i128::from(seed) & most } else { near };
                    let found = Packing::of(size, has_date).and_then(|packing| packing.moment(stored));
                    assert_eq!(found, expected(stored, size, has_date), "{stored} {size} {has_date}");
                    let packing = Packing::of(size, has_date).filter(|_| size < 8);
                    let at_once = packing.and_then(|packing| packing.moments(&[stored as i64]));
                    assert_eq!(
                        at_once.map(|all| all[0]),
                        found.filter(|_| size < 8),
                        "{stored} {size} {has_date}"
                    );
                }
            }
        }
    }
}
