//! A record as a memtable has it: a head and its bytes in one piece of the arena.
//!
//! ```text
//!   seqno 8 | key length 4 | value length 4 | kind 1, unused 7 | key | value
//! ```

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::NonNull;

use pando_base::{key_head, Kind, RecordRef, Seqno};

use super::arena::{Arena, ALIGN};

/// The head; key and value follow.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Stored {
    seqno: Seqno,
    key_len: u32,
    value_len: u32,
    kind: Kind,
}

const HEAD_BYTES: usize = size_of::<Stored>();
const _: () = assert!(HEAD_BYTES == 24 && align_of::<Stored>() <= ALIGN);

/// A record in an arena, which is borrowed for `'a`. It never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    place: NonNull<Stored>,
    arena: PhantomData<&'a Arena>,
}

impl<'a> Item<'a> {
    /// Copies a record into the arena.
    pub(super) fn new(arena: &'a Arena, record: RecordRef<'_>) -> Item<'a> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("keys and values are far below 4 GiB");
        let (key_len, value_len) = (length(record.key), length(record.value));
        let place = arena.take(HEAD_BYTES + record.key.len() + record.value.len()).cast::<Stored>();
        // SAFETY: the piece is nobody else's, aligned for the head and as long as head, key and value together.
        unsafe {
            place.write(Stored { seqno: record.seqno, key_len, value_len, kind: record.kind });
            let bytes = place.cast::<u8>().add(HEAD_BYTES);
            bytes.copy_from_nonoverlapping(NonNull::from(record.key).cast(), record.key.len());
            bytes
                .add(record.key.len())
                .copy_from_nonoverlapping(NonNull::from(record.value).cast(), record.value.len());
        }
        Item { place, arena: PhantomData }
    }

    /// The record at a place that [`Item::place`] gave.
    ///
    /// # Safety
    /// The arena in which it was made lives for `'a`, and its making happened before.
    pub(super) unsafe fn at(place: NonNull<Stored>) -> Item<'a> {
        Item { place, arena: PhantomData }
    }

    pub(super) fn place(self) -> NonNull<Stored> {
        self.place
    }

    pub(super) fn record(self) -> RecordRef<'a> {
        // SAFETY: made by `new`, and the arena is borrowed for 'a; head and bytes are not written again.
        unsafe {
            let stored = self.place.as_ref();
            let (key_len, value_len) = (stored.key_len as usize, stored.value_len as usize);
            let bytes = std::slice::from_raw_parts(
                self.place.cast::<u8>().add(HEAD_BYTES).as_ptr(),
                key_len + value_len,
            );
            let (key, value) = bytes.split_at(key_len);
            RecordRef { key, seqno: stored.seqno, kind: stored.kind, value }
        }
    }
}

/// A place in the order of records: key ascending, seqno descending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'a> {
    pub(super) head: u64,
    key: &'a [u8],
    seqno: Seqno,
}

impl<'a> Probe<'a> {
    pub(super) fn new(key: &'a [u8], seqno: Seqno) -> Probe<'a> {
        Probe { head: key_head(key), key, seqno }
    }

    pub(super) fn of(item: Item<'a>) -> Probe<'a> {
        let record = item.record();
        Probe::new(record.key, record.seqno)
    }

    /// How an item stands to the probe, if their heads are equal (which says nothing about padding).
    pub(super) fn compare_item(&self, item: Item<'_>) -> Ordering {
        let record = item.record();
        record.key.cmp(self.key).then_with(|| self.seqno.cmp(&record.seqno))
    }
}
