//! Decisions that were made again, in lines for people.

use kairo_mind::replay::RequestDrift;
use kairo_replay::{
    lanes::{
        AskingEnd, Lanes, ModelCallTotals, Sample, SampleOutcome, Samples, SamplingTotals,
        verdict::{LaneVerdict, Rate},
    },
    report::{DecisionDifference, DecisionReport, OutcomeClass, OutcomeCounts, ReplayStop, Report},
};

use crate::event_lines::printable;

/// Returns the lines on a decision; none for one that is the same and was not asked for, which is only counted.
pub fn format_decision(decision: &DecisionReport) -> Vec<String> {
    let DecisionReport { agent, sequence, lanes, .. } = decision;
    let Some(lanes) = lanes else { return format_decision_line(decision).into_iter().collect() };
    let first = format_decision_line(decision).unwrap_or_else(|| format!("{agent}, decision {sequence}: the same"));
    let Lanes { verdict, chance, control, candidate } = lanes;
    let rate = |Rate { same, of }: Rate| format!("{same} of {of}");
    let by_chance = match verdict {
        LaneVerdict::Unclear | LaneVerdict::Differs => format!(" (by chance {:.0} %)", chance * 100.0),
        LaneVerdict::Same | LaneVerdict::Noise | LaneVerdict::NotAsked => String::new(),
    };
    let one = rate(candidate.rate);
    let other = rate(control.rate);
    let compared = format!("  {verdict}: the candidate does the same in {one}, the control in {other}{by_chance}");
    [vec![first, compared], format_deviations("control", control), format_deviations("candidate", candidate)].concat()
}

/// The samples of a lane that do something else, each kind once.
fn format_deviations(lane: &str, samples: &Samples) -> Vec<String> {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for sample in samples.samples.iter().filter(|sample| sample.outcome.is_same() != Some(true)) {
        let told = describe_sample(sample);
        match kinds.iter_mut().find(|(kind, _)| *kind == told) {
            Some((_, count)) => *count += 1,
            None => kinds.push((told, 1)),
        }
    }
    let times = |count: usize| if count > 1 { format!("{count} × ") } else { String::new() };
    kinds.into_iter().map(|(told, count)| format!("  {lane}: {}{}", times(count), printable(&told))).collect()
}

/// Describes what one sample does.
pub fn describe_sample(sample: &Sample) -> String {
    let Sample { outcome, reason, actions, differences, .. } = sample;
    let divergent = actions.iter().filter(|call| call.divergent);
    let calls: Vec<String> = divergent.map(|call| format!("{} {}", call.tool, call.arguments)).collect();
    let what = match (outcome, differences.first()) {
        (SampleOutcome::Divergent, _) => format!(": calls {}, which is not executed", calls.join(", ")),
        (SampleOutcome::Differs, Some(DecisionDifference { at, recorded, made })) => {
            format!(" at {at}: recorded {recorded}, made {made}")
        }
        _ => reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default(),
    };
    format!("{outcome}{what}")
}

/// Returns the reason why no more was asked; empty if all was.
fn end_reason(ended: AskingEnd) -> &'static str {
    match ended {
        AskingEnd::Complete => "",
        AskingEnd::Budget => "; what is left of the budget does not suffice, so the rest is not asked",
        AskingEnd::Interrupted => "; it was interrupted",
    }
}

/// Describes the calls made, their cost and the budget.
pub fn describe_spending(ModelCallTotals { calls, cost, budget, ended, .. }: &ModelCallTotals) -> String {
    let cost = cost.as_ref().map(|cost| format!(" for {cost}")).unwrap_or_default();
    let budget = budget.as_ref().map(|budget| format!(" of {budget}")).unwrap_or_default();
    format!("{calls} calls{cost}{budget}{}", end_reason(*ended))
}

/// Returns lines on the model calls and their verdicts.
pub fn format_asking(asked: &SamplingTotals, report: &Report) -> Vec<String> {
    let verdicts: Vec<LaneVerdict> =
        report.decisions.iter().filter_map(|it| it.lanes.as_ref()).map(|it| it.verdict).collect();
    let counted =
        LaneVerdict::ALL.into_iter().map(|verdict| (verdict, verdicts.iter().filter(|it| **it == verdict).count()));
    let counted = counted.filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("  {count} {verdict}"));
    std::iter::once(format!("{} decisions asked for, {}", verdicts.len(), describe_spending(&asked.came_to)))
        .chain(counted)
        .collect()
}

/// None of one that is the same: those are counted only.
pub fn format_decision_line(decision: &DecisionReport) -> Option<String> {
    let DecisionReport { agent, sequence, outcome, reason, drifted, differences, .. } = decision;
    let differs = |place: &DecisionDifference| {
        let DecisionDifference { at, recorded, made } = place;
        format!("differs at {}: recorded {}, made again {}", printable(at), printable(recorded), printable(made))
    };
    let requests = drifted.iter().map(format_request).collect::<Vec<_>>().join("; ");
    let what = match (outcome, differences.first()) {
        (OutcomeClass::Same | OutcomeClass::Forgotten, _) => return None,
        (OutcomeClass::Reworded, first) => format!("reworded at {}", first.map_or("", |place| &place.at)),
        (OutcomeClass::Differs, first) => first.map_or_else(|| "differs".to_owned(), differs),
        (OutcomeClass::Drifted, None) => "drifted; the recorded answers lead to the same".to_owned(),
        (OutcomeClass::Drifted, Some(place)) => format!("drifted; with the recorded answers it {}", differs(place)),
        (OutcomeClass::NotReplayable, _) => {
            format!("not replayable: {}", printable(reason.as_deref().unwrap_or_default()))
        }
    };
    let requests = if requests.is_empty() { requests } else { format!(" (another request: {requests})") };
    Some(format!("{agent}, decision {sequence}: {what}{requests}"))
}

/// Such as `2 (tools, facts)`.
pub fn format_request(RequestDrift { request, parts }: &RequestDrift) -> String {
    match parts.as_slice() {
        [] => request.to_string(),
        parts => format!("{request} ({})", parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns lines on the number of decisions by outcome.
pub fn format_counts(counts: &OutcomeCounts) -> Vec<String> {
    let OutcomeCounts {
        decisions,
        same,
        reworded,
        differ,
        drifted,
        not_replayable,
        forgotten,
        without_basis,
        unreadable,
    } = counts;
    let counted = [
        (same, "the same"),
        (reworded, "reworded"),
        (differ, "differ"),
        (drifted, "asked something else"),
        (not_replayable, "not replayable"),
        (forgotten, "of users who are forgotten"),
        (without_basis, "made without a recorded basis; the defaults were assumed"),
        (unreadable, "messages that nobody can read"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| **count > 0);
    let lines = counted.map(|(count, what)| format!("  {count} {what}"));
    std::iter::once(format!("{decisions} decisions made again")).chain(lines).collect()
}

/// Describes where the replay stopped, why, and what to do.
pub fn describe_stop(ReplayStop { sequence, type_name, reader, reads, why }: &ReplayStop) -> String {
    let type_name = printable(type_name);
    let why = printable(why);
    format!(
        "stopped at message {sequence} ({type_name}): {why}. It takes a reader of version {reader}, and this build is one of \
         version {reads}: replay it and what follows with a newer build"
    )
}

#[cfg(test)]
mod tests {
    use kairo_mind::replay::RequestPart;

    use super::*;

    fn decision(outcome: OutcomeClass) -> DecisionReport {
        serde_json::from_value(
            serde_json::json!({ "agent": "cook", "sequence": 7, "outcome": outcome, "input_id": "" }),
        )
        .unwrap()
    }

    #[test]
    fn what_is_not_the_same_is_told_with_its_place_and_its_requests() {
        assert_eq!(format_decision_line(&decision(OutcomeClass::Same)), None);
        let drift = RequestDrift { request: 2, parts: vec![RequestPart::Tools, RequestPart::Facts] };
        let drifted = DecisionReport { drifted: vec![drift], ..decision(OutcomeClass::Drifted) };
        assert_eq!(
            format_decision_line(&drifted).unwrap(),
            "cook, decision 7: drifted; the recorded answers lead to the same (another request: 2 (tools, facts))"
        );
        let place = DecisionDifference { at: "events.0".into(), recorded: "1\u{1b}[2J".into(), made: "2".into() };
        let differs = DecisionReport { differences: vec![place], ..decision(OutcomeClass::Differs) };
        assert_eq!(
            format_decision_line(&differs).unwrap(),
            "cook, decision 7: differs at events.0: recorded 1[2J, made again 2",
            "what others wrote moves no cursor"
        );
    }

    #[test]
    fn only_what_is_the_same_from_the_same_requests_counts_as_the_same() {
        let mut told = OutcomeCounts::default();
        told.count(&decision(OutcomeClass::Same));
        assert!(told.all_same());
        told.count(&decision(OutcomeClass::Drifted));
        told.count(&decision(OutcomeClass::Reworded));
        assert!(!told.all_same());
        let lines = ["3 decisions made again", "  1 the same", "  1 reworded", "  1 asked something else"];
        assert_eq!(format_counts(&told), lines);
    }
}
