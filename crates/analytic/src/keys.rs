//! Values as words of 64 bits, to look them up: equal words are equal values. Texts are numbered by their collation's keys
//! ([`Interner`]); numbers are themselves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use hashbrown::HashTable;
use pando_base::locks::{Mutex, RwLock};
use pando_column::vector::Strings;
use pando_query::{Failure, Why};
use xxhash_rust::xxh3::xxh3_64;

pub use crate::budget::Budget;
use crate::column::{Column, Data, Dict, Kind, OVERFLOW};
use crate::eval::Result;
use crate::expr::KeyOfText;

#[derive(Debug, Default)]
struct Known {
    /// By the key.
    table: HashTable<Entry>,
    /// By the text itself, which needs no key.
    by_text: HashTable<Entry>,
    keys: Strings,
    texts: Strings,
    /// By number: the first text that is equal.
    firsts: Vec<u32>,
}

/// Numbers texts: equal ones have the same number, or each its own ([`Keys::telling_apart`]).
pub struct Interner {
    key: Arc<KeyOfText>,
    tells_apart: bool,
    known: RwLock<Known>,
    /// Two texts were equal and not the same.
    is_ambiguous: AtomicBool,
    /// The numbers of texts in memory that come with many batches, as far as they are known.
    of_dicts: Mutex<Vec<(Dict, Arc<[AtomicU32]>)>>,
    bytes: AtomicUsize,
}

/// Dictionaries whose numbers are kept.
const DICTS_KEPT: usize = 4;

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interner")
    }
}

/// Of a new text, beside itself and its key: in two tables that are half full, where it begins, and its first.
const BYTES_OF_NEW: usize = 48;

/// No text has this number.
pub(crate) const UNKNOWN_TEXT: u32 = u32::MAX;
/// Nor this: nobody has asked for it.
const UNASKED: u32 = u32::MAX - 1;

impl Interner {
    pub(crate) fn new(key: Arc<KeyOfText>) -> Interner {
        Interner {
            key,
            tells_apart: false,
            known: RwLock::default(),
            is_ambiguous: AtomicBool::new(false),
            of_dicts: Mutex::new(Vec::new()),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Gives the bytes that order a text.
    pub(crate) fn key(&self) -> &KeyOfText {
        &*self.key
    }

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous.load(Ordering::Relaxed)
    }

    /// The first text of each number.
    pub(crate) fn texts(&self) -> Arc<Strings> {
        let mut texts = self.known.read().texts.clone();
        if texts.is_empty() {
            texts.push(b"");
        }
        Arc::new(texts)
    }

    /// Where the numbers of a dictionary are kept, or are to be.
    fn numbers_of_dict(&self, dict: &Dict, budget: &Budget) -> Result<Arc<[AtomicU32]>> {
        let new = || (0..dict.len()).map(|_| AtomicU32::new(UNASKED)).collect::<Arc<[AtomicU32]>>();
        if matches!(dict, Dict::Vector(_)) {
            // That of a block, which comes once.
            return Ok(new());
        }
        let mut kept = self.of_dicts.lock();
        if let Some((_, numbers)) = kept.iter().find(|(known, _)| known.is(dict)) {
            return Ok(numbers.clone());
        }
        if kept.len() == DICTS_KEPT {
            let (dict, _) = kept.remove(0);
            budget.release(dict.len() * 4);
        }
        budget.take(dict.len() * 4)?;
        let numbers = new();
        kept.push((dict.clone(), numbers.clone()));
        Ok(numbers)
    }

    /// The numbers of a column's texts; with `adds`, those that are new get one.
    pub(crate) fn numbers(&self, column: &Column, adds: bool, budget: &Budget) -> Result<Vec<u32>> {
        let Data::Text(codes, dict) = &column.data else { return Err(OVERFLOW) };
        if matches!(dict, Dict::Vector(_)) && dict.len() * 2 <= codes.len() {
            return self.numbers_by_entries(column, (codes, dict), adds, budget);
        }
        let of_codes = self.numbers_of_dict(dict, budget)?;
        // Most texts have been seen before: without a lock.
        let mut new = Vec::new();
        let mut numbers = Vec::with_capacity(codes.len());
        numbers.extend(codes.iter().enumerate().map(|(row, code)| {
            if column.is_null(row) {
                return 0;
            }
            let number = of_codes[*code as usize].load(Ordering::Relaxed);
            if number == UNASKED {
                new.push(row);
            }
            number
        }));
        if !new.is_empty() {
            self.ask(&new, &mut Ask { codes, dict, of_codes: &of_codes }, &mut numbers, adds, budget)?;
        }
        Ok(numbers)
    }

    /// Of the dictionary of a block, each entry that some row has is asked for, and no row.
    fn numbers_by_entries(
        &self,
        column: &Column,
        (codes, dict): (&[u32], &Dict),
        adds: bool,
        budget: &Budget,
    ) -> Result<Vec<u32>> {
        let mut of_entries = vec![0; dict.len()];
        match &column.nulls {
            None => codes.iter().for_each(|code| of_entries[*code as usize] = UNASKED),
            Some(nulls) => {
                let known = codes.iter().zip(nulls).filter(|(_, is_null)| !**is_null);
                known.for_each(|(code, _)| of_entries[*code as usize] = UNASKED);
            }
        }
        let known = self.known.read();
        let mut new = Vec::new();
        for (entry, number) in of_entries.iter_mut().enumerate().filter(|(_, number)| **number == UNASKED) {
            match known.number(dict.get(entry as u32)) {
                Some(found) => *number = found,
                None => new.push(entry),
            }
        }
        drop(known);
        if !new.is_empty() {
            let each: Vec<u32> = (0..dict.len() as u32).collect();
            let of_codes: Vec<AtomicU32> = each.iter().map(|_| AtomicU32::new(UNASKED)).collect();
            self.ask(
                &new,
                &mut Ask { codes: &each, dict, of_codes: &of_codes },
                &mut of_entries,
                adds,
                budget,
            )?;
        }
        let mut numbers: Vec<u32> = codes.iter().map(|code| of_entries[*code as usize]).collect();
        for (number, _) in
            numbers.iter_mut().zip(column.nulls.iter().flatten()).filter(|(_, is_null)| **is_null)
        {
            *number = 0;
        }
        Ok(numbers)
    }

    /// The numbers of some rows, which nobody has asked for yet.
    fn ask(
        &self,
        rows: &[usize],
        ask: &mut Ask<'_>,
        numbers: &mut [u32],
        adds: bool,
        budget: &Budget,
    ) -> Result<()> {
        if adds {
            return self.add_texts(rows, ask, numbers, budget);
        }
        let (known, mut key) = (self.known.read(), Vec::new());
        for row in rows {
            numbers[*row] = ask.number(*row, |text| {
                known
                    .number(text)
                    .or_else(|| known.number_by_key(self.key_of(text, &mut key)))
                    .unwrap_or(UNKNOWN_TEXT)
            });
        }
        Ok(())
    }

    fn key_of<'a>(&self, text: &[u8], key: &'a mut Vec<u8>) -> &'a [u8] {
        key.clear();
        (self.key)(text, key);
        key
    }

    /// The numbers of texts that were not asked for before, of which some are new.
    fn add_texts(
        &self,
        rows: &[usize],
        ask: &mut Ask<'_>,
        numbers: &mut [u32],
        budget: &Budget,
    ) -> Result<()> {
        let (mut known, mut key) = (self.known.write(), Vec::new());
        let mut is_new = 0;
        for row in rows {
            numbers[*row] = ask.number(*row, |text| {
                if let Some(number) = known.number(text) {
                    return number;
                }
                let key = self.key_of(text, &mut key);
                if let Some(number) = known.number_by_key(key) {
                    // It is equal to another one, and not the same.
                    self.is_ambiguous.store(true, Ordering::Relaxed);
                    if !self.tells_apart {
                        return number;
                    }
                    is_new += text.len() + BYTES_OF_NEW;
                    return known.add_equal(number, text);
                }
                is_new += key.len() + text.len() + BYTES_OF_NEW;
                known.add(key, text)
            });
        }
        let is_too_long = known.keys.total_bytes().max(known.texts.total_bytes()) > (u32::MAX / 2) as usize;
        drop(known);
        if is_too_long {
            return Err(Failure::GivenBack(Why::Memory));
        }
        self.bytes.fetch_add(is_new, Ordering::Relaxed);
        budget.take(is_new)
    }
}

impl Known {
    fn number(&self, text: &[u8]) -> Option<u32> {
        find(&self.by_text, &self.texts, text)
    }

    fn number_by_key(&self, key: &[u8]) -> Option<u32> {
        find(&self.table, &self.keys, key)
    }

    fn add(&mut self, key: &[u8], text: &[u8]) -> u32 {
        let number = self.keys.len() as u32;
        self.keys.push(key);
        self.texts.push(text);
        self.firsts.push(number);
        insert(&mut self.table, key, number);
        insert(&mut self.by_text, text, number);
        number
    }

    /// A text with a number of its own that is equal to another one.
    fn add_equal(&mut self, first: u32, text: &[u8]) -> u32 {
        let number = self.keys.len() as u32;
        // It is found by the first one's key.
        self.keys.push(b"");
        self.texts.push(text);
        self.firsts.push(first);
        insert(&mut self.by_text, text, number);
        number
    }
}

/// A text's number, and half of its hash: a table that grows does not look at the texts.
#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u32,
    hash: u32,
}

/// Over all bits: a table takes the highest ones, too.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn find(table: &HashTable<Entry>, texts: &Strings, text: &[u8]) -> Option<u32> {
    let hash = xxh3_64(text) as u32;
    let is_it = |entry: &Entry| entry.hash == hash && texts.get(entry.number as usize) == text;
    table.find(spread(hash), is_it).map(|entry| entry.number)
}

fn insert(table: &mut HashTable<Entry>, text: &[u8], number: u32) {
    let hash = xxh3_64(text) as u32;
    table.insert_unique(spread(hash), Entry { number, hash }, |entry| spread(entry.hash));
}

/// Asks for the numbers of a column's texts, of each once.
struct Ask<'a> {
    codes: &'a [u32],
    dict: &'a Dict,
    of_codes: &'a [AtomicU32],
}

impl Ask<'_> {
    fn number(&mut self, row: usize, find: impl FnOnce(&[u8]) -> u32) -> u32 {
        let code = self.codes[row];
        let kept = &self.of_codes[code as usize];
        let mut number = kept.load(Ordering::Relaxed);
        if number == UNASKED {
            number = find(self.dict.get(code));
            kept.store(number, Ordering::Relaxed);
        }
        number
    }
}

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
            KeyPart::Text(interner) => {
                let tells_apart = interner.tells_apart;
                KeyPart::Text(Arc::new(Interner { tells_apart, ..Interner::new(interner.key.clone()) }))
            }
            other => other.clone(),
        };
        Keys { parts: self.parts.iter().map(part).collect(), ..*self }
    }

    /// The same, but of texts that are equal and not the same each has words of its own: who has taken all rows looks whether
    /// [`Keys::have_equal`]. Of `GROUP BY id, name` no two names of one id need be equal, though names of different ids are.
    pub(crate) fn telling_apart(&self) -> Keys {
        let part = |part: &KeyPart| match part {
            KeyPart::Text(interner) => {
                KeyPart::Text(Arc::new(Interner { tells_apart: true, ..Interner::new(interner.key.clone()) }))
            }
            other => other.clone(),
        };
        Keys { parts: self.parts.iter().map(part).collect(), ..*self }
    }

    /// Whether some of these words, of which none are the same, are those of equal values.
    pub(crate) fn have_equal(&self, words: &[u64], budget: &Budget) -> Result<bool> {
        if !self.is_ambiguous() {
            return Ok(false);
        }
        let bytes = size_of_val(words) + words.len() / self.words * 24;
        budget.take(bytes)?;
        let mut firsts = words.to_vec();
        let mut at = 0;
        for part in &self.parts {
            if let KeyPart::Text(interner) = part {
                let known = interner.known.read();
                let places = firsts.iter_mut().skip(at).step_by(self.words);
                places.for_each(|word| {
                    *word = known.firsts.get(*word as usize).map_or(*word, |first| (*first).into())
                });
            }
            at += part.words();
        }
        let mut seen = HashSet::with_capacity(words.len() / self.words);
        let has_equal = !firsts.chunks(self.words).all(|words| seen.insert(words));
        drop(seen);
        budget.release(bytes);
        Ok(has_equal)
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
