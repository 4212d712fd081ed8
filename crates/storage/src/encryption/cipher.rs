//! The cipher of one file or of one life of the log.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use hkdf::Hkdf;
use pando_base::locks::RwLock;
use pando_base::{Error, Result};
use rand::rngs::OsRng;
use rand::TryRngCore;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{key_error, KeyRing};

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Number and version of the key, and the nonce.
pub(crate) const KEY_AND_NONCE_BYTES: usize = 8 + NONCE_BYTES;

/// What a derived key is for: keys of different purposes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Blocks of a tree file.
    TreeFile,
    /// Batches of the log.
    Log,
    /// Temporary files.
    TempFile,
}

impl Purpose {
    fn information(self) -> &'static [u8] {
        match self {
            Purpose::TreeFile => b"pando tree file 1",
            Purpose::Log => b"pando log 1",
            Purpose::TempFile => b"pando temporary file 1",
        }
    }
}

/// Encrypts and decrypts with keys derived from one salt.
pub struct Cipher {
    keys: KeyRing,
    purpose: Purpose,
    key_id: u32,
    salt: [u8; SALT_BYTES],
    /// By version of the key; there are few.
    derived: RwLock<Vec<(u32, Arc<Aes256Gcm>)>>,
    /// The version that was used last, 0 for none.
    used: AtomicU32,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cipher({:?}, key {})", self.purpose, self.key_id)
    }
}

/// How something was encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Version of the key.
    pub version: u32,
    /// Used once.
    pub nonce: [u8; NONCE_BYTES],
    /// What proves that nothing was changed.
    pub tag: [u8; TAG_BYTES],
}

impl Cipher {
    /// For reading what was encrypted with this salt, and for more of it.
    pub fn new(keys: KeyRing, purpose: Purpose, key_id: u32, salt: [u8; SALT_BYTES]) -> Cipher {
        Cipher { keys, purpose, key_id, salt, derived: RwLock::default(), used: AtomicU32::new(0) }
    }

    /// With a new salt.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn with_new_salt(keys: KeyRing, purpose: Purpose, key_id: u32, path: &Path) -> Result<Cipher> {
        Ok(Cipher::new(keys, purpose, key_id, random(path)?))
    }

    /// Number of the key.
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    /// What keys are derived with.
    pub fn salt(&self) -> &[u8; SALT_BYTES] {
        &self.salt
    }

    /// Makes sure that it can encrypt: the newest version of the key is there.
    ///
    /// # Errors
    /// [`Error::Key`]
    pub fn check(&self, path: &Path) -> Result<()> {
        self.newest(path).map(|_| ())
    }

    /// The version of the key to encrypt with. Should the provider not answer now, the one that was used last.
    fn newest(&self, path: &Path) -> Result<(u32, Arc<Aes256Gcm>)> {
        let version = match self.keys.latest_version(path, self.key_id) {
            Ok(version) => version,
            Err(error) => match self.used.load(Ordering::Relaxed) {
                0 => return Err(error),
                version => version,
            },
        };
        let cipher = self.of_version(path, version)?;
        self.used.store(version, Ordering::Relaxed);
        Ok((version, cipher))
    }

    fn of_version(&self, path: &Path, version: u32) -> Result<Arc<Aes256Gcm>> {
        let known = |derived: &[(u32, Arc<Aes256Gcm>)]| {
            derived.iter().find(|(its, _)| *its == version).map(|(_, cipher)| cipher.clone())
        };
        if let Some(cipher) = known(&self.derived.read()) {
            return Ok(cipher);
        }
        let key = self.keys.key(path, self.key_id, version)?;
        let information = [self.purpose.information(), &self.key_id.to_le_bytes(), &version.to_le_bytes()];
        let mut bytes = Zeroizing::new([0u8; 32]);
        Hkdf::<Sha256>::new(Some(&self.salt), key.bytes())
            .expand_multi_info(&information, &mut bytes[..])
            .expect("32 bytes can be derived");
        let cipher = Arc::new(Aes256Gcm::new_from_slice(&bytes[..]).expect("the key has 32 bytes"));
        let mut derived = self.derived.write();
        // Another may have been first.
        if let Some(cipher) = known(&derived) {
            return Ok(cipher);
        }
        derived.push((version, cipher.clone()));
        Ok(cipher)
    }

    /// Encrypts in place with the newest version of the key; `data` gives what is to be bound to it, once the version is known.
    ///
    /// # Errors
    /// [`Error::Key`]: the key is missing.
    pub fn seal(&self, path: &Path, data: impl FnOnce(u32) -> Vec<u8>, bytes: &mut [u8]) -> Result<Sealed> {
        let (version, cipher) = self.newest(path)?;
        let nonce: [u8; NONCE_BYTES] = random(path)?;
        let tag = cipher
            .encrypt_in_place_detached(Nonce::from_slice(&nonce), &data(version), bytes)
            .map_err(|_| key_error(path, self.key_id, version, "more than can be encrypted at once"))?;
        Ok(Sealed { version, nonce, tag: tag.into() })
    }

    /// Decrypts in place.
    ///
    /// # Errors
    /// [`Error::Key`]: there is no such version of the key, or it is another key, or the bytes or what is bound to them are not what was
    /// encrypted.
    pub fn open(&self, path: &Path, sealed: &Sealed, data: &[u8], bytes: &mut [u8]) -> Result<()> {
        let cipher = self.of_version(path, sealed.version)?;
        let (nonce, tag) = (Nonce::from_slice(&sealed.nonce), Tag::from_slice(&sealed.tag));
        cipher.decrypt_in_place_detached(nonce, data, bytes, tag).map_err(|_| {
            let reason = "what was encrypted with it cannot be decrypted with the key that is given; \
                          it is another key, or somebody has changed the file";
            key_error(path, self.key_id, sealed.version, reason)
        })
    }
}

/// Random bytes of the system.
fn random<const N: usize>(path: &Path) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| {
        Error::io("random numbers for", path, 0, std::io::Error::other(error.to_string()))
    })?;
    Ok(bytes)
}
