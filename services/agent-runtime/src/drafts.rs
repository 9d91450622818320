//! Drafts of the answers that models are writing. Pieces are sent live as they arrive; a client that connects late gets
//! the draft so far.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent, port::LiveMessage},
    envelope::Envelope,
    ids::Name,
    subjects::{LIVE_TOKEN, TAILS},
};
use kairo_proto::v1::LiveToken;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Bytes of reasoning, and of words, that are kept of one draft; of a longer one the end.
const KEPT_BYTES: usize = 64 << 10;
/// The longest time to wait for the connection to accept a repeated draft.
const PATIENCE: Duration = Duration::from_millis(100);

/// The drafts of this replica's agents, each for as long as its turn is thought about.
#[derive(Clone, Default)]
pub struct Drafts(Arc<Mutex<BTreeMap<(Name, Uuid), Draft>>>);

/// The draft of one turn, until it is dropped.
pub struct DraftWriter {
    drafts: Drafts,
    key: (Name, Uuid),
}

/// The text that one model call has written so far.
#[derive(Debug)]
struct Draft {
    /// Of the last piece.
    envelope: Envelope,
    call_id: String,
    thread_id: String,
    index: u32,
    reasoning: String,
    text: String,
}

impl Drafts {
    /// Of what the agent thinks about this input.
    pub fn open(&self, agent: &Name, input: Uuid) -> DraftWriter {
        DraftWriter { drafts: self.clone(), key: (agent.clone(), input) }
    }

    /// Repeats drafts to whoever asks for them, until told to stop.
    pub async fn serve_requests(self, bus: Bus, shutdown: CancellationToken) -> Result<(), BusError> {
        let mut questions = bus.subscribe(TAILS).await?;
        while let Some(Some(question)) = shutdown.run_until_cancelled(questions.next()).await {
            if timeout(PATIENCE, self.answer(&bus, &question)).await.is_err() {
                tracing::debug!(subject = question.subject, "the connection takes too long for a draft");
            }
        }
        Ok(())
    }

    /// The agent is the one that the subject names.
    async fn answer(&self, bus: &Bus, question: &LiveMessage) {
        let agent = question.subject.split('.').nth(2).and_then(|agent| Name::parse(agent).ok());
        let (Some(reply), Some(agent)) = (&question.reply, agent) else { return };
        for piece in self.draft_messages(&agent) {
            if let Err(error) = bus.publish_live_to(reply, &piece).await {
                tracing::debug!(%error, %agent, "a draft went nowhere");
            }
        }
    }

    fn draft_messages(&self, agent: &Name) -> Vec<OutgoingEvent> {
        let drafts = self.lock();
        let own = drafts.iter().filter(|((of, _), _)| of == agent);
        let pieces = own.flat_map(|(_, draft)| draft.to_live_tokens().map(|piece| (draft.envelope.clone(), piece)));
        pieces.map(|(envelope, piece)| OutgoingEvent::new(&LIVE_TOKEN, agent, envelope, piece)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Name, Uuid), Draft>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DraftWriter {
    /// Takes in a piece. One of another call begins another draft.
    pub fn add_token(&self, envelope: &Envelope, piece: &LiveToken) {
        let mut drafts = self.drafts.lock();
        match drafts.get_mut(&self.key).filter(|draft| draft.call_id == piece.call_id) {
            Some(draft) => draft.append(piece),
            None => {
                let mut draft = Draft {
                    envelope: envelope.clone(),
                    call_id: piece.call_id.clone(),
                    thread_id: piece.thread_id.clone(),
                    index: 0,
                    reasoning: String::new(),
                    text: String::new(),
                };
                draft.append(piece);
                drafts.insert(self.key.clone(), draft);
            }
        }
    }
}

impl Drop for DraftWriter {
    fn drop(&mut self) {
        self.drafts.lock().remove(&self.key);
    }
}

impl Draft {
    fn append(&mut self, piece: &LiveToken) {
        self.index = piece.index;
        let kept = if piece.reasoning { &mut self.reasoning } else { &mut self.text };
        kept.push_str(&piece.text);
        if kept.len() > KEPT_BYTES {
            let from = kept.ceil_char_boundary(kept.len() - KEPT_BYTES);
            kept.drain(..from);
        }
    }

    /// Both kinds as a piece each, the last with the index of the last piece: where there are both, there were two pieces at least.
    fn to_live_tokens(&self) -> impl Iterator<Item = LiveToken> {
        let both = !self.reasoning.is_empty() && !self.text.is_empty();
        let pieces = [(&self.reasoning, true), (&self.text, false)];
        pieces.into_iter().filter(|(text, _)| !text.is_empty()).map(move |(text, reasoning)| LiveToken {
            thread_id: self.thread_id.clone(),
            index: self.index - u32::from(both && reasoning),
            text: text.clone(),
            reasoning,
            call_id: self.call_id.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kairo_core::{envelope::Origin, subjects::Service};

    use super::*;

    fn envelope() -> Envelope {
        Envelope::from_outside(Uuid::from_u128(7), Service::Gateway, Origin::User, Timestamp::UNIX_EPOCH)
    }

    fn piece(call_id: &str, index: u32, text: &str, reasoning: bool) -> LiveToken {
        let thread_id = "t".to_owned();
        let text = text.to_owned();
        let call_id = call_id.to_owned();
        LiveToken { thread_id, index, text, reasoning, call_id }
    }

    fn told(drafts: &Drafts, agent: &Name) -> Vec<LiveToken> {
        drafts.lock().iter().filter(|((of, _), _)| of == agent).flat_map(|(_, draft)| draft.to_live_tokens()).collect()
    }

    #[test]
    fn what_was_written_of_the_call_under_way_is_repeated_until_its_turn_is_over() {
        let drafts = Drafts::default();
        let agent = Name::parse("cook").unwrap();
        let writing = drafts.open(&agent, Uuid::from_u128(1));
        let envelope = envelope();
        for (index, (text, reasoning)) in
            [("So", true), ("me", true), ("Soup", false), (" is", false)].iter().enumerate()
        {
            writing.add_token(&envelope, &piece("first", u32::try_from(index).unwrap(), text, *reasoning));
        }
        assert_eq!(told(&drafts, &agent), [piece("first", 2, "Some", true), piece("first", 3, "Soup is", false)]);
        assert!(told(&drafts, &Name::parse("other").unwrap()).is_empty());
        writing.add_token(&envelope, &piece("second", 0, "It", false));
        assert_eq!(told(&drafts, &agent), [piece("second", 0, "It", false)]);
        drop(writing);
        assert!(told(&drafts, &agent).is_empty());
    }

    #[test]
    fn of_a_long_draft_the_end_is_kept() {
        let drafts = Drafts::default();
        let agent = Name::parse("cook").unwrap();
        let writing = drafts.open(&agent, Uuid::from_u128(1));
        let envelope = envelope();
        for index in 0..3 {
            writing.add_token(&envelope, &piece("first", index, &"ü".repeat(KEPT_BYTES / 2), false));
        }
        writing.add_token(&envelope, &piece("first", 3, "!", false));
        let told = told(&drafts, &agent);
        let [LiveToken { text, index: 3, .. }] = told.as_slice() else { panic!("{}", told.len()) };
        assert!(text.len() <= KEPT_BYTES && text.ends_with("ü!"), "{}", text.len());
    }
}
