//! Where something is in a tree file.

/// A range of bytes in a tree file.
///
/// On disk: `offset` u64, `len` u64, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Place {
    /// Bytes of the encoded form.
    pub const ENCODED_BYTES: usize = 16;

    /// First byte after it; saturates for nonsense from a disk.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Appends the encoded form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    /// Takes a place off the front of `bytes`; `None`, and `bytes` untouched, if it is too short.
    pub fn decode(bytes: &mut &[u8]) -> Option<Place> {
        let (offset, rest) = bytes.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(Place { offset: u64::from_le_bytes(*offset), len: u64::from_le_bytes(*len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_encoding_and_short_bytes_give_none() {
        let place = Place { offset: 16384, len: u64::MAX };
        let mut bytes = Vec::new();
        place.encode(&mut bytes);
        assert_eq!(bytes.len(), Place::ENCODED_BYTES);
        bytes.push(7);
        let mut rest = bytes.as_slice();
        assert_eq!(Place::decode(&mut rest), Some(place));
        assert_eq!(rest, [7]);
        assert_eq!(Place::decode(&mut rest), None);
        assert_eq!(rest, [7]);
        assert_eq!(place.end(), u64::MAX);
    }
}
