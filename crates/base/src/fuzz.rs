//! What fuzzing has to know of a decoder of bytes from files. Each crate that has some lists them in its module `fuzz`; the crate
//! `pando-fuzz` runs them.

/// A decoder that any bytes may be given to.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its fuzz target, too.
    pub name: &'static str,
    /// What it reads, for people.
    pub reads: &'static str,
    /// Valid bytes, small ones, of each form that there is.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Decodes bytes and uses what comes out as the engine does. Whether they were valid. Must not panic, whatever the bytes.
    pub accepts: fn(&[u8]) -> bool,
}

/// Takes a length (u32) and as many bytes off the front, fewer if there are not so many: for inputs that consist of several parts.
pub fn take_part<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else { return std::mem::take(bytes) };
    let (part, rest) = rest.split_at((u32::from_le_bytes(*len) as usize).min(rest.len()));
    *bytes = rest;
    part
}

/// Appends what [`take_part`] takes.
pub fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_what_is_cut_short_is_as_long_as_it_is() {
        let mut bytes = Vec::new();
        put_part(&mut bytes, b"one");
        put_part(&mut bytes, b"");
        put_part(&mut bytes, b"three");
        let mut rest = &bytes[..bytes.len() - 1];
        assert_eq!([0; 3].map(|_| take_part(&mut rest)), [&b"one"[..], b"", b"thre"]);
        assert_eq!(take_part(&mut &b"ab"[..]), b"ab");
    }
}
