//! Claims: they keep two replicas from paying for the same model call. Losing one can cost a model call or a delay,
//! never a message; the guard on the decision subject is the only fence.

use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use bytes::Bytes;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::CLAIMS_BUCKET,
};
use serde::{Deserialize, Serialize};

/// What the bucket holds for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Claim {
    /// The replica at work; none once it is done.
    owner: Option<String>,
    /// Sequence of the message whose delivery the owner is answering. If that message is delivered again, the owner
    /// is dead.
    doorbell: u64,
    /// The last decision the owner knew of when it was done.
    decided: u64,
}

/// What trying to claim an agent came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    Mine {
        revision: u64,
        /// The last decision made under the claim before, when somebody else held it meanwhile.
        decided: Option<u64>,
    },
    /// Somebody else is at it.
    Held,
}

pub struct Claims {
    bus: Bus,
    bucket: Store,
    instance: String,
}

/// Races lost in a row before the claim counts as held.
const RACES: u32 = 3;

impl Claims {
    pub async fn open(bus: &Bus) -> Result<Self, BusError> {
        let bucket = bus.jetstream.get_key_value(CLAIMS_BUCKET).await;
        let bucket = bucket.map_err(|error| BusError::Unavailable { doing: "opening claims", source: error.into() })?;
        Ok(Self { bus: bus.clone(), bucket, instance: bus.instance.to_string() })
    }

    /// Claims the agent while answering `doorbell`. `revision` is the one this replica saw last, 0 for none: if it is
    /// still current, one round trip does it.
    pub async fn claim(&self, agent: &Name, doorbell: u64, mut revision: u64) -> Result<Claimed, BusError> {
        let mine = Claim { owner: Some(self.instance.clone()), doorbell, decided: 0 };
        let mut decided = None;
        for _ in 0..RACES {
            if let Some(revision) = self.write(agent, &mine, revision).await? {
                return Ok(Claimed::Mine { revision, decided });
            }
            match self.read(agent).await? {
                None => revision = 0,
                Some((claim, found)) => {
                    let free = claim.owner.is_none();
                    let own = claim.owner.as_ref() == Some(&self.instance);
                    let orphaned = claim.doorbell == doorbell;
                    if !(free || own || orphaned) {
                        return Ok(Claimed::Held);
                    }
                    revision = found;
                    decided = (!own).then_some(claim.decided).filter(|decided| *decided > 0);
                }
            }
        }
        Ok(Claimed::Held)
    }

    /// Gives the claim back, if it is still this replica's; the revision to claim with next time.
    pub async fn release(&self, agent: &Name, revision: u64, decided: u64) -> Result<u64, BusError> {
        let free = Claim { owner: None, doorbell: 0, decided };
        Ok(self.write(agent, &free, revision).await?.unwrap_or(0))
    }

    /// Frees a claim whose holder was answering `doorbell`, which is being delivered again: that holder is dead.
    /// Whether there was one.
    pub async fn bury(&self, agent: &Name, doorbell: u64) -> Result<bool, BusError> {
        match self.read(agent).await? {
            Some((claim, revision)) if claim.owner.is_some() && claim.doorbell == doorbell => {
                self.release(agent, revision, claim.decided).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Who holds the agent, and the revision of the claim that says so.
    pub async fn holder(&self, agent: &Name) -> Result<Option<(String, u64)>, BusError> {
        Ok(self.read(agent).await?.and_then(|(claim, revision)| Some((claim.owner?, revision))))
    }

    /// Writes if `revision` is still current; the new revision, or none when it was not.
    async fn write(&self, agent: &Name, claim: &Claim, revision: u64) -> Result<Option<u64>, BusError> {
        let value = Bytes::from(serde_json::to_vec(claim).unwrap_or_default());
        let mut written = self.bucket.update(agent.as_str(), value.clone(), revision).await;
        if written.as_ref().is_err_and(|error| error.kind() != UpdateErrorKind::WrongLastRevision) {
            self.make_again().await?;
            written = self.bucket.update(agent.as_str(), value, revision).await;
        }
        match written {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(BusError::Unavailable { doing: "claiming an agent", source: error.into() }),
        }
    }

    async fn read(&self, agent: &Name) -> Result<Option<(Claim, u64)>, BusError> {
        let mut entry = self.bucket.entry(agent.as_str()).await;
        if entry.is_err() {
            self.make_again().await?;
            entry = self.bucket.entry(agent.as_str()).await;
        }
        let entry = entry.map_err(|error| BusError::Unavailable { doing: "reading a claim", source: error.into() })?;
        // A claim that cannot be read counts as free: it is not a fact.
        let free = Claim { owner: None, doorbell: 0, decided: 0 };
        Ok(entry.map(|entry| (serde_json::from_slice(&entry.value).unwrap_or(free), entry.revision)))
    }

    /// The bucket is in the server's memory: a server that was restarted alone has forgotten it.
    async fn make_again(&self) -> Result<(), BusError> {
        tracing::info!("no answer about claims, making sure that their bucket is there");
        self.bus.provision().await
    }
}
