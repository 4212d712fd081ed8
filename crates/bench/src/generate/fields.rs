//! A row's fields, written into a buffer without an allocation of their own.

/// Appends fields to a buffer.
pub struct Fields {
    bytes: Vec<u8>,
    rows: u64,
    at_start: bool,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields { bytes: Vec::new(), rows: 0, at_start: true }
    }
}

impl Fields {
    /// What has been written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many rows have been ended.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Empty again, with the memory kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
        self.at_start = true;
    }

    fn separate(&mut self) {
        if !self.at_start {
            self.bytes.push(b',');
        }
        self.at_start = false;
    }

    /// A whole number.
    pub fn int(&mut self, value: i64) -> &mut Fields {
        self.separate();
        push_int(&mut self.bytes, value);
        self
    }

    /// A whole number that may need all 64 bits.
    pub fn unsigned(&mut self, value: u64) -> &mut Fields {
        self.separate();
        push_unsigned(&mut self.bytes, value, 1);
        self
    }

    /// A number with `places` digits after the point, given in units of the last.
    pub fn decimal(&mut self, value: i64, places: u32) -> &mut Fields {
        self.separate();
        push_decimal(&mut self.bytes, value, places);
        self
    }

    /// Text in quotes; it must have no quote, backslash or line feed.
    pub fn text(&mut self, text: &[u8]) -> &mut Fields {
        debug_assert!(!text.iter().any(|byte| matches!(byte, b'"' | b'\\' | b'\n')));
        self.separate();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(text);
        self.bytes.push(b'"');
        self
    }

    /// Text in quotes that `write` appends.
    pub fn text_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Fields {
        self.separate();
        self.bytes.push(b'"');
        write(&mut self.bytes);
        self.bytes.push(b'"');
        self
    }

    /// A day as "yyyy-mm-dd".
    pub fn date(&mut self, year: u32, month: u32, day: u32) -> &mut Fields {
        self.text_with(|bytes| push_date(bytes, year, month, day))
    }

    /// NULL.
    pub fn null(&mut self) -> &mut Fields {
        self.raw(b"NULL")
    }

    /// Bytes that are one or more fields already.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Fields {
        self.separate();
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The end of the row.
    pub fn end(&mut self) {
        self.bytes.push(b'\n');
        self.rows += 1;
        self.at_start = true;
    }
}

/// Appends a whole number in decimal.
pub fn push_int(bytes: &mut Vec<u8>, value: i64) {
    if value < 0 {
        bytes.push(b'-');
    }
    push_unsigned(bytes, value.unsigned_abs(), 1);
}

/// Appends a number with leading zeros up to `width`.
pub fn push_unsigned(bytes: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 || digits.len() - at < width {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    bytes.extend_from_slice(&digits[at..]);
}

/// Appends a number with `places` digits after the point, given in units of the last.
pub fn push_decimal(bytes: &mut Vec<u8>, value: i64, places: u32) {
    let whole = 10u64.pow(places);
    if value < 0 {
        bytes.push(b'-');
    }
    push_unsigned(bytes, value.unsigned_abs() / whole, 1);
    if places > 0 {
        bytes.push(b'.');
        push_unsigned(bytes, value.unsigned_abs() % whole, places as usize);
    }
}

/// Appends yyyy-mm-dd.
pub fn push_date(bytes: &mut Vec<u8>, year: u32, month: u32, day: u32) {
    push_unsigned(bytes, u64::from(year), 4);
    bytes.push(b'-');
    push_unsigned(bytes, u64::from(month), 2);
    bytes.push(b'-');
    push_unsigned(bytes, u64::from(day), 2);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_csv_line_and_a_list_of_values() {
        let mut fields = Fields::default();
        fields.int(-7).decimal(-105, 2).decimal(5, 4).text(b"a, b").null().date(1988, 2, 9).int(0).end();
        fields.int(i64::MAX).decimal(30, 0).end();
        let text = String::from_utf8(fields.bytes().to_vec()).unwrap();
        assert_eq!(text, "-7,-1.05,0.0005,\"a, b\",NULL,\"1988-02-09\",0\n9223372036854775807,30\n");
        assert_eq!(fields.rows(), 2);
        fields.clear();
        fields.int(1).end();
        assert_eq!(fields.bytes(), b"1\n");
    }
}
