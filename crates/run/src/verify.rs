//! `CHECK TABLE` of a run: reads every block from the file and compares all that is said twice.

use pando_base::{compare_versions, Error, Kind, Result, Seqno};
use pando_column::{Segment, Shapes, RECORD_OVERHEAD_BYTES};

use crate::fuse_filter::{key_hash, FilterPage};
use crate::index::{Index, Totals};
use crate::run::Run;

impl Run {
    /// Reads all blocks of the run from the file, not from the cache, and verifies: checksums and
    /// structure, the order of all records, what the index says of each segment, what the node says of
    /// the run, that the filters know every key, and that the zones of rows of `shapes` are those of their values.
    ///
    /// # Errors
    /// [`Error::Corruption`] naming the first block that is wrong; those of reading.
    pub fn verify(&self, shapes: &Shapes) -> Result<()> {
        let index = self.read_index()?;
        let meta = self.meta();
        let mut check = Check { run: self, index: &index, shapes, last: None, page: None };
        if let Some(place) = index.common() {
            self.read_common(place)?;
        }
        for number in 0..index.len() {
            check.segment(number)?;
        }
        let seqnos = index.entries().iter();
        let min_seqno = seqnos.clone().map(|e| e.min_seqno).min();
        let max_seqno = seqnos.map(|e| e.max_seqno).max();
        let totals = index.totals();
        let found = (totals.rows, totals.tombstones, totals.raw_bytes, min_seqno, max_seqno);
        let (min, max) = (Some(meta.min_seqno), Some(meta.max_seqno));
        let expected = (meta.rows, meta.tombstones, meta.raw_bytes, min, max);
        let offset = meta.index.offset;
        check.equal(offset, "totals of a run", expected, found)?;
        let last_key = check.last.as_ref().map(|(key, _)| &key[..]);
        check.equal(offset, "largest key of a run", Some(&meta.max_key[..]), last_key)
    }
}

struct Check<'a> {
    run: &'a Run,
    index: &'a Index,
    shapes: &'a Shapes,
    /// Key and seqno of the last record of the segment before.
    last: Option<(Vec<u8>, Seqno)>,
    /// The filter page read last, and its number.
    page: Option<(u32, FilterPage)>,
}

impl Check<'_> {
    fn segment(&mut self, number: usize) -> Result<()> {
        let entry = self.index.entry(number);
        let offset = entry.place.offset;
        // Order within the segment, its rows and its first key are verified by reading it.
        let segment = self.run.read_segment(self.index, number)?;
        let first = segment.record(0);
        let continues = self.last.as_ref().is_some_and(|(key, _)| key == first.key);
        self.equal(offset, "continuation of a key", entry.continues(), continues)?;
        let ordered = match &self.last {
            Some((key, seqno)) => compare_versions((key, *seqno), (first.key, first.seqno)).is_lt(),
            None => true,
        };
        self.equal(offset, "order of segments", true, ordered)?;

        let totals = self.index.of_segment(number);
        let expected = (totals, entry.min_seqno, entry.max_seqno, entry.single_version());
        self.equal(offset, "counts of a segment", expected, counts(&segment))?;
        if let Some(page) = entry.filter {
            self.filter(page, &segment)?;
        }
        self.zones(number, &segment)?;
        let last = segment.record(segment.rows() - 1);
        self.last = Some((last.key.to_vec(), last.seqno));
        Ok(())
    }

    /// What is passed over because of a wrong zone is a wrong answer.
    fn zones(&self, number: usize, segment: &Segment) -> Result<()> {
        let said = self.index.zones(number);
        let known = !said.is_empty() && self.shapes.knows(said);
        if !known {
            return Ok(());
        }
        let found = self.shapes.zones_of(said, (0..segment.rows()).map(|row| segment.value(row)));
        self.equal(self.run.meta().index.offset, "zones of a segment", Some(said), found.as_deref())
    }

    fn filter(&mut self, number: u32, segment: &Segment) -> Result<()> {
        let Some(place) = self.index.filters().get(number as usize).copied() else { return Ok(()) };
        if self.page.as_ref().is_none_or(|(have, _)| *have != number) {
            self.page = Some((number, self.run.read_filter_page(place)?));
        }
        let Some((_, page)) = &self.page else { return Ok(()) };
        let missing = (0..segment.rows()).find(|row| !page.may_contain(key_hash(segment.key(*row))));
        self.equal(place.offset, "keys that a filter page denies", None, missing)
    }

    fn equal<T: PartialEq + std::fmt::Debug>(
        &self,
        offset: u64,
        what: &str,
        expected: T,
        found: T,
    ) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        let path = self.run.context().file.path();
        Err(Error::corruption(&path, offset, what, format!("{expected:?}"), format!("{found:?}")))
    }
}

fn counts(segment: &Segment) -> (Totals, Seqno, Seqno, bool) {
    let mut totals = Totals::default();
    let (mut min, mut max, mut single) = (Seqno::MAX, 0, true);
    for row in 0..segment.rows() {
        let r = segment.record(row);
        totals.rows += 1;
        totals.tombstones += u64::from(r.kind == Kind::Delete);
        totals.raw_bytes += (r.key.len() + r.value.len() + RECORD_OVERHEAD_BYTES) as u64;
        (min, max) = (min.min(r.seqno), max.max(r.seqno));
        single &= row == 0 || segment.key(row - 1) != r.key;
    }
    (totals, min, max, single)
}
