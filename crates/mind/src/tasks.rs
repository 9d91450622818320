//! An agent's tasks: scheduled, waiting for an event, or queued. Built from the log.
//!
//! A task's occurrence tells which of its times were dealt with: times are numbered from 1, and the task names the next
//! one. A timer that fires twice or late finds another number.

mod filter;
mod progress;
mod queue;
#[cfg(test)]
mod tests;
mod trigger;

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use kairo_proto::{
    v1,
    words::{TaskKind, TaskSource, TaskStatus},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use self::{
    filter::{StatusFilter, TaskFilter},
    progress::{TaskHistory, TaskProgress},
    trigger::{Trigger, bound_event_data},
};
use super::{provenance::Provenance, schedule::Schedule, state::is_none};

/// Open tasks an agent may have, hooks included.
pub const MOST_OPEN: usize = 1_000;
/// Hooks among them: each is looked at whenever something happens.
pub const MOST_HOOKS: usize = 100;
/// Open tasks of one user, and room among all that is kept for users who have fewer.
pub const FEW: usize = 20;
const KEPT_FOR_FEW: usize = 200;
const BYTES_KEPT_FOR_FEW: usize = 64 * 1024;
/// Text that all open tasks may take, in bytes, so that a snapshot fits one message.
pub const MOST_BYTES: usize = 256 * 1024;
/// Largest action of a task, in bytes of JSON.
pub const ACTION_BYTES: usize = 32 * 1024;
/// Longest condition of a hook, in characters.
pub const CONDITION_CHARS: usize = 2_000;
/// Hooks and tasks that may follow from one another.
pub const LINEAGE: usize = 8;
/// Tasks that are over and still listed; the oldest make room.
const ENDED: usize = 256;
/// Maximum size of the actions kept for tasks that are over, in bytes; older tasks lose theirs.
const ENDED_BYTES: usize = 64 * 1024;

/// All tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// By task id.
    pub open: BTreeMap<Uuid, Task>,
    /// Those that are over, the oldest forgotten first.
    pub ended: VecDeque<Task>,
    /// Events that tasks wait for, observed at the input being decided on.
    pub triggered: Vec<Trigger>,
    /// Users whose queued tasks were begun since the queue was last empty, the one served last at the end.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) served: VecDeque<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: Uuid,
    pub title: String,
    pub status: TaskPhase,
    pub what: TaskActivation,
    /// Steps, in the form of a chain.
    pub action: Value,
    pub thread_id: String,
    pub user: String,
    /// user, system, self or delegation.
    pub source: String,
    pub created: Timestamp,
    /// Of a hook: it fires for whatever happens to the agent.
    pub shared: bool,
    /// Content from outside that was seen where it was made.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
    /// Of a queued one: what was done for it, and what that took.
    #[serde(default, skip_serializing_if = "TaskProgress::is_nothing")]
    pub worked: TaskProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskPhase {
    /// Its time has not come yet.
    Pending,
    /// A hook that waits, or a repeated task that has fired before.
    Active,
    Paused,
    Completed,
    Canceled,
    Archived,
    Failed,
    /// A queued one that is being worked on.
    InProgress,
}

/// The condition a task waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskActivation {
    Time {
        schedule: Schedule,
        /// When it is due next, and which time that is; none when it is not.
        next: Option<(Timestamp, u64)>,
    },
    Hook {
        trigger: String,
        condition: String,
    },
    /// Its turn.
    Queue {
        /// The work to do.
        text: String,
        /// The lower, the sooner.
        place: i64,
        /// The chain of events that it was asked for in.
        correlation: Uuid,
        /// Hooks and tasks on whose behalf it was queued.
        lineage: Vec<Uuid>,
        /// Number of sessions in which it failed.
        failed: u32,
        /// When it is tried again, and which time that is; none while it waits for nothing but its turn.
        again: Option<(Timestamp, u64)>,
        /// The outcome of the task, as far as it is kept for those who ask.
        result: String,
        /// The agent that asked for it, where another one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<TaskRequester>,
        /// The last time that was set for it: no time has the number of an earlier one.
        #[serde(default)]
        times: u64,
        /// It asks what to do for the mission.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_next_run: bool,
    },
}

/// The agent that asked for a task, its request, and the agents on whose behalf it asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRequester {
    pub agent: String,
    pub request_id: String,
    pub path: Vec<String>,
    /// Calls of models that were given for it; 0 where nobody counts them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub model_calls: u32,
}

impl Tasks {
    /// Takes in `task.scheduled`, decided at `at`. What would be more than an agent may have is not taken in: nobody
    /// decides to schedule it.
    pub(super) fn apply_scheduled(&mut self, at: Timestamp, task: &v1::Task) {
        let Some(task) = Task::from_scheduled(at, task) else { return };
        if self.open.len() > MOST_OPEN && !self.open.contains_key(&task.id) {
            return;
        }
        self.open.insert(task.id, task);
    }

    /// Takes in `task.fired`.
    pub(super) fn apply_fired(&mut self, fired: &v1::TaskFired) {
        let Some(task) = Uuid::parse_str(&fired.task_id).ok().and_then(|id| self.open.get_mut(&id)) else { return };
        let TaskActivation::Time { next, .. } = &mut task.what else { return };
        *next = fired.next_at.parse().ok().map(|at| (at, fired.occurrence.saturating_add(1)));
        match (task.status, next) {
            (_, None) => task.status = TaskPhase::Completed,
            (TaskPhase::Paused, _) => {}
            _ => task.status = TaskPhase::Active,
        }
        let id = task.id;
        self.move_if_over(id);
    }

    /// Takes in `task.changed`.
    pub(super) fn apply_changed(&mut self, changed: &v1::TaskChanged) {
        let Ok(id) = Uuid::parse_str(&changed.task_id) else { return };
        let Some(status) = TaskPhase::from_word(changed.status_word()) else { return };
        if let Some(over) = self.ended.iter_mut().rev().find(|task| task.id == id) {
            over.status = status;
            return;
        }
        let Some(task) = self.open.get_mut(&id) else { return };
        let was_in_progress = task.status == TaskPhase::InProgress;
        task.status = status;
        task.shared = changed.shared.unwrap_or(task.shared);
        if changed.first {
            return self.put_first(id);
        }
        if let TaskActivation::Queue { failed, again, times, .. } = &mut task.what {
            *times = (*times).max(changed.occurrence);
            *again = changed.next_at.parse().ok().map(|at| (at, changed.occurrence));
            *failed = failed.saturating_add(u32::from(was_in_progress && again.is_some() && !changed.rests));
            return self.move_if_over(id);
        }
        if let (TaskActivation::Time { next, .. }, Ok(at)) = (&mut task.what, changed.next_at.parse()) {
            *next = Some((at, changed.occurrence));
        }
        self.move_if_over(id);
    }

    /// Puts a task that is over to the others.
    fn move_if_over(&mut self, id: Uuid) {
        if self.open.get(&id).is_none_or(|task| !task.status.is_over()) {
            return;
        }
        self.ended.extend(self.open.remove(&id));
        while self.ended.len() > ENDED {
            self.ended.pop_front();
        }
        let mut bytes = 0;
        for (at, task) in self.ended.iter_mut().rev().enumerate() {
            bytes += task.bytes();
            // That of the last may be about to run.
            if bytes > ENDED_BYTES && at > 0 {
                task.clear_texts();
            }
        }
    }

    /// The task whose time this is; none when it was dealt with, is paused or over.
    pub fn due_task(&self, task: Uuid, occurrence: u64) -> Option<&Task> {
        let task = self.open.get(&task)?;
        let waits = matches!(task.status, TaskPhase::Pending | TaskPhase::Active);
        task.next_due().filter(|(_, next)| waits && *next == occurrence).map(|_| task)
    }

    /// Active hooks on this trigger, such as `post:email.received`, oldest first.
    pub fn hooks<'a>(&'a self, trigger: &'a str) -> impl Iterator<Item = &'a Task> {
        let waits = move |task: &&Task| {
            task.status == TaskPhase::Active
                && matches!(&task.what, TaskActivation::Hook { trigger: of, .. } if of == trigger)
        };
        let mut hooks: Vec<&Task> = self.open.values().filter(waits).collect();
        hooks.sort_by_key(|task| (task.created, task.id));
        hooks.into_iter()
    }

    /// Those of them that fire for what concerns this user.
    pub fn hooks_of<'a>(&'a self, trigger: &'a str, user: &'a str) -> impl Iterator<Item = &'a Task> {
        self.hooks(trigger).filter(move |task| task.concerns_user(Some(user)))
    }

    /// Returns the task that ends the agent's day.
    pub fn day_end(&self) -> Option<&Task> {
        self.open.values().find(|task| task.is_of_system() && matches!(task.what, TaskActivation::Time { .. }))
    }

    /// Those of a user who is forgotten.
    pub(super) fn forget_user(&mut self, user: &str) {
        self.open.retain(|_, task| task.user != user);
        self.ended.retain(|task| task.user != user);
        self.triggered.retain(|trigger| self.open.contains_key(&trigger.task));
        self.served.retain(|served| served != user);
    }

    /// Open or over.
    pub fn get(&self, id: Uuid) -> Option<&Task> {
        self.open.get(&id).or_else(|| self.ended.iter().rev().find(|task| task.id == id))
    }

    /// Checks that there is room for another task.
    pub fn check_room(&self, task: &v1::Task) -> Result<(), String> {
        let hooks = self.open.values().filter(|task| matches!(task.what, TaskActivation::Hook { .. })).count();
        let bytes: usize = self.open.values().map(Task::bytes).sum();
        let its = task.action.len() + task.title.len() + task.condition.len() + task.text.len();
        let of_user = self.open.values().filter(|known| known.user == task.user).count();
        let is_full = self.open.len() >= MOST_OPEN - if of_user < FEW { 0 } else { KEPT_FOR_FEW };
        let most_bytes = MOST_BYTES - if of_user < FEW { 0 } else { BYTES_KEPT_FOR_FEW };
        let most = match () {
            () if is_full && of_user >= FEW => {
                format!("{} open tasks, and the last of them are for who has few", MOST_OPEN - KEPT_FOR_FEW)
            }
            () if is_full => format!("{MOST_OPEN} open tasks"),
            () if task.kind_word() == TaskKind::Hook && hooks >= MOST_HOOKS => format!("{MOST_HOOKS} hooks"),
            () if bytes + its > most_bytes => format!("{} KB of tasks", MOST_BYTES / 1024),
            () => return Ok(()),
        };
        Err(format!("an agent may have at most {most}; cancel some with task.cancel first"))
    }
}

impl Task {
    /// Returns true if the task fires for an event of this user, or for one from outside. A hook sees only its user's
    /// events unless an administrator shared it.
    pub fn concerns_user(&self, user: Option<&str>) -> bool {
        self.shared || user.is_none_or(|user| self.user == user)
    }

    /// Returns true for a task of the agent itself, such as the end of its day, which nobody may change.
    pub fn is_of_system(&self) -> bool {
        self.source == TaskSource::System.as_str() && matches!(self.what, TaskActivation::Time { .. })
    }

    /// Keeps no more of it than that there was one.
    fn clear_texts(&mut self) {
        self.action = Value::Null;
        self.worked.forget_history();
        if let TaskActivation::Queue { text, result, .. } = &mut self.what {
            (*text, *result) = (String::new(), String::new());
        }
    }

    fn from_scheduled(at: Timestamp, task: &v1::Task) -> Option<Self> {
        let mut outside = Provenance::default();
        outside.add_marks(&task.outside);
        let what = match task.kind_word() {
            TaskKind::Hook => TaskActivation::Hook { trigger: task.trigger.clone(), condition: task.condition.clone() },
            TaskKind::Queued => TaskActivation::queue_from_proto(task),
            TaskKind::Scheduled | TaskKind::Unknown(_) => {
                let next: Timestamp = task.next_at.parse().ok()?;
                let schedule = Schedule::from_task(task).unwrap_or(Schedule::Once(next));
                TaskActivation::Time { schedule, next: Some((next, task.occurrence)) }
            }
        };
        Some(Self {
            id: Uuid::parse_str(&task.task_id).ok()?,
            title: task.title.clone(),
            status: if matches!(what, TaskActivation::Hook { .. }) { TaskPhase::Active } else { TaskPhase::Pending },
            what,
            action: serde_json::from_str(&task.action).unwrap_or(Value::Null),
            thread_id: task.thread_id.clone(),
            user: task.user.clone(),
            source: task.source.clone(),
            created: at,
            shared: false,
            outside,
            worked: TaskProgress::default(),
        })
    }

    /// When it is due next, and which time that is.
    pub fn next_due(&self) -> Option<(Timestamp, u64)> {
        match &self.what {
            TaskActivation::Time { next, .. } => *next,
            TaskActivation::Queue { again, .. } => *again,
            TaskActivation::Hook { .. } => None,
        }
    }

    /// Text it takes, in bytes.
    fn bytes(&self) -> usize {
        let what = match &self.what {
            TaskActivation::Hook { trigger, condition } => trigger.len() + condition.len(),
            TaskActivation::Queue { text, result, .. } => text.len() + result.len(),
            TaskActivation::Time { .. } => 0,
        };
        self.title.len() + what + self.action.to_string().len()
    }
}

impl TaskPhase {
    pub fn word(self) -> TaskStatus {
        match self {
            Self::Pending => TaskStatus::Pending,
            Self::Active => TaskStatus::Active,
            Self::Paused => TaskStatus::Paused,
            Self::Completed => TaskStatus::Completed,
            Self::Canceled => TaskStatus::Canceled,
            Self::Archived => TaskStatus::Archived,
            Self::Failed => TaskStatus::Failed,
            Self::InProgress => TaskStatus::InProgress,
        }
    }

    /// None for one that this build does not know.
    pub fn from_word(word: TaskStatus) -> Option<Self> {
        match word {
            TaskStatus::Pending => Some(Self::Pending),
            TaskStatus::Active => Some(Self::Active),
            TaskStatus::Paused => Some(Self::Paused),
            TaskStatus::Completed => Some(Self::Completed),
            TaskStatus::Canceled => Some(Self::Canceled),
            TaskStatus::Archived => Some(Self::Archived),
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::InProgress => Some(Self::InProgress),
            TaskStatus::Unknown(_) => None,
        }
    }

    /// Returns true if the task is over and will not run again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Archived | Self::Failed)
    }
}
