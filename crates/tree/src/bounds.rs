//! Where leaves begin: keys at which work on the whole tree can be divided.

use crate::node::{Body, Node};
use crate::tree::Tree;

impl Tree {
    /// Keys that divide the tree into parts of about the same size, ascending: the first keys of its leaves but
    /// that of the first. What is read between them with a snapshot is the same whatever becomes of the tree.
    pub fn leaf_bounds(&self) -> Vec<Vec<u8>> {
        let mut bounds = Vec::new();
        collect(&self.version.load().root, &mut bounds);
        bounds
    }
}

fn collect(node: &Node, bounds: &mut Vec<Vec<u8>>) {
    for (index, child) in node.children.iter().enumerate() {
        if let Some(pivot) = index.checked_sub(1).and_then(|before| node.pivots.get(before)) {
            bounds.push(pivot.to_vec());
        }
        if let Body::Node(below) = &child.body {
            collect(below, bounds);
        }
    }
}
