//! Nodes, leaves and what hangs on them: the immutable shape of the tree.
//!
//! ```text
//!   Node 7   pivots      g         p
//!            children  [0]  |  [1]  |  [2]        each: passed = 4, pending = estimate
//!            buffer    order 6: run 31            newest first
//!                      order 5: run 28
//!                      order 4: run 25            unpassed only for children with passed < 4
//! ```
//!
//! Child `i` covers the keys from pivot `i-1` (inclusive) to pivot `i` (exclusive). A run is always
//! read clipped to the range of the child it is read for, so several nodes may share one run. A
//! child has been given every buffer run with an order up to its `passed`; a run leaves the buffer
//! when every child whose range it touches has passed it. Orders grow with recency (I3).

use std::sync::{Arc, OnceLock};

use pando_base::{limits, Kind, NodeId, Seqno};
use pando_run::{Estimate, Run};
use pando_storage::Extent;

use crate::config::TreeConfig;

/// A key shared by the copies that edits make of a node.
pub(crate) type Key = Arc<[u8]>;

/// Score at which a flush or compaction is due.
pub(crate) const SCORE_DUE: u64 = 1000;
/// Score from which a child is flushed when its parent's buffer has too many runs.
pub(crate) const SCORE_WORTHWHILE: u64 = 500;

/// A range of keys: from `lo` (inclusive, none = from the start) to `hi` (exclusive, none = to the
/// end).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub lo: Option<Key>,
    pub hi: Option<Key>,
}

impl KeyRange {
    /// The low end as a key: nothing sorts before the empty one.
    pub(crate) fn low(&self) -> &[u8] {
        self.lo.as_deref().unwrap_or(b"")
    }

    pub(crate) fn hi(&self) -> Option<&[u8]> {
        self.hi.as_deref()
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.low() <= key && self.hi().is_none_or(|hi| key < hi)
    }

    /// Whether `run` may hold keys in it.
    pub(crate) fn overlaps(&self, run: &Run) -> bool {
        let meta = run.meta();
        meta.max_key.as_slice() >= self.low() && self.hi().is_none_or(|hi| meta.min_key.as_slice() < hi)
    }

    /// Whether all of `run` lies in it.
    pub(crate) fn encloses(&self, run: &Run) -> bool {
        let meta = run.meta();
        self.contains(&meta.min_key) && self.contains(&meta.max_key)
    }
}

/// A run in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct BufferRun {
    pub order: u64,
    /// Written as runs of leaves are, so it may become a leaf by reference.
    pub leaf_ready: bool,
    pub run: Arc<Run>,
}

/// A leaf: small, and kept inside its parent.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub id: NodeId,
    /// Newest first; none for an empty leaf.
    pub runs: Vec<Arc<Run>>,
    /// What is in the runs within the leaf's range.
    pub held: Estimate,
    /// Oldest live snapshot when it was written: merging it again before this has moved drops
    /// nothing more. Not kept on disk.
    pub horizon: Seqno,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Leaf(Arc<Leaf>),
    Node(Arc<Node>),
}

/// A child slot of a node.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub body: Body,
    /// All buffer runs of the parent with order <= this have been given to the child.
    pub passed: u64,
    /// What waits for it in the parent's buffer.
    pub pending: Estimate,
}

impl Child {
    pub(crate) fn leaf(leaf: Leaf, passed: u64, pending: Estimate) -> Child {
        Child { body: Body::Leaf(Arc::new(leaf)), passed, pending }
    }

    pub(crate) fn id(&self) -> NodeId {
        match &self.body {
            Body::Leaf(leaf) => leaf.id,
            Body::Node(node) => node.id,
        }
    }

    /// How urgently what waits for it should be flushed: [`SCORE_DUE`] means now.
    pub(crate) fn score(&self, config: &TreeConfig) -> u64 {
        let due = match self.body {
            Body::Leaf(_) => config.leaf_flush_bytes(),
            Body::Node(_) => config.node_flush_bytes(),
        };
        self.debt().saturating_mul(SCORE_DUE) / due
    }

    /// What waits for it, in bytes, with tombstones weighted.
    fn debt(&self) -> u64 {
        let tombstone = match self.body {
            Body::Leaf(_) => limits::TOMBSTONE_DEBT_BYTES,
            Body::Node(_) => limits::TOMBSTONE_DEBT_INNER_BYTES,
        };
        self.pending.bytes + self.pending.tombstones * tombstone
    }

    /// Nothing at all is below it.
    pub(crate) fn is_vacant(&self) -> bool {
        match &self.body {
            Body::Leaf(leaf) => leaf.runs.is_empty(),
            Body::Node(node) => {
                node.buffer.is_empty() && node.children.len() == 1 && node.children[0].is_vacant()
            }
        }
    }
}

/// Sums over a subtree, computed when a node is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Records in leaves.
    pub held: Estimate,
    /// Records waiting in buffers.
    pub waiting: Estimate,
    pub leaves: u64,
    pub nodes: u64,
    /// Levels of internal nodes.
    pub height: u64,
    /// Highest score of a flush or compaction in the subtree.
    pub heat: u64,
    /// Waiting bytes beyond twice what the policy lets wait.
    pub overdue: u64,
}

/// An internal node. Immutable but for its place on disk.
#[derive(Debug)]
pub(crate) struct Node {
    pub id: NodeId,
    pub pivots: Vec<Key>,
    pub children: Vec<Child>,
    pub buffer: Vec<BufferRun>,
    pub next_order: u64,
    pub totals: Totals,
    /// Where its block is on disk; set by checkpoints only.
    pub place: OnceLock<Extent>,
}

impl Node {
    /// The child whose range holds `key`.
    pub(crate) fn child_at(&self, key: &[u8]) -> usize {
        self.pivots.partition_point(|pivot| pivot.as_ref() <= key)
    }

    /// The child that may hold the largest key below `key`; without one the last child.
    pub(crate) fn child_before(&self, key: Option<&[u8]>) -> usize {
        match key {
            Some(key) => self.pivots.partition_point(|pivot| pivot.as_ref() < key),
            None => self.pivots.len(),
        }
    }

    /// Range of child `index` in a node that covers `range`.
    pub(crate) fn child_range(&self, index: usize, range: &KeyRange) -> KeyRange {
        child_range(&self.pivots, index, range)
    }

    /// The newest order in the buffer; what a flush of everything makes a child's `passed`.
    pub(crate) fn newest_order(&self) -> u64 {
        self.next_order - 1
    }

    /// Buffer runs that child `index` has not been given, newest first.
    pub(crate) fn unpassed(&self, index: usize) -> impl Iterator<Item = &BufferRun> {
        let passed = self.children[index].passed;
        self.buffer.iter().take_while(move |run| run.order > passed)
    }

    /// A copy to be changed.
    pub(crate) fn parts(&self) -> NodeParts {
        NodeParts {
            id: self.id,
            pivots: self.pivots.clone(),
            children: self.children.clone(),
            buffer: self.buffer.clone(),
            next_order: self.next_order,
        }
    }

    /// How urgently the number or the waste of buffer runs should be reduced.
    pub(crate) fn buffer_score(&self, config: &TreeConfig) -> u64 {
        buffer_score(&self.buffer, &self.children, config)
    }
}

/// Range of child `index` among `pivots` in a node that covers `range`.
pub(crate) fn child_range(pivots: &[Key], index: usize, range: &KeyRange) -> KeyRange {
    KeyRange {
        lo: if index == 0 { range.lo.clone() } else { Some(pivots[index - 1].clone()) },
        hi: pivots.get(index).cloned().or_else(|| range.hi.clone()),
    }
}

/// Whether the runs hold far more than what waits: passed records take space until they are merged.
pub(crate) fn is_wasteful(buffer: &[BufferRun], children: &[Child], config: &TreeConfig) -> bool {
    let raw: u64 = buffer.iter().map(|run| run.run.meta().raw_bytes).sum();
    let waiting: u64 = children.iter().map(|child| child.pending.bytes).sum();
    raw > 4 * waiting + 2 * config.leaf_raw_bytes
}

fn buffer_score(buffer: &[BufferRun], children: &[Child], config: &TreeConfig) -> u64 {
    let runs = buffer.len() as u64;
    let max = config.buffer_runs_max as u64;
    if runs > max {
        runs * SCORE_DUE / max
    } else if is_wasteful(buffer, children, config) {
        SCORE_DUE
    } else {
        0
    }
}

/// A node being made.
#[derive(Debug)]
pub(crate) struct NodeParts {
    pub id: NodeId,
    pub pivots: Vec<Key>,
    pub children: Vec<Child>,
    pub buffer: Vec<BufferRun>,
    pub next_order: u64,
}

impl NodeParts {
    /// A node with one empty leaf: an empty tree.
    pub(crate) fn empty(id: NodeId, leaf: NodeId) -> NodeParts {
        let leaf = Leaf { id: leaf, runs: Vec::new(), held: Estimate::default(), horizon: 0 };
        NodeParts {
            id,
            pivots: Vec::new(),
            children: vec![Child::leaf(leaf, 0, Estimate::default())],
            buffer: Vec::new(),
            next_order: 1,
        }
    }

    /// Puts a run on top of the buffer: it is newer than everything in the node.
    pub(crate) fn push(&mut self, run: Arc<Run>, leaf_ready: bool) {
        self.buffer.insert(0, BufferRun { order: self.next_order, leaf_ready, run });
        self.next_order += 1;
    }

    /// Drops the runs that every child they touch has been given.
    pub(crate) fn prune(&mut self, range: &KeyRange) {
        let NodeParts { pivots, children, buffer, .. } = self;
        buffer.retain(|entry| {
            let meta = entry.run.meta();
            if !range.overlaps(&entry.run) {
                return false;
            }
            let first = pivots.partition_point(|pivot| pivot.as_ref() <= meta.min_key.as_slice());
            let last = pivots.partition_point(|pivot| pivot.as_ref() <= meta.max_key.as_slice());
            children[first..=last].iter().any(|child| child.passed < entry.order)
        });
    }

    /// The finished node.
    pub(crate) fn build(self, config: &TreeConfig) -> Arc<Node> {
        assert_eq!(self.pivots.len() + 1, self.children.len(), "node {}: pivots and children", self.id);
        debug_assert!(self.pivots.windows(2).all(|pair| pair[0] < pair[1]), "node {}: pivots", self.id);
        debug_assert!(self.buffer.windows(2).all(|pair| pair[0].order > pair[1].order));
        debug_assert!(self.buffer.first().is_none_or(|run| run.order < self.next_order));
        debug_assert!(self.children.iter().all(|child| child.passed < self.next_order));
        let totals = totals(&self.children, &self.buffer, config);
        Arc::new(Node {
            id: self.id,
            pivots: self.pivots,
            children: self.children,
            buffer: self.buffer,
            next_order: self.next_order,
            totals,
            place: OnceLock::new(),
        })
    }
}

fn totals(children: &[Child], buffer: &[BufferRun], config: &TreeConfig) -> Totals {
    let mut totals = Totals { nodes: 1, heat: buffer_score(buffer, children, config), ..Totals::default() };
    let (mut owed, mut allowed) = (0, 0);
    for child in children {
        totals.heat = totals.heat.max(child.score(config));
        owed += child.debt();
        add(&mut totals.waiting, &child.pending);
        match &child.body {
            Body::Leaf(leaf) => {
                allowed += 2 * config.leaf_flush_bytes();
                totals.leaves += 1;
                add(&mut totals.held, &leaf.held);
            }
            Body::Node(node) => {
                allowed += 2 * config.node_flush_bytes();
                let below = &node.totals;
                add(&mut totals.held, &below.held);
                add(&mut totals.waiting, &below.waiting);
                totals.leaves += below.leaves;
                totals.nodes += below.nodes;
                totals.height = totals.height.max(below.height);
                totals.heat = totals.heat.max(below.heat);
                totals.overdue += below.overdue;
            }
        }
    }
    totals.height += 1;
    totals.overdue += owed.saturating_sub(allowed.max(4 * config.node_flush_bytes()));
    totals
}

/// Adds `more` to `sum`.
pub(crate) fn add(sum: &mut Estimate, more: &Estimate) {
    sum.rows += more.rows;
    sum.bytes += more.bytes;
    sum.tombstones += more.tombstones;
}

/// What is left of `sum` without `less`, at least nothing.
pub(crate) fn subtract(sum: &Estimate, less: &Estimate) -> Estimate {
    Estimate {
        rows: sum.rows.saturating_sub(less.rows),
        bytes: sum.bytes.saturating_sub(less.bytes),
        tombstones: sum.tombstones.saturating_sub(less.tombstones),
    }
}

/// An even share of `sum` for one of `parts`.
pub(crate) fn share_of(sum: &Estimate, parts: usize) -> Estimate {
    let parts = parts.max(1) as u64;
    Estimate {
        rows: sum.rows.div_ceil(parts),
        bytes: sum.bytes.div_ceil(parts),
        tombstones: sum.tombstones.div_ceil(parts),
    }
}

/// Whether a version of this kind is a row.
#[inline]
pub(crate) fn is_row(kind: Kind) -> bool {
    kind == Kind::Put
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child of each kind for which so many tombstones wait, of no bytes.
    fn children(tombstones: u64, config: &TreeConfig) -> [Child; 2] {
        let pending = Estimate { rows: tombstones, bytes: 0, tombstones };
        let node = NodeParts::empty(NodeId(1), NodeId(2)).build(config);
        let leaf = Leaf { id: NodeId(3), runs: Vec::new(), held: Estimate::default(), horizon: 0 };
        [Child::leaf(leaf, 0, pending), Child { body: Body::Node(node), passed: 0, pending }]
    }

    #[test]
    fn tombstones_alone_make_a_flush_due_to_a_leaf_first() {
        let config = TreeConfig::default();
        let due = |tombstones| children(tombstones, &config).map(|child| child.score(&config) >= SCORE_DUE);
        assert_eq!(due(16_383), [false, false]);
        assert_eq!(due(16_384), [true, false]);
        assert_eq!(due(65_535), [true, false]);
        assert_eq!(due(65_536), [true, true]);
    }
}
