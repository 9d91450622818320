//! A report as one page that needs nothing else: no script runs in it, and nothing is loaded.

use std::path::Path;

use kairo_replay::{
    lanes::{Lanes, Samples, verdict::Rate},
    report::{DecisionReport, OutcomeClass, Report},
};
use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

use super::{
    decision_lines,
    word_diff::{DiffPiece, MarkedPlace, mark_differences},
};
use crate::Error;

const PAGE: &str = concat!(include_str!("marks.html"), include_str!("report.html"));

/// All that the page shows.
#[derive(Serialize)]
struct ReportPage<'r> {
    report: &'r Report,
    classes: [ClassCount; OutcomeClass::ALL.len()],
    rows: Vec<ReportedDecision<'r>>,
    /// The summary of the model calls, in lines.
    asked: Vec<String>,
    stopped: Option<String>,
}

/// The number of decisions of a class.
#[derive(Serialize)]
struct ClassCount {
    name: String,
    told: String,
    count: usize,
}

/// A decision as the page shows it.
#[derive(Serialize)]
struct ReportedDecision<'r> {
    #[serde(flatten)]
    decision: &'r DecisionReport,
    /// The name of its class in the page.
    class: String,
    told: String,
    requests: Vec<String>,
    /// Both decisions, recorded and made again, word by word; none where neither is there.
    both: Option<[Vec<DiffPiece>; 2]>,
    places: Vec<MarkedPlace<'r>>,
    lanes: Option<LaneComparison>,
}

/// The results of asking models for a decision, sample by sample.
#[derive(Serialize)]
struct LaneComparison {
    verdict: String,
    chance: String,
    control: LaneSide,
    candidate: LaneSide,
    pairs: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct LaneSide {
    rate: String,
}

/// Writes the page of a report.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_report(path: &Path, report: &Report) -> Result<(), Error> {
    write_page(path, render_report(report))
}

/// Writes a page.
pub fn write_page(path: &Path, page: Result<String, minijinja::Error>) -> Result<(), Error> {
    let page = page.map_err(|error| Error::Advice(format!("the page cannot be made: {error}")))?;
    std::fs::write(path, page).map_err(Error::file("write", path))
}

/// Whatever stands in a log is text in such a page.
pub fn render_template(template: &str, page: impl Serialize) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.render_named_str("page", template, Serde(&page))
}

/// The page of a report.
fn render_report(report: &Report) -> Result<String, minijinja::Error> {
    let count = |class| report.decisions.iter().filter(|it| it.outcome == class).count();
    let told =
        |class: OutcomeClass| ClassCount { name: serialized_name(class), told: class.to_string(), count: count(class) };
    let page = ReportPage {
        report,
        classes: OutcomeClass::ALL.map(told),
        rows: report.decisions.iter().map(report_decision).collect(),
        asked: report.asked.iter().flat_map(|asked| decision_lines::format_asking(asked, report)).collect(),
        stopped: report.stopped.as_ref().map(decision_lines::describe_stop),
    };
    render_template(PAGE, page)
}

fn report_decision(decision: &DecisionReport) -> ReportedDecision<'_> {
    let pretty = |value: &Option<serde_json::Value>| {
        value.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default()
    };
    let recorded = pretty(&decision.recorded);
    let made = pretty(&decision.made);
    ReportedDecision {
        decision,
        class: serialized_name(decision.outcome),
        told: decision.outcome.to_string(),
        requests: decision.drifted.iter().map(decision_lines::format_request).collect(),
        both: (!recorded.is_empty() || !made.is_empty()).then(|| mark_differences(&recorded, &made)),
        places: decision.differences.iter().map(MarkedPlace::from).collect(),
        lanes: decision.lanes.as_ref().map(compare_lanes),
    }
}

fn compare_lanes(lanes: &Lanes) -> LaneComparison {
    let side = |Rate { same, of }: Rate| LaneSide { rate: format!("{same} of {of}") };
    let told = |samples: &Samples| samples.samples.iter().map(decision_lines::describe_sample).collect::<Vec<_>>();
    LaneComparison {
        verdict: lanes.verdict.to_string(),
        chance: format!("{:.0} %", lanes.chance * 100.0),
        control: side(lanes.control.rate),
        candidate: side(lanes.candidate.rate),
        pairs: told(&lanes.control).into_iter().zip(told(&lanes.candidate)).map(|(one, other)| [one, other]).collect(),
    }
}

/// A word of a report, as it has it.
pub fn serialized_name(word: impl Serialize) -> String {
    serde_json::to_value(word).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_loads_nothing_and_what_a_log_says_is_text_in_it() {
        let evil = "</pre><script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>";
        let decisions = json!([
            { "agent": "cook", "sequence": 3, "outcome": "same", "input_id": "a" },
            {
                "agent": "cook", "sequence": 5, "outcome": "differs", "input_id": "b",
                "differences": [{ "at": evil, "recorded": evil, "made": "2" }],
                "recorded": { "text": evil }, "made": { "text": "2" },
            },
        ]);
        let report = Report { decisions: serde_json::from_value(decisions).unwrap(), ..Report::default() };
        let page = render_report(&report).unwrap();
        assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"), "{page}");
        for loaded in ["<script", "<img", "<link", "src=\"", "url(", "@import", "javascript:"] {
            assert!(!page.contains(loaded), "{loaded}: {page}");
        }
        assert!(page.contains("<del>") && page.contains("<ins>"), "{page}");
        assert!(page.contains("&lt;script&gt;") && page.contains("id=\"cook-5\""), "{page}");
        assert!(page.contains("class=\"decision differs\"") && page.contains("class=\"decision same\""), "{page}");
    }
}
