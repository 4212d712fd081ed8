//! Writers, readers, jobs and checkpoints at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{Kind, Seqno, SETTLED_SEQNO};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{tiny, World};
use crate::Tree;

const GROUPS: usize = 60;
/// Keys that each commit to a group writes, all with the same value.
const KEYS: usize = 8;

fn key(group: usize, n: usize) -> Vec<u8> {
    // The keys of a group lie far apart.
    format!("{n}-{group:04}-some-padding").into_bytes()
}

struct Shared {
    tree: Arc<Tree>,
    horizon: Arc<super::world::TestHorizon>,
    next: Mutex<Seqno>,
    assigned: AtomicU64,
    /// Commits of each group: seqno, and whether they put or delete.
    history: Vec<Mutex<Vec<(Seqno, bool)>>>,
    stop: AtomicBool,
}

impl Shared {
    fn commit(&self, rng: &mut ChaCha8Rng) {
        let group = rng.random_range(0..GROUPS);
        let put = rng.random_ratio(3, 4);
        let gate = self.tree.gate();
        let seqno = {
            let mut next = self.next.lock();
            *next += 1;
            self.assigned.store(*next, Ordering::SeqCst);
            self.history[group].lock().push((*next, put));
            *next
        };
        let value = if put { seqno.to_le_bytes().repeat(4) } else { Vec::new() };
        for n in 0..KEYS {
            gate.insert(&key(group, n), seqno, if put { Kind::Put } else { Kind::Delete }, &value);
        }
        drop(gate);
        while self.horizon.visible.load(Ordering::SeqCst) != seqno - 1 {
            std::thread::yield_now();
        }
        self.horizon.visible.store(seqno, Ordering::SeqCst);
        self.tree.seal_if_full(|| self.assigned.load(Ordering::SeqCst));
    }

    /// What the group is at the snapshot: the commit that wrote it, if it is there.
    fn expected(&self, group: usize, snapshot: Seqno) -> Option<Seqno> {
        let history = self.history[group].lock();
        let last = history[..history.partition_point(|(seqno, _)| *seqno <= snapshot)].last()?;
        last.1.then_some(last.0)
    }

    fn check_group(&self, group: usize, snapshot: Seqno) {
        let expected = self.expected(group, snapshot);
        for n in 0..KEYS {
            let value = self.tree.get(&key(group, n), snapshot).unwrap();
            let found = value.map(|value| Seqno::from_le_bytes(value[..8].try_into().unwrap()));
            assert_eq!(found, expected, "group {group} key {n} at {snapshot}");
        }
    }

    fn check_scan(&self, snapshot: Seqno, forward: bool) {
        let mut expected: Vec<(Vec<u8>, Seqno)> = Vec::new();
        for n in 0..KEYS {
            for group in 0..GROUPS {
                expected.extend(self.expected(group, snapshot).map(|seqno| (key(group, n), seqno)));
            }
        }
        let mut cursor = self.tree.cursor(snapshot);
        if forward {
            cursor.seek_first().unwrap();
        } else {
            expected.reverse();
            cursor.seek_last().unwrap();
        }
        for (key, seqno) in &expected {
            assert!(cursor.valid(), "row {key:?} is missing at {snapshot}");
            assert_eq!(cursor.key(), &key[..]);
            assert!([*seqno, SETTLED_SEQNO].contains(&cursor.seqno()), "{} for {seqno}", cursor.seqno());
            assert_eq!(cursor.value()[..8], seqno.to_le_bytes());
            if forward {
                cursor.next().unwrap();
            } else {
                cursor.prev().unwrap();
            }
        }
        assert!(!cursor.valid());
    }

    fn read(&self, rng: &mut ChaCha8Rng) {
        let snapshot = self.horizon.take();
        for _ in 0..rng.random_range(1..20) {
            self.check_group(rng.random_range(0..GROUPS), snapshot);
        }
        self.check_scan(snapshot, rng.random());
        self.check_group(rng.random_range(0..GROUPS), snapshot);
        self.horizon.release(snapshot);
    }
}

fn storm(seed: u64, commits: usize) {
    let world = World::new(seed, tiny());
    let shared = Shared {
        tree: world.tree.clone(),
        horizon: world.horizon.clone(),
        next: Mutex::new(0),
        assigned: AtomicU64::new(0),
        history: (0..GROUPS).map(|_| Mutex::default()).collect(),
        stop: AtomicBool::new(false),
    };
    let shared = &shared;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed * 100 + writer);
                    (0..commits).for_each(|_| shared.commit(&mut rng));
                })
            })
            .collect();
        for _ in 0..3 {
            scope.spawn(|| {
                while !shared.stop.load(Ordering::SeqCst) {
                    if !shared.tree.run_job().unwrap() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for reader in 0..2 {
            scope.spawn(move || {
                let mut rng = ChaCha8Rng::seed_from_u64(seed * 200 + reader);
                while !shared.stop.load(Ordering::SeqCst) {
                    shared.read(&mut rng);
                }
            });
        }
        scope.spawn(move || {
            let assigned = || shared.assigned.load(Ordering::SeqCst);
            let mut rounds = 0;
            while !shared.stop.load(Ordering::SeqCst) {
                shared.tree.checkpoint(assigned, |_| Ok(()), || 0).unwrap();
                rounds += 1;
                if rounds % 16 == 0 {
                    shared.tree.compact_all().unwrap();
                }
                if rounds % 8 == 0 {
                    shared.tree.verify().unwrap();
                }
            }
        });
        // A panicking writer must not leave the others running.
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        shared.stop.store(true, Ordering::SeqCst);
        assert!(results.into_iter().all(|result| result.is_ok()));
    });
    let last = *shared.next.lock();
    while shared.tree.run_job().unwrap() {}
    assert!(shared.tree.structure.lock().busy.is_idle());
    shared.tree.verify().unwrap();
    shared.check_scan(last, true);
    shared.check_scan(last, false);
    shared.tree.checkpoint(|| last, |_| Ok(()), || 0).unwrap();
    assert_eq!(world.file.used_bytes(), shared.tree.stats().disk_bytes);
}

#[test]
fn readers_see_whole_commits_while_everything_moves() {
    storm(1, 3000);
}

#[test]
fn another_storm_with_other_seeds() {
    storm(2, 3000);
}
