//! What values look like: how they are taken apart into columns, as far as bytes go. A segment says
//! the shapes of its values itself, so that reading it needs nothing else.
//!
//! ```text
//! in the head:  u8 0: Deletes, without values
//!               u8 1: values that are not taken apart
//!               u8 2: rows of a layout: varint layout, varint columns; per column:
//!                     u8 kind (0 signed, 1 unsigned, 2 big-endian, 3 bytes, 4 counted bytes)
//!                        + 8 if it may be NULL
//!                     varint bytes of a value, unless counted
//! ```
#![deny(clippy::indexing_slicing)]

use super::streams::{Source, Writer};
use crate::layout::{self, Layout};
use crate::wire::{put_varint, DecodeError, Reader};

/// The server's most columns of a table.
const COLUMNS_MAX: usize = 4096;

/// The bytes of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    /// Little-endian integers of 1 to 8 bytes with a sign.
    Signed(u8),
    /// Little-endian, without a sign; bit patterns.
    Unsigned(u8),
    /// Big-endian.
    BigEndian(u8),
    /// So many bytes, more than 8.
    Bytes(u32),
    /// A varint count before them.
    Counted,
    /// All of the value.
    Whole,
}

/// A column of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) physical: Physical,
    pub(crate) nullable: bool,
}

/// How the values of some records are built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// There are none: Deletes.
    None,
    /// Not known.
    Whole,
    /// Rows of a layout.
    Rows { version: u32, forms: Vec<Form> },
}

const DELETES: u8 = 0;
const WHOLE: u8 = 1;
const ROWS: u8 = 2;
const NULLABLE: u8 = 8;
const WHOLE_FORM: [Form; 1] = [Form { physical: Physical::Whole, nullable: false }];

impl Shape {
    /// The shape of rows of a layout; `None` if it has columns that cannot be taken apart.
    pub(crate) fn of(layout: &Layout) -> Option<Shape> {
        let forms: Option<Vec<Form>> = layout.columns.iter().map(|column| form_of(&column.ty)).collect();
        let forms = forms.filter(|forms| forms.len() <= COLUMNS_MAX)?;
        Some(Shape::Rows { version: layout.version, forms })
    }

    /// The columns.
    pub(crate) fn forms(&self) -> &[Form] {
        match self {
            Shape::None => &[],
            Shape::Whole => &WHOLE_FORM,
            Shape::Rows { forms, .. } => forms,
        }
    }

    /// What each value begins with, before the bits of NULLs.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        if let Shape::Rows { version, .. } = self {
            put_varint(&mut prefix, u64::from(*version));
        }
        prefix
    }

    /// Bytes of the bits of NULLs.
    pub(crate) fn null_bytes(&self) -> usize {
        self.forms().iter().filter(|form| form.nullable).count().div_ceil(8)
    }

    pub(crate) fn put(&self, to: &mut Writer<'_>) {
        let Shape::Rows { version, forms } = self else {
            return to.head.push(if *self == Shape::None { DELETES } else { WHOLE });
        };
        to.head.push(ROWS);
        to.varint(u64::from(*version));
        to.varint(forms.len() as u64);
        for form in forms {
            let (kind, size) = match form.physical {
                Physical::Signed(size) => (0, Some(u32::from(size))),
                Physical::Unsigned(size) => (1, Some(u32::from(size))),
                Physical::BigEndian(size) => (2, Some(u32::from(size))),
                Physical::Bytes(size) => (3, Some(size)),
                Physical::Counted | Physical::Whole => (4, None),
            };
            to.head.push(kind | if form.nullable { NULLABLE } else { 0 });
            if let Some(size) = size {
                to.varint(u64::from(size));
            }
        }
    }

    pub(crate) fn take(from: &mut Source<'_>) -> Result<Shape, DecodeError> {
        match from.head.u8("shape of values")? {
            DELETES => return Ok(Shape::None),
            WHOLE => return Ok(Shape::Whole),
            ROWS => {}
            other => return Err(DecodeError::new("shape of values", "0 to 2", other)),
        }
        let version = from.count(u32::MAX as usize, "layout")? as u32;
        let columns = from.count(COLUMNS_MAX, "columns")?;
        let forms: Result<_, _> = (0..columns).map(|_| take_form(from)).collect();
        Ok(Shape::Rows { version, forms: forms? })
    }
}

fn take_form(from: &mut Source<'_>) -> Result<Form, DecodeError> {
    let what = "form of a column";
    let byte = from.head.u8(what)?;
    let kind = byte & !NULLABLE;
    let physical = match kind {
        0..=2 => {
            let size = from.count(8, what)? as u8;
            if size == 0 {
                return Err(DecodeError::new(what, "bytes", "none"));
            }
            match kind {
                0 => Physical::Signed(size),
                1 => Physical::Unsigned(size),
                _ => Physical::BigEndian(size),
            }
        }
        3 => match from.count(u32::MAX as usize, what)? as u32 {
            0 => return Err(DecodeError::new(what, "bytes", "none")),
            size => Physical::Bytes(size),
        },
        4 => Physical::Counted,
        other => return Err(DecodeError::new(what, "0 to 4", other)),
    };
    Ok(Form { physical, nullable: byte & NULLABLE != 0 })
}

fn form_of(ty: &layout::ColumnType) -> Option<Form> {
    use layout::Kind;
    let small = u8::try_from(ty.size).ok().filter(|size| (1..=8).contains(size));
    let physical = match (ty.kind, small) {
        (Kind::Char | Kind::Varchar | Kind::Blob | Kind::Large, _) => Physical::Counted,
        (_, None) if ty.size == 0 => return None,
        (_, None) => Physical::Bytes(ty.size),
        (Kind::Signed, Some(size)) => Physical::Signed(size),
        (Kind::Unsigned | Kind::Enum | Kind::Set | Kind::Float, Some(size)) => Physical::Unsigned(size),
        (Kind::Bytes | Kind::Bit, Some(size)) => Physical::BigEndian(size),
    };
    Some(Form { physical, nullable: ty.nullable })
}

impl Physical {
    /// Bytes of a value, if all have the same.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Physical::Signed(size) | Physical::Unsigned(size) | Physical::BigEndian(size) => {
                Some(size.into())
            }
            Physical::Bytes(size) => Some(size as usize),
            Physical::Counted | Physical::Whole => None,
        }
    }

    /// Whether values are handled as integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Physical::Signed(_) | Physical::Unsigned(_) | Physical::BigEndian(_))
    }

    /// The integer of a value's bytes; order is that of the values.
    #[inline]
    pub(crate) fn integer(self, bytes: &[u8]) -> u64 {
        match self {
            Physical::Signed(size) => little_endian(bytes) ^ sign_bit(size),
            Physical::BigEndian(_) => bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)),
            _ => little_endian(bytes),
        }
    }

    /// The bytes of an integer that [`Physical::integer`] gave, in the first `size` of the eight.
    #[inline]
    pub(crate) fn bytes_of(self, n: u64) -> [u8; 8] {
        match self {
            Physical::Signed(size) => (n ^ sign_bit(size)).to_le_bytes(),
            Physical::BigEndian(size) => (n << (64 - 8 * u32::from(size))).to_be_bytes(),
            _ => n.to_le_bytes(),
        }
    }
}

/// The common lengths without a loop.
#[inline]
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte)),
    }
}

fn sign_bit(size: u8) -> u64 {
    1 << (8 * u32::from(size) - 1)
}

/// Where a value's bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// The values of a column, one per row; where the row has NULL, whatever.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    /// [`Physical::integer`] of each.
    Integers(Vec<u64>),
    /// Places in the bytes that all the values came from.
    Spans(Vec<Span>),
}

/// A column taken out of rows.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) cells: Cells,
    /// One per row; empty if no row has NULL.
    pub(crate) nulls: Vec<bool>,
    pub(crate) has_null: bool,
    /// All rows have NULL, so far: nothing is kept of them.
    pub(crate) all_null: bool,
}

impl Taken {
    fn push_null(&mut self, rows: usize) {
        if self.all_null {
            return;
        }
        if !self.has_null {
            self.has_null = true;
            self.nulls = vec![false; rows];
        }
        self.nulls.push(true);
        match &mut self.cells {
            Cells::Integers(values) => values.push(0),
            Cells::Spans(spans) => spans.push(Span::default()),
        }
    }

    /// Forgets what came after `rows` rows.
    fn truncate(&mut self, rows: usize) {
        self.nulls.truncate(rows);
        match &mut self.cells {
            Cells::Integers(values) => values.truncate(rows),
            Cells::Spans(spans) => spans.truncate(rows),
        }
    }

    /// The column has had `rows` rows of NULL, and will have something else.
    fn begin(&mut self, rows: usize) {
        self.all_null = false;
        self.has_null = rows > 0;
        self.nulls = vec![true; rows];
        match &mut self.cells {
            Cells::Integers(values) => values.resize(rows, 0),
            Cells::Spans(spans) => spans.resize(rows, Span::default()),
        }
    }
}

/// Takes rows apart.
pub(crate) struct Taker<'a> {
    shape: &'a Shape,
    prefix: Vec<u8>,
    null_bytes: usize,
    pub(crate) columns: Vec<Taken>,
    pub(crate) rows: usize,
}

impl<'a> Taker<'a> {
    pub(crate) fn new(shape: &'a Shape) -> Taker<'a> {
        let column = |form: &Form| Taken {
            cells: match form.physical.is_integer() {
                true => Cells::Integers(Vec::new()),
                false => Cells::Spans(Vec::new()),
            },
            nulls: Vec::new(),
            has_null: false,
            all_null: true,
        };
        let columns = shape.forms().iter().map(column).collect();
        Taker { shape, prefix: shape.prefix(), null_bytes: shape.null_bytes(), columns, rows: 0 }
    }

    /// Takes a row, if exactly its bytes would come back; `start` is where it is in all bytes.
    pub(crate) fn take(&mut self, row: &[u8], start: u32) -> bool {
        if self.walk(row, start).is_some() {
            self.rows += 1;
            return true;
        }
        self.columns.iter_mut().for_each(|column| column.truncate(self.rows));
        false
    }

    #[inline]
    fn walk(&mut self, row: &[u8], start: u32) -> Option<()> {
        // Entries of indexes have none. To compare nothing at the address that an empty vector has takes 100
        // nanoseconds: the processor's masked loads fault there, and the fault is suppressed by microcode.
        let rest = if self.prefix.is_empty() { row } else { row.strip_prefix(&self.prefix[..])? };
        let (nulls, mut rest) = rest.split_at_checked(self.null_bytes)?;
        let mut null_at = 0;
        for (form, column) in self.shape.forms().iter().zip(&mut self.columns) {
            if form.nullable {
                let is_null = nulls.get(null_at / 8)? >> (null_at % 8) & 1 != 0;
                null_at += 1;
                if is_null {
                    column.push_null(self.rows);
                    continue;
                }
            }
            let len = match form.physical {
                Physical::Counted => take_count(&mut rest)?,
                Physical::Whole => rest.len(),
                physical => physical.size()?,
            };
            let place = row.len() - rest.len();
            let (cell, after) = rest.split_at_checked(len)?;
            rest = after;
            if column.all_null {
                column.begin(self.rows);
            }
            if column.has_null {
                column.nulls.push(false);
            }
            match &mut column.cells {
                Cells::Integers(values) => values.push(form.physical.integer(cell)),
                Cells::Spans(spans) => spans.push(Span { start: start + place as u32, len: len as u32 }),
            }
        }
        let unused = nulls.last().is_some_and(|last| null_at % 8 != 0 && last >> (null_at % 8) != 0);
        (!unused && rest.is_empty()).then_some(())
    }
}

/// A count as `put_varint` writes it; others are not the ones that would be written again.
#[inline]
pub(super) fn take_count(rest: &mut &[u8]) -> Option<usize> {
    let (first, after) = rest.split_first()?;
    if *first < 0x80 {
        *rest = after;
        return Some(usize::from(*first));
    }
    let mut reader = Reader::new(rest);
    let count = reader.varint("").ok()?;
    let bytes = rest.len() - reader.rest().len();
    let last = *rest.get(bytes.checked_sub(1)?)?;
    *rest = reader.rest();
    (last != 0).then_some(usize::try_from(count).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_bytes_and_order() {
        let of = |physical: Physical, bytes: &[u8]| {
            let n = physical.integer(bytes);
            assert_eq!(physical.bytes_of(n).get(..bytes.len()), Some(bytes));
            n
        };
        assert!(
            of(Physical::Signed(2), &(-5i16).to_le_bytes()) < of(Physical::Signed(2), &4i16.to_le_bytes())
        );
        assert!(
            of(Physical::Signed(8), &i64::MIN.to_le_bytes()) < of(Physical::Signed(8), &0i64.to_le_bytes())
        );
        assert!(of(Physical::BigEndian(3), &[0, 1, 2]) < of(Physical::BigEndian(3), &[1, 0, 0]));
        assert_eq!(of(Physical::Unsigned(3), &[1, 2, 3]), 0x030201);
    }

    #[test]
    fn only_rows_that_would_be_written_the_same_way_fit() {
        let forms = vec![
            Form { physical: Physical::Signed(4), nullable: true },
            Form { physical: Physical::Counted, nullable: false },
        ];
        let shape = Shape::Rows { version: 3, forms };
        let mut taker = Taker::new(&shape);
        assert!(taker.take(&[3, 1, 0], 0));
        assert!(taker.take(&[3, 0, 1, 2, 3, 4, 1, b'x'], 3));
        let others: [&[u8]; 7] =
            [&[], &[2, 1, 0], &[3, 1], &[3, 3, 0], &[3, 1, 0, 0], &[3, 1, 0x80, 0], &[3, 1, 2, b'x']];
        let before = format!("{:?}", taker.columns);
        assert!(others.iter().all(|row| !taker.take(row, 11)));
        assert_eq!((taker.rows, format!("{:?}", taker.columns)), (2, before));
    }
}
