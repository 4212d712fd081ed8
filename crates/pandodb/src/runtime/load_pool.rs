//! Threads for bulk loads: as many as processors, started by the first load, and shared by all.
//!
//! They sleep while nobody loads. Tasks never wait for each other (`pando_load::Workers`), so loads of any
//! number make progress with any number of threads, and also without: if the system gives none, who brings a task does it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use pando_base::locks::{Condvar, Mutex};
use pando_base::observer::{self, ThreadKind};
use pando_load::{Task, Workers};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct LoadPool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    count: usize,
    spawn: Spawn,
}

/// What makes threads.
type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

/// Tasks that wait: those that take moments (batches and groups of entries), and merges. A statement that loads little waits for
/// its own batches; it should not wait for all merges of others. So there is a turn for a merge after each few of the short ones. A
/// statement that is killed takes its tasks out.
#[derive(Default)]
struct Queue {
    short: VecDeque<Task>,
    long: VecDeque<Task>,
    /// Short ones taken since the last long one.
    in_a_row: u32,
}

/// Short tasks for each long one, where both wait.
const SHORT_IN_A_ROW: u32 = 8;

impl Queue {
    fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    fn pop(&mut self) -> Option<Task> {
        let is_long_due = self.in_a_row >= SHORT_IN_A_ROW || self.short.is_empty();
        if let Some(task) = is_long_due.then(|| self.long.pop_front()).flatten() {
            self.in_a_row = 0;
            return Some(task);
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.short.pop_front()
    }

    fn take_given_up(&mut self) -> Vec<Task> {
        let mut given_up = Vec::new();
        for queue in [&mut self.short, &mut self.long] {
            let (out, kept): (VecDeque<Task>, _) =
                std::mem::take(queue).into_iter().partition(Task::is_given_up);
            *queue = kept;
            given_up.extend(out);
        }
        given_up
    }
}

struct Shared {
    queue: Mutex<Queue>,
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
        LoadPool::with(count, |work| std::thread::Builder::new().spawn(work))
    }

    fn with(count: usize, spawn: Spawn) -> Arc<LoadPool> {
        let shared = Shared { queue: Mutex::default(), wake: Condvar::new(), stop: AtomicBool::new(false) };
        Arc::new(LoadPool { shared: Arc::new(shared), threads: Mutex::default(), count, spawn })
    }

    /// Whether there are threads: as many as there should be, or as the system gives. If it gave none before, it may now.
    fn has_threads(&self) -> bool {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            let thread = |_| {
                let shared = self.shared.clone();
                (self.spawn)(Box::new(move || observer::thread(ThreadKind::Loader, || shared.work()))).ok()
            };
            threads.extend((0..self.count).map_while(thread));
        }
        !threads.is_empty()
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
        if !self.has_threads() {
            return task.run();
        }
        self.shared.queue.lock().short.push_back(task);
        self.shared.wake.notify_one();
    }

    fn run_long(&self, task: Task) {
        if !self.has_threads() {
            return task.run();
        }
        self.shared.queue.lock().long.push_back(task);
        self.shared.wake.notify_one();
    }

    fn take_given_up(&self) -> Vec<Task> {
        self.shared.queue.lock().take_given_up()
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
                while queue.len() == 0 && !self.stop.load(Ordering::Acquire) {
                    self.wake.wait(&mut queue);
                }
                queue.pop()
            };
            let Some(task) = task else { return };
            task.run();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Runs some tasks in a pool that should have four threads; says how many it has, and how many tasks were done here.
    fn threads_and_tasks_done_here(spawn: Spawn) -> (usize, usize) {
        let pool = LoadPool::with(4, spawn);
        let (done, here) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let me = std::thread::current().id();
        for _ in 0..10 {
            let (done, here) = (done.clone(), here.clone());
            pool.run(Task::new(&Arc::default(), move || {
                done.fetch_add(1, Ordering::AcqRel);
                here.fetch_add(usize::from(std::thread::current().id() == me), Ordering::AcqRel);
            }));
        }
        let threads = pool.threads.lock().len();
        pool.stop();
        assert_eq!(done.load(Ordering::Acquire), 10);
        (threads, here.load(Ordering::Acquire))
    }

    #[test]
    fn merges_have_their_turn_after_some_short_tasks_and_others_do_not_wait_for_all_of_them() {
        // Nothing runs before there are all.
        let mut queue = Queue::default();
        let order = Arc::new(Mutex::new(String::new()));
        let task = |name: char| -> Task {
            let order = order.clone();
            Task::new(&Arc::default(), move || order.lock().push(name))
        };
        queue.long.extend([task('L'), task('L'), task('L')]);
        queue.short.extend((0..12).map(|_| task('s')));
        while let Some(task) = queue.pop() {
            task.run();
        }
        assert_eq!(*order.lock(), "ssssssssLssssLL");
    }

    #[test]
    fn a_load_that_is_given_up_takes_its_tasks_out_and_leaves_those_of_others() {
        let (kept, given_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut queue = Queue::default();
        for of in [&kept, &given_up, &kept, &given_up] {
            queue.short.push_back(Task::new(of, || {}));
            queue.long.push_back(Task::new(of, || {}));
        }
        assert!(queue.take_given_up().is_empty());
        given_up.store(true, Ordering::Release);
        assert_eq!((queue.take_given_up().len(), queue.len()), (4, 4));
        assert!(queue.take_given_up().is_empty());
    }

    fn too_many() -> io::Error {
        io::Error::from_raw_os_error(11)
    }

    #[test]
    fn tasks_are_done_by_as_many_threads_as_the_system_gives() {
        static LEFT: AtomicUsize = AtomicUsize::new(2);
        assert_eq!(threads_and_tasks_done_here(|work| std::thread::Builder::new().spawn(work)), (4, 0));
        let two =
            |work| match LEFT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)) {
                Ok(_) => std::thread::Builder::new().spawn(work),
                Err(_) => Err(too_many()),
            };
        assert_eq!(threads_and_tasks_done_here(two), (2, 0));
    }

    #[test]
    fn without_threads_tasks_are_done_by_who_brings_them() {
        assert_eq!(threads_and_tasks_done_here(|_| Err(too_many())), (0, 10));
    }
}
