//! Blocks of a tree's runs that the cache had before a start.

use pando_base::Result;
use pando_column::layout::Layouts;
use pando_run::CachedBlock;

use crate::estimate::distinct_runs;
use crate::tree::Tree;

impl Tree {
    /// Names its blocks in [`BlockCache::contents`](pando_run::BlockCache::contents).
    pub fn file_instance(&self) -> u64 {
        self.ctx.file.instance()
    }

    /// Brings these blocks, which are in order, into the cache: those of runs that are still there. Returns how many there are now;
    /// `go_on` is asked before each.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn warm(
        &self,
        blocks: &[CachedBlock],
        layouts: Option<&Layouts>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let runs = distinct_runs(&self.version.load_full());
        let mut done = 0;
        for of_one in blocks.chunk_by(|a, b| a.run == b.run) {
            let id = of_one.first().map(|block| block.run);
            if let Some(run) = runs.iter().find(|run| Some(run.meta().id.0) == id) {
                done += run.warm(of_one, layouts, go_on)?;
            }
        }
        Ok(done)
    }
}
