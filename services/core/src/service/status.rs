//! Answering who is there: every replica replies to a request on [`STATUS_PING`].

use std::time::Instant;

use futures::StreamExt;
use kairo_proto::{Body, v1::ServiceStatus};

use super::Readiness;
use crate::{bus::Bus, subjects::STATUS_PING};

pub(super) async fn answer(bus: Bus, readiness: Readiness, started: Instant) {
    let mut pings = match bus.client.subscribe(STATUS_PING).await {
        Ok(pings) => pings,
        Err(error) => {
            tracing::warn!(%error, "this replica will not show in the status");
            return;
        }
    };
    while let Some(ping) = pings.next().await {
        let Some(reply) = ping.reply else { continue };
        let status = ServiceStatus {
            service: bus.service.name().to_owned(),
            instance: bus.instance.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: started.elapsed().as_secs(),
            ready: readiness.get(),
            health_url: readiness.url().to_owned(),
        };
        let answer = Body::from(status).encode();
        if let Err(error) = bus.client.publish(reply, answer.into()).await {
            tracing::debug!(%error, "a status answer went nowhere");
        }
    }
}
