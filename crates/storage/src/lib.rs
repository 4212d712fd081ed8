//! The file layer of Pando: what lies between the engine and the disk.
//!
//! - [`vfs`]: files, directories and the clock, real or simulated. Nothing above opens a file
//!   otherwise, so that a seed reproduces every crash and fault.
//! - [`block`]: the frame of everything on disk, with kind, owner, place and checksum (I8).
//! - [`encryption`]: keys, and what is done with them; [`TreeFile`]s are encrypted from the beginning, or later in place (`mixed`).
//! - [`TreeFile`]: the file of one dictionary: two superblock slots (I7), and extents that are given
//!   back when their owner is dropped (I2).
//! - [`TempFile`]: a file without a name, for what memory has no room for.
//!
//! Depends on `pando-base` only. Threads: everything is `Send + Sync`; readers and writers of blocks
//! take no lock here, but for one that is held for reading while a plain block is sealed (`mixed`).

pub mod block;
pub mod encryption;
mod extent;
mod file_blocks;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod mixed;
mod place;
mod space;
mod superblock;
mod temp_file;
mod tree_file;
pub mod vfs;

pub use block::{BlockKind, EncryptedBlock};
pub use extent::Extent;
pub use file_blocks::BlockWithoutKey;
pub use mixed::Sealing;
pub use place::Place;
pub use superblock::{FileEncryption, Superblock};
pub use temp_file::{TempFile, TempPiece};
pub use tree_file::{FilePin, TreeFile};
