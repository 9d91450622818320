//! Agents that plan: matching, planning, compiling, and the steps of a chain.

use kairo_events::subjects::{AGENT_APPROVAL, AGENT_CHOICE, AGENT_COMMAND, TASK_DUE};
use kairo_proto::{
    Decided,
    about::{self, Chain, Turn},
    v1::{AgentApproval, AgentChoice, AgentCommand, DecidedEvent, TaskDue, ToolError},
};
use serde_json::{Value, json};

use super::{super::chain::StepState, *};

pub(super) fn planner() -> Agent {
    Agent::with(AgentProfile { planning: "chain".into(), threads: "topics".into(), ..Default::default() })
}

pub(super) fn plan(text: &str) -> Completion {
    says(&json!({ "event": "agent.chain", "params": { "plan": text } }).to_string())
}

pub(super) fn chain(steps: Value) -> Completion {
    says(&steps.to_string())
}

pub(super) fn summary() -> Completion {
    says(r#"{"title": "A subject", "summary": "What it is about."}"#)
}

/// The events of a decision by their kind, calls with their tool.
pub(super) fn kinds(record: &Record) -> Vec<String> {
    decision(record).events.iter().map(kind).collect()
}

fn kind(event: &DecidedEvent) -> String {
    match event.event.as_ref().unwrap().about() {
        Decided::Turn(Turn::Action(AgentAction { action: Some(Action::Say(say)) })) => format!("say {}", say.text),
        Decided::Turn(Turn::Action(AgentAction { action: Some(Action::ToolCall(call)) })) => {
            format!("call {}", call.tool)
        }
        Decided::Turn(Turn::Action(AgentAction { action: None })) => "nothing".into(),
        Decided::Turn(Turn::Action(AgentAction { action: Some(Action::Ask(ask)) })) => {
            format!("asks {} to {}", ask.agent, ask.kind)
        }
        Decided::Turn(Turn::Goal(goal)) => format!("goal {}", goal.text),
        Decided::Turn(Turn::Reflected(reflected)) => format!("reflected {}", reflected.verdict),
        Decided::Turn(Turn::Answered(answered)) => format!("answers {}", answered.status),
        Decided::Turn(Turn::Briefed(briefed)) => format!("briefed {}", briefed.told),
        Decided::Turn(Turn::TeamChanged(changed)) => format!("team {}", changed.status),
        Decided::Turn(Turn::Failed(failed)) => format!("failed {}", failed.kind),
        Decided::Turn(Turn::Thought(thought)) if thought.module.is_empty() => "thought".into(),
        Decided::Turn(Turn::Thought(thought)) => format!("{} thinks {}", thought.module, thought.text),
        Decided::Turn(Turn::SubmoduleChanged(changed)) => {
            format!("submodule {} {}", changed.name, if changed.submodule.is_some() { "added" } else { "removed" })
        }
        Decided::Turn(Turn::SubmoduleFailed(failed)) => format!("{} {}", failed.module, failed.kind),
        Decided::Turn(Turn::SubmoduleAsked(asked)) => {
            format!("asks {} {} {}", asked.round, asked.module, asked.question)
        }
        Decided::Turn(Turn::Broadcast(told)) => format!("broadcast {}", told.modules.join(" ")),
        Decided::Turn(Turn::Joined(_)) => "joined".into(),
        Decided::Thread(about::Thread::Matched(matched)) => format!("matched {}", matched.action),
        Decided::Thread(about::Thread::Suggested(suggested)) => suggested.action.clone(),
        Decided::Thread(about::Thread::Created(_)) => "created".into(),
        Decided::Thread(about::Thread::Summarized(_)) => "summarized".into(),
        Decided::Thread(about::Thread::Archived(_)) => "archived".into(),
        Decided::Thread(about::Thread::Completed(_)) => "completed".into(),
        Decided::Thread(about::Thread::Compacted(_)) => "compacted".into(),
        Decided::Chain(Chain::StepEnded(ended)) => format!("step {} {}", ended.step, ended.outcome),
        Decided::Chain(Chain::Ended(ended)) => format!("chain {}", ended.outcome),
        Decided::Chain(Chain::Started(_)) => "chain started".into(),
        Decided::Chain(Chain::ApprovalRequested(asked)) => format!("consent {}", asked.tool),
        Decided::Task(about::Task::Scheduled(_)) => "task scheduled".into(),
        Decided::Task(about::Task::Fired(_)) => "task fired".into(),
        Decided::Task(about::Task::Changed(changed)) => format!("task {}", changed.status),
        Decided::Task(about::Task::Started(_)) => "task started".into(),
        Decided::Task(about::Task::Ended(ended)) => format!("task {}", ended.status),
        Decided::Memory(_) => "memory".into(),
        Decided::State(about::State::Written(written)) => format!("state {}", written.key),
        Decided::State(about::State::Deleted(deleted)) => format!("state without {}", deleted.key),
    }
}

/// The calls of a decision: action id and arguments.
pub(super) fn called(record: &Record) -> Vec<(String, Value)> {
    let call = |event: &DecidedEvent| {
        Some((event.event_id.clone(), serde_json::from_str(&event.tool_call()?.arguments).unwrap()))
    };
    decision(record).events.iter().filter_map(call).collect()
}

fn event_id(record: &Record, wanted: &str) -> String {
    let events = &decision(record).events;
    events.iter().find(|event| kind(event) == wanted).unwrap_or_else(|| panic!("{:?}", kinds(record))).event_id.clone()
}

impl Agent {
    fn chooses(&mut self, offer_id: &str, option: &str) {
        let choice = AgentChoice {
            choice_id: format!("{offer_id}-{option}"),
            user: "ann".into(),
            offer_id: offer_id.into(),
            option: option.into(),
        };
        self.write(&AGENT_CHOICE, None, choice);
    }

    fn rules(&mut self, action_id: &str, verdict: &str) {
        let approval = AgentApproval {
            approval_id: format!("{action_id}-{verdict}"),
            user: "ann".into(),
            action_id: action_id.into(),
            verdict: verdict.into(),
            note: "too soon".into(),
            arguments: String::new(),
        };
        self.write(&AGENT_APPROVAL, None, approval);
    }

    fn learns_of_failure(&mut self, decided: &Record, action: &str) {
        let error = Some(ToolError { kind: "failed".into(), message: "no route".into() });
        let result = ToolResult { action_id: action.into(), ok: false, error, ..Default::default() };
        let cause = decided.envelope.clone();
        self.write(&TOOL_RESULT, Some(&cause), result);
    }
}

#[test]
fn a_plan_becomes_a_chain_whose_steps_use_earlier_results() {
    let mut agent = planner();
    agent.hears("m1", "what is the time there?");
    let steps = json!([
        "tools.now",
        [
            { "event": "http.get", "params": { "url": "http://a/{tools.now.now}" } },
            { "event": "http.get", "params": { "url": "http://b" } }
        ],
        { "event": "agent.think", "params": { "prompt": "compare" } },
    ]);
    let first = agent.decides(&[plan("1. look"), chain(steps)]).unwrap();
    assert_eq!(kinds(&first), ["matched new", "created", "chain started", "call tools.now"]);
    agent.learns(&first, &called(&first)[0].0, r#"{"now": "noon"}"#);

    let second = agent.decides(&[]).unwrap();
    let calls = called(&second);
    assert_eq!(calls[0].1, json!({ "url": "http://a/noon" }));
    assert_eq!(calls.len(), 2, "a group is called at once");
    agent.learns(&second, &calls[1].0, r#"{"body": "b"}"#);
    assert!(agent.decides(&[]).is_none(), "the group is not over");
    agent.learns(&second, &calls[0].0, r#"{"body": "a"}"#);

    let last = agent.decides(&[says("they differ"), says("It is noon."), summary()]).unwrap();
    let expected = ["step 3 done", "step 4 done", "chain done", "say It is noon.", "summarized"];
    assert_eq!(kinds(&last), expected);
    assert!(agent.mind.state.turns.is_empty());
    let thread = agent.mind.state.threads.values().next().unwrap();
    assert_eq!((thread.summary.as_str(), thread.analysis.as_str()), ("What it is about.", "they differ"));
    let shown = format!("{:?}", agent.asked.iter().rev().nth(1).unwrap().messages);
    assert!(shown.contains("they differ") && shown.contains("noon"), "{shown}");
}

#[test]
fn an_invalid_chain_is_sent_back_with_its_errors_so_often() {
    let mut agent = planner();
    agent.hears("m1", "go");
    let bad = || chain(json!([{ "event": "no.such", "params": {} }]));
    let decided = agent.decides(&[plan("1. go"), bad(), chain(json!(["tools.now"]))]).unwrap();
    assert!(kinds(&decided).contains(&"failed invalid_chain".to_owned()));
    assert!(kinds(&decided).contains(&"call tools.now".to_owned()));
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("no.such"), "{shown}");

    let mut agent = planner();
    agent.hears("m1", "go");
    let decided = agent.decides(&[plan("1. go"), bad(), bad(), bad()]).unwrap();
    assert!(kinds(&decided).last().unwrap().starts_with("say I could not finish this"));
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn a_failed_step_is_seen_by_the_next_think() {
    let mut agent = planner();
    agent.hears("m1", "go");
    let steps = json!(["http.get", "tools.now", { "event": "agent.think", "params": {} }]);
    let first = agent.decides(&[plan("1. go"), chain(steps)]).unwrap();
    agent.learns_of_failure(&first, &called(&first)[0].0);
    let last = agent.decides(&[says("That did not work."), summary()]).unwrap();
    assert_eq!(kinds(&last), ["step 2 done", "chain done", "say That did not work.", "summarized"]);
    let shown = format!("{:?}", agent.asked.iter().rev().nth(1).unwrap().messages);
    assert!(shown.contains("no route"), "{shown}");
}

#[test]
fn a_condition_is_judged_before_the_step_runs() {
    let answers = [
        (r#"{"action": "continue", "params": {"url": "http://c"}}"#, "call http.get"),
        (r#"{"action": "skip"}"#, "step 0 skipped"),
        (r#"{"action": "break"}"#, "chain broken"),
    ];
    for (answer, expected) in answers {
        let mut agent = planner();
        agent.hears("m1", "go");
        let steps = json!([{ "event": "http.get", "params": { "decide": "if urgent" } }, "tools.now"]);
        let mut completions = vec![plan("1. go"), chain(steps), says(answer)];
        if answer.contains("break") {
            completions.push(says("Not urgent."));
        }
        let decided = agent.decides(&completions).unwrap();
        assert!(kinds(&decided).contains(&expected.to_owned()), "{:?}", kinds(&decided));
        assert!(agent.asked.iter().any(|request| request.tier == "light"));
    }
}

#[test]
fn where_a_message_belongs_is_put_to_the_user() {
    let mut agent = planner();
    agent.hears("m1", "the launch");
    agent.decides(&[says("Noted.")]).unwrap();
    let first = agent.mind.state.threads.keys().next().unwrap().clone();

    agent.hears("m2", "and the dentist?");
    let asked = agent.decides(&[says(r#"{"action": "suggest_new", "reason": "personal"}"#)]).unwrap();
    assert_eq!(kinds(&asked), ["suggest_new"]);
    assert!(agent.decides(&[]).is_none(), "the message waits for the user");
    agent.chooses(&event_id(&asked, "suggest_new"), "accept");
    let answered = agent.decides(&[says("At two.")]).unwrap();
    assert_eq!(kinds(&answered), ["matched new", "created", "say At two."]);
    assert_eq!(agent.mind.state.threads.len(), 2);

    agent.hears("m3", "back to the launch");
    let answer = json!({ "action": "suggest_switch", "thread_id": first, "reason": "it was about that" });
    let asked = agent.decides(&[says(&answer.to_string())]).unwrap();
    let offer = event_id(&asked, "suggest_switch");
    agent.chooses(&offer, "perhaps");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed unknown_offer"]);
    agent.chooses(&offer, "accept");
    let answered = agent.decides(&[says("The launch it is.")]).unwrap();
    assert_eq!(kinds(&answered), ["matched switch", "say The launch it is."]);
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("the launch") && !shown.contains("dentist"), "{shown}");
    agent.chooses(&offer, "decline");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed unknown_offer"], "an offer is taken once");

    agent.hears("m4", "more");
    let answered = agent.decides(&[says("nonsense"), says("{}"), says("?"), says("Yes.")]).unwrap();
    assert!(kinds(&answered).contains(&"matched continue".to_owned()), "without an answer it stays where it is");
}

#[test]
fn a_tool_that_needs_consent_waits_for_it() {
    for (verdict, expected) in [("approved", "call email.send"), ("rejected", "say Not sent.")] {
        let mut agent = planner();
        agent.hears("m1", "write to bob");
        let steps = json!([{ "event": "email.send", "params": { "to": "bob" } }]);
        let asked = agent.decides(&[plan("1. write"), chain(steps)]).unwrap();
        assert_eq!(kinds(&asked).last().unwrap(), "consent email.send");
        let request = event_id(&asked, "consent email.send");
        agent.rules(&request, verdict);
        let answers = if verdict == "rejected" { vec![says("Not sent."), summary()] } else { vec![] };
        let decided = agent.decides(&answers).unwrap();
        assert!(kinds(&decided).contains(&expected.to_owned()), "{:?}", kinds(&decided));
        assert_eq!(kinds(&decided)[0] == "step 0 stopped", verdict == "rejected");
        if verdict == "approved" {
            let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) =
                decision(&decided).events[0].event.clone()
            else {
                panic!("no call")
            };
            assert_eq!((call.approval_id.as_str(), call.arguments.as_str()), (request.as_str(), r#"{"to":"bob"}"#));
        }
    }
}

/// The human's arguments are those of the call, and the model is told whose they are.
#[test]
fn a_call_is_made_with_the_arguments_that_were_approved() {
    for (arguments, expected) in [
        (r#"{"to":"eve"}"#, Ok(r#"{"to":"eve"}"#)),
        (r#"{"to":"bob"}"#, Ok(r#"{"to":"bob"}"#)),
        ("nonsense", Err("invalid_arguments")),
        ("[]", Err("invalid_arguments")),
    ] {
        let mut agent = planner();
        agent.hears("m1", "write to bob");
        let steps = json!([{ "event": "email.send", "params": { "to": "bob" } }]);
        let asked = agent.decides(&[plan("1. write"), chain(steps)]).unwrap();
        let action_id = event_id(&asked, "consent email.send");
        let approval = AgentApproval {
            approval_id: "p1".into(),
            user: "ann".into(),
            action_id,
            verdict: "approved".into(),
            note: "eve does it".into(),
            arguments: arguments.into(),
        };
        agent.write(&AGENT_APPROVAL, None, approval);
        let Ok(expected) = expected else {
            let decided = agent.decides_with(|_| says("As you say.")).unwrap();
            let is_told = format!("{:?}", agent.asked).contains("invalid_arguments");
            assert!(called(&decided).is_empty() && is_told, "{arguments}");
            continue;
        };
        let decided = agent.decides(&[]).unwrap();
        let calls = called(&decided);
        let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) =
            decision(&decided).events[0].event.clone()
        else {
            panic!("no call")
        };
        assert_eq!(call.arguments, expected);
        agent.learns(&decided, &calls[0].0, "{}");
        agent.decides(&[says("Sent."), summary()]).unwrap();
        let shown = format!("{:?}", agent.asked);
        let is_told = shown.contains("approved the call of email.send with other arguments");
        assert_eq!(is_told && shown.contains("eve does it"), expected.contains("eve"), "{shown}");
    }
}

#[test]
fn a_call_that_nobody_consents_to_in_time_counts_as_rejected() {
    let planning = "chain".to_owned();
    let mut agent = Agent::with(AgentProfile { planning, consent_timeout: 60, ..Default::default() });
    agent.hears("m1", "write to bob");
    let steps = json!([{ "event": "email.send", "params": { "to": "bob" } }]);
    let asked = agent.decides(&[plan("1. write"), chain(steps)]).unwrap();
    let request = event_id(&asked, "consent email.send");
    let Some(Event::ApprovalRequested(requested)) = &decision(&asked).events.last().unwrap().event else { panic!() };
    let at: Timestamp = requested.expires_at.parse().unwrap();
    assert!(at > asked.envelope.time);
    let due = TaskDue { task_id: request.clone(), occurrence: 1, due_at: requested.expires_at.clone() };
    agent.write(&TASK_DUE, None, due.clone());
    let decided = agent.decides(&[says("Not sent."), summary()]).unwrap();
    assert_eq!((kinds(&decided)[0].as_str(), called(&decided).len()), ("step 0 stopped", 0), "{:?}", kinds(&decided));
    let shown = format!("{:?}", agent.asked);
    assert!(shown.contains("nobody had answered by"), "the model is told: {shown}");
    agent.rules(&request, "approved");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed not_in_doubt"], "it is too late");
    agent.write(&TASK_DUE, None, due);
    assert!(agent.decides(&[]).is_none());
}

/// Any user may order it, as with every other action; before epoch 10 an order to cancel meant no call that waits.
#[test]
fn a_call_that_waits_for_consent_can_be_canceled() {
    for (user, includes_consents) in [("ann", true), ("operator", true), ("ann", false)] {
        let mut agent = planner();
        agent.hears("m1", "write to bob");
        let steps = json!([{ "event": "email.send", "params": { "to": "bob" } }]);
        let asked = agent.decides(&[plan("1. write"), chain(steps)]).unwrap();
        let request = event_id(&asked, "consent email.send");
        let (user, command) = (user.to_owned(), "cancel".to_owned());
        let order = |command_id: &str| AgentCommand {
            command_id: command_id.to_owned(),
            user: user.clone(),
            command: command.clone(),
            action_id: request.clone(),
            includes_consents,
            ..Default::default()
        };
        agent.write(&AGENT_COMMAND, None, order("c1"));
        if !includes_consents {
            assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed unknown_action"]);
            continue;
        }
        let decided = agent.decides(&[says("Not sent."), summary()]).unwrap();
        assert_eq!(
            (kinds(&decided)[0].as_str(), called(&decided).len()),
            ("step 0 stopped", 0),
            "{:?}",
            kinds(&decided)
        );
        let shown = format!("{:?}", agent.asked);
        assert!(shown.contains(&format!("{user} canceled it")), "the model is told: {shown}");
        agent.rules(&request, "approved");
        assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed not_in_doubt"], "it does not wait any more");
        agent.write(&AGENT_COMMAND, None, order("c2"));
        assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed unknown_action"]);
    }
}

#[test]
fn another_users_thread_is_none() {
    let mut agent = planner();
    agent.hears("m1", "the launch");
    agent.decides(&[says("Noted.")]).unwrap();
    let thread_id = agent.mind.state.threads.keys().next().unwrap().clone();
    let text = "what was that about?".to_owned();
    let message = AgentMessage { message_id: "m2".into(), user: "bob".into(), text, thread_id, ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    let decided = kinds(&agent.decides(&[]).unwrap());
    assert!(decided[0] == "failed unknown_thread" && decided[1].starts_with("say I cannot"), "{decided:?}");
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn a_chain_can_be_canceled() {
    let mut agent = planner();
    agent.hears("m1", "go");
    let first = agent.decides(&[plan("1. go"), chain(json!(["http.get", "tools.now"]))]).unwrap();
    let chain_id = agent.mind.state.turns.values().next().unwrap().chain.as_ref().unwrap().id.to_string();
    let order = |id: &str, chain_id: &str| AgentCommand {
        command_id: id.into(),
        user: "ann".into(),
        command: "cancel".into(),
        chain_id: chain_id.into(),
        ..Default::default()
    };
    agent.write(&AGENT_COMMAND, None, order("c1", &chain_id));
    let decided = agent.decides(&[]).unwrap();
    let expected = ["call action.cancel", "chain canceled", "say I have stopped this, as you asked."];
    assert_eq!(kinds(&decided), expected);
    assert_eq!(called(&decided)[0].1, json!({ "action_id": called(&first)[0].0 }));
    agent.write(&AGENT_COMMAND, None, order("c2", &chain_id));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["failed unknown_chain"]);
}

#[test]
fn messages_joined_before_their_thread_is_known_are_in_it_when_they_are_answered() {
    let mut agent =
        Agent::with(AgentProfile { threads: "topics".into(), interjection: "join".into(), ..Default::default() });
    agent.hears("m1", "one");
    agent.hears("m2", "two");
    let decided = agent.decides(&[says("Both.")]).unwrap();
    let expected = ["matched new", "created", "matched continue", "joined", "say Both."];
    assert_eq!(kinds(&decided), expected);
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("one") && shown.contains("two"), "{shown}");
    assert!(agent.mind.state.turns.is_empty());
}

/// Anything a model may answer an agent that plans.
fn any_answer() -> impl Strategy<Value = Completion> {
    let step = prop_oneof![
        Just(json!("tools.now")),
        Just(json!("http.get")),
        Just(json!({ "event": "http.get", "params": { "url": "{tools.now.now}", "decide": "if so" } })),
        Just(json!({ "event": "agent.think", "params": { "prompt": "look" } })),
        Just(json!({ "event": "user.notify", "params": { "message": "hm" } })),
        Just(json!({ "event": "user.notify", "params": {} })),
        Just(json!({ "event": "email.send", "params": {} })),
        Just(json!({ "event": "task.register", "params": { "trigger": "post:http.get", "action": ["http.get"] } })),
        Just(
            json!({ "event": "task.schedule", "params": { "type": "delay", "delay": "1 hour", "action": ["tools.now"] } })
        ),
        Just(json!(["tools.now", "http.get"])),
        Just(json!({ "event": "no.such" })),
    ];
    let action = |action: &str| says(&json!({ "action": action, "reason": "r" }).to_string());
    prop_oneof![
        3 => Just(plan("1. go")),
        5 => proptest::collection::vec(step, 0..5).prop_map(|steps| chain(json!(steps))),
        2 => Just(summary()),
        3 => prop_oneof!["continue", "skip", "break", "new", "suggest_new", "suggest_switch"].prop_map(move |it| action(&it)),
        3 => Just(says("An answer.")),
        1 => Just(says("")),
        1 => Just(fails(false)),
        1 => Just(calls(&["tools.now"])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the models answer: the draft is what the log says, no turn is left that waits for nothing, and a turn is
    /// answered once.
    #[test]
    fn no_turn_is_lost_whatever_the_models_answer(
        answers in proptest::collection::vec(any_answer(), 400),
        ends in proptest::collection::vec(0..4u8, 40),
    ) {
        let mut agent = planner();
        let mut answers = answers.into_iter().cycle();
        let mut ends = ends.into_iter().cycle();
        for message in 0..3 {
            agent.hears(&format!("m{message}"), "go");
            for _ in 0..30 {
                while agent.decides_with(|_| answers.next().unwrap()).is_some() {}
                if !agent.settle_something(ends.next().unwrap()) {
                    break;
                }
            }
        }
        let mut again = Log::default();
        for record in &agent.log {
            again.push(record.clone()).unwrap();
        }
        // What was observed and needed no decision is no part of the log's state until something is decided behind it.
        prop_assert!(again.next_input().is_none());
        prop_assert_eq!(&again.state, &agent.mind.state);
        for (id, turn) in &agent.mind.state.turns {
            let waits_for_user = turn.offer.is_some() || turn.chain.as_ref().is_some_and(|chain| {
                chain.steps.iter().any(|run| matches!(run.state, StepState::Asked { .. }))
            });
            prop_assert!(!turn.waiting.is_empty() || waits_for_user, "{} {:?}", id, turn);
        }
        let mut replied = std::collections::BTreeSet::new();
        let decisions = agent.log.iter().filter_map(|record| AgentDecision::of(&record.body));
        for event in decisions.flat_map(|decision| &decision.events) {
            if let Some(Event::Action(AgentAction { action: Some(Action::Say(say)) })) = &event.event
                && say.r#final
            {
                prop_assert!(replied.insert(say.message_id.clone()), "{} twice", say.message_id);
            }
        }
    }
}

impl Agent {
    /// Ends something the agent waits for; false when there is nothing.
    fn settle_something(&mut self, how: u8) -> bool {
        let cause = self.log.last().unwrap().clone();
        if let Some(action) = self.mind.state.in_flight.keys().next().copied() {
            match how {
                0 => self.learns_of_failure(&cause, &action.to_string()),
                _ => _ = self.learns(&cause, &action.to_string(), r#"{"now": "noon"}"#),
            }
            return true;
        }
        let offer = self.mind.state.turns.values().find_map(|turn| {
            turn.offer.as_ref().filter(|offer| offer.accepted.is_none()).map(|offer| offer.id.to_string())
        });
        if let Some(offer) = offer {
            self.chooses(&offer, if how < 2 { "accept" } else { "decline" });
            return true;
        }
        let asked = self.mind.state.turns.values().filter_map(|turn| turn.chain.as_ref()).find_map(|chain| {
            chain.steps.iter().find_map(|run| match &run.state {
                StepState::Asked { request, .. } => Some(request.to_string()),
                _ => None,
            })
        });
        if let Some(asked) = asked {
            self.rules(&asked, if how < 2 { "approved" } else { "rejected" });
            return true;
        }
        false
    }
}

#[test]
fn what_was_folded_while_deciding_is_what_the_log_says() {
    let mut agent = planner();
    agent.hears("m1", "go");
    let steps = json!([
        { "event": "user.notify", "params": { "message": "soon" } },
        { "event": "agent.think", "params": { "prompt": "look" } },
        "tools.now"
    ]);
    agent.decides(&[plan("1. go"), chain(steps), says("looked")]).unwrap();
    let mut again = Log::default();
    for record in &agent.log {
        again.push(record.clone()).unwrap();
    }
    assert_eq!(again.state, agent.mind.state);
}
