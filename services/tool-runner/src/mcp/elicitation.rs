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

use crate::questions::{QuestionKind, Questions, Subject, UserAnswer, UserQuestion};
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
pub struct ElicitationRouter {
    server: Arc<str>,
    questions: Option<Arc<Questions>>,
    /// The running calls: before 2026-07-28, a question does not name the call it belongs to.
    calls: Arc<Mutex<OpenCalls>>,
}

#[derive(Debug, Default)]
struct OpenCalls {
    last: u64,
    under_way: BTreeMap<u64, OpenCall>,
}

/// A call that may be asked about.
#[derive(Debug, Clone)]
struct OpenCall {
    subject: Subject,
    progress: ProgressReporter,
    over: CancellationToken,
}

/// Takes a call away when it ends, however it ends, and its questions with it.
#[derive(Debug)]
pub struct OpenCallGuard {
    asking: ElicitationRouter,
    number: u64,
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        if let Some(call) = self.asking.lock_calls().under_way.remove(&self.number) {
            call.over.cancel();
        }
    }
}

impl ElicitationRouter {
    pub fn new(server: Arc<str>, questions: Option<Arc<Questions>>) -> Self {
        Self { server, questions, calls: Arc::default() }
    }

    /// Returns true if questions can reach a person.
    pub fn can_ask(&self) -> bool {
        self.questions.is_some()
    }

    /// Registers a call until the returned entry is dropped.
    pub fn register_call(&self, ctx: &CallContext) -> OpenCallGuard {
        let call = self.open_call(ctx);
        let mut calls = self.lock_calls();
        calls.last += 1;
        let number = calls.last;
        calls.under_way.insert(number, call);
        OpenCallGuard { asking: self.clone(), number }
    }

    /// Asks on behalf of a call that is known.
    pub async fn elicit(&self, params: ElicitRequestParams, ctx: &CallContext) -> ElicitResult {
        self.ask_person(params, self.open_call(ctx)).await
    }

    /// Asks on behalf of the call that is under way. Of several, all must be of one user: nobody is asked about what is another's.
    pub async fn elicit_for_any(&self, params: ElicitRequestParams) -> ElicitResult {
        let call = {
            let calls = self.lock_calls();
            let newest = calls.under_way.values().next_back().cloned();
            newest.filter(|newest| calls.under_way.values().all(|call| call.subject.user == newest.subject.user))
        };
        match call {
            Some(call) => self.ask_person(params, call).await,
            None => {
                tracing::info!(server = %self.server, "a question was declined: it belongs to no user's call for sure");
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }

    async fn ask_person(&self, params: ElicitRequestParams, call: OpenCall) -> ElicitResult {
        let OpenCall { subject, progress, over } = call;
        let (Some(questions), Some((message, wanted)), false) =
            (&self.questions, parse_elicitation(params), subject.user.is_empty())
        else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let told = format!("{} asks {}, who answers with kairo inbox: {message}", self.server, subject.user);
        let Some(opened) = questions.ask_user(subject, message, wanted) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let _wait = progress.waiting().begin();
        let question = opened.question().map(|question| Box::new(to_tool_question(question)));
        let id = opened.id();
        if let Some(question) = question {
            progress.report_question(QuestionChange::Asked { words: told, question });
        }
        let asked = over.run_until_cancelled(opened.wait_for_answer()).await.unwrap_or(UserAnswer::Cancel);
        let action = match &asked {
            UserAnswer::Accept(_) => QuestionAnswered::Accept,
            UserAnswer::Decline => QuestionAnswered::Decline,
            UserAnswer::Cancel => QuestionAnswered::Cancel,
        };
        progress.report_question(QuestionChange::Ended(ToolQuestionEnd {
            question_id: id.to_string(),
            action: action.as_str().to_owned(),
        }));
        match asked {
            UserAnswer::Accept(content) if content.is_null() => ElicitResult::new(ElicitationAction::Accept),
            UserAnswer::Accept(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            UserAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            UserAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    fn open_call(&self, ctx: &CallContext) -> OpenCall {
        let subject = Subject {
            user: ctx.user.clone().unwrap_or_default(),
            agent: ctx.agent.clone(),
            thread_id: ctx.thread_id.clone(),
            action_id: ctx.action_id.clone(),
            server: self.server.to_string(),
        };
        OpenCall { subject, progress: ctx.progress.clone(), over: ctx.cancel.child_token() }
    }

    fn lock_calls(&self) -> MutexGuard<'_, OpenCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question as the log tells it.
fn to_tool_question(question: UserQuestion) -> ToolQuestion {
    let (schema, url) = match question.kind {
        QuestionKind::Form(schema) => (schema.to_string(), String::new()),
        QuestionKind::Visit(url) => (String::new(), url),
    };
    let until = Some(time::message(question.until));
    let UserQuestion { id, subject, message, .. } = question;
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
fn parse_elicitation(params: ElicitRequestParams) -> Option<(String, QuestionKind)> {
    let (message, wanted) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).ok()?;
            if asks_for_secret(&schema) {
                return None;
            }
            (schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some((message, QuestionKind::Form(schema)))?
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let address = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
            (message, QuestionKind::Visit(address.to_string()))
        }
        _ => return None,
    };
    Some((message.chars().take(MAX_MESSAGE_CHARS).collect(), wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question_kind(params: Value) -> Option<QuestionKind> {
        parse_elicitation(serde_json::from_value(params).unwrap()).map(|(_, wanted)| wanted)
    }

    #[test]
    fn forms_and_addresses_of_the_web_are_put_to_people() {
        let schema = json!({"type": "object", "properties": {"seat": {"type": "string"}}});
        let form = question_kind(json!({"message": "Which seat?", "requestedSchema": schema}));
        assert!(matches!(form, Some(QuestionKind::Form(asked)) if asked["properties"]["seat"]["type"] == "string"));
        let visit =
            |url: &str| question_kind(json!({"mode": "url", "message": "Pay", "url": url, "elicitationId": "1"}));
        assert_eq!(visit("https://pay.example/1"), Some(QuestionKind::Visit("https://pay.example/1".into())));
        for name in ["password", "API key", "client_secret", "cardNumber"] {
            let schema = json!({"type": "object", "properties": {name: {"type": "string"}}});
            assert_eq!(question_kind(json!({"message": "?", "requestedSchema": schema})), None, "{name}");
        }
        for url in ["javascript:alert(1)", "file:///etc/passwd", "pay"] {
            assert_eq!(visit(url), None, "{url}");
        }
    }
}
