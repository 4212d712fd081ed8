//! Where large buffers are: ranges of addresses, in use or free, with and without memory behind them.
//!
//! ```text
//!            take                        give
//!   clean ----------> used  <-------> kept        clean: free; the system has the memory, and gives zeros
//!     ^                       take      |         kept:  free, with memory: taken first
//!     +---------------------------------+
//!          more is kept than should be: a quarter at once
//! ```
//! A buffer has whole pages, those of the smallest free range that it fits into; neighbours that are free in the same way are one
//! range. Addresses are never given back, only the memory behind them. So what the process has in memory is what is used and at
//! most a [`KEPT_SHARE`]th of it more, however scattered the free pages are. (With pieces of 1 KiB rounding would take less, but then holes
//! of less than a page are left that nothing fits into: after minutes there was as much of them as of blocks.)
//!
//! To give pages back is dear, however few they are: all processors are told that they are gone, and who takes them again waits for zeros.
//! So much is given back at once and then nothing for a while, and what is kept is enough for buffers that come and go (measured in
//! docs/decisions/0012-memory.md).
//!
//! One lock, held for some lookups in two trees (whose own memory is small, so it comes from elsewhere); pages are given
//! back without it, by who frees.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pando_base::ranges::FreeMap;
use rustix::mm::{madvise, mmap_anonymous, Advice, MapFlags, ProtFlags};

use crate::Usage;

/// Addresses are asked of the system in pieces of at least this, as long as it has so many together.
const REGION_BYTES: usize = 32 << 20;
/// Of what is used, this part may be kept free: enough that a cache which replaces block after block hardly asks the system for any.
const KEPT_SHARE: u64 = 16;
/// So much may be kept in any case: some segments and blocks of merges, which come and go.
const KEPT_BYTES_MIN: u64 = 16 << 20;
/// Where more is kept, this part of what may be is given back at once.
const GIVEN_BACK_SHARE: u64 = 4;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Space(Mutex<Ranges>);

#[derive(Debug)]
struct Ranges {
    clean: FreeMap,
    kept: FreeMap,
    used: u64,
}

/// Addresses that are somebody's now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) start: *mut u8,
    pub(crate) is_zeroed: bool,
}

pub(crate) fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(page_bytes())
}

pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// An allocator must not unwind: what would (memory freed twice) stops the process, after its message. A panic that came from elsewhere
/// does not: its message and its destructors need memory, too.
struct StopUnwinding {
    was_panicking: bool,
}

impl StopUnwinding {
    fn new() -> StopUnwinding {
        StopUnwinding { was_panicking: std::thread::panicking() }
    }
}

impl Drop for StopUnwinding {
    fn drop(&mut self) {
        if !self.was_panicking && std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Space {
    pub(crate) const fn new() -> Space {
        Space(Mutex::new(Ranges { clean: FreeMap::new(), kept: FreeMap::new(), used: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, Ranges> {
        // Nobody panics in it and lives on.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: somebody is in the middle of it.
    pub(crate) fn is_free(&self) -> bool {
        !matches!(self.0.try_lock(), Err(TryLockError::WouldBlock))
    }

    pub(crate) fn usage(&self) -> Usage {
        let ranges = self.lock();
        Usage { used_bytes: ranges.used, kept_bytes: ranges.kept.total(), small_bytes: 0 }
    }

    /// Addresses for so many bytes. `None`: the system has none.
    pub(crate) fn take(&self, bytes: usize) -> Option<Taken> {
        let _stop = StopUnwinding::new();
        let bytes = bytes.checked_next_multiple_of(page_bytes())?;
        let mut ranges = self.lock();
        let (start, is_zeroed) = match ranges.kept.take_best(bytes as u64) {
            Some(start) => (start, false),
            None => (ranges.take_clean(bytes)?, true),
        };
        ranges.used += bytes as u64;
        Some(Taken { start: start as usize as *mut u8, is_zeroed })
    }

    /// Takes back what was taken for so many bytes.
    pub(crate) fn give(&self, start: *mut u8, bytes: usize) {
        let _stop = StopUnwinding::new();
        let bytes = round_up(bytes) as u64;
        let mut ranges = self.lock();
        ranges.used -= bytes;
        ranges.kept.insert(start as u64, bytes);
        let keep = ranges.to_keep();
        drop(ranges);
        if let Some(keep) = keep {
            self.trim(keep);
        }
    }

    /// Lets a buffer of `old` bytes have `new` ones where it is. False: it has what it had.
    pub(crate) fn resize(&self, start: *mut u8, old: usize, new: usize) -> bool {
        let Some(new) = new.checked_next_multiple_of(page_bytes()) else { return false };
        let _stop = StopUnwinding::new();
        let old = round_up(old);
        if new < old {
            self.give((start as usize + new) as *mut u8, old - new);
        }
        if new <= old {
            return true;
        }
        let (end, more) = (start as u64 + old as u64, (new - old) as u64);
        let mut ranges = self.lock();
        let is_free = ranges.kept.take_exact(end, more) || ranges.clean.take_exact(end, more);
        if is_free {
            ranges.used += more;
        }
        is_free
    }

    /// Gives pages back until no more is kept than `keep`.
    fn trim(&self, keep: u64) {
        loop {
            let surplus = self.lock().take_surplus(keep);
            let Some((start, bytes)) = surplus else { return };
            // SAFETY: these pages are in neither map and nobody's.
            let done = unsafe { madvise(start as usize as *mut _, bytes as usize, Advice::LinuxDontNeed) };
            let mut ranges = self.lock();
            if done.is_err() {
                // Locked into memory: they stay there.
                ranges.kept.insert(start, bytes);
                return;
            }
            ranges.clean.insert(start, bytes);
        }
    }
}

impl Ranges {
    fn take_clean(&mut self, bytes: usize) -> Option<u64> {
        if let Some(start) = self.clean.take_best(bytes as u64) {
            return Some(start);
        }
        let (start, region) = region_for(bytes, map)?;
        self.clean.insert(start, region as u64);
        self.clean.take_best(bytes as u64)
    }

    /// How much is to be kept, if more is than may be.
    fn to_keep(&self) -> Option<u64> {
        let kept_max = (self.used / KEPT_SHARE).max(KEPT_BYTES_MIN);
        (self.kept.total() > kept_max).then_some(kept_max - kept_max / GIVEN_BACK_SHARE)
    }

    /// Pages beyond what is to be kept: of the longest range, of which the fewest have to be given back.
    fn take_surplus(&mut self, keep: u64) -> Option<(u64, u64)> {
        let surplus = self.kept.total().checked_sub(keep).filter(|surplus| *surplus > 0)?;
        let (start, bytes) = self.kept.longest()?;
        // Its beginning stays, if all of it is more than too much.
        let gone = bytes.min(surplus.next_multiple_of(page_bytes() as u64));
        let from = start + bytes - gone;
        assert!(self.kept.take_exact(from, gone), "kept memory at {from:#x} is kept");
        Some((from, gone))
    }
}

/// A region for a buffer: where it begins, and its bytes. Where the system is short of addresses, it is as small as the buffer.
fn region_for(bytes: usize, map: impl Fn(usize) -> Option<u64>) -> Option<(u64, usize)> {
    let usual = bytes.max(REGION_BYTES).checked_next_multiple_of(page_bytes())?;
    let least = bytes.checked_next_multiple_of(page_bytes())?;
    [usual, least].into_iter().find_map(|region| Some((map(region)?, region)))
}

/// New addresses, which the system chooses.
fn map(region: usize) -> Option<u64> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: they are nobody's before.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), region, rights, flags) }.ok()?;
    // So that what was given back of a huge page does not come back with it. Where there are none, all is well.
    // SAFETY: the region is ours, and this changes none of its bytes.
    let _ = unsafe { madvise(start, region, Advice::LinuxNoHugepage) };
    Some(start as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_usual_region_cannot_be_had_a_small_one_is() {
        let page = page_bytes();
        assert_eq!(region_for(1, |_| Some(7)), Some((7, REGION_BYTES)));
        assert_eq!(region_for(page + 1, |bytes| (bytes <= 1 << 20).then_some(7)), Some((7, 2 * page)));
        assert_eq!(region_for(2 << 20, |bytes| (bytes <= 1 << 20).then_some(7)), None);
    }
}
