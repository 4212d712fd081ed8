//! What the stages of loads cost, so that the critical path can be judged.

use std::sync::atomic::{AtomicU64, Ordering};

/// A stage of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Rows to entries.
    Encode,
    /// Entries to sorted chunks.
    Sort,
    /// Chunks into the file.
    Spill,
    /// What came in order to runs of leaves.
    Write,
    /// Chunks to runs of leaves.
    Merge,
    /// Syncs of the files.
    Sync,
}

/// All stages with their names.
pub const STAGES: [(Stage, &str); 6] = [
    (Stage::Encode, "encode"),
    (Stage::Sort, "sort"),
    (Stage::Spill, "spill"),
    (Stage::Write, "write"),
    (Stage::Merge, "merge"),
    (Stage::Sync, "sync"),
];

/// Processor time of each stage, and bytes spilled.
#[derive(Debug, Default)]
pub struct Stages {
    nanos: [AtomicU64; STAGES.len()],
    spilled_bytes: AtomicU64,
}

impl Stages {
    /// Does `work` and counts the processor time it takes this thread.
    pub fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let begin = cpu_nanos();
        let result = work();
        self.nanos[stage as usize].fetch_add(cpu_nanos().saturating_sub(begin), Ordering::Relaxed);
        result
    }

    /// Processor time of a stage so far, in nanoseconds.
    pub fn nanos(&self, stage: Stage) -> u64 {
        self.nanos[stage as usize].load(Ordering::Relaxed)
    }

    /// Bytes that chunks took in files.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_spilled(&self, bytes: u64) {
        self.spilled_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Processor time of this thread.
fn cpu_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
