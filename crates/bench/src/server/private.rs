//! A private server: a directory with its data, a socket, no network port, no effect on any other server.
//!
//! Life: `start` copies an empty data directory (made once for each `Programs`), starts `mariadbd` in a process
//! group of its own, so that ^C reaches only us, and waits until it answers. Dropping it kills the server and
//! removes the directory; so does a signal to us (`cleanup`).

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::process;
use crate::cleanup::{forget, remember, send, Directory};
use crate::client::{Address, Connection};
use crate::error::{Error, Result};

/// Where the server's programs and plugins are, and where private servers live.
pub struct Programs {
    /// `mariadbd`.
    pub mariadbd: PathBuf,
    /// `mariadb-install-db`.
    pub install_db: PathBuf,
    /// A directory with our plugin; the stock plugins are found by themselves.
    pub plugin_dir: PathBuf,
    /// Data directories are made in here.
    pub work_dir: PathBuf,
    template: OnceLock<Directory>,
}

const START_SECONDS: u64 = 300;
const STOP_SECONDS: u64 = 600;
const LOG_LINES: usize = 20;
const FIXED_OPTIONS: [&str; 5] = [
    "--skip-networking",
    "--plugin-maturity=unknown",
    "--skip-log-bin",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
];
const STOCK_PLUGIN_DIRS: [&str; 3] =
    ["/usr/lib/mysql/plugin", "/usr/lib64/mariadb/plugin", "/usr/lib/x86_64-linux-gnu/mariadb19/plugin"];

impl Programs {
    /// As told on the command line.
    pub fn new(mariadbd: PathBuf, install_db: PathBuf, plugin_dir: PathBuf, work_dir: PathBuf) -> Programs {
        Programs { mariadbd, install_db, plugin_dir, work_dir, template: OnceLock::new() }
    }

    /// An empty data directory to copy from: making one takes seconds, copying it moments.
    fn template(&self) -> Result<PathBuf> {
        if let Some(template) = self.template.get() {
            return Ok(template.path().join("data"));
        }
        let directory = Directory::new(&self.work_dir, DIRECTORY_PREFIX)?;
        let data = directory.path().join("data");
        let output = Command::new(&self.install_db)
            .arg("--no-defaults")
            .args(user_option())
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Error::Server(format!("{}: {error}", self.install_db.display())))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Server(format!("mariadb-install-db failed:\n{}", last_lines(&text))));
        }
        let template = self.template.get_or_init(|| directory);
        Ok(template.path().join("data"))
    }
}

/// A running private server.
pub struct PrivateServer {
    address: Address,
    mariadbd: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
    directory: Directory,
    /// Of processes that have been stopped.
    written_before: u64,
    memory_before: u64,
}

impl PrivateServer {
    /// Starts one with these options. Errors: it does not come up, with the end of its log.
    pub fn start(programs: &Programs, options: &[String]) -> Result<PrivateServer> {
        let template = programs.template()?;
        let directory = Directory::new(&programs.work_dir, DIRECTORY_PREFIX)?;
        let root = directory.path().to_path_buf();
        copy_data(&template, &root.join("data"))?;
        fs::create_dir(root.join("tmp")).map_err(Error::file(&root))?;
        fill_plugin_dir(&root.join("plugins"), &programs.plugin_dir)?;
        let address =
            Address { socket: socket_path(&root), user: "root".to_owned(), password: String::new() };
        let path = |name: &str| root.join(name).display().to_string();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", path("data")),
            format!("--socket={}", address.socket.display()),
            format!("--tmpdir={}", path("tmp")),
            format!("--pid-file={}", path("server.pid")),
            format!("--plugin-dir={}", path("plugins")),
        ];
        arguments.extend(FIXED_OPTIONS.map(str::to_owned));
        arguments.extend(user_option().map(str::to_owned));
        arguments.extend_from_slice(options);
        let mut server = PrivateServer {
            address,
            mariadbd: programs.mariadbd.clone(),
            arguments,
            child: None,
            directory,
            written_before: 0,
            memory_before: 0,
        };
        server.launch()?;
        Ok(server)
    }

    /// Starts it again after `stop`, on the same data.
    pub fn launch(&mut self) -> Result<()> {
        let root = self.directory.path().to_path_buf();
        let log_path = root.join("error.log");
        let log =
            File::options().append(true).create(true).open(&log_path).map_err(Error::file(&log_path))?;
        let child = Command::new(&self.mariadbd)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|error| Error::Server(format!("{}: {error}", self.mariadbd.display())))?;
        remember(child.id());
        self.child = Some(child);
        self.wait_ready()
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Its data.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Its process; `None` when it has been stopped.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Bytes written by all its processes so far.
    pub fn written_bytes(&self) -> Option<u64> {
        match self.pid() {
            None => Some(self.written_before),
            Some(pid) => Some(self.written_before + process::written_bytes(pid)?),
        }
    }

    /// The most memory that one of its processes has had.
    pub fn memory_bytes_max(&self) -> Option<u64> {
        let now = self.pid().and_then(process::memory_bytes_max).unwrap_or(0);
        Some(self.memory_before.max(now)).filter(|&bytes| bytes > 0)
    }

    /// Ends it in an orderly way and keeps its files until this is dropped.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        self.memory_before = self.memory_before.max(process::memory_bytes_max(child.id()).unwrap_or(0));
        send(child.id(), rustix::process::Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS);
        let mut written = process::written_bytes(child.id()).unwrap_or(0);
        while process::is_running(child.id()) {
            if Instant::now() > deadline {
                self.child = Some(child);
                return Err(Error::Server(format!("the server did not stop in {STOP_SECONDS} s")));
            }
            // The count is gone with the process: the last look before its end is the best there is.
            written = process::written_bytes(child.id()).unwrap_or(0).max(written);
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.wait();
        forget(child.id());
        self.written_before += written;
        Ok(())
    }

    fn wait_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS);
        loop {
            if Connection::open(&self.address).is_ok() {
                return Ok(());
            }
            let ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || Instant::now() > deadline {
                let why = if ended { "died while starting" } else { "did not answer in time" };
                let log = fs::read(self.directory.path().join("error.log")).unwrap_or_default();
                let log = last_lines(&String::from_utf8_lossy(&log));
                return Err(Error::Server(format!("the private server {why}; the end of its log:\n{log}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for PrivateServer {
    /// Nobody needs the data any more: no orderly stop.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            forget(child.id());
        }
    }
}

/// The server refuses unnecessary questions of root without this.
fn user_option() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

const DIRECTORY_PREFIX: &str = "pando-bench.";

/// The address of a socket has room for 107 bytes; where the directory's name is too long, /tmp has it.
fn socket_path(root: &Path) -> PathBuf {
    const SOCKET_BYTES_MAX: usize = 100;
    let inside = root.join("mariadb.sock");
    if inside.as_os_str().len() <= SOCKET_BYTES_MAX {
        return inside;
    }
    let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    PathBuf::from(format!("/tmp/{name}.sock"))
}

/// The empty redo log is most of an empty data directory: it stays a hole.
fn copy_data(from: &Path, to: &Path) -> Result<()> {
    let status =
        Command::new("cp").args(["-a", "--sparse=always", "--reflink=auto"]).arg(from).arg(to).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Error::Server(format!("copying {} failed", from.display()))),
    }
}

/// Links to the stock plugins, then to ours.
fn fill_plugin_dir(to: &Path, own: &Path) -> Result<()> {
    fs::create_dir(to).map_err(Error::file(to))?;
    let stock = STOCK_PLUGIN_DIRS.iter().map(Path::new).find(|path| path.is_dir());
    for directory in stock.into_iter().chain([own]) {
        // Without our plugin other engines can still be measured.
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "so") {
                let target = fs::canonicalize(&path).map_err(Error::file(&path))?;
                let link = to.join(path.file_name().unwrap_or_default());
                let _ = fs::remove_file(&link);
                std::os::unix::fs::symlink(&target, &link).map_err(Error::file(&link))?;
            }
        }
    }
    Ok(())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
