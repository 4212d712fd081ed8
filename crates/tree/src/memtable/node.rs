//! A node of the memtable's index: up to [`SLOTS`] items in order, and for inner nodes as many children.
//!
//! ```text
//!   version | level | len | next | high head | high | heads ... | items ... | children --> ... (inner nodes only)
//! ```
//! `heads` are the items' first eight key bytes as numbers, side by side, so that a search touches few cache lines and
//! looks at a record only where heads are equal. Child `i` has what lies from item `i` on and before item `i + 1`; item 0
//! says nothing: what is before it is not looked for in this node. `next` is the node to the right, `high` the first item there
//! (and `high_head` its head).
//!
//! **Who changes a node holds its lock**: an odd `version`. Readers take no lock: they read, and read again if the version
//! has changed meanwhile (a seqlock; every field they may read at the same time is atomic). What a reader may hold
//! is valid whatever happens, because neither items nor nodes go before the memtable does.

use std::cmp::Ordering as Order;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::Backoff;

use super::arena::{Arena, ALIGN};
use super::stored::{Item, Probe, Stored};

/// Most items of a node. The unit tests have trees of many levels.
pub(super) const SLOTS: usize = if cfg!(test) { 6 } else { 64 };

/// See the head of this file.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Node {
    version: AtomicU64,
    level: u32,
    len: AtomicU32,
    next: AtomicPtr<Node>,
    high_head: AtomicU64,
    high: AtomicPtr<Stored>,
    heads: [AtomicU64; SLOTS],
    items: [AtomicPtr<Stored>; SLOTS],
    /// None in a leaf.
    children: Option<NonNull<Children>>,
}

type Children = [AtomicPtr<Node>; SLOTS];

const _: () = assert!(align_of::<Node>() <= ALIGN && align_of::<Children>() <= ALIGN);

/// Sends for a node's memory.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn prefetch(node: &Node) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    const LINE_BYTES: usize = 64;
    let start = std::ptr::from_ref(node).cast::<i8>();
    // Nodes do not begin where lines do.
    let into_line = start.addr() % LINE_BYTES;
    for offset in (0..into_line + size_of::<Node>()).step_by(LINE_BYTES) {
        // SAFETY: it is a hint, which reads nothing, of a line that has some of the node.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_sub(into_line).wrapping_add(offset)) };
    }
}

/// For other processors there is no stable way to say it, and an interpreter has nothing to wait for.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn prefetch(_: &Node) {}

/// A place between two items, beside a probe. Searches lead to the nodes with the nearest item to the left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// An item that is equal to the probe is to the right.
    Before,
    /// An item that is equal to the probe is to the left: the probe is there, or is to be put there.
    After,
}

/// Where a search goes on.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Right(&'a Node),
    Down(&'a Node),
    Here,
}

/// Items of a leaf, copied at one moment, and the leaf that was to the right of it then.
#[derive(Debug)]
pub(super) struct LeafCopy<'a> {
    items: [Option<Item<'a>>; SLOTS],
    pub(super) len: usize,
    pub(super) next: Option<&'a Node>,
}

impl<'a> LeafCopy<'a> {
    pub(super) fn empty() -> LeafCopy<'a> {
        LeafCopy { items: [None; SLOTS], len: 0, next: None }
    }

    pub(super) fn item(&self, at: usize) -> Option<Item<'a>> {
        self.items[..self.len].get(at).copied().flatten()
    }
}

impl Node {
    /// A node with no items.
    pub(super) fn new(arena: &Arena, level: u32) -> &Node {
        let children = (level > 0).then(|| {
            let place = arena.take(size_of::<Children>()).cast::<Children>();
            // SAFETY: the piece is nobody else's, large enough and aligned.
            unsafe { place.write([const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS]) };
            place
        });
        let place = arena.take(size_of::<Node>()).cast::<Node>();
        // SAFETY: as above; the piece lives as long as the arena.
        unsafe {
            place.write(Node {
                version: AtomicU64::new(0),
                level,
                len: AtomicU32::new(0),
                next: AtomicPtr::default(),
                high_head: AtomicU64::new(0),
                high: AtomicPtr::default(),
                heads: [const { AtomicU64::new(0) }; SLOTS],
                items: [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS],
                children,
            });
            place.as_ref()
        }
    }

    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// How many items it has. Anything may have been added since, unless the caller holds its lock.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    fn children(&self) -> &Children {
        let children = self.children.expect("leaves have no children");
        // SAFETY: made by `new`, in the arena in which this node is.
        unsafe { children.as_ref() }
    }

    // --- read without a lock --------------------------------------------------------------

    /// What `look` finds while nobody changes the node. It may be called several times, and sees a mixture of states
    /// (then what it says is not used).
    fn read<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let backoff = Backoff::new();
        loop {
            let before = self.version.load(Ordering::Acquire);
            if before & 1 == 0 {
                let found = look();
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return found.expect("a node that nobody changes has all of its items");
                }
            }
            backoff.snooze();
        }
    }

    fn item<'a>(&'a self, at: usize) -> Option<Item<'a>> {
        let place = NonNull::new(self.items.get(at)?.load(Ordering::Acquire))?;
        // SAFETY: whoever stored the place had made the item, or read the place, before; items live as long as nodes do.
        Some(unsafe { Item::at(place) })
    }

    fn neighbour(&self) -> Option<&Node> {
        // SAFETY: null, or a node of the same arena, completed before it was stored.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn child(&self, at: usize) -> Option<&Node> {
        // SAFETY: as for `neighbour`.
        unsafe { self.children().get(at)?.load(Ordering::Acquire).as_ref() }
    }

    /// How the item stands to the probe.
    fn compare(&self, at: usize, probe: &Probe<'_>) -> Option<Order> {
        match self.heads[at].load(Ordering::Relaxed).cmp(&probe.head) {
            Order::Equal => Some(probe.compare_item(self.item(at)?)),
            unequal => Some(unequal),
        }
    }

    /// Of the items from `first` on, how many lie left of the edge; counted from 0.
    fn rank(&self, first: usize, probe: &Probe<'_>, edge: Edge) -> Option<usize> {
        let (mut low, mut high) = (first, self.len().min(SLOTS));
        while low < high {
            let middle = low.midpoint(high);
            let order = self.compare(middle, probe)?;
            if order.is_lt() || (edge == Edge::After && order.is_eq()) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Whether all that lies left of the edge and is nearest to it is in nodes to the right.
    fn is_beyond(&self, probe: &Probe<'_>, edge: Edge) -> bool {
        let Some(place) = NonNull::new(self.high.load(Ordering::Acquire)) else { return false };
        let order = match self.high_head.load(Ordering::Relaxed).cmp(&probe.head) {
            // SAFETY: as in `item`.
            Order::Equal => probe.compare_item(unsafe { Item::at(place) }),
            unequal => unequal,
        };
        order.is_lt() || (edge == Edge::After && order.is_eq())
    }

    /// Where a search for the probe goes on that is to end at this level.
    pub(super) fn step(&self, probe: &Probe<'_>, edge: Edge, level: u32) -> Step<'_> {
        self.read(|| {
            if self.is_beyond(probe, edge) {
                return self.neighbour().map(Step::Right);
            }
            if self.level == level {
                return Some(Step::Here);
            }
            let at = self.rank(1, probe, edge)? - 1;
            self.child(at).map(Step::Down)
        })
    }

    /// Sends for the memory of the child that a search for the probe comes to next, without waiting for it. A hint: if the node is changed
    /// meanwhile, it may be another one's.
    ///
    /// Gives that child, and does nothing if it is `sent`.
    pub(super) fn prefetch_child(&self, probe: &Probe<'_>, sent: Option<&Node>) -> Option<&Node> {
        let at = self.rank(1, probe, Edge::After).map_or(0, |rank| rank - 1);
        let child = self.child(at)?;
        if !sent.is_some_and(|sent| std::ptr::eq(sent, child)) {
            prefetch(child);
        }
        Some(child)
    }

    /// The first or the last child; the last node of a level may have got a neighbour since.
    pub(super) fn outermost(&self, is_last: bool) -> Step<'_> {
        self.read(|| match self.neighbour() {
            Some(next) if is_last => Some(Step::Right(next)),
            _ if self.level == 0 => Some(Step::Here),
            _ => self.child(if is_last { self.len().saturating_sub(1) } else { 0 }).map(Step::Down),
        })
    }

    /// All items of a leaf.
    pub(super) fn copy(&self) -> LeafCopy<'_> {
        self.read(|| self.copy_slots(0..self.len()))
    }

    /// The items of a leaf left or right of the edge. `None`: the leaf does not have it any more.
    pub(super) fn copy_part(&self, probe: &Probe<'_>, edge: Edge, is_left: bool) -> Option<LeafCopy<'_>> {
        self.read(|| {
            if self.is_beyond(probe, edge) {
                return Some(None);
            }
            let at = self.rank(0, probe, edge)?;
            self.copy_slots(if is_left { 0..at } else { at..self.len() }).map(Some)
        })
    }

    fn copy_slots(&self, slots: Range<usize>) -> Option<LeafCopy<'_>> {
        let mut copy = LeafCopy::empty();
        for at in slots {
            copy.items[copy.len] = Some(self.item(at)?);
            copy.len += 1;
        }
        copy.next = self.neighbour();
        Some(copy)
    }

    /// The first item right of the edge (`Ok`), or the leaf where it would be.
    pub(super) fn first_from(&self, probe: &Probe<'_>, edge: Edge) -> Result<Item<'_>, Option<&Node>> {
        self.read(|| {
            if self.is_beyond(probe, edge) {
                return Some(Err(self.neighbour()));
            }
            let at = self.rank(0, probe, edge)?;
            Some(if at < self.len() { Ok(self.item(at)?) } else { Err(self.neighbour()) })
        })
    }

    // --- changed with its lock ------------------------------------------------------------

    /// Locks it. Whoever holds a node's lock waits for nothing.
    pub(super) fn lock(&self) -> Locked<'_> {
        let backoff = Backoff::new();
        loop {
            let version = self.version.load(Ordering::Relaxed);
            let is_free = version & 1 == 0;
            if is_free
                && self
                    .version
                    .compare_exchange_weak(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                // What is stored from here on is not seen without the odd version.
                fence(Ordering::Release);
                return Locked { node: self, version };
            }
            backoff.snooze();
        }
    }
}

/// A node that the holder may change.
pub(super) struct Locked<'a> {
    node: &'a Node,
    version: u64,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.node.version.store(self.version + 2, Ordering::Release);
    }
}

impl<'a> Locked<'a> {
    pub(super) fn len(&self) -> usize {
        self.node.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == SLOTS
    }

    /// The node to the right, if that is where the probe belongs.
    pub(super) fn right_for(&self, probe: &Probe<'_>) -> Option<&'a Node> {
        self.node
            .is_beyond(probe, Edge::After)
            .then(|| self.node.neighbour().expect("there is a node from `high` on"))
    }

    /// Where the probe belongs among the items from `first` on, and whether there is one equal to it.
    pub(super) fn place_of(&self, first: usize, probe: &Probe<'_>) -> (usize, bool) {
        let at = self.node.rank(first, probe, Edge::Before).expect("nobody else changes the node");
        (at, at < self.len() && self.node.compare(at, probe).is_some_and(Order::is_eq))
    }

    pub(super) fn first_item(&self) -> Option<Item<'a>> {
        self.node.item(0)
    }

    /// Stores an item in the place of an equal one.
    pub(super) fn replace(&mut self, at: usize, item: Item<'_>) {
        self.node.items[at].store(item.place().as_ptr(), Ordering::Release);
    }

    /// Puts an item before the one at `at`; with a child in an inner node. Requires: not full.
    pub(super) fn insert(&mut self, at: usize, head: u64, item: Item<'_>, child: Option<&Node>) {
        let (node, len) = (self.node, self.len());
        assert!(len < SLOTS && at <= len, "a node with room");
        debug_assert_eq!(child.is_some(), node.level > 0);
        for from in (at..len).rev() {
            node.move_slot(from, node, from + 1);
        }
        node.heads[at].store(head, Ordering::Relaxed);
        // So that whoever reads the place finds the item complete.
        node.items[at].store(item.place().as_ptr(), Ordering::Release);
        if let Some(child) = child {
            node.children()[at].store(std::ptr::from_ref(child).cast_mut(), Ordering::Release);
        }
        node.len.store(len as u32 + 1, Ordering::Relaxed);
    }

    /// Moves the items from `keep` on to a new node, which becomes the one to the right. Gives it and its first item.
    pub(super) fn divide(&mut self, arena: &'a Arena, keep: usize) -> (&'a Node, Item<'a>) {
        let (node, len) = (self.node, self.len());
        assert!(0 < keep && keep < len, "both have items");
        let right = Node::new(arena, node.level);
        for from in keep..len {
            node.move_slot(from, right, from - keep);
        }
        right.len.store((len - keep) as u32, Ordering::Relaxed);
        right.next.store(node.next.load(Ordering::Relaxed), Ordering::Relaxed);
        right.high_head.store(node.high_head.load(Ordering::Relaxed), Ordering::Relaxed);
        right.high.store(node.high.load(Ordering::Relaxed), Ordering::Relaxed);
        let first = node.item(keep).expect("it has been there");
        // Now it can be found.
        node.next.store(std::ptr::from_ref(right).cast_mut(), Ordering::Release);
        node.high_head.store(node.heads[keep].load(Ordering::Relaxed), Ordering::Relaxed);
        node.high.store(first.place().as_ptr(), Ordering::Release);
        node.len.store(keep as u32, Ordering::Relaxed);
        (right, first)
    }
}

impl Node {
    /// Copies a slot. The caller holds the locks of both, or the other one is nobody else's yet.
    fn move_slot(&self, from: usize, other: &Node, to: usize) {
        other.heads[to].store(self.heads[from].load(Ordering::Relaxed), Ordering::Relaxed);
        other.items[to].store(self.items[from].load(Ordering::Relaxed), Ordering::Release);
        if self.level > 0 {
            other.children()[to].store(self.children()[from].load(Ordering::Relaxed), Ordering::Release);
        }
    }
}
