//! Logging in: by the system user (`unix_socket`, which needs no answer) or by `mysql_native_password`.

use sha1_smol::Sha1;

use super::result::read_error;
use super::wire::Wire;
use crate::error::{Error, Result};

const LONG_PASSWORD: u32 = 0x1;
const LONG_FLAG: u32 = 0x4;
const LOCAL_FILES: u32 = 0x80;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const MULTI_RESULTS: u32 = 0x2_0000;
const PLUGIN_AUTH: u32 = 0x8_0000;
const CAPABILITIES: u32 = LONG_PASSWORD
    | LONG_FLAG
    | LOCAL_FILES
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_RESULTS
    | PLUGIN_AUTH;
const UTF8MB4_GENERAL_CI: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 30;
const NATIVE: &[u8] = b"mysql_native_password";

/// Does the handshake; gives the session's id.
pub(super) fn log_in(wire: &mut Wire, user: &str, password: &str) -> Result<u32> {
    let (id, salt) = read_greeting(wire.read()?)?;
    let proof = native_proof(password, &salt);
    let mut answer = Vec::new();
    answer.extend(CAPABILITIES.to_le_bytes());
    answer.extend(PACKET_BYTES_MAX.to_le_bytes());
    answer.push(UTF8MB4_GENERAL_CI);
    answer.extend([0; 23]);
    answer.extend(user.as_bytes());
    answer.push(0);
    answer.push(proof.len() as u8);
    answer.extend(&proof);
    answer.extend(NATIVE);
    answer.push(0);
    wire.write_packet(&answer)?;
    wire.flush()?;
    let asked = match wire.read()? {
        packet if packet[0] == 0xff => return Err(read_error(packet, b"log in")),
        packet if packet[0] == 0xfe => Some(packet[1..].to_vec()),
        _ => None,
    };
    if let Some(request) = asked {
        wire.write_packet(&other_proof(&request, password)?)?;
        wire.flush()?;
        let packet = wire.read()?;
        if packet[0] == 0xff {
            return Err(read_error(packet, b"log in"));
        }
    }
    Ok(id)
}

/// Session id and the 20 bytes to be proven with.
fn read_greeting(packet: &[u8]) -> Result<(u32, Vec<u8>)> {
    if packet[0] == 0xff {
        return Err(read_error(packet, b"connect"));
    }
    let strange = || Error::Connection("a greeting that is not MariaDB's".to_owned());
    let version_end = packet.iter().skip(1).position(|&byte| byte == 0).ok_or_else(strange)? + 1;
    let rest = packet.get(version_end + 1..).filter(|rest| rest.len() >= 43).ok_or_else(strange)?;
    let id = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
    // Eight bytes of salt, a filler, 18 bytes of capabilities and such, and the rest of the salt.
    let salt = [&rest[4..12], &rest[31..43]].concat();
    Ok((id, salt))
}

/// The answer to a server that wants another method for this user.
fn other_proof(request: &[u8], password: &str) -> Result<Vec<u8>> {
    let end = request.iter().position(|&byte| byte == 0).unwrap_or(request.len());
    let (method, data) = request.split_at(end);
    match method {
        NATIVE => Ok(native_proof(password, data.get(1..21).unwrap_or_default())),
        b"unix_socket" => Ok(Vec::new()),
        other => Err(Error::Connection(format!(
            "user logs in by {}, which is not supported here; use unix_socket or mysql_native_password",
            String::from_utf8_lossy(other)
        ))),
    }
}

/// SHA1(password) xor SHA1(salt, SHA1(SHA1(password))); nothing for no password.
fn native_proof(password: &str, salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::from(password.as_bytes()).digest().bytes();
    let twice = Sha1::from(once).digest().bytes();
    let mask = Sha1::from([salt, &twice].concat()).digest().bytes();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server does: from the stored SHA1(SHA1(password)) and the proof it gets SHA1(password) back.
    #[test]
    fn the_proof_is_one_that_the_server_accepts() {
        let salt: Vec<u8> = (1..=20).collect();
        let proof = native_proof("secret", &salt);
        let stored = Sha1::from(Sha1::from("secret").digest().bytes()).digest().bytes();
        let mask = Sha1::from([&salt[..], &stored].concat()).digest().bytes();
        let once: Vec<u8> = proof.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(Sha1::from(once).digest().bytes(), stored);
        assert!(native_proof("", &salt).is_empty());
    }

    #[test]
    fn an_unknown_method_is_named() {
        let error = other_proof(b"ed25519\0salt", "").unwrap_err().to_string();
        assert!(error.contains("ed25519"), "{error}");
    }
}
