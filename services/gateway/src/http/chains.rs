//! `GET /v1/chains/{id}`: a chain and how far each of its steps is.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::GetChainResponse;
use kairo_read_model::OwnedKind;

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{auth::Caller, ownership, problem::Problem};

pub async fn get_chain(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetChainResponse>>, Problem> {
    let id = query::path_id("chain_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let chain = query::await_answer(&gateway, snapshot.find_chain(id)).await?;
    let chain = chain.filter(|chain| caller.require_agent(Some(&chain.agent)).is_ok());
    let chain = ownership::keep_if_owned(&gateway, &snapshot, caller.user(), OwnedKind::Chain, chain, id).await?;
    let unknown = || {
        let detail = format!("no chain {id} is known; GET /v1/threads/<id> lists those of a thread");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetChainResponse { chain: Some(chain.ok_or_else(unknown)?), ..Default::default() }),
    ))
}
