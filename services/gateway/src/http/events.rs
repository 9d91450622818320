//! `GET /v1/events`: the history, from the read model.

use axum::{Extension, extract::State};
use kairo_proto::v1::{Event, ListEventsResponse};
use kairo_read_model::EventsQuery;

use super::{
    Gateway, query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, TIME, name, parsed, value},
    ownership,
    place::Place,
    problem::Problem,
};

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<ListEventsResponse>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let ask = |wanted: EventsQuery| {
        let (gateway, snapshot) = (&gateway, &snapshot);
        async move { query::answered(gateway, snapshot.events(&wanted)).await }
    };
    let behind = |after: Place, limit| ask(EventsQuery { after: Some(after.into()), limit, ..wanted.clone() });
    let mut events = ask(wanted.clone()).await?;
    let mut next_after = None;
    if query::is_full(&events, wanted.limit) && wanted.latest.is_none() {
        next_after = query::complete(&mut events, Place::of, behind).await?;
    }
    // Of the page, so that going on by its end misses nothing.
    let events = ownership::events(&gateway, &snapshot, caller.user(), events).await?;
    let events = events.into_iter().map(Event::from).collect();
    let next_after = next_after.map(|sequence| Place::whole(sequence).into());
    Ok(Answer::of(&snapshot, ListEventsResponse { events, next_after, ..Default::default() }))
}

fn read(url_query: Option<&str>, config: &GatewayConfig) -> Result<EventsQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let thread = fields.optional("thread", NAME, value(name)).map(|thread| thread.to_string());
    let correlation = fields.optional("correlation", "a UUID", value(parsed));
    let after = query::after(&mut fields).map(Into::into);
    let since = fields.optional("since", TIME, value(parsed));
    let (latest, limit) = query::latest_and_limit(&mut fields, config);
    fields.complete(|| Some(EventsQuery { agent, thread, correlation, after, since, latest, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_given_asks_for_the_beginning_of_the_log() {
        let wanted = read(None, &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.agent, wanted.after, wanted.latest, wanted.limit), (None, None, None, 100));
    }

    #[test]
    fn the_newest_may_be_more_than_a_page() {
        let wanted = read(Some("latest=700&after=7.1"), &GatewayConfig::default()).unwrap();
        assert_eq!((wanted.after, wanted.latest, wanted.limit), (Some((7, 1)), Some(700), 700));
    }

    #[test]
    fn everything_wrong_is_named() {
        let query = "agent=A&thread=*&correlation=7&after=x&since=noon&latest=yes&limit=0&colour=red";
        let problem = read(Some(query), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "thread", "correlation", "after", "since", "latest", "limit", "colour"]);
    }
}
