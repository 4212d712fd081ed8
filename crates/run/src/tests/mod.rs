//! Runs on a simulated disk, against a sorted map.

mod accesses;
mod adoption;
mod cursors;
mod lookups;
mod merges;
mod packed;
mod spans;
mod trouble;
mod wholes;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Kind, Metrics, RecordRef, RunId, Seqno};
use pando_column::{Compression, Shapes};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::TreeFile;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::{BlockCache, Run, RunContext, RunOptions, RunWriter};

/// All versions of all keys, in run order; `None` is a Delete.
type Model = BTreeMap<(Vec<u8>, Reverse<Seqno>), Option<Vec<u8>>>;

const PATH: &str = "/main.pando";

/// A file on a simulated disk with a cache of its own.
struct Bed {
    sim: Arc<SimVfs>,
    context: RunContext,
}

impl Bed {
    fn new(cache_bytes: u64) -> Bed {
        let sim = SimVfs::new(7);
        let vfs: Arc<dyn Vfs> = sim.clone();
        let file = TreeFile::create(&vfs, Path::new(PATH), DictId(3)).unwrap();
        let metrics: Arc<Metrics> = Arc::default();
        let cache = BlockCache::new(cache_bytes, metrics.clone());
        Bed { sim, context: RunContext { file, cache, metrics } }
    }

    fn write(&self, id: u64, options: RunOptions, model: &Model) -> Arc<Run> {
        self.write_pages(id, options, 50, model)
    }

    fn write_pages(&self, id: u64, options: RunOptions, page_keys: usize, model: &Model) -> Arc<Run> {
        let writer = RunWriter::new(&self.context, RunId(id), options).with_filter_page_keys(page_keys);
        self.fill(writer, model)
    }

    /// The same column-wise, with values that are no rows.
    fn write_columns(&self, id: u64, options: RunOptions, page_keys: usize, model: &Model) -> Arc<Run> {
        let writer = RunWriter::new(&self.context, RunId(id), options).with_filter_page_keys(page_keys);
        self.fill(writer.with_columns(Arc::default()), model)
    }

    fn fill(&self, mut writer: RunWriter, model: &Model) -> Arc<Run> {
        records(model).for_each(|r| writer.add(r).unwrap());
        assert_eq!(writer.rows() as usize, model.len());
        writer.finish().unwrap().expect("the model is not empty")
    }
}

fn records(model: &Model) -> impl DoubleEndedIterator<Item = RecordRef<'_>> {
    model.iter().map(|((key, seqno), value)| RecordRef {
        key,
        seqno: seqno.0,
        kind: if value.is_some() { Kind::Put } else { Kind::Delete },
        value: value.as_deref().unwrap_or_default(),
    })
}

fn small(segment_raw_bytes: usize) -> RunOptions {
    RunOptions { compression: Compression::Lz4, segment_raw_bytes, filter: true }
}

/// `count` keys with one version each, values of `value_bytes`.
fn plain(count: u32, value_bytes: usize) -> Model {
    let value = |i: u32| (0..value_bytes).map(|j| (i as usize * 31 + j * j) as u8).collect();
    (0..count).map(|i| ((key(i), Reverse(9)), Some(value(i)))).collect()
}

fn key(i: u32) -> Vec<u8> {
    (i * 2).to_be_bytes().to_vec()
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(0u8..3, 0..4), vec(0u8..12, 2..3), vec(Just(7u8), 0..30)]
}

/// Models where keys often have several versions.
fn models(most: usize) -> impl Strategy<Value = Model> {
    let value = prop_oneof![1 => Just(None), 4 => vec(any::<u8>(), 0..20).prop_map(Some), 1 => Just(Some(vec![5; 400]))];
    btree_map((keys(), (1u64..40).prop_map(Reverse)), value, 1..most)
}

fn all_options() -> impl Strategy<Value = RunOptions> {
    let compression =
        prop_oneof![Just(Compression::None), Just(Compression::Lz4), Just(Compression::Zstd(1))];
    let bytes = prop_oneof![Just(1usize), Just(100), Just(1000), Just(64 << 10)];
    (compression, bytes, any::<bool>()).prop_map(|(compression, segment_raw_bytes, filter)| RunOptions {
        compression,
        segment_raw_bytes,
        filter,
    })
}
