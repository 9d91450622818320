//! `POST /v1/agents/{agent}/replay`: an agent's decisions made again with another prompt or other limits, beside those that the log
//! has. No model is asked.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_mind::replay::changes::{ReplayChanges, ReplayLimit};
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    replayer::{ReplayProgress, Replayer},
    report::{Range, Report},
};
use serde::Serialize;
use serde_json::Value;

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_on_agent_log},
    body::JsonBody,
    query,
};
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, json_count},
    problem::Problem,
};

/// Highest value of a limit, as of the command.
const HIGHEST: u32 = 10_000;
/// Bytes of decisions, as JSON, behind which a page ends.
const BYTES: usize = 4 * 1024 * 1024;

/// The parameters of a replay.
#[derive(Debug)]
pub struct ReplayParameters {
    range: Range,
    changes: ReplayChanges,
    /// Decisions of a page.
    limit: usize,
}

/// A page of the replay's result; its counts are those of the page.
#[derive(Debug, Serialize)]
pub struct ReplayPage {
    #[serde(flatten)]
    report: Report,
    /// The `from` of the next page; none on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
}

pub async fn replay_agent(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Json<ReplayPage>, Problem> {
    let agent = query::path_agent(path)?;
    let what = parse_body(&body, &gateway.config)?;
    let whose = agent.clone();
    let to = what.range.to.unwrap_or(u64::MAX);
    compute_on_agent_log(&gateway, &agent, to, move |messages, wanted| replay_decisions(whose, what, messages, wanted))
        .await?
        .map(Json)
}

pub fn parse_body(body: &[u8], config: &GatewayConfig) -> Result<ReplayParameters, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let from = fields.optional("from", "a sequence", Value::as_u64);
    let not_before = |to: &Value| to.as_u64().filter(|to| *to >= from.unwrap_or(0));
    let to = fields.optional("to", "a sequence, from or later", not_before);
    let prompt = fields.optional("prompt", "text", |prompt| prompt.as_str().map(str::to_owned));
    let limits = fields.optional("limits", "a JSON object", |limits| limits.is_object().then(|| limits.clone()));
    let limits = limits.map_or(Ok(Vec::new()), |limits| parse_limits(&limits));
    let limits = limits.map_err(|problem| fields.add_nested_errors("limits", problem)).unwrap_or_default();
    let limit = fields.optional("limit", format!("1 to {}", config.max_limit), json_count(1..=config.max_limit));
    let limit = limit.unwrap_or(config.default_limit) as usize;
    let changes = ReplayChanges { prompt, tools: None, limits };
    fields.complete(|| Some(ReplayParameters { range: Range { from, to }, changes, limit }))
}

fn parse_limits(given: &Value) -> Result<Vec<(ReplayLimit, u32)>, Problem> {
    let mut fields = RequestFields::from_nested(given)?;
    let mut read = |limit: ReplayLimit| {
        let value = fields.optional(limit.name(), format!("1 to {HIGHEST}"), json_count(1..=HIGHEST));
        value.map(|value| (limit, value))
    };
    let limits = ReplayLimit::ALL.into_iter().filter_map(&mut read).collect();
    fields.complete(|| Some(limits))
}

fn replay_decisions(
    agent: Name,
    what: ReplayParameters,
    messages: &[LogMessage],
    wanted: &WaitingClient,
) -> Result<ReplayPage, Problem> {
    let ReplayParameters { range, changes, limit } = what;
    let mut replaying = Replayer::new(BTreeSet::from([agent]), range, changes, None);
    let mut decisions = Vec::new();
    let mut bytes = 0;
    let mut next_from = None;
    for message in wanted.while_waiting(messages) {
        if decisions.len() == limit || bytes >= BYTES {
            next_from = Some(message.sequence);
            break;
        }
        match replaying.replay(message).map_err(|broken| Problem::unreplayable(&broken))? {
            ReplayProgress::NoDecision => {}
            ReplayProgress::Decision(decision) => {
                bytes += serde_json::to_vec(&decision).map_or(0, |json| json.len());
                decisions.push(*decision);
            }
            ReplayProgress::End => break,
        }
    }
    if !replaying.missing().is_empty() {
        return Err(Problem::not_found("the log has nothing of this agent up to there"));
    }
    let report = replaying.report(env!("CARGO_PKG_VERSION"), decisions);
    Ok(ReplayPage { report, next_from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_read_and_everything_wrong_is_named() {
        let config = GatewayConfig::default();
        let body = br#"{ "from": 7, "prompt": "Be long.", "limits": { "max_steps": 3 } }"#;
        let ReplayParameters { range, changes, limit } = parse_body(body, &config).unwrap();
        assert_eq!((range, limit), (Range { from: Some(7), to: None }, 100));
        assert_eq!(changes.describe(), ["prompt", "max_steps=3"]);

        let wrong =
            br#"{ "from": 7, "to": 6, "prompt": 1, "limits": { "max_stepz": 3, "parallel_tools": 0 }, "limit": 0 }"#;
        let problem = parse_body(wrong, &config).unwrap_err();
        let mut fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["limit", "limits.max_stepz", "limits.parallel_tools", "prompt", "to"]);
    }
}
