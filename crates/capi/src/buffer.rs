//! A byte buffer of the Rust side that the C side keeps: a fetched row, the text of a status.

use crate::bytes::PandoBytes;
use crate::guard::guard;

/// A growing byte buffer. What it held is gone with the next call that fills it.
#[derive(Debug, Default)]
pub struct PandoBuffer {
    pub(crate) bytes: Vec<u8>,
}

/// Makes an empty buffer; free it with [`pando_buffer_free`].
#[no_mangle]
pub extern "C" fn pando_buffer_new() -> *mut PandoBuffer {
    guard(|| Box::into_raw(Box::default()))
}

/// Frees a buffer. Null is allowed.
///
/// # Safety
/// `buffer` came from [`pando_buffer_new`] and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_buffer_free(buffer: *mut PandoBuffer) {
    guard(|| {
        if !buffer.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(buffer) });
        }
    });
}

/// What the buffer holds, valid until it is filled again or freed.
///
/// # Safety
/// `buffer` is a living buffer.
#[no_mangle]
pub unsafe extern "C" fn pando_buffer_bytes(buffer: *const PandoBuffer) -> PandoBytes {
    // SAFETY: the caller vouches for it.
    guard(|| PandoBytes::from_slice(unsafe { &(*buffer).bytes }))
}
