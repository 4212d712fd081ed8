//! The planted bugs, and within how many seeds each must be found.

use pando_base::planted::{plant, Bug};

use crate::run::{run, Failure, STEPS};
use crate::trace::Trace;

/// A bug and the number of seeds, from 1 on, within which it must be found.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// The bug.
    pub bug: Bug,
    /// How many seeds.
    pub seeds: u64,
}

/// All of them.
pub const HUNTS: [Hunt; Bug::ALL.len()] = {
    let mut hunts = [Hunt { bug: Bug::ALL[0], seeds: 200 }; Bug::ALL.len()];
    let mut n = 0;
    while n < hunts.len() {
        hunts[n].bug = Bug::ALL[n];
        n += 1;
    }
    hunts
};

/// Switches the bug on and runs seeds from 1 on until one fails that does not fail without it.
pub fn hunt(bug: Bug, seeds: u64) -> Option<Failure> {
    let fails = |seed, bug| {
        plant(bug);
        let failure = run(seed, STEPS, Trace::off()).1.err();
        plant(None);
        failure
    };
    (1..=seeds).find_map(|seed| fails(seed, Some(bug)).filter(|_| fails(seed, None).is_none()))
}
