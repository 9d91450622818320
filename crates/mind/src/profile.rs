//! An agent's profile, as its newest definition sets it.

use kairo_proto::{v1::AgentProfile, words};
use serde::{Deserialize, Serialize};

use super::{
    caps::Caps,
    composition::{CompositeMember, covers, is_listed},
    environment::Perception,
    intrinsics,
    state::{HISTORY, is_none},
    submodules::{MOST_EVER, Submodule},
    team::Team,
    thread::Cutoff,
    work_session::WorkBounds,
};

/// Seconds until a queued task that failed is tried again, when the profile does not say.
const SESSION_PAUSE: u32 = 60;
/// Seconds until an agent with a mission asks itself what to do for it, when the profile does not say.
const NEXT_RUN_AFTER: u32 = 3_600;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Position of the definition in the log.
    pub sequence: u64,
    pub prompt: String,
    pub tools: Vec<String>,
    pub max_steps: u32,
    pub history_limit: usize,
    pub interjection: Interjection,
    /// True if the agent plans and has chains compiled, instead of calling tools itself.
    pub plans: bool,
    /// True if messages are matched to threads, one for each subject.
    pub topics: bool,
    /// IANA name; UTC where it says none.
    pub time_zone: String,
    /// HH:MM; empty for never.
    pub day_ends_at: String,
    /// True if the agent acts on content from outside without asking.
    #[serde(default)]
    pub trusts_outside: bool,
    /// True if the agent acknowledges requests that take work, and works on them beside the conversation.
    #[serde(default)]
    pub background: bool,
    /// Seconds until a queued task that failed is tried again.
    #[serde(default)]
    pub session_pause: u32,
    /// The agent's own mission; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mission: String,
    /// Seconds from the end of its work until it asks itself what to do for its mission.
    #[serde(default)]
    pub next_run_after: u32,
    /// The user who owns the mission.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The team that it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// The agent that leads this one; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lead: String,
    /// Bounds of one work session.
    #[serde(default, skip_serializing_if = "WorkBounds::is_nothing")]
    pub session: WorkBounds,
    /// Bounds of one queued task, over all its sessions.
    #[serde(default, skip_serializing_if = "WorkBounds::is_nothing")]
    pub task: WorkBounds,
    /// True if the agent guesses the goal of a message first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guesses_goal: bool,
    /// Maximum number of reviews of its drafts in a turn.
    #[serde(default, skip_serializing_if = "is_none")]
    pub max_reflections: u32,
    /// True if the agent keeps an inner state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inner_state: bool,
    /// The agents that it is composed of, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<CompositeMember>,
    /// Perceptions to take when a message comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<Perception>,
    /// Voices that think along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Submodule>,
    #[serde(default, skip_serializing_if = "is_none")]
    pub max_submodules: u32,
    /// The part of a thread that is shown to a model.
    #[serde(default, skip_serializing_if = "Cutoff::is_nothing")]
    pub cutoff: Cutoff,
    /// Number of answers after which a conversation is summed up; 0 for never by itself.
    #[serde(default, skip_serializing_if = "is_none")]
    pub summary_after: u32,
    /// Spending caps for models.
    #[serde(default, skip_serializing_if = "Caps::is_nothing")]
    pub caps: Caps,
    /// Seconds until a request is late; 0 for the default.
    #[serde(default, skip_serializing_if = "is_none")]
    pub request_deadline: u32,
    /// Calls of models that everything may take that one message sets off; 0 for the default.
    #[serde(default, skip_serializing_if = "is_none")]
    pub message_model_calls: u32,
    /// Seconds until a call that waits for consent counts as rejected; 0 for never.
    #[serde(default, skip_serializing_if = "is_none")]
    pub consent_timeout: u32,
}

/// The handling of a message that comes while the agent is deciding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interjection {
    /// It is decided on when its turn comes.
    #[default]
    Order,
    /// All that came are decided on together, next.
    Join,
    /// The decision under way is begun again, with what came.
    Restart,
}

impl Profile {
    pub(super) fn new(sequence: u64, profile: &AgentProfile) -> Self {
        let history = usize::try_from(profile.history_limit).unwrap_or(HISTORY);
        Self {
            sequence,
            prompt: profile.prompt.clone(),
            tools: profile.tools.clone(),
            max_steps: profile.max_steps,
            history_limit: if history == 0 { HISTORY } else { history },
            interjection: match profile.interjection_word() {
                words::Interjection::Join => Interjection::Join,
                words::Interjection::Restart => Interjection::Restart,
                words::Interjection::Order | words::Interjection::Unknown(_) => Interjection::Order,
            },
            plans: profile.planning_word() == words::Planning::Chain,
            topics: profile.threads_word() == words::Threads::Topics,
            trusts_outside: profile.outside_content_word() == words::OutsideContent::Trusted,
            session_pause: if profile.session_pause == 0 { SESSION_PAUSE } else { profile.session_pause },
            background: profile.conduct_word() == words::Conduct::Background,
            time_zone: if profile.time_zone.is_empty() { "UTC".to_owned() } else { profile.time_zone.clone() },
            day_ends_at: profile.day_ends_at.clone(),
            mission: profile.mission.clone(),
            next_run_after: if profile.next_run_after == 0 { NEXT_RUN_AFTER } else { profile.next_run_after },
            owner: profile.owner.clone(),
            team: profile.team.as_ref().map(Team::from_proto),
            lead: profile.lead.clone(),
            session: WorkBounds::from_proto(profile.session.as_ref()),
            task: WorkBounds::from_proto(profile.task.as_ref()),
            guesses_goal: profile.guesses_goal,
            max_reflections: profile.max_reflections,
            inner_state: profile.inner_state,
            members: profile.members.iter().map(CompositeMember::from_proto).collect(),
            environment: profile.environment.iter().map(Perception::from_proto).collect(),
            submodules: profile.submodules.iter().take(MOST_EVER as usize).map(Submodule::from_proto).collect(),
            max_submodules: profile.max_submodules,
            cutoff: Cutoff { entries: profile.history_cutoff, seconds: profile.history_window },
            summary_after: profile.summary_after,
            caps: Caps::from_proto(profile.caps.as_ref()),
            request_deadline: profile.request_deadline,
            message_model_calls: profile.message_model_calls,
            consent_timeout: profile.consent_timeout,
        }
    }

    /// Returns true if the agent may use the tool, itself or through a member.
    pub fn offers_tool(&self, tool: &str) -> bool {
        if intrinsics::tasks::is_of_queue(tool) && !self.background {
            return false;
        }
        if intrinsics::team::is_of_leads(tool) {
            return self.team.is_some();
        }
        if intrinsics::members::is_of_composites(tool) {
            return !self.members.is_empty();
        }
        self.has_tool(tool) || self.member_with(tool).is_some()
    }

    /// Returns true if the profile's list excludes the tool.
    pub fn excludes_tool(&self, tool: &str) -> bool {
        self.tools.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(|pattern| covers(pattern, tool))
    }

    /// The tools that its list names one by one.
    pub fn named_tools(&self) -> impl Iterator<Item = &str> {
        let is_name =
            |pattern: &&str| !pattern.starts_with(['!', '*']) && !pattern.ends_with('*') && !pattern.contains(':');
        self.tools.iter().map(String::as_str).filter(is_name)
    }

    /// Returns true if the agent has the tool itself: its list covers it, or it has no list and no members.
    pub fn has_tool(&self, tool: &str) -> bool {
        let is_named = |pattern: &String| covers(pattern, tool);
        if intrinsics::inner_state::is_of_inner_state(tool) {
            // Tools are named to narrow what there is; other names say nothing of inner state.
            let mut of_state = self.tools.iter().filter(|tool| tool.starts_with("state.")).peekable();
            return self.inner_state && (of_state.peek().is_none() || of_state.any(is_named));
        }
        match self.tools.is_empty() {
            true => self.members.is_empty(),
            false => is_listed(tool, &self.tools),
        }
    }
}
