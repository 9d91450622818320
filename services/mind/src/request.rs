//! What a model is asked, built from the state alone, so that the request need not be kept.

use jiff::Timestamp;
use kairo_events::{ids, media};
use kairo_proto::v1::Part;
use serde::Serialize;
use serde_json::{json, value::RawValue};
use uuid::Uuid;

use super::{
    facts, intrinsics, prompts,
    state::{AgentState, Turn},
    thread::{Call, Entry, Thread, cut_to},
    words::Words,
};

/// The event of a plan.
pub const PLAN: &str = "agent.chain";
/// The event of an answer.
pub const REPLY: &str = "agent.reply";
/// What is shown of a capability's description, in bytes.
const CAPABILITY_BYTES: usize = 400;

/// A model call to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelRequest {
    /// heavy, fast or light.
    pub tier: &'static str,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Whether the answer is meant for the steps that follow, and not for the user.
    #[serde(skip)]
    pub analysis: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System {
        text: String,
    },
    User {
        text: String,
        /// Images and audio, by the digests of their bytes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    Assistant {
        text: String,
        calls: Vec<ToolCall>,
    },
    Tool {
        call_id: String,
        text: String,
    },
}

impl Message {
    /// Of a user, in words alone.
    pub fn said(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), parts: Vec::new() }
    }
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
    /// Whether a human must consent to each call; the model need not know.
    #[serde(skip)]
    pub needs_approval: bool,
}

/// Every tool there is, as the catalogue in force lists them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    pub version: String,
    pub tools: Vec<Tool>,
}

impl Catalogue {
    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl ModelRequest {
    /// One step of the mind, which is told what it is and what it is about, and calls no tools.
    pub fn of(tier: &'static str, system: impl Into<String>, user: impl Into<String>) -> Self {
        let messages = vec![Message::System { text: system.into() }, Message::said(user)];
        Self { tier, messages, tools: Vec::new(), analysis: false }
    }

    /// Every image and piece of audio in it, the oldest first.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.messages.iter().flat_map(|message| match message {
            Message::User { parts, .. } => parts.as_slice(),
            _ => &[],
        })
    }

    /// Puts words in the place of every image and piece of audio.
    pub fn put_in_words(&mut self, why: &str) {
        for message in &mut self.messages {
            let Message::User { text, parts } = message else { continue };
            parts.drain(..).for_each(|part| add_line(text, &in_place_of(&part, why)));
        }
    }

    /// Proves that a rebuilt request is the one that was sent.
    pub fn digest(&self) -> String {
        let canonical = serde_json::to_string(self).unwrap_or_default();
        ids::named("request", &[&canonical]).to_string()
    }

    /// The same digest, where the tools were written as JSON before.
    pub fn digest_with(&self, tools: &RawValue) -> String {
        #[derive(Serialize)]
        struct Canonical<'r> {
            tier: &'r str,
            messages: &'r [Message],
            tools: &'r RawValue,
        }
        let canonical = Canonical { tier: self.tier, messages: &self.messages, tools };
        ids::named("request", &[&serde_json::to_string(&canonical).unwrap_or_default()]).to_string()
    }
}

/// What stands for an image or a piece of audio that a model is not shown.
pub fn in_place_of(part: &Part, why: &str) -> String {
    format!("{} ({why})", media::described(part))
}

/// Puts a line below others.
pub fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// What a turn is about to think about.
pub struct Thinking<'a> {
    pub turn_id: Uuid,
    pub turn: &'a Turn,
    /// Whether it may go on acting, or must answer.
    pub may_call: bool,
    /// What to analyse, within a chain.
    pub prompt: Option<&'a str>,
    /// Whether the agent plans, instead of calling tools itself.
    pub plans: bool,
    /// The recorded time of the input.
    pub now: Timestamp,
}

/// The request with which a turn goes on.
pub fn think(state: &AgentState, thinking: &Thinking<'_>, catalogue: &Catalogue) -> ModelRequest {
    let Thinking { turn_id, turn, may_call, prompt, plans, now } = *thinking;
    let own = state.profile.as_ref().map(|profile| profile.prompt.clone()).unwrap_or_default();
    let offered = |tool: &&Tool| state.profile.as_ref().is_none_or(|profile| profile.offers(&tool.name));
    let intrinsics = intrinsics::all().map(|intrinsic| &intrinsic.tool);
    let all: Vec<&Tool> = catalogue.tools.iter().chain(intrinsics).filter(offered).collect();
    let system = if plans { format!("{}\n\n{own}", planner(&all)) } else { own };
    let mut messages = vec![Message::System { text: system }];
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        thread.entries().for_each(|entry| show(entry, &mut messages));
        messages.extend(reminder(thread, turn_id));
    }
    messages.extend(facts::in_progress(state, &turn.user, now).map(|text| Message::System { text }));
    if let Some(prompt) = prompt {
        messages.push(Message::System { text: format!("{}{prompt}", prompts::ANALYSE) });
    } else if plans && !may_call {
        messages.push(Message::System { text: prompts::LAST.to_owned() });
    }
    let tools = match (may_call, plans) {
        (false, _) => Vec::new(),
        (true, false) => all.into_iter().cloned().collect(),
        // What is in flight is dealt with at once, without a plan.
        (true, true) => {
            all.into_iter().filter(|tool| is_about_actions(&tool.name)).cloned().chain([plan_tool()]).collect()
        }
    };
    ModelRequest { tier: "heavy", messages, tools, analysis: prompt.is_some() }
}

/// What an agent that plans is told it is, with names and descriptions of what there is: schemas are for those who
/// compile its plans.
fn planner(tools: &[&Tool]) -> String {
    let lines = tools.iter().map(|tool| format!("- {}: {}", tool.name, cut_to(&tool.description, CAPABILITY_BYTES)));
    format!("{}\n{}", prompts::THINK, lines.collect::<Vec<_>>().join("\n"))
}

fn is_about_actions(tool: &str) -> bool {
    let about_processes = tool.starts_with("process.") && !matches!(tool, "process.run" | "process.spawn");
    about_processes || matches!(tool, "action.cancel" | "chain.cancel")
}

/// How a plan is handed over by models that call tools.
fn plan_tool() -> Tool {
    Tool {
        name: PLAN.to_owned(),
        description: "Hands a plan over to be carried out.".to_owned(),
        schema: json!({
            "type": "object",
            "properties": { "plan": { "type": "string", "description": "Numbered steps, one a line." } },
            "required": ["plan"],
        })
        .to_string(),
        needs_approval: false,
    }
}

fn show(entry: &Entry, messages: &mut Vec<Message>) {
    match entry {
        Entry::User { words: Words { text, parts }, .. } => {
            messages.push(Message::User { text: text.clone(), parts: parts.clone() });
        }
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
    if thread.entries().rev().find(|entry| !mere_news(entry))?.turn() == turn_id {
        return None;
    }
    thread.entries().find_map(|entry| {
        let text = match entry {
            Entry::User { turn, words } if *turn == turn_id => {
                format!("The tools called for this earlier message have ended; answer it now: {}", words.in_words())
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
                Message::said("What time is it?"),
                Message::Assistant { text: String::new(), calls: vec![call] },
                Message::Tool { call_id: "c1".into(), text: "noon".into() },
            ],
            tools: vec![Tool {
                name: "tools.now".into(),
                description: "The time".into(),
                schema: r#"{"type":"object"}"#.into(),
                needs_approval: false,
            }],
            analysis: false,
        };
        assert_eq!(request.digest(), "d8681fef-7343-5b77-9818-0314213e0a27");
        let tools = serde_json::value::to_raw_value(&request.tools).unwrap();
        assert_eq!(request.digest_with(&tools), request.digest());
    }
}
