//! Rounds: mutants of a target's valid bytes, one after the other, and what went wrong.

use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::memory::most_during;
use crate::mutate::mutant;
use crate::Target;

/// Memory that a decoder may take for few bytes: formats allow so much for a segment or two of equal values.
const MEMORY_BYTES_MAX: usize = 128 << 20;
/// And for each byte that it was given: what compression can make of it.
const MEMORY_RATIO_MAX: usize = 1024;
/// A decoder that is not through with some bytes after this time never will be: all take far less than a second.
const STUCK: Duration = Duration::from_secs(120);

/// Tries to find shorter bytes: a whole file takes long.
const SHORTER_TRIES_MAX: u32 = 3000;

/// What a target did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Mutants.
    pub rounds: u64,
    /// Of these, those that were valid nevertheless.
    pub accepted: u64,
    /// Most memory that one took.
    pub memory_bytes: usize,
}

/// A bug.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The target.
    pub name: &'static str,
    /// What the decoder did.
    pub what: String,
    /// With these bytes.
    pub bytes: Vec<u8>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, with {} bytes", self.name, self.what, self.bytes.len())
    }
}

thread_local! {
    static PANIC: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
    static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Panics of decoders that are tried are told by the finding, not by everyone's hook.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                PANIC.set(Some(info.to_string()));
            } else {
                before(info);
            }
        }));
    });
}

/// Gives bytes to a target.
///
/// # Errors
/// It panicked, or took too much memory.
pub fn try_bytes(target: &Target, bytes: &[u8]) -> Result<(bool, usize), Finding> {
    keep_panics();
    QUIET.set(true);
    let (accepted, memory) = most_during(|| catch_unwind(AssertUnwindSafe(|| (target.accepts)(bytes))));
    QUIET.set(false);
    let finding = |what: String| Finding { name: target.name, what, bytes: bytes.to_vec() };
    let accepted =
        accepted.map_err(|_| finding(PANIC.take().unwrap_or_else(|| "a panic without a word".into())))?;
    if memory > MEMORY_BYTES_MAX + MEMORY_RATIO_MAX * bytes.len() {
        return Err(finding(format!("took {memory} bytes of memory")));
    }
    Ok((accepted, memory))
}

/// Tries a target with all its valid bytes, and then with mutants of them. `about` is told of each mutant before it is tried.
///
/// # Errors
/// The first bug that shows; valid bytes that are refused are one, too.
pub fn try_target(
    target: &Target,
    seed: u64,
    rounds: u64,
    about: &mut dyn FnMut(&[u8]),
) -> Result<Report, Finding> {
    let watch = Watch::begin(target.name);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no valid bytes", target.name);
    let mut report = Report { rounds, ..Report::default() };
    for bytes in &seeds {
        let (accepted, memory) = try_bytes(target, bytes)?;
        report.memory_bytes = report.memory_bytes.max(memory);
        if !accepted {
            let what = "refused what is valid".to_owned();
            return Err(Finding { name: target.name, what, bytes: bytes.clone() });
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..rounds {
        let bytes = mutant(&seeds, &mut rng);
        watch.next(&bytes);
        about(&bytes);
        let (accepted, memory) = try_bytes(target, &bytes)?;
        report.accepted += u64::from(accepted);
        report.memory_bytes = report.memory_bytes.max(memory);
    }
    Ok(report)
}

/// Shorter bytes that still show a finding of the target, by leaving out parts of them.
pub fn shortened(target: &Target, finding: Finding) -> Finding {
    let mut best = finding;
    let (mut step, mut tries) = (best.bytes.len() / 2, 0);
    while step > 0 {
        let mut at = 0;
        while at < best.bytes.len() && tries < SHORTER_TRIES_MAX {
            tries += 1;
            let mut fewer = best.bytes.clone();
            fewer.drain(at..(at + step).min(fewer.len()));
            match try_bytes(target, &fewer) {
                Err(found) => best = found,
                Ok(_) => at += step,
            }
        }
        step /= 2;
    }
    best
}

/// Ends the process, with the bytes on standard error, if a decoder does not come to an end.
struct Watch {
    /// The round and its bytes; the round is `u64::MAX` at the end.
    now: Arc<(AtomicU64, Mutex<Vec<u8>>)>,
    thread: std::thread::Thread,
}

impl Watch {
    fn begin(name: &'static str) -> Watch {
        let now: Arc<(AtomicU64, Mutex<Vec<u8>>)> = Arc::default();
        let seen = now.clone();
        let watcher = move || loop {
            let round = seen.0.load(Ordering::SeqCst);
            std::thread::park_timeout(STUCK);
            match seen.0.load(Ordering::SeqCst) {
                u64::MAX => return,
                same if same == round => {
                    let bytes = seen.1.lock().unwrap_or_else(PoisonError::into_inner);
                    eprintln!("{name} is not through after {STUCK:?} with {:02x?}", *bytes);
                    std::process::abort();
                }
                _ => {}
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(watcher);
        let thread = thread.expect("a thread").thread().clone();
        Watch { now, thread }
    }

    fn next(&self, bytes: &[u8]) {
        let mut last = self.now.1.lock().unwrap_or_else(PoisonError::into_inner);
        last.clear();
        last.extend_from_slice(bytes);
        self.now.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.now.0.store(u64::MAX, Ordering::SeqCst);
        self.thread.unpark();
    }
}
