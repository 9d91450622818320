//! Requests to the gateway and its answers.

use jiff::Timestamp;
use kairo_core::{event_json::EventJson, ids::Name};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A user's words.
#[derive(Clone, Debug, Serialize)]
pub struct NewMessage {
    pub user: String,
    pub text: String,
    /// The router chooses if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the message: however often one id is sent, it is one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The agent chooses if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Images and audio, which are stored already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<NewPart>,
    /// The environment in which the message is written, as a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<serde_json::Value>,
    /// A JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<serde_json::Map<String, serde_json::Value>>,
}

/// An image, a piece of audio or a video of a message.
#[derive(Clone, Debug, Serialize)]
pub struct NewPart {
    pub digest: String,
    /// A file name; may be empty.
    pub name: String,
}

/// The answer to an upload: the stored object.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredObject {
    pub digest: String,
}

/// A message is in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptedMessage {
    pub message_id: String,
    pub event_id: Uuid,
    pub sequence: u64,
    /// The correlation id of all events that follow from it.
    pub correlation_id: Uuid,
}

/// A user's answer to a suggested thread.
#[derive(Clone, Debug, Serialize)]
pub struct NewChoice {
    pub user: String,
    pub agent: String,
    pub offer_id: String,
    /// `accept` or `decline`.
    pub option: String,
}

/// A human's verdict on an action.
#[derive(Clone, Debug, Serialize)]
pub struct NewApproval {
    pub user: String,
    pub agent: String,
    pub action_id: String,
    /// Of one in doubt, `happened` or `did_not_happen`; of one that waits for consent, `approved` or `rejected`.
    pub verdict: String,
    /// For the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The arguments to call the tool with, in place of those that the agent asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A direct order, about one thing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewCommand {
    pub user: String,
    pub agent: String,
    /// `cancel`, `pause`, `resume`, `run`, `archive` or `unarchive`.
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The one that the agent leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// One that the agent is to have, or to remove it, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submodule: Option<NewSubmodule>,
    /// Of a team that is resumed: what it may spend in a day from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<String>,
}

/// A submodule as it is added; to remove one its name alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSubmodule {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hears: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u32>,
    /// Without it, it is shown what was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wants_decisions: Option<bool>,
}

/// A verdict or an order is in the log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AcceptedOrder {
    pub event_id: Uuid,
    pub sequence: u64,
    /// The correlation id of all events that follow from it.
    pub correlation_id: Uuid,
}

/// An agent that another is composed of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileMember {
    pub agent: String,
    /// Empty for all of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// A tool that is looked at when a message comes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfilePerception {
    pub tool: String,
    pub arguments: serde_json::Value,
}

/// The bounds of a session of work, or of a task; `None` sets no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionBounds {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u32>,
    /// Input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// In the currency of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

/// A command that an agent declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileCommand {
    /// Without the slash.
    pub value: String,
    pub label: String,
    pub help: String,
}

/// A team as it is made; what is `None` is as the gateway has it by default.
#[derive(Clone, Debug, Serialize)]
pub struct NewTeam {
    pub team: String,
    pub owner: String,
    pub mission: String,
    pub lead: NewLead,
    pub workers: Vec<NewWorker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// A decimal number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NewLead {
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run_after: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NewWorker {
    pub name: String,
    pub prompt: String,
}

/// A filter of events; all given criteria must match.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    pub agent: Option<Name>,
    pub thread: Option<Name>,
    pub correlation: Option<Uuid>,
    /// Later than this sequence.
    pub after: Option<u64>,
    /// Earlier than this sequence, the newest first found.
    pub before: Option<u64>,
    /// At or after this time.
    pub since: Option<Timestamp>,
    /// Number of the newest events.
    pub latest: Option<u64>,
    /// At most so many in one answer.
    pub limit: Option<u64>,
}

/// Some of the events asked for.
#[derive(Clone, Debug, Deserialize)]
pub struct EventPage {
    pub events: Vec<EventJson>,
    /// The `after` of the next page; `None` if nothing more is known.
    #[serde(default)]
    pub next_after: Option<u64>,
}

impl EventFilter {
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("agent", self.agent.as_ref().map(Name::to_string)),
            ("thread", self.thread.as_ref().map(Name::to_string)),
            ("correlation", self.correlation.map(|id| id.to_string())),
            ("after", self.after.map(|sequence| sequence.to_string())),
            ("before", self.before.map(|sequence| sequence.to_string())),
            ("since", self.since.map(|time| time.to_string())),
            ("latest", self.latest.map(|count| count.to_string())),
            ("limit", self.limit.map(|count| count.to_string())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_is_asked_for() {
        assert!(EventFilter::default().query().is_empty());
        let filter = EventFilter { agent: Name::parse("a").ok(), after: Some(7), ..EventFilter::default() };
        assert_eq!(filter.query(), [("agent", "a".to_owned()), ("after", "7".to_owned())]);
    }
}
