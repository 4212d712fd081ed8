//! The bottom of an empty tree: kept free while a base for it is being built, then filled at once.
//!
//! A new index gets the changes of others from a seqno S on, while its **base**, what there was at S, is
//! sorted elsewhere (`load`). All of the base is older than all changes, so it belongs into the leaves,
//! whatever waits above (I3). Until then nothing may be flushed into the leaf: a tombstone that reached it
//! would be dropped, and what it is to hide comes later. [`BottomHold`] keeps the leaf busy like a flush
//! that takes long: changes collect in the root's buffer, where runs are merged, but tombstones stay.
//!
//! The base has no place in the log: whoever adopts it makes a checkpoint before the index becomes public.

use std::sync::Arc;

use pando_base::{NodeId, Seqno};
use pando_run::{Estimate, Run};

use crate::edit::path_to;
use crate::job_claims::JobId;
use crate::jobs::Task;
use crate::merge_output::separator;
use crate::node::{share_of, Body, Child, Leaf};
use crate::tree::Tree;

/// Keeps the only leaf of a tree empty; dropping it lets flushes go on. See the head of this file.
#[derive(Debug)]
pub struct BottomHold {
    tree: Arc<Tree>,
    job: JobId,
    generation: u64,
    leaf: NodeId,
}

impl Drop for BottomHold {
    fn drop(&mut self) {
        self.tree.structure.lock().busy.release(self.job);
        self.tree.job_ended.notify_all();
    }
}

impl Tree {
    /// Keeps flushes from the bottom of a tree that has never had anything in its leaf; `None` if this one
    /// has, or if it is being flushed to.
    pub fn hold_bottom(self: &Arc<Self>) -> Option<BottomHold> {
        let mut structure = self.structure.lock();
        let version = self.version.load_full();
        let child = match version.root.children.as_slice() {
            [child] if child.is_vacant() => child,
            _ => return None,
        };
        let Body::Leaf(leaf) = &child.body else { return None };
        if !structure.busy.is_free(leaf.id) {
            return None;
        }
        let job = structure.busy.new_job();
        structure.busy.hold_exclusive(job, leaf.id);
        let (generation, leaf) = (version.generation, leaf.id);
        drop(structure);
        Some(BottomHold { tree: self.clone(), job, generation, leaf })
    }
}

impl BottomHold {
    /// Makes private runs, ascending, apart from each other and synced, the leaves of the tree, as of commit
    /// `seqno`, which is below every seqno that the tree has got since the hold began. False if the tree was
    /// truncated meanwhile: the runs are gone then. Not durable before the next checkpoint.
    pub fn adopt(self, runs: &[Arc<Run>], seqno: Seqno) -> bool {
        debug_assert!(runs.windows(2).all(|pair| pair[0].meta().max_key < pair[1].meta().min_key));
        if runs.is_empty() {
            return self.tree.version.load().generation == self.generation;
        }
        let tree = self.tree.clone();
        let leaves: Vec<Arc<Leaf>> = runs.iter().map(|run| Arc::new(self.leaf_of(run, seqno))).collect();
        let keys = |run: &Arc<Run>| (run.meta().min_key.clone(), run.meta().max_key.clone());
        let bounds: Vec<_> = runs.iter().map(keys).collect();
        let pivots = bounds.windows(2).map(|pair| separator(&pair[0].1, &pair[1].0)).collect::<Vec<_>>();
        // Only to put the result in: the leaf stays held by this hold's own job.
        let task = Task { tree: &tree, job: self.job, generation: self.generation };
        let adopted = task.apply(|editor, now| {
            let path = path_to(&now.root, b"", |_, _| true)?;
            let root = editor.edit(path, |parts, _, _| {
                assert!(
                    parts.children.len() == 1 && parts.children[0].id() == self.leaf,
                    "the leaf was held"
                );
                let old = &parts.children[0];
                let (passed, pending) = (old.passed, share_of(&old.pending, leaves.len()));
                let slots = leaves.into_iter().map(|leaf| Child { body: Body::Leaf(leaf), passed, pending });
                parts.children = slots.collect();
                parts.pivots = pivots;
            });
            Some(now.with_root(root))
        });
        adopted
    }

    fn leaf_of(&self, run: &Arc<Run>, seqno: Seqno) -> Leaf {
        let run = run.adopted(seqno);
        let meta = run.meta();
        let held = Estimate { rows: meta.rows, bytes: meta.raw_bytes, tombstones: meta.tombstones };
        Leaf { id: self.tree.new_node(), runs: vec![run], held, horizon: 0 }
    }
}
