//! A batch of entries of one dictionary, in the order of their rows.

use pando_base::{limits, Error};
use pando_column::RECORD_OVERHEAD_BYTES;

/// Entries in the order they were made, in one buffer.
#[derive(Debug, Default)]
pub struct Entries {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// A key is not above the one before.
    disordered: bool,
    /// The first one that no file can have, which is not here: its error.
    too_long: Option<Error>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    at: u64,
    key_len: u32,
    value_len: u32,
}

impl Entries {
    /// No entries.
    pub fn new() -> Entries {
        Entries::default()
    }

    /// Room for so many entries of so many bytes.
    pub fn with_capacity(rows: usize, bytes: usize) -> Entries {
        let (bytes, items) = (Vec::with_capacity(bytes), Vec::with_capacity(rows));
        Entries { bytes, items, disordered: false, too_long: None }
    }

    /// Appends an entry. One that is longer than a file can have ([`limits::KEY_BYTES_MAX`], [`limits::VALUE_BYTES_MAX`]) fails what the
    /// entries are for. All together may have more: a row may have several values of a gigabyte.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > limits::KEY_BYTES_MAX || value.len() > limits::VALUE_BYTES_MAX {
            return self.refuse(key, value);
        }
        self.disordered = self.disordered || self.last_key().is_some_and(|last| last >= key);
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.items.push(Item { at, key_len, value_len });
    }

    #[cold]
    fn refuse(&mut self, key: &[u8], value: &[u8]) {
        let (what, size, limit) = match key.len() > limits::KEY_BYTES_MAX {
            true => ("key", key.len(), limits::KEY_BYTES_MAX),
            false => ("row", value.len(), limits::VALUE_BYTES_MAX),
        };
        let error = Error::TooLong { what, size: size as u64, limit: limit as u64 };
        self.too_long.get_or_insert(error);
    }

    /// The error of the first one that was too long.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.too_long.take()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.items.capacity() * size_of::<Item>()
    }

    /// Bytes of keys and values and what a record costs besides, as runs count them.
    pub fn raw_bytes(&self) -> u64 {
        (self.bytes.len() + self.items.len() * RECORD_OVERHEAD_BYTES) as u64
    }

    /// Each key is above the one before.
    pub fn ascends(&self) -> bool {
        !self.disordered
    }

    /// The first key, as pushed.
    pub fn first_key(&self) -> Option<&[u8]> {
        (!self.is_empty()).then(|| self.key(0))
    }

    /// The last key, as pushed.
    #[inline]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.items.last().map(|item| self.key_of(item))
    }

    /// Key of an entry. Panics if there are not so many.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        self.key_of(&self.items[index])
    }

    /// Value of an entry. Panics if there are not so many.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        let item = &self.items[index];
        let at = item.at as usize + item.key_len as usize;
        &self.bytes[at..at + item.value_len as usize]
    }

    /// Key and value of an entry. Panics if there are not so many.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let Item { at, key_len, value_len } = self.items[index];
        let (at, key_len, value_len) = (at as usize, key_len as usize, value_len as usize);
        self.bytes[at..at + key_len + value_len].split_at(key_len)
    }

    #[inline]
    fn key_of(&self, item: &Item) -> &[u8] {
        let at = item.at as usize;
        &self.bytes[at..at + item.key_len as usize]
    }
}
