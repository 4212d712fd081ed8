//! Vectors of few different values, in the form that costs the least to compute on. It pays where a vector is used again.

use std::collections::HashMap;
use std::sync::Arc;

use pando_column::vector::{Strings, Values, Vector};

/// Of so many rows one may have a value that was not there before.
const ROWS_OF_ENTRY_MIN: usize = 16;

/// The same values, as a constant or as a dictionary if they are few.
pub(super) fn narrowed(vector: &Arc<Vector>) -> Arc<Vector> {
    let rows = vector.rows();
    if !matches!(vector.values(), Values::Fixed { .. } | Values::Varying(_)) || rows < ROWS_OF_ENTRY_MIN {
        return vector.clone();
    }
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let (mut entries, mut codes) = (Strings::new(), Vec::with_capacity(rows));
    let mut last: Option<(&[u8], u32)> = None;
    for row in 0..rows {
        let code = match (vector.get(row), last) {
            // That of any entry.
            (None, _) => last.map_or(0, |(_, code)| code),
            (Some(value), Some((before, code))) if value == before => code,
            (Some(value), _) => {
                let next = entries.len() as u32;
                let code = *numbers.entry(value).or_insert(next);
                if code == next {
                    entries.push(value);
                    if entries.len() > rows / ROWS_OF_ENTRY_MIN {
                        return vector.clone();
                    }
                }
                last = Some((value, code));
                code
            }
        };
        codes.push(code);
    }
    let values = match entries.len() {
        0 => return Arc::new(Vector::all_null(rows)),
        1 => Values::Constant(entries.get(0).to_vec()),
        _ => Values::Dictionary { codes, entries },
    };
    Arc::new(Vector::new(rows, vector.nulls().cloned(), values))
}

#[cfg(test)]
mod tests {
    use pando_column::vector::Nulls;

    use super::*;

    /// A third of them NULL.
    fn vector(rows: usize, value: impl Fn(usize) -> usize) -> [Arc<Vector>; 2] {
        let mut nulls = Nulls::new();
        let (mut strings, mut bytes) = (Strings::new(), Vec::new());
        for row in 0..rows {
            let is_null = row % 3 == 0;
            nulls.push(is_null);
            strings.push(if is_null { b"" } else { &b"abcdefghijklmnopqrstuvwxyz"[..value(row) % 26] });
            bytes.extend(if is_null { [0; 4] } else { (value(row) as u32).to_le_bytes() });
        }
        [Values::Varying(strings), Values::Fixed { width: 4, bytes }]
            .map(|values| Arc::new(Vector::new(rows, Some(nulls.clone()), values)))
    }

    #[test]
    fn few_values_become_a_dictionary_or_a_constant_and_stay_the_same() {
        for distinct in [1, 2, 20, 26, 500] {
            for rows in [1, 15, 16, 40, 500] {
                for before in vector(rows, |row| row * 7 % distinct) {
                    let after = narrowed(&before);
                    assert!((0..rows).all(|row| before.get(row) == after.get(row)));
                    assert_eq!(before.rows(), after.rows());
                    let is_narrow = matches!(after.values(), Values::Constant(_) | Values::Dictionary { .. });
                    if distinct * ROWS_OF_ENTRY_MIN <= rows {
                        assert!(is_narrow, "{distinct} values of {rows}");
                    }
                    assert_eq!(matches!(after.values(), Values::Constant(_)), rows >= 16 && distinct == 1);
                }
            }
        }
    }

    #[test]
    fn nothing_but_nulls_is_no_values() {
        let nulls = Nulls::from_words(vec![u64::MAX; 2], 100);
        let fixed = Values::Fixed { width: 1, bytes: vec![0; 100] };
        let after = narrowed(&Arc::new(Vector::new(100, Some(nulls), fixed)));
        assert_eq!(*after, Vector::all_null(100));
    }
}
