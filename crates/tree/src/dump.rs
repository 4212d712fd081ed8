//! The tree as text, for golden tests and for looking into a file.

use std::fmt::Write;

use pando_run::{Estimate, Run};

use crate::node::{Body, KeyRange, Node};
use crate::tree::Tree;

impl Tree {
    /// The tree printed, one line per memtable, node, buffer run and leaf.
    pub fn shape(&self) -> String {
        let version = self.version.load_full();
        let mut out = String::new();
        let totals = &version.root.totals;
        let _ = writeln!(
            out,
            "tree: height {}, {} nodes, {} leaves, flushed up to {}",
            totals.height, totals.nodes, totals.leaves, version.flushed
        );
        for memtable in version.memtables() {
            if !memtable.is_empty() {
                let state = format!("{:?}", memtable.state()).to_lowercase();
                let _ = writeln!(out, "memtable {state}: {} records", memtable.rows());
            }
            for run in memtable.adopted() {
                let _ = writeln!(out, "  adopted {}", show_run(&run));
            }
        }
        print_node(&mut out, &version.root, &KeyRange::default(), 0);
        out
    }
}

fn print_node(out: &mut String, node: &Node, range: &KeyRange, depth: usize) {
    let indent = "  ".repeat(depth);
    let placed = if node.place.get().is_some() { ", on disk" } else { "" };
    let _ = writeln!(out, "{indent}node {} {}{placed}", node.id, show_range(range));
    for entry in &node.buffer {
        let ready = if entry.leaf_ready { ", leaf ready" } else { "" };
        let _ = writeln!(out, "{indent}  order {}: {}{ready}", entry.order, show_run(&entry.run));
    }
    for (index, child) in node.children.iter().enumerate() {
        let below = node.child_range(index, range);
        let waits = if child.pending == Estimate::default() {
            String::new()
        } else {
            format!(", {} waiting", child.pending.rows)
        };
        let passed = if child.passed == 0 { String::new() } else { format!(", passed {}", child.passed) };
        match &child.body {
            Body::Leaf(leaf) => {
                let _ = writeln!(out, "{indent}  leaf {} {}{passed}{waits}", leaf.id, show_range(&below));
                for run in &leaf.runs {
                    let _ = writeln!(out, "{indent}    {}", show_run(run));
                }
            }
            Body::Node(inner) => {
                if !passed.is_empty() || !waits.is_empty() {
                    let _ = writeln!(out, "{indent}  child {}{passed}{waits}", inner.id);
                }
                print_node(out, inner, &below, depth + 1);
            }
        }
    }
}

fn show_range(range: &KeyRange) -> String {
    let lo = range.lo.as_deref().map_or_else(|| "start".to_owned(), show_key);
    let hi = range.hi.as_deref().map_or_else(|| "end".to_owned(), show_key);
    format!("[{lo}..{hi})")
}

fn show_run(run: &Run) -> String {
    let meta = run.meta();
    let tombstones =
        if meta.tombstones == 0 { String::new() } else { format!(" ({} tombstones)", meta.tombstones) };
    format!(
        "run {}: {} records{tombstones}, {}..={}, commits {}..={}",
        meta.id,
        meta.rows,
        show_key(&meta.min_key),
        show_key(&meta.max_key),
        meta.min_seqno,
        meta.max_seqno
    )
}

/// Readable keys as they are, others in hexadecimal; long ones cut.
fn show_key(key: &[u8]) -> String {
    const SHOWN: usize = 24;
    let cut = if key.len() > SHOWN { "~" } else { "" };
    let head = &key[..key.len().min(SHOWN)];
    if !key.is_empty() && head.iter().all(|byte| byte.is_ascii_graphic()) {
        return format!("{}{cut}", String::from_utf8_lossy(head));
    }
    let hex: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}{cut}")
}
