//! Memory for the C side, from the allocator that the Rust side has: `pando_memory` counts it, and large pieces of it go back to the system
//! when they are freed.

use std::alloc::{alloc, dealloc, realloc, Layout};
use std::ptr::null_mut;

use crate::guard::guard;

/// Gives `bytes` bytes in place of the `old` ones at `start`, whose content is in the first of them: like `realloc`, but whoever asks says
/// what there was. Null with 0 bytes stands for nothing, before and after. Null for more: the system has none, and all is as it was.
///
/// # Safety
/// `start` came from this function, for exactly `old` bytes, and is not used any more unless null is given for it.
#[no_mangle]
pub unsafe extern "C" fn pando_memory_resize(start: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    guard(|| {
        let (Ok(old), Ok(new)) = (layout(old), layout(bytes)) else { return null_mut() };
        // SAFETY: the caller vouches for the old layout; nothing of no bytes is asked for.
        unsafe {
            match (old.size(), new.size()) {
                (0, 0) => null_mut(),
                (0, _) => alloc(new),
                (_, 0) => {
                    dealloc(start, old);
                    null_mut()
                }
                _ => realloc(start, old, new.size()),
            }
        }
    })
}

/// As what the C library gives: any scalar may be there.
fn layout(bytes: usize) -> Result<Layout, std::alloc::LayoutError> {
    Layout::from_size_align(bytes, align_of::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_however_it_grows() {
        let mut start = null_mut();
        let mut bytes = 0;
        for (byte, more) in [(1, 1), (2, 63), (3, 20 << 10), (4, 3 << 20)] {
            // SAFETY: as documented; what is written has just been given.
            unsafe {
                start = pando_memory_resize(start, bytes, bytes + more);
                assert!(!start.is_null());
                start.add(bytes).write_bytes(byte, more);
            }
            bytes += more;
        }
        // SAFETY: as before.
        unsafe {
            let end = [(0, 1), (63, 2), (64, 3), ((20 << 10) + 63, 3), ((20 << 10) + 64, 4), (bytes - 1, 4)];
            assert!(end.iter().all(|(at, byte)| start.add(*at).read() == *byte));
            start = pando_memory_resize(start, bytes, 70);
            assert_eq!((start.read(), start.add(69).read()), (1, 3));
            assert!(pando_memory_resize(start, 70, 0).is_null());
        }
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        // SAFETY: nothing was there before.
        assert!(unsafe { pando_memory_resize(null_mut(), 0, usize::MAX) }.is_null());
    }
}
