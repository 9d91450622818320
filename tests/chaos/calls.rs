//! Checks the model requests, by the simulator's count, against the decisions made from them. Pure.
//!
//! Every answer contains the number of its request, and a decision holds the completions it was made from, so every
//! request is known to be needed or not. A request that was not needed is excused if it was given up for a newer
//! message, where its agent wants that, if the simulator let it fail, or if it was about an agent's work beside its
//! conversations: such a request is prepared on the current state, and once more when the state changes. A request that
//! was unsettled at the end of the run has no decision that could hold it. The others may be no more than were
//! unsettled in killed or frozen replicas: asked for, and in no decision yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kairo_core::subjects::find_route;
use kairo_proto::Body;
use serde::Deserialize;

use super::{Outcome, log::Entry, scenario};
use crate::audit::decision;

/// The longest that an answer may wait for its decision: for a further answer, and until the log takes the decision.
const UNSETTLED: SignedDuration = SignedDuration::from_secs(8);
/// The longest that a message may be in the log before the replica that decides has read it, even on a busy machine.
const UNREAD: SignedDuration = SignedDuration::from_secs(2);
/// The longest that a killed client may still seem to be connected.
const UNNOTICED: SignedDuration = SignedDuration::from_millis(200);

/// The length at which findings cut a request's text, in characters.
const TOLD_CHARS: usize = 80;
/// The outcome of a request whose client did not leave.
const ANSWERED: &str = "answered";

/// A line of the simulator's journal.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    pub number: u64,
    /// The replica that asked.
    pub caller: Option<String>,
    /// The rule of the scenario that matched it.
    #[serde(default)]
    pub rule: Option<String>,
    pub text: String,
    /// True if the simulator let it fail.
    #[serde(default)]
    failed: bool,
    begun_us: i64,
    ended_us: i64,
    pub outcome: String,
}

/// A replica that was killed or frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struck {
    pub replica: String,
    pub at: Timestamp,
}

/// The counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    pub requests: usize,
    /// Decisions that were made from answers.
    pub decisions: usize,
    /// Completions in decisions: the requests that were needed.
    pub needed: usize,
    /// Given up for a newer message.
    pub given_up: usize,
    /// Made for work, which was then prepared once more.
    pub prepared_again: usize,
    /// That the simulator let fail: no decision could hold an answer to them.
    pub failed: usize,
    /// Unsettled when the run was over.
    pub open: usize,
    /// None of these.
    pub extra: usize,
    /// Requests that were unsettled in what was killed or frozen, at those instants.
    pub in_struck: usize,
    /// When there are more extra requests than that: those that were not themselves unsettled in it.
    pub too_many: Vec<String>,
}

/// The log's entries about an agent: position and time of each message, cursor and time of each decision.
#[derive(Default)]
struct Inputs {
    messages: Vec<(u64, Timestamp)>,
    decisions: Vec<(u64, Timestamp)>,
}

/// All that is known in the end.
pub struct Bill<'a> {
    pub requests: &'a [Request],
    pub struck: &'a [Struck],
    /// When everything had come to rest.
    pub over: Timestamp,
    /// Agents that begin a decision again when a message comes.
    pub restarting: &'a BTreeSet<String>,
    /// The agents that messages were sent to, by the id that requests about them name.
    pub agents: &'a BTreeMap<String, String>,
}

/// Reads what the simulator wrote down.
pub fn read(journal: &Path) -> Outcome<Vec<Request>> {
    let text = std::fs::read_to_string(journal)?;
    // A line that was cut off when the simulator ended is none.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

impl Request {
    fn begun(&self) -> Timestamp {
        Timestamp::from_microsecond(self.begun_us).unwrap_or_default()
    }

    fn ended(&self) -> Timestamp {
        Timestamp::from_microsecond(self.ended_us).unwrap_or_default()
    }

    /// Until when nobody knows whether it was of use, if no decision says that it was.
    fn unsettled_until(&self) -> Timestamp {
        self.ended() + if self.outcome == ANSWERED { UNSETTLED } else { UNNOTICED }
    }

    fn is_for_work(&self) -> bool {
        self.rule.as_deref().is_some_and(scenario::is_for_work)
    }

    /// The first word of its text that is the id of a message.
    fn agent<'a>(&self, agents: &'a BTreeMap<String, String>) -> Option<&'a String> {
        self.text.split(|letter: char| !letter.is_ascii_alphanumeric()).find_map(|word| agents.get(word))
    }
}

impl Bill<'_> {
    pub fn judge<'e>(&self, entries: impl Iterator<Item = &'e Entry>) -> Calls {
        let (mut settled, mut inputs) = (BTreeMap::<u64, Timestamp>::new(), BTreeMap::<String, Inputs>::new());
        let mut calls = Calls { requests: self.requests.len(), ..Calls::default() };
        for entry in entries {
            let agent = find_route(&entry.record.subject).map(|(_, owner)| owner.to_string());
            let inputs = inputs.entry(agent.unwrap_or_default()).or_default();
            if let Some(decision) = decision(&entry.record) {
                calls.decisions += usize::from(!decision.completions.is_empty());
                calls.needed += decision.completions.len();
                let numbers = decision.completions.iter().filter_map(|completion| number(&completion.model));
                settled.extend(numbers.map(|number| (number, entry.stored)));
                inputs.decisions.push((decision.cursor, entry.stored));
            } else if let Body::AgentMessage(_) = entry.record.body {
                inputs.messages.push((entry.record.sequence, entry.stored));
            }
        }
        let in_struck = |request: &Request| {
            let until = settled.get(&request.number).copied().unwrap_or_else(|| request.unsettled_until());
            let was = |struck: &Struck| request.begun() <= struck.at && struck.at <= until;
            self.struck.iter().filter(|struck| Some(&struck.replica) == request.caller.as_ref()).any(was)
        };
        let mut strangers = Vec::new();
        for request in self.requests {
            let is_struck = in_struck(request);
            calls.in_struck += usize::from(is_struck);
            if settled.contains_key(&request.number) {
                continue;
            }
            if request.failed {
                calls.failed += 1;
                continue;
            }
            if self.is_given_up(request, &inputs) {
                calls.given_up += 1;
                continue;
            }
            if !is_struck && request.is_for_work() {
                calls.prepared_again += 1;
                continue;
            }
            if request.unsettled_until() > self.over {
                calls.open += 1;
                continue;
            }
            calls.extra += 1;
            if !is_struck {
                strangers.push(told(request));
            }
        }
        if calls.extra > calls.in_struck {
            calls.too_many = strangers;
        }
        calls
    }

    /// Returns true if a message was read for its agent while it was unsettled, and the agent wants to begin again
    /// then.
    fn is_given_up(&self, request: &Request, inputs: &BTreeMap<String, Inputs>) -> bool {
        let (begun, until) = (request.begun(), request.unsettled_until());
        let came = |agent: &String| inputs.get(agent).is_some_and(|inputs| inputs.came_between(begun, until));
        match request.agent(self.agents) {
            Some(agent) => self.restarting.contains(agent) && came(agent),
            None => self.restarting.iter().any(came),
        }
    }
}

impl Inputs {
    /// Returns true if the agent's owner may have read a message while a request was unsettled. A message that had been
    /// decided on before does not count.
    fn came_between(&self, begun: Timestamp, until: Timestamp) -> bool {
        let is_decided_on =
            |sequence: u64| self.decisions.iter().any(|(cursor, at)| sequence <= *cursor && *at < begun);
        let mut read = self.messages.iter().filter(|(_, at)| begun <= *at + UNREAD && *at <= until);
        read.any(|(sequence, _)| !is_decided_on(*sequence))
    }
}

/// The number in the name that an answer gives its model.
fn number(model: &str) -> Option<u64> {
    model.rsplit_once('#')?.1.parse().ok()
}

fn told(request: &Request) -> String {
    let Request { number, caller, text, outcome, .. } = request;
    let took = request.ended().duration_since(request.begun());
    let took = Duration::try_from(took).unwrap_or_default();
    let caller = caller.as_deref().unwrap_or("somebody");
    let text: String = text.lines().next().unwrap_or_default().chars().take(TOLD_CHARS).collect();
    format!("request {number} by {caller} at {}, {outcome} after {took:.1?}: {text}", request.begun())
}

#[cfg(test)]
mod tests;
