//! The tree object: its parts, and the side that writers see.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwap;
use pando_base::locks::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use pando_base::{pause, DeletedRanges, Kind, NodeId, RecordRef, RunId, Seqno};
use pando_column::Shapes;
use pando_run::{Compression, Run, RunContext, RunOptions, RunWriter};

use crate::config::{Horizon, TreeConfig};
use crate::coverage::Coverage;
use crate::deleted::{Room, Sweep};
use crate::durable::Durable;
use crate::job_claims::{BusyTable, Hint};
use crate::memtable::Memtable;
use crate::node::{Node, NodeParts};
use crate::version::TreeVersion;

/// One ordered dictionary: memtables over a tree of runs in one file. See the crate's head.
pub struct Tree {
    pub(crate) ctx: RunContext,
    /// Its compressions are those of the beginning: see `written`.
    pub(crate) config: TreeConfig,
    written: Mutex<Written>,
    shapes: Mutex<Arc<Shapes>>,
    pub(crate) horizon: Arc<dyn Horizon>,
    /// Stored only with `structure` held.
    pub(crate) version: ArcSwap<TreeVersion>,
    /// Shared by commits while they insert; exclusive for the swap of the memtable.
    gate: RwLock<()>,
    pub(crate) structure: Mutex<Structure>,
    /// Taken alone, or last.
    pub(crate) room: Mutex<Room>,
    /// How far deleted ranges are cleaned; taken with `structure` held, or alone.
    pub(crate) sweep: Mutex<Sweep>,
    /// A job has ended.
    pub(crate) job_ended: Condvar,
    pub(crate) coverage: Mutex<Coverage>,
    /// Held through a checkpoint: one at a time.
    pub(crate) checkpoint_turn: Mutex<()>,
    pub(crate) durable: Mutex<Durable>,
    next_run: AtomicU64,
    next_node: AtomicU64,
    last_write: AtomicU64,
    /// Number of hints, readable without the mutex.
    pub(crate) hints_waiting: AtomicU64,
    /// Dead versions that cursors had to step over.
    pub(crate) dead_skipped: AtomicU64,
    /// See `growing`.
    pub(crate) awaits_bottom: AtomicBool,
}

/// How runs are compressed from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    leaves: Compression,
    buffers: Compression,
}

/// What the structure mutex protects beside the swap of the version.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    pub busy: BusyTable,
    pub hints: VecDeque<Hint>,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("dict", &self.ctx.file.dict()).finish_non_exhaustive()
    }
}

/// How far a tree is behind with its background work; the price of writes follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Bytes in sealed memtables.
    pub sealed_bytes: u64,
    /// Bytes waiting in buffers beyond what the policy lets wait.
    pub overdue_bytes: u64,
}

/// Lets a commit insert: it is held from before the commit's seqno is assigned until its records
/// are in.
pub struct WriteGuard<'a> {
    tree: &'a Tree,
    memtable: Arc<Memtable>,
    newest: Cell<Seqno>,
    _shared: RwLockReadGuard<'a, ()>,
}

impl fmt::Debug for WriteGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteGuard").field("tree", self.tree).finish_non_exhaustive()
    }
}

impl WriteGuard<'_> {
    pub(crate) fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Adds all records of a private run as of commit `seqno`, by reference; several of one commit: oldest
    /// first. Requires: since no version of any of its keys could be committed any more by others (they
    /// were locked), the memtable was sealed ([`Tree::seal_before_adoption`]); so none of them is in the
    /// active memtable. The run is durable, and so is what the log says of it before the commit is.
    pub fn adopt(&self, run: &Run, seqno: Seqno) {
        self.tree.adopt_into(&self.memtable, run, seqno);
        self.newest.set(self.newest.get().max(seqno));
    }

    /// Keeps the log from commit `seqno` on until a checkpoint has been asked for the auto-increment value since, whether
    /// or not the commit has records here.
    pub fn note_counter(&self, seqno: Seqno) {
        self.memtable.need_log_from(seqno);
    }

    /// Everything in `[lo, hi)` is gone as of commit `seqno`: see `deleted`.
    pub fn delete_range(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        self.memtable.need_log_from(seqno);
        self.tree.add_deleted(lo, hi, seqno);
    }

    /// Adds one version of a key. `seqno` was assigned while the guard was held; a commit inserts a
    /// key once.
    pub fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        self.insert_all(&[RecordRef { key, seqno, kind, value }]);
    }

    /// Adds many as [`Self::insert`] does each, which is quicker. All have the seqno of one commit.
    pub fn insert_all(&self, records: &[RecordRef<'_>]) {
        let Some(first) = records.first() else { return };
        self.memtable.insert_all(records);
        if first.seqno > self.newest.get() {
            self.newest.set(first.seqno);
            self.tree.note_write(first.seqno);
        }
    }
}

/// A closed gate: no commit is between its seqno and its records, and the memtable is not sealed.
pub struct ClosedGate<'a> {
    tree: &'a Tree,
    _exclusive: RwLockWriteGuard<'a, ()>,
}

impl fmt::Debug for ClosedGate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosedGate").field("tree", self.tree).finish_non_exhaustive()
    }
}

impl ClosedGate<'_> {
    /// Everything up to `seqno` is gone at once; durable through the caller's log record. `seqno`
    /// must have been assigned after the gate was closed, else a checkpoint could claim to hold
    /// the commits up to it with the old content. The caller has the dictionary for itself; cursors
    /// opened before go on in what they see, and jobs in flight are discarded when they end.
    pub fn truncate(self, seqno: Seqno) {
        let tree = self.tree;
        let root = NodeParts::empty(tree.new_node(), tree.new_node()).build(&tree.config);
        let mut structure = tree.structure.lock();
        structure.hints.clear();
        let old = tree.version.load_full();
        let next = TreeVersion {
            root,
            sealed: Vec::new(),
            active: Arc::new(tree.new_memtable()),
            flushed: old.flushed.max(seqno),
            deleted: DeletedRanges::default(),
            generation: old.generation + 1,
        };
        let mut coverage = tree.coverage.lock();
        coverage.truncate(seqno);
        tree.version.store(Arc::new(next));
        tree.last_write.fetch_max(seqno, Ordering::AcqRel);
        drop(coverage);
        drop(structure);
        drop(self);
        // The old tree may be large; it goes here, outside the locks.
        drop(old);
    }
}

/// What a tree starts from.
pub(crate) struct Start {
    pub root: Arc<Node>,
    pub flushed: Seqno,
    pub deleted: DeletedRanges,
    pub next_run: u64,
    pub next_node: u64,
    pub durable: Durable,
}

impl Tree {
    /// A tree over a file just created.
    pub fn create(ctx: RunContext, config: TreeConfig, horizon: Arc<dyn Horizon>) -> Arc<Tree> {
        let root = NodeParts::empty(NodeId(1), NodeId(2)).build(&config);
        let start = Start {
            root,
            flushed: 0,
            deleted: DeletedRanges::default(),
            next_run: 1,
            next_node: 3,
            durable: Durable::default(),
        };
        Tree::start(ctx, config, horizon, start)
    }

    pub(crate) fn start(
        ctx: RunContext,
        config: TreeConfig,
        horizon: Arc<dyn Horizon>,
        start: Start,
    ) -> Arc<Tree> {
        assert!(config.fanout_max >= 2 && config.buffer_runs_max >= 1, "{config:?}");
        let version = TreeVersion {
            root: start.root,
            sealed: Vec::new(),
            active: Arc::new(Memtable::new(config.memtable_bytes, ctx.metrics.clone())),
            flushed: start.flushed,
            deleted: start.deleted.clone(),
            generation: 0,
        };
        Arc::new(Tree {
            ctx,
            written: Mutex::new(Written {
                leaves: config.run.compression,
                buffers: config.buffer_compression,
            }),
            shapes: Mutex::default(),
            config,
            horizon,
            version: ArcSwap::from_pointee(version),
            gate: RwLock::new(()),
            structure: Mutex::default(),
            room: Mutex::new(Room::opened(start.deleted.as_slice().len())),
            sweep: Mutex::default(),
            job_ended: Condvar::new(),
            coverage: Mutex::default(),
            checkpoint_turn: Mutex::new(()),
            durable: Mutex::new(start.durable),
            next_run: AtomicU64::new(start.next_run),
            next_node: AtomicU64::new(start.next_node),
            last_write: AtomicU64::new(0),
            hints_waiting: AtomicU64::new(0),
            dead_skipped: AtomicU64::new(0),
            awaits_bottom: AtomicBool::new(false),
        })
    }

    /// From now on, what stays is written with the compression of leaves, and what is soon rewritten with
    /// the other. What is there already stays as it is until a merge comes by.
    pub fn set_compression(&self, leaves: Compression, buffers: Compression) {
        *self.written.lock() = Written { leaves, buffers };
    }

    /// What values are known to be.
    pub(crate) fn shapes(&self) -> Arc<Shapes> {
        self.shapes.lock().clone()
    }

    /// What values are from now on known to be: what stays is written column-wise, and rows of these layouts
    /// are taken apart.
    pub fn set_shapes(&self, shapes: Arc<Shapes>) {
        *self.shapes.lock() = shapes;
    }

    /// A writer of a new run: one of leaves, column-wise; or one for a buffer, which is soon rewritten, and
    /// row-wise.
    pub(crate) fn run_writer(&self, leaf_ready: bool) -> RunWriter {
        let written = *self.written.lock();
        let compression = if leaf_ready { written.leaves } else { written.buffers };
        let options = RunOptions { compression, ..self.config.run };
        let writer = RunWriter::new(&self.ctx, self.new_run(), options);
        match leaf_ready {
            true => writer.with_columns(self.shapes()),
            false => writer,
        }
    }

    /// Whether every run may become a leaf unrewritten, because all are written alike.
    pub(crate) fn all_leaf_ready(&self) -> bool {
        let written = *self.written.lock();
        written.leaves == written.buffers
    }

    fn new_memtable(&self) -> Memtable {
        Memtable::new(self.config.memtable_bytes, self.ctx.metrics.clone())
    }

    /// Enters the gate for a commit. Waits only while the memtable is being swapped.
    pub fn gate(&self) -> WriteGuard<'_> {
        let shared = self.gate.read();
        pause(64);
        // Behind the gate nobody swaps the active memtable.
        let memtable = self.version.load().active.clone();
        WriteGuard { tree: self, memtable, newest: Cell::new(0), _shared: shared }
    }

    pub(crate) fn adopt_into(&self, memtable: &Memtable, run: &Run, seqno: Seqno) {
        let run = run.adopted(seqno);
        self.coverage.lock().adopt(run.clone());
        memtable.adopt(run);
        self.note_write(seqno);
    }

    pub(crate) fn note_write(&self, seqno: Seqno) {
        self.last_write.fetch_max(seqno, Ordering::AcqRel);
    }

    /// Highest seqno inserted since the tree was opened; 0 if none.
    pub fn last_write(&self) -> Seqno {
        self.last_write.load(Ordering::Acquire)
    }

    /// Seals the active memtable if it has reached its size, or dead records in it are in everybody's way, or a deleted range waits for
    /// it to be written. See [`Tree::seal`].
    pub fn seal_if_full(&self, last_assigned: impl Fn() -> Seqno) -> bool {
        let full = |version: &TreeVersion| {
            version.active.bytes() >= self.config.memtable_bytes as u64
                || version.active.is_rotten()
                || (!version.deleted.is_empty() && version.holds_up_sweep())
        };
        full(&self.version.load()) && self.seal_when(full, last_assigned).0
    }

    /// Freezes the active memtable and starts an empty one; false if it was empty. `last_assigned`
    /// is asked behind the exclusive gate: every record of this dictionary with a seqno up to its
    /// answer is then in the sealed memtable or below.
    pub fn seal(&self, last_assigned: impl Fn() -> Seqno) -> bool {
        self.seal_when(|_| true, last_assigned).0
    }

    /// Seals if `wanted`; tells whether, and up to which seqno everything is sealed now (of
    /// interest only where `wanted` is always true).
    pub(crate) fn seal_when(
        &self,
        wanted: impl Fn(&TreeVersion) -> bool,
        last_assigned: impl Fn() -> Seqno,
    ) -> (bool, Seqno) {
        let fresh = Arc::new(self.new_memtable());
        pause(16);
        let exclusive = self.gate.write();
        let assigned = last_assigned();
        let _structure = self.structure.lock();
        let old = self.version.load_full();
        if !wanted(&old) {
            return (false, 0);
        }
        let Some(first) = old.active.needed_from() else {
            // Nothing to seal, but the tree knows now that there is nothing up to here.
            let sealed = old.sealed.first().map(|memtable| memtable.seal_seqno());
            let Some(sealed) = sealed else {
                let flushed = old.flushed.max(assigned);
                let next = TreeVersion { flushed, ..old.with_root(old.root.clone()) };
                self.version.store(Arc::new(next));
                return (false, flushed);
            };
            return (false, sealed);
        };
        let assigned = assigned.max(first).max(self.last_write());
        old.active.seal(assigned);
        let mut sealed = vec![old.active.clone()];
        sealed.extend(old.sealed.iter().cloned());
        let mut coverage = self.coverage.lock();
        coverage.push(first, assigned);
        let next = TreeVersion { sealed, active: fresh, ..old.with_root(old.root.clone()) };
        self.version.store(Arc::new(next));
        drop(coverage);
        drop(exclusive);
        self.ctx.metrics.memtable_seals.add(1);
        (true, assigned)
    }

    /// Makes sure that the active memtable has nothing that was committed before this call, for
    /// [`WriteGuard::adopt`]. `last_assigned` as in [`Tree::seal`].
    pub fn seal_before_adoption(&self, last_assigned: impl Fn() -> Seqno) {
        self.seal_when(|version| !version.active.is_empty(), last_assigned);
    }

    /// Closes the gate, for a truncation: see [`ClosedGate::truncate`].
    pub fn close_gate(&self) -> ClosedGate<'_> {
        ClosedGate { tree: self, _exclusive: self.gate.write() }
    }

    /// [`ClosedGate::truncate`] for a caller who knows that no checkpoint can come between the
    /// assignment of `seqno` and this call.
    pub fn truncate(&self, seqno: Seqno) {
        self.close_gate().truncate(seqno);
    }

    /// Bytes in the active and sealed memtables.
    pub fn memtable_bytes(&self) -> u64 {
        self.version.load().memtables().map(|memtable| memtable.bytes()).sum()
    }

    /// Bytes in the active memtable alone.
    pub fn active_bytes(&self) -> u64 {
        self.version.load().active.bytes()
    }

    /// How far background work is behind.
    pub fn debt(&self) -> Debt {
        let version = self.version.load();
        Debt {
            sealed_bytes: version.sealed.iter().map(|memtable| memtable.bytes()).sum(),
            overdue_bytes: if self.awaits_bottom() { 0 } else { version.root.totals.overdue },
        }
    }

    /// Lowest seqno that recovery would need from the log: the first commit not covered by the
    /// durable checkpoint; `None` if all are.
    pub fn oldest_unwritten(&self) -> Option<Seqno> {
        // Under the mutex a memtable is either still active or already among the spans.
        let coverage = self.coverage.lock();
        let active = self.version.load().active.needed_from();
        [coverage.first(), active].into_iter().flatten().min()
    }

    pub(crate) fn new_node(&self) -> NodeId {
        NodeId(self.next_node.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn new_run(&self) -> RunId {
        RunId(self.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// First ids not used yet: of runs, of nodes.
    pub(crate) fn next_ids(&self) -> (u64, u64) {
        (self.next_run.load(Ordering::Relaxed), self.next_node.load(Ordering::Relaxed))
    }
}
