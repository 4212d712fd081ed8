//! stub
#![allow(missing_docs, clippy::missing_safety_doc)]
use std::sync::Arc;
use pando_base::{Kind, Metrics, RecordRef, Result, RunId, Seqno};
pub use pando_column::{Compression, DecodeError};
use pando_storage::{Place, TreeFile};

#[derive(Debug)]
pub struct BlockCache;
impl BlockCache {
    pub fn new(_limit_bytes: u64, _metrics: Arc<Metrics>) -> Arc<BlockCache> { todo!() }
    pub fn set_limit(&self, _bytes: u64) { todo!() }
    pub fn bytes(&self) -> u64 { todo!() }
    pub fn limit(&self) -> u64 { todo!() }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions { pub compression: Compression, pub segment_raw_bytes: usize, pub filter: bool }
#[derive(Clone)]
pub struct RunContext { pub file: Arc<TreeFile>, pub cache: Arc<BlockCache>, pub metrics: Arc<Metrics> }
pub struct RunWriter;
impl RunWriter {
    pub fn new(_ctx: &RunContext, _id: RunId, _options: RunOptions) -> RunWriter { todo!() }
    pub fn add(&mut self, _r: RecordRef<'_>) -> Result<()> { todo!() }
    pub fn raw_bytes(&self) -> u64 { todo!() }
    pub fn rows(&self) -> u64 { todo!() }
    pub fn finish(self) -> Result<Option<Arc<Run>>> { todo!() }
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMeta {
    pub id: RunId, pub rows: u64, pub tombstones: u64, pub raw_bytes: u64, pub disk_bytes: u64,
    pub min_key: Vec<u8>, pub max_key: Vec<u8>, pub min_seqno: Seqno, pub max_seqno: Seqno,
    pub index: Place, pub extents: Vec<Place>,
}
impl RunMeta {
    pub fn encode(&self, _out: &mut Vec<u8>) { todo!() }
    pub fn decode(_bytes: &mut &[u8]) -> std::result::Result<RunMeta, DecodeError> { todo!() }
}
pub struct Found { pub seqno: Seqno, pub kind: Kind, pub value: Vec<u8> }
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate { pub rows: u64, pub bytes: u64, pub tombstones: u64 }
pub fn key_hash(_key: &[u8]) -> u64 { todo!() }
#[derive(Debug)]
pub struct Run;
impl Run {
    pub fn open(_ctx: &RunContext, _meta: RunMeta) -> Result<Arc<Run>> { todo!() }
    pub fn meta(&self) -> &RunMeta { todo!() }
    pub fn get(&self, _key: &[u8], _hash: u64, _snapshot: Seqno) -> Result<Option<Found>> { todo!() }
    pub fn newest(&self, _key: &[u8], _hash: u64) -> Result<Option<(Seqno, Kind)>> { todo!() }
    pub fn estimate(&self, _lo: Option<&[u8]>, _hi: Option<&[u8]>) -> Result<Estimate> { todo!() }
    pub fn split_keys(&self, _lo: Option<&[u8]>, _hi: Option<&[u8]>, _raw_bytes_each: u64) -> Result<Vec<Vec<u8>>> { todo!() }
    pub fn cursor(self: &Arc<Self>) -> RunCursor { todo!() }
    pub fn verify(&self) -> Result<()> { todo!() }
}
pub struct RunCursor;
impl RunCursor {
    pub fn seek(&mut self, _key: &[u8]) -> Result<()> { todo!() }
    pub fn seek_before(&mut self, _key: &[u8]) -> Result<()> { todo!() }
    pub fn seek_first(&mut self) -> Result<()> { todo!() }
    pub fn seek_last(&mut self) -> Result<()> { todo!() }
    pub fn next(&mut self) -> Result<()> { todo!() }
    pub fn prev(&mut self) -> Result<()> { todo!() }
    pub fn valid(&self) -> bool { todo!() }
    pub fn record(&self) -> RecordRef<'_> { todo!() }
    pub fn bypass_cache(self) -> Self { todo!() }
}
pub mod merge {
    use super::*;
    pub struct MergeCursor;
    impl MergeCursor {
        pub fn new(_inputs: Vec<RunCursor>, _lo: Option<Vec<u8>>, _hi: Option<Vec<u8>>) -> Result<MergeCursor> { todo!() }
        pub fn valid(&self) -> bool { todo!() }
        pub fn record(&self) -> RecordRef<'_> { todo!() }
        pub fn next(&mut self) -> Result<()> { todo!() }
    }
    pub struct VersionFilter;
    impl VersionFilter {
        pub fn new(_snapshots: Vec<Seqno>, _bottom: bool) -> VersionFilter { todo!() }
        pub fn keep(&mut self, _r: &RecordRef<'_>) -> bool { todo!() }
        pub fn dropped(&self) -> u64 { todo!() }
    }
}
