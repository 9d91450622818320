//! `GET /v1/search`: threads, tasks, memories, messages and inner state, found by words, also misspelt ones.

use std::time::Duration;

use axum::extract::State;
use jiff::civil::Date;
use kairo_proto::v1::SearchResponse;
use kairo_read_model::search::{DocumentKind, MAX_HITS, MAX_PAGES, SearchQuery};

use super::{
    Gateway,
    read_consistency::{PositionedResponse, ReadRequest, await_fresh_answer},
};
use crate::{
    fields::{NAME, RequestFields, bounded_text, parse_name, parse_text, query_value},
    problem::Problem,
};

/// Longest search, in bytes, and longest type or status.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_VALUE_BYTES: usize = 64;
/// Hits of an answer where the client does not say.
const HITS: u32 = 20;
const DAY: &str = "a day such as 2026-11-21";
const KINDS: &str = "thread, task, memory, message or state, or several of them with commas between";

pub async fn run_search(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SearchResponse>, Problem> {
    let query = asked.parse_with(parse_query)?;
    let (sequence, wait) = asked.freshness();
    let limit = wait + Duration::from_millis(gateway.config.query_timeout_ms);
    let search = gateway.search.for_holder(asked.holder().clone());
    let answer = await_fresh_answer(&gateway, limit, search.search(&query, sequence, wait)).await?;
    Ok(PositionedResponse::at_position(answer.position, answer))
}

fn parse_query(url_query: Option<&str>) -> Result<SearchQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let words =
        fields.optional("q", format!("1 to {MAX_QUERY_BYTES} bytes"), query_value(bounded_text(MAX_QUERY_BYTES)));
    let kinds = fields.optional("in", KINDS, query_value(parse_kinds));
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let short = format!("1 to {MAX_VALUE_BYTES} bytes");
    let kind_of = fields.optional("type", short.clone(), query_value(bounded_text(MAX_VALUE_BYTES)));
    let status = fields.optional("status", short, query_value(bounded_text(MAX_VALUE_BYTES)));
    let from = fields.optional("from", DAY, query_value(parse_text::<Date>));
    let to = fields.optional("to", DAY, query_value(parse_text::<Date>));
    let facets = fields.optional("facets", "true or false", query_value(parse_text::<bool>));
    let upto = |most: u32| move |text: &str| parse_text(text).filter(|number| (1..=most).contains(number));
    let limit = fields.optional("limit", format!("1 to {MAX_HITS}"), query_value(upto(MAX_HITS)));
    let page = fields.optional("page", format!("1 to {MAX_PAGES}"), query_value(upto(MAX_PAGES)));
    fields.complete(|| {
        Some(SearchQuery {
            words: words.unwrap_or_default(),
            kinds: kinds.unwrap_or_default(),
            agent,
            user,
            kind_of,
            status,
            from,
            to,
            facets: facets.unwrap_or(false),
            limit: limit.unwrap_or(HITS),
            page: page.unwrap_or(1) - 1,
        })
    })
}

fn parse_kinds(text: &str) -> Option<Vec<DocumentKind>> {
    let mut kinds: Vec<DocumentKind> = text.split(',').map(DocumentKind::parse).collect::<Option<_>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_search_is_read_field_by_field() {
        let query = "q=budget+review&in=task,message,thread,task&agent=bob&user=ann&type=topic&status=active&from=2026-01-01\
                     &to=2026-11-20&facets=true&limit=5&page=3";
        let wanted = parse_query(Some(query)).unwrap();
        assert_eq!((wanted.words.as_str(), wanted.agent.as_deref()), ("budget review", Some("bob")));
        assert_eq!(
            (wanted.kinds, wanted.user.as_deref()),
            (vec![DocumentKind::Thread, DocumentKind::Task, DocumentKind::Message], Some("ann"))
        );
        assert_eq!((wanted.kind_of.as_deref(), wanted.status.as_deref()), (Some("topic"), Some("active")));
        assert_eq!((wanted.from, wanted.to), (Some(date(2026, 1, 1)), Some(date(2026, 11, 20))));
        assert_eq!((wanted.facets, wanted.limit, wanted.page), (true, 5, 2));
        let wanted = parse_query(None).unwrap();
        assert_eq!((wanted.words.as_str(), wanted.limit, wanted.page, wanted.facets), ("", HITS, 0, false));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let query = "in=rumour&agent=A&user=*&from=2026-02-30&to=x&facets=maybe&limit=101&page=0&colour=red";
        let problem = parse_query(Some(query)).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["in", "agent", "user", "from", "to", "facets", "limit", "page", "colour"]);
    }
}
