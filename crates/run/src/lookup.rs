//! Point lookups: in one run, or in all that lie on a path.
//!
//! 1. smallest and largest key and seqno, 2. the filter page of the segment the key would be in, 3. the index, and that segment; in
//!    the rare case that versions of the key go on there, the next one too.
//!
//! Where a row is inserted with a new key, or updated, many runs are asked, and nearly all say no at step 2. So [`screened`] looks the pages up
//! for all of them first, and then asks one filter right after another: each is three places in memory that are nowhere near the processor, and it
//! waits for those of several runs together.

use std::sync::Arc;

use pando_base::{Kind, Result, Seqno, MAX_SEQNO};
use pando_column::Segment;
use smallvec::SmallVec;

use crate::filter::FilterPage;
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

/// A run that may have a key, as far as was asked.
#[derive(Debug)]
pub struct Candidate<'r> {
    run: &'r Run,
    /// That of the key's segment; `None`: only the segment knows.
    filter: Option<Arc<FilterPage>>,
}

impl Candidate<'_> {
    /// The newest version of `key` up to `snapshot`, if the run has one.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn get(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Found>> {
        let found = self.locate(key, snapshot)?;
        Ok(found.map(|(segment, row)| {
            let r = segment.record(row);
            Found { seqno: r.seqno, kind: r.kind, value: r.value.to_vec() }
        }))
    }

    /// Seqno and kind of the newest version of `key`, if the run has one.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn newest(&self, key: &[u8]) -> Result<Option<(Seqno, Kind)>> {
        let found = self.locate(key, MAX_SEQNO)?;
        Ok(found.map(|(segment, row)| (segment.seqno(row), segment.kind(row))))
    }

    /// What its filter says.
    fn passes(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|page| page.may_contain(hash))
    }

    /// Where the newest version of `key` up to `snapshot` is.
    fn locate(&self, key: &[u8], snapshot: Seqno) -> Result<Option<(Arc<Segment>, usize)>> {
        let index = self.run.index()?;
        let mut number = index.segment_for(key);
        loop {
            let segment = self.run.segment(&index, number)?;
            let row = segment.lower_bound_version(key, snapshot);
            if row < segment.rows() {
                return Ok((segment.key(row) == key).then_some((segment, row)));
            }
            // All of this segment is before the version: it may be the first of the next one.
            number += 1;
            if number == index.len() || index.first_key(number) != key {
                return Ok(None);
            }
        }
    }
}

/// Those of `runs` that may have a version of `key` up to `snapshot`, in the order given; `hash` is
/// [`key_hash`](crate::key_hash)`(key)`.
///
/// # Errors
/// Those of reading blocks.
pub fn screened<'r>(
    runs: impl IntoIterator<Item = &'r Run>,
    key: &[u8],
    hash: u64,
    snapshot: Seqno,
) -> Result<Vec<Candidate<'r>>> {
    let mut passed = Vec::new();
    let mut runs = runs.into_iter().peekable();
    while let Some(metrics) = runs.peek().map(|run| &run.context().metrics) {
        let mut group: SmallVec<[Candidate<'r>; AT_ONCE]> = SmallVec::new();
        for run in runs.by_ref().take(AT_ONCE) {
            group.extend(run.candidate(key, snapshot)?);
        }
        // Nothing else is done between these that the processor would have to wait for.
        let maybe: SmallVec<[bool; AT_ONCE]> = group.iter().map(|candidate| candidate.passes(hash)).collect();
        let asked = group.iter().zip(&maybe).filter(|(candidate, _)| candidate.filter.is_some());
        let (probes, negatives) = asked.fold((0, 0), |(all, no), (_, may)| (all + 1, no + u64::from(!may)));
        metrics.filter_probes.add(probes);
        metrics.filter_negatives.add(negatives);
        passed.extend(group.into_iter().zip(maybe).filter_map(|(candidate, may)| may.then_some(candidate)));
    }
    Ok(passed)
}

impl Run {
    /// The newest version of `key` up to `snapshot`, if this run has one; `hash` is [`key_hash`](crate::key_hash)`(key)`.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn get(&self, key: &[u8], hash: u64, snapshot: Seqno) -> Result<Option<Found>> {
        let candidate = screened([self], key, hash, snapshot)?;
        candidate.first().map_or(Ok(None), |candidate| candidate.get(key, snapshot))
    }

    /// Seqno and kind of the newest version of `key`, if this run has one; `hash` as in [`Self::get`].
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn newest(&self, key: &[u8], hash: u64) -> Result<Option<(Seqno, Kind)>> {
        let candidate = screened([self], key, hash, MAX_SEQNO)?;
        candidate.first().map_or(Ok(None), |candidate| candidate.newest(key))
    }

    /// Steps 1 and 2, but for asking the filter. `None`: not here.
    fn candidate(&self, key: &[u8], snapshot: Seqno) -> Result<Option<Candidate<'_>>> {
        let meta = self.meta();
        if key < &meta.min_key[..] || key > &meta.max_key[..] || snapshot < meta.min_seqno {
            return Ok(None);
        }
        let filter = self.pages()?.page_for(key).map(|page| self.filter_page(page)).transpose()?;
        Ok(Some(Candidate { run: self, filter }))
    }
}
