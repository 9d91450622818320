//! Turns the request of a chat client into a message to an agent: chooses its thread and its id.
//!
//! A request is a retry if its `Idempotency-Key` was there before, if the client's library says so, or if whoever sent
//! the same lately went away without an answer. A retry gets the answer to the first request, unless that turn failed.
//! Any other request asks anew, whatever was said before: two callers never share a thread for saying the same.

use std::time::Duration;

use axum::http::StatusCode;
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{ids::Name, threads};
use kairo_proto::v1::{ChatRequest, UserMessage};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    ChatError,
    conversation_index::{ConversationPosition, extend_digest, history_digest},
    identity,
    request::{CompletionRequest, history},
    streamed_answer::StreamedAnswer,
    turn::{ChatTurn, TurnOutcome},
    turn_wait::{ClientPresence, TurnWait, turn_filter},
};
use crate::{
    auth::Caller,
    http::{ingest, messages::MessageInput, query},
    problem::Problem,
    recent_messages::MessageLookup,
    state::Gateway,
};

/// Most equal requests that are told apart within a window of time, and most tries with one key.
const NUMBERS: u32 = 4_096;
const KEYED: u32 = 64;
/// Threads that a message is put into one after the other, since somebody else was faster.
const PLACES: usize = 3;

/// A request that is to be answered.
pub struct ChatSubmission<'a> {
    pub gateway: &'a Gateway,
    pub caller: &'a Caller,
    pub user: Name,
    pub agent: Name,
    pub chat: &'a CompletionRequest,
    pub traceparent: Option<String>,
    /// The thread whose history Kairo keeps, if the client names one.
    pub thread: Option<Name>,
    /// The client's name for the conversation whose history it keeps itself.
    pub conversation: Option<String>,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// True if the client's library says that it sent the request before.
    pub is_retry: bool,
    /// True if it is no turn of a conversation.
    pub is_aside: bool,
    /// True if the answer is the result of the work that the turn queues, and not the acknowledgement.
    pub awaits_work: bool,
    /// True if the output of models is shown while they write it.
    pub streams: bool,
    /// The caller, as the log names them.
    pub principal: String,
    /// True if messages may carry what chat clients bring.
    pub may_bring: bool,
}

/// The thread that a message goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ThreadChoice {
    /// A new thread, which begins with what the client says was said before.
    New,
    /// A thread that ends with this message.
    Continue(ConversationPosition),
    /// A new thread, which goes on from within another one.
    Fork(ConversationPosition),
    /// The thread that the client names, whatever is in it.
    Named(String),
}

/// The condition under which a message with a known id counts as the one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryMatch {
    /// Yes, unless its turn failed.
    Yes,
    /// As long as it is not answered.
    Unanswered,
    No,
}

impl ChatSubmission<'_> {
    /// Says it and begins to wait. A turn that failed is asked for anew.
    pub async fn submit_and_wait(&self, limit: Duration) -> Result<TurnWait, ChatError> {
        let mut spot = self.choose_thread().await;
        for _ in 0..PLACES {
            let mut waiting = self.submit_once(&spot).await?;
            waiting.wait_until_showable(self.gateway, self.caller, limit).await?;
            if !waiting.turn.has_moved_on() {
                return Ok(waiting);
            }
            waiting.presence.is_served = true;
            spot = match spot {
                ThreadChoice::Continue(place) => ThreadChoice::Fork(place),
                ThreadChoice::New | ThreadChoice::Fork(_) | ThreadChoice::Named(_) => ThreadChoice::New,
            };
        }
        let detail = "others speak in this conversation at the same time; send the request again";
        Err(Problem::unavailable(detail).into())
    }

    /// Returns the names that separate conversations which must never be one.
    fn conversation_scope(&self) -> Vec<&str> {
        let named = self.thread.as_ref().map(Name::as_str).unwrap_or_default();
        let conversation = self.conversation.as_deref().unwrap_or_default();
        vec![&self.principal, self.user.as_str(), self.agent.as_str(), named, conversation]
    }

    /// Returns the thread for the message, judging by the history that the client sends.
    async fn choose_thread(&self) -> ThreadChoice {
        let named = || self.thread.as_ref().map(|thread| ThreadChoice::Named(thread.to_string()));
        if self.is_aside {
            return ThreadChoice::New;
        }
        if self.chat.history.is_empty() {
            return named().unwrap_or(ThreadChoice::New);
        }
        let before = history_digest(&self.conversation_scope(), &self.chat.history);
        match self.gateway.conversations.find(before).await {
            Some((place, true)) => ThreadChoice::Continue(place),
            Some((place, false)) => ThreadChoice::Fork(place),
            None => ThreadChoice::New,
        }
    }

    /// Says it, if it was not said before, and begins to wait.
    async fn submit_once(&self, spot: &ThreadChoice) -> Result<TurnWait, ChatError> {
        let (mut number, again, window) = self.first_number(spot).await;
        let most = if self.key.is_some() { KEYED } else { NUMBERS };
        while number < most {
            let message_id = self.message_id(window, number);
            let (waiting, is_known) = self.submit_message(spot, message_id).await?;
            let is_meant = match (waiting.turn.outcome(), again) {
                _ if !is_known => true,
                (Some(TurnOutcome::Failed(_) | TurnOutcome::Undelivered(_)), _) | (_, RetryMatch::No) => false,
                (Some(TurnOutcome::Replied), RetryMatch::Unanswered) => false,
                (Some(TurnOutcome::Replied | TurnOutcome::Question(_)) | None, _) => true,
            };
            if is_meant {
                return Ok(waiting);
            }
            let mut waiting = waiting;
            waiting.presence.is_served = true;
            number += 1;
        }
        Err(Problem::too_many_at_once("as many of the same request as are told apart are under way").into())
    }

    fn message_id(&self, window: u64, number: u32) -> String {
        let whose = self.conversation_scope();
        match &self.key {
            // A key is for one request, whichever conversation that is of.
            Some(key) => identity::keyed_message_id(whose.get(..3).unwrap_or_default(), key, number),
            None => identity::message_id(&whose, &self.chat.digest, window, number),
        }
    }

    /// The number under which it is said, or was said before; whether it was; and the window of time that counts.
    async fn first_number(&self, spot: &ThreadChoice) -> (u32, RetryMatch, u64) {
        if self.key.is_some() {
            return (0, RetryMatch::Yes, 0);
        }
        let now = identity::retry_window(Timestamp::now(), self.gateway.config.openai_retry_ms);
        let here = self.last_number(now).await;
        let before = self.last_number(now.saturating_sub(1)).await;
        let last = here.map(|number| (number, now)).or(before.map(|number| (number, now.saturating_sub(1))));
        let (number, window) = last.unwrap_or((0, now));
        let was_left = || {
            let event_id = self.event_id(&self.message_id(window, number));
            self.gateway.conversations.take_unanswered(event_id)
        };
        match spot {
            _ if self.is_retry || last.is_some() && was_left() => (number, RetryMatch::Yes, window),
            // In a thread that the client names, the same words at once are one message.
            ThreadChoice::Named(_) => (number, RetryMatch::Unanswered, window),
            ThreadChoice::New | ThreadChoice::Continue(_) | ThreadChoice::Fork(_) => {
                (here.map_or(0, |number| number + 1), RetryMatch::No, now)
            }
        }
    }

    /// The last of the same messages in a window, if there is one.
    async fn last_number(&self, window: u64) -> Option<u32> {
        let mut last = None;
        for number in 0..NUMBERS {
            if !self.is_known(&self.message_id(window, number)).await {
                break;
            }
            last = Some(number);
        }
        last
    }

    fn event_id(&self, message_id: &str) -> Uuid {
        ingest::event_id::<MessageInput>(&self.user, message_id)
    }

    /// When a message can have been said first whose id is of this window or the one before.
    fn earliest_said_at(&self) -> Option<Timestamp> {
        let windows = Duration::from_millis(2 * self.gateway.config.openai_retry_ms);
        let since = Timestamp::now().checked_sub(windows).unwrap_or(Timestamp::MIN);
        self.key.is_none().then_some(since)
    }

    async fn is_known(&self, message_id: &str) -> bool {
        match self.gateway.recent.find(self.event_id(message_id), self.earliest_said_at()) {
            MessageLookup::At(_) => true,
            MessageLookup::Never => false,
            MessageLookup::Unknown => {
                let model = self.gateway.read_model_for(self.caller, Some(self.user.as_str()));
                let known = model.find_message(self.user.as_str(), message_id);
                query::lookup_or_none(self.gateway, known).await.flatten().is_some()
            }
        }
    }

    /// Puts a message into the log under this id, unless one is there. Returns whether one was.
    async fn submit_message(&self, spot: &ThreadChoice, message_id: String) -> Result<(TurnWait, bool), ChatError> {
        let gateway = self.gateway;
        // Before anything is said, so that nothing is missed.
        let event_id = self.event_id(&message_id);
        let log = gateway.tail.listen(turn_filter(event_id, None)).into_stream().boxed();
        let tokens = if self.streams {
            Some(gateway.tokens.subscribe_turn(event_id).await.map_err(Problem::from)?)
        } else {
            None
        };
        let (message, thread) = self.build_message(spot, &message_id);
        let accepted = ingest::submit_input(gateway, self.caller, self.traceparent.clone(), message).await;
        let accepted = accepted.map_err(|problem| self.to_chat_error(problem))?;
        let conversations = gateway.conversations.clone();
        let mut waiting = TurnWait {
            event_id,
            turn: ChatTurn::new(event_id, message_id).awaiting_work(self.awaits_work),
            log,
            tokens,
            deadline: Instant::now() + Duration::from_millis(gateway.config.openai_wait_ms),
            thread,
            conversation: (!self.is_aside).then(|| self.conversation_digest()),
            presence: ClientPresence { conversations, event_id, is_served: false },
            growing: StreamedAnswer::default(),
            ready: String::new(),
        };
        if accepted.is_known {
            let stored = gateway.bus.record_at(accepted.sequence).await.map_err(Problem::from)?;
            if let Some(stored) = UserMessage::of(&stored.body) {
                waiting.thread.clone_from(&stored.thread_id);
            }
            waiting.catch_up(gateway, self.agent.clone(), accepted.sequence).await?;
        } else {
            gateway.conversations.note_message(&waiting.thread, event_id);
        }
        Ok((waiting, accepted.is_known))
    }

    /// Converts a problem into an error that names the client's key, since ids of messages are made from it.
    fn to_chat_error(&self, problem: Problem) -> ChatError {
        match &self.key {
            Some(key) if problem.status == StatusCode::CONFLICT => ChatError::reused_key(key),
            _ => problem.into(),
        }
    }

    /// The conversation with what is to be answered.
    fn conversation_digest(&self) -> Uuid {
        let before = history_digest(&self.conversation_scope(), &self.chat.history);
        self.chat.input.entries.iter().fold(before, extend_digest)
    }

    /// The message, and the thread that it goes into.
    fn build_message(&self, spot: &ThreadChoice, message_id: &str) -> (MessageInput, String) {
        // Without a word of what was said before, a thread that is known is better than none.
        let thread = match spot {
            ThreadChoice::Named(thread) => thread.clone(),
            ThreadChoice::Continue(place) => place.thread.clone(),
            ThreadChoice::New | ThreadChoice::Fork(_) => identity::new_thread(message_id),
        };
        let input = &self.chat.input;
        let user = self.user.clone();
        let agent = self.agent.clone();
        let message = MessageInput::new(user, agent, input.text.clone(), message_id.to_owned(), &thread);
        let chat = self.may_bring.then(|| self.build_chat_request(spot));
        (message.with_parts(input.parts.clone()).with_said_since(self.earliest_said_at()).with_chat(chat), thread)
    }

    fn build_chat_request(&self, spot: &ThreadChoice) -> ChatRequest {
        let CompletionRequest { instructions, history, input, tools, digest, .. } = self.chat;
        let (after, fork_of) = match spot {
            ThreadChoice::New | ThreadChoice::Named(_) => (String::new(), String::new()),
            ThreadChoice::Continue(place) => (place.last.to_string(), String::new()),
            ThreadChoice::Fork(place) => {
                let thread = threads::id_for_name(self.agent.as_str(), self.user.as_str(), &place.thread);
                (place.last.to_string(), thread)
            }
        };
        let is_new = matches!(spot, ThreadChoice::New | ThreadChoice::Fork(_));
        ChatRequest {
            instructions: instructions.clone(),
            history: if is_new { history::seed_messages(history) } else { Vec::new() },
            tools: tools.tools.clone(),
            tool_choice: tools.tool_choice.clone(),
            response_format: tools.response_format.clone(),
            results: input.results.clone(),
            is_aside: self.is_aside,
            single_call: tools.single_call,
            after,
            fork_of,
            digest: digest.clone(),
            conversation: if self.is_aside { String::new() } else { self.conversation_digest().to_string() },
        }
    }
}
