//! Inner state by way of an agent's tools.

use kairo_events::vocabulary;
use kairo_proto::v1::{ChainStepEnded, StateWritten};
use serde_json::{Value, json};

use super::{chains::kinds, *};

const PAGE: &str = "web:https://example.org/a";

fn keeper() -> Agent {
    Agent::with(AgentProfile { inner_state: true, ..Default::default() })
}

fn hears_of(agent: &mut Agent, user: &str, message_id: &str) {
    let message_id = message_id.to_owned();
    let user = user.to_owned();
    let text = "go on".to_owned();
    agent.write(&AGENT_MESSAGE, None, AgentMessage { message_id, user, text, ..Default::default() });
}

fn steps(decided: &Record) -> Vec<ChainStepEnded> {
    let of = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::ChainStepEnded(ended)) = &event.event else { return None };
        Some(ended.clone())
    };
    decision(decided).events.iter().filter_map(of).collect()
}

/// Returns the outcome of a call in a user's turn: its result, or the reason it failed.
fn comes_to(agent: &mut Agent, user: &str, tool: &str, arguments: Value) -> Result<Value, String> {
    let message = format!("m{}", agent.log.len());
    hears_of(agent, user, &message);
    let decided = agent.decides(&[asks_for(tool, arguments), says("done")]).unwrap();
    let ended = steps(&decided).remove(0);
    match ended.outcome.as_str() {
        "done" => Ok(serde_json::from_str(&ended.result).unwrap()),
        _ => Err(ended.reason),
    }
}

fn written(decided: &Record) -> StateWritten {
    let of = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::StateWritten(written)) = &event.event else { return None };
        Some(written.clone())
    };
    decision(decided).events.iter().find_map(of).unwrap()
}

#[test]
fn inner_state_is_written_read_searched_related_and_deleted_with_tools() {
    let mut agent = keeper();
    hears_of(&mut agent, "ann", "m1");
    let launch = json!({ "key": "launch", "content": "Moved to June.", "related_keys": ["team", "team", "launch"] });
    let decided = agent.decides(&[asks_for("state.write", launch), says("noted")]).unwrap();
    assert_eq!(
        kinds(&decided),
        ["created", "chain started", "state launch", "step 0 done", "step 1 done", "chain done", "say noted"]
    );
    let event = written(&decided);
    assert_eq!((event.user.as_str(), event.related_keys), ("ann", vec!["team".to_owned()]));
    assert_eq!(event.updated_at, agent.log[1].envelope.time.to_string(), "the time of what was decided on");
    assert_eq!(vocabulary::decision_reader(decision(&decided)), vocabulary::INNER_STATE);

    let ann = |agent: &mut Agent, tool: &str, arguments| comes_to(agent, "ann", tool, arguments);
    ann(&mut agent, "state.write", json!({ "key": "team", "content": "Sarah and 王小明" })).unwrap();
    let read = ann(&mut agent, "state.read", json!({ "key": "launch" })).unwrap();
    assert_eq!((&read["content"], &read["related_keys"]), (&json!("Moved to June."), &json!(["team"])));
    let found = ann(&mut agent, "state.search", json!({ "words": "小明" })).unwrap();
    assert_eq!((&found["found"][0]["key"], &found["total"]), (&json!("team"), &json!(1)));
    let related = ann(&mut agent, "state.related", json!({ "key": "team" })).unwrap();
    let first = &related["related"][0];
    assert_eq!((&first["key"], &first["relation"]), (&json!("launch"), &json!("names it")));
    ann(&mut agent, "state.delete", json!({ "key": "launch" })).unwrap();
    let gone = ann(&mut agent, "state.read", json!({ "key": "launch" })).unwrap_err();
    assert!(gone.contains("nothing under \"launch\""), "{gone}");
    agent.is_replayed();
}

#[test]
fn what_one_user_keeps_no_other_reads_finds_relates_or_deletes() {
    let mut agent = keeper();
    comes_to(&mut agent, "ann", "state.write", json!({ "key": "k", "content": "ann's", "related_keys": ["l"] }))
        .unwrap();
    assert!(comes_to(&mut agent, "bob", "state.read", json!({ "key": "k" })).is_err());
    let found = comes_to(&mut agent, "bob", "state.search", json!({ "words": "k ann" })).unwrap();
    assert_eq!(found, json!({ "found": [], "total": 0 }));
    let related = comes_to(&mut agent, "bob", "state.related", json!({ "key": "l" })).unwrap();
    assert_eq!(related["total"], json!(0));
    assert!(comes_to(&mut agent, "bob", "state.delete", json!({ "key": "k" })).is_err());
    comes_to(&mut agent, "bob", "state.write", json!({ "key": "k", "content": "bob's" })).unwrap();
    let read = comes_to(&mut agent, "ann", "state.read", json!({ "key": "k" })).unwrap();
    assert_eq!(read["content"], json!("ann's"));
    agent.is_replayed();
}

#[test]
fn agents_whose_profile_does_not_say_so_are_asked_as_before() {
    let offered = |profile: AgentProfile| {
        let mut agent = Agent::with(profile);
        agent.hears("m1", "hello");
        agent.decides(&[says("hi")]).unwrap();
        let names = agent.asked[0].tools.iter().map(|tool| tool.name.to_string());
        names.filter(|name| name.starts_with("state.")).collect::<Vec<_>>()
    };
    let named = |tools: &[&str], inner_state| AgentProfile {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        inner_state,
        ..Default::default()
    };
    for tools in [&[][..], &["*"], &["state.*"]] {
        assert!(offered(named(tools, false)).is_empty(), "{tools:?}");
    }
    let all = ["state.write", "state.read", "state.search", "state.related", "state.delete"];
    for tools in [&[][..], &["tools.now"], &["state.*"]] {
        assert_eq!(offered(named(tools, true)), all, "{tools:?}");
    }
    assert_eq!(offered(named(&["tools.now", "state.read"], true)), ["state.read"], "names narrow what there is");
    let mut plain = Agent::new();
    plain.hears("m1", "hello");
    let decided = plain.decides(&[asks_for("state.read", json!({ "key": "k" })), says("hi")]).unwrap();
    assert_eq!(kinds(&decided), ["created", "failed malformed_tool_call", "say hi"], "it is no tool of this agent");
    assert!(serde_json::to_value(&plain.mind.state).unwrap().get("inner").is_none());
}

#[test]
fn secrets_are_sealed_and_never_stand_in_the_state() {
    let mut agent = keeper();
    agent.limits.secret_key = Some([7; 32]);
    hears_of(&mut agent, "ann", "m1");
    let door = json!({ "key": "door", "content": "The password is hunter2-hunter2." });
    let decided = agent.decides(&[asks_for("state.write", door), says("noted")]).unwrap();
    let event = written(&decided);
    assert_eq!(event.content, "The password is [secret password].");
    let id = Uuid::parse_str(&event.version_id).unwrap();
    let opened = kairo_events::sealing::open_secret(&[7; 32], id, &event.secrets[0].name, &event.secrets[0].sealed);
    assert_eq!(opened.unwrap(), "hunter2-hunter2");
    assert!(!serde_json::to_string(&agent.mind.state.inner).unwrap().contains("hunter2"));
    let key = json!({ "key": "password is hunter2-hunter2", "content": "" });
    let refused = comes_to(&mut agent, "ann", "state.write", key).unwrap_err();
    assert!(refused.starts_with("key: expected"), "{refused}");
}

#[test]
fn content_from_outside_is_marked_and_marks_whoever_reads_it() {
    let mut agent = keeper();
    agent.hears("m1", "read it");
    let asked = agent.decides(&[calls(&["http.get"])]).unwrap();
    let action_id = actions(&asked)[0].clone();
    let result =
        ToolResult { action_id, ok: true, result: "{}".into(), outside: vec![PAGE.into()], ..Default::default() };
    agent.write(&TOOL_RESULT, Some(&asked.envelope.clone()), result);
    let note = json!({ "key": "page", "content": "run rm" });
    let decided = agent.decides(&[asks_for("state.write", note), says("noted")]).unwrap();
    assert_eq!(written(&decided).outside, [PAGE]);

    // In a thread that has seen nothing of it.
    let clean = AgentMessage { user: "ann".into(), text: "go".into(), thread_id: "u-1".into(), ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, AgentMessage { message_id: "m2".into(), ..clean.clone() });
    let decided = agent.decides(&[calls(&["process.spawn"])]).unwrap();
    assert_eq!(acts(&decided), ["process.spawn!"]);
    agent.learns(&decided, &actions(&decided)[0], "1");
    let read = agent.decides(&[asks_for("state.read", json!({ "key": "page" })), calls(&["process.spawn"])]).unwrap();
    assert_eq!(steps(&read)[0].outside, [PAGE]);
    assert!(kinds(&read).contains(&"consent process.spawn".to_owned()), "{:?}", kinds(&read));
    agent.is_replayed();
}

#[test]
fn several_writes_of_one_answer_see_each_other_and_the_turn_goes_on() {
    let mut agent = keeper();
    hears_of(&mut agent, "ann", "m1");
    let write = |key: &str, content: &str| CompletionToolCall {
        tool: "state.write".into(),
        arguments: json!({ "key": key, "content": content }).to_string(),
        ..Default::default()
    };
    let tool_calls = vec![write("tea", "green"), write("tea", "black")];
    let writes = Completion { tool_calls, ..Default::default() };
    let answers = [writes, asks_for("state.delete", json!({ "key": "tea" })), says("kept")];
    let decided = agent.decides(&answers).unwrap();
    let states: Vec<_> = kinds(&decided).into_iter().filter(|kind| kind.starts_with("state")).collect();
    assert_eq!(states, ["state tea", "state tea", "state without tea"]);
    assert!(agent.mind.state.inner.is_nothing());
    agent.is_replayed();
}
