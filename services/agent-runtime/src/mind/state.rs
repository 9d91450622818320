//! What an agent knows, folded from its own subjects. Folding the same log again gives the same bytes.
//!
//! Everything here is bounded by constants and by the agent's profile, both of which are in the log or in the code,
//! never by configuration: two replicas configured differently must fold alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use kairo_core::{ids, record::Record};
use kairo_proto::{
    Body,
    v1::{
        AgentDecision, AgentMessage, AgentProfile, DecidedEvent, ToolResult, agent_action::Action, decided_event::Event,
    },
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::seen::Seen;

/// Threads an agent keeps at hand; the one idle longest makes room.
const THREADS: usize = 1_000;
/// Text all threads keep for the model, in bytes, so that a snapshot fits one message; the thread idle longest makes
/// room.
const MIND_BYTES: usize = 512 * 1024;
/// Text one thread keeps for the model, in bytes; the oldest entries make room.
const THREAD_BYTES: usize = 256 * 1024;
/// Text one entry keeps for the model, in bytes. The log has the whole.
const ENTRY_BYTES: usize = 32 * 1024;
/// Entries of a thread when the profile does not say.
const HISTORY: usize = 200;

/// An agent's state at one point of its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    pub profile: Option<Profile>,
    /// The last input dealt with; everything known has a sequence up to this.
    pub cursor: u64,
    /// Sequence of the last message on the decision subject: what the next decision is guarded by.
    pub decided: u64,
    pub threads: BTreeMap<String, Thread>,
    /// Turns not yet answered, by correlation id.
    pub turns: BTreeMap<Uuid, Turn>,
    /// Actions without a result, by action id.
    pub in_flight: BTreeMap<Uuid, InFlight>,
    seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Where in the log it was defined.
    pub sequence: u64,
    pub prompt: String,
    pub tools: Vec<String>,
    pub max_steps: u32,
    pub history_limit: usize,
}

/// A user's message on its way to an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub thread_id: String,
    pub user: String,
    pub message_id: String,
    /// Model calls committed so far.
    pub steps: u32,
    /// Actions whose results it waits for.
    pub waiting: BTreeSet<Uuid>,
    /// Sequence of the input that makes it this turn's move; none while it waits.
    pub due: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    pub turn: Uuid,
    pub tool: String,
    pub since: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub user: String,
    /// Whether the log says that it began.
    pub announced: bool,
    /// Sequence of what last happened in it.
    pub touched: u64,
    /// Text its entries keep.
    bytes: usize,
    pub entries: VecDeque<Entry>,
}

/// What a model is shown of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    User { turn: Uuid, text: String },
    Said { turn: Uuid, text: String },
    Called { turn: Uuid, text: String, calls: Vec<Call> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub action: Uuid,
    pub tool: String,
    pub arguments: String,
    pub since: Timestamp,
    /// Absent while it runs.
    pub result: Option<String>,
}

impl AgentState {
    /// Takes in an input or a fact. What does not concern the agent's mind changes nothing.
    pub fn observe(&mut self, record: &Record) {
        match &record.body {
            Body::AgentDefined(defined) => {
                if let Some(profile) = &defined.profile {
                    self.profile = Some(Profile::new(record.sequence, profile));
                }
            }
            Body::AgentMessage(message) => self.hear(record, message),
            Body::ToolResult(result) => self.learn(record, result),
            _ => {}
        }
    }

    /// Takes in a decision, after all that it was decided on.
    pub fn commit(&mut self, record: &Record, decision: &AgentDecision) {
        for event in &decision.events {
            self.happen(record, event);
        }
        let asked = u32::try_from(decision.completions.len()).unwrap_or(u32::MAX);
        if let Some(turn) = self.turns.get_mut(&record.envelope.correlation_id) {
            turn.due = None;
            turn.steps = turn.steps.saturating_add(asked.max(1));
        }
        self.cursor = decision.cursor;
        self.decided = record.sequence;
        self.forget_idle_threads();
    }

    /// The turn whose move this input makes it.
    pub fn due(&self, input: u64) -> Option<(&Uuid, &Turn)> {
        self.turns.iter().find(|(_, turn)| turn.due == Some(input))
    }

    fn hear(&mut self, record: &Record, message: &AgentMessage) {
        // Users choose message ids for themselves.
        if !self.seen.see(&format!("{}/{}", message.user, message.message_id)) {
            return;
        }
        let correlation = record.envelope.correlation_id;
        let thread_id = self.thread_for(record, message);
        let thread = self.threads.entry(thread_id.clone()).or_default();
        if thread.user.is_empty() {
            thread.user.clone_from(&message.user);
        }
        let entry = Entry::User { turn: correlation, text: cut(&message.text) };
        thread.push(record.sequence, entry, self.profile.as_ref());
        self.turns.insert(
            correlation,
            Turn {
                thread_id,
                user: message.user.clone(),
                message_id: message.message_id.clone(),
                steps: 0,
                waiting: BTreeSet::new(),
                due: Some(record.sequence),
            },
        );
    }

    /// The thread a message names, or its user's own with this agent.
    fn thread_for(&self, record: &Record, message: &AgentMessage) -> String {
        if !message.thread_id.is_empty() {
            return message.thread_id.clone();
        }
        let agent = record.subject.split('.').nth(2).unwrap_or_default();
        ids::named("thread", &[agent, &message.user]).to_string()
    }

    fn learn(&mut self, record: &Record, result: &ToolResult) {
        let Ok(action) = Uuid::parse_str(&result.action_id) else { return };
        let Some(known) = self.in_flight.remove(&action) else { return };
        let Some(turn) = self.turns.get_mut(&known.turn) else { return };
        turn.waiting.remove(&action);
        if turn.waiting.is_empty() {
            turn.due = Some(record.sequence);
        }
        if let Some(thread) = self.threads.get_mut(&turn.thread_id) {
            thread.touched = record.sequence;
            if let Some(call) = thread.call(action) {
                call.result = Some(cut(&told(result)));
            }
            thread.trim(self.profile.as_ref());
        }
    }

    fn happen(&mut self, record: &Record, event: &DecidedEvent) {
        let Ok(turn_id) = Uuid::parse_str(&event.correlation_id) else { return };
        match &event.event {
            Some(Event::ThreadCreated(_)) => {
                if let Some(thread) = self.threads.get_mut(&event.thread_id) {
                    thread.announced = true;
                }
            }
            Some(Event::Action(action)) => match &action.action {
                Some(Action::Say(say)) => {
                    self.add(record, event, Entry::Said { turn: turn_id, text: cut(&say.text) });
                    if say.r#final {
                        self.turns.remove(&turn_id);
                    }
                }
                Some(Action::ToolCall(call)) => {
                    let Ok(action) = Uuid::parse_str(&event.event_id) else { return };
                    let since = record.envelope.time;
                    let call =
                        Call { action, tool: call.tool.clone(), arguments: cut(&call.arguments), since, result: None };
                    self.in_flight.insert(action, InFlight { turn: turn_id, tool: call.tool.clone(), since });
                    if let Some(turn) = self.turns.get_mut(&turn_id) {
                        turn.waiting.insert(action);
                    }
                    self.add_call(record, event, turn_id, call);
                }
                None => {}
            },
            Some(Event::Thought(_) | Event::Failed(_)) | None => {}
        }
    }

    fn add(&mut self, record: &Record, event: &DecidedEvent, entry: Entry) {
        if let Some(thread) = self.threads.get_mut(&event.thread_id) {
            thread.push(record.sequence, entry, self.profile.as_ref());
        }
    }

    /// Calls of one decision are one entry, with the words said before them, as models expect it.
    fn add_call(&mut self, record: &Record, event: &DecidedEvent, turn: Uuid, call: Call) {
        let Some(thread) = self.threads.get_mut(&event.thread_id) else { return };
        let same_decision = thread.touched == record.sequence;
        match thread.entries.back_mut() {
            Some(Entry::Called { turn: of, calls, .. }) if same_decision && *of == turn => calls.push(call),
            Some(Entry::Said { turn: of, text }) if same_decision && *of == turn => {
                let text = std::mem::take(text);
                thread.entries.pop_back();
                thread.push(record.sequence, Entry::Called { turn, text, calls: vec![call] }, self.profile.as_ref());
            }
            _ => {
                let entry = Entry::Called { turn, text: String::new(), calls: vec![call] };
                thread.push(record.sequence, entry, self.profile.as_ref());
            }
        }
    }

    fn forget_idle_threads(&mut self) {
        let mut bytes: usize = self.threads.values().map(|thread| thread.bytes).sum();
        while self.threads.len() > THREADS || bytes > MIND_BYTES {
            let open: BTreeSet<&String> = self.turns.values().map(|turn| &turn.thread_id).collect();
            let idle =
                self.threads.iter().filter(|(id, _)| !open.contains(id)).min_by_key(|(_, thread)| thread.touched);
            let Some(id) = idle.map(|(id, _)| id.clone()) else { return };
            bytes -= self.threads.remove(&id).map_or(0, |thread| thread.bytes);
        }
    }
}

impl Profile {
    fn new(sequence: u64, profile: &AgentProfile) -> Self {
        let history = usize::try_from(profile.history_limit).unwrap_or(HISTORY);
        Self {
            sequence,
            prompt: profile.prompt.clone(),
            tools: profile.tools.clone(),
            max_steps: profile.max_steps,
            history_limit: if history == 0 { HISTORY } else { history },
        }
    }

    /// Whether the agent may use the tool: it is named, or a prefix with `*` covers it, or nothing is named at all.
    pub fn offers(&self, tool: &str) -> bool {
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => pattern == tool,
        };
        self.tools.is_empty() || self.tools.iter().any(covers)
    }
}

impl Thread {
    fn push(&mut self, sequence: u64, entry: Entry, profile: Option<&Profile>) {
        self.touched = sequence;
        self.entries.push_back(entry);
        self.trim(profile);
    }

    /// Drops the oldest entries above the limits, always keeping the newest.
    fn trim(&mut self, profile: Option<&Profile>) {
        let limit = profile.map_or(HISTORY, |profile| profile.history_limit);
        let mut bytes: usize = self.entries.iter().map(Entry::bytes).sum();
        while self.entries.len() > 1 && (self.entries.len() > limit || bytes > THREAD_BYTES) {
            bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
        }
        self.bytes = bytes;
    }

    fn call(&mut self, action: Uuid) -> Option<&mut Call> {
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Called { calls, .. } => calls.iter_mut().find(|call| call.action == action),
            Entry::User { .. } | Entry::Said { .. } => None,
        })
    }
}

impl Entry {
    pub fn turn(&self) -> Uuid {
        match self {
            Entry::User { turn, .. } | Entry::Said { turn, .. } | Entry::Called { turn, .. } => *turn,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Entry::User { text, .. } | Entry::Said { text, .. } => text.len(),
            Entry::Called { text, calls, .. } => {
                let call = |call: &Call| call.arguments.len() + call.result.as_ref().map_or(0, String::len);
                text.len() + calls.iter().map(call).sum::<usize>()
            }
        }
    }
}

/// A result as a model is told it: JSON either way.
fn told(result: &ToolResult) -> String {
    match &result.error {
        None => result.result.clone(),
        Some(error) => serde_json::json!({ "error": error.kind, "message": error.message }).to_string(),
    }
}

/// At most [`ENTRY_BYTES`] of a text, saying so when it was cut.
fn cut(text: &str) -> String {
    if text.len() <= ENTRY_BYTES {
        return text.to_owned();
    }
    let end = (0..=ENTRY_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}… ({} bytes left out)", text.len() - end)
}
