//! The append side: gives seqno and place, and copies frames into the buffer that the next leader
//! takes. No I/O happens here, and nothing is allocated but the shared buffer.

use pando_base::Seqno;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::batch::RESOLUTION_BYTES_MAX;
use crate::frame::{
    frame_bytes, payload_checksum, FrameHead, Part, FRAME_HEAD_BYTES, FRAME_PAYLOAD_BYTES_MAX,
};
use crate::header::{LogFileHead, FILE_HEAD_BYTES};

/// The frames of a batch, checksummed before the append mutex is taken.
pub(crate) struct Fragments<'a> {
    payload: &'a [u8],
    fragment_bytes: usize,
    /// Checksum of the first fragment; the others' stand in `rest`, which a short batch leaves
    /// unallocated.
    first: u64,
    rest: Vec<u64>,
}

impl<'a> Fragments<'a> {
    pub(crate) fn new(payload: &'a [u8], fragment_bytes: usize) -> Fragments<'a> {
        let (first, rest) = payload.split_at(payload.len().min(fragment_bytes));
        let rest = rest.chunks(fragment_bytes).map(payload_checksum).collect();
        Fragments { payload, fragment_bytes, first: payload_checksum(first), rest }
    }

    fn count(&self) -> usize {
        1 + self.rest.len()
    }

    /// What they take of the log.
    pub(crate) fn frames_bytes(&self) -> u64 {
        (0..self.count()).map(|i| frame_bytes(self.payload(i).len()) as u64).sum()
    }

    fn payload(&self, i: usize) -> &'a [u8] {
        let start = i * self.fragment_bytes;
        &self.payload[start..self.payload.len().min(start + self.fragment_bytes)]
    }

    fn checksum(&self, i: usize) -> u64 {
        if i == 0 {
            self.first
        } else {
            self.rest[i - 1]
        }
    }
}

/// The reserve, where a log file is not small: some hundred dropped tables.
const RESERVE_BYTES_MAX: u64 = 256 << 10;

/// What space a batch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// All but what is kept.
    Free,
    /// The reserve too, which is kept for batches that make space: on a full disk tables can be dropped.
    Reserve,
}

/// What the log has promised space for: no batch takes that but the ones it is for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promised {
    /// Prepared batches whose resolution will need a frame.
    pub(crate) unresolved: u64,
    /// For batches that take others back ([`crate::Wal::append_with_way_back`]).
    pub(crate) way_back_bytes: u64,
}

/// From byte `at` of the buffer on, frames go to the file with this head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) at: usize,
    pub(crate) head: LogFileHead,
}

/// What the append mutex protects.
#[derive(Debug)]
pub(crate) struct Appender {
    /// Frames that no leader took yet.
    pub(crate) buffer: Vec<u8>,
    /// Where in the buffer the file changes.
    pub(crate) switches: Vec<Switch>,
    /// Where the next frame goes.
    pub(crate) next_lsn: u64,
    /// What the next batch gets.
    pub(crate) next_seqno: Seqno,
    /// The file of the next frame, if it fits.
    pub(crate) head: LogFileHead,
    /// Spares with disk space that no switch has taken yet.
    pub(crate) spares: usize,
    pub(crate) promised: Promised,
    /// The lsn behind the last mark.
    marked_lsn: u64,
    /// How long the file of the next frame is, and those after it.
    current_bytes: u64,
    file_bytes: u64,
}

impl Appender {
    pub(crate) fn new(head: LogFileHead, current_bytes: u64, spares: usize, file_bytes: u64) -> Appender {
        Appender {
            buffer: Vec::new(),
            switches: Vec::new(),
            next_lsn: head.start_lsn,
            next_seqno: head.first_seqno,
            head,
            spares,
            promised: Promised::default(),
            marked_lsn: head.start_lsn,
            current_bytes,
            file_bytes,
        }
    }

    /// Longest payload of a frame: short enough that little of a file's end stays unused.
    pub(crate) fn fragment_bytes(file_bytes: u64) -> usize {
        let quarter = (file_bytes - FILE_HEAD_BYTES) / 4;
        FRAME_PAYLOAD_BYTES_MAX.min(quarter as usize) / 8 * 8
    }

    /// Spares that the batch would take, and after it what is promised then; and, unless the batch may take from it, the
    /// reserve.
    pub(crate) fn spares_for(&self, batch: &Fragments<'_>, promised: Promised, space: Space) -> usize {
        let (switches, room) = self.switches_for(batch);
        switches
            + match space {
                Space::Free => self.switches_to_keep(room, self.reserve_bytes(), promised),
                Space::Reserve => self.switches_to_keep(room, 0, promised),
            }
    }

    /// Spares that must stay for what is promised, and for the reserve.
    pub(crate) fn spares_to_keep(&self) -> usize {
        self.switches_to_keep(self.room(), self.reserve_bytes(), self.promised)
    }

    /// Changes of the file by what is promised and one batch that takes this much of the reserve, in any order.
    fn switches_to_keep(&self, room: u64, reserve_bytes: u64, promised: Promised) -> usize {
        let bytes = reserve_bytes + promised.way_back_bytes;
        match room.checked_sub(bytes) {
            Some(rest) => self.switches_to_resolve(rest, promised.unresolved),
            // A frame that does not fit leaves the end of the file unused: at most a quarter (`fragment_bytes`).
            None => {
                let whole = (self.file_bytes - FILE_HEAD_BYTES) / 4 * 3;
                bytes.div_ceil(whole) as usize + self.switches_to_resolve(0, promised.unresolved)
            }
        }
    }

    fn reserve_bytes(&self) -> u64 {
        RESERVE_BYTES_MAX.min(self.current_bytes.min(self.file_bytes) / 4)
    }

    /// Bytes left in the file of the next frame.
    fn room(&self) -> u64 {
        self.current_bytes - self.head.offset_of(self.next_lsn)
    }

    /// Changes of the file that so many resolutions will make in a file with that much room.
    fn switches_to_resolve(&self, room: u64, unresolved: u64) -> usize {
        let frames = |room: u64| room / frame_bytes(RESOLUTION_BYTES_MAX) as u64;
        let beyond = unresolved.saturating_sub(frames(room));
        beyond.div_ceil(frames(self.file_bytes - FILE_HEAD_BYTES)) as usize
    }

    /// Spares that the batch would take, and the room it leaves in the last file.
    fn switches_for(&self, batch: &Fragments<'_>) -> (usize, u64) {
        let mut room = self.room();
        let mut switches = 0;
        for i in 0..batch.count() {
            let bytes = frame_bytes(batch.payload(i).len()) as u64;
            if bytes > room {
                switches += 1;
                room = self.file_bytes - FILE_HEAD_BYTES;
            }
            room -= bytes;
        }
        (switches, room)
    }

    /// Copies the batch into the buffer; its seqno. There must be spares for its switches.
    pub(crate) fn push(&mut self, batch: &Fragments<'_>, durable_lsn: u64) -> Seqno {
        let seqno = self.next_seqno;
        let count = batch.count();
        for i in 0..count {
            let payload = batch.payload(i);
            self.make_room(frame_bytes(payload.len()), i > 0);
            let head = FrameHead {
                part: Part::of(i, count),
                payload_len: payload.len() as u32,
                payload_checksum: batch.checksum(i),
                seqno,
                durable_lsn,
            };
            self.push_frame(&head, payload);
        }
        self.next_seqno += 1;
        seqno
    }

    /// Adds a mark, if something was appended since the last one and it fits without a switch.
    pub(crate) fn push_mark(&mut self, durable_lsn: u64) -> bool {
        let left = self.room().checked_sub(FRAME_HEAD_BYTES as u64);
        let fits = left.is_some_and(|room| self.switches_to_keep(room, 0, self.promised) <= self.spares);
        if self.marked_lsn == self.next_lsn || !fits {
            return false;
        }
        let seqno = self.next_seqno - 1;
        let payload_checksum = payload_checksum(&[]);
        let head = FrameHead { part: Part::Mark, payload_len: 0, payload_checksum, seqno, durable_lsn };
        self.push_frame(&head, &[]);
        self.marked_lsn = self.next_lsn;
        true
    }

    /// Whether nothing but a mark would be in the file of the next frame.
    pub(crate) fn is_new(&self) -> bool {
        self.head.first_seqno == self.next_seqno
    }

    fn make_room(&mut self, bytes: usize, continues: bool) {
        if bytes as u64 > self.room() {
            self.change_file(continues);
        }
    }

    /// The next frame goes to a new file. There must be a spare.
    pub(crate) fn change_file(&mut self, continues: bool) {
        assert!(self.spares > 0, "space is reserved before a seqno is given");
        self.spares -= 1;
        self.current_bytes = self.file_bytes;
        self.head = LogFileHead {
            number: self.head.number + 1,
            salt: next_salt(self.head.salt, self.head.number + 1),
            start_lsn: self.next_lsn,
            first_seqno: self.next_seqno,
            continues,
        };
        self.switches.push(Switch { at: self.buffer.len(), head: self.head });
        // A mark makes the new file worth writing.
        self.marked_lsn = 0;
    }

    fn push_frame(&mut self, head: &FrameHead, payload: &[u8]) {
        push_frame(&mut self.buffer, head, self.head.salt, self.next_lsn, payload);
        self.next_lsn += head.frame_bytes();
    }
}

/// Adds the bytes of a frame as they stand in a file with that salt.
pub(crate) fn push_frame(bytes: &mut Vec<u8>, head: &FrameHead, salt: u64, lsn: u64, payload: &[u8]) {
    bytes.extend_from_slice(&head.encode(salt, lsn));
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&[0; 8][..payload.len().next_multiple_of(8) - payload.len()]);
}

/// A salt that no earlier use of a file had: numbers are never used twice, and the first salt of a
/// life comes from the clock.
pub(crate) fn next_salt(before: u64, number: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appender(spares: usize) -> Appender {
        let head = LogFileHead { number: 1, salt: 9, start_lsn: 0, first_seqno: 1, continues: false };
        Appender::new(head, 16 << 10, spares, 16 << 10)
    }

    #[test]
    fn the_switches_planned_for_are_the_switches_made() {
        for len in (0..60_000).step_by(777) {
            let payload = vec![1; len];
            let mut appender = appender(100);
            let batch = Fragments::new(&payload, Appender::fragment_bytes(16 << 10));
            for seqno in 1..5 {
                let (planned, before) = (appender.switches_for(&batch).0, appender.switches.len());
                assert_eq!(appender.push(&batch, 0), seqno);
                assert_eq!(appender.switches.len() - before, planned, "{len} bytes");
            }
            assert_eq!(appender.buffer.len() as u64, appender.next_lsn);
            assert_eq!(appender.spares, 100 - appender.switches.len());
        }
    }

    #[test]
    fn no_two_files_of_a_life_share_a_salt_and_only_a_cut_batch_continues() {
        let mut appender = appender(100);
        let short = Fragments::new(&[1; 3000], Appender::fragment_bytes(16 << 10));
        (0..100).for_each(|_| _ = appender.push(&short, 0));
        let mut salts: Vec<u64> = appender.switches.iter().map(|switch| switch.head.salt).collect();
        assert!(salts.len() > 20 && appender.switches.iter().all(|switch| !switch.head.continues));
        salts.sort_unstable();
        salts.dedup();
        assert_eq!(salts.len(), appender.switches.len());
    }

    #[test]
    fn spares_kept_for_resolutions_are_enough_for_them() {
        let fragment_bytes = Appender::fragment_bytes(16 << 10);
        let resolution = [7; RESOLUTION_BYTES_MAX];
        for len in (0..6_000).step_by(531) {
            let mut appender = appender(100);
            let payload = vec![1; len];
            let batch = Fragments::new(&payload, fragment_bytes);
            for unresolved in 0..700 {
                let promised = Promised { unresolved, ..Promised::default() };
                let kept = appender.spares_for(&batch, promised, Space::Free);
                let before = appender.switches.len();
                appender.push(&batch, 0);
                let spares = kept - (appender.switches.len() - before);
                let mut rest = Appender::new(appender.head, 16 << 10, spares, 16 << 10);
                rest.next_lsn = appender.next_lsn;
                (0..unresolved).for_each(|_| _ = rest.push(&Fragments::new(&resolution, fragment_bytes), 0));
                if appender.spares < 20 {
                    break;
                }
            }
        }
    }

    #[test]
    fn spares_kept_for_ways_back_are_enough_for_them_in_any_order() {
        let fragment_bytes = Appender::fragment_bytes(16 << 10);
        for (len, filler) in [(100, 17), (900, 1000), (2900, 531), (5000, 2222), (20_000, 333)] {
            let mut appender = appender(100);
            let payload = vec![1; len];
            let batch = Fragments::new(&payload, fragment_bytes);
            for ways_back in 1..12 {
                let promised =
                    Promised { way_back_bytes: ways_back * batch.frames_bytes(), ..Promised::default() };
                let filler = vec![2; filler];
                let filler = Fragments::new(&filler, fragment_bytes);
                let kept = appender.spares_for(&filler, promised, Space::Reserve);
                let before = appender.switches.len();
                appender.push(&filler, 0);
                let spares = kept - (appender.switches.len() - before);
                let mut rest = Appender::new(appender.head, 16 << 10, spares, 16 << 10);
                rest.next_lsn = appender.next_lsn;
                (0..ways_back).for_each(|_| _ = rest.push(&batch, 0));
            }
        }
    }

    #[test]
    fn a_mark_comes_once_and_only_where_it_fits() {
        let mut appender = appender(1);
        assert!(!appender.push_mark(0), "nothing to prove yet");
        let batch = Fragments::new(&[1; 100], 1000);
        appender.push(&batch, 0);
        assert!(appender.push_mark(136) && !appender.push_mark(136));
        let filler = vec![1; (16 << 10) - 4096 - 2 * FRAME_HEAD_BYTES - 136];
        appender.push(&Fragments::new(&filler, 1 << 20), 0);
        assert!(appender.switches.is_empty() && !appender.push_mark(136));
    }
}
