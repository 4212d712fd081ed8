//! Segments: a few hundred consecutive records of a run, encoded as one block payload and decoded
//! into a form with random access. No I/O here.
//!
//! A segment is the unit of compression, caching and skipping. [`SegmentBuilder`] takes records in
//! run order and gives an [`EncodedSegment`]; [`Segment::decode`] takes its bytes back. The codec
//! byte, kept in the block's header, names format and compression together, so that formats can
//! be added (typed columns) without touching the layers above.
//!
//! What holds:
//! * Records of a segment ascend strictly by `compare_versions`: the builder asserts it, the decoder
//!   verifies it. So a binary search in a decoded segment is always right.
//! * Every offset of a decoded segment was verified once, in `decode`; [`Segment::key`] and
//!   [`Segment::value`] are two loads and one compare. They are the hottest functions of the engine.
//! * Arbitrary bytes give a [`DecodeError`], never a panic; memory taken is bounded by the size of
//!   the input (times the best ratio of the compression) plus [`SEGMENT_KEY_BYTES_MAX`].
//!
//! The format is drawn at [`mod@format`].
//!
//! The typed columns that values of a table consist of are [`mod@layout`]s; a column of many rows, decoded, is
//! a [`vector::Vector`].

mod builder;
mod columnar;
mod compression;
mod concat;
mod decode;
pub mod format;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod key_path;
pub mod large;
pub mod layout;
mod row;
mod segment;
pub mod vector;
pub mod wire;

pub use builder::{EncodedSegment, SegmentBuilder};
pub use columnar::{
    pick, Packed, PackedRow, Pick, Picked, Search, Shapes, Zone, Zones, COMMON_BYTES_MAX, ZONE_BYTES_MAX,
};
pub use compression::{put_packed, take_packed, Compression, UnknownCompression, ZSTD_LEVEL_DEFAULT};
pub use format::{RECORD_OVERHEAD_BYTES, SEGMENT_KEY_BYTES_MAX, SEGMENT_VALUE_BYTES_MAX};
pub use key_path::KeyPath;
pub use segment::Segment;
pub use wire::DecodeError;
