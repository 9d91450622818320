//! Tells whether an input wants a decision. Conditions of hooks are judged here and when deciding, never when records
//! are applied: the state does not depend on how they are evaluated.

use super::{
    conditions::{self, ConditionVerdict},
    state::AgentState,
    tasks::{Task, TaskActivation, Trigger},
};

impl AgentState {
    /// Returns true if something is to be decided at this input.
    pub fn needs_decision(&self, input: u64) -> bool {
        self.forgetting == Some(input)
            || self.due_turn(input).is_some()
            || self.work.begins_after() == Some(input)
            || self.pending_triggers(input).next().is_some()
            || self.late_at(input).next().is_some()
    }

    /// Returns the triggers at this input that concern the users of their tasks, unless it is clear that a condition
    /// does not hold.
    pub(super) fn pending_triggers(&self, input: u64) -> impl Iterator<Item = (&Task, &Trigger)> {
        let at_input = self.tasks.triggered.iter().filter(move |trigger| trigger.input == input);
        let of_tasks = at_input.filter_map(|trigger| Some((self.tasks.open.get(&trigger.task)?, trigger)));
        of_tasks.filter(|(task, trigger)| match &task.what {
            TaskActivation::Hook { condition, .. } => {
                task.concerns_user(trigger.user.as_deref())
                    && conditions::judge(condition, &trigger.data) != ConditionVerdict::DoesNot
            }
            TaskActivation::Time { .. } | TaskActivation::Queue { .. } => true,
        })
    }
}
