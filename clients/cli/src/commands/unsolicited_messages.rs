//! Messages that an agent sends a user unasked: that a process has ended, or what a task was to tell or wants to do.

use std::collections::BTreeSet;

use kairo_core::{event_json::EventJson, ids::Name};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{GatewaySession, question_prompt, status::end_of_log};
use crate::{
    Error,
    client::{ClientError, EventFilter, EventFollower, StreamUpdate},
    event_lines::printable,
    question::AgentQuestion,
    terminal,
    turn::is_unsolicited,
};

pub(super) struct UnsolicitedMessages {
    follow: EventFollower,
    user: String,
    json: bool,
    /// The turns of messages that are followed by themselves, by correlation id: what is asked in them is put there.
    followed: BTreeSet<Uuid>,
}

/// One thing of it.
pub(super) enum UnsolicitedMessage {
    Words(String),
    Question(AgentQuestion),
}

impl UnsolicitedMessages {
    pub(super) async fn follow_from_now(
        agent: Option<&Name>,
        user: &Name,
        session: &GatewaySession,
    ) -> Result<Self, Error> {
        let after = Some(end_of_log(session).await?);
        let filter = EventFilter { agent: agent.cloned(), after, ..EventFilter::default() };
        let follow = session.client.follow(filter, false);
        Ok(Self { follow, user: user.to_string(), json: session.json, followed: BTreeSet::new() })
    }

    /// Passes over what is asked in the turn of this message.
    pub(super) fn exclude_turn(&mut self, correlation: Uuid) {
        self.followed.insert(correlation);
    }

    /// Waits for the next. May be given up at any time.
    pub(super) async fn next_message(&mut self) -> Result<UnsolicitedMessage, ClientError> {
        loop {
            if let StreamUpdate::Event(event) = self.follow.next().await?
                && event.payload.get("user").and_then(Value::as_str) == Some(&self.user)
                && let Some(aside) = self.unsolicited_message(&event)
            {
                return Ok(aside);
            }
        }
    }

    fn unsolicited_message(&self, event: &EventJson) -> Option<UnsolicitedMessage> {
        if is_unsolicited(event) {
            return Some(UnsolicitedMessage::Words(event.text().to_owned()));
        }
        AgentQuestion::from_event(event)
            .filter(|_| !self.followed.contains(&event.correlation_id))
            .map(UnsolicitedMessage::Question)
    }

    /// Shows it below the line that is being written.
    pub(super) fn print_message(&self, aside: &UnsolicitedMessage) -> Result<(), Error> {
        match aside {
            UnsolicitedMessage::Words(words) if self.json => {
                terminal::json(&json!({"outcome": "said", "text": words}))?
            }
            UnsolicitedMessage::Question(question) if self.json => {
                terminal::json(&json!({"outcome": "asked", "question": question}))?;
            }
            UnsolicitedMessage::Words(words) => terminal::line(format!("\n{}", printable(words)))?,
            UnsolicitedMessage::Question(question) => {
                terminal::line("")?;
                question_prompt::print_question(question)?;
            }
        }
        Ok(())
    }
}
