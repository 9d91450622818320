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
use kairo_agent_runtime::{Live, Received};
use kairo_core::{ids::Name, subjects::AGENT_DECISION};
use kairo_fork::{Answer, Asks, Fork, Happened, Keep, Settings, Told, mocks::Mocks};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::{AgentDecision, Completion, UserMessage};
use kairo_replay::{
    cut::{Cut, Parts},
    replaying::Replaying,
    report::Range,
    testing::{Agent, calls, name, says},
};
use serde_json::json;

/// A model that calls a tool first and then says its result.
struct Model {
    asked: AtomicUsize,
    /// Model calls that the budget covers.
    affordable: usize,
}

impl Asks for Model {
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a Received,
        _: Option<Live<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>> {
        if self.asked.load(Ordering::SeqCst) >= self.affordable {
            return Box::pin(async { Err("the budget is used up".to_owned()) });
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let last = format!("{:?}", request.messages.last());
        let answer = if last.contains("the date") { calls("http.get") } else { says("new words") };
        let completion = Completion { tier: request.tier.to_owned(), request_digest: request.digest(), ..answer };
        Box::pin(async { Ok(completion) })
    }
}

fn cut(agent: &Agent, at: u64) -> Parts {
    let mut cut = Cut::new(Some(at), [name("ann")].into());
    agent.messages().iter().for_each(|message| cut.take(message).unwrap());
    cut.parts().unwrap()
}

/// An agent that looks at the clock for a user.
fn agent() -> (Agent, u64, u64) {
    let mut agent = Agent::new("ann");
    let heard = agent.hears("t", "the time");
    let called = agent.decides(&[calls("tools.now")]);
    agent.learns(called, "\"12:00\"");
    agent.decides(&[says("noon")]);
    (agent, heard, called)
}

async fn fork(parts: Parts, pending: Keep, mocks: &str) -> (Fork, Arc<Model>) {
    fork_within(parts, pending, mocks, usize::MAX).await
}

async fn fork_within(parts: Parts, pending: Keep, mocks: &str, affordable: usize) -> (Fork, Arc<Model>) {
    let model = Arc::new(Model { asked: AtomicUsize::new(0), affordable });
    let settings = Settings {
        pending,
        mocks: Mocks::read(mocks).unwrap(),
        asked: None,
        config: kairo_agent_runtime::Config::default(),
        models: Some(model.clone()),
        prompt: None,
    };
    (Fork::begin(parts, settings).await.unwrap(), model)
}

/// Runs the fork until it is at rest; returns the texts said, and the source of each answer.
async fn until_rest(fork: &mut Fork) -> (Vec<String>, Vec<(String, Answer)>) {
    let (mut said, mut answered) = (Vec::new(), Vec::new());
    loop {
        match fork.next().await.unwrap() {
            Happened::Record(record) => {
                let decision = AgentDecision::of(&record.body).into_iter().flat_map(|decision| &decision.events);
                said.extend(decision.filter_map(|event| Some(event.say()?.text.clone())));
            }
            Happened::Answered(Told::Tool { tool, answer, .. }) => answered.push((tool, answer)),
            Happened::Answered(Told::Model { answer, .. }) => answered.push((String::new(), answer)),
            Happened::Answered(Told::Agent { agent, answer, .. }) => answered.push((agent, answer)),
            Happened::AtRest => return (said, answered),
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
    let (mut fork, model) = fork(cut(&agent, heard), Keep::Recorded, "[]").await;
    let (said, answered) = until_rest(&mut fork).await;
    assert_eq!(said, ["noon"]);
    assert_eq!(model.asked.load(Ordering::SeqCst), 0);
    let recorded = |at| Answer::Recorded { at };
    assert_eq!(
        answered,
        [(String::new(), recorded(0)), ("tools.now".to_owned(), recorded(heard + 2)), (String::new(), recorded(0)),]
    );
    // Its log is one like any other.
    let mut replaying = Replaying::new([name("ann")].into(), Range::default(), Default::default(), None);
    fork.export().iter().for_each(|message| _ = replaying.take(message).unwrap());
    let report = replaying.report("", Vec::new());
    assert_eq!((report.counts.decisions, report.counts.same), (2, 2));
    fork.end().await;
}

#[tokio::test]
async fn a_tool_does_nothing_but_answer_what_was_mocked_or_that_it_is_locked() {
    let (agent, heard, _) = agent();
    let mocks = "- { tool: http.get, result: { status: 200 } }";
    for (mocks, answer) in [(mocks, Answer::Mocked), ("[]", Answer::Locked)] {
        let (mut fork, model) = fork(cut(&agent, heard + 3), Keep::Recorded, mocks).await;
        assert_eq!(until_rest(&mut fork).await, (Vec::new(), Vec::new()), "nothing is left to be done at the cut");
        fork.say(&user(), says_to_ann("the date"));
        let (said, answered) = until_rest(&mut fork).await;
        assert_eq!(said, ["new words"]);
        assert!(answered.contains(&("http.get".to_owned(), answer)), "{answered:?}");
        assert_eq!(model.asked.load(Ordering::SeqCst), 2);
        fork.end().await;
    }
}

#[tokio::test]
async fn what_is_not_affordable_is_told_and_the_agent_sees_a_model_that_refuses() {
    let (agent, heard, _) = agent();
    let mocks = "- { tool: http.get, result: { status: 200 } }";
    let (mut fork, model) = fork_within(cut(&agent, heard + 3), Keep::Recorded, mocks, 1).await;
    until_rest(&mut fork).await;
    fork.say(&user(), says_to_ann("the date"));
    let (said, answered) = until_rest(&mut fork).await;
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
    let why = "the budget is used up".to_owned();
    let expected = [
        (String::new(), Answer::Asked),
        ("http.get".to_owned(), Answer::Mocked),
        (String::new(), Answer::NotAsked { why: why.clone() }),
    ];
    assert_eq!(answered, expected, "and it is tried once");
    assert!(!said.is_empty(), "its user is told");
    let decisions = AGENT_DECISION.of(&name("ann"));
    let last = fork.export().into_iter().rfind(|message| message.subject == decisions).unwrap();
    let decided = String::from_utf8_lossy(&last.data);
    assert!(decided.contains(&why) && decided.contains("model_refused"), "{decided}");
    fork.end().await;
}

#[tokio::test]
async fn what_was_in_flight_ends_as_it_did_or_is_lost() {
    let (agent, _, called) = agent();
    let (mut kept, model) = fork(cut(&agent, called), Keep::Recorded, "[]").await;
    assert_eq!(until_rest(&mut kept).await.0, ["noon"]);
    assert_eq!(model.asked.load(Ordering::SeqCst), 0);
    let (mut lost, model) = fork(cut(&agent, called), Keep::Lost, "[]").await;
    assert_eq!(until_rest(&mut lost).await.0, ["new words"], "the model is told that it is in doubt");
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
    let state = lost.state(&name("ann")).state;
    assert!(state.in_flight.is_empty(), "{:?}", state.in_flight);
    kept.end().await;
    lost.end().await;
}

#[tokio::test]
async fn sequences_go_on_behind_the_cut_and_so_does_the_clock() {
    let (agent, heard, _) = agent();
    let at = heard + 1_000;
    let (mut fork, _) = fork(cut(&agent, at), Keep::Recorded, "[]").await;
    until_rest(&mut fork).await;
    let before = fork.clock().now();
    fork.say(&user(), says_to_ann("hello"));
    until_rest(&mut fork).await;
    let own: Vec<u64> = fork.export().iter().map(|message| message.sequence).filter(|it| *it > heard + 3).collect();
    assert!(own.iter().all(|sequence| *sequence > at) && !own.is_empty(), "{own:?}");
    fork.advance(SignedDuration::from_hours(24));
    assert!(fork.clock().now().duration_since(before) >= SignedDuration::from_hours(24));
    fork.end().await;
}

#[tokio::test]
async fn another_prompt_is_what_its_model_is_asked_with() {
    let (agent, heard, _) = agent();
    let settings = Settings {
        pending: Keep::Recorded,
        mocks: Mocks::default(),
        asked: None,
        config: kairo_agent_runtime::Config::default(),
        models: None,
        prompt: Some("Be long.".to_owned()),
    };
    let mut fork = Fork::begin(cut(&agent, heard + 3), settings).await.unwrap();
    until_rest(&mut fork).await;
    fork.say(&user(), says_to_ann("the time"));
    let (said, answered) = until_rest(&mut fork).await;
    let profile = fork.state(&name("ann")).state.profile.clone().unwrap();
    assert_eq!(profile.prompt, "Be long.");
    assert!(answered.iter().any(|(_, answer)| *answer == Answer::Locked), "nobody is there to ask: {answered:?}");
    assert!(!said.is_empty(), "and its user is told");
    let decisions = AGENT_DECISION.of(&name("ann"));
    let last = fork.export().into_iter().rfind(|message| message.subject == decisions).unwrap();
    assert!(String::from_utf8_lossy(&last.data).contains("no model is configured"), "{}", json!(last.headers));
    fork.end().await;
}
