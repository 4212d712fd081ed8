//! Locks whose contents are whole: those of `parking_lot`, but a panic that lets go of one that was held for writing stops
//! the process, because the next to come would find what it protects half changed ([`crate::panics`]).
//!
//! A lock taken by a destructor while a panic goes up is let go as ever. Locks held for reading protect nothing that could be torn.

#![expect(clippy::disallowed_types, reason = "this is what is to be used")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use parking_lot as inner;

pub use inner::{RwLockReadGuard, WaitTimeoutResult};

use crate::panics::stop_if_torn;

/// Lives as long as a lock is held, and ends before it is let go.
struct Watch {
    was_panicking: bool,
}

impl Watch {
    #[inline]
    fn new() -> Watch {
        Watch { was_panicking: std::thread::panicking() }
    }
}

impl Drop for Watch {
    #[inline]
    fn drop(&mut self) {
        stop_if_torn(self.was_panicking);
    }
}

/// See the head of this file.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(inner::Mutex<T>);

/// A held [`Mutex`].
#[must_use = "the lock is let go when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    // Dropped first.
    watch: Watch,
    guard: inner::MutexGuard<'a, T>,
}

/// A part of what a held [`Mutex`] protects.
#[must_use = "the lock is let go when this is dropped"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    _watch: Watch,
    guard: inner::MappedMutexGuard<'a, T>,
}

/// See the head of this file.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(inner::RwLock<T>);

/// An [`RwLock`] held for writing.
#[must_use = "the lock is let go when this is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    _watch: Watch,
    guard: inner::RwLockWriteGuard<'a, T>,
}

/// Where holders of a [`Mutex`] wait for each other.
#[derive(Debug, Default)]
pub struct Condvar(inner::Condvar);

impl<T> Mutex<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(inner::Mutex::new(value))
    }

    /// What it protects.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody else holds it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { watch: Watch::new(), guard: self.0.lock() }
    }

    /// `None`: somebody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| MutexGuard { watch: Watch::new(), guard })
    }

    /// What it protects: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Runs `body` while the lock is not held.
    pub fn unlocked<U>(held: &mut Self, body: impl FnOnce() -> U) -> U {
        inner::MutexGuard::unlocked(&mut held.guard, body)
    }

    /// Goes on with a part of what the lock protects.
    pub fn map<U: ?Sized>(held: Self, part: impl FnOnce(&mut T) -> &mut U) -> MappedMutexGuard<'a, U> {
        let MutexGuard { watch, guard } = held;
        MappedMutexGuard { _watch: watch, guard: inner::MutexGuard::map(guard, part) }
    }
}

impl<T> RwLock<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(inner::RwLock::new(value))
    }

    /// What it protects.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read()
    }

    /// Waits until nobody else holds it.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { _watch: Watch::new(), guard: self.0.write() }
    }

    /// `None`: somebody holds it.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().map(|guard| RwLockWriteGuard { _watch: Watch::new(), guard })
    }

    /// What it protects: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl Condvar {
    /// One that nobody waits at.
    pub const fn new() -> Condvar {
        Condvar(inner::Condvar::new())
    }

    /// Lets go of the lock until it is woken.
    pub fn wait<T: ?Sized>(&self, held: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut held.guard);
    }

    /// As [`Condvar::wait`], for so long at most.
    pub fn wait_for<T: ?Sized>(&self, held: &mut MutexGuard<'_, T>, patience: Duration) -> WaitTimeoutResult {
        self.0.wait_for(&mut held.guard, patience)
    }

    /// As [`Condvar::wait`], until then at most.
    pub fn wait_until<T: ?Sized>(
        &self,
        held: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.0.wait_until(&mut held.guard, deadline)
    }

    /// Wakes one. False: nobody waits.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Wakes all; says how many.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

macro_rules! deref {
    ($($guard:ident)*) => {
        $(
            impl<T: ?Sized> Deref for $guard<'_, T> {
                type Target = T;

                #[inline]
                fn deref(&self) -> &T {
                    &self.guard
                }
            }

            impl<T: ?Sized> DerefMut for $guard<'_, T> {
                #[inline]
                fn deref_mut(&mut self) -> &mut T {
                    &mut self.guard
                }
            }

            impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.guard.fmt(f)
                }
            }
        )*
    };
}

deref!(MutexGuard MappedMutexGuard RwLockWriteGuard);

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics::{contain, stop_when_torn};

    /// Told to the test's own process, of which another is run.
    const CASE: &str = "PANDO_TEST_TORN_LOCK";

    /// Runs this test again, alone and in a process of its own, in which `case` is set.
    fn outcome_of(case: &str) -> (bool, String) {
        let me = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(me);
        child.args([
            "--exact",
            "locks::tests::a_lock_that_a_panic_lets_go_of_stops_the_process",
            "--nocapture",
        ]);
        let output = child.env(CASE, case).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    struct TakesIt<'a>(&'a Mutex<u32>);

    impl Drop for TakesIt<'_> {
        fn drop(&mut self) {
            *self.0.lock() += 1;
        }
    }

    fn run_case(case: &str) {
        stop_when_torn(|| eprintln!("torn"));
        let (mutex, rw) = (Mutex::new(1), RwLock::new(1));
        let result = contain(|| match case {
            "mutex" => {
                let _held = mutex.lock();
                panic!("a bug")
            }
            "mapped" => {
                let _held = MutexGuard::map(mutex.lock(), |number| number);
                panic!("a bug")
            }
            "write" => {
                let _held = rw.write();
                panic!("a bug")
            }
            "read" => {
                let _held = rw.read();
                panic!("a bug")
            }
            _ => {
                let _takes = TakesIt(&mutex);
                drop(mutex.lock());
                panic!("a bug")
            }
        });
        assert!(result.is_err());
        assert_eq!((*mutex.lock(), *rw.write()), if case == "destructor" { (2, 1) } else { (1, 1) });
    }

    #[test]
    fn a_lock_that_a_panic_lets_go_of_stops_the_process() {
        if let Ok(case) = std::env::var(CASE) {
            return run_case(&case);
        }
        for case in ["mutex", "mapped", "write"] {
            let (lives, errors) = outcome_of(case);
            assert!(!lives && errors.contains("torn"), "{case}: {errors}");
        }
        for case in ["read", "destructor"] {
            let (lives, errors) = outcome_of(case);
            assert!(lives, "{case}: {errors}");
        }
    }
}
