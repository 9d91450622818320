//! What users say about actions that is not words: orders and verdicts.

use kairo_core::subjects::{AGENT_APPROVAL, AGENT_CHOICE, AGENT_COMMAND};
use kairo_proto::v1::{AgentApproval, AgentChoice, AgentCommand, ToolError};
use serde_json::json;

use super::*;

impl Agent {
    fn is_ordered(&mut self, command_id: &str, action: &str) -> Record {
        let command = AgentCommand {
            command_id: command_id.into(),
            user: "ann".into(),
            command: "cancel".into(),
            action_id: action.into(),
            ..Default::default()
        };
        self.write(&AGENT_COMMAND, None, command)
    }

    fn is_told(&mut self, approval_id: &str, action: &str, verdict: &str) {
        let approval = AgentApproval {
            approval_id: approval_id.into(),
            user: "ann".into(),
            action_id: action.into(),
            verdict: verdict.into(),
            note: "I looked".into(),
        };
        self.write(&AGENT_APPROVAL, None, approval);
    }

    /// Decides without asking a model.
    fn acts(&mut self) -> Vec<String> {
        acts(&self.decides(&[]).unwrap())
    }
}

fn in_flight() -> (Agent, Record, String) {
    let mut agent = Agent::new();
    agent.hears("m1", "what time is it?");
    let decided = agent.decides(&[calls(&["tools.now"])]).unwrap();
    let action = actions(&decided).remove(0);
    (agent, decided, action)
}

fn in_doubt() -> (Agent, String) {
    let (mut agent, decided, action) = in_flight();
    let error = ToolError { kind: "in_doubt".into(), message: "who knows".into() };
    let result = ToolResult { action_id: action.clone(), error: Some(error), ..Default::default() };
    agent.write(&TOOL_RESULT, Some(&decided.envelope), result);
    agent.decides(&[says("I do not know")]).unwrap();
    (agent, action)
}

#[test]
fn an_order_to_stop_is_obeyed_without_asking_a_model() {
    let (mut agent, _, action) = in_flight();
    agent.is_ordered("c1", &action);
    let decided = agent.decides(&[]).unwrap();
    assert_eq!(acts(&decided), ["action.cancel!"]);
    let cancel = actions(&decided).remove(0);
    agent.learns(&decided, &cancel, r#"{"status": "canceled"}"#);
    assert!(agent.decides(&[]).is_none(), "whoever ordered it reads the result");
    assert_eq!(agent.mind.state.turns.len(), 1, "the turn that waits for the tool");
    assert!(agent.mind.state.in_flight.keys().all(|id| id.to_string() == action));
}

#[test]
fn the_same_order_again_is_none() {
    let (mut agent, _, action) = in_flight();
    agent.is_ordered("c1", &action);
    agent.is_ordered("c1", &action);
    assert_eq!(agent.acts(), ["action.cancel!"]);
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn what_cannot_be_done_is_said_and_over() {
    let (mut agent, _, action) = in_flight();
    agent.is_ordered("c1", &Uuid::nil().to_string());
    assert_eq!(agent.acts(), ["unknown_action?"]);
    agent.is_told("a1", &action, "happened");
    assert_eq!(agent.acts(), ["not_in_doubt?"]);
    agent.is_told("a2", &action, "perhaps");
    assert_eq!(agent.acts(), ["unknown_verdict?"]);
    let command = AgentCommand { command: "dance".into(), user: "ann".into(), ..Default::default() };
    agent.write(&AGENT_COMMAND, None, command);
    assert_eq!(agent.acts(), ["unknown_command?"]);
    agent.write(&AGENT_CHOICE, None, AgentChoice { user: "ann".into(), ..Default::default() });
    assert_eq!(agent.acts(), ["unknown_offer?"]);
    assert_eq!(agent.mind.state.turns.len(), 1, "the turn that waits for the tool");
}

#[test]
fn a_verdict_on_what_is_in_doubt_is_a_fact_to_go_on_from() {
    for (verdict, says_so) in [("happened", "it did happen"), ("did_not_happen", "it did not happen")] {
        let (mut agent, action) = in_doubt();
        agent.is_told("a1", &action, verdict);
        let decided = agent.decides(&[says("thank you")]).unwrap();
        let told = agent.told().concat();
        assert!(told.contains(says_so) && told.contains("I looked") && told.contains(&action), "{told}");
        assert_eq!(acts(&decided), ["thank you"]);
        agent.is_told("a2", &action, verdict);
        assert_eq!(agent.acts(), ["not_in_doubt?"], "once is enough");
    }
}

#[test]
fn an_order_about_an_action_that_became_a_process_is_about_the_process() {
    let mut agent = Agent::new();
    agent.hears("m1", "do it");
    let decided = agent.decides(&[asks_for("process.spawn", json!({}))]).unwrap();
    let action = actions(&decided).remove(0);
    let process_id = ids::derived(Uuid::parse_str(&action).unwrap(), "process");
    let spawned = kairo_proto::v1::ProcessSpawned {
        process_id: process_id.to_string(),
        action_id: action.clone(),
        background: true,
        ..Default::default()
    };
    agent.write(&kairo_core::subjects::PROCESS_SPAWNED, Some(&decided.envelope), spawned);
    agent.learns(&decided, &action, "{}");
    agent.decides(&[says("started")]).unwrap();
    agent.is_ordered("c1", &action);
    assert_eq!(agent.acts(), ["process.cancel!"]);
}
