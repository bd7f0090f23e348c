//! Keeps an actor at its rate.

use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// When the next batch is due. An actor that fell behind catches up, at most a second's worth.
pub struct Pace {
    interval: Option<Duration>,
    due: Instant,
}

impl Pace {
    /// One batch in each `interval`, or as fast as it goes.
    pub fn new(interval: Option<Duration>) -> Self {
        Self {
            interval,
            due: Instant::now(),
        }
    }

    /// Waits for the next batch's turn.
    pub async fn turn(&mut self) {
        let Some(interval) = self.interval else { return };
        let now = Instant::now();
        self.due = self.due.max(now.checked_sub(Duration::from_secs(1)).unwrap_or(now));
        sleep_until(self.due).await;
        self.due += interval;
    }
}
