//! Tool calls: decided on, begun, ended.

use kairo_proto::{
    Body,
    v1::{DecidedEvent, ToolCall, ToolInvoke, ToolResult, agent_action, decided_event::Event},
};
use kairo_read_model::stored::{Json, Key};
use uuid::Uuid;

use super::Fact;
use crate::changes::{Action, Begun, Changes, Ended};

pub fn project(fact: &Fact, changes: &mut Changes) {
    match &fact.record.body {
        Body::AgentDecision(decision) => {
            for event in &decision.events {
                decide(fact, event, changes);
            }
        }
        Body::ToolInvoke(invoke) => begin(fact, invoke, changes),
        Body::ToolResult(result) => end(fact, result, changes),
        _ => {}
    }
}

fn decide(fact: &Fact, event: &DecidedEvent, changes: &mut Changes) {
    let Some(call) = tool_call(event) else { return };
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.actions.entry(action_id).or_insert_with(|| Action {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        thread_id: Key::some(&event.thread_id),
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id),
        tool: call.tool.as_str().into(),
        arguments: Json::nested(&call.arguments),
        decided_at: fact.at,
    });
}

fn tool_call(event: &DecidedEvent) -> Option<&ToolCall> {
    let Some(Event::Action(action)) = &event.event else { return None };
    match &action.action {
        Some(agent_action::Action::ToolCall(call)) => Some(call),
        Some(agent_action::Action::Say(_)) | None => None,
    }
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
    changes.ended.entry(action_id).or_insert_with(|| Ended {
        ended_at: fact.at,
        ok: result.ok,
        result: result.ok.then(|| Json::nested(&result.result)),
        error_kind: error.and_then(|error| Key::some(&error.kind)),
        error_message: error.map(|error| error.message.as_str().into()),
        duration_ms: i64::from(result.duration_ms),
    });
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{ToolError, ToolInvocation};

    use super::{
        super::testing::{decided, decision, projected, record},
        *,
    };

    fn result(sequence: u64, action: &str, ok: bool) -> kairo_core::record::Record {
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
}
