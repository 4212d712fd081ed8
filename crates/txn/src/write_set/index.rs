//! The ordered index of one dictionary in a write set: key -> newest op. An in-memory B+ tree of
//! op numbers; the keys' bytes stay in the op log.
//!
//! - Beginnings common to all keys (by eight bytes) are kept once; entries carry the eight bytes of
//!   their key after that, so that most comparisons touch nothing else. A key without the common
//!   beginning shortens it, and all entries' bytes are taken anew: at most once per eight bytes.
//! - Separators own their (shortest possible) bytes: a key they were cut from may be rolled back.
//! - A key above all others goes to the end of the last leaf without a descent, and a full leaf
//!   that is appended to is left full: ascending inserts cost one comparison and fill every leaf.
//! - Nodes are positions in two vectors, no pointers. Leaf 0 is always the leftmost.
//! - Removal (rollback) leaves empty leaves where they are; walks skip them. When the last entry goes
//!   the tree starts anew.

use std::cmp::Ordering;

use super::log::{OpLog, OpNumber};

/// Entries of a leaf: the average insert moves half of 128 * 12 bytes, and the tree stays shallow.
const LEAF_ENTRIES: usize = 128;

/// Children of an inner node.
const FANOUT: usize = 64;

/// "No leaf", at the ends of the chain.
const NO_LEAF: u32 = u32::MAX;

/// What an inner node occupies: its own size and the three vectors at full capacity.
const INNER_BYTES: usize =
    size_of::<Inner>() + (FANOUT + 1) * (size_of::<u64>() + size_of::<Box<[u8]>>() + size_of::<u32>());

/// Entry `i` is `(prefixes[i], ops[i])`, ascending by key.
#[derive(Debug)]
struct Leaf {
    prefixes: Vec<u64>,
    ops: Vec<OpNumber>,
    previous: u32,
    next: u32,
}

/// `children[i]` holds the keys from `separators[i - 1]` (included) to `separators[i]` (excluded).
#[derive(Debug)]
struct Inner {
    prefixes: Vec<u64>,
    separators: Vec<Box<[u8]>>,
    children: Vec<u32>,
}

/// A position between entries, or at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    leaf: u32,
    position: u32,
}

/// The index; see the head of this file.
#[derive(Debug)]
pub(crate) struct Index {
    /// How every key and separator begins; short enough that prefixes differ where keys first do.
    common: Vec<u8>,
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// A leaf when `height` is 0, else an inner node.
    root: u32,
    height: u32,
    last_leaf: u32,
    len: usize,
    /// Heap memory of leaves' entries and separators.
    heap_bytes: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            common: Vec::new(),
            leaves: vec![Leaf::new()],
            inners: Vec::new(),
            root: 0,
            height: 0,
            last_leaf: 0,
            len: 0,
            heap_bytes: 0,
        }
    }
}

impl Index {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// `Ok` where the key is, `Err` where it would be inserted.
    pub(crate) fn find(&self, log: &OpLog, key: &[u8]) -> Result<Slot, Slot> {
        let Some(rest) = key.strip_prefix(self.common.as_slice()) else {
            let below = key < self.common.as_slice();
            return Err(if below { Slot { leaf: 0, position: 0 } } else { self.end() });
        };
        let prefix = prefix_of(rest);
        if self.is_above_all(log, prefix, key) {
            return Err(self.end());
        }
        let leaf = self.descend(prefix, key, |_, _| ());
        let (position, found) = self.leaves[leaf as usize].lower_bound(log, prefix, key);
        let slot = Slot { leaf, position: position as u32 };
        if found {
            Ok(slot)
        } else {
            Err(slot)
        }
    }

    /// The op at an entry.
    pub(crate) fn op(&self, slot: Slot) -> OpNumber {
        self.leaves[slot.leaf as usize].ops[slot.position as usize]
    }

    /// Makes `op`, of the same key, the entry's op.
    pub(crate) fn set_op(&mut self, slot: Slot, op: OpNumber) {
        self.leaves[slot.leaf as usize].ops[slot.position as usize] = op;
    }

    /// Inserts `op` with its key where `find` said, with nothing changed in between.
    pub(crate) fn insert(&mut self, log: &OpLog, mut slot: Slot, op: OpNumber) {
        let key = log.key(op);
        if self.len == 0 {
            self.common.extend_from_slice(&key[..key.len() / 8 * 8]);
        } else if !key.starts_with(&self.common) {
            self.shorten_common(log, key);
            slot = self.find(log, key).expect_err("a key is inserted once");
        }
        let prefix = self.prefix(key);
        if self.leaves[slot.leaf as usize].ops.len() == LEAF_ENTRIES {
            slot = self.split(log, slot, op);
        }
        let leaf = &mut self.leaves[slot.leaf as usize];
        let before = leaf.heap_bytes();
        leaf.prefixes.insert(slot.position as usize, prefix);
        leaf.ops.insert(slot.position as usize, op);
        self.heap_bytes += leaf.heap_bytes() - before;
        self.len += 1;
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let leaf = &mut self.leaves[slot.leaf as usize];
        leaf.prefixes.remove(slot.position as usize);
        leaf.ops.remove(slot.position as usize);
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
    }

    /// Forgets everything; keeps the first leaf's memory for what comes next.
    pub(crate) fn clear(&mut self) {
        self.common.clear();
        self.leaves.truncate(1);
        self.leaves.shrink_to(4);
        self.inners = Vec::new();
        let leaf = &mut self.leaves[0];
        leaf.prefixes.clear();
        leaf.ops.clear();
        leaf.next = NO_LEAF;
        self.heap_bytes = leaf.heap_bytes();
        (self.root, self.height, self.last_leaf, self.len) = (0, 0, 0, 0);
    }

    /// Memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Leaf>()
            + self.inners.len() * INNER_BYTES
            + self.heap_bytes
            + self.common.capacity()
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<Slot> {
        self.entry_from(Slot { leaf: 0, position: 0 })
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Slot> {
        self.before(self.end())
    }

    /// The entry after an entry.
    pub(crate) fn after(&self, slot: Slot) -> Option<Slot> {
        self.entry_from(Slot { position: slot.position + 1, ..slot })
    }

    /// The entry at a position, or else the next one.
    pub(crate) fn entry_from(&self, mut slot: Slot) -> Option<Slot> {
        loop {
            let leaf = &self.leaves[slot.leaf as usize];
            if (slot.position as usize) < leaf.ops.len() {
                return Some(slot);
            }
            if leaf.next == NO_LEAF {
                return None;
            }
            slot = Slot { leaf: leaf.next, position: 0 };
        }
    }

    /// The entry before an entry or position.
    pub(crate) fn before(&self, mut slot: Slot) -> Option<Slot> {
        while slot.position == 0 {
            let previous = self.leaves[slot.leaf as usize].previous;
            if previous == NO_LEAF {
                return None;
            }
            slot = Slot { leaf: previous, position: self.leaves[previous as usize].ops.len() as u32 };
        }
        Some(Slot { position: slot.position - 1, ..slot })
    }

    /// Where a key above every key goes.
    fn end(&self) -> Slot {
        let position = self.leaves[self.last_leaf as usize].ops.len() as u32;
        Slot { leaf: self.last_leaf, position }
    }

    /// Whether a key is above every key; false also where the last leaf, being empty, cannot tell.
    fn is_above_all(&self, log: &OpLog, prefix: u64, key: &[u8]) -> bool {
        let leaf = &self.leaves[self.last_leaf as usize];
        match (leaf.prefixes.last(), leaf.ops.last()) {
            (Some(last_prefix), Some(last_op)) => match prefix.cmp(last_prefix) {
                Ordering::Equal => key > log.key(*last_op),
                order => order == Ordering::Greater,
            },
            _ => false,
        }
    }

    /// The prefix of a key or separator, which begins as all do.
    fn prefix(&self, key: &[u8]) -> u64 {
        prefix_of(&key[self.common.len()..])
    }

    /// Shortens the common beginning to what `key` shares, and takes all prefixes anew.
    fn shorten_common(&mut self, log: &OpLog, key: &[u8]) {
        let shared = self.common.iter().zip(key).take_while(|(a, b)| a == b).count();
        let common = shared / 8 * 8;
        assert!(common < self.common.len());
        self.common.truncate(common);
        for leaf in &mut self.leaves {
            for (prefix, op) in leaf.prefixes.iter_mut().zip(&leaf.ops) {
                *prefix = prefix_of(&log.key(*op)[common..]);
            }
        }
        for inner in &mut self.inners {
            for (prefix, separator) in inner.prefixes.iter_mut().zip(&inner.separators) {
                *prefix = prefix_of(&separator[common..]);
            }
        }
    }

    /// The leaf a key belongs to; `visit` is told each inner node and the position of the child taken.
    fn descend(&self, prefix: u64, key: &[u8], mut visit: impl FnMut(u32, usize)) -> u32 {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            let position = inner.child_of(prefix, key);
            visit(node, position);
            node = inner.children[position];
        }
        node
    }

    /// Splits the full leaf of `slot`, where `op` is about to be inserted; gives its new position.
    fn split(&mut self, log: &OpLog, slot: Slot, op: OpNumber) -> Slot {
        let key = log.key(op);
        let mut path = Vec::with_capacity(self.height as usize);
        let found = self.descend(self.prefix(key), key, |inner, position| path.push((inner, position)));
        assert_eq!(found, slot.leaf, "an insert follows its find");

        // 1. The right half, or nothing when appending, moves to a new leaf.
        let position = slot.position as usize;
        let kept = if position == LEAF_ENTRIES { LEAF_ENTRIES } else { LEAF_ENTRIES / 2 };
        let new = self.leaves.len() as u32;
        let left = &mut self.leaves[slot.leaf as usize];
        let mut right = Leaf { previous: slot.leaf, next: left.next, ..Leaf::with_capacity() };
        right.prefixes.extend(left.prefixes.drain(kept..));
        right.ops.extend(left.ops.drain(kept..));
        self.heap_bytes += right.heap_bytes();

        // 2. Between the two, the shortest separator; an op right at the border goes to the right.
        let right_min = if position == kept { key } else { log.key(right.ops[0]) };
        let separator = shortest_separator(log.key(left.ops[kept - 1]), right_min);

        // 3. Into the chain.
        left.next = new;
        match right.next {
            NO_LEAF => self.last_leaf = new,
            next => self.leaves[next as usize].previous = new,
        }
        self.leaves.push(right);
        self.add_child(path, separator, new);
        if position >= kept {
            Slot { leaf: new, position: (position - kept) as u32 }
        } else {
            slot
        }
    }

    /// Adds `child`, whose keys begin at `separator`, to the right of where `path` went down;
    /// splits what is full on the way up.
    fn add_child(&mut self, mut path: Vec<(u32, usize)>, mut separator: Box<[u8]>, mut child: u32) {
        self.heap_bytes += separator.len();
        while let Some((node, position)) = path.pop() {
            let prefix = self.prefix(&separator);
            let inner = &mut self.inners[node as usize];
            inner.prefixes.insert(position, prefix);
            inner.separators.insert(position, separator);
            inner.children.insert(position + 1, child);
            if inner.children.len() <= FANOUT {
                return;
            }
            let appended = position + 2 == inner.children.len();
            let (promoted, right) = inner.split(appended);
            (separator, child) = (promoted, self.inners.len() as u32);
            self.inners.push(right);
        }
        let mut root = Inner::with_capacity();
        root.prefixes.push(self.prefix(&separator));
        root.separators.push(separator);
        root.children.extend([self.root, child]);
        self.root = self.inners.len() as u32;
        self.inners.push(root);
        self.height += 1;
    }

    /// Walks the whole structure and panics where it is not what it should be.
    #[cfg(test)]
    pub(crate) fn check(&self, log: &OpLog) {
        let mut entries = 0;
        let mut heap_bytes = 0;
        let mut keys: Vec<&[u8]> = Vec::new();
        let (mut leaf, mut previous) = (0, NO_LEAF);
        while leaf != NO_LEAF {
            let node = &self.leaves[leaf as usize];
            assert_eq!(node.previous, previous);
            assert_eq!(node.prefixes.len(), node.ops.len());
            assert!(node.ops.len() <= LEAF_ENTRIES);
            for (op, prefix) in node.ops.iter().zip(&node.prefixes) {
                let key = log.key(*op);
                assert!(key.starts_with(&self.common));
                assert_eq!(self.prefix(key), *prefix);
                assert_eq!(self.descend(*prefix, key, |_, _| ()), leaf, "separators lead to the entry");
                keys.push(key);
            }
            entries += node.ops.len();
            heap_bytes += node.heap_bytes();
            (previous, leaf) = (leaf, node.next);
        }
        assert_eq!(previous, self.last_leaf);
        assert_eq!(entries, self.len);
        assert!(keys.is_sorted_by(|a, b| a < b));
        for inner in &self.inners {
            assert_eq!(inner.children.len(), inner.separators.len() + 1);
            heap_bytes += inner.separators.iter().map(|separator| separator.len()).sum::<usize>();
        }
        assert_eq!(heap_bytes, self.heap_bytes);
    }
}

impl Leaf {
    fn new() -> Leaf {
        Leaf { prefixes: Vec::new(), ops: Vec::new(), previous: NO_LEAF, next: NO_LEAF }
    }

    fn with_capacity() -> Leaf {
        let (prefixes, ops) = (Vec::with_capacity(LEAF_ENTRIES), Vec::with_capacity(LEAF_ENTRIES));
        Leaf { prefixes, ops, ..Leaf::new() }
    }

    fn heap_bytes(&self) -> usize {
        self.prefixes.capacity() * size_of::<u64>() + self.ops.capacity() * size_of::<OpNumber>()
    }

    /// The first entry with a key not below `key`, and whether it is `key`.
    fn lower_bound(&self, log: &OpLog, prefix: u64, key: &[u8]) -> (usize, bool) {
        let mut position = self.prefixes.partition_point(|p| *p < prefix);
        let same = &self.prefixes[position..];
        if same.first() != Some(&prefix) {
            return (position, false);
        }
        let same = same.partition_point(|p| *p == prefix);
        position += self.ops[position..position + same].partition_point(|op| log.key(*op) < key);
        (position, self.ops.get(position).is_some_and(|op| log.key(*op) == key))
    }
}

impl Inner {
    /// Room for one child more than it keeps, so that a split follows an insert.
    fn with_capacity() -> Inner {
        Inner {
            prefixes: Vec::with_capacity(FANOUT + 1),
            separators: Vec::with_capacity(FANOUT + 1),
            children: Vec::with_capacity(FANOUT + 1),
        }
    }

    /// Position of the child that holds `key`.
    fn child_of(&self, prefix: u64, key: &[u8]) -> usize {
        let position = self.prefixes.partition_point(|p| *p < prefix);
        let same = self.prefixes[position..].partition_point(|p| *p == prefix);
        position + self.separators[position..position + same].partition_point(|s| **s <= *key)
    }

    /// Moves the right half, or only the last child when that was appended, to a new node; the
    /// separator between the two belongs to the parent.
    fn split(&mut self, appended: bool) -> (Box<[u8]>, Inner) {
        let middle = if appended { self.separators.len() - 1 } else { self.separators.len() / 2 };
        let mut right = Inner::with_capacity();
        right.prefixes.extend(self.prefixes.drain(middle + 1..));
        right.separators.extend(self.separators.drain(middle + 1..));
        right.children.extend(self.children.drain(middle + 1..));
        self.prefixes.truncate(middle);
        let promoted = self.separators.pop().expect("the node is full");
        (promoted, right)
    }
}

/// The first eight of `key`'s bytes as a number that orders as they do, zeros in
/// place of missing ones.
#[inline]
fn prefix_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => key
            .iter()
            .fold(0u64, |n, byte| (n << 8) | u64::from(*byte))
            .checked_shl(64 - 8 * key.len() as u32)
            .unwrap_or(0),
    }
}

/// The shortest bytes above `left` and not above `right`.
fn shortest_separator(left: &[u8], right: &[u8]) -> Box<[u8]> {
    debug_assert!(left < right);
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    right[..=common].into()
}

#[cfg(test)]
mod tests {
    use super::super::log::NO_OP;
    use super::*;

    fn insert_all(keys: impl Iterator<Item = Vec<u8>>) -> (OpLog, Index) {
        let (mut log, mut index) = (OpLog::default(), Index::default());
        for key in keys {
            let slot = index.find(&log, &key).unwrap_err();
            let op = log.push(0, &key, Some(b"v"), NO_OP);
            index.insert(&log, slot, op);
        }
        index.check(&log);
        (log, index)
    }

    /// A permutation of 0..n for n a power of two.
    fn shuffled(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(move |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(12345) % n)
    }

    #[test]
    fn keys_in_any_order_are_found_and_walked_in_order_both_ways() {
        let n = 32_768;
        let orders: [Vec<u64>; 3] = [(0..n).collect(), (0..n).rev().collect(), shuffled(n).collect()];
        for order in orders {
            // Twelve bytes with a common beginning: prefixes alone do not decide.
            let key = |i: &u64| [&b"\0\0\0\0"[..], &i.to_be_bytes()].concat();
            let (log, index) = insert_all(order.iter().map(key));
            let mut at = index.first();
            for i in 0..n {
                let slot = at.unwrap();
                assert_eq!(log.key(index.op(slot)), key(&i));
                assert_eq!(index.find(&log, &key(&i)), Ok(slot));
                at = index.after(slot);
            }
            assert_eq!(at, None);
            let back = std::iter::successors(index.last(), |slot| index.before(*slot)).count();
            assert_eq!(back, n as usize);
        }
    }

    #[test]
    fn ascending_inserts_fill_every_leaf() {
        let (_, index) = insert_all((0..100_000u64).map(|i| i.to_be_bytes().to_vec()));
        assert_eq!(index.leaves.len(), 100_000usize.div_ceil(LEAF_ENTRIES));
    }

    #[test]
    fn walks_skip_leaves_emptied_by_removal() {
        let (log, mut index) = insert_all((0..10_000u64).map(|i| i.to_be_bytes().to_vec()));
        for i in (1..9_999u64).rev() {
            let slot = index.find(&log, &i.to_be_bytes()).unwrap();
            index.remove(slot);
        }
        index.check(&log);
        let first = index.first().unwrap();
        assert_eq!(log.key(index.op(index.after(first).unwrap())), 9_999u64.to_be_bytes());
        let last = index.last().unwrap();
        assert_eq!(index.before(last), Some(first));
        index.remove(last);
        index.remove(first);
        assert!(index.is_empty() && index.inners.is_empty());
        index.check(&log);
    }

    #[test]
    fn a_common_beginning_is_shortened_by_keys_that_do_not_have_it() {
        let beginnings: [&[u8]; 6] =
            [b"0123456789abcdefghij", b"0123456789abcdeX", b"0123456789X", b"01234", b"9", b""];
        let all = beginnings.map(|beginning| {
            shuffled(1024).map(move |i| [beginning, &i.to_be_bytes()].concat()).collect::<Vec<_>>()
        });
        let (log, index) = insert_all(all[..1].concat().into_iter());
        assert_eq!(index.common, b"0123456789abcdefghij\0\0\0\0");
        assert!(index.find(&log, b"0") == Err(Slot { leaf: 0, position: 0 }));
        assert!(index.find(&log, b"1") == Err(index.end()));
        let (_, index) = insert_all(all[..3].concat().into_iter());
        assert_eq!(index.common, b"01234567");
        let (log, index) = insert_all(all.concat().into_iter());
        assert_eq!(index.common, b"");
        assert!(all.concat().iter().all(|key| index.find(&log, key).is_ok()));
    }

    #[test]
    fn prefixes_order_as_keys_do() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"\0\x01", b"a", b"a\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\x01", b"b"];
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.map(prefix_of).is_sorted());
        assert_eq!(prefix_of(b"b"), 0x6200_0000_0000_0000);
    }

    #[test]
    fn separators_are_cut_short() {
        assert_eq!(*shortest_separator(b"abcd", b"abxy"), *b"abx");
        assert_eq!(*shortest_separator(b"ab", b"ab\0\0"), *b"ab\0");
        assert_eq!(*shortest_separator(b"", b"q"), *b"q");
    }
}
