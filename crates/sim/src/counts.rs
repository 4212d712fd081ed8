//! What runs did: a run that meets no trouble proves nothing.

use std::fmt;
use std::ops::AddAssign;

macro_rules! counts {
    ($($name:ident: $doc:literal,)*) => {
        /// What one run, or many, did.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $(#[doc = $doc] pub $name: u64,)*
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Counts) {
                $(self.$name += other.$name;)*
            }
        }

        impl Counts {
            /// Names and values, in order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counts! {
    steps: "steps of the scheduler",
    crashes: "power losses and kills, each followed by a start and a check of everything",
    crashes_in_recovery: "of these, in the middle of a start",
    resumed: "starts after which work went on with a model of its own",
    restarts: "starts after which the main run went on",
    failed_starts: "starts that met a fault and gave an error",
    commits: "commits acknowledged",
    prepared: "transactions prepared",
    prepared_anew: "prepared transactions logged anew",
    resolved: "prepared transactions committed or rolled back",
    rollbacks: "rollbacks",
    rollbacks_to_savepoint: "rollbacks to a savepoint",
    in_doubt: "commits and changes of tables during which the log failed",
    refused: "operations that gave an error because of a fault, and had done nothing",
    gets: "point reads checked",
    rows_scanned: "rows that cursors gave, checked",
    lock_conflicts: "requests refused because of another's lock",
    inserts_kept_out: "inserts refused because of another's gap",
    stretches: "stretches that stand for locks beyond the budget",
    ranges_deleted: "ranges of rows deleted at once",
    duplicates: "inserts refused because of a duplicate",
    ddl: "tables created, dropped, renamed, truncated",
    loads: "bulk loads ended",
    loads_beside: "bulk loads beside others ended",
    loads_by_row: "bulk loads that were asked for each row ended",
    columns_changed: "changes of columns",
    builds: "builds of indexes begun",
    indexes_added: "indexes added while others wrote",
    faults: "faults armed",
    disks_filled: "stretches of work on a disk with little room",
    rotten: "starts on a disk with flipped bits",
    wholes: "checks of all tables, blocks and structures included",
    space_checks: "checks that no space has leaked",
    workers: "jobs and checkpoints that others overlapped with",
    worker_stops: "stops of these in the middle",
    flushes: "flushes to a child",
    splits: "leaves and nodes split",
    compactions: "merges in a buffer",
    checkpoints: "checkpoints",
    ios: "I/Os of the simulated disk",
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (name, value)) in self.all().into_iter().enumerate() {
            let end = if n % 3 == 2 { "\n" } else { "  " };
            write!(f, "{:<24}{value:>12}{end}", name.replace('_', " "))?;
        }
        Ok(())
    }
}
