//! The queue of dictionaries with background work, and the threads that serve it. What they do is in
//! `jobs`.
//!
//! Lock order: the queue's mutex is a leaf; nothing is called with it held.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use pando_base::locks::{Condvar, Mutex};

use crate::runtime::failure::Failure;
use crate::runtime::heap::Heap;
use crate::table::Dict;

/// How often the tickers look around.
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// Bytes after which a transaction pays before it goes on.
pub(crate) const PAID_AT_ONCE_BYTES: u64 = 64 << 10;

/// Queue and threads. Owned by the database.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(crate) queue: Mutex<VecDeque<Arc<Dict>>>,
    pub(crate) wake: Condvar,
    stop: AtomicBool,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many threads run jobs. Without any, nobody works off a debt while a writer sleeps.
    pub(crate) workers: usize,
    pub(crate) log_failure: Failure,
    pub(crate) trim_failure: Failure,
    pub(crate) heap: Heap,
    pub(crate) period_s: AtomicU64,
    /// Beyond the half second of a [`TICK`], and when it was last.
    log_sync_period_s: AtomicU64,
    pub(crate) log_synced_micros: AtomicU64,
    /// When the operator was last told who holds the log; 0: nobody does.
    pub(crate) log_holder_told_micros: AtomicU64,
}

impl Background {
    pub(crate) fn new(workers: usize, checkpoint_period_s: u64) -> Background {
        Background { workers, period_s: AtomicU64::new(checkpoint_period_s), ..Background::default() }
    }

    pub(crate) fn set_checkpoint_period(&self, seconds: u64) {
        self.period_s.store(seconds, Ordering::Relaxed);
    }

    pub(crate) fn set_log_sync_period(&self, seconds: u64) {
        self.log_sync_period_s.store(seconds, Ordering::Relaxed);
    }

    /// Whether the log's ticker is to do its work. The other half second is for the work itself.
    pub(crate) fn is_log_due(&self, now_micros: u64) -> bool {
        let period_micros = self.log_sync_period_s.load(Ordering::Relaxed).saturating_mul(1_000_000);
        let since = now_micros.saturating_sub(self.log_synced_micros.load(Ordering::Relaxed));
        if since + TICK.as_micros() as u64 <= period_micros {
            return false;
        }
        self.log_synced_micros.store(now_micros, Ordering::Relaxed);
        true
    }

    /// Puts the dictionary into the queue unless it is there. Without workers nobody would take it out.
    pub(crate) fn request(&self, dict: &Arc<Dict>) {
        if self.workers > 0 && !dict.queued.swap(true, Ordering::AcqRel) {
            self.queue.lock().push_back(dict.clone());
            self.wake.notify_one();
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Next dictionary with work, waiting up to `patience`.
    pub(crate) fn take(&self, patience: Duration) -> Option<Arc<Dict>> {
        let mut queue = self.queue.lock();
        if queue.is_empty() && !self.stopping() {
            self.wake.wait_for(&mut queue, patience);
        }
        let dict = queue.pop_front()?;
        // Before the jobs are looked for, so that work arriving meanwhile is asked for again.
        dict.queued.store(false, Ordering::Release);
        Some(dict)
    }

    /// Ends the threads after the jobs they are in.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        let me = std::thread::current().id();
        for thread in threads {
            thread.thread().unpark();
            // The last reference may be dropped by one of the threads themselves.
            if thread.thread().id() != me {
                let _ = thread.join();
            }
        }
    }
}
