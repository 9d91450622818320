//! Putting turns through lanes: a lane takes one turn at a time, so there are as many in flight as lanes are driven.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

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

/// What all lanes did at once.
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
