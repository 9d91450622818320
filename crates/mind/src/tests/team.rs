//! Agents with missions and teams: what a lead asks of its workers, what they answer, what all of it may cost, and what the
//! owner is told.

use kairo_events::subjects::{AGENT_ANSWER, AGENT_COMMAND, AGENT_REQUEST, TASK_DUE};
use kairo_proto::v1::{
    AgentAnswer, AgentBriefed, AgentCommand, AgentRequest, Ask, Spent, TaskAnswer, TaskDue, Team, TeamWorker,
};
use serde_json::json;

use super::{background::queues, chains::kinds, *};
use crate::tasks::TaskPhase;

const OWNER: &str = "ann";

fn lead(tokens_per_day: u64) -> Agent {
    let worker = |name: &str| TeamWorker { agent: format!("a-{name}"), description: format!("{name}s") };
    let team = Team { workers: ["search", "write"].map(worker).into(), tokens_per_day, ..Default::default() };
    Agent::with(AgentProfile {
        conduct: "background".into(),
        mission: "Know all of NVIDIA".into(),
        owner: OWNER.into(),
        team: Some(team),
        ..Default::default()
    })
}

fn worker() -> Agent {
    Agent::named("a-search", AgentProfile { conduct: "background".into(), lead: "a".into(), ..Default::default() })
}

fn delegates(tasks: &[(&str, &str)]) -> Completion {
    let call = |(worker, task): &(&str, &str)| CompletionToolCall {
        tool: "team.delegate".into(),
        arguments: json!({ "worker": worker, "task": task }).to_string(),
        ..Default::default()
    };
    Completion { tool_calls: tasks.iter().map(call).collect(), ..Default::default() }
}

fn briefing_answer(worth: bool, summary: &str) -> Completion {
    let briefing =
        json!({ "worth": worth, "reason": "it moves", "summary": summary, "text": format!("{summary}, in full") });
    says(&json!({ "memories": [], "briefing": briefing }).to_string())
}

/// Returns the requests to other agents, by action.
fn asks(record: &Record) -> Vec<(String, Ask)> {
    let ask = |event: &kairo_proto::v1::DecidedEvent| Some((event.event_id.clone(), event.ask()?.clone()));
    decision(record).events.iter().filter_map(ask).collect()
}

/// Returns the answers to those who asked for tasks.
fn answers(record: &Record) -> Vec<TaskAnswer> {
    let answer = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::TaskEnded(ended)) = &event.event else { return None };
        ended.answer.clone()
    };
    decision(record).events.iter().filter_map(answer).collect()
}

fn briefed(record: &Record) -> AgentBriefed {
    let briefed = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::Briefed(briefed)) = &event.event else { return None };
        Some(briefed.clone())
    };
    decision(record).events.iter().find_map(briefed).unwrap()
}

impl Agent {
    fn is_answered(&mut self, request_id: &str, status: &str, result: &str, tokens: u64) -> Record {
        let [request_id, status, result] = [request_id, status, result].map(str::to_owned);
        let reason = if status == "completed" { String::new() } else { result.clone() };
        let from = self.mind.state.in_flight[&request_id.parse().unwrap()].asked.clone().unwrap();
        let spent = Some(Spent { tokens, ..Default::default() });
        let answer = AgentAnswer { request_id, from, status, result, reason, spent, ..Default::default() };
        self.write(&AGENT_ANSWER, None, answer)
    }

    fn is_asked(&mut self, kind: &str, request_id: &str, text: &str) -> Record {
        let [kind, request_id, text] = [kind, request_id, text].map(str::to_owned);
        let (from, path, user) = ("a".to_owned(), vec!["a".to_owned()], OWNER.to_owned());
        let request =
            AgentRequest { request_id, from, kind, user, title: text.clone(), text, path, ..Default::default() };
        self.write(&AGENT_REQUEST, None, request)
    }

    fn team_is_ordered(&mut self, user: &str, command: &str) -> Option<Record> {
        let command_id = format!("{command}/{}", self.log.len());
        let (user, command, team) = (user.to_owned(), command.to_owned(), "a".to_owned());
        self.write(&AGENT_COMMAND, None, AgentCommand { command_id, user, command, team, ..Default::default() });
        self.decides(&[])
    }

    /// Up to the two questions to its workers.
    fn has_delegated(&mut self) -> Vec<(String, Ask)> {
        assert_eq!(kinds(&self.decides(&[]).unwrap()), ["task scheduled"]);
        asks(&self.works(&[delegates(&[("search", "Find the news"), ("a-write", "Write a report")])]).unwrap())
    }
}

#[test]
fn a_new_team_queues_get_to_work_and_the_lead_starts_at_once() {
    let mut agent = lead(0);
    let scheduled = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&scheduled), ["task scheduled"]);
    let task = agent.mind.state.tasks.queue()[0].clone();
    assert_eq!((task.source.as_str(), task.user.as_str()), ("system", OWNER));
    assert_eq!(task.text(), "Get to work on your mission: Know all of NVIDIA");
    assert_eq!(kinds(&agent.starts().unwrap()), ["created", "task started"]);
    let asked = agent.works(&[delegates(&[("search", "Find the news"), ("a-write", "Write a report")])]).unwrap();
    assert_eq!(kinds(&asked), ["chain started", "asks a-search to work", "asks a-write to work"]);
    let prompt = agent.texts()[0].clone();
    assert!(prompt.contains("Know all of NVIDIA") && prompt.contains("- a-search: searchs"), "{prompt}");
    // Defining it again changes nothing.
    let profile = AgentDefined::of(&agent.log[0].body).unwrap().clone();
    agent.write(&AGENT_DEFINED, None, profile);
    assert!(agent.decides(&[]).is_none());
}

#[test]
fn what_workers_answer_is_the_result_of_the_calls_and_comes_back_to_the_lead() {
    let mut agent = lead(0);
    let asked = agent.has_delegated();
    assert_eq!((asked[0].1.path.as_slice(), asked[0].1.user.as_str()), (["a".to_owned()].as_slice(), OWNER));
    agent.is_answered(&asked[0].0, "completed", "up 3 %", 100);
    assert!(agent.works(&[]).is_none() && agent.decides(&[]).is_none(), "the other one is awaited");
    agent.is_answered(&asked[1].0, "failed", "no paper", 10);
    agent.is_answered_again(&asked[0].0);
    let ended = agent.works(&[says("It is up.")]).unwrap();
    assert_eq!(kinds(&ended), ["step 2 done", "chain done", "task completed"], "nobody asked, so nobody is told");
    let shown = agent.texts().join("\n");
    assert!(shown.contains("up 3 %") && shown.contains("no paper"), "{shown}");
    assert_eq!(agent.mind.state.team.spent.tokens, 110);
    agent.is_replayed();
}

impl Agent {
    /// The same answer comes once more, when nothing waits for it.
    fn is_answered_again(&mut self, request_id: &str) {
        let answer = self.log.iter().find_map(|record| {
            let answer = AgentAnswer::of(&record.body)?;
            (answer.request_id == request_id).then(|| answer.clone())
        });
        self.write(&AGENT_ANSWER, None, answer.unwrap());
    }
}

#[test]
fn a_worker_queues_what_it_is_asked_for_once_and_answers_once_with_what_it_spent() {
    let mut agent = worker();
    assert!(agent.decides(&[]).is_none(), "it has no mission and nothing to begin with");
    let request = ids::from_parts("r", &["1"]).to_string();
    agent.is_asked("work", &request, "Find the news");
    agent.is_asked("work", &request, "Find the news");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["task scheduled"]);
    assert!(agent.decides(&[]).is_none(), "asked again, it is the same request");
    let task = agent.mind.state.tasks.queue()[0].clone();
    assert_eq!((task.source.as_str(), task.text(), task.user.as_str()), ("delegation", "Find the news", OWNER));
    let spends = |completion: Completion, tokens| Completion { input_tokens: tokens, output_tokens: 1, ..completion };
    let call = agent.works(&[spends(calls(&["http.get"]), 10)]).unwrap();
    agent.learns(&call, &actions(&call)[0], "news");
    let ended = agent.works(&[spends(says("Here they are."), 20)]).unwrap();
    assert_eq!(kinds(&ended), ["task completed"], "no user is told: the lead is");
    let told = answers(&ended);
    assert_eq!((told[0].agent.as_str(), told[0].request_id.as_str()), ("a", request.as_str()));
    assert_eq!(told[0].spent, Some(Spent { tokens: 32, ..Default::default() }));
    assert_eq!(agent.mind.state.team.spent.tokens, 0);
    // What it learns is spent, and told with the next answer. It tells nobody of it, and no time is set to run again.
    let learned = agent.works(&[spends(says("[]"), 5)]).unwrap();
    assert_eq!(kinds(&learned), ["completed"]);
    assert_eq!(agent.mind.state.team.spent.tokens, 6);
    assert!(agent.mind.state.tasks.next_run().is_none());
    agent.is_replayed();
}

#[test]
fn what_is_withdrawn_is_answered_as_canceled_whichever_comes_first() {
    let mut agent = worker();
    let requests = ["1", "2"].map(|name| ids::from_parts("r", &[name]).to_string());
    agent.is_asked("work", &requests[0], "Find the news");
    agent.decides(&[]).unwrap();
    agent.is_asked("cancel", &requests[0], "");
    let canceled = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&canceled), ["task canceled"]);
    assert_eq!(answers(&canceled)[0].request_id, requests[0]);
    // The withdrawal overtakes the request.
    agent.is_asked("cancel", &requests[1], "");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["task scheduled", "task canceled"]);
    agent.is_asked("work", &requests[1], "Find the news");
    assert!(agent.decides(&[]).is_none());
    // What has ended has been answered.
    agent.is_asked("cancel", &requests[0], "");
    assert!(agent.decides(&[]).is_none_or(|decided| kinds(&decided).is_empty()));
    assert!(agent.mind.state.tasks.queue().is_empty() && agent.works(&[]).is_none());
    agent.is_replayed();
}

#[test]
fn stopping_the_task_of_a_lead_stops_what_its_workers_do_for_it() {
    let mut agent = lead(0);
    let asked = agent.has_delegated();
    let task = agent.mind.state.tasks.queue()[0].id.to_string();
    agent.orders(OWNER, "c", "cancel", &task);
    let canceled = agent.decides(&[]).unwrap();
    let told = asks(&canceled);
    assert_eq!((told.len(), kinds(&canceled).last().unwrap().as_str()), (2, "task canceled"));
    assert!(told.iter().all(|(_, ask)| ask.kind == "cancel"));
    let named: std::collections::BTreeSet<&str> = told.iter().map(|(_, ask)| ask.request_id.as_str()).collect();
    assert_eq!(named, asked.iter().map(|(action, _)| action.as_str()).collect());
    for (action, _) in &asked {
        agent.is_answered(action, "canceled", "no longer", 1);
        assert!(agent.decides(&[]).is_none());
    }
    assert!(agent.mind.state.in_flight.is_empty() && agent.mind.state.turns.is_empty());
    // The session is over like any other.
    assert_eq!(kinds(&agent.works(&[told_nothing()]).unwrap()), ["briefed false", "completed", "task scheduled"]);
    agent.is_replayed();
}

fn told_nothing() -> Completion {
    briefing_answer(false, "")
}

#[test]
fn one_call_is_stopped_by_the_model_and_the_others_go_on() {
    let mut agent = lead(0);
    let asked = agent.has_delegated();
    agent.hears("m1", "never mind the report");
    let stop = asks_for("action.cancel", json!({ "action_id": asked[1].0 }));
    let stopped = agent.decides(&[stop, says("I stop it.")]).unwrap();
    assert!(kinds(&stopped).contains(&"asks a-write to cancel".to_owned()), "{:?}", kinds(&stopped));
    assert!(kinds(&stopped).contains(&"say I stop it.".to_owned()));
    agent.is_answered(&asked[1].0, "canceled", "no longer", 0);
    agent.is_answered(&asked[0].0, "completed", "news", 0);
    assert_eq!(kinds(&agent.works(&[says("Done.")]).unwrap()).last().unwrap(), "task completed");
    agent.is_replayed();
}

#[test]
fn a_worker_of_another_team_an_agent_on_whose_behalf_it_is_and_an_empty_task_are_refused() {
    let mut agent = lead(0);
    agent.decides(&[]).unwrap();
    let calls = [("nobody", "x"), ("search", " ")];
    let refused = agent.works(&[delegates(&calls), says("I cannot.")]).unwrap();
    assert!(asks(&refused).is_empty());
    let shown = agent.texts().join("\n");
    assert!(shown.contains("none of the team") && shown.contains("expected what is to be done"), "{shown}");
}

#[test]
fn nothing_is_begun_once_the_budget_of_the_day_is_spent_and_the_team_goes_on_by_itself_on_the_next_day() {
    let mut agent = lead(100);
    let asked = agent.has_delegated();
    agent.is_answered(&asked[0].0, "completed", "news", 60);
    agent.is_answered(&asked[1].0, "completed", "report", 60);
    let rests = agent.works(&[says("Done.")]).unwrap();
    let expected = [
        "step 2 done",
        "chain done",
        "task completed",
        "team paused",
        "asks a-search to pause",
        "asks a-write to pause",
    ];
    assert_eq!(kinds(&rests)[..6], expected);
    assert!(kinds(&rests)[6].starts_with("say The team rests until 1970-01-02T00:00:00Z: 120 of 100 tokens"));
    let next = agent.mind.state.tasks.next_run().unwrap();
    assert_eq!(next.next_due().unwrap().0, "1970-01-02T00:00:00Z".parse::<Timestamp>().unwrap());
    assert_eq!(kinds(&agent.works(&[told_nothing()]).unwrap()), ["briefed false", "completed", "task pending"]);
    // What the owner asks for is refused at once, and nothing is queued.
    agent.hears("m1", "do more");
    let refused = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&refused)[0], "failed team_over_budget");
    assert!(kinds(&refused)[1].contains("kairo teams resume a --budget TOKENS"), "{:?}", kinds(&refused));
    assert!(agent.works(&[]).is_none());
    let (task, occurrence) = {
        let next = agent.mind.state.tasks.next_run().unwrap();
        (next.id.to_string(), next.next_due().unwrap().1)
    };
    agent.later = 24 * 3_600;
    agent.write(&TASK_DUE, None, TaskDue { task_id: task, occurrence, ..Default::default() });
    let goes_on = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&goes_on), ["team active", "asks a-search to resume", "asks a-write to resume", "task pending"]);
    agent.hears("m2", "do more");
    agent.decides(&[queues("I will.", &["more"])]).unwrap();
    while agent.mind.state.tasks.queue().iter().any(|task| task.source == "user") {
        agent.works(&[says("I did more.")]).unwrap();
    }
    assert_eq!(agent.mind.state.team.spent.tokens, 0, "of the new day");
    agent.is_replayed();
}

/// A lead whose team has spent what it may in a day.
fn over_budget() -> (Agent, String) {
    let mut agent = lead(100);
    let asked = agent.has_delegated();
    agent.is_answered(&asked[0].0, "completed", "news", 60);
    agent.is_answered(&asked[1].0, "completed", "report", 60);
    agent.works(&[says("Done.")]).unwrap();
    agent.works(&[told_nothing()]).unwrap();
    assert!(agent.mind.state.team.over_budget);
    let next = agent.mind.state.tasks.next_run().unwrap().id.to_string();
    (agent, next)
}

#[test]
fn what_wakes_a_team_on_the_next_day_is_not_run_before_and_when_it_is_resumed_it_wakes_it_all_the_same() {
    let (mut agent, next) = over_budget();
    agent.orders(OWNER, "c1", "run", &next);
    let refused = agent.decides(&[]).unwrap();
    assert!(kinds(&refused).iter().any(|kind| kind.starts_with("failed")), "{:?}", kinds(&refused));
    agent.orders(OWNER, "c2", "pause", &next);
    agent.decides(&[]).unwrap();
    assert_eq!(agent.mind.state.tasks.next_run().unwrap().next_due(), None);
    agent.orders(OWNER, "c3", "resume", &next);
    agent.decides(&[]).unwrap();
    let (at, occurrence) = agent.mind.state.tasks.next_run().unwrap().next_due().unwrap();
    assert_eq!(at, "1970-01-02T00:00:00Z".parse::<Timestamp>().unwrap());
    agent.later = 24 * 3_600;
    agent.write(&TASK_DUE, None, TaskDue { task_id: next, occurrence, ..Default::default() });
    agent.decides(&[]).unwrap();
    assert!(agent.mind.state.may_begin_tasks());
    agent.is_replayed();
}

#[test]
fn a_team_whose_next_run_was_canceled_goes_on_with_whatever_its_lead_decides_on_the_next_day() {
    let (mut agent, next) = over_budget();
    agent.orders(OWNER, "c1", "cancel", &next);
    agent.decides(&[]).unwrap();
    agent.hears("m1", "do more");
    assert_eq!(kinds(&agent.decides(&[]).unwrap())[0], "failed team_over_budget");
    agent.later = 24 * 3_600;
    agent.hears("m2", "do more");
    let woken = agent.decides(&[queues("I will.", &["more"])]).unwrap();
    assert!(kinds(&woken).contains(&"team active".to_owned()), "{:?}", kinds(&woken));
    agent.works(&[says("I did more.")]).unwrap();
    agent.is_replayed();
}

#[test]
fn a_next_run_that_its_owner_paused_stays_so_when_a_session_ends() {
    let mut agent = lead(0);
    agent.decides(&[]).unwrap();
    agent.works(&[says("NVIDIA is up 9 %.")]).unwrap();
    agent.works(&[told_nothing()]).unwrap();
    let next = agent.mind.state.tasks.next_run().unwrap().id.to_string();
    agent.orders(OWNER, "c1", "pause", &next);
    agent.decides(&[]).unwrap();
    agent.hears("m1", "and AMD?");
    agent.decides(&[queues("I will look.", &["AMD"])]).unwrap();
    agent.works(&[says("AMD is flat.")]).unwrap();
    agent.works(&[told_nothing()]).unwrap();
    assert_eq!(agent.mind.state.tasks.next_run().unwrap().status, TaskPhase::Paused);
    agent.is_replayed();
}

#[test]
fn a_session_of_a_lead_ends_with_a_briefing_or_the_reason_why_not_and_the_time_of_the_next_run() {
    let mut agent = lead(0);
    agent.decides(&[]).unwrap();
    agent.works(&[says("NVIDIA is up 9 %.")]).unwrap();
    let over = agent.works(&[briefing_answer(true, "NVIDIA jumps")]).unwrap();
    assert_eq!(kinds(&over), ["briefed true", "say NVIDIA jumps, in full", "completed", "task scheduled"]);
    assert!(
        agent
            .asked
            .last()
            .unwrap()
            .messages
            .iter()
            .any(|it| matches!(it, PromptMessage::System { text } if text.contains("agent.brief")))
    );
    let said = briefed(&over);
    assert_eq!((said.summary.as_str(), said.user.as_str(), said.reason.as_str()), ("NVIDIA jumps", OWNER, "it moves"));
    // The next run is an hour after.
    let next = agent.mind.state.tasks.next_run().unwrap().clone();
    assert_eq!(next.next_due(), Some((over_time(&agent, &over) + SignedDuration::from_hours(1), 100)));
    assert!(agent.works(&[]).is_none(), "not before its time");
    // A task of the user in between puts it off, and is no second run.
    agent.hears("m1", "and AMD?");
    let shown = agent.decides(&[queues("I will look.", &["AMD"])]).unwrap();
    assert!(
        agent.texts().iter().any(|text| text.contains("NVIDIA jumps, in full")),
        "the briefing is in the conversation"
    );
    assert!(kinds(&shown).contains(&"task scheduled".to_owned()));
    agent.works(&[says("AMD is flat.")]).unwrap();
    let silent = agent.works(&[told_nothing()]).unwrap();
    assert_eq!(kinds(&silent), ["briefed false", "completed", "task pending"]);
    assert_eq!(briefed(&silent).summary, "");
    let put_off = agent.mind.state.tasks.next_run().unwrap().clone();
    assert_eq!((put_off.id, put_off.failed_sessions()), (next.id, 0));
    // The time before it is nobody's any more; the new one wakes it once.
    for (occurrence, wakes) in [(100, false), (101, true), (101, false)] {
        agent.write(&TASK_DUE, None, TaskDue { task_id: next.id.to_string(), occurrence, ..Default::default() });
        assert_eq!(agent.decides(&[]).is_some(), wakes, "{occurrence}");
    }
    let ran = agent.works(&[says("Nothing to do.")]).unwrap();
    assert!(kinds(&ran).contains(&"task completed".to_owned()));
    assert!(agent.texts().iter().any(|text| text.contains("What should you work on for your mission now?")));
    agent.works(&[told_nothing()]).unwrap();
    assert!(agent.mind.state.tasks.next_run().is_some_and(|again| again.id != next.id));
    agent.is_replayed();
}

fn over_time(_: &Agent, record: &Record) -> Timestamp {
    // The recorded time of what the decision was made on.
    record.envelope.time - SignedDuration::from_secs(1)
}

#[test]
fn only_the_owner_pauses_a_team_and_what_is_paused_begins_nothing() {
    let mut agent = lead(0);
    agent.decides(&[]).unwrap();
    assert_eq!(kinds(&agent.team_is_ordered("bob", "pause").unwrap()), ["failed unknown_team"]);
    let paused = agent.team_is_ordered(OWNER, "pause").unwrap();
    assert_eq!(kinds(&paused), ["team paused", "asks a-search to pause", "asks a-write to pause"]);
    assert!(agent.works(&[]).is_none());
    assert_eq!(kinds(&agent.team_is_ordered(OWNER, "pause").unwrap()), ["failed team_unchanged"]);
    agent.hears("m1", "how far are you?");
    let refused = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&refused)[0], "failed team_paused");
    assert!(kinds(&refused)[1].contains("its owner ann resumes it: kairo teams resume a"), "{:?}", kinds(&refused));
    let resumed = agent.team_is_ordered(OWNER, "resume").unwrap();
    assert_eq!(kinds(&resumed), ["team active", "asks a-search to resume", "asks a-write to resume"]);
    assert!(agent.next_work().is_some());
    let archived = agent.team_is_ordered(OWNER, "archive").unwrap();
    assert_eq!(kinds(&archived), ["team archived", "asks a-search to pause", "asks a-write to pause", "task canceled"]);
    assert!(agent.works(&[]).is_none());
    assert_eq!(kinds(&agent.team_is_ordered(OWNER, "resume").unwrap()), ["failed team_archived"]);
    agent.hears("m2", "how far are you?");
    assert_eq!(kinds(&agent.decides(&[]).unwrap())[0], "failed team_archived");
    assert!(agent.mind.state.turns.is_empty() && agent.mind.state.tasks.queue().is_empty());
    agent.is_replayed();
}

#[test]
fn a_worker_rests_when_its_lead_says_so_and_nobody_else() {
    let mut agent = worker();
    let request = ids::from_parts("r", &["1"]).to_string();
    agent.is_asked("work", &request, "Find the news");
    agent.decides(&[]).unwrap();
    agent.is_asked("pause", "", "budget");
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["team paused"]);
    assert!(agent.works(&[]).is_none());
    let stranger = AgentRequest { from: "b".into(), kind: "resume".into(), ..Default::default() };
    agent.write(&AGENT_REQUEST, None, stranger);
    agent.decides(&[]).unwrap();
    assert!(agent.works(&[]).is_none());
    // What was decided before the last word that came is out of date.
    let decided =
        |kind: &str, decided| AgentRequest { from: "a".into(), kind: kind.into(), decided, ..Default::default() };
    agent.write(&AGENT_REQUEST, None, decided("pause", 20));
    agent.decides(&[]).unwrap();
    agent.write(&AGENT_REQUEST, None, decided("resume", 19));
    assert!(kinds(&agent.decides(&[]).unwrap()).is_empty());
    assert!(agent.works(&[]).is_none());
    agent.write(&AGENT_REQUEST, None, decided("resume", 21));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["team active"]);
    assert!(agent.next_work().is_some());
    assert_eq!(agent.mind.state.tasks.queue()[0].status, TaskPhase::Pending);
}

#[test]
fn an_agent_that_is_not_there_answers_that_it_is_not() {
    let mut agent = worker();
    agent.log.clear();
    agent.mind = Log::default();
    agent.is_asked("work", &ids::from_parts("r", &["1"]).to_string(), "Find the news");
    let refused = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&refused), ["task scheduled", "task failed"]);
    assert_eq!(answers(&refused).len(), 1);
}

#[test]
fn users_take_turns_in_the_queue_and_first_is_first_of_ones_own() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
    let says_as = |agent: &mut Agent, user: &str, tasks: &[&str]| {
        let message_id = format!("{user}/{}", agent.log.len());
        let (user, text) = (user.to_owned(), "do".to_owned());
        agent.write(&AGENT_MESSAGE, None, AgentMessage { message_id, user, text, ..Default::default() });
        agent.decides(&[queues("I will.", tasks)]).unwrap();
    };
    says_as(&mut agent, "ann", &["a1", "a2"]);
    says_as(&mut agent, "ann", &["a3"]);
    says_as(&mut agent, "bob", &["b1", "b2"]);
    says_as(&mut agent, "cid", &["c1"]);
    let id = |agent: &Agent, text: &str| {
        agent.mind.state.tasks.queue().into_iter().find(|task| task.text() == text).unwrap().id.to_string()
    };
    // A task put first is the next one of its own user, and goes before nobody else's.
    let last = id(&agent, "a3");
    agent.hears("m", "a3 first");
    agent.decides(&[asks_for("task.first", json!({ "task_id": last })), says("Done.")]).unwrap();
    let mut worked = Vec::new();
    while let Some((input, decision)) = agent.thinks(|request| match request.tier {
        "heavy" => says("done"),
        _ => says("[]"),
    }) {
        agent.write(&AGENT_DECISION, Some(&input.record.envelope), decision);
        worked.extend(agent.mind.state.tasks.ended.back().map(|task| task.text().to_owned()));
    }
    worked.dedup();
    assert_eq!(worked, ["a3", "b1", "c1", "a1", "b2", "a2"]);
    agent.is_replayed();
}

#[test]
fn a_team_over_its_budget_is_resumed_once_its_owner_raised_it_and_rests_on_where_the_owner_pauses_it() {
    let (mut agent, _) = over_budget();
    assert_eq!(kinds(&agent.team_is_ordered(OWNER, "resume").unwrap()), ["failed team_over_budget"]);
    let mut raised = AgentDefined::of(&agent.log[0].body).unwrap().clone();
    raised.profile.as_mut().unwrap().team.as_mut().unwrap().tokens_per_day = 1_000;
    agent.write(&AGENT_DEFINED, None, raised);
    let resumed = agent.team_is_ordered(OWNER, "resume").unwrap();
    assert_eq!(kinds(&resumed)[0], "team active");
    assert!(agent.mind.state.may_begin_tasks());
    agent.is_replayed();
    let (mut agent, _) = over_budget();
    assert_eq!(kinds(&agent.team_is_ordered(OWNER, "pause").unwrap())[0], "team paused");
    assert!(!agent.mind.state.team.over_budget, "no new day wakes it");
    agent.is_replayed();
}

#[test]
fn another_agent_that_asks_a_team_at_rest_is_told_so() {
    let mut agent = lead(0);
    agent.decides(&[]).unwrap();
    agent.team_is_ordered(OWNER, "pause").unwrap();
    let request = ids::from_parts("r", &["9"]).to_string();
    agent.is_asked("think", &request, "what is new?");
    let refused = format!("{:?}", agent.decides(&[]).unwrap());
    assert!(refused.contains("is paused and begins nothing until its owner ann resumes it"), "{refused}");
}
