//! A short run of the simulation: it finds nothing, meets trouble of every kind, and repeats exactly.

use pando_sim::{run, Counts, Trace, STEPS};

#[test]
fn short_runs_find_nothing_and_meet_all_kinds_of_trouble() {
    let mut all = Counts::default();
    for seed in 1..=24 {
        let (counts, result) = run(seed, STEPS, Trace::off());
        if let Err(failure) = result {
            panic!("cargo run --release -p pando-sim -- seed {seed}\n{}", failure.what);
        }
        all += counts;
    }
    println!("{all}");
    for (name, count) in all.all() {
        // Rare ones are for long runs.
        let is_rare = ["compactions", "failed_starts", "refused", "in_doubt"].contains(&name);
        assert!(count > 0 || is_rare, "no {name} in the whole run:\n{all}");
    }
    assert!(all.crashes > 1000, "{all}");
}

#[test]
fn a_seed_repeats_exactly() {
    for seed in [3, 7] {
        let (first, second) = (run(seed, 60, Trace::off()).0, run(seed, 60, Trace::off()).0);
        assert_eq!(first, second, "seed {seed}");
    }
}
