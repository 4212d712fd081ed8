//! The writing side of merges: what a merge of runs is poured into.

use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{pause, DeletedRanges, Kind, NodeId, RecordRef, Result, Seqno, SETTLED_SEQNO};
use pando_run::merge::{MergeCursor, VersionFilter};
use pando_run::{Estimate, Run, RunWriter};

use crate::deleted::hides_run;
use crate::node::{add, Key, KeyRange, Leaf};
use crate::tree::Tree;

/// What a record counts for in estimates; the same measure as runs use.
pub(crate) fn weight(r: &RecordRef<'_>) -> Estimate {
    Estimate {
        rows: 1,
        bytes: (r.key.len() + r.value.len() + 16) as u64,
        tombstones: u64::from(r.kind == Kind::Delete),
    }
}

/// A short key above `below` and at most `above`: what separates two children.
pub(crate) fn separator(below: &[u8], above: &[u8]) -> Key {
    debug_assert!(below < above);
    let common = below.iter().zip(above).take_while(|(a, b)| a == b).count();
    Key::from(&above[..=common])
}

/// Something records are poured into, in order.
pub(crate) trait Sink {
    /// Takes a record that is to be kept.
    fn take(&mut self, r: RecordRef<'_>) -> Result<()>;
    /// Learns of raw bytes read, kept or not.
    fn consumed(&mut self, bytes: u64);
}

impl Tree {
    /// The live snapshots; the last is the newest visible seqno.
    pub(crate) fn snapshots(&self) -> Vec<Seqno> {
        let snapshots = self.horizon.snapshots();
        if snapshots.is_empty() {
            vec![0]
        } else {
            snapshots
        }
    }

    /// What can be dropped now: the live snapshots, and the deleted ranges, asked for after them.
    pub(crate) fn garbage(&self) -> (Vec<Seqno>, DeletedRanges) {
        let snapshots = self.snapshots();
        pause(64);
        (snapshots, self.version.load().deleted.clone())
    }

    /// The rule for a merge. `bottom`: see there.
    pub(crate) fn version_filter(&self, bottom: bool) -> VersionFilter {
        let (snapshots, deleted) = self.garbage();
        VersionFilter::new(snapshots, bottom).with_deleted(&deleted)
    }

    /// Merges `runs`, clipped to `range`, into `sink`, dropping what `filter` says.
    pub(crate) fn merge_into<'a>(
        &self,
        runs: impl Iterator<Item = &'a Arc<Run>>,
        range: &KeyRange,
        filter: &mut VersionFilter,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let runs = runs.filter(|run| !hides_run(filter.deleted(), run, range));
        let inputs = runs.map(|run| run.cursor().bypass_cache()).collect();
        let lo = range.lo.as_ref().map(|key| key.to_vec());
        let hi = range.hi.as_ref().map(|key| key.to_vec());
        let mut cursor = MergeCursor::new(inputs, lo, hi)?;
        while cursor.valid() {
            let r = cursor.record();
            pause(1024);
            sink.consumed((r.key.len() + r.value.len() + 16) as u64);
            if filter.keep(&r) {
                sink.take(r)?;
            }
            cursor.next()?;
        }
        Ok(())
    }
}

/// A finished leaf and the keys at its ends.
#[derive(Debug)]
pub(crate) struct BuiltLeaf {
    pub leaf: Leaf,
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    pub max_seqno: Seqno,
}

impl BuiltLeaf {
    pub(crate) fn new(id: NodeId, run: Arc<Run>, held: Estimate, horizon: Seqno) -> BuiltLeaf {
        let meta = run.meta();
        let (first_key, last_key) = (meta.min_key.clone(), meta.max_key.clone());
        let max_seqno = meta.max_seqno;
        let leaf = Leaf { id, runs: vec![run], held, horizon };
        BuiltLeaf { leaf, first_key, last_key, max_seqno }
    }
}

/// Cuts a stream of records into leaves of about equal size.
pub(crate) struct LeafSink<'a> {
    tree: &'a Tree,
    /// Raw bytes at which a leaf is closed.
    target: u64,
    /// Raw bytes still to be read: no tiny last leaf is begun.
    remaining: u64,
    horizon: Seqno,
    deleted: DeletedRanges,
    first_id: Option<NodeId>,
    writer: Option<RunWriter>,
    held: Estimate,
    last_key: Vec<u8>,
    built: Vec<BuiltLeaf>,
    pub read_bytes: u64,
}

impl<'a> LeafSink<'a> {
    /// `input_bytes` is about what will be read; the first leaf gets the id `first_id`. `garbage`: see [`Tree::garbage`].
    pub(crate) fn new(
        tree: &'a Tree,
        input_bytes: u64,
        first_id: NodeId,
        (snapshots, deleted): &(Vec<Seqno>, DeletedRanges),
    ) -> LeafSink<'a> {
        let each = tree.config.leaf_raw_bytes;
        // Up to one and a half leaves stay one; beyond that equal parts.
        let parts = ((input_bytes + each / 2) / each).max(1);
        let target = if parts == 1 { each * 3 / 2 } else { input_bytes / parts };
        LeafSink {
            tree,
            target: target.max(1),
            remaining: input_bytes,
            horizon: snapshots[0],
            deleted: deleted.clone(),
            first_id: Some(first_id),
            writer: None,
            held: Estimate::default(),
            last_key: Vec::new(),
            built: Vec::new(),
            read_bytes: 0,
        }
    }

    fn cut(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        if let Some(run) = writer.finish()? {
            let id = self.first_id.take().unwrap_or_else(|| self.tree.new_node());
            let held = std::mem::take(&mut self.held);
            self.built.push(BuiltLeaf::new(id, run, held, self.horizon));
        }
        Ok(())
    }

    /// The leaves, ascending; none if nothing was kept.
    pub(crate) fn finish(mut self) -> Result<Vec<BuiltLeaf>> {
        self.cut()?;
        Ok(self.built)
    }
}

impl Sink for LeafSink<'_> {
    fn take(&mut self, r: RecordRef<'_>) -> Result<()> {
        // All versions of a key stay in one leaf.
        if self.held.bytes >= self.target && self.remaining >= self.target / 2 && self.last_key != r.key {
            self.cut()?;
        }
        if self.writer.is_none() {
            self.writer = Some(self.tree.run_writer(true));
        }
        // `VersionFilter` has left one version of the key at most that all snapshots see, and nothing is below. A deleted range must
        // not come to hide it.
        let is_settled = (r.seqno <= self.horizon || is_planted(Bug::SettledEarly))
            && !self.deleted.needs_seqno(r.key, r.seqno);
        let seqno = if is_settled { r.seqno.min(SETTLED_SEQNO) } else { r.seqno };
        let r = RecordRef { seqno, ..r };
        add(&mut self.held, &weight(&r));
        self.last_key.clear();
        self.last_key.extend_from_slice(r.key);
        match &mut self.writer {
            Some(writer) => writer.add(r),
            None => unreachable!("made above"),
        }
    }

    fn consumed(&mut self, bytes: u64) {
        self.read_bytes += bytes;
        self.remaining = self.remaining.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_is_short_and_between() {
        for (below, above, expected) in [
            ("abc", "abd", "abd"),
            ("abc", "b", "b"),
            ("abc", "bcdef", "b"),
            ("ab", "abc", "abc"),
            ("", "xyz", "x"),
        ] {
            let key = separator(below.as_bytes(), above.as_bytes());
            assert_eq!(&key[..], expected.as_bytes());
            assert!(below.as_bytes() < &key[..] && &key[..] <= above.as_bytes());
        }
    }
}
