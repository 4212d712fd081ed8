//! Blocks of a tree file, encrypted if the file is.

use std::borrow::Cow;
use std::path::Path;

use pando_base::{Error, Result};

use crate::block::{self, BlockKind, BlockName, EncryptedBlock};
use crate::encryption::Cipher;
use crate::{Place, TreeFile};

impl TreeFile {
    /// Bytes that a block with such a payload takes.
    pub fn block_bytes(&self, clear_len: usize, payload_len: usize) -> u64 {
        let more = if self.cipher.is_some() { block::SEALED_BYTES + clear_len } else { 0 };
        (block::HEADER_BYTES + more + payload_len) as u64
    }

    /// Appends a block that will be written at `offset`: header and payload, encrypted if the file is.
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
        self.seal_with_clear(kind, codec, offset, &[], out, payload)
    }

    /// As [`TreeFile::seal`]; `clear` is told without a key, too. Only encrypted files have it.
    ///
    /// # Errors
    /// As [`TreeFile::seal`].
    pub fn seal_with_clear(
        &self,
        kind: BlockKind,
        codec: u8,
        offset: u64,
        clear: &[u8],
        out: &mut Vec<u8>,
        payload: &[u8],
    ) -> Result<()> {
        match &self.cipher {
            None => {
                block::seal(kind, codec, self.dict, offset, out, payload);
                Ok(())
            }
            Some(cipher) => {
                let path = self.path();
                let name = BlockName { path: &path, kind, codec, owner: self.dict, offset };
                block::seal_encrypted(cipher, name, clear, out, payload)
            }
        }
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
        match &self.cipher {
            None => {
                let (codec, payload) = block::open(&path, kind, self.dict, offset, bytes)?;
                Ok((codec, Cow::Borrowed(payload)))
            }
            Some(cipher) => {
                let (codec, block) = self.check_encrypted(&path, kind, offset, bytes)?;
                Ok((codec, Cow::Owned(block.decrypt(cipher, &path)?)))
            }
        }
    }

    /// As far as it goes without a key: checks the bytes of a block of an encrypted file.
    ///
    /// # Errors
    /// [`Error::Corruption`]
    pub fn open_without_key<'a>(
        &self,
        kind: BlockKind,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<EncryptedBlock<'a>> {
        Ok(self.check_encrypted(&self.path(), kind, offset, bytes)?.1)
    }

    /// As [`TreeFile::open_without_key`] of a block of a run, whichever kind it is of; and how many bytes it takes.
    ///
    /// # Errors
    /// [`Error::Corruption`]
    pub fn next_without_key<'a>(&self, offset: u64, bytes: &'a [u8]) -> Result<(EncryptedBlock<'a>, usize)> {
        let kind = block::kind_of(bytes).filter(|kind| {
            use BlockKind::{Common, Filter, RunIndex, Segment};
            matches!(kind, Segment | RunIndex | Filter | Common)
        });
        let path = self.path();
        let Some(kind) = kind else {
            let (what, expected) = ("block of a run", "a block of a kind that runs have");
            return Err(Error::corruption(&path, offset, what, expected, "something else"));
        };
        let (_, block) = self.check_encrypted(&path, kind, offset, bytes)?;
        Ok((block, block.bytes()))
    }

    fn check_encrypted<'a>(
        &self,
        path: &Path,
        kind: BlockKind,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<(u8, EncryptedBlock<'a>)> {
        let block = block::check(path, kind, self.dict, offset, bytes)?;
        if block.version != block::FORMAT_ENCRYPTED {
            let (expected, found) = (block::FORMAT_ENCRYPTED, block.version);
            return Err(Error::corruption(
                path,
                offset,
                "format version in an encrypted file",
                expected,
                found,
            ));
        }
        Ok((block.codec, block.encrypted(path)?))
    }

    /// The version of its key that the block at `place` says it is encrypted with. Only its first bytes are read, and nothing is checked
    /// but that it is an encrypted block.
    ///
    /// # Errors
    /// Those of reading; [`Error::Corruption`]: it is none.
    pub fn key_version_at(&self, place: Place) -> Result<u32> {
        let bytes = self.read(Place { len: place.len.min(block::VERSION_HEAD_BYTES as u64), ..place })?;
        block::key_version_of(&bytes).ok_or_else(|| {
            let (what, expected) = ("head of a block", "that of an encrypted block");
            Error::corruption(&self.path(), place.offset, what, expected, "something else")
        })
    }

    /// Number of the key that the file is encrypted with; `None`: it is not encrypted.
    pub fn key_id(&self) -> Option<u32> {
        self.cipher.as_ref().map(Cipher::key_id)
    }

    /// Makes sure that blocks can be written: of an encrypted file the key is there.
    ///
    /// # Errors
    /// [`Error::Key`]
    pub fn check_key(&self) -> Result<()> {
        self.cipher.as_ref().map_or(Ok(()), |cipher| cipher.check(&self.path()))
    }
}
