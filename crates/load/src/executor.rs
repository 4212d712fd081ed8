//! Who does the work.

/// A piece of work.
pub type Task = Box<dyn FnOnce() + Send>;

/// Where tasks run. Threads belong to the runtime (`pandodb`); without any, the caller does the work.
pub trait Workers: Send + Sync {
    /// Runs the task, now or soon, on some thread. Must not wait for another task.
    fn run(&self, task: Task);
    /// The same of a task that takes seconds: short ones of other loads need not wait for all of them.
    fn run_long(&self, task: Task) {
        self.run(task);
    }
    /// How many tasks run at once.
    fn parallelism(&self) -> usize;
}

/// Runs tasks where they are given: deterministic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Workers for Inline {
    fn run(&self, task: Task) {
        task();
    }

    fn parallelism(&self) -> usize {
        1
    }
}
