//! A survey of the log up to where it is to be trimmed: messages that stand last there and are to be carried forward,
//! work that has begun there and has not ended yet, and the position that each partition owner must have reached. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::{
    carry_forward::{CARRIED, CarryForward, policy_for},
    ids::Name,
    partition,
    record::{RawMessage, Record, StoredMessageRef},
    subjects,
    vocabulary::{self, CARRYING, READER_HEADER},
};
use kairo_proto::{
    About,
    about::{Process, Tool},
    v1::AgentDecision,
};
use uuid::Uuid;

use crate::message_line::MessageLine;

/// Prefix of the headers that a server or a client adds to a message for the other.
const OF_THE_SERVER: &str = "Nats-";

/// A log as far as it was taken in, of which everything up to the cut is to go.
#[derive(Debug, Default)]
pub struct Survey {
    cut: u64,
    subjects: BTreeMap<String, SurveyedSubject>,
    /// The last decision of each agent.
    decided: BTreeMap<Name, u64>,
    /// Calls and processes that began up to the cut and have not ended.
    open: BTreeMap<Uuid, UnfinishedWork>,
    /// Of each partition, the last message up to the cut, or that was carried forward; and the last one of a user up to the cut.
    partitions: BTreeMap<u32, u64>,
    users: BTreeMap<u32, u64>,
}

/// A message that began something that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedWork {
    pub sequence: u64,
    pub subject: String,
}

/// A subject of which something is carried, by where it stood first.
#[derive(Debug, Default)]
struct SurveyedSubject {
    last: u64,
    /// Up to the cut: where it stands now.
    going: BTreeMap<u64, u64>,
    /// The messages that stand again behind the cut.
    carried: BTreeSet<u64>,
}

/// A message that is to be carried forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry {
    /// The sequence at which it stood first.
    pub from: u64,
    /// The last message of its subject.
    pub guard: u64,
}

impl Survey {
    pub fn new(cut: u64) -> Self {
        Self { cut, ..Self::default() }
    }

    /// Takes in the next message.
    pub fn apply_line(&mut self, line: &MessageLine) {
        let (subject, in_partition) = partition::split_subject(&line.subject);
        let goes = line.sequence <= self.cut;
        if let Some(partition) = in_partition {
            // Also what was carried forward by somebody who was killed then.
            if goes || line.header(CARRIED).is_some() {
                self.partitions.insert(partition, line.sequence);
            }
            if goes && subject.starts_with("kairo.user.") {
                self.users.insert(partition, line.sequence);
            }
        }
        self.track_subject(subject, line);
        let stored = StoredMessageRef { sequence: line.sequence, subject, payload: &line.data, at: line.stored };
        if let Ok(record) = Record::read(stored, |name| line.header(name), usize::MAX) {
            self.track_work(&record);
        }
    }

    fn track_subject(&mut self, subject: &str, line: &MessageLine) {
        let carrying = policy_for(subject);
        if carrying == CarryForward::Nothing {
            return;
        }
        let from = original_sequence(line);
        let known = self.subjects.entry(line.subject.clone()).or_default();
        known.last = line.sequence;
        match line.sequence <= self.cut {
            true => {
                if carrying == CarryForward::Last {
                    known.going.clear();
                }
                known.going.insert(from, line.sequence);
            }
            false => _ = known.carried.insert(from),
        }
    }

    fn track_work(&mut self, record: &Record) {
        let Record { sequence, subject, body, .. } = record;
        let begun = || UnfinishedWork { sequence: *sequence, subject: subject.clone() };
        let mut begin = |ids: Vec<&str>| {
            if *sequence <= self.cut {
                self.open.extend(ids.into_iter().filter_map(|id| Some((Uuid::parse_str(id).ok()?, begun()))));
            }
        };
        match body.about() {
            About::Decision(decision) => {
                begin(tool_call_ids(decision));
                if let Some((_, agent)) = subjects::find_route(subject) {
                    self.decided.insert(agent, *sequence);
                }
            }
            About::Process(Process::Spawned(spawned)) => begin(vec![&spawned.process_id]),
            About::Tool(Tool::Result(result)) => self.end_work(&result.action_id),
            About::Process(Process::Exited(exited)) => self.end_work(&exited.process_id),
            About::Tool(Tool::Invoke(_) | Tool::Order(_) | Tool::Progress(_)) => {}
            About::Process(Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => {}
            About::User(_) | About::Agent(_) | About::Decided(_) | About::Outside(_) => {}
            About::System(_) | About::Live(_) => {}
        }
    }

    fn end_work(&mut self, id: &str) {
        if let Ok(id) = Uuid::parse_str(id) {
            self.open.remove(&id);
        }
    }

    /// The oldest of what has begun up to the cut and not ended.
    pub fn oldest_unfinished(&self) -> Option<&UnfinishedWork> {
        self.open.values().min_by_key(|begun| begun.sequence)
    }

    /// Returns the messages to carry forward, by their sequences.
    pub fn messages_to_carry(&self) -> BTreeMap<u64, Carry> {
        let mut carries = BTreeMap::new();
        for (subject, known) in &self.subjects {
            let (subject, _) = partition::split_subject(subject);
            // Where it is for its last message, whatever stands behind the cut is that.
            if policy_for(subject) == CarryForward::Last && known.last > self.cut {
                continue;
            }
            for (from, at) in known.going.iter().filter(|(from, _)| !known.carried.contains(from)) {
                carries.insert(*at, Carry { from: *from, guard: known.last });
            }
        }
        carries
    }

    /// Up to where the owners of partitions must have read: those of agents, and those of users.
    pub fn required_positions(&self) -> (&BTreeMap<u32, u64>, &BTreeMap<u32, u64>) {
        (&self.partitions, &self.users)
    }

    /// Returns true if an agent has decided something behind the cut: until then its pending inputs may stand before
    /// it.
    pub fn has_decided_since(&self, agent: &Name) -> bool {
        self.decided.get(agent).is_some_and(|sequence| *sequence > self.cut)
    }
}

/// Returns the sequence at which a message stood first.
fn original_sequence(line: &MessageLine) -> u64 {
    line.header(CARRIED).and_then(|from| from.parse().ok()).unwrap_or(line.sequence)
}

/// The calls of tools that a decision asks for.
fn tool_call_ids(decision: &AgentDecision) -> Vec<&str> {
    decision.events.iter().filter(|event| event.tool_call().is_some()).map(|event| event.event_id.as_str()).collect()
}

/// The headers with which a message is carried forward.
pub fn carried_headers(line: &MessageLine, from: u64) -> Vec<(String, String)> {
    let reader = line.header(READER_HEADER).and_then(|reader| reader.parse().ok()).unwrap_or(vocabulary::FIRST);
    let own = [(READER_HEADER, reader.max(CARRYING).to_string()), (CARRIED, from.to_string())];
    let is_own = |name: &str| name.starts_with(OF_THE_SERVER) || own.iter().any(|(own, _)| *own == name);
    let others = line.headers.iter().filter(|(name, _)| !is_own(name)).cloned();
    others.chain(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// Returns true if this is the message that stood first at `from`, carried forward.
pub fn is_carried(raw: &RawMessage, from: u64) -> bool {
    raw.headers.get(CARRIED).is_some_and(|carried| carried.as_str() == from.to_string())
}

/// Returns true if a message is no longer to be carried forward, where `last` is the last one of its subject by now.
pub fn is_superseded(stored: &str, last: u64, carried: u64) -> bool {
    let (subject, _) = partition::split_subject(stored);
    policy_for(subject) == CarryForward::Last && last > carried
}

#[cfg(test)]
mod tests;
