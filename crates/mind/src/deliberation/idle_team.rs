//! A team that begins nothing says so at once to who speaks to it, and who can change that; nothing is queued for later.

use kairo_proto::{
    v1::{ThreadCreated, decided_event::Event},
    words::{TaskStatus, ThreadKind},
};
use uuid::Uuid;

use super::Deliberation;
use crate::{
    intrinsics::team,
    state::{DirectOrder, Profile},
    team::TeamActivity,
};

/// As `AgentFailed.kind` and `Say.failure`: the team begins nothing until its owner resumes it, not any more, or not on this day.
pub const TEAM_PAUSED: &str = "team_paused";
pub const TEAM_ARCHIVED: &str = "team_archived";
pub const TEAM_OVER_BUDGET: &str = "team_over_budget";
/// As `AgentFailed.kind`: the team is as it was ordered to be.
const TEAM_UNCHANGED: &str = "team_unchanged";

/// The reason why a team begins nothing: its kind, and the words for people.
pub(super) struct TeamIdleReason {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

impl Deliberation<'_> {
    /// A message is thought about, unless too much is under way or the team begins nothing.
    pub(super) fn begin_message(&mut self, turn_id: Uuid) {
        if let Some(reason) = self.busy_reason() {
            return self.decline_message(turn_id, &reason);
        }
        let Some(TeamIdleReason { kind, text }) = self.team_idle_reason() else { return self.work.push_back(turn_id) };
        self.record_failure(turn_id, kind, &text, 1, false);
        self.join_earlier_messages(turn_id);
        self.say_failure(turn_id, &text, kind);
    }

    /// Queues the task of a program, unless the team begins nothing. The user is told of its end in a conversation, which
    /// begins here if there is none.
    pub(super) fn queue_ordered_task(&mut self, turn_id: Uuid, order: &DirectOrder) {
        if let Some(TeamIdleReason { kind, text }) = self.team_idle_reason() {
            return self.record_failure(turn_id, kind, &text, 1, false);
        }
        let user = self.turn(turn_id).map(|turn| turn.user.clone()).unwrap_or_default();
        let thread_id = self.conversation_with(&user);
        if self.mind.works_in_background() && !self.mind.threads.contains_key(&thread_id) {
            let kind = ThreadKind::Topic.text();
            let created = ThreadCreated { thread_id: thread_id.clone(), kind, user, title: String::new() };
            let correlation = self.input.envelope.correlation_id;
            self.add_event_to(turn_id, &thread_id, correlation, Event::ThreadCreated(created));
            self.apply_decided();
        }
        self.carry_out_intrinsic_order(turn_id, order);
    }

    /// Returns the reason why the team that the agent leads or works in begins nothing; none where it does, or will
    /// with this decision.
    pub(super) fn team_idle_reason(&self) -> Option<TeamIdleReason> {
        let profile = self.mind.profile.as_ref().filter(|_| self.limits.memory_rules > 0)?;
        let name = if profile.lead.is_empty() { self.agent_name() } else { &profile.lead };
        let owner =
            if profile.owner.is_empty() { "its owner".to_owned() } else { format!("its owner {}", profile.owner) };
        let (kind, text) = match self.mind.team.status {
            TeamActivity::Active => return None,
            TeamActivity::Archived => {
                let text =
                    format!("The team {name} was archived and begins nothing any more. A new one: kairo teams create");
                (TEAM_ARCHIVED, text)
            }
            TeamActivity::Paused if self.mind.team.over_budget => (TEAM_OVER_BUDGET, self.over_budget_text(profile)?),
            TeamActivity::Paused => {
                let how = format!("{owner} resumes it: kairo teams resume {name} (POST /v1/commands)");
                (
                    TEAM_PAUSED,
                    format!("The team {name} is paused and begins nothing until {how}. Please ask again then."),
                )
            }
        };
        Some(TeamIdleReason { kind, text })
    }

    /// Explains that a team has spent its budget; none on a new day, on which it goes on.
    fn over_budget_text(&self, profile: &Profile) -> Option<String> {
        let now = self.input.envelope.time;
        let spent = profile.team.as_ref()?.reached_limit(self.mind.team.spent_on(profile.day_of(now)))?;
        let name = self.agent_name();
        let owner = &profile.owner;
        let tomorrow = profile.next_day(now);
        Some(format!(
            "The team {name} begins nothing until {tomorrow}: {spent}. Its owner {owner} can raise that before: kairo teams resume \
             {name} --budget TOKENS (POST /v1/commands). Please ask again then."
        ))
    }

    /// The kind of a failure of an order to a team: why it is refused.
    pub(super) fn refusal_of_order(&self, tool: &str) -> Option<&'static str> {
        let profile = self.mind.profile.as_ref().filter(|_| self.limits.memory_rules > 0 && team::is_order(tool))?;
        let is_owners = self.mind.due_turn(self.input.sequence).is_some_and(|(_, turn)| turn.user == profile.owner);
        if !profile.is_lead() || !is_owners {
            return None;
        }
        Some(match self.mind.team.status {
            TeamActivity::Archived => TEAM_ARCHIVED,
            TeamActivity::Paused if tool == team::RESUME => TEAM_OVER_BUDGET,
            TeamActivity::Paused | TeamActivity::Active => TEAM_UNCHANGED,
        })
    }

    /// Another agent is told that a team begins nothing.
    pub(super) fn refuse_request_if_idle(&mut self, turn_id: Uuid) -> bool {
        let Some(TeamIdleReason { text, .. }) = self.team_idle_reason() else { return false };
        self.answer_in_words(turn_id, &text, &TaskStatus::Failed);
        true
    }
}
