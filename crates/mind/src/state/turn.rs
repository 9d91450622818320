//! A turn of an agent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::is_none;
use crate::{
    chain::Chain, chat_client::ChatSettings, composition::IncomingRequest, environment::Environment,
    message_content::MessageContent, provenance::Provenance, submodules::SubmoduleThoughts,
};

/// Something that wants an answer, on its way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentTurn {
    pub cause: TurnCause,
    /// The chain it belongs to.
    pub correlation: Uuid,
    pub thread_id: String,
    pub user: String,
    /// The message answered; empty when none began it.
    pub message_id: String,
    /// Answers of the model that thinks, committed so far.
    pub steps: u32,
    /// Actions whose results it waits for.
    pub waiting: BTreeSet<Uuid>,
    /// Sequence of the input that makes it this turn's move; none while it waits.
    pub due: Option<u64>,
    /// Words not yet in a thread, since it is not known in which they belong.
    pub unplaced: Option<MessageContent>,
    /// The thread suggested to the user, and the user's choice once made.
    pub offer: Option<ThreadSuggestion>,
    /// The steps it is carrying out.
    pub chain: Option<Chain>,
    /// Hooks on whose behalf it runs: they are not triggered by what it does.
    pub lineage: Vec<Uuid>,
    /// The user's guessed goal; none if no guess was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Reviews of what it was about to say.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reflections: u32,
    /// Thoughts of the agent's submodules for this turn.
    #[serde(default, skip_serializing_if = "SubmoduleThoughts::is_nothing")]
    pub counsel: SubmoduleThoughts,
    /// Content from outside that it has seen.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
    /// Perceptions, and the report of the user's client.
    #[serde(default, skip_serializing_if = "Environment::is_nothing")]
    pub environment: Environment,
    /// The request of a chat client, if the turn came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Box<ChatSettings>>,
}

/// A thread that was suggested to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadSuggestion {
    pub id: Uuid,
    /// Position of the offer in the log.
    pub since: u64,
    /// Thread that takes the message if the offer is accepted; `current_thread_id` takes it if declined.
    pub thread_id: String,
    pub current_thread_id: String,
    /// The user's choice; none while pending.
    pub accepted: Option<bool>,
}

/// The cause of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TurnCause {
    /// A user's words.
    Message,
    /// Something happened that the agent goes on from: a process ended, a human gave a verdict.
    Event,
    /// A task's time came, or what it waits for happened.
    Task(Uuid),
    /// A queued task's turn came.
    Work(Uuid),
    /// A direct order: this call is made, no model is asked.
    Order(DirectOrder),
    /// Another agent asks for a call, or for thoughts.
    Request(IncomingRequest),
    /// Something was asked for that cannot be done.
    Refused { kind: String, message: String },
}

/// A call that a user ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectOrder {
    pub tool: String,
    /// A JSON object, as text.
    pub arguments: String,
}

impl AgentTurn {
    /// Returns true if the turn carries out an order of a program or an operator; no model is asked for it.
    pub(crate) fn is_order(&self) -> bool {
        matches!(self.cause, TurnCause::Order(_))
    }

    /// One that has just begun, and waits for nothing yet.
    pub(crate) fn new(cause: TurnCause, correlation: Uuid, thread_id: &str, user: &str) -> Self {
        Self {
            cause,
            correlation,
            thread_id: thread_id.to_owned(),
            user: user.to_owned(),
            message_id: String::new(),
            steps: 0,
            waiting: BTreeSet::new(),
            due: None,
            unplaced: None,
            offer: None,
            chain: None,
            lineage: Vec::new(),
            goal: None,
            reflections: 0,
            counsel: SubmoduleThoughts::default(),
            outside: Provenance::default(),
            environment: Environment::default(),
            chat: None,
        }
    }

    /// Returns true if nothing has happened in the turn yet: no step, pending action, perception or outcome of a call.
    pub fn is_untouched(&self) -> bool {
        let is_called = || self.agent_request().and_then(|it| it.call.as_ref()).is_some_and(|it| it.outcome.is_some());
        self.is_new() && self.waiting.is_empty() && self.environment.perceived.is_none() && !is_called()
    }

    /// Returns true before the turn's first step, offer or chain.
    pub fn is_new(&self) -> bool {
        self.steps == 0 && self.offer.is_none() && self.chain.is_none()
    }
}
