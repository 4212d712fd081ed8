//! Keys of encryption, which the server's key management has.

use std::ffi::c_void;

use pandodb::{KeyProvider, KeyRing, SecretKey};

use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;
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

/// From now on files are rewritten in the background that have blocks whose key is `age` versions old or older, at so many bytes a
/// second. 0: none is; and as fast as it goes.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_key_rotation(db: *const PandoDb, age: u32, bytes_per_second: u64) {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| db.set_key_rotation(age, bytes_per_second));
}

/// Whether tables that are there, and say nothing of encryption, are encrypted in the background from now on. What has begun goes on.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_encrypt_tables(db: *const PandoDb, encrypts: u8) {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| db.set_encrypt_tables(encrypts != 0));
}

/// Which versions of its key a file of an encrypted table has. Its pointers are valid for the call of the visitor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoKeyUse {
    /// `database/table`.
    pub table: PandoBytes,
    /// "main" for the rows, or the index's name.
    pub name: PandoBytes,
    /// Its file.
    pub file: PandoBytes,
    /// Its dictionary's id.
    pub id: u64,
    /// Number of the key.
    pub key_id: u32,
    /// The newest version of it; 0: it cannot be had.
    pub newest: u32,
    /// The oldest version of a block; 0: nobody has looked yet.
    pub oldest: u32,
    /// While it is rewritten: the part that is done; otherwise less than 0.
    pub part: f64,
}

/// Calls `visit` with `context` for each file of each encrypted table, in the order of their names.
///
/// # Safety
/// `db` is open, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_key_uses_visit(
    db: *const PandoDb,
    context: *mut c_void,
    visit: unsafe extern "C" fn(context: *mut c_void, row: *const PandoKeyUse),
) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    run(|| {
        for of in db.key_uses() {
            let shown = PandoKeyUse {
                table: PandoBytes::from_slice(of.table.as_bytes()),
                name: PandoBytes::from_slice(of.name.as_bytes()),
                file: PandoBytes::from_slice(of.file.as_bytes()),
                id: of.id,
                key_id: of.key_id,
                newest: of.newest.unwrap_or(0),
                oldest: of.oldest.unwrap_or(0),
                part: of.part.unwrap_or(-1.0),
            };
            // SAFETY: the caller vouches for it; the row lives for the call.
            unsafe { visit(context, &shown) };
        }
        Ok(PandoStatus::Ok)
    })
}
