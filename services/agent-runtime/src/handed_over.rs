//! Models' answers that a partition is handed over with: for decisions that do not stand yet. A snapshot has them, too, but
//! only builds of its format read it; these go to whoever is next, as in an upgrade, so that nothing is asked for twice.

use std::collections::BTreeMap;

use bytes::Bytes;
use kairo_core::{
    bus::{Bus, BusError, data_keys::Holder},
    ids::Name,
    subjects::SNAPSHOTS_BUCKET,
};
use kairo_mind::log::Answers;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::snapshots::{PART, SEALED, WHOLE, pack, unpack};

/// What it is sealed as.
const PLACE: &str = "handed over";

/// An agent's answers, in both lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answered {
    pub answers: Option<Answers>,
    pub work_answers: Option<Answers>,
}

/// What an entry holds. Fields come and go: it says no version.
#[derive(Serialize, Deserialize)]
struct Entry {
    log: Uuid,
    #[serde(flatten)]
    paid: Answered,
}

impl Answered {
    pub fn is_nothing(&self) -> bool {
        self.answers.is_none() && self.work_answers.is_none()
    }

    /// Of each lane what was paid for later: an agent's snapshot may be of long before.
    #[must_use]
    pub fn or_later(self, other: Self) -> Self {
        Self { answers: later(self.answers, other.answers), work_answers: later(self.work_answers, other.work_answers) }
    }
}

fn later(one: Option<Answers>, other: Option<Answers>) -> Option<Answers> {
    let input = |answers: &Option<Answers>| answers.as_ref().map_or(0, |answers| answers.input);
    if input(&other) > input(&one) { other } else { one }
}

/// Writes them. What cannot be written is asked for again, which is no reason to keep a partition.
pub async fn write(bus: &Bus, partition: u32, agents: Vec<(Name, Answered)>) {
    for (agent, paid) in agents {
        if let Err(error) = write_one(bus, partition, &agent, paid).await {
            tracing::warn!(%agent, %error, "models' answers could not be handed over");
        }
    }
}

async fn write_one(bus: &Bus, partition: u32, agent: &Name, paid: Answered) -> Result<(), BusError> {
    let (packed, _) = pack(&Entry { log: bus.log()?.id, paid });
    let (packed, kind) = match bus.seal(Holder::Agent(agent.as_str()), PLACE, &packed).await? {
        Some(sealed) => (sealed, WHOLE + SEALED),
        None => (packed, WHOLE),
    };
    if packed.len() > PART {
        return Err(BusError::TooLarge { size: packed.len() });
    }
    let entry: Bytes = std::iter::once(kind).chain(packed).collect::<Vec<u8>>().into();
    bus.put_value(SNAPSHOTS_BUCKET, &key(partition, agent.as_str()), entry).await.map(drop)
}

/// What the owner before left, if it left anything. What was decided since makes it worthless, which those it is for see.
pub async fn read(bus: &Bus, partition: u32) -> BTreeMap<Name, Answered> {
    match read_all(bus, partition).await {
        Ok(paid) => paid,
        Err(error) => {
            tracing::debug!(partition, %error, "what was handed over cannot be read");
            BTreeMap::new()
        }
    }
}

async fn read_all(bus: &Bus, partition: u32) -> Result<BTreeMap<Name, Answered>, BusError> {
    let log = bus.log()?.id;
    let mut all = BTreeMap::new();
    for entry in bus.values(SNAPSHOTS_BUCKET, &key(partition, "*")).await? {
        let Some(agent) = entry.key.rsplit('.').next().and_then(|agent| Name::parse(agent).ok()) else { continue };
        let packed = match entry.value.split_first() {
            Some((&WHOLE, packed)) => Some(packed.to_vec()),
            Some((kind, sealed)) if *kind == WHOLE + SEALED => {
                bus.open(Holder::Agent(agent.as_str()), PLACE, sealed).await?
            }
            _ => None,
        };
        let entry = packed.and_then(|packed| unpack::<Entry>(&packed)).filter(|entry| entry.log == log);
        if let Some(entry) = entry {
            all.insert(agent, entry.paid);
        }
    }
    Ok(all)
}

fn key(partition: u32, agent: &str) -> String {
    format!("answers.{partition}.{agent}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(input: u64) -> Option<Answers> {
        Some(Answers { input, completions: Vec::new(), given_up: Vec::new() })
    }

    #[test]
    fn of_each_lane_the_later_is_gone_on_with() {
        let own = Answered { answers: answers(7), work_answers: None };
        let handed = Answered { answers: answers(3), work_answers: answers(5) };
        assert_eq!(own.or_later(handed), Answered { answers: answers(7), work_answers: answers(5) });
    }

    #[test]
    fn what_another_build_wrote_is_read_whatever_else_it_says() {
        let newer = json!({ "log": Uuid::nil(), "answers": { "input": 7, "completions": [{ "request_digest": "a", "new": 1 }] }, "more": 1 });
        let entry: Entry = unpack(&pack(&newer).0).unwrap();
        let answers = entry.paid.answers.unwrap();
        assert_eq!((answers.input, answers.completions[0].request_digest.as_str()), (7, "a"));
        assert!(unpack::<Entry>(&pack(&json!({ "log": Uuid::nil() })).0).unwrap().paid.is_nothing());
    }
}
