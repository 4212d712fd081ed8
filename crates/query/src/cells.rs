//! Cells: one column of some rows, ready to be computed with.
//!
//! A vector of the storage ([`Vector`]) has the bytes of its values in one of several forms; cells have numbers or texts,
//! and keep the form: where the storage names entries of a dictionary, cells do, so that whoever computes can do it once
//! for each entry. Rows are picked ([`Cells::pick`]) by copying small numbers, or by naming them: texts are never copied.

use std::borrow::Cow;

use pando_column::vector::{Nulls, Strings, Values, Vector};

use crate::column::{Form, Place};
use crate::decimal;
use crate::words::{be_words, le_words};

/// Which entry each row has.
#[derive(Clone, Debug)]
pub enum Codes<'a> {
    /// Each its own, in order.
    Own,
    /// All the first.
    First,
    /// By its number.
    Of(Cow<'a, [u32]>),
}

/// The values, also those of NULLs, which mean nothing.
#[derive(Clone, Debug)]
pub enum Entries<'a> {
    /// Numbers that fit into 64 bits.
    Small(Cow<'a, [i64]>),
    /// Numbers.
    Large(Cow<'a, [i128]>),
    /// Texts.
    Texts(Cow<'a, Strings>),
    /// Nobody asks.
    Presence,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    /// How many.
    pub rows: usize,
    /// Which are NULL.
    pub nulls: Option<Cow<'a, Nulls>>,
    /// Which entry each row has.
    pub codes: Codes<'a>,
    /// The values.
    pub entries: Entries<'a>,
}

/// A number for each row.
#[derive(Debug)]
pub(crate) enum Dense<'a> {
    Small(Cow<'a, [i64]>),
    Large(Cow<'a, [i128]>),
}

impl Codes<'_> {
    pub(crate) fn into_owned(self) -> Codes<'static> {
        match self {
            Codes::Own => Codes::Own,
            Codes::First => Codes::First,
            Codes::Of(codes) => Codes::Of(Cow::Owned(codes.into_owned())),
        }
    }
}

impl Dense<'_> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> i128 {
        match self {
            Dense::Small(values) => i128::from(values[row]),
            Dense::Large(values) => values[row],
        }
    }
}

impl Entries<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Entries::Small(values) => values.len(),
            Entries::Large(values) => values.len(),
            Entries::Texts(texts) => texts.len(),
            Entries::Presence => 0,
        }
    }

    fn borrowed(&self) -> Entries<'_> {
        match self {
            Entries::Small(values) => Entries::Small(Cow::Borrowed(values)),
            Entries::Large(values) => Entries::Large(Cow::Borrowed(values)),
            Entries::Texts(texts) => Entries::Texts(Cow::Borrowed(texts)),
            Entries::Presence => Entries::Presence,
        }
    }
}

impl<'a> Cells<'a> {
    /// What the storage has for a column. `None`: bytes that are not those of a value.
    pub fn of_vector(vector: &'a Vector, form: &Form, place: &Place) -> Option<Cells<'a>> {
        let rows = vector.rows();
        let nulls = vector.nulls();
        let cells = |codes, entries| Some(Cells { rows, nulls: nulls.map(Cow::Borrowed), codes, entries });
        if matches!(form, Form::Presence) {
            return cells(Codes::First, Entries::Presence);
        }
        if nulls.is_some_and(|nulls| nulls.count() == rows) {
            return cells(Codes::First, nothing(form));
        }
        match vector.values() {
            Values::Constant(value) => cells(Codes::First, one(value, form, place)?),
            Values::Fixed { width, bytes } => {
                cells(Codes::Own, fixed(bytes, *width, form, place, |row| vector.is_null(row))?)
            }
            Values::Varying(strings) => {
                cells(Codes::Own, strings_of(strings, form, place, |row| vector.is_null(row))?)
            }
            // An entry that no row has may be anything.
            Values::Dictionary { codes, entries } => {
                cells(Codes::Of(Cow::Borrowed(codes)), strings_of(entries, form, place, |_| false)?)
            }
        }
    }

    /// The entries of a dictionary. `None`: bytes that are not those of a value.
    pub fn of_entries(entries: &'a Strings, form: &Form, place: &Place) -> Option<Cells<'a>> {
        let values = strings_of(entries, form, place, |_| false)?;
        Some(Cells { rows: entries.len(), nulls: None, codes: Codes::Own, entries: values })
    }

    /// Numbers, one for each row.
    pub(crate) fn of_small(values: Vec<i64>, nulls: Option<Nulls>) -> Cells<'static> {
        let nulls = nulls.filter(|nulls| nulls.count() > 0).map(Cow::Owned);
        Cells { rows: values.len(), nulls, codes: Codes::Own, entries: Entries::Small(values.into()) }
    }

    /// As `of_small`, with numbers that may be larger.
    pub(crate) fn of_large(values: Vec<i128>, nulls: Option<Nulls>) -> Cells<'static> {
        let nulls = nulls.filter(|nulls| nulls.count() > 0).map(Cow::Owned);
        Cells { rows: values.len(), nulls, codes: Codes::Own, entries: Entries::Large(values.into()) }
    }

    /// The same number in all rows; `None`: NULL.
    pub(crate) fn constant(value: Option<i128>, rows: usize) -> Cells<'static> {
        let nulls = match value {
            Some(_) => None,
            None => Some(Nulls::from_words(vec![u64::MAX; rows.div_ceil(64)], rows)),
        };
        let value = value.unwrap_or(0);
        let entries = match i64::try_from(value) {
            Ok(value) => Entries::Small(vec![value].into()),
            Err(_) => Entries::Large(vec![value].into()),
        };
        Cells { rows, nulls: nulls.filter(|n| n.count() > 0).map(Cow::Owned), codes: Codes::First, entries }
    }

    /// Whether the row is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The entry of the row.
    #[inline]
    pub fn code(&self, row: usize) -> usize {
        match &self.codes {
            Codes::Own => row,
            Codes::First => 0,
            Codes::Of(codes) => codes[row] as usize,
        }
    }

    /// The number of an entry. Panics if it has none.
    #[inline]
    pub(crate) fn entry_number(&self, entry: usize) -> i128 {
        match &self.entries {
            Entries::Small(values) => i128::from(values[entry]),
            Entries::Large(values) => values[entry],
            Entries::Texts(_) | Entries::Presence => unreachable!("checked before: numbers are asked for"),
        }
    }

    /// The number of a row. Panics if it has none.
    #[inline]
    pub(crate) fn dense_at(&self, row: usize) -> i128 {
        self.entry_number(self.code(row))
    }

    /// The texts. Panics if there are none.
    pub(crate) fn texts(&self) -> &Strings {
        match &self.entries {
            Entries::Texts(texts) => texts,
            _ => unreachable!("checked before: texts are asked for"),
        }
    }

    /// Some of the rows, in any order and as often as wanted.
    pub(crate) fn pick(&self, rows: &[u32]) -> Cells<'_> {
        let nulls = self.nulls.as_deref().map(|nulls| {
            let mut picked = Nulls::new();
            rows.iter().for_each(|row| picked.push(nulls.is_null(*row as usize)));
            picked
        });
        let nulls = nulls.filter(|nulls| nulls.count() > 0).map(Cow::Owned);
        let count = rows.len();
        let (codes, entries) = match (&self.codes, &self.entries) {
            (Codes::First, entries) => (Codes::First, entries.borrowed()),
            (Codes::Of(codes), entries) => {
                let picked: Vec<u32> = rows.iter().map(|row| codes[*row as usize]).collect();
                (Codes::Of(picked.into()), entries.borrowed())
            }
            (Codes::Own, Entries::Small(values)) => {
                let picked: Vec<i64> = rows.iter().map(|row| values[*row as usize]).collect();
                (Codes::Own, Entries::Small(picked.into()))
            }
            (Codes::Own, Entries::Large(values)) => {
                let picked: Vec<i128> = rows.iter().map(|row| values[*row as usize]).collect();
                (Codes::Own, Entries::Large(picked.into()))
            }
            (Codes::Own, Entries::Texts(texts)) => {
                (Codes::Of(rows.to_vec().into()), Entries::Texts(Cow::Borrowed(texts)))
            }
            (Codes::Own, Entries::Presence) => (Codes::First, Entries::Presence),
        };
        Cells { rows: count, nulls, codes, entries }
    }

    /// A number for each row. Panics if there are none.
    pub(crate) fn dense(&self) -> Dense<'_> {
        match (&self.entries, &self.codes) {
            (Entries::Small(values), Codes::Own) => Dense::Small(Cow::Borrowed(values)),
            (Entries::Large(values), Codes::Own) => Dense::Large(Cow::Borrowed(values)),
            (Entries::Small(values), Codes::First) => Dense::Small(vec![values[0]; self.rows].into()),
            (Entries::Large(values), Codes::First) => Dense::Large(vec![values[0]; self.rows].into()),
            (Entries::Small(values), Codes::Of(codes)) => {
                Dense::Small(codes.iter().map(|code| values[*code as usize]).collect())
            }
            (Entries::Large(values), Codes::Of(codes)) => {
                Dense::Large(codes.iter().map(|code| values[*code as usize]).collect())
            }
            _ => unreachable!("checked before: numbers are asked for"),
        }
    }
}

/// Something for rows that are all NULL.
fn nothing(form: &Form) -> Entries<'static> {
    match form {
        Form::Text(_) => {
            let mut texts = Strings::new();
            texts.push(b"");
            Entries::Texts(Cow::Owned(texts))
        }
        _ => Entries::Small(vec![0].into()),
    }
}

fn one<'a>(value: &[u8], form: &Form, place: &Place) -> Option<Entries<'a>> {
    if let Form::Text(_) = form {
        let mut texts = Strings::new();
        texts.push(value);
        return Some(Entries::Texts(Cow::Owned(texts)));
    }
    Some(narrowed(vec![number(value, form, place)?]))
}

fn strings_of<'a>(
    strings: &'a Strings,
    form: &Form,
    place: &Place,
    is_null: impl Fn(usize) -> bool,
) -> Option<Entries<'a>> {
    if let Form::Text(_) = form {
        return Some(Entries::Texts(Cow::Borrowed(strings)));
    }
    if let Some((width, bytes)) = strings.of_one_width() {
        return fixed(bytes, width, form, place, is_null);
    }
    let one = |row| if is_null(row) { Some(0) } else { number(strings.get(row), form, place) };
    Some(narrowed((0..strings.len()).map(one).collect::<Option<Vec<_>>>()?))
}

fn narrowed(values: Vec<i128>) -> Entries<'static> {
    let small: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
    match small {
        Some(small) => Entries::Small(small.into()),
        None => Entries::Large(values.into()),
    }
}

/// Values of one width, one after the other.
fn fixed(
    bytes: &[u8],
    width: usize,
    form: &Form,
    place: &Place,
    is_null: impl Fn(usize) -> bool,
) -> Option<Entries<'static>> {
    if let (Form::Signed | Form::Unsigned, Place::Stored(_)) = (form, place) {
        return integers(bytes, width, matches!(form, Form::Signed));
    }
    if let (Form::Signed | Form::Unsigned, Some(is_reversed)) = (form, place.is_reversed_key()) {
        if let Some(entries) = key_integers(bytes, width, matches!(form, Form::Signed), is_reversed) {
            return Some(entries);
        }
    }
    if let (Form::Year, Place::Stored(_), 1) = (form, place, width) {
        return Some(Entries::Small(bytes.iter().map(|byte| year(*byte)).collect()));
    }
    if let Form::Text(_) = form {
        let mut texts = Strings::new();
        bytes.chunks_exact(width).for_each(|value| texts.push(value));
        return Some(Entries::Texts(Cow::Owned(texts)));
    }
    if let (Form::Decimal { precision, scale }, Place::Stored(_)) = (form, place) {
        if let Some(shape) = decimal::SmallShape::new(*precision, *scale).filter(|s| s.bytes() == width) {
            return Some(Entries::Small(shape.decode(bytes).into()));
        }
    }
    if let (Form::Ordered, None | Some(false), 1..=7) = (form, place.is_reversed_key(), width) {
        return Some(Entries::Small(be_words(bytes, width, |word| word as i64).into()));
    }
    let one = |(row, value)| if is_null(row) { Some(0) } else { number(value, form, place) };
    Some(narrowed(bytes.chunks_exact(width).enumerate().map(one).collect::<Option<Vec<_>>>()?))
}

/// Integers as keys have them: big-endian, the sign inverted, and all bits if the order is reversed. `None`: some do not fit
/// into 64 bits with a sign, or the width is none of an integer.
fn key_integers(bytes: &[u8], width: usize, is_signed: bool, is_reversed: bool) -> Option<Entries<'static>> {
    let unused = 64u32.checked_sub(8 * width as u32).filter(|_| width > 0)?;
    let sign = if is_signed { 1u64 << (8 * width - 1) } else { 0 };
    let inverted = sign ^ if is_reversed { u64::MAX >> unused } else { 0 };
    let value = |word: u64| {
        let word = word ^ inverted;
        if is_signed {
            (word << unused) as i64 >> unused
        } else {
            word as i64
        }
    };
    let values: Vec<i64> = be_words(bytes, width, value);
    let has_large = !is_signed && width == 8 && values.iter().any(|value| *value < 0);
    (!has_large).then_some(Entries::Small(values.into()))
}

fn integers(bytes: &[u8], width: usize, is_signed: bool) -> Option<Entries<'static>> {
    macro_rules! all {
        ($type:ty) => {
            bytes
                .as_chunks_of()
                .map(|value: [u8; size_of::<$type>()]| <$type>::from_le_bytes(value) as i64)
                .collect::<Vec<i64>>()
        };
    }
    let values = match (width, is_signed) {
        (1, true) => bytes.iter().map(|byte| i64::from(*byte as i8)).collect(),
        (1, false) => bytes.iter().map(|byte| i64::from(*byte)).collect(),
        (2, true) => all!(i16),
        (2, false) => all!(u16),
        (4, true) => all!(i32),
        (4, false) => all!(u32),
        (8, true) => all!(i64),
        (8, false) => {
            let values = all!(i64);
            // Beyond what has a sign.
            if values.iter().fold(0, |all, value| all | value) < 0 {
                return Some(Entries::Large(values.iter().map(|value| i128::from(*value as u64)).collect()));
            }
            values
        }
        (3, _) => le_integers::<3>(bytes, is_signed),
        (5, _) => le_integers::<5>(bytes, is_signed),
        (6, _) => le_integers::<6>(bytes, is_signed),
        (7, _) => le_integers::<7>(bytes, is_signed),
        _ => return None,
    };
    Some(Entries::Small(values.into()))
}

/// Integers of a width that no type has, little-endian: each is read as a word with what lies behind it, which is dropped.
fn le_integers<const W: usize>(bytes: &[u8], is_signed: bool) -> Vec<i64> {
    let unused = 64 - 8 * W as u32;
    match is_signed {
        true => le_words::<W>(bytes, |word| (word << unused) as i64 >> unused),
        false => le_words::<W>(bytes, |word| (word & (u64::MAX >> unused)) as i64),
    }
}

trait ChunksOf {
    /// Pieces of a fixed size as arrays.
    fn as_chunks_of<const N: usize>(&self) -> impl Iterator<Item = [u8; N]>;
}

impl ChunksOf for [u8] {
    fn as_chunks_of<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> {
        self.chunks_exact(N).map(|piece| piece.try_into().expect("a piece has its size"))
    }
}

/// The year that the byte of a YEAR stands for. The order of bytes is that of years, so zone maps hold.
fn year(byte: u8) -> i64 {
    if byte == 0 {
        0
    } else {
        1900 + i64::from(byte)
    }
}

/// One value. `None`: the bytes are not those of one.
pub fn number(bytes: &[u8], form: &Form, place: &Place) -> Option<i128> {
    let mut of_key = [0u8; 16];
    let mut bytes = bytes;
    if let Some(is_reversed) = place.is_reversed_key() {
        // Integers are big-endian in keys, with their sign inverted.
        let mask = if is_reversed { 0xff } else { 0 };
        let value = of_key.get_mut(..bytes.len())?;
        value.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte ^ mask);
        if let Form::Signed | Form::Unsigned = form {
            if let (Form::Signed, Some(first)) = (form, value.first_mut()) {
                *first ^= 0x80;
            }
            value.reverse();
        }
        bytes = value;
    }
    let size = bytes.len();
    match form {
        Form::Signed | Form::Unsigned if (1..=8).contains(&size) => {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let value = u64::from_le_bytes(word);
            if matches!(form, Form::Unsigned) {
                return Some(i128::from(value));
            }
            let unused = 64 - 8 * size as u32;
            Some(i128::from((value << unused) as i64 >> unused))
        }
        Form::Decimal { precision, scale } => decimal::decode(bytes, *precision, *scale),
        Form::Year if size == 1 => Some(year(bytes[0]).into()),
        Form::Ordered if size <= 15 => {
            Some(bytes.iter().fold(0, |value, byte| value << 8 | i128::from(*byte)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All values of a column at once are what they are one by one, for every width, sign and number of rows.
    #[test]
    fn integers_are_those_of_single_values() {
        let bytes: Vec<u8> = (0..20 * 8u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        for (width, is_signed, rows) in (1..=8)
            .flat_map(|width| (0..=20).flat_map(move |rows| [(width, false, rows), (width, true, rows)]))
        {
            let form = if is_signed { Form::Signed } else { Form::Unsigned };
            let place = Place::Stored(0);
            let bytes = &bytes[..rows * width];
            let one = |value| number(value, &form, &place).expect("bytes of an integer");
            let expected: Vec<i128> = bytes.chunks_exact(width).map(one).collect();
            let all: Vec<i128> =
                match fixed(bytes, width, &form, &place, |_| false).expect("bytes of integers") {
                    Entries::Small(values) => values.iter().map(|value| i128::from(*value)).collect(),
                    Entries::Large(values) => values.to_vec(),
                    other => panic!("{other:?}"),
                };
            assert_eq!(all, expected, "width {width}, signed {is_signed}");
        }
    }

    /// All values of a column at once are what they are one by one, for every width, sign and order of keys.
    #[test]
    fn integers_of_keys_are_those_of_single_values() {
        let mut state = 7u64;
        for (width, is_signed, is_reversed) in (1..=8).flat_map(|width| {
            [(width, false, false), (width, true, false), (width, false, true), (width, true, true)]
        }) {
            let form = if is_signed { Form::Signed } else { Form::Unsigned };
            let place = Place::Key { offset: 0, size: width, is_reversed };
            let mut bytes = vec![0u8; width];
            bytes.extend(vec![0xff; width]);
            bytes.extend((0..100 * width).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            }));
            let one = |value| number(value, &form, &place).expect("bytes of a key");
            let expected: Vec<i128> = bytes.chunks_exact(width).map(one).collect();
            let all = fixed(&bytes, width, &form, &place, |_| false).expect("bytes of keys");
            let all: Vec<i128> = match &all {
                Entries::Small(values) => values.iter().map(|value| i128::from(*value)).collect(),
                Entries::Large(values) => values.to_vec(),
                other => panic!("{other:?}"),
            };
            assert_eq!(all, expected, "width {width}, signed {is_signed}, reversed {is_reversed}");
        }
    }
}
