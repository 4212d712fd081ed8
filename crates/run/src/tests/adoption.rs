//! Private runs: written without a seqno, given one by their reference.

use super::*;
use crate::{Lookup, RunMeta};
use pando_base::MAX_SEQNO;

fn unnumbered(count: u32) -> Model {
    (0..count)
        .map(|i| ((key(i), Reverse(0)), (i % 7 != 0).then(|| format!("value {i}").into_bytes())))
        .collect()
}

fn content(run: &Arc<Run>) -> Vec<(Vec<u8>, u64)> {
    let mut cursor = run.cursor();
    cursor.seek_first().unwrap();
    let mut out = Vec::new();
    while cursor.valid() {
        out.push((cursor.key().to_vec(), cursor.record().seqno));
        cursor.next().unwrap();
    }
    out
}

#[test]
fn an_adopted_run_is_seen_at_its_commit_in_every_way_it_is_read() {
    let bed = Bed::new(1 << 20);
    let private = bed.write(1, small(200), &unnumbered(100));
    assert!(private.is_private());
    // All blocks are in the cache as private ones.
    assert!(content(&private).iter().all(|(_, seqno)| *seqno == 0));
    private.verify(&Shapes::default()).unwrap();

    let adopted = private.adopted(42);
    drop(private);
    let expected: Vec<_> = (0..100).map(|i| (key(i), 42)).collect();
    assert_eq!(content(&adopted), expected);
    adopted.verify(&Shapes::default()).unwrap();
    assert_eq!(adopted.get(&Lookup::new(&key(8), 41)).unwrap(), None, "a snapshot before the commit");
    let found = adopted.get(&Lookup::new(&key(8), 42)).unwrap().unwrap();
    assert_eq!((found.seqno, found.value), (42, b"value 8".to_vec()));
    assert_eq!(adopted.seqno_and_kind(&Lookup::new(&key(7), MAX_SEQNO)).unwrap(), Some((42, Kind::Delete)));
    assert_eq!(adopted.get(&Lookup::new(&key(9), MAX_SEQNO)).unwrap().unwrap().seqno, 42);
    let mut merge =
        crate::merge::MergeCursor::new(vec![adopted.cursor().bypass_cache()], None, None).unwrap();
    while merge.valid() {
        assert_eq!(merge.record().seqno, 42);
        merge.next().unwrap();
    }
}

#[test]
fn an_adopted_run_is_the_same_after_its_file_was_opened_again() {
    let bed = Bed::new(1 << 20);
    let adopted = bed.write(1, small(200), &unnumbered(50)).adopted(7);
    let mut bytes = Vec::new();
    adopted.meta().encode(&mut bytes);
    let meta = RunMeta::decode(&mut &bytes[..]).unwrap();
    let vfs: Arc<dyn Vfs> = bed.sim.clone();
    let (file, _) = TreeFile::open(&vfs, Path::new(PATH), DictId(3)).unwrap();
    let again = Run::open(&RunContext { file, ..bed.context.clone() }, meta).unwrap();
    assert_eq!(content(&again), (0..50).map(|i| (key(i), 7)).collect::<Vec<_>>());
    again.verify(&Shapes::default()).unwrap();
}

#[test]
fn the_space_lives_until_both_the_private_and_the_adopted_run_are_gone() {
    let bed = Bed::new(1 << 20);
    let private = bed.write(1, small(200), &unnumbered(100));
    let adopted = private.adopted(3);
    let used = bed.context.file.used_bytes();
    drop(private);
    assert_eq!(bed.context.file.used_bytes(), used);
    drop(adopted);
    assert_eq!(bed.context.file.used_bytes(), 0);
}
