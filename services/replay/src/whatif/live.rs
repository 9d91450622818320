//! Decisions that would not be known, of models that are asked for them: who has models is told what to ask, and what they answer
//! makes the decision. What it does as the recorded one did keeps what the log has of that; nothing else is executed, so that it
//! stays open.

use std::collections::BTreeSet;

use kairo_events::record::Record;
use kairo_mind::{
    deliberation::Question,
    replay::{
        Drift, Made, Unmade,
        again::{Again, Kept, Step},
    },
};
use kairo_proto::v1::{AgentDecision, Completion, LogMessage};

use super::{Fate, WhatIf, hollow};
use crate::{
    deeds,
    lanes::Expected,
    report::{Place, shown},
};

/// The next step for the log.
#[derive(Debug)]
pub enum Took {
    /// To take in the next message.
    On,
    /// To ask models this first, all at once; the answers are wanted in the same order.
    Asks(Vec<Question>),
}

/// A decision that models are asked for.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    record: Record,
    message: LogMessage,
    /// The decision that this build makes with the log as it stands.
    stands: AgentDecision,
    again: Again,
    /// Requests that are the same either way keep their answers.
    kept: Kept,
    answers: Vec<Completion>,
    drifted: Vec<Drift>,
}

impl Pending {
    pub(super) fn new(
        record: &Record,
        message: &LogMessage,
        made: &AgentDecision,
        stands: &Made,
        again: Again,
        drifted: Vec<Drift>,
    ) -> Self {
        let (record, message, kept) = (record.clone(), message.clone(), Kept::of(&stands.asked));
        Self { record, message, stands: made.clone(), again, kept, answers: Vec::new(), drifted }
    }
}

impl WhatIf {
    /// Models are to be asked for what would not be known.
    #[must_use]
    pub fn live(self) -> Self {
        Self { is_live: true, ..self }
    }

    /// It is counted what decisions took that come out as not known, which takes looking at each of their requests.
    #[must_use]
    pub fn counting(self) -> Self {
        Self { expected: Some(Vec::new()), ..self }
    }

    /// The calls that decisions took which are not known, as far as they were counted.
    pub fn expected(&self) -> &[Expected] {
        self.expected.as_deref().unwrap_or_default()
    }

    /// Takes in the models' answers to the questions asked last.
    pub fn answer(&mut self, answers: Vec<Completion>) -> Took {
        if let Some(pending) = &mut self.pending {
            pending.answers.extend(answers);
        }
        self.next()
    }

    /// Nobody asks: what the decision would be is not known, for this reason.
    pub fn leave(&mut self, reason: &str) {
        let Some(pending) = self.pending.take() else { return };
        self.unanswered(*pending, reason.to_owned());
    }

    /// Returns the questions to ask next for the pending decision, if there is one.
    pub(super) fn next(&mut self) -> Took {
        let Some(pending) = self.pending.take() else { return Took::On };
        match pending.again.step(&pending.kept, &pending.answers) {
            Ok(Step::Ask(questions)) => {
                self.pending = Some(pending);
                return Took::Asks(questions);
            }
            Ok(Step::Made(made)) => match deeds::unanswered(pending.again.recorded(), &made) {
                // What an agent does whose model is away says nothing about the change.
                Some(why) => self.unanswered(*pending, format!("the model did not answer: {why}")),
                None => self.settle(*pending, *made),
            },
            Err(Unmade::Nothing) if self.is_all_known() => {
                let reason = "nothing on its input wants a decision any more".to_owned();
                self.vanish(&pending.record, &pending.message, self.at, Some(reason));
            }
            Err(why) => self.unanswered(*pending, why.to_string()),
        }
        Took::On
    }

    fn unanswered(&mut self, pending: Pending, reason: String) {
        let Pending { record, message, again, answers, drifted, .. } = pending;
        self.forget(&record, &message, None, Some(reason), drifted);
        if let Some(reached) = self.reached.last_mut() {
            reached.asked = answers.len();
        }
        let recorded = again.recorded();
        self.feed(hollow(&record, recorded, recorded.cursor));
    }

    /// The decision is this one, for certain. What it does no more is gone, and what only it does has no result.
    fn settle(&mut self, pending: Pending, made: AgentDecision) {
        let Pending { record, message, stands, again, answers, drifted, .. } = pending;
        let recorded = again.recorded();
        let made = deeds::under_recorded_ids(recorded, made);
        let known = || self.stands.known(&record).into_iter().chain(again.known()).collect();
        let places = deeds::differences_beside(&stands, &made, known);
        let lost: Vec<_> = deeds::calls(recorded, &made).into_iter().filter(|call| call.divergent).collect();
        let fate = if places.is_empty() { Fate::Kept } else { Fate::Changed };
        match fate {
            Fate::Kept => self.keep(),
            _ => self.counts.changed += 1,
        }
        self.open += usize::from(!lost.is_empty());
        self.counts.asked += 1;
        self.reach(&record, &message, fate, Some(self.at), None);
        if let Some(reached) = self.reached.last_mut() {
            (reached.drifted, reached.asked, reached.lost) = (drifted, answers.len(), lost);
            reached.differences = places.into_iter().map(Place::from).collect();
            reached.made = if fate == Fate::Changed { shown(made.clone()) } else { None };
        }
        self.lose(&record, recorded, &made);
        self.feed(Record { body: made.into(), ..record });
    }

    /// Marks the events that the recorded decision has and the other lacks as gone, and with them all that follows.
    pub(super) fn lose(&mut self, record: &Record, recorded: &AgentDecision, made: &AgentDecision) {
        let still: BTreeSet<&str> = made.events.iter().map(|event| event.event_id.as_str()).collect();
        for event in recorded.events.iter().filter(|event| !still.contains(event.event_id.as_str())) {
            self.gone.insert(event.event_id.clone(), record.sequence);
        }
    }
}
