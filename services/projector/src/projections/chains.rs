//! Chains: begun with all their steps, which are asked about, called, and end one by one until the chain is over.

use kairo_proto::words::{StepState as Ended, ToolErrorKind};
use kairo_proto::{
    Body, Decided, about,
    v1::{ApprovalRequested, ChainEnded, ChainStarted, ChainStep, ChainStepEnded, DecidedEvent, ToolCall, ToolResult},
};
use kairo_read_model::stored::{Json, Key, Text};
use uuid::Uuid;

use super::{Fact, beginning, decided, some_text, turn};
use crate::changes::{Chain, ChainEnd, Changes, Step, StepAsked, StepBegun, StepEnd};

/// Bytes kept of a step's result and of a chain's plan; the event has the whole.
const SHOWN_BYTES: usize = 8 * 1024;

pub fn project(fact: &Fact, changes: &mut Changes) {
    if let Body::ToolResult(result) = &fact.record.body
        && !result.late
    {
        tool_ended(fact, result, changes);
    }
    for (position, event, what) in decided(fact) {
        if let Some(call) = event.tool_call() {
            begin(fact, event, call, changes);
        }
        let Decided::Chain(what) = what.about() else { continue };
        match what {
            about::Chain::Started(started) => start(fact, position, event, started, changes),
            about::Chain::ApprovalRequested(requested) => ask(fact, event, requested, changes),
            about::Chain::StepEnded(ended) => end_step(fact, position, ended, changes),
            about::Chain::Ended(ended) => end(fact, ended, changes),
        }
    }
}

/// A step, as rows name it.
pub(super) fn step_of(chain_id: &str, step: u32) -> Option<(Uuid, i32)> {
    Some((Uuid::parse_str(chain_id).ok()?, i32::try_from(step).ok()?))
}

fn start(fact: &Fact, position: i32, event: &DecidedEvent, started: &ChainStarted, changes: &mut Changes) {
    let Ok(chain_id) = Uuid::parse_str(&started.chain_id) else { return };
    if changes.chains.contains_key(&chain_id) {
        return;
    }
    changes.chains.insert(
        chain_id,
        Chain {
            sequence: fact.sequence,
            position,
            agent: fact.owner.clone(),
            thread_id: Key::some(&event.thread_id),
            correlation_id: turn(fact, event),
            origin: started.origin.as_str().into(),
            task_id: Uuid::parse_str(&started.task_id).ok(),
            plan: beginning(&started.plan, SHOWN_BYTES),
            started_at: fact.at,
        },
    );
    changes.steps.extend((0..).zip(&started.steps).map(|(number, step)| ((chain_id, number), written(step))));
}

fn written(step: &ChainStep) -> Step {
    Step {
        group: i32::try_from(step.group).unwrap_or(i32::MAX),
        event: step.event.as_str().into(),
        params: Json::nested(&step.params),
        decide: some_text(&step.decide),
    }
}

fn ask(fact: &Fact, event: &DecidedEvent, requested: &ApprovalRequested, changes: &mut Changes) {
    let Some(step) = step_of(&requested.chain_id, requested.step) else { return };
    let Ok(approval_id) = Uuid::parse_str(&event.event_id) else { return };
    let filled = Json::nested(&requested.arguments);
    changes.steps_asked.entry(step).or_insert_with(|| StepAsked { approval_id, filled, at: fact.at });
}

fn begin(fact: &Fact, event: &DecidedEvent, call: &ToolCall, changes: &mut Changes) {
    let Some(step) = step_of(&call.chain_id, call.step) else { return };
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    let filled = Json::nested(&call.arguments);
    let begun = || StepBegun { sequence: fact.sequence, action_id, filled, at: fact.at };
    changes.steps_begun.entry(step).or_insert_with(begun);
}

fn tool_ended(fact: &Fact, result: &ToolResult, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(&result.action_id) else { return };
    let failed = || {
        let error = result.error.as_ref();
        error.map_or_else(|| ToolErrorKind::Failed.text(), |error| format!("{}: {}", error.kind, error.message))
    };
    changes.step_results.entry(action_id).or_insert_with(|| StepEnd {
        sequence: fact.sequence,
        position: None,
        at: fact.at,
        outcome: if result.ok { Ended::Done } else { Ended::Failed }.known_word(),
        filled: None,
        result: result.ok.then(|| beginning(&result.result, SHOWN_BYTES)),
        reason: (!result.ok).then(|| beginning(&failed(), SHOWN_BYTES)),
    });
}

fn end_step(fact: &Fact, position: i32, ended: &ChainStepEnded, changes: &mut Changes) {
    let Some(step) = step_of(&ended.chain_id, ended.step) else { return };
    changes.steps_ended.entry(step).or_insert_with(|| StepEnd {
        sequence: fact.sequence,
        position: Some(position),
        at: fact.at,
        outcome: outcome(ended),
        filled: (!ended.params.is_empty()).then(|| Json::nested(&ended.params)),
        result: shown(&ended.result),
        reason: shown(&ended.reason),
    });
}

fn outcome(ended: &ChainStepEnded) -> &'static str {
    match ended.outcome_word() {
        over @ (Ended::Done | Ended::Skipped | Ended::Stopped) => over.known_word(),
        _ => Ended::Failed.known_word(),
    }
}

fn end(fact: &Fact, ended: &ChainEnded, changes: &mut Changes) {
    let Ok(chain_id) = Uuid::parse_str(&ended.chain_id) else { return };
    changes.chains_ended.entry(chain_id).or_insert_with(|| ChainEnd {
        sequence: fact.sequence,
        at: fact.at,
        outcome: ended.outcome.as_str().into(),
        reason: shown(&ended.reason),
    });
}

fn shown(text: &str) -> Option<Text> {
    (!text.is_empty()).then(|| beginning(text, SHOWN_BYTES))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentAction, ToolError, agent_action::Action, decided_event::Event};

    use super::{
        super::testing::{decided_as, decision, projected, record},
        *,
    };

    const CHAIN: &str = "0190f7a0-0000-7000-8000-0000000000c1";

    fn chain() -> Uuid {
        Uuid::parse_str(CHAIN).unwrap()
    }

    fn started(events: &[&str]) -> DecidedEvent {
        let step = |(group, event): (u32, &&str)| ChainStep {
            group,
            event: (*event).to_owned(),
            params: "{}".into(),
            ..Default::default()
        };
        let steps = (0..).zip(events).map(step).collect();
        let body = ChainStarted { chain_id: CHAIN.into(), origin: "plan".into(), steps, ..Default::default() };
        decided_as("t", "chain", Event::ChainStarted(body))
    }

    fn called(step: u32, kind: &str) -> DecidedEvent {
        let call = ToolCall { tool: "tools.now".into(), chain_id: CHAIN.into(), step, ..Default::default() };
        let call = ToolCall { arguments: r#"{"at":"noon"}"#.into(), ..call };
        decided_as("t", kind, Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }))
    }

    fn ended(step: u32, outcome: &str) -> DecidedEvent {
        let body = ChainStepEnded { chain_id: CHAIN.into(), step, outcome: outcome.into(), ..Default::default() };
        decided_as("t", outcome, Event::ChainStepEnded(body))
    }

    #[test]
    fn a_chain_begins_with_all_its_steps() {
        let changes = projected([decision(3, "bob", [started(&["a", "b"])]), decision(4, "bob", [started(&["c"])])]);
        assert_eq!((changes.chains[&chain()].sequence, changes.steps.len()), (3, 2));
        let second = &changes.steps[&(chain(), 1)];
        assert_eq!((second.event.as_str(), second.group, second.params.as_str()), ("b", 1, "{}"));
    }

    #[test]
    fn a_step_is_begun_and_ended_once() {
        let action = called(0, "call").event_id;
        let body = ToolResult { action_id: action, ok: false, ..Default::default() };
        let error = Some(ToolError { kind: "timed_out".into(), message: "too slow".into() });
        let changes = projected([
            decision(3, "bob", [started(&["a", "b"]), called(0, "call")]),
            decision(4, "bob", [called(0, "again"), ended(1, "skipped"), ended(1, "odd")]),
            record(5, "kairo.tool.bob.result", ToolResult { error, ..body }),
        ]);
        let begun = &changes.steps_begun[&(chain(), 0)];
        assert_eq!((begun.sequence, begun.filled.as_str()), (3, r#"{"at":"noon"}"#));
        assert_eq!(changes.step_results[&begun.action_id].reason, Some("timed_out: too slow".into()));
        let skipped = &changes.steps_ended[&(chain(), 1)];
        assert_eq!((skipped.outcome, &skipped.filled), ("skipped", &None));
    }

    #[test]
    fn what_names_no_chain_changes_nothing() {
        let mut odd = ended(0, "done");
        odd.event = Some(Event::ChainStepEnded(ChainStepEnded { step: u32::MAX, ..Default::default() }));
        let changes = projected([decision(3, "bob", [odd])]);
        assert_eq!((changes.steps_ended.len(), changes.chains.len()), (0, 0));
    }

    #[test]
    fn a_large_result_is_cut() {
        let body = ToolResult {
            action_id: Uuid::nil().to_string(),
            ok: true,
            result: "ä".repeat(SHOWN_BYTES),
            ..Default::default()
        };
        let changes = projected([record(5, "kairo.tool.bob.result", body)]);
        let kept = format!("{}…", "ä".repeat(SHOWN_BYTES / 2));
        assert_eq!(changes.step_results[&Uuid::nil()].result, Some(kept.as_str().into()));
    }
}
