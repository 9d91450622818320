//! Of chains: each ends once, its steps run once and in their order, and nobody acts without the consent it needs.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::record::Record;
use kairo_proto::{
    Body, Decided, about,
    v1::{AgentDecision, ApprovalRequested, ToolCall, decided_event::Event},
};

use crate::{audit::decision, model, world::World};

pub fn mistakes(world: &World, records: &[Record]) -> Vec<String> {
    let mut reader = Reader::of(records);
    for record in records {
        if let Some(decision) = decision(record) {
            reader.read(decision);
        }
    }
    reader.wrong.extend(reader.chains.iter().filter(|(_, chain)| chain.ended != 1).map(|(id, chain)| {
        let begun: Vec<_> = chain.steps.iter().map(|(at, step)| (at, step.action.as_ref())).collect();
        format!("the chain {id} ended {} times; its steps: {begun:?}", chain.ended)
    }));
    reader.without_consent(world);
    reader.wrong
}

#[derive(Default)]
struct Chain {
    groups: Vec<u32>,
    steps: BTreeMap<u32, Step>,
    ended: u32,
}

/// A step that has begun.
#[derive(Default)]
struct Step {
    /// The call it is, if it is one.
    action: Option<String>,
    /// The consent it waits for or was given.
    request: Option<String>,
    over: bool,
}

/// A verdict on a request for consent: where it stands in the log, and whether it allows the call.
type Verdict = (u64, bool);

#[derive(Default)]
struct Reader<'r> {
    chains: BTreeMap<String, Chain>,
    /// The position of each action's result in the log.
    results: BTreeMap<&'r str, u64>,
    requests: BTreeMap<&'r str, &'r ApprovalRequested>,
    /// The first one of whoever was asked.
    verdicts: BTreeMap<&'r str, Verdict>,
    calls: Vec<(&'r str, &'r ToolCall, u64)>,
    wrong: Vec<String>,
}

impl<'r> Reader<'r> {
    fn of(records: &'r [Record]) -> Self {
        let mut reader = Self::default();
        for record in records {
            if let Body::ToolResult(result) = &record.body
                && !result.late
            {
                reader.results.insert(&result.action_id, record.sequence);
            }
            for event in decision(record).iter().flat_map(|decision| &decision.events) {
                if let Some(Event::ApprovalRequested(requested)) = &event.event {
                    reader.requests.insert(&event.event_id, requested);
                }
            }
            if let Body::AgentApproval(said) = &record.body {
                let asked = reader.requests.get(said.action_id.as_str()).is_some_and(|it| it.user == said.user);
                if asked && matches!(said.verdict.as_str(), "approved" | "rejected") {
                    let verdict = (record.sequence, said.verdict == "approved");
                    reader.verdicts.entry(&said.action_id).or_insert(verdict);
                }
            }
        }
        reader
    }

    fn read(&mut self, decision: &'r AgentDecision) {
        // Of what concerns work, more is known than of all else.
        let known = decision.cursor.max(decision.work_input);
        for event in &decision.events {
            if let Some(call) = event.tool_call() {
                self.calls.push((&event.event_id, call, known));
                if !call.chain_id.is_empty() {
                    let step = Step { action: Some(event.event_id.clone()), ..Default::default() };
                    self.begin(known, &call.chain_id, call.step, step);
                }
            }
            let Some(Decided::Chain(chain)) = event.event.as_ref().map(Event::about) else { continue };
            match chain {
                about::Chain::Started(started) => {
                    let groups = started.steps.iter().map(|step| step.group).collect();
                    let chain = Chain { groups, ..Default::default() };
                    if self.chains.insert(started.chain_id.clone(), chain).is_some() {
                        self.wrong
                            .push(format!("the chain {} began twice, on {}", started.chain_id, decision.input_id));
                    }
                }
                about::Chain::Ended(ended) => match self.chains.get_mut(&ended.chain_id) {
                    Some(chain) => chain.ended += 1,
                    None => self.wrong.push(format!("the chain {} ended and never began", ended.chain_id)),
                },
                about::Chain::StepEnded(ended) => {
                    let step = Step { over: true, ..Default::default() };
                    self.begin(known, &ended.chain_id, ended.step, step);
                }
                about::Chain::ApprovalRequested(requested) => {
                    let step = Step { request: Some(event.event_id.clone()), ..Default::default() };
                    self.begin(known, &requested.chain_id, requested.step, step);
                }
            }
        }
    }

    /// A step begins, or begins to be carried out after it waited for consent.
    fn begin(&mut self, cursor: u64, chain_id: &str, at: u32, step: Step) {
        let place = format!("step {at} of the chain {chain_id}");
        let Some(chain) = self.chains.get(chain_id) else {
            return self.wrong.push(format!("{place} is of no chain"));
        };
        let Some(group) = chain.groups.get(at as usize).copied() else {
            return self.wrong.push(format!("there is no {place}"));
        };
        if chain.ended > 0 {
            self.wrong.push(format!("{place} begins after its end"));
        }
        let before = chain.steps.get(&at);
        let waited = before.is_some_and(|before| before.action.is_none() && before.request.is_some() && !before.over);
        let refused = |before: &Step| before.request.as_ref().is_some_and(|it| self.verdict(it, cursor) == Some(false));
        let answered = step.action.is_some() || step.over && before.is_some_and(refused);
        if before.is_some() && !(waited && answered) {
            self.wrong.push(format!("{place} ran twice"));
        }
        for (other, run) in &chain.steps {
            let its_group = chain.groups.get(*other as usize).copied().unwrap_or_default();
            if its_group > group {
                self.wrong.push(format!("{place} begins after step {other} of a later group"));
            }
            if its_group < group && !self.is_over(run, cursor) {
                self.wrong.push(format!("{place} begins before step {other} of an earlier group is over"));
            }
        }
        if let Some(chain) = self.chains.get_mut(chain_id) {
            let known = chain.steps.entry(at).or_default();
            let request = known.request.take();
            *known = Step { request: step.request.clone().or(request), ..step };
        }
    }

    /// Returns true if the step is over for somebody who has read up to `cursor`.
    fn is_over(&self, step: &Step, cursor: u64) -> bool {
        match (&step.action, &step.request) {
            (Some(action), _) => self.results.get(action.as_str()).is_some_and(|at| *at <= cursor),
            (None, Some(request)) => step.over || self.verdict(request, cursor) == Some(false),
            (None, None) => step.over,
        }
    }

    /// Returns the verdict on a request for consent for somebody who has read up to `cursor`.
    fn verdict(&self, request: &str, cursor: u64) -> Option<bool> {
        self.verdicts.get(request).filter(|(at, _)| *at <= cursor).map(|(_, yes)| *yes)
    }

    /// Calls that were made, or had an effect, without the consent they need.
    fn without_consent(&mut self, world: &World) {
        let mut used = BTreeSet::new();
        for (id, call, cursor) in &self.calls {
            let request = call.approval_id.as_str();
            if !request.is_empty() {
                let asked = self.requests.get(request);
                let same = asked.is_some_and(|it| it.tool == call.tool && it.arguments == call.arguments);
                let allowed = self.verdict(request, *cursor) == Some(true);
                if !same || !allowed || !used.insert(request) {
                    self.wrong.push(format!("{id} ({}) rests on the consent {request}, which is none", call.tool));
                }
            }
            let effects = world.called.iter().filter(|(action, _)| action.to_string() == **id);
            let happened = effects.map(|(_, times)| *times).sum::<u32>() > 0;
            if model::needs_consent(&call.tool) && request.is_empty() && happened {
                self.wrong.push(format!("{id} ({}) happened and nobody consented", call.tool));
            }
        }
    }
}
