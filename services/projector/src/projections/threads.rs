//! Threads: begun by an event, as young as the last event in them, and what they are about by now. Messages are put
//! into them by what is decided on them.

use kairo_proto::{Decided, about, v1::ThreadCreated, words::ThreadStatus};
use kairo_read_model::sql_values::SqlKey;

use super::{ProjectedRecord, decided_events, turn_of};
use crate::changes::{TableChanges, ThreadCreation, ThreadDescription, ThreadPlacement, ThreadState, ThreadTouch};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let Some(agent) = &fact.agent else { return };
    for (_, event, what) in decided_events(fact) {
        let what = what.about();
        if let Decided::Thread(what) = what {
            project_thread_event(fact, agent, what, changes);
        }
        // A suggestion leaves open where the message belongs; another turn has a message of its own, or none.
        let settles = !matches!(what, Decided::Thread(about::Thread::Suggested(_))) && event.turn_id.is_empty();
        if let Some(thread) = SqlKey::non_empty(&event.thread_id).filter(|_| settles) {
            changes.placed.entry(turn_of(fact, event)).or_insert(ThreadPlacement { sequence: fact.sequence, thread });
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
    for thread in fact.events.iter().filter_map(|event| event.thread_id.as_deref().and_then(SqlKey::non_empty)) {
        changes.touched.insert((agent.clone(), thread), ThreadTouch { sequence: fact.sequence, at: fact.at });
    }
}

fn project_thread_event(fact: &ProjectedRecord, agent: &SqlKey, what: about::Thread<'_>, changes: &mut TableChanges) {
    match what {
        about::Thread::Created(created) => {
            let Some(thread) = SqlKey::non_empty(&created.thread_id) else { return };
            changes.threads.entry((agent.clone(), thread)).or_insert_with(|| thread_creation(fact, created));
        }
        about::Thread::Summarized(summarized) => {
            let description = ThreadDescription {
                sequence: fact.sequence,
                title: summarized.title.as_str().into(),
                summary: summarized.summary.as_str().into(),
            };
            changes.described.insert((agent.clone(), summarized.thread_id.as_str().into()), description);
        }
        about::Thread::Archived(archived) => {
            let status = if archived.archived { ThreadStatus::Archived } else { ThreadStatus::Active };
            set_status(fact, agent, &archived.thread_id, status, changes);
        }
        // Whoever goes on with a thread takes it out again.
        about::Thread::Matched(matched) => set_status(fact, agent, &matched.thread_id, ThreadStatus::Active, changes),
        about::Thread::Compacted(compacted) => {
            changes.compacted.insert((agent.clone(), compacted.thread_id.as_str().into()), fact.sequence);
        }
        about::Thread::Completed(completed) => {
            set_status(fact, agent, &completed.thread_id, ThreadStatus::Completed, changes);
        }
        about::Thread::Suggested(_) => {}
    }
}

fn thread_creation(fact: &ProjectedRecord, created: &ThreadCreated) -> ThreadCreation {
    ThreadCreation {
        sequence: fact.sequence,
        user: created.user.as_str().into(),
        kind: created.kind.as_str().into(),
        title: created.title.as_str().into(),
        summary: "".into(),
        created_at: fact.at,
    }
}

/// When it was over, of which an earlier event of the batch tells, stays.
fn set_status(fact: &ProjectedRecord, agent: &SqlKey, thread: &str, status: ThreadStatus, changes: &mut TableChanges) {
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

    use super::super::testing::{decision, project_all, sample_event, sample_event_with};
    use super::*;

    #[test]
    fn a_thread_begins_once_and_ages_with_its_events() {
        let changes = project_all([
            decision(3, "bob", [sample_event("t", "thread")]),
            decision(4, "bob", [sample_event("t", "thread"), sample_event("t", "say")]),
            decision(5, "eve", [sample_event("t", "say")]),
        ]);
        assert_eq!(changes.threads.len(), 1);
        assert_eq!(changes.threads[&("bob".into(), "t".into())].sequence, 3);
        assert_eq!(changes.touched[&("bob".into(), "t".into())].sequence, 4);
        assert_eq!(changes.touched[&("eve".into(), "t".into())].sequence, 5);
    }

    fn summarized(title: &str) -> DecidedEvent {
        let body = ThreadSummarized { thread_id: "t".into(), title: title.into(), ..Default::default() };
        sample_event_with("t", title, Event::ThreadSummarized(body))
    }

    #[test]
    fn the_newest_summary_is_in_force_and_a_match_takes_a_thread_out_again() {
        let archived = |archived| {
            let body = ThreadArchived { thread_id: "t".into(), archived };
            sample_event_with("t", "archived", Event::ThreadArchived(body))
        };
        let matched = ThreadMatched { thread_id: "t".into(), ..Default::default() };
        let key = ("bob".into(), "t".into());
        let changes = project_all([
            decision(3, "bob", [summarized("old"), archived(false)]),
            decision(4, "bob", [summarized("new"), archived(true)]),
        ]);
        let status = |changes: &TableChanges| changes.thread_states[&key].status.clone();
        assert_eq!((&changes.described[&key].title, status(&changes)), (&"new".into(), ThreadStatus::Archived));
        let matched = sample_event_with("t", "matched", Event::ThreadMatched(matched));
        assert_eq!(status(&project_all([decision(4, "bob", [archived(true), matched])])), ThreadStatus::Active);
        let completed = Event::ThreadCompleted(ThreadCompleted { thread_id: "t".into() });
        let completed = sample_event_with("t", "completed", completed);
        assert_eq!(status(&project_all([decision(4, "bob", [completed.clone()])])), ThreadStatus::Completed);
        let changes = project_all([decision(4, "bob", [completed]), decision(5, "bob", [archived(true)])]);
        assert_eq!(status(&changes), ThreadStatus::Archived);
        assert!(changes.thread_states[&key].completed_at.is_some(), "when it was over is still known");
    }

    #[test]
    fn it_is_known_when_a_thread_was_last_summed_up() {
        let compacted = |thread: &str| {
            let body = ThreadCompacted { thread_id: thread.into(), ..Default::default() };
            sample_event_with(thread, "compacted", Event::ThreadCompacted(body))
        };
        let changes =
            project_all([decision(3, "bob", [compacted("t"), compacted("u")]), decision(4, "bob", [compacted("t")])]);
        let at = |thread: &str| changes.compacted[&("bob".into(), thread.into())];
        assert_eq!((at("t"), at("u"), changes.thread_states.len()), (4, 3, 0));
    }

    #[test]
    fn a_message_is_in_the_thread_of_what_was_first_decided_on_it() {
        let suggested = sample_event_with("t", "offer", Event::ThreadSuggested(ThreadSuggested::default()));
        let later = |thread: &str| DecidedEvent { thread_id: thread.to_owned(), ..sample_event("t", "say") };
        let other = DecidedEvent { turn_id: "x".into(), ..later("u") };
        let changes =
            project_all([decision(3, "bob", [suggested, other]), decision(4, "bob", [later("v"), later("w")])]);
        assert_eq!(changes.placed.values().map(|placed| placed.thread.as_str()).collect::<Vec<_>>(), ["v"]);
    }
}
