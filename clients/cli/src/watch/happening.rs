//! Events as things that happened, a line each. Pure.

use std::{fmt, str::FromStr};

use console::truncate_str;
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::event_json::EventJson;
use kairo_proto::Type;
use serde::{Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use crate::{durations, event_lines::printable};

/// Characters kept of what is said.
const TEXT: usize = 4_000;
/// Digits of an id that are shown.
const DIGITS: usize = 8;

/// A place in the log: the sequence of a message, and the position of an event in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPosition {
    pub sequence: u64,
    pub position: u32,
}

impl EventPosition {
    pub fn from_event(event: &EventJson) -> Self {
        Self { sequence: event.sequence, position: event.position }
    }
}

impl FromStr for EventPosition {
    type Err = String;

    /// A sequence alone is the place behind all events of its message.
    fn from_str(text: &str) -> Result<Self, String> {
        let (sequence, position) = text.split_once('.').unwrap_or((text, ""));
        let position = if position.is_empty() { Ok(u32::MAX) } else { position.parse() };
        match (sequence.parse(), position) {
            (Ok(sequence), Ok(position)) => Ok(Self { sequence, position }),
            _ => Err("expected a place in the log, such as 17 or 17.2".to_owned()),
        }
    }
}

impl fmt::Display for EventPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.sequence, self.position)
    }
}

impl Serialize for EventPosition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The kind of a [`Happening`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HappeningKind {
    /// A user said, chose, approved or ordered something.
    Heard,
    /// The agent said something.
    Said,
    Thought,
    Called,
    /// The agent failed.
    Failed,
    /// The agent answers a message together with another.
    Joined,
    /// A tool call ended.
    Result,
    /// A process began, was asked to end, or ended.
    Process,
    /// Something says how far it is.
    Progress,
    /// The agent asks a user something, and waits for the answer.
    Asked,
    /// A thread began, was matched to a message, summarized or put away.
    Thread,
    /// A chain began, a step of it ended, or it is over.
    Chain,
    /// A task was made, fired or changed, or its time came.
    Task,
    /// The agent wrote something down.
    Remembered,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Happening {
    pub place: EventPosition,
    pub ts: Timestamp,
    pub kind: HappeningKind,
    /// The user, the agent, the tool or the program.
    pub who: String,
    pub text: String,
}

impl Happening {
    /// Builds the entry for an event; `None` if the event is not shown to people.
    pub fn from_event(event: &EventJson, agent: &str) -> Option<Self> {
        let (kind, who, text) = classify_event(event, agent)?;
        let who = printable(who);
        let text = printable(&text).chars().take(TEXT).collect();
        Some(Self { place: EventPosition::from_event(event), ts: event.ts, kind, who, text })
    }

    /// For people: words on lines of their own, of which all but the first are indented; anything else on
    /// one, cut to so many columns.
    pub fn format_lines(&self, zone: &TimeZone, columns: usize) -> String {
        if !self.is_words() {
            return truncate_str(&self.line(zone), columns, "…").into_owned();
        }
        let head = self.head(zone);
        head.clone() + &self.text.trim().replace('\n', &format!("\n{}", " ".repeat(head.chars().count())))
    }

    /// Returns true for words and thoughts, which are shown in full on lines of their own.
    fn is_words(&self) -> bool {
        matches!(
            self.kind,
            HappeningKind::Heard
                | HappeningKind::Said
                | HappeningKind::Thought
                | HappeningKind::Failed
                | HappeningKind::Joined
                | HappeningKind::Asked
        )
    }

    /// On one line.
    pub fn line(&self, zone: &TimeZone) -> String {
        self.head(zone) + &self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn head(&self, zone: &TimeZone) -> String {
        let time = self.ts.to_zoned(zone.clone()).strftime("%H:%M:%S");
        let verb = match self.kind {
            HappeningKind::Heard | HappeningKind::Said => "",
            HappeningKind::Thought => " thinks",
            HappeningKind::Called => " calls",
            HappeningKind::Failed => " failed",
            HappeningKind::Joined => " joins",
            HappeningKind::Result => " ended",
            HappeningKind::Asked => " asks",
            HappeningKind::Process | HappeningKind::Progress => "",
            HappeningKind::Thread | HappeningKind::Chain | HappeningKind::Task => "",
            HappeningKind::Remembered => " remembers",
        };
        let who = format!("{}{verb}", self.who);
        format!("{time}  {who:<16}  ")
    }
}

/// Returns the kind, the source and the text of an event; `None` if another event says the same, or if the event is for
/// others.
fn classify_event<'e>(event: &'e EventJson, agent: &'e str) -> Option<(HappeningKind, &'e str, String)> {
    let payload = &event.payload;
    let text = event.text().to_owned();
    let user = field(payload, "user");
    let tool = field(payload, "tool");
    Some(match Type::parse(&event.type_name)? {
        Type::AgentMessage => (HappeningKind::Heard, user, text),
        Type::AgentImported => (HappeningKind::Heard, user, text),
        Type::AgentChoice => (HappeningKind::Heard, user, format!("chose {}", field(payload, "option"))),
        Type::AgentApproval => (HappeningKind::Heard, user, verdict(payload)),
        Type::AgentCommand => (HappeningKind::Heard, user, command(payload)),
        Type::AgentForgotten => (HappeningKind::Thread, "forgotten", text),
        Type::AgentRequest | Type::AgentAnswer => (HappeningKind::Heard, field(payload, "from"), text),
        Type::AgentAnswered => (HappeningKind::Task, "answer", text),
        Type::AgentBriefed => (HappeningKind::Thread, "briefing", text),
        Type::TeamChanged => (HappeningKind::Task, "team", text),
        Type::AgentThought => (HappeningKind::Thought, thinking_module(payload, agent), text),
        Type::SubmoduleFailed => (
            HappeningKind::Failed,
            field(payload, "module"),
            format!("{}: {}", field(payload, "kind"), field(payload, "message")),
        ),
        Type::SubmoduleAsked => (HappeningKind::Asked, agent, text),
        Type::SubmoduleChanged | Type::AgentBroadcast => (HappeningKind::Thread, "submodules", text),
        Type::AgentGoal => (HappeningKind::Thought, agent, format!("the goal: {text}")),
        Type::AgentReflected => (HappeningKind::Thought, agent, format!("a review: {text}")),
        Type::AgentFailed => (HappeningKind::Failed, agent, text),
        Type::AgentJoined => (HappeningKind::Joined, agent, describe_join(payload)),
        Type::AgentAction => (action_kind(payload)?, agent, text),
        Type::ToolResult if payload.get("late").is_some() => {
            (HappeningKind::Result, tool, format!("a late answer settles what was in doubt: {text}"))
        }
        Type::ToolResult => (HappeningKind::Result, tool, text),
        Type::ToolProgress => (HappeningKind::Progress, tool, progress(payload)),
        Type::ProcessProgress => {
            (HappeningKind::Progress, "process", format!("{} {}", short_process_id(payload), progress(payload)))
        }
        Type::ProcessSpawned => {
            (HappeningKind::Process, "process", format!("{} runs {text}", short_process_id(payload)))
        }
        Type::ProcessCanceled => {
            (HappeningKind::Process, "process", format!("{} was asked to end", short_process_id(payload)))
        }
        Type::ProcessExited => (HappeningKind::Process, "process", format!("{} {text}", short_process_id(payload))),
        Type::ThreadSuggested | Type::ApprovalRequested => (HappeningKind::Asked, agent, text),
        Type::ThreadMatched | Type::ThreadArchived | Type::ThreadCompleted => (HappeningKind::Thread, "thread", text),
        Type::ThreadCreated => (
            HappeningKind::Thread,
            "thread",
            format!("{} begun {text}", short_thread_id(payload)).trim_end().to_owned(),
        ),
        Type::ThreadCompacted => {
            (HappeningKind::Thread, "thread", format!("{} compacted: {text}", short_thread_id(payload)))
        }
        Type::ThreadSummarized => {
            (HappeningKind::Thread, "thread", format!("{} summarized: {text}", short_thread_id(payload)))
        }
        Type::MemoryAppended | Type::StateWritten | Type::StateDeleted => (HappeningKind::Remembered, agent, text),
        Type::TaskScheduled => (HappeningKind::Task, "task", format!("made: {text}")),
        Type::TaskFired => (HappeningKind::Task, "task", format!("fired: {text}")),
        Type::TaskChanged | Type::TaskStarted | Type::TaskEnded => (HappeningKind::Task, "task", text),
        Type::TaskTriggered => (HappeningKind::Task, "hook", text),
        Type::EmailReceived => (HappeningKind::Task, "email", text),
        Type::ChainStarted => (HappeningKind::Chain, "chain", format!("{} runs {text}", short_chain_id(payload))),
        Type::ChainStepEnded => (HappeningKind::Chain, "chain", format!("{} {text}", short_chain_id(payload))),
        Type::ChainEnded => (HappeningKind::Chain, "chain", format!("{} is over: {text}", short_chain_id(payload))),
        Type::UserMessage | Type::UserChoice | Type::UserApproval | Type::UserCommand => return None,
        Type::UserForget | Type::UserForgotten => return None,
        Type::UserMessageUndelivered | Type::UserSwitched | Type::AgentDefined | Type::AgentDecision => return None,
        // The calls that they are of say the same.
        Type::ToolOrder | Type::ProcessReply => return None,
        Type::ToolInvoke | Type::TaskDue | Type::LiveToken | Type::LiveOutput => return None,
        Type::ToolCatalogue | Type::ProcessCapabilities | Type::DecisionBasis | Type::Epoch => return None,
        Type::DeadLetter | Type::DeadLetterRetry | Type::DeadLetterRetried => return None,
    })
}

/// Returns the module that thinks, or the agent itself if the event names no module.
fn thinking_module<'e>(payload: &'e Value, agent: &'e str) -> &'e str {
    let module = field(payload, "module");
    if module.is_empty() { agent } else { module }
}

fn action_kind(payload: &Value) -> Option<HappeningKind> {
    match field(payload, "type") {
        "say" => Some(HappeningKind::Said),
        "tool_call" | "ask" => Some(HappeningKind::Called),
        _ => None,
    }
}

fn describe_join(payload: &Value) -> String {
    let one = field(payload, "message_id");
    let other = field(payload, "into_message_id");
    format!("message {one} is answered together with {other}")
}

fn short_thread_id(payload: &Value) -> String {
    short_id(field(payload, "thread_id"))
}

fn verdict(payload: &Value) -> String {
    let note = field(payload, "note");
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("says of action {}: {}{note}", short_id(field(payload, "action_id")), field(payload, "verdict"))
}

fn command(payload: &Value) -> String {
    let named = ["action", "process", "chain", "task", "thread"].into_iter().find_map(|what| {
        let id = field(payload, &format!("{what}_id"));
        (!id.is_empty()).then(|| format!("{what} {}", short_id(id)))
    });
    let submodule = payload.pointer("/submodule/name").and_then(Value::as_str).map(|name| format!("submodule {name}"));
    format!("orders: {} {}", field(payload, "command"), named.or(submodule).unwrap_or_default())
}

fn short_chain_id(payload: &Value) -> String {
    short_id(field(payload, "chain_id"))
}

fn short_process_id(payload: &Value) -> String {
    short_id(field(payload, "process_id"))
}

fn progress(payload: &Value) -> String {
    durations::format_progress(payload.get("fraction").and_then(Value::as_f64), field(payload, "message"))
}

/// A text of a payload; empty if it says none.
pub(super) fn field<'p>(payload: &'p Value, name: &str) -> &'p str {
    payload.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// An id of a payload.
pub(super) fn id(payload: &Value, name: &str) -> Option<Uuid> {
    Uuid::parse_str(field(payload, name)).ok()
}

/// The first digits of an id.
pub fn short_id(id: &str) -> String {
    id.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;

    use super::{super::picture::tests::event, *};

    fn line(type_name: &str, payload: Value) -> Option<String> {
        Happening::from_event(&event(7, 1, type_name, payload), "bob").map(|happening| happening.line(&TimeZone::UTC))
    }

    #[test]
    fn what_happened_is_a_line() {
        let id = "1f0c2ab4-0000-0000-0000-000000000001";
        for (type_name, payload, shown) in [
            ("agent.message", json!({"user": "ann", "text": "hi\n\u{1b}there"}), "ann               hi there"),
            ("agent.action", json!({"type": "say", "text": "hello"}), "bob               hello"),
            ("agent.action", json!({"type": "tool_call", "text": "t {}"}), "bob calls         t {}"),
            ("tool.result", json!({"tool": "t", "text": "failed: no"}), "t ended           failed: no"),
            (
                "agent.approval",
                json!({"user": "ann", "action_id": id, "verdict": "happened", "note": "seen"}),
                "ann               says of action 1f0c2ab4: happened (seen)",
            ),
            (
                "agent.command",
                json!({"user": "ann", "process_id": id, "command": "cancel"}),
                "ann               orders: cancel process 1f0c2ab4",
            ),
            (
                "agent.command",
                json!({"user": "ann", "task_id": id, "command": "pause"}),
                "ann               orders: pause task 1f0c2ab4",
            ),
            ("thread.suggested", json!({"text": "switch to mail?"}), "bob asks          switch to mail?"),
            ("thread.matched", json!({"text": "continue t"}), "thread            continue t"),
            (
                "chain.started",
                json!({"chain_id": id, "text": "a, [b | c]"}),
                "chain             1f0c2ab4 runs a, [b | c]",
            ),
            ("chain.ended", json!({"chain_id": id, "text": "done"}), "chain             1f0c2ab4 is over: done"),
            ("task.fired", json!({"text": "task k, late"}), "task              fired: task k, late"),
            ("memory.appended", json!({"text": "fact: x"}), "bob remembers     fact: x"),
            (
                "process.progress",
                json!({"process_id": id, "fraction": 0.5, "message": "half"}),
                "process           1f0c2ab4 50% half",
            ),
        ] {
            let line = line(&format!("kairo.{type_name}.v1"), payload);
            assert_eq!(line.as_deref(), Some(format!("00:00:07  {shown}").as_str()), "{type_name}");
        }
        assert_eq!(line(v1::ToolInvoke::TYPE, json!({"text": "t {}"})), None);
    }

    #[test]
    fn words_of_several_lines_stand_below_each_other() {
        let said = event(7, 1, v1::AgentAction::TYPE, json!({"type": "say", "text": "one\ntwo"}));
        let lines = Happening::from_event(&said, "bob").unwrap().format_lines(&TimeZone::UTC, 60);
        assert_eq!(lines, "00:00:07  bob               one\n                            two");
        // A program is no words.
        let runs = json!({"process_id": Uuid::nil(), "text": format!("sh -c a\nb {}", "x".repeat(500))});
        let lines = Happening::from_event(&event(7, 1, v1::ProcessSpawned::TYPE, runs), "bob")
            .unwrap()
            .format_lines(&TimeZone::UTC, 60);
        assert!(lines.contains("runs sh -c a b xxx") && lines.ends_with("x…"), "{lines}");
        assert_eq!(lines.chars().count(), 60);
    }

    #[test]
    fn places_are_read_as_they_are_shown() {
        assert_eq!("17.2".parse(), Ok(EventPosition { sequence: 17, position: 2 }));
        assert!("17".parse::<EventPosition>().unwrap() > "17.2".parse().unwrap());
        assert!("17".parse::<EventPosition>().unwrap() < "18.0".parse().unwrap());
        assert!("x".parse::<EventPosition>().is_err() && "1.x".parse::<EventPosition>().is_err());
    }
}
