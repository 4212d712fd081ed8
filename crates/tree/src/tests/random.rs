//! Long random histories against the model.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::Model;
use super::world::{tiny, World};
use crate::TreeConfig;

/// How keys are drawn.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Uniform(u32),
    /// Ever larger, now and then an old one.
    Ascending,
    /// A queue: inserted at the end, deleted at the front.
    Queue,
    /// Some keys far more often than others.
    Hot(u32),
    /// Ever larger, by so many sessions that take one and write it later; now and then an old one.
    Sessions(usize),
}

struct Run {
    world: World,
    rng: ChaCha8Rng,
    keys: Keys,
    front: u32,
    end: u32,
    /// Keys that were taken and not written.
    taken: Vec<u32>,
    /// Of ten writes, how many put.
    puts: u32,
}

impl Run {
    fn new(seed: u64, config: TreeConfig, keys: Keys) -> Run {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Run { world: World::new(seed, config), rng, keys, front: 0, end: 0, taken: Vec::new(), puts: 7 }
    }
}

impl Run {
    fn key_of(&mut self, n: u32) -> Vec<u8> {
        // Lengths differ, some keys are prefixes of others.
        let mut key = format!("{n:05}").into_bytes();
        if n % 7 == 0 {
            key.extend(std::iter::repeat_n(0, (n % 3) as usize));
        }
        if n % 11 == 0 {
            key.truncate(4);
        }
        key
    }

    fn any_key(&mut self) -> Vec<u8> {
        let n = match self.keys {
            Keys::Uniform(n) => self.rng.random_range(0..n),
            Keys::Hot(n) => {
                let power = self.rng.random::<f64>().powi(4);
                (power * f64::from(n)) as u32
            }
            Keys::Ascending | Keys::Queue | Keys::Sessions(_) => {
                self.rng.random_range(self.front..=self.end + 1)
            }
        };
        self.key_of(n)
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.rng.random_ratio(1, 200) { 3000 } else { self.rng.random_range(0..60) };
        let byte = self.rng.random();
        let mut value = vec![byte; len];
        self.rng.fill(&mut value[..len.min(8)]);
        value
    }

    fn write(&mut self) -> (Vec<u8>, Option<Vec<u8>>) {
        match self.keys {
            Keys::Ascending if !self.rng.random_ratio(1, 10) => {
                self.end += 1;
                (self.key_of(self.end), Some(self.value()))
            }
            Keys::Sessions(sessions) if !self.rng.random_ratio(1, 300) => {
                while self.taken.len() < sessions {
                    self.end += 1;
                    self.taken.push(self.end);
                }
                let n = self.taken.swap_remove(self.rng.random_range(0..sessions));
                (self.key_of(n), Some(self.value()))
            }
            Keys::Queue => {
                if self.front < self.end && self.rng.random_bool(0.48) {
                    self.front += 1;
                    (self.key_of(self.front), None)
                } else {
                    self.end += 1;
                    (self.key_of(self.end), Some(self.value()))
                }
            }
            _ => {
                let value = self.rng.random_ratio(self.puts, 10).then(|| self.value());
                (self.any_key(), value)
            }
        }
    }

    fn snapshot(&mut self) -> u64 {
        let live = &self.world.snapshots;
        if live.is_empty() || self.rng.random_bool(0.5) {
            return self.world.last;
        }
        live[self.rng.random_range(0..live.len())]
    }

    fn check_get(&mut self) {
        let (key, snapshot) = (self.any_key(), self.snapshot());
        let expected = self.world.model.get(&key, snapshot);
        let found = self.world.tree.get(&key, snapshot).unwrap();
        assert_eq!(found.as_deref(), expected, "get {key:?} at {snapshot}");
        assert_eq!(self.world.tree.get_as_expected(&key, snapshot).unwrap(), found, "{key:?} at {snapshot}");
        let is_there = self.world.model.get(&key, self.world.last).is_some();
        assert_eq!(self.world.tree.has_as_expected(&key).unwrap(), is_there, "{key:?}");
    }

    /// A cursor goes a random way and is compared at each step.
    fn check_walk(&mut self) {
        let snapshot = self.snapshot();
        let mut cursor = self.world.tree.cursor(snapshot);
        for _ in 0..self.rng.random_range(1..4) {
            let key = self.any_key();
            let model = &self.world.model;
            let mut expected = match self.rng.random_range(0..6) {
                0 => {
                    cursor.seek_first().unwrap();
                    model.at_or_after(b"", snapshot)
                }
                1 => {
                    cursor.seek_last().unwrap();
                    model.before(None, snapshot)
                }
                2 | 3 => {
                    cursor.seek(&key).unwrap();
                    model.at_or_after(&key, snapshot)
                }
                _ => {
                    cursor.seek_before(&key).unwrap();
                    model.before(Some(&key), snapshot)
                }
            };
            let mut forward = self.rng.random::<bool>();
            for _ in 0..self.rng.random_range(0..60) {
                let found = cursor.valid().then(|| (cursor.key(), cursor.value()));
                assert_eq!(found, expected, "cursor at {snapshot} after {key:?}");
                let Some((here, _)) = expected else { break };
                if self.rng.random_ratio(1, 8) {
                    forward = !forward;
                }
                if self.rng.random_ratio(1, 8) {
                    expected = visit_some(&mut cursor, model, snapshot, self.rng.random_range(1..40));
                    forward = true;
                    continue;
                }
                if forward {
                    let mut after = here.to_vec();
                    after.push(0);
                    expected = model.at_or_after(&after, snapshot);
                    cursor.next().unwrap();
                } else {
                    expected = model.before(Some(here), snapshot);
                    cursor.prev().unwrap();
                }
            }
        }
    }

    fn check_pieces(&mut self) {
        let (snapshot, begin) = (self.snapshot(), self.any_key());
        let end = self.rng.random::<bool>().then(|| self.any_key());
        self.world.check_pieces(snapshot, &begin, end.as_deref());
    }

    fn step(&mut self) {
        match self.rng.random_range(0..10_000) {
            0..7000 => {
                let count = if self.rng.random_ratio(1, 10) { self.rng.random_range(2..9) } else { 1 };
                let writes = (0..count).map(|_| self.write()).collect();
                self.world.commit(writes);
                let last = self.world.last;
                self.world.tree.seal_if_full(|| last);
            }
            7000..8000 => self.check_get(),
            8000..8280 => self.check_walk(),
            8280..8300 => self.check_pieces(),
            8300..9700 => {
                self.world.tree.run_job().unwrap();
            }
            9700..9800 if self.world.snapshots.len() < 6 => {
                let snapshot = self.world.horizon.take();
                self.world.snapshots.push(snapshot);
            }
            9700..9900 if !self.world.snapshots.is_empty() => {
                let at = self.rng.random_range(0..self.world.snapshots.len());
                let snapshot = self.world.snapshots.swap_remove(at);
                self.world.horizon.release(snapshot);
            }
            9900..9930 => {
                self.world.seal();
            }
            9930..9960 => {
                self.world.auto_increment += self.rng.random_range(0..2);
                self.world.checkpoint().unwrap();
            }
            9960..9966 => self.reopen(),
            9966..9968 => {
                self.world.truncate();
                self.front = self.end;
            }
            9968..9973 => self.check_estimate(),
            9973..9980 => {
                self.world.check_all();
            }
            9980..9982 => {
                self.world.tree.compact_all().unwrap();
                self.world.check_all();
            }
            9982..9990 => self.adopt(),
            9990..9996 => self.delete_range(),
            _ => {}
        }
    }

    /// A commit that deletes a range, mostly a short one or one up to a key.
    fn delete_range(&mut self) {
        let (a, b) = (self.any_key(), self.any_key());
        let (lo, hi) = (a.clone().min(b.clone()), a.max(b));
        match self.rng.random_range(0..10) {
            0 => self.world.delete_range(b"", None),
            1 => self.world.delete_range(&hi, None),
            2..5 => self.world.delete_range(b"", Some(&lo)),
            _ => self.world.delete_range(&lo, Some(&hi)),
        };
    }

    /// A commit that adopts a few runs.
    fn adopt(&mut self) {
        let most = [3, 30, 200][self.rng.random_range(0..3)];
        let mut parts = Vec::new();
        for _ in 0..self.rng.random_range(1..5) {
            let count = self.rng.random_range(1..=most);
            parts.push((0..count).map(|_| self.write()).collect());
        }
        let rest = (0..self.rng.random_range(0..5)).map(|_| self.write()).collect();
        self.world.commit_adopting(parts, rest).unwrap();
    }

    fn reopen(&mut self) {
        if self.rng.random() {
            self.world.crash();
        } else {
            self.world.checkpoint().unwrap();
            assert_eq!(self.world.tree.oldest_unwritten(), None);
            let vfs = self.world.vfs.power_cycle_clean();
            let sb = self.world.reopen_on(vfs).unwrap();
            assert_eq!(sb.auto_increment, self.world.auto_increment);
            assert!(!self.world.tree.is_dirty());
        }
        let last = self.world.last;
        self.world.check_scan(last);
    }

    fn check_estimate(&mut self) {
        let (a, b) = (self.any_key(), self.any_key());
        self.world.tree.estimate(Some(&a), Some(&b), 10).unwrap();
        let rows = self.world.model.rows(self.world.last).len() as u64;
        let all = self.world.tree.estimate(None, None, 0).unwrap().rows;
        assert!(all >= rows.saturating_sub(20), "{all} records estimated, {rows} rows");
    }
}

/// Jobs are begun and end much later, in any order, while the tree changes under them; some outlive a
/// truncation.
fn interleaved(seed: u64, episodes: usize, truncates: bool, config: TreeConfig, keys: Keys) {
    let mut run = Run::new(seed, config, keys);
    let mut most = 0;
    for _ in 0..episodes {
        let tree = run.world.tree.clone();
        let mut tasks = Vec::new();
        // Now the tree grows, now it shrinks.
        run.puts = [9, 8, 5, 1][run.rng.random_range(0..4)];
        for _ in 0..run.rng.random_range(1..1500) {
            match run.rng.random_range(0..1000) {
                0..100 if tasks.len() < 8 => tasks.extend(tree.start_job()),
                100..160 if !tasks.is_empty() => {
                    let (task, plan) = tasks.swap_remove(run.rng.random_range(0..tasks.len()));
                    tree.execute(&task, plan).unwrap();
                }
                160 if truncates => run.world.truncate(),
                161..166 => {
                    let last = run.world.last;
                    run.world.check_scan(last);
                }
                166..169 => run.adopt(),
                169 => run.delete_range(),
                170..180 => run.check_pieces(),
                180..400 => {
                    run.check_get();
                    run.check_walk();
                }
                _ => {
                    let writes = vec![run.write(), run.write()];
                    run.world.commit(writes);
                    let last = run.world.last;
                    tree.seal_if_full(|| last);
                }
            }
            most = most.max(tasks.len());
        }
        for (task, plan) in tasks {
            tree.execute(&task, plan).unwrap();
        }
        assert!(tree.structure.lock().busy.is_idle());
        run.world.check_all();
        run.world.checkpoint().unwrap();
        run.world.check_space();
        if run.rng.random() {
            run.world.crash();
        }
    }
    assert!(most >= 4 || episodes < 20, "{most} jobs at once");
}

#[test]
fn jobs_that_take_long_fit_into_what_the_tree_became() {
    interleaved(21, 25, true, tiny(), Keys::Uniform(4000));
    interleaved(22, 25, false, tiny(), Keys::Hot(2000));
    interleaved(23, 25, false, TreeConfig { fanout_max: 8, ..tiny() }, Keys::Queue);
    let mut alike = tiny();
    alike.buffer_compression = alike.run.compression;
    interleaved(24, 25, true, TreeConfig { fanout_max: 3, ..alike }, Keys::Ascending);
}

#[test]
fn jobs_that_take_long_fit_into_a_deep_tree_that_grows_and_shrinks() {
    let config = TreeConfig { memtable_bytes: 1000, leaf_raw_bytes: 800, fanout_max: 3, ..tiny() };
    interleaved(25, 30, false, config, Keys::Uniform(6000));
    let config = TreeConfig { memtable_bytes: 1000, leaf_raw_bytes: 1500, fanout_max: 6, ..tiny() };
    interleaved(26, 30, false, config, Keys::Uniform(3000));
}

fn history(seed: u64, steps: usize, config: TreeConfig, keys: Keys) -> World {
    let mut run = Run::new(seed, config, keys);
    for _ in 0..steps {
        run.step();
    }
    run.world.seal();
    run.world.run_jobs();
    run.world.check_all();
    run.world.checkpoint().unwrap();
    run.world.check_space();
    run.world.tree.compact_all().unwrap();
    run.world.check_all();
    run.world.crash();
    run.world.check_all();
    run.world
}

const STEPS: usize = 60_000;

#[test]
fn uniform_keys_agree_with_the_model() {
    history(1, STEPS, tiny(), Keys::Uniform(1500));
}

#[test]
fn few_keys_with_many_versions_agree_with_the_model() {
    history(2, STEPS, tiny(), Keys::Uniform(40));
}

#[test]
fn ascending_keys_agree_with_the_model() {
    history(3, STEPS, tiny(), Keys::Ascending);
}

#[test]
fn a_queue_agrees_with_the_model() {
    history(4, STEPS, tiny(), Keys::Queue);
}

#[test]
fn hot_keys_agree_with_the_model() {
    history(5, STEPS, tiny(), Keys::Hot(3000));
}

#[test]
fn runs_that_may_become_leaves_unrewritten_agree_with_the_model() {
    let mut config = tiny();
    config.buffer_compression = config.run.compression;
    history(6, STEPS, TreeConfig { memtable_bytes: 6000, ..config }, Keys::Ascending);
}

#[test]
fn inserts_of_several_sessions_agree_with_the_model_and_are_hardly_rewritten() {
    let mut small = tiny();
    small.run.segment_raw_bytes = 60;
    let config = TreeConfig { memtable_bytes: 9000, ..small };
    let world = history(9, STEPS, config, Keys::Sessions(4));
    let (by_reference, flushes) = (world.metrics.flush_by_reference.get(), world.metrics.flushes.get());
    assert!(by_reference > flushes / 4, "{by_reference} runs by reference, {flushes} flushes");
    let mut alike = TreeConfig { memtable_bytes: 12_000, fanout_max: 6, ..small };
    alike.buffer_compression = alike.run.compression;
    history(10, STEPS, alike, Keys::Sessions(6));
    let config = TreeConfig { memtable_bytes: 7000, leaf_raw_bytes: 3000, ..small };
    interleaved(11, 25, false, config, Keys::Sessions(3));
}

#[test]
fn other_sizes_agree_with_the_model() {
    let config =
        TreeConfig { memtable_bytes: 700, leaf_raw_bytes: 9000, fanout_max: 2, buffer_runs_max: 1, ..tiny() };
    history(7, STEPS / 3, config, Keys::Uniform(2000));
    let config = TreeConfig {
        memtable_bytes: 9000,
        leaf_raw_bytes: 2000,
        fanout_max: 9,
        buffer_runs_max: 9,
        ..tiny()
    };
    history(8, STEPS / 3, config, Keys::Hot(2000));
}

/// `cargo test --release -p pando-tree -- --ignored soak`, with `SOAK_SEEDS=from..to`.
#[test]
#[ignore = "runs for minutes"]
fn soak() {
    let seeds = std::env::var("SOAK_SEEDS").unwrap_or_else(|_| "1000..1020".to_owned());
    let (from, to) = seeds.split_once("..").expect("from..to");
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut config = TreeConfig {
            memtable_bytes: rng.random_range(300..8000),
            leaf_raw_bytes: rng.random_range(500..9000),
            fanout_max: rng.random_range(2..10),
            buffer_runs_max: rng.random_range(1..10),
            ..tiny()
        };
        if rng.random() {
            config.buffer_compression = config.run.compression;
        }
        if rng.random() {
            config.run.segment_raw_bytes = 60;
        }
        let keys = match rng.random_range(0..5) {
            0 => Keys::Uniform(rng.random_range(10..8000)),
            1 => Keys::Hot(rng.random_range(10..8000)),
            2 => Keys::Ascending,
            3 => Keys::Sessions(rng.random_range(2..12)),
            _ => Keys::Queue,
        };
        println!("seed {seed}: {keys:?} {config:?}");
        history(seed, 20_000, config, keys);
        interleaved(seed, 8, rng.random(), config, keys);
    }
}

/// Visits so many rows from the cursor's on, and gives the row that the cursor has to be at.
fn visit_some<'a>(
    cursor: &mut crate::Cursor,
    model: &'a Model,
    snapshot: pando_base::Seqno,
    rows: usize,
) -> Option<(&'a [u8], &'a [u8])> {
    let mut expected = model.at_or_after(cursor.key(), snapshot);
    let mut left = rows;
    cursor
        .visit(|key, value| {
            assert_eq!(Some((key, value)), expected, "visit at {snapshot}, {left} of {rows} before the end");
            left -= 1;
            if left > 0 {
                let mut after = key.to_vec();
                after.push(0);
                expected = model.at_or_after(&after, snapshot);
            }
            left > 0
        })
        .unwrap();
    expected
}
