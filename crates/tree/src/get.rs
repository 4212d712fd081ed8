//! Point reads: memtables newest first, each with its adopted runs, then down the path, each buffer's runs newest first.
//!
//! The first version with a seqno the snapshot sees is the newest such (I3), so the search ends
//! there. If a deleted range hides it, there is none: what is older is hidden as well. The key is hashed once, for the filters of all runs, which are asked together as far as they are in the cache.

use pando_base::{pause, Kind, Result, Seqno, MAX_SEQNO};
use pando_run::{Candidate, Lookup};

use crate::node::Body;
use crate::tree::Tree;
use crate::version::TreeVersion;

impl Tree {
    /// The value of `key` at `snapshot`; `None` if there is none or it is deleted.
    pub fn get(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Vec<u8>>> {
        self.value_of(Lookup::new(key, snapshot), snapshot)
    }

    /// The same for who has reason to think that there is a value: finding one costs less, finding none may read a block in vain.
    pub fn get_as_expected(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Vec<u8>>> {
        self.value_of(Lookup::new(key, snapshot).expected(), snapshot)
    }

    fn value_of(&self, lookup: Lookup<'_>, snapshot: Seqno) -> Result<Option<Vec<u8>>> {
        let version = self.version.load();
        pause(256);
        let key = lookup.key();
        for memtable in version.memtables() {
            let shown = |seqno| !is_hidden(&version, key, seqno, snapshot);
            let found = memtable
                .get(key, snapshot, |r| (r.kind == Kind::Put && shown(r.seqno)).then(|| r.value.to_vec()));
            if let Some(value) = found {
                return Ok(value);
            }
            for run in memtable.adopted() {
                if let Some(found) = run.get(&lookup.unexpected())? {
                    return Ok((found.kind == Kind::Put && shown(found.seqno)).then_some(found.value));
                }
            }
        }
        let found = first_in_runs(&version, key, lookup, |run| run.get())?;
        let found = found.filter(|found| !is_hidden(&version, key, found.seqno, snapshot));
        Ok(found.and_then(|found| (found.kind == Kind::Put).then_some(found.value)))
    }

    /// Whether there is a version of `key` that `snapshot` sees, if only that it is deleted (by itself: deleted ranges are not looked for).
    pub fn knows(&self, key: &[u8], snapshot: Seqno) -> Result<bool> {
        Ok(self.seqno_and_kind(key, snapshot)?.is_some())
    }

    /// The newest version of `key` of all, whoever may see it: its seqno and kind.
    pub fn newest(&self, key: &[u8]) -> Result<Option<(Seqno, Kind)>> {
        self.seqno_and_kind(key, MAX_SEQNO)
    }

    /// Whether `key` has a value now, for who has reason to think so: an answer of yes costs less than that of [`Tree::newest`], one of no
    /// may have to read a block in vain.
    pub fn has_as_expected(&self, key: &[u8]) -> Result<bool> {
        let found = self.seqno_and_kind_of(Lookup::new(key, MAX_SEQNO).expected(), MAX_SEQNO)?;
        Ok(found.is_some_and(|(_, kind)| kind == Kind::Put))
    }

    fn seqno_and_kind(&self, key: &[u8], snapshot: Seqno) -> Result<Option<(Seqno, Kind)>> {
        self.seqno_and_kind_of(Lookup::new(key, snapshot), snapshot)
    }

    fn seqno_and_kind_of(&self, lookup: Lookup<'_>, snapshot: Seqno) -> Result<Option<(Seqno, Kind)>> {
        let version = self.version.load();
        pause(256);
        let key = lookup.key();
        // A range that hides the version is the newer one, and a delete.
        let newest = |(seqno, kind)| match version.deleted.hiding(key, seqno, snapshot) {
            Some(deleted) => (deleted, Kind::Delete),
            None => (seqno, kind),
        };
        for memtable in version.memtables() {
            let found = memtable.get(key, snapshot, |r| (r.seqno, r.kind));
            if found.is_some() {
                return Ok(found.map(newest));
            }
            for run in memtable.adopted() {
                if let Some(found) = run.seqno_and_kind(&lookup.unexpected())? {
                    return Ok(Some(newest(found)));
                }
            }
        }
        Ok(first_in_runs(&version, key, lookup, |run| run.seqno_and_kind())?.map(newest))
    }
}

#[inline]
fn is_hidden(version: &TreeVersion, key: &[u8], seqno: Seqno, snapshot: Seqno) -> bool {
    !version.deleted.is_empty() && version.deleted.hiding(key, seqno, snapshot).is_some()
}

/// Asks the runs on the path of `key` that may have it, newest first, until one answers.
fn first_in_runs<T>(
    version: &TreeVersion,
    key: &[u8],
    lookup: Lookup<'_>,
    ask: impl Fn(Candidate<'_, '_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut node = &version.root;
    loop {
        let index = node.child_at(key);
        let buffered = node.unpassed(index).map(|entry| &*entry.run);
        let (leaf_runs, below) = match &node.children[index].body {
            Body::Leaf(leaf) => (&leaf.runs[..], None),
            Body::Node(below) => (&[][..], Some(below)),
        };
        // What a node on the way has is seldom what is wanted.
        let lookup = if below.is_some() { lookup.unexpected() } else { lookup };
        for candidate in lookup.screened(buffered.chain(leaf_runs.iter().map(|run| &**run))) {
            let found = ask(candidate?)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        match below {
            Some(below) => node = below,
            None => return Ok(None),
        }
    }
}
