//! Decisions that would not be known, of models that are asked for them: who has models is told what to ask, and what they answer
//! makes the decision. What it does as the recorded one did keeps what the log has of that; nothing else is executed, so that it
//! stays open.

use std::collections::BTreeSet;

use kairo_events::record::Record;
use kairo_mind::{
    deliberation::ModelQuestion,
    replay::{
        ReplayError, ReplayRun, RequestDrift,
        rerun::{KeptAnswers, Rerun, RerunStep},
    },
};
use kairo_proto::v1::{AgentDecision, Completion, LogMessage};

use super::{Fate, WhatIf, empty_decision};
use crate::{
    decision_effects,
    lanes::ExpectedCall,
    report::{DecisionDifference, decision_json},
};

/// The next step for the log.
#[derive(Debug)]
pub enum WhatIfStep {
    /// To take in the next message.
    Continue,
    /// To ask models this first, all at once; the answers are wanted in the same order.
    Ask(Vec<ModelQuestion>),
}

/// A decision that models are asked for.
#[derive(Clone, Debug)]
pub(super) struct AwaitedDecision {
    record: Record,
    message: LogMessage,
    /// The decision that this build makes with the log as it stands.
    stands: AgentDecision,
    again: Rerun,
    /// Requests that are the same either way keep their answers.
    kept: KeptAnswers,
    answers: Vec<Completion>,
    drifted: Vec<RequestDrift>,
}

impl AwaitedDecision {
    pub(super) fn new(
        record: &Record,
        message: &LogMessage,
        made: &AgentDecision,
        stands: &ReplayRun,
        again: Rerun,
        drifted: Vec<RequestDrift>,
    ) -> Self {
        let record = record.clone();
        let message = message.clone();
        let kept = KeptAnswers::from_calls(&stands.asked);
        Self { record, message, stands: made.clone(), again, kept, answers: Vec::new(), drifted }
    }
}

impl WhatIf {
    /// Models are to be asked for what would not be known.
    #[must_use]
    pub fn with_models(self) -> Self {
        Self { is_live: true, ..self }
    }

    /// It is counted what decisions took that come out as not known, which takes looking at each of their requests.
    #[must_use]
    pub fn with_expected_calls(self) -> Self {
        Self { expected: Some(Vec::new()), ..self }
    }

    /// The calls that decisions took which are not known, as far as they were counted.
    pub fn expected_calls(&self) -> &[ExpectedCall] {
        self.expected.as_deref().unwrap_or_default()
    }

    /// Takes in the models' answers to the questions asked last.
    pub fn answer(&mut self, answers: Vec<Completion>) -> WhatIfStep {
        if let Some(pending) = &mut self.pending {
            pending.answers.extend(answers);
        }
        self.next_step()
    }

    /// Nobody asks: what the decision would be is not known, for this reason.
    pub fn abandon(&mut self, reason: &str) {
        let Some(pending) = self.pending.take() else { return };
        self.settle_unknown(*pending, reason.to_owned());
    }

    /// Returns the questions to ask next for the pending decision, if there is one.
    pub(super) fn next_step(&mut self) -> WhatIfStep {
        let Some(pending) = self.pending.take() else { return WhatIfStep::Continue };
        match pending.again.next_step(&pending.kept, &pending.answers) {
            Ok(RerunStep::Ask(questions)) => {
                self.pending = Some(pending);
                return WhatIfStep::Ask(questions);
            }
            Ok(RerunStep::Made(made)) => {
                match decision_effects::missing_answer_error(pending.again.recorded_decision(), &made) {
                    // What an agent does whose model is away says nothing about the change.
                    Some(why) => self.settle_unknown(*pending, format!("the model did not answer: {why}")),
                    None => self.settle(*pending, *made),
                }
            }
            Err(ReplayError::NothingToDecide) if self.is_all_known() => {
                let reason = "nothing on its input wants a decision any more".to_owned();
                self.mark_vanished(&pending.record, &pending.message, self.at, Some(reason));
            }
            Err(why) => self.settle_unknown(*pending, why.to_string()),
        }
        WhatIfStep::Continue
    }

    fn settle_unknown(&mut self, pending: AwaitedDecision, reason: String) {
        let AwaitedDecision { record, message, again, answers, drifted, .. } = pending;
        self.mark_unknown(&record, &message, None, Some(reason), drifted);
        if let Some(reached) = self.reached.last_mut() {
            reached.asked = answers.len();
        }
        let recorded = again.recorded_decision();
        self.apply_to_alternative(empty_decision(&record, recorded, recorded.cursor));
    }

    /// The decision is this one, for certain. What it does no more is gone, and what only it does has no result.
    fn settle(&mut self, pending: AwaitedDecision, made: AgentDecision) {
        let AwaitedDecision { record, message, stands, again, answers, drifted, .. } = pending;
        let recorded = again.recorded_decision();
        let made = decision_effects::with_recorded_ids(recorded, made);
        let known = || self.actual.known_ids(&record).into_iter().chain(again.known_ids()).collect();
        let places = decision_effects::compare_effects(&stands, &made, known);
        let lost: Vec<_> =
            decision_effects::mark_divergent_calls(recorded, &made).into_iter().filter(|call| call.divergent).collect();
        let fate = if places.is_empty() { Fate::Kept } else { Fate::Changed };
        match fate {
            Fate::Kept => self.count_kept(),
            _ => self.counts.changed += 1,
        }
        self.open += usize::from(!lost.is_empty());
        self.counts.asked += 1;
        self.record_reached(&record, &message, fate, Some(self.at), None);
        if let Some(reached) = self.reached.last_mut() {
            (reached.drifted, reached.asked, reached.lost) = (drifted, answers.len(), lost);
            reached.differences = places.into_iter().map(DecisionDifference::from).collect();
            reached.made = if fate == Fate::Changed { decision_json(made.clone()) } else { None };
        }
        self.mark_lost_events(&record, recorded, &made);
        self.apply_to_alternative(Record { body: made.into(), ..record });
    }

    /// Marks the events that the recorded decision has and the other lacks as gone, and with them all that follows.
    pub(super) fn mark_lost_events(&mut self, record: &Record, recorded: &AgentDecision, made: &AgentDecision) {
        let still: BTreeSet<&str> = made.events.iter().map(|event| event.event_id.as_str()).collect();
        for event in recorded.events.iter().filter(|event| !still.contains(event.event_id.as_str())) {
            self.gone.insert(event.event_id.clone(), record.sequence);
        }
    }
}
