//! Progress of long sends and polls, on standard error and only at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

const REDRAWS_PER_SECOND: u8 = 10;

/// A line that counts messages and shows their rate.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts it; nothing is drawn when standard error is no terminal or `--quiet` is given.
    pub fn start(verb: &'static str, output: Output) -> Self {
        let target = if output.is_quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {human_pos} messages, {per_sec}, {elapsed}") {
            bar.set_style(style);
        }
        bar.set_prefix(verb);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// Counts more messages.
    pub fn add(&self, messages: u64) {
        self.0.inc(messages);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
