//! Messages that an agent sends a user unasked: that a process has ended, or what a task was to tell or wants to do.

use std::collections::BTreeSet;

use kairo_core::{event_json::EventJson, ids::Name};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Session, ask, status::end_of_log};
use crate::{
    Error,
    client::{ClientError, EventFilter, Follow, Told},
    event_lines::printable,
    question::Question,
    terminal,
    turn::is_unasked,
};

pub(super) struct Unasked {
    follow: Follow,
    user: String,
    json: bool,
    /// The turns of messages that are followed by themselves, by correlation id: what is asked in them is put there.
    followed: BTreeSet<Uuid>,
}

/// One thing of it.
pub(super) enum Aside {
    Words(String),
    Question(Question),
}

impl Unasked {
    pub(super) async fn from_now_on(agent: Option<&Name>, user: &Name, session: &Session) -> Result<Self, Error> {
        let after = Some(end_of_log(session).await?);
        let filter = EventFilter { agent: agent.cloned(), after, ..EventFilter::default() };
        let follow = session.client.follow(filter, false);
        Ok(Self { follow, user: user.to_string(), json: session.json, followed: BTreeSet::new() })
    }

    /// Passes over what is asked in the turn of this message.
    pub(super) fn leave_out(&mut self, correlation: Uuid) {
        self.followed.insert(correlation);
    }

    /// Waits for the next. May be given up at any time.
    pub(super) async fn next(&mut self) -> Result<Aside, ClientError> {
        loop {
            if let Told::Event(event) = self.follow.next().await?
                && event.payload.get("user").and_then(Value::as_str) == Some(&self.user)
                && let Some(aside) = self.aside(&event)
            {
                return Ok(aside);
            }
        }
    }

    fn aside(&self, event: &EventJson) -> Option<Aside> {
        if is_unasked(event) {
            return Some(Aside::Words(event.text().to_owned()));
        }
        Question::of(event).filter(|_| !self.followed.contains(&event.correlation_id)).map(Aside::Question)
    }

    /// Shows it below the line that is being written.
    pub(super) fn show(&self, aside: &Aside) -> Result<(), Error> {
        match aside {
            Aside::Words(words) if self.json => terminal::json(&json!({"outcome": "said", "text": words}))?,
            Aside::Question(question) if self.json => {
                terminal::json(&json!({"outcome": "asked", "question": question}))?;
            }
            Aside::Words(words) => terminal::line(format!("\n{}", printable(words)))?,
            Aside::Question(question) => {
                terminal::line("")?;
                ask::show(question)?;
            }
        }
        Ok(())
    }
}
