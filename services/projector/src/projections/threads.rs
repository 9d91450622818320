//! Threads: begun by an event, as young as the last event in them, and what they are about by now. Messages are put
//! into them by what is decided on them.

use kairo_proto::{Decided, about, v1::ThreadCreated, words::ThreadStatus};
use kairo_read_model::stored::Key;

use super::{Fact, decided, turn};
use crate::changes::{Changes, Description, Placed, Thread, ThreadState, Touch};

pub fn project(fact: &Fact, changes: &mut Changes) {
    let Some(agent) = &fact.agent else { return };
    for (_, event, what) in decided(fact) {
        let what = what.about();
        if let Decided::Thread(what) = what {
            told(fact, agent, what, changes);
        }
        // A suggestion leaves open where the message belongs; another turn has a message of its own, or none.
        let settles = !matches!(what, Decided::Thread(about::Thread::Suggested(_))) && event.turn_id.is_empty();
        if let Some(thread) = Key::some(&event.thread_id).filter(|_| settles) {
            changes.placed.entry(turn(fact, event)).or_insert(Placed { sequence: fact.sequence, thread });
        }
    }
    // What a user says in it stands in another partition, which may be read before the thread is there; its delivery
    // follows, and is the agent's own.
    if fact.record.subject.starts_with("kairo.user.") {
        return;
    }
    // What a user says stands in a partition of its own, where the thread may not be there yet; it counts when it is
    // delivered.
    if *agent != fact.owner {
        return;
    }
    for thread in fact.events.iter().filter_map(|event| event.thread_id.as_deref().and_then(Key::some)) {
        changes.touched.insert((agent.clone(), thread), Touch { sequence: fact.sequence, at: fact.at });
    }
}

fn told(fact: &Fact, agent: &Key, what: about::Thread<'_>, changes: &mut Changes) {
    match what {
        about::Thread::Created(created) => {
            let Some(thread) = Key::some(&created.thread_id) else { return };
            changes.threads.entry((agent.clone(), thread)).or_insert_with(|| begun(fact, created));
        }
        about::Thread::Summarized(summarized) => {
            let description = Description {
                sequence: fact.sequence,
                title: summarized.title.as_str().into(),
                summary: summarized.summary.as_str().into(),
            };
            changes.described.insert((agent.clone(), summarized.thread_id.as_str().into()), description);
        }
        about::Thread::Archived(archived) => {
            let status = if archived.archived { ThreadStatus::Archived } else { ThreadStatus::Active };
            set(fact, agent, &archived.thread_id, status, changes);
        }
        // Whoever goes on with a thread takes it out again.
        about::Thread::Matched(matched) => set(fact, agent, &matched.thread_id, ThreadStatus::Active, changes),
        about::Thread::Compacted(compacted) => {
            changes.compacted.insert((agent.clone(), compacted.thread_id.as_str().into()), fact.sequence);
        }
        about::Thread::Completed(completed) => {
            set(fact, agent, &completed.thread_id, ThreadStatus::Completed, changes);
        }
        about::Thread::Suggested(_) => {}
    }
}

fn begun(fact: &Fact, created: &ThreadCreated) -> Thread {
    Thread {
        sequence: fact.sequence,
        user: created.user.as_str().into(),
        kind: created.kind.as_str().into(),
        title: created.title.as_str().into(),
        summary: "".into(),
        created_at: fact.at,
    }
}

/// When it was over, of which an earlier event of the batch tells, stays.
fn set(fact: &Fact, agent: &Key, thread: &str, status: ThreadStatus, changes: &mut Changes) {
    let key = (agent.clone(), thread.into());
    let before = changes.thread_states.remove(&key).and_then(|before| before.completed_at);
    let completed_at = if status == ThreadStatus::Completed { Some(fact.at) } else { before };
    changes.thread_states.insert(key, ThreadState { sequence: fact.sequence, status, completed_at });
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{
        DecidedEvent, ThreadArchived, ThreadCompacted, ThreadCompleted, ThreadMatched, ThreadSuggested,
        ThreadSummarized, decided_event::Event,
    };

    use super::super::testing::{decided, decided_as, decision, projected};
    use super::*;

    #[test]
    fn a_thread_begins_once_and_ages_with_its_events() {
        let changes = projected([
            decision(3, "bob", [decided("t", "thread")]),
            decision(4, "bob", [decided("t", "thread"), decided("t", "say")]),
            decision(5, "eve", [decided("t", "say")]),
        ]);
        assert_eq!(changes.threads.len(), 1);
        assert_eq!(changes.threads[&("bob".into(), "t".into())].sequence, 3);
        assert_eq!(changes.touched[&("bob".into(), "t".into())].sequence, 4);
        assert_eq!(changes.touched[&("eve".into(), "t".into())].sequence, 5);
    }

    fn summarized(title: &str) -> DecidedEvent {
        let body = ThreadSummarized { thread_id: "t".into(), title: title.into(), ..Default::default() };
        decided_as("t", title, Event::ThreadSummarized(body))
    }

    #[test]
    fn the_newest_summary_is_in_force_and_a_match_takes_a_thread_out_again() {
        let archived = |archived| {
            let body = ThreadArchived { thread_id: "t".into(), archived };
            decided_as("t", "archived", Event::ThreadArchived(body))
        };
        let matched = ThreadMatched { thread_id: "t".into(), ..Default::default() };
        let key = ("bob".into(), "t".into());
        let changes = projected([
            decision(3, "bob", [summarized("old"), archived(false)]),
            decision(4, "bob", [summarized("new"), archived(true)]),
        ]);
        let status = |changes: &Changes| changes.thread_states[&key].status.clone();
        assert_eq!((&changes.described[&key].title, status(&changes)), (&"new".into(), ThreadStatus::Archived));
        let matched = decided_as("t", "matched", Event::ThreadMatched(matched));
        assert_eq!(status(&projected([decision(4, "bob", [archived(true), matched])])), ThreadStatus::Active);
        let completed = Event::ThreadCompleted(ThreadCompleted { thread_id: "t".into() });
        let completed = decided_as("t", "completed", completed);
        assert_eq!(status(&projected([decision(4, "bob", [completed.clone()])])), ThreadStatus::Completed);
        let changes = projected([decision(4, "bob", [completed]), decision(5, "bob", [archived(true)])]);
        assert_eq!(status(&changes), ThreadStatus::Archived);
        assert!(changes.thread_states[&key].completed_at.is_some(), "when it was over is still known");
    }

    #[test]
    fn it_is_known_when_a_thread_was_last_summed_up() {
        let compacted = |thread: &str| {
            let body = ThreadCompacted { thread_id: thread.into(), ..Default::default() };
            decided_as(thread, "compacted", Event::ThreadCompacted(body))
        };
        let changes =
            projected([decision(3, "bob", [compacted("t"), compacted("u")]), decision(4, "bob", [compacted("t")])]);
        let at = |thread: &str| changes.compacted[&("bob".into(), thread.into())];
        assert_eq!((at("t"), at("u"), changes.thread_states.len()), (4, 3, 0));
    }

    #[test]
    fn a_message_is_in_the_thread_of_what_was_first_decided_on_it() {
        let suggested = decided_as("t", "offer", Event::ThreadSuggested(ThreadSuggested::default()));
        let later = |thread: &str| DecidedEvent { thread_id: thread.to_owned(), ..decided("t", "say") };
        let other = DecidedEvent { turn_id: "x".into(), ..later("u") };
        let changes = projected([decision(3, "bob", [suggested, other]), decision(4, "bob", [later("v"), later("w")])]);
        assert_eq!(changes.placed.values().map(|placed| placed.thread.as_str()).collect::<Vec<_>>(), ["v"]);
    }
}
