//! Orders and verdicts of users: messages about actions that are not words.

use kairo_events::subjects::{AGENT_APPROVAL, AGENT_CHOICE, AGENT_COMMAND};
use kairo_proto::v1::{AgentApproval, AgentChoice, AgentCommand, ToolError};
use serde_json::json;

use super::*;

impl Agent {
    pub(super) fn is_ordered(&mut self, command_id: &str, action: &str) -> Record {
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
            ..Default::default()
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

/// Returns the input that was decided on, and the cursor.
fn place(decided: &Record) -> (u64, u64) {
    let decision = decision(decided);
    (decision.decided_on(), decision.cursor)
}

#[test]
fn an_order_to_stop_overtakes_what_waits() {
    let (mut agent, decided, action) = in_flight();
    let first = agent.hears("m2", "and then?");
    agent.hears("m3", "and after that?");
    // It is being decided on when the order comes.
    assert_eq!(agent.next_input(), Some(first.clone().into()));
    let order = agent.is_ordered("c1", &action);
    let stop = agent.decides(&[]).unwrap();
    assert_eq!(
        (acts(&stop), place(&stop)),
        (vec!["action.cancel!".into()], (order.sequence, decision(&decided).cursor))
    );
    assert!(agent.is_what_the_log_says());
    let cancel = actions(&stop).remove(0);
    agent.learns(&stop, &cancel, r#"{"status": "canceled"}"#);
    let second = agent.decides(&[says("one")]).unwrap();
    assert_eq!(place(&second), (first.sequence, first.sequence));
    assert_eq!(acts(&agent.decides(&[says("two")]).unwrap()), ["two"]);
    assert!(agent.is_what_the_log_says() && agent.decides(&[]).is_none());
}

#[test]
fn an_order_that_overtook_is_not_obeyed_again_by_whoever_reads_on() {
    let (mut agent, _, action) = in_flight();
    agent.hears("m2", "and then?");
    agent.is_ordered("c1", &action);
    let snapshot = agent.mind.snapshot(LOG);
    let stop = agent.decides(&[]).unwrap();
    // A copy of it decides nothing.
    agent.write(&AGENT_DECISION, Some(&stop.envelope), decision(&stop).clone());
    let mut resumed = Log::from_snapshot(snapshot, LOG).unwrap();
    for sequence in resumed.missing_for(&stop) {
        resumed.supply_record(sequence, Some(agent.log[usize::try_from(sequence).unwrap() - 1].clone()));
    }
    resumed.push(stop).unwrap();
    resumed.push(agent.log.last().unwrap().clone()).unwrap();
    assert_eq!(resumed.state, agent.mind.snapshot(LOG).state);
    assert_eq!((acts(&agent.decides(&[says("so")]).unwrap()), agent.next_input()), (vec!["so".into()], None));
}

#[test]
fn an_order_waits_behind_another_one_of_its_user_and_behind_messages_where_it_does_not_stop_anything() {
    let (mut agent, _, action) = in_flight();
    let message = agent.hears("m2", "and then?");
    let command = |command: &str, id: &str, user: &str| AgentCommand {
        command_id: id.into(),
        user: user.into(),
        command: command.into(),
        action_id: action.clone(),
        ..Default::default()
    };
    agent.write(&AGENT_COMMAND, None, command("resume", "c1", "ann"));
    agent.write(&AGENT_COMMAND, None, command("cancel", "c2", "ann"));
    assert_eq!(agent.next_input().unwrap().record.sequence, message.sequence);
    let other = agent.write(&AGENT_COMMAND, None, command("cancel", "c1", "bob"));
    assert_eq!(place(&agent.decides(&[]).unwrap()).0, other.sequence);
    assert_eq!(place(&agent.decides(&[says("one")]).unwrap()).0, message.sequence);
}

#[test]
fn whoever_gives_orders_without_end_holds_nobody_up() {
    let (mut agent, _, action) = in_flight();
    let message = agent.hears("m2", "and then?");
    for number in 0..100 {
        let command = AgentCommand {
            command_id: number.to_string(),
            user: format!("user-{number}"),
            command: "cancel".into(),
            action_id: action.clone(),
            ..Default::default()
        };
        agent.write(&AGENT_COMMAND, None, command);
    }
    let mut before = 0;
    while place(&agent.decides_with(|_| says("one")).unwrap()).0 != message.sequence {
        before += 1;
    }
    assert_eq!(before, 16);
}

#[test]
fn an_order_overtakes_however_much_waits() {
    let (mut agent, _, action) = in_flight();
    agent.mind.limit_held_records(HELD);
    for number in 0..2 * HELD {
        agent.hears(&number.to_string(), "more");
    }
    let order = agent.is_ordered("c1", &action);
    assert_eq!(place(&agent.decides(&[]).unwrap()).0, order.sequence);
    assert!(agent.is_what_the_log_says());
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
        let told = agent.spoken_texts().concat();
        assert!(told.contains(says_so) && told.contains("I looked") && told.contains(&action), "{told}");
        assert_eq!(acts(&decided), ["thank you"]);
        agent.is_told("a2", &action, verdict);
        assert_eq!(agent.acts(), ["not_in_doubt?"], "once is enough");
    }
}

/// A late answer to what was in doubt.
fn answered_late(agent: &mut Agent, action: &str, error: Option<&str>) {
    let error = error.map(|kind| ToolError { kind: kind.into(), message: "no money".into() });
    let ok = error.is_none();
    let result = r#"{"receipt":7}"#.to_owned();
    let outside = vec!["web:https://bank.example".to_owned()];
    let result = ToolResult { action_id: action.into(), ok, result, error, outside, late: true, ..Default::default() };
    agent.write(&TOOL_RESULT, None, result);
}

#[test]
fn a_late_answer_is_a_fact_to_go_on_from() {
    for (error, says_so) in [(None, "it did happen"), (Some("failed"), "it failed")] {
        let (mut agent, action) = in_doubt();
        answered_late(&mut agent, &action, error);
        let decided = agent.decides(&[says("thank you")]).unwrap();
        let told = agent.spoken_texts().concat();
        assert!(told.contains(says_so) && told.contains("came late") && told.contains(&action), "{told}");
        assert!(told.contains(if error.is_some() { "no money" } else { "receipt" }), "{told}");
        assert_eq!(acts(&decided), ["thank you"]);
        answered_late(&mut agent, &action, error);
        assert!(agent.decides(&[]).is_none(), "once is enough");
        agent.is_told("a1", &action, "happened");
        assert_eq!(agent.acts(), ["not_in_doubt?"], "it is settled");
    }
}

#[test]
fn a_late_answer_says_otherwise_than_a_verdict_before() {
    let (mut agent, action) = in_doubt();
    agent.is_told("a1", &action, "did_not_happen");
    agent.decides(&[says("I do it again")]).unwrap();
    answered_late(&mut agent, &action, None);
    agent.decides(&[says("it has happened")]).unwrap();
    let told = agent.spoken_texts().concat();
    assert!(told.contains("whatever was found out about it before"), "{told}");
}

#[test]
fn a_late_answer_to_what_nobody_doubts_is_nothing_new() {
    let (mut agent, decided, action) = in_flight();
    answered_late(&mut agent, &action, None);
    assert!(agent.decides(&[]).is_none());
    agent.learns(&decided, &action, "{}");
    assert!(agent.decides(&[says("done")]).is_some());
}

#[test]
fn an_order_about_an_action_that_became_a_process_is_about_the_process() {
    let mut agent = Agent::new();
    agent.hears("m1", "do it");
    let decided = agent.decides(&[asks_for("process.spawn", json!({}))]).unwrap();
    let action = actions(&decided).remove(0);
    let process_id = ids::derive(Uuid::parse_str(&action).unwrap(), "process");
    let spawned = kairo_proto::v1::ProcessSpawned {
        process_id: process_id.to_string(),
        action_id: action.clone(),
        background: true,
        ..Default::default()
    };
    agent.write(&kairo_events::subjects::PROCESS_SPAWNED, Some(&decided.envelope), spawned);
    agent.learns(&decided, &action, "{}");
    agent.decides(&[says("started")]).unwrap();
    agent.is_ordered("c1", &action);
    assert_eq!(agent.acts(), ["process.cancel!"]);
}
