//! Retries user messages that became dead letters: any replica delivers them, behind the user's later messages.

use std::sync::Arc;

use kairo_core::{
    bus::consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure},
    subjects,
};

use crate::{addressing::resolve_for_retry, routing::RouteOutcome, shard::RouterContext};

/// Deals again with messages of [`kairo_core::subjects::Consumer::Router`].
pub struct UserMessageRetrier(pub Arc<RouterContext>);

impl Handler for UserMessageRetrier {
    async fn handle(&self, Delivery { record, .. }: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let Some((_, user)) = subjects::find_route(&record.subject) else {
            return Err(HandlerFailure::Permanent("subject names no user".to_owned()));
        };
        let router = &self.0.router;
        let current = resolve_for_retry(router, &user, record).await?;
        match router.route_message(record, &current).await {
            RouteOutcome::Done => Ok(DeliveryOutcome::Done),
            RouteOutcome::Refused(reason) => Err(HandlerFailure::Permanent(reason)),
            RouteOutcome::Later(error) => Err(error.into()),
        }
    }
}
