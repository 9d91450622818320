use kairo_core::{
    envelope::{Envelope, Origin},
    subjects::Service,
};
use kairo_proto::v1::{
    self, AgentAction, AgentDecision, AgentJoined, ApprovalRequested, ChainEnded, ChainStarted, ChainStepEnded,
    DecidedEvent, ProcessExited, Say, Task, TaskChanged, TaskFired, TaskScheduled, ThreadMatched, ThreadSuggested,
    ToolError, ToolResult, agent_action::Action,
};
use uuid::Uuid;

use super::*;
use crate::chaos::peers::book::What;

const USER: &str = "ann";

/// A log to which a second is added with each message.
#[derive(Default)]
struct Told(Log);

impl Told {
    fn write(&mut self, again: bool, subject: &str, body: Body) -> &mut Self {
        let sequence = self.0.entries.len() as u64 + 1;
        let stored = time(sequence);
        let envelope = Envelope::from_outside(Uuid::from_u128(sequence.into()), Service::Gateway, Origin::User, stored);
        let record = Record { sequence, subject: subject.to_owned(), envelope, body };
        self.0.entries.push(Entry { stored, record, again });
        self
    }

    fn decide(&mut self, event_id: &str, action: Action) -> &mut Self {
        self.commit(event_id, Event::Action(AgentAction { action: Some(action) }))
    }

    fn join(&mut self, message: &str, into: &str) -> &mut Self {
        let (message_id, into_message_id) = (message.to_owned(), into.to_owned());
        let joined = AgentJoined { message_id, into_message_id, ..AgentJoined::default() };
        self.commit(&Uuid::nil().to_string(), Event::Joined(joined))
    }

    fn commit(&mut self, event_id: &str, event: Event) -> &mut Self {
        let event = DecidedEvent { event_id: event_id.to_owned(), event: Some(event), ..DecidedEvent::default() };
        let decision = AgentDecision { events: vec![event], ..AgentDecision::default() };
        self.write(false, "kairo.agent.a.decision", decision.into())
    }

    fn reply(&mut self, message: &str, text: &str) -> &mut Self {
        let (text, user, message_id) = (text.to_owned(), USER.to_owned(), message.to_owned());
        self.decide(
            &Uuid::nil().to_string(),
            Action::Say(Say { text, user, message_id, r#final: true, ..Default::default() }),
        )
    }

    fn call(&mut self, action: &str, tool: &str, arguments: serde_json::Value) -> &mut Self {
        let call = ToolCall { tool: tool.to_owned(), arguments: arguments.to_string(), ..ToolCall::default() };
        self.decide(action, Action::ToolCall(call))
    }

    fn fetch(&mut self, action: &str, effect: &str) -> &mut Self {
        self.call(action, "http.get", serde_json::json!({ "url": format!("http://oracle/effects/{effect}") }))
    }

    fn process(&mut self, action: &str, tool: &str, effect: &str) -> &mut Self {
        self.call(action, tool, serde_json::json!({ "program": "effect", "args": [effect, "0"] }))
    }

    fn ended(&mut self, action: &str, error: Option<&str>) -> &mut Self {
        let error = error.map(|kind| ToolError { kind: kind.to_owned(), message: String::new() });
        let ok = error.is_none();
        let result = ToolResult { action_id: action.to_owned(), ok, error, ..ToolResult::default() };
        self.write(false, "kairo.tool.a.result", result.into())
    }

    /// A task's chain that calls a tool.
    fn act(&mut self, task: &str, chain: &str) {
        let (chain_id, task_id) = (chain.to_owned(), task.to_owned());
        let started = ChainStarted { chain_id: chain_id.clone(), task_id, ..ChainStarted::default() };
        self.commit("", Event::ChainStarted(started));
        self.decide("", Action::ToolCall(ToolCall { chain_id, ..ToolCall::default() }));
    }

    fn judge(&self, sent: &[(&str, Sent)], effects: &Effects) -> Verdict {
        let sent = sent.iter().map(|(id, sent)| ((*id).to_owned(), sent.clone())).collect();
        let (requests, struck, restarting) = (&[], &[], &BTreeSet::new());
        let (errands, gone, over) = (&[], &[], Timestamp::MAX);
        Evidence { log: &self.0, sent: &sent, effects, errands, gone, requests, struck, over, restarting }.judge()
    }

    fn judge_peers(&self, errands: &[Line], gone: &[Struck]) -> Verdict {
        let (sent, effects, restarting) = Default::default();
        let (requests, struck, over) = (&[], &[], Timestamp::MAX);
        let (sent, effects, restarting) = (&sent, &effects, &restarting);
        Evidence { log: &self.0, sent, effects, errands, gone, requests, struck, over, restarting }.judge()
    }
}

fn time(second: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
}

fn sent(events: &[&str]) -> Sent {
    let accepted = events.iter().map(|id| (*id).to_owned()).collect();
    Sent { tried: time(0), accepted, ..Sent::default() }
}

fn effects(keyed: &[(&str, usize)], unkeyed: &[(&str, usize)]) -> Effects {
    let counts = |counts: &[(&str, usize)]| counts.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect();
    Effects { keyed: counts(keyed), unkeyed: counts(unkeyed) }
}

#[test]
fn a_message_is_answered_once_and_with_its_own_answer() {
    let mut told = Told::default();
    told.reply("m1", "Done: m1 .").reply("m2", "Done: m1 .").reply("m4", "Done: m4 .").reply("m4", "Done: m4 .");
    let all = ["m1", "m2", "m3", "m4"].map(|id| (id, sent(&["e"])));
    let verdict = told.judge(&all, &Effects::default());
    assert_eq!((verdict.messages, verdict.replies), (4, 4));
    assert_eq!(verdict.lost, ["m3"]);
    assert_eq!(verdict.doubled, ["m4"]);
    assert_eq!(verdict.misanswered, ["m2: Done: m1 ."]);
}

#[test]
fn a_joined_message_has_the_answer_of_the_other_and_none_of_its_own() {
    let mut told = Told::default();
    told.join("m1", "m2").reply("m2", "Done: m2 .").join("m3", "m5");
    told.join("m4", "m2").reply("m4", "Done: m4 .");
    let all = ["m1", "m2", "m3", "m4"].map(|id| (id, sent(&["e"])));
    let verdict = told.judge(&all, &Effects::default());
    assert_eq!((verdict.messages, verdict.replies, verdict.joined), (4, 2, 3));
    assert_eq!(verdict.lost, ["m3"]);
    assert_eq!(verdict.doubled, ["m4"]);
    assert!(verdict.misanswered.is_empty());
}

#[test]
fn a_message_that_became_two_events_is_doubled_and_one_that_was_never_accepted_is_not_lost() {
    let mut told = Told::default();
    told.reply("m1", "Done: m1 .");
    let refused = Sent { refused: Some("400".to_owned()), ..sent(&[]) };
    let verdict = told.judge(&[("m1", sent(&["e", "f"])), ("m2", sent(&[])), ("m3", refused)], &Effects::default());
    assert_eq!((verdict.messages, verdict.lost.len()), (1, 0));
    assert_eq!(verdict.doubled, ["m1"]);
    assert_eq!(verdict.refused, ["m3: 400"]);
}

#[test]
fn what_was_published_again_does_not_count() {
    let mut told = Told::default();
    told.reply("m1", "Done: m1 .");
    let again = told.0.entries[0].record.clone();
    told.write(true, &again.subject, again.body);
    assert_eq!(told.judge(&[("m1", sent(&["e"]))], &Effects::default()).doubled, Vec::<String>::new());
}

#[test]
fn effects_are_counted_against_those_that_were_asked_for() {
    let mut told = Told::default();
    for effect in ["once", "twice", "never"] {
        told.fetch(effect, effect).process(&format!("p-{effect}"), "process.run", &format!("p-{effect}"));
    }
    let counts = effects(&[("once", 1), ("twice", 2), ("odd", 1)], &[("p-once", 1), ("p-twice", 2)]);
    let verdict = told.judge(&[], &counts);
    assert_eq!((verdict.asked, verdict.done_once, verdict.not_done), (6, 2, 2));
    assert_eq!(verdict.not_done_keyed, ["never"]);
    assert_eq!(verdict.done_twice_keyed, ["twice"]);
    assert_eq!(verdict.done_twice_unkeyed, ["p-twice"]);
    assert_eq!(verdict.unasked, ["odd"]);
}

#[test]
fn an_effect_asked_for_by_two_actions_is_one_effect() {
    let mut told = Told::default();
    told.fetch("a", "e").fetch("b", "e");
    let verdict = told.judge(&[], &effects(&[("e", 2)], &[]));
    assert_eq!((verdict.asked, verdict.done_twice_keyed.len()), (1, 1));
}

#[test]
fn an_action_that_went_well_had_its_effect() {
    let mut told = Told::default();
    told.fetch("a", "a").ended("a", None).fetch("b", "b").ended("b", None).fetch("c", "c").ended("c", Some("failed"));
    let verdict = told.judge(&[], &effects(&[("a", 1)], &[]));
    assert_eq!(verdict.pretended, ["b by action b"]);
    told.fetch("d", "d").ended("d", Some("timed_out"));
    told.call("e", "action.cancel", serde_json::json!({})).ended("e", Some("failed"));
    let verdict = told.judge(&[], &effects(&[("a", 1)], &[]));
    assert_eq!(verdict.failures, BTreeMap::from([("failed".to_owned(), 2), ("timed_out".to_owned(), 1)]));
    assert_eq!(verdict.needlessly_failed, ["failed: c"]);
}

#[test]
fn a_process_in_the_background_has_its_effect_when_it_ran_and_not_when_it_was_started() {
    let mut told = Told::default();
    told.process("a", "process.spawn", "a").ended("a", None).process("b", "process.spawn", "b").ended("b", None);
    let exited = ProcessExited { action_id: "b".to_owned(), outcome: "exited".to_owned(), ..ProcessExited::default() };
    told.write(false, "kairo.process.a.exited", exited.into());
    assert_eq!(told.judge(&[], &Effects::default()).pretended, ["b by action b"]);
}

#[test]
fn what_is_in_doubt_is_counted_apart() {
    let mut told = Told::default();
    told.process("a", "process.run", "a").ended("a", Some("in_doubt"));
    told.fetch("b", "b").ended("b", Some("in_doubt"));
    let verdict = told.judge(&[], &Effects::default());
    assert_eq!((verdict.in_doubt, verdict.not_done, verdict.failures.len()), (1, 2, 0));
    assert_eq!(verdict.needlessly_in_doubt, ["b"], "it could have been done again");
}

#[test]
fn stalls_are_measured_by_the_times_at_which_things_were_stored() {
    let mut told = Told::default();
    told.reply("m1", "Done: m1 .");
    told.0.entries[0].stored = time(7);
    let body = v1::UserMessage::default();
    told.write(false, "kairo.user.ann.message", body.into());
    told.0.entries[1].stored = time(10);
    let verdict = told.judge(&[("m1", sent(&["e"]))], &Effects::default());
    assert_eq!(
        verdict.longest_reply.map(|stall| (stall.seconds, stall.what)),
        Some((7.0, "the reply to m1".to_owned()))
    );
    assert_eq!(verdict.longest_silence.map(|stall| stall.seconds), Some(3.0));
}

fn chain_started(id: &str) -> Event {
    Event::ChainStarted(ChainStarted { chain_id: id.to_owned(), ..ChainStarted::default() })
}

fn chain_ended(id: &str) -> Event {
    Event::ChainEnded(ChainEnded { chain_id: id.to_owned(), ..ChainEnded::default() })
}

fn task(id: &str, kind: &str) -> Event {
    let (task_id, kind) = (id.to_owned(), kind.to_owned());
    Event::TaskScheduled(TaskScheduled { task: Some(Task { task_id, kind, ..Task::default() }) })
}

fn fired(id: &str, occurrence: u64) -> Event {
    Event::TaskFired(TaskFired { task_id: id.to_owned(), occurrence, ..TaskFired::default() })
}

#[test]
fn every_chain_ends_once_and_calls_the_tool_of_each_step_once() {
    let mut told = Told::default();
    for event in [chain_started("a"), chain_started("b"), chain_started("c"), chain_ended("a")] {
        told.commit("", event);
    }
    told.commit("", chain_ended("c")).commit("", chain_ended("c"));
    for (chain, step) in [("a", 0), ("a", 1), ("b", 1), ("b", 1)] {
        let call = ToolCall { chain_id: chain.to_owned(), step, ..ToolCall::default() };
        told.decide("", Action::ToolCall(call));
    }
    let verdict = told.judge(&[], &Effects::default());
    assert_eq!((verdict.chains, verdict.chains_not_ended), (3, vec!["b".to_owned()]));
    assert_eq!(verdict.chains_ended_twice, ["c, 2 times"]);
    assert_eq!(verdict.steps_twice, ["step 1 of b, 2 times"]);
}

#[test]
fn every_time_of_a_task_is_dealt_with_once_and_none_is_left_out() {
    let mut told = Told::default();
    for (id, kind, times) in [
        ("good", "scheduled", &[1, 2, 3][..]),
        ("hook", "hook", &[0]),
        ("twice", "scheduled", &[1, 2, 2]),
        ("hook twice", "hook", &[0, 0]),
        ("gap", "scheduled", &[1, 3]),
        ("never", "scheduled", &[]),
        ("canceled", "scheduled", &[]),
    ] {
        told.commit("", task(id, kind));
        for (time, number) in times.iter().zip(0..) {
            told.commit("", fired(id, *time));
            // The last time of one of them does nothing.
            if (id, number) != ("good", 2) {
                told.act(id, &format!("{id}/{number}"));
            }
        }
    }
    let (task_id, status) = ("canceled".to_owned(), "canceled".to_owned());
    told.commit("", Event::TaskChanged(TaskChanged { task_id, status, ..TaskChanged::default() }));
    let verdict = told.judge(&[], &Effects::default());
    let ids = |found: &[String]| -> Vec<String> {
        found.iter().map(|text| text.split_once(", ").unwrap().1.split_once(')').unwrap().0.to_owned()).collect()
    };
    assert_eq!(verdict.task_times, 11);
    assert_eq!(ids(&verdict.task_times_idle), ["good"]);
    assert_eq!(ids(&verdict.task_times_twice), ["hook twice", "twice"]);
    assert_eq!(ids(&verdict.task_times_missed), ["gap", "never", "twice"]);
}

#[test]
fn every_question_is_gone_on_with_and_no_message_is_put_into_two_threads() {
    let mut told = Told::default();
    for message in ["m1", "m2"] {
        let message_id = message.to_owned();
        told.commit("", Event::ThreadSuggested(ThreadSuggested { message_id, ..ThreadSuggested::default() }));
    }
    for message in ["m1", "m3", "m3"] {
        let message_id = message.to_owned();
        told.commit("", Event::ThreadMatched(ThreadMatched { message_id, ..ThreadMatched::default() }));
    }
    let verdict = told.judge(&[], &Effects::default());
    assert_eq!((verdict.questions, verdict.questions_open), (2, vec!["m2".to_owned()]));
    assert_eq!(verdict.placed_twice, ["m3, 2 times"]);
}

#[test]
fn no_tool_is_called_before_there_is_consent_and_every_request_comes_to_something() {
    let mut told = Told::default();
    for (request, chain) in [("yes", "a"), ("no", "b"), ("open", "c")] {
        let chain_id = chain.to_owned();
        told.commit(request, Event::ApprovalRequested(ApprovalRequested { chain_id, ..ApprovalRequested::default() }));
    }
    let stopped = ChainStepEnded { chain_id: "b".to_owned(), ..ChainStepEnded::default() };
    told.commit("", Event::ChainStepEnded(stopped));
    for (action, approval_id) in [("asked", "yes"), ("unasked", "")] {
        let (tool, approval_id) = (scenario::GUARDED.to_owned(), approval_id.to_owned());
        told.decide(action, Action::ToolCall(ToolCall { tool, approval_id, ..ToolCall::default() }));
    }
    let verdict = told.judge(&[], &Effects::default());
    assert_eq!((verdict.questions, verdict.questions_open), (3, vec!["consent open".to_owned()]));
    assert_eq!(verdict.unconsented, ["unasked"]);
}

const ACTION: &str = "a1";

/// Builds the line that a peer writes about a call for an effect.
fn errand(what: What, second: u64) -> Line {
    let (key, caller) = (ACTION.to_owned(), "kairo-tool-runner-0".to_owned());
    let errand = peers::Errand { effect: "e".to_owned(), key, caller, is_keyed: false };
    Line { what, errand, at: time(second), due: None }
}

#[test]
fn calls_of_peers_are_judged_by_what_happened_in_the_end() {
    let happened = || vec![errand(What::Call, 100), errand(What::Effect, 101)];
    let answered = || [happened(), vec![errand(What::Answer, 102)]].concat();
    let struck = |second| Struck { replica: "kairo-tool-runner-0".to_owned(), at: time(second) };
    for (errors, lines, gone, expected) in [
        // Of results: the errors of the first and of a late one. Found: denied, unheard, in doubt, settled.
        (vec![Some("failed")], happened(), vec![], (1, 0, 0, 0)),
        (vec![Some("timed_out")], happened(), vec![], (1, 0, 0, 0)),
        (vec![Some("failed")], vec![errand(What::Call, 100)], vec![], (0, 0, 0, 0)),
        (vec![Some("in_doubt")], happened(), vec![], (0, 0, 1, 0)),
        (vec![Some("in_doubt")], answered(), vec![], (0, 1, 1, 0)),
        (vec![Some("in_doubt")], answered(), vec![struck(101)], (0, 0, 1, 0)),
        (vec![Some("in_doubt")], answered(), vec![struck(50)], (0, 1, 1, 0)),
        (vec![Some("in_doubt"), None], answered(), vec![], (0, 0, 1, 1)),
        (vec![Some("in_doubt"), Some("failed")], answered(), vec![], (1, 0, 1, 1)),
    ] {
        let mut told = Told::default();
        told.call(ACTION, "shop.pay", serde_json::json!({ "effect": "e" }));
        for (number, error) in errors.iter().enumerate() {
            let error = error.map(|kind| ToolError { kind: kind.to_owned(), message: String::new() });
            let (ok, late) = (error.is_none(), number > 0);
            let result = ToolResult { action_id: ACTION.to_owned(), ok, late, error, ..ToolResult::default() };
            told.write(false, "kairo.tool.a.result", result.into());
        }
        let found = told.judge_peers(&lines, &gone).errands;
        let counted = (found.denied.len(), found.unheard.len(), found.in_doubt, found.settled);
        assert_eq!((found.calls, counted), (1, expected), "{errors:?} {lines:?}");
    }
}

#[test]
fn what_was_stopped_before_it_began_has_no_effect() {
    for (begins_first, effects_of_it, expected) in [(false, 0, (1, 0)), (false, 1, (1, 1)), (true, 1, (0, 0))] {
        let mut told = Told::default();
        let begin = |told: &mut Told| {
            let action = v1::ToolInvocation { action_id: ACTION.to_owned(), ..Default::default() };
            let invoke = v1::ToolInvoke { actions: vec![action], ..Default::default() };
            told.write(false, "kairo.tool.a.invoke", invoke.into());
        };
        told.call(ACTION, "shop.pay", serde_json::json!({ "effect": "e" }));
        if begins_first {
            begin(&mut told);
        }
        let (tool, target_action_id) = ("action.cancel".to_owned(), ACTION.to_owned());
        told.decide("c1", Action::ToolCall(ToolCall { tool, target_action_id, ..ToolCall::default() }));
        if !begins_first {
            begin(&mut told);
        }
        let found = told.judge(&[], &effects(&[], &[("e", effects_of_it)])).errands;
        assert_eq!((found.stopped, found.begun_after_stop.len()), expected, "{begins_first} {effects_of_it}");
    }
}
