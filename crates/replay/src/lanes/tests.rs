use kairo_mind::request::Tool;
use kairo_proto::v1::{CompletionError, CompletionToolCall, LogMessage, ToolSpec};

use super::*;
use crate::{
    replay_dispatch::{self, Dispatch, Share},
    report::Range,
    testing::{TestAgent, call_completion, text_completion, tools, with_changed_decision},
};

/// A log with three decisions, of which the first calls a tool.
fn log() -> Vec<LogMessage> {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "time please");
    let asks = agent.decide(&[call_completion("tools.now")]);
    agent.learns(asks, "2");
    agent.decide(&[text_completion("It is 2.")]);
    agent.hears("", "thanks");
    agent.decide(&[text_completion("You are welcome.")]);
    agent.messages()
}

fn shadows(changes: ReplayChanges, replaced: &[&str]) -> Vec<Option<Box<Shadow>>> {
    let replaced = replaced.iter().map(|tier| (*tier).to_owned()).collect();
    asked_for(&log(), changes, replaced)
}

/// Returns the samples that models can be asked for, decision by decision.
fn asked_for(messages: &[LogMessage], changes: ReplayChanges, replaced: BTreeSet<String>) -> Vec<Option<Box<Shadow>>> {
    let mut dispatch = Dispatch::new(BTreeSet::new(), Range::default(), &changes);
    let mut share = Share::new(changes, None).with_replaced_tiers(replaced);
    let mut take = |message| match dispatch.next(message).unwrap() {
        replay_dispatch::DispatchStep::ForAgent(_, task) | replay_dispatch::DispatchStep::ForAll(task) => {
            share.run(task).unwrap().map(|remade| remade.shadow)
        }
        replay_dispatch::DispatchStep::Skip | replay_dispatch::DispatchStep::Stop => None,
    };
    messages.iter().filter_map(&mut take).collect()
}

fn prompt() -> ReplayChanges {
    ReplayChanges { prompt: Some("Be long.".into()), ..ReplayChanges::default() }
}

/// The decision that comes of these answers, and what was asked for it.
fn decide_in_lane(shadow: &Shadow, lane: SamplingLane, answers: &[Completion]) -> (AgentDecision, Vec<String>) {
    let mut asked = Vec::new();
    for given in 0..=answers.len() {
        match shadow.step(lane, &answers[..given]).unwrap() {
            RerunStep::Ask(questions) => asked.extend(questions.iter().map(|it| it.request.digest())),
            RerunStep::Made(decision) => return (*decision, asked),
        }
    }
    panic!("more is asked");
}

fn came(shadow: &Shadow, answers: &[Completion]) -> SampleOutcome {
    shadow.judge(decide_in_lane(shadow, SamplingLane::Candidate, answers).0).outcome
}

#[test]
fn only_what_the_change_reaches_is_asked_and_the_control_asks_what_was_asked() {
    assert!(shadows(ReplayChanges::default(), &[]).iter().all(Option::is_none), "nothing is changed");
    assert!(shadows(ReplayChanges::default(), &["light"]).iter().all(Option::is_none), "no decision asked that tier");
    assert_eq!(shadows(ReplayChanges::default(), &["heavy"]).iter().flatten().count(), 3);
    let all = shadows(prompt(), &[]);
    let first = all[0].as_ref().unwrap();
    let (recorded, asked) = decide_in_lane(first, SamplingLane::Control, &[call_completion("tools.now")]);
    assert_eq!(
        asked,
        [recorded.completions.len().to_string()]
            .map(|_| first.control.recorded_decision().completions[0].request_digest.clone())
    );
    let (_, changed) = decide_in_lane(first, SamplingLane::Candidate, &[call_completion("tools.now")]);
    assert_ne!(changed, asked);
    let expected = first.expected_calls(SamplingLane::Candidate);
    assert!(expected.len() == 1 && expected[0].tier == "heavy" && expected[0].input_tokens > 0, "{expected:?}");
}

#[test]
fn a_sample_is_what_it_does_and_a_call_without_a_result_is_divergent() {
    let all = shadows(prompt(), &[]);
    let first = all[0].as_ref().unwrap();
    let second = all[1].as_ref().unwrap();
    let with = |arguments: &str| {
        let call = CompletionToolCall { tool: "tools.now".into(), arguments: arguments.into(), ..Default::default() };
        Completion { tool_calls: vec![call], ..Completion::default() }
    };
    assert_eq!(came(first, &[call_completion("tools.now")]), SampleOutcome::Same);
    assert_eq!(came(first, &[Completion { reasoning: "hm".into(), ..with("{ }") }]), SampleOutcome::Same);
    assert_eq!(came(first, &[with(r#"{"zone":"UTC"}"#)]), SampleOutcome::Divergent);
    assert_eq!(came(first, &[call_completion("http.get")]), SampleOutcome::Divergent);
    assert_eq!(came(first, &[text_completion("No idea.")]), SampleOutcome::Differs);
    assert_eq!(came(second, &[text_completion("Two.")]), SampleOutcome::Reworded);
    let error =
        CompletionError { kind: "model_refused".into(), message: "no".into(), transient: false, ..Default::default() };
    let failed = Completion { error: Some(error), ..Completion::default() };
    let (decision, _) = decide_in_lane(first, SamplingLane::Candidate, &[failed]);
    let failed = first.judge(decision);
    assert_eq!((failed.outcome, failed.reason.as_deref()), (SampleOutcome::Unanswered, Some("no")));
}

#[test]
fn tries_that_are_tried_again_are_calls_of_their_own_and_no_deeds() {
    let all = shadows(prompt(), &[]);
    let first = all[0].as_ref().unwrap();
    let error = CompletionError {
        kind: "model_unavailable".into(),
        message: "away".into(),
        transient: true,
        ..Default::default()
    };
    let away = Completion { error: Some(error), ..Completion::default() };
    let (decision, asked) = decide_in_lane(first, SamplingLane::Candidate, &[away, call_completion("tools.now")]);
    assert_eq!((first.judge(decision).outcome, asked.len()), (SampleOutcome::Same, 2));
}

#[test]
fn lanes_count_what_was_answered() {
    let sample = |outcome| Sample { outcome, ..Sample::not_asked(String::new()) };
    let control = vec![sample(SampleOutcome::Same), sample(SampleOutcome::Reworded), sample(SampleOutcome::Unanswered)];
    let lanes = Lanes::from_samples(
        control,
        vec![sample(SampleOutcome::Divergent), sample(SampleOutcome::Differs), sample(SampleOutcome::NotAsked)],
    );
    assert_eq!((lanes.control.rate, lanes.candidate.rate), (Rate { same: 2, of: 2 }, Rate { same: 0, of: 2 }));
    assert_eq!((lanes.verdict, lanes.chance), (LaneVerdict::Differs, 0.1667));
    let read: Lanes = serde_json::from_str(&serde_json::to_string(&lanes).unwrap()).unwrap();
    assert_eq!(read, lanes);
}

#[test]
fn a_changed_tool_is_asked_about_and_none_where_nothing_shows_it() {
    let other = ToolSpec { description: "The time of day".into(), ..tools()[0].clone() };
    let changes = ReplayChanges { tools: Some(vec![Tool::from(other)]), ..ReplayChanges::default() };
    assert_eq!(shadows(changes, &[]).iter().flatten().count(), 3);
    let same = ReplayChanges { tools: Some(tools().into_iter().map(Tool::from).collect()), ..ReplayChanges::default() };
    assert_eq!(shadows(same, &[]).iter().flatten().count(), 0, "the catalogue says what it said");
}

#[test]
fn another_thread_that_was_there_before_is_another_decision() {
    let mut agent = TestAgent::new("cook");
    agent.hears("one", "hello");
    agent.decide(&[text_completion("Hello.")]);
    agent.hears("two", "hello");
    agent.decide(&[text_completion("Hello.")]);
    agent.hears("one", "bye");
    agent.decide(&[text_completion("Bye.")]);
    let shadows = asked_for(&agent.messages(), prompt(), BTreeSet::new());
    let [_, Some(two), Some(one)] = &shadows[..] else { panic!("{shadows:?}") };
    let thread = |shadow: &Shadow| shadow.control.recorded_decision().events[0].thread_id.clone();
    let recorded = one.control.recorded_decision();
    let elsewhere = serde_json::to_string(recorded).unwrap().replace(&thread(one), &thread(two));
    assert_eq!(one.judge(recorded.clone()).outcome, SampleOutcome::Same);
    assert_ne!(one.judge(serde_json::from_str(&elsewhere).unwrap()).outcome, SampleOutcome::Same);
}

#[test]
fn what_a_changed_request_takes_is_told_by_what_the_endpoint_counted_then() {
    let messages = log();
    let decisions: Vec<u64> =
        messages.iter().filter(|it| it.subject.ends_with(".decision")).map(|it| it.sequence).collect();
    let counted = with_changed_decision(&messages, decisions[0], |decision| {
        (decision.completions[0].input_tokens, decision.completions[0].output_tokens) = (10_000, 7);
    });
    let longer = ReplayChanges { prompt: Some("Be brief. ".repeat(400)), ..ReplayChanges::default() };
    let shadow = asked_for(&counted, longer, BTreeSet::new()).into_iter().find_map(|shadow| shadow).unwrap();
    let [control, candidate] =
        [SamplingLane::Control, SamplingLane::Candidate].map(|lane| shadow.expected_calls(lane)[0]);
    assert_eq!((control.input_tokens, control.output_tokens, control.is_counted), (10_000, 7, false));
    assert!(candidate.input_tokens > 14_000 && !candidate.is_counted, "{candidate:?}");
}
