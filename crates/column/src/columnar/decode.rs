//! Streams to columns of values. The bytes may be anything.
#![deny(clippy::indexing_slicing)]

use super::codes::{DICTIONARY, FROM_KEYS, MAPPED, NULLS, PLAIN};
use super::shape::{Physical, Shape, Span};
use super::streams::Source;
use super::{ints, strings};
use crate::wire::DecodeError;

/// What a segment may still give: bounds memory.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget { left: bytes }
    }

    fn take(&mut self, bytes: usize) -> Result<(), DecodeError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(DecodeError::new("bytes of values", format_args!("at most {}", self.left), bytes)),
        }
    }
}

/// Values of a column: distinct ones, or one per row.
#[derive(Debug)]
pub(crate) enum Values {
    Integers(Vec<u64>),
    /// Places in `text`.
    Strings {
        spans: Vec<Span>,
        text: Vec<u8>,
    },
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Strings { spans, .. } => spans.len(),
        }
    }
}

/// A column as it comes out of a segment.
#[derive(Debug)]
pub(crate) enum Column {
    /// NULL in all rows.
    Nulls,
    /// One value for each row that is not NULL, and which rows are (empty: none).
    Plain { values: Values, nulls: Vec<bool> },
    /// Numbers of values, all below their count; with `has_null`, 0 is NULL and 1 the first value.
    Coded { codes: Vec<u16>, values: Values, has_null: bool },
}

/// Reads the columns of `rows` values, in the order of the shape. `heads` as the encoder had it.
pub(crate) fn take_columns(
    from: &mut Source<'_>,
    shape: &Shape,
    rows: usize,
    heads: Option<(&[u16], usize)>,
    budget: &mut Budget,
) -> Result<Vec<Column>, DecodeError> {
    let forms = shape.forms();
    let mut columns: Vec<Option<Column>> = forms.iter().map(|_| None).collect();
    // By place in what is written.
    let mut order: Vec<usize> = Vec::with_capacity(forms.len());
    for _ in 0..forms.len() {
        let at = from.count(forms.len() - 1, "number of a column")?;
        let form = forms.get(at).filter(|_| matches!(columns.get(at), Some(None)));
        let Some(form) = form else {
            return Err(DecodeError::new("number of a column", "each once", at));
        };
        let mut reader = ColumnReader { from, physical: form.physical, rows, budget };
        let column = match reader.from.head.u8("encoding of a column")? {
            NULLS => Column::Nulls,
            PLAIN => reader.plain()?,
            DICTIONARY => {
                let (distinct, has_null, values) = reader.dictionary()?;
                let codes = ints::take(reader.from, rows)?;
                Column::Coded { codes: narrow(codes, distinct)?, values, has_null }
            }
            MAPPED => {
                let (distinct, has_null, values) = reader.dictionary()?;
                let determinant = known(reader.from, &columns, &order, heads)?;
                let (codes, count) = determinant;
                let map = narrow(ints::take(reader.from, count)?, distinct)?;
                let codes = codes.iter().map(|code| map.get(usize::from(*code)).copied());
                let codes: Option<Vec<u16>> = codes.collect();
                let codes =
                    codes.ok_or_else(|| DecodeError::new("map of a column", "a number for each", "fewer"))?;
                Column::Coded { codes, values, has_null }
            }
            other => return Err(DecodeError::new("encoding of a column", "0 to 3", other)),
        };
        let is_null = match &column {
            Column::Nulls => true,
            Column::Plain { nulls, .. } => !nulls.is_empty(),
            Column::Coded { has_null, .. } => *has_null,
        };
        if is_null && !form.nullable {
            return Err(DecodeError::new("values of a column", "no NULL", "NULL"));
        }
        order.push(at);
        if let Some(slot) = columns.get_mut(at) {
            *slot = Some(column);
        }
    }
    Ok(columns.into_iter().flatten().collect())
}

/// The numbers that a mapped column follows from, and how many there are.
fn known<'a>(
    from: &mut Source<'_>,
    columns: &'a [Option<Column>],
    order: &[usize],
    heads: Option<(&'a [u16], usize)>,
) -> Result<(&'a [u16], usize), DecodeError> {
    let name = from.length("determinant of a column")?;
    if name == FROM_KEYS {
        return heads.ok_or_else(|| DecodeError::new("determinant of a column", "a column", "keys"));
    }
    let column = name.checked_sub(1).and_then(|at| columns.get(*order.get(at)?)?.as_ref());
    match column {
        Some(Column::Coded { codes, values, has_null }) => Ok((codes, values.len() + usize::from(*has_null))),
        _ => Err(DecodeError::new("determinant of a column", "a dictionary's column", name)),
    }
}

/// Numbers below `distinct`.
pub(crate) fn narrow(codes: Vec<u64>, distinct: usize) -> Result<Vec<u16>, DecodeError> {
    let most = codes.iter().copied().max().unwrap_or(0);
    if most >= distinct.max(1) as u64 {
        return Err(DecodeError::new("number of a value", format_args!("below {distinct}"), most));
    }
    Ok(codes.into_iter().map(|code| code as u16).collect())
}

/// Reads one column.
pub(crate) struct ColumnReader<'a, 'b> {
    pub(crate) from: &'a mut Source<'b>,
    pub(crate) physical: Physical,
    pub(crate) rows: usize,
    pub(crate) budget: &'a mut Budget,
}

impl ColumnReader<'_, '_> {
    /// Goes past what [`ColumnReader::plain`] would read.
    pub(crate) fn skip_plain(&mut self) -> Result<(), DecodeError> {
        let mut count = self.rows;
        if self.flag()? {
            let nulls = ints::take(self.from, self.rows)?;
            count = nulls.iter().filter(|null| **null == 0).count();
        }
        self.skip_values(count)
    }

    /// Goes past what [`ColumnReader::dictionary`] would read, and gives how many numbers there are.
    pub(crate) fn skip_dictionary(&mut self) -> Result<usize, DecodeError> {
        let (distinct, _, count) = self.distinct()?;
        self.skip_values(count)?;
        Ok(distinct)
    }

    pub(crate) fn skip_values(&mut self, count: usize) -> Result<(), DecodeError> {
        if self.physical.is_integer() {
            return ints::skip(self.from, count);
        }
        let bytes = match self.physical.size() {
            Some(size) => count.checked_mul(size),
            None => {
                let lengths = ints::take(self.from, count)?;
                let total = lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
                total.and_then(|total| usize::try_from(total).ok())
            }
        };
        strings::skip(self.from, count, bytes.unwrap_or(usize::MAX))
    }

    pub(crate) fn plain(&mut self) -> Result<Column, DecodeError> {
        let mut nulls = Vec::new();
        let mut count = self.rows;
        if self.flag()? {
            nulls = ints::take(self.from, self.rows)?.into_iter().map(|null| null != 0).collect();
            count = nulls.iter().filter(|null| !**null).count();
        }
        let values = self.values(count)?;
        Ok(Column::Plain { values, nulls })
    }

    /// How many numbers, whether there are NULLs, and the values.
    pub(crate) fn dictionary(&mut self) -> Result<(usize, bool, Values), DecodeError> {
        let (distinct, has_null, count) = self.distinct()?;
        Ok((distinct, has_null, self.values(count)?))
    }

    /// How many numbers, whether there are NULLs, how many values.
    pub(crate) fn distinct(&mut self) -> Result<(usize, bool, usize), DecodeError> {
        let distinct = self.from.count(self.rows.min(super::dictionary::CODES_MAX), "distinct values")?;
        let has_null = self.flag()?;
        match distinct.checked_sub(usize::from(has_null)).filter(|count| *count > 0) {
            Some(count) => Ok((distinct, has_null, count)),
            None => Err(DecodeError::new("distinct values", "some", distinct)),
        }
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.from.head.u8("flag of a column")? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::new("flag of a column", "0 or 1", other)),
        }
    }

    /// Each value stands in some row: the budget is that of all rows' bytes.
    fn values(&mut self, count: usize) -> Result<Values, DecodeError> {
        if self.physical.is_integer() {
            let size = self.physical.size().unwrap_or(8);
            self.budget.take(count * size)?;
            let values = ints::take(self.from, count)?;
            if size < 8 && values.iter().any(|value| value >> (8 * size) != 0) {
                return Err(DecodeError::new("integer", format_args!("{size} bytes"), "more"));
            }
            return Ok(Values::Integers(values));
        }
        let lengths = match self.physical.size() {
            Some(size) => {
                self.budget.take(count.saturating_mul(size))?;
                vec![size as u64; count]
            }
            None => {
                let lengths = ints::take(self.from, count)?;
                let total = lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
                self.budget
                    .take(total.and_then(|total| usize::try_from(total).ok()).unwrap_or(usize::MAX))?;
                lengths
            }
        };
        let text = strings::take(self.from, &lengths)?.into_owned();
        let mut start = 0;
        let spans = lengths.into_iter().map(|len| {
            let span = Span { start, len: len as u32 };
            start += span.len;
            span
        });
        let spans: Vec<Span> = spans.collect();
        Ok(Values::Strings { spans, text })
    }
}
