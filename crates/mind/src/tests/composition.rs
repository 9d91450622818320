//! Agents that are composed of others: what a composite asks of its members, what these do for it under their own profiles, and
//! that each request has one answer, whatever happens.

use kairo_events::subjects::{AGENT_ANSWER, AGENT_APPROVAL, AGENT_COMMAND, AGENT_REQUEST};
use kairo_proto::v1::{
    AgentAnswer, AgentAnswered, AgentApproval, AgentCommand, AgentRequest, Ask, Member, Spent, ToolError,
};
use serde_json::json;

use super::{background::queues, chains::kinds, *};

fn member(agent: &str, tools: &[&str]) -> Member {
    Member {
        agent: agent.into(),
        description: format!("{agent} things"),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
    }
}

fn profile(tools: &[&str]) -> AgentProfile {
    AgentProfile { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..Default::default() }
}

/// A coordinator of two specialists, with a tool of its own.
fn composite() -> Agent {
    let members = vec![member("search", &["http.*"]), member("write", &["http.get", "email.send", "tools.now"])];
    Agent::named("whole", AgentProfile { members, ..profile(&["action.cancel"]) })
}

fn asks(record: &Record) -> Vec<(String, Ask)> {
    let ask = |event: &kairo_proto::v1::DecidedEvent| Some((event.event_id.clone(), event.ask()?.clone()));
    decision(record).events.iter().filter_map(ask).collect()
}

fn answers(record: &Record) -> Vec<AgentAnswered> {
    let answer = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::Answered(answered)) = &event.event else { return None };
        Some(answered.clone())
    };
    decision(record).events.iter().filter_map(answer).collect()
}

fn spends(completion: Completion, tokens: u64) -> Completion {
    Completion { input_tokens: tokens, ..completion }
}

impl Agent {
    /// Delivers the request of a composite, as agent-runtime does.
    fn is_given(&mut self, from: &str, asked: &(String, Ask)) -> Record {
        let (action, ask) = asked;
        let Ask { kind, user, title, text, path, outside, tool, arguments, request_id, .. } = ask.clone();
        let request_id = if request_id.is_empty() { action.clone() } else { request_id };
        let request = AgentRequest {
            request_id,
            from: from.into(),
            kind,
            user,
            title,
            text,
            path,
            outside,
            tool,
            arguments,
            decided: 0,
            model_calls: ask.model_calls,
        };
        self.write(&AGENT_REQUEST, None, request)
    }

    fn is_answered_by(&mut self, from: &str, answered: &AgentAnswered) -> Record {
        let AgentAnswered { kind, status, result, reason, error, answer } = answered.clone();
        let answer = answer.unwrap();
        let answer = AgentAnswer {
            request_id: answer.request_id,
            from: from.into(),
            status,
            result,
            reason,
            outside: answer.outside,
            spent: answer.spent,
            error,
            kind,
            model_calls_left: answer.model_calls_left,
        };
        self.write(&AGENT_ANSWER, None, answer)
    }

    /// A call as some composite asks for it, by the name of its action.
    fn is_asked_to_call(&mut self, action: &str, tool: &str, arguments: serde_json::Value) -> String {
        let request_id = ids::from_parts("request", &[action]).to_string();
        let (tool, arguments, path) = (tool.to_owned(), arguments.to_string(), vec!["whole".to_owned()]);
        let (kind, user) = ("call".to_owned(), "ann".to_owned());
        let ask = Ask { kind, user, tool, arguments, path, ..Ask::default() };
        self.is_given("whole", &(request_id.clone(), ask));
        request_id
    }

    fn is_asked_to_think(&mut self, action: &str, text: &str) -> String {
        let request_id = ids::from_parts("request", &[action]).to_string();
        let (kind, user, text, path) = ("think".into(), "ann".into(), text.into(), vec!["whole".to_owned()]);
        self.is_given("whole", &(request_id.clone(), Ask { kind, user, text, path, ..Ask::default() }));
        request_id
    }

    fn is_withdrawn(&mut self, request_id: &str) -> Option<Record> {
        let (kind, user) = ("cancel".to_owned(), "ann".to_owned());
        let ask = Ask { kind, user, request_id: request_id.into(), ..Ask::default() };
        self.is_given("whole", &(String::new(), ask));
        self.decides(&[])
    }

    fn ends_with(&mut self, decided: &Record, action: &str, kind: &str, message: &str) {
        let error = Some(ToolError { kind: kind.into(), message: message.into() });
        let result = ToolResult { action_id: action.into(), ok: false, error, ..Default::default() };
        self.write(&TOOL_RESULT, Some(&decided.envelope.clone()), result);
    }
}

#[test]
fn a_composite_aggregates_tools_from_sub_agents_and_offers_each_once() {
    let mut agent = composite();
    agent.hears("m1", "hello");
    agent.decides(&[says("hi")]).unwrap();
    let offered: Vec<&str> = agent.asked[0].tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["tools.now", "http.get", "action.cancel", "email.send", "member.ask"]);
    let prompt = agent.texts()[0].clone();
    assert!(prompt.contains("- search: search things\n- write: write things"), "{prompt}");
    // A composite that names no tools has those of its members alone, and others have no members to ask.
    let mut bare = Agent::named("whole", AgentProfile { members: vec![member("search", &["*"])], ..profile(&[]) });
    bare.hears("m1", "hello");
    bare.decides(&[says("hi")]).unwrap();
    let offered: Vec<&str> = bare.asked[0].tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["tools.now", "http.get", "email.send", "member.ask"], "actions and processes are its own");
    let mut other = Agent::new();
    other.hears("m1", "hello");
    other.decides(&[says("hi")]).unwrap();
    assert!(other.asked[0].tools.iter().all(|tool| *tool.name != *"member.ask"));
}

#[test]
fn when_a_tool_is_selected_a_composite_delegates_to_the_mapped_agent_rather_than_executing_it_directly() {
    let mut agent = composite();
    agent.hears("m1", "look");
    let asked = agent.decides(&[calls(&["http.get", "tools.now"])]).unwrap();
    assert_eq!(kinds(&asked), ["created", "asks search to call", "asks write to call"], "several at once");
    let [(first, search), (second, write)] = asks(&asked).try_into().unwrap();
    assert_eq!((search.tool.as_str(), search.arguments.as_str(), search.user.as_str()), ("http.get", "{}", "ann"));
    assert_eq!((search.path, write.tool.as_str()), (vec!["whole".to_owned()], "tools.now"));
    let told = |request_id: &str, status: &str, result: &str| AgentAnswered {
        kind: "call".into(),
        status: status.into(),
        result: result.into(),
        reason: "no route".into(),
        error: (status == "failed").then(|| ToolError { kind: "timed_out".into(), message: "no route".into() }),
        answer: Some(kairo_proto::v1::TaskAnswer { request_id: request_id.into(), ..Default::default() }),
    };
    agent.is_answered_by("write", &told(&second, "completed", r#"{"now": 1.50}"#));
    // Neither a copy nor the answer of somebody else changes anything.
    agent.is_answered_by("write", &told(&second, "completed", "2"));
    agent.is_answered_by("write", &told(&first, "completed", "3"));
    assert!(agent.decides(&[]).is_none(), "the other one is awaited");
    agent.is_answered_by("search", &told(&first, "failed", ""));
    assert_eq!(kinds(&agent.decides(&[says("half of it")]).unwrap()), ["say half of it"]);
    let shown = agent.texts();
    assert!(shown.contains(&r#"{"now": 1.50}"#.to_owned()), "to the letter: {shown:?}");
    assert!(shown.contains(&r#"{"error":"timed_out","message":"no route"}"#.to_owned()), "{shown:?}");
    assert!(agent.mind.state.in_flight.is_empty() && agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

#[test]
fn a_member_makes_the_call_that_it_is_asked_for_without_a_model_and_answers_once_to_the_letter() {
    let mut agent = Agent::named("search", profile(&["http.get"]));
    let request = agent.is_asked_to_call("1", "http.get", json!({ "url": "http://a" }));
    agent.is_asked_to_call("1", "http.get", json!({ "url": "http://a" }));
    let called = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&called), ["call http.get"]);
    assert!(agent.decides(&[]).is_none(), "asked again, it is the same request");
    let call = decision(&called).events[0].tool_call().unwrap().clone();
    assert_eq!((call.arguments.as_str(), call.user.as_deref()), (r#"{"url":"http://a"}"#, Some("ann")));
    let result = ToolResult {
        action_id: actions(&called)[0].clone(),
        ok: true,
        result: r#"{"b": 1.50, "a": []}"#.into(),
        outside: vec!["web:http://a".into()],
        ..Default::default()
    };
    agent.write(&TOOL_RESULT, Some(&called.envelope.clone()), result);
    let answered = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&answered), ["answers completed"], "and nobody is told anything");
    let [told] = answers(&answered).try_into().unwrap();
    assert_eq!((told.kind.as_str(), told.result.as_str()), ("call", r#"{"b": 1.50, "a": []}"#));
    let answer = told.answer.unwrap();
    assert_eq!((answer.agent.as_str(), answer.request_id), ("whole", request));
    assert_eq!((answer.outside, answer.spent), (vec!["web:http://a".to_owned()], Some(Spent::default())));
    assert!(agent.asked.is_empty() && agent.mind.state.turns.is_empty() && agent.mind.state.threads.is_empty());
    agent.is_replayed();
}

#[test]
fn failures_and_doubts_of_a_member_are_the_answer_and_the_doubt_is_the_composites_to_resolve() {
    let mut agent = Agent::named("search", profile(&["http.get"]));
    for (at, kind, status) in [(1, "timed_out", "failed"), (2, "in_doubt", "failed"), (3, "canceled", "canceled")] {
        agent.is_asked_to_call(&at.to_string(), "http.get", json!({}));
        let called = agent.decides(&[]).unwrap();
        agent.ends_with(&called, &actions(&called)[0], kind, "so it is");
        let [told] = answers(&agent.decides(&[]).unwrap()).try_into().unwrap();
        let error = told.error.unwrap();
        assert_eq!((told.status.as_str(), error.kind.as_str(), error.message.as_str()), (status, kind, "so it is"));
        if kind == "in_doubt" {
            let (action_id, verdict) = (actions(&called)[0].clone(), "happened".to_owned());
            let approval =
                AgentApproval { approval_id: "p".into(), user: "ann".into(), action_id, verdict, ..Default::default() };
            agent.write(&AGENT_APPROVAL, None, approval);
            assert!(agent.decides(&[]).is_none(), "nobody here waits to hear of it");
        }
    }
    let mut whole = composite();
    whole.hears("m1", "look");
    let asked = whole.decides(&[calls(&["http.get"])]).unwrap();
    let error = Some(ToolError { kind: "in_doubt".into(), message: "may have run".into() });
    let (action, _) = asks(&asked)[0].clone();
    let answer = kairo_proto::v1::TaskAnswer { request_id: action.clone(), ..Default::default() };
    let told = AgentAnswered {
        kind: "call".into(),
        status: "failed".into(),
        error,
        answer: Some(answer),
        ..Default::default()
    };
    whole.is_answered_by("search", &told);
    whole.decides(&[says("Nobody knows.")]).unwrap();
    assert!(whole.mind.state.doubts.get(action.parse().unwrap()).is_some());
    agent.is_replayed();
}

#[test]
fn a_member_calls_what_its_own_profile_offers_and_nothing_else() {
    let mut agent = Agent::named("search", profile(&["http.get"]));
    for (at, tool, kind) in [("1", "tools.now", "not_found"), ("2", "no.such", "not_found")] {
        agent.is_asked_to_call(at, tool, json!({}));
        let [told] = answers(&agent.decides(&[]).unwrap()).try_into().unwrap();
        assert_eq!((told.status.as_str(), told.error.unwrap().kind.as_str()), ("failed", kind));
    }
    // One that was never defined answers all the same.
    let mut nobody = Agent { log: Vec::new(), mind: Log::default(), ..Agent::named("gone", AgentProfile::default()) };
    nobody.is_asked_to_call("1", "http.get", json!({}));
    nobody.is_asked_to_think("2", "well?");
    for _ in 0..2 {
        let [told] = answers(&nobody.decides(&[]).unwrap()).try_into().unwrap();
        assert_eq!((told.status.as_str(), told.reason.as_str()), ("failed", "there is no agent named gone"));
    }
    assert!(nobody.mind.state.turns.is_empty());
}

#[test]
fn consent_is_the_members_to_ask_for_and_its_user_gives_or_denies_it() {
    for (verdict, expected) in [("approved", "call email.send"), ("rejected", "step 0 stopped")] {
        let mut agent = Agent::named("write", profile(&["email.send"]));
        agent.is_asked_to_call("1", "email.send", json!({ "to": "bob" }));
        let waits = agent.decides(&[]).unwrap();
        assert_eq!(kinds(&waits), ["chain started", "consent email.send"]);
        let requested = decision(&waits).events[1].clone();
        let Some(Event::ApprovalRequested(asked)) = requested.event else { panic!("{:?}", kinds(&waits)) };
        assert_eq!(asked.user, "ann");
        let (approval_id, user, verdict) = ("p".to_owned(), "ann".to_owned(), verdict.to_owned());
        let action_id = requested.event_id;
        agent.write(
            &AGENT_APPROVAL,
            None,
            AgentApproval { approval_id, user, action_id, verdict, ..Default::default() },
        );
        let ruled = agent.decides(&[]).unwrap();
        assert_eq!(kinds(&ruled)[0], expected);
        if expected == "call email.send" {
            agent.learns(&ruled, &actions(&ruled)[0], "\"sent\"");
            let answered = agent.decides(&[]).unwrap();
            assert_eq!(kinds(&answered), ["chain done", "answers completed"]);
            assert_eq!(answers(&answered)[0].result, "\"sent\"");
        } else {
            assert_eq!(kinds(&ruled)[1..], ["chain failed", "answers failed"]);
            assert_eq!(answers(&ruled)[0].reason, "ann rejected it");
        }
        assert!(agent.mind.state.turns.is_empty());
        agent.is_replayed();
    }
    // The composite asks nobody, whatever it has seen: the marks go along.
    let mut whole = composite();
    whole.hears("m1", "write to bob");
    let asked = whole.decides(&[calls(&["email.send"])]).unwrap();
    assert_eq!(kinds(&asked)[1..], ["asks write to call"]);
}

#[test]
fn what_the_composite_has_seen_from_outside_goes_along_and_what_the_member_saw_comes_back() {
    let mut agent = Agent::named("run", profile(&["process.spawn", "http.get"]));
    let (request_id, outside) = (ids::from_parts("r", &["1"]).to_string(), vec!["mail:eve".to_owned()]);
    let ask = Ask {
        kind: "call".into(),
        user: "ann".into(),
        tool: "process.spawn".into(),
        arguments: "{}".into(),
        outside,
        ..Ask::default()
    };
    agent.is_given("whole", &(request_id, ask));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["chain started", "consent process.spawn"]);
    let mut whole = composite();
    whole.hears("m1", "look");
    let asked = whole.decides(&[calls(&["http.get"])]).unwrap();
    let answer = kairo_proto::v1::TaskAnswer {
        request_id: asks(&asked)[0].0.clone(),
        outside: vec!["web:http://a".into()],
        ..Default::default()
    };
    let told = AgentAnswered {
        kind: "call".into(),
        status: "completed".into(),
        result: "1".into(),
        answer: Some(answer),
        ..Default::default()
    };
    whole.is_answered_by("search", &told);
    let again = whole.decides(&[calls(&["http.get"])]).unwrap();
    assert_eq!(asks(&again)[0].1.outside, ["web:http://a"]);
}

#[test]
fn with_member_ask_a_member_thinks_with_its_own_prompt_and_tools_and_its_last_words_are_the_answer() {
    let mut whole = composite();
    whole.hears("m1", "what do you think?");
    let ask = asks_for("member.ask", json!({ "member": "search", "text": "Find it" }));
    let asked = whole.decides(&[ask]).unwrap();
    assert_eq!(kinds(&asked)[1..], ["chain started", "asks search to think"]);

    let mut member = Agent::named("search", AgentProfile { prompt: "You search.".into(), ..profile(&["http.get"]) });
    member.is_given("whole", &asks(&asked)[0]);
    let called = member.decides(&[spends(calls(&["http.get"]), 10)]).unwrap();
    assert_eq!(kinds(&called), ["created", "call http.get"]);
    assert_eq!(member.asked[0].tier, "heavy");
    assert!(
        member.texts()[0].contains("Be brief.") && member.texts().contains(&"Find it".to_owned()),
        "{:?}",
        member.texts()
    );
    member.learns(&called, &actions(&called)[0], "7");
    let answered = member.decides(&[spends(says("It is seven."), 20)]).unwrap();
    assert_eq!(kinds(&answered), ["answers completed", "completed"], "no conversation shows it");
    let [told] = answers(&answered).try_into().unwrap();
    assert_eq!((told.kind.as_str(), told.result.as_str()), ("think", "It is seven."));
    assert_eq!(told.answer.as_ref().unwrap().spent, Some(Spent { tokens: 30, ..Default::default() }));
    assert!(member.mind.state.threads.is_empty() && member.mind.state.turns.is_empty());
    member.is_replayed();

    whole.is_answered_by("search", &told);
    let expected = ["step 1 done", "chain done", "say Seven."];
    assert_eq!(kinds(&whole.decides(&[says("Seven.")]).unwrap()), expected);
    assert!(whole.texts().iter().any(|text| text.contains(r#""result":"It is seven.""#)), "{:?}", whole.texts());
    whole.is_replayed();
}

#[test]
fn a_member_that_works_in_the_background_answers_beside_its_work_with_its_fast_model() {
    let mut member =
        Agent::named("search", AgentProfile { conduct: "background".into(), ..profile(&["http.get", "task.queue"]) });
    member.hears("m1", "Research it");
    member.decides(&[queues("I will.", &["Research it"])]).unwrap();
    let working = member.works(&[calls(&["http.get"])]).unwrap();
    // Were it queued behind the work, two agents that ask each other would wait for ever.
    member.is_asked_to_think("1", "Find it");
    let answered = member.decides(&[says("Found.")]).unwrap();
    assert_eq!(kinds(&answered), ["created", "answers completed", "completed"]);
    assert_eq!(member.asked.last().unwrap().tier, "fast");
    member.is_asked_to_call("2", "http.get", json!({}));
    assert_eq!(kinds(&member.decides(&[]).unwrap()), ["call http.get"]);
    member.learns(&working, &actions(&working)[0], "7");
    assert_eq!(kinds(&member.works(&[says("Seven.")]).unwrap())[0], "task completed");
    member.is_replayed();
}

#[test]
fn a_member_whose_model_fails_answers_that() {
    let mut member = Agent::named("search", profile(&["http.get"]));
    member.is_asked_to_think("1", "Find it");
    let failed = member.decides(&[fails(false)]).unwrap();
    let [told] = answers(&failed).try_into().unwrap();
    assert_eq!(told.status, "failed");
    assert!(told.reason.starts_with("I could not finish this"), "{}", told.reason);
    assert!(member.mind.state.turns.is_empty());
}

#[test]
fn a_call_that_is_withdrawn_ends_as_its_tool_says_and_what_has_not_begun_is_over_at_once() {
    let mut agent = Agent::named("write", profile(&["http.get", "email.send"]));
    // In flight: the tool is stopped, and its end is the answer.
    let request = agent.is_asked_to_call("1", "http.get", json!({}));
    let called = agent.decides(&[]).unwrap();
    let stopping = agent.is_withdrawn(&request).unwrap();
    assert_eq!(kinds(&stopping), ["call action.cancel"]);
    agent.ends_with(&called, &actions(&called)[0], "canceled", "on request");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["answers canceled"]);
    agent.learns(&stopping, &actions(&stopping)[0], "{}");
    assert!(agent.decides(&[]).is_none() && agent.mind.state.turns.is_empty());
    // What was committed first wins.
    let request = agent.is_asked_to_call("2", "http.get", json!({}));
    let called = agent.decides(&[]).unwrap();
    agent.learns(&called, &actions(&called)[0], "1");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["answers completed"]);
    assert!(agent.is_withdrawn(&request).is_none_or(|record| kinds(&record).is_empty()), "one answer each");
    // It waits for consent.
    let request = agent.is_asked_to_call("3", "email.send", json!({}));
    agent.decides(&[]).unwrap();
    assert_eq!(kinds(&agent.is_withdrawn(&request).unwrap()), ["chain canceled", "answers canceled"]);
    // The withdrawal overtakes the request.
    let request = ids::from_parts("request", &["4"]).to_string();
    assert_eq!(kinds(&agent.is_withdrawn(&request).unwrap()), ["task scheduled", "task canceled"]);
    agent.is_asked_to_call("4", "http.get", json!({}));
    assert!(agent.decides(&[]).is_none());
    // It thinks: whatever it has in flight is stopped with it.
    let request = agent.is_asked_to_think("5", "Find it");
    let called = agent.decides(&[calls(&["http.get"])]).unwrap();
    let stopped = agent.is_withdrawn(&request).unwrap();
    assert_eq!(kinds(&stopped), ["call action.cancel", "answers canceled", "completed"]);
    agent.ends_with(&called, &actions(&called)[0], "canceled", "on request");
    agent.learns(&stopped, &actions(&stopped)[0], "{}");
    assert!(agent.decides(&[]).is_none());
    let state = &agent.mind.state;
    assert!(state.turns.is_empty() && state.in_flight.is_empty() && state.threads.is_empty(), "{:?}", state.turns);
    agent.is_replayed();
}

#[test]
fn stopping_a_call_of_a_composite_asks_the_member_to_stop_whoever_wants_it() {
    let mut agent = composite();
    agent.hears("m1", "look");
    let asked = agent.decides(&[calls(&["http.get", "tools.now"])]).unwrap();
    let [(first, _), (second, _)] = asks(&asked).try_into().unwrap();
    let command = AgentCommand {
        command_id: "c".into(),
        user: "ann".into(),
        command: "cancel".into(),
        action_id: first.clone(),
        ..Default::default()
    };
    agent.write(&AGENT_COMMAND, None, command);
    let ordered = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&ordered), ["asks search to cancel"]);
    assert_eq!(asks(&ordered)[0].1.request_id, first);
    agent.hears("m2", "never mind the time");
    let stop = asks_for("action.cancel", json!({ "action_id": second }));
    let stopped = agent.decides(&[stop, says("I stop it.")]).unwrap();
    assert!(kinds(&stopped).contains(&"asks write to cancel".to_owned()), "{:?}", kinds(&stopped));
    for (action, from) in [(&first, "search"), (&second, "write")] {
        let answer = kairo_proto::v1::TaskAnswer { request_id: action.clone(), ..Default::default() };
        let told = AgentAnswered {
            kind: "call".into(),
            status: "canceled".into(),
            reason: "on request".into(),
            answer: Some(answer),
            ..Default::default()
        };
        agent.is_answered_by(from, &told);
    }
    assert_eq!(kinds(&agent.decides(&[says("Stopped.")]).unwrap()), ["say Stopped."]);
    assert!(agent.mind.state.in_flight.is_empty() && agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

#[test]
fn a_circle_is_refused_and_so_is_asking_on_and_on() {
    let back = vec![member("whole", &["http.get"])];
    let mut agent = Agent::named("search", AgentProfile { members: back, ..profile(&[]) });
    agent.is_asked_to_call("1", "http.get", json!({}));
    let refused = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&refused).last().unwrap(), "answers failed");
    assert!(answers(&refused)[0].reason.contains("whole cannot be asked"), "{:?}", answers(&refused));
    // A member of a member is asked further, up to a depth.
    let inner = vec![member("inner", &["http.get"])];
    let mut agent = Agent::named("search", AgentProfile { members: inner, ..profile(&[]) });
    agent.is_asked_to_call("1", "http.get", json!({}));
    let asked = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&asked), ["asks inner to call"]);
    assert_eq!(asks(&asked)[0].1.path, ["whole", "search"]);
    let answer = kairo_proto::v1::TaskAnswer { request_id: asks(&asked)[0].0.clone(), ..Default::default() };
    let told = AgentAnswered {
        kind: "call".into(),
        status: "completed".into(),
        result: "7".into(),
        answer: Some(answer),
        ..Default::default()
    };
    agent.is_answered_by("inner", &told);
    assert_eq!(answers(&agent.decides(&[]).unwrap())[0].result, "7");
    let path = (0..8).map(|at| format!("m{at}")).collect();
    let ask = Ask {
        kind: "call".into(),
        user: "ann".into(),
        tool: "http.get".into(),
        arguments: "{}".into(),
        path,
        ..Ask::default()
    };
    agent.is_given("m7", &(ids::from_parts("r", &["9"]).to_string(), ask));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()).last().unwrap(), "answers failed");
    agent.is_replayed();
}

#[test]
fn hooks_of_the_member_and_of_the_composite_see_the_call() {
    let stop = json!([{ "event": "step.stop", "params": { "reason": "not today" } }]);
    let register = asks_for("task.register", json!({ "trigger": "pre:http.get", "action": stop }));
    let mut member = Agent::named("search", profile(&["http.get", "task.register"]));
    member.hears("m1", "never fetch anything");
    member.decides(&[register.clone(), says("I will not.")]).unwrap();
    member.is_asked_to_call("1", "http.get", json!({}));
    let stopped = member.decides(&[]).unwrap();
    assert_eq!(answers(&stopped)[0].reason, "not today", "{:?}", kinds(&stopped));
    let members = vec![member_of_all()];
    let mut whole = Agent::named("whole", AgentProfile { members, ..profile(&["task.register"]) });
    whole.hears("m1", "never fetch anything");
    whole.decides(&[register, says("I will not.")]).unwrap();
    whole.hears("m2", "fetch it");
    let decided = whole.decides(&[calls(&["http.get"]), says("I may not.")]).unwrap();
    assert!(asks(&decided).is_empty(), "{:?}", kinds(&decided));
    whole.is_replayed();
}

fn member_of_all() -> Member {
    member("search", &["*"])
}

#[test]
fn a_composite_in_the_background_has_its_members_do_what_was_queued() {
    let profile =
        AgentProfile { conduct: "background".into(), members: vec![member_of_all()], ..profile(&["task.queue"]) };
    let mut agent = Agent::named("whole", profile);
    agent.hears("m1", "Research it");
    agent.decides(&[queues("I will.", &["Research it"])]).unwrap();
    let asked = agent.works(&[calls(&["http.get"])]).unwrap();
    assert_eq!(kinds(&asked).last().unwrap(), "asks search to call");
    let answer = kairo_proto::v1::TaskAnswer { request_id: asks(&asked)[0].0.clone(), ..Default::default() };
    let told = AgentAnswered {
        kind: "call".into(),
        status: "completed".into(),
        result: "7".into(),
        answer: Some(answer),
        ..Default::default()
    };
    agent.is_answered_by("search", &told);
    assert!(agent.works(&[says("Seven.")]).is_some_and(|ended| kinds(&ended)[0] == "task completed"));
    agent.is_replayed();
}

#[test]
fn calls_for_one_user_run_beside_words_of_another_who_learns_nothing_of_them() {
    let mut agent = Agent::named("search", profile(&["http.get"]));
    agent.is_asked_to_think("1", "Ann's secret");
    agent.decides(&[calls(&["http.get"])]).unwrap();
    let message =
        AgentMessage { message_id: "m".into(), user: "bob".into(), text: "hello".into(), ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    agent.decides(&[says("hi")]).unwrap();
    assert!(
        agent.texts().iter().all(|text| !text.contains("secret") && !text.contains("http.get")),
        "{:?}",
        agent.texts()
    );
    agent.is_replayed();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes in whatever order, each request has one answer, nothing stays behind, and the log is replayed.
    #[test]
    fn each_request_has_one_answer_whatever_happens(does in proptest::collection::vec((0_usize..6, 0_usize..4), 1..40)) {
        let mut agent = Agent::named("search", profile(&["http.get", "email.send"]));
        let mut answered = std::collections::BTreeMap::new();
        let mut asked = std::collections::BTreeSet::new();
        let mut running: Vec<(Record, String)> = Vec::new();
        let mut take = |record: Option<Record>, running: &mut Vec<(Record, String)>| {
            let Some(record) = record else { return };
            for event in &decision(&record).events {
                let of_task = if let Some(Event::TaskEnded(it)) = &event.event { it.answer.clone() } else { None };
                let of_turn = if let Some(Event::Answered(it)) = &event.event { it.answer.clone() } else { None };
                if let Some(answer) = of_task.or(of_turn) {
                    *answered.entry(answer.request_id).or_insert(0) += 1;
                }
            }
            running.extend(actions(&record).into_iter().map(|action| (record.clone(), action)));
        };
        let model = |request: &ModelRequest| {
            let has_called = request.messages.iter().any(|it| matches!(it, PromptMessage::Tool { .. }));
            if has_called { says("done") } else { calls(&["http.get"]) }
        };
        for (what, which) in does {
            let name = which.to_string();
            match what {
                0 => _ = asked.insert(agent.is_asked_to_call(&name, "http.get", json!({}))),
                1 => _ = asked.insert(agent.is_asked_to_call(&format!("mail {name}"), "email.send", json!({}))),
                2 => _ = asked.insert(agent.is_asked_to_think(&format!("think {name}"), "well?")),
                3 => {
                    let name = [name.clone(), format!("mail {name}"), format!("think {name}")][which % 3].clone();
                    let request_id = ids::from_parts("request", &[&name]).to_string();
                    let (kind, user) = ("cancel".to_owned(), "ann".to_owned());
                    asked.insert(request_id.clone());
                    agent.is_given("whole", &(String::new(), Ask { kind, user, request_id, ..Ask::default() }));
                }
                4 if !running.is_empty() => {
                    let (decided, action) = running.remove(which % running.len());
                    agent.learns(&decided, &action, "1");
                }
                _ => take(agent.decides_with(model), &mut running),
            }
        }
        // In the end everything that runs ends, and what waits for a human is withdrawn.
        for request_id in asked.clone() {
            agent.is_given("whole", &(String::new(), Ask { kind: "cancel".into(), user: "ann".into(), request_id, ..Ask::default() }));
        }
        for _ in 0..8 {
            while let Some(record) = agent.decides_with(model) {
                take(Some(record), &mut running);
            }
            for (decided, action) in std::mem::take(&mut running) {
                agent.learns(&decided, &action, "1");
            }
        }
        prop_assert_eq!(answered.keys().cloned().collect::<std::collections::BTreeSet<_>>(), asked);
        prop_assert!(answered.values().all(|times| *times == 1), "{answered:?}");
        let state = &agent.mind.state;
        prop_assert!(state.turns.is_empty() && state.in_flight.is_empty() && state.threads.is_empty(), "{:?}", state.turns);
        agent.is_replayed();
    }
}
