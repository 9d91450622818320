//! Saying something to an agent and following what comes of it.

use kairo_core::{event_json::EventJson, ids::Name};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    client::{AcceptedMessage, Client, ClientError, EventFilter, EventFollower, NewMessage, StreamUpdate},
    question::AgentQuestion,
    turn::{Ending, TurnChange, TurnTracker},
};

/// One message and its consequences, from the moment it was accepted.
pub struct Exchange {
    pub accepted: AcceptedMessage,
    /// Every event since the message, in the order of the log; once it was joined to another turn, that one's.
    pub events: Vec<EventJson>,
    turn: TurnTracker,
    client: Client,
    follow: EventFollower,
    agent: Option<String>,
    /// True if it may have been said before, so that questions may be answered already.
    again: bool,
    /// The piece that comes next, if none is lost.
    next_token: u64,
    /// True if an answer began and no piece of it was told yet.
    fresh: bool,
}

/// The next update of an exchange.
#[derive(Debug)]
pub enum Update {
    /// A piece of an answer while the model writes it; `first` if it begins one.
    Token { text: String, first: bool },
    /// An event, the last of [`Exchange::events`].
    Event,
    /// The event that asks the user something; nothing goes on until it is answered.
    Asked(AgentQuestion),
    /// The event that ended the turn.
    End(Ending),
}

impl Exchange {
    /// Sends the message. Following begins just before it in the log, so nothing is missed, neither what happened
    /// before the connection stood nor, if this message was sent before, the reply that came then.
    pub async fn begin(client: &Client, message: &NewMessage) -> Result<Self, ClientError> {
        let accepted = client.send(message).await?;
        let turn = TurnTracker::new(accepted.correlation_id);
        Ok(Self {
            follow: follow(client, accepted.correlation_id, accepted.sequence),
            client: client.clone(),
            accepted,
            events: Vec::new(),
            turn,
            agent: message.agent.clone(),
            again: message.message_id.is_some(),
            next_token: 0,
            fresh: false,
        })
    }

    /// Waits for what happens next; the caller sets the limit.
    pub async fn next(&mut self) -> Result<Update, ClientError> {
        loop {
            match self.follow.next().await? {
                StreamUpdate::Event(event) => {
                    let change = self.turn.observe(&event);
                    let sequence = event.sequence;
                    self.events.push(*event);
                    match change {
                        Some(TurnChange::Ended(ending)) => return Ok(Update::End(ending)),
                        // The reply may stand in the very message that says so.
                        Some(TurnChange::Joined(turn)) => self.follow = follow(&self.client, turn, sequence),
                        Some(TurnChange::Asked(question)) => {
                            match self.again && self.is_answered(&question, sequence).await {
                                true => {}
                                false => return Ok(Update::Asked(question)),
                            }
                        }
                        None => {}
                    }
                    return Ok(Update::Event);
                }
                StreamUpdate::Live { name, data } if name == "token" => {
                    if let Some(token) = self.token(&data) {
                        return Ok(token);
                    }
                }
                StreamUpdate::Live { .. } | StreamUpdate::TurnStatus(_) => {}
            }
        }
    }

    /// Returns true if the read model knows an answer to the question at this sequence of the log. If it cannot say,
    /// the question is put again, and the agent refuses an answer too many.
    async fn is_answered(&self, question: &AgentQuestion, sequence: u64) -> bool {
        let agent = Name::parse(&question.agent).ok();
        let filter = EventFilter { agent, after: Some(sequence), ..EventFilter::default() };
        let page = self.client.events(&filter).await;
        page.is_ok_and(|page| page.events.iter().any(|event| question.is_answered_by(event)))
    }

    /// A piece of this turn's answer, if it continues what was told. Pieces may be lost, and half an answer is worse
    /// than one that comes whole at the end.
    fn token(&mut self, data: &Value) -> Option<Update> {
        let token = TokenPiece::deserialize(data).ok()?;
        let ours = |token: &TokenPiece| {
            token.correlation_id.is_none_or(|id| id == self.turn.correlation_id())
                && (self.agent.is_none() || token.agent == self.agent)
        };
        if !ours(&token) || (token.index != 0 && token.index != self.next_token) {
            return None;
        }
        self.fresh |= token.index == 0;
        self.next_token = token.index + 1;
        if token.reasoning {
            return None;
        }
        Some(Update::Token { text: token.text, first: std::mem::take(&mut self.fresh) })
    }
}

/// Follows a turn from this message of the log on.
fn follow(client: &Client, correlation: Uuid, from: u64) -> EventFollower {
    let after = Some(from.saturating_sub(1));
    client.follow(EventFilter { correlation: Some(correlation), after, ..EventFilter::default() }, true)
}

/// A piece of an answer, as the gateway tells it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenPiece {
    index: u64,
    text: String,
    reasoning: bool,
    agent: Option<String>,
    correlation_id: Option<Uuid>,
}
