//! CHECK TABLE: reads every block and checks what the tree promises.
//!
//! 1. Each run by itself: blocks readable, order, counts, filters.
//! 2. The shape: pivots in order and within their node's range, orders in buffers, equal heights,
//!    ids once.
//! 3. I3, leaf by leaf: of each key, what is higher up on the path is newer.
//! 4. Counts of the leaves.

use std::collections::HashSet;

use pando_base::{Error, NodeId, Result, Seqno};
use pando_run::{Estimate, RunCursor};

use crate::estimate::distinct_runs;
use crate::merge_output::weight;
use crate::node::{add, Body, KeyRange, Leaf, Node};
use crate::source::{LeafView, Target};
use crate::tree::Tree;
use crate::version::TreeVersion;

impl Tree {
    /// Checks the tree as it is at the moment of the call; work goes on meanwhile.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn verify(&self) -> Result<()> {
        self.verify_while(&mut |_| true).map(|_| ())
    }

    /// The same, as long as `go_on` says so, which is told the part that is done before each run. False if it
    /// ended before all was looked at.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn verify_while(&self, go_on: &mut dyn FnMut(f64) -> bool) -> Result<bool> {
        let version = self.version.load_full();
        // After the version: a layout is known before anything of it is written, so those of all its runs are.
        let shapes = self.shapes();
        // 1.
        let runs = distinct_runs(&version);
        let all: u64 = runs.iter().map(|run| run.meta().disk_bytes).sum();
        let mut done = 0;
        for run in runs {
            if !go_on(done as f64 / all.max(1) as f64) {
                return Ok(false);
            }
            run.verify(&shapes)?;
            done += run.meta().disk_bytes;
        }
        let mut check = Check { tree: self, version: &version, ids: HashSet::new() };
        if let Some(first) = version.memtables().filter_map(|memtable| memtable.first_seqno()).min() {
            if first <= version.flushed {
                return Err(check.wrong(
                    None,
                    "memtable",
                    format!("commits above {}", version.flushed),
                    first,
                ));
            }
        }
        check.node(&version.root, &KeyRange::default(), None)?;
        Ok(true)
    }
}

struct Check<'a> {
    tree: &'a Tree,
    version: &'a TreeVersion,
    ids: HashSet<NodeId>,
}

impl Check<'_> {
    fn wrong(&self, node: Option<&Node>, what: &str, expected: impl ToString, found: impl ToString) -> Error {
        let offset = node.and_then(|node| node.place.get()).map_or(0, |extent| extent.place().offset);
        Error::corruption(&self.tree.ctx.file.path(), offset, what, expected, found)
    }

    fn id(&mut self, node: &Node, id: NodeId) -> Result<()> {
        if !self.ids.insert(id) {
            return Err(self.wrong(Some(node), "node id", "each id once", id));
        }
        Ok(())
    }

    /// 2.
    fn node(&mut self, node: &Node, range: &KeyRange, height: Option<u64>) -> Result<()> {
        self.id(node, node.id)?;
        if height.is_some_and(|height| height != node.totals.height) {
            return Err(self.wrong(Some(node), "height", height.unwrap_or(0), node.totals.height));
        }
        let bounds = range.lo.iter().chain(&node.pivots).chain(&range.hi);
        if !bounds.is_sorted_by(|a, b| a < b) {
            return Err(self.wrong(
                Some(node),
                "pivots",
                "ascending within the node's range",
                format!("{:?}", node.pivots),
            ));
        }
        let orders: Vec<u64> = node.buffer.iter().map(|entry| entry.order).collect();
        if !orders.is_sorted_by(|a, b| a > b) || orders.first().is_some_and(|order| *order >= node.next_order)
        {
            return Err(self.wrong(
                Some(node),
                "orders",
                format!("falling from below {}", node.next_order),
                format!("{orders:?}"),
            ));
        }
        for (index, child) in node.children.iter().enumerate() {
            let below = node.child_range(index, range);
            if child.passed >= node.next_order {
                return Err(self.wrong(
                    Some(node),
                    "passed",
                    format!("below {}", node.next_order),
                    child.passed,
                ));
            }
            match &child.body {
                Body::Node(inner) => self.node(inner, &below, Some(node.totals.height - 1))?,
                Body::Leaf(leaf) => {
                    if node.totals.height != 1 {
                        return Err(self.wrong(
                            Some(node),
                            "height of a leaf's parent",
                            1,
                            node.totals.height,
                        ));
                    }
                    self.id(node, leaf.id)?;
                    self.order(node, &below)?;
                    self.counts(node, leaf, &below)?;
                }
            }
        }
        Ok(())
    }

    /// 3.
    fn order(&self, node: &Node, range: &KeyRange) -> Result<()> {
        let view = LeafView::find(self.version, Target::Holding(range.low()));
        let mut cursors: Vec<RunCursor> = Vec::new();
        for run in &view.runs {
            let mut cursor = run.cursor().bypass_cache();
            cursor.seek(range.low())?;
            cursors.push(cursor);
        }
        let mut last: Option<(Vec<u8>, Seqno, usize)> = None;
        loop {
            let next = cursors
                .iter()
                .enumerate()
                .filter(|(_, cursor)| cursor.valid() && range.contains(cursor.key()))
                .min_by(|(_, a), (_, b)| {
                    let (a, b) = (a.record(), b.record());
                    pando_base::compare_versions((a.key, a.seqno), (b.key, b.seqno))
                })
                .map(|(rank, _)| rank);
            let Some(rank) = next else { return Ok(()) };
            let r = cursors[rank].record();
            if let Some((key, seqno, above)) = &last {
                // The same version twice: of a commit that adopted runs, the newest higher up.
                if key == r.key && *above > rank {
                    let found = format!("key {key:?}: version {seqno} below version {}", r.seqno);
                    return Err(self.wrong(Some(node), "order of versions", "newer ones higher up", found));
                }
            }
            last = Some((r.key.to_vec(), r.seqno, rank));
            cursors[rank].next()?;
        }
    }

    /// 4.
    fn counts(&self, node: &Node, leaf: &Leaf, range: &KeyRange) -> Result<()> {
        let mut sum = Estimate::default();
        for run in &leaf.runs {
            let mut cursor = run.cursor().bypass_cache();
            cursor.seek(range.low())?;
            while cursor.valid() && range.contains(cursor.key()) {
                add(&mut sum, &weight(&cursor.record()));
                cursor.next()?;
            }
        }
        if (sum.rows, sum.tombstones) != (leaf.held.rows, leaf.held.tombstones) {
            let what = format!("records of leaf {}", leaf.id);
            return Err(self.wrong(Some(node), &what, format!("{:?}", leaf.held), format!("{sum:?}")));
        }
        Ok(())
    }
}
