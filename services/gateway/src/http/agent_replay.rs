//! `POST /v1/agents/{agent}/replay`: an agent's decisions made again with another prompt or other limits, beside those that the log
//! has. No model is asked.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_mind::replay::changes::{Changes, Limit};
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    replaying::{Replaying, Went},
    report::{Range, Report},
};
use serde::Serialize;
use serde_json::Value;

use super::{
    Gateway,
    body::JsonBody,
    computing::{Wanted, of_part},
    query,
};
use crate::{
    config::GatewayConfig,
    fields::{Fields, count},
    problem::Problem,
};

/// Highest value of a limit, as of the command.
const HIGHEST: u32 = 10_000;
/// Bytes of decisions, as JSON, behind which a page ends.
const BYTES: usize = 4 * 1024 * 1024;

/// The parameters of a replay.
#[derive(Debug)]
pub struct What {
    range: Range,
    changes: Changes,
    /// Decisions of a page.
    limit: usize,
}

/// A page of the replay's result; its counts are those of the page.
#[derive(Debug, Serialize)]
pub struct Remade {
    #[serde(flatten)]
    report: Report,
    /// The `from` of the next page; none on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
}

pub async fn post(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Json<Remade>, Problem> {
    let agent = query::agent(path)?;
    let what = read(&body, &gateway.config)?;
    let (whose, to) = (agent.clone(), what.range.to.unwrap_or(u64::MAX));
    of_part(&gateway, &agent, to, move |messages, wanted| made_again(whose, what, messages, wanted)).await?.map(Json)
}

pub fn read(body: &[u8], config: &GatewayConfig) -> Result<What, Problem> {
    let mut fields = Fields::from_json(body)?;
    let from = fields.optional("from", "a sequence", Value::as_u64);
    let not_before = |to: &Value| to.as_u64().filter(|to| *to >= from.unwrap_or(0));
    let to = fields.optional("to", "a sequence, from or later", not_before);
    let prompt = fields.optional("prompt", "text", |prompt| prompt.as_str().map(str::to_owned));
    let limits = fields.optional("limits", "a JSON object", |limits| limits.is_object().then(|| limits.clone()));
    let limits = limits.map_or(Ok(Vec::new()), |limits| read_limits(&limits));
    let limits = limits.map_err(|problem| fields.adopt("limits", problem)).unwrap_or_default();
    let limit = fields.optional("limit", format!("1 to {}", config.max_limit), count(1..=config.max_limit));
    let limit = limit.unwrap_or(config.default_limit) as usize;
    let changes = Changes { prompt, tools: None, limits };
    fields.complete(|| Some(What { range: Range { from, to }, changes, limit }))
}

fn read_limits(given: &Value) -> Result<Vec<(Limit, u32)>, Problem> {
    let mut fields = Fields::within(given)?;
    let mut read = |limit: Limit| {
        let value = fields.optional(limit.name(), format!("1 to {HIGHEST}"), count(1..=HIGHEST));
        value.map(|value| (limit, value))
    };
    let limits = Limit::ALL.into_iter().filter_map(&mut read).collect();
    fields.complete(|| Some(limits))
}

fn made_again(agent: Name, what: What, messages: &[LogMessage], wanted: &Wanted) -> Result<Remade, Problem> {
    let What { range, changes, limit } = what;
    let mut replaying = Replaying::new(BTreeSet::from([agent]), range, changes, None);
    let (mut decisions, mut bytes, mut next_from) = (Vec::new(), 0, None);
    for message in wanted.each(messages) {
        if decisions.len() == limit || bytes >= BYTES {
            next_from = Some(message.sequence);
            break;
        }
        match replaying.take(message).map_err(|broken| Problem::unreplayable(&broken))? {
            Went::On => {}
            Went::Decision(decision) => {
                bytes += serde_json::to_vec(&decision).map_or(0, |json| json.len());
                decisions.push(*decision);
            }
            Went::Over => break,
        }
    }
    if !replaying.missing().is_empty() {
        return Err(Problem::not_found("the log has nothing of this agent up to there"));
    }
    let report = replaying.report(env!("CARGO_PKG_VERSION"), decisions);
    Ok(Remade { report, next_from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_read_and_everything_wrong_is_named() {
        let config = GatewayConfig::default();
        let body = br#"{ "from": 7, "prompt": "Be long.", "limits": { "max_steps": 3 } }"#;
        let What { range, changes, limit } = read(body, &config).unwrap();
        assert_eq!((range, limit), (Range { from: Some(7), to: None }, 100));
        assert_eq!(changes.told(), ["prompt", "max_steps=3"]);

        let wrong =
            br#"{ "from": 7, "to": 6, "prompt": 1, "limits": { "max_stepz": 3, "parallel_tools": 0 }, "limit": 0 }"#;
        let problem = read(wrong, &config).unwrap_err();
        let mut fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["limit", "limits.max_stepz", "limits.parallel_tools", "prompt", "to"]);
    }
}
