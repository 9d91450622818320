//! Work settings of a profile: the pause between sessions, and the bounds of a session and of a task.

use kairo_core::prices::spendable;
use kairo_proto::v1::{AgentProfile, SessionBounds};
use serde_json::Value;

use crate::fields::{Fields, count, text};

const MAX_PAUSE: u32 = 86_400;
const MAX_CALLS: u32 = 1_000_000;
const MAX_SECONDS: u32 = 604_800;
/// More than anybody spends.
const MAX_TOKENS: u64 = 1_000_000_000_000_000;
pub const COST: &str = "a decimal number above 0 with at most 6 places in a text, such as \"2.50\"";

/// The fields `session_pause`, `session` and `task`.
pub struct Sessions {
    pause: u32,
    pub bounds: Option<SessionBounds>,
    /// Of one task, in all its sessions.
    pub task: Option<SessionBounds>,
}

impl Sessions {
    pub fn read(fields: &mut Fields<Value>) -> Self {
        let pause = format!("0 to {MAX_PAUSE} seconds (0: the default)");
        let pause = fields.optional("session_pause", pause, count(0..=MAX_PAUSE)).unwrap_or_default();
        Self { pause, bounds: bounds_in(fields, "session"), task: bounds_in(fields, "task") }
    }

    /// The profile with what they say.
    pub fn of(self, profile: AgentProfile) -> AgentProfile {
        AgentProfile { session_pause: self.pause, session: self.bounds, task: self.task, ..profile }
    }
}

/// Bounds in a field of this name. Those that bound nothing are none.
fn bounds_in(fields: &mut Fields<Value>, field: &'static str) -> Option<SessionBounds> {
    let given = fields.optional(field, "a JSON object", |it: &Value| it.is_object().then(|| it.clone()))?;
    let read = Fields::within(&given).and_then(bounds);
    let bounds = read.map_err(|problem| fields.adopt(field, problem)).ok()?;
    (bounds != SessionBounds::default()).then_some(bounds)
}

fn bounds(mut fields: Fields<Value>) -> Result<SessionBounds, crate::problem::Problem> {
    let calls = format!("0 to {MAX_CALLS} (0: any number)");
    let seconds = format!("0 to {MAX_SECONDS} (0: any number)");
    let bounds = SessionBounds {
        model_calls: fields.optional("model_calls", calls, count(0..=MAX_CALLS)).unwrap_or_default(),
        tokens: tokens(&mut fields, "tokens"),
        cost: fields.optional("cost", COST, text(cost)).unwrap_or_default(),
        seconds: fields.optional("seconds", seconds, count(0..=MAX_SECONDS)).unwrap_or_default(),
    };
    fields.complete(|| Some(bounds))
}

/// A number of tokens; 0 where it is not given.
pub fn tokens(fields: &mut Fields<Value>, field: &'static str) -> u64 {
    let any = format!("0 to {MAX_TOKENS} (0: any number)");
    let tokens = fields.optional(field, any, |value| value.as_u64().filter(|tokens| *tokens <= MAX_TOKENS));
    tokens.unwrap_or_default()
}

/// An amount of money.
pub fn cost(text: &str) -> Option<String> {
    spendable(text).filter(|cost| *cost > 0).map(|_| text.to_owned())
}
