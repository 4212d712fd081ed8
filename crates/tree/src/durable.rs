//! What a crash leaves of a tree.

use std::sync::Arc;

use pando_storage::Superblock;

use crate::node::Node;

/// The last durable checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// Root of the tree the superblock names; `None` while it names an empty tree.
    pub root: Option<Arc<Node>>,
    pub auto_increment: u64,
}

impl Durable {
    /// What a file was opened with.
    pub(crate) fn opened(root: Option<Arc<Node>>, sb: &Superblock) -> Durable {
        Durable { root, auto_increment: sb.auto_increment }
    }
}
