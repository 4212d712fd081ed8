//! The write-ahead log of the engine: committed batches in commit order, in files that are
//! preallocated and recycled.
//!
//! # What it promises
//!
//! - **Order is one.** The order of seqnos is the order of batches in the log. What survives a crash
//!   is a prefix of what was appended; a batch is there whole or not at all.
//! - **Durable means durable.** A batch whose [`Wal::wait`] with [`FlushMode::Commit`] returned `Ok`
//!   survives any power loss. [`Wal::sync_up_to_seqno`] gives checkpoints the same (I7).
//! - **Damage is told.** Broken bytes that something behind them proves to have been durable are
//!   [`pando_base::Error::Corruption`] with file and offset; only a tail that may have been torn by
//!   a power loss ends the log (I8).
//! - **A failed write or sync latches.** From then on nothing is accepted: what the kernel did with
//!   the pages is unknown, and a later sync that succeeds would say nothing about them (I8).
//! - **A full disk does not latch.** The disk space of a batch is taken before it gets its seqno;
//!   the commit fails with `DiskFull`, and the next one works once there is space.
//! - **A prepared batch can always be resolved.** Space for the small batch that commits or rolls back
//!   a prepared one is kept free from the prepare on ([`Wal::append_prepare`]): a full disk cannot
//!   come between a coordinator's decision and its record.
//!
//! # Files
//!
//! `pando-NNNNNN.log`, in order of their numbers, are the log: a head ([`LogFileHead`]) and frames
//! (`frame`), each file `file_bytes` long from its birth (that of a start on a nearly full disk is shorter). `spare-NNNNNN.log` wait for their use with
//! their space taken; they come from [`Wal::trim`] or are made when needed. A spare becomes a log
//! file when its head was written and synced under its old name: rename, sync of the directory. So
//! a log file's head is always valid, a number is used once, and the head of a file proves that
//! everything before its start lsn was synced (the file before is synced first).
//! Frames of an earlier use are rejected by the salt. A frame is never divided between files; a
//! batch may be.
//!
//! The **lsn** counts the bytes of frames since the log was created. Each frame carries the lsn up
//! to which the log was synced when it was made, which is what tells damage from a torn tail. An
//! idle log gets a mark, a frame that carries nothing else.
//!
//! # One commit
//!
//! 1. The batch is encoded by its owner ([`BatchBuilder`]), encrypted if it is to be (`sealed`), its payload checksummed.
//! 2. Under the append mutex: is there space (else outside the mutex a spare is made, and again);
//!    seqno and lsn are given; head and payload are copied into the buffer.
//! 3. `wait`: if the log is not yet synced up to the lsn, and nobody leads, this thread becomes the
//!    leader: it swaps the buffer for an empty one, writes it, changes files where planned, syncs,
//!    publishes how far the log is written and synced, and wakes the others. They append into the
//!    other buffer meanwhile, and one of them leads next: a sync serves all who arrived during the
//!    one before.
//!
//! # Lock order
//!
//! `trimming`, `spare_making` > `writer` > `appender`, `files`, spares' own. `group` is never held
//! during I/O, nor while another of these is taken. `writer` is the leader's alone, so it is never
//! waited for.
//!
//! # Recovery
//!
//! [`Wal::create_or_open`] gives a [`Replay`], which goes over the log as often as wanted and
//! changes nothing. [`Wal::start`] then makes durable what was replayed (writing back what a failed
//! sync of the life before may have left only in memory), begins a new file whose start lsn bounds
//! the files before it, and only then cuts the torn tail.

mod appender;
mod assemble;
mod batch;
mod files;
mod frame;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod group;
mod header;
mod leader;
mod reader;
mod replay;
mod scan;
mod sealed;
mod spares;
mod trim;
mod wal;

pub use assemble::Batch;
pub use batch::{BatchBuilder, BatchKind, BatchReader, Entry, OwnedBatch};
pub use header::{LogFileHead, NOTE_OF_NEXT_FILE};
pub use reader::{print, LogFileEnd, LogFileReader};
pub use replay::{Replay, ReplayEnd};
pub use scan::TornTail;
pub use sealed::{SealedEntries, LOG_KEY_ID};
pub use trim::LogFileInfo;
pub use wal::{Appended, FlushMode, Lsn, Wal, WalOptions};
