//! A server's questions to a person in the middle of a call (elicitation), in the terms of the protocol.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kairo_proto::time;
use kairo_proto::v1::{ToolQuestion, ToolQuestionEnd};
use kairo_proto::words::QuestionAnswered;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::questions::{Answer, Question, Questions, Subject, Wanted};
use crate::tool::{CallContext, ProgressReporter, QuestionChange};

/// Longest question that is put to a person, in characters; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 2_000;
/// Largest schema of the fields of a question, in bytes; larger ones are declined.
const MAX_SCHEMA_BYTES: usize = 16 * 1024;

/// Parts of names of fields that no form may have: who is asked for a secret is asked at the server's own address.
const SECRETS: [&str; 9] = [
    "password",
    "passphrase",
    "secret",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "privatekey",
    "creditcard",
    "cardnumber",
];

/// Routes a server's questions to people.
#[derive(Debug, Clone)]
pub struct Asking {
    server: Arc<str>,
    questions: Option<Arc<Questions>>,
    /// The running calls: before 2026-07-28, a question does not name the call it belongs to.
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    under_way: BTreeMap<u64, Call>,
}

/// A call that may be asked about.
#[derive(Debug, Clone)]
struct Call {
    subject: Subject,
    progress: ProgressReporter,
    over: CancellationToken,
}

/// Takes a call away when it ends, however it ends, and its questions with it.
#[derive(Debug)]
pub struct Entry {
    asking: Asking,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(call) = self.asking.calls().under_way.remove(&self.number) {
            call.over.cancel();
        }
    }
}

impl Asking {
    pub fn new(server: Arc<str>, questions: Option<Arc<Questions>>) -> Self {
        Self { server, questions, calls: Arc::default() }
    }

    /// Returns true if questions can reach a person.
    pub fn is_possible(&self) -> bool {
        self.questions.is_some()
    }

    /// Registers a call until the returned entry is dropped.
    pub fn enter(&self, ctx: &CallContext) -> Entry {
        let call = self.call(ctx);
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.under_way.insert(number, call);
        Entry { asking: self.clone(), number }
    }

    /// Asks on behalf of a call that is known.
    pub async fn elicit(&self, params: ElicitRequestParams, ctx: &CallContext) -> ElicitResult {
        self.put(params, self.call(ctx)).await
    }

    /// Asks on behalf of the call that is under way. Of several, all must be of one user: nobody is asked about what is another's.
    pub async fn elicit_for_any(&self, params: ElicitRequestParams) -> ElicitResult {
        let call = {
            let calls = self.calls();
            let newest = calls.under_way.values().next_back().cloned();
            newest.filter(|newest| calls.under_way.values().all(|call| call.subject.user == newest.subject.user))
        };
        match call {
            Some(call) => self.put(params, call).await,
            None => {
                tracing::info!(server = %self.server, "a question was declined: it belongs to no user's call for sure");
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }

    async fn put(&self, params: ElicitRequestParams, call: Call) -> ElicitResult {
        let Call { subject, progress, over } = call;
        let (Some(questions), Some((message, wanted)), false) =
            (&self.questions, read(params), subject.user.is_empty())
        else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let told = format!("{} asks {}, who answers with kairo inbox: {message}", self.server, subject.user);
        let Some(opened) = questions.put(subject, message, wanted) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let _wait = progress.waiting().begin();
        let question = opened.question().map(|question| Box::new(told_of(question)));
        let id = opened.id();
        if let Some(question) = question {
            progress.tell_question(QuestionChange::Asked { words: told, question });
        }
        let asked = over.run_until_cancelled(opened.answer()).await.unwrap_or(Answer::Cancel);
        let action = match &asked {
            Answer::Accept(_) => QuestionAnswered::Accept,
            Answer::Decline => QuestionAnswered::Decline,
            Answer::Cancel => QuestionAnswered::Cancel,
        };
        progress.tell_question(QuestionChange::Ended(ToolQuestionEnd {
            question_id: id.to_string(),
            action: action.as_str().to_owned(),
        }));
        match asked {
            Answer::Accept(content) if content.is_null() => ElicitResult::new(ElicitationAction::Accept),
            Answer::Accept(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
            Answer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    fn call(&self, ctx: &CallContext) -> Call {
        let subject = Subject {
            user: ctx.user.clone().unwrap_or_default(),
            agent: ctx.agent.clone(),
            thread_id: ctx.thread_id.clone(),
            action_id: ctx.action_id.clone(),
            server: self.server.to_string(),
        };
        Call { subject, progress: ctx.progress.clone(), over: ctx.cancel.child_token() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question as the log tells it.
fn told_of(question: Question) -> ToolQuestion {
    let (schema, url) = match question.wanted {
        Wanted::Form(schema) => (schema.to_string(), String::new()),
        Wanted::Visit(url) => (String::new(), url),
    };
    let until = Some(time::message(question.until));
    let Question { id, subject, message, .. } = question;
    let Subject { user, server, .. } = subject;
    ToolQuestion { question_id: id.to_string(), server, message, schema, url, until, user }
}

/// Returns true if a form asks for a secret, which the protocol forbids: only the server itself may ask, at its own
/// address.
fn asks_for_secret(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(name, property)| {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let is_hidden = property.get("format").and_then(Value::as_str) == Some("password");
        is_hidden
            || property.get("writeOnly") == Some(&Value::Bool(true))
            || SECRETS.iter().any(|secret| name.contains(secret))
    })
}

/// Reads the message and the wanted answer; none if the question cannot be put to a person.
fn read(params: ElicitRequestParams) -> Option<(String, Wanted)> {
    let (message, wanted) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).ok()?;
            if asks_for_secret(&schema) {
                return None;
            }
            (schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some((message, Wanted::Form(schema)))?
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let address = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
            (message, Wanted::Visit(address.to_string()))
        }
        _ => return None,
    };
    Some((message.chars().take(MAX_MESSAGE_CHARS).collect(), wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(params: Value) -> Option<Wanted> {
        read(serde_json::from_value(params).unwrap()).map(|(_, wanted)| wanted)
    }

    #[test]
    fn forms_and_addresses_of_the_web_are_put_to_people() {
        let schema = json!({"type": "object", "properties": {"seat": {"type": "string"}}});
        let form = asked(json!({"message": "Which seat?", "requestedSchema": schema}));
        assert!(matches!(form, Some(Wanted::Form(asked)) if asked["properties"]["seat"]["type"] == "string"));
        let visit = |url: &str| asked(json!({"mode": "url", "message": "Pay", "url": url, "elicitationId": "1"}));
        assert_eq!(visit("https://pay.example/1"), Some(Wanted::Visit("https://pay.example/1".into())));
        for name in ["password", "API key", "client_secret", "cardNumber"] {
            let schema = json!({"type": "object", "properties": {name: {"type": "string"}}});
            assert_eq!(asked(json!({"message": "?", "requestedSchema": schema})), None, "{name}");
        }
        for url in ["javascript:alert(1)", "file:///etc/passwd", "pay"] {
            assert_eq!(visit(url), None, "{url}");
        }
    }
}
