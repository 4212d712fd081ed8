//! What loads may keep in memory, and who hands on what he has where it is short.
//!
//! ```text
//! sixteenths   0              8                  14   16
//!              | sorted chunks | rows in no chunk | reading, in the last merge |
//! ```
//! Rows that are in no chunk yet ([`Memory::hold`]) are: copies that statements have of their first rows, batches that are being filled or are on
//! their way to the sorters, groups that are being collected, and groups that wait to be sorted. Three rules keep them within their part:
//! 1. Copies end where a half of the part is taken ([`Memory::hold_copies`]): the statement inserts row by row, or its loads begin.
//! 2. Groups that are being collected, of all sorters together, have a half. Beyond it the largest are handed on, whoever's they are, until a
//!    quarter is left ([`Memory::relieve`]): a load that waits for its client's next row keeps no more than those that are at work.
//! 3. Who brings rows waits while groups of his own are to be sorted and the whole part is taken ([`crate::Sorter::wait_for_room`]).
//!
//! Each load has a batch in any case, so each goes on. A load for which not even the least is left does not begin
//! ([`Memory::has_room_for`]).

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use pando_base::locks::Mutex;

use crate::sorter::Sorter;

/// All parts are in these.
const PARTS: u64 = 16;
/// What sorted chunks may have.
const CHUNKS: u64 = 8;
/// And rows before they are in a chunk.
const UNSORTED: u64 = 6;
/// And what a merge reads, of all threads.
const READING: u64 = 2;
const _: () = assert!(CHUNKS + UNSORTED + READING == PARTS);

/// Batches that a load hands over, and the least that they have where there are many loads.
const BATCH_BYTES: std::ops::RangeInclusive<u64> = (16 << 10)..=(512 << 10);
/// Of what rows in no chunk have, what batches that are being filled should take.
const FILLING: u64 = 8;
/// Less of it for each dictionary is not worth a load.
const DICTIONARY_BYTES_MIN: u64 = 32 << 10;

/// Bytes that loads hold, and how many they may: see the head of this file.
#[derive(Debug)]
pub struct Memory {
    used: AtomicU64,
    held: AtomicU64,
    /// Of what is held, groups that are being collected.
    collected: AtomicU64,
    limit: AtomicU64,
    sorters: Mutex<Vec<Weak<Sorter>>>,
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Memory> {
        let (used, held, collected) = Default::default();
        Arc::new(Memory { used, held, collected, limit: AtomicU64::new(limit), sorters: Mutex::default() })
    }

    /// What is in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.held.load(Ordering::Relaxed)
    }

    /// The whole of it.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes it; what is in use beyond it stays until it is given back.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    fn part(&self, parts: u64) -> u64 {
        self.limit() / PARTS * parts
    }

    /// What a merge may read into, of all threads together.
    pub(crate) fn reading(&self) -> u64 {
        self.part(READING)
    }

    /// What a sorter that has `1 / share` of all collects at most: as much can be sorted meanwhile.
    pub(crate) fn group_bytes(&self, share: u64) -> u64 {
        self.part(UNSORTED) / 2 / share.max(1)
    }

    /// How many bytes a batch of one of so many loads should have.
    pub fn batch_bytes(&self, loads: u64) -> u64 {
        let each = self.part(UNSORTED) / FILLING / loads.max(1);
        each.clamp(*BATCH_BYTES.start(), *BATCH_BYTES.end())
    }

    /// Whether a load of so many dictionaries more is worth it; the first one is.
    pub fn has_room_for(&self, dictionaries: usize) -> bool {
        let others = self.sorters.lock().len();
        let all = (others + dictionaries) as u64;
        others == 0 || all.saturating_mul(DICTIONARY_BYTES_MIN) <= self.part(UNSORTED)
    }

    /// Takes `bytes` of what chunks may have if they are left; given back when the part is dropped.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Part> {
        let is_taken = add_within(&self.used, bytes, self.part(CHUNKS));
        is_taken.then(|| Part { memory: self.clone(), bytes })
    }

    /// Counts `bytes` of rows that are in no chunk yet, if they are within what such rows may have: to be [let go](Self::let_go) of.
    pub fn hold(&self, bytes: u64) -> bool {
        add_within(&self.held, bytes, self.part(UNSORTED))
    }

    /// The same for copies of rows that may become a load's.
    pub fn hold_copies(&self, bytes: u64) -> bool {
        add_within(&self.held, bytes, self.part(UNSORTED) / 2)
    }

    /// Counts them however many there are: those without which a load would stand still.
    pub fn hold_in_any_case(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether rows that are in no chunk yet may take more.
    pub(crate) fn has_room(&self) -> bool {
        self.held.load(Ordering::Relaxed) < self.part(UNSORTED)
    }

    /// These bytes are counted no longer.
    pub fn let_go(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A group has so many bytes more.
    pub(crate) fn collect(&self, bytes: u64) {
        self.collected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It is collected no longer, but handed on or given up.
    pub(crate) fn hand_on(&self, bytes: u64) {
        self.collected.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// This one collects groups.
    pub(crate) fn join(&self, sorter: &Arc<Sorter>) {
        self.sorters.lock().push(Arc::downgrade(sorter));
    }

    /// Some do no longer.
    pub(crate) fn forget_gone(&self) {
        self.sorters.lock().retain(|sorter| sorter.strong_count() > 0);
    }

    /// Has the largest groups handed on if all of them have passed their half. Requires: the caller holds no sorter's mutex.
    pub(crate) fn relieve(&self) {
        let most = self.part(UNSORTED) / 2;
        let collected = || self.collected.load(Ordering::Relaxed);
        if collected() <= most {
            return;
        }
        let sorters: Vec<Arc<Sorter>> = self.sorters.lock().iter().filter_map(Weak::upgrade).collect();
        let mut by_size: Vec<(u64, &Arc<Sorter>)> =
            sorters.iter().map(|sorter| (sorter.collected_bytes(), sorter)).collect();
        by_size.sort_by_key(|(bytes, _)| Reverse(*bytes));
        for (_, sorter) in by_size.into_iter().take_while(|(bytes, _)| *bytes > 0) {
            if collected() <= most / 2 {
                return;
            }
            sorter.hand_on();
        }
    }
}

fn add_within(counter: &AtomicU64, bytes: u64, most: u64) -> bool {
    let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

/// Rows that are in no chunk yet, counted as long as this lives.
#[derive(Debug)]
pub struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Held {
    /// Counts them in any case.
    pub fn new(memory: &Arc<Memory>, bytes: u64) -> Held {
        memory.hold_in_any_case(bytes);
        Held { memory: memory.clone(), bytes }
    }

    /// So many from now on.
    pub fn change_to(&mut self, bytes: u64) {
        if bytes != self.bytes {
            self.memory.hold_in_any_case(bytes);
            self.memory.let_go(self.bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.let_go(self.bytes);
    }
}

/// A part of the budget that is in use.
#[derive(Debug)]
pub(crate) struct Part {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_use_has_its_part() {
        let memory = Memory::new(160);
        let part = memory.take(80);
        assert!(part.is_some() && memory.take(1).is_none());
        assert!(memory.hold_copies(30) && !memory.hold_copies(1));
        assert!(memory.hold(25) && !memory.hold(6) && memory.hold(5) && !memory.has_room());
        memory.hold_in_any_case(40);
        assert_eq!(memory.used(), 180);
        assert!(!memory.hold(1));
        memory.let_go(41);
        assert!(memory.hold(1) && !memory.hold(1));
        drop(part);
        assert_eq!(memory.used(), 60);
        assert!(!memory.hold(u64::MAX) && !memory.hold_copies(u64::MAX));
        assert_eq!(memory.reading(), 20);
    }

    #[test]
    fn batches_are_smaller_where_there_are_many_loads() {
        let memory = Memory::new(256 << 20);
        assert_eq!(memory.batch_bytes(1), 512 << 10);
        assert_eq!(memory.batch_bytes(64), 192 << 10);
        assert_eq!(memory.batch_bytes(10_000), 16 << 10);
    }
}
