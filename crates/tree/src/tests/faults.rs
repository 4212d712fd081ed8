//! Power loss at every I/O, errors at every I/O, a full disk, rotten bits.

use pando_base::{Error, Seqno};
use pando_storage::vfs::FaultKind;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{all_writes, scan, tiny, World, Writes};

/// One step of the trace. Errors are those of the simulated disk.
fn step(world: &mut World, rng: &mut ChaCha8Rng, n: usize, acknowledged: &mut Seqno) -> Result<(), Error> {
    let key = |n: u32| format!("k{n:03}").into_bytes();
    let count = rng.random_range(1..4);
    let writes = (0..count)
        .map(|_| {
            let put = rng.random_ratio(3, 4);
            (key(rng.random_range(0..250)), put.then(|| vec![n as u8; rng.random_range(0..80)]))
        })
        .collect();
    let choice = rng.random_range(0..100);
    world.commit(writes);
    if n % 120 == 119 {
        world.truncate();
    }
    let last = world.last;
    world.tree.seal_if_full(|| last);
    match choice {
        0..30 => {
            world.tree.run_job()?;
        }
        30..36 => {
            let stats = world.tree.checkpoint(|| last, |_| Ok(()), || n as u64)?;
            assert_eq!(stats.durable_seqno, last);
            *acknowledged = stats.durable_seqno;
        }
        36..38 => world.tree.compact_all()?,
        38..41 => {
            let mut part = |count: usize| -> Writes {
                (0..count).map(|_| (key(rng.random_range(0..250)), Some(vec![n as u8; 20]))).collect()
            };
            let (parts, rest) = (vec![part(30), part(10)], part(3));
            world.commit_adopting(parts, rest)?;
        }
        _ => {}
    }
    Ok(())
}

const STEPS: usize = 300;

/// The trace without faults, for the number of its I/Os.
fn ios_of_trace(seed: u64) -> u64 {
    let mut world = World::new(seed, tiny());
    let before = world.vfs.io_count();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut acknowledged = 0;
    for n in 0..STEPS {
        step(&mut world, &mut rng, n, &mut acknowledged).unwrap();
    }
    world.vfs.io_count() - before
}

#[test]
fn after_power_loss_at_any_io_the_tree_is_that_of_its_durable_commit() {
    // What a power loss leaves is drawn by lot: several traces show more of it.
    for seed in 100..108 {
        let ios = ios_of_trace(seed);
        assert!(ios > 200, "{ios}");
        (1..=ios).for_each(|at| lose_power_at(seed, at));
    }
}

fn lose_power_at(seed: u64, at: u64) {
    let mut world = World::new(seed, tiny());
    world.vfs.fail_io_after(at, FaultKind::Sticky);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut acknowledged = 0;
    for n in 0..STEPS {
        if step(&mut world, &mut rng, n, &mut acknowledged).is_err() {
            break;
        }
    }
    let log = std::mem::take(&mut world.log);
    // Without the log the tree is exactly what the superblock promises.
    let sb = world.crash();
    assert!(sb.durable_seqno >= acknowledged, "I/O {at}");
    let expected = replayed(&log, sb.durable_seqno);
    assert_eq!(scan(&world.tree, Seqno::MAX), expected, "I/O {at}");
    world.tree.verify().unwrap();
    // With it, everything is back.
    world.log = log;
    world.crash();
    world.check_scan(world.last);
    world.seal();
    world.run_jobs();
    world.checkpoint().unwrap();
    world.check_all();
    world.check_space();
}

/// The rows that the log says there are up to a commit.
fn replayed(log: &[(Seqno, super::world::LogEntry)], seqno: Seqno) -> super::model::Rows {
    use super::world::LogEntry;
    let mut model = super::model::Model::default();
    for (at, entry) in log.iter().filter(|(at, _)| *at <= seqno) {
        match entry {
            LogEntry::DeleteRange(lo, hi) => model.delete_range(lo, hi.as_deref(), *at),
            LogEntry::Truncate => model = super::model::Model::default(),
            LogEntry::Adopt(_, parts, rest) => {
                for (key, value) in all_writes(parts.iter(), rest) {
                    model.write(&key, *at, value.as_deref());
                }
            }
            LogEntry::Write(writes) => {
                writes.iter().for_each(|(key, value)| model.write(key, *at, value.as_deref()));
            }
        }
    }
    model.rows(seqno)
}

#[test]
fn after_an_error_at_any_io_work_goes_on() {
    let seed = 12;
    let ios = ios_of_trace(seed);
    for at in 1..=ios {
        for kind in [FaultKind::Error, FaultKind::DiskFull] {
            let mut world = World::new(seed, tiny());
            world.vfs.fail_io_after(at, kind);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut acknowledged = 0;
            let mut errors = 0;
            let mut is_read_only = false;
            for n in 0..STEPS {
                match step(&mut world, &mut rng, n, &mut acknowledged) {
                    Ok(()) => {}
                    Err(Error::ReadOnly { .. }) => is_read_only = true,
                    Err(Error::Io { .. } | Error::DiskFull { .. }) => errors += 1,
                    Err(other) => panic!("I/O {at}: {other}"),
                }
            }
            assert!(errors <= 1, "I/O {at}: one fault, {errors} errors");
            world.vfs.clear_faults();
            world.check_scan(world.last);
            world.seal();
            world.run_jobs();
            match world.checkpoint() {
                Ok(_) => world.check_space(),
                // A failed sync: durability is in doubt until the file is opened anew.
                Err(Error::ReadOnly { .. }) => is_read_only = true,
                Err(other) => panic!("I/O {at}: {other}"),
            }
            assert!(!is_read_only || errors == 1, "I/O {at}");
            world.check_all();
            world.crash();
            world.check_all();
            world.checkpoint().unwrap();
            world.check_space();
        }
    }
}

#[test]
fn a_full_disk_is_an_error_until_there_is_space() {
    let mut world = World::new(13, tiny());
    world.vfs.set_capacity(Some(200_000));
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let mut full = 0;
    for n in 0..3000u32 {
        let key = format!("{:06}", rng.random_range(0..100_000));
        world.commit(vec![(key.into_bytes(), Some(vec![n as u8; 100]))]);
        let last = world.last;
        world.tree.seal_if_full(|| last);
        match world.tree.run_job() {
            Ok(_) => {}
            Err(Error::DiskFull { .. }) => full += 1,
            Err(other) => panic!("{other}"),
        }
        if n % 100 == 0 {
            let _ = world.checkpoint();
        }
    }
    assert!(full > 0);
    assert!(matches!(world.checkpoint(), Err(Error::DiskFull { .. })));
    world.check_scan(world.last);
    world.vfs.set_capacity(None);
    world.run_jobs();
    world.checkpoint().unwrap();
    world.check_all();
    world.check_space();
    world.crash();
    world.check_all();
}

#[test]
fn rotten_bits_are_errors_and_never_wrong_answers() {
    let mut world = World::new(14, tiny());
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    let mut acknowledged = 0;
    for n in 0..STEPS {
        step(&mut world, &mut rng, n, &mut acknowledged).unwrap();
    }
    world.checkpoint().unwrap();
    let rows = world.model.rows(world.last);
    let version = world.tree.version.load_full();
    let runs = crate::estimate::distinct_runs(&version);
    let mut extents: Vec<_> = runs.iter().flat_map(|run| run.meta().extents.clone()).collect();
    extents.extend(version.root.place.get().map(|extent| extent.place()));
    let (mut refused, mut harmless) = (0, 0);
    for _ in 0..400 {
        // Blocks are at the start of their extents, and small here.
        let offset = extents[rng.random_range(0..extents.len())].offset + rng.random_range(0..600);
        let bit = rng.random_range(0..8);
        world.vfs.flip_bit(std::path::Path::new(super::world::PATH), offset, bit);
        let vfs = world.vfs.power_cycle_clean();
        match world.reopen_on(vfs.clone()) {
            Err(Error::Corruption { .. }) => {
                refused += 1;
                world.vfs = vfs;
            }
            Err(other) => panic!("{other}"),
            Ok(_) => {
                let mut is_hurt = false;
                for (key, value) in &rows {
                    match world.tree.get(key, world.last) {
                        Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                        Err(Error::Corruption { .. }) => is_hurt = true,
                        Err(other) => panic!("{other}"),
                    }
                }
                let verified = world.tree.verify();
                assert!(!is_hurt || verified.is_err());
                if verified.is_ok() {
                    assert_eq!(scan(&world.tree, world.last), rows);
                    harmless += 1;
                } else {
                    refused += 1;
                }
            }
        }
        // Turned back, the file is whole again.
        world.vfs.flip_bit(std::path::Path::new(super::world::PATH), offset, bit);
    }
    assert!(refused > 20 && harmless > 0, "{refused} {harmless}");
    let vfs = world.vfs.power_cycle_clean();
    world.reopen_on(vfs).unwrap();
    world.check_all();
}

/// To see whether a memtable lies behind the tree's last run, that run's index is read. It is a matter of speed: were it an
/// error, nothing of the table would become durable any more, and the log would never end.
#[test]
fn a_memtable_behind_a_run_that_cannot_be_read_is_written_all_the_same() {
    let config = crate::TreeConfig { memtable_bytes: 64 << 10, ..tiny() };
    let mut world = World::new(16, config);
    (0..200).for_each(|n| world.put(&format!("k{n:04}"), "first"));
    world.checkpoint().unwrap();
    let vfs = world.vfs.power_cycle_clean();
    world.reopen_on(vfs).unwrap();
    let runs = crate::estimate::distinct_runs(&world.tree.version.load_full());
    let last = runs.iter().max_by_key(|run| run.meta().max_key.clone()).unwrap();
    let index = last.meta().index.offset;
    drop(runs.clone());
    world.vfs.flip_bit(std::path::Path::new(super::world::PATH), index + 40, 2);
    // A few before the end, the others behind it.
    (198..600).for_each(|n| world.put(&format!("k{n:04}"), "second"));
    world.checkpoint().unwrap();
    assert!(matches!(world.tree.get(b"k0100", world.last), Err(Error::Corruption { .. })));
    assert_eq!(world.tree.get(b"k0500", world.last).unwrap().as_deref(), Some(&b"second"[..]));
    world.vfs.flip_bit(std::path::Path::new(super::world::PATH), index + 40, 2);
    let vfs = world.vfs.power_cycle_clean();
    world.reopen_on(vfs).unwrap();
    world.check_all();
}

#[test]
fn a_checkpoint_whose_log_sync_fails_names_nothing() {
    let mut world = World::new(15, tiny());
    world.put("a", "1");
    world.checkpoint().unwrap();
    world.put("b", "2");
    let refuse = |_| Err(Error::ReadOnly { reason: "the log".to_owned() });
    assert!(world.tree.checkpoint(|| 2, refuse, || 0).is_err());
    assert_eq!(world.tree.oldest_unwritten(), Some(2));
    let asked = std::cell::Cell::new(0);
    let sync_log = |seqno| {
        asked.set(seqno);
        Ok(())
    };
    world.tree.checkpoint(|| 2, sync_log, || 0).unwrap();
    assert_eq!(asked.get(), 2);
    assert_eq!(world.tree.oldest_unwritten(), None);
    let sb = world.crash();
    assert_eq!(sb.durable_seqno, 2);
}
