//! Conversations that are summed up by themselves: when, by which model, and how often that is paid for.

use kairo_events::vocabulary;
use kairo_proto::v1::Submodule;
use serde_json::json;

use super::{chains::kinds, *};
use crate::{
    state::{AgentTurn, TurnCause},
    thread::Thread,
};

fn summing(after: u32) -> Agent {
    Agent::with(AgentProfile { summary_after: after, ..Default::default() })
}

fn summary() -> Completion {
    says(r#"{"title": "Greetings", "summary": "They greet each other."}"#)
}

impl Agent {
    fn talks(&mut self, id: &str, text: &str) {
        self.hears(id, text);
        self.decides(&[says(&format!("answer to {text}"))]).unwrap();
    }

    fn asked_last(&self) -> String {
        let Some(PromptMessage::User { text, .. }) = self.asked.last().and_then(|request| request.messages.last())
        else {
            return String::new();
        };
        text.clone()
    }
}

#[test]
fn a_conversation_is_summed_up_after_so_many_answers_by_the_light_model() {
    let mut agent = summing(2);
    agent.talks("m1", "one");
    assert!(agent.next_work().is_none(), "not yet");
    agent.talks("m2", "two");
    let decided = agent.works(&[summary()]).unwrap();
    assert_eq!(kinds(&decided), ["summarized"]);
    assert_eq!(agent.asked.last().unwrap().tier, "light");
    let thread = agent.mind.state.threads.values().next().unwrap();
    assert_eq!((thread.title.as_str(), thread.summary.as_str()), ("Greetings", "They greet each other."));
    assert!(agent.next_work().is_none(), "and that is all");
    agent.talks("m3", "three");
    assert!(agent.next_work().is_none(), "it is counted from there");
    agent.talks("m4", "four");
    assert!(agent.works(&[summary()]).is_some());
    agent.is_replayed();
}

#[test]
fn whoever_says_nothing_of_it_is_asked_nothing_more_than_ever() {
    let mut agent = Agent::new();
    for at in 0..20 {
        agent.talks(&format!("m{at}"), "hello");
    }
    assert!(agent.next_work().is_none());
    assert!(!serde_json::to_string(&agent.mind.state).unwrap().contains("answers\""));
    // Who does is nothing for builds that count no answers.
    let of = |summary_after: u32| vocabulary::profile_reader(&AgentProfile { summary_after, ..Default::default() });
    assert_eq!((of(0), of(1)), (vocabulary::FIRST, vocabulary::REFLECTION));
}

#[test]
fn a_summary_that_fails_is_not_asked_for_again_until_as_many_answers_later() {
    let mut agent = summing(1);
    for (at, answer) in [fails(true), says(""), fails(false)].into_iter().enumerate() {
        agent.talks(&format!("m{at}"), "hello");
        let decided = agent.works(&[answer]).unwrap();
        assert_eq!(kinds(&decided), Vec::<String>::new());
        assert!(agent.next_work().is_none());
    }
    agent.is_replayed();
}

/// Returns the digests of the requests that the work lane would make now.
fn asks(agent: &mut Agent) -> Vec<String> {
    let (state, input) = agent.next_work().unwrap();
    match Deliberation::begin(&state, &input, &catalogue(), &limits()) {
        Some((_, DeliberationStep::Ask(questions))) => questions.iter().map(|it| it.request.digest()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn what_is_said_meanwhile_changes_nothing_of_what_was_asked() {
    let mut agent = Agent::with(AgentProfile { summary_after: 1, history_limit: 4, ..Default::default() });
    agent.talks("m1", "one");
    let before = asks(&mut agent);
    assert_eq!(before.len(), 1);
    agent.talks("m2", "two");
    assert_eq!(asks(&mut agent), before, "nobody pays for it twice");
    agent.talks("m3", "three");
    assert_eq!(asks(&mut agent), before, "whatever the thread had no more room for");
    let decided = agent.works(&[summary()]).unwrap();
    assert_eq!(kinds(&decided), ["summarized"]);
    assert!(agent.asked_last().contains("one") && !agent.asked_last().contains("two"), "{}", agent.asked_last());
    agent.is_replayed();
}

#[test]
fn what_becomes_of_a_call_meanwhile_changes_nothing_of_what_was_asked() {
    let mut agent = summing(1);
    agent.hears("m1", "look it up");
    let called = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.talks("m2", "are you there");
    let before = asks(&mut agent);
    agent.learns(&called, &actions(&called)[0], "found");
    agent.decides(&[says("here it is")]).unwrap();
    assert_eq!(asks(&mut agent), before, "nobody pays for it twice");
    assert_eq!(kinds(&agent.works(&[summary()]).unwrap()), ["summarized"]);
    agent.is_replayed();
}

#[test]
fn a_summary_that_was_asked_for_otherwise_takes_its_place() {
    let mut agent = summing(2);
    agent.talks("m1", "one");
    agent.talks("m2", "two");
    assert_eq!(asks(&mut agent).len(), 1);
    agent.hears("m3", "sum it up");
    let called = asks_for("thread.summarize", json!({}));
    agent.decides(&[called, says(r#"{"title": "T", "summary": "S"}"#), says("done")]).unwrap();
    assert_eq!(agent.mind.state.threads.values().next().unwrap().summary, "S");
    assert!(agent.next_work().is_none());
    agent.is_replayed();
}

#[test]
fn however_many_wait_what_was_begun_is_ended() {
    let mut agent = summing(1);
    agent.talks("m1", "one");
    let before = asks(&mut agent);
    let correlation = agent.mind.state.work.summaries[0].correlation;
    let state = Arc::make_mut(&mut agent.mind.state);
    for at in 0..40 {
        let turn = Uuid::from_u128(at);
        let thread = format!("t{at}");
        state.turns.insert(turn, AgentTurn::new(TurnCause::Message, correlation, &thread, "ann"));
        state.threads.insert(thread.clone(), Thread::default().into());
        state.note_answer(&thread, turn, correlation);
    }
    assert_eq!(state.work.summaries.len(), 32);
    assert_eq!(asks(&mut agent), before);
}

#[test]
fn work_comes_before_summaries_and_those_are_no_part_of_what_a_session_may_take() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), summary_after: 1, ..Default::default() });
    agent.hears("m1", "look it up");
    let queued = Completion { text: "I will.".into(), ..asks_for("task.queue", json!({ "text": "look" })) };
    agent.decides(&[queued]).unwrap();
    assert_eq!(kinds(&agent.starts().unwrap())[1], "task started");
    agent.works(&[says("noon")]).unwrap();
    let mut left = Vec::new();
    while let Some(record) = agent.works_with(|request| if request.tier == "light" { summary() } else { says("[]") }) {
        left.push(kinds(&record).join(" "));
        assert!(left.len() < 9, "it never ends: {left:?}");
    }
    assert_eq!(left, ["completed", "summarized"], "what is learned comes first");
    assert!(agent.mind.state.work.is_nothing());
    agent.is_replayed();
}

#[test]
fn a_summary_is_shown_to_no_submodule() {
    let submodules = vec![Submodule { name: "diary".into(), wants_decisions: true, ..Default::default() }];
    let mut agent = Agent::with(AgentProfile { submodules, summary_after: 1, ..Default::default() });
    agent.hears("m1", "hello");
    agent.decides_with(|_| says("hi"));
    let mut left = Vec::new();
    while let Some(record) = agent.works_with(|request| if request.tier == "light" { summary() } else { says("-") }) {
        left.push(kinds(&record).join(" "));
        assert!(left.len() < 9, "it never ends: {left:?}");
    }
    assert_eq!(left, ["broadcast diary", "summarized"]);
    agent.is_replayed();
}
