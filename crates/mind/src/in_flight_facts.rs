//! Work in progress, as shown to a model: facts from the log, nothing remembered or guessed.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    chain::{Chain, StepRun},
    environment::{Environment, PerceptionResult},
    in_flight::{ActionProgress, BackgroundProcess, InFlightAction, StartedProcess},
    prompts,
    state::{AgentState, AgentTurn},
    tasks::{Task, TaskActivation},
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
pub fn in_progress_for(state: &AgentState, turn: &AgentTurn, now: Timestamp) -> Option<String> {
    running_facts(state, &turn.user, turn.chat.as_ref().map(|_| turn.thread_id.as_str()), now)
}

/// Lists the agent's work in progress for this user; `None` if there is none. `now` is the recorded time of the input.
pub fn in_progress(state: &AgentState, user: &str, now: Timestamp) -> Option<String> {
    running_facts(state, user, None, now)
}

fn running_facts(state: &AgentState, user: &str, only: Option<&str>, now: Timestamp) -> Option<String> {
    let is_in = |thread_id: &str| only.is_none_or(|only| only == thread_id);
    let his = |id: &str| is_in(id) && state.threads.get(id).is_some_and(|thread| thread.user == user);
    let actions = state.in_flight.iter().filter(|(_, action)| his(&action.thread_id));
    let processes = state.processes.running.values().filter(|process| his(&process.thread_id));
    let actions = actions.map(|(id, action)| (action.since, RunningItem::Action(*id, action)));
    let mut going: Vec<(Timestamp, RunningItem<'_>)> =
        actions.chain(processes.map(|process| (process.since, RunningItem::Process(process)))).collect();
    let of_user = state.turns.values().filter(|turn| turn.user == user && is_in(&turn.thread_id));
    let chains = of_user.filter_map(|turn| turn.chain.as_ref());
    let chains: Vec<&Chain> = chains.filter(|chain| !chain.steps.is_empty()).collect();
    let earlier = going.len().saturating_sub(SHOWN);
    let left_out = earlier + chains.len().saturating_sub(CHAINS);
    // The oldest first: a model reads them as a history.
    going.sort_by_key(|(since, _)| *since);
    let facts = going.into_iter().skip(earlier).map(|(_, going)| match going {
        RunningItem::Action(id, action) => action_fact(id, action, now),
        RunningItem::Process(process) => process_fact(process, now),
    });
    let chains = chains.into_iter().take(CHAINS).map(chain_fact);
    let mut lines: Vec<String> = facts.chain(chains).map(|fact| fact.to_string()).collect();
    if left_out > 0 {
        lines.push(format!("… and {left_out} more."));
    }
    (!lines.is_empty()).then(|| format!("{TITLE}\n{}", lines.join("\n")))
}

/// Lists this user's tasks that are queued, worked on or lately ended; `None` if there are none.
pub fn queued_tasks(state: &AgentState, user: &str) -> Option<String> {
    let his = |task: &&Task| task.user == user;
    let queued = state.tasks.queue().into_iter().filter(his);
    let ended =
        state.tasks.ended.iter().rev().filter(|task| his(task) && matches!(task.what, TaskActivation::Queue { .. }));
    let tasks = queued.take(SHOWN).chain(ended.take(ENDED_SHOWN));
    let lines: Vec<String> = tasks.map(|task| task_fact(task).to_string()).collect();
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
pub fn environment(turn: &AgentTurn) -> Vec<String> {
    let Environment { client, perceived } = &turn.environment;
    let line = |it: &PerceptionResult| match it.failed {
        true => json!({ "tool": it.tool, "error": it.result }).to_string(),
        false => format!("{{\"tool\":{},\"result\":{}}}", json!(it.tool), it.result),
    };
    let lines = perceived.iter().flatten().map(line).collect::<Vec<_>>().join("\n");
    let perceived = (!lines.is_empty()).then(|| format!("{}\n{lines}", prompts::PERCEIVED));
    let client = (!client.is_empty()).then(|| format!("{}\n{client}", prompts::CLIENT));
    [perceived, client].into_iter().flatten().collect()
}

fn task_fact(task: &Task) -> Value {
    let mut fact = json!({
        "task_id": task.id,
        "title": task.title,
        "text": cut_to(task.text(), TEXT_BYTES),
        "status": task.status.word().as_str(),
    });
    if let (TaskActivation::Queue { result, .. }, Some(fields)) = (&task.what, fact.as_object_mut())
        && !result.is_empty()
    {
        fields.insert("result".to_owned(), json!(cut_to(result, TEXT_BYTES)));
    }
    fact
}

enum RunningItem<'a> {
    Action(Uuid, &'a InFlightAction),
    Process(&'a BackgroundProcess),
}

/// A chain and how far it is.
fn chain_fact(chain: &Chain) -> Value {
    let step = |run: &StepRun| json!({ "event": run.step.event, "state": run.state.name() });
    json!({ "chain_id": chain.id, "steps": chain.steps.iter().map(step).collect::<Vec<_>>() })
}

fn action_fact(id: Uuid, action: &InFlightAction, now: Timestamp) -> Value {
    let mut fact = base_fact(id, &action.tool, &action.arguments, action.since, now);
    fact.insert("begun".to_owned(), json!(action.begun));
    add_progress(&mut fact, action.process.as_ref(), action.progress.as_ref(), action.cancel_requested);
    Value::Object(fact)
}

fn process_fact(process: &BackgroundProcess, now: Timestamp) -> Value {
    let mut fact = base_fact(process.action, "process.spawn", &process.arguments, process.since, now);
    fact.insert("begun".to_owned(), json!(true));
    add_progress(&mut fact, Some(&process.started), process.progress.as_ref(), process.cancel_requested);
    Value::Object(fact)
}

fn base_fact(id: Uuid, tool: &str, arguments: &str, since: Timestamp, now: Timestamp) -> Map<String, Value> {
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

fn add_progress(
    fact: &mut Map<String, Value>,
    process: Option<&StartedProcess>,
    progress: Option<&ActionProgress>,
    cancel_requested: bool,
) {
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
