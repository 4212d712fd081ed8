//! Threads for bulk loads: as many as processors, started by the first load, and shared by all.
//!
//! They sleep while nobody loads. Tasks never wait for each other (`pando_load::Workers`), so loads of any
//! number make progress with any number of threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use pando_base::locks::{Condvar, Mutex};
use pando_load::{Task, Workers};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct LoadPool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    count: usize,
}

struct Shared {
    queue: Mutex<VecDeque<Task>>,
    wake: Condvar,
    stop: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.queue.lock().len()).finish_non_exhaustive()
    }
}

impl LoadPool {
    pub(crate) fn new(count: usize) -> Arc<LoadPool> {
        let shared = Shared { queue: Mutex::default(), wake: Condvar::new(), stop: AtomicBool::new(false) };
        Arc::new(LoadPool { shared: Arc::new(shared), threads: Mutex::default(), count })
    }

    #[expect(clippy::disallowed_methods, reason = "this is the runtime that owns the threads")]
    fn start(&self) {
        let mut threads = self.threads.lock();
        while threads.len() < self.count {
            let shared = self.shared.clone();
            threads.push(std::thread::spawn(move || shared.work()));
        }
    }

    /// Ends the threads when all that was given to them is done.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        // Under the mutex, so that nobody is between its look and its sleep.
        drop(self.shared.queue.lock());
        self.shared.wake.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        let me = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            let _ = thread.join();
        }
    }
}

impl Workers for LoadPool {
    fn run(&self, task: Task) {
        if self.threads.lock().is_empty() {
            self.start();
        }
        self.shared.queue.lock().push_back(task);
        self.shared.wake.notify_one();
    }

    fn parallelism(&self) -> usize {
        self.count
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let task = {
                let mut queue = self.queue.lock();
                while queue.is_empty() && !self.stop.load(Ordering::Acquire) {
                    self.wake.wait(&mut queue);
                }
                queue.pop_front()
            };
            let Some(task) = task else { return };
            task();
        }
    }
}
