//! The reference: every version of every key.

use std::collections::BTreeMap;

use pando_base::Seqno;

pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Versions of a key, oldest first; `None` is a delete.
type Versions = Vec<(Seqno, Option<Vec<u8>>)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    keys: BTreeMap<Vec<u8>, Versions>,
}

impl Model {
    pub(crate) fn write(&mut self, key: &[u8], seqno: Seqno, value: Option<&[u8]>) {
        let versions = self.keys.entry(key.to_vec()).or_default();
        assert!(versions.last().is_none_or(|(last, _)| *last < seqno));
        versions.push((seqno, value.map(<[u8]>::to_vec)));
    }

    pub(crate) fn delete_range(&mut self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        for (key, versions) in &mut self.keys {
            let has_value = versions.last().is_some_and(|(_, value)| value.is_some());
            if key.as_slice() >= lo && hi.is_none_or(|hi| key.as_slice() < hi) && has_value {
                versions.push((seqno, None));
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8], snapshot: Seqno) -> Option<&[u8]> {
        seen(self.keys.get(key)?, snapshot)
    }

    pub(crate) fn rows(&self, snapshot: Seqno) -> Rows {
        let seen = |(key, versions): (&Vec<u8>, &Vec<_>)| {
            seen(versions, snapshot).map(|value| (key.clone(), value.to_vec()))
        };
        self.keys.iter().filter_map(seen).collect()
    }

    /// First row with key >= `key`.
    pub(crate) fn at_or_after(&self, key: &[u8], snapshot: Seqno) -> Option<(&[u8], &[u8])> {
        let mut range =
            self.keys.range::<[u8], _>((std::ops::Bound::Included(key), std::ops::Bound::Unbounded));
        range.find_map(|(key, versions)| seen(versions, snapshot).map(|value| (&key[..], value)))
    }

    /// Last row with key < `key`, or of all.
    pub(crate) fn before(&self, key: Option<&[u8]>, snapshot: Seqno) -> Option<(&[u8], &[u8])> {
        let hi = key.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let mut range = self.keys.range::<[u8], _>((std::ops::Bound::Unbounded, hi)).rev();
        range.find_map(|(key, versions)| seen(versions, snapshot).map(|value| (&key[..], value)))
    }
}

fn seen(versions: &[(Seqno, Option<Vec<u8>>)], snapshot: Seqno) -> Option<&[u8]> {
    let visible = versions.partition_point(|(seqno, _)| *seqno <= snapshot);
    versions[..visible].last().and_then(|(_, value)| value.as_deref())
}
