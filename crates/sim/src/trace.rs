//! What happened, in words, for the seed that is looked at.

use std::collections::VecDeque;

use crate::setup::Lines;

const LINES_KEPT: usize = 2000;

/// The last lines of a run, if asked for.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    lines: Option<VecDeque<String>>,
}

impl Trace {
    /// Keeps nothing.
    pub fn off() -> Trace {
        Trace::default()
    }

    /// Keeps the last lines.
    pub fn on() -> Trace {
        Trace { lines: Some(VecDeque::new()) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn add(&mut self, line: String) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES_KEPT {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    /// Takes over what the engine has logged.
    pub(crate) fn lines(&mut self, lines: &Lines) {
        let logged = std::mem::take(&mut *lines.lock().expect("nobody panics with it"));
        if self.is_on() {
            logged.into_iter().for_each(|line| self.add(format!("  log: {line}")));
        }
    }

    /// The last so many lines.
    pub fn tail(&self, count: usize) -> Vec<&str> {
        let Some(lines) = &self.lines else { return Vec::new() };
        lines.iter().skip(lines.len().saturating_sub(count)).map(String::as_str).collect()
    }
}
