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
use kairo_mind::log::CollectedCompletions;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::snapshots::{self, PART, pack, unpack};

/// The place name that the content is sealed under.
const PLACE: &str = "handed over";

/// An agent's answers, in both lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneAnswers {
    pub answers: Option<CollectedCompletions>,
    pub work_answers: Option<CollectedCompletions>,
}

impl LaneAnswers {
    pub fn is_empty(&self) -> bool {
        self.answers.is_none() && self.work_answers.is_none()
    }
}

/// The answers handed over for one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentHandover {
    /// The last message on its decision subject.
    pub decided: u64,
    pub answers: LaneAnswers,
}

/// The stored entry. It has no version number: fields may be added and removed.
#[derive(Serialize, Deserialize)]
struct HandoverEntry {
    log: Uuid,
    agents: Vec<AgentEntry>,
}

#[derive(Serialize, Deserialize)]
struct AgentEntry {
    agent: Name,
    decided: u64,
    /// True if the content is sealed with the agent's data key.
    is_sealed: bool,
    /// An [`LaneAnswers`], packed, in base64.
    content: String,
}

/// Writes them in the place of what was there. What cannot be written, or has no room, is asked for again, which is no reason to
/// keep a partition.
pub async fn write(bus: &Bus, partition: u32, agents: BTreeMap<Name, AgentHandover>) {
    if let Err(error) = try_write(bus, partition, agents).await {
        tracing::warn!(partition, %error, "models' answers could not be handed over");
    }
}

async fn try_write(bus: &Bus, partition: u32, handed_over: BTreeMap<Name, AgentHandover>) -> Result<(), BusError> {
    let mut agents = Vec::new();
    let mut size = 0;
    for (agent, AgentHandover { decided, answers: answered }) in handed_over {
        let (content, is_sealed) = snapshots::seal_content(bus, &agent, PLACE, pack(&answered).0).await?;
        let of_agent = AgentEntry { agent, decided, is_sealed, content: BASE64_STANDARD.encode(content) };
        size += of_agent.content.len();
        if size > PART {
            return Err(BusError::TooLarge { size });
        }
        agents.push(of_agent);
    }
    let entry = serde_json::to_vec(&HandoverEntry { log: bus.log_identity()?.id, agents }).unwrap_or_default();
    bus.put_value(SNAPSHOTS_BUCKET, &key(partition), entry.into()).await.map(drop)
}

/// Reads the answers that the previous owner handed over; empty if there are none or they cannot be read.
pub async fn read(bus: &Bus, partition: u32) -> BTreeMap<Name, AgentHandover> {
    match try_read(bus, partition).await {
        Ok(handed_over) => handed_over,
        Err(error) => {
            tracing::debug!(partition, %error, "what was handed over cannot be read");
            BTreeMap::new()
        }
    }
}

async fn try_read(bus: &Bus, partition: u32) -> Result<BTreeMap<Name, AgentHandover>, BusError> {
    let log = bus.log_identity()?.id;
    let entry = bus.read_value(SNAPSHOTS_BUCKET, &key(partition)).await?;
    let entry = entry.and_then(|entry| serde_json::from_slice::<HandoverEntry>(&entry.value).ok());
    let mut all = BTreeMap::new();
    for AgentEntry { agent, decided, is_sealed, content } in
        entry.into_iter().filter(|entry| entry.log == log).flat_map(|entry| entry.agents)
    {
        let Ok(content) = BASE64_STANDARD.decode(content) else { continue };
        let opened = snapshots::open_content(bus, &agent, PLACE, content, is_sealed).await?;
        if let Some(answered) = opened.and_then(|packed| unpack(&packed)) {
            all.insert(agent, AgentHandover { decided, answers: answered });
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
        let answers = CollectedCompletions { input: 7, completions, given_up: vec![GivenUpCall::default()] };
        let left = AgentHandover { decided: 0, answers: LaneAnswers { answers: Some(answers), work_answers: None } };
        let agent = || {
            let mut agent = Resident::loading(Name::parse("ann").unwrap(), 1);
            agent.log = Some(Log::default());
            agent
        };
        let mut goes_on = agent();
        goes_on.adopt_handover(left.clone());
        assert_eq!(goes_on.to_handover(), Some(left.clone()));
        // Whoever decided since has said what was given up: nobody says it again.
        let mut decided_since = agent();
        decided_since.adopt_handover(AgentHandover { decided: 3, ..left });
        assert_eq!(decided_since.to_handover(), None);
    }

    #[test]
    fn what_another_build_wrote_is_read_whatever_else_it_says() {
        let newer =
            json!({ "answers": { "input": 7, "completions": [{ "request_digest": "a", "new": 1 }] }, "more": 1 });
        let answered: LaneAnswers = unpack(&pack(&newer).0).unwrap();
        let answers = answered.answers.unwrap();
        assert_eq!((answers.input, answers.completions[0].request_digest.as_str()), (7, "a"));
        assert!(unpack::<LaneAnswers>(&pack(&json!({ "more": 1 })).0).unwrap().is_empty());
        let agent = json!({ "agent": "ann", "decided": 3, "is_sealed": false, "content": "", "more": 1 });
        let entry: HandoverEntry =
            serde_json::from_value(json!({ "log": Uuid::nil(), "agents": [agent], "more": 1 })).unwrap();
        assert_eq!((entry.agents[0].agent.as_str(), entry.agents[0].decided), ("ann", 3));
    }
}
