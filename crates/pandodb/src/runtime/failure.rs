//! What went wrong last with some background work, until it succeeds: told to the operator once.

use std::sync::atomic::{AtomicBool, Ordering};

use pando_base::locks::Mutex;
use pando_base::Error;

/// The newest failure of one kind of work on one object.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    newest: Mutex<Option<Error>>,
    is_noted: AtomicBool,
}

impl Failure {
    /// The work has failed. True if this is news: a retry that fails alike is not.
    pub(crate) fn note(&self, error: &Error) -> bool {
        let before = self.newest.lock().replace(error.clone());
        self.is_noted.store(true, Ordering::Release);
        before.is_none_or(|before| before.to_string() != error.to_string())
    }

    /// The work has been done.
    pub(crate) fn clear(&self) {
        *self.newest.lock() = None;
        self.is_noted.store(false, Ordering::Release);
    }

    /// Whether there is one, at the cost of a load.
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Acquire)
    }

    /// The failure since which nothing was done.
    pub(crate) fn get(&self) -> Option<Error> {
        self.newest.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_same_failure_is_news_again_only_after_a_success() {
        let full = Error::DiskFull { op: "write", path: Path::new("/t").into(), offset: 0 };
        let gone = Error::NotFound { what: "/t".into() };
        let failure = Failure::default();
        assert!(failure.note(&full) && !failure.note(&full) && failure.note(&gone));
        assert!(matches!(failure.get(), Some(Error::NotFound { .. })));
        failure.clear();
        assert!(failure.get().is_none() && failure.note(&gone));
    }
}
