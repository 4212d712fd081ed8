//! Which bytes of a tree file are in use: allocation, growth, and giving space back to the system.
//!
//! Every page after the superblocks is either used (an extent, or on its way to or from one) or in the
//! free map. Of the free pages some are known holes: punched, taking no disk space. Invariants:
//!
//! 1. Holes are a part of the free space. An extent handed out has disk space under it, as far as the
//!    file system can promise: growth and reused holes are reserved first, so that a full disk is told
//!    by `allocate` and not in the middle of writing a run.
//! 2. Ranges are in the free map at most once (asserted): no two owners of one byte.
//! 3. While a superblock is in doubt (its write failed, or a process before this one has written it, so
//!    that either the old or the new one may be what a crash leaves), nothing becomes free: what is
//!    released waits in quarantine until a superblock write succeeds. So neither checkpoint can lose a
//!    page (I7). Nobody uses what waits, so the figures count it as free.
//! 4. While the file is pinned for a backup, what was in use when it was pinned does not become free: what is
//!    released of it is held until the pin goes. What was allocated later is not held.
//!
//! Locks: `resize`, then `state`. No I/O under `state`; growing and truncating hold `resize`, so that
//! only those who need a longer file wait for the system. A range that I/O is done on is taken out of
//! the free map first and put back after.

use crate::vfs::File;
use crate::{Place, Superblock};
use pando_base::limits::PAGE_BYTES;
use pando_base::locks::Mutex;
use pando_base::planted::{is_planted, Bug};
use pando_base::ranges::{FreeMap, Ranges};
use pando_base::{Error, Result};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where extents begin: two superblocks, and room for what later formats put beside them.
pub(crate) const DATA_START: u64 = 4 * PAGE_BYTES;

/// A file grows by an eighth of itself, so that growing is not a system call for each extent, but at
/// least and at most by this: small tables stay small, and big ones do not hoard.
const GROW_BYTES_MIN: u64 = 64 << 10;
const GROW_BYTES_MAX: u64 = 16 << 20;

/// Free ranges from this size on are punched. A load into an empty table leaves many of some hundred KiB, between the runs
/// of its leaves: more than half of an index's file, if it compresses well.
pub(crate) const PUNCH_BYTES_MIN: u64 = 128 << 10;

/// So much of the free space is kept from others while it is overwritten.
const OVERWRITTEN_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The tree claims its extents; nothing may be allocated.
    Adopting,
    /// All that was not claimed is free.
    Ready,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    free: FreeMap,
    holes: Ranges,
    in_doubt: bool,
    quarantine: Vec<Place>,
    /// Bytes in `quarantine`: nobody uses them.
    waiting: u64,
    /// The superblock that counts. What it refers to is released after the next one has taken its place.
    named: Superblock,
    pin: Option<Pinned>,
}

/// A pin, and what was released under it.
#[derive(Debug)]
struct Pinned {
    /// Extents of an earlier age were there when the file was pinned.
    age: u32,
    held: Vec<Place>,
    held_bytes: u64,
}

impl State {
    fn give_back(&mut self, place: Place) {
        if self.in_doubt && !is_planted(Bug::DoubtIgnored) {
            self.quarantine.push(place);
            self.waiting += place.len;
        } else {
            self.free.insert(place.offset, place.len);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Space {
    state: Mutex<State>,
    resize: Mutex<()>,
    /// How often the file was pinned; changed with `state`.
    age: AtomicU32,
    /// End of what may be used; changed only under both locks. The file may be longer by less than
    /// a page, or after a failed growth.
    file_bytes: AtomicU64,
}

/// A range taken out of the free map, with the parts of it that have no disk space.
struct Taken {
    offset: u64,
    len: u64,
    holes: Vec<(u64, u64)>,
}

pub(crate) fn round_up(len: u64) -> u64 {
    len.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX - PAGE_BYTES + 1)
}

impl Space {
    /// Space of a file of `file_len` bytes with this superblock: all of it free, to be adopted from.
    pub(crate) fn new(file_len: u64, named: Superblock) -> Space {
        let file_bytes = (file_len / PAGE_BYTES * PAGE_BYTES).max(DATA_START);
        let mut free = FreeMap::default();
        if file_bytes > DATA_START {
            free.insert(DATA_START, file_bytes - DATA_START);
        }
        let state = State {
            phase: Phase::Adopting,
            free,
            holes: Ranges::default(),
            in_doubt: false,
            quarantine: Vec::new(),
            waiting: 0,
            named,
            pin: None,
        };
        Space {
            state: Mutex::new(state),
            resize: Mutex::new(()),
            age: AtomicU32::new(0),
            file_bytes: AtomicU64::new(file_bytes),
        }
    }

    /// What an extent that is allocated now remembers.
    pub(crate) fn age(&self) -> u32 {
        self.age.load(Ordering::Acquire)
    }

    /// Holds everything that is in use now, and gives the superblock that leads to it; `None` while another pin lives.
    pub(crate) fn pin(&self) -> Option<Superblock> {
        let mut state = self.state.lock();
        if state.pin.is_some() {
            return None;
        }
        let age = self.age.fetch_add(1, Ordering::AcqRel) + 1;
        state.pin = Some(Pinned { age, held: Vec::new(), held_bytes: 0 });
        Some(state.named.clone())
    }

    /// The pin goes, and what was held becomes free.
    pub(crate) fn unpin(&self) {
        let mut state = self.state.lock();
        for place in state.pin.take().map(|pin| pin.held).unwrap_or_default() {
            state.give_back(place);
        }
    }

    /// Bytes that only the pin keeps from being free.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.state.lock().pin.as_ref().map_or(0, |pin| pin.held_bytes)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.free.total() + state.waiting
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let state = self.state.lock();
        self.file_bytes() - DATA_START - state.free.total() - state.waiting
    }

    /// End of the last page in use.
    pub(crate) fn used_end(&self) -> u64 {
        let state = self.state.lock();
        let end = self.file_bytes();
        state.free.tail(end).map_or(end, |(offset, _)| offset)
    }

    /// Claims a range while the file is being opened; false if it is not wholly free.
    pub(crate) fn adopt(&self, place: Place) -> bool {
        let mut state = self.state.lock();
        assert_eq!(state.phase, Phase::Adopting, "adopting {place:?} after the file was opened");
        state.free.take_exact(place.offset, place.len)
    }

    /// What was not claimed is free: at once, or if the superblock is `in_doubt`, when it is known to be
    /// durable ([`Space::settled`]), because until then a crash may bring back the one before.
    pub(crate) fn finish_open(&self, in_doubt: bool) {
        let mut state = self.state.lock();
        assert_eq!(state.phase, Phase::Adopting, "opening a file twice");
        state.phase = Phase::Ready;
        if in_doubt && !is_planted(Bug::DoubtIgnored) {
            state.in_doubt = true;
            let free = std::mem::take(&mut state.free);
            state.waiting = free.total();
            state.quarantine.extend(free.iter().map(|(offset, len)| Place { offset, len }));
        }
    }

    /// Gives a range that was allocated at this age back: free at once, or after the pin that holds it is gone, or after
    /// the doubt about the superblock is over.
    pub(crate) fn release(&self, place: Place, age: u32) {
        let mut state = self.state.lock();
        assert!(place.offset >= DATA_START && place.end() <= self.file_bytes(), "freeing {place:?} outside");
        match &mut state.pin {
            Some(pin) if age < pin.age => {
                pin.held.push(place);
                pin.held_bytes += place.len;
            }
            _ => state.give_back(place),
        }
    }

    /// Gives a range back that no superblock has named, the unused end of an extent that is being written: free
    /// at once, also in doubt. Else each small run would cost the megabyte that its writer begins with.
    pub(crate) fn release_unnamed(&self, place: Place) {
        let mut state = self.state.lock();
        assert!(place.offset >= DATA_START && place.end() <= self.file_bytes(), "freeing {place:?} outside");
        state.free.insert(place.offset, place.len);
    }

    /// A superblock write begins: from now on nothing becomes free, until [`Space::settled`].
    pub(crate) fn doubt(&self) {
        self.state.lock().in_doubt = true;
    }

    /// A superblock write succeeded: exactly this checkpoint can be what a crash leaves.
    pub(crate) fn settled(&self, named: &Superblock) {
        let mut state = self.state.lock();
        state.named = named.clone();
        state.in_doubt = false;
        state.waiting = 0;
        for place in std::mem::take(&mut state.quarantine) {
            state.free.insert(place.offset, place.len);
        }
    }

    /// Takes `len` bytes (a multiple of the page), growing the file if no free range is large enough.
    pub(crate) fn allocate(&self, file: &dyn File, len: u64) -> Result<Place> {
        assert!(len > 0 && len % PAGE_BYTES == 0, "allocating {len} bytes");
        if let Some(taken) = self.take(len) {
            return self.back(file, taken);
        }
        let resize = self.resize.lock();
        // Another thread may have grown the file meanwhile.
        if let Some(taken) = self.take(len) {
            drop(resize);
            return self.back(file, taken);
        }
        self.grow(file, len)
    }

    fn take(&self, len: u64) -> Option<Taken> {
        let mut state = self.state.lock();
        assert_eq!(state.phase, Phase::Ready, "allocating before the file is open");
        let offset = state.free.take_best(len)?;
        let holes = state.holes.remove(offset, offset + len);
        Some(Taken { offset, len, holes })
    }

    fn put_back(&self, taken: Taken) {
        let mut state = self.state.lock();
        for (start, end) in taken.holes {
            state.holes.insert(start, end);
        }
        if taken.len > 0 {
            state.free.insert(taken.offset, taken.len);
        }
    }

    /// Puts disk space under the holes of a range.
    fn back(&self, file: &dyn File, taken: Taken) -> Result<Place> {
        for &(start, end) in &taken.holes {
            if let Err(error) = file.reserve(start, end - start) {
                self.put_back(taken);
                return Err(error);
            }
        }
        Ok(Place { offset: taken.offset, len: taken.len })
    }

    /// Allocates at the end of the file. The caller holds `resize`.
    fn grow(&self, file: &dyn File, len: u64) -> Result<Place> {
        // 1. The free tail, if any, becomes the front of the new extent.
        let end = self.file_bytes();
        let tail = {
            let mut state = self.state.lock();
            match state.free.tail(end) {
                Some((offset, tail_len)) => {
                    // Longer than asked for if somebody freed it just now.
                    let tail_len = tail_len.min(len);
                    assert!(state.free.take_exact(offset, tail_len), "tail of the free map");
                    let holes = state.holes.remove(offset, offset + tail_len);
                    Taken { offset, len: tail_len, holes }
                }
                None => Taken { offset: end, len: 0, holes: Vec::new() },
            }
        };
        if tail.len == len {
            return self.back(file, tail);
        }
        // 2. The rest by growing the file: by a step, or if the disk is too full for that, by no
        //    more than needed.
        let needed = len - tail.len;
        let step = round_up((end / 8).clamp(GROW_BYTES_MIN, GROW_BYTES_MAX)).max(needed);
        let grown = match Self::extend(file, end, step) {
            Err(Error::DiskFull { .. }) if step > needed => Self::extend(file, end, needed).map(|()| needed),
            other => other.map(|()| step),
        };
        let grown = match grown {
            Ok(grown) => grown,
            Err(error) => {
                self.put_back(tail);
                return Err(error);
            }
        };
        // 3. What the step gave beyond the extent is free.
        let offset = tail.offset;
        {
            let mut state = self.state.lock();
            self.file_bytes.store(end + grown, Ordering::Release);
            if grown > needed {
                state.free.insert(offset + len, grown - needed);
            }
        }
        match self.back(file, tail) {
            Ok(_) => Ok(Place { offset, len }),
            Err(error) => {
                // `back` gave the tail back; the grown part follows it.
                self.state.lock().free.insert(end, needed);
                Err(error)
            }
        }
    }

    fn extend(file: &dyn File, end: u64, by: u64) -> Result<()> {
        if by > i64::MAX as u64 - end {
            return Err(Error::DiskFull { op: "grow", path: file.path().to_owned(), offset: end });
        }
        file.reserve(end, by).inspect_err(|_| {
            // A full disk may have taken part of the range: give it back. If that fails too,
            // the next growth covers the same range.
            let _ = file.set_len(end);
        })
    }

    /// Cuts a free tail off, but not below `keep` bytes.
    pub(crate) fn truncate(&self, file: &dyn File, keep: u64) -> Result<()> {
        let _resize = self.resize.lock();
        let end = self.file_bytes();
        let (new_end, taken) = {
            let mut state = self.state.lock();
            let Some((offset, _)) = state.free.tail(end) else { return Ok(()) };
            let new_end = round_up(offset.max(keep));
            if new_end >= end {
                return Ok(());
            }
            assert!(state.free.take_exact(new_end, end - new_end), "tail of the free map");
            let holes = state.holes.remove(new_end, end);
            self.file_bytes.store(new_end, Ordering::Release);
            (new_end, Taken { offset: new_end, len: end - new_end, holes })
        };
        file.set_len(new_end).inspect_err(|_| {
            self.file_bytes.store(end, Ordering::Release);
            self.put_back(taken);
        })
    }

    /// Punches the free ranges of at least [`PUNCH_BYTES_MIN`] that are not holes yet.
    pub(crate) fn punch(&self, file: &dyn File) -> Result<()> {
        let mut from = 0;
        loop {
            let (taken, gaps) = {
                let mut state = self.state.lock();
                let Some((offset, len)) = state.free.next_of_len(from, PUNCH_BYTES_MIN) else {
                    return Ok(());
                };
                from = offset + len;
                let gaps = state.holes.gaps(offset, from);
                if gaps.is_empty() {
                    continue;
                }
                assert!(state.free.take_exact(offset, len), "range of the free map");
                (Taken { offset, len, holes: state.holes.remove(offset, from) }, gaps)
            };
            let mut taken = taken;
            let mut result = Ok(());
            for (start, end) in gaps {
                result = file.punch_hole(start, end - start);
                if result.is_err() {
                    break;
                }
                taken.holes.push((start, end));
            }
            self.put_back(taken);
            result?;
        }
    }

    /// Whether all that was released is free by now: nothing waits for a superblock or for the end of a pin.
    pub(crate) fn is_settled(&self) -> bool {
        let state = self.state.lock();
        !state.in_doubt && state.pin.is_none()
    }

    /// Writes zeros over everything that is free and not a hole, as long as `go_on` says so, which is told how many bytes are next. False if it
    /// ended before.
    pub(crate) fn overwrite_free(&self, file: &dyn File, go_on: &mut dyn FnMut(u64) -> bool) -> Result<bool> {
        let mut from = 0;
        loop {
            let (taken, gaps) = {
                let mut state = self.state.lock();
                let Some((begin, len)) = state.free.next_from(from) else { return Ok(true) };
                let len = len.min(OVERWRITTEN_BYTES);
                from = begin + len;
                let gaps = state.holes.gaps(begin, from);
                if gaps.is_empty() {
                    continue;
                }
                assert!(state.free.take_exact(begin, len), "range of the free map");
                (Taken { offset: begin, len, holes: state.holes.remove(begin, from) }, gaps)
            };
            let bytes = gaps.iter().map(|(start, end)| end - start).sum();
            let result = match go_on(bytes) {
                false => Ok(false),
                true => (gaps.iter())
                    .try_for_each(|(start, end)| file.write_at(&vec![0; (end - start) as usize], *start))
                    .map(|()| true),
            };
            self.put_back(taken);
            if !result? {
                return Ok(false);
            }
        }
    }
}
