//! A backup as a tar archive on standard output, compressed if that is wanted.

use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::Path;

use super::{at, Outcome};

/// Blocks that archives consist of.
const BLOCK_BYTES: u64 = 512;
/// As `tar` writes them.
const MODE: u32 = 0o600;

/// Where the archive goes.
enum Output {
    Plain(Stdout),
    Compressed(Box<zstd::Encoder<'static, Stdout>>),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(out) => out.write(bytes),
            Output::Compressed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(out) => out.flush(),
            Output::Compressed(out) => out.flush(),
        }
    }
}

/// An archive that is being written.
pub struct Archive {
    output: Output,
}

impl Archive {
    /// Begins one.
    pub fn new(is_compressed: bool) -> Outcome<Archive> {
        let out = io::stdout();
        let output = match is_compressed {
            true => Output::Compressed(Box::new(zstd::Encoder::new(out, 0)?)),
            false => Output::Plain(out),
        };
        Ok(Archive { output })
    }

    /// Begins a file of so many bytes, which the caller writes to what this gives, followed by [`Archive::end`].
    pub fn begin(&mut self, name: &str, bytes: u64) -> Outcome<&mut impl Write> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(MODE);
        header.set_entry_type(tar::EntryType::Regular);
        if header.set_path(name).is_err() {
            // Longer than fits: as GNU tar does it, a file with the name before the file.
            let mut long = tar::Header::new_gnu();
            long.set_path("././@LongLink")?;
            long.set_entry_type(tar::EntryType::GNULongName);
            long.set_size(name.len() as u64 + 1);
            long.set_mode(MODE);
            long.set_cksum();
            self.output.write_all(long.as_bytes())?;
            self.output.write_all(name.as_bytes())?;
            self.output.write_all(&[0])?;
            self.end(name.len() as u64 + 1)?;
            let cut: String = name.chars().filter(char::is_ascii).take(90).collect();
            header.set_path(cut)?;
        }
        header.set_cksum();
        self.output.write_all(header.as_bytes())?;
        Ok(&mut self.output)
    }

    /// Ends a file of so many bytes.
    pub fn end(&mut self, bytes: u64) -> Outcome<()> {
        let rest = bytes.next_multiple_of(BLOCK_BYTES) - bytes;
        self.output.write_all(&[0; BLOCK_BYTES as usize][..rest as usize])?;
        Ok(())
    }

    /// Adds a file that is there.
    pub fn add(&mut self, path: &Path, name: &str) -> Outcome<()> {
        let mut file = File::open(path).map_err(at(path))?;
        let bytes = file.metadata().map_err(at(path))?.len();
        let copied = io::copy(&mut file, self.begin(name, bytes)?)?;
        if copied != bytes {
            return Err(format!("{} changed while it was read", path.display()).into());
        }
        self.end(bytes)
    }

    /// The archive is whole.
    pub fn finish(mut self) -> Outcome<()> {
        self.output.write_all(&[0; 2 * BLOCK_BYTES as usize])?;
        match self.output {
            Output::Plain(mut out) => out.flush()?,
            Output::Compressed(out) => out.finish()?.flush()?,
        }
        Ok(())
    }
}
