//! Nothing stays behind: directories and processes of ours that are to be gone when this program is, also when a
//! signal ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::server::process::is_running;

#[derive(Default)]
struct Ours {
    directories: Vec<PathBuf>,
    processes: Vec<u32>,
}

fn ours() -> MutexGuard<'static, Ours> {
    static OURS: Mutex<Ours> = Mutex::new(Ours { directories: Vec::new(), processes: Vec::new() });
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new directory, removed with this.
pub(crate) struct Directory(TempDir);

impl Directory {
    /// Makes one in `parent`, its name beginning with `prefix`.
    pub(crate) fn new(parent: &Path, prefix: &str) -> Result<Directory> {
        // Held while it is made: a signal in between waits until it is known.
        let mut ours = ours();
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(parent).map_err(Error::file(parent))?;
        ours.directories.push(made.path().to_path_buf());
        Ok(Directory(made))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Here rather than by the field's own end, so that it is not forgotten before it is gone.
        let (path, mut ours) = (self.0.path(), ours());
        let _ = fs::remove_dir_all(path);
        ours.directories.retain(|one| one != path);
    }
}

/// A child that is to be killed with us, from now until `forget`.
pub(crate) fn remember(pid: u32) {
    ours().processes.push(pid);
}

/// The child has ended.
pub(crate) fn forget(pid: u32) {
    ours().processes.retain(|one| *one != pid);
}

/// Sends a signal to a child.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Makes ^C, TERM and HUP end this program with nothing left behind.
pub fn end_by_signals() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    thread::spawn(move || {
        if let Some(number) = signals.forever().next() {
            // Kept locked: nothing new is made from here on.
            let ours = ours();
            remove(&ours);
            std::process::exit(128 + number);
        }
    });
}

fn remove(ours: &Ours) {
    const PATIENCE: Duration = Duration::from_secs(10);
    ours.processes.iter().for_each(|&pid| send(pid, Signal::KILL));
    let deadline = Instant::now() + PATIENCE;
    while ours.processes.iter().any(|&pid| is_running(pid)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    for directory in &ours.directories {
        let _ = fs::remove_dir_all(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_removed_and_what_has_gone_is_forgotten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::new(parent.path(), "x.").unwrap();
        let path = directory.path().to_path_buf();
        assert!(ours().directories.contains(&path));
        fs::write(path.join("file"), "x").unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        remove(&Ours { directories: vec![path.clone()], processes: vec![child.id()] });
        assert!(!path.exists() && !child.wait().unwrap().success());
        drop(directory);
        assert!(!ours().directories.contains(&path));
    }
}
