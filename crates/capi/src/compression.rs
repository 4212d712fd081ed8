//! How tables are compressed.

use pandodb::Compression;

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

pub(crate) fn compression_of(compression: PandoCompression, level: i32) -> Compression {
    match compression {
        PandoCompression::Zstd => Compression::Zstd(level),
        PandoCompression::Lz4 => Compression::Lz4,
        PandoCompression::None => Compression::None,
    }
}
