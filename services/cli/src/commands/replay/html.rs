//! A report as one page that needs nothing else: no script runs in it, and nothing is loaded.

use std::path::Path;

use kairo_replay::{
    lanes::{Lanes, Samples, verdict::Rate},
    report::{Class, Decision, Report},
};
use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

use super::{
    marks::{Marked, Piece, marked},
    show,
};
use crate::Error;

const PAGE: &str = concat!(include_str!("marks.html"), include_str!("report.html"));

/// All that the page shows.
#[derive(Serialize)]
struct Page<'r> {
    report: &'r Report,
    classes: [Told; Class::ALL.len()],
    rows: Vec<Row<'r>>,
    /// The summary of the model calls, in lines.
    asked: Vec<String>,
    stopped: Option<String>,
}

/// The number of decisions of a class.
#[derive(Serialize)]
struct Told {
    name: String,
    told: String,
    count: usize,
}

/// A decision as the page shows it.
#[derive(Serialize)]
struct Row<'r> {
    #[serde(flatten)]
    decision: &'r Decision,
    /// The name of its class in the page.
    class: String,
    told: String,
    requests: Vec<String>,
    /// Both decisions, recorded and made again, word by word; none where neither is there.
    both: Option<[Vec<Piece>; 2]>,
    places: Vec<Marked<'r>>,
    lanes: Option<Compared>,
}

/// The results of asking models for a decision, sample by sample.
#[derive(Serialize)]
struct Compared {
    verdict: String,
    chance: String,
    control: Side,
    candidate: Side,
    pairs: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct Side {
    rate: String,
}

/// Writes the page of a report.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn keep(path: &Path, report: &Report) -> Result<(), Error> {
    write(path, page(report))
}

/// Writes a page.
pub fn write(path: &Path, page: Result<String, minijinja::Error>) -> Result<(), Error> {
    let page = page.map_err(|error| Error::Advice(format!("the page cannot be made: {error}")))?;
    std::fs::write(path, page).map_err(Error::file("write", path))
}

/// Whatever stands in a log is text in such a page.
pub fn rendered(template: &str, page: impl Serialize) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.render_named_str("page", template, Serde(&page))
}

/// The page of a report.
fn page(report: &Report) -> Result<String, minijinja::Error> {
    let count = |class| report.decisions.iter().filter(|it| it.outcome == class).count();
    let told = |class: Class| Told { name: name(class), told: class.to_string(), count: count(class) };
    let page = Page {
        report,
        classes: Class::ALL.map(told),
        rows: report.decisions.iter().map(row).collect(),
        asked: report.asked.iter().flat_map(|asked| show::asked(asked, report)).collect(),
        stopped: report.stopped.as_ref().map(show::stopped),
    };
    rendered(PAGE, page)
}

fn row(decision: &Decision) -> Row<'_> {
    let pretty = |value: &Option<serde_json::Value>| {
        value.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default()
    };
    let (recorded, made) = (pretty(&decision.recorded), pretty(&decision.made));
    Row {
        decision,
        class: name(decision.outcome),
        told: decision.outcome.to_string(),
        requests: decision.drifted.iter().map(show::request).collect(),
        both: (!recorded.is_empty() || !made.is_empty()).then(|| marked(&recorded, &made)),
        places: decision.differences.iter().map(Marked::from).collect(),
        lanes: decision.lanes.as_ref().map(compared),
    }
}

fn compared(lanes: &Lanes) -> Compared {
    let side = |Rate { same, of }: Rate| Side { rate: format!("{same} of {of}") };
    let told = |samples: &Samples| samples.samples.iter().map(show::told).collect::<Vec<_>>();
    Compared {
        verdict: lanes.verdict.to_string(),
        chance: format!("{:.0} %", lanes.chance * 100.0),
        control: side(lanes.control.rate),
        candidate: side(lanes.candidate.rate),
        pairs: told(&lanes.control).into_iter().zip(told(&lanes.candidate)).map(|(one, other)| [one, other]).collect(),
    }
}

/// A word of a report, as it has it.
pub fn name(word: impl Serialize) -> String {
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
        let page = page(&report).unwrap();
        assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"), "{page}");
        for loaded in ["<script", "<img", "<link", "src=\"", "url(", "@import", "javascript:"] {
            assert!(!page.contains(loaded), "{loaded}: {page}");
        }
        assert!(page.contains("<del>") && page.contains("<ins>"), "{page}");
        assert!(page.contains("&lt;script&gt;") && page.contains("id=\"cook-5\""), "{page}");
        assert!(page.contains("class=\"decision differs\"") && page.contains("class=\"decision same\""), "{page}");
    }
}
