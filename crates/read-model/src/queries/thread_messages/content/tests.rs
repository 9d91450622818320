use kairo_proto::v1::{AgentAction, Ask, Say, Task, TaskScheduled, TaskStarted, ThreadCompacted, ToolCall};
use serde_json::json;

use super::*;

const TURN: Uuid = Uuid::from_u128(1);

fn decided(event: Event) -> TimedEvent {
    let at = Time("2026-01-01T00:00:00Z".parse().unwrap());
    let event_id = Uuid::from_u128(9).to_string();
    let correlation_id = TURN.to_string();
    TimedEvent { at, event: DecidedEvent { event_id, correlation_id, event: Some(event), ..Default::default() } }
}

fn act(action: Action) -> TimedEvent {
    decided(Event::Action(AgentAction { action: Some(action) }))
}

fn say(text: &str) -> TimedEvent {
    act(Action::Say(Say { text: text.into(), ..Default::default() }))
}

fn of(sequence: u64, position: u32, of: EntryOrigin) -> ThreadMessageEntry {
    ThreadMessageEntry { number: 7, sequence, position, origin: of }
}

#[test]
fn what_was_said_and_called_in_one_decision_is_one_message() {
    let call = ToolCall { tool: "tools.now".into(), arguments: r#"{"zone":"UTC"}"#.into(), ..Default::default() };
    let ask = Ask { tool: "team.ask".into(), arguments: "oops".into(), ..Default::default() };
    let events = [say("Let me see."), act(Action::ToolCall(call)), say("And ask."), act(Action::Ask(ask))];
    let decided = (1..).zip(events).map(|(at, event)| ((4, at), event));
    let thread = ThreadContent {
        events: decided.chain([((5, 0), say("of another decision"))]).collect(),
        ..ThreadContent::default()
    };
    let message = build_message(&of(4, 1, EntryOrigin::Decision), &thread);
    assert_eq!((message.sequence, message.log_sequence, message.position), (7, 4, 1));
    assert_eq!((message.role.as_str(), message.content.as_str()), ("assistant", "Let me see.\n\nAnd ask."));
    assert_eq!(message.correlation_id, TURN.to_string());
    let calls: Vec<_> =
        message.tool_calls.iter().map(|call| (call.tool.as_str(), call.arguments.as_ref().unwrap().value())).collect();
    assert_eq!(calls, [("tools.now", json!({ "zone": "UTC" })), ("team.ask", json!("oops"))]);
    assert_eq!(message.tool_calls[0].id, Uuid::from_u128(9).to_string());
}

#[test]
fn a_task_that_is_begun_is_what_its_user_said_and_a_summary_is_the_systems() {
    let id = Uuid::from_u128(3);
    let started = TaskStarted { task_id: id.to_string(), thread_id: "t".into(), before_work: false };
    let compacted = ThreadCompacted { summary: "It was about the budget.".into(), ..Default::default() };
    let events =
        [decided(Event::TaskStarted(started)), decided(Event::ThreadCompacted(compacted)), say("no part of it")];
    let text = |text: Option<&str>| {
        let task = TaskText { task_id: id, title: "Research".into(), text: text.map(str::to_owned) };
        HashMap::from([(id, task)])
    };
    let decided = (0..).zip(events).map(|(at, event)| ((4, at), event)).collect();
    let mut thread = ThreadContent { events: decided, tasks: text(Some("research it")), ..ThreadContent::default() };
    let told = |entry: ThreadMessageEntry, thread: &ThreadContent| {
        let message = build_message(&entry, thread);
        (message.role, message.content)
    };
    assert_eq!(told(of(4, 0, EntryOrigin::Decision), &thread), ("user".into(), "research it".into()));
    assert_eq!(told(of(4, 1, EntryOrigin::Decision), &thread), ("system".into(), "It was about the budget.".into()));
    thread.tasks = text(None);
    assert_eq!(told(of(4, 0, EntryOrigin::Decision), &thread).1, "Research");
}

#[test]
fn a_result_names_its_call_and_says_whether_it_went_well() {
    let end = |ok: bool, result: Option<Value>, error: Option<&str>| {
        let error_kind = error.map(str::to_owned);
        let error_message = error.map(|_| "too slow".to_owned());
        let ended_at = Time("2026-01-01T00:00:00Z".parse().unwrap());
        let action_id = Uuid::from_u128(5);
        let correlation_id = TURN;
        let end = CallEnd { action_id, correlation_id, ended_at, ok, result, error_kind, error_message };
        let thread = ThreadContent { ends: HashMap::from([(action_id, end)]), ..ThreadContent::default() };
        build_message(&of(6, 0, EntryOrigin::End(action_id)), &thread)
    };
    let done = end(true, Some(json!({ "n": 1 })), None);
    assert_eq!((done.role.as_str(), done.content.as_str(), done.ok), ("tool", r#"{"n":1}"#, Some(true)));
    assert_eq!(done.tool_call_id, Some(Uuid::from_u128(5).to_string()));
    assert_eq!(end(true, Some(json!("as it is")), None).content, "as it is");
    let failed = end(false, None, Some("timed_out"));
    assert_eq!((failed.content.as_str(), failed.ok), ("timed_out: too slow", Some(false)));
}

#[test]
fn a_users_words_stand_where_they_entered() {
    let id = Uuid::from_u128(2);
    let heard = InputMessage {
        event_id: id,
        sequence: 3,
        position: 0,
        ts: Time("2026-01-01T00:00:00Z".parse().unwrap()),
        correlation_id: TURN,
        role: "user".into(),
        text: "hello".into(),
        parts: Vec::new(),
    };
    let thread = ThreadContent { inputs: HashMap::from([(id, heard)]), ..ThreadContent::default() };
    let message = build_message(&of(8, 0, EntryOrigin::User(id)), &thread);
    assert_eq!((message.sequence, message.log_sequence, message.role.as_str()), (7, 3, "user"));
    assert_eq!((message.content.as_str(), message.ok, message.tool_call_id), ("hello", None, None));
}

#[test]
fn what_cannot_be_read_leaves_no_gap() {
    for (what, role) in
        [(EntryOrigin::User(TURN), "user"), (EntryOrigin::End(TURN), "tool"), (EntryOrigin::Decision, "assistant")]
    {
        let message = build_message(&of(4, 0, what), &ThreadContent::default());
        assert_eq!((message.sequence, message.role.as_str(), message.content.as_str()), (7, role, ""));
    }
}

#[test]
fn what_the_agent_itself_carries_out_is_a_call_and_its_end_and_a_task_ends_with_its_answer() {
    let step = |outcome: &str| ChainStepEnded {
        outcome: outcome.into(),
        params: r#"{"text":"Pay."}"#.into(),
        result: r#"{"task_id":"t"}"#.into(),
        reason: "no room".into(),
        ..Default::default()
    };
    let ended = |status: &str| {
        let result = "All paid.".to_owned();
        let reason = "no money".to_owned();
        decided(Event::TaskEnded(TaskEnded { status: status.into(), result, reason, ..Default::default() }))
    };
    let steps = [step("done"), step("failed")].map(Event::ChainStepEnded).map(decided);
    let events = steps.into_iter().chain([ended("completed"), ended("failed")]);
    let thread = ThreadContent {
        events: (0..).zip(events).map(|(at, event)| ((4, at), event)).collect(),
        ..ThreadContent::default()
    };
    let told = |position: u32, what: EntryOrigin| build_message(&of(4, position, what), &thread);
    let call = told(0, EntryOrigin::Step("task.queue".into()));
    assert_eq!((call.role.as_str(), call.tool_calls[0].tool.as_str()), ("assistant", "task.queue"));
    assert_eq!(call.tool_calls[0].arguments.as_ref().unwrap().value(), json!({ "text": "Pay." }));
    let end = told(0, EntryOrigin::StepEnd("task.queue".into()));
    assert_eq!((end.role.as_str(), end.content.as_str(), end.ok), ("tool", r#"{"task_id":"t"}"#, Some(true)));
    assert_eq!(end.tool_call_id.as_ref(), Some(&call.tool_calls[0].id));
    let failed = told(1, EntryOrigin::StepEnd("task.queue".into()));
    assert_eq!((failed.content.as_str(), failed.ok), ("failed: no room", Some(false)));
    let answers = [told(2, EntryOrigin::Decision), told(3, EntryOrigin::Decision)].map(|it| (it.role, it.content));
    assert_eq!(
        answers,
        [("assistant", "All paid."), ("system", "failed: no money")].map(|(a, b)| (a.into(), b.into()))
    );
}

#[test]
fn a_task_that_is_queued_along_with_words_is_a_call_of_that_message() {
    let task = Task { task_id: "t".into(), kind: "queued".into(), text: "Pay.".into(), ..Default::default() };
    let scheduled = || decided(Event::TaskScheduled(TaskScheduled { task: Some(task.clone()) }));
    let calls = |more: Option<TimedEvent>| {
        let events = [scheduled(), say("I will.")].into_iter().chain(more);
        let decided = (0..).zip(events).map(|(at, event)| ((4, at), event)).collect();
        build_message(&of(4, 1, EntryOrigin::Decision), &ThreadContent { events: decided, ..ThreadContent::default() })
            .tool_calls
    };
    assert_eq!(calls(None)[0].tool, "task.queue");
    let by_step = ChainStepEnded { result: r#"{"task_id":"t"}"#.into(), ..Default::default() };
    assert_eq!(calls(Some(decided(Event::ChainStepEnded(by_step)))), []);
}
