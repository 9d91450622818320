//! `POST /v1/agents/{agent}/forks`, `/v1/forks` and `/v1/forks/{fork}`: agents that go on apart from the log, in the gateway's memory.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{StreamExt, stream};
use jiff::SignedDuration;
use kairo_core::{ids::Name, log_message};
use kairo_fork::{
    PendingFate,
    tools::{CallResult, ToolError},
};
use kairo_proto::{
    v1::LogMessage,
    words::{ToolErrorKind, Verdict},
};
use kairo_replay::{
    cut::{Cut, CutError, ForkParts},
    timeline::BrokenLog,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_on_agent_log},
    body::JsonBody,
    query,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{
        NAME, RequestFields, UUID, bounded_text, json_count, json_text, one_of, parse_name, parse_text, query_value,
    },
    forks::{
        ForkRequest,
        fork_history::{ForkHistoryEntry, HistoryPage},
        hosted_fork::HostedFork,
    },
    problem::Problem,
};

/// Ways to treat what was in flight at the cut.
const PENDING: &[&str] = &["recorded", "lost"];
/// Longest time that passes at once, in seconds: a year.
const LONGEST_WAIT: u32 = 31_536_000;

type ForkPath = Result<Path<String>, PathRejection>;

pub async fn begin_fork(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let agent = query::path_agent(path)?;
    let wish = parse_fork_wish(&body, &gateway.config)?;
    let seat = gateway.forks.take_seat()?;
    let whose = agent.clone();
    let at = wish.at;
    // All of it: what stands behind the cut answers what is asked again.
    let parts =
        compute_on_agent_log(&gateway, &agent, u64::MAX, move |messages, wanted| cut_log(whose, at, messages, wanted))
            .await?;
    let parts = parts.map_err(|broken| Problem::unreplayable(&broken))?;
    let parts = parts.map_err(|_| Problem::not_found("the log has nothing of this agent up to there"))?;
    let fork = gateway.forks.begin(seat, agent, parts, wish).await;
    let fork = fork.map_err(|error| Problem::unreplayable(&error))?;
    Ok((StatusCode::CREATED, Json(fork.status())).into_response())
}

/// The parts of a fork, and the users whose words they hold.
type CutLog = (ForkParts, BTreeSet<String>);

fn cut_log(
    agent: Name,
    at: Option<u64>,
    messages: &[LogMessage],
    wanted: &WaitingClient,
) -> Result<Result<CutLog, CutError>, BrokenLog> {
    let mut cut = Cut::new(at, [agent].into());
    let mut holds = BTreeSet::new();
    for message in wanted.while_waiting(messages) {
        holds.extend(log_message::content_owners(message).all_owners().into_iter().map(str::to_owned));
        cut.apply(message)?;
    }
    Ok(cut.into_parts().map(|parts| (parts, holds)))
}

/// Those that are open, from the one that was begun first. There are `gateway.max_forks` at most.
pub async fn list_forks(State(gateway): State<Gateway>, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    let forks = gateway.forks.map_open(|fork| json!(fork.status()));
    Ok(Json(json!({ "forks": forks, "max_forks": gateway.forks.max() })))
}

pub fn parse_fork_wish(body: &[u8], config: &GatewayConfig) -> Result<ForkRequest, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let at = fields.optional("at", "a sequence", Value::as_u64);
    let pending = fields.optional("pending", PENDING.join(" or "), json_text(one_of(PENDING)));
    let longest = config.max_prompt_bytes;
    let prompt = fields.optional("prompt", format!("text of 1 to {longest} bytes"), json_text(bounded_text(longest)));
    let user = fields.optional("user", NAME, json_text(parse_name));
    let pending = if pending == Some("lost") { PendingFate::Lost } else { PendingFate::Recorded };
    fields.complete(|| Some(ForkRequest { at, pending, prompt, user }))
}

pub async fn get_fork(
    State(gateway): State<Gateway>,
    path: ForkPath,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    Ok(Json(json!(find_fork(&gateway, path)?.status())))
}

pub async fn end_fork(State(gateway): State<Gateway>, path: ForkPath) -> Result<StatusCode, Problem> {
    let fork = find_fork(&gateway, path)?;
    fork.end("it was ended");
    fork.wait_until_ended().await;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn say_to_fork(
    State(gateway): State<Gateway>,
    path: ForkPath,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let said = parse_message(&body, &gateway.config)?;
    find_fork(&gateway, path)?.send_message(said)?;
    Ok(StatusCode::ACCEPTED)
}

pub fn parse_message(body: &[u8], config: &GatewayConfig) -> Result<String, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let longest = config.max_text_bytes;
    let said = fields.required("text", format!("text of 1 to {longest} bytes"), json_text(bounded_text(longest)));
    fields.complete(|| said)
}

pub async fn answer_fork_question(
    State(gateway): State<Gateway>,
    path: ForkPath,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let (question, result) = parse_answer(&body)?;
    find_fork(&gateway, path)?.answer_question(question, result)?;
    Ok(StatusCode::ACCEPTED)
}

/// The question, and what its call comes to; nothing where it is locked.
pub fn parse_answer(body: &[u8]) -> Result<(u64, Option<CallResult>), Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let question = fields.required("question", "the number of a question", Value::as_u64);
    let result = fields.optional("result", "JSON", |result| Some(result.clone()));
    let error = fields.optional("error", "text", json_text(|error| Some(error.to_owned())));
    if result.is_some() && error.is_some() {
        fields.reject("error", "nothing where there is a result");
    }
    let failed = error.map(|why| Err(ToolError::new(ToolErrorKind::Unavailable, why)));
    fields.complete(|| Some((question?, result.map(Ok).or(failed))))
}

pub async fn approve_fork_action(
    State(gateway): State<Gateway>,
    path: ForkPath,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let (action_id, verdict) = parse_approval(&body)?;
    find_fork(&gateway, path)?.approve(action_id, verdict)?;
    Ok(StatusCode::ACCEPTED)
}

pub fn parse_approval(body: &[u8]) -> Result<(Uuid, &'static str), Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let action_id = fields.required("action_id", UUID, json_text(parse_text));
    let verdict =
        fields.required("verdict", format!("one of {}", Verdict::WORDS.join(", ")), json_text(one_of(Verdict::WORDS)));
    fields.complete(|| Some((action_id?, verdict?)))
}

pub async fn pass_fork_time(
    State(gateway): State<Gateway>,
    path: ForkPath,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let time = parse_wait(&body)?;
    find_fork(&gateway, path)?.advance_clock(time)?;
    Ok(StatusCode::ACCEPTED)
}

/// Reads the time to let pass; none lets time pass until the next timer goes off.
pub fn parse_wait(body: &[u8]) -> Result<Option<SignedDuration>, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let seconds = fields.optional("seconds", format!("1 to {LONGEST_WAIT}"), json_count(1..=LONGEST_WAIT));
    fields.complete(|| Some(seconds.map(|seconds| SignedDuration::from_secs(seconds.into()))))
}

/// Streams the fork's events, from its beginning or after the position that a client saw last, until the fork ends.
pub async fn stream_fork_events(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: ForkPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("unreadable"));
    let place = parse_position(query.as_deref(), last)?;
    let fork = find_fork(&gateway, path)?;
    let permit = gateway.stream_permit(&caller, None)?;
    let shutdown = gateway.shutdown.clone();
    let gone = async move {
        tokio::select! {
            () = permit.wait_until_revoked() => {}
            () = shutdown.cancelled() => {}
            () = caller.wait_for_expiry() => {}
        }
    };
    let shown = stream::unfold((fork, place), next_events)
        .flat_map(stream::iter)
        .map(Ok::<_, Infallible>)
        .take_until(Box::pin(gone));
    let heartbeat = KeepAlive::new().interval(Duration::from_millis(gateway.config.heartbeat_ms));
    Ok(Sse::new(shown).keep_alive(heartbeat).into_response())
}

fn parse_position(url_query: Option<&str>, last_event_id: Option<&str>) -> Result<usize, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let expected = "the id of an event of this stream";
    let after = fields.optional("after", expected, query_value(parse_text));
    let last = last_event_id.filter(|id| !id.is_empty()).map(parse_text);
    if last == Some(None) {
        fields.reject("Last-Event-ID", expected);
    }
    fields.complete(|| Some(last.flatten().or(after).unwrap_or(0)))
}

/// Returns the events behind a position, and the position from which to go on.
async fn next_events((fork, place): (Arc<HostedFork>, usize)) -> Option<(Vec<Event>, (Arc<HostedFork>, usize))> {
    let HistoryPage::Entries(entries) = fork.entries_after(place).await else { return None };
    let next = place + entries.len();
    let events = entries.into_iter().zip(place + 1..).map(|(entry, at)| sse_event(entry, at));
    Some((events.collect(), (fork, next)))
}

/// An event of the log has no name, as in the stream of events.
fn sse_event(ForkHistoryEntry { name, data }: ForkHistoryEntry, at: usize) -> Event {
    let event = Event::default().id(at.to_string()).data(data);
    if name == "message" { event } else { event.event(name) }
}

fn find_fork(gateway: &Gateway, path: ForkPath) -> Result<Arc<HostedFork>, Problem> {
    gateway.forks.get(query::path_id("fork", path)?)
}
#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(problem: Problem) -> Vec<String> {
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn everything_wrong_is_named() {
        let body = br#"{ "at": "x", "pending": "kept", "prompt": "", "user": "Ann", "mood": 1 }"#;
        let problem = parse_fork_wish(body, &GatewayConfig::default()).unwrap_err();
        assert_eq!(wrong(problem), ["at", "pending", "prompt", "user", "mood"]);
        assert_eq!(wrong(parse_answer(br#"{ "result": 1, "error": "no" }"#).unwrap_err()), ["question", "error"]);
        assert_eq!(wrong(parse_wait(br#"{ "seconds": 0 }"#).unwrap_err()), ["seconds"]);
        assert_eq!(
            wrong(parse_position(Some("after=x&agent=a"), Some("y")).unwrap_err()),
            ["after", "Last-Event-ID", "agent"]
        );
    }

    #[test]
    fn an_answer_is_a_result_an_error_or_that_the_call_is_locked() {
        assert_eq!(parse_answer(br#"{ "question": 1 }"#).unwrap(), (1, None));
        assert_eq!(
            parse_answer(br#"{ "question": 1, "result": [2] }"#).unwrap(),
            (1, Some(Ok(serde_json::json!([2]))))
        );
        let (_, failed) = parse_answer(br#"{ "question": 1, "error": "taken" }"#).unwrap();
        assert_eq!(failed.unwrap().unwrap_err().message, "taken");
    }

    #[test]
    fn coming_back_goes_before_the_url() {
        assert_eq!(parse_position(Some("after=3"), Some("7")).unwrap(), 7);
        assert_eq!((parse_position(Some("after=3"), None).unwrap(), parse_position(None, None).unwrap()), (3, 0));
    }
}
