//! Deleted ranges, one at a time; the random histories have them, too.

use super::world::{scan, tiny, World};

fn filled() -> World {
    let mut world = World::new(1, tiny());
    for n in 0..2000 {
        world.put(&format!("k{n:05}"), &format!("value {n}"));
        let last = world.last;
        world.tree.seal_if_full(|| last);
    }
    world.seal();
    world.run_jobs();
    world
}

#[test]
fn a_snapshot_taken_before_sees_what_a_later_one_does_not() {
    let mut world = filled();
    world.snapshots.push(world.horizon.take());
    assert!(world.delete_range(b"k00100", Some(b"k01900")));
    world.put("k00500", "new");
    world.check_all();
    assert_eq!(scan(&world.tree, world.last).len(), 201);
    world.seal();
    world.run_jobs();
    world.check_all();
    // The snapshot keeps it.
    assert_eq!(world.tree.deleted_ranges(), 1);
    world.release_all();
    world.run_jobs();
    world.check_all();
    assert_eq!(world.tree.deleted_ranges(), 0);
}

#[test]
fn leaves_that_are_hidden_go_without_being_read() {
    let mut world = filled();
    let leaves = world.tree.stats().leaves;
    assert!(leaves > 10, "{leaves}");
    assert!(world.delete_range(b"k00001", Some(b"k01999")));
    world.seal();
    let before = world.metrics.flush_read_bytes.get();
    world.run_jobs();
    let read = world.metrics.flush_read_bytes.get() - before;
    assert!(read < 4 * world.config.leaf_raw_bytes, "{read} bytes read");
    assert_eq!(world.tree.deleted_ranges(), 0);
    assert!(world.tree.stats().leaves < leaves / 2, "{}", world.tree.stats().leaves);
    assert_eq!(world.tree.all_records().rows, 2);
    world.check_all();
    world.checkpoint().unwrap();
    world.check_space();
}

#[test]
fn what_is_written_again_stays_whatever_is_merged_and_opened() {
    let mut world = filled();
    world.snapshots.push(world.horizon.take());
    assert!(world.delete_range(b"k00500", None));
    for n in 600..700 {
        world.put(&format!("k{n:05}"), "again");
    }
    world.seal();
    world.tree.compact_all().unwrap();
    world.release_all();
    // The leaf is written while all see the newer rows and the range is there.
    world.tree.compact_all().unwrap();
    world.checkpoint().unwrap();
    world.check_all();
    world.crash();
    world.check_all();
    world.run_jobs();
    world.check_all();
    assert_eq!(world.tree.deleted_ranges(), 0);
    assert_eq!(scan(&world.tree, world.last).len(), 600);
}

#[test]
fn a_range_in_the_log_only_is_there_after_a_crash() {
    let mut world = filled();
    world.checkpoint().unwrap();
    assert!(world.delete_range(b"k00500", Some(b"k00600")));
    assert!(world.tree.is_dirty());
    world.crash();
    world.check_all();
    world.run_jobs();
    assert_eq!(world.tree.deleted_ranges(), 1);
    let last = world.last;
    assert!(world.tree.seal_if_full(|| last), "it is needed for the range to go");
    assert!(!world.tree.seal_if_full(|| last));
    // Now in the superblock only.
    world.snapshots.push(world.horizon.take());
    world.checkpoint().unwrap();
    assert!(world.log.is_empty());
    world.crash();
    world.check_all();
    assert_eq!(scan(&world.tree, world.last).len(), 1900);
}

#[test]
fn too_many_ranges_are_refused() {
    let mut world = filled();
    world.snapshots.push(world.horizon.take());
    let taken = (0..100).take_while(|n| {
        let lo = format!("k{:05}", n * 10);
        world.delete_range(lo.as_bytes(), Some(format!("{lo}5").as_bytes()))
    });
    let taken = taken.count();
    assert_eq!(taken, 32);
    assert!(world.tree.reserve_range(b"", None).is_none() && world.tree.is_short_of_ranges());
    world.check_all();
    world.checkpoint().unwrap();
    world.crash();
    world.check_all();
    // They are in the log no more, but in the superblock until the next checkpoint.
    world.run_jobs();
    assert!(world.tree.reserve_range(b"", None).is_none());
    world.checkpoint().unwrap();
    assert!(world.tree.reserve_range(b"", None).is_some() && !world.tree.is_short_of_ranges());
    assert!(world.tree.reserve_range(&[7; 40], Some(&[8; 41])).is_some());
    assert!(world.tree.reserve_range(&[7; 50], Some(&[8; 50])).is_none(), "long keys have no place");
}
