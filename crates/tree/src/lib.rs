//! stub
#![allow(missing_docs, dead_code, unused_variables)]
use std::sync::Arc;

use pando_base::{Kind, Result, Seqno};
use pando_run::{Compression, RunContext, RunOptions};
pub use pando_run::Estimate;
use pando_storage::Superblock;

#[derive(Clone, Copy, Debug)]
pub struct TreeConfig {
    pub memtable_bytes: usize,
    pub leaf_raw_bytes: u64,
    pub fanout_max: usize,
    pub buffer_runs_max: usize,
    pub run: RunOptions,
    pub buffer_compression: Compression,
}
impl Default for TreeConfig {
    fn default() -> Self {
        todo!()
    }
}
pub trait Horizon: Send + Sync {
    fn snapshots(&self) -> Vec<Seqno>;
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    pub sealed_bytes: u64,
    pub overdue_bytes: u64,
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    pub durable_seqno: Seqno,
    pub nodes_written: u64,
    pub bytes_written: u64,
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    pub rows: u64,
    pub raw_bytes: u64,
    pub tombstones: u64,
    pub runs: u64,
    pub leaves: u64,
    pub nodes: u64,
    pub height: u64,
    pub buffered_bytes: u64,
    pub disk_bytes: u64,
}
pub struct Tree;
impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").finish_non_exhaustive()
    }
}
pub struct WriteGuard<'a>(std::marker::PhantomData<&'a ()>);
impl WriteGuard<'_> {
    pub fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        todo!()
    }
}
impl Tree {
    pub fn create(ctx: RunContext, config: TreeConfig, horizon: Arc<dyn Horizon>) -> Arc<Tree> {
        todo!()
    }
    pub fn open(
        ctx: RunContext,
        sb: &Superblock,
        config: TreeConfig,
        horizon: Arc<dyn Horizon>,
    ) -> Result<Arc<Tree>> {
        todo!()
    }
    pub fn gate(&self) -> WriteGuard<'_> {
        todo!()
    }
    pub fn truncate(&self, seqno: Seqno) {
        todo!()
    }
    pub fn last_write(&self) -> Seqno {
        todo!()
    }
    pub fn get(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Vec<u8>>> {
        todo!()
    }
    pub fn newest(&self, key: &[u8]) -> Result<Option<(Seqno, Kind)>> {
        todo!()
    }
    pub fn cursor(self: &Arc<Self>, snapshot: Seqno) -> Cursor {
        todo!()
    }
    pub fn estimate(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<Estimate> {
        todo!()
    }
    pub fn rows_estimate(&self) -> u64 {
        todo!()
    }
    pub fn raw_bytes(&self) -> u64 {
        todo!()
    }
    pub fn has_work(&self) -> bool {
        todo!()
    }
    pub fn run_job(&self) -> Result<bool> {
        todo!()
    }
    pub fn debt(&self) -> Debt {
        todo!()
    }
    pub fn seal_if_full(&self, last_assigned: impl Fn() -> Seqno) -> bool {
        todo!()
    }
    pub fn seal(&self, last_assigned: impl Fn() -> Seqno) -> bool {
        todo!()
    }
    pub fn memtable_bytes(&self) -> u64 {
        todo!()
    }
    pub fn is_dirty(&self) -> bool {
        todo!()
    }
    pub fn oldest_unwritten(&self) -> Option<Seqno> {
        todo!()
    }
    pub fn checkpoint(
        &self,
        last_assigned: impl Fn() -> Seqno,
        sync_log: impl Fn(Seqno) -> Result<()>,
        auto_increment: impl Fn() -> u64,
    ) -> Result<CheckpointStats> {
        todo!()
    }
    pub fn verify(&self) -> Result<()> {
        todo!()
    }
    pub fn compact_all(&self) -> Result<()> {
        todo!()
    }
    pub fn shape(&self) -> String {
        todo!()
    }
    pub fn stats(&self) -> TreeStats {
        todo!()
    }
}
pub struct Cursor;
impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}
impl Cursor {
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        todo!()
    }
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        todo!()
    }
    pub fn seek_first(&mut self) -> Result<()> {
        todo!()
    }
    pub fn seek_last(&mut self) -> Result<()> {
        todo!()
    }
    pub fn next(&mut self) -> Result<()> {
        todo!()
    }
    pub fn prev(&mut self) -> Result<()> {
        todo!()
    }
    pub fn valid(&self) -> bool {
        todo!()
    }
    pub fn key(&self) -> &[u8] {
        todo!()
    }
    pub fn value(&self) -> &[u8] {
        todo!()
    }
    pub fn seqno(&self) -> Seqno {
        todo!()
    }
    pub fn refresh(&mut self, snapshot: Seqno) {
        todo!()
    }
}
