//! `/v1/fleet`: which versions are there, and raising the epoch: from then on what this version writes may be written, if
//! everybody who is there reads it.

use axum::{Extension, extract::State};
use kairo_core::{
    bus::epoch::{EpochHold, EpochPromotion},
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

use super::{Gateway, sorted_json::SortedJson, status};
use crate::{auth::Caller, problem::Problem};

pub async fn get_fleet(State(gateway): State<Gateway>) -> Result<SortedJson<GetFleetResponse>, Problem> {
    let (replicas, announced) = tokio::join!(status::ping_replicas(&gateway), gateway.bus.epoch_state());
    let replicas = replicas?;
    let announced = announced?;
    let enables = vocabulary::features_after(announced.epoch);
    Ok(SortedJson(GetFleetResponse {
        epoch: announced.epoch,
        reader: READER,
        behind: replicas_behind(&replicas),
        replicas: replicas.into_iter().map(fleet_replica_row).collect(),
        enables: enables.map(|(epoch, what)| EnabledRow { epoch, what: what.to_owned() }).collect(),
        hold: announced.hold.map(hold_row),
    }))
}

pub async fn promote_fleet(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<SortedJson<PromoteFleetResponse>, Problem> {
    let behind = replicas_behind(&status::ping_replicas(&gateway).await?);
    if !behind.is_empty() {
        let detail = format!(
            "epoch {READER} is read by all but these, which are of an older version: {}; replace them and promote again",
            behind.join(", ")
        );
        return Err(Problem::conflict(detail));
    }
    match gateway.bus.raise_epoch(READER, &caller.principal()).await? {
        EpochPromotion::Held(hold) => {
            Err(Problem::conflict(format!("{}; kairo fleet release ends that", describe_hold(&hold))))
        }
        EpochPromotion::InForce { before } => {
            let epoch = before.max(READER);
            tracing::info!(epoch, before, "the epoch was raised");
            Ok(SortedJson(PromoteFleetResponse { epoch, before }))
        }
    }
}

pub async fn hold_fleet(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<SortedJson<HoldFleetResponse>, Problem> {
    let by = caller.principal();
    let before = gateway.bus.hold_epoch(&by).await?;
    let hold = before.unwrap_or_else(|| EpochHold { by: Some(by), since: gateway.bus.now() });
    tracing::info!(hold = describe_hold(&hold), "the epoch is held");
    Ok(SortedJson(HoldFleetResponse { hold: Some(hold_row(hold)) }))
}

pub async fn release_fleet(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<SortedJson<ReleaseFleetResponse>, Problem> {
    let released = gateway.bus.release_epoch(&caller.principal()).await?;
    tracing::info!(held = released.is_some(), "the epoch is not held any more");
    Ok(SortedJson(ReleaseFleetResponse { released: released.map(hold_row) }))
}

/// Those that read less than this gateway.
fn replicas_behind(replicas: &[ReplicaRow]) -> Vec<String> {
    let readers = replicas.iter().map(|replica| (replica.instance.as_str(), replica.reader));
    vocabulary::replicas_behind(READER, readers).into_iter().map(str::to_owned).collect()
}

fn fleet_replica_row(replica: ReplicaRow) -> FleetReplicaRow {
    let ReplicaRow { service, instance, version, reader, .. } = replica;
    FleetReplicaRow { service, instance, version, reader }
}

fn describe_hold(hold: &EpochHold) -> String {
    format!("{} keeps the epoch from being raised, since {}", holder_name(hold), hold.since)
}

fn hold_row(hold: EpochHold) -> HoldRow {
    HoldRow { by: holder_name(&hold), since: Some(time::message(hold.since)) }
}

fn holder_name(hold: &EpochHold) -> String {
    hold.by.as_ref().map_or_else(|| "somebody".to_owned(), Principal::to_string)
}
