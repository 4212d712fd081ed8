//! What a call has asked of the block cache.

use pandodb::Accesses;

use crate::guard::guard;

/// Blocks that a thread has asked for since it began. They only grow: a call's are the difference.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoAccesses {
    /// Blocks looked up in the cache.
    pub blocks: u64,
    /// Reads of a file, each for a block that was not there.
    pub reads: u64,
    /// Blocks that these reads brought beside it.
    pub blocks_ahead: u64,
    /// Time in these reads, in microseconds.
    pub read_time: u64,
}

/// Those of this thread, with what other threads have done for it in calls that have returned.
#[no_mangle]
pub extern "C" fn pando_thread_accesses() -> PandoAccesses {
    let Accesses { blocks, reads, blocks_ahead, read_time } = guard(Accesses::of_thread);
    PandoAccesses { blocks, reads, blocks_ahead, read_time }
}
