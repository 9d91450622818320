//! Tokens that models are writing, for chats that stream their answers.
//!
//! A subscription for each chat would cost the server more than the tokens themselves, and hand every chat of an agent
//! the tokens of the others. So all chats share one subscription while there are any, and each chat receives the
//! tokens of its own turn.

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
    live_pieces,
};

/// The interval at which the shared subscription is closed if no chat is left.
const LOOKED_AFTER: Duration = Duration::from_secs(30);
/// The most pieces that wait for one chat. A chat that falls behind further gets the rest when the answer is committed.
const WAITING: usize = 1_024;

/// The shared subscription to tokens, dispatched by turn; cheap to clone.
#[derive(Clone)]
pub struct LiveTokens {
    bus: Bus,
    words: Dispatcher<Arc<Record>>,
    /// True while the shared subscription is open.
    listening: Arc<Mutex<bool>>,
}

impl LiveTokens {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), words: Dispatcher::new(0, WAITING), listening: Arc::default() }
    }

    /// Subscribes to the tokens written in a turn from now on.
    pub async fn subscribe_turn(&self, turn: Uuid) -> Result<Subscription<Arc<Record>>, BusError> {
        let mut listening = self.listening.lock().await;
        if !*listening {
            let heard = self.bus.nats()?.client.subscribe(LIVE_TOKEN.filter()).await;
            let unavailable = |source| BusError::Unavailable { doing: "listening to what is live", source };
            tokio::spawn(self.clone().dispatch_tokens(heard.map_err(|error| unavailable(error.into()))?));
            *listening = true;
        }
        // Under the lock, so that the task that may close the subscription sees this subscriber.
        Ok(self.words.subscribe(Interest::Correlation(turn)))
    }

    async fn dispatch_tokens(self, mut heard: Subscriber) {
        let mut looks = interval(LOOKED_AFTER);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        loop {
            tokio::select! {
                piece = heard.next() => match piece {
                    Some(piece) => self.dispatch_piece(piece),
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

    fn dispatch_piece(&self, piece: async_nats::Message) {
        let piece = live_pieces::raw_message(piece);
        let Some((_, turn)) = piece.ids() else { return };
        let turn = [Interest::Correlation(turn)];
        if !self.words.skip_if_unwanted(0, &turn, false)
            && let Ok(record) = piece.read(self.bus.limits.max_body_bytes)
        {
            self.words.dispatch(0, &turn, &Arc::new(record));
        }
    }
}
