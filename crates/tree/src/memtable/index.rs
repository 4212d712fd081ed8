//! The memtable's index: a B-link tree in memory, for many readers and writers at once.
//!
//! It takes the place of a skip list, in which a search follows some twenty pointers to records that lie anywhere: here it is
//! three or four nodes whose keys stand side by side (decision 0011). After Lehman and Yao, "Efficient locking for
//! concurrent operations on B-trees" (1981): each node knows its right neighbour and where that begins, so whoever
//! comes to a node that was divided meanwhile goes on to the right. Nothing is ever removed, so nodes are never joined.
//!
//! * A **search** takes no lock (`node`).
//! * An **insert** locks the one leaf it changes.
//! * A **division** of a full node, one at a time (`dividing`): it locks the node, moves the upper half of its items to a new right neighbour,
//!   unlocks it, and adds the neighbour to the parent, which may have to be divided before.
//!
//! Locks, in the order they are taken: `dividing`, then one node at a time.

use std::sync::atomic::{AtomicPtr, Ordering};

use pando_base::locks::{Mutex, MutexGuard};
use pando_base::{pause, RecordRef};

use super::arena::Arena;
use super::node::{Edge, LeafCopy, Locked, Node, Step, SLOTS};
use super::stored::{Item, Probe};

/// So many leaves are sent for at once; more would push each other out of the nearest cache.
const EXPECTED_AT_ONCE: usize = 16;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Index {
    arena: Arena,
    /// Null while empty.
    root: AtomicPtr<Node>,
    dividing: Mutex<()>,
}

impl Index {
    /// Memory of the records and of the nodes over them.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.arena.taken_bytes() as u64
    }

    // --- insert ---------------------------------------------------------------------------

    /// Adds a record; one with the same key and seqno is replaced.
    pub(super) fn insert(&self, record: RecordRef<'_>) {
        let item = Item::new(&self.arena, record);
        let probe = Probe::of(item);
        loop {
            let Some(leaf) = self.find(&probe, Edge::After, 0) else {
                self.plant();
                continue;
            };
            pause(256);
            let mut locked = lock_for(leaf, &probe);
            let (at, is_equal) = locked.place_of(0, &probe);
            if is_equal {
                return locked.replace(at, item);
            }
            if !locked.is_full() {
                return locked.insert(at, probe.head, item, None);
            }
            drop(locked);
            self.divide(&self.dividing.lock(), &probe, 0);
        }
    }

    /// Adds many. Where each goes is found for some of them at once before the first is added, and its memory sent for: a leaf is a thousand
    /// bytes that nobody has touched for long, and what the processor waits for them it now waits for together.
    pub(super) fn insert_all(&self, records: &[RecordRef<'_>]) {
        for group in records.chunks(EXPECTED_AT_ONCE) {
            if group.len() > 1 {
                group.iter().fold(None, |sent, record| self.expect(record, sent));
            }
            group.iter().for_each(|record| self.insert(*record));
        }
    }

    /// A record is about to be inserted. Gives the leaf that was sent for, which was `sent` for the one before.
    fn expect<'a>(&'a self, record: &RecordRef<'_>, sent: Option<&'a Node>) -> Option<&'a Node> {
        if self.root()?.level() == 0 {
            return None;
        }
        let probe = Probe::new(record.key, record.seqno);
        self.find(&probe, Edge::After, 1)?.prefetch_child(&probe, sent)
    }

    /// Makes the first node.
    fn plant(&self) {
        let _turn = self.dividing.lock();
        if self.root.load(Ordering::Relaxed).is_null() {
            self.set_root(Node::new(&self.arena, 0));
        }
    }

    fn set_root(&self, node: &Node) {
        self.root.store(std::ptr::from_ref(node).cast_mut(), Ordering::Release);
    }

    /// Divides the node of this level that has the place of the probe, unless it has room.
    fn divide(&self, turn: &MutexGuard<'_, ()>, probe: &Probe<'_>, level: u32) {
        let node = self.find(probe, Edge::After, level).expect("there is a node to divide");
        let mut locked = lock_for(node, probe);
        if !locked.is_full() {
            return;
        }
        // Inserts in the order of keys leave full nodes behind.
        let is_at_end = locked.place_of(0, probe).0 == SLOTS;
        let keep = if is_at_end { SLOTS - 1 } else { SLOTS / 2 };
        let (right, separator) = locked.divide(&self.arena, keep);
        let first = locked.first_item().expect("it keeps items");
        drop(locked);
        pause(8);
        let root = self.root().expect("there is a node");
        if root.level() == level {
            let top = Node::new(&self.arena, level + 1);
            let mut locked = top.lock();
            locked.insert(0, Probe::of(first).head, first, Some(root));
            locked.insert(1, Probe::of(separator).head, separator, Some(right));
            drop(locked);
            self.set_root(top);
        } else {
            self.add_child(turn, separator, right);
        }
    }

    /// Adds a node to the level above, where it begins at the separator.
    fn add_child(&self, turn: &MutexGuard<'_, ()>, separator: Item<'_>, child: &Node) {
        let probe = Probe::of(separator);
        let level = child.level() + 1;
        loop {
            let parent = self.find(&probe, Edge::After, level).expect("there is a root above");
            let mut locked = lock_for(parent, &probe);
            if !locked.is_full() {
                let (at, _) = locked.place_of(1, &probe);
                return locked.insert(at, probe.head, separator, Some(child));
            }
            drop(locked);
            self.divide(turn, &probe, level);
        }
    }

    // --- search ---------------------------------------------------------------------------

    fn root(&self) -> Option<&Node> {
        // SAFETY: null, or a node of the arena, completed before it was stored.
        unsafe { self.root.load(Ordering::Acquire).as_ref() }
    }

    /// The node of a level in which the search ends; it may have been divided since. `None`: the tree is empty, or not
    /// so high.
    fn find(&self, probe: &Probe<'_>, edge: Edge, level: u32) -> Option<&Node> {
        let mut node = self.root()?;
        loop {
            match node.step(probe, edge, level) {
                Step::Right(next) | Step::Down(next) => node = next,
                Step::Here => return Some(node),
            }
        }
    }

    /// The first record right of the edge.
    pub(super) fn first_from(&self, probe: &Probe<'_>, edge: Edge) -> Option<RecordRef<'_>> {
        let mut leaf = Some(self.find(probe, edge, 0)?);
        loop {
            pause(1024);
            match leaf?.first_from(probe, edge) {
                Ok(item) => return Some(item.record()),
                Err(next) => leaf = next,
            }
        }
    }

    /// The records right of the edge in order, or all. What is inserted meanwhile may be among them.
    pub(super) fn ascend(&self, from: Option<(&Probe<'_>, Edge)>) -> Ascending<'_> {
        let copy = match from {
            None => self.outermost(false).map(|leaf| leaf.copy()),
            Some((probe, edge)) => self.copy_at(probe, edge, false),
        };
        Ascending { leaf: copy.unwrap_or_else(LeafCopy::empty), at: 0 }
    }

    /// The records left of the probe in reverse order, or all.
    pub(super) fn descend(&self, to: Option<&Probe<'_>>) -> Descending<'_> {
        let copy = match to {
            None => self.outermost(true).map(Index::copy_last),
            Some(probe) => self.copy_at(probe, Edge::Before, true),
        };
        let leaf = copy.unwrap_or_else(LeafCopy::empty);
        Descending { index: self, left: leaf.len, leaf }
    }

    fn outermost(&self, is_last: bool) -> Option<&Node> {
        let mut node = self.root()?;
        loop {
            match node.outermost(is_last) {
                Step::Right(next) | Step::Down(next) => node = next,
                Step::Here => return Some(node),
            }
        }
    }

    /// The items of the last leaf, which was this one. It may have been divided since it was found: its copy tells, as it has the
    /// leaf to the right, if there is one, of the same moment.
    fn copy_last(leaf: &Node) -> LeafCopy<'_> {
        pause(64);
        let mut copy = leaf.copy();
        pause(64);
        while let Some(next) = copy.next {
            copy = next.copy();
        }
        copy
    }

    /// The items right or left of the edge in the leaf that has it; `None`: the tree is empty.
    fn copy_at(&self, probe: &Probe<'_>, edge: Edge, is_left: bool) -> Option<LeafCopy<'_>> {
        loop {
            let leaf = self.find(probe, edge, 0)?;
            pause(256);
            // Nearly always at once: between the search and the copy the leaf would have to be divided.
            if let Some(copy) = leaf.copy_part(probe, edge, is_left) {
                return Some(copy);
            }
        }
    }
}

/// Locks the node that has the place of the probe: this one, or one to the right of it.
fn lock_for<'a>(mut node: &'a Node, probe: &Probe<'_>) -> Locked<'a> {
    loop {
        let locked = node.lock();
        match locked.right_for(probe) {
            None => return locked,
            Some(next) => node = next,
        }
    }
}

/// See [`Index::ascend`].
pub(super) struct Ascending<'a> {
    leaf: LeafCopy<'a>,
    at: usize,
}

impl<'a> Iterator for Ascending<'a> {
    type Item = RecordRef<'a>;

    fn next(&mut self) -> Option<RecordRef<'a>> {
        loop {
            if let Some(item) = self.leaf.item(self.at) {
                self.at += 1;
                return Some(item.record());
            }
            pause(256);
            self.leaf = self.leaf.next?.copy();
            self.at = 0;
        }
    }
}

/// See [`Index::descend`].
pub(super) struct Descending<'a> {
    index: &'a Index,
    leaf: LeafCopy<'a>,
    left: usize,
}

impl<'a> Iterator for Descending<'a> {
    type Item = RecordRef<'a>;

    fn next(&mut self) -> Option<RecordRef<'a>> {
        if self.left == 0 {
            // Nodes do not know what is to their left, which is found from above.
            let first = Probe::of(self.leaf.item(0)?);
            pause(256);
            self.leaf = self.index.copy_at(&first, Edge::Before, true)?;
            self.left = self.leaf.len;
        }
        self.left = self.left.checked_sub(1)?;
        self.leaf.item(self.left).map(Item::record)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

    use pando_base::{Kind, Seqno};
    use proptest::prelude::*;

    use super::*;

    /// Values are the seqnos.
    fn insert_group(index: &Index, group: &[(&[u8], Seqno)]) {
        let values: Vec<[u8; 8]> = group.iter().map(|(_, seqno)| seqno.to_le_bytes()).collect();
        let record = |((key, seqno), value)| RecordRef { key, seqno, kind: Kind::Put, value };
        let records: Vec<RecordRef<'_>> =
            group.iter().copied().zip(values.iter().map(|value| &value[..])).map(record).collect();
        index.insert_all(&records);
    }

    fn all(index: &Index) -> Vec<(Vec<u8>, Seqno)> {
        index.ascend(None).map(|r| (r.key.to_vec(), r.seqno)).collect()
    }

    /// Keys of which many have the same first eight bytes, and some are the beginning of others.
    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0u8..3, 0..12),
            prop::collection::vec(any::<u8>(), 0..3),
            (0u16..500).prop_map(|n| [b"same head ".as_slice(), &n.to_be_bytes()].concat()),
        ]
    }

    proptest! {
        #[test]
        fn it_answers_as_an_ordered_map_does(
            records in prop::collection::vec((any_key(), 1u64..6), 0..600), at_once in 1usize..40,
            probes in prop::collection::vec((any_key(), 0u64..7), 1..60),
        ) {
            let index = Index::default();
            // Seqnos descend, as in the index.
            let mut model: BTreeMap<(Vec<u8>, u64), ()> = BTreeMap::new();
            for group in records.chunks(at_once) {
                insert_group(&index, &group.iter().map(|(key, seqno)| (&key[..], *seqno)).collect::<Vec<_>>());
                model.extend(group.iter().map(|(key, seqno)| ((key.clone(), u64::MAX - seqno), ())));
            }
            let expected: Vec<(Vec<u8>, Seqno)> =
                model.keys().map(|(key, turned)| (key.clone(), u64::MAX - turned)).collect();
            prop_assert_eq!(&all(&index), &expected);
            let back: Vec<_> = index.descend(None).map(|r| (r.key.to_vec(), r.seqno)).collect();
            prop_assert!(back.iter().rev().eq(&expected));
            for (key, seqno) in &probes {
                let probe = Probe::new(key, *seqno);
                let place = (key.clone(), u64::MAX - seqno);
                let before = expected.partition_point(|(k, s)| (k.clone(), u64::MAX - s) < place);
                let after = expected.partition_point(|(k, s)| (k.clone(), u64::MAX - s) <= place);
                let own = |r: RecordRef<'_>| (r.key.to_vec(), r.seqno);
                prop_assert_eq!(index.first_from(&probe, Edge::Before).map(own), expected.get(before).cloned());
                prop_assert_eq!(index.first_from(&probe, Edge::After).map(own), expected.get(after).cloned());
                prop_assert!(index.ascend(Some((&probe, Edge::Before))).map(own).eq(expected[before..].iter().cloned()));
                prop_assert!(index.ascend(Some((&probe, Edge::After))).map(own).eq(expected[after..].iter().cloned()));
                prop_assert!(index.descend(Some(&probe)).map(own).eq(expected[..before].iter().rev().cloned()));
            }
        }
    }

    #[test]
    fn a_record_with_the_same_key_and_seqno_takes_the_place_of_the_one_before() {
        let index = Index::default();
        for round in 0..2u8 {
            for n in 0..100u64 {
                let value = [round];
                index.insert(RecordRef { key: &n.to_be_bytes(), seqno: 1, kind: Kind::Put, value: &value });
            }
        }
        assert_eq!(index.ascend(None).filter(|r| r.value == [1]).count(), 100);
        assert_eq!(index.ascend(None).count(), 100);
    }

    /// A scan from the end found the last leaf, which was divided before its items were copied: what had moved to the right was
    /// missing, though it had been there long before.
    #[test]
    fn the_last_leaf_may_be_divided_before_its_items_are_copied() {
        let index = Index::default();
        let key = |n: u64| n.to_be_bytes();
        (0..3).for_each(|n| insert_group(&index, &[(&key(2 * n), 1)]));
        let leaf = index.outermost(true).unwrap();
        // In the middle of it, more than once.
        (0..20 * SLOTS as u64).for_each(|n| insert_group(&index, &[(&key(3), 2 + n)]));
        assert!(leaf.len() <= SLOTS && index.root().unwrap().level() > 0, "it was divided");
        let last = Index::copy_last(leaf);
        assert_eq!(last.item(last.len - 1).unwrap().record().key, key(4));
    }

    /// What was there when a scan began is in it, once and in order, whatever is inserted meanwhile.
    #[test]
    fn scans_beside_inserts_miss_nothing_that_was_there_before() {
        scan_beside_inserts(if cfg!(miri) { 60 } else { 20_000 });
    }

    /// Where there are few leaves, scans begin and end in those that are being divided.
    #[test]
    fn short_scans_beside_inserts_miss_nothing_either() {
        (0..if cfg!(miri) { 4 } else { 1500 }).for_each(|_| scan_beside_inserts(30));
    }

    /// Each of some threads inserts so many records.
    fn scan_beside_inserts(each: u64) {
        const THREADS: u64 = 4;
        let key = |thread: u64, n: u64| {
            // Ascending, descending, and two that scatter.
            let place = match thread {
                0 => n,
                1 => each - n,
                _ => n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
            };
            [place.to_be_bytes(), (thread << 32 | n).to_be_bytes()].concat()
        };
        let index = Index::default();
        let done: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
        let total = || done.iter().map(|n| n.load(Ordering::Acquire)).sum::<u64>();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for thread in 0..THREADS {
                let (index, done) = (&index, &done[thread as usize]);
                threads.push(scope.spawn(move || {
                    // One by one, by two, three and four.
                    let mut n = 0;
                    while n < each {
                        let end = (n + 1 + thread).min(each);
                        let keys: Vec<(Vec<u8>, Seqno)> = (n..end).map(|n| (key(thread, n), n + 1)).collect();
                        insert_group(
                            index,
                            &keys.iter().map(|(key, seqno)| (&key[..], *seqno)).collect::<Vec<_>>(),
                        );
                        done.store(end, Ordering::Release);
                        n = end;
                    }
                }));
            }
            for is_back in [false, true] {
                let (index, done, total) = (&index, &done, &total);
                threads.push(scope.spawn(move || loop {
                    let before: Vec<u64> = done.iter().map(|n| n.load(Ordering::Acquire)).collect();
                    let is_last = total() == THREADS * each;
                    let mut seen = [0; THREADS as usize];
                    let mut last: Option<Vec<u8>> = None;
                    let mut see = |r: RecordRef<'_>| {
                        let thread = u64::from_be_bytes(r.key[8..].try_into().unwrap()) >> 32;
                        assert_eq!(r.key, key(thread, r.seqno - 1));
                        assert!(last
                            .as_deref()
                            .is_none_or(|last| (last < r.key) != is_back && last != r.key));
                        last = Some(r.key.to_vec());
                        seen[thread as usize] += u64::from(r.seqno <= before[thread as usize]);
                    };
                    if is_back {
                        index.descend(None).for_each(&mut see)
                    } else {
                        index.ascend(None).for_each(&mut see)
                    }
                    assert_eq!(seen.as_slice(), before);
                    // One that was there is found by itself, too.
                    for (thread, n) in before.iter().enumerate().filter(|(_, n)| **n > 0) {
                        let wanted = key(thread as u64, n - 1);
                        let (before, after) = (Probe::new(&wanted, Seqno::MAX), Probe::new(&wanted, 0));
                        let up = index.ascend(Some((&before, Edge::Before))).next();
                        let down = index.descend(Some(&after)).next();
                        for found in [index.first_from(&before, Edge::Before), up, down] {
                            assert_eq!(found.map(|r| r.key), Some(wanted.as_slice()));
                        }
                    }
                    if is_last {
                        return;
                    }
                }));
            }
            // The end of the scope would do, but ThreadSanitizer does not see that.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(all(&index).len() as u64, THREADS * each);
    }
}
