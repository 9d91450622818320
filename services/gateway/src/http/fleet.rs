//! `/v1/fleet`: which versions are there, and raising the epoch: from then on what this version writes may be written, if
//! everybody who is there reads it.

use axum::{Extension, extract::State};
use kairo_core::{
    bus::epoch::{Hold, Promotion},
    principal::Principal,
    vocabulary::{self, READER},
};
use kairo_proto::{
    time,
    v1::{
        EnabledRow, FleetReplicaRow, GetFleetResponse, HoldFleetResponse, HoldRow, PromoteFleetResponse,
        ReleaseFleetResponse, ReplicaRow,
    },
};

use super::{Gateway, answer::Told, status};
use crate::{auth::Caller, problem::Problem};

pub async fn get(State(gateway): State<Gateway>) -> Result<Told<GetFleetResponse>, Problem> {
    let (replicas, announced) = tokio::join!(status::services(&gateway), gateway.bus.announced());
    let (replicas, announced) = (replicas?, announced?);
    let enables = vocabulary::enabled(announced.epoch);
    Ok(Told(GetFleetResponse {
        epoch: announced.epoch,
        reader: READER,
        behind: behind(&replicas),
        replicas: replicas.into_iter().map(replica).collect(),
        enables: enables.map(|(epoch, what)| EnabledRow { epoch, what: what.to_owned() }).collect(),
        hold: announced.hold.map(told),
    }))
}

pub async fn promote(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Told<PromoteFleetResponse>, Problem> {
    let behind = behind(&status::services(&gateway).await?);
    if !behind.is_empty() {
        let detail = format!(
            "epoch {READER} is read by all but these, which are of an older version: {}; replace them and promote again",
            behind.join(", ")
        );
        return Err(Problem::conflict(detail));
    }
    match gateway.bus.raise_epoch(READER, &caller.principal()).await? {
        Promotion::Held(hold) => Err(Problem::conflict(format!("{}; kairo fleet release ends that", held(&hold)))),
        Promotion::InForce { before } => {
            let epoch = before.max(READER);
            tracing::info!(epoch, before, "the epoch was raised");
            Ok(Told(PromoteFleetResponse { epoch, before }))
        }
    }
}

pub async fn hold(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Told<HoldFleetResponse>, Problem> {
    let by = caller.principal();
    let before = gateway.bus.hold_epoch(&by).await?;
    let hold = before.unwrap_or_else(|| Hold { by: Some(by), since: gateway.bus.now() });
    tracing::info!(hold = held(&hold), "the epoch is held");
    Ok(Told(HoldFleetResponse { hold: Some(told(hold)) }))
}

pub async fn release(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Told<ReleaseFleetResponse>, Problem> {
    let released = gateway.bus.release_epoch(&caller.principal()).await?;
    tracing::info!(held = released.is_some(), "the epoch is not held any more");
    Ok(Told(ReleaseFleetResponse { released: released.map(told) }))
}

/// Those that read less than this gateway.
fn behind(replicas: &[ReplicaRow]) -> Vec<String> {
    let readers = replicas.iter().map(|replica| (replica.instance.as_str(), replica.reader));
    vocabulary::behind(READER, readers).into_iter().map(str::to_owned).collect()
}

fn replica(replica: ReplicaRow) -> FleetReplicaRow {
    let ReplicaRow { service, instance, version, reader, .. } = replica;
    FleetReplicaRow { service, instance, version, reader }
}

fn held(hold: &Hold) -> String {
    format!("{} keeps the epoch from being raised, since {}", who(hold), hold.since)
}

fn told(hold: Hold) -> HoldRow {
    HoldRow { by: who(&hold), since: Some(time::message(hold.since)) }
}

fn who(hold: &Hold) -> String {
    hold.by.as_ref().map_or_else(|| "somebody".to_owned(), Principal::to_string)
}
