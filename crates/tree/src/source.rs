//! What a cursor merges: memtables and runs behind one face.

use std::sync::Arc;

use pando_base::{RecordRef, Result, RunId, Seqno};
use pando_run::{Run, RunCursor};

use crate::memtable::Memtable;
use crate::memtable_cursor::MemtableCursor;
use crate::node::{Body, KeyRange};
use crate::version::TreeVersion;

/// One input of a cursor's merge, positioned or not.
#[derive(Debug)]
pub(crate) enum Source {
    Memtable(Box<MemtableCursor>),
    Run { id: RunId, cursor: Box<RunCursor> },
}

impl Source {
    pub(crate) fn memtable(memtable: Arc<Memtable>, snapshot: Seqno) -> Source {
        Source::Memtable(Box::new(MemtableCursor::new(memtable, snapshot)))
    }

    pub(crate) fn run(run: &Arc<Run>) -> Source {
        Source::Run { id: run.meta().id, cursor: Box::new(run.cursor()) }
    }

    pub(crate) fn run_id(&self) -> Option<RunId> {
        match self {
            Source::Memtable(_) => None,
            Source::Run { id, .. } => Some(*id),
        }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        match self {
            Source::Memtable(cursor) => cursor.valid(),
            Source::Run { cursor, .. } => cursor.valid(),
        }
    }

    #[inline]
    pub(crate) fn record(&self) -> RecordRef<'_> {
        match self {
            Source::Memtable(cursor) => cursor.record(),
            Source::Run { cursor, .. } => cursor.record(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Source::Memtable(cursor) => cursor.record().key,
            Source::Run { cursor, .. } => cursor.key(),
        }
    }

    /// First record with key >= `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Source::Memtable(cursor) => {
                cursor.seek(key);
                Ok(())
            }
            Source::Run { cursor, .. } => cursor.seek(key),
        }
    }

    /// Last record with key < `key`; without a key the last of all.
    pub(crate) fn seek_before(&mut self, key: Option<&[u8]>) -> Result<()> {
        match (self, key) {
            (Source::Memtable(cursor), _) => {
                cursor.seek_before(key);
                Ok(())
            }
            (Source::Run { cursor, .. }, Some(key)) => cursor.seek_before(key),
            (Source::Run { cursor, .. }, None) => cursor.seek_last(),
        }
    }

    #[inline]
    pub(crate) fn step(&mut self, forward: bool) -> Result<()> {
        match self {
            Source::Memtable(cursor) => {
                cursor.advance();
                Ok(())
            }
            Source::Run { cursor, .. } if forward => cursor.next(),
            Source::Run { cursor, .. } => cursor.prev(),
        }
    }
}

/// A leaf's range and the runs that may hold its records, newest first; those that memtables have adopted
/// come before those of the nodes.
#[derive(Debug)]
pub(crate) struct LeafView {
    pub range: KeyRange,
    pub runs: Vec<Arc<Run>>,
}

/// Which leaf to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// The one whose range holds the key.
    Holding(&'a [u8]),
    /// The one that may hold the largest key below the key, or without one the last.
    Before(Option<&'a [u8]>),
}

impl LeafView {
    pub(crate) fn find(version: &TreeVersion, target: Target<'_>) -> LeafView {
        let mut runs = Vec::new();
        let mut on_path = Vec::new();
        let mut range = KeyRange::default();
        let mut node = &version.root;
        loop {
            let index = match target {
                Target::Holding(key) => node.child_at(key),
                Target::Before(key) => node.child_before(key),
            };
            on_path.push((node, index));
            range = node.child_range(index, &range);
            match &node.children[index].body {
                Body::Node(below) => node = below,
                Body::Leaf(leaf) => {
                    runs.extend(version.adopted().into_iter().filter(|run| range.overlaps(run)));
                    // Only now the range is known by which runs are told to be of no interest.
                    for (node, index) in on_path {
                        let waiting = node.unpassed(index).filter(|entry| range.overlaps(&entry.run));
                        runs.extend(waiting.map(|entry| entry.run.clone()));
                    }
                    runs.extend(leaf.runs.iter().filter(|run| range.overlaps(run)).cloned());
                    return LeafView { range, runs };
                }
            }
        }
    }
}
