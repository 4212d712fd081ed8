//! Opening a tree from its durable checkpoint.
//!
//! All internal nodes are read (a terabyte has a few thousand); of the runs only their metas, which
//! stand in the nodes. Every place met is adopted, so that what is left over is free space: the free
//! map is rebuilt from the tree, and two owners of one place show up as corruption.

use std::collections::HashMap;
use std::sync::Arc;

use pando_base::{DeletedRanges, Error, Result, RunId};
use pando_run::{Run, RunContext, RunMeta};
use pando_storage::{BlockKind, Place, Superblock};

use crate::config::{Horizon, TreeConfig};
use crate::durable::Durable;
use crate::node::{Body, BufferRun, Child, Key, Leaf, Node, NodeParts};
use crate::node_format::{self, BodyImage, ChildImage, NodeImage};
use crate::tree::{Start, Tree};

/// Deeper than any tree can be: even with two children a node, 2^48 leaves.
const DEPTH_MAX: usize = 48;

impl Tree {
    /// Opens the tree that `sb` names. `ctx.file` was opened and nothing adopted or allocated in it.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a node that is not what a checkpoint wrote.
    pub fn open(
        ctx: RunContext,
        sb: &Superblock,
        config: TreeConfig,
        horizon: Arc<dyn Horizon>,
    ) -> Result<Arc<Tree>> {
        Ok(Tree::open_with_private(ctx, sb, config, horizon, &[])?.0)
    }

    /// As [`Tree::open`], with the private runs that the log refers to and the checkpoint does not yet:
    /// their space is taken before anything is allocated. They come back in the same order.
    ///
    /// # Errors
    /// As [`Tree::open`], and if the space of a run is used by something else.
    pub fn open_with_private(
        ctx: RunContext,
        sb: &Superblock,
        config: TreeConfig,
        horizon: Arc<dyn Horizon>,
        private: &[RunMeta],
    ) -> Result<(Arc<Tree>, Vec<Arc<Run>>)> {
        let (mut next_run, next_node) = (sb.next_run.max(1), sb.next_node.max(3));
        let (root, durable_root) = match sb.root {
            Some(place) => {
                let mut loader = Loader { ctx: &ctx, config: &config, sb, runs: HashMap::new() };
                let root = loader.node(place, 0)?;
                (root.clone(), Some(root))
            }
            None => {
                let empty = NodeParts::empty(pando_base::NodeId(1), pando_base::NodeId(2));
                (empty.build(&config), None)
            }
        };
        let mut runs = Vec::with_capacity(private.len());
        for meta in private {
            next_run = next_run.max(meta.id.0 + 1);
            runs.push(Run::open(&ctx, meta.clone())?);
        }
        ctx.file.finish_open();
        let durable = Durable::opened(durable_root, sb);
        let deleted = DeletedRanges::new(sb.deleted.clone());
        let start = Start { root, flushed: sb.durable_seqno, deleted, next_run, next_node, durable };
        Ok((Tree::start(ctx, config, horizon, start), runs))
    }
}

struct Loader<'a> {
    ctx: &'a RunContext,
    config: &'a TreeConfig,
    sb: &'a Superblock,
    /// A run may hang in several places but is adopted once.
    runs: HashMap<RunId, Arc<Run>>,
}

impl Loader<'_> {
    fn corrupt(&self, place: Place, what: &str, expected: impl ToString, found: impl ToString) -> Error {
        Error::corruption(&self.ctx.file.path(), place.offset, what, expected, found)
    }

    fn node(&mut self, place: Place, depth: usize) -> Result<Arc<Node>> {
        if depth > DEPTH_MAX {
            return Err(self.corrupt(place, "tree depth", format!("at most {DEPTH_MAX}"), depth));
        }
        let file = &self.ctx.file;
        // Adopted first: a place outside the file must not even be read.
        let extent = file.adopt(place)?;
        let bytes = file.read(place)?;
        let path = file.path();
        let (codec, payload) = file.open_block(BlockKind::Node, place.offset, &bytes)?;
        if codec != 0 {
            return Err(self.corrupt(place, "node codec", 0, codec));
        }
        let image = node_format::decode(&payload).map_err(|error| error.at(&path, place.offset))?;
        if image.id.0 >= self.sb.next_node {
            return Err(self.corrupt(place, "node id", format!("below {}", self.sb.next_node), image.id));
        }
        let node = self.build(place, image, depth)?;
        assert!(node.place.set(extent).is_ok(), "a node is placed once");
        Ok(node)
    }

    fn build(&mut self, place: Place, image: NodeImage, depth: usize) -> Result<Arc<Node>> {
        let mut children = Vec::with_capacity(image.children.len());
        for child in image.children {
            children.push(self.child(place, child, depth)?);
        }
        let height = |child: &Child| match &child.body {
            Body::Leaf(_) => 0,
            Body::Node(node) => node.totals.height,
        };
        if children.windows(2).any(|pair| height(&pair[0]) != height(&pair[1])) {
            return Err(self.corrupt(place, "height of children", "the same", "different ones"));
        }
        let mut buffer = Vec::with_capacity(image.buffer.len());
        for entry in image.buffer {
            let run = self.run(place, entry.meta)?;
            buffer.push(BufferRun { order: entry.order, leaf_ready: entry.leaf_ready, run });
        }
        let parts = NodeParts {
            id: image.id,
            pivots: image.pivots.into_iter().map(Key::from).collect(),
            children,
            buffer,
            next_order: image.next_order,
        };
        Ok(parts.build(self.config))
    }

    fn child(&mut self, place: Place, image: ChildImage, depth: usize) -> Result<Child> {
        let body = match image.body {
            BodyImage::Leaf { held, runs } => {
                let mut opened = Vec::with_capacity(runs.len());
                for meta in runs {
                    opened.push(self.run(place, meta)?);
                }
                Body::Leaf(Arc::new(Leaf { id: image.id, runs: opened, held, horizon: 0 }))
            }
            BodyImage::Node { place: below } => {
                let node = self.node(below, depth + 1)?;
                if node.id != image.id {
                    return Err(self.corrupt(below, "node id", image.id, node.id));
                }
                Body::Node(node)
            }
        };
        Ok(Child { body, passed: image.passed, pending: image.pending })
    }

    fn run(&mut self, place: Place, meta: RunMeta) -> Result<Arc<Run>> {
        if meta.id.0 >= self.sb.next_run {
            return Err(self.corrupt(place, "run id", format!("below {}", self.sb.next_run), meta.id));
        }
        if let Some(run) = self.runs.get(&meta.id) {
            if run.meta() != &meta {
                return Err(self.corrupt(place, "run", format!("{:?}", run.meta()), format!("{meta:?}")));
            }
            return Ok(run.clone());
        }
        let id = meta.id;
        let run = Run::open(self.ctx, meta)?;
        self.runs.insert(id, run.clone());
        Ok(run)
    }
}
