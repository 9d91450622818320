//! `GET /v1/threads/{id}/messages`: what was said in a thread, each message with its number.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::ListThreadMessagesResponse;
use kairo_read_model::ThreadMessagesQuery;

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
    threads,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, parse_text, query_value},
    problem::Problem,
};

const NUMBER: &str = "the number of a message";

/// The thread, and the page of its messages, that a query asks for.
#[derive(Debug)]
struct ThreadMessagesRequest {
    thread: String,
    agent: Option<String>,
    after: u64,
    latest: Option<u32>,
    limit: u32,
}

pub async fn list_thread_messages(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListThreadMessagesResponse>>, Problem> {
    let ThreadMessagesRequest { thread, agent, after, latest, limit } =
        asked.parse_with(|query| parse_query(path, query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let found = threads::find_thread(&gateway, &snapshot, &caller, &thread, agent.as_deref()).await?;
    let wanted =
        ThreadMessagesQuery { agent: found.agent.clone(), thread: found.thread_id.clone(), after, latest, limit };
    let messages = query::await_answer(&gateway, snapshot.thread_messages(&wanted)).await?;
    // There may be more behind a full page, unless it is the newest.
    let last = messages.last().filter(|_| latest.is_none() && query::is_full_page(&messages, limit));
    let next_after = last.map(|message| message.sequence);
    let answer = ListThreadMessagesResponse { thread: Some(found), messages, next_after, ..Default::default() };
    Ok(PositionedResponse::from_snapshot(&snapshot, SortedJson(answer)))
}

fn parse_query(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
) -> Result<ThreadMessagesRequest, Problem> {
    let thread = query::path_thread(path)?.to_string();
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let after = fields.optional("after", NUMBER, query_value(parse_text)).unwrap_or(0);
    let (latest, limit) = query::parse_latest_and_limit(&mut fields, config);
    fields.complete(|| Some(ThreadMessagesRequest { thread, agent, after, latest, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_request(query: &str) -> Result<ThreadMessagesRequest, Problem> {
        parse_query(Ok(Path("t".to_owned())), Some(query), &GatewayConfig::default())
    }

    #[test]
    fn a_page_begins_behind_a_number_or_is_the_newest() {
        let wanted = parse_request("after=7&limit=5&agent=bob").unwrap();
        assert_eq!((wanted.after, wanted.latest, wanted.limit), (7, None, 5));
        assert_eq!((wanted.thread.as_str(), wanted.agent.as_deref()), ("t", Some("bob")));
        assert_eq!(
            parse_request("latest=5").map(|wanted| (wanted.after, wanted.latest, wanted.limit)).ok(),
            Some((0, Some(5), 5))
        );
        let wrong = parse_request("after=1.0&latest=0&limit=x&before=3").unwrap_err();
        let fields: Vec<_> = wrong.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["after", "latest", "limit", "before"]);
    }
}
