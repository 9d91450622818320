//! Computes the effect of removing or editing a message. No model is asked: a decision whose requests stay as they
//! were keeps its answers, and is then certain to be the same or another one. The answer that a model would have
//! given to another request is not known, and neither is anything that follows from it. The unknown decisions and the
//! messages that would not exist at all form the cone of the change.
//!
//! Beside the log as it stands, the log is applied as it would be: without the messages that vanish, and with nothing
//! in the place of an unknown decision. A later request that shows any of this therefore comes out as another one,
//! and is not known either. The effects of an unknown decision might show elsewhere, too: decisions behind it that
//! stay as they are count as presumed.

mod cone;
mod live_decisions;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kairo_events::{
    ids::Name,
    log_message,
    record::Record,
    subjects,
    vocabulary::{NewerReaderNeeded, NotUnderstood},
};
use kairo_mind::replay::{
    Replay, ReplayError, ReplayRun, RequestDrift,
    changes::ReplayChanges,
    comparison,
    rerun::{KeptAnswers, Rerun},
};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, AgentMessage, LogMessage},
};

use self::live_decisions::AwaitedDecision;
pub use self::{
    cone::{Cone, ConeCounts, ConeFormat, Fate, MessageChange, ReachedMessage, WhatIfError},
    live_decisions::WhatIfStep,
};
use crate::{
    lanes::{self, ExpectedCall},
    report::{DecisionDifference, decision_json},
    timeline::{BrokenLog, check_order},
};

/// A log and the change to it, as far as it was taken in.
#[derive(Clone, Debug)]
pub struct WhatIf {
    at: u64,
    change: MessageChange,
    read: u64,
    /// The log as it stands, and from the change on as it would be.
    actual: Replay,
    alternative: Option<Replay>,
    /// Ids of events that would not be there, or of which that is not known, and the message that each hangs on.
    gone: BTreeMap<String, u64>,
    unknown: BTreeMap<String, u64>,
    /// Messages of users that are there either way: one that a decision dealt with keeps that from vanishing.
    said: BTreeSet<u64>,
    /// Agents whose log cannot be folded any further as it would be.
    lost: BTreeSet<Name>,
    counts: ConeCounts,
    reached: Vec<ReachedMessage>,
    /// True if models are to be asked for decisions that would not be known otherwise.
    is_live: bool,
    /// The decision that they are being asked for.
    pending: Option<Box<AwaitedDecision>>,
    /// Decisions that do something nobody knows the outcome of, or may do so.
    open: usize,
    /// The model calls of decisions that are not known, if they are counted.
    expected: Option<Vec<ExpectedCall>>,
}

impl WhatIf {
    /// The change to the message at `at`. Where secrets were sealed on the way, that takes their key.
    pub fn new(at: u64, change: MessageChange, secret_key: Option<[u8; 32]>) -> Self {
        Self {
            at,
            change,
            read: 0,
            actual: Replay::new(secret_key),
            alternative: None,
            gone: BTreeMap::new(),
            unknown: BTreeMap::new(),
            said: BTreeSet::new(),
            lost: BTreeSet::new(),
            counts: ConeCounts::default(),
            reached: Vec::new(),
            is_live: false,
            pending: None,
            open: 0,
            expected: None,
        }
    }

    /// Takes in the next message of the log. Where models are to be asked for it, their answers are wanted next
    /// ([`Self::answer`]); without them it is not known.
    ///
    /// # Errors
    /// If the log cannot be followed, or the change cannot be examined.
    pub fn apply(&mut self, message: &LogMessage) -> Result<WhatIfStep, WhatIfError> {
        self.abandon("nobody answered");
        self.decode_and_apply(message)?;
        Ok(self.next_step())
    }

    fn decode_and_apply(&mut self, message: &LogMessage) -> Result<(), WhatIfError> {
        let sequence = message.sequence;
        check_order(sequence, self.read)?;
        self.read = sequence;
        match log_message::decode_record(message).map_err(|cause| BrokenLog::Foreign { sequence, cause })? {
            Ok(record) => self.apply_record(record, message),
            Err(NotUnderstood::Newer(NewerReaderNeeded { reader, why })) => {
                Err(BrokenLog::Newer { sequence, reader, why }.into())
            }
            Err(NotUnderstood::Unreadable(_)) if sequence == self.at => Err(WhatIfError::Unreadable(sequence)),
            Err(NotUnderstood::Unreadable(_)) => {
                self.actual.pass_over(sequence, &message.subject);
                if let Some(would) = &mut self.alternative {
                    would.pass_over(sequence, &message.subject);
                }
                Ok(())
            }
        }
    }

    /// Returns the cone of the change over all messages taken in.
    ///
    /// # Errors
    /// If the message to be changed was not met.
    pub fn into_cone(mut self) -> Result<Cone, WhatIfError> {
        self.abandon("nobody answered");
        match self.alternative {
            Some(_) => Ok(Cone { report: ConeFormat::V1, counts: self.counts, asked: None, reached: self.reached }),
            None => Err(WhatIfError::NotThere(self.at)),
        }
    }

    fn apply_record(&mut self, record: Record, message: &LogMessage) -> Result<(), WhatIfError> {
        let sequence = record.sequence;
        if sequence == self.at {
            return self.begin_change(record, message);
        }
        if self.alternative.is_none() {
            return self.apply_to_actual(record);
        }
        if let Some(decision) = AgentDecision::of(&record.body) {
            return self.examine_decision(record.clone(), message, decision);
        }
        let cause = record.envelope.causation_id.map(|id| id.to_string());
        let hangs_on = |ids: &BTreeMap<String, u64>| cause.as_ref().and_then(|cause| ids.get(cause)).copied();
        if let Some(because) = hangs_on(&self.gone) {
            self.record_reached(&record, message, Fate::Vanished, Some(because), None);
            return self.apply_to_actual(record);
        }
        if let Some(because) = hangs_on(&self.unknown) {
            self.record_reached(&record, message, Fate::Unknown, Some(because), None);
        }
        self.apply_to_alternative(record.clone());
        self.apply_to_actual(record)
    }

    /// Folds a message into the log as it stands.
    fn apply_to_actual(&mut self, record: Record) -> Result<(), WhatIfError> {
        let sequence = record.sequence;
        match self.actual.apply_record(record) {
            true => Ok(()),
            false => Err(BrokenLog::Hole { sequence }.into()),
        }
    }

    /// Folds a message into the log as it would be. Where that cannot go on, nothing behind it is known.
    fn apply_to_alternative(&mut self, record: Record) {
        let agent = subjects::find_route(&record.subject).map(|(_, agent)| agent);
        if AgentMessage::of(&record.body).is_some() {
            self.said.insert(record.sequence);
        }
        if let (Some(would), Some(agent)) = (&mut self.alternative, agent)
            && !would.apply_record(record)
        {
            self.lost.insert(agent);
        }
    }

    /// The change itself.
    fn begin_change(&mut self, record: Record, message: &LogMessage) -> Result<(), WhatIfError> {
        let at = self.at;
        if let Some(decision) = AgentDecision::of(&record.body) {
            return Err(WhatIfError::Decision { at, input: decision.decided_on() });
        }
        self.alternative = Some(self.actual.clone());
        match &self.change {
            MessageChange::Drop => self.record_reached(&record, message, Fate::Dropped, None, None),
            MessageChange::Edit(json) => {
                let body = edited_body(&record, json)?;
                self.record_reached(&record, message, Fate::Edited, None, None);
                self.apply_to_alternative(Record { body, ..record.clone() });
            }
        }
        self.apply_to_actual(record)
    }

    fn examine_decision(
        &mut self,
        record: Record,
        message: &LogMessage,
        decision: &AgentDecision,
    ) -> Result<(), WhatIfError> {
        // A copy of a decision decides nothing, in one log as in the other.
        let Ok(stands) = self.actual.run_recorded(&record) else { return self.apply_to_actual(record) };
        self.counts.decisions += 1;
        let unknown_before = self.counts.unknown;
        let agent = subjects::find_route(&record.subject).map(|(_, agent)| agent);
        let hangs_on = |ids: &BTreeMap<String, u64>| ids.get(&decision.input_id).copied();
        let gone = hangs_on(&self.gone);
        let unknown = hangs_on(&self.unknown);
        let is_lost = agent.as_ref().is_some_and(|agent| self.lost.contains(agent));
        let left = agent.as_ref().and_then(|agent| self.waiting_message_of(agent, decision));
        match (gone, unknown, left) {
            (Some(because), _, None) => self.mark_vanished(&record, message, because, None),
            (Some(because), _, Some(left)) => {
                let reason = format!("message {left}, which it deals with as well, still wants a decision");
                self.mark_unknown(&record, message, Some(because), Some(reason), Vec::new());
                self.apply_to_alternative(empty_decision(&record, decision, left));
            }
            (None, Some(because), _) => {
                self.mark_unknown(&record, message, Some(because), None, Vec::new());
                self.apply_to_alternative(empty_decision(&record, decision, decision.cursor));
            }
            _ if is_lost => {
                let reason = "what stands before it cannot be folded as it would be";
                self.mark_unknown(&record, message, None, Some(reason.to_owned()), Vec::new());
            }
            _ => {
                let would = self.alternative.as_ref().map(|would| would.run_recorded(&record));
                self.judge(&record, message, decision, &stands, would);
            }
        }
        if let Some(expected) = self.expected.as_mut().filter(|_| self.counts.unknown > unknown_before) {
            expected.extend(lanes::expected_calls(&stands.asked, &stands.asked, &KeptAnswers::default()));
        }
        self.apply_to_actual(record)
    }

    /// Judges a decision on a message that exists either way.
    fn judge(
        &mut self,
        record: &Record,
        message: &LogMessage,
        decision: &AgentDecision,
        stands: &ReplayRun,
        would: Option<Result<ReplayRun, String>>,
    ) {
        let unknown = |this: &mut Self, reason: Option<String>, drifted: Vec<RequestDrift>| {
            this.mark_unknown(record, message, None, reason, drifted);
            this.apply_to_alternative(empty_decision(record, decision, decision.cursor));
        };
        let would = match would {
            Some(Ok(would)) => would,
            Some(Err(why)) => return unknown(self, Some(why), Vec::new()),
            None => return,
        };
        let drifted = would.drifted_from(stands);
        let is_asked =
            |would: &ReplayRun| matches!(would.decision, Err(ReplayError::Unanswered)) || !drifted.is_empty();
        match (&stands.decision, &would.decision) {
            (Ok(_), Err(ReplayError::NothingToDecide)) if self.is_all_known() => {
                let reason = "nothing on its input wants a decision any more";
                self.mark_vanished(record, message, self.at, Some(reason.to_owned()));
            }
            (Err(why), _) => {
                unknown(self, Some(format!("it cannot be made again, with the log as it stands: {why}")), drifted);
            }
            (Ok(made), _) if is_asked(&would) && self.is_live => match self.rerun_alternative(record) {
                Ok(again) => {
                    self.pending = Some(Box::new(AwaitedDecision::new(record, message, made, stands, again, drifted)));
                }
                Err(why) => unknown(self, Some(why), drifted),
            },
            (_, Err(why)) => unknown(self, Some(why.to_string()), drifted),
            _ if !drifted.is_empty() => unknown(self, None, drifted),
            (Ok(stands), Ok(would)) => match comparison::differences_beside(stands, would, || self.known_ids(record)) {
                same if same.is_empty() => {
                    self.count_kept();
                    self.apply_to_alternative(record.clone());
                }
                places => {
                    self.open += 1;
                    self.mark_changed(record, message, would, places);
                }
            },
        }
    }

    /// The ids that were there before a decision, in the log as it stands or as it would be.
    fn known_ids(&self, record: &Record) -> HashSet<String> {
        let would = self.alternative.iter().flat_map(|would| would.known_ids(record));
        self.actual.known_ids(record).into_iter().chain(would).collect()
    }

    /// A decision to be made again with the log as it would be.
    fn rerun_alternative(&self, record: &Record) -> Result<Rerun, String> {
        let would = self.alternative.as_ref().unwrap_or(&self.actual);
        would.rerun(record, &ReplayChanges::default())?.map_err(|why| why.to_string())
    }

    /// Counts a decision that stays as it is.
    fn count_kept(&mut self) {
        *(if self.is_all_known() { &mut self.counts.kept } else { &mut self.counts.presumed }) += 1;
    }

    /// Returns true if no decision before it might do something new.
    fn is_all_known(&self) -> bool {
        self.counts.unknown == 0 && self.open == 0
    }

    /// The decision is another one: what it no longer says is gone.
    fn mark_changed(
        &mut self,
        record: &Record,
        message: &LogMessage,
        made: &AgentDecision,
        at: Vec<comparison::Difference>,
    ) {
        self.counts.changed += 1;
        self.record_reached(record, message, Fate::Changed, Some(self.at), None);
        if let Some(recorded) = AgentDecision::of(&record.body) {
            self.mark_lost_events(record, recorded, made);
        }
        if let Some(reached) = self.reached.last_mut() {
            reached.differences = at.into_iter().map(DecisionDifference::from).collect();
            reached.made = decision_json(made.clone());
        }
        self.apply_to_alternative(Record { body: made.clone().into(), ..record.clone() });
    }

    fn mark_vanished(&mut self, record: &Record, message: &LogMessage, because: u64, reason: Option<String>) {
        self.counts.vanished += 1;
        self.record_reached(record, message, Fate::Vanished, Some(because), reason);
    }

    fn mark_unknown(
        &mut self,
        record: &Record,
        message: &LogMessage,
        because: Option<u64>,
        reason: Option<String>,
        drifted: Vec<RequestDrift>,
    ) {
        self.counts.unknown += 1;
        self.record_reached(record, message, Fate::Unknown, because.or(Some(self.at)), reason);
        if let Some(reached) = self.reached.last_mut() {
            reached.drifted = drifted;
        }
    }

    /// Notes what becomes of a message, and of all that follows from it.
    fn record_reached(
        &mut self,
        record: &Record,
        message: &LogMessage,
        fate: Fate,
        because: Option<u64>,
        reason: Option<String>,
    ) {
        let sequence = record.sequence;
        match fate {
            Fate::Dropped | Fate::Vanished => self.gone.extend(event_ids(record, message).map(|id| (id, sequence))),
            Fate::Unknown => self.unknown.extend(event_ids(record, message).map(|id| (id, sequence))),
            // What follows from these is told by what is decided on them.
            Fate::Edited | Fate::Kept | Fate::Changed => {}
        }
        self.reached.push(ReachedMessage {
            sequence,
            subject: record.subject.clone(),
            type_name: record.envelope.type_name.clone(),
            fate,
            because,
            reason,
            drifted: Vec::new(),
            differences: Vec::new(),
            made: None,
            asked: 0,
            lost: Vec::new(),
        });
    }

    /// The last of the messages that a decision deals with beside its input, and that still wait in the log as it would be.
    fn waiting_message_of(&self, agent: &Name, decision: &AgentDecision) -> Option<u64> {
        let ahead = self.alternative.as_ref()?.snapshot(agent).ahead;
        let of_foreground = decision.work_input == 0 && decision.overtaking == 0;
        let dealt_with = |at: &u64| *at <= decision.cursor && self.said.contains(at);
        ahead.into_iter().filter(|at| of_foreground && dealt_with(at)).max()
    }
}

/// The ids of all events that a message holds.
fn event_ids(record: &Record, message: &LogMessage) -> impl Iterator<Item = String> {
    let decided = AgentDecision::of(&record.body).map(|decision| decision.events.clone()).unwrap_or_default();
    let held = message.headers.get(kairo_events::envelope::HELD).cloned().unwrap_or_default();
    let held: Vec<String> = held.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    std::iter::once(record.envelope.id.to_string()).chain(decided.into_iter().map(|event| event.event_id)).chain(held)
}

/// The decision without what it decides: it passes what it passed, up to `cursor`.
fn empty_decision(record: &Record, decision: &AgentDecision, cursor: u64) -> Record {
    let hollow = AgentDecision { events: Vec::new(), completions: Vec::new(), cursor, ..decision.clone() };
    Record { body: hollow.into(), ..record.clone() }
}

fn edited_body(record: &Record, json: &[u8]) -> Result<Body, WhatIfError> {
    let at = record.sequence;
    let type_name = record.envelope.type_name.clone();
    let body = Body::read_strictly(&type_name, json);
    let body = body.map_err(|error| WhatIfError::Body { at, type_name, why: error.to_string() })?;
    // As it would be read from the log.
    let read = Body::decode(body.type_name(), ContentType::Protobuf, &body.encode()).unwrap_or(body);
    match read == record.body {
        true => Err(WhatIfError::Unchanged(at)),
        false => Ok(read),
    }
}

#[cfg(test)]
#[path = "whatif/tests/asked.rs"]
mod asked;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "whatif/tests/truth.rs"]
mod truth;
