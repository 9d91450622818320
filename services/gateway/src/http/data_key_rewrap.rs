//! `POST /v1/privacy/rewrap`: every data key is kept under the master key in force.

use axum::extract::State;
use kairo_core::bus::BusError;
use kairo_proto::v1::RewrapDataKeysResponse;

use super::{Gateway, sorted_json::SortedJson};
use crate::problem::Problem;

pub async fn rewrap_data_keys(State(gateway): State<Gateway>) -> Result<SortedJson<RewrapDataKeysResponse>, Problem> {
    if !gateway.bus.has_master_key() {
        return Err(Problem::conflict("nothing is sealed: this gateway has no privacy.master_key"));
    }
    let rewrapped = match gateway.bus.rewrap_data_keys().await {
        Err(BusError::Refused(why)) => {
            return Err(Problem::conflict(format!("{why}: put it into privacy.old_master_keys and try again")));
        }
        outcome => outcome?,
    };
    tracing::info!(rewrapped, "data keys are kept under the master key in force");
    Ok(SortedJson(RewrapDataKeysResponse { rewrapped }))
}
