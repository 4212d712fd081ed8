//! Snapshots: the newest visible commit, who still reads older ones, and publication.
//!
//! A snapshot is one number: it sees the versions with `seqno <= snapshot` (I1). `Snapshots` keeps
//! - `visible`: every commit up to this number is published, so a reader at it sees all of each (I5);
//! - the registry of snapshots in use, from which merges learn which versions they must keep;
//! - the commits published out of order, which wait for the gap before them to close.
//!
//! **Registry.** It is split into shards, each a small mutex of its own, and a thread always uses
//! the same shard: thirty connections that begin statements do not meet. `take` reads `visible`
//! *inside* its shard's mutex; `live` reads `visible` *before* it visits the shards. So of the two,
//! for each shard: either `live` comes second and sees the registration, or it comes first and then
//! the snapshot is at least the `visible` that `live` returns, and versions above that are never
//! dropped. No snapshot is missed and there is no retry. (One taken ahead of `visible` is above it, so the
//! same holds.)
//!
//! **Publication.** One mutex around a heap of the numbers above the gap; the critical section is a
//! few instructions. A committer waits (`wait_visible`) only while an earlier committer is between
//! its log append and its publication, which takes microseconds: it looks a few times, then
//! parks, and is woken by name when its number is reached.
//!
//! Lock order: a shard's mutex and the publication's mutex are leaves; neither is held while the
//! other, or anything else, is taken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

use pando_base::locks::Mutex;
use pando_base::{pause, Seqno};

/// Shards of the registry: a few per core of a big machine, and `live` visits them all.
const REGISTRY_SHARDS: usize = 64;

/// Looks at `visible` before a committer parks: about the time an earlier one needs to finish.
const SPINS_BEFORE_PARKING: usize = 64;
/// A parked thread looks again after such a time whether others have left it something to do.
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// Snapshots in use of one shard: `(seqno, how many)`, ascending.
type InUse = Vec<(Seqno, u32)>;

#[derive(Debug, Default)]
#[repr(align(128))]
struct RegistryShard {
    in_use: Mutex<InUse>,
}

#[derive(Debug, Default)]
struct Publication {
    /// Published numbers above `visible + 1`.
    ahead: BinaryHeap<Reverse<Seqno>>,
    /// Parked committers and the number each waits for.
    waiting: Vec<(Seqno, Thread)>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Visible(AtomicU64);

/// The registry of snapshots and the publication of commits; see the head of this file.
#[derive(Debug)]
pub struct Snapshots {
    visible: Visible,
    shards: Box<[Arc<RegistryShard>]>,
    publication: Mutex<Publication>,
}

impl Snapshots {
    /// Starts with every commit up to `visible` visible (after recovery: the last one replayed).
    pub fn new(visible: Seqno) -> Arc<Self> {
        Arc::new(Snapshots {
            visible: Visible(AtomicU64::new(visible)),
            shards: (0..REGISTRY_SHARDS).map(|_| Arc::default()).collect(),
            publication: Mutex::default(),
        })
    }

    /// Every commit up to this number is visible.
    pub fn visible(&self) -> Seqno {
        self.visible.0.load(Ordering::Acquire)
    }

    /// A snapshot of everything visible now, registered until its last clone is dropped.
    pub fn take(&self) -> Snapshot {
        self.take_at_least(0)
    }

    /// A snapshot of every commit up to `seqno`, which has been assigned but need not be visible: before it
    /// is read through, [`Snapshots::wait_visible`]. Of everything visible, if that is more.
    pub fn take_at_least(&self, seqno: Seqno) -> Snapshot {
        let shard = Arc::clone(&self.shards[shard_of_this_thread()]);
        let mut in_use = shard.in_use.lock();
        let seqno = self.visible().max(seqno);
        pause(16);
        // Nearly always behind the last: only one ahead of what is visible may be before it.
        let place = in_use.iter().rposition(|(other, _)| *other <= seqno);
        match place.map(|place| (place, &mut in_use[place])) {
            Some((_, (last, count))) if *last == seqno => *count += 1,
            place => {
                let place = place.map_or(0, |(place, _)| place + 1);
                in_use.insert(place, (seqno, 1));
            }
        }
        drop(in_use);
        Snapshot { seqno, shard }
    }

    /// The snapshots merges must respect: those in use below the newest visible number, ascending and
    /// deduplicated, and that number at the end. Versions above the last are not anyone's to drop, so
    /// a snapshot taken meanwhile is safe too.
    pub fn live(&self) -> Vec<Seqno> {
        let visible = self.visible();
        pause(16);
        let mut live = Vec::new();
        for shard in &self.shards {
            live.extend(shard.in_use.lock().iter().map(|(seqno, _)| *seqno).filter(|seqno| *seqno < visible));
        }
        live.sort_unstable();
        live.dedup();
        live.push(visible);
        live
    }

    /// The records of commit `seqno` are all in their memtables. Commits may be published in any
    /// order; `visible` advances over the contiguous prefix (I5). Each number is published once.
    pub fn publish(&self, seqno: Seqno) {
        pause(16);
        let woken = {
            let mut publication = self.publication.lock();
            let mut visible = self.visible.0.load(Ordering::Relaxed);
            assert!(seqno > visible, "commit {seqno} is published twice, visible is {visible}");
            if seqno != visible + 1 {
                publication.ahead.push(Reverse(seqno));
                return;
            }
            visible = seqno;
            while let Some(Reverse(next)) = publication.ahead.peek() {
                if *next > visible + 1 {
                    break;
                }
                assert_eq!(*next, visible + 1, "a commit is published twice");
                visible = *next;
                publication.ahead.pop();
            }
            self.visible.0.store(visible, Ordering::Release);
            publication.reached(visible)
        };
        for thread in woken {
            thread.unpark();
        }
    }

    /// Returns once `visible() >= seqno`. One load when that is so already.
    ///
    /// `meanwhile` is called now and then while it is not: whoever waits can do what is to be published and others do not come to.
    pub fn wait_visible(&self, seqno: Seqno, meanwhile: impl Fn()) {
        for _ in 0..SPINS_BEFORE_PARKING {
            if self.visible() >= seqno {
                return;
            }
            std::hint::spin_loop();
        }
        {
            let mut publication = self.publication.lock();
            // Under the mutex: a publication that comes later finds this thread in the list.
            if self.visible() >= seqno {
                return;
            }
            publication.waiting.push((seqno, std::thread::current()));
        }
        while self.visible() < seqno {
            std::thread::park_timeout(LOOKS_AGAIN_AFTER);
            if self.visible() < seqno {
                meanwhile();
            }
        }
    }
}

impl Publication {
    fn reached(&mut self, visible: Seqno) -> Vec<Thread> {
        let mut woken = Vec::new();
        let mut position = 0;
        while let Some((seqno, _)) = self.waiting.get(position) {
            if *seqno <= visible {
                woken.push(self.waiting.swap_remove(position).1);
            } else {
                position += 1;
            }
        }
        woken
    }
}

/// A registered snapshot: while it or a clone of it lives, no version it sees is dropped.
#[derive(Debug)]
pub struct Snapshot {
    seqno: Seqno,
    shard: Arc<RegistryShard>,
}

impl Snapshot {
    /// Versions with a number up to this one are visible.
    pub fn seqno(&self) -> Seqno {
        self.seqno
    }

    fn change(&self, change: impl FnOnce(&mut InUse, usize)) {
        let mut in_use = self.shard.in_use.lock();
        let position = in_use.binary_search_by_key(&self.seqno, |(seqno, _)| *seqno);
        change(&mut in_use, position.expect("a snapshot is registered while it lives"));
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Snapshot {
        // In the shard of the original, whichever thread clones: `live`, which visits shards one
        // after the other, could miss a registration that moves between two.
        self.change(|in_use, position| in_use[position].1 += 1);
        Snapshot { seqno: self.seqno, shard: Arc::clone(&self.shard) }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.change(|in_use, position| {
            in_use[position].1 -= 1;
            if in_use[position].1 == 0 {
                in_use.remove(position);
            }
        });
    }
}

/// Threads are dealt round over the shards as they first come.
fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % REGISTRY_SHARDS;
    }
    SHARD.with(|shard| *shard)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn visible_advances_over_the_contiguous_prefix_only() {
        let snapshots = Snapshots::new(10);
        snapshots.publish(12);
        snapshots.publish(14);
        assert_eq!(snapshots.visible(), 10);
        snapshots.publish(11);
        assert_eq!(snapshots.visible(), 12);
        snapshots.publish(13);
        assert_eq!(snapshots.visible(), 14);
    }

    #[test]
    #[should_panic(expected = "published twice")]
    fn publishing_a_commit_twice_is_a_bug() {
        let snapshots = Snapshots::new(0);
        snapshots.publish(1);
        snapshots.publish(1);
    }

    #[test]
    fn live_lists_each_snapshot_in_use_once_and_visible_last() {
        let snapshots = Snapshots::new(5);
        let a = snapshots.take();
        let b = snapshots.take();
        snapshots.publish(6);
        let c = snapshots.take();
        snapshots.publish(7);
        assert_eq!(snapshots.live(), [5, 6, 7]);
        assert_eq!((a.seqno(), b.seqno(), c.seqno()), (5, 5, 6));
        drop(a);
        assert_eq!(snapshots.live(), [5, 6, 7]);
        drop(b);
        assert_eq!(snapshots.live(), [6, 7]);
        drop(c);
        assert_eq!(snapshots.live(), [7]);
    }

    #[test]
    fn a_snapshot_ahead_of_what_is_visible_is_kept_once_it_is() {
        let snapshots = Snapshots::new(5);
        let ahead = snapshots.take_at_least(7);
        let now = snapshots.take();
        assert_eq!((ahead.seqno(), now.seqno()), (7, 5));
        assert_eq!(snapshots.live(), [5]);
        (6..=9).for_each(|seqno| snapshots.publish(seqno));
        assert_eq!(snapshots.live(), [5, 7, 9]);
        drop(now);
        drop(snapshots.take_at_least(3));
        assert_eq!(snapshots.live(), [7, 9], "never less than what is visible");
        drop(ahead);
        assert_eq!(snapshots.live(), [9]);
    }

    #[test]
    fn a_clone_keeps_the_snapshot_registered_even_when_dropped_by_another_thread() {
        let snapshots = Snapshots::new(1);
        let original = snapshots.take();
        let clone = std::thread::scope(|scope| scope.spawn(|| original.clone()).join().unwrap());
        snapshots.publish(2);
        drop(original);
        assert_eq!(snapshots.live(), [1, 2]);
        std::thread::scope(|scope| {
            scope.spawn(move || drop(clone));
        });
        assert_eq!(snapshots.live(), [2]);
    }

    #[test]
    fn a_committer_waits_until_every_earlier_commit_is_published() {
        let snapshots = Snapshots::new(0);
        let passed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                snapshots.publish(2);
                snapshots.wait_visible(2, || ());
                passed.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!passed.load(Ordering::SeqCst));
            snapshots.publish(1);
        });
        assert!(passed.load(Ordering::SeqCst));
    }

    #[test]
    fn many_committers_all_come_to_see_their_own_commit() {
        let snapshots = Snapshots::new(0);
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let seqno = next.fetch_add(1, Ordering::SeqCst) + 1;
                        snapshots.publish(seqno);
                        snapshots.wait_visible(seqno, || ());
                        assert!(snapshots.take().seqno() >= seqno);
                    }
                });
            }
        });
        assert_eq!(snapshots.visible(), 16_000);
        assert_eq!(snapshots.live(), [16_000]);
    }

    #[test]
    fn live_never_misses_a_snapshot_that_is_in_use() {
        let snapshots = Snapshots::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seqno in 1..=20_000 {
                    snapshots.publish(seqno);
                }
                stop.store(true, Ordering::SeqCst);
            });
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        let snapshot = snapshots.take();
                        let clone = snapshot.clone();
                        drop(snapshot);
                        let live = snapshots.live();
                        assert!(live.is_sorted_by(|a, b| a < b), "{live:?}");
                        assert!(
                            live.contains(&clone.seqno()) || live.last() < Some(&clone.seqno()),
                            "{} is in use, live is {live:?}",
                            clone.seqno()
                        );
                    }
                });
            }
        });
    }
}
