//! Fuzzing: every decoder of bytes from files, given bytes that no writer wrote.
//!
//! A [`Target`] is a decoder with its users behind it, and valid bytes to begin with. Each crate has its own in its module `fuzz`; here
//! they come together. What has to hold, whatever the bytes (I8): no panic, no endless loop, and no more memory than what the format
//! allows for so many bytes. Two things try them:
//!
//! - [`rounds`]: [mutants](mutate) of the valid bytes, from a seed, on stable Rust. `cargo test -p pando-fuzz` runs some thousands for each
//!   decoder, the program `pando-fuzz` as many as one wants.
//! - libFuzzer, which watches the coverage: `fuzz/` beside the crates has a target for `cargo fuzz` for each of them.
//!
//! Most blocks have checksums, which keep nearly all mutants out. Targets make them right again, so that what lies behind them is met.

pub mod memory;
pub mod mutate;
pub mod rounds;

pub use pando_base::fuzz::Target;

/// All of them, in the order of layers.
pub fn targets() -> Vec<Target> {
    [
        pando_storage::fuzz::targets(),
        pando_column::fuzz::targets(),
        pando_run::fuzz::targets(),
        pando_tree::fuzz::targets(),
        pando_wal::fuzz::targets(),
        pando_load::fuzz::targets(),
        pandodb::fuzz::targets(),
        pando_analytic::fuzz::targets(),
        pando_export::fuzz::targets(),
        pando_cli::fuzz::targets(),
    ]
    .concat()
}

/// Gives bytes to the target with this name: for `cargo fuzz`.
///
/// # Panics
/// There is none; or the decoder has a bug.
pub fn run(name: &str, bytes: &[u8]) {
    let target = targets().into_iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("there is no target {name}"));
    (target.accepts)(bytes);
}
