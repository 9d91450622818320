//! Ways in which real endpoints misbehave, each by a name, with what is right when they do. Pure.
//!
//! They are data (`scenarios/presets.yaml`), so that scenarios, tests and documents share them.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

const PRESETS: &str = include_str!("../../scenarios/presets.yaml");

/// A way to misbehave.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Lower-case letters and digits.
    pub name: String,
    /// The endpoint that does this, and what it does.
    pub what: String,
    /// The result that a client gets that copes.
    pub expect: Expect,
    /// As in a scenario, without names.
    pub rules: Vec<Value>,
}

/// The right result. Absent fields are not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Texts that the reply contains.
    pub reply: Vec<String>,
    /// Texts that it does not contain.
    pub never: Vec<String>,
    /// Tools that ran.
    pub tools: Option<usize>,
    /// Requests that the endpoint got.
    pub requests: Option<u64>,
    /// The most that it may get.
    pub requests_at_most: Option<u64>,
    /// The kind of the failure; empty for none.
    pub failure: Option<String>,
    /// The status of the answer of chat completions: one of these.
    pub status: Vec<u16>,
    /// Its finish reason.
    pub finish: Option<String>,
    /// Tokens of the answer that are counted, at least.
    pub counted_tokens: Option<u64>,
    /// Long messages that are sent before, so that there is something to shorten.
    pub long_messages: usize,
    /// True if a fallback answers where there is one.
    pub fallback: bool,
}

/// All of them.
#[must_use]
pub fn all() -> &'static [Preset] {
    static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| serde_saphyr::from_str(PRESETS).unwrap_or_default());
    &ALL
}

/// A scenario that plays them all: a user message that holds `#name` chooses one, for the whole conversation. The model
/// `spare` always answers.
#[must_use]
pub fn scenario() -> String {
    let preset = |preset: &Preset| json!({ "name": preset.name, "when": { "any_user_matches": format!(r"#{}\b", preset.name) }, "misbehave": preset.name });
    let mut rules = vec![json!({ "name": "spare", "when": { "model": "spare" }, "reply": "the spare model answers" })];
    rules.extend(all().iter().map(preset));
    rules.push(json!({ "name": "hello", "when": {}, "reply": "hello" }));
    json!({ "rules": rules }).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Scenario, answer::Reply, conversation::Conversation, matching, wire::request::ChatRequest};

    #[test]
    fn the_presets_are_read_and_are_a_scenario() {
        let read: Result<Vec<Preset>, _> = serde_saphyr::from_str(PRESETS);
        assert!(read.is_ok(), "{:?}", read.err());
        assert!(all().len() > 80);
        let names: HashSet<&str> = all().iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names.len(), all().len(), "names are unique");
        for preset in all() {
            assert!(
                preset.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
                "{}",
                preset.name
            );
            assert!(!preset.what.is_empty() && !preset.rules.is_empty(), "{}", preset.name);
        }
        if let Err(mistakes) = Scenario::parse(&scenario()) {
            panic!("{mistakes}");
        }
    }

    /// The reply to the first request of a conversation, of so many characters.
    fn first_reply(scenario: &Scenario, name: &str, padding: usize) -> Reply {
        let text = format!("please #{name} {}", "x".repeat(padding));
        let tools =
            json!([{ "type": "function", "function": { "name": "tools__now", "parameters": { "type": "object" } } }]);
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": text }], "tools": tools }).to_string();
        let request: ChatRequest<'_> = serde_json::from_str(&body).expect("it is a request");
        let conversation = Conversation::from_request(&request).with_body(body.as_bytes());
        let answer = matching::answer(scenario, &conversation, |_| true);
        assert!(answer.rule.is_some_and(|rule| rule.starts_with(&format!("{name}/"))), "{name}: {:?}", answer.rule);
        answer.reply
    }

    #[test]
    fn every_preset_answers_and_no_template_fails() {
        let scenario = Scenario::parse(&scenario()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        for preset in all() {
            for padding in [0, 40_000] {
                match first_reply(&scenario, &preset.name, padding) {
                    Reply::Raw(raw) => assert!(raw.to_wire_answer().is_ok(), "{}", preset.name),
                    Reply::Message(message) => {
                        let text = message.text.unwrap_or_default();
                        assert!(!text.starts_with("(model simulator)"), "{}: {text}", preset.name);
                    }
                    Reply::Error(error) => assert!(error.status >= 400, "{}", preset.name),
                }
            }
        }
    }
}
