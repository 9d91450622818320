//! The environment an agent perceives when a message comes, before it thinks about it: the results of its profile's
//! tools and the context that the user's client sends. It is kept for the turn only. Built from the log.

use kairo_events::outside::{self, OutsideSource};
use kairo_proto::v1::{self, AgentMessage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    chain::{Chain, Origin, StepRun, StepSpec, StepState},
    state::AgentState,
    thread::cut_to,
};

/// Longest part kept of each result, in bytes.
const RESULT_BYTES: usize = 8 * 1024;
/// Most bytes kept of a client's context; the gateway takes no more.
const CLIENT_BYTES: usize = 32 * 1024;
/// Most bytes of environment kept by all open turns; anything beyond that is left out.
const ALL_BYTES: usize = 256 * 1024;
const LEFT_OUT: &str = r#"{"left_out":"too much is under way at once"}"#;

/// A tool called to perceive the environment, and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Perception {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// The environment of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The context sent by the user's client, JSON as text; empty if there is none.
    pub client: String,
    /// Results of the perception tools; `None` until they were called.
    pub perceived: Option<Vec<PerceptionResult>>,
}

/// The result of one perception tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerceptionResult {
    pub tool: String,
    /// JSON as text or, if the call failed, the reason.
    pub result: String,
    pub failed: bool,
}

impl Perception {
    pub(super) fn from_proto(perception: &v1::Perception) -> Self {
        let arguments = serde_json::from_str(&perception.arguments).unwrap_or_default();
        Self { tool: perception.tool.clone(), arguments }
    }

    pub fn to_step(&self) -> StepSpec {
        StepSpec { group: 0, event: self.tool.clone(), params: self.arguments.clone(), decide: None }
    }
}

impl Environment {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn bytes(&self) -> usize {
        let perceived = self.perceived.iter().flatten();
        self.client.len() + perceived.map(|it| it.tool.len() + it.result.len()).sum::<usize>()
    }
}

impl PerceptionResult {
    fn from_step_run(run: &StepRun) -> Self {
        let (result, failed) = match &run.state {
            StepState::Done { result } => (result.to_string(), false),
            StepState::Failed { reason } | StepState::Stopped { reason } | StepState::Skipped { reason } => {
                (reason.clone(), true)
            }
            _ => ("it did not end".to_owned(), true),
        };
        Self { tool: run.step.event.clone(), result: cut_to(&result, RESULT_BYTES), failed }
    }
}

impl AgentState {
    /// A message says where its user is: words that nobody here wrote.
    pub(super) fn apply_environment(&mut self, turn_id: Uuid, message: &AgentMessage) {
        if message.environment.is_empty() {
            return;
        }
        let client = match self.has_room_for(message.environment.len()) {
            true => cut_to(&message.environment, CLIENT_BYTES),
            false => LEFT_OUT.to_owned(),
        };
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.environment.client = client;
            turn.outside.add_marks([outside::source_mark(OutsideSource::Environment, "client")]);
        }
    }

    /// Stores the results of a turn's perception chain, with which the turn goes on.
    pub(super) fn store_perceptions(&mut self, turn_id: Uuid, chain: &Chain) {
        if chain.origin != Origin::Environment {
            return;
        }
        let mut perceived: Vec<PerceptionResult> = chain.steps.iter().map(PerceptionResult::from_step_run).collect();
        let bytes = perceived.iter().map(|it| it.result.len()).sum();
        if !self.has_room_for(bytes) {
            perceived.iter_mut().for_each(|it| it.result = LEFT_OUT.to_owned());
        }
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.environment.perceived = Some(perceived);
        }
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.turns.values().map(|turn| turn.environment.bytes()).sum::<usize>() + bytes <= ALL_BYTES
    }

    /// Returns true while the turn's perception chain runs.
    pub(super) fn is_perceiving(&self, turn: Uuid) -> bool {
        let chain = self.turns.get(&turn).and_then(|turn| turn.chain.as_ref());
        chain.is_some_and(|chain| chain.origin == Origin::Environment)
    }
}
