//! Putting turns through lanes: a lane takes one turn at a time, so there are as many in flight as lanes are driven.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Outcome;

/// Turns of one agent, one after the other.
pub trait Lane: Send + 'static {
    /// From sending the message until its reply is seen.
    fn turn(&mut self) -> impl Future<Output = Outcome<Duration>> + Send;
}

/// Latencies at one in flight, over all lanes in turn, shortest first.
pub async fn one_at_a_time<L: Lane>(lanes: &mut [L], turns: u64) -> Outcome<Vec<Duration>> {
    let mut latencies = Vec::new();
    while (latencies.len() as u64) < turns {
        for lane in &mut *lanes {
            latencies.push(lane.turn().await?);
        }
    }
    latencies.sort_unstable();
    Ok(latencies)
}

/// The results of all lanes at once.
pub struct Together {
    pub took: Duration,
    /// Shortest first.
    pub latencies: Vec<Duration>,
}

/// All lanes at once, until so many turns are done.
pub async fn all_at_once<L: Lane>(lanes: &mut Vec<L>, turns: u64) -> Outcome<Together> {
    let begun = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let tasks: Vec<_> = lanes
        .drain(..)
        .map(|mut lane| {
            let begun = begun.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while begun.fetch_add(1, Ordering::Relaxed) < turns {
                    latencies.push(lane.turn().await?);
                }
                Outcome::Ok((lane, latencies))
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        let (lane, measured) = task.await??;
        lanes.push(lane);
        latencies.extend(measured);
    }
    let took = started.elapsed();
    latencies.sort_unstable();
    Ok(Together { took, latencies })
}

/// Reply times of all lanes.
#[derive(Default)]
pub struct Waits {
    /// Shortest first.
    pub replies: Vec<Duration>,
    /// The longest, and when its message was sent, from the beginning.
    pub longest: (Duration, Duration),
    /// Turns that failed: messages that were not taken, or not answered in time.
    pub unanswered: u64,
    /// The error of one of them.
    pub failure: Option<String>,
}

/// Turns of all lanes, each one after the other and a pause behind it, until something is over; and what that came to.
pub async fn for_a_while<L: Lane, T>(
    lanes: Vec<L>,
    pause: Duration,
    over: impl Future<Output = T>,
) -> Outcome<(Vec<L>, Waits, T)> {
    let (begun, ended) = (Instant::now(), CancellationToken::new());
    let mut running = JoinSet::new();
    for mut lane in lanes {
        let ended = ended.clone();
        running.spawn(async move {
            let mut waits = Waits::default();
            while !ended.is_cancelled() {
                let sent = begun.elapsed();
                match lane.turn().await {
                    Ok(latency) => {
                        waits.longest = waits.longest.max((latency, sent));
                        waits.replies.push(latency);
                    }
                    Err(error) => {
                        waits.unanswered += 1;
                        waits.failure.get_or_insert_with(|| error.to_string());
                    }
                }
                tokio::time::sleep(pause).await;
            }
            (lane, waits)
        });
    }
    let came_to = over.await;
    ended.cancel();
    let (mut lanes, mut waits) = (Vec::new(), Waits::default());
    while let Some(ended) = running.join_next().await {
        let (lane, its) = ended?;
        lanes.push(lane);
        waits.longest = waits.longest.max(its.longest);
        waits.replies.extend(its.replies);
        waits.unanswered += its.unanswered;
        waits.failure = waits.failure.or(its.failure);
    }
    waits.replies.sort_unstable();
    Ok((lanes, waits, came_to))
}

/// The value that this share of all is not above. `sorted` begins with the smallest.
pub fn percentile<T: Copy + Default>(sorted: &[T], share: f64) -> T {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u32> = (1..=100).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| percentile(&values, share)), [1, 50, 99, 100]);
        assert_eq!(percentile::<u32>(&[], 0.5), 0);
        assert_eq!(percentile(&[7, 8, 9], 0.5), 8);
    }
}
