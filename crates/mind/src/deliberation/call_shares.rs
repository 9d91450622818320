//! Calls of models for everything that one message sets off: how many are left, and what other agents are given of them.

use kairo_proto::words::RequestKind;
use uuid::Uuid;

use super::{Deliberation, deadlines::is_request};
use crate::{
    caps::ReachedCap,
    state::{AgentTurn, Profile},
};

/// As `AgentFailed.kind`: everything that a message set off has made as many calls of models as it may.
pub(super) const CALLS_REACHED: &str = "too_many_model_calls";
/// Of a call that a member passes on to its tool, so many calls of models at most: only hooks and steps that lack something make any.
const OF_CALL: u64 = 8;

impl Deliberation<'_> {
    /// Returns the bound that forbids further model calls in this turn; none while calls are left.
    pub(super) fn reached_call_cap(&self, turn_id: Uuid) -> Option<ReachedCap> {
        let turn = self.turn(turn_id)?;
        if self.calls_left(turn)? > 0 {
            return None;
        }
        let most = self.mind.profile.as_ref().map_or(0, Profile::message_model_calls);
        let asker = turn.agent_request().map(|requested| requested.from.clone());
        let asker = asker.or_else(|| Some(self.queued_task_of(turn_id)?.requester()?.agent.clone()));
        let text = match asker {
            Some(asker) => format!("the calls of models that {asker} gave for this are made"),
            None => format!(
                "everything that this message set off may take {most} calls of models, and these are made; ask for a smaller \
                 piece, or an administrator raises message_model_calls of the agent {} (POST /v1/agents, kairo agents define)",
                self.agent_name()
            ),
        };
        Some(ReachedCap { kind: CALLS_REACHED, text, until: None })
    }

    /// Calls that may still be made for the sake of a turn's message; none where nobody counts them.
    fn calls_left(&self, turn: &AgentTurn) -> Option<u64> {
        let profile = self.mind.profile.as_ref().filter(|_| self.limits.memory_rules > 0)?;
        let here = self.decision.completions.len() + self.asked.len();
        let left = self.mind.call_bounds.remaining(turn.correlation, profile.message_model_calls());
        Some(left.saturating_sub(u64::try_from(here).unwrap_or(u64::MAX)))
    }

    /// The calls that another agent is given for what it is asked, by the step of a chain or by itself; 0 where nobody counts them. All
    /// that are asked at once get as many as whoever asks keeps.
    pub(super) fn share_of_calls(&self, turn_id: Uuid, step: Option<usize>, kind: &RequestKind) -> u32 {
        let Some(turn) = self.turn(turn_id) else { return 0 };
        let Some(left) = self.calls_left(turn) else { return 0 };
        let chain = turn.chain.as_ref();
        let group = chain.zip(step).and_then(|(chain, step)| Some((chain, step, chain.steps.get(step)?.step.group)));
        let asked_at_once = group.map_or(1, |(chain, step, group)| {
            let at_once = chain.steps.iter().skip(step).filter(|run| run.step.group == group);
            at_once.filter(|run| is_request(&run.step.event)).count().max(1)
        });
        let share = left / (u64::try_from(asked_at_once).unwrap_or(u64::MAX).saturating_add(1));
        let share = if *kind == RequestKind::Call { share.min(OF_CALL) } else { share };
        u32::try_from(share.max(left.min(1))).unwrap_or(u32::MAX)
    }

    /// Of the calls that were given for what ends now with this turn, those that go back: none while something else is done for the same
    /// message.
    pub(super) fn calls_to_return(&self, turn_id: Uuid, correlation: Uuid, given: u32, but_task: Option<Uuid>) -> u32 {
        let is_open = self.mind.has_other_open_work(correlation, turn_id, but_task);
        let Some(profile) = self.mind.profile.as_ref().filter(|_| given > 0 && !is_open) else { return 0 };
        let here = u64::try_from(self.decision.completions.len()).unwrap_or(u64::MAX);
        let left = self.mind.call_bounds.remaining(correlation, profile.message_model_calls()).saturating_sub(here);
        u32::try_from(left).unwrap_or(u32::MAX).min(given)
    }
}
