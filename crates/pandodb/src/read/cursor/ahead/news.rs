//! Own writes that rows ahead do not show: those done since the cursor's seek.
//!
//! A statement that changes each row it reads writes between any two of them. What is in memory is quickly asked again;
//! what was spilled is in files. It changes seldom, so it is asked again only when it has changed, or the cursor has passed what was
//! found. What was written before the seek is not asked at all: the rows are merged with it.

use std::ops::Bound;

use pando_base::DictId;
use pando_txn::Mark;

use crate::error::Result;
use crate::table::writes::Writes;

/// The first key of these writes, from the row that the cursor is at to the last one ahead.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Of the write set, known up to this mark. Older writes may be among them.
    in_memory: Option<(Mark, Option<Vec<u8>>)>,
    /// Of the spilled levels, for this number of their changes.
    in_levels: Option<(u64, Option<Vec<u8>>)>,
}

impl News {
    /// Finds out what is not known. `since`: the mark of the seek.
    pub(super) fn update(
        &mut self,
        (writes, dict, since): (&Writes, DictId, Mark),
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        let state = writes.read();
        let mark = state.set.mark();
        if self.in_memory.as_ref().is_none_or(|(known, _)| *known != mark) {
            let first = state.set.next_ge(dict, Bound::Included(from), Mark::LATEST).map(|(key, _)| key);
            self.in_memory = Some((mark, first.filter(|key| *key <= to).map(<[u8]>::to_vec)));
        }
        if self.in_levels.as_ref().is_none_or(|(known, _)| *known != state.changes) {
            let first = state.first_spilled_since(dict, since, Bound::Included(from), Bound::Included(to))?;
            self.in_levels = Some((state.changes, first));
        }
        Ok(())
    }

    /// Whether some are to a key up to this one.
    pub(super) fn is_any_up_to(&self, key: &[u8]) -> bool {
        let firsts =
            [self.in_memory.as_ref().map(|known| &known.1), self.in_levels.as_ref().map(|known| &known.1)];
        firsts.into_iter().flatten().flatten().any(|first| first.as_slice() <= key)
    }
}
