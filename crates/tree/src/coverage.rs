//! What recovery would still need from the log: spans of commits not in the durable checkpoint.

use std::collections::VecDeque;

use pando_base::Seqno;

/// One sealed memtable or one truncation.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// First commit in it.
    first: Seqno,
    /// A checkpoint with this durable seqno holds all of it.
    last: Seqno,
}

/// Spans in the order of their commits; the active memtable is not among them.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    spans: VecDeque<Span>,
}

impl Coverage {
    pub(crate) fn push(&mut self, first: Seqno, last: Seqno) {
        debug_assert!(first <= last);
        self.spans.push_back(Span { first, last });
    }

    /// Everything before is of no interest any more, but this commit is.
    pub(crate) fn truncate(&mut self, seqno: Seqno) {
        self.spans.clear();
        self.push(seqno, seqno);
    }

    /// A checkpoint up to `seqno` is durable.
    pub(crate) fn made_durable(&mut self, seqno: Seqno) {
        self.spans.retain(|span| span.last > seqno);
    }

    /// First commit that only the log has.
    pub(crate) fn first(&self) -> Option<Seqno> {
        self.spans.iter().map(|span| span.first).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_frees_the_log_of_what_it_covers() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.first(), None);
        coverage.push(3, 7);
        coverage.push(8, 12);
        assert_eq!(coverage.first(), Some(3));
        coverage.made_durable(7);
        assert_eq!(coverage.first(), Some(8));
        coverage.made_durable(11);
        assert_eq!(coverage.first(), Some(8));
        coverage.truncate(20);
        assert_eq!(coverage.first(), Some(20));
        coverage.made_durable(20);
        assert_eq!(coverage.first(), None);
    }
}
