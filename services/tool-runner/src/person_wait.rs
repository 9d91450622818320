//! Time in which a call waits for a person, which is not the call's own.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The number of people that a call waits for now.
#[derive(Debug, Clone)]
pub struct PersonWait(watch::Sender<usize>);

/// The call waits until this is dropped.
#[derive(Debug)]
pub struct Wait(PersonWait);

impl Default for PersonWait {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl PersonWait {
    /// Says that the call waits for a person.
    pub fn begin(&self) -> Wait {
        self.0.send_modify(|people| *people += 1);
        Wait(self.clone())
    }

    /// Until the call has had so much time of its own.
    pub async fn own_time_elapsed(&self, limit: Duration) {
        let mut people = self.0.subscribe();
        let mut left = limit;
        loop {
            let is_waiting = *people.borrow_and_update() > 0;
            // The sender is here, so that it cannot be gone.
            if is_waiting {
                let _ = people.changed().await;
                continue;
            }
            let since = Instant::now();
            tokio::select! {
                biased;
                () = sleep(left) => return,
                _ = people.changed() => left = left.saturating_sub(since.elapsed()),
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.0.send_modify(|people| *people = people.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_with_a_person_does_not_count() {
        let waiting = PersonWait::default();
        let begun = Instant::now();
        let asking = async {
            sleep(Duration::from_secs(3)).await;
            let one = waiting.begin();
            let two = waiting.begin();
            sleep(Duration::from_secs(600)).await;
            drop(one);
            sleep(Duration::from_secs(600)).await;
            drop(two);
        };
        tokio::join!(waiting.own_time_elapsed(Duration::from_secs(10)), asking);
        assert_eq!(begun.elapsed(), Duration::from_secs(1210));
    }
}
