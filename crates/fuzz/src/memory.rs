//! An allocator that knows how much memory each thread holds, and how much it held at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// To be the program's `#[global_allocator]`; without that nothing is counted.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn add(bytes: isize) {
    // Not while a thread ends: then nobody asks any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: all is done by the system's allocator, with what the caller gives; the counts do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        add(bytes as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

/// Most bytes that this thread held while `of` ran, beyond those it held before.
pub fn most_during<T>(of: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = of();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}
