//! In what two reports of the same log differ, decision by decision.

use std::collections::BTreeMap;

use kairo_events::ids::Name;
use kairo_mind::replay::RequestDrift;
use serde::{Deserialize, Serialize};

use crate::{
    lanes::verdict::LaneVerdict,
    report::{DecisionDifference, DecisionReport, OutcomeClass, Report},
};

/// The format of a comparison. Changes within one version only add fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiffFormat {
    #[default]
    #[serde(rename = "kairo.diff.v1")]
    V1,
}

/// Two reports side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// It says of the object what it is.
    pub report: DiffFormat,
    pub before: ReportOrigin,
    pub after: ReportOrigin,
    /// Decisions that are the same in both.
    pub unchanged: usize,
    pub decisions: Vec<DecisionChange>,
    /// Agents of which the states are not the same.
    pub states: Vec<Name>,
}

/// The build and the changes that a report is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportOrigin {
    pub version: String,
    pub changed: Vec<String>,
    /// The message at which it stopped for want of a newer build.
    pub stopped: Option<u64>,
}

/// A decision that is not the same in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionChange {
    pub agent: Name,
    pub sequence: u64,
    pub change: DecisionChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Brief>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Brief>,
}

/// The change of a decision from one report to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionChangeKind {
    /// It is in the second report alone.
    Appeared,
    /// It is in the first report alone.
    Vanished,
    /// It came out otherwise.
    Outcome,
    /// It came out in the same way, at other places or from other requests.
    Details,
}

/// The outcome of a decision, in brief.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Brief {
    pub outcome: OutcomeClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<RequestDrift>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DecisionDifference>,
    /// The verdict on the models' samples for the decision, if models were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<LaneVerdict>,
}

/// The reason for which two reports cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    #[error("decision {sequence} of {agent} is on another message in each: expected two reports of the same log")]
    OtherLog { agent: Name, sequence: u64 },
    #[error("decision {sequence} of {agent} stands in it twice: expected a report as --report writes it")]
    Twice { agent: Name, sequence: u64 },
}

impl Diff {
    /// Compares two reports.
    ///
    /// # Errors
    /// If the reports are not of the same log, or one of them names a decision twice.
    pub fn between(before: &Report, after: &Report) -> Result<Self, NotComparable> {
        let one = index_by_position(before)?;
        let other = index_by_position(after)?;
        let mut places: Vec<_> = one.keys().chain(other.keys().filter(|place| !one.contains_key(*place))).collect();
        places.sort_unstable();
        let mut unchanged = 0;
        let mut decisions = Vec::new();
        for place in places {
            match compare_decisions(one.get(place).copied(), other.get(place).copied())? {
                Some(change) => decisions.push(change),
                None => unchanged += 1,
            }
        }
        let differs =
            |(agent, digest): &(&Name, &String)| after.states.get(*agent).is_some_and(|other| *other != **digest);
        let states = before.states.iter().filter(differs).map(|(agent, _)| agent.clone()).collect();
        let before = ReportOrigin::from(before);
        let after = ReportOrigin::from(after);
        Ok(Self { report: DiffFormat::V1, before, after, unchanged, decisions, states })
    }

    /// Returns true if both reports say the same of every decision.
    pub fn is_same(&self) -> bool {
        self.decisions.is_empty() && self.states.is_empty() && self.before.stopped == self.after.stopped
    }
}

type DecisionsByPosition<'r> = BTreeMap<(u64, &'r Name), &'r DecisionReport>;

fn index_by_position(report: &Report) -> Result<DecisionsByPosition<'_>, NotComparable> {
    let mut places = DecisionsByPosition::new();
    for decision in &report.decisions {
        let DecisionReport { agent, sequence, .. } = decision;
        if places.insert((*sequence, agent), decision).is_some() {
            return Err(NotComparable::Twice { agent: agent.clone(), sequence: *sequence });
        }
    }
    Ok(places)
}

fn compare_decisions(
    before: Option<&DecisionReport>,
    after: Option<&DecisionReport>,
) -> Result<Option<DecisionChange>, NotComparable> {
    let Some(decision) = before.or(after) else { return Ok(None) };
    let agent = decision.agent.clone();
    let sequence = decision.sequence;
    let change = match (before, after) {
        (None, _) => DecisionChangeKind::Appeared,
        (_, None) => DecisionChangeKind::Vanished,
        (Some(one), Some(other)) if one.input_id != other.input_id => {
            return Err(NotComparable::OtherLog { agent, sequence });
        }
        (Some(one), Some(other)) if one.outcome != other.outcome => DecisionChangeKind::Outcome,
        (Some(one), Some(other)) if Brief::from(one) != Brief::from(other) => DecisionChangeKind::Details,
        // The first places may be the same, and what was made be another.
        (Some(one), Some(other)) if one.made != other.made => DecisionChangeKind::Details,
        _ => return Ok(None),
    };
    Ok(Some(DecisionChange { agent, sequence, change, before: before.map(Brief::from), after: after.map(Brief::from) }))
}

impl From<&DecisionReport> for Brief {
    fn from(decision: &DecisionReport) -> Self {
        let DecisionReport { outcome, reason, drifted, differences, lanes, .. } = decision.clone();
        Self { outcome, reason, drifted, differences, verdict: lanes.map(|lanes| lanes.verdict) }
    }
}

impl From<&Report> for ReportOrigin {
    fn from(report: &Report) -> Self {
        let stopped = report.stopped.as_ref().map(|stopped| stopped.sequence);
        Self { version: report.version.clone(), changed: report.changed.clone(), stopped }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(decisions: &[(u64, OutcomeClass, &str)]) -> Report {
        let decision = |(sequence, outcome, input): &(u64, OutcomeClass, &str)| json!({ "agent": "cook", "sequence": sequence, "outcome": outcome, "input_id": input });
        let decisions: Vec<_> = decisions.iter().map(decision).collect();
        Report { decisions: serde_json::from_value(json!(decisions)).unwrap(), ..Report::default() }
    }

    #[test]
    fn decisions_appear_vanish_and_come_out_otherwise() {
        let before =
            report(&[(3, OutcomeClass::Same, "a"), (5, OutcomeClass::Same, "b"), (7, OutcomeClass::Differs, "c")]);
        let after =
            report(&[(3, OutcomeClass::Same, "a"), (5, OutcomeClass::Drifted, "b"), (9, OutcomeClass::Same, "d")]);
        let diff = Diff::between(&before, &after).unwrap();
        let changes: Vec<(u64, DecisionChangeKind)> =
            diff.decisions.iter().map(|it| (it.sequence, it.change)).collect();
        assert_eq!(
            changes,
            [(5, DecisionChangeKind::Outcome), (7, DecisionChangeKind::Vanished), (9, DecisionChangeKind::Appeared)]
        );
        assert!(diff.unchanged == 1 && !diff.is_same());
        assert!(Diff::between(&before, &before).unwrap().is_same());
    }

    #[test]
    fn the_same_outcome_at_another_place_or_with_another_state_is_no_longer_the_same() {
        let before = report(&[(3, OutcomeClass::Differs, "a")]);
        let mut after = before.clone();
        after.decisions[0].made = Some(json!({ "cursor": 2 }));
        assert_eq!(Diff::between(&before, &after).unwrap().decisions[0].change, DecisionChangeKind::Details);
        let state = |digest: &str| {
            let states = [(Name::parse("cook").unwrap(), digest.to_owned())].into();
            Report { states, ..before.clone() }
        };
        let diff = Diff::between(&state("1"), &state("2")).unwrap();
        assert!(diff.decisions.is_empty() && diff.states.len() == 1 && !diff.is_same());
    }

    #[test]
    fn reports_of_other_logs_are_not_compared() {
        let one = report(&[(3, OutcomeClass::Same, "a")]);
        let other = report(&[(3, OutcomeClass::Same, "b")]);
        assert!(matches!(Diff::between(&one, &other), Err(NotComparable::OtherLog { sequence: 3, .. })));
        let twice = report(&[(3, OutcomeClass::Same, "a"), (3, OutcomeClass::Same, "a")]);
        assert!(matches!(Diff::between(&twice, &one), Err(NotComparable::Twice { .. })));
    }
}
