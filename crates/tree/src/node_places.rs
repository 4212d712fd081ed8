//! What encrypted files tell without their key: where things are, and whether they are as they were written.
//!
//! A node's pivots are keys, so in an encrypted file its block is encrypted. Who copies or checks such a file without the key still has to
//! find everything that the superblock leads to. So these blocks have in the clear:
//!
//! ```text
//! u32  nodes below
//! u32  extents of runs
//! per node below, per extent: its place
//! ```
//!
//! In a file that is mixed there are nodes that are not encrypted: these are read as ever.
#![deny(clippy::indexing_slicing)]

use std::collections::HashSet;

use pando_base::{Error, Result};
use pando_storage::{BlockKind, BlockWithoutKey, Place, Superblock, TreeFile};

use crate::node::{Body, Node};
use crate::node_format::{self, BodyImage, NodeImage};

/// The clear bytes of a node whose internal children all have their place on disk.
pub(crate) fn encode(node: &Node) -> Vec<u8> {
    let mut below = Vec::new();
    let mut extents = Vec::new();
    for child in &node.children {
        match &child.body {
            Body::Node(node) => below.extend(node.place.get().map(|extent| extent.place())),
            Body::Leaf(leaf) => extents.extend(leaf.runs.iter().flat_map(|run| &run.meta().extents)),
        }
    }
    extents.extend(node.buffer.iter().flat_map(|entry| &entry.run.meta().extents));
    let mut out = Vec::with_capacity(8 + (below.len() + extents.len()) * Place::ENCODED_BYTES);
    for places in [&below, &extents] {
        out.extend_from_slice(&(places.len() as u32).to_le_bytes());
    }
    below.iter().chain(&extents).for_each(|place| place.encode(&mut out));
    out
}

/// The nodes below, and the extents of runs.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<(Vec<Place>, Vec<Place>)> {
    let mut count = || {
        let (head, tail) = bytes.split_first_chunk::<4>()?;
        bytes = tail;
        Some(u32::from_le_bytes(*head))
    };
    let (nodes, runs) = (count()?, count()?);
    // Nothing is reserved from counts that were not checked against bytes.
    let mut places = |count: u32| {
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(Place::decode(&mut bytes)?);
        }
        Some(places)
    };
    let (below, extents) = (places(nodes)?, places(runs)?);
    bytes.is_empty().then_some((below, extents))
}

/// The nodes below, and the extents of runs, of a node that can be read.
fn places_in(image: &NodeImage) -> (Vec<Place>, Vec<Place>) {
    let (mut below, mut extents) = (Vec::new(), Vec::new());
    for child in &image.children {
        match &child.body {
            BodyImage::Node { place } => below.push(*place),
            BodyImage::Leaf { runs, .. } => extents.extend(runs.iter().flat_map(|meta| &meta.extents)),
        }
    }
    extents.extend(image.buffer.iter().flat_map(|entry| &entry.meta.extents));
    (below, extents)
}

/// Where everything is that the superblock of an encrypted file leads to; ascending, each once. `file` was opened, and nothing adopted in it.
///
/// # Errors
/// A block of a node is damaged, or the file is not encrypted.
pub fn places_without_key(file: &TreeFile, superblock: &Superblock) -> Result<Vec<Place>> {
    let (mut places, extents) = walk(file, superblock)?;
    places.extend(extents);
    places.sort_unstable_by_key(|place| place.offset);
    Ok(places)
}

/// Nodes and extents.
fn walk(file: &TreeFile, superblock: &Superblock) -> Result<(Vec<Place>, Vec<Place>)> {
    let mut nodes = Vec::new();
    let mut extents = HashSet::new();
    let mut seen = HashSet::new();
    let mut waiting: Vec<Place> = superblock.root.into_iter().collect();
    while let Some(place) = waiting.pop() {
        if !seen.insert(place) {
            let found = "one that was met before";
            return Err(Error::corruption(&file.path(), place.offset, "node", "one of its own", found));
        }
        let bytes = file.read(place)?;
        let (below, runs) = match file.look_at(BlockKind::Node, place.offset, &bytes)? {
            BlockWithoutKey::Encrypted(block) => decode(block.clear).ok_or_else(|| {
                let (what, expected) = ("clear bytes of a node", "places of nodes and runs");
                let found = format!("{} bytes", block.clear.len());
                Error::corruption(&file.path(), place.offset, what, expected, found)
            })?,
            BlockWithoutKey::Plain { payload, .. } => {
                let image = node_format::decode(payload);
                places_in(&image.map_err(|error| error.at(&file.path(), place.offset))?)
            }
        };
        nodes.push(place);
        waiting.extend(below);
        extents.extend(runs);
    }
    Ok((nodes, extents.into_iter().collect()))
}

/// What was found out without a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithoutKey {
    /// Blocks whose checksums are right: all.
    pub blocks: u64,
    /// Numbers and versions of the keys that they are encrypted with, and how many are with each; ascending. What is plain in a mixed
    /// file has no key, and is not among them.
    pub keys: Vec<((u32, u32), u64)>,
}

impl WithoutKey {
    fn add(&mut self, block: &BlockWithoutKey<'_>) {
        self.blocks += 1;
        let BlockWithoutKey::Encrypted(block) = block else { return };
        let key = (block.key_id, block.key_version);
        match self.keys.binary_search_by_key(&key, |(its, _)| *its) {
            Ok(at) => self.keys.get_mut(at).into_iter().for_each(|(_, blocks)| *blocks += 1),
            Err(at) => self.keys.insert(at, (key, 1)),
        }
    }
}

/// Checks of every block that the superblock of an encrypted file leads to what can be checked without the key: its checksum, kind and place.
///
/// # Errors
/// The first that is wrong.
pub fn verify_without_key(file: &TreeFile, superblock: &Superblock) -> Result<WithoutKey> {
    let (nodes, mut extents) = walk(file, superblock)?;
    extents.sort_unstable_by_key(|place| place.offset);
    let mut found = WithoutKey::default();
    for place in nodes {
        let bytes = file.read(place)?;
        found.add(&file.look_at(BlockKind::Node, place.offset, &bytes)?);
    }
    for extent in extents {
        let bytes = file.read(extent)?;
        let mut at = 0;
        // Blocks stand one behind the other; behind the last is nothing but zeros.
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.iter().any(|byte| *byte != 0)) {
            let offset = extent.offset + at as u64;
            let (block, len) = file.next_without_key(offset, rest)?;
            found.add(&block);
            at += len;
        }
    }
    Ok(found)
}
