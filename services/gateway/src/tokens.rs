//! What models are writing, for chats whose answers are shown while they grow.
//!
//! A subscription for each chat would cost the server more than what comes over it, and hand every chat of an agent the
//! words meant for the others. So all chats share one, for as long as there are any, and each is handed the words of its
//! own turn.

use std::{sync::Arc, time::Duration};

use async_nats::Subscriber;
use futures::StreamExt;
use kairo_core::{
    bus::{Bus, BusError},
    record::Record,
    subjects::LIVE_TOKEN,
};
use tokio::{
    sync::Mutex,
    time::{MissedTickBehavior, interval},
};
use uuid::Uuid;

use crate::{
    dispatch::{Dispatcher, Interest, Subscription},
    live,
};

/// How often it is looked whether anybody is still there to listen for.
const LOOKED_AFTER: Duration = Duration::from_secs(30);
/// Pieces that wait for one chat. One that has more waiting is shown the rest when it is committed.
const WAITING: usize = 1_024;

/// Where chats are handed their words.
#[derive(Clone)]
pub struct Tokens {
    bus: Bus,
    words: Dispatcher<Arc<Record>>,
    /// Whether there is a subscription.
    listening: Arc<Mutex<bool>>,
}

impl Tokens {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), words: Dispatcher::new(0, WAITING), listening: Arc::default() }
    }

    /// What is written in a turn from now on.
    pub async fn of(&self, turn: Uuid) -> Result<Subscription<Arc<Record>>, BusError> {
        let mut listening = self.listening.lock().await;
        if !*listening {
            let heard = self.bus.nats()?.client.subscribe(LIVE_TOKEN.filter()).await;
            let unavailable = |source| BusError::Unavailable { doing: "listening to what is live", source };
            tokio::spawn(self.clone().listen(heard.map_err(|error| unavailable(error.into()))?));
            *listening = true;
        }
        // Under the lock: whoever ends the subscription sees that it is wanted.
        Ok(self.words.subscribe(Interest::Correlation(turn)))
    }

    async fn listen(self, mut heard: Subscriber) {
        let mut looks = interval(LOOKED_AFTER);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        loop {
            tokio::select! {
                piece = heard.next() => match piece {
                    Some(piece) => self.hand_on(piece),
                    // The connection is closed for good.
                    None => return,
                },
                _ = looks.tick() => {
                    let mut listening = self.listening.lock().await;
                    if self.words.is_idle() {
                        *listening = false;
                        return;
                    }
                }
            }
        }
    }

    fn hand_on(&self, piece: async_nats::Message) {
        let piece = live::raw(piece);
        let Some((_, turn)) = piece.ids() else { return };
        let turn = [Interest::Correlation(turn)];
        if !self.words.pass_over(0, &turn, false)
            && let Ok(record) = piece.read(self.bus.limits.max_body_bytes)
        {
            self.words.dispatch(0, &turn, &Arc::new(record));
        }
    }
}
