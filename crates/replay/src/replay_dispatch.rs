//! The decisions of a log made again by several: what is to be done with each message is found in the log's order, and whoever has
//! the agent does it. Agents are independent, so what comes of a message is the same however they are shared.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::{
    ids::Name,
    log_message,
    record::{Record, UnreadableRecord},
    subjects::{self, AGENT_DECISION},
    vocabulary::{NewerReaderNeeded, NotUnderstood, READER},
};
use kairo_mind::replay::{Replay, changes::ReplayChanges};
use kairo_proto::v1::LogMessage;

use crate::{
    lanes::Shadow,
    report::{DecisionReport, OutcomeClass, OutcomeCounts, Range, ReplayStop, Report, ReportFormat},
    timeline::{BrokenLog, check_order},
};

/// The next step for a message of the log.
#[derive(Debug)]
pub enum DispatchStep {
    /// Nothing.
    Skip,
    /// It takes a newer build, or stands behind what is looked at: the rest of the log need not be read.
    Stop,
    /// It is of this agent, and for whoever has that.
    ForAgent(Name, ReplayTask),
    /// Decisions of any agent may rest on it, so it is for everybody.
    ForAll(ReplayTask),
}

/// A message for a [`Share`].
#[derive(Clone, Debug)]
pub struct ReplayTask {
    sequence: u64,
    what: ReplayTaskKind,
}

#[derive(Clone, Debug)]
enum ReplayTaskKind {
    /// It is taken in; a decision is made again.
    Make(Box<Record>),
    /// It is folded only.
    Follow(Box<Record>),
    /// Nobody can read it, for this reason. Of a decision that is within the range, this is told.
    PassOver { subject: String, of: Option<(Name, String)> },
}

/// A decision that was made again.
#[derive(Debug)]
pub struct RerunDecision {
    pub decision: Box<DecisionReport>,
    /// The samples that models can be asked for, if wanted and the changes reach the decision.
    pub shadow: Option<Box<Shadow>>,
}

/// The result of a message: a decision, if it is to be reported.
pub type ReplayTaskResult = Result<Option<RerunDecision>, BrokenLog>;

/// The messages of a log to replay, as far as they were read, and the counts so far.
#[derive(Debug)]
pub struct Dispatch {
    /// None for all that the log has.
    agents: BTreeSet<Name>,
    range: Range,
    changed: Vec<String>,
    read: u64,
    /// Agents of which there was anything.
    met: BTreeSet<Name>,
    counts: OutcomeCounts,
    stopped: Option<ReplayStop>,
}

/// Some agents of a log, as far as it was taken in. Each is in one share.
#[derive(Clone, Debug)]
pub struct Share {
    replay: Replay,
    /// The tiers whose models are replaced, if models are to be asked.
    asking: Option<BTreeSet<String>>,
}

impl Dispatch {
    /// These agents, or all where none are named.
    pub fn new(agents: BTreeSet<Name>, range: Range, changes: &ReplayChanges) -> Self {
        let met = BTreeSet::new();
        let counts = OutcomeCounts::default();
        Self { agents, range, changed: changes.describe(), read: 0, met, counts, stopped: None }
    }

    /// Returns the step for the next message of the log.
    ///
    /// # Errors
    /// When the message is none of a log, or does not stand where it belongs.
    pub fn next(&mut self, message: &LogMessage) -> Result<DispatchStep, BrokenLog> {
        let sequence = message.sequence;
        check_order(sequence, self.read)?;
        if self.stopped.is_some() || self.range.to.is_some_and(|to| sequence > to) {
            return Ok(DispatchStep::Stop);
        }
        self.read = sequence;
        let owner = subjects::find_route(&message.subject).filter(|(route, _)| subjects::is_agent_route(route));
        let owner = owner.map(|(_, agent)| agent);
        if let Some(agent) = &owner {
            if !self.agents.is_empty() && !self.agents.contains(agent) {
                return Ok(DispatchStep::Skip);
            }
            if !self.met.contains(agent) {
                self.met.insert(agent.clone());
            }
        }
        let is_within = self.range.from.is_none_or(|from| sequence >= from);
        let what = match log_message::decode_record(message).map_err(|cause| BrokenLog::Foreign { sequence, cause })? {
            Ok(record) if is_within => ReplayTaskKind::Make(record.into()),
            Ok(record) => ReplayTaskKind::Follow(record.into()),
            Err(NotUnderstood::Newer(NewerReaderNeeded { reader, why })) => {
                let type_name = message.headers.get("ce-type").cloned().unwrap_or_default();
                self.stopped = Some(ReplayStop { sequence, type_name, reader, reads: READER, why });
                return Ok(DispatchStep::Stop);
            }
            Err(NotUnderstood::Unreadable(why)) => {
                let Some(agent) = &owner else { return Ok(DispatchStep::Skip) };
                // What was carried forward before the log was trimmed is meant for nobody.
                let is_meant = !matches!(why, UnreadableRecord::Carried { .. });
                self.counts.unreadable += usize::from(is_meant);
                let is_told = is_meant && AGENT_DECISION.matches(&message.subject) && is_within;
                ReplayTaskKind::PassOver {
                    subject: message.subject.clone(),
                    of: is_told.then(|| (agent.clone(), why.to_string())),
                }
            }
        };
        let task = ReplayTask { sequence, what };
        Ok(match owner {
            Some(agent) => DispatchStep::ForAgent(agent, task),
            None => DispatchStep::ForAll(task),
        })
    }

    /// Counts a decision that is told.
    pub fn count(&mut self, decision: &DecisionReport) {
        self.counts.count(decision);
    }

    /// The agents that were asked for and of which the log had nothing.
    pub fn missing(&self) -> Vec<&Name> {
        self.agents.difference(&self.met).collect()
    }

    /// Builds the report on all messages read, by a build of this version; `states` are those of all shares,
    /// `decisions` those that were reported.
    pub fn report(&self, version: &str, states: BTreeMap<Name, String>, decisions: Vec<DecisionReport>) -> Report {
        Report {
            report: ReportFormat::V1,
            version: version.to_owned(),
            agents: self.agents.iter().cloned().collect(),
            range: self.range,
            changed: self.changed.clone(),
            asked: None,
            counts: self.counts,
            states,
            stopped: self.stopped.clone(),
            decisions,
        }
    }
}

impl Share {
    /// Decisions are made again with these changes. Where secrets were sealed on the way, that takes their key.
    pub fn new(changes: ReplayChanges, secret_key: Option<[u8; 32]>) -> Self {
        Self { replay: Replay::new(secret_key).with_changes(changes), asking: None }
    }

    /// Decisions come with what models can be asked for: those that the changes reach, and those for which a model of these tiers was
    /// asked.
    #[must_use]
    pub fn with_replaced_tiers(self, tiers: BTreeSet<String>) -> Self {
        Self { asking: Some(tiers), ..self }
    }

    /// Does what is to be done with the next message of its agents, or of those for everybody.
    ///
    /// # Errors
    /// Before the range when a decision does not follow from what was taken in, since nothing behind it could be trusted.
    pub fn run(&mut self, task: ReplayTask) -> ReplayTaskResult {
        let Self { replay, asking } = self;
        let ReplayTask { sequence, what } = task;
        match what {
            ReplayTaskKind::Make(record) => {
                let shadow =
                    asking.as_ref().and_then(|tiers| Shadow::from_record(replay, &record, tiers)).map(Box::new);
                let remade = |decision| RerunDecision { decision: Box::new(decision), shadow };
                Ok(replay.replay_record(*record).map(DecisionReport::from).map(remade))
            }
            ReplayTaskKind::Follow(record) => match replay.apply_record(*record) {
                true => Ok(None),
                false => Err(BrokenLog::Hole { sequence }),
            },
            ReplayTaskKind::PassOver { subject, of } => {
                replay.pass_over(sequence, &subject);
                let decision = of.map(|(agent, why)| Box::new(unreadable_decision(agent, sequence, &why)));
                Ok(decision.map(|decision| RerunDecision { decision, shadow: None }))
            }
        }
    }

    /// A digest of each agent's state.
    pub fn states(&self) -> BTreeMap<Name, String> {
        self.replay.state_digests().into_iter().map(|(agent, digest)| (agent, digest.to_string())).collect()
    }
}

/// Nobody decides on what nobody can read. A decision that cannot be read is not the same as anything.
fn unreadable_decision(agent: Name, sequence: u64, why: &str) -> DecisionReport {
    DecisionReport {
        agent,
        sequence,
        outcome: OutcomeClass::NotReplayable,
        input_id: String::new(),
        input: None,
        reason: Some(format!("it cannot be read: {why}")),
        drifted: Vec::new(),
        differences: Vec::new(),
        without_basis: false,
        recorded: None,
        made: None,
        lanes: None,
    }
}
