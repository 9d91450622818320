//! What events about threads, chains, tasks and memory say to people, in a line.

use kairo_proto::{
    Body,
    v1::{
        ChainEnded, ChainStarted, ChainStep, ChainStepEnded, MemoryAppended, Task, TaskChanged, TaskDue, TaskFired,
        TaskTriggered, ThreadArchived, ThreadMatched, ThreadSuggested, ThreadSummarized,
    },
};

pub fn of_thread(body: &Body) -> String {
    match body {
        Body::ThreadCreated(created) => created.title.clone(),
        Body::ThreadMatched(ThreadMatched { action, thread_id, reason, .. }) => {
            because(format!("{action} {thread_id}"), reason)
        }
        Body::ThreadSuggested(ThreadSuggested { action, thread_id, reason, summary, .. }) => {
            let (verb, what) = match action.as_str() {
                "suggest_new" => ("begin a new thread", String::new()),
                _ if summary.is_empty() => ("switch to thread", format!(" {thread_id}")),
                _ => ("switch to", format!(" \"{summary}\"")),
            };
            because(format!("{verb}{what}?"), reason)
        }
        Body::ThreadSummarized(ThreadSummarized { title, summary, .. }) => because(title.clone(), summary),
        Body::ThreadArchived(ThreadArchived { thread_id, archived }) => {
            format!("{thread_id} {}", if *archived { "archived" } else { "taken out again" })
        }
        _ => String::new(),
    }
}

pub fn of_chain(body: &Body) -> String {
    match body {
        Body::ChainStarted(ChainStarted { steps, .. }) => steps_of(steps),
        Body::ChainStepEnded(ChainStepEnded { step, outcome, result, reason, .. }) => {
            let what = if reason.is_empty() { result } else { reason };
            because(format!("step {} {outcome}", step.saturating_add(1)), what)
        }
        Body::ChainEnded(ChainEnded { outcome, reason, .. }) => because(outcome.clone(), reason),
        _ => String::new(),
    }
}

/// `a, [b | c], d`: steps one after another, those that run at once within brackets.
fn steps_of(steps: &[ChainStep]) -> String {
    let groups = steps.chunk_by(|one, other| one.group == other.group).map(|group| {
        let names: Vec<&str> = group.iter().map(|step| step.event.as_str()).collect();
        if names.len() > 1 { format!("[{}]", names.join(" | ")) } else { names.concat() }
    });
    groups.collect::<Vec<_>>().join(", ")
}

pub fn of_task(body: &Body) -> String {
    match body {
        Body::TaskScheduled(scheduled) => scheduled.task.as_ref().map(made).unwrap_or_default(),
        Body::TaskFired(TaskFired { task_id, due_at, late, next_at, .. }) => {
            let due = if due_at.is_empty() { String::new() } else { format!(" due {due_at}") };
            let late = if *late { ", late" } else { "" };
            let next = if next_at.is_empty() { String::new() } else { format!(", next {next_at}") };
            format!("task {task_id}{due}{late}{next}")
        }
        Body::TaskChanged(TaskChanged { task_id, status, reason, next_at, .. }) => {
            let next = if next_at.is_empty() { String::new() } else { format!(", next {next_at}") };
            because(format!("task {task_id} {status}{next}"), reason)
        }
        Body::TaskDue(TaskDue { task_id, due_at, .. }) => format!("task {task_id} due {due_at}"),
        Body::TaskTriggered(TaskTriggered { trigger, data, .. }) => format!("{trigger} {data}"),
        _ => String::new(),
    }
}

fn made(task: &Task) -> String {
    let when = match (task.trigger.as_str(), task.next_at.as_str()) {
        ("", "") => task.r#type.clone(),
        ("", next) => format!("next {next}"),
        (trigger, _) => format!("on {trigger}"),
    };
    let title = if task.title.is_empty() { &task.task_id } else { &task.title };
    because(title.clone(), &when)
}

pub fn of_memory(memory: &MemoryAppended) -> String {
    let what =
        if memory.subject.is_empty() { memory.kind.clone() } else { format!("{} {}", memory.kind, memory.subject) };
    because(what, &memory.content)
}

/// `what: why`, or what there is of both.
fn because(what: String, why: &str) -> String {
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
        let told = |suggested: &ThreadSuggested| of_thread(&Body::from(suggested.clone()));
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
        let started = Body::from(ChainStarted { steps, ..Default::default() });
        assert_eq!(of_chain(&started), "tools.now, [a | b], agent.think");
        let ended =
            ChainStepEnded { step: 1, outcome: "skipped".into(), reason: "not urgent".into(), ..Default::default() };
        assert_eq!(of_chain(&Body::from(ended)), "step 2 skipped: not urgent");
    }

    #[test]
    fn a_task_says_when_it_is_due() {
        let hook = Task { title: "invoices".into(), trigger: "post:email.received".into(), ..Default::default() };
        assert_eq!(made(&hook), "invoices: on post:email.received");
        let fired =
            TaskFired { task_id: "k".into(), due_at: "2026-11-21T09:00:00Z".into(), late: true, ..Default::default() };
        assert_eq!(of_task(&Body::from(fired)), "task k due 2026-11-21T09:00:00Z, late");
    }
}
