//! Forks of an agent whose log is made here, with a model that says what the test has it say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use jiff::SignedDuration;
use kairo_agent_runtime::{LiveAnswer, ProgressHandle};
use kairo_core::{ids::Name, subjects::AGENT_DECISION};
use kairo_fork::{AnswerSource, Fork, ForkAnswer, ForkEvent, ForkSettings, ModelAsker, PendingFate, mocks::Mocks};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::{AgentDecision, Completion, UserMessage};
use kairo_replay::{
    cut::{Cut, ForkParts},
    replayer::Replayer,
    report::Range,
    testing::{TestAgent, call_completion, name, text_completion},
};
use serde_json::json;

/// A model that calls a tool first and then says its result.
struct Model {
    asked: AtomicUsize,
    /// Model calls that the budget covers.
    affordable: usize,
}

impl ModelAsker for Model {
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a ProgressHandle,
        _: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>> {
        if self.asked.load(Ordering::SeqCst) >= self.affordable {
            return Box::pin(async { Err("the budget is used up".to_owned()) });
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let last = format!("{:?}", request.messages.last());
        let answer = if last.contains("the date") { call_completion("http.get") } else { text_completion("new words") };
        let completion = Completion { tier: request.tier.to_owned(), request_digest: request.digest(), ..answer };
        Box::pin(async { Ok(completion) })
    }
}

fn cut(agent: &TestAgent, at: u64) -> ForkParts {
    let mut cut = Cut::new(Some(at), [name("ann")].into());
    agent.messages().iter().for_each(|message| cut.apply(message).unwrap());
    cut.into_parts().unwrap()
}

/// An agent that looks at the clock for a user.
fn agent() -> (TestAgent, u64, u64) {
    let mut agent = TestAgent::new("ann");
    let heard = agent.hears("t", "the time");
    let called = agent.decide(&[call_completion("tools.now")]);
    agent.learns(called, "\"12:00\"");
    agent.decide(&[text_completion("noon")]);
    (agent, heard, called)
}

async fn fork(parts: ForkParts, pending: PendingFate, mocks: &str) -> (Fork, Arc<Model>) {
    fork_within(parts, pending, mocks, usize::MAX).await
}

async fn fork_within(parts: ForkParts, pending: PendingFate, mocks: &str, affordable: usize) -> (Fork, Arc<Model>) {
    let model = Arc::new(Model { asked: AtomicUsize::new(0), affordable });
    let settings = ForkSettings {
        pending,
        mocks: Mocks::parse(mocks).unwrap(),
        asked: None,
        config: kairo_agent_runtime::Config::default(),
        models: Some(model.clone()),
        prompt: None,
    };
    (Fork::start(parts, settings).await.unwrap(), model)
}

/// Runs the fork until it is at rest; returns the texts said, and the source of each answer.
async fn until_rest(fork: &mut Fork) -> (Vec<String>, Vec<(String, AnswerSource)>) {
    let mut said = Vec::new();
    let mut answered = Vec::new();
    loop {
        match fork.next_event().await.unwrap() {
            ForkEvent::Record(record) => {
                let decision = AgentDecision::of(&record.body).into_iter().flat_map(|decision| &decision.events);
                said.extend(decision.filter_map(|event| Some(event.say()?.text.clone())));
            }
            ForkEvent::Answered(ForkAnswer::Tool { tool, answer, .. }) => answered.push((tool, answer)),
            ForkEvent::Answered(ForkAnswer::Model { answer, .. }) => answered.push((String::new(), answer)),
            ForkEvent::Answered(ForkAnswer::Agent { agent, answer, .. }) => answered.push((agent, answer)),
            ForkEvent::AtRest => return (said, answered),
        }
    }
}

fn user() -> Name {
    name("ann")
}

fn says_to_ann(text: &str) -> UserMessage {
    UserMessage {
        user: "ann".into(),
        agent: "ann".into(),
        thread_id: "t".into(),
        text: text.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn what_the_log_has_answers_to_is_answered_by_it_and_no_model_is_asked() {
    let (agent, heard, _) = agent();
    let (mut fork, model) = fork(cut(&agent, heard), PendingFate::Recorded, "[]").await;
    let (said, answered) = until_rest(&mut fork).await;
    assert_eq!(said, ["noon"]);
    assert_eq!(model.asked.load(Ordering::SeqCst), 0);
    let recorded = |at| AnswerSource::Recorded { at };
    assert_eq!(
        answered,
        [(String::new(), recorded(0)), ("tools.now".to_owned(), recorded(heard + 2)), (String::new(), recorded(0)),]
    );
    // Its log is one like any other.
    let mut replaying = Replayer::new([name("ann")].into(), Range::default(), Default::default(), None);
    fork.export().iter().for_each(|message| _ = replaying.replay(message).unwrap());
    let report = replaying.report("", Vec::new());
    assert_eq!((report.counts.decisions, report.counts.same), (2, 2));
    fork.stop().await;
}

#[tokio::test]
async fn a_tool_does_nothing_but_answer_what_was_mocked_or_that_it_is_locked() {
    let (agent, heard, _) = agent();
    let mocks = "- { tool: http.get, result: { status: 200 } }";
    for (mocks, answer) in [(mocks, AnswerSource::Mocked), ("[]", AnswerSource::Locked)] {
        let (mut fork, model) = fork(cut(&agent, heard + 3), PendingFate::Recorded, mocks).await;
        assert_eq!(until_rest(&mut fork).await, (Vec::new(), Vec::new()), "nothing is left to be done at the cut");
        fork.say(&user(), says_to_ann("the date"));
        let (said, answered) = until_rest(&mut fork).await;
        assert_eq!(said, ["new words"]);
        assert!(answered.contains(&("http.get".to_owned(), answer)), "{answered:?}");
        assert_eq!(model.asked.load(Ordering::SeqCst), 2);
        fork.stop().await;
    }
}

#[tokio::test]
async fn what_is_not_affordable_is_told_and_the_agent_sees_a_model_that_refuses() {
    let (agent, heard, _) = agent();
    let mocks = "- { tool: http.get, result: { status: 200 } }";
    let (mut fork, model) = fork_within(cut(&agent, heard + 3), PendingFate::Recorded, mocks, 1).await;
    until_rest(&mut fork).await;
    fork.say(&user(), says_to_ann("the date"));
    let (said, answered) = until_rest(&mut fork).await;
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
    let why = "the budget is used up".to_owned();
    let expected = [
        (String::new(), AnswerSource::Asked),
        ("http.get".to_owned(), AnswerSource::Mocked),
        (String::new(), AnswerSource::NotAsked { why: why.clone() }),
    ];
    assert_eq!(answered, expected, "and it is tried once");
    assert!(!said.is_empty(), "its user is told");
    let decisions = AGENT_DECISION.of_owner(&name("ann"));
    let last = fork.export().into_iter().rfind(|message| message.subject == decisions).unwrap();
    let decided = String::from_utf8_lossy(&last.data);
    assert!(decided.contains(&why) && decided.contains("model_refused"), "{decided}");
    fork.stop().await;
}

#[tokio::test]
async fn what_was_in_flight_ends_as_it_did_or_is_lost() {
    let (agent, _, called) = agent();
    let (mut kept, model) = fork(cut(&agent, called), PendingFate::Recorded, "[]").await;
    assert_eq!(until_rest(&mut kept).await.0, ["noon"]);
    assert_eq!(model.asked.load(Ordering::SeqCst), 0);
    let (mut lost, model) = fork(cut(&agent, called), PendingFate::Lost, "[]").await;
    assert_eq!(until_rest(&mut lost).await.0, ["new words"], "the model is told that it is in doubt");
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
    let state = lost.state(&name("ann")).state;
    assert!(state.in_flight.is_empty(), "{:?}", state.in_flight);
    kept.stop().await;
    lost.stop().await;
}

#[tokio::test]
async fn sequences_go_on_behind_the_cut_and_so_does_the_clock() {
    let (agent, heard, _) = agent();
    let at = heard + 1_000;
    let (mut fork, _) = fork(cut(&agent, at), PendingFate::Recorded, "[]").await;
    until_rest(&mut fork).await;
    let before = fork.clock().now();
    fork.say(&user(), says_to_ann("hello"));
    until_rest(&mut fork).await;
    let own: Vec<u64> = fork.export().iter().map(|message| message.sequence).filter(|it| *it > heard + 3).collect();
    assert!(own.iter().all(|sequence| *sequence > at) && !own.is_empty(), "{own:?}");
    fork.advance(SignedDuration::from_hours(24));
    assert!(fork.clock().now().duration_since(before) >= SignedDuration::from_hours(24));
    fork.stop().await;
}

#[tokio::test]
async fn another_prompt_is_what_its_model_is_asked_with() {
    let (agent, heard, _) = agent();
    let settings = ForkSettings {
        pending: PendingFate::Recorded,
        mocks: Mocks::default(),
        asked: None,
        config: kairo_agent_runtime::Config::default(),
        models: None,
        prompt: Some("Be long.".to_owned()),
    };
    let mut fork = Fork::start(cut(&agent, heard + 3), settings).await.unwrap();
    until_rest(&mut fork).await;
    fork.say(&user(), says_to_ann("the time"));
    let (said, answered) = until_rest(&mut fork).await;
    let profile = fork.state(&name("ann")).state.profile.clone().unwrap();
    assert_eq!(profile.prompt, "Be long.");
    assert!(answered.iter().any(|(_, answer)| *answer == AnswerSource::Locked), "nobody is there to ask: {answered:?}");
    assert!(!said.is_empty(), "and its user is told");
    let decisions = AGENT_DECISION.of_owner(&name("ann"));
    let last = fork.export().into_iter().rfind(|message| message.subject == decisions).unwrap();
    assert!(String::from_utf8_lossy(&last.data).contains("no model is configured"), "{}", json!(last.headers));
    fork.stop().await;
}
