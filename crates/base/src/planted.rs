//! Planted bugs: mistakes that can be switched on in builds with the feature `planted-bugs`, to see that
//! the simulation (`crates/sim`) finds them. Without the feature [`is_planted`] is the constant false.

macro_rules! bugs {
    ($($name:ident: $text:literal, $doc:literal,)*) => {
        /// A mistake that can be switched on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $(#[doc = $doc] $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &'static [Bug] = &[$(Bug::$name,)*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Bug::$name => $text,)* }
            }

            /// What is wrong with it.
            pub fn description(self) -> &'static str {
                match self { $(Bug::$name => $doc,)* }
            }
        }
    };
}

bugs! {
    CommitWithoutSync: "commit-without-sync", "a commit is acknowledged before the log is synced",
    CheckpointWithoutSync: "checkpoint-without-sync", "a superblock is written before runs and nodes are synced",
    SuperblockWithoutSync: "superblock-without-sync", "a checkpoint ends before its superblock is synced",
    SuperblockBeforeLog: "superblock-before-log", "a superblock is written before the log up to its seqno is synced",
    ExtentReusedEarly: "extent-reused-early", "what only the old checkpoint needs is free before the new one is durable",
    DoubtIgnored: "doubt-ignored", "after a failed superblock write space becomes free at once",
    ExtentTailLeaked: "extent-tail-leaked", "the unused end of an extent is not given back",
    OlderSuperblockChosen: "older-superblock-chosen", "the older of two valid superblocks is opened",
    LogFilesReordered: "log-files-reordered", "a new log file is begun before the old one is synced",
    LogTrimmedEarly: "log-trimmed-early", "a log file is given up that still has the oldest record needed",
    TornFrameAccepted: "torn-frame-accepted", "the checksum of a log frame's payload is not looked at",
    ReplaySkipsFirst: "replay-skips-first", "recovery takes the first commit above a superblock for durable",
    TombstoneDroppedEarly: "tombstone-dropped-early", "a merge above the leaves drops tombstones",
    SettledEarly: "settled-early", "a leaf forgets when rows were committed that a snapshot does not see yet",
    OldSnapshotForgotten: "old-snapshot-forgotten", "merges forget the oldest snapshot in use",
    ShareForgetsOldest: "share-forgets-oldest", "a flush of several runs forgets the oldest",
    SavepointKeepsOne: "savepoint-keeps-one", "a rollback to a savepoint leaves the first write after it",
    SharedBesideExclusive: "shared-beside-exclusive", "a shared lock is granted beside an exclusive one",
    RenameNotSynced: "rename-not-synced", "the names of a renamed table are not synced before its intent goes",
    SpillWithoutSync: "spill-without-sync", "private runs are not synced before a commit adopts them",
    PreparedLogTrimmed: "prepared-log-trimmed", "the log is not kept for prepared transactions",
    PreparedLocksLost: "prepared-locks-lost", "a prepared transaction comes back from a crash without its locks",
    CounterNotLogged: "counter-not-logged", "a commit does not log the auto-increment values it used",
    PassedTooFar: "passed-too-far", "a flush passes on what has come into the buffer while it ran",
    InsertIgnoresGaps: "insert-ignores-gaps", "an insert does not ask for the gaps of others",
    GapWritersNotMet: "gap-writers-not-met", "a locking scan does not look at what others have written",
    ScanSeesOldState: "scan-sees-old-state", "a locking scan does not look again after others have committed",
    StretchTooShort: "stretch-too-short", "a stretch ends before the last of the locks it stands for",
    LoadBesideOthers: "load-beside-others", "a bulk load begins while others have locks or writes in its table",
    BlockChecksumIgnored: "block-checksum-ignored", "the checksum of a block read from a tree file is not looked at",
}

#[cfg(feature = "planted-bugs")]
mod on {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Switches one on, for what this thread does from now on; or all off.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// What is on in this thread: to be called in another that works for it.
    pub fn inherit() -> impl FnOnce() + Send {
        let bug = PLANTED.get();
        move || plant(bug)
    }

    /// Whether this one is on.
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use on::{inherit, is_planted, plant};

/// Whether this one is on: never, in this build.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}

/// What is on in this thread: to be called in another that works for it. In this build nothing is.
#[cfg(not(feature = "planted-bugs"))]
pub fn inherit() -> impl FnOnce() + Send {
    || ()
}
