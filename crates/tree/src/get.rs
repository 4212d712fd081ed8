//! Point reads: memtables newest first, each with its adopted runs, then down the path, each buffer's runs newest first.
//!
//! The first version with a seqno the snapshot sees is the newest such (I3), so the search ends
//! there. The key is hashed once, for the filters of all runs.

use pando_base::{Kind, Result, Seqno};
use pando_run::{key_hash, Run};

use crate::node::Body;
use crate::tree::Tree;
use crate::version::TreeVersion;

impl Tree {
    /// The value of `key` at `snapshot`; `None` if there is none or it is deleted.
    pub fn get(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Vec<u8>>> {
        let version = self.version.load();
        let hash = key_hash(key);
        for memtable in version.memtables() {
            let found = memtable.get(key, snapshot, |r| (r.kind == Kind::Put).then(|| r.value.to_vec()));
            if let Some(value) = found {
                return Ok(value);
            }
            for run in memtable.adopted() {
                if let Some(found) = run.get(key, hash, snapshot)? {
                    return Ok((found.kind == Kind::Put).then_some(found.value));
                }
            }
        }
        let found = first_in_runs(&version, key, |run| run.get(key, hash, snapshot))?;
        Ok(found.and_then(|found| (found.kind == Kind::Put).then_some(found.value)))
    }

    /// Whether there is a version of `key` that `snapshot` sees, if only that it is deleted.
    pub fn knows(&self, key: &[u8], snapshot: Seqno) -> Result<bool> {
        let version = self.version.load();
        let hash = key_hash(key);
        for memtable in version.memtables() {
            if memtable.get(key, snapshot, |_| ()).is_some() {
                return Ok(true);
            }
            for run in memtable.adopted() {
                if run.get(key, hash, snapshot)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(first_in_runs(&version, key, |run| run.get(key, hash, snapshot))?.is_some())
    }

    /// The newest version of `key` of all, whoever may see it: its seqno and kind.
    pub fn newest(&self, key: &[u8]) -> Result<Option<(Seqno, Kind)>> {
        let version = self.version.load();
        let hash = key_hash(key);
        for memtable in version.memtables() {
            let found = memtable.get(key, Seqno::MAX, |r| (r.seqno, r.kind));
            if found.is_some() {
                return Ok(found);
            }
            for run in memtable.adopted() {
                if let Some(found) = run.newest(key, hash)? {
                    return Ok(Some(found));
                }
            }
        }
        first_in_runs(&version, key, |run| run.newest(key, hash))
    }
}

/// Asks the runs that may hold `key`, newest first, until one answers.
fn first_in_runs<T>(
    version: &TreeVersion,
    key: &[u8],
    ask: impl Fn(&Run) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut node = &version.root;
    loop {
        let index = node.child_at(key);
        for entry in node.unpassed(index) {
            if let Some(found) = ask(&entry.run)? {
                return Ok(Some(found));
            }
        }
        match &node.children[index].body {
            Body::Node(below) => node = below,
            Body::Leaf(leaf) => {
                for run in &leaf.runs {
                    if let Some(found) = ask(run)? {
                        return Ok(Some(found));
                    }
                }
                return Ok(None);
            }
        }
    }
}
