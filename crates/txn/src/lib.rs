//! Write sets, snapshots and row locks (signatures first; bodies follow).
#![allow(missing_docs, unused_variables)]

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use pando_base::{DictId, Kind, Metrics, Seqno, TxnId};

#[derive(Debug)]
pub struct Snapshots;
impl Snapshots {
    pub fn new(visible: Seqno) -> Arc<Self> { todo!() }
    pub fn visible(&self) -> Seqno { todo!() }
    pub fn take(&self) -> Snapshot { todo!() }
    pub fn live(&self) -> Vec<Seqno> { todo!() }
    pub fn publish(&self, seqno: Seqno) { todo!() }
    pub fn wait_visible(&self, seqno: Seqno) { todo!() }
}
#[derive(Clone, Debug)]
pub struct Snapshot;
impl Snapshot {
    pub fn seqno(&self) -> Seqno { todo!() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u32);
impl Mark {
    /// Sees every op.
    pub const LATEST: Mark = Mark(u32::MAX);
}
#[derive(Debug, Default)]
pub struct WriteSet;
impl WriteSet {
    pub fn new() -> Self { todo!() }
    pub fn put(&mut self, dict: DictId, key: &[u8], value: &[u8]) { todo!() }
    pub fn delete(&mut self, dict: DictId, key: &[u8]) { todo!() }
    pub fn get(&self, dict: DictId, key: &[u8]) -> Option<Option<&[u8]>> { todo!() }
    pub fn get_at(&self, dict: DictId, key: &[u8], mark: Mark) -> Option<Option<&[u8]>> { todo!() }
    pub fn mark(&self) -> Mark { todo!() }
    pub fn rollback_to(&mut self, mark: Mark) { todo!() }
    pub fn clear(&mut self) { todo!() }
    pub fn is_empty(&self) -> bool { todo!() }
    pub fn ops(&self) -> usize { todo!() }
    pub fn bytes(&self) -> usize { todo!() }
    pub fn dicts(&self) -> impl Iterator<Item = DictId> + '_ { std::iter::empty() }
    pub fn for_each_final(&self, f: impl FnMut(DictId, &[u8], Kind, &[u8])) { todo!() }
    pub fn next_ge(&self, dict: DictId, from: Bound<&[u8]>, mark: Mark) -> Option<(&[u8], Option<&[u8]>)> { todo!() }
    pub fn next_le(&self, dict: DictId, from: Bound<&[u8]>, mark: Mark) -> Option<(&[u8], Option<&[u8]>)> { todo!() }
    pub fn auto_increment(&mut self, dict: DictId, next: u64) { todo!() }
    pub fn for_each_auto_increment(&self, f: impl FnMut(DictId, u64)) { todo!() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode { Shared, Exclusive }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait { Timeout(Duration), NoWait, SkipLocked }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome { Granted { waited: bool }, AlreadyHeld }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError { Deadlock, Timeout, Killed, WouldBlock }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow { pub txn: TxnId, pub dict: DictId, pub key: Vec<u8>, pub mode: LockMode, pub waiting: bool }
#[derive(Debug)]
pub struct LockManager;
impl LockManager {
    pub fn new(metrics: Arc<Metrics>) -> Arc<Self> { todo!() }
    pub fn register(self: &Arc<Self>, id: TxnId) -> TxnHandle { todo!() }
    pub fn lock(&self, txn: &TxnHandle, dict: DictId, key: &[u8], mode: LockMode, wait: Wait) -> Result<LockOutcome, LockError> { todo!() }
    pub fn unlock(&self, txn: &TxnHandle, dict: DictId, key: &[u8]) -> bool { todo!() }
    pub fn release_all(&self, txn: &TxnHandle) { todo!() }
    pub fn kill(&self, txn: TxnId) { todo!() }
    pub fn rows(&self) -> Vec<LockRow> { todo!() }
    pub fn last_deadlock(&self) -> Option<String> { todo!() }
}
#[derive(Debug)]
pub struct TxnHandle;
impl TxnHandle {
    pub fn id(&self) -> TxnId { todo!() }
    pub fn set_weight(&self, writes: u64) { todo!() }
    pub fn weight(&self) -> u64 { todo!() }
    pub fn is_killed(&self) -> bool { todo!() }
    pub fn clear_kill(&self) { todo!() }
    pub fn locks_held(&self) -> usize { todo!() }
}
