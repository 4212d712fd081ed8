//! The beginnings of ascending keys, side by side as numbers: a search touches few cache lines, and looks at a whole key only where
//! eight bytes do not tell.
//!
//! ```text
//!   keys:   user/ann..   user/bob..   user/eve..        shared: 5 bytes, "user/"
//!   heads:  "ann....."   "bob....."   "eve....."        the next eight bytes, big-endian
//! ```
//! A point lookup asks every run on its path where the key would be, nearly always in vain: that search is what it costs.

use pando_base::{key_head, shared_prefix};
use pando_memory::footprint_of;

/// See the head of this file. The keys themselves are kept by whoever asks, and given to every search.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// Length of what all keys begin with.
    shared: usize,
    heads: Vec<u64>,
}

impl Heads {
    /// Of `count` keys that ascend, of which some may be equal.
    pub(crate) fn new<'k>(count: usize, key: impl Fn(usize) -> &'k [u8]) -> Heads {
        let shared = count.checked_sub(1).map_or(0, |last| shared_prefix(key(0), key(last)));
        let heads = (0..count).map(|at| key_head(key(at).get(shared..).unwrap_or_default())).collect();
        Heads { shared, heads }
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// How many keys are below `wanted`; `key` gives those that this was made of.
    pub(crate) fn below<'k>(&self, wanted: &[u8], key: impl Fn(usize) -> &'k [u8]) -> usize {
        let mut tail = wanted;
        if self.shared > 0 {
            let shared = key(0).get(..self.shared).unwrap_or_default();
            match wanted.strip_prefix(shared) {
                Some(rest) => tail = rest,
                None if wanted < shared => return 0,
                None => return self.len(),
            }
        }
        let head = key_head(tail);
        let mut low = self.heads.partition_point(|h| *h < head);
        // Heads are padded: where they are equal, the keys need not be.
        let mut high = low;
        if self.heads.get(low) == Some(&head) {
            high = self.heads.partition_point(|h| *h <= head);
        }
        while low < high {
            let middle = low.midpoint(high);
            if key(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What its allocation takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        footprint_of(&self.heads)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn below(keys: &[Vec<u8>], wanted: &[u8]) -> usize {
        Heads::new(keys.len(), |at| &keys[at]).below(wanted, |at| &keys[at])
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0u8..3, 0..12),
            prop::collection::vec(any::<u8>(), 0..3),
            (0u16..300).prop_map(|n| [b"the same ten bytes ".as_slice(), &n.to_be_bytes()].concat()),
        ]
    }

    proptest! {
        #[test]
        fn they_find_what_whole_keys_find(
            mut keys in prop::collection::vec(any_key(), 0..80),
            prefix in prop::collection::vec(0u8..2, 0..10),
            probes in prop::collection::vec(any_key(), 1..20),
        ) {
            for key in &mut keys {
                key.splice(0..0, prefix.iter().copied());
            }
            keys.sort();
            let whole = probes.iter().map(|probe| [&prefix[..], probe].concat());
            for wanted in whole.chain(probes.iter().cloned()).chain(keys.iter().cloned()) {
                prop_assert_eq!(below(&keys, &wanted), keys.partition_point(|key| *key < wanted), "{:?}", wanted);
            }
        }
    }
}
