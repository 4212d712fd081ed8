//! Keys at which work on the whole tree can be divided: where leaves begin, and among the records of memtables.

use crate::node::{Body, Node};
use crate::tree::Tree;

/// Of so many marks of memtables one is a bound. The records between cost a scan about as much as a leaf does, stored by
/// columns.
const MARKS_OF_PART: usize = 4;

impl Tree {
    /// Keys that divide the tree into parts that take about as long to read, or less, ascending: the first keys of its leaves
    /// but that of the first, and keys of memtables. What is read between them with a snapshot is the same whatever becomes
    /// of the tree.
    pub fn bounds(&self) -> Vec<Vec<u8>> {
        let version = self.version.load();
        let mut bounds = Vec::new();
        collect(&version.root, &mut bounds);
        let mut marks: Vec<Box<[u8]>> = version.memtables().flat_map(|memtable| memtable.marks()).collect();
        marks.sort_unstable();
        let part = marks.into_iter().skip(MARKS_OF_PART - 1).step_by(MARKS_OF_PART);
        bounds.extend(part.map(<[u8]>::into_vec));
        bounds.sort_unstable();
        bounds.dedup();
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
