//! Durable consumers: what is out, with whom, and until when.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kairo_core::bus::port::{PulledMessage, Settlement};
use tokio::{sync::mpsc, time::Instant};

/// A message on its way through a consumer.
#[derive(Debug)]
struct Item {
    attempts: u64,
    state: DeliveryState,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DeliveryState {
    /// It waits to be delivered, until then at the least.
    Waits(Instant),
    /// It is with somebody, who must be heard of before then.
    Out { replica: usize, until: Instant },
}

/// Somebody's share in a consumer.
#[derive(Debug)]
pub struct ConsumerShare {
    pub replica: usize,
    pub messages: mpsc::UnboundedSender<PulledMessage>,
    /// Messages delivered to the share and not taken yet.
    pub waiting: Arc<AtomicUsize>,
}

/// Most messages that one share may have without having taken them.
const BATCH: usize = 64;

#[derive(Debug)]
pub struct Durable {
    pub filters: Vec<String>,
    pub ack_wait: Duration,
    items: BTreeMap<u64, Item>,
    pub shares: Vec<ConsumerShare>,
    turn: usize,
}

impl Durable {
    pub fn new(filters: Vec<String>, ack_wait: Duration) -> Self {
        Self { filters, ack_wait, items: BTreeMap::new(), shares: Vec::new(), turn: 0 }
    }

    pub fn add(&mut self, sequence: u64) {
        self.items.insert(sequence, Item { attempts: 0, state: DeliveryState::Waits(Instant::now()) });
    }

    /// Returns the next message to deliver: its sequence, its attempt, and the share that gets it.
    pub fn next_delivery(&mut self) -> Option<(u64, u64, usize)> {
        let now = Instant::now();
        self.shares.retain(|share| !share.messages.is_closed());
        let free = |share: &ConsumerShare| share.waiting.load(Ordering::Relaxed) < BATCH;
        let turns = (0..self.shares.len()).map(|step| (self.turn + step) % self.shares.len());
        let mut in_turn = turns.filter_map(|at| Some((at, self.shares.get(at)?)));
        let (share, replica) = in_turn.find(|(_, share)| free(share)).map(|(at, share)| (at, share.replica))?;
        let ready = |item: &&mut Item| match item.state {
            DeliveryState::Waits(from) => from <= now,
            DeliveryState::Out { until, .. } => until <= now,
        };
        let (sequence, item) =
            self.items.iter_mut().map(|(sequence, item)| (*sequence, item)).find(|(_, it)| ready(it))?;
        item.attempts += 1;
        item.state = DeliveryState::Out { replica, until: now + self.ack_wait };
        self.turn = share + 1;
        Some((sequence, item.attempts, share))
    }

    /// Settles a delivery, unless it was delivered again since.
    pub fn settle(&mut self, sequence: u64, attempt: u64, settlement: Settlement) {
        let now = Instant::now();
        let Some(item) = self.items.get_mut(&sequence) else { return };
        match settlement {
            // Done is done, whoever says so.
            Settlement::Done | Settlement::GivenUp => _ = self.items.remove(&sequence),
            _ if item.attempts != attempt => {}
            Settlement::Again(delay) => item.state = DeliveryState::Waits(now + delay),
            Settlement::InProgress => {
                if let DeliveryState::Out { until, .. } = &mut item.state {
                    *until = now + self.ack_wait;
                }
            }
        }
    }

    /// Something that is out comes again.
    pub fn redeliver(&mut self, which: usize) -> bool {
        let mut out = self.items.values_mut().filter(|item| matches!(item.state, DeliveryState::Out { .. }));
        let Some(item) = out.nth(which) else { return false };
        item.state = DeliveryState::Waits(Instant::now());
        true
    }

    pub fn in_flight_count(&self) -> usize {
        self.items.values().filter(|item| matches!(item.state, DeliveryState::Out { .. })).count()
    }

    pub fn is_settled(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the sequences and attempts of messages in hand, for debugging.
    pub fn pending_attempts(&self) -> Vec<(u64, u64)> {
        self.items.iter().map(|(sequence, item)| (*sequence, item.attempts)).collect()
    }

    /// A replica's shares end with its connection.
    pub fn remove_replica(&mut self, replica: usize) {
        self.shares.retain(|share| share.replica != replica);
    }
}
