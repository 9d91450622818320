//! `GET /v1/processes`: the processes of agents, the newest first.

use axum::extract::State;
use kairo_core::ids::Name;
use serde_json::{Value, json};

use super::{
    Gateway,
    fresh::{Answer, Asked},
    query,
};
use crate::{
    fields::{Fields, NAME, name, parsed, value},
    problem::Problem,
};

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<Value>, Problem> {
    let (agent, running) = asked.read(read)?;
    let agent = agent.as_ref().map(Name::as_str);
    let snapshot = asked.snapshot(&gateway).await?;
    let processes = query::answered(&gateway, snapshot.processes(agent, running)).await?;
    Ok(Answer::of(&snapshot, json!({ "processes": processes })))
}

fn read(url_query: Option<&str>) -> Result<(Option<Name>, Option<bool>), Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name));
    let running = fields.optional("running", "true or false", value(parsed));
    fields.complete(|| Some((agent, running)))
}
