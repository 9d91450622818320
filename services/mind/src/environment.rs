//! What an agent perceives when a message comes, before it thinks about it: what its profile's tools return, and what the
//! user's client says. It is kept for the turn alone. Folded from the log.

use kairo_events::outside::{self, Kind};
use kairo_proto::v1::{self, AgentMessage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    chain::{Chain, Origin, Step, StepRun, StepState},
    state::AgentState,
    thread::cut_to,
};

/// What is kept of each result, in bytes.
const RESULT_BYTES: usize = 8 * 1024;
/// What is kept of what a client says, in bytes; the gateway takes no more.
const CLIENT_BYTES: usize = 32 * 1024;
/// What all open turns keep of it, in bytes; what comes beyond is left out.
const ALL_BYTES: usize = 256 * 1024;
const LEFT_OUT: &str = r#"{"left_out":"too much is under way at once"}"#;

/// A tool that is looked at, and what it is called with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Perception {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// What a turn knows of where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// What the user's client says, JSON as text; empty for nothing.
    pub client: String,
    /// What was looked at; none as long as nothing was.
    pub perceived: Option<Vec<Perceived>>,
}

/// What one tool said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Perceived {
    pub tool: String,
    /// JSON as text or, of what failed, why.
    pub result: String,
    pub failed: bool,
}

impl Perception {
    pub(super) fn of(perception: &v1::Perception) -> Self {
        let arguments = serde_json::from_str(&perception.arguments).unwrap_or_default();
        Self { tool: perception.tool.clone(), arguments }
    }

    pub fn step(&self) -> Step {
        Step { group: 0, event: self.tool.clone(), params: self.arguments.clone(), decide: None }
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

impl Perceived {
    fn of(run: &StepRun) -> Self {
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
    pub(super) fn hear_environment(&mut self, turn_id: Uuid, message: &AgentMessage) {
        if message.environment.is_empty() {
            return;
        }
        let client = match self.has_room_for(message.environment.len()) {
            true => cut_to(&message.environment, CLIENT_BYTES),
            false => LEFT_OUT.to_owned(),
        };
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.environment.client = client;
            turn.outside.see([outside::mark(Kind::Environment, "client")]);
        }
    }

    /// What was looked at is known, and the turn goes on with it.
    pub(super) fn perceive(&mut self, turn_id: Uuid, chain: &Chain) {
        if chain.origin != Origin::Environment {
            return;
        }
        let mut perceived: Vec<Perceived> = chain.steps.iter().map(Perceived::of).collect();
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

    /// Whether a turn is looking at its environment.
    pub(super) fn perceives(&self, turn: Uuid) -> bool {
        let chain = self.turns.get(&turn).and_then(|turn| turn.chain.as_ref());
        chain.is_some_and(|chain| chain.origin == Origin::Environment)
    }
}
