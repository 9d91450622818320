//! Chains as a run of an example shows them: their steps, and how each came out. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::StepState;
use serde_json::Value;
use uuid::Uuid;

/// A chain among the events of a scene.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SceneChain {
    pub chain_id: String,
    pub plan: String,
    /// plan, calls, task or hook.
    pub origin: String,
    pub steps: Vec<SceneStep>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SceneStep {
    pub group: u64,
    pub event: String,
    /// As the step was run; as it was written where it was not.
    pub params: Value,
    pub decide: String,
    /// done, failed, skipped, stopped; empty while it is none of these.
    pub outcome: String,
    pub result: Value,
    /// The reason why it was not done.
    pub reason: String,
    #[serde(skip)]
    action: Option<Uuid>,
    /// The event that tells its outcome, counted among the events it was read from.
    #[serde(skip)]
    end: Option<usize>,
}

/// All chains that began among these events, in order.
pub fn chains(events: &[EventJson]) -> Vec<SceneChain> {
    let mut chains = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event.type_name.as_str() {
            v1::ChainStarted::TYPE => chains.push(SceneChain::from_started(&event.payload)),
            v1::ChainStepEnded::TYPE => {
                if let Some(step) = step_by_index(&mut chains, &event.payload) {
                    step.outcome = text(&event.payload, "outcome");
                    step.reason = text(&event.payload, "reason");
                    step.result = nested(&event.payload, "result");
                    step.end = Some(at);
                }
            }
            v1::ChainEnded::TYPE => {
                let id = text(&event.payload, "chain_id");
                if let Some(chain) = chains.iter_mut().find(|chain| chain.chain_id == id && !id.is_empty()) {
                    chain.close(at, &event.payload);
                }
            }
            v1::ToolResult::TYPE => {
                if let Some(step) = step_by_action(&mut chains, &event.payload, "action_id") {
                    step.apply_result(at, &event.payload);
                }
            }
            v1::AgentAnswer::TYPE => {
                if let Some(step) = step_by_action(&mut chains, &event.payload, "request_id") {
                    step.apply_answer(at, &event.payload);
                }
            }
            v1::AgentAction::TYPE => {
                if let Some(step) = step_by_index(&mut chains, &event.payload) {
                    step.action = Some(event.event_id);
                    // What another agent is asked for has its own form: the step keeps what it was written with.
                    if let Some(given) = event.payload.get("args").filter(|_| is_tool_call(event)) {
                        step.params = given.clone();
                    }
                }
            }
            _ => {}
        }
    }
    chains
}

fn is_tool_call(event: &EventJson) -> bool {
    event.payload.get("type").and_then(Value::as_str) == Some("tool_call")
}

impl SceneChain {
    fn from_started(payload: &Value) -> Self {
        let step = |step: &Value| SceneStep {
            group: step.get("group").and_then(Value::as_u64).unwrap_or_default(),
            event: text(step, "event"),
            params: nested(step, "params"),
            decide: text(step, "decide"),
            outcome: String::new(),
            result: Value::Null,
            reason: String::new(),
            action: None,
            end: None,
        };
        Self {
            chain_id: text(payload, "chain_id"),
            plan: text(payload, "plan"),
            origin: text(payload, "origin"),
            steps: payload.get("steps").and_then(Value::as_array).into_iter().flatten().map(step).collect(),
        }
    }

    /// Its steps, those that run at once together.
    pub fn groups(&self) -> Vec<&[SceneStep]> {
        self.steps.chunk_by(|one, next| one.group == next.group).collect()
    }

    /// Ends with the chain the steps that have no outcome of their own. In a chain that was canceled they have its reason.
    fn close(&mut self, at: usize, payload: &Value) {
        let outcome = text(payload, "outcome");
        for step in self.steps.iter_mut().filter(|step| step.end.is_none()) {
            step.end = Some(at);
            if step.outcome.is_empty() && outcome != StepState::Done.as_str() {
                step.outcome.clone_from(&outcome);
                step.reason = text(payload, "reason");
            }
        }
    }
}

impl SceneStep {
    fn apply_result(&mut self, at: usize, payload: &Value) {
        let ok = payload.get("ok").and_then(Value::as_bool).unwrap_or_default();
        self.outcome = if ok { StepState::Done } else { StepState::Failed }.text();
        self.result = payload.get("result").cloned().unwrap_or_default();
        self.reason = if ok { String::new() } else { text(payload, "text") };
        self.end = Some(at);
    }

    /// Takes what another agent answered to the request of this step.
    fn apply_answer(&mut self, at: usize, payload: &Value) {
        self.reason = text(payload, "reason");
        self.outcome = if self.reason.is_empty() { StepState::Done } else { StepState::Failed }.text();
        self.result = nested(payload, "result");
        self.end = Some(at);
    }
}

/// The last event that tells the outcome of one of these steps; `None` while one has none.
pub fn group_end(group: &[SceneStep]) -> Option<usize> {
    group.iter().map(|step| step.end).try_fold(0, |last, end| end.map(|end| last.max(end)))
}

/// The step whose action an event names in a field.
fn step_by_action<'c>(chains: &'c mut [SceneChain], payload: &Value, field: &str) -> Option<&'c mut SceneStep> {
    let action = Uuid::parse_str(payload.get(field)?.as_str()?).ok()?;
    chains.iter_mut().flat_map(|chain| &mut chain.steps).find(|step| step.action == Some(action))
}

/// The step that an event names by chain and position.
fn step_by_index<'c>(chains: &'c mut [SceneChain], payload: &Value) -> Option<&'c mut SceneStep> {
    let id = text(payload, "chain_id");
    // The first is not written: in proto3's JSON, 0 is what is left out.
    let at = payload.get("step").map_or(Some(0), Value::as_u64).and_then(|at| usize::try_from(at).ok())?;
    chains.iter_mut().find(|chain| chain.chain_id == id && !id.is_empty())?.steps.get_mut(at)
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// JSON kept as text, as JSON.
fn nested(value: &Value, field: &str) -> Value {
    let kept = value.get(field);
    let read = kept.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    read.or_else(|| kept.cloned()).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub fn event(id: u128, type_name: &str, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": Uuid::from_u128(id), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
            "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
            "subject": "kairo.agent.a.decision", "correlation_id": Uuid::nil(), "causation_id": null,
            "thread_id": null,
        }))
        .unwrap()
    }

    /// A chain of a clock and, at once, two looks, of which one fails; then a thought.
    pub fn events() -> Vec<EventJson> {
        let step = |group: u32, event: &str| json!({"group": group, "event": event, "params": "{}", "decide": ""});
        let steps = [step(0, "tools.now"), step(1, "calendar.check"), step(1, "task.list"), step(2, "agent.think")];
        let call = |step: u32| json!({"type": "tool_call", "args": {"n": step}, "chain_id": "c", "step": step});
        let result = |id: u128, ok: bool| json!({"action_id": Uuid::from_u128(id), "ok": ok, "result": {"total": 3}, "text": "failed: no"});
        let done =
            json!({"chain_id": "c", "step": 3, "outcome": "done", "result": "{\"analysis\":\"x\"}", "reason": ""});
        vec![
            event(
                1,
                v1::ChainStarted::TYPE,
                json!({"chain_id": "c", "plan": "1. Look", "origin": "plan", "steps": steps}),
            ),
            event(2, v1::AgentAction::TYPE, call(0)),
            event(3, v1::ToolResult::TYPE, result(2, true)),
            event(4, v1::AgentAction::TYPE, call(1)),
            event(5, v1::AgentAction::TYPE, call(2)),
            event(6, v1::ToolResult::TYPE, result(5, false)),
            event(7, v1::ToolResult::TYPE, result(4, true)),
            event(8, v1::ToolResult::TYPE, result(99, true)),
            event(9, v1::ChainStepEnded::TYPE, done),
        ]
    }

    #[test]
    fn what_is_left_out_is_the_first_step() {
        let mut events = events();
        events.truncate(1);
        events.push(event(
            2,
            v1::ChainStepEnded::TYPE,
            json!({"chain_id": "c", "outcome": "skipped", "reason": "not needed"}),
        ));
        let chains = chains(&events);
        assert_eq!(
            (chains[0].steps[0].outcome.as_str(), chains[0].steps[0].reason.as_str()),
            ("skipped", "not needed")
        );
    }

    #[test]
    fn each_step_has_its_own_result() {
        let chains = chains(&events());
        assert_eq!(chains.len(), 1);
        let outcomes: Vec<_> = chains[0].steps.iter().map(|step| step.outcome.as_str()).collect();
        assert_eq!(outcomes, ["done", "done", "failed", "done"]);
        assert_eq!(chains[0].steps[1].params, json!({"n": 1}));
        assert_eq!(
            (&chains[0].steps[2].reason, &chains[0].steps[2].result["total"]),
            (&"failed: no".into(), &json!(3))
        );
        assert_eq!(chains[0].steps[3].result["analysis"], "x");
        let sizes: Vec<_> = chains[0].groups().iter().map(|group| group.len()).collect();
        assert_eq!(sizes, [1, 2, 1]);
    }
}
