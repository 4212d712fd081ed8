//! Columns of a query: where their bytes are, and what these mean.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use pandodb::{KeyPath, Want};

/// Tells the order of two texts.
pub type CompareTexts = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// The order of a column's texts: the server's.
#[derive(Clone)]
pub struct Collation(pub Arc<CompareTexts>);

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collation")
    }
}

/// Where a column's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The column at this position of the table's current layout.
    Stored(usize),
    /// The length of the column at this position.
    Length(usize),
    /// An integer or bytes in the row's key, which has them at this offset.
    Key {
        /// Where.
        offset: usize,
        /// How many bytes.
        size: usize,
        /// The bits are inverted: the key descends.
        is_reversed: bool,
    },
    /// A part of the row's key behind texts, or a text: bytes of a column as it has them, numbers as keys do.
    KeyPart(Arc<KeyPath>),
}

/// What the bytes of a column mean.
#[derive(Clone, Debug)]
pub enum Form {
    /// An integer with a sign.
    Signed,
    /// An integer without.
    Unsigned,
    /// A number with so many digits in all and behind the point.
    Decimal {
        /// Digits in all.
        precision: u32,
        /// Behind the point.
        scale: u32,
    },
    /// Bytes in the order of memcmp, at most 15: temporal values.
    Ordered,
    /// Text.
    Text(Collation),
    /// A YEAR: one byte, years since 1900; 0 is the year 0.
    Year,
    /// Nothing is asked but whether it is NULL.
    Presence,
}

/// A column that a query wants.
#[derive(Clone, Debug)]
pub struct Column {
    /// Which of the query's tables has it.
    pub table: usize,
    /// Where.
    pub place: Place,
    /// What.
    pub form: Form,
}

impl Place {
    /// In a key: whether the bits of its numbers are inverted.
    pub(crate) fn is_reversed_key(&self) -> Option<bool> {
        match self {
            Place::Stored(_) | Place::Length(_) => None,
            Place::Key { is_reversed, .. } => Some(*is_reversed),
            Place::KeyPart(_) => Some(false),
        }
    }
}

impl Column {
    /// What is wanted of the rows.
    pub fn want(&self) -> Want {
        match &self.place {
            Place::Stored(position) => Want::Stored(*position),
            Place::Length(position) => Want::Length(*position),
            Place::Key { offset, size, .. } => Want::Key { offset: *offset, size: *size },
            Place::KeyPart(path) => Want::KeyPart(path.clone()),
        }
    }
}

impl Form {
    /// The digits behind the point of its numbers; `None` where it has none.
    pub(crate) fn scale(&self) -> Option<u32> {
        match self {
            Form::Signed | Form::Unsigned | Form::Ordered | Form::Year => Some(0),
            Form::Decimal { scale, .. } => Some(*scale),
            Form::Text(_) | Form::Presence => None,
        }
    }

    pub(crate) fn collation(&self) -> Option<&Collation> {
        match self {
            Form::Text(collation) => Some(collation),
            _ => None,
        }
    }
}
