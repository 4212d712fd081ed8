//! Long operations tell whoever asked for them how far they are, and ask whether to go on.

use std::ffi::c_void;

/// Is called now and then, in the thread of the call, with the part that is done, 0 to 1. 0: give up (`Killed`);
/// anything else: go on. Null: nobody watches.
pub type PandoWatch = Option<unsafe extern "C" fn(watched: *mut c_void, done: f64) -> u8>;

/// As a function of Rust.
///
/// # Safety
/// `watch` may be called with `watched` during the call.
pub(crate) unsafe fn watching(watch: PandoWatch, watched: *mut c_void) -> impl FnMut(f64) -> bool {
    // SAFETY: the caller vouches for it.
    move |done| watch.is_none_or(|watch| unsafe { watch(watched, done) != 0 })
}
