//! The verdict on work beside conversations: queued tasks, sessions, and reports to owners.

use std::collections::BTreeMap;

use kairo_proto::{
    Decided,
    about::{self, Thread, Turn},
    words::{TaskKind, TaskStatus, ThreadKind},
};

use super::Evidence;

/// The counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Queued, but for the next runs of leads, which nobody waits for.
    pub tasks: usize,
    pub delegated: usize,
    pub tasks_not_ended: Vec<String>,
    pub tasks_ended_twice: Vec<String>,
    /// The load gives them no reason to fail.
    pub tasks_failed: Vec<String>,
    /// Threads of work.
    pub sessions: usize,
    pub sessions_not_ended: Vec<String>,
    pub sessions_ended_twice: Vec<String>,
    pub compacted: usize,
    pub briefings: usize,
    /// Of one session, more than one.
    pub briefings_twice: Vec<String>,
}

impl Evidence<'_> {
    pub(super) fn judge_work(&self) -> Work {
        let mut work = Work::default();
        let mut tasks = BTreeMap::<&str, Vec<TaskStatus>>::new();
        let (mut sessions, mut briefed) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
        for (_, event) in self.decided() {
            match event.about() {
                Decided::Task(about::Task::Scheduled(scheduled)) => {
                    let queued = |it: &&kairo_proto::v1::Task| it.kind_word() == TaskKind::Queued && !it.is_next_run;
                    if let Some(task) = scheduled.task.as_ref().filter(queued) {
                        tasks.entry(&task.task_id).or_default();
                        work.delegated += usize::from(!task.asked_by.is_empty());
                    }
                }
                Decided::Task(about::Task::Ended(ended)) => {
                    tasks.entry(&ended.task_id).or_default().push(ended.status_word());
                }
                Decided::Task(about::Task::Fired(_) | about::Task::Changed(_) | about::Task::Started(_)) => {}
                Decided::Thread(Thread::Created(created)) if created.kind_word() == ThreadKind::Work => {
                    sessions.entry(&created.thread_id).or_default();
                }
                Decided::Thread(Thread::Completed(completed)) => {
                    *sessions.entry(&completed.thread_id).or_default() += 1;
                }
                Decided::Thread(Thread::Compacted(_)) => work.compacted += 1,
                Decided::Turn(Turn::Briefed(it)) => *briefed.entry(&it.thread_id).or_default() += 1,
                Decided::Turn(_) | Decided::Thread(_) | Decided::Chain(_) | Decided::Memory(_) | Decided::State(_) => {}
            }
        }
        let named = |it: (&&str, &Vec<TaskStatus>)| format!("{}: {:?}", it.0, it.1);
        let failed = |ends: &Vec<TaskStatus>| ends.iter().any(|end| *end != TaskStatus::Completed);
        (work.tasks, work.sessions, work.briefings) = (tasks.len(), sessions.len(), briefed.len());
        work.tasks_not_ended = tasks.iter().filter(|(_, ends)| ends.is_empty()).map(named).collect();
        work.tasks_ended_twice = tasks.iter().filter(|(_, ends)| ends.len() > 1).map(named).collect();
        work.tasks_failed = tasks.iter().filter(|(_, ends)| failed(ends)).map(named).collect();
        let ended = |times: fn(usize) -> bool| {
            sessions.iter().filter(move |(_, ends)| times(**ends)).map(|(id, _)| (*id).to_owned()).collect()
        };
        work.sessions_not_ended = ended(|times| times == 0);
        work.sessions_ended_twice = ended(|times| times > 1);
        work.briefings_twice = briefed.iter().filter(|(_, told)| **told > 1).map(|(id, _)| (*id).to_owned()).collect();
        work
    }
}
