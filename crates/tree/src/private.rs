//! Writing private runs: what a transaction spills before it commits.
//!
//! A private run is written into the tree's file like any other, but no node refers to it and its records
//! have no seqno: it is the transaction's until the commit adopts it ([`crate::WriteGuard::adopt`]), and
//! dropping it gives its space back. A crash forgets it, unless the log names it.

use std::sync::Arc;

use pando_base::{Kind, RecordRef, Result};
use pando_run::{Run, RunWriter};

use crate::tree::Tree;

/// Pours records into private runs of about the size of a leaf.
pub struct PrivateWriter {
    tree: Arc<Tree>,
    writer: Option<RunWriter>,
    runs: Vec<Arc<Run>>,
}

impl std::fmt::Debug for PrivateWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateWriter").field("tree", &self.tree).field("runs", &self.runs.len()).finish()
    }
}

impl Tree {
    /// A writer of private runs of this tree.
    pub fn private_writer(self: &Arc<Self>) -> PrivateWriter {
        PrivateWriter { tree: self.clone(), writer: None, runs: Vec::new() }
    }
}

impl PrivateWriter {
    /// Appends a record; keys ascend, each comes once. The value of a Delete is empty.
    ///
    /// # Errors
    /// Those of writing to the file; the writer can only be dropped then, and leaves nothing.
    pub fn add(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        let full = self.tree.config.leaf_raw_bytes;
        if self.writer.as_ref().is_some_and(|writer| writer.raw_bytes() >= full) {
            self.cut()?;
        }
        let tree = &self.tree;
        let new = || RunWriter::new(&tree.ctx, tree.new_run(), tree.config.run_options(true));
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
