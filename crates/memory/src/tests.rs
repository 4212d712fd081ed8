use std::alloc::{GlobalAlloc, Layout};

use proptest::prelude::*;

use super::*;

const MIB: usize = 1 << 20;

fn page() -> usize {
    space::page_bytes()
}

#[test]
fn footprints_are_whole_pages_of_large_buffers_and_what_is_usual_of_small_ones() {
    assert_eq!((footprint(0), footprint(1), footprint(24), footprint(25)), (0, 32, 32, 48));
    let least = LARGE_BYTES_MIN.max(PAGES_MIN * page());
    assert_eq!(footprint(least), least);
    assert_eq!(footprint(least + 1), least + page());
    assert!(footprint(least - 1) < least + 64, "what is smaller does not take whole pages");
}

#[test]
fn what_is_freed_is_taken_again_and_only_little_of_it_is_kept() {
    let space = Space::new();
    let first = space.take(MIB).unwrap();
    assert!(first.is_zeroed);
    space.give(first.start, MIB);
    let again = space.take(MIB).unwrap();
    assert_eq!((again.start, again.is_zeroed), (first.start, false));

    let buffers: Vec<_> = (0..64).map(|_| space.take(MIB).unwrap().start).collect();
    assert_eq!(space.usage(), Usage { used_bytes: 65 * MIB as u64, kept_bytes: 0, small_bytes: 0 });
    // Every other one, so that no two are neighbours.
    // When seventeen are kept, five go, and so on.
    buffers.iter().step_by(2).for_each(|start| space.give(*start, MIB));
    assert_eq!(
        space.usage(),
        Usage { used_bytes: 33 * MIB as u64, kept_bytes: 12 * MIB as u64, small_bytes: 0 }
    );
}

#[test]
fn what_was_given_back_is_zeros_and_not_in_memory() {
    let space = Space::new();
    let bytes = 64 * MIB;
    let taken = space.take(bytes).unwrap();
    // SAFETY: so many bytes were taken.
    unsafe { taken.start.write_bytes(7, bytes) };
    space.give(taken.start, bytes);
    let kept = space.usage().kept_bytes as usize;
    assert_eq!(kept, 12 * MIB);
    assert!(resident_bytes(taken.start, bytes) <= kept);
    let gone = space.take(bytes - kept).unwrap();
    assert!(gone.is_zeroed);
    // SAFETY: so many bytes were taken.
    let content = unsafe { std::slice::from_raw_parts(gone.start, bytes - kept) };
    assert!(content.iter().all(|byte| *byte == 0));
}

/// How much of a range is in memory, by what the system says.
fn resident_bytes(start: *mut u8, bytes: usize) -> usize {
    let (first, end) = (start as usize / page(), (start as usize + bytes) / page());
    let file = std::fs::OpenOptions::new().read(true).open("/proc/self/pagemap").unwrap();
    let mut entries = vec![0; (end - first) * 8];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut entries, first as u64 * 8).unwrap();
    entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count() * page()
}

/// A buffer with a byte of its own everywhere.
struct Buffer {
    start: *mut u8,
    layout: Layout,
    fill: u8,
}

impl Buffer {
    fn is_intact(&self, bytes: usize) -> bool {
        // SAFETY: so many bytes are the buffer's, and were written.
        unsafe { std::slice::from_raw_parts(self.start, bytes) }.iter().all(|byte| *byte == self.fill)
    }

    fn fill(&mut self, fill: u8) {
        // SAFETY: so many bytes are the buffer's.
        unsafe { self.start.write_bytes(fill, self.layout.size()) };
        self.fill = fill;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn buffers_keep_their_bytes_whatever_happens_to_others(
        ops in proptest::collection::vec(
            (0..4u8, 0..16usize, prop_oneof![1..20_000usize, 1..300_000usize], 0..13u32),
            1..200,
        )
    ) {
        let mut buffers: Vec<Buffer> = Vec::new();
        for (number, (op, at, bytes, align)) in ops.into_iter().enumerate() {
            let fill = number as u8;
            if op == 0 || op == 1 || buffers.is_empty() {
                let layout = Layout::from_size_align(bytes, 1 << align).unwrap();
                // SAFETY: the layout has a size.
                let start = unsafe { if op == 0 { Allocator.alloc(layout) } else { Allocator.alloc_zeroed(layout) } };
                prop_assert!(!start.is_null() && start as usize % layout.align() == 0);
                let mut buffer = Buffer { start, layout, fill: 0 };
                prop_assert!(op == 0 || buffer.is_intact(bytes));
                buffer.fill(fill);
                buffers.push(buffer);
                continue;
            }
            let at = at % buffers.len();
            let mut buffer = buffers.swap_remove(at);
            prop_assert!(buffer.is_intact(buffer.layout.size()));
            if op == 2 {
                // SAFETY: it came from there, with this layout.
                unsafe { Allocator.dealloc(buffer.start, buffer.layout) };
                continue;
            }
            // SAFETY: it came from there, with this layout.
            buffer.start = unsafe { Allocator.realloc(buffer.start, buffer.layout, bytes) };
            prop_assert!(!buffer.start.is_null());
            prop_assert!(buffer.is_intact(bytes.min(buffer.layout.size())));
            buffer.layout = Layout::from_size_align(bytes, buffer.layout.align()).unwrap();
            buffer.fill(fill);
            buffers.push(buffer);
        }
        for buffer in buffers {
            prop_assert!(buffer.is_intact(buffer.layout.size()));
            // SAFETY: it came from there, with this layout.
            unsafe { Allocator.dealloc(buffer.start, buffer.layout) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    recent::rounded(Layout::from_size_align(bytes, 8).unwrap()).unwrap()
}

#[test]
fn the_last_buffer_of_a_size_is_the_next_one_taken_and_no_more_wait_than_they_may() {
    let recent = Recent::new();
    assert!(recent::rounded(Layout::from_size_align(1024, 8).unwrap()).is_none());
    assert!(recent::rounded(Layout::from_size_align(5000, 64).unwrap()).is_none());
    assert_eq!(
        (layout(1025).size(), layout(5000).size(), layout(LARGE_BYTES_MIN - 1).size()),
        (1536, 5120, 12288)
    );
    let taken: Vec<*mut u8> = (0..100).map(|_| recent.take(layout(8000))).collect();
    assert_eq!(recent.bytes(), 0);
    // SAFETY: they were taken with this layout.
    taken.iter().for_each(|start| unsafe { recent.give(*start, layout(8000)) });
    let kept = recent.bytes();
    assert!(kept > 200 << 10 && kept <= 256 << 10, "{kept}");
    let last = taken[kept as usize / 8192 - 1];
    assert_eq!(recent.take(layout(8192)), last, "of the same size, whatever was asked for");
    assert_ne!(recent.take(layout(8193)), taken[0], "and not of another one");
}

#[test]
fn threads_take_buffers_that_others_gave() {
    let recent = Recent::new();
    std::thread::scope(|scope| {
        for seed in 0..4usize {
            let (recent, (send, receive)) = (&recent, std::sync::mpsc::channel::<(usize, usize, u8)>());
            scope.spawn(move || {
                for (start, bytes, fill) in receive {
                    let start = start as *mut u8;
                    // SAFETY: the sender took and filled it, and is done with it.
                    unsafe {
                        assert!(std::slice::from_raw_parts(start, bytes).iter().all(|byte| *byte == fill));
                        recent.give(start, layout(bytes));
                    }
                }
            });
            scope.spawn(move || {
                for turn in 0..3000usize {
                    let (bytes, fill) = (1025 + (turn * 7919 + seed) % 11_000, (turn + seed) as u8);
                    let start = recent.take(layout(bytes));
                    // SAFETY: so many bytes were taken.
                    unsafe { start.write_bytes(fill, bytes) };
                    send.send((start as usize, bytes, fill)).unwrap();
                }
            });
        }
    });
}

#[test]
fn threads_give_back_what_others_took() {
    let space = Space::new();
    std::thread::scope(|scope| {
        for seed in 0..4usize {
            let (space, (send, receive)) = (&space, std::sync::mpsc::channel::<(usize, usize, u8)>());
            scope.spawn(move || {
                for (start, bytes, fill) in receive {
                    let start = start as *mut u8;
                    // SAFETY: the sender took and filled it.
                    let content = unsafe { std::slice::from_raw_parts(start, bytes) };
                    assert!(content.iter().all(|byte| *byte == fill));
                    space.give(start, bytes);
                }
            });
            scope.spawn(move || {
                for turn in 0..500usize {
                    let (bytes, fill) = (LARGE_BYTES_MIN + (turn * 7919 + seed) % 200_000, turn as u8);
                    let taken = space.take(bytes).unwrap();
                    // SAFETY: so many bytes were taken.
                    unsafe { taken.start.write_bytes(fill, bytes) };
                    send.send((taken.start as usize, bytes, fill)).unwrap();
                }
            });
        }
    });
    let usage = space.usage();
    assert!(usage.used_bytes == 0 && usage.kept_bytes <= 16 * MIB as u64, "{usage:?}");
}

/// Frees and takes large buffers when it is dropped.
struct Holds;

impl Drop for Holds {
    fn drop(&mut self) {
        for bytes in [LARGE_BYTES_MIN, 1 << 20] {
            let layout = Layout::from_size_align(bytes, 1).unwrap();
            // SAFETY: the layout is not empty; what was given is given back with it.
            unsafe {
                let start = Allocator.alloc(layout);
                assert!(!start.is_null());
                let start = Allocator.realloc(start, layout, 2 * bytes);
                Allocator.dealloc(start, Layout::from_size_align(2 * bytes, 1).unwrap());
            }
        }
    }
}

#[test]
fn destructors_have_large_buffers_while_a_panic_goes_up() {
    let panicked = std::panic::catch_unwind(|| {
        let _holds = Holds;
        panic!("a bug elsewhere");
    });
    assert!(panicked.is_err());
    assert!(crate::is_usable());
}

#[test]
fn small_allocations_are_counted_whoever_frees_them() {
    let counted = Small::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (1..=1000).for_each(|bytes| counted.take(bytes)));
        }
    });
    let of_each: usize = (1..=1000).map(footprint).sum();
    assert_eq!(counted.bytes(), 8 * of_each as u64);
    (0..7).for_each(|_| (1..=1000).for_each(|bytes| counted.give(bytes)));
    assert_eq!(counted.bytes(), of_each as u64);
    (1..=1000).for_each(|bytes| counted.give(bytes));
    assert_eq!(counted.bytes(), 0);
}
