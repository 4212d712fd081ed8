//! Values as words of 64 bits, to look them up: equal words are equal values. Texts are numbered by their collation's keys
//! ([`Interner`]); numbers are themselves.

use std::collections::HashSet;
use std::sync::Arc;

pub use crate::budget::Budget;
use crate::column::{Column, Data, Dict, Kind, OVERFLOW};
use crate::eval::Result;
use crate::expr::KeyOfText;
pub(crate) use crate::interner::Interner;

/// How one value becomes words.
#[derive(Clone, Debug)]
pub(crate) enum KeyPart {
    /// An integer of 64 bits with a sign, or a moment.
    Word,
    /// An integer of 64 bits without a sign.
    Natural,
    /// One that need not: two words.
    Wide,
    /// A DOUBLE.
    Real,
    /// A text.
    Text(Arc<Interner>),
}

impl KeyPart {
    pub(crate) fn of(kind: Kind, collations: &[Arc<KeyOfText>]) -> Option<KeyPart> {
        Some(match kind {
            Kind::Signed | Kind::Date | Kind::DateTime | Kind::Time => KeyPart::Word,
            Kind::Unsigned => KeyPart::Natural,
            Kind::Decimal(_) => KeyPart::Wide,
            Kind::Real => KeyPart::Real,
            Kind::Text(collation) => {
                KeyPart::Text(Arc::new(Interner::new(collations.get(collation as usize)?.clone())))
            }
        })
    }

    fn words(&self) -> usize {
        if matches!(self, KeyPart::Wide) {
            2
        } else {
            1
        }
    }
}

/// How the values of several columns become words.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub parts: Vec<KeyPart>,
    /// How many words a key has; not 0.
    pub words: usize,
    /// The last word has a bit for each value that is NULL: groups have NULLs. In joins NULL is equal to nothing.
    has_nulls: bool,
}

impl Keys {
    /// Of groups: NULL is a value.
    pub(crate) fn of_groups(parts: Vec<KeyPart>) -> Keys {
        let words = parts.iter().map(KeyPart::words).sum::<usize>() + 1;
        Keys { parts, words, has_nulls: true }
    }

    /// Of joins.
    pub(crate) fn of_join(parts: Vec<KeyPart>) -> Keys {
        let words = parts.iter().map(KeyPart::words).sum::<usize>().max(1);
        Keys { parts, words, has_nulls: false }
    }

    /// The same, of which no text is known yet.
    pub(crate) fn renewed(&self) -> Keys {
        let part = |part: &KeyPart| match part {
            KeyPart::Text(interner) => KeyPart::Text(Arc::new(interner.renewed())),
            other => other.clone(),
        };
        Keys { parts: self.parts.iter().map(part).collect(), ..*self }
    }

    /// The same, but of texts that are equal and not the same each has words of its own: who has taken all rows looks whether
    /// [`Keys::have_equal`]. Of `GROUP BY id, name` no two names of one id need be equal, though names of different ids are.
    pub(crate) fn telling_apart(&self) -> Keys {
        let part = |part: &KeyPart| match part {
            KeyPart::Text(interner) => KeyPart::Text(Arc::new(interner.telling_apart())),
            other => other.clone(),
        };
        Keys { parts: self.parts.iter().map(part).collect(), ..*self }
    }

    /// Whether all there is is one text: then the first word is its number, and numbers lie close together.
    pub(crate) fn is_one_text(&self) -> bool {
        self.has_nulls && matches!(self.parts.as_slice(), [KeyPart::Text(_)])
    }

    /// Whether some of these words, of which none are the same, are those of equal values.
    pub(crate) fn have_equal(&self, words: &[u64], budget: &Budget) -> Result<bool> {
        if !self.is_ambiguous() {
            return Ok(false);
        }
        let bytes = size_of_val(words) + words.len() / self.words * 24;
        budget.take(bytes)?;
        let firsts = self.firsts_of(words);
        let mut seen = HashSet::with_capacity(words.len() / self.words);
        let has_equal = !firsts.chunks(self.words).all(|words| seen.insert(words));
        drop(seen);
        budget.release(bytes);
        Ok(has_equal)
    }

    /// The words of rows as they would be if the first text that was known stood for all that are equal to it.
    pub(crate) fn firsts_of(&self, words: &[u64]) -> Vec<u64> {
        let (mut firsts, mut at) = (words.to_vec(), 0);
        for part in &self.parts {
            if let KeyPart::Text(interner) = part {
                interner.give_firsts(firsts.iter_mut().skip(at).step_by(self.words));
            }
            at += part.words();
        }
        firsts
    }

    /// The words of all rows, row after row. Without `adds`, a row with a text that is not known has a number that no
    /// row has. Words of NULLs are 0.
    pub(crate) fn encode(
        &self,
        columns: &[Arc<Column>],
        rows: usize,
        adds: bool,
        budget: &Budget,
    ) -> Result<Vec<u64>> {
        let width = self.words;
        if let ([KeyPart::Word], 1, [column]) = (self.parts.as_slice(), width, columns) {
            if let (Data::Small(values), None) = (&column.data, &column.nulls) {
                return Ok(values.iter().map(|value| *value as u64).collect());
            }
        }
        let mut words = vec![0u64; rows * width];
        let mut at = 0;
        for (number, (part, column)) in self.parts.iter().zip(columns).enumerate() {
            match part {
                KeyPart::Word | KeyPart::Natural => match &column.data {
                    Data::Small(values) => {
                        let places = words.iter_mut().skip(at).step_by(width);
                        places.zip(values).for_each(|(word, value)| *word = *value as u64);
                    }
                    _ => {
                        for row in (0..rows).filter(|row| !column.is_null(*row)) {
                            let value = column.number(row);
                            let word = match part {
                                KeyPart::Word => i64::try_from(value).map(|value| value as u64),
                                _ => u64::try_from(value),
                            };
                            words[row * width + at] = word.map_err(|_| OVERFLOW)?;
                        }
                    }
                },
                KeyPart::Wide => {
                    for row in 0..rows {
                        let value = column.number(row);
                        words[row * width + at] = value as u64;
                        words[row * width + at + 1] = (value >> 64) as u64;
                    }
                }
                KeyPart::Real => {
                    let Data::Real(values) = &column.data else { return Err(OVERFLOW) };
                    for (row, value) in values.iter().enumerate() {
                        words[row * width + at] = if *value == 0.0 { 0 } else { value.to_bits() };
                    }
                }
                KeyPart::Text(interner) => {
                    let numbers = interner.numbers(column, adds, budget)?;
                    for (row, value) in numbers.iter().enumerate() {
                        words[row * width + at] = u64::from(*value);
                    }
                }
            }
            if let Some(nulls) = &column.nulls {
                for (row, is_null) in nulls.iter().enumerate() {
                    if *is_null {
                        words[row * width + at..row * width + at + part.words()].fill(0);
                        if self.has_nulls {
                            words[row * width + width - 1] |= 1 << number;
                        }
                    }
                }
            }
            at += part.words();
        }
        Ok(words)
    }

    /// The same words with NULL in all parts from this one on.
    pub(crate) fn without(&self, words: &mut [u64], from: usize) {
        let kept = self.parts[..from].iter().map(KeyPart::words).sum::<usize>();
        let nulls: u64 = (from..self.parts.len()).map(|part| 1 << part).sum();
        for words in words.chunks_mut(self.words) {
            words[kept..self.words - 1].fill(0);
            words[self.words - 1] |= nulls;
        }
    }

    /// Which rows have a NULL among their values; `None`: none has.
    pub(crate) fn nulls(columns: &[Arc<Column>]) -> Option<Vec<bool>> {
        let mut all: Option<Vec<bool>> = None;
        for nulls in columns.iter().filter_map(|column| column.nulls.as_ref()) {
            match &mut all {
                None => all = Some(nulls.clone()),
                Some(all) => all.iter_mut().zip(nulls).for_each(|(all, is_null)| *all |= is_null),
            }
        }
        all
    }

    /// The columns that words of groups were made of.
    pub(crate) fn decode(&self, words: &[u64], rows: usize) -> Vec<Arc<Column>> {
        let width = self.words;
        let mut at = 0;
        let mut columns = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let word = |row: usize| words[row * width + at];
            let is_null = |row: usize| words[row * width + width - 1] >> number & 1 != 0;
            let has_nulls = (0..rows).any(is_null);
            let nulls = has_nulls.then(|| (0..rows).map(is_null).collect());
            let column = match part {
                KeyPart::Word => {
                    Column { data: Data::Small((0..rows).map(|row| word(row) as i64).collect()), nulls }
                }
                KeyPart::Natural => {
                    Column::of_large((0..rows).map(|row| i128::from(word(row))).collect(), nulls)
                }
                KeyPart::Wide => {
                    let value = |row: usize| {
                        i128::from(words[row * width + at + 1] as i64) << 64 | i128::from(word(row))
                    };
                    Column::of_large((0..rows).map(value).collect(), nulls)
                }
                KeyPart::Real => Column {
                    data: Data::Real((0..rows).map(|row| f64::from_bits(word(row))).collect()),
                    nulls,
                },
                KeyPart::Text(interner) => {
                    let codes = (0..rows).map(|row| word(row) as u32).collect();
                    Column { data: Data::Text(codes, Dict::Strings(interner.texts())), nulls }
                }
            };
            columns.push(Arc::new(column));
            at += part.words();
        }
        columns
    }

    /// Whether two texts of which one stands for both were not the same.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.parts.iter().any(|part| match part {
            KeyPart::Text(interner) => interner.is_ambiguous(),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_column::vector::Strings;

    /// Texts in a collation without the case of letters.
    fn keys() -> Keys {
        let lower = |text: &[u8], key: &mut Vec<u8>| key.extend(text.to_ascii_lowercase());
        let text = KeyPart::Text(Arc::new(Interner::new(Arc::new(lower))));
        Keys::of_groups(vec![KeyPart::Word, text])
    }

    fn columns(rows: &[(i64, &str)]) -> [Arc<Column>; 2] {
        let mut strings = Strings::new();
        rows.iter().for_each(|(_, text)| strings.push(text.as_bytes()));
        let numbers = Data::Small(rows.iter().map(|(number, _)| *number).collect());
        let texts = Data::Text((0..rows.len() as u32).collect(), Dict::Strings(Arc::new(strings)));
        [numbers, texts].map(|data| Arc::new(Column { data, nulls: None }))
    }

    #[test]
    fn equal_texts_are_told_apart_where_that_is_asked() {
        let budget = Budget::new(1 << 20);
        let words = |keys: &Keys, rows: &[(i64, &str)]| {
            let words = keys.encode(&columns(rows), rows.len(), true, &budget).unwrap();
            words.chunks(keys.words).map(<[u64]>::to_vec).collect::<Vec<_>>()
        };
        let rows = [(1, "Ann"), (2, "ANN"), (3, "ann"), (1, "Ann")];
        let of_joins = keys();
        let alike = words(&of_joins, &rows);
        assert!(alike.iter().all(|words| words[1] == alike[0][1]) && of_joins.is_ambiguous());

        let of_groups = keys().telling_apart();
        let apart = words(&of_groups, &rows);
        assert!(apart[0] == apart[3] && apart[0][1] != apart[1][1] && apart[1][1] != apart[2][1]);
        assert!(!of_groups.have_equal(&apart[..3].concat(), &budget).unwrap(), "each number has one name");
        let texts = of_groups.decode(&apart[..3].concat(), 3);
        let text = |row: usize| match &texts[1].data {
            Data::Text(codes, dict) => dict.get(codes[row]).to_vec(),
            _ => unreachable!("a text"),
        };
        assert_eq!([text(0), text(1), text(2)], [b"Ann", b"ANN", b"ann"].map(|text| text.to_vec()));
        let more = words(&of_groups, &[(2, "aNN")]);
        assert!(of_groups.have_equal(&[apart.concat(), more[0].clone()].concat(), &budget).unwrap());
        assert_eq!(words(&of_groups.renewed(), &[(1, "x"), (1, "X")]).len(), 2);
    }
}
