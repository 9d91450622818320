//! `GET /v1/threads/{id}/messages`: what was said in a thread, each message with its number.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::ListThreadMessagesResponse;
use kairo_read_model::ThreadMessagesQuery;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
    threads,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, name, parsed, value},
    problem::Problem,
};

const NUMBER: &str = "the number of a message";

/// The thread, and the page of its messages, that a query asks for.
#[derive(Debug)]
struct Wanted {
    thread: String,
    agent: Option<String>,
    after: u64,
    latest: Option<u32>,
    limit: u32,
}

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<ListThreadMessagesResponse>>, Problem> {
    let Wanted { thread, agent, after, latest, limit } = asked.read(|query| read(path, query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let found = threads::found(&gateway, &snapshot, &caller, &thread, agent.as_deref()).await?;
    let wanted =
        ThreadMessagesQuery { agent: found.agent.clone(), thread: found.thread_id.clone(), after, latest, limit };
    let messages = query::answered(&gateway, snapshot.thread_messages(&wanted)).await?;
    // There may be more behind a full page, unless it is the newest.
    let last = messages.last().filter(|_| latest.is_none() && query::is_full(&messages, limit));
    let next_after = last.map(|message| message.sequence);
    let answer = ListThreadMessagesResponse { thread: Some(found), messages, next_after, ..Default::default() };
    Ok(Answer::of(&snapshot, Told(answer)))
}

fn read(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
) -> Result<Wanted, Problem> {
    let thread = query::thread(path)?.to_string();
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let after = fields.optional("after", NUMBER, value(parsed)).unwrap_or(0);
    let (latest, limit) = query::latest_and_limit(&mut fields, config);
    fields.complete(|| Some(Wanted { thread, agent, after, latest, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Wanted, Problem> {
        read(Ok(Path("t".to_owned())), Some(query), &GatewayConfig::default())
    }

    #[test]
    fn a_page_begins_behind_a_number_or_is_the_newest() {
        let wanted = asked("after=7&limit=5&agent=bob").unwrap();
        assert_eq!((wanted.after, wanted.latest, wanted.limit), (7, None, 5));
        assert_eq!((wanted.thread.as_str(), wanted.agent.as_deref()), ("t", Some("bob")));
        assert_eq!(
            asked("latest=5").map(|wanted| (wanted.after, wanted.latest, wanted.limit)).ok(),
            Some((0, Some(5), 5))
        );
        let wrong = asked("after=1.0&latest=0&limit=x&before=3").unwrap_err();
        let fields: Vec<_> = wrong.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["after", "latest", "limit", "before"]);
    }
}
