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

/// Returns true if calling it twice with the same action has one effect only; that includes the tools orders turn into.
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
        0 => Completion { error: Some(error(&mut chance)), ..completion },
        // No answer at all.
        1 => ended(completion, "empty"),
        2 => ended(Completion { text: "I will not do that".to_owned(), ..completion }, REFUSALS[chance.below(2)]),
        drawn => {
            let (text, tool_calls) = script::answer(request, attempt > MOST, &mut chance);
            let reasoning = if chance.permille(100) { "hm".to_owned() } else { String::new() };
            let ending = if drawn == 3 && chance.permille(500) { "cut" } else { "complete" };
            ended(Completion { text, tool_calls, reasoning, ..completion }, ending)
        }
    }
}

/// The ends of an answer that refuses.
const REFUSALS: [&str; 2] = ["refused", "filtered"];

/// The failures of an endpoint: the kind, and true if it is asked again.
const FAILURES: [(&str, bool); 12] = [
    ("model_unavailable", true),
    ("model_unavailable", true),
    ("model_unavailable", true),
    ("model_overloaded", true),
    ("model_rate_limited", true),
    ("model_timeout", true),
    ("malformed_answer", true),
    ("context_too_long", false),
    ("model_unauthorized", false),
    ("model_out_of_credit", false),
    ("model_filtered", false),
    ("model_refused", false),
];

fn error(chance: &mut Chance) -> CompletionError {
    let (kind, transient) = FAILURES[chance.below(FAILURES.len())];
    let retry_after_ms = if kind == "model_rate_limited" { 1_500 } else { 0 };
    let message = "as endpoints fail".to_owned();
    CompletionError { kind: kind.to_owned(), message, transient, retry_after_ms, ..Default::default() }
}

fn ended(completion: Completion, ending: &str) -> Completion {
    Completion { ending: ending.to_owned(), ..completion }
}
