//! Tool calls: decided on, begun, on their way, asked to end, ended, and resolved when their end was in doubt.

use std::collections::btree_map::Entry;

use kairo_proto::words;
use kairo_proto::{
    About,
    about::{Agent, Process, Tool},
    v1::{AgentAnswer, AgentApproval, Ask, DecidedEvent, ToolInvoke, ToolResult},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey};
use serde_json::json;
use uuid::Uuid;

use super::{ProjectedRecord, entered_by, progress_report};
use crate::changes::{
    ActionDecision, ActionEnding, ActionStart, ActionVerdict, CancelRequest, ReportedProgress, TableChanges,
};

/// The tools that end what they are called on.
const CANCELING: [&str; 2] = ["action.cancel", "process.cancel"];

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    match fact.record.body.about() {
        About::Decision(decision) => {
            for event in &decision.events {
                project_decision(fact, event, changes);
            }
        }
        About::Tool(Tool::Invoke(invoke)) => project_invoke(fact, invoke, changes),
        About::Tool(Tool::Result(result)) => project_result(fact, result, changes),
        About::Tool(Tool::Progress(told)) => {
            project_progress(&told.action_id, progress_report(fact.at, told.fraction, &told.message), changes)
        }
        About::Process(Process::Progress(told)) => {
            project_progress(&told.action_id, progress_report(fact.at, told.fraction, &told.message), changes);
        }
        About::Process(Process::Canceled(canceled)) => {
            project_cancel(&canceled.action_id, fact, Uuid::parse_str(&canceled.by_action_id).ok(), changes);
        }
        About::Agent(Agent::Approval(approval)) => project_verdict(fact, approval, changes),
        About::Agent(Agent::Answer(answer)) => project_answer(fact, answer, changes),
        About::Agent(Agent::Request(_) | Agent::Imported(_) | Agent::Forgotten(_)) => {}
        About::Agent(Agent::Defined(_) | Agent::Message(_) | Agent::Choice(_) | Agent::Command(_)) => {}
        // The decision that gives it says whose end it wants.
        About::Tool(Tool::Order(_)) => {}
        About::Process(Process::Spawned(_) | Process::Reply(_) | Process::Exited(_)) => {}
        About::User(_) | About::Decided(_) | About::Outside(_) | About::System(_) | About::Live(_) => {}
    }
}

fn project_decision(fact: &ProjectedRecord, event: &DecidedEvent, changes: &mut TableChanges) {
    if let Some(ask) = event.ask() {
        return project_ask(fact, event, ask, changes);
    }
    let Some(call) = event.tool_call() else { return };
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    if CANCELING.contains(&call.tool.as_str()) {
        project_cancel(&call.target_action_id, fact, Some(action_id), changes);
    }
    changes.actions.entry(action_id).or_insert_with(|| new_action(fact, event, &call.tool, &call.arguments));
}

fn new_action(fact: &ProjectedRecord, event: &DecidedEvent, tool: &str, arguments: &str) -> ActionDecision {
    ActionDecision {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        thread_id: SqlKey::non_empty(&event.thread_id),
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id),
        tool: tool.into(),
        arguments: SqlJson::from_text(arguments),
        decided_at: fact.at,
    }
}

/// Begins an action of another agent as soon as it is requested, or notes the request to cancel it.
fn project_ask(fact: &ProjectedRecord, event: &DecidedEvent, ask: &Ask, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    match ask.kind_word() {
        words::RequestKind::Work | words::RequestKind::Call | words::RequestKind::Think => {
            changes.actions.entry(action_id).or_insert_with(|| new_action(fact, event, &ask.tool, &ask.arguments));
            let runner = fact.owner.clone();
            let executor = ask.agent.as_str().into();
            let begun = || ActionStart { invoked_at: fact.at, runner, executor };
            changes.begun.entry(action_id).or_insert_with(begun);
        }
        words::RequestKind::Cancel => project_cancel(&ask.request_id, fact, Some(action_id), changes),
        words::RequestKind::Pause | words::RequestKind::Resume | words::RequestKind::Unknown(_) => {}
    }
}

/// Another agent's answer is the end of what it was asked for.
fn project_answer(fact: &ProjectedRecord, answer: &AgentAnswer, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(&answer.request_id) else { return };
    let ok = answer.status_word() == words::TaskStatus::Completed;
    let is_canceled = answer.status_word() == words::TaskStatus::Canceled;
    let kind = if is_canceled { words::ToolErrorKind::Canceled } else { words::ToolErrorKind::Failed }.known_word();
    let said = answer.error.as_ref().map(|error| (error.kind.as_str(), error.message.as_str()));
    let (kind, message) = said.unwrap_or((kind, answer.reason.as_str()));
    // Of a call it is what the tool said.
    let result = || match answer.kind_word() {
        words::RequestKind::Call => SqlJson::from_text(&answer.result),
        _ => SqlJson::from_value(&json!({ "agent": answer.from, "result": answer.result })),
    };
    changes.ended.entry(action_id).or_insert_with(|| ActionEnding {
        sequence: fact.sequence,
        ended_at: fact.at,
        ok,
        result: ok.then(result),
        error_kind: (!ok).then(|| kind.into()),
        error_message: (!ok).then(|| message.into()),
        duration_ms: 0,
    });
}

fn project_invoke(fact: &ProjectedRecord, invoke: &ToolInvoke, changes: &mut TableChanges) {
    for action in &invoke.actions {
        let Ok(action_id) = Uuid::parse_str(&action.action_id) else { continue };
        changes.begun.entry(action_id).or_insert_with(|| ActionStart {
            invoked_at: fact.at,
            runner: invoke.runner.as_str().into(),
            executor: action.executor.as_str().into(),
        });
    }
}

fn project_result(fact: &ProjectedRecord, result: &ToolResult, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(&result.action_id) else { return };
    let error = result.error.as_ref().filter(|_| !result.ok);
    let ends = if result.late { &mut changes.late_answers } else { &mut changes.ended };
    ends.entry(action_id).or_insert_with(|| ActionEnding {
        sequence: fact.sequence,
        ended_at: fact.at,
        ok: result.ok,
        result: result.ok.then(|| SqlJson::from_text(&result.result)),
        error_kind: error.and_then(|error| SqlKey::non_empty(&error.kind)),
        error_message: error.map(|error| error.message.as_str().into()),
        duration_ms: i64::from(result.duration_ms),
    });
}

fn project_progress(action: &str, progress: ReportedProgress, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(action) else { return };
    match changes.progressed.entry(action_id) {
        Entry::Occupied(there) if progress.is_older_than(there.get()) => {}
        Entry::Occupied(mut there) => _ = there.insert(progress),
        Entry::Vacant(place) => _ = place.insert(progress),
    }
}

fn project_cancel(action: &str, fact: &ProjectedRecord, by: Option<Uuid>, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(action) else { return };
    changes.cancels.entry(action_id).or_insert(CancelRequest { at: fact.at, by });
}

fn project_verdict(fact: &ProjectedRecord, approval: &AgentApproval, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(&approval.action_id) else { return };
    // It is settled: a verdict from before a late answer counts, one from after does not.
    if changes.late_answers.contains_key(&action_id) {
        return;
    }
    // What a human found out about one in doubt.
    if matches!(approval.verdict_word(), words::Verdict::Happened | words::Verdict::DidNotHappen) {
        changes.verdicts.push(ActionVerdict {
            sequence: fact.sequence,
            changed_arguments: None,
            action_id,
            agent: fact.owner.clone(),
            verdict: approval.verdict.as_str().into(),
            user: approval.user.as_str().into(),
            note: approval.note.as_str().into(),
            entered_by: entered_by(fact),
            at: fact.at,
        });
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::record::Record;
    use kairo_proto::v1::{
        ProcessCanceled, ProcessProgress, ToolCall, ToolError, ToolInvocation, ToolProgress, agent_action,
        decided_event::Event,
    };

    use super::{
        super::testing::{decision, project_all, record, sample_event},
        *,
    };

    fn result(sequence: u64, action: &str, ok: bool) -> Record {
        let error = ToolError { kind: "in_doubt".into(), message: "may have run".into() };
        let error = (!ok).then_some(error);
        let body = ToolResult { action_id: action.into(), ok, result: "{\"n\":1}".into(), error, ..Default::default() };
        record(sequence, "kairo.tool.bob.result", body)
    }

    #[test]
    fn an_action_is_decided_begun_and_ended_once_each() {
        let call = sample_event("t", "call");
        let id = call.event_id.clone();
        let invocation = ToolInvocation { action_id: id.clone(), executor: "tool-runner".into(), ..Default::default() };
        let invoke = ToolInvoke { runner: "r-1".into(), actions: vec![invocation], ..Default::default() };
        let changes = project_all([
            decision(3, "bob", [call]),
            record(4, "kairo.tool.bob.invoke", invoke),
            result(5, &id, true),
            result(6, &id, false),
        ]);
        let id = Uuid::parse_str(&id).unwrap();
        assert_eq!(changes.actions[&id].tool.as_str(), "tools.now");
        assert_eq!(changes.begun[&id].runner.as_str(), "r-1");
        let ended = &changes.ended[&id];
        assert_eq!((ended.ok, ended.result.as_ref().map(SqlJson::as_str)), (true, Some("{\"n\":1}")));
    }

    #[test]
    fn a_failure_says_how_and_has_no_result() {
        let id = Uuid::from_u128(9);
        let changes = project_all([result(5, &id.to_string(), false), result(6, "not an id", true)]);
        assert_eq!(changes.ended.len(), 1);
        let ended = &changes.ended[&id];
        assert_eq!((ended.error_kind.as_ref().map(SqlKey::as_str), &ended.result), (Some("in_doubt"), &None));
    }

    #[test]
    fn a_late_answer_stands_beside_the_end_and_settles_it_for_verdicts_behind_it() {
        let id = Uuid::from_u128(9);
        let late =
            ToolResult { action_id: id.to_string(), ok: true, late: true, result: "7".into(), ..Default::default() };
        let verdict = AgentApproval { action_id: id.to_string(), verdict: "happened".into(), ..Default::default() };
        let changes = project_all([
            result(5, &id.to_string(), false),
            record(6, "kairo.agent.bob.approval", verdict.clone()),
            record(7, "kairo.tool.bob.result", late),
            record(8, "kairo.agent.bob.approval", verdict),
        ]);
        assert_eq!(changes.ended[&id].error_kind.as_ref().map(SqlKey::as_str), Some("in_doubt"));
        assert!(changes.late_answers[&id].ok);
        assert_eq!(changes.verdicts.iter().map(|verdict| verdict.sequence).collect::<Vec<_>>(), [6]);
    }

    fn at(second: i64, mut record: Record) -> Record {
        record.envelope.time = jiff::Timestamp::from_second(second).unwrap();
        record
    }

    #[test]
    fn the_newest_progress_is_in_force_however_often_an_old_one_is_told() {
        let id = Uuid::from_u128(9);
        let action_id = id.to_string();
        let tool = |fraction| ToolProgress { action_id: action_id.clone(), fraction, ..Default::default() };
        let process = ProcessProgress { action_id: action_id.clone(), message: "half".into(), ..Default::default() };
        let changes = project_all([
            at(1, record(5, "kairo.tool.bob.progress", tool(Some(0.1)))),
            at(3, record(6, "kairo.process.bob.progress", process)),
            at(1, record(7, "kairo.tool.bob.progress", tool(Some(0.1)))),
            at(2, record(8, "kairo.tool.bob.progress", tool(Some(f64::NAN)))),
        ]);
        assert_eq!(changes.progressed[&id].message, "half".into());
        let odd = project_all([at(1, record(5, "kairo.tool.bob.progress", tool(Some(7.0))))]);
        assert_eq!(odd.progressed[&id].fraction, None);
    }

    #[test]
    fn an_action_is_asked_to_end_by_a_tool_call_or_by_whoever_stops_its_process() {
        let tool = Uuid::from_u128(1);
        let process = Uuid::from_u128(2);
        let mut call = sample_event("t", "call");
        if let Some(Event::Action(action)) = &mut call.event {
            let target_action_id = tool.to_string();
            let tool = "action.cancel".to_owned();
            let call = ToolCall { tool, target_action_id, ..Default::default() };
            action.action = Some(agent_action::Action::ToolCall(call));
        }
        let by = Uuid::parse_str(&call.event_id).ok();
        let stopped = ProcessCanceled { action_id: process.to_string(), ..Default::default() };
        let changes = project_all([
            decision(3, "bob", [call, sample_event("t", "call")]),
            record(4, "kairo.process.bob.canceled", stopped),
        ]);
        assert_eq!((changes.cancels[&tool].by, changes.cancels[&process].by), (by, None));
        assert_eq!(changes.cancels.len(), 2);
    }

    #[test]
    fn only_a_verdict_on_what_happened_resolves_an_action() {
        let approval = |sequence, verdict: &str| {
            let action_id = Uuid::from_u128(9).to_string();
            let body = AgentApproval { action_id, verdict: verdict.into(), user: "ann".into(), ..Default::default() };
            record(sequence, "kairo.agent.bob.approval", body)
        };
        let changes = project_all([approval(3, "approve"), approval(4, "happened"), approval(5, "did_not_happen")]);
        let verdicts: Vec<_> = changes.verdicts.iter().map(|verdict| verdict.sequence).collect();
        assert_eq!(verdicts, [4, 5]);
    }
}
