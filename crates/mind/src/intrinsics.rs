//! Tools of the mind itself: what they do is in the decision, so nobody else carries them out.
//!
//! Some are done at once, some ask a model first. One file for each noun.

pub mod chains;
pub mod history;
pub mod inner_state;
pub mod members;
pub mod memory;
pub mod requests;
pub mod steps;
pub mod submodules;
pub mod tasks;
pub mod team;
pub mod threads;
pub mod tool_search;
pub mod user;

use jiff::Timestamp;
use kairo_proto::v1::{Ask, decided_event::Event};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    provenance::Provenance,
    request::{Catalogue, ModelRequest, Tool},
    state::{AgentState, AgentTurn},
};

/// The context an intrinsic runs in.
pub struct IntrinsicContext<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// With all that this decision did so far.
    pub state: &'a AgentState,
    pub turn_id: Uuid,
    pub turn: &'a AgentTurn,
    /// The recorded time of the input.
    pub now: Timestamp,
    /// For ids of what it makes: derived from this, they are the same when it is done again.
    pub id: Uuid,
    /// Key under which secrets are sealed; none when none is configured.
    pub secret_key: Option<&'a [u8; 32]>,
    /// Steps a chain may have.
    pub most_steps: usize,
    /// Returns true if a tool of this name is offered to the agent.
    pub known: &'a dyn Fn(&str) -> bool,
    /// The tools that services carry out.
    pub catalogue: &'a Catalogue,
    /// Version of the rules by which memories are written, as in `Limits`.
    pub memory_rules: u32,
}

/// The outcome of beginning an intrinsic.
pub enum IntrinsicStart {
    Done(IntrinsicOutcome),
    /// It changed nothing; what it read comes from there, as far as nobody here wrote it.
    Read {
        result: Value,
        outside: Provenance,
    },
    /// It goes on with the model's answer, in `finish`.
    Ask(ModelRequest),
    /// It is over when a submodule has answered, or it is known that it will not.
    Question(SubmoduleQuestion),
    /// It is over when another agent has answered.
    Request(Box<Ask>),
}

/// A question to a submodule.
#[derive(Debug)]
pub struct SubmoduleQuestion {
    pub module: String,
    pub question: String,
    /// The turn's round of questions that it belongs to.
    pub round: u32,
}

/// The events and the result of an intrinsic.
#[derive(Debug, Default)]
pub struct IntrinsicOutcome {
    /// In the order in which they become part of the decision.
    pub events: Vec<Event>,
    /// For the step, and for the model.
    pub result: Value,
}

type BeginFn = fn(&IntrinsicContext<'_>, &Map<String, Value>) -> Result<IntrinsicStart, String>;
type FinishFn = fn(&IntrinsicContext<'_>, &Map<String, Value>, &str) -> Result<IntrinsicOutcome, String>;

/// An intrinsic.
pub struct Intrinsic {
    pub tool: Tool,
    pub begin: BeginFn,
    /// Finishes with the model's answer; never called for intrinsics that ask no model. Mistakes in the answer are
    /// told to the model.
    pub finish: FinishFn,
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Intrinsic> {
    static ALL: std::sync::LazyLock<Vec<Intrinsic>> = std::sync::LazyLock::new(|| {
        let talk = [history::all(), submodules::all(), team::all(), threads::all(), user::all(), inner_state::all()];
        let first = [chains::all(), members::all(), memory::all(), steps::all(), tasks::all()];
        first.into_iter().chain(talk).flatten().collect()
    });
    ALL.iter()
}

/// Those that only people order, and that no model is told of.
fn order_intrinsics() -> impl Iterator<Item = &'static Intrinsic> {
    static ORDERED: std::sync::LazyLock<Vec<Intrinsic>> = std::sync::LazyLock::new(|| {
        [requests::order_intrinsics(), tasks::order_intrinsics(), team::order_intrinsics()]
            .into_iter()
            .flatten()
            .collect()
    });
    ORDERED.iter()
}

/// The one of this name.
pub fn by_name(name: &str) -> Option<&'static Intrinsic> {
    all().chain(order_intrinsics()).chain([tool_search::intrinsic()]).find(|intrinsic| *intrinsic.tool.name == *name)
}

/// One that no model is told of, whose parameters the mind itself writes.
fn order_intrinsic(name: &str, description: &str, begin: BeginFn) -> Intrinsic {
    let name = name.into();
    let description = description.into();
    let schema = "{}".into();
    let needs_approval = false;
    let needs_approval_with = Vec::new();
    let acts_outside = false;
    let tool = Tool { name, description, schema, needs_approval, needs_approval_with, acts_outside };
    Intrinsic { tool, begin, finish: finish_without_model }
}

/// For intrinsics that ask no model.
pub(super) fn finish_without_model(
    _: &IntrinsicContext<'_>,
    _: &Map<String, Value>,
    _: &str,
) -> Result<IntrinsicOutcome, String> {
    Err("it asks no model".to_owned())
}

impl From<IntrinsicOutcome> for IntrinsicStart {
    fn from(done: IntrinsicOutcome) -> Self {
        Self::Done(done)
    }
}
