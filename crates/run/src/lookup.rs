//! Point lookups: in one run, or in all that lie on a path.
//!
//! 1. smallest and largest key and seqno, 2. the filter page of the segment the key would be in, 3. the index, and that segment; in
//!    the rare case that versions of the key go on there, the next one too.
//!
//! Where a row is inserted with a new key, or updated, many runs are asked, and nearly all say no at step 2. So [`Lookup::screened`] looks the pages up
//! for all of them first, as far as they are in the cache, and then asks one filter right after another: each is three places in memory that are nowhere near the processor, and it
//! waits for those of several runs together.

use std::sync::Arc;

use pando_base::{Kind, Result, Seqno};
use pando_column::{PackedRow, Search, Segment};
use smallvec::SmallVec;

use crate::cache::{Block, PackedBlock};
use crate::fuse_filter::{key_hash, FilterPage};
use crate::index::Index;
use crate::run::Run;

/// So many filters at a time.
const AT_ONCE: usize = 16;

/// A version that a lookup found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its seqno.
    pub seqno: Seqno,
    /// Put or Delete.
    pub kind: Kind,
    /// Its value; empty for a Delete.
    pub value: Vec<u8>,
}

/// A search for the newest version of a key up to a snapshot, in as many runs as there are.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'k> {
    key: &'k [u8],
    hash: u64,
    snapshot: Seqno,
    is_expected: bool,
}

impl<'k> Lookup<'k> {
    /// Hashes the key, for the filters of all runs.
    pub fn new(key: &'k [u8], snapshot: Seqno) -> Lookup<'k> {
        Lookup { key, hash: key_hash(key), snapshot, is_expected: false }
    }

    /// The same where the only run that is left to be asked has the key, as far as anybody can tell: its filter is not asked.
    pub fn expected(self) -> Lookup<'k> {
        Lookup { is_expected: true, ..self }
    }

    /// The same where nobody can tell.
    pub fn unexpected(self) -> Lookup<'k> {
        Lookup { is_expected: false, ..self }
    }

    /// The key.
    pub fn key(&self) -> &'k [u8] {
        self.key
    }

    /// Those of `runs` that may have such a version, in the order given.
    ///
    /// Runs whose filter's page is not in the cache are left until those before them have been handed out: if one of these has it, nothing is
    /// read for them.
    pub fn screened<'r, R: Iterator<Item = &'r Run>>(self, runs: R) -> Screened<'k, 'r, R> {
        Screened { lookup: self, runs, first: None, held: None, ready: SmallVec::new().into_iter() }
    }
}

/// See [`Lookup::screened`].
#[derive(Debug)]
pub struct Screened<'k, 'r, R> {
    lookup: Lookup<'k>,
    runs: R,
    /// The first two that are not in a group yet, as far as they were taken.
    first: Option<&'r Run>,
    held: Option<&'r Run>,
    ready: smallvec::IntoIter<[Candidate<'k, 'r>; AT_ONCE]>,
}

impl<'k, 'r, R: Iterator<Item = &'r Run>> Screened<'k, 'r, R> {
    fn take(&mut self) -> Option<&'r Run> {
        self.first.take().or_else(|| self.held.take()).or_else(|| self.runs.next())
    }

    /// The only run that is left in range. `None`: there is none, or another.
    fn take_last(&mut self) -> Option<Candidate<'k, 'r>> {
        let lookup = self.lookup;
        let mut in_range = || loop {
            let run = self.take()?;
            if run.is_in_range(&lookup) {
                return Some(run);
            }
        };
        let (run, other) = (in_range()?, in_range());
        if other.is_none() {
            return Some(Candidate { lookup, run, filter: None });
        }
        (self.first, self.held) = (Some(run), other);
        None
    }

    /// Asks the filters of the next group. False: there is none.
    fn next_group(&mut self) -> Result<bool> {
        let mut group: SmallVec<[Candidate<'k, 'r>; AT_ONCE]> = SmallVec::new();
        while group.len() < AT_ONCE {
            let Some(run) = self.take() else { break };
            if !run.is_in_range(&self.lookup) {
                continue;
            }
            let filter = match group.is_empty() {
                true => run.filter_for(self.lookup.key)?,
                false => match run.cached_filter_for(self.lookup.key) {
                    Some(filter) => filter,
                    None => {
                        self.held = Some(run);
                        break;
                    }
                },
            };
            group.push(Candidate { lookup: self.lookup, run, filter });
        }
        let Some(metrics) = group.first().map(|candidate| &candidate.run.context().metrics) else {
            return Ok(false);
        };
        // Nothing else is done between these that the processor would have to wait for.
        let maybe: SmallVec<[bool; AT_ONCE]> = group.iter().map(Candidate::may_have_it).collect();
        let asked = group.iter().zip(&maybe).filter(|(candidate, _)| candidate.filter.is_some());
        let (probes, negatives) = asked.fold((0, 0), |(all, no), (_, may)| (all + 1, no + u64::from(!may)));
        metrics.filter_probes.add(probes);
        metrics.filter_negatives.add(negatives);
        let passed = group.into_iter().zip(maybe).filter_map(|(candidate, may)| may.then_some(candidate));
        self.ready = passed.collect::<SmallVec<_>>().into_iter();
        Ok(true)
    }
}

impl<'k, 'r, R: Iterator<Item = &'r Run>> Iterator for Screened<'k, 'r, R> {
    type Item = Result<Candidate<'k, 'r>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(candidate) = self.ready.next() {
                return Some(Ok(candidate));
            }
            if self.lookup.is_expected {
                if let Some(candidate) = self.take_last() {
                    return Some(Ok(candidate));
                }
            }
            match self.next_group() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// A run that may have what is looked for.
#[derive(Debug)]
pub struct Candidate<'k, 'r> {
    lookup: Lookup<'k>,
    run: &'r Run,
    /// That of the key's segment; `None`: only the segment knows, or is asked at once.
    filter: Option<Arc<FilterPage>>,
}

impl Candidate<'_, '_> {
    /// The version, if the run has one.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn get(&self) -> Result<Option<Found>> {
        let Some(located) = self.locate()? else { return Ok(None) };
        Ok(Some(match located {
            Located::Decoded(segment, row) => {
                let r = segment.record(row);
                Found { seqno: r.seqno, kind: r.kind, value: r.value.to_vec() }
            }
            Located::Packed { block, row, offset } => {
                let value = block.packed.value(&row).map_err(|e| self.run.damaged(offset, e))?;
                Found { seqno: row.seqno, kind: row.kind, value }
            }
        }))
    }

    /// Its seqno and kind alone.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn seqno_and_kind(&self) -> Result<Option<(Seqno, Kind)>> {
        Ok(self.locate()?.map(|located| match located {
            Located::Decoded(segment, row) => (segment.seqno(row), segment.kind(row)),
            Located::Packed { row, .. } => (row.seqno, row.kind),
        }))
    }

    fn may_have_it(&self) -> bool {
        self.filter.as_ref().is_none_or(|page| page.may_contain(self.lookup.hash))
    }

    fn locate(&self) -> Result<Option<Located>> {
        let key = self.lookup.key;
        let index = self.run.index()?;
        let mut number = index.segment_for(key);
        loop {
            if let Some(located) = self.locate_in(&index, number)? {
                return Ok(located);
            }
            // All of this segment is before the version: it may be the first of the next one.
            number += 1;
            if number == index.len() || index.first_key(number) != key {
                return Ok(None);
            }
        }
    }

    /// The version in segment `number`, or that it is not there; `None`: all of the segment is before it.
    fn locate_in(&self, index: &Index, number: usize) -> Result<Option<Option<Located>>> {
        let Lookup { key, snapshot, .. } = self.lookup;
        let block = self.run.segment_block(index, number)?;
        if let Block::Packed(packed) = &block {
            if !self.run.context().cache.is_worth_decoding(packed, 1) {
                let offset = index.entry(number).place.offset;
                let found = packed.packed.find(key, snapshot, index.first_key(number));
                let found = found.map_err(|e| self.run.damaged(offset, e))?;
                return Ok(match found {
                    Search::Found(row) => Some(Some(Located::Packed { block: packed.clone(), row, offset })),
                    Search::Absent => Some(None),
                    Search::Beyond => None,
                });
            }
        }
        let segment = self.run.decoded(index, number, block)?;
        let row = segment.lower_bound_version(key, snapshot);
        if row == segment.rows() {
            return Ok(None);
        }
        Ok(Some((segment.key(row) == key).then_some(Located::Decoded(segment, row))))
    }
}

/// Where a version is.
enum Located {
    Decoded(Arc<Segment>, usize),
    Packed { block: Arc<PackedBlock>, row: PackedRow, offset: u64 },
}

impl Run {
    /// What the lookup finds in this run alone.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn get(&self, lookup: &Lookup<'_>) -> Result<Option<Found>> {
        lookup.screened([self].into_iter()).next().map_or(Ok(None), |candidate| candidate?.get())
    }

    /// As [`Self::get`], but seqno and kind alone.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn seqno_and_kind(&self, lookup: &Lookup<'_>) -> Result<Option<(Seqno, Kind)>> {
        lookup.screened([self].into_iter()).next().map_or(Ok(None), |candidate| candidate?.seqno_and_kind())
    }

    fn is_in_range(&self, lookup: &Lookup<'_>) -> bool {
        let meta = self.meta();
        meta.min_key[..] <= *lookup.key
            && *lookup.key <= meta.max_key[..]
            && meta.min_seqno <= lookup.snapshot
    }

    /// The filter's page that has the key, if it has a filter; read if it is not in the cache.
    fn filter_for(&self, key: &[u8]) -> Result<Option<Arc<FilterPage>>> {
        self.pages()?.page_for(key).map(|place| self.filter_page(place)).transpose()
    }

    /// The same, if nothing has to be read for it.
    fn cached_filter_for(&self, key: &[u8]) -> Option<Option<Arc<FilterPage>>> {
        match self.cached_pages()?.page_for(key) {
            None => Some(None),
            Some(place) => self.cached_filter_page(place).map(Some),
        }
    }
}
