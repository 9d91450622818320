//! `/v1/users/{user}/forget`: have a user forgotten, and how far that is.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::StatusCode,
};
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{ForgetUserResponse, GetForgettingResponse},
    words::ForgettingStep,
};

use super::{Gateway, body::JsonBody, query, snapshot_at_least, sorted_json::SortedJson};
use crate::{
    auth::{Caller, limits},
    fields::{NAME, RequestFields, json_bool},
    forgetting::{self, OrderEntry},
    log_follower::end_of_log,
    problem::{FieldError, Problem},
};

/// Gives the order, or tells what there is of them.
pub async fn forget_user(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, SortedJson<ForgetUserResponse>), Problem> {
    let user = path_user(path)?;
    let dry_run = parse_dry_run(&body)?;
    let sealed = gateway.bus.may_seal().await?;
    if !sealed && !dry_run {
        return Err(unsealed_problem());
    }
    let end = end_of_log(&gateway.bus).await?;
    let wait = Duration::from_millis(gateway.config.freshness_wait_ms);
    let snapshot = snapshot_at_least(&gateway, &limits::holder_for_caller(&caller, None), end, wait).await?;
    let held = query::await_answer(&gateway, snapshot.user_holdings(user.as_str())).await?;
    drop(snapshot);
    let told = ForgetUserResponse { user: user.to_string(), order_id: String::new(), held, sealed };
    if dry_run {
        return Ok((StatusCode::ACCEPTED, SortedJson(told)));
    }
    let order = gateway.orders.give_order(&user, caller.principal()).await?;
    tracing::info!(%user, order = %order.order_id, "a user is to be forgotten");
    Ok((StatusCode::ACCEPTED, SortedJson(ForgetUserResponse { order_id: order.order_id.to_string(), ..told })))
}

/// Returns true for a dry run, which only reports what there is.
pub fn parse_dry_run(body: &[u8]) -> Result<bool, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let dry_run = fields.optional("dry_run", "true or false", json_bool);
    fields.complete(|| Some(dry_run.unwrap_or(false)))
}

/// Returns the progress of forgetting a user.
pub async fn get_forgetting(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<GetForgettingResponse>, Problem> {
    let user = path_user(path)?;
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    if let Some(OrderEntry { order, .. }) = gateway.orders.open_order(&user).await? {
        let agents = order.agents.iter().map(Name::to_string).collect();
        let order_id = order.order_id.to_string();
        let step = order.step;
        let told = GetForgettingResponse { user: user.to_string(), order_id, step, agents, reason: order.reason };
        return Ok(SortedJson(told));
    }
    let done = forgetting::read_completion(&gateway.bus, &user).await?;
    let done = done.ok_or_else(|| Problem::not_found(format!("nobody has asked for {user} to be forgotten")))?;
    let step = ForgettingStep::Done.as_str().to_owned();
    let user = done.user;
    let order_id = done.order_id;
    let agents = done.agents;
    Ok(SortedJson(GetForgettingResponse { user, order_id, step, agents, reason: String::new() }))
}

/// Builds the problem for a system that cannot forget anybody because it does not seal what users say.
fn unsealed_problem() -> Problem {
    Problem::conflict(
        "what users say is not sealed, so it stays readable in the log for good, and the read models would be made of it again: \
         set privacy.master_key for all services (and raise the epoch, if it is below 8). That seals what is said from then on, \
         and a user can be forgotten as far as that goes",
    )
}

fn path_user(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    let found = path.map(|Path(user)| user).unwrap_or_default();
    Name::parse(&found).map_err(|_| {
        let found = Some(found.chars().take(80).collect());
        Problem::invalid_fields(vec![FieldError { field: "user".to_owned(), expected: NAME.to_owned(), found }])
    })
}
