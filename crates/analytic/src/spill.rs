//! Rows that memory has no room for: in a temporary file, batch by batch.
//!
//! A query has one such file, which is made when the first rows go there. A batch is compressed (LZ4), encrypted, and comes back as
//! it was, but for texts, which have a dictionary of the batch's own. Its space is free when nobody can ask for it any more.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_column::vector::Strings;
use pando_query::{Failure, Why};
use pandodb::{TempFile, TempPiece, Vfs};

use crate::column::{add_texts, Batch, Column, Data, Dict};
use crate::eval::Result;

/// Where temporary files are made.
#[derive(Clone, Debug)]
pub struct SpillTo {
    /// The file system.
    pub vfs: Arc<dyn Vfs>,
    /// The directory.
    pub dir: PathBuf,
}

/// The temporary file of a query. A failure of it gives the query back: nothing was sent yet, and the server has files of its own.
#[derive(Debug)]
pub(crate) struct Spill {
    to: SpillTo,
    /// About so many bytes are written at once.
    piece_bytes: usize,
    file: Mutex<Option<Arc<TempFile>>>,
    bytes: AtomicU64,
}

/// A batch in a file.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    bytes: Arc<TempPiece>,
    pub rows: usize,
}

/// Rows, wherever they are.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    Held(Batch),
    /// These columns of the piece.
    Spilled(Piece, Arc<[usize]>),
}

/// Of the columns of a batch, as they are written.
const SMALL: u8 = 0;
const LARGE: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;

const DISK: Failure = Failure::GivenBack(Why::Disk);

impl Chunk {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Chunk::Held(batch) => batch.rows,
            Chunk::Spilled(piece, _) => piece.rows,
        }
    }

    /// The rows, in memory.
    pub(crate) fn load(&self) -> Result<Batch> {
        match self {
            Chunk::Held(batch) => Ok(batch.clone()),
            Chunk::Spilled(piece, columns) => {
                let batch = piece.load()?;
                Ok(Batch {
                    rows: batch.rows,
                    columns: columns.iter().map(|at| batch.columns[*at].clone()).collect(),
                })
            }
        }
    }

    pub(crate) fn is_spilled(&self) -> bool {
        matches!(self, Chunk::Spilled(..))
    }

    /// Some of its columns.
    pub(crate) fn of_columns(&self, places: &[usize]) -> Chunk {
        match self {
            Chunk::Held(batch) => Chunk::Held(Batch {
                rows: batch.rows,
                columns: places.iter().map(|place| batch.columns[*place].clone()).collect(),
            }),
            Chunk::Spilled(piece, columns) => {
                Chunk::Spilled(piece.clone(), places.iter().map(|place| columns[*place]).collect())
            }
        }
    }
}

impl Spill {
    /// Of a query that may take so much memory.
    pub(crate) fn new(to: SpillTo, memory_bytes: usize) -> Spill {
        let piece_bytes = (memory_bytes / 128).clamp(1 << 13, 1 << 18);
        Spill { to, piece_bytes, file: Mutex::new(None), bytes: AtomicU64::new(0) }
    }

    /// About so many bytes are written at once.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// So many bytes wait in a thread until they are divided into parts.
    pub(crate) fn scatter_bytes(&self) -> usize {
        self.piece_bytes * 8
    }

    /// Bytes that were written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn file(&self) -> Result<Arc<TempFile>> {
        let mut file = self.file.lock();
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let new = TempFile::new(&*self.to.vfs, &self.to.dir).map_err(|_| DISK)?;
        *file = Some(new.clone());
        Ok(new)
    }

    /// Writes rows.
    pub(crate) fn write(&self, batch: &Batch) -> Result<Piece> {
        let bytes = lz4_flex::compress_prepend_size(&encode(batch));
        let bytes = self.file()?.write(bytes).map_err(|_| DISK)?;
        self.bytes.fetch_add(bytes.bytes() as u64, Ordering::Relaxed);
        Ok(Piece { bytes: Arc::new(bytes), rows: batch.rows })
    }
}

impl Piece {
    /// All columns of it.
    pub(crate) fn load(&self) -> Result<Batch> {
        let bytes = self.bytes.read().map_err(|_| DISK)?;
        let bytes = lz4_flex::decompress_size_prepended(&bytes).map_err(|_| DISK)?;
        decode(&bytes).ok_or(DISK)
    }
}

pub(crate) fn encode(batch: &Batch) -> Vec<u8> {
    let mut to = Vec::with_capacity(batch.bytes() + 64);
    to.extend((batch.rows as u32).to_le_bytes());
    to.extend((batch.columns.len() as u32).to_le_bytes());
    batch.columns.iter().for_each(|column| encode_column(column, &mut to));
    to
}

fn encode_column(column: &Column, to: &mut Vec<u8>) {
    to.extend((column.rows() as u32).to_le_bytes());
    to.push(u8::from(column.nulls.is_some()));
    to.extend(column.nulls.iter().flatten().map(|is_null| u8::from(*is_null)));
    match &column.data {
        Data::Small(values) => {
            to.push(SMALL);
            to.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        Data::Large(values) => {
            to.push(LARGE);
            to.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        Data::Real(values) => {
            to.push(REAL);
            to.extend(values.iter().flat_map(|value| value.to_bits().to_le_bytes()));
        }
        Data::Text(of_rows, dict) => {
            to.push(TEXT);
            let (mut strings, mut codes) = (Strings::new(), Vec::with_capacity(of_rows.len()));
            add_texts(column, of_rows, dict, &mut strings, &mut codes);
            to.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            to.extend((strings.len() as u32).to_le_bytes());
            for number in 0..strings.len() {
                to.extend((strings.get(number).len() as u32).to_le_bytes());
            }
            (0..strings.len()).for_each(|number| to.extend(strings.get(number)));
        }
    }
}

/// The rest of what was written.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?) as usize)
    }

    fn many<T, const N: usize>(&mut self, rows: usize, of: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let bytes = self.bytes(rows.checked_mul(N)?)?;
        bytes.chunks_exact(N).map(|bytes| Some(of(bytes.try_into().ok()?))).collect()
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Batch> {
    let mut rest = Rest(bytes);
    let (rows, columns) = (rest.number()?, rest.number()?);
    let columns = (0..columns).map(|_| Some(Arc::new(decode_column(&mut rest)?))).collect::<Option<_>>()?;
    rest.0.is_empty().then_some(Batch { rows, columns })
}

fn decode_column(rest: &mut Rest<'_>) -> Option<Column> {
    let rows = rest.number()?;
    let nulls = match rest.bytes(1)? {
        [0] => None,
        _ => Some(rest.bytes(rows)?.iter().map(|is_null| *is_null != 0).collect()),
    };
    let data = match *rest.bytes(1)?.first()? {
        SMALL => Data::Small(rest.many(rows, i64::from_le_bytes)?),
        LARGE => Data::Large(rest.many(rows, i128::from_le_bytes)?),
        REAL => Data::Real(rest.many(rows, |bytes| f64::from_bits(u64::from_le_bytes(bytes)))?),
        TEXT => {
            let codes = rest.many(rows, u32::from_le_bytes)?;
            let count = rest.number()?;
            let lengths = rest.many(count, u32::from_le_bytes)?;
            let mut strings = Strings::new();
            for length in lengths {
                strings.push(rest.bytes(length as usize)?);
            }
            if strings.is_empty() {
                strings.push(b"");
            }
            Data::Text(codes, Dict::Strings(Arc::new(strings)))
        }
        _ => return None,
    };
    Some(Column { data, nulls })
}

/// How many rows of a batch are about so many bytes.
pub(crate) fn rows_of_bytes(batch: &Batch, bytes: usize) -> usize {
    let all = batch.bytes() + crate::column::bytes_of_new_strings(&batch.columns, &mut Vec::new());
    let each = (all / batch.rows.max(1)).max(1);
    (bytes / each).clamp(16, 1 << 15)
}

/// Rows that are kept: in memory, as long as its budget has room for them, else in the file.
pub(crate) struct Spool<'a> {
    spill: Option<&'a Spill>,
    budget: &'a crate::keys::Budget,
    /// What may still be held.
    left: &'a std::sync::atomic::AtomicUsize,
    chunks: Vec<Chunk>,
    strings: Vec<Option<Arc<Strings>>>,
    /// What is written next.
    waiting: Vec<Batch>,
    waiting_bytes: usize,
    kinds: &'a [crate::column::Kind],
}

impl<'a> Spool<'a> {
    pub(crate) fn new(
        spill: Option<&'a Spill>,
        budget: &'a crate::keys::Budget,
        left: &'a std::sync::atomic::AtomicUsize,
        kinds: &'a [crate::column::Kind],
    ) -> Spool<'a> {
        Spool {
            spill,
            budget,
            left,
            chunks: Vec::new(),
            strings: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            kinds,
        }
    }

    pub(crate) fn add(&mut self, batch: Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        let batch = batch.detached();
        let bytes = batch.bytes() + crate::column::bytes_of_new_strings(&batch.columns, &mut self.strings);
        let Some(spill) = self.spill else {
            self.budget.take(bytes)?;
            self.chunks.push(Chunk::Held(batch));
            return Ok(());
        };
        if self.waiting.is_empty() && take_of(self.left, bytes) {
            if self.budget.try_take(bytes) {
                self.chunks.push(Chunk::Held(batch));
                return Ok(());
            }
            // Nobody else need try.
            self.left.store(0, Ordering::Relaxed);
        }
        self.waiting_bytes += bytes;
        self.waiting.push(batch);
        if self.waiting_bytes >= spill.piece_bytes {
            self.write(spill)?;
        }
        Ok(())
    }

    fn write(&mut self, spill: &Spill) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let all = Batch::concat(&self.waiting, self.kinds);
        self.waiting.clear();
        self.waiting_bytes = 0;
        let columns: Arc<[usize]> = (0..all.columns.len()).collect();
        for piece in in_pieces(&all, rows_of_bytes(&all, spill.piece_bytes)) {
            self.chunks.push(Chunk::Spilled(spill.write(&piece)?, columns.clone()));
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Vec<Chunk>> {
        if let Some(spill) = self.spill {
            self.write(spill)?;
        }
        Ok(self.chunks)
    }
}

/// Takes so much of what is left, if it is there.
pub(crate) fn take_of(left: &std::sync::atomic::AtomicUsize, bytes: usize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

/// A batch, so many rows at a time.
pub(crate) fn in_pieces(batch: &Batch, rows: usize) -> impl Iterator<Item = Batch> + '_ {
    let is_one = batch.rows <= rows;
    (0..batch.rows).step_by(rows.max(1)).map(move |start| match is_one {
        true => batch.clone(),
        false => {
            let end = batch.rows.min(start + rows) as u32;
            batch.gather(&(start as u32..end).collect::<Vec<_>>())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Kind, Value};
    use pandodb::SimVfs;

    fn text(values: &[&str], codes: Vec<u32>, nulls: Option<Vec<bool>>) -> Arc<Column> {
        let mut strings = Strings::new();
        values.iter().for_each(|value| strings.push(value.as_bytes()));
        Arc::new(Column { data: Data::Text(codes, Dict::Strings(Arc::new(strings))), nulls })
    }

    fn batch() -> Batch {
        let nulls = Some(vec![false, true, false, true]);
        let column = |data, nulls| Arc::new(Column { data, nulls });
        let columns = vec![
            column(Data::Small(vec![i64::MIN, 0, i64::MAX, 3]), None),
            column(Data::Large(vec![i128::MIN, 0, i128::MAX, -1]), nulls.clone()),
            column(Data::Real(vec![-0.0, 1.5, f64::MAX, f64::MIN_POSITIVE]), nulls.clone()),
            text(&["", "a\0b", "never", "c"], vec![3, 1, 0, 3], None),
            // The codes of NULLs are those of no text.
            text(&["x"], vec![0, 7, 0, 9], nulls),
            // Nobody looks at it.
            Arc::new(Column { data: Data::Small(Vec::new()), nulls: None }),
        ];
        Batch { rows: 4, columns }
    }

    fn values(batch: &Batch) -> Vec<Vec<Value>> {
        let rows = |column: &Column| (0..column.rows()).map(|row| column.value(row)).collect();
        batch.columns.iter().map(|column| rows(column)).collect()
    }

    fn spill() -> (Arc<SimVfs>, Spill) {
        let vfs = SimVfs::new(5);
        vfs.create_dir_all(std::path::Path::new("/tmp")).unwrap();
        (vfs.clone(), Spill::new(SpillTo { vfs, dir: "/tmp".into() }, 1 << 20))
    }

    #[test]
    fn batches_come_back_as_they_were() {
        let (_vfs, spill) = spill();
        let empty = Batch { rows: 0, columns: vec![text(&[], Vec::new(), None)] };
        for batch in [batch(), empty, Batch { rows: 7, columns: Vec::new() }] {
            let back = spill.write(&batch).unwrap().load().unwrap();
            assert_eq!((back.rows, values(&back)), (batch.rows, values(&batch)));
        }
        assert!(spill.bytes() > 0);
    }

    #[test]
    fn only_texts_that_are_used_are_written() {
        let back = decode(&encode(&batch())).unwrap();
        assert_eq!(back.columns[3].strings().unwrap().len(), 3);
    }

    #[test]
    fn what_is_cut_off_is_no_batch() {
        let bytes = encode(&batch());
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_none()));
    }

    #[test]
    fn what_there_is_room_for_is_held() {
        let (_vfs, spill) = spill();
        let kinds = [Kind::Signed];
        let of = |start: i64| Batch {
            rows: 1000,
            columns: vec![Arc::new(Column {
                data: Data::Small((start..start + 1000).collect()),
                nulls: None,
            })],
        };
        let budget = crate::keys::Budget::new(1 << 20);
        let left = std::sync::atomic::AtomicUsize::new(20_000);
        let mut spool = Spool::new(Some(&spill), &budget, &left, &kinds);
        (0..100).for_each(|at| spool.add(of(at * 1000)).unwrap());
        let chunks = spool.finish().unwrap();
        assert_eq!(chunks.iter().filter(|chunk| matches!(chunk, Chunk::Held(_))).count(), 2);
        let rows: Vec<i128> = chunks
            .iter()
            .flat_map(|chunk| {
                let batch = chunk.load().unwrap();
                (0..batch.rows).map(|row| batch.columns[0].number(row)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(rows, (0..100_000).collect::<Vec<i128>>(), "in their order");
        let none = std::sync::atomic::AtomicUsize::new(0);
        let small = crate::keys::Budget::new(10_000);
        let mut without = Spool::new(None, &small, &none, &kinds);
        assert!(without.add(of(0)).is_ok());
        assert!(matches!(without.add(of(0)), Err(Failure::GivenBack(Why::Memory))));
    }
}
