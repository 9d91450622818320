//! Forgetting a user: what the agent has of them goes, whatever it was made into.
//!
//! Applying the log again after that reads nothing of what they said, either: it was sealed with a key that is gone. So
//! the state is the same as that of an agent which never knew more than who spoke when.

use std::collections::BTreeSet;

use kairo_events::record::Record;
use kairo_proto::v1::AgentForgotten;

use super::{background_lane::NextWork, state::AgentState};

impl AgentState {
    /// Takes in `agent.forgotten`. It wants a decision, with which work goes on that waited for the user's.
    pub(super) fn apply_forgotten(&mut self, record: &Record, forgotten: &AgentForgotten) {
        self.forget_user(&forgotten.user);
        self.forgetting = Some(record.sequence);
    }

    fn forget_user(&mut self, user: &str) {
        let theirs: BTreeSet<String> =
            self.threads.iter().filter(|(_, thread)| thread.user == user).map(|(id, _)| id.clone()).collect();
        self.threads.retain(|_, thread| thread.user != user);
        self.turns.retain(|_, turn| turn.user != user);
        // Whatever comes of these is nobody's any more.
        self.in_flight.retain(|_, flight| !theirs.contains(&flight.thread_id));
        self.processes.forget_user(user, &theirs);
        self.doubts.forget_threads(&theirs);
        self.tasks.forget_user(user);
        self.memories.forget_user(user);
        self.inner.forget_user(user);
        self.submodules.shown.retain(|shown| !theirs.contains(&shown.thread_id));
        self.submodules.left.retain(|left| !theirs.contains(&left.thread_id));
        self.forget_user_work(user, &theirs);
    }

    fn forget_user_work(&mut self, user: &str, theirs: &BTreeSet<String>) {
        let tasks = &self.tasks;
        let is_gone = |next: &NextWork| match next {
            NextWork::Task(task) => tasks.get(*task).is_none(),
            NextWork::Lessons(thread_id) | NextWork::Summary(thread_id) | NextWork::Broadcast { thread_id, .. } => {
                theirs.contains(thread_id)
            }
            // What is asked is of several users' memories: it is asked anew of those that are left.
            NextWork::Keywords(_) => true,
        };
        self.work.keywords.forget_user(user);
        self.work.next.take_if(|(next, _)| is_gone(next));
        self.work.rests.take_if(|task| tasks.get(*task).is_none());
        self.work.threads.remove(user);
        self.work.summaries.retain(|due| !theirs.contains(&due.thread_id));
    }
}
