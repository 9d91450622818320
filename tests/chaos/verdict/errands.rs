//! The verdict on calls of peers and on stopped calls: the log against the effects outside.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kairo_core::bus::ledger::NOBODY;
use kairo_proto::{
    Body,
    v1::{ToolInvoke, ToolResult},
};

use super::{Asked, Evidence, Stall, longer};
use crate::{
    audit::decision,
    chaos::{
        peers::book::{Line, What},
        rest::SETTLED_WITHIN,
    },
};

/// Tools that stop the call that they name.
const STOPPING: [&str; 2] = ["action.cancel", "process.cancel"];
/// The longest that an agent may take to decide on an order to stop a call: longer than it takes until another replica owns it.
const DECIDED_WITHIN_S: f64 = 30.0;

/// The counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errands {
    pub calls: usize,
    pub effects: usize,
    pub in_doubt: usize,
    /// Of these: a late answer said what came of them.
    pub settled: usize,
    /// Said to be done in the end, and to be in doubt.
    pub done: usize,
    /// Reported as not done, and done.
    pub denied: Vec<String>,
    /// In doubt for good, although an answer came to a replica that was there to hear it.
    pub unheard: Vec<String>,
    /// Calls that a decision stopped before they began.
    pub stopped: usize,
    /// Of these: what had an effect all the same.
    pub begun_after_stop: Vec<String>,
    /// Orders to stop a call that were decided on late.
    pub slow_stops: Vec<String>,
    pub longest_stop: Option<Stall>,
}

/// The results that the log holds for one call.
#[derive(Default)]
struct Ends<'a> {
    first: Option<&'a ToolResult>,
    late: Option<&'a ToolResult>,
}

impl Ends<'_> {
    /// The word that counts in the end: none for a success.
    fn error(&self) -> Option<&str> {
        let last = self.late.or(self.first)?;
        last.error.as_ref().map(|error| error.kind.as_str())
    }
}

impl Evidence<'_> {
    pub(super) fn judge_errands(&self) -> Errands {
        let (asked, mut ends) = (self.asked(), BTreeMap::<&str, Ends<'_>>::new());
        for result in self.own().filter_map(|entry| ToolResult::of(&entry.record.body)) {
            let ends = ends.entry(&result.action_id).or_default();
            match result.late {
                true => ends.late = Some(result),
                false => ends.first = ends.first.or(Some(result)),
            }
        }
        let mut errands = Errands::default();
        let is_effect = |line: &&Line| line.what == What::Effect;
        let happened: BTreeSet<&str> =
            self.errands.iter().filter(is_effect).map(|line| line.errand.effect.as_str()).collect();
        errands.effects = happened.len();
        for (action, asked) in asked.iter().filter(|(_, asked)| asked.is_of_peer) {
            errands.calls += 1;
            let Some(ends) = ends.get(action.as_str()) else { continue };
            let is_doubted = ends.first.and_then(|it| it.error.as_ref()).is_some_and(|it| it.kind == "in_doubt");
            errands.in_doubt += usize::from(is_doubted);
            errands.settled += usize::from(is_doubted && ends.late.is_some());
            let has_happened = happened.contains(asked.name());
            match ends.error() {
                None => errands.done += usize::from(ends.first.is_some()),
                Some("in_doubt") => errands.unheard.extend(self.unheard(action, asked)),
                Some(kind) if has_happened && !asked.is_repeatable => {
                    errands.denied.push(format!("{} by action {action}, which ended as {kind}", asked.name()));
                }
                Some(_) => {}
            }
        }
        self.judge_stops(&asked, &mut errands);
        errands
    }

    /// An answer to a call that stays in doubt, if whoever called was there to hear it.
    fn unheard(&self, action: &str, asked: &Asked) -> Option<String> {
        let of = |what: What| {
            let is_it = move |line: &&Line| line.what == what && line.errand.effect == asked.name();
            self.errands.iter().find(is_it)
        };
        let (call, answer) = (of(What::Call)?, of(What::Answer)?);
        let caller = call.errand.caller.as_str();
        let until = answer.at + SETTLED_WITHIN;
        // Which replica a worker is called by it does not know.
        let is_caller = |name: &str| if caller.is_empty() { name.contains("tool-runner") } else { name == caller };
        let mut gone = self.gone.iter().filter(|gone| is_caller(&gone.replica));
        let was_there = !gone.any(|gone| call.at - SETTLED_WITHIN <= gone.at && gone.at <= until);
        was_there.then(|| format!("{} by action {action}, answered to {caller:?} at {}", asked.name(), answer.at))
    }

    /// Checks that a call stopped before the ledger shows it as begun never has an effect, and that orders are decided
    /// on soon.
    fn judge_stops(&self, asked: &BTreeMap<String, Asked>, errands: &mut Errands) {
        let (mut stopped, mut begun) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
        let mut ordered = BTreeMap::<String, (Timestamp, &str)>::new();
        for entry in self.own() {
            let sequence = entry.record.sequence;
            if let Some(decision) = decision(&entry.record) {
                for event in &decision.events {
                    let stopping = event.tool_call().filter(|call| STOPPING.contains(&call.tool.as_str()));
                    stopping.into_iter().for_each(|call| _ = stopped.entry(&call.target_action_id).or_insert(sequence));
                }
                if let Some((at, action)) = ordered.remove(&decision.input_id) {
                    let what = || format!("the order to stop {action}");
                    longer(&mut errands.longest_stop, at, entry.stored, what);
                    if entry.stored.duration_since(at) > SignedDuration::from_secs_f64(DECIDED_WITHIN_S) {
                        errands.slow_stops.push(what());
                    }
                }
            }
            if let Body::AgentCommand(command) = &entry.record.body
                && !command.action_id.is_empty()
            {
                ordered.insert(entry.record.envelope.id.to_string(), (entry.stored, &command.action_id));
            }
            let invoked = ToolInvoke::of(&entry.record.body).into_iter().flat_map(|invoke| &invoke.actions);
            for action in invoked.filter(|action| action.executor != NOBODY) {
                begun.entry(&action.action_id).or_insert(sequence);
            }
        }
        errands.slow_stops.extend(ordered.values().map(|(_, action)| format!("the order to stop {action}, never")));
        for (action, at) in stopped {
            if begun.get(action).is_some_and(|begun| *begun < at) {
                continue;
            }
            let Some(asked) = asked.get(action) else { continue };
            errands.stopped += 1;
            if self.done(asked) > 0 {
                let what = format!("{} by action {action}, which was stopped at {at}, before it began", asked.name());
                errands.begun_after_stop.push(what);
            }
        }
    }
}
