//! The row-wise segment format, drawn.
//!
//! ```text
//! payload:  header (32 bytes, never compressed) | body (compressed as the codec byte says)
//!
//! header, little-endian:
//!   0  u32  rows
//!   4  u32  body bytes before compression
//!   8  u32  bytes of the values area
//!  12  u32  bytes of the suffixes area
//!  16  u32  bytes of all keys, written out
//!  20  u32  flags
//!  24  u64  base seqno: the smallest of the segment
//!
//! body:
//!   values    the values, one after another
//!   suffixes  each key without what it shares with the key before it
//!   keys      per row: varint shared bytes, and varint suffix bytes unless KEY_LENGTH_SAME
//!   lengths   per row: varint value bytes, unless VALUE_LENGTH_SAME
//!   seqnos    per row: varint seqno - base, unless SEQNO_SAME
//!   kinds     one bit per row, set for a Delete, only if HAS_DELETES
//! ```
//! The shared length is the longest possible one, so comparing a single byte per row verifies the
//! order of the keys.

/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;

/// Row-wise, body stored as it is.
pub const CODEC_ROWS_PLAIN: u8 = 0x10;
/// Row-wise, body compressed with LZ4 (block format).
pub const CODEC_ROWS_LZ4: u8 = 0x11;
/// Row-wise, body compressed with zstd (one frame).
pub const CODEC_ROWS_ZSTD: u8 = 0x12;
/// Heads of column-wise segments only: compressed with zstd against what the run's segments have in common.
pub const CODEC_HEAD_ON_COMMON: u8 = 0x13;
/// Column-wise: drawn at the head of `columnar`.
pub const CODEC_COLUMNS: u8 = 0x20;

/// All keys have the same length.
pub const KEY_LENGTH_SAME: u32 = 1;
/// All values have the same length.
pub const VALUE_LENGTH_SAME: u32 = 2;
/// All records have the base seqno.
pub const SEQNO_SAME: u32 = 4;
/// Some records are tombstones.
pub const HAS_DELETES: u32 = 8;
/// Some seqno is further than 32 bits from the base.
pub const SEQNO_FAR: u32 = 16;
/// All flags of this version of the format.
pub const FLAGS_ALL: u32 = KEY_LENGTH_SAME | VALUE_LENGTH_SAME | SEQNO_SAME | HAS_DELETES | SEQNO_FAR;

/// What a record counts beyond its key and value when raw bytes are added up.
pub const RECORD_OVERHEAD_BYTES: usize = 16;

/// Most bytes of keys in a segment. Bounds what a decoder may allocate for shared prefixes.
pub const SEGMENT_KEY_BYTES_MAX: usize = 16 << 20;

/// Most bytes of values in a segment: offsets are 31 bits, the last one is the Delete flag.
pub const SEGMENT_VALUE_BYTES_MAX: usize = (1 << 31) - 1;

const _: () = assert!(pando_base::limits::VALUE_BYTES_MAX + (256 << 20) < SEGMENT_VALUE_BYTES_MAX);
const _: () = assert!(pando_base::limits::KEY_BYTES_MAX * 16 <= SEGMENT_KEY_BYTES_MAX);
const _: () = assert!(pando_base::limits::SEGMENT_RAW_BYTES * 16 <= SEGMENT_KEY_BYTES_MAX);
