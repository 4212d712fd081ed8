//! Checkpoints: making durable what the tree holds, one dictionary at a time, without stopping it.
//!
//! Life of a checkpoint (the numbers stand in the code):
//! 1. Seal the active memtable: up to its seqno everything shall be durable.
//! 2. Write the sealed memtables into the root's buffer, oldest first, as the jobs do (those before the
//!    first that a deferred commit is still to insert into).
//! 3. Take the version: its root and the seqno it holds everything up to.
//! 4. Write the nodes that have no place yet, children before parents, to fresh extents.
//! 5. Sync the file: runs and nodes are on disk.
//! 6. Sync the log up to that seqno: the checkpoint must not know commits the log lost (I7).
//! 7. Write the superblock and sync it.
//! 8. The new root is the durable one. The old one is let go, which frees what only it referred
//!    to; free space goes back to the file system.
//!
//! Jobs and writers go on all the while; what they change is in newer versions. What the durable
//! superblock refers to is held by an `Arc` to its root (`Durable::root`), what is being written by
//! the version of step 3, so neither is ever overwritten (I2, I7). A failure leaves the old
//! checkpoint in force, and a later try begins anew; nodes already written keep their places. (That
//! a failed sync is not taken for success by the next try is the file's affair.)

use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{pause, Error, Result, Seqno};
use pando_storage::{BlockKind, Superblock};

use crate::durable::Durable;
use crate::node::{Body, Node};
use crate::node_format;
use crate::node_places;
use crate::tree::Tree;

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Everything up to this commit is durable in the file.
    pub durable_seqno: Seqno,
    /// Node blocks written.
    pub nodes_written: u64,
    /// Bytes of nodes and superblock written.
    pub bytes_written: u64,
}

impl Tree {
    /// Whether the last durable checkpoint lacks something: commits, or changes of structure that
    /// would free space.
    pub fn is_dirty(&self) -> bool {
        self.oldest_unwritten().is_some() || self.is_restructured()
    }

    /// The auto-increment value of the last durable checkpoint.
    pub fn durable_auto_increment(&self) -> u64 {
        self.durable.lock().auto_increment
    }

    fn is_restructured(&self) -> bool {
        let version = self.version.load();
        // Ranges that have gone leave room for others.
        if self.room.lock().durable() != version.deleted.as_slice().len() {
            return true;
        }
        let durable = self.durable.lock();
        match &durable.root {
            Some(root) => !Arc::ptr_eq(root, &version.root),
            // An empty tree may stay without a block.
            None => version.root.totals.height > 1 || !version.root.children.iter().all(|c| c.is_vacant()),
        }
    }

    /// Makes everything up to the newest assigned seqno durable. `last_assigned` is asked as in
    /// [`Tree::seal`]; `sync_log` makes the log durable up to a seqno; `auto_increment` is asked
    /// after the version is taken, so that it covers all its records. Several calls at once take turns.
    ///
    /// # Errors
    /// Those of the file and of `sync_log`; the previous checkpoint stays in force.
    pub fn checkpoint(
        &self,
        last_assigned: impl Fn() -> Seqno,
        sync_log: impl Fn(Seqno) -> Result<()>,
        auto_increment: impl Fn() -> u64,
    ) -> Result<CheckpointStats> {
        let _turn = self.checkpoint_turn.lock();
        // 1.
        let (_, target) = self.seal_when(|_| true, last_assigned);
        // 2.
        self.write_sealed_up_to(target)?;
        // 3.
        let version = self.version.load_full();
        pause(2);
        let auto_increment = auto_increment();
        let mut stats = CheckpointStats { durable_seqno: version.flushed, ..CheckpointStats::default() };
        let is_covered = self.coverage.lock().first().is_none_or(|first| first > version.flushed);
        let is_told = self.durable.lock().auto_increment == auto_increment;
        if is_covered && is_told && !self.is_restructured() {
            return Ok(stats);
        }
        let root = version.root.clone();
        // 4.
        self.write_nodes(&root, &mut stats)?;
        // 5.
        if !is_planted(Bug::CheckpointWithoutSync) {
            self.ctx.file.sync()?;
        }
        // 6.
        if !is_planted(Bug::SuperblockBeforeLog) {
            sync_log(version.flushed)?;
        }
        if is_planted(Bug::ExtentReusedEarly) {
            drop(std::mem::replace(
                &mut *self.durable.lock(),
                Durable { root: Some(root.clone()), auto_increment },
            ));
        }
        // Later ones are in the log only.
        let deleted = version.deleted_up_to(version.flushed);
        if !Superblock::has_room_for(&deleted) {
            let what = format!("a checkpoint with {} deleted ranges", deleted.len());
            return Err(Error::Unsupported { what });
        }
        let ranges = deleted.len();
        // 7.
        let (next_run, next_node) = self.next_ids();
        let superblock = Superblock {
            dict: self.ctx.file.dict(),
            durable_seqno: version.flushed,
            root: root.place.get().map(|extent| extent.place()),
            next_run,
            next_node,
            auto_increment,
            rows_hint: self.rows_estimate(),
            deleted,
            ..Superblock::default()
        };
        self.ctx.file.write_superblock(&superblock)?;
        // 8.
        let new = Durable { root: Some(root), auto_increment };
        let old = std::mem::replace(&mut *self.durable.lock(), new);
        let adopted = self.coverage.lock().made_durable(version.flushed);
        self.room.lock().made_durable(version.flushed, ranges);
        drop(old);
        drop(adopted);
        drop(version);
        self.ctx.metrics.checkpoints.add(1);
        self.ctx.metrics.checkpoint_written_bytes.add(stats.bytes_written);
        self.ctx.file.reclaim()?;
        Ok(stats)
    }

    /// Writes sealed memtables, oldest first, until the tree holds everything up to `target`.
    /// Waits for a job that is at it. Ends early at a memtable that deferred commits are still to insert
    /// into.
    pub(crate) fn write_sealed_up_to(&self, target: Seqno) -> Result<()> {
        loop {
            let (task, plan) = {
                let mut structure = self.structure.lock();
                let version = self.version.load_full();
                if version.flushed >= target {
                    return Ok(());
                }
                let Some(memtable) = version.sealed.last() else { return Ok(()) };
                if !memtable.is_settled() {
                    return Ok(());
                }
                if structure.busy.is_memtable_busy() {
                    self.job_ended.wait(&mut structure);
                    continue;
                }
                let plan = crate::jobs::Plan::WriteMemtable(memtable.clone());
                (self.begin(&mut structure, &version, &plan), plan)
            };
            self.execute(&task, plan)?;
        }
    }

    /// Writes the nodes of a subtree that have no place yet.
    fn write_nodes(&self, node: &Arc<Node>, stats: &mut CheckpointStats) -> Result<()> {
        if node.place.get().is_some() {
            // Its subtree was written before it and never changes.
            return Ok(());
        }
        for child in &node.children {
            if let Body::Node(below) = &child.body {
                self.write_nodes(below, stats)?;
            }
        }
        let payload = node_format::encode(node);
        let file = &self.ctx.file;
        // Its space is what it takes, also if the file begins to be encrypted now.
        let sealing = file.sealing();
        let clear = if sealing.is_encrypted() { node_places::encode(node) } else { Vec::new() };
        let len = sealing.block_bytes(clear.len(), payload.len());
        let extent = file.allocate(len)?;
        let offset = extent.place().offset;
        let mut bytes = Vec::with_capacity(len as usize);
        sealing.seal(BlockKind::Node, 0, offset, &clear, &mut bytes, &payload)?;
        stats.nodes_written += 1;
        stats.bytes_written += bytes.len() as u64;
        if sealing.is_encrypted() {
            // The end of its last page may have something from before the file was encrypted.
            bytes.resize(extent.place().len as usize, 0);
        }
        drop(sealing);
        file.write(offset, &bytes)?;
        assert!(node.place.set(extent).is_ok(), "only one checkpoint runs at a time");
        Ok(())
    }
}
