//! The request of a chat client. Pure.
//!
//! A client sends its whole history with every request. Its end is the input to answer ([`history`]); the entries
//! before it identify the conversation, and a new thread begins with them. Instructions, tools and the form of the
//! answer are the client's ([`tools`]); how a model is used is the agent's business.

pub mod asides;
pub mod content;
pub mod history;
pub mod tools;

use kairo_core::ids;
use serde_json::{Map, Value};

use self::{
    history::{ChatInput, HistoryEntry},
    tools::ClientTools,
};
use super::error::ChatError;
use crate::config::GatewayConfig;

/// A request for an answer.
#[derive(Debug)]
pub struct CompletionRequest {
    /// The agent.
    pub model: String,
    pub instructions: String,
    /// The conversation before the input, as the client tells it.
    pub history: Vec<HistoryEntry>,
    /// The end of the conversation, which is to be answered.
    pub input: ChatInput,
    pub tools: ClientTools,
    /// The end user, as the client names them.
    pub user: Option<String>,
    /// The thread that the client names, whose history Kairo keeps.
    pub thread: Option<String>,
    /// The client's name for the conversation whose history it keeps itself.
    pub conversation: Option<String>,
    /// True if it is no turn of a conversation.
    pub is_aside: bool,
    /// True if the answer is to be the result of the work that an agent in the background queues.
    pub awaits_work: bool,
    pub stream: bool,
    /// True if a stream ends with its token usage.
    pub include_usage: bool,
    /// The digest of all fields that the answer depends on.
    pub digest: String,
}

/// Reads what a client sent.
pub fn parse(body: &[u8], limits: &GatewayConfig) -> Result<CompletionRequest, ChatError> {
    let mut given: Map<String, Value> = match serde_json::from_slice(body) {
        Ok(Value::Object(given)) => given,
        Ok(_) => return Err(ChatError::invalid(None, "a JSON object is expected")),
        Err(error) => return Err(ChatError::invalid(None, format!("this is not JSON: {error}"))),
    };
    given.retain(|_, value| !value.is_null());
    for (name, is_harmless, reason) in UNSUPPORTED {
        if given.get(name).is_some_and(|value| !is_harmless(value)) {
            return Err(ChatError::unsupported_parameter(name, format!("{name} is not supported: {reason}")));
        }
    }
    let model = given.get("model").and_then(Value::as_str);
    let model = model.ok_or_else(|| ChatError::invalid(Some("model"), "model: the name of an agent is expected"))?;
    let user = match given.get("user") {
        None => None,
        Some(Value::String(user)) => Some(user.clone()).filter(|user| !user.is_empty()),
        Some(_) => return Err(ChatError::invalid(Some("user"), "user: a text is expected")),
    };
    let options = given.get("stream_options");
    let include_usage =
        parse_flag(options.and_then(|options| options.get("include_usage")), "stream_options.include_usage")?;
    let messages = given.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| ChatError::invalid(Some("messages"), "messages: a list is expected"))?;
    let read = history::parse(messages, limits)?;
    let tools = tools::parse(&given)?;
    let metadata = given.get("metadata");
    let is_aside = read.input.results.is_empty() && asides::is_aside(metadata, &read.input.text);
    Ok(CompletionRequest {
        model: model.to_owned(),
        thread: thread_name(&given),
        conversation: first_text_field(metadata, &["conversation_id", "chat_id", "session_id"]),
        is_aside,
        awaits_work: parse_answer_kind(metadata.and_then(|metadata| metadata.get("answer")))?,
        user,
        stream: parse_flag(given.get("stream"), "stream")?,
        include_usage,
        digest: request_digest(&given),
        instructions: read.instructions,
        history: read.history,
        input: read.input,
        tools,
    })
}

/// Returns true if the answer is to be the result of work.
fn parse_answer_kind(value: Option<&Value>) -> Result<bool, ChatError> {
    match value.map(|value| value.as_str().unwrap_or_default()) {
        None => Ok(false),
        Some(kind) => is_result(kind).ok_or_else(|| {
            ChatError::invalid(Some("metadata.answer"), "metadata.answer: expected acknowledgement or result")
        }),
    }
}

/// Returns true if this kind of answer is the result of work; none if the kind is unknown.
pub fn is_result(kind: &str) -> Option<bool> {
    match kind {
        "acknowledgement" => Some(false),
        "result" => Some(true),
        _ => None,
    }
}

/// The thread that a request names: `metadata.thread_id`, or OpenAI's `conversation`, a text or an object with an id.
fn thread_name(given: &Map<String, Value>) -> Option<String> {
    let conversation = given.get("conversation");
    let id = conversation.and_then(|conversation| conversation.as_str().or_else(|| conversation.get("id")?.as_str()));
    first_text_field(given.get("metadata"), &["thread_id"]).or(id.filter(|id| !id.is_empty()).map(str::to_owned))
}

/// The first of these fields that is a text.
fn first_text_field(metadata: Option<&Value>, fields: &[&str]) -> Option<String> {
    let text = |field: &&str| metadata?.get(*field)?.as_str().filter(|text| !text.is_empty());
    fields.iter().find_map(text).map(str::to_owned)
}

/// Returns the digest of a request without the fields that only change how the answer travels.
fn request_digest(given: &Map<String, Value>) -> String {
    let counts = |(name, _): &(&String, &Value)| !["stream", "stream_options"].contains(&name.as_str());
    let counted: Map<String, Value> =
        given.iter().filter(counts).map(|(name, value)| (name.clone(), value.clone())).collect();
    ids::from_parts("openai-request", &[Value::Object(counted).to_string().as_str()]).to_string()
}

type IsHarmless = fn(&Value) -> bool;

/// Parameters that change what an answer looks like, when their value is harmless all the same, and why they cannot be
/// had. All other parameters say how a model is to be used, which is the agent's business, and are ignored.
const UNSUPPORTED: [(&str, IsHarmless, &str); 9] = [
    ("n", |value| value.as_u64() == Some(1), "an agent gives one answer"),
    ("functions", is_empty, "send tools"),
    ("function_call", is_auto, "send tool_choice"),
    ("logprobs", is_false, "an agent's answer has no probabilities"),
    ("top_logprobs", |value| value.as_u64() == Some(0), "an agent's answer has no probabilities"),
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

fn parse_flag(value: Option<&Value>, name: &'static str) -> Result<bool, ChatError> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ChatError::invalid(Some(name), format!("{name}: true or false is expected"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits() -> GatewayConfig {
        GatewayConfig { max_text_bytes: 1_000, ..Default::default() }
    }

    fn chat(body: &Value) -> Result<CompletionRequest, ChatError> {
        parse(body.to_string().as_bytes(), &limits())
    }

    fn with(name: &str, value: Value) -> Result<CompletionRequest, ChatError> {
        let mut body = json!({ "model": "coach", "messages": [{ "role": "user", "content": "hi" }] });
        body[name] = value;
        chat(&body)
    }

    #[test]
    fn a_request_is_read_whole() {
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
        assert_eq!((chat.history.len(), chat.input.text.as_str()), (2, "one\ntwo"));
        assert!(chat.history[0].mark.starts_with("\n[") && chat.stream && chat.include_usage);
        assert_eq!(chat.instructions, "You are a pirate.\n\nBe brief.");
    }

    #[test]
    fn what_changes_the_shape_of_an_answer_is_refused_by_name() {
        for (name, bad, harmless) in [
            ("n", json!(2), json!(1)),
            ("functions", json!([{ "name": "f" }]), Value::Null),
            ("logprobs", json!(true), json!(false)),
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
        assert_eq!(parse("[".repeat(100_000).as_bytes(), &limits()).unwrap_err().status.as_u16(), 400);
    }

    #[test]
    fn an_answer_is_an_acknowledgement_or_a_result() {
        let awaits = |kind: &str| with("metadata", json!({ "answer": kind })).map(|chat| chat.awaits_work);
        assert_eq!((awaits("acknowledgement").unwrap(), awaits("result").unwrap()), (false, true));
        assert_eq!(awaits("soon").unwrap_err().param.as_deref(), Some("metadata.answer"));
        assert!(!with("metadata", json!({})).unwrap().awaits_work);
    }

    #[test]
    fn what_a_conversation_is_called_stands_in_several_places() {
        let names = |name: &str, value: Value| with(name, value).map(|chat| (chat.thread, chat.conversation)).unwrap();
        assert_eq!(names("conversation", json!("c1")), (Some("c1".into()), None));
        assert_eq!(names("conversation", json!({ "id": "c1" })), (Some("c1".into()), None));
        assert_eq!(names("metadata", json!({ "thread_id": "t" })), (Some("t".into()), None));
        assert_eq!(names("metadata", json!({ "chat_id": "t" })), (None, Some("t".into())));
        assert_eq!(names("metadata", json!({ "chat_id": "" })), (None, None));
    }

    #[test]
    fn the_digest_is_of_what_the_answer_depends_on() {
        let digest = |name: &str, value: Value| with(name, value).unwrap().digest;
        assert_eq!(digest("stream", json!(true)), digest("stream", json!(false)));
        assert_ne!(digest("temperature", json!(1)), digest("temperature", json!(0)));
    }
}
