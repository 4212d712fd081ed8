//! Row and byte estimates, from counts in the nodes, and of small ranges from the segments at their ends.

use std::collections::HashMap;
use std::ops::Bound;

use pando_base::{Kind, Result};
use pando_run::{Estimate, Run};
use pando_storage::{Extent, Place};

use crate::memtable::Memtable;
use crate::node::{add, Body, KeyRange, Node};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// Records of a memtable looked at before the rest is guessed.
const MEMTABLE_SAMPLE: u64 = 500;

/// What a tree consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Rows, estimated.
    pub rows: u64,
    /// Raw bytes of all records, those in memtables included.
    pub raw_bytes: u64,
    /// Tombstones in leaves, buffers and memtables.
    pub tombstones: u64,
    /// Distinct runs.
    pub runs: u64,
    /// Leaves.
    pub leaves: u64,
    /// Internal nodes.
    pub nodes: u64,
    /// Levels of internal nodes.
    pub height: u64,
    /// Raw bytes waiting in buffers.
    pub buffered_bytes: u64,
    /// Bytes of the runs and node blocks that this state, the durable checkpoint, or the log that is still
    /// needed refers to.
    pub disk_bytes: u64,
    /// Dead versions that cursors had to step over since the tree was opened.
    pub dead_skipped: u64,
}

/// How many rows there can be, by counts of records. Leaves count as having one version of each row, which is what
/// merges leave but for snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowBounds {
    /// If every tombstone takes a row of a leaf away, and everything else above leaves changes rows.
    pub least: u64,
    /// If every tombstone takes a row away, and everything else is a row of its own.
    pub likely: u64,
    /// If tombstones take nothing away.
    pub most: u64,
}

impl Tree {
    /// About how many records lie in [`lo`, `hi`): dead versions and tombstones count as well. Of each run that has the
    /// range in at most `looked_into` segments those at its ends are looked into, and its records are counted exactly:
    /// they are the blocks that reading the range begins and ends with.
    pub fn estimate(&self, lo: Option<&[u8]>, hi: Option<&[u8]>, looked_into: usize) -> Result<Estimate> {
        let wanted = KeyRange { lo: lo.map(|key| key.into()), hi: hi.map(|key| key.into()) };
        let mut sum = Estimate::default();
        if hi.is_some_and(|hi| hi <= wanted.low()) {
            return Ok(sum);
        }
        let version = self.version.load();
        for memtable in version.memtables() {
            add(&mut sum, &in_memtable(memtable, &wanted));
            for run in memtable.adopted() {
                add(&mut sum, &run.count(lo, hi, looked_into)?);
            }
        }
        in_node(&version.root, &KeyRange::default(), &wanted, looked_into, &mut sum)?;
        Ok(sum)
    }

    /// What the counts say about the number of rows.
    pub fn row_bounds(&self) -> RowBounds {
        let version = self.version.load();
        let held = version.root.totals.held;
        let mut above = version.root.totals.waiting;
        for memtable in version.memtables() {
            add(&mut above, &whole(memtable));
            memtable.adopted().iter().for_each(|run| add(&mut above, &run.whole()));
        }
        let tombstones = held.tombstones + above.tombstones;
        let most = (held.rows + above.rows).saturating_sub(tombstones);
        // How many of its rows are hidden is not known.
        let least = held.rows.saturating_sub(held.tombstones + above.tombstones);
        RowBounds {
            least: if version.deleted.is_empty() { least } else { 0 },
            likely: most.saturating_sub(tombstones),
            most,
        }
    }

    /// About how many rows there are, every change of a row counted as one more.
    pub fn rows_estimate(&self) -> u64 {
        let all = self.all_records();
        // A tombstone is no row and takes one away.
        all.rows.saturating_sub(2 * all.tombstones)
    }

    /// Raw bytes of all records.
    pub fn raw_bytes(&self) -> u64 {
        self.all_records().bytes
    }

    /// Records of all kinds, wherever they are, as [`Tree::estimate`] counts them.
    pub fn all_records(&self) -> Estimate {
        let version = self.version.load();
        let mut all = version.root.totals.held;
        add(&mut all, &version.root.totals.waiting);
        for memtable in version.memtables() {
            add(&mut all, &whole(memtable));
            memtable.adopted().iter().for_each(|run| add(&mut all, &run.whole()));
        }
        all
    }

    /// The oldest version of its key that a block of the tree is encrypted with, as it is now; `None` if nothing is on disk. Blocks of
    /// a run are written one after another, so that of each extent only the first is looked at.
    ///
    /// # Errors
    /// Those of reading; the file is not encrypted.
    pub fn oldest_key_version(&self) -> Result<Option<u32>> {
        let version = self.version.load_full();
        let mut oldest: Option<u32> = None;
        for place in places_of(&version) {
            let its = self.ctx.file.key_version_at(place)?;
            oldest = Some(oldest.map_or(its, |oldest| oldest.min(its)));
        }
        Ok(oldest)
    }

    /// Whether something of the tree, as it is now, may have plain blocks in a file that is being encrypted, so that it has to be written anew.
    /// What others keep, as transactions that are open, is not part of it.
    pub fn may_be_plain(&self) -> bool {
        let version = self.version.load_full();
        let mut nodes = vec![&version.root];
        while let Some(node) = nodes.pop() {
            if node.place.get().is_some_and(Extent::may_be_plain) {
                return true;
            }
            nodes.extend(node.children.iter().filter_map(|child| match &child.body {
                Body::Node(below) => Some(below),
                Body::Leaf(_) => None,
            }));
        }
        distinct_runs(&version).iter().any(|run| run.may_be_plain())
    }

    /// What the tree consists of now.
    pub fn stats(&self) -> TreeStats {
        let version = self.version.load_full();
        let durable = self.durable.lock().root.clone();
        let all = self.all_records();
        let mut seen = Seen::default();
        seen.node(&version.root);
        version.adopted().iter().for_each(|run| seen.run(run));
        let runs = seen.runs.len() as u64;
        if let Some(root) = &durable {
            seen.node(root);
        }
        self.coverage.lock().adopted().for_each(|run| seen.run(run));
        let totals = &version.root.totals;
        TreeStats {
            rows: self.rows_estimate(),
            raw_bytes: all.bytes,
            tombstones: all.tombstones,
            runs,
            leaves: totals.leaves,
            nodes: totals.nodes,
            height: totals.height,
            buffered_bytes: totals.waiting.bytes,
            disk_bytes: seen.runs.values().sum::<u64>() + seen.nodes.values().sum::<u64>(),
            dead_skipped: self.dead_skipped.load(std::sync::atomic::Ordering::Relaxed),
        }
    }
}

/// How many runs are stored in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunForms {
    /// Each column of the values apart.
    pub by_columns: u64,
    /// Row after row.
    pub by_rows: u64,
    /// Of the former, those whose segments are compressed against what they have in common.
    pub with_common: u64,
}

impl Tree {
    /// How its runs are stored.
    ///
    /// # Errors
    /// Those of reading an index and a segment of each.
    pub fn run_forms(&self) -> Result<RunForms> {
        let mut forms = RunForms::default();
        for run in distinct_runs(&self.version.load_full()) {
            let form = run.form()?;
            forms.by_columns += u64::from(form.is_by_columns);
            forms.by_rows += u64::from(!form.is_by_columns);
            forms.with_common += u64::from(form.has_common);
        }
        Ok(forms)
    }
}

impl Tree {
    /// Where on disk the tree is: the blocks of its nodes and the extents of its runs, ascending. Memtables are nowhere.
    pub fn disk_places(&self) -> Vec<Place> {
        places_of(&self.version.load_full())
    }
}

/// Node blocks, and extents of runs, ascending, each once.
fn places_of(version: &TreeVersion) -> Vec<Place> {
    let mut places = Vec::new();
    let mut nodes = vec![&version.root];
    while let Some(node) = nodes.pop() {
        places.extend(node.place.get().map(|extent| extent.place()));
        nodes.extend(node.children.iter().filter_map(|child| match &child.body {
            Body::Node(below) => Some(below),
            Body::Leaf(_) => None,
        }));
    }
    places.extend(distinct_runs(version).iter().flat_map(|run| run.meta().extents.clone()));
    places.sort_unstable_by_key(|place| place.offset);
    places.dedup();
    places
}

/// Runs by id and node blocks by place, with their space on disk.
#[derive(Default)]
struct Seen {
    runs: HashMap<u64, u64>,
    nodes: HashMap<u64, u64>,
}

impl Seen {
    fn node(&mut self, node: &Node) {
        if let Some(extent) = node.place.get() {
            let place = extent.place();
            if self.nodes.insert(place.offset, place.len).is_some() {
                return;
            }
        }
        node.buffer.iter().for_each(|entry| self.run(&entry.run));
        for child in &node.children {
            match &child.body {
                Body::Leaf(leaf) => leaf.runs.iter().for_each(|run| self.run(run)),
                Body::Node(below) => self.node(below),
            }
        }
    }

    fn run(&mut self, run: &Run) {
        let meta = run.meta();
        self.runs.insert(meta.id.0, meta.extents.iter().map(|place| place.len).sum());
    }
}

fn whole(memtable: &Memtable) -> Estimate {
    Estimate { rows: memtable.rows(), bytes: memtable.bytes(), tombstones: memtable.tombstones() }
}

fn in_memtable(memtable: &Memtable, wanted: &KeyRange) -> Estimate {
    let all = whole(memtable);
    if wanted == &KeyRange::default() {
        return all;
    }
    let mut sum = Estimate::default();
    let (mut seen, mut last) = (0, None);
    let found = memtable.starting_at(Bound::Included(wanted.low())).take_while(|r| wanted.contains(r.key));
    for r in found.take(MEMTABLE_SAMPLE as usize) {
        seen += 1;
        // Of one key the newest version counts.
        if last.replace(r.key) != Some(r.key) {
            sum.rows += 1;
            sum.bytes += (r.key.len() + r.value.len()) as u64;
            sum.tombstones += u64::from(r.kind == Kind::Delete);
        }
    }
    if seen < MEMTABLE_SAMPLE {
        return sum;
    }
    // Many: somewhere between the sample and all.
    let guess = sum.rows.max(all.rows / 3 * sum.rows / MEMTABLE_SAMPLE);
    Estimate {
        rows: guess,
        bytes: all.bytes / all.rows.max(1) * guess,
        tombstones: all.tombstones * guess / all.rows.max(1),
    }
}

fn in_node(
    node: &Node,
    range: &KeyRange,
    wanted: &KeyRange,
    looked_into: usize,
    sum: &mut Estimate,
) -> Result<()> {
    let first = node.child_at(wanted.low());
    let last = node.child_before(wanted.hi());
    for index in first..=last {
        let below = node.child_range(index, range);
        let child = &node.children[index];
        let is_inside = wanted.low() <= below.low()
            && match (below.hi(), wanted.hi()) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(inner), Some(outer)) => inner <= outer,
            };
        if is_inside {
            add(sum, &child.pending);
            match &child.body {
                Body::Leaf(leaf) => add(sum, &leaf.held),
                Body::Node(node) => {
                    add(sum, &node.totals.held);
                    add(sum, &node.totals.waiting);
                }
            }
            continue;
        }
        // The wanted part of a child only in part inside.
        let lo = wanted.lo.as_deref().max(below.lo.as_deref());
        let hi = match (wanted.hi(), below.hi()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for entry in node.unpassed(index).filter(|entry| below.overlaps(&entry.run)) {
            add(sum, &entry.run.count(lo, hi, looked_into)?);
        }
        match &child.body {
            Body::Node(node) => in_node(node, &below, wanted, looked_into, sum)?,
            Body::Leaf(leaf) => {
                for run in &leaf.runs {
                    add(sum, &run.count(lo, hi, looked_into)?);
                }
            }
        }
    }
    Ok(())
}

/// Distinct runs of a version, for whoever walks them all.
pub(crate) fn distinct_runs(version: &TreeVersion) -> Vec<std::sync::Arc<Run>> {
    fn walk(node: &Node, out: &mut HashMap<u64, std::sync::Arc<Run>>) {
        for entry in &node.buffer {
            out.insert(entry.run.meta().id.0, entry.run.clone());
        }
        for child in &node.children {
            match &child.body {
                Body::Leaf(leaf) => {
                    for run in &leaf.runs {
                        out.insert(run.meta().id.0, run.clone());
                    }
                }
                Body::Node(below) => walk(below, out),
            }
        }
    }
    let mut runs = HashMap::new();
    runs.extend(version.adopted().into_iter().map(|run| (run.meta().id.0, run)));
    walk(&version.root, &mut runs);
    let mut runs: Vec<_> = runs.into_values().collect();
    runs.sort_by_key(|run| run.meta().id);
    runs
}
