//! `GET /v1/actions`: what agents have asked the world for, the newest first; those that somebody still waits for
//! unless others are asked for. `GET /v1/actions/{id}`: one.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::{
    v1::{GetActionResponse, ListActionsResponse},
    words::ActionStatus,
};
use kairo_read_model::{ActionState, ActionsQuery, OwnedKind};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, parse_text, query_value},
    ownership,
    problem::Problem,
};

const STATUSES: &str =
    "one of open (in flight, or in doubt and not resolved), asked, running, in_doubt, done, failed, all";

pub async fn list_actions(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListActionsResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut actions = query::await_answer(&gateway, snapshot.recent_actions(&wanted)).await?;
    let next_before =
        query::sort_newest_first(&mut actions, wanted.limit, |row| row.sequence, |row| row.action_id.clone());
    // Of the page, so that going on by its end misses nothing.
    let actions =
        ownership::filter_owned(&gateway, &snapshot, caller.user(), OwnedKind::Action, actions, |row| &row.action_id)
            .await?;
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListActionsResponse { actions, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<ActionsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let thread = fields.optional("thread", NAME, query_value(parse_name)).map(|thread| thread.to_string());
    let status = fields.optional("status", STATUSES, query_value(parse_status));
    // A client may say only what it wants, and must not be misunderstood when it says the opposite.
    let only = |text: &str| parse_text(text).filter(|only: &bool| *only);
    let in_flight = fields.optional("in_flight", "true; for others see status", query_value(only));
    let in_doubt = fields.optional("in_doubt", "true; for others see status", query_value(only));
    if in_flight.is_some() && in_doubt.is_some() {
        fields.reject("in_doubt", "nothing together with in_flight: no action is both");
    }
    if status.is_some() && (in_flight.is_some() || in_doubt.is_some()) {
        fields.reject("status", "nothing together with in_flight or in_doubt, which stand for one");
    }
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    let state = match (in_flight, in_doubt) {
        (Some(_), _) => ActionState::InFlight,
        (None, Some(_)) => ActionState::InDoubt,
        (None, None) => status.unwrap_or_default(),
    };
    fields.complete(|| Some(ActionsQuery { state, agent, thread, before, limit }))
}

fn parse_status(text: &str) -> Option<ActionState> {
    Some(match ActionStatus::from(text) {
        ActionStatus::Asked => ActionState::Asked,
        ActionStatus::Running => ActionState::Running,
        ActionStatus::InDoubt => ActionState::InDoubt,
        ActionStatus::Done => ActionState::Done,
        ActionStatus::Failed => ActionState::Failed,
        ActionStatus::Unknown(_) if text == "open" => ActionState::Open,
        ActionStatus::Unknown(_) if text == "all" => ActionState::All,
        ActionStatus::Unknown(_) => return None,
    })
}

pub async fn get_action(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetActionResponse>>, Problem> {
    let id = query::path_id("action_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let action = query::await_answer(&gateway, snapshot.find_action(id)).await?;
    let action = action.filter(|action| caller.require_agent(Some(&action.agent)).is_ok());
    let action = ownership::keep_if_owned(&gateway, &snapshot, caller.user(), OwnedKind::Action, action, id).await?;
    let unknown = || {
        let detail = format!("no action {id} is known; GET /v1/actions?status=all lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetActionResponse { action: Some(action.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(query: &str) -> Vec<String> {
        let problem = parse_query(Some(query), &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn what_is_open_is_shown_unless_something_else_is_asked_for() {
        let state = |query| parse_query(Some(query), &GatewayConfig::default()).unwrap().state;
        assert_eq!(state(""), ActionState::Open);
        assert_eq!(state("in_flight=true"), ActionState::InFlight);
        assert_eq!((state("in_doubt=true"), state("status=in_doubt")), (ActionState::InDoubt, ActionState::InDoubt));
        assert_eq!((state("status=done"), state("status=all")), (ActionState::Done, ActionState::All));
    }

    #[test]
    fn everything_wrong_is_named() {
        let query = "agent=A&thread=*&status=over&in_flight=false&before=x&limit=0&colour=red";
        assert_eq!(wrong(query), ["agent", "thread", "status", "in_flight", "before", "limit", "colour"]);
        assert_eq!(wrong("in_flight=true&in_doubt=true"), ["in_doubt"]);
        assert_eq!(wrong("in_flight=true&status=all"), ["status"]);
    }
}
