//! Tools of the mind itself: what they do is in the decision, so nobody else carries them out.
//!
//! Some are done at once, some ask a model first. One file for each noun.

pub mod chains;
pub mod finding;
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
pub mod user;

use jiff::Timestamp;
use kairo_proto::v1::{Ask, decided_event::Event};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    outside::Provenance,
    request::{Catalogue, ModelRequest, Tool},
    state::{AgentState, Turn},
};

/// The context an intrinsic runs in.
pub struct Context<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// With all that this decision did so far.
    pub state: &'a AgentState,
    pub turn_id: Uuid,
    pub turn: &'a Turn,
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
pub enum Begun {
    Done(Done),
    /// It changed nothing; what it read comes from there, as far as nobody here wrote it.
    Read {
        result: Value,
        outside: Provenance,
    },
    /// It goes on with the model's answer, in `finish`.
    Ask(ModelRequest),
    /// It is over when a submodule has answered, or it is known that it will not.
    Question(Inquiry),
    /// It is over when another agent has answered.
    Request(Box<Ask>),
}

/// A question to a submodule.
#[derive(Debug)]
pub struct Inquiry {
    pub module: String,
    pub question: String,
    /// The turn's round of questions that it belongs to.
    pub round: u32,
}

/// The events and the result of an intrinsic.
#[derive(Debug, Default)]
pub struct Done {
    /// In the order in which they become part of the decision.
    pub events: Vec<Event>,
    /// For the step, and for the model.
    pub result: Value,
}

type Begin = fn(&Context<'_>, &Map<String, Value>) -> Result<Begun, String>;
type Finish = fn(&Context<'_>, &Map<String, Value>, &str) -> Result<Done, String>;

/// An intrinsic.
pub struct Intrinsic {
    pub tool: Tool,
    pub begin: Begin,
    /// Finishes with the model's answer; never called for intrinsics that ask no model. Mistakes in the answer are
    /// told to the model.
    pub finish: Finish,
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
fn ordered() -> impl Iterator<Item = &'static Intrinsic> {
    static ORDERED: std::sync::LazyLock<Vec<Intrinsic>> = std::sync::LazyLock::new(|| {
        [requests::ordered(), tasks::ordered(), team::ordered()].into_iter().flatten().collect()
    });
    ORDERED.iter()
}

/// The one of this name.
pub fn named(name: &str) -> Option<&'static Intrinsic> {
    all().chain(ordered()).chain([finding::intrinsic()]).find(|intrinsic| *intrinsic.tool.name == *name)
}

/// One that no model is told of, whose parameters the mind itself writes.
fn of_orders(name: &str, description: &str, begin: Begin) -> Intrinsic {
    let (name, description, schema) = (name.into(), description.into(), "{}".into());
    let (needs_approval, needs_approval_with, acts_outside) = (false, Vec::new(), false);
    let tool = Tool { name, description, schema, needs_approval, needs_approval_with, acts_outside };
    Intrinsic { tool, begin, finish: asks_nobody }
}

/// For intrinsics that ask no model.
pub(super) fn asks_nobody(_: &Context<'_>, _: &Map<String, Value>, _: &str) -> Result<Done, String> {
    Err("it asks no model".to_owned())
}

impl From<Done> for Begun {
    fn from(done: Done) -> Self {
        Self::Done(done)
    }
}
