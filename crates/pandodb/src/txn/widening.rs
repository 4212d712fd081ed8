//! Wider stretches: the last means of a transaction that is over its lock budget (`escalation`).
//!
//! The locks and stretches of a dictionary and mode, ascending, are cut into as many groups as may be left; each group becomes a
//! stretch from its first to its last. What lies between groups stays free, so the cuts are made where most lies between: the
//! distance of two keys is that of the numbers that their bytes are, behind what all keys have in common. Among equal
//! distances the cuts are spread over the keys.
//!
//! A group that reaches over another transaction's stretch is refused. Its halves are tried then, and theirs.

use pando_base::DictId;
use pando_txn::{HeldKey, LockMode};

use crate::txn::transaction::Txn;

/// A lock or a stretch of the transaction.
struct Piece {
    from: Vec<u8>,
    /// The first key behind it; `None`: without end.
    to: Option<Vec<u8>>,
    key: Option<HeldKey>,
}

impl Txn {
    /// Leaves about so many locks and stretches, where others permit.
    pub(crate) fn widen(&mut self, pieces_max: usize) {
        let groups = self.pieces_by_dict();
        let all: usize = groups.iter().map(|(_, _, pieces)| pieces.len()).sum();
        for (dict, mode, pieces) in groups {
            // Each gets its share of what may be left.
            let wanted = (pieces_max * pieces.len()).checked_div(all).unwrap_or(0).max(1);
            if wanted < pieces.len() {
                self.note_escalated(dict);
            }
            for group in cut(pieces, wanted) {
                self.widen_over(dict, mode, &group);
            }
        }
    }

    fn pieces_by_dict(&self) -> Vec<(DictId, LockMode, Vec<Piece>)> {
        let keys = self.db.locks.held_keys(&self.handle).into_iter().map(|key| {
            let mut to = key.key.clone();
            to.push(0);
            (key.dict, key.mode, Piece { from: key.key.clone(), to: Some(to), key: Some(key) })
        });
        let stretches = self.db.locks.held_stretches(&self.handle).into_iter();
        let stretches = stretches.map(|stretch| {
            (stretch.dict, stretch.mode, Piece { from: stretch.from, to: stretch.to, key: None })
        });
        let mut groups: Vec<(DictId, LockMode, Vec<Piece>)> = Vec::new();
        for (dict, mode, piece) in keys.chain(stretches) {
            match groups.iter_mut().find(|group| group.0 == dict && group.1 == mode) {
                Some(group) => group.2.push(piece),
                None => groups.push((dict, mode, vec![piece])),
            }
        }
        for (_, _, pieces) in &mut groups {
            pieces.sort_unstable_by(|a, b| a.from.cmp(&b.from));
        }
        groups
    }

    fn widen_over(&self, dict: DictId, mode: LockMode, group: &[Piece]) {
        let [first, .., last] = group else { return };
        let keys: Vec<HeldKey> = group.iter().filter_map(|piece| piece.key.clone()).collect();
        let is_endless = group.iter().any(|piece| piece.to.is_none());
        let to = (!is_endless).then(|| group.iter().filter_map(|piece| piece.to.as_deref()).max()).flatten();
        debug_assert!(last.from >= first.from);
        if self.db.locks.widen(&self.handle, dict, mode, (&first.from, to), &keys) {
            self.db.metrics.row_lock_stretches.add(1);
            return;
        }
        let (left, right) = group.split_at(group.len() / 2);
        self.widen_over(dict, mode, left);
        self.widen_over(dict, mode, right);
    }
}

/// Cuts ascending pieces into `wanted` groups, where the most lies between two.
fn cut(pieces: Vec<Piece>, wanted: usize) -> Vec<Vec<Piece>> {
    let shared = match pieces.as_slice() {
        [first, .., last] => first.from.iter().zip(&last.from).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = &key[shared.min(key.len())..];
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(bytes)
    };
    let mut cuts: Vec<(u64, u64, usize)> = (1..pieces.len())
        .map(|at| {
            let distance = number(&pieces[at].from).saturating_sub(number(&pieces[at - 1].from));
            (distance, (at as u64).reverse_bits(), at)
        })
        .collect();
    cuts.sort_unstable_by(|a, b| b.cmp(a));
    cuts.truncate(wanted.saturating_sub(1));
    let mut begins: Vec<usize> = cuts.into_iter().map(|(_, _, at)| at).collect();
    begins.sort_unstable();
    let mut groups = vec![Vec::new()];
    let mut begins = begins.into_iter().peekable();
    for (at, piece) in pieces.into_iter().enumerate() {
        if begins.next_if_eq(&at).is_some() {
            groups.push(Vec::new());
        }
        groups.last_mut().expect("there is one").push(piece);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(keys: &[u32], wanted: usize) -> Vec<Vec<u32>> {
        let pieces = keys.iter().map(|key| {
            let from = [&b"in common"[..], &key.to_be_bytes()].concat();
            Piece { to: Some([&from[..], &[0]].concat()), from, key: None }
        });
        let key = |piece: Piece| u32::from_be_bytes(piece.from[9..].try_into().expect("four bytes"));
        cut(pieces.collect(), wanted).into_iter().map(|group| group.into_iter().map(key).collect()).collect()
    }

    #[test]
    fn cuts_are_made_where_most_lies_between() {
        let keys = [1, 2, 4, 1000, 1001, 1003, 70_000];
        assert_eq!(groups(&keys, 1), [keys.to_vec()]);
        assert_eq!(groups(&keys, 2), [vec![1, 2, 4, 1000, 1001, 1003], vec![70_000]]);
        assert_eq!(groups(&keys, 3), [vec![1, 2, 4], vec![1000, 1001, 1003], vec![70_000]]);
        assert_eq!(groups(&keys, 100).len(), keys.len());
        assert_eq!(groups(&[], 3), [Vec::<u32>::new()]);
    }

    #[test]
    fn equal_distances_are_cut_evenly() {
        let keys: Vec<u32> = (0..1024).map(|n| n * 2).collect();
        let groups = groups(&keys, 64);
        assert_eq!(groups.len(), 64);
        let longest = groups.iter().map(Vec::len).max();
        assert!(longest <= Some(32), "{longest:?}");
    }
}
