//! Messages that are decided on together with what stands before them, where the agent wants that.

use kairo_events::record::Record;
use kairo_proto::{Body, v1::AgentMessage};

use super::{Log, NextInput, is_mere_fact};
use crate::{
    chain::{ChainMove, Origin, THINK},
    state::{AgentTurn, Interjection, TurnCause},
};

impl Log {
    /// Goes on from the input to the last message of its thread, as long as nothing else between them wants a decision.
    pub(super) fn join_messages(&mut self, input: u64) -> Option<NextInput> {
        let mut at = self.pending.iter().position(|ahead| ahead.sequence == input)?;
        while self.interjection_policy() != Interjection::Order
            && let Some(next) = self.next_message_of_thread(at)
            && self.may_join(next)
        {
            for ahead in self.pending.iter().take(next + 1).skip(at + 1) {
                if ahead.sequence > self.observed {
                    std::sync::Arc::make_mut(&mut self.state).apply_record(ahead.record.as_ref()?);
                    self.observed = ahead.sequence;
                }
            }
            at = next;
        }
        let last = self.pending.get(at)?;
        if let Some(base) = &mut self.base {
            base.input = last.sequence;
        }
        last.record.clone().map(|record| NextInput::Input(record.into()))
    }

    /// Returns true if the decision in progress would also cover the message at this sequence if it were made anew.
    pub fn would_join(&self, message: u64) -> bool {
        let base = self.base.as_ref().filter(|base| !base.overtakes);
        let next = base.and_then(|base| self.next_message_of_thread(self.pending_index(base.input)?));
        next.and_then(|next| self.pending.get(next)).is_some_and(|next| next.sequence == message)
    }

    /// Discards the model answers: the decision starts again, with the messages that came meanwhile.
    pub fn restart_joining(&mut self) {
        self.joined = None;
    }

    fn interjection_policy(&self) -> Interjection {
        self.state.profile.as_ref().map(|profile| profile.interjection).unwrap_or_default()
    }

    fn may_join(&self, at: usize) -> bool {
        let sequence = self.pending.get(at).map(|ahead| ahead.sequence);
        self.joined.is_none_or(|joined| sequence.is_some_and(|sequence| sequence <= joined))
    }

    /// Returns the index of the next pending message of the same thread and user, if only facts stand before it.
    fn next_message_of_thread(&self, at: usize) -> Option<usize> {
        let front = self.pending.get(at)?.record.as_ref()?;
        let is_message = AgentMessage::of(&front.body).is_some();
        let thread = if is_message { self.thread_of_message(front)? } else { self.thread_of_step(front)? };
        let passed_over = |body: &Body| {
            AgentMessage::of(body).map_or_else(|| is_mere_fact(body), |message| self.state.has_seen_message(message))
        };
        for (position, ahead) in self.pending.iter().enumerate().skip(at + 1) {
            // What is not here yet is not known to be passed over.
            let record = ahead.record.as_ref()?;
            if !passed_over(&record.body) {
                // What a chat client sends goes on from where it says, not from here.
                let is_plain = is_message || AgentMessage::of(&record.body).is_some_and(|it| it.chat.is_none());
                return (is_plain && self.thread_of_record(record)? == thread).then_some(position);
            }
        }
        None
    }

    /// The thread and the user of a message that is being decided on. One that is refused is answered by itself.
    fn thread_of_message(&self, record: &Record) -> Option<(String, String)> {
        self.state.due_turn(record.sequence).filter(|(_, turn)| turn.cause == TurnCause::Message)?;
        self.thread_of_record(record)
    }

    /// The thread and the user of any other input that continues a turn and only needs to be thought about: a user who
    /// interjects meanwhile is answered together with it.
    fn thread_of_step(&self, record: &Record) -> Option<(String, String)> {
        let profile = self.state.profile.as_ref()?;
        if profile.interjection != Interjection::Restart || profile.topics {
            return None;
        }
        let (_, turn) = self.state.due_turn(record.sequence)?;
        // Nobody is answered in a thread of work.
        let is_heard = continues_by_thinking(turn) && !self.state.is_background_thread(&turn.thread_id);
        is_heard.then(|| (turn.thread_id.clone(), turn.user.clone()))
    }

    fn thread_of_record(&self, record: &Record) -> Option<(String, String)> {
        let message = AgentMessage::of(&record.body)?;
        Some((self.state.thread_id_of(record, message), message.user.clone()))
    }
}

/// Returns true if the turn is of a conversation and has nothing left to do but think about the results of its calls.
fn continues_by_thinking(turn: &AgentTurn) -> bool {
    let is_said = matches!(turn.cause, TurnCause::Message | TurnCause::Event);
    let is_plain = turn.chat.is_none() && turn.unplaced.is_none() && turn.offer.is_none();
    let thinks = turn.chain.as_ref().is_none_or(|chain| {
        let is_thought = |at: &usize| chain.steps.get(*at).is_some_and(|run| run.step.event == THINK);
        let is_next = matches!(chain.next_move(), ChainMove::Start(steps) if steps.iter().all(is_thought));
        chain.origin == Origin::Calls && is_next
    });
    is_said && is_plain && thinks && turn.waiting.is_empty() && !turn.thread_id.is_empty()
}
