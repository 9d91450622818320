//! Images and audio from clients: limits on the bytes stored per key and per user ([`inventory`]), and removal of
//! objects that no event names ([`sweep`]).
//!
//! An object must not be removed between the request that stores or names it and the event that names it. So such a
//! request refreshes the object first ([`Gateway::refresh_object`]), and only old objects are removed, by a gateway that
//! knows all events up to then. The event follows within seconds; `gateway.objects_grace_ms` is hours.

pub mod inventory;
pub mod sweep;

use std::time::Duration;

use kairo_core::{
    bus::{
        BusError,
        objects::{PutError, StoredFor},
    },
    media,
};
use kairo_proto::v1::Part;

use crate::{auth::Caller, config::GatewayConfig, problem::Problem, state::Gateway};
use inventory::{ExceededBound, StorageBounds};

/// The divisor of the grace period: an object younger than this part of it is not refreshed, since the rest is enough
/// time for the event to be written.
const YOUNG: u64 = 2;

impl Gateway {
    /// Returns the object of this digest, if it exists, and keeps it long enough for an event to name it.
    pub async fn refresh_object(&self, digest: &str) -> Result<Option<Part>, BusError> {
        self.objects.find_and_renew(digest, Duration::from_millis(self.config.objects_grace_ms / YOUNG)).await
    }

    /// Stores bytes from a caller, for a user if one is known. The result does not reveal whether somebody else has
    /// stored them already: they must be within the caller's bounds either way.
    pub async fn store_object(
        &self,
        caller: &Caller,
        user: Option<&str>,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Part, Problem> {
        let digest = media::digest(bytes);
        let stored_for = StoredFor { key: caller.quota_identity(), user: user.map(str::to_owned) };
        if self.inventory.has(&digest, &stored_for)
            && let Some(part) = self.refresh_object(&digest).await?
        {
            return Ok(part);
        }
        let size = bytes.len() as u64;
        let coming = self
            .inventory
            .reserve_bytes(&digest, &stored_for, size, storage_bounds(&self.config))
            .map_err(quota_problem)?;
        if let Some(part) = self.refresh_object(&digest).await? {
            coming.mark_stored();
            return Ok(part);
        }
        let part =
            self.objects.store_object(&digest, media_type, bytes, &stored_for).await.map_err(|error| match error {
                PutError::Full => Problem::storage_full(),
                PutError::Bus(error) => error.into(),
            })?;
        coming.mark_stored();
        Ok(part)
    }
}

fn storage_bounds(config: &GatewayConfig) -> StorageBounds {
    StorageBounds { key: config.objects_key_bytes, user: config.objects_user_bytes }
}

fn quota_problem(over: ExceededBound) -> Problem {
    Problem::quota_exceeded(match over {
        ExceededBound::Key => "this key has stored as many bytes as it may (gateway.objects_key_bytes)",
        ExceededBound::User => "for this user as many bytes are stored as may be (gateway.objects_user_bytes)",
    })
}
