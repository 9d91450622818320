//! Events as they come, over server-sent events; a lost connection is taken up where it broke.

use std::{pin::Pin, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use eventsource_stream::{Event, EventStream};
use futures::{Stream, StreamExt};
use kairo_core::event_json::EventJson;
use kairo_proto::v1::TurnStatus;
use reqwest::{Method, header};
use serde_json::Value;

use super::{Client, ClientError, EventFilter};

/// Tries to get a lost connection back, about 30 s in all: as long as a gateway takes to be restarted.
const RETRIES: usize = 10;
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// One thing that the gateway tells while it is followed.
#[derive(Clone, Debug)]
pub enum StreamUpdate {
    /// An event of the log.
    Event(Box<EventJson>),
    /// A change of a turn's status, sent before the event that caused it.
    TurnStatus(Box<TurnStatus>),
    /// A piece of an answer, or of a process's output: never stored, and told once if at all.
    Live { name: String, data: Value },
}

type SseStream = EventStream<Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>>;

/// The stream of updates, in order.
pub struct EventFollower {
    client: Client,
    filter: EventFilter,
    /// The kinds of updates requested beside events.
    besides: &'static [&'static str],
    last_id: String,
    events: Option<SseStream>,
    /// Of the connection that was lost; none before the first.
    retries: Option<backon::ExponentialBackoff>,
}

impl EventFollower {
    pub(super) fn new(client: Client, filter: EventFilter, live: bool) -> Self {
        let besides: &[_] = if live { &["live"] } else { &[] };
        Self { client, filter, besides, last_id: String::new(), events: None, retries: None }
    }

    /// Follows changes of turns' status as well.
    #[must_use]
    pub fn with_turn_status(self) -> Self {
        Self { besides: &["turn_status"], ..self }
    }

    /// Connects, if that has not been done: what happens from here on will be told.
    pub async fn open(&mut self) -> Result<(), ClientError> {
        if self.events.is_none() {
            self.events = Some(self.connect().await?);
        }
        Ok(())
    }

    /// Waits for the next. An error is final: the gateway refused, or did not come back.
    pub async fn next(&mut self) -> Result<StreamUpdate, ClientError> {
        loop {
            if let Err(error) = self.open().await {
                self.wait_before_retry(error).await?;
                continue;
            }
            match self.events.as_mut().map(|events| events.next()) {
                Some(next) => match next.await {
                    Some(Ok(event)) => {
                        self.retries = Some(retries());
                        if let Some(told) = self.parse_event(event)? {
                            return Ok(told);
                        }
                    }
                    // Ended or broken: the same to us.
                    _ => {
                        self.events = None;
                        self.retries.get_or_insert_with(retries);
                    }
                },
                None => continue,
            }
        }
    }

    async fn wait_before_retry(&mut self, error: ClientError) -> Result<(), ClientError> {
        let lost = matches!(error, ClientError::Unreachable { .. })
            || matches!(error, ClientError::Refused { status, .. } if status >= 500);
        match self.retries.as_mut().filter(|_| lost).and_then(Iterator::next) {
            Some(delay) => {
                tokio::time::sleep(delay).await;
                Ok(())
            }
            None => Err(error),
        }
    }

    async fn connect(&self) -> Result<SseStream, ClientError> {
        let mut query = self.filter.query();
        query.extend(self.besides.iter().map(|besides| (*besides, true.to_string())));
        let mut request = self.client.request(Method::GET, "v1/events/stream", &query)?;
        request = request.header(header::ACCEPT, "text/event-stream");
        if !self.last_id.is_empty() {
            request = request.header("last-event-id", &self.last_id);
        }
        let response = self.client.send_checked(request).await?;
        Ok(EventStream::new(Box::pin(response.bytes_stream())))
    }

    fn parse_event(&mut self, event: Event) -> Result<Option<StreamUpdate>, ClientError> {
        if !event.id.is_empty() {
            self.last_id = event.id;
        }
        let unreadable = |error: serde_json::Error| self.client.unreadable(error);
        Ok(match event.event.as_str() {
            "message" | "event" | "" => {
                Some(StreamUpdate::Event(serde_json::from_str(&event.data).map_err(unreadable)?))
            }
            "turn.status" => Some(StreamUpdate::TurnStatus(serde_json::from_str(&event.data).map_err(unreadable)?)),
            name @ ("token" | "output") => Some(StreamUpdate::Live {
                name: name.to_owned(),
                data: serde_json::from_str(&event.data).map_err(unreadable)?,
            }),
            // A newer gateway may tell more.
            _ => None,
        })
    }
}

fn retries() -> backon::ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(RETRY_FIRST)
        .with_max_delay(RETRY_LONGEST)
        .with_max_times(RETRIES)
        .build()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Answers one request with these events and hangs up; returns the request's head.
    async fn serve(listener: &TcpListener, status: &str, events: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(events.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap().to_lowercase()
    }

    fn event(sequence: u64) -> String {
        let nil = uuid::Uuid::nil();
        let event = json!({
            "event_id": nil, "ts": "2026-01-01T00:00:00Z", "source": "user", "modality": "text",
            "payload": {"text": "hi"}, "meta": {"tags": []}, "type": v1::UserMessage::TYPE, "sequence": sequence,
            "position": 0, "subject": "kairo.user.you.message", "correlation_id": nil, "causation_id": null,
            "thread_id": null,
        });
        format!("id: {sequence}.0\ndata: {event}\n\n")
    }

    async fn follow() -> (TcpListener, EventFollower) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let filter = EventFilter { after: Some(3), ..EventFilter::default() };
        (listener, client.follow(filter, true))
    }

    async fn next_sequence(follow: &mut EventFollower) -> u64 {
        match follow.next().await.unwrap() {
            StreamUpdate::Event(event) => event.sequence,
            other => panic!("{other:?} is not an event"),
        }
    }

    #[tokio::test]
    async fn a_lost_connection_is_taken_up_where_it_broke() {
        let (listener, mut follow) = follow().await;
        let gateway = async {
            let first = serve(&listener, "200 OK", &event(4)).await;
            serve(&listener, "503 Service Unavailable", "").await;
            (first, serve(&listener, "200 OK", &event(5)).await)
        };
        let following = async { (next_sequence(&mut follow).await, next_sequence(&mut follow).await) };
        let ((first, last), sequences) = tokio::join!(gateway, following);
        assert_eq!(sequences, (4, 5));
        assert!(first.starts_with("get /v1/events/stream?after=3&live=true "), "{first}");
        assert!(!first.contains("last-event-id") && last.contains("last-event-id: 4.0\r\n"), "{last}");
    }

    #[tokio::test]
    async fn live_pieces_are_told_apart_and_what_is_unknown_passed_over() {
        let (listener, mut follow) = follow().await;
        let live = "event: news\ndata: 1\n\nevent: token\ndata: {\"text\":\"he\"}\n\n";
        let (_, told) = tokio::join!(serve(&listener, "200 OK", live), follow.next());
        assert!(matches!(told, Ok(StreamUpdate::Live { name, data }) if name == "token" && data["text"] == "he"));
    }

    #[tokio::test]
    async fn a_change_of_a_turns_status_is_told_where_it_is_asked_for() {
        let (listener, follow) = follow().await;
        let mut follow = follow.with_turn_status();
        let change = "event: turn.status\ndata: {\"status\":\"executing\",\"previous\":\"planning\"}\n\n";
        let (request, told) = tokio::join!(serve(&listener, "200 OK", change), follow.next());
        assert!(request.starts_with("get /v1/events/stream?after=3&turn_status=true "), "{request}");
        assert!(matches!(told, Ok(StreamUpdate::TurnStatus(change)) if change.status == "executing"));
    }

    #[tokio::test]
    async fn a_refusal_is_final() {
        let (listener, mut follow) = follow().await;
        let (_, refused) = tokio::join!(serve(&listener, "400 Bad Request", ""), follow.next());
        assert!(matches!(refused, Err(ClientError::Refused { status: 400, .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_gateway_that_was_never_there_is_not_waited_for() {
        let (listener, mut follow) = follow().await;
        drop(listener);
        assert!(matches!(follow.next().await, Err(ClientError::Unreachable { .. })));
    }
}
