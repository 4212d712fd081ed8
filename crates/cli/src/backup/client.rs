//! The session of a backup: the command-line client `mariadb`, which knows all ways to log in and the operator's
//! option files. It gets statements on its standard input, one at a time, and the last column of the last row is the answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use clap::Args;

use super::child::that_ends_with_us;
use super::{fail, Outcome};

/// Where the server is, and who asks.
#[derive(Args, Clone, Debug)]
pub struct Connect {
    /// Option file with a section [client]; the usual ones are read without it
    #[arg(long)]
    pub defaults_file: Option<PathBuf>,
    /// The server's socket
    #[arg(long, short = 'S')]
    pub socket: Option<PathBuf>,
    /// The server's address; it has to be on this machine, because files are copied
    #[arg(long, short = 'H')]
    pub host: Option<String>,
    /// The server's port
    #[arg(long, short = 'P')]
    pub port: Option<u16>,
    /// User; it needs RELOAD, PROCESS, BINLOG MONITOR and what mariadb-backup asks for
    #[arg(long, short = 'u')]
    pub user: Option<String>,
    /// Password; better in an option file, where other users of the machine do not see it
    #[arg(long, env = "MYSQL_PWD", hide_env_values = true)]
    pub password: Option<String>,
    /// The command-line client
    #[arg(long, default_value = "mariadb")]
    pub mariadb: PathBuf,
}

impl Connect {
    /// For a program of the server's.
    pub fn arguments(&self) -> Vec<String> {
        // `mariadb-backup` changes its directory before it looks for them.
        let absolute =
            |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            arguments.extend(value.map(|value| format!("--{name}={value}")));
        };
        // Has to be the first.
        add("defaults-file", self.defaults_file.as_ref().map(absolute));
        add("socket", self.socket.as_ref().map(absolute));
        add("host", self.host.clone());
        add("port", self.port.map(|port| port.to_string()));
        add("user", self.user.clone());
        arguments
    }
}

/// One session.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// What nobody answers.
const MARK: &str = "-- end of answer --";

impl Session {
    /// Connects.
    pub fn open(connect: &Connect) -> Outcome<Session> {
        let mut command = that_ends_with_us(&connect.mariadb);
        command.args(connect.arguments());
        command.args([
            "--batch",
            "--raw",
            "--skip-column-names",
            "--unbuffered",
            "--skip-reconnect",
            "--no-auto-rehash",
        ]);
        if let Some(password) = &connect.password {
            command.env("MYSQL_PWD", password);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return fail(format!("cannot run {}: {error}", connect.mariadb.display())),
        };
        let input = child.stdin.take();
        let Some(output) = child.stdout.take() else { return fail("no output of the client") };
        let mut session = Session { child, input, output: BufReader::new(output) };
        session.ask("SELECT 1")?;
        Ok(session)
    }

    /// Runs a statement; what it gives, a line for each row, columns apart by tabs.
    pub fn ask(&mut self, sql: &str) -> Outcome<Vec<String>> {
        let sent = match &mut self.input {
            Some(input) => writeln!(input, "{sql};\nSELECT '{MARK}';").and_then(|()| input.flush()),
            None => return fail("the session has ended"),
        };
        let mut lines = Vec::new();
        while sent.is_ok() {
            let mut line = String::new();
            match self.output.read_line(&mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let line = line.trim_end_matches('\n');
            if line == MARK {
                return Ok(lines);
            }
            lines.push(line.to_owned());
        }
        self.failure(sql)
    }

    /// The only column of the only row.
    pub fn value(&mut self, sql: &str) -> Outcome<String> {
        let lines = self.ask(sql)?;
        match lines.first() {
            Some(line) => Ok(line.clone()),
            None => fail(format!("no answer to: {sql}")),
        }
    }

    /// A command to the engine and its answer.
    pub fn engine(&mut self, command: &str) -> Outcome<serde_json::Value> {
        let text =
            self.value(&format!("SET SESSION pando_backup = '{command}'; SELECT @@SESSION.pando_backup"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The client has ended: with what words.
    fn failure<T>(&mut self, sql: &str) -> Outcome<T> {
        drop(self.input.take());
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut text);
        }
        let _ = self.child.wait();
        let text = text.trim();
        match text.is_empty() {
            true => fail(format!("the connection to the server was lost at: {sql}")),
            false => fail(format!("{text} (at: {sql})")),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        connect: Connect,
    }

    #[test]
    fn files_are_said_from_the_root() {
        let program = Program::parse_from([
            "pando",
            "-S",
            "s/mariadb.sock",
            "--defaults-file",
            "/etc/my.cnf",
            "-u",
            "me",
        ]);
        let here = std::env::current_dir().expect("a directory");
        let socket = format!("--socket={}/s/mariadb.sock", here.display());
        assert_eq!(
            program.connect.arguments(),
            ["--defaults-file=/etc/my.cnf", socket.as_str(), "--user=me"]
        );
    }
}
