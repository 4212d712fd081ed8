//! What a panic means, and to whom.
//!
//! A panic is a bug. What it was in the middle of is not trusted any more; the question is how much that is:
//!
//! 1. Where a statement only reads, or prepares a change, what it was in the middle of is its own. Its entry point **contains** the
//!    panic ([`contain`]): the statement fails, its transaction can only be rolled back, the process lives.
//! 2. What threads share is behind the locks of [`crate::locks`]. A panic while one is held for writing leaves it half changed, and
//!    these locks do not remember that. So the process stops when such a lock is let go by a panic ([`stop_if_torn`]).
//! 3. Everywhere else (commits, files, background work, recovery) the panic is not contained, and the process stops at once.
//!
//! After 2 and 3 recovery from the log is the safe way on. Who installs a panic hook asks [`is_contained`] which of them it is.
//!
//! All this holds where [`stop_when_torn`] was called, in the plugin. In tests panics are what they always are.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Told before the process stops.
static TORN: OnceLock<fn()> = OnceLock::new();

/// While it lives, panics of this thread are, or are not, contained; afterwards as before.
#[must_use = "it holds while it lives"]
#[derive(Debug)]
pub struct Scope {
    before: bool,
}

impl Scope {
    fn new(is_contained: bool) -> Scope {
        Scope { before: IS_CONTAINED.replace(is_contained) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        IS_CONTAINED.set(self.before);
    }
}

/// Whether somebody up the stack of this thread goes on after a panic.
pub fn is_contained() -> bool {
    IS_CONTAINED.get()
}

/// Runs `body`; a panic in it is an answer. For what changes nothing that outlives the answer, but behind locks.
pub fn contain<T>(body: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    let _scope = Scope::new(true);
    catch_unwind(AssertUnwindSafe(body))
}

/// Until the answer is dropped, panics of this thread are not contained, whoever has asked for it: what is changed now, in several
/// steps, is not behind one lock.
#[inline]
pub fn uncontained() -> Scope {
    Scope::new(false)
}

/// Runs `body`, a part of the work of a thread for which [`is_contained`] was so, and which panics as this one does.
pub fn on_behalf<T>(is_contained: bool, body: impl FnOnce() -> T) -> T {
    let _scope = Scope::new(is_contained);
    body()
}

/// From now on the process stops when a panic lets go of a lock that was held for writing, after a call of `torn`.
pub fn stop_when_torn(torn: fn()) {
    let _ = TORN.set(torn);
}

/// For who has held a lock, or is otherwise in the middle of what others see: called when it is let go. `was_panicking`: what
/// [`std::thread::panicking`] said when it began, which destructors may do while a panic goes up.
#[inline]
pub fn stop_if_torn(was_panicking: bool) {
    if !was_panicking && std::thread::panicking() {
        stop();
    }
}

#[cold]
fn stop() {
    if let Some(torn) = TORN.get() {
        torn();
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_by_the_innermost_who_says_how() {
        assert!(!is_contained());
        let result = contain(|| {
            assert!(is_contained());
            {
                let _scope = uncontained();
                assert!(!is_contained());
            }
            on_behalf(false, || assert!(!is_contained()));
            assert!(contain(|| panic!("within")).is_err() && is_contained());
            panic!("a bug")
        });
        let Err(panic) = result else { unreachable!() };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        assert!(!is_contained());
    }
}
