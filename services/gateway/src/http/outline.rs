//! `GET /v1/events/outline`: how many events there are, by stretches of the log.

use axum::extract::State;
use jiff::Timestamp;
use kairo_proto::{
    time,
    v1::{GetEventsOutlineResponse, OutlineBucket, OutlineCount},
};
use kairo_read_model::{OutlineQuery, OutlineSlice};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
};
use crate::{
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, parse_text, query_value},
    problem::Problem,
};

/// Stretches where it is not said how many, and at most.
const BUCKETS: u32 = 100;
const MOST_BUCKETS: u32 = 1_000;

pub async fn get_events_outline(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<GetEventsOutlineResponse>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let counted = query::await_answer(&gateway, snapshot.event_outline(&wanted)).await?;
    Ok(PositionedResponse::from_snapshot(&snapshot, merge_buckets(counted, wanted.most)))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<OutlineQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let thread = fields.optional("thread", NAME, query_value(parse_name)).map(|thread| thread.to_string());
    let from = fields.optional("from", "a sequence", query_value(parse_text)).unwrap_or(0);
    let not_before = |text: &str| parse_text(text).filter(|to: &u64| *to >= from);
    let to = fields.optional("to", "a sequence, from or later", query_value(not_before)).unwrap_or(u64::MAX);
    let fits = |text: &str| parse_text(text).filter(|buckets| (1..=MOST_BUCKETS).contains(buckets));
    let buckets = fields.optional("buckets", format!("1 to {MOST_BUCKETS}"), query_value(fits)).unwrap_or(BUCKETS);
    fields.complete(|| Some(OutlineQuery { agent, thread, from, to, buckets, most: config.max_outline_events }))
}

/// Merges event counts per family into one bucket for each stretch of the log.
fn merge_buckets(counted: Vec<OutlineSlice>, most: u32) -> GetEventsOutlineResponse {
    let events = counted.iter().map(|it| it.events).sum();
    let mut buckets: Vec<(u64, Timestamp, OutlineBucket)> = Vec::new();
    for OutlineSlice { bucket, family, events, first, last, since } in counted {
        let count = OutlineCount { family, events };
        match buckets.last_mut().filter(|(at, ..)| *at == bucket) {
            Some((_, began, it)) => {
                *began = since.min(*began);
                (it.first, it.last, it.events) = (it.first.min(first), it.last.max(last), it.events + events);
                it.families.push(count);
            }
            None => {
                let outlined = OutlineBucket { first, last, since: None, events, families: vec![count] };
                buckets.push((bucket, since, outlined));
            }
        }
    }
    let told = |(_, began, it): (_, _, OutlineBucket)| OutlineBucket { since: Some(time::message(began)), ..it };
    let buckets = buckets.into_iter().map(told).collect();
    GetEventsOutlineResponse { buckets, events, cut: events >= u64::from(most), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_put_together_by_stretches() {
        let counted = |bucket, family: &str, events, first, last| OutlineSlice {
            bucket,
            family: family.to_owned(),
            events,
            first,
            last,
            since: Timestamp::from_second(i64::try_from(first).unwrap()).unwrap(),
        };
        let all = vec![counted(0, "agent", 5, 3, 9), counted(0, "user", 2, 1, 8), counted(4, "tool", 1, 40, 40)];
        let GetEventsOutlineResponse { buckets, events, cut, .. } = merge_buckets(all, 8);
        assert_eq!((events, cut, buckets.len()), (8, true, 2));
        let first = &buckets[0];
        assert_eq!((first.first, first.last, first.events, first.since.unwrap().seconds), (1, 9, 7, 1));
        let families: Vec<_> = first.families.iter().map(|it| (it.family.as_str(), it.events)).collect();
        assert_eq!(families, [("agent", 5), ("user", 2)]);
        assert!(!merge_buckets(Vec::new(), 8).cut);
    }

    #[test]
    fn all_of_the_log_is_asked_for_where_nothing_is_said_and_everything_wrong_is_named() {
        let wanted = parse_query(None, &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.from, wanted.to, wanted.buckets, wanted.most), (0, u64::MAX, BUCKETS, 100_000));
        let wrong = "agent=A&thread=*&from=9&to=8&buckets=0&limit=7";
        let problem = parse_query(Some(wrong), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "thread", "to", "buckets", "limit"]);
    }
}
