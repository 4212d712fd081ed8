//! `pando-sim`: runs seeds of the simulation. See docs/simulation.md.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

use clap::{Parser, Subcommand};
use pando_sim::{run, Counts, Failure, Trace, STEPS};

#[derive(Parser)]
#[command(name = "pando-sim", about = "Deterministic simulation of a Pando database")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs many seeds; says what failed, and what was done in all
    Run {
        /// How many seeds
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// The first of them
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// Threads, each with a seed of its own
        #[arg(long, default_value_t = 1)]
        threads: usize,
        /// Steps of each run
        #[arg(long, default_value_t = STEPS)]
        steps: u32,
        /// Goes on after so many failures
        #[arg(long, default_value_t = 0)]
        failures: u64,
    },
    /// Runs one seed and, if it fails, shows what happened before
    Seed {
        /// The seed
        seed: u64,
        /// Steps of the run
        #[arg(long, default_value_t = STEPS)]
        steps: u32,
        /// Lines shown of what happened
        #[arg(long, default_value_t = 60)]
        lines: usize,
        /// A planted bug to switch on (builds with the feature `planted-bugs`)
        #[arg(long)]
        bug: Option<String>,
    },
    /// Switches on each planted bug in turn and looks for it (builds with the feature `planted-bugs`)
    Bugs {
        /// Only this one
        #[arg(long)]
        bug: Option<String>,
        /// Seeds tried for each, in place of its own number
        #[arg(long)]
        seeds: Option<u64>,
    },
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Run { seeds, first, threads, steps, failures } => {
            run_many(first..first.saturating_add(seeds), threads, steps, failures)
        }
        Command::Seed { seed, steps, lines, bug } => run_one(seed, steps, lines, bug.as_deref()),
        Command::Bugs { bug, seeds } => find_bugs(bug.as_deref(), seeds),
    }
}

fn run_many(seeds: std::ops::Range<u64>, threads: usize, steps: u32, failures_max: u64) -> ExitCode {
    let (next, failures, stop) = (AtomicU64::new(seeds.start), AtomicU64::new(0), AtomicBool::new(false));
    let all = Mutex::new((Counts::default(), 0u64));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end || stop.load(Ordering::Relaxed) {
                    return;
                }
                let (counts, result) = run(seed, steps, Trace::off());
                {
                    let mut all = all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    all.0 += counts;
                    all.1 += 1;
                    if all.1 % 100 == 0 {
                        println!("{} seeds, {} crashes", all.1, all.0.crashes);
                        let _ = std::io::stdout().flush();
                    }
                }
                if let Err(failure) = result {
                    report(&failure, steps);
                    if failures.fetch_add(1, Ordering::Relaxed) >= failures_max {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (counts, seeds_run) = *all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let failures = failures.into_inner();
    print!("{counts}");
    println!("{seeds_run} seeds, {} crashes, {failures} failures", counts.crashes);
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn report(failure: &Failure, steps: u32) {
    println!("seed {} FAILED: {}", failure.seed, failure.what);
    let steps = if steps == STEPS { String::new() } else { format!(" --steps {steps}") };
    println!("again, with what happened before: pando-sim seed {}{steps}", failure.seed);
    let _ = std::io::stdout().flush();
}

fn run_one(seed: u64, steps: u32, lines: usize, bug: Option<&str>) -> ExitCode {
    if let Some(bug) = bug {
        if !planted::plant(bug) {
            return ExitCode::FAILURE;
        }
    }
    let (counts, result) = run(seed, steps, Trace::on());
    print!("{counts}");
    match result {
        Ok(()) => {
            println!("seed {seed}: nothing wrong");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let skipped = failure.trace.len().saturating_sub(lines);
            failure.trace.iter().skip(skipped).for_each(|line| println!("{line}"));
            println!("seed {seed} FAILED: {}", failure.what);
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "planted-bugs")]
fn find_bugs(only: Option<&str>, seeds: Option<u64>) -> ExitCode {
    let hunts = pando_sim::bugs::HUNTS.iter();
    let hunts: Vec<_> = hunts.filter(|hunt| only.is_none_or(|name| name == hunt.bug.name())).collect();
    if hunts.is_empty() {
        eprintln!("no such bug; there are: {:?}", pando_sim::bugs::HUNTS.map(|hunt| hunt.bug.name()));
        return ExitCode::FAILURE;
    }
    let mut missed = 0;
    for hunt in hunts {
        let most = seeds.unwrap_or(hunt.seeds);
        match pando_sim::bugs::hunt(hunt.bug, most) {
            Some(found) => {
                let what: String = found.what.lines().next().unwrap_or_default().chars().take(140).collect();
                println!("{:<26} found by seed {:>5} of {most:>5}: {what}", hunt.bug.name(), found.seed);
            }
            None => {
                missed += 1;
                println!("{:<26} NOT FOUND in {most} seeds", hunt.bug.name());
            }
        }
        let _ = std::io::stdout().flush();
    }
    if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(not(feature = "planted-bugs"))]
fn find_bugs(_only: Option<&str>, _seeds: Option<u64>) -> ExitCode {
    eprintln!("this build has no planted bugs: cargo run -p pando-sim --features planted-bugs -- bugs");
    ExitCode::FAILURE
}

#[cfg(feature = "planted-bugs")]
mod planted {
    /// Switches a bug on for this thread; false, with words, if there is none of that name.
    pub(crate) fn plant(name: &str) -> bool {
        let bug = pando_base::planted::Bug::ALL.iter().find(|bug| bug.name() == name);
        match bug {
            Some(bug) => pando_base::planted::plant(Some(*bug)),
            None => eprintln!("no planted bug {name}"),
        }
        bug.is_some()
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod planted {
    pub(crate) fn plant(_name: &str) -> bool {
        eprintln!("this build has no planted bugs");
        false
    }
}
