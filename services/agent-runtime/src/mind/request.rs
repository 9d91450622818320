//! What a model is asked, built from the state alone, so that the request need not be kept.

use jiff::Timestamp;
use kairo_core::ids;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    facts,
    state::{AgentState, Turn},
    thread::{Call, Entry, Thread},
};

/// A model call to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelRequest {
    /// heavy, fast or light.
    pub tier: &'static str,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System { text: String },
    User { text: String },
    Assistant { text: String, calls: Vec<ToolCall> },
    Tool { call_id: String, text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolCall {
    pub id: String,
    pub tool: String,
    pub arguments: String,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, as text.
    pub schema: String,
}

/// Every tool there is, as the catalogue in force lists them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    pub version: String,
    pub tools: Vec<Tool>,
}

impl ModelRequest {
    /// That of a decision which asks no model.
    pub fn none() -> Self {
        Self { tier: "heavy", messages: Vec::new(), tools: Vec::new() }
    }

    /// Proves that a rebuilt request is the one that was sent.
    pub fn digest(&self) -> String {
        let canonical = serde_json::to_string(self).unwrap_or_default();
        ids::named("request", &[&canonical]).to_string()
    }
}

/// The request with which a turn goes on; `now` is the recorded time of the input.
pub fn think(
    state: &AgentState,
    (turn_id, turn): (Uuid, &Turn),
    catalogue: &Catalogue,
    may_call: bool,
    now: Timestamp,
) -> ModelRequest {
    let prompt = state.profile.as_ref().map(|profile| profile.prompt.clone()).unwrap_or_default();
    let mut messages = vec![Message::System { text: prompt }];
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        thread.entries.iter().for_each(|entry| show(entry, &mut messages));
        messages.extend(reminder(thread, turn_id));
    }
    messages.extend(facts::in_progress(state, &turn.user, now).map(|text| Message::System { text }));
    let offered = |tool: &&Tool| state.profile.as_ref().is_none_or(|profile| profile.offers(&tool.name));
    let tools = if may_call { catalogue.tools.iter().filter(offered).cloned().collect() } else { Vec::new() };
    ModelRequest { tier: "heavy", messages, tools }
}

fn show(entry: &Entry, messages: &mut Vec<Message>) {
    match entry {
        Entry::User { text, .. } => messages.push(Message::User { text: text.clone() }),
        Entry::Notice { text, .. } => messages.push(Message::System { text: text.clone() }),
        Entry::Said { text, .. } => messages.push(Message::Assistant { text: text.clone(), calls: Vec::new() }),
        Entry::Called { text, calls, .. } => {
            let as_call = |call: &Call| ToolCall {
                id: call.action.to_string(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            };
            messages.push(Message::Assistant { text: text.clone(), calls: calls.iter().map(as_call).collect() });
            // Models want a result behind every call; for one that still runs, that it does is the fact.
            messages.extend(calls.iter().map(|call| Message::Tool {
                call_id: call.action.to_string(),
                text: call.result.clone().unwrap_or_else(|| {
                    json!({ "status": "still running", "since": call.since.to_string() }).to_string()
                }),
            }));
        }
    }
}

/// When other turns have spoken since, a model must be told which one goes on.
fn reminder(thread: &Thread, turn_id: Uuid) -> Option<Message> {
    // What merely happened meanwhile changed no subject.
    let mere_news = |entry: &&Entry| matches!(entry, Entry::Notice { turn, .. } if *turn != turn_id);
    if thread.entries.iter().rev().find(|entry| !mere_news(entry))?.turn() == turn_id {
        return None;
    }
    thread.entries.iter().find_map(|entry| {
        let text = match entry {
            Entry::User { turn, text } if *turn == turn_id => {
                format!("The tools called for this earlier message have ended; answer it now: {text}")
            }
            Entry::Notice { turn, text } if *turn == turn_id => {
                format!("Go on from this earlier event now, and say what the user should know of it: {text}")
            }
            _ => return None,
        };
        Some(Message::System { text })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_never_changes() {
        let call = ToolCall { id: "c1".into(), tool: "tools.now".into(), arguments: "{}".into() };
        let request = ModelRequest {
            tier: "heavy",
            messages: vec![
                Message::User { text: "What time is it?".into() },
                Message::Assistant { text: String::new(), calls: vec![call] },
                Message::Tool { call_id: "c1".into(), text: "noon".into() },
            ],
            tools: vec![Tool {
                name: "tools.now".into(),
                description: "The time".into(),
                schema: r#"{"type":"object"}"#.into(),
            }],
        };
        assert_eq!(request.digest(), "d8681fef-7343-5b77-9818-0314213e0a27");
    }
}
