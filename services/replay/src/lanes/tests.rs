use kairo_mind::request::Tool;
use kairo_proto::v1::{CompletionError, CompletionToolCall, LogMessage, ToolSpec};

use super::*;
use crate::{
    report::Range,
    sharing::{self, Dispatch, Share},
    testing::{Agent, calls, says, tools, with_decision},
};

/// A log with three decisions, of which the first calls a tool.
fn log() -> Vec<LogMessage> {
    let mut agent = Agent::new("cook");
    agent.hears("", "time please");
    let asks = agent.decides(&[calls("tools.now")]);
    agent.learns(asks, "2");
    agent.decides(&[says("It is 2.")]);
    agent.hears("", "thanks");
    agent.decides(&[says("You are welcome.")]);
    agent.messages()
}

fn shadows(changes: Changes, replaced: &[&str]) -> Vec<Option<Box<Shadow>>> {
    let replaced = replaced.iter().map(|tier| (*tier).to_owned()).collect();
    asked_for(&log(), changes, replaced)
}

/// Returns the samples that models can be asked for, decision by decision.
fn asked_for(messages: &[LogMessage], changes: Changes, replaced: BTreeSet<String>) -> Vec<Option<Box<Shadow>>> {
    let mut dispatch = Dispatch::new(BTreeSet::new(), Range::default(), &changes);
    let mut share = Share::new(changes, None).asking(replaced);
    let mut take = |message| match dispatch.next(message).unwrap() {
        sharing::Step::Of(_, task) | sharing::Step::All(task) => share.take(task).unwrap().map(|remade| remade.shadow),
        sharing::Step::On | sharing::Step::Over => None,
    };
    messages.iter().filter_map(&mut take).collect()
}

fn prompt() -> Changes {
    Changes { prompt: Some("Be long.".into()), ..Changes::default() }
}

/// The decision that comes of these answers, and what was asked for it.
fn made(shadow: &Shadow, lane: Lane, answers: &[Completion]) -> (AgentDecision, Vec<String>) {
    let mut asked = Vec::new();
    for given in 0..=answers.len() {
        match shadow.step(lane, &answers[..given]).unwrap() {
            Step::Ask(questions) => asked.extend(questions.iter().map(|it| it.request.digest())),
            Step::Made(decision) => return (*decision, asked),
        }
    }
    panic!("more is asked");
}

fn came(shadow: &Shadow, answers: &[Completion]) -> Came {
    shadow.judge(made(shadow, Lane::Candidate, answers).0).outcome
}

#[test]
fn only_what_the_change_reaches_is_asked_and_the_control_asks_what_was_asked() {
    assert!(shadows(Changes::default(), &[]).iter().all(Option::is_none), "nothing is changed");
    assert!(shadows(Changes::default(), &["light"]).iter().all(Option::is_none), "no decision asked that tier");
    assert_eq!(shadows(Changes::default(), &["heavy"]).iter().flatten().count(), 3);
    let all = shadows(prompt(), &[]);
    let first = all[0].as_ref().unwrap();
    let (recorded, asked) = made(first, Lane::Control, &[calls("tools.now")]);
    assert_eq!(
        asked,
        [recorded.completions.len().to_string()]
            .map(|_| first.control.recorded().completions[0].request_digest.clone())
    );
    let (_, changed) = made(first, Lane::Candidate, &[calls("tools.now")]);
    assert_ne!(changed, asked);
    let expected = first.expected(Lane::Candidate);
    assert!(expected.len() == 1 && expected[0].tier == "heavy" && expected[0].input_tokens > 0, "{expected:?}");
}

#[test]
fn a_sample_is_what_it_does_and_a_call_without_a_result_is_divergent() {
    let all = shadows(prompt(), &[]);
    let (first, second) = (all[0].as_ref().unwrap(), all[1].as_ref().unwrap());
    let with = |arguments: &str| {
        let call = CompletionToolCall { tool: "tools.now".into(), arguments: arguments.into(), ..Default::default() };
        Completion { tool_calls: vec![call], ..Completion::default() }
    };
    assert_eq!(came(first, &[calls("tools.now")]), Came::Same);
    assert_eq!(came(first, &[Completion { reasoning: "hm".into(), ..with("{ }") }]), Came::Same);
    assert_eq!(came(first, &[with(r#"{"zone":"UTC"}"#)]), Came::Divergent);
    assert_eq!(came(first, &[calls("http.get")]), Came::Divergent);
    assert_eq!(came(first, &[says("No idea.")]), Came::Differs);
    assert_eq!(came(second, &[says("Two.")]), Came::Reworded);
    let error =
        CompletionError { kind: "model_refused".into(), message: "no".into(), transient: false, ..Default::default() };
    let failed = Completion { error: Some(error), ..Completion::default() };
    let (decision, _) = made(first, Lane::Candidate, &[failed]);
    let failed = first.judge(decision);
    assert_eq!((failed.outcome, failed.reason.as_deref()), (Came::Unanswered, Some("no")));
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
    let (decision, asked) = made(first, Lane::Candidate, &[away, calls("tools.now")]);
    assert_eq!((first.judge(decision).outcome, asked.len()), (Came::Same, 2));
}

#[test]
fn lanes_count_what_was_answered() {
    let sample = |outcome| Sample { outcome, ..Sample::not_asked(String::new()) };
    let control = vec![sample(Came::Same), sample(Came::Reworded), sample(Came::Unanswered)];
    let lanes = Lanes::of(control, vec![sample(Came::Divergent), sample(Came::Differs), sample(Came::NotAsked)]);
    assert_eq!((lanes.control.rate, lanes.candidate.rate), (Rate { same: 2, of: 2 }, Rate { same: 0, of: 2 }));
    assert_eq!((lanes.verdict, lanes.chance), (Verdict::Differs, 0.1667));
    let read: Lanes = serde_json::from_str(&serde_json::to_string(&lanes).unwrap()).unwrap();
    assert_eq!(read, lanes);
}

#[test]
fn a_changed_tool_is_asked_about_and_none_where_nothing_shows_it() {
    let other = ToolSpec { description: "The time of day".into(), ..tools()[0].clone() };
    let changes = Changes { tools: Some(vec![Tool::from(other)]), ..Changes::default() };
    assert_eq!(shadows(changes, &[]).iter().flatten().count(), 3);
    let same = Changes { tools: Some(tools().into_iter().map(Tool::from).collect()), ..Changes::default() };
    assert_eq!(shadows(same, &[]).iter().flatten().count(), 0, "the catalogue says what it said");
}

#[test]
fn another_thread_that_was_there_before_is_another_decision() {
    let mut agent = Agent::new("cook");
    agent.hears("one", "hello");
    agent.decides(&[says("Hello.")]);
    agent.hears("two", "hello");
    agent.decides(&[says("Hello.")]);
    agent.hears("one", "bye");
    agent.decides(&[says("Bye.")]);
    let shadows = asked_for(&agent.messages(), prompt(), BTreeSet::new());
    let [_, Some(two), Some(one)] = &shadows[..] else { panic!("{shadows:?}") };
    let thread = |shadow: &Shadow| shadow.control.recorded().events[0].thread_id.clone();
    let recorded = one.control.recorded();
    let elsewhere = serde_json::to_string(recorded).unwrap().replace(&thread(one), &thread(two));
    assert_eq!(one.judge(recorded.clone()).outcome, Came::Same);
    assert_ne!(one.judge(serde_json::from_str(&elsewhere).unwrap()).outcome, Came::Same);
}

#[test]
fn what_a_changed_request_takes_is_told_by_what_the_endpoint_counted_then() {
    let messages = log();
    let decisions: Vec<u64> =
        messages.iter().filter(|it| it.subject.ends_with(".decision")).map(|it| it.sequence).collect();
    let counted = with_decision(&messages, decisions[0], |decision| {
        (decision.completions[0].input_tokens, decision.completions[0].output_tokens) = (10_000, 7);
    });
    let longer = Changes { prompt: Some("Be brief. ".repeat(400)), ..Changes::default() };
    let shadow = asked_for(&counted, longer, BTreeSet::new()).into_iter().find_map(|shadow| shadow).unwrap();
    let [control, candidate] = [Lane::Control, Lane::Candidate].map(|lane| shadow.expected(lane)[0]);
    assert_eq!((control.input_tokens, control.output_tokens, control.is_counted), (10_000, 7, false));
    assert!(candidate.input_tokens > 14_000 && !candidate.is_counted, "{candidate:?}");
}
