//! A turn that a chat client waits for: its answer whole, or while it grows.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use kairo_core::{ids::Name, record::Record, subjects::agent_filter};
use kairo_proto::Body;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use uuid::Uuid;

use super::{
    ChatError,
    completion::CompletionResponse,
    conversation_index::{ConversationIndex, ConversationPosition, extend_digest},
    request::history::HistoryEntry,
    streamed_answer::{self, OutputPiece, StreamedAnswer},
    turn::{ChatReply, ChatTurn, TurnOutcome},
};
use crate::{
    auth::Caller,
    dispatch::{Interest, Subscription},
    problem::Problem,
    state::Gateway,
    tail::{TailFilter, TailMessage},
};

/// Selects log messages that carry this correlation id and, as far as they are read from the log, concern the agent.
pub fn turn_filter(correlation: Uuid, agent: Option<Name>) -> TailFilter {
    TailFilter { interest: Interest::Correlation(correlation), agent }
}

/// A turn that is waited for.
pub struct TurnWait {
    pub event_id: Uuid,
    pub turn: ChatTurn,
    pub log: BoxStream<'static, Arc<TailMessage>>,
    /// The live output of the agent's models in this turn, if it is shown.
    pub tokens: Option<Subscription<Arc<Record>>>,
    pub deadline: Instant,
    /// The thread, as the user calls it.
    pub thread: String,
    /// The digest of the conversation up to the answered message; none for a message that is no turn of one.
    pub conversation: Option<Uuid>,
    pub presence: ClientPresence,
    pub growing: StreamedAnswer,
    /// Text that can be shown and was not sent yet.
    pub ready: String,
}

/// A guard that remembers a client that goes away before it got anything of the answer: whoever sends the same request
/// next goes on waiting for the same answer.
pub struct ClientPresence {
    pub conversations: ConversationIndex,
    pub event_id: Uuid,
    pub is_served: bool,
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        if !self.is_served {
            self.conversations.note_unanswered(self.event_id);
        }
    }
}

/// The next log message or live token of a turn.
enum TurnInput {
    LogMessage(Arc<TailMessage>),
    Token(Arc<Record>),
}

impl TurnWait {
    /// Takes in what has come of a message that was said before, as a whole: a question may have been answered.
    pub async fn catch_up(&mut self, gateway: &Gateway, agent: Name, said_at: u64) -> Result<(), ChatError> {
        let mut position = said_at;
        let everything = agent_filter(&agent);
        let read = gateway.bus.read_all(&everything, said_at, |raw| {
            position = raw.sequence;
            self.turn.apply_message(&TailMessage::decode(&raw, gateway.bus.limits.max_body_bytes));
        });
        read.await.map_err(Problem::from)?;
        self.log = gateway.tail.join(turn_filter(self.turn.correlation(), Some(agent)), position).into_stream().boxed();
        Ok(())
    }

    /// Takes in a message of the log. Returns the input that was decided on, if it is a decision of this turn.
    fn apply_message(&mut self, gateway: &Gateway, said: &TailMessage) -> Option<Uuid> {
        let before = self.turn.correlation();
        let decided = self.turn.apply_message(said);
        // It is answered with another turn: from here on that one is waited for.
        if self.turn.correlation() != before {
            let into = turn_filter(self.turn.correlation(), None);
            self.log = gateway.tail.join(into, said.sequence).into_stream().boxed();
        }
        decided
    }

    async fn next_input(&mut self, gateway: &Gateway, caller: &Caller) -> Result<TurnInput, ChatError> {
        tokio::select! {
            Some(said) = self.log.next() => Ok(TurnInput::LogMessage(said)),
            Some(token) = next_token(&mut self.tokens) => Ok(TurnInput::Token(token)),
            () = sleep_until(self.deadline) => Err(ChatError::timeout(gateway.config.openai_wait_ms)),
            () = caller.wait_for_expiry() => Err(Problem::no_valid_key().into()),
            () = gateway.shutdown.cancelled() => {
                Err(Problem::unavailable("the gateway is stopping; send the same request again").into())
            }
        }
    }

    /// Takes in what happens next.
    async fn advance(&mut self, gateway: &Gateway, caller: &Caller) -> Result<(), ChatError> {
        let more = match self.next_input(gateway, caller).await? {
            TurnInput::LogMessage(said) => self
                .apply_message(gateway, &said)
                .and_then(|input| self.growing.commit(input, self.turn.final_messages())),
            TurnInput::Token(token) => self.output_piece(&token).and_then(|piece| self.growing.add_piece(piece)),
        };
        self.ready.extend(more);
        Ok(())
    }

    /// Waits until it is over or there is something to show, for so long at most.
    pub async fn wait_until_showable(
        &mut self,
        gateway: &Gateway,
        caller: &Caller,
        limit: Duration,
    ) -> Result<(), ChatError> {
        let begun = async {
            while self.turn.outcome().is_none() && (self.ready.is_empty() || self.tokens.is_none()) {
                self.advance(gateway, caller).await?;
            }
            Ok(())
        };
        timeout(limit, begun).await.unwrap_or(Ok(()))
    }

    /// Waits until it is over, and returns the answer.
    pub async fn wait_for_reply(&mut self, gateway: &Gateway, caller: &Caller) -> Result<ChatReply, ChatError> {
        while self.turn.outcome().is_none() {
            self.advance(gateway, caller).await?;
        }
        let reply = self.conclude_reply();
        self.presence.is_served = !self.ends_with_question();
        reply
    }

    /// Returns true if the answer is a question: the same request again gets its outcome.
    fn ends_with_question(&self) -> bool {
        matches!(self.turn.outcome(), Some(TurnOutcome::Question(_)))
    }

    /// Sends the answer while it grows; what goes wrong is sent, too.
    pub async fn stream_reply(
        &mut self,
        gateway: &Gateway,
        caller: &Caller,
        answer: &CompletionResponse,
        include_usage: bool,
        client: &mpsc::Sender<String>,
    ) {
        // A client that is gone is noticed elsewhere.
        let send = async |chunk: Value| client.send(chunk.to_string()).await.is_ok();
        send(answer.role_chunk()).await;
        let ended = loop {
            let more = std::mem::take(&mut self.ready);
            if !more.is_empty() && send(answer.content_chunk(&more)).await {
                self.presence.is_served = true;
            }
            if self.turn.outcome().is_some() {
                break self.conclude_reply();
            }
            if let Err(error) = self.advance(gateway, caller).await {
                break Err(error);
            }
        };
        match ended.and_then(|reply| Ok((self.unsent_text(&reply)?, reply))) {
            Ok((rest, reply)) => {
                self.presence.is_served = !self.ends_with_question();
                if !rest.is_empty() {
                    let is_refusal = self.growing.has_shown_nothing() && reply.is_refusal();
                    send(if is_refusal { answer.refusal_chunk(&rest) } else { answer.content_chunk(&rest) }).await;
                }
                if !reply.calls.is_empty() {
                    send(answer.tool_calls_chunk(&reply.calls)).await;
                }
                send(answer.finish_chunk(&reply)).await;
                if include_usage {
                    send(answer.usage_chunk(self.turn.tokens())).await;
                }
            }
            Err(error) => {
                // Whoever sends it again goes on waiting where nothing but time ran out, and else asks again.
                self.presence.is_served |= self.turn.outcome().is_some();
                send(error.body()).await;
            }
        }
        drop(client.send("[DONE]".to_owned()).await);
    }

    /// Returns the part of the answer that was not shown yet.
    fn unsent_text(&mut self, reply: &ChatReply) -> Result<String, ChatError> {
        let rest = self.growing.remaining_text(&reply.text).map_err(|_| ChatError::answer_restarted())?;
        Ok(rest.unwrap_or_default())
    }

    /// A piece of this turn's answer.
    fn output_piece<'a>(&self, token: &'a Record) -> Option<OutputPiece<'a>> {
        let Body::LiveToken(live) = &token.body else { return None };
        let input = token.envelope.causation_id?;
        let ours = token.envelope.correlation_id == self.event_id && !live.reasoning;
        ours.then_some(OutputPiece { input, index: live.index, text: &live.text })
    }

    /// The answer. From here on the client's conversation stands where it was given.
    fn conclude_reply(&self) -> Result<ChatReply, ChatError> {
        let mut said = self.turn.agent_messages().to_vec();
        match self.turn.outcome() {
            Some(TurnOutcome::Replied) | None => {}
            Some(TurnOutcome::Failed(failed)) => return Err(ChatError::from_failure(&failed)),
            Some(TurnOutcome::Question(questions)) => said.push(questions),
            Some(TurnOutcome::Undelivered(reason)) => return Err(ChatError::model_not_found(reason)),
        }
        let (ending, calls) = self.turn.reply_ending();
        let reply = ChatReply { text: said.join(streamed_answer::BETWEEN), ending, calls: calls.to_vec() };
        if let Some(conversation) = self.conversation {
            let answered = extend_digest(conversation, &HistoryEntry::from_answer(&reply.text, reply.calls.clone()));
            let place = ConversationPosition { thread: self.thread.clone(), last: self.event_id };
            self.presence.conversations.note_answer(answered, place);
        }
        Ok(reply)
    }
}

/// The next piece, if pieces are shown.
async fn next_token(tokens: &mut Option<Subscription<Arc<Record>>>) -> Option<Arc<Record>> {
    tokens.as_mut()?.next().await
}
