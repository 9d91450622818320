//! `POST /v1/questions/{question_id}`: a user's answer to what an MCP server asks while a call waits. Tool-runners know the
//! questions; they are asked as somebody wants to know.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use futures::StreamExt;
use kairo_core::{
    bus::{BusError, port::NoAnswer},
    ids::Name,
    subjects::QUESTIONS,
};
use kairo_proto::{
    v1::{
        AnswerQuestionResponse, QuestionAnswer, QuestionRow, QuestionsAnswer, QuestionsList, QuestionsRequest,
        questions_request::Ask,
    },
    words::{QuestionAnswered, QuestionOutcome},
};
use prost::Message as _;
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, body::JsonBody, query, sorted_json::SortedJson};
use crate::{
    auth::Caller,
    fields::{NAME, RequestFields, json_text, one_of, parse_name},
    problem::{FieldError, Problem},
};

/// The time limits for the first tool-runner, and for each further one after that.
const FIRST: Duration = Duration::from_millis(500);
const FURTHER: Duration = Duration::from_millis(50);
/// The time limit for the tool-runner whose call waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions that are told at most.
const MAX_QUESTIONS: usize = 1_000;

pub async fn answer_question(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<SortedJson<AnswerQuestionResponse>, Problem> {
    let id = query::path_id("question_id", path)?;
    let (user, action, content) = parse_body(&body)?;
    caller.require_user(Some(user.as_str()))?;
    let open = open_questions(&gateway, user.as_str()).await?;
    let question = open.into_iter().find(|question| question.question_id == id.to_string());
    let question = question.filter(|question| caller.require_agent(Some(&question.agent)).is_ok());
    question.ok_or_else(|| unknown_question(id))?;
    let content = content.map(|content| content.to_string()).unwrap_or_default();
    let said = QuestionAnswer { question_id: id.to_string(), action: action.to_owned(), content };
    let request = QuestionsRequest { user: user.to_string(), ask: Some(Ask::Answer(said)) };
    let taken =
        gateway.bus.request(QUESTIONS, request.encode_to_vec(), PATIENCE).await.map_err(|error| match error {
            NoAnswer::Nobody | NoAnswer::Silence => unknown_question(id),
            error => Problem::unavailable(format!("tool-runner did not answer: {error}")),
        })?;
    let taken = QuestionsAnswer::decode(taken)
        .map_err(|_| Problem::unavailable("tool-runner is of a build that answers in another way"))?;
    if taken.outcome_word() == QuestionOutcome::Taken {
        return Ok(SortedJson(AnswerQuestionResponse { question_id: id.to_string() }));
    }
    let expected = format!("what the question asks for ({})", taken.reason);
    // What was found is a person's, perhaps secret, and not repeated.
    Err(Problem::invalid_fields(vec![FieldError { field: "content".to_owned(), expected, found: None }]))
}

fn unknown_question(id: Uuid) -> Problem {
    Problem::not_found(format!("no question {id} is open; GET /v1/inbox lists those that are"))
}

/// Reads the user who answers, the action, and the fields of the answer.
pub fn parse_body(body: &[u8]) -> Result<(Name, &'static str, Option<Value>), Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let user = fields.required("user", NAME, json_text(parse_name));
    let words = QuestionAnswered::WORDS;
    let action = fields.required("action", format!("one of {}", words.join(", ")), json_text(one_of(words)));
    let content = fields.optional("content", "an object", |value: &Value| value.is_object().then(|| value.clone()));
    fields.complete(|| Some((user?, action?, content)))
}

/// Those that are open of a user, as every tool-runner knows them.
pub(super) async fn open_questions(gateway: &Gateway, user: &str) -> Result<Vec<QuestionRow>, BusError> {
    let request = QuestionsRequest { user: user.to_owned(), ask: Some(Ask::List(QuestionsList::default())) };
    let client = &gateway.bus.nats()?.client;
    let asked = async {
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await?;
        client.publish_with_reply(QUESTIONS, inbox, request.encode_to_vec().into()).await?;
        Ok::<_, async_nats::Error>(answers)
    };
    let mut answers = asked.await.map_err(|source| BusError::Unavailable { doing: "asking for questions", source })?;
    let mut questions = Vec::new();
    let mut wait = FIRST;
    while let Ok(Some(answer)) = tokio::time::timeout(wait, answers.next()).await {
        // Nobody is there.
        if answer.status.is_some() {
            break;
        }
        questions.extend(QuestionsAnswer::decode(answer.payload).unwrap_or_default().questions);
        if questions.len() >= MAX_QUESTIONS {
            break;
        }
        wait = FURTHER;
    }
    questions.sort_by(|one, other| one.question_id.cmp(&other.question_id));
    Ok(questions)
}
