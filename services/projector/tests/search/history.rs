//! The content to search: decisions as agents would have published them.

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{self, Service},
};
use kairo_proto::v1::{
    AgentAction, AgentDecision, AgentMessage, DecidedEvent, MemoryAppended, Say, SealedSecret, StateDeleted,
    StateWritten, Task, TaskScheduled, ThreadArchived, ThreadCreated, ThreadSummarized, UserMessage,
    agent_action::Action, decided_event::Event,
};
use uuid::Uuid;

/// A decision of these events; another `unique` makes it another one.
pub fn decision(agent: &str, unique: &str, events: Vec<(&str, Event)>) -> OutgoingEvent {
    let owner = Name::parse(agent).unwrap();
    let decided = |(at, (thread, event)): (usize, (&str, Event))| DecidedEvent {
        event_id: ids::from_parts("event", &[agent, unique, &at.to_string()]).to_string(),
        thread_id: thread.into(),
        correlation_id: Uuid::from_u128(7).to_string(),
        event: Some(event),
        ..Default::default()
    };
    let events = events.into_iter().enumerate().map(decided).collect();
    let id = ids::from_parts("test", &[agent, unique]);
    let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::now());
    OutgoingEvent::new(&subjects::AGENT_DECISION, &owner, envelope, AgentDecision { events, ..Default::default() })
}

pub fn thread(id: &str, user: &str, title: &str) -> Event {
    let thread_id = id.into();
    let kind = "topic".into();
    Event::ThreadCreated(ThreadCreated { thread_id, kind, user: user.into(), title: title.into() })
}

pub fn summary(id: &str, title: &str, summary: &str) -> Event {
    Event::ThreadSummarized(ThreadSummarized { thread_id: id.into(), title: title.into(), summary: summary.into() })
}

pub fn archived(id: &str) -> Event {
    Event::ThreadArchived(ThreadArchived { thread_id: id.into(), archived: true })
}

pub fn task(id: &str, user: &str, title: &str, says: &str) -> Event {
    let action = serde_json::json!([{ "event": "email.send", "params": { "body": says } }]).to_string();
    let task_id = ids::from_parts("task", &[id]).to_string();
    let kind = "hook".into();
    let trigger = "post:calendar.update".into();
    let task = Task { task_id, kind, title: title.into(), action, trigger, user: user.into(), ..Default::default() };
    Event::TaskScheduled(TaskScheduled { task: Some(task) })
}

pub fn memory(id: &str, user: &str, kind: &str, subject: &str, content: &str, day: &str) -> Event {
    Event::MemoryAppended(MemoryAppended {
        memory_id: ids::from_parts("memory", &[id]).to_string(),
        kind: kind.into(),
        subject: subject.into(),
        content: content.into(),
        day: day.into(),
        user: user.into(),
        secrets: vec![SealedSecret { name: "pin".into(), sealed: b"unmistakable".to_vec() }],
        ..Default::default()
    })
}

pub fn state(key: &str, user: &str, content: &str) -> Event {
    Event::StateWritten(StateWritten {
        key: key.into(),
        user: user.into(),
        content: content.into(),
        secrets: vec![SealedSecret { name: "pin".into(), sealed: b"unmistakable".to_vec() }],
        ..Default::default()
    })
}

/// A message of a user in a thread, and its delivery.
pub fn message_events(user: &str, agent: &str, thread: &str, text: &str) -> [OutgoingEvent; 2] {
    let from = Name::parse(user).unwrap();
    let to = Name::parse(agent).unwrap();
    let message_id = ids::from_parts("message", &[user, text]).to_string();
    let user = user.into();
    let thread_id = thread.into();
    let sent =
        UserMessage { message_id, user, agent: agent.into(), text: text.into(), thread_id, ..Default::default() };
    let delivered = AgentMessage {
        message_id: sent.message_id.clone(),
        user: sent.user.clone(),
        text: text.into(),
        thread_id: thread.into(),
        ..Default::default()
    };
    let id = ids::from_parts("test", &[&sent.user, text]);
    let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::now());
    let follows = envelope.follow_up(ids::derive(id, "delivered"), Service::Router, Origin::User, Timestamp::now());
    [
        OutgoingEvent::new(&subjects::USER_MESSAGE, &from, envelope, sent),
        OutgoingEvent::new(&subjects::AGENT_MESSAGE, &to, follows, delivered),
    ]
}

pub fn say(user: &str, text: &str) -> Event {
    let say = Say { text: text.into(), user: user.into(), r#final: true, ..Default::default() };
    Event::Action(AgentAction { action: Some(Action::Say(say)) })
}

/// A little of everything.
pub fn everything() -> Vec<OutgoingEvent> {
    let bob = vec![
        ("budget", thread("budget", "ann", "Planning")),
        (
            "budget",
            summary("budget", "Quarterly planning", "Sarah wants the budget <b>reviewed</b> & signed by Friday."),
        ),
        ("trip", thread("trip", "eve", "Trip to Vienna")),
        ("work", thread("work", "", "Background work on the budget")),
        ("", task("1", "ann", "Remind of the review", "Do not forget the quarterly review.")),
        ("", memory("1", "ann", "person", "Sarah Miller", "Leads marketing. [secret pin]", "2026-11-18")),
        ("", memory("2", "", "fact", "Office", "The office in Vienna closes at six.", "2026-11-19")),
        ("", memory("3", "eve", "journal", "", "讨论了预算会议", "2026-11-20")),
    ];
    let cook = vec![
        ("soup", thread("soup", "ann", "Pumpkin soup")),
        ("", memory("1", "ann", "preference", "Soup", "Write to ann@example.com about ginger.", "2026-10-01")),
    ];
    // A thread that nothing is told of but what was said in it.
    let printer = vec![
        ("printer", thread("printer", "ann", "")),
        ("printer", say("ann", "It works again: <b>打印机修好了</b>.")),
        // What is said to nobody, at work, is in no conversation.
        ("printer", say("", "Nobody hears of the toner.")),
    ];
    let mut all = vec![
        decision("bob", "1", bob),
        decision("cook", "1", cook),
        decision("bob", "2", vec![("other", archived("trip"))]),
    ];
    all.extend(message_events("ann", "bob", "printer", "Is the\n  wireless printer broken?"));
    all.push(decision("bob", "3", printer));
    let state = vec![
        ("", state("kitchen/paint", "ann", "厨房墙面刷成 turquoise")),
        ("", state("house", "", "closes at ten, turquoise door")),
        ("", state("gone", "ann", "obsolete")),
        ("", state("house", "cat", "one key, two users: opens at turquoise dawn")),
    ];
    all.push(decision("bob", "4", state));
    let deleted = StateDeleted { key: "gone".into(), user: "ann".into(), ..Default::default() };
    all.push(decision("bob", "5", vec![("", Event::StateDeleted(deleted))]));
    all.extend(message_events("eve", "cook", "breakfast", "Never mind the marmalade."));
    all
}

/// Returns the events of one `round` over many things; each round changes the texts of the one before.
pub fn many(agent: &str, round: usize) -> Vec<OutgoingEvent> {
    let step = |number: usize| {
        let id = format!("t-{number}");
        let events = vec![
            (id.as_str(), thread(&id, "ann", "Thread")),
            (id.as_str(), summary(&id, &format!("Thread {number}"), &format!("It is round {round} of many."))),
            ("", task(&format!("{agent}-{number}"), "ann", "Task", &format!("number {number}"))),
            ("", memory(&id, "ann", "fact", "Number", &format!("{number} in round {round}"), "2026-11-18")),
        ];
        decision(agent, &format!("{round}-{number}"), events)
    };
    (0..40).map(step).collect()
}
