//! A page of a run's filter: may the keys of some consecutive segments include this one?
//!
//! A binary fuse filter of 8-bit fingerprints (Graf and Lemire, "Binary Fuse Filters", 2022): about nine
//! bits a key, one false "maybe" in 256, never a false "no". Built by the library `xorf`; its hash
//! functions are part of the format, and a test pins them.
//!
//! ```text
//! codec 1:   0  u64  seed
//!            8  u32  segment length, a power of two
//!           12  u32  segment length - 1
//!           16  u32  segment count * segment length
//!           20       fingerprints: (segment count + 2) * segment length bytes
//! codec 0:  empty; every key may be there (the construction failed)
//! ```
#![deny(clippy::indexing_slicing)]

use pando_column::wire::Reader;
use pando_column::DecodeError;
use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter, FilterRef};
use xxhash_rust::xxh3::xxh3_64;

/// No filter could be built.
const CODEC_PASS_ALL: u8 = 0;
/// A binary fuse filter.
const CODEC_BINARY_FUSE_8: u8 = 1;
const DESCRIPTOR_BYTES: usize = BinaryFuse8::DESCRIPTOR_LEN;
const _: () = assert!(DESCRIPTOR_BYTES == 20);

/// Hash of a key for filters; part of the format. Compute it once per lookup.
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A decoded page.
#[derive(Debug)]
pub(crate) struct FilterPage {
    descriptor: [u8; DESCRIPTOR_BYTES],
    /// Empty if every key may be there.
    fingerprints: Box<[u8]>,
}

impl FilterPage {
    /// Builds the page for keys with these hashes; sorts and deduplicates them.
    pub(crate) fn build(hashes: &mut Vec<u64>) -> FilterPage {
        hashes.sort_unstable();
        hashes.dedup();
        let pass_all = FilterPage { descriptor: [0; DESCRIPTOR_BYTES], fingerprints: Box::default() };
        let Ok(fuse) = BinaryFuse8::try_from(hashes.as_slice()) else { return pass_all };
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        fuse.dma_copy_descriptor_to(&mut descriptor);
        let page = FilterPage { descriptor, fingerprints: fuse.fingerprints };
        // A false "no" would be a wrong answer, so no page leaves here unchecked.
        if hashes.iter().all(|hash| page.may_contain(*hash)) {
            page
        } else {
            pass_all
        }
    }

    /// False only if no key with this hash was given to `build`.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.fingerprints.is_empty()
            || BinaryFuse8Ref::from_dma(&self.descriptor, &self.fingerprints).contains(&hash)
    }

    /// Appends the payload; gives the codec.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> u8 {
        if self.fingerprints.is_empty() {
            return CODEC_PASS_ALL;
        }
        out.extend_from_slice(&self.descriptor);
        out.extend_from_slice(&self.fingerprints);
        CODEC_BINARY_FUSE_8
    }

    /// Decodes a payload, verifying what keeps every probe within the fingerprints.
    pub(crate) fn decode(codec: u8, payload: &[u8]) -> Result<FilterPage, DecodeError> {
        let mut reader = Reader::new(payload);
        if codec == CODEC_PASS_ALL {
            reader.end("filter page")?;
            return Ok(FilterPage { descriptor: [0; DESCRIPTOR_BYTES], fingerprints: Box::default() });
        }
        if codec != CODEC_BINARY_FUSE_8 {
            return Err(DecodeError::new("filter codec", "0 or 1", codec));
        }
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        descriptor.copy_from_slice(reader.bytes(DESCRIPTOR_BYTES, "filter descriptor")?);
        let fingerprints: Box<[u8]> = reader.rest().into();

        let mut fields = Reader::new(&descriptor);
        fields.u64("filter seed")?;
        let segment = u64::from(fields.u32("filter segment length")?);
        let mask = u64::from(fields.u32("filter segment mask")?);
        let all = u64::from(fields.u32("filter length")?);
        if !segment.is_power_of_two() || mask != segment - 1 || all == 0 || all % segment != 0 {
            let found = format!("{segment}, {mask}, {all}");
            return Err(DecodeError::new("filter lengths", "2^n, 2^n - 1, k * 2^n", found));
        }
        let expected = all + 2 * segment;
        if fingerprints.len() as u64 != expected || expected > u64::from(u32::MAX) {
            return Err(DecodeError::new("filter fingerprints", expected, fingerprints.len()));
        }
        Ok(FilterPage { descriptor, fingerprints })
    }

    /// Bytes of the one allocation that it has beyond the struct itself, exactly.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.fingerprints.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashes(count: u64, salt: u64) -> Vec<u64> {
        (0..count).map(|i| key_hash(&(i ^ salt << 40).to_be_bytes())).collect()
    }

    fn bytes_of(page: &FilterPage) -> (u8, Vec<u8>) {
        let mut out = Vec::new();
        let codec = page.encode(&mut out);
        (codec, out)
    }

    #[test]
    fn pages_of_every_size_have_no_false_no_and_few_false_maybes() {
        for count in (0..70).chain([1000, 32 * 1024]) {
            let mut keys = hashes(count, 0);
            let (codec, bytes) = bytes_of(&FilterPage::build(&mut keys));
            let page = FilterPage::decode(codec, &bytes).unwrap();
            assert!(hashes(count, 0).iter().all(|h| page.may_contain(*h)));
            let maybes = hashes(10_000, 1).iter().filter(|h| page.may_contain(**h)).count();
            assert!(maybes < 100, "{maybes} of 10000 with {count} keys");
            assert!(count < 1000 || bytes.len() as u64 * 8 < count * 12, "{} bytes for {count}", bytes.len());
        }
    }

    #[test]
    fn equal_hashes_do_no_harm() {
        let mut keys = [hashes(100, 0), hashes(100, 0)].concat();
        let page = FilterPage::build(&mut keys);
        assert!(!page.fingerprints.is_empty());
        assert!(hashes(100, 0).iter().all(|h| page.may_contain(*h)));
    }

    #[test]
    fn a_page_that_could_not_be_built_lets_everything_pass() {
        let page = FilterPage::decode(CODEC_PASS_ALL, &[]).unwrap();
        assert!(page.may_contain(7));
        assert!(FilterPage::decode(CODEC_PASS_ALL, &[1]).is_err());
    }

    /// Filters on disk are probed by whatever library version reads them: this must never change.
    #[test]
    fn the_first_format_stays_readable() {
        let golden: &[u8] = &[
            193, 92, 2, 137, 236, 45, 10, 145, // seed
            8, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, // lengths
            0, 0, 0, 162, 0, 0, 0, 0, 0, 174, 0, 0, 0, 0, 0, 0, 184, 104, 0, 0, 0, 125, 0,
            0, // fingerprints
        ];
        let page = FilterPage::decode(CODEC_BINARY_FUSE_8, golden).unwrap();
        let maybes: Vec<u64> = (0..200).filter(|hash| page.may_contain(*hash)).collect();
        assert_eq!(maybes, [1, 2, 3, 4, 5]);
        assert_eq!(key_hash(b"pando"), 3_780_109_049_229_242_705);
    }

    #[test]
    fn the_same_keys_in_any_order_give_the_same_bytes() {
        let build = |keys: &mut Vec<u64>| bytes_of(&FilterPage::build(keys));
        assert_eq!(build(&mut hashes(500, 0)), build(&mut hashes(500, 0).into_iter().rev().collect()));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            codec in 0u8..3, seed in any::<u64>(), power in 0u32..6, count in 0u32..5, off in -1i32..2,
            body in proptest::collection::vec(any::<u8>(), 0..200), probe in any::<u64>(), raw in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            if !raw {
                bytes.extend_from_slice(&seed.to_le_bytes());
                for n in [1u32 << power, (1 << power) - 1, count << power] {
                    bytes.extend_from_slice(&n.to_le_bytes());
                }
                bytes.resize((20 + ((count + 2) << power) as i32 + off) as usize, 3);
            }
            bytes.extend_from_slice(if raw { &body } else { &[] });
            if let Ok(page) = FilterPage::decode(codec, &bytes) {
                page.may_contain(probe);
            }
        }
    }
}
