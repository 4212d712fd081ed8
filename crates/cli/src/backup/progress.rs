//! How far a copy is, for people: a line a second on a terminal, one in ten seconds elsewhere. And the limit of its rate.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const MIB: f64 = 1_048_576.0;

/// Counts the bytes that were copied.
pub struct Progress {
    is_quiet: bool,
    is_terminal: bool,
    /// Bytes a second; none: as fast as it goes.
    rate_max: Option<u64>,
    began: Instant,
    shown: Instant,
    done: u64,
    total: u64,
}

impl Progress {
    /// Of a copy of about `total` bytes.
    pub fn new(total: u64, rate_max: Option<u64>, is_quiet: bool) -> Progress {
        let now = Instant::now();
        let is_terminal = io::stderr().is_terminal();
        Progress { is_quiet, is_terminal, rate_max, began: now, shown: now, done: 0, total }
    }

    /// Bytes were copied. Waits if they came too fast.
    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if let Some(rate) = self.rate_max {
            let due = Duration::from_secs_f64(self.done as f64 / rate.max(1) as f64);
            if let Some(early) = due.checked_sub(self.began.elapsed()) {
                std::thread::sleep(early);
            }
        }
        let pause = Duration::from_secs(if self.is_terminal { 1 } else { 10 });
        if !self.is_quiet && self.shown.elapsed() >= pause {
            self.shown = Instant::now();
            self.show(if self.is_terminal { "\r" } else { "" }, if self.is_terminal { "" } else { "\n" });
        }
    }

    /// Bytes that turn out not to be copied.
    pub fn correct_total(&mut self, expected: u64, found: u64) {
        self.total = self.total.saturating_sub(expected).saturating_add(found);
    }

    fn show(&self, before: &str, after: &str) {
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let rate = self.done as f64 / seconds;
        let total = self.total.max(self.done);
        let left = (total - self.done) as f64 / rate.max(1.0);
        let _ = write!(
            io::stderr(),
            "{before}{:.0} of {:.0} MiB, {:.1} MiB/s, {:.0} s left   {after}",
            self.done as f64 / MIB,
            total as f64 / MIB,
            rate / MIB,
            left
        );
    }

    /// All is copied: bytes, and how long it took.
    pub fn end(self) -> (u64, Duration) {
        if !self.is_quiet && self.is_terminal {
            let _ = writeln!(io::stderr());
        }
        (self.done, self.began.elapsed())
    }
}
