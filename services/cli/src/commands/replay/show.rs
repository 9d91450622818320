//! Decisions that were made again, in lines for people.

use kairo_mind::replay::Drift;
use kairo_replay::{
    lanes::{
        Asking, Came, CameTo, Ended, Lanes, Sample, Samples,
        verdict::{Rate, Verdict},
    },
    report::{Class, Counts, Decision, Place, Report, Stopped},
};

use crate::event_lines::printable;

/// Returns the lines on a decision; none for one that is the same and was not asked for, which is only counted.
pub fn lines(decision: &Decision) -> Vec<String> {
    let Decision { agent, sequence, lanes, .. } = decision;
    let Some(lanes) = lanes else { return line(decision).into_iter().collect() };
    let first = line(decision).unwrap_or_else(|| format!("{agent}, decision {sequence}: the same"));
    let Lanes { verdict, chance, control, candidate } = lanes;
    let rate = |Rate { same, of }: Rate| format!("{same} of {of}");
    let by_chance = match verdict {
        Verdict::Unclear | Verdict::Differs => format!(" (by chance {:.0} %)", chance * 100.0),
        Verdict::Same | Verdict::Noise | Verdict::NotAsked => String::new(),
    };
    let (one, other) = (rate(candidate.rate), rate(control.rate));
    let compared = format!("  {verdict}: the candidate does the same in {one}, the control in {other}{by_chance}");
    [vec![first, compared], otherwise("control", control), otherwise("candidate", candidate)].concat()
}

/// The samples of a lane that do something else, each kind once.
fn otherwise(lane: &str, samples: &Samples) -> Vec<String> {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for sample in samples.samples.iter().filter(|sample| sample.outcome.is_same() != Some(true)) {
        let told = told(sample);
        match kinds.iter_mut().find(|(kind, _)| *kind == told) {
            Some((_, count)) => *count += 1,
            None => kinds.push((told, 1)),
        }
    }
    let times = |count: usize| if count > 1 { format!("{count} × ") } else { String::new() };
    kinds.into_iter().map(|(told, count)| format!("  {lane}: {}{}", times(count), printable(&told))).collect()
}

/// Describes what one sample does.
pub fn told(sample: &Sample) -> String {
    let Sample { outcome, reason, actions, differences, .. } = sample;
    let divergent = actions.iter().filter(|call| call.divergent);
    let calls: Vec<String> = divergent.map(|call| format!("{} {}", call.tool, call.arguments)).collect();
    let what = match (outcome, differences.first()) {
        (Came::Divergent, _) => format!(": calls {}, which is not executed", calls.join(", ")),
        (Came::Differs, Some(Place { at, recorded, made })) => format!(" at {at}: recorded {recorded}, made {made}"),
        _ => reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default(),
    };
    format!("{outcome}{what}")
}

/// Returns the reason why no more was asked; empty if all was.
fn ended_with(ended: Ended) -> &'static str {
    match ended {
        Ended::Complete => "",
        Ended::Budget => "; what is left of the budget does not suffice, so the rest is not asked",
        Ended::Interrupted => "; it was interrupted",
    }
}

/// Describes the calls made, their cost and the budget.
pub fn spent(CameTo { calls, cost, budget, ended, .. }: &CameTo) -> String {
    let cost = cost.as_ref().map(|cost| format!(" for {cost}")).unwrap_or_default();
    let budget = budget.as_ref().map(|budget| format!(" of {budget}")).unwrap_or_default();
    format!("{calls} calls{cost}{budget}{}", ended_with(*ended))
}

/// Returns lines on the model calls and their verdicts.
pub fn asked(asked: &Asking, report: &Report) -> Vec<String> {
    let verdicts: Vec<Verdict> =
        report.decisions.iter().filter_map(|it| it.lanes.as_ref()).map(|it| it.verdict).collect();
    let counted =
        Verdict::ALL.into_iter().map(|verdict| (verdict, verdicts.iter().filter(|it| **it == verdict).count()));
    let counted = counted.filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("  {count} {verdict}"));
    std::iter::once(format!("{} decisions asked for, {}", verdicts.len(), spent(&asked.came_to)))
        .chain(counted)
        .collect()
}

/// None of one that is the same: those are counted only.
pub fn line(decision: &Decision) -> Option<String> {
    let Decision { agent, sequence, outcome, reason, drifted, differences, .. } = decision;
    let differs = |place: &Place| {
        let Place { at, recorded, made } = place;
        format!("differs at {}: recorded {}, made again {}", printable(at), printable(recorded), printable(made))
    };
    let requests = drifted.iter().map(request).collect::<Vec<_>>().join("; ");
    let what = match (outcome, differences.first()) {
        (Class::Same | Class::Forgotten, _) => return None,
        (Class::Reworded, first) => format!("reworded at {}", first.map_or("", |place| &place.at)),
        (Class::Differs, first) => first.map_or_else(|| "differs".to_owned(), differs),
        (Class::Drifted, None) => "drifted; the recorded answers lead to the same".to_owned(),
        (Class::Drifted, Some(place)) => format!("drifted; with the recorded answers it {}", differs(place)),
        (Class::NotReplayable, _) => format!("not replayable: {}", printable(reason.as_deref().unwrap_or_default())),
    };
    let requests = if requests.is_empty() { requests } else { format!(" (another request: {requests})") };
    Some(format!("{agent}, decision {sequence}: {what}{requests}"))
}

/// Such as `2 (tools, facts)`.
pub fn request(Drift { request, parts }: &Drift) -> String {
    match parts.as_slice() {
        [] => request.to_string(),
        parts => format!("{request} ({})", parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns lines on the number of decisions by outcome.
pub fn counts(counts: &Counts) -> Vec<String> {
    let Counts { decisions, same, reworded, differ, drifted, not_replayable, forgotten, without_basis, unreadable } =
        counts;
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
pub fn stopped(Stopped { sequence, type_name, reader, reads, why }: &Stopped) -> String {
    let (type_name, why) = (printable(type_name), printable(why));
    format!(
        "stopped at message {sequence} ({type_name}): {why}. It takes a reader of version {reader}, and this build is one of \
         version {reads}: replay it and what follows with a newer build"
    )
}

#[cfg(test)]
mod tests {
    use kairo_mind::replay::RequestPart;

    use super::*;

    fn decision(outcome: Class) -> Decision {
        serde_json::from_value(
            serde_json::json!({ "agent": "cook", "sequence": 7, "outcome": outcome, "input_id": "" }),
        )
        .unwrap()
    }

    #[test]
    fn what_is_not_the_same_is_told_with_its_place_and_its_requests() {
        assert_eq!(line(&decision(Class::Same)), None);
        let drift = Drift { request: 2, parts: vec![RequestPart::Tools, RequestPart::Facts] };
        let drifted = Decision { drifted: vec![drift], ..decision(Class::Drifted) };
        assert_eq!(
            line(&drifted).unwrap(),
            "cook, decision 7: drifted; the recorded answers lead to the same (another request: 2 (tools, facts))"
        );
        let place = Place { at: "events.0".into(), recorded: "1\u{1b}[2J".into(), made: "2".into() };
        let differs = Decision { differences: vec![place], ..decision(Class::Differs) };
        assert_eq!(
            line(&differs).unwrap(),
            "cook, decision 7: differs at events.0: recorded 1[2J, made again 2",
            "what others wrote moves no cursor"
        );
    }

    #[test]
    fn only_what_is_the_same_from_the_same_requests_counts_as_the_same() {
        let mut told = Counts::default();
        told.count(&decision(Class::Same));
        assert!(told.all_same());
        told.count(&decision(Class::Drifted));
        told.count(&decision(Class::Reworded));
        assert!(!told.all_same());
        let lines = ["3 decisions made again", "  1 the same", "  1 reworded", "  1 asked something else"];
        assert_eq!(counts(&told), lines);
    }
}
