//! The queue: tasks that are worked on one after the other, each when its turn comes. Users take turns: whoever was served
//! longest ago is next, and within what is a user's own its order counts.

use jiff::Timestamp;
use kairo_proto::{
    v1::{self, AgentDecision},
    words::{TaskKind, TaskStatus},
};
use uuid::Uuid;

use super::{Task, TaskActivation, TaskHistory, TaskPhase, TaskRequester, Tasks, progress::ALL_BYTES};
use crate::thread::cut_to;

/// Number of users whose last service is remembered; users served longer ago come before them all.
const SERVED: usize = 256;
/// Maximum size of a result kept for those who ask about a task, in bytes.
const RESULT_BYTES: usize = 2 * 1024;

impl TaskActivation {
    pub(super) fn queue_from_proto(task: &v1::Task) -> Self {
        let lineage = task.lineage.iter().filter_map(|id| Uuid::parse_str(id).ok()).collect();
        let text = task.text.clone();
        let correlation = Uuid::nil();
        let result = String::new();
        let asked = (!task.asked_by.is_empty()).then(|| TaskRequester {
            agent: task.asked_by.clone(),
            request_id: task.request_id.clone(),
            path: task.path.clone(),
            model_calls: task.model_calls,
        });
        let again = task.next_at.parse().ok().map(|at| (at, task.occurrence));
        let place = 0;
        let failed = 0;
        let times = task.occurrence;
        let is_next_run = task.is_next_run;
        Self::Queue { text, place, correlation, lineage, failed, again, result, asked, times, is_next_run }
    }
}

impl Task {
    /// Returns the work to do for a queued task; empty for other tasks.
    pub fn text(&self) -> &str {
        match &self.what {
            TaskActivation::Queue { text, .. } => text,
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => "",
        }
    }

    /// Returns the place in the queue, the lower the sooner; none for a task that is not queued.
    fn queue_position(&self) -> Option<i64> {
        match &self.what {
            TaskActivation::Queue { place, .. } => Some(*place),
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => None,
        }
    }

    /// On whose behalf whatever works on it does so: those on whose behalf it was queued, and itself.
    pub fn lineage(&self) -> Vec<Uuid> {
        match &self.what {
            TaskActivation::Queue { lineage, .. } => lineage.iter().copied().chain([self.id]).collect(),
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => Vec::new(),
        }
    }

    /// Returns the agent that asked for the task, if another one did.
    pub fn requester(&self) -> Option<&TaskRequester> {
        match &self.what {
            TaskActivation::Queue { asked, .. } => asked.as_ref(),
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => None,
        }
    }

    /// The number of the last time that was set for a queued one.
    pub fn last_occurrence(&self) -> u64 {
        match &self.what {
            TaskActivation::Queue { times, .. } => *times,
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => 0,
        }
    }

    /// Returns true if the task asks what to do for the mission.
    pub fn is_next_run(&self) -> bool {
        matches!(self.what, TaskActivation::Queue { is_next_run: true, .. })
    }

    /// Returns the number of sessions in which a queued task failed.
    pub fn failed_sessions(&self) -> u32 {
        match &self.what {
            TaskActivation::Queue { failed, .. } => *failed,
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => 0,
        }
    }

    /// The chain of events that a queued task was asked for in.
    pub fn correlation(&self) -> Uuid {
        match &self.what {
            TaskActivation::Queue { correlation, .. } => *correlation,
            TaskActivation::Time { .. } | TaskActivation::Hook { .. } => Uuid::nil(),
        }
    }
}

impl Tasks {
    /// Returns true if a change puts a task in progress back into the queue.
    pub(crate) fn is_put_back(&self, changed: &v1::TaskChanged) -> bool {
        let task = Uuid::parse_str(&changed.task_id).ok().and_then(|id| self.open.get(&id));
        !changed.next_at.is_empty() && task.is_some_and(|task| task.status == TaskPhase::InProgress)
    }

    /// Counts a session in which a queued task failed.
    pub(crate) fn count_failure(&mut self, task: &str) {
        let task = Uuid::parse_str(task).ok().and_then(|id| self.open.get_mut(&id));
        if let Some(TaskActivation::Queue { failed, .. }) = task.map(|task| &mut task.what) {
            *failed = failed.saturating_add(1);
        }
    }

    /// Puts a task that was just taken in to the end of the queue, if it is for there.
    pub(crate) fn append_to_queue(&mut self, task: &v1::Task, chain: Uuid) {
        if task.kind_word() != TaskKind::Queued {
            return;
        }
        let last = self.open.values().filter_map(Task::queue_position).max().unwrap_or_default();
        let task = Uuid::parse_str(&task.task_id).ok().and_then(|id| self.open.get_mut(&id));
        if let Some(TaskActivation::Queue { place, correlation, .. }) = task.map(|task| &mut task.what) {
            (*place, *correlation) = (last + 1, chain);
        }
    }

    /// Makes it the next one of its user to be worked on: what its user has queued before it takes a place later each.
    pub(super) fn put_first(&mut self, id: Uuid) {
        let Some(of) = self.open.get(&id).filter(|task| task.queue_position().is_some()) else { return };
        let user = of.user.clone();
        let its = of.queue_position();
        let mut before: Vec<(i64, Uuid)> = self
            .open
            .values()
            .filter(|task| task.user == user && task.queue_position() <= its)
            .filter_map(|task| Some((task.queue_position()?, task.id)))
            .collect();
        before.sort_unstable();
        let places: Vec<i64> = before.iter().map(|(place, _)| *place).collect();
        let moved = [id].into_iter().chain(before.into_iter().map(|(_, other)| other).filter(|other| *other != id));
        for (other, to) in moved.zip(places) {
            if let Some(TaskActivation::Queue { place, .. }) = self.open.get_mut(&other).map(|task| &mut task.what) {
                *place = to;
            }
        }
    }

    /// Returns the tasks that are queued or in progress, in order.
    pub fn queue(&self) -> Vec<&Task> {
        let mut queue: Vec<&Task> = self.open.values().filter(|task| task.queue_position().is_some()).collect();
        queue.sort_by_key(|task| (task.queue_position(), task.id));
        queue
    }

    /// The next one to be worked on.
    pub fn next_queued(&self) -> Option<&Task> {
        let is_next = |task: &&Task| {
            task.queue_position().is_some() && task.status == TaskPhase::Pending && task.next_due().is_none()
        };
        let waiting = self.open.values().filter(is_next);
        let served = |user: &str| self.served.iter().position(|served| served == user);
        waiting.min_by_key(|task| (served(&task.user), task.queue_position(), task.id))
    }

    /// The one that will ask what to do for the mission, while it waits for its time.
    pub fn next_run(&self) -> Option<&Task> {
        self.open.values().find(|task| task.is_next_run() && task.status != TaskPhase::InProgress)
    }

    /// The open one that an agent asked for by this action.
    pub fn find_requested(&self, agent: &str, request_id: &str) -> Option<&Task> {
        let is_it = |asked: &TaskRequester| asked.agent == agent && asked.request_id == request_id;
        self.open.values().find(|task| task.requester().is_some_and(is_it))
    }

    /// Takes in `task.started`; the task.
    pub(crate) fn apply_started(&mut self, id: Uuid, now: Timestamp) -> Option<&Task> {
        let task = self.open.get_mut(&id).filter(|task| task.queue_position().is_some())?;
        task.status = TaskPhase::InProgress;
        task.worked.begin(now);
        let user = task.user.clone();
        self.served.retain(|served| *served != user);
        self.served.push_back(user);
        if self.served.len() > SERVED {
            self.served.pop_front();
        }
        self.open.get(&id)
    }

    /// Room for what was done for another task that is put back, in bytes.
    pub(crate) fn history_room(&self) -> usize {
        ALL_BYTES.saturating_sub(self.open.values().map(|task| task.worked.history_bytes()).sum())
    }

    /// Keeps what was done for a task that is put back.
    pub(crate) fn keep_history(&mut self, id: Uuid, now: Timestamp, done: TaskHistory) {
        if let Some(task) = self.open.get_mut(&id) {
            task.worked.pause(now, done);
        }
    }

    /// Takes the history of a task that resumes; from here on its thread shows it.
    pub(crate) fn take_history(&mut self, id: Uuid) -> Option<TaskHistory> {
        self.open.get_mut(&id)?.worked.before.take()
    }

    /// Counts what a decision on a task took.
    pub(crate) fn spend_on(&mut self, id: Uuid, decision: &AgentDecision) {
        if let Some(task) = self.open.get_mut(&id) {
            task.worked.spend_on(decision);
        }
    }

    /// Returns true if a task that was put back made this call and has no result of it yet.
    pub(crate) fn is_waiting_for_call(&self, action: Uuid) -> bool {
        self.open.values().any(|task| task.worked.has_open_call(action))
    }

    /// Takes in how a call ended that a task made before it was put back.
    pub(crate) fn end_call(&mut self, action: Uuid, result: &str) {
        self.open.values_mut().any(|task| task.worked.end_call(action, result));
    }

    /// Clears the order of service once the queue is empty.
    fn forget_served(&mut self) {
        if !self.served.is_empty() && !self.open.values().any(|task| task.queue_position().is_some()) {
            self.served.clear();
        }
    }

    /// Takes in `task.ended`.
    pub(crate) fn apply_ended(&mut self, ended: &v1::TaskEnded) {
        let Some(task) = Uuid::parse_str(&ended.task_id).ok().and_then(|id| self.open.get_mut(&id)) else { return };
        let TaskActivation::Queue { result, .. } = &mut task.what else { return };
        let told = if ended.result.is_empty() { &ended.reason } else { &ended.result };
        *result = cut_to(told, RESULT_BYTES);
        task.status = match ended.status_word() {
            TaskStatus::Completed => TaskPhase::Completed,
            TaskStatus::Canceled => TaskPhase::Canceled,
            _ => TaskPhase::Failed,
        };
        task.worked.forget_history();
        let id = task.id;
        self.move_if_over(id);
        self.forget_served();
    }
}
