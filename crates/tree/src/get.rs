//! Point reads: memtables newest first, each with its adopted runs, then down the path, each buffer's runs newest first.
//!
//! The first version with a seqno the snapshot sees is the newest such (I3), so the search ends
//! there. The key is hashed once, for the filters of all runs.

use pando_base::{Kind, Result, Seqno, MAX_SEQNO};
use pando_run::{key_hash, screened, Candidate};

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
        let found = first_in_runs(&version, key, hash, snapshot, |run| run.get(key, snapshot))?;
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
        let found = first_in_runs(&version, key, hash, snapshot, |run| run.get(key, snapshot))?;
        Ok(found.is_some())
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
        first_in_runs(&version, key, hash, MAX_SEQNO, |run| run.newest(key))
    }
}

/// Asks the runs that may hold `key`, newest first, until one answers; on each level the filters of all before any run.
fn first_in_runs<T>(
    version: &TreeVersion,
    key: &[u8],
    hash: u64,
    snapshot: Seqno,
    ask: impl Fn(Candidate<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let first = |runs: Vec<Candidate<'_>>| runs.into_iter().find_map(|run| ask(run).transpose()).transpose();
    let mut node = &version.root;
    loop {
        let index = node.child_at(key);
        let buffered = node.unpassed(index).map(|entry| &*entry.run);
        match &node.children[index].body {
            Body::Node(below) => {
                let found = first(screened(buffered, key, hash, snapshot)?)?;
                if found.is_some() {
                    return Ok(found);
                }
                node = below;
            }
            Body::Leaf(leaf) => {
                return first(screened(
                    buffered.chain(leaf.runs.iter().map(|run| &**run)),
                    key,
                    hash,
                    snapshot,
                )?);
            }
        }
    }
}
