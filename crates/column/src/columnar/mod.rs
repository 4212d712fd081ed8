//! Column-wise segments: the same records as row-wise ones, each column of their values apart.
//!
//! Values that are rows of a layout are taken apart into its columns; a segment says itself how, so that reading
//! it needs no catalog. What is not a row of a known layout (values of other users, entries of indexes, rows of
//! a layout the writer had not heard of) is one column of opaque bytes. Records are divided into **groups** of one shape
//! each; nearly always there is one.
//!
//! Reading gives back exactly the bytes that were written; debug builds prove it for every segment.
//!
//! ```text
//! payload:  header (40 bytes) | head | data
//!
//! header, little-endian:
//!   0  u32  rows
//!   4  u32  bytes of all keys
//!   8  u32  bytes of all values
//!  12  u32  stored bytes of the head
//!  16  u32  bytes of the head before compression
//!  20  u32  compression of the head: 0x10 none, 0x11 LZ4, 0x12 zstd, 0x13 zstd against the bytes in common
//!  24  u64  base seqno: the smallest of the segment
//!  32  u64  bytes of the data
//!
//! head:
//!   integers: seqno - base of each record                     (ints.rs draws integers)
//!   keys                                                      (keys.rs)
//!   varint groups; the shape of each                          (shape.rs)
//!   with more than one: integers: the group of each record
//!   per group, for each of its columns:
//!     varint number of the column in its shape; u8 encoding:
//!       0 nulls        NULL everywhere
//!       1 plain        u8 1 if there are NULLs; then integers: 1 for each NULL, 0 else; values of the others
//!       2 dictionary   varint distinct values, NULL included; u8 1 if NULL is one, the first; values;
//!                      integers: the number of each record's value
//!       3 mapped       as dictionary up to the values; varint 0: keys, else the place of another
//!                      dictionary or mapped column among those written before, from 1;
//!                      integers: for each number of that column (of keys: of each head) the one of this
//!     values: integers (signed ones with their highest bit flipped); of strings: integers: the length of each,
//!             unless all have the same; strings                 (strings.rs)
//! data: streams that do not stand in the head                  (streams.rs)
//! ```
//!
//! **Bytes in common.** The dictionaries of neighbouring segments are much the same: airports, cities, states. So the writer
//! of a run keeps the head and the dictionaries of one segment ([`EncodedSegment::common`](crate::EncodedSegment::common)),
//! stores them once, and the heads and dictionaries of the segments that follow are compressed against them (zstd with
//! a dictionary of plain content). Dictionaries are in the order of their values, or in that of the column which they
//! follow from, so that stretches of many entries repeat. Reading such a segment needs these bytes.
#![deny(clippy::indexing_slicing)]

mod codes;
mod decode;
mod dictionary;
mod encode;
mod huffman;
mod ints;
mod keys;
mod packed;
mod pick;
mod rows;
mod segment;
mod shape;
mod shapes;
mod streams;
mod strings;
mod upgrade;
mod zone;

pub use codes::COMMON_BYTES_MAX;
pub(crate) use codes::{ROWS_MAX, VALUE_BYTES_MAX};
pub use packed::{Packed, Row as PackedRow, Search};
pub use pick::{pick, Pick, Picked};
pub(crate) use segment::{decode, encode, Encoded};
pub use shapes::Shapes;
pub use zone::{Zone, Zones, ZONE_BYTES_MAX};
