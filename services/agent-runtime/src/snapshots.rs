//! Agents' states in a bucket, and where there is none, from the log.
//!
//! A snapshot is compressed, and where it is still larger than a message may be, it is several entries: first its parts,
//! then the head that names them, under the revision of the head before. Its key says the format, and what its writer
//! understands of the log: replicas of two builds side by side each have their own.

mod encoding;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future::try_join, stream};
use kairo_core::{
    bus::{Bus, BusError, data_keys::DataKeyHolder},
    hash_chain::ChainRole,
    ids::Name,
    ownership::checkpoint::StateFormat,
    record::{RawMessage, Record},
    subjects::{self, AGENT_DECISION, AGENT_DEFINED, AGENT_FORGOTTEN, AGENT_MESSAGE, SNAPSHOTS_BUCKET},
    vocabulary::{NewerReaderNeeded, NotUnderstood, READER},
};
use kairo_mind::log::{Log, SNAPSHOT_VERSION, Snapshot};
use kairo_proto::Body;
use serde::{Deserialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::handover_state::LaneAnswers;
use encoding::{IN_PARTS, SEALED, WHOLE, digest, join_parts, part_count, split_seal_flag};
pub(crate) use encoding::{open_content, pack, seal_content, unpack};

/// The place name that snapshots are sealed under.
const PLACE: &str = "snapshot";
/// Bytes written as one entry at most: nats takes a megabyte by default, headers included.
pub(crate) const PART: usize = 700_000;
/// Parts of a snapshot at most; far above what the bounds of a state allow.
const PARTS: usize = 64;
/// Pending messages that are read at once.
const READS_AT_ONCE: usize = 32;
/// The format that this build writes.
pub const FORMAT: StateFormat = StateFormat { version: SNAPSHOT_VERSION, reader: READER };

/// An agent's state, brought up to a place in the log.
#[derive(Debug)]
pub struct LoadedAgent {
    pub log: Log,
    /// The first message that needs a newer reader, if the log ends early because of one.
    pub newer: Option<(u64, NewerReaderNeeded)>,
    /// Model answers for the next decision of each lane, foreground and work.
    pub answers: LaneAnswers,
    /// The revision to save the next snapshot under.
    pub revision: u64,
}

/// The evidence that an agent without a snapshot is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentHistory {
    /// No checkpoint names the agent, so nothing should stand before the message at this sequence.
    New(u64),
    /// Something stands in the log.
    InLog,
}

/// The agent's state: from its snapshot or, where there is none, from the log or from nothing. Whoever asks follows the log
/// from behind `known` on.
pub async fn load(bus: &Bus, agent: &Name, absent: AgentHistory, known: u64) -> Result<LoadedAgent, BusError> {
    let id = bus.log_identity()?.id;
    let (revision, head) = bus.read_value_with_revision(SNAPSHOTS_BUCKET, &key(agent)).await?;
    let snapshot = match &head {
        Some(head) => read::<Snapshot>(bus, agent, &head.value).await?.filter(|snapshot| snapshot.log == id),
        None => None,
    };
    let paid = snapshot.as_ref().map_or_else(LaneAnswers::default, |snapshot| LaneAnswers {
        answers: snapshot.answers.clone(),
        work_answers: snapshot.work_answers.clone(),
    });
    let state = match &snapshot {
        Some(snapshot) => compare_with_log(bus, agent, snapshot, absent, known).await?,
        None => SnapshotState::Wrong,
    };
    let mut stored =
        snapshot.filter(|_| state != SnapshotState::Wrong).and_then(|snapshot| Log::from_snapshot(snapshot, id));
    if let Some(log) = &mut stored
        && !supply(bus, log).await?
    {
        stored = None;
    }
    let (log, newer) = match (stored, head, absent) {
        (Some(log), ..) if state == SnapshotState::Old => apply_to_end(bus, agent, log).await?,
        (Some(log), ..) => (log, None),
        // Snapshots may have been deleted: two looks cost little, as it is done once in an agent's life. A server that lags
        // behind may see nothing; decisions that it missed are fenced by the guard.
        (None, None, AgentHistory::New(first)) if is_new(bus, agent, first).await? => {
            (Log::without_forgotten(BTreeSet::new()), None)
        }
        // One that cannot be used says that there is something.
        (None, ..) => apply_to_end(bus, agent, empty_log(bus, agent).await?).await?,
    };
    Ok(LoadedAgent { log, newer, answers: paid, revision })
}

/// The state of a snapshot relative to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotState {
    Current,
    /// The log goes on behind it where nobody reads it again.
    Old,
    /// It is of another past of the log, or says less than it says.
    Wrong,
}

/// Compares a snapshot with the log. After snapshots were deleted, a former owner may have written an old one where a
/// newer one stood: no guard prevents creating an entry that does not exist.
async fn compare_with_log(
    bus: &Bus,
    agent: &Name,
    snapshot: &Snapshot,
    absent: AgentHistory,
    known: u64,
) -> Result<SnapshotState, BusError> {
    let (is_in_log, later) =
        try_join(is_in_log(bus, agent, snapshot), messages_beyond(bus, agent, snapshot, absent, known)).await?;
    let is_missed = |raw: &RawMessage| {
        let is_decision = raw.subject == AGENT_DECISION.of_owner(agent);
        is_decision && raw.sequence > snapshot.state.decided && raw.sequence <= snapshot.through
    };
    Ok(match () {
        () if !is_in_log => SnapshotState::Wrong,
        () if later.iter().any(is_missed) => {
            tracing::warn!(%agent, through = snapshot.through, "a snapshot lacks a decision, and is thrown away");
            SnapshotState::Wrong
        }
        () if later.iter().any(|raw| raw.sequence > snapshot.through) => SnapshotState::Old,
        () => SnapshotState::Current,
    })
}

/// Returns the messages in the log up to `known` that the snapshot lacks, one for each subject: the last one or, if
/// that stands further on, the first that the snapshot lacks.
///
/// The server finds the ends of subjects at once. A user's message at the end, the usual reason to wake an agent, hides
/// nothing: every earlier one that no checkpoint listed as waiting was decided on, which the decisions show.
async fn messages_beyond(
    bus: &Bus,
    agent: &Name,
    snapshot: &Snapshot,
    absent: AgentHistory,
    known: u64,
) -> Result<Vec<RawMessage>, BusError> {
    let (message, decision) = (AGENT_MESSAGE.of_owner(agent), AGENT_DECISION.of_owner(agent));
    let up_to = known.max(snapshot.through);
    let mut beyond = Vec::new();
    for last in bus.last_of_each(&subjects::agent_subjects(agent)).await? {
        let had = if last.subject == decision { snapshot.state.decided } else { snapshot.through };
        if last.sequence <= up_to {
            beyond.push(last);
        } else if last.subject != message || absent == AgentHistory::InLog {
            beyond.extend(bus.first_after(&last.subject, had).await?);
        }
    }
    beyond.retain(|raw| raw.sequence <= up_to);
    Ok(beyond)
}

/// Returns true if the log still holds the message that the snapshot ends at: a log restored from a backup has nothing
/// there, or another message.
async fn is_in_log(bus: &Bus, agent: &Name, snapshot: &Snapshot) -> Result<bool, BusError> {
    if snapshot.through == 0 {
        return Ok(true);
    }
    let there = bus.message_at(snapshot.through).await?;
    let is = there.is_some_and(|raw| is_last(agent, snapshot, &raw));
    if !is {
        tracing::warn!(%agent, through = snapshot.through, "a snapshot is of another past of the log, and thrown away");
    }
    Ok(is)
}

/// Returns true if this is the message that the snapshot recorded as its last.
fn is_last(agent: &Name, snapshot: &Snapshot, there: &RawMessage) -> bool {
    let is_of_agent = there.subject.split('.').nth(2) == Some(agent.as_str());
    is_of_agent && snapshot.last.is_none_or(|last| there.ids().is_some_and(|(id, _)| id == last))
}

/// Reads the messages that were pending when the snapshot was taken: later decisions may have passed it. Returns false
/// if one of them needs a newer reader.
async fn supply(bus: &Bus, log: &mut Log) -> Result<bool, BusError> {
    let reads =
        log.missing_sequences().into_iter().map(async |sequence| Ok((sequence, bus.message_at(sequence).await?)));
    let read: Vec<(u64, Option<RawMessage>)> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
    for (sequence, raw) in read {
        match raw.map(|raw| raw.read_or_reject_newer(bus.limits.max_body_bytes)) {
            Some(Ok(record)) => log.supply_record(sequence, Some(record)),
            Some(Err(NotUnderstood::Newer(_))) => return Ok(false),
            Some(Err(NotUnderstood::Unreadable(_))) | None => log.supply_record(sequence, None),
        }
    }
    Ok(true)
}

/// Returns true if the log has nothing of the agent before the message at `first`.
async fn is_new(bus: &Bus, agent: &Name, first: u64) -> Result<bool, BusError> {
    if begins_at(bus, agent, first).await? {
        return Ok(true);
    }
    let last = bus.last_of_each(&subjects::agent_subjects(agent)).await?;
    // Of a subject that goes on behind it, what stands before is not known, and what was carried forward stood before.
    if last.iter().any(|raw| raw.sequence != first || raw.carried_from().is_some()) {
        return Ok(false);
    }
    // Nothing fences an agent that nobody decided for yet: one whose definition was missed would decide without it.
    let defined = bus.last_at_leader(&AGENT_DEFINED.of_owner(agent)).await?;
    // The last of its subject may not be the only one: it was defined again, or copied past every guard.
    let subject = if defined == first {
        Some(AGENT_DEFINED.of_owner(agent))
    } else {
        last.into_iter().next().map(|it| it.subject)
    };
    let is_first = match subject {
        Some(subject) => bus.first_after(&subject, 0).await?.is_some_and(|raw| raw.sequence == first),
        None => true,
    };
    let is_new = is_first && (defined == 0 || defined == first);
    if is_new {
        // Nor does anything tell of one whose messages were removed, unless something of it was carried forward.
        bus.check_log_complete().await?;
    }
    Ok(is_new)
}

/// Returns true if a log that was never trimmed has its first message of the agent at `first`. Whatever follows it
/// reaches anybody who reads the log from there, so that a first pass over very many agents needs no separate read for
/// each. An agent that has forgotten users is always read separately, as the messages of those users are no longer
/// read.
async fn begins_at(bus: &Bus, agent: &Name, first: u64) -> Result<bool, BusError> {
    let forgotten = AGENT_FORGOTTEN.of_owner(agent);
    let (there, forgotten) = try_join(bus.first_sequence_of(agent), bus.last_at_leader(&forgotten)).await?;
    Ok(there == first && forgotten == 0 && bus.log_start().await?.is_whole())
}

/// Loads the agent's state from the current log, after a message did not fit the known state.
pub async fn reload(bus: &Bus, agent: &Name) -> Result<LoadedAgent, BusError> {
    let loaded = load(bus, agent, AgentHistory::InLog, 0).await?;
    if loaded.newer.is_some() {
        return Ok(loaded);
    }
    let decided = loaded.log.state.decided;
    let (log, newer) = apply_to_end(bus, agent, loaded.log).await?;
    let mut paid = loaded.answers;
    if let Some(answers) = paid.answers.as_mut().filter(|_| log.state.decided > decided) {
        // The decisions since may say them.
        answers.given_up.clear();
    }
    Ok(LoadedAgent { log, newer, answers: paid, ..loaded })
}

/// Reads on, as far as the log goes now, or to what takes a newer reader; an error while the server that answers is behind
/// the leader, and where it is read from a beginning that is gone and in no archive.
async fn apply_to_end(bus: &Bus, agent: &Name, log: Log) -> Result<(Log, Option<(u64, NewerReaderNeeded)>), BusError> {
    let mut folded = log;
    loop {
        match apply_pass(bus, agent, &mut folded).await? {
            ApplyExtent::To(newer) => return Ok((folded, newer)),
            // Nothing may be left of what was read of them.
            ApplyExtent::Forgetting => folded = empty_log(bus, agent).await?,
        }
    }
}

/// An agent of whom nothing is read yet. Of users that it has forgotten by now, nothing is read any more.
async fn empty_log(bus: &Bus, agent: &Name) -> Result<Log, BusError> {
    let mut orders = BTreeSet::new();
    let each = |raw: RawMessage| {
        let read = raw.without_carried_mark().read(bus.limits.max_body_bytes);
        if let Ok(Record { envelope, body: Body::AgentForgotten(forgotten), .. }) = read {
            bus.forget_data_keys(DataKeyHolder::User(&forgotten.user));
            orders.insert(envelope.id);
        }
    };
    bus.read_all(&AGENT_FORGOTTEN.of_owner(agent), 0, each).await?;
    Ok(Log::without_forgotten(orders))
}

/// The extent to which a log was applied.
enum ApplyExtent {
    /// To its end, or to a message that needs a newer reader.
    To(Option<(u64, NewerReaderNeeded)>),
    /// To where somebody is forgotten of whom something may have been read.
    Forgetting,
}

async fn apply_pass(bus: &Bus, agent: &Name, folded: &mut Log) -> Result<ApplyExtent, BusError> {
    let (mut diverged, mut newer, mut forgets, after) = (false, None, false, folded.read);
    let each = |raw: RawMessage| {
        match raw.read_or_reject_newer(bus.limits.max_body_bytes) {
            Ok(record) if folded.requires_forgetting(&record) => {
                forgets = true;
                return ControlFlow::Break(());
            }
            Ok(record) => {
                folded.chain.apply_message(
                    raw.sequence,
                    raw.hash_chain_content(),
                    ChainRole::from_message(&raw.subject, Some(&record.body)),
                );
                diverged |= folded.push(record).is_err();
            }
            Err(NotUnderstood::Newer(it)) => {
                newer = Some((raw.sequence, it));
                return ControlFlow::Break(());
            }
            Err(NotUnderstood::Unreadable(_)) => {
                folded.chain.apply_message(
                    raw.sequence,
                    raw.hash_chain_content(),
                    ChainRole::from_message(&raw.subject, None),
                );
                folded.skip_unreadable(raw.sequence, raw.subject == AGENT_DECISION.of_owner(agent));
            }
        }
        ControlFlow::Continue(())
    };
    let subjects = subjects::agent_subjects(agent);
    match after {
        0 => bus.read_full_history(&subjects, each).await?,
        // What a snapshot was taken of is in the log.
        _ => bus.read_merged(&subjects, after, each).await.map(drop)?,
    }
    if diverged {
        tracing::error!(%agent, "decisions of the log do not follow from each other");
    }
    Ok(if forgets { ApplyExtent::Forgetting } else { ApplyExtent::To(newer) })
}

/// A snapshot that was written.
#[derive(Debug)]
pub struct SavedSnapshot {
    pub revision: u64,
    /// In bytes, unpacked.
    pub size: usize,
}

/// Writes a snapshot under the revision of the one before.
pub async fn save(bus: &Bus, agent: &Name, snapshot: &Snapshot, before: u64) -> Result<SavedSnapshot, BusError> {
    let mut revision = before;
    let (packed, size) = pack(snapshot);
    let (packed, is_sealed) = seal_content(bus, agent, PLACE, packed).await?;
    let mut head = match packed.len() <= PART {
        true => std::iter::once(WHOLE).chain(packed).collect(),
        false => write_parts(bus, agent, &packed).await?,
    };
    head.iter_mut().take(1).for_each(|kind| *kind += if is_sealed { SEALED } else { 0 });
    let head = Bytes::from(head);
    loop {
        match bus.update_value(SNAPSHOTS_BUCKET, &key(agent), head.clone(), revision).await {
            Ok(revision) => return Ok(SavedSnapshot { revision, size }),
            Err(BusError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        // Whoever owned the agent before, or does by now, may have written one, of another version too. It never goes
        // back, and what was found is not taken for one's own: the next one is compared with it again.
        let (found, there) = bus.read_value_with_revision(SNAPSHOTS_BUCKET, &key(agent)).await?;
        revision = found;
        if let Some(there) = there
            && let Some(other) = read::<Reach>(bus, agent, &there.value).await?
            && other.log == snapshot.log
            && other.through >= snapshot.through
        {
            return Ok(SavedSnapshot { revision: before, size });
        }
    }
}

async fn write_parts(bus: &Bus, agent: &Name, packed: &[u8]) -> Result<Vec<u8>, BusError> {
    let parts: Vec<&[u8]> = packed.chunks(PART).collect();
    if parts.len() > PARTS {
        return Err(BusError::TooLarge { size: packed.len() });
    }
    for (number, part) in parts.iter().enumerate() {
        bus.put_value(SNAPSHOTS_BUCKET, &part_key(agent, number), Bytes::copy_from_slice(part)).await?;
    }
    let mut head = vec![IN_PARTS, u8::try_from(parts.len()).unwrap_or(u8::MAX)];
    head.extend(digest(packed).as_bytes());
    Ok(head)
}

/// The fields that every snapshot format has: the id of its log, and the last sequence read.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Reach {
    log: Uuid,
    through: u64,
}

/// Reads an entry, or only the fields of `T`; none if this version cannot use it.
async fn read<T: DeserializeOwned>(bus: &Bus, agent: &Name, head: &[u8]) -> Result<Option<T>, BusError> {
    let (head, is_sealed) = split_seal_flag(head);
    let mut parts = Vec::new();
    for number in 0..part_count(&head) {
        let Some(part) = bus.read_value(SNAPSHOTS_BUCKET, &part_key(agent, number)).await? else { return Ok(None) };
        parts.push(part.value);
    }
    let Some(packed) = join_parts(&head, &parts) else { return Ok(None) };
    Ok(open_content(bus, agent, PLACE, packed, is_sealed).await?.and_then(|packed| unpack(&packed)))
}

/// The snapshot of an agent that these entries of the bucket hold, by their keys; none if there is none, or none that
/// this version can use without a key. For whoever audits what was written.
pub fn decode(agent: &Name, entries: &BTreeMap<String, Bytes>) -> Option<Snapshot> {
    let head = entries.get(&key(agent))?;
    let parts = (0..part_count(head)).map(|number| entries.get(&part_key(agent, number)).cloned());
    unpack(&join_parts(head, &parts.collect::<Option<Vec<Bytes>>>()?)?)
}

/// Returns the key of the agent's snapshot in the format of this build.
pub fn key(agent: &Name) -> String {
    format!("agent.{agent}.{}", FORMAT.to_key())
}

fn part_key(agent: &Name, number: usize) -> String {
    format!("part.{agent}.{}.{number}", FORMAT.to_key())
}
