//! The mix: sessions that do the five transactions in their standard shares until time is up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::transactions::{Done, Terminal, Transaction, TRANSACTIONS};
use super::Options;
use crate::error::{Error, Result};
use crate::generate::Random;
use crate::measure::Histogram;
use crate::report::{units, Group, Unit};
use crate::run::{connect, Bench};

/// Of 100 transactions so many are of each kind, in the order of `TRANSACTIONS`.
const SHARES: [u64; 5] = [45, 43, 4, 4, 4];
const WAKE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Tally {
    times: [Histogram; 5],
    retries: u64,
}

/// Runs the mix and records its figures.
pub(super) fn run(bench: &mut Bench, options: &Options) -> Result<()> {
    let step = bench.step("standard mix", options.seconds * 1000);
    let stop = AtomicBool::new(false);
    let shared: &Bench = bench;
    let begin = Instant::now();
    let tallies: Result<Vec<Tally>> = thread::scope(|scope| {
        let sessions: Vec<_> = (0..options.clients)
            .map(|number| {
                let stop = &stop;
                scope.spawn(move || {
                    let tally = session(shared, options, number as u64, stop);
                    if tally.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    tally
                })
            })
            .collect();
        while begin.elapsed().as_secs() < options.seconds && !stop.load(Ordering::Relaxed) {
            thread::sleep(WAKE);
            step.at(begin.elapsed().as_millis() as u64);
        }
        stop.store(true, Ordering::Relaxed);
        sessions
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err(Error::Data("a session panicked".to_owned()))))
            .collect()
    });
    let (tallies, minutes) = (tallies?, begin.elapsed().as_secs_f64() / 60.0);
    let mut sum = Tally::default();
    for tally in &tallies {
        sum.retries += tally.retries;
        sum.times.iter_mut().zip(&tally.times).for_each(|(sum, one)| sum.merge(one));
    }
    step.end(&format!("{} new orders/min", units::grouped(sum.times[0].count as f64 / minutes)));
    record(bench, &sum, minutes);
    Ok(())
}

fn record(bench: &mut Bench, sum: &Tally, minutes: f64) {
    let report = &mut *bench.report;
    let all: u64 = sum.times.iter().map(|times| times.count).sum();
    report.add(Group::Throughput, "new orders", Unit::PerMinute, sum.times[0].count as f64 / minutes);
    report.add(Group::Throughput, "transactions", Unit::PerMinute, all as f64 / minutes);
    for (transaction, times) in TRANSACTIONS.iter().zip(&sum.times) {
        let name = transaction.name();
        report.add(Group::Latency, &format!("{name}, median"), Unit::Seconds, times.percentile(0.5));
        report.add(Group::Latency, &format!("{name}, 99 of 100"), Unit::Seconds, times.percentile(0.99));
        report.add(Group::Latency, &format!("{name}, longest"), Unit::Seconds, times.longest_seconds);
        report.add_timing(name, times);
    }
    if sum.retries > 0 {
        report
            .note(format!("{} of {all} transactions were tried again (deadlock or lock wait)", sum.retries));
    }
}

fn session(bench: &Bench, options: &Options, number: u64, stop: &AtomicBool) -> Result<Tally> {
    let connection = connect(bench.server, bench.engine, &bench.settings.database)?;
    let random = Random::of_block(bench.settings.seed, "session", number);
    let mut terminal = Terminal::new(connection, random, options.scale, number);
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        let (place, transaction) = choose(&mut terminal.random);
        let begin = Instant::now();
        // The same input again, as a user would.
        let input = terminal.random.clone();
        loop {
            terminal.random = input.clone();
            match terminal.run(transaction) {
                Ok(Done::Committed) => {
                    tally.times[place].add(begin.elapsed().as_secs_f64());
                    break;
                }
                Ok(Done::RolledBack) => break,
                Err(error) if error.is_retryable() => {
                    terminal.connection.query("ROLLBACK")?;
                    tally.retries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(tally)
}

fn choose(random: &mut Random) -> (usize, Transaction) {
    let mut ticket = random.below(SHARES.iter().sum());
    for (place, share) in SHARES.iter().enumerate() {
        if ticket < *share {
            return (place, TRANSACTIONS[place]);
        }
        ticket -= share;
    }
    (0, TRANSACTIONS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_those_of_the_standard() {
        assert_eq!(SHARES.iter().sum::<u64>(), 100);
        let mut random = Random::new(1);
        let mut counts = [0u32; 5];
        for _ in 0..100_000 {
            counts[choose(&mut random).0] += 1;
        }
        for (count, share) in counts.iter().zip(SHARES) {
            assert!(u64::from(*count).abs_diff(share * 1000) < 600, "{counts:?}");
        }
    }
}
