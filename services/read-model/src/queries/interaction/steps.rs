//! The steps of a turn, from its events. Pure.
//!
//! A decision is a step: it plans, until something that was called has ended, and reflects from then on; what ends the turn
//! reflects, too. What a decision calls is a step each, which ends with its result.

use std::collections::{BTreeSet, HashMap};

use kairo_core::event_json::EventJson;
use kairo_proto::{
    time,
    v1::{self, InteractionRow, InteractionStepRow, Json},
    words::{InteractionStepKind, RequestKind, StepState, TaskStatus},
};
use serde_json::{Value, json};

use super::{
    TurnEvents,
    progress::{TurnProgress, is_awaited},
    surroundings::Surroundings,
};

/// The turn of these events; none of none.
pub fn interaction(turn: &TurnEvents) -> Option<InteractionRow> {
    let first = turn.events.first()?;
    let mut told = Told::default();
    turn.events.iter().for_each(|event| told.progress.take_in(event));
    for message in turn.events.chunk_by(|one, next| one.sequence == next.sequence) {
        let is_decision = message.first().is_some_and(|event| event.subject.ends_with(".decision"));
        match is_decision {
            true => told.decided(message, turn),
            false => message.iter().for_each(|event| told.happened(event)),
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

/// What the events so far came to.
#[derive(Default)]
struct Told {
    steps: Vec<InteractionStepRow>,
    intent: Option<String>,
    goal: Option<String>,
    surroundings: Surroundings,
    /// Which step a call is, by its action.
    calls: HashMap<String, usize>,
    /// The names of a chain's steps, by its id; and which of them are calls.
    chains: HashMap<String, Vec<String>>,
    called: BTreeSet<(String, u64)>,
    /// Whether anything that was called has ended.
    ended: bool,
    progress: TurnProgress,
}

/// What was thought, with the name of the submodule that did.
fn thought(event: &EventJson) -> String {
    match text(event, "module") {
        "" => event.text().to_owned(),
        module => format!("{module}: {}", event.text()),
    }
}

impl Told {
    fn decided(&mut self, events: &[EventJson], turn: &TurnEvents) {
        let Some(first) = events.first() else { return };
        // What submodules were shown of the turn changes nothing of it.
        if events.iter().any(|event| event.type_name == v1::AgentBroadcast::TYPE) {
            return;
        }
        let all = |type_name: &str, field: &str| -> Vec<&str> {
            let of_type = events.iter().filter(|event| event.type_name == type_name);
            of_type.map(|event| text(event, field)).filter(|text| !text.is_empty()).collect()
        };
        let says = events.iter().filter(|event| is(event, "say")).map(EventJson::text);
        let content: Vec<&str> = all(v1::ChainStarted::TYPE, "plan").into_iter().chain(says).collect();
        let failures = all(v1::AgentFailed::TYPE, "text");
        let (input_tokens, output_tokens) = turn.tokens.get(&first.sequence).copied().unwrap_or_default();
        let reviews = events.iter().filter(|event| event.type_name == v1::AgentReflected::TYPE).map(EventJson::text);
        let thoughts = events.iter().filter(|event| event.type_name == v1::AgentThought::TYPE).map(thought);
        let reasoning: Vec<String> = thoughts.chain(reviews.map(str::to_owned)).collect();
        let reasoning: Vec<&str> = reasoning.iter().map(String::as_str).collect();
        let is_end = |event: &EventJson| event.is_final_reply() || event.type_name == v1::AgentReflected::TYPE;
        let reflects = self.ended || events.iter().any(is_end);
        let kind = if reflects { InteractionStepKind::Reflect } else { InteractionStepKind::Plan };
        let step = InteractionStepRow {
            reasoning: joined(&reasoning),
            content: joined(&content),
            error: joined(&failures),
            input_tokens,
            output_tokens,
            ended_at: Some(time::message(first.ts)),
            ..step(first, &kind)
        };
        let says_something = step.reasoning.is_some() || step.content.is_some() || step.error.is_some();
        if says_something || input_tokens > 0 || output_tokens > 0 {
            self.steps.push(step);
        }
        events.iter().for_each(|event| self.decided_on(event));
    }

    fn decided_on(&mut self, event: &EventJson) {
        match event.type_name.as_str() {
            v1::AgentAction::TYPE if is(event, "tool_call") => {
                if self.surroundings.is_looked_at(event) {
                    return;
                }
                let step = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
                self.called.insert((text(event, "chain_id").to_owned(), step));
                self.call(event, text(event, "tool"), event.payload.get("args"));
            }
            v1::AgentAction::TYPE if is(event, "ask") => {
                if self.surroundings.is_looked_at(event) {
                    return;
                }
                let [agent, kind, title, task] = ["agent", "kind", "title", "task"].map(|field| text(event, field));
                if kind == RequestKind::Call.known_word() {
                    return self.call(event, text(event, "tool"), event.payload.get("args"));
                }
                let asked = json!({ "agent": agent, "kind": kind, "title": title, "task": task });
                self.call(event, "ask", Some(&asked));
                // Of anything but work and thoughts no answer is waited for.
                if let Some(step) = self.steps.last_mut().filter(|_| !is_awaited(kind)) {
                    step.ended_at = step.timestamp;
                }
            }
            v1::AgentGoal::TYPE => self.goal = Some(event.text().to_owned()),
            v1::ChainStarted::TYPE if self.surroundings.begin(event) => {}
            v1::ChainStarted::TYPE => self.chain(event),
            v1::ChainStepEnded::TYPE if self.surroundings.fail(event) => {}
            v1::ChainStepEnded::TYPE => self.step_ended(event),
            _ => {}
        }
    }

    /// What stands in the log besides decisions.
    fn happened(&mut self, event: &EventJson) {
        if self.surroundings.happened(event) {
            return;
        }
        match event.type_name.as_str() {
            v1::ToolResult::TYPE => {
                let error = (event.payload.get("ok") != Some(&Value::Bool(true))).then(|| event.text().to_owned());
                self.end(text(event, "action_id"), event, event.payload.get("result"), error);
            }
            v1::AgentAnswer::TYPE => {
                let is_done = text(event, "status") == TaskStatus::Completed.known_word();
                let reason = [text(event, "status"), text(event, "reason")].join(": ");
                let result = result_of(event).filter(|_| is_done);
                let result = result.as_ref();
                self.end(text(event, "request_id"), event, result, (!is_done).then_some(reason));
            }
            v1::UserMessageUndelivered::TYPE => {
                let error = Some(event.text().to_owned());
                self.steps.push(InteractionStepRow { error, ..step(event, &InteractionStepKind::Reflect) });
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &EventJson, tool: &str, arguments: Option<&Value>) {
        let action_id = event.event_id.to_string();
        self.calls.insert(action_id.clone(), self.steps.len());
        self.intent.get_or_insert_with(|| tool.to_owned());
        let (action, arguments) = (Some(tool.to_owned()), arguments.map(Json::from));
        let action_id = Some(action_id);
        self.steps.push(InteractionStepRow {
            action,
            action_id,
            arguments,
            ..step(event, &InteractionStepKind::Execute)
        });
    }

    fn end(&mut self, action: &str, event: &EventJson, result: Option<&Value>, error: Option<String>) {
        let Some(step) = self.calls.get(action).and_then(|at| self.steps.get_mut(*at)) else { return };
        // A late answer says what the first end could not.
        if event.payload.get("late").is_some() {
            (step.error, step.result) = (error, result.map(Json::from));
            return;
        }
        // The first end counts.
        if step.ended_at.is_none() {
            (step.ended_at, step.error) = (Some(time::message(event.ts)), error);
            step.result = result.map(Json::from);
        }
        self.ended = true;
    }

    fn chain(&mut self, event: &EventJson) {
        let plan = text(event, "plan");
        if !plan.is_empty() {
            self.intent.get_or_insert_with(|| plan.to_owned());
        }
        let steps = event.payload.get("steps").and_then(Value::as_array).into_iter().flatten();
        let names = steps.map(|step| step.get("event").and_then(Value::as_str).unwrap_or_default().to_owned());
        self.chains.insert(text(event, "chain_id").to_owned(), names.collect());
    }

    /// A step that no tool was called for, such as one that the agent does itself. What it thinks is a step by itself.
    fn step_ended(&mut self, event: &EventJson) {
        let number = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
        let place = (text(event, "chain_id").to_owned(), number);
        let names = self.chains.get(&place.0);
        let name = names.and_then(|names| names.get(usize::try_from(number).ok()?)).cloned().unwrap_or_default();
        let is_done = text(event, "outcome") == StepState::Done.known_word();
        if self.called.contains(&place) || name == "agent.think" {
            return;
        }
        let nested = |field: &str| {
            let text = Some(text(event, field)).filter(|text| !text.is_empty())?;
            Some(Json::from(&serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))))
        };
        let reason = [text(event, "outcome"), text(event, "reason")].join(": ");
        self.intent.get_or_insert_with(|| name.clone());
        self.steps.push(InteractionStepRow {
            action: Some(name),
            arguments: nested("params"),
            result: nested("result").filter(|_| is_done),
            error: (!is_done).then_some(reason),
            ended_at: Some(time::message(event.ts)),
            ..step(event, &InteractionStepKind::Execute)
        });
        self.ended = true;
    }
}

fn step(event: &EventJson, kind: &InteractionStepKind) -> InteractionStepRow {
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

/// What an answer says: of a call, the JSON that its tool said.
pub(super) fn result_of(event: &EventJson) -> Option<Value> {
    let result = event.payload.get("result")?;
    let is_call = text(event, "kind") == RequestKind::Call.known_word();
    let nested = result.as_str().filter(|_| is_call).and_then(|text| serde_json::from_str(text).ok());
    Some(nested.unwrap_or_else(|| result.clone()))
}

pub(super) fn is(event: &EventJson, action: &str) -> bool {
    event.type_name == v1::AgentAction::TYPE && text(event, "type") == action
}

pub(super) fn text<'e>(event: &'e EventJson, field: &str) -> &'e str {
    event.payload.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// None of nothing.
fn joined(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests;
