//! Telling the gateway which questions are open, and taking answers from it.

use std::sync::Arc;

use futures::StreamExt as _;
use kairo_core::bus::port::{LiveMessage, LiveSubscription};
use kairo_core::bus::{Bus, BusError};
use kairo_core::subjects::QUESTIONS;
use kairo_proto::time;
use kairo_proto::v1::{Json, QuestionAnswer, QuestionRow, QuestionsAnswer, QuestionsRequest, questions_request::Ask};
use kairo_proto::words::{QuestionAnswered, QuestionOutcome};
use prost::Message as _;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::{AnswerRefusal, QuestionKind, Questions, Subject, UserAnswer, UserQuestion};

/// Answers until it is dropped.
pub struct QuestionResponder {
    _listening: AbortOnDropHandle<()>,
}

impl QuestionResponder {
    /// Begins to answer. Every runner is asked: each knows of its own calls.
    ///
    /// # Errors
    /// When the bus does not let it listen.
    pub async fn begin(bus: &Bus, questions: Arc<Questions>) -> Result<Self, BusError> {
        let requests = bus.subscribe(QUESTIONS).await?;
        let listening = bus.spawn(listen(bus.clone(), requests, questions));
        Ok(Self { _listening: AbortOnDropHandle::new(listening) })
    }
}

async fn listen(bus: Bus, mut requests: LiveSubscription, questions: Arc<Questions>) {
    while let Some(request) = requests.next().await {
        let LiveMessage { reply: Some(reply), payload, .. } = request else { continue };
        let Ok(QuestionsRequest { user, ask }) = QuestionsRequest::decode(payload) else { continue };
        let answer = match ask {
            Some(Ask::List(_)) => {
                let rows = questions.open_for_user(&user).into_iter().map(row).collect();
                Some(QuestionsAnswer { questions: rows, ..Default::default() })
            }
            Some(Ask::Answer(answer)) => take_answer(&questions, &user, &answer),
            None => None,
        };
        if let Some(answer) = answer
            && let Err(error) = bus.send_live(&reply, answer.encode_to_vec()).await
        {
            tracing::debug!(%error, "an answer went nowhere");
        }
    }
}

/// Takes the answer to a question; `None` if the question is not one of this runner's: another one answers.
fn take_answer(questions: &Questions, user: &str, answer: &QuestionAnswer) -> Option<QuestionsAnswer> {
    let id = Uuid::parse_str(&answer.question_id).ok()?;
    let said = match answer.action_word() {
        QuestionAnswered::Accept => UserAnswer::Accept(serde_json::from_str(&answer.content).unwrap_or(Value::Null)),
        QuestionAnswered::Decline => UserAnswer::Decline,
        QuestionAnswered::Cancel | QuestionAnswered::Unknown(_) => UserAnswer::Cancel,
    };
    let (outcome, reason) = match questions.accept_answer(id, user, said) {
        Ok(()) => (QuestionOutcome::Taken, String::new()),
        Err(AnswerRefusal::Unfit(why)) => (QuestionOutcome::Unfit, why),
        Err(AnswerRefusal::Unknown) => return None,
    };
    Some(QuestionsAnswer { outcome: outcome.as_str().to_owned(), reason, ..Default::default() })
}

fn row(question: UserQuestion) -> QuestionRow {
    let UserQuestion { id, subject, message, kind: wanted, asked_at, until } = question;
    let Subject { user, agent, thread_id, action_id, server } = subject;
    let (schema, url) = match wanted {
        QuestionKind::Form(schema) => (Some(Json { text: schema.to_string() }), None),
        QuestionKind::Visit(url) => (None, Some(url)),
    };
    QuestionRow {
        question_id: id.to_string(),
        user,
        agent,
        thread_id: Some(thread_id).filter(|thread| !thread.is_empty()),
        action_id,
        server,
        message,
        schema,
        url,
        asked_at: Some(time::message(asked_at)),
        until: Some(time::message(until)),
    }
}
