//! Watches: streams the log as it grows and live pieces to a client, over any transport.
//!
//! A watch reads the log directly, so it keeps working while the read model is away. A client that resumes from the
//! place of the last event it saw misses no event and receives none twice.

use std::{collections::VecDeque, pin::pin, sync::Arc, time::Duration};

use futures::{
    FutureExt, Stream, StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use kairo_core::{event_json::EventJson, ids::Name, record::Record, subjects};
use kairo_proto::{About, about::Live, v1};
use serde_json::Value;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    auth::Caller,
    dispatch::Interest,
    fields::RequestFields,
    live_pieces::{self, LivePiece},
    log_follower,
    log_position::LogPosition,
    ownership::StreamOwners,
    problem::Problem,
    state::Gateway,
    tail::{TailFilter, TailMessage},
    turn_status::TurnWatcher,
    user_pieces,
};

/// Live pieces sent in a row before the log gets a turn, so that the endless output of a process cannot hold events
/// back.
const PIECES_IN_A_ROW: usize = 64;

/// A client's request to watch the log.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRequest {
    pub filter: WatchFilter,
    /// The place after which the watch begins; none to begin at the end of the log.
    pub after: Option<LogPosition>,
    pub live: bool,
    /// True to receive changes of turn status as well.
    pub turn_status: bool,
}

/// The filter on events and live pieces; a field that is none matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchFilter {
    pub agent: Option<Name>,
    pub thread: Option<Name>,
    pub correlation: Option<Uuid>,
}

/// One item of a watch, before `frame` puts it into the client's form.
pub enum WatchItem<'a> {
    /// The place after which the watch begins.
    Start(LogPosition),
    Event(&'a EventJson),
    /// Sent before the event that caused the change, without a place of its own: a client that is cut off between the
    /// two receives both again.
    TurnStatus(&'a v1::TurnStatus),
    Live(&'static str, Value),
}

/// A watch that has begun, in the client's form `T`.
pub struct ClientWatch<T> {
    start: T,
    events: BoxStream<'static, T>,
    /// Live pieces, each with a flag: true if it waits for a slow client instead of being dropped.
    pieces: BoxStream<'static, (T, bool)>,
}

impl<T: Send + 'static> ClientWatch<T> {
    /// Begins the watch. If the caller's key is limited to a user, events that do not concern that user are left out.
    /// `frame` puts each item into the client's form.
    pub async fn begin(
        gateway: &Gateway,
        caller: &Caller,
        wish: WatchRequest,
        frame: impl Fn(WatchItem<'_>) -> T + Clone + Send + 'static,
    ) -> Result<Self, Problem> {
        let start = wish.start_position(log_follower::end_of_log(&gateway.bus).await?)?;
        if wish.after.is_some() {
            require_untrimmed(start, gateway.bus.log_start().await?.first_everywhere())?;
        }
        let own = caller.user().map(|user| Arc::new(StreamOwners::new(gateway, user)));
        let turns =
            wish.turn_status.then(|| Arc::new(TurnWatcher::new(gateway, wish.filter.agent.clone(), caller.user())));
        let said = gateway.tail.join(wish.filter.to_tail_filter(), start.complete_sequence()).into_stream();
        let pieces = if wish.live {
            let wait = Duration::from_millis(gateway.config.tail_wait_ms);
            let pieces = live_pieces::stream_pieces(&gateway.bus, wish.filter.agent.as_ref(), wait).await?;
            let own = own.clone().map(|own| (own, gateway.config.early_pieces));
            visible_pieces(pieces, wish.filter.clone(), own, frame.clone()).boxed()
        } else {
            stream::empty().boxed()
        };
        let first = frame(WatchItem::Start(start));
        let events = visible_events(said, wish.filter, start, (own, turns), frame).boxed();
        Ok(Self { start: first, events, pieces })
    }

    /// Sends the start and then all items until the client is gone.
    pub async fn forward(self, client: mpsc::Sender<T>) {
        if client.send(self.start).await.is_ok() {
            forward_items(self.pieces, self.events, client).await;
        }
    }
}

/// Sends pieces and events to the client. Events and tails wait for a slow client; other pieces are dropped when it
/// has no room. Pieces go first: a piece at hand was written before the event that makes it worthless.
async fn forward_items<T>(
    pieces: impl Stream<Item = (T, bool)>,
    events: impl Stream<Item = T>,
    client: mpsc::Sender<T>,
) {
    let mut pieces = pin!(pieces);
    let mut events = pin!(events);
    // Waiting for room at the client: one event, or tails, whose number is bounded.
    let mut waiting = VecDeque::new();
    let mut in_a_row = 0;
    loop {
        if in_a_row == PIECES_IN_A_ROW {
            in_a_row = 0;
            if waiting.is_empty() {
                waiting.extend(events.next().now_or_never().flatten());
            }
        }
        tokio::select! {
            biased;
            () = client.closed() => return,
            Ok(place) = client.reserve(), if !waiting.is_empty() => {
                if let Some(first) = waiting.pop_front() {
                    place.send(first);
                }
            }
            // Also while something waits: what nobody takes off a subscription is kept in memory.
            Some((piece, waits)) = pieces.next() => {
                in_a_row += 1;
                if waits {
                    waiting.push_back(piece);
                } else if waiting.is_empty() {
                    drop(client.try_send(piece));
                }
            }
            event = events.next(), if waiting.is_empty() => waiting.extend(event),
        }
    }
}

/// The log's events that the client wants.
fn visible_events<T: Send + 'static>(
    said: impl Stream<Item = Arc<TailMessage>> + Send + 'static,
    filter: WatchFilter,
    start: LogPosition,
    (own, turns): (Option<Arc<StreamOwners>>, Option<Arc<TurnWatcher>>),
    frame: impl Fn(WatchItem<'_>) -> T + Send + 'static,
) -> impl Stream<Item = T> + Send + 'static {
    let seen = own.clone();
    let of = filter.correlation;
    let said = said.then(move |said| {
        let own = seen.clone();
        let turns = turns.clone();
        async move {
            if let Some(own) = &own {
                own.apply_events(&said.events).await;
            }
            let changes = match turns {
                Some(turns) => {
                    let visible = said.events.iter().filter(|event| of.is_none_or(|of| event.correlation_id == of));
                    turns.apply_events(visible.filter(|event| is_visible_to(own.as_deref(), event)).collect()).await
                }
                None => Vec::new(),
            };
            (said, changes)
        }
    });
    said.flat_map(move |(said, changes)| {
        let wanted =
            said.events.iter().filter(|event| LogPosition::of_event(event) > start && filter.matches_event(event));
        let wanted = wanted.filter(|event| is_visible_to(own.as_deref(), event));
        let frames = wanted.flat_map(|event| {
            let change = changes.iter().find(|change| change.position == event.position);
            change.map(WatchItem::TurnStatus).into_iter().chain([WatchItem::Event(event)])
        });
        stream::iter(frames.map(&frame).collect::<Vec<_>>())
    })
}

fn is_visible_to(own: Option<&StreamOwners>, event: &EventJson) -> bool {
    own.is_none_or(|own| own.is_visible(event))
}

/// The pieces that the client wants.
fn visible_pieces<T: Send + 'static>(
    pieces: impl Stream<Item = LivePiece> + Send + 'static,
    filter: WatchFilter,
    own: Option<(Arc<StreamOwners>, usize)>,
    frame: impl Fn(WatchItem<'_>) -> T + Send + 'static,
) -> impl Stream<Item = (T, bool)> + Send + 'static {
    let wanted = pieces.filter(move |LivePiece { record: Record { envelope, .. }, .. }| {
        ready(filter.matches(envelope.thread_id.as_deref(), envelope.correlation_id))
    });
    let theirs = match own {
        Some((own, most)) => user_pieces::filter_by_user(wanted.boxed(), own, most).boxed(),
        None => wanted.boxed(),
    };
    theirs.filter_map(move |LivePiece { record, waits }| {
        let shown = live_fields(&record);
        ready(shown.map(|(name, data)| (frame(WatchItem::Live(name, data)), waits)))
    })
}

/// Returns the event name and the JSON data of a live piece; none if it is not one.
fn live_fields(piece: &Record) -> Option<(&'static str, Value)> {
    let About::Live(live) = piece.body.about() else { return None };
    let name = match live {
        Live::Token(_) => "token",
        Live::Output(_) => "output",
    };
    let mut data = piece.body.to_json();
    let (_, agent) = subjects::find_route(&piece.subject)?;
    let fields = data.as_object_mut()?;
    fields.insert("agent".to_owned(), Value::String(agent.to_string()));
    fields.insert("correlation_id".to_owned(), Value::String(piece.envelope.correlation_id.to_string()));
    Some((name, data))
}

impl WatchFilter {
    /// Returns the subscription to the tail for this filter: the narrowest interest that covers it.
    fn to_tail_filter(&self) -> TailFilter {
        let interest = match (self.correlation, &self.agent) {
            (Some(correlation), _) => Interest::Correlation(correlation),
            (None, Some(agent)) => Interest::Agent(agent.clone()),
            (None, None) => Interest::Everything,
        };
        TailFilter { interest, agent: self.agent.clone() }
    }

    fn matches_event(&self, event: &EventJson) -> bool {
        self.matches(event.thread_id.as_deref(), event.correlation_id)
    }

    fn matches(&self, thread: Option<&str>, correlation: Uuid) -> bool {
        let wanted = self.thread.as_ref().map(Name::as_str);
        (wanted.is_none() || thread == wanted) && self.correlation.is_none_or(|wanted| correlation == wanted)
    }
}

impl WatchRequest {
    /// Returns the place to begin at in a log that ends at `end`. A place beyond the end is an error: it belongs to
    /// another log, and following from there would show nothing and never say why.
    fn start_position(&self, end: u64) -> Result<LogPosition, Problem> {
        let mut fields = RequestFields::from_query(None);
        match self.after {
            None => return Ok(LogPosition::whole_message(end)),
            Some(after) if after.sequence <= end => return Ok(after),
            Some(_) => fields.reject("after", format!("a place up to {end}, where the log ends")),
        }
        fields.complete(|| None)
    }
}

/// Returns an error if messages after `start` were trimmed from the log, which begins at `begins`: a client that
/// resumes must not miss events unnoticed.
fn require_untrimmed(start: LogPosition, begins: u64) -> Result<(), Problem> {
    match start.complete_sequence() + 1 < begins {
        true => Err(Problem::position_trimmed(start, begins)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::coop::cooperative;

    use super::*;

    #[tokio::test]
    async fn the_log_and_tails_wait_for_a_slow_client_and_live_pieces_do_not() {
        let (client, mut received) = mpsc::channel(2);
        let pieces = [("t1", true), ("t2", true), ("t3", true), ("p1", false), ("p2", false), ("p3", false)];
        let pieces = stream::iter(pieces).chain(stream::pending());
        let events = stream::iter(["e1", "e2", "e3"]).chain(stream::pending());
        let forwarding = tokio::spawn(forward_items(pieces, events, client));
        let mut all = Vec::new();
        while all.last() != Some(&"e3") {
            all.extend(received.recv().await);
        }
        assert_eq!(all.iter().filter(|said| said.starts_with('t')).collect::<Vec<_>>(), [&"t1", &"t2", &"t3"]);
        assert_eq!(all.iter().filter(|said| said.starts_with('e')).collect::<Vec<_>>(), [&"e1", &"e2", &"e3"]);
        assert!(!all.contains(&"p3"), "{all:?}");
        drop(received);
        forwarding.await.unwrap();
    }

    fn received<T>(from: mpsc::Receiver<T>) -> impl Stream<Item = T> {
        stream::unfold(from, |mut from| async move { Some((from.recv().await?, from)) })
    }

    #[tokio::test]
    async fn pieces_without_end_do_not_keep_the_log_back() {
        let (client, mut shown) = mpsc::channel(2);
        let (logged, events) = mpsc::channel(2);
        // There is one whenever one is asked for, for as long as the task may run.
        let pieces = stream::repeat(("p", false)).then(|piece| cooperative(ready(piece)));
        tokio::spawn(forward_items(pieces, received(events), client));
        assert_eq!(shown.recv().await, Some("p"));
        for event in ["e1", "e2"] {
            logged.send(event).await.unwrap();
            while shown.recv().await != Some(event) {}
        }
    }

    #[tokio::test]
    async fn live_pieces_are_taken_also_while_a_tail_waits() {
        let (client, mut shown) = mpsc::channel(1);
        let (written, pieces) = mpsc::channel(1);
        let pieces = stream::iter([("t1", true), ("t2", true)]).chain(received(pieces));
        tokio::spawn(forward_items(pieces, stream::pending(), client));
        // More than all channels hold, while nobody reads what is shown.
        for _ in 0..10 {
            written.send(("p", false)).await.unwrap();
        }
        assert_eq!((shown.recv().await, shown.recv().await), (Some("t1"), Some("t2")));
    }

    #[test]
    fn a_place_beyond_the_end_is_an_error() {
        let wish = |after| WatchRequest { filter: WatchFilter::default(), after, live: false, turn_status: false };
        assert_eq!(wish(None).start_position(9), Ok(LogPosition::whole_message(9)));
        assert_eq!(wish(Some(LogPosition::whole_message(9))).start_position(9), Ok(LogPosition::whole_message(9)));
        assert!(wish(Some(LogPosition::whole_message(10))).start_position(9).is_err());
    }

    #[test]
    fn a_place_behind_which_something_was_trimmed_is_gone() {
        assert_eq!(require_untrimmed(LogPosition::whole_message(4), 5), Ok(()));
        assert_eq!(require_untrimmed(LogPosition { sequence: 5, position: 1 }, 5), Ok(()));
        // The rest of message 4 is gone.
        let gone = require_untrimmed(LogPosition { sequence: 4, position: 1 }, 5).unwrap_err();
        assert_eq!((gone.status.as_u16(), gone.kind), (410, "urn:kairo:problem:gone"));
        assert!(
            gone.detail.contains("begins at message 5") && gone.detail.contains("/v1/events?after=4.1"),
            "{}",
            gone.detail
        );
    }
}
