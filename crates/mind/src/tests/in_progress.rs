//! The agent's knowledge of what it has in progress, and the notices when that ends.

use kairo_events::subjects::{
    PROCESS_CANCELED, PROCESS_EXITED, PROCESS_PROGRESS, PROCESS_SPAWNED, TOOL_INVOKE, TOOL_PROGRESS,
};
use kairo_proto::v1::{
    ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, ToolInvocation, ToolInvoke, ToolProgress,
};
use serde_json::{Value, json};

use super::*;

/// The one thing in progress, as the model was told it.
fn fact(agent: &Agent) -> Value {
    let told = agent.spoken_texts();
    let facts: Vec<&str> = told.last().unwrap().lines().collect();
    assert_eq!(facts[0], "In progress now, from the event log:");
    assert_eq!(facts.len(), 2, "{facts:?}");
    serde_json::from_str(facts[1]).unwrap()
}

fn process_of(action: &str) -> String {
    ids::derive(Uuid::parse_str(action).unwrap(), "process").to_string()
}

/// A decision that calls this tool, and the action.
fn begins(agent: &mut Agent, tool: &str) -> (Record, String) {
    agent.hears("m1", "do it");
    let decided = agent.decides(&[asks_for(tool, json!({ "program": "make" }))]).unwrap();
    let action = actions(&decided).remove(0);
    let invocation = ToolInvocation { action_id: action.clone(), ..Default::default() };
    let invoke = ToolInvoke { actions: vec![invocation], ..Default::default() };
    agent.write(&TOOL_INVOKE, Some(&decided.envelope), invoke);
    (decided, action)
}

fn spawned(agent: &mut Agent, decided: &Record, action: &str, background: bool) -> Record {
    let spawned = ProcessSpawned {
        process_id: process_of(action),
        action_id: action.into(),
        pid: 42,
        program: "/bin/make".into(),
        arguments: vec!["all".into()],
        background,
        ..Default::default()
    };
    agent.write(&PROCESS_SPAWNED, Some(&decided.envelope), spawned)
}

fn exited(agent: &mut Agent, decided: &Record, action: &str) {
    let exited = ProcessExited {
        process_id: process_of(action),
        action_id: action.into(),
        outcome: "exited".into(),
        code: Some(3),
        stderr_tail: "no rule".into(),
        ..Default::default()
    };
    agent.write(&PROCESS_EXITED, Some(&decided.envelope), exited);
}

/// An agent with a process in the background and nothing else to do.
fn in_background() -> (Agent, Record, String) {
    let mut agent = Agent::new();
    let (decided, action) = begins(&mut agent, "process.spawn");
    spawned(&mut agent, &decided, &action, true);
    agent.learns(&decided, &action, "{}");
    agent.decides(&[says("started")]).unwrap();
    (agent, decided, action)
}

#[test]
fn nothing_in_progress_is_not_mentioned() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    agent.decides(&[says("hi")]);
    assert_eq!(agent.spoken_texts(), Vec::<String>::new());
}

#[test]
fn a_tool_in_flight_is_known_with_its_progress() {
    let mut agent = Agent::new();
    let (decided, action) = begins(&mut agent, "http.get");
    let progress = ToolProgress {
        action_id: action.clone(),
        fraction: Some(0.256),
        message: "half way".into(),
        ..Default::default()
    };
    agent.write(&TOOL_PROGRESS, Some(&decided.envelope), progress);
    agent.hears("m2", "how far is it?");
    agent.decides(&[says("a quarter")]);
    let fact = fact(&agent);
    assert_eq!((&fact["action_id"], &fact["tool"]), (&json!(action), &json!("http.get")));
    assert_eq!((&fact["percent"], &fact["message"], &fact["begun"]), (&json!(25.6), &json!("half way"), &json!(true)));
    assert_eq!(fact["arguments"], json!({ "program": "make" }));
    assert_eq!(fact["running_for_s"], json!(3), "from the decision at 3 to the message at 6");
    agent.learns(&decided, &action, "{}");
    agent.decides(&[says("done")]);
    assert!(agent.spoken_texts().iter().all(|text| !text.contains("In progress")), "{:?}", agent.spoken_texts());
}

#[test]
fn a_process_is_known_from_its_start_to_its_end_whether_somebody_waits_for_it_or_not() {
    for tool in ["process.run", "process.spawn"] {
        let mut agent = Agent::new();
        let (decided, action) = begins(&mut agent, "process.spawn");
        let background = tool == "process.spawn";
        spawned(&mut agent, &decided, &action, background);
        let tail = "x".repeat(5_000) + "the end";
        let progress =
            ProcessProgress { process_id: process_of(&action), action_id: action.clone(), tail, ..Default::default() };
        agent.write(&PROCESS_PROGRESS, Some(&decided.envelope), progress);
        let canceled =
            ProcessCanceled { process_id: process_of(&action), action_id: action.clone(), ..Default::default() };
        if background {
            agent.learns(&decided, &action, "{}");
            agent.decides(&[says("started")]);
        }
        agent.write(&PROCESS_CANCELED, Some(&decided.envelope), canceled);
        agent.hears("m2", "well?");
        agent.decides(&[says("it is ending")]);
        let fact = fact(&agent);
        assert_eq!((&fact["process_id"], &fact["pid"]), (&json!(process_of(&action)), &json!(42)));
        assert_eq!(fact["cancel_requested"], json!(true));
        let tail = fact["tail"].as_str().unwrap();
        assert!(tail.ends_with("the end") && tail.len() <= 2_048, "{}", tail.len());
    }
}

#[test]
fn what_one_user_has_going_is_not_told_to_another() {
    let mut agent = Agent::new();
    begins(&mut agent, "http.get");
    let message =
        AgentMessage { message_id: "1".into(), user: "bob".into(), text: "hello".into(), ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    agent.decides(&[says("hi")]);
    assert_eq!(agent.spoken_texts(), Vec::<String>::new());
}

#[test]
fn the_end_of_a_process_in_the_background_is_told_to_the_user() {
    let (mut agent, decided, action) = in_background();
    exited(&mut agent, &decided, &action);
    let told = agent.decides(&[says("it failed")]).unwrap();
    assert!(agent.spoken_texts()[0].contains("exited with code 3"), "{:?}", agent.spoken_texts());
    assert!(agent.spoken_texts()[0].contains("no rule"));
    let event = decision(&told).events.last().unwrap();
    let Some(Event::Action(AgentAction { action: Some(Action::Say(say)) })) = &event.event else { panic!("{event:?}") };
    assert_eq!((say.user.as_str(), say.message_id.as_str(), say.r#final), ("ann", "", true));
    assert_eq!(event.correlation_id, decided.envelope.correlation_id.to_string(), "the chain goes on");
    assert_ne!(event.turn_id, "");
    assert!(agent.mind.state.turns.is_empty() && agent.mind.state.processes.running.is_empty());
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn the_turn_of_an_ended_process_may_call_tools_itself() {
    let (mut agent, decided, action) = in_background();
    exited(&mut agent, &decided, &action);
    let again = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.learns(&again, &actions(&again)[0], "{}");
    assert_eq!(acts(&agent.decides(&[says("it ended just now")]).unwrap()), ["it ended just now"]);
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn a_process_that_was_to_end_is_no_news() {
    let (mut agent, decided, action) = in_background();
    let canceled = ProcessCanceled { process_id: process_of(&action), ..Default::default() };
    agent.write(&PROCESS_CANCELED, Some(&decided.envelope), canceled);
    agent.hears("m1b", "stop it");
    let stops = agent.decides(&[asks_for("process.cancel", json!({ "process_id": process_of(&action) }))]).unwrap();
    exited(&mut agent, &decided, &action);
    assert!(agent.decides(&[]).is_none());
    agent.learns(&stops, &actions(&stops)[0], "{}");
    agent.decides(&[says("stopped")]).unwrap();
    assert!(
        agent.spoken_texts().iter().all(|text| !text.contains("earlier message")),
        "nobody spoke: {:?}",
        agent.spoken_texts()
    );
    agent.hears("m2", "and now?");
    agent.decides(&[says("it is over")]);
    assert!(agent.spoken_texts()[0].contains("is over"), "{:?}", agent.spoken_texts());
}

#[test]
fn a_call_about_a_process_or_an_action_says_where_to_look_for_it() {
    let (mut agent, decided, action) = in_background();
    let cursor = decision(&decided).cursor;
    let mut target = |call: Completion| {
        let number = agent.log.len().to_string();
        agent.hears(&number, "stop it");
        let stops = agent.decides(&[call]).unwrap();
        let event = decision(&stops).events.last().unwrap().clone();
        let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) = event.event else {
            panic!("{event:?}")
        };
        (call.target_action_id, call.target_after, stops)
    };
    let (of, after, stops) = target(asks_for("process.cancel", json!({ "process_id": process_of(&action) })));
    assert_eq!((of, after), (action.clone(), cursor));
    let (of, after, _) = target(asks_for("action.cancel", json!({ "action_id": actions(&stops)[0] })));
    assert_eq!((of, after), (actions(&stops)[0].clone(), decision(&stops).cursor), "in flight");
    let (of, after, _) = target(asks_for("action.cancel", json!({ "action_id": action })));
    assert_eq!((of, after), (action.clone(), cursor), "over");
    let (of, after, _) = target(asks_for("process.spawn", json!({ "program": "make" })));
    assert_eq!((of, after), (String::new(), cursor), "of those that run");
    for strange in [json!({ "process_id": Uuid::nil() }), json!({ "process_id": 7 }), json!({})] {
        let (of, after, _) = target(asks_for("process.cancel", strange));
        assert_eq!((of, after), (String::new(), 0));
    }
}
