//! The current activity of an agent, built by applying its events and live messages. Pure.
//!
//! Equal events give equal pictures. An event seen before changes nothing, whether it repeats after a lost connection
//! or appears twice in the log.

use std::collections::{HashSet, VecDeque};

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::{ToolErrorKind, Verdict};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    action::Action,
    happening::{EventPosition, Happening, HappeningKind, field, id},
    output::{OutputStream, ProcessOutput},
    process::{AgentProcess, ProcessLine},
};

/// Lines kept of what was said, and as many of each other kind.
const LINES: usize = 200;
/// Actions kept that are in flight or in doubt. There are fewer, unless nobody ever resolves one.
const ACTIONS: usize = 1_000;
/// Processes kept that have ended.
const ENDED: usize = 10;
/// Processes whose output may come before it is known that they run.
const EARLY: usize = 64;
/// Events that are known again when they are told again under another place.
const REMEMBERED: usize = 10_000;
/// Bytes kept of an answer that is being written.
const WRITING: usize = 4_000;

/// The current activity of an agent and its latest history.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    pub agent: String,
    /// The last event taken in.
    pub place: EventPosition,
    /// The latest words of users and the agent, oldest first.
    pub conversation: VecDeque<Happening>,
    /// The agent's latest thoughts, calls and failures, and the changes to its threads, chains, tasks and memory.
    pub decisions: VecDeque<Happening>,
    /// The latest tool results and process events.
    pub outcomes: VecDeque<Happening>,
    /// In flight, or in doubt and not resolved; in the order they were asked for.
    pub actions: VecDeque<Action>,
    /// Running, in the order they began.
    pub processes: Vec<AgentProcess>,
    /// The last that ended.
    pub ended: VecDeque<AgentProcess>,
    /// The end of the answer that a model is writing, which is worth nothing once the decision is there.
    #[serde(skip)]
    pub writing: String,
    #[serde(skip)]
    early: VecDeque<(Uuid, ProcessOutput)>,
    #[serde(skip)]
    remembered: RecentEventIds,
}

/// The additions that one event or live message makes to a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub written: Vec<ProcessLine>,
    pub happening: Option<Happening>,
}

#[derive(Clone, Debug, Default)]
struct RecentEventIds {
    order: VecDeque<Uuid>,
    ids: HashSet<Uuid>,
}

impl RecentEventIds {
    /// False if it is known already.
    fn insert(&mut self, id: Uuid) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

impl Picture {
    pub fn new(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            place: EventPosition::default(),
            conversation: VecDeque::new(),
            decisions: VecDeque::new(),
            outcomes: VecDeque::new(),
            actions: VecDeque::new(),
            processes: Vec::new(),
            ended: VecDeque::new(),
            writing: String::new(),
            early: VecDeque::new(),
            remembered: RecentEventIds::default(),
        }
    }

    /// Takes in an event of the agent; they are to be told in the order of the log.
    pub fn apply_event(&mut self, event: &EventJson) -> News {
        let place = EventPosition::from_event(event);
        if place <= self.place {
            return News::default();
        }
        self.place = place;
        if !self.remembered.insert(event.event_id) {
            return News::default();
        }
        let written = self.change(event);
        let happening = Happening::from_event(event, &self.agent);
        if let Some(happening) = happening.clone() {
            self.shelve(happening);
        }
        News { written, happening }
    }

    /// Takes in what is said live, under the name that the gateway gives it.
    pub fn apply_live(&mut self, name: &str, data: &Value) -> News {
        match name {
            "output" => News { written: self.apply_output(data).unwrap_or_default(), happening: None },
            "token" => {
                self.append_token(data);
                News::default()
            }
            _ => News::default(),
        }
    }

    /// The newest of all that happened, in the order of the log.
    pub fn recent(&self, count: usize) -> Vec<&Happening> {
        let all = self.conversation.iter().chain(&self.decisions).chain(&self.outcomes);
        let mut all: Vec<&Happening> = all.collect();
        all.sort_by_key(|happening| happening.place);
        all.split_off(all.len().saturating_sub(count))
    }

    fn shelve(&mut self, happening: Happening) {
        let shelf = match happening.kind {
            HappeningKind::Heard | HappeningKind::Said | HappeningKind::Asked => &mut self.conversation,
            HappeningKind::Thought | HappeningKind::Called | HappeningKind::Failed | HappeningKind::Joined => {
                &mut self.decisions
            }
            HappeningKind::Thread | HappeningKind::Chain | HappeningKind::Task | HappeningKind::Remembered => {
                &mut self.decisions
            }
            HappeningKind::Result | HappeningKind::Process => &mut self.outcomes,
            HappeningKind::Progress => return,
        };
        push(shelf, happening, LINES);
    }

    fn change(&mut self, event: &EventJson) -> Vec<ProcessLine> {
        let payload = &event.payload;
        match event.type_name.as_str() {
            v1::AgentAction::TYPE => self.apply_action(event),
            v1::AgentFailed::TYPE => self.writing.clear(),
            v1::AgentApproval::TYPE => self.apply_verdict(payload),
            v1::ToolInvoke::TYPE => {
                self.update_action(payload, |action| action.begun = true);
            }
            v1::ToolProgress::TYPE => self.update_action(payload, |action| action.advance(payload)),
            v1::ToolResult::TYPE => self.apply_tool_result(payload),
            v1::ProcessSpawned::TYPE => self.start_process(event),
            v1::ProcessProgress::TYPE => {
                self.update_action(payload, |action| action.advance(payload));
                self.update_process(payload, |process| process.advance(payload));
            }
            v1::ProcessCanceled::TYPE => {
                self.update_action(payload, |action| action.cancel_requested = true);
                self.update_process(payload, |process| process.cancel_requested = true);
            }
            v1::ProcessExited::TYPE => return self.end_process(event).unwrap_or_default(),
            _ => {}
        }
        Vec::new()
    }

    fn apply_action(&mut self, event: &EventJson) {
        self.writing.clear();
        let payload = &event.payload;
        if field(payload, "type") != "tool_call" {
            return;
        }
        if matches!(field(payload, "tool"), "action.cancel" | "process.cancel")
            && let Some(arguments) = payload.get("args")
        {
            self.update_action(arguments, |action| action.cancel_requested = true);
            self.update_process(arguments, |process| process.cancel_requested = true);
        }
        push(&mut self.actions, Action::from_event(event), ACTIONS);
    }

    fn apply_verdict(&mut self, payload: &Value) {
        if matches!(Verdict::from(field(payload, "verdict")), Verdict::Happened | Verdict::DidNotHappen) {
            let action = id(payload, "action_id");
            self.actions.retain(|known| known.in_doubt.is_none() || Some(known.action_id) != action);
        }
    }

    fn apply_tool_result(&mut self, payload: &Value) {
        if field(payload, "error") == ToolErrorKind::InDoubt.as_str() {
            let why = field(payload, "message").to_owned();
            return self.update_action(payload, |action| action.in_doubt = Some(why));
        }
        let action = id(payload, "action_id");
        self.actions.retain(|known| Some(known.action_id) != action);
    }

    fn start_process(&mut self, event: &EventJson) {
        let Some(mut process) = AgentProcess::from_event(event) else { return };
        if let Some(place) = self.early.iter().position(|(id, _)| *id == process.process_id)
            && let Some((_, output)) = self.early.remove(place)
        {
            process.output = output;
        }
        self.update_action(&event.payload, |action| {
            action.process_id = Some(process.process_id);
            // It may have been asked to end before it began.
            process.cancel_requested = action.cancel_requested;
        });
        self.processes.push(process);
    }

    /// Takes the process off those that run; one that was never run was not among them.
    fn end_process(&mut self, event: &EventJson) -> Option<Vec<ProcessLine>> {
        let payload = &event.payload;
        let process_id = id(payload, "process_id")?;
        let running = self.processes.iter().position(|process| process.process_id == process_id);
        let mut process =
            running.map(|place| self.processes.remove(place)).or_else(|| AgentProcess::from_event(event))?;
        let rest = process.end(event);
        push(&mut self.ended, process, ENDED);
        Some(rest.into_iter().map(|line| ProcessLine { process_id, line }).collect())
    }

    fn apply_output(&mut self, data: &Value) -> Option<Vec<ProcessLine>> {
        let process_id = id(data, "process_id")?;
        if self.ended.iter().any(|process| process.process_id == process_id) {
            return None;
        }
        // A number too large for other languages is a text in JSON, and 0 is not said.
        let sequence = match data.get("sequence") {
            Some(Value::String(text)) => text.parse().ok()?,
            Some(number) => number.as_u64()?,
            None => 0,
        };
        let stream = if field(data, "stream") == "stderr" { OutputStream::Stderr } else { OutputStream::Stdout };
        let lines = self.output_of(process_id)?.push_piece(sequence, stream, field(data, "text"));
        Some(lines.into_iter().map(|line| ProcessLine { process_id, line }).collect())
    }

    fn output_of(&mut self, process_id: Uuid) -> Option<&mut ProcessOutput> {
        if let Some(place) = self.processes.iter().position(|process| process.process_id == process_id) {
            return self.processes.get_mut(place).map(|process| &mut process.output);
        }
        if !self.early.iter().any(|(id, _)| *id == process_id) {
            push(&mut self.early, (process_id, ProcessOutput::default()), EARLY);
        }
        self.early.iter_mut().find(|(id, _)| *id == process_id).map(|(_, output)| output)
    }

    fn append_token(&mut self, data: &Value) {
        if data.get("index").and_then(Value::as_u64).unwrap_or_default() == 0 {
            self.writing.clear();
        }
        if data.get("reasoning").and_then(Value::as_bool) != Some(true) {
            self.writing.push_str(field(data, "text"));
            let surplus = self.writing.len().saturating_sub(WRITING);
            self.writing.drain(..self.writing.ceil_char_boundary(surplus));
        }
    }

    fn update_action(&mut self, payload: &Value, change: impl FnOnce(&mut Action)) {
        let Some(id) = id(payload, "action_id") else { return };
        if let Some(action) = self.actions.iter_mut().find(|action| action.action_id == id) {
            change(action);
        }
    }

    fn update_process(&mut self, payload: &Value, change: impl FnOnce(&mut AgentProcess)) {
        let Some(id) = id(payload, "process_id") else { return };
        if let Some(process) = self.processes.iter_mut().find(|process| process.process_id == id) {
            change(process);
        }
    }
}

/// Adds to what is kept; the oldest go.
fn push<T>(kept: &mut VecDeque<T>, new: T, most: usize) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(new);
}

#[cfg(test)]
#[path = "picture/tests.rs"]
pub(super) mod tests;
