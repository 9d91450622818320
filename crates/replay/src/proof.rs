//! Proving that an agent's log is what was written: the digests that its decisions carry are made again, message by message, and
//! what the first of them is that does not fit. What is held of a log is what no decision covers yet, so it may be as long as it
//! likes.

mod misfit;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kairo_events::{
    hash_chain::{ChainRole, ContentDigest, HashChain},
    ids::Name,
    log_message, subjects,
    vocabulary::{NewerReaderNeeded, NotUnderstood, READER},
};
use kairo_proto::v1::{HashLink, LogMessage};
use serde::Serialize;

pub use self::misfit::{Misfit, MisfitKind};
use crate::{
    report::ReplayStop,
    timeline::{BrokenLog, check_order},
};

/// Number of latest decisions among which a copy is recognized.
const KNOWN: usize = 64;
/// Maximum number of sequences without a message that are kept of a whole log.
const GAPS: usize = 1_024;

/// The part of a log that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogExtent {
    /// All of it: what is not there was taken out.
    Whole,
    /// It may begin anywhere: what stands before is taken at the word of the first decision that is there.
    Cut,
}

/// Agents of a log, as far as it was taken in.
#[derive(Debug)]
pub struct Prover {
    /// None for all that the log has.
    agents: BTreeSet<Name>,
    extent: LogExtent,
    read: u64,
    held: BTreeMap<Name, AgentChain>,
    stopped: Option<ReplayStop>,
    /// Sequences at which no message stands, where all messages are looked at.
    gaps: Vec<u64>,
    /// The sequence of a checkpoint; `heads` are the digests found there.
    mark: Option<u64>,
    heads: BTreeMap<Name, Vec<u8>>,
}

/// The hash chain of an agent, as far as it was read.
#[derive(Debug)]
struct AgentChain {
    chain: HashChain,
    /// Its first message.
    first: u64,
    /// The decisions that were read last.
    known: VecDeque<ContentDigest>,
    proven: AgentProof,
}

/// The proof of an agent's messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentProof {
    pub agent: Name,
    /// Decisions whose digest is that of what stands before them.
    pub decisions: u64,
    /// The messages that those digests cover.
    pub covered: u64,
    /// Messages behind the last decision, and that decision: no digest covers them yet.
    pub uncovered: u64,
    /// Decisions that carry no digest, from before the epoch in which they do. Neither they nor what they rest on is covered.
    pub before_epoch: u64,
    /// Copies of decisions, each of which counts once.
    pub copies: u64,
    /// The decision from which on it is proven, where the beginning is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfit: Option<Misfit>,
}

/// The proof of a log, agent by agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub agents: Vec<AgentProof>,
    /// The last message that was read.
    pub read: u64,
    /// The message at which a newer build is needed to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<ReplayStop>,
    /// Sequences at which no message stands, the first of them, where all of the log was looked at. A server leaves none out by
    /// itself, but it hands out nothing of what it finds damaged; and a cluster may pass over one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<u64>,
    /// Of each agent, the digest of all that stands up to where a checkpoint looked.
    #[serde(skip)]
    pub heads: BTreeMap<Name, Vec<u8>>,
}

impl Proof {
    /// The first message that does not fit, of any agent.
    pub fn first_misfit(&self) -> Option<(&Name, &Misfit)> {
        let misfits = self.agents.iter().filter_map(|proven| Some((&proven.agent, proven.misfit.as_ref()?)));
        misfits.min_by_key(|(_, misfit)| misfit.sequence)
    }
}

impl Prover {
    /// These agents, or all where none are named; `mark` is the place in the log at which a checkpoint looks.
    pub fn new(agents: BTreeSet<Name>, extent: LogExtent, mark: Option<u64>) -> Self {
        let held = BTreeMap::new();
        let heads = BTreeMap::new();
        Self { agents, extent, read: 0, held, stopped: None, gaps: Vec::new(), mark, heads }
    }

    /// Takes in the next message of the log.
    ///
    /// # Errors
    /// When the message is none of a log, or does not stand where it belongs.
    pub fn apply(&mut self, message: &LogMessage) -> Result<(), BrokenLog> {
        let sequence = message.sequence;
        check_order(sequence, self.read)?;
        if self.stopped.is_some() {
            return Ok(());
        }
        self.record_heads_before(sequence);
        if self.agents.is_empty() && self.extent == LogExtent::Whole {
            let room = GAPS.saturating_sub(self.gaps.len());
            self.gaps.extend((self.read + 1..sequence).take(room));
        }
        self.read = sequence;
        let foreign = |cause| BrokenLog::Foreign { sequence, cause };
        let understood = log_message::decode_record(message).map_err(foreign)?;
        let owner = subjects::find_route(&message.subject).filter(|(route, _)| subjects::is_agent_route(route));
        let owner = owner.map(|(_, agent)| agent).filter(|it| self.agents.is_empty() || self.agents.contains(it));
        let body = match &understood {
            Ok(record) => Some(&record.body),
            Err(NotUnderstood::Unreadable(_)) => None,
            Err(NotUnderstood::Newer(NewerReaderNeeded { reader, why })) => {
                let is_asked = owner.is_some() || self.agents.is_empty();
                let type_name = message.headers.get("ce-type").cloned().unwrap_or_default();
                let stopped = || ReplayStop { sequence, type_name, reader: *reader, reads: READER, why: why.clone() };
                self.stopped = is_asked.then(stopped);
                return Ok(());
            }
        };
        let Some(agent) = owner else { return Ok(()) };
        let content = log_message::content_digest(message).map_err(foreign)?;
        let held = self.held.entry(agent.clone()).or_insert_with(|| AgentChain::new(agent, sequence));
        held.apply(sequence, content, ChainRole::from_message(&message.subject, body), self.extent);
        Ok(())
    }

    /// Returns true if a message needs a newer build: no message behind it is read.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// All that stands up to the mark was taken in.
    fn record_heads_before(&mut self, sequence: u64) {
        if let Some(mark) = self.mark.take_if(|mark| *mark < sequence) {
            let head = |held: &AgentChain| held.chain.expected_link(held.chain.last_decision(), mark).digest;
            self.heads = self.held.iter().map(|(agent, held)| (agent.clone(), head(held))).collect();
        }
    }

    /// The agents that were asked for and of which the log had nothing.
    pub fn missing(&self) -> Vec<&Name> {
        self.agents.iter().filter(|agent| !self.held.contains_key(agent)).collect()
    }

    /// The log is at its end.
    pub fn finish(mut self) -> Proof {
        self.record_heads_before(u64::MAX);
        let Self { held, read, stopped, gaps, heads, .. } = self;
        Proof { agents: held.into_values().map(|held| held.finish(&gaps)).collect(), read, stopped, gaps, heads }
    }
}

impl AgentChain {
    fn new(agent: Name, first: u64) -> Self {
        let proven = AgentProof {
            agent,
            decisions: 0,
            covered: 0,
            uncovered: 0,
            before_epoch: 0,
            copies: 0,
            from: None,
            misfit: None,
        };
        Self { chain: HashChain::default(), first, known: VecDeque::new(), proven }
    }

    fn apply(&mut self, sequence: u64, content: ContentDigest, on: ChainRole<'_>, extent: LogExtent) {
        if let ChainRole::Decision(link) = on {
            if let Some(link) = link.filter(|link| extent == LogExtent::Cut && self.begins_after_link(link)) {
                self.proven.from = Some(sequence);
                self.chain.resume_from(sequence, content, link);
            } else if self.known.contains(&content) {
                self.proven.copies += 1;
            } else {
                let misfit = self.check_link(sequence, link);
                // Of what comes behind it, one says no more than that it does.
                self.proven.misfit = self.proven.misfit.take().or(misfit);
            }
            self.known.push_back(content);
            if self.known.len() > KNOWN {
                self.known.pop_front();
            }
        }
        self.chain.apply_message(sequence, content, on);
    }

    /// Returns true if the log begins behind the decision that this one is linked to.
    fn begins_after_link(&self, link: &HashLink) -> bool {
        !self.chain.has_begun() && self.chain.last_decision() == 0 && link.previous != 0 && self.first > link.previous
    }

    /// Checks a decision against its link; returns the misfit, if any.
    fn check_link(&mut self, sequence: u64, link: Option<&HashLink>) -> Option<Misfit> {
        let Some(link) = link else {
            self.proven.before_epoch += u64::from(!self.chain.has_begun());
            return self.chain.has_begun().then(|| Misfit::unlinked_decision(sequence));
        };
        let covered = || -> Vec<(u64, u32)> {
            self.chain.covered_messages(link.through).map(|(at, content)| (at, content.short_mark())).collect()
        };
        if !self.chain.is_next(sequence, link) {
            return Some(Misfit::misplaced_decision(sequence, link, self.chain.last_decision(), &covered()));
        }
        if self.chain.expected_link(link.previous, link.through).digest != link.digest {
            let covered = covered();
            return Some(Misfit::digest_mismatch(sequence, link, &covered));
        }
        self.proven.decisions += 1;
        self.proven.covered += u64::from(link.messages);
        None
    }

    fn finish(self, gaps: &[u64]) -> AgentProof {
        let misfit = self.proven.misfit.map(|misfit| misfit.with_gap_position(gaps));
        AgentProof { uncovered: self.chain.uncovered_count() as u64, misfit, ..self.proven }
    }
}
