//! What one log record says: a batch of entries, encoded as they are added and decoded in place.
//!
//! ```text
//! put             01  dict  key length  key bytes  value length  value bytes
//! delete          02  dict  key length  key bytes
//! truncate        03  dict
//! auto-increment  04  dict  next
//! adopt           05  dict  length  description of a private run (crates/run/src/run_meta.rs)
//! delete range    06  dict  lo length  lo bytes  hi length + 1, or 0 for no end  hi bytes
//! ```
//! A transaction's adopted runs of a dictionary come before its records there, oldest first: of a key that
//! is in several of them, the last one counts.
//!
//! Of a batch that is not simply a commit, the first thing says what it is instead:
//!
//! ```text
//! prepare           10  xid length  xid bytes   the entries wait for a batch that resolves them
//! commit prepared   11  prepare's seqno         they are committed, with the seqno of this batch
//! rollback prepared 12  prepare's seqno         they are not to be
//! prepare anew      13  prepare's seqno  xid length  xid bytes
//!                                               as prepare, and that one counts no more
//! ```
//! The entries may be encrypted (`sealed`).
//!
//! Numbers are unsigned LEB128, tags are hexadecimal. Keys are the final bytes of the dictionary: recovery re-derives
//! nothing. The seqno is not in here: it stands in the frame, as it is assigned at append.
#![deny(clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error, Kind, Result, Seqno};
use pando_storage::Place;

use crate::sealed::SealedEntries;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const TRUNCATE: u8 = 3;
const AUTO_INCREMENT: u8 = 4;
const ADOPT: u8 = 5;
const DELETE_RANGE: u8 = 6;
/// Encrypted entries: see `sealed`.
pub(crate) const ENCRYPTED: u8 = 0x20;
const PREPARE: u8 = 0x10;
const COMMIT_PREPARED: u8 = 0x11;
const ROLLBACK_PREPARED: u8 = 0x12;
const PREPARE_ANEW: u8 = 0x13;

/// Most bytes of a batch that only resolves a prepared one: a tag and a number.
pub(crate) const RESOLUTION_BYTES_MAX: usize = 11;

/// What a batch says about its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind<'a> {
    /// They are committed.
    Commit,
    /// They wait for their resolution.
    Prepare {
        /// The transaction's name, the coordinator's to choose.
        xid: &'a [u8],
    },
    /// As `Prepare`, for a transaction that was prepared before: from here on this batch is the one that counts.
    PrepareAnew {
        /// The transaction's name.
        xid: &'a [u8],
        /// Seqno of the batch that it replaces, which may be gone.
        previous: Seqno,
    },
    /// Those of another batch are committed with this one's seqno; it has none of its own.
    CommitPrepared {
        /// Seqno of the batch that prepared them.
        prepare: Seqno,
    },
    /// Those of another batch are void; it has none of its own.
    RollbackPrepared {
        /// Seqno of the batch that prepared them.
        prepare: Seqno,
    },
}

/// One change that a batch carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A version of a key.
    Record {
        /// The dictionary it belongs to.
        dict: DictId,
        /// Put or Delete.
        kind: Kind,
        /// The key.
        key: &'a [u8],
        /// The value; empty for a Delete.
        value: &'a [u8],
    },
    /// Everything in the dictionary up to this batch is gone.
    Truncate {
        /// The dictionary.
        dict: DictId,
    },
    /// The next auto-increment value is at least this.
    AutoIncrement {
        /// The dictionary of the rows.
        dict: DictId,
        /// The value.
        next: u64,
    },
    /// The records of a run that the transaction has written into the dictionary's file, each of them
    /// a version as of this batch.
    Adopt {
        /// The dictionary.
        dict: DictId,
        /// The run's encoded description.
        run: &'a [u8],
    },
    /// All keys of a range are gone.
    DeleteRange {
        /// The dictionary.
        dict: DictId,
        /// The first key.
        lo: &'a [u8],
        /// The first key behind them, if there is an end.
        hi: Option<&'a [u8]>,
    },
}

impl Entry<'_> {
    /// The dictionary the entry is about.
    pub fn dict(&self) -> DictId {
        match *self {
            Entry::Record { dict, .. }
            | Entry::Truncate { dict }
            | Entry::AutoIncrement { dict, .. }
            | Entry::Adopt { dict, .. }
            | Entry::DeleteRange { dict, .. } => dict,
        }
    }
}

/// Collects the entries of one commit, encoded as they come. Meant to be kept and cleared.
#[derive(Clone, Debug, Default)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    /// Where the entries begin.
    entries_at: usize,
    /// Extents of the private runs among them.
    adopted: Vec<(DictId, Vec<Place>)>,
    is_secret: bool,
}

impl BatchBuilder {
    /// An empty batch.
    pub fn new() -> BatchBuilder {
        BatchBuilder::default()
    }

    /// Adds a version of a key. The value of a Delete must be empty.
    pub fn record(&mut self, dict: DictId, kind: Kind, key: &[u8], value: &[u8]) {
        self.bytes.reserve(key.len() + value.len() + 24);
        match kind {
            Kind::Put => self.bytes.push(PUT),
            Kind::Delete => {
                assert!(value.is_empty(), "a Delete carries no value");
                self.bytes.push(DELETE);
            }
        }
        self.number(dict.0);
        self.number(key.len() as u64);
        self.bytes.extend_from_slice(key);
        if kind == Kind::Put {
            self.number(value.len() as u64);
            self.bytes.extend_from_slice(value);
        }
    }

    /// Adds the truncation of a dictionary.
    pub fn truncate(&mut self, dict: DictId) {
        self.bytes.push(TRUNCATE);
        self.number(dict.0);
    }

    /// Adds the deletion of `[lo, hi)`.
    pub fn delete_range(&mut self, dict: DictId, lo: &[u8], hi: Option<&[u8]>) {
        self.bytes.push(DELETE_RANGE);
        self.number(dict.0);
        self.number(lo.len() as u64);
        self.bytes.extend_from_slice(lo);
        self.number(hi.map_or(0, |hi| hi.len() as u64 + 1));
        self.bytes.extend_from_slice(hi.unwrap_or_default());
    }

    /// Adds a lower bound for the next auto-increment value.
    pub fn auto_increment(&mut self, dict: DictId, next: u64) {
        if is_planted(Bug::CounterNotLogged) {
            return;
        }
        self.bytes.push(AUTO_INCREMENT);
        self.number(dict.0);
        self.number(next);
    }

    /// Begins a batch that prepares a transaction: before any entry.
    pub fn prepare(&mut self, xid: &[u8]) {
        assert!(self.is_empty(), "what a batch is stands at its begin");
        self.bytes.push(PREPARE);
        self.number(xid.len() as u64);
        self.bytes.extend_from_slice(xid);
        self.entries_at = self.bytes.len();
    }

    /// As [`BatchBuilder::prepare`], in place of the batch `previous`.
    pub fn prepare_anew(&mut self, xid: &[u8], previous: Seqno) {
        assert!(self.is_empty(), "what a batch is stands at its begin");
        self.bytes.push(PREPARE_ANEW);
        self.number(previous);
        self.number(xid.len() as u64);
        self.bytes.extend_from_slice(xid);
        self.entries_at = self.bytes.len();
    }

    /// The batch that commits what the batch `prepare` has.
    pub fn commit_prepared(prepare: Seqno) -> BatchBuilder {
        BatchBuilder::resolution(COMMIT_PREPARED, prepare)
    }

    /// The batch that gives up what the batch `prepare` has.
    pub fn rollback_prepared(prepare: Seqno) -> BatchBuilder {
        BatchBuilder::resolution(ROLLBACK_PREPARED, prepare)
    }

    fn resolution(tag: u8, prepare: Seqno) -> BatchBuilder {
        let mut batch =
            BatchBuilder { bytes: Vec::with_capacity(RESOLUTION_BYTES_MAX), ..BatchBuilder::default() };
        batch.bytes.push(tag);
        batch.number(prepare);
        batch.entries_at = batch.bytes.len();
        batch
    }

    /// Adds a private run by its encoded description, and the extents that it takes.
    pub fn adopt(&mut self, dict: DictId, run: &[u8], extents: &[Place]) {
        self.adopted.push((dict, extents.to_vec()));
        self.bytes.push(ADOPT);
        self.number(dict.0);
        self.number(run.len() as u64);
        self.bytes.extend_from_slice(run);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes it will take in the log, without the frames' headers.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the entries, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.adopted.clear();
        (self.entries_at, self.is_secret) = (0, false);
    }

    /// The entries are encrypted in the log, whatever the log does with others: they are of a table that is.
    pub fn keep_secret(&mut self) {
        self.is_secret = true;
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Whether there are entries, and not only a resolution.
    pub(crate) fn has_entries(&self) -> bool {
        self.entries_at < self.bytes.len()
    }

    /// What is before the entries, and they.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.entries_at)
    }

    pub(crate) fn adopted(&self) -> &[(DictId, Vec<Place>)] {
        &self.adopted
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn number(&mut self, n: u64) {
        put_number(&mut self.bytes, n);
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Bytes to be read from their begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn prefixed(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.number()?).ok()?;
        self.take(n)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.first().copied()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            n |= part << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
}

/// Iterates over the entries of one batch. After an error it ends.
#[derive(Clone, Copy, Debug)]
pub struct BatchReader<'a> {
    kind: BatchKind<'a>,
    rest: &'a [u8],
    whole_len: usize,
    path: &'a Path,
    offset: u64,
    /// The entries, if they are encrypted; then there are no others.
    sealed: Option<SealedEntries<'a>>,
    /// The entries were encrypted.
    is_secret: bool,
}

impl<'a> BatchReader<'a> {
    /// `path` and `offset` say where the batch begins, for errors.
    pub(crate) fn new(bytes: &'a [u8], path: &'a Path, offset: u64) -> BatchReader<'a> {
        let mut reader = BatchReader {
            kind: BatchKind::Commit,
            rest: bytes,
            whole_len: bytes.len(),
            path,
            offset,
            sealed: None,
            is_secret: false,
        };
        match reader.take_kind() {
            Some(kind) => reader.kind = kind,
            // An entry, or what the first step reports.
            None => reader.rest = bytes,
        }
        if let Some((&ENCRYPTED, rest)) = reader.rest.split_first() {
            reader.sealed = SealedEntries::parse(bytes, rest);
            // One that is not whole is an entry that nobody knows.
            if reader.sealed.is_some() {
                reader.rest = &[];
            }
        }
        reader
    }

    /// The entries, if they are encrypted; then none is told.
    pub fn sealed(&self) -> Option<&SealedEntries<'a>> {
        self.sealed.as_ref()
    }

    /// The same batch with its decrypted entries.
    pub(crate) fn with_entries<'b>(&self, entries: &'b [u8]) -> BatchReader<'b>
    where
        'a: 'b,
    {
        BatchReader { rest: entries, whole_len: entries.len(), sealed: None, is_secret: true, ..*self }
    }

    /// What the batch says about its entries.
    pub fn kind(&self) -> BatchKind<'a> {
        self.kind
    }

    /// The entries not yet read, to be kept.
    pub fn to_batch(&self) -> OwnedBatch {
        OwnedBatch {
            bytes: self.rest.to_vec(),
            path: self.path.to_owned(),
            offset: self.offset,
            is_secret: self.is_secret,
        }
    }

    /// As [`BatchReader::to_batch`], but only the entries of some dictionaries.
    pub fn to_batch_of(mut self, mut wanted: impl FnMut(DictId) -> bool) -> Result<OwnedBatch> {
        let mut bytes = Vec::new();
        loop {
            let before = self.rest;
            let Some(entry) = self.next() else { break };
            let dict = entry?.dict();
            if wanted(dict) {
                let len = before.len().saturating_sub(self.rest.len());
                bytes.extend_from_slice(before.get(..len).unwrap_or_default());
            }
        }
        Ok(OwnedBatch { bytes, path: self.path.to_owned(), offset: self.offset, is_secret: self.is_secret })
    }

    fn take_kind(&mut self) -> Option<BatchKind<'a>> {
        match self.take(1)?.first().copied()? {
            PREPARE => Some(BatchKind::Prepare { xid: self.prefixed()? }),
            PREPARE_ANEW => {
                let previous = self.number()?;
                Some(BatchKind::PrepareAnew { xid: self.prefixed()?, previous })
            }
            COMMIT_PREPARED => Some(BatchKind::CommitPrepared { prepare: self.number()? }),
            ROLLBACK_PREPARED => Some(BatchKind::RollbackPrepared { prepare: self.number()? }),
            _ => None,
        }
    }

    /// Bytes of entries not yet read.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        let tag = self.take(1)?.first().copied()?;
        let dict = DictId(self.number()?);
        Some(match tag {
            PUT => {
                let key = self.prefixed()?;
                Entry::Record { dict, kind: Kind::Put, key, value: self.prefixed()? }
            }
            DELETE => Entry::Record { dict, kind: Kind::Delete, key: self.prefixed()?, value: &[] },
            TRUNCATE => Entry::Truncate { dict },
            AUTO_INCREMENT => Entry::AutoIncrement { dict, next: self.number()? },
            ADOPT => Entry::Adopt { dict, run: self.prefixed()? },
            DELETE_RANGE => {
                let lo = self.prefixed()?;
                let hi = match usize::try_from(self.number()?).ok()? {
                    0 => None,
                    len => Some(self.take(len - 1)?),
                };
                Entry::DeleteRange { dict, lo, hi }
            }
            _ => return None,
        })
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        self.read(|bytes| bytes.take(n))
    }

    fn prefixed(&mut self) -> Option<&'a [u8]> {
        self.read(Bytes::prefixed)
    }

    fn number(&mut self) -> Option<u64> {
        self.read(Bytes::number)
    }

    fn read<T>(&mut self, read: impl FnOnce(&mut Bytes<'a>) -> Option<T>) -> Option<T> {
        let mut bytes = Bytes(self.rest);
        let found = read(&mut bytes);
        self.rest = bytes.0;
        found
    }
}

impl<'a> Iterator for BatchReader<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Result<Entry<'a>>> {
        if self.rest.is_empty() {
            return None;
        }
        let before = self.rest;
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or_else(|| {
            let at = self.whole_len - before.len();
            Error::corruption(
                self.path,
                self.offset,
                format!("entry at byte {at} of the batch"),
                "a whole entry of a known kind",
                format!("{} bytes beginning with {:02x?}", before.len(), before.get(..8).unwrap_or(before)),
            )
        }))
    }
}

/// The entries of a batch, kept beyond the pass that found it.
#[derive(Clone, Debug, Default)]
pub struct OwnedBatch {
    bytes: Vec<u8>,
    path: PathBuf,
    offset: u64,
    is_secret: bool,
}

impl OwnedBatch {
    /// Its entries.
    pub fn entries(&self) -> BatchReader<'_> {
        BatchReader {
            kind: BatchKind::Commit,
            rest: &self.bytes,
            whole_len: self.bytes.len(),
            path: &self.path,
            offset: self.offset,
            sealed: None,
            is_secret: self.is_secret,
        }
    }

    /// Bytes of its entries.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the log had the entries encrypted.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<Entry<'_>>> {
        BatchReader::new(bytes, Path::new("/log/x"), 4096).collect()
    }

    #[test]
    fn entries_come_back_as_they_were_added() {
        let mut batch = BatchBuilder::new();
        batch.record(DictId(300), Kind::Put, b"key", b"value");
        batch.record(DictId(u64::MAX), Kind::Delete, b"", b"");
        batch.truncate(DictId(7));
        batch.auto_increment(DictId(8), u64::MAX);
        batch.delete_range(DictId(10), b"", None);
        batch.delete_range(DictId(10), b"a", Some(b""));
        batch.adopt(DictId(9), b"a run", &[]);
        let expected = [
            Entry::Record { dict: DictId(300), kind: Kind::Put, key: b"key", value: b"value" },
            Entry::Record { dict: DictId(u64::MAX), kind: Kind::Delete, key: b"", value: b"" },
            Entry::Truncate { dict: DictId(7) },
            Entry::AutoIncrement { dict: DictId(8), next: u64::MAX },
            Entry::DeleteRange { dict: DictId(10), lo: b"", hi: None },
            Entry::DeleteRange { dict: DictId(10), lo: b"a", hi: Some(b"") },
            Entry::Adopt { dict: DictId(9), run: b"a run" },
        ];
        assert_eq!(read(batch.bytes()).unwrap(), expected);
        batch.clear();
        assert!(batch.is_empty() && batch.bytes_len() == 0);
    }

    #[test]
    fn a_prepared_batch_says_so_and_its_entries_can_be_kept() {
        let mut batch = BatchBuilder::new();
        batch.prepare(b"xid 1");
        batch.record(DictId(3), Kind::Put, b"key", b"value");
        let reader = BatchReader::new(batch.bytes(), Path::new("/log/x"), 4096);
        assert_eq!(reader.kind(), BatchKind::Prepare { xid: b"xid 1" });
        let kept = reader.to_batch();
        let entries: Vec<_> = kept.entries().map(Result::unwrap).collect();
        assert_eq!(
            entries,
            [Entry::Record { dict: DictId(3), kind: Kind::Put, key: b"key", value: b"value" }]
        );
        assert_eq!(kept.entries().kind(), BatchKind::Commit);
    }

    #[test]
    fn of_a_batch_the_entries_of_some_dictionaries_can_be_kept() {
        let mut batch = BatchBuilder::new();
        batch.prepare(b"xid 1");
        batch.record(DictId(3), Kind::Put, b"key", b"value");
        batch.truncate(DictId(4));
        batch.record(DictId(3), Kind::Delete, b"another", b"");
        batch.adopt(DictId(5), b"a run", &[]);
        let reader = BatchReader::new(batch.bytes(), Path::new("/log/x"), 4096);
        let of = |ids: &[u64]| reader.to_batch_of(|id| ids.contains(&id.0)).unwrap();
        let read =
            |kept: &OwnedBatch| kept.entries().map(|entry| entry.unwrap().dict().0).collect::<Vec<_>>();
        assert_eq!(read(&of(&[3])), [3, 3]);
        assert_eq!(read(&of(&[5, 4])), [4, 5]);
        assert_eq!(read(&of(&[])), [0; 0]);
        assert_eq!(of(&[3, 4, 5]).bytes_len(), reader.to_batch().bytes_len());
        let cut = BatchReader::new(&batch.bytes()[..batch.bytes_len() - 1], Path::new("/log/x"), 4096);
        assert!(cut.to_batch_of(|_| false).is_err(), "what is not whole is damage, wanted or not");
    }

    #[test]
    fn a_batch_prepared_anew_names_the_one_it_replaces() {
        let mut batch = BatchBuilder::new();
        batch.prepare_anew(b"xid 1", u64::MAX);
        batch.record(DictId(3), Kind::Delete, b"key", b"");
        let reader = BatchReader::new(batch.bytes(), Path::new("/log/x"), 4096);
        assert_eq!(reader.kind(), BatchKind::PrepareAnew { xid: b"xid 1", previous: u64::MAX });
        let kept = reader.to_batch();
        let entries: Vec<_> = kept.entries().map(Result::unwrap).collect();
        assert_eq!(entries, [Entry::Record { dict: DictId(3), kind: Kind::Delete, key: b"key", value: b"" }]);
        assert!(read(&[PREPARE_ANEW, 7, 5, 1]).is_err(), "half a name is damage");
    }

    #[test]
    fn a_resolution_names_its_prepare_and_has_no_entries() {
        for prepare in [1, u64::MAX] {
            let batch = BatchBuilder::commit_prepared(prepare);
            assert!(batch.bytes_len() <= RESOLUTION_BYTES_MAX);
            let mut reader = BatchReader::new(batch.bytes(), Path::new("/log/x"), 0);
            assert_eq!(reader.kind(), BatchKind::CommitPrepared { prepare });
            assert!(reader.next().is_none());
            let batch = BatchBuilder::rollback_prepared(prepare);
            let reader = BatchReader::new(batch.bytes(), Path::new("/log/x"), 0);
            assert_eq!(reader.kind(), BatchKind::RollbackPrepared { prepare });
        }
        assert!(read(&[COMMIT_PREPARED, 0x80]).is_err(), "half a resolution is damage");
        assert!(read(&[PREPARE, 5, 1]).is_err(), "half a name is damage");
    }

    #[test]
    fn an_unknown_entry_is_corruption_that_says_where() {
        let error = read(&[TRUNCATE, 1, 99, 1]).unwrap_err().to_string();
        assert!(error.contains("/log/x") && error.contains("4096") && error.contains("byte 2"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_truncated_batch_gives_its_whole_entries_or_an_error(cut in 0usize..60) {
            let mut batch = BatchBuilder::new();
            for i in 0..6u64 {
                batch.record(DictId(i), Kind::Put, &i.to_be_bytes(), b"v");
            }
            let bytes = batch.bytes();
            if let Ok(entries) = read(&bytes[..cut.min(bytes.len())]) {
                prop_assert!(entries.len() <= 6);
            }
        }
    }
}
