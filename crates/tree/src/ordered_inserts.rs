//! Inserts in the order of keys, by several sessions at once.
//!
//! Each memtable then lies behind the one before but for a few records: those of statements that had got their keys when the
//! other one was sealed, and were committed afterwards. Merging these few would rewrite the leaf that they belong to,
//! and all of the memtable once more, every time. Instead:
//! 1. Such a memtable is written as two runs: what lies behind all keys of the tree as runs of leaves are ([`Position::Across`]),
//!    and what does not, before the seam.
//! 2. A flush to a node hands both on by reference ([`Tree::is_continuation`]).
//! 3. A flush to a leaf makes leaves of the large runs by reference ([`Tree::continue_leaf`]). The run before a seam is cut
//!    at the first of its segments that takes part: what is before the cut stays where it is, clipped by the leaf's range,
//!    what is behind is merged with the few records into a small run of the next leaf.
//!
//! ```text
//!   leaf 1  [......................|..]           the leaf's run, cut
//!   few                              [.. .]
//!   large                                [......................]
//!
//!   leaf 1  [......................]
//!   leaf 2                         [......][......................]
//! ```

use std::ops::Bound;
use std::sync::Arc;

use pando_base::{Result, Seqno};
use pando_run::merge::VersionFilter;
use pando_run::Run;

use crate::flush::stale_part;
use crate::memtable::Memtable;
use crate::merge_output::{separator, LeafSink};
use crate::node::{add, subtract, Body, BufferRun, Key, KeyRange, Leaf, Node};
use crate::tree::Tree;

/// Of so many records of a memtable, one may lie before the seam.
const FEW_OF_MEMTABLE: u64 = 8;
/// Of so many records of the run before the seam, one may be behind the cut.
const FEW_OF_RUN: u64 = 4;

/// Where a memtable lies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Behind every key of the tree: its run will become a leaf.
    Behind,
    /// Behind this key, the last one of the tree, but for a few records close to it.
    Across(Vec<u8>),
    /// Anywhere else.
    Among,
}

impl Position {
    /// `leaf_bytes`: how much can be a leaf.
    pub(crate) fn of(memtable: &Memtable, root: &Arc<Node>, leaf_bytes: u64) -> Position {
        let Some((first, last)) = memtable.key_range() else { return Position::Among };
        let Some(run) = last_run(root) else { return Position::Behind };
        let end = &run.meta().max_key;
        if *end < first {
            return Position::Behind;
        }
        // What cannot be a leaf will be merged anyway.
        let is_small = memtable.raw_bytes() / FEW_OF_MEMTABLE * (FEW_OF_MEMTABLE - 1) < leaf_bytes;
        if is_small || last <= *end || first <= run.meta().min_key {
            return Position::Among;
        }
        // A run that cannot be read must not keep memtables from being written: who has to read it says so.
        let behind = run.cut_at(&first).and_then(|cut| run.estimate(Some(&cut), None));
        if !behind.is_ok_and(|behind| behind.rows <= run.meta().rows / FEW_OF_RUN) {
            return Position::Among;
        }
        let most = memtable.rows() / FEW_OF_MEMTABLE;
        let before = memtable.starting_at(Bound::Unbounded).take_while(|r| r.key <= end.as_slice());
        let count = before.take(most as usize + 1).count() as u64;
        if count <= most {
            Position::Across(end.clone())
        } else {
            Position::Among
        }
    }
}

/// The run that reaches furthest of those that may have the last keys of the tree.
fn last_run(root: &Arc<Node>) -> Option<&Arc<Run>> {
    let further = |a: &&Arc<Run>, b: &&Arc<Run>| a.meta().max_key.cmp(&b.meta().max_key);
    let mut last = None;
    let mut node = root;
    loop {
        last = last.into_iter().chain(node.buffer.iter().map(|entry| &entry.run)).max_by(further);
        match node.children.last().map(|child| &child.body) {
            Some(Body::Node(below)) => node = below,
            Some(Body::Leaf(leaf)) => return last.into_iter().chain(&leaf.runs).max_by(further),
            None => return last,
        }
    }
}

/// A seam with records before it.
struct Seam<'a> {
    /// What is merged, newest first: the few, and the run that is cut.
    inputs: Vec<&'a Arc<Run>>,
    /// From the cut up to the next large run.
    range: KeyRange,
    cut: Key,
}

/// What a leaf becomes.
pub(crate) struct Continued {
    pub(crate) leaves: Vec<Arc<Leaf>>,
    /// The keys between them.
    pub(crate) pivots: Vec<Key>,
    /// Where tombstones were kept for snapshots, and after which seqno they can go.
    pub(crate) stale: Vec<(Vec<u8>, Seqno)>,
}

impl Tree {
    /// Whether a run can be a leaf as it is: written for it, with nothing to clean up, and of good size.
    pub(crate) fn is_leaf(&self, run: &BufferRun) -> bool {
        let meta = run.run.meta();
        self.can_be_leaf(run) && meta.raw_bytes >= self.leaf_bytes_min()
    }

    /// Smaller runs are joined to others.
    pub(crate) fn leaf_bytes_min(&self) -> u64 {
        self.config.leaf_raw_bytes / 2
    }

    /// The same, but it may be small.
    pub(crate) fn can_be_leaf(&self, run: &BufferRun) -> bool {
        let meta = run.run.meta();
        let is_too_big = meta.raw_bytes > self.config.leaf_raw_bytes * 3 && meta.rows > 1;
        run.leaf_ready && meta.tombstones == 0 && !is_too_big
    }

    /// Whether the share is of large runs apart from one another, and of little else.
    pub(crate) fn is_continuation(&self, share: &[BufferRun], range: &KeyRange) -> bool {
        let (large, few) = self.divide(share);
        let bytes: u64 = few.iter().map(|run| run.run.meta().raw_bytes).sum();
        share.iter().all(|run| range.encloses(&run.run))
            && ascend(&large)
            && bytes <= large.len() as u64 * self.config.leaf_raw_bytes / FEW_OF_RUN
    }

    /// The large runs by their keys, and the others, newest first.
    fn divide<'a>(&self, share: &'a [BufferRun]) -> (Vec<&'a Arc<Run>>, Vec<&'a BufferRun>) {
        let (large, few): (Vec<_>, Vec<_>) = share.iter().partition(|run| self.is_leaf(run));
        let mut large: Vec<&Arc<Run>> = large.into_iter().map(|run| &run.run).collect();
        large.sort_by(|a, b| a.meta().min_key.cmp(&b.meta().min_key));
        (large, few)
    }

    /// What the leaf, which covers `range`, becomes when the share is put behind it as the head of this file says. `None`:
    /// the share is not of that kind.
    pub(crate) fn continue_leaf(
        &self,
        share: &[BufferRun],
        leaf: &Leaf,
        range: &KeyRange,
    ) -> Result<Option<Continued>> {
        let (large, few) = self.divide(share);
        let own = leaf.runs.iter().max_by(|a, b| a.meta().max_key.cmp(&b.meta().max_key));
        let (Some(own), false, false) = (own, few.is_empty(), large.is_empty()) else { return Ok(None) };
        let chain: Vec<&Arc<Run>> = [own].into_iter().chain(large).collect();
        let is_big = leaf.held.bytes >= self.leaf_bytes_min();
        if !is_big || !ascend(&chain) || !share.iter().all(|run| range.encloses(&run.run)) {
            return Ok(None);
        }
        let mut of_seams: Vec<Vec<&Arc<Run>>> = vec![Vec::new(); chain.len() - 1];
        for run in few {
            let meta = run.run.meta();
            let next = chain.partition_point(|large| large.meta().min_key <= meta.min_key);
            let (1.., Some(large)) = (next, chain.get(next)) else { return Ok(None) };
            if meta.max_key >= large.meta().min_key {
                return Ok(None);
            }
            of_seams[next - 1].push(&run.run);
        }
        let mut seams = Vec::new();
        for (pair, few) in chain.windows(2).zip(of_seams) {
            let seam = match few.is_empty() {
                true => None,
                false => match self.seam(pair[0], few, pair[1], share)? {
                    Some(seam) => Some(seam),
                    None => return Ok(None),
                },
            };
            seams.push(seam);
        }
        // Of the leaf's runs only the last one is cut.
        if let Some(Some(seam)) = seams.first() {
            let is_before =
                |run: &Arc<Run>| Arc::ptr_eq(run, own) || run.meta().max_key.as_slice() < &*seam.cut;
            if !leaf.runs.iter().all(is_before) || &*seam.cut <= range.low() {
                return Ok(None);
            }
        }
        self.build_leaves(leaf, &chain, &seams).map(Some)
    }

    /// The seam between two runs with so few records of others. `None`: they are too many, or too much would be cut.
    fn seam<'a>(
        &self,
        before: &'a Arc<Run>,
        few: Vec<&'a Arc<Run>>,
        next: &'a Arc<Run>,
        share: &'a [BufferRun],
    ) -> Result<Option<Seam<'a>>> {
        let Some(first) = few.iter().map(|run| run.meta().min_key.as_slice()).min() else { return Ok(None) };
        let bytes: u64 = few.iter().map(|run| run.meta().raw_bytes).sum();
        let cut = match before.meta().max_key.as_slice() < first {
            true => first.to_vec(),
            false => before.cut_at(first)?,
        };
        let behind = before.estimate(Some(&cut), None)?;
        let is_much = behind.rows > before.meta().rows / FEW_OF_RUN || cut <= before.meta().min_key;
        if is_much || bytes > self.config.leaf_raw_bytes / FEW_OF_RUN {
            return Ok(None);
        }
        let takes_part =
            |run: &&Arc<Run>| Arc::ptr_eq(run, before) || few.iter().any(|few| Arc::ptr_eq(run, few));
        let mut inputs: Vec<&Arc<Run>> = share.iter().map(|run| &run.run).filter(takes_part).collect();
        if !inputs.iter().any(|run| Arc::ptr_eq(run, before)) {
            // It is the leaf's: older than all of the share.
            inputs.push(before);
        }
        let cut = Key::from(cut);
        let hi = Some(Key::from(next.meta().min_key.as_slice()));
        Ok(Some(Seam { inputs, range: KeyRange { lo: Some(cut.clone()), hi }, cut }))
    }

    /// Leaves of the chain's runs; the first of these is the leaf's own.
    fn build_leaves(
        &self,
        leaf: &Leaf,
        chain: &[&Arc<Run>],
        seams: &[Option<Seam<'_>>],
    ) -> Result<Continued> {
        let large = chain.len() as u64 - 1;
        self.ctx.metrics.flush_by_reference.add(large);
        self.ctx.metrics.leaf_splits.add(large);
        let first = Leaf { id: leaf.id, runs: leaf.runs.clone(), held: leaf.held, horizon: leaf.horizon };
        let (mut leaves, mut pivots, mut stale) = (vec![first], Vec::new(), Vec::new());
        for (pair, seam) in chain.windows(2).zip(seams) {
            let (before, run) = (pair[0], pair[1]);
            let id = self.new_node();
            let mut next = Leaf { id, runs: vec![run.clone()], held: run.whole(), horizon: 0 };
            match seam {
                None => pivots.push(separator(&before.meta().max_key, &run.meta().min_key)),
                Some(seam) => {
                    pivots.push(seam.cut.clone());
                    if let Some(last) = leaves.last_mut() {
                        last.held = subtract(&last.held, &before.estimate(Some(&seam.cut), None)?);
                    }
                    self.merge_seam(seam, &mut next, &mut stale)?;
                }
            }
            leaves.push(next);
        }
        Ok(Continued { leaves: leaves.into_iter().map(Arc::new).collect(), pivots, stale })
    }

    /// Adds to the leaf what the seam's merge leaves.
    fn merge_seam(&self, seam: &Seam<'_>, leaf: &mut Leaf, stale: &mut Vec<(Vec<u8>, Seqno)>) -> Result<()> {
        let garbage = self.garbage();
        let mut sink = LeafSink::new(self, 0, leaf.id, &garbage);
        // All that these keys have is here: the leaf's, the share's, and nothing is below.
        let mut filter = VersionFilter::new(garbage.0, true).with_deleted(&garbage.1);
        self.merge_into(seam.inputs.iter().copied(), &seam.range, &mut filter, &mut sink)?;
        self.ctx.metrics.flush_read_bytes.add(sink.read_bytes);
        self.ctx.metrics.versions_dropped.add(filter.dropped());
        for built in sink.finish()? {
            stale.extend(stale_part(&built));
            add(&mut leaf.held, &built.leaf.held);
            for run in built.leaf.runs {
                self.ctx.metrics.flush_written_bytes.add(run.meta().disk_bytes);
                leaf.runs.push(run);
            }
        }
        Ok(())
    }
}

fn ascend(runs: &[&Arc<Run>]) -> bool {
    runs.windows(2).all(|pair| pair[0].meta().max_key < pair[1].meta().min_key)
}
