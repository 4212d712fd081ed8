//! One thing each.

use pando_base::{Kind, SETTLED_SEQNO};

use super::world::{tiny, World};
use crate::jobs::Plan;
use crate::TreeConfig;

fn filled(config: TreeConfig, rows: usize) -> World {
    let mut world = World::new(1, config);
    for n in 0..rows {
        world.put(&format!("k{:05}", n * 7919 % rows), &"v".repeat(40));
        let last = world.last;
        world.tree.seal_if_full(|| last);
        world.tree.run_job().unwrap();
    }
    world.seal();
    world.run_jobs();
    world
}

#[test]
fn an_empty_tree_answers_and_survives_a_restart() {
    let mut world = World::new(1, tiny());
    assert_eq!(world.tree.get(b"a", 9).unwrap(), None);
    assert_eq!(world.tree.newest(b"a").unwrap(), None);
    world.check_all();
    assert!(!world.tree.is_dirty() && !world.tree.has_work() && !world.seal());
    assert_eq!(world.checkpoint().unwrap().nodes_written, 0);
    world.crash();
    world.put("", "the empty key");
    assert!(world.tree.is_dirty());
    assert_eq!(world.tree.get(b"", 1).unwrap().as_deref(), Some(&b"the empty key"[..]));
    world.checkpoint().unwrap();
    world.crash();
    world.check_all();
    assert_eq!(world.tree.newest(b"").unwrap(), Some((1, Kind::Put)));
}

#[test]
fn newest_finds_deletes_and_ignores_snapshots() {
    let mut world = filled(tiny(), 500);
    world.delete("k00003");
    assert_eq!(world.tree.newest(b"k00003").unwrap(), Some((world.last, Kind::Delete)));
    world.seal();
    world.tree.run_job().unwrap();
    assert_eq!(world.tree.newest(b"k00003").unwrap(), Some((world.last, Kind::Delete)));
    assert_eq!(world.tree.get(b"k00003", world.last).unwrap(), None);
    assert!(world.tree.get(b"k00003", world.last - 1).unwrap().is_some());
}

/// With a seqno for each row small segments did not pay any more: leaves became coarse with time, and a lookup that found
/// nothing in the cache read 16 KB instead of 1.7.
#[test]
fn a_leaf_forgets_when_what_everybody_sees_was_committed() {
    let mut world = filled(tiny(), 300);
    world.tree.compact_all().unwrap();
    assert_eq!(world.tree.newest(b"k00003").unwrap(), Some((SETTLED_SEQNO, Kind::Put)));
    assert!(!world.tree.shape().replace("commits 1..=1\n", "").contains("commits"), "{}", world.tree.shape());

    // A snapshot between two versions tells them apart, and every later one from both.
    let snapshot = world.horizon.take();
    world.put("k00003", "newer");
    world.put("k00300", "new");
    world.seal();
    world.run_jobs();
    world.tree.compact_all().unwrap();
    assert_eq!(world.tree.newest(b"k00003").unwrap(), Some((world.last - 1, Kind::Put)));
    assert_eq!(world.tree.newest(b"k00300").unwrap(), Some((world.last, Kind::Put)));
    assert_eq!(world.tree.newest(b"k00004").unwrap(), Some((SETTLED_SEQNO, Kind::Put)));
    assert_eq!(world.tree.get(b"k00003", snapshot).unwrap().as_deref(), Some("v".repeat(40).as_bytes()));
    assert_eq!(world.tree.get(b"k00300", snapshot).unwrap(), None);
    world.check_all();

    world.horizon.release(snapshot);
    world.tree.compact_all().unwrap();
    assert_eq!(world.tree.newest(b"k00003").unwrap(), Some((SETTLED_SEQNO, Kind::Put)));
    assert_eq!(world.tree.newest(b"k00300").unwrap(), Some((SETTLED_SEQNO, Kind::Put)));
    world.checkpoint().unwrap();
    world.crash();
    world.check_all();
}

/// A queue in a memtable: who looks for the first row steps over all that are gone.
#[test]
fn a_memtable_whose_dead_rows_are_in_the_way_is_sealed_before_it_is_full() {
    let config = TreeConfig { memtable_bytes: 64 << 20, ..tiny() };
    let mut world = filled(config, 3000);
    for n in 0..2900 {
        world.delete(&format!("k{n:05}"));
    }
    let last = world.last;
    assert!(!world.tree.seal_if_full(|| last), "nobody has been disturbed yet");
    for _ in 0..40 {
        let mut cursor = world.tree.cursor(last);
        cursor.seek_first().unwrap();
        assert_eq!(cursor.key(), b"k02900");
    }
    assert!(world.tree.seal_if_full(|| last));
    assert!(!world.tree.seal_if_full(|| last), "the new one is clean");
    world.check_all();
    world.run_jobs();
    world.check_all();
}

#[test]
fn a_scan_that_meets_many_dead_rows_has_them_removed() {
    let config = TreeConfig { memtable_bytes: 1 << 20, leaf_raw_bytes: 64 << 10, ..tiny() };
    let mut world = filled(config, 600);
    let snapshot = world.horizon.take();
    for n in 0..600 {
        world.delete(&format!("k{n:05}"));
    }
    world.seal();
    world.run_jobs();
    world.tree.compact_all().unwrap();
    assert_eq!(world.tree.stats().tombstones, 600, "the snapshot protects them");
    // While the snapshot lives, rewriting would be in vain, whatever scans say.
    world.check_scan(world.last);
    let flushes = world.metrics.flushes.get();
    world.run_jobs();
    assert_eq!(world.metrics.flushes.get(), flushes);
    world.horizon.release(snapshot);
    world.check_scan(world.last);
    assert!(world.tree.stats().dead_skipped >= 600);
    assert!(world.tree.has_work());
    world.run_jobs();
    assert_eq!(world.tree.stats().tombstones, 0);
    assert_eq!(world.tree.stats().runs, 0);
}

#[test]
fn tombstones_kept_for_a_snapshot_go_when_it_is_gone() {
    let config = TreeConfig { memtable_bytes: 1 << 20, leaf_raw_bytes: 64 << 10, ..tiny() };
    let mut world = filled(config, 600);
    let snapshot = world.horizon.take();
    for n in 0..600 {
        world.delete(&format!("k{n:05}"));
    }
    world.seal();
    world.run_jobs();
    assert_eq!(world.tree.stats().tombstones, 600);
    assert!(!world.tree.has_work());
    world.horizon.release(snapshot);
    assert!(world.tree.has_work());
    world.run_jobs();
    assert_eq!(world.tree.stats().runs, 0);
}

#[test]
fn a_job_that_began_before_a_truncation_changes_nothing() {
    let mut world = filled(tiny(), 300);
    world.put("late", "row");
    world.seal();
    let tree = world.tree.clone();
    let (task, plan) = tree.start_job().unwrap();
    assert!(matches!(plan, Plan::WriteMemtable(_)));
    world.truncate();
    world.put("after", "it");
    tree.execute(&task, plan).unwrap();
    drop(task);
    world.check_all();
    world.checkpoint().unwrap();
    world.check_space();
    assert_eq!(world.tree.stats().runs, 1);
}

#[test]
fn a_deferred_commit_lands_where_it_was_booked_whatever_happened_since() {
    let mut world = filled(tiny(), 100);
    world.checkpoint().unwrap();
    assert!(!world.tree.is_dirty());
    // Prepared long ago: the log has it from 3 on.
    let (gate, deferred) = world.tree.defer(3);
    world.last += 1;
    let seqno = world.last;
    drop(gate);
    assert_eq!(world.tree.oldest_unwritten(), Some(3));
    let flushed = world.checkpoint().unwrap().durable_seqno;
    assert!(flushed < seqno, "a checkpoint claims no commit that is not in it");
    // Later commits, sealed and with a checkpoint, which must not overtake it.
    for n in 0..50 {
        world.put(&format!("later{n}"), "v");
    }
    assert!(world.seal() && !world.tree.has_work());
    assert_eq!(world.checkpoint().unwrap().durable_seqno, flushed);
    assert_eq!(world.tree.oldest_unwritten(), Some(3));
    deferred.insert(b"booked", seqno, Kind::Put, b"early");
    world.model.write(b"booked", seqno, Some(b"early"));
    drop(deferred);
    world.check_all();
    world.check_scan(seqno);
    assert_eq!(world.checkpoint().unwrap().durable_seqno, world.last);
    assert_eq!(world.tree.oldest_unwritten(), None);
    world.crash();
    world.check_all();
    world.check_space();
}

#[test]
fn a_deferred_commit_that_inserts_nothing_leaves_nothing() {
    let mut world = filled(tiny(), 10);
    drop(world.tree.defer(world.last));
    assert!(world.seal());
    world.run_jobs();
    world.checkpoint().unwrap();
    assert_eq!(world.tree.oldest_unwritten(), None);
    world.check_all();
    world.check_space();
}

#[test]
fn a_checkpoint_after_deleting_all_gives_the_space_back() {
    let mut world = filled(tiny(), 3000);
    world.checkpoint().unwrap();
    let full = world.file.file_bytes();
    for n in 0..3000 {
        world.delete(&format!("k{n:05}"));
        let last = world.last;
        world.tree.seal_if_full(|| last);
        world.tree.run_job().unwrap();
    }
    world.seal();
    world.run_jobs();
    world.tree.compact_all().unwrap();
    world.check_all();
    world.checkpoint().unwrap();
    world.check_space();
    let stats = world.tree.stats();
    assert_eq!((stats.rows, stats.runs), (0, 0), "{}", world.tree.shape());
    assert!(stats.leaves <= 2 && stats.nodes <= 2, "{}", world.tree.shape());
    // The file ends where its root lies, which was written while the checkpoint before held nearly all else; holes are punched.
    let allocated = world.file.allocated_bytes().unwrap();
    assert!(allocated < full / 4, "{allocated} of {full}");
}

#[test]
fn a_tree_that_shrank_has_few_leaves() {
    let mut world = filled(TreeConfig { fanout_max: 8, ..tiny() }, 3000);
    let before = world.tree.stats();
    for n in 0..3000 {
        if n % 20 != 0 {
            world.delete(&format!("k{n:05}"));
        }
        let last = world.last;
        world.tree.seal_if_full(|| last);
        world.tree.run_job().unwrap();
    }
    world.seal();
    world.run_jobs();
    world.tree.compact_all().unwrap();
    world.check_all();
    let after = world.tree.stats();
    assert!(after.leaves * 3 < before.leaves, "{before:?}\n{after:?}");
    assert!(after.nodes <= before.nodes, "{before:?}\n{after:?}");
}

#[test]
fn estimates_follow_ranges() {
    let mut world = filled(tiny(), 3000);
    world.tree.compact_all().unwrap();
    assert_eq!(world.tree.rows_estimate(), 3000);
    let all = world.tree.estimate(None, None, 0).unwrap().rows;
    assert_eq!(all, 3000);
    for (lo, hi, rows) in [("k00000", "k03000", 3000), ("k01000", "k02000", 1000), ("k00100", "k00200", 100)]
    {
        let found = world.tree.estimate(Some(lo.as_bytes()), Some(hi.as_bytes()), 10).unwrap().rows;
        assert!(found.abs_diff(rows) <= 30, "{lo}..{hi}: {found}, not {rows}");
        let counted = world.tree.estimate(Some(lo.as_bytes()), Some(hi.as_bytes()), usize::MAX).unwrap();
        assert_eq!(counted.rows, rows);
    }
    let nothing = world.tree.estimate(Some(b"k2"), Some(b"k1"), 10).unwrap();
    assert_eq!(nothing.rows, 0);
    world.delete("k00000");
    assert_eq!(world.tree.rows_estimate(), 2999);
}

#[test]
fn debt_is_what_is_behind() {
    let mut world = World::new(1, tiny());
    assert_eq!(world.tree.debt(), crate::Debt::default());
    for n in 0..400 {
        world.put(&format!("k{:05}", n * 7919 % 1000), &"v".repeat(100));
        let last = world.last;
        world.tree.seal_if_full(|| last);
    }
    let sealed = world.tree.debt();
    assert!(sealed.sealed_bytes > 40_000 && sealed.overdue_bytes == 0, "{sealed:?}");
    assert!(world.tree.memtable_bytes() >= sealed.sealed_bytes);
    world.tree.write_sealed_up_to(world.last).unwrap();
    let waiting = world.tree.debt();
    assert!(waiting.sealed_bytes == 0 && waiting.overdue_bytes > 20_000, "{waiting:?}");
    world.run_jobs();
    assert_eq!(world.tree.debt(), crate::Debt::default());
}

#[test]
fn a_cursor_goes_on_in_its_version_and_refresh_brings_the_new_one() {
    let mut world = filled(tiny(), 200);
    let mut cursor = world.tree.cursor(world.last);
    cursor.seek(b"k00100").unwrap();
    assert_eq!(cursor.key(), b"k00100");
    world.delete("k00101");
    world.seal();
    world.run_jobs();
    world.checkpoint().unwrap();
    cursor.next().unwrap();
    assert_eq!(cursor.key(), b"k00101");
    cursor.refresh(world.last);
    assert!(!cursor.valid());
    cursor.seek(b"k00101").unwrap();
    assert_eq!(cursor.key(), b"k00102");
    cursor.prev().unwrap();
    assert_eq!((cursor.key(), cursor.seqno() > 0), (&b"k00100"[..], true));
    cursor.next().unwrap();
    assert_eq!(cursor.key(), b"k00102");
    cursor.seek(b"z").unwrap();
    assert!(!cursor.valid());
    cursor.next().unwrap();
    cursor.prev().unwrap();
    assert!(!cursor.valid());
}

#[test]
fn a_node_survives_its_encoding_and_damage_to_it_never_panics() {
    let mut world = filled(tiny(), 300);
    world.put("k00100", "buffered");
    world.checkpoint().unwrap();
    let bytes = crate::node_format::encode(&world.tree.version.load().root);
    let image = crate::node_format::decode(&bytes).unwrap();
    assert_eq!(image.id, world.tree.version.load().root.id);
    assert_eq!(image.children.len(), world.tree.version.load().root.children.len());
    assert_eq!(image.buffer.len(), world.tree.version.load().root.buffer.len());
    assert!(!image.buffer.is_empty());
    for cut in 0..bytes.len() {
        assert!(crate::node_format::decode(&bytes[..cut]).is_err());
    }
    for at in 0..bytes.len() {
        for bit in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            let _ = crate::node_format::decode(&damaged);
        }
    }
}
