//! Memory that is given out in pieces, by many threads at once, and taken back as a whole.
//!
//! A memtable drops all of its records together. So none of them has to be known to the allocator: they stand one behind
//! another in chunks, and a record costs its own bytes only. Giving out is one atomic addition.
//!
//! ```text
//!   current --> chunk (a tail still free) --> chunk --> chunk
//! ```
//! Lock: `growing`, a leaf; the system is asked for memory under it, never for anything else.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pando_base::locks::Mutex;

/// Every piece begins at a multiple of this.
pub(super) const ALIGN: usize = 8;
/// A table with a handful of rows takes this much, and one with many grows by [`CHUNK_BYTES_MAX`].
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// The head of a chunk; the pieces follow.
#[repr(C)]
struct Chunk {
    /// The one that was current before; written under `growing`, read by `drop`.
    before: *mut Chunk,
    /// The whole of it, with this head.
    bytes: usize,
    /// Where the next piece begins; beyond `bytes` once somebody found no room.
    used: AtomicUsize,
}

const HEAD_BYTES: usize = size_of::<Chunk>();
const _: () = assert!(HEAD_BYTES % ALIGN == 0 && align_of::<Chunk>() <= ALIGN);

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Arena {
    current: AtomicPtr<Chunk>,
    growing: Mutex<()>,
    taken: AtomicUsize,
}

impl Arena {
    /// A piece of memory for `bytes`, aligned to [`ALIGN`], of no particular content. It is the caller's for as long as the
    /// arena lives. Ends the process when the system has no memory, as any other allocation.
    pub(super) fn take(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        if bytes > CHUNK_BYTES_MAX / 4 {
            return self.take_alone(bytes);
        }
        loop {
            let chunk = self.current.load(Ordering::Acquire);
            if !chunk.is_null() {
                // SAFETY: chunks live as long as the arena, and `used` is atomic.
                let at = unsafe { (*chunk).used.fetch_add(bytes, Ordering::Relaxed) };
                // SAFETY: as above; `bytes` does not change after the chunk was published.
                if at + bytes <= unsafe { (*chunk).bytes } {
                    // SAFETY: within the chunk's allocation, which is not null; the addition gave these bytes to nobody else.
                    return unsafe { NonNull::new_unchecked(chunk.cast::<u8>().add(at)) };
                }
            }
            self.grow(chunk, bytes);
        }
    }

    /// What the arena has taken from the system, in bytes.
    pub(super) fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Puts a chunk with room for `bytes` in the place of `full`, unless somebody else has.
    fn grow(&self, full: *mut Chunk, bytes: usize) {
        let _growing = self.growing.lock();
        if self.current.load(Ordering::Relaxed) != full {
            return;
        }
        let wished = self.taken.load(Ordering::Relaxed).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let chunk = self.new_chunk(full, wished.max(HEAD_BYTES + bytes), HEAD_BYTES);
        self.current.store(chunk.as_ptr(), Ordering::Release);
    }

    /// A chunk for one large piece; the current one goes on being filled.
    fn take_alone(&self, bytes: usize) -> NonNull<u8> {
        let _growing = self.growing.lock();
        let current = self.current.load(Ordering::Relaxed);
        let whole = HEAD_BYTES + bytes;
        let chunk = if current.is_null() {
            let chunk = self.new_chunk(ptr::null_mut(), whole, whole);
            self.current.store(chunk.as_ptr(), Ordering::Release);
            chunk
        } else {
            // SAFETY: chunks live as long as the arena; `before` is touched under `growing` only.
            let before = unsafe { &raw mut (*current).before };
            // SAFETY: as above.
            unsafe {
                let chunk = self.new_chunk(*before, whole, whole);
                *before = chunk.as_ptr();
                chunk
            }
        };
        // SAFETY: within the allocation of `whole` bytes.
        unsafe { chunk.cast::<u8>().add(HEAD_BYTES) }
    }

    fn new_chunk(&self, before: *mut Chunk, bytes: usize, used: usize) -> NonNull<Chunk> {
        let layout = layout(bytes);
        // SAFETY: the layout is not empty: it has the head.
        let memory = unsafe { alloc(layout) };
        let Some(chunk) = NonNull::new(memory.cast::<Chunk>()) else { handle_alloc_error(layout) };
        // SAFETY: newly allocated, large enough and aligned for the head.
        unsafe { chunk.write(Chunk { before, bytes, used: AtomicUsize::new(used) }) };
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        chunk
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("far below isize::MAX: keys and values have limits")
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut chunk = *self.current.get_mut();
        while !chunk.is_null() {
            // SAFETY: every chunk of the list was allocated with this layout and is freed once; nobody has the arena.
            unsafe {
                let (before, bytes) = ((*chunk).before, (*chunk).bytes);
                dealloc(chunk.cast::<u8>(), layout(bytes));
                chunk = before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_taken_by_several_threads_do_not_overlap() {
        const EACH: usize = if cfg!(miri) { 60 } else { 2000 };
        let arena = Arena::default();
        let mut pieces: Vec<(usize, usize)> = std::thread::scope(|scope| {
            let take = |thread: usize| {
                let arena = &arena;
                move || {
                    (0..EACH)
                        .map(|n| {
                            let bytes =
                                1 + (n * 37 + thread * 11) % 400 + if n % 500 == 7 { 100_000 } else { 0 };
                            let piece = arena.take(bytes);
                            // SAFETY: the piece is this thread's.
                            unsafe { piece.write_bytes(thread as u8, bytes) };
                            (piece.as_ptr() as usize, bytes)
                        })
                        .collect::<Vec<_>>()
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(take(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        pieces.sort_unstable();
        assert!(pieces.iter().all(|(at, _)| at % ALIGN == 0));
        assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let wanted: usize = pieces.iter().map(|(_, bytes)| bytes).sum();
        assert!(arena.taken_bytes() < wanted + wanted / 4, "{} for {wanted}", arena.taken_bytes());
    }

    #[test]
    fn nothing_is_taken_before_somebody_asks_and_little_for_a_little() {
        let arena = Arena::default();
        assert_eq!(arena.taken_bytes(), 0);
        arena.take(100);
        assert_eq!(arena.taken_bytes(), CHUNK_BYTES_MIN);
    }
}
