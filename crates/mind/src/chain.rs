//! Chains: the steps a plan compiles to, and how far one is.
//!
//! * [`mod@format`]: reading the seed's form, `[{"event", "params"}, "bare.name", [in, parallel]]`
//! * [`references`]: `{tools.now.result}` in parameters, and filling them in
//! * [`check`]: what is wrong with a chain before it runs

pub mod check;
pub mod format;
mod mistakes;
pub mod references;
#[cfg(test)]
mod tests;

use kairo_proto::words::{self, ChainOrigin};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The step that thinks: with a prompt it analyses, without one it answers.
pub const THINK: &str = "agent.think";
/// Results one chain keeps for its references, in bytes; what comes beyond is not kept.
pub const RESULT_BYTES: usize = 192 * 1024;

/// A step as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSpec {
    /// Steps of a group run at once, groups one after another.
    pub group: u32,
    /// The tool, or [`THINK`].
    pub event: String,
    /// With references not yet filled in.
    pub params: Map<String, Value>,
    /// The question that `agent.decide` judges before the step runs.
    pub decide: Option<String>,
}

/// A chain that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    pub id: Uuid,
    pub origin: Origin,
    /// The task it carries out.
    pub task: Option<Uuid>,
    /// Data of the event that triggered the chain, as `{event.…}`.
    pub data: Value,
    pub steps: Vec<StepRun>,
    /// Opaque data to send back to the model server with its calls: a JSON object as text. Empty if no model made them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub passed_back: String,
}

/// The origin of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A plan of the agent.
    Plan,
    /// The model called tools directly.
    Calls,
    /// A task's time came.
    Task,
    /// Something happened that a hook waits for.
    Hook,
    /// A message came, and what is around is looked at.
    Environment,
    /// Another agent asks for the call.
    Request,
}

/// A step on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    pub step: StepSpec,
    pub state: StepState,
    /// The id by which the model knows the call; empty where no model made it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call_id: String,
    /// Opaque data to send back to the model server with the call: a JSON object as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub passed_back: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StepState {
    Pending,
    /// Its tool was called.
    Running {
        action: Uuid,
    },
    /// A human is asked whether it may be called, with these arguments.
    Asked {
        request: Uuid,
        /// Position in the log.
        at: u64,
        arguments: String,
    },
    /// The human said yes; it is to be called now.
    Approved {
        request: Uuid,
        /// Position in the log where approval was requested.
        at: u64,
        arguments: String,
        /// True if the human changed the arguments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_changed: bool,
    },
    /// The human said no; it ends now.
    Rejected {
        reason: String,
    },
    Done {
        result: Value,
    },
    Failed {
        reason: String,
    },
    Skipped {
        reason: String,
    },
    Stopped {
        reason: String,
    },
}

/// The next move of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum ChainMove {
    /// Something runs; its end is the next move.
    Wait,
    /// These steps start, at once.
    Start(Vec<usize>),
    /// Nothing is left.
    End,
}

impl Origin {
    /// Returns true if the chain's calls are complete as written: no references are filled in and nothing is mended.
    pub fn is_literal(self) -> bool {
        match self {
            Self::Calls | Self::Environment | Self::Request => true,
            Self::Plan | Self::Task | Self::Hook => false,
        }
    }

    /// As events say it.
    pub fn to_word(self) -> ChainOrigin {
        match self {
            Self::Plan => ChainOrigin::Plan,
            Self::Calls => ChainOrigin::Calls,
            Self::Task => ChainOrigin::Task,
            Self::Hook => ChainOrigin::Hook,
            Self::Environment => ChainOrigin::Environment,
            Self::Request => ChainOrigin::Request,
        }
    }

    pub fn from_word(word: &ChainOrigin) -> Self {
        match word {
            ChainOrigin::Calls => Self::Calls,
            ChainOrigin::Task => Self::Task,
            ChainOrigin::Hook => Self::Hook,
            ChainOrigin::Environment => Self::Environment,
            ChainOrigin::Request => Self::Request,
            ChainOrigin::Plan | ChainOrigin::Unknown(_) => Self::Plan,
        }
    }
}

impl Chain {
    /// After a step that failed or was stopped, the next thinking step sees it; what stands between is passed over. Of calls that a
    /// model made at once none depends on another.
    pub fn next_move(&self) -> ChainMove {
        if self.steps.iter().any(|step| step.state.is_under_way()) {
            let ruled = |step: &StepRun| matches!(step.state, StepState::Approved { .. } | StepState::Rejected { .. });
            let ruled = self.step_indices(ruled);
            return if ruled.is_empty() { ChainMove::Wait } else { ChainMove::Start(ruled) };
        }
        let went_wrong = self.has_unseen_failure();
        let thought = self.last_thought_group();
        let may_start = |run: &StepRun| {
            run.state == StepState::Pending
                && thought.is_none_or(|group| run.step.group > group)
                && (!went_wrong || self.origin == Origin::Calls || run.step.event == THINK)
        };
        let Some(first) = self.steps.iter().find(|run| may_start(run)) else { return ChainMove::End };
        ChainMove::Start(self.step_indices(|run| run.step.group == first.step.group && may_start(run)))
    }

    /// Returns true if a step failed and no thinking step has seen it yet.
    pub fn has_unseen_failure(&self) -> bool {
        self.unseen_failure().is_some()
    }

    /// Returns the first step that failed or was stopped and that no thinking step has seen yet, with the reason.
    pub fn unseen_failure(&self) -> Option<(&StepRun, &str)> {
        // A thought of the same group began when it did.
        let thought = self.last_thought_group();
        let unseen = self.steps.iter().filter(|run| thought.is_none_or(|group| run.step.group >= group));
        unseen.into_iter().find_map(|run| match &run.state {
            StepState::Failed { reason } | StepState::Stopped { reason } => Some((run, reason.as_str())),
            _ => None,
        })
    }

    /// The group of the last thinking step that is done.
    fn last_thought_group(&self) -> Option<u32> {
        let thoughts = self.steps.iter().filter(|run| run.step.event == THINK && run.state.is_done());
        thoughts.map(|run| run.step.group).max()
    }

    /// Results as references of a step of this group see them: of the steps of earlier groups, none where there is none.
    pub fn outcomes_before(&self, group: u32) -> Vec<references::StepOutcome<'_>> {
        let earlier = self.steps.iter().filter(|run| run.step.group < group);
        earlier.map(|run| references::StepOutcome { event: &run.step.event, result: run.state.result() }).collect()
    }

    /// Bytes its results take.
    pub fn result_bytes(&self) -> usize {
        self.steps.iter().filter_map(|run| run.state.result()).map(|result| result.to_string().len()).sum()
    }

    /// Bytes it takes in all, nearly: parameters, results, what waits for consent and what triggered it.
    pub fn total_bytes(&self) -> usize {
        let of_step = |run: &StepRun| {
            let state = match &run.state {
                StepState::Asked { arguments, .. } | StepState::Approved { arguments, .. } => arguments.len(),
                state => state.result().map_or(0, |result| result.to_string().len()),
            };
            state + serde_json::to_string(&run.step.params).map_or(0, |params| params.len())
        };
        self.data.to_string().len() + self.steps.iter().map(of_step).sum::<usize>()
    }

    fn step_indices(&self, which: impl Fn(&StepRun) -> bool) -> Vec<usize> {
        self.steps.iter().enumerate().filter(|(_, step)| which(step)).map(|(at, _)| at).collect()
    }
}

impl StepState {
    pub fn is_done(&self) -> bool {
        self.result().is_some()
    }

    pub fn result(&self) -> Option<&Value> {
        match self {
            Self::Done { result } => Some(result),
            _ => None,
        }
    }

    /// As people and models are told it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pending => words::StepState::Pending.known_word(),
            Self::Running { .. } => words::StepState::Running.known_word(),
            Self::Asked { .. } | Self::Approved { .. } | Self::Rejected { .. } => "waits for consent",
            Self::Done { .. } => words::StepState::Done.known_word(),
            Self::Failed { .. } => words::StepState::Failed.known_word(),
            Self::Skipped { .. } => words::StepState::Skipped.known_word(),
            Self::Stopped { .. } => words::StepState::Stopped.known_word(),
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self, Self::Running { .. } | Self::Asked { .. } | Self::Approved { .. } | Self::Rejected { .. })
    }
}
