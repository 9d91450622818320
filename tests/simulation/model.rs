//! The tools there are, and the models. What a model answers follows from the request and the seed alone; what that is,
//! by the step of the mind that asks, says [`script`](crate::script).

use kairo_mind::request::ModelRequest;
use kairo_proto::v1::{Completion, CompletionError};
use uuid::Uuid;

use crate::{chance::Chance, script};

/// May be called again with the same action.
pub const KEYED: &str = "count.keyed";
/// May not.
pub const UNKEYED: &str = "count.once";
/// May not, and a human must consent to it first.
pub const MAIL: &str = "mail.send";
pub const RUN: &str = "process.run";
pub const SPAWN: &str = "process.spawn";

/// Requests of a run behind which models find no more work. One in some hundred runs makes ever more of it: tasks, hooks and queues that
/// make one another. Half of all runs have some 20 requests, and hardly any has 300.
const MOST: u32 = 500;

pub const TOOLS: [&str; 5] = [KEYED, UNKEYED, RUN, SPAWN, MAIL];

pub fn is_process(tool: &str) -> bool {
    tool == RUN || tool == SPAWN
}

/// A human must consent to each call.
pub fn needs_consent(tool: &str) -> bool {
    tool == MAIL
}

/// Whether calling it twice with the same action has the effect of once: also what orders become.
pub fn is_keyed(tool: &str) -> bool {
    !matches!(tool, UNKEYED | MAIL) && !is_process(tool)
}

/// Some tools fail, after they did it.
pub fn fails(action: Uuid) -> bool {
    action.as_u128().is_multiple_of(8)
}

pub fn answer(request: &ModelRequest, attempt: u32, seed: u64) -> Completion {
    let digest = request.digest();
    let key = Uuid::parse_str(&digest).unwrap_or_default().as_u64_pair().0;
    let mut chance = Chance::new(key ^ seed ^ u64::from(attempt) << 32);
    let completion = Completion {
        tier: request.tier.to_owned(),
        model: "scripted".to_owned(),
        request_digest: digest,
        input_tokens: 10,
        ..Default::default()
    };
    match chance.below(20) {
        0 => {
            let kind = "model_unavailable".to_owned();
            let error =
                CompletionError { kind, message: "come back later".to_owned(), transient: true, ..Default::default() };
            Completion { error: Some(error), ..completion }
        }
        // Empty: no answer at all.
        1 => completion,
        _ => {
            let (text, tool_calls) = script::answer(request, attempt > MOST, &mut chance);
            let reasoning = if chance.permille(100) { "hm".to_owned() } else { String::new() };
            Completion { text, tool_calls, reasoning, ..completion }
        }
    }
}
