//! Keys of encryption, which the server's key management has.

use pandodb::{KeyProvider, KeyRing, SecretKey};

use crate::database::PandoDb;
use crate::status::{run, PandoStatus};

/// Gives the newest version of a key, 0 if there is no such key. Called from any thread.
pub type PandoKeyVersion = Option<unsafe extern "C" fn(key_id: u32) -> u32>;

/// Writes a version of a key to `buffer`, which has room for `room` bytes, and gives its length; 0 if there is no such version, or no
/// room. Called from any thread.
pub type PandoKey =
    Option<unsafe extern "C" fn(key_id: u32, version: u32, buffer: *mut u8, room: u32) -> u32>;

/// Longest key that is asked for: the server's have 32 bytes at most.
const KEY_BYTES_MAX: usize = 256;

struct ServerKeys {
    version: unsafe extern "C" fn(u32) -> u32,
    key: unsafe extern "C" fn(u32, u32, *mut u8, u32) -> u32,
}

const NO_KEY: &str =
    "the server's key management has no such key; load the plugin that has it, and see its configuration";

impl KeyProvider for ServerKeys {
    fn latest_version(&self, key_id: u32) -> Result<u32, String> {
        // SAFETY: the function was given for this purpose.
        match unsafe { (self.version)(key_id) } {
            0 => Err(NO_KEY.to_owned()),
            version => Ok(version),
        }
    }

    fn key(&self, key_id: u32, version: u32) -> Result<SecretKey, String> {
        let mut bytes = vec![0; KEY_BYTES_MAX];
        // SAFETY: the function was given for this purpose, the buffer has that room.
        let len = unsafe { (self.key)(key_id, version, bytes.as_mut_ptr(), KEY_BYTES_MAX as u32) } as usize;
        if len == 0 || len > KEY_BYTES_MAX {
            return Err(NO_KEY.to_owned());
        }
        bytes.truncate(len);
        Ok(SecretKey::new(bytes))
    }
}

/// The server's keys.
pub(crate) fn key_ring(version: PandoKeyVersion, key: PandoKey) -> KeyRing {
    match (version, key) {
        (Some(version), Some(key)) => KeyRing::new(std::sync::Arc::new(ServerKeys { version, key })),
        _ => KeyRing::empty(),
    }
}

/// Changes whether all of the log is encrypted, not only what belongs to encrypted tables. An error: there is no key for it.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_encrypt_log(db: *const PandoDb, is_all: u8) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    run(|| {
        db.set_encrypt_log(is_all != 0)?;
        Ok(PandoStatus::Ok)
    })
}
