//! The C interface of Pando: what `ha_pando.so` calls. Nothing here decides anything; every function
//! converts its arguments, calls [`pandodb`], and converts the answer.
//!
//! `include/pando.h` is generated from this crate and committed; a test (`tests/header.rs`) fails when
//! the two differ, and rewrites the header when `PANDO_UPDATE_HEADER` is set.
//!
//! Rules of the boundary, for both sides:
//! - All types have fixed widths. Byte strings are [`PandoBytes`], borrowed for the duration of the
//!   call unless a function says how long what it returns stays valid.
//! - Objects (`PandoDb`, `PandoTable`, `PandoTxn`, `PandoCursor`, `PandoBuffer`) are made and freed by
//!   this side. A transaction, and cursors used with it, belong to one thread at a time; databases
//!   and tables may be shared.
//! - A number that stands for no member of the enumeration it is given as is a mistake of the caller ([`member`]), as is a name that is not
//!   UTF-8: `BadArgument`, or of functions without a status, as if there were nothing of this name.
//! - Functions that can fail return a [`PandoStatus`]; its text for people is
//!   [`pando_error_text`], valid on the same thread until the next call.
//! - Panics do not cross: a panic is a bug, the state after it is not trusted. It is logged with its backtrace. Where only a
//!   statement and its transaction were in the middle of something, the status is `Bug` and the transaction can only be rolled
//!   back; else the process stops ([`guard`]).

/// Of all that is Rust in the plugin.
#[global_allocator]
static MEMORY: pando_memory::Allocator = pando_memory::Allocator;

mod accesses;
mod alter;
mod analytic;
mod backup;
mod batch;
mod buffer;
mod bytes;
mod clustering;
mod compression;
mod cursor;
mod database;
mod definition;
mod dictionaries;
mod encryption;
mod filter;
mod foreign_key;
mod guard;
mod index_build;
mod large;
mod layout;
mod load;
mod lock_report;
mod log;
mod machine;
mod member;
mod memory;
mod observer;
mod query;
mod read;
mod server_files;
mod server_values;
mod status;
mod table;
mod transaction;
mod watch;

pub use accesses::*;
pub use alter::*;
pub use analytic::*;
pub use backup::*;
pub use batch::PandoBatch;
pub use buffer::*;
pub use bytes::PandoBytes;
pub use clustering::*;
pub use compression::*;
pub use cursor::*;
pub use database::*;
pub use definition::*;
pub use dictionaries::*;
pub use encryption::*;
pub use filter::*;
pub use foreign_key::*;
pub use index_build::*;
pub use large::*;
pub use layout::*;
pub use load::*;
pub use lock_report::*;
pub use log::*;
pub use machine::*;
pub use query::*;
pub use read::*;
pub use server_files::*;
pub use status::*;
pub use table::*;
pub use transaction::*;
pub use watch::PandoWatch;
