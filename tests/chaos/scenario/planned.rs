//! The model's answers to wishes of agents that plan: the thread of a message, the plan, its chain, and the answer.

use serde_json::{Value, json};

use super::{GUARDED, MAIL, OUTSIDE, PROGRAM, subject};
use crate::chaos::plan::Wish;

/// Time from a wish until its task is due.
const LATER: &str = "2 seconds";
/// Between two times of a repeated task; agents accept no shorter one.
const AGAIN: &str = "10 seconds";
/// The wish's id, as rules find it.
const ID: &str = "{{ captures.id }}";

/// The rules, in the order in which they must be tried. `oracle` is the host of effects under a key.
pub fn rules(oracle: &str) -> Vec<Value> {
    let say = |name: &str| json!(format!("You are {name}"));
    let mut rules = vec![
        json!({
            "name": "match a question",
            "when": { "system_starts_with": say("thread.match"), "user_contains": "\"message\":\"ask " },
            "reply": { "json": { "action": "suggest_new", "reason": "Something else." } },
        }),
        json!({
            "name": "match all else",
            "when": { "system_starts_with": say("thread.match") },
            "reply": { "json": { "action": "continue" } },
        }),
        json!({
            "name": "sum up",
            "when": { "system_starts_with": say("thread.summarize") },
            "reply": { "json": { "title": "A wish", "summary": "Something was wished for." } },
        }),
    ];
    for wish in Wish::ALL.into_iter().filter(|wish| wish.is_planned()) {
        let word = wish.word();
        let words = format!(r"{word} (?<id>\S+) please");
        let when = |step: &str| json!({ "system_starts_with": say(step), "user_matches": words });
        let done = json!({ "text": format!("Done: {ID} ."), "delay_ms": 100 });
        let Some(chain) = chain(wish, oracle) else {
            rules.push(json!({ "name": format!("answer {word}"), "when": when("agent.think"), "reply": done }));
            continue;
        };
        let told = json!({ "system_starts_with": say("agent.think"), "user_matches": words, "step_at_least": 1 });
        let plan = json!({ "event": "agent.chain", "params": { "plan": format!("{word} {ID} please") } });
        rules.extend([
            json!({ "name": format!("tell {word}"), "when": told, "reply": done }),
            json!({ "name": format!("plan {word}"), "when": when("agent.think"), "reply": { "json": plan } }),
            json!({ "name": format!("compile {word}"), "when": when("agent.chain"), "reply": { "json": chain } }),
        ]);
    }
    rules
}

/// The chain that a wish comes to; none if it is for words only.
fn chain(wish: Wish, oracle: &str) -> Option<Value> {
    let keyed = |part: &str| {
        let url = format!("http://{oracle}/effects/{ID}-{part}");
        json!({ "event": "http.get", "params": { "url": url } })
    };
    let process = |part: &str, seconds: &str| {
        let args = json!([format!("{ID}-{part}"), seconds]);
        json!({ "event": "process.run", "params": { "program": PROGRAM, "args": args } })
    };
    let task = |event: &str, action: Value, more: Value| {
        let mut params = json!({ "title": ID, "action": action });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        json!([{ "event": event, "params": params }])
    };
    let hook = |trigger: &str, condition: String| {
        let action = json!([[keyed("a"), process("b", "0")]]);
        task("task.register", action, json!({ "trigger": format!("post:{trigger}"), "condition": condition }))
    };
    Some(match wish {
        Wish::Plan => {
            json!([[keyed("a"), process("b", "0.2"), keyed("c")], process("d", "0.{http.get[0].status}"), keyed("e"),])
        }
        Wish::Later => {
            let action = json!([[keyed("at-{event.due_at}"), process("b", "0")]]);
            task("task.schedule", action, json!({ "type": "delay", "delay": LATER }))
        }
        Wish::Repeat => {
            let action = json!([keyed("at-{event.due_at}")]);
            task("task.schedule", action, json!({ "type": "repeat", "interval": AGAIN }))
        }
        Wish::Consent => json!([{ "event": GUARDED, "params": { "add": "1 day" } }, keyed("a")]),
        Wish::Hook => hook(OUTSIDE, format!("wish = '{ID}'")),
        Wish::Mail => hook(MAIL, format!("subject = '{}'", subject(ID))),
        _ => return None,
    })
}
