//! A fence around all requests to models: the component that tracks the spending of the whole installation announces
//! that its cap is reached, and no replica asks a model while that holds. It stops work no message triggers, such as
//! work in the background.
//!
//! A hint, not a fact: it is a message of the in-memory bucket that holds hints of congestion, under a key that names
//! no agent, and holds for [`LIFETIME`] unless it is repeated. While no gateway runs, nothing is announced, and nothing
//! is held back.

use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Bus,
    congestion::LIFETIME,
    port::{Headers, OutgoingMessage},
};
use crate::subjects::CONGESTION_BUCKET;

/// The key of the bucket; names of agents are in lower case.
pub const KEY: &str = "CAP";
/// Longest reason that is taken in, in bytes.
const MAX_REASON: usize = 2_000;

fn fence_subject() -> String {
    format!("$KV.{CONGESTION_BUCKET}.{KEY}")
}

/// Says for [`LIFETIME`] why no model may be asked; with no reason, that they may be again.
pub async fn announce(bus: &Bus, reason: Option<&str>) {
    let value = reason.unwrap_or_default().as_bytes().to_vec();
    if let Err(error) = bus.store_message(OutgoingMessage::new(fence_subject(), Headers::new(), value)).await {
        tracing::warn!(%error, "whether models may be asked could not be said");
    }
}

/// The last announcement.
#[derive(Clone, Debug, Default)]
pub struct ModelFence(Arc<RwLock<Option<(String, Instant)>>>);

impl ModelFence {
    /// Follows what is announced until `shutdown`.
    pub async fn follow(bus: &Bus, shutdown: CancellationToken) -> Self {
        let fence = Self::default();
        let mut heard = match bus.subscribe(fence_subject()).await {
            Ok(heard) => heard,
            Err(error) => {
                tracing::warn!(%error, "the cap of the installation is not heard of");
                return fence;
            }
        };
        let own = fence.clone();
        let listening = async move {
            while let Some(said) = heard.next().await {
                own.apply_announcement(&said.payload, Instant::now());
            }
        };
        bus.spawn(async move { _ = shutdown.run_until_cancelled(listening).await });
        fence
    }

    /// Returns the reason no model may be asked at present, or `None` if models may be asked.
    pub fn reason(&self) -> Option<String> {
        self.reason_at(Instant::now())
    }

    fn reason_at(&self, now: Instant) -> Option<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(_, at)| now.duration_since(*at) < LIFETIME).map(|(reason, _)| reason.clone())
    }

    fn apply_announcement(&self, said: &[u8], now: Instant) {
        let reason = String::from_utf8_lossy(said.get(..MAX_REASON).unwrap_or(said)).into_owned();
        let known = Some((reason, now)).filter(|(reason, _)| !reason.is_empty());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_holds_until_it_is_withdrawn_or_not_repeated() {
        let fence = ModelFence::default();
        let now = Instant::now();
        assert_eq!(fence.reason_at(now), None);
        fence.apply_announcement(b"too dear", now);
        assert_eq!(fence.reason_at(now + LIFETIME / 2).as_deref(), Some("too dear"));
        assert_eq!(fence.reason_at(now + LIFETIME), None);
        fence.apply_announcement(b"", now);
        assert_eq!(fence.reason_at(now), None);
        fence.apply_announcement(&[b'x'; 3_000], now);
        assert_eq!(fence.reason_at(now).unwrap().len(), MAX_REASON);
    }

    #[test]
    fn its_key_is_the_name_of_no_agent() {
        assert!(crate::ids::Name::parse(KEY).is_err());
    }
}
