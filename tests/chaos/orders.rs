//! Whoever watches what agents do, and orders the end of what was wished for only to be stopped.

use std::time::Duration;

use kairo_core::{bus::Bus, subjects::route};

use super::{load::Clients, log::MAX_BODY, scenario::TO_BE_CANCELED, verdict::effect};
use crate::audit::{decision, tool_calls};

/// Between two looks at the log.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Gives every order once. Never returns.
pub async fn give(clients: Clients, bus: Bus) {
    let mut end = 0;
    loop {
        let mut doomed = Vec::new();
        let read = bus.read_all("kairo.agent.*.decision", end, |raw| {
            end = raw.sequence;
            let Ok(record) = raw.read(MAX_BODY) else { return };
            let agent = route(&record.subject).map(|(_, agent)| agent.to_string()).unwrap_or_default();
            let calls = decision(&record).into_iter().flat_map(tool_calls);
            let stopped = calls.filter(|(_, call)| effect(call).is_some_and(|it| it.name().ends_with(TO_BE_CANCELED)));
            doomed.extend(stopped.map(|(action, _)| (agent.clone(), action)));
        });
        // nats-server may be away just now.
        let _ = read.await;
        for (agent, action) in doomed {
            clients.cancel(&agent, &action).await;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
