//! The queue: tasks that are worked on one after the other, each when its turn comes.

use kairo_proto::{
    v1,
    words::{TaskKind, TaskStatus},
};
use uuid::Uuid;

use super::{Status, Task, Tasks, What};
use crate::thread::cut_to;

/// What is kept of a result for those who ask what came of a task, in bytes.
const RESULT_BYTES: usize = 2 * 1024;

impl What {
    pub(super) fn queued(task: &v1::Task) -> Self {
        let lineage = task.lineage.iter().filter_map(|id| Uuid::parse_str(id).ok()).collect();
        let (text, correlation, result) = (task.text.clone(), Uuid::nil(), String::new());
        Self::Queue { text, place: 0, correlation, lineage, failed: 0, again: None, result }
    }
}

impl Task {
    /// What is to be done, of a queued task.
    pub fn text(&self) -> &str {
        match &self.what {
            What::Queue { text, .. } => text,
            What::Time { .. } | What::Hook { .. } => "",
        }
    }

    /// Where it is in the queue: the lower, the sooner.
    fn place(&self) -> Option<i64> {
        match &self.what {
            What::Queue { place, .. } => Some(*place),
            What::Time { .. } | What::Hook { .. } => None,
        }
    }

    /// On whose behalf whatever works on it does so: those on whose behalf it was queued, and itself.
    pub fn lineage(&self) -> Vec<Uuid> {
        match &self.what {
            What::Queue { lineage, .. } => lineage.iter().copied().chain([self.id]).collect(),
            What::Time { .. } | What::Hook { .. } => Vec::new(),
        }
    }

    /// How often a queued task has failed.
    pub fn failed(&self) -> u32 {
        match &self.what {
            What::Queue { failed, .. } => *failed,
            What::Time { .. } | What::Hook { .. } => 0,
        }
    }

    /// The chain of events that a queued task was asked for in.
    pub fn correlation(&self) -> Uuid {
        match &self.what {
            What::Queue { correlation, .. } => *correlation,
            What::Time { .. } | What::Hook { .. } => Uuid::nil(),
        }
    }
}

impl Tasks {
    /// Whether a change puts a task that is being worked on back into the queue.
    pub(crate) fn is_put_back(&self, changed: &v1::TaskChanged) -> bool {
        let task = Uuid::parse_str(&changed.task_id).ok().and_then(|id| self.open.get(&id));
        !changed.next_at.is_empty() && task.is_some_and(|task| task.status == Status::InProgress)
    }

    /// Puts a task that was just taken in to the end of the queue, if it is for there.
    pub(crate) fn queued_for(&mut self, task: &v1::Task, chain: Uuid) {
        if task.kind_word() != TaskKind::Queued {
            return;
        }
        let last = self.open.values().filter_map(Task::place).max().unwrap_or_default();
        let task = Uuid::parse_str(&task.task_id).ok().and_then(|id| self.open.get_mut(&id));
        if let Some(What::Queue { place, correlation, .. }) = task.map(|task| &mut task.what) {
            (*place, *correlation) = (last + 1, chain);
        }
    }

    /// Makes it the next one to be worked on.
    pub(super) fn put_first(&mut self, id: Uuid) {
        let first = self.open.values().filter_map(Task::place).min().unwrap_or_default();
        if let Some(What::Queue { place, .. }) = self.open.get_mut(&id).map(|task| &mut task.what) {
            *place = first - 1;
        }
    }

    /// What is queued or worked on, in order.
    pub fn queue(&self) -> Vec<&Task> {
        let mut queue: Vec<&Task> = self.open.values().filter(|task| task.place().is_some()).collect();
        queue.sort_by_key(|task| (task.place(), task.id));
        queue
    }

    /// The next one to be worked on.
    pub fn next_queued(&self) -> Option<&Task> {
        let is_next = |task: &&Task| task.place().is_some() && task.status == Status::Pending && task.next().is_none();
        let waiting = self.open.values().filter(is_next);
        waiting.min_by_key(|task| (task.place(), task.id))
    }

    /// Takes in `task.started`; the task.
    pub(crate) fn start(&mut self, id: Uuid) -> Option<&Task> {
        let task = self.open.get_mut(&id).filter(|task| task.place().is_some())?;
        task.status = Status::InProgress;
        Some(task)
    }

    /// Takes in `task.ended`.
    pub(crate) fn end(&mut self, ended: &v1::TaskEnded) {
        let Some(task) = Uuid::parse_str(&ended.task_id).ok().and_then(|id| self.open.get_mut(&id)) else { return };
        let What::Queue { result, .. } = &mut task.what else { return };
        let told = if ended.result.is_empty() { &ended.reason } else { &ended.result };
        *result = cut_to(told, RESULT_BYTES);
        task.status = match ended.status_word() {
            TaskStatus::Completed => Status::Completed,
            TaskStatus::Canceled => Status::Canceled,
            _ => Status::Failed,
        };
        let id = task.id;
        self.settle(id);
    }
}
