//! Columns of rows in memory: what operators hand to each other.

use std::borrow::Cow;
use std::sync::Arc;

use pando_column::vector::{Strings, Values, Vector};
use pando_query::cells::{Cells, Codes, Entries};
use pando_query::{Failure, Form, Place, Why};

use crate::packing::Packing;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An integer of 64 bits with a sign.
    Signed,
    /// One without.
    Unsigned,
    /// A DECIMAL with so many digits behind the point.
    Decimal(u32),
    /// A DOUBLE.
    Real,
    /// A DATE, as the server stores it: `year * 512 + month * 32 + day`.
    Date,
    /// A DATETIME, packed as the server compares it.
    DateTime,
    /// A TIME, likewise.
    Time,
    /// Text in the collation with this number.
    Text(u32),
}

impl Kind {
    /// Digits behind the point.
    pub fn scale(self) -> u32 {
        match self {
            Kind::Decimal(scale) => scale,
            _ => 0,
        }
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Text(_))
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A number without its point; also of dates.
    Number(i128),
    /// A DOUBLE.
    Real(f64),
    /// A text.
    Text(Vec<u8>),
}

/// Where the texts of a column are.
#[derive(Clone, Debug)]
pub enum Dict {
    /// A vector of the storage: its entries, or its rows.
    Vector(Arc<Vector>),
    /// Strings of our own.
    Strings(Arc<Strings>),
}

impl Dict {
    /// The text with this number.
    #[inline]
    pub fn get(&self, code: u32) -> &[u8] {
        let code = code as usize;
        match self {
            Dict::Strings(strings) => strings.get(code),
            Dict::Vector(vector) => match vector.values() {
                Values::Constant(value) => value,
                Values::Fixed { width, bytes } => &bytes[code * width..(code + 1) * width],
                Values::Varying(strings) => strings.get(code),
                Values::Dictionary { entries, .. } => entries.get(code),
            },
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Dict::Strings(strings) => strings.len(),
            Dict::Vector(vector) => match vector.values() {
                Values::Constant(_) => 1,
                Values::Fixed { .. } | Values::Varying(_) => vector.rows(),
                Values::Dictionary { entries, .. } => entries.len(),
            },
        }
    }

    /// Bytes of memory that its texts take.
    fn text_bytes(&self) -> usize {
        let of = |strings: &Strings| strings.total_bytes() + strings.len() * 4;
        match self {
            Dict::Strings(strings) => of(strings),
            Dict::Vector(vector) => match vector.values() {
                Values::Constant(value) => value.len(),
                Values::Fixed { bytes, .. } => bytes.len(),
                Values::Varying(strings) | Values::Dictionary { entries: strings, .. } => of(strings),
            },
        }
    }

    /// Whether it is the very same.
    pub(crate) fn is(&self, other: &Dict) -> bool {
        match (self, other) {
            (Dict::Vector(a), Dict::Vector(b)) => Arc::ptr_eq(a, b),
            (Dict::Strings(a), Dict::Strings(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// The values of a column; those of NULLs mean nothing.
#[derive(Clone, Debug)]
pub enum Data {
    /// Numbers that fit.
    Small(Vec<i64>),
    /// Numbers.
    Large(Vec<i128>),
    /// DOUBLEs.
    Real(Vec<f64>),
    /// Texts by number.
    Text(Vec<u32>, Dict),
}

/// One column of some rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its values.
    pub data: Data,
    /// Which are NULL; `None`: none is.
    pub nulls: Option<Vec<bool>>,
}

/// In the place of a row: there is none, and all its columns are NULL.
pub const NO_ROW: u32 = u32::MAX;

pub(crate) const OVERFLOW: Failure = Failure::GivenBack(Why::Overflow);
pub(crate) const UNSUPPORTED: Failure = Failure::GivenBack(Why::Unsupported);

impl Column {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        match &self.data {
            Data::Small(values) => values.len(),
            Data::Large(values) => values.len(),
            Data::Real(values) => values.len(),
            Data::Text(codes, _) => codes.len(),
        }
    }

    /// Whether the row is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls[row])
    }

    /// The number of a row; 0 where there are none.
    #[inline]
    pub fn number(&self, row: usize) -> i128 {
        match &self.data {
            Data::Small(values) => i128::from(values[row]),
            Data::Large(values) => values[row],
            Data::Real(_) | Data::Text(..) => 0,
        }
    }

    /// The value of a row.
    pub fn value(&self, row: usize) -> Value {
        if self.is_null(row) {
            return Value::Null;
        }
        match &self.data {
            Data::Small(values) => Value::Number(values[row].into()),
            Data::Large(values) => Value::Number(values[row]),
            Data::Real(values) => Value::Real(values[row]),
            Data::Text(codes, dict) => Value::Text(dict.get(codes[row]).to_vec()),
        }
    }

    /// Whether two rows have the same value, bit by bit: neither texts that are equal, nor 0 and -0.
    pub fn is_same(&self, a: usize, b: usize) -> bool {
        if self.is_null(a) || self.is_null(b) {
            return self.is_null(a) && self.is_null(b);
        }
        match &self.data {
            Data::Small(values) => values[a] == values[b],
            Data::Large(values) => values[a] == values[b],
            Data::Real(values) => values[a].to_bits() == values[b].to_bits(),
            Data::Text(codes, dict) => codes[a] == codes[b] || dict.get(codes[a]) == dict.get(codes[b]),
        }
    }

    /// Some rows of it, in any order; [`NO_ROW`] is NULL.
    pub fn gather(&self, rows: &[u32]) -> Column {
        fn pick<T: Copy + Default>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        let data = match &self.data {
            Data::Small(values) => Data::Small(pick(values, rows)),
            Data::Large(values) => Data::Large(pick(values, rows)),
            Data::Real(values) => Data::Real(pick(values, rows)),
            Data::Text(codes, dict) => Data::Text(pick(codes, rows), dict.clone()),
        };
        Column { data, nulls: self.nulls.as_ref().map(|nulls| pick(nulls, rows)) }
    }

    /// As `gather`, where some of the rows are [`NO_ROW`].
    pub fn gather_or_null(&self, rows: &[u32]) -> Column {
        if self.rows() == 0 {
            return self.all_null(rows.len());
        }
        let known: Vec<u32> = rows.iter().map(|row| if *row == NO_ROW { 0 } else { *row }).collect();
        let mut column = self.gather(&known);
        let nulls = rows.iter().map(|row| *row == NO_ROW || self.is_null(*row as usize)).collect();
        column.nulls = Some(nulls);
        column
    }

    fn all_null(&self, rows: usize) -> Column {
        let data = match &self.data {
            Data::Small(_) => Data::Small(vec![0; rows]),
            Data::Large(_) => Data::Large(vec![0; rows]),
            Data::Real(_) => Data::Real(vec![0.0; rows]),
            Data::Text(..) => one_text(rows, b""),
        };
        Column { data, nulls: Some(vec![true; rows]) }
    }

    /// The same value in so many rows.
    pub fn constant(value: &Value, kind: Kind, rows: usize) -> Column {
        let nulls = matches!(value, Value::Null).then(|| vec![true; rows]);
        let data = match value {
            Value::Number(number) => match i64::try_from(*number) {
                Ok(number) => Data::Small(vec![number; rows]),
                Err(_) => Data::Large(vec![*number; rows]),
            },
            Value::Real(value) => Data::Real(vec![*value; rows]),
            Value::Text(text) => one_text(rows, text),
            Value::Null => match kind {
                Kind::Text(_) => one_text(rows, b""),
                Kind::Real => Data::Real(vec![0.0; rows]),
                _ => Data::Small(vec![0; rows]),
            },
        };
        Column { data, nulls }
    }

    /// Of numbers; small if they fit.
    pub(crate) fn of_large(values: Vec<i128>, nulls: Option<Vec<bool>>) -> Column {
        let fits = values.iter().all(|value| i64::try_from(*value).is_ok());
        let data = match fits {
            true => Data::Small(values.iter().map(|value| *value as i64).collect()),
            false => Data::Large(values),
        };
        Column { data, nulls }
    }

    /// What the storage has.
    pub(crate) fn of_vector(vector: &Arc<Vector>, kind: Kind, form: &Form, place: &Place) -> Option<Column> {
        Column::of_rows(vector, None, (kind, form, place))
    }

    /// What the storage has in some rows; `None`: in all.
    pub(crate) fn of_rows(
        vector: &Arc<Vector>,
        rows: Option<&[u32]>,
        (kind, form, place): (Kind, &Form, &Place),
    ) -> Option<Column> {
        let nulls = vector.nulls().map(|nulls| each(rows, vector.rows(), |row| nulls.is_null(row)));
        if kind.is_text() {
            let codes = match vector.values() {
                Values::Constant(_) => vec![0; rows.map_or(vector.rows(), <[u32]>::len)],
                Values::Fixed { .. } | Values::Varying(_) => each(rows, vector.rows(), |row| row as u32),
                Values::Dictionary { codes, .. } => each(rows, vector.rows(), |row| codes[row]),
            };
            return Some(Column { data: Data::Text(codes, Dict::Vector(vector.clone())), nulls });
        }
        if kind == Kind::Real {
            let value = |row| vector.get(row).map_or(Some(0.0), real_of);
            let values: Option<Vec<f64>> = each(rows, vector.rows(), value).into_iter().collect();
            return Some(Column { data: Data::Real(values?), nulls });
        }
        let cells = Cells::of_vector(vector, form, place)?;
        let data = match cells.entries {
            Entries::Small(entries) => Data::Small(spread(entries, &cells.codes, rows, vector.rows())),
            Entries::Large(entries) => Data::Large(spread(entries, &cells.codes, rows, vector.rows())),
            Entries::Texts(_) | Entries::Presence => return None,
        };
        let mut column = Column { data, nulls };
        if matches!(kind, Kind::DateTime | Kind::Time) {
            column.unpack_moments(kind, vector, place)?;
        }
        Some(column)
    }

    /// The entries of a dictionary. `None`: one is not a value.
    pub(crate) fn of_entries(entries: &Strings, of: (Kind, &Form, &Place)) -> Option<Column> {
        if let (Kind::Signed | Kind::Unsigned | Kind::Decimal(_) | Kind::Date, form, place) = of {
            return match Cells::of_entries(entries, form, place)?.entries {
                Entries::Small(values) => {
                    Some(Column { data: Data::Small(values.into_owned()), nulls: None })
                }
                Entries::Large(values) => {
                    Some(Column { data: Data::Large(values.into_owned()), nulls: None })
                }
                Entries::Texts(_) | Entries::Presence => None,
            };
        }
        let vector = Vector::new(entries.len(), None, Values::Varying(entries.clone()));
        Column::of_rows(&Arc::new(vector), None, of)
    }

    /// Moments as the storage has them become those that are compared.
    fn unpack_moments(&mut self, kind: Kind, vector: &Vector, place: &Place) -> Option<()> {
        let size = match place {
            Place::Key { size, .. } => *size,
            Place::Stored(_) | Place::Length(_) | Place::KeyPart(_) => match vector.values() {
                Values::Fixed { width, .. } => *width,
                _ => (0..vector.rows()).find_map(|row| vector.get(row)).map_or(8, <[u8]>::len),
            },
        };
        let packing = Packing::of(size, kind == Kind::DateTime)?;
        let at_once = match &self.data {
            Data::Small(values) if size < 8 => packing.moments(values),
            _ => None,
        };
        let one = |row| if self.is_null(row) { Some(0) } else { packing.moment(self.number(row)) };
        let values = at_once.or_else(|| (0..self.rows()).map(one).collect::<Option<Vec<i64>>>())?;
        self.data = Data::Small(values);
        Some(())
    }

    /// The strings that its texts are in, if these are not the storage's.
    pub(crate) fn strings(&self) -> Option<&Arc<Strings>> {
        match &self.data {
            Data::Text(_, Dict::Strings(strings)) => Some(strings),
            _ => None,
        }
    }

    /// Bytes of memory, about, without those of the texts themselves, which many columns may share.
    pub fn bytes(&self) -> usize {
        let nulls = self.nulls.as_ref().map_or(0, Vec::len);
        nulls
            + match &self.data {
                Data::Small(values) => values.len() * 8,
                Data::Large(values) => values.len() * 16,
                Data::Real(values) => values.len() * 8,
                Data::Text(codes, _) => codes.len() * 4,
            }
    }

    /// The same texts, of memory of their own, where the storage's would be kept for a few of them.
    pub(crate) fn detached(&self) -> Cow<'_, Column> {
        match &self.data {
            Data::Text(_, Dict::Vector(_)) => self.with_own_texts(),
            _ => Cow::Borrowed(self),
        }
    }

    /// The same texts, and no others beside them.
    fn with_own_texts(&self) -> Cow<'_, Column> {
        let Data::Text(codes, dict) = &self.data else { return Cow::Borrowed(self) };
        let mut strings = Strings::new();
        let mut seen = vec![u32::MAX; dict.len()];
        let mut detached = Vec::with_capacity(codes.len());
        for (row, code) in codes.iter().enumerate() {
            if self.is_null(row) {
                detached.push(0);
                continue;
            }
            let known = &mut seen[*code as usize];
            if *known == u32::MAX {
                *known = strings.len() as u32;
                strings.push(dict.get(*code));
            }
            detached.push(*known);
        }
        if strings.is_empty() {
            strings.push(b"");
        }
        let data = Data::Text(detached, Dict::Strings(Arc::new(strings)));
        Cow::Owned(Column { data, nulls: self.nulls.clone() })
    }

    /// One column after the other; they are of one kind.
    pub(crate) fn concat(columns: &[&Column], kind: Kind) -> Column {
        let rows = columns.iter().map(|column| column.rows()).sum();
        let has_nulls = columns.iter().any(|column| column.nulls.is_some());
        let nulls = has_nulls.then(|| {
            let mut nulls = Vec::with_capacity(rows);
            for column in columns {
                match &column.nulls {
                    Some(of_column) => nulls.extend_from_slice(of_column),
                    None => nulls.resize(nulls.len() + column.rows(), false),
                }
            }
            nulls
        });
        let data = match kind {
            Kind::Text(_) => concat_texts(columns, rows),
            Kind::Real => {
                let mut values = Vec::with_capacity(rows);
                for column in columns {
                    if let Data::Real(of_column) = &column.data {
                        values.extend_from_slice(of_column);
                    } else {
                        values.resize(values.len() + column.rows(), 0.0);
                    }
                }
                Data::Real(values)
            }
            _ if columns.iter().all(|column| matches!(column.data, Data::Small(_))) => {
                let mut values = Vec::with_capacity(rows);
                for column in columns {
                    if let Data::Small(of_column) = &column.data {
                        values.extend_from_slice(of_column);
                    }
                }
                Data::Small(values)
            }
            _ => {
                let mut values = Vec::with_capacity(rows);
                for column in columns {
                    values.extend((0..column.rows()).map(|row| column.number(row)));
                }
                Data::Large(values)
            }
        };
        Column { data, nulls }
    }
}

fn concat_texts(columns: &[&Column], rows: usize) -> Data {
    let texts = |column: &Column| match &column.data {
        Data::Text(_, dict) => Some(dict.clone()),
        _ => None,
    };
    let first = columns.first().and_then(|column| texts(column));
    let is_one = first
        .as_ref()
        .is_some_and(|first| columns.iter().all(|column| texts(column).is_some_and(|dict| dict.is(first))));
    let mut codes = Vec::with_capacity(rows);
    if let (true, Some(dict)) = (is_one, first) {
        for column in columns {
            if let Data::Text(of_column, _) = &column.data {
                codes.extend_from_slice(of_column);
            }
        }
        return Data::Text(codes, dict);
    }
    let mut strings = Strings::new();
    for column in columns {
        match &column.data {
            Data::Text(of_column, dict) => add_texts(column, of_column, dict, &mut strings, &mut codes),
            _ => {
                codes.resize(codes.len() + column.rows(), strings.len() as u32);
                strings.push(b"");
            }
        }
    }
    if strings.is_empty() {
        strings.push(b"");
    }
    Data::Text(codes, Dict::Strings(Arc::new(strings)))
}

/// Adds the texts of a column, each once where that is worth looking.
pub(crate) fn add_texts(
    column: &Column,
    of_column: &[u32],
    dict: &Dict,
    strings: &mut Strings,
    codes: &mut Vec<u32>,
) {
    let mut seen = match of_column.len() >= dict.len() / 4 {
        true => vec![u32::MAX; dict.len()],
        false => Vec::new(),
    };
    for (row, code) in of_column.iter().enumerate() {
        if column.is_null(row) {
            // Any text will do, and there is one.
            if strings.is_empty() {
                strings.push(b"");
            }
            codes.push(0);
            continue;
        }
        let next = strings.len() as u32;
        let number = match seen.get_mut(*code as usize) {
            Some(known) if *known != u32::MAX => *known,
            Some(known) => {
                *known = next;
                next
            }
            None => next,
        };
        if number == next {
            strings.push(dict.get(*code));
        }
        codes.push(number);
    }
}

fn one_text(rows: usize, text: &[u8]) -> Data {
    let mut strings = Strings::new();
    strings.push(text);
    Data::Text(vec![0; rows], Dict::Strings(Arc::new(strings)))
}

/// Something of some rows; `None`: of all.
fn each<T>(some: Option<&[u32]>, rows: usize, of_row: impl Fn(usize) -> T) -> Vec<T> {
    match some {
        None => (0..rows).map(of_row).collect(),
        Some(some) => some.iter().map(|row| of_row(*row as usize)).collect(),
    }
}

fn spread<T: Copy>(entries: Cow<'_, [T]>, codes: &Codes<'_>, some: Option<&[u32]>, rows: usize) -> Vec<T> {
    match (codes, some) {
        (Codes::Own, None) => entries.into_owned(),
        (Codes::Own, Some(some)) => some.iter().map(|row| entries[*row as usize]).collect(),
        (Codes::First, _) => vec![entries[0]; some.map_or(rows, <[u32]>::len)],
        (Codes::Of(codes), None) => codes.iter().map(|code| entries[*code as usize]).collect(),
        (Codes::Of(codes), Some(some)) => {
            some.iter().map(|row| entries[codes[*row as usize] as usize]).collect()
        }
    }
}

fn real_of(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        8 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        4 => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        _ => None,
    }
}

/// A moment of `size` bytes, packed as it is compared.
pub(crate) fn moment(stored: i128, size: usize, kind: Kind) -> Option<i64> {
    Packing::of(size, kind == Kind::DateTime)?.moment(stored)
}

/// Rows, as columns.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// How many.
    pub rows: usize,
    /// Their columns.
    pub columns: Vec<Arc<Column>>,
}

impl Batch {
    /// Some of the rows. Columns that nobody looks at are empty, and stay so.
    pub(crate) fn gather(&self, rows: &[u32]) -> Batch {
        let gather = |column: &Arc<Column>| match column.rows() == self.rows {
            true => Arc::new(column.gather(rows)),
            false => column.clone(),
        };
        Batch { rows: rows.len(), columns: self.columns.iter().map(gather).collect() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.bytes()).sum()
    }

    /// The same rows, without the storage's memory.
    pub(crate) fn detached(self) -> Batch {
        self.with_columns(Column::detached)
    }

    /// The same rows, without texts that none of them has.
    pub(crate) fn with_own_texts(self) -> Batch {
        self.with_columns(Column::with_own_texts)
    }

    fn with_columns(self, change: impl Fn(&Column) -> Cow<'_, Column>) -> Batch {
        let columns = self.columns.into_iter().map(|column| {
            let owned = match change(&column) {
                Cow::Borrowed(_) => None,
                Cow::Owned(owned) => Some(owned),
            };
            owned.map_or(column, Arc::new)
        });
        Batch { rows: self.rows, columns: columns.collect() }
    }

    pub(crate) fn concat(batches: &[Batch], kinds: &[Kind]) -> Batch {
        if let [one] = batches {
            return one.clone();
        }
        let column = |(number, kind): (usize, &Kind)| {
            let columns: Vec<&Column> = batches.iter().map(|batch| &*batch.columns[number]).collect();
            Arc::new(Column::concat(&columns, *kind))
        };
        let columns = kinds.iter().enumerate().map(column).collect();
        Batch { rows: batches.iter().map(|batch| batch.rows).sum(), columns }
    }
}

/// Bytes of the texts of some columns. What the columns before them had is not counted again: a join gives the texts of the
/// side in memory with every batch.
pub(crate) fn bytes_of_new_strings(columns: &[Arc<Column>], before: &mut Vec<Option<Arc<Strings>>>) -> usize {
    before.resize(columns.len(), None);
    let mut bytes = 0;
    for (column, before) in columns.iter().zip(before) {
        let Some(strings) = column.strings() else { continue };
        if !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, strings)) {
            bytes += strings.total_bytes() + strings.len() * 4;
            *before = Some(strings.clone());
        }
    }
    bytes
}

/// Bytes of the texts that some columns keep in memory, the storage's, too; without those of the columns before them.
pub(crate) fn bytes_of_held_texts(columns: &[Arc<Column>], before: &mut Vec<Option<Dict>>) -> usize {
    before.resize(columns.len(), None);
    let mut bytes = 0;
    for (column, before) in columns.iter().zip(before) {
        let Data::Text(_, dict) = &column.data else { continue };
        if !before.as_ref().is_some_and(|before| before.is(dict)) {
            bytes += dict.text_bytes();
            *before = Some(dict.clone());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_column::vector::Nulls;

    #[test]
    fn texts_of_the_storage_are_held_too() {
        let vector = Arc::new(Vector::new(2, None, Values::Constant(vec![b'x'; 1000])));
        let held = |dict: &Dict| Arc::new(Column { data: Data::Text(vec![0], dict.clone()), nulls: None });
        let (stored, mut before) = (Dict::Vector(vector), Vec::new());
        let own = Dict::Strings(Arc::new(strings([vec![1; 500]].into_iter())));
        let counted =
            [&stored, &stored, &own, &stored].map(|dict| bytes_of_held_texts(&[held(dict)], &mut before));
        assert_eq!(counted, [1000, 0, 504, 1000]);
        let number = Arc::new(Column { data: Data::Small(vec![1]), nulls: None });
        assert_eq!(bytes_of_held_texts(&[number], &mut before), 0);
    }

    #[test]
    fn texts_that_come_with_every_batch_are_counted_once() {
        let strings = |text: &[u8]| {
            let mut strings = Strings::new();
            strings.push(text);
            Arc::new(strings)
        };
        let batch = |strings: &Arc<Strings>| {
            let data = Data::Text(vec![0], Dict::Strings(strings.clone()));
            [Arc::new(Column { data, nulls: None })]
        };
        let (one, other) = (strings(&[b'x'; 1000]), strings(&[b'y'; 500]));
        let mut before = Vec::new();
        let counted: Vec<usize> = [&one, &one, &other, &other]
            .into_iter()
            .map(|strings| bytes_of_new_strings(&batch(strings), &mut before))
            .collect();
        assert_eq!(counted, [1004, 0, 504, 0]);
    }

    fn strings(of: impl Iterator<Item = Vec<u8>>) -> Strings {
        let mut strings = Strings::new();
        of.for_each(|value| strings.push(&value));
        strings
    }

    /// Some rows of a vector are those of all of it, whatever its form and the kind of its values.
    #[test]
    fn some_rows_are_those_of_the_whole_column() {
        let rows = 40usize;
        let value =
            |row: usize, size: usize| -> Vec<u8> { (0..size).map(|at| (row * 7 + at) as u8 & 15).collect() };
        let kinds = [
            (Kind::Signed, Form::Signed, 3),
            (Kind::Unsigned, Form::Unsigned, 8),
            (Kind::Real, Form::Presence, 8),
            (Kind::DateTime, Form::Ordered, 5),
            (Kind::Text(0), Form::Presence, 4),
        ];
        for ((kind, form, size), has_nulls) in
            kinds.into_iter().flat_map(|of| [(of.clone(), false), (of, true)])
        {
            let forms = [
                Values::Constant(value(1, size)),
                Values::Fixed { width: size, bytes: (0..rows).flat_map(|row| value(row, size)).collect() },
                Values::Varying(strings((0..rows).map(|row| value(row, size)))),
                Values::Dictionary {
                    codes: (0..rows as u32).map(|row| row * row % 5).collect(),
                    entries: strings((0..5).map(|row| value(row, size))),
                },
            ];
            for values in forms {
                let nulls = has_nulls.then(|| {
                    let mut nulls = Nulls::new();
                    (0..rows).for_each(|row| nulls.push(row % 3 == 1));
                    nulls
                });
                let vector = Arc::new(Vector::new(rows, nulls, values));
                let place = Place::Stored(0);
                let whole = Column::of_vector(&vector, kind, &form, &place).expect("values");
                for some in [&[][..], &[0], &[39, 3, 3, 4, 1]] {
                    let column = Column::of_rows(&vector, Some(some), (kind, &form, &place)).expect("values");
                    let found: Vec<Value> = (0..some.len()).map(|row| column.value(row)).collect();
                    let expected: Vec<Value> = some.iter().map(|row| whole.value(*row as usize)).collect();
                    assert_eq!(
                        (column.rows(), found),
                        (some.len(), expected),
                        "{kind:?} of {:?}",
                        vector.values()
                    );
                }
            }
        }
    }
}
