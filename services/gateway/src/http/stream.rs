//! `GET /v1/events/stream`: the log as it grows, as server-sent events.
//!
//! It comes straight from the log, so it goes on while the read model is away. An event's id is its place,
//! `<sequence>.<position>`; a client that comes back with it misses nothing and is told nothing twice.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use axum::{
    extract::{RawQuery, State},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt, future::Either, stream};
use kairo_core::{event_json::EventJson, ids::Name, record::Record, subjects};
use kairo_proto::Body;
use serde_json::Value;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Gateway;
use crate::{
    fields::{Fields, NAME, name, parsed, value},
    follow, live,
    place::{PLACE, Place},
    problem::Problem,
    tail::Said,
};

pub async fn get(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last_event_id = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("unreadable"));
    let wish = read(query.as_deref(), last_event_id)?;
    let Ok(permit) = gateway.streams.clone().try_acquire_owned() else {
        return Err(Problem::unavailable("gateway.max_streams streams are open; try again when some have ended"));
    };
    let start = wish.start(follow::end_of_log(&gateway.bus).await?)?;
    let said = gateway.tail.join(wish.filter.agent.clone(), start.complete()).await?;
    let buffer = gateway.config.stream_buffer;
    let pieces = match wish.live {
        true => Either::Left(live::pieces(&gateway.bus, wish.filter.agent.as_ref()).await?),
        false => Either::Right(stream::empty()),
    };
    let events = shown_events(said, &wish.filter, start);
    let pieces = shown_pieces(pieces, &wish.filter);

    let (client, mut shown) = mpsc::channel(buffer);
    let shutdown = gateway.shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = forward(pieces, events, client) => {}
        }
        // The stream counts for as long as it lives.
        drop(permit);
    });
    let shown = stream::poll_fn(move |context| shown.poll_recv(context)).map(Ok::<_, Infallible>);
    let heartbeat = KeepAlive::new().interval(Duration::from_millis(gateway.config.heartbeat_ms));
    Ok(Sse::new(shown).keep_alive(heartbeat).into_response())
}

/// Hands over both until the client is gone. The log waits for a slow client; pieces do not, and what it cannot take
/// of them is left out. Pieces go first: one that is there was said before the event that makes it worthless.
async fn forward<T>(pieces: impl Stream<Item = T>, events: impl Stream<Item = T>, client: mpsc::Sender<T>) {
    let (mut pieces, mut events) = (pin!(pieces), pin!(events));
    let mut waiting = None;
    loop {
        tokio::select! {
            biased;
            () = client.closed() => return,
            Some(piece) = pieces.next() => drop(client.try_send(piece)),
            Ok(place) = client.reserve(), if waiting.is_some() => {
                if let Some(event) = waiting.take() {
                    place.send(event);
                }
            }
            event = events.next(), if waiting.is_none() => waiting = event,
        }
    }
}

/// The log's events that the client wants, as they go over the wire.
fn shown_events<S: Stream<Item = Arc<Said>>>(
    said: S,
    filter: &Filter,
    start: Place,
) -> impl Stream<Item = Event> + use<S> {
    let filter = filter.clone();
    let events = said.flat_map(move |said| {
        let wanted = said.events.iter().filter(|event| Place::of(event) > start && filter.takes(event));
        let shown: Vec<Event> =
            wanted.map(|event| sse(Event::default().id(Place::of(event).to_string()), event)).collect();
        stream::iter(shown)
    });
    // An id without data: a client that is cut off before the first event still comes back to this place.
    let here = Event::default().id(start.to_string());
    stream::once(std::future::ready(here)).chain(events)
}

/// The pieces that the client wants.
fn shown_pieces<P: Stream<Item = Record>>(pieces: P, filter: &Filter) -> impl Stream<Item = Event> + use<P> {
    let filter = filter.clone();
    pieces.filter_map(move |piece| {
        let wanted = filter.fits(piece.envelope.thread_id.as_deref(), piece.envelope.correlation_id);
        std::future::ready(wanted.then(|| live_event(&piece)).flatten())
    })
}

fn sse(event: Event, data: &impl serde::Serialize) -> Event {
    // JSON text has no line breaks, so it is one line of data.
    event.data(serde_json::to_string(data).unwrap_or_default())
}

fn live_event(piece: &Record) -> Option<Event> {
    let name = match piece.body {
        Body::LiveToken(_) => "token",
        Body::LiveOutput(_) => "output",
        _ => return None,
    };
    let mut data = piece.body.to_json();
    let (_, agent) = subjects::route(&piece.subject)?;
    let fields = data.as_object_mut()?;
    fields.insert("agent".to_owned(), Value::String(agent.to_string()));
    fields.insert("correlation_id".to_owned(), Value::String(piece.envelope.correlation_id.to_string()));
    Some(sse(Event::default().event(name), &data))
}

/// Which events a client wants to see.
#[derive(Clone, Debug, Default, PartialEq)]
struct Filter {
    agent: Option<Name>,
    thread: Option<Name>,
    correlation: Option<Uuid>,
}

impl Filter {
    fn takes(&self, event: &EventJson) -> bool {
        self.fits(event.thread_id.as_deref(), event.correlation_id)
    }

    fn fits(&self, thread: Option<&str>, correlation: Uuid) -> bool {
        let wanted = self.thread.as_ref().map(Name::as_str);
        (wanted.is_none() || thread == wanted) && self.correlation.is_none_or(|wanted| correlation == wanted)
    }
}

#[derive(Debug, PartialEq)]
struct Wish {
    filter: Filter,
    /// After this place; none for what comes from now on.
    after: Option<Place>,
    live: bool,
}

impl Wish {
    /// Where to begin in a log that ends at `end`. A place beyond it belongs to another log: following from there would
    /// show nothing, and never say why.
    fn start(&self, end: u64) -> Result<Place, Problem> {
        let mut fields = Fields::from_query(None);
        match self.after {
            None => return Ok(Place::whole(end)),
            Some(after) if after.sequence <= end => return Ok(after),
            Some(_) => fields.reject("after", format!("a place up to {end}, where the log ends")),
        }
        fields.complete(|| None)
    }
}

/// A client that comes back says so in the header, while its URL still names where it once began.
fn read(url_query: Option<&str>, last_event_id: Option<&str>) -> Result<Wish, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name));
    let thread = fields.optional("thread", NAME, value(name));
    let correlation = fields.optional("correlation", "a UUID", value(parsed));
    let after = fields.optional("after", PLACE, value(parsed));
    let live = fields.optional("live", "true or false", value(parsed));
    let last = last_event_id.filter(|id| !id.is_empty()).map(parsed);
    if last == Some(None) {
        fields.reject("Last-Event-ID", PLACE);
    }
    let after = last.flatten().or(after);
    let filter = Filter { agent, thread, correlation };
    fields.complete(|| Some(Wish { filter, after, live: live.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_log_waits_for_a_slow_client_and_pieces_do_not() {
        let (client, mut received) = mpsc::channel(2);
        let pieces = stream::iter(["p1", "p2", "p3"]).chain(stream::pending());
        let events = stream::iter(["e1", "e2", "e3"]).chain(stream::pending());
        let forwarding = tokio::spawn(forward(pieces, events, client));
        let mut all = Vec::new();
        while all.len() < 5 {
            all.extend(received.recv().await);
        }
        assert_eq!(all, ["p1", "p2", "e1", "e2", "e3"]);
        drop(received);
        forwarding.await.unwrap();
    }

    #[test]
    fn coming_back_goes_before_the_url() {
        let wish = read(Some("after=3&agent=a"), Some("7.1")).unwrap();
        assert_eq!(wish.after, Some(Place { sequence: 7, position: 1 }));
        assert_eq!(wish.filter.agent.as_ref().map(Name::as_str), Some("a"));
        assert_eq!(read(None, None).unwrap(), Wish { filter: Filter::default(), after: None, live: false });
    }

    #[test]
    fn everything_wrong_is_named() {
        let problem = read(Some("agent=A&thread=*&correlation=7&after=x&live=1&colour=red"), Some("y")).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "thread", "correlation", "after", "live", "Last-Event-ID", "colour"]);
    }

    #[test]
    fn a_place_beyond_the_end_is_an_error() {
        let wish = |after| Wish { filter: Filter::default(), after, live: false };
        assert_eq!(wish(None).start(9), Ok(Place::whole(9)));
        assert_eq!(wish(Some(Place::whole(9))).start(9), Ok(Place::whole(9)));
        assert!(wish(Some(Place::whole(10))).start(9).is_err());
    }
}
