//! Who does the work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A piece of work of a load, or of an index build.
pub struct Task {
    work: Box<dyn FnOnce() + Send>,
    given_up: Arc<AtomicBool>,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("given_up", &self.is_given_up()).finish_non_exhaustive()
    }
}

impl Task {
    /// `given_up` is raised when the load is given up: `work` ends at once from then on.
    pub fn new(given_up: &Arc<AtomicBool>, work: impl FnOnce() + Send + 'static) -> Task {
        Task { work: Box::new(work), given_up: given_up.clone() }
    }

    /// Does it.
    pub fn run(self) {
        (self.work)();
    }

    /// Whether its load is given up: nothing of it is left to be done but to say so.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }
}

/// Where tasks run. Threads belong to the runtime (`pandodb`); without any, the caller does the work.
pub trait Workers: Send + Sync {
    /// Runs the task, now or soon, on some thread. Must not wait for another task.
    fn run(&self, task: Task);
    /// The same of a task that takes seconds: short ones of other loads need not wait for all of them.
    fn run_long(&self, task: Task) {
        self.run(task);
    }
    /// Takes out the tasks that nobody has begun and whose loads are given up.
    fn take_given_up(&self) -> Vec<Task> {
        Vec::new()
    }
    /// Ends the tasks that nobody has begun and whose loads are given up, so that who gives one up waits for nothing but what is
    /// running, however many tasks of others are in the way.
    fn end_given_up(&self) {
        self.take_given_up().into_iter().for_each(Task::run);
    }
    /// How many tasks run at once.
    fn parallelism(&self) -> usize;
}

/// Runs tasks where they are given: deterministic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Workers for Inline {
    fn run(&self, task: Task) {
        task.run();
    }

    fn parallelism(&self) -> usize {
        1
    }
}
