//! The epoch of the log: the newest version of messages that is written ([`crate::vocabulary`]). It starts at the epoch
//! the log was made in, and is raised by messages on one subject. A hold, which forbids raising it, is announced there
//! too.

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Bus, BusError, append::OutgoingEvent, subject_follower::NewestRecord};
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

/// The epoch in force, and whether it may be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochState {
    pub epoch: u32,
    pub hold: Option<EpochHold>,
    /// The sequence of the last announcement, 0 for none.
    last: u64,
}

/// An order that the epoch stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochHold {
    pub by: Option<Principal>,
    pub since: Timestamp,
}

/// The outcome of raising the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochPromotion {
    /// It is in force; `before` is the previous one.
    InForce {
        before: u32,
    },
    Held(EpochHold),
}

impl Bus {
    /// The epoch in force.
    pub async fn current_epoch(&self) -> Result<u32, BusError> {
        Ok(self.epoch_state().await?.epoch)
    }

    /// Refuses a log that this build cannot read all of.
    ///
    /// # Errors
    /// [`BusError::Refused`] where the epoch was raised beyond what this build reads.
    pub async fn check_epoch(&self) -> Result<(), BusError> {
        match self.current_epoch().await? {
            epoch if epoch > READER => Err(BusError::Refused(build_too_old_message(epoch))),
            _ => Ok(()),
        }
    }

    /// Raises the epoch at somebody's word. One that is as high already stays.
    pub async fn raise_epoch(&self, epoch: u32, by: &Principal) -> Result<EpochPromotion, BusError> {
        self.announce_epoch(by, |there| match &there.hold {
            _ if there.epoch >= epoch => Err(EpochPromotion::InForce { before: there.epoch }),
            Some(hold) => Err(EpochPromotion::Held(hold.clone())),
            None => Ok((
                Epoch { epoch, held: false, ..new_announcement() },
                EpochPromotion::InForce { before: there.epoch },
            )),
        })
        .await
    }

    /// Keeps everybody from raising the epoch; the hold that there was before.
    pub async fn hold_epoch(&self, by: &Principal) -> Result<Option<EpochHold>, BusError> {
        self.announce_epoch(by, |there| match &there.hold {
            Some(hold) => Err(Some(hold.clone())),
            None => Ok((Epoch { epoch: there.epoch, held: true, ..new_announcement() }, None)),
        })
        .await
    }

    /// Lets it be raised again; the hold that there was.
    pub async fn release_epoch(&self, by: &Principal) -> Result<Option<EpochHold>, BusError> {
        self.announce_epoch(by, |there| match &there.hold {
            None => Err(None),
            Some(hold) => Ok((Epoch { epoch: there.epoch, held: false, ..new_announcement() }, Some(hold.clone()))),
        })
        .await
    }

    /// The epoch, and whether it may be raised.
    pub async fn epoch_state(&self) -> Result<EpochState, BusError> {
        let mut announced = EpochState { epoch: self.log_identity()?.epoch, hold: None, last: 0 };
        self.read_all(&epoch_subject(), 0, |raw| {
            announced.last = raw.sequence;
            let Ok(record) = raw.without_carried_mark().read(self.limits.max_body_bytes) else { return };
            let Some(Epoch { epoch, held, .. }) = Epoch::of(&record.body) else { return };
            announced.epoch = announced.epoch.max(*epoch);
            let hold = EpochHold { by: record.envelope.entered_by.clone(), since: record.envelope.time };
            announced.hold = held.then_some(hold);
        })
        .await?;
        Ok(announced)
    }

    /// Announces what `decide` makes of what stands there, or nothing where it says so with an error. It may be asked again.
    async fn announce_epoch<T>(
        &self,
        by: &Principal,
        decide: impl Fn(&EpochState) -> Result<(Epoch, T), T>,
    ) -> Result<T, BusError> {
        let owner = Name::parse(Service::Gateway.name()).map_err(|error| BusError::Refused(error.to_string()))?;
        for race in 1.. {
            let there = self.epoch_state().await?;
            let (epoch, outcome) = match decide(&there) {
                Ok(decided) => decided,
                Err(outcome) => return Ok(outcome),
            };
            let envelope = Envelope::from_outside(self.new_id(), Service::Gateway, Origin::System, self.now());
            let envelope = Envelope { entered_by: Some(by.clone()), ..envelope };
            match self.append(&OutgoingEvent::new(&EPOCH, &owner, envelope, epoch), there.last).await {
                Ok(_) => return Ok(outcome),
                Err(BusError::Conflict { .. }) if race < RACES => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last race ends it")
    }
}

fn new_announcement() -> Epoch {
    Epoch { version: env!("CARGO_PKG_VERSION").to_owned(), ..Epoch::default() }
}

fn build_too_old_message(epoch: u32) -> String {
    format!(
        "this build ({}) reads messages up to epoch {READER}, and the log is in epoch {epoch}: the fleet was promoted, and \
         builds that read less would leave alone what they do not understand. Start the version that the others are of \
         (kairo fleet names it)",
        env!("CARGO_PKG_VERSION")
    )
}

/// The epoch in force, as far as it was seen: whoever writes asks at every message.
pub struct EpochInForce {
    began: u32,
    seen: watch::Receiver<Option<Record>>,
}

impl EpochInForce {
    /// Follows it until `shutdown`.
    pub fn follow(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        let newest = NewestRecord::follow(bus, epoch_subject(), shutdown);
        Ok(Self { began: bus.log_identity()?.epoch, seen: newest.changes() })
    }

    /// Returns the epoch in force, at most the newest this build knows.
    pub fn current(&self) -> u32 {
        self.began.max(self.seen.borrow().as_ref().map_or(0, epoch_of)).min(READER)
    }
}

fn epoch_of(record: &Record) -> u32 {
    Epoch::of(&record.body).map_or(0, |announced| announced.epoch)
}

fn epoch_subject() -> String {
    Name::parse(Service::Gateway.name()).map(|owner| EPOCH.of_owner(&owner)).unwrap_or_default()
}
