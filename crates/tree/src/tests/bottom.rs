//! A base that is put under changes which came while it was being built.

use std::collections::BTreeMap;

use pando_base::Kind;

use super::world::{scan, scan_back, tiny, World};

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

#[test]
fn a_base_goes_under_the_changes_made_meanwhile() {
    let mut world = World::new(1, tiny());
    // The commit up to which the base has everything.
    world.commit(vec![(key(0), Some(b"base".to_vec()))]);
    world.truncate();
    let base_seqno = world.last;
    let hold = world.tree.hold_bottom().expect("nothing is there");
    assert!(world.tree.hold_bottom().is_none(), "it is held");
    let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = (0..3000).map(|n| (key(n), b"base".to_vec())).collect();
    // Changes and deletes of what the base will have, flushed and merged as far as they can be.
    for n in 0..3000u32 {
        let value = (n % 3 != 0).then(|| b"changed".to_vec());
        let at = n * 7 % 3100;
        match &value {
            Some(value) => expected.insert(key(at), value.clone()),
            None => expected.remove(&key(at)),
        };
        world.commit(vec![(key(at), value)]);
        if n % 50 == 0 {
            world.seal();
            world.run_jobs();
        }
    }
    let mut writer = world.tree.private_writer_of(3000 * 30);
    (0..3000).for_each(|n| writer.add(&key(n), Kind::Put, b"base").unwrap());
    let runs = writer.finish().unwrap();
    assert!(runs.len() > 4, "more leaves than a node has children");
    world.file.sync().unwrap();
    assert!(hold.adopt(&runs, base_seqno));
    drop(runs);
    let check = |world: &World| {
        let rows: Vec<_> = expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert!(scan(&world.tree, world.last).into_iter().eq(rows.iter().cloned()));
        assert!(scan_back(&world.tree, world.last).into_iter().eq(rows.iter().rev().cloned()));
        for (key, value) in &rows {
            assert_eq!(world.tree.get(key, world.last).unwrap().as_ref(), Some(value));
        }
        world.tree.verify().unwrap();
    };
    check(&world);
    world.seal();
    world.run_jobs();
    check(&world);
    world.checkpoint().unwrap();
    world.crash();
    check(&world);
    world.tree.compact_all().unwrap();
    check(&world);
}

#[test]
fn a_truncation_meanwhile_is_told_and_a_dropped_hold_lets_flushes_go_on() {
    let mut world = World::new(2, tiny());
    let hold = world.tree.hold_bottom().unwrap();
    let mut writer = world.tree.private_writer_of(1000);
    writer.add(b"a", Kind::Put, b"base").unwrap();
    let runs = writer.finish().unwrap();
    world.truncate();
    assert!(!hold.adopt(&runs, 1));
    drop(runs);
    let hold = world.tree.hold_bottom().unwrap();
    (0..500).for_each(|n| world.commit(vec![(key(n), Some(b"value".to_vec()))]));
    world.seal();
    world.run_jobs();
    assert_eq!(world.tree.stats().leaves, 1);
    drop(hold);
    world.run_jobs();
    world.check_all();
    world.checkpoint().unwrap();
    world.run_jobs();
    assert!(world.tree.hold_bottom().is_none(), "the leaf has something");
}
