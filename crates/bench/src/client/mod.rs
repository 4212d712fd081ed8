//! A blocking client for MariaDB's text protocol over a unix socket.
//!
//! Why not a library: what is measured here includes the client's share of the processor, and statements of a
//! thousand rows should go from the generator's buffer to the socket without a copy; and the libraries bring
//! some hundred crates for what are three hundred lines. It knows text queries, several results (CALL), LOAD
//! DATA LOCAL, and two ways to log in (see `login`). No TLS: a socket does not leave the machine.
//!
//! Packets are as in <https://mariadb.com/kb/en/clientserver-protocol/>.

mod login;
mod result;
mod wire;

use std::fs::File;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub use result::ResultSet;
use result::{read_error, read_ok};
use wire::Wire;

use crate::error::{Error, Result};

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct Address {
    /// The server's socket.
    pub socket: PathBuf,
    /// User name.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
}

/// One session.
pub struct Connection {
    wire: Wire,
    /// Id of the session, as in SHOW PROCESSLIST.
    pub id: u32,
}

const COM_QUERY: u8 = 0x03;
const MORE_RESULTS: u16 = 0x0008;
const ERROR_STATEMENT_CHARACTERS: usize = 120;
const LOCAL_FILE_PART_BYTES: usize = 1 << 20;

impl Connection {
    /// Connects and logs in. Errors: no server there, or it does not let us in.
    pub fn open(address: &Address) -> Result<Connection> {
        let stream = UnixStream::connect(&address.socket)
            .map_err(|error| Error::Connection(format!("{}: {error}", address.socket.display())))?;
        let mut wire = Wire::new(stream)?;
        let id = login::log_in(&mut wire, &address.user, &address.password)?;
        Ok(Connection { wire, id })
    }

    /// Runs one statement; of several results the last with rows, else the last.
    pub fn query(&mut self, sql: &str) -> Result<ResultSet> {
        self.query_bytes(sql.as_bytes())
    }

    /// As `query`, for statements that need not be text.
    pub fn query_bytes(&mut self, sql: &[u8]) -> Result<ResultSet> {
        self.wire.begin();
        self.wire.write(COM_QUERY, sql)?;
        self.wire.flush()?;
        self.read_answer(sql)
    }

    /// Runs statements one after the other; for set-up.
    pub fn run_all(&mut self, statements: &[&str]) -> Result<()> {
        for statement in statements {
            self.query(statement)?;
        }
        Ok(())
    }

    /// The only cell of a result as text; `None` for NULL or no row.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(self.query(sql)?.text(0, 0))
    }

    /// The only cell of a result as a number.
    pub fn number(&mut self, sql: &str) -> Result<f64> {
        let value = self.value(sql)?.unwrap_or_default();
        value.parse().map_err(|_| Error::Data(format!("no number but '{value}' from: {sql}")))
    }

    fn read_answer(&mut self, sql: &[u8]) -> Result<ResultSet> {
        let mut answer = ResultSet::default();
        loop {
            let packet = self.wire.read()?;
            let status = match packet.first() {
                Some(0x00) => {
                    let (one, status) = read_ok(packet)?;
                    if answer.columns == 0 {
                        answer = one;
                    }
                    status
                }
                Some(0xff) => return Err(read_error(packet, sql)),
                Some(0xfb) => {
                    let path = PathBuf::from(String::from_utf8_lossy(&packet[1..]).into_owned());
                    self.send_local_file(&path)?;
                    continue;
                }
                _ => {
                    let (one, status) = result::read_rows(&mut self.wire, sql)?;
                    answer = one;
                    status
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(answer);
            }
        }
    }

    /// The server asks for the file that our own LOAD DATA LOCAL named. An unreadable file is sent as empty
    /// and then reported, because the server waits for it in any case.
    fn send_local_file(&mut self, path: &Path) -> Result<()> {
        let sent = self.send_file_parts(path);
        self.wire.write_packet(&[])?;
        self.wire.flush()?;
        sent
    }

    fn send_file_parts(&mut self, path: &Path) -> Result<()> {
        let mut file = File::open(path).map_err(Error::file(path))?;
        let mut part = vec![0; LOCAL_FILE_PART_BYTES];
        loop {
            let count = file.read(&mut part).map_err(Error::file(path))?;
            if count == 0 {
                return Ok(());
            }
            self.wire.write_packet(&part[..count])?;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        const COM_QUIT: u8 = 0x01;
        self.wire.begin();
        // Nobody waits for an answer, and the server may be gone.
        let _ = self.wire.write(COM_QUIT, &[]);
        let _ = self.wire.flush();
    }
}

/// `text` as a string literal.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

fn excerpt(sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(&sql[..sql.len().min(4 * ERROR_STATEMENT_CHARACTERS)]).into_owned();
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(ERROR_STATEMENT_CHARACTERS) {
        words.truncate(end);
        words.push_str(" ...");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_cannot_end_its_literal() {
        assert_eq!(quote(r"it's a \ "), r"'it\'s a \\ '");
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        let long = format!("SELECT\n  1, {}", "é".repeat(500));
        let shown = excerpt(long.as_bytes());
        assert!(shown.starts_with("SELECT 1, é") && shown.ends_with(" ...") && !shown.contains('\n'));
        assert_eq!(shown.chars().count(), ERROR_STATEMENT_CHARACTERS + 4);
    }
}
