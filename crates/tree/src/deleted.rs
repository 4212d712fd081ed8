//! Deleted ranges: how they come into a tree, and how they go.
//!
//! A [`DeletedRange`] stands in the tree's version beside what it hides, so that a reader gets both at once (I4). Its commit
//! adds it before it is visible, with the range locked: in the range there is nothing newer, and nothing older is still to come.
//!
//! - *Reads* compare: a version that is hidden is a delete, and what is older is hidden as well. Runs that are hidden as a whole are not
//!   opened.
//! - *Merges* drop what is hidden once every snapshot sees the range (`VersionFilter::with_deleted`), without reading runs that
//!   are hidden as a whole. Records that are newer than the range keep their seqno instead of being settled (`SETTLED_SEQNO` is older
//!   than every range): the ranges are asked for after the snapshots, so a commit that is not among them then is newer than
//!   all that may be settled.
//! - *The sweep* is the least urgent job: from left to right it flushes down to each leaf what is older than the range, and rewrites the
//!   leaf, unless that was written when every snapshot saw the range. Leaves that are hidden as a whole go without being read,
//!   many at once. When the sweep has reached the end, nothing older is left and the range goes.
//! - *Checkpoints* write those that are not newer than what they hold into the superblock; the log has the others.
//! - *Room*: the superblock is one page. What a start may have to keep there is what the last checkpoint has there, and what the log
//!   has since, also of ranges that have gone meanwhile. So who wants to delete a range reserves its place before
//!   ([`Tree::reserve_range`]), and both together with what is reserved are never more than fit.

use std::sync::Arc;

use pando_base::{DeletedRange, DeletedRanges, Seqno};
use pando_run::Run;
use pando_storage::Superblock;

use crate::edit::path_to;
use crate::job_claims::BusyTable;
use crate::jobs::FlushPlan;
use crate::node::{Body, Child, KeyRange, Node};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// Most ranges of a tree, those that are only reserved or only in the log included: each is compared with in every read.
const RANGES_MAX: usize = 32;

/// Most bytes of a range's ends: so many ranges fit into a superblock.
const KEY_BYTES_MAX: usize = Superblock::DELETED_BYTES_MAX / RANGES_MAX - DeletedRange::STORED_BYTES - 1;

/// Which ranges a start may have to keep.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// How many the durable superblock has.
    durable: usize,
    /// Commits that have deleted ranges since that checkpoint.
    since: Vec<Seqno>,
    /// Transactions that are to delete one.
    reserved: usize,
}

impl Room {
    /// Of a file whose superblock has so many.
    pub(crate) fn opened(durable: usize) -> Room {
        Room { durable, ..Room::default() }
    }

    /// A checkpoint up to `seqno` is durable, with so many ranges.
    pub(crate) fn made_durable(&mut self, seqno: Seqno, ranges: usize) {
        self.durable = ranges;
        self.since.retain(|since| *since > seqno);
    }

    pub(crate) fn durable(&self) -> usize {
        self.durable
    }

    fn taken(&self) -> usize {
        self.durable + self.since.len() + self.reserved
    }
}

/// The place of a range that a transaction is to delete; given back when it is dropped.
#[derive(Debug)]
pub struct RangeTicket(Arc<Tree>);

impl Drop for RangeTicket {
    fn drop(&mut self) {
        self.0.room.lock().reserved -= 1;
    }
}

/// How far the oldest range is cleaned.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Which one.
    seqno: Seqno,
    /// All before this key is clean.
    position: Vec<u8>,
}

/// Whether all that a run has in `range` is hidden.
pub(crate) fn hides_run(deleted: &DeletedRanges, run: &Run, range: &KeyRange) -> bool {
    let meta = run.meta();
    let first = meta.min_key.as_slice().max(range.low());
    deleted.as_slice().iter().any(|its| {
        let ends = |hi: &[u8]| meta.max_key.as_slice() < hi || range.hi().is_some_and(|end| end <= hi);
        meta.max_seqno < its.seqno && its.lo.as_slice() <= first && its.hi.as_deref().is_none_or(ends)
    })
}

impl Tree {
    /// The place of one more range; `None`: there is none, and keys have to be deleted one by one. In a file that is encrypted there is
    /// none, as the superblock is not. It is to be kept until the range is added or given up.
    pub fn reserve_range(self: &Arc<Self>, lo: &[u8], hi: Option<&[u8]>) -> Option<RangeTicket> {
        let bytes = lo.len() + hi.map_or(0, <[u8]>::len);
        if bytes > KEY_BYTES_MAX {
            return None;
        }
        let mut room = self.room.lock();
        // Under the lock: see `has_no_ranges`.
        let is_room = room.taken() < RANGES_MAX && self.ctx.file.key_id().is_none();
        room.reserved += usize::from(is_room);
        is_room.then(|| RangeTicket(self.clone()))
    }

    /// The place of a range of a transaction that was prepared before a restart: it had one then.
    pub fn reserve_restored_range(self: &Arc<Self>) -> RangeTicket {
        self.room.lock().reserved += 1;
        RangeTicket(self.clone())
    }

    /// Whether a checkpoint would make room for ranges, and is wanted for it.
    pub fn is_short_of_ranges(&self) -> bool {
        self.room.lock().taken() > RANGES_MAX / 2
    }

    /// Whether there is no deleted range, neither in memory nor in the durable superblock nor in the log behind it, nor a transaction that
    /// may still delete one. Of a file that is encrypted it stays so.
    pub fn has_no_ranges(&self) -> bool {
        self.room.lock().taken() == 0 && self.deleted_ranges() == 0
    }

    /// How many deleted ranges there are whose space is not free yet.
    pub fn deleted_ranges(&self) -> usize {
        self.version.load().deleted.as_slice().len()
    }

    pub(crate) fn add_deleted(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        let range = DeletedRange { lo: lo.to_vec(), hi: hi.map(<[u8]>::to_vec), seqno };
        let _structure = self.structure.lock();
        let old = self.version.load_full();
        let mut all = old.deleted.as_slice().to_vec();
        if !all.contains(&range) {
            all.push(range);
        }
        let deleted = DeletedRanges::new(all);
        self.version.store(Arc::new(TreeVersion { deleted, ..old.with_root(old.root.clone()) }));
        self.room.lock().since.push(seqno);
        self.note_write(seqno);
    }

    /// The oldest range that can be cleaned: every snapshot sees it, and all that it hides is in nodes.
    fn sweepable(deleted: &DeletedRanges, flushed: Seqno, oldest: Seqno) -> Option<&DeletedRange> {
        let range = deleted.as_slice().iter().min_by_key(|range| range.seqno)?;
        (range.seqno <= oldest && range.seqno <= flushed).then_some(range)
    }

    /// The sweep's next flush. `None`: it is blocked, or there is nothing (more) to clean. Ranges that are clean go. Requires the structure
    /// mutex, and that `version` is that of now.
    pub(crate) fn pick_sweep(
        &self,
        busy: &BusyTable,
        version: &TreeVersion,
        oldest: Seqno,
    ) -> Option<FlushPlan> {
        let mut left = version.deleted.clone();
        let mut sweep = self.sweep.lock();
        let mut picked = None;
        while let Some(range) = Tree::sweepable(&left, version.flushed, oldest) {
            if sweep.seqno != range.seqno {
                *sweep = Sweep { seqno: range.seqno, position: range.lo.clone() };
            }
            match sweep.go_on(busy, &version.root, range) {
                Step::Blocked => break,
                Step::Due(plan) => {
                    picked = Some(plan);
                    break;
                }
                Step::Clean(_) => {
                    let kept =
                        left.as_slice().iter().filter(|its| its.seqno != range.seqno).cloned().collect();
                    left = DeletedRanges::new(kept);
                }
            }
        }
        if left != version.deleted {
            let next = TreeVersion { deleted: left, ..version.with_root(version.root.clone()) };
            self.version.store(Arc::new(next));
        }
        picked
    }
}

impl Sweep {
    /// To the next leaf that is not clean, or to the end of the range.
    fn go_on(&mut self, busy: &BusyTable, root: &Arc<Node>, range: &DeletedRange) -> Step {
        loop {
            match step(busy, root, &self.position, range) {
                Step::Clean(Some(next)) if range.hi.as_ref().is_none_or(|hi| next < *hi) => {
                    self.position = next
                }
                end => return end,
            }
        }
    }
}

/// What is to be done about the leaf of a key.
enum Step {
    /// Something on the way is busy.
    Blocked,
    Due(FlushPlan),
    /// Nothing; where the next leaf begins.
    Clean(Option<Vec<u8>>),
}

fn step(busy: &BusyTable, root: &Arc<Node>, key: &[u8], range: &DeletedRange) -> Step {
    let Some(path) = path_to(root, key, |node, index| matches!(node.children[index].body, Body::Leaf(_)))
    else {
        return Step::Clean(None);
    };
    let mut next = None;
    for place in path {
        let (node, index) = (&place.node, place.index);
        let below = node.child_range(index, &place.range);
        let is_old = |run: &Run| {
            let meta = run.meta();
            meta.min_seqno < range.seqno && below.overlaps(run) && {
                // Where both have keys.
                let first = meta.min_key.as_slice().max(below.low());
                range.hi.as_deref().is_none_or(|hi| first < hi) && *range.lo <= *meta.max_key
            }
        };
        let waits = node.unpassed(index).any(|entry| is_old(&entry.run));
        let child = &node.children[index];
        let is_dirty = match &child.body {
            Body::Leaf(leaf) => leaf.horizon < range.seqno && leaf.runs.iter().any(|run| is_old(run)),
            Body::Node(_) => false,
        };
        if waits || is_dirty {
            if !busy.is_shareable(node.id) || !busy.is_free(child.id()) {
                return Step::Blocked;
            }
            let rewrite = matches!(child.body, Body::Leaf(_));
            let mut plan = FlushPlan::one(node.clone(), index, below, rewrite);
            if rewrite && is_hidden(child, &plan.range, range) {
                join_hidden(&mut plan, busy, &place.range, range);
            }
            return Step::Due(plan);
        }
        next = below.hi.map(|hi| hi.to_vec());
    }
    Step::Clean(next)
}

/// Whether all runs of a leaf are hidden by the range.
fn is_hidden(child: &Child, below: &KeyRange, range: &DeletedRange) -> bool {
    let Body::Leaf(leaf) = &child.body else { return false };
    let range = DeletedRanges::new(vec![range.clone()]);
    leaf.runs.iter().all(|run| hides_run(&range, run, below))
}

/// Takes in the neighbours to the right that are hidden as well: all of them become one empty leaf.
fn join_hidden(plan: &mut FlushPlan, busy: &BusyTable, outer: &KeyRange, range: &DeletedRange) {
    while let Some(next) = plan.parent.children.get(plan.first + plan.count) {
        let below = plan.parent.child_range(plan.first + plan.count, outer);
        if !busy.is_free(next.id()) || !is_hidden(next, &below, range) {
            break;
        }
        plan.count += 1;
        plan.range.hi = below.hi;
    }
}
