//! Tree files on the simulated disk: allocation, superblocks, reclaim, and what crashes, full disks and
//! rot do to them.

#![expect(clippy::unwrap_used, reason = "helpers of tests say what they expect by unwrapping")]

use pando_base::{DictId, Error};
use pando_storage::vfs::{FaultKind, OpenMode, RealVfs, SimVfs, Vfs};
use pando_storage::{Extent, Place, Superblock, TreeFile};
use std::path::Path;
use std::sync::Arc;

const PAGE: u64 = 4096;
const DATA: u64 = 4 * PAGE;
const MIB: u64 = 1 << 20;
const DICT: DictId = DictId(7);

fn path() -> &'static Path {
    Path::new("/main.pando")
}

fn dynamic(vfs: &Arc<SimVfs>) -> Arc<dyn Vfs> {
    vfs.clone()
}

fn create(seed: u64) -> (Arc<SimVfs>, Arc<TreeFile>) {
    let vfs = SimVfs::new(seed);
    let file = TreeFile::create(&dynamic(&vfs), path(), DICT).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    (vfs, file)
}

fn open(vfs: &Arc<SimVfs>) -> Result<(Arc<TreeFile>, Superblock), Error> {
    TreeFile::open(&dynamic(vfs), path(), DICT)
}

/// A checkpoint at `seqno` whose root is the given extent.
fn checkpoint(file: &TreeFile, seqno: u64, root: Option<&Extent>) -> Result<(), Error> {
    let root = root.map(Extent::place);
    file.write_superblock(&Superblock { durable_seqno: seqno, root, ..Superblock::default() })
}

#[test]
fn a_new_file_is_small_and_opens_empty() {
    let (vfs, file) = create(1);
    assert_eq!((file.file_bytes(), file.used_bytes(), file.free_bytes()), (DATA, 0, 0));
    assert_eq!(file.dict(), DICT);
    let (again, sb) = open(&vfs).unwrap();
    assert_eq!((sb.dict, sb.root, sb.durable_seqno), (DICT, None, 0));
    assert_ne!(again.instance(), file.instance());
    assert!(matches!(TreeFile::create(&dynamic(&vfs), path(), DICT), Err(Error::Exists { .. })));
}

#[test]
fn creating_on_a_full_or_failing_disk_leaves_no_file() {
    for (n, kind) in (2..=5).flat_map(|n| [(n, FaultKind::Error), (n, FaultKind::DiskFull)]) {
        let vfs = SimVfs::new(n);
        vfs.fail_io_after(n, kind);
        let result = TreeFile::create(&dynamic(&vfs), path(), DICT);
        assert_eq!(result.is_ok(), vfs.exists(path()).unwrap());
    }
}

#[test]
fn extents_are_whole_pages_and_come_back_when_dropped() {
    let (_vfs, file) = create(1);
    let a = file.allocate(1).unwrap();
    let b = file.allocate(PAGE + 1).unwrap();
    assert_eq!(a.place(), Place { offset: DATA, len: PAGE });
    assert_eq!(b.place(), Place { offset: DATA + PAGE, len: 2 * PAGE });
    assert_eq!(file.used_bytes(), 3 * PAGE);
    let total = file.file_bytes() - DATA;
    drop(a);
    assert_eq!(file.used_bytes(), 2 * PAGE);
    assert_eq!(file.allocate(10).unwrap().place().offset, DATA, "the hole fits best");
    drop(b);
    assert_eq!((file.used_bytes(), file.free_bytes()), (0, total));
}

#[test]
fn a_shrunk_extent_gives_its_tail_back() {
    let (_vfs, file) = create(1);
    let mut a = file.allocate(MIB).unwrap();
    a.shrink_to(5000);
    assert_eq!(a.place().len, 2 * PAGE);
    assert_eq!(file.used_bytes(), 2 * PAGE);
    a.shrink_to(0);
    assert_eq!(file.used_bytes(), 0);
    drop(a);
    assert_eq!(file.used_bytes(), 0);
}

#[test]
fn a_file_grows_in_steps_and_never_much_beyond_its_content() {
    let (vfs, file) = create(1);
    let mut extents = Vec::new();
    let before = vfs.io_count();
    for _ in 0..1000 {
        extents.push(file.allocate(16 << 10).unwrap());
        let used = DATA + file.used_bytes();
        assert!(file.file_bytes() <= used + (64 << 10).max(used / 7), "{} of {used}", file.file_bytes());
    }
    assert!(vfs.io_count() - before < 60, "{} growths", vfs.io_count() - before);
}

#[test]
fn what_is_written_is_read_back_and_only_places_within_the_file_are_read() {
    let (_vfs, file) = create(1);
    let a = file.allocate(3 * PAGE).unwrap();
    let at = a.place().offset + 100;
    file.write(at, b"hello").unwrap();
    assert_eq!(file.read(Place { offset: at, len: 5 }).unwrap(), b"hello");
    file.set_path(Path::new("/renamed.pando"));
    for (offset, len) in [(0, 100), (file.file_bytes(), 1), (DATA, u64::MAX), (u64::MAX, 1)] {
        let text = match file.read(Place { offset, len }) {
            Err(error @ Error::Corruption { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(text.contains("/renamed.pando") && text.contains(&format!("found {offset}+{len}")), "{text}");
    }
}

#[test]
fn a_full_disk_is_told_by_allocate_and_space_made_later_is_used() {
    let (vfs, file) = create(1);
    let a = file.allocate(PAGE).unwrap();
    vfs.set_capacity(Some(vfs.used_bytes() + 8 * PAGE));
    // The step does not fit, the need does.
    let free = file.free_bytes();
    let b = file.allocate(free + 8 * PAGE).unwrap();
    assert_eq!(file.free_bytes(), 0);
    assert!(matches!(file.allocate(PAGE), Err(Error::DiskFull { .. })));
    assert!(matches!(file.allocate(u64::MAX), Err(Error::DiskFull { .. })));
    assert_eq!(file.used_bytes(), a.place().len + b.place().len, "a refusal changes nothing");
    drop(a);
    assert_eq!(file.allocate(PAGE).unwrap().place().offset, DATA);
    vfs.set_capacity(None);
    file.allocate(MIB).unwrap();
}

#[test]
fn the_newest_superblock_is_found_after_any_crash() {
    for seed in 0..200 {
        let (vfs, file) = create(seed);
        let root = file.allocate(PAGE).unwrap();
        file.write(root.place().offset, &[seed as u8; 4096]).unwrap();
        file.sync().unwrap();
        for seqno in 1..=seed % 4 {
            checkpoint(&file, seqno, Some(&root)).unwrap();
        }
        let (after, sb) = open(&vfs.crash()).unwrap();
        assert_eq!(sb.durable_seqno, seed % 4, "seed {seed}");
        if let Some(place) = sb.root {
            after.adopt(place).unwrap();
            assert_eq!(after.read(place).unwrap(), [seed as u8; 4096]);
        }
    }
}

#[test]
fn a_superblock_write_interrupted_anywhere_leaves_the_old_or_the_new_one() {
    let mut found = [0; 2];
    for seed in 0..400 {
        let (vfs, file) = create(seed);
        checkpoint(&file, 1, None).unwrap();
        if seed % 2 == 0 {
            checkpoint(&file, 1, None).unwrap();
        }
        // The write, the sync, or the copy after it.
        vfs.fail_io_after(1 + seed % 3, FaultKind::Sticky);
        let done = checkpoint(&file, 2, None).is_ok();
        let (_, sb) = open(&vfs.crash()).unwrap();
        assert!(sb.durable_seqno == 2 || sb.durable_seqno == 1 && !done, "seed {seed}: {sb:?}");
        found[sb.durable_seqno as usize - 1] += 1;
    }
    assert!(found[0] > 20 && found[1] > 20, "{found:?}");
}

#[test]
fn a_superblock_torn_at_any_byte_is_passed_over_for_the_one_before() {
    let (vfs, file) = create(1);
    let raw = vfs.open(path(), OpenMode::Existing).unwrap();
    let slots = || {
        let mut pages = vec![0; 2 * PAGE as usize];
        raw.read_exact_at(&mut pages, 0).unwrap();
        pages
    };
    checkpoint(&file, 1, None).unwrap();
    let old = slots();
    checkpoint(&file, 2, None).unwrap();
    let new = slots();
    assert_eq!(open(&vfs).unwrap().1.durable_seqno, 2);
    for slot in [0..4096, 4096..8192] {
        let range = slot.clone();
        let check = |torn: &[u8]| {
            let mut pages = old.clone();
            pages[range.clone()].copy_from_slice(torn);
            raw.write_at(&pages, 0).unwrap();
            let expected = if torn == &new[range.clone()] { 2 } else { 1 };
            assert_eq!(open(&vfs).unwrap().1.durable_seqno, expected);
        };
        let (old, new) = (&old[slot.clone()], &new[slot.clone()]);
        for cut in (0..200).chain((512..=4096).step_by(512)) {
            check(&[&new[..cut], &old[cut..]].concat());
            check(&[&old[..cut], &new[cut..]].concat());
            check(&[&new[..cut], &vec![0; 4096 - cut]].concat());
            check(&[&vec![0xff; cut], &new[cut..]].concat());
        }
    }
}

#[test]
fn rot_in_either_superblock_of_an_idle_file_is_survived_without_going_back() {
    for slot in [0, PAGE] {
        for checkpoints in 1..=3 {
            let (vfs, file) = create(1);
            (1..=checkpoints).for_each(|seqno| checkpoint(&file, seqno, None).unwrap());
            file.sync().unwrap();
            vfs.flip_bit(path(), slot + 50, 3);
            let (_, sb) = open(&vfs).unwrap();
            assert_eq!(sb.durable_seqno, checkpoints);
        }
    }
}

#[test]
fn a_copy_that_a_crash_has_lost_is_made_again_before_the_file_lies_idle() {
    // Symptom: old rows, without an error. The newest superblock stood in one slot only, and rotted there.
    let mut lost = 0;
    for seed in 0..60 {
        let (vfs, file) = create(seed);
        (1..=3).for_each(|seqno| checkpoint(&file, seqno, None).unwrap());
        let vfs = vfs.crash();
        let (file, sb) = open(&vfs).unwrap();
        assert_eq!(sb.durable_seqno, 3);
        lost += u32::from(!file.is_doubled());
        file.secure().unwrap();
        assert!(file.is_doubled());
        let vfs = vfs.power_cycle_clean();
        for slot in [0, PAGE] {
            let rotten = vfs.copy_after_clean_stop();
            rotten.flip_bit(path(), slot + 40, 3);
            assert_eq!(open(&rotten).unwrap().1.durable_seqno, 3, "seed {seed}, slot at {slot}");
        }
    }
    assert!(lost > 0, "the test is to meet a lost copy");
}

/// Symptom: damaged blocks after a power cut. A process was killed when it had synced a superblock in one slot and
/// not its copy in the other. The next one took either slot for durable, and wrote its own superblock over the
/// one that was.
#[test]
fn after_a_kill_a_checkpoint_does_not_overwrite_the_only_durable_superblock() {
    for (seed, checkpoints) in (0..60).flat_map(|seed| [(seed, 2), (seed, 3)]) {
        let (vfs, file) = create(seed);
        (1..=checkpoints).for_each(|seqno| checkpoint(&file, seqno, None).unwrap());
        // The process ends: what it has written stays readable, and no more durable than it was.
        drop(file);
        let (file, sb) = open(&vfs).unwrap();
        assert_eq!(sb.durable_seqno, checkpoints);
        vfs.copies_before_ios(&(1..12).collect::<Vec<_>>());
        checkpoint(&file, checkpoints + 1, None).unwrap();
        let copies = vfs.take_copies();
        assert!(copies.len() > 3);
        for copy in copies {
            let (_, after) = open(&copy).unwrap();
            assert!(after.durable_seqno >= checkpoints, "seed {seed}: back at {}", after.durable_seqno);
        }
    }
}

/// Symptom: damaged blocks after a power cut. A process was killed before it had synced its superblock; the next
/// one reused what only the checkpoint before needed, which the power cut brought back.
#[test]
fn after_a_kill_space_is_not_reused_before_the_superblock_is_durable() {
    let mut reused = 0;
    for seed in 0..60 {
        let (vfs, file) = create(seed);
        let old = file.allocate(PAGE).unwrap();
        file.write(old.place().offset, &[3; 4096]).unwrap();
        file.sync().unwrap();
        checkpoint(&file, 1, Some(&old)).unwrap();
        // The superblock is written, and its sync fails.
        vfs.fail_io_after(2, FaultKind::Error);
        checkpoint(&file, 2, None).unwrap_err();
        vfs.clear_faults();
        let place = old.place();
        drop((old, file));
        let (file, sb) = open(&vfs).unwrap();
        if sb.durable_seqno != 2 {
            continue;
        }
        file.finish_open();
        let new = file.allocate(PAGE).unwrap();
        assert_ne!(new.place(), place, "seed {seed}");
        file.write(new.place().offset, &[7; 4096]).unwrap();
        file.secure().unwrap();
        // The whole of what was free when the file was opened.
        reused += u32::from(file.allocate(16 * PAGE).unwrap().place().offset == place.offset);
        let crashed = vfs.crash();
        let (file, sb) = open(&crashed).unwrap();
        if sb.durable_seqno == 1 {
            let found = file.read(place).unwrap();
            assert!(found.iter().all(|byte| *byte == 3), "seed {seed}: overwritten");
        }
    }
    assert!(reused > 10, "the space is to be reused: {reused}");
}

#[test]
fn rot_in_both_superblocks_and_foreign_files_are_corruption_by_name() {
    let (vfs, _file) = create(1);
    let text = TreeFile::open(&dynamic(&vfs), path(), DictId(8)).unwrap_err().to_string();
    assert!(text.contains("/main.pando") && text.contains("owner: expected 8, found 7"), "{text}");
    vfs.flip_bit(path(), 50, 3);
    vfs.flip_bit(path(), PAGE + 60, 3);
    match open(&vfs) {
        Err(error @ Error::Corruption { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains("slot 0") && text.contains("slot 1") && text.contains("checksum"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bad_read_does_not_bring_an_older_checkpoint_back() {
    for seed in 0..20 {
        let (vfs, file) = create(seed);
        // Only one slot has the newest: the copy is lost.
        vfs.fail_io_after(3, FaultKind::LostWrite);
        checkpoint(&file, 1, None).unwrap();
        vfs.clear_faults();
        for kind in [FaultKind::FlippedRead, FaultKind::ShortRead] {
            for n in 2..=3 {
                vfs.fail_io_after(n, kind);
                assert_eq!(open(&vfs).unwrap().1.durable_seqno, 1);
                vfs.clear_faults();
            }
        }
        vfs.fail_io_after(3, FaultKind::Error);
        assert!(matches!(open(&vfs), Err(Error::Io { .. })));
    }
}

#[test]
fn a_file_that_was_cut_is_corruption() {
    let (vfs, file) = create(1);
    let root = file.allocate(10 * PAGE).unwrap();
    file.sync().unwrap();
    checkpoint(&file, 1, Some(&root)).unwrap();
    let raw = vfs.open(path(), OpenMode::Existing).unwrap();
    let end = root.place().end();
    raw.set_len(end - 1).unwrap();
    let text = open(&vfs).unwrap_err().to_string();
    assert!(text.contains(&format!("expected at least {end} bytes, found {}", end - 1)), "{text}");
    raw.set_len(5000).unwrap();
    assert!(matches!(open(&vfs), Err(Error::Corruption { .. })));
    raw.set_len(0).unwrap();
    assert!(matches!(open(&vfs), Err(Error::Corruption { .. })));
}

#[test]
fn opening_adopts_what_the_tree_refers_to_and_frees_the_rest() {
    let (vfs, file) = create(1);
    let extents: Vec<Extent> = (0..4).map(|_| file.allocate(2 * PAGE).unwrap()).collect();
    file.sync().unwrap();
    checkpoint(&file, 1, Some(&extents[3])).unwrap();
    let (file, sb) = open(&vfs).unwrap();
    let end = file.file_bytes();
    let root = file.adopt(sb.root.unwrap()).unwrap();
    let one = file.adopt(extents[1].place()).unwrap();
    let inside = extents[1].place().offset;
    for (offset, len) in [
        (inside + PAGE, 1),
        (DATA, end),
        (DATA + 1, PAGE),
        (0, PAGE),
        (end, PAGE),
        (DATA, 0),
        (PAGE * 9, u64::MAX),
    ] {
        let result = file.adopt(Place { offset, len });
        assert!(matches!(result, Err(Error::Corruption { .. })), "{offset}+{len}: {result:?}");
    }
    file.finish_open();
    file.secure().unwrap();
    assert_eq!(file.used_bytes(), 4 * PAGE);
    assert_eq!(file.allocate(2 * PAGE).unwrap().place().offset, DATA);
    drop((root, one));
    assert_eq!(file.used_bytes(), 0);
}

/// Files of indexes took twice what was in them after a load: no hole was as large as a MiB.
#[test]
fn reclaim_punches_the_holes_between_the_runs_of_a_load() {
    let (_, file) = create(1);
    let extents: Vec<_> = (0..40).map(|_| file.allocate(MIB / 4).unwrap()).collect();
    file.sync().unwrap();
    let root = extents.last().map(|last| last.place());
    let kept: Vec<_> =
        extents.into_iter().enumerate().filter(|(at, _)| at % 2 == 1).map(|(_, one)| one).collect();
    checkpoint(&file, 1, kept.last()).unwrap();
    checkpoint(&file, 2, kept.last()).unwrap();
    file.reclaim().unwrap();
    assert_eq!(file.file_bytes(), root.unwrap().end());
    assert_eq!(file.allocated_bytes().unwrap(), DATA + file.used_bytes());
}

#[test]
fn reclaim_cuts_the_free_tail_and_punches_large_holes() {
    let (vfs, file) = create(1);
    let low = file.allocate(8 * MIB).unwrap();
    let middle = file.allocate(PAGE).unwrap();
    let high = file.allocate(8 * MIB).unwrap();
    file.sync().unwrap();
    checkpoint(&file, 1, Some(&high)).unwrap();
    checkpoint(&file, 2, Some(&middle)).unwrap();
    drop((low, high));
    file.reclaim().unwrap();
    assert_eq!(file.file_bytes(), middle.place().end());
    assert!(file.allocated_bytes().unwrap() <= DATA + MIB);
    let ios = vfs.io_count();
    file.reclaim().unwrap();
    assert_eq!(vfs.io_count(), ios, "what is punched is not punched again");
    // The file that a crash leaves agrees with its superblock.
    for _ in 0..2 {
        assert_eq!(open(&vfs).unwrap().1.durable_seqno, 2);
    }
    let (after, sb) = open(&vfs.crash()).unwrap();
    assert_eq!(sb.root, Some(middle.place()));
    assert!(after.adopt(middle.place()).is_ok());
}

#[test]
fn a_file_is_not_cut_below_what_its_superblock_says() {
    let (vfs, file) = create(1);
    let root = file.allocate(PAGE).unwrap();
    for in_flight_bytes in [100 * PAGE, 10 * MIB] {
        // Being written while the checkpoint is taken, and given up after it.
        let in_flight = file.allocate(in_flight_bytes).unwrap();
        file.sync().unwrap();
        checkpoint(&file, 1, Some(&root)).unwrap();
        drop(in_flight);
        file.reclaim().unwrap();
        let sb = open(&vfs).unwrap().1;
        assert_eq!((sb.durable_seqno, sb.root), (1, Some(root.place())));
    }
    assert_eq!(file.file_bytes(), root.place().end(), "much space is worth another superblock");
}

#[test]
fn a_hole_that_is_used_again_has_space_reserved_first() {
    let (vfs, file) = create(1);
    let low = file.allocate(4 * MIB).unwrap();
    let _high = file.allocate(PAGE).unwrap();
    drop(low);
    file.reclaim().unwrap();
    let used = vfs.used_bytes();
    vfs.set_capacity(Some(used + MIB));
    assert!(matches!(file.allocate(2 * MIB), Err(Error::DiskFull { .. })));
    assert_eq!(file.used_bytes(), PAGE);
    let half = file.allocate(MIB).unwrap();
    assert_eq!(vfs.used_bytes(), used + MIB);
    file.write(half.place().offset, &vec![1; MIB as usize]).unwrap();
}

#[test]
fn while_a_superblock_is_in_doubt_small_runs_cost_no_more_than_they_need() {
    // Symptom: after a checkpoint that failed, a table of some rows filled the disk: each run kept the megabyte
    // that its writer had begun with.
    let (vfs, file) = create(1);
    checkpoint(&file, 1, None).unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    checkpoint(&file, 2, None).unwrap_err();
    let runs: Vec<Extent> = (0..50)
        .map(|_| {
            let mut extent = file.allocate(MIB).unwrap();
            extent.shrink_to(PAGE);
            extent
        })
        .collect();
    assert!(file.file_bytes() < 3 * MIB, "{}", file.file_bytes());
    // What was whole waits for the end of the doubt: nobody uses it, and nobody gets it.
    let places: Vec<Place> = runs.iter().map(Extent::place).collect();
    drop(runs);
    assert_eq!(file.used_bytes(), 0);
    let others: Vec<Extent> = (0..50).map(|_| file.allocate(PAGE).unwrap()).collect();
    assert!(others.iter().all(|extent| !places.contains(&extent.place())));
    drop(others);
    let end = file.file_bytes();
    checkpoint(&file, 2, None).unwrap();
    let whole = file.allocate(end - DATA).unwrap();
    assert_eq!(file.file_bytes(), end, "all of it is free again");
    drop(whole);
}

#[test]
fn after_a_failed_superblock_write_neither_checkpoint_loses_a_page() {
    let mut new_found = 0;
    for seed in 0..300 {
        let (vfs, file) = create(seed);
        let old = file.allocate(PAGE).unwrap();
        file.write(old.place().offset, &[1; 4096]).unwrap();
        file.sync().unwrap();
        checkpoint(&file, 1, Some(&old)).unwrap();
        let new = file.allocate(PAGE).unwrap();
        file.write(new.place().offset, &[2; 4096]).unwrap();
        file.sync().unwrap();
        vfs.fail_io_after(1, FaultKind::Error);
        checkpoint(&file, 2, Some(&new)).unwrap_err();
        // The tree gives the failed checkpoint up; its page must not be overwritten.
        let place = new.place();
        drop(new);
        let other = file.allocate(PAGE).unwrap();
        assert_ne!(other.place(), place);
        file.write(other.place().offset, &[3; 4096]).unwrap();
        file.reclaim().unwrap();
        if seed % 2 == 0 {
            let (after, sb) = open(&vfs.crash()).unwrap();
            assert_eq!(after.read(sb.root.unwrap()).unwrap(), [sb.durable_seqno as u8; 4096]);
            new_found += usize::from(sb.durable_seqno == 2);
        } else {
            checkpoint(&file, 1, Some(&old)).unwrap();
            assert_eq!(file.allocate(PAGE).unwrap().place(), place, "free after the doubt is over");
        }
    }
    assert!(new_found > 0);
}

/// Checkpoints of growing and shrinking trees, each one extent full of its seqno. Tells the last that
/// was acknowledged when the disk failed.
fn rewrite_until_the_disk_fails(file: &Arc<TreeFile>) -> u64 {
    let mut acknowledged = 0;
    let mut durable = None;
    for (seqno, pages) in (1..).zip([1, 600, 300, 20, 700, 2, 2]) {
        let round = || -> Result<Extent, Error> {
            let mut root = file.allocate((pages + 3) * PAGE)?;
            file.write(root.place().offset, &vec![seqno as u8; (pages * PAGE) as usize])?;
            root.shrink_to(pages * PAGE);
            file.sync()?;
            checkpoint(file, seqno, Some(&root))?;
            Ok(root)
        };
        let Ok(root) = round() else { break };
        acknowledged = seqno;
        durable = Some(root);
        if file.reclaim().is_err() {
            break;
        }
    }
    // The extents of a durable checkpoint are held until the machine stops.
    std::mem::forget(durable);
    acknowledged
}

#[test]
fn power_lost_at_any_io_leaves_the_last_acknowledged_checkpoint_or_the_next_whole() {
    let mut ios = u64::MAX;
    let mut n = 1;
    while n <= ios {
        for seed in 0..6 {
            let (vfs, file) = create(n * 1000 + seed);
            let before = vfs.io_count();
            vfs.fail_io_after(n, FaultKind::Sticky);
            let acknowledged = rewrite_until_the_disk_fails(&file);
            if acknowledged == 7 {
                ios = vfs.io_count() - before;
            }
            let (after, sb) = open(&vfs.crash()).unwrap();
            let seqno = sb.durable_seqno;
            assert!(seqno == acknowledged || seqno == acknowledged + 1, "I/O {n}, seed {seed}: {seqno}");
            if let Some(place) = sb.root {
                after.adopt(place).unwrap();
                assert!(after.read(place).unwrap().iter().all(|b| u64::from(*b) == seqno));
            }
        }
        n += 1;
    }
    assert!(ios > 30 && ios < 200, "{ios}");
}

#[test]
fn after_a_failed_sync_no_checkpoint_is_taken_until_the_file_is_opened_anew() {
    let (vfs, file) = create(1);
    let root = file.allocate(PAGE).unwrap();
    file.write(root.place().offset, &[1; 4096]).unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    assert!(matches!(file.sync(), Err(Error::Io { op: "sync", .. })));
    let ios = vfs.io_count();
    for result in [file.sync(), checkpoint(&file, 1, Some(&root))] {
        assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
    }
    assert_eq!(vfs.io_count(), ios);
    assert_eq!(file.read(root.place()).unwrap(), [1; 4096], "reading goes on");
    let (again, sb) = open(&vfs).unwrap();
    assert_eq!(sb.durable_seqno, 0);
    again.finish_open();
    checkpoint(&again, 3, None).unwrap();
}

#[test]
fn threads_never_share_a_page() {
    let dir = tempfile::tempdir().unwrap();
    for direct_io in [false, true] {
        let vfs: Arc<dyn Vfs> = RealVfs::new(direct_io);
        let file = TreeFile::create(&vfs, &dir.path().join(format!("{direct_io}")), DICT).unwrap();
        std::thread::scope(|scope| {
            for thread in 1..=4u8 {
                let file = &file;
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..150u64 {
                        let len = (round * 7919 * u64::from(thread)) % 60_000 + 1;
                        let extent = file.allocate(len).unwrap();
                        file.write(extent.place().offset, &vec![thread; len as usize]).unwrap();
                        held.push((extent, len));
                        if round % 10 == 9 {
                            for (extent, len) in held.drain(..held.len() / 2) {
                                let place = Place { len, ..extent.place() };
                                assert!(file.read(place).unwrap().iter().all(|b| *b == thread));
                            }
                            file.reclaim().unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(file.used_bytes(), 0);
        file.sync().unwrap();
        checkpoint(&file, 1, None).unwrap();
        file.reclaim().unwrap();
        assert_eq!(file.file_bytes(), DATA);
        let (_, sb) = TreeFile::open(&vfs, &file.path(), DICT).unwrap();
        assert_eq!((sb.durable_seqno, sb.file_bytes), (1, DATA));
    }
}
