//! What a chat client asks for. Pure.
//!
//! A client sends its whole history with every request. Of it, only what the user said is looked at: the last of it is
//! the message, the rest tells which chat and which place in it is meant. Kairo keeps the history itself, and what an
//! agent is told about itself stands in its profile, so system messages and answers are left aside.

use serde_json::{Map, Value};

use super::{
    super::messages::parts::Given,
    content::{self, Told},
    error::Error,
};
use crate::config::GatewayConfig;

/// A request for an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Chat {
    /// The agent.
    pub model: String,
    /// Everything the user said in this chat, as it is told from other chats; the last of it is to be answered.
    pub said: Vec<String>,
    /// The words of the last, and the images and audio that it brings.
    pub text: String,
    pub parts: Vec<Given>,
    /// The end user, as the client names them.
    pub user: Option<String>,
    pub stream: bool,
    /// Whether a stream ends with what it took.
    pub include_usage: bool,
}

/// Reads what a client sent.
pub fn read(body: &[u8], limits: &GatewayConfig) -> Result<Chat, Error> {
    let mut given: Map<String, Value> = match serde_json::from_slice(body) {
        Ok(Value::Object(given)) => given,
        Ok(_) => return Err(Error::invalid(None, "a JSON object is expected")),
        Err(error) => return Err(Error::invalid(None, format!("this is not JSON: {error}"))),
    };
    given.retain(|_, value| !value.is_null());
    for (name, is_harmless, reason) in UNSUPPORTED {
        if given.get(name).is_some_and(|value| !is_harmless(value)) {
            return Err(Error::unsupported(name, format!("{name} is not supported: {reason}")));
        }
    }
    let model = given.get("model").and_then(Value::as_str);
    let model = model.ok_or_else(|| Error::invalid(Some("model"), "model: the name of an agent is expected"))?;
    let user = match given.get("user") {
        None => None,
        Some(Value::String(user)) => Some(user.clone()).filter(|user| !user.is_empty()),
        Some(_) => return Err(Error::invalid(Some("user"), "user: a text is expected")),
    };
    let options = given.get("stream_options");
    let include_usage = flag(options.and_then(|options| options.get("include_usage")), "stream_options.include_usage")?;
    let messages = given.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Error::invalid(Some("messages"), "messages: a list is expected"))?;
    let (said, last) = said(messages, limits.max_text_bytes)?;
    let parts = last.given(limits)?;
    Ok(Chat {
        model: model.to_owned(),
        said,
        text: last.words,
        parts,
        user,
        stream: flag(given.get("stream"), "stream")?,
        include_usage,
    })
}

/// What a message says that has no content.
static NOTHING: Value = Value::Null;

type IsHarmless = fn(&Value) -> bool;

/// Parameters that change what an answer looks like, when their value is harmless all the same, and why they cannot be
/// had. All other parameters say how a model is to be used, which is the agent's business, and are ignored.
const UNSUPPORTED: [(&str, IsHarmless, &str); 12] = [
    ("n", |value| value.as_u64() == Some(1), "an agent gives one answer"),
    ("tools", is_empty, "an agent calls its own tools, which its profile names"),
    ("functions", is_empty, "an agent calls its own tools, which its profile names"),
    ("tool_choice", is_auto, "an agent chooses its tools itself"),
    ("function_call", is_auto, "an agent chooses its tools itself"),
    ("logprobs", is_false, "an agent's answer has no probabilities"),
    ("top_logprobs", |value| value.as_u64() == Some(0), "an agent's answer has no probabilities"),
    ("response_format", |value| value.get("type").and_then(Value::as_str) == Some("text"), "an agent answers in words"),
    ("modalities", is_text_only, "an agent answers in words"),
    ("audio", |_| false, "an agent answers in words"),
    ("web_search_options", |_| false, "an agent searches with its own tools"),
    ("background", is_false, "POST /v1/messages does not wait for the answer"),
];

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_auto(value: &Value) -> bool {
    matches!(value.as_str(), Some("auto" | "none"))
}

fn is_false(value: &Value) -> bool {
    value.as_bool() == Some(false)
}

fn is_text_only(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(|one| one.as_str() == Some("text")))
}

fn flag(value: Option<&Value>, name: &'static str) -> Result<bool, Error> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Error::invalid(Some(name), format!("{name}: true or false is expected"))),
    }
}

/// What the user said, and the last of it, which is to be answered.
fn said(messages: &[Value], longest: usize) -> Result<(Vec<String>, Told<'_>), Error> {
    let mut said = Vec::new();
    let mut last = None;
    for (at, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        match role {
            "user" => last = Some((at, message)),
            "assistant" | "tool" | "function" => last = None,
            "system" | "developer" => {}
            _ => {
                let name = format!("messages[{at}].role");
                let roles = "system, developer, user, assistant or tool is expected";
                return Err(Error::invalid(Some(&name), format!("{name}: {roles}")));
            }
        }
        if role == "user" {
            let content = message.get("content").unwrap_or(&Value::Null);
            // What was said before only tells chats apart, whatever it was.
            said.push(content::read(content, at).map_or_else(|_| content.to_string(), |told| told.mark()));
        }
    }
    let Some((at, message)) = last else {
        return Err(Error::invalid(Some("messages"), "messages: the last one must be the user's, to be answered"));
    };
    let told = content::read(message.get("content").unwrap_or(&NOTHING), at)?;
    if told.is_empty() || told.words.len() > longest {
        let name = format!("messages[{at}].content");
        let found = told.words.len();
        let expected = format!("{name}: text of 1 to {longest} bytes is expected, found {found} bytes");
        return Err(Error::invalid(Some(&name), expected));
    }
    Ok((said, told))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits() -> GatewayConfig {
        GatewayConfig { max_text_bytes: 1_000, ..Default::default() }
    }

    fn chat(body: &Value) -> Result<Chat, Error> {
        read(body.to_string().as_bytes(), &limits())
    }

    fn with(name: &str, value: Value) -> Result<Chat, Error> {
        let mut body = json!({ "model": "coach", "messages": [{ "role": "user", "content": "hi" }] });
        body[name] = value;
        chat(&body)
    }

    #[test]
    fn the_users_words_are_all_that_counts_of_a_history() {
        let messages = json!([
            { "role": "system", "content": "You are a pirate." },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:x" } }] },
            { "role": "assistant", "content": "A cat." },
            { "role": "user", "content": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }] },
            { "role": "system", "content": "Be brief." },
        ]);
        let body = json!({ "model": "coach", "messages": messages, "stream": true, "user": "u",
            "stream_options": { "include_usage": true }, "temperature": 0.3, "max_tokens": 7, "stop": null, "mood": 1 });
        let chat = chat(&body).unwrap();
        assert_eq!((chat.model.as_str(), chat.user.as_deref()), ("coach", Some("u")));
        assert_eq!((chat.said.len(), chat.said[1].as_str()), (2, "one\ntwo"));
        assert!(chat.said[0].starts_with("\n[") && chat.text == "one\ntwo" && chat.stream && chat.include_usage);
    }

    #[test]
    fn what_changes_the_shape_of_an_answer_is_refused_by_name() {
        for (name, bad, harmless) in [
            ("n", json!(2), json!(1)),
            ("tools", json!([{ "type": "function" }]), json!([])),
            ("functions", json!([{ "name": "f" }]), Value::Null),
            ("tool_choice", json!("required"), json!("auto")),
            ("logprobs", json!(true), json!(false)),
            ("response_format", json!({ "type": "json_object" }), json!({ "type": "text" })),
            ("modalities", json!(["text", "audio"]), json!(["text"])),
        ] {
            let error = with(name, bad).unwrap_err();
            assert_eq!((error.param.as_deref(), error.status.as_u16()), (Some(name), 400));
            assert!(with(name, harmless).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, param) in [
            (json!([]), None),
            (json!({}), Some("model")),
            (json!({ "model": 7 }), Some("model")),
            (json!({ "model": "a" }), Some("messages")),
            (json!({ "model": "a", "messages": [] }), Some("messages")),
            (json!({ "model": "a", "messages": [{ "role": "assistant", "content": "x" }] }), Some("messages")),
            (json!({ "model": "a", "messages": [{ "role": "pirate", "content": "x" }] }), Some("messages[0].role")),
            (json!({ "model": "a", "messages": ["x"] }), Some("messages[0].role")),
            (json!({ "model": "a", "messages": [{ "role": "user" }] }), Some("messages[0].content")),
            (json!({ "model": "a", "messages": [{ "role": "user", "content": "" }] }), Some("messages[0].content")),
            (
                json!({ "model": "a", "messages": [{ "role": "user", "content": "x".repeat(1_001) }] }),
                Some("messages[0].content"),
            ),
            (
                json!({ "model": "a", "messages": [{ "role": "user", "content": [{ "type": "input_audio" }] }] }),
                Some("messages[0].content[0]"),
            ),
        ] {
            let error = chat(&body).unwrap_err();
            assert_eq!((error.status.as_u16(), error.param.as_deref()), (400, param), "{body:.100}");
        }
        assert_eq!(with("stream", json!("yes")).unwrap_err().param.as_deref(), Some("stream"));
        assert_eq!(with("user", json!(7)).unwrap_err().param.as_deref(), Some("user"));
        assert_eq!(read("[".repeat(100_000).as_bytes(), &limits()).unwrap_err().status.as_u16(), 400);
    }
}
