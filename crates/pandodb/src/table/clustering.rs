//! Clustering indexes: their entries hold the whole row, so that who reads by one needs no other dictionary.
//!
//! ```text
//! value   the row, as it is in dictionary 0
//!         and of an index with tails:  count of the tail (as of counted columns), tail, its size once more (2 bytes,
//!                                      little-endian)
//! ```
//!
//! The row begins with the number of its layout, and follows changes of columns as rows do. The tail is what the entry would
//! have without the row: what names the row of a unique index. It is found from the end, without a look at the layout; to the
//! columns of the tree it is two more columns of the row. An index has tails or has none, all of its life.

use std::sync::Arc;

use pando_column::layout::Layouts;
use pando_column::Shapes;
use serde::{Deserialize, Serialize};

/// Bytes of a tail's size behind it.
const SIZE_BYTES: usize = 2;

/// Whether the entries of an index hold rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clustering {
    /// They hold what is the caller's own affair.
    #[default]
    None,
    /// The value of an entry is the row.
    Row,
    /// The value of an entry is the row, and a tail.
    Tailed,
}

impl Clustering {
    pub(crate) fn is_none(&self) -> bool {
        *self == Clustering::None
    }

    /// The row and the tail of an entry's value; `None` if it is not one of a clustering index.
    pub(crate) fn split(self, value: &[u8]) -> Option<(&[u8], &[u8])> {
        match self {
            Clustering::None => None,
            Clustering::Row => Some((value, &[])),
            Clustering::Tailed => {
                let (rest, size) = value.split_last_chunk::<SIZE_BYTES>()?;
                let size = u16::from_le_bytes(*size);
                let (rest, tail) = rest.split_at_checked(rest.len().checked_sub(usize::from(size))?)?;
                let row = rest.strip_suffix(&count_bytes(size)[..count_len(size)])?;
                Some((row, tail))
            }
        }
    }

    /// What of an entry's value says which row it is of, together with its key.
    pub(crate) fn name_of(self, value: &[u8]) -> &[u8] {
        match self {
            Clustering::None => value,
            _ => self.split(value).map_or(&[], |(_, tail)| tail),
        }
    }

    /// What the tree is to know of the values of such an index, of a table with these layouts.
    pub(crate) fn shapes(self, layouts: Option<&Layouts>) -> Arc<Shapes> {
        let shapes = match (self, layouts) {
            (Clustering::None, _) | (_, None) => Shapes::default(),
            (Clustering::Row, Some(layouts)) => Shapes::of(layouts),
            (Clustering::Tailed, Some(layouts)) => Shapes::of(&layouts.with_tail()),
        };
        Arc::new(shapes)
    }
}

/// A count as counted columns have it: seven bits a byte, least significant first.
fn count_bytes(count: u16) -> [u8; 3] {
    let low = (count & 0x7f) as u8;
    let middle = (count >> 7 & 0x7f) as u8;
    match count_len(count) {
        1 => [low, 0, 0],
        2 => [low | 0x80, middle, 0],
        _ => [low | 0x80, middle | 0x80, (count >> 14) as u8],
    }
}

fn count_len(count: u16) -> usize {
    match count {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_tail(row: &[u8], tail: &[u8]) -> Vec<u8> {
        let size = u16::try_from(tail.len()).unwrap();
        let mut value = row.to_vec();
        value.extend_from_slice(&count_bytes(size)[..count_len(size)]);
        value.extend_from_slice(tail);
        value.extend_from_slice(&size.to_le_bytes());
        value
    }

    #[test]
    fn a_tail_of_any_size_is_found_and_other_bytes_have_none() {
        for size in [0, 1, 127, 128, 300, 16383, 16384, 65535] {
            let tail = vec![7; size];
            let value = with_tail(b"row", &tail);
            assert_eq!(Clustering::Tailed.split(&value), Some((&b"row"[..], &tail[..])), "{size}");
            assert_eq!(Clustering::Tailed.name_of(&value), tail);
        }
        for value in [&b""[..], b"a", &[9, 0], &[1, b'x', 2, 0], &[0xff, 0xff, 0xff]] {
            assert_eq!(Clustering::Tailed.split(value), None, "{value:?}");
        }
        assert_eq!(Clustering::Row.split(b"row"), Some((&b"row"[..], &b""[..])));
        assert_eq!(Clustering::None.name_of(b"value"), b"value");
    }
}
