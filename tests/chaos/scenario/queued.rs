//! The model's answers to wishes of teams: the acknowledgement, the work, the delegated tasks, and the lessons learned.

use serde_json::{Value, json};

use super::{PROGRAM, WORKER};
use crate::chaos::plan::Wish;

/// The wish's id, as rules find it.
const ID: &str = "{{ captures.id }}";

/// The rules, which must be tried before those of other agents. `oracle` is the host of effects under a key.
pub fn rules(oracle: &str) -> Vec<Value> {
    let step = |name: &str| json!(format!("You are {name}"));
    let work = |word: &str| json!({ "system_starts_with": step("agent.work"), "user_matches": words(word) });
    let acknowledged = Wish::ALL.into_iter().filter(|wish| wish.is_queued()).map(|wish| {
        let word = wish.word();
        let task = json!({ "text": format!("{word} {ID} please") });
        json!({
            "name": format!("acknowledge {word}"),
            "when": { "system_starts_with": step("agent.acknowledge"), "user_matches": words(word) },
            "reply": { "text": format!("I will: {ID} ."), "tool_calls": [{ "tool": "task.queue", "arguments": task }] },
        })
    });
    let learned = json!({
        "memories": [{ "kind": "insight", "content": "Wishes are granted." }],
        "briefing": { "worth": true, "reason": "It works.", "summary": "The team is there.", "text": "The team is there." },
    });
    let rest = [
        json!({
            "name": "brief",
            "when": { "system_starts_with": step("agent.learn and agent.brief") },
            "reply": { "json": learned, "delay_ms": 100 },
        }),
        json!({
            "name": "learn",
            "when": { "system_starts_with": step("agent.learn") },
            "reply": { "json": [], "delay_ms": 100 },
        }),
        json!({
            "name": "sum up work",
            "when": { "system_starts_with": step("thread.compact") },
            "reply": { "text": "Wishes were granted.", "delay_ms": 100 },
        }),
        json!({
            "name": "begin",
            "when": { "system_starts_with": step("agent.work"), "user_contains": "Get to work on your mission" },
            "reply": "The team is there.",
        }),
        json!({
            "name": "work queue",
            "when": work("queue"),
            "turn": [{ "tool_calls": [keyed(oracle, "a"), process("b")] }, done()],
        }),
        json!({
            "name": "work delegate",
            "when": work("delegate"),
            "turn": [{ "tool_calls": [delegate()] }, done()],
        }),
        json!({
            "name": "work fetch",
            "when": work(WORKER),
            "turn": [{ "tool_calls": [keyed(oracle, "a")] }, done()],
        }),
    ];
    acknowledged.chain(rest).collect()
}

fn words(word: &str) -> String {
    format!(r"^{word} (?<id>\S+) please")
}

fn done() -> Value {
    json!({ "text": format!("Done: {ID} ."), "delay_ms": 100 })
}

fn keyed(oracle: &str, part: &str) -> Value {
    json!({ "tool": "http.get", "arguments": { "url": format!("http://{oracle}/effects/{ID}-{part}") } })
}

fn process(part: &str) -> Value {
    json!({ "tool": "process.run", "arguments": { "program": PROGRAM, "args": [format!("{ID}-{part}"), "0.2"] } })
}

fn delegate() -> Value {
    let arguments = json!({ "worker": WORKER, "task": format!("{WORKER} {ID} please") });
    json!({ "tool": "team.delegate", "arguments": arguments })
}
