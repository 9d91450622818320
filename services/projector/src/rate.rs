//! The rate of messages over time.

use std::time::Duration;

use tokio::time::Instant;

/// After this time what was measured before counts for little.
const MEMORY: Duration = Duration::from_secs(5);

/// A moving average.
#[derive(Debug, Default)]
pub struct MovingRate {
    /// In messages a second.
    average: f64,
    since: Option<Instant>,
}

impl MovingRate {
    /// The average in messages a second, so many having passed since the last time.
    pub fn record_messages(&mut self, messages: usize) -> f64 {
        let now = Instant::now();
        if let Some(since) = self.since.replace(now) {
            self.average = weighted_average(self.average, messages, now.duration_since(since));
        }
        self.average
    }
}

fn weighted_average(before: f64, messages: usize, passed: Duration) -> f64 {
    let seconds = passed.as_secs_f64().max(1e-6);
    let now = messages as f64 / seconds;
    let weight = (-seconds / MEMORY.as_secs_f64()).exp();
    // Nothing was measured before the first time.
    if before == 0.0 { now } else { before * weight + now * (1.0 - weight) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_is_measured_and_forgets_what_was() {
        let second = Duration::from_secs(1);
        assert!((weighted_average(0.0, 500, second) - 500.0).abs() < 1e-9);
        let slower = weighted_average(500.0, 100, second);
        assert!(slower > 400.0 && slower < 500.0);
        assert!(weighted_average(500.0, 0, Duration::from_secs(60)) < 1.0);
    }
}
