//! `GET /v1/interactions/{turn_id}`: a turn as steps.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::GetInteractionResponse;
use kairo_read_model::{TurnEvents, interaction};

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{auth::Caller, ownership, problem::Problem, visibility};

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetInteractionResponse>>, Problem> {
    let id = query::id("turn_id", path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut turn: TurnEvents = query::answered(&gateway, snapshot.turn(id)).await?;
    // A turn may have come to several agents; what a key that is limited to some may see is theirs.
    turn.events.retain(|event| {
        caller.agents().is_none()
            || visibility::agent(&event.subject).is_some_and(|agent| caller.act_on_agent(Some(agent)).is_ok())
    });
    turn.events = ownership::events(&gateway, &snapshot, caller.user(), turn.events).await?;
    let interaction = interaction(&turn).ok_or_else(|| {
        let detail = format!("no turn {id} is known; POST /v1/messages answers with it as correlation_id");
        Problem::not_found(detail).at(snapshot.position())
    })?;
    Ok(Answer::of(&snapshot, Told(GetInteractionResponse { interaction: Some(interaction), ..Default::default() })))
}
