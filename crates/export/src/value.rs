//! Values of columns, from the bytes that rows have of them to what people and servers read.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::charset::Charset;
use crate::frm::{types, FrmColumn};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A number without a fraction.
    Integer(i128),
    /// A number with digits behind the point, as text.
    Decimal(String),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// Letters, and what is written like them: dates, members of ENUM and SET, addresses.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Bytes that are no value of the column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are no value of column {column}")]
pub struct ValueError {
    column: String,
    bytes: usize,
}

/// Whether values of the column come out as text or numbers; otherwise as bytes, though the server shows text.
pub fn is_readable(column: &FrmColumn) -> bool {
    match column.ty {
        types::GEOMETRY => true,
        types::TINY_BLOB..=types::STRING | types::VARCHAR if column.is_plugin_type() => {
            matches!(&*column.plugin_type, "uuid" | "inet6" | "inet4")
        }
        types::TINY_BLOB..=types::STRING | types::VARCHAR => {
            !matches!(column.collation.charset(), Charset::Single | Charset::Other)
        }
        types::ENUM | types::SET => {
            !matches!(column.collation.charset(), Charset::Single | Charset::Other)
                || column.members.iter().all(|member| member.is_ascii())
        }
        _ => true,
    }
}

/// The value that a row has as these bytes, in the current layout.
///
/// # Errors
/// They are none of this column.
pub fn decode(column: &FrmColumn, bytes: &[u8]) -> Result<Cell, ValueError> {
    let error = || ValueError { column: column.name.clone(), bytes: bytes.len() };
    if column.is_compressed {
        return plain(column, &uncompressed(bytes).ok_or_else(error)?).ok_or_else(error);
    }
    plain(column, bytes).ok_or_else(error)
}

/// A value of a column that is COMPRESSED, as the server's `sql/field_comp.cc` writes it: nothing for the empty one, else a first byte:
/// 0 (as it is), or 0x80 (zlib), with 8 if the stream has no header and checksum, and the number of bytes of the length that follows.
fn uncompressed(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some((head, rest)) = bytes.split_first() else { return Some(Cow::Borrowed(bytes)) };
    if *head == 0 {
        return Some(Cow::Borrowed(rest));
    }
    if head & 0xf0 != 0x80 {
        return None;
    }
    let (length, stream) = rest.split_at_checked(usize::from(head & 7))?;
    let length = big(length)?;
    let mut value = Vec::new();
    // The stream ends the value; a length that is wrong takes no memory.
    let limit = length.checked_add(1)?;
    let read = match head & 8 {
        0 => ZlibDecoder::new(stream).take(limit).read_to_end(&mut value),
        _ => DeflateDecoder::new(stream).take(limit).read_to_end(&mut value),
    };
    (read.is_ok() && value.len() as u64 == length).then_some(Cow::Owned(value))
}

fn plain(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    match column.ty {
        _ if column.is_plugin_type() => plugin(column, bytes),
        types::TINY | types::SHORT | types::INT24 | types::LONG | types::LONGLONG => {
            little(bytes).map(|number| integer(number, bytes.len(), column.is_unsigned()))
        }
        types::FLOAT => bytes.try_into().ok().map(|bytes| Cell::Float(f32::from_le_bytes(bytes))),
        types::DOUBLE => bytes.try_into().ok().map(|bytes| Cell::Double(f64::from_le_bytes(bytes))),
        types::NEWDECIMAL => decimal(column, bytes),
        types::YEAR => match *bytes {
            [0] => Some(Cell::Text("0000".into())),
            [year] => Some(Cell::Text((1900 + u32::from(year)).to_string())),
            _ => None,
        },
        types::NEWDATE => {
            little(bytes).map(|date| Cell::Text(date_text(date >> 9, date >> 5 & 15, date & 31)))
        }
        types::TIMESTAMP2 => timestamp2(column, bytes),
        types::DATETIME2 => datetime2(column, bytes),
        types::TIME2 => time2(column, bytes),
        types::TIMESTAMP if bytes.len() == 4 => little(bytes).map(|seconds| Cell::Text(utc(seconds))),
        types::DATETIME if fraction_digits(column, 19) == 0 => little(bytes).map(old_datetime),
        types::TIME if fraction_digits(column, 10) == 0 => little(bytes).map(old_time),
        types::BIT => big(bytes).map(|bits| Cell::Integer(bits.into())),
        types::ENUM => little(bytes).and_then(|number| member(column, number)),
        types::SET => little(bytes).and_then(|bits| set(column, bits)),
        types::STRING if column.collation.charset() == Charset::Binary => {
            let mut filled = bytes.to_vec();
            filled.resize(bytes.len().max(column.length as usize), 0);
            Some(Cell::Bytes(filled))
        }
        _ => Some(match column.collation.charset().decode(bytes) {
            Some(text) if column.ty != types::GEOMETRY => Cell::Text(text),
            _ => Cell::Bytes(bytes.to_vec()),
        }),
    }
}

fn little(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn big(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn integer(number: u64, bytes: usize, is_unsigned: bool) -> Cell {
    let bits = 8 * bytes.clamp(1, 8);
    let is_negative = !is_unsigned && number >> (bits - 1) & 1 != 0;
    Cell::Integer(i128::from(number) - if is_negative { 1 << bits } else { 0 })
}

fn date_text(year: u64, month: u64, day: u64) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

/// Digits of a fraction, by the width that the server shows.
fn fraction_digits(column: &FrmColumn, width: u32) -> usize {
    column.length.saturating_sub(width + 1).min(6) as usize
}

/// `.123` of so many millionths.
fn fraction(micros: u64, digits: usize) -> String {
    match digits {
        0 => String::new(),
        _ => format!(".{}", format!("{micros:06}").get(..digits).unwrap_or_default()),
    }
}

/// Millionths, of the bytes behind the whole seconds: hundredths, ten thousandths or millionths.
fn micros(bytes: &[u8]) -> Option<u64> {
    let scale = match bytes.len() {
        0 => 0,
        1 => 10_000,
        2 => 100,
        3 => 1,
        _ => return None,
    };
    Some(big(bytes)? * scale)
}

/// Seconds since 1970 as date and time.
fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // "chrono-compatible low-level date algorithms" by Howard Hinnant: days to civil.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let date = date_text(year, month, day);
    format!("{date} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn timestamp2(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    let (seconds, rest) = bytes.split_first_chunk::<4>()?;
    let (seconds, micros) = (u32::from_be_bytes(*seconds), micros(rest)?);
    let text = match (seconds, micros) {
        (0, 0) => "0000-00-00 00:00:00".to_owned(),
        _ => utc(seconds.into()),
    };
    Some(Cell::Text(text + &fraction(micros, fraction_digits(column, 19))))
}

fn datetime2(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    let (whole, rest) = bytes.split_first_chunk::<5>()?;
    let packed = big(whole)?.checked_sub(1 << 39)?;
    let (days, of_day) = (packed >> 17, packed & 0x1_ffff);
    let months = days >> 5;
    let date = date_text(months / 13, months % 13, days & 31);
    let text = format!("{date} {:02}:{:02}:{:02}", of_day >> 12, of_day >> 6 & 63, of_day & 63);
    Some(Cell::Text(text + &fraction(micros(rest)?, fraction_digits(column, 19))))
}

fn time2(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    let (whole, rest) = bytes.split_first_chunk::<3>()?;
    // Whole and fraction are one number, so that of a negative time the fraction counts back.
    let scale: i64 = match rest.len() {
        0 => 1_000_000,
        1 => 10_000,
        2 => 100,
        3 => 1,
        _ => return None,
    };
    let bits = 8 * rest.len();
    let number = i64::try_from(big(whole)? << bits | big(rest)?).ok()? - (1 << (23 + bits));
    let size = number.unsigned_abs();
    let (of_day, part) = (size >> bits, size & ((1 << bits) - 1));
    let micros = match rest.len() {
        0 => 0,
        _ => part * scale.unsigned_abs(),
    };
    let sign = if number < 0 { "-" } else { "" };
    let text = format!("{sign}{:02}:{:02}:{:02}", of_day >> 12 & 0x3ff, of_day >> 6 & 63, of_day & 63);
    Some(Cell::Text(text + &fraction(micros, fraction_digits(column, 10))))
}

fn old_datetime(number: u64) -> Cell {
    let (date, time) = (number / 1_000_000, number % 1_000_000);
    let date = date_text(date / 10_000, date / 100 % 100, date % 100);
    Cell::Text(format!("{date} {:02}:{:02}:{:02}", time / 10_000, time / 100 % 100, time % 100))
}

fn old_time(number: u64) -> Cell {
    let is_negative = number >> 23 & 1 != 0;
    let size = if is_negative { (1 << 24) - number } else { number };
    let sign = if is_negative { "-" } else { "" };
    Cell::Text(format!("{sign}{:02}:{:02}:{:02}", size / 10_000, size / 100 % 100, size % 100))
}

/// Bytes that a number of so many digits has in a group that is not whole.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Groups of nine digits in four bytes, the first and the last with fewer; the highest bit flipped, all bits of negative numbers.
fn decimal(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    let scale = column.decimals() as usize;
    let signs = usize::from(scale > 0) + usize::from(!column.is_unsigned());
    let digits = (column.length as usize).checked_sub(signs)?;
    let whole = digits.checked_sub(scale)?;
    let is_negative = bytes.first()? & 0x80 == 0;
    let mut flipped = bytes.to_vec();
    *flipped.first_mut()? ^= 0x80;
    if is_negative {
        flipped.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut rest = flipped.as_slice();
    let mut text = String::new();
    let mut take = |digits: usize| {
        let (group, behind) = rest.split_at_checked(*DIGIT_BYTES.get(digits)?)?;
        rest = behind;
        let number = big(group)?;
        if number >= 10_u64.pow(digits as u32) {
            return None;
        }
        Some(if digits > 0 { format!("{number:0digits$}") } else { String::new() })
    };
    text += &take(whole % 9)?;
    for _ in 0..whole / 9 {
        text += &take(9)?;
    }
    let trimmed = text.trim_start_matches('0');
    let mut text = if trimmed.is_empty() { "0".to_owned() } else { trimmed.to_owned() };
    if scale > 0 {
        text.push('.');
    }
    for _ in 0..scale / 9 {
        text += &take(9)?;
    }
    text += &take(scale % 9)?;
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if is_negative && !is_zero {
        text.insert(0, '-');
    }
    rest.is_empty().then_some(Cell::Decimal(text))
}

fn member(column: &FrmColumn, number: u64) -> Option<Cell> {
    match number.checked_sub(1) {
        // What a value became that was no member.
        None => Some(Cell::Text(String::new())),
        Some(at) => Some(Cell::Text(column.members.get(usize::try_from(at).ok()?)?.clone())),
    }
}

fn set(column: &FrmColumn, bits: u64) -> Option<Cell> {
    let count = column.members.len();
    if count < 64 && bits >> count != 0 {
        return None;
    }
    let members = column.members.iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0);
    Some(Cell::Text(members.map(|(_, member)| member.as_str()).collect::<Vec<_>>().join(",")))
}

fn plugin(column: &FrmColumn, bytes: &[u8]) -> Option<Cell> {
    Some(match &*column.plugin_type {
        "uuid" => Cell::Text(uuid(bytes.try_into().ok()?)),
        "inet6" => Cell::Text(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        "inet4" => Cell::Text(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string()),
        _ => match column.collation.charset().decode(bytes) {
            Some(text) => Cell::Text(text),
            None => Cell::Bytes(bytes.to_vec()),
        },
    })
}

/// In records the groups of a UUID lie in the order in which they are compared: the last first. Those of versions from 6 on lie as they are
/// written.
fn uuid(record: [u8; 16]) -> String {
    let [_, _, _, _, _, _, variant, _, version, ..] = record;
    let number = u128::from_be_bytes(record);
    let part = |from: u32, bytes: u32| number >> (8 * (16 - from - bytes)) & ((1 << (8 * bytes)) - 1);
    if variant & version.wrapping_neg() & 0x80 != 0 {
        return format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(12, 4),
            part(10, 2),
            part(8, 2),
            part(6, 2),
            part(0, 6)
        );
    }
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(0, 4),
        part(4, 2),
        part(6, 2),
        part(8, 2),
        part(10, 6)
    )
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn a_year_is_one_byte_and_nothing_else_is_one() {
        let definition = crate::frm::Definition::read(include_bytes!("../tests/frm/types.frm")).unwrap();
        let column = definition.columns.iter().find(|column| column.ty == types::YEAR).unwrap();
        for (byte, text) in [(0, "0000"), (1, "1901"), (255, "2155")] {
            assert_eq!(decode(column, &[byte]), Ok(Cell::Text(text.into())));
        }
        for bytes in [&[][..], &[1, 0], &[0xff; 8]] {
            assert!(decode(column, bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn compressed_values_are_those_that_were_given() {
        assert_eq!(uncompressed(&[]).unwrap().as_ref(), b"");
        assert_eq!(uncompressed(b"\0abc").unwrap().as_ref(), b"abc");
        let text = "long ".repeat(10).into_bytes();
        for wraps in [true, false] {
            let mut stream = match wraps {
                true => vec![0x81, 50],
                false => vec![0x89, 50],
            };
            let level = flate2::Compression::new(6);
            match wraps {
                true => _ = flate2::read::ZlibEncoder::new(&*text, level).read_to_end(&mut stream).unwrap(),
                false => {
                    _ = flate2::read::DeflateEncoder::new(&*text, level).read_to_end(&mut stream).unwrap()
                }
            }
            assert_eq!(uncompressed(&stream).unwrap().as_ref(), text, "{wraps}");
            stream[1] = 51;
            assert_eq!(uncompressed(&stream), None, "a wrong length");
            for end in 2..stream.len() - 4 {
                assert_eq!(uncompressed(&stream[..end]), None, "cut at {end}");
            }
        }
        for wrong in [&[1][..], &[0x90, 1], &[0x87, 1]] {
            assert_eq!(uncompressed(wrong), None, "{wrong:?}");
        }
    }
}
