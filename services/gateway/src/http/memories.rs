//! `GET /v1/memories`: what agents remember, searched by words or listed by day. `GET /v1/memories/{agent}/{id}`: one.
//! `GET /v1/memories/{agent}/{id}/history`: all that it said. Secrets come sealed.

use std::cmp::Reverse;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use jiff::{Span, Timestamp, civil::Date, tz::TimeZone};
use kairo_proto::{
    v1::{GetMemoryHistoryResponse, GetMemoryResponse, ListMemoriesResponse},
    words::MemoryKind,
};
use kairo_read_model::{MemoriesQuery, MemoryHistoryQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, UUID, bounded_text, one_of, parse_name, parse_text, query_value},
    problem::Problem,
};

/// Longest search, in bytes.
const MAX_QUERY_BYTES: usize = 1_000;
/// Days that are recent, as for the tool memory.search.
const RECENT_DAYS: i32 = 14;
/// Kinds of memories, and how they may be called besides.
const TYPES: &[&str] =
    &["any", "journal", "person", "people", "project", "preference", "decision", "insight", "fact", "state", "secret"];
const DAY: &str = "a day such as 2026-11-21";

pub async fn list_memories(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListMemoriesResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config, Timestamp::now()))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let memories = query::await_answer(&gateway, snapshot.search_memories(&wanted)).await?;
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListMemoriesResponse { memories, ..Default::default() }),
    ))
}

pub async fn get_memory(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetMemoryResponse>>, Problem> {
    let (agent, memory_id) = query::path_agent_and_id("memory_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let wanted =
        MemoriesQuery { agent: Some(agent.to_string()), memory_id: Some(memory_id), limit: 1, ..Default::default() };
    let found = query::await_answer(&gateway, snapshot.search_memories(&wanted)).await?.pop();
    // What was written for all is for each user.
    let found = found.filter(|memory| caller.can_see(&memory.agent, memory.user.as_deref().or(caller.user())));
    let unknown = || {
        let detail = format!("no memory {memory_id} of {agent} is known; GET /v1/memories lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetMemoryResponse { memory: Some(found.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

pub async fn get_memory_history(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetMemoryHistoryResponse>>, Problem> {
    let (agent, memory_id) = query::path_agent_and_id("memory_id", path)?;
    let (before, limit) = asked.parse_with(|query| parse_page_query(query, &gateway.config))?;
    let wanted = MemoryHistoryQuery { agent: agent.to_string(), memory_id, before, limit };
    let snapshot = asked.snapshot(&gateway).await?;
    let mut versions = query::await_answer(&gateway, snapshot.memory_history(&wanted)).await?;
    // Before what others may not see is left out, so that a page which is empty for them does not end the list.
    let next_before = query::sort_newest_first(&mut versions, limit, |row| row.sequence, |row| Reverse(row.sequence));
    versions.retain(|memory| caller.can_see(&memory.agent, memory.user.as_deref().or(caller.user())));
    if versions.is_empty() && before.is_none() {
        let detail = format!("no memory {memory_id} of {agent} is known; GET /v1/memories lists those there are");
        return Err(Problem::not_found(detail).with_position(snapshot.position()));
    }
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetMemoryHistoryResponse { versions, next_before, ..Default::default() }),
    ))
}

/// The page that is asked for: what it is before, and how much.
fn parse_page_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<u64>, u32), Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some((before, limit)))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig, now: Timestamp) -> Result<MemoriesQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let words =
        fields.optional("q", format!("1 to {MAX_QUERY_BYTES} bytes"), query_value(bounded_text(MAX_QUERY_BYTES)));
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let kind = fields.optional("type", format!("one of {}", TYPES.join(", ")), query_value(one_of(TYPES)));
    let memory_id = fields.optional("memory_id", UUID, query_value(parse_text));
    let from = fields.optional("from", DAY, query_value(parse_text::<Date>));
    let to = fields.optional("to", DAY, query_value(parse_text::<Date>));
    let scope = fields.optional("scope", "recent or all", query_value(one_of(&["recent", "all"])));
    let limit = query::parse_limit(&mut fields, config);
    let today = now.to_zoned(TimeZone::UTC).date();
    let recent = today.checked_sub(Span::new().days(RECENT_DAYS)).ok().filter(|_| scope == Some("recent"));
    fields.complete(|| {
        Some(MemoriesQuery {
            words: words.unwrap_or_default(),
            agent,
            user,
            thread: None,
            kinds: match kind {
                None | Some("any") => Vec::new(),
                Some("people") => vec![MemoryKind::Person.text()],
                Some(kind) => vec![kind.to_owned()],
            },
            memory_id,
            from: from.max(recent),
            to,
            limit,
        })
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn ask(query: &str) -> Result<MemoriesQuery, Problem> {
        parse_query(Some(query), &GatewayConfig::default(), "2026-11-21T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_search_is_read_field_by_field() {
        let wanted =
            ask("q=budget+review&agent=bob&type=people&scope=recent&from=2026-01-01&to=2026-11-20&limit=5").unwrap();
        assert_eq!((wanted.words.as_str(), wanted.agent.as_deref()), ("budget review", Some("bob")));
        assert_eq!((wanted.kinds, wanted.limit), (vec![MemoryKind::Person.text()], 5));
        assert_eq!((wanted.from, wanted.to), (Some(date(2026, 11, 7)), Some(date(2026, 11, 20))));
        assert_eq!(ask("").unwrap().from, None);
    }

    #[test]
    fn every_wrong_field_is_named() {
        let query = format!("q={}&type=rumour&from=2026-02-30&scope=old&memory_id=7&colour=red", "x".repeat(2_000));
        let problem = ask(&query).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["q", "type", "memory_id", "from", "scope", "colour"]);
    }
}
