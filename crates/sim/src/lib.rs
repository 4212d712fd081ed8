//! Deterministic simulation of a Pando database.
//!
//! **What it is.** One seed is one run; it decides everything: what the clients do, in which order, which
//! background job comes when, how time passes, what fails, and what a power loss leaves on the disk. One
//! thread does it all, so a seed and a commit reproduce a run exactly. The engine is the real one, through
//! its public interface, without threads of its own, on the simulated disk of `pando_storage`. Options are
//! tiny and drawn anew at each start, so that a few hundred operations make deep trees, switch log files,
//! spill write sets and close tables.
//!
//! **What a run does**, step by step (`world`):
//! - clients (`client`, `rows`, `scan`, `locking`): reads and writes of keys and of rows with indexes, locking
//!   reads and scans with gaps (`locks`), scans in both directions, cursors that stay open for many steps,
//!   savepoints, bulk loads (`load`), READ COMMITTED and REPEATABLE READ. They are cooperative: a lock that another holds is an answer, and never a wait;
//! - two-phase commit (`xa`): prepared transactions, left by their clients, found again after crashes;
//! - tables are created, dropped, renamed, truncated (`ddl`); columns change (`columns`); indexes are built, added, dropped (`indexes`);
//! - the machine: jobs, ticks, checkpoints, syncs of the log; time. Jobs and checkpoints may stop in the
//!   middle while all else goes on (`worker`);
//! - trouble (`faults`): I/Os that fail, once or from then on, reads that are short or wrong, full disks, the
//!   process killed, power cut, starts that fail and starts that are cut off, bits that rot;
//! - crashes (`crash`): copies of the disk are taken as a power loss would leave it at some I/O in the middle
//!   of a step. Each is a machine of its own that is started, checked, perhaps cut off while it starts, and
//!   perhaps goes on working. That is how a run has a hundred crashes and not two.
//!
//! **The model** (`model`) is a persistent map: each acknowledged commit makes a new state that shares what
//! did not change. A snapshot, a cursor, and each moment that a crash may bring back hold one. What a crash
//! may leave is the states from the last durable one on, and that of the operation in flight: the database
//! must show exactly one of them, in all its tables, with the prepared transactions that belong to it. With
//! durable commits that is the last one acknowledged, or the one in flight.
//!
//! **How each invariant is checked** (docs/architecture.md, "Invariants", states them):
//!
//! | | checked by |
//! | --- | --- |
//! | I1 | whatever is read at the newest state, with uncommitted writes of all clients about, equals the committed state (`checks`, `scan`, `client`) |
//! | I2 | every block says whose it is and has a checksum; whole trees are read past the cache; cursors and snapshots read old runs while jobs replace them |
//! | I3 | `Tree::verify` looks at the versions of every key along every path; each read depends on it |
//! | I4 | an open cursor shows its state, row by row, while commits, jobs, checkpoints and table changes go on |
//! | I5 | a snapshot and the database after a crash equal one state in all tables: never a part of a transaction, never a later one without an earlier one |
//! | I6 | a rollback does no I/O; nothing of it is seen afterwards, and it leaves no space in use |
//! | I7 | a crash at any I/O, with any part of the unsynced writes lost: each superblock that survives must lead to whole blocks, and not be newer than the log |
//! | I8 | with faults about, an answer is right or an error, and an operation that gave an error has done nothing; only a failed log latches; flipped bits are errors; nothing panics |
//!
//! And no space leaks: at rest, the space in use is what a new start finds referred to, no directory or
//! log file is left over (`checks`).
//!
//! **That it finds bugs** is checked by planting some (`pando_base::planted`, `bugs`).
//!
//! Waiting for locks, deadlocks, and commits that meet each other are not simulated; the tests of the crates with
//! real threads are for that.

#[cfg(feature = "planted-bugs")]
pub mod bugs;
mod checks;
mod client;
mod columns;
mod counts;
mod crash;
mod ddl;
mod faults;
mod indexes;
mod load;
mod locking;
mod locks;
mod model;
mod rows;
mod run;
mod scan;
mod setup;
mod trace;
mod worker;
mod world;
mod xa;

pub use counts::Counts;
pub use run::{run, Failure, STEPS};
pub use trace::Trace;
