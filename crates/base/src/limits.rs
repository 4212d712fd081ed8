//! Limits and defaults that more than one crate or an operator needs: value, unit, reason.

/// Longest key in bytes. A server key of 3072 bytes may grow under collation weights; with the
/// primary key appended it stays below this.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// Longest value in bytes: a row with a LONGBLOB near the server's 1 GB packet limit.
pub const VALUE_BYTES_MAX: usize = (1 << 30) + (64 << 20);

/// A value of a BLOB, TEXT or JSON column from which on it is stored apart from its row: what a change of another column would
/// otherwise write again. A quarter of a segment: shorter ones compress better among others of their column, and a scan reads
/// them without a search for each.
pub const LARGE_VALUE_BYTES: usize = 16 << 10;

/// Most secondary indexes of a table. A bit for each dictionary says what an update changes (`pandodb`, `write::rows`); the server has 64 keys
/// at most.
pub const INDEXES_MAX: usize = 127;

/// Unit of allocation and alignment in a tree file: the page of common disks, as O_DIRECT wants.
pub const PAGE_BYTES: u64 = 4096;

/// Raw bytes after which a segment is closed: big enough to compress, small enough that a cold
/// point read stays one cheap read.
pub const SEGMENT_RAW_BYTES: usize = 64 * 1024;

/// Rows up to which a column-wise segment grows beyond [`SEGMENT_RAW_BYTES`]: columns of fewer values cost more
/// to describe than they save (docs/decisions/0009-columns.md).
pub const SEGMENT_COLUMN_ROWS: usize = 1024;

/// As many times [`SEGMENT_RAW_BYTES`] it grows at most: what a cold read of one wide row has to decode.
pub const SEGMENT_COLUMN_GROWTH: usize = 8;

/// Keys per page of a run's filter: a page is about 37 KiB at 9 bits a key.
pub const FILTER_PAGE_KEYS: usize = 32 * 1024;

/// Bytes after which the active memtable is sealed. Larger ones are written less often: of 24 MiB, a table with three
/// secondary keys writes four per cent less for each row; but each dictionary has one
/// (docs/decisions/0011-memtable.md).
pub const MEMTABLE_BYTES: usize = 16 << 20;

/// Raw bytes a leaf is built to; at twice this it is split.
pub const LEAF_RAW_BYTES: u64 = 16 << 20;

/// Most children of an internal node.
pub const FANOUT_MAX: usize = 64;

/// What must wait for a leaf before it is flushed to, as a share of the size it is built to (1 / this). A leaf is written anew for each
/// such share; of half a leaf that is a fifth less for each row than of a quarter, and up to half a leaf of dead versions
/// waits (docs/decisions/0014-random-inserts.md).
pub const FLUSH_SHARE_OF_LEAF: u64 = 2;

/// Most runs in a node's buffer before the fullest child is flushed or runs are merged,
/// whatever the sizes: a read may have to look into each.
pub const BUFFER_RUNS_MAX: usize = 12;

/// What a tombstone that waits for a leaf adds to what waits for it, in bytes: dead rows must not linger (queues), and 16,384 of them
/// flush a leaf.
pub const TOMBSTONE_DEBT_BYTES: u64 = 512;

/// The same for one that waits for an inner node, of which 65,536 flush it.
pub const TOMBSTONE_DEBT_INNER_BYTES: u64 = 256;

/// Default size of the log's files.
pub const LOG_FILE_BYTES: u64 = 64 << 20;

/// Log kept beyond which the dictionaries that hold it back are checkpointed.
pub const LOG_KEPT_BYTES_MAX: u64 = 512 << 20;

/// Memory of full memtables during recovery, beyond which they are written before it ends.
pub const REPLAY_MEMORY_BYTES: u64 = 64 << 20;

/// File descriptors that tables' files may share at least, whatever the system allows.
pub const DESCRIPTORS_MIN: u64 = 32;

/// Tree files that stay open though nobody uses them: a small part of what a server may open (some
/// 32,000), each of a few kilobytes of memory.
pub const FILES_OPEN_MAX: usize = 4096;

/// As many may stay open whatever the system allows.
pub const FILES_OPEN_MIN: usize = 64;

/// Files that a start or a stop makes durable at once. Each may take the memory of a memtable meanwhile, and a descriptor.
pub const FILES_SYNCED_AT_ONCE: usize = 8;
const _: () = assert!((FILES_SYNCED_AT_ONCE as u64) < DESCRIPTORS_MIN);

/// Default age, in seconds, at which a dirty dictionary is checkpointed.
pub const CHECKPOINT_PERIOD_S: u64 = 60;

/// Default lock wait in seconds, as InnoDB's users know it.
pub const LOCK_WAIT_TIMEOUT_S: u64 = 50;

/// Default memory of a transaction's uncommitted writes, beyond which they are spilled: some 700,000 narrow
/// rows, so that nearly all transactions never are.
pub const WRITE_SET_BYTES: u64 = 64 << 20;

/// Default memory of bulk loads: seven secondary keys of some two million rows are sorted in it without a file.
pub const LOAD_MEMORY_BYTES: u64 = 256 << 20;

/// Default of the row locks (some 100 bytes each) that a transaction may hold one by one.
pub const LOCK_BUDGET: usize = 200_000;

/// Smallest limit of all memory: shares of less are of no use.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Uncommitted changes that are worth a file where those of all transactions take too much memory.
pub const WRITE_SET_BYTES_MIN: u64 = 1 << 20;

/// Smallest block cache.
pub const CACHE_BYTES_MIN: u64 = 8 << 20;

const _: () = assert!(SEGMENT_RAW_BYTES * SEGMENT_COLUMN_GROWTH * 16 <= LEAF_RAW_BYTES as usize);
const _: () = assert!(LEAF_RAW_BYTES <= 2 * MEMTABLE_BYTES as u64);
const _: () = assert!(PAGE_BYTES.is_power_of_two());
const _: () = assert!(LOG_FILE_BYTES * 4 <= LOG_KEPT_BYTES_MAX);

/// Writes up to which the records of a commit go into the memtables while the server's mutex over all
/// commits is held: some ten microseconds, less than what it costs others to wait for one more thread.
pub const ORDERED_AT_ONCE_OPS: u64 = 64;
