//! `GET /v1/events`: the history, from the read model.

use axum::{Extension, extract::State};
use kairo_core::event_json::EventJson;
use kairo_proto::v1::{Event, ListEventsResponse};
use kairo_read_model::{EventsQuery, MAX_ROWS};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, TIME, parse_name, parse_text, query_value},
    log_position::LogPosition,
    ownership,
    problem::Problem,
};

pub async fn list_events(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<ListEventsResponse>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let ask = |wanted: EventsQuery| {
        let gateway = &gateway;
        let snapshot = &snapshot;
        async move { query::await_answer(gateway, snapshot.list_events(&wanted)).await }
    };
    let behind = |after: LogPosition, limit| ask(EventsQuery { after: Some(after.into()), limit, ..wanted.clone() });
    let mut events = ask(wanted.clone()).await?;
    let mut next_after = None;
    let mut next_before = None;
    let is_full = query::is_full_page(&events, wanted.limit);
    if wanted.latest.is_some() {
        if let Some(first) = events.first().map(LogPosition::of_event).filter(|_| is_full) {
            let whole =
                EventsQuery { before: Some(first.sequence + 1), latest: None, limit: MAX_ROWS, ..wanted.clone() };
            let after = LogPosition::whole_message(first.sequence.saturating_sub(1));
            let message = ask(EventsQuery { after: Some(after.into()), ..whole }).await?;
            next_before = complete_first_message(&mut events, message);
        }
    } else if is_full {
        next_after = query::complete_last_message(&mut events, LogPosition::of_event, behind).await?;
    }
    // Of the page, so that going on by its end misses nothing.
    let events = ownership::filter_events(&gateway, &snapshot, caller.user(), events).await?;
    let events = events.into_iter().map(Event::from).collect();
    let next_after = next_after.map(|sequence| LogPosition::whole_message(sequence).into());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        ListEventsResponse { events, next_after, next_before, ..Default::default() },
    ))
}

/// Puts what is missing of the first message in front of a page, of which this is the whole message. Returns what to ask for as
/// `before` to see what stands before it.
fn complete_first_message(events: &mut Vec<EventJson>, message: Vec<EventJson>) -> Option<u64> {
    let first = events.first().map(LogPosition::of_event)?;
    let missing = message.into_iter().filter(|event| LogPosition::of_event(event) < first);
    events.splice(0..0, missing.collect::<Vec<_>>());
    Some(first.sequence)
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<EventsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let thread = fields.optional("thread", NAME, query_value(parse_name)).map(|thread| thread.to_string());
    let correlation = fields.optional("correlation", "a UUID", query_value(parse_text));
    let after = query::parse_after(&mut fields).map(Into::into);
    let since = fields.optional("since", TIME, query_value(parse_text));
    let before = query::parse_before(&mut fields);
    let (latest, limit) = query::parse_latest_and_limit(&mut fields, config);
    // What stands before a message is read backwards from it.
    let latest = latest.or(before.map(|_| limit));
    fields.complete(|| Some(EventsQuery { agent, thread, correlation, after, before, since, latest, limit }))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::AgentThought;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_given_asks_for_the_beginning_of_the_log() {
        let wanted = parse_query(None, &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.agent, wanted.after, wanted.latest, wanted.limit), (None, None, None, 100));
    }

    #[test]
    fn the_newest_may_be_more_than_a_page() {
        let wanted = parse_query(Some("latest=700&after=7.1"), &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.after, wanted.latest, wanted.limit), (Some((7, 1)), Some(700), 700));
    }

    #[test]
    fn what_stands_before_a_message_is_the_newest_of_it() {
        let wanted = parse_query(Some("before=9"), &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.before, wanted.latest, wanted.limit), (Some(9), Some(100), 100));
        let wanted = parse_query(Some("before=9&limit=7"), &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.before, wanted.latest, wanted.limit), (Some(9), Some(7), 7));
    }

    #[test]
    fn a_page_of_the_newest_begins_with_a_whole_message() {
        let at = |sequence: u64, position: u32| -> EventJson {
            let id = "0199c4a4-b1cf-7a66-9d4e-0d7f4a3d5b11";
            let ts = "2026-11-21T10:00:00Z";
            let subject = "kairo.agent.a.decision";
            let type_name = AgentThought::TYPE;
            let event = json!({
                "event_id": id, "ts": ts, "source": "internal", "modality": "text", "payload": {}, "meta": { "tags": [] },
                "type": type_name, "sequence": sequence, "position": position, "subject": subject, "correlation_id": id,
            });
            serde_json::from_value(event).unwrap()
        };
        let mut page = vec![at(7, 2), at(9, 0)];
        assert_eq!(complete_first_message(&mut page, (0..3).map(|position| at(7, position)).collect()), Some(7));
        let places: Vec<_> = page.iter().map(|event| LogPosition::of_event(event).to_string()).collect();
        assert_eq!(places, ["7.0", "7.1", "7.2", "9.0"]);
        assert_eq!(complete_first_message(&mut Vec::new(), Vec::new()), None);
    }

    #[test]
    fn everything_wrong_is_named() {
        let query = "agent=A&thread=*&correlation=7&after=x&since=noon&before=y&latest=yes&limit=0&colour=red";
        let problem = parse_query(Some(query), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "thread", "correlation", "after", "since", "before", "latest", "limit", "colour"]);
    }
}
