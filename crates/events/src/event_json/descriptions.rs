//! Texts of events for people, one line each.

use kairo_proto::words::{OfferAction, TaskKind};
use kairo_proto::{
    About, Body, Decided,
    about::{self, Agent, Outside, Process, System, Tool, Turn, User},
    v1::{
        AgentAnswer, AgentAnswered, AgentApproval, AgentBriefed, AgentBroadcast, AgentChoice, AgentCommand,
        AgentDefined, AgentForgotten, AgentGoal, AgentImported, AgentMessage, AgentReflected, AgentRequest, ChainEnded,
        ChainStarted, ChainStep, ChainStepEnded, MemoryAppended, ProcessCapabilities, StateDeleted, StateWritten,
        SubmoduleAsked, SubmoduleChanged, SubmoduleFailed, Task, TaskChanged, TaskDue, TaskEnded, TaskFired,
        TaskStarted, TaskTriggered, TeamChanged, ThreadArchived, ThreadCompacted, ThreadCompleted, ThreadMatched,
        ThreadSuggested, ThreadSummarized, ToolCatalogue, ToolOrder, UserApproval, UserChoice, UserCommand, UserForget,
        UserForgotten, UserMessage, tool_order::Order,
    },
};

use crate::media;

/// Returns the text of a message; empty where its form says it already.
pub fn describe_body(body: &Body) -> String {
    match body.about() {
        About::User(user) => describe_user_event(user),
        About::Agent(agent) => describe_agent_event(agent),
        About::Decided(Decided::Turn(turn)) => describe_turn(turn),
        About::Decided(Decided::Thread(thread)) => describe_thread(thread),
        About::Decided(Decided::Chain(chain)) => describe_chain(chain),
        About::Decided(Decided::Task(task)) => describe_task(task),
        About::Decided(Decided::Memory(memory)) => describe_memory(memory),
        About::Decided(Decided::State(state)) => describe_state(state),
        About::Outside(outside) => describe_outside(outside),
        About::Tool(tool) => describe_tool(tool),
        About::Process(process) => describe_process(process),
        About::System(system) => describe_system(system),
        // The events of a decision speak for themselves; what is live is shown in another form.
        About::Decision(_) | About::Live(_) => String::new(),
    }
}

fn describe_user_event(user: User<'_>) -> String {
    match user {
        User::Message(UserMessage { parts, state, .. }) => media::text_with_parts(&media::with_state("", state), parts),
        User::Undelivered(undelivered) => undelivered.reason.clone(),
        User::Switched(switched) => format!("speaks with {} from here on", switched.agent),
        User::Forget(UserForget { user, .. }) => format!("{user} is to be forgotten"),
        User::Forgotten(UserForgotten { user, agents, .. }) => {
            format!("{user} is forgotten, by {} agents", agents.len())
        }
        User::Choice(UserChoice { option, offer_id, .. }) => describe_choice(option, offer_id),
        User::Approval(UserApproval { verdict, action_id, note, .. }) => describe_approval(verdict, action_id, note),
        User::Command(UserCommand {
            command,
            action_id,
            process_id,
            chain_id,
            task_id,
            thread_id,
            team,
            submodule,
            ..
        }) => {
            let submodule = submodule.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
            format!("{command} {action_id}{process_id}{chain_id}{task_id}{thread_id}{team}{submodule}")
        }
    }
}

fn describe_agent_event(agent: Agent<'_>) -> String {
    match agent {
        Agent::Defined(AgentDefined { profile, .. }) => {
            profile.as_ref().map(|profile| profile.description.clone()).unwrap_or_default()
        }
        Agent::Imported(AgentImported { user, part, parts, threads, messages, .. }) => {
            let threads = threads.len();
            let messages = messages.len();
            format!("{messages} messages of {user} in {threads} threads were imported (part {part} of {parts})")
        }
        Agent::Forgotten(AgentForgotten { user, .. }) => format!("{user} is forgotten"),
        Agent::Message(AgentMessage { parts, state, .. }) => {
            media::text_with_parts(&media::with_state("", state), parts)
        }
        Agent::Choice(AgentChoice { option, offer_id, .. }) => describe_choice(option, offer_id),
        Agent::Approval(AgentApproval { verdict, action_id, note, .. }) => describe_approval(verdict, action_id, note),
        Agent::Command(AgentCommand {
            command,
            action_id,
            process_id,
            chain_id,
            task_id,
            thread_id,
            team,
            submodule,
            ..
        }) => {
            let submodule = submodule.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
            format!("{command} {action_id}{process_id}{chain_id}{task_id}{thread_id}{team}{submodule}")
        }
        Agent::Request(AgentRequest { from, kind, title, request_id, .. }) => {
            join_reason(format!("{from} asks to {kind}"), if title.is_empty() { request_id } else { title })
        }
        Agent::Answer(AgentAnswer { from, status, result, reason, .. }) => {
            join_reason(format!("{from}: {status}"), if result.is_empty() { reason } else { result })
        }
    }
}

fn describe_choice(option: &str, offer_id: &str) -> String {
    format!("{option} (of {offer_id})")
}

fn describe_approval(verdict: &str, action_id: &str, note: &str) -> String {
    format!("{verdict} ({action_id}) {note}").trim_end().to_owned()
}

fn describe_turn(turn: Turn<'_>) -> String {
    match turn {
        Turn::Failed(failed) => format!("{}: {}", failed.kind, failed.message),
        Turn::Joined(joined) => format!("answered together with {}", joined.into_message_id),
        Turn::Goal(AgentGoal { text }) => text.clone(),
        Turn::Reflected(AgentReflected { verdict, reason, .. }) => join_reason(verdict.clone(), reason),
        Turn::Answered(AgentAnswered { status, result, reason, answer, .. }) => {
            let agent = answer.as_ref().map(|answer| answer.agent.as_str()).unwrap_or_default();
            join_reason(format!("{agent} is told: {status}"), if result.is_empty() { reason } else { result })
        }
        Turn::Briefed(AgentBriefed { user, told: true, summary, .. }) => {
            join_reason(format!("{user} is told"), summary)
        }
        Turn::Briefed(AgentBriefed { user, told: false, reason, .. }) => {
            join_reason(format!("{user} is not told"), reason)
        }
        Turn::TeamChanged(TeamChanged { status, reason, .. }) => join_reason(format!("team {status}"), reason),
        Turn::SubmoduleChanged(SubmoduleChanged { name, submodule: Some(_) }) => format!("submodule {name} added"),
        Turn::SubmoduleChanged(SubmoduleChanged { name, submodule: None }) => format!("submodule {name} removed"),
        Turn::SubmoduleFailed(SubmoduleFailed { module, kind, message }) => {
            join_reason(format!("{module} is {kind}"), message)
        }
        Turn::SubmoduleAsked(SubmoduleAsked { module, question, .. }) => join_reason(format!("to {module}"), question),
        Turn::Broadcast(AgentBroadcast { modules, .. }) => format!("shown to {}", modules.join(", ")),
        // A thought is its text; actions have a form of their own.
        Turn::Thought(_) | Turn::Action(_) => String::new(),
    }
}

fn describe_thread(thread: about::Thread<'_>) -> String {
    match thread {
        about::Thread::Created(created) => created.title.clone(),
        about::Thread::Matched(ThreadMatched { action, thread_id, reason, .. }) => {
            join_reason(format!("{action} {thread_id}"), reason)
        }
        about::Thread::Suggested(ThreadSuggested { action, thread_id, reason, summary, .. }) => {
            let (verb, what) = match OfferAction::from(action.as_str()) {
                OfferAction::SuggestNew => ("begin a new thread", String::new()),
                _ if summary.is_empty() => ("switch to thread", format!(" {thread_id}")),
                _ => ("switch to", format!(" \"{summary}\"")),
            };
            join_reason(format!("{verb}{what}?"), reason)
        }
        about::Thread::Summarized(ThreadSummarized { title, summary, .. }) => join_reason(title.clone(), summary),
        about::Thread::Archived(ThreadArchived { thread_id, archived }) => {
            format!("{thread_id} {}", if *archived { "archived" } else { "taken out again" })
        }
        about::Thread::Compacted(ThreadCompacted { entries, summary, .. }) => {
            join_reason(format!("{entries} entries summed up"), summary)
        }
        about::Thread::Completed(ThreadCompleted { thread_id }) => format!("{thread_id} completed"),
    }
}

fn describe_chain(chain: about::Chain<'_>) -> String {
    match chain {
        about::Chain::Started(ChainStarted { steps, .. }) => describe_steps(steps),
        about::Chain::StepEnded(ChainStepEnded { step, outcome, result, reason, .. }) => {
            let what = if reason.is_empty() { result } else { reason };
            join_reason(format!("step {} {outcome}", step.saturating_add(1)), what)
        }
        about::Chain::Ended(ChainEnded { outcome, reason, .. }) => join_reason(outcome.clone(), reason),
        about::Chain::ApprovalRequested(requested) => {
            format!("may {} be called by {}? {}", requested.tool, requested.user, requested.arguments)
        }
    }
}

/// `a, [b | c], d`: steps one after another, those that run at once within brackets.
fn describe_steps(steps: &[ChainStep]) -> String {
    let groups = steps.chunk_by(|one, other| one.group == other.group).map(|group| {
        let names: Vec<&str> = group.iter().map(|step| step.event.as_str()).collect();
        if names.len() > 1 { format!("[{}]", names.join(" | ")) } else { names.concat() }
    });
    groups.collect::<Vec<_>>().join(", ")
}

fn describe_task(task: about::Task<'_>) -> String {
    match task {
        about::Task::Scheduled(scheduled) => scheduled.task.as_ref().map(describe_new_task).unwrap_or_default(),
        about::Task::Fired(TaskFired { task_id, due_at, late, next_at, .. }) => {
            let due = if due_at.is_empty() { String::new() } else { format!(" due {due_at}") };
            let late = if *late { ", late" } else { "" };
            let next = if next_at.is_empty() { String::new() } else { format!(", next {next_at}") };
            format!("task {task_id}{due}{late}{next}")
        }
        about::Task::Started(TaskStarted { task_id, thread_id, before_work: _ }) => {
            format!("task {task_id} begun in {thread_id}")
        }
        about::Task::Ended(TaskEnded { task_id, status, result, reason, .. }) => {
            join_reason(format!("task {task_id} {status}"), if result.is_empty() { reason } else { result })
        }
        about::Task::Changed(TaskChanged { task_id, status, reason, next_at, first, .. }) => {
            let next = match (next_at.as_str(), first) {
                (_, true) => ", next in the queue".to_owned(),
                ("", false) => String::new(),
                (at, false) => format!(", next {at}"),
            };
            join_reason(format!("task {task_id} {status}{next}"), reason)
        }
    }
}

fn describe_outside(outside: Outside<'_>) -> String {
    match outside {
        Outside::Due(TaskDue { task_id, due_at, .. }) => format!("task {task_id} due {due_at}"),
        Outside::Triggered(TaskTriggered { trigger, data, .. }) => format!("{trigger} {data}"),
        Outside::Email(mail) => format!("from {}: {}", mail.sender, mail.subject),
    }
}

fn describe_tool(tool: Tool<'_>) -> String {
    match tool {
        Tool::Progress(progress) => describe_progress(progress.fraction, &progress.message),
        Tool::Order(order) => describe_order(order),
        // They have a form of their own.
        Tool::Invoke(_) | Tool::Result(_) => String::new(),
    }
}

fn describe_process(process: Process<'_>) -> String {
    match process {
        Process::Spawned(spawned) => {
            format!("{} {} (pid {})", spawned.program, spawned.arguments.join(" "), spawned.pid)
        }
        Process::Progress(progress) => describe_progress(progress.fraction, &progress.message),
        Process::Canceled(canceled) => format!("asked to end within {} ms", canceled.grace_ms),
        Process::Reply(reply) => format!("{} {}", reply.outcome, reply.reason).trim_end().to_owned(),
        Process::Exited(exited) => match (exited.code, exited.signal) {
            (Some(code), _) => format!("{} with code {code}", exited.outcome),
            (None, Some(signal)) => format!("{} by signal {signal}", exited.outcome),
            (None, None) => format!("{}: {}", exited.outcome, exited.reason),
        },
    }
}

fn describe_order(order: &ToolOrder) -> String {
    match &order.order {
        Some(Order::Stop(_)) => "to be stopped".to_owned(),
        Some(Order::Signal(signal)) => format!("is sent the signal {}", signal.name),
        Some(Order::Write(write)) => {
            let closing = if write.close { ", and its input is closed" } else { "" };
            format!("is sent {} bytes{closing}", write.text.len())
        }
        None => String::new(),
    }
}

fn describe_progress(fraction: Option<f64>, message: &str) -> String {
    match fraction {
        Some(fraction) => format!("{:.0} % {message}", fraction * 100.0).trim_end().to_owned(),
        None => message.to_owned(),
    }
}

fn describe_system(system: System<'_>) -> String {
    match system {
        System::Catalogue(ToolCatalogue { tools, .. }) | System::Capabilities(ProcessCapabilities { tools, .. }) => {
            tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
        }
        System::DeadLetter(letter) => letter.reason.clone(),
        System::DeadLetterRetry(order) => format!("letter {}", order.letter),
        System::DeadLetterRetried(retried) if retried.reason.is_empty() => retried.outcome.clone(),
        System::DeadLetterRetried(retried) => format!("{}: {}", retried.outcome, retried.reason),
        System::Epoch(epoch) => epoch.epoch.to_string(),
        System::Basis(_) => String::new(),
    }
}

fn describe_new_task(task: &Task) -> String {
    let when = match (task.trigger.as_str(), task.next_at.as_str()) {
        ("", "") if task.kind_word() == TaskKind::Queued => task.kind.clone(),
        ("", "") => task.r#type.clone(),
        ("", next) => format!("next {next}"),
        (trigger, _) => format!("on {trigger}"),
    };
    let title = if task.title.is_empty() { &task.task_id } else { &task.title };
    join_reason(title.clone(), &when)
}

fn describe_memory(memory: about::Memory<'_>) -> String {
    match memory {
        about::Memory::Appended(MemoryAppended { kind, subject, content, .. }) => {
            join_reason(if subject.is_empty() { kind.clone() } else { format!("{kind} {subject}") }, content)
        }
    }
}

fn describe_state(state: about::State<'_>) -> String {
    match state {
        about::State::Written(StateWritten { key, content, .. }) => join_reason(key.clone(), content),
        about::State::Deleted(StateDeleted { key, .. }) => format!("{key} deleted"),
    }
}

/// `what: why`, or what there is of both.
fn join_reason(what: String, why: &str) -> String {
    match (what.is_empty(), why.is_empty()) {
        (false, false) => format!("{what}: {why}"),
        (false, true) => what,
        (true, _) => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_is_a_question() {
        let suggested = ThreadSuggested {
            action: "suggest_switch".into(),
            thread_id: "t-2".into(),
            reason: "it is about John's mail".into(),
            ..Default::default()
        };
        let told = |suggested: &ThreadSuggested| describe_thread(about::Thread::Suggested(suggested));
        assert_eq!(told(&suggested), "switch to thread t-2?: it is about John's mail");
        assert_eq!(
            told(&ThreadSuggested { summary: "mail".into(), reason: String::new(), ..suggested.clone() }),
            "switch to \"mail\"?"
        );
        assert_eq!(
            told(&ThreadSuggested { action: "suggest_new".into(), reason: String::new(), ..suggested }),
            "begin a new thread?"
        );
    }

    #[test]
    fn steps_that_run_at_once_stand_together() {
        let step = |(group, event): (u32, &str)| ChainStep { group, event: event.into(), ..Default::default() };
        let steps = [(0, "tools.now"), (1, "a"), (1, "b"), (2, "agent.think")].map(step).to_vec();
        let started = ChainStarted { steps, ..Default::default() };
        assert_eq!(describe_chain(about::Chain::Started(&started)), "tools.now, [a | b], agent.think");
        let ended =
            ChainStepEnded { step: 1, outcome: "skipped".into(), reason: "not urgent".into(), ..Default::default() };
        assert_eq!(describe_chain(about::Chain::StepEnded(&ended)), "step 2 skipped: not urgent");
    }

    #[test]
    fn a_task_says_when_it_is_due() {
        let hook = Task { title: "invoices".into(), trigger: "post:email.received".into(), ..Default::default() };
        assert_eq!(describe_new_task(&hook), "invoices: on post:email.received");
        let fired =
            TaskFired { task_id: "k".into(), due_at: "2026-11-21T09:00:00Z".into(), late: true, ..Default::default() };
        assert_eq!(describe_task(about::Task::Fired(&fired)), "task k due 2026-11-21T09:00:00Z, late");
    }
}
