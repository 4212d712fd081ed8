//! How tables are compressed.

use std::mem::MaybeUninit;

use pandodb::Compression;

use crate::member::member;

/// How what is written to leaves is compressed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoCompression {
    /// zstd at the level given.
    Zstd = 0,
    /// lz4.
    Lz4 = 1,
    /// Not at all.
    None = 2,
}

crate::member::members! {
    PandoCompression: Zstd Lz4 None;
}

/// Errors: it is none.
pub(crate) fn compression_of(
    given: MaybeUninit<PandoCompression>,
    level: i32,
) -> pandodb::Result<Compression> {
    Ok(match member(given)? {
        PandoCompression::Zstd => Compression::Zstd(level),
        PandoCompression::Lz4 => Compression::Lz4,
        PandoCompression::None => Compression::None,
    })
}
