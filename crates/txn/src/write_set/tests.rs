use super::*;

const MAIN: DictId = DictId(1);
const BY_NAME: DictId = DictId(2);

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

fn finals(writes: &WriteSet) -> Vec<(u64, Vec<u8>, Kind, Vec<u8>)> {
    let mut all = Vec::new();
    writes.for_each_final(|dict, key, kind, value| all.push((dict.0, key.to_vec(), kind, value.to_vec())));
    all
}

fn check(writes: &WriteSet) {
    writes.dicts.iter().for_each(|dict| dict.index.check(&writes.log));
}

#[test]
fn a_key_not_written_is_told_from_a_deleted_one() {
    let mut writes = WriteSet::new();
    assert_eq!(writes.get(MAIN, b"k"), None);
    writes.put(MAIN, b"k", b"");
    assert_eq!(writes.get(MAIN, b"k"), Some(Some(&b""[..])));
    writes.delete(MAIN, b"k");
    assert_eq!(writes.get(MAIN, b"k"), Some(None));
    assert_eq!(writes.get(BY_NAME, b"k"), None);
}

#[test]
fn a_read_with_a_mark_does_not_see_later_writes() {
    let mut writes = WriteSet::new();
    writes.put(MAIN, b"a", b"1");
    let mark = writes.mark();
    writes.put(MAIN, b"a", b"2");
    writes.delete(MAIN, b"a");
    writes.put(MAIN, b"b", b"3");
    assert_eq!(writes.get_at(MAIN, b"a", mark), Some(Some(&b"1"[..])));
    assert_eq!(writes.get_at(MAIN, b"b", mark), None);
    let all = (Bound::Unbounded, mark);
    assert_eq!(writes.next_ge(MAIN, all.0, all.1), Some((&b"a"[..], Some(&b"1"[..]))));
    assert_eq!(writes.next_ge(MAIN, Bound::Excluded(b"a"), mark), None);
    assert_eq!(writes.next_le(MAIN, all.0, all.1), Some((&b"a"[..], Some(&b"1"[..]))));
    assert_eq!(writes.next_le(MAIN, Bound::Unbounded, Mark::LATEST), Some((&b"b"[..], Some(&b"3"[..]))));
}

#[test]
fn rolling_back_to_a_mark_restores_what_was_written_before_it() {
    let mut writes = WriteSet::new();
    for i in 0..1000 {
        writes.put(MAIN, &key(i), b"old");
    }
    let before = finals(&writes);
    let mark = writes.mark();
    for i in 500..1200 {
        writes.put(MAIN, &key(i), b"new");
        writes.put(BY_NAME, &key(i), b"new");
    }
    writes.delete(MAIN, &key(3));
    writes.rollback_to(mark);
    check(&writes);
    assert_eq!(finals(&writes), before);
    assert_eq!(writes.ops(), 1000);
    assert_eq!(writes.dicts().collect::<Vec<_>>(), [MAIN]);
}

#[test]
fn rolling_back_most_of_a_large_write_set_costs_by_what_is_kept() {
    let mut writes = WriteSet::new();
    writes.put(MAIN, &key(7), b"kept");
    let small = writes.bytes();
    let mark = writes.mark();
    for i in 0..200_000 {
        writes.put(MAIN, &key(i ^ 0x5555), b"undone");
    }
    writes.rollback_to(mark);
    check(&writes);
    assert_eq!(finals(&writes), [(1, key(7).to_vec(), Kind::Put, b"kept".to_vec())]);
    assert!(writes.bytes() < small + 200_000, "{} bytes are held for one row", writes.bytes());
}

#[test]
fn final_writes_come_in_order_of_dictionary_and_key_once_each() {
    let mut writes = WriteSet::new();
    writes.put(BY_NAME, b"z", b"1");
    writes.put(MAIN, b"b", b"2");
    writes.delete(MAIN, b"a");
    writes.put(MAIN, b"b", b"3");
    let expected: Vec<(u64, Vec<u8>, Kind, Vec<u8>)> = vec![
        (1, b"a".to_vec(), Kind::Delete, b"".to_vec()),
        (1, b"b".to_vec(), Kind::Put, b"3".to_vec()),
        (2, b"z".to_vec(), Kind::Put, b"1".to_vec()),
    ];
    assert_eq!(finals(&writes), expected);
    assert_eq!(writes.keys(MAIN), 2);
}

#[test]
fn auto_increment_counters_only_grow_and_survive_rollback() {
    let mut writes = WriteSet::new();
    let mark = writes.mark();
    writes.put(MAIN, b"a", b"1");
    writes.auto_increment(MAIN, 5);
    writes.auto_increment(MAIN, 3);
    writes.rollback_to(mark);
    assert!(writes.is_empty());
    let mut counters = Vec::new();
    writes.for_each_auto_increment(|dict, next| counters.push((dict, next)));
    assert_eq!(counters, [(MAIN, 5)]);
}

#[test]
fn a_cleared_write_set_is_empty_and_holds_little() {
    let mut writes = WriteSet::new();
    for i in 0..100_000 {
        writes.put(MAIN, &key(i), &[0; 100]);
        writes.put(BY_NAME, &key(i), &[]);
    }
    assert!(writes.bytes() > 100_000 * (108 + 8 + 2 * 44));
    writes.clear();
    assert!(writes.is_empty() && finals(&writes).is_empty());
    assert!(writes.bytes() < 64 << 10, "{} bytes are held", writes.bytes());
    writes.put(BY_NAME, b"again", b"");
    assert_eq!(writes.dicts().collect::<Vec<_>>(), [BY_NAME]);
    check(&writes);
}

#[test]
fn memory_is_accounted_at_about_what_a_row_needs() {
    let mut writes = WriteSet::new();
    for i in 0..100_000 {
        writes.put(MAIN, &key(i), &[0; 100]);
    }
    let each = writes.bytes() / 100_000;
    // Key and value 108, op 32 (up to twice that while the log doubles), entry 12.
    assert!((152..230).contains(&each), "{each} bytes a row");
}
