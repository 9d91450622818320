//! `GET /v1/interactions/{turn_id}`: a turn as steps.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::GetInteractionResponse;
use kairo_read_model::{TurnEvents, build_interaction};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{auth::Caller, ownership, problem::Problem, visibility};

pub async fn get_interaction(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetInteractionResponse>>, Problem> {
    let id = query::path_id("turn_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut turn: TurnEvents = query::await_answer(&gateway, snapshot.turn_events(id)).await?;
    // A turn may have come to several agents; what a key that is limited to some may see is theirs.
    turn.events.retain(|event| {
        caller.agents().is_none()
            || visibility::subject_agent(&event.subject).is_some_and(|agent| caller.require_agent(Some(agent)).is_ok())
    });
    turn.events = ownership::filter_events(&gateway, &snapshot, caller.user(), turn.events).await?;
    let interaction = build_interaction(&turn).ok_or_else(|| {
        let detail = format!("no turn {id} is known; POST /v1/messages answers with it as correlation_id");
        Problem::not_found(detail).with_position(snapshot.position())
    })?;
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetInteractionResponse { interaction: Some(interaction), ..Default::default() }),
    ))
}
