//! Pauses between attempts, with full jitter, so that clients that lost the same node do not come back in step.

use std::time::Duration;

use rand::Rng;

/// Grows a ceiling and draws each pause uniformly below it.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    attempt: u32,
}

impl Backoff {
    /// Pauses between attempts of one call: up to 50 ms at first, doubling to 1 s (wire 14.2).
    pub fn of_call() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// Pauses between passes of a connect: up to `interval` at first, doubling to 10 s (wire 14.1).
    pub fn of_connect(interval: Duration) -> Self {
        Self::new(interval, Duration::from_secs(10).max(interval))
    }

    fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, attempt: 0 }
    }

    /// The ceiling of the next pause.
    fn ceiling(&self) -> Duration {
        self.first
            .saturating_mul(1_u32.checked_shl(self.attempt).unwrap_or(u32::MAX))
            .min(self.cap)
    }

    /// Draws the next pause.
    pub fn next_pause(&mut self) -> Duration {
        let ceiling = self.ceiling();
        self.attempt = self.attempt.saturating_add(1);
        ceiling.mul_f64(rand::rng().random_range(0.0..=1.0))
    }

    /// The ceiling itself as a pause: doubling without jitter, for a server that asked for patience.
    pub fn next_doubling(&mut self) -> Duration {
        let ceiling = self.ceiling();
        self.attempt = self.attempt.saturating_add(1);
        ceiling
    }

    /// Starts over.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_many_attempts_when_pausing_should_double_up_to_the_cap() {
        let mut backoff = Backoff::of_call();
        let ceilings: Vec<_> = (0..40).map(|_| backoff.next_doubling().as_millis()).collect();
        assert_eq!(ceilings[..6], [50, 100, 200, 400, 800, 1000]);
        assert_eq!(ceilings[39], 1000);
        backoff.reset();
        assert!(backoff.next_pause() <= Duration::from_millis(50));
    }
}
