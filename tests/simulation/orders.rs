//! The input of users beside words: verdicts, choices and orders about whatever exists by then.

use kairo_core::{
    bus::append::OutgoingEvent,
    ids::Name,
    record::Record,
    subjects::{USER_APPROVAL, USER_CHOICE, USER_COMMAND},
    vocabulary::TEAMS,
};
use kairo_mind::{
    chain::StepState,
    log::Log,
    state::AgentState,
    tasks::{Task, TaskActivation, TaskPhase},
    team,
};
use kairo_proto::{
    Body, Decided,
    about::{Chain, Thread},
    v1::{AgentAction, UserApproval, UserChoice, UserCommand, agent_action::Action, decided_event::Event},
};
use uuid::Uuid;

use crate::{
    audit::{decision, tool_calls},
    load::{AGENTS, USERS, entering, name},
    model,
    world::World,
};

/// Something that a decision made and a user may say something about.
struct Made<'w> {
    agent: String,
    id: String,
    event: &'w Event,
}

/// A verdict on an action, mostly one that is in flight.
pub fn verdict(world: &World, number: usize) -> OutgoingEvent {
    let (agent, action) = some_action(world);
    let verdict = ["happened", "did_not_happen"][number % 2];
    approval(world, &format!("v-{number}"), USERS[0], &agent, &action, verdict)
}

/// An order about an action, a chain, a task or a thread.
pub fn order(world: &World, number: usize) -> OutgoingEvent {
    let mut command =
        UserCommand { command_id: format!("c-{number}"), user: USERS[0].to_owned(), ..Default::default() };
    let which = |fits: fn(&Event) -> Option<String>| {
        some(world, made(world).filter_map(|it| Some((it.agent.clone(), fits(it.event)?))).collect())
    };
    let any_of = |options: &[&str]| options[world.below(options.len())].to_owned();
    (command.agent, command.command) = (AGENTS[0].to_owned(), "cancel".to_owned());
    // What runs can be stopped only while it does.
    let kind = if acts(world) { 0 } else { 4 } + world.below(7);
    match kind {
        0..=3 => (command.agent, command.action_id) = some_action(world),
        4 => {
            if let Some((agent, chain)) = which(chain_of) {
                (command.agent, command.chain_id) = (agent, chain);
            }
        }
        5 => {
            if let Some((agent, thread)) = which(thread_of) {
                (command.agent, command.thread_id) = (agent, thread);
                command.command = any_of(&["archive", "unarchive"]);
            }
        }
        6 if world.epoch >= TEAMS => {
            // Of its owner and, now and then, of somebody else.
            command.user = USERS[usize::from(world.permille(200))].to_owned();
            (command.agent, command.team) = (AGENTS[0].to_owned(), AGENTS[0].to_owned());
            command.command = any_of(&["pause", "resume", "resume", "archive"]);
        }
        _ => {
            if let Some(order) = order_of_task(world, number) {
                return order;
            }
        }
    }
    ordered(world, command)
}

/// An order about a task that is not over; none when there is none.
pub fn order_of_task(world: &World, number: usize) -> Option<OutgoingEvent> {
    let tasks = AGENTS.iter().flat_map(|agent| {
        let open = read(world, &name(agent)).state.tasks.open.clone().into_values();
        open.map(|task| ((*agent).to_owned(), task.id, task.status))
    });
    let (agent, task, status) = some(world, tasks.collect())?;
    let commands = match status {
        TaskPhase::Paused => ["resume", "resume", "run", "cancel"],
        _ => ["pause", "pause", "run", "cancel"],
    };
    let command = commands[world.below(commands.len())].to_owned();
    let (command_id, user) = (format!("t-{number}"), USERS[0].to_owned());
    let order = UserCommand { command_id, user, agent, command, task_id: task.to_string(), ..Default::default() };
    Some(ordered(world, order))
}

/// An order to stop an action that is in flight.
pub fn stop(world: &World, command_id: &str) -> OutgoingEvent {
    let (agent, action_id) = some_action(world);
    let (command_id, user) = (command_id.to_owned(), USERS[0].to_owned());
    ordered(
        world,
        UserCommand { command_id, user, agent, action_id, command: "cancel".to_owned(), ..Default::default() },
    )
}

fn ordered(world: &World, order: UserCommand) -> OutgoingEvent {
    world.note(USERS[0], || format!("orders {order:?}"));
    let envelope = entering("command", &[USERS[0], &order.command_id], world.now());
    OutgoingEvent::new(&USER_COMMAND, &name(USERS[0]), envelope, order)
}

/// A choice between threads, or words about consent to a call; none when nothing is asked.
pub fn reply(world: &World, number: usize) -> Option<OutgoingEvent> {
    let asked: Vec<(String, String)> =
        made(world).filter(|it| asked_of(it.event).is_some()).map(|it| (it.agent, it.id)).collect();
    let (agent, id) = some(world, asked)?;
    let event = made(world).find(|it| it.id == id)?.event;
    let user = asked_of(event)?;
    // Now and then somebody who was not asked.
    let user = if world.permille(100) { USERS[number % USERS.len()] } else { user };
    Some(answer(world, &format!("r-{number}"), user, &agent, &id, matches!(event, Event::ThreadSuggested(_))))
}

/// An answer to everything that agents still wait for, from whoever was asked.
pub fn last_replies(world: &World) -> Vec<OutgoingEvent> {
    let mut replies = Vec::new();
    for agent in AGENTS {
        for turn in read(world, &name(agent)).state.turns.values() {
            let offers = turn.offer.iter().filter(|offer| offer.accepted.is_none()).map(|offer| (offer.id, true));
            let steps = turn.chain.iter().flat_map(|chain| &chain.steps);
            let consents = steps.filter_map(|run| match run.state {
                StepState::Asked { request, .. } => Some((request, false)),
                _ => None,
            });
            for (id, is_offer) in offers.chain(consents) {
                let said = format!("last-{id}-{}", world.records().len());
                replies.push(answer(world, &said, &turn.user, agent, &id.to_string(), is_offer));
            }
        }
    }
    replies
}

/// The thing that agents wait for, when everything is at rest.
#[derive(Debug)]
pub enum Waits {
    Nothing,
    /// A task that failed.
    ForAnotherTry,
    /// A team has spent what it may.
    ForTheNextDay,
    /// A team or what is queued was paused.
    ForItsOwner(Box<OutgoingEvent>),
}

pub fn what_waits(world: &World) -> Waits {
    let states: Vec<_> = AGENTS.iter().map(|agent| (*agent, read(world, &name(agent)).state)).collect();
    if states.iter().any(|(_, state)| is_tried_again(state)) {
        return Waits::ForAnotherTry;
    }
    if let Some(paused) = states.iter().find_map(|(agent, state)| rests_for_its_owner(agent, state)) {
        let command_id = format!("last-{}", world.records().len());
        let order = UserCommand { command_id, command: "resume".to_owned(), ..paused };
        return Waits::ForItsOwner(Box::new(ordered(world, order)));
    }
    match states.iter().any(|(_, state)| state.team.over_budget) {
        true => Waits::ForTheNextDay,
        false => Waits::Nothing,
    }
}

/// Returns the order for work that goes on only when its owner says so: a task in the queue, or a team that nothing
/// wakes on the next day.
fn rests_for_its_owner(agent: &str, state: &AgentState) -> Option<UserCommand> {
    let of = UserCommand { agent: agent.to_owned(), ..Default::default() };
    let is_paused =
        |task: &&Task| task.status == TaskPhase::Paused && matches!(task.what, TaskActivation::Queue { .. });
    if let Some(task) = state.tasks.open.values().find(is_paused) {
        return Some(UserCommand { task_id: task.id.to_string(), user: task.user.clone(), ..of });
    }
    let is_woken = state.team.over_budget && state.tasks.next_run().is_some_and(|task| task.next_due().is_some());
    let rests = agent == AGENTS[0] && state.team.status == team::TeamActivity::Paused && !is_woken;
    rests.then(|| UserCommand { team: agent.to_owned(), user: USERS[0].to_owned(), ..of })
}

/// Returns true if a task waits for a while, and not for the next day.
fn is_tried_again(state: &AgentState) -> bool {
    let rests = |task: &Task| state.work.rests == Some(task.id);
    let waits = |task: &Task| {
        rests(task) || task.failed_sessions() > 0 && task.next_due().is_some() && task.status == TaskPhase::Pending
    };
    let of_the_day = |task: &Task| task.is_next_run() && state.team.over_budget;
    state.tasks.open.values().any(|task| waits(task) && !of_the_day(task))
}

/// The owner of a team that works day after day archives it, and whoever has tasks that come again cancels them.
pub fn end_of_days(world: &World) -> Vec<OutgoingEvent> {
    let number = world.records().len();
    let end = |at: usize, user: &str, of: UserCommand| {
        let command_id = format!("end-{number}-{at}");
        ordered(world, UserCommand { command_id, user: user.to_owned(), ..of })
    };
    let (lead, archive) = (AGENTS[0].to_owned(), "archive".to_owned());
    let team = UserCommand { agent: lead.clone(), team: lead, command: archive, ..Default::default() };
    let repeated = AGENTS.iter().flat_map(|agent| {
        let open = read(world, &name(agent)).state.tasks.open.clone().into_values();
        let timed = open.filter(|task| matches!(task.what, TaskActivation::Time { .. }) && !task.user.is_empty());
        timed.map(|task| {
            let (agent, command) = ((*agent).to_owned(), "cancel".to_owned());
            let of = UserCommand { agent, command, task_id: task.id.to_string(), ..Default::default() };
            (task.user, of)
        })
    });
    let repeated: Vec<_> = repeated.enumerate().map(|(at, (user, of))| end(at + 1, &user, of)).collect();
    [end(0, USERS[0], team)].into_iter().chain(repeated).collect()
}

/// Returns the orders that cancel every open hook.
pub fn end_of_hooks(world: &World) -> Vec<OutgoingEvent> {
    let hooks = AGENTS.iter().flat_map(|agent| {
        let open = read(world, &name(agent)).state.tasks.open.clone().into_values();
        let hooks = open.filter(|task| matches!(task.what, TaskActivation::Hook { .. }) && !task.status.is_over());
        hooks.map(move |task| (agent, task))
    });
    let end = |(agent, task): (&&str, Task)| {
        let (agent, command) = ((*agent).to_owned(), "cancel".to_owned());
        let (command_id, task_id) = (format!("end-{}", task.id), task.id.to_string());
        ordered(world, UserCommand { command_id, user: task.user, agent, command, task_id, ..Default::default() })
    };
    hooks.map(end).collect()
}

/// Reads the log of an agent to its end.
pub fn read(world: &World, agent: &Name) -> Log {
    let mut log = Log::default();
    for record in world.concerning(agent) {
        // Whoever diverges is found by the invariants.
        let _ = log.push(record.clone());
    }
    log.next_input();
    log
}

fn answer(world: &World, said: &str, user: &str, agent: &str, id: &str, is_offer: bool) -> OutgoingEvent {
    let yes = world.permille(600);
    if !is_offer {
        let verdict = if yes { "approved" } else { "rejected" };
        return approval(world, said, user, agent, id, verdict);
    }
    let option = if yes { "accept" } else { "decline" }.to_owned();
    world.note(user, || format!("chooses of {id}: {option}"));
    let envelope = entering("choice", &[user, said], world.now());
    let (choice_id, offer_id) = (said.to_owned(), id.to_owned());
    let choice = UserChoice { choice_id, user: user.to_owned(), agent: agent.to_owned(), offer_id, option };
    OutgoingEvent::new(&USER_CHOICE, &name(user), envelope, choice)
}

fn approval(world: &World, id: &str, user: &str, agent: &str, action: &str, verdict: &str) -> OutgoingEvent {
    world.note(user, || format!("says of {action}: {verdict}"));
    let envelope = entering("approval", &[user, id], world.now());
    let approval = UserApproval {
        approval_id: id.to_owned(),
        user: user.to_owned(),
        agent: agent.to_owned(),
        action_id: action.to_owned(),
        verdict: verdict.to_owned(),
        ..Default::default()
    };
    OutgoingEvent::new(&USER_APPROVAL, &name(user), envelope, approval)
}

/// Returns true if an action has no result yet.
pub fn acts(world: &World) -> bool {
    actions(world).any(|(_, action)| !has_ended(world, &action))
}

/// Returns true if a task was scheduled.
pub fn plans(world: &World) -> bool {
    made(world).any(|made| matches!(made.event, Event::TaskScheduled(_)))
}

/// Returns true if a user was asked something.
pub fn asks(world: &World) -> bool {
    made(world).any(|made| asked_of(made.event).is_some())
}

/// An action and its agent, mostly one that is in flight, and rather a process; made up when there is none.
fn some_action(world: &World) -> (String, String) {
    let all: Vec<_> = actions(world).collect();
    let in_flight: Vec<_> = all.iter().filter(|(_, action)| !has_ended(world, action)).cloned().collect();
    let process = |action: &str| made(world).any(|it| it.id == action && is_process(it.event));
    let processes: Vec<_> = in_flight.iter().filter(|(_, action)| process(action)).cloned().collect();
    let choices = [processes, in_flight, all];
    let choice = choices.into_iter().find(|choice| !choice.is_empty()).unwrap_or_default();
    some(world, choice).unwrap_or_else(|| (AGENTS[0].to_owned(), Uuid::nil().to_string()))
}

fn is_process(event: &Event) -> bool {
    matches!(event, Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }) if model::is_process(&call.tool))
}

fn some<T: Clone>(world: &World, all: Vec<T>) -> Option<T> {
    (!all.is_empty()).then(|| all[world.below(all.len())].clone())
}

/// Every action there is, behind its agent.
fn actions(world: &World) -> impl Iterator<Item = (String, String)> + '_ {
    let decisions = world.records().iter().filter_map(|it| Some((it.subject.split('.').nth(2)?, decision(it)?)));
    decisions.flat_map(|(agent, decision)| tool_calls(decision).map(move |(action, _)| (agent.to_owned(), action)))
}

fn has_ended(world: &World, action: &str) -> bool {
    let of = |record: &Record| matches!(&record.body, Body::ToolResult(result) if result.action_id == action);
    world.records().iter().any(of)
}

/// Every event of every decision.
fn made(world: &World) -> impl Iterator<Item = Made<'_>> {
    let decisions = world.records().iter().filter_map(|it| Some((it.subject.split('.').nth(2)?, decision(it)?)));
    decisions.flat_map(|(agent, decision)| {
        decision.events.iter().filter_map(move |event| {
            let (agent, id) = (agent.to_owned(), event.event_id.clone());
            Some(Made { agent, id, event: event.event.as_ref()? })
        })
    })
}

fn chain_of(event: &Event) -> Option<String> {
    let Event::ChainStarted(started) = event else { return None };
    Some(started.chain_id.clone())
}

fn thread_of(event: &Event) -> Option<String> {
    let Event::ThreadCreated(created) = event else { return None };
    Some(created.thread_id.clone())
}

/// The user to whom something is put.
fn asked_of(event: &Event) -> Option<&str> {
    match event.about() {
        Decided::Thread(Thread::Suggested(suggested)) => Some(&suggested.user),
        Decided::Chain(Chain::ApprovalRequested(requested)) => Some(&requested.user),
        Decided::Thread(Thread::Created(_) | Thread::Matched(_) | Thread::Summarized(_)) => None,
        Decided::Thread(Thread::Archived(_) | Thread::Completed(_) | Thread::Compacted(_)) => None,
        Decided::Chain(Chain::Started(_) | Chain::StepEnded(_) | Chain::Ended(_)) => None,
        Decided::Turn(_) | Decided::Task(_) | Decided::Memory(_) | Decided::State(_) => None,
    }
}
