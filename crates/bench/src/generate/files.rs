//! Files made by several threads.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use super::{Fields, Random, Source};
use crate::error::{Error, Result};

/// What a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How far each thread may be ahead of the writing.
const BLOCKS_AHEAD: usize = 2;

/// Writes DIRECTORY/NAME.csv with `threads` threads; `progress` is told the units done. The bytes do not depend on
/// the number of threads.
pub fn write_table(
    source: &dyn Source,
    directory: &Path,
    seed: u64,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Written> {
    let path = directory.join(format!("{}.csv", source.name()));
    let file = File::create(&path).map_err(Error::file(&path))?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let mut written = Written::default();
    let write = |fields: &Fields| {
        written.rows += fields.rows();
        written.bytes += fields.bytes().len() as u64;
        writer.write_all(fields.bytes())
    };
    fill_in_order(source, seed, threads.max(1), write, progress).map_err(Error::file(&path))?;
    writer.flush().map_err(Error::file(&path))?;
    Ok(written)
}

/// Blocks 0, threads, 2*threads ... come from the first thread, and so on: in order without a queue to sort.
fn fill_in_order(
    source: &dyn Source,
    seed: u64,
    threads: usize,
    mut write: impl FnMut(&Fields) -> std::io::Result<()>,
    progress: &mut dyn FnMut(u64),
) -> std::io::Result<()> {
    let blocks = source.units().div_ceil(source.block_units());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads as u64)
            .map(|first| {
                let (full_sender, full) = sync_channel::<Fields>(BLOCKS_AHEAD);
                let (empty, empty_receiver) = channel::<Fields>();
                scope.spawn(move || {
                    for block in (first..blocks).step_by(threads) {
                        let mut fields = empty_receiver.try_recv().unwrap_or_default();
                        fill_block(source, seed, block, &mut fields);
                        if full_sender.send(fields).is_err() {
                            return; // the writing has failed
                        }
                    }
                });
                (full, empty)
            })
            .collect();
        for block in 0..blocks {
            let (full, empty) = &workers[(block % threads as u64) as usize];
            // A worker ends early only by a panic, which the scope passes on.
            let Ok(mut fields) = full.recv() else { break };
            write(&fields)?;
            fields.clear();
            // The worker has ended when it has no more blocks to fill.
            let _ = empty.send(fields);
            progress(((block + 1) * source.block_units()).min(source.units()));
        }
        Ok(())
    })
}

fn fill_block(source: &dyn Source, seed: u64, block: u64, fields: &mut Fields) {
    let mut random = Random::of_block(seed, source.name(), block);
    let first = block * source.block_units();
    for unit in first..(first + source.block_units()).min(source.units()) {
        source.fill(unit, &mut random, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u64);

    impl Source for Numbers {
        fn name(&self) -> &str {
            "numbers"
        }
        fn units(&self) -> u64 {
            self.0
        }
        fn block_units(&self) -> u64 {
            7
        }
        fn fill(&self, unit: u64, random: &mut Random, fields: &mut Fields) {
            fields.int(unit as i64).int(random.below(1000) as i64).end();
        }
    }

    fn written(units: u64, threads: usize) -> (Written, String, u64) {
        let directory = tempfile::tempdir().unwrap();
        let mut last = 0;
        let result =
            write_table(&Numbers(units), directory.path(), 3, threads, &mut |done| last = done).unwrap();
        (result, std::fs::read_to_string(directory.path().join("numbers.csv")).unwrap(), last)
    }

    #[test]
    fn the_number_of_threads_makes_no_difference() {
        let (result, text, last) = written(100, 1);
        assert_eq!((result.rows, result.bytes, last), (100, text.len() as u64, 100));
        for threads in [2, 3, 16] {
            assert_eq!(written(100, threads).1, text);
        }
        assert!(text.lines().enumerate().all(|(number, line)| line.starts_with(&format!("{number},"))));
    }

    #[test]
    fn a_table_without_rows_is_an_empty_file() {
        assert_eq!(written(0, 2).1, "");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_its_path() {
        let error = write_table(&Numbers(1), Path::new("/nowhere/at/all"), 1, 1, &mut |_| ()).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/at/all/numbers.csv"), "{error}");
    }
}
