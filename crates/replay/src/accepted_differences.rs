//! Checks a report against the accepted differences: a test that an agent still decides as it did, apart from
//! deliberate changes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::report::{DecisionReport, OutcomeClass, Report};

/// Differences that are accepted, each with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedDifferences {
    #[serde(default)]
    pub decisions: Vec<Accept>,
    /// The reason for which the final state may differ.
    #[serde(default)]
    pub state: Option<String>,
}

/// A decision that may come out otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The position in the log.
    pub sequence: u64,
    /// The accepted outcome; none accepts every outcome, but the decision must exist.
    #[serde(default)]
    pub outcome: Option<OutcomeClass>,
    pub why: String,
}

/// The result of a test: the worst of all its findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// All is the same, or accepted.
    #[default]
    Passed,
    StateDiffers,
    DecisionsDiffer,
    NotReplayable,
}

/// The result of a report checked against its accepted differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestVerdict {
    pub result: Grade,
    /// Decisions that are neither the same nor accepted.
    pub failed: Vec<u64>,
    /// Accepted differences, with the reasons.
    pub accepted: Vec<(u64, String)>,
    /// Accepted differences that were not needed: the decision is the same, or does not exist.
    pub unused: Vec<u64>,
    pub state_differs: bool,
}

impl Grade {
    /// The status that the command ends with.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::DecisionsDiffer => 1,
            Self::StateDiffers => 2,
            Self::NotReplayable => 3,
        }
    }
}

impl AcceptedDifferences {
    /// Returns the first mistake in the list; none if there is none.
    pub fn first_mistake(&self) -> Option<String> {
        let mut seen = BTreeSet::new();
        for (at, accept) in self.decisions.iter().enumerate() {
            if accept.why.trim().is_empty() {
                return Some(format!("decisions.{at}.why: expected the reason why it is accepted, found nothing"));
            }
            if !seen.insert(accept.sequence) {
                return Some(format!("decisions.{at}.sequence: {} is accepted twice", accept.sequence));
            }
        }
        let empty = self.state.as_ref().is_some_and(|why| why.trim().is_empty());
        empty.then(|| "state: expected the reason why it is accepted, found nothing".to_owned())
    }

    /// Judges a report; `state` is what the incident says of the state at its end.
    pub fn judge(&self, report: &Report, state: &str) -> TestVerdict {
        let of = |decision: &DecisionReport| {
            self.decisions.iter().find(|accept| {
                accept.sequence == decision.sequence && accept.outcome.is_none_or(|it| it == decision.outcome)
            })
        };
        let mut result = Grade::Passed;
        let mut failed = Vec::new();
        let mut accepted = Vec::new();
        for decision in report.decisions.iter().filter(|it| !it.outcome.is_acceptable()) {
            match (of(decision), decision.outcome) {
                (Some(accept), _) => {
                    accepted.push((decision.sequence, accept.why.clone()));
                    continue;
                }
                (None, OutcomeClass::NotReplayable) => result = result.max(Grade::NotReplayable),
                (
                    None,
                    OutcomeClass::Same
                    | OutcomeClass::Forgotten
                    | OutcomeClass::Reworded
                    | OutcomeClass::Differs
                    | OutcomeClass::Drifted,
                ) => {
                    result = result.max(Grade::DecisionsDiffer);
                }
            }
            failed.push(decision.sequence);
        }
        // Where nothing could be made again, nothing is the same.
        if report.stopped.is_some() {
            result = Grade::NotReplayable;
        }
        let state_differs = report.stopped.is_none() && report.states.values().any(|digest| digest != state);
        if state_differs && self.state.is_none() {
            result = result.max(Grade::StateDiffers);
        }
        let is_used = |accept: &&Accept| accepted.iter().any(|(sequence, _)| *sequence == accept.sequence);
        let unused = self.decisions.iter().filter(|accept| !is_used(accept)).map(|accept| accept.sequence).collect();
        TestVerdict { result, failed, accepted, unused, state_differs }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(decisions: &[(u64, OutcomeClass)]) -> Report {
        let decision = |(sequence, outcome): &(u64, OutcomeClass)| json!({ "agent": "cook", "sequence": sequence, "outcome": outcome, "input_id": "" });
        let decisions: Vec<_> = decisions.iter().map(decision).collect();
        let states = [(kairo_events::ids::Name::parse("cook").unwrap(), "s".to_owned())].into();
        Report { decisions: serde_json::from_value(json!(decisions)).unwrap(), states, ..Report::default() }
    }

    fn accepting(sequence: u64, outcome: Option<OutcomeClass>) -> AcceptedDifferences {
        AcceptedDifferences { decisions: vec![Accept { sequence, outcome, why: "on purpose".into() }], state: None }
    }

    #[test]
    fn only_what_is_accepted_may_come_out_otherwise_and_the_worst_counts() {
        let none = AcceptedDifferences::default();
        assert_eq!(none.judge(&report(&[(3, OutcomeClass::Same)]), "s").result, Grade::Passed);
        assert_eq!(none.judge(&report(&[(3, OutcomeClass::Same)]), "t").result, Grade::StateDiffers);
        let drifted = report(&[(3, OutcomeClass::Drifted), (5, OutcomeClass::Same)]);
        assert_eq!(none.judge(&drifted, "t").result, Grade::DecisionsDiffer);
        let worst = report(&[(3, OutcomeClass::NotReplayable), (5, OutcomeClass::Differs)]);
        let verdict = none.judge(&worst, "s");
        assert_eq!((verdict.result.exit_status(), verdict.failed), (3, vec![3, 5]));

        let verdict = accepting(3, Some(OutcomeClass::Drifted)).judge(&drifted, "s");
        assert_eq!((verdict.result, verdict.accepted), (Grade::Passed, vec![(3, "on purpose".to_owned())]));
        assert_eq!(accepting(3, Some(OutcomeClass::Reworded)).judge(&drifted, "s").result, Grade::DecisionsDiffer);
        let verdict = accepting(5, None).judge(&drifted, "s");
        assert_eq!((verdict.failed, verdict.unused), (vec![3], vec![5]));
        let stopped = crate::report::ReplayStop {
            sequence: 7,
            type_name: String::new(),
            reader: 9,
            reads: 8,
            why: String::new(),
        };
        let stopped = Report { stopped: Some(stopped), ..report(&[(3, OutcomeClass::Same)]) };
        assert_eq!(none.judge(&stopped, "s").result.exit_status(), 3, "what stands behind it was not made again");
        let state = AcceptedDifferences { state: Some("a field more".into()), ..AcceptedDifferences::default() };
        assert_eq!(state.judge(&report(&[]), "t").result, Grade::Passed);
    }

    #[test]
    fn what_is_accepted_without_a_reason_or_twice_is_a_mistake() {
        let mut accepted = accepting(3, None);
        assert_eq!(accepted.first_mistake(), None);
        accepted.decisions.push(Accept { sequence: 3, outcome: None, why: "again".into() });
        assert!(accepted.first_mistake().unwrap().starts_with("decisions.1.sequence: 3"));
        accepted.decisions[1] = Accept { sequence: 4, outcome: None, why: " ".into() };
        assert!(accepted.first_mistake().unwrap().starts_with("decisions.1.why"));
    }
}
