//! How fast work may go that rewrites whole files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_storage::vfs::Vfs;

/// Longest sleep without a question whether to go on.
const NAP: Duration = Duration::from_millis(50);

/// A rate, of all files together that are rewritten under it: many small ones are not for nothing.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Bytes a second; 0: as fast as it goes.
    rate: AtomicU64,
    /// When what was rewritten is paid for, at that rate.
    paid_micros: AtomicU64,
}

impl Pace {
    /// Holds at once: nobody waits any more for what was rewritten under another rate.
    pub(crate) fn set(&self, bytes_per_second: u64) {
        self.rate.store(bytes_per_second, Ordering::Relaxed);
        self.paid_micros.store(0, Ordering::Relaxed);
    }

    /// Before so many bytes are rewritten: sleeps until those before are paid for, or the rate is lifted. False: `goes_on` says so, which is
    /// asked now and then.
    pub(crate) fn wait(&self, vfs: &dyn Vfs, bytes: u64, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let is_paid = || {
            self.rate.load(Ordering::Relaxed) == 0
                || vfs.now_micros() >= self.paid_micros.load(Ordering::Relaxed)
        };
        while !is_paid() {
            if !goes_on() {
                return false;
            }
            std::thread::sleep(NAP);
        }
        let micros =
            bytes.saturating_mul(1_000_000).checked_div(self.rate.load(Ordering::Relaxed)).unwrap_or(0);
        let begun = match micros {
            0 => 0,
            _ => vfs.now_micros().max(self.paid_micros.load(Ordering::Relaxed)),
        };
        self.paid_micros.store(begun.saturating_add(micros), Ordering::Relaxed);
        goes_on()
    }
}
