//! A file that is encrypted in place, while it is read and written: for a while it is *mixed*, with encrypted blocks and plain ones.
//!
//! A block's own format version tells which it is. Steps, each durable before the next:
//!
//! 1. [`TreeFile::begin_encryption`]: the superblock, in both slots, gets the key's number, a salt and the flag that the file is mixed.
//!    Only then the first encrypted block is written: whatever a crash leaves, what names such a block, a node or the log, is
//!    found beside a superblock that tells how to read it.
//! 2. From then on every block that is sealed is encrypted. The owner of the file writes anew what is plain (`pando_tree`'s compaction).
//! 3. [`TreeFile::finish_encryption`]: when nobody has plain blocks any more, what they have left in free space is overwritten, and the flag goes.
//!    Plain blocks are damage from then on.
//!
//! Invariants:
//!
//! 1. No plain block is sealed once the file has its cipher: whoever seals one holds `switch` for reading ([`Sealing`]), and the cipher
//!    is set under it.
//! 2. An extent that may have a plain block is counted in `plain_extents` as long as it lives: it was allocated while there was no cipher
//!    (before its first block is sealed, or by who holds `switch`), or adopted from a file that was mixed. So the count
//!    only falls once there is a cipher; and as readers, versions of the tree, writers, open transactions and the durable checkpoint all hold
//!    their extents (`extent`), nothing that is in use is plain when it is 0.

use std::sync::atomic::Ordering;

use pando_base::locks::RwLockReadGuard;
use pando_base::Result;

use crate::block::{self, BlockKind, BlockName};
use crate::encryption::{Cipher, KeyRing, Purpose};
use crate::{FileEncryption, TreeFile};

/// How blocks are sealed now: as long as it is held, that does not change. Short: it may keep [`TreeFile::begin_encryption`] waiting. Who
/// holds one takes no other.
#[must_use]
pub struct Sealing<'a> {
    file: &'a TreeFile,
    cipher: Option<&'a Cipher>,
    /// None where it cannot change any more.
    _stays: Option<RwLockReadGuard<'a, ()>>,
}

impl Sealing<'_> {
    /// Whether blocks are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    /// Bytes that a block with such a payload takes.
    pub fn block_bytes(&self, clear_len: usize, payload_len: usize) -> u64 {
        let more = if self.is_encrypted() { block::SEALED_BYTES + clear_len } else { 0 };
        (block::HEADER_BYTES + more + payload_len) as u64
    }

    /// Appends a block that will be written at `offset`: header and payload, encrypted if the file is. `clear` is told without a key, too;
    /// only encrypted blocks have it.
    ///
    /// # Errors
    /// [`Error::Key`](pando_base::Error::Key): the key to encrypt it with is missing; `out` is as before.
    pub fn seal(
        &self,
        kind: BlockKind,
        codec: u8,
        offset: u64,
        clear: &[u8],
        out: &mut Vec<u8>,
        payload: &[u8],
    ) -> Result<()> {
        let before = out.len();
        let owner = self.file.dict;
        match self.cipher {
            None => block::seal(kind, codec, owner, offset, out, payload),
            Some(cipher) => {
                let path = self.file.path();
                let name = BlockName { path: &path, kind, codec, owner, offset };
                block::seal_encrypted(cipher, name, clear, out, payload)?;
            }
        }
        assert_eq!(
            (out.len() - before) as u64,
            self.block_bytes(clear.len(), payload.len()),
            "bytes of a block"
        );
        Ok(())
    }
}

impl TreeFile {
    /// How blocks are sealed now.
    pub fn sealing(&self) -> Sealing<'_> {
        if let Some(cipher) = self.cipher.get() {
            return Sealing { file: self, cipher: Some(cipher), _stays: None };
        }
        let stays = self.switch.read();
        match self.cipher.get() {
            Some(cipher) => Sealing { file: self, cipher: Some(cipher), _stays: None },
            None => Sealing { file: self, cipher: None, _stays: Some(stays) },
        }
    }

    /// Step 1 at the head of this file, if the file is not encrypted. What is sealed after it returns is encrypted. Several calls at once are
    /// not allowed: the caller has a lock for it. After an error it may be tried again.
    ///
    /// # Errors
    /// [`Error::Key`](pando_base::Error::Key): there is no such key, and nothing has changed; those of writing a superblock.
    pub fn begin_encryption(&self, keys: &KeyRing, key_id: u32) -> Result<()> {
        if self.cipher.get().is_some() {
            return Ok(());
        }
        let path = self.path();
        let new = Cipher::with_new_salt(keys.clone(), Purpose::TreeFile, key_id, &path)?;
        new.check(&path)?;
        let begun = FileEncryption { is_mixed: true, ..FileEncryption::whole(key_id, *new.salt()) };
        // An earlier try may have come so far. Nothing is encrypted with its salt, and the key may have been another one.
        let durable = self.publish_encryption(|_| Some(begun))?;
        assert_eq!(durable, Some(begun), "what the superblock says of the encryption");
        // Before there is anything that it is needed for, and after plain blocks were the only ones.
        self.is_mixed.store(true, Ordering::Release);
        // Nobody seals a plain block now, and nobody will.
        let switch = self.switch.write();
        assert!(self.cipher.set(new).is_ok(), "a file begins to be encrypted once");
        drop(switch);
        Ok(())
    }

    /// Whether the file may have plain blocks beside encrypted ones.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed.load(Ordering::Acquire)
    }

    /// How many extents in use may have plain blocks. Of a mixed file it only falls.
    pub fn plain_extents(&self) -> u64 {
        self.plain_extents.load(Ordering::Acquire)
    }

    /// Step 3 at the head of this file, if it is time: nobody has a plain extent any more, the file is not pinned, and no key range stands in the
    /// superblock as deleted. False: not yet. `go_on` is asked before free space is overwritten, and told how many bytes are next.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish_encryption(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<bool> {
        if !self.is_mixed() {
            return Ok(true);
        }
        // Opened or begun, but not half begun.
        if self.cipher.get().is_none() || self.plain_extents() > 0 {
            return Ok(false);
        }
        // All that was plain was released before: with nothing that waits it is free, or has been written over with what is encrypted.
        if !self.settle()? || !self.overwrite_free(go_on)? {
            return Ok(false);
        }
        // Before the flag goes: a crash may else keep that, and not the zeros.
        self.sync()?;
        let mut is_time = true;
        let durable = self.publish_encryption(|durable| {
            is_time = durable.deleted.is_empty();
            let whole = durable.encryption.map(|its| FileEncryption { is_mixed: false, ..its });
            whole.filter(|_| is_time)
        })?;
        if is_time {
            assert!(durable.is_some_and(|its| !its.is_mixed), "what the superblock says of the encryption");
            self.is_mixed.store(false, Ordering::Release);
        }
        Ok(is_time)
    }
}
