//! `GET /v1/search`: threads, tasks, memories, messages and inner state, found by words, also misspelt ones.

use std::time::Duration;

use axum::extract::State;
use jiff::civil::Date;
use kairo_proto::v1::SearchResponse;
use kairo_read_model::search::{Kind, MAX_HITS, MAX_PAGES, SearchQuery};

use super::{
    Gateway,
    read_consistency::{Answer, Asked, within},
};
use crate::{
    fields::{Fields, NAME, at_most, name, parsed, value},
    problem::Problem,
};

/// Longest search, in bytes, and longest type or status.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_VALUE_BYTES: usize = 64;
/// Hits of an answer where the client does not say.
const HITS: u32 = 20;
const DAY: &str = "a day such as 2026-11-21";
const KINDS: &str = "thread, task, memory, message or state, or several of them with commas between";

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<SearchResponse>, Problem> {
    let query = asked.read(read)?;
    let (sequence, wait) = asked.wanted();
    let limit = wait + Duration::from_millis(gateway.config.query_timeout_ms);
    let search = gateway.search.for_holder(asked.holder().clone());
    let answer = within(&gateway, limit, search.search(&query, sequence, wait)).await?;
    Ok(Answer::at(answer.position, answer))
}

fn read(url_query: Option<&str>) -> Result<SearchQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let words = fields.optional("q", format!("1 to {MAX_QUERY_BYTES} bytes"), value(at_most(MAX_QUERY_BYTES)));
    let kinds = fields.optional("in", KINDS, value(kinds));
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let short = format!("1 to {MAX_VALUE_BYTES} bytes");
    let kind_of = fields.optional("type", short.clone(), value(at_most(MAX_VALUE_BYTES)));
    let status = fields.optional("status", short, value(at_most(MAX_VALUE_BYTES)));
    let from = fields.optional("from", DAY, value(parsed::<Date>));
    let to = fields.optional("to", DAY, value(parsed::<Date>));
    let facets = fields.optional("facets", "true or false", value(parsed::<bool>));
    let upto = |most: u32| move |text: &str| parsed(text).filter(|number| (1..=most).contains(number));
    let limit = fields.optional("limit", format!("1 to {MAX_HITS}"), value(upto(MAX_HITS)));
    let page = fields.optional("page", format!("1 to {MAX_PAGES}"), value(upto(MAX_PAGES)));
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

fn kinds(text: &str) -> Option<Vec<Kind>> {
    let mut kinds: Vec<Kind> = text.split(',').map(Kind::parse).collect::<Option<_>>()?;
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
        let wanted = read(Some(query)).unwrap();
        assert_eq!((wanted.words.as_str(), wanted.agent.as_deref()), ("budget review", Some("bob")));
        assert_eq!(
            (wanted.kinds, wanted.user.as_deref()),
            (vec![Kind::Thread, Kind::Task, Kind::Message], Some("ann"))
        );
        assert_eq!((wanted.kind_of.as_deref(), wanted.status.as_deref()), (Some("topic"), Some("active")));
        assert_eq!((wanted.from, wanted.to), (Some(date(2026, 1, 1)), Some(date(2026, 11, 20))));
        assert_eq!((wanted.facets, wanted.limit, wanted.page), (true, 5, 2));
        let wanted = read(None).unwrap();
        assert_eq!((wanted.words.as_str(), wanted.limit, wanted.page, wanted.facets), ("", HITS, 0, false));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let query = "in=rumour&agent=A&user=*&from=2026-02-30&to=x&facets=maybe&limit=101&page=0&colour=red";
        let problem = read(Some(query)).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["in", "agent", "user", "from", "to", "facets", "limit", "page", "colour"]);
    }
}
