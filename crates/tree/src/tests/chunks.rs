//! What a memtable alone has, and what is kept of it.

use std::sync::Arc;

use pando_base::{Kind, RecordRef};
use pando_column::vector::{Strings, Values, Vector};
use pando_column::Pick;

use super::world::{tiny, World};
use crate::TreeConfig;

type Keys = Vec<Vec<u8>>;

/// Keys of the chunks as the snapshot sees them, which are kept; and how many of them were not known before.
fn keys_of_chunks(world: &World, snapshot: u64) -> (Keys, usize) {
    let (mut keys, mut unknown) = (Keys::new(), 0);
    let mut pieces = world.tree.pieces(snapshot, b"", None);
    while let Some(piece) = pieces.next().unwrap() {
        let Some(chunk) = pieces.chunk() else {
            assert!(!piece.is_chunk);
            continue;
        };
        assert!(piece.is_chunk && piece.plain_rows.is_none());
        if let Some((rows, vectors)) = chunk.columns(1, &[Pick::WholeKey]) {
            assert_eq!(vectors[0].rows(), rows);
            keys.extend((0..rows).map(|row| vectors[0].get(row).unwrap().to_vec()));
            continue;
        }
        unknown += 1;
        let mut strings = Strings::new();
        chunk.read(|key, _| {
            strings.push(key);
            keys.push(key.to_vec());
            true
        });
        let vector = Vector::new(strings.len(), None, Values::Varying(strings));
        chunk.keep(1, &[Pick::WholeKey], &[Arc::new(vector)]);
        assert!(chunk.columns(2, &[Pick::WholeKey]).is_none(), "of another layout");
    }
    (keys, unknown)
}

/// A memtable of 640 records with a mark at every tenth.
fn filled() -> World {
    let mut world = World::new(1, TreeConfig { memtable_bytes: 64 * 10 * 81, ..tiny() });
    for n in 0..640 {
        world.put(&format!("k{n:04}"), &"v".repeat(20));
    }
    world
}

fn expected(world: &World, keys: &Keys, snapshot: u64) -> Keys {
    let (first, last) = (keys.first().unwrap(), keys.last().unwrap());
    let rows = world.model.rows(snapshot).into_iter().map(|(key, _)| key);
    rows.filter(|key| first <= key && key <= last).collect()
}

#[test]
fn what_a_memtable_alone_has_is_gone_over_once() {
    let mut world = filled();
    let (keys, unknown) = keys_of_chunks(&world, world.last);
    assert!(keys.len() > 600 && unknown > 55, "{} keys, {unknown} chunks", keys.len());
    assert_eq!(keys, expected(&world, &keys, world.last));
    assert_eq!(keys_of_chunks(&world, world.last), (keys.clone(), 0));
    // Behind them all.
    world.put("k0700", "v");
    assert_eq!(keys_of_chunks(&world, world.last), (keys, 0));
}

#[test]
fn an_insert_into_a_chunk_is_seen_by_those_who_may_and_by_no_others() {
    let mut world = filled();
    let before = world.last;
    let (keys, _) = keys_of_chunks(&world, before);
    world.put("k0100x", "new");
    world.put("k0200", "another version");
    world.delete("k0300");
    let (now, unknown) = keys_of_chunks(&world, world.last);
    assert_eq!((now.len(), unknown), (keys.len(), 3));
    assert_eq!(now, expected(&world, &now, world.last));
    // Who does not see all that there is finds nothing, and leaves nothing.
    assert_eq!(keys_of_chunks(&world, before), (keys.clone(), 3));
    assert_eq!(keys_of_chunks(&world, before), (keys, 3));
    assert_eq!(keys_of_chunks(&world, world.last), (now, 0));
}

#[test]
fn a_chunk_that_was_read_by_who_did_not_see_all_of_it_is_not_known() {
    let mut world = filled();
    let before = world.last;
    world.put("k0100x", "new");
    let (keys, unknown) = keys_of_chunks(&world, before);
    assert_eq!(keys, expected(&world, &keys, before));
    let (now, again) = keys_of_chunks(&world, world.last);
    assert_eq!((now.len(), again), (keys.len() + 1, 1), "{unknown} at first");
}

#[test]
fn where_two_memtables_or_a_run_have_records_is_no_chunk() {
    let mut world = filled();
    assert!(world.seal());
    let (keys, _) = keys_of_chunks(&world, world.last);
    for n in (0..640).step_by(2) {
        world.put(&format!("k{n:04}"), &"w".repeat(20));
    }
    assert_eq!(keys_of_chunks(&world, world.last).0.len(), 0);
    world.run_jobs();
    assert_eq!(keys_of_chunks(&world, world.last).0.len(), 0);
    for n in 640..800 {
        world.put(&format!("k{n:04}"), &"w".repeat(20));
    }
    let (found, _) = keys_of_chunks(&world, world.last);
    assert!(found.len() > 100 && found[0] > b"k0640".to_vec(), "{} of {}", found.len(), keys.len());
    world.check_all();
}

#[test]
fn what_is_kept_goes_with_the_memtable() {
    let mut world = filled();
    world.checkpoint().unwrap();
    for n in 640..1280 {
        world.put(&format!("k{n:04}"), &"v".repeat(20));
    }
    let before = world.metrics.cache_bytes.get();
    keys_of_chunks(&world, world.last);
    assert!(world.metrics.cache_bytes.get() > before + 5000);
    world.seal();
    world.tree.write_sealed_up_to(world.last).unwrap();
    assert!(world.metrics.cache_bytes.get() < before + 5000);
}

/// Writers that insert everywhere, beside readers that go over the chunks: each sees what its snapshot does.
#[test]
fn chunks_beside_writers_are_what_snapshots_see() {
    let mut world = filled();
    for round in 0..40 {
        let tree = world.tree.clone();
        let from = world.last;
        let writes: Vec<String> =
            (0..30).map(|n| format!("k{:04}r{round}", (n * 37 + round * 11) % 700)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (n, key) in writes.iter().enumerate() {
                    let seqno = from + 1 + n as u64;
                    if round % 2 == 0 {
                        tree.gate().insert(key.as_bytes(), seqno, Kind::Put, b"v");
                        continue;
                    }
                    // Commits of several rows: here ones that were there, deep in other chunks.
                    let others =
                        [format!("k{:04}r{round}-a", n * 5), format!("k{:04}r{round}-b", 690 - n * 5)];
                    let mut all = [key.as_bytes(), others[0].as_bytes(), others[1].as_bytes()];
                    all.sort_unstable();
                    let record = |key| RecordRef { key, seqno, kind: Kind::Put, value: b"v" };
                    tree.gate().insert_all(&all.map(record));
                }
            });
            for _ in 0..5 {
                let (keys, _) = keys_of_chunks(&world, from);
                assert_eq!(keys, expected(&world, &keys, from));
            }
        });
        for (n, key) in writes.iter().enumerate() {
            let seqno = from + 1 + n as u64;
            world.model.write(key.as_bytes(), seqno, Some(b"v"));
            if round % 2 == 1 {
                world.model.write(format!("k{:04}r{round}-a", n * 5).as_bytes(), seqno, Some(b"v"));
                world.model.write(format!("k{:04}r{round}-b", 690 - n * 5).as_bytes(), seqno, Some(b"v"));
            }
        }
        world.last += writes.len() as u64;
        let (keys, _) = keys_of_chunks(&world, world.last);
        assert_eq!(keys, expected(&world, &keys, world.last));
    }
}
