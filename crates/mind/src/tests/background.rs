//! Agents that work in the background: what is acknowledged, queued, worked on and learned; and, whatever both lanes do
//! ([`interleaving`]).

mod interleaving;

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::subjects::{AGENT_COMMAND, TASK_DUE};
use kairo_proto::v1::{
    AgentCommand, BasisModel, DecidedEvent, DecisionBasis, QueuedTask, TaskDue, ToolCatalogue, ToolSpec,
};
use serde_json::json;

use super::{chains::kinds, *};
use crate::{log::NextBackgroundInput, replay::Replay, state::AgentState, tasks::TaskPhase};

fn background() -> Agent {
    Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() })
}

/// A model's acknowledgement: its words, and what it queues.
pub(super) fn queues(words: &str, tasks: &[&str]) -> Completion {
    let call = |text: &&str| CompletionToolCall {
        tool: "task.queue".into(),
        arguments: json!({ "text": text }).to_string(),
        ..Default::default()
    };
    Completion { text: words.into(), tool_calls: tasks.iter().map(call).collect(), ..Default::default() }
}

impl Agent {
    pub(super) fn orders(&mut self, user: &str, command_id: &str, command: &str, task_id: &str) -> Record {
        let [user, command_id, command, task_id] = [user, command_id, command, task_id].map(str::to_owned);
        self.write(&AGENT_COMMAND, None, AgentCommand { user, command_id, command, task_id, ..Default::default() })
    }

    pub(super) fn next_work(&mut self) -> Option<(Arc<AgentState>, DecisionInput)> {
        loop {
            match self.mind.next_background_input()? {
                NextBackgroundInput::Input(state, input) => return Some((state, input)),
                NextBackgroundInput::Missing(sequences) => {
                    for sequence in sequences {
                        self.mind
                            .supply_record(sequence, self.log.get(usize::try_from(sequence).unwrap() - 1).cloned());
                    }
                }
            }
        }
    }

    /// Has the next task started, if one is to be: the decision that says so, which asks no model.
    pub(super) fn starts(&mut self) -> Option<Record> {
        let (state, input) = self.next_work()?;
        let (limits, catalogue) = (self.limits.clone(), self.catalogue.clone());
        let (_, next) = Deliberation::begin(&state, &input, &catalogue, &limits).unwrap();
        let DeliberationStep::Commit(decision) = next else { return None };
        let is_start = |event: &DecidedEvent| matches!(&event.event, Some(Event::TaskStarted(it)) if it.before_work);
        let starts = decision.events.iter().any(is_start);
        starts.then(|| self.write(&AGENT_DECISION, Some(&input.record.envelope), *decision))
    }

    /// Thinks about the next input of the work lane, and decides nothing yet. A task that is to begin is started before.
    pub(super) fn thinks(
        &mut self,
        mut answer: impl FnMut(&ModelRequest) -> Completion,
    ) -> Option<(DecisionInput, AgentDecision)> {
        self.starts();
        let (state, input) = self.next_work()?;
        let (limits, catalogue) = (self.limits.clone(), self.catalogue.clone());
        let (mut thought, mut next) = Deliberation::begin(&state, &input, &catalogue, &limits).unwrap();
        loop {
            match next {
                DeliberationStep::Commit(decision) => return Some((input, *decision)),
                DeliberationStep::Ask(questions) => {
                    let completions = questions.iter().map(|question| Completion {
                        tier: question.request.tier.into(),
                        request_digest: question.request.digest(),
                        ..answer(&question.request)
                    });
                    let completions = completions.collect();
                    self.asked.extend(questions.into_iter().map(|question| question.request));
                    (thought, next) = thought.resume(completions);
                }
            }
        }
    }

    pub(super) fn works_with(&mut self, answer: impl FnMut(&ModelRequest) -> Completion) -> Option<Record> {
        let (input, decision) = self.thinks(answer)?;
        Some(self.write(&AGENT_DECISION, Some(&input.record.envelope), decision))
    }

    pub(super) fn works(&mut self, answers: &[Completion]) -> Option<Record> {
        let mut answers = answers.iter();
        let decided = self.works_with(|_| answers.next().expect("asked more often than answered").clone());
        assert!(answers.next().is_none(), "asked less often than answered");
        decided
    }

    /// The time of the first task in the queue has come.
    fn is_due(&mut self, occurrence: u64) {
        let due = TaskDue { task_id: self.task(), occurrence, ..Default::default() };
        self.write(&TASK_DUE, None, due);
    }

    fn task(&self) -> String {
        self.mind.state.tasks.queue()[0].id.to_string()
    }

    pub(super) fn texts(&self) -> Vec<String> {
        let text = |message: &PromptMessage| match message {
            PromptMessage::System { text } => vec![text.clone()],
            PromptMessage::User { text, .. }
            | PromptMessage::Assistant { text, .. }
            | PromptMessage::Tool { text, .. } => {
                std::iter::once(words_of(text)).chain(block_contents(text).map(str::to_owned)).collect()
            }
        };
        self.asked.last().unwrap().messages.iter().flat_map(text).collect()
    }

    /// Checks that a replay of the log makes the same decisions from the same requests.
    pub(super) fn is_replayed(&self) {
        let mut replay = replay_of(self);
        for record in &self.log {
            let Some(replayed) = replay.replay_record(record.clone()) else { continue };
            assert!(replayed.is_same(), "{replayed:?}");
        }
    }
}

/// One that knows the tools there are, and the limits.
fn replay_of(agent: &Agent) -> Replay {
    let Catalogue { version, tools } = agent.catalogue.clone();
    let spec = |tool: Tool| ToolSpec {
        name: tool.name.to_string(),
        description: tool.description.to_string(),
        schema: tool.schema.to_string(),
        needs_approval: tool.needs_approval,
        acts_outside: tool.acts_outside,
        ..Default::default()
    };
    let body = ToolCatalogue { version, tools: tools.into_iter().map(spec).collect(), ..Default::default() }.into();
    let limits = &agent.limits;
    let small = |number: usize| u32::try_from(number).unwrap();
    let model = |(tier, most): (&String, &usize)| BasisModel {
        tier: tier.clone(),
        context_tokens: small(*most),
        ..Default::default()
    };
    let basis = DecisionBasis {
        max_steps: limits.max_steps,
        model_tries: limits.tries,
        outage_tries: limits.outage_tries,
        listed_tools: small(limits.listing.tools),
        listed_tool_bytes: small(limits.listing.bytes),
        parallel_tools: small(limits.parallel_tools),
        chain_steps: small(limits.chain_steps),
        memory_rules: limits.memory_rules,
        models: limits.context_tokens.iter().map(model).collect(),
        ..Default::default()
    };
    let mut replay = Replay::default();
    for body in [body, basis.into()] {
        replay.replay_record(Record { sequence: 0, subject: String::new(), body, ..agent.log[0].clone() });
    }
    replay
}

#[test]
fn what_takes_work_is_acknowledged_in_one_call_of_the_fast_model_and_worked_on_in_a_thread_of_its_own() {
    let mut agent = background();
    let heard = agent.hears("m1", "Research NVIDIA stock");
    let acknowledged = agent.decides(&[queues("I will look into NVIDIA.", &["Research NVIDIA stock"])]).unwrap();
    assert_eq!(kinds(&acknowledged), ["created", "task scheduled", "say I will look into NVIDIA."]);
    assert_eq!(agent.asked[0].tier, "fast");
    let offered: Vec<&str> = agent.asked[0].tools.iter().map(|tool| &*tool.name).collect();
    assert!(offered.contains(&"task.queue") && !offered.contains(&"http.get"), "{offered:?}");

    let started = agent.starts().unwrap();
    assert_eq!(kinds(&started), ["created", "task started"], "before a model is asked");
    assert_eq!((decision(&started).work_input, decision(&started).cursor), (acknowledged.sequence, heard.sequence));
    assert_eq!(agent.mind.state.tasks.queue()[0].status, TaskPhase::InProgress);
    let asked = agent.works(&[calls(&["http.get"])]).unwrap();
    assert_eq!(kinds(&asked), ["call http.get"]);
    assert_eq!((decision(&asked).work_input, decision(&asked).cursor), (started.sequence, heard.sequence));
    assert_eq!(agent.asked[1].tier, "heavy");
    assert!(agent.texts().iter().all(|text| !text.contains("I will look into")), "the conversation is not shown");

    agent.learns(&asked, &actions(&asked)[0], "up 3 %");
    assert!(agent.decides(&[]).is_none(), "nothing for the foreground");
    let ended = agent.works(&[says("It is up 3 %.")]).unwrap();
    assert_eq!(kinds(&ended), ["task completed", "say It is up 3 %."]);
    let said = decision(&ended).events.iter().find(|event| event.say().is_some()).unwrap();
    let thread = |record: &Record| decision(record).events[0].thread_id.clone();
    assert_eq!(said.thread_id, thread(&acknowledged), "in the conversation");
    assert_ne!(thread(&asked), thread(&acknowledged));
    assert!(
        decision(&ended).events.iter().all(|event| event.correlation_id == heard.envelope.correlation_id.to_string())
    );
    let lesson = r#"[{ "kind": "insight", "subject": "stocks", "content": "http.get knows NVIDIA" }]"#;
    assert_eq!(kinds(&agent.works(&[says(lesson)]).unwrap()), ["memory", "completed"]);
    assert_eq!(agent.asked.last().unwrap().tier, "fast");
    assert!(agent.mind.state.work.is_nothing() && agent.mind.state.turns.is_empty());
    assert!(agent.works(&[]).is_none() && agent.decides(&[]).is_none());
    agent.is_replayed();

    agent.hears("m2", "And?");
    agent.decides(&[says("As I said.")]).unwrap();
    let told = agent.texts().join("\n");
    assert!(told.contains("It is up 3 %.") && told.contains(r#""status":"completed""#), "{told}");
}

#[test]
fn small_talk_is_answered_at_once_and_queues_nothing() {
    let mut agent = background();
    agent.hears("m1", "hello");
    assert_eq!(kinds(&agent.decides(&[says("hi")]).unwrap()), ["created", "say hi"]);
    assert!(agent.works(&[]).is_none() && agent.mind.state.work.is_nothing());
}

#[test]
fn what_was_learned_is_told_when_the_next_session_begins_and_the_very_same_is_one_memory() {
    let mut agent = background();
    let lesson = |content: &str| says(&json!([{ "kind": "fact", "content": content }]).to_string());
    let mut session = |task: &str, learned: &str| {
        agent.hears(task, task);
        agent.decides(&[queues("I will.", &[task])]).unwrap();
        agent.works(&[says("done")]).unwrap();
        let told = agent.texts().join("\n");
        let decided = agent.works(&[lesson(learned)]).unwrap();
        let memory = decision(&decided).events.iter().find_map(|event| {
            let Some(Event::MemoryAppended(memory)) = &event.event else { return None };
            Some(memory.clone())
        });
        (told, memory.unwrap())
    };
    let (told, first) = session("Research NVIDIA", "NVIDIA reports its results in May");
    assert!(!told.contains("learned"), "{told}");
    assert_eq!((first.kind.as_str(), first.user.as_str(), first.source_event_ids.is_empty()), ("fact", "ann", false));
    let (told, second) = session("Research AMD", "AMD, too, is in California");
    assert!(told.contains("What you learned at work before:\n- fact: NVIDIA reports its results in May"), "{told}");
    assert_ne!(second.memory_id, first.memory_id);
    let (told, third) = session("Research NVIDIA again", "nvidia reports its results in may");
    let place = |text: &str| told.find(text).unwrap();
    assert!(place("NVIDIA reports") < place("AMD, too"), "what has to do with the task comes first: {told}");
    assert_eq!((&third.memory_id, &third.content), (&first.memory_id, &first.content));
    assert!(first.source_event_ids.iter().all(|source| third.source_event_ids.contains(source)));
    assert!(third.source_event_ids.len() > first.source_event_ids.len());
    // Another user's work is not told of it.
    agent.hears_of("bob", "m9", "Research NVIDIA");
    agent.decides(&[queues("I will.", &["Research NVIDIA"])]).unwrap();
    agent.works(&[says("done")]).unwrap();
    assert!(!agent.texts().join("\n").contains("learned"));
}

#[test]
fn a_session_of_which_nothing_can_be_learned_is_over_all_the_same() {
    let mut agent = background();
    agent.hears("m1", "Research chips");
    agent.decides(&[queues("I will.", &["Research chips"])]).unwrap();
    agent.works(&[says("done")]).unwrap();
    let wrong = says(r#"[{ "kind": "secret", "content": "x" }]"#);
    let over = agent.works(&[wrong.clone(), wrong.clone(), wrong]).unwrap();
    assert_eq!(kinds(&over).last().unwrap(), "completed");
    assert!(agent.mind.state.work.is_nothing());
}

#[test]
fn what_is_queued_while_a_session_is_learned_from_begins_another_one() {
    let mut agent = background();
    agent.hears("m1", "Research chips");
    agent.decides(&[queues("I will.", &["Research chips"])]).unwrap();
    agent.works(&[says("done")]).unwrap();
    let (input, lessons) = agent.thinks(|_| says("[]")).unwrap();
    agent.hears("m2", "and AMD");
    agent.decides(&[queues("I will.", &["Research AMD"])]).unwrap();
    assert_eq!(agent.next_work().unwrap().1.record, input.record, "what was asked is not asked in vain");
    drop(lessons);
    assert_eq!(kinds(&agent.works(&[says("[]")]).unwrap()), ["completed"]);
    assert_eq!(kinds(&agent.starts().unwrap()), ["created", "task started"]);
}

#[test]
fn an_acknowledgement_without_words_is_asked_for_again() {
    let mut agent = background();
    agent.hears("m1", "Research NVIDIA stock");
    let silent = queues("", &["Research NVIDIA stock"]);
    let decided = agent.decides(&[silent.clone(), queues("I will.", &["Research NVIDIA stock"])]).unwrap();
    assert_eq!(acts(&decided), ["malformed_answer?", "I will."]);
    let mut agent = background();
    agent.hears("m1", "Research NVIDIA stock");
    let decided = agent.decides(&[silent.clone(), silent.clone(), silent]).unwrap();
    assert_eq!(acts(&decided).last().unwrap(), "Research NVIDIA stock");
    assert_eq!(agent.mind.state.tasks.queue().len(), 1);
}

#[test]
fn a_user_is_answered_while_a_task_is_worked_on_and_the_work_is_not_asked_for_again() {
    let mut agent = background();
    agent.hears("m1", "Research NVIDIA stock");
    agent.decides(&[queues("I will.", &["Research NVIDIA stock"])]).unwrap();
    // The heavy model is thinking; its answer is there when the user has been answered.
    let mut paid = BTreeMap::new();
    let (before, _) = agent
        .thinks(|request| {
            paid.insert(request.digest(), calls(&["http.get"]));
            calls(&["http.get"])
        })
        .unwrap();
    agent.hears("m2", "How far are you?");
    agent.decides(&[says("I have just begun.")]).unwrap();
    let told = agent.texts().join("\n");
    assert!(told.contains("Research NVIDIA stock") && told.contains(r#""status":"in_progress""#), "{told}");
    assert!(!told.contains("pending"), "{told}");
    let (after, committed) = agent.thinks(|request| paid[&request.digest()].clone()).unwrap();
    assert_eq!(after.record, before.record);
    assert_eq!(committed.completions.len(), 1);
}

#[test]
fn an_order_is_obeyed_before_the_next_call_of_the_work_and_what_is_in_flight_is_stopped() {
    let mut agent = background();
    agent.hears("m1", "Research NVIDIA stock");
    agent.decides(&[queues("I will.", &["Research NVIDIA stock", "Then AMD"])]).unwrap();
    let asked = agent.works(&[calls(&["http.get"])]).unwrap();
    let task = agent.task();
    agent.orders("ann", "c1", "cancel", &task);
    let stopped = agent.decides(&[]).unwrap();
    assert_eq!(kinds(&stopped), ["call action.cancel", "task canceled"]);
    // The other one begins; what comes of the first is nobody's move.
    agent.learns(&asked, &actions(&asked)[0], "late");
    assert_eq!(kinds(&agent.starts().unwrap()), ["task started"]);
    let began = agent.works(&[says("AMD is fine.")]).unwrap();
    assert_eq!(kinds(&began), ["task completed", "say AMD is fine."]);
    assert_eq!(kinds(&agent.works(&[says("[]")]).unwrap()), ["completed"]);
    assert!(agent.works(&[]).is_none() && agent.decides(&[]).is_none());
    agent.is_replayed();
}

#[test]
fn a_task_that_cancels_itself_is_over_with_the_chain_it_was_in() {
    let mut agent = background();
    agent.hears("m1", "Research NVIDIA stock");
    agent.decides(&[queues("I will.", &["Research NVIDIA stock"])]).unwrap();
    let own = asks_for("task.cancel", json!({ "task_id": agent.task() }));
    let decided = agent.works(&[own]).unwrap();
    let kinds = kinds(&decided);
    assert!(kinds.ends_with(&["chain canceled".to_owned(), "task canceled".to_owned()]), "{kinds:?}");
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn a_task_that_waits_can_be_canceled_or_put_first_in_words() {
    let mut agent = background();
    for (message, tasks) in [("m0", &["one"][..]), ("m1", &["two", "three"])] {
        agent.hears(message, "do it");
        agent.decides(&[queues("I will.", tasks)]).unwrap();
    }
    let ids: Vec<String> = agent.mind.state.tasks.queue().iter().map(|task| task.id.to_string()).collect();
    let asks = |tool: &str, task: &str| asks_for(tool, json!({ "task_id": task }));
    agent.hears("m2", "three first, and not two");
    let answers = [asks("task.first", &ids[2]), asks("task.cancel", &ids[1]), says("Done.")];
    let decided = agent.decides(&answers).unwrap();
    assert!(kinds(&decided).contains(&"task canceled".to_owned()), "{:?}", kinds(&decided));
    let queue = agent.mind.state.tasks.queue();
    assert_eq!(queue.iter().map(|task| task.text()).collect::<Vec<_>>(), ["three", "one"]);
    assert_eq!(acts(&agent.works(&[says("three is done")]).unwrap()), ["three is done"]);
    assert_eq!(acts(&agent.works(&[says("one is done")]).unwrap()), ["one is done"]);
    agent.works(&[says("[]")]).unwrap();
    assert!(agent.mind.state.work.is_nothing());
}

#[test]
fn a_task_that_fails_is_told_of_and_holds_up_nobody() {
    let mut agent = background();
    agent.hears("m1", "Two things");
    agent.decides(&[queues("I will.", &["one", "two"])]).unwrap();
    let failed = agent.works(&[fails(false)]).unwrap();
    assert_eq!(kinds(&failed), ["failed model_unavailable", "task pending"]);
    assert_eq!(acts(&agent.works(&[says("two is done")]).unwrap()), ["two is done"]);
    assert_eq!(kinds(&agent.works(&[says("[]")]).unwrap()), ["completed"]);
    assert!(agent.works(&[]).is_none(), "it waits for its time");
    let (at, occurrence) = agent.mind.state.tasks.queue()[0].next_due().unwrap();
    assert_eq!((at.duration_since(failed.envelope.time).as_secs() + 1, occurrence), (60, 1));

    agent.is_due(1);
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["task pending"]);
    agent.works(&[fails(false)]).unwrap();
    agent.works(&[says("[]")]).unwrap();
    agent.is_due(1);
    assert!(agent.decides(&[]).is_none(), "that time is over");
    agent.is_due(2);
    agent.decides(&[]).unwrap();
    let failed = agent.works(&[fails(false)]).unwrap();
    assert!(kinds(&failed).contains(&"task failed".to_owned()), "{:?}", kinds(&failed));
    assert!(acts(&failed).last().unwrap().contains("could not finish"), "{:?}", acts(&failed));
    assert!(agent.mind.state.tasks.queue().is_empty());
    agent.is_replayed();
}

#[test]
fn what_a_task_queues_is_worked_on_in_the_same_session_and_told_to_nobody() {
    let mut agent = background();
    agent.hears("m1", "Research chips");
    agent.decides(&[queues("I will.", &["Research chips"])]).unwrap();
    let ended = agent.works(&[queues("", &["Look at AMD"]), says("NVIDIA leads.")]).unwrap();
    assert_eq!(acts(&ended), ["NVIDIA leads."]);
    assert!(!kinds(&ended).contains(&"completed".to_owned()));
    assert_eq!(kinds(&agent.starts().unwrap()), ["task started"]);
    let ended = agent.works(&[says("AMD follows.")]).unwrap();
    assert_eq!(kinds(&ended), ["task completed"]);
    assert!(agent.texts().contains(&"NVIDIA leads.".to_owned()), "it is the same thread");
    let of_self = agent.mind.state.tasks.ended.iter().find(|task| task.source == "self").unwrap();
    assert_eq!((of_self.status, of_self.title.as_str()), (TaskPhase::Completed, "Look at AMD"));
}

#[test]
fn tasks_that_queue_tasks_come_to_an_end() {
    let mut agent = background();
    agent.hears("m1", "Research chips");
    agent.decides(&[queues("I will.", &["Research chips"])]).unwrap();
    let mut worked = 0;
    while agent
        .works_with(|request| match request.messages.last() {
            _ if request.tier == "fast" => says("[]"),
            Some(PromptMessage::Tool { .. }) => says("done"),
            _ => queues("", &["and on"]),
        })
        .is_some()
    {
        worked += 1;
    }
    assert_eq!(worked, crate::tasks::LINEAGE + 1, "and what was learned");
    let asked = agent.asked.len();
    agent.asked.truncate(asked - 1);
    assert!(agent.texts().join("").contains("follow from one another already"));
}

#[test]
fn users_tasks_are_worked_on_in_threads_of_their_own() {
    let mut agent = background();
    for user in ["ann", "bob"] {
        agent.hears_of(user, "m1", "a secret");
        agent.decides(&[queues("I will.", &[&format!("the secret of {user}")])]).unwrap();
    }
    agent.works(&[says("ann's is kept")]).unwrap();
    let ended = agent.works(&[says("bob's is kept")]).unwrap();
    assert!(agent.texts().iter().all(|text| !text.contains("ann")), "{:?}", agent.texts());
    for _ in 0..2 {
        let learned = agent.works(&[says("[]")]).unwrap();
        assert_eq!(kinds(&learned), ["completed"]);
    }
    let say = decision(&ended).events.iter().find_map(|event| event.say()).unwrap();
    assert_eq!(say.user, "bob");
}

#[test]
fn nobody_speaks_in_a_thread_of_work() {
    let mut agent = background();
    agent.hears("m1", "Research chips");
    agent.decides(&[queues("I will.", &["Research chips"])]).unwrap();
    let words = Completion { text: "First the news.".into(), ..calls(&["http.get"]) };
    let asked = agent.works(&[words]).unwrap();
    let said = decision(&asked).events.iter().find_map(|event| event.say()).unwrap();
    assert_eq!((said.text.as_str(), said.user.as_str()), ("First the news.", ""));
    let thread = agent.mind.state.work.threads["ann"].clone();
    let message = AgentMessage { message_id: "m9".into(), user: "ann".into(), thread_id: thread, ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    assert_eq!(acts(&agent.decides(&[]).unwrap())[0], "unknown_thread?");
}

/// The program knows the id of its task before the agent does.
#[test]
fn a_program_queues_a_task_of_a_given_id_without_a_model() {
    let order = |id: u128, command_id: &str| AgentCommand {
        user: "ann".into(),
        command_id: command_id.into(),
        command: "queue".into(),
        task: Some(QueuedTask { task_id: Uuid::from_u128(id).to_string(), text: "fees".into(), title: "Fees".into() }),
        ..Default::default()
    };
    let mut agent = background();
    for (id, command_id, expected) in [
        (7, "task/1", &["created", "task scheduled"][..]),
        (7, "task/2", &["failed unknown_task"]),
        (8, "task/3", &["task scheduled"]),
    ] {
        agent.write(&AGENT_COMMAND, None, order(id, command_id));
        assert_eq!(kinds(&agent.decides(&[]).unwrap()), expected);
    }
    let conversations: BTreeSet<_> = agent.mind.state.tasks.open.values().map(|task| task.thread_id.clone()).collect();
    assert!(conversations.iter().all(|thread| agent.mind.state.threads.contains_key(thread)), "{conversations:?}");
    let open: Vec<_> = agent.mind.state.tasks.open.keys().copied().collect();
    assert_eq!(open, [7, 8].map(Uuid::from_u128));
    agent.write(&AGENT_COMMAND, None, order(9, "task/1"));
    assert!(agent.decides(&[]).is_none(), "the same request is the same task");
    let mut direct = Agent::with(AgentProfile::default());
    direct.write(&AGENT_COMMAND, None, order(7, "task/1"));
    assert_eq!(kinds(&direct.decides(&[]).unwrap()), ["failed unknown_task"]);
}
