//! Filters for listing tasks.

use jiff::Timestamp;
use kairo_proto::words::TaskKind;

use super::{Task, TaskActivation, TaskPhase, Tasks};

/// A filter for listing tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFilter {
    pub status: StatusFilter,
    /// Due from the one until just before the other.
    pub due: Option<(Timestamp, Timestamp)>,
    /// In the title or the action, whatever the case.
    pub text: Option<String>,
    /// "scheduled" or "hook".
    pub kind: Option<String>,
    pub source: Option<String>,
    pub trigger: Option<String>,
}

/// By status, as people mean it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusFilter {
    /// Not over.
    #[default]
    Open,
    /// Yet to come: what has a time, repeated or not.
    Pending,
    /// Hooks that wait, and repeated tasks.
    Active,
    /// Exactly this.
    Exactly(TaskPhase),
    All,
}

impl Tasks {
    /// Returns the matching tasks by due time, those without one last, then in order of creation.
    pub fn list(&self, filter: &TaskFilter) -> Vec<&Task> {
        let mut listed: Vec<&Task> =
            self.open.values().chain(&self.ended).filter(|task| filter.matches_task(task)).collect();
        listed.sort_by_key(|task| {
            let next = task.next_due().map(|(at, _)| at);
            (next.is_none(), next, task.created, task.id)
        });
        listed
    }
}

impl TaskFilter {
    fn matches_task(&self, task: &Task) -> bool {
        let waits = matches!(task.status, TaskPhase::Pending | TaskPhase::Active);
        let status = match self.status {
            StatusFilter::Open => !task.status.is_over(),
            StatusFilter::Pending => waits && (task.next_due().is_some() || task.kind() == TaskKind::Queued),
            StatusFilter::Active => waits && task.repeats(),
            StatusFilter::Exactly(status) => task.status == status,
            StatusFilter::All => true,
        };
        let due = |(from, until): &(Timestamp, Timestamp)| {
            task.next_due().is_some_and(|(at, _)| at >= *from && (at < *until || from == until && at == *from))
        };
        let text = |text: &String| {
            let text = text.to_lowercase();
            task.title.to_lowercase().contains(&text) || task.action.to_string().to_lowercase().contains(&text)
        };
        // The end of the day is nobody's task.
        let source = self.source.as_ref().map_or(!task.is_of_system(), |source| *source == task.source);
        let trigger =
            |wanted: &String| matches!(&task.what, TaskActivation::Hook { trigger, .. } if trigger.contains(wanted));
        status
            && source
            && self.due.as_ref().is_none_or(due)
            && self.text.as_ref().is_none_or(text)
            && self.kind.as_ref().is_none_or(|kind| kind == task.kind().as_str())
            && self.trigger.as_ref().is_none_or(trigger)
    }
}

impl Task {
    pub fn kind(&self) -> TaskKind {
        match self.what {
            TaskActivation::Time { .. } => TaskKind::Scheduled,
            TaskActivation::Hook { .. } => TaskKind::Hook,
            TaskActivation::Queue { .. } => TaskKind::Queued,
        }
    }

    /// Returns true if the task may run more than once.
    pub fn repeats(&self) -> bool {
        match &self.what {
            TaskActivation::Time { schedule, .. } => schedule.repeats(),
            TaskActivation::Hook { .. } => true,
            TaskActivation::Queue { .. } => false,
        }
    }
}
