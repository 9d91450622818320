//! Ownership of an agent's decisions. A turn belongs to its user, and so do the thoughts and actions in it; an event
//! that names somebody else's thread, task or memory belongs to that user.

use std::collections::BTreeSet;

use kairo_events::{personal::ContentOwners, record::Record};
use kairo_proto::v1::{AgentAction, AgentDecision, DecidedEvent, agent_action::Action, decided_event::Event};
use uuid::Uuid;

use super::state::AgentState;

impl AgentState {
    /// Returns the owner of each event and each completion of a decision on this input, in the state in which it is
    /// decided. A question asked for several of them is the agent's own.
    pub fn data_subjects_of(&self, agent: &str, input: &Record, decision: &AgentDecision) -> ContentOwners {
        let turn = self.due_turn(decision.decided_on()).map(|(_, turn)| turn.user.clone());
        let said = || match ContentOwners::from_body(&input.body) {
            ContentOwners::One(user) => Some(user),
            ContentOwners::Nobody | ContentOwners::PerPart(_) => None,
        };
        let of_turn = turn.or_else(said).filter(|user| !user.is_empty());
        let owner = |event: &DecidedEvent| match self.user_named_in(event) {
            Some(user) => Some(user.to_owned()).filter(|user| !user.is_empty()),
            None => self.thread_owner(decision, &event.thread_id).map(str::to_owned).or_else(|| of_turn.clone()),
        };
        let events: Vec<Option<String>> = decision.events.iter().map(owner).collect();
        let users: BTreeSet<&String> = events.iter().flatten().chain(&of_turn).collect();
        let asked_for = match users.len() {
            0 => None,
            1 => users.first().map(|user| (*user).clone()),
            _ => Some(ContentOwners::agent_owner(agent)),
        };
        let answers = decision.completions.iter().map(|_| asked_for.clone());
        ContentOwners::PerPart(events.iter().cloned().chain(answers).collect())
    }

    /// Returns the user whom an event names as its owner, empty for nobody; none if it does not say.
    fn user_named_in<'e>(&'e self, event: &'e DecidedEvent) -> Option<&'e str> {
        let of_task = |id: &str| {
            let task = Uuid::parse_str(id).ok().and_then(|id| self.tasks.open.get(&id))?;
            Some(task.user.as_str())
        };
        let said = |user: &'e String| Some(user.as_str()).filter(|user| !user.is_empty());
        match event.event.as_ref()? {
            Event::Action(AgentAction { action: Some(Action::Say(it)) }) => said(&it.user),
            Event::Action(AgentAction { action: Some(Action::ToolCall(it)) }) => it.user.as_deref(),
            Event::Action(AgentAction { action: Some(Action::Ask(it)) }) => said(&it.user),
            Event::ThreadCreated(it) => said(&it.user),
            Event::ThreadSuggested(it) => said(&it.user),
            Event::ApprovalRequested(it) => said(&it.user),
            Event::Briefed(it) => said(&it.user),
            Event::MemoryAppended(it) => Some(it.user.as_str()),
            Event::StateWritten(it) => Some(it.user.as_str()),
            Event::StateDeleted(it) => Some(it.user.as_str()),
            Event::TaskScheduled(it) => it.task.as_ref().map(|task| task.user.as_str()),
            Event::TaskStarted(it) => of_task(&it.task_id),
            Event::TaskChanged(it) => of_task(&it.task_id),
            Event::TaskFired(it) => of_task(&it.task_id),
            Event::TaskEnded(it) => of_task(&it.task_id),
            Event::Action(AgentAction { action: None }) => None,
            Event::Thought(_)
            | Event::Failed(_)
            | Event::Joined(_)
            | Event::ThreadMatched(_)
            | Event::ThreadSummarized(_)
            | Event::ThreadArchived(_)
            | Event::ThreadCompacted(_)
            | Event::ThreadCompleted(_)
            | Event::ChainStarted(_)
            | Event::ChainStepEnded(_)
            | Event::ChainEnded(_)
            | Event::TeamChanged(_)
            | Event::Goal(_)
            | Event::Reflected(_)
            | Event::Answered(_)
            | Event::SubmoduleChanged(_)
            | Event::SubmoduleFailed(_)
            | Event::SubmoduleAsked(_)
            | Event::Broadcast(_) => None,
        }
    }

    /// Returns the owner of a thread, if it is known here or created in this very decision.
    fn thread_owner<'s>(&'s self, decision: &'s AgentDecision, id: &str) -> Option<&'s str> {
        let created = decision.events.iter().find_map(|event| {
            let Some(Event::ThreadCreated(created)) = &event.event else { return None };
            (created.thread_id == id).then_some(created.user.as_str())
        });
        let known = || self.threads.get(id).map(|thread| thread.user.as_str());
        created.or_else(known).filter(|user| !user.is_empty())
    }
}
