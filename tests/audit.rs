//! Counting over the whole log: what must be there once is there once. Whoever has a log at rest can have it checked,
//! be it of a real system or of a simulated one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kairo_core::{ids, record::Record, subjects::find_route};
use kairo_mind::replay::{Replay, ReplayOutcome, ReplayedDecision};
use kairo_proto::{
    About, Body,
    about::{Process, Tool},
    v1::{AgentAnswer, AgentDecision, AgentRequest, Ask, DecidedEvent, ToolCall, UserMessage, decided_event::Event},
    words::{RequestKind, TaskKind, TaskSource, TaskStatus, TeamStatus, ThreadKind},
};

/// Everything that is wrong with a log in which nothing is left to do.
pub fn mistakes(records: &[Record]) -> Vec<String> {
    let mut wrong = miscounted(records);
    wrong.extend(replays(records).iter().map(ToString::to_string));
    wrong
}

/// Returns everything that is in the log more or less often than it should be.
pub fn miscounted(records: &[Record]) -> Vec<String> {
    let mut wrong = deliveries(records);
    wrong.extend(replies(records));
    wrong.extend(actions(records));
    wrong.extend(decisions(records));
    wrong.extend(queued(records));
    wrong.extend(asked(records));
    wrong
}

/// A decision that is not what the log says when it is made again from what the log says it was made of.
#[derive(Debug)]
pub struct OtherDecision(ReplayedDecision);

impl OtherDecision {
    /// Returns true if the decision is the same and only the models would be asked in other words.
    pub fn is_asked_otherwise(&self) -> bool {
        self.0.outcome == ReplayOutcome::Same && !self.0.without_basis
    }

    /// Returns the agent of the decision and its position in the log.
    pub fn place(&self) -> String {
        format!("{} at {}", self.0.agent, self.0.sequence)
    }
}

impl fmt::Display for OtherDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "made again, the decision is another: {:?}", self.0)
    }
}

/// Every decision that is another when it is made again.
pub fn replays(records: &[Record]) -> Vec<OtherDecision> {
    let mut replay = Replay::new(None);
    let replayed = records.iter().filter_map(|record| replay.replay_record(record.clone()));
    replayed.filter(|replayed| !replayed.is_same() || replayed.without_basis).map(OtherDecision).collect()
}

/// Checks that `found` holds each of `expected` once and nothing else; returns the deviations.
fn once<T: Ord + fmt::Debug>(
    what: &str,
    expected: impl IntoIterator<Item = T>,
    found: impl IntoIterator<Item = T>,
) -> Vec<String> {
    let mut counts: BTreeMap<T, i32> = BTreeMap::new();
    found.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
    let expected: BTreeSet<T> = expected.into_iter().collect();
    let missing = expected.iter().filter(|key| !counts.contains_key(key)).map(|key| format!("no {what} for {key:?}"));
    let wrong = counts.iter().filter(|(key, count)| **count != 1 || !expected.contains(key));
    missing.chain(wrong.map(|(key, count)| format!("{count} × {what} for {key:?}"))).collect()
}

/// A message as its sender knows it.
type MessageOf = (String, String);

/// Every message that was sent, by the chain that begins with it.
fn sent(records: &[Record]) -> BTreeMap<String, MessageOf> {
    let sent = |record: &Record| {
        let message = UserMessage::of(&record.body)?;
        let id = ids::message_id(&message.message_id, record.envelope.id);
        Some((record.envelope.correlation_id.to_string(), (message.user.clone(), id)))
    };
    records.iter().filter_map(sent).collect()
}

/// Every message was delivered to its agent once, or sent back once.
fn deliveries(records: &[Record]) -> Vec<String> {
    let sent = sent(records);
    let arrived =
        records.iter().filter(|it| matches!(it.body, Body::AgentMessage(_) | Body::UserMessageUndelivered(_)));
    once("delivery", sent.keys().cloned(), arrived.map(|record| record.envelope.correlation_id.to_string()))
}

/// Every message that was delivered was answered once: by itself, or together with another that was.
fn replies(records: &[Record]) -> Vec<String> {
    let sent = sent(records);
    let delivered = records.iter().filter(|record| matches!(record.body, Body::AgentMessage(_)));
    let delivered: Vec<&MessageOf> =
        delivered.filter_map(|record| sent.get(&record.envelope.correlation_id.to_string())).collect();
    let events = || records.iter().filter_map(decision).flat_map(|decision| &decision.events);
    // What was said of its own accord answers no message.
    let replied = |event: &DecidedEvent| event.say().is_some_and(|say| say.r#final && !say.message_id.is_empty());
    let answered = events().filter(|event| matches!(event.event, Some(Event::Joined(_))) || replied(event));
    let answered = answered.filter_map(|event| sent.get(&event.correlation_id));
    let mut wrong = once("reply", delivered.iter().copied(), answered);
    // A turn of something else that happened is told to its user in the end, and with that to whoever's message joined it.
    let is_told = |turn: &str| {
        let mut said = events().filter_map(|event| Some((event, event.say()?)));
        said.any(|(event, say)| say.r#final && event.correlation_id == turn)
    };
    let strays = events().filter(|event| {
        let Some(Event::Joined(joined)) = &event.event else { return false };
        match sent.get(&joined.into_correlation_id) {
            Some(into) => !delivered.contains(&into),
            None => !is_told(&joined.into_correlation_id),
        }
    });
    wrong.extend(strays.map(|event| format!("{} was joined to nothing that was answered", event.correlation_id)));
    wrong
}

/// Every queued task, unless it rests, was worked on once, or once more each time that it failed, and ended once; who asked for
/// it was told once what came of it. Every thread of work is over.
fn queued(records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut tasks: BTreeMap<&str, Queued> = BTreeMap::new();
    let mut threads: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let resting = resting(records);
    for (record, decision) in records.iter().filter_map(|record| Some((record, decision(record)?))) {
        let agent_rests = find_route(&record.subject).is_some_and(|(_, agent)| resting.contains(agent.as_str()));
        for (at, event) in decision.events.iter().enumerate() {
            if let Some(Event::TaskScheduled(it)) = &event.event
                && let Some(task) = it.task.as_ref().filter(|task| task.kind_word() == TaskKind::Queued)
            {
                let asked = task.source_word() == TaskSource::User;
                let rests = agent_rests || !task.next_at.is_empty();
                tasks.insert(&task.task_id, Queued { asked, agent_rests, rests, ..Queued::default() });
            }
            if let Some(Event::TaskStarted(it)) = &event.event {
                let task = tasks.entry(&it.task_id).or_default();
                (task.begun, task.rests) = (task.begun + 1, task.agent_rests);
            }
            if let Some(Event::TaskEnded(it)) = &event.event {
                // What a hook says of the same is another turn.
                let next = decision.events.get(at + 1).filter(|next| next.turn_id == event.turn_id);
                let next = next.and_then(DecidedEvent::say);
                let task = tasks.entry(&it.task_id).or_default();
                task.ended += 1;
                task.canceled |= it.status_word() == TaskStatus::Canceled;
                task.told += usize::from(next.is_some());
            }
            if let Some(Event::TaskChanged(it)) = &event.event
                && let Some(task) = tasks.get_mut(it.task_id.as_str())
            {
                // One that waits for its time is not put back, but put off.
                let is_put_back = !it.next_at.is_empty() && task.begun > task.put_back;
                let waits = !it.next_at.is_empty() && !is_put_back;
                task.rests = it.status_word() == TaskStatus::Paused || waits || task.agent_rests;
                task.put_back += usize::from(is_put_back);
                task.failed += usize::from(is_put_back && !it.rests);
            }
            if let Some(Event::ThreadCreated(it)) = &event.event
                && matches!(it.kind_word(), ThreadKind::Work | ThreadKind::Request)
            {
                threads.entry(&it.thread_id).or_default().0 += 1;
            }
            if let Some(Event::ThreadCompleted(it)) = &event.event {
                threads.entry(&it.thread_id).or_default().1 += 1;
            }
        }
    }
    for (id, task) in tasks {
        let told = usize::from(task.asked && !task.canceled);
        let rests = task.rests && task.begun == task.put_back;
        let is_well = if task.ended == 0 { rests } else { task.ended == 1 && task.told == told };
        if !is_well || task.begun > task.put_back + 1 || task.failed > 2 {
            wrong.push(format!("the queued task {id}: {task:?}"));
        }
    }
    let not_once = threads.into_iter().filter(|(_, times)| *times != (1, 1));
    wrong
        .extend(not_once.map(|(id, times)| format!("the thread of work {id} was begun and completed {times:?} times")));
    wrong
}

/// The history of a queued task.
#[derive(Debug, Default)]
struct Queued {
    /// True if somebody waits to be told the result.
    asked: bool,
    begun: usize,
    /// Times that it was put back: it failed, or its session had come to a bound.
    put_back: usize,
    /// Of those, the times that it failed.
    failed: usize,
    ended: usize,
    told: usize,
    canceled: bool,
    rests: bool,
    /// Its agent is in a team that is paused, or over.
    agent_rests: bool,
}

/// The agents whose team begins nothing, in the end.
fn resting(records: &[Record]) -> BTreeSet<String> {
    let mut resting = BTreeSet::new();
    for (record, decision) in records.iter().filter_map(|record| Some((record, decision(record)?))) {
        let Some((_, agent)) = find_route(&record.subject) else { continue };
        for event in &decision.events {
            let Some(Event::TeamChanged(changed)) = &event.event else { continue };
            match changed.status_word() {
                TeamStatus::Active => resting.remove(agent.as_str()),
                TeamStatus::Paused | TeamStatus::Archived | TeamStatus::Unknown(_) => resting.insert(agent.to_string()),
            };
        }
    }
    resting
}

/// Whatever one agent asked of another became one task, was answered once, and came back, unless the other rests; and no
/// session was decided to be told of twice.
fn asked(records: &[Record]) -> Vec<String> {
    let resting = resting(records);
    let (mut asked, mut waits) = (BTreeSet::new(), BTreeSet::new());
    let (mut accepted, mut ended, mut briefed) = (Vec::new(), Vec::new(), Vec::new());
    for event in records.iter().filter_map(decision).flat_map(|decision| &decision.events) {
        if let Some(ask) = event.ask().filter(|ask| ask.kind_word() == RequestKind::Work) {
            asked.insert(event.event_id.clone());
            if resting.contains(&ask.agent) {
                waits.insert(event.event_id.clone());
            }
        }
        if let Some(Event::TaskScheduled(it)) = &event.event {
            accepted.extend(it.task.as_ref().map(|task| task.request_id.clone()).filter(|id| !id.is_empty()));
        }
        if let Some(Event::TaskEnded(it)) = &event.event {
            ended.extend(it.answer.as_ref().map(|answer| answer.request_id.clone()));
        }
        if let Some(Event::Briefed(it)) = &event.event {
            briefed.push(it.thread_id.clone());
        }
    }
    let told = records.iter().filter_map(|record| AgentAnswer::of(&record.body));
    let told: BTreeSet<String> = told.map(|answer| answer.request_id.clone()).collect();
    let (to_call, answered) = called(records, &resting);
    let (of_calls, ended): (Vec<_>, Vec<_>) = ended.into_iter().partition(|id| to_call.contains_key(id));
    let to_end = asked.iter().filter(|id| !waits.contains(*id) || ended.contains(id)).cloned();
    let mut wrong = once("answer", to_end.collect::<Vec<_>>(), ended.clone());
    let answered: Vec<_> = answered.into_iter().chain(of_calls).collect();
    let to_answer = to_call.into_iter().filter(|(id, waits)| !waits || answered.contains(id)).map(|(id, _)| id);
    wrong.extend(once("answer of a member", to_answer.collect::<Vec<_>>(), answered.clone()));
    let ended: Vec<_> = ended.into_iter().chain(answered).collect();
    let accepted = accepted.into_iter().filter(|id| asked.contains(id)).collect::<Vec<_>>();
    wrong.extend(once("task", asked, accepted));
    wrong.extend(ended.into_iter().filter(|id| !told.contains(id)).map(|id| format!("nobody was told of {id}")));
    wrong.extend(once("briefing", briefed.clone(), briefed));
    wrong
}

/// Returns the requests to members, each with true if it may wait (for a human's consent, or since the member rests),
/// and the requests that were answered.
fn called(records: &[Record], resting: &BTreeSet<String>) -> (BTreeMap<String, bool>, Vec<String>) {
    let decided = || records.iter().filter_map(decision).flat_map(|decision| &decision.events);
    let consents = decided().filter(|event| matches!(event.event, Some(Event::ApprovalRequested(_))));
    let consents: BTreeSet<&str> = consents.map(|event| event.turn_id.as_str()).collect();
    let requests = records.iter().filter_map(|it| Some((AgentRequest::of(&it.body)?, it.envelope.id.to_string())));
    let held = requests.filter(|(_, turn)| consents.contains(turn.as_str()));
    let held: BTreeSet<String> = held.map(|(request, _)| request.request_id.clone()).collect();
    let mut asked = BTreeMap::new();
    for event in decided() {
        let is_of_member = |ask: &&Ask| matches!(ask.kind_word(), RequestKind::Call | RequestKind::Think);
        if let Some(ask) = event.ask().filter(is_of_member) {
            let waits = held.contains(&event.event_id) || resting.contains(&ask.agent);
            asked.insert(event.event_id.clone(), waits);
        }
    }
    let answered = decided().filter_map(|event| {
        let Some(Event::Answered(answered)) = &event.event else { return None };
        Some(answered.answer.as_ref()?.request_id.clone())
    });
    (asked, answered.collect())
}

/// Every tool call was begun once and ended once; what was begun as a process ended once as a process.
fn actions(records: &[Record]) -> Vec<String> {
    let asked: Vec<String> = records.iter().filter_map(decision).flat_map(tool_calls).map(|(id, _)| id).collect();
    let (mut begun, mut ended, mut refused) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut processes, mut spawned, mut exited) = (Vec::new(), Vec::new(), Vec::new());
    let mut late = Vec::new();
    for record in records {
        match record.body.about() {
            About::Tool(Tool::Invoke(invoke)) => {
                let processes_of = invoke.actions.iter().filter(|action| action.executor == "process-supervisor");
                processes.extend(processes_of.map(|action| action.action_id.clone()));
                begun.extend(invoke.actions.iter().map(|action| action.action_id.clone()));
            }
            About::Tool(Tool::Result(result)) if result.late => late.push(result.action_id.clone()),
            About::Tool(Tool::Result(result)) => {
                ended.push(result.action_id.clone());
                // Nothing was begun: a human had to consent first.
                if result.error.as_ref().is_some_and(|error| error.kind == "approval_required") {
                    refused.insert(result.action_id.clone());
                }
            }
            About::Process(Process::Spawned(process)) => spawned.push(process.action_id.clone()),
            About::Process(Process::Exited(process)) => exited.push(process.action_id.clone()),
            About::Tool(Tool::Order(_) | Tool::Progress(_)) => {}
            About::Process(Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => {}
            About::User(_) | About::Agent(_) | About::Decision(_) | About::Decided(_) | About::Outside(_) => {}
            About::System(_) | About::Live(_) => {}
        }
    }
    let to_begin: Vec<String> =
        asked.iter().filter(|id| !refused.contains(*id) || begun.contains(id)).cloned().collect();
    let mut wrong = once("invoke", to_begin, begun);
    wrong.extend(once("result", asked, ended));
    wrong.extend(once("late result", late.clone(), late));
    wrong.extend(once("process", spawned.clone(), spawned));
    wrong.extend(once("end of a process", processes, exited));
    wrong
}

/// No input was decided on twice or out of order, and every message of a user was decided on.
fn decisions(records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    let inputs: BTreeMap<u64, String> =
        records.iter().map(|record| (record.sequence, record.envelope.id.to_string())).collect();
    let mut cursors: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let mut on = BTreeSet::new();
    let mut decided = BTreeSet::new();
    let mut joined = BTreeSet::new();
    for (record, decision) in records.iter().filter_map(|record| Some((record, decision(record)?))) {
        let agent = find_route(&record.subject).map(|(_, agent)| agent.to_string());
        let before = cursors.insert(agent, decision.cursor);
        let stays = decision.overtaking > 0 || decision.work_input > 0;
        let goes_back = |before| before > decision.cursor || before == decision.cursor && !stays;
        if before.is_some_and(goes_back) {
            wrong.push(format!("the decision at {} goes back to {}", record.sequence, decision.cursor));
        }
        if inputs.get(&decision.decided_on()) != Some(&decision.input_id) {
            wrong.push(format!("the decision at {} is on something else than its cursor", record.sequence));
        }
        if !on.insert(decision.decided_on()) {
            wrong.push(format!("{} was decided on twice", decision.decided_on()));
        }
        decided.insert(decision.input_id.clone());
        let joins = decision.events.iter().filter(|event| matches!(event.event, Some(Event::Joined(_))));
        joined.extend(joins.map(|event| event.correlation_id.clone()));
    }
    let messages = records.iter().filter(|record| matches!(record.body, Body::AgentMessage(_)));
    let undecided = messages.filter(|message| {
        let envelope = &message.envelope;
        !decided.contains(&envelope.id.to_string()) && !joined.contains(&envelope.correlation_id.to_string())
    });
    wrong.extend(undecided.map(|message| format!("nothing was decided on the message at {}", message.sequence)));
    wrong
}

pub fn decision(record: &Record) -> Option<&AgentDecision> {
    AgentDecision::of(&record.body)
}

/// The tool calls of a decision, with the ids of their actions.
pub fn tool_calls(decision: &AgentDecision) -> impl Iterator<Item = (String, &ToolCall)> + '_ {
    decision.events.iter().filter_map(|event| Some((event.event_id.clone(), event.tool_call()?)))
}
