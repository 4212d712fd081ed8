//! Background work: which job is due, and what every job has in common.
//!
//! A job runs in three steps: under the structure mutex it is picked and what it relies on is marked
//! busy; outside all locks it reads and writes; under the mutex again its result is put into what
//! the tree has become meanwhile. If the tree was truncated in between, the result is dropped.
//!
//! Policy, the first that applies and is not blocked by a running job:
//! 1. Write the oldest sealed memtable.
//! 2. Follow a hint: a scan met many dead records there, or snapshots that protected dead
//!    records of a leaf are gone.
//! 3. The subtree's hottest: a child for which enough waits is flushed to; a buffer with too many
//!    runs, or runs that are mostly passed on, flushes its fullest child if that is worthwhile, else
//!    merges runs. A leaf that has become small is flushed to together with small neighbours.
//! 4. Clean up after a deleted range (`deleted`).
//!
//! A tree that awaits its bottom (`pending_base`) merges runs in the root's buffer instead of 2 to 4.

use std::sync::Arc;

use pando_base::{pause, Result, Seqno};

use crate::edit::{path_to, Editor};
use crate::job_claims::{BusyTable, Hint, JobId};
use crate::memtable::Memtable;
use crate::merge_window::merge_window;
use crate::node::{child_range, is_wasteful, Body, Child, KeyRange, Node, SCORE_DUE, SCORE_WORTHWHILE};
use crate::tree::{Structure, Tree};
use crate::version::TreeVersion;

/// Most hints kept; more are dropped, scans will give them again.
const HINTS_MAX: usize = 64;
/// Jobs a hint may cause before it is dropped: one per level and some in vain.
const HINT_STEPS_MAX: u32 = 16;

/// A flush of what waits in `parent` for one child, or for several small leaves side by side that
/// become one.
#[derive(Debug)]
pub(crate) struct FlushPlan {
    pub parent: Arc<Node>,
    /// The child; the first of several.
    pub first: usize,
    /// How many: more than one only for leaves.
    pub count: usize,
    /// Range of the children together.
    pub range: KeyRange,
    /// Rewrite the leaf even if nothing waits for it.
    pub rewrite: bool,
}

impl FlushPlan {
    /// The flush to child `index`, whose range is `range`.
    pub(crate) fn one(parent: Arc<Node>, index: usize, range: KeyRange, rewrite: bool) -> FlushPlan {
        FlushPlan { parent, first: index, count: 1, range, rewrite }
    }

    pub(crate) fn children(&self) -> &[Child] {
        &self.parent.children[self.first..self.first + self.count]
    }

    /// Range of the `n`-th of its children.
    pub(crate) fn range_of(&self, n: usize) -> KeyRange {
        child_range(&self.parent.pivots[self.first..self.first + self.count - 1], n, &self.range)
    }

    /// Takes in free neighbours to the right while all together stay within `limit` bytes;
    /// `outer` is the range of the parent.
    pub(crate) fn join(mut self, busy: &BusyTable, outer: &KeyRange, limit: u64) -> FlushPlan {
        let size = |child: &Child| match &child.body {
            Body::Leaf(leaf) => leaf.held.bytes.saturating_add(child.pending.bytes),
            Body::Node(_) => u64::MAX,
        };
        let mut sum: u64 = size(&self.parent.children[self.first]);
        while let Some(next) = self.parent.children.get(self.first + self.count) {
            sum = sum.saturating_add(size(next));
            if sum > limit || !busy.is_free(next.id()) {
                break;
            }
            self.count += 1;
        }
        self.range.hi = self.parent.child_range(self.first + self.count - 1, outer).hi;
        self
    }
}

/// A merge of the runs `window` of the buffer of `node`, which covers `range`.
#[derive(Debug)]
pub(crate) struct CompactPlan {
    pub node: Arc<Node>,
    pub range: KeyRange,
    pub window: std::ops::Range<usize>,
}

#[derive(Debug)]
pub(crate) enum Plan {
    WriteMemtable(Arc<Memtable>),
    Flush(FlushPlan),
    Compact(CompactPlan),
}

/// A picked job; dropping it ends what it holds.
pub(crate) struct Task<'a> {
    pub tree: &'a Tree,
    pub job: JobId,
    pub generation: u64,
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        self.tree.structure.lock().busy.release(self.job);
        self.tree.job_ended.notify_all();
    }
}

impl Task<'_> {
    /// Puts the job's result into the tree as it is now. `change` makes the next version, or gives
    /// `None` if there is nothing to change. A tree truncated since the pick is left alone.
    pub(crate) fn apply(
        &self,
        change: impl FnOnce(&mut Editor<'_>, &TreeVersion) -> Option<TreeVersion>,
    ) -> bool {
        let tree = self.tree;
        pause(4);
        let mut structure = tree.structure.lock();
        let now = tree.version.load_full();
        if now.generation != self.generation {
            return false;
        }
        let new_node = || tree.new_node();
        let mut editor = Editor {
            config: &tree.config,
            busy: &mut structure.busy,
            job: self.job,
            new_node: &new_node,
            splits: 0,
        };
        if let Some(next) = change(&mut editor, &now) {
            debug_assert_eq!(next.generation, now.generation);
            tree.version.store(Arc::new(next));
            tree.ctx.metrics.node_splits.add(editor.splits);
        }
        drop(structure);
        // What only the old version held goes here, outside the lock.
        drop(now);
        true
    }
}

impl Tree {
    /// Whether [`Tree::run_job`] would find something to do now. Cheap while there is nothing.
    pub fn has_work(&self) -> bool {
        if self.is_quiet() {
            return false;
        }
        let oldest = self.oldest_snapshot();
        let mut structure = self.structure.lock();
        let version = self.version.load_full();
        let found = self.pick(&structure, &version, oldest).is_some();
        if !found {
            self.drop_dead_hints(&mut structure, &version, oldest);
        }
        found
    }

    /// Does the most urgent job that conflicts with none running; false if there is none. Several
    /// threads may call it at once. After an error nothing has changed and the job is due again.
    pub fn run_job(&self) -> Result<bool> {
        match self.start_job() {
            Some((task, plan)) => self.execute(&task, plan).map(|()| true),
            None => Ok(false),
        }
    }

    /// Picks the most urgent job and marks what it relies on.
    pub(crate) fn start_job(&self) -> Option<(Task<'_>, Plan)> {
        if self.is_quiet() {
            return None;
        }
        let oldest = self.oldest_snapshot();
        pause(4);
        let mut structure = self.structure.lock();
        let version = self.version.load_full();
        let Some((plan, hint)) = self.pick(&structure, &version, oldest) else {
            self.drop_dead_hints(&mut structure, &version, oldest);
            return None;
        };
        if let Some(hint) = hint {
            self.step_hint(&mut structure, hint, &plan);
        }
        Some((self.begin(&mut structure, &version, &plan), plan))
    }

    fn is_quiet(&self) -> bool {
        let version = self.version.load();
        version.sealed.is_empty()
            && version.root.totals.heat < SCORE_DUE
            && version.deleted.is_empty()
            && self.hints_waiting.load(std::sync::atomic::Ordering::Relaxed) == 0
    }

    /// The oldest live snapshot.
    pub(crate) fn oldest_snapshot(&self) -> Seqno {
        self.horizon.snapshots().first().copied().unwrap_or(0)
    }

    /// Marks what the plan relies on as busy.
    pub(crate) fn begin<'a>(
        &'a self,
        structure: &mut Structure,
        version: &TreeVersion,
        plan: &Plan,
    ) -> Task<'a> {
        let busy = &mut structure.busy;
        let job = busy.new_job();
        match plan {
            Plan::WriteMemtable(_) => busy.hold_memtable(job),
            Plan::Flush(flush) => {
                busy.hold_shared(job, flush.parent.id);
                flush.children().iter().for_each(|child| busy.hold_exclusive(job, child.id()));
            }
            Plan::Compact(compact) => busy.hold_exclusive(job, compact.node.id),
        }
        Task { tree: self, job, generation: version.generation }
    }

    pub(crate) fn execute(&self, task: &Task<'_>, plan: Plan) -> Result<()> {
        match plan {
            Plan::WriteMemtable(memtable) => self.write_memtable(task, &memtable),
            Plan::Flush(flush) => self.flush(task, &flush),
            Plan::Compact(compact) => self.compact(task, &compact),
        }
    }

    /// The most urgent plan, and the index of the hint it follows.
    fn pick(
        &self,
        structure: &Structure,
        version: &TreeVersion,
        oldest: Seqno,
    ) -> Option<(Plan, Option<usize>)> {
        let busy = &structure.busy;
        if let Some(memtable) = version.sealed.last() {
            if !busy.is_memtable_busy() && memtable.is_settled() {
                return Some((Plan::WriteMemtable(memtable.clone()), None));
            }
        }
        if self.awaits_bottom() {
            return self.pick_above_bottom(busy, &version.root).map(|plan| (plan, None));
        }
        let followed = structure.hints.iter().enumerate().find_map(|(at, hint)| {
            let due = hint.after <= oldest;
            let plan = due.then(|| follow(busy, &version.root, &hint.key, Some(oldest))).flatten()?;
            Some((Plan::Flush(plan), Some(at)))
        });
        if followed.is_some() {
            return followed;
        }
        let mut best = None;
        self.search(busy, &version.root, &KeyRange::default(), &mut best);
        let plan = match best {
            Some((_, plan)) => Some(plan),
            // Last: a leaf that cannot be read must not keep others waiting.
            None => self.pick_sweep(busy, version, oldest).map(Plan::Flush),
        };
        plan.map(|plan| (plan, None))
    }

    /// Looks for the hottest plan in a subtree; heat is known from the totals, so cold subtrees are
    /// not entered.
    fn search(&self, busy: &BusyTable, node: &Arc<Node>, range: &KeyRange, best: &mut Option<(u64, Plan)>) {
        let bar = |best: &Option<(u64, Plan)>| best.as_ref().map_or(SCORE_DUE, |(score, _)| score + 1);
        if node.totals.heat < bar(best) {
            return;
        }
        if !busy.is_shareable(node.id) {
            // Its own jobs must wait, but below it others may be free.
            self.search_below(busy, node, range, best);
            return;
        }
        let free = |index: usize| busy.is_free(node.children[index].id());
        let mut fullest: Option<(u64, usize)> = None;
        for (index, child) in node.children.iter().enumerate() {
            let score = child.score(&self.config);
            if score > fullest.map_or(0, |(most, _)| most) && free(index) {
                fullest = Some((score, index));
            }
        }
        let flush = |index: usize| {
            let below = node.child_range(index, range);
            let plan = FlushPlan::one(node.clone(), index, below, false);
            // Leaves that have become small are made one.
            Plan::Flush(plan.join(busy, range, self.config.leaf_raw_bytes / 2))
        };
        let crowded = node.buffer_score(&self.config);
        let (fullness, index) = fullest.unwrap_or((0, 0));
        let score = fullness.max(crowded);
        if fullness >= SCORE_WORTHWHILE {
            if score >= bar(best) {
                *best = Some((score, flush(index)));
            }
        } else if crowded >= bar(best) && busy.is_free(node.id) {
            let wasteful = is_wasteful(&node.buffer, &node.children, &self.config);
            let window = if wasteful { 0..node.buffer.len() } else { merge_window(&node.buffer) };
            let plan = CompactPlan { node: node.clone(), range: range.clone(), window };
            *best = Some((crowded, Plan::Compact(plan)));
        }
        self.search_below(busy, node, range, best);
    }

    fn search_below(&self, busy: &BusyTable, node: &Node, range: &KeyRange, best: &mut Option<(u64, Plan)>) {
        for (index, child) in node.children.iter().enumerate() {
            if let Body::Node(below) = &child.body {
                self.search(busy, below, &node.child_range(index, range), best);
            }
        }
    }

    /// Files a hint unless one for the same leaf waits already.
    pub(crate) fn add_hint(&self, key: &[u8], after: Seqno) {
        self.file_hint(&mut self.structure.lock(), key, after);
    }

    /// Files a cursor's hint; a reader does not wait for it.
    pub(crate) fn try_hint(&self, key: &[u8]) {
        if let Some(mut structure) = self.structure.try_lock() {
            self.file_hint(&mut structure, key, 0);
        }
    }

    fn file_hint(&self, structure: &mut Structure, key: &[u8], after: Seqno) {
        let hints = &mut structure.hints;
        if hints.len() < HINTS_MAX && !hints.iter().any(|hint| hint.key == key) {
            hints.push_back(Hint { key: key.to_vec(), after, steps: 0 });
        }
        self.count_hints(structure);
    }

    fn count_hints(&self, structure: &Structure) {
        let count = structure.hints.len() as u64;
        self.hints_waiting.store(count, std::sync::atomic::Ordering::Relaxed);
    }

    /// A hint is used up when its leaf is rewritten.
    fn step_hint(&self, structure: &mut Structure, at: usize, plan: &Plan) {
        let done = matches!(plan, Plan::Flush(flush) if flush.rewrite);
        if let Some(hint) = structure.hints.get_mut(at) {
            hint.steps += 1;
            if done || hint.steps >= HINT_STEPS_MAX {
                structure.hints.remove(at);
            }
        }
        self.count_hints(structure);
    }

    /// Drops hints that ask for nothing any more; those that are blocked or not due stay.
    fn drop_dead_hints(&self, structure: &mut Structure, version: &TreeVersion, oldest: Seqno) {
        let nobody = BusyTable::default();
        structure.hints.retain(|hint| {
            hint.after > oldest || follow(&nobody, &version.root, &hint.key, Some(oldest)).is_some()
        });
        self.count_hints(structure);
    }
}

/// The next flush on the way of `key` down to its leaf: the topmost child with something waiting, or
/// else, once all has arrived, the leaf itself. With `oldest` only if rewriting the leaf may drop
/// something: it was not written when this was already the oldest snapshot.
pub(crate) fn follow(
    busy: &BusyTable,
    root: &Arc<Node>,
    key: &[u8],
    oldest: Option<Seqno>,
) -> Option<FlushPlan> {
    let path = path_to(root, key, |node, index| matches!(node.children[index].body, Body::Leaf(_)))?;
    let last = path.len() - 1;
    for (level, step) in path.into_iter().enumerate() {
        let range = step.node.child_range(step.index, &step.range);
        let child = &step.node.children[step.index];
        let waiting = step.node.unpassed(step.index).any(|run| range.overlaps(&run.run));
        let rewrite = level == last
            && match &child.body {
                Body::Leaf(leaf) => {
                    !leaf.runs.is_empty() && oldest.is_none_or(|oldest| leaf.horizon < oldest)
                }
                Body::Node(_) => false,
            };
        if waiting || rewrite {
            let free = busy.is_shareable(step.node.id) && busy.is_free(child.id());
            return free.then(|| FlushPlan::one(step.node, step.index, range, level == last));
        }
    }
    None
}
