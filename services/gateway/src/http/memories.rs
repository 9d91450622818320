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
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, UUID, at_most, name, one_of, parsed, value},
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

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<Told<ListMemoriesResponse>>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config, Timestamp::now()))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let memories = query::answered(&gateway, snapshot.memories(&wanted)).await?;
    Ok(Answer::of(&snapshot, Told(ListMemoriesResponse { memories, ..Default::default() })))
}

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetMemoryResponse>>, Problem> {
    let (agent, memory_id) = query::agent_and_id("memory_id", path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let wanted =
        MemoriesQuery { agent: Some(agent.to_string()), memory_id: Some(memory_id), limit: 1, ..Default::default() };
    let found = query::answered(&gateway, snapshot.memories(&wanted)).await?.pop();
    // What was written for all is for each user.
    let found = found.filter(|memory| caller.sees(&memory.agent, memory.user.as_deref().or(caller.user())));
    let unknown = || {
        let detail = format!("no memory {memory_id} of {agent} is known; GET /v1/memories lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    Ok(Answer::of(
        &snapshot,
        Told(GetMemoryResponse { memory: Some(found.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

pub async fn history(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetMemoryHistoryResponse>>, Problem> {
    let (agent, memory_id) = query::agent_and_id("memory_id", path)?;
    let (before, limit) = asked.read(|query| page(query, &gateway.config))?;
    let wanted = MemoryHistoryQuery { agent: agent.to_string(), memory_id, before, limit };
    let snapshot = asked.snapshot(&gateway).await?;
    let mut versions = query::answered(&gateway, snapshot.memory_history(&wanted)).await?;
    // Before what others may not see is left out, so that a page which is empty for them does not end the list.
    let next_before = query::newest_first(&mut versions, limit, |row| row.sequence, |row| Reverse(row.sequence));
    versions.retain(|memory| caller.sees(&memory.agent, memory.user.as_deref().or(caller.user())));
    if versions.is_empty() && before.is_none() {
        let detail = format!("no memory {memory_id} of {agent} is known; GET /v1/memories lists those there are");
        return Err(Problem::not_found(detail).at(snapshot.position()));
    }
    Ok(Answer::of(&snapshot, Told(GetMemoryHistoryResponse { versions, next_before, ..Default::default() })))
}

/// The page that is asked for: what it is before, and how much.
fn page(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<u64>, u32), Problem> {
    let mut fields = Fields::from_query(url_query);
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some((before, limit)))
}

fn read(url_query: Option<&str>, config: &GatewayConfig, now: Timestamp) -> Result<MemoriesQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let words = fields.optional("q", format!("1 to {MAX_QUERY_BYTES} bytes"), value(at_most(MAX_QUERY_BYTES)));
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let kind = fields.optional("type", format!("one of {}", TYPES.join(", ")), value(one_of(TYPES)));
    let memory_id = fields.optional("memory_id", UUID, value(parsed));
    let from = fields.optional("from", DAY, value(parsed::<Date>));
    let to = fields.optional("to", DAY, value(parsed::<Date>));
    let scope = fields.optional("scope", "recent or all", value(one_of(&["recent", "all"])));
    let limit = query::limit(&mut fields, config);
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
        read(Some(query), &GatewayConfig::default(), "2026-11-21T10:00:00Z".parse().unwrap())
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
