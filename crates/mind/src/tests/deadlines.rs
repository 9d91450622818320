//! Requests to other agents end at their deadline, or with the model calls that they were given.

use kairo_events::subjects::{AGENT_ANSWER, AGENT_REQUEST, TASK_DUE};
use kairo_proto::v1::{AgentAnswer, AgentRequest, Ask, Member, TaskDue, Team, TeamWorker};
use serde_json::json;

use super::{chains::kinds, *};

const OWNER: &str = "ann";

fn lead(workers: &[&str], profile: AgentProfile) -> Agent {
    let worker = |name: &&str| TeamWorker { agent: format!("a-{name}"), description: format!("{name}s") };
    let team = Team { workers: workers.iter().map(worker).collect(), ..Default::default() };
    let conduct = "background".into();
    let mission = "Know the harbour".into();
    let owner = OWNER.into();
    Agent::with(AgentProfile { conduct, mission, owner, team: Some(team), ..profile })
}

fn worker() -> Agent {
    Agent::named("a-tide", AgentProfile { conduct: "background".into(), lead: "a".into(), ..Default::default() })
}

fn delegates(tasks: &[(&str, serde_json::Value)]) -> Completion {
    let call = |(worker, further): &(&str, serde_json::Value)| {
        let mut arguments = json!({ "worker": worker, "task": format!("Look at {worker}") });
        arguments.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let tool = "team.delegate".into();
        let arguments = arguments.to_string();
        CompletionToolCall { tool, arguments, ..Default::default() }
    };
    Completion { tool_calls: tasks.iter().map(call).collect(), ..Default::default() }
}

fn asks(record: &Record) -> Vec<(String, Ask)> {
    let ask = |event: &kairo_proto::v1::DecidedEvent| Some((event.event_id.clone(), event.ask()?.clone()));
    decision(record).events.iter().filter_map(ask).collect()
}

impl Agent {
    fn hears_back(&mut self, request_id: &str, from: &str, status: &str, text: &str, model_calls_left: u32) -> Record {
        let [request_id, from, status] = [request_id, from, status].map(str::to_owned);
        let (result, reason) = if status == "completed" { (text.into(), "".into()) } else { ("".into(), text.into()) };
        let answer =
            AgentAnswer { request_id, from, status, result, reason, model_calls_left, ..AgentAnswer::default() };
        let correlation_id = self.correlation();
        self.write_of(&AGENT_ANSWER, correlation_id, answer)
    }

    /// The correlation of what is under way.
    fn correlation(&self) -> Uuid {
        self.mind.state.turns.values().next().map_or_else(Uuid::nil, |turn| turn.correlation)
    }

    fn write_of(&mut self, route: &Route, correlation_id: Uuid, body: impl Into<Body>) -> Record {
        let at = Timestamp::UNIX_EPOCH;
        let cause = Envelope::from_outside(correlation_id, Service::Gateway, Origin::User, at);
        self.write(route, Some(&Envelope { correlation_id, ..cause }), body)
    }

    fn is_late(&mut self, request_id: &str) -> Record {
        let due = TaskDue { task_id: request_id.to_owned(), occurrence: 1, ..TaskDue::default() };
        self.write(&TASK_DUE, None, due)
    }

    fn is_given_calls(&mut self, kind: &str, request_id: &str, model_calls: u32) -> Record {
        let [kind, request_id, text] = [kind, request_id, "Look at the tide"].map(str::to_owned);
        let from = "a".to_owned();
        let path = vec!["a".to_owned()];
        let user = OWNER.to_owned();
        let request = AgentRequest {
            request_id,
            from,
            kind,
            user,
            title: text.clone(),
            text,
            path,
            model_calls,
            ..Default::default()
        };
        self.write_of(&AGENT_REQUEST, Uuid::from_u128(77), request)
    }
}

#[test]
fn of_five_delegations_one_is_late_and_the_four_results_are_told_at_its_deadline() {
    let names = ["crane", "quay", "tide", "ferry", "pilot"];
    let mut agent = lead(&names, AgentProfile { request_deadline: 90, ..Default::default() });
    agent.limits.parallel_tools = 8;
    agent.decides(&[]).unwrap();
    let tasks: Vec<_> = names.iter().map(|name| (*name, json!({}))).collect();
    let asked = agent.works(&[delegates(&tasks)]).unwrap();
    let asked_at = agent.log[agent.log.len() - 2].envelope.time;
    let asked = asks(&asked);
    assert_eq!(asked.len(), 5);
    for (_, ask) in &asked {
        assert_eq!(ask.due_at, (asked_at + SignedDuration::from_secs(90)).to_string());
    }
    for ((action, _), name) in asked.iter().zip(names).take(4) {
        agent.hears_back(action, &format!("a-{name}"), "completed", &format!("{name} is fine"), 0);
        assert!(agent.works(&[]).is_none() && agent.decides(&[]).is_none(), "the last one is awaited");
    }
    let late = asked[4].0.clone();
    agent.is_late(&late);
    assert!(agent.decides(&[]).is_none(), "it is work");
    let told = agent.works(&[says("Four of five are fine.")]).unwrap();
    let expected = ["failed request_late", "asks a-pilot to cancel", "step 5 done", "chain done", "task completed"];
    assert_eq!(kinds(&told), expected);
    assert_eq!(asks(&told)[0].1.request_id, late);
    let shown = agent.texts().join("\n");
    for name in names.iter().take(4) {
        assert!(shown.contains(&format!("{name} is fine")), "{shown}");
    }
    assert!(shown.contains("timed_out") && shown.contains("a-pilot had not answered by"), "{shown}");
    // What comes later, and its timer once more, changes nothing.
    agent.hears_back(&late, "a-pilot", "completed", "too late", 0);
    agent.is_late(&late);
    agent.is_late(&asked[0].0);
    assert!(agent.decides(&[]).is_none());
    agent.is_replayed();
}

#[test]
fn a_request_that_is_late_is_stopped_at_once_while_others_are_awaited() {
    let mut agent = lead(&["crane", "quay"], AgentProfile::default());
    agent.decides(&[]).unwrap();
    let asked = agent.works(&[delegates(&[("crane", json!({ "deadline_s": 5 })), ("quay", json!({}))])]).unwrap();
    let asked = asks(&asked);
    let due: Vec<Timestamp> = asked.iter().map(|(_, ask)| ask.due_at.parse().unwrap()).collect();
    assert_eq!(due[1].duration_since(due[0]), SignedDuration::from_secs(595));
    agent.is_late(&asked[0].0);
    assert_eq!(kinds(&agent.works(&[]).unwrap()), ["failed request_late", "asks a-crane to cancel"]);
    agent.hears_back(&asked[1].0, "a-quay", "completed", "free", 0);
    let ended = agent.works(&[says("The quay is free.")]).unwrap();
    assert_eq!(kinds(&ended).last().unwrap(), "task completed");
    agent.is_replayed();
}

#[test]
fn a_member_that_does_not_answer_is_left_and_the_user_is_answered() {
    let member = Member { agent: "pilot".into(), description: "knows the way".into(), tools: vec!["http.*".into()] };
    let mut agent = Agent::with(AgentProfile { members: vec![member], ..Default::default() });
    agent.hears("m1", "which way?");
    let asked = agent.decides(&[asks_for("member.ask", json!({ "member": "pilot", "text": "which way?" }))]).unwrap();
    let late = asks(&asked)[0].0.clone();
    agent.is_late(&late);
    let told = agent.decides(&[says("The pilot does not answer.")]).unwrap();
    assert_eq!(kinds(&told)[..2], ["failed request_late", "asks pilot to cancel"]);
    assert_eq!(kinds(&told).last().unwrap(), "say The pilot does not answer.");
    // The same of a call that a member makes.
    agent.hears("m2", "look it up");
    let asked = agent.decides(&[calls(&["http.get"])]).unwrap();
    agent.is_late(&asks(&asked)[0].0);
    assert_eq!(kinds(&agent.decides(&[says("It hangs.")]).unwrap())[1], "asks pilot to cancel");
    assert!(agent.mind.state.in_flight.is_empty() && agent.mind.state.late.is_empty());
    agent.is_replayed();
}

#[test]
fn a_request_that_is_left_overtakes_the_thought_about_it() {
    let mut agent = Agent::named("pilot", AgentProfile::default());
    let request = ids::from_parts("r", &["1"]).to_string();
    let asked = agent.is_given_calls("think", &request, 9);
    let thinking = agent.next_input().unwrap();
    assert_eq!(thinking.record.sequence, asked.sequence);
    let left = agent.is_given_calls("cancel", &request, 0);
    assert!(agent.mind.withdraws_current_request(&left.body));
    let other =
        AgentRequest { request_id: "other".into(), from: "a".into(), kind: "cancel".into(), ..Default::default() };
    assert!(!agent.mind.withdraws_current_request(&other.into()));
    let canceled = agent.decides(&[]).unwrap();
    assert_eq!(decision(&canceled).overtaking, left.sequence);
    assert_eq!(kinds(&canceled).last().unwrap(), "task canceled");
    assert!(agent.decides(&[]).is_none() && agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

#[test]
fn whoever_asked_is_told_of_a_failure_when_it_happens_and_may_ask_again() {
    let mut agent = worker();
    let request = ids::from_parts("r", &["1"]).to_string();
    agent.is_given_calls("work", &request, 0);
    agent.decides(&[]).unwrap();
    agent.limits.outage_tries = 2;
    let failed = agent.works(&[fails(true), fails(true)]).unwrap();
    assert_eq!(kinds(&failed).last().unwrap(), "task failed");
    agent.is_replayed();
}

#[test]
fn a_lead_none_of_whose_workers_did_anything_has_not_done_its_task() {
    for (statuses, expected) in [(["failed", "failed"], "task failed"), (["failed", "completed"], "task completed")] {
        let mut agent = lead(&["crane", "quay"], AgentProfile::default());
        agent.decides(&[]).unwrap();
        let asked = agent.works(&[delegates(&[("crane", json!({})), ("quay", json!({}))])]).unwrap();
        for ((action, ask), status) in asks(&asked).iter().zip(statuses) {
            agent.hears_back(action, &ask.agent, status, "so it is", 0);
        }
        let ended = agent.works(&[says("I report.")]).unwrap();
        assert_eq!(kinds(&ended).last().unwrap(), expected, "{statuses:?}");
        agent.is_replayed();
    }
}

#[test]
fn a_pause_is_counted_from_the_failure() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), session_pause: 60, ..Default::default() });
    agent.limits.outage_tries = 1;
    agent.hears("m1", "look at the tide");
    agent.decides(&[background::queues("I will.", &["tide"])]).unwrap();
    let failed_at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(5_000);
    let answered_at_ms = u64::try_from(failed_at.as_millisecond()).unwrap();
    agent.works(&[Completion { answered_at_ms, ..fails(true) }]).unwrap();
    let again = agent.mind.state.tasks.queue()[0].next_due().unwrap().0;
    assert_eq!(again, failed_at + SignedDuration::from_secs(60));
    agent.is_replayed();
}

#[test]
fn calls_of_models_are_shared_with_those_who_are_asked_and_end_with_words() {
    let mut agent =
        lead(&["crane", "quay"], AgentProfile { message_model_calls: 31, max_steps: 100, ..Default::default() });
    agent.limits.max_steps = 100;
    agent.decides(&[]).unwrap();
    let asked = agent.works(&[delegates(&[("crane", json!({})), ("quay", json!({}))])]).unwrap();
    let asked = asks(&asked);
    let shares: Vec<u32> = asked.iter().map(|(_, ask)| ask.model_calls).collect();
    assert_eq!(shares, [10, 10], "as many as are left for the lead");
    agent.hears_back(&asked[0].0, "a-crane", "completed", "fine", 7);
    agent.hears_back(&asked[1].0, "a-quay", "completed", "fine", 0);
    // 31 less the first call, 3 of the crane and 10 of the quay.
    let most = 17;
    let mut made = 0;
    let mut last = None;
    while let Some((input, decided)) = agent.thinks(|_| {
        made += 1;
        asks_for("team.status", json!({}))
    }) {
        last = Some(agent.write(&AGENT_DECISION, Some(&input.record.envelope), decided));
        if agent.mind.state.tasks.queue().is_empty() {
            break;
        }
    }
    assert_eq!(made, most);
    let last = last.unwrap();
    assert_eq!(kinds(&last).last().unwrap(), "task failed");
    assert!(format!("{:?}", decision(&last).events).contains("may take 31 calls of models"), "{:?}", kinds(&last));
    agent.is_replayed();
}

#[test]
fn a_worker_makes_no_more_calls_than_it_was_given_and_gives_back_the_rest() {
    let given_back = |record: &Record| {
        let answer = decision(record).events.iter().find_map(|event| {
            let Some(Event::TaskEnded(ended)) = &event.event else { return None };
            ended.answer.clone()
        });
        answer.unwrap().model_calls_left
    };
    let mut agent = worker();
    agent.is_given_calls("work", &ids::from_parts("r", &["1"]).to_string(), 9);
    agent.decides(&[]).unwrap();
    let ended = agent.works(&[says("It is high.")]).unwrap();
    assert_eq!((kinds(&ended).last().unwrap().as_str(), given_back(&ended)), ("task completed", 8));
    agent.works(&[says("[]")]).unwrap();
    agent.is_given_calls("work", &ids::from_parts("r", &["2"]).to_string(), 2);
    agent.decides(&[]).unwrap();
    let called = agent.works(&[calls(&["http.get"])]).unwrap();
    agent.learns(&called, &actions(&called)[0], "1");
    let called = agent.works(&[calls(&["http.get"])]).unwrap();
    agent.learns(&called, &actions(&called)[0], "2");
    let ended = agent.works(&[]).unwrap();
    assert_eq!(kinds(&ended).last().unwrap(), "task failed");
    assert!(format!("{ended:?}").contains("the calls of models that a gave for this are made"));
    assert_eq!(given_back(&ended), 0);
    agent.is_replayed();
}
