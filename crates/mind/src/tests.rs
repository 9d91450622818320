//! The mind alone: messages in, decisions out, over a log in memory.

mod background;
mod bounds;
mod caps;
mod chains;
mod chat_clients;
mod compacting;
mod completing;
mod composition;
mod correcting;
mod deadlines;
mod endings;
mod environment;
mod failing;
mod forgetting;
mod going_on;
mod importing;
mod in_progress;
mod inner_state;
mod interjection;
mod offering;
mod orders;
mod outside;
mod overtaken;
mod parts;
mod promises;
mod reasoning;
mod reflection;
mod remembering;
mod requests;
mod sessions;
mod submodules;
mod summing_up;
mod tasks;
mod team;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kairo_events::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{AGENT_DECISION, AGENT_DEFINED, AGENT_MESSAGE, Route, Service, TOOL_RESULT},
};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentDecision, AgentDefined, AgentMessage, AgentProfile, Completion, CompletionError,
        CompletionToolCall, ToolResult, agent_action::Action, decided_event::Event,
    },
};
use proptest::prelude::*;
use uuid::Uuid;

use super::{
    deliberation::{DecisionLimits, Deliberation, DeliberationStep, ModelQuestion},
    log::{DecisionInput, Divergence, HELD, Log, NextInput, Snapshot},
    request::{
        Catalogue, ModelRequest, PromptMessage, Tool, ToolChoice, block_contents, check_conversation, context_block,
    },
};

/// The log that snapshots of tests are of.
const LOG: Uuid = Uuid::from_u128(7);

/// An agent over a log in memory, whose model answers what the test says.
struct Agent {
    name: String,
    log: Vec<Record>,
    mind: Log,
    asked: Vec<Arc<ModelRequest>>,
    /// Seconds added to the time that follows from the length of the log.
    later: i64,
    limits: DecisionLimits,
    /// The fast model's answer on whether a reply promises work.
    promise: Completion,
    /// The tools that services carry out.
    catalogue: Catalogue,
}

fn limits() -> DecisionLimits {
    DecisionLimits { max_steps: 4, tries: 3, parallel_tools: 2, chain_steps: 16, ..DecisionLimits::default() }
}

fn catalogue() -> Catalogue {
    let tool = |name: &str| Tool {
        name: name.into(),
        description: "".into(),
        schema: "{}".into(),
        needs_approval: name == "email.send",
        needs_approval_with: Vec::new(),
        acts_outside: name == "process.spawn",
    };
    Catalogue {
        version: "c1".into(),
        tools: ["tools.now", "http.get", "process.spawn", "process.cancel", "action.cancel", "email.send"]
            .map(tool)
            .into(),
    }
}

/// A text without what the system tells in it.
fn words_of(text: &str) -> String {
    let mut words = text.to_owned();
    for told in block_contents(text) {
        words = words.replace(&context_block(told), "");
    }
    words.trim().to_owned()
}

fn says(text: &str) -> Completion {
    Completion { text: text.into(), ..Default::default() }
}

fn calls(tools: &[&str]) -> Completion {
    let call = |tool: &&str| CompletionToolCall { tool: (*tool).into(), arguments: "{}".into(), ..Default::default() };
    Completion { tool_calls: tools.iter().map(call).collect(), ..Default::default() }
}

/// Calls one tool with these arguments.
fn asks_for(tool: &str, arguments: serde_json::Value) -> Completion {
    let call = CompletionToolCall { tool: tool.into(), arguments: arguments.to_string(), ..Default::default() };
    Completion { tool_calls: vec![call], ..Default::default() }
}

/// Returns true if the request asks about promises in an answer; most tests are about something else.
fn is_about_promises(request: &ModelRequest) -> bool {
    matches!(&request.messages[0], PromptMessage::System { text } if text.starts_with(crate::prompts::PROMISE))
}

const PROMISES_NOTHING: &str = r#"{"verdict":"nothing","tasks":[],"answer":""}"#;

fn fails(transient: bool) -> Completion {
    let error =
        CompletionError { kind: "model_unavailable".into(), message: "busy".into(), transient, ..Default::default() };
    Completion { error: Some(error), ..Default::default() }
}

impl Agent {
    fn new() -> Self {
        Self::with(AgentProfile::default())
    }

    fn with(profile: AgentProfile) -> Self {
        Self::named("a", profile)
    }

    fn named(name: &str, profile: AgentProfile) -> Self {
        let mut agent = Self {
            name: name.into(),
            log: Vec::new(),
            mind: Log::default(),
            asked: Vec::new(),
            later: 0,
            promise: says(PROMISES_NOTHING),
            limits: limits(),
            catalogue: catalogue(),
        };
        let profile = AgentProfile { agent: name.into(), prompt: "Be brief.".into(), ..profile };
        agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile), ..Default::default() });
        agent
    }

    /// Writes a record, as some service would.
    fn write(&mut self, route: &Route, cause: Option<&Envelope>, body: impl Into<Body>) -> Record {
        let sequence = self.log.len() as u64 + 1;
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(self.later + i64::try_from(sequence).unwrap());
        let id = ids::from_parts("test", &[&sequence.to_string()]);
        let envelope = match cause {
            Some(cause) => cause.follow_up(id, Service::Router, Origin::System, time),
            None => Envelope::from_outside(id, Service::Gateway, Origin::User, time),
        };
        let subject = route.of_owner(&Name::parse(&self.name).unwrap());
        let record = Record { sequence, subject, envelope, body: body.into() };
        self.log.push(record.clone());
        self.mind.push(record.clone()).unwrap();
        record
    }

    fn hears(&mut self, message_id: &str, text: &str) -> Record {
        let message =
            AgentMessage { message_id: message_id.into(), user: "ann".into(), text: text.into(), ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message)
    }

    fn learns(&mut self, decision: &Record, action: &str, result: &str) -> Record {
        let result = ToolResult { action_id: action.into(), ok: true, result: result.into(), ..Default::default() };
        let cause = decision.envelope.clone();
        self.write(&TOOL_RESULT, Some(&cause), result)
    }

    /// Returns the blocks of the runtime in the last request, after the prompt.
    fn spoken_texts(&self) -> Vec<String> {
        let messages = self.asked.last().unwrap().messages.iter();
        let told = |message: &PromptMessage| match message {
            PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. } => {
                block_contents(text).map(str::to_owned).collect()
            }
            PromptMessage::System { .. } | PromptMessage::Assistant { .. } => Vec::new(),
        };
        messages.flat_map(told).collect()
    }

    /// The next input, read from the log where it is no longer at hand.
    fn next_input(&mut self) -> Option<DecisionInput> {
        loop {
            match self.mind.next_input()? {
                NextInput::Input(input) => return Some(input),
                NextInput::Missing(sequences) => {
                    for sequence in sequences {
                        self.mind
                            .supply_record(sequence, self.log.get(usize::try_from(sequence).unwrap() - 1).cloned());
                    }
                }
            }
        }
    }

    /// Decides on the next input, the model answering in this order; `None` when there is nothing to decide.
    fn decides(&mut self, answers: &[Completion]) -> Option<Record> {
        let mut answers = answers.iter();
        let decided = self.decides_with(|_| answers.next().expect("asked more often than answered").clone());
        assert!(decided.is_none() || answers.next().is_none(), "asked less often than answered");
        decided
    }

    /// Decides on the next input, the model answering as it likes.
    fn decides_with(&mut self, mut answer: impl FnMut(&ModelRequest) -> Completion) -> Option<Record> {
        let input = self.next_input()?;
        let (limits, catalogue) = (self.limits.clone(), self.catalogue.clone());
        let (mut thought, mut next) = Deliberation::begin(&self.mind.state, &input, &catalogue, &limits).unwrap();
        let decision = loop {
            match next {
                DeliberationStep::Commit(decision) => break *decision,
                DeliberationStep::Ask(questions) => {
                    let mut as_asked = |question: &ModelQuestion| Completion {
                        tier: question.request.tier.into(),
                        request_digest: question.request.digest(),
                        ..if is_about_promises(&question.request) {
                            self.promise.clone()
                        } else {
                            answer(&question.request)
                        }
                    };
                    for question in &questions {
                        let messages = &question.request.messages;
                        assert_eq!(check_conversation(messages), Ok(()), "{messages:#?}");
                    }
                    let completions = questions.iter().map(&mut as_asked).collect();
                    let asked = questions.into_iter().map(|question| question.request);
                    self.asked.extend(asked.filter(|request| !is_about_promises(request)));
                    (thought, next) = thought.resume(completions);
                }
            }
        };
        Some(self.write(&AGENT_DECISION, Some(&input.record.envelope), decision))
    }
}

fn decision(record: &Record) -> &AgentDecision {
    AgentDecision::of(&record.body).unwrap_or_else(|| panic!("not a decision: {:?}", record.body))
}

/// Returns what a decision says and calls, in order: words as they are, calls as `tool!`, failures as `kind?`.
fn acts(record: &Record) -> Vec<String> {
    let act = |event: &kairo_proto::v1::DecidedEvent| {
        let said = event.say().map(|say| say.text.clone());
        let called = || event.tool_call().map(|call| format!("{}!", call.tool));
        let failed = || {
            let Some(Event::Failed(failed)) = &event.event else { return None };
            Some(format!("{}?", failed.kind))
        };
        said.or_else(called).or_else(failed)
    };
    decision(record).events.iter().filter_map(act).collect()
}

fn actions(record: &Record) -> Vec<String> {
    let events = decision(record).events.iter();
    events
        .filter(|event| matches!(&event.event, Some(Event::Action(AgentAction { action: Some(Action::ToolCall(_)) }))))
        .map(|event| event.event_id.clone())
        .collect()
}

#[test]
fn words_are_answered_with_words() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let decided = agent.decides(&[says("hi")]).unwrap();
    assert_eq!(acts(&decided), ["hi"]);
    assert_eq!(decision(&decided).cursor, 2);
    assert!(agent.decides(&[]).is_none());
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn the_turn_goes_on_when_the_last_of_several_results_is_there() {
    let mut agent = Agent::new();
    agent.hears("m1", "what time is it?");
    let asked = agent.decides(&[calls(&["tools.now", "http.get"])]).unwrap();
    let [first, second] = actions(&asked).try_into().unwrap();
    agent.learns(&asked, &second, "2");
    assert!(agent.decides(&[]).is_none(), "one result is still missing");
    agent.learns(&asked, &first, "1");
    let decided = agent.decides(&[says("done")]).unwrap();
    assert_eq!(acts(&decided), ["done"]);
    let results: Vec<&str> = agent
        .asked
        .last()
        .unwrap()
        .messages
        .iter()
        .filter_map(|message| match message {
            PromptMessage::Tool { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["1", "2"]);
}

#[test]
fn the_same_message_or_result_again_changes_nothing() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let asked = agent.decides(&[calls(&["tools.now"])]).unwrap();
    let action = &actions(&asked)[0];
    agent.hears("m1", "hello");
    assert!(agent.decides(&[]).is_none());
    agent.learns(&asked, action, "1");
    agent.learns(&asked, action, "2");
    assert_eq!(acts(&agent.decides(&[says("done")]).unwrap()), ["done"]);
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn a_message_is_answered_while_a_tool_runs_and_the_model_is_told_that_it_does() {
    let mut agent = Agent::new();
    agent.hears("m1", "first");
    let asked = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.hears("m2", "second");
    assert_eq!(acts(&agent.decides(&[says("wait")]).unwrap()), ["wait"]);
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("still running"), "{shown}");
    agent.learns(&asked, &actions(&asked)[0], "7");
    assert_eq!(acts(&agent.decides(&[says("seven")]).unwrap()), ["seven"]);
    assert!(agent.spoken_texts().last().unwrap().ends_with("answer it now: first"));
}

#[test]
fn a_failing_model_is_tried_again_within_limits_and_the_turn_ends_with_a_reply() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let decided = agent.decides(&[fails(true), says("hi")]).unwrap();
    assert_eq!(acts(&decided), ["model_unavailable?", "hi"]);
    agent.hears("m2", "hello");
    let decided = agent.decides(&vec![fails(true); 8]).unwrap();
    let (told, tries) = acts(&decided).split_last().map(|(told, tries)| (told.clone(), tries.to_vec())).unwrap();
    assert_eq!(tries, ["model_unavailable?"; 8]);
    assert!(told.starts_with("I could not finish this: the model's endpoint is away"), "{told}");
    assert!(agent.mind.state.turns.is_empty());
    agent.hears("m3", "hello");
    assert_eq!(acts(&agent.decides(&[fails(false)]).unwrap()).len(), 2, "what cannot pass is not tried again");
}

#[test]
fn a_decision_too_large_to_be_written_ends_the_turn_all_the_same() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let input = agent.next_input().unwrap();
    let (limits, catalogue) = (limits(), catalogue());
    let instead = Deliberation::oversize_fallback(&agent.mind.state, &input, &catalogue, &limits, Vec::new()).unwrap();
    let decided = agent.write(&AGENT_DECISION, Some(&input.record.envelope), instead);
    assert_eq!(acts(&decided)[0], "malformed_answer?");
    assert!(agent.mind.state.turns.is_empty());
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn a_malformed_call_is_shown_to_the_model() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let mut broken = calls(&["tools.now"]);
    broken.tool_calls[0].arguments = "{not json".into();
    let decided = agent.decides(&[broken, calls(&["no.such"]), calls(&["tools.now"])]).unwrap();
    assert_eq!(acts(&decided), ["malformed_tool_call?", "malformed_tool_call?", "tools.now!"]);
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("no tool named") && shown.contains("not JSON"), "{shown}");
}

#[test]
fn too_many_calls_at_once_are_refused() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let decided = agent.decides(&[calls(&["tools.now"; 3]), says("ok")]).unwrap();
    assert_eq!(acts(&decided), ["malformed_tool_call?", "ok"]);
}

#[test]
fn the_last_step_of_a_turn_offers_the_same_tools_and_lets_none_be_called() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    for _ in 0..3 {
        let asked = agent.decides(&[calls(&["tools.now"])]).unwrap();
        agent.learns(&asked, &actions(&asked)[0], "1");
    }
    agent.decides(&[says("enough")]).unwrap();
    let offered: Vec<usize> = agent.asked.iter().map(|request| request.tools.len()).collect();
    let of_groups = |tool: &str| {
        crate::intrinsics::team::is_of_leads(tool)
            || crate::intrinsics::members::is_of_composites(tool)
            || crate::intrinsics::inner_state::is_of_inner_state(tool)
            || crate::intrinsics::submodules::is_of_submodules(tool)
    };
    let of_others = |tool: &str| crate::intrinsics::tasks::is_of_queue(tool) || of_groups(tool);
    let own = crate::intrinsics::all().filter(|intrinsic| !of_others(&intrinsic.tool.name));
    let all = catalogue().tools.len() + own.count();
    assert_eq!(offered, [all, all, all, all]);
    let may_call: Vec<bool> = agent.asked.iter().map(|request| request.may_call_tools()).collect();
    assert_eq!(may_call, [true, true, true, false]);
    assert_eq!(agent.asked.last().unwrap().tool_choice, ToolChoice::None);
}

#[test]
fn an_input_behind_the_cursor_is_not_known_to_the_decision_before_it() {
    let mut agent = Agent::new();
    agent.hears("m1", "first");
    let input = agent.next_input().unwrap();
    let (limits, catalogue) = (limits(), catalogue());
    let (thought, _) = Deliberation::begin(&agent.mind.state, &input, &catalogue, &limits).unwrap();
    let (_, DeliberationStep::Commit(first)) = thought.resume(vec![says("one")]) else { panic!("no decision") };
    agent.hears("m2", "second");
    agent.write(&AGENT_DECISION, Some(&input.record.envelope), *first);
    agent.decides(&[says("two")]).unwrap();
    let shown = |request: &ModelRequest| format!("{:?}", request.messages);
    assert!(shown(&agent.asked[0]).contains("second"));
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn what_somebody_else_decided_on_less_makes_the_state_start_again() {
    let mut agent = Agent::new();
    agent.hears("m1", "first");
    let again = agent.hears("m1", "first");
    agent.hears("m1", "first");
    agent.hears("m2", "second");
    agent.decides(&[says("one")]).unwrap();
    agent.next_input().unwrap();
    let stale = AgentDecision { cursor: again.sequence, ..Default::default() };
    let decided = agent.log.last().unwrap().clone();
    let record = Record { sequence: decided.sequence + 1, body: stale.into(), ..decided };
    assert_eq!(agent.mind.push(record), Err(Divergence));
}

#[test]
fn a_copy_of_a_decision_moves_the_guard_and_nothing_else() {
    let mut agent = Agent::new();
    agent.hears("m1", "first");
    let first = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.learns(&first, &actions(&first)[0], "1");
    agent.decides(&[says("one")]).unwrap();
    let mut expected = (*agent.mind.state).clone();
    expected.decided = agent.log.len() as u64 + 1;
    agent.mind.push(Record { sequence: expected.decided, ..first }).unwrap();
    assert_eq!(*agent.mind.state, expected);
}

#[test]
fn users_choose_their_message_ids_without_knowing_of_each_other() {
    let mut agent = Agent::new();
    agent.hears("m1", "first");
    let message = AgentMessage { message_id: "m1".into(), user: "bob".into(), ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    agent.decides(&[says("one")]).unwrap();
    assert!(agent.next_input().is_some());
}

#[derive(Clone, Debug)]
enum Happening {
    Hear(u8),
    Result(usize),
    Order(usize),
    Decide(bool),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..12u8).prop_map(Happening::Hear),
        (0..8usize).prop_map(Happening::Result),
        (0..8usize).prop_map(Happening::Order),
        any::<bool>().prop_map(Happening::Decide),
        any::<bool>().prop_map(Happening::Decide),
    ]
}

fn live(happenings: &[Happening]) -> Agent {
    let mut agent = Agent::new();
    let mut asked: Vec<(Record, String)> = Vec::new();
    for happening in happenings {
        match happening {
            Happening::Hear(message) => _ = agent.hears(&message.to_string(), "hello"),
            Happening::Result(which) if !asked.is_empty() => {
                let (decision, action) = asked[which % asked.len()].clone();
                agent.learns(&decision, &action, "{}");
            }
            Happening::Order(which) if !asked.is_empty() => {
                let (_, action) = &asked[which % asked.len()];
                agent.is_ordered(&format!("c{}", agent.log.len() / 2), action);
            }
            Happening::Result(_) | Happening::Order(_) => {}
            Happening::Decide(call) => {
                // On the last step no tool may be called, and the model would be asked again.
                let Some(input) = agent.next_input() else { continue };
                let (_, turn) = agent.mind.state.due_turn(input.record.sequence).unwrap();
                let answer =
                    if *call && turn.steps + 1 < limits().max_steps { calls(&["tools.now"]) } else { says("hi") };
                // Orders are obeyed without asking.
                let decided = agent.decides_with(|_| answer.clone()).unwrap();
                asked.extend(actions(&decided).into_iter().map(|action| (decided.clone(), action)));
            }
        }
    }
    agent
}

fn bytes(log: &Log) -> Vec<u8> {
    serde_json::to_vec(&log.state).unwrap()
}

proptest! {
    /// Folding the log from its beginning, or from a snapshot taken anywhere, gives the very same bytes.
    #[test]
    fn folding_again_gives_the_same_bytes(happenings in prop::collection::vec(happening(), 0..60), cut in 0..60usize) {
        let mut agent = live(&happenings);
        while agent.decides_with(|_| says("done")).is_some() {}
        let mut again = Log::default();
        let mut saved = None;
        for (position, record) in agent.log.iter().enumerate() {
            again.push(record.clone()).unwrap();
            if position >= cut && saved.is_none() {
                saved = Some(serde_json::to_vec(&again.snapshot(LOG)).unwrap());
            }
        }
        while again.next_input().is_some() {}
        prop_assert_eq!(bytes(&again), bytes(&agent.mind));
        if let Some(saved) = saved {
            let snapshot: Snapshot = serde_json::from_slice(&saved).unwrap();
            let ahead = snapshot.ahead.clone();
            let mut resumed = Log::from_snapshot(snapshot, LOG).unwrap();
            let after = resumed.read;
            for sequence in ahead {
                resumed.supply_record(sequence, Some(agent.log[usize::try_from(sequence).unwrap() - 1].clone()));
            }
            for record in agent.log.iter().filter(|record| record.sequence > after) {
                resumed.push(record.clone()).unwrap();
            }
            while resumed.next_input().is_some() {}
            prop_assert_eq!(bytes(&resumed), bytes(&agent.mind));
        }
    }

    /// Every message is answered exactly once, however often it comes, once its tools have results.
    #[test]
    fn every_message_is_answered_exactly_once(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut agent = live(&happenings);
        loop {
            while agent.decides_with(|_| says("done")).is_some() {}
            let Some((action, known)) = agent.mind.state.in_flight.iter().next().map(|(id, known)| (*id, known.clone()))
            else { break };
            let decided = agent.log.iter().find(|record| {
                matches!(&record.body, Body::AgentDecision(_)) && record.envelope.correlation_id == known.turn
            }).unwrap().clone();
            agent.learns(&decided, &action.to_string(), "{}");
        }
        let messages = agent.log.iter().filter_map(|record| AgentMessage::of(&record.body));
        let heard: std::collections::BTreeSet<String> = messages.map(|message| message.message_id.clone()).collect();
        let mut answered: Vec<String> = Vec::new();
        for record in agent.log.iter().filter(|record| matches!(record.body, Body::AgentDecision(_))) {
            for event in &decision(record).events {
                if let Some(Event::Action(AgentAction { action: Some(Action::Say(say)) })) = &event.event && say.r#final {
                    answered.push(say.message_id.clone());
                }
            }
        }
        answered.sort();
        prop_assert_eq!(answered, heard.into_iter().collect::<Vec<_>>());
    }
}

/// An agent that resumes from a snapshot knows only the positions of the inputs that a later decision passes.
#[test]
fn what_a_decision_passes_can_be_read_before_it_is_taken_in() {
    let mut agent = Agent::new();
    let input = agent.hears("m1", "hello");
    let mut log = Log::default();
    agent.log.iter().for_each(|record| _ = log.push(record.clone()).unwrap());
    let before = log.snapshot(LOG);
    let decided = agent.decides(&[says("hi")]).unwrap();
    let mut resumed = Log::from_snapshot(before.clone(), LOG).unwrap();
    assert_eq!(resumed.missing_for(&input), Vec::<u64>::new(), "only decisions pass anything");
    let lacking = resumed.missing_for(&decided);
    assert_eq!(lacking, before.ahead);
    assert!(resumed.push(decided.clone()).is_err(), "nobody knows what it passes");
    let mut resumed = Log::from_snapshot(before, LOG).unwrap();
    for sequence in lacking {
        resumed.supply_record(sequence, Some(agent.log[usize::try_from(sequence).unwrap() - 1].clone()));
    }
    assert_eq!(resumed.missing_for(&decided), Vec::<u64>::new());
    resumed.push(decided).unwrap();
    assert_eq!(bytes(&resumed), bytes(&agent.mind));
}

#[test]
fn the_id_of_a_decision_comes_from_its_input() {
    let mut agent = Agent::new();
    let input = agent.hears("m1", "hello");
    let decided = agent.decides(&[says("hi")]).unwrap();
    assert_eq!(decision(&decided).input_id, input.envelope.id.to_string());
    let first = Uuid::parse_str(&decision(&decided).events[0].event_id).unwrap();
    assert_eq!(first, ids::derive(super::deliberation::decision_id(&input), "0"));
}
