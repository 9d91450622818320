//! `POST /v1/tasks`: a program puts a task into an agent's queue.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use kairo_core::{
    ids::Name,
    subjects::{AGENT_DEFINED, Route, USER_COMMAND},
    vocabulary::ANSWERS,
};
use kairo_proto::{
    Body,
    v1::{QueueTaskResponse, QueuedTask, UserCommand},
    words::{Conduct, OrderedCommand},
};
use serde_json::Value;

use super::{
    Gateway,
    agents::decode_definition,
    body::JsonBody,
    ingest::{self, UserInput},
    request_span::traceparent,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{CLIENT_ID, NAME, RequestFields, json_text, parse_client_id, parse_name},
    problem::{FieldError, Problem},
};

/// The longest text and title of a task, in characters.
const MAX_TEXT: usize = 8_000;
const MAX_TITLE: usize = 200;

#[derive(Clone, Debug)]
pub struct TaskInput {
    user: Name,
    agent: Name,
    text: String,
    title: Option<String>,
    request_id: Option<String>,
}

/// Queues a task; the answer names it before the agent has decided on it.
pub async fn queue_task(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<QueueTaskResponse>), Problem> {
    let task = TaskInput::from_fields(RequestFields::from_json(&body)?, &gateway.config)?;
    let accepted = ingest::submit_input(&gateway, &caller, traceparent(&headers), task).await?;
    let event_id = accepted.event_id.to_string();
    let answer = QueueTaskResponse {
        request_id: accepted.id.clone(),
        task_id: event_id.clone(),
        correlation_id: event_id.clone(),
        event_id,
        sequence: accepted.sequence,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

impl UserInput for TaskInput {
    const KIND: &'static str = "task";
    const ID: &'static str = "request_id";
    const ROUTE: Route = USER_COMMAND;

    fn from_fields(mut fields: RequestFields<Value>, _: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.required("agent", NAME, json_text(parse_name));
        let texts = format!("text of 1 to {MAX_TEXT} characters");
        let text = fields.required("text", texts, json_text(|text| parse_characters(MAX_TEXT, text)));
        let titles = format!("text of 1 to {MAX_TITLE} characters");
        let title = fields.optional("title", titles, json_text(|text| parse_characters(MAX_TITLE, text)));
        let request_id = fields.optional("request_id", CLIENT_ID, json_text(parse_client_id));
        fields.complete(|| {
            let user = user?;
            let agent = agent?;
            Some(Self { user, agent, text: text?, title, request_id })
        })
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn agent(&self) -> Option<&Name> {
        Some(&self.agent)
    }

    fn id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    fn backpressured_agent(&self, _default_agent: &str) -> Option<Name> {
        Some(self.agent.clone())
    }

    fn is_capped(&self) -> bool {
        true
    }

    /// Refuses agents without a queue, and tasks that not every running service understands.
    async fn prepare(&mut self, gateway: &Gateway, _caller: &Caller) -> Result<(), Problem> {
        if gateway.bus.current_epoch().await? < ANSWERS {
            let detail = format!("tasks can be queued by programs from epoch {ANSWERS} on: see kairo fleet promote");
            return Err(Problem::conflict(detail));
        }
        let last = gateway.bus.last_message(&AGENT_DEFINED.of_owner(&self.agent)).await?;
        let defined = last.and_then(|last| decode_definition(&last, gateway.bus.limits.max_body_bytes));
        let Some(profile) = defined.and_then(|defined| defined.profile) else {
            return Err(Problem::not_found(format!(
                "no agent {} is known; kairo agents lists those there are",
                self.agent
            )));
        };
        if profile.conduct_word() == Conduct::Background {
            return Ok(());
        }
        let expected = format!(
            "an agent that works in the background: kairo agents set {0} --conduct background makes it one",
            self.agent
        );
        let found = Some(self.agent.to_string());
        Err(Problem::invalid_fields(vec![FieldError { field: "agent".to_owned(), expected, found }]))
    }

    fn into_body(self, id: &str) -> Body {
        let task_id = ingest::event_id::<Self>(&self.user, id).to_string();
        let task = QueuedTask { task_id, text: self.text, title: self.title.unwrap_or_default() };
        UserCommand {
            // The prefix keeps this id apart from those of the user's other orders.
            command_id: format!("{}/{id}", Self::KIND),
            user: self.user.to_string(),
            agent: self.agent.to_string(),
            command: OrderedCommand::Queue.text(),
            task: Some(task),
            ..UserCommand::default()
        }
        .into()
    }
}

fn parse_characters(most: usize, text: &str) -> Option<String> {
    let is_text = !text.trim().is_empty() && text.chars().count() <= most;
    is_text.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<TaskInput, Vec<String>> {
        let read =
            TaskInput::from_fields(RequestFields::from_json(body.as_bytes()).unwrap(), &GatewayConfig::default());
        read.map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn a_request_is_always_the_same_task() {
        let body = r#"{"user": "ann", "agent": "scout", "text": "Look.", "title": "Look", "request_id": "n/1"}"#;
        let task = |body: &str| {
            let Body::UserCommand(command) = read(body).unwrap().into_body("n/1") else { panic!() };
            command.task.unwrap()
        };
        assert_eq!(task(body), task(body));
        assert_ne!(task(body).task_id, task(&body.replace("ann", "bob")).task_id);
    }

    #[test]
    fn everything_wrong_is_named() {
        assert_eq!(read("{}").unwrap_err(), ["user", "agent", "text"]);
        let body = format!(
            r#"{{"user": "A", "agent": 1, "text": " ", "title": "{}", "request_id": "a b", "at": "noon"}}"#,
            "ü".repeat(201)
        );
        assert_eq!(read(&body).unwrap_err(), ["user", "agent", "text", "title", "request_id", "at"]);
        let longest = format!(r#"{{"user": "ann", "agent": "a", "text": "{}"}}"#, "ü".repeat(8_000));
        assert!(read(&longest).is_ok());
    }
}
