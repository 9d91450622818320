//! `GET /v1/models` and `GET /v1/models/{model}`: every agent is a model.

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use serde_json::{Value, json};

use super::{
    super::{query, read_consistency::ReadRequest},
    ChatError,
};
use crate::{auth::Caller, directory::KnownAgent, problem::Problem, state::Gateway};

pub async fn list_models(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<Json<Value>, ChatError> {
    let snapshot = asked.snapshot(&gateway).await?;
    let agents = query::await_answer(&gateway, snapshot.list_agents()).await?;
    let seen = agents.iter().filter(|agent| caller.require_agent(Some(&agent.agent)).is_ok());
    let models: Vec<Value> =
        seen.map(|agent| model_to_json(&agent.agent, agent.defined_at.map_or(0, |at| at.seconds))).collect();
    Ok(Json(json!({ "object": "list", "data": models })))
}

pub async fn get_model(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, ChatError> {
    let named = path.map(|Path(named)| named).unwrap_or_default();
    caller.require_agent(Some(&named))?;
    let (name, agent) = find_model(&gateway, &named).await?;
    Ok(Json(model_to_json(name.as_str(), agent.defined_at.as_second())))
}

/// The agent of this name: one that was just defined can be talked to.
pub async fn find_model(gateway: &Gateway, named: &str) -> Result<(Name, KnownAgent), ChatError> {
    let shown: String = named.chars().take(80).collect();
    let unknown = || {
        let advice = "GET /v1/models lists those there are, POST /v1/agents defines one";
        ChatError::model_not_found(format!("there is no agent {shown:?}; {advice}"))
    };
    let name = Name::parse(named).map_err(|_| unknown())?;
    let agent = gateway.directory.find(&name).await.map_err(Problem::from)?.ok_or_else(unknown)?;
    Ok((name, agent))
}

/// When it was defined, in seconds since 1970.
fn model_to_json(agent: &str, created: i64) -> Value {
    json!({ "id": agent, "object": "model", "created": created, "owned_by": "kairo" })
}
