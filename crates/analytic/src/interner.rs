//! Texts as numbers, by their collation: equal ones have the same number, or each its own ([`Interner::telling_apart`]).
//!
//! A text that was seen before is found by its bytes. Only of a new one the collation's key is made, and looked up by its hash among those of
//! the texts that are known. Keys are not kept: two texts whose hashes are the same are rare, and then the key of the one that is known
//! is made again. All threads of a query share the numbers; they hash, and make keys, outside the lock.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use hashbrown::HashTable;
use pando_base::locks::{Mutex, RwLock};
use pando_column::vector::Strings;
use pando_query::{Failure, Why};
use xxhash_rust::xxh3::xxh3_64;

use crate::budget::Budget;
use crate::column::{Column, Data, Dict, OVERFLOW};
use crate::eval::Result;
use crate::expr::KeyOfText;

#[derive(Debug, Default)]
struct Known {
    /// By the text itself.
    by_text: HashTable<Entry>,
    /// By the key; of texts that are equal, the first.
    by_key: HashTable<Entry>,
    texts: Arc<Strings>,
    /// By number: the first text that is equal.
    firsts: Vec<u32>,
}

/// See the head of this file.
pub struct Interner {
    key: Arc<KeyOfText>,
    tells_apart: bool,
    known: RwLock<Known>,
    /// Two texts were equal and not the same.
    is_ambiguous: AtomicBool,
    /// The numbers of texts in memory that come with many batches, as far as they are known.
    of_dicts: Mutex<Vec<(Dict, Arc<[AtomicU32]>)>>,
}

/// Dictionaries whose numbers are kept.
const DICTS_KEPT: usize = 4;

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interner")
    }
}

/// Of a new text, beside itself: in two tables that are half full, where it begins, and its first.
const BYTES_OF_NEW: usize = 48;

/// No text has this number.
pub(crate) const UNKNOWN_TEXT: u32 = u32::MAX;
/// Nor this: nobody has asked for it.
const UNASKED: u32 = u32::MAX - 1;

impl Interner {
    /// Equal texts have the same number.
    pub(crate) fn new(key: Arc<KeyOfText>) -> Interner {
        Interner {
            key,
            tells_apart: false,
            known: RwLock::default(),
            is_ambiguous: AtomicBool::new(false),
            of_dicts: Mutex::new(Vec::new()),
        }
    }

    /// Of the same collation, without texts; each text has a number of its own.
    pub(crate) fn telling_apart(&self) -> Interner {
        Interner { tells_apart: true, ..Interner::new(self.key.clone()) }
    }

    /// The same, of which no text is known yet.
    pub(crate) fn renewed(&self) -> Interner {
        Interner { tells_apart: self.tells_apart, ..Interner::new(self.key.clone()) }
    }

    /// Gives the number of the first text that is equal to the one with a number, which is given.
    pub(crate) fn give_firsts<'a>(&self, numbers: impl Iterator<Item = &'a mut u64>) {
        let known = self.known.read();
        numbers.for_each(|number| {
            *number = known.firsts.get(*number as usize).map_or(*number, |first| (*first).into());
        });
    }

    /// Gives the bytes that order a text.
    pub(crate) fn key(&self) -> &KeyOfText {
        &*self.key
    }

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous.load(Ordering::Relaxed)
    }

    /// The text of each number.
    pub(crate) fn texts(&self) -> Arc<Strings> {
        let texts = self.known.read().texts.clone();
        match texts.is_empty() {
            true => Arc::new(Strings::from_parts(vec![0], Vec::new())),
            false => texts,
        }
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
            self.ask(&new, &Ask { codes, dict, of_codes: &of_codes }, &mut numbers, adds, budget)?;
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
            match self.number_in(&known, Hashed::of(dict.get(entry as u32))) {
                Some(found) => *number = found,
                None => new.push(entry),
            }
        }
        drop(known);
        if !new.is_empty() {
            let each: Vec<u32> = (0..dict.len() as u32).collect();
            let of_codes: Vec<AtomicU32> = each.iter().map(|_| AtomicU32::new(UNASKED)).collect();
            self.ask(&new, &Ask { codes: &each, dict, of_codes: &of_codes }, &mut of_entries, adds, budget)?;
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
        ask: &Ask<'_>,
        numbers: &mut [u32],
        adds: bool,
        budget: &Budget,
    ) -> Result<()> {
        let mut new = New::default();
        let known = self.known.read();
        for row in rows {
            let Some(text) = ask.unasked(*row, numbers).map(Hashed::of) else { continue };
            match self.number_in(&known, text) {
                Some(number) => ask.note(*row, number, numbers),
                None => new.add(*row, text.hash),
            }
        }
        drop(known);
        if new.rows.is_empty() {
            return Ok(());
        }
        let mut key = Vec::new();
        for (row, _) in &new.rows {
            key.clear();
            (self.key)(ask.text(*row), &mut key);
            new.key_hashes.push(hash_of(&key));
            new.keys.push(&key);
        }
        match adds {
            true => self.add_new(&new, ask, numbers, budget),
            false => {
                let known = self.known.read();
                for (at, (row, _)) in new.rows.iter().enumerate() {
                    let number = self.first_by_key(&known, new.key(at));
                    ask.note(*row, number.unwrap_or(UNKNOWN_TEXT), numbers);
                }
                Ok(())
            }
        }
    }

    /// Numbers texts that were not known a moment ago.
    fn add_new(&self, new: &New, ask: &Ask<'_>, numbers: &mut [u32], budget: &Budget) -> Result<()> {
        let (mut known, mut added) = (self.known.write(), 0);
        for (at, (row, hash)) in new.rows.iter().enumerate() {
            // Another row of these may have had it, or another thread.
            let Some(bytes) = ask.unasked(*row, numbers) else { continue };
            let text = Hashed { bytes, hash: *hash };
            let number = self.number_in(&known, text).unwrap_or_else(|| {
                added += text.bytes.len() + BYTES_OF_NEW;
                let first = self.first_by_key(&known, new.key(at));
                let number = known.add(text, first);
                let Some(first) = first else {
                    let entry = Entry { number, hash: new.key_hashes[at] };
                    insert(&mut known.by_key, entry);
                    return number;
                };
                // It is equal to another one, and not the same.
                self.is_ambiguous.store(true, Ordering::Relaxed);
                if self.tells_apart {
                    number
                } else {
                    first
                }
            });
            ask.note(*row, number, numbers);
        }
        let is_too_long = known.texts.total_bytes() > (u32::MAX / 2) as usize;
        drop(known);
        if is_too_long {
            return Err(Failure::GivenBack(Why::Memory));
        }
        budget.take(added)
    }

    /// The number of a text that is known.
    fn number_in(&self, known: &Known, text: Hashed<'_>) -> Option<u32> {
        let is_it =
            |entry: &Entry| entry.hash == text.hash && known.texts.get(entry.number as usize) == text.bytes;
        let number = known.by_text.find(spread(text.hash), is_it)?.number;
        Some(if self.tells_apart { number } else { known.firsts[number as usize] })
    }

    /// The first of the texts that have this key.
    fn first_by_key(&self, known: &Known, key: Hashed<'_>) -> Option<u32> {
        let mut of_other = Vec::new();
        let mut is_it = |entry: &Entry| {
            entry.hash == key.hash && {
                of_other.clear();
                (self.key)(known.texts.get(entry.number as usize), &mut of_other);
                of_other == key.bytes
            }
        };
        known.by_key.find(spread(key.hash), &mut is_it).map(|entry| entry.number)
    }
}

impl Known {
    /// Adds a text; `first`: it is equal to this one.
    fn add(&mut self, text: Hashed<'_>, first: Option<u32>) -> u32 {
        let number = self.firsts.len() as u32;
        // Copied if somebody has the texts that there were.
        Arc::make_mut(&mut self.texts).push(text.bytes);
        self.firsts.push(first.unwrap_or(number));
        insert(&mut self.by_text, Entry { number, hash: text.hash });
        number
    }
}

/// A text or a key, and its hash.
#[derive(Clone, Copy)]
struct Hashed<'a> {
    bytes: &'a [u8],
    hash: u32,
}

impl Hashed<'_> {
    fn of(bytes: &[u8]) -> Hashed<'_> {
        Hashed { bytes, hash: hash_of(bytes) }
    }
}

/// Rows whose texts are new, with their hashes, and their keys.
#[derive(Default)]
struct New {
    rows: Vec<(usize, u32)>,
    keys: Strings,
    key_hashes: Vec<u32>,
}

impl New {
    fn add(&mut self, row: usize, hash: u32) {
        self.rows.push((row, hash));
    }

    fn key(&self, at: usize) -> Hashed<'_> {
        Hashed { bytes: self.keys.get(at), hash: self.key_hashes[at] }
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

fn hash_of(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

fn insert(table: &mut HashTable<Entry>, entry: Entry) {
    table.insert_unique(spread(entry.hash), entry, |entry| spread(entry.hash));
}

/// Asks for the numbers of a column's texts, of each once.
struct Ask<'a> {
    codes: &'a [u32],
    dict: &'a Dict,
    of_codes: &'a [AtomicU32],
}

impl<'a> Ask<'a> {
    fn text(&self, row: usize) -> &'a [u8] {
        self.dict.get(self.codes[row])
    }

    /// The row's text, unless its number has been noted: the row gets that.
    fn unasked(&self, row: usize, numbers: &mut [u32]) -> Option<&'a [u8]> {
        let number = self.of_codes[self.codes[row] as usize].load(Ordering::Relaxed);
        if number != UNASKED {
            numbers[row] = number;
            return None;
        }
        Some(self.text(row))
    }

    fn note(&self, row: usize, number: u32, numbers: &mut [u32]) {
        self.of_codes[self.codes[row] as usize].store(number, Ordering::Relaxed);
        numbers[row] = number;
    }
}
