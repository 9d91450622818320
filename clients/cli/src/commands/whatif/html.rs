//! The cone of a change as one page that needs nothing else: no script runs in it, and nothing is loaded.

use std::{collections::BTreeMap, path::Path};

use kairo_replay::whatif::{Cone, ConeCounts, Fate, ReachedMessage};
use serde::Serialize;

use super::{DEEPEST, decision_lines::describe_spending, describe_fate, format_requests, reached_kind};
use crate::{
    Error,
    commands::replay::{
        html::{render_template, serialized_name, write_page},
        word_diff::MarkedPlace,
    },
};

const PAGE: &str = concat!(include_str!("../replay/marks.html"), include_str!("whatif.html"));
/// Most messages that are drawn; all of them are told below.
const DRAWN: usize = 500;
/// Between columns and between rows, in pixels.
const COLUMN: usize = 40;
const ROW: usize = 24;

/// All that the page shows.
#[derive(Serialize)]
struct ConePage<'c> {
    counts: ConeCounts,
    /// The summary of the model calls and their cost.
    spent: Option<String>,
    fates: [FateFilter; Fate::ALL.len()],
    nodes: Vec<ConeNode>,
    left_out: usize,
    width: usize,
    height: usize,
    rows: Vec<ReachedRow<'c>>,
}

/// A filter of messages by fate, with their number.
#[derive(Serialize)]
struct FateFilter {
    name: String,
    told: &'static str,
    count: usize,
}

/// A message in the drawing, and where it is; `from` is where what it hangs on is.
#[derive(Debug, PartialEq, Serialize)]
struct ConeNode {
    sequence: u64,
    label: String,
    fate: String,
    x: usize,
    y: usize,
    from: Option<[usize; 2]>,
}

/// A message that the change reaches.
#[derive(Serialize)]
struct ReachedRow<'c> {
    #[serde(flatten)]
    reached: &'c ReachedMessage,
    what: &'static str,
    told: &'static str,
    class: String,
    requests: Vec<String>,
    places: Vec<MarkedPlace<'c>>,
}

/// Writes the page.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_cone(path: &Path, cone: &Cone) -> Result<(), Error> {
    write_page(path, render_cone(cone))
}

fn render_cone(cone: &Cone) -> Result<String, minijinja::Error> {
    let nodes = layout_nodes(&cone.reached);
    let width = nodes.iter().map(|node| node.x).max().unwrap_or_default() + 600;
    let height = nodes.iter().map(|node| node.y).max().unwrap_or_default() + ROW;
    let left_out = cone.reached.len() - nodes.len();
    let count = |of: Fate| cone.reached.iter().filter(|it| it.fate == of).count();
    let fates = Fate::ALL.map(|of| FateFilter { name: serialized_name(of), told: describe_fate(of), count: count(of) });
    let rows = cone.reached.iter().map(reached_row).collect();
    let spent = cone.asked.as_ref().map(describe_spending);
    render_template(PAGE, ConePage { counts: cone.counts, spent, fates, nodes, left_out, width, height, rows })
}

/// One row for each in the order of the log, each to the right of what it hangs on.
fn layout_nodes(reached: &[ReachedMessage]) -> Vec<ConeNode> {
    let mut places: BTreeMap<u64, (usize, [usize; 2])> = BTreeMap::new();
    let mut nodes = Vec::new();
    for (at, it) in (0..).zip(reached.iter().take(DRAWN)) {
        let from = it.because.and_then(|because| places.get(&because).copied());
        let depth = from.map_or(0, |(depth, _)| (depth + 1).min(DEEPEST));
        let [x, y] = [COLUMN / 2 + depth * COLUMN, ROW / 2 + at * ROW];
        places.insert(it.sequence, (depth, [x, y]));
        let label = format!("{} {}, {}: {}", reached_kind(it), it.sequence, it.subject, describe_fate(it.fate));
        let from = from.map(|(_, place)| place);
        nodes.push(ConeNode { sequence: it.sequence, label, fate: serialized_name(it.fate), x, y, from });
    }
    nodes
}

fn reached_row(reached: &ReachedMessage) -> ReachedRow<'_> {
    let places = reached.differences.iter().map(MarkedPlace::from).collect();
    let what = reached_kind(reached);
    let told = describe_fate(reached.fate);
    let class = serialized_name(reached.fate);
    ReachedRow { reached, what, told, class, requests: format_requests(reached), places }
}

#[cfg(test)]
mod tests {
    use kairo_replay::whatif::ConeFormat;

    use super::{super::tests::reached, *};

    #[test]
    fn each_is_drawn_beside_what_it_hangs_on_and_very_many_are_counted() {
        let cone =
            [reached(3, None, Fate::Dropped), reached(4, Some(3), Fate::Vanished), reached(9, Some(4), Fate::Unknown)];
        let nodes = layout_nodes(&cone);
        let places: Vec<_> = nodes.iter().map(|node| (node.sequence, [node.x, node.y], node.from)).collect();
        let expected = [(3, [20, 12], None), (4, [60, 36], Some([20, 12])), (9, [100, 60], Some([60, 36]))];
        assert_eq!(places, expected);
        let many: Vec<ReachedMessage> =
            (1..=600).map(|at| reached(at, (at > 1).then(|| at - 1), Fate::Unknown)).collect();
        let page =
            render_cone(&Cone { report: ConeFormat::V1, counts: ConeCounts::default(), asked: None, reached: many })
                .unwrap();
        assert_eq!((page.matches("<circle").count(), page.matches("<section").count()), (DRAWN, 600));
        assert!(page.contains("100 more are told below"), "{page}");
    }

    #[test]
    fn the_page_loads_nothing_and_what_a_log_says_is_text_in_it() {
        let evil = "</text></svg><script>alert(1)</script><img src=x onerror=alert(1)>";
        let evil = ReachedMessage { reason: Some(evil.into()), subject: evil.into(), ..reached(3, None, Fate::Edited) };
        let page = render_cone(&Cone {
            report: ConeFormat::V1,
            counts: ConeCounts::default(),
            asked: None,
            reached: vec![evil],
        })
        .unwrap();
        for loaded in ["<script", "<img", "<link", "src=\"", "url(", "@import", "javascript:"] {
            assert!(!page.contains(loaded), "{loaded}: {page}");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"), "{page}");
    }
}
