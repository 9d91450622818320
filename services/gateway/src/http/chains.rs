//! `GET /v1/chains/{id}`: a chain and how far each of its steps is.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::GetChainResponse;
use kairo_read_model::Kind;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{auth::Caller, ownership, problem::Problem};

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetChainResponse>>, Problem> {
    let id = query::id("chain_id", path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let chain = query::answered(&gateway, snapshot.chain(id)).await?;
    let chain = chain.filter(|chain| caller.act_on_agent(Some(&chain.agent)).is_ok());
    let chain = ownership::thing(&gateway, &snapshot, caller.user(), Kind::Chain, chain, id).await?;
    let unknown = || {
        let detail = format!("no chain {id} is known; GET /v1/threads/<id> lists those of a thread");
        Problem::not_found(detail).at(snapshot.position())
    };
    Ok(Answer::of(&snapshot, Told(GetChainResponse { chain: Some(chain.ok_or_else(unknown)?), ..Default::default() })))
}
