//! Reading a document with a conversation, so that whatever is wrong with it is named by its place. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{
    ids::Name,
    imports::{ALL_PARTS, FORMAT, MESSAGES, PARTS, SUMMARY_BYTES, TEXT_BYTES, THREADS, TITLE_BYTES},
    media,
};
use kairo_proto::{
    v1::{ConversationDocument, DocumentMessage, DocumentPart, DocumentThread},
    words::MessageRole,
};
use serde_json::Value;

use crate::{
    fields::{CLIENT_ID, NAME, RequestFields, TIME, json_text, parse_client_id, parse_name, parse_text},
    problem::{FieldError, Problem},
};

/// The most errors that are named for one document: nobody reads more.
const MOST_ERRORS: usize = 100;
/// Longest media type, in bytes.
const MEDIA_TYPE_BYTES: usize = 100;

/// An import request: the document, and the user who gets the conversation, if the request names one.
#[derive(Debug, PartialEq)]
pub struct ImportRequest {
    pub user: Option<Name>,
    pub document: ConversationDocument,
}

pub fn parse(body: &[u8]) -> Result<ImportRequest, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let user = fields.optional("user", NAME, json_text(parse_name));
    let document =
        fields.required("document", "a JSON object", |value: &Value| value.is_object().then(|| value.clone()));
    let document = document.and_then(|value| match parse_document(&value) {
        Ok(document) => Some(document),
        Err(problem) => {
            fields.add_nested_errors("document", problem);
            None
        }
    });
    let read = fields.complete(|| Some(ImportRequest { user, document: document? }));
    read.map_err(|problem| Problem { errors: problem.errors.into_iter().take(MOST_ERRORS).collect(), ..problem })
}

fn parse_document(value: &Value) -> Result<ConversationDocument, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let known = |text: &str| (text == FORMAT).then(|| text.to_owned());
    // Of another version nobody knows what its fields are.
    let format = fields.required("format", format!("{FORMAT}, the version that is known here"), json_text(known));
    let Some(format) = format else { return Err(fields.into_problem()) };
    let agent = fields.required("agent", NAME, json_text(parse_name));
    let user = fields.required("user", NAME, json_text(parse_name));
    let exported_at = fields.optional("exported_at", TIME, json_text(parse_time)).unwrap_or_default();
    let threads = parse_list(&mut fields, "threads", 1, THREADS, parse_thread);
    let messages = parse_list(&mut fields, "messages", 0, MESSAGES, parse_message);
    check_references(&mut fields, &threads, &messages);
    fields.complete(|| {
        let agent = agent?.to_string();
        let user = user?.to_string();
        Some(ConversationDocument { format, agent, user, exported_at, threads, messages })
    })
}

/// A list of objects; what is wrong with one stands in the fields.
fn parse_list<T>(
    fields: &mut RequestFields<Value>,
    field: &'static str,
    least: usize,
    most: usize,
    read: impl Fn(&Value) -> Result<T, Problem>,
) -> Vec<T> {
    let few = |value: &Value| value.as_array().filter(|list| (least..=most).contains(&list.len())).cloned();
    let given = fields.required(field, format!("a list of {least} to {most}"), few).unwrap_or_default();
    let mut items = Vec::with_capacity(given.len());
    for (at, value) in given.iter().enumerate() {
        match read(value) {
            Ok(item) => items.push(item),
            Err(problem) => fields.add_nested_errors(&format!("{field}[{at}]"), problem),
        }
    }
    items
}

fn parse_thread(value: &Value) -> Result<DocumentThread, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let thread_id = fields.required("thread_id", NAME, json_text(parse_name));
    let words = |most: usize| move |text: &str| (text.len() <= most).then(|| text.to_owned());
    let title = fields.optional("title", format!("up to {TITLE_BYTES} bytes"), json_text(words(TITLE_BYTES)));
    let summary = fields.optional("summary", format!("up to {SUMMARY_BYTES} bytes"), json_text(words(SUMMARY_BYTES)));
    fields.complete(|| {
        let title = title.unwrap_or_default();
        let summary = summary.unwrap_or_default();
        Some(DocumentThread { thread_id: thread_id?.to_string(), title, summary })
    })
}

fn parse_message(value: &Value) -> Result<DocumentMessage, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let id = fields.optional("id", CLIENT_ID, json_text(parse_client_id)).unwrap_or_default();
    let thread_id = fields.required("thread_id", NAME, json_text(parse_name));
    let spoke = |text: &str| match MessageRole::from(text) {
        MessageRole::User | MessageRole::Agent => Some(text.to_owned()),
        MessageRole::Failure | MessageRole::Unknown(_) => None,
    };
    let role = fields.required("role", "user or agent", json_text(spoke));
    let parts = if fields.has("parts") { parse_list(&mut fields, "parts", 0, PARTS, parse_part) } else { Vec::new() };
    // Parts say something by themselves.
    let least = usize::from(parts.is_empty());
    let words = |text: &str| (least..=TEXT_BYTES).contains(&text.len()).then(|| text.to_owned());
    let said = fields.required("text", format!("text of {least} to {TEXT_BYTES} bytes"), json_text(words));
    let time = fields.optional("time", TIME, json_text(parse_time)).unwrap_or_default();
    fields.complete(|| {
        let thread_id = thread_id?.to_string();
        let role = role?;
        let text = said?;
        Some(DocumentMessage { id, thread_id, role, text, time, parts })
    })
}

fn parse_part(value: &Value) -> Result<DocumentPart, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let is_type = |text: &str| {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'+' | b'-' | b'/');
        (text.len() <= MEDIA_TYPE_BYTES && text.contains('/') && text.bytes().all(plain)).then(|| text.to_owned())
    };
    let media_type = fields.required("media_type", "a media type such as image/png", json_text(is_type));
    let is_digest = |text: &str| media::is_digest(text).then(|| text.to_owned());
    let digest = fields.required("digest", "a SHA-256 in 64 hexadecimal digits", json_text(is_digest));
    let size = fields.optional("size", "a number of bytes", Value::as_u64).unwrap_or_default();
    let is_name = |text: &str| media::is_name(text).then(|| text.to_owned());
    let expected = format!("a file name of up to {} bytes, on one line", media::NAME_BYTES);
    let name = fields.optional("name", expected, json_text(is_name)).unwrap_or_default();
    fields.complete(|| Some(DocumentPart { media_type: media_type?, digest: digest?, size, name }))
}

/// A time in one form, whatever form it has in the document.
fn parse_time(text: &str) -> Option<String> {
    parse_text::<Timestamp>(text).map(|time| time.to_string())
}

/// Checks that the parts of a document fit together. Skipped if a part itself is wrong: then only that is named.
fn check_references(fields: &mut RequestFields<Value>, threads: &[DocumentThread], messages: &[DocumentMessage]) {
    if fields.has_errors() {
        return;
    }
    let mut named = BTreeSet::new();
    for (at, thread) in threads.iter().enumerate() {
        if !named.insert(thread.thread_id.as_str()) {
            add_error(
                fields,
                format!("threads[{at}].thread_id"),
                "a name that no thread before it has",
                &thread.thread_id,
            );
        }
    }
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| !named.contains(message.thread_id.as_str()))
    {
        add_error(
            fields,
            format!("messages[{at}].thread_id"),
            "one of the threads of the document",
            &message.thread_id,
        );
    }
    let parts: usize = messages.iter().map(|message| message.parts.len()).sum();
    if parts > ALL_PARTS {
        add_error(
            fields,
            "messages".to_owned(),
            &format!("messages with up to {ALL_PARTS} parts in all"),
            &parts.to_string(),
        );
    }
}

fn add_error(fields: &mut RequestFields<Value>, field: String, expected: &str, found: &str) {
    let error = FieldError { field, expected: expected.to_owned(), found: Some(found.to_owned()) };
    fields.add_nested_errors("", Problem::invalid_fields(vec![error]));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(messages: Value) -> Value {
        let threads = json!([{ "thread_id": "dinner", "title": "Dinner", "summary": null }]);
        json!({ "format": FORMAT, "agent": "cook", "user": "ann", "threads": threads, "messages": messages })
    }

    fn message_entry(more: Value) -> Value {
        let mut message = json!({ "thread_id": "dinner", "role": "user", "text": "soup?" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    }

    fn reads(document: &Value) -> Result<ImportRequest, Vec<(String, String)>> {
        let asked = parse(json!({ "document": document }).to_string().as_bytes());
        asked.map_err(|problem| problem.errors.into_iter().map(|error| (error.field, error.expected)).collect())
    }

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let digest = "0f".repeat(32);
        let part = json!({ "media_type": "image/png", "digest": digest, "size": 7, "name": "a.png" });
        let message =
            message_entry(json!({ "id": "m-1", "time": "2026-11-21T11:00:00+01:00", "parts": [part], "text": "" }));
        let asked = reads(&document(json!([message, message_entry(json!({ "role": "agent" }))]))).unwrap();
        assert_eq!((asked.user, asked.document.agent.as_str(), asked.document.threads.len()), (None, "cook", 1));
        let [first, second] = asked.document.messages.try_into().unwrap();
        assert_eq!(
            (first.time.as_str(), first.parts[0].size, second.role.as_str()),
            ("2026-11-21T10:00:00Z", 7, "agent")
        );
        let named = json!({ "user": "joe", "document": document(json!([])) }).to_string();
        assert_eq!(parse(named.as_bytes()).unwrap().user.unwrap().as_str(), "joe");
    }

    #[test]
    fn whatever_is_wrong_is_named_with_its_place_and_what_was_expected() {
        let mut messages = vec![message_entry(json!({})); 3];
        messages.push(message_entry(json!({ "role": "cook" })));
        assert_eq!(
            reads(&document(json!(messages))).unwrap_err(),
            [("document.messages[3].role".to_owned(), "user or agent".to_owned())]
        );
        let long = "x".repeat(TEXT_BYTES + 1);
        let many = vec![json!({ "media_type": "image/png", "digest": "0f".repeat(32) }); PARTS + 1];
        for (more, field) in [
            (json!({ "role": "failure" }), "role"),
            (json!({ "text": "" }), "text"),
            (json!({ "text": long }), "text"),
            (json!({ "thread_id": "Dinner" }), "thread_id"),
            (json!({ "thread_id": "lunch" }), "thread_id"),
            (json!({ "time": "yesterday" }), "time"),
            (json!({ "id": "a b" }), "id"),
            (json!({ "mood": "good" }), "mood"),
            (json!({ "parts": many }), "parts"),
            (json!({ "parts": [{ "media_type": "image/png", "digest": "ABC" }] }), "parts[0].digest"),
            (json!({ "parts": [{ "media_type": "PNG", "digest": "0f".repeat(32) }] }), "parts[0].media_type"),
        ] {
            let wrong = reads(&document(json!([message_entry(more)]))).unwrap_err();
            assert_eq!(wrong.iter().map(|it| &it.0).collect::<Vec<_>>(), [&format!("document.messages[0].{field}")]);
        }
    }

    #[test]
    fn an_unknown_version_is_named_and_nothing_else_of_it_is_judged() {
        let mut newer = document(json!("another form"));
        newer["format"] = json!("kairo.conversation.v2");
        let wrong = parse(json!({ "document": newer }).to_string().as_bytes()).unwrap_err();
        let [error] = wrong.errors.try_into().unwrap();
        assert_eq!(
            (error.field.as_str(), error.found.as_deref()),
            ("document.format", Some("\"kairo.conversation.v2\""))
        );
        assert!(error.expected.starts_with(FORMAT));
    }

    #[test]
    fn there_are_bounds_on_how_much_it_holds() {
        let mut twice = document(json!([]));
        twice["threads"] = json!([{ "thread_id": "dinner" }, { "thread_id": "dinner" }]);
        assert_eq!(reads(&twice).unwrap_err()[0].0, "document.threads[1].thread_id");
        twice["threads"] = json!([]);
        assert_eq!(reads(&twice).unwrap_err()[0].0, "document.threads");
        twice["threads"] = json!([{ "thread_id": "dinner", "title": "x".repeat(TITLE_BYTES + 1) }]);
        assert_eq!(reads(&twice).unwrap_err()[0].0, "document.threads[0].title");
        assert_eq!(reads(&document(json!(vec![7; MESSAGES + 1]))).unwrap_err()[0].0, "document.messages");
        assert_eq!(reads(&document(json!(vec![7; MESSAGES]))).unwrap_err().len(), MOST_ERRORS);
        let part = json!({ "media_type": "image/png", "digest": "0f".repeat(32) });
        let full = message_entry(json!({ "parts": vec![part; PARTS] }));
        assert_eq!(reads(&document(json!(vec![full; 16]))).unwrap_err()[0].0, "document.messages");
    }
}
