//! Retries user messages that became dead letters: any replica delivers them, behind the user's later messages.

use std::sync::Arc;

use kairo_core::{
    bus::consume::{Delivery, Failure, Handler, Settled},
    subjects,
};

use crate::{addressing::address_again, routing::Routed, shard::Shards};

/// Deals again with messages of [`kairo_core::subjects::Consumer::Router`].
pub struct Again(pub Arc<Shards>);

impl Handler for Again {
    async fn handle(&self, Delivery { record, .. }: &Delivery) -> Result<Settled, Failure> {
        let Some((_, user)) = subjects::route(&record.subject) else {
            return Err(Failure::Permanent("subject names no user".to_owned()));
        };
        let router = &self.0.router;
        let current = address_again(router, &user, record).await?;
        match router.route(record, &current).await {
            Routed::Done => Ok(Settled::Done),
            Routed::Refused(reason) => Err(Failure::Permanent(reason)),
            Routed::Later(error) => Err(error.into()),
        }
    }
}
