//! `kairo projections verify`

use std::{collections::BTreeMap, process::ExitCode};

use kairo_proto::v1::{DigestProjectionResponse, DigestRow, ListProjectionsResponse, PartDigestRow};
use serde_json::Value;

use super::GatewaySession;
use crate::{Error, table::table, terminal};

pub async fn run(name: Option<&str>, session: &GatewaySession) -> Result<ExitCode, Error> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => {
            let all: ListProjectionsResponse = session.client.get("v1/projections", &[]).await?;
            all.projections.into_iter().map(|projection| projection.name).collect()
        }
    };
    let mut all_equal = true;
    for name in names {
        let answer: Value = session.client.get_patiently(&format!("v1/projections/{name}/digests")).await?;
        if session.json {
            terminal::json(&answer)?;
        }
        let digests: DigestProjectionResponse = session.parse_answer(answer)?;
        all_equal &= digests.equal;
        if !session.json {
            format_digests(&digests).into_iter().try_for_each(terminal::line)?;
        }
    }
    Ok(if all_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every part of every generation, those of one name together, and what follows from them.
fn format_digests(digests: &DigestProjectionResponse) -> Vec<String> {
    let mut parts: BTreeMap<&str, Vec<(&DigestRow, &PartDigestRow)>> = BTreeMap::new();
    for generation in &digests.generations {
        for part in &generation.parts {
            parts.entry(&part.name).or_default().push((generation, part));
        }
    }
    let rows = parts.values().flatten().map(|(generation, part)| {
        let number = format!("{} ({})", generation.generation, generation.state);
        let name = format!("{}/{}", digests.projection, part.name);
        [name, number, generation.position.to_string(), part.rows.to_string(), part.digest.clone()]
    });
    let mut lines = table(["rows of", "generation", "position", "rows", "digest"], rows);
    lines.extend(
        parts
            .iter()
            .filter(|(_, told)| has_difference(told))
            .map(|(name, _)| format!("{}/{name} DIFFERS between generations at the same position", digests.projection)),
    );
    let alone = |one: &DigestRow| {
        !digests.generations.iter().any(|other| {
            other.generation != one.generation && (&other.positions, other.version) == (&one.positions, one.version)
        })
    };
    lines.extend(digests.generations.iter().filter(|one| alone(one)).map(|one| {
        format!("{}: no other generation is where {} is, at {}", digests.projection, one.generation, one.position)
    }));
    lines.push(format!("{}: {}", digests.projection, if digests.equal { "equal" } else { "NOT EQUAL" }));
    lines
}

/// Returns true if two generations of one version at the same position differ in a part.
fn has_difference(told: &[(&DigestRow, &PartDigestRow)]) -> bool {
    told.iter().any(|(one, part)| {
        told.iter().any(|(other, of)| {
            (&one.positions, one.version) == (&other.positions, other.version)
                && (&part.digest, part.rows) != (&of.digest, of.rows)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare_generations(second: (u64, &str), equal: bool) -> String {
        let generation = |number: i64, state: &str, position: u64, digest: &str| {
            let parts = json!([{ "name": "threads", "rows": 5, "digest": digest }]);
            json!({ "generation": number, "version": 4, "state": state, "position": position, "positions": [position],
                "parts": parts })
        };
        let digests = json!({
            "projection": "read-model", "equal": equal,
            "generations": [generation(1, "kept", 10, "aa"), generation(2, "live", second.0, second.1)],
        });
        format_digests(&serde_json::from_value(digests).unwrap()).join("\n")
    }

    #[test]
    fn what_differs_is_named() {
        let equal = compare_generations((10, "aa"), true);
        assert!(equal.contains("read-model/threads  2 (live)    10        5     aa") && equal.ends_with(": equal"));
        assert!(!equal.contains("DIFFERS"));
        let differs = compare_generations((10, "bb"), false);
        assert!(differs.contains("read-model/threads DIFFERS") && differs.ends_with("NOT EQUAL"), "{differs}");
    }

    #[test]
    fn generations_at_other_positions_are_not_held_against_each_other() {
        let text = compare_generations((11, "bb"), true);
        assert!(!text.contains("DIFFERS") && text.contains("no other generation is where 2 is"), "{text}");
    }
}
