//! Writing private runs: what a transaction spills before it commits, and what bulk loads make.
//!
//! A private run is written into the tree's file like any other, but no node refers to it and its records
//! have no seqno: it is the transaction's until the commit adopts it ([`crate::WriteGuard::adopt`]), and
//! dropping it gives its space back. A crash forgets it, unless the log names it.

use std::sync::Arc;

use pando_base::{Kind, RecordRef, Result};
use pando_run::{Run, RunWriter};
use pando_storage::TreeFile;

use crate::tree::Tree;

/// Pours records into private runs of about the size of a leaf.
pub struct PrivateWriter {
    tree: Arc<Tree>,
    writer: Option<RunWriter>,
    runs: Vec<Arc<Run>>,
    /// Raw bytes at which a run is closed.
    target: u64,
}

impl std::fmt::Debug for PrivateWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateWriter").field("tree", &self.tree).field("runs", &self.runs.len()).finish()
    }
}

impl Tree {
    /// A writer of private runs of this tree.
    pub fn private_writer(self: &Arc<Self>) -> PrivateWriter {
        let target = self.config.leaf_raw_bytes;
        PrivateWriter { tree: self.clone(), writer: None, runs: Vec::new(), target }
    }

    /// The same for about `raw_bytes`, counted as runs count them: runs of about the same size, none of them so small
    /// that it would not be a good leaf.
    pub fn private_writer_of(self: &Arc<Self>, raw_bytes: u64) -> PrivateWriter {
        let each = self.config.leaf_raw_bytes;
        let parts = (raw_bytes + each / 2) / each;
        // The last one takes what more there is; a single one may be half as large again, and then some.
        let target = if parts <= 1 { each * 2 } else { raw_bytes / parts + each / 16 };
        PrivateWriter { target, ..self.private_writer() }
    }

    /// The file it lives in.
    pub fn file(&self) -> &Arc<TreeFile> {
        &self.ctx.file
    }

    /// Raw bytes that its leaves are built to.
    pub fn leaf_raw_bytes(&self) -> u64 {
        self.config.leaf_raw_bytes
    }
}

impl PrivateWriter {
    /// Appends a record; keys ascend, each comes once. The value of a Delete is empty.
    ///
    /// # Errors
    /// Those of writing to the file; the writer can only be dropped then, and leaves nothing.
    pub fn add(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        if self.writer.as_ref().is_some_and(|writer| writer.raw_bytes() >= self.target) {
            self.cut()?;
        }
        let tree = &self.tree;
        let new = || tree.run_writer(true);
        self.writer.get_or_insert_with(new).add(RecordRef { key, seqno: 0, kind, value })
    }

    /// The runs, ascending, not synced yet.
    ///
    /// # Errors
    /// As for `add`.
    pub fn finish(mut self) -> Result<Vec<Arc<Run>>> {
        self.cut()?;
        Ok(std::mem::take(&mut self.runs))
    }

    fn cut(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.runs.extend(writer.finish()?);
        }
        Ok(())
    }
}
