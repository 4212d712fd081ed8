//! Rows as a Parquet file (the Apache project's columnar format), for programs that read columns: DuckDB, pandas, Spark.
//!
//! | MariaDB | Parquet |
//! | --- | --- |
//! | integers, YEAR | INT32 or INT64, as integers of that width and sign |
//! | BIT(1), longer BIT | BOOLEAN; unsigned INT64 |
//! | DECIMAL | DECIMAL in INT32, INT64 or FIXED_LEN_BYTE_ARRAY, by its digits |
//! | FLOAT, DOUBLE | FLOAT, DOUBLE |
//! | DATE | DATE |
//! | DATETIME, TIMESTAMP | TIMESTAMP in microseconds: local, and in UTC |
//! | TIME | text: it may be negative, or longer than a day |
//! | UUID | UUID |
//! | texts, ENUM, SET, INET4, INET6 | text |
//! | bytes, geometries, what is not readable here | BYTE_ARRAY |
//!
//! A date that the calendar does not have (`0000-00-00`, `2024-02-00`) becomes NULL, and a byte that is none of the column's character
//! set U+FFFD: [`ParquetWriter::end`] says of which columns how many.
#![deny(clippy::indexing_slicing)]

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::charset::Charset;
use crate::frm::{types, FrmColumn};
use crate::value::{self, Cell};

type Result<T> = parquet::errors::Result<T>;

/// A row group ends when it has so many rows,
const GROUP_ROWS: usize = 1 << 20;
/// or so many bytes of values: they are held in memory until then.
const GROUP_BYTES: usize = 64 << 20;

/// Digits that fit INT32 and INT64.
const DIGITS_IN_INT32: i32 = 9;
const DIGITS_IN_INT64: i32 = 18;

/// What the values of a column become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Boolean,
    Integer { bits: i8, is_signed: bool },
    Decimal { digits: i32, scale: i32 },
    Float,
    Double,
    Date,
    Timestamp { is_utc: bool },
    Uuid,
    Text,
    Bytes,
}

impl Shape {
    fn of(column: &FrmColumn) -> Shape {
        let integer = |bits| Shape::Integer { bits, is_signed: !column.is_unsigned() };
        match column.ty {
            _ if column.is_plugin_type() => match &*column.plugin_type {
                "uuid" => Shape::Uuid,
                _ if value::is_readable(column) => Shape::Text,
                _ => Shape::Bytes,
            },
            types::TINY => integer(8),
            types::SHORT => integer(16),
            types::INT24 | types::LONG => integer(32),
            types::LONGLONG => integer(64),
            types::YEAR => Shape::Integer { bits: 16, is_signed: false },
            types::BIT if column.length == 1 => Shape::Boolean,
            types::BIT => Shape::Integer { bits: 64, is_signed: false },
            types::FLOAT => Shape::Float,
            types::DOUBLE => Shape::Double,
            types::NEWDECIMAL => {
                let scale = i32::try_from(column.decimals()).unwrap_or(0);
                let signs = i32::from(scale > 0) + i32::from(!column.is_unsigned());
                let digits = i32::try_from(column.length).unwrap_or(0) - signs;
                Shape::Decimal { digits: digits.max(scale).max(1), scale }
            }
            types::DATE | types::NEWDATE => Shape::Date,
            types::DATETIME | types::DATETIME2 => Shape::Timestamp { is_utc: false },
            types::TIMESTAMP | types::TIMESTAMP2 => Shape::Timestamp { is_utc: true },
            types::TIME | types::TIME2 | types::ENUM | types::SET => Shape::Text,
            types::GEOMETRY => Shape::Bytes,
            _ if value::is_readable(column) && column.collation.charset() != Charset::Binary => Shape::Text,
            _ => Shape::Bytes,
        }
    }

    fn physical(self) -> Physical {
        match self {
            Shape::Boolean => Physical::BOOLEAN,
            Shape::Integer { bits: 64, .. } | Shape::Timestamp { .. } => Physical::INT64,
            Shape::Integer { .. } | Shape::Date => Physical::INT32,
            Shape::Decimal { digits, .. } if digits <= DIGITS_IN_INT32 => Physical::INT32,
            Shape::Decimal { digits, .. } if digits <= DIGITS_IN_INT64 => Physical::INT64,
            Shape::Decimal { .. } | Shape::Uuid => Physical::FIXED_LEN_BYTE_ARRAY,
            Shape::Float => Physical::FLOAT,
            Shape::Double => Physical::DOUBLE,
            Shape::Text | Shape::Bytes => Physical::BYTE_ARRAY,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        Some(match self {
            Shape::Integer { bits, is_signed } => LogicalType::integer(bits, is_signed),
            Shape::Decimal { digits, scale } => LogicalType::decimal(scale, digits),
            Shape::Date => LogicalType::Date,
            Shape::Timestamp { is_utc } => LogicalType::timestamp(is_utc, TimeUnit::MICROS),
            Shape::Uuid => LogicalType::Uuid,
            Shape::Text => LogicalType::String,
            Shape::Boolean | Shape::Float | Shape::Double | Shape::Bytes => return None,
        })
    }

    /// Bytes of a value of fixed length; 0 of others.
    fn fixed_bytes(self) -> usize {
        match self {
            Shape::Uuid => 16,
            Shape::Decimal { digits, .. } if digits > DIGITS_IN_INT64 => decimal_bytes(digits),
            _ => 0,
        }
    }

    /// A value may become NULL here though the column has none.
    fn may_lose(self) -> bool {
        matches!(self, Shape::Date | Shape::Timestamp { .. })
    }
}

/// Bytes that a signed number of so many decimal digits needs.
fn decimal_bytes(digits: i32) -> usize {
    // log2(10) is below 3.3220: bits of the digits, and one of the sign.
    (usize::try_from(digits).unwrap_or(0) * 33_220 / 10_000 + 2).div_ceil(8)
}

/// The values of a row group.
enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// A column of the file.
struct Column {
    name: String,
    shape: Shape,
    is_nullable: bool,
    values: Values,
    /// Of a column that may be NULL: 1 for each value that is there, 0 for NULL.
    levels: Vec<i16>,
    /// Values that became NULL, or have replaced characters.
    lost: u64,
}

impl Column {
    fn new(column: &FrmColumn) -> Column {
        let shape = Shape::of(column);
        let values = match shape.physical() {
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            Physical::INT32 => Values::Int32(Vec::new()),
            Physical::INT64 | Physical::INT96 => Values::Int64(Vec::new()),
            Physical::FLOAT => Values::Float(Vec::new()),
            Physical::DOUBLE => Values::Double(Vec::new()),
            Physical::BYTE_ARRAY => Values::Bytes(Vec::new()),
            Physical::FIXED_LEN_BYTE_ARRAY => Values::Fixed(Vec::new()),
        };
        let is_nullable = column.is_nullable() || shape.may_lose();
        Column { name: column.name.clone(), shape, is_nullable, values, levels: Vec::new(), lost: 0 }
    }

    fn field(&self) -> Result<Type> {
        let repetition = if self.is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let mut field = Type::primitive_type_builder(&self.name, self.shape.physical())
            .with_repetition(repetition)
            .with_logical_type(self.shape.logical())
            .with_length(i32::try_from(self.shape.fixed_bytes()).unwrap_or(0));
        if let Shape::Decimal { digits, scale } = self.shape {
            field = field.with_precision(digits).with_scale(scale);
        }
        field.build()
    }

    /// Takes a value; gives the bytes of memory it needs.
    fn push(&mut self, cell: &Cell) -> io::Result<usize> {
        if *cell == Cell::Null {
            return self.null();
        }
        let bytes = match (&mut self.values, self.shape) {
            (Values::Bool(values), _) => integer(cell).map(|number| {
                values.push(number != 0);
                1
            }),
            (Values::Int32(values), Shape::Decimal { scale, .. }) => unscaled(cell, scale).map(|number| {
                values.push(number as i32);
                4
            }),
            (Values::Int64(values), Shape::Decimal { scale, .. }) => unscaled(cell, scale).map(|number| {
                values.push(number as i64);
                8
            }),
            (Values::Int32(values), Shape::Date) => match date(cell) {
                Some(days) => {
                    values.push(days);
                    Some(4)
                }
                None => return self.lose(),
            },
            (Values::Int64(values), Shape::Timestamp { .. }) => match timestamp(cell) {
                Some(micros) => {
                    values.push(micros);
                    Some(8)
                }
                None => return self.lose(),
            },
            // Unsigned numbers are the same bits.
            (Values::Int32(values), _) => integer(cell).map(|number| {
                values.push(number as i32);
                4
            }),
            (Values::Int64(values), _) => integer(cell).map(|number| {
                values.push(number as i64);
                8
            }),
            (Values::Float(values), _) => match cell {
                Cell::Float(number) => {
                    values.push(*number);
                    Some(4)
                }
                _ => None,
            },
            (Values::Double(values), _) => match cell {
                Cell::Double(number) => {
                    values.push(*number);
                    Some(8)
                }
                _ => None,
            },
            (Values::Fixed(values), shape) => fixed(cell, shape).map(|bytes| {
                values.push(ByteArray::from(bytes).into());
                shape.fixed_bytes() + size_of::<FixedLenByteArray>()
            }),
            (Values::Bytes(values), shape) => {
                let (bytes, is_whole) = bytes_of(cell, shape);
                self.lost += u64::from(!is_whole);
                let size = bytes.len() + size_of::<ByteArray>();
                values.push(ByteArray::from(bytes));
                Some(size)
            }
        };
        let Some(bytes) = bytes else {
            return Err(io::Error::other(format!("column {}: {cell:?} is no value of it", self.name)));
        };
        if self.is_nullable {
            self.levels.push(1);
        }
        Ok(bytes)
    }

    fn lose(&mut self) -> io::Result<usize> {
        self.lost += 1;
        self.null()
    }

    fn null(&mut self) -> io::Result<usize> {
        if !self.is_nullable {
            return Err(io::Error::other(format!(
                "column {} is NOT NULL, and a row has NULL there",
                self.name
            )));
        }
        self.levels.push(0);
        Ok(size_of::<i16>())
    }

    /// Writes what it has, and has nothing then.
    fn write(&mut self, mut to: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.is_nullable.then_some(self.levels.as_slice());
        match &mut self.values {
            Values::Bool(values) => batch::<BoolType>(&mut to, values, levels)?,
            Values::Int32(values) => batch::<Int32Type>(&mut to, values, levels)?,
            Values::Int64(values) => batch::<Int64Type>(&mut to, values, levels)?,
            Values::Float(values) => batch::<FloatType>(&mut to, values, levels)?,
            Values::Double(values) => batch::<DoubleType>(&mut to, values, levels)?,
            Values::Bytes(values) => batch::<ByteArrayType>(&mut to, values, levels)?,
            Values::Fixed(values) => batch::<FixedLenByteArrayType>(&mut to, values, levels)?,
        }
        self.levels.clear();
        to.close()
    }

    fn loss(&self) -> Option<String> {
        let what = match self.shape.may_lose() {
            true => "dates that the calendar does not have: they are NULL",
            false => "values that are not of its character set: bytes of them are replaced",
        };
        (self.lost > 0).then(|| format!("column {} has {} {what}", self.name, self.lost))
    }
}

fn batch<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<()> {
    to.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

fn integer(cell: &Cell) -> Option<i128> {
    match cell {
        Cell::Integer(number) => Some(*number),
        // YEAR
        Cell::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// A decimal number without its point: 12.50 is 1250.
fn unscaled(cell: &Cell, scale: i32) -> Option<i128> {
    digits_of(cell, scale)?.parse().ok()
}

fn digits_of(cell: &Cell, scale: i32) -> Option<String> {
    let Cell::Decimal(text) = cell else { return None };
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    (i32::try_from(fraction).ok()? == scale).then(|| text.replace('.', ""))
}

/// Bytes of a decimal or a UUID.
fn fixed(cell: &Cell, shape: Shape) -> Option<Vec<u8>> {
    match (cell, shape) {
        (Cell::Text(text), Shape::Uuid) => {
            let number = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
            Some(number.to_be_bytes().to_vec())
        }
        (cell, Shape::Decimal { scale, .. }) => big_endian(&digits_of(cell, scale)?, shape.fixed_bytes()),
        _ => None,
    }
}

/// A number of up to 65 digits as a two's complement of so many bytes.
fn big_endian(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let mut number = vec![0_u8; bytes];
    for digit in digits.bytes() {
        let mut carry = u32::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        for byte in number.iter_mut().rev() {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
    }
    if is_negative {
        let mut carry = true;
        for byte in number.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    Some(number)
}

/// Days since 1970; `None`: the calendar does not have it.
fn date(cell: &Cell) -> Option<i32> {
    let Cell::Text(text) = cell else { return None };
    let mut parts = text.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    // "chrono-compatible low-level date algorithms" by Howard Hinnant: civil to days.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

/// Microseconds since 1970.
fn timestamp(cell: &Cell) -> Option<i64> {
    let Cell::Text(text) = cell else { return None };
    let (day, time) = text.split_once(' ')?;
    let days = i64::from(date(&Cell::Text(day.to_owned()))?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

/// The bytes, and whether they are what the row has.
fn bytes_of(cell: &Cell, shape: Shape) -> (Vec<u8>, bool) {
    match (cell, shape) {
        (Cell::Bytes(bytes), Shape::Text) => {
            (String::from_utf8_lossy(bytes).into_owned().into_bytes(), false)
        }
        (Cell::Bytes(bytes), _) => (bytes.clone(), true),
        (Cell::Text(text) | Cell::Decimal(text), _) => (text.clone().into_bytes(), true),
        (other, _) => (format!("{other:?}").into_bytes(), false),
    }
}

/// Writes the rows of a table.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(out: W, columns: &[FrmColumn]) -> io::Result<ParquetWriter<W>> {
        let columns: Vec<Column> = columns.iter().map(Column::new).collect();
        let fields =
            columns.iter().map(|column| Ok(Arc::new(column.field()?))).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("pando {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetWriter { file, columns, rows: 0, bytes: 0 })
    }

    /// Writes a row: a value for each column.
    ///
    /// # Errors
    /// Those of writing; a value that is none of its column.
    pub fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.bytes += column.push(cell)?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Ends the file; what is to be said of values that did not come out as they are.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end(mut self) -> io::Result<Vec<String>> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let notes = self.columns.iter().filter_map(Column::loss).collect();
        self.file.into_inner()?.flush()?;
        Ok(notes)
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            match group.next_column()? {
                Some(to) => column.write(to)?,
                None => return Err(parquet::errors::ParquetError::General("a column is missing".into())),
            }
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_twos_complements() {
        assert_eq!(big_endian("255", 2), Some(vec![0, 255]));
        assert_eq!(big_endian("-1", 3), Some(vec![255, 255, 255]));
        assert_eq!(big_endian("-256", 2), Some(vec![255, 0]));
        assert_eq!(big_endian("1x", 2), None);
        for digits in 1..=65 {
            let bytes = decimal_bytes(digits);
            let most = "9".repeat(digits as usize);
            // With the digits' largest number the sign stays, and a byte fewer would not do for all numbers of a byte's digits.
            assert!(big_endian(&most, bytes).unwrap()[0] < 0x80, "{digits}");
            assert!(big_endian(&format!("-{most}"), bytes).unwrap()[0] >= 0x80, "{digits}");
        }
        assert_eq!((decimal_bytes(38), decimal_bytes(65)), (16, 28));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = |text: &str| date(&Cell::Text(text.into()));
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("1969-12-31"), Some(-1));
        assert_eq!(days("2000-02-29"), Some(11_016));
        assert_eq!(days("0001-01-01"), Some(-719_162));
        assert_eq!(days("9999-12-31"), Some(2_932_896));
        for wrong in ["0000-00-00", "2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31", "2024-04-00", "x"]
        {
            assert_eq!(days(wrong), None, "{wrong}");
        }
        let micros = |text: &str| timestamp(&Cell::Text(text.into()));
        assert_eq!(micros("1970-01-02 00:00:01.5"), Some(86_401_500_000));
        assert_eq!(micros("1969-12-31 23:59:59.000001"), Some(-999_999));
        assert_eq!(micros("0000-00-00 00:00:00"), None);
    }
}
