//! Ownership of an agent's decisions. A turn belongs to its user, and so do the thoughts and actions in it; an event
//! that names somebody else's thread, task or memory belongs to that user.

use std::collections::BTreeSet;

use kairo_events::{personal::Whose, record::Record};
use kairo_proto::v1::{AgentAction, AgentDecision, DecidedEvent, agent_action::Action, decided_event::Event};
use uuid::Uuid;

use super::state::AgentState;

impl AgentState {
    /// Returns the owner of each event and each completion of a decision on this input, in the state in which it is
    /// decided. A question asked for several of them is the agent's own.
    pub fn whose(&self, agent: &str, input: &Record, decision: &AgentDecision) -> Whose {
        let turn = self.due(decision.decided_on()).map(|(_, turn)| turn.user.clone());
        let said = || match Whose::of(&input.body) {
            Whose::Of(user) => Some(user),
            Whose::Nobodys | Whose::Each(_) => None,
        };
        let of_turn = turn.or_else(said).filter(|user| !user.is_empty());
        let owner = |event: &DecidedEvent| match self.named_in(event) {
            Some(user) => Some(user.to_owned()).filter(|user| !user.is_empty()),
            None => self.of_thread(decision, &event.thread_id).map(str::to_owned).or_else(|| of_turn.clone()),
        };
        let events: Vec<Option<String>> = decision.events.iter().map(owner).collect();
        let users: BTreeSet<&String> = events.iter().flatten().chain(&of_turn).collect();
        let asked_for = match users.len() {
            0 => None,
            1 => users.first().map(|user| (*user).clone()),
            _ => Some(Whose::of_agent(agent)),
        };
        let answers = decision.completions.iter().map(|_| asked_for.clone());
        Whose::Each(events.iter().cloned().chain(answers).collect())
    }

    /// Returns the user whom an event names as its owner, empty for nobody; none if it does not say.
    fn named_in<'e>(&'e self, event: &'e DecidedEvent) -> Option<&'e str> {
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
    fn of_thread<'s>(&'s self, decision: &'s AgentDecision, id: &str) -> Option<&'s str> {
        let created = decision.events.iter().find_map(|event| {
            let Some(Event::ThreadCreated(created)) = &event.event else { return None };
            (created.thread_id == id).then_some(created.user.as_str())
        });
        let known = || self.threads.get(id).map(|thread| thread.user.as_str());
        created.or_else(known).filter(|user| !user.is_empty())
    }
}
