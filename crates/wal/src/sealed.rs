//! Batches whose entries are encrypted.
//!
//! Instead of its entries such a batch has, behind what says that it is prepared, one of the tag 20:
//!
//! ```text
//! encrypted  20  key id  key version  salt (16 bytes)  nonce (12 bytes)
//!                length  clear bytes  length  encrypted entries, tag (16 bytes)
//!
//! clear bytes:   adopted runs; of each: dict  extents; of each: offset  length
//! ```
//! Numbers are unsigned LEB128. AES-256-GCM; the tag covers everything of the batch that stands before the encrypted entries. The key is
//! derived from the user's with the salt (`storage::encryption`), which is a new one for each life of the log, and after
//! [`USES_MAX`] batches. The clear bytes are for backups, which have to copy what a run takes and have no key.
//!
//! What only resolves a prepared batch has nothing to hide, and has to fit where space was kept for it: it is never encrypted.
#![deny(clippy::indexing_slicing)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{DictId, Error, Result};
use pando_storage::encryption::{Cipher, KeyRing, Purpose, Sealed, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use pando_storage::Place;

use crate::batch::{put_number, BatchBuilder, Bytes, ENCRYPTED};

/// Number of the key of the log, as other engines use it.
pub const LOG_KEY_ID: u32 = 1;

/// Batches that are encrypted with one salt: far below 2^32, the bound for random nonces (NIST SP 800-38D).
const USES_MAX: u64 = 1 << 31;

/// Encrypts batches.
#[derive(Debug, Default)]
pub(crate) struct Sealer {
    keys: KeyRing,
    current: Mutex<Option<Arc<Current>>>,
}

#[derive(Debug)]
struct Current {
    cipher: Cipher,
    uses: AtomicU64,
}

impl Sealer {
    pub(crate) fn new(keys: KeyRing) -> Sealer {
        Sealer { keys, current: Mutex::default() }
    }

    fn current(&self, dir: &Path) -> Result<Arc<Current>> {
        let mut current = self.current.lock();
        if let Some(current) = &*current {
            if current.uses.fetch_add(1, Ordering::Relaxed) < USES_MAX {
                return Ok(current.clone());
            }
        }
        let cipher = Cipher::with_new_salt(self.keys.clone(), Purpose::Log, LOG_KEY_ID, dir)?;
        cipher.check(dir)?;
        let new = Arc::new(Current { cipher, uses: AtomicU64::new(1) });
        *current = Some(new.clone());
        Ok(new)
    }

    /// Makes sure that batches can be encrypted.
    pub(crate) fn check(&self, dir: &Path) -> Result<()> {
        self.current(dir)?.cipher.check(dir)
    }

    /// The bytes of the batch with its entries encrypted.
    pub(crate) fn seal(&self, dir: &Path, batch: &BatchBuilder) -> Result<Vec<u8>> {
        let current = self.current(dir)?;
        let cipher = &current.cipher;
        let (head, entries) = batch.parts();
        let clear = clear_bytes(batch.adopted());
        let mut text = entries.to_vec();
        let bytes_before = |version: u32, nonce: &[u8]| {
            let mut out = Vec::with_capacity(head.len() + clear.len() + entries.len() + 80);
            out.extend_from_slice(head);
            out.push(ENCRYPTED);
            put_number(&mut out, LOG_KEY_ID.into());
            put_number(&mut out, version.into());
            out.extend_from_slice(cipher.salt());
            out.extend_from_slice(nonce);
            put_number(&mut out, clear.len() as u64);
            out.extend_from_slice(&clear);
            put_number(&mut out, (entries.len() + TAG_BYTES) as u64);
            out
        };
        // The nonce is authenticated by its use.
        let sealed = cipher.seal(dir, |version| bytes_before(version, &[]), &mut text)?;
        let mut out = bytes_before(sealed.version, &sealed.nonce);
        out.extend_from_slice(&text);
        out.extend_from_slice(&sealed.tag);
        Ok(out)
    }
}

fn clear_bytes(adopted: &[(DictId, Vec<Place>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (dict, places) in adopted {
        put_number(&mut out, dict.0);
        put_number(&mut out, places.len() as u64);
        for place in places {
            put_number(&mut out, place.offset);
            put_number(&mut out, place.len);
        }
    }
    out
}

/// Encrypted entries as they stand in a batch.
#[derive(Clone, Copy, Debug)]
pub struct SealedEntries<'a> {
    /// Number of the key.
    pub key_id: u32,
    /// Its version.
    pub key_version: u32,
    salt: [u8; SALT_BYTES],
    nonce: [u8; NONCE_BYTES],
    clear: &'a [u8],
    text: &'a [u8],
    tag: [u8; TAG_BYTES],
    /// What the tag covers, but for the nonce: before it and behind it.
    covered: (&'a [u8], &'a [u8]),
}

impl<'a> SealedEntries<'a> {
    /// Reads what follows the tag; `whole` is the batch. `None`: it is not whole.
    pub(crate) fn parse(whole: &'a [u8], rest: &'a [u8]) -> Option<SealedEntries<'a>> {
        let mut bytes = Bytes(rest);
        let key_id = u32::try_from(bytes.number()?).ok()?;
        let key_version = u32::try_from(bytes.number()?).ok()?;
        let salt = *bytes.take(SALT_BYTES)?.first_chunk()?;
        let nonce_at = whole.len().checked_sub(bytes.0.len())?;
        let nonce = *bytes.take(NONCE_BYTES)?.first_chunk()?;
        let clear = bytes.prefixed()?;
        let text_bytes = usize::try_from(bytes.number()?).ok()?;
        let text_at = whole.len().checked_sub(bytes.0.len())?;
        let (text, tag) = bytes.take(text_bytes)?.split_last_chunk::<TAG_BYTES>()?;
        if !bytes.0.is_empty() {
            return None;
        }
        let covered = (whole.get(..nonce_at)?, whole.get(nonce_at + NONCE_BYTES..text_at)?);
        Some(SealedEntries { key_id, key_version, salt, nonce, clear, text, tag: *tag, covered })
    }

    /// Bytes of the entries.
    pub fn entries_bytes(&self) -> usize {
        self.text.len()
    }

    /// The extents of the runs that the entries have dictionaries adopt; `None`: that cannot be read.
    pub fn adopted(&self) -> Option<Vec<(DictId, Vec<Place>)>> {
        let mut bytes = Bytes(self.clear);
        let mut adopted = Vec::new();
        while !bytes.0.is_empty() {
            let dict = DictId(bytes.number()?);
            let mut places = Vec::new();
            for _ in 0..bytes.number()? {
                places.push(Place { offset: bytes.number()?, len: bytes.number()? });
            }
            adopted.push((dict, places));
        }
        Some(adopted)
    }
}

/// Decrypts batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opener {
    keys: KeyRing,
    ciphers: HashMap<(u32, [u8; SALT_BYTES]), Arc<Cipher>>,
}

impl Opener {
    pub(crate) fn new(keys: KeyRing) -> Opener {
        Opener { keys, ciphers: HashMap::new() }
    }

    /// The entries. Errors: [`Error::Key`] naming the log file.
    pub(crate) fn open(&mut self, path: &Path, offset: u64, sealed: &SealedEntries<'_>) -> Result<Vec<u8>> {
        let keys = &self.keys;
        let cipher = self
            .ciphers
            .entry((sealed.key_id, sealed.salt))
            .or_insert_with(|| Arc::new(Cipher::new(keys.clone(), Purpose::Log, sealed.key_id, sealed.salt)));
        let parts = Sealed { version: sealed.key_version, nonce: sealed.nonce, tag: sealed.tag };
        let (before, behind) = sealed.covered;
        let mut text = sealed.text.to_vec();
        cipher.open(path, &parts, &[before, behind].concat(), &mut text).map_err(|error| match error {
            Error::Key { path, key_id, version, reason } => Error::Key {
                path,
                key_id,
                version,
                reason: format!("{reason} (at offset {offset} of the log file)"),
            },
            other => other,
        })?;
        Ok(text)
    }
}
