//! `GET /v1/events/stream`: what a client watches, as server-sent events. An event's id is its place,
//! `<sequence>.<position>`, with which a client comes back.

use std::{convert::Infallible, future::pending, time::Duration};

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Gateway, sorted_json::SortedJson};
use crate::{
    auth::{Caller, tickets::TicketHold},
    fields::{NAME, RequestFields, UUID, parse_name, parse_text, query_value},
    log_position::{LogPosition, PLACE},
    problem::Problem,
    watch::{ClientWatch, WatchFilter, WatchItem, WatchRequest},
};

/// The name of the event for a change of a turn's status.
const TURN_STATUS: &str = "turn.status";

pub async fn stream_events(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Extension(stay): Extension<Option<TicketHold>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last_event_id = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("unreadable"));
    let wish = parse_query(query.as_deref(), last_event_id)?;
    let (mut shown, _) = open_stream(&gateway, caller, wish, sse_event).await?;
    // Until somebody else comes back to it.
    let kept = AbortOnDropHandle::new(tokio::spawn(keep_ticket(stay)));
    let shown = stream::poll_fn(move |context| shown.poll_recv(context)).map(Ok::<_, Infallible>).take_until(kept);
    let heartbeat = KeepAlive::new().interval(Duration::from_millis(gateway.config.heartbeat_ms));
    Ok(Sse::new(shown).keep_alive(heartbeat).into_response())
}

/// Shows a caller what it wishes, in the form that `frame` gives it, until it has gone, its key ends, its place is taken back or
/// the gateway stops. What comes besides is cancelled when its place was taken back.
pub async fn open_stream<T: Send + 'static>(
    gateway: &Gateway,
    caller: Caller,
    wish: WatchRequest,
    frame: impl Fn(WatchItem<'_>) -> T + Clone + Send + 'static,
) -> Result<(mpsc::Receiver<T>, CancellationToken), Problem> {
    let permit = gateway.stream_permit(&caller, None)?;
    let watch = ClientWatch::begin(gateway, &caller, wish, frame).await?;
    let (client, shown) = mpsc::channel(gateway.config.stream_buffer);
    let shutdown = gateway.shutdown.clone();
    let revoked = permit.revocation_token();
    tokio::spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = caller.wait_for_expiry() => {}
            () = permit.wait_until_revoked() => {}
            () = watch.forward(client) => {}
        }
        // The stream counts for as long as it lives.
        drop(permit);
    });
    Ok((shown, revoked))
}

/// Keeps the ticket of a stream that was opened with one.
async fn keep_ticket(stay: Option<TicketHold>) {
    match stay {
        Some(stay) => stay.keep_renewing().await,
        None => pending().await,
    }
}

fn sse_event(shown: WatchItem<'_>) -> Event {
    match shown {
        // An id without data: a client that is cut off before the first event still comes back to this place.
        WatchItem::Start(place) => Event::default().id(place.to_string()),
        WatchItem::Event(event) => with_data(Event::default().id(LogPosition::of_event(event).to_string()), event),
        WatchItem::TurnStatus(change) => with_data(Event::default().event(TURN_STATUS), &SortedJson(change)),
        WatchItem::Live(name, data) => with_data(Event::default().event(name), &data),
    }
}

fn with_data(event: Event, data: &impl Serialize) -> Event {
    // JSON text has no line breaks, so it is one line of data.
    event.data(serde_json::to_string(data).unwrap_or_default())
}

/// A client that comes back says so in the header, while its URL still names where it once began.
pub fn parse_query(url_query: Option<&str>, last_event_id: Option<&str>) -> Result<WatchRequest, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name));
    let thread = fields.optional("thread", NAME, query_value(parse_name));
    let correlation = fields.optional("correlation", UUID, query_value(parse_text));
    let after = fields.optional("after", PLACE, query_value(parse_text));
    let live = fields.optional("live", "true or false", query_value(parse_text));
    let turn_status = fields.optional("turn_status", "true or false", query_value(parse_text));
    let last = last_event_id.filter(|id| !id.is_empty()).map(parse_text);
    if last == Some(None) {
        fields.reject("Last-Event-ID", PLACE);
    }
    let after = last.flatten().or(after);
    let filter = WatchFilter { agent, thread, correlation };
    let live = live.unwrap_or_default();
    let turn_status = turn_status.unwrap_or_default();
    fields.complete(|| Some(WatchRequest { filter, after, live, turn_status }))
}

#[cfg(test)]
mod tests {
    use kairo_core::ids::Name;

    use super::*;

    #[test]
    fn coming_back_goes_before_the_url() {
        let wish = parse_query(Some("after=3&agent=a"), Some("7.1")).unwrap();
        assert_eq!(wish.after, Some(LogPosition { sequence: 7, position: 1 }));
        assert_eq!(wish.filter.agent.as_ref().map(Name::as_str), Some("a"));
        assert_eq!(
            parse_query(None, None).unwrap(),
            WatchRequest { filter: WatchFilter::default(), after: None, live: false, turn_status: false }
        );
    }

    #[test]
    fn everything_wrong_is_named() {
        let problem =
            parse_query(Some("agent=A&thread=*&correlation=7&after=x&live=1&turn_status=2&colour=red"), Some("y"))
                .unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            ["agent", "thread", "correlation", "after", "live", "turn_status", "Last-Event-ID", "colour"]
        );
    }
}
