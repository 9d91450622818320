//! Verdicts on incidents as JUnit has them: a suite for each file, a case for each decision.

use kairo_replay::{
    accepted_differences::{Grade, TestVerdict},
    report::{DecisionReport, Report},
};

use crate::commands::replay::decision_lines;

/// A file and what came of it; none where it could not be made again, with the reason.
pub type JunitSuite<'s> = (&'s str, Result<(&'s Report, &'s TestVerdict), &'s str>);

/// All of it, as XML.
pub fn render_suites(suites: &[JunitSuite<'_>]) -> String {
    let suites: String = suites.iter().map(render_suite).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kairo incident test\">\n{suites}</testsuites>\n"
    )
}

fn render_suite((file, came): &JunitSuite<'_>) -> String {
    let cases = match came {
        Ok((report, verdict)) => render_cases(report, verdict),
        Err(why) => vec![render_case("not replayable", Some(why))],
    };
    let failures = cases.iter().filter(|case| case.contains("<failure")).count();
    let name = escape_attribute(file);
    let tests = cases.len();
    let cases = cases.concat();
    format!("  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">\n{cases}  </testsuite>\n")
}

fn render_cases(report: &Report, verdict: &TestVerdict) -> Vec<String> {
    let of = |decision: &DecisionReport| {
        let has_failed = verdict.failed.contains(&decision.sequence);
        let why = has_failed.then(|| decision_lines::format_decision_line(decision).unwrap_or_default());
        render_case(&format!("decision {}", decision.sequence), why.as_deref())
    };
    let mut cases: Vec<String> = report.decisions.iter().map(of).collect();
    let stopped = report.stopped.as_ref().map(decision_lines::describe_stop);
    let state = (verdict.result == Grade::StateDiffers).then(|| "the state at the end is another".to_owned());
    cases.push(render_case("state", stopped.or(state).as_deref()));
    cases
}

fn render_case(name: &str, failure: Option<&str>) -> String {
    let name = escape_attribute(name);
    match failure {
        None => format!("    <testcase classname=\"kairo.incident\" name=\"{name}\"/>\n"),
        Some(why) => {
            let why = escape_attribute(why);
            format!(
                "    <testcase classname=\"kairo.incident\" name=\"{name}\"><failure message=\"{why}\"/></testcase>\n"
            )
        }
    }
}

/// For an attribute. What XML cannot say is left out.
fn escape_attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => {}
            sign if sign.is_control() => {}
            sign => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use kairo_replay::{
        accepted_differences::AcceptedDifferences,
        report::{DecisionDifference, OutcomeClass},
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn each_decision_is_a_case_and_what_others_wrote_stays_within_it() {
        let place = DecisionDifference { at: "events.0".into(), recorded: "\"<a>\u{1}".into(), made: "&".into() };
        let decisions = json!([
            { "agent": "cook", "sequence": 3, "outcome": OutcomeClass::Same, "input_id": "" },
            { "agent": "cook", "sequence": 5, "outcome": OutcomeClass::Differs, "input_id": "", "differences": [place] },
        ]);
        let report = Report { decisions: serde_json::from_value(decisions).unwrap(), ..Report::default() };
        let verdict = AcceptedDifferences::default().judge(&report, "");
        let xml = render_suites(&[("a \"b\".kairo", Ok((&report, &verdict))), ("c.kairo", Err("cut off"))]);
        assert!(xml.contains("<testsuite name=\"a &quot;b&quot;.kairo\" tests=\"3\" failures=\"1\">"), "{xml}");
        assert!(xml.contains("recorded &quot;&lt;a&gt;, made again &amp;"), "{xml}");
        assert!(xml.contains("<testsuite name=\"c.kairo\" tests=\"1\" failures=\"1\">"), "{xml}");
    }
}
