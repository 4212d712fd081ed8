//! Pauses where threads race, in builds with the feature `pauses`: what depends on who comes first then happens in seconds
//! that would else happen once in a thousand runs. The simulation does not do that; its threads take turns.
//!
//! A pause stands between two steps of which others could see, or change, what is between them: a place found and not
//! yet read, a number taken and not yet told. Without the feature [`pause`] is nothing.
//!
//! `scripts/pauses.sh` runs the tests with threads so, and builds a plugin.

/// One in so many times gives way to other threads, or sleeps for up to some milliseconds.
#[cfg(not(feature = "pauses"))]
#[inline(always)]
pub fn pause(_one_in: u32) {}

/// One in so many times gives way to other threads, or sleeps for up to some milliseconds.
#[cfg(feature = "pauses")]
pub fn pause(one_in: u32) {
    use std::cell::Cell;
    use std::hash::{BuildHasher, RandomState};
    use std::time::Duration;

    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }
    // Not while a thread ends.
    let Ok(drawn) = STATE.try_with(|state| {
        // xorshift64: Marsaglia, "Xorshift RNGs" (2003).
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x >> 8
    }) else {
        return;
    };
    if drawn % u64::from(one_in) != 0 {
        return;
    }
    // Most other steps take microseconds, some of the disk's milliseconds.
    let longest_us = [0, 64, 1024, 4096][(drawn >> 32) as usize % 4];
    match longest_us {
        0 => std::thread::yield_now(),
        longest => std::thread::sleep(Duration::from_micros((drawn >> 34) % longest)),
    }
}
