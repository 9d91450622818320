//! `GET /v1/models` and `GET /v1/models/{model}`: every agent is a model.

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use serde_json::{Value, json};

use super::{
    super::{query, read_consistency::Asked},
    Error,
};
use crate::{auth::Caller, directory::Agent, problem::Problem, state::Gateway};

pub async fn all(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Json<Value>, Error> {
    let snapshot = asked.snapshot(&gateway).await?;
    let agents = query::answered(&gateway, snapshot.agents()).await?;
    let seen = agents.iter().filter(|agent| caller.act_on_agent(Some(&agent.agent)).is_ok());
    let models: Vec<Value> =
        seen.map(|agent| shown(&agent.agent, agent.defined_at.map_or(0, |at| at.seconds))).collect();
    Ok(Json(json!({ "object": "list", "data": models })))
}

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Error> {
    let named = path.map(|Path(named)| named).unwrap_or_default();
    caller.act_on_agent(Some(&named))?;
    let (name, agent) = find(&gateway, &named).await?;
    Ok(Json(shown(name.as_str(), agent.defined_at.as_second())))
}

/// The agent of this name: one that was just defined can be talked to.
pub async fn find(gateway: &Gateway, named: &str) -> Result<(Name, Agent), Error> {
    let shown: String = named.chars().take(80).collect();
    let unknown = || {
        let advice = "GET /v1/models lists those there are, POST /v1/agents defines one";
        Error::model_not_found(format!("there is no agent {shown:?}; {advice}"))
    };
    let name = Name::parse(named).map_err(|_| unknown())?;
    let agent = gateway.directory.find(&name).await.map_err(Problem::from)?.ok_or_else(unknown)?;
    Ok((name, agent))
}

/// When it was defined, in seconds since 1970.
fn shown(agent: &str, created: i64) -> Value {
    json!({ "id": agent, "object": "model", "created": created, "owned_by": "kairo" })
}
