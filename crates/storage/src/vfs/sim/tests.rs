use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn file(vfs: &SimVfs, name: &str) -> Arc<dyn File> {
    vfs.open(Path::new(name), OpenMode::CreateOrOpen).unwrap()
}

fn bytes_of(vfs: &SimVfs, name: &str) -> Vec<u8> {
    let file = vfs.open(Path::new(name), OpenMode::Existing).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A disk with a durable file "f" of `len` bytes of 1.
fn with_synced_file(seed: u64, len: usize) -> (Arc<SimVfs>, Arc<dyn File>) {
    let vfs = SimVfs::new(seed);
    let f = file(&vfs, "f");
    f.write_at(&vec![1; len], 0).unwrap();
    f.sync().unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    (vfs, f)
}

#[test]
fn synced_writes_survive_every_crash() {
    for seed in 0..100 {
        let (vfs, f) = with_synced_file(seed, 5000);
        f.write_at(&[2; 100], 4950).unwrap();
        f.sync().unwrap();
        let bytes = bytes_of(&vfs.crash(), "/f");
        assert_eq!(bytes.len(), 5050);
        assert!(bytes[..4950].iter().all(|b| *b == 1) && bytes[4950..].iter().all(|b| *b == 2));
    }
}

#[test]
fn unsynced_writes_are_kept_lost_torn_and_reordered() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let (vfs, f) = with_synced_file(seed, 8192);
        f.write_at(&[2; 1024], 0).unwrap();
        f.write_at(&[3; 1024], 4096).unwrap();
        let bytes = bytes_of(&vfs.crash(), "f");
        for sector in bytes.chunks(512) {
            assert!(sector.iter().all(|b| *b == sector[0]), "a sector is written whole");
        }
        seen.insert([bytes[0], bytes[512], bytes[4096], bytes[4608]]);
    }
    for state in [[1, 1, 1, 1], [2, 2, 3, 3], [1, 1, 3, 3], [2, 2, 1, 1], [1, 2, 1, 1], [2, 1, 1, 1]] {
        assert!(seen.contains(&state), "{state:?} in {seen:?}");
    }
}

#[test]
fn an_unsynced_extension_may_leave_any_length_up_to_it() {
    let mut lengths = BTreeSet::new();
    for seed in 0..200 {
        let (vfs, f) = with_synced_file(seed, 512);
        f.write_at(&[2; 1024], 512).unwrap();
        let bytes = bytes_of(&vfs.crash(), "f");
        assert!(bytes[512..].iter().all(|b| *b == 0 || *b == 2));
        lengths.insert(bytes.len());
    }
    assert_eq!(lengths, BTreeSet::from([512, 1024, 1536]));
}

#[test]
fn names_not_synced_are_kept_or_undone() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let (vfs, _f) = with_synced_file(seed, 1);
        file(&vfs, "g").sync().unwrap();
        vfs.rename(Path::new("f"), Path::new("h")).unwrap();
        let after = vfs.crash();
        let names: Vec<String> =
            after.read_dir(Path::new("/")).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(bytes_of(&after, if names.contains(&"h".to_owned()) { "h" } else { "f" }), [1]);
        seen.insert(names.join(" "));
    }
    let expected = ["f", "f g", "g h", "h"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn names_survive_every_crash_after_their_directories_were_synced() {
    for seed in 0..50 {
        let vfs = SimVfs::new(seed);
        vfs.create_dir_all(Path::new("/db/t")).unwrap();
        vfs.create_dir_all(Path::new("/db/u")).unwrap();
        file(&vfs, "/db/t/a").sync().unwrap();
        file(&vfs, "/db/t/b").sync().unwrap();
        vfs.rename(Path::new("/db/t/a"), Path::new("/db/u/c")).unwrap();
        vfs.remove_file(Path::new("/db/t/b")).unwrap();
        for dir in ["/", "/db", "/db/u"] {
            vfs.sync_dir(Path::new(dir)).unwrap();
        }
        let after = vfs.crash();
        assert!(after.exists(Path::new("/db/u/c")).unwrap());
        assert!(!after.exists(Path::new("/db/t/a")).unwrap(), "a rename is one change");
    }
}

#[test]
fn a_removed_directory_comes_back_in_part_or_not_at_all() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let vfs = SimVfs::new(seed);
        vfs.create_dir_all(Path::new("/t")).unwrap();
        file(&vfs, "/t/a");
        vfs.sync_dir(Path::new("/t")).unwrap();
        vfs.sync_dir(Path::new("/")).unwrap();
        vfs.remove_dir_all(Path::new("/t")).unwrap();
        assert!(!vfs.exists(Path::new("/t")).unwrap());
        let after = vfs.crash();
        seen.insert((after.exists(Path::new("/t")).unwrap(), after.exists(Path::new("/t/a")).unwrap()));
    }
    assert_eq!(seen, BTreeSet::from([(false, false), (true, false), (true, true)]));
}

#[test]
fn handles_from_before_a_crash_fail_and_do_not_touch_the_disk_after_it() {
    let (vfs, f) = with_synced_file(1, 10);
    let after = vfs.crash();
    f.write_at(&[9; 10], 0).unwrap_err();
    f.read_at(&mut [0; 1], 0).unwrap_err();
    f.sync().unwrap_err();
    f.set_len(0).unwrap_err();
    f.len().unwrap_err();
    vfs.open(Path::new("f"), OpenMode::Existing).unwrap_err();
    vfs.remove_file(Path::new("f")).unwrap_err();
    vfs.exists(Path::new("f")).unwrap_err();
    assert_eq!(bytes_of(&after, "f"), [1; 10]);
}

#[test]
fn a_clean_stop_keeps_everything() {
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/a/b")).unwrap();
    file(&vfs, "/a/b/f").write_at(&[5; 3000], 7).unwrap();
    let after = vfs.power_cycle_clean();
    assert_eq!(bytes_of(&after, "/a/b/f").len(), 3007);
}

#[test]
fn one_seed_gives_one_outcome() {
    let run = |seed| {
        let (vfs, f) = with_synced_file(seed, 8192);
        for i in 0..20u8 {
            f.write_at(&[i; 777], u64::from(i) * 400).unwrap();
        }
        bytes_of(&vfs.crash(), "f")
    };
    assert_eq!(run(7), run(7));
    assert!((0..10).any(|seed| run(seed) != run(7)));
}

#[test]
fn the_chosen_io_fails_once_or_for_ever() {
    let (vfs, f) = with_synced_file(1, 10);
    vfs.fail_io_after(2, FaultKind::Error);
    f.sync().unwrap();
    assert!(matches!(f.read_at(&mut [0; 1], 0), Err(Error::Io { op: "read", .. })));
    f.read_at(&mut [0; 1], 0).unwrap();
    vfs.fail_io_after(1, FaultKind::Sticky);
    f.read_at(&mut [0; 1], 0).unwrap_err();
    vfs.sync_dir(Path::new("/")).unwrap_err();
    vfs.clear_faults();
    f.read_at(&mut [0; 1], 0).unwrap();
    assert_eq!(vfs.io_count(), 3 + 1 + 1 + 1 + 2 + 1 + 1 - 1 + 1);
}

#[test]
fn reads_can_be_short_or_flipped_while_the_disk_is_right() {
    let (vfs, f) = with_synced_file(1, 1000);
    vfs.fail_io_after(1, FaultKind::ShortRead);
    f.sync().unwrap();
    let mut buf = [0; 1000];
    assert!(matches!(f.read_exact_at(&mut buf, 0), Err(Error::Corruption { .. })));
    vfs.fail_io_after(1, FaultKind::FlippedRead);
    f.read_exact_at(&mut buf, 0).unwrap();
    assert_ne!(buf, [1; 1000]);
    f.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(buf, [1; 1000]);
}

#[test]
fn rot_stays() {
    let (vfs, f) = with_synced_file(1, 1000);
    vfs.flip_bit(Path::new("f"), 500, 1);
    let mut buf = [0; 1];
    f.read_exact_at(&mut buf, 500).unwrap();
    assert_eq!(buf, [3]);
    drop(f);
    assert_eq!(bytes_of(&vfs.crash(), "f")[500], 3);
}

#[test]
fn a_lost_write_reports_success() {
    let (vfs, f) = with_synced_file(1, 10);
    vfs.fail_io_after(1, FaultKind::LostWrite);
    f.write_at(&[2; 10], 0).unwrap();
    f.sync().unwrap();
    assert_eq!(bytes_of(&vfs, "f"), [1; 10]);
}

#[test]
fn what_a_failed_sync_lost_does_not_come_back_with_the_next() {
    let mut lost = 0;
    for seed in 0..50 {
        let (vfs, f) = with_synced_file(seed, 8192);
        f.write_at(&[2; 4096], 0).unwrap();
        vfs.fail_io_after(1, FaultKind::Error);
        f.sync().unwrap_err();
        assert_eq!(bytes_of(&vfs, "f")[0], 2, "readers see what the cache has");
        f.write_at(&[3; 4096], 4096).unwrap();
        f.sync().unwrap();
        let bytes = bytes_of(&vfs.crash(), "f");
        assert_eq!(bytes[4096], 3);
        lost += usize::from(bytes[0] == 1);
    }
    assert!(lost > 0);
}

#[test]
fn a_full_disk_refuses_new_pages_but_not_old_ones() {
    let (vfs, f) = with_synced_file(1, 8192);
    vfs.set_capacity(Some(16384));
    f.reserve(8192, 4096).unwrap();
    assert_eq!(vfs.used_bytes(), 12288);
    assert!(matches!(f.reserve(12288, 8192), Err(Error::DiskFull { .. })));
    assert!(matches!(f.write_at(&[1; 8192], 12288), Err(Error::DiskFull { .. })));
    f.write_at(&[2; 12288], 0).unwrap();
    f.punch_hole(0, 8192).unwrap();
    f.reserve(12288, 8192).unwrap();
    assert_eq!(f.allocated_bytes().unwrap(), 12288);
    vfs.fail_io_after(1, FaultKind::DiskFull);
    assert!(matches!(f.write_at(&[1; 1], 8192), Err(Error::DiskFull { .. })));
    // A removed file takes space until its last handle is gone.
    vfs.remove_file(Path::new("f")).unwrap();
    assert_eq!(vfs.used_bytes(), 12288);
    drop(f);
    assert_eq!(vfs.used_bytes(), 0);
}

#[test]
fn impossible_operations_on_names_are_refused() {
    let (vfs, _f) = with_synced_file(1, 1);
    vfs.create_dir_all(Path::new("d/e")).unwrap();
    let open = |path, mode| vfs.open(Path::new(path), mode).map(|_| ());
    assert!(matches!(open("f", OpenMode::Create), Err(Error::Exists { .. })));
    assert!(matches!(open("g", OpenMode::Existing), Err(Error::NotFound { .. })));
    assert!(matches!(open("x/g", OpenMode::Create), Err(Error::NotFound { .. })));
    open("d", OpenMode::Existing).unwrap_err();
    open("f/g", OpenMode::Create).unwrap_err();
    vfs.create_dir_all(Path::new("f/g")).unwrap_err();
    vfs.rename(Path::new("f"), Path::new("d")).unwrap_err();
    vfs.rename(Path::new("d"), Path::new("d/e/d")).unwrap_err();
    vfs.remove_file(Path::new("d")).unwrap_err();
    assert!(matches!(vfs.remove_dir_all(Path::new("x")), Err(Error::NotFound { .. })));
    vfs.rename(Path::new("d"), Path::new("c")).unwrap();
    assert!(vfs.exists(Path::new("c/e")).unwrap());
}

#[test]
fn the_clock_goes_by_itself_and_by_hand() {
    let vfs = SimVfs::new(1);
    let start = vfs.now_micros();
    vfs.advance_micros(1000);
    assert!(vfs.now_micros() > start + 1000);
    assert!(vfs.crash().now_micros() > start + 1000);
}

#[derive(Clone, Debug)]
enum Op {
    Write(usize, usize, u8),
    SetLen(usize),
    Punch(usize, usize),
    Reserve(usize, usize),
    Sync,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..20_000usize, 1..9000usize, 1..255u8).prop_map(|(o, l, b)| Op::Write(o, l, b)),
        1 => (0..20_000usize).prop_map(Op::SetLen),
        1 => (0..20_000usize, 1..9000usize).prop_map(|(o, l)| Op::Punch(o, l)),
        1 => (0..20_000usize, 1..9000usize).prop_map(|(o, l)| Op::Reserve(o, l)),
        1 => Just(Op::Sync),
    ]
}

proptest! {
    #[test]
    fn a_file_agrees_with_bytes_in_memory_and_a_crash_after_a_sync_changes_nothing(
        ops in proptest::collection::vec(op(), 1..40),
    ) {
        let vfs = SimVfs::new(1);
        let f = file(&vfs, "f");
        vfs.sync_dir(Path::new("")).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for op in ops {
            match op {
                Op::Write(offset, len, byte) => {
                    model.resize(model.len().max(offset + len), 0);
                    model[offset..offset + len].fill(byte);
                    f.write_at(&vec![byte; len], offset as u64).unwrap();
                }
                Op::SetLen(len) => {
                    model.resize(len, 0);
                    f.set_len(len as u64).unwrap();
                }
                Op::Punch(offset, len) => {
                    let end = (offset + len).min(model.len());
                    if offset < end {
                        model[offset..end].fill(0);
                    }
                    f.punch_hole(offset as u64, len as u64).unwrap();
                }
                Op::Reserve(offset, len) => {
                    model.resize(model.len().max(offset + len), 0);
                    f.reserve(offset as u64, len as u64).unwrap();
                }
                Op::Sync => f.sync().unwrap(),
            }
            prop_assert!(bytes_of(&vfs, "f") == model);
        }
        f.sync().unwrap();
        prop_assert!(bytes_of(&vfs.crash(), "f") == model);
    }
}

#[test]
fn a_copy_is_what_a_power_loss_leaves_and_the_disk_goes_on_as_without_it() {
    let run = |copies: &[u64]| {
        let (vfs, f) = with_synced_file(3, 8192);
        vfs.copies_before_ios(copies);
        for i in 1..=9u8 {
            f.write_at(&[i + 1; 512], 512 * u64::from(i)).unwrap();
        }
        (vfs.take_copies(), bytes_of(&vfs.crash(), "f"))
    };
    let (none, without) = run(&[]);
    let (copies, with) = run(&[1, 5]);
    assert!(none.is_empty() && copies.len() == 2);
    assert_eq!(with, without, "taking copies changes what happens to the disk");
    let lost = |bytes: &[u8]| (1..=9).map(|i| bytes[512 * i] != i as u8 + 1).collect::<Vec<_>>();
    assert_eq!(lost(&bytes_of(&copies[0], "f")), [true; 9], "nothing was written before the first write");
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        let (vfs, f) = with_synced_file(3, 8192);
        for i in 1..=9u8 {
            f.write_at(&[i + 1; 512], 512 * u64::from(i)).unwrap();
        }
        (0..5).for_each(|_| _ = seen.insert(lost(&bytes_of(&vfs.copy_after_power_loss(), "f"))));
        assert_eq!(lost(&bytes_of(&vfs.copy_after_clean_stop(), "f")), [false; 9]);
        f.read_at(&mut [0; 1], 0).unwrap();
    }
    assert!(seen.len() > 3, "{seen:?}");
}

#[test]
fn a_killed_process_leaves_what_it_wrote_and_writes_no_more() {
    let (vfs, file) = with_synced_file(3, 4096);
    file.write_at(&[7; 512], 0).unwrap();
    let vfs2 = vfs.kill();
    assert!(file.write_at(&[8; 512], 0).is_err());
    assert_eq!(bytes_of(&vfs2, "f")[..512], [7; 512]);
    // Not synced, so that a power loss may still take it.
    let lost = (0..40).any(|_| bytes_of(&vfs2.copy_after_power_loss(), "f")[0] != 7);
    assert!(lost);
    assert_eq!(vfs2.events().kills, 1);
    assert!(vfs2.events().writes_lost + vfs2.events().writes_torn > 0);
}

#[test]
fn a_thread_is_stopped_before_each_of_its_writes() {
    let (_, file) = with_synced_file(3, 4096);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writes = std::rc::Rc::new(std::cell::Cell::new(0));
            let count = writes.clone();
            super::stop_before_writes(Box::new(move |_, _| count.set(count.get() + 1)));
            file.write_at(&[7; 512], 0).unwrap();
            file.sync().unwrap();
            file.write_at(&[7; 512], 0).unwrap();
            assert_eq!(writes.get(), 2);
        });
    });
    file.write_at(&[7; 512], 0).unwrap();
}
