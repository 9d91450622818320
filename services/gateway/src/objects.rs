//! Images and audio that clients bring: how many bytes of them a key and a user may have stored ([`inventory`]), and that
//! what no event names is removed again ([`sweep`]).
//!
//! An object must not go between a client's storing or naming it and the event that names it being known. So whoever stores
//! it again or names it makes it young first ([`Gateway::keep_object`]), and only what is old is removed, by those who know
//! all events up to then. An event that is written follows within seconds; `gateway.objects_grace_ms` is hours.

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
use inventory::{Bounds, Over};

/// How much younger than the grace an object is that need not be made younger: the rest is for the event to be written.
const YOUNG: u64 = 2;

impl Gateway {
    /// The object of this digest, if there is one, which from here on stays for long enough to be named.
    pub async fn keep_object(&self, digest: &str) -> Result<Option<Part>, BusError> {
        self.objects.again(digest, Duration::from_millis(self.config.objects_grace_ms / YOUNG)).await
    }

    /// Keeps bytes that a caller brings, for a user if it is known for whom. Nothing of it tells whether somebody else has stored them:
    /// they must be within the caller's bounds either way.
    pub async fn store_object(
        &self,
        caller: &Caller,
        user: Option<&str>,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Part, Problem> {
        let digest = media::digest(bytes);
        let stored_for = StoredFor { key: caller.bounded(), user: user.map(str::to_owned) };
        if self.inventory.has(&digest, &stored_for)
            && let Some(part) = self.keep_object(&digest).await?
        {
            return Ok(part);
        }
        let size = bytes.len() as u64;
        let coming = self.inventory.announce(&digest, &stored_for, size, bounds(&self.config)).map_err(over)?;
        if let Some(part) = self.keep_object(&digest).await? {
            coming.came();
            return Ok(part);
        }
        let part = self.objects.put(&digest, media_type, bytes, &stored_for).await.map_err(|error| match error {
            PutError::Full => Problem::full(),
            PutError::Bus(error) => error.into(),
        })?;
        coming.came();
        Ok(part)
    }
}

fn bounds(config: &GatewayConfig) -> Bounds {
    Bounds { key: config.objects_key_bytes, user: config.objects_user_bytes }
}

fn over(over: Over) -> Problem {
    Problem::quota(match over {
        Over::Key => "this key has stored as many bytes as it may (gateway.objects_key_bytes)",
        Over::User => "for this user as many bytes are stored as may be (gateway.objects_user_bytes)",
    })
}
