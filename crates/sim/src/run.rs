//! One seed is one run.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::counts::Counts;
use crate::trace::Trace;
use crate::world::{Check, World};

/// Steps of a run, if nothing else is asked for.
pub const STEPS: u32 = 120;

/// What a run found to be wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run's seed: with the commit, it reproduces the run.
    pub seed: u64,
    /// What is wrong, or the panic.
    pub what: String,
    /// The last lines of what happened, if the run kept them.
    pub trace: Vec<String>,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the text of a panic for the report, instead of printing it at once.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let backtrace = std::backtrace::Backtrace::capture();
            PANIC.set(Some(format!("panic: {info}\n{backtrace}")));
        }));
    });
}

/// The text of the last panic of this thread.
pub(crate) fn take_panic() -> String {
    PANIC.take().unwrap_or_default()
}

/// Simulates one machine for so many steps. The counts are those up to the failure, if there is one.
pub fn run(seed: u64, steps: u32, trace: Trace) -> (Counts, Result<(), Failure>) {
    keep_panics();
    let mut world = match World::new(seed, trace) {
        Ok(world) => world,
        Err(what) => return (Counts::default(), Err(Failure { seed, what, trace: Vec::new() })),
    };
    let result = panic::catch_unwind(AssertUnwindSafe(|| go(&mut world, steps)));
    let result = result.unwrap_or_else(|_| Err(take_panic()));
    let failed = result.map_err(|what| {
        world.trace.lines(&world.lines);
        let trace = world.trace.tail(usize::MAX).into_iter().map(str::to_owned).collect();
        Failure { seed, what, trace }
    });
    let counts = world.counts;
    if failed.is_err() {
        // After a panic what it holds is not to be trusted to end in peace.
        std::mem::forget(world);
    }
    (counts, failed)
}

fn go(world: &mut World, steps: u32) -> Check {
    for _ in 0..3 {
        world.ddl_step()?;
    }
    for _ in 0..steps {
        world.step()?;
    }
    world.restart()?;
    world.check_whole()?;
    world.check_space()?;
    for _ in 0..3 {
        world.rot()?;
    }
    world.clients.clear();
    world.count_work();
    Ok(())
}
