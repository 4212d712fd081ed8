//! What befell a simulated disk and its copies: who trusts a simulation wants to know that each kind of trouble
//! has really come.

macro_rules! events {
    ($($name:ident: $doc:literal,)*) => {
        /// What befell a simulated disk, and those that it became after power losses.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct DiskEvents {
            $(#[doc = $doc] pub $name: u64,)*
        }

        impl DiskEvents {
            /// Names, explanations and values, in order.
            pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), $doc, self.$name),)*]
            }
        }

        impl std::ops::AddAssign for DiskEvents {
            fn add_assign(&mut self, other: DiskEvents) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

events! {
    power_losses: "power losses, of the disk or of a copy",
    kills: "ends of a process without a power loss",
    writes_lost: "unsynced writes that a power loss took",
    writes_torn: "unsynced writes of which a power loss left some sectors",
    writes_reordered: "unsynced writes that a power loss left without one before them",
    resizes_lost: "unsynced changes of length or space that a power loss took",
    names_undone: "changes of names that a power loss undid",
    ios_failed: "I/Os that failed",
    writes_failed: "writes that failed, any prefix of their sectors done",
    syncs_failed: "syncs that failed, and forgot what they had not written",
    disk_full: "I/Os that found the disk full",
    reads_short: "reads that gave less than there is",
    reads_flipped: "reads that gave a bit wrong",
    bits_rotten: "bits flipped on the disk",
}
