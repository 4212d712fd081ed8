//! The command line of `pando`, for the program and for its man pages (`crates/pages`).

pub mod dump;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Everything.
#[derive(Parser)]
#[command(name = "pando", version, about = "Looks into the files of a Pando database, server down or up")]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Show the superblocks, figures and trees of a table (a directory NAME.pando)
    Inspect {
        /// The table's directory
        table: PathBuf,
        /// Print every node and run
        #[arg(long)]
        shape: bool,
    },
    /// Read every block of a table and check checksums, order and counts; the server must be down,
    /// or have checkpointed and be idle
    Verify {
        /// The tables' directories
        #[arg(required = true)]
        tables: Vec<PathBuf>,
    },
    /// Make a new catalog of what lies beside the tables' files, where the catalog is damaged or lost; the old one is kept, and the server
    /// must be down
    RebuildCatalog {
        /// The server's data directory
        data_dir: PathBuf,
        /// The directory of catalog and log, if it is not DATADIR/.pando
        #[arg(long)]
        engine_dir: Option<PathBuf>,
    },
    /// Make a dump of tables of other engines one of PANDO tables: reads it from standard input, writes it to standard
    /// output, and says on standard error what behaves otherwise
    ConvertDump {
        /// Engines whose tables are converted
        #[arg(long, value_delimiter = ',', default_value = "TokuDB")]
        from: Vec<String>,
        /// The engine that they get
        #[arg(long, default_value = "PANDO")]
        to: String,
    },
    /// Print the transactions in a log file
    Log {
        /// A file pando-NNNNNN.log
        file: PathBuf,
    },
}
