//! Tool calls: decided on, begun, on their way, asked to end, ended, and resolved when their end was in doubt.

use std::collections::btree_map::Entry;

use kairo_proto::words;
use kairo_proto::{
    About,
    about::{Agent, Process, Tool},
    v1::{AgentAnswer, AgentApproval, Ask, DecidedEvent, ToolInvoke, ToolResult},
};
use kairo_read_model::stored::{Json, Key};
use serde_json::json;
use uuid::Uuid;

use super::{Fact, entered_by, progress};
use crate::changes::{Action, Begun, Cancel, Changes, Ended, Progress, Verdict};

/// The tools that end what they are called on.
const CANCELING: [&str; 2] = ["action.cancel", "process.cancel"];

pub fn project(fact: &Fact, changes: &mut Changes) {
    match fact.record.body.about() {
        About::Decision(decision) => {
            for event in &decision.events {
                decide(fact, event, changes);
            }
        }
        About::Tool(Tool::Invoke(invoke)) => begin(fact, invoke, changes),
        About::Tool(Tool::Result(result)) => end(fact, result, changes),
        About::Tool(Tool::Progress(told)) => {
            advance(&told.action_id, progress(fact.at, told.fraction, &told.message), changes)
        }
        About::Process(Process::Progress(told)) => {
            advance(&told.action_id, progress(fact.at, told.fraction, &told.message), changes);
        }
        About::Process(Process::Canceled(canceled)) => {
            cancel(&canceled.action_id, fact, Uuid::parse_str(&canceled.by_action_id).ok(), changes);
        }
        About::Agent(Agent::Approval(approval)) => resolve(fact, approval, changes),
        About::Agent(Agent::Answer(answer)) => answered(fact, answer, changes),
        About::Agent(Agent::Request(_) | Agent::Imported(_) | Agent::Forgotten(_)) => {}
        About::Agent(Agent::Defined(_) | Agent::Message(_) | Agent::Choice(_) | Agent::Command(_)) => {}
        // The decision that gives it says whose end it wants.
        About::Tool(Tool::Order(_)) => {}
        About::Process(Process::Spawned(_) | Process::Reply(_) | Process::Exited(_)) => {}
        About::User(_) | About::Decided(_) | About::Outside(_) | About::System(_) | About::Live(_) => {}
    }
}

fn decide(fact: &Fact, event: &DecidedEvent, changes: &mut Changes) {
    if let Some(ask) = event.ask() {
        return asked(fact, event, ask, changes);
    }
    let Some(call) = event.tool_call() else { return };
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    if CANCELING.contains(&call.tool.as_str()) {
        cancel(&call.target_action_id, fact, Some(action_id), changes);
    }
    changes.actions.entry(action_id).or_insert_with(|| action(fact, event, &call.tool, &call.arguments));
}

fn action(fact: &Fact, event: &DecidedEvent, tool: &str, arguments: &str) -> Action {
    Action {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        thread_id: Key::some(&event.thread_id),
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id),
        tool: tool.into(),
        arguments: Json::nested(arguments),
        decided_at: fact.at,
    }
}

/// Begins an action of another agent as soon as it is requested, or notes the request to cancel it.
fn asked(fact: &Fact, event: &DecidedEvent, ask: &Ask, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    match ask.kind_word() {
        words::RequestKind::Work | words::RequestKind::Call | words::RequestKind::Think => {
            changes.actions.entry(action_id).or_insert_with(|| action(fact, event, &ask.tool, &ask.arguments));
            let (runner, executor) = (fact.owner.clone(), ask.agent.as_str().into());
            let begun = || Begun { invoked_at: fact.at, runner, executor };
            changes.begun.entry(action_id).or_insert_with(begun);
        }
        words::RequestKind::Cancel => cancel(&ask.request_id, fact, Some(action_id), changes),
        words::RequestKind::Pause | words::RequestKind::Resume | words::RequestKind::Unknown(_) => {}
    }
}

/// Another agent's answer is the end of what it was asked for.
fn answered(fact: &Fact, answer: &AgentAnswer, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(&answer.request_id) else { return };
    let ok = answer.status_word() == words::TaskStatus::Completed;
    let is_canceled = answer.status_word() == words::TaskStatus::Canceled;
    let kind = if is_canceled { words::ToolErrorKind::Canceled } else { words::ToolErrorKind::Failed }.known_word();
    let said = answer.error.as_ref().map(|error| (error.kind.as_str(), error.message.as_str()));
    let (kind, message) = said.unwrap_or((kind, answer.reason.as_str()));
    // Of a call it is what the tool said.
    let result = || match answer.kind_word() {
        words::RequestKind::Call => Json::nested(&answer.result),
        _ => Json::of(&json!({ "agent": answer.from, "result": answer.result })),
    };
    changes.ended.entry(action_id).or_insert_with(|| Ended {
        sequence: fact.sequence,
        ended_at: fact.at,
        ok,
        result: ok.then(result),
        error_kind: (!ok).then(|| kind.into()),
        error_message: (!ok).then(|| message.into()),
        duration_ms: 0,
    });
}

fn begin(fact: &Fact, invoke: &ToolInvoke, changes: &mut Changes) {
    for action in &invoke.actions {
        let Ok(action_id) = Uuid::parse_str(&action.action_id) else { continue };
        changes.begun.entry(action_id).or_insert_with(|| Begun {
            invoked_at: fact.at,
            runner: invoke.runner.as_str().into(),
            executor: action.executor.as_str().into(),
        });
    }
}

fn end(fact: &Fact, result: &ToolResult, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(&result.action_id) else { return };
    let error = result.error.as_ref().filter(|_| !result.ok);
    let ends = if result.late { &mut changes.late_answers } else { &mut changes.ended };
    ends.entry(action_id).or_insert_with(|| Ended {
        sequence: fact.sequence,
        ended_at: fact.at,
        ok: result.ok,
        result: result.ok.then(|| Json::nested(&result.result)),
        error_kind: error.and_then(|error| Key::some(&error.kind)),
        error_message: error.map(|error| error.message.as_str().into()),
        duration_ms: i64::from(result.duration_ms),
    });
}

fn advance(action: &str, progress: Progress, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(action) else { return };
    match changes.progressed.entry(action_id) {
        Entry::Occupied(there) if progress.is_older_than(there.get()) => {}
        Entry::Occupied(mut there) => _ = there.insert(progress),
        Entry::Vacant(place) => _ = place.insert(progress),
    }
}

fn cancel(action: &str, fact: &Fact, by: Option<Uuid>, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(action) else { return };
    changes.cancels.entry(action_id).or_insert(Cancel { at: fact.at, by });
}

fn resolve(fact: &Fact, approval: &AgentApproval, changes: &mut Changes) {
    let Ok(action_id) = Uuid::parse_str(&approval.action_id) else { return };
    // It is settled: a verdict from before a late answer counts, one from after does not.
    if changes.late_answers.contains_key(&action_id) {
        return;
    }
    // What a human found out about one in doubt.
    if matches!(approval.verdict_word(), words::Verdict::Happened | words::Verdict::DidNotHappen) {
        changes.verdicts.push(Verdict {
            sequence: fact.sequence,
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
        super::testing::{decided, decision, projected, record},
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
        let call = decided("t", "call");
        let id = call.event_id.clone();
        let invocation = ToolInvocation { action_id: id.clone(), executor: "tool-runner".into(), ..Default::default() };
        let invoke = ToolInvoke { runner: "r-1".into(), actions: vec![invocation], ..Default::default() };
        let changes = projected([
            decision(3, "bob", [call]),
            record(4, "kairo.tool.bob.invoke", invoke),
            result(5, &id, true),
            result(6, &id, false),
        ]);
        let id = Uuid::parse_str(&id).unwrap();
        assert_eq!(changes.actions[&id].tool.as_str(), "tools.now");
        assert_eq!(changes.begun[&id].runner.as_str(), "r-1");
        let ended = &changes.ended[&id];
        assert_eq!((ended.ok, ended.result.as_ref().map(Json::as_str)), (true, Some("{\"n\":1}")));
    }

    #[test]
    fn a_failure_says_how_and_has_no_result() {
        let id = Uuid::from_u128(9);
        let changes = projected([result(5, &id.to_string(), false), result(6, "not an id", true)]);
        assert_eq!(changes.ended.len(), 1);
        let ended = &changes.ended[&id];
        assert_eq!((ended.error_kind.as_ref().map(Key::as_str), &ended.result), (Some("in_doubt"), &None));
    }

    #[test]
    fn a_late_answer_stands_beside_the_end_and_settles_it_for_verdicts_behind_it() {
        let id = Uuid::from_u128(9);
        let late =
            ToolResult { action_id: id.to_string(), ok: true, late: true, result: "7".into(), ..Default::default() };
        let verdict = AgentApproval { action_id: id.to_string(), verdict: "happened".into(), ..Default::default() };
        let changes = projected([
            result(5, &id.to_string(), false),
            record(6, "kairo.agent.bob.approval", verdict.clone()),
            record(7, "kairo.tool.bob.result", late),
            record(8, "kairo.agent.bob.approval", verdict),
        ]);
        assert_eq!(changes.ended[&id].error_kind.as_ref().map(Key::as_str), Some("in_doubt"));
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
        let changes = projected([
            at(1, record(5, "kairo.tool.bob.progress", tool(Some(0.1)))),
            at(3, record(6, "kairo.process.bob.progress", process)),
            at(1, record(7, "kairo.tool.bob.progress", tool(Some(0.1)))),
            at(2, record(8, "kairo.tool.bob.progress", tool(Some(f64::NAN)))),
        ]);
        assert_eq!(changes.progressed[&id].message, "half".into());
        let odd = projected([at(1, record(5, "kairo.tool.bob.progress", tool(Some(7.0))))]);
        assert_eq!(odd.progressed[&id].fraction, None);
    }

    #[test]
    fn an_action_is_asked_to_end_by_a_tool_call_or_by_whoever_stops_its_process() {
        let (tool, process) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut call = decided("t", "call");
        if let Some(Event::Action(action)) = &mut call.event {
            let target_action_id = tool.to_string();
            let tool = "action.cancel".to_owned();
            let call = ToolCall { tool, target_action_id, ..Default::default() };
            action.action = Some(agent_action::Action::ToolCall(call));
        }
        let by = Uuid::parse_str(&call.event_id).ok();
        let stopped = ProcessCanceled { action_id: process.to_string(), ..Default::default() };
        let changes = projected([
            decision(3, "bob", [call, decided("t", "call")]),
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
        let changes = projected([approval(3, "approve"), approval(4, "happened"), approval(5, "did_not_happen")]);
        let verdicts: Vec<_> = changes.verdicts.iter().map(|verdict| verdict.sequence).collect();
        assert_eq!(verdicts, [4, 5]);
    }
}
