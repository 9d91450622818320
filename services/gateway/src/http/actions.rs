//! `GET /v1/actions`: what agents have asked the world for and not yet been told, or are in doubt about.

use axum::extract::State;
use kairo_core::ids::Name;
use kairo_read_model::WantedActions;
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
    let (wanted, agent) = asked.read(read)?;
    let agent = agent.as_ref().map(Name::as_str);
    let snapshot = asked.snapshot(&gateway).await?;
    let actions = query::answered(&gateway, snapshot.actions(wanted, agent)).await?;
    Ok(Answer::of(&snapshot, json!({ "actions": actions })))
}

fn read(url_query: Option<&str>) -> Result<(WantedActions, Option<Name>), Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name));
    // A client may say only what it wants, and must not be misunderstood when it says the opposite.
    let only = |text: &str| parsed(text).filter(|only: &bool| *only);
    let in_flight = fields.optional("in_flight", "true; finished actions are in /v1/events", value(only));
    let in_doubt = fields.optional("in_doubt", "true; finished actions are in /v1/events", value(only));
    if in_flight.is_some() && in_doubt.is_some() {
        fields.reject("in_doubt", "nothing together with in_flight: no action is both");
    }
    let wanted = match (in_flight, in_doubt) {
        (Some(_), _) => WantedActions::InFlight,
        (None, Some(_)) => WantedActions::InDoubt,
        (None, None) => WantedActions::Open,
    };
    fields.complete(|| Some((wanted, agent)))
}
