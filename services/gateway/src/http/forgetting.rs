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

use super::{Gateway, answer::Told, at_least, body::JsonBody, query};
use crate::{
    auth::{Caller, limits},
    fields::{Fields, NAME, flag},
    follow::end_of_log,
    forgetting::{self, OrderEntry},
    problem::{FieldError, Problem},
};

/// Gives the order, or tells what there is of them.
pub async fn post(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Told<ForgetUserResponse>), Problem> {
    let user = user(path)?;
    let dry_run = read(&body)?;
    let sealed = gateway.bus.may_seal().await?;
    if !sealed && !dry_run {
        return Err(unsealed());
    }
    let end = end_of_log(&gateway.bus).await?;
    let wait = Duration::from_millis(gateway.config.freshness_wait_ms);
    let snapshot = at_least(&gateway, &limits::holder(&caller, None), end, wait).await?;
    let held = query::answered(&gateway, snapshot.held_of(user.as_str())).await?;
    drop(snapshot);
    let told = ForgetUserResponse { user: user.to_string(), order_id: String::new(), held, sealed };
    if dry_run {
        return Ok((StatusCode::ACCEPTED, Told(told)));
    }
    let order = gateway.orders.give(&user, caller.principal()).await?;
    tracing::info!(%user, order = %order.order_id, "a user is to be forgotten");
    Ok((StatusCode::ACCEPTED, Told(ForgetUserResponse { order_id: order.order_id.to_string(), ..told })))
}

/// Returns true for a dry run, which only reports what there is.
pub fn read(body: &[u8]) -> Result<bool, Problem> {
    let mut fields = Fields::from_json(body)?;
    let dry_run = fields.optional("dry_run", "true or false", flag);
    fields.complete(|| Some(dry_run.unwrap_or(false)))
}

/// Returns the progress of forgetting a user.
pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Told<GetForgettingResponse>, Problem> {
    let user = user(path)?;
    Fields::from_query(query.as_deref()).complete(|| Some(()))?;
    if let Some(OrderEntry { order, .. }) = gateway.orders.open(&user).await? {
        let agents = order.agents.iter().map(Name::to_string).collect();
        let (order_id, step) = (order.order_id.to_string(), order.step);
        let told = GetForgettingResponse { user: user.to_string(), order_id, step, agents, reason: order.reason };
        return Ok(Told(told));
    }
    let done = forgetting::read_completion(&gateway.bus, &user).await?;
    let done = done.ok_or_else(|| Problem::not_found(format!("nobody has asked for {user} to be forgotten")))?;
    let step = ForgettingStep::Done.as_str().to_owned();
    let (user, order_id, agents) = (done.user, done.order_id, done.agents);
    Ok(Told(GetForgettingResponse { user, order_id, step, agents, reason: String::new() }))
}

/// Builds the problem for a system that cannot forget anybody because it does not seal what users say.
fn unsealed() -> Problem {
    Problem::conflict(
        "what users say is not sealed, so it stays readable in the log for good, and the read models would be made of it again: \
         set privacy.master_key for all services (and raise the epoch, if it is below 8). That seals what is said from then on, \
         and a user can be forgotten as far as that goes",
    )
}

fn user(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    let found = path.map(|Path(user)| user).unwrap_or_default();
    Name::parse(&found).map_err(|_| {
        let found = Some(found.chars().take(80).collect());
        Problem::invalid(vec![FieldError { field: "user".to_owned(), expected: NAME.to_owned(), found }])
    })
}
