//! Memory for large buffers: from one place that all threads share.
//!
//! What the engine holds for long and in bulk is the block cache: buffers of about ten KiB and more, decoded by one thread, given up by
//! another, each of another size. The allocators of C libraries keep a heap for nearly each thread, and give memory back to the
//! system from its end only, so that what they have free, in pieces between such buffers, grows with the cache: with 256 MiB of
//! blocks a server held 480 MiB. Here what is freed is either used again by whoever comes next, or given back page by page.
//!
//! [`Allocator`] is to be set as `#[global_allocator]` by the program or plugin at the top; the engine works without it, too. From
//! [`LARGE_BYTES_MIN`] on, buffers come from [`Space`](space). What is smaller comes from the system's allocator, which is good at
//! the smallest; buffers of a KiB and more wait for the next one who asks ([`recent`]). It has no state of a thread, so nothing has to be ended when a plugin is unloaded.

mod recent;
mod shard;
mod small;
mod space;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

use recent::Recent;
use small::Small;
use space::Space;

/// Allocations from here on are large, and have whole pages. Segments that point reads want small (16 KiB) are among them; of smaller ones too
/// much would be lost to rounding up.
pub const LARGE_BYTES_MIN: usize = 12 << 10;
/// In pages of the system, it is at least so many.
const PAGES_MIN: usize = 3;

/// Small allocations are multiples of this, after what their allocator adds.
const SMALL_STEP_BYTES: usize = 16;
/// What it adds, as the usual ones do.
const SMALL_OVERHEAD_BYTES: usize = 8;

static SPACE: Space = Space::new();
static SMALL: Small = Small::new();
static RECENT: Recent = Recent::new();

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// What allocations take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of large buffers that are in use.
    pub used_bytes: u64,
    /// Free, and kept for the next ones.
    pub kept_bytes: u64,
    /// Of what is smaller, about: its [`footprint`]. What the system's allocator keeps free is not known.
    pub small_bytes: u64,
}

/// What all allocations take that are made through [`Allocator`]; nothing where it is not set.
pub fn usage() -> Usage {
    let space = SPACE.usage();
    Usage { small_bytes: SMALL.bytes(), kept_bytes: space.kept_bytes + RECENT.bytes(), ..space }
}

/// Whether this thread can have large buffers. For who reports a panic: it may have come from among these very lines, and would
/// then wait for itself. Waits a moment for others.
pub fn is_usable() -> bool {
    const LOOKS_MAX: u32 = 100;
    (0..LOOKS_MAX).any(|look| {
        if look > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        SPACE.is_free()
    })
}

/// Memory that an allocation of so many bytes takes. For small ones that depends on the system's allocator; it is what is usual.
pub fn footprint(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ if is_so_large(bytes) => space::round_up(bytes),
        _ => (recent::round_up(bytes) + SMALL_OVERHEAD_BYTES)
            .next_multiple_of(SMALL_STEP_BYTES)
            .max(2 * SMALL_STEP_BYTES),
    }
}

/// Memory that the allocation of a vector takes.
pub fn footprint_of<T>(vector: &Vec<T>) -> usize {
    footprint(vector.capacity() * size_of::<T>())
}

fn is_large(bytes: usize, layout: Layout) -> bool {
    is_so_large(bytes) && layout.align() <= space::page_bytes()
}

/// Whole pages for it are no waste, also where the system's pages are larger than 4 KiB: there are at least [`PAGES_MIN`].
fn is_so_large(bytes: usize) -> bool {
    bytes >= LARGE_BYTES_MIN && bytes >= PAGES_MIN * space::page_bytes()
}

/// A small allocation that the system has given, or not, in place of one of `before` bytes.
fn counted(start: *mut u8, before: usize, bytes: usize) -> *mut u8 {
    if !start.is_null() {
        SMALL.give(before);
        SMALL.take(bytes);
    }
    start
}

// SAFETY: what `SPACE` gives is memory of at least the size asked for that nobody else has, aligned to pages, until it is given
// back; an allocation goes to it or to `System` by its layout alone, so it is freed by whom it came from. Nothing unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(rounded) = recent::rounded(layout) {
            return counted(RECENT.take(rounded), 0, layout.size());
        }
        if !is_large(layout.size(), layout) {
            // SAFETY: as the caller promises us.
            return counted(unsafe { System.alloc(layout) }, 0, layout.size());
        }
        SPACE.take(layout.size()).map_or(null_mut(), |taken| taken.start)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(rounded) = recent::rounded(layout) {
            let start = counted(RECENT.take(rounded), 0, layout.size());
            if !start.is_null() {
                // SAFETY: so many bytes are ours.
                unsafe { start.write_bytes(0, layout.size()) };
            }
            return start;
        }
        if !is_large(layout.size(), layout) {
            // SAFETY: as the caller promises us.
            return counted(unsafe { System.alloc_zeroed(layout) }, 0, layout.size());
        }
        let Some(taken) = SPACE.take(layout.size()) else { return null_mut() };
        if !taken.is_zeroed {
            // SAFETY: so many bytes are ours.
            unsafe { taken.start.write_bytes(0, layout.size()) };
        }
        taken.start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if let Some(rounded) = recent::rounded(layout) {
            SMALL.give(layout.size());
            // SAFETY: as the caller promises us; it was allocated with this layout.
            return unsafe { RECENT.give(start, rounded) };
        }
        if !is_large(layout.size(), layout) {
            SMALL.give(layout.size());
            // SAFETY: as the caller promises us; it came from there.
            return unsafe { System.dealloc(start, layout) };
        }
        SPACE.give(start, layout.size());
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let (was_large, will_be) = (is_large(layout.size(), layout), is_large(bytes, layout));
        if !was_large && !will_be {
            let before = recent::rounded(layout).unwrap_or(layout);
            let wanted = if layout.align() <= recent::ALIGN { recent::round_up(bytes) } else { bytes };
            // SAFETY: as the caller promises us; it came from there, with this layout.
            return counted(unsafe { System.realloc(start, before, wanted) }, layout.size(), bytes);
        }
        if was_large && will_be && SPACE.resize(start, layout.size(), bytes) {
            return start;
        }
        // SAFETY: the caller promises that this is a layout; a new allocation overlaps nothing.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                start.copy_to_nonoverlapping(new, layout.size().min(bytes));
                self.dealloc(start, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests;
