//! The steps of a turn, from its events. Pure.
//!
//! The words and thoughts of a decision are split at its calls and at the reviews of its drafts: the words before a
//! call are a plan, a review has a draft before it and perhaps a revision behind it, and words behind neither a call
//! nor a review are an answer. Each call of a decision is a step, which ends with its result.

use std::collections::{BTreeSet, HashMap};

use kairo_core::event_json::EventJson;
use kairo_proto::{
    time,
    v1::{self, InteractionRow, InteractionStepRow, Json},
    words::{InteractionStepKind, RequestKind, ReviewVerdict, StepState, TaskKind, TaskStatus},
};
use serde_json::{Value, json};

use super::{
    TurnEvents,
    progress::{TurnProgress, is_awaited},
    step_builder::StepBuilder,
    surroundings::Surroundings,
};

/// The turn of these events; none of none.
pub fn build_interaction(turn: &TurnEvents) -> Option<InteractionRow> {
    let first = turn.events.first()?;
    let mut told = InteractionBuilder::default();
    turn.events.iter().for_each(|event| told.progress.apply_event(event));
    for message in turn.events.chunk_by(|one, next| one.sequence == next.sequence) {
        let is_decision = message.first().is_some_and(|event| event.subject.ends_with(".decision"));
        match is_decision {
            true => told.apply_decision(message, turn),
            false => message.iter().for_each(|event| told.apply_event(event)),
        }
    }
    let (input_tokens, output_tokens) = told.steps.iter().fold((0_u64, 0_u64), |(read, written), step| {
        (read.saturating_add(step.input_tokens), written.saturating_add(step.output_tokens))
    });
    Some(InteractionRow {
        turn_id: first.correlation_id.to_string(),
        intent: told.intent,
        status: told.progress.status().text(),
        started_at: Some(time::message(first.ts)),
        ended_at: told.progress.ended_at().map(time::message),
        input_tokens,
        output_tokens,
        steps: told.steps,
        more: turn.more,
        goal: told.goal,
        environment: told.surroundings.rows,
    })
}

/// The steps built from the events so far.
#[derive(Default)]
struct InteractionBuilder {
    steps: Vec<InteractionStepRow>,
    intent: Option<String>,
    goal: Option<String>,
    surroundings: Surroundings,
    /// The index of a call's step, by its action.
    calls: HashMap<String, usize>,
    /// The names of a chain's steps, by its id; and which of them are calls.
    chains: HashMap<String, Vec<String>>,
    called: BTreeSet<(String, u64)>,
    /// True if any call has ended.
    ended: bool,
    /// Agents whose last review asked for another answer.
    unfinished: BTreeSet<String>,
    progress: TurnProgress,
}

/// The tool with which a model queues tasks; `THINK` is a step in which it thinks.
const QUEUE: &str = "task.queue";
const THINK: &str = "agent.think";

impl InteractionBuilder {
    fn apply_decision(&mut self, events: &[EventJson], turn: &TurnEvents) {
        let Some(first) = events.first() else { return };
        // What submodules were shown of the turn changes nothing of it.
        if events.iter().any(|event| event.type_name == v1::AgentBroadcast::TYPE) {
            return;
        }
        let mut passage = StepBuilder::start(first, turn.tokens.get(&first.sequence).copied().unwrap_or_default());
        let queued = queued_by_steps(events);
        for event in events {
            match event.type_name.as_str() {
                v1::AgentReflected::TYPE => self.push_review(event, &mut passage),
                v1::AgentGoal::TYPE => {
                    passage.content.push(event.text().to_owned());
                    passage.plans = true;
                    self.push_step(&mut passage);
                }
                v1::TaskScheduled::TYPE if is_queued(event) && !queued.contains(task_id(event)) => {
                    passage.plans = true;
                    self.push_step(&mut passage);
                    self.push_queued_task(event);
                }
                _ if self.begins_step(event) => {
                    passage.plans = true;
                    self.push_step(&mut passage);
                }
                _ => passage.add_event(event),
            }
            self.apply_decided_event(event);
        }
        self.push_step(&mut passage);
    }

    /// Returns true for a call, or for the end of a step that called no tool.
    fn begins_step(&self, event: &EventJson) -> bool {
        let is_call = is_action(event, "tool_call") || is_action(event, "ask");
        let is_end = event.type_name == v1::ChainStepEnded::TYPE && self.step_name(event) != THINK;
        (is_call || is_end) && !self.surroundings.knows_chain(event)
    }

    /// Turns the thoughts and words so far into a step, unless there are none.
    fn push_step(&mut self, passage: &mut StepBuilder) {
        let agent = passage.step.agent.clone().unwrap_or_default();
        let kind = match () {
            () if passage.plans => InteractionStepKind::Plan,
            () if !passage.content.is_empty() && self.unfinished.remove(&agent) => InteractionStepKind::Revision,
            () if passage.is_reviewed => InteractionStepKind::Answer,
            () if self.ended || passage.learns => InteractionStepKind::Reflect,
            () if !passage.content.is_empty() => InteractionStepKind::Answer,
            () => InteractionStepKind::Plan,
        };
        self.steps.extend(passage.finish_step(&kind));
    }

    /// A review: what it read is a step before it.
    fn push_review(&mut self, event: &EventJson, passage: &mut StepBuilder) {
        let agent = passage.step.agent.clone().unwrap_or_default();
        let is_revision = self.unfinished.remove(&agent);
        passage.content.push(payload_text(event, "draft").to_owned());
        let kind = if is_revision { InteractionStepKind::Revision } else { InteractionStepKind::Draft };
        self.steps.extend(passage.finish_step(&kind));
        let verdict = payload_text(event, "verdict");
        let reason = Some(payload_text(event, "reason").to_owned()).filter(|reason| !reason.is_empty());
        self.steps.push(InteractionStepRow {
            reasoning: reason,
            content: Some(verdict.to_owned()),
            ended_at: Some(time::message(event.ts)),
            ..new_step(event, &InteractionStepKind::Review)
        });
        passage.is_reviewed = verdict == ReviewVerdict::Finished.known_word();
        if !passage.is_reviewed {
            self.unfinished.insert(agent);
        }
    }

    /// A task that was queued along with words is a call like any other.
    fn push_queued_task(&mut self, event: &EventJson) {
        let task = event.payload.get("task");
        let field = |name: &str| task.and_then(|task| task.get(name)).and_then(Value::as_str).unwrap_or_default();
        let [title, text] = ["title", "text"].map(field);
        self.intent.get_or_insert_with(|| QUEUE.to_owned());
        self.steps.push(InteractionStepRow {
            action: Some(QUEUE.to_owned()),
            action_id: Some(event.event_id.to_string()),
            arguments: Some(Json::from(&json!({ "title": title, "text": text }))),
            result: Some(Json::from(&json!({ "task_id": task_id(event) }))),
            status: Some(StepState::Done.text()),
            ended_at: Some(time::message(event.ts)),
            ..new_step(event, &InteractionStepKind::Execute)
        });
    }

    fn apply_decided_event(&mut self, event: &EventJson) {
        match event.type_name.as_str() {
            v1::AgentAction::TYPE if is_action(event, "tool_call") => {
                if self.surroundings.claim_call(event) {
                    return;
                }
                let step = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
                self.called.insert((payload_text(event, "chain_id").to_owned(), step));
                self.push_call(event, payload_text(event, "tool"), event.payload.get("args"));
            }
            v1::AgentAction::TYPE if is_action(event, "ask") => {
                if self.surroundings.claim_call(event) {
                    return;
                }
                let [agent, kind, title, task] =
                    ["agent", "kind", "title", "task"].map(|field| payload_text(event, field));
                if kind == RequestKind::Call.known_word() {
                    return self.push_call(event, payload_text(event, "tool"), event.payload.get("args"));
                }
                let asked = json!({ "agent": agent, "kind": kind, "title": title, "task": task });
                self.push_call(event, "ask", Some(&asked));
                // Of anything but work and thoughts no answer is waited for.
                if let Some(step) = self.steps.last_mut().filter(|_| !is_awaited(kind)) {
                    (step.ended_at, step.status) = (step.timestamp, Some(StepState::Done.text()));
                }
            }
            v1::AgentGoal::TYPE => self.goal = Some(event.text().to_owned()),
            v1::ChainStarted::TYPE if self.surroundings.claim_chain(event) => {}
            v1::ChainStarted::TYPE => self.record_chain(event),
            v1::ChainStepEnded::TYPE if self.surroundings.claim_failure(event) => {}
            v1::ChainStepEnded::TYPE => self.end_chain_step(event),
            _ => {}
        }
    }

    /// Takes in an event that is not part of a decision.
    fn apply_event(&mut self, event: &EventJson) {
        if self.surroundings.claim_result(event) {
            return;
        }
        match event.type_name.as_str() {
            v1::ToolResult::TYPE => {
                let error = (event.payload.get("ok") != Some(&Value::Bool(true))).then(|| event.text().to_owned());
                self.end_call(payload_text(event, "action_id"), event, event.payload.get("result"), error);
            }
            v1::AgentAnswer::TYPE => {
                let is_done = payload_text(event, "status") == TaskStatus::Completed.known_word();
                let reason = [payload_text(event, "status"), payload_text(event, "reason")].join(": ");
                let result = result_of(event).filter(|_| is_done);
                let result = result.as_ref();
                self.end_call(payload_text(event, "request_id"), event, result, (!is_done).then_some(reason));
            }
            v1::UserMessageUndelivered::TYPE => {
                let error = Some(event.text().to_owned());
                self.steps.push(InteractionStepRow { error, ..new_step(event, &InteractionStepKind::Reflect) });
            }
            _ => {}
        }
    }

    fn push_call(&mut self, event: &EventJson, tool: &str, arguments: Option<&Value>) {
        let action_id = event.event_id.to_string();
        self.calls.insert(action_id.clone(), self.steps.len());
        self.intent.get_or_insert_with(|| tool.to_owned());
        let action = Some(tool.to_owned());
        let arguments = arguments.map(Json::from);
        let action_id = Some(action_id);
        self.steps.push(InteractionStepRow {
            action,
            action_id,
            arguments,
            status: Some(StepState::Running.text()),
            ..new_step(event, &InteractionStepKind::Execute)
        });
    }

    fn end_call(&mut self, action: &str, event: &EventJson, result: Option<&Value>, error: Option<String>) {
        let Some(step) = self.calls.get(action).and_then(|at| self.steps.get_mut(*at)) else { return };
        // A late answer says what the first end could not.
        if event.payload.get("late").is_some() {
            step.status = Some(end_state(error.as_deref()).text());
            (step.error, step.result) = (error, result.map(Json::from));
            return;
        }
        // The first end counts.
        if step.ended_at.is_none() {
            step.status = Some(end_state(error.as_deref()).text());
            (step.ended_at, step.error) = (Some(time::message(event.ts)), error);
            step.result = result.map(Json::from);
        }
        self.ended = true;
    }

    fn record_chain(&mut self, event: &EventJson) {
        let plan = payload_text(event, "plan");
        if !plan.is_empty() {
            self.intent.get_or_insert_with(|| plan.to_owned());
        }
        let steps = event.payload.get("steps").and_then(Value::as_array).into_iter().flatten();
        let names = steps.map(|step| step.get("event").and_then(Value::as_str).unwrap_or_default().to_owned());
        self.chains.insert(payload_text(event, "chain_id").to_owned(), names.collect());
    }

    /// A step that no tool was called for, such as one that the agent does itself. What it thinks is a step by itself.
    fn end_chain_step(&mut self, event: &EventJson) {
        let number = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
        let place = (payload_text(event, "chain_id").to_owned(), number);
        let name = self.step_name(event).to_owned();
        let outcome = StepState::from(payload_text(event, "outcome"));
        if self.called.contains(&place) || name == THINK {
            return;
        }
        let nested = |field: &str| {
            let text = Some(payload_text(event, field)).filter(|text| !text.is_empty())?;
            Some(Json::from(&serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))))
        };
        let is_done = outcome == StepState::Done;
        let is_skipped = outcome == StepState::Skipped;
        let reason = Some(payload_text(event, "reason").to_owned()).filter(|_| is_skipped);
        let error = [payload_text(event, "outcome"), payload_text(event, "reason")].join(": ");
        self.intent.get_or_insert_with(|| name.clone());
        self.steps.push(InteractionStepRow {
            action: Some(name),
            action_id: Some(event.event_id.to_string()),
            arguments: nested("params"),
            result: nested("result").filter(|_| is_done),
            error: (!is_done && !is_skipped).then_some(error),
            status: Some(outcome.text()),
            reason,
            ended_at: Some(time::message(event.ts)),
            ..new_step(event, &InteractionStepKind::Execute)
        });
        self.ended = true;
    }

    /// The name of the step that an event ends.
    fn step_name(&self, event: &EventJson) -> &str {
        let number = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
        let names = self.chains.get(payload_text(event, "chain_id"));
        names.and_then(|names| names.get(usize::try_from(number).ok()?)).map_or("", String::as_str)
    }
}

/// Returns the state of a call that has ended.
fn end_state(error: Option<&str>) -> StepState {
    if error.is_some() { StepState::Failed } else { StepState::Done }
}

fn task_id(event: &EventJson) -> &str {
    event.payload.get("task").and_then(|task| task.get("task_id")).and_then(Value::as_str).unwrap_or_default()
}

fn is_queued(event: &EventJson) -> bool {
    let kind = event.payload.get("task").and_then(|task| task.get("kind")).and_then(Value::as_str);
    kind == Some(TaskKind::Queued.known_word())
}

/// The tasks that steps of chains made in a decision: those steps tell of them.
fn queued_by_steps(events: &[EventJson]) -> BTreeSet<String> {
    let ends = events.iter().filter(|event| event.type_name == v1::ChainStepEnded::TYPE);
    let results = ends.filter_map(|event| serde_json::from_str::<Value>(payload_text(event, "result")).ok());
    results.filter_map(|result| Some(result.get("task_id")?.as_str()?.to_owned())).collect()
}

pub(super) fn new_step(event: &EventJson, kind: &InteractionStepKind) -> InteractionStepRow {
    let mut tokens = event.subject.split('.').skip(1);
    let agent = tokens.next().filter(|noun| *noun != "user").and_then(|_| tokens.next());
    InteractionStepRow {
        kind: kind.text(),
        agent: agent.map(str::to_owned),
        log_sequence: event.sequence,
        position: event.position,
        timestamp: Some(time::message(event.ts)),
        ..InteractionStepRow::default()
    }
}

/// Returns the result in an answer; for a call, the JSON that its tool returned.
pub(super) fn result_of(event: &EventJson) -> Option<Value> {
    let result = event.payload.get("result")?;
    let is_call = payload_text(event, "kind") == RequestKind::Call.known_word();
    let nested = result.as_str().filter(|_| is_call).and_then(|text| serde_json::from_str(text).ok());
    Some(nested.unwrap_or_else(|| result.clone()))
}

pub(super) fn is_action(event: &EventJson, action: &str) -> bool {
    event.type_name == v1::AgentAction::TYPE && payload_text(event, "type") == action
}

pub(super) fn payload_text<'e>(event: &'e EventJson, field: &str) -> &'e str {
    event.payload.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
