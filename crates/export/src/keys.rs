//! The primary key's columns, from the bytes that memcmp orders (`mariadb/src/codec/key_part.h`, `text_order.h`).
//!
//! Parts lie one after the other; of some, the value can be had back, of others (texts in most collations, FLOAT and DOUBLE) it lies in
//! the row. To pass by a text one has to know where it ends, which depends on its collation's weights; those are the server's. So parts
//! are taken from the front up to the first such text, and from the end, as long as they have a fixed size; what is between two
//! such texts is tried with the weights of the simple collations.
#![deny(clippy::indexing_slicing)]

use crate::charset::{Charset, Collation};
use crate::frm::{types, Definition, FrmColumn, FrmKey};

/// How a part lies in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Most significant byte first; signed ones with their highest bit flipped.
    Integer { is_signed: bool },
    /// As they are.
    Bytes,
    /// Of a floating-point number.
    Real,
    /// A text, each zero followed by ff, 00 01 at the end.
    Ended,
    /// A text that is compared as if spaces followed.
    Padded,
    /// A text of which only the server knows the weights.
    Weights,
}

/// A part of the primary key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    column: usize,
    form: Form,
    size: usize,
    mask: u8,
    is_lossless: bool,
    collation: Collation,
}

/// The parts of the primary key.
#[derive(Clone, Debug)]
pub struct KeyParts {
    parts: Vec<KeyPart>,
    columns: Vec<FrmColumn>,
}

impl KeyPart {
    fn new(definition: &Definition, part: &crate::frm::FrmPart) -> Option<KeyPart> {
        let column = definition.columns.get(part.column)?;
        let size = part.length as usize;
        let collation = column.collation;
        let is_char = column.ty == types::STRING || column.ty == types::VAR_STRING;
        let mut is_prefix = false;
        let form = match column.ty {
            _ if column.is_plugin_type() => Form::Bytes,
            types::TINY if column.is_unsigned() => Form::Bytes,
            types::TINY | types::SHORT | types::INT24 | types::LONG | types::LONGLONG => {
                Form::Integer { is_signed: !column.is_unsigned() }
            }
            types::NEWDATE | types::DATE | types::TIMESTAMP | types::DATETIME => {
                Form::Integer { is_signed: false }
            }
            types::TIME => Form::Integer { is_signed: true },
            types::ENUM | types::SET if size > 1 => Form::Integer { is_signed: false },
            types::FLOAT | types::DOUBLE => Form::Real,
            types::STRING if collation.charset() == Charset::Binary => {
                is_prefix = part.length < column.length;
                Form::Bytes
            }
            types::STRING | types::VAR_STRING | types::VARCHAR => {
                is_prefix = part.length < column.length;
                match (collation.pads(), collation.compares_bytes()) {
                    (false, _) if collation.0 < 2048 => Form::Ended,
                    (true, _) if collation.has_byte_weights() => Form::Padded,
                    _ => Form::Weights,
                }
            }
            types::TINY_BLOB..=types::BLOB | types::GEOMETRY => {
                is_prefix = true;
                match (collation.pads(), collation.has_byte_weights()) {
                    (false, _) if collation.0 < 2048 => Form::Ended,
                    (true, true) => Form::Padded,
                    _ => Form::Weights,
                }
            }
            _ => Form::Bytes,
        };
        let is_text = matches!(form, Form::Ended | Form::Padded | Form::Weights);
        let gives_text = collation.compares_bytes() && (is_char || !collation.pads());
        let is_lossless = form != Form::Real && !is_prefix && (!is_text || gives_text);
        let mask = if part.is_reverse { 0xff } else { 0 };
        Some(KeyPart { column: part.column, form, size, mask, is_lossless, collation })
    }

    fn has_fixed_size(&self) -> bool {
        matches!(self.form, Form::Integer { .. } | Form::Bytes | Form::Real)
    }

    /// Takes the part off the front of `key`, and gives its value as rows have it.
    fn take(&self, key: &mut &[u8]) -> Option<Vec<u8>> {
        match self.form {
            Form::Ended => self.take_ended(key),
            Form::Padded => self.take_padded(key, b" "),
            Form::Weights if self.collation.0 < 2048 && self.collation.charset() == Charset::Utf8 => {
                // The weight of the space in the general collations, and in those of UCA 4.0.0.
                let space = match self.collation.0 {
                    33 | 45 | 223 => &[0, 0x20],
                    _ => &[0x02, 0x09],
                };
                self.take_padded(key, space)
            }
            Form::Weights => None,
            Form::Integer { is_signed } => {
                let mut value = self.take_fixed(key)?;
                value.reverse();
                if is_signed {
                    *value.last_mut()? ^= 0x80;
                }
                Some(value)
            }
            Form::Bytes | Form::Real => self.take_fixed(key),
        }
    }

    fn take_fixed(&self, key: &mut &[u8]) -> Option<Vec<u8>> {
        let (value, rest) = key.split_at_checked(self.size)?;
        *key = rest;
        Some(value.iter().map(|byte| byte ^ self.mask).collect())
    }

    fn take_ended(&self, key: &mut &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        loop {
            let (byte, rest) = key.split_first()?;
            *key = rest;
            if byte ^ self.mask == 0 {
                let (next, rest) = key.split_first()?;
                *key = rest;
                if next ^ self.mask == 1 {
                    return Some(value);
                }
            }
            value.push(byte ^ self.mask);
        }
    }

    fn take_padded(&self, key: &mut &[u8], space: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        loop {
            let (weight, rest) = key.split_at_checked(space.len())?;
            *key = rest;
            let is_space = weight.iter().zip(space).all(|(byte, space)| byte ^ self.mask == *space);
            if is_space {
                let (marker, rest) = key.split_first()?;
                *key = rest;
                if marker ^ self.mask == 2 {
                    return Some(value);
                }
            }
            value.extend(weight.iter().map(|byte| byte ^ self.mask));
        }
    }
}

impl KeyParts {
    pub(crate) fn new(definition: &Definition, key: &FrmKey) -> KeyParts {
        let parts = key.parts.iter().filter_map(|part| KeyPart::new(definition, part)).collect();
        KeyParts { parts, columns: definition.columns.clone() }
    }

    /// The part from which a column can be had, if there is one.
    pub(crate) fn lossless_part_of(&self, column: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.column == column && part.is_lossless)
    }

    /// The value of each part, if it can be had.
    pub(crate) fn values(&self, key: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut values: Vec<Option<Vec<u8>>> = vec![None; self.parts.len()];
        let mut rest = key;
        let mut taken = 0;
        for (part, value) in self.parts.iter().zip(&mut values) {
            if part.form == Form::Weights {
                break;
            }
            let Some(bytes) = part.take(&mut rest) else { return Err(self.damaged()) };
            *value = Some(bytes);
            taken += 1;
        }
        let mut ending = self.parts.len();
        while ending > taken {
            let Some(part) = self.parts.get(ending - 1).filter(|part| part.has_fixed_size()) else { break };
            let Some(at) = rest.len().checked_sub(part.size) else { return Err(self.damaged()) };
            let mut last = rest.get(at..).unwrap_or_default();
            rest = rest.get(..at).unwrap_or_default();
            if let Some(value) = values.get_mut(ending - 1) {
                *value = part.take(&mut last);
            }
            ending -= 1;
        }
        if taken == ending {
            return if rest.is_empty() { Ok(values) } else { Err(self.damaged()) };
        }
        let between = self.parts.get(taken..ending).unwrap_or_default();
        if between.iter().any(|part| part.is_lossless) {
            for (at, part) in between.iter().enumerate() {
                let Some(bytes) = part.take(&mut rest) else { return Err(self.unknown()) };
                if let Some(value) = values.get_mut(taken + at) {
                    *value = Some(bytes);
                }
            }
            if !rest.is_empty() {
                return Err(self.unknown());
            }
        }
        Ok(values)
    }

    fn damaged(&self) -> String {
        "the key of a row is not one of the table's primary key".into()
    }

    fn unknown(&self) -> String {
        "the columns of the primary key that lie between texts cannot be read".into()
    }

    /// For people: the parts up to the first that cannot be told.
    pub(crate) fn text(&self, key: &[u8]) -> String {
        let mut rest = key;
        let mut texts = Vec::new();
        for part in &self.parts {
            let value = part.take(&mut rest).filter(|_| part.is_lossless);
            let Some((value, column)) = value.zip(self.columns.get(part.column)) else { break };
            texts.push(part.shown(column, &value));
        }
        texts.join(", ")
    }
}
