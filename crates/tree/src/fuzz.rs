//! The decoders of this crate, for `pando-fuzz`: of nodes, and of whole files, which are opened, read, verified, salvaged and gone on with.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;
use std::sync::Arc;

use pando_base::fuzz::Target;
use pando_base::{DictId, Kind, Metrics, Result, Seqno};
use pando_run::{BlockCache, Compression, RunContext, RunOptions};
use pando_storage::vfs::{OpenMode, SimVfs, Vfs};
use pando_storage::{Superblock, TreeFile};

use crate::{node_format, node_places, salvage, Horizon, Tree, TreeConfig};

const PATH: &str = "/t/main.pando";
const DICT: DictId = DictId(7);
const LAST: Seqno = 100;

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "node",
            reads: "nodes (tree/src/node_format.rs)",
            seeds: node_seeds,
            accepts: |bytes| node_format::decode(bytes).is_ok(),
        },
        Target {
            name: "node-places",
            reads: "what nodes of encrypted files tell without a key (tree/src/node_places.rs)",
            seeds: places_seeds,
            accepts: |bytes| node_places::decode(bytes).is_some(),
        },
        Target {
            name: "tree-file",
            reads: "a whole tree file: opened, read, verified, salvaged, written to (tree/src/open.rs)",
            seeds: file_seeds,
            accepts: accepts_file,
        },
    ]
}

#[derive(Debug)]
struct NoSnapshots;

impl Horizon for NoSnapshots {
    fn snapshots(&self) -> Vec<Seqno> {
        vec![LAST + 10]
    }
}

fn config(compression: Compression) -> TreeConfig {
    TreeConfig {
        memtable_bytes: 2048,
        leaf_raw_bytes: 2048,
        fanout_max: 4,
        buffer_runs_max: 4,
        run: RunOptions { compression, segment_raw_bytes: 512, filter: true },
        buffer_compression: Compression::None,
    }
}

fn context(file: &Arc<TreeFile>) -> RunContext {
    let metrics = Arc::new(Metrics::default());
    RunContext { file: file.clone(), cache: BlockCache::new(1 << 20, metrics.clone()), metrics }
}

fn key(n: u64) -> Vec<u8> {
    format!("key {:05}", n * 7919 % 10_000).into_bytes()
}

fn write(tree: &Arc<Tree>, from: Seqno, each: u64) {
    for seqno in from..from + 10 {
        let gate = tree.gate();
        for n in 0..each {
            let n = n * 10 + seqno;
            match n % 7 {
                3 => gate.insert(&key(n), seqno, Kind::Delete, b""),
                _ => gate.insert(&key(n), seqno, Kind::Put, format!("value of {n}").as_bytes()),
            }
        }
        drop(gate);
        tree.seal(|| seqno);
        while tree.run_job().unwrap() {}
    }
}

/// A tree on a disk of its own, with a checkpoint; `each` rows in each of some commits.
fn tree(compression: Compression, each: u64, deletes: bool) -> (Arc<SimVfs>, Arc<TreeFile>, Arc<Tree>) {
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/t")).unwrap();
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    let file = TreeFile::create(&dyn_vfs, Path::new(PATH), DICT).unwrap();
    let tree = Tree::create(context(&file), config(compression), Arc::new(NoSnapshots));
    write(&tree, 1, each);
    if deletes {
        let place = tree.reserve_range(b"key 02", Some(b"key 03")).unwrap();
        tree.gate().delete_range(b"key 02", Some(b"key 03"), 11);
        drop(place);
    }
    tree.checkpoint(|| 11, |_| Ok(()), || 5).unwrap();
    (vfs, file, tree)
}

fn all_bytes(vfs: &SimVfs) -> Vec<u8> {
    let file = vfs.open(Path::new(PATH), OpenMode::Existing).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn file_seeds() -> Vec<Vec<u8>> {
    let of = [(Compression::None, 3, false), (Compression::Lz4, 40, true), (Compression::None, 30, false)];
    of.map(|(compression, each, deletes)| all_bytes(&tree(compression, each, deletes).0)).to_vec()
}

fn node_seeds() -> Vec<Vec<u8>> {
    let of = [0, 3, 20, 60].map(|each| tree(Compression::None, each, false).2);
    of.iter().map(|tree| node_format::encode(&tree.version.load().root)).collect()
}

fn places_seeds() -> Vec<Vec<u8>> {
    let of = [0, 3, 60].map(|each| tree(Compression::None, each, false).2);
    of.iter().map(|tree| node_places::encode(&tree.version.load().root)).collect()
}

/// Puts the bytes of a file on a disk, its checksums made right.
fn disk_of(bytes: &[u8]) -> Arc<SimVfs> {
    let mut bytes = bytes.to_vec();
    pando_storage::fuzz::reseal(0, &mut bytes);
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/t")).unwrap();
    vfs.open(Path::new(PATH), OpenMode::Create).unwrap().write_at(&bytes, 0).unwrap();
    vfs.set_io_count_max(100_000);
    vfs
}

fn accepts_file(bytes: &[u8]) -> bool {
    let vfs = disk_of(bytes);
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    if let Ok((file, superblock)) = TreeFile::open(&dyn_vfs, Path::new(PATH), DICT) {
        let _ = salvage(&context(&file), &superblock, &mut |_| Ok(()));
    }
    use_file(&dyn_vfs).is_ok()
}

fn use_file(vfs: &Arc<dyn Vfs>) -> Result<()> {
    let (file, superblock): (Arc<TreeFile>, Superblock) = TreeFile::open(vfs, Path::new(PATH), DICT)?;
    let tree = Tree::open(context(&file), &superblock, config(Compression::Lz4), Arc::new(NoSnapshots))?;
    for n in (0..400).step_by(37) {
        let _ = tree.get(&key(n), Seqno::MAX);
    }
    let scanned = scan(&tree);
    let verified = tree.verify();
    let _ = (tree.stats(), tree.shape());
    // Who finds something wrong while he writes says so, too.
    if superblock.durable_seqno < LAST - 20 {
        let gate = tree.gate();
        (0..60).for_each(|n| gate.insert(&key(n), LAST, Kind::Put, b"new"));
        drop(gate);
        tree.seal(|| LAST);
        for _ in 0..200 {
            if !tree.run_job()? {
                break;
            }
        }
        tree.checkpoint(|| LAST, |_| Ok(()), || 5)?;
    }
    scanned.and(verified)
}

fn scan(tree: &Arc<Tree>) -> Result<()> {
    let mut cursor = tree.cursor(Seqno::MAX);
    cursor.seek_first()?;
    let mut last = Vec::new();
    while cursor.valid() {
        last = cursor.key().to_vec();
        cursor.next()?;
    }
    cursor.seek_last()?;
    while cursor.valid() {
        cursor.prev()?;
    }
    cursor.seek(&last)
}
