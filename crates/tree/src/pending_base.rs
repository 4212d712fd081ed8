//! A tree whose bottom is still to come: that of an index which is being built.
//!
//! Changes since a snapshot are inserted as into any tree, and its older content, the **base**, is put under
//! them when it is ready (I3 holds by itself: all of it is older). Until then
//! - nothing is flushed to a leaf: there a tombstone with nothing below it would be dropped, and the entry
//!   of the base that it hides come back to life. What is written stays in the root's buffer, whose runs
//!   are merged with one another when they pile up;
//! - what waits there is no debt: nobody could work it off.
//!
//! The mark is not kept on disk: an index that was being built when the process ended is gone.
//!
//! [`Tree::for_each_changed_key`] is for who checks what was written while an index was built.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{Error, Seqno};
use pando_run::Run;

use crate::job_claims::BusyTable;
use crate::jobs::{CompactPlan, Plan};
use crate::memtable::MemtableState;
use crate::merge_window::merge_window;
use crate::node::{is_wasteful, Body, KeyRange, Node, SCORE_DUE};
use crate::tree::Tree;

impl Tree {
    /// Marks the tree, which is empty still, as one whose base is to come.
    pub fn await_bottom(&self) {
        self.awaits_bottom.store(true, Ordering::Release);
    }

    /// The base is there: the tree is one like any other from now on.
    pub fn end_awaiting_bottom(&self) {
        self.awaits_bottom.store(false, Ordering::Release);
    }

    pub(crate) fn awaits_bottom(&self) -> bool {
        self.awaits_bottom.load(Ordering::Acquire)
    }

    /// The only job on nodes that a tree without a bottom may do: a merge in the root's buffer.
    pub(crate) fn pick_above_bottom(&self, busy: &BusyTable, root: &Arc<Node>) -> Option<Plan> {
        let is_due = root.buffer_score(&self.config) >= SCORE_DUE && root.buffer.len() > 1;
        if !is_due || !busy.is_shareable(root.id) || !busy.is_free(root.id) {
            return None;
        }
        let wasteful = is_wasteful(&root.buffer, &root.children, &self.config);
        let window = if wasteful { 0..root.buffer.len() } else { merge_window(&root.buffer) };
        Some(Plan::Compact(CompactPlan { node: root.clone(), range: KeyRange::default(), window }))
    }

    /// Hands every key that has a version newer than `since` to `visit`, deleted ones included; some of
    /// them several times, in no order. Costs reading the memtables and runs that have such versions.
    ///
    /// # Errors
    /// Those of reading, and of `visit`.
    pub fn for_each_changed_key<E: From<Error>>(
        &self,
        since: Seqno,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let version = self.version.load_full();
        for memtable in version.memtables() {
            if memtable.state() != MemtableState::Active && memtable.seal_seqno() <= since {
                continue;
            }
            let changed = memtable.starting_at(Bound::Unbounded).filter(|r| r.seqno > since);
            let keys: BTreeSet<Vec<u8>> = changed.map(|r| r.key.to_vec()).collect();
            keys.iter().try_for_each(|key| visit(key))?;
        }
        for run in version.adopted() {
            changed_in_run(&run, since, &mut visit)?;
        }
        changed_below(&version.root, since, &mut visit)
    }
}

fn changed_below<E: From<Error>>(
    node: &Node,
    since: Seqno,
    visit: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    for entry in &node.buffer {
        changed_in_run(&entry.run, since, visit)?;
    }
    for child in &node.children {
        match &child.body {
            Body::Node(below) => changed_below(below, since, visit)?,
            Body::Leaf(leaf) => leaf.runs.iter().try_for_each(|run| changed_in_run(run, since, visit))?,
        }
    }
    Ok(())
}

fn changed_in_run<E: From<Error>>(
    run: &Arc<Run>,
    since: Seqno,
    visit: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if run.meta().max_seqno <= since {
        return Ok(());
    }
    let mut cursor = run.cursor().bypass_cache();
    cursor.seek_first()?;
    while cursor.valid() {
        let r = cursor.record();
        if r.seqno > since {
            visit(r.key)?;
        }
        cursor.next()?;
    }
    Ok(())
}
