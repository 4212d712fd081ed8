//! `pando-pages DIR`: writes the man pages and shell completions of `pando` and `pando-bench` into `DIR/man`,
//! `DIR/bash`, `DIR/zsh` and `DIR/fish`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::{generate_to, Shell};

fn main() -> ExitCode {
    let Some(out) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: pando-pages DIR");
        return ExitCode::from(2);
    };
    let tools = [pando_cli::Arguments::command(), pando_bench::cli::Arguments::command()];
    match tools.into_iter().try_for_each(|tool| write(tool, &out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pando-pages: {}: {error}", out.display());
            ExitCode::FAILURE
        }
    }
}

/// `help` as a subcommand has nothing to say that the pages do not.
fn write(tool: Command, out: &Path) -> io::Result<()> {
    let name = tool.get_name().to_owned();
    let mut tool = tool.disable_help_subcommand(true);
    for (directory, shell) in [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)] {
        let directory = out.join(directory);
        std::fs::create_dir_all(&directory)?;
        generate_to(shell, &mut tool, &name, directory)?;
    }
    let pages = out.join("man");
    std::fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(tool, pages)
}
