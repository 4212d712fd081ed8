//! Answers of the server.

use super::wire::Wire;
use super::{excerpt, Connection};
use crate::error::{Error, Result};

/// Rows as the server's text, in one buffer.
#[derive(Debug, Default)]
pub struct ResultSet {
    /// How many columns; 0 for a statement without rows.
    pub columns: usize,
    /// Rows changed by a statement without rows.
    pub affected: u64,
    /// Warnings that the server has noted.
    pub warnings: u16,
    cells: Vec<Option<(u32, u32)>>,
    bytes: Vec<u8>,
}

impl ResultSet {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.cells.len().checked_div(self.columns).unwrap_or(0)
    }

    /// One cell as bytes; `None` for NULL and for a cell that is not there.
    pub fn bytes(&self, row: usize, column: usize) -> Option<&[u8]> {
        let (start, end) = (*self.cells.get(row * self.columns + column)?)?;
        Some(&self.bytes[start as usize..end as usize])
    }

    /// One cell as text.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        self.bytes(row, column).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// One cell as a number; `None` also when it is no number.
    pub fn number<T: std::str::FromStr>(&self, row: usize, column: usize) -> Option<T> {
        std::str::from_utf8(self.bytes(row, column)?).ok()?.parse().ok()
    }

    /// A digest of all cells in order, in which NULL and the empty text differ and cells cannot run together.
    pub fn digest(&self) -> String {
        let mut sha = sha1_smol::Sha1::new();
        sha.update(&(self.columns as u64).to_le_bytes());
        for cell in &self.cells {
            match *cell {
                None => sha.update(&u64::MAX.to_le_bytes()),
                Some((start, end)) => {
                    sha.update(&u64::from(end - start).to_le_bytes());
                    sha.update(&self.bytes[start as usize..end as usize]);
                }
            }
        }
        sha.digest().to_string()
    }

    fn push_row(&mut self, packet: &[u8]) -> Result<()> {
        let mut at = 0;
        for _ in 0..self.columns {
            let (size, next) = read_length(packet, at)?;
            at = next;
            let Some(size) = size else {
                self.cells.push(None);
                continue;
            };
            let text = packet.get(at..at + size as usize).ok_or_else(cut)?;
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(text);
            self.cells.push(Some((start, self.bytes.len() as u32)));
            at += size as usize;
        }
        Ok(())
    }
}

/// The rows of a result whose head (the number of columns) is the packet read last. Also gives the server's
/// status.
pub(super) fn read_rows(wire: &mut Wire, sql: &[u8]) -> Result<(ResultSet, u16)> {
    let columns = read_length(wire.last(), 0)?.0.unwrap_or(0) as usize;
    let mut result = ResultSet { columns, ..ResultSet::default() };
    // The columns' descriptions and the packet that ends them.
    for _ in 0..=columns {
        wire.read()?;
    }
    loop {
        let packet = wire.read()?;
        match packet[0] {
            0xfe if packet.len() < 9 => {
                let number = |at| u16::from_le_bytes([packet[at], packet[at + 1]]);
                if packet.len() < 5 {
                    return Err(cut());
                }
                result.warnings = number(1);
                return Ok((result, number(3)));
            }
            0xff => return Err(read_error(packet, sql)),
            _ => result.push_row(packet)?,
        }
    }
}

/// The answer to a statement without rows, and the server's status.
pub(super) fn read_ok(packet: &[u8]) -> Result<(ResultSet, u16)> {
    let (affected, at) = read_length(packet, 1)?;
    let (_insert_id, at) = read_length(packet, at)?;
    let tail = packet.get(at..at + 4).ok_or_else(cut)?;
    let status = u16::from_le_bytes([tail[0], tail[1]]);
    let warnings = u16::from_le_bytes([tail[2], tail[3]]);
    Ok((ResultSet { affected: affected.unwrap_or(0), warnings, ..ResultSet::default() }, status))
}

pub(super) fn read_error(packet: &[u8], sql: &[u8]) -> Error {
    let number =
        u16::from_le_bytes([packet.get(1).copied().unwrap_or(0), packet.get(2).copied().unwrap_or(0)]);
    let text = String::from_utf8_lossy(packet.get(3..).unwrap_or_default()).into_owned();
    // '#' and five characters of SQLSTATE.
    let message = if text.starts_with('#') { text.chars().skip(6).collect() } else { text };
    Error::Sql { number, message, statement: excerpt(sql) }
}

/// A length-encoded integer (`None` for NULL) and the place after it.
fn read_length(packet: &[u8], at: usize) -> Result<(Option<u64>, usize)> {
    let first = *packet.get(at).ok_or_else(cut)?;
    let size = match first {
        0xfb => return Ok((None, at + 1)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => return Ok((Some(u64::from(small)), at + 1)),
    };
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(packet.get(at + 1..at + 1 + size).ok_or_else(cut)?);
    Ok((Some(u64::from_le_bytes(bytes)), at + 1 + size))
}

fn cut() -> Error {
    Error::Connection("a packet that ends too early".to_owned())
}

impl Connection {
    /// All rows as vectors of text (NULL as `None`); for small results.
    pub fn table(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let result = self.query(sql)?;
        Ok((0..result.rows())
            .map(|row| (0..result.columns).map(|column| result.text(row, column)).collect())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[Option<&str>]) -> ResultSet {
        let mut packet = Vec::new();
        for cell in cells {
            match cell {
                None => packet.push(0xfb),
                Some(text) => {
                    packet.push(text.len() as u8);
                    packet.extend(text.as_bytes());
                }
            }
        }
        let mut result = ResultSet { columns: cells.len(), ..ResultSet::default() };
        result.push_row(&packet).unwrap();
        result
    }

    #[test]
    fn cells_come_out_as_they_went_in() {
        let result = row(&[Some("7"), None, Some(""), Some("x")]);
        assert_eq!((result.rows(), result.number::<i64>(0, 0)), (1, Some(7)));
        assert_eq!((result.text(0, 1), result.text(0, 2)), (None, Some(String::new())));
        assert_eq!(result.number::<i64>(0, 3), None);
        assert_eq!(result.text(1, 0), None);
    }

    #[test]
    fn digests_tell_null_from_empty_and_where_cells_end() {
        assert_ne!(row(&[None]).digest(), row(&[Some("")]).digest());
        assert_ne!(row(&[Some("ab"), Some("c")]).digest(), row(&[Some("a"), Some("bc")]).digest());
        assert_eq!(row(&[Some("ab")]).digest(), row(&[Some("ab")]).digest());
    }

    #[test]
    fn lengths_of_every_width_are_read() {
        for (bytes, value) in [
            (&[0xfa][..], Some(0xfa)),
            (&[0xfb], None),
            (&[0xfc, 1, 2], Some(0x201)),
            (&[0xfd, 1, 2, 3], Some(0x3_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1], Some(0x0100_0000_0000_0001)),
        ] {
            assert_eq!(read_length(bytes, 0).unwrap(), (value, bytes.len()));
            assert!(read_length(&bytes[..bytes.len() - 1], 0).is_err());
        }
    }

    #[test]
    fn an_error_packet_gives_number_and_text() {
        let error = read_error(b"\xff\x7a\x04#42S02Table 'x' doesn't exist", b"SELECT 1");
        assert_eq!(error.sql_number(), Some(1146));
        assert!(error.to_string().starts_with("Table 'x' doesn't exist (error 1146"), "{error}");
    }
}
