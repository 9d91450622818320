//! The limits on restarting a process that keeps ending.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// More restarts than [`LIMIT`] in this time help nobody.
const WINDOW: Duration = Duration::from_secs(60);
const LIMIT: usize = 6;

/// Pause before the second restart; it doubles for each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// The restarts of one process.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    recent: VecDeque<Instant>,
}

/// The decision about a process that ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// Start it again after this pause.
    After(Duration),
    /// It will not get better by itself.
    GiveUp,
}

impl Restarts {
    /// The process has ended now.
    pub(super) fn decide_restart(&mut self, now: Instant) -> RestartDecision {
        while self.recent.front().is_some_and(|then| now.duration_since(*then) >= WINDOW) {
            self.recent.pop_front();
        }
        let before = self.recent.len();
        if before >= LIMIT {
            return RestartDecision::GiveUp;
        }
        self.recent.push_back(now);
        RestartDecision::After(match before {
            0 => Duration::ZERO,
            // At most LIMIT, so the shift is small.
            before => PAUSE * (1 << (before - 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_it_is_given_up() {
        let mut restarts = Restarts::default();
        let now = Instant::now();
        let pauses: Vec<_> = std::iter::repeat_with(|| restarts.decide_restart(now)).take(LIMIT + 1).collect();
        let after = |milliseconds| RestartDecision::After(Duration::from_millis(milliseconds));
        let expected =
            [after(0), after(250), after(500), after(1_000), after(2_000), after(4_000), RestartDecision::GiveUp];
        assert_eq!(pauses, expected);
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut restarts = Restarts::default();
        let now = Instant::now();
        for _ in 0..LIMIT {
            restarts.decide_restart(now);
        }
        assert_eq!(restarts.decide_restart(now + WINDOW), RestartDecision::After(Duration::ZERO));
    }
}
