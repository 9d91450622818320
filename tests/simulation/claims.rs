//! agent-runtime's claims, on buckets in memory: the same protocol, line by line. A claim is no fence, so whatever
//! happens to the bucket may cost a model call and nothing else.

use kairo_core::ids::Name;

use crate::{replica::Replica, steps::step, world::Claim};

pub enum Claimed {
    Mine {
        revision: u64,
        /// The last decision made under the claim before, when somebody else held it meanwhile.
        decided: Option<u64>,
    },
    Held,
}

const RACES: u32 = 3;

impl Replica {
    pub async fn claim(&self, agent: &Name, doorbell: u64, mut revision: u64) -> Claimed {
        let mine = Claim { owner: Some(self.instance.clone()), doorbell, decided: 0 };
        let mut decided = None;
        for _ in 0..RACES {
            if let Some(revision) = self.write_claim(agent, &mine, revision).await {
                return Claimed::Mine { revision, decided };
            }
            match self.read_claim(agent).await {
                None => revision = 0,
                Some((claim, found)) => {
                    let own = claim.owner.as_ref() == Some(&self.instance);
                    if !(claim.owner.is_none() || own || claim.doorbell == doorbell) {
                        return Claimed::Held;
                    }
                    revision = found;
                    decided = (!own).then_some(claim.decided).filter(|decided| *decided > 0);
                }
            }
        }
        Claimed::Held
    }

    pub async fn release_claim(&self, agent: &Name, revision: u64, decided: u64) -> u64 {
        let free = Claim { owner: None, doorbell: 0, decided };
        self.write_claim(agent, &free, revision).await.unwrap_or(0)
    }

    pub async fn bury_claim(&self, agent: &Name, doorbell: u64) {
        if let Some((claim, revision)) = self.read_claim(agent).await
            && claim.owner.is_some()
            && claim.doorbell == doorbell
        {
            self.release_claim(agent, revision, claim.decided).await;
        }
    }

    pub async fn claim_holder(&self, agent: &Name) -> Option<(Name, u64)> {
        self.read_claim(agent).await.and_then(|(claim, revision)| Some((claim.owner?, revision)))
    }

    /// Writes if `revision` is still current; the new revision, or none when it was not.
    async fn write_claim(&self, agent: &Name, claim: &Claim, revision: u64) -> Option<u64> {
        step().await;
        let written = {
            let mut world = self.world.borrow_mut();
            let current = world.claims.get(agent).map_or(0, |(_, revision)| *revision);
            (current == revision).then(|| {
                world.revision += 1;
                let written = world.revision;
                world.claims.insert(agent.clone(), (claim.clone(), written));
                written
            })
        };
        self.note(|| format!("claims {agent:?} as {claim:?}: {written:?}"));
        step().await;
        written
    }

    async fn read_claim(&self, agent: &Name) -> Option<(Claim, u64)> {
        step().await;
        self.world.borrow().claims.get(agent).cloned()
    }
}
