//! Packets: three bytes of length, one of sequence, payload. A payload of 16 MiB or more goes in parts, each but
//! the last as long as the length can say.

use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::error::{Error, Result};

const PAYLOAD_BYTES_MAX: usize = 0xff_ffff;
const BUFFER_BYTES: usize = 1 << 16;

pub(super) struct Wire {
    reader: BufReader<UnixStream>,
    writer: BufWriter<UnixStream>,
    sequence: u8,
    packet: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Result<Wire> {
        let writing = stream.try_clone().map_err(lost)?;
        Ok(Wire {
            reader: BufReader::with_capacity(BUFFER_BYTES, stream),
            writer: BufWriter::with_capacity(BUFFER_BYTES, writing),
            sequence: 0,
            packet: Vec::new(),
        })
    }

    /// A new command: numbering starts again.
    pub(super) fn begin(&mut self) {
        self.sequence = 0;
    }

    /// A command byte and its payload.
    pub(super) fn write(&mut self, command: u8, payload: &[u8]) -> Result<()> {
        let first = payload.len().min(PAYLOAD_BYTES_MAX - 1);
        self.write_header(first + 1)?;
        self.writer.write_all(&[command]).map_err(lost)?;
        self.writer.write_all(&payload[..first]).map_err(lost)?;
        if first + 1 == PAYLOAD_BYTES_MAX {
            return self.write_packet(&payload[first..]);
        }
        Ok(())
    }

    pub(super) fn write_packet(&mut self, mut payload: &[u8]) -> Result<()> {
        loop {
            let (part, rest) = payload.split_at(payload.len().min(PAYLOAD_BYTES_MAX));
            self.write_header(part.len())?;
            self.writer.write_all(part).map_err(lost)?;
            if part.len() < PAYLOAD_BYTES_MAX {
                return Ok(());
            }
            payload = rest;
        }
    }

    fn write_header(&mut self, size: usize) -> Result<()> {
        let bytes = (size as u32).to_le_bytes();
        self.writer.write_all(&[bytes[0], bytes[1], bytes[2], self.sequence]).map_err(lost)?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(lost)
    }

    /// The next packet; valid until the next read.
    pub(super) fn read(&mut self) -> Result<&[u8]> {
        self.packet.clear();
        loop {
            let mut header = [0; 4];
            self.reader.read_exact(&mut header).map_err(lost)?;
            let size = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            let start = self.packet.len();
            self.packet.resize(start + size, 0);
            self.reader.read_exact(&mut self.packet[start..]).map_err(lost)?;
            if size < PAYLOAD_BYTES_MAX {
                break;
            }
        }
        if self.packet.is_empty() {
            return Err(Error::Connection("an empty packet".to_owned()));
        }
        Ok(&self.packet)
    }

    /// The packet read last.
    pub(super) fn last(&self) -> &[u8] {
        &self.packet
    }
}

fn lost(error: io::Error) -> Error {
    Error::Connection(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Wire, Wire) {
        let (here, there) = UnixStream::pair().unwrap();
        (Wire::new(here).unwrap(), Wire::new(there).unwrap())
    }

    #[test]
    fn packets_of_every_awkward_size_arrive_whole() {
        for size in
            [0, 1, PAYLOAD_BYTES_MAX - 2, PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 9]
        {
            let (mut here, mut there) = pair();
            let payload: Vec<u8> = (0..size).map(|number| number as u8).collect();
            let sent = payload.clone();
            let sender = std::thread::spawn(move || {
                here.begin();
                here.write(0x03, &sent).unwrap();
                here.flush().unwrap();
            });
            let received = there.read().unwrap().to_vec();
            sender.join().unwrap();
            assert_eq!(received[0], 0x03);
            assert!(received[1..] == payload, "{size} bytes");
        }
    }

    #[test]
    fn a_peer_that_goes_away_is_a_lost_connection() {
        let (here, mut there) = pair();
        drop(here);
        assert!(matches!(there.read(), Err(Error::Connection(_))));
    }
}
