//! What a tree node knows about a run without reading it.
#![deny(clippy::indexing_slicing)]

use pando_base::limits::KEY_BYTES_MAX;
use pando_base::{RunId, Seqno};
use pando_column::wire::{put_bytes, put_varint, Reader};
use pando_column::DecodeError;
use pando_storage::Place;

/// A run as tree nodes store it.
///
/// On disk: id, rows, tombstones, raw bytes, disk bytes as varints; smallest and largest key as counted
/// bytes; smallest seqno and the distance to the largest, place of the index, number of extents and
/// their places as varints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMeta {
    /// Its name, unique in the file.
    pub id: RunId,
    /// Records, all versions and tombstones counted.
    pub rows: u64,
    /// Records that are Deletes.
    pub tombstones: u64,
    /// Bytes before encoding, as segments count them.
    pub raw_bytes: u64,
    /// Bytes of its extents.
    pub disk_bytes: u64,
    /// First key.
    pub min_key: Vec<u8>,
    /// Last key.
    pub max_key: Vec<u8>,
    /// Smallest seqno.
    pub min_seqno: Seqno,
    /// Largest seqno.
    pub max_seqno: Seqno,
    /// The index block.
    pub index: Place,
    /// Where the run is. No block straddles two of them.
    pub extents: Vec<Place>,
}

pub(crate) fn put_place(out: &mut Vec<u8>, place: Place) {
    put_varint(out, place.offset);
    put_varint(out, place.len);
}

/// Reads a place that does not end beyond what a file can have.
pub(crate) fn read_place(reader: &mut Reader<'_>, what: &'static str) -> Result<Place, DecodeError> {
    let place = Place { offset: reader.varint(what)?, len: reader.varint(what)? };
    match place.offset.checked_add(place.len) {
        Some(end) if place.len > 0 && i64::try_from(end).is_ok() => Ok(place),
        _ => Err(DecodeError::new(what, "a place in a file", format_args!("{place:?}"))),
    }
}

/// Whether `place` lies wholly in one of `extents`.
pub(crate) fn is_within(place: Place, extents: &[Place]) -> bool {
    extents.iter().any(|e| e.offset <= place.offset && place.end() <= e.end())
}

impl RunMeta {
    /// Appends the encoded form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.id.0, self.rows, self.tombstones, self.raw_bytes, self.disk_bytes] {
            put_varint(out, n);
        }
        put_bytes(out, &self.min_key);
        put_bytes(out, &self.max_key);
        put_varint(out, self.min_seqno);
        put_varint(out, self.max_seqno - self.min_seqno);
        put_place(out, self.index);
        put_varint(out, self.extents.len() as u64);
        for extent in &self.extents {
            put_place(out, *extent);
        }
    }

    /// The description of a private run, as the log has it: [`RunMeta::decode`] of `bytes`, and nothing else.
    pub fn decode_private(mut bytes: &[u8]) -> Result<RunMeta, DecodeError> {
        let meta = RunMeta::decode(&mut bytes)?;
        if meta.max_seqno != 0 {
            return Err(DecodeError::new("seqno of a private run", 0, meta.max_seqno));
        }
        Reader::new(bytes).end("description of a private run")?;
        Ok(meta)
    }

    /// Takes the encoded form off the front of `bytes`, which may be anything.
    pub fn decode(bytes: &mut &[u8]) -> Result<RunMeta, DecodeError> {
        let mut reader = Reader::new(bytes);
        let id = RunId(reader.varint("run id")?);
        // Whoever goes on from the largest counts without an overflow.
        if id.0 >= 1 << 62 {
            return Err(DecodeError::new("run id", "one that a file comes to", id));
        }
        let rows = reader.varint("run rows")?;
        let tombstones = reader.varint("run tombstones")?;
        if rows == 0 || tombstones > rows {
            return Err(DecodeError::new("run tombstones", format_args!("at most {rows}"), tombstones));
        }
        let raw_bytes = reader.varint("run raw bytes")?;
        let disk_bytes = reader.varint("run disk bytes")?;
        let min_key = reader.counted_bytes(KEY_BYTES_MAX, "run's smallest key")?.to_vec();
        let max_key = reader.counted_bytes(KEY_BYTES_MAX, "run's largest key")?.to_vec();
        if min_key > max_key {
            return Err(DecodeError::new("run's largest key", "at least the smallest", "a smaller one"));
        }
        let min_seqno = reader.varint("run's smallest seqno")?;
        let distance = reader.varint("run's largest seqno")?;
        let Some(max_seqno) = min_seqno.checked_add(distance) else {
            return Err(DecodeError::new("run's largest seqno", "64 bits", distance));
        };
        let index = read_place(&mut reader, "run's index place")?;
        let count = reader.varint("run's extents")?;
        // An extent takes two bytes at least: this bounds the memory.
        if count > reader.rest().len() as u64 / 2 {
            let most = reader.rest().len() / 2;
            return Err(DecodeError::new("run's extents", format_args!("at most {most}"), count));
        }
        let extents: Result<Vec<_>, _> =
            (0..count).map(|_| read_place(&mut reader, "run's extent")).collect();
        let extents = extents?;
        if !is_within(index, &extents) {
            return Err(DecodeError::new(
                "run's index place",
                "within its extents",
                format_args!("{index:?}"),
            ));
        }
        *bytes = reader.rest();
        Ok(RunMeta {
            id,
            rows,
            tombstones,
            raw_bytes,
            disk_bytes,
            min_key,
            max_key,
            min_seqno,
            max_seqno,
            index,
            extents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn sample() -> RunMeta {
        RunMeta {
            id: RunId(7),
            rows: 1000,
            tombstones: 10,
            raw_bytes: 1 << 40,
            disk_bytes: 8192,
            min_key: b"a".to_vec(),
            max_key: vec![0xff; 300],
            min_seqno: 5,
            max_seqno: u64::MAX,
            index: Place { offset: 20_000, len: 100 },
            extents: vec![Place { offset: 16_384, len: 4096 }, Place { offset: 1 << 40, len: 8192 }],
        }
    }

    #[test]
    fn a_meta_comes_back_and_leaves_what_follows() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        let len = bytes.len();
        bytes.extend_from_slice(b"rest");
        let mut view = &bytes[..];
        assert_eq!(RunMeta::decode(&mut view), Ok(sample()));
        assert_eq!(view, b"rest");
        for cut in 0..len {
            assert!(RunMeta::decode(&mut bytes.get(..cut).unwrap()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_private_run_has_no_seqno_and_nothing_follows_its_description() {
        let private = RunMeta { min_seqno: 0, max_seqno: 0, ..sample() };
        let encoded = |meta: &RunMeta| {
            let mut bytes = Vec::new();
            meta.encode(&mut bytes);
            bytes
        };
        assert_eq!(RunMeta::decode_private(&encoded(&private)), Ok(private.clone()));
        assert!(RunMeta::decode_private(&encoded(&RunMeta { max_seqno: 1, ..private.clone() })).is_err());
        assert!(RunMeta::decode_private(&[encoded(&private), vec![0]].concat()).is_err());
    }

    #[test]
    fn an_index_outside_the_extents_is_refused() {
        for index in [Place { offset: 20_400, len: 100 }, Place { offset: 16_000, len: 500 }] {
            let mut bytes = Vec::new();
            RunMeta { index, ..sample() }.encode(&mut bytes);
            assert!(RunMeta::decode(&mut &bytes[..]).is_err());
        }
    }

    #[test]
    fn more_extents_than_there_are_bytes_for_are_refused_however_many() {
        let mut bytes = Vec::new();
        RunMeta { extents: vec![Place { offset: 16_384, len: 8192 }], ..sample() }.encode(&mut bytes);
        // The last place takes three and two bytes, and how many there are one.
        let at = bytes.len() - 6;
        assert_eq!(bytes.get(at), Some(&1));
        for count in [4, u64::MAX / 2 + 1, u64::MAX] {
            let mut damaged = bytes.get(..at).unwrap().to_vec();
            put_varint(&mut damaged, count);
            damaged.extend_from_slice(bytes.get(at + 1..).unwrap());
            let error = RunMeta::decode(&mut &damaged[..]).unwrap_err();
            assert_eq!(error.what, "run's extents", "{error}");
        }
    }

    proptest! {
        #[test]
        fn damaged_metas_never_panic(damage in proptest::collection::vec((0usize..400, any::<u8>()), 1..8)) {
            let mut bytes = Vec::new();
            sample().encode(&mut bytes);
            for (at, byte) in damage {
                if let Some(b) = bytes.get_mut(at) { *b = byte }
            }
            let _ = RunMeta::decode(&mut &bytes[..]);
        }
    }
}
