//! What the gateway says of the read models, and how people are shown it.

use serde::{Deserialize, Serialize};

use crate::{Error, chain::printable, table::table};

#[derive(Debug, Deserialize)]
pub struct Projections {
    pub last_sequence: u64,
    pub set_aside: u64,
    pub projections: Vec<Projection>,
}

#[derive(Debug, Deserialize)]
pub struct Projection {
    pub name: String,
    pub live: Option<i64>,
    pub generations: Vec<Generation>,
    #[serde(default)]
    unknown_types: Vec<UnknownType>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    pub generation: i64,
    pub version: i64,
    pub state: String,
    pub position: u64,
    lag: u64,
    /// Messages a second.
    pub rate: f64,
    partitions: u64,
    pub target: u64,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
struct UnknownType {
    #[serde(rename = "type")]
    name: String,
    messages: u64,
}

impl Projections {
    /// The one of this name.
    pub fn one(&self, name: &str) -> Result<&Projection, Error> {
        self.projections.iter().find(|projection| projection.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.projections.iter().map(|projection| projection.name.as_str()).collect();
            Error::Advice(format!("there is no projection {name}; there is {}", names.join(", ")))
        })
    }

    /// The generation of this number.
    pub fn generation(&self, number: i64) -> Option<&Generation> {
        let mut all = self.projections.iter().flat_map(|projection| &projection.generations);
        all.find(|generation| generation.generation == number)
    }
}

impl Projection {
    /// Those that were live before.
    pub fn kept(&self) -> Vec<i64> {
        let kept = self.generations.iter().filter(|generation| generation.state == "kept");
        kept.map(|generation| generation.generation).collect()
    }
}

impl Generation {
    /// Whether nothing more happens to it unless somebody asks.
    pub fn is_settled(&self) -> bool {
        matches!(self.state.as_str(), "live" | "kept" | "differing" | "failed" | "dropping")
    }

    /// What is done with it now, for people.
    pub fn doing(&self) -> &'static str {
        match self.state.as_str() {
            "asked" => "waiting for projector",
            "filling" => "reading the log",
            "indexing" => "building indexes",
            "comparing" => "comparing",
            "ready" => "swapping",
            _ => "",
        }
    }

    /// Seconds until it has read the log up to its target, as fast as it reads now; none where nobody can tell.
    pub fn remaining(&self) -> Option<u64> {
        let left = self.target.saturating_sub(self.position) as f64;
        (self.state == "filling" && self.rate >= 1.0).then(|| (left / self.rate).ceil() as u64)
    }
}

/// Every generation in a line, and what else is to be known.
pub fn table_of(projections: &Projections) -> Vec<String> {
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
        lines.push(format!("{} messages of the unknown type {}", unknown.messages, printable(&unknown.name)));
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

    fn projections(state: &str, rate: f64) -> Projections {
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
        let text = table_of(&projections("filling", 50.0)).join("\n");
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
        let of = |state, rate| projections(state, rate).generation(7).unwrap().remaining();
        assert_eq!((of("filling", 50.0), of("filling", 0.0), of("indexing", 50.0)), (Some(15), None, None));
    }

    #[test]
    fn who_asks_for_another_name_is_told_those_there_are() {
        let error = projections("kept", 0.0).one("search").unwrap_err().to_string();
        assert!(error.contains("read-model"), "{error}");
        assert_eq!(projections("kept", 0.0).one("read-model").unwrap().kept(), [7]);
    }
}
