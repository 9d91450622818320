//! `POST /v1/chat/completions`: says something to an agent and waits for the answer.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use kairo_core::{ids::Name, vocabulary::ANSWERS};
use tokio::sync::mpsc;

use super::{
    super::{body, request_span::traceparent},
    ChatError,
    completion::CompletionResponse,
    identity, models,
    request::{self, CompletionRequest},
    submission::ChatSubmission,
};
use crate::{
    auth::{Caller, limits::InFlightRequest},
    fields::{CLIENT_ID, NAME, parse_client_id},
    problem::Problem,
    state::Gateway,
};

/// The reason given when a wait for an answer has to make way for others.
const CROWDED: &str = "others are owed one of gateway.max_streams who have fewer";
const USER: HeaderName = HeaderName::from_static("kairo-user");
const THREAD: HeaderName = HeaderName::from_static("kairo-thread");
const ASIDE: HeaderName = HeaderName::from_static("kairo-aside");
const ANSWER: HeaderName = HeaderName::from_static("kairo-answer");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The number of times that OpenAI's libraries have sent the request before.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// Headers in which chat programs name the conversation whose history they keep, and send whole.
const CONVERSATIONS: [HeaderName; 3] = [
    HeaderName::from_static("x-openwebui-chat-id"),
    HeaderName::from_static("x-librechat-conversation-id"),
    HeaderName::from_static("x-conversation-id"),
];
/// Longest name of a conversation that is taken, in bytes.
const CONVERSATION_BYTES: usize = 256;

pub async fn create_completion(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, ChatError> {
    let headers = request.headers().clone();
    let dealing = request.extensions().get::<InFlightRequest>().cloned();
    let body = body::read_json(request, gateway.config.openai_max_body_bytes, "gateway.openai_max_body_bytes").await?;
    let chat = request::parse(&body, &gateway.config)?;
    let user = resolve_user(&headers, &chat, &caller)?;
    // Whom a client names besides is not told apart from whom the key is for: it is refused, and not put in another's place.
    caller.require_user(Some(user.as_str()))?;
    // Before it is said whether there is such an agent.
    caller.require_agent(Some(&chat.model))?;
    let (name, agent) = models::find_model(&gateway, &chat.model).await?;
    if let Some(dealing) = dealing {
        dealing.attribute_to(Some(user.as_str()))?;
    }
    let permit = gateway.stream_permit(&caller, Some(user.as_str()))?;
    let may_bring = gateway.conversations.allows_chat_requests(&gateway.bus).await.map_err(Problem::from)?;
    if !may_bring {
        reject_newer_features(&chat)?;
    }

    let awaits_work = chat.awaits_work || parse_answer_header(&headers)?;
    let asking = ChatSubmission {
        gateway: &gateway,
        caller: &caller,
        user,
        agent: name.clone(),
        traceparent: traceparent(&headers),
        thread: named_thread(&headers, &chat)?,
        conversation: named_conversation(&headers, &chat),
        key: idempotency_key(&headers)?,
        is_retry: headers.get(RETRIES).is_some_and(|count| count.as_bytes() != b"0"),
        is_aside: may_bring && (chat.is_aside || headers.get(ASIDE).is_some_and(|value| value.as_bytes() == b"true")),
        awaits_work,
        streams: chat.stream && !awaits_work && !agent.plans && !chat.tools.requires_checked_answer(),
        principal: caller.principal().to_string(),
        may_bring,
        chat: &chat,
    };
    // A turn that fails soon is told by its status, also to who asked for a stream.
    let heartbeat = Duration::from_millis(gateway.config.heartbeat_ms);
    let mut waiting = asking.submit_and_wait(heartbeat).await?;
    let answer = CompletionResponse { event_id: waiting.event_id, created: Timestamp::now().as_second(), model: name };
    let thread = waiting.thread.clone();

    let is_over = waiting.turn.outcome().is_some();
    let mut response = if chat.stream {
        if is_over {
            waiting.wait_for_reply(&gateway, &caller).await?;
        }
        let (client, chunks) = mpsc::channel(gateway.config.stream_buffer);
        let gateway = gateway.clone();
        let include_usage = chat.include_usage;
        tokio::spawn(async move {
            tokio::select! {
                () = client.closed() => {}
                () = permit.wait_until_revoked() => {}
                () = waiting.stream_reply(&gateway, &caller, &answer, include_usage, &client) => {}
            }
            drop(permit);
        });
        Sse::new(sse_events(chunks)).keep_alive(KeepAlive::new().interval(heartbeat)).into_response()
    } else {
        let reply = tokio::select! {
            biased;
            reply = waiting.wait_for_reply(&gateway, &caller) => reply?,
            () = permit.wait_until_revoked() => return Err(Problem::too_many_at_once(CROWDED).into()),
        };
        Json(answer.completion(&reply, waiting.turn.tokens())).into_response()
    };
    if let Ok(thread) = HeaderValue::from_str(&thread) {
        response.headers_mut().insert(THREAD, thread);
    }
    Ok(response)
}

fn sse_events(mut chunks: mpsc::Receiver<String>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::poll_fn(move |context| chunks.poll_recv(context)).map(|chunk| Ok(Event::default().data(chunk)))
}

/// Refuses what cannot stand in the log yet.
fn reject_newer_features(chat: &CompletionRequest) -> Result<(), ChatError> {
    let given = [
        ("tools", !chat.tools.tools.is_empty() || !chat.input.results.is_empty()),
        ("response_format", !chat.tools.response_format.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => {
            let detail = format!("{name} of clients are taken from epoch {ANSWERS} on: see kairo fleet promote");
            Err(ChatError::unsupported_parameter(name, detail))
        }
    }
}

/// Returns the user: from the header, else the client's end user, else the key's user, else a default user.
fn resolve_user(headers: &HeaderMap, chat: &CompletionRequest, caller: &Caller) -> Result<Name, ChatError> {
    if let Some(named) = parse_name_header(headers, &USER)? {
        return Ok(named);
    }
    let own = || match caller.user().and_then(|user| Name::parse(user).ok()) {
        Some(user) => user,
        None if matches!(caller, Caller::Loopback(_)) => identity::default_user(),
        None => identity::default_user_of(Some(&caller.principal().to_string())),
    };
    Ok(chat.user.as_deref().map_or_else(own, identity::to_user_name))
}

/// The thread whose history Kairo keeps: the header, else what the request names.
fn named_thread(headers: &HeaderMap, chat: &CompletionRequest) -> Result<Option<Name>, ChatError> {
    Ok(parse_name_header(headers, &THREAD)?.or(chat.thread.as_deref().map(identity::to_thread_name)))
}

fn named_conversation(headers: &HeaderMap, chat: &CompletionRequest) -> Option<String> {
    let in_header = CONVERSATIONS.iter().find_map(|name| headers.get(name)?.to_str().ok().map(str::to_owned));
    let named = in_header.or(chat.conversation.clone()).filter(|named| !named.is_empty());
    named.map(|mut named| {
        named.truncate(named.floor_char_boundary(CONVERSATION_BYTES));
        named
    })
}

/// Returns true if the header asks for the result of work.
fn parse_answer_header(headers: &HeaderMap) -> Result<bool, ChatError> {
    let Some(value) = headers.get(&ANSWER) else { return Ok(false) };
    let wrong =
        || ChatError::invalid(Some(ANSWER.as_str()), format!("header {ANSWER}: expected acknowledgement or result"));
    value.to_str().ok().and_then(request::is_result).ok_or_else(wrong)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ChatError> {
    let Some(key) = headers.get(&KEY) else { return Ok(None) };
    let key = key.to_str().ok().and_then(parse_client_id);
    let wrong = || ChatError::invalid(Some(KEY.as_str()), format!("header {KEY}: expected {CLIENT_ID}"));
    key.map(Some).ok_or_else(wrong)
}

fn parse_name_header(headers: &HeaderMap, header: &HeaderName) -> Result<Option<Name>, ChatError> {
    let Some(value) = headers.get(header) else { return Ok(None) };
    let name = value.to_str().ok().and_then(|value| Name::parse(value).ok());
    let wrong = || ChatError::invalid(Some(header.as_str()), format!("header {header}: expected {NAME}"));
    name.map(Some).ok_or_else(wrong)
}
