//! Sizes of a tree. The defaults come from `base::limits`; tests use tiny ones to force depth.

use pando_base::{limits, Seqno};
use pando_run::{Compression, RunOptions};

/// Sizes and encodings of one tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeConfig {
    /// Bytes after which the active memtable is sealed; also what must wait for an internal child
    /// before it is flushed to.
    pub memtable_bytes: usize,
    /// Raw bytes a leaf is built to.
    pub leaf_raw_bytes: u64,
    /// Most children of an internal node.
    pub fanout_max: usize,
    /// Most runs in a buffer before runs are merged or the fullest child is flushed.
    pub buffer_runs_max: usize,
    /// How the runs of leaves are written.
    pub run: RunOptions,
    /// Compression of runs in buffers: they are rewritten soon.
    pub buffer_compression: Compression,
}

impl Default for TreeConfig {
    fn default() -> TreeConfig {
        TreeConfig {
            memtable_bytes: limits::MEMTABLE_BYTES,
            leaf_raw_bytes: limits::LEAF_RAW_BYTES,
            fanout_max: limits::FANOUT_MAX,
            buffer_runs_max: limits::BUFFER_RUNS_MAX,
            run: RunOptions {
                compression: Compression::Zstd(3),
                segment_raw_bytes: limits::SEGMENT_RAW_BYTES,
                filter: true,
            },
            buffer_compression: Compression::Lz4,
        }
    }
}

impl TreeConfig {
    /// Bytes that must wait for a leaf before it is flushed to.
    pub(crate) fn leaf_flush_bytes(&self) -> u64 {
        (self.leaf_raw_bytes / limits::FLUSH_SHARE_OF_LEAF).max(1)
    }

    /// Bytes that must wait for an internal child before it is flushed to.
    pub(crate) fn node_flush_bytes(&self) -> u64 {
        (self.memtable_bytes as u64).max(1)
    }
}

/// Which versions merges must keep.
pub trait Horizon: Send + Sync {
    /// The live snapshots, ascending; the last one is the newest visible seqno. Never misses a
    /// snapshot that is or could still be read.
    fn snapshots(&self) -> Vec<Seqno>;
}
