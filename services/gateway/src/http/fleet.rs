//! `POST /v1/fleet/promote`: from here on what this version writes may be written, if everybody who is there reads it.

use axum::{Extension, extract::State};
use kairo_core::vocabulary::{self, READER};
use kairo_proto::v1::PromoteFleetResponse;

use super::{Gateway, answer::Told, status};
use crate::{auth::Caller, problem::Problem};

pub async fn promote(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Told<PromoteFleetResponse>, Problem> {
    let replicas = status::services(&gateway).await?;
    let behind = vocabulary::behind(READER, replicas.iter().map(|replica| (replica.instance.as_str(), replica.reader)));
    if !behind.is_empty() {
        let detail = format!(
            "epoch {READER} is read by all but these, which are of an older version: {}; replace them and promote again",
            behind.join(", ")
        );
        return Err(Problem::conflict(detail));
    }
    let before = gateway.bus.raise_epoch(READER, caller.principal()).await?;
    let epoch = before.max(READER);
    tracing::info!(epoch, before, "the epoch was raised");
    Ok(Told(PromoteFleetResponse { epoch, before }))
}
