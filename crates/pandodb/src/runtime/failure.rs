//! What went wrong last with some background work, until it succeeds: told to the operator once, and of
//! work that now fails and now succeeds once a minute.

use std::sync::atomic::{AtomicBool, Ordering};

use pando_base::locks::Mutex;
use pando_base::Error;

/// The newest failure of one kind of work on one object.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    newest: Mutex<Newest>,
    is_noted: AtomicBool,
}

#[derive(Debug, Default)]
struct Newest {
    error: Option<Error>,
    /// What was told last, and when (microseconds).
    told: Option<(String, u64)>,
}

/// The same failure after a success is told again after this time.
const TOLD_AGAIN_MICROS: u64 = 60_000_000;

impl Failure {
    /// The work has failed at the time `now` (microseconds). True if this is news: a retry that fails
    /// alike is not. Nor is it after a success just now: of several jobs on one object one may fail
    /// again and again among others that succeed.
    pub(crate) fn note(&self, error: &Error, now: u64) -> bool {
        let mut newest = self.newest.lock();
        let text = error.to_string();
        let is_retry = newest.error.replace(error.clone()).is_some();
        self.is_noted.store(true, Ordering::Release);
        let is_told = newest.told.as_ref().is_some_and(|(told, at)| {
            *told == text && (is_retry || now.saturating_sub(*at) < TOLD_AGAIN_MICROS)
        });
        if !is_told {
            newest.told = Some((text, now));
        }
        !is_told
    }

    /// The work has been done.
    pub(crate) fn clear(&self) {
        self.newest.lock().error = None;
        self.is_noted.store(false, Ordering::Release);
    }

    /// Whether there is one, at the cost of a load.
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Acquire)
    }

    /// The failure since which nothing was done.
    pub(crate) fn get(&self) -> Option<Error> {
        self.newest.lock().error.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_same_failure_is_news_again_only_after_a_success_and_a_minute() {
        let full = Error::DiskFull { op: "write", path: Path::new("/t").into(), offset: 0 };
        let gone = Error::NotFound { what: "/t".into() };
        let failure = Failure::default();
        assert!(failure.note(&full, 0) && !failure.note(&full, 1) && failure.note(&gone, 2));
        assert!(!failure.note(&gone, 2 + TOLD_AGAIN_MICROS), "nothing has succeeded since");
        assert!(matches!(failure.get(), Some(Error::NotFound { .. })));
        failure.clear();
        assert!(failure.get().is_none() && !failure.note(&gone, 3), "among others that succeed");
        failure.clear();
        assert!(failure.note(&full, 4), "another one");
        failure.clear();
        assert!(failure.note(&full, 4 + TOLD_AGAIN_MICROS) && failure.get().is_some());
    }
}
