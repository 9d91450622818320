//! The model's scenario: it does as a message wishes, and answers with the message's id.

mod errands;
mod planned;
mod queued;

use serde_json::{Value, json};

use super::plan::Wish;

/// The name under which the program with the effect is run.
pub const PROGRAM: &str = "effect";
/// The duration of a process that is never waited for, in seconds.
const FOR_LONG: &str = "1000";
/// The ending of effects whose processes a user orders to be stopped.
pub const TO_BE_CANCELED: &str = "-canceled";
/// An event in another system, `<source>.<verb>`.
pub const OUTSIDE: &str = "shop.sale";
/// The tool that may not be called without a human's consent.
pub const GUARDED: &str = "tools.date_calc";
/// The worker of every team, as its lead calls it.
pub const WORKER: &str = "fetch";
/// The event of an incoming mail.
pub const MAIL: &str = "email.received";

/// The subject of the mail that a wish waits for.
pub fn subject(id: &str) -> String {
    format!("mail for {id}")
}

/// The words of a message.
pub fn words(wish: Wish, id: &str) -> String {
    format!("{} {id} please", wish.word())
}

/// The beginning of a reply if the model repeatedly said nothing after its calls.
const WITHOUT_WORDS: &str = "The model had nothing to add.";

/// Returns true if a reply answers this message, or may answer it.
pub fn answers(reply: &str, id: &str) -> bool {
    reply.starts_with(WITHOUT_WORDS) || reply.split_whitespace().any(|word| word == id)
}

/// Returns true if a rule is for the work that agents do beside their conversations.
pub fn is_for_work(rule: &str) -> bool {
    ["work ", "learn", "sum up work", "begin", "brief"].iter().any(|begin| rule.starts_with(begin))
}

/// The scenario of the simulator. `oracle` is the host of effects under a key.
pub fn scenario(oracle: &str) -> String {
    // Whoever was spoken to in between is told which message to answer.
    let mut rules = vec![json!({
        "name": "reminded",
        "when": { "system_matches": r"answer it now: \w+ (?<id>\S+) please" },
        "reply": "Done at last: {{ captures.id }} .",
    })];
    rules.extend(thoughtful());
    rules.extend(queued::rules(oracle));
    rules.extend(planned::rules(oracle));
    let direct = Wish::ALL.into_iter().filter(|wish| !wish.is_planned() && !wish.is_queued());
    rules.extend(direct.map(|wish| rule(wish, oracle)));
    rules.push(json!({ "name": "otherwise", "when": {}, "reply": "Noted." }));
    json!({ "rules": rules }).to_string()
}

/// Returns the rules for submodules, for guesses of the goal and for reviews of replies.
fn thoughtful() -> [Value; 4] {
    let step = |name: &str| json!(format!("You are {name}"));
    [
        json!({
            "name": "keep a diary",
            "when": { "system_starts_with": step("a submodule"), "system_contains": "Your name is diary" },
            "reply": { "text": "Somebody wished for something.", "delay_ms": 50 },
        }),
        json!({
            "name": "think along",
            "when": { "system_starts_with": step("a submodule") },
            "reply": { "text": "-", "delay_ms": 50 },
        }),
        json!({
            "name": "guess the goal",
            "when": { "system_starts_with": step("agent.goal") },
            "reply": "To have a wish granted.",
        }),
        json!({
            "name": "review",
            "when": { "system_starts_with": step("agent.reflect") },
            "reply": { "json": { "verdict": "finished", "reason": "It names what was wished for." } },
        }),
    ]
}

fn rule(wish: Wish, oracle: &str) -> Value {
    // Long enough for others to come while the agent is deciding.
    let delay_ms = if wish == Wish::Chat { 400 } else { 0 };
    let done = json!({ "text": "Done: {{ captures.id }} .", "delay_ms": delay_ms });
    let keyed = |part: &str| {
        let url = format!("http://{oracle}/effects/{{{{ captures.id }}}}-{part}");
        json!({ "tool": "http.get", "arguments": { "url": url } })
    };
    let process = |tool: &str, part: &str, seconds: &str| {
        let args = json!([format!("{{{{ captures.id }}}}-{part}"), seconds]);
        json!({ "tool": tool, "arguments": { "program": PROGRAM, "args": args } })
    };
    let stop = || {
        // Nothing there to stop is a result like any other.
        let process = "{{ last_result.process_id or 'none' }}";
        json!({ "tool": "process.cancel", "arguments": { "process_id": process } })
    };
    let clock = || json!({ "tool": "tools.now", "arguments": {} });
    let limited = |part: &str, timeout_ms: u64| {
        let mut process = process("process.run", part, FOR_LONG);
        if let Some(arguments) = process.get_mut("arguments").and_then(Value::as_object_mut) {
            arguments.insert("timeout_ms".to_owned(), json!(timeout_ms));
        }
        process
    };
    let rounds: Vec<Vec<Value>> = match wish {
        Wish::Chat => vec![],
        Wish::Clock => vec![vec![clock()]],
        Wish::Keyed => vec![vec![keyed("a")]],
        Wish::Chain => vec![vec![keyed("a")], vec![keyed("b")]],
        Wish::Several => vec![vec![keyed("a"), clock(), process("process.run", "b", "0.2"), keyed("c")]],
        Wish::Run => vec![vec![process("process.run", "a", "0")]],
        Wish::Work => vec![vec![process("process.run", "a", "3")]],
        Wish::Hang => vec![vec![limited("a", 1_500)]],
        // Whoever orders the end may be told that nobody answers, and does not try again.
        Wish::Cancel => vec![vec![limited(TO_BE_CANCELED.trim_start_matches('-'), 20_000)]],
        Wish::Spawn => vec![vec![process("process.spawn", "a", "3")]],
        Wish::Stop => vec![vec![process("process.spawn", "a", FOR_LONG)], vec![stop()]],
        // Not for agents that call tools themselves.
        Wish::Plan | Wish::Later | Wish::Repeat | Wish::Hook | Wish::Mail | Wish::Consent | Wish::Ask => vec![],
        Wish::Queue | Wish::Delegate => vec![],
        Wish::Shop | Wish::Desk | Wish::Bank | Wish::Clerk | Wish::Recall => vec![errands::calls(wish)],
    };
    let calls = rounds.into_iter().map(|calls| json!({ "tool_calls": calls }));
    let turn: Vec<Value> = calls.chain([done]).collect();
    let when = json!({ "user_matches": format!(r"^{} (?<id>\S+) please", wish.word()) });
    json!({ "name": wish.word(), "when": when, "turn": turn })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_names_its_message_and_no_other() {
        assert!(answers("Done: m1 .", "m1"));
        assert!(!answers("Done: m12 .", "m1"));
        assert!(!answers("Noted.", "m1"));
        assert!(answers("The model had nothing to add. This was done: process.run", "m1"));
    }
}
