//! The server's definition of a table, from the image of its file `NAME.frm`.
//!
//! What is read is what rows need: names and types of columns, members of ENUM and SET, which columns are generated, and the keys.
//! The form is that of MariaDB 10 and 11 (`sql/unireg.cc` writes it, `sql/table.cc` reads it):
//!
//! ```text
//!  0  fe 01, version of the form (u8)
//!  4  u16  bytes of the second header        6  u16  where the keys are
//! 14  u16  bytes of the keys, or ffff: u32 at 47
//! 16  u16  bytes of a record                51  u32  version of the server
//! 64  second header: type (u8), length (u8, or 0 and u16), bytes; ...
//!     u32  where the form is
//!
//! keys:  u8 count, u8 parts (or count with the high bit: 7 bits and u8, u16 parts), u16
//!        per key: u16 flags, u16, u8 parts, u8 algorithm, u16
//!          per part: u16 column, from 1, low 14 bits; u16; u8 flags; u16; u16 length
//!        names
//! form:  258 u16 columns, 260 u16 bytes of screens, 268 u16 of names, 274 u16 of members,
//!        270 u16 lists of members, 284 u16 of comments, 286 u16 of expressions
//! 288    screens; per column 17 bytes: 3 u16 length, 8 u16 flags, 10 u8 special, 11 u8 and 14 u8 collation,
//!          12 u8 list of members, 13 u8 type
//!        names; members; comments;
//!        16 zeros; expressions: u8 type, u16 column, u16 length, u8 length of a name, name, expression
//! ```
//!
//! Any bytes may come: what does not make sense is an error, and no count is believed before the bytes are there.
#![deny(clippy::indexing_slicing)]

use crate::charset::{Charset, Collation};

/// Why an image is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the definition of the table cannot be read: {what}")]
pub struct FrmError {
    what: String,
}

fn error<T>(what: impl Into<String>) -> Result<T, FrmError> {
    Err(FrmError { what: what.into() })
}

/// Types of columns, as the server numbers them.
pub mod types {
    #![expect(missing_docs, reason = "the server's names")]
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

const FORM_VERSION_MIN: u8 = 9;
/// From here on expressions have a header of their own.
const FORM_VERSION_EXPRESSIONS: u8 = 11;
const HEADER_BYTES: usize = 64;
const FORM_BYTES: usize = 288;
const COLUMN_BYTES: usize = 17;
/// Second header: names of types that plugins have made; which columns are the period of versions.
const EXTRA_TYPES: u8 = 130;
const EXTRA_VERSIONS: u8 = 4;
/// Zeros before the expressions.
const EXPRESSIONS_START: usize = 16;
const KEY_IS_NOT_UNIQUE: u16 = 1;
const PART_IS_REVERSE: u8 = 128;
/// A key that the server keeps unique by hashes.
const LONG_HASH: u8 = 5;
/// The type of columns that versions before 10.2 computed.
const OLD_VIRTUAL: u8 = 245;
/// What is special of a column with the attribute COMPRESSED.
const SPECIAL_COMPRESSED: u8 = 24;

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generated {
    /// They are given.
    #[default]
    No,
    /// They are computed when they are read, and not stored.
    Virtual,
    /// They are computed when the row is written, and stored.
    Stored,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrmColumn {
    /// Its name.
    pub name: String,
    /// One of [`types`].
    pub ty: u8,
    /// The name of a type that a plugin has made; empty for others.
    pub plugin_type: String,
    /// Bytes or digits; what the type makes of it.
    pub length: u32,
    /// The server's flags of the type.
    pub flags: u16,
    /// Of texts.
    pub collation: Collation,
    /// Of ENUM and SET, as UTF-8.
    pub members: Vec<String>,
    /// Whether it is computed.
    pub generated: Generated,
    /// It has the attribute COMPRESSED: rows have its values as the server compresses them.
    pub is_compressed: bool,
}

impl FrmColumn {
    /// NULL is possible.
    pub fn is_nullable(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// Of numbers.
    pub fn is_unsigned(&self) -> bool {
        self.flags & 1 == 0
    }

    /// Digits behind the point, of numbers.
    pub fn decimals(&self) -> u32 {
        u32::from(self.flags >> 8 & 63)
    }

    /// Whether the values are of a type that a plugin has made: as long as they are, without filling.
    pub fn is_plugin_type(&self) -> bool {
        !self.plugin_type.is_empty()
    }
}

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrmPart {
    /// Position of its column.
    pub column: usize,
    /// Bytes of the column that take part.
    pub length: u32,
    /// It sorts descending.
    pub is_reverse: bool,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrmKey {
    /// The engine keeps it unique.
    pub is_unique: bool,
    /// Its parts.
    pub parts: Vec<FrmPart>,
}

/// What a table consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The columns in order.
    pub columns: Vec<FrmColumn>,
    /// The keys in order.
    pub keys: Vec<FrmKey>,
    /// The version of the server that has written it, as 101118.
    pub server_version: u32,
    /// It keeps old versions of rows.
    pub is_versioned: bool,
}

#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn range(&self, at: usize, len: usize) -> Result<&'a [u8], FrmError> {
        match at.checked_add(len).and_then(|end| self.0.get(at..end)) {
            Some(bytes) => Ok(bytes),
            None => error(format!("it ends before byte {}", at.saturating_add(len))),
        }
    }

    fn u8(&self, at: usize) -> Result<u8, FrmError> {
        match self.0.get(at) {
            Some(byte) => Ok(*byte),
            None => error(format!("it ends before byte {at}")),
        }
    }

    fn u16(&self, at: usize) -> Result<u16, FrmError> {
        Ok(u16::from(self.u8(at)?) | u16::from(self.u8(at.saturating_add(1))?) << 8)
    }

    fn u32(&self, at: usize) -> Result<u32, FrmError> {
        Ok(u32::from(self.u16(at)?) | u32::from(self.u16(at.saturating_add(2))?) << 16)
    }
}

impl Definition {
    /// Reads an image.
    ///
    /// # Errors
    /// It is not one.
    pub fn read(image: &[u8]) -> Result<Definition, FrmError> {
        let bytes = Bytes(image);
        if image.starts_with(b"TYPE=") {
            return error("it is that of a view");
        }
        if bytes.u16(0)? != 0x01fe {
            return error("it does not begin as one");
        }
        let version = bytes.u8(2)?;
        if version < FORM_VERSION_MIN {
            return error(format!("form {version} is of a server before MySQL 4.1"));
        }
        let extra = Extra::read(bytes)?;
        let form = bytes.u32(HEADER_BYTES + usize::from(bytes.u16(4)?))? as usize;
        let mut columns = read_columns(bytes, form, version)?;
        for (at, name) in extra.types {
            match columns.get_mut(at) {
                Some(column) => column.plugin_type = name,
                None => return error(format!("a type of column {at}, which is not there")),
            }
        }
        let keys = read_keys(bytes, usize::from(bytes.u16(6)?), columns.len())?;
        Ok(Definition { columns, keys, server_version: bytes.u32(51)?, is_versioned: extra.is_versioned })
    }

    /// The key by which rows lie, if the table has one: the first, if it is unique and no part may be NULL or is the beginning of a
    /// column.
    pub fn primary_key(&self) -> Option<&FrmKey> {
        self.keys.first().filter(|key| {
            key.is_unique
                && key
                    .parts
                    .iter()
                    .all(|part| self.columns.get(part.column).is_some_and(|column| !column.is_nullable()))
        })
    }
}

/// What the second header says.
#[derive(Default)]
struct Extra {
    types: Vec<(usize, String)>,
    is_versioned: bool,
}

impl Extra {
    fn read(bytes: Bytes<'_>) -> Result<Extra, FrmError> {
        let mut extra = Extra::default();
        let len = usize::from(bytes.u16(4)?);
        let all = Bytes(bytes.range(HEADER_BYTES, len)?);
        // Of very old files, which had a name there.
        if all.0.first() == Some(&b'/') {
            return Ok(extra);
        }
        let mut at = 0;
        while at + 3 <= len {
            let kind = all.u8(at)?;
            let mut size = usize::from(all.u8(at + 1)?);
            at += 2;
            if size == 0 {
                size = usize::from(all.u16(at)?);
                at += 2;
            }
            let part = all.range(at, size)?;
            at += size;
            match kind {
                EXTRA_TYPES => extra.types = read_types(Bytes(part))?,
                EXTRA_VERSIONS => extra.is_versioned = true,
                _ => {}
            }
        }
        Ok(extra)
    }
}

/// A length as the protocol has it.
fn take_length(bytes: Bytes<'_>, at: &mut usize) -> Result<usize, FrmError> {
    let first = bytes.u8(*at)?;
    *at += 1;
    match first {
        0..=250 => Ok(usize::from(first)),
        252 => {
            let length = bytes.u16(*at)?;
            *at += 2;
            Ok(usize::from(length))
        }
        _ => error("a length in the types of columns"),
    }
}

fn read_types(bytes: Bytes<'_>) -> Result<Vec<(usize, String)>, FrmError> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < bytes.0.len() {
        let column = take_length(bytes, &mut at)?;
        let length = take_length(bytes, &mut at)?;
        let name = bytes.range(at, length)?;
        at += length;
        types.push((column, String::from_utf8_lossy(name).to_lowercase()));
    }
    Ok(types)
}

/// A list: a separator, then each element with the separator behind it, then a zero.
fn take_list<'a>(rest: &mut &'a [u8]) -> Result<Vec<&'a [u8]>, FrmError> {
    let Some((&separator, behind)) = rest.split_first() else { return error("a list of names is missing") };
    if separator == 0 {
        *rest = behind;
        return Ok(Vec::new());
    }
    let Some(end) = behind.iter().position(|byte| *byte == 0) else {
        return error("a list of names does not end");
    };
    let (list, behind) = (behind.get(..end).unwrap_or_default(), behind.get(end + 1..).unwrap_or_default());
    *rest = behind;
    let mut names: Vec<&[u8]> = list.split(|byte| *byte == separator).collect();
    if names.pop().is_some_and(|last| !last.is_empty()) {
        return error("a list of names does not end with its separator");
    }
    Ok(names)
}

fn read_columns(bytes: Bytes<'_>, form: usize, version: u8) -> Result<Vec<FrmColumn>, FrmError> {
    let at = |offset: usize| bytes.u16(form.saturating_add(offset)).map(usize::from);
    let (count, screens, names, lists) = (at(258)?, at(260)?, at(268)?, at(270)?);
    let (members, comments, expressions) = (at(274)?, at(284)?, at(286)?);
    let first = form.saturating_add(FORM_BYTES + screens);
    let behind = first.saturating_add(count * COLUMN_BYTES);
    let mut rest = bytes.range(behind, names)?;
    let names_of = take_list(&mut rest)?;
    if names_of.len() != count {
        return error(format!("{count} columns and {} names", names_of.len()));
    }
    let mut rest = bytes.range(behind + names, members)?;
    let mut lists_of = Vec::new();
    for _ in 0..lists {
        lists_of.push(take_list(&mut rest)?);
    }
    let mut columns = Vec::new();
    for (number, name) in names_of.into_iter().enumerate() {
        let record = Bytes(bytes.range(first + number * COLUMN_BYTES, COLUMN_BYTES)?);
        columns.push(read_column(record, name, &lists_of, version)?);
    }
    let expressions = bytes.range(behind + names + members + comments, expressions)?;
    if version >= FORM_VERSION_EXPRESSIONS {
        read_generated(Bytes(expressions), &mut columns)?;
    }
    Ok(columns)
}

fn read_column(
    record: Bytes<'_>,
    name: &[u8],
    lists: &[Vec<&[u8]>],
    version: u8,
) -> Result<FrmColumn, FrmError> {
    let Ok(name) = String::from_utf8(name.to_vec()) else {
        return error("the name of a column is not UTF-8");
    };
    let ty = record.u8(13)?;
    if ty == OLD_VIRTUAL && version < FORM_VERSION_EXPRESSIONS {
        return error(format!("column {name} is generated, and the table was made by a server before 10.2"));
    }
    let collation = Collation(u16::from(record.u8(11)?) << 8 | u16::from(record.u8(14)?));
    let mut members = Vec::new();
    if matches!(ty, types::ENUM | types::SET) {
        let list = usize::from(record.u8(12)?).checked_sub(1).and_then(|list| lists.get(list));
        let Some(list) = list else { return error(format!("column {name} has no list of members")) };
        for member in list {
            members.push(member_text(member, collation, &name)?);
        }
    }
    Ok(FrmColumn {
        name,
        ty,
        plugin_type: String::new(),
        length: u32::from(record.u16(3)?),
        flags: record.u16(8)?,
        collation,
        members,
        generated: Generated::No,
        is_compressed: record.u8(10)? == SPECIAL_COMPRESSED,
    })
}

/// Members in character sets with more than one byte at least are written as hexadecimal digits.
fn member_text(member: &[u8], collation: Collation, column: &str) -> Result<String, FrmError> {
    let charset = collation.charset();
    let bytes = match charset {
        Charset::Utf16 | Charset::Utf16Le | Charset::Utf32 => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let digits: Option<Vec<u32>> = member.iter().map(digit).collect();
            let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
                return error(format!("a member of column {column}"));
            };
            let pairs = digits.chunks(2);
            pairs.map(|pair| pair.iter().fold(0, |byte: u32, digit| byte << 4 | digit) as u8).collect()
        }
        _ => member.to_vec(),
    };
    // In a character set that is not known, members can be told by what is ASCII in them only.
    Ok(charset.decode(&bytes).unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned()))
}

fn read_generated(bytes: Bytes<'_>, columns: &mut [FrmColumn]) -> Result<(), FrmError> {
    let mut at = EXPRESSIONS_START;
    while at < bytes.0.len() {
        let (kind, column) = (bytes.u8(at)?, usize::from(bytes.u16(at + 1)?));
        let length = usize::from(bytes.u16(at + 3)?) + usize::from(bytes.u8(at + 5)?);
        bytes.range(at + 6, length)?;
        at += 6 + length;
        let generated = match kind {
            0 => Generated::Virtual,
            1 => Generated::Stored,
            _ => continue,
        };
        match columns.get_mut(column) {
            Some(column) => column.generated = generated,
            None => return error(format!("an expression of column {column}, which is not there")),
        }
    }
    Ok(())
}

fn read_keys(bytes: Bytes<'_>, start: usize, columns: usize) -> Result<Vec<FrmKey>, FrmError> {
    let first = bytes.u8(start)?;
    let count = match first & 0x80 {
        0 => usize::from(first),
        _ => usize::from(bytes.u8(start + 1)?) << 7 | usize::from(first & 0x7f),
    };
    let mut at = start + 6;
    let mut keys = Vec::new();
    for _ in 0..count {
        let (flags, parts, algorithm) = (bytes.u16(at)?, bytes.u8(at + 4)?, bytes.u8(at + 5)?);
        at += 8;
        let mut key =
            FrmKey { is_unique: flags & KEY_IS_NOT_UNIQUE == 0 && algorithm != LONG_HASH, parts: Vec::new() };
        for _ in 0..parts {
            let column = usize::from(bytes.u16(at)? & 0x3fff);
            let Some(column) = column.checked_sub(1).filter(|column| *column < columns) else {
                return error(format!("a key on column {column}, which is not there"));
            };
            let (is_reverse, length) =
                (bytes.u8(at + 4)? & PART_IS_REVERSE != 0, u32::from(bytes.u16(at + 7)?));
            key.parts.push(FrmPart { column, length, is_reverse });
            at += 9;
        }
        keys.push(key);
    }
    Ok(keys)
}
