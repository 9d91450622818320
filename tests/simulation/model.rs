//! The model and the tools it is offered. What it answers follows from the request and the seed alone.

use kairo_agent_runtime::mind::request::{Catalogue, ModelRequest, Tool};
use kairo_proto::v1::{Completion, CompletionError, CompletionToolCall};
use uuid::Uuid;

use crate::chance::Chance;

/// May be called again with the same action.
pub const KEYED: &str = "count.keyed";
/// May not.
pub const UNKEYED: &str = "count.once";
pub const RUN: &str = "process.run";
pub const SPAWN: &str = "process.spawn";

/// Stops another action.
pub const CANCEL: &str = "action.cancel";

const TOOLS: [&str; 4] = [KEYED, UNKEYED, RUN, SPAWN];

pub fn is_process(tool: &str) -> bool {
    tool == RUN || tool == SPAWN
}

/// Whether calling it twice with the same action has the effect of once: also what orders become.
pub fn is_keyed(tool: &str) -> bool {
    tool != UNKEYED && !is_process(tool)
}

/// Some tools fail, after they did it.
pub fn fails(action: Uuid) -> bool {
    action.as_u128().is_multiple_of(8)
}

/// Some programs may not be run.
pub fn is_refused(action: Uuid) -> bool {
    action.as_u128() % 8 == 1
}

pub fn catalogue() -> Catalogue {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        description: String::new(),
        schema: r#"{"type":"object"}"#.into(),
    };
    Catalogue { version: "1".to_owned(), tools: TOOLS.iter().map(tool).collect() }
}

pub fn answer(request: &ModelRequest, attempt: u32, seed: u64) -> Completion {
    let digest = request.digest();
    let key = Uuid::parse_str(&digest).unwrap_or_default().as_u64_pair().0;
    let mut chance = Chance::new(key ^ seed ^ u64::from(attempt) << 32);
    let completion = Completion {
        tier: request.tier.to_owned(),
        model: "scripted".to_owned(),
        request_digest: digest,
        ..Default::default()
    };
    match chance.below(20) {
        0 => {
            let kind = "model_unavailable".to_owned();
            let error = CompletionError { kind, message: "come back later".to_owned(), transient: true };
            Completion { error: Some(error), ..completion }
        }
        // Empty: no answer at all.
        1 => completion,
        2..=12 if !request.tools.is_empty() => {
            let calls = (0..=chance.below(3)).map(|call| CompletionToolCall {
                call_id: call.to_string(),
                tool: TOOLS[chance.below(TOOLS.len())].to_owned(),
                arguments: format!(r#"{{"n":{}}}"#, chance.below(100)),
            });
            let tool_calls = calls.collect();
            let text = if chance.permille(500) { "one moment".to_owned() } else { String::new() };
            Completion { text, tool_calls, ..completion }
        }
        _ => Completion { text: format!("answer {}", chance.below(1_000)), ..completion },
    }
}
