//! The ordered index of one dictionary in a write set: key -> newest op. An in-memory B+ tree of
//! op numbers; the keys' bytes stay in the op log.
//!
//! - Entries carry the first eight bytes of their key, so that most comparisons touch nothing else.
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
        let prefix = prefix_of(key);
        let leaf = match self.end_if_above_all(log, prefix, key) {
            Some(end) => return Err(end),
            None => self.descend(prefix, key, |_, _| ()),
        };
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
    pub(crate) fn insert(&mut self, log: &OpLog, slot: Slot, op: OpNumber) {
        let prefix = prefix_of(log.key(op));
        let slot = if self.leaves[slot.leaf as usize].ops.len() < LEAF_ENTRIES {
            slot
        } else {
            self.split(log, slot, op)
        };
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
        self.leaves.truncate(1);
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
        self.leaves.capacity() * size_of::<Leaf>() + self.inners.len() * INNER_BYTES + self.heap_bytes
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<Slot> {
        self.entry_from(Slot { leaf: 0, position: 0 })
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Slot> {
        let position = self.leaves[self.last_leaf as usize].ops.len() as u32;
        self.before(Slot { leaf: self.last_leaf, position })
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
    fn end_if_above_all(&self, log: &OpLog, prefix: u64, key: &[u8]) -> Option<Slot> {
        let leaf = &self.leaves[self.last_leaf as usize];
        let (last_prefix, last_op) = (leaf.prefixes.last()?, leaf.ops.last()?);
        let above = match prefix.cmp(last_prefix) {
            Ordering::Equal => key > log.key(*last_op),
            order => order == Ordering::Greater,
        };
        above.then_some(Slot { leaf: self.last_leaf, position: leaf.ops.len() as u32 })
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
        let found = self.descend(prefix_of(key), key, |inner, position| path.push((inner, position)));
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

        // 2. Between the two leaves the shortest separator.
        let right_min = right.ops.first().map_or(key, |first| log.key(*first));
        let separator = shortest_separator(log.key(left.ops[kept - 1]), right_min);

        // 3. Into the chain.
        left.next = new;
        match right.next {
            NO_LEAF => self.last_leaf = new,
            next => self.leaves[next as usize].previous = new,
        }
        self.leaves.push(right);
        self.add_child(path, separator, new);
        // An entry right at the border stays left: the separator was cut between the two halves.
        if position > kept || kept == LEAF_ENTRIES {
            Slot { leaf: new, position: (position - kept) as u32 }
        } else if position == kept && log.key(op) >= self.separator_before(new, log, op) {
            Slot { leaf: new, position: 0 }
        } else {
            slot
        }
    }
}
