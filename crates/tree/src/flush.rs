//! Writing memtables into the root's buffer, and flushing a buffer's records to a child. Runs that a
//! memtable has adopted go into the root's buffer as they are, below the run of its records.
//!
//! Life of a flush:
//! 1. The share: the buffer's runs that the child has not been given and that touch its range.
//! 2. What it becomes, all read and written outside locks: for an internal child one new run on top
//!    of its buffer, for a leaf new leaves merged from the share and the leaf's own run. A run that
//!    lies wholly in the child's range is handed over by reference where no merge is needed; at a
//!    leaf that is so for runs beyond all its keys (inserts in key order), and nearly so where only a few
//!    records are not (`ordered_inserts`). Leaves that have become small are flushed to together and become one.
//! 3. The edit: child replaced, `passed` raised to the newest order of step 1. What was pushed onto
//!    the buffer meanwhile keeps waiting.

use std::ops::Bound;
use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{NodeId, Result, Seqno};
use pando_run::merge::VersionFilter;
use pando_run::{Estimate, Run, RunWriter};

use crate::edit::{path_to, path_to_node, path_to_parent_of, RangeCounts};
use crate::jobs::{FlushPlan, Task};
use crate::memtable::Memtable;
use crate::merge_output::{separator, weight, BuiltLeaf, LeafSink, Sink};
use crate::node::{add, share_of, subtract, Body, BufferRun, Child, Key, KeyRange, Leaf, Node, NodeParts};
use crate::ordered_inserts::{Continued, Position};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// A hint for later is filed when snapshots kept at least this many tombstones in a leaf.
const KEPT_TOMBSTONES_MIN: u64 = 64;

/// Where the hint points and after which seqno it counts, if one is due.
pub(crate) fn stale_part(built: &BuiltLeaf) -> Option<(Vec<u8>, Seqno)> {
    let held = &built.leaf.held;
    let is_stale = held.tombstones >= KEPT_TOMBSTONES_MIN.max(held.rows / 8);
    is_stale.then(|| (built.first_key.clone(), built.max_seqno))
}

/// One in so many leaves made of runs by reference may be small; flushes join it to a neighbour some day.
const SMALL_LEAVES: usize = 3;

/// Pours records into one run for a buffer, counting them per child of the node that gets it.
struct BufferSink {
    writer: RunWriter,
    counts: RangeCounts,
    read_bytes: u64,
}

impl Sink for BufferSink {
    fn take(&mut self, r: pando_base::RecordRef<'_>) -> Result<()> {
        self.counts.record(r.key, &weight(&r));
        self.writer.add(r)
    }

    fn consumed(&mut self, bytes: u64) {
        self.read_bytes += bytes;
    }
}

impl Tree {
    fn buffer_sink(&self, node: &Node, leaf_ready: bool) -> BufferSink {
        BufferSink { writer: self.run_writer(leaf_ready), counts: RangeCounts::new(node), read_bytes: 0 }
    }

    /// Writes the records of a memtable: one run, or two if it lies across the end of the tree; whether they are written
    /// as runs of leaves.
    fn write_records(&self, root: &Arc<Node>, memtable: &Memtable) -> Result<(Vec<BufferRun>, RangeCounts)> {
        let position = Position::of(memtable, root, self.leaf_bytes_min());
        let mut leaf_ready = self.all_leaf_ready() || position == Position::Behind;
        let mut seam = match position {
            Position::Across(end) => Some(end),
            Position::Behind | Position::Among => None,
        };
        let mut runs = Vec::new();
        let push = |writer: RunWriter, leaf_ready: bool, runs: &mut Vec<BufferRun>| -> Result<()> {
            let run = writer.finish()?;
            runs.extend(run.map(|run| BufferRun { order: 0, leaf_ready, run }));
            Ok(())
        };
        let mut sink = self.buffer_sink(root, leaf_ready);
        let mut filter = self.version_filter(false);
        for record in memtable.starting_at(Bound::Unbounded) {
            if !filter.keep(&record) {
                continue;
            }
            if seam.take_if(|end| record.key > end.as_slice()).is_some() {
                let before = std::mem::replace(&mut sink.writer, self.run_writer(true));
                push(before, leaf_ready, &mut runs)?;
                leaf_ready = true;
            }
            sink.take(record)?;
        }
        let BufferSink { writer, counts, .. } = sink;
        push(writer, leaf_ready, &mut runs)?;
        self.ctx.metrics.versions_dropped.add(filter.dropped());
        let written = runs.iter().map(|run| run.run.meta().disk_bytes).sum();
        self.ctx.metrics.memtable_written_bytes.add(written);
        Ok((runs, counts))
    }

    /// Writes the oldest sealed memtable as the newest run of the root's buffer.
    pub(crate) fn write_memtable(&self, task: &Task<'_>, memtable: &Arc<Memtable>) -> Result<()> {
        let root = self.version.load().root.clone();
        let (runs, mut counts) = self.write_records(&root, memtable)?;
        // Newest first.
        let mut pushes: Vec<(Arc<Run>, bool)> =
            runs.into_iter().rev().map(|run| (run.run, run.leaf_ready)).collect();
        for adopted in memtable.adopted() {
            counts.estimate(&root, &KeyRange::default(), &adopted)?;
            // Written as runs of leaves are.
            pushes.push((adopted, true));
        }
        task.apply(|editor, now| {
            let mut sealed = now.sealed.clone();
            let oldest = sealed.pop().expect("the memtable waits until it is written");
            assert!(Arc::ptr_eq(&oldest, memtable), "memtables are incorporated in order");
            oldest.set_written();
            let root = if pushes.is_empty() {
                now.root.clone()
            } else {
                let path = path_to(&now.root, b"", |_, _| true)?;
                editor.edit(path, |parts, _, _| {
                    pushes.into_iter().rev().for_each(|(run, ready)| parts.push(run, ready));
                    counts.spread(parts);
                })
            };
            Some(TreeVersion { sealed, flushed: memtable.seal_seqno(), ..now.with_root(root) })
        });
        Ok(())
    }

    /// See the head of this file.
    pub(crate) fn flush(&self, task: &Task<'_>, plan: &FlushPlan) -> Result<()> {
        self.ctx.metrics.flushes.add(1);
        match plan.children() {
            [Child { body: Body::Node(child), .. }] => self.flush_to_node(task, plan, child),
            [Child { body: Body::Leaf(leaf), .. }] => self.flush_to_leaf(task, plan, leaf),
            _ => self.join_leaves(task, plan),
        }
    }

    fn flush_to_node(&self, task: &Task<'_>, plan: &FlushPlan, child: &Arc<Node>) -> Result<()> {
        let share = plan.share(0);
        let by_reference = lies_apart(&share, &plan.range) || self.is_continuation(&share, &plan.range);
        let (pushes, counts) = if by_reference {
            self.ctx.metrics.flush_by_reference.add(share.len() as u64);
            let counts = estimate_per_child(child, &plan.range, &share)?;
            (share, counts)
        } else {
            self.merge_for_buffer(plan, child, &share)?
        };
        task.apply(|editor, now| {
            let path = path_to_node(&now.root, plan.range.low(), child.id).expect("a busy node stays");
            if path.len() == 1 {
                // It has become the root, which happens only when nothing waited for it.
                assert!(pushes.is_empty(), "node {} lost its parent", child.id);
                return None;
            }
            let root = editor.edit_with_parent(
                path,
                |parts| {
                    for entry in pushes.iter().rev() {
                        parts.push(entry.run.clone(), entry.leaf_ready);
                    }
                    counts.spread(parts);
                },
                |parent, slots| {
                    let before = share_of(&plan.children()[0].pending, slots.len());
                    let passed = plan.passed(parent);
                    for child in &mut parent.children[slots] {
                        child.passed = passed;
                        child.pending = subtract(&child.pending, &before);
                    }
                },
            );
            Some(now.with_root(root))
        });
        Ok(())
    }

    fn merge_for_buffer(
        &self,
        plan: &FlushPlan,
        child: &Arc<Node>,
        share: &[BufferRun],
    ) -> Result<(Vec<BufferRun>, RangeCounts)> {
        let leaf_ready = self.all_leaf_ready();
        let mut sink = self.buffer_sink(child, leaf_ready);
        let mut filter = self.version_filter(false);
        self.merge_into(share.iter().map(|run| &run.run), &plan.range, &mut filter, &mut sink)?;
        let BufferSink { writer, counts, read_bytes } = sink;
        let run = writer.finish()?;
        self.ctx.metrics.flush_read_bytes.add(read_bytes);
        self.ctx.metrics.versions_dropped.add(filter.dropped());
        let mut pushes = Vec::new();
        if let Some(run) = run {
            self.ctx.metrics.flush_written_bytes.add(run.meta().disk_bytes);
            pushes.push(BufferRun { order: 0, leaf_ready, run });
        }
        Ok((pushes, counts))
    }

    fn flush_to_leaf(&self, task: &Task<'_>, plan: &FlushPlan, leaf: &Arc<Leaf>) -> Result<()> {
        let share = plan.share(0);
        if share.is_empty() && !plan.rewrite {
            self.apply_to_leaves(task, plan, vec![leaf.clone()], Vec::new());
            return Ok(());
        }
        let continued = if plan.rewrite { None } else { self.continue_leaf(&share, leaf, &plan.range)? };
        if let Some(Continued { leaves, pivots, stale }) = continued {
            if self.apply_to_leaves(task, plan, leaves, pivots) {
                stale.iter().for_each(|(key, after)| self.add_hint(key, *after));
            }
            return Ok(());
        }
        let beyond = lies_beyond(&share, leaf, &plan.range);
        let is_big = leaf.held.bytes >= self.leaf_bytes_min();
        let keep = !plan.rewrite && beyond && is_big;
        let is_room = keep || leaf.runs.is_empty();
        let built = if !plan.rewrite && is_room && self.are_leaves(&share, &plan.range) {
            self.adopt_as_leaves(&share, leaf, keep)
        } else {
            let first_id = if keep { self.new_node() } else { leaf.id };
            let mut merge = self.leaf_merge(first_id);
            let own: &[Arc<Run>] = if keep { &[] } else { &leaf.runs };
            merge.add(&share, own, &plan.range)?;
            merge.finish()?
        };
        let kept = keep.then(|| leaf.clone());
        self.install_leaves(task, plan, kept, built);
        Ok(())
    }

    /// Flushes to several small leaves, which become one.
    fn join_leaves(&self, task: &Task<'_>, plan: &FlushPlan) -> Result<()> {
        let mut merge = self.leaf_merge(plan.children()[0].id());
        for (n, child) in plan.children().iter().enumerate() {
            let Body::Leaf(leaf) = &child.body else { unreachable!("only leaves are joined") };
            merge.add(&plan.share(n), &leaf.runs, &plan.range_of(n))?;
        }
        let built = merge.finish()?;
        self.install_leaves(task, plan, None, built);
        Ok(())
    }

    /// Replaces the plan's leaves by `kept` (the old one, if it stays) and `built`.
    fn install_leaves(
        &self,
        task: &Task<'_>,
        plan: &FlushPlan,
        kept: Option<Arc<Leaf>>,
        built: Vec<BuiltLeaf>,
    ) {
        let stale: Vec<(Vec<u8>, u64)> = built.iter().filter_map(stale_part).collect();
        let mut leaves = Vec::with_capacity(built.len() + 1);
        let mut pivots: Vec<Key> = Vec::with_capacity(built.len());
        let mut last_key: Option<Vec<u8>> = None;
        if let Some(leaf) = kept {
            last_key = leaf.runs.iter().map(|run| run.meta().max_key.clone()).max();
            leaves.push(leaf);
        }
        for part in built {
            if let Some(last_key) = &last_key {
                pivots.push(separator(last_key, &part.first_key));
            }
            last_key = Some(part.last_key);
            leaves.push(Arc::new(part.leaf));
        }
        if leaves.is_empty() {
            let id = plan.children()[0].id();
            leaves.push(Arc::new(Leaf { id, runs: Vec::new(), held: Estimate::default(), horizon: 0 }));
        }
        self.ctx.metrics.leaf_splits.add((leaves.len() as u64).saturating_sub(plan.count as u64));
        if self.apply_to_leaves(task, plan, leaves, pivots) {
            stale.iter().for_each(|(key, after)| self.add_hint(key, *after));
        }
    }

    /// Whether each run can be a leaf as it is: written for it, apart from the others, with nothing to clean
    /// up, and of good size but for a few (the end of what a load had in key order).
    fn are_leaves(&self, share: &[BufferRun], range: &KeyRange) -> bool {
        let is_small = |run: &&BufferRun| run.run.meta().raw_bytes < self.leaf_bytes_min();
        !share.is_empty()
            && share.iter().filter(is_small).count() <= share.len() / SMALL_LEAVES
            && lies_apart(share, range)
            && share.iter().all(|run| self.can_be_leaf(run))
    }

    fn adopt_as_leaves(&self, share: &[BufferRun], leaf: &Leaf, keep: bool) -> Vec<BuiltLeaf> {
        self.ctx.metrics.flush_by_reference.add(share.len() as u64);
        let mut runs: Vec<&Arc<Run>> = share.iter().map(|run| &run.run).collect();
        runs.sort_by(|a, b| a.meta().min_key.cmp(&b.meta().min_key));
        let mut first_id = (!keep).then_some(leaf.id);
        let built = runs.into_iter().map(|run| {
            let meta = run.meta();
            let held = Estimate { rows: meta.rows, bytes: meta.raw_bytes, tombstones: meta.tombstones };
            let id = first_id.take().unwrap_or_else(|| self.new_node());
            BuiltLeaf::new(id, run.clone(), held, 0)
        });
        built.collect()
    }

    fn leaf_merge(&self, first_id: NodeId) -> LeafMerge<'_> {
        LeafMerge { tree: self, first_id, parts: Vec::new(), input_bytes: 0 }
    }

    /// Replaces the plan's leaves by `leaves`, with `pivots` between them; false if that cannot be
    /// done any more.
    fn apply_to_leaves(
        &self,
        task: &Task<'_>,
        plan: &FlushPlan,
        leaves: Vec<Arc<Leaf>>,
        pivots: Vec<Key>,
    ) -> bool {
        let old = plan.children();
        let mut is_done = false;
        task.apply(|editor, now| {
            let path =
                path_to_parent_of(&now.root, plan.range.low(), old[0].id()).expect("a busy leaf stays");
            let step = path.last()?;
            let now_there = step.node.children.get(step.index..step.index + old.len())?;
            if !now_there.iter().zip(old).all(|(now, old)| now.id() == old.id()) {
                // Their parent was split between them.
                return None;
            }
            is_done = true;
            let root = editor.edit(path, |parts, index, _| {
                let end = index + old.len();
                let mut arrived = Estimate::default();
                for (now, old) in parts.children[index..end].iter().zip(old) {
                    add(&mut arrived, &subtract(&now.pending, &old.pending));
                }
                let pending = share_of(&arrived, leaves.len());
                let passed = plan.passed(parts);
                let slots = leaves.into_iter().map(|leaf| Child { body: Body::Leaf(leaf), passed, pending });
                parts.children.splice(index..end, slots);
                parts.pivots.splice(index..end - 1, pivots);
            });
            Some(now.with_root(root))
        });
        is_done
    }
}

/// A merge into new leaves: of one leaf with its share, or of several side by side.
struct LeafMerge<'a> {
    tree: &'a Tree,
    first_id: NodeId,
    parts: Vec<(Vec<Arc<Run>>, KeyRange)>,
    input_bytes: u64,
}

impl LeafMerge<'_> {
    /// Takes in a share and a leaf's own runs within `range`; ranges ascend.
    fn add(&mut self, share: &[BufferRun], own: &[Arc<Run>], range: &KeyRange) -> Result<()> {
        let runs: Vec<Arc<Run>> = share.iter().map(|run| &run.run).chain(own).cloned().collect();
        for run in &runs {
            self.input_bytes += run.estimate(range.lo.as_deref(), range.hi())?.bytes;
        }
        self.parts.push((runs, range.clone()));
        Ok(())
    }

    fn finish(self) -> Result<Vec<BuiltLeaf>> {
        let tree = self.tree;
        let garbage = tree.garbage();
        let mut sink = LeafSink::new(tree, self.input_bytes, self.first_id, &garbage);
        let mut filter = VersionFilter::new(garbage.0, true).with_deleted(&garbage.1);
        for (runs, range) in &self.parts {
            tree.merge_into(runs.iter(), range, &mut filter, &mut sink)?;
        }
        tree.ctx.metrics.flush_read_bytes.add(sink.read_bytes);
        tree.ctx.metrics.versions_dropped.add(filter.dropped());
        let built = sink.finish()?;
        let written = built.iter().flat_map(|b| &b.leaf.runs).map(|run| run.meta().disk_bytes).sum();
        tree.ctx.metrics.flush_written_bytes.add(written);
        Ok(built)
    }
}

impl FlushPlan {
    /// What its children have afterwards of the parent's buffer; `now` is the parent of now.
    fn passed(&self, now: &NodeParts) -> u64 {
        if is_planted(Bug::PassedTooFar) {
            return now.next_order - 1;
        }
        self.parent.newest_order()
    }

    /// What waits for the `n`-th of its children, newest first.
    fn share(&self, n: usize) -> Vec<BufferRun> {
        let range = self.range_of(n);
        let unpassed = self.parent.unpassed(self.first + n);
        let mut share: Vec<BufferRun> = unpassed.filter(|run| range.overlaps(&run.run)).cloned().collect();
        if is_planted(Bug::ShareForgetsOldest) && share.len() > 1 {
            share.pop();
        }
        share
    }
}

/// All runs lie wholly in `range` and none overlaps another: they need no merge.
fn lies_apart(share: &[BufferRun], range: &KeyRange) -> bool {
    if !share.iter().all(|run| range.encloses(&run.run)) {
        return false;
    }
    let mut spans: Vec<(&[u8], &[u8])> =
        share.iter().map(|run| (&run.run.meta().min_key[..], &run.run.meta().max_key[..])).collect();
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].1 < pair[1].0)
}

/// All of the share lies behind the last key of the leaf.
fn lies_beyond(share: &[BufferRun], leaf: &Leaf, range: &KeyRange) -> bool {
    let first = share.iter().map(|run| run.run.meta().min_key.as_slice().max(range.low())).min();
    let last = leaf.runs.iter().map(|run| run.meta().max_key.as_slice()).max();
    matches!((first, last), (Some(first), Some(last)) if first > last)
}

/// Estimates per child of `node`, which covers `range`, what runs will bring them.
fn estimate_per_child(node: &Node, range: &KeyRange, share: &[BufferRun]) -> Result<RangeCounts> {
    let mut counts = RangeCounts::new(node);
    share.iter().try_for_each(|run| counts.estimate(node, range, &run.run))?;
    Ok(counts)
}
