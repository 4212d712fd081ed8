//! Rows by the hash of their keys, in the temporary file: what belongs together comes into the same part, and parts are then
//! worked on one after the other.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::column::{bytes_of_new_strings, Batch, Column, Data, Kind};
use crate::eval::Result;
use crate::keys::KeyPart;
use crate::spill::{Piece, Spill};

/// How many parts rows come into at once.
pub(crate) const PARTS: usize = 16;

/// How often a part is divided again. What is still too large then has one key, or nearly so.
pub(crate) const LEVELS: u32 = 6;

/// The pieces of each part.
pub(crate) type Parts = Vec<Vec<Piece>>;

/// Divides rows; of one thread.
pub(crate) struct Scatter<'a> {
    spill: &'a Spill,
    keys: &'a [KeyPart],
    kinds: &'a [Kind],
    level: u32,
    waiting: Vec<(Batch, Vec<u8>)>,
    bytes: usize,
    parts: Parts,
}

impl<'a> Scatter<'a> {
    pub(crate) fn new(spill: &'a Spill, keys: &'a [KeyPart], kinds: &'a [Kind], level: u32) -> Scatter<'a> {
        let parts = vec![Vec::new(); PARTS];
        Scatter { spill, keys, kinds, level, waiting: Vec::new(), bytes: 0, parts }
    }

    /// Adds rows with these keys.
    pub(crate) fn add(&mut self, batch: Batch, keys: &[Arc<Column>]) -> Result<()> {
        let of_rows = parts_of_rows(self.keys, keys, batch.rows, self.level);
        let batch = batch.detached();
        self.bytes += batch.bytes() + bytes_of_new_strings(&batch.columns, &mut Vec::new());
        self.waiting.push((batch, of_rows));
        if self.bytes >= self.spill.scatter_bytes() {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        for (number, part) in self.parts.iter_mut().enumerate() {
            let mut batches = Vec::with_capacity(self.waiting.len());
            for (batch, of_rows) in &self.waiting {
                let rows = of_rows.iter().enumerate().filter(|(_, part)| usize::from(**part) == number);
                let rows: Vec<u32> = rows.map(|(row, _)| row as u32).collect();
                if !rows.is_empty() {
                    batches.push(batch.gather(&rows));
                }
            }
            if !batches.is_empty() {
                part.push(self.spill.write(&Batch::concat(&batches, self.kinds))?);
            }
        }
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Parts> {
        self.write()?;
        Ok(self.parts)
    }
}

/// Adds the parts of another thread.
pub(crate) fn add_parts(all: &mut Parts, others: Parts) {
    all.resize(PARTS, Vec::new());
    all.iter_mut().zip(others).for_each(|(own, other)| own.extend(other));
}

/// NULL has this word.
const NULL_WORD: u64 = 0x6a09_e667_f3bc_c908;

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93u128;
    (mixed as u64) ^ (mixed >> 64) as u64
}

/// The part of each row. Values that are equal have the same, whatever form they have: numbers count, and keys of texts.
fn parts_of_rows(parts: &[KeyPart], columns: &[Arc<Column>], rows: usize, level: u32) -> Vec<u8> {
    let mut hashes = vec![mix(0x9e37_79b9_7f4a_7c15, u64::from(level) + 1); rows];
    for (part, column) in parts.iter().zip(columns) {
        match (part, &column.data) {
            (KeyPart::Text(interner), Data::Text(codes, dict)) => {
                let (mut key, mut known) = (Vec::new(), std::collections::HashMap::new());
                for (row, hash) in hashes.iter_mut().enumerate() {
                    let word = match column.is_null(row) {
                        true => NULL_WORD,
                        false => *known.entry(codes[row]).or_insert_with(|| {
                            key.clear();
                            (interner.key())(dict.get(codes[row]), &mut key);
                            xxh3_64(&key)
                        }),
                    };
                    *hash = mix(*hash, word);
                }
            }
            (_, Data::Real(values)) => {
                for (row, hash) in hashes.iter_mut().enumerate() {
                    let bits = if values[row] == 0.0 { 0 } else { values[row].to_bits() };
                    *hash = mix(*hash, if column.is_null(row) { NULL_WORD } else { bits });
                }
            }
            _ => {
                for (row, hash) in hashes.iter_mut().enumerate() {
                    let value = column.number(row);
                    *hash = match column.is_null(row) {
                        true => mix(*hash, NULL_WORD),
                        false => mix(mix(*hash, value as u64), (value >> 64) as u64),
                    };
                }
            }
        }
    }
    hashes.into_iter().map(|hash| ((hash ^ hash >> 32) as usize % PARTS) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Dict;
    use crate::expr::Texts;
    use pando_column::vector::Strings;
    use std::collections::BTreeSet;

    fn column(data: Data, nulls: Option<Vec<bool>>) -> Vec<Arc<Column>> {
        vec![Arc::new(Column { data, nulls })]
    }

    #[test]
    fn equal_values_come_into_the_same_part_whatever_their_form() {
        let small = column(Data::Small((-500..500).collect()), None);
        let large = column(Data::Large((-500..500).collect()), None);
        let of = |part: &KeyPart, columns: &[Arc<Column>]| {
            parts_of_rows(std::slice::from_ref(part), columns, 1000, 0)
        };
        assert_eq!(of(&KeyPart::Word, &small), of(&KeyPart::Wide, &large));
        let parts: BTreeSet<u8> = of(&KeyPart::Word, &small).into_iter().collect();
        assert_eq!(parts.len(), PARTS, "all are used");
        assert_ne!(of(&KeyPart::Word, &small), parts_of_rows(&[KeyPart::Word], &small, 1000, 1));
        let zeros = column(Data::Real(vec![0.0, -0.0]), None);
        let parts = parts_of_rows(&[KeyPart::Real], &zeros, 2, 0);
        assert_eq!(parts[0], parts[1]);
        let nulls = |data| column(data, Some(vec![true; 3]));
        let first = parts_of_rows(&[KeyPart::Word], &nulls(Data::Small(vec![1, 2, 3])), 3, 0);
        assert!(first.iter().all(|part| *part == first[0]));
        let mut texts = Texts::default();
        texts.collations.push(Arc::new(|text, key| key.extend(text.to_ascii_lowercase())));
        let part = KeyPart::of(Kind::Text(0), &texts.collations).unwrap();
        let strings = |values: &[&str]| {
            let mut strings = Strings::new();
            values.iter().for_each(|value| strings.push(value.as_bytes()));
            Dict::Strings(Arc::new(strings))
        };
        let text = column(Data::Text(vec![0, 1, 0], strings(&["ab", "AB"])), Some(vec![false, false, true]));
        let other = column(Data::Text(vec![1, 1, 0], strings(&["x", "aB"])), None);
        let (text, other) = (
            parts_of_rows(std::slice::from_ref(&part), &text, 3, 0),
            parts_of_rows(std::slice::from_ref(&part), &other, 3, 0),
        );
        assert_eq!(text[..2], other[..2]);
        assert_eq!(text[0], text[1]);
    }
}
