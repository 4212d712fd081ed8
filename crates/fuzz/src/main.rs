//! `pando-fuzz`: tries decoders with mutants, for as many rounds as one wants.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use pando_fuzz::rounds::{shortened, try_bytes, try_target};
use pando_fuzz::{memory, targets, Target};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Gives decoders of files bytes that nobody wrote: mutants of valid ones
#[derive(Parser)]
#[command(name = "pando-fuzz", version)]
struct Arguments {
    /// Which targets; all if none is named
    targets: Vec<String>,
    /// Print the names of all targets and what they read
    #[arg(long)]
    list: bool,
    /// Mutants for each target
    #[arg(long, default_value_t = 100_000)]
    rounds: u64,
    /// Which ones: the same seed gives the same mutants
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Try the bytes of this file only
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write each mutant to this file before it is tried: for a bug that ends the process
    #[arg(long, value_name = "FILE")]
    last: Option<PathBuf>,
    /// Write the valid bytes of each target into a directory DIR/TARGET, for cargo fuzz to begin with
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let all = targets();
    if let Some(name) = arguments.targets.iter().find(|name| all.iter().all(|target| target.name != **name)) {
        eprintln!("there is no target {name}; --list names them");
        return ExitCode::from(2);
    }
    let is_wanted =
        |target: &&Target| arguments.targets.is_empty() || arguments.targets.iter().any(|n| n == target.name);
    let mut failed = false;
    for target in all.iter().filter(is_wanted) {
        let done = match () {
            () if arguments.list => {
                println!("{:<18} {}", target.name, target.reads);
                Ok(())
            }
            () if arguments.corpus.is_some() => write_corpus(target, &arguments),
            () => try_one(target, &arguments),
        };
        if let Err(text) = done {
            eprintln!("{text}");
            failed = true;
        }
    }
    ExitCode::from(u8::from(failed))
}

fn try_one(target: &Target, arguments: &Arguments) -> Result<(), String> {
    let tried = match &arguments.input {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            try_bytes(target, &bytes).map(|(accepted, memory)| {
                println!(
                    "{}: {}, {memory} bytes of memory",
                    target.name,
                    if accepted { "valid" } else { "refused" }
                );
            })
        }
        None => try_target(target, arguments.seed, arguments.rounds, &mut |bytes| keep(arguments, bytes))
            .map(|report| {
                println!(
                    "{:<18} {:>9} rounds, {:>8} valid, {:>6} KiB of memory at most",
                    target.name,
                    report.rounds,
                    report.accepted,
                    report.memory_bytes >> 10
                );
            }),
    };
    tried.map_err(|finding| {
        let finding = shortened(target, finding);
        let path = std::env::temp_dir().join(format!("pando-fuzz-{}", target.name));
        match std::fs::write(&path, &finding.bytes) {
            Ok(()) => format!("{finding}; they are in {}", path.display()),
            Err(error) => format!("{finding}: {:02x?}; {}: {error}", finding.bytes, path.display()),
        }
    })
}

fn keep(arguments: &Arguments, bytes: &[u8]) {
    if let Some(path) = &arguments.last {
        if let Err(error) = std::fs::write(path, bytes) {
            eprintln!("{}: {error}", path.display());
        }
    }
}

fn write_corpus(target: &Target, arguments: &Arguments) -> Result<(), String> {
    let Some(dir) = arguments.corpus.as_ref().map(|dir| dir.join(target.name)) else { return Ok(()) };
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&dir)?;
        for (number, bytes) in (target.seeds)().iter().enumerate() {
            std::fs::write(dir.join(format!("valid-{number:03}")), bytes)?;
        }
        Ok(())
    };
    write().map_err(|error| format!("{}: {error}", dir.display()))
}
