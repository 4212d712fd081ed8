//! Work of one statement on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use pando_base::observer::{self, ThreadKind};
use pando_base::{panics, Accesses};

/// Runs `work` on this thread and on `threads - 1` others, or on as many as the system gives, and returns when all have
/// ended. Panics as they do, which is contained if it would be here. What they ask of the block cache counts as this thread's.
pub fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let is_contained = panics::is_contained();
    std::thread::scope(|scope| {
        let counted = || {
            observer::thread(ThreadKind::Helper, || {
                (panics::on_behalf(is_contained, &work), Accesses::of_thread())
            })
        };
        let other = |_| std::thread::Builder::new().spawn_scoped(scope, counted).ok();
        let others: Vec<_> = (1..threads).map_while(other).collect();
        let mut results = vec![work()];
        for other in others {
            match other.join() {
                Ok((result, accesses)) => {
                    accesses.count();
                    results.push(result);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// Runs `work` on each of these, on so many threads.
pub(crate) fn on_each<T: Sync, R: Send>(threads: usize, all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || -> Vec<R> {
        std::iter::from_fn(|| all.get(next.fetch_add(1, Ordering::Relaxed))).map(&work).collect()
    };
    on_threads(threads.min(all.len()).max(1), some).into_iter().flatten().collect()
}

/// The threads of one query: as many as there are processors; but all queries of the process together have twice as many, and beyond that
/// each has the one that asks. So what queries hold for each thread, and the threads themselves, do not grow with the product of both.
#[derive(Debug)]
pub struct QueryThreads {
    count: usize,
    /// Those of all queries that run.
    all: &'static AtomicUsize,
}

static OF_QUERIES: AtomicUsize = AtomicUsize::new(0);

impl QueryThreads {
    /// Until it is dropped.
    pub fn take() -> QueryThreads {
        QueryThreads::of(&OF_QUERIES, processors())
    }

    fn of(all: &'static AtomicUsize, processors: usize) -> QueryThreads {
        let count_with = |running: usize| (2 * processors).saturating_sub(running).clamp(1, processors);
        let more = |running: usize| Some(running + count_with(running));
        let running = all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).unwrap_or_default();
        QueryThreads { count: count_with(running), all }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_another_thread_is_contained_as_this_threads_would_be() {
        let mine = std::thread::current().id();
        let work = || {
            assert!(panics::is_contained());
            // The others may be there late.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(std::thread::current().id() == mine, "a bug elsewhere");
        };
        let Err(panic) = panics::contain(|| on_threads(2, work)) else { unreachable!() };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug elsewhere"));
        assert!(!panics::is_contained());
    }

    #[test]
    fn queries_share_their_threads() {
        static ALL: AtomicUsize = AtomicUsize::new(0);
        let one = QueryThreads::of(&ALL, 4);
        let two = QueryThreads::of(&ALL, 4);
        let three = QueryThreads::of(&ALL, 4);
        assert_eq!([&one, &two, &three].map(QueryThreads::count), [4, 4, 1]);
        drop(one);
        let four = QueryThreads::of(&ALL, 4);
        assert_eq!(four.count(), 3, "one of what has become free is the third's");
        drop((two, three, four));
        assert_eq!((ALL.load(Ordering::Relaxed), QueryThreads::of(&ALL, 1).count()), (0, 1));
        assert_eq!(ALL.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn each_is_worked_on_once() {
        let all: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 16] {
            let mut results = on_each(threads, &all, |one| one * 2);
            results.sort_unstable();
            assert_eq!(results, (0..1000).map(|one| one * 2).collect::<Vec<_>>());
        }
        assert_eq!(on_each(4, &[], |one: &usize| *one), Vec::<usize>::new());
    }

    #[test]
    fn what_other_threads_ask_of_the_cache_counts_as_the_threads_that_waits_for_them() {
        let before = Accesses::of_thread();
        let results =
            on_threads(3, || Accesses { blocks: 5, reads: 2, blocks_ahead: 1, read_time: 7 }.count());
        let times = results.len() as u64;
        let all = Accesses { blocks: 5 * times, reads: 2 * times, blocks_ahead: times, read_time: 7 * times };
        assert_eq!(Accesses::of_thread() - before, all);
    }
}
