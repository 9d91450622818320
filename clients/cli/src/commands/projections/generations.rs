//! The gateway's answers about the read models, and their form for people.

use kairo_proto::{
    v1::{GenerationRow, ListProjectionsResponse, ProjectionRow},
    words::GenerationState,
};

use crate::{Error, event_lines::printable, table::table};

/// The projection of this name.
pub fn find_projection<'p>(all: &'p ListProjectionsResponse, name: &str) -> Result<&'p ProjectionRow, Error> {
    all.projections.iter().find(|projection| projection.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.projections.iter().map(|projection| projection.name.as_str()).collect();
        Error::Advice(format!("there is no projection {name}; there is {}", names.join(", ")))
    })
}

/// The generation of this number.
pub fn find_generation(all: &ListProjectionsResponse, number: i64) -> Option<&GenerationRow> {
    let mut all = all.projections.iter().flat_map(|projection| &projection.generations);
    all.find(|generation| generation.generation == number)
}

/// Those that were live before.
pub fn kept_generations(projection: &ProjectionRow) -> Vec<i64> {
    let kept = projection.generations.iter().filter(|generation| generation.state_word() == GenerationState::Kept);
    kept.map(|generation| generation.generation).collect()
}

/// Returns true if the generation stays as it is until somebody asks for more.
pub fn is_settled(generation: &GenerationRow) -> bool {
    use GenerationState::{Differing, Dropping, Failed, Kept, Live};
    matches!(generation.state_word(), Live | Kept | Differing | Failed | Dropping)
}

/// Describes the current work on the generation, for people.
pub fn describe_work(generation: &GenerationRow) -> &'static str {
    match generation.state_word() {
        GenerationState::Asked => "waiting for projector",
        GenerationState::Filling => "reading the log",
        GenerationState::Indexing => "building indexes",
        GenerationState::Comparing => GenerationState::Comparing.known_word(),
        GenerationState::Ready => "swapping",
        GenerationState::Live | GenerationState::Kept | GenerationState::Differing => "",
        GenerationState::Failed | GenerationState::Dropping | GenerationState::Unknown(_) => "",
    }
}

/// Seconds until it has read the log up to its target, as fast as it reads now; none where nobody can tell.
pub fn remaining_seconds(generation: &GenerationRow) -> Option<u64> {
    let left = generation.target.saturating_sub(generation.position) as f64;
    let reads = generation.state_word() == GenerationState::Filling && generation.rate >= 1.0;
    reads.then(|| (left / generation.rate).ceil() as u64)
}

/// Every generation in a line, and what else is to be known.
pub fn format_projections(projections: &ListProjectionsResponse) -> Vec<String> {
    let rows = projections.projections.iter().flat_map(|projection| {
        projection.generations.iter().map(|generation| {
            [
                projection.name.clone(),
                generation.generation.to_string(),
                generation.state.clone(),
                generation.position.to_string(),
                generation.lag.to_string(),
                format!("{:.0}/s", generation.rate),
                generation.partitions.to_string(),
                printable(&generation.reason),
            ]
        })
    });
    let heads = ["projection", "generation", "state", "position", "lag", "rate", "partitions", "reason"];
    let mut lines = table(heads, rows);
    for projection in projections.projections.iter().filter(|projection| projection.live.is_none()) {
        lines.push(format!("{}: none is live, so nothing is answered; is projector there?", projection.name));
    }
    lines.push(String::new());
    lines.push(format!("the log ends at {}", projections.last_sequence));
    for unknown in projections.projections.iter().flat_map(|projection| &projection.unknown_types) {
        lines.push(format!("{} messages of the unknown type {}", unknown.messages, printable(&unknown.r#type)));
    }
    if projections.set_aside > 0 {
        lines.push(format!("{} messages were set aside: see kairo dead-letters", projections.set_aside));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn projections(state: &str, rate: f64) -> ListProjectionsResponse {
        serde_json::from_value(json!({
            "last_sequence": 1_000,
            "set_aside": 2,
            "projections": [{
                "name": "read-model", "version": 4, "live": null, "position": null, "lag": null, "rate": null,
                "partitions": null,
                "generations": [{
                    "generation": 7, "version": 4, "place": "kairo_7", "state": state, "position": 250, "lag": 750,
                    "rate": rate, "partitions": 8, "target": 1_000, "reason": "threads: 3 rows", "source": null,
                    "asked_at": "2026-11-21T10:00:00Z", "since": "2026-11-21T10:00:00Z",
                }],
                "unknown_types": [{ "type": "kairo.x.v9", "messages": 3, "first_sequence": 1, "last_sequence": 9 }],
            }],
        }))
        .unwrap()
    }

    #[test]
    fn everything_is_told() {
        let text = format_projections(&projections("filling", 50.0)).join("\n");
        for part in [
            "read-model  7           filling  250       750  50/s  8           threads: 3 rows",
            "none is live",
            "the log ends at 1000",
            "3 messages of the unknown type kairo.x.v9",
            "2 messages were set aside",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn what_remains_is_told_while_it_can_be_known() {
        let of = |state, rate| remaining_seconds(find_generation(&projections(state, rate), 7).unwrap());
        assert_eq!((of("filling", 50.0), of("filling", 0.0), of("indexing", 50.0)), (Some(15), None, None));
    }

    #[test]
    fn who_asks_for_another_name_is_told_those_there_are() {
        let projections = projections("kept", 0.0);
        let error = find_projection(&projections, "search").unwrap_err().to_string();
        assert!(error.contains("read-model"), "{error}");
        assert_eq!(kept_generations(find_projection(&projections, "read-model").unwrap()), [7]);
    }
}
