//! Tasks and hooks on their way through decisions.

use kairo_events::subjects::{EMAIL_RECEIVED, TASK_DUE, TASK_TRIGGERED};
use kairo_proto::v1::{EmailReceived, TaskDue, TaskTriggered};
use serde_json::{Value, json};

use super::{chains::kinds, *};

/// An agent that was told to do this, by a chain with this one step.
fn agent_after_event(event: &str, params: Value) -> (Agent, Record) {
    let mut agent = Agent::with(AgentProfile { planning: "chain".into(), ..Default::default() });
    agent.hears("m1", "go");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. go" } });
    let chain = json!([{ "event": event, "params": params }]);
    let summary = r#"{"title": "A task", "summary": "It is made."}"#;
    let answers = [says(&plan.to_string()), says(&chain.to_string()), says("Done."), says(summary)];
    let decided = agent.decides(&answers).unwrap();
    assert!(kinds(&decided).contains(&"task scheduled".to_owned()), "{:?}", decision(&decided));
    (agent, decided)
}

fn task_id(agent: &Agent) -> String {
    agent.mind.state.tasks.open.keys().next().unwrap().to_string()
}

fn due(agent: &mut Agent, task_id: &str, occurrence: u64) {
    let due = TaskDue { task_id: task_id.into(), occurrence, due_at: "1970-01-01T01:00:00Z".into() };
    agent.write(&TASK_DUE, None, due);
}

fn mail(agent: &mut Agent, sender: &str, subject: &str) {
    let mail = EmailReceived { sender: sender.into(), subject: subject.into(), ..Default::default() };
    agent.write(&EMAIL_RECEIVED, None, mail);
}

#[test]
fn a_task_is_done_when_its_time_comes_and_only_once() {
    let action = json!([{ "event": "user.notify", "params": { "message": "Buy groceries" } }]);
    let (mut agent, _) =
        agent_after_event("task.schedule", json!({ "type": "delay", "delay": "1 hour", "action": action }));
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let decided = agent.decides(&[]).unwrap();
    let expected = ["task fired", "chain started", "say Buy groceries", "step 0 done", "chain done"];
    assert_eq!(kinds(&decided), expected);
    assert!(agent.mind.state.tasks.open.is_empty() && agent.mind.state.turns.is_empty());
    due(&mut agent, &id, 1);
    assert!(agent.decides(&[]).is_none(), "it was dealt with");
}

#[test]
fn a_repeated_task_expects_its_next_time() {
    let action = json!([{ "event": "http.get", "params": { "url": "http://a" } }]);
    let (mut agent, _) =
        agent_after_event("task.schedule", json!({ "type": "repeat", "interval": "1 hour", "action": action }));
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let decided = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&decided), ["task fired", "chain started", "call http.get"]);
    due(&mut agent, &id, 1);
    assert!(agent.decides(&[]).is_none());
    due(&mut agent, &id, 2);
    assert_eq!(kinds(&agent.decides(&[]).unwrap())[0], "task fired", "also while the time before is not over");
    agent.learns(&decided, &actions(&decided)[0], "{}");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["chain done"]);
}

#[test]
fn what_a_task_could_not_do_is_told_to_its_user() {
    let action = json!([{ "event": "user.notify", "params": { "message": "{event.nothing}" } }]);
    let (mut agent, _) =
        agent_after_event("task.schedule", json!({ "type": "delay", "delay": "1 hour", "action": action }));
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let decided = kinds(&agent.decides(&[]).unwrap());
    assert_eq!((decided[2].as_str(), decided.last().unwrap().as_str()), ("step 0 failed", "chain failed"));
    assert!(decided.iter().any(|kind| kind.contains("could not be done")), "{decided:?}");
}

#[test]
fn a_hook_waits_for_what_its_condition_says() {
    let params = json!({
        "trigger": "post:email.received",
        "condition": "sender contains 'Sarah' AND (subject contains 'budget' OR body contains 'budget')",
        "action": [{ "event": "user.notify", "params": { "message": "{event.sender} wrote: {event.subject}" } }],
    });
    let (mut agent, _) = agent_after_event("task.register", params);
    mail(&mut agent, "bob@example.com", "budget");
    assert!(agent.decides(&[]).is_none());
    mail(&mut agent, "Sarah <sarah@example.com>", "The budget");
    let decided = agent.decides(&[]).unwrap();
    assert!(kinds(&decided).iter().any(|kind| kind.ends_with("wrote: The budget")), "{:?}", kinds(&decided));
    assert_eq!(agent.mind.state.tasks.open.len(), 1, "it waits for the next");
}

#[test]
fn what_happened_once_and_is_told_twice_triggers_a_hook_once() {
    for (trigger, body) in [
        ("post:email.received", Body::from(EmailReceived::default())),
        ("post:github.push", Body::from(TaskTriggered { trigger: "github.push".into(), ..Default::default() })),
    ] {
        let action = json!([{ "event": "user.notify", "params": { "message": "There it is" } }]);
        let (mut agent, _) = agent_after_event("task.register", json!({ "trigger": trigger, "action": action }));
        let route = if trigger.contains("email") { &EMAIL_RECEIVED } else { &TASK_TRIGGERED };
        let mut again = agent.write(route, None, body.clone());
        assert!(agent.decides(&[]).is_some());
        again.sequence = agent.log.len() as u64 + 1;
        agent.log.push(again.clone());
        agent.mind.push(again).unwrap();
        assert!(agent.decides(&[]).is_none(), "{trigger}");
        agent.write(route, None, body);
        assert!(agent.decides(&[]).is_some(), "something else of the same kind");
    }
}

#[test]
fn a_condition_that_nothing_can_read_is_judged_by_a_model() {
    let params = json!({
        "trigger": "post:erp.invoice",
        "condition": "if it looks urgent to you",
        "action": [{ "event": "user.notify", "params": { "message": "An invoice" } }],
    });
    let (mut agent, _) = agent_after_event("task.register", params);
    let triggered =
        || TaskTriggered { trigger: "erp.invoice".into(), data: r#"{"sum": 7}"#.into(), ..Default::default() };
    agent.write(&TASK_TRIGGERED, None, triggered());
    assert!(kinds(&agent.decides(&[says(r#"{"action": "skip"}"#)]).unwrap()).is_empty());
    agent.write(&TASK_TRIGGERED, None, triggered());
    let decided = agent.decides(&[says(r#"{"action": "continue"}"#)]).unwrap();
    assert!(kinds(&decided).contains(&"say An invoice".to_owned()));
    agent.write(&TASK_TRIGGERED, None, triggered());
    let nobody = [says("?"), says("?"), says("?")];
    assert_eq!(kinds(&agent.decides(&nobody).unwrap()).last().unwrap(), "failed unclear_condition");
}

#[test]
fn a_hook_is_not_triggered_by_what_it_does() {
    let params = json!({ "trigger": "post:http.get", "action": [{ "event": "http.get", "params": {} }] });
    let (mut agent, _) = agent_after_event("task.register", params);
    agent.hears("m2", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let first = agent.decides(&[says(&plan.to_string()), says(r#"["http.get"]"#)]).unwrap();
    agent.learns(&first, &actions(&first)[0], "{}");
    let summary = r#"{"title": "t", "summary": "s"}"#;
    let second = agent.decides(&[says("Got it."), says(summary)]).unwrap();
    assert!(kinds(&second).contains(&"task fired".to_owned()), "{:?}", kinds(&second));
    agent.learns(&second, &actions(&second)[0], "{}");
    let third = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&third), ["failed hook_loop", "chain done"]);
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn a_hook_before_a_step_may_change_or_stop_it() {
    let change = json!({ "event": "step.change", "params": { "params": { "url": "http://safe/{event.url}" } } });
    let stop = json!({ "event": "step.stop", "params": { "reason": "not that one" } });
    for (action, expected) in [(change, "call http.get"), (stop, "step 0 stopped")] {
        let params = json!({ "trigger": "pre:http.get", "condition": "url contains 'x'", "action": [action] });
        let (mut agent, _) = agent_after_event("task.register", params);
        agent.hears("m2", "get it");
        let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
        let chain = json!([{ "event": "http.get", "params": { "url": "x" } }]);
        let mut answers = vec![says(&plan.to_string()), says(&chain.to_string())];
        if expected.ends_with("stopped") {
            answers.extend([says("It was stopped."), says(r#"{"title": "t", "summary": "s"}"#)]);
        }
        let decided = agent.decides(&answers).unwrap();
        assert!(kinds(&decided).contains(&expected.to_owned()), "{:?}", kinds(&decided));
        assert!(kinds(&decided).contains(&"task fired".to_owned()));
        if expected.starts_with("call") {
            assert!(format!("{:?}", decision(&decided)).contains("http://safe/x"));
        }
    }
}

#[test]
fn tools_called_directly_pass_the_same_hooks() {
    let (mut agent, _) = agent_after_event(
        "task.register",
        json!({ "trigger": "pre:http.get", "action": [{ "event": "step.stop", "params": { "reason": "no net" } }] }),
    );
    let profile = AgentProfile { agent: "a".into(), ..Default::default() };
    agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile), ..Default::default() });
    agent.hears("m2", "get it");
    let decided = agent.decides(&[calls(&["http.get"]), says("I may not.")]).unwrap();
    let kinds = kinds(&decided);
    assert!(kinds.contains(&"step 0 stopped".to_owned()) && kinds.contains(&"say I may not.".to_owned()), "{kinds:?}");
}

#[test]
fn the_end_of_the_day_is_a_task_of_its_own() {
    let profile = |end: &str| AgentProfile {
        agent: "a".into(),
        day_ends_at: end.into(),
        time_zone: "Europe/Berlin".into(),
        ..Default::default()
    };
    let mut agent = Agent::with(profile("23:00"));
    agent.hears("m1", "We decided to hire Bob.");
    assert!(kinds(&agent.decides(&[says("Good.")]).unwrap()).contains(&"task scheduled".to_owned()));
    agent.hears("m2", "Yes.");
    assert_eq!(kinds(&agent.decides(&[says("Good.")]).unwrap()), ["say Good."], "it is scheduled once");
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let journal = r#"{"content": "Bob will be hired.", "keywords": ["bob"]}"#;
    let digest = r#"[{"kind": "person", "subject": "Bob", "content": "Will be hired."}]"#;
    let decided = agent.decides(&[says(journal), says(digest)]).unwrap();
    let made = kinds(&decided).into_iter().filter(|kind| kind == "memory").count();
    assert_eq!(made, 2, "{:?}", decision(&decided));
    let next = agent.mind.state.tasks.open.values().next().unwrap();
    assert_eq!(next.next_due().unwrap().1, 2);

    agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile("22:00")), ..Default::default() });
    agent.hears("m3", "Earlier.");
    let decided = kinds(&agent.decides(&[says("Good.")]).unwrap());
    assert!(decided.contains(&"task canceled".to_owned()) && decided.contains(&"task scheduled".to_owned()));
    agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile("")), ..Default::default() });
    agent.hears("m4", "Never.");
    agent.decides(&[says("Good.")]).unwrap();
    assert!(agent.mind.state.tasks.open.is_empty());
}

#[test]
fn what_a_task_makes_up_its_mind_to_do_is_done() {
    let action = json!(["agent.think"]);
    let (mut agent, _) =
        agent_after_event("task.schedule", json!({ "type": "delay", "delay": "1 hour", "action": action }));
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. look" } });
    let decided = agent.decides(&[says(&plan.to_string()), says(r#"["http.get"]"#)]).unwrap();
    let expected = ["task fired", "chain started", "step 0 done", "chain replaced", "chain started", "call http.get"];
    assert_eq!(kinds(&decided), expected);
    agent.learns(&decided, &actions(&decided)[0], "{}");
    let decided = kinds(&agent.decides(&[says("There it is."), says(r#"{"summary": "It was."}"#)]).unwrap());
    assert!(decided.contains(&"say There it is.".to_owned()), "{decided:?}");
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn a_hook_before_a_step_sees_what_was_completed() {
    let stop = json!({ "event": "step.stop", "params": { "reason": "not there" } });
    let params = json!({ "trigger": "pre:http.get", "condition": "url contains 'secret'", "action": [stop] });
    let (mut agent, _) = agent_after_event("task.register", params);
    agent.hears("m2", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let chain = json!([{ "event": "http.get", "params": { "decide": "choose the url" } }]);
    let decide = json!({ "action": "continue", "params": { "url": "http://secret" } });
    let mut answers = [plan, chain, decide].map(|answer| says(&answer.to_string())).to_vec();
    answers.extend([says("It was stopped."), says(r#"{"title": "t", "summary": "s"}"#)]);
    let decided = kinds(&agent.decides(&answers).unwrap());
    assert!(decided.contains(&"step 0 stopped".to_owned()), "{decided:?}");

    // What is left out is not done, and no hook has anything to say.
    agent.hears("m3", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let chain = json!([{ "event": "http.get", "params": { "url": "http://secret", "decide": "if urgent" } }]);
    let mut answers = [plan, chain, json!({ "action": "skip" })].map(|answer| says(&answer.to_string())).to_vec();
    answers.extend([says("Left out."), says(r#"{"title": "t", "summary": "s"}"#)]);
    let decided = kinds(&agent.decides(&answers).unwrap());
    assert!(!decided.contains(&"task fired".to_owned()), "{decided:?}");
}

#[test]
fn a_hook_is_not_triggered_by_what_ends_after_its_turn() {
    let params = json!({ "trigger": "post:http.get", "action": [["http.get", "agent.think"]] });
    let (mut agent, _) = agent_after_event("task.register", params);
    agent.hears("m2", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let first = agent.decides(&[says(&plan.to_string()), says(r#"["http.get"]"#)]).unwrap();
    agent.learns(&first, &actions(&first)[0], "{}");
    let summary = says(r#"{"title": "t", "summary": "s"}"#);
    // The hook's own thought is over before its call is.
    let second = agent.decides(&[says("Got it."), summary, says("Again.")]).unwrap();
    assert!(agent.mind.state.turns.is_empty(), "{:?}", kinds(&second));
    agent.learns(&second, &actions(&second)[0], "{}");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed hook_loop"]);
}

#[test]
fn a_hook_is_given_the_long_arguments_of_a_call() {
    let notify = json!({ "event": "user.notify", "params": { "message": "{event.url}" } });
    let params = json!({ "trigger": "post:http.get", "condition": "url = 'http://a'", "action": [notify] });
    let (mut agent, _) = agent_after_event("task.register", params);
    agent.hears("m2", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let chain = json!([{ "event": "http.get", "params": { "url": "http://a", "body": "x".repeat(9_000) } }]);
    let first = agent.decides(&[says(&plan.to_string()), says(&chain.to_string())]).unwrap();
    agent.learns(&first, &actions(&first)[0], "{}");
    let decided = kinds(&agent.decides(&[says("Got it."), says(r#"{"title": "t", "summary": "s"}"#)]).unwrap());
    assert!(decided.contains(&"say http://a".to_owned()), "{decided:?}");
}

#[test]
fn a_thread_that_no_model_can_write_down_is_kept_as_it_was_said_beside_the_others() {
    let mut agent = Agent::with(AgentProfile { day_ends_at: "23:00".into(), ..Default::default() });
    for thread_id in ["one", "two", "three"] {
        let message_id = thread_id.into();
        let user = "ann".into();
        let text = "Hello.".to_owned();
        let message = AgentMessage { message_id, user, text, thread_id: thread_id.into(), ..Default::default() };
        agent.write(&AGENT_MESSAGE, None, message);
        agent.decides(&[says("Good.")]).unwrap();
    }
    let id = task_id(&agent);
    due(&mut agent, &id, 1);
    let journal = || says(r#"{"content": "They said hello.", "keywords": ["hello"]}"#);
    let digest = says("[]");
    // Two at once: of the first two, one fails.
    let decided = kinds(&agent.decides(&[fails(false), journal(), journal(), digest]).unwrap());
    assert_eq!(decided.iter().filter(|kind| *kind == "memory").count(), 3, "{decided:?}");
    let ended = ["step 0 done", "step 1 done", "step 2 done", "step 3 done", "chain done"].map(str::to_owned);
    assert!(ended.iter().all(|kind| decided.contains(kind)), "{decided:?}");
    assert!(!agent.mind.state.threads.contains_key(""), "it has no thread of its own");
}

#[test]
fn an_answer_does_not_wait_for_a_summary_that_fails() {
    let (mut agent, _) = agent_after_event("task.register", json!({ "trigger": "post:a.b", "action": ["http.get"] }));
    agent.hears("m2", "get it");
    let plan = json!({ "event": "agent.chain", "params": { "plan": "1. get" } });
    let first = agent.decides(&[says(&plan.to_string()), says(r#"["http.get"]"#)]).unwrap();
    agent.learns(&first, &actions(&first)[0], "{}");
    let last = agent.decides(&[says("Got it."), fails(true)]).unwrap();
    assert_eq!(kinds(&last), ["step 1 done", "chain done", "say Got it."]);
}
