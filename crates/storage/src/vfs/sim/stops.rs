//! Where the threads of a simulated machine stop for each other. A simulation that lets one of several threads
//! run at a time asks here to be called before each write to a file: at that moment the thread holds none of the
//! disk's locks, and by the engine's rules none that others need but for turns at longer work.

use std::cell::RefCell;
use std::path::Path;

/// Called with the path of the file, and where in it the write begins.
pub type WriteStop = Box<dyn FnMut(&Path, u64)>;

thread_local! {
    static STOP: RefCell<Option<WriteStop>> = const { RefCell::new(None) };
}

/// From now on, before each write of the calling thread to a file of a simulated disk, `stop` is called. It does
/// no I/O itself.
pub fn stop_before_writes(stop: WriteStop) {
    STOP.set(Some(stop));
}

/// The calling thread is about to write.
pub(super) fn before_write(path: &Path, offset: u64) {
    STOP.with_borrow_mut(|stop| {
        if let Some(stop) = stop {
            stop(path, offset);
        }
    });
}
