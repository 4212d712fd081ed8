//! The op log of a write set: what was done, in order, with the bytes.

use pando_base::Kind;

use super::arena::{Arena, Place};

/// Number of an op: its position in the log.
pub(crate) type OpNumber = u32;

/// "No op": the previous op of a key's first one.
pub(crate) const NO_OP: OpNumber = u32::MAX;

/// Length that marks a Delete; values are limited to far less.
const DELETED: u32 = u32::MAX;

/// One put or delete.
#[derive(Clone, Copy, Debug)]
struct Op {
    /// Of the first op of this key: the key is stored once.
    key: Place,
    value: Place,
    key_len: u32,
    /// `DELETED`, or the value's length.
    value_len: u32,
    /// The op of the same key before this one, or `NO_OP`.
    previous: OpNumber,
    /// Position of the dictionary in the write set.
    dict: u32,
}

const _: () = assert!(size_of::<Op>() == 32);
const _: () = assert!(pando_base::limits::VALUE_BYTES_MAX < DELETED as usize);

/// Ops and their bytes. Grows and shrinks at the end.
#[derive(Debug, Default)]
pub(crate) struct OpLog {
    ops: Vec<Op>,
    arena: Arena,
}

impl OpLog {
    /// Appends the op `(dict, key, value)`, `None` deletes. `previous` is the newest op of that key so
    /// far; with it the key's bytes are not stored again.
    pub(crate) fn push(
        &mut self,
        dict: usize,
        key: &[u8],
        value: Option<&[u8]>,
        previous: OpNumber,
    ) -> OpNumber {
        let number = self.ops.len() as u32;
        assert!(number < NO_OP - 1, "a write set has too many operations");
        assert!(key.len() < DELETED as usize && value.is_none_or(|value| value.len() < DELETED as usize));
        let key_place = match self.ops.get(previous as usize) {
            Some(op) => op.key,
            None => self.arena.push(key),
        };
        self.ops.push(Op {
            key: key_place,
            value: self.arena.push(value.unwrap_or_default()),
            key_len: key.len() as u32,
            value_len: value.map_or(DELETED, |value| value.len() as u32),
            previous,
            dict: dict as u32,
        });
        number
    }

    #[inline]
    pub(crate) fn key(&self, number: OpNumber) -> &[u8] {
        let op = &self.ops[number as usize];
        self.arena.get(op.key, op.key_len)
    }

    /// The value put, `None` for a delete.
    pub(crate) fn value(&self, number: OpNumber) -> Option<&[u8]> {
        let op = &self.ops[number as usize];
        (op.value_len != DELETED).then(|| self.arena.get(op.value, op.value_len))
    }

    /// Kind and value as a record has them.
    pub(crate) fn kind_and_value(&self, number: OpNumber) -> (Kind, &[u8]) {
        match self.value(number) {
            Some(value) => (Kind::Put, value),
            None => (Kind::Delete, &[]),
        }
    }

    pub(crate) fn previous(&self, number: OpNumber) -> OpNumber {
        self.ops[number as usize].previous
    }

    pub(crate) fn dict(&self, number: OpNumber) -> usize {
        self.ops[number as usize].dict as usize
    }

    /// The newest op of the chain that starts at `number` among those below `end`, or `NO_OP`.
    pub(crate) fn newest_below(&self, mut number: OpNumber, end: OpNumber) -> OpNumber {
        while number != NO_OP && number >= end {
            number = self.previous(number);
        }
        number
    }

    pub(crate) fn len(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Forgets the ops from `len` on.
    pub(crate) fn truncate(&mut self, len: u32) {
        let Some(first) = self.ops.get(len as usize) else { return };
        let start = if first.previous == NO_OP { first.key } else { first.value };
        self.arena.truncate(start);
        self.ops.truncate(len as usize);
        if self.ops.capacity() > 1024 && self.ops.len() < self.ops.capacity() / 4 {
            self.ops.shrink_to(2 * self.ops.len());
        }
    }

    /// Forgets everything; keeps a little memory for the next transaction.
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.ops.shrink_to(64);
        self.arena.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ops.capacity() * size_of::<Op>() + self.arena.bytes()
    }
}
