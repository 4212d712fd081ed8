//! The command line of `pando`, for the program and for its man pages (`crates/pages`).

pub mod backup;
pub mod dump;
pub mod export;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod keys;
pub mod out;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Everything.
#[derive(Parser)]
#[command(name = "pando", version, about = "Looks into the files of a Pando database, server down or up")]
pub struct Arguments {
    /// Keys of encrypted tables and of the log, for inspect, verify, log, restore, export and salvage: lines "number;key in hexadecimal", as the file of
    /// file_key_management has them once it is decrypted; "number:version;key" for versions other than 1
    #[arg(long, global = true, value_name = "FILE")]
    pub keys: Option<PathBuf>,
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
        /// The directory of catalog and log, for a table without status.pando, if it is not .pando beside that of its database
        #[arg(long, value_name = "DIR")]
        engine_dir: Option<PathBuf>,
    },
    /// Read every block of a table and check checksums, order and counts; the server must be down,
    /// or have checkpointed and be idle. Or check a backup: that it is complete, its checksums, and its trees
    Verify {
        /// The tables' directories, or those of backups
        #[arg(required = true)]
        tables: Vec<PathBuf>,
        /// The directory of catalog and log, for tables without status.pando, if it is not .pando beside those of their databases
        #[arg(long, value_name = "DIR")]
        engine_dir: Option<PathBuf>,
    },
    /// Take a backup of a running server: PANDO's tables, and those of other engines by mariadb-backup, as they are at one
    /// moment. Nobody waits for more than that moment
    Backup(backup::take::BackupArguments),
    /// Make a data directory of a backup
    Restore(backup::restore::RestoreArguments),
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
    /// List what of a schema would behave otherwise in PANDO tables: reads a dump of it (with --no-data) from standard input.
    /// Exit status 1 if there is something
    CheckMigration {
        /// Engines whose tables are looked at
        #[arg(long, value_delimiter = ',', default_value = "InnoDB,MyISAM,Aria,TokuDB,ROCKSDB")]
        from: Vec<String>,
    },
    /// Write all rows of a table without a server: of a server that is stopped or was killed, or a copy of its data directory. What the log
    /// has is replayed in memory; nothing is written there
    Export(export::ExportArguments),
    /// Write the rows of a table that can be read although its file is damaged, as of its last checkpoint, and list the keys of which
    /// something is lost. Exit status 1 if there are any
    Salvage(export::SalvageArguments),
    /// Print the transactions in a log file
    Log {
        /// A file pando-NNNNNN.log
        file: PathBuf,
    },
}
