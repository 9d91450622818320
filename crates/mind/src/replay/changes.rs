//! Changes to the log's decisions on replay, to find those that would come out differently.

use std::{borrow::Cow, sync::Arc};

use crate::{deliberation::DecisionLimits, request::Tool, state::AgentState};

/// Changes to the basis of decisions; what is not named stays as recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayChanges {
    /// The agent's own prompt.
    pub prompt: Option<String>,
    /// The tools to use instead, for decisions that had a catalogue.
    pub tools: Option<Vec<Tool>>,
    pub limits: Vec<(ReplayLimit, u32)>,
}

/// A limit of deciding that a [basis](crate::build_pin) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayLimit {
    /// Answers of the heavy model in one turn, where the profile does not say.
    MaxSteps,
    /// Tries of one model call, the first included.
    ModelTries,
    /// Tries of one that finds its endpoint away, overloaded or busy.
    OutageTries,
    /// Tools called at once.
    ParallelTools,
    /// Steps a chain may have.
    ChainSteps,
    /// Tools that a request lists at most.
    ListedTools,
}

impl ReplayLimit {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::MaxSteps, Self::ModelTries, Self::OutageTries, Self::ParallelTools, Self::ChainSteps, Self::ListedTools];

    /// Returns the name of the limit in the configuration and in a basis.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxSteps => "max_steps",
            Self::ModelTries => "model_tries",
            Self::OutageTries => "outage_tries",
            Self::ParallelTools => "parallel_tools",
            Self::ChainSteps => "chain_steps",
            Self::ListedTools => "listed_tools",
        }
    }

    fn set(self, limits: &mut DecisionLimits, value: u32) {
        match self {
            Self::MaxSteps => limits.max_steps = value,
            Self::ModelTries => limits.tries = value,
            Self::OutageTries => limits.outage_tries = value,
            Self::ParallelTools => limits.parallel_tools = value as usize,
            Self::ChainSteps => limits.chain_steps = value as usize,
            Self::ListedTools => limits.listing.tools = value as usize,
        }
    }
}

impl ReplayChanges {
    /// Returns true if nothing is changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Names each change in a word or two, such as `prompt` or `max_steps=5`.
    pub fn describe(&self) -> Vec<String> {
        let named = [(self.prompt.is_some(), "prompt"), (self.tools.is_some(), "catalogue")];
        let named = named.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, name)| name.to_owned());
        named.chain(self.limits.iter().map(|(limit, value)| format!("{}={value}", limit.name()))).collect()
    }

    pub(super) fn change_state(&self, state: &mut Arc<AgentState>) {
        let Some(prompt) = &self.prompt else { return };
        if let Some(profile) = &mut Arc::make_mut(state).profile {
            profile.prompt.clone_from(prompt);
        }
    }

    /// They still are of the basis that the decision names: that is not what is compared.
    pub(super) fn change_limits<'l>(&self, mut limits: Cow<'l, DecisionLimits>) -> Cow<'l, DecisionLimits> {
        for (limit, value) in &self.limits {
            limit.set(limits.to_mut(), *value);
        }
        limits
    }
}
