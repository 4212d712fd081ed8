//! Merging runs within a buffer, so that reads look into few; and the whole-tree compaction.
//!
//! A merge takes a window of neighbours in age. Children may have been given some of them already:
//! for each child's range only runs it has not been given take part, since records delivered once
//! must not come back after what covered them was dropped further down. The result takes the
//! newest order of the window; a child that was given all of the window was given nothing of the
//! result's content, so "passed" stays true for it.

use std::sync::Arc;

use pando_base::{RecordRef, Result};
use pando_run::merge::VersionFilter;
use pando_run::{Run, RunWriter};

use crate::edit::{path_to, path_to_node, RangeCounts};
use crate::job_claims::BusyTable;
use crate::jobs::{follow, CompactPlan, FlushPlan, Plan, Task};
use crate::merge_output::{weight, Sink};
use crate::node::{subtract, Body, BufferRun, KeyRange, Node};
use crate::tree::Tree;

struct CompactSink {
    writer: RunWriter,
    counts: RangeCounts,
}

impl Sink for CompactSink {
    fn take(&mut self, r: RecordRef<'_>) -> Result<()> {
        self.counts.record(r.key, &weight(&r));
        self.writer.add(r)
    }

    fn consumed(&mut self, _bytes: u64) {}
}

impl Tree {
    /// See the head of this file.
    pub(crate) fn compact(&self, task: &Task<'_>, plan: &CompactPlan) -> Result<()> {
        let node = &plan.node;
        let window = &node.buffer[plan.window.clone()];
        let leaf_ready = self.all_leaf_ready();
        let mut sink = CompactSink { writer: self.run_writer(leaf_ready), counts: RangeCounts::new(node) };
        let mut dropped = 0;
        let (snapshots, deleted) = self.garbage();
        let unpassed =
            |index: usize| window.iter().take_while(|run| run.order > node.children[index].passed).count();
        let mut first = 0;
        while first < node.children.len() {
            // Children that were given the same runs are merged for in one go.
            let runs = unpassed(first);
            let mut last = first;
            while last + 1 < node.children.len() && unpassed(last + 1) == runs {
                last += 1;
            }
            let range = KeyRange {
                lo: node.child_range(first, &plan.range).lo,
                hi: node.child_range(last, &plan.range).hi,
            };
            let inputs: Vec<&Arc<Run>> =
                window[..runs].iter().map(|run| &run.run).filter(|run| range.overlaps(run)).collect();
            if !inputs.is_empty() {
                let mut filter = VersionFilter::new(snapshots.clone(), false).with_deleted(&deleted);
                self.merge_into(inputs.into_iter(), &range, &mut filter, &mut sink)?;
                dropped += filter.dropped();
            }
            first = last + 1;
        }
        let CompactSink { writer, counts } = sink;
        let run = writer.finish()?;
        self.ctx.metrics.compactions.add(1);
        self.ctx.metrics.versions_dropped.add(dropped);
        if let Some(run) = &run {
            self.ctx.metrics.compaction_written_bytes.add(run.meta().disk_bytes);
        }
        self.apply_compaction(task, plan, run.map(|run| (run, leaf_ready)), &counts);
        Ok(())
    }

    fn apply_compaction(
        &self,
        task: &Task<'_>,
        plan: &CompactPlan,
        result: Option<(Arc<Run>, bool)>,
        counts: &RangeCounts,
    ) {
        let node = &plan.node;
        let newest = node.buffer[plan.window.start].order;
        let oldest = node.buffer[plan.window.end - 1].order;
        let is_whole = plan.window.len() == node.buffer.len();
        task.apply(|editor, now| {
            let path = path_to_node(&now.root, plan.range.low(), node.id).expect("a busy node stays");
            let root = editor.edit(path, |parts, _, _| {
                let at = parts.buffer.iter().position(|run| run.order <= newest);
                let at = at.unwrap_or(parts.buffer.len());
                parts.buffer.retain(|run| run.order > newest || run.order < oldest);
                if let Some((run, leaf_ready)) = result {
                    parts.buffer.insert(at, BufferRun { order: newest, leaf_ready, run });
                }
                if is_whole && parts.pivots == node.pivots {
                    // All that waited when the merge began was counted; keep what came since.
                    for (child, before) in parts.children.iter_mut().zip(&node.children) {
                        child.pending = subtract(&child.pending, &before.pending);
                    }
                    counts.spread(parts);
                }
            });
            Some(now.with_root(root))
        });
    }

    /// Pushes everything that is in the nodes or in sealed memtables down to the leaves, rewriting
    /// each leaf, so that dead versions, old encodings and half-empty leaves go. What is inserted
    /// or sealed meanwhile may stay above. Waits for jobs of others where they are in the way.
    pub fn compact_all(&self) -> Result<()> {
        self.compact_all_while(&mut |_| true).map(|_| ())
    }

    /// The same, as long as `go_on` says so, which is told about which part is done before each leaf. False if
    /// it ended before all was done: what was done stays.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn compact_all_while(&self, go_on: &mut dyn FnMut(f64) -> bool) -> Result<bool> {
        let (generation, leaves) = {
            let version = self.version.load();
            (version.generation, version.root.totals.leaves.max(1))
        };
        let mut done = 0u64;
        let target = self.version.load().sealed.first().map(|memtable| memtable.seal_seqno());
        if let Some(target) = target {
            self.write_sealed_up_to(target)?;
        }
        let mut position: Vec<u8> = Vec::new();
        loop {
            if !go_on((done as f64 / leaves as f64).min(1.0)) {
                return Ok(false);
            }
            // 1. Everything above the leaf goes down.
            while self.run_forced(generation, |busy, root| next_flush(busy, root, &position))? {}
            // 2. The leaf is rewritten.
            let mut end = None;
            let mut joined = 1;
            self.run_forced(generation, |busy, root| {
                let path = path_to(root, &position, |node, index| {
                    matches!(node.children[index].body, Body::Leaf(_))
                });
                let step = path.and_then(|mut path| path.pop())?;
                let range = step.node.child_range(step.index, &step.range);
                end = range.hi.clone();
                let child = &step.node.children[step.index];
                // One without rows, too: the nodes above are to be written anew.
                let Body::Leaf(_) = &child.body else { return None };
                let free = busy.is_shareable(step.node.id) && busy.is_free(child.id());
                Some(free.then(|| {
                    let plan = FlushPlan::one(step.node, step.index, range, true);
                    let plan = plan.join(busy, &step.range, self.config.leaf_raw_bytes);
                    end = plan.range.hi.clone();
                    joined = plan.count as u64;
                    plan
                }))
            })?;
            done += joined;
            match end {
                Some(end) => position = end.to_vec(),
                None => return Ok(true),
            }
        }
    }

    /// Does the flush that `choose` names, waiting while it says that the flush is blocked
    /// (`Some(None)`); false when there is none or the tree was truncated.
    fn run_forced(
        &self,
        generation: u64,
        mut choose: impl FnMut(&BusyTable, &Arc<Node>) -> Option<Option<FlushPlan>>,
    ) -> Result<bool> {
        let (task, plan) = {
            let mut structure = self.structure.lock();
            loop {
                let version = self.version.load_full();
                if version.generation != generation {
                    return Ok(false);
                }
                match choose(&structure.busy, &version.root) {
                    None => return Ok(false),
                    Some(None) => self.job_ended.wait(&mut structure),
                    Some(Some(flush)) => {
                        let plan = Plan::Flush(flush);
                        break (self.begin(&mut structure, &version, &plan), plan);
                    }
                }
            }
        };
        self.execute(&task, plan)?;
        Ok(true)
    }
}

/// The topmost flush due on the way to `key` above its leaf; `Some(None)` if it is blocked.
fn next_flush(busy: &BusyTable, root: &Arc<Node>, key: &[u8]) -> Option<Option<FlushPlan>> {
    let nobody = BusyTable::default();
    // Nothing to rewrite for a snapshot older than all: only what waits is looked for.
    let wanted = follow(&nobody, root, key, Some(0))?;
    let child = &wanted.parent.children[wanted.first];
    if matches!(child.body, Body::Leaf(_)) {
        return None;
    }
    let free = busy.is_shareable(wanted.parent.id) && busy.is_free(child.id());
    Some(free.then_some(wanted))
}
