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
mod live;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kairo_events::{
    ids::Name,
    log_message,
    record::Record,
    subjects,
    vocabulary::{Newer, NotUnderstood},
};
use kairo_mind::replay::{
    Drift, Made, Replay, Unmade,
    again::{Again, Kept},
    changes::Changes,
    compare,
};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, AgentMessage, LogMessage},
};

use self::live::Pending;
pub use self::{
    cone::{Change, Cone, Counts, Fate, Form, Impossible, Reached},
    live::Took,
};
use crate::{
    lanes::{self, Expected},
    report::{Place, shown},
    timeline::{Broken, in_order},
};

/// A log and the change to it, as far as it was taken in.
#[derive(Clone, Debug)]
pub struct WhatIf {
    at: u64,
    change: Change,
    read: u64,
    /// The log as it stands, and from the change on as it would be.
    stands: Replay,
    would: Option<Replay>,
    /// Ids of events that would not be there, or of which that is not known, and the message that each hangs on.
    gone: BTreeMap<String, u64>,
    unknown: BTreeMap<String, u64>,
    /// Messages of users that are there either way: one that a decision dealt with keeps that from vanishing.
    said: BTreeSet<u64>,
    /// Agents whose log cannot be folded any further as it would be.
    lost: BTreeSet<Name>,
    counts: Counts,
    reached: Vec<Reached>,
    /// True if models are to be asked for decisions that would not be known otherwise.
    is_live: bool,
    /// The decision that they are being asked for.
    pending: Option<Box<Pending>>,
    /// Decisions that do something nobody knows the outcome of, or may do so.
    open: usize,
    /// The model calls of decisions that are not known, if they are counted.
    expected: Option<Vec<Expected>>,
}

impl WhatIf {
    /// The change to the message at `at`. Where secrets were sealed on the way, that takes their key.
    pub fn new(at: u64, change: Change, secret_key: Option<[u8; 32]>) -> Self {
        Self {
            at,
            change,
            read: 0,
            stands: Replay::new(secret_key),
            would: None,
            gone: BTreeMap::new(),
            unknown: BTreeMap::new(),
            said: BTreeSet::new(),
            lost: BTreeSet::new(),
            counts: Counts::default(),
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
    pub fn take(&mut self, message: &LogMessage) -> Result<Took, Impossible> {
        self.leave("nobody answered");
        self.take_in(message)?;
        Ok(self.next())
    }

    fn take_in(&mut self, message: &LogMessage) -> Result<(), Impossible> {
        let sequence = message.sequence;
        in_order(sequence, self.read)?;
        self.read = sequence;
        match log_message::understand(message).map_err(|cause| Broken::Foreign { sequence, cause })? {
            Ok(record) => self.happen(record, message),
            Err(NotUnderstood::Newer(Newer { reader, why })) => Err(Broken::Newer { sequence, reader, why }.into()),
            Err(NotUnderstood::Unreadable(_)) if sequence == self.at => Err(Impossible::Unreadable(sequence)),
            Err(NotUnderstood::Unreadable(_)) => {
                self.stands.pass_over(sequence, &message.subject);
                if let Some(would) = &mut self.would {
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
    pub fn cone(mut self) -> Result<Cone, Impossible> {
        self.leave("nobody answered");
        match self.would {
            Some(_) => Ok(Cone { report: Form::V1, counts: self.counts, asked: None, reached: self.reached }),
            None => Err(Impossible::NotThere(self.at)),
        }
    }

    fn happen(&mut self, record: Record, message: &LogMessage) -> Result<(), Impossible> {
        let sequence = record.sequence;
        if sequence == self.at {
            return self.begin(record, message);
        }
        if self.would.is_none() {
            return self.stand(record);
        }
        if let Some(decision) = AgentDecision::of(&record.body) {
            return self.decide(record.clone(), message, decision);
        }
        let cause = record.envelope.causation_id.map(|id| id.to_string());
        let hangs_on = |ids: &BTreeMap<String, u64>| cause.as_ref().and_then(|cause| ids.get(cause)).copied();
        if let Some(because) = hangs_on(&self.gone) {
            self.reach(&record, message, Fate::Vanished, Some(because), None);
            return self.stand(record);
        }
        if let Some(because) = hangs_on(&self.unknown) {
            self.reach(&record, message, Fate::Unknown, Some(because), None);
        }
        self.feed(record.clone());
        self.stand(record)
    }

    /// Folds a message into the log as it stands.
    fn stand(&mut self, record: Record) -> Result<(), Impossible> {
        let sequence = record.sequence;
        match self.stands.follow(record) {
            true => Ok(()),
            false => Err(Broken::Hole { sequence }.into()),
        }
    }

    /// Folds a message into the log as it would be. Where that cannot go on, nothing behind it is known.
    fn feed(&mut self, record: Record) {
        let agent = subjects::route(&record.subject).map(|(_, agent)| agent);
        if AgentMessage::of(&record.body).is_some() {
            self.said.insert(record.sequence);
        }
        if let (Some(would), Some(agent)) = (&mut self.would, agent)
            && !would.follow(record)
        {
            self.lost.insert(agent);
        }
    }

    /// The change itself.
    fn begin(&mut self, record: Record, message: &LogMessage) -> Result<(), Impossible> {
        let at = self.at;
        if let Some(decision) = AgentDecision::of(&record.body) {
            return Err(Impossible::Decision { at, input: decision.decided_on() });
        }
        self.would = Some(self.stands.clone());
        match &self.change {
            Change::Drop => self.reach(&record, message, Fate::Dropped, None, None),
            Change::Edit(json) => {
                let body = edited(&record, json)?;
                self.reach(&record, message, Fate::Edited, None, None);
                self.feed(Record { body, ..record.clone() });
            }
        }
        self.stand(record)
    }

    fn decide(&mut self, record: Record, message: &LogMessage, decision: &AgentDecision) -> Result<(), Impossible> {
        // A copy of a decision decides nothing, in one log as in the other.
        let Ok(stands) = self.stands.make(&record) else { return self.stand(record) };
        self.counts.decisions += 1;
        let unknown_before = self.counts.unknown;
        let agent = subjects::route(&record.subject).map(|(_, agent)| agent);
        let hangs_on = |ids: &BTreeMap<String, u64>| ids.get(&decision.input_id).copied();
        let (gone, unknown) = (hangs_on(&self.gone), hangs_on(&self.unknown));
        let is_lost = agent.as_ref().is_some_and(|agent| self.lost.contains(agent));
        let left = agent.as_ref().and_then(|agent| self.left_of(agent, decision));
        match (gone, unknown, left) {
            (Some(because), _, None) => self.vanish(&record, message, because, None),
            (Some(because), _, Some(left)) => {
                let reason = format!("message {left}, which it deals with as well, still wants a decision");
                self.forget(&record, message, Some(because), Some(reason), Vec::new());
                self.feed(hollow(&record, decision, left));
            }
            (None, Some(because), _) => {
                self.forget(&record, message, Some(because), None, Vec::new());
                self.feed(hollow(&record, decision, decision.cursor));
            }
            _ if is_lost => {
                let reason = "what stands before it cannot be folded as it would be";
                self.forget(&record, message, None, Some(reason.to_owned()), Vec::new());
            }
            _ => {
                let would = self.would.as_ref().map(|would| would.make(&record));
                self.judge(&record, message, decision, &stands, would);
            }
        }
        if let Some(expected) = self.expected.as_mut().filter(|_| self.counts.unknown > unknown_before) {
            expected.extend(lanes::expected(&stands.asked, &stands.asked, &Kept::default()));
        }
        self.stand(record)
    }

    /// Judges a decision on a message that exists either way.
    fn judge(
        &mut self,
        record: &Record,
        message: &LogMessage,
        decision: &AgentDecision,
        stands: &Made,
        would: Option<Result<Made, String>>,
    ) {
        let unknown = |this: &mut Self, reason: Option<String>, drifted: Vec<Drift>| {
            this.forget(record, message, None, reason, drifted);
            this.feed(hollow(record, decision, decision.cursor));
        };
        let would = match would {
            Some(Ok(would)) => would,
            Some(Err(why)) => return unknown(self, Some(why), Vec::new()),
            None => return,
        };
        let drifted = would.drifted_from(stands);
        let is_asked = |would: &Made| matches!(would.decision, Err(Unmade::Unanswered)) || !drifted.is_empty();
        match (&stands.decision, &would.decision) {
            (Ok(_), Err(Unmade::Nothing)) if self.is_all_known() => {
                let reason = "nothing on its input wants a decision any more";
                self.vanish(record, message, self.at, Some(reason.to_owned()));
            }
            (Err(why), _) => {
                unknown(self, Some(format!("it cannot be made again, with the log as it stands: {why}")), drifted);
            }
            (Ok(made), _) if is_asked(&would) && self.is_live => match self.again(record) {
                Ok(again) => {
                    self.pending = Some(Box::new(Pending::new(record, message, made, stands, again, drifted)));
                }
                Err(why) => unknown(self, Some(why), drifted),
            },
            (_, Err(why)) => unknown(self, Some(why.to_string()), drifted),
            _ if !drifted.is_empty() => unknown(self, None, drifted),
            (Ok(stands), Ok(would)) => match compare::differences_beside(stands, would, || self.known(record)) {
                same if same.is_empty() => {
                    self.keep();
                    self.feed(record.clone());
                }
                places => {
                    self.open += 1;
                    self.alter(record, message, would, places);
                }
            },
        }
    }

    /// The ids that were there before a decision, in the log as it stands or as it would be.
    fn known(&self, record: &Record) -> HashSet<String> {
        let would = self.would.iter().flat_map(|would| would.known(record));
        self.stands.known(record).into_iter().chain(would).collect()
    }

    /// A decision to be made again with the log as it would be.
    fn again(&self, record: &Record) -> Result<Again, String> {
        let would = self.would.as_ref().unwrap_or(&self.stands);
        would.again(record, &Changes::default())?.map_err(|why| why.to_string())
    }

    /// Counts a decision that stays as it is.
    fn keep(&mut self) {
        *(if self.is_all_known() { &mut self.counts.kept } else { &mut self.counts.presumed }) += 1;
    }

    /// Returns true if no decision before it might do something new.
    fn is_all_known(&self) -> bool {
        self.counts.unknown == 0 && self.open == 0
    }

    /// The decision is another one: what it no longer says is gone.
    fn alter(&mut self, record: &Record, message: &LogMessage, made: &AgentDecision, at: Vec<compare::Difference>) {
        self.counts.changed += 1;
        self.reach(record, message, Fate::Changed, Some(self.at), None);
        if let Some(recorded) = AgentDecision::of(&record.body) {
            self.lose(record, recorded, made);
        }
        if let Some(reached) = self.reached.last_mut() {
            reached.differences = at.into_iter().map(Place::from).collect();
            reached.made = shown(made.clone());
        }
        self.feed(Record { body: made.clone().into(), ..record.clone() });
    }

    fn vanish(&mut self, record: &Record, message: &LogMessage, because: u64, reason: Option<String>) {
        self.counts.vanished += 1;
        self.reach(record, message, Fate::Vanished, Some(because), reason);
    }

    fn forget(
        &mut self,
        record: &Record,
        message: &LogMessage,
        because: Option<u64>,
        reason: Option<String>,
        drifted: Vec<Drift>,
    ) {
        self.counts.unknown += 1;
        self.reach(record, message, Fate::Unknown, because.or(Some(self.at)), reason);
        if let Some(reached) = self.reached.last_mut() {
            reached.drifted = drifted;
        }
    }

    /// Notes what becomes of a message, and of all that follows from it.
    fn reach(
        &mut self,
        record: &Record,
        message: &LogMessage,
        fate: Fate,
        because: Option<u64>,
        reason: Option<String>,
    ) {
        let sequence = record.sequence;
        match fate {
            Fate::Dropped | Fate::Vanished => self.gone.extend(ids(record, message).map(|id| (id, sequence))),
            Fate::Unknown => self.unknown.extend(ids(record, message).map(|id| (id, sequence))),
            // What follows from these is told by what is decided on them.
            Fate::Edited | Fate::Kept | Fate::Changed => {}
        }
        self.reached.push(Reached {
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
    fn left_of(&self, agent: &Name, decision: &AgentDecision) -> Option<u64> {
        let ahead = self.would.as_ref()?.snapshot(agent).ahead;
        let of_foreground = decision.work_input == 0 && decision.overtaking == 0;
        let dealt_with = |at: &u64| *at <= decision.cursor && self.said.contains(at);
        ahead.into_iter().filter(|at| of_foreground && dealt_with(at)).max()
    }
}

/// The ids of all events that a message holds.
fn ids(record: &Record, message: &LogMessage) -> impl Iterator<Item = String> {
    let decided = AgentDecision::of(&record.body).map(|decision| decision.events.clone()).unwrap_or_default();
    let held = message.headers.get(kairo_events::envelope::HELD).cloned().unwrap_or_default();
    let held: Vec<String> = held.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    std::iter::once(record.envelope.id.to_string()).chain(decided.into_iter().map(|event| event.event_id)).chain(held)
}

/// The decision without what it decides: it passes what it passed, up to `cursor`.
fn hollow(record: &Record, decision: &AgentDecision, cursor: u64) -> Record {
    let hollow = AgentDecision { events: Vec::new(), completions: Vec::new(), cursor, ..decision.clone() };
    Record { body: hollow.into(), ..record.clone() }
}

fn edited(record: &Record, json: &[u8]) -> Result<Body, Impossible> {
    let (at, type_name) = (record.sequence, record.envelope.type_name.clone());
    let body = Body::read_strictly(&type_name, json);
    let body = body.map_err(|error| Impossible::Body { at, type_name, why: error.to_string() })?;
    // As it would be read from the log.
    let read = Body::decode(body.type_name(), ContentType::Protobuf, &body.encode()).unwrap_or(body);
    match read == record.body {
        true => Err(Impossible::Unchanged(at)),
        false => Ok(read),
    }
}

#[cfg(test)]
#[path = "whatif/tests/asked.rs"]
mod asked;
#[cfg(test)]
#[path = "whatif/tests/truth.rs"]
mod truth;

#[cfg(test)]
mod tests {
    use kairo_mind::replay::RequestPart;

    use super::*;
    use crate::testing::{Agent, calls, says};

    /// Two conversations that share nothing: a time that is looked up, and a greeting.
    struct Lived {
        messages: Vec<LogMessage>,
        asked: u64,
        looks: u64,
        result: u64,
        tells: u64,
        greeted: u64,
        greets: u64,
        thanked: u64,
        welcomes: u64,
    }

    fn lived() -> Lived {
        let mut agent = Agent::new("cook");
        let asked = agent.hears("one", "time please");
        let looks = agent.decides(&[calls("tools.now")]);
        let result = agent.learns(looks, "2");
        let tells = agent.decides(&[says("It is 2.")]);
        let greeted = agent.hears("two", "hello");
        let greets = agent.decides(&[says("Hello.")]);
        let thanked = agent.hears("one", "thanks");
        let welcomes = agent.decides(&[says("You are welcome.")]);
        Lived { messages: agent.messages(), asked, looks, result, tells, greeted, greets, thanked, welcomes }
    }

    fn looked_at(messages: &[LogMessage], at: u64, change: Change) -> Result<Cone, Impossible> {
        let mut whatif = WhatIf::new(at, change, None);
        for message in messages {
            whatif.take(message)?;
        }
        whatif.cone()
    }

    fn fates(cone: &Cone) -> Vec<(u64, Fate, Option<u64>)> {
        cone.reached.iter().map(|it| (it.sequence, it.fate, it.because)).collect()
    }

    #[test]
    fn without_a_message_all_that_follows_from_it_vanishes_and_what_shows_it_is_not_known() {
        let Lived { messages, asked, looks, result, tells, welcomes, .. } = lived();
        let cone = looked_at(&messages, asked, Change::Drop).unwrap();
        let expected = [
            (asked, Fate::Dropped, None),
            (looks, Fate::Vanished, Some(asked)),
            (result, Fate::Vanished, Some(looks)),
            (tells, Fate::Vanished, Some(result)),
            (welcomes, Fate::Unknown, Some(asked)),
        ];
        assert_eq!(fates(&cone), expected);
        assert_eq!(cone.reached[4].drifted[0].parts, [RequestPart::History]);
        assert_eq!(cone.counts, Counts { decisions: 4, kept: 1, unknown: 1, vanished: 2, ..Counts::default() });
    }

    #[test]
    fn behind_a_decision_that_is_not_known_nothing_that_rests_on_it_is_the_same() {
        let Lived { messages, asked, looks, result, tells, greets, welcomes, .. } = lived();
        let message = messages.iter().find(|it| it.sequence == asked).unwrap();
        let body = Body::decode(AgentMessage::TYPE, ContentType::Protobuf, &message.data).unwrap();
        let Body::AgentMessage(said) = body else { panic!("{message:?}") };
        let other = Body::from(AgentMessage { text: "weather please".into(), ..said.clone() }).to_json();
        let edit = Change::Edit(other.to_string().into_bytes());
        let cone = looked_at(&messages, asked, edit).unwrap();
        let expected = [
            (asked, Fate::Edited, None),
            (looks, Fate::Unknown, Some(asked)),
            (result, Fate::Unknown, Some(looks)),
            (tells, Fate::Unknown, Some(result)),
            (welcomes, Fate::Unknown, Some(asked)),
        ];
        assert_eq!(fates(&cone), expected);
        assert!(cone.reached.iter().all(|it| it.sequence != greets), "the other conversation stays as it was");
        assert_eq!((cone.counts.kept, cone.counts.presumed), (0, 1), "what is not known might show in it");

        let same = Change::Edit(Body::from(said).to_json().to_string().into_bytes());
        assert!(matches!(looked_at(&messages, asked, same), Err(Impossible::Unchanged(at)) if at == asked));
    }

    #[test]
    fn without_a_result_the_decision_on_it_vanishes_and_what_was_said_later_is_looked_at_again() {
        let Lived { messages, result, tells, welcomes, greeted, thanked, .. } = lived();
        let cone = looked_at(&messages, result, Change::Drop).unwrap();
        let of = |at: u64| cone.reached.iter().find(|it| it.sequence == at).map(|it| it.fate);
        assert_eq!((of(tells), of(welcomes)), (Some(Fate::Vanished), Some(Fate::Unknown)));
        assert_eq!((of(greeted), of(thanked)), (None, None), "what people say is taken as it was");
    }

    #[test]
    fn a_change_that_nothing_shows_reaches_nothing() {
        let mut agent = Agent::new("cook");
        agent.hears("one", "hello");
        agent.decides(&[says("Hello.")]);
        let last = agent.hears("one", "bye");
        let cone = looked_at(&agent.messages(), last, Change::Drop).unwrap();
        assert_eq!((fates(&cone), cone.counts), (vec![(last, Fate::Dropped, None)], Counts::default()));
    }

    #[test]
    fn what_cannot_be_changed_is_named() {
        let Lived { messages, asked, looks, result, .. } = lived();
        let refused = |at: u64, change: Change| looked_at(&messages, at, change).unwrap_err().to_string();
        assert!(refused(99, Change::Drop).contains("message 99 is not in the log"));
        let decision = refused(looks, Change::Drop);
        assert!(decision.contains(&format!("drop or edit what it is on, message {asked}")), "{decision}");
        for (json, named) in [("{", "EOF"), (r#"{"txet": "x"}"#, "txet"), (r#"{"text": 7}"#, "7")] {
            let why = refused(asked, Change::Edit(json.as_bytes().to_vec()));
            assert!(why.contains(named) && why.contains(AgentMessage::TYPE), "{why}");
        }
        let hole: Vec<LogMessage> = messages.iter().filter(|it| it.sequence != result).cloned().collect();
        assert!(matches!(looked_at(&hole, asked, Change::Drop), Err(Impossible::Broken(Broken::Hole { .. }))));
    }
}
