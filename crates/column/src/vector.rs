//! Vectors: one column of many rows, decoded. What a scan of whole columns gives and queries compute on.
//!
//! Values are the bytes that a row has for the column (`layout::Kind`), without a count before them: integers
//! little-endian, DECIMAL and temporal values in the order of memcmp, strings as they are. A decoder picks the
//! form that costs it least, and whoever reads handles each: a column of a segment that was stored as a
//! dictionary stays one, so that a condition is evaluated once for each entry and not for each row.
//!
//! What holds, asserted by the constructors:
//! * A vector has `rows()` values, and a NULL has one too: in `Fixed` its bytes are zeros by custom, in
//!   `Varying` it is empty, in `Dictionary` its code is that of any entry. Nobody looks at it.
//! * `Varying` has ascending ends that stay within the bytes; codes are below the number of entries.
//! * The entries of a dictionary need not be different from each other, nor all be used.

use pando_memory::footprint_of;

/// Which rows are NULL: a bit for each, set for NULL, the low bit of the first word first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nulls {
    words: Vec<u64>,
    rows: usize,
    count: usize,
}

impl Nulls {
    /// None yet, of no rows.
    pub fn new() -> Nulls {
        Nulls::default()
    }

    /// From words of bits. Panics unless there are as many as the rows need; bits beyond the rows are cleared.
    pub fn from_words(mut words: Vec<u64>, rows: usize) -> Nulls {
        assert_eq!(words.len(), rows.div_ceil(64), "words of {rows} bits");
        if let (Some(last), 1..) = (words.last_mut(), rows % 64) {
            *last &= (1 << (rows % 64)) - 1;
        }
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        Nulls { words, rows, count }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, is_null: bool) {
        if self.rows % 64 == 0 {
            self.words.push(0);
        }
        if let (true, Some(last)) = (is_null, self.words.last_mut()) {
            *last |= 1 << (self.rows % 64);
            self.count += 1;
        }
        self.rows += 1;
    }

    /// Whether the row is NULL. Panics beyond the rows.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 != 0
    }

    /// How many rows are NULL.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Rows, NULL or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bits; those beyond the rows are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Back to no rows; memory stays.
    pub fn clear(&mut self) {
        self.words.clear();
        self.rows = 0;
        self.count = 0;
    }
}

/// Values of a vector, in one of several forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// All rows have this one.
    Constant(Vec<u8>),
    /// `width` bytes for each row.
    Fixed {
        /// Bytes of a value; not 0.
        width: usize,
        /// One after the other.
        bytes: Vec<u8>,
    },
    /// Values of different lengths.
    Varying(Strings),
    /// Each row names its value.
    Dictionary {
        /// For each row the number of its entry.
        codes: Vec<u32>,
        /// The entries; of fixed width, too, if there are few different ones.
        entries: Strings,
    },
}

/// Strings of bytes, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// Where each ends, and the next one begins.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    /// None yet.
    pub fn new() -> Strings {
        Strings::default()
    }

    /// None yet, with room for so many strings of so many bytes in all.
    pub fn with_capacity(strings: usize, bytes: usize) -> Strings {
        Strings { ends: Vec::with_capacity(strings), bytes: Vec::with_capacity(bytes) }
    }

    /// Of bytes and the places where each string ends. Panics unless these ascend and the last is the end.
    pub fn from_parts(ends: Vec<u32>, bytes: Vec<u8>) -> Strings {
        assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]), "ends of strings ascend");
        assert_eq!(
            ends.last().copied().unwrap_or(0) as usize,
            bytes.len(),
            "the last string ends with the bytes"
        );
        Strings { ends, bytes }
    }

    /// Adds one. Panics beyond 4 GiB in all.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(u32::try_from(self.bytes.len()).expect("strings of a vector are less than 4 GiB"));
    }

    /// Adds all of `other`. Panics beyond 4 GiB in all.
    pub fn extend(&mut self, other: &Strings) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        assert!(u32::try_from(self.bytes.len()).is_ok(), "strings of a vector are less than 4 GiB");
        self.ends.extend(other.ends.iter().map(|end| end + before as u32));
    }

    /// The string with this number. Panics if there is none.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[begin as usize..self.ends[number] as usize]
    }

    /// Whether one has so many bytes.
    pub fn has_length(&self, bytes: usize) -> bool {
        let begins = std::iter::once(&0).chain(&self.ends);
        // Without a branch for each.
        begins.zip(&self.ends).fold(false, |is_any, (begin, end)| is_any | ((end - begin) as usize == bytes))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes each has, and all of them, if they have all the same, and some.
    pub fn of_one_width(&self) -> Option<(usize, &[u8])> {
        let width = *self.ends.first()?;
        if width == 0 || self.bytes.len() != width as usize * self.ends.len() {
            return None;
        }
        // Without a way out, so that many are compared at once.
        let differences = self
            .ends
            .iter()
            .zip(1u32..)
            .fold(0, |bits, (end, number)| bits | (end ^ (number.wrapping_mul(width))));
        (differences == 0).then_some((width as usize, &self.bytes))
    }

    /// Bytes of all strings.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What its allocations take beyond the struct itself.
    fn heap_bytes(&self) -> usize {
        footprint_of(&self.bytes) + footprint_of(&self.ends)
    }

    /// Back to none; memory stays.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// One column of many rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    rows: usize,
    /// `None`: no row is NULL.
    nulls: Option<Nulls>,
    values: Values,
}

impl Vector {
    /// Panics where values and rows do not fit.
    pub fn new(rows: usize, nulls: Option<Nulls>, values: Values) -> Vector {
        match &values {
            Values::Constant(_) => {}
            Values::Fixed { width, bytes } => {
                assert!(*width > 0, "values of a fixed width have bytes");
                assert_eq!(bytes.len(), rows * width, "bytes of a column of {rows} rows, width {width}");
            }
            Values::Varying(strings) => assert_eq!(strings.len(), rows, "strings of a column"),
            Values::Dictionary { codes, entries } => {
                assert_eq!(codes.len(), rows, "codes of a column");
                assert!(codes.iter().all(|code| (*code as usize) < entries.len()), "a code without an entry");
            }
        }
        if let Some(nulls) = &nulls {
            assert_eq!(nulls.rows(), rows, "null bits of a column");
        }
        Vector { rows, nulls: nulls.filter(|nulls| nulls.count() > 0), values }
    }

    /// Only NULLs.
    pub fn all_null(rows: usize) -> Vector {
        let nulls = Nulls::from_words(vec![u64::MAX; rows.div_ceil(64)], rows);
        Vector::new(rows, Some(nulls), Values::Constant(Vec::new()))
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Which rows are NULL; `None` if none is.
    pub fn nulls(&self) -> Option<&Nulls> {
        self.nulls.as_ref()
    }

    /// The values, also those of NULLs, which mean nothing.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Whether the row is NULL. Panics beyond the rows if there are NULLs.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The value of one row, `None` for NULL. For a few rows: whoever computes on all looks at
    /// [`Vector::values`]. Panics beyond the rows.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if self.is_null(row) {
            return None;
        }
        Some(match &self.values {
            Values::Constant(value) => value,
            Values::Fixed { width, bytes } => &bytes[row * width..(row + 1) * width],
            Values::Varying(strings) => strings.get(row),
            Values::Dictionary { codes, entries } => entries.get(codes[row] as usize),
        })
    }

    /// What its allocations take beyond the struct itself.
    pub fn heap_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Constant(value) => footprint_of(value),
            Values::Fixed { bytes, .. } => footprint_of(bytes),
            Values::Varying(strings) => strings.heap_bytes(),
            Values::Dictionary { codes, entries } => footprint_of(codes) + entries.heap_bytes(),
        };
        values + self.nulls.as_ref().map_or(0, |nulls| footprint_of(&nulls.words))
    }

    /// Takes the vector apart, so that its memory can be used for the next one.
    pub fn into_parts(self) -> (Option<Nulls>, Values) {
        (self.nulls, self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(of: &[&str]) -> Strings {
        let mut strings = Strings::new();
        of.iter().for_each(|value| strings.push(value.as_bytes()));
        strings
    }

    #[test]
    fn null_bits_count_and_answer_across_words() {
        let mut nulls = Nulls::new();
        (0..130).for_each(|row| nulls.push(row % 64 == 63));
        assert_eq!((nulls.rows(), nulls.count(), nulls.words().len()), (130, 2, 3));
        assert!(nulls.is_null(63) && nulls.is_null(127) && !nulls.is_null(64) && !nulls.is_null(129));
        assert_eq!(Nulls::from_words(nulls.words().to_vec(), 130), nulls);
        assert_eq!(Nulls::from_words(vec![u64::MAX], 3).count(), 3, "bits beyond the rows are nobody's");
    }

    #[test]
    fn every_form_gives_the_same_values() {
        let mut nulls = Nulls::new();
        [false, true, false].iter().for_each(|null| nulls.push(*null));
        let forms = [
            Values::Constant(b"ab".to_vec()),
            Values::Fixed { width: 2, bytes: b"ab\0\0ab".to_vec() },
            Values::Varying(strings(&["ab", "", "ab"])),
            Values::Dictionary { codes: vec![1, 0, 1], entries: strings(&["x", "ab"]) },
        ];
        for values in forms {
            let vector = Vector::new(3, Some(nulls.clone()), values);
            let got: Vec<_> = (0..3).map(|row| vector.get(row)).collect();
            assert_eq!(got, [Some(&b"ab"[..]), None, Some(&b"ab"[..])]);
        }
    }

    #[test]
    fn bits_without_a_null_are_no_bits() {
        let mut nulls = Nulls::new();
        nulls.push(false);
        let vector = Vector::new(1, Some(nulls), Values::Constant(vec![7]));
        assert!(vector.nulls().is_none());
        assert_eq!(Vector::all_null(65).get(64), None);
    }

    #[test]
    #[should_panic(expected = "a code without an entry")]
    fn a_code_without_an_entry_is_refused() {
        let values = Values::Dictionary { codes: vec![2], entries: strings(&["a", "b"]) };
        _ = Vector::new(1, None, values);
    }
}
