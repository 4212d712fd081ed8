//! Which page of a run's filter has a key.
//!
//! Most lookups in a run end at its filter. So that they need nothing else, a run keeps this once its index was read: some sixty bytes and a key for
//! each page, which is to say for every 32,768 keys ([`FILTER_PAGE_KEYS`](pando_base::limits::FILTER_PAGE_KEYS)). The pages themselves are in the
//! cache, as all that is large.
#![deny(clippy::indexing_slicing)]

use pando_storage::Place;

use crate::index::Index;
use crate::key_heads::Heads;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Of the first keys.
    heads: Heads,
    firsts: Box<[First]>,
}

/// The first segment that a page covers.
#[derive(Debug)]
struct First {
    key: Box<[u8]>,
    /// The key is also the last one of the segment before, and so of the page before.
    continues: bool,
    /// Where the page is; `None`: these segments have no filter.
    page: Option<Place>,
}

impl Pages {
    pub(crate) fn of(index: &Index) -> Pages {
        let mut before = None;
        let numbered = index.entries().iter().enumerate();
        let firsts: Box<[First]> = numbered
            .filter(|(_, entry)| before.replace(entry.filter) != Some(entry.filter))
            .map(|(number, entry)| First {
                key: index.first_key(number).into(),
                continues: entry.continues(),
                page: entry.filter.and_then(|page| index.filters().get(page as usize)).copied(),
            })
            .collect();
        let heads = Heads::new(firsts.len(), |at| key_of(&firsts, at));
        Pages { heads, firsts }
    }

    /// The page that covers the segment with the first record whose key is `key` or greater, or the one before that
    /// ([`Index::segment_for`]); `None` if that has no filter.
    pub(crate) fn page_for(&self, key: &[u8]) -> Option<Place> {
        let below = self.heads.below(key, |at| key_of(&self.firsts, at));
        match self.firsts.get(below) {
            Some(first) if !first.continues && *first.key == *key => first.page,
            _ => self.firsts.get(below.saturating_sub(1))?.page,
        }
    }
}

fn key_of(firsts: &[First], at: usize) -> &[u8] {
    firsts.get(at).map_or(&[], |first| &first.key)
}

#[cfg(test)]
mod tests {
    use pando_base::{Kind, RecordRef};
    use pando_column::{Compression, SegmentBuilder};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys that straddle segments and filter pages are looked for in the first of them.
        #[test]
        fn the_page_is_that_of_the_segment(
            mut firsts in vec(vec(0u8..4, 1..4), 1..40), ends in vec(any::<bool>(), 40),
            has_filters in any::<bool>(), probes in vec(vec(0u8..4, 0..5), 1..20),
        ) {
            firsts.sort();
            let place = |number: u64| Place { offset: 16_384 + number * 100, len: 100 };
            let mut index = Index::default();
            for (number, first_key) in firsts.iter().enumerate() {
                let mut builder = SegmentBuilder::new();
                let seqno = 1000 - number as u64;
                builder.push(RecordRef { key: first_key, seqno, kind: Kind::Put, value: b"" });
                let continues = number > 0 && firsts.get(number - 1) == Some(first_key);
                let page = has_filters.then(|| index.next_filter());
                index.push(&builder.finish(Compression::None), place(0), continues, page);
                if has_filters && (ends.get(number) == Some(&true) || number + 1 == firsts.len()) {
                    index.push_filter(place(1 + u64::from(index.next_filter())));
                }
            }
            let mut bytes = Vec::new();
            let codec = index.encode(&mut bytes);
            let index = Index::decode(codec, &bytes, &[Place { offset: 16_384, len: 1 << 20 }]).unwrap();
            let pages = Pages::of(&index);
            for key in probes.iter().chain(&firsts) {
                let entry = index.entry(index.segment_for(key));
                let expected = entry.filter.map(|page| place(1 + u64::from(page)));
                prop_assert_eq!(pages.page_for(key), expected, "{:?}", key);
            }
        }
    }
}
