//! `POST /v1/chat/completions`: says something to an agent and waits for the answer.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use jiff::Timestamp;
use kairo_core::{ids::Name, record::Record, subjects::everything_of};
use kairo_proto::Body;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use super::{
    super::{
        body, ingest,
        messages::{Message, parts::Given},
        query,
        span::traceparent,
    },
    Error,
    answer::Answer,
    growing::{self, Growing, Piece},
    identity, models,
    request::{self, Chat},
    turn::{Outcome, Turn},
};
use crate::{
    auth::Caller,
    dispatch::{Interest, Subscription},
    fields::{CLIENT_ID, NAME, client_id},
    problem::Problem,
    recent::Found,
    state::Gateway,
    tail::{Said, Wanted},
};

const USER: HeaderName = HeaderName::from_static("kairo-user");
const THREAD: HeaderName = HeaderName::from_static("kairo-thread");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub async fn post(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let headers = request.headers().clone();
    let body = body::within(request, gateway.config.openai_max_body_bytes, "gateway.openai_max_body_bytes").await?;
    let chat = request::read(&body, &gateway.config)?;
    let user = user(&headers, &chat, &caller)?;
    // Whom a client names besides is not told apart from whom the key is for: it is refused, and not put in another's place.
    caller.act_as_user(Some(user.as_str()))?;
    // Before it is said whether there is such an agent.
    caller.act_on_agent(Some(&chat.model))?;
    let (name, agent) = models::find(&gateway, &chat.model).await?;
    let permit = gateway.stream_permit(&caller)?;

    let message = Addressed::of(&gateway, &headers, &chat, user, name.clone()).await?;
    let thread = message.thread.clone();
    let streams = chat.stream && !agent.plans;
    let mut waiting = message.say(&gateway, &caller, traceparent(&headers), streams).await?;
    let created = Timestamp::now().as_second();
    let answer = Answer { event_id: waiting.event_id, created, model: name };

    let mut response = if chat.stream {
        let (client, chunks) = mpsc::channel(gateway.config.stream_buffer);
        let heartbeat = KeepAlive::new().interval(Duration::from_millis(gateway.config.heartbeat_ms));
        tokio::spawn(async move {
            tokio::select! {
                () = client.closed() => {}
                () = waiting.stream(&gateway, &caller, &answer, chat.include_usage, &client) => {}
            }
            drop(permit);
        });
        Sse::new(shown(chunks)).keep_alive(heartbeat).into_response()
    } else {
        let content = waiting.whole(&gateway, &caller).await?;
        Json(answer.whole(&content, waiting.turn.tokens())).into_response()
    };
    if let Ok(thread) = HeaderValue::from_str(&thread) {
        response.headers_mut().insert(THREAD, thread);
    }
    Ok(response)
}

fn shown(mut chunks: mpsc::Receiver<String>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::poll_fn(move |context| chunks.poll_recv(context)).map(|chunk| Ok(Event::default().data(chunk)))
}

/// Who speaks: the header, else the client's end user, else whom the key is for.
fn user(headers: &HeaderMap, chat: &Chat, caller: &Caller) -> Result<Name, Error> {
    if let Some(named) = name_in(headers, &USER)? {
        return Ok(named);
    }
    let own = || caller.user().and_then(|user| Name::parse(user).ok()).unwrap_or_else(identity::default_user);
    Ok(chat.user.as_deref().map_or_else(own, identity::user))
}

fn name_in(headers: &HeaderMap, header: &HeaderName) -> Result<Option<Name>, Error> {
    let Some(value) = headers.get(header) else { return Ok(None) };
    let name = value.to_str().ok().and_then(|value| Name::parse(value).ok());
    let wrong = || Error::invalid(Some(header.as_str()), format!("header {header}: expected {NAME}"));
    name.map(Some).ok_or_else(wrong)
}

/// A message to an agent, as it is about to be said.
struct Addressed {
    user: Name,
    agent: Name,
    thread: String,
    message_id: String,
    /// When it can have been said first; none for at any time.
    said_since: Option<Timestamp>,
    text: String,
    parts: Vec<Given>,
}

impl Addressed {
    async fn of(gateway: &Gateway, headers: &HeaderMap, chat: &Chat, user: Name, agent: Name) -> Result<Self, Error> {
        let first = chat.said.first().map(String::as_str).unwrap_or_default();
        let thread = name_in(headers, &THREAD)?.map(|thread| thread.to_string());
        let thread = thread.unwrap_or_else(|| identity::thread(&user, &agent, first));
        let key = headers.get(&KEY).map(|key| key.to_str().ok().and_then(client_id));
        let (message_id, said_since) = match key {
            Some(Some(key)) => (identity::keyed(&thread, &key), None),
            Some(None) => {
                return Err(Error::invalid(Some(KEY.as_str()), format!("header {KEY}: expected {CLIENT_ID}")));
            }
            None => {
                let (message_id, since) = said_before(gateway, &user, &agent, &thread, &chat.said).await;
                (message_id, Some(since))
            }
        };
        let (text, parts) = (chat.text.clone(), chat.parts.clone());
        Ok(Self { user, agent, thread, message_id, said_since, text, parts })
    }

    /// Says it, and begins to wait.
    async fn say(
        self,
        gateway: &Gateway,
        caller: &Caller,
        traceparent: Option<String>,
        streams: bool,
    ) -> Result<Waiting, Error> {
        // Before anything is said, so that nothing is missed.
        let event_id = ingest::event_id::<Message>(&self.user, &self.message_id);
        let log = gateway.tail.listen(of_turn(event_id, None)).into_stream().boxed();
        let tokens = if streams { Some(gateway.tokens.of(event_id).await.map_err(Problem::from)?) } else { None };
        let message = Message::new(self.user, self.agent.clone(), self.text, self.message_id.clone(), &self.thread);
        let message = message.with(self.parts).said_since(self.said_since);
        let accepted = ingest::enter(gateway, caller, traceparent, message).await?;
        let turn = Turn::new(event_id, self.message_id);
        let deadline = Instant::now() + Duration::from_millis(gateway.config.openai_wait_ms);
        let mut waiting = Waiting { event_id, turn, log, tokens, deadline };
        if accepted.is_known {
            waiting.catch_up(gateway, self.agent, accepted.sequence).await?;
        }
        Ok(waiting)
    }
}

/// The message's id, that of the same one said before if it was not long ago, and when it can have been said first.
async fn said_before(
    gateway: &Gateway,
    user: &Name,
    agent: &Name,
    thread: &str,
    said: &[String],
) -> (String, Timestamp) {
    let (time, window_ms) = (Timestamp::now(), gateway.config.openai_retry_ms);
    let [before, now] = identity::message_ids(agent, thread, said, time, window_ms);
    let since = time.checked_sub(Duration::from_millis(2 * window_ms)).unwrap_or(Timestamp::MIN);
    let is_known = match gateway.recent.find(ingest::event_id::<Message>(user, &before), Some(since)) {
        Found::At(_) => true,
        Found::Never => false,
        Found::Unknown => {
            let known = gateway.read_model.message(user.as_str(), &before);
            query::at_once(gateway, known).await.flatten().is_some()
        }
    };
    (if is_known { before } else { now }, since)
}

/// What is waited for of the log: what carries this correlation id, and, as far as it is read there, concerns the agent.
fn of_turn(correlation: Uuid, agent: Option<Name>) -> Wanted {
    Wanted { interest: Interest::Correlation(correlation), agent }
}

/// A turn that is waited for.
struct Waiting {
    event_id: Uuid,
    turn: Turn,
    log: BoxStream<'static, Arc<Said>>,
    /// What the agent's models write in this turn, if that is shown.
    tokens: Option<Subscription<Arc<Record>>>,
    deadline: Instant,
}

/// What happened next.
enum Next {
    Said(Arc<Said>),
    Token(Arc<Record>),
}

impl Waiting {
    /// Takes in what has come of a message that was said before, as a whole: a question may have been answered.
    async fn catch_up(&mut self, gateway: &Gateway, agent: Name, said_at: u64) -> Result<(), Error> {
        let mut position = said_at;
        let everything = everything_of(&agent);
        let read = gateway.bus.read_all(&everything, said_at, |raw| {
            position = raw.sequence;
            self.turn.take(&Said::read(&raw, gateway.bus.limits.max_body_bytes));
        });
        read.await.map_err(Problem::from)?;
        self.log = gateway.tail.join(of_turn(self.turn.correlation(), Some(agent)), position).into_stream().boxed();
        Ok(())
    }

    /// Takes in a message of the log. Returns the input that was decided on, if it is a decision of this turn.
    fn take(&mut self, gateway: &Gateway, said: &Said) -> Option<Uuid> {
        let before = self.turn.correlation();
        let decided = self.turn.take(said);
        // It is answered with another turn: from here on that one is waited for.
        if self.turn.correlation() != before {
            let into = of_turn(self.turn.correlation(), None);
            self.log = gateway.tail.join(into, said.sequence).into_stream().boxed();
        }
        decided
    }

    async fn next(&mut self, gateway: &Gateway, caller: &Caller) -> Result<Next, Error> {
        tokio::select! {
            Some(said) = self.log.next() => Ok(Next::Said(said)),
            Some(token) = next_of(&mut self.tokens) => Ok(Next::Token(token)),
            () = sleep_until(self.deadline) => Err(Error::timeout(gateway.config.openai_wait_ms)),
            () = caller.ended() => Err(Problem::unauthorized().into()),
            () = gateway.shutdown.cancelled() => {
                Err(Problem::unavailable("the gateway is stopping; send the same request again").into())
            }
        }
    }

    /// Waits until it is over, and returns the answer.
    async fn whole(&mut self, gateway: &Gateway, caller: &Caller) -> Result<String, Error> {
        loop {
            if let Some(outcome) = self.turn.outcome() {
                return Ok(self.paragraphs(outcome)?.join(growing::BETWEEN));
            }
            if let Next::Said(said) = self.next(gateway, caller).await? {
                self.take(gateway, &said);
            }
        }
    }

    /// Sends the answer while it grows; what goes wrong is sent, too.
    async fn stream(
        &mut self,
        gateway: &Gateway,
        caller: &Caller,
        answer: &Answer,
        include_usage: bool,
        client: &mpsc::Sender<String>,
    ) {
        // A client that is gone is noticed elsewhere.
        let send = async |chunk: Value| drop(client.send(chunk.to_string()).await);
        send(answer.beginning()).await;
        let mut growing = Growing::default();
        let ended = loop {
            if let Some(outcome) = self.turn.outcome() {
                break self.paragraphs(outcome).and_then(|said| growing.end(&said).map_err(|_| Error::began_anew()));
            }
            let more = match self.next(gateway, caller).await {
                Ok(Next::Said(said)) => {
                    self.take(gateway, &said).and_then(|input| growing.commit(input, self.turn.said()))
                }
                Ok(Next::Token(token)) => self.piece(&token).and_then(|piece| growing.hear(piece)),
                Err(error) => break Err(error),
            };
            if let Some(more) = more {
                send(answer.piece(&more)).await;
            }
        };
        match ended {
            Ok(rest) => {
                if let Some(rest) = rest {
                    send(answer.piece(&rest)).await;
                }
                send(answer.end()).await;
                if include_usage {
                    send(answer.usage(self.turn.tokens())).await;
                }
            }
            Err(error) => send(error.body()).await,
        }
        drop(client.send("[DONE]".to_owned()).await);
    }

    /// A piece of this turn's answer.
    fn piece<'a>(&self, token: &'a Record) -> Option<Piece<'a>> {
        let Body::LiveToken(live) = &token.body else { return None };
        let input = token.envelope.causation_id?;
        let ours = token.envelope.correlation_id == self.event_id && !live.reasoning;
        ours.then_some(Piece { input, index: live.index, text: &live.text })
    }

    /// The paragraphs of the answer.
    fn paragraphs(&self, outcome: Outcome) -> Result<Vec<String>, Error> {
        let mut said = self.turn.said().to_vec();
        match outcome {
            Outcome::Replied => {}
            Outcome::Asked(questions) => said.push(questions),
            Outcome::Undelivered(reason) => return Err(Error::model_not_found(reason)),
        }
        Ok(said)
    }
}

/// The next piece, if pieces are shown.
async fn next_of(tokens: &mut Option<Subscription<Arc<Record>>>) -> Option<Arc<Record>> {
    tokens.as_mut()?.next().await
}
