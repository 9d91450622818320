//! Work in progress, as shown to a model: facts from the log, nothing remembered or guessed.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    chain::{Chain, StepRun},
    environment::{Environment, Perceived},
    in_flight::{InFlight, Process, Progress, Started},
    prompts,
    state::{AgentState, Turn},
    tasks::{Task, What},
    thread::cut_to,
};

/// The heading of the facts.
const TITLE: &str = "In progress now, from the event log:";

/// The heading of the queue.
const QUEUE_TITLE: &str = "Your queue, and what came of it lately, from the event log:";

/// Tasks shown that are over, those that ended last.
const ENDED_SHOWN: usize = 5;
/// Of each text of a task, so much is shown, in bytes.
const TEXT_BYTES: usize = 500;
/// Actions and processes shown, those that began last, and chains.
const SHOWN: usize = 64;
const CHAINS: usize = 16;

/// Lists the work in progress that a turn may know of: all of its user's, but for a turn of a chat client only that of
/// its own thread, since others may use the same name.
pub fn in_progress_for(state: &AgentState, turn: &Turn, now: Timestamp) -> Option<String> {
    going(state, &turn.user, turn.chat.as_ref().map(|_| turn.thread_id.as_str()), now)
}

/// Lists the agent's work in progress for this user; `None` if there is none. `now` is the recorded time of the input.
pub fn in_progress(state: &AgentState, user: &str, now: Timestamp) -> Option<String> {
    going(state, user, None, now)
}

fn going(state: &AgentState, user: &str, only: Option<&str>, now: Timestamp) -> Option<String> {
    let is_in = |thread_id: &str| only.is_none_or(|only| only == thread_id);
    let his = |id: &str| is_in(id) && state.threads.get(id).is_some_and(|thread| thread.user == user);
    let actions = state.in_flight.iter().filter(|(_, action)| his(&action.thread_id));
    let processes = state.processes.running.values().filter(|process| his(&process.thread_id));
    let actions = actions.map(|(id, action)| (action.since, Going::Action(*id, action)));
    let mut going: Vec<(Timestamp, Going<'_>)> =
        actions.chain(processes.map(|process| (process.since, Going::Process(process)))).collect();
    let of_user = state.turns.values().filter(|turn| turn.user == user && is_in(&turn.thread_id));
    let chains = of_user.filter_map(|turn| turn.chain.as_ref());
    let chains: Vec<&Chain> = chains.filter(|chain| !chain.steps.is_empty()).collect();
    let earlier = going.len().saturating_sub(SHOWN);
    let left_out = earlier + chains.len().saturating_sub(CHAINS);
    // The oldest first: a model reads them as a history.
    going.sort_by_key(|(since, _)| *since);
    let facts = going.into_iter().skip(earlier).map(|(_, going)| match going {
        Going::Action(id, action) => of_action(id, action, now),
        Going::Process(process) => of_process(process, now),
    });
    let chains = chains.into_iter().take(CHAINS).map(of_chain);
    let mut lines: Vec<String> = facts.chain(chains).map(|fact| fact.to_string()).collect();
    if left_out > 0 {
        lines.push(format!("… and {left_out} more."));
    }
    (!lines.is_empty()).then(|| format!("{TITLE}\n{}", lines.join("\n")))
}

/// Lists this user's tasks that are queued, worked on or lately ended; `None` if there are none.
pub fn queue(state: &AgentState, user: &str) -> Option<String> {
    let his = |task: &&Task| task.user == user;
    let queued = state.tasks.queue().into_iter().filter(his);
    let ended = state.tasks.ended.iter().rev().filter(|task| his(task) && matches!(task.what, What::Queue { .. }));
    let tasks = queued.take(SHOWN).chain(ended.take(ENDED_SHOWN));
    let lines: Vec<String> = tasks.map(|task| of_task(task).to_string()).collect();
    (!lines.is_empty()).then(|| format!("{QUEUE_TITLE}\n{}", lines.join("\n")))
}

/// Describes the agent's mission and its workers, from its profile; `None` if the agent is no lead.
pub fn mission(state: &AgentState) -> Option<String> {
    let profile = state.profile.as_ref().filter(|profile| profile.is_lead())?;
    let mission = format!("{} {}", prompts::LEAD, profile.mission);
    let Some(team) = &profile.team else { return Some(mission) };
    let workers = team.workers.iter().map(|(agent, described)| format!("- {agent}: {described}"));
    Some(format!("{mission}\n\n{}\n{}", prompts::TEAM, workers.collect::<Vec<_>>().join("\n")))
}

/// Lists the agent's members, from its profile; `None` if it has none.
pub fn members(state: &AgentState) -> Option<String> {
    let profile = state.profile.as_ref().filter(|profile| !profile.members.is_empty())?;
    let members = profile.members.iter().map(|member| format!("- {}: {}", member.agent, member.description));
    Some(format!("{}\n{}", prompts::MEMBERS, members.collect::<Vec<_>>().join("\n")))
}

/// Lists the results of perception for a turn's message, and the context that the user's client sent.
pub fn environment(turn: &Turn) -> Vec<String> {
    let Environment { client, perceived } = &turn.environment;
    let line = |it: &Perceived| match it.failed {
        true => json!({ "tool": it.tool, "error": it.result }).to_string(),
        false => format!("{{\"tool\":{},\"result\":{}}}", json!(it.tool), it.result),
    };
    let lines = perceived.iter().flatten().map(line).collect::<Vec<_>>().join("\n");
    let perceived = (!lines.is_empty()).then(|| format!("{}\n{lines}", prompts::PERCEIVED));
    let client = (!client.is_empty()).then(|| format!("{}\n{client}", prompts::CLIENT));
    [perceived, client].into_iter().flatten().collect()
}

fn of_task(task: &Task) -> Value {
    let mut fact = json!({
        "task_id": task.id,
        "title": task.title,
        "text": cut_to(task.text(), TEXT_BYTES),
        "status": task.status.word().as_str(),
    });
    if let (What::Queue { result, .. }, Some(fields)) = (&task.what, fact.as_object_mut())
        && !result.is_empty()
    {
        fields.insert("result".to_owned(), json!(cut_to(result, TEXT_BYTES)));
    }
    fact
}

enum Going<'a> {
    Action(Uuid, &'a InFlight),
    Process(&'a Process),
}

/// A chain and how far it is.
fn of_chain(chain: &Chain) -> Value {
    let step = |run: &StepRun| json!({ "event": run.step.event, "state": run.state.name() });
    json!({ "chain_id": chain.id, "steps": chain.steps.iter().map(step).collect::<Vec<_>>() })
}

fn of_action(id: Uuid, action: &InFlight, now: Timestamp) -> Value {
    let mut fact = fact(id, &action.tool, &action.arguments, action.since, now);
    fact.insert("begun".to_owned(), json!(action.begun));
    add(&mut fact, action.process.as_ref(), action.progress.as_ref(), action.cancel_requested);
    Value::Object(fact)
}

fn of_process(process: &Process, now: Timestamp) -> Value {
    let mut fact = fact(process.action, "process.spawn", &process.arguments, process.since, now);
    fact.insert("begun".to_owned(), json!(true));
    add(&mut fact, Some(&process.started), process.progress.as_ref(), process.cancel_requested);
    Value::Object(fact)
}

fn fact(id: Uuid, tool: &str, arguments: &str, since: Timestamp, now: Timestamp) -> Map<String, Value> {
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
    let seconds = now.duration_since(since).as_secs().max(0);
    Map::from_iter([
        ("action_id".to_owned(), json!(id)),
        ("tool".to_owned(), json!(tool)),
        ("arguments".to_owned(), arguments),
        ("since".to_owned(), json!(since)),
        ("running_for_s".to_owned(), json!(seconds)),
    ])
}

fn add(fact: &mut Map<String, Value>, process: Option<&Started>, progress: Option<&Progress>, cancel_requested: bool) {
    let mut set = |key: &str, value: Value| fact.insert(key.to_owned(), value);
    if let Some(process) = process {
        set("process_id", json!(process.process_id));
        set("pid", json!(process.pid));
    }
    if let Some(progress) = progress {
        if let Some(fraction) = progress.fraction {
            let percent = (fraction * 1_000.0).round() / 10.0;
            set("percent", if percent.fract() == 0.0 { json!(percent as i64) } else { json!(percent) });
        }
        if !progress.message.is_empty() {
            set("message", json!(progress.message));
        }
        if !progress.tail.is_empty() {
            set("tail", json!(progress.tail));
        }
    }
    if cancel_requested {
        set("cancel_requested", json!(true));
    }
}
