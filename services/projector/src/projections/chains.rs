//! Chains: begun with all their steps, which are asked about, called, and end one by one until the chain is over.

use kairo_proto::words::{StepState as Ended, ToolErrorKind};
use kairo_proto::{
    Body, Decided, about,
    v1::{ApprovalRequested, ChainEnded, ChainStarted, ChainStep, ChainStepEnded, DecidedEvent, ToolCall, ToolResult},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText};
use uuid::Uuid;

use super::{ProjectedRecord, decided_events, non_empty_text, truncate_text, turn_of};
use crate::changes::{ChainEnd, ChainStart, PlannedStep, StepApprovalRequest, StepEnd, StepStart, TableChanges};

/// Bytes kept of a step's result and of a chain's plan; the event has the whole.
const SHOWN_BYTES: usize = 8 * 1024;

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    if let Body::ToolResult(result) = &fact.record.body
        && !result.late
    {
        project_tool_result(fact, result, changes);
    }
    for (position, event, what) in decided_events(fact) {
        if let Some(call) = event.tool_call() {
            project_step_start(fact, event, call, changes);
        }
        let Decided::Chain(what) = what.about() else { continue };
        match what {
            about::Chain::Started(started) => project_chain_start(fact, position, event, started, changes),
            about::Chain::ApprovalRequested(requested) => project_approval_request(fact, event, requested, changes),
            about::Chain::StepEnded(ended) => project_step_end(fact, position, ended, changes),
            about::Chain::Ended(ended) => project_chain_end(fact, ended, changes),
        }
    }
}

/// A step, as rows name it.
pub(super) fn step_of(chain_id: &str, step: u32) -> Option<(Uuid, i32)> {
    Some((Uuid::parse_str(chain_id).ok()?, i32::try_from(step).ok()?))
}

fn project_chain_start(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    started: &ChainStarted,
    changes: &mut TableChanges,
) {
    let Ok(chain_id) = Uuid::parse_str(&started.chain_id) else { return };
    if changes.chains.contains_key(&chain_id) {
        return;
    }
    changes.chains.insert(
        chain_id,
        ChainStart {
            sequence: fact.sequence,
            position,
            agent: fact.owner.clone(),
            thread_id: SqlKey::non_empty(&event.thread_id),
            correlation_id: turn_of(fact, event),
            origin: started.origin.as_str().into(),
            task_id: Uuid::parse_str(&started.task_id).ok(),
            plan: truncate_text(&started.plan, SHOWN_BYTES),
            started_at: fact.at,
        },
    );
    changes.steps.extend((0..).zip(&started.steps).map(|(number, step)| ((chain_id, number), planned_step(step))));
}

fn planned_step(step: &ChainStep) -> PlannedStep {
    PlannedStep {
        group: i32::try_from(step.group).unwrap_or(i32::MAX),
        event: step.event.as_str().into(),
        params: SqlJson::from_text(&step.params),
        decide: non_empty_text(&step.decide),
    }
}

fn project_approval_request(
    fact: &ProjectedRecord,
    event: &DecidedEvent,
    requested: &ApprovalRequested,
    changes: &mut TableChanges,
) {
    let Some(step) = step_of(&requested.chain_id, requested.step) else { return };
    let Ok(approval_id) = Uuid::parse_str(&event.event_id) else { return };
    let filled = SqlJson::from_text(&requested.arguments);
    changes.steps_asked.entry(step).or_insert_with(|| StepApprovalRequest { approval_id, filled, at: fact.at });
}

fn project_step_start(fact: &ProjectedRecord, event: &DecidedEvent, call: &ToolCall, changes: &mut TableChanges) {
    let Some(step) = step_of(&call.chain_id, call.step) else { return };
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    let filled = SqlJson::from_text(&call.arguments);
    let begun = || StepStart { sequence: fact.sequence, action_id, filled, at: fact.at };
    changes.steps_begun.entry(step).or_insert_with(begun);
}

fn project_tool_result(fact: &ProjectedRecord, result: &ToolResult, changes: &mut TableChanges) {
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
        result: result.ok.then(|| truncate_text(&result.result, SHOWN_BYTES)),
        reason: (!result.ok).then(|| truncate_text(&failed(), SHOWN_BYTES)),
    });
}

fn project_step_end(fact: &ProjectedRecord, position: i32, ended: &ChainStepEnded, changes: &mut TableChanges) {
    let Some(step) = step_of(&ended.chain_id, ended.step) else { return };
    changes.steps_ended.entry(step).or_insert_with(|| StepEnd {
        sequence: fact.sequence,
        position: Some(position),
        at: fact.at,
        outcome: step_outcome(ended),
        filled: (!ended.params.is_empty()).then(|| SqlJson::from_text(&ended.params)),
        result: non_empty_truncated(&ended.result),
        reason: non_empty_truncated(&ended.reason),
    });
}

fn step_outcome(ended: &ChainStepEnded) -> &'static str {
    match ended.outcome_word() {
        over @ (Ended::Done | Ended::Skipped | Ended::Stopped) => over.known_word(),
        _ => Ended::Failed.known_word(),
    }
}

fn project_chain_end(fact: &ProjectedRecord, ended: &ChainEnded, changes: &mut TableChanges) {
    let Ok(chain_id) = Uuid::parse_str(&ended.chain_id) else { return };
    changes.chains_ended.entry(chain_id).or_insert_with(|| ChainEnd {
        sequence: fact.sequence,
        at: fact.at,
        outcome: ended.outcome.as_str().into(),
        reason: non_empty_truncated(&ended.reason),
    });
}

fn non_empty_truncated(text: &str) -> Option<SqlText> {
    (!text.is_empty()).then(|| truncate_text(text, SHOWN_BYTES))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentAction, ToolError, agent_action::Action, decided_event::Event};

    use super::{
        super::testing::{decision, project_all, record, sample_event_with},
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
        sample_event_with("t", "chain", Event::ChainStarted(body))
    }

    fn called(step: u32, kind: &str) -> DecidedEvent {
        let call = ToolCall { tool: "tools.now".into(), chain_id: CHAIN.into(), step, ..Default::default() };
        let call = ToolCall { arguments: r#"{"at":"noon"}"#.into(), ..call };
        sample_event_with("t", kind, Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }))
    }

    fn ended(step: u32, outcome: &str) -> DecidedEvent {
        let body = ChainStepEnded { chain_id: CHAIN.into(), step, outcome: outcome.into(), ..Default::default() };
        sample_event_with("t", outcome, Event::ChainStepEnded(body))
    }

    #[test]
    fn a_chain_begins_with_all_its_steps() {
        let changes = project_all([decision(3, "bob", [started(&["a", "b"])]), decision(4, "bob", [started(&["c"])])]);
        assert_eq!((changes.chains[&chain()].sequence, changes.steps.len()), (3, 2));
        let second = &changes.steps[&(chain(), 1)];
        assert_eq!((second.event.as_str(), second.group, second.params.as_str()), ("b", 1, "{}"));
    }

    #[test]
    fn a_step_is_begun_and_ended_once() {
        let action = called(0, "call").event_id;
        let body = ToolResult { action_id: action, ok: false, ..Default::default() };
        let error = Some(ToolError { kind: "timed_out".into(), message: "too slow".into() });
        let changes = project_all([
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
        let changes = project_all([decision(3, "bob", [odd])]);
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
        let changes = project_all([record(5, "kairo.tool.bob.result", body)]);
        let kept = format!("{}…", "ä".repeat(SHOWN_BYTES / 2));
        assert_eq!(changes.step_results[&Uuid::nil()].result, Some(kept.as_str().into()));
    }
}
