//! Power losses: random work on a simulated disk, crashes and faults at random moments, and a model
//! that knows what was promised.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{batch, collect, dir, open_with, owned, recover, small, Owned};
use pando_base::{DictId, Error, Kind, Seqno};
use pando_storage::vfs::{FaultKind, SimVfs};
use pando_wal::{Appended, BatchBuilder, FlushMode, Wal};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What was appended, and what of it was promised to survive.
#[derive(Default)]
struct Model {
    batches: BTreeMap<Seqno, Vec<Owned>>,
    durable: Seqno,
    keep_from: Seqno,
    last_seqno: Seqno,
}

impl Model {
    /// The survivors must be an interval of what was appended that holds all that was promised.
    fn check(&self, survivors: &common::Batches, last_seqno: Seqno, story: &str) {
        assert!(last_seqno >= self.durable, "{story}: {} was durable, {last_seqno} is left", self.durable);
        let survivors: BTreeMap<Seqno, Vec<Owned>> = survivors.iter().cloned().collect();
        let (first, last) = (survivors.keys().next(), survivors.keys().next_back());
        let within = |seqno: &Seqno| first.is_some_and(|f| f <= seqno) && last.is_some_and(|l| seqno <= l);
        for (seqno, entries) in &self.batches {
            if within(seqno) {
                assert_eq!(survivors.get(seqno), Some(entries), "{story}: batch {seqno}");
            }
            let needed = (self.keep_from..=self.durable).contains(seqno);
            assert!(within(seqno) || !needed, "{story}: {seqno} of {first:?} to {last:?}");
        }
        assert!(survivors.keys().all(|seqno| self.batches.contains_key(seqno)), "{story}");
    }

    fn survived(&mut self, survivors: &common::Batches, last_seqno: Seqno) {
        let last = survivors.last().map_or(0, |(seqno, _)| *seqno);
        self.batches.retain(|seqno, _| *seqno <= last);
        self.durable = self.durable.max(last_seqno);
        self.last_seqno = last_seqno;
    }
}

fn random_batch(rng: &mut ChaCha8Rng) -> (BatchBuilder, Vec<Owned>) {
    let mut batch = BatchBuilder::new();
    let mut owned = Vec::new();
    let long = rng.random_bool(0.04);
    for _ in 0..rng.random_range(0..4) {
        let dict = DictId(rng.random_range(1..400));
        match rng.random_range(0..10) {
            0 => {
                batch.truncate(dict);
                owned.push(Owned::Truncate(dict));
            }
            1 => {
                let next = rng.random();
                batch.auto_increment(dict, next);
                owned.push(Owned::AutoIncrement(dict, next));
            }
            2 => {
                batch.record(dict, Kind::Delete, b"gone", b"");
                owned.push(Owned::Record(dict, Kind::Delete, b"gone".to_vec(), Vec::new()));
            }
            _ => {
                let mut value =
                    vec![0; if long { rng.random_range(0..30_000) } else { rng.random_range(0..500) }];
                rng.fill(&mut value[..]);
                batch.record(dict, Kind::Put, &value[..value.len() / 3], &value);
                owned.push(Owned::Record(dict, Kind::Put, value[..value.len() / 3].to_vec(), value));
            }
        }
    }
    (batch, owned)
}

/// Works until chance or a fault ends it.
fn live(wal: &Wal, vfs: &SimVfs, model: &mut Model, rng: &mut ChaCha8Rng, story: &str) {
    if rng.random_bool(0.4) {
        let kind = [FaultKind::Error, FaultKind::Sticky, FaultKind::DiskFull][rng.random_range(0..3)];
        vfs.fail_io_after(rng.random_range(1..150), kind);
    }
    let mut appended: Vec<Appended> = Vec::new();
    for _ in 0..rng.random_range(0..120) {
        let done = match rng.random_range(0..100) {
            0..60 => {
                let (batch, entries) = random_batch(rng);
                wal.append(&batch).map(|got| {
                    assert_eq!(got.seqno, model.last_seqno + 1, "{story}");
                    model.last_seqno = got.seqno;
                    model.batches.insert(got.seqno, entries);
                    appended.push(got);
                })
            }
            60..85 if !appended.is_empty() => {
                let got = appended[rng.random_range(0..appended.len())];
                let mode = FlushMode::from_number(rng.random_range(0..3)).expect("a mode");
                wal.wait(got.lsn, mode).map(|()| {
                    if mode == FlushMode::Commit {
                        model.durable = model.durable.max(got.seqno);
                    }
                })
            }
            85..90 => {
                let seqno = rng.random_range(0..=model.last_seqno);
                wal.sync_up_to_seqno(seqno).map(|()| model.durable = model.durable.max(seqno))
            }
            90..95 => {
                let before = model.last_seqno;
                wal.tick().map(|()| model.durable = model.durable.max(before))
            }
            95.. => {
                model.keep_from = rng.random_range(model.keep_from..=model.durable.max(model.keep_from));
                wal.trim(model.keep_from)
            }
            _ => Ok(()),
        };
        match done {
            Err(error) if common::is_read_only(&error) => {
                assert!(wal.failed().is_some(), "{story}");
                assert!(wal.append(&batch(1, 1)).is_err(), "{story}");
                return;
            }
            Err(Error::Corruption { .. }) => panic!("{story}: {done:?}"),
            // A full disk, or an I/O error where nothing was promised: life goes on.
            _ => {}
        }
    }
}

fn run(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut vfs = SimVfs::new(seed);
    let mut model = Model::default();
    for life in 0..8 {
        let story = format!("seed {seed}, life {life}");
        let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), small()).expect(&story);
        let (survivors, end) = collect(&mut replay).expect(&story);
        assert_eq!(collect(&mut replay).expect(&story), (survivors.clone(), end.clone()), "{story}");
        model.check(&survivors, end.last_seqno, &story);
        if rng.random_bool(0.2) {
            vfs.fail_io_after(rng.random_range(1..12), FaultKind::Error);
        }
        let jump = if rng.random_bool(0.2) { 1000 } else { 0 };
        if wal.start(end.last_seqno + 1 + jump).is_ok() {
            model.survived(&survivors, end.last_seqno);
            model.last_seqno += jump;
            vfs.clear_faults();
            live(&wal, &vfs, &mut model, &mut rng, &story);
        }
        vfs.clear_faults();
        // The machine loses power, or only the process ends and the system keeps what it was given.
        if rng.random_bool(0.6) {
            vfs = vfs.crash();
        }
    }
}

#[test]
fn what_was_acknowledged_survives_any_crash_and_what_survives_is_a_prefix() {
    let first = std::env::var("PANDO_SEED").ok().and_then(|seed| seed.parse().ok());
    match first {
        Some(seed) => run(seed),
        None => (0..600).for_each(run),
    }
}

#[test]
fn a_crash_at_every_io_of_a_short_life_loses_nothing_acknowledged() {
    for n in 1.. {
        let vfs = SimVfs::new(n);
        vfs.fail_io_after(n, FaultKind::Sticky);
        let mut durable = 0;
        let mut work = || -> pando_base::Result<()> {
            let (wal, _, _) = recover(&vfs)?;
            for i in 1..=12 {
                let got = wal.append(&batch(i, 4000))?;
                wal.wait(got.lsn, FlushMode::Commit)?;
                durable = got.seqno;
                if i % 5 == 0 {
                    wal.trim(i - 1)?;
                }
            }
            wal.tick()
        };
        let finished = work().is_ok();
        vfs.clear_faults();
        let (_, survivors, _) = recover(&vfs.crash()).unwrap();
        let last = survivors.last().map_or(0, |(seqno, _)| *seqno);
        assert!(last >= durable, "crash at I/O {n}: {durable} was durable, {last} is left");
        for (seqno, entries) in &survivors {
            assert_eq!(*entries, owned(*seqno, 4000));
        }
        if finished {
            break;
        }
    }
}

#[test]
fn a_torn_tail_ends_the_log_silently_and_the_next_life_goes_on_behind_it() {
    let mut torn = 0;
    for seed in 0..60 {
        let vfs = SimVfs::new(seed);
        let (wal, _, _) = recover(&vfs).unwrap();
        let first = wal.append(&batch(1, 100)).unwrap();
        wal.wait(first.lsn, FlushMode::Commit).unwrap();
        let tail = wal.append(&batch(2, 5000)).unwrap();
        wal.wait(tail.lsn, FlushMode::Write).unwrap();
        let vfs = vfs.crash();
        let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), small()).unwrap();
        let (survivors, end) = collect(&mut replay).unwrap();
        torn += u64::from(end.torn.is_some());
        wal.start(end.last_seqno + 1).unwrap();
        let next = wal.append(&batch(end.last_seqno + 1, 10)).unwrap();
        wal.wait(next.lsn, FlushMode::Commit).unwrap();
        let (_, later, _) = recover(&vfs.crash()).unwrap();
        assert_eq!(later[..survivors.len()], survivors);
        assert_eq!(later.last().unwrap().1, owned(next.seqno, 10));
        assert_eq!(later.len(), survivors.len() + 1);
    }
    assert!(torn > 5, "torn tails were hardly tested: {torn}");
}

#[test]
fn what_a_failed_sync_left_in_doubt_is_made_durable_before_it_is_built_upon() {
    for seed in 0..100 {
        let vfs = SimVfs::new(seed);
        let (wal, _, _) = recover(&vfs).unwrap();
        for i in 1..=10 {
            let got = wal.append(&batch(i, 1000)).unwrap();
            wal.wait(got.lsn, FlushMode::Write).unwrap();
        }
        vfs.fail_io_after(1, FaultKind::Error);
        assert!(wal.sync_all().is_err());
        // The process ends; the system still shows what it failed to write.
        let (wal, survivors, _) = recover(&vfs).unwrap();
        let got = wal.append(&batch(11, 10)).unwrap();
        wal.wait(got.lsn, FlushMode::Commit).unwrap();
        let (_, later, _) = recover(&vfs.crash()).unwrap();
        assert_eq!(later.len(), survivors.len() + 1, "seed {seed}");
    }
}

#[test]
fn a_file_whose_recycling_was_never_durable_is_not_overwritten() {
    for n in 1..200 {
        let vfs = SimVfs::new(n);
        let (wal, _, _) = recover(&vfs).unwrap();
        (1..=40).for_each(|i| _ = wal.append(&batch(i, 1000)).unwrap());
        wal.sync_all().unwrap();
        // The rename to a spare works, the sync of the directory does not, and the process ends.
        vfs.fail_io_after(2, FaultKind::Error);
        assert!(wal.trim(20).is_err());
        let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), small()).unwrap();
        let (_, end) = collect(&mut replay).unwrap();
        vfs.fail_io_after(1 + n % 20, FaultKind::Sticky);
        let _ = wal.start(end.last_seqno + 1);
        vfs.clear_faults();
        let (_, survivors, _) = recover(&vfs.crash()).unwrap();
        assert_eq!(survivors.last().unwrap().0, 40);
    }
}

#[test]
fn threads_that_commit_while_the_power_fails_lose_nothing_acknowledged() {
    for seed in 0..20 {
        let vfs = SimVfs::new(seed);
        let (wal, _, _) = recover(&vfs).unwrap();
        let wal = Arc::new(wal);
        let durable = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut durable = 0;
                        while let Ok(got) = wal.append(&batch(0, 300)) {
                            if wal.wait(got.lsn, FlushMode::Commit).is_err() {
                                break;
                            }
                            durable = got.seqno;
                        }
                        durable
                    })
                })
                .collect();
            scope.spawn(|| {
                while wal.last_seqno() < 50 + seed * 7 {
                    std::thread::yield_now();
                }
                vfs.fail_io_after(1 + seed, FaultKind::Sticky);
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
        });
        vfs.clear_faults();
        let (_, survivors, _) = recover(&vfs.crash()).unwrap();
        let found = common::seqnos(&survivors);
        assert!(found.len() as u64 >= durable, "{durable} was durable, {} are left", found.len());
        assert!(found.iter().copied().eq(1..=found.len() as u64));
    }
}
