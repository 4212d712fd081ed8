//! Keys that are known from the start: of tools, and of applications that keep them themselves.

use std::collections::BTreeMap;
use std::fmt;

use super::{KeyProvider, SecretKey};

/// A list of keys.
#[derive(Clone, Default)]
pub struct KeyList {
    keys: BTreeMap<(u32, u32), SecretKey>,
}

impl fmt::Debug for KeyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys.keys()).finish()
    }
}

impl KeyList {
    /// No keys.
    pub fn new() -> KeyList {
        KeyList::default()
    }

    /// Adds a version (from 1) of a key.
    #[must_use]
    pub fn with(mut self, key_id: u32, version: u32, key: SecretKey) -> KeyList {
        self.keys.insert((key_id, version), key);
        self
    }

    /// Reads the file of MariaDB's plugin `file_key_management`, not encrypted: lines `number;key in hexadecimal`, and comments
    /// behind `#` or behind a key. `number:version;key` is a version other than the first, for keys of other plugins.
    ///
    /// # Errors
    /// What is wrong with which line, for people.
    pub fn parse(text: &str) -> Result<KeyList, String> {
        let mut list = KeyList::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (id, version, key) = parse_line(line)
                .ok_or_else(|| format!("line {}: not a number, ';' and a key", number + 1))?;
            list = list.with(id, version, key);
        }
        Ok(list)
    }
}

fn parse_line(line: &str) -> Option<(u32, u32, SecretKey)> {
    let (name, key) = line.split_once(';')?;
    let (id, version) = match name.split_once(':') {
        Some((id, version)) => (id, version.trim().parse().ok().filter(|version| *version > 0)?),
        None => (name, 1),
    };
    let digits: Option<Vec<u8>> = key
        .split_whitespace()
        .next()?
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|n| u8::try_from(n).ok()))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |n, digit| n << 4 | digit)).collect();
    Some((id.trim().parse().ok()?, version, SecretKey::new(bytes)))
}

impl KeyProvider for KeyList {
    fn latest_version(&self, key_id: u32) -> Result<u32, String> {
        let versions = self.keys.range((key_id, 0)..=(key_id, u32::MAX));
        versions.last().map(|((_, version), _)| *version).ok_or_else(|| "there is no such key".to_owned())
    }

    fn key(&self, key_id: u32, version: u32) -> Result<SecretKey, String> {
        self.keys.get(&(key_id, version)).cloned().ok_or_else(|| "there is no such key".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_servers_plugin_is_read() {
        let list = KeyList::parse(
            "# keys\n1;770A8A65DA156D24EE2A093277530142 \n\n 2 ; 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff --> second\n1:3;00112233445566778899aabbccddeeff\n",
        )
        .unwrap();
        assert_eq!(list.latest_version(1), Ok(3));
        assert_eq!(list.key(1, 1).unwrap().bytes()[..3], [0x77, 0x0a, 0x8a]);
        assert_eq!(list.key(2, 1).unwrap().bytes().len(), 24);
        list.key(2, 2).unwrap_err();
        list.latest_version(3).unwrap_err();
        assert!(!format!("{list:?}{:?}", list.key(1, 1)).contains("119"), "keys are not printed");
    }

    #[test]
    fn a_line_that_is_no_key_is_named() {
        for bad in ["1", "x;00", "1;", "1;0", "1;zz", "1:0;00", "1;é"] {
            let text = KeyList::parse(&format!("1;00\n{bad}\n")).unwrap_err();
            assert!(text.contains("line 2"), "{text}");
        }
    }
}
