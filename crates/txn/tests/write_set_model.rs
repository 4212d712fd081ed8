//! The write set against a model: a list of ops, replayed into a `BTreeMap` for each question.

use std::collections::BTreeMap;
use std::ops::Bound;

use pando_base::{DictId, Kind};
use pando_txn::{Mark, WriteSet};
use proptest::collection::vec;
use proptest::prelude::*;

type Key = Vec<u8>;

#[derive(Clone, Debug)]
enum Step {
    Put(u64, Key, Vec<u8>),
    Delete(u64, Key),
    Mark,
    /// To the mark at this position among those still valid, counted modulo their number.
    RollBack(usize),
    /// Ask about this key with the mark at this position.
    Ask(u64, Key, usize),
    /// Lets go of what was done before the mark at this position.
    Spill(usize),
    Clear,
}

/// The latest moment a mark stands for, and what was done before it.
#[derive(Default)]
struct Model {
    ops: Vec<(u64, Key, Option<Vec<u8>>)>,
    /// How many of the ops the write set has let go of.
    spilled: usize,
    marks: Vec<(usize, Mark)>,
}

impl Model {
    fn state(&self, dict: u64, ops: usize) -> BTreeMap<&[u8], Option<&[u8]>> {
        self.state_of(dict, self.spilled.min(ops)..ops)
    }

    fn state_of(&self, dict: u64, ops: std::ops::Range<usize>) -> BTreeMap<&[u8], Option<&[u8]>> {
        let ops = self.ops[ops].iter().filter(|(d, ..)| *d == dict);
        ops.map(|(_, key, value)| (key.as_slice(), value.as_deref())).collect()
    }

    fn mark(&self, position: usize) -> (usize, Mark) {
        match self.marks.len() {
            0 => (self.ops.len(), Mark::LATEST),
            n => self.marks[position % n],
        }
    }

    fn check_all(&self, writes: &WriteSet) {
        let mut finals = Vec::new();
        writes.for_each_final(|dict, key, kind, value| {
            assert!(kind == Kind::Put || value.is_empty());
            finals.push((dict.0, key.to_vec(), (kind == Kind::Put).then(|| value.to_vec())));
        });
        let mut expected = Vec::new();
        for dict in 0..3 {
            let state = self.state(dict, self.ops.len());
            assert_eq!(writes.keys(DictId(dict)), state.len());
            expected.extend(state.iter().map(|(k, v)| (dict, k.to_vec(), v.map(<[u8]>::to_vec))));
        }
        assert_eq!(finals, expected);
        assert_eq!(writes.ops(), self.ops.len() as u64);
        assert_eq!(writes.ops_held(), (self.ops.len() - self.spilled) as u64);
        assert_eq!(writes.is_empty(), self.ops.is_empty());
    }

    /// The final state of the ops from one moment to another, as it is to be spilled.
    fn check_stretch(
        &self,
        writes: &WriteSet,
        (from, from_mark): (usize, Mark),
        (to, to_mark): (usize, Mark),
    ) {
        let from = from.max(self.spilled);
        let mut found = Vec::new();
        for dict in 0..3 {
            let done: Result<(), ()> =
                writes.try_for_each_final_of(DictId(dict), from_mark, to_mark, |key, kind, value| {
                    found.push((dict, key.to_vec(), (kind == Kind::Put).then(|| value.to_vec())));
                    Ok(())
                });
            assert!(done.is_ok());
        }
        let mut expected = Vec::new();
        for dict in (0..3).filter(|_| from < to) {
            let state = self.state_of(dict, from..to);
            expected.extend(state.iter().map(|(k, v)| (dict, k.to_vec(), v.map(<[u8]>::to_vec))));
        }
        assert_eq!(found, expected);
    }

    fn check_key(&self, writes: &WriteSet, dict: u64, key: &[u8], (ops, mark): (usize, Mark)) {
        let state = self.state(dict, ops);
        let id = DictId(dict);
        let at = |found: Option<(&&'_ [u8], &Option<&'_ [u8]>)>| {
            found.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)))
        };
        let own = |found: Option<(&[u8], Option<&[u8]>)>| {
            found.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)))
        };
        assert_eq!(writes.get_at(id, key, mark), state.get(key).copied());
        for bound in [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded] {
            let expected = at(state.range::<[u8], _>((bound, Bound::Unbounded)).next());
            assert_eq!(own(writes.next_ge(id, bound, mark)), expected, "next_ge {bound:?}");
            let expected = at(state.range::<[u8], _>((Bound::Unbounded, bound)).next_back());
            assert_eq!(own(writes.next_le(id, bound, mark)), expected, "next_le {bound:?}");
        }
    }
}

/// Keys that meet often, some with more than eight common bytes.
fn keys() -> impl Strategy<Value = Key> {
    prop_oneof![
        vec(0u8..3, 0..4),
        (0u8..60).prop_map(|i| [&b"a long beginning "[..], &[i]].concat()),
        (0u16..2000).prop_map(|i| i.to_be_bytes().to_vec()),
    ]
}

/// A key written in this dictionary: those of the last one all begin alike.
fn key_in(dict: u64, key: Key) -> Key {
    match dict {
        2 => [&b"0123456789abcdef"[..], &key].concat(),
        _ => key,
    }
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0u64..3, keys(), vec(any::<u8>(), 0..20)).prop_map(|(d, k, v)| Step::Put(d, key_in(d, k), v)),
        8 => (0u64..3, keys()).prop_map(|(d, k)| Step::Delete(d, key_in(d, k))),
        5 => Just(Step::Mark),
        2 => any::<usize>().prop_map(Step::RollBack),
        1 => any::<usize>().prop_map(Step::Spill),
        8 => (0u64..3, keys(), any::<usize>()).prop_map(|(d, k, m)| Step::Ask(d, key_in(d, k), m)),
        2 => (0u64..3, keys(), any::<usize>()).prop_map(|(d, k, m)| Step::Ask(d, k, m)),
        1 => prop_oneof![9 => Just(Step::Mark), 1 => Just(Step::Clear)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_write_set_answers_as_the_list_of_its_ops_would(steps in vec(steps(), 0..600)) {
        let mut writes = WriteSet::new();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Put(dict, key, value) => {
                    writes.put(DictId(dict), &key, &value);
                    model.ops.push((dict, key, Some(value)));
                }
                Step::Delete(dict, key) => {
                    writes.delete(DictId(dict), &key);
                    model.ops.push((dict, key, None));
                }
                Step::Mark => model.marks.push((model.ops.len(), writes.mark())),
                Step::RollBack(position) => {
                    let (ops, mark) = model.mark(position);
                    writes.rollback_to(mark);
                    model.ops.truncate(ops);
                    model.spilled = model.spilled.min(ops);
                    model.marks.retain(|(at, _)| *at <= ops);
                    model.check_all(&writes);
                }
                Step::Ask(dict, key, position) => {
                    model.check_key(&writes, dict, &key, model.mark(position));
                    model.check_key(&writes, dict, &key, (model.ops.len(), Mark::LATEST));
                }
                Step::Spill(position) => {
                    let (ops, mark) = model.mark(position);
                    model.check_stretch(&writes, (0, Mark::START), (ops, mark));
                    model.check_stretch(&writes, (ops, mark), (model.ops.len(), Mark::LATEST));
                    writes.keep_from(mark);
                    model.spilled = model.spilled.max(ops);
                    model.check_all(&writes);
                }
                Step::Clear => {
                    writes.clear();
                    model = Model::default();
                }
            }
        }
        model.check_all(&writes);
    }
}
