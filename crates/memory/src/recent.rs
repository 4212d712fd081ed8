//! Buffers of a few KiB that were given up a moment ago, for who asks next.
//!
//! A query makes and drops some ten vectors for each segment of a thousand rows. The usual allocators keep what is smaller than a KiB for the thread that
//! freed it, and take a lock, look for neighbours and merge them from there on: that was a fifth of the processor's time of a scan. Here such
//! buffers wait in lists of one size, the last one first, whose memory is still in the processor's cache.
//!
//! There are several sets of lists; a thread uses the one that its stack names (`shard`), so it has no state of its own. A set that somebody else uses
//! right now, or that has enough, is passed by: then the system's allocator does it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::shard::{of_this_thread, SHARDS};

/// Buffers are multiples of this.
const STEP_BYTES: usize = 512;
/// What is smaller, the usual allocators have lists for.
const BYTES_MIN: usize = 1 << 10;
const CLASSES: usize = crate::LARGE_BYTES_MIN / STEP_BYTES + 1;
/// What a set of lists keeps at most.
const KEPT_BYTES: usize = 256 << 10;
/// The system's allocator aligns to this in any case.
pub(crate) const ALIGN: usize = 16;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Recent([Lists; SHARDS]);

#[derive(Debug)]
#[repr(align(128))]
struct Lists {
    is_in_use: AtomicBool,
    bytes: AtomicUsize,
    /// The first free buffer of each size; in its first bytes is the address of the next one. Whoever has set `is_in_use` has them.
    first: UnsafeCell<[*mut u8; CLASSES]>,
}

// SAFETY: `first` is only used by the one who has set `is_in_use`; the buffers in it are nobody's.
unsafe impl Sync for Lists {}

/// What such an allocation is rounded up to; `None`: it is none of ours.
pub(crate) fn rounded(layout: Layout) -> Option<Layout> {
    let is_ours = (BYTES_MIN + 1..crate::LARGE_BYTES_MIN).contains(&layout.size()) && layout.align() <= ALIGN;
    is_ours.then(|| Layout::from_size_align(round_up(layout.size()), ALIGN).ok()).flatten()
}

/// The same, of its size alone.
pub(crate) fn round_up(bytes: usize) -> usize {
    match bytes > BYTES_MIN && bytes < crate::LARGE_BYTES_MIN {
        true => bytes.next_multiple_of(STEP_BYTES),
        false => bytes,
    }
}

impl Recent {
    pub(crate) const fn new() -> Recent {
        Recent([const { Lists::new() }; SHARDS])
    }

    /// What waits in all lists.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|lists| lists.bytes.load(Ordering::Relaxed) as u64).sum()
    }

    /// A buffer of a [`rounded`] layout; null: there is no memory.
    pub(crate) fn take(&self, layout: Layout) -> *mut u8 {
        let taken = self.0[of_this_thread()].with(|lists| lists.pop(layout.size()));
        match taken.filter(|start| !start.is_null()) {
            Some(start) => start,
            // SAFETY: it has a size.
            None => unsafe { System.alloc(layout) },
        }
    }

    /// Gives one back.
    ///
    /// # Safety
    /// `start` is of an allocation of this [`rounded`] layout, by [`take`](Self::take) or by the system, that is nobody's now.
    pub(crate) unsafe fn give(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises us.
        let is_kept = self.0[of_this_thread()].with(|lists| unsafe { lists.push(start, layout.size()) });
        if is_kept != Some(true) {
            // SAFETY: as the caller promises us; in the end it came from there.
            unsafe { System.dealloc(start, layout) };
        }
    }
}

impl Lists {
    const fn new() -> Lists {
        Lists {
            is_in_use: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            first: UnsafeCell::new([null_mut(); CLASSES]),
        }
    }

    /// `None`: somebody else uses them.
    fn with<T>(&self, work: impl FnOnce(&Owned<'_>) -> T) -> Option<T> {
        if self.is_in_use.swap(true, Ordering::Acquire) {
            return None;
        }
        let done = work(&Owned(self));
        self.is_in_use.store(false, Ordering::Release);
        Some(done)
    }
}

/// Lists whose `is_in_use` is ours.
struct Owned<'a>(&'a Lists);

impl Owned<'_> {
    /// Null: there is none of this size.
    fn pop(&self, bytes: usize) -> *mut u8 {
        // SAFETY: nobody else uses the lists; what is in them is a buffer of this size, which has room for an address.
        unsafe {
            let first = &mut (*self.0.first.get())[bytes / STEP_BYTES];
            let start = *first;
            if !start.is_null() {
                *first = start.cast::<*mut u8>().read_unaligned();
                self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
            start
        }
    }

    /// False: there is enough.
    ///
    /// # Safety
    /// The buffer has so many bytes and is nobody's.
    unsafe fn push(&self, start: *mut u8, bytes: usize) -> bool {
        if self.0.bytes.load(Ordering::Relaxed) + bytes > KEPT_BYTES {
            return false;
        }
        // SAFETY: nobody else uses the lists; the buffer is ours, and has room for an address.
        unsafe {
            let first = &mut (*self.0.first.get())[bytes / STEP_BYTES];
            start.cast::<*mut u8>().write_unaligned(*first);
            *first = start;
        }
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }
}
