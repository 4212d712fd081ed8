//! Path-copying edits: from a changed node to a new root, in memory, under the structure mutex.
//!
//! An edit copies the changed node and its ancestors. On the way up it tidies each: children with
//! nothing below them are removed by widening a neighbour, internal children with few children and
//! empty buffers become one, runs that every child has been given leave the buffer, and a node with too many children is split into even parts that share the
//! buffer's runs. A split root gets a new root above it; a root with a single child and an empty
//! buffer is replaced by the child.

use std::ops::Range;
use std::sync::Arc;

use pando_base::{NodeId, Result};
use pando_run::{Estimate, Run};

use crate::config::TreeConfig;
use crate::job_claims::{BusyTable, JobId};
use crate::node::{add, child_range, share_of, Body, Child, Key, KeyRange, Node, NodeParts};

/// A node on the way down, its range, and which child the way goes on to.
#[derive(Debug)]
pub(crate) struct Step {
    pub node: Arc<Node>,
    pub range: KeyRange,
    pub index: usize,
}

/// The path from the root towards `low`, ending with the first node for which `stop` says true of
/// the node and the index of its child on the path. `None` if there is none.
pub(crate) fn path_to(
    root: &Arc<Node>,
    low: &[u8],
    stop: impl Fn(&Node, usize) -> bool,
) -> Option<Vec<Step>> {
    let mut path = Vec::new();
    let mut node = root.clone();
    let mut range = KeyRange::default();
    loop {
        let index = node.child_at(low);
        let found = stop(&node, index);
        let below = node.child_range(index, &range);
        let next = match &node.children[index].body {
            Body::Node(child) => Some(child.clone()),
            Body::Leaf(_) => None,
        };
        path.push(Step { node, range, index });
        if found {
            return Some(path);
        }
        node = next?;
        range = below;
    }
}

/// The path to the node that has the child `child`, whose range begins at `low`.
pub(crate) fn path_to_parent_of(root: &Arc<Node>, low: &[u8], child: NodeId) -> Option<Vec<Step>> {
    path_to(root, low, |node, index| node.children[index].id() == child)
}

/// The path to the node `id`, whose range begins at `low`.
pub(crate) fn path_to_node(root: &Arc<Node>, low: &[u8], id: NodeId) -> Option<Vec<Step>> {
    path_to(root, low, |node, _| node.id == id)
}

/// What a node became: itself, or several after a split, with the keys between them.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub nodes: Vec<Arc<Node>>,
    pub pivots: Vec<Key>,
}

/// What an edit needs to know and may change beside the nodes.
pub(crate) struct Editor<'a> {
    pub config: &'a TreeConfig,
    pub busy: &'a mut BusyTable,
    pub job: JobId,
    pub new_node: &'a dyn Fn() -> NodeId,
    /// Nodes made by splits.
    pub splits: u64,
}

impl Editor<'_> {
    /// Changes the last node of `path` and gives the new root.
    pub(crate) fn edit(
        &mut self,
        mut path: Vec<Step>,
        change: impl FnOnce(&mut NodeParts, usize, &KeyRange),
    ) -> Arc<Node> {
        let step = path.pop().expect("a path has a node");
        let mut parts = step.node.parts();
        change(&mut parts, step.index, &step.range);
        let pieces = self.finish(parts, &step.range);
        self.climb(path, pieces)
    }

    /// Changes the last node of `path` and its slots in its parent: `slots` gets the parent and the
    /// indexes of what the node became. Gives the new root.
    pub(crate) fn edit_with_parent(
        &mut self,
        mut path: Vec<Step>,
        change: impl FnOnce(&mut NodeParts),
        slots: impl FnOnce(&mut NodeParts, Range<usize>),
    ) -> Arc<Node> {
        let step = path.pop().expect("a path has a node");
        let mut parts = step.node.parts();
        change(&mut parts);
        let pieces = self.finish(parts, &step.range);
        let above = path.pop().expect("the node has a parent");
        let mut parts = above.node.parts();
        let count = pieces.nodes.len();
        splice(&mut parts, above.index, pieces);
        slots(&mut parts, above.index..above.index + count);
        let pieces = self.finish(parts, &above.range);
        self.climb(path, pieces)
    }

    /// Puts `pieces` into the last node of `path` and so on up to a new root.
    fn climb(&mut self, mut path: Vec<Step>, mut pieces: Pieces) -> Arc<Node> {
        while let Some(step) = path.pop() {
            let mut parts = step.node.parts();
            splice(&mut parts, step.index, pieces);
            pieces = self.finish(parts, &step.range);
        }
        // A split root: a new one above, until there is a single node.
        while pieces.nodes.len() > 1 {
            let children = pieces.nodes.into_iter().map(|node| Child {
                body: Body::Node(node),
                passed: 0,
                pending: Estimate::default(),
            });
            let parts = NodeParts {
                id: (self.new_node)(),
                pivots: pieces.pivots,
                children: children.collect(),
                buffer: Vec::new(),
                next_order: 1,
            };
            pieces = self.finish(parts, &KeyRange::default());
        }
        let mut root = pieces.nodes.pop().expect("an edit leaves a root");
        loop {
            let only = match &root.children[..] {
                [Child { body: Body::Node(only), .. }] if root.buffer.is_empty() => only.clone(),
                _ => return root,
            };
            root = only;
        }
    }

    /// Tidies and builds a changed node that covers `range`.
    pub(crate) fn finish(&mut self, mut parts: NodeParts, range: &KeyRange) -> Pieces {
        self.remove_vacant(&mut parts, range);
        self.merge_thin(&mut parts, range);
        parts.prune(range);
        let count = parts.children.len();
        if count <= self.config.fanout_max || self.busy.is_exclusive_to_other(self.job, parts.id) {
            return Pieces { nodes: vec![parts.build(self.config)], pivots: Vec::new() };
        }
        self.split(parts, range)
    }

    fn split(&mut self, parts: NodeParts, range: &KeyRange) -> Pieces {
        let count = parts.children.len();
        let each_max = (self.config.fanout_max * 3 / 4).max(2);
        let pieces = count.div_ceil(each_max);
        self.splits += pieces as u64 - 1;
        let mut out = Pieces { nodes: Vec::new(), pivots: Vec::new() };
        let mut start = 0;
        for piece in 0..pieces {
            let end = count * (piece + 1) / pieces;
            let id = if piece == 0 {
                parts.id
            } else {
                let id = (self.new_node)();
                self.busy.split(parts.id, id);
                out.pivots.push(parts.pivots[start - 1].clone());
                id
            };
            let piece_range = KeyRange {
                lo: child_range(&parts.pivots, start, range).lo,
                hi: child_range(&parts.pivots, end - 1, range).hi,
            };
            let mut half = NodeParts {
                id,
                pivots: parts.pivots[start..end - 1].to_vec(),
                children: parts.children[start..end].to_vec(),
                buffer: parts.buffer.clone(),
                next_order: parts.next_order,
            };
            half.prune(&piece_range);
            out.nodes.push(half.build(self.config));
            start = end;
        }
        out
    }

    /// Removes children with nothing below and nothing waiting, where a neighbour can take over
    /// their range.
    fn remove_vacant(&self, parts: &mut NodeParts, range: &KeyRange) {
        let mut index = 0;
        while index < parts.children.len() && parts.children.len() > 1 {
            let child = &parts.children[index];
            let removable = child.is_vacant() && child.pending.rows == 0 && self.is_unheld(child);
            let heir = [index.checked_sub(1), Some(index + 1)]
                .into_iter()
                .flatten()
                .filter(|&heir| removable && heir < parts.children.len())
                .find(|&heir| self.can_widen(parts, heir, index, range));
            match heir {
                Some(heir) => {
                    let gone = parts.children[index].pending;
                    add(&mut parts.children[heir].pending, &gone);
                    parts.children.remove(index);
                    parts.pivots.remove(heir.min(index));
                }
                None => index += 1,
            }
        }
    }

    /// Makes one of neighbouring internal children with few children, where nothing is in their
    /// buffers: then their orders mean nothing any more and can begin anew.
    fn merge_thin(&self, parts: &mut NodeParts, range: &KeyRange) {
        let is_thin = |child: &Child| match &child.body {
            Body::Leaf(_) => None,
            Body::Node(node) => {
                let is_free = node.buffer.is_empty() && !self.busy.is_held_by_other(self.job, node.id);
                is_free.then_some(node.clone())
            }
        };
        let mut index = 0;
        while index + 1 < parts.children.len() {
            let pair = (is_thin(&parts.children[index]), is_thin(&parts.children[index + 1]));
            let (Some(left), Some(right)) = pair else {
                index += 1;
                continue;
            };
            let is_small = left.children.len() + right.children.len() <= self.config.fanout_max * 3 / 4;
            if !is_small || !Self::passed_alike(parts, index, index + 1, range) {
                index += 1;
                continue;
            }
            let mut pivots = left.pivots.clone();
            pivots.push(parts.pivots.remove(index));
            pivots.extend(right.pivots.iter().cloned());
            let children = left.children.iter().chain(&right.children);
            let merged = NodeParts {
                id: left.id,
                pivots,
                children: children.map(|child| Child { passed: 0, ..child.clone() }).collect(),
                buffer: Vec::new(),
                next_order: 1,
            };
            let gone = parts.children.remove(index + 1);
            let heir = &mut parts.children[index];
            add(&mut heir.pending, &gone.pending);
            heir.body = Body::Node(merged.build(self.config));
        }
    }

    fn is_unheld(&self, child: &Child) -> bool {
        !self.busy.is_held_by_other(self.job, child.id())
            && match &child.body {
                Body::Leaf(_) => true,
                Body::Node(node) => node.children.iter().all(|below| self.is_unheld(below)),
            }
    }

    /// Whether child `heir` may take over the range of its neighbour `gone`: nothing that was
    /// delivered to or dropped from the one may come back to life, and nothing waiting be lost.
    fn can_widen(&self, parts: &NodeParts, heir: usize, gone: usize, range: &KeyRange) -> bool {
        let gap = child_range(&parts.pivots, gone, range);
        Self::passed_alike(parts, heir, gone, range)
            && self.edge_is_clear(&parts.children[heir], heir < gone, &gap)
    }

    /// Whether `heir` was given just those runs that touch the range of `gone` which `gone` was given.
    fn passed_alike(parts: &NodeParts, heir: usize, gone: usize, range: &KeyRange) -> bool {
        let gap = child_range(&parts.pivots, gone, range);
        let (heir, gone) = (parts.children[heir].passed, parts.children[gone].passed);
        let mut touching = parts.buffer.iter().filter(|run| gap.overlaps(&run.run));
        touching.all(|run| (run.order <= heir) == (run.order <= gone))
    }

    /// No run on the edge of `child` reaches into `gap`, and no job relies on the edge's range.
    fn edge_is_clear(&self, child: &Child, right_edge: bool, gap: &KeyRange) -> bool {
        if self.busy.is_exclusive_to_other(self.job, child.id()) {
            return false;
        }
        match &child.body {
            Body::Leaf(leaf) => !leaf.runs.iter().any(|run| gap.overlaps(run)),
            Body::Node(node) => {
                let edge = if right_edge { node.children.last() } else { node.children.first() };
                !node.buffer.iter().any(|run| gap.overlaps(&run.run))
                    && edge.is_some_and(|edge| self.edge_is_clear(edge, right_edge, gap))
            }
        }
    }
}

/// Replaces child `index` by the nodes it became.
fn splice(parts: &mut NodeParts, index: usize, pieces: Pieces) {
    let old = parts.children[index].clone();
    let pending = share_of(&old.pending, pieces.nodes.len());
    let slots =
        pieces.nodes.into_iter().map(|node| Child { body: Body::Node(node), passed: old.passed, pending });
    parts.children.splice(index..=index, slots);
    parts.pivots.splice(index..index, pieces.pivots);
}

/// Records per child range of a node, counted while a run for its buffer is written. The children
/// may have been split meanwhile, so the counts are spread over whoever covers the ranges then.
#[derive(Clone, Debug)]
pub(crate) struct RangeCounts {
    pivots: Vec<Key>,
    counts: Vec<Estimate>,
    at: usize,
}

impl RangeCounts {
    pub(crate) fn new(node: &Node) -> RangeCounts {
        let counts = vec![Estimate::default(); node.children.len()];
        RangeCounts { pivots: node.pivots.clone(), counts, at: 0 }
    }

    /// Counts a record; keys ascend.
    pub(crate) fn record(&mut self, key: &[u8], count: &Estimate) {
        while self.pivots.get(self.at).is_some_and(|pivot| pivot.as_ref() <= key) {
            self.at += 1;
        }
        add(&mut self.counts[self.at], count);
    }

    /// Counts what a run holds for each child of `node`, which is that of `new` and covers `range`.
    pub(crate) fn estimate(&mut self, node: &Node, range: &KeyRange, run: &Run) -> Result<()> {
        for index in 0..node.children.len() {
            let below = node.child_range(index, range);
            if below.overlaps(run) {
                add(&mut self.counts[index], &run.estimate(below.lo.as_deref(), below.hi())?);
            }
        }
        Ok(())
    }

    /// Adds the counts to what waits for the children of `parts`.
    pub(crate) fn spread(&self, parts: &mut NodeParts) {
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| count.rows > 0) {
            let lo = index.checked_sub(1).map(|i| &self.pivots[i]);
            let first = lo.map_or(0, |lo| parts.pivots.partition_point(|pivot| pivot <= lo));
            let last = self
                .pivots
                .get(index)
                .map_or(parts.pivots.len(), |hi| parts.pivots.partition_point(|pivot| pivot < hi));
            let children = &mut parts.children[first..=last];
            let share = share_of(count, children.len());
            children.iter_mut().for_each(|child| add(&mut child.pending, &share));
        }
    }
}
