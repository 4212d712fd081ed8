//! Values, one after the other, to a vector.

use pando_column::layout::ColumnType;
use pando_column::vector::{Nulls, Strings, Values, Vector};

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Gather {
    nulls: Nulls,
    /// Bytes of each value; 0: each has its own number.
    width: usize,
    bytes: Vec<u8>,
    strings: Strings,
}

impl Gather {
    /// Of values of so many bytes each, or of different lengths (0).
    pub(super) fn new(width: usize) -> Gather {
        Gather { nulls: Nulls::new(), width, bytes: Vec::new(), strings: Strings::new() }
    }

    /// Of a column's values.
    pub(super) fn of(ty: &ColumnType) -> Gather {
        Gather::new(if ty.kind.is_counted() { 0 } else { ty.size as usize })
    }

    pub(super) fn push_null(&mut self) {
        self.nulls.push(true);
        match self.width {
            0 => self.strings.push(b""),
            width => self.bytes.resize(self.bytes.len() + width, 0),
        }
    }

    /// `None`: a value of another width, or the strings are too long in all.
    #[inline]
    pub(super) fn push(&mut self, value: &[u8]) -> Option<()> {
        if self.width > 0 {
            if value.len() != self.width {
                return None;
            }
            self.bytes.extend_from_slice(value);
        } else {
            u32::try_from(self.strings.total_bytes() + value.len()).ok()?;
            self.strings.push(value);
        }
        self.nulls.push(false);
        Some(())
    }

    /// The values since the last time.
    pub(super) fn take(&mut self) -> Vector {
        let nulls = std::mem::take(&mut self.nulls);
        let rows = nulls.rows();
        let values = match self.width {
            0 => Values::Varying(std::mem::take(&mut self.strings)),
            width => Values::Fixed { width, bytes: std::mem::take(&mut self.bytes) },
        };
        Vector::new(rows, Some(nulls), values)
    }
}
