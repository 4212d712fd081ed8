//! Blocks of a tree file, encrypted if the file is; of a file that is `mixed` each block says itself whether it is.

use std::borrow::Cow;
use std::path::Path;

use pando_base::{Error, Result};

use crate::block::{self, BlockKind, EncryptedBlock};
use crate::encryption::Cipher;
use crate::{Place, TreeFile};

/// A block as it can be seen without a key.
#[derive(Clone, Copy, Debug)]
pub enum BlockWithoutKey<'a> {
    /// It is encrypted.
    Encrypted(EncryptedBlock<'a>),
    /// It is not: the file is mixed.
    Plain {
        /// Its codec.
        codec: u8,
        /// Its payload.
        payload: &'a [u8],
    },
}

impl TreeFile {
    /// Appends a block that will be written at `offset`, as [`Sealing::seal`](crate::Sealing::seal) without clear bytes.
    ///
    /// # Errors
    /// [`Error::Key`]: the key to encrypt it with is missing; `out` is as before.
    pub fn seal(
        &self,
        kind: BlockKind,
        codec: u8,
        offset: u64,
        out: &mut Vec<u8>,
        payload: &[u8],
    ) -> Result<()> {
        self.sealing().seal(kind, codec, offset, &[], out, payload)
    }

    /// Checks the bytes of a block read from `offset` and gives its codec and payload, decrypted. Bytes after the block are ignored.
    ///
    /// # Errors
    /// [`Error::Corruption`]; [`Error::Key`] if it cannot be decrypted.
    pub fn open_block<'a>(
        &self,
        kind: BlockKind,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<(u8, Cow<'a, [u8]>)> {
        let path = self.path();
        let block = block::check(&path, kind, self.dict, offset, bytes)?;
        match (block.version, self.cipher.get()) {
            (block::FORMAT_ENCRYPTED, Some(cipher)) => {
                Ok((block.codec, Cow::Owned(block.encrypted(&path)?.decrypt(cipher, &path)?)))
            }
            _ => {
                self.check_plain(&path, offset, block.version)?;
                Ok((block.codec, Cow::Borrowed(block.payload)))
            }
        }
    }

    /// Refuses a block that is not encrypted and should be, and one that is of no version that blocks of this file have.
    fn check_plain(&self, path: &Path, offset: u64, version: u8) -> Result<()> {
        let is_encrypted = self.cipher.get().is_some();
        let (what, expected) = match is_encrypted {
            false => ("format version", block::FORMAT_PLAIN),
            true => ("format version in an encrypted file", block::FORMAT_ENCRYPTED),
        };
        match version == block::FORMAT_PLAIN && (!is_encrypted || self.is_mixed()) {
            true => Ok(()),
            false => Err(Error::corruption(path, offset, what, expected, version)),
        }
    }

    /// As far as it goes without a key: checks the bytes of an encrypted block.
    ///
    /// # Errors
    /// [`Error::Corruption`]
    pub fn open_without_key<'a>(
        &self,
        kind: BlockKind,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<EncryptedBlock<'a>> {
        match self.look_at(kind, offset, bytes)? {
            BlockWithoutKey::Encrypted(block) => Ok(block),
            BlockWithoutKey::Plain { .. } => {
                let (what, expected) = ("format version in an encrypted file", block::FORMAT_ENCRYPTED);
                Err(Error::corruption(&self.path(), offset, what, expected, block::FORMAT_PLAIN))
            }
        }
    }

    /// As far as it goes without a key: checks the bytes of a block of an encrypted or mixed file.
    ///
    /// # Errors
    /// [`Error::Corruption`]
    pub fn look_at<'a>(&self, kind: BlockKind, offset: u64, bytes: &'a [u8]) -> Result<BlockWithoutKey<'a>> {
        let path = self.path();
        let block = block::check(&path, kind, self.dict, offset, bytes)?;
        if block.version == block::FORMAT_ENCRYPTED {
            return Ok(BlockWithoutKey::Encrypted(block.encrypted(&path)?));
        }
        self.check_plain(&path, offset, block.version)?;
        Ok(BlockWithoutKey::Plain { codec: block.codec, payload: block.payload })
    }

    /// As [`TreeFile::look_at`] of a block of a run, whichever kind it is of; and how many bytes it takes.
    ///
    /// # Errors
    /// [`Error::Corruption`]
    pub fn next_without_key<'a>(&self, offset: u64, bytes: &'a [u8]) -> Result<(BlockWithoutKey<'a>, usize)> {
        let kind = block::kind_of(bytes).filter(|kind| {
            use BlockKind::{Common, Filter, RunIndex, Segment};
            matches!(kind, Segment | RunIndex | Filter | Common)
        });
        let Some(kind) = kind else {
            let (what, expected) = ("block of a run", "a block of a kind that runs have");
            return Err(Error::corruption(&self.path(), offset, what, expected, "something else"));
        };
        let block = self.look_at(kind, offset, bytes)?;
        let len = match &block {
            BlockWithoutKey::Encrypted(block) => block.bytes(),
            BlockWithoutKey::Plain { payload, .. } => block::HEADER_BYTES + payload.len(),
        };
        Ok((block, len))
    }

    /// The version of its key that the block at `place` says it is encrypted with; 0: with none, in a mixed file. Only its first bytes are
    /// read, and nothing is checked but that it is such a block.
    ///
    /// # Errors
    /// Those of reading; [`Error::Corruption`]: it is none.
    pub fn key_version_at(&self, place: Place) -> Result<u32> {
        let bytes = self.read(Place { len: place.len.min(block::VERSION_HEAD_BYTES as u64), ..place })?;
        let version = block::key_version_of(&bytes).filter(|version| *version > 0 || self.is_mixed());
        version.ok_or_else(|| {
            let (what, expected) = ("head of a block", "that of an encrypted block");
            Error::corruption(&self.path(), place.offset, what, expected, "something else")
        })
    }

    /// Number of the key that the file is encrypted with; `None`: it is not encrypted.
    pub fn key_id(&self) -> Option<u32> {
        self.cipher.get().map(Cipher::key_id)
    }

    /// Makes sure that blocks can be written: of an encrypted file the key is there.
    ///
    /// # Errors
    /// [`Error::Key`]
    pub fn check_key(&self) -> Result<()> {
        self.cipher.get().map_or(Ok(()), |cipher| cipher.check(&self.path()))
    }
}
