//! Work settings of a profile: the pause between sessions, and the bounds of a session and of a task.

use kairo_core::prices::parse_budget;
use kairo_proto::v1::{AgentProfile, SessionBounds};
use serde_json::Value;

use crate::fields::{RequestFields, json_count, json_text};

const MAX_PAUSE: u32 = 86_400;
const MAX_CALLS: u32 = 1_000_000;
const MAX_SECONDS: u32 = 604_800;
/// More than anybody spends.
const MAX_TOKENS: u64 = 1_000_000_000_000_000;
pub const COST: &str = "a decimal number above 0 with at most 6 places in a text, such as \"2.50\"";

/// The fields `session_pause`, `session` and `task`.
pub struct SessionSettings {
    pause: u32,
    pub bounds: Option<SessionBounds>,
    /// Of one task, in all its sessions.
    pub task: Option<SessionBounds>,
}

impl SessionSettings {
    pub fn from_fields(fields: &mut RequestFields<Value>) -> Self {
        let pause = format!("0 to {MAX_PAUSE} seconds (0: the default)");
        let pause = fields.optional("session_pause", pause, json_count(0..=MAX_PAUSE)).unwrap_or_default();
        Self { pause, bounds: parse_bounds_field(fields, "session"), task: parse_bounds_field(fields, "task") }
    }

    /// The profile with what they say.
    pub fn apply_to(self, profile: AgentProfile) -> AgentProfile {
        AgentProfile { session_pause: self.pause, session: self.bounds, task: self.task, ..profile }
    }
}

/// Bounds in a field of this name. Those that bound nothing are none.
fn parse_bounds_field(fields: &mut RequestFields<Value>, field: &'static str) -> Option<SessionBounds> {
    let given = fields.optional(field, "a JSON object", |it: &Value| it.is_object().then(|| it.clone()))?;
    let read = RequestFields::from_nested(&given).and_then(parse_bounds);
    let bounds = read.map_err(|problem| fields.add_nested_errors(field, problem)).ok()?;
    (bounds != SessionBounds::default()).then_some(bounds)
}

fn parse_bounds(mut fields: RequestFields<Value>) -> Result<SessionBounds, crate::problem::Problem> {
    let calls = format!("0 to {MAX_CALLS} (0: any number)");
    let seconds = format!("0 to {MAX_SECONDS} (0: any number)");
    let bounds = SessionBounds {
        model_calls: fields.optional("model_calls", calls, json_count(0..=MAX_CALLS)).unwrap_or_default(),
        tokens: parse_tokens(&mut fields, "tokens"),
        cost: fields.optional("cost", COST, json_text(parse_cost)).unwrap_or_default(),
        seconds: fields.optional("seconds", seconds, json_count(0..=MAX_SECONDS)).unwrap_or_default(),
    };
    fields.complete(|| Some(bounds))
}

/// A number of tokens; 0 where it is not given.
pub fn parse_tokens(fields: &mut RequestFields<Value>, field: &'static str) -> u64 {
    let any = format!("0 to {MAX_TOKENS} (0: any number)");
    let tokens = fields.optional(field, any, |value| value.as_u64().filter(|tokens| *tokens <= MAX_TOKENS));
    tokens.unwrap_or_default()
}

/// An amount of money.
pub fn parse_cost(text: &str) -> Option<String> {
    parse_budget(text).filter(|cost| *cost > 0).map(|_| text.to_owned())
}
