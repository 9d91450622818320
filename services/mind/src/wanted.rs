//! Tells whether an input wants a decision. Conditions of hooks are judged here and when deciding, never when records
//! are applied: the state does not depend on how they are evaluated.

use super::{
    conditions::{self, Verdict},
    state::AgentState,
    tasks::{Task, Trigger, What},
};

impl AgentState {
    /// Returns true if something is to be decided at this input.
    pub fn wants(&self, input: u64) -> bool {
        self.forgetting == Some(input)
            || self.due(input).is_some()
            || self.work.begins() == Some(input)
            || self.triggered(input).next().is_some()
            || self.late_at(input).next().is_some()
    }

    /// Returns the triggers at this input that concern the users of their tasks, unless it is clear that a condition
    /// does not hold.
    pub(super) fn triggered(&self, input: u64) -> impl Iterator<Item = (&Task, &Trigger)> {
        let at_input = self.tasks.triggered.iter().filter(move |trigger| trigger.input == input);
        let of_tasks = at_input.filter_map(|trigger| Some((self.tasks.open.get(&trigger.task)?, trigger)));
        of_tasks.filter(|(task, trigger)| match &task.what {
            What::Hook { condition, .. } => {
                task.concerns(trigger.user.as_deref())
                    && conditions::judge(condition, &trigger.data) != Verdict::DoesNot
            }
            What::Time { .. } | What::Queue { .. } => true,
        })
    }
}
