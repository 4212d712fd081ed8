//! Single columns of a segment, as vectors: only what is wanted is decompressed.
//!
//! 1. Read the head up to where the columns begin, and see whether all records are rows of one layout.
//! 2. Go past the columns, keeping the place of each, until those that are wanted have been met. What a column
//!    follows from stands before it.
//! 3. Decode the wanted ones, and the numbers that they follow from.
#![deny(clippy::indexing_slicing)]

use super::codes::{DICTIONARY, FROM_KEYS, GROUPS_MAX, MAPPED, NULLS, PLAIN};
use super::decode::{narrow, Budget, Column, ColumnReader, Values};
use super::ints;
use super::keys::{self, TakenKeys};
use super::segment::{open, Header};
use super::shape::{Form, Physical, Shape, Span};
use super::streams::Source;
use crate::format::CODEC_COLUMNS;
use crate::layout::Layouts;
use crate::vector::{self, Nulls, Strings, Vector};
use crate::wire::DecodeError;

/// What is wanted of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The column with this id.
    Column(u32),
    /// These bytes of the key.
    Key {
        /// Where they begin.
        offset: usize,
        /// How many; not 0.
        size: usize,
    },
    /// The whole key.
    WholeKey,
}

/// What was found.
#[derive(Debug)]
pub struct Picked {
    /// The layout that the rows were written in; values are in the form that their columns have there.
    pub version: u32,
    /// How many.
    pub rows: usize,
    /// For each pick; `None` for a column that the layout does not have.
    pub vectors: Vec<Option<Vector>>,
}

/// The picked columns of a segment's payload, which may be any bytes. `None`: it is not one of rows of a single layout
/// that is among `layouts`, or has keys without the picked bytes: it has to be read row by row.
pub fn pick(
    codec: u8,
    bytes: &[u8],
    common: &[u8],
    layouts: &Layouts,
    picks: &[Pick],
) -> Result<Option<Picked>, DecodeError> {
    if codec != CODEC_COLUMNS {
        return Ok(None);
    }
    let (header, head, data) = open(bytes, common)?;
    let mut from = Source::new(&head, data).on(common);
    ints::skip(&mut from, header.rows)?;
    let keys_at = from;
    keys::skip(&mut from, header.rows, header.key_bytes)?;
    if from.count(GROUPS_MAX, "groups of records")? != 1 {
        return Ok(None);
    }
    let shape = Shape::take(&mut from)?;
    let Shape::Rows { version, forms } = &shape else { return Ok(None) };
    let Some(layout) = layouts.get(*version).filter(|layout| Shape::of(layout).as_ref() == Some(&shape))
    else {
        return Ok(None);
    };
    let position = |pick: &Pick| match pick {
        Pick::Column(id) => layout.columns.iter().position(|column| column.id == *id),
        Pick::Key { .. } | Pick::WholeKey => None,
    };
    let positions: Vec<Option<usize>> = picks.iter().map(position).collect();
    let budget = Budget::new(header.value_bytes.saturating_mul(picks.len()));
    let mut picker =
        Picker { header: &header, forms, budget, keys_at, keys: None, places: Vec::new(), order: Vec::new() };
    picker.find(&mut from, &positions)?;
    let mut vectors = Vec::with_capacity(picks.len());
    for (pick, position) in picks.iter().zip(&positions) {
        vectors.push(match (pick, position) {
            (_, Some(at)) => Some(picker.vector(*at)?),
            (Pick::Column(_), None) => None,
            (Pick::Key { offset, size }, None) => match picker.key_vector(*offset, *size)? {
                Some(vector) => Some(vector),
                None => return Ok(None),
            },
            (Pick::WholeKey, None) => Some(picker.whole_keys()?),
        });
    }
    Ok(Some(Picked { version: *version, rows: header.rows, vectors }))
}

/// Where a column's bytes are.
#[derive(Clone, Copy)]
struct Place<'a> {
    encoding: u8,
    /// How many columns stand before it.
    before: usize,
    /// After the encoding.
    at: Source<'a>,
}

struct Picker<'a> {
    header: &'a Header,
    forms: &'a [Form],
    budget: Budget,
    keys_at: Source<'a>,
    keys: Option<TakenKeys>,
    /// By position in the shape; of those that were met.
    places: Vec<Option<Place<'a>>>,
    /// Positions, by place in what is written.
    order: Vec<usize>,
}

impl<'a> Picker<'a> {
    /// Goes over the columns until those at `positions` were met.
    fn find(&mut self, from: &mut Source<'a>, positions: &[Option<usize>]) -> Result<(), DecodeError> {
        self.places = vec![None; self.forms.len()];
        let is_missing = |places: &[Option<Place<'_>>], at: &usize| matches!(places.get(*at), Some(None));
        while positions.iter().flatten().any(|at| is_missing(&self.places, at)) {
            let what = "number of a column";
            let at = from.count(self.forms.len().saturating_sub(1), what)?;
            let (Some(form), true) = (self.forms.get(at), is_missing(&self.places, &at)) else {
                return Err(DecodeError::new(what, "each once", at));
            };
            let encoding = from.head.u8("encoding of a column")?;
            if let Some(place) = self.places.get_mut(at) {
                *place = Some(Place { encoding, before: self.order.len(), at: *from });
            }
            self.order.push(at);
            if positions.iter().flatten().all(|at| !is_missing(&self.places, at)) {
                break;
            }
            let rows = self.header.rows;
            let mut reader = ColumnReader { from, physical: form.physical, rows, budget: &mut self.budget };
            match encoding {
                NULLS => {}
                PLAIN => reader.skip_plain()?,
                DICTIONARY => {
                    reader.skip_dictionary()?;
                    ints::skip(from, rows)?;
                }
                MAPPED => {
                    reader.skip_dictionary()?;
                    let before = self.order.len() - 1;
                    let count = self.distinct_of_determinant(from, before)?;
                    ints::skip(from, count)?;
                }
                other => return Err(DecodeError::new("encoding of a column", "0 to 3", other)),
            }
        }
        Ok(())
    }

    /// How many numbers has what a mapped column follows from, before which so many columns stand.
    fn distinct_of_determinant(
        &mut self,
        from: &mut Source<'a>,
        before: usize,
    ) -> Result<usize, DecodeError> {
        match self.determinant(from, before)? {
            None => Ok(self.heads()?.1),
            Some((at, mut place)) => {
                let physical = self.physical(at);
                let (rows, budget) = (self.header.rows, &mut self.budget);
                ColumnReader { from: &mut place.at, physical, rows, budget }.skip_dictionary()
            }
        }
    }

    /// What a mapped column follows from, before which so many columns stand; `None`: keys.
    fn determinant(
        &self,
        from: &mut Source<'a>,
        before: usize,
    ) -> Result<Option<(usize, Place<'a>)>, DecodeError> {
        let what = "determinant of a column";
        let name = from.length(what)?;
        if name == FROM_KEYS {
            return Ok(None);
        }
        // Neither itself nor one behind it, or following it would have no end.
        let at = name.checked_sub(1).filter(|at| *at < before).and_then(|at| self.order.get(at).copied());
        let place = at.and_then(|at| Some((at, (*self.places.get(at)?)?)));
        match place.filter(|(_, place)| matches!(place.encoding, DICTIONARY | MAPPED)) {
            Some(found) => Ok(Some(found)),
            None => Err(DecodeError::new(what, "a dictionary's column", name)),
        }
    }

    fn physical(&self, at: usize) -> Physical {
        self.forms.get(at).map_or(Physical::Whole, |form| form.physical)
    }

    fn keys(&mut self) -> Result<&TakenKeys, DecodeError> {
        if self.keys.is_none() {
            let mut from = self.keys_at;
            self.keys = Some(keys::take(&mut from, self.header.rows, self.header.key_bytes)?);
        }
        match &self.keys {
            Some(keys) => Ok(keys),
            None => unreachable!("they were just read"),
        }
    }

    /// The number of each record's head, and of heads.
    fn heads(&mut self) -> Result<(&[u16], usize), DecodeError> {
        let heads = &self.keys()?.heads;
        match heads.last() {
            Some(last) => Ok((heads, usize::from(*last) + 1)),
            None => Err(DecodeError::new("determinant of a column", "a column", "keys")),
        }
    }

    /// The numbers of a dictionary or mapped column; `from` is after its values. A column can only follow from one
    /// that stands before it, so this ends.
    fn codes(
        &mut self,
        place: Place<'a>,
        mut from: Source<'a>,
        distinct: usize,
    ) -> Result<Vec<u16>, DecodeError> {
        if place.encoding == DICTIONARY {
            return narrow(ints::take(&mut from, self.header.rows)?, distinct);
        }
        let (codes, count) = match self.determinant(&mut from, place.before)? {
            None => {
                let (heads, count) = self.heads()?;
                (heads.to_vec(), count)
            }
            Some((at, mut place)) => {
                let physical = self.physical(at);
                let (rows, budget) = (self.header.rows, &mut self.budget);
                let count = ColumnReader { from: &mut place.at, physical, rows, budget }.skip_dictionary()?;
                (self.codes(place, place.at, count)?, count)
            }
        };
        let map = narrow(ints::take(&mut from, count)?, distinct)?;
        let codes: Option<Vec<u16>> = codes.iter().map(|code| map.get(usize::from(*code)).copied()).collect();
        codes.ok_or_else(|| DecodeError::new("map of a column", "a number for each", "fewer"))
    }

    fn vector(&mut self, at: usize) -> Result<Vector, DecodeError> {
        let (Some(form), Some(Some(place))) = (self.forms.get(at), self.places.get(at)) else {
            unreachable!("wanted columns were met");
        };
        let (form, place) = (*form, *place);
        let Place { encoding, at: mut from, .. } = place;
        let (rows, budget) = (self.header.rows, &mut self.budget);
        let mut reader = ColumnReader { from: &mut from, physical: form.physical, rows, budget };
        let column = match encoding {
            NULLS => Column::Nulls,
            PLAIN => reader.plain()?,
            DICTIONARY | MAPPED => {
                let (distinct, has_null, values) = reader.dictionary()?;
                Column::Coded { codes: self.codes(place, from, distinct)?, values, has_null }
            }
            other => return Err(DecodeError::new("encoding of a column", "0 to 3", other)),
        };
        Ok(to_vector(column, form.physical, rows))
    }

    /// Bytes of the keys; `None` if some key does not have them.
    fn key_vector(&mut self, offset: usize, size: usize) -> Result<Option<Vector>, DecodeError> {
        let rows = self.header.rows;
        let keys = &self.keys()?.keys;
        let mut bytes = Vec::with_capacity(rows.saturating_mul(size));
        let Some(end) = offset.checked_add(size) else { return Ok(None) };
        for row in 0..rows {
            match keys.get(row).get(offset..end) {
                Some(part) => bytes.extend_from_slice(part),
                None => return Ok(None),
            }
        }
        Ok(Some(Vector::new(rows, None, vector::Values::Fixed { width: size, bytes })))
    }

    fn whole_keys(&mut self) -> Result<Vector, DecodeError> {
        let rows = self.header.rows;
        let keys = &self.keys()?.keys;
        let mut all = Strings::new();
        (0..rows).for_each(|row| all.push(keys.get(row)));
        Ok(Vector::new(rows, None, vector::Values::Varying(all)))
    }
}

/// A dictionary of integers stays one if its entries are so few that conditions on them are cheap.
const ROWS_OF_ENTRY_MIN: usize = 4;

fn to_vector(column: Column, physical: Physical, rows: usize) -> Vector {
    match column {
        Column::Nulls => Vector::all_null(rows),
        Column::Plain { values, nulls } => {
            let bits = (!nulls.is_empty()).then(|| bits(nulls.iter().copied()));
            Vector::new(rows, bits, plain(values, physical, &nulls))
        }
        Column::Coded { codes, values, has_null } => coded(&codes, values, has_null, physical, rows),
    }
}

fn bits(nulls: impl Iterator<Item = bool>) -> Nulls {
    let mut bits = Nulls::new();
    nulls.for_each(|null| bits.push(null));
    bits
}

/// `nulls` is empty if there are none; then `values` are those of the others.
fn plain(values: Values, physical: Physical, nulls: &[bool]) -> vector::Values {
    match (values, physical.size()) {
        (Values::Integers(integers), _) if nulls.is_empty() => fixed(integers.into_iter(), physical),
        (Values::Integers(integers), _) => {
            let mut integers = integers.into_iter();
            fixed(nulls.iter().map(|null| if *null { 0 } else { integers.next().unwrap_or(0) }), physical)
        }
        (Values::Strings { spans, text }, size) => {
            let mut spans = spans.into_iter();
            let each = |null: bool| if null { Span::default() } else { spans.next().unwrap_or_default() };
            let rows: Vec<Span> = match nulls.is_empty() {
                true => spans.collect(),
                false => nulls.iter().copied().map(each).collect(),
            };
            match size {
                Some(width) => {
                    let mut bytes = Vec::with_capacity(rows.len() * width);
                    for span in rows {
                        bytes.extend_from_slice(part(&text, span));
                        // A NULL has bytes, too.
                        bytes.resize(bytes.len() + width - span.len as usize, 0);
                    }
                    vector::Values::Fixed { width, bytes }
                }
                None => vector::Values::Varying(strings(rows.into_iter(), &text)),
            }
        }
    }
}

fn coded(codes: &[u16], values: Values, has_null: bool, physical: Physical, rows: usize) -> Vector {
    let skipped = u16::from(has_null);
    let nulls = has_null.then(|| bits(codes.iter().map(|code| *code == 0)));
    let count = values.len();
    let number = |code: &u16| code.saturating_sub(skipped);
    if let (Values::Integers(integers), true) = (&values, count > 1 && count * ROWS_OF_ENTRY_MIN > rows) {
        let of = |code: &u16| integers.get(usize::from(number(code))).copied().unwrap_or(0);
        return Vector::new(rows, nulls, fixed(codes.iter().map(of), physical));
    }
    let entries = match &values {
        Values::Strings { spans, text } => strings(spans.iter().copied(), text),
        Values::Integers(integers) => {
            let width = physical.size().unwrap_or(8);
            let mut entries = Strings::new();
            for n in integers {
                entries.push(physical.bytes_of(*n).get(..width).unwrap_or_default());
            }
            entries
        }
    };
    if count == 1 {
        return Vector::new(rows, nulls, vector::Values::Constant(entries.get(0).to_vec()));
    }
    let codes = codes.iter().map(|code| u32::from(number(code))).collect();
    Vector::new(rows, nulls, vector::Values::Dictionary { codes, entries })
}

fn part(text: &[u8], span: Span) -> &[u8] {
    text.get(span.start as usize..).and_then(|rest| rest.get(..span.len as usize)).unwrap_or_default()
}

fn strings(spans: impl ExactSizeIterator<Item = Span>, text: &[u8]) -> Strings {
    let (mut ends, mut bytes) = (Vec::with_capacity(spans.len()), Vec::with_capacity(text.len()));
    for span in spans {
        bytes.extend_from_slice(part(text, span));
        // No more than the segment's values have in all.
        ends.push(bytes.len() as u32);
    }
    Strings::from_parts(ends, bytes)
}

/// A loop for each size, so that copies are of known length.
fn fixed(values: impl ExactSizeIterator<Item = u64>, physical: Physical) -> vector::Values {
    let width = physical.size().unwrap_or(8);
    let bytes = match width {
        1 => fixed_of::<1>(values, physical),
        2 => fixed_of::<2>(values, physical),
        3 => fixed_of::<3>(values, physical),
        4 => fixed_of::<4>(values, physical),
        5 => fixed_of::<5>(values, physical),
        6 => fixed_of::<6>(values, physical),
        7 => fixed_of::<7>(values, physical),
        _ => fixed_of::<8>(values, physical),
    };
    vector::Values::Fixed { width, bytes }
}

fn fixed_of<const SIZE: usize>(values: impl ExactSizeIterator<Item = u64>, physical: Physical) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * SIZE];
    for (place, value) in bytes.chunks_exact_mut(SIZE).zip(values) {
        if let Some(of) = physical.bytes_of(value).first_chunk::<SIZE>() {
            place.copy_from_slice(of);
        }
    }
    bytes
}
