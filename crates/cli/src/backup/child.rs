//! The programs that a backup runs, which end with it.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{getpid, getppid, set_parent_process_death_signal, Signal};

/// A command whose process is killed when this one is gone, however that ends: `mariadb-backup` would go on for hours, with a connection, and
/// write into a directory that nobody waits for.
///
/// The system takes the end of the *thread* that spawns it for that of the process. So only the main thread may.
pub fn that_ends_with_us(program: &Path) -> Command {
    let mut command = Command::new(program);
    let us = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have gone before that.
        match getppid() == Some(us) {
            true => Ok(()),
            false => Err(rustix::io::Errno::SRCH.into()),
        }
    };
    // SAFETY: between fork and exec it makes two system calls; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) };
    command
}
