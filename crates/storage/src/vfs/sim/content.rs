//! The bytes of one simulated file: as its readers see them, as the disk surely has them, and the
//! operations between, of which a power loss keeps any part.

use super::events::DiskEvents;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: u64 = pando_base::limits::PAGE_BYTES;

/// What a disk writes as a whole.
pub(super) const SECTOR: u64 = 512;

type Page = Arc<[u8; PAGE as usize]>;

/// A sparse sequence of bytes. Pages that are not there read as zeros and take no space.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) len: u64,
    pages: BTreeMap<u64, Page>,
}

/// Pages that `offset..offset + len` touches.
fn pages_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    if len == 0 {
        return 0..0;
    }
    offset / PAGE..(offset + len).div_ceil(PAGE)
}

impl Content {
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Space that writing or reserving the range would take.
    pub(super) fn missing_bytes(&self, offset: u64, len: u64) -> u64 {
        let pages = pages_of(offset, len);
        let there = self.pages.range(pages.clone()).count() as u64;
        (pages.end - pages.start - there) * PAGE
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let n = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < n {
            let at = offset + done as u64;
            let in_page = (at % PAGE) as usize;
            let part = (PAGE as usize - in_page).min(n - done);
            match self.pages.get(&(at / PAGE)) {
                Some(page) => buf[done..done + part].copy_from_slice(&page[in_page..in_page + part]),
                None => buf[done..done + part].fill(0),
            }
            done += part;
        }
        n
    }

    fn page_mut(&mut self, number: u64) -> &mut [u8; PAGE as usize] {
        Arc::make_mut(self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE as usize])))
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let in_page = (at % PAGE) as usize;
            let part = (PAGE as usize - in_page).min(bytes.len() - done);
            self.page_mut(at / PAGE)[in_page..in_page + part].copy_from_slice(&bytes[done..done + part]);
            done += part;
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            let old_len = std::mem::replace(&mut self.len, len);
            self.zero(len, old_len - len);
        }
        self.len = len;
    }

    /// Makes a range read as zeros; whole pages take no space any more.
    fn zero(&mut self, offset: u64, len: u64) {
        for number in pages_of(offset, len) {
            let start = (number * PAGE).max(offset);
            let end = ((number + 1) * PAGE).min(offset + len);
            if end - start == PAGE || number * PAGE >= self.len {
                self.pages.remove(&number);
            } else if self.pages.contains_key(&number) {
                self.page_mut(number)[(start % PAGE) as usize..][..(end - start) as usize].fill(0);
            }
        }
    }

    fn reserve(&mut self, offset: u64, len: u64) {
        let zeros: Page = Arc::new([0; PAGE as usize]);
        for number in pages_of(offset, len) {
            self.pages.entry(number).or_insert_with(|| zeros.clone());
        }
        self.len = self.len.max(offset + len);
    }

    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) {
        if offset < self.len {
            self.page_mut(offset / PAGE)[(offset % PAGE) as usize] ^= 1 << bit;
        }
    }

    fn copy_pages(&mut self, from: &Content, pages: std::ops::Range<u64>) {
        let stale: Vec<u64> = self.pages.range(pages.clone()).map(|(n, _)| *n).collect();
        for number in stale {
            self.pages.remove(&number);
        }
        self.pages.extend(from.pages.range(pages).map(|(n, page)| (*n, page.clone())));
    }
}

/// An operation on a file that no sync has made durable yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen { from: u64, to: u64 },
    Reserve { offset: u64, len: u64 },
    Punch { offset: u64, len: u64 },
}

impl Change {
    fn apply(&self, content: &mut Content) {
        match self {
            Change::Write { offset, bytes } => content.write(bytes, *offset),
            Change::SetLen { to, .. } => content.set_len(*to),
            Change::Reserve { offset, len } => content.reserve(*offset, *len),
            Change::Punch { offset, len } => {
                let end = (offset + len).min(content.len.next_multiple_of(PAGE));
                if *offset < end {
                    content.zero(*offset, end - offset);
                }
            }
        }
    }

    fn pages(&self) -> std::ops::Range<u64> {
        match self {
            Change::Write { offset, bytes } => pages_of(*offset, bytes.len() as u64),
            Change::SetLen { from, to } => pages_of(*from.min(to), from.abs_diff(*to)),
            Change::Reserve { offset, len } | Change::Punch { offset, len } => pages_of(*offset, *len),
        }
    }

    /// What of it is on the disk when power fails: all, nothing, or of a write any of its sectors. True: all.
    fn apply_some(
        &self,
        content: &mut Content,
        likely: f64,
        rng: &mut ChaCha8Rng,
        events: &mut DiskEvents,
    ) -> bool {
        let Change::Write { offset, bytes } = self else {
            let is_kept = rng.random_bool(likely);
            match is_kept {
                true => self.apply(content),
                false => events.resizes_lost += 1,
            }
            return is_kept;
        };
        let torn = rng.random_bool(0.3);
        let whole = rng.random_bool(likely);
        if !torn && whole {
            self.apply(content);
            return true;
        }
        let end = offset + bytes.len() as u64;
        events.writes_lost += u64::from(!torn);
        if torn {
            events.writes_torn += 1;
            let mut start = *offset;
            while start < end {
                let next = ((start / SECTOR + 1) * SECTOR).min(end);
                if rng.random_bool(likely.clamp(0.1, 0.9)) {
                    content.write(&bytes[(start - offset) as usize..(next - offset) as usize], start);
                }
                start = next;
            }
        }
        // The length may be there without the bytes.
        if end > content.len && rng.random_bool(0.25) {
            content.set_len(end);
        }
        false
    }
}

/// A file of the simulated disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// What readers see.
    pub(super) live: Content,
    /// What is surely on the disk, up to `pending`.
    pub(super) durable: Content,
    /// What happened since the last sync, in order.
    pending: Vec<Change>,
    /// Handles that are open.
    pub(super) handles: u32,
}

impl Inode {
    pub(super) fn with_content(content: Content) -> Inode {
        Inode { live: content.clone(), durable: content, ..Inode::default() }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// Everything so far is on the disk. Pages not touched since the last sync are left alone: what
    /// a failed sync lost does not come back.
    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            self.durable.copy_pages(&self.live, change.pages());
        }
        self.durable.len = self.live.len;
    }

    /// The disk after a power loss: each change since the last sync kept, lost or torn. Sometimes
    /// none survives and sometimes all, because those are the states a random subset never shows.
    pub(super) fn after_power_loss(&self, rng: &mut ChaCha8Rng, events: &mut DiskEvents) -> Content {
        let mut content = self.durable.clone();
        let likely = match rng.random_range(0..4) {
            0 => {
                let is_write = |change: &&Change| matches!(change, Change::Write { .. });
                events.writes_lost += self.pending.iter().filter(is_write).count() as u64;
                return content;
            }
            1 => {
                self.pending.iter().for_each(|change| change.apply(&mut content));
                return content;
            }
            2 => 0.5,
            _ => rng.random_range(0.05..0.95),
        };
        let mut is_hole = false;
        for change in &self.pending {
            let is_kept = change.apply_some(&mut content, likely, rng, events);
            events.writes_reordered += u64::from(is_kept && is_hole);
            is_hole |= !is_kept;
        }
        content
    }

    /// A sync that failed: some of it reached the disk, and the rest is forgotten though readers
    /// still see it.
    pub(super) fn fail_sync(&mut self, rng: &mut ChaCha8Rng, events: &mut DiskEvents) {
        self.durable = self.after_power_loss(rng, events);
        self.pending.clear();
    }
}
