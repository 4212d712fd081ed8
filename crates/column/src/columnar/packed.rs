//! A segment as it is stored, of which single rows are taken: what a cache that is short of room holds.
//!
//! A decoded segment is two to six times as large as its block, and costs as much to decode whether one row is wanted of it or all. Here
//! the head is decompressed once, and the place of each column's values and numbers is noted; a lookup then reads the keys, and one value
//! of each column. A stream that is compressed is decompressed as a whole each time.
//!
//! Such point-decodable blocks are what BtrBlocks (Kuschewski et al., SIGMOD 2023) and Lance v2 take their lookups from.
#![deny(clippy::indexing_slicing)]

use std::sync::Arc;

use pando_base::{Kind, Seqno};

use super::codes::{DICTIONARY, FROM_KEYS, GROUPS_MAX, MAPPED, NULLS, PLAIN};
use super::decode::{Budget, ColumnReader};
use super::segment::{self, open, Header};
use super::shape::{Form, Physical, Shape};
use super::streams::{Source, Spot};
use super::{ints, keys, strings};
use crate::format::CODEC_COLUMNS;
use crate::segment::Segment;
use crate::wire::{put_varint, DecodeError};

/// A segment of columns, as stored but for its head. All its rows are of one shape.
#[derive(Debug)]
pub struct Packed {
    header: Header,
    /// Decompressed.
    head: Box<[u8]>,
    data: Box<[u8]>,
    /// What streams may be compressed against.
    common: Arc<[u8]>,
    /// What the records were numbered with afterwards, if they were written without a seqno.
    seqno: Option<Seqno>,
    keys_at: Spot,
    shape: Shape,
    /// By position in the shape.
    columns: Box<[Place]>,
}

/// Where a column is.
#[derive(Clone, Copy, Debug)]
struct Place {
    encoding: u8,
    /// Plain: there are NULLs, whose flags stand before the values. Dictionary: number 0 is NULL.
    has_null: bool,
    /// Numbers of a dictionary, NULL included.
    distinct: u32,
    /// Position of the column that the numbers follow from.
    determinant: Determinant,
    values: Spot,
    /// Numbers of a dictionary.
    codes: Spot,
}

#[derive(Clone, Copy, Debug)]
enum Determinant {
    /// The rows have numbers of their own.
    Rows,
    Keys,
    Column(u16),
}

/// A record that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    number: usize,
    /// The number of its key's head and how many heads there are, if they are numbered.
    head: Option<(usize, usize)>,
    /// Its commit.
    pub seqno: Seqno,
    /// Put or Delete.
    pub kind: Kind,
}

/// What a segment has of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// The newest version of the key that the snapshot sees.
    Found(Row),
    /// None.
    Absent,
    /// All of the segment is before it.
    Beyond,
}

/// One value of a column.
enum Cell {
    Null,
    Integer(u64),
    Text(Vec<u8>),
}

impl Packed {
    /// A segment's payload, which may be any bytes. `None`: it is not by columns, or has rows of several shapes, and has to be decoded as a whole.
    ///
    /// # Errors
    /// [`DecodeError`] if no builder wrote it.
    pub fn open(codec: u8, bytes: &[u8], common: &Arc<[u8]>) -> Result<Option<Packed>, DecodeError> {
        if codec != CODEC_COLUMNS {
            return Ok(None);
        }
        let (header, head, data) = open(bytes, common)?;
        let all = Source::new(&head, data).on(common);
        let spot = |from: &Source<'_>| all.distance_to(from);
        let mut from = all;
        ints::skip(&mut from, header.rows)?;
        let keys_at = spot(&from);
        keys::skip(&mut from, header.rows, header.key_bytes)?;
        if from.count(GROUPS_MAX, "groups of records")? != 1 {
            return Ok(None);
        }
        let shape = Shape::take(&mut from)?;
        let mut finder = Finder { all, header: &header, keys_at, columns: Vec::new(), order: Vec::new() };
        let columns = finder.find(&mut from, &shape)?;
        let Some(columns) = columns else { return Ok(None) };
        from.end()?;
        let (head, data) = (head.into_owned().into_boxed_slice(), data.into());
        Ok(Some(Packed { header, head, data, common: common.clone(), seqno: None, keys_at, shape, columns }))
    }

    /// Records.
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// Bytes of its allocations beyond the struct itself; what segments have in common is not counted.
    pub fn heap_bytes(&self) -> [usize; 4] {
        let forms = match &self.shape {
            Shape::Rows { forms, .. } => forms.capacity() * size_of::<Form>(),
            Shape::None | Shape::Whole => 0,
        };
        [self.head.len(), self.data.len(), size_of_val(&*self.columns), forms]
    }

    /// Gives every record the seqno `seqno`, if they were written without one (as 0).
    pub fn number(&mut self, seqno: Seqno) {
        self.seqno = Some(seqno);
    }

    /// Looks for the newest version of `key` up to `snapshot`, in the segment that begins with `first_key`.
    ///
    /// # Errors
    /// [`DecodeError`] if it does not, or if the keys are none that a builder wrote.
    pub fn find(&self, key: &[u8], snapshot: Seqno, first_key: &[u8]) -> Result<Search, DecodeError> {
        let sought = self.seek(key, first_key)?;
        let (rows, end) = (self.header.rows, sought.rows.end);
        for number in sought.rows {
            let seqno = self.seqno(number)?;
            if seqno <= snapshot {
                let kind = if self.shape == Shape::None { Kind::Delete } else { Kind::Put };
                return Ok(Search::Found(Row { number, head: sought.head, seqno, kind }));
            }
        }
        Ok(if end == rows { Search::Beyond } else { Search::Absent })
    }

    /// The first record whose key is `key` or greater, in the segment that begins with `first_key`; `rows()` if there is none.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn lower_bound(&self, key: &[u8], first_key: &[u8]) -> Result<usize, DecodeError> {
        Ok(self.seek(key, first_key)?.rows.start)
    }

    fn seek(&self, key: &[u8], first_key: &[u8]) -> Result<keys::Sought, DecodeError> {
        let (rows, key_bytes) = (self.header.rows, self.header.key_bytes);
        keys::seek(&mut self.source(self.keys_at), rows, key_bytes, key, first_key)
    }

    /// The value of a record that [`Self::find`] found in this segment; empty for a Delete.
    ///
    /// # Errors
    /// [`DecodeError`] if the columns are none that a builder wrote.
    pub fn value(&self, row: &Row) -> Result<Vec<u8>, DecodeError> {
        let mut out = self.shape.prefix();
        let null_at = out.len();
        out.resize(null_at + self.shape.null_bytes(), 0);
        let mut nullable = 0;
        for (form, place) in self.shape.forms().iter().zip(&self.columns) {
            let cell = self.cell(form.physical, place, row)?;
            let is_null = matches!(cell, Cell::Null);
            if is_null && !form.nullable {
                return Err(DecodeError::new("values of a column", "no NULL", "NULL"));
            }
            if is_null {
                if let Some(byte) = out.get_mut(null_at + nullable / 8) {
                    *byte |= 1 << (nullable % 8);
                }
            }
            nullable += usize::from(form.nullable);
            match cell {
                Cell::Null => {}
                Cell::Integer(n) => {
                    let size = form.physical.size().unwrap_or(8);
                    out.extend_from_slice(form.physical.bytes_of(n).get(..size).unwrap_or_default());
                }
                Cell::Text(text) => {
                    if form.physical == Physical::Counted {
                        put_varint(&mut out, text.len() as u64);
                    }
                    out.extend_from_slice(&text);
                }
            }
        }
        Ok(out)
    }

    /// All of it.
    ///
    /// # Errors
    /// [`DecodeError`] if no builder wrote it.
    pub fn decode(&self) -> Result<Segment, DecodeError> {
        let mut segment = segment::decode_streams(&self.header, &self.head, &self.data, &self.common)?;
        if let Some(seqno) = self.seqno {
            segment.number(seqno);
        }
        Ok(segment)
    }

    fn source(&self, at: Spot) -> Source<'_> {
        Source::new(&self.head, &self.data).on(&self.common).at(at)
    }

    fn seqno(&self, row: usize) -> Result<Seqno, DecodeError> {
        let delta = ints::get(&mut self.source(Spot::default()), self.header.rows, row)?;
        let seqno = self.header.base.checked_add(delta);
        let seqno = seqno.ok_or_else(|| DecodeError::new("seqno", "64 bits", "more"))?;
        Ok(self.seqno.filter(|_| seqno == 0).unwrap_or(seqno))
    }

    fn cell(&self, physical: Physical, place: &Place, row: &Row) -> Result<Cell, DecodeError> {
        let rows = self.header.rows;
        let mut values = self.source(place.values);
        match place.encoding {
            PLAIN if place.has_null => {
                let nulls = ints::take(&mut values, rows)?;
                let before = nulls.get(..row.number).unwrap_or_default();
                let (before, all) = (count_zeros(before), count_zeros(&nulls));
                match nulls.get(row.number) {
                    Some(0) => self.value_at(values, physical, all, before),
                    _ => Ok(Cell::Null),
                }
            }
            PLAIN => self.value_at(values, physical, rows, row.number),
            DICTIONARY | MAPPED => {
                let skipped = usize::from(place.has_null);
                match self.code(place, row)?.checked_sub(skipped) {
                    None => Ok(Cell::Null),
                    Some(at) => self.value_at(values, physical, place.distinct as usize - skipped, at),
                }
            }
            _ => Ok(Cell::Null),
        }
    }

    /// The number of a row's value. What a column follows from stands before it, so this ends.
    fn code(&self, place: &Place, row: &Row) -> Result<usize, DecodeError> {
        let (count, at) = match place.determinant {
            Determinant::Rows => (self.header.rows, row.number),
            Determinant::Keys => {
                let (head, count) = row.head.ok_or_else(no_heads)?;
                (count, head)
            }
            Determinant::Column(from) => match self.columns.get(usize::from(from)) {
                Some(from) => (from.distinct as usize, self.code(from, row)?),
                None => return Err(DecodeError::new("determinant of a column", "a column", from)),
            },
        };
        let code = ints::get(&mut self.source(place.codes), count, at)?;
        match code < u64::from(place.distinct) {
            true => Ok(code as usize),
            false => {
                Err(DecodeError::new("number of a value", format_args!("below {}", place.distinct), code))
            }
        }
    }

    /// Value `at` of `count`.
    fn value_at(
        &self,
        mut from: Source<'_>,
        physical: Physical,
        count: usize,
        at: usize,
    ) -> Result<Cell, DecodeError> {
        if physical.is_integer() {
            let value = ints::get(&mut from, count, at)?;
            let size = physical.size().unwrap_or(8);
            return match size < 8 && value >> (8 * size) != 0 {
                true => Err(DecodeError::new("integer", format_args!("{size} bytes"), "more")),
                false => Ok(Cell::Integer(value)),
            };
        }
        let lengths = match physical.size() {
            Some(size) => vec![size as u64; count],
            None => ints::take(&mut from, count)?,
        };
        // Each value stands in some row; this bounds memory.
        let total = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
        if total > self.header.value_bytes as u64 {
            return Err(DecodeError::new(
                "bytes of values",
                format_args!("at most {}", self.header.value_bytes),
                total,
            ));
        }
        Ok(Cell::Text(strings::get(&mut from, &lengths, at)?.into_owned()))
    }
}

fn count_zeros(flags: &[u64]) -> usize {
    flags.iter().filter(|flag| **flag == 0).count()
}

fn no_heads() -> DecodeError {
    DecodeError::new("determinant of a column", "a column", "keys")
}

/// Notes where the columns are.
struct Finder<'a, 'h> {
    /// Head and data from their beginning.
    all: Source<'a>,
    header: &'h Header,
    keys_at: Spot,
    columns: Vec<Option<Place>>,
    /// Positions, by place in what is written.
    order: Vec<usize>,
}

impl<'a> Finder<'a, '_> {
    /// `None`: there are more columns than can be noted.
    fn find(&mut self, from: &mut Source<'a>, shape: &Shape) -> Result<Option<Box<[Place]>>, DecodeError> {
        let forms = shape.forms();
        if u16::try_from(forms.len()).is_err() {
            return Ok(None);
        }
        self.columns = vec![None; forms.len()];
        for _ in 0..forms.len() {
            let what = "number of a column";
            let at = from.count(forms.len() - 1, what)?;
            let (Some(form), Some(None)) = (forms.get(at), self.columns.get(at)) else {
                return Err(DecodeError::new(what, "each once", at));
            };
            let place = self.place(from, form.physical)?;
            if let Some(slot) = self.columns.get_mut(at) {
                *slot = Some(place);
            }
            self.order.push(at);
        }
        Ok(Some(std::mem::take(&mut self.columns).into_iter().flatten().collect()))
    }

    fn place(&self, from: &mut Source<'a>, physical: Physical) -> Result<Place, DecodeError> {
        let rows = self.header.rows;
        let encoding = from.head.u8("encoding of a column")?;
        let mut place = Place {
            encoding,
            has_null: false,
            distinct: 0,
            determinant: Determinant::Rows,
            values: Spot::default(),
            codes: Spot::default(),
        };
        let mut budget = Budget::new(self.header.value_bytes);
        match encoding {
            NULLS => {}
            PLAIN => {
                let mut ahead = *from;
                place.has_null =
                    ColumnReader { from: &mut ahead, physical, rows, budget: &mut budget }.flag()?;
                place.values = self.all.distance_to(&ahead);
                ColumnReader { from, physical, rows, budget: &mut budget }.skip_plain()?;
            }
            DICTIONARY | MAPPED => {
                let mut reader = ColumnReader { from, physical, rows, budget: &mut budget };
                let (distinct, has_null, count) = reader.distinct()?;
                place.distinct = distinct as u32;
                place.has_null = has_null;
                place.values = self.all.distance_to(reader.from);
                reader.skip_values(count)?;
                let mut codes = rows;
                if encoding == MAPPED {
                    (place.determinant, codes) = self.determinant(from)?;
                }
                place.codes = self.all.distance_to(from);
                ints::skip(from, codes)?;
            }
            other => return Err(DecodeError::new("encoding of a column", "0 to 3", other)),
        }
        Ok(place)
    }

    /// What a mapped column follows from, and how many numbers that has.
    fn determinant(&self, from: &mut Source<'a>) -> Result<(Determinant, usize), DecodeError> {
        let what = "determinant of a column";
        let name = from.length(what)?;
        if name == FROM_KEYS {
            let mut keys_at = self.all.at(self.keys_at);
            let keys = keys::take(&mut keys_at, self.header.rows, self.header.key_bytes)?;
            let last = keys.heads.last().ok_or_else(no_heads)?;
            return Ok((Determinant::Keys, usize::from(*last) + 1));
        }
        let at = name.checked_sub(1).and_then(|at| self.order.get(at).copied());
        let place = at.and_then(|at| Some((at, (*self.columns.get(at)?)?)));
        match place.filter(|(_, place)| matches!(place.encoding, DICTIONARY | MAPPED)) {
            Some((at, place)) => Ok((Determinant::Column(at as u16), place.distinct as usize)),
            None => Err(DecodeError::new(what, "a dictionary's column", name)),
        }
    }
}
