//! Progress bars. Where the output is no terminal, each finished step is one line instead.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BAR: &str = "  {prefix:10} {msg:34} {bar:28.green/dim} {percent:>3}% {elapsed:>4} {eta:>4} left";
const SPINNER: &str = "  {prefix:10} {msg:34} {spinner} {elapsed:>4}";
const TICK: Duration = Duration::from_millis(120);

/// One step of one engine's run.
pub struct Step {
    bar: ProgressBar,
    prefix: String,
    name: String,
    begin: Instant,
    quiet: bool,
}

impl Step {
    /// A step with a known number of parts; 0 for unknown.
    pub fn begin(prefix: &str, name: &str, parts: u64, quiet: bool) -> Step {
        let bar = if parts > 0 { ProgressBar::new(parts) } else { ProgressBar::new_spinner() };
        let shown = !quiet && io::stderr().is_terminal();
        bar.set_draw_target(if shown {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        });
        if let Ok(style) = ProgressStyle::with_template(if parts > 0 { BAR } else { SPINNER }) {
            bar.set_style(style.progress_chars("━━╌"));
        }
        bar.set_prefix(prefix.to_owned());
        bar.set_message(name.to_owned());
        if shown {
            bar.enable_steady_tick(TICK);
        }
        Step { bar, prefix: prefix.to_owned(), name: name.to_owned(), begin: Instant::now(), quiet }
    }

    /// Is anybody looking?
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// So many parts are done.
    pub fn at(&self, parts: u64) {
        self.bar.set_position(parts);
    }

    /// A handle that other threads can report through.
    pub fn handle(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Done; `result` is what to say about it.
    pub fn end(self, result: &str) {
        self.bar.finish_and_clear();
        if !self.quiet {
            let seconds = self.begin.elapsed().as_secs_f64();
            eprintln!(
                "  {:10} {:34} {:>9}  {result}",
                self.prefix,
                self.name,
                crate::report::units::seconds(seconds)
            );
        }
    }
}
