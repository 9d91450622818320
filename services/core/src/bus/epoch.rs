//! The epoch of the log: the newest version of messages that is written ([`crate::vocabulary`]). It begins with the one that
//! the log was made in, and is raised by what stands on one subject.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Bus, BusError, append::Outgoing, follow::Newest};
use crate::{
    envelope::{Envelope, Origin},
    ids::Name,
    principal::Principal,
    record::Record,
    subjects::{EPOCH, Service},
    vocabulary::READER,
};
use kairo_proto::v1::Epoch;

/// Several may raise it at the same time; whoever comes later looks again.
const RACES: u32 = 16;

impl Bus {
    /// The epoch in force.
    pub async fn epoch(&self) -> Result<u32, BusError> {
        Ok(self.announced().await?.1)
    }

    /// Raises the epoch at somebody's word; what it was before. One that is as high already stays.
    pub async fn raise_epoch(&self, epoch: u32, by: Principal) -> Result<u32, BusError> {
        let Ok(owner) = Name::parse(Service::Gateway.name()) else { return self.epoch().await };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut conflict = None;
        for _ in 0..RACES {
            let (last, before) = self.announced().await?;
            if before >= epoch {
                return Ok(before);
            }
            let envelope = Envelope::entering(self.new_id(), Service::Gateway, Origin::System, self.now());
            let envelope = Envelope { entered_by: Some(by.clone()), ..envelope };
            let raised = Outgoing::new(&EPOCH, &owner, envelope, Epoch { epoch, version: version.clone() });
            match self.append(&raised, last).await {
                Ok(_) => return Ok(before),
                Err(error @ BusError::Conflict { .. }) => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        conflict.map_or(Ok(epoch), Err)
    }

    /// Where it was announced last, 0 for never, and the highest that was.
    async fn announced(&self) -> Result<(u64, u32), BusError> {
        let (mut last, mut highest) = (0, self.log()?.epoch);
        self.read_all(&subject(), 0, |raw| {
            last = raw.sequence;
            let announced = raw.read(self.limits.max_body_bytes).ok();
            highest = highest.max(announced.as_ref().map_or(0, said));
        })
        .await?;
        Ok((last, highest))
    }
}

/// The epoch in force, as far as it was seen: whoever writes asks at every message.
pub struct EpochInForce {
    began: u32,
    seen: watch::Receiver<Option<Record>>,
}

impl EpochInForce {
    /// Follows it until `shutdown`.
    pub fn follow(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        let newest = Newest::follow(bus, subject(), shutdown);
        Ok(Self { began: bus.log()?.epoch, seen: newest.changes() })
    }

    /// What may be written, which this build may not know all of.
    pub fn current(&self) -> u32 {
        self.began.max(self.seen.borrow().as_ref().map_or(0, said)).min(READER)
    }
}

fn said(record: &Record) -> u32 {
    Epoch::of(&record.body).map_or(0, |announced| announced.epoch)
}

fn subject() -> String {
    Name::parse(Service::Gateway.name()).map(|owner| EPOCH.of(&owner)).unwrap_or_default()
}
