//! A turn that a chat client waits for: its answer whole, or while it grows.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use kairo_core::{ids::Name, record::Record, subjects::everything_of};
use kairo_proto::Body;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use uuid::Uuid;

use super::{
    Error,
    answer::Answer,
    conversations::{Conversations, Place, extended},
    growing::{self, Growing, Piece},
    request::history::Entry,
    turn::{Outcome, Reply, Turn},
};
use crate::{
    auth::Caller,
    dispatch::{Interest, Subscription},
    problem::Problem,
    state::Gateway,
    tail::{Said, Wanted},
};

/// Selects log messages that carry this correlation id and, as far as they are read from the log, concern the agent.
pub fn of_turn(correlation: Uuid, agent: Option<Name>) -> Wanted {
    Wanted { interest: Interest::Correlation(correlation), agent }
}

/// A turn that is waited for.
pub struct Waiting {
    pub event_id: Uuid,
    pub turn: Turn,
    pub log: BoxStream<'static, Arc<Said>>,
    /// The live output of the agent's models in this turn, if it is shown.
    pub tokens: Option<Subscription<Arc<Record>>>,
    pub deadline: Instant,
    /// The thread, as the user calls it.
    pub thread: String,
    /// The digest of the conversation up to the answered message; none for a message that is no turn of one.
    pub conversation: Option<Uuid>,
    pub presence: Presence,
    pub growing: Growing,
    /// Text that can be shown and was not sent yet.
    pub ready: String,
}

/// A guard that remembers a client that goes away before it got anything of the answer: whoever sends the same request
/// next goes on waiting for the same answer.
pub struct Presence {
    pub conversations: Conversations,
    pub event_id: Uuid,
    pub is_served: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.is_served {
            self.conversations.note_unanswered(self.event_id);
        }
    }
}

/// The next log message or live token of a turn.
enum Next {
    Said(Arc<Said>),
    Token(Arc<Record>),
}

impl Waiting {
    /// Takes in what has come of a message that was said before, as a whole: a question may have been answered.
    pub async fn catch_up(&mut self, gateway: &Gateway, agent: Name, said_at: u64) -> Result<(), Error> {
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

    /// Takes in what happens next.
    async fn go_on(&mut self, gateway: &Gateway, caller: &Caller) -> Result<(), Error> {
        let more = match self.next(gateway, caller).await? {
            Next::Said(said) => {
                self.take(gateway, &said).and_then(|input| self.growing.commit(input, self.turn.said()))
            }
            Next::Token(token) => self.piece(&token).and_then(|piece| self.growing.hear(piece)),
        };
        self.ready.extend(more);
        Ok(())
    }

    /// Waits until it is over or there is something to show, for so long at most.
    pub async fn begin(&mut self, gateway: &Gateway, caller: &Caller, limit: Duration) -> Result<(), Error> {
        let begun = async {
            while self.turn.outcome().is_none() && (self.ready.is_empty() || self.tokens.is_none()) {
                self.go_on(gateway, caller).await?;
            }
            Ok(())
        };
        timeout(limit, begun).await.unwrap_or(Ok(()))
    }

    /// Waits until it is over, and returns the answer.
    pub async fn whole(&mut self, gateway: &Gateway, caller: &Caller) -> Result<Reply, Error> {
        while self.turn.outcome().is_none() {
            self.go_on(gateway, caller).await?;
        }
        let reply = self.reply();
        self.presence.is_served = !self.is_asked();
        reply
    }

    /// Returns true if the answer is a question: the same request again gets its outcome.
    fn is_asked(&self) -> bool {
        matches!(self.turn.outcome(), Some(Outcome::Asked(_)))
    }

    /// Sends the answer while it grows; what goes wrong is sent, too.
    pub async fn stream(
        &mut self,
        gateway: &Gateway,
        caller: &Caller,
        answer: &Answer,
        include_usage: bool,
        client: &mpsc::Sender<String>,
    ) {
        // A client that is gone is noticed elsewhere.
        let send = async |chunk: Value| client.send(chunk.to_string()).await.is_ok();
        send(answer.beginning()).await;
        let ended = loop {
            let more = std::mem::take(&mut self.ready);
            if !more.is_empty() && send(answer.piece(&more)).await {
                self.presence.is_served = true;
            }
            if self.turn.outcome().is_some() {
                break self.reply();
            }
            if let Err(error) = self.go_on(gateway, caller).await {
                break Err(error);
            }
        };
        match ended.and_then(|reply| Ok((self.rest(&reply)?, reply))) {
            Ok((rest, reply)) => {
                self.presence.is_served = !self.is_asked();
                if !rest.is_empty() {
                    let is_refusal = self.growing.is_nothing_shown() && reply.is_refusal();
                    send(if is_refusal { answer.refusal(&rest) } else { answer.piece(&rest) }).await;
                }
                if !reply.calls.is_empty() {
                    send(answer.calls(&reply.calls)).await;
                }
                send(answer.end(&reply)).await;
                if include_usage {
                    send(answer.usage(self.turn.tokens())).await;
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
    fn rest(&mut self, reply: &Reply) -> Result<String, Error> {
        let rest = self.growing.end(&reply.text).map_err(|_| Error::began_anew())?;
        Ok(rest.unwrap_or_default())
    }

    /// A piece of this turn's answer.
    fn piece<'a>(&self, token: &'a Record) -> Option<Piece<'a>> {
        let Body::LiveToken(live) = &token.body else { return None };
        let input = token.envelope.causation_id?;
        let ours = token.envelope.correlation_id == self.event_id && !live.reasoning;
        ours.then_some(Piece { input, index: live.index, text: &live.text })
    }

    /// The answer. From here on the client's conversation stands where it was given.
    fn reply(&self) -> Result<Reply, Error> {
        let mut said = self.turn.said().to_vec();
        match self.turn.outcome() {
            Some(Outcome::Replied) | None => {}
            Some(Outcome::Failed(failed)) => return Err(Error::failed(&failed)),
            Some(Outcome::Asked(questions)) => said.push(questions),
            Some(Outcome::Undelivered(reason)) => return Err(Error::model_not_found(reason)),
        }
        let (ending, calls) = self.turn.ending();
        let reply = Reply { text: said.join(growing::BETWEEN), ending, calls: calls.to_vec() };
        if let Some(conversation) = self.conversation {
            let answered = extended(conversation, &Entry::answered(&reply.text, reply.calls.clone()));
            let place = Place { thread: self.thread.clone(), last: self.event_id };
            self.presence.conversations.note_answer(answered, place);
        }
        Ok(reply)
    }
}

/// The next piece, if pieces are shown.
async fn next_of(tokens: &mut Option<Subscription<Arc<Record>>>) -> Option<Arc<Record>> {
    tokens.as_mut()?.next().await
}
