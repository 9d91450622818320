//! `GET /v1/threads`: threads, the one where something happened last first. `GET /v1/threads/{id}`: what happened in one.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::{
    v1::{self, GetThreadResponse, ListThreadsResponse, ThreadRow},
    words::ThreadStatus,
};
use kairo_read_model::{ReadSnapshot, ThreadState, ThreadsQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, parse_text, query_value},
    log_position::{LogPosition, PLACE},
    problem::{FieldError, Problem},
};

/// Chains shown of a thread: its newest.
const CHAINS: u32 = 50;

pub async fn list_threads(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListThreadsResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut threads = query::await_answer(&gateway, snapshot.list_threads(&wanted)).await?;
    let id = |thread: &ThreadRow| (thread.agent.clone(), thread.thread_id.clone());
    let next_before = query::sort_newest_first(&mut threads, wanted.limit, |thread| thread.last_sequence, id);
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListThreadsResponse { threads, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<ThreadsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let status =
        fields.optional("status", "open, active, compacted, archived, completed or all", query_value(parse_status));
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    let status = status.unwrap_or(Some(ThreadState::Open));
    fields.complete(|| Some(ThreadsQuery { agent, user, status, before, limit }))
}

/// `None` within for threads of any status.
#[allow(clippy::option_option, reason = "the outer one says whether the text can be read")]
fn parse_status(text: &str) -> Option<Option<ThreadState>> {
    match text {
        "all" => Some(None),
        "open" => Some(Some(ThreadState::Open)),
        _ => ThreadStatus::known(text).map(|status| Some(ThreadState::Only(status))),
    }
}

/// The thread, and the part of it, that a query asks for.
struct ThreadRequest {
    thread: String,
    agent: Option<String>,
    before: Option<LogPosition>,
    limit: u32,
}

pub async fn get_thread(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetThreadResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_thread_query(path, query, &gateway.config))?;
    let ThreadRequest { thread, agent, before, limit } = wanted;
    let snapshot = asked.snapshot(&gateway).await?;
    let found = find_thread(&gateway, &snapshot, &caller, &thread, agent.as_deref()).await?;
    let before = before.map(|place| (place.sequence, if place.is_whole_message() { 0 } else { place.position }));
    let rest = async {
        let history = snapshot.thread_history(&found.agent, &found.thread_id, before, limit).await?;
        let chains = snapshot.chains_of_thread(&found.agent, &found.thread_id, CHAINS).await?;
        Ok((history, chains))
    };
    let (history, chains) = query::await_answer(&gateway, rest).await?;
    let first = history.events.first().filter(|_| history.more);
    let next_before = first.map(|event| v1::Place { sequence: event.sequence, position: Some(event.position) });
    let thread = Some(found);
    let events = history.events;
    let answer = GetThreadResponse { thread, events, next_before, chains, ..Default::default() };
    Ok(PositionedResponse::from_snapshot(&snapshot, SortedJson(answer)))
}

fn parse_thread_query(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
) -> Result<ThreadRequest, Problem> {
    let thread = query::path_thread(path)?.to_string();
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let before = fields.optional("before", PLACE, query_value(parse_text));
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ThreadRequest { thread, agent, before, limit }))
}

/// The thread that is meant, among those that the caller may see.
pub async fn find_thread(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    caller: &Caller,
    thread: &str,
    agent: Option<&str>,
) -> Result<ThreadRow, Problem> {
    let mut named = query::await_answer(gateway, snapshot.find_threads(thread, agent)).await?;
    named.retain(|thread| caller.can_see(&thread.agent, Some(&thread.user)));
    single_thread(named, thread).map_err(|problem| problem.with_position(snapshot.position()))
}

/// The one thread that is meant.
fn single_thread(mut threads: Vec<ThreadRow>, id: &str) -> Result<ThreadRow, Problem> {
    let found = threads.pop().ok_or_else(|| {
        Problem::not_found(format!("no thread {id} is known; GET /v1/threads?status=all lists those there are"))
    })?;
    if threads.is_empty() {
        return Ok(found);
    }
    let agents: Vec<String> = threads.into_iter().chain([found]).map(|thread| thread.agent).collect();
    let expected = format!("one of {}: more than one agent has a thread of this id", agents.join(", "));
    Err(Problem::invalid_fields(vec![FieldError { field: "agent".to_owned(), expected, found: None }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(query: &str) -> Vec<String> {
        let problem = parse_query(Some(query), &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn threads_that_were_put_away_are_asked_for() {
        let read = |query| parse_query(query, &GatewayConfig::default()).unwrap();
        assert_eq!(read(None).status, Some(ThreadState::Open));
        assert_eq!(read(Some("status=compacted")).status, Some(ThreadState::Only(ThreadStatus::Compacted)));
        assert_eq!(read(Some("status=archived")).status, Some(ThreadState::Only(ThreadStatus::Archived)));
        let wanted = read(Some("status=all&agent=bob&before=7&limit=5"));
        assert_eq!(
            (wanted.status, wanted.agent.as_deref(), wanted.before, wanted.limit),
            (None, Some("bob"), Some(7), 5)
        );
    }

    #[test]
    fn everything_wrong_is_named() {
        let query = "agent=A&user=*&status=closed&before=x&limit=0&colour=red";
        assert_eq!(wrong(query), ["agent", "user", "status", "before", "limit", "colour"]);
    }

    #[test]
    fn a_thread_is_one_of_many_or_none() {
        let thread = |agent: &str| -> ThreadRow {
            ThreadRow {
                agent: agent.to_owned(),
                thread_id: "t".to_owned(),
                user: "ann".to_owned(),
                ..ThreadRow::default()
            }
        };
        assert_eq!(single_thread(vec![thread("bob")], "t").unwrap().agent, "bob");
        assert_eq!(single_thread(vec![], "t").unwrap_err().status, 404);
        let many = single_thread(vec![thread("bob"), thread("eve")], "t").unwrap_err();
        assert_eq!(many.errors[0].expected, "one of bob, eve: more than one agent has a thread of this id");
    }
}
