//! Model answers that a partition owner hands over, for decisions that are not committed yet. Snapshots hold them too,
//! but only builds of the same format read those; these entries go to any next owner, as in an upgrade, so that no
//! model is asked twice.
//!
//! Each partition has one entry, which the next handover replaces. An agent's answers are of use only while it has
//! decided nothing since.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::SNAPSHOTS_BUCKET,
};
use kairo_mind::log::Answers;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::snapshots::{self, PART, pack, unpack};

/// The place name that the content is sealed under.
const PLACE: &str = "handed over";

/// An agent's answers, in both lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answered {
    pub answers: Option<Answers>,
    pub work_answers: Option<Answers>,
}

impl Answered {
    pub fn is_nothing(&self) -> bool {
        self.answers.is_none() && self.work_answers.is_none()
    }
}

/// The answers handed over for one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HandedOver {
    /// The last message on its decision subject.
    pub decided: u64,
    pub answered: Answered,
}

/// The stored entry. It has no version number: fields may be added and removed.
#[derive(Serialize, Deserialize)]
struct Entry {
    log: Uuid,
    agents: Vec<OfAgent>,
}

#[derive(Serialize, Deserialize)]
struct OfAgent {
    agent: Name,
    decided: u64,
    /// True if the content is sealed with the agent's data key.
    is_sealed: bool,
    /// An [`Answered`], packed, in base64.
    content: String,
}

/// Writes them in the place of what was there. What cannot be written, or has no room, is asked for again, which is no reason to
/// keep a partition.
pub async fn write(bus: &Bus, partition: u32, agents: BTreeMap<Name, HandedOver>) {
    if let Err(error) = write_all(bus, partition, agents).await {
        tracing::warn!(partition, %error, "models' answers could not be handed over");
    }
}

async fn write_all(bus: &Bus, partition: u32, handed_over: BTreeMap<Name, HandedOver>) -> Result<(), BusError> {
    let (mut agents, mut size) = (Vec::new(), 0);
    for (agent, HandedOver { decided, answered }) in handed_over {
        let (content, is_sealed) = snapshots::sealed(bus, &agent, PLACE, pack(&answered).0).await?;
        let of_agent = OfAgent { agent, decided, is_sealed, content: BASE64_STANDARD.encode(content) };
        size += of_agent.content.len();
        if size > PART {
            return Err(BusError::TooLarge { size });
        }
        agents.push(of_agent);
    }
    let entry = serde_json::to_vec(&Entry { log: bus.log()?.id, agents }).unwrap_or_default();
    bus.put_value(SNAPSHOTS_BUCKET, &key(partition), entry.into()).await.map(drop)
}

/// Reads the answers that the previous owner handed over; empty if there are none or they cannot be read.
pub async fn read(bus: &Bus, partition: u32) -> BTreeMap<Name, HandedOver> {
    match read_all(bus, partition).await {
        Ok(handed_over) => handed_over,
        Err(error) => {
            tracing::debug!(partition, %error, "what was handed over cannot be read");
            BTreeMap::new()
        }
    }
}

async fn read_all(bus: &Bus, partition: u32) -> Result<BTreeMap<Name, HandedOver>, BusError> {
    let log = bus.log()?.id;
    let entry = bus.value(SNAPSHOTS_BUCKET, &key(partition)).await?;
    let entry = entry.and_then(|entry| serde_json::from_slice::<Entry>(&entry.value).ok());
    let mut all = BTreeMap::new();
    for OfAgent { agent, decided, is_sealed, content } in
        entry.into_iter().filter(|entry| entry.log == log).flat_map(|entry| entry.agents)
    {
        let Ok(content) = BASE64_STANDARD.decode(content) else { continue };
        let opened = snapshots::opened(bus, &agent, PLACE, content, is_sealed).await?;
        if let Some(answered) = opened.and_then(|packed| unpack(&packed)) {
            all.insert(agent, HandedOver { decided, answered });
        }
    }
    Ok(all)
}

fn key(partition: u32) -> String {
    format!("answers.{partition}")
}

#[cfg(test)]
mod tests {
    use kairo_mind::log::Log;
    use kairo_proto::v1::{Completion, GivenUpCall};
    use serde_json::json;

    use super::*;
    use crate::resident::Resident;

    #[test]
    fn what_was_left_is_of_use_as_long_as_nothing_was_decided_since() {
        let completions = vec![Completion { request_digest: "a".into(), ..Default::default() }];
        let answers = Answers { input: 7, completions, given_up: vec![GivenUpCall::default()] };
        let left = HandedOver { decided: 0, answered: Answered { answers: Some(answers), work_answers: None } };
        let agent = || {
            let mut agent = Resident::loading(Name::parse("ann").unwrap(), 1);
            agent.log = Some(Log::default());
            agent
        };
        let mut goes_on = agent();
        goes_on.go_on_with(left.clone());
        assert_eq!(goes_on.left(), Some(left.clone()));
        // Whoever decided since has said what was given up: nobody says it again.
        let mut decided_since = agent();
        decided_since.go_on_with(HandedOver { decided: 3, ..left });
        assert_eq!(decided_since.left(), None);
    }

    #[test]
    fn what_another_build_wrote_is_read_whatever_else_it_says() {
        let newer =
            json!({ "answers": { "input": 7, "completions": [{ "request_digest": "a", "new": 1 }] }, "more": 1 });
        let answered: Answered = unpack(&pack(&newer).0).unwrap();
        let answers = answered.answers.unwrap();
        assert_eq!((answers.input, answers.completions[0].request_digest.as_str()), (7, "a"));
        assert!(unpack::<Answered>(&pack(&json!({ "more": 1 })).0).unwrap().is_nothing());
        let agent = json!({ "agent": "ann", "decided": 3, "is_sealed": false, "content": "", "more": 1 });
        let entry: Entry = serde_json::from_value(json!({ "log": Uuid::nil(), "agents": [agent], "more": 1 })).unwrap();
        assert_eq!((entry.agents[0].agent.as_str(), entry.agents[0].decided), ("ann", 3));
    }
}
