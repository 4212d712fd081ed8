//! A node on disk: the payload of a block of kind Node. Integers are little-endian.
//!
//! ```text
//!  u8   version (1)
//!  u64  node id
//!  u64  next order
//!  u32  children (at least 1)
//!  u32  buffer runs
//!  children - 1 times a pivot:      u32 length, bytes
//!  per child:
//!    u8   1 = leaf, 2 = node
//!    u64  id
//!    u64  passed
//!    u64  pending rows, u64 bytes, u64 tombstones
//!    leaf: u64 held rows, u64 bytes, u64 tombstones; u32 runs; the runs' metas, newest first
//!    node: place of its block
//!  per buffer run, newest first:
//!    u64  order
//!    u8   1 if it may become a leaf by reference, else 0
//!    the run's meta
//! ```
//!
//! Leaves stand inside their parent: only internal nodes have blocks of their own.
#![deny(clippy::indexing_slicing)]

use pando_base::NodeId;
use pando_run::{DecodeError, Estimate, RunMeta};
use pando_storage::Place;

use crate::node::{Body, Node};

/// Version of the layout above.
const VERSION: u8 = 1;
const LEAF: u8 = 1;
const NODE: u8 = 2;

/// A node as its block describes it, runs and children not opened yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeImage {
    pub id: NodeId,
    pub next_order: u64,
    pub pivots: Vec<Vec<u8>>,
    pub children: Vec<ChildImage>,
    pub buffer: Vec<BufferRunImage>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChildImage {
    pub id: NodeId,
    pub passed: u64,
    pub pending: Estimate,
    pub body: BodyImage,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyImage {
    Leaf { held: Estimate, runs: Vec<RunMeta> },
    Node { place: Place },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BufferRunImage {
    pub order: u64,
    pub leaf_ready: bool,
    pub meta: RunMeta,
}

/// The payload of a node whose internal children all have their place on disk.
pub(crate) fn encode(node: &Node) -> Vec<u8> {
    let mut out = vec![VERSION];
    put(&mut out, node.id.0);
    put(&mut out, node.next_order);
    put_count(&mut out, node.children.len());
    put_count(&mut out, node.buffer.len());
    for pivot in &node.pivots {
        put_count(&mut out, pivot.len());
        out.extend_from_slice(pivot);
    }
    for child in &node.children {
        let tag = if matches!(child.body, Body::Leaf(_)) { LEAF } else { NODE };
        out.push(tag);
        put(&mut out, child.id().0);
        put(&mut out, child.passed);
        put_estimate(&mut out, &child.pending);
        match &child.body {
            Body::Leaf(leaf) => {
                put_estimate(&mut out, &leaf.held);
                put_count(&mut out, leaf.runs.len());
                leaf.runs.iter().for_each(|run| run.meta().encode(&mut out));
            }
            Body::Node(below) => {
                let place = below.place.get().expect("children are written before their parent");
                place.place().encode(&mut out);
            }
        }
    }
    for entry in &node.buffer {
        put(&mut out, entry.order);
        out.push(u8::from(entry.leaf_ready));
        entry.run.meta().encode(&mut out);
    }
    out
}

fn put(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_count(out: &mut Vec<u8>, n: usize) {
    let n = u32::try_from(n).expect("counts and key lengths are far below 2^32");
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_estimate(out: &mut Vec<u8>, estimate: &Estimate) {
    put(out, estimate.rows);
    put(out, estimate.bytes);
    put(out, estimate.tombstones);
}

/// Reads a payload. Any bytes may come: what does not make sense is an error.
pub(crate) fn decode(bytes: &[u8]) -> Result<NodeImage, DecodeError> {
    let mut reader = Reader(bytes);
    let version = reader.u8("node version")?;
    if version != VERSION {
        return Err(DecodeError::new("node version", VERSION, version));
    }
    let id = NodeId(reader.u64("node id")?);
    let next_order = reader.u64("node order")?;
    let child_count = reader.u32("node children")?;
    let run_count = reader.u32("node buffer runs")?;
    if child_count == 0 {
        return Err(DecodeError::new("node children", "at least 1", 0));
    }
    // Nothing is reserved from counts that were not checked against bytes.
    let mut pivots: Vec<Vec<u8>> = Vec::new();
    for _ in 1..child_count {
        let len = reader.u32("pivot length")?;
        let pivot = reader.bytes(len as usize, "pivot")?;
        if pivots.last().is_some_and(|last| last.as_slice() >= pivot) {
            return Err(DecodeError::new("pivots", "ascending keys", format!("{pivot:?}")));
        }
        pivots.push(pivot.to_vec());
    }
    let mut children = Vec::new();
    for _ in 0..child_count {
        children.push(reader.child(next_order)?);
    }
    let mut buffer: Vec<BufferRunImage> = Vec::new();
    for _ in 0..run_count {
        let below = buffer.last().map_or(next_order, |run| run.order);
        buffer.push(reader.buffer_run(below)?);
    }
    if !reader.0.is_empty() {
        return Err(DecodeError::new("node block", "its end", format!("{} more bytes", reader.0.len())));
    }
    Ok(NodeImage { id, next_order, pivots, children, buffer })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or_else(|| {
            DecodeError::new(what, format!("{len} bytes"), format!("{} bytes", self.0.len()))
        })?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or_else(|| DecodeError::new(what, format!("{N} bytes"), format!("{} bytes", self.0.len())))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Sums of sizes must not overflow when many are added.
    fn size(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let n = self.u64(what)?;
        if n > 1 << 50 {
            return Err(DecodeError::new(what, "a sane size", n));
        }
        Ok(n)
    }

    fn estimate(&mut self, what: &'static str) -> Result<Estimate, DecodeError> {
        Ok(Estimate { rows: self.size(what)?, bytes: self.size(what)?, tombstones: self.size(what)? })
    }

    fn child(&mut self, next_order: u64) -> Result<ChildImage, DecodeError> {
        let tag = self.u8("child kind")?;
        let id = NodeId(self.u64("child id")?);
        let passed = self.u64("child passed")?;
        if passed >= next_order {
            return Err(DecodeError::new("child passed", format!("below {next_order}"), passed));
        }
        let pending = self.estimate("child pending")?;
        let body = match tag {
            LEAF => {
                let held = self.estimate("leaf rows")?;
                let count = self.u32("leaf runs")?;
                let mut runs = Vec::new();
                for _ in 0..count {
                    runs.push(RunMeta::decode(&mut self.0)?);
                }
                BodyImage::Leaf { held, runs }
            }
            NODE => match Place::decode(&mut self.0) {
                Some(place) => BodyImage::Node { place },
                None => return Err(DecodeError::new("child place", "16 bytes", self.0.len())),
            },
            other => return Err(DecodeError::new("child kind", "1 or 2", other)),
        };
        Ok(ChildImage { id, passed, pending, body })
    }

    fn buffer_run(&mut self, below: u64) -> Result<BufferRunImage, DecodeError> {
        let order = self.u64("buffer run order")?;
        if order >= below {
            return Err(DecodeError::new("buffer run order", format!("below {below}"), order));
        }
        let leaf_ready = match self.u8("buffer run flag")? {
            0 => false,
            1 => true,
            other => return Err(DecodeError::new("buffer run flag", "0 or 1", other)),
        };
        Ok(BufferRunImage { order, leaf_ready, meta: RunMeta::decode(&mut self.0)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
            let mut versioned = vec![VERSION];
            versioned.extend_from_slice(&bytes);
            let _ = decode(&versioned);
        }
    }
}
