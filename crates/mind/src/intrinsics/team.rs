//! `team.delegate` and `team.status`, for agents that lead others; and what people order of a team.

use kairo_events::ids;
use kairo_proto::{
    v1::{self, AgentAction, Ask, TaskChanged, TaskScheduled, TeamChanged, agent_action::Action, decided_event::Event},
    words::{RequestKind, TaskKind, TaskSource, TaskStatus, TeamStatus},
};
use serde_json::{Map, Value, json};

use super::{
    Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, order_intrinsic,
    tasks::{TEXT_CHARS, TITLE_CHARS, cancel_queued, intrinsic},
};
use crate::{
    late_requests::LONGEST_DEADLINE,
    prompts,
    state::Profile,
    tasks,
    team::{Team, TeamActivity},
    thread::cut_to,
};

/// The tool that delegates a task to a worker.
pub const DELEGATE: &str = "team.delegate";
const STATUS: &str = "team.status";
/// The intrinsic that starts an agent with a mission.
pub const START: &str = "team.start";
/// The parameter that says in how many seconds an answer is late.
pub const DEADLINE: &str = "deadline_s";
/// Has a team go on that its owner, or what it may spend, has begin nothing.
pub const RESUME: &str = "team.resume";
const PAUSE: &str = "team.pause";
const ARCHIVE: &str = "team.archive";
/// The number of the first time of a next run: those below are of tasks that failed, which are counted from 1.
const FIRST_TIME: u64 = 100;
/// Of each task, so much is shown, in bytes.
const SHOWN_BYTES: usize = 300;

pub fn all() -> Vec<Intrinsic> {
    let worker = json!({ "type": "string", "description": "One of those that work for you" });
    let task = json!({ "type": "string", "description": "What to do, whole: the worker knows nothing else", "maxLength": TEXT_CHARS });
    let context = json!({ "type": "string", "description": "What helps to do it: what was found, what for, in which form", "maxLength": TEXT_CHARS });
    let properties = json!({ "worker": worker, "task": task, "context": context, DEADLINE: deadline_param() });
    let described = "Has one of your workers do a task, and returns what came of it; several calls in one answer are done at once. A worker that is busy does it when its turn comes.";
    vec![
        intrinsic(DELEGATE, described, properties, json!(["worker", "task"]), delegate),
        intrinsic(
            STATUS,
            "Who of your team is at work on what, and what may still be spent today.",
            json!({}),
            json!([]),
            report_status,
        ),
    ]
}

pub fn order_intrinsics() -> Vec<Intrinsic> {
    vec![
        order_intrinsic(START, "Goes to work on the mission.", start_mission),
        order_intrinsic(PAUSE, "Has the team begin no task.", pause),
        order_intrinsic(RESUME, "Has the team go on.", resume),
        order_intrinsic(ARCHIVE, "Ends the team for good.", archive),
    ]
}

/// The parameter that says when an answer is late.
pub fn deadline_param() -> Value {
    json!({
        "type": "integer",
        "minimum": 1,
        "maximum": LONGEST_DEADLINE,
        "description": "Seconds until nobody waits for the answer any more: it is told to stop, and you go on without. Without it, what the profile says, by default 600",
    })
}

/// Returns true for the orders that people give a team.
pub fn is_order(tool: &str) -> bool {
    matches!(tool, PAUSE | RESUME | ARCHIVE)
}

/// Returns true if a tool is of use only to agents that lead others.
pub fn is_of_leads(tool: &str) -> bool {
    matches!(tool, DELEGATE | STATUS)
}

fn delegate(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let team = context.state.led_team().ok_or("nobody works for this agent")?;
    let worker = find_worker(context.agent, team, text("worker"))?;
    if text("task").is_empty() {
        return Err("task: expected what is to be done, in words".to_owned());
    }
    if !context.state.may_begin_tasks() {
        return Err("the team is paused: nothing is begun until it goes on".to_owned());
    }
    let path = context.state.path_to(context.agent, context.turn, &worker)?;
    let given = match text("context") {
        "" => text("task").to_owned(),
        given => format!("{}\n\n{given}", text("task")),
    };
    Ok(IntrinsicStart::Request(Box::new(Ask {
        agent: worker,
        kind: RequestKind::Work.text(),
        user: context.turn.user.clone(),
        title: text("task").chars().take(TITLE_CHARS).collect(),
        text: given,
        path,
        outside: context.state.provenance_of(context.turn).marks(),
        ..Ask::default()
    })))
}

/// The worker of this name, whole or without that of its team.
fn find_worker(lead: &str, team: &Team, name: &str) -> Result<String, String> {
    let is_it =
        |agent: &str| agent == name || agent.strip_prefix(lead).and_then(|it| it.strip_prefix('-')) == Some(name);
    let found = team.workers.iter().map(|(agent, _)| agent).find(|agent| is_it(agent));
    let known = || team.workers.iter().map(|(agent, _)| agent.as_str()).collect::<Vec<_>>().join(", ");
    found.cloned().ok_or_else(|| format!("worker: {name:?} is none of the team; it has {}", known()))
}

fn report_status(context: &IntrinsicContext<'_>, _: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let state = context.state;
    let now = context.now;
    let (Some(profile), Some(team)) = (&state.profile, state.led_team()) else {
        return Err("nobody works for this agent".to_owned());
    };
    let of_user = |turn| state.turns.get(&turn).is_some_and(|turn| turn.user == context.turn.user);
    let worker = |(agent, _): &(String, String)| {
        let its = state.in_flight.values().filter(|known| known.asked.as_ref() == Some(agent));
        let shown = its.map(|known| match of_user(known.turn) {
            true => json!({ "asked": cut_to(&known.arguments, SHOWN_BYTES), "for_s": now.duration_since(known.since).as_secs().max(0) }),
            // What another user wanted is theirs.
            false => json!({ "for_s": now.duration_since(known.since).as_secs().max(0) }),
        });
        json!({ "worker": agent, "at_work_on": shown.collect::<Vec<_>>() })
    };
    let spent = state.team.spent_on(profile.day_of(now));
    let mut result = json!({
        "status": state.team.status.word().as_str(),
        "workers": team.workers.iter().map(worker).collect::<Vec<_>>(),
        "tokens_spent_today": spent.tokens,
    });
    let Some(fields) = result.as_object_mut() else {
        return Ok(IntrinsicOutcome { events: Vec::new(), result }.into());
    };
    if let Some(most) = team.tokens_per_day {
        fields.insert("tokens_left_today".to_owned(), json!(most.saturating_sub(spent.tokens)));
    }
    // What cannot be counted is not told as nothing.
    if spent.unpriced > 0 {
        fields.insert("money_spent_today".to_owned(), json!("unknown: a model has no price"));
    }
    Ok(IntrinsicOutcome { events: Vec::new(), result }.into())
}

/// The first thing that an agent with a mission does.
fn start_mission(context: &IntrinsicContext<'_>, _: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let profile = owner_profile(context)?;
    let title = "Get to work on your mission".to_owned();
    let text = format!("{title}: {}", profile.mission);
    let task = v1::Task { title, text, source: TaskSource::System.text(), ..mission_task(context, profile) };
    context.state.tasks.check_room(&task)?;
    Ok(IntrinsicOutcome { events: vec![Event::TaskScheduled(TaskScheduled { task: Some(task) })], result: Value::Null }
        .into())
}

/// A queued task of an agent's own.
fn mission_task(context: &IntrinsicContext<'_>, profile: &Profile) -> v1::Task {
    v1::Task {
        task_id: ids::derive(context.id, "mission").to_string(),
        kind: TaskKind::Queued.text(),
        action: "[]".to_owned(),
        user: profile.owner.clone(),
        source: TaskSource::Itself.text(),
        ..v1::Task::default()
    }
}

/// When the agent asks itself next what to do for its mission; it is the same task, as long as that waits.
pub fn next_run(context: &IntrinsicContext<'_>, at: jiff::Timestamp) -> Option<Event> {
    let profile = context.state.profile.as_ref().filter(|profile| profile.is_lead())?;
    let next_at = at.to_string();
    if let Some(waiting) = context.state.tasks.next_run() {
        if waiting.status == tasks::TaskPhase::Paused {
            return None;
        }
        // One that failed is tried again when it was to be, unless nothing may be spent until then.
        if waiting.failed_sessions() > 0 && waiting.next_due().is_some() && !context.state.team.over_budget {
            return None;
        }
        let task_id = waiting.id.to_string();
        let status = TaskStatus::Pending.text();
        let occurrence = waiting.last_occurrence().saturating_add(1);
        let reason = "the work before it is over".to_owned();
        return Some(Event::TaskChanged(TaskChanged {
            task_id,
            status,
            reason,
            next_at,
            occurrence,
            ..TaskChanged::default()
        }));
    }
    let task = v1::Task {
        title: "What to work on next".to_owned(),
        text: format!("{}\n\nYour mission: {}", prompts::MISSION, profile.mission),
        next_at,
        occurrence: FIRST_TIME,
        is_next_run: true,
        ..mission_task(context, profile)
    };
    context.state.tasks.check_room(&task).ok()?;
    Some(Event::TaskScheduled(TaskScheduled { task: Some(task) }))
}

fn pause(context: &IntrinsicContext<'_>, _: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    change_status(context, TeamActivity::Paused, RequestKind::Pause)
}

fn resume(context: &IntrinsicContext<'_>, _: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    change_status(context, TeamActivity::Active, RequestKind::Resume)
}

/// Nothing is left to do: what was queued or is worked on is canceled, and with it what workers were asked for.
fn archive(context: &IntrinsicContext<'_>, _: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let IntrinsicStart::Done(mut done) = change_status(context, TeamActivity::Archived, RequestKind::Pause)? else {
        return Err("it asks nobody".to_owned());
    };
    done.events.extend(context.state.tasks.queue().into_iter().flat_map(|task| cancel_queued(task).events));
    Ok(done.into())
}

fn change_status(
    context: &IntrinsicContext<'_>,
    status: TeamActivity,
    told: RequestKind,
) -> Result<IntrinsicStart, String> {
    let profile = owner_profile(context)?;
    let known = context.state.team.status;
    // What rests only until it may spend again can be told to rest on.
    let goes_on_by_itself =
        status == TeamActivity::Paused && context.state.team.over_budget && context.memory_rules > 0;
    if known == TeamActivity::Archived || known == status && !goes_on_by_itself {
        return Err(format!("the team is {} already", known.word()));
    }
    let spent = context.state.team.spent_on(profile.day_of(context.now));
    if let (TeamActivity::Active, Some(spent)) =
        (status, profile.team.as_ref().and_then(|team| team.reached_limit(spent)))
    {
        return Err(match context.memory_rules {
            0 => format!("{spent}: the team goes on tomorrow, or when more may be spent"),
            _ => format!(
                "{spent}: the team goes on at {}, or when its owner raises that: kairo teams resume {} --budget TOKENS",
                profile.next_day(context.now),
                context.agent
            ),
        });
    }
    let reason = format!("on request of {}", context.turn.user);
    let events = status_events(profile, status, told, &reason, false);
    Ok(IntrinsicOutcome { events, result: Value::Null }.into())
}

/// Builds the event of the team's new status, and the requests that tell its workers.
pub fn status_events(
    profile: &Profile,
    status: TeamActivity,
    told: RequestKind,
    reason: &str,
    over_budget: bool,
) -> Vec<Event> {
    let changed = TeamChanged { status: status.word().text(), reason: reason.to_owned(), over_budget, decided: 0 };
    let workers = profile.team.iter().flat_map(|team| &team.workers);
    let told = workers.map(|(agent, _)| {
        let kind = told.text();
        let title = reason.to_owned();
        let ask = Ask { agent: agent.clone(), kind, title, user: profile.owner.clone(), ..Ask::default() };
        Event::Action(AgentAction { action: Some(Action::Ask(ask)) })
    });
    [Event::TeamChanged(changed)].into_iter().chain(told).collect()
}

/// The profile of an agent with a mission, whose owner says what becomes of it.
fn owner_profile<'c>(context: &IntrinsicContext<'c>) -> Result<&'c Profile, String> {
    let profile = context.state.profile.as_ref().filter(|profile| profile.is_lead());
    let profile = profile.ok_or("this agent has no mission, and leads no team")?;
    match profile.owner == context.turn.user {
        true => Ok(profile),
        false => Err("only its owner says what becomes of a team".to_owned()),
    }
}

impl TeamActivity {
    pub fn word(self) -> TeamStatus {
        match self {
            Self::Active => TeamStatus::Active,
            Self::Paused => TeamStatus::Paused,
            Self::Archived => TeamStatus::Archived,
        }
    }
}
