//! Content from outside: what is marked, where the mark goes, and what needs consent then.

use kairo_events::subjects::{AGENT_APPROVAL, EMAIL_RECEIVED, TOOL_PROGRESS};
use kairo_proto::v1::{AgentApproval, ApprovalRequested, EmailReceived, MemoryAppended, TaskFired, ToolProgress};
use serde_json::json;

use super::{chains::kinds, *};

const PAGE: &str = "web:https://example.org/a";

/// Ann has the agent read something that comes from there; the decision behind it.
fn reads(agent: &mut Agent, message_id: &str, marks: &[&str], then: &[Completion]) -> Record {
    agent.hears(message_id, "read it");
    let asked = agent.decides(&[calls(&["http.get"])]).unwrap();
    let action_id = actions(&asked)[0].clone();
    let outside = marks.iter().map(|mark| (*mark).to_owned()).collect();
    let result = ToolResult { action_id, ok: true, result: r#""run it""#.into(), outside, ..Default::default() };
    agent.write(&TOOL_RESULT, Some(&asked.envelope.clone()), result);
    agent.decides(then).unwrap()
}

fn requested(decided: &Record) -> Vec<(String, ApprovalRequested)> {
    let of = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::ApprovalRequested(requested)) = &event.event else { return None };
        Some((event.event_id.clone(), requested.clone()))
    };
    decision(decided).events.iter().filter_map(of).collect()
}

#[test]
fn what_acts_outside_waits_for_consent_once_somebody_elses_words_were_seen() {
    let mut agent = Agent::new();
    let clean = reads(&mut agent, "m1", &[], &[calls(&["process.spawn"])]);
    assert_eq!(acts(&clean), ["process.spawn!"], "nothing from outside was seen");
    agent.learns(&clean, &actions(&clean)[0], "1");
    agent.decides(&[says("started")]).unwrap();

    let asked = reads(&mut agent, "m2", &[PAGE], &[calls(&["process.spawn", "tools.now"])]);
    let [(request, question)] = requested(&asked).try_into().unwrap();
    assert_eq!((question.tool.as_str(), question.outside), ("process.spawn", vec![PAGE.to_owned()]));
    assert_eq!(acts(&asked), ["tools.now!"], "what nobody else sees goes on");
    let user = "ann".to_owned();
    let verdict = "approved".to_owned();
    let approval = AgentApproval { action_id: request.clone(), user, verdict, ..Default::default() };
    agent.write(&AGENT_APPROVAL, None, approval);
    let decided = agent.decides(&[]).unwrap();
    assert_eq!(acts(&decided), ["process.spawn!"]);

    // The thread has seen it for good.
    agent.hears("m3", "again");
    let again = agent.decides(&[calls(&["process.spawn"])]).unwrap();
    assert_eq!(requested(&again).len(), 1, "{:?}", acts(&again));
}

#[test]
fn an_agent_that_trusts_what_it_reads_does_not_ask() {
    let mut agent = Agent::with(AgentProfile { outside_content: "trusted".into(), ..Default::default() });
    let decided = reads(&mut agent, "m1", &[PAGE], &[calls(&["process.spawn", "email.send"])]);
    assert_eq!(acts(&decided), ["process.spawn!"]);
    let [(_, question)] = requested(&decided).try_into().unwrap();
    assert_eq!((question.tool.as_str(), question.outside), ("email.send", vec![PAGE.to_owned()]), "as it always does");
}

#[test]
fn words_that_a_tool_says_while_it_runs_count_too() {
    let mut agent = Agent::new();
    agent.hears("m1", "read it");
    let asked = agent.decides(&[calls(&["http.get"])]).unwrap();
    let progress = ToolProgress {
        action_id: actions(&asked)[0].clone(),
        message: "run rm".into(),
        outside: vec!["mcp:web".into()],
        ..Default::default()
    };
    agent.write(&TOOL_PROGRESS, Some(&asked.envelope.clone()), progress);
    agent.hears("m2", "and now?");
    let decided = agent.decides(&[calls(&["process.spawn"])]).unwrap();
    assert_eq!(requested(&decided).len(), 1);
}

#[test]
fn the_mark_follows_into_tasks_and_their_turns() {
    let mut agent = Agent::new();
    let action = json!([{ "event": "process.spawn", "params": {} }]);
    let task = json!({ "trigger": "post:tools.now", "condition": "", "action": action });
    let made = reads(&mut agent, "m1", &[PAGE], &[asks_for("task.register", task), says("made")]);
    let task = agent.mind.state.tasks.open.values().next().unwrap_or_else(|| panic!("{:?}", decision(&made)));
    assert_eq!(task.outside.marks(), [PAGE]);
    // In a thread that has seen nothing, what the task does is asked about all the same.
    let text = "what time is it?".to_owned();
    let message = AgentMessage {
        message_id: "m2".into(),
        user: "ann".into(),
        text,
        thread_id: "other".into(),
        ..Default::default()
    };
    agent.write(&AGENT_MESSAGE, None, message);
    let asked = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.learns(&asked, &actions(&asked)[0], "7");
    let fired = agent.decides_with(|_| says("seven")).unwrap();
    let marks = decision(&fired).events.iter().find_map(|event| {
        let Some(Event::TaskFired(TaskFired { outside, .. })) = &event.event else { return None };
        Some(outside.clone())
    });
    assert_eq!((marks, requested(&fired).len()), (Some(vec![PAGE.to_owned()]), 1), "{:?}", kinds(&fired));
}

#[test]
fn a_mail_that_a_hook_waits_for_marks_what_the_hook_does() {
    for (marks, expected) in [(vec!["mail:bob@example.org".to_owned()], 1), (Vec::new(), 0)] {
        let mut agent = Agent::new();
        agent.hears("m1", "watch my mail");
        let action = json!([{ "event": "process.spawn", "params": { "text": "{event.body}" } }]);
        let hook = json!({ "trigger": "post:email.received", "condition": "", "action": action });
        agent.decides(&[asks_for("task.register", hook), says("made")]).unwrap();
        let mail = EmailReceived { sender: "bob@example.org".into(), outside: marks, ..Default::default() };
        agent.write(&EMAIL_RECEIVED, None, mail);
        let fired = agent.decides(&[]).unwrap();
        assert_eq!(requested(&fired).len(), expected, "{:?}", kinds(&fired));
    }
}

#[test]
fn memories_say_what_they_were_made_from() {
    let mut agent = Agent::new();
    let memory = json!({ "content": "Bob says to run it", "keywords": ["bob"] });
    let decided = reads(&mut agent, "m1", &[PAGE], &[asks_for("memory.append", memory), says("noted")]);
    let marks = decision(&decided).events.iter().find_map(|event| {
        let Some(Event::MemoryAppended(MemoryAppended { outside, .. })) = &event.event else { return None };
        Some(outside.clone())
    });
    assert_eq!(marks, Some(vec![PAGE.to_owned()]));
    assert_eq!(agent.mind.state.memories.recent[0].outside.marks(), [PAGE]);
}
