//! The garbage rule.

use pando_base::planted::{is_planted, Bug};
use pando_base::{DeletedRange, DeletedRanges, Kind, RecordRef, Seqno};

/// Says which versions a merge keeps. Fed with all records of a key range in order.
///
/// The snapshots cut the seqnos into stripes: stripe i holds the seqnos above snapshot i - 1 up to
/// snapshot i, the last one those above all snapshots. Of each key
/// 1. every version in the last stripe stays (future snapshots will tell them apart),
/// 2. of each other stripe only the newest version stays: snapshot i sees that one, or if the stripe
///    has none, the newest of an older stripe,
/// 3. a Delete in the first stripe goes too if nothing below can hold the key (`bottom`): whoever would
///    see it finds nothing instead, and all that it hides goes by rule 2,
/// 4. of the same version twice only the first stays: a commit that adopted runs may have written a key
///    into several of them, and the newest comes first,
/// 5. a version that is hidden by a deleted range goes if every snapshot sees the range.
#[derive(Clone, Debug)]
pub struct VersionFilter {
    snapshots: Vec<Seqno>,
    bottom: bool,
    /// Those that every snapshot sees.
    deleted: DeletedRanges,
    key: Vec<u8>,
    /// Stripe of the last version of `key`; `None` before the first record of all.
    stripe: Option<usize>,
    /// Seqno of the last version of `key`.
    seqno: Seqno,
    dropped: u64,
}

impl VersionFilter {
    /// `snapshots` ascend; the last one is the newest visible seqno. `bottom`: nothing outside the merge
    /// that is older than it can hold these keys.
    pub fn new(snapshots: Vec<Seqno>, bottom: bool) -> VersionFilter {
        assert!(snapshots.is_sorted(), "snapshots out of order: {snapshots:?}");
        let deleted = DeletedRanges::default();
        VersionFilter { snapshots, bottom, deleted, key: Vec::new(), stripe: None, seqno: 0, dropped: 0 }
    }

    /// Drops what these ranges hide, too. They were asked for after the snapshots.
    #[must_use]
    pub fn with_deleted(mut self, deleted: &DeletedRanges) -> VersionFilter {
        let oldest = self.snapshots.first().copied().unwrap_or(0);
        let is_seen = |range: &&DeletedRange| range.seqno <= oldest;
        self.deleted = DeletedRanges::new(deleted.as_slice().iter().filter(is_seen).cloned().collect());
        self
    }

    /// The ranges: all that they hide is dropped.
    pub fn deleted(&self) -> &DeletedRanges {
        &self.deleted
    }

    /// Whether the next record stays.
    #[inline]
    pub fn keep(&mut self, r: &RecordRef<'_>) -> bool {
        if self.deleted.hides(r.key, r.seqno) {
            self.dropped += 1;
            return false;
        }
        let all = self.snapshots.len();
        // Nearly always one of the two ends: tried first.
        let stripe = match (self.snapshots.first(), self.snapshots.last()) {
            (Some(first), _) if r.seqno <= *first => 0,
            (_, Some(last)) if r.seqno <= *last => self.snapshots.partition_point(|s| *s < r.seqno),
            _ => all,
        };
        let newer = match self.stripe {
            Some(newer) if self.key == r.key => Some(newer),
            _ => {
                self.key.clear();
                self.key.extend_from_slice(r.key);
                None
            }
        };
        let is_again = newer.is_some() && self.seqno == r.seqno;
        self.stripe = Some(stripe);
        self.seqno = r.seqno;
        let visible = !is_again && (stripe == all || newer.is_none_or(|newer| stripe < newer));
        let bottom = self.bottom || is_planted(Bug::TombstoneDroppedEarly);
        let useless = bottom && stripe == 0 && all > 0 && r.kind == Kind::Delete;
        let keep = visible && !useless;
        self.dropped += u64::from(!keep);
        keep
    }

    /// Records that did not stay.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::MAX_SEQNO;
    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BTreeMap;

    fn kept(snapshots: &[Seqno], bottom: bool, versions: &[(Seqno, Kind)]) -> Vec<Seqno> {
        let mut filter = VersionFilter::new(snapshots.to_vec(), bottom);
        let record = |&(seqno, kind): &(Seqno, Kind)| RecordRef { key: b"k", seqno, kind, value: b"" };
        versions.iter().filter(|v| filter.keep(&record(v))).map(|v| v.0).collect()
    }

    #[test]
    fn each_snapshot_keeps_the_version_it_sees() {
        let versions = [9, 8, 7, 5, 4, 3, 1].map(|s| (s, Kind::Put));
        assert_eq!(kept(&[8], true, &versions), [9, 8]);
        assert_eq!(kept(&[4, 6], false, &versions), [9, 8, 7, 5, 4]);
        assert_eq!(kept(&[2, 6], false, &versions), [9, 8, 7, 5, 1]);
        assert_eq!(kept(&[0, 9], false, &versions), [9]);
        assert_eq!(kept(&[], true, &versions).len(), 7);
    }

    #[test]
    fn a_tombstone_goes_only_at_the_bottom_and_only_if_every_snapshot_sees_it() {
        let versions = [(7, Kind::Delete), (5, Kind::Put), (3, Kind::Delete), (2, Kind::Put)];
        assert_eq!(kept(&[8], false, &versions), [7]);
        assert_eq!(kept(&[8], true, &versions), []);
        assert_eq!(kept(&[5, 8], true, &versions), [7, 5]);
        assert_eq!(kept(&[4, 8], true, &versions), [7]);
        assert_eq!(kept(&[4, 5, 8], true, &versions), [7, 5]);
    }

    #[test]
    fn what_a_deleted_range_hides_goes_once_every_snapshot_sees_the_range() {
        let range = DeletedRange { lo: b"k".to_vec(), hi: Some(b"l".to_vec()), seqno: 6 };
        let deleted = DeletedRanges::new(vec![range]);
        let kept = |snapshots: &[Seqno], key: &[u8]| {
            let mut filter = VersionFilter::new(snapshots.to_vec(), false).with_deleted(&deleted);
            let keep =
                |seqno: &Seqno| filter.keep(&RecordRef { key, seqno: *seqno, kind: Kind::Put, value: b"" });
            [9, 7, 5, 1].into_iter().filter(keep).collect::<Vec<Seqno>>()
        };
        assert_eq!(kept(&[6, 8], b"k"), [9, 7]);
        assert_eq!(kept(&[8], b"k"), [9, 7]);
        assert_eq!(kept(&[5, 8], b"k"), [9, 7, 5]);
        assert_eq!(kept(&[6, 8], b"l"), [9, 7, 5]);
    }

    #[test]
    fn an_empty_key_first_of_all_is_a_key_like_others() {
        let mut filter = VersionFilter::new(vec![10], false);
        let record = |seqno| RecordRef { key: b"", seqno, kind: Kind::Put, value: b"" };
        assert!(filter.keep(&record(5)));
        assert!(!filter.keep(&record(4)));
        assert_eq!(filter.dropped(), 1);
    }

    type Versions = BTreeMap<(Vec<u8>, Reverse<Seqno>), bool>;

    /// What a reader at `snapshot` sees: keys with the seqno of their value.
    fn view(versions: &Versions, snapshot: Seqno) -> Vec<(Vec<u8>, Seqno)> {
        let mut rows: BTreeMap<Vec<u8>, (Seqno, bool)> = BTreeMap::new();
        for ((key, seqno), put) in versions.iter().filter(|((_, seqno), _)| seqno.0 <= snapshot) {
            rows.entry(key.clone()).or_insert((seqno.0, *put));
        }
        rows.into_iter().filter(|(_, (_, put))| *put).map(|(key, (seqno, _))| (key, seqno)).collect()
    }

    proptest! {
        #[test]
        fn no_snapshot_sees_a_difference(
            versions in btree_map((proptest::collection::vec(0u8..3, 0..2), (1u64..30).prop_map(Reverse)), any::<bool>(), 0..60),
            snapshots in btree_set(0u64..32, 1..5), bottom in any::<bool>(),
        ) {
            let snapshots: Vec<Seqno> = snapshots.into_iter().collect();
            let mut filter = VersionFilter::new(snapshots.clone(), bottom);
            let mut left = Versions::new();
            for ((key, seqno), put) in &versions {
                let kind = if *put { Kind::Put } else { Kind::Delete };
                if filter.keep(&RecordRef { key, seqno: seqno.0, kind, value: b"" }) {
                    left.insert((key.clone(), *seqno), *put);
                }
            }
            prop_assert_eq!(filter.dropped() as usize, versions.len() - left.len());
            // All there are, and all that future commits can make.
            let last = snapshots.last().copied().unwrap_or(0);
            for snapshot in snapshots.iter().copied().chain(last..34).chain([MAX_SEQNO]) {
                prop_assert_eq!(view(&versions, snapshot), view(&left, snapshot), "at {}", snapshot);
            }
            // Nothing useless stays: of each key at most one version that all snapshots see.
            for ((key, seqno), put) in &left {
                if seqno.0 <= snapshots[0] {
                    prop_assert!(*put || !bottom);
                    let older = left.keys().any(|(k, s)| k == key && s.0 < seqno.0);
                    prop_assert!(!older);
                }
            }
        }
    }
}
