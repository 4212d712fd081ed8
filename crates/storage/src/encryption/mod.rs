//! Encryption at rest: who gives the keys, and what is done with them.
//!
//! - A [`KeyProvider`] is the user's: the server's key management, or an application's own. It knows **keys** by number,
//!   each in **versions**; the newest one is for what is written from now on, older ones for what is there.
//! - A [`KeyRing`] is the engine's handle to it, and may be empty.
//! - A [`Cipher`] encrypts for one file or for one life of the log. It never uses the provider's key itself: it derives one of its
//!   own from it and from its **salt**, 16 random bytes that are kept in the clear beside what is encrypted.
//!
//! **Derivation**: HKDF-SHA256 with the provider's key (16 bytes or more) as input, the salt, and purpose, number and version of the key as
//! information; 32 bytes come out. So keys of 128, 192 and 256 bits are all used in the same way, and two files never share a key.
//!
//! **Encryption**: AES-256-GCM, tags of 16 bytes. Nonces are 96 bits from the system's random numbers for each write. As each file has a key of
//! its own, the bound of 2^32 random nonces for a key (NIST SP 800-38D) is one of blocks that are ever written to one file: with
//! blocks of 64 KiB, 256 TiB. A counter would not have this bound, but a copied or restored machine would count on from the same
//! number with the same key, which GCM does not survive.

mod cipher;
mod key_list;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pando_base::{Error, Result};
use zeroize::Zeroizing;

pub(crate) use cipher::KEY_AND_NONCE_BYTES;
pub use cipher::{Cipher, Purpose, Sealed, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
pub use key_list::KeyList;

/// Shortest key that is taken.
pub const KEY_BYTES_MIN: usize = 16;

/// A key as the provider has it. Its memory is cleared when it goes.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Zeroizing<Vec<u8>>);

impl SecretKey {
    /// Takes the bytes of a key.
    pub fn new(bytes: Vec<u8>) -> SecretKey {
        SecretKey(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({} bytes)", self.0.len())
    }
}

/// Where keys come from. Called from any thread, also while something waits: it should answer from memory.
pub trait KeyProvider: Send + Sync {
    /// The version of a key to encrypt with, from 1.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn latest_version(&self, key_id: u32) -> std::result::Result<u32, String>;

    /// A version of a key.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn key(&self, key_id: u32, version: u32) -> std::result::Result<SecretKey, String>;
}

/// The engine's handle to the keys; without a provider there are none.
#[derive(Clone, Default)]
pub struct KeyRing {
    provider: Option<Arc<dyn KeyProvider>>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.provider.is_some() { "KeyRing" } else { "KeyRing(empty)" })
    }
}

impl KeyRing {
    /// The keys of this provider.
    pub fn new(provider: Arc<dyn KeyProvider>) -> KeyRing {
        KeyRing { provider: Some(provider) }
    }

    /// No keys: what is encrypted cannot be read.
    pub fn empty() -> KeyRing {
        KeyRing::default()
    }

    /// Whether there is nobody to ask.
    pub fn is_empty(&self) -> bool {
        self.provider.is_none()
    }

    /// The version of a key to encrypt with; `path` is for the error.
    ///
    /// # Errors
    /// [`Error::Key`]
    pub fn latest_version(&self, path: &Path, key_id: u32) -> Result<u32> {
        let answer = match &self.provider {
            Some(provider) => provider.latest_version(key_id),
            None => Err(NO_PROVIDER.to_owned()),
        };
        answer.map_err(|reason| key_error(path, key_id, 0, reason))
    }

    pub(crate) fn key(&self, path: &Path, key_id: u32, version: u32) -> Result<SecretKey> {
        let answer = match &self.provider {
            Some(provider) => provider.key(key_id, version),
            None => Err(NO_PROVIDER.to_owned()),
        };
        let key = answer.map_err(|reason| key_error(path, key_id, version, reason))?;
        match key.bytes().len() {
            KEY_BYTES_MIN.. => Ok(key),
            len => {
                let reason = format!("it has {len} bytes, and at least {KEY_BYTES_MIN} are needed");
                Err(key_error(path, key_id, version, reason))
            }
        }
    }
}

const NO_PROVIDER: &str = "no keys are given";

pub(crate) fn key_error(path: &Path, key_id: u32, version: u32, reason: impl Into<String>) -> Error {
    Error::Key { path: path.to_owned(), key_id, version, reason: reason.into() }
}
