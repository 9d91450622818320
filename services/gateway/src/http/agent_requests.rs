//! `GET /v1/agents/{agent}/requests`: what models were asked for a decision, made again from the agent's part of the log.

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    timeline::{BrokenLog, Requests, Timeline},
    wire,
};
use serde_json::{Value, json};

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_on_agent_log},
    query,
};
use crate::{
    fields::{RequestFields, parse_text, query_value},
    problem::Problem,
};

/// Asked of the log itself, as the state is. What secrets sealed on the way were is not known here: a decision that sealed one cannot
/// be made again.
pub async fn get_model_requests(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let agent = query::path_agent(path)?;
    let mut fields = RequestFields::from_query(query.as_deref());
    let at: Option<u64> = fields.required("at", "the sequence of a decision of this agent", query_value(parse_text));
    let at = fields.complete(|| at)?;
    let whose = agent.clone();
    compute_on_agent_log(&gateway, &agent, at, move |messages, wanted| rebuild_requests(whose, at, messages, wanted))
        .await?
        .map(Json)
}

fn rebuild_requests(agent: Name, at: u64, messages: &[LogMessage], wanted: &WaitingClient) -> Result<Value, Problem> {
    let mut timeline = Timeline::new(agent, at, None);
    let taken: Result<(), BrokenLog> =
        wanted.while_waiting(messages).try_for_each(|message| timeline.apply(message).map(drop));
    taken.map_err(|broken| Problem::unreplayable(&broken))?;
    requests_to_json(at, timeline.requests())
}

fn requests_to_json(at: u64, requests: Option<&Requests>) -> Result<Value, Problem> {
    match requests {
        None => Err(Problem::not_found(format!("message {at} is no decision of this agent"))),
        Some(Err(why)) => Err(Problem::decision_unreplayable(why)),
        Some(Ok(asked)) => {
            Ok(json!({ "at": at, "requests": asked.iter().map(wire::describe_call).collect::<Vec<_>>() }))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn what_is_no_decision_and_what_cannot_be_made_again_is_told_apart() {
        assert_eq!(requests_to_json(7, None).unwrap_err().status, StatusCode::NOT_FOUND);
        let again = requests_to_json(7, Some(&Err("a secret was sealed".to_owned()))).unwrap_err();
        assert_eq!((again.status, again.detail.ends_with("a secret was sealed")), (StatusCode::CONFLICT, true));
        assert_eq!(requests_to_json(7, Some(&Ok(Vec::new()))).unwrap(), json!({ "at": 7, "requests": [] }));
    }
}
